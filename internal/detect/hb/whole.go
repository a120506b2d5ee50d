package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// whole is an access of a warp in lane order, and of it the part that lies in one line.
type whole struct {
	id    uint32
	class *class
	blk   *block
	w     *warp
	b     *event.Batch
	e     *event.Event
	exec  uint32
	clock uint32
	one   uint32 // packOne or 0
	bytes uint32 // packOne: of each cell
	wrote bool   // word is up to date
	equal bool   // the words of all cells are the same
	// The part.
	lanes uint32
	shape uint32
	word  [lineCells]uint32
	// alike are the packs of the class that share bytes with the part, and which lanes or cells.
	alike []alike
}

type alike struct{ id, shared uint32 }

// maxStride is that of accesses that are packed: four lanes a line.
const maxStride = lineBytes / 4

// whole judges and records a weak access if it is in lane order. It says false, having done nothing, if not.
func (d *Detector) whole(b *event.Batch, e *event.Event, blk *block, wi, id uint32) bool {
	w := &blk.warps[wi]
	size := uint64(e.Size)
	if e.Flags&event.FlagScattered != 0 || w.each != nil || size > 16 || size&(size-1) != 0 || e.Addr&(size-1) != 0 {
		return false
	}
	q := &d.part
	q.id, q.class, q.blk, q.w, q.b, q.e = id, &d.classes[id], blk, w, b, e
	q.exec, q.clock, q.wrote = e.Mask, w.same.clock, false
	d.acting = false
	if single := e.Mask&(e.Mask-1) == 0; single || e.Stride == 0 {
		if !single && e.Kind == event.Store {
			return false
		}
		at := e.Addr % lineBytes
		q.one, q.bytes, q.lanes = packOne, headBytes, e.Mask
		if size < cellBytes {
			q.bytes = (1<<size - 1) << (at % cellBytes)
		}
		q.shape = cellsAt(int64(at), e.Size)
		d.part1(q, wi, e.Addr)
	} else {
		stride := e.Stride
		far := max(stride, -stride)
		if far < int64(size) || far > maxStride || stride&int64(size-1) != 0 {
			return false
		}
		q.one, q.bytes = 0, headBytes
		d.lines(q, wi, stride)
	}
	if d.acting {
		d.settle()
	}
	return true
}

// lines goes through the lines of an access with a stride.
func (d *Detector) lines(q *whole, wi uint32, stride int64) {
	e := q.e
	first := e.Addr - uint64(int64(bits.TrailingZeros32(e.Mask))*stride) // of lane 0
	for m := e.Mask; m != 0; m &^= q.lanes {
		addr := first + uint64(int64(bits.TrailingZeros32(m))*stride)
		line := addr &^ (lineBytes - 1)
		var n uint64 // lanes from 0 up to where the line ends
		switch {
		case stride == 4:
			n = (line + lineBytes - first + 3) / 4
		case stride > 0:
			n = (line + lineBytes - first + uint64(stride) - 1) / uint64(stride)
		default:
			n = (first-line)/uint64(-stride) + 1
		}
		q.lanes = m & uint32(1<<min(n, 32)-1)
		q.shape = newShape(int64(first-line), stride)
		q.wrote = false
		d.part1(q, wi, addr)
	}
}

// part1 judges and records the part of an access in the line of addr.
func (d *Detector) part1(q *whole, wi uint32, addr uint64) {
	p := d.pageOf(q.blk, q.e.Space == event.Shared, addr)
	if len(p.cold) == 0 || p.warmed == q.blk.info.ID || d.allKnown(p, q.blk) {
		i := addr % pageBytes / lineBytes
		if p.expanded(i) == nil {
			if d.pack(q, p, i) {
				if p.locs != nil && q.class.side.Write {
					d.partOverwrites(q, p)
				}
				return
			}
		}
	}
	d.partByCells(q, wi)
}

// allKnown says that all cold accesses of p happen before all of the block's launch.
func (d *Detector) allKnown(p *page, blk *block) bool {
	for i := range p.cold {
		if !d.known(&p.cold[i], blk.start) {
			return false
		}
	}
	p.warmed = blk.info.ID
	return true
}

