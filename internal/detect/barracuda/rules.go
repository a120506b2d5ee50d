package barracuda

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// access is the memory operation of a warp that is being judged: rd, wr or atm for each lane.
type access struct {
	b      *event.Batch
	e      *event.Event
	w      *warp
	v      *view
	wpb    uint32
	depth  int
	atomic bool
	write  bool // wr or atm
	bit    uint32
}

// perform judges an access of the lanes of mask, whose clocks are v.
func (d *Detector) perform(b *event.Batch, e *event.Event, w *warp, v *view, mask uint32) {
	a := &d.acc
	*a = access{b: b, e: e, w: w, v: v, wpb: d.wpb, depth: d.depth,
		atomic: e.Kind == event.Atomic, write: e.Kind != event.Load}
	if a.atomic {
		a.bit = atomicBit
		if d.plus && e.Scope < event.ScopeGPU {
			a.bit |= blockBit
		}
	}
	d.note(e)
	d.performed++
	for left := mask; left != 0; {
		s := b.Strip(e, left)
		left &^= s.Mask
		switch words := e.Size%wordBytes == 0 && s.Addr%wordBytes == 0 && s.Step%wordBytes == 0; {
		case words && e.Size == wordBytes && s.Step == wordBytes:
			d.row(a, d.words, &s)
		case e.Size == 1 && s.Step == 1:
			for at, end := s.Addr&^(wordBytes-1), s.Addr+uint64(s.High()-s.Low()); at <= end; at += wordBytes {
				d.split(a, a.at(d, d.words, at), at)
			}
			d.row(a, d.bytes, &s)
		case words && s.Same() && e.Kind != event.Store:
			for i := uint64(0); i < uint64(e.Size); i += wordBytes {
				d.together(a, s.Mask, s.Addr+i)
			}
		case words:
			d.inTurn(a, &s)
		default:
			addr := s.Addr
			for m := s.Mask; m != 0; m &= m - 1 {
				d.span(a, bits.TrailingZeros32(m), addr, addr+uint64(e.Size))
				d.done |= m & -m
				addr += uint64(s.Step)
			}
		}
		d.done |= s.Mask
	}
}

// inTurn judges lanes that access whole words, one lane after the other.
func (d *Detector) inTurn(a *access, s *event.Strip) {
	const lineBytes = wordBytes * shadow.LineCells
	near := s.Step != 0 && s.Step < lineBytes/2 && s.Step > -lineBytes/2 // several of the words are in one line
	var cells *[shadow.LineCells]cell
	addr, line := s.Addr, ^uint64(0)
	for m := s.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		for at, end := addr, addr+uint64(a.e.Size); at < end; at += wordBytes {
			var c *cell
			switch i := at / wordBytes % shadow.LineCells; {
			case !near:
				c = a.at(d, d.words, at)
			case line != at/lineBytes:
				l, _ := a.line(d, d.words, at)
				line, cells = at/lineBytes, d.words.Cells(l)
				fallthrough
			default:
				c = &cells[i]
			}
			if !a.alone(c, lane) {
				d.span(a, lane, at, end)
				line = ^uint64(0)
				break
			}
			a.set(c, lane)
		}
		d.done |= m & -m
		addr += uint64(s.Step)
	}
}

// alone reports whether an access by a lane does not race and replaces the recorded reads of a word: READEXCL,
// WRITEEXCL, INITATOMEXCL or ATOMEXCL. It may return false if that is not cheap to see.
func (a *access) alone(c *cell, lane int) bool {
	return c.readClock == 0 && c.wTime != split && (c.wTime == 0 || a.known(lane, c.wThread>>5, 1<<(c.wThread&31), c.wTime&maxClock)) &&
		(c.rTime == 0 || a.known(lane, c.rWarp, c.rMask, c.rTime))
}

// known reports whether what lanes of a warp did at a time happens before the access of a lane. It may return false if
// that is not cheap to see.
func (a *access) known(lane int, warp, lanes, time uint32) bool {
	if warp == a.w.number {
		return lanes == 1<<lane || time <= a.v.peer && lanes&^a.v.mask == 0
	}
	return time <= a.v.block && warp-a.w.block.first < a.wpb
}

// set records an access by a lane as the last of its kind, and drops what a write replaces, except a read clock.
func (a *access) set(c *cell, lane int) {
	if a.write {
		c.wTime, c.wThread, c.wPlace = a.v.local|a.bit, a.w.number<<5|uint32(lane), a.e.Place
		c.rTime, c.rWarp, c.rMask, c.rPlace = 0, 0, 0, 0
	} else {
		c.rTime, c.rWarp, c.rMask, c.rPlace = a.v.local, a.w.number, 1<<lane, a.e.Place
	}
}

