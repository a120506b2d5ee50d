package gwcp

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/event"
)

// class is what accesses by one instruction have in common, as far as judging and messages need it.
type class struct {
	place  uint32
	op     detect.Op
	order  event.Order
	scope  event.Scope
	space  event.Space
	size   uint8
	locked bool // in a critical section
	side   detect.Side
}

// actor is the access being judged: by lanes with a common view.
type actor struct {
	b        *event.Batch
	e        *event.Event
	blk      *block
	view     *view
	class    uint32
	write    bool
	collides bool // some of its lanes write the same bytes
	spans    []part
	// atomic says that it may be one of a pair of atomic accesses. low is the epoch up to which view.p knows all of its
	// own block; comparing with it usually suffices.
	atomic bool
	low    uint32
}

// classOf returns the number of the class of an access.
func (d *Detector) classOf(e *event.Event, locked bool) uint32 {
	slot := &d.recent[e.Place%uint32(len(d.recent))]
	k := keyOf(e, locked)
	if slot.key == k && slot.id != 0 {
		return slot.id
	}
	c := class{place: e.Place, order: e.Order, scope: e.Scope, space: e.Space, size: e.Size, locked: locked}
	switch {
	case e.Kind == event.Load:
		c.op = detect.Read
	case e.Kind == event.Store:
		c.op = detect.Write
	default:
		c.op = detect.AtomicOp
	}
	c.side.Write = e.Kind == event.Store || e.Kind == event.Atomic && e.Flags&event.FlagWrite != 0
	c.side.RMW = e.Kind == event.Atomic
	c.side.Volatile = e.Order == event.Volatile && d.cfg.Model != detect.ModelPTX
	c.side.Atomic = c.side.RMW || e.Order >= event.Relaxed || e.Order == event.Volatile && !c.side.Volatile
	c.side.Wide = c.side.Atomic && (wide(e.Scope) || e.Scope == event.NoScope)
	_, updates := d.cfg.Updates(e.Place)
	c.side.Updates = e.Kind == event.Store && updates
	c.side.Unit = int(e.Size)
	if e.Flags&event.FlagVector != 0 && e.Aux != 0 {
		c.side.Unit = int(e.Aux)
	}
	id, ok := d.ids[c]
	if !ok {
		id = uint32(len(d.classes))
		d.classes = append(d.classes, c)
		d.ids[c] = id
	}
	*slot = recent{k, id}
	return id
}

// classKey is the part of an event that determines its class.
type classKey struct {
	place, aux uint32
	rest       uint64
}

func keyOf(e *event.Event, locked bool) classKey {
	k := classKey{place: e.Place, rest: uint64(e.Kind) | uint64(e.Order)<<8 | uint64(e.Scope)<<16 | uint64(e.Space)<<24 | uint64(e.Size)<<32 |
		uint64(e.Flags&(event.FlagWrite|event.FlagVector))<<48}
	if locked {
		k.rest |= 1 << 40
	}
	if e.Flags&event.FlagVector != 0 {
		k.aux = e.Aux
	}
	return k
}

// recent is a cache entry: the class of an instruction.
type recent struct {
	key classKey
	id  uint32
}

// judge reports the races of an access and records it.
func (d *Detector) judge(blk *block, wi uint32, w *warp, e *event.Event) {
	a := &d.act
	a.b, a.e, a.blk = d.batch, e, blk
	// Loads do not race with each other, and the lanes of an atomic operation are ordered. If lanes of a store write
	// the same bytes, all of them are judged before any is recorded; within reports the races between them.
	once := e.Kind != event.Store || e.Order >= event.Relaxed || !d.within(e)
	a.collides = !once
	switch {
	case len(w.groups) == 1:
		d.lanes(&w.groups[0], e.Mask, true, once)
	case once && e.Kind != event.Load:
		d.inOrder(w, e, true)
		return
	default:
		for i := range w.groups {
			if g := &w.groups[i]; g.lanes&e.Mask != 0 {
				d.lanes(g, g.lanes&e.Mask, true, once)
			}
		}
	}
	switch {
	case once:
	case len(w.groups) == 1:
		d.lanes(&w.groups[0], e.Mask, false, true)
	default:
		d.inOrder(w, e, false)
	}
}

