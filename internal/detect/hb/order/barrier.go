package order

import (
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// arrival is lanes of a warp that have arrived at a CTA barrier since its last completion.
type arrival struct {
	views              // when they arrived
	fences             *fences
	warp, lanes, place uint32
	wait               bool
}

func (b *Block) arrive(wi uint32, e *event.Event) {
	w := &b.warps[wi]
	a := arrival{warp: wi, lanes: e.Mask, place: e.Place, wait: e.Flags&event.FlagWait != 0, views: w.views}
	w.lent = w.each != nil
	if b.fencesSC {
		a.fences = b.carried(w, wi, e.Mask)
	}
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
	waits, full := b.waiters(bar)
	b.number++
	v := &View{b.gather(bar, full && !b.leftAny), b.number}
	for i, lanes := range b.waiting {
		if lanes != 0 {
			b.warps[i].settled(lanes)
			b.warps[i].set(lanes&b.warps[i].live, v)
		}
	}
	if waits {
		b.Log.addBarrier(b.number, bar, e.Barrier, full)
	}
	b.barriers[e.Barrier] = bar[:0]
	if met = full && !b.leftShared; met {
		// Every thread now knows whatever a pattern by way of these variables could tell it.
		b.Shared.reset()
	}
	return met
}

// waiters notes in waiting which lanes wait at a barrier. It says whether any do, and whether all live ones do.
func (b *Block) waiters(bar []arrival) (any, all bool) {
	clear(b.waiting)
	for i := range bar {
		if a := &bar[i]; a.wait {
			b.waiting[a.warp] |= a.lanes
			any = true
		}
	}
	all = true
	for i, lanes := range b.waiting {
		all = all && b.warps[i].live&^lanes == 0
	}
	return any, all
}

// Meets says that Sync will say of an event that all live threads of the block met.
func (b *Block) Meets(e *event.Event) bool {
	bar := b.barriers[e.Barrier]
	if e.Kind != event.BarrierDone || len(bar) == 0 || b.leftShared {
		return false
	}
	_, all := b.waiters(bar)
	return all
}

// gather is what the arrivals at a barrier know together, themselves included. Where all threads of the block that have
// accessed memory wait, that is all that the block has done.
func (b *Block) gather(bar []arrival, all bool) (k knowledge) {
	o := b.order
	for i := range bar {
		a := &bar[i]
		k.fences = o.joinFences(k.fences, a.fences)
		for rest := a.lanes; rest != 0; {
			v, lanes := a.first(rest)
			rest &^= lanes
			o.gatherView(&k, v, !all)
			if !all && !a.wait {
				k.block = k.block.Join((*clock.Block)(nil).With(len(b.warps), a.warp, lanes, v.Epoch))
			}
		}
	}
	if all {
		k.block = o.uniformTo(b.number - 1)
		return k
	}
	for i, lanes := range b.waiting {
		if lanes != 0 {
			k.block = k.block.With(len(b.warps), uint32(i), b.warps[i].idle(lanes), b.number-1)
		}
	}
	return k
}

// uniformTo gives clock.Uniform of an epoch: blocks that run together are at near epochs.
func (o *Order) uniformTo(epoch uint32) *clock.Block {
	at := &o.uniform[epoch%uint32(len(o.uniform))]
	if *at == nil || (*at).Min != epoch {
		*at = clock.Uniform(epoch)
	}
	return *at
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
	k.fences = b.carried(w, wi, lanes)
	w.settled(lanes)
	b.number++
	k.block = k.block.With(len(b.warps), wi, w.idle(lanes), b.number-1)
	w.set(lanes, &View{k, b.number})
	b.Log.add(b.number, wi, lanes, e)
}
