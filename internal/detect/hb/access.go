package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// actor is the access being judged: some lanes, of one view, of the thread block's warp, or a host agent.
type actor struct {
	class  *class
	id     uint32 // of class
	b      *event.Batch
	e      *event.Event
	blk    *block // nil: a host agent
	wi     uint32 // warp within the block
	warp   uint32 // warp within the launch
	exec   uint32 // lanes that execute the instruction together
	lanes  uint32
	lane   int // lowest of lanes
	view   *view
	shared bool
	values []uint64 // written by the lowest of lanes
	from   uint64   // address of the first byte of values
	olds   []uint64 // what was there before, see event.Batch.OldOf
	agent  *agent   // for the host
	// cleared is the key of an entry all of whose accesses were found to happen before this one.
	cleared uint32
	locs    bool // a page touched has locs
	// deed is the number of what the actor does, for deedClock; 0: none yet.
	deed, deedClock uint32
	before          before // that the actor comes after
	d               *Detector
}

func (a *actor) beyond() *clock.Foreign {
	if a.blk == nil {
		return a.agent.knows
	}
	return a.view.beyond
}

// page gives the shadow page of an address in the actor's space.
func (a *actor) page(addr uint64) *page { return a.d.pageOf(a.blk, a.shared, addr) }

// pageOf gives the shadow page of an address that a thread of blk uses.
func (d *Detector) pageOf(blk *block, shared bool, addr uint64) *page {
	if !shared {
		p := d.mem.page(addr)
		if p.user != blk.info.ID {
			p.user = blk.info.ID
			blk.pages = append(blk.pages, p)
			if p.noter != 0 && p.noter != blk.info.ID {
				d.inherit(p, blk)
			}
		}
		return p
	}
	w := &blk.shared
	n := addr / pageBytes
	if n >= maxWindow/pageBytes {
		n %= maxWindow / pageBytes
	}
	for uint64(len(w.pages)) <= n {
		w.pages = append(w.pages, nil)
	}
	p := w.pages[n]
	if p == nil {
		p = &page{gen: w.gen, addr: n * pageBytes}
		w.pages[n] = p
	}
	if p.gen != w.gen {
		d.mem.clear(p)
		p.gen = w.gen
	}
	return p
}

// window is the shadow of a block's shared memory. When all threads of a block have met at a barrier, nothing before
// it can race with anything after it: gen is counted up, and pages of an older gen hold nothing.
type window struct {
	pages []*page
	gen   uint32
}

// maxWindow bounds the shared memory of a block, far above any device's.
const maxWindow = 16 << 20

// access judges and records a Load, Store or Atomic.
func (d *Detector) access(b *event.Batch, e *event.Event, l *launch) {
	blk, wi := l.block(e.Warp)
	if !blk.stage.on || !d.staged(b, e, blk, wi) {
		d.judge(b, e, blk, wi)
	}
}

// judge is access where that is not put off.
func (d *Detector) judge(b *event.Batch, e *event.Event, blk *block, wi uint32) {
	w := &blk.warps[wi]
	h := d.recentOf(blk.launch, e)
	id := h.id
	w.used |= e.Mask
	strong := d.classes[id].strong
	blk.synced = blk.synced || strong
	if e.Space == event.Shared {
		w.usedSmem |= e.Mask
		blk.stage.strong = blk.stage.strong || strong
	}
	if !d.cellsOnly && !strong && d.whole(b, e, blk, wi, id) {
		h.learn(e, d.part.parts)
		return
	}
	a := &d.act
	*a = actor{class: &d.classes[id], id: id, b: b, e: e, blk: blk, wi: wi, warp: e.Warp, exec: e.Mask,
		shared: e.Space == event.Shared, d: d}
	switch {
	case e.Kind == event.Store:
		d.store(b, e, w)
	case a.class.strong:
		d.atomics(b, e, w)
	default:
		d.load(b, e, w)
	}
	if a.class.acquires || a.class.releases {
		if blk.alive > 0 {
			blk.next(wi, e.Mask, e)
		}
	}
	d.findings.Settle()
}

// elements calls f for each element that each lane accesses.
func (d *Detector) elements(b *event.Batch, e *event.Event, f func(lane int, addr uint64, size uint8)) {
	unit := uint8(d.act.class.side.Unit)
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr := b.AddrOf(e, lane)
		d.values(lane, addr)
		for off := uint8(0); off < e.Size; off += unit {
			f(lane, addr+uint64(off), min(unit, e.Size-off))
		}
	}
}

