package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// barrier collects the arrivals at a CTA barrier since its last completion.
type barrier struct{ arrivals []arrival }

type arrival struct {
	warp, lanes, place uint32
	wait               bool
	// then is nil where the warp waits as a whole, so that its views stay what they are, and no fence.sc orders anything.
	then *arrived
}

// arrived is what threads knew when they arrived.
type arrived struct {
	// Their views: one, or each its own.
	same                view
	each                *[32]view
	published, observed passed
}

func (d *Detector) arrive(b *block, wi uint32, e *event.Event) {
	if b.barriers == nil {
		b.barriers = new([16]barrier)
	}
	bar := &b.barriers[e.Barrier]
	if e.Flags&event.FlagWait == 0 {
		d.breakStage(b)
	}
	w := &b.warps[wi]
	a := arrival{warp: wi, lanes: e.Mask, place: e.Place, wait: e.Flags&event.FlagWait != 0}
	if !a.wait || w.live&^e.Mask != 0 || b.ordering {
		a.then = &arrived{same: w.same}
		if w.each != nil {
			each := *w.each
			a.then.each = &each
		}
		a.then.published, a.then.observed = d.carried(b, wi, e.Mask)
	}
	bar.arrivals = append(bar.arrivals, a)
	if !a.wait {
		b.next(wi, e.Mask, e)
	}
}

// views gives the views that the lanes of an arrival had: one, or each its own.
func (a *arrival) views(b *block) (same *view, each *[32]view) {
	if a.then != nil {
		return &a.then.same, a.then.each
	}
	return &b.warps[a.warp].same, b.warps[a.warp].each
}

// complete orders all arrivals before all waiters.
func (d *Detector) complete(b *block, e *event.Event) {
	if b.barriers == nil || len(b.barriers[e.Barrier].arrivals) == 0 {
		return
	}
	bar := &b.barriers[e.Barrier]
	if uint32(cap(d.waiting)) < b.wpb {
		d.waiting = make([]uint32, b.wpb)
	}
	waiting := d.waiting[:b.wpb] // lanes, by warp
	clear(waiting)
	waits := false
	for i := range bar.arrivals {
		if a := &bar.arrivals[i]; a.wait {
			waiting[a.warp] |= a.lanes
			waits = true
		}
	}
	full := true
	for i := range waiting {
		full = full && b.warps[i].live&^waiting[i] == 0
	}
	if full && !b.leftShared {
		d.endStage(b)
	} else {
		d.breakStage(b)
	}
	b.number++
	k := know{}
	if full && !b.leftAny {
		k.block = d.uniform(b.number - 1)
		for i := range bar.arrivals {
			d.others(b, &bar.arrivals[i], &k)
		}
	} else {
		k = d.gather(b, bar, waiting)
	}
	if b.ordering {
		for i := range bar.arrivals {
			a := &bar.arrivals[i]
			if a.then != nil {
				k.published, k.observed = d.joinPassed(k.published, a.then.published), d.joinPassed(k.observed, a.then.observed)
			}
			if a.wait {
				b.warps[a.warp].settled(a.lanes)
			}
		}
	}
	v := view{k, b.number}
	for i := range waiting {
		if waiting[i] != 0 {
			b.warps[i].set(waiting[i]&b.warps[i].live, &v)
		}
	}
	if waits {
		b.logBarrier(bar, e.Barrier, full)
	}
	if full && !b.leftShared {
		b.shared.gen++
		b.beginStage()
	}
	bar.arrivals = bar.arrivals[:0]
}

// maxUniform is how many clocks are shared.
const maxUniform = 1 << 10

// uniform is clock.Uniform. Blocks have small epochs in common.
func (d *Detector) uniform(v uint32) *clock.Block {
	if v >= maxUniform {
		return clock.Uniform(v)
	}
	for uint32(len(d.uniforms)) <= v {
		d.uniforms = append(d.uniforms, clock.Uniform(uint32(len(d.uniforms))))
	}
	return d.uniforms[v]
}

// others joins to k what an arrival knows beyond its block.
func (d *Detector) others(b *block, a *arrival, k *know) {
	same, each := a.views(b)
	if each == nil {
		if same.grid != k.grid {
			k.grid = d.join.Join(k.grid, same.grid)
		}
		if same.beyond != k.beyond {
			k.beyond = k.beyond.Join(same.beyond)
		}
		return
	}
	for m := a.lanes; m != 0; m &= m - 1 {
		v := &each[bits.TrailingZeros32(m)]
		k.grid, k.beyond = d.join.Join(k.grid, v.grid), k.beyond.Join(v.beyond)
	}
}

