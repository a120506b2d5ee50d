package hb

import (
	"math/bits"
	"slices"
)

// pack is what is kept of the accesses of one class by lanes of one warp (or several warps, alike) to a line, as long as they part into
// cells by a rule: 36 bytes in place of an entry for each cell. A line has packs or cells, never both. The packs of a
// line stand for the entries that its cells would have; see expand.
//
// The rule is a line of addresses: a lane at place n, its number modulo 32>>folds, accesses base + n*stride, and places have
// no byte in common. Loads alone have folds; lanes of one place are then all there or none. Or, with packOne, all lanes
// access the same bytes.
type pack struct {
	head  uint32 // class<<8 | what ref is | packOne | bytes
	warp  uint32 // refSet: of the last access
	lanes uint32
	clock uint32 // refSet: of the last access
	exec  uint32
	shape uint32 // see newShape; packOne: the cells
	ref   uint32
	far   uint32 // refWarps: see there
	next  uint32 // pack of the line
}

// Bits of pack.head. The bytes of each cell are those of an entry for packOne, and else unused.
const (
	packOne   uint32 = 1 << 4
	refKind   uint32 = 7 << 5
	refWord   uint32 = 1 << 5 // the plain writes all wrote ref into all cells
	refWords  uint32 = 2 << 5 // what they wrote stands in words ref
	refSet    uint32 = 3 << 5 // several threads a cell: set ref, of which only lanes count
	refMemory uint32 = 4 << 5 // the plain writes wrote each byte always the same, which is what memory still holds
	refWarps  uint32 = 5 << 5 // loads by several warps alike: warp + n*far for each bit n of ref
)

// maxPacks is how many packs a line has before it is expanded.
const maxPacks = 6

// words are what plain writes wrote into a line.
type words struct {
	word [lineCells]uint32
	// mixed says where not always the same was written: by cell, for accesses of less than a cell by lane.
	mixed uint32
}

// slab is an arena of T in chunks, numbered from 1.
type slab[T any] struct {
	chunks [][]T
	free   []uint32
	used   uint32
}

const slabChunk = 1 << 6

func (s *slab[T]) at(id uint32) *T { return &s.chunks[id/slabChunk][id%slabChunk] }

// add gives the number of an element, which holds anything.
func (s *slab[T]) add() uint32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		return id
	}
	s.used++
	if int(s.used/slabChunk) >= len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabChunk))
	}
	return s.used
}

func (s *slab[T]) drop(id uint32) { s.free = append(s.free, id) }

// newShape describes addresses relative to a line: |base| < 1<<15, |stride| < 1<<7.
func newShape(base, stride int64, folds uint) uint32 {
	return uint32(uint16(base)) | uint32(uint8(stride))<<16 | uint32(folds)<<24
}

func baseOf(shape uint32) int64   { return int64(int16(shape)) }
func strideOf(shape uint32) int64 { return int64(int8(shape >> 16)) }
func foldsOf(shape uint32) uint   { return uint(shape >> 24) }

// folded gives the places of lanes.
func folded(lanes uint32, folds uint) uint32 {
	if folds > 0 {
		lanes = (lanes | lanes>>16) & 0xffff
	}
	if folds > 1 {
		lanes = (lanes | lanes>>8) & 0xff
	}
	return lanes
}

// unfold gives the lanes of places.
func unfold(places uint32, folds uint) uint32 {
	return places * [...]uint32{1, 0x10001, 0x1010101}[folds]
}

// spanOf gives the cells that lanes access by a shape.
func spanOf(one bool, shape, lanes uint32, size uint8) uint32 {
	if one {
		return shape
	}
	base, stride := baseOf(shape), strideOf(shape)
	lanes = folded(lanes, foldsOf(shape))
	if size == 4 && stride == 4 {
		if base >= 0 {
			return lanes << uint(base/4)
		}
		return lanes >> uint(-base/4)
	}
	var out uint32
	for m := lanes; m != 0; m &= m - 1 {
		out |= cellsAt(base+int64(bits.TrailingZeros32(m))*stride, size)
	}
	return out
}

// cellsAt gives the cells of [at, at+size), which is aligned and within the line.
func cellsAt(at int64, size uint8) uint32 {
	return (1<<(uint(size+3)/4) - 1) << uint(at/4)
}

// dropRef ends what x refers to.
func (s *shadow) dropRef(x *pack) {
	switch x.head & refKind {
	case refSet:
		s.sets.drop(x.ref)
	case refWords:
		s.words.drop(x.ref)
	}
	x.head &^= refKind
	x.ref = 0
}

