package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Notes are the third form of a line, beside packs and cells: what scattered accesses of one launch did, written down word by
// word without being judged, because it is seen at once that they race with nothing noted there and synchronise with
// nothing. That is so
//
//   - of weak loads, while nobody wrote the word;
//   - of weak accesses by one thread alone;
//   - of atomics of a word that are all morally strong, where no pattern begins or ends: nothing was released by the thread
//     or at the word, and the operation is relaxed.
//
// Warps that count together have tallies and rolls in place of notes word by word (tally.go, roll.go).
//
// A line has notes or packs or cells, never two of them, but for cells of launches that were over before that of the notes
// began. Where an access is of another sort, the line's notes are performed as the entries and locs that they stand for
// (denote); most never are, but end with a barrier or stay behind their launch until later ones do the same (stale.go).

// note is lanes that accessed a word by a deed.
type note struct {
	deed  uint32 // number of the deed<<2 | what kind of access; 0: none
	lanes uint32
	// seen is, of a plain store, what it wrote; of atomics, those of lanes that observed the current value, of a write the lane
	// that made it. While no note of an atomic has any, nobody wrote the word strongly.
	seen uint32
}

// Kinds of accesses that are noted.
const (
	noteWrite   uint32 = 1 << 0
	noteAtomics uint32 = 1 << 1
	noteKind    uint32 = 3
	deedShift          = 2
)

// noteCell is the notes of a word: 0 for none, one of one lane as number of the deed<<8 | kind<<6 | seen (its lane)<<5 | lane, or
// manyNotes | log of the length of a chunk of a slab<<28 | onesList or nothing | its number.
type noteCell uint32

const (
	manyNotes  noteCell = 1 << 31
	maxOneDeed          = 1 << 23 // bounds the numbers of deeds that fit
)

// one gives a note of a lane as a cell; 0 when it does not fit.
func (t *notebook) one(deed uint32, seen bool, lane int) noteCell {
	if deed>>deedShift >= t.ones {
		return 0
	}
	c := noteCell(deed>>deedShift)<<8 | noteCell(deed&noteKind)<<6 | noteCell(lane)
	if seen {
		c |= 1 << 5
	}
	return c
}

// one gives the only note of a cell.
func (c noteCell) one() note {
	lanes := uint32(1) << (c & 31)
	return note{deed: uint32(c>>8)<<deedShift | c.kind(), lanes: lanes, seen: lanes * uint32(c>>5&1)}
}

// noteLine is the notes of a line.
type noteLine [lineCells]noteCell

// Logs of the most notes that a word may have, in shared and in global memory, and of weak accesses.
const (
	maxNotesShared = 5
	maxNotesGlobal = 4
	maxNotesWeak   = 6
)

// deedOf gives the number of what the actor does, as the event's other lanes of the same epoch.
func (d *Detector) deedOf() uint32 {
	a := &d.act
	if a.deed == 0 || a.deedClock != a.view.clock {
		l := a.blk.launch
		// To sweep goes through all notes.
		if l.deeds.n >= max(l.deeds.many, manyDeeds, min(4*int(d.mem.notebook.lines.used), maxOneDeed/2)) {
			d.sweep(l)
		}
		a.deed = d.mem.notebook.deed(l, deed{a.id, a.warp, a.view.clock, a.exec})
		a.deedClock = a.view.clock
	}
	return a.deed
}

// notesFor gives the notes of line i of p, for the actor to note something there, nil when the line has another form or
// there are other reasons against it.
func (d *Detector) notesFor(p *page, i uint64) *noteLine {
	a := &d.act
	if len(p.cold) > 0 && p.warmed != a.blk.info.ID && !d.allKnown(p, a.blk) {
		return nil
	}
	if p.notes[i] != 0 {
		if p.noter != a.blk.info.ID {
			return nil
		}
		switch {
		case p.notes[i]&tallyBit != 0:
			d.untally(p, i)
		case p.notes[i]&rollBit != 0:
			if d.unroll(p, i); p.notes[i] == 0 {
				return nil
			}
		}
		p.open = true
		return d.mem.notebook.lines.at(p.notes[i])
	}
	if d.cellsOnly {
		return nil
	}
	if l := p.expanded(i); l != nil && !d.past(l) {
		return nil
	}
	if p.marks[i].form != 0 {
		return d.notePacks(p, i)
	}
	return d.beginNotes(p, i)
}

// past says that all cells of a line hold accesses of launches that were over before the actor's began.
func (d *Detector) past(l *line) bool {
	b := d.act.blk
	if l.user == b.info.ID {
		return false
	}
	for i := range l.cells {
		es := d.mem.of(&l.cells[i])
		for j := range es {
			if h := es[j].head; h != 0 {
				if k := &d.classes[h>>headShift]; k.launch == b.launch || !over(k.launch, b.start) {
					return false
				}
			}
		}
	}
	return true
}

