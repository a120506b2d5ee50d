package event

// Series is a sequence of weak loads and stores of shared memory that warps of a launch execute repeatedly. An event of
// kind Again represents one execution. A Series never changes.
type Series struct {
	ID uint32 // within the launch, from 1
	// Events are Loads and Stores, not scattered, all with the same Mask. Warp is 0. Val is relative to that of the
	// Again.
	Events []Event
	Words  uint32 // the number of words of Batch.Values, from Val on, that belong to them
}

// Nth returns event number i of the series that an Again represents.
func (b *Batch) Nth(again *Event, i int) Event {
	e := b.Series[again.Side].Events[i]
	e.Warp = again.Warp
	e.Val += again.Val
	return e
}

// plainEvents is the approximate number of events that Plain passes at once.
const plainEvents = 512

// Plain calls f with batches that together represent the events of b without Again; with b itself if there is none.
// room is memory for the batches, which can be reused in the next call.
func (b *Batch) Plain(room *[]Event, f func(*Batch)) {
	if len(b.Series) == 0 {
		f(b)
		return
	}
	part := *b
	part.Series, part.Events = nil, (*room)[:0]
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind != Again {
			part.Events = append(part.Events, *e)
		} else {
			for k := range b.Series[e.Side].Events {
				part.Events = append(part.Events, b.Nth(e, k))
			}
		}
		if len(part.Events) >= plainEvents {
			f(&part)
			part.Events = part.Events[:0]
		}
	}
	*room = part.Events[:0]
	if len(part.Events) > 0 {
		f(&part)
	}
}