// partOverwrites ends the chains of strong writes that the part covers.
func (d *Detector) partOverwrites(q *whole, p *page) {
	for m := q.lanes; m != 0; m &= m - 1 {
		p.overwrite(q.b.AddrOf(q.e, bits.TrailingZeros32(m)), uint64(q.e.Size), nil)
	}
}

// partByCells does the part lane by lane.
func (d *Detector) partByCells(q *whole, wi uint32) {
	e := q.e
	a := &d.act
	if !d.acting {
		d.acting = true
		*a = actor{class: q.class, id: q.id, b: q.b, e: e, blk: q.blk, wi: wi, warp: e.Warp, exec: e.Mask,
			shared: e.Space == event.Shared, d: d}
	}
	a.view = &q.w.same
	size := uint64(e.Size)
	if q.one != 0 {
		a.lanes, a.lane = q.lanes, bits.TrailingZeros32(q.lanes)
		d.values(a.lane, e.Addr)
		d.touch(e.Addr, size, true, true)
		if q.class.side.Write {
			d.weakWrite(e.Addr, size)
		}
		return
	}
	for m := q.lanes; m != 0; m &= m - 1 {
		a.lane = bits.TrailingZeros32(m)
		a.lanes = m & -m
		addr := q.b.AddrOf(e, a.lane)
		d.values(a.lane, addr)
		d.touch(addr, size, true, true)
		if q.class.side.Write && a.locs {
			d.weakWrite(addr, size)
		}
	}
}

// pack judges and records the part in line i of p, which has packs or nothing. It says false, having done nothing, when
// the line must be expanded: there may be a race, or packs do not say what must be said.
func (d *Detector) pack(q *whole, p *page, i uint64) bool {
	n := 0
	q.alike = q.alike[:0]
	write := q.class.side.Write
	for id := p.packs[i]; id != 0; n++ {
		this, x := id, d.mem.packs.at(id)
		id = x.next
		if x.head>>headShift == q.id {
			over, ok := q.over(x)
			if !ok || over != 0 && write && !q.mine(x) {
				return false
			}
			if over != 0 {
				q.alike = append(q.alike, alike{this, over})
			}
			continue
		}
		k := &d.classes[x.head>>headShift]
		if k.launch != q.class.launch {
			return false
		}
		if !write && !k.side.Write || q.mine(x) || d.ordered(q, x) {
			continue
		}
		if spanOf(x.head&packOne != 0, x.shape, x.lanes, k.key.size)&q.span() != 0 {
			return false
		}
	}
	if n > maxPacks {
		return false
	}
	if write {
		return d.packStore(q, p, i)
	}
	d.packLoad(q, p, i)
	return true
}

func (q *whole) span() uint32 { return spanOf(q.one != 0, q.shape, q.lanes, q.e.Size) }

// over gives the lanes, for packOne the cells, that the part has in common with a pack of its class. Not ok: they have
// bytes in common in another way.
func (q *whole) over(x *pack) (shared uint32, ok bool) {
	if x.head&packOne == q.one {
		switch {
		case q.one == 0 && x.shape == q.shape:
			return x.lanes & q.lanes, true
		case q.one != 0 && x.head&headBytes == q.bytes:
			return x.shape & q.shape, true
		}
	}
	if spanOf(x.head&packOne != 0, x.shape, x.lanes, q.e.Size)&q.span() != 0 {
		return 0, false
	}
	return 0, true
}

// mine says that each byte that x and the part have in common was accessed by one thread.
func (q *whole) mine(x *pack) bool {
	if x.warp != q.e.Warp || x.head&refKind == refSet {
		return false
	}
	if x.head&packOne == 0 && q.one == 0 && x.shape == q.shape {
		return true
	}
	return x.lanes == q.lanes && q.lanes&(q.lanes-1) == 0
}

// ordered says that all of x happens before the part.
func (d *Detector) ordered(q *whole, x *pack) bool {
	v := &q.w.same
	if x.head&refKind != refSet {
		return v.behind(q.blk, x.warp, x.lanes, x.clock) == 0
	}
	s := &d.mem.sets.slots[x.ref]
	return s.root.walk(s.depth, 0, func(_, _ uint64, top uint32) bool {
		return v.grid != nil && v.grid.Min >= top
	}, func(warp uint32, g group) bool {
		return v.behind(q.blk, warp, g.lanes, g.clock) == 0
	})
}

