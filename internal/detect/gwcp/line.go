package gwcp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// lineBytes is the size of memory that a line represents. A line has 32 granules of 4 bytes.
const lineBytes = 128

// span is an access by lanes of one warp to granules of a line.
type span struct {
	warp  uint32
	epoch uint32
	lanes uint32
	exec  uint32 // lanes that executed the instruction
	gm    uint32 // a bit for each granule; 0: no access
	class uint32
	shape shape
}

// shape says which lane accessed each granule of a span, and which bytes of it. It consists of 4 bits of bytes, 2 bits
// for the logarithm of num, 5 bits of den and 16 bits of c. Granule g was accessed by lane (g*num - c) / den; if den is
// 0, by every lane of the span.
type shape uint32

func makeShape(bytes uint8, num, den uint, c int) shape {
	return shape(bytes) | shape(num)<<4 | shape(den)<<6 | shape(uint16(int16(c)))<<16
}

// all is the shape of an access in which every lane accesses the same bytes.
func all(bytes uint8) shape { return shape(bytes) }

func (s shape) bytes() uint8            { return uint8(s & 15) }
func (s shape) den() int                { return int(s >> 6 & 31) }
func (s shape) withBytes(b uint8) shape { return s&^15 | shape(b) }
func (s shape) overlaps(o shape) bool   { return s&o&15 != 0 }
func (s shape) covers(o shape) bool     { return o&^s&15 == 0 }

// owners returns the lanes that accessed granule g of x.
func (x *span) owners(g int) uint32 {
	den := x.shape.den()
	if den == 0 {
		return x.lanes
	}
	n := g<<(x.shape>>4&3) - int(int16(x.shape>>16))
	return 1 << uint(n/den) & x.lanes
}

// sameThreads reports whether at each granule x and n have the same single thread, whatever granules they cover.
func (x *span) sameThreads(n *span) bool {
	return x.warp == n.warp && (x.shape^n.shape)>>4 == 0 && (x.shape>>6&31 != 0 || x.lanes == n.lanes && x.lanes&(x.lanes-1) == 0)
}

// line is the shadow of 128 bytes: the last write of each byte (W of 000, an epoch), and the reads since then (R of
// 000). For warps that access memory in lane order, one span of each suffices; further ones are in more.
type line struct {
	w, r span
	more *more
}

type more struct {
	ws, rs []span
	// cells are used if lanes write at random: for each granule, the last write that covered it whole, or what remains
	// of that write.
	cells *[32]span
	// last is used with more than few reads: for each warp with reads, the index of its newest one in rs.
	last  newest
	prune int // the length of rs at which superseded reads are searched for next
}

// If rs has at most few reads, only the newest near ones are searched for one of the same warp.
const (
	few  = 48
	near = 8
)

// firstPrune is the number of reads at which superseded ones are first searched for.
const firstPrune = 4

// strip removes the bytes that n covers from x. It returns the part of x that lies in the same granules but in other
// bytes.
func (x *span) strip(n *span) (rest span) {
	both := x.gm & n.gm
	if both == 0 || !x.shape.overlaps(n.shape) {
		return rest
	}
	x.gm &^= both
	if !n.shape.covers(x.shape) {
		rest = *x
		rest.gm, rest.shape = both, x.shape.withBytes(x.shape.bytes()&^n.shape.bytes())
	}
	return rest
}

