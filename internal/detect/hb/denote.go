package hb

import "math/bits"

// denote gives line i of a page cells and locs in place of notes.
func (d *Detector) denote(p *page, i uint64) {
	if p.stale && p.notes[i] != 0 {
		d.coolStale(p)
	}
	switch {
	case p.notes[i] == 0:
		return
	case p.notes[i]&tallyBit != 0:
		d.untally(p, i)
	case p.notes[i]&rollBit != 0:
		d.denoteRoll(p, i)
		return
	}
	l := d.mem.line(p, i)
	t := &d.mem.notebook
	n := t.lines.at(p.notes[i])
	of := d.launches[p.noter]
	var room [1 << maxOnes]note
	for j, c := range n {
		notes := t.of(c, &room)
		if len(notes) > 0 && notes[0].deed&noteAtomics != 0 {
			d.denoteLoc(of, p, notes, p.addr+i*lineBytes+uint64(j)*cellBytes)
		}
		for r := range notes {
			d.denoteEntry(&l.cells[j], t.deeds.at(notes[r].deed>>deedShift), &notes[r])
		}
	}
	t.drop(p, i)
}

// denoteEntry records a note of deed x as an entry.
func (d *Detector) denoteEntry(c *cell, x deed, o *note) {
	key := x.class<<headShift | headBytes
	if o.deed&noteKind == noteAtomics|noteWrite {
		key |= headChain
	}
	store := o.deed&noteKind == noteWrite
	e := d.mem.entry(c, key)
	if e == nil {
		d.supersede(c, &d.classes[x.class], headBytes, key&headChain)
		i := d.mem.put(c, entry{head: key, warp: x.warp, lanes: o.lanes, clock: x.clock, exec: x.exec})
		e = &d.mem.of(c)[i]
		if store {
			e.value = o.seen
		}
		return
	}
	if store && e.value != o.seen {
		e.head |= headMixed
	}
	c.last = 0
	d.mem.add(e, &d.classes[x.class], x.warp, group{o.lanes, x.clock, x.exec}, false)
}

// denoteLoc makes the loc of a word what the notes of its atomics say.
func (d *Detector) denoteLoc(l *launch, p *page, notes []note, addr uint64) {
	if wrote, last := lastWrite(notes); wrote {
		d.denoteWrite(l, p, addr, d.mem.notebook.deeds.at(last.deed>>deedShift), bits.TrailingZeros32(last.seen))
	}
	x := p.findLoc(addr, cellBytes)
	for i := range notes {
		d.denoteSeen(l, x, &notes[i])
	}
}

// denoteWrite makes the loc of a word say that the last atomic that wrote it was a lane's in deed y.
func (d *Detector) denoteWrite(l *launch, p *page, addr uint64, y deed, lane int) {
	x := p.findLoc(addr, cellBytes)
	if x == nil {
		x = p.newLoc(addr, cellBytes)
		d.breakChain(p, addr, cellBytes)
	}
	x.valid = 1<<cellBytes - 1
	p.overwrite(addr, cellBytes, x)
	x.stamp++
	x.launch, x.block, x.warp, x.lane, x.wide = l, y.warp/l.wpb, y.warp, lane, d.classes[y.class].side.Wide
	x.first = observer{l, y.warp, lane, y.clock}
	clear(x.observers)
	x.observers = x.observers[:0]
}

// lastWrite says whether an atomic of a word wrote, and gives the note of the last that did.
func lastWrite(notes []note) (wrote bool, last *note) {
	for i := range notes {
		if o := &notes[i]; o.deed&noteWrite != 0 {
			wrote = true
			if o.seen != 0 {
				last = o
			}
		}
	}
	return wrote, last
}

func (d *Detector) denoteSeen(l *launch, x *loc, o *note) {
	if o.deed&noteWrite != 0 {
		return
	}
	y := d.mem.notebook.deeds.at(o.deed >> deedShift)
	for m := o.seen; m != 0; m &= m - 1 {
		x.sees(l, y.warp, bits.TrailingZeros32(m), y.clock)
	}
}

// denoteSpan denotes the lines of p that have a part of [addr, end).
func (d *Detector) denoteSpan(p *page, addr, end uint64) {
	if p.notes == [pageLines]uint32{} {
		return
	}
	end = min(end, p.addr+pageBytes)
	for at := addr &^ (lineBytes - 1); at < end; at += lineBytes {
		d.denote(p, at%pageBytes/lineBytes)
	}
}