// whole is all lanes of x, for packOne all cells.
func (x *pack) whole() *uint32 {
	if x.head&packOne != 0 {
		return &x.shape
	}
	return &x.lanes
}

// packLoad records a load.
func (d *Detector) packLoad(q *whole, p *page, i uint64) {
	rest := q.lanes
	if q.one != 0 {
		rest = q.shape
	}
	for _, o := range q.alike {
		rest &^= o.shared
		d.join1(q, p, i, o.id, o.shared)
	}
	if rest == 0 {
		return
	}
	x := pack{head: q.id<<headShift | q.one | q.bytes, warp: q.e.Warp, lanes: q.lanes, clock: q.clock, exec: q.exec, shape: q.shape}
	*x.whole() = rest
	d.unite(p, i, x)
}

// join1 adds the part to lanes, for packOne cells, of pack id, which has them.
func (d *Detector) join1(q *whole, p *page, i uint64, id uint32, shared uint32) {
	s := d.mem
	x := s.packs.at(id)
	g := group{q.lanes, q.clock, q.exec}
	if q.one == 0 {
		g.lanes = shared
	}
	if x.head&refKind == 0 && x.warp == q.e.Warp && x.clock == g.clock && x.exec == g.exec && (q.one == 0 || x.lanes == g.lanes) {
		return
	}
	y := *x
	*y.whole() = shared
	if y.head&refKind == refSet {
		s.sets.slots[y.ref].refs++
	}
	if *x.whole() &^= shared; *x.whole() == 0 {
		s.unlink(p, i, id)
	}
	e := entry{warp: y.warp, lanes: y.lanes, clock: y.clock, exec: y.exec}
	if y.head&refKind == refSet {
		e.head, e.lanes = headMany, y.ref
	}
	s.add(&s.scrap, &e, q.class, q.e.Warp, g, false)
	y.warp, y.clock, y.exec = e.warp, e.clock, e.exec
	if e.head&headMany != 0 {
		y.head |= refSet
		y.ref = e.lanes
	} else {
		y.lanes = e.lanes
	}
	d.unite(p, i, y)
}

// unite adds a pack of loads to a line: to another that holds the same.
func (d *Detector) unite(p *page, i uint64, y pack) {
	s := d.mem
	for id := p.packs[i]; id != 0; {
		x := s.packs.at(id)
		id = x.next
		if x.head != y.head {
			continue
		}
		if y.head&refKind == refSet {
			if y.head&packOne != 0 && x.ref == y.ref {
				x.shape |= y.shape
				s.sets.drop(y.ref)
				return
			}
			continue
		}
		if x.warp != y.warp || x.clock != y.clock || x.exec != y.exec {
			continue
		}
		if y.head&packOne != 0 && x.lanes == y.lanes || y.head&packOne == 0 && x.shape == y.shape {
			*x.whole() |= *y.whole()
			return
		}
	}
	s.link(p, i, y)
}

// packStore records a store.
func (d *Detector) packStore(q *whole, p *page, i uint64) bool {
	s := d.mem
	rest := q.lanes
	if q.one != 0 {
		rest = q.shape
	}
	for _, o := range q.alike {
		x := s.packs.at(o.id)
		if o.shared != *x.whole() || q.exec&^x.exec != 0 && x.clock != q.clock {
			return false
		}
	}
	for _, o := range q.alike {
		x := s.packs.at(o.id)
		rest &^= o.shared
		if q.exec&^x.exec == 0 {
			x.clock, x.exec = q.clock, q.exec
		} else {
			x.exec &= q.exec
		}
		d.rewrite(q, x)
	}
	if rest == 0 {
		return true
	}
	x := pack{head: q.id<<headShift | q.one | q.bytes&headBytes, warp: q.e.Warp, lanes: q.lanes, clock: q.clock, exec: q.exec, shape: q.shape}
	*x.whole() = rest
	if q.words() {
		if q.equal {
			x.head |= refWord
			x.ref = q.word[bits.TrailingZeros32(q.span())&31]
		} else {
			x.head |= refWords
			x.ref = s.words.add()
			w := s.words.at(x.ref)
			w.word, w.mixed = q.word, 0
		}
	}
	s.link(p, i, x)
	return true
}

