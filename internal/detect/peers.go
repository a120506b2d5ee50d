package detect

import "fencepost.dev/fencepost/internal/event"

// PeerFilter removes accesses to the shared memory of other blocks from batches. It is for detectors that do not have
// event.NeedPeers: for them, as for the papers that they implement, only a block itself accesses its shared memory.
type PeerFilter struct {
	clustered map[uint32]bool // running launches with clusters
	room      []event.Event
}

// Filter returns the batch without such accesses. The result is valid until the next call.
func (f *PeerFilter) Filter(b *event.Batch) *event.Batch {
	for i := range b.Events {
		if e := &b.Events[i]; len(b.Launches) > 0 && e.Kind == event.KernelBegin && b.Launches[e.Side].ClusterShape().Count() > 1 {
			if f.clustered == nil {
				f.clustered = map[uint32]bool{}
			}
			f.clustered[e.Launch] = true
		}
	}
	if len(f.clustered) == 0 {
		return b
	}
	own := *b
	own.Events = f.room[:0]
	for i := range b.Events {
		e := &b.Events[i]
		if !f.clustered[e.Launch] || !foreign(b, e) {
			own.Events = append(own.Events, *e)
		}
		if e.Kind == event.KernelEnd {
			delete(f.clustered, e.Launch)
		}
	}
	f.room = own.Events
	return &own
}

// foreign reports whether a lane accesses the shared memory of another block.
func foreign(b *event.Batch, e *event.Event) bool {
	if e.Space != event.Shared || e.Mask == 0 {
		return false
	}
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		var room [32]uint64
		for _, at := range b.Addresses(e, &room) {
			if at>>event.PeerShift != 0 {
				return true
			}
		}
	case event.Bulk:
		return e.Addr>>event.PeerShift != 0
	}
	return false
}
