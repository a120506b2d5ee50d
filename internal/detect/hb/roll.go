package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// A line of global memory on which warp after warp counts, each in lane order or all of its lanes at one word, has a
// roll in place of notes: the warps stand in it once for all words.

// roll is the relaxed read-modify-writes of one class to a line, that notes could say too.
type roll struct {
	class uint32
	one   bool   // all lanes at one word; else the same lanes each time
	shift int8   // word of a lane, less the lane unless one
	cells uint32 // the words
	lane  uint8  // of the last access, if one
	// The last access.
	warp uint32
	group
	// all is every access, nil while they are one group. No one else has it.
	all   *set
	owner uint64
}

// rollBit in page.notes tells the number of a roll.
const rollBit uint32 = 1 << 30

// roll performs the access of a class that rolls note as far as its lanes are in order, and gives the lanes for which notes
// do it.
func (d *Detector) roll(e *event.Event, w *warp, met *handing) (rest uint32) {
	a := &d.act
	one := e.Stride == 0 || e.Mask&(e.Mask-1) == 0
	if !e.Affine() || !one && e.Stride != cellBytes || e.Addr%cellBytes != 0 || w.each != nil || !w.quietAll(e.Mask) {
		return e.Mask
	}
	a.view = &w.same
	if one {
		if !d.rolled(one, e.Mask, e.Addr, met) {
			return e.Mask
		}
		return 0
	}
	for m := e.Mask; m != 0; {
		low := bits.TrailingZeros32(m)
		addr := e.Addr + uint64(low-bits.TrailingZeros32(e.Mask))*cellBytes
		lanes := m & uint32(1<<(uint64(low)+lineCells-addr%lineBytes/cellBytes)-1)
		if !d.rolled(one, lanes, addr, met) {
			rest |= lanes
		}
		m &^= lanes
	}
	return rest
}

// rolled notes the access of lanes to a line, of which the lowest, or all, access the word at addr. It says false, having
// done nothing, if it cannot.
func (d *Detector) rolled(one bool, lanes uint32, addr uint64, met *handing) bool {
	a := &d.act
	low := bits.TrailingZeros32(lanes)
	at := int8(addr % lineBytes / cellBytes)
	x := roll{class: a.id, one: one, shift: at, cells: 1 << at, lane: uint8(31 - bits.LeadingZeros32(lanes))}
	if !one {
		x.shift -= int8(low)
		x.cells = lanes >> low << at
	}
	x.warp, x.group = a.warp, group{lanes, a.view.clock, a.exec}
	p := a.page(addr)
	i := addr % pageBytes / lineBytes
	if p.stale && p.notes[i] != 0 && bits.OnesCount32(lanes) >= manyLanes {
		d.coolStale(p) // the line may have a roll again
	}
	if len(p.cold) > 0 && p.warmed != a.blk.info.ID && !d.allKnown(p, a.blk) {
		return false
	}
	if p.notes[i] == 0 {
		if !d.beginRoll(p, i, &x) {
			return false
		}
		if one && lanes&(lanes-1) != 0 && !a.class.discards {
			*met = handing{addr, int(x.lane), a.view.clock}
		}
		return true
	}
	if p.notes[i]&rollBit == 0 || p.noter != a.blk.info.ID {
		return false
	}
	o := d.mem.notebook.rolls.at(p.notes[i] &^ rollBit)
	if o.class != x.class || o.one != one || o.shift != x.shift || o.cells != x.cells {
		return false
	}
	if !a.class.discards {
		switch {
		case !one && o.warp != x.warp:
			*met = handing{addr + uint64(bits.OnesCount32(x.cells>>at)-1)*cellBytes, int(x.lane), a.view.clock}
		case one && (o.warp != x.warp || o.lane != x.lane || lanes&(lanes-1) != 0):
			*met = handing{addr, int(x.lane), a.view.clock}
		}
	}
	d.enrol(o, &x)
	return true
}

// beginRoll gives line i of p the roll x. It says false, having done nothing, if the line must have another form.
func (d *Detector) beginRoll(p *page, i uint64, x *roll) bool {
	a := &d.act
	if d.cellsOnly || p.marks[i].form != 0 {
		return false
	}
	if l := p.expanded(i); l != nil && !d.past(l) {
		return false
	}
	if p.valued() {
		for m := x.cells; m != 0; m &= m - 1 {
			a.lane = int(x.lane)
			if _, ok := d.counts(p, p.addr+i*lineBytes+uint64(bits.TrailingZeros32(m))*cellBytes); !ok {
				return false
			}
		}
	}
	d.beginPage(p)
	id := d.mem.notebook.rolls.add()
	*d.mem.notebook.rolls.at(id) = *x
	p.notes[i] = id | rollBit
	return true
}

