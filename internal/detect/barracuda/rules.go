package barracuda

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// access is one plain memory operation of a warp while it is judged: rd, wr or atm for each lane.
type access struct {
	b      *event.Batch
	e      *event.Event
	w      *warp
	v      *view
	lanes  uint32 // those that the operation is for, all of v
	wpb    uint32
	depth  int
	atomic bool
	write  bool // wr or atm
	bit    uint32
}

// perform judges an access of the lanes of mask, whose clocks are v.
func (d *Detector) perform(b *event.Batch, e *event.Event, w *warp, v *view, mask uint32) {
	a := &d.acc
	*a = access{b: b, e: e, w: w, v: v, lanes: mask, wpb: d.wpb, depth: d.depth,
		atomic: e.Kind == event.Atomic, write: e.Kind != event.Load}
	if a.atomic {
		a.bit = atomicBit
		if d.plus && e.Scope < event.ScopeGPU {
			a.bit |= blockBit
		}
	}
	d.note(e)
	d.performed++
	scattered := e.Flags&event.FlagScattered != 0
	switch {
	case !scattered && e.Size == wordBytes && e.Stride == wordBytes && e.Addr%wordBytes == 0:
		d.row(a)
		return
	case !scattered && e.Stride == 0 && mask&(mask-1) != 0 && e.Kind != event.Store && d.together(a):
		return
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		d.lane(a, lane, b.AddrOf(e, lane))
	}
}

// row judges lanes that access consecutive words.
func (d *Detector) row(a *access) {
	first := bits.TrailingZeros32(a.e.Mask)
	var run []cell
	at := -1 // lane of run[0]
	load := a.e.Kind == event.Load
	time, place := a.v.local|a.bit, a.e.Place
	for m := a.lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if at < 0 || lane-at >= len(run) {
			run, at = a.run(d, a.e.Addr+uint64(lane-first)*wordBytes), lane
		}
		c := &run[lane-at]
		self := a.w.number<<5 | uint32(lane)
		if c.more != 0 || c.wTime != 0 && !a.known(self, c.wThread, c.wTime&maxClock) || c.rTime != 0 && !a.known(self, c.rThread, c.rTime) {
			d.lane(a, lane, a.e.Addr+uint64(lane-first)*wordBytes)
		} else if load { // READEXCL
			c.rTime, c.rThread, c.rPlace = time, self, place
		} else { // WRITEEXCL, INITATOMEXCL, ATOMEXCL
			c.wTime, c.wThread, c.wPlace, c.rTime = time, self, place, 0
		}
	}
}

// known is ordered as far as it is seen at once: false says nothing.
func (a *access) known(self, thread, time uint32) bool {
	switch warp := thread >> 5; {
	case thread == self:
		return true
	case warp == a.w.number:
		return time <= a.v.peer && a.v.mask>>(thread&31)&1 != 0
	default:
		return time <= a.v.block && warp-a.w.block.first < a.wpb
	}
}

// together judges a load or atomic operation of one word by several lanes at once. It reports whether it could: whether
// all goes as the rules have it for one lane after the other, without a race.
func (d *Detector) together(a *access) bool {
	if a.e.Size != wordBytes || a.e.Addr%wordBytes != 0 {
		return false
	}
	c := a.at(d, a.e.Addr)
	if d.bytes(c) != nil {
		return false
	}
	t := c.wTime & maxClock
	if t != 0 && (!a.atomic || c.wTime&atomicBit == 0 || d.apart(a, c)) && !a.orderedAll(c.wThread, t) {
		return false
	}
	if a.atomic {
		if c.rTime != 0 || d.shared(c) {
			return false
		}
		last := 31 - bits.LeadingZeros32(a.lanes)
		c.wTime, c.wThread, c.wPlace = a.v.local|a.bit, a.w.number<<5|uint32(last), a.e.Place
		return true
	}
	all := readers{a.w.number, a.lanes, a.v.local, a.e.Place}
	if !d.shared(c) {
		if c.rTime != 0 && !a.orderedAll(c.rThread, c.rTime) {
			return false
		}
		c.rTime = 0
		d.addReaders(a, c, all)
		return true
	}
	r := d.more[c.more].lastOf(a.w.number)
	switch {
	case r == nil:
		d.addReaders(a, c, all)
	case r.time == all.time && r.place == all.place && r.mask&^a.v.mask == 0:
		r.mask |= all.mask
	case a.behind(bits.TrailingZeros32(a.lanes), r) == 0:
		*r = all
	default:
		return false
	}
	return true
}

