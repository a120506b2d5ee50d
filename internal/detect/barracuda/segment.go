package barracuda

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// segment is the metadata of 128 bytes. As long as what a segment's words were last written and read by are runs, one each, no
// cells are kept: it stands for those that expand makes of it.
type segment struct {
	w, r  run
	cells uint32 // number of the cells, once there are some; 0: none
	log   uint32 // of what w and r do not say, while there are no cells; 0: none
}

// run is accesses of words by lanes of a warp at one time, one lane a word, in order: it stands for an epoch of each.
type run struct {
	time, warp, place uint32
	mask              uint32 // by word; 0: none
	shift             int32  // the lane of word i is i + shift
}

const (
	segmentWords = 32
	segmentBytes = segmentWords * wordBytes
)

// lanes are those that accessed words.
func (r *run) lanes(words uint32) uint32 {
	if r.shift < 0 {
		return words >> uint(-r.shift)
	}
	return words << uint(r.shift)
}

// with gives r with n added, or n where that covers r. It reports whether the two are one run.
func (r run) with(n run) (run, bool) {
	switch {
	case r.mask&^n.mask == 0:
		return n, true
	case r.time == n.time && r.warp == n.warp && r.place == n.place && r.shift == n.shift:
		n.mask |= r.mask
		return n, true
	}
	return r, false
}

// segment is the one that holds the byte at addr, of the access's space.
func (a *access) segment(d *Detector, addr uint64) *segment {
	if a.e.Space == event.Shared {
		return d.segments.Shared(d.window(a.w.block), addr)
	}
	return d.segments.Global(addr)
}

// at is the cell of the word that holds the byte at addr.
func (a *access) at(d *Detector, addr uint64) *cell {
	return &d.expand(a, a.segment(d, addr))[addr%segmentBytes/wordBytes]
}

// write enters the run as writes.
func (r *run) write(cells *[segmentWords]cell) {
	for m := r.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		cells[i].wTime, cells[i].wThread, cells[i].wPlace = r.time, r.warp<<5|uint32(int32(i)+r.shift), r.place
	}
}

// expand gives the cells of a segment.
func (d *Detector) expand(a *access, s *segment) *[segmentWords]cell {
	if s.cells != 0 {
		return d.cells.at(s.cells)
	}
	s.cells = d.cells.make()
	cells := d.cells.at(s.cells)
	*cells = [segmentWords]cell{}
	s.w.write(cells)
	for m := s.r.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		cells[i].rTime, cells[i].rThread, cells[i].rPlace = s.r.time, s.r.warp<<5|uint32(int32(i)+s.r.shift), s.r.place
	}
	s.w.mask, s.r.mask = 0, 0
	if a.e.Space == event.Shared {
		a.w.block.cells = append(a.w.block.cells, s.cells)
	}
	if s.log != 0 {
		l := d.logs.at(s.log)
		l.w.write(cells)
		d.replay(a, l, cells)
		if a.e.Space == event.Global {
			d.logs.free = append(d.logs.free, s.log)
		}
		s.log = 0
	}
	return cells
}

// whole judges lanes that load or store words of a segment that has no cells, one lane a word in order, all at once. It
// reports whether it could: whether each is rule READEXCL or WRITEEXCL, without a race, and what is left are runs.
func (a *access) whole(d *Detector, s *segment, n run) bool {
	if s.cells != 0 || a.atomic || s.w.mask&n.mask != 0 && !a.follows(&s.w, n) {
		return false
	}
	var l *log
	if s.log != 0 {
		l = d.logs.at(s.log)
		if len(l.list) != 0 && (!a.write || !a.behindLog(l, n.mask)) || l.w.mask&n.mask != 0 && !a.follows(&l.w, n) {
			return false
		}
	}
	if s.r.mask&n.mask != 0 && !a.follows(&s.r, n) {
		return false
	}
	if !a.write {
		all, ok := s.r.with(n)
		s.r = all
		return ok
	}
	if all, ok := s.w.with(n); ok {
		s.w = all
		if l != nil {
			l.w.mask &^= n.mask
		}
	} else {
		if l == nil {
			l = d.log(a, s)
		}
		if all, ok = l.w.with(n); !ok {
			return false
		}
		l.w = all
		s.w.mask &^= n.mask
	}
	s.r.mask &^= n.mask
	return true
}

// follows says that what r did to words of n happens before n, of the access at hand. False says nothing.
func (a *access) follows(r *run, n run) bool {
	words := r.mask & n.mask
	switch {
	case r.warp == a.w.number:
		return r.shift == n.shift || r.time <= a.v.peer && r.lanes(words)&^a.v.mask == 0
	case r.warp-a.w.block.first < a.wpb && r.time <= a.v.block:
		return true
	case a.v.rest == nil:
		return false
	}
	block := r.warp / a.wpb
	return a.v.rest.Behind(a.depth, block, r.warp-block*a.wpb, r.lanes(words), r.time) == 0
}

// arena is numbered memory, from 1. What make gives may be dirty.
type arena[T any] struct {
	chunks [][]T
	used   uint32
	free   []uint32
}

const chunkLength = 64

func (m *arena[T]) at(n uint32) *T { return &m.chunks[n/chunkLength][n%chunkLength] }

func (m *arena[T]) make() uint32 {
	if k := len(m.free); k > 0 {
		n := m.free[k-1]
		m.free = m.free[:k-1]
		return n
	}
	if m.used++; int(m.used/chunkLength) >= len(m.chunks) {
		m.chunks = append(m.chunks, make([]T, chunkLength))
	}
	return m.used
}
