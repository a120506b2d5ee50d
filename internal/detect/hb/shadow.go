package hb

import "math/bits"

// Sizes of shadow memory, in bytes of the memory shadowed.
const (
	cellBytes = 4
	lineCells = 32
	pageLines = 16
	lineBytes = lineCells * cellBytes // what a warp reads in one coalesced access of words
	pageBytes = pageLines * lineBytes
	dirPages  = 1 << 11
)

// entry is what is kept of the accesses of one class to the same bytes of a cell: one group of lanes of one warp, or a
// set. 24 bytes, no pointers.
type entry struct {
	head  uint32 // class<<8 | flags | bytes; 0: none
	warp  uint32 // many: warp of the last access
	lanes uint32 // many: number of the set
	clock uint32 // many: epoch of the last access
	exec  uint32 // many: lane of the last access | headOrdered
	value uint32 // of plain writes that all wrote the same, see headMixed
}

// Bits of entry.head.
const (
	headBytes uint32 = 0xf    // which bytes of the cell
	headMixed uint32 = 1 << 4 // plain writes of different or unknown values
	headChain uint32 = 1 << 5 // strong writes, all in the chain of read-modify-writes that made the current value
	headMany  uint32 = 1 << 6
	// headMemory: plain writes that all wrote the same, which is what memory still holds; see Detector.recall.
	headMemory uint32 = 1 << 7
	headShift         = 8
	// headKey tells entries of a cell apart.
	headKey = ^(headMixed | headMany | headMemory)
	// lastOrders in exec of a set: every access of the set happens before its last one.
	lastOrders uint32 = 1 << 8
)

func (e *entry) class() uint32 { return e.head >> headShift }

// lane is that of the last access, or one of those.
func (e *entry) lane() uint32 {
	if e.head&headMany != 0 {
		return e.exec & 31
	}
	return uint32(bits.TrailingZeros32(e.lanes))
}

// cell shadows four bytes.
type cell struct {
	chunk uint32 // of entries: log of its length<<chunkLog | its number in a slab; 0: nothing accessed the cell
	// last is 1 + the place of the entry with the cell's last access, where that is by one thread and every other access of the
	// cell happens before it or is by the same thread; else 0. Who comes after that one comes after all.
	last uint32
}

const chunkLog = 27

// line shadows 128 bytes.
type line struct {
	cells [lineCells]cell
	user  uint32 // the launch that last accessed it
	// memory: an entry may have headMemory.
	memory bool
}

// pageCells is a set of cells of a page.
type pageCells [pageBytes / cellBytes / 64]uint64

// page shadows 2048 bytes of global memory or of a shared window.
type page struct {
	// What scattered accesses look at stands together.
	noter  uint32            // the launch that notes are of
	open   bool              // noter may add notes to lines with notes, as notesFor has found out
	stale  bool              // there may be notes of older launches, see stale.go
	shares bool              // cold is other pages' too
	notes  [pageLines]uint32 // those of lines
	user   uint32            // the launch that touched the page last
	warmed uint32            // the launch for which every cold access is known to be ordered before all of it
	gen    uint32            // of the window, when lines were last cleared
	base   uint32            // a warp, to which the threads of cold are relative
	cold   []cold
	marks  [pageLines]mark       // what is kept of packed lines
	lines  *[pageLines]*line     // those with cells
	locs   *[pageBytes / 16]*loc // by offset in the page / 16; nil when nothing was written strongly
	quiets []quiet
	addr   uint64
}

// shadow is the shadow of global memory: directories of pages, and the entries of all cells, and spare lines.
type shadow struct {
	dirs map[uint64]dir
	// recent are directories used last, each in the place that its number modulo their count gives.
	recent [32]struct {
		key uint64
		dir
	}
	// near are pages found last, each in the place that its number modulo their count gives.
	near [128]struct {
		number uint64
		page   *page
	}
	ranges   []pageRange                           // by address, disjoint
	entries  [1 << (32 - chunkLog)]noteSlab[entry] // chunks of 1<<n
	spare    []*line
	sets     *sets
	forms    forms
	packs    slab[pack]
	words    slab[words]
	trails   [maxTrail + 1]noteSlab[member] // chunks of 1<<n
	notebook notebook
	touched  uint64 // lines in use
	peak     uint64
}

// dir is pages first to first+len(pages) of the dirPages of a directory, nil those that are not there.
type dir struct {
	first uint64
	pages []*page
}

// at gives page i, nil when there is none.
func (r *dir) at(i uint64) *page {
	if i -= r.first; i < uint64(len(r.pages)) {
		return r.pages[i]
	}
	return nil
}

