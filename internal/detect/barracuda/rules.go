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
	switch {
	case e.Size%wordBytes != 0:
		d.oneByOne(a, mask)
	case e.Flags&event.FlagRows != 0:
		row := uint32(1)<<(1<<e.RowShift) - 1
		for m := mask; m != 0; {
			in := m & (row << (bits.TrailingZeros32(m) >> e.RowShift << e.RowShift))
			d.pattern(a, in, b.AddrOf(e, bits.TrailingZeros32(in)), e.Stride)
			m &^= in
		}
	case e.Flags&event.FlagScattered != 0:
		d.scattered(a)
	default:
		d.pattern(a, mask, b.AddrOf(e, bits.TrailingZeros32(mask)), e.Stride)
	}
}

// oneByOne judges lanes in their order.
func (d *Detector) oneByOne(a *access, lanes uint32) {
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		d.lane(a, lane, a.b.AddrOf(a.e, lane))
	}
}

// scattered parts an access into runs of lanes that access the same place or consecutive ones: rows of a tile.
func (d *Detector) scattered(a *access) {
	addrs := a.b.Addrs[a.e.Side:]
	for rest := a.lanes; rest != 0; {
		first := bits.TrailingZeros32(rest)
		at := bits.OnesCount32(a.e.Mask & (1<<uint(first) - 1))
		base := addrs[at]
		run, n := uint32(1)<<uint(first), 1
		stride := uint64(0)
		for lane := first + 1; lane < 32 && rest>>uint(lane)&1 != 0; lane++ {
			step := addrs[at+n] - addrs[at+n-1]
			if n == 1 && step == uint64(a.e.Size) {
				stride = step
			}
			if step != stride {
				break
			}
			run |= 1 << uint(lane)
			n++
		}
		d.pattern(a, run, base, int64(stride))
		rest &^= run
	}
}

// pattern judges lanes whose addresses, that of the lowest being addr, differ by stride from lane to lane. Words that no two
// lanes share, or all read, are judged word by word instead of lane by lane.
func (d *Detector) pattern(a *access, lanes uint32, addr uint64, stride int64) {
	size := uint64(a.e.Size)
	switch {
	case lanes&(lanes-1) == 0, addr%wordBytes != 0, stride == 0 && a.e.Kind == event.Store:
	case stride >= int64(size) && stride%wordBytes == 0:
		for i := uint64(0); i < size; i += wordBytes {
			d.row(a, lanes, addr+i, int(stride/wordBytes))
		}
		d.done |= lanes
		return
	case stride == 0:
		for i := uint64(0); i < size; i += wordBytes {
			if d.sight(a, a.segment(d, addr+i), 1<<((addr+i)%segmentBytes/wordBytes), lanes, 0) {
				continue
			}
			if !d.together(a, lanes, addr+i) {
				d.word(a, lanes, addr+i)
			}
		}
		d.done |= lanes
		return
	}
	d.oneByOne(a, lanes)
}

// word judges lanes at the word at addr, which all of them access.
func (d *Detector) word(a *access, lanes uint32, addr uint64) {
	for m := lanes; m != 0; m &= m - 1 {
		d.span(a, bits.TrailingZeros32(m), addr, addr+wordBytes)
	}
}

// row judges a word of each of lanes, step words from lane to lane, that of the lowest at addr.
func (d *Detector) row(a *access, lanes uint32, addr uint64, step int) {
	for lanes != 0 { // segment by segment
		first := bits.TrailingZeros32(lanes)
		at := int(addr % segmentBytes / wordBytes)
		in := (segmentWords - 1 - at) / step // lanes behind the first one whose words are in the segment
		part := lanes & uint32(1<<uint(min(first+in+1, 32))-1)
		s := a.segment(d, addr)
		n := run{a.v.local, a.w.number, a.e.Place, part >> uint(first) << uint(at), int32(first - at)}
		switch line := step == 1 || part&(part-1) == 0; {
		case line && (a.write || s.log == 0) && a.whole(d, s, n):
		case line && d.sight(a, s, n.mask, 0, n.shift):
		default:
			d.part(a, d.expand(a, s)[at:], part, addr, step)
		}
		if lanes &^= part; lanes != 0 {
			addr += uint64((bits.TrailingZeros32(lanes)-first)*step) * wordBytes
		}
	}
}

