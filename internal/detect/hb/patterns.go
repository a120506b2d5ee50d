package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// locKey names a location as one thread sees it: a scalar in global memory or in the shared memory of its block.
type locKey struct {
	shared bool
	size   uint8
	addr   uint64
}

// loc is a scalar that was last written by a strong operation, as long as any byte of it still is.
type loc struct {
	next  *loc // of the same 16 bytes
	addr  uint64
	size  uint8
	valid uint16 // bytes that the last strong write of the whole scalar still fills
	// stamp counts the writes that touched the scalar.
	stamp uint32
	// The last strong write.
	launch *launch
	block  uint32
	warp   uint32
	lane   int
	wide   bool
	// recs are the release patterns that a read of the current value observes.
	recs records
	// The threads that observed the current value: the first one, and others.
	first     observer
	observers []observers
}

type observer struct {
	launch *launch
	warp   uint32
	lane   int
	clock  uint32
}

// observers are threads of one launch, with their epochs then.
type observers struct {
	launch *launch
	root   *set
	owner  uint64 // no one else has root
}

// pending is what a thread observed at a location and may acquire by a fence, or by an acquire operation there.
type pending struct {
	key    locKey
	wide   recordList
	narrow record // by patterns of the own block
}

// findLoc gives the loc of a scalar, nil when its last write was not strong.
func (p *page) findLoc(addr uint64, size uint8) *loc {
	if len(p.quiets) > 0 && size == cellBytes && addr%cellBytes == 0 {
		p.awaken(addr)
	}
	return p.locAt(addr, size)
}

// locAt is findLoc but for quiet words.
func (p *page) locAt(addr uint64, size uint8) *loc {
	if p.locs == nil {
		return nil
	}
	for x := p.locs[addr%pageBytes/16]; x != nil; x = x.next {
		if x.addr == addr && x.size == size {
			return x
		}
	}
	return nil
}

// newLoc makes the loc of a scalar.
func (p *page) newLoc(addr uint64, size uint8) *loc {
	if p.locs == nil {
		p.locs = new([pageBytes / 16]*loc)
	}
	k := addr % pageBytes / 16
	x := &loc{addr: addr, size: size, next: p.locs[k]}
	p.locs[k] = x
	return x
}

// overwrite tells the page's locs that the bytes were written, those of but excepted.
func (p *page) overwrite(addr, size uint64, but *loc) {
	if len(p.quiets) > 0 {
		p.overwriteQuiet(addr, size)
	}
	if p.locs == nil {
		return
	}
	for at := addr &^ 15; at < addr+size; at += 16 {
		for link := &p.locs[at%pageBytes/16]; *link != nil; {
			x := *link
			if gone := span(x.addr, addr, size); x != but && x.valid&gone != 0 {
				x.valid &^= gone
				x.stamp++
			}
			if x.valid == 0 {
				*link = x.next
			} else {
				link = &x.next
			}
		}
	}
}

// span is the bytes from base on that [addr, addr+size) covers, at most 16.
func span(base, addr, size uint64) uint16 {
	lo, hi := int64(addr-base), int64(addr+size-base)
	lo, hi = max(lo, 0), min(hi, 16)
	if lo >= hi {
		return 0
	}
	return uint16(1<<uint(hi) - 1<<uint(lo))
}

// meets says that the last write of x and an operation of the thread (b, wi, lane) at the same scalar are morally
// strong: one thread, or each scope includes the other.
func (x *loc) meets(b *block, wi uint32, lane int, wide bool) bool {
	if x.launch == b.launch && x.block == b.index {
		return true
	}
	return x.wide && wide
}

// observe lets a strong read of the current value of x begin an acquire pattern.
func (d *Detector) observe(w *warp, x *loc, b *block, lane int, shared, wide bool) {
	if wide {
		x.recs.ordered.all(func(r record) {
			if r.launch == b.launch {
				s := w.sync(lane)
				s.observed = d.joinPassed(s.observed, passed{r.grid, r.beyond})
			}
		})
	}
	var own record
	if r := x.recs.own(b); r != nil {
		own = *r
	}
	if x.recs.wide.none() && own.launch == nil {
		return
	}
	s := w.sync(lane)
	key := locKey{shared, x.size, x.addr}
	for i := range s.seen {
		p := &s.seen[i]
		if p.key != key {
			continue
		}
		x.recs.wide.all(func(r record) { d.addRecord(&p.wide, r) })
		if own.launch != nil {
			p.narrow = d.joinRecords(p.narrow, own)
		}
		return
	}
	s.seen = append(s.seen, pending{key, x.recs.wide, own})
}