// values tells the actor what a lane writes.
func (d *Detector) values(lane int, addr uint64) {
	a := &d.act
	a.values, a.olds, a.from = nil, nil, addr
	if a.class.side.Write {
		a.olds = a.b.OldOf(a.e, lane)
	}
	if a.class.plain {
		a.values = a.b.ValueOf(a.e, lane)
	}
}

// load judges and records a weak load.
func (d *Detector) load(b *event.Batch, e *event.Event, w *warp) {
	a := &d.act
	size := uint64(e.Size)
	a.values = nil
	if e.Stride == 0 && e.Affine() && w.each == nil {
		a.lanes, a.lane, a.view = e.Mask, bits.TrailingZeros32(e.Mask), &w.same
		d.touch(e.Addr, size, true, true)
		return
	}
	rest := d.noteLoads(b, e, w)
	shared := uint32(0)
	if rest != 0 && e.Flags&event.FlagScattered != 0 && w.each == nil {
		shared = maySharing(b, e)
	}
	var p *page
	number := ^uint64(0) // of p
	for m := rest; m != 0; m &^= a.lanes {
		a.lane = bits.TrailingZeros32(m)
		a.lanes = 1 << uint(a.lane)
		a.view = w.view(a.lane)
		addr := b.AddrOf(e, a.lane)
		if shared&a.lanes != 0 {
			a.lanes = sharing(b, e, m, addr)
		}
		if size == cellBytes && addr%cellBytes == 0 {
			if addr/pageBytes != number { // a column of a tile has several words in each
				p, number = a.page(addr), addr/pageBytes
			}
			if d.word(p, addr) {
				continue
			}
			if n := d.notesFor(p, addr%pageBytes/lineBytes); n != nil && d.noteWord(p, &n[addr%lineBytes/cellBytes], addr) {
				continue
			}
		}
		d.touch(addr, size, true, true)
	}
}

// maySharing gives the lanes of a scattered event that may have the address of another lane: those that share a bit with
// another in a filter.
func maySharing(b *event.Batch, e *event.Event) (out uint32) {
	var seen, twice [4]uint64
	addrs := b.Addrs[e.Side:][:bits.OnesCount32(e.Mask)]
	hash := func(addr uint64) uint64 { return addr * 0x9e3779b97f4a7c15 >> 56 }
	for _, x := range addrs {
		h := hash(x)
		bit := uint64(1) << (h & 63)
		twice[h>>6] |= seen[h>>6] & bit
		seen[h>>6] |= bit
	}
	if twice == [4]uint64{} {
		return 0
	}
	m := e.Mask
	for _, x := range addrs {
		if h := hash(x); twice[h>>6]>>(h&63)&1 != 0 {
			out |= m & -m
		}
		m &= m - 1
	}
	return out
}

// sharing gives those of lanes that access addr. Lanes may be any upper part of the event's mask.
func sharing(b *event.Batch, e *event.Event, lanes uint32, addr uint64) (out uint32) {
	i := int(e.Side) + bits.OnesCount32(e.Mask)
	i -= bits.OnesCount32(e.Mask &^ (lanes&-lanes - 1))
	for m := e.Mask &^ (lanes&-lanes - 1); m != 0; m &= m - 1 {
		if b.Addrs[i] == addr {
			out |= m & -m
		}
		i++
	}
	return out & lanes
}

