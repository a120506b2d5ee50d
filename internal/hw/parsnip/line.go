package parsnip

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/cpu/order"
)

// ref is a Long ParsnipRef (section 4.2.4, figure 4.5). From the lowest bit on it has: an index into the ParsnipTable
// of the thread (4 bits), hasNext, a bit that is set for a write, and the thread (6). A Short ParsnipRef is its upper 8
// bits.
type ref uint16

const (
	indexMask = 15
	invalid   = 15 // the index of a clock that is in no table
	nextBit   = 1 << 4
	writeBit  = 1 << 5
	tidShift  = 6
	noThread  = 63 // reserved, so no thread has this number
	// none means that there is no reference.
	none ref = noThread<<tidShift | writeBit | nextBit | invalid
)

// MaxThreads is the maximum number of threads: a ParsnipRef has 6 bits for the thread, and one value is reserved.
const MaxThreads = noThread

func makeRef(thread uint16, write, next bool, index int) ref {
	r := ref(thread)<<tidShift | ref(index)
	if write {
		r |= writeBit
	}
	if next {
		r |= nextBit
	}
	return r
}

func (r ref) thread() uint16 { return uint16(r >> tidShift) }
func (r ref) write() bool    { return r&writeBit != 0 }
func (r ref) next() bool     { return r&nextBit != 0 }
func (r ref) index() int     { return int(r & indexMask) }
func (r ref) known() bool    { return r&indexMask != invalid }

// short is a Short ParsnipRef, which has no index.
func (r ref) short() uint8 { return uint8(r >> 4) }

func fromShort(s uint8) ref { return ref(s)<<4 | invalid }

// longRefs is the number of ParsnipRefs of a line in m:1 mode.
const longRefs = 16

// unused marks an entry of refs that no slot uses. It is not a ParsnipRef.
const unused ref = 1<<16 - 1

// line is a ParsnipLine (section 4.2.3, figure 4.4). A slot is the bytes of one variable, which always have the same
// reference.
type line struct {
	refs  [longRefs]ref
	uses  [longRefs]uint8 // number of slots that use each of refs
	used  uint16          // bit set of the refs that slots use
	last  uint8           // the most recently set one of refs
	short bool            // 1:1 mode
	slots [64]uint8       // m:1 mode: index in refs; 1:1 mode: a Short ParsnipRef
	_     [12]byte        // aligns lines to cache lines
}

// emptyLine is a line in m:1 mode without references. fill sets how many slots it has.
var emptyLine = func() (l line) {
	for i := range l.refs {
		l.refs[i] = unused
	}
	l.refs[0], l.used = none, 1
	return l
}()

func (l *line) get(slot int) ref {
	at := l.slots[slot&63]
	if l.short {
		return fromShort(at)
	}
	return l.refs[at&(longRefs-1)]
}

// find returns the index of r in refs, or longRefs if it is absent.
func (l *line) find(r ref) int {
	if at := l.last & (longRefs - 1); l.refs[at] == r {
		return int(at)
	}
	for m := l.used; m != 0; m &= m - 1 {
		if at := bits.TrailingZeros16(m); l.refs[at&(longRefs-1)] == r {
			return at
		}
	}
	return longRefs
}

// distinct returns the number of references of the line, or longRefs+1 if there may be more than longRefs.
func (l *line) distinct() int {
	if l.short {
		return longRefs + 1
	}
	return bits.OnesCount16(l.used)
}

// table is the ParsnipTable of a thread. The count of an entry is the number of ParsnipRefs in caches that refer to it.
// It is at most 2 for each slot of each cached line, far below the limit of the design's 24 bits.
type table struct {
	clocks   [invalid + 1]order.Epoch
	counts   [invalid + 1]int32
	free     uint16      // entries whose count is 0
	last     uint8       // the most recently used entry
	rejected order.Epoch // a clock that has no entry while none is free; 0 if unknown
}