// fewPages is how many pages a directory has room for at first.
const fewPages = 16

// put makes p page i, in at least twice the room where there is none for it.
func (r *dir) put(i uint64, p *page) {
	n := uint64(len(r.pages))
	switch {
	case n == 0:
		*r = dir{min(i, dirPages-fewPages), make([]*page, fewPages)}
	case i < r.first:
		first := min(i, r.first-min(n, r.first))
		r.pages = append(make([]*page, r.first-first, r.first-first+n), r.pages...)
		r.first = first
	case i >= r.first+n:
		end := min(max(i+1, r.first+2*n), dirPages)
		r.pages = append(make([]*page, 0, end-r.first), r.pages...)[:end-r.first]
	}
	r.pages[i-r.first] = p
}

func newShadow() *shadow {
	return &shadow{forms: forms{few: minForms, steps: make([]step, minSteps)}, dirs: map[uint64]dir{}, sets: newSets(), notebook: notebook{ones: maxOneDeed}}
}

// find gives the page of addr, nil when there is none.
func (s *shadow) find(addr uint64) *page {
	n := addr / pageBytes
	if r := &s.near[n%uint64(len(s.near))]; r.number == n && r.page != nil {
		return r.page
	}
	return s.search(n)
}

// search is find of page n where that is not near.
func (s *shadow) search(n uint64) *page {
	k := n / dirPages
	r := &s.recent[k%uint64(len(s.recent))]
	if r.pages == nil || r.key != k {
		dir, ok := s.dirs[k]
		if !ok {
			return nil
		}
		r.key, r.dir = k, dir
	}
	p := r.at(n % dirPages)
	if p != nil {
		s.near[n%uint64(len(s.near))].number, s.near[n%uint64(len(s.near))].page = n, p
	}
	return p
}

// page gives the page of addr, made when there is none.
func (s *shadow) page(addr uint64) *page {
	if p := s.find(addr); p != nil {
		return p
	}
	n := addr / pageBytes
	k := n / dirPages
	dir := s.dirs[k]
	p := &page{addr: n * pageBytes}
	if cold := s.rangeCold(addr); cold != nil {
		p.share(cold)
	}
	dir.put(n%dirPages, p)
	s.dirs[k] = dir
	r := &s.recent[k%uint64(len(s.recent))]
	r.key, r.dir = k, dir
	return p
}

// remove forgets the page of addr.
func (s *shadow) remove(addr uint64) {
	p := s.find(addr)
	if p == nil {
		return
	}
	s.clear(p)
	if r := &s.near[addr/pageBytes%uint64(len(s.near))]; r.page == p {
		r.page = nil
	}
	dir := s.dirs[addr/pageBytes/dirPages]
	dir.put(addr/pageBytes%dirPages, nil)
}

// expanded gives line i of a page, nil when it has no cells.
func (p *page) expanded(i uint64) *line {
	if p.lines == nil {
		return nil
	}
	return p.lines[i]
}

// accessed says that a launch accessed line i of a page, which has cells.
func (p *page) accessed(i uint64, launch uint32) bool {
	l := p.expanded(i)
	return l != nil && l.user == launch
}

// line gives line i of a page, made when there is none.
func (s *shadow) line(p *page, i uint64) *line {
	if l := p.expanded(i); l != nil {
		return l
	}
	if p.lines == nil {
		p.lines = new([pageLines]*line)
	}
	var l *line
	if n := len(s.spare); n > 0 {
		l = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		l = new(line)
	}
	s.touched++
	s.peak = max(s.peak, s.touched)
	p.lines[i] = l
	return l
}

// clear forgets all entries of a page; its locs stay.
func (s *shadow) clear(p *page) {
	for i, m := range p.marks {
		if m.form != 0 {
			s.dropPacks(p, uint64(i))
		}
	}
	for i, id := range p.notes {
		if id != 0 {
			s.notebook.drop(p, uint64(i))
		}
	}
	if p.lines == nil {
		return
	}
	for i, l := range p.lines {
		if l != nil {
			s.recycle(l)
			p.lines[i] = nil
		}
	}
}

// maxSpareLines is how many lines are kept for use again: those of a page or two, or of a block's shared memory.
const maxSpareLines = 32

// recycle empties a line that nothing refers to any more.
func (s *shadow) recycle(l *line) {
	for i := range l.cells {
		s.empty(&l.cells[i])
	}
	*l = line{}
	s.touched--
	if len(s.spare) < maxSpareLines {
		s.spare = append(s.spare, l)
	}
}

// of gives the entries of a cell, with free ones between and behind.
func (s *shadow) of(c *cell) []entry {
	if c.chunk == 0 {
		return nil
	}
	log := uint(c.chunk >> chunkLog)
	return s.entries[log].at(c.chunk&(1<<chunkLog-1), log)
}

