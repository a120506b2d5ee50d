package barracuda

import (
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/event"
)

// cell is the metadata of a location (R_x and W_x; figure 5.10), 32 bytes. The paper's location is a byte. Here four aligned
// bytes that were always accessed together share a cell, which is the same and a quarter of the memory; the first narrower
// access gives each byte its own.
//
// Times are never 0 but in the minimal epoch, and the thread of an epoch is warp * 32 + lane.
type cell struct {
	wTime   uint32 // of the last write, with atomicBit and blockBit
	wThread uint32
	rTime   uint32 // of the last read
	rThread uint32
	wPlace  uint32 // for messages only
	rPlace  uint32
	more    uint32 // of Detector.crowds, or words; 0: nothing
	_       uint32 // as in the paper, a power of two
}

const (
	atomicBit = 1 << 31 // the last write was an atomic operation
	blockBit  = 1 << 30 // and of block scope
	maxClock  = blockBit - 1
	wordBytes = 4
)

// Cells hold numbers instead of pointers, of which there would be one for each four bytes. Those of more with splitBit are of
// words whose bytes differ.
const splitBit = 1 << 31

type word [wordBytes]cell

// crowd is R_x as a vector clock: concurrent readers.
type crowd struct {
	readers []readers
	last    map[uint32]int32 // by warp, its last entry, once there are many
}

// readers is the reads of lanes of a warp at one time. An entry without lanes is room for another.
type readers struct {
	warp, mask, time, place uint32
	before                  int32 // the warp's entry before, or -1
}

const (
	indexFrom  = 32 // entries from which on readers are indexed
	indexBytes = 24 // that an index takes a reader, about
)

func (m *crowd) size() uint64 {
	return uint64(unsafe.Sizeof(*m)) + 8 + uint64(cap(m.readers))*uint64(unsafe.Sizeof(readers{})) + uint64(len(m.last))*indexBytes
}

// shared gives R_x when it is a vector clock, else nil.
func (d *Detector) shared(c *cell) *crowd {
	if c.more == 0 {
		return nil
	}
	if m := d.crowds[c.more]; len(m.readers) > 0 {
		return m
	}
	return nil
}

// crowd gives a cell room for readers. What cells of shared memory have is taken back when their block ends.
func (d *Detector) crowd(a *access, c *cell) *crowd {
	if c.more == 0 {
		c.more = uint32(len(d.crowds))
		if k := len(d.freeCrowds); k > 0 {
			c.more, d.freeCrowds = d.freeCrowds[k-1], d.freeCrowds[:k-1]
		} else {
			d.crowds = append(d.crowds, &crowd{})
		}
		if a.e.Space == event.Shared {
			a.w.block.more = append(a.w.block.more, c.more)
		}
	}
	return d.crowds[c.more]
}

// split gives the cells of the bytes of a word.
func (d *Detector) split(a *access, c *cell) *word {
	if c.more&splitBit != 0 {
		return d.words.at(c.more &^ splitBit)
	}
	n := d.words.make()
	w := d.words.at(n)
	for i := range w {
		w[i] = *c
		w[i].more = 0
		if old := d.shared(c); old != nil {
			m := d.crowd(a, &w[i])
			for _, r := range old.readers {
				m.add(r)
			}
		}
	}
	if c.more != 0 {
		d.crowds[c.more].clear() // nobody's any more
	}
	*c = cell{more: n | splitBit}
	if a.e.Space == event.Shared {
		a.w.block.more = append(a.w.block.more, c.more)
	}
	return w
}

// takeBack frees what the cells of a block's shared memory had.
func (d *Detector) takeBack(c *block) {
	for _, n := range c.more {
		if n&splitBit != 0 {
			d.words.free = append(d.words.free, n&^splitBit)
			continue
		}
		d.crowds[n].clear()
		d.freeCrowds = append(d.freeCrowds, n)
	}
	d.cells.free = append(d.cells.free, c.cells...)
	d.logs.free = append(d.logs.free, c.logs...)
}

// add adds an entry.
func (m *crowd) add(r readers) {
	r.before = m.lastOf(r.warp)
	m.readers = append(m.readers, r)
	switch n := len(m.readers); {
	case n == indexFrom:
		if m.last == nil {
			m.last = make(map[uint32]int32, 2*indexFrom)
		}
		for i, o := range m.readers {
			m.last[o.warp] = int32(i)
		}
	case n > indexFrom:
		m.last[r.warp] = int32(n - 1)
	}
}

// lastOf is the last entry of a warp, or -1.
func (m *crowd) lastOf(warp uint32) int32 {
	if len(m.readers) >= indexFrom {
		if i, ok := m.last[warp]; ok {
			return i
		}
		return -1
	}
	for i := len(m.readers) - 1; i >= 0; i-- {
		if m.readers[i].warp == warp {
			return int32(i)
		}
	}
	return -1
}

func (m *crowd) clear() {
	m.readers = m.readers[:0]
	clear(m.last)
}

// enter enters reads by lanes into a vector clock of readers. Reads of one warp at one time are one entry. The lanes' own older
// reads say nothing more, nor do others of the warp that happen before one of the new ones: who is ordered behind the
// new read is behind the old ones.
func (a *access) enter(m *crowd, lanes uint32) {
	var room *readers
	for i := m.lastOf(a.w.number); i >= 0; {
		r := &m.readers[i]
		i = r.before
		if r.mask != 0 && r.time == a.v.local && r.mask&^a.v.mask == 0 {
			r.mask |= lanes
			r.place = a.e.Place
			return
		}
		if r.mask &^= lanes; r.mask != 0 && a.behind(bits.TrailingZeros32(lanes), r) == 0 {
			r.mask = 0
		}
		if r.mask == 0 {
			room = r
		}
	}
	if room != nil {
		*room = readers{a.w.number, lanes, a.v.local, a.e.Place, room.before}
		return
	}
	m.add(readers{warp: a.w.number, mask: lanes, time: a.v.local, place: a.e.Place})
}

// dropReaders makes R_x the minimal epoch.
func (d *Detector) dropReaders(c *cell) {
	c.rTime = 0
	if c.more != 0 {
		d.crowds[c.more].clear()
	}
}

// ordered says that what thread did at time happens before what the access's lane does: time@thread ≤ C_t.
func (a *access) ordered(lane int, thread, time uint32) bool {
	warp, u := thread>>5, int(thread&31)
	switch {
	case warp == a.w.number:
		if u == lane || time <= a.v.ofLane(lane, u) {
			return true
		}
	case warp-a.w.block.first < a.wpb:
		if time <= a.v.block {
			return true
		}
	}
	if a.v.rest == nil {
		return false
	}
	block := warp / a.wpb
	return a.v.rest.Behind(a.depth, block, warp-block*a.wpb, 1<<uint(u), time) == 0
}

// behind gives those of the lanes of r whose reads do not happen before what lane does.
func (a *access) behind(lane int, r *readers) uint32 {
	if r.warp-a.w.block.first < a.wpb && r.warp != a.w.number && r.time <= a.v.block {
		return 0
	}
	out := uint32(0)
	for m := r.mask; m != 0; m &= m - 1 {
		u := bits.TrailingZeros32(m)
		if !a.ordered(lane, r.warp<<5|uint32(u), r.time) {
			out |= 1 << uint(u)
		}
	}
	return out
}
