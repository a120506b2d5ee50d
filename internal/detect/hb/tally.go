package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// A line of shared memory on which warps count, by relaxed read-modify-writes of many lanes at once, has its notes in
// a tally: for each deed a row of words, each with the lanes that did it there. So a deed is looked for once an access
// and line, and not once a lane. A tally says what notes say, and becomes them where anything else happens.

// tally is the notes of a line of shared memory that nothing but relaxed read-modify-writes accessed.
type tally struct {
	n     int
	deeds [maxTally]uint32 // as note.deed
	warps [maxTally]uint32 // of the deeds
	rows  [maxTally]uint32 // numbers of tallyRows
	// last is, by word, who wrote its current value: number of the deed in the tally<<5 | lane, plus one; 0: nobody wrote.
	last [lineCells]uint16
}

// tallyBit in page.notes tells the number of a tally from that of a noteLine.
const tallyBit uint32 = 1 << 31

// maxTally is how many deeds a tally has at most: as many as a word may have notes.
const maxTally = 1 << maxNotesShared

// tallyRow is the lanes that did a deed, by word.
type tallyRow [lineCells]uint32

// manyLanes is of how many lanes an access is at least that makes a tally.
const manyLanes = 8

// tallied is a line for a deed.
type tallied struct {
	line  uint64 // number of the line, plus one; 0: none
	tally *tally
	row   *tallyRow
	code  uint16 // tally.last of lane 0
}

// talliedLines are lines that a deed was noted in, each in the place that its number modulo their count gives, as long as
// no tally is dropped. Where a barrier lets shared memory start anew, it begins an epoch too, and what warps do is another deed.
type talliedLines struct {
	this    uint32 // as note.deed
	dropped uint64 // notebook.dropped
	of      [32]tallied
}

// warpsTallied is of how many warps talliedLines are kept.
const warpsTallied = 16

// tally performs the access of a class that tallies note, lane by lane, and gives the lanes for which notes do it.
func (d *Detector) tally(b *event.Batch, e *event.Event, w *warp, met *handing) (rest uint32) {
	a := &d.act
	if w.each != nil || !w.quietAll(e.Mask) {
		return e.Mask
	}
	a.view = &w.same
	this := d.deedOf()<<deedShift | a.class.notes&noteKind
	var room [32]uint64
	addrs := room[:bits.OnesCount32(e.Mask)]
	if e.Flags&event.FlagScattered != 0 {
		addrs = b.Addrs[e.Side:][:len(addrs)]
	} else {
		for i, m := 0, e.Mask; m != 0; i, m = i+1, m&(m-1) {
			addrs[i] = b.AddrOf(e, bits.TrailingZeros32(m))
		}
	}
	lines := d.talliedBy(e.Warp, this)
	var was [32]uint16 // tally.last
	rest = e.Mask
	for i, addr := range addrs {
		t := &lines.of[addr/lineBytes%uint64(len(lines.of))]
		if t.line != addr/lineBytes+1 && !d.tallyOf(t, addr, this) || addr%cellBytes != 0 {
			break
		}
		lane := bits.TrailingZeros32(rest)
		at := addr % lineBytes / cellBytes
		t.row[at] |= rest & -rest
		was[i&31] = t.tally.last[at]
		t.tally.last[at] = t.code + uint16(lane)
		rest &= rest - 1
	}
	if !a.class.discards {
		d.lastMet(e, addrs, &was, e.Mask&^rest, met)
	}
	d.noteLocks(b, e, w, e.Mask&^rest)
	return rest
}

// talliedBy gives the lines of a warp's deed.
func (d *Detector) talliedBy(warp, this uint32) *talliedLines {
	k := &d.mem.notebook
	at := &d.tallied[warp%warpsTallied]
	if *at == nil {
		*at = new(talliedLines)
	}
	if x := *at; x.this != this || x.dropped != k.dropped {
		*x = talliedLines{this: this, dropped: k.dropped}
	}
	return *at
}