// gather is what the arrivals at a barrier know together, themselves included.
func (d *Detector) gather(b *block, bar *barrier, waiting []uint32) know {
	k := know{}
	for i := range bar.arrivals {
		a := &bar.arrivals[i]
		d.others(b, a, &k)
		same, each := a.views(b)
		if each == nil {
			k.block = k.block.Join(same.block)
			if !a.wait {
				k.block = k.block.Join((*clock.Block)(nil).With(int(b.wpb), a.warp, a.lanes, same.clock))
			}
			continue
		}
		for m := a.lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			v := &each[l]
			k.block = k.block.Join(v.block)
			if !a.wait {
				k.block = k.block.Join((*clock.Block)(nil).With(int(b.wpb), a.warp, 1<<uint(l), v.clock))
			}
		}
	}
	for i, lanes := range waiting {
		if lanes != 0 {
			k.block = k.block.With(int(b.wpb), uint32(i), b.warps[i].idle(lanes), b.number-1)
		}
	}
	return k
}

// idle adds to lanes, all of them live, those that ended or never began without accessing memory: to know them costs
// nothing and keeps clocks uniform.
func (w *warp) idle(lanes uint32) uint32 { return lanes | ^(w.live | w.used) }

// logBarrier notes that the arrivals at a barrier that wait have gone on from there.
func (b *block) logBarrier(bar *barrier, id uint8, full bool) {
	e := event.Event{Kind: event.Arrive, Barrier: id, Flags: event.FlagWait}
	first := -1
	for i := range bar.arrivals {
		a := &bar.arrivals[i]
		if !a.wait {
			continue
		}
		if first < 0 {
			first = i
		}
		full = full && a.place == bar.arrivals[first].place
	}
	if full {
		e.Place = bar.arrivals[first].place
		b.logged().add(b.number, allWarps, 0, &e)
		return
	}
	for i := range bar.arrivals {
		if a := &bar.arrivals[i]; a.wait {
			e.Place = a.place
			b.logged().add(b.number, a.warp, a.lanes, &e)
		}
	}
}

// warpSync orders the lanes of the event's mask with each other.
func (d *Detector) warpSync(b *block, wi uint32, e *event.Event) {
	w := &b.warps[wi]
	lanes := e.Mask & w.live
	if lanes == 0 {
		return
	}
	d.breakStage(b)
	k := w.same.know
	if w.each != nil {
		k = know{}
		for m := lanes; m != 0; m &= m - 1 {
			v := &w.each[bits.TrailingZeros32(m)]
			k.block, k.grid, k.beyond = k.block.Join(v.block), d.join.Join(k.grid, v.grid), k.beyond.Join(v.beyond)
		}
	}
	k.published, k.observed = d.carried(b, wi, lanes)
	w.settled(lanes)
	b.number++
	k.block = k.block.With(int(b.wpb), wi, w.idle(lanes), b.number-1)
	w.set(lanes, &view{k, b.number})
	b.logged().add(b.number, wi, lanes, e)
}

// reconverge begins a new epoch of a warp whose live lanes execute together again. It orders nothing, but a warp in lockstep
// executes what they did before it first.
func (d *Detector) reconverge(b *block, wi uint32, e *event.Event) {
	w := &b.warps[wi]
	if w.live&^e.Mask != 0 {
		return
	}
	d.breakStage(b)
	b.number++
	b.begin(w, w.live)
	w.whole = b.number
}

// exit ends lanes.
func (d *Detector) exit(b *block, wi uint32, e *event.Event) {
	w := &b.warps[wi]
	gone := e.Mask & w.live
	b.leftAny = b.leftAny || gone&w.used != 0
	b.leftShared = b.leftShared || gone&w.usedSmem != 0
	if w.each == nil {
		b.beyond = b.beyond.Join(w.same.beyond)
	} else {
		for m := gone; m != 0; m &= m - 1 {
			b.beyond = b.beyond.Join(w.each[bits.TrailingZeros32(m)].beyond)
		}
	}
	w.live &^= gone
	b.alive -= bits.OnesCount32(gone)
	if b.alive == 0 {
		d.endBlock(b)
	}
}

func (d *Detector) endBlock(b *block) {
	d.endStage(b)
	for _, p := range b.shared.pages {
		if p != nil {
			d.mem.clear(p)
			p.locs = nil
		}
	}
	if b.inList {
		delete(b.listed, b.index)
	}
	b.keepLog()
	if b.lastBlock == b {
		b.launch.lastBlock = nil
	}
	if len(d.spare.list) < maxSpare {
		for i := range b.warps {
			if !b.synced {
				break
			}
			b.warps[i].rest()
		}
		d.spare.list = append(d.spare.list, b)
	}
}

// what is the synchronisation's name in PTX.
func (x *logged) what() string { return detect.SyncName(x.kind, x.order, x.scope, x.barrier, x.waits) }
