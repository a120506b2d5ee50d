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
	head  uint32 // class<<8 | one | bytes if one | headOld, headValues
	one   uint32 // packOne or 0
	bytes uint32 // packOne: of each cell
	addr  uint64 // packOne
	locs  bool   // a page touched has locs
	wrote bool   // word is up to date
	equal bool   // the words of all cells are the same
	had   bool   // old is up to date
	// The part.
	lanes uint32
	shape uint32
	cells uint32 // what span gives, 0 when it was not asked
	word  [lineCells]uint32
	old   [lineCells]uint32 // what was there before, of the bytes written
	// What is needed for a step: nothing but what stepKey and check say decides about the packs that come out; the packs
	// that happen before the part.
	fixed bool
	check uint32
	// fading are packs whose values memory holds no more after the part.
	fading []uint32
	// alike are the packs of the class that share bytes with the part, and which lanes or cells.
	alike []alike
	runs  []lanesRun
	parts []part
}

type alike struct{ id, shared uint32 }

// whole judges and records a weak access if it is in lane order, in few runs. It says false, having done nothing, if
// not.
func (d *Detector) whole(b *event.Batch, e *event.Event, blk *block, wi, id uint32) bool {
	w := &blk.warps[wi]
	size := uint64(e.Size)
	if w.each != nil || size > 16 || size&(size-1) != 0 {
		return false
	}
	q := &d.part
	if !q.takeApart(b, e) {
		return false
	}
	q.id, q.class, q.blk, q.w, q.b, q.e = id, &d.classes[id], blk, w, b, e
	q.exec, q.clock, q.locs = e.Mask, w.same.clock, false
	q.head = id<<headShift | headOf(e)
	d.acting = false
	q.parts = q.parts[:0]
	for i := range q.runs {
		q.cut(&q.runs[i], e.Size)
	}
	for i := range q.parts {
		q.take(&q.parts[i])
		d.part1(q, wi, q.parts[i].addr)
	}
	if d.acting {
		d.findings.Settle()
	}
	if q.locs && e.Kind == event.Store {
		d.overwrites(q)
	}
	return true
}

// part is what a run accesses in one line.
type part struct {
	addr  uint64 // of an access in it, for packOne of the first byte
	lanes uint32
	shape uint32 // as in pack
	head  uint32 // packOne and bytes, or 0
	slot  uint32 // where its step was remembered
	// What page was asked for last, and its number, of a habit.
	page   *page
	number uint64
}

// cut appends the parts of a run.
func (q *whole) cut(r *lanesRun, size uint8) {
	if r.stride == 0 {
		at := r.first % lineBytes
		bytes := headBytes
		if size < cellBytes {
			bytes = (1<<size - 1) << (at % cellBytes)
		}
		q.parts = append(q.parts, part{addr: r.first, lanes: r.lanes, shape: cellsAt(int64(at), size), head: packOne | bytes})
		return
	}
	places := uint64(32 >> r.folds)
	for m := r.lanes; m != 0; {
		addr := r.first + uint64(int64(uint64(bits.TrailingZeros32(m))&(places-1))*r.stride)
		line := addr &^ (lineBytes - 1)
		var n uint64 // places from 0 up to where the line ends
		switch {
		case r.stride == 4:
			n = (line + lineBytes - r.first + 3) / 4
		case r.stride > 0:
			n = (line + lineBytes - r.first + uint64(r.stride) - 1) / uint64(r.stride)
		default:
			n = (r.first-line)/uint64(-r.stride) + 1
		}
		lanes := m & unfold(uint32(1<<min(n, places)-1), r.folds)
		q.parts = append(q.parts, part{addr: addr, lanes: lanes, shape: newShape(int64(r.first-line), r.stride, r.folds)})
		m &^= lanes
	}
}

// take makes a part the one to be judged.
func (q *whole) take(x *part) {
	q.one, q.bytes, q.addr = x.head&packOne, headBytes, x.addr
	if q.one != 0 {
		q.bytes = x.head & headBytes
	}
	q.head = q.head&^(packOne|headBytes) | x.head
	q.lanes, q.shape = x.lanes, x.shape
	q.wrote, q.had, q.cells = false, false, 0
}

