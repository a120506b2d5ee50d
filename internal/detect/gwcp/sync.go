package gwcp

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/event"
)

// locKey identifies a variable: in global memory (block 0), or in the shared memory of block-1.
type locKey struct {
	addr  uint64
	block uint32
}

// location is a variable that a strong write of a release pattern has written.
type location struct {
	wide   clocks            // what its patterns publish to any block
	narrow map[uint32]clocks // by block: what they publish to threads of that block
	lock   *lockState        // nil: it has never been a lock
}

// key identifies the variable of an element of a strong access.
func (d *Detector) key(e *event.Event, blk *block, lane, element int) locKey {
	k := locKey{addr: d.batch.AddrOf(e, lane) + uint64(element)*uint64(e.Aux)}
	if e.Space == event.Shared {
		k.block = blk.index + 1
	}
	return k
}

func wide(s event.Scope) bool { return s >= event.ScopeGPU }

// fence completes the acquire patterns of lanes and begins release patterns.
func (d *Detector) fence(blk *block, wi uint32, e *event.Event, steps []lock.Step) {
	w := &blk.warps[wi]
	d.sane(e, steps)
	blk.number++
	w.split(e.Mask&w.live, func(g *group) {
		if e.Order != event.Release {
			d.acquire(g, blk, wide(e.Scope), func(p *pending) bool { return p.at != nil && p.at.lock != nil && takes(steps, p.at.lock, g.lanes) })
		}
		if e.Order != event.Acquire {
			s := &snapshot{p: g.p, h: g.h, epoch: g.epoch, own: true}
			g.fenced.narrow = s
			if wide(e.Scope) {
				g.fenced.wide = s
			}
		}
		g.epoch = blk.number
	})
	d.locks(blk, wi, e.Place, steps)
	d.spread(w, e.Mask)
}

// takes reports whether lanes acquire a lock by one of steps.
func takes(steps []lock.Step, l *lockState, lanes uint32) bool {
	return slices.ContainsFunc(steps, func(s lock.Step) bool {
		return s.Kind == lock.Acquire && s.Lock == l.id && s.Lanes&lanes != 0
	})
}

// gives reports whether lanes release or drop a lock by one of steps. What they read of the variable is then from their
// own section.
func gives(steps []lock.Step, l *lockState, lanes uint32) bool {
	return slices.ContainsFunc(steps, func(s lock.Step) bool {
		return s.Kind != lock.Acquire && s.Lock == l.id && s.Lanes&lanes != 0
	})
}

// acquire joins what strong reads have observed, except where skip returns true, which is for the variables of locks.
func (d *Detector) acquire(g *group, blk *block, wide bool, skip func(*pending) bool) {
	if len(g.seen) == 0 {
		return
	}
	var rest []pending
	for i := range g.seen {
		p := &g.seen[i]
		if skip(p) {
			continue
		}
		if p.at != nil && p.at.lock != nil {
			q := d.passed(p.at.lock, blk)
			q.at = p.at
			p = &q
		}
		d.follow(&g.view, blk, p.narrow)
		if wide {
			d.follow(&g.view, blk, p.wide)
		} else if p.wide.h != nil || p.at != nil && p.at.lock != nil {
			rest = append(rest, pending{at: p.at, wide: p.wide})
		}
	}
	g.seen = rest
}

// strong performs the patterns of a strong access that has been judged. steps are the lock operations of the event.
func (d *Detector) strong(blk *block, wi uint32, e *event.Event, steps []lock.Step) {
	w := &blk.warps[wi]
	reads := e.Kind != event.Store && e.Flags&event.FlagRed == 0 // an exchange reads even if the result is not used
	writes := e.Kind == event.Store || e.Kind == event.Atomic && e.Flags&event.FlagWrite != 0
	acquires := reads && (e.Order == event.Acquire || e.Order == event.AcqRel || e.Order == event.SC || d.cfg.Model == detect.ModelHRF)
	releases := writes && e.Order >= event.Release
	if !d.patterns(w, e, releases) {
		return
	}
	acc := strongAccess{e: e, steps: steps, scope: wide(e.Scope) || e.Scope == event.NoScope || e.Order == event.Volatile, reads: reads, writes: writes, acquires: acquires, releases: releases}
	for m := e.Mask & w.live; m != 0; m &= m - 1 {
		for i := range elements(e) {
			d.element(blk, wi, bits.TrailingZeros32(m), i, &acc)
		}
	}
	if releases {
		blk.number++
		w.split(e.Mask&w.live, func(g *group) { g.epoch = blk.number })
	}
}

