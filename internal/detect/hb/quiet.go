package hb

import "math/bits"

// quiet is words of a page whose current value launch wrote by atomics of gpu scope that released nothing. The launch has
// ended and is only known as a whole: quiets take the place of a loc for each word.
//
// Later launches that observe a quiet value need not be kept. Those that note words of the page begin after all of its
// cold accesses, the write among them, so that nobody knows of them and not of the write. For others there is a loc.
type quiet struct {
	launch *launch
	words  [pageBytes / cellBytes / 64]uint64
}

// quietAt says that an aligned word is quiet.
func (p *page) quietAt(addr uint64) bool {
	i := addr % pageBytes / cellBytes
	for j := range p.quiets {
		if p.quiets[j].words[i/64]>>(i%64)&1 != 0 {
			return true
		}
	}
	return false
}

// quieten notes that a launch wrote the current value of a word.
func (p *page) quieten(l *launch, addr uint64) {
	p.rouse(addr)
	i := addr % pageBytes / cellBytes
	p.quietOf(l).words[i/64] |= 1 << (i % 64)
}

func (p *page) quietOf(l *launch) *quiet {
	for j := range p.quiets {
		if p.quiets[j].launch == l {
			return &p.quiets[j]
		}
	}
	keep := p.quiets[:0]
	for _, q := range p.quiets {
		if q.words != [4]uint64{} {
			keep = append(keep, q)
		}
	}
	p.quiets = append(keep, quiet{launch: l})
	return &p.quiets[len(p.quiets)-1]
}

// rouse forgets a quiet word.
func (p *page) rouse(addr uint64) {
	i := addr % pageBytes / cellBytes
	for j := range p.quiets {
		p.quiets[j].words[i/64] &^= 1 << (i % 64)
	}
}

// awaken makes the loc of a quiet word.
func (p *page) awaken(addr uint64) {
	if !p.quietAt(addr) {
		return
	}
	i := addr % pageBytes / cellBytes
	x := p.newLoc(addr, cellBytes)
	x.valid = 1<<cellBytes - 1
	x.wide = true
	const never = ^uint32(0) // no thread is known by itself
	for j := range p.quiets {
		if q := &p.quiets[j]; q.words[i/64]>>(i%64)&1 != 0 {
			x.launch = q.launch
			x.first = observer{q.launch, 0, 0, never}
		}
	}
	p.rouse(addr)
}

// overwriteQuiet tells the quiet words that [addr, addr+size) was written.
func (p *page) overwriteQuiet(addr, size uint64) {
	for at := addr &^ (cellBytes - 1); at < addr+size; at += cellBytes {
		if at < addr || at+cellBytes > addr+size {
			p.awaken(at)
		} else {
			p.rouse(at)
		}
	}
}

// valued says that something of the page was written strongly.
func (p *page) valued() bool { return p.locs != nil || len(p.quiets) > 0 }

// coolNotes gathers the notes of a launch in a page, for its cold accesses, and lets the words that its atomics
// wrote be quiet.
func (d *Detector) coolNotes(l *launch, p *page) {
	if p.noter != l.info.ID {
		return
	}
	p.noter = 0
	t := &d.mem.notebook
	for i, id := range p.notes {
		if id == 0 {
			continue
		}
		if id&rollBit != 0 {
			d.coolRoll(l, p, i)
			continue
		}
		n := t.lines.at(id)
		for j := range n {
			if n[j] != 0 {
				d.coolCell(l, p, &n[j], i*lineCells+j)
			}
		}
		t.lines.drop(id)
		p.notes[i] = 0
	}
}

// coolCell gathers the notes of a cell of a page, and forgets them.
func (d *Detector) coolCell(l *launch, p *page, c *noteCell, cell int) {
	t := &d.mem.notebook
	wrote, atomics := uint32(0), uint32(0)
	if c.ones() {
		one := [1]noteCell{*c}
		list := one[:]
		if *c&manyNotes != 0 {
			list = t.list(*c)
		}
		for _, x := range list {
			if x == 0 {
				break
			}
			wrote |= x.kind()
			d.coolNote(uint32(x&^manyNotes>>8), x.kind(), uint32(x&31), cell)
		}
		atomics = list[0].kind()
	} else {
		notes := t.chunk(*c)
		for i := range notes {
			o := &notes[i]
			if o.deed == 0 {
				break
			}
			wrote |= o.deed
			d.coolNote(o.deed>>deedShift, o.deed&noteKind, uint32(bits.TrailingZeros32(o.lanes)), cell)
		}
		atomics = notes[0].deed
	}
	if atomics&noteAtomics != 0 {
		addr := p.addr + uint64(cell)*cellBytes
		if wrote&noteWrite != 0 {
			d.hushWrite(l, p, addr)
		} else if x := p.locAt(addr, cellBytes); x != nil {
			var room [1 << maxOnes]note
			notes := t.of(*c, &room)
			for i := range notes {
				d.denoteSeen(l, x, &notes[i])
			}
		}
	}
	t.free(c)
}

// coolNote gathers the access of a lane to a cell by a deed, given by its number, of a kind.
func (d *Detector) coolNote(id, kind, lane uint32, cell int) {
	x := d.mem.notebook.deeds.at(id)
	d.gatheredOf(x.class, headBytes, kind == noteAtomics|noteWrite).put(cell, uint64(x.warp)*32+uint64(lane))
}

// hushWrite lets a word be quiet that atomics of a launch wrote.
func (d *Detector) hushWrite(l *launch, p *page, addr uint64) {
	if len(p.cold) > 0 && p.locAt(addr, cellBytes) == nil && !p.quietAt(addr) {
		d.breakChain(p, addr, cellBytes)
	}
	p.overwrite(addr, cellBytes, nil)
	p.quieten(l, addr)
}