// store judges and records a store. Lanes of one store are not ordered with each other, so all are judged before the
// first is recorded, unless they keep apart.
func (d *Detector) store(b *event.Batch, e *event.Event, w *warp) {
	a := &d.act
	size := uint64(e.Size)
	if a.class.notes == noteWrite {
		d.locate(b, e, new([32]spot))
	} else {
		d.fetch(b, e)
	}
	apart := d.apart(b, e)
	once := apart && !a.class.strong
	for m := e.Mask; m != 0; m &= m - 1 {
		a.lane = bits.TrailingZeros32(m)
		a.lanes = 1 << uint(a.lane)
		a.view = w.view(a.lane)
		addr := b.AddrOf(e, a.lane)
		d.values(a.lane, addr)
		d.touch(addr, size, true, once)
	}
	if !apart {
		d.overlaps(b, e)
	}
	switch {
	case once && a.locs:
		for m := e.Mask; m != 0; m &= m - 1 {
			d.weakWrite(b.AddrOf(e, bits.TrailingZeros32(m)), size)
		}
	case once:
	case a.class.strong:
		d.elements(b, e, func(lane int, addr uint64, size uint8) { d.strong(a.blk, a.wi, e, lane, addr, size) })
	default:
		for m := e.Mask; m != 0; m &= m - 1 {
			a.lane = bits.TrailingZeros32(m)
			a.lanes = 1 << uint(a.lane)
			a.view = w.view(a.lane)
			addr := b.AddrOf(e, a.lane)
			d.values(a.lane, addr)
			d.touch(addr, size, false, true)
			d.weakWrite(addr, size)
		}
	}
}

// weakWrite ends the chains of strong writes that a weak write covers.
func (d *Detector) weakWrite(addr, size uint64) {
	for at := addr; at < addr+size; {
		next := min((at/pageBytes+1)*pageBytes, addr+size)
		if p := d.act.page(at); p.valued() {
			p.overwrite(at, next-at, nil)
		}
		at = next
	}
}

// apart says that no two lanes of a store write the same byte.
func (d *Detector) apart(b *event.Batch, e *event.Event) bool {
	if e.Mask&(e.Mask-1) == 0 {
		return true
	}
	size := uint64(e.Size)
	if e.Affine() {
		return e.Stride >= int64(size) || e.Stride <= -int64(size)
	}
	addrs := d.scratch[:0]
	sorted := true
	for m := e.Mask; m != 0; m &= m - 1 {
		x := b.AddrOf(e, bits.TrailingZeros32(m))
		sorted = sorted && (len(addrs) == 0 || x >= addrs[len(addrs)-1]+size)
		addrs = append(addrs, x)
	}
	if sorted {
		return true
	}
	for i := range addrs {
		for j := i; j > 0 && addrs[j] < addrs[j-1]; j-- {
			addrs[j], addrs[j-1] = addrs[j-1], addrs[j]
		}
	}
	for i := 1; i < len(addrs); i++ {
		if addrs[i] < addrs[i-1]+size {
			return false
		}
	}
	return true
}

// overlaps reports lanes of one store that write the same bytes.
func (d *Detector) overlaps(b *event.Batch, e *event.Event) {
	a := &d.act
	size := uint64(e.Size)
	for m := e.Mask & (e.Mask - 1); m != 0; m &= m - 1 {
		a.lane = bits.TrailingZeros32(m)
		a.lanes = 1 << uint(a.lane)
		mine := b.AddrOf(e, a.lane)
		var best detect.Category
		var with int
		var at, until uint64
		for n := e.Mask & (a.lanes - 1); n != 0; n &= n - 1 {
			o := bits.TrailingZeros32(n)
			other := b.AddrOf(e, o)
			lo, hi := max(mine, other), min(mine, other)+size
			if lo >= hi {
				continue
			}
			rel := detect.Relation{SameLaunch: true, SameBlock: true, SameWarp: true, SameEvent: true,
				SameValue: sameBytes(b, e, a.lane, mine, o, other, lo, hi)}
			cat := detect.Classify(a.class.side, a.class.side, rel)
			if cat != detect.NoRace {
				d.addresses(a.id, lo, hi)
			}
			if cat > best {
				best, with, at, until = cat, o, lo, hi
			}
		}
		if best != detect.NoRace {
			d.hit(hit{cat: best, class: a.id, launch: a.blk.launch, warp: a.warp, lane: with, clock: a.blk.warps[a.wi].view(with).clock,
				lanes: a.lanes, lo: at, hi: until})
		}
	}
}

// sameBytes says that two lanes write the same into [lo, hi).
func sameBytes(b *event.Batch, e *event.Event, l int, la uint64, m int, ma uint64, lo, hi uint64) bool {
	v, w := b.ValueOf(e, l), b.ValueOf(e, m)
	if v == nil || w == nil {
		return false
	}
	for x := lo; x < hi; x++ {
		if byteOf(v, x-la) != byteOf(w, x-ma) {
			return false
		}
	}
	return true
}

func byteOf(v []uint64, i uint64) byte { return byte(v[i/8] >> (i % 8 * 8)) }