// part is row within a segment: cells begin with that of the lowest lane.
func (d *Detector) part(a *access, cells []cell, lanes uint32, addr uint64, step int) {
	first := bits.TrailingZeros32(lanes)
	load := a.e.Kind == event.Load
	time, place := a.v.local|a.bit, a.e.Place
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		c := &cells[(lane-first)*step]
		self := a.w.number<<5 | uint32(lane)
		switch {
		case c.more&splitBit != 0 || c.wTime != 0 && !a.known(self, c.wThread, c.wTime&maxClock):
		case c.more == 0 && (c.rTime == 0 || a.known(self, c.rThread, c.rTime)):
			if load { // READEXCL
				c.rTime, c.rThread, c.rPlace = time, self, place
			} else { // WRITEEXCL, INITATOMEXCL, ATOMEXCL
				c.wTime, c.wThread, c.wPlace, c.rTime = time, self, place, 0
			}
			continue
		case load: // READSHARED, READINFLATE
			d.read(a, c, 1<<uint(lane))
			continue
		}
		here := addr + uint64((lane-first)*step)*wordBytes
		d.span(a, lane, here, here+wordBytes)
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

// together judges a load or atomic operation of the word at addr by several lanes at once. It reports whether it could: whether
// all goes as the rules have it for one lane after the other, without a race.
func (d *Detector) together(a *access, lanes uint32, addr uint64) bool {
	c := a.at(d, addr)
	if c.more&splitBit != 0 {
		return false
	}
	t := c.wTime & maxClock
	if t != 0 && (!a.atomic || c.wTime&atomicBit == 0 || d.apart(a, c)) && !a.orderedAll(lanes, c.wThread, t) {
		return false
	}
	if !a.atomic {
		d.read(a, c, lanes)
		return true
	}
	if c.rTime != 0 || d.shared(c) != nil {
		return false
	}
	last := 31 - bits.LeadingZeros32(lanes)
	c.wTime, c.wThread, c.wPlace = a.v.local|a.bit, a.w.number<<5|uint32(last), a.e.Place
	return true
}

// orderedAll is ordered for all of several lanes, which know the same of every thread but their own.
func (a *access) orderedAll(lanes, thread, time uint32) bool {
	if thread>>5 == a.w.number {
		lanes &^= 1 << (thread & 31)
	}
	return lanes == 0 || a.ordered(bits.TrailingZeros32(lanes), thread, time)
}

// lane judges the access of one lane.
func (d *Detector) lane(a *access, lane int, addr uint64) {
	d.span(a, lane, addr, addr+uint64(a.e.Size))
	d.done |= 1 << uint(lane)
}

// span judges the access of one lane to the bytes from addr to end, location by location.
func (d *Detector) span(a *access, lane int, addr, end uint64) {
	for addr < end {
		c := a.at(d, addr)
		if addr%wordBytes == 0 && end-addr >= wordBytes && c.more&splitBit == 0 {
			d.touch(a, c, lane, addr, wordBytes)
			addr += wordBytes
			continue
		}
		bytes := d.split(a, c)
		for stop := min(end, addr&^(wordBytes-1)+wordBytes); addr < stop; addr++ {
			d.touch(a, &bytes[addr%wordBytes], lane, addr, 1)
		}
	}
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
		d.read(a, c, 1<<uint(lane))
		return
	}
	if m := d.shared(c); m != nil {
		for i := range m.readers {
			if late := a.behind(lane, &m.readers[i]); late != 0 {
				r := &m.readers[i]
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

// read enters reads by lanes into R_x, one after the other. Lanes of one instruction are concurrent: of several, the second one
// makes R_x a vector clock.
func (d *Detector) read(a *access, c *cell, lanes uint32) {
	if m := d.shared(c); m != nil { // READSHARED
		a.enter(m, lanes)
		return
	}
	first := bits.TrailingZeros32(lanes)
	fits := c.rTime == 0 || a.ordered(first, c.rThread, c.rTime)
	if fits && lanes&(lanes-1) == 0 { // READEXCL
		c.rTime, c.rThread, c.rPlace = a.v.local, a.w.number<<5|uint32(first), a.e.Place
		return
	}
	m := d.crowd(a, c) // READINFLATE
	if !fits {
		m.add(readers{warp: c.rThread >> 5, mask: 1 << (c.rThread & 31), time: c.rTime, place: c.rPlace})
	}
	a.enter(m, lanes)
	c.rTime = 0
}
