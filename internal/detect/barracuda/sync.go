package barracuda

import (
	"maps"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// role is the role that adjacent fences give an access (section 5.4.1).
type role uint8

const (
	acquires role = 1 << iota
	releases
)

// location identifies a synchronisation location: an address in global memory, or in a block's shared memory.
type location struct {
	addr   uint64
	shared bool
	block  uint32
}

// released is S_x: for each block, the clock that its threads acquire. Blocks that are not in own have the clock all.
type released struct {
	all *clock.Grid
	own map[uint32]*clock.Grid
}

// pending is a load or atomic operation for which it is not known yet whether a fence follows. It is judged with the
// clocks at the time of the access.
type pending struct {
	e       event.Event
	batch   event.Batch // its addresses
	view    view
	mask    uint32 // lanes still to be judged
	stretch uint32 // of warp.stretches
}

// address returns the address that a lane accesses.
func (p *pending) address(lane int) uint64 { return p.batch.AddrOf(&p.e, lane) }

// acquiring reports whether an order includes acquire.
func acquiring(o event.Order) bool {
	return o == event.Acquire || o == event.AcqRel || o == event.SC
}

func releasing(o event.Order) bool {
	return o == event.Release || o == event.AcqRel || o == event.SC
}

// roleOf returns the role of a load, store or atomic operation, given whether a fence is before and after it.
func roleOf(e *event.Event, before, after bool) role {
	switch {
	case e.Kind == event.Load && after:
		return acquires
	case e.Kind == event.Store && before:
		return releases
	case e.Kind != event.Atomic:
	case e.RMW == event.CompareAndSwap:
		if after {
			return acquires
		}
	case e.RMW == event.Exchange:
		if before {
			return releases
		}
	case before || after:
		return acquires | releases
	}
	return 0
}

// asks reports whether the role of e, for lanes with (before) or without a fence before it, depends on whether a fence
// follows.
func asks(e *event.Event, before bool) bool {
	return roleOf(e, before, true) != roleOf(e, before, false)
}

// deviceScope reports whether a synchronisation by e and a fence has global scope.
func (d *Detector) deviceScope(e *event.Event, wide bool) bool {
	return wide && !(d.plus && e.Kind == event.Atomic && e.Scope < event.ScopeGPU)
}

// synchronise makes lanes acquire from or release to the locations that they access, lane after lane: ACQ*, REL* and
// AR* of figure 5.5. at gives the address of a lane. The lanes may belong to any views of w.
func (d *Detector) synchronise(w *warp, e *event.Event, lanes uint32, what role, wide bool, at func(lane int) uint64) {
	wide = d.deviceScope(e, wide)
	if !d.plus {
		d.synchroniseWarp(w, e, lanes, what, wide, at)
		return
	}
	var after [32]*clock.Grid
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		after[lane] = d.exchange(w, w.of(lane), e, lane, what, wide, at(lane))
	}
	for rest := lanes; rest != 0; {
		first := bits.TrailingZeros32(rest)
		v := w.of(first)
		same := uint32(0)
		for m := v.mask & rest; m != 0; m &= m - 1 {
			if u := bits.TrailingZeros32(m); after[u] == after[first] {
				same |= 1 << uint(u)
			}
		}
		rest &^= same
		if v.rest == after[first] && what&releases == 0 {
			continue
		}
		part := &w.part(same)[0]
		part.rest = after[first]
		if what&releases != 0 {
			d.tick(part)
		}
		d.spread(w, same)
	}
}

// synchroniseWarp is synchronise for a warp in lockstep. What a lane learns is known only to that lane until the next
// endi.
func (d *Detector) synchroniseWarp(w *warp, e *event.Event, lanes uint32, what role, wide bool, at func(lane int) uint64) {
	v := d.current(w, lanes)
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		d.learnt = d.joiner.Join(d.learnt, d.exchange(w, v, e, lane, what, wide, at(lane)))
	}
}

// exchange performs one lane's acquire, release or both, and gives what the lane knows afterwards.
func (d *Detector) exchange(w *warp, v *view, e *event.Event, lane int, what role, wide bool, addr uint64) *clock.Grid {
	x := location{addr: addr}
	if e.Space == event.Shared {
		x.shared, x.block = true, w.block.number
	}
	s := d.sync[x]
	known := v.rest
	if what&acquires != 0 && s != nil {
		known = d.joiner.Join(known, s.acquire(w.block.number, wide, d.grid, &d.joiner))
	}
	if what&releases != 0 {
		if s == nil {
			s = &released{}
			d.sync[x] = s
		}
		s.release(w.block.number, wide, d.export(w, v, 1<<uint(lane), known))
	}
	return known
}

// acquire returns S_x of the block, or the join of S_x of all blocks.
func (s *released) acquire(block uint32, wide bool, blocks int, j *clock.Joiner) *clock.Grid {
	if !wide {
		if g, ok := s.own[block]; ok {
			return g
		}
		return s.all
	}
	var out *clock.Grid
	if len(s.own) < blocks {
		out = s.all
	}
	for _, b := range slices.Sorted(maps.Keys(s.own)) {
		out = j.Join(out, s.own[b])
	}
	return out
}

// release sets S_x of the block, or of all blocks.
func (s *released) release(block uint32, wide bool, g *clock.Grid) {
	if wide {
		s.all, s.own = g, nil
		return
	}
	if s.own == nil {
		s.own = map[uint32]*clock.Grid{}
	}
	s.own[block] = g
}

// export converts the clock of a view to a Grid: known, what v knows of its block, and the lanes' own times.
func (d *Detector) export(w *warp, v *view, lanes uint32, known *clock.Grid) *clock.Grid {
	var own [32]uint32
	for m := w.exist; m != 0; m &= m - 1 {
		u := bits.TrailingZeros32(m)
		own[u] = v.ofLane(-1, u)
		if lanes>>uint(u)&1 != 0 {
			own[u] = v.local
		}
	}
	b := clock.OfWarp(int(d.wpb), w.number-w.block.first, &own, v.block)
	old := known.At(d.depth, w.block.number)
	return known.With(d.depth, w.block.number, old.Join(b))
}
