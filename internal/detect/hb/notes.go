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
// A line has notes or cells, never both. Where an access is of another sort, the line's notes are performed as the entries
// and locs that they stand for (denote); most never are, but end with their launch or with a barrier.

// deed is what lanes of one warp did together: an access of a class, in one epoch.
type deed struct{ class, warp, clock, exec uint32 }

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

// noteCell is the notes of a word: one, and more in a chunk of a slab.
type noteCell struct {
	note
	more uint32 // number of the chunk<<3 | log of its length; 0: none
}

// noteLine is the notes of a line.
type noteLine struct {
	launch *launch
	cells  [lineCells]noteCell
}

// Logs of the most notes beside the first that a word may have, in shared and in global memory.
const (
	maxNotesShared = 5
	maxNotesGlobal = 4
	maxNotesWeak   = 2
)

// notebook holds deeds and notes.
type notebook struct {
	deeds  slab[deed]
	recent [1 << 12]uint32 // deeds, by hash
	chunks [maxNotesShared + 1]noteSlab
	spare  []*noteLine
}

// noteSlab is an arena of chunks of 1<<log notes, numbered from 1.
type noteSlab struct {
	blocks [][]note
	free   []uint32
	used   uint32
}

const chunksPerBlock = 256

func (s *noteSlab) at(id uint32, log uint) []note {
	at := id % chunksPerBlock << log
	return s.blocks[id/chunksPerBlock][at : at+1<<log : at+1<<log]
}

func (s *noteSlab) add(log uint) uint32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		clear(s.at(id, log))
		return id
	}
	s.used++
	if int(s.used/chunksPerBlock) >= len(s.blocks) {
		s.blocks = append(s.blocks, make([]note, chunksPerBlock<<log))
	}
	return s.used
}

// rest gives the notes of a word beside the first, free ones included.
func (t *notebook) rest(c *noteCell) []note {
	if c.more == 0 {
		return nil
	}
	return t.chunks[c.more&7].at(c.more>>3, uint(c.more&7))
}

// room gives a free note of a word, nil when it has as many as it may have.
func (t *notebook) room(c *noteCell, most uint) *note {
	if c.deed == 0 {
		return &c.note
	}
	old := t.rest(c)
	for i := range old {
		if old[i].deed == 0 {
			return &old[i]
		}
	}
	log := uint(c.more&7) + 1
	if log > most {
		return nil
	}
	id := t.chunks[log].add(log)
	fresh := t.chunks[log].at(id, log)
	copy(fresh, old)
	t.free(c)
	c.more = id<<3 | uint32(log)
	return &fresh[len(old)]
}

// free gives back the chunk of a word.
func (t *notebook) free(c *noteCell) {
	if c.more != 0 {
		s := &t.chunks[c.more&7]
		s.free = append(s.free, c.more>>3)
		c.more = 0
	}
}

// drop forgets the notes of line i of a page.
func (t *notebook) drop(p *page, i uint64) {
	n := p.notes[i]
	for j := range n.cells {
		t.free(&n.cells[j])
	}
	*n = noteLine{}
	t.spare = append(t.spare, n)
	p.notes[i] = nil
}

// noted gives the notes of line i of a page, nil when it has none.
func (p *page) noted(i uint64) *noteLine {
	if p.notes == nil {
		return nil
	}
	return p.notes[i]
}

// deed gives the number of a deed of launch l.
func (t *notebook) deed(l *launch, x deed) uint32 {
	h := (uint64(x.class)<<32 | uint64(x.warp)) * 0x9e3779b97f4a7c15
	h ^= (uint64(x.clock)<<32 | uint64(x.exec)) * 0xff51afd7ed558ccd
	at := &t.recent[h*0xd6e8feb86659fd93>>(64-12)]
	if *at != 0 && *t.deeds.at(*at) == x {
		return *at
	}
	id := t.deeds.add()
	*t.deeds.at(id) = x
	*at = id
	l.deeds = append(l.deeds, id)
	return id
}

// forgetDeeds ends the deeds of a launch that has no notes left.
func (t *notebook) forgetDeeds(l *launch) {
	for _, id := range l.deeds {
		*t.deeds.at(id) = deed{}
		t.deeds.drop(id)
	}
	l.deeds = nil
}

// manyDeeds is how many deeds a launch may have before those without notes are looked for.
const manyDeeds = 1 << 16

