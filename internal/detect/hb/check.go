package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
)

// check looks for races of the actor's lanes with the accesses of a cell of page p at address at.
func (d *Detector) check(c *cell, p *page, at uint64, bytes, value uint32) {
	a := &d.act
	es := d.mem.of(c)
	for i := range es {
		e := &es[i]
		if e.head == 0 {
			continue
		}
		k := &d.classes[e.class()]
		if k.launch != a.blk.launch {
			d.checkOther(e, k, p, at, bytes)
			continue
		}
		if e.head&bytes == 0 || !k.side.Write && !a.class.side.Write {
			continue
		}
		// The thread itself, alone: the commonest case.
		if e.warp == a.warp && e.lanes == a.lanes && a.lanes&(a.lanes-1) == 0 && e.head&headMany == 0 {
			continue
		}
		if k.side.Atomic && a.class.side.Atomic && k.side.Unit == a.class.side.Unit && (a.shared || k.side.Wide && a.class.side.Wide) {
			continue
		}
		d.checkEntry(e, k, p, at, bytes, value)
	}
}

// meeting gathers the races of the actor with the accesses of one entry.
type meeting struct {
	d      *Detector
	k      *class
	launch *launch
	same   bool // the same value
	best   detect.Category
	lanes  uint32 // of the actor that race
	warp   uint32 // the gravest: whom with
	lane   int
	clock  uint32
	any    bool // some access of the entry does not happen before some lane of the actor
}

func (d *Detector) checkEntry(e *entry, k *class, p *page, at uint64, bytes, value uint32) {
	a := &d.act
	m := meeting{d: d, k: k, launch: k.launch}
	m.same = k.plain && a.class.plain && a.values != nil && e.head&headMixed == 0 && (e.value^value)&spread(e.head&bytes) == 0
	if e.head&headMany != 0 && e.exec&lastOrders != 0 && a.lanes&(a.lanes-1) == 0 && a.after(e.warp, e.exec&31, e.clock) {
		a.cleared = e.head & headKey
		return
	}
	m.meetEntry(e)
	if !m.any {
		a.cleared = e.head & headKey
	}
	if m.best == detect.NoRace {
		return
	}
	if e.head&headChain != 0 {
		all := m.lanes
		d.observed(&m, p, at, e.head&headBytes, k)
		switch m.lanes {
		case 0:
			return
		case all:
		default: // how grave it is must not depend on the lanes that observed
			lanes := a.lanes
			a.lanes = m.lanes
			m = meeting{d: d, k: k, launch: k.launch, same: m.same}
			m.meetEntry(e)
			a.lanes = lanes
		}
	}
	d.report(e, &m, at, bytes)
}

// meetEntry judges all groups of an entry.
func (m *meeting) meetEntry(e *entry) {
	switch {
	case e.head&headMany == 0:
		m.meet(e.warp, group{e.lanes, e.clock, e.exec})
	case e.lanes&trailBit != 0:
		t := m.d.mem.members(e)
		for i := range t {
			m.meet(t[i].warp, t[i].group)
		}
	default:
		m.meetSet(&m.d.mem.sets.slots[e.lanes])
	}
}

// observed takes those lanes out of m that know all the accesses of an entry of class k, strong writes in the chain that made the
// current value, from a read of that value.
func (d *Detector) observed(m *meeting, p *page, at uint64, bytes uint32, k *class) {
	a := &d.act
	unit := uint64(k.side.Unit)
	addr := (at + uint64(bits.TrailingZeros32(bytes))) &^ (unit - 1)
	d.denote(p, addr%pageBytes/lineBytes)
	x := p.findLoc(addr, uint8(unit))
	if x == nil {
		return
	}
	lane := a.lane
	for r := m.lanes; r != 0; r &= r - 1 {
		a.lane = bits.TrailingZeros32(r)
		if x.observedBefore(a) {
			m.lanes &^= 1 << uint(a.lane)
		}
	}
	a.lane = lane
}