// strongAccess is a strong access with its patterns.
type strongAccess struct {
	e                                 *event.Event
	steps                             []lock.Step // its lock operations
	scope                             bool        // its scope reaches beyond the block
	reads, writes, acquires, releases bool
}

// elements returns the number of variables that each lane of a strong access accesses.
func elements(e *event.Event) int {
	if e.Flags&event.FlagVector == 0 || e.Aux == 0 {
		return 1
	}
	return max(1, int(uint32(e.Size)/e.Aux))
}

// element performs the patterns of one element of a strong access by a lane.
func (d *Detector) element(blk *block, wi uint32, lane, i int, x *strongAccess) {
	w, e := &blk.warps[wi], x.e
	k := d.key(e, blk, lane, i)
	at := d.locations[k]
	if at == nil && !x.writes {
		return
	}
	bit := uint32(1) << uint(lane)
	given := at != nil && at.lock != nil && gives(x.steps, at.lock, bit)
	if at != nil && at.lock != nil && x.writes && !d.proper(at.lock, thread{e.Warp, uint32(lane)}, given || e.RMW == event.CompareAndSwap) {
		d.forgo(at.lock)
	}
	if x.reads && at != nil && !given && at.tells(blk, x.scope) {
		g := w.alone(bit)
		d.observe(g, blk, at, x.scope)
		if x.acquires {
			d.acquireAt(g, blk, at, at.lock != nil && takes(x.steps, at.lock, bit))
		}
	}
	switch g := w.of(bit); {
	case !x.writes, given: // releases of locks are handled by locks
	case at != nil && at.lock != nil:
		at.lock.taker = taker{true, thread{e.Warp, uint32(lane)}, g.fenced}
	default:
		d.publish(g, blk, wi, lane, k, at, e, x.scope, x.releases)
	}
}

// tells reports whether a reader of the variable may learn something.
func (at *location) tells(blk *block, wide bool) bool {
	return at.lock != nil || wide && at.wide.h != nil || at.narrow[blk.index].h != nil
}

// proper reports whether a strong write to a lock variable is as expected of a lock: by a thread that acquires or
// releases it, while no other thread holds it.
func (d *Detector) proper(st *lockState, by thread, lock bool) bool {
	t := &st.taker
	return lock && (st.holder == nil || st.holder.by == by) && (!t.set || t.thread == by)
}

// patterns reports whether an access may begin or complete a pattern.
func (d *Detector) patterns(w *warp, e *event.Event, releases bool) bool {
	if len(d.locations) > 0 || releases {
		return true
	}
	for i := range w.groups {
		if g := &w.groups[i]; g.lanes&e.Mask != 0 && g.fenced.narrow != nil {
			return true
		}
	}
	return false
}

// observe records what a strong read of a location has observed.
func (d *Detector) observe(g *group, blk *block, at *location, wide bool) {
	p := pending{at: at, narrow: at.narrow[blk.index]}
	if wide {
		p.wide = at.wide
	}
	i := slices.IndexFunc(g.seen, func(o pending) bool { return o.at == at })
	if i < 0 {
		g.seen = append(slices.Clip(g.seen), p)
		return
	}
	o := g.seen[i]
	p.wide, p.narrow = d.both(o.wide, p.wide), d.both(o.narrow, p.narrow)
	if p != o {
		g.seen = slices.Clone(g.seen)
		g.seen[i] = p
	}
}

// taker is the thread that last wrote a lock variable by a compare-and-swap, and what it had fenced then.
type taker struct {
	set bool
	thread
	released
}

// passed returns what a thread of a block may have observed if it read a lock variable and did not then acquire the
// lock: the releases, and the write of the thread that took it, as for any other variable.
func (d *Detector) passed(st *lockState, blk *block) pending {
	p := pending{wide: clocks{st.device.h, st.device.h}}
	if x := st.blocks[blk.index]; x != nil {
		p.narrow = clocks{x.h, x.h}
	}
	t := &st.taker
	from := block{index: t.warp / d.run.wpb}
	if t.wide != nil {
		p.wide = d.both(p.wide, t.wide.of(d.run, &from, t.warp%d.run.wpb, 1<<t.lane))
	}
	if t.narrow != nil && from.index == blk.index {
		p.narrow = d.both(p.narrow, t.narrow.of(d.run, &from, t.warp%d.run.wpb, 1<<t.lane))
	}
	return p
}