// beginNotes makes line i of a page one with notes of the actor's launch. All notes of a page are of one launch.
func (d *Detector) beginNotes(p *page, i uint64) *noteLine {
	d.beginPage(p)
	t := &d.mem.notebook
	p.notes[i] = t.lines.add()
	return t.lines.at(p.notes[i])
}

// beginPage makes the notes of a page those of the actor's launch.
func (d *Detector) beginPage(p *page) {
	if id := d.act.blk.info.ID; p.noter != id {
		d.denoteSpan(p, p.addr, p.addr+pageBytes)
		p.noter, p.open, p.stale = id, false, false
	}
}

// notePacks gives line i of p notes in place of packs. It gives nil, having done nothing, when not all are loads of the
// actor's launch by one warp each.
func (d *Detector) notePacks(p *page, i uint64) *noteLine {
	l := d.act.blk.launch
	var buf [2 * maxPacks]pack
	packs := d.mem.packsOf(p.marks[i], buf[:0])
	for j := range packs {
		x := &packs[j]
		if k := &d.classes[x.head>>headShift]; k.launch != l || k.notes != noteLoads || x.head&refKind != 0 {
			return nil
		}
	}
	t := &d.mem.notebook
	n := d.beginNotes(p, i)
	for j := range packs {
		x := &packs[j]
		this := t.deed(l, deed{x.head >> headShift, x.warp, x.clock, x.exec}) << deedShift
		size := d.classes[x.head>>headShift].key.size
		if x.head&packOne != 0 {
			for m := x.shape; m != 0; m &= m - 1 {
				*t.room(&n[bits.TrailingZeros32(m)], maxNotesGlobal) = note{deed: this, lanes: x.lanes}
			}
			continue
		}
		base, stride, folds := baseOf(x.shape), strideOf(x.shape), foldsOf(x.shape)
		for m := folded(x.lanes, folds); m != 0; m &= m - 1 {
			at := base + int64(bits.TrailingZeros32(m))*stride
			for c := at / cellBytes; c < (at+int64(size))/cellBytes; c++ {
				*t.room(&n[c], maxNotesGlobal) = note{deed: this, lanes: unfold(m&-m, folds)}
			}
		}
	}
	d.mem.dropPacks(p, i)
	return n
}

// noteWeak notes the weak access of the actor's lanes to the word at at of page p. It says false when that must be judged
// or cannot be noted; the line has then no notes.
func (d *Detector) noteWeak(p *page, at uint64) bool {
	i := at % pageBytes / lineBytes
	for {
		n := d.notesFor(p, i)
		if n != nil && d.noteWord(p, &n[at%lineBytes/cellBytes], at) {
			return true
		}
		if n == nil || !p.stale {
			break
		}
		d.coolStale(p)
	}
	d.denote(p, i)
	return false
}

func (d *Detector) noteWord(p *page, c *noteCell, at uint64) bool {
	a := &d.act
	this := d.deedOf()<<deedShift | a.class.notes&noteKind
	t := &d.mem.notebook
	x := note{deed: this, lanes: a.lanes}
	write := this&noteWrite != 0
	if write {
		x.seen = a.word(at)
	} else if a.lanes&(a.lanes-1) == 0 {
		if one := t.one(this, false, a.lane); one != 0 {
			if *c == 0 || *c == one || d.repeats(*c, &x) {
				*c = one
				return true
			}
			if c.ones() && d.listLoad(p, c, one, &x) {
				return true
			}
		}
	}
	if *c == 0 {
		*t.room(c, maxNotesWeak) = x
		return true
	}
	// One thread alone, or nothing but loads.
	wrote, alone, same := write, true, false
	notes := t.open(c)
	n := 0
	for ; n < len(notes) && notes[n].deed != 0; n++ {
		o := &notes[n]
		if o.deed&noteAtomics != 0 {
			return false
		}
		wrote = wrote || o.deed&noteWrite != 0
		alone = alone && d.ours(o)
		same = same || d.again(o, &x)
	}
	if wrote && !alone {
		return false
	}
	if same || join(notes[:n], &x) {
		return true
	}
	o := t.room(c, maxNotesWeak)
	if o == nil {
		return false
	}
	*o = x
	return true
}

// repeats says that x is what again makes of the only note of a cell.
func (d *Detector) repeats(c noteCell, x *note) bool {
	o := c.one()
	return c&manyNotes == 0 && d.again(&o, x)
}

// ours says that a note is of the actor's thread, alone.
func (d *Detector) ours(o *note) bool {
	a := &d.act
	return o.lanes == a.lanes && a.lanes&(a.lanes-1) == 0 && d.mem.notebook.deeds.warp(o.deed>>deedShift) == a.warp
}

