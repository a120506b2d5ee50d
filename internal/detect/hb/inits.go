package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// A fence.mbarrier_init releases the initialisations by mbarrier.init that its thread has executed, and nothing else
// that the thread has done. A clock cannot express that: knowing a thread's epoch means knowing all that the thread did
// up to it. The initialisations of a thread therefore get a counter, like the asynchronous operations in landed.go. Its
// count is the thread's epoch, and the fence releases that count. The initialisations are also in the history as
// accesses of their thread, so that any other synchronisation orders them as usual.

// initKey identifies a thread that has executed fence.mbarrier_init.
type initKey struct {
	launch, warp uint32 // warp is numbered within the grid
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

// knowsInit reports whether the actor knows of an initialisation by another thread through a fence.mbarrier_init.
func (d *Detector) knowsInit(a *history.Access, s *order.Stamp) bool {
	if s.Launch == nil || s.Launch != a.Actor.Launch {
		return false
	}
	id, ok := d.inits[initKey{s.Launch.Info.ID, s.Warp, s.Lane}]
	return ok && a.Actor.View.Knows(id, s.Epoch)
}