// meetSet judges the groups of a set: first those of other blocks, which may be very many but race alike and at least as
// gravely, until one is found that races, then those of the actor's block.
func (m *meeting) meetSet(s *slot) {
	a := &m.d.act
	first := uint64(a.blk.index) * uint64(a.blk.wpb)
	last := first + uint64(a.blk.wpb)
	known := func(top uint32) bool { return a.view.grid != nil && a.view.grid.Min >= top }
	s.root.walk(s.depth, 0, func(warp, span uint64, top uint32) bool {
		return known(top) || warp >= first && warp+span <= last
	}, func(warp uint32, g group) bool {
		if uint64(warp) >= first && uint64(warp) < last {
			return true
		}
		m.meet(warp, g)
		return m.lanes == 0
	})
	if m.lanes == a.lanes {
		return
	}
	s.root.walk(s.depth, 0, func(warp, span uint64, top uint32) bool {
		return warp+span <= first || warp >= last || known(top) || a.view.block != nil && a.view.block.Min >= top
	}, func(warp uint32, g group) bool {
		if uint64(warp) >= first && uint64(warp) < last {
			m.meet(warp, g)
		}
		return true
	})
}

// meet judges a group of an entry.
func (m *meeting) meet(warp uint32, g group) {
	a := &m.d.act
	behind := a.view.behind(a.blk, warp, g.lanes, g.clock)
	switch {
	case behind == 0:
	case warp == a.warp:
		m.meetWarp(behind, g)
	default:
		m.any = true
		r := detect.Relation{SameLaunch: true, SameBlock: warp/a.blk.wpb == a.blk.index, SameValue: m.same}
		if cat := detect.Classify(m.k.side, a.class.side, r); cat != detect.NoRace {
			m.lanes |= a.lanes
			m.note(cat, warp, bits.TrailingZeros32(behind), g.clock)
		}
	}
}

// meetWarp judges lanes behind of a group of the actor's own warp.
func (m *meeting) meetWarp(behind uint32, g group) {
	a := &m.d.act
	r := detect.Relation{SameLaunch: true, SameBlock: true, SameWarp: true, SameValue: m.same}
	for f := a.lanes; f != 0; f &= f - 1 {
		me := f & -f
		others := behind &^ me
		if others == 0 {
			continue
		}
		m.any = true
		var apart uint32 // those that lockstep does not order
		if g.exec&me == 0 && g.clock >= a.blk.warps[a.wi].whole && detect.Parted(m.k.arms, a.class.arms) {
			apart = others &^ a.exec
		}
		if r.Lockstep = apart == 0; apart != 0 {
			others = apart
		}
		if cat := detect.Classify(m.k.side, a.class.side, r); cat != detect.NoRace {
			m.lanes |= me
			m.note(cat, a.warp, bits.TrailingZeros32(others), g.clock)
		}
	}
}

func (m *meeting) note(cat detect.Category, warp uint32, lane int, clock uint32) {
	if cat > m.best {
		m.best, m.warp, m.lane, m.clock = cat, warp, lane, clock
	}
}

// report makes a hit of what m found between entry e and the actor.
func (d *Detector) report(e *entry, m *meeting, at uint64, bytes uint32) {
	both := e.head & bytes
	h := hit{cat: m.best, class: e.class(), launch: m.launch, warp: m.warp, lane: m.lane, clock: m.clock, lanes: m.lanes}
	for both != 0 {
		lo := bits.TrailingZeros32(both)
		n := bits.TrailingZeros32(^(both >> uint(lo)))
		h.lo, h.hi = at+uint64(lo), at+uint64(lo+n)
		d.addresses(h.class, h.lo, h.hi)
		both &^= (1<<uint(n) - 1) << uint(lo)
	}
	d.hit(h)
}

// checkOther judges an entry of another launch, whose threads may be known one by one.
func (d *Detector) checkOther(e *entry, k *class, p *page, at uint64, bytes uint32) {
	a := &d.act
	if over(k.launch, a.beyond()) {
		return
	}
	if e.head&bytes == 0 {
		return
	}
	cat := detect.Classify(k.side, a.class.side, detect.Relation{})
	if cat == detect.NoRace {
		return
	}
	m := meeting{d: d, k: k, launch: k.launch, best: cat}
	f := a.beyond()
	meet := func(warp uint32, g group) bool {
		behind := beyondBehind(f, k.launch, warp, g.lanes, g.clock)
		if behind != 0 {
			m.lanes, m.warp, m.lane, m.clock = a.lanes, warp, bits.TrailingZeros32(behind), g.clock
		}
		return behind == 0
	}
	d.mem.walk(e, nil, meet)
	if m.lanes != 0 && e.head&headChain != 0 {
		d.observed(&m, p, at, e.head&bytes, k)
	}
	if m.lanes != 0 {
		d.report(e, &m, at, bytes)
	}
}