// acquireAt completes the acquire pattern at one location by an acquire operation there. taken says that it acquires
// the lock there.
func (d *Detector) acquireAt(g *group, blk *block, at *location, taken bool) {
	i := slices.IndexFunc(g.seen, func(o pending) bool { return o.at == at })
	if i < 0 {
		return
	}
	p := g.seen[i]
	g.seen = slices.Delete(slices.Clone(g.seen), i, i+1)
	if !taken {
		if at.lock != nil {
			p = d.passed(at.lock, blk)
		}
		d.follow(&g.view, blk, p.narrow)
		d.follow(&g.view, blk, p.wide)
	}
}

// publish completes release patterns by a strong write.
func (d *Detector) publish(g *group, blk *block, wi uint32, lane int, k locKey, at *location, e *event.Event, scope, releases bool) {
	var narrow, far clocks
	if releases {
		narrow = d.run.trees(&g.p, &g.h, blk, wi, 1<<uint(lane), g.epoch)
		far = narrow
	} else {
		if g.fenced.narrow != nil {
			narrow = g.fenced.narrow.of(d.run, blk, wi, 1<<uint(lane))
		}
		if g.fenced.wide != nil {
			far = g.fenced.wide.of(d.run, blk, wi, 1<<uint(lane))
		}
	}
	if at != nil && e.Kind == event.Store { // the old value is overwritten
		at.wide, at.narrow = clocks{}, nil
	}
	if narrow.h == nil {
		return
	}
	if at == nil {
		at = &location{}
		d.locations[k] = at
	}
	if at.narrow == nil {
		at.narrow = map[uint32]clocks{}
	}
	at.narrow[blk.index] = d.both(at.narrow[blk.index], d.both(narrow, far))
	if scope {
		at.wide = d.both(at.wide, far)
	}
}

// arrive records arrivals at a CTA barrier.
func (d *Detector) arrive(blk *block, wi uint32, e *event.Event) {
	x := blk.barriers[e.Barrier]
	if x == nil {
		x = &barrier{waits: make([]uint32, d.run.wpb)}
		blk.barriers[e.Barrier] = x
	}
	x.any = true
	if e.Flags&event.FlagWait != 0 {
		x.waits[wi] |= e.Mask
		return
	}
	blk.number++
	w := &blk.warps[wi]
	w.split(e.Mask&w.live, func(g *group) {
		d.together(g, blk)
		x.early = append(x.early, arrival{wi, g.lanes, g.view})
		g.epoch = blk.number
	})
}

// complete makes the waiters at a barrier know what all arrivals did.
func (d *Detector) complete(blk *block, e *event.Event) {
	x := blk.barriers[e.Barrier]
	if x == nil || !x.any {
		return
	}
	d.barrier = barrierClock{}
	for i := range x.early {
		a := &x.early[i]
		d.addToBarrier(blk, a.wi, a.lanes, &a.view)
		d.barrier.reach(func(b *clock.Block) *clock.Block { return b.With(int(d.run.wpb), a.wi, a.lanes, a.epoch) })
	}
	threads := 0
	for wi, lanes := range x.waits {
		w := &blk.warps[wi]
		lanes &= w.live
		x.waits[wi] = lanes
		threads += bits.OnesCount32(lanes)
		for i := range w.groups {
			if g := &w.groups[i]; g.lanes&lanes != 0 {
				d.together(g, blk)
				d.addToBarrier(blk, uint32(wi), g.lanes&lanes, &g.view)
			}
		}
	}
	var whole *clock.Block
	if uint64(threads) == d.run.info.Block.Count() {
		whole = clock.Uniform(blk.number)
	}
	d.barrier.reach(func(b *clock.Block) *clock.Block {
		if whole != nil {
			return whole
		}
		return b.WithWarps(x.waits, blk.number)
	})
	d.part(blk, x.waits)
	x.reset()
}

// warpSync makes lanes know what the other lanes did.
func (d *Detector) warpSync(blk *block, wi uint32, e *event.Event) {
	w := &blk.warps[wi]
	lanes := e.Mask & w.live
	if lanes&(lanes-1) == 0 {
		return
	}
	d.barrier = barrierClock{}
	for i := range w.groups {
		if g := &w.groups[i]; g.lanes&lanes != 0 {
			d.together(g, blk)
			d.addToBarrier(blk, wi, g.lanes&lanes, &g.view)
		}
	}
	d.barrier.reach(func(b *clock.Block) *clock.Block { return b.With(int(d.run.wpb), wi, lanes, blk.number) })
	v := d.agreed(blk)
	d.assign(w, lanes, &v)
}