// words gathers what the part writes, by cell. It says false when that is not known.
func (q *whole) words() bool {
	e := q.e
	if e.Flags&event.FlagValues == 0 || !q.class.plain {
		return false
	}
	if q.wrote {
		return true
	}
	q.wrote = true
	size := int64(e.Size)
	vals := q.b.Values[e.Val:]
	rank := bits.OnesCount32(e.Mask & (q.lanes&-q.lanes - 1))
	if q.one == 0 && size == 4 && strideOf(q.shape) == 4 {
		at := baseOf(q.shape) / 4
		q.equal = true
		first := uint32(vals[rank])
		for m := q.lanes; m != 0; m &= m - 1 {
			v := uint32(vals[rank])
			rank++
			q.word[(int64(bits.TrailingZeros32(m))+at)&31] = v
			q.equal = q.equal && v == first
		}
		return true
	}
	q.wordsByLane(vals)
	return true
}

func (q *whole) wordsByLane(vals []uint64) {
	e := q.e
	size := int64(e.Size)
	if size < cellBytes {
		q.word = [lineCells]uint32{}
	}
	for m := q.lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		v := vals[bits.OnesCount32(e.Mask&(m&-m-1))*event.ValueWords(e.Size):]
		at := int64(q.b.AddrOf(e, lane) % lineBytes)
		if size < cellBytes {
			q.word[at/4] |= uint32(v[0]&(1<<(8*size)-1)) << uint(at%4*8)
			continue
		}
		for c := int64(0); c < size; c += cellBytes {
			q.word[(at+c)/4] = uint32(v[c/8] >> uint(c%8*8))
		}
	}
	q.equal = size >= cellBytes
	cells := q.span()
	first := q.word[bits.TrailingZeros32(cells)]
	for m := cells; m != 0 && q.equal; m &= m - 1 {
		q.equal = q.word[bits.TrailingZeros32(m)] == first
	}
}

// rewrite notes what a store wrote over all of x, its own earlier store.
func (d *Detector) rewrite(q *whole, x *pack) {
	s := d.mem
	kind := x.head & refKind
	if kind == 0 {
		return // mixed already
	}
	if !q.words() {
		s.dropRef(x)
		return
	}
	small := q.e.Size < cellBytes
	cells := spanOf(q.one != 0, x.shape, x.lanes, q.e.Size)
	all := cells
	if small && q.one == 0 {
		all = x.lanes
	}
	old := words{}
	if kind == refWord {
		for i := range old.word {
			old.word[i] = x.ref
		}
	} else {
		old = *s.words.at(x.ref)
	}
	mixed := old.mixed
	if !small {
		for m := cells; m != 0; m &= m - 1 {
			if c := bits.TrailingZeros32(m); old.word[c] != q.word[c] {
				mixed |= m & -m
			}
		}
	} else {
		mixed |= q.mixedBytes(x, &old)
	}
	switch {
	case mixed == 0:
	case mixed == all:
		s.dropRef(x)
	default:
		if kind == refWord {
			x.head = x.head&^refKind | refWords
			x.ref = s.words.add()
		}
		old.mixed = mixed
		*s.words.at(x.ref) = old
	}
}

// mixedBytes gives where an access of less than a cell wrote something else than old: by lane, for packOne by cell.
func (q *whole) mixedBytes(x *pack, old *words) (mixed uint32) {
	if q.one != 0 {
		c := bits.TrailingZeros32(x.shape)
		if (old.word[c]^q.word[c])&spread(q.bytes) != 0 {
			return 1 << uint(c)
		}
		return 0
	}
	base, stride, size := baseOf(x.shape), strideOf(x.shape), q.e.Size
	for m := x.lanes; m != 0; m &= m - 1 {
		at := base + int64(bits.TrailingZeros32(m))*stride
		if (old.word[at/4]^q.word[at/4])&spread((1<<size-1)<<uint(at%4)) != 0 {
			mixed |= m & -m
		}
	}
	return mixed
}
