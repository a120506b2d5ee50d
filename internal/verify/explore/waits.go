package explore

import (
	"maps"
	"slices"
)

// Wait is a read of a thread that spins at the end of an execution: no write of another value follows the one it has
// read.
type Wait struct {
	Read int // the event
	// Lost are the writes of another value, by other threads than the writer of the value read, that precede that write
	// in coherence order although nothing orders the two. Had one of them come last, the thread might have gone on.
	// They are listed from the last to the first.
	Lost []int
}

// Waits returns the reads in the last iteration of each spinning thread, the last of each thread first.
func Waits(x Execution) (out []Wait) {
	events := x.Events()
	threads := map[int]bool{}
	for i := range events {
		threads[events[i].Thread] = true
	}
	for _, t := range slices.Sorted(maps.Keys(threads)) {
		if next := x.Next(t).Kind; next != Await && next != Bound {
			continue
		}
		for _, r := range x.Iteration(t) {
			out = append(out, Wait{r, lost(x, events, r)})
		}
	}
	return out
}

func lost(x Execution, events []Event, read int) (out []int) {
	last := events[read].RF
	if last < 0 {
		return nil
	}
	co := x.Coherence(events[read].Loc)
	for i := slices.Index(co, int32(last)) - 1; i >= 0; i-- {
		if w := int(co[i]); events[w].Thread != events[last].Thread && events[w].Value != events[last].Value && !x.Before(w, last) {
			out = append(out, w)
		}
	}
	return out
}
