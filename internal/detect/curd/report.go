package curd

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/event"
)

// race is two regions that overlap; the first one was written.
type race struct {
	x, y   uint32 // numbers of the blocks
	rx, ry region
	op     detect.Op // the operation of y
	shared bool
}

// warp reports whether two threads of one warp race by two instructions: code that relies on lockstep, for which the
// thesis has warnings (section 6.3.4). Two writes at one place may be one instruction; these are errors.
func (r *race) warp() bool {
	return r.x == r.y && r.rx.thread/32 == r.ry.thread/32 && r.rx.place != r.ry.place
}

// pending is the race that was found last, and the number of races at the same places, within its bytes, that followed.
type pending struct {
	race
	lo, hi uint64
	count  int
}

// report records a race. In messages the write is the earlier access: sets do not say which was.
func (d *Detector) report(space int, x, y uint32, write, other region, op detect.Op) {
	r := race{x, y, write, other, op, space == 1}
	if d.witness != nil {
		d.witness(r)
	}
	lo, hi := max(write.lo, other.lo), min(write.hi, other.hi)
	p := &d.last
	if p.count > 0 && p.rx.place == write.place && p.ry.place == other.place && p.op == op && p.shared == r.shared &&
		(p.x == p.y) == (x == y) && p.warp() == r.warp() && p.lo <= lo && hi <= p.hi && (!p.shared || p.x == x) {
		p.count++
		return
	}
	d.flush()
	d.last = pending{r, lo, hi, 1}
}

// flush adds the race that was found last to the findings.
func (d *Detector) flush() {
	p := d.last
	d.last = pending{}
	if p.count == 0 {
		return
	}
	space := event.Global
	if p.shared {
		space = event.Shared
	}
	access := func(block uint32, r *region, op detect.Op) detect.Access {
		return detect.Access{Op: op, Order: r.order(), Scope: r.scope(), Space: space, Place: r.place, Launch: d.launch,
			Warp: block*d.perBlock + uint32(r.thread)/32, Lane: int(r.thread) % 32, Address: p.lo, Size: int(p.hi - p.lo)}
	}
	f := detect.Facts{Category: detect.CrossBlock, Earlier: access(p.x, &p.rx, detect.Write), Later: access(p.y, &p.ry, p.op)}
	note := "inter-block race"
	switch {
	case p.warp():
		f.Category, note = detect.LockstepRace, "intra-warp race"
	case p.x == p.y:
		f.Category, note = detect.SameBlock, "intra-block race"
	}
	if !p.rx.complete || !p.ry.complete {
		note += "; accesses at other places were merged with these, and may be the ones that race"
	}
	d.Add(&findings.Race{Facts: f, Note: note, Lanes: p.count})
}
