package hirace

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/event"
)

// race makes the race for a location that has reached state RACE. The word does not say which earlier access the race
// is with: the last one, one of several, or one before.
func (d *Detector) race(c *cell, old uint64, t *turn, at uint64) *findings.Race {
	p := past{c.trace, uint32(old) >> threadShift}
	y := clocks(old, t.word)
	switch r := t.relationTo(old); {
	case d.conflict(p, t) && (r == sameGrid || r == sameBlock && y != blockSynced || r == sameWarp && y == unsynced):
	case d.conflict(c.other, t):
		p = c.other
	case d.conflict(c.before, t):
		p = c.before
	}
	r := findings.Race{Facts: detect.Facts{
		Earlier: d.side(p, t.e.Space, at),
		Later:   d.side(past{t.trace, uint32(t.word) >> threadShift}, t.e.Space, at),
	}}
	r.Facts.Later.Address = t.addr
	r.Facts.Category = d.category(p, t)
	return &r
}

// conflict reports whether an earlier access and the current one can race at all.
func (d *Detector) conflict(p past, t *turn) bool {
	a := p.trace.action()
	switch {
	case p.trace == 0 || p.thread == uint32(t.word)>>threadShift, a == read && t.act == read:
		return false
	case a < blockAtomic || t.act < blockAtomic:
		return true
	}
	return !t.inBlock(p) && (a == blockAtomic || t.act == blockAtomic)
}

func (t *turn) inBlock(p past) bool { return p.thread>>5-t.firstWarp < t.perBlock }

func (d *Detector) category(p past, t *turn) detect.Category {
	side := func(x trace) detect.Side {
		return detect.Side{Write: x.action() != read, Atomic: x.action() >= blockAtomic, RMW: x.action() >= blockAtomic,
			Volatile: order(x) == event.Volatile, Wide: x.action() == deviceAtomic, Unit: 4}
	}
	c := detect.Classify(side(p.trace), side(t.trace), detect.Relation{SameLaunch: true, SameBlock: t.inBlock(p),
		SameWarp: p.thread>>5 == t.e.Warp, SameEvent: p.thread>>5 == t.e.Warp && p.trace == t.trace})
	if c == detect.NoRace { // an atomic load and a load race here
		c = detect.AtomicWithPlain
	}
	return c
}

func order(x trace) event.Order { return event.Order(x >> 34 & 7) }

func (d *Detector) side(p past, space event.Space, at uint64) detect.Access {
	size := uint64(1) << (p.trace >> 40 & 7)
	a := detect.Access{Op: detect.Read, Order: order(p.trace), Scope: event.Scope(p.trace >> 37 & 7), Space: space, Place: uint32(p.trace),
		Launch: d.launch, Warp: p.thread >> 5, Lane: int(p.thread & 31), Address: at &^ (size - 1), Size: int(size)}
	switch p.trace.action() {
	case write:
		a.Op = detect.Write
	case blockAtomic, deviceAtomic:
		a.Op = detect.AtomicOp
	}
	return a
}