// acquire ends the acquire patterns of a lane begun at key, or all when key is nil, by an operation of the given scope.
func (d *Detector) acquire(w *warp, b *block, lane int, key *locKey, wide bool) {
	if w.syncs == nil || len(w.syncs[lane].seen) == 0 {
		return
	}
	s := &w.syncs[lane]
	v := *w.view(lane)
	keep := s.seen[:0]
	for _, p := range s.seen {
		if key != nil && p.key != *key {
			keep = append(keep, p)
			continue
		}
		v.know = d.learn(v.know, b, p.narrow)
		p.narrow = record{}
		if !wide {
			if !p.wide.none() {
				keep = append(keep, p)
			}
			continue
		}
		p.wide.all(func(r record) { v.know = d.learn(v.know, b, r) })
	}
	clear(s.seen[len(keep):])
	s.seen = keep
	if v.know != w.view(lane).know {
		w.set(1<<uint(lane), &v)
	}
}

// learn gives k with a record acquired by a thread of b.
func (d *Detector) learn(k know, b *block, r record) know {
	switch {
	case r.launch == nil:
		return k
	case r.launch == b.launch:
		k.grid = d.join.Join(k.grid, r.grid)
		k.block = k.block.Join(k.grid.At(b.depth, b.index))
		k.beyond = k.beyond.Join(r.beyond)
		return k
	}
	k.beyond = k.beyond.Join(r.beyond)
	if own := k.beyond.Part(b.info.ID); own != nil {
		k.grid = d.join.Join(k.grid, own)
		k.block = k.block.Join(k.grid.At(b.depth, b.index))
		k.beyond = k.beyond.Without(func(id uint32) bool { return id == b.info.ID })
	}
	if !over(r.launch, k.beyond) {
		k.beyond = k.beyond.WithPart(r.launch.info.ID, r.grid)
	}
	return k
}

// publish adds what rel releases to the patterns that the value of x carries.
func (d *Detector) publish(x *loc, b *block, wi uint32, lane int, rel released) {
	if rel.narrow != nil {
		r := x.recs.own(b)
		if r == nil {
			x.recs.prune()
			x.recs.blocks = append(x.recs.blocks, blockRecord{block: b.index})
			r = &x.recs.blocks[len(x.recs.blocks)-1].record
		}
		*r = d.joinRecords(*r, record{b.launch, rel.narrow.grid(b, wi, lane), rel.narrow.beyond})
	}
	if rel.wide != nil {
		d.addWith(&x.recs.wide, record{b.launch, rel.wide.grid(b, wi, lane), rel.wide.beyond}, rel.wide.know.grid)
		b.published = true
	}
}

// sees notes that a thread observed the current value of x. Its first observation is the one that others know soonest.
func (x *loc) sees(l *launch, warp uint32, lane int, c uint32) {
	if x.first.launch == nil {
		x.first = observer{l, warp, lane, c}
		return
	}
	if x.first.launch == l && x.first.warp == warp && x.first.lane == lane {
		return
	}
	g := group{1 << uint(lane), c, 0}
	for i := range x.observers {
		if o := &x.observers[i]; o.launch == l {
			if !o.root.has(l.sdepth, warp, lane) {
				o.root = o.root.add(l.sdepth, warp, g, o.owner)
			}
			return
		}
	}
	x.observers = append(x.observers, observers{l, (*set)(nil).add(l.sdepth, warp, g, 1), 1})
}

// observedBefore says that a thread observed the current value of x and happens before the accessor, or is it.
func (x *loc) observedBefore(a *actor) bool {
	if o := x.first; o.launch != nil && a.includes(o.launch, o.warp, group{1 << uint(o.lane), o.clock, 0}) {
		return true
	}
	for _, o := range x.observers {
		missing := o.root.walk(o.launch.sdepth, 0, nil, func(warp uint32, g group) bool { return !a.includes(o.launch, warp, g) })
		if !missing {
			return true
		}
	}
	return false
}