// touch judges (check) and records (record) the access of the actor's lanes to [addr, addr+size).
func (d *Detector) touch(addr, size uint64, check, record bool) {
	a := &d.act
	if check && record && addr%cellBytes == 0 {
		if size == cellBytes && d.word(a.page(addr), addr) {
			return
		}
		if a.class.notes == noteLoads || a.class.notes == noteWrite && a.values != nil {
			done := uint64(0)
			for done < size {
				p := a.page(addr + done)
				a.locs = a.locs || p.valued()
				if !d.noteWeak(p, addr+done) {
					break
				}
				done += cellBytes
			}
			if addr, size = addr+done, size-done; size == 0 {
				return
			}
		}
	}
	var p *page
	for at := addr &^ 3; at < addr+size; at += cellBytes {
		if p == nil || at%pageBytes == 0 {
			p = a.page(at)
			d.denoteSpan(p, max(at, addr), addr+size)
			a.locs = a.locs || p.valued()
			if check && len(p.cold) > 0 && p.warmed != a.blk.info.ID {
				d.checkCold(p, max(at, addr), addr+size)
			}
		}
		bytes := headBytes
		if at < addr || at+cellBytes > addr+size {
			bytes = coverage(at, addr, size)
		}
		i := at % pageBytes / lineBytes
		l := p.expanded(i)
		if l == nil && p.marks[i].form != 0 {
			d.expand(p, i)
			l = p.expanded(i)
		}
		if l == nil {
			if !record {
				continue
			}
			l = d.mem.line(p, i)
		}
		if record {
			l.user = a.blk.info.ID
		}
		c := &l.cells[at%lineBytes/cellBytes]
		var value uint32
		if a.values != nil {
			value = a.word(at)
		}
		if l.memory && a.class.side.Write {
			d.recall(c, at, bytes)
		}
		a.cleared = 0
		after := d.afterLast(c, d.mem.of(c))
		if check && !after && c.chunk != 0 {
			d.check(c, p, at, bytes, value)
		}
		if record {
			d.record(c, d.mem.of(c), bytes, value, after)
		}
	}
}

// word is touch of a word at addr in page p, of a line that has cells of the launch, where the actor comes after all other
// accesses of the word. It says false, having done nothing, if not so.
func (d *Detector) word(p *page, addr uint64) bool {
	a := &d.act
	i := addr % pageBytes / lineBytes
	l := p.expanded(i)
	if l == nil || l.user != a.blk.info.ID || p.notes[i] != 0 || l.memory && a.class.side.Write || len(p.cold) > 0 && p.warmed != a.blk.info.ID {
		return false
	}
	c := &l.cells[addr%lineBytes/cellBytes]
	es := d.mem.of(c)
	if es != nil && !d.afterLast(c, es) {
		return false
	}
	a.locs = a.locs || p.valued()
	a.cleared = 0
	var value uint32
	if a.values != nil {
		value = a.word(addr)
	}
	d.record(c, es, headBytes, value, es != nil)
	return true
}

// afterLast says that the actor is one thread that comes after all others' accesses of a cell with entries es, as its last one tells.
func (d *Detector) afterLast(c *cell, es []entry) bool {
	a := &d.act
	if c.last == 0 || a.lanes&(a.lanes-1) != 0 {
		return false
	}
	e := &es[c.last-1]
	if e.head == 0 {
		return false
	}
	if k := &d.classes[e.class()]; k.launch != a.blk.launch {
		return over(k.launch, a.blk.start)
	}
	return a.after(e.warp, e.lane(), e.clock)
}

// afterAll is afterLast of a cell whose last access tells nothing, as far as that is cheap to see.
func (d *Detector) afterAll(es []entry) bool {
	a := &d.act
	for i := range es {
		e := &es[i]
		if e.head == 0 {
			continue
		}
		if k := &d.classes[e.class()]; k.launch != a.blk.launch {
			if !over(k.launch, a.blk.start) {
				return false
			}
		} else if !d.follows(e, e.head&headKey) {
			return false
		}
	}
	return true
}

// coverage is the bytes of the cell at at that [addr, addr+size) covers.
func coverage(at, addr, size uint64) uint32 {
	lo, hi := uint64(0), uint64(cellBytes)
	if addr > at {
		lo = addr - at
	}
	if addr+size < at+cellBytes {
		hi = addr + size - at
	}
	return uint32(1<<hi-1) &^ uint32(1<<lo-1)
}

