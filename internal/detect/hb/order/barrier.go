package order

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// arrival is a set of warps of which the same lanes arrived alike at a CTA barrier since its last completion.
type arrival struct {
	views  // at the arrival
	fences *fences
	lanes  uint32
	warps  uint32 // a bit for each warp: a block has at most 32, since it has at most 1024 threads
	place  uint32
	wait   bool
}

func (b *Block) arrive(wi uint32, e *event.Event) {
	w, bar := &b.warps[wi], &b.barriers[e.Barrier]
	wait := e.Flags&event.FlagWait != 0
	var fences *fences
	if b.fencesSC {
		fences = b.carried(w, wi, e.Mask)
	}
	var last *arrival
	if n := len(*bar); n > 0 {
		last = &(*bar)[n-1]
	}
	if last != nil && last.views == w.views && last.lanes == e.Mask && last.place == e.Place && last.wait == wait && last.fences == fences && last.warps>>wi&1 == 0 {
		last.warps |= 1 << wi
	} else {
		*bar = append(*bar, arrival{w.views, fences, e.Mask, 1 << wi, e.Place, wait})
		w.lent = w.each != nil
	}
	if !wait {
		b.next(wi, e.Mask, e)
	}
}

// complete orders all arrivals at a barrier before its waiters. For its result see Sync.
func (b *Block) complete(e *event.Event) (met bool) {
	bar := b.barriers[e.Barrier]
	if len(bar) == 0 {
		return false
	}
	waits, full := b.waiters(bar)
	b.number++
	v := b.gather(bar, full && !b.leftAny)
	for i, lanes := range b.waiting {
		if lanes == 0 {
			continue
		}
		w := &b.warps[i]
		if b.fencesSC {
			w.settled(lanes)
		}
		w.set(lanes&w.live, v)
	}
	if waits {
		b.Log.addBarrier(b.number, bar, e.Barrier, full)
	}
	b.barriers[e.Barrier] = bar[:0]
	if met = full && !b.leftShared; met && !b.Tells {
		// All that an acquire pattern on these variables could convey, every thread now knows.
		b.Shared.reset()
	}
	return met
}

// waiters records in b.waiting which lanes wait at a barrier. any says that at least one does, all that all live lanes
// do.
func (b *Block) waiters(bar []arrival) (any, all bool) {
	clear(b.waiting)
	for i := range bar {
		if a := &bar[i]; a.wait {
			for m := a.warps; m != 0; m &= m - 1 {
				b.waiting[bits.TrailingZeros32(m)] |= a.lanes
			}
			any = true
		}
	}
	all = true
	for i, lanes := range b.waiting {
		all = all && b.warps[i].live&^lanes == 0
	}
	return any, all
}

// AllWait reports whether e is the completion of a barrier at which all live threads of the block wait: whether Sync
// will return true.
func (b *Block) AllWait(e *event.Event) bool {
	bar := b.barriers[e.Barrier]
	if e.Kind != event.BarrierDone || len(bar) == 0 || b.leftShared {
		return false
	}
	_, all := b.waiters(bar)
	return all
}

// gather returns the new view of the waiters at a barrier: the joined knowledge of all arrivals, including their own
// epochs. all says that every thread of the block that has accessed memory waits; the waiters then know all that the
// block has done.
func (b *Block) gather(bar []arrival, all bool) *View {
	var k knowledge
	o := b.order
	for i := range bar {
		a := &bar[i]
		k.fences = o.joinFences(k.fences, a.fences)
		for v, lanes := range a.of(a.lanes) {
			o.gatherView(&k, v, !all)
			for m := a.warps; m != 0 && !all && !a.wait; m &= m - 1 {
				w := uint32(bits.TrailingZeros32(m))
				k.block = k.block.Join((*clock.Block)(nil).With(len(b.warps), w, lanes, v.Epoch))
			}
		}
	}
	if all {
		return o.allKnown(k, b.number)
	}
	for i, lanes := range b.waiting {
		if lanes != 0 {
			k.block = k.block.With(len(b.warps), uint32(i), b.warps[i].idle(lanes), b.number-1)
		}
	}
	return &View{k, b.number}
}

// allKnown returns the view of an epoch that knows k, and all earlier epochs of its block. Blocks that run together
// mostly need the same views, so they are cached.
func (o *Order) allKnown(k knowledge, epoch uint32) *View {
	at := &o.recent[epoch%uint32(len(o.recent))]
	if v := *at; v == nil || v.Epoch != epoch || v.grid != k.grid || v.beyond != k.beyond || v.fences != k.fences {
		k.block = clock.Uniform(epoch - 1)
		*at = &View{k, epoch}
	}
	return *at
}

// gatherView joins the knowledge of a view to k, except of fences, and of the view's block only if block is set.
func (o *Order) gatherView(k *knowledge, v *View, block bool) {
	if block {
		k.block = k.block.Join(v.block)
	}
	k.grid, k.beyond = o.join.Join(k.grid, v.grid), k.beyond.Join(v.beyond)
}

// Together returns the view of an operation that lanes of a warp issue together: all that they know and have done. Its
// epoch is that of the lowest lane.
func (b *Block) Together(wi, lanes uint32) *View {
	w := &b.warps[wi]
	var k knowledge
	for v, having := range w.of(lanes) {
		b.order.gatherView(&k, v, true)
		k.block = k.block.Join((*clock.Block)(nil).With(len(b.warps), wi, having, v.Epoch))
	}
	return &View{k, w.view(bits.TrailingZeros32(lanes)).Epoch}
}

// Learn adds the knowledge of a view given by Together to lanes of a warp: the operation is complete.
func (b *Block) Learn(wi, lanes uint32, of *View) {
	w := &b.warps[wi]
	for v, having := range w.of(lanes) {
		k := v.knowledge
		b.order.gatherView(&k, of, true)
		w.learned(having, v, k)
	}
}

// warpSync orders the lanes of bar.warp.sync with each other.
func (b *Block) warpSync(wi uint32, e *event.Event) {
	w := &b.warps[wi]
	lanes := e.Mask & w.live
	if lanes == 0 {
		return
	}
	var k knowledge
	for v := range w.of(lanes) {
		b.order.gatherView(&k, v, true)
	}
	k.fences = b.carried(w, wi, lanes)
	w.settled(lanes)
	b.number++
	k.block = k.block.With(len(b.warps), wi, w.idle(lanes), b.number-1)
	w.set(lanes, &View{k, b.number})
	b.Log.add(b.number, wi, lanes, e)
}