// includes says that the actor is one of the threads of g, a group of a launch's warp, or happens after its epoch.
func (a *actor) includes(l *launch, warp uint32, g group) bool {
	if a.blk == nil || l != a.blk.launch {
		return beyondBehind(a.beyond(), l, warp, g.lanes, g.clock) != g.lanes
	}
	if warp == a.warp && g.lanes>>uint(a.lane)&1 != 0 {
		return true
	}
	return a.view.behind(a.blk, warp, g.lanes, g.clock) != g.lanes
}

// fence ends acquire patterns and begins release patterns.
func (d *Detector) fence(b *block, wi uint32, e *event.Event) {
	w := &b.warps[wi]
	wide := e.Scope >= event.ScopeGPU
	ordering := wide && e.Order == event.SC
	b.fenced = true
	if ordering {
		b.ordering = true
		d.takeIn(w, b, e.Mask)
	}
	if e.Order != event.Release && w.syncs != nil {
		for m := e.Mask; m != 0; m &= m - 1 {
			d.acquire(w, b, bits.TrailingZeros32(m), nil, wide)
		}
	}
	if e.Order != event.Acquire {
		var snap *snapshot
		for m := e.Mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			s := w.sync(l)
			if v := w.view(l); snap == nil || snap.view != *v {
				snap = s.spare(wide, ordering)
				*snap = snapshot{view: *v, lane: l, alone: true}
			} else {
				snap.alone = false
			}
			s.fenced.narrow = snap
			if wide {
				s.fenced.wide = snap
			}
			if ordering {
				s.last = snap
			}
		}
	}
	b.next(wi, e.Mask, e)
	w.noteFence(e.Mask)
}

// spare gives a snapshot to be filled at a fence: the one of the lane's last fence, if nothing refers to it afterwards.
func (s *laneSync) spare(wide, ordering bool) *snapshot {
	old := s.fenced.narrow
	if old == nil && s.room != nil {
		old, s.room = s.room, nil
		return old
	}
	if old == nil || !old.alone || !wide && s.fenced.wide == old || !ordering && s.last == old {
		return new(snapshot)
	}
	return old
}

// strong performs the element at addr of a strong access by one lane: synchronisation, check and record. Stores are
// checked beforehand.
func (d *Detector) strong(b *block, wi uint32, e *event.Event, lane int, addr uint64, size uint8) {
	c := d.act.class
	w := &b.warps[wi]
	if w.spins != nil && !c.side.Write && d.spun(w, wi, lane, addr) {
		return
	}
	p := d.act.page(addr)
	d.denoteSpan(p, addr, addr+uint64(size))
	x := p.findLoc(addr, size)
	meets := x != nil && x.meets(b, wi, lane, c.side.Wide || c.side.Volatile)
	if meets && c.side.Atomic && e.Kind != event.Store && d.count(b, wi, lane, p, x) {
		return
	}
	if c.reads && meets && !c.discards {
		d.noteHandover(b, wi, lane, x, c)
		d.observe(w, x, b, lane, d.act.shared, c.side.Wide || c.side.Volatile)
		if c.acquires {
			d.acquire(w, b, lane, &locKey{d.act.shared, size, addr}, c.end)
		}
	} else if c.acquires && !c.discards {
		d.acquire(w, b, lane, &locKey{d.act.shared, size, addr}, c.end)
	}
	if x != nil && !meets && c.reads {
		d.noteHandover(b, wi, lane, x, c)
	}
	v := w.view(lane)
	d.act.view = v
	d.act.lanes, d.act.lane = 1<<uint(lane), lane
	word := d.plainWord(p, addr, size)
	switch {
	case e.Kind == event.Store:
	case word != nil:
		d.act.cleared = 0
		d.check(word, p, addr, headBytes, 0)
	default:
		d.touch(addr, uint64(size), true, false)
	}
	if !c.side.Write {
		if meets {
			x.sees(b.launch, d.act.warp, lane, v.clock)
		}
		d.touch(addr, uint64(size), false, true)
		if x != nil && size == e.Size && !d.findings.Racing() {
			w.spin(lane, spin{x, x.stamp, d.act.id, v.clock, d.act.exec})
		}
		return
	}
	if x == nil {
		x = p.newLoc(addr, size)
	}
	if !meets || !c.side.RMW {
		d.breakChain(p, addr, size)
		x.recs = records{}
	}
	x.valid = span(addr, addr, uint64(size))
	p.overwrite(addr, uint64(size), x)
	if word != nil {
		d.act.cleared = 0
		es := d.mem.of(word)
		d.record(word, es, headBytes, 0, d.afterLast(word, es))
	} else {
		d.touch(addr, uint64(size), false, true)
	}
	x.stamp++
	x.launch, x.block, x.warp, x.lane = b.launch, b.index, d.act.warp, lane
	x.wide = c.side.Wide || c.side.Volatile
	x.first = observer{}
	clear(x.observers)
	x.observers = x.observers[:0]
	if c.side.RMW {
		x.sees(b.launch, d.act.warp, lane, v.clock)
	}
	d.release(b, wi, lane, x)
	b.noteLock(wi, lane, locKey{d.act.shared, size, addr}, c)
}