// inOrder records an access lane by lane, so that the last write remains. It judges the access as well if judge is set.
func (d *Detector) inOrder(w *warp, e *event.Event, judge bool) {
	for m := e.Mask; m != 0; m &= m - 1 {
		for i := range w.groups {
			if g := &w.groups[i]; g.lanes&m&-m != 0 {
				d.lanes(g, m&-m, judge, true)
			}
		}
	}
}

// lanes judges or records, or both, the access of lanes of g.
func (d *Detector) lanes(g *group, lanes uint32, judge, record bool) {
	a := &d.act
	e := a.e
	a.view = &g.view
	a.class = d.classOf(e, len(g.sections) > 0)
	a.write, a.atomic = d.classes[a.class].side.Write, d.classes[a.class].side.Atomic
	a.low = 0
	if b := g.p.block; b != nil {
		a.low = b.Min
	}
	a.parts(lanes, &span{warp: e.Warp, epoch: g.epoch, exec: e.Mask, class: a.class})
	for i := range a.spans {
		p := &a.spans[i]
		if e.Space == event.Shared && p.addr >= maxWindow {
			continue // beyond the shared memory of any device
		}
		ln := d.line(p.addr)
		if a.write && e.Kind == event.Atomic && p.lanes&(p.lanes-1) != 0 && p.shape.den() == 0 {
			d.inTurn(ln, p)
			continue
		}
		if judge {
			d.check(ln, p)
		}
		if record {
			d.record(ln, p)
		}
	}
}

// maxWindow bounds the shared memory of a block, far above the limit of any device.
const maxWindow = 1 << 24

func (d *Detector) line(addr uint64) *line {
	if a := &d.act; a.e.Space == event.Shared {
		return d.mem.Shared(d.run.window(a.blk), addr)
	}
	return d.mem.Global(addr)
}

// record records an access that has been judged.
func (d *Detector) record(ln *line, p *part) {
	if d.act.write {
		d.write(ln, &p.span)
	} else {
		d.read(ln, &p.span)
	}
}

// inTurn judges and records an atomic operation of several lanes on one variable. The first lane is compared with what
// was recorded before, each other lane with the one before it, and the last lane remains recorded.
func (d *Detector) inTurn(ln *line, p *part) {
	lanes := p.lanes
	p.lanes = lanes & -lanes
	d.check(ln, p)
	p.lanes = 1 << uint(31-bits.LeadingZeros32(lanes))
	d.write(ln, &p.span)
}

// check judges an access against the accesses that a line holds.
func (d *Detector) check(ln *line, p *part) {
	if ln.w.gm&p.gm != 0 && !d.past(&ln.w) {
		d.against(ln, &ln.w, p)
	}
	if ln.r.gm&p.gm != 0 && d.act.write && !d.past(&ln.r) {
		d.against(ln, &ln.r, p)
	}
	if ln.more == nil {
		return
	}
	if c := ln.more.cells; c != nil {
		for gm := p.gm; gm != 0; gm &= gm - 1 {
			if x := &c[bits.TrailingZeros32(gm)]; x.gm != 0 && !d.past(x) {
				d.against(ln, x, p)
			}
		}
	}
	for i := range ln.more.ws {
		if x := &ln.more.ws[i]; x.gm&p.gm != 0 && !d.past(x) {
			d.against(ln, x, p)
		}
	}
	if d.act.write {
		for i := range ln.more.rs {
			if x := &ln.more.rs[i]; x.gm&p.gm != 0 && !d.past(x) {
				d.against(ln, x, p)
			}
		}
	}
}

// past reports whether x precedes the actor, if one look at the block's clock shows that.
func (d *Detector) past(x *span) bool {
	return x.epoch <= d.act.low && x.warp-d.act.blk.first < d.run.wpb
}

// against judges an access against an earlier one.
func (d *Detector) against(ln *line, x *span, p *part) {
	if x.gm&p.gm == 0 || !x.shape.overlaps(p.shape) || x.sameThreads(&p.span) {
		return
	}
	a := &d.act
	if a.atomic && d.strongPair(x) || d.run.unknown(&a.view.p, a.blk, x.warp, x.lanes, x.epoch) == 0 {
		return
	}
	d.races(ln, x, p)
}