// dropPacks forgets the packs of a line.
func (s *shadow) dropPacks(p *page, i uint64) {
	m := &p.marks[i]
	for id := m.first(); id != 0; {
		x := s.packs.at(id)
		s.dropRef(x)
		s.packs.drop(id)
		id = x.next
	}
	if m.form&markList == 0 {
		s.forms.lines--
	}
	*m = mark{}
}

// unlink takes pack id out of a line and forgets it.
func (s *shadow) unlink(p *page, i uint64, id uint32) {
	x := s.packs.at(id)
	if m := &p.marks[i]; m.first() == id {
		if *m = (mark{}); x.next != 0 {
			m.form = x.next | markList
		}
	} else {
		at := m.first()
		for s.packs.at(at).next != id {
			at = s.packs.at(at).next
		}
		s.packs.at(at).next = x.next
	}
	s.dropRef(x)
	s.packs.drop(id)
}

// link adds a pack at the end of a line's.
func (s *shadow) link(p *page, i uint64, x pack) uint32 {
	id := s.packs.add()
	x.next = 0
	*s.packs.at(id) = x
	at := p.marks[i].first()
	if at == 0 {
		p.marks[i].form = id | markList
		return id
	}
	for s.packs.at(at).next != 0 {
		at = s.packs.at(at).next
	}
	s.packs.at(at).next = id
	return id
}

// expand gives the line cells in place of packs.
func (d *Detector) expand(p *page, i uint64) {
	d.denote(p, i)
	d.mem.thaw(p, i)
	id := p.marks[i].first()
	if id == 0 {
		return
	}
	p.marks[i] = mark{}
	l := d.mem.line(p, i)
	for id != 0 {
		x := d.mem.packs.at(id)
		d.unpack(l, x)
		d.mem.dropRef(x)
		d.mem.packs.drop(id)
		id = x.next
	}
}

// unpack makes the entries that x stands for.
func (d *Detector) unpack(l *line, x *pack) {
	k := &d.classes[x.head>>headShift]
	e := entry{head: x.head &^ (1<<headShift - 1), warp: x.warp, clock: x.clock, exec: x.exec}
	if x.head&packOne != 0 {
		e.head |= x.head & headBytes
		e.lanes = x.lanes
		for m := x.shape; m != 0; m &= m - 1 {
			d.unpackCell(l, x, k, e, bits.TrailingZeros32(m), bits.TrailingZeros32(m))
		}
		return
	}
	base, stride, size := baseOf(x.shape), strideOf(x.shape), k.key.size
	for m := folded(x.lanes, foldsOf(x.shape)); m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := base + int64(lane)*stride
		e.lanes = unfold(m&-m, foldsOf(x.shape))
		if size < cellBytes {
			one := e
			one.head |= (1<<size - 1) << uint(at%cellBytes)
			d.unpackCell(l, x, k, one, int(at/cellBytes), lane)
			continue
		}
		e.head |= headBytes
		for c := at / cellBytes; c < (at+int64(size))/cellBytes; c++ {
			d.unpackCell(l, x, k, e, int(c), int(c))
		}
	}
}

// unpackCell makes the entry of x in a cell, given as e but for what x refers to; mixed is the cell's or lane's bit in
// words.mixed.
func (d *Detector) unpackCell(l *line, x *pack, k *class, e entry, at, mixed int) {
	s := d.mem
	c := &l.cells[at]
	switch kind := x.head & refKind; {
	case kind == refSet && x.head&packOne != 0:
		s.sets.slots[x.ref].refs++
		e.head |= headMany
		e.lanes = x.ref
	case kind == refSet:
		d.restrict(c, x, k, e)
		return
	case kind == refMemory:
		e.head |= headMemory
		l.memory = true
	case kind == refWarps:
		d.unpackWarps(c, x, k, e)
		return
	case kind == refWord:
		e.value = x.ref
	case kind == refWords:
		w := s.words.at(x.ref)
		e.value = w.word[at]
		if w.mixed>>uint(mixed)&1 != 0 {
			e.head |= headMixed
		}
	case k.plain:
		e.head |= headMixed
	}
	s.put(c, e)
}

// unpackWarps makes the entry of a pack of loads by several warps.
func (d *Detector) unpackWarps(c *cell, x *pack, k *class, e entry) {
	i := d.mem.put(c, e)
	d.mem.several(&d.mem.of(c)[i], k, x)
}

