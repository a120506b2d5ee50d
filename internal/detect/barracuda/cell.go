package barracuda

import (
	"maps"
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// cell is the metadata of a location (R_x and W_x; figure 5.10). In the paper a location is a byte. Here four aligned
// bytes that were always accessed together share a cell, which loses nothing and takes a quarter of the memory. The
// first narrower access gives each byte a cell of its own: the word is then split.
//
// Times are 0 only in the minimal epoch. The thread of an epoch is warp * 32 + lane.
type cell struct {
	wTime     uint32 // time of the last write, with atomicBit and blockBit; or split
	wThread   uint32
	rTime     uint32 // time of the last read, or of reads by lanes of one warp; 0 with a read clock
	rWarp     uint32 // with a read clock: the number that its lanes are rotated by, modulo 32
	rMask     uint32
	wPlace    uint32 // for messages only
	rPlace    uint32
	readClock uint32 // R_x as a vector clock: an index in Detector.readClocks, used only by this cell or run of cells; 0: R_x is an epoch
}

const (
	atomicBit = 1 << 31 // the last write was an atomic operation
	blockBit  = 1 << 30 // with block scope
	maxClock  = blockBit - 1
	split     = blockBit // in a word without a write: block scope without an atomic operation
	wordBytes = 4
)

// Turn implements shadow.Cell.
func (c *cell) Turn(n int) {
	if c.wTime&maxClock != 0 {
		c.wThread = c.wThread&^31 | (c.wThread+uint32(n))&31
	}
	c.rMask = bits.RotateLeft32(c.rMask, n)
	if c.readClock != 0 {
		c.rWarp = (c.rWarp + uint32(n)) & 31
	}
}

// readClock is R_x as a vector clock, of concurrent readers.
type readClock struct {
	readers []readers
	last    map[uint32]int32 // by warp: its last entry; used if there are many entries
	// Bounds for all readers: times are at most newest, and warps are in [low, high].
	newest, low, high uint32
}

// readers is reads by lanes of a warp at one time. An entry without lanes is free.
type readers struct {
	warp, mask, time, place uint32 // the previous entry of the warp, or -1
	before                  int32  // the warp's entry before, or -1
}

const (
	indexFrom  = 32 // number of entries from which last is used
	indexBytes = 24 // approximate memory of last for each reader
)

func (m *readClock) size() uint64 {
	return uint64(unsafe.Sizeof(*m)) + uint64(cap(m.readers))*uint64(unsafe.Sizeof(readers{})) + uint64(len(m.last))*indexBytes
}

// shared returns R_x if it is a vector clock, and otherwise nil.
func (d *Detector) shared(c *cell) *readClock {
	if c.readClock == 0 {
		return nil
	}
	return d.readClocks[c.readClock]
}

// reader returns an entry of the cell's read clock, with lanes rotated for the cell.
func (c *cell) reader(m *readClock, i int) readers {
	r := m.readers[i]
	r.mask = bits.RotateLeft32(r.mask, int(c.rWarp))
	return r
}

// gather makes R_x a vector clock, with lanes rotated for the cell.
func (d *Detector) gather(c *cell) *readClock {
	m := d.shared(c)
	if m == nil {
		c.readClock, m = d.newReadClock()
	} else if c.rWarp != 0 {
		for i := range m.readers {
			m.readers[i].mask = c.reader(m, i).mask
		}
	}
	c.rWarp = 0
	return m
}

func (d *Detector) newReadClock() (uint32, *readClock) {
	if n := len(d.idle); n > 0 {
		i := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return i, d.readClocks[i]
	}
	d.readClocks = append(d.readClocks, &readClock{readers: make([]readers, 0, 4)})
	return uint32(len(d.readClocks) - 1), d.readClocks[len(d.readClocks)-1]
}

// own gives a cell that was copied from another a read clock of its own.
func (d *Detector) own(c *cell) {
	if old := d.shared(c); old != nil {
		var m *readClock
		c.readClock, m = d.newReadClock()
		m.readers, m.last = append(m.readers, old.readers...), maps.Clone(old.last)
		m.newest, m.low, m.high = old.newest, old.low, old.high
	}
}

// dropReaders makes R_x the minimal epoch.
func (d *Detector) dropReaders(c *cell) {
	if m := d.shared(c); m != nil {
		m.readers, m.newest = m.readers[:0], 0
		clear(m.last)
		d.idle = append(d.idle, c.readClock)
	}
	c.rTime, c.rWarp, c.rMask, c.rPlace, c.readClock = 0, 0, 0, 0, 0
}

// add adds an entry.
func (m *readClock) add(r readers) {
	if m.newest == 0 {
		m.low, m.high = r.warp, r.warp
	}
	m.newest, m.low, m.high = max(m.newest, r.time), min(m.low, r.warp), max(m.high, r.warp)
	m.readers = append(m.readers, r)
	switch n := len(m.readers); {
	case n == indexFrom:
		if m.last == nil {
			m.last = make(map[uint32]int32, 2*indexFrom)
		}
		for i := range m.readers {
			m.last[m.readers[i].warp] = int32(i)
		}
	case n > indexFrom:
		m.last[r.warp] = int32(n - 1)
	}
}

// lastOf returns the last entry of a warp, or -1.
func (m *readClock) lastOf(warp uint32) int32 {
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

// enter adds reads by lanes to a vector clock of readers. Reads of one warp at one time are one entry. It drops the
// lanes' own older reads, and other reads of the warp that happen before one of the new ones: whoever is ordered after
// the new reads is ordered after these.
func (a *access) enter(m *readClock, lanes uint32) {
	var room *readers
	last := m.lastOf(a.w.number)
	for i := last; i >= 0; {
		r := &m.readers[i]
		i = r.before
		if r.mask != 0 && r.time == a.v.local && r.mask&^a.v.mask == 0 {
			r.mask |= lanes
			r.place = a.e.Place
			return
		}
		if r.mask &^= lanes; r.mask != 0 && a.late(bits.TrailingZeros32(lanes), 1, r.warp, r.mask, r.time) == 0 {
			r.mask = 0
		}
		if r.mask == 0 {
			room = r
		}
	}
	if room != nil {
		m.newest = max(m.newest, a.v.local)
		*room = readers{a.w.number, lanes, a.v.local, a.e.Place, room.before}
		return
	}
	m.add(readers{a.w.number, lanes, a.v.local, a.e.Place, last})
}

// follows reports whether all reads happen before the access because they are of its block and a barrier has followed
// them. It may return false if that is not cheap to see.
func (a *access) follows(m *readClock) bool {
	first := a.w.block.first
	return m.newest <= min(a.v.block, a.v.peer) && a.v.mask == a.w.exist && m.low-first < a.wpb && m.high-first < a.wpb
}

// line returns the line of cells that contains that of addr in the access's space, and the index of the cell in it.
// cells are those of words, or those of the bytes of split words.
func (a *access) line(d *Detector, cells *shadow.Lines[cell, *cell], addr uint64) (*shadow.Line[cell], int) {
	if a.e.Space == event.Shared {
		return cells.Shared(d.window(a.w.block), addr)
	}
	return cells.Global(addr)
}

// at returns the cell of addr.
func (a *access) at(d *Detector, cells *shadow.Lines[cell, *cell], addr uint64) *cell {
	l, i := a.line(d, cells, addr)
	return cells.Cell(l, i)
}

// split gives the bytes of the word at addr cells of their own.
func (d *Detector) split(a *access, c *cell, addr uint64) {
	if c.wTime == split {
		return
	}
	for i := range uint64(wordBytes) {
		if *c != (cell{}) {
			b := a.at(d, d.bytes, addr+i)
			*b = *c
			d.own(b)
		}
	}
	d.dropReaders(c)
	*c = cell{wTime: split}
}