// row judges lanes that access a word each, or a byte each, at consecutive addresses. It judges runs of cells that
// lanes of one warp left in this order, or that nobody has accessed, at once.
func (d *Detector) row(a *access, cells *shadow.Lines[cell, *cell], s *event.Strip) {
	size := uint64(a.e.Size)
	for lane, addr := s.Low(), s.Addr; lane <= s.High(); {
		l, from := a.line(d, cells, addr)
		to := min(from+s.High()+1-lane, shadow.LineCells)
		whole, apart := true, true // apart: each run has a read clock, so no runs can be merged
		for i := from; i < to; {
			c, n := cells.Run(l, i, to)
			if n > 1 && !d.uniform(a, c, lane, n) {
				c, n = cells.Run(l, i, i+1)
			}
			whole = whole && c.wTime != split
			d.run(a, c, lane, n, addr)
			apart = apart && c.readClock != 0
			i, lane, addr = i+n, lane+n, addr+uint64(n)*size
		}
		if a.write && whole {
			cells.Unite(l, from, to)
		}
		if !apart {
			cells.Join(l, from, to)
		}
	}
}

// run judges n lanes, beginning with lane, at the locations from addr on. Their cells are a run and remain one.
func (d *Detector) run(a *access, c *cell, lane, n int, addr uint64) {
	size := uint64(a.e.Size)
	if c.wTime == split {
		for i := range n {
			here := addr + uint64(i)*size
			d.span(a, lane+i, here, here+size)
		}
		return
	}
	if !a.clear(d, c, lane, n) {
		for i := range n {
			is := *c
			is.Turn(i)
			d.check(a, &is, lane+i, addr+uint64(i)*size, int(size))
			d.flush()
		}
	}
	d.record(a, c, lane, n)
}

// uniform reports whether lanes leave a run of cells a run. Writes do. Reads do if all of them replace the reads
// before, or all are added to them.
func (d *Detector) uniform(a *access, c *cell, lane, n int) bool {
	alike := a.v.mask == ^uint32(0) && a.v.rest == nil // all lanes of the warp know the same of each other
	switch {
	case a.write || c.wTime == split:
		return true
	case c.readClock != 0:
		return alike || d.shared(c).lastOf(a.w.number) < 0
	case c.rTime == 0:
		return true
	case c.rWarp == a.w.number:
		return alike || c.rMask == 1<<lane
	}
	late := a.late(lane, n, c.rWarp, c.rMask, c.rTime)
	return late == 0 || late == along(c.rMask, n)
}

// along returns lanes, and the n-1 lanes after each of them.
func along(lanes uint32, n int) uint32 {
	out := lanes
	for have := 1; have < n; {
		by := min(have, n-have)
		out |= bits.RotateLeft32(out, by)
		have += by
	}
	return out
}

// late returns those of lanes of a warp whose access at a time does not happen before that of the given lane. If n > 1
// it answers for n consecutive lanes: the first is compared with lanes, and each other with the lanes after those of
// the one before. The result is the lanes that are late for any of them, possibly with more if the warp is the
// accessing one.
func (a *access) late(lane, n int, warp, lanes, time uint32) uint32 {
	own := warp == a.w.number
	if own && lanes == 1<<lane || !own && warp-a.w.block.first < a.wpb && time <= a.v.block {
		return 0
	}
	if n > 1 {
		lanes = along(lanes, n)
	}
	switch {
	case !own:
	case time <= a.v.peer && lanes&^a.v.mask == 0:
		return 0
	case n == 1:
		lanes &^= 1 << lane
		for m := lanes; m != 0; m &= m - 1 {
			if u := bits.TrailingZeros32(m); time <= a.v.ofLane(lane, u) {
				lanes &^= m & -m
			}
		}
	}
	if a.v.rest == nil || lanes == 0 {
		return lanes
	}
	block := warp / a.wpb
	return a.v.rest.Unknown(a.depth, block, warp-block*a.wpb, lanes, time)
}

// clear reports whether n lanes do not race at a run of cells. It may return false by mistake.
func (a *access) clear(d *Detector, c *cell, lane, n int) bool {
	if t := c.wTime & maxClock; t != 0 && !(a.atomic && c.wTime&atomicBit != 0 && !d.apart(a, c)) &&
		a.late(lane, n, c.wThread>>5, 1<<(c.wThread&31), t) != 0 {
		return false
	}
	switch {
	case !a.write:
	case c.readClock != 0:
		m := d.shared(c)
		if a.follows(m) {
			return true
		}
		for i := range m.readers {
			if r := c.reader(m, i); a.late(lane, n, r.warp, r.mask, r.time) != 0 {
				return false
			}
		}
	case c.rTime != 0:
		return a.late(lane, n, c.rWarp, c.rMask, c.rTime) == 0
	}
	return true
}