// write records n as the last write of its bytes, and drops the reads of these bytes.
func (d *Detector) write(ln *line, n *span) {
	if m := ln.more; m != nil && m.cells != nil && n.shape.bytes() == 15 && (ln.w.gm|ln.r.gm)&n.gm == 0 && len(m.ws)+len(m.rs) == 0 {
		m.fill(n)
		return
	}
	if ln.more == nil && ln.w.gm&^n.gm == 0 && n.shape.covers(ln.w.shape) && (ln.r.gm&n.gm == 0 || n.shape.covers(ln.r.shape)) {
		ln.r.gm &^= n.gm
		ln.w = *n
		return
	}
	old := ln.w.strip(n)
	read := ln.r.strip(n)
	m := ln.more
	if m != nil {
		if m.cells != nil {
			m.fill(n)
		}
		m.ws, _ = stripAll(m.ws, n)
		var changed bool
		if m.rs, changed = stripAll(m.rs, n); changed && m.last.slots != nil {
			m.index()
		}
	}
	if old.gm != 0 {
		d.more(ln).ws = append(ln.more.ws, old)
	}
	if read.gm != 0 {
		d.addRead(d.more(ln), &read)
	}
	switch {
	case m != nil && m.cells != nil && n.shape.bytes() == 15:
	case ln.w.gm == 0:
		ln.w = *n
	case ln.w.merge(n):
	default:
		m := d.more(ln)
		if end := len(m.ws) - 1; end < 0 || !m.ws[end].merge(n) {
			m.ws = append(m.ws, *n)
		}
		if len(m.ws) >= scattered && m.cells == nil && n.shape.bytes() == 15 {
			m.scatter()
		}
	}
}

// scattered is the number of writes at which cells are used.
const scattered = 8

// scatter moves the writes of whole granules to cells.
func (m *more) scatter() {
	m.cells = new([32]span)
	keep := m.ws[:0]
	for _, x := range m.ws {
		if x.shape.bytes() == 15 {
			m.fill(&x)
		} else {
			keep = append(keep, x)
		}
	}
	m.ws = keep
}

// fill puts n into its cells if it covers whole granules. Otherwise it removes its bytes from them.
func (m *more) fill(n *span) {
	for gm := n.gm; gm != 0; gm &= gm - 1 {
		c := &m.cells[bits.TrailingZeros32(gm)]
		if n.shape.bytes() == 15 {
			*c = *n
			c.gm = gm & -gm
			continue
		}
		if rest := c.strip(n); rest.gm != 0 {
			*c = rest
		}
	}
}

// stripAll strips a list, and says whether it has changed.
func stripAll(list []span, n *span) (left []span, changed bool) {
	if n.gm == ^uint32(0) && n.shape.bytes() == 15 {
		return list[:0], len(list) > 0
	}
	for i := 0; i < len(list); i++ {
		x := &list[i]
		if x.gm&n.gm == 0 || !x.shape.overlaps(n.shape) {
			continue
		}
		changed = true
		rest := x.strip(n)
		switch {
		case x.gm != 0 && rest.gm != 0:
			list = append(list, rest)
		case rest.gm != 0:
			*x = rest
		case x.gm == 0:
			end := len(list) - 1
			*x = list[end]
			list = list[:end]
			i--
		}
	}
	return list, changed
}

// merge extends x by n if both differ only in their granules.
func (x *span) merge(n *span) bool {
	if x.warp != n.warp || x.shape != n.shape || x.epoch != n.epoch || x.class != n.class || x.lanes != n.lanes && x.shape.den() == 0 {
		return false
	}
	x.gm |= n.gm
	x.lanes |= n.lanes
	x.exec |= n.exec
	return true
}

func (d *Detector) more(ln *line) *more {
	if ln.more != nil {
		return ln.more
	}
	if d.act.e.Space != event.Shared {
		ln.more = &more{prune: firstPrune}
		return ln.more
	}
	if n := len(d.spare); n > 0 {
		ln.more, d.spare = d.spare[n-1], d.spare[:n-1]
	} else {
		ln.more = &more{prune: firstPrune}
	}
	d.act.blk.mores = append(d.act.blk.mores, ln.more)
	return ln.more
}

// takeBack keeps the memory of the lines of a block's shared memory for reuse.
func (d *Detector) takeBack(b *block) {
	for _, m := range b.mores {
		if len(d.spare) == maxSpare {
			break
		}
		*m = more{ws: m.ws[:0], rs: m.rs[:0], prune: firstPrune}
		d.spare = append(d.spare, m)
	}
	clear(b.mores)
	b.mores = b.mores[:0]
}

