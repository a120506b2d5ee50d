package order

import (
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// arrival is lanes of a warp that have arrived at a CTA barrier since its last completion.
type arrival struct {
	views               // when they arrived
	warp, lanes, place  uint32
	wait                bool
	published, observed passed
}

func (b *Block) arrive(wi uint32, e *event.Event) {
	w := &b.warps[wi]
	a := arrival{warp: wi, lanes: e.Mask, place: e.Place, wait: e.Flags&event.FlagWait != 0, views: w.views}
	a.published, a.observed = b.carried(w, wi, e.Mask)
	b.barriers[e.Barrier] = append(b.barriers[e.Barrier], a)
	if !a.wait {
		b.next(wi, e.Mask, e)
	}
}

// complete orders all arrivals at a barrier before all its waiters. See Sync for what it says.
func (b *Block) complete(e *event.Event) (met bool) {
	bar := b.barriers[e.Barrier]
	if len(bar) == 0 {
		return false
	}
	waiting := make([]uint32, len(b.warps)) // lanes, by warp
	waits := false
	for i := range bar {
		if a := &bar[i]; a.wait {
			waiting[a.warp] |= a.lanes
			waits = true
		}
	}
	full := true
	for i := range waiting {
		full = full && b.warps[i].live&^waiting[i] == 0
	}
	b.number++
	k := b.gather(bar, waiting, full && !b.leftAny)
	v := &View{k, b.number}
	for i, lanes := range waiting {
		if lanes != 0 {
			b.warps[i].settled(lanes)
			b.warps[i].set(lanes&b.warps[i].live, v)
		}
	}
	if waits {
		b.Log.addBarrier(b.number, bar, e.Barrier, full)
	}
	b.barriers[e.Barrier] = bar[:0]
	return full && !b.leftShared
}

// gather is what the arrivals at a barrier know together, themselves included. Where all threads of the block that have
// accessed memory wait, that is all that the block has done.
func (b *Block) gather(bar []arrival, waiting []uint32, all bool) (k knowledge) {
	for i := range bar {
		a := &bar[i]
		k.published, k.observed = b.order.joinPassed(k.published, a.published), b.order.joinPassed(k.observed, a.observed)
		for v, lanes := range a.of(a.lanes) {
			b.order.gatherView(&k, v, !all)
			if !all && !a.wait {
				k.block = k.block.Join((*clock.Block)(nil).With(len(b.warps), a.warp, lanes, v.Epoch))
			}
		}
	}
	if all {
		k.block = clock.Uniform(b.number - 1)
		return k
	}
	for i, lanes := range waiting {
		if lanes != 0 {
			k.block = k.block.With(len(b.warps), uint32(i), b.warps[i].idle(lanes), b.number-1)
		}
	}
	return k
}

// gatherView joins to k what a view knows: of its block only where block says so, and not of fences.
func (o *Order) gatherView(k *knowledge, v *View, block bool) {
	if block {
		k.block = k.block.Join(v.block)
	}
	k.grid, k.beyond = o.join.Join(k.grid, v.grid), k.beyond.Join(v.beyond)
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
	k.published, k.observed = b.carried(w, wi, lanes)
	w.settled(lanes)
	b.number++
	k.block = k.block.With(len(b.warps), wi, w.idle(lanes), b.number-1)
	w.set(lanes, &View{k, b.number})
	b.Log.add(b.number, wi, lanes, e)
}
