package hb

import "math/bits"

// denote gives line i of a page cells and locs in place of notes.
func (d *Detector) denote(p *page, i uint64) {
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
	for j := range n {
		c := &n[j]
		if c.deed == 0 {
			continue
		}
		if c.deed&noteAtomics != 0 {
			d.denoteLoc(of, p, c, p.addr+i*lineBytes+uint64(j)*cellBytes)
		}
		d.denoteEntry(l, &l.cells[j], *t.deeds.at(c.deed >> deedShift), &c.note)
		rest := t.rest(c)
		for r := range rest {
			if rest[r].deed == 0 {
				break
			}
			d.denoteEntry(l, &l.cells[j], *t.deeds.at(rest[r].deed >> deedShift), &rest[r])
		}
	}
	t.drop(p, i)
}

// denoteEntry records a note of deed x as an entry.
func (d *Detector) denoteEntry(l *line, c *cell, x deed, o *note) {
	key := x.class<<headShift | headBytes
	if o.deed&noteKind == noteAtomics|noteWrite {
		key |= headChain
	}
	store := o.deed&noteKind == noteWrite
	e := d.mem.entry(c, key)
	if e == nil {
		d.supersede(c, d.classes[x.class], headBytes, key&headChain)
		e = d.mem.slot(l, c)
		*e = entry{head: key, warp: x.warp, lanes: o.lanes, clock: x.clock, exec: x.exec}
		if store {
			e.value = o.seen
		}
		return
	}
	if store && e.value != o.seen {
		e.head |= headMixed
	}
	d.mem.add(l, e, &d.classes[x.class], x.warp, group{o.lanes, x.clock, x.exec}, false)
}

// denoteLoc makes the loc of a word what the notes of its atomics say.
func (d *Detector) denoteLoc(l *launch, p *page, c *noteCell, addr uint64) {
	rest := d.mem.notebook.rest(c)
	wrote, last := lastWrite(&c.note, rest)
	if wrote {
		d.denoteWrite(l, p, addr, *d.mem.notebook.deeds.at(last.deed >> deedShift), bits.TrailingZeros32(last.seen))
	}
	x := p.findLoc(addr, cellBytes)
	d.denoteSeen(l, x, &c.note)
	for i := range rest {
		if rest[i].deed == 0 {
			break
		}
		d.denoteSeen(l, x, &rest[i])
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
func lastWrite(first *note, rest []note) (wrote bool, last *note) {
	look := func(o *note) {
		if o.deed&noteWrite != 0 {
			wrote = true
			if o.seen != 0 {
				last = o
			}
		}
	}
	look(first)
	for i := range rest {
		look(&rest[i])
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