// plainWord gives the cell of a whole word of page p, in a line of which nothing but cells of the launch is kept; nil when that is not
// so.
func (d *Detector) plainWord(p *page, addr uint64, size uint8) *cell {
	a := &d.act
	l := p.expanded(addr % pageBytes / lineBytes)
	if size != cellBytes || addr%cellBytes != 0 || l == nil || l.user != a.blk.info.ID || l.memory ||
		len(p.cold) > 0 && p.warmed != a.blk.info.ID {
		return nil
	}
	return &l.cells[addr%lineBytes/cellBytes]
}

// spin is the last strong read of a lane, without a race, of a scalar that had been written stamp times.
type spin struct {
	x                      *loc
	stamp, id, clock, exec uint32
}

func (w *warp) spin(lane int, s spin) {
	if w.spins == nil {
		if w.spins, w.room.spins = w.room.spins, nil; w.spins == nil {
			w.spins = new([32]spin)
		}
	}
	w.spins[lane] = s
}

// spun performs a strong read by a lane that repeats its last one, by the same instruction in the same epoch, where nothing
// was written since: there is nothing new to judge, learn or record. It says false, having done nothing, if it is not so.
func (d *Detector) spun(w *warp, wi uint32, lane int, addr uint64) bool {
	a := &d.act
	s := &w.spins[lane]
	x := s.x
	if x == nil || x.addr != addr || s.stamp != x.stamp || s.id != a.id || s.exec != a.exec || s.clock != w.view(lane).clock || a.class.acquires {
		return false
	}
	if !a.class.discards {
		d.noteHandover(a.blk, wi, lane, x, a.class)
	}
	return true
}

// count performs what most atomics do, which add to a counter or fail to change a word: a read or read-modify-write of x in
// page p that neither acquires nor releases anything, where nothing but atomics that are morally strong with it
// accessed the word. It says false, having done nothing, when the operation is more than that.
func (d *Detector) count(b *block, wi uint32, lane int, p *page, x *loc) bool {
	a := &d.act
	c := a.class
	w := &b.warps[wi]
	if c.acquires || c.releases || w.syncs != nil || !x.recs.none() ||
		w.view(lane).published.grid != nil ||
		x.size != cellBytes || x.addr%cellBytes != 0 || x.valid != 1<<cellBytes-1 || !a.shared && !c.side.Wide ||
		len(p.cold) > 0 && p.warmed != b.info.ID {
		return false
	}
	l := p.expanded(x.addr % pageBytes / lineBytes)
	if l == nil {
		return false
	}
	cell := &l.cells[x.addr%lineBytes/cellBytes]
	e := d.counter(cell)
	if e == nil {
		return false
	}
	if !c.discards {
		d.noteHandover(b, wi, lane, x, c)
	}
	v := w.view(lane)
	if !c.side.Write {
		x.sees(b.launch, a.warp, lane, v.clock)
	}
	cell.last = 0
	d.mem.add(e, c, a.warp, group{1 << uint(lane), v.clock, a.exec}, false)
	if !c.side.Write {
		return true
	}
	x.stamp++
	x.launch, x.block, x.warp, x.lane, x.wide = b.launch, b.index, a.warp, lane, c.side.Wide
	x.first = observer{b.launch, a.warp, lane, v.clock}
	if len(x.observers) > 0 {
		clear(x.observers)
		x.observers = x.observers[:0]
	}
	b.noteLock(wi, lane, locKey{a.shared, x.size, x.addr}, c)
	return true
}