// strongPair reports whether the actor and x are both atomic and their scopes overlap: the scope of one reaches beyond
// the block, or the threads are in one block.
func (d *Detector) strongPair(x *span) bool {
	m, n := &d.classes[x.class].side, &d.classes[d.act.class].side
	return m.Atomic && n.Atomic && (m.Wide || n.Wide || x.warp/d.run.wpb == d.act.blk.index)
}

// races reports the lanes of p that race with x, granule by granule.
func (d *Detector) races(ln *line, x *span, p *part) {
	a := &d.act
	var done uint32
	for gm := x.gm & p.gm; gm != 0; gm &= gm - 1 {
		g := bits.TrailingZeros32(gm)
		earlier := x.owners(g)
		for m := p.owners(g) &^ done; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			others := earlier
			if x.warp == p.warp {
				others &^= 1 << uint(lane)
			}
			late := d.run.unknown(&a.view.p, a.blk, x.warp, others, x.epoch)
			if late == 0 || d.observed(ln, x, g, lane) {
				continue
			}
			done |= 1 << uint(lane)
			predicted := true
			if hb := d.run.unknown(&a.view.h, a.blk, x.warp, late, x.epoch); hb != 0 {
				late, predicted = hb, false
			}
			at := p.addr + uint64(4*g+bits.TrailingZeros8(x.shape.bytes()&p.shape.bytes()))
			d.report(x, at, lane, bits.TrailingZeros32(late), predicted, detect.Relation{SameValue: d.sameValue(x, p, lane)})
		}
	}
}

// strong reports whether an access can be part of a release or acquire pattern (PTX ISA, "Morally Strong Operations").
func (c *class) strong() bool { return c.side.Atomic || c.order == event.Volatile }

// observed reports whether a strong write x of granule g precedes the actor's lane by the second clause of causality
// order: a strong read that observed x precedes the lane.
func (d *Detector) observed(ln *line, x *span, g, lane int) bool {
	m := &d.classes[x.class]
	if !m.side.Write || !m.strong() {
		return false
	}
	a := &d.act
	by := func(r *span) bool {
		n := &d.classes[r.class]
		if r.gm>>uint(g)&1 == 0 || !n.strong() || n.side.Unit != m.side.Unit || !r.shape.overlaps(x.shape) {
			return false
		}
		if r.warp/d.run.wpb != x.warp/d.run.wpb && !(m.reaches() && n.reaches()) {
			return false
		}
		lanes := r.owners(g)
		return r.warp == a.e.Warp && lanes>>uint(lane)&1 != 0 || d.run.unknown(&a.view.p, a.blk, r.warp, lanes, r.epoch) != lanes
	}
	if by(&ln.r) {
		return true
	}
	return ln.more != nil && slices.ContainsFunc(ln.more.rs, func(r span) bool { return by(&r) })
}

// reaches reports whether the scope of a strong access reaches beyond the block.
func (c *class) reaches() bool { return c.side.Wide || c.order == event.Volatile }

// sameValue reports whether a lane of the actor writes what x wrote, in all bytes for which x is the last write. It
// compares with the old value of the lane's write. If that is not known, it returns false.
func (d *Detector) sameValue(x *span, p *part, lane int) bool {
	a := &d.act
	if a.collides || !d.classes[x.class].plainWrite() || !d.classes[a.class].plainWrite() {
		return false
	}
	value := a.b.ValueOf(a.e, lane)
	if value == nil {
		return false
	}
	first := a.b.AddrOf(a.e, lane)
	for gm := x.gm & p.gm; gm != 0; gm &= gm - 1 {
		g := bits.TrailingZeros32(gm)
		if p.owners(g)>>uint(lane)&1 == 0 {
			continue
		}
		for m := x.shape.bytes() & p.shape.bytes(); m != 0; m &= m - 1 {
			at := p.addr + uint64(4*g+bits.TrailingZeros8(m))
			if old, ok := d.overwritten(lane, at); !ok || byteOf(value, at-first) != old {
				return false
			}
		}
	}
	return true
}

// plainWrite reports whether an access is a weak store.
func (c *class) plainWrite() bool { return c.op == detect.Write && c.order == event.Weak }

