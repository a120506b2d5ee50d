package explore

import (
	"slices"

	"fencepost.dev/fencepost/internal/verify/model"
)

// Wait is a read of a thread that spins at the end of an execution: it has read what no write comes after.
type Wait struct {
	Read int // the event
	// Lost are the writes of another value, by other threads than that of the write that is read, which come before it in coherence
	// order although nothing orders the two: had they come last, the thread might have gone on. The last of them comes first.
	Lost []int
}

// Waits gives the reads in the last iteration of each thread that spins, the last of each thread first.
func Waits(x Execution) (out []Wait) {
	events := x.Events()
	left := map[int]int64{} // steps of the last iteration of the thread
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		n, known := left[e.Thread]
		if op := x.Next(e.Thread); !known && op.Kind == Await {
			n = op.Value
		}
		left[e.Thread] = n
		if n == 0 {
			continue
		}
		if !e.Op.Inserted && !(e.Kind == model.W && e.RMW) { // an update is one step
			left[e.Thread]--
		}
		if e.Kind == model.R {
			out = append(out, Wait{i, lost(x, events, i)})
		}
	}
	slices.SortStableFunc(out, func(a, b Wait) int { return events[a.Read].Thread - events[b.Read].Thread })
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