// part1 judges and records the part of an access in the line of addr.
func (d *Detector) part1(q *whole, wi uint32, addr uint64) {
	p := d.pageOf(q.blk, q.e.Space == event.Shared, addr)
	if i := addr % pageBytes / lineBytes; p.stale && p.notes[i] != 0 && bits.OnesCount32(q.lanes) >= manyLanes {
		d.coolStale(p) // the line may have packs again
	}
	q.locs = q.locs || p.valued()
	if len(p.cold) == 0 || p.warmed == q.blk.info.ID || d.allKnown(p, q.blk) {
		i := addr % pageBytes / lineBytes
		if p.expanded(i) == nil && p.notes[i] == 0 {
			if d.packed(q, p, i) {
				return
			}
		}
	}
	d.partByCells(q, wi)
	q.locs = q.locs || d.act.locs
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

// overwrites ends the chains of strong writes that a store covers.
func (d *Detector) overwrites(q *whole) {
	for m := q.e.Mask; m != 0; m &= m - 1 {
		addr := q.b.AddrOf(q.e, bits.TrailingZeros32(m))
		if p := d.pageOf(q.blk, q.e.Space == event.Shared, addr); p.valued() {
			p.overwrite(addr, uint64(q.e.Size), nil)
		}
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
		d.values(a.lane, q.addr)
		d.touch(q.addr, size, true, true)
		return
	}
	for m := q.lanes; m != 0; m &= m - 1 {
		a.lane = bits.TrailingZeros32(m)
		a.lanes = m & -m
		addr := q.b.AddrOf(e, a.lane)
		d.values(a.lane, addr)
		d.touch(addr, size, true, true)
	}
}

// pack judges and records the part in line i of p, which has packs or nothing. It says false, having done nothing, when
// the line must be expanded: there may be a race, or packs do not say what must be said.
func (d *Detector) pack(q *whole, p *page, i uint64) bool {
	n := 0
	q.alike, q.fading = q.alike[:0], q.fading[:0]
	write := q.class.side.Write
	for id := p.marks[i].first(); id != 0; n++ {
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
			if !over(k.launch, q.blk.start) || write && x.head&refKind == refMemory {
				return false
			}
			continue
		}
		if !write && !k.side.Write {
			continue
		}
		span := spanOf(x.head&packOne != 0, x.shape, x.lanes, k.key.size)
		if span&q.span() == 0 {
			continue
		}
		if !q.mine(x) {
			if !d.ordered(q, x) {
				return false
			}
			q.check |= 1 << uint(n)
		}
		if write && x.head&refKind == refMemory {
			// The event tells what was there before of the bytes that it writes alone.
			if !q.tellsOld() || span&^q.span() != 0 || k.key.size < cellBytes || q.e.Size < cellBytes {
				return false
			}
			q.fading = append(q.fading, this)
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

// span is the cells of the part.
func (q *whole) span() uint32 {
	if q.cells == 0 {
		q.cells = spanOf(q.one != 0, q.shape, q.lanes, q.e.Size)
	}
	return q.cells
}

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
	if kind := x.head & refKind; x.warp != q.e.Warp || kind == refSet || kind == refWarps {
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
	switch x.head & refKind {
	case refSet:
	case refWarps:
		for m := x.ref; m != 0; m &= m - 1 {
			warp := x.warp + uint32(bits.TrailingZeros32(m))*x.far
			if warp == q.e.Warp && x.head&packOne == 0 && q.one == 0 && x.shape == q.shape {
				continue // each byte by one thread, as mine says
			}
			if v.behind(q.blk, warp, x.lanes, x.clock) != 0 {
				return false
			}
		}
		return true
	default:
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
	if p.marks[i].form == 0 {
		d.mem.link(p, i, x)
		return
	}
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
	z := *x // with the warp
	if z.alsoBy(q.e.Warp, g, q.one != 0) && z == *x {
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
	if y.alsoBy(q.e.Warp, g, q.one != 0) {
		d.unite(p, i, y)
		return
	}
	e := entry{warp: y.warp, lanes: y.lanes, clock: y.clock, exec: y.exec}
	switch y.head & refKind {
	case refSet:
		e.head, e.lanes = headMany, y.ref
	case refWarps:
		s.several(&e, q.class, &y)
		y.head &^= refKind
		y.ref, y.far = 0, 0
	}
	s.add(&e, q.class, q.e.Warp, g, false)
	y.warp, y.clock, y.exec = e.warp, e.clock, e.exec
	if e.head&headMany != 0 {
		y.head |= refSet
		y.ref = e.lanes
	} else {
		y.lanes = e.lanes
	}
	d.unite(p, i, y)
}

// alsoBy makes x, loads, one that a warp made too, at g; one: all lanes at the same bytes. It says false if the warp's is
// not like the others', or its number does not go with theirs.
func (x *pack) alsoBy(warp uint32, g group, one bool) bool {
	kind := x.head & refKind
	if kind != 0 && kind != refWarps || x.clock != g.clock || x.exec != g.exec || one && x.lanes != g.lanes {
		return false
	}
	away := int64(warp) - int64(x.warp)
	if kind == 0 {
		if away != 0 {
			x.head |= refWarps
			x.warp, x.ref, x.far = min(x.warp, warp), 3, uint32(max(away, -away))
		}
		return true
	}
	if away%int64(x.far) != 0 && !x.closer(uint32(max(away, -away))) {
		return false
	}
	switch n := away / int64(x.far); {
	case n >= 32 || n <= -32 || bits.Len32(x.ref)-int(n) > 32:
		return false
	case n >= 0:
		x.ref |= 1 << uint(n)
	default:
		x.ref = x.ref<<uint(-n) | 1
		x.warp = warp
	}
	return true
}

// closer changes far to a divisor of away. It says false, having done nothing, when there are not bits enough for that.
func (x *pack) closer(away uint32) bool {
	far := x.far
	for away != 0 {
		far, away = away, far%away
	}
	times := x.far / far
	if uint64(bits.Len32(x.ref)-1)*uint64(times) >= 32 {
		return false
	}
	warps := uint32(0)
	for m := x.ref; m != 0; m &= m - 1 {
		warps |= 1 << (uint32(bits.TrailingZeros32(m)) * times)
	}
	x.ref, x.far = warps, far
	return true
}

// unite adds a pack of loads to a line: to another that holds the same.
func (d *Detector) unite(p *page, i uint64, y pack) {
	s := d.mem
	for id := p.marks[i].first(); id != 0; {
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
		if x.warp != y.warp || x.clock != y.clock || x.exec != y.exec || x.ref != y.ref || x.far != y.far {
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
	for _, id := range q.fading {
		q.recall(s, s.packs.at(id))
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
	if q.tellsOld() {
		x.head |= refMemory
	} else if q.words() {
		q.fixed = false
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