// again makes note o say what x would: another access of the same class by the same lanes of the actor's warp, that orders by
// lockstep no lanes that the earlier did not (see put). It says false, having done nothing, if it is not so.
func (d *Detector) again(o, x *note) bool {
	if o.lanes != x.lanes || o.seen != x.seen {
		return false
	}
	if o.deed == x.deed {
		return true
	}
	a := &d.act
	if d.mem.notebook.deeds.class(o.deed>>deedShift) != a.id {
		return false
	}
	y := d.mem.notebook.deeds.at(o.deed >> deedShift)
	if y.warp != a.warp || y.clock != a.view.clock || a.exec&^y.exec != 0 {
		return false
	}
	o.deed = x.deed
	return true
}

// join adds the lanes of a load to its deed's note. It says false when there is none.
func join(notes []note, x *note) bool {
	if x.deed&noteWrite != 0 {
		return false
	}
	for i := range notes {
		if notes[i].deed == x.deed {
			notes[i].lanes |= x.lanes
			return true
		}
	}
	return false
}

// atomics performs a strong load or an atomic, lane by lane.
func (d *Detector) atomics(b *event.Batch, e *event.Event, w *warp) {
	a := &d.act
	strong := func(lane int, addr uint64, size uint8) { d.strong(a.blk, a.wi, e, lane, addr, size) }
	if a.class.notes&noteAtomics == 0 || d.cellsOnly {
		d.elements(b, e, strong)
		return
	}
	var met handing
	rest := e.Mask
	if a.class.notes == noteAtomics|noteWrite {
		if a.shared {
			rest = d.tally(b, e, w, &met)
		} else if rest = d.roll(e, w, &met); rest != e.Mask {
			d.noteLocks(b, e, w, e.Mask&^rest)
		}
	}
	switch {
	case rest != e.Mask:
	case a.locks():
		d.fetch(b, e)
	default:
		rest = d.noteAtomics(b, e, w, &met)
		if a.class.side.Write {
			d.noteLocks(b, e, w, e.Mask&^rest)
		}
	}
	var p *page
	number := ^uint64(0) // of p
	for m := rest; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr := b.AddrOf(e, lane)
		a.lanes, a.lane, a.view = m&-m, lane, w.view(lane)
		if addr/pageBytes != number {
			p = a.page(addr)
			number = addr / pageBytes
		}
		i := addr % pageBytes / lineBytes
		may := addr%cellBytes == 0 && (!a.class.side.Write || w.quiet(lane))
		n := d.notesForAtomic(p, i)
		noted := n != nil && may && d.noteAtomic(p, &n[addr%lineBytes/cellBytes], addr, &met)
		if !noted && n != nil && may && p.stale {
			d.coolStale(p)
			n = d.notesFor(p, i)
			noted = n != nil && d.noteAtomic(p, &n[addr%lineBytes/cellBytes], addr, &met)
		}
		if noted {
			if a.class.side.Write {
				a.blk.noteLock(a.wi, lane, locKey{a.shared, cellBytes, addr}, a.class)
			}
			continue
		}
		met.note(a)
		d.denote(p, i)
		d.values(lane, addr)
		strong(lane, addr, e.Size)
		number = ^uint64(0)
	}
	met.note(a)
}

// locks says that the actor takes locks in a launch with fences: their words will soon be released with more than notes say.
func (a *actor) locks() bool { return a.class.takes && a.blk.fenced }

// notesForAtomic is notesFor for an atomic.
func (d *Detector) notesForAtomic(p *page, i uint64) *noteLine {
	if p.notes[i] == 0 && d.act.locks() {
		return nil
	}
	return d.notesFor(p, i)
}

// handing is a hand-over seen last (see handover) by a lane of the actor's warp, clock 0 for none.
type handing struct {
	addr  uint64
	lane  int
	clock uint32
}

// note tells the block.
func (h *handing) note(a *actor) {
	if h.clock != 0 {
		a.blk.handed = a.wi
		a.blk.warps[a.wi].note(handover{locKey{a.shared, cellBytes, h.addr}, a.wi, h.lane, h.clock, a.class.key.place, true})
		h.clock = 0
	}
}

// quiet says that a strong write by a lane releases nothing.
func (w *warp) quiet(lane int) bool {
	if w.view(lane).published.grid != nil {
		return false
	}
	if w.syncs == nil {
		return true
	}
	s := &w.syncs[lane]
	return s.fenced == released{} && s.own == nil && s.last == nil
}

