package simt

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// split is a divergence of a warp in lockstep: path runs until its lanes are where they meet the others again, then
// the others do.
type split struct {
	all, path, other uint32
	place            uint32 // of the instruction that split them
	depth, pc        int32  // ref: where they meet; pc -1: when they have returned from that depth
	meet             int32  // warp: where they meet, see vecMachine.met
	behind           int32  // warp: where those stand that fall through
}

// choosePath gives the lanes of a warp in lockstep that run next, all of which are at one place; 0 when every lane has
// exited. The warp is stalled afterwards when one of them waits.
func (r *run) choosePath(w *warp) uint32 {
	for {
		path, top := w.live, (*split)(nil)
		if n := len(w.splits); n > 0 {
			top = &w.splits[n-1]
			path = top.path & w.live
			path &^= r.m.met(w, top, path)
			if path == 0 && top.other != 0 {
				top.path, top.other = top.other, 0
				w.at = *top
				if on := top.path & w.live; on != 0 {
					r.out.branch(event.Else, w, top.place, on, 0)
				}
				continue
			}
			if path == 0 {
				r.out.branch(event.Reconverge, w, top.place, top.all&w.live, 0)
				w.splits = w.splits[:n-1]
				continue
			}
		}
		if path == 0 {
			w.stalled = true
			return 0
		}
		first := r.firstOf(w, path)
		if first == path {
			w.stalled = path&w.ready != path
			return path
		}
		s := w.at
		s.all, s.path, s.other = path, first, path&^first
		w.splits = append(w.splits, s)
		w.parted++
		r.out.branch(event.Branch, w, s.place, first, s.other)
	}
}

// firstOf gives the lanes of path that run first where it parts: those that fall through, the lowest lane's otherwise.
// A seed may turn it round: for each warp by itself, so that what a warp does hangs on no other.
func (r *run) firstOf(w *warp, path uint32) uint32 {
	first := r.m.beside(w, path, bits.TrailingZeros32(path))
	if first == path {
		return path
	}
	if fallen := r.m.fallen(w, path); fallen != 0 {
		first = fallen
	}
	if r.l.Seed != 0 {
		g := newRNG(r.l.Seed ^ uint64(w.number)<<32 ^ w.parted)
		if g.next()&1 == 0 {
			rest := path &^ first
			first = r.m.beside(w, rest, bits.TrailingZeros32(rest))
		}
	}
	return first
}

// met implements machine.
func (m refMachine) met(w *warp, s *split, mask uint32) uint32 {
	met := uint32(0)
	for l := mask; l != 0; l &= l - 1 {
		if i := bits.TrailingZeros32(l); s.met(&w.lanes[i]) {
			met |= 1 << i
		}
	}
	return met
}

// met reports whether ln is where the lanes of the split meet again.
func (s *split) met(ln *lane) bool {
	return ln.depth < s.depth || ln.depth == s.depth && ln.pc == s.pc
}

// beside implements machine.
func (m refMachine) beside(w *warp, mask uint32, lane int) uint32 {
	beside, o := uint32(0), w.lanes[lane].order()
	for l := mask; l != 0; l &= l - 1 {
		if i := bits.TrailingZeros32(l); w.lanes[i].order() == o {
			beside |= 1 << i
		}
	}
	return beside
}

// fallen implements machine.
func (m refMachine) fallen(w *warp, mask uint32) uint32 {
	fallen := uint32(0)
	for l := mask; l != 0; l &= l - 1 {
		if i := bits.TrailingZeros32(l); w.lanes[i].place() == w.at.place+1 {
			fallen |= 1 << i
		}
	}
	return fallen
}
