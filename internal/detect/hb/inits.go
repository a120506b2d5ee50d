package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// A thread's fence.mbarrier_init releases what it has stored by mbarrier.init, and nothing else that it has done. A clock cannot say so, as
// it knows all of a thread up to an epoch. The initialisations of a thread are therefore counted like the asynchronous operations of
// landed.go, by the thread's epochs, and the fence releases that count. They are in the history as accesses of their thread too, so that
// whatever else orders them does.

// initKey is a thread that has executed fence.mbarrier_init.
type initKey struct {
	launch, warp uint32 // in the grid
	lane         int
}

// fenceInits performs fence.mbarrier_init.
func (d *Detector) fenceInits(e *event.Event, blk *order.Block, wi uint32) {
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		k := initKey{e.Launch, e.Warp, lane}
		id, ok := d.inits[k]
		if !ok {
			if d.inits == nil {
				d.inits = map[initKey]uint32{}
			}
			id = d.newOperations()
			d.inits[k] = id
		}
		blk.FenceInits(wi, lane, e.Scope, id, blk.ViewOf(wi, lane).Epoch)
	}
}

// knowsInit says that the actor knows, by a fence.mbarrier_init, of an initialisation by another thread.
func (d *Detector) knowsInit(a *history.Access, s *order.Stamp) bool {
	if s.Launch == nil || s.Launch != a.Actor.Launch {
		return false
	}
	id, ok := d.inits[initKey{s.Launch.Info.ID, s.Warp, s.Lane}]
	return ok && a.Actor.View.Knows(id, s.Epoch)
}
