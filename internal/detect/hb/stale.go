package hb

import (
	"cmp"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// Notes stay when their launch ends, for most programs go on with the same words: the next launch adds its own where the older
// ones are known to be over before it begins, and so race with nothing that it does. They are stale then, until they
// have to become cold accesses: where an access does not go with them, where a launch or the host comes that need not be after them, or
// when many launches linger.

// manyLingers is how many launches may have notes after their end.
const manyLingers = 16

// stay keeps a launch that has ended as long as it has notes.
func (d *Detector) stay(l *launch) {
	d.lingers = append(d.lingers, l)
	if len(d.lingers) <= d.linger {
		return
	}
	for _, o := range d.lingers {
		for _, p := range o.pages {
			d.coolEnded(p)
		}
	}
	for i, o := range d.lingers {
		d.finish(o)
		d.lingers[i] = nil
	}
	d.lingers = d.lingers[:0]
}

// inherit lets a launch that touches a page for the first time, of a block, add its notes to older ones.
func (d *Detector) inherit(p *page, blk *block) {
	o := d.launches[p.noter]
	switch {
	case o.end == 0 || o.published:
	case d.notesBefore(p, blk.start):
		p.noter, p.open, p.stale = blk.info.ID, false, true
	default:
		d.coolNotes(p, 0)
	}
}

// notesBefore says that the notes of a page are of launches that have ended and f includes.
func (d *Detector) notesBefore(p *page, f *clock.Foreign) bool {
	o := d.launches[p.noter]
	return o != nil && !o.published && over(o, f)
}

// coolStale makes cold accesses of the stale notes of a page.
func (d *Detector) coolStale(p *page) {
	if p.stale {
		d.coolNotes(p, p.noter)
		d.act.locs = d.act.locs || p.valued()
	}
}

// coolEnded does so with the notes of all launches that linger.
func (d *Detector) coolEnded(p *page) {
	if o := d.launches[p.noter]; p.noter == 0 || o.end != 0 && !o.published {
		d.coolNotes(p, 0)
	} else {
		d.coolStale(p)
	}
}

// coolNotes makes cold accesses of the notes of a page but those of a launch, and lets the words that their atomics wrote be
// quiet.
func (d *Detector) coolNotes(p *page, but uint32) {
	p.stale = false
	if p.noter != but {
		p.noter, p.open = 0, false
	}
	t := &d.mem.notebook
	d.cooling = d.cooling[:0]
	for i, id := range p.notes {
		if id == 0 || id&rollBit != 0 {
			continue
		}
		n, left := t.lines.at(id), false
		for j := range n {
			if n[j] != 0 {
				d.coolCell(p, &n[j], i*lineCells+j, but)
				left = left || n[j] != 0
			}
		}
		if !left {
			t.lines.drop(id)
			p.notes[i] = 0
		}
	}
	slices.SortStableFunc(d.cooling, func(x, y *gathered) int {
		return cmp.Compare(d.classes[x.class].launch.info.ID, d.classes[y.class].launch.info.ID)
	})
	d.addCooling(p)
}

// coolCell gathers the notes of a cell of a page but those of a launch, and forgets them.
func (d *Detector) coolCell(p *page, c *noteCell, cell int, but uint32) {
	t := &d.mem.notebook
	var room [1 << maxNotesShared]note
	cooled := room[:0]
	switch {
	case c.ones():
		one := [1]noteCell{*c}
		list := one[:]
		if *c&manyNotes != 0 {
			list = t.list(*c)
		}
		n := 0
		for _, x := range list {
			if x == 0 {
				break
			}
			if t.deeds.launch(x.deed()) == but {
				list[n] = x
				n++
				continue
			}
			cooled = append(cooled, x.one())
		}
		clear(list[n:])
		if n == 0 {
			t.free(c)
			*c = 0
		}
	default:
		notes := t.chunk(*c)
		n := 0
		for _, x := range notes {
			if x.deed == 0 {
				break
			}
			if t.deeds.launch(x.deed>>deedShift) == but {
				notes[n] = x
				n++
				continue
			}
			cooled = append(cooled, x)
		}
		clear(notes[n:])
		if n == 0 {
			t.free(c)
		}
	}
	d.gatherNotes(p, cooled, cell)
}

// gatherNotes gathers notes of a cell of a page.
func (d *Detector) gatherNotes(p *page, notes []note, cell int) {
	t := &d.mem.notebook
	var wrote *launch // the last one to
	for i := range notes {
		o := &notes[i]
		x := t.deeds.at(o.deed >> deedShift)
		chain := o.deed&noteKind == noteAtomics|noteWrite
		d.gatheredOf(x.class, headBytes, chain).put(cell, uint64(x.warp)*32+uint64(bits.TrailingZeros32(o.lanes)))
		if l := d.classes[x.class].launch; chain && (wrote == nil || l.info.ID > wrote.info.ID) {
			wrote = l
		}
	}
	addr := p.addr + uint64(cell)*cellBytes
	if wrote != nil {
		d.hushWrite(wrote, p, addr)
	} else if p.locs != nil && len(notes) > 0 && notes[0].deed&noteAtomics != 0 {
		if x := p.locAt(addr, cellBytes); x != nil {
			for i := range notes {
				d.denoteSeen(d.classes[t.deeds.class(notes[i].deed>>deedShift)].launch, x, &notes[i])
			}
		}
	}
}

// thin takes those of a full list of notes out that one, or one of a later launch among them, stands for as a cold access, and
// tells how many stay.
func (d *Detector) thin(list []noteCell, one noteCell) (n int) {
	for i, x := range list {
		if !d.outdated(x, list[i+1:], one) {
			list[n] = x
			n++
		}
	}
	clear(list[n:])
	return n
}

// outdated says that there is a note by the same instruction, in a later launch, among those after x or in one.
func (d *Detector) outdated(x noteCell, after []noteCell, one noteCell) bool {
	t := &d.mem.notebook.deeds
	l := t.launch(x.deed())
	if l == d.act.e.Launch {
		return false
	}
	key := &d.classes[t.class(x.deed())].key
	same := func(y noteCell) bool {
		return x.kind() == y.kind() && t.launch(y.deed()) != l && d.classes[t.class(y.deed())].key == *key
	}
	return same(one) || slices.ContainsFunc(after, same)
}