// first gives the entry at the first place of a cell that has a chunk.
func (s *shadow) first(c *cell) *entry {
	log := uint(c.chunk >> chunkLog)
	return &s.entries[log].at(c.chunk&(1<<chunkLog-1), log)[0]
}

// empty forgets all entries of a cell.
func (s *shadow) empty(c *cell) {
	if c.chunk == 0 {
		return
	}
	es := s.of(c)
	for i := range es {
		if es[i].head&headMany != 0 {
			s.dropMany(&es[i])
		}
	}
	s.free(c)
}

// free gives back the chunk of a cell.
func (s *shadow) free(c *cell) {
	slab := &s.entries[c.chunk>>chunkLog]
	slab.free = append(slab.free, c.chunk&(1<<chunkLog-1))
	*c = cell{}
}

// forget makes an entry free.
func (s *shadow) forget(e *entry) {
	if e.head&headMany != 0 {
		s.dropMany(e)
	}
	*e = entry{}
}

// slot gives the place of a free entry of a cell, which is to be filled. Pointers to entries of the cell may become stale.
func (s *shadow) slot(c *cell) int {
	c.last = 0
	old := s.of(c)
	for i := range old {
		if old[i].head == 0 {
			return i
		}
	}
	log := uint(0)
	if len(old) > 0 {
		log = uint(c.chunk>>chunkLog) + 1
	}
	was := *c
	c.chunk = uint32(log)<<chunkLog | s.entries[log].add(log)
	copy(s.of(c), old)
	if was.chunk != 0 {
		s.free(&was)
	}
	return len(old)
}

// put adds an entry to a cell and gives its place.
func (s *shadow) put(c *cell, e entry) int {
	i := s.slot(c)
	s.of(c)[i] = e
	return i
}

// entry gives the entry of a cell with key, nil when there is none.
func (s *shadow) entry(c *cell, key uint32) *entry {
	es := s.of(c)
	for i := range es {
		if es[i].head != 0 && es[i].head&headKey == key {
			return &es[i]
		}
	}
	return nil
}

// each calls f for each entry of a cell. f must not add entries.
func (s *shadow) each(c *cell, f func(e *entry)) {
	es := s.of(c)
	for i := range es {
		if es[i].head != 0 {
			f(&es[i])
		}
	}
}

// addAfter is add of an access by one thread that comes after all others of the cell.
func (s *shadow) addAfter(e *entry, k *class, warp uint32, g group) {
	switch {
	case e.head&headMany == 0:
		if e.warp == warp && e.lanes == g.lanes && g.exec&^e.exec == 0 {
			e.clock, e.exec = g.clock, g.exec
			return
		}
	case e.lanes&trailBit != 0 && e.exec&lastOrders != 0:
		t := s.trail(e)
		n := len(t) - 1
		for t[n].lanes == 0 {
			n--
		}
		last := &t[n]
		switch {
		case last.warp == warp && last.lanes == g.lanes && g.exec&^last.exec == 0:
			last.group = g
		case last.warp/k.launch.wpb != warp/k.launch.wpb:
			t[0] = *last
			t[1] = member{warp, g}
			clear(t[2:])
		default:
			s.add(e, k, warp, g, true)
			return
		}
		e.warp, e.clock = warp, g.clock
		e.exec = uint32(bits.TrailingZeros32(g.lanes)) | lastOrders
		return
	}
	s.add(e, k, warp, g, true)
}

// add records that lanes of warp accessed the bytes of e's key at (clock, exec), in place of or beside what e, of a cell, holds.
// The class is e's.
func (s *shadow) add(e *entry, k *class, warp uint32, g group, ordered bool) {
	if e.head&headMany == 0 && e.warp == warp {
		if o := (group{e.lanes, e.clock, e.exec}); o.merge(g) {
			e.lanes, e.clock, e.exec = o.lanes, o.clock, o.exec
			return
		}
	}
	switch {
	case s.addFew(e, k, warp, g, ordered):
	case e.head&headMany != 0:
		e.lanes = s.sets.grow(e.lanes, warp, g, &k.patience)
	default:
		e.lanes = s.sets.make(k.launch.sdepth, e.warp, group{e.lanes, e.clock, e.exec}, warp, g, &k.patience)
		e.head |= headMany
	}
	e.warp, e.clock = warp, g.clock
	e.exec = uint32(bits.TrailingZeros32(g.lanes))
	if ordered && g.lanes&(g.lanes-1) == 0 {
		e.exec |= lastOrders
	}
}