// counter gives the entry of the actor's class for the whole of a cell where all accesses are atomic and morally strong with
// the actor's, nil when there is none or another access.
func (d *Detector) counter(c *cell) (own *entry) {
	a := &d.act
	key := a.id<<headShift | headBytes
	if a.class.side.Write {
		key |= headChain
	}
	es := d.mem.of(c)
	for i := range es {
		e := &es[i]
		switch {
		case e.head == 0:
		case e.head&headKey == key:
			own = e
		default:
			k := &d.classes[e.class()]
			if k.launch != a.class.launch || !k.side.Atomic || k.side.Unit != cellBytes || !a.shared && !k.side.Wide {
				return nil
			}
		}
	}
	return own
}

// release publishes with the write just made to x what the lane has released.
func (d *Detector) release(b *block, wi uint32, lane int, x *loc) {
	c := d.act.class
	w := &b.warps[wi]
	key := locKey{d.act.shared, x.size, x.addr}
	if c.releases {
		s := w.sync(lane)
		if s.own == nil {
			s.own = map[locKey]released{}
		}
		snap := &snapshot{view: *w.view(lane)}
		now := released{narrow: snap}
		if c.end {
			now.wide = snap
		}
		s.own[key] = s.own[key].newer(now)
	}
	if b.ordering && (c.side.Wide || c.side.Volatile) {
		if g := d.published(b, wi, lane); g.grid != nil {
			d.addWith(&x.recs.ordered, record{b.launch, g.grid, g.beyond}, w.before(lane))
		}
	}
	if w.syncs == nil {
		return
	}
	s := &w.syncs[lane]
	rel := s.fenced
	if s.own != nil {
		rel = rel.newer(s.own[key])
	}
	d.publish(x, b, wi, lane, rel)
}

// breakChain tells the entries of strong writes to a scalar that they did not lead to its current value.
func (d *Detector) breakChain(p *page, addr uint64, size uint8) {
	for at := addr &^ 3; at < addr+uint64(size); at += cellBytes {
		bytes := coverage(at, addr, uint64(size))
		if len(p.cold) > 0 {
			d.unchainCold(p, at, bytes, size)
		}
		l := p.expanded(at % pageBytes / lineBytes)
		if l == nil {
			continue
		}
		c := &l.cells[at%lineBytes/cellBytes]
		for {
			e := d.chained(c, bytes, size)
			if e == nil {
				break
			}
			d.unchain(c, *e)
		}
	}
}

// chained gives an entry of a cell in the chain of a scalar.
func (d *Detector) chained(c *cell, bytes uint32, size uint8) (found *entry) {
	d.mem.each(c, func(e *entry) {
		if e.head&headChain != 0 && e.head&bytes != 0 && d.classes[e.class()].side.Unit == int(size) {
			found = e
		}
	})
	return found
}

// unchain moves what old, an entry of c, holds to the entry of the same class that is outside the chain.
func (d *Detector) unchain(c *cell, old entry) {
	key := old.head & headKey
	d.supersede(c, &d.classes[old.class()], old.head&headBytes, 0)
	e := d.mem.entry(c, key)
	to := d.mem.entry(c, key&^headChain)
	if to == nil {
		e.head &^= headChain
		return
	}
	c.last = 0
	k := &d.classes[old.class()]
	d.mem.walk(&old, nil, func(warp uint32, g group) bool {
		d.mem.add(to, k, warp, g, false)
		return true
	})
	d.mem.forget(e)
}

// supersede drops the entries of a cell that a launch which is over before k's began made by the same instruction, in or
// out of the chain: whatever may race with them races with an access of class k to the same bytes too.
func (d *Detector) supersede(c *cell, k *class, bytes, chain uint32) {
	es := d.mem.of(c)
	for i := range es {
		e := &es[i]
		if e.head == 0 || e.head&(headBytes|headChain) != bytes|chain {
			continue
		}
		if o := &d.classes[e.class()]; o.launch != k.launch && o.key == k.key && over(o.launch, k.launch.start) {
			d.mem.forget(e)
		}
	}
}