func byteOf(words []uint64, i uint64) byte { return byte(words[i/8] >> (i % 8 * 8)) }

// within reports the races between lanes of one store that write the same bytes, and says whether there are such lanes.
func (d *Detector) within(e *event.Event) (any bool) {
	size := uint64(e.Size)
	var room [32]uint64
	if e.Affine() {
		if e.Mask&(e.Mask-1) == 0 || uint64(max(e.Stride, -e.Stride)) >= size {
			return false
		}
	} else if ascending(d.batch.Addresses(e, &room), size) {
		return false
	}
	a := &d.act
	if a.class = d.classOf(e, false); d.classes[a.class].side.Atomic {
		return false
	}
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := d.batch.AddrOf(e, lane)
		with, same := -1, false // the lane to report: preferably one that writes another value
		for o := e.Mask & (1<<uint(lane) - 1); o != 0 && (with < 0 || same); o &= o - 1 {
			other := bits.TrailingZeros32(o)
			from := d.batch.AddrOf(e, other)
			if from >= at+size || at >= from+size {
				continue
			}
			if agree := !d.predicted && d.agree(e, lane, other); with < 0 || !agree {
				with, same = other, agree
			}
		}
		if with < 0 {
			continue
		}
		any = true
		x := span{warp: e.Warp, lanes: 1 << uint(with), exec: e.Mask, class: a.class}
		d.report(&x, max(d.batch.AddrOf(e, with), at), lane, with, false, detect.Relation{SameEvent: true, SameValue: same && d.classes[a.class].plainWrite()})
	}
	return any
}

// agree reports whether two lanes of a store write the same values where they overlap.
func (d *Detector) agree(e *event.Event, lane, other int) bool {
	v, w := d.batch.ValueOf(e, lane), d.batch.ValueOf(e, other)
	if v == nil {
		return false
	}
	x, y := d.batch.AddrOf(e, lane), d.batch.AddrOf(e, other)
	for at := max(x, y); at < min(x, y)+uint64(e.Size); at++ {
		if byteOf(v, at-x) != byteOf(w, at-y) {
			return false
		}
	}
	return true
}

// ascending reports whether each address is at least size above the one before.
func ascending(addrs []uint64, size uint64) bool {
	for i := 1; i < len(addrs); i++ {
		if addrs[i] < addrs[i-1]+size {
			return false
		}
	}
	return true
}

// report adds a race of a lane of the actor with lane other of x at the byte at. rel says whether they are of one event
// and write the same value.
func (d *Detector) report(x *span, at uint64, lane, other int, predicted bool, rel detect.Relation) {
	if d.predicted && !predicted {
		return
	}
	a := &d.act
	m, n := &d.classes[x.class], &d.classes[a.class]
	rel.SameLaunch, rel.SameBlock, rel.SameWarp = true, x.warp/d.run.wpb == a.blk.index, x.warp == a.e.Warp
	rel.Lockstep = rel.SameWarp && !rel.SameEvent && (x.exec>>uint(lane)&1 != 0 || a.e.Mask>>uint(other)&1 != 0 ||
		!detect.Parted(d.cfg.Arms(m.place), d.cfg.Arms(n.place)))
	category := detect.Classify(m.side, n.side, rel)
	if m.side.Atomic && n.side.Atomic {
		category = detect.ScopeRace
	}
	r := findings.Race{Predicted: predicted, Facts: detect.Facts{Category: category, Alone: m.locked != n.locked,
		Earlier: d.side(m, x.warp, other, at), Later: d.side(n, a.e.Warp, lane, at)}}
	if predicted {
		r.Note = "ordered in this run only because one critical section came before another"
		if d.Takes(&r) {
			r.Sections = d.swapped(thread{x.warp, uint32(other)}, x.epoch, lane)
		}
	}
	d.Add(&r)
}

func (d *Detector) side(c *class, warp uint32, lane int, at uint64) detect.Access {
	x := detect.Access{Op: c.op, Order: c.order, Scope: c.scope, Space: c.space, Place: c.place, Launch: d.run.info,
		Warp: warp, Lane: lane, Address: at, Size: int(c.size), Updates: c.side.Updates}
	if n := uint64(c.size); n&(n-1) == 0 {
		x.Address = at &^ (n - 1)
	}
	return x
}