// several makes e, an entry of a lane or more of the first of the warps of a pack of loads, that of all of them.
func (s *shadow) several(e *entry, k *class, x *pack) {
	g := group{e.lanes, e.clock, e.exec}
	e.lanes = s.sets.several(k.launch.sdepth, x.warp, x.ref, x.far, g, &k.patience)
	e.head |= headMany
	e.warp += uint32(bits.Len32(x.ref)-1) * x.far
	e.exec = uint32(bits.TrailingZeros32(g.lanes))
}

// restrict makes the entry of the lanes of one place, e.lanes, of a pack that refers to a set.
func (d *Detector) restrict(c *cell, x *pack, k *class, e entry) {
	s := d.mem
	set := s.sets.slots[x.ref]
	made := (*entry)(nil)
	set.root.walk(set.depth, 0, nil, func(warp uint32, g group) bool {
		g.lanes &= e.lanes
		switch {
		case g.lanes == 0:
		case made == nil:
			i := s.put(c, e)
			made = &s.of(c)[i]
			made.warp, made.clock, made.exec = warp, g.clock, g.exec
		default:
			s.add(made, k, warp, g, false)
		}
		return true
	})
}

// coolPacks turns the packs that launch l, which has ended, left in a page into cold accesses.
func (d *Detector) coolPacks(l *launch, p *page) {
	var fresh [maxPacks]coolingClass
	classes := fresh[:0]
	plain := true
	var buf [2 * maxPacks]pack
	for i := range p.marks {
		packs := d.mem.packsOf(p.marks[i], buf[:0])
		for j := range packs {
			x := &packs[j]
			if d.classes[x.head>>headShift].launch != l {
				plain = false
				continue
			}
			classes = d.coolPack(x, p, i, classes)
		}
	}
	for i := range classes {
		plain = plain && !classes[i].odd
	}
	for i := range p.marks {
		switch {
		case p.marks[i].form == 0:
		case plain:
			d.mem.dropPacks(p, uint64(i))
		default:
			d.gatherPacks(l, p, i, classes)
		}
	}
	if len(classes) > 0 {
		p.ownCold(len(classes))
		p.cold = slices.Grow(p.cold, len(classes))
	}
	for i := range classes {
		if c := &classes[i]; !c.odd {
			d.coolClass(l, p, c)
		}
	}
}

// coolClass adds the cold accesses that stand for the packs of a class.
func (d *Detector) coolClass(l *launch, p *page, c *coolingClass) {
	c.launch = l
	c.class = d.coldClass(&d.classes[c.class])
	c.first = c.at - c.jump*c.line
	if c.threads == 0 {
		d.addCold(p, c.cold)
	}
	for j := range c.threads {
		x := c.cold
		size := cellBytes / c.threads
		x.first, x.bytes = c.first+uint64(j), (1<<size-1)<<(j*size)
		d.addCold(p, x)
	}
}

// sameForms gives what pages must have in common for their packs of launch l to become the same cold accesses, relative to
// the warp of their first line. It says false when the page has more than forms.
func (d *Detector) sameForms(l *launch, p *page) (s sameLines, ok bool) {
	last, base := uint32(0), uint32(0)
	for i := range p.marks {
		m := &p.marks[i]
		if m.form == 0 {
			continue
		}
		if m.form != last {
			if m.form&markList != 0 || d.classes[d.mem.forms.list[m.form][0].head>>headShift].launch != l {
				return s, false
			}
			if last == 0 {
				base, s.first = m.warp, i
			}
			last = m.form
		}
		s.forms[i], s.warps[i] = m.form, m.warp-base
	}
	if last == 0 || !p.packsOnly() {
		return s, false
	}
	if s.before, s.n, ok = p.sharedCold(); p.hasThreads() {
		s.threads, s.base = true, p.base-base
	}
	return s, ok
}

// dropForms forgets the forms of a page's lines.
func (s *shadow) dropForms(p *page) {
	for i := range p.marks {
		if p.marks[i].form != 0 {
			s.forms.lines--
		}
	}
	p.marks = [pageLines]mark{}
}

// coolingClass is the packs of a class in a page, on their way to a cold access: in the lines seen so far, thread = at +
// jump*(line - first line) + step*(address/4 >> shift), less page.base, addresses being those within the page.
type coolingClass struct {
	cold
	line, at uint64 // the first line, within the page
	lines    int    // 2 stands for more
	odd      bool   // one cold access cannot say it
	threads  uint   // of a cell, each with bytes of its own, of which at is the first; else 0
}

// gatherPacks empties line i of the packs of l, and gathers those that are odd.
func (d *Detector) gatherPacks(l *launch, p *page, i int, classes []coolingClass) {
	d.mem.thaw(p, uint64(i))
	for id := p.marks[i].first(); id != 0; {
		x := d.mem.packs.at(id)
		this, k := id, x.head>>headShift
		id = x.next
		if d.classes[k].launch != l {
			continue
		}
		for j := range classes {
			if classes[j].class == k && classes[j].odd {
				d.gatherPack(x, i*lineCells)
			}
		}
		d.mem.unlink(p, uint64(i), this)
	}
}