// word is what the actor writes into the cell at at; bytes it does not write are zero.
func (a *actor) word(at uint64) uint32 {
	if at >= a.from {
		off := at - a.from
		w := a.values[off/8] >> (off % 8 * 8)
		if left := off % 8; left > 4 && int(off/8)+1 < len(a.values) {
			w |= a.values[off/8+1] << ((8 - left) * 8)
		}
		return uint32(w)
	}
	return uint32(a.values[0] << ((a.from - at) * 8))
}

// old is what was in the cell at at, as far as the actor writes there.
func (a *actor) old(at uint64) uint32 {
	if a.e.Size < cellBytes {
		return uint32(a.olds[0])
	}
	off := at - a.from
	return uint32(a.olds[off/8] >> (off % 8 * 8))
}

// recall gives the entries of a cell whose value memory holds that value, which the actor is about to change.
func (d *Detector) recall(c *cell, at uint64, bytes uint32) {
	a := &d.act
	d.mem.each(c, func(e *entry) {
		if e.head&headMemory == 0 || e.head&bytes == 0 {
			return
		}
		e.head &^= headMemory
		if a.olds == nil {
			e.head |= headMixed
		} else {
			e.value = a.old(at)
		}
	})
}

// spread makes a mask of bytes one of bits.
func spread(bytes uint32) uint32 {
	return bytes&1*0xff | bytes&2*(0xff00>>1) | bytes&4*(0xff0000>>2) | bytes&8*(0xff000000>>3)
}

// record notes the access of the actor's lanes to bytes of a cell with entries es; after says what afterLast does.
func (d *Detector) record(c *cell, es []entry, bytes, value uint32, after bool) {
	a := &d.act
	key := a.id<<headShift | bytes
	if a.class.strong && a.class.side.Write {
		key |= headChain
	}
	if !after && c.last == 0 && a.lanes&(a.lanes-1) == 0 {
		after = d.afterAll(es)
	}
	g := group{a.lanes, a.view.clock, a.exec}
	at := 0
	for at < len(es) && es[at].head&headKey != key {
		at++
	}
	c.last = 0
	if at == len(es) {
		d.supersede(c, a.class, bytes, key&headChain)
		if a.class.plain && a.values == nil {
			key |= headMixed
		}
		at = d.mem.put(c, entry{head: key, warp: a.warp, lanes: g.lanes, clock: g.clock, exec: g.exec, value: value})
		if after {
			c.last = uint32(at) + 1
		}
		return
	}
	e := &es[at]
	if a.class.plain && (a.values == nil || (e.value^value)&spread(bytes) != 0) {
		e.head |= headMixed
	}
	if !after {
		d.mem.add(e, a.class, a.warp, g, d.follows(e, key))
		return
	}
	d.mem.addAfter(e, a.class, a.warp, g)
	if e.head&headMany != 0 || e.lanes == a.lanes {
		c.last = uint32(at) + 1
	}
}

// follows says that the actor happens after every access of e, as far as that is cheap to see.
func (d *Detector) follows(e *entry, key uint32) bool {
	a := &d.act
	if a.lanes&(a.lanes-1) != 0 {
		return false
	}
	if a.cleared == key {
		return true
	}
	if e.head&headMany != 0 {
		return e.exec&lastOrders != 0 && a.after(e.warp, e.exec&31, e.clock)
	}
	return e.lanes&(e.lanes-1) == 0 && a.after(e.warp, uint32(bits.TrailingZeros32(e.lanes)), e.clock)
}

// after says that the actor, a thread, is or happens after epoch c of a lane of a warp of its launch.
func (a *actor) after(warp, lane, c uint32) bool {
	if warp == a.warp && lane == uint32(a.lane) {
		return true
	}
	if b := &a.before; b.view == a.view && b.warp == warp && b.lane == lane && c <= b.clock {
		return true
	}
	if a.view.behind(a.blk, warp, 1<<lane, c) != 0 {
		return false
	}
	a.before = before{a.view, warp, lane, c}
	return true
}

// before is an epoch of a thread that a view knows of.
type before struct {
	view              *view
	warp, lane, clock uint32
}