// enrol adds to o an access x.
func (d *Detector) enrol(o, x *roll) {
	depth := d.act.blk.sdepth
	switch {
	case o.all == nil && o.warp == x.warp && o.merge(x.group):
		o.lane = x.lane
		return
	case o.all == nil:
		o.owner = d.mem.sets.serial()
		o.all = o.all.add(depth, o.warp, o.group, o.owner).add(depth, x.warp, x.group, o.owner)
	case !o.all.holds(depth, x.warp, x.group):
		o.all = o.all.add(depth, x.warp, x.group, o.owner)
	}
	o.warp, o.group, o.lane = x.warp, x.group, x.lane
}

// walk calls f for the groups of a roll of a launch, until it says false.
func (o *roll) walk(l *launch, f func(warp uint32, g group) bool) {
	if o.all == nil {
		f(o.warp, o.group)
		return
	}
	o.all.walk(l.sdepth, 0, nil, f)
}

// at gives those of lanes that access a word, and the lane that did so last.
func (o *roll) at(word int, lanes uint32) (here uint32, last int) {
	if o.one {
		return lanes, int(o.lane)
	}
	last = word - int(o.shift)
	return lanes & (1 << last), last
}

// unroll gives line i of a page, which has a roll, the notes that it stands for, or if these are too many cells and locs.
func (d *Detector) unroll(p *page, i uint64) {
	t := &d.mem.notebook
	o := *t.rolls.at(p.notes[i] &^ rollBit)
	of := d.launches[p.noter]
	n := 0
	o.walk(of, func(uint32, group) bool {
		n++
		return n <= 1<<maxNotesGlobal
	})
	if n > 1<<maxNotesGlobal {
		d.denote(p, i)
		return
	}
	t.dropRoll(p, i)
	p.notes[i] = t.lines.add()
	line := t.lines.at(p.notes[i])
	o.walk(of, func(warp uint32, g group) bool {
		this := t.deed(of, deed{o.class, warp, g.clock, g.exec})<<deedShift | noteAtomics | noteWrite
		for m := o.cells; m != 0; m &= m - 1 {
			word := bits.TrailingZeros32(m)
			here, last := o.at(word, g.lanes)
			if here == 0 {
				continue
			}
			x := t.room(&line[word], maxNotesGlobal)
			*x = note{deed: this, lanes: here}
			if warp == o.warp && g.clock == o.clock && here>>last&1 != 0 {
				x.seen = 1 << last
			}
		}
		return true
	})
}

// denoteRoll gives line i of a page cells and locs in place of a roll.
func (d *Detector) denoteRoll(p *page, i uint64) {
	t := &d.mem.notebook
	o := *t.rolls.at(p.notes[i] &^ rollBit)
	of := d.launches[p.noter]
	l := d.mem.line(p, i)
	for m := o.cells; m != 0; m &= m - 1 {
		word := bits.TrailingZeros32(m)
		_, last := o.at(word, 0)
		d.denoteWrite(of, p, p.addr+i*lineBytes+uint64(word)*cellBytes, deed{o.class, o.warp, o.clock, o.exec}, last)
		o.walk(of, func(warp uint32, g group) bool {
			if here, _ := o.at(word, g.lanes); here != 0 {
				d.denoteEntry(&l.cells[word], deed{o.class, warp, g.clock, g.exec}, &note{deed: noteAtomics | noteWrite, lanes: here})
			}
			return true
		})
	}
	t.dropRoll(p, i)
}

// dropRoll forgets the roll of line i of a page.
func (t *notebook) dropRoll(p *page, i uint64) {
	id := p.notes[i] &^ rollBit
	*t.rolls.at(id) = roll{}
	t.rolls.drop(id)
	p.notes[i] = 0
}

// coolRolls is coolRoll for all rolls of a launch in a page.
func (d *Detector) coolRolls(l *launch, p *page) {
	for i, id := range p.notes {
		if id&rollBit != 0 && p.noter == l.info.ID {
			d.coolRoll(l, p, i)
		}
	}
}

// coolRoll gathers the roll of line i of a page for its cold accesses, and lets its words be quiet.
func (d *Detector) coolRoll(l *launch, p *page, i int) {
	o := d.mem.notebook.rolls.at(p.notes[i] &^ rollBit)
	g := d.gatheredOf(o.class, headBytes, true)
	for m := o.cells; m != 0; m &= m - 1 {
		word := bits.TrailingZeros32(m)
		_, last := o.at(word, 0)
		g.put(i*lineCells+word, uint64(o.warp)*32+uint64(last))
		d.hushWrite(l, p, p.addr+uint64(i*lineCells+word)*cellBytes)
	}
	d.mem.notebook.dropRoll(p, uint64(i))
}
