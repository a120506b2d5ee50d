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
}

type alike struct{ id, shared uint32 }

// maxStride is that of accesses that are packed: four lanes a line.
const maxStride = lineBytes / 4

// lanesRun is lanes whose addresses have one stride: a lane at place n, which is its number modulo 32>>folds, accesses
// first + n*stride.
type lanesRun struct {
	lanes  uint32
	folds  uint
	first  uint64
	stride int64
}

// maxRuns is how many runs an access is taken apart into at most.
const maxRuns = 4

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
	q.head = id << headShift
	if q.tellsOld() {
		q.head |= headOld
	} else if e.Flags&event.FlagValues != 0 {
		q.head |= headValues
	}
	d.acting = false
	for i := range q.runs {
		d.run(q, wi, &q.runs[i])
	}
	if d.acting {
		d.settle()
	}
	if q.locs && e.Kind == event.Store {
		d.overwrites(q)
	}
	return true
}

// takeApart finds the runs of an access. It says false when there are too many, or one is not aligned, too wide, or not
// apart where it writes.
func (q *whole) takeApart(b *event.Batch, e *event.Event) bool {
	q.runs = q.runs[:0]
	if e.Flags&event.FlagScattered == 0 {
		return q.add(e, e.Mask, e.Addr, e.Stride)
	}
	addrs := b.Addrs[e.Side:][:bits.OnesCount32(e.Mask)]
	rest := e.Mask
	if len(addrs) == 32 {
		if a := (*[32]uint64)(addrs); halves(a) {
			const low, high = 1<<16 - 1, ^uint32(1<<16 - 1)
			if !q.add(e, low, a[0], int64(a[1]-a[0])) || !q.add(e, high, a[16], int64(a[17]-a[16])) {
				return false
			}
			rest = 0
		}
	}
	for m := rest; m != 0; {
		var n int
		var stride int64
		if len(addrs) == bits.Len32(m)-bits.TrailingZeros32(m) { // no lane left out
			n, stride = even(addrs)
		} else {
			n, stride = spaced(addrs, m)
		}
		lanes := lowest(m, n)
		if len(q.runs) == maxRuns || !q.add(e, lanes, addrs[0], stride) {
			return false
		}
		addrs = addrs[n:]
		m &^= lanes
	}
	if e.Kind == event.Store {
		return q.disjoint(uint64(e.Size))
	}
	q.fold(e.Mask)
	return true
}

// halves says that the lanes of each half of a warp access memory at equal distances, as where it is two rows of a block.
func halves(a *[32]uint64) bool {
	s, t := a[1]-a[0], a[17]-a[16]
	x, y := a[0], a[16]
	odd := uint64(0)
	for i := range 16 { // no way out: this is quicker
		odd |= a[i] ^ x | a[i+16] ^ y
		x += s
		y += t
	}
	return odd == 0
}

// lowest gives the n lowest lanes.
func lowest(lanes uint32, n int) uint32 {
	rest := lanes
	for ; n > 0 && rest != 0; n-- {
		if rest&(rest+rest&-rest) == 0 { // neighbours: all at once
			return lanes &^ (rest &^ (rest&-rest<<n - rest&-rest))
		}
		rest &= rest - 1
	}
	return lanes &^ rest
}

// even gives how many of the addresses of neighbouring lanes lie in a line from the first on, and its stride.
func even(addrs []uint64) (n int, stride int64) {
	if len(addrs) == 1 {
		return 1, 0
	}
	step := addrs[1] - addrs[0]
	for n = 2; n < len(addrs) && addrs[n]-addrs[n-1] == step; n++ {
	}
	return n, int64(step)
}

// spaced is even for the addresses of any lanes.
func spaced(addrs []uint64, lanes uint32) (n int, stride int64) {
	low := bits.TrailingZeros32(lanes)
	n = 1
	for m := lanes & (lanes - 1); m != 0; m &= m - 1 {
		far := int64(bits.TrailingZeros32(m) - low)
		diff := int64(addrs[n] - addrs[0])
		if n == 1 {
			if stride = diff / far; stride*far != diff {
				return 1, 0
			}
		} else if diff != stride*far {
			break
		}
		n++
	}
	return n, stride
}

// add adds a run that begins at addr.
func (q *whole) add(e *event.Event, lanes uint32, addr uint64, stride int64) bool {
	if addr&uint64(e.Size-1) != 0 {
		return false
	}
	if lanes&(lanes-1) == 0 {
		q.runs = append(q.runs, lanesRun{lanes: lanes, first: addr})
		return true
	}
	size, far := int64(e.Size), max(stride, -stride)
	if stride == 0 && e.Kind == event.Store || stride != 0 && (far < size || far > maxStride || stride&(size-1) != 0) {
		return false
	}
	q.runs = append(q.runs, lanesRun{lanes: lanes, first: addr - uint64(int64(bits.TrailingZeros32(lanes))*stride), stride: stride})
	return true
}

// disjoint says that no two runs of a store have bytes in common, as far as that is cheap to see.
func (q *whole) disjoint(size uint64) bool {
	for i := range q.runs {
		for j := range q.runs[:i] {
			a, b := q.runs[i].bounds(size)
			if lo, hi := q.runs[j].bounds(size); a < hi && lo < b {
				return false
			}
		}
	}
	return true
}

func (r *lanesRun) bounds(size uint64) (lo, hi uint64) {
	x := r.first + uint64(int64(bits.TrailingZeros32(r.lanes))*r.stride)
	y := r.first + uint64(int64(31-bits.LeadingZeros32(r.lanes))*r.stride)
	return min(x, y), max(x, y) + size
}