// coolPack adds a pack of line i to those of its class.
func (d *Detector) coolPack(x *pack, p *page, i int, classes []coolingClass) []coolingClass {
	k := x.head >> headShift
	size := d.classes[k].key.size
	y := coolingClass{cold: cold{class: k, bytes: headBytes}, line: uint64(i), lines: 1}
	t := (int64(x.warp) - int64(p.base)) * 32
	switch {
	case x.head&packOne != 0:
		y.bytes = x.head & headBytes
		y.at = x.one() - uint64(p.base)*32
		y.cells[i/2] = uint64(x.shape) << (i % 2 * 32)
	case size >= cellBytes && strideOf(x.shape) == int64(size):
		y.step = 1
		y.shift = uint8(bits.TrailingZeros8(size / cellBytes))
		y.at = uint64(t - (int64(y.line*lineBytes)+baseOf(x.shape))>>(2+y.shift))
		y.cells[i/2] = uint64(spanOf(false, x.shape, x.lanes, size)) << (i % 2 * 32)
	case size < cellBytes && x.wholeCells(size):
		y.threads = cellBytes / uint(size)
		y.step = uint64(y.threads)
		lanes := folded(x.lanes, foldsOf(x.shape))
		first := baseOf(x.shape) + int64(bits.TrailingZeros32(lanes))*int64(size)
		y.cells[i/2] = uint64(cellsAt(first, uint8(bits.OnesCount32(lanes))*size)) << (i % 2 * 32)
		y.at = uint64(t - (int64(y.line*lineBytes)+baseOf(x.shape))/int64(size))
	default:
		y.odd = true
	}
	for j := range classes {
		if c := &classes[j]; c.class == k {
			c.join(&y)
			return classes
		}
	}
	return append(classes, y)
}

// wholeCells says that neighbouring lanes access neighbouring bytes, and all of the cells that they touch.
func (x *pack) wholeCells(size uint8) bool {
	lanes := folded(x.lanes, foldsOf(x.shape))
	low := bits.TrailingZeros32(lanes)
	n := bits.Len32(lanes) - low
	return strideOf(x.shape) == int64(size) && bits.OnesCount32(lanes) == n && n*int(size)%cellBytes == 0 &&
		(baseOf(x.shape)+int64(low)*int64(size))%cellBytes == 0
}

// join adds another pack.
func (c *coolingClass) join(y *coolingClass) {
	for i := range c.cells {
		c.cells[i] |= y.cells[i]
	}
	far, diff := int64(y.line-c.line), int64(y.at-c.at)
	if c.lines == 1 && far != 0 {
		if diff%far != 0 {
			c.odd = true
			return
		}
		c.lines, c.jump = 2, uint64(diff/far)
	}
	c.odd = c.odd || y.odd || c.step != y.step || c.threads != y.threads || c.bytes != y.bytes || diff != int64(c.jump)*far
}

// one gives a thread of a pack whose lanes all access the same bytes.
func (x *pack) one() uint64 {
	if x.head&refKind == refSet {
		return uint64(x.warp)*32 + uint64(x.exec&31)
	}
	return uint64(x.warp)*32 + uint64(bits.TrailingZeros32(x.lanes))
}

// gatherPack adds a pack of a line, whose first cell in the page is given, to the cold accesses being gathered.
func (d *Detector) gatherPack(x *pack, first int) {
	k := x.head >> headShift
	t := uint64(x.warp) * 32
	if x.head&packOne != 0 {
		t := x.one()
		g := d.gatheredOf(k, x.head&headBytes, false)
		for m := x.shape; m != 0; m &= m - 1 {
			g.put(first+bits.TrailingZeros32(m), t)
		}
		return
	}
	base, stride, size := baseOf(x.shape), strideOf(x.shape), d.classes[k].key.size
	for m := folded(x.lanes, foldsOf(x.shape)); m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := base + int64(lane)*stride
		if size < cellBytes {
			d.gatheredOf(k, (1<<size-1)<<uint(at%cellBytes), false).put(first+int(at/cellBytes), t+uint64(lane))
			continue
		}
		g := d.gatheredOf(k, headBytes, false)
		for c := at / cellBytes; c < (at+int64(size))/cellBytes; c++ {
			g.put(first+int(c), t+uint64(lane))
		}
	}
}