// find returns the index of a clock's entry, and makes an entry if necessary. It returns invalid if all entries are in
// use (a rejection, section 4.2.5).
func (t *table) find(e order.Epoch, size int) int {
	if t.clocks[t.last&indexMask] == e {
		return int(t.last)
	}
	if t.rejected == e {
		return invalid
	}
	for i, c := range t.clocks[:size] {
		if c == e {
			t.last = uint8(i)
			return i
		}
	}
	free := bits.TrailingZeros16(t.free)
	if free >= size {
		t.rejected = e
		return invalid
	}
	t.clocks[free] = e
	t.last = uint8(free)
	return free
}

// set changes the reference of a slot of a line. It reports whether the line had to change to 1:1 mode.
func (d *Detector) set(l *line, slot int, r ref) (rewritten bool) {
	if l.short {
		l.slots[slot&63] = r.short()
		d.tryLong(l)
		return false
	}
	old := l.slots[slot&63] & (longRefs - 1)
	was := l.refs[old]
	if was == r {
		return false
	}
	to := l.find(r)
	switch {
	case to < longRefs: // one ParsnipRef for all its slots
		l.uses[to]++
	case l.uses[old] == 1:
		d.pin(r) // before the old one is released, which may refer to the same entry
		d.unpin(was)
		l.refs[old], l.last = r, old
		return false
	case l.used == 1<<longRefs-1:
		return true
	default:
		to = bits.TrailingZeros16(^l.used)
		d.pin(r)
		l.refs[to], l.uses[to] = r, 1
		l.used |= 1 << to
	}
	if l.uses[old]--; l.uses[old] == 0 {
		d.unpin(was)
		l.refs[old] = unused
		l.used &^= 1 << old
	}
	l.slots[slot&63], l.last = uint8(to), uint8(to)
	return false
}

// pin increments the count of the table entry that a reference refers to.
func (d *Detector) pin(r ref) {
	if r.known() {
		t, i := &d.tables[r.thread()], r.index()
		t.counts[i]++
		t.free &^= 1 << i
	}
}

// unpin decrements the count of the table entry that a reference refers to.
func (d *Detector) unpin(r ref) {
	if r.known() {
		t, i := &d.tables[r.thread()], r.index()
		if t.counts[i]--; t.counts[i] == 0 {
			t.free |= 1 << i
			t.rejected = 0
		}
	}
}

// unpinAll unpins all references of a line that is dropped.
func (d *Detector) unpinAll(l *line) {
	for m := l.used; m != 0; m &= m - 1 {
		d.unpin(l.refs[bits.TrailingZeros16(m)])
	}
}

// tryLong changes a line in 1:1 mode back to m:1 mode if it has few enough references.
func (d *Detector) tryLong(l *line) {
	long := emptyLine
	n := 0
	for i := range d.slots {
		r := fromShort(l.slots[i])
		at := 0
		for at < n && long.refs[at] != r {
			at++
		}
		if at == longRefs {
			return
		}
		if at == n {
			long.refs[n] = r
			n++
		}
		long.uses[at]++
		long.slots[i] = uint8(at)
	}
	long.used = uint16(1<<n - 1)
	*l = long
	d.Counts.Rewrites++
}

// content returns a line, or nil if it is in no cache.
func (d *Detector) content(space int, n uint32) *line {
	if at := d.places[n][space]; at != 0 {
		return &d.lines[at-1]
	}
	return nil
}

// fill makes an empty line.
func (d *Detector) fill(space int, n uint32) {
	at := int32(len(d.lines))
	if k := len(d.free); k > 0 {
		at, d.free = d.free[k-1], d.free[:k-1]
		d.lines[at] = emptyLine
	} else {
		d.lines = append(d.lines, emptyLine)
	}
	d.lines[at].uses[0] = uint8(d.slots)
	d.places[n][space] = at + 1
}

// drop removes the content of a line.
func (d *Detector) drop(space int, n uint32) {
	at := d.places[n][space] - 1
	d.unpinAll(&d.lines[at])
	d.free = append(d.free, at)
	d.places[n][space] = 0
}