// fold makes one of runs that are the same but for the lanes, halves or quarters of the warp.
func (q *whole) fold(mask uint32) {
	n := len(q.runs)
	if mask != ^uint32(0) || n != 2 && n != 4 {
		return
	}
	places := 32 / n
	r := q.runs[0]
	for i, o := range q.runs {
		if o.stride == 0 || o.stride != r.stride || o.lanes != (1<<places-1)<<uint(i*places) ||
			o.first+uint64(int64(i*places)*o.stride) != r.first {
			return
		}
	}
	r.lanes, r.folds = mask, uint(n/2)
	q.runs = append(q.runs[:0], r)
}

// run judges and records a run.
func (d *Detector) run(q *whole, wi uint32, r *lanesRun) {
	if r.stride != 0 {
		q.one, q.bytes = 0, headBytes
		q.head &^= packOne | headBytes
		d.lines(q, wi, r)
		return
	}
	at := r.first % lineBytes
	q.one, q.bytes, q.lanes, q.addr = packOne, headBytes, r.lanes, r.first
	if q.e.Size < cellBytes {
		q.bytes = (1<<q.e.Size - 1) << (at % cellBytes)
	}
	q.shape = cellsAt(int64(at), q.e.Size)
	q.head = q.head&^headBytes | packOne | q.bytes
	q.wrote, q.had, q.cells = false, false, 0
	d.part1(q, wi, r.first)
}

// lines goes through the lines of a run with a stride.
func (d *Detector) lines(q *whole, wi uint32, r *lanesRun) {
	places := uint64(32 >> r.folds)
	for m := r.lanes; m != 0; m &^= q.lanes {
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
		q.lanes = m & unfold(uint32(1<<min(n, places)-1), r.folds)
		q.shape = newShape(int64(r.first-line), r.stride, r.folds)
		q.wrote, q.had, q.cells = false, false, 0
		d.part1(q, wi, addr)
	}
}

// part1 judges and records the part of an access in the line of addr.
func (d *Detector) part1(q *whole, wi uint32, addr uint64) {
	p := d.pageOf(q.blk, q.e.Space == event.Shared, addr)
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
			return false
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

// Bits of whole.head besides those of pack.head.
const (
	headOld    uint32 = 1 << 5 // what the access overwrites is known
	headValues uint32 = 1 << 6 // what it writes is known, but not that
)

// tellsOld says that what a plain store wrote and what was there before is known.
func (q *whole) tellsOld() bool {
	return q.class.plain && q.e.Flags&(event.FlagValues|event.FlagOld) == event.FlagValues|event.FlagOld
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
		for m := y.ref &^ 1; m != 0; m &= m - 1 {
			s.add(&s.scrap, &e, q.class, y.warp+uint32(bits.TrailingZeros32(m))*y.far, group{y.lanes, y.clock, y.exec}, false)
		}
		y.head &^= refKind
		y.ref, y.far = 0, 0
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
	q.gather(&q.word, q.b.Values[e.Val:], false)
	cells := q.span()
	q.equal = e.Size >= cellBytes
	first := q.word[bits.TrailingZeros32(cells)&31]
	for m := cells; m != 0 && q.equal; m &= m - 1 {
		q.equal = q.word[bits.TrailingZeros32(m)&31] == first
	}
	return true
}

// before gathers what was where the part writes, by cell.
func (q *whole) before() {
	if !q.had {
		q.had = true
		q.gather(&q.old, q.b.Values[int(q.e.Val)+bits.OnesCount32(q.e.Mask)*event.ValueWords(q.e.Size):], true)
	}
}

// gather brings values of the lanes into cells, of small accesses the bytes that they write; around says that the values of
// these have the whole cell.
func (q *whole) gather(to *[lineCells]uint32, vals []uint64, around bool) {
	e := q.e
	size := int64(e.Size)
	if q.one == 0 && size == 4 && strideOf(q.shape) == 4 {
		rank := bits.OnesCount32(e.Mask & (q.lanes&-q.lanes - 1))
		at := baseOf(q.shape) / 4
		for m := q.lanes; m != 0; m &= m - 1 {
			to[(int64(bits.TrailingZeros32(m))+at)&31] = uint32(vals[rank])
			rank++
		}
		return
	}
	if size < cellBytes {
		*to = [lineCells]uint32{}
	}
	for m := q.lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		v := vals[bits.OnesCount32(e.Mask&(m&-m-1))*event.ValueWords(e.Size):]
		at := int64(q.b.AddrOf(e, lane) % lineBytes)
		if size < cellBytes {
			w := uint32(v[0])
			if around {
				w >>= uint(at % 4 * 8)
			}
			to[at/4] |= w & (1<<(8*size) - 1) << uint(at%4*8)
			continue
		}
		for c := int64(0); c < size; c += cellBytes {
			to[(at+c)/4] = uint32(v[c/8] >> uint(c%8*8))
		}
	}
}

// recall gives pack x, whose values memory holds no more after the part, these values.
func (q *whole) recall(s *shadow, x *pack) {
	q.fixed = false
	q.before()
	x.head = x.head&^refKind | refWords
	x.ref = s.words.add()
	*s.words.at(x.ref) = words{word: q.old}
}

// rewrite notes what a store wrote over all of x, its own earlier store.
func (d *Detector) rewrite(q *whole, x *pack) {
	s := d.mem
	kind := x.head & refKind
	if kind == 0 {
		return // mixed already
	}
	q.fixed = false
	if !q.words() || kind == refMemory && !q.tellsOld() {
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
	switch kind {
	case refMemory:
		q.before()
		old.word = q.old
	case refWord:
		for i := range old.word {
			old.word[i] = x.ref
		}
	default:
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
		if kind != refWords {
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
