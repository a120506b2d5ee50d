package event

// Series is weak loads and stores of shared memory that warps of a launch make one after the other, again and again: events
// of kind Again say that one does so. It never changes.
type Series struct {
	ID uint32 // within the launch, from 1
	// Events are Load and Store, never scattered, with one Mask. Warp is 0. Val counts from that of Again.
	Events []Event
	Words  uint32 // of Batch.Values, from Val on, that are theirs
}

// Nth gives the event that an Again says its series' event number i is.
func (b *Batch) Nth(again *Event, i int) Event {
	e := b.Series[again.Side].Events[i]
	e.Warp = again.Warp
	e.Val += again.Val
	return e
}

// plainEvents is how many events Plain gives at once, or a few more.
const plainEvents = 512

// Plain calls f with batches that say, one after the other, what b says without Again: b itself where there is none. Room is
// memory for that, for the next call too.
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
