package explore

import (
	"maps"
	"slices"
)

// Wait is a read of a thread that spins at the end of an execution: no write of another value comes after what it has read.
type Wait struct {
	Read int // the event
	// Lost are the writes of another value, by other threads than that of the write that is read, which come before it in coherence
	// order although nothing orders the two: had they come last, the thread might have gone on. The last of them comes first.
	Lost []int
}

// Waits gives the reads in the last iteration of each thread that spins, the last of each thread first.
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
