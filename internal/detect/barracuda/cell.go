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
	more    uint32 // of Detector.more; 0: nothing
	_       uint32 // as in the paper, a power of two
}

const (
	atomicBit = 1 << 31 // the last write was an atomic operation
	blockBit  = 1 << 30 // and of block scope
	maxClock  = blockBit - 1
	wordBytes = 4
)

// more is what few locations have: concurrent readers, or bytes that differ. Cells hold numbers of them and no pointers, of which
// there would be one for each four bytes.
type more struct {
	bytes   *[wordBytes]cell
	readers []readers      // R_x as a vector clock; not empty when it is one
	index   map[uint32]int // the last entry of a warp in readers, once there are many
}

// readers is the reads of lanes of a warp at one time.
type readers struct{ warp, mask, time, place uint32 }

const (
	indexFrom  = 16 // entries from which on readers are indexed
	indexBytes = 24 // that an index takes a reader, about
)

func (m *more) size() uint64 {
	n := uint64(unsafe.Sizeof(*m)) + 8 + uint64(cap(m.readers))*uint64(unsafe.Sizeof(readers{})) + uint64(len(m.index))*indexBytes
	if m.bytes != nil {
		n += uint64(unsafe.Sizeof(*m.bytes))
	}
	return n
}

// shared says that R_x is a vector clock.
func (d *Detector) shared(c *cell) bool { return c.more != 0 && len(d.more[c.more].readers) > 0 }

// bytes gives the cells of the bytes of a word that has them, or nil.
func (d *Detector) bytes(c *cell) *[wordBytes]cell {
	if c.more == 0 {
		return nil
	}
	return d.more[c.more].bytes
}

// extend gives a cell more room. What cells of shared memory have is taken back when their block ends.
func (d *Detector) extend(a *access, c *cell) *more {
	n := uint32(len(d.more))
	if k := len(d.moreFree); k > 0 {
		n, d.moreFree = d.moreFree[k-1], d.moreFree[:k-1]
	} else {
		d.more = append(d.more, &more{})
	}
	if a.e.Space == event.Shared {
		a.w.block.more = append(a.w.block.more, n)
	}
	c.more = n
	return d.more[n]
}

// takeBack frees what the cells of a block's shared memory had.
func (d *Detector) takeBack(c *block) {
	for _, n := range c.more {
		m := d.more[n]
		m.readers = m.readers[:0]
		m.bytes = nil
		clear(m.index)
	}
	d.moreFree = append(d.moreFree, c.more...)
}

// split gives the cells of the bytes of a word.
func (d *Detector) split(a *access, c *cell) *[wordBytes]cell {
	if b := d.bytes(c); b != nil {
		return b
	}
	b := new([wordBytes]cell)
	for i := range b {
		b[i] = *c
		b[i].more = 0
		if d.shared(c) {
			for _, r := range d.more[c.more].readers {
				d.addReaders(a, &b[i], r)
			}
		}
	}
	m := c.more
	*c = cell{more: m}
	if m == 0 {
		d.extend(a, c)
	}
	d.more[c.more].bytes = b
	d.more[c.more].readers = nil
	return b
}

// addReaders adds an entry to the vector clock of readers.
func (d *Detector) addReaders(a *access, c *cell, r readers) {
	if c.more == 0 {
		d.extend(a, c)
	}
	m := d.more[c.more]
	m.readers = append(m.readers, r)
	switch n := len(m.readers); {
	case n == indexFrom:
		if m.index == nil {
			m.index = make(map[uint32]int, 2*indexFrom)
		}
		for i, o := range m.readers {
			m.index[o.warp] = i
		}
	case n > indexFrom:
		m.index[r.warp] = n - 1
	}
}

// lastOf is the last entry of a warp among the readers, or nil.
func (m *more) lastOf(warp uint32) *readers {
	if len(m.readers) >= indexFrom {
		if i, ok := m.index[warp]; ok {
			return &m.readers[i]
		}
		return nil
	}
	for i := len(m.readers) - 1; i >= 0; i-- {
		if m.readers[i].warp == warp {
			return &m.readers[i]
		}
	}
	return nil
}

// dropReaders makes R_x the minimal epoch.
func (d *Detector) dropReaders(c *cell) {
	c.rTime = 0
	if c.more != 0 {
		m := d.more[c.more]
		m.readers = m.readers[:0]
		clear(m.index)
	}
}

// at is the cell of the word that holds the byte at addr, of the access's space.
func (a *access) at(d *Detector, addr uint64) *cell {
	if a.e.Space == event.Shared {
		return d.cells.Shared(d.window(a.w.block), addr)
	}
	return d.cells.Global(addr)
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
	return a.v.rest.At(a.depth, block).Behind(warp-block*a.wpb, 1<<uint(u), time) == 0
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