// maxSpare is the number of lines whose memory is kept.
const maxSpare = 1024

// read records n among the reads of its bytes.
func (d *Detector) read(ln *line, n *span) {
	switch {
	case ln.r.gm&^n.gm == 0 && n.shape.covers(ln.r.shape) && (ln.r.gm == 0 || d.replaces(n, &ln.r)):
		ln.r = *n
	case ln.r.merge(n):
	default:
		d.addRead(d.more(ln), n)
	}
}

// replaces reports whether the read n comes after x and is as strong: it races with everything that x races with, and
// has observed what x has observed.
func (d *Detector) replaces(n, x *span) bool {
	if n.class != x.class && d.classes[n.class].side != d.classes[x.class].side {
		return false
	}
	a := &d.act
	return x.sameThreads(n) || d.run.unknown(&a.view.p, a.blk, x.warp, x.lanes, x.epoch) == 0
}

// addRead adds a read to the reads of more.
func (d *Detector) addRead(m *more, n *span) {
	if m.last.slots == nil {
		for i := len(m.rs) - 1; i >= max(0, len(m.rs)-near); i-- {
			if x := &m.rs[i]; x.warp == n.warp && x.supersede(n) {
				return
			}
		}
	} else if i, ok := m.last.of(n.warp); ok && m.rs[i].supersede(n) {
		return
	}
	if len(m.rs) >= m.prune {
		keep := m.rs[:0]
		for i := range m.rs {
			x := &m.rs[i]
			if x.gm&^n.gm == 0 && n.shape.covers(x.shape) && d.replaces(n, x) {
				continue
			}
			keep = append(keep, *x)
		}
		m.rs = keep
		m.index()
		m.prune = max(firstPrune, 2*len(m.rs))
	}
	m.rs = append(m.rs, *n)
	switch {
	case m.last.slots != nil:
		m.last.set(n.warp, len(m.rs)-1)
	case len(m.rs) > few:
		m.index()
	}
}

// index rebuilds last.
func (m *more) index() {
	if len(m.rs) <= few {
		m.last = newest{}
		return
	}
	m.last.clear()
	for i := range m.rs {
		m.last.set(m.rs[i].warp, i)
	}
}

// supersede makes x represent the read n by the same warp, if it can: they differ only in granules, or n covers x and
// is by the same threads.
func (x *span) supersede(n *span) bool {
	if x.merge(n) {
		return true
	}
	if x.class == n.class && x.sameThreads(n) && x.gm&^n.gm == 0 && n.shape.covers(x.shape) {
		*x = *n
		return true
	}
	return false
}

// part is a span with the address of its line.
type part struct {
	addr uint64
	span
}

// parts divides the access of lanes into spans, line by line. proto holds what these have in common.
func (a *actor) parts(lanes uint32, proto *span) {
	e := a.e
	a.spans = a.spans[:0]
	if e.Affine() {
		a.run(lanes, bits.TrailingZeros32(e.Mask), e.Addr, e.Stride, proto)
		return
	}
	for lanes != 0 {
		s := a.b.Strip(e, lanes)
		if bits.OnesCount32(s.Mask) == 2 {
			s.Mask &= -s.Mask // a span of two lanes would match few others
		}
		lanes &^= s.Mask
		a.run(s.Mask, s.Low(), s.Addr, s.Step, proto)
	}
}

// run makes the spans of lanes whose addresses have a constant stride; lane first would be at addr.
func (a *actor) run(lanes uint32, first int, addr uint64, stride int64, proto *span) {
	size := uint64(a.e.Size)
	switch {
	case lanes&(lanes-1) == 0:
		lane := bits.TrailingZeros32(lanes)
		a.one(addr+uint64(int64(lane-first)*stride), lanes, proto)
	case stride == 0 && a.e.Kind != event.Store:
		a.one(addr, lanes, proto)
	case size&(size-1) != 0, size > 16, addr&(size-1) != 0, stride <= 0, stride&int64(size-1) != 0,
		stride > 124, stride == 3, stride >= 4 && stride&3 != 0:
		for m := lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			a.one(addr+uint64(int64(lane-first)*stride), 1<<uint(lane), proto)
		}
	default:
		a.affine(lanes, first, addr, int(stride), proto)
	}
}