// orderedAll is ordered for all lanes of the access, which know the same of every thread but their own.
func (a *access) orderedAll(thread, time uint32) bool {
	others := a.lanes
	if thread>>5 == a.w.number {
		others &^= 1 << (thread & 31)
	}
	return a.ordered(bits.TrailingZeros32(others), thread, time)
}

// run gives the cells of consecutive words from addr on, as far as they lie together.
func (a *access) run(d *Detector, addr uint64) []cell {
	if a.e.Space == event.Shared {
		return d.cells.SharedRun(d.window(a.w.block), addr)
	}
	return d.cells.GlobalRun(addr)
}

// lane judges the access of one lane, location by location.
func (d *Detector) lane(a *access, lane int, addr uint64) {
	for end := addr + uint64(a.e.Size); addr < end; {
		c := a.at(d, addr)
		if addr%wordBytes == 0 && end-addr >= wordBytes && d.bytes(c) == nil {
			d.touch(a, c, lane, addr, wordBytes)
			addr += wordBytes
			continue
		}
		bytes := d.split(a, c)
		for stop := min(end, addr&^(wordBytes-1)+wordBytes); addr < stop; addr++ {
			d.touch(a, &bytes[addr%wordBytes], lane, addr, 1)
		}
	}
	d.done |= 1 << uint(lane)
	d.flush()
}

// touch applies the rule for one location: READ*, WRITE*, INITATOM* or ATOM*.
func (d *Detector) touch(a *access, c *cell, lane int, addr uint64, size int) {
	if t := c.wTime & maxClock; t != 0 && !(a.atomic && c.wTime&atomicBit != 0 && !d.apart(a, c)) {
		if !a.ordered(lane, c.wThread, t) {
			d.conflict(a, lane, addr, size, race{thread: c.wThread, place: c.wPlace, write: true, atomic: c.wTime&atomicBit != 0})
		}
	}
	if !a.write {
		d.read(a, c, lane)
		return
	}
	if d.shared(c) {
		for i := range d.more[c.more].readers {
			r := &d.more[c.more].readers[i]
			if late := a.behind(lane, r); late != 0 {
				d.conflict(a, lane, addr, size, race{thread: r.warp<<5 | uint32(bits.TrailingZeros32(late)), place: r.place})
			}
		}
	} else if c.rTime != 0 && !a.ordered(lane, c.rThread, c.rTime) {
		d.conflict(a, lane, addr, size, race{thread: c.rThread, place: c.rPlace})
	}
	d.dropReaders(c)
	c.wTime, c.wThread, c.wPlace = a.v.local|a.bit, a.w.number<<5|uint32(lane), a.e.Place
}

// apart says that two atomic operations are not atomic for each other: 000, section 5.1, "Scoped atomics".
func (d *Detector) apart(a *access, c *cell) bool {
	return a.bit&blockBit != 0 && c.wTime&blockBit != 0 && c.wThread>>5-a.w.block.first >= a.wpb
}

// read enters a read into R_x.
func (d *Detector) read(a *access, c *cell, lane int) {
	if d.shared(c) { // READSHARED
		d.readShared(a, c, lane)
		return
	}
	thread := a.w.number<<5 | uint32(lane)
	if c.rTime == 0 || a.ordered(lane, c.rThread, c.rTime) { // READEXCL
		c.rTime, c.rThread, c.rPlace = a.v.local, thread, a.e.Place
		return
	}
	d.addReaders(a, c, readers{c.rThread >> 5, 1 << (c.rThread & 31), c.rTime, c.rPlace}) // READINFLATE
	c.rTime = 0
	d.readShared(a, c, lane)
}

// readShared enters a read into a vector clock of readers. Reads of one warp at one time are one entry. An entry that
// happens before the new read of its own warp says nothing more: who is ordered behind the new read is behind the old ones.
func (d *Detector) readShared(a *access, c *cell, lane int) {
	r := d.more[c.more].lastOf(a.w.number)
	switch {
	case r == nil:
	case r.time == a.v.local && r.place == a.e.Place && r.mask&^a.v.mask == 0:
		r.mask |= 1 << uint(lane)
		return
	case a.behind(lane, r) == 0:
		*r = readers{a.w.number, 1 << uint(lane), a.v.local, a.e.Place}
		return
	}
	d.addReaders(a, c, readers{a.w.number, 1 << uint(lane), a.v.local, a.e.Place})
}