// sweep ends the deeds of a launch that no note refers to.
func (d *Detector) sweep(l *launch) {
	t := &d.mem.notebook
	used := make([]uint64, t.deeds.used/64+1)
	mark := func(p *page) {
		if p == nil || p.notes == nil {
			return
		}
		for _, n := range p.notes {
			if n == nil {
				continue
			}
			for j := range n.cells {
				c := &n.cells[j]
				used[c.deed>>deedShift/64] |= 1 << (c.deed >> deedShift % 64)
				for _, x := range t.rest(c) {
					used[x.deed>>deedShift/64] |= 1 << (x.deed >> deedShift % 64)
				}
			}
		}
	}
	for _, p := range l.pages {
		mark(p)
	}
	for _, b := range l.blocks {
		for _, p := range b.shared.pages {
			mark(p)
		}
	}
	keep := l.deeds[:0]
	for _, id := range l.deeds {
		if used[id/64]>>(id%64)&1 != 0 {
			keep = append(keep, id)
			continue
		}
		*t.deeds.at(id) = deed{}
		t.deeds.drop(id)
	}
	l.deeds = keep
	l.manyDeeds = max(manyDeeds, 2*len(keep))
}

// deedOf gives the number of what the actor does, as the event's other lanes of the same epoch.
func (d *Detector) deedOf() uint32 {
	a := &d.act
	if a.deed == 0 || a.deedClock != a.view.clock {
		l := a.blk.launch
		if len(l.deeds) >= max(l.manyDeeds, manyDeeds) {
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
	if p.notes != nil {
		if n := p.notes[i]; n != nil {
			if n.launch != a.blk.launch {
				return nil
			}
			return n
		}
	}
	if d.cellsOnly || p.expanded(i) != nil {
		return nil
	}
	if p.marks[i].form != 0 {
		return d.notePacks(p, i)
	}
	return d.mem.notebook.begin(p, i, a.blk.launch)
}

// begin makes line i of a page one with notes.
func (t *notebook) begin(p *page, i uint64, l *launch) *noteLine {
	if p.notes == nil {
		p.notes = new([pageLines]*noteLine)
	}
	var n *noteLine
	if k := len(t.spare); k > 0 {
		n = t.spare[k-1]
		t.spare = t.spare[:k-1]
	} else {
		n = new(noteLine)
	}
	n.launch = l
	p.notes[i] = n
	return n
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
	n := t.begin(p, i, l)
	for j := range packs {
		x := &packs[j]
		this := t.deed(l, deed{x.head >> headShift, x.warp, x.clock, x.exec}) << deedShift
		size := d.classes[x.head>>headShift].key.size
		if x.head&packOne != 0 {
			for m := x.shape; m != 0; m &= m - 1 {
				*t.room(&n.cells[bits.TrailingZeros32(m)], maxNotesGlobal) = note{deed: this, lanes: x.lanes}
			}
			continue
		}
		base, stride, folds := baseOf(x.shape), strideOf(x.shape), foldsOf(x.shape)
		for m := folded(x.lanes, folds); m != 0; m &= m - 1 {
			at := base + int64(bits.TrailingZeros32(m))*stride
			for c := at / cellBytes; c < (at+int64(size))/cellBytes; c++ {
				*t.room(&n.cells[c], maxNotesGlobal) = note{deed: this, lanes: unfold(m&-m, folds)}
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
	n := d.notesFor(p, i)
	if n != nil && d.noteWord(&n.cells[at%lineBytes/cellBytes], at) {
		return true
	}
	d.denote(p, i)
	return false
}

func (d *Detector) noteWord(c *noteCell, at uint64) bool {
	a := &d.act
	this := d.deedOf()<<deedShift | a.class.notes&noteKind
	t := &d.mem.notebook
	x := note{deed: this, lanes: a.lanes}
	write := this&noteWrite != 0
	if write {
		x.seen = a.word(at)
	}
	if c.deed == 0 {
		c.note = x
		return true
	}
	if c.deed&noteAtomics != 0 {
		return false
	}
	// One thread alone, or nothing but loads.
	wrote := write || c.deed&noteWrite != 0
	alone := d.ours(&c.note)
	same := d.again(&c.note, &x)
	rest := t.rest(c)
	for i := range rest {
		o := &rest[i]
		if o.deed == 0 {
			break
		}
		wrote = wrote || o.deed&noteWrite != 0
		alone = alone && d.ours(o)
		same = same || d.again(o, &x)
	}
	if wrote && !alone {
		return false
	}
	if same {
		return true
	}
	if c.join(rest, &x) {
		return true
	}
	o := t.room(c, maxNotesWeak)
	if o == nil {
		return false
	}
	*o = x
	return true
}

// ours says that a note is of the actor's thread, alone.
func (d *Detector) ours(o *note) bool {
	a := &d.act
	return o.lanes == a.lanes && a.lanes&(a.lanes-1) == 0 && d.mem.notebook.deeds.at(o.deed>>deedShift).warp == a.warp
}

// again makes note o say what x would: another access of the same class by the same lanes of the actor's warp, which lockstep orders no more
// others before than the earlier. It says false, having done nothing, if it is not so.
func (d *Detector) again(o, x *note) bool {
	if o.lanes != x.lanes || o.seen != x.seen {
		return false
	}
	if o.deed == x.deed {
		return true
	}
	a := &d.act
	y := d.mem.notebook.deeds.at(o.deed >> deedShift)
	if y.class != a.id || y.warp != a.warp || y.clock != a.view.clock || a.exec&^y.exec != 0 {
		return false
	}
	o.deed = x.deed
	return true
}

// join adds the lanes of a load to its deed's note. It says false when there is none.
func (c *noteCell) join(rest []note, x *note) bool {
	if x.deed&noteWrite != 0 {
		return false
	}
	if c.deed == x.deed {
		c.lanes |= x.lanes
		return true
	}
	for i := range rest {
		if rest[i].deed == x.deed {
			rest[i].lanes |= x.lanes
			return true
		}
	}
	return false
}

// noteAtomic notes the access of a lane to the word at addr. It says false when it is more than a note can say; the line
// has then no notes.
func (d *Detector) noteAtomic(w *warp, wi uint32, lane int, addr uint64) bool {
	a := &d.act
	p := a.page(addr)
	i := addr % pageBytes / lineBytes
	if n := d.notesFor(p, i); n != nil && addr%cellBytes == 0 && (!a.class.side.Write || w.quiet(lane)) {
		a.view = w.view(lane)
		if d.noteStrong(p, &n.cells[addr%lineBytes/cellBytes], wi, lane, addr) {
			return true
		}
	}
	d.denote(p, i)
	return false
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

func (d *Detector) noteStrong(p *page, c *noteCell, wi uint32, lane int, addr uint64) bool {
	a := &d.act
	t := &d.mem.notebook
	k := a.class
	this := d.deedOf()<<deedShift | k.notes&noteKind
	me := uint32(1) << uint(lane)
	var mine, last *note // of the deed, of the last write
	valued := false      // some strong write made the value
	if c.deed == 0 {
		if p.locs != nil || len(p.quiets) > 0 {
			var ok bool
			if valued, ok = d.counts(p, wi, lane, addr); !ok {
				return false
			}
		}
	} else {
		if c.deed&noteAtomics == 0 {
			return false
		}
		if c.deed == this {
			mine = &c.note
		}
		if c.seen != 0 {
			valued = true
			if c.deed&noteWrite != 0 {
				last = &c.note
			}
		}
		rest := t.rest(c)
		for i := range rest {
			o := &rest[i]
			if o.deed == this {
				mine = o
			}
			if o.seen != 0 {
				valued = true
				if o.deed&noteWrite != 0 {
					last = o
				}
			}
		}
	}
	var from deed
	var by int
	if last != nil {
		from, by = *t.deeds.at(last.deed >> deedShift), bits.TrailingZeros32(last.seen)
	}
	if mine == nil {
		if mine = d.room(c, this, me); mine == nil {
			return false
		}
	}
	if !k.discards {
		d.noteLast(p, wi, lane, addr, &from, by)
	}
	mine.lanes |= me
	if k.side.Write {
		c.seen = 0
		for rest, i := t.rest(c), 0; i < len(rest); i++ {
			rest[i].seen = 0
		}
		mine.seen = me
		a.blk.noteLock(wi, lane, locKey{a.shared, cellBytes, addr}, k)
	} else if valued {
		mine.seen |= me
	}
	return true
}

// room gives a note for a deed of one lane: one that says less, or a free one; nil when there is none.
func (d *Detector) room(c *noteCell, this, me uint32) *note {
	t := &d.mem.notebook
	a := &d.act
	if this&noteWrite == 0 && c.deed != 0 {
		if x := (note{this, me, c.seen}); d.again(&c.note, &x) {
			return &c.note
		}
		rest := t.rest(c)
		for i := range rest {
			o := &rest[i]
			if o.deed == 0 {
				break
			}
			if x := (note{this, me, o.seen}); d.again(o, &x) {
				return o
			}
		}
	}
	most := uint(maxNotesGlobal)
	if a.shared {
		most = maxNotesShared
	}
	o := t.room(c, most)
	if o != nil {
		*o = note{deed: this}
	}
	return o
}

// counts says whether a word without notes has been written strongly, and not ok if what was written there, or how,
// means more to an atomic of a lane than that.
func (d *Detector) counts(p *page, wi uint32, lane int, addr uint64) (valued, ok bool) {
	if p.quietAt(addr) {
		return true, true
	}
	x := p.locAt(addr, cellBytes)
	if x == nil {
		return false, true
	}
	return true, x.meets(d.act.blk, wi, lane, d.act.class.side.Wide) && x.valid == 1<<cellBytes-1 &&
		len(x.recs.wide) == 0 && x.recs.blocks == nil && len(x.recs.ordered) == 0
}

// noteLast is noteHandover of an atomic on a word with notes, last written by a lane of from if that is a deed.
func (d *Detector) noteLast(p *page, wi uint32, lane int, addr uint64, from *deed, by int) {
	a := &d.act
	if from.class == 0 {
		if a.shared && p.locs != nil {
			if x := p.locAt(addr, cellBytes); x != nil {
				d.noteHandover(a.blk, wi, lane, x, a.class)
			}
		}
		return
	}
	if from.warp == a.warp && by == lane {
		return
	}
	a.blk.handover = handover{locKey{a.shared, cellBytes, addr}, wi, lane, a.view.clock, a.class.key.place, true}
}

// denote gives line i of a page cells and locs in place of notes.
func (d *Detector) denote(p *page, i uint64) {
	n := p.noted(i)
	if n == nil {
		return
	}
	l := d.mem.line(p, i)
	t := &d.mem.notebook
	for j := range n.cells {
		c := &n.cells[j]
		if c.deed == 0 {
			continue
		}
		if c.deed&noteAtomics != 0 {
			d.denoteLoc(n.launch, p, c, p.addr+i*lineBytes+uint64(j)*cellBytes)
		}
		d.denoteEntry(l, &l.cells[j], &c.note)
		rest := t.rest(c)
		for r := range rest {
			if rest[r].deed == 0 {
				break
			}
			d.denoteEntry(l, &l.cells[j], &rest[r])
		}
	}
	t.drop(p, i)
}

// denoteEntry records a note as an entry.
func (d *Detector) denoteEntry(l *line, c *cell, o *note) {
	x := *d.mem.notebook.deeds.at(o.deed >> deedShift)
	key := x.class<<headShift | headBytes
	if o.deed&noteKind == noteAtomics|noteWrite {
		key |= headChain
	}
	store := o.deed&noteKind == noteWrite
	e := d.mem.entry(c, key)
	if e == nil {
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
	x := p.findLoc(addr, cellBytes)
	if wrote {
		if x == nil {
			x = p.newLoc(addr, cellBytes)
			d.breakChain(p, addr, cellBytes)
		}
		x.valid = 1<<cellBytes - 1
		p.overwrite(addr, cellBytes, x)
		y := d.mem.notebook.deeds.at(last.deed >> deedShift)
		lane := bits.TrailingZeros32(last.seen)
		x.stamp++
		x.launch, x.block, x.warp, x.lane, x.wide = l, y.warp/l.wpb, y.warp, lane, d.classes[y.class].side.Wide
		x.first = observer{l, y.warp, lane, y.clock}
		clear(x.observers)
		x.observers = x.observers[:0]
	}
	d.denoteSeen(l, x, &c.note)
	for i := range rest {
		if rest[i].deed == 0 {
			break
		}
		d.denoteSeen(l, x, &rest[i])
	}
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
	if p.notes == nil {
		return
	}
	end = min(end, p.addr+pageBytes)
	for at := addr &^ (lineBytes - 1); at < end; at += lineBytes {
		d.denote(p, at%pageBytes/lineBytes)
	}
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