// barrierClock joins what the threads that arrive at a barrier know.
type barrierClock struct {
	p, h         know
	last         [2]know // the clocks joined last
	fenced       released
	narrow, wide clocks // what their snapshots released
	mixed        bool   // their snapshots differ
	any          bool
	seen         pending
}

// reach applies f to the clock of the own block.
func (m *barrierClock) reach(f func(*clock.Block) *clock.Block) {
	same := m.p == m.h
	m.h.block = f(m.h.block)
	if same {
		m.p = m.h
		return
	}
	m.p.block = f(m.p.block)
}

// addToBarrier adds lanes of a warp with the view v to the current barrier.
func (d *Detector) addToBarrier(blk *block, wi, lanes uint32, v *view) {
	m := &d.barrier
	if now := [2]know{v.p, v.h}; !m.any || m.last != now {
		same := m.p == m.h && v.p == v.h
		m.h.block = m.h.block.Join(v.h.block)
		m.h.grid = d.join.Join(m.h.grid, v.h.grid)
		if same {
			m.p = m.h
		} else {
			m.p.block = m.p.block.Join(v.p.block)
			m.p.grid = d.join.Join(m.p.grid, v.p.grid)
		}
		m.last = now
	}
	m.mixed = m.mixed || m.any && m.fenced != v.fenced
	m.fenced, m.any = v.fenced, true
	for _, s := range []*snapshot{v.fenced.narrow, v.fenced.wide} {
		m.mixed = m.mixed || s != nil && s.own
	}
	if s := v.fenced.narrow; s != nil {
		m.narrow = d.both(m.narrow, s.of(d.run, blk, wi, lanes))
	}
	if s := v.fenced.wide; s != nil {
		m.wide = d.both(m.wide, s.of(d.run, blk, wi, lanes))
	}
	for _, p := range v.seen {
		if p.at != nil && p.at.lock != nil {
			p = d.passed(p.at.lock, blk)
		}
		m.seen.wide, m.seen.narrow = d.both(m.seen.wide, p.wide), d.both(m.seen.narrow, p.narrow)
	}
}

// agreed returns the view after a barrier: a new epoch, and all that the threads knew together.
func (d *Detector) agreed(blk *block) view {
	m := &d.barrier
	blk.number++
	v := view{p: m.p, h: m.h, epoch: blk.number, fenced: m.fenced}
	if m.mixed {
		v.fenced = released{}
		if m.narrow.h != nil {
			v.fenced.narrow = &snapshot{trees: m.narrow}
		}
		if m.wide.h != nil {
			v.fenced.wide = &snapshot{trees: m.wide}
		}
	}
	if m.seen.wide.h != nil || m.seen.narrow.h != nil {
		v.seen = []pending{m.seen}
	}
	return v
}

// part gives the threads that met their new view.
func (d *Detector) part(blk *block, lanes []uint32) {
	v := d.agreed(blk)
	for wi, mask := range lanes {
		if mask != 0 {
			d.assign(&blk.warps[wi], mask, &v)
		}
	}
}

// assign gives lanes the view v after a barrier. Lanes in critical sections remain in them.
func (d *Detector) assign(w *warp, lanes uint32, v *view) {
	var inside uint32
	for i := range w.groups {
		if g := &w.groups[i]; g.lanes&lanes != 0 && len(g.sections) > 0 {
			inside |= g.lanes
			sections := g.sections
			g.view = *v
			g.sections = sections
		}
	}
	d.spread(w, inside)
	if lanes &^= inside; lanes != 0 {
		w.set(lanes, v)
		d.spread(w, lanes)
	}
}

// exit drops lanes. Their clocks are no longer needed: what they did is in shadow memory.
func (d *Detector) exit(blk *block, wi uint32, e *event.Event) {
	w := &blk.warps[wi]
	gone := e.Mask & w.live
	w.live &^= gone
	blk.alive -= bits.OnesCount32(gone)
	keep := w.groups[:0]
	for _, g := range w.groups {
		if g.lanes &^= gone; g.lanes != 0 {
			keep = append(keep, g)
		}
	}
	clear(w.groups[len(keep):])
	w.groups = keep
	if blk.alive == 0 {
		d.mem.EndWindow(d.run.window(blk))
		d.values.EndWindow(d.run.window(blk))
		d.takeBack(blk)
		d.run.end(blk)
	}
}
