package parsnip

import "fencepost.dev/fencepost/internal/cpu/order"

// ref is a Long ParsnipRef (section 4.2.4, figure 4.5): from the lowest bit on an index into the ParsnipTable of the thread (4
// bits), hasNext, whether it is a write, and the thread (6). A Short ParsnipRef is its upper 8 bits.
type ref uint16

const (
	indexMask = 15
	invalid   = 15 // the index of a clock that no table has
	nextBit   = 1 << 4
	writeBit  = 1 << 5
	tidShift  = 6
	noThread  = 63 // which no ParsnipRef may have
	// none is the absence of a reference.
	none ref = noThread<<tidShift | writeBit | nextBit | invalid
)

// MaxThreads bounds the threads: a ParsnipRef has 6 bits for one, and one value is reserved.
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

// longRefs is how many ParsnipRefs a line in m:1 mode has.
const longRefs = 16

// line is a ParsnipLine (section 4.2.3, figure 4.4). A slot is the bytes of one variable, which always have one reference.
type line struct {
	slots [64]uint8 // m:1: which of refs; 1:1: a Short ParsnipRef
	refs  [longRefs]ref
	uses  [longRefs]uint8 // slots of each of refs
	short bool            // 1:1 mode
}

func (l *line) get(slot int) ref {
	if l.short {
		return fromShort(l.slots[slot])
	}
	return l.refs[l.slots[slot]]
}

// entry is one of a ParsnipTable.
type entry struct {
	clock order.Epoch
	count int32 // ParsnipRefs in caches that name it; at most 2 for each of the lines that fit, far below the 24 bits of the design
}

// table is the ParsnipTable of a thread.
type table struct {
	entries [invalid]entry
	last    int // entry that was used last
}

// find gives the entry of a clock, or makes one; invalid if all are in use (a rejection, section 4.2.5).
func (t *table) find(e order.Epoch, size int) int {
	if t.entries[t.last].clock == e {
		return t.last
	}
	free := invalid
	for i := range t.entries[:size] {
		x := &t.entries[i]
		if x.clock == e {
			t.last = i
			return i
		}
		if x.count == 0 && free == invalid {
			free = i
		}
	}
	if free != invalid {
		t.entries[free].clock = e
		t.last = free
	}
	return free
}

// set changes the reference of a slot of a line. It says whether the line had to go to 1:1 mode.
func (d *Detector) set(l *line, slot int, r ref) (rewritten bool) {
	if l.short {
		l.slots[slot] = r.short()
		d.tryLong(l)
		return false
	}
	old := l.slots[slot]
	if l.refs[old] == r {
		return false
	}
	to := -1
	for i := range l.refs {
		if l.uses[i] == 0 {
			if to < 0 {
				to = i
			}
		} else if l.refs[i] == r {
			to = i
			break
		}
	}
	if to < 0 && l.uses[old] == 1 {
		to = int(old)
	}
	if to < 0 {
		return true
	}
	d.pin(r, 1) // before the old one is released, which may be of the same entry
	was := l.refs[old]
	if l.uses[to] > 0 && l.refs[to] == r {
		d.pin(r, -1) // one ParsnipRef for all its slots
	}
	if l.uses[old]--; l.uses[old] == 0 {
		d.pin(was, -1)
	}
	l.refs[to] = r
	l.uses[to]++
	l.slots[slot] = uint8(to)
	return false
}

// pin changes the reference count of the table entry that a reference names.
func (d *Detector) pin(r ref, by int32) {
	if r.known() {
		d.tables[r.thread()].entries[r.index()].count += by
	}
}

// tryLong brings a line in 1:1 mode back to m:1 mode if it has few enough references.
func (d *Detector) tryLong(l *line) {
	long := line{}
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
	*l = long
	d.Counts.Rewrites++
}

// place is where the content of the lines of one space stands: those that are in a cache.
type place struct {
	at []int32 // by line: the number of its content plus one, or 0
}

func (p *place) grow(n uint32) {
	if int(n) >= len(p.at) {
		p.at = append(p.at, make([]int32, int(n)+1-len(p.at))...)
	}
}

// content gives a line; nil if it is in no cache.
func (d *Detector) content(space int, n uint32) *line {
	if at := d.places[space].at[n]; at != 0 {
		return &d.lines[at-1]
	}
	return nil
}

// fill makes an empty line.
func (d *Detector) fill(space int, n uint32) {
	at := int32(len(d.lines))
	if k := len(d.free); k > 0 {
		at, d.free = d.free[k-1], d.free[:k-1]
		d.lines[at] = line{}
	} else {
		d.lines = append(d.lines, line{})
	}
	l := &d.lines[at]
	l.refs[0], l.uses[0] = none, uint8(d.slots)
	d.places[space].at[n] = at + 1
}

// drop forgets a line.
func (d *Detector) drop(space int, n uint32) {
	at := d.places[space].at[n] - 1
	l := &d.lines[at]
	if !l.short {
		for i := range l.refs {
			if l.uses[i] > 0 {
				d.pin(l.refs[i], -1)
			}
		}
	}
	d.free = append(d.free, at)
	d.places[space].at[n] = 0
}