// together judges loads or atomic operations by several lanes on the word at addr.
func (d *Detector) together(a *access, lanes uint32, addr uint64) {
	c := a.at(d, d.words, addr)
	if c.wTime == split || !a.clearAll(d, c, lanes) {
		for m := lanes; m != 0; m &= m - 1 {
			d.span(a, bits.TrailingZeros32(m), addr, addr+wordBytes)
		}
		return
	}
	if !a.write {
		d.read(a, c, lanes, 1)
		return
	}
	d.record(a, c, 31-bits.LeadingZeros32(lanes), 1)
}

// clearAll reports whether none of several lanes at one word races, and that judging them together has the same result
// as one after the other. The lanes know the same of every thread except themselves.
func (a *access) clearAll(d *Detector, c *cell, lanes uint32) bool {
	if a.write && (c.rTime != 0 || c.readClock != 0) {
		return false
	}
	if c.wThread>>5 == a.w.number {
		lanes &^= 1 << (c.wThread & 31)
	}
	return lanes == 0 || a.clear(d, c, bits.TrailingZeros32(lanes), 1)
}

// span judges the access of one lane to the bytes from addr to end, location by location.
func (d *Detector) span(a *access, lane int, addr, end uint64) {
	for addr < end {
		c := a.at(d, d.words, addr)
		if addr%wordBytes == 0 && end-addr >= wordBytes && c.wTime != split {
			d.check(a, c, lane, addr, wordBytes)
			d.record(a, c, lane, 1)
			addr += wordBytes
			continue
		}
		d.split(a, c, addr&^(wordBytes-1))
		for stop := min(end, addr&^(wordBytes-1)+wordBytes); addr < stop; addr++ {
			b := a.at(d, d.bytes, addr)
			d.check(a, b, lane, addr, 1)
			d.record(a, b, lane, 1)
		}
	}
	d.flush()
}

// check applies the part of the rule for one location that finds races: READ*, WRITE*, INITATOM* or ATOM*.
func (d *Detector) check(a *access, c *cell, lane int, addr uint64, size int) {
	if t := c.wTime & maxClock; t != 0 && !(a.atomic && c.wTime&atomicBit != 0 && !d.apart(a, c)) {
		if a.late(lane, 1, c.wThread>>5, 1<<(c.wThread&31), t) != 0 {
			d.conflict(a, lane, addr, size, race{thread: c.wThread, place: c.wPlace, write: true, atomic: c.wTime&atomicBit != 0})
		}
	}
	switch {
	case !a.write:
	case c.readClock != 0:
		m := d.shared(c)
		for i := range m.readers {
			r := c.reader(m, i)
			if late := a.late(lane, 1, r.warp, r.mask, r.time); late != 0 {
				d.conflict(a, lane, addr, size, race{thread: r.warp<<5 | uint32(bits.TrailingZeros32(late)), place: r.place})
			}
		}
	case c.rTime != 0:
		if late := a.late(lane, 1, c.rWarp, c.rMask, c.rTime); late != 0 {
			d.conflict(a, lane, addr, size, race{thread: c.rWarp<<5 | uint32(bits.TrailingZeros32(late)), place: c.rPlace})
		}
	}
}

// record applies the rest of the rule: it records the access in a run of n cells.
func (d *Detector) record(a *access, c *cell, lane, n int) {
	if !a.write {
		d.read(a, c, 1<<uint(lane), n)
		return
	}
	d.dropReaders(c)
	a.set(c, lane)
}

// apart reports whether two atomic operations are not atomic with each other: 000, section 5.1, "Scoped atomics".
func (d *Detector) apart(a *access, c *cell) bool {
	return a.bit&blockBit != 0 && c.wTime&blockBit != 0 && c.wThread>>5-a.w.block.first >= a.wpb
}

// read adds reads by lanes to R_x. Lanes of one instruction are concurrent: reads by lanes of one warp at one time are
// an epoch, and others make R_x a vector clock. In a run of n cells each cell is read by the lanes after those of the
// one before.
func (d *Detector) read(a *access, c *cell, lanes uint32, n int) {
	switch {
	case c.readClock != 0: // READSHARED
		a.enter(d.gather(c), lanes)
	case c.rWarp == a.w.number && c.rTime == a.v.local && c.rMask&^a.v.mask == 0:
		c.rMask, c.rPlace = c.rMask|lanes, a.e.Place
	case c.rTime == 0 || a.late(bits.TrailingZeros32(lanes), n, c.rWarp, c.rMask, c.rTime) == 0: // READEXCL
		c.rTime, c.rWarp, c.rMask, c.rPlace = a.v.local, a.w.number, lanes, a.e.Place
	default: // READINFLATE
		was := readers{warp: c.rWarp, mask: c.rMask, time: c.rTime, place: c.rPlace, before: -1}
		c.rTime, c.rMask, c.rPlace = 0, 0, 0
		m := d.gather(c)
		m.add(was)
		a.enter(m, lanes)
	}
}