// noteAtomic notes the access of the actor's lane to the word at addr of page p, whose notes are c. It says false, having
// done nothing, when it is more than a note can say.
func (d *Detector) noteAtomic(p *page, c *noteCell, addr uint64, met *handing) bool {
	a := &d.act
	k := a.class
	this := d.deedOf()<<deedShift | k.notes&noteKind
	me := a.lanes
	var mine, last *note // of the deed, of the last write
	valued, readers := false, false
	t := &d.mem.notebook
	var notes []note
	switch {
	case *c == 0:
		var ok bool
		if valued, ok = d.counts(p, addr); !ok {
			return false
		}
		if one := t.one(this, valued || k.side.Write, a.lane); one != 0 {
			*c = one
			if !k.discards {
				d.meetLast(p, addr, nil, met)
			}
			return true
		}
	default:
		if one := t.one(this, false, a.lane); one != 0 && c.ones() && d.listAtomic(p, c, addr, one, met) {
			return true
		}
		if p.stale {
			return false
		}
		notes = t.open(c)
		if notes[0].deed&noteAtomics == 0 {
			return false
		}
		notes, mine, last, readers = lookAt(notes, this)
		valued = last != nil || readers
	}
	if !k.discards {
		d.meetLast(p, addr, last, met)
	}
	if mine == nil {
		if mine = d.room(c, notes, this, me); mine == nil {
			return false
		}
		readers = true // the others may have moved
	}
	mine.lanes |= me
	if !k.side.Write {
		if valued {
			mine.seen |= me
		}
		return true
	}
	switch {
	case readers:
		for i, notes := 0, t.open(c); i < len(notes); i++ {
			notes[i].seen = 0
		}
	case last != nil:
		last.seen = 0
	}
	mine.seen = me
	return true
}

// lookAt gives those of notes of atomics that are there, that of a deed and that of the last write, nil when there is none, and
// whether others observed the current value.
func lookAt(notes []note, this uint32) (there []note, mine, last *note, readers bool) {
	for i := range notes {
		o := &notes[i]
		if o.deed == 0 {
			return notes[:i], mine, last, readers
		}
		if o.deed == this {
			mine = o
		}
		switch {
		case o.seen == 0:
		case o.deed&noteWrite != 0:
			last = o
		default:
			readers = true
		}
	}
	return notes, mine, last, readers
}

// meetLast notes a hand-over by the last write of the word at addr of page p, or, if there is no note of one, what was
// written there before.
func (d *Detector) meetLast(p *page, addr uint64, last *note, met *handing) {
	a := &d.act
	switch {
	case last == nil:
		if !a.shared || p.locs == nil {
			return
		}
		if x := p.locAt(addr, cellBytes); x == nil || x.launch != a.blk.launch || x.warp == a.warp && x.lane == a.lane {
			return
		}
	case last.seen == a.lanes && d.mem.notebook.deeds.warp(last.deed>>deedShift) == a.warp:
		return
	}
	*met = handing{addr, a.lane, a.view.clock}
}

// room gives a note for a deed of one lane: one of notes, those of the word, that says less, or a free one; nil when there is
// none.
func (d *Detector) room(c *noteCell, notes []note, this, me uint32) *note {
	if this&noteWrite == 0 {
		for i := range notes {
			if x := (note{this, me, notes[i].seen}); d.again(&notes[i], &x) {
				return &notes[i]
			}
		}
	}
	most := uint(maxNotesGlobal)
	if d.act.shared {
		most = maxNotesShared
	}
	o := d.mem.notebook.room(c, most)
	if o != nil {
		*o = note{deed: this}
	}
	return o
}

// counts says whether a word without notes has been written strongly, and not ok if what was written there, or how,
// means more to an atomic of a lane than that.
func (d *Detector) counts(p *page, addr uint64) (valued, ok bool) {
	if !p.valued() {
		return false, true
	}
	if p.quietAt(addr) {
		return true, true
	}
	x := p.locAt(addr, cellBytes)
	if x == nil {
		return false, true
	}
	return true, x.meets(d.act.blk, d.act.wi, d.act.lane, d.act.class.side.Wide) && x.valid == 1<<cellBytes-1 &&
		x.recs.none()
}

// noteKindOf says how accesses of a class are noted: noteLoads, or a kind; noteNever.
func (c *class) noteKindOf() uint32 {
	k := &c.key
	if k.size%cellBytes != 0 {
		return noteNever
	}
	switch {
	case !c.strong && k.kind == event.Load:
		return noteLoads
	case c.plain:
		return noteWrite
	case c.strong && c.side.Atomic && k.kind != event.Store && k.size == cellBytes && c.side.Unit == cellBytes && !c.acquires && !c.releases &&
		(k.space == event.Shared || c.side.Wide):
		if c.side.Write {
			return noteAtomics | noteWrite
		}
		return noteAtomics
	}
	return noteNever
}

// What class.notes is beside the kinds.
const (
	noteLoads uint32 = 0
	noteNever uint32 = 1 << 2
)