// one makes the spans of lanes that all access the same bytes.
func (a *actor) one(addr uint64, lanes uint32, proto *span) {
	if a.e.Size == 4 && addr&3 == 0 {
		p := a.part(addr&^(lineBytes-1), proto)
		p.lanes, p.gm, p.shape = lanes, 1<<(addr%lineBytes/4), all(15)
		return
	}
	for end := addr + uint64(a.e.Size); addr < end; {
		next := min(end, addr&^3+4)
		bytes := uint8((1<<(next-addr) - 1) << (addr & 3))
		gm := uint32(1) << (addr % lineBytes / 4)
		if n := len(a.spans); n > 0 && a.spans[n-1].addr == addr&^(lineBytes-1) && a.spans[n-1].lanes == lanes && a.spans[n-1].shape == all(bytes) {
			a.spans[n-1].gm |= gm
		} else {
			p := a.part(addr&^(lineBytes-1), proto)
			p.lanes, p.gm, p.shape = lanes, gm, all(bytes)
		}
		addr = next
	}
}

// part adds a part.
func (a *actor) part(addr uint64, proto *span) *part {
	a.spans = append(a.spans, part{addr, *proto})
	return &a.spans[len(a.spans)-1]
}

// affine makes the spans of lanes with a stride; lane first would be at the address at.
func (a *actor) affine(lanes uint32, first int, at uint64, stride int, proto *span) {
	size := int(a.e.Size)
	for m := lanes; m != 0; {
		lane := bits.TrailingZeros32(m)
		addr := at + uint64((lane-first)*stride)
		base := addr &^ (lineBytes - 1)
		n := min(32-lane, (lineBytes-1-int(addr-base))/stride+1) // the number of lanes in this line
		in := m & uint32((uint64(1)<<uint(n)-1)<<uint(lane))
		m &^= in
		delta := int(at) - int(base) // the offset of lane first
		if size < 4 {
			a.narrow(base, in, delta, first, stride, proto)
			continue
		}
		p := a.part(base, proto)
		p.lanes = in
		p.shape = makeShape(15, 0, uint(stride/4), delta/4-first*(stride/4))
		p.gm = granules(in, lane, int(addr-base)/4, stride/4, size/4)
	}
}

// granules returns the granules of lanes: lane low begins with granule g, each next lane stride further, and each has
// n.
func granules(lanes uint32, low, g, stride, n int) (gm uint32) {
	run := lanes >> uint(low)
	if run&(run+1) == 0 && n == stride {
		return uint32((uint64(1)<<uint(n*bits.OnesCount32(run)) - 1) << uint(g))
	}
	one := uint32(1)<<uint(n) - 1
	for ; run != 0; run >>= 1 {
		if run&1 != 0 {
			gm |= one << uint(g)
		}
		g += stride
	}
	return gm
}

// narrow makes the spans of elements of one or two bytes: one for each offset within a granule.
func (a *actor) narrow(base uint64, lanes uint32, delta, first, stride int, proto *span) {
	size := int(a.e.Size)
	for b := 0; b < 4; b += size {
		var in, gm uint32
		for m := lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if at := delta + (lane-first)*stride; at&3 == b {
				in |= 1 << uint(lane)
				gm |= 1 << uint(at/4)
			}
		}
		if gm == 0 {
			continue
		}
		p := a.part(base, proto)
		p.lanes, p.gm = in, gm
		bytes := uint8((1<<size - 1) << b)
		if stride < 4 { // 4 or 2 elements in a granule
			p.shape = makeShape(bytes, uint(2-stride/2), 1, (delta-b)/stride-first)
		} else {
			p.shape = makeShape(bytes, 0, uint(stride/4), (delta-b)/4-first*(stride/4))
		}
	}
}