// lastMet notes the hand-over that the last of lanes saw of those that did. The lanes counted at addrs, where others of tallies
// were before.
func (d *Detector) lastMet(e *event.Event, addrs []uint64, was *[32]uint16, lanes uint32, met *handing) {
	for lanes != 0 {
		lane := 31 - bits.LeadingZeros32(lanes)
		lanes &^= 1 << lane
		i := bits.OnesCount32(lanes)
		if was[i] == 0 {
			continue
		}
		t := d.mem.notebook.tallies.at(d.act.page(addrs[i]).notes[addrs[i]%pageBytes/lineBytes] &^ tallyBit)
		if int(was[i]-1)&31 != lane || t.warps[(was[i]-1)>>5] != e.Warp {
			*met = handing{addrs[i], lane, d.act.view.clock}
			return
		}
	}
}

// tallyOf makes t the line of addr, which may become one that has a tally. It says false if it has not.
func (d *Detector) tallyOf(t *tallied, addr uint64, this uint32) bool {
	a := &d.act
	k := &d.mem.notebook
	p, i := a.page(addr), addr%pageBytes/lineBytes
	id := p.notes[i]
	switch {
	case id&tallyBit != 0:
	case id != 0 || p.valued() || bits.OnesCount32(a.e.Mask) < d.manyLanes || d.cellsOnly || p.expanded(i) != nil || p.marks[i].form != 0:
		return false
	default:
		d.beginPage(p)
		id = k.tallies.add() | tallyBit
		p.notes[i] = id
	}
	x := k.tallies.at(id &^ tallyBit)
	at := 0
	for at < x.n && x.deeds[at] != this && (x.warps[at] != a.warp || !k.same(x.deeds[at], this)) {
		at++
	}
	if at == maxTally {
		d.untally(p, i)
		return false
	}
	if at == x.n {
		x.deeds[at], x.warps[at], x.rows[at] = this, a.warp, k.rows.add()
		x.n++
	}
	*t = tallied{addr/lineBytes + 1, x, k.rows.at(x.rows[at]), uint16(at)<<5 + 1}
	return true
}

// same says that notes of two deeds would say the same.
func (t *notebook) same(x, y uint32) bool {
	return (x^y)&noteKind == 0 && t.deeds.at(x>>deedShift) == t.deeds.at(y>>deedShift)
}

// untally gives line i of a page, which has a tally, the notes that it stands for.
func (d *Detector) untally(p *page, i uint64) {
	t := &d.mem.notebook
	x := t.tallies.at(p.notes[i] &^ tallyBit)
	id := t.lines.add()
	n := t.lines.at(id)
	for j := range x.n {
		row := t.rows.at(x.rows[j])
		for c, lanes := range row {
			if lanes == 0 {
				continue
			}
			o := t.room(&n[c], maxNotesShared)
			*o = note{deed: x.deeds[j], lanes: lanes}
			if last := x.last[c] - 1; int(last>>5) == j {
				o.seen = 1 << (last & 31)
			}
		}
	}
	t.dropTally(p, i)
	p.notes[i] = id
}

// dropTally forgets the tally of line i of a page.
func (t *notebook) dropTally(p *page, i uint64) {
	id := p.notes[i] &^ tallyBit
	x := t.tallies.at(id)
	for _, row := range x.rows[:x.n] {
		t.rows.drop(row)
	}
	t.tallies.drop(id)
	t.dropped++
	p.notes[i] = 0
}

// quietAll says that strong writes by lanes release nothing.
func (w *warp) quietAll(lanes uint32) bool {
	if w.syncs == nil {
		return w.same.published.grid == nil
	}
	for ; lanes != 0; lanes &= lanes - 1 {
		if !w.quiet(bits.TrailingZeros32(lanes)) {
			return false
		}
	}
	return true
}
