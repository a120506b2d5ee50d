package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Split is a divergence of a warp in lockstep. The lanes of path run until they reach the point where they join the
// others; then the others run.
type Split struct {
	all, path, other uint32
	Place            uint32 // of the splitting instruction
	depth, pc        int32  // ref: the meeting point; pc -1: when they have returned from that depth
	Meet             int32  // warp: the meeting point, see Machine.Met of package warp
	Behind           int32  // warp: the place of the lanes that fall through
}

// ChoosePath returns the lanes of a warp in lockstep that run next. All of them are at one place; 0 if every lane has
// exited. If one of them waits, the warp is stalled.
func (r *Run) ChoosePath(w *Warp) uint32 {
	for {
		path, top := w.Live, (*Split)(nil)
		if n := len(w.Splits); n > 0 {
			top = &w.Splits[n-1]
			path = top.path & w.Live
			path &^= r.Machine.Met(w, top, path)
			if path == 0 && top.other != 0 {
				top.path, top.other = top.other, 0
				w.At = *top
				if on := top.path & w.Live; on != 0 {
					r.Out.branch(event.Else, w, top.Place, on, 0)
				}
				continue
			}
			if path == 0 {
				r.Out.branch(event.Reconverge, w, top.Place, top.all&w.Live, 0)
				w.Splits = w.Splits[:n-1]
				continue
			}
		}
		if path == 0 {
			w.Stalled = true
			return 0
		}
		first := r.firstOf(w, path)
		if first == path {
			w.Stalled = path&w.Ready != path
			return path
		}
		s := w.At
		s.all, s.path, s.other = path, first, path&^first
		w.Splits = append(w.Splits, s)
		w.parted++
		r.Out.branch(event.Branch, w, s.Place, first, s.other)
	}
}

// firstOf returns the lanes of path that run first when path diverges: the lanes that fall through, or else those with the
// lowest lane. A seed may reverse this, for each warp independently, so that a warp's behaviour does not depend on
// other warps.
func (r *Run) firstOf(w *Warp, path uint32) uint32 {
	first := r.Machine.Beside(w, path, bits.TrailingZeros32(path))
	if first == path {
		return path
	}
	if fallen := r.Machine.Fallen(w, path); fallen != 0 {
		first = fallen
	}
	if r.Launch.Seed != 0 {
		g := newRNG(r.Launch.Seed ^ uint64(w.Number)<<32 ^ w.parted)
		if g.next()&1 == 0 {
			rest := path &^ first
			first = r.Machine.Beside(w, rest, bits.TrailingZeros32(rest))
		}
	}
	return first
}

// Met implements Machine.
func (m refMachine) Met(w *Warp, s *Split, mask uint32) uint32 {
	met := uint32(0)
	for l := mask; l != 0; l &= l - 1 {
		if i := bits.TrailingZeros32(l); s.met(&w.lanes[i]) {
			met |= 1 << i
		}
	}
	return met
}

// met reports whether ln is at the meeting point of the split.
func (s *Split) met(ln *lane) bool {
	return ln.depth < s.depth || ln.depth == s.depth && ln.pc == s.pc
}

// Beside implements Machine.
func (m refMachine) Beside(w *Warp, mask uint32, lane int) uint32 {
	beside, o := uint32(0), w.lanes[lane].order()
	for l := mask; l != 0; l &= l - 1 {
		if i := bits.TrailingZeros32(l); w.lanes[i].order() == o {
			beside |= 1 << i
		}
	}
	return beside
}

// Fallen implements Machine.
func (m refMachine) Fallen(w *Warp, mask uint32) uint32 {
	fallen := uint32(0)
	for l := mask; l != 0; l &= l - 1 {
		if i := bits.TrailingZeros32(l); w.lanes[i].place() == w.At.Place+1 {
			fallen |= 1 << i
		}
	}
	return fallen
}
