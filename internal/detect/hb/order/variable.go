package order

import (
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// Strong is a strong access of one scalar by one lane, as far as it synchronises.
type Strong struct {
	Address  uint64
	Size     uint8
	Shared   bool
	Reads    bool // what it reads may be acquired: not for red
	Writes   bool
	Updates  bool // a read-modify-write, which continues the chain of the value that it read
	Wide     bool // its scope reaches beyond the block
	Acquires bool // an acquire operation
	Releases bool // a release operation
}

// location names a scalar as one thread sees it: in global memory or in the shared memory of its block.
type location struct {
	shared  bool
	size    uint8
	address uint64
}

func (s *Strong) location() location { return location{s.Shared, s.Size, s.Address} }

// Memory holds the sync variables of global memory, or of the shared memory of a block.
type Memory struct {
	variables map[uint64]*variable // lists by address / granule
}

// granule is the largest size of a scalar, in bytes.
const granule = 16

// variable is a sync variable: a scalar that was last written by a strong write, as long as any byte of it still is.
type variable struct {
	next    *variable // of the same granule
	address uint64
	size    uint8
	valid   uint16 // bytes that the last strong write of the whole scalar still fills
	// The last strong write: by which block, and whether its scope reaches beyond it.
	launch  *Launch
	block   uint32
	wide    bool
	writer  writer
	records records
	chain   *Chain
}

// records are the release patterns that a read of a variable's value observes: those that other blocks may acquire, joined by
// launch; those that only the same block may; and what fence.sc before the writes published.
type records struct {
	wide   []record
	narrow []blockRecord
	fences []record
}

// record is the knowledge that patterns of one launch release: of that launch, and beyond it.
type record struct {
	launch *Launch
	grid   *clock.Grid
	beyond *clock.Foreign
}

// blockRecord is a record for threads of one block.
type blockRecord struct {
	block *Block
	record
}

// observation is what a lane observed at a location and may acquire by a fence, or by an acquire operation there.
type observation struct {
	location
	wide   []record
	narrow record // by patterns of the own block
}

// Chain is a strong write to a sync variable and the read-modify-writes that continue it, each morally strong with the one
// before. The last of them makes the variable's value.
type Chain struct {
	current   bool // it makes the value that the variable has now
	observers []observer
	seen      map[observerKey]uint32 // lanes
}

// observer is lanes of a warp that observed the current value, and the epoch in which they first did.
type observer struct {
	observerKey
	lanes, epoch uint32
}

type observerKey struct {
	launch *Launch
	warp   uint32
}

// observe notes that an actor observed the current value. Its first observation is the one that others know soonest.
func (c *Chain) observe(a *Actor) {
	k, lane := observerKey{a.Launch, a.Warp}, uint32(1)<<uint(a.Lane)
	if c.seen[k]&lane != 0 {
		return
	}
	if c.seen == nil {
		c.seen = map[observerKey]uint32{}
	}
	c.seen[k] |= lane
	if n := len(c.observers); n > 0 && c.observers[n-1].observerKey == k && c.observers[n-1].epoch == a.View.Epoch {
		c.observers[n-1].lanes |= lane
		return
	}
	c.observers = append(c.observers, observer{k, lane, a.View.Epoch})
}

// Observed says that the chain's writes happen before what the actor does now, by the second clause of causality order: the
// chain makes the current value of its variable, and a thread that observed this value happens before the actor, or is it.
func (c *Chain) Observed(a *Actor) bool {
	if c == nil || !c.current {
		return false
	}
	return slices.ContainsFunc(c.observers, func(o observer) bool {
		return o.launch == a.Launch && o.warp == a.Warp && o.lanes>>uint(a.Lane)&1 != 0 ||
			a.Behind(o.launch, o.warp, o.lanes, o.epoch) != o.lanes
	})
}

// renew begins a new value, of the same chain or of a new one.
func (v *variable) renew(continues bool) {
	if !continues {
		v.drop()
		v.chain, v.records = &Chain{current: true}, records{}
		return
	}
	clear(v.chain.seen)
	v.chain.observers = v.chain.observers[:0]
}

// drop ends the variable's chain.
func (v *variable) drop() {
	if v.chain != nil {
		*v.chain = Chain{}
	}
}

// find gives the variable of a location, nil when its last write was not strong.
func (m *Memory) find(address uint64, size uint8) *variable {
	v := m.variables[address/granule]
	for v != nil && (v.address != address || v.size != size) {
		v = v.next
	}
	return v
}

func (m *Memory) make(address uint64, size uint8) *variable {
	if m.variables == nil {
		m.variables = map[uint64]*variable{}
	}
	v := &variable{address: address, size: size, next: m.variables[address/granule]}
	m.variables[address/granule] = v
	return v
}

// Overwrite tells that the bytes [from, end) of global memory were written weakly, or became or ceased to be an allocation.
func (o *Order) Overwrite(from, end uint64) { o.global.overwrite(from, end, nil) }

// Overwrite tells that threads of the block wrote the bytes [from, end) weakly.
func (b *Block) Overwrite(shared bool, from, end uint64) { b.memory(shared).overwrite(from, end, nil) }

// memory gives the shared memory of the block, or global memory.
func (b *Block) memory(shared bool) *Memory {
	if shared {
		return &b.Shared
	}
	return &b.order.global
}

// overwrite ends the values of variables, but for one, where all their bytes are overwritten.
func (m *Memory) overwrite(from, end uint64, but *variable) {
	first, last := from/granule, (end-1)/granule
	if from >= end || len(m.variables) == 0 {
		return
	}
	if last-first >= uint64(len(m.variables)) {
		for g := range m.variables {
			if first <= g && g <= last {
				m.overwriteGranule(g, from, end, but)
			}
		}
		return
	}
	for g := first; g <= last; g++ {
		m.overwriteGranule(g, from, end, but)
	}
}

func (m *Memory) overwriteGranule(g, from, end uint64, but *variable) {
	var kept *variable
	for v := m.variables[g]; v != nil; {
		next := v.next
		if v != but {
			v.valid &^= bytesOf(v.address, from, end)
		}
		if v.valid == 0 {
			v.drop()
		} else {
			v.next, kept = kept, v
		}
		v = next
	}
	if kept == nil {
		delete(m.variables, g)
	} else {
		m.variables[g] = kept
	}
}

// bytesOf gives the bytes from base on, at most 16, that lie in [from, end), as bits.
func bytesOf(base, from, end uint64) uint16 {
	if end <= base || from >= base+granule {
		return 0
	}
	lo, hi := uint64(0), uint64(granule)
	if from > base {
		lo = from - base
	}
	if end < base+granule {
		hi = end - base
	}
	return uint16(1<<hi - 1<<lo)
}

// meets says that the last write of the variable and an operation of a thread of b on it are morally strong: each scope
// includes the other thread.
func (v *variable) meets(b *Block, wide bool) bool {
	return v != nil && (v.launch == b.Launch && v.block == b.Index || v.wide && wide)
}

// Observe performs the part of a strong access by a lane that comes before the access is judged: what it observes begins
// acquire patterns, and an acquire operation ends those of its location.
func (b *Block) Observe(wi uint32, lane int, s *Strong) {
	if !s.Reads {
		return
	}
	w := &b.warps[wi]
	if v := b.memory(s.Shared).find(s.Address, s.Size); v.meets(b, s.Wide) {
		b.observe(w, v, lane, s)
	}
	if s.Acquires {
		at := s.location()
		b.acquire(w, lane, &at, s.Wide)
	}
}

// observe lets a strong read of the value of a variable begin an acquire pattern.
func (b *Block) observe(w *warp, v *variable, lane int, s *Strong) {
	o := b.order
	if s.Wide {
		for _, r := range v.records.fences {
			if r.launch == b.Launch {
				p := w.patternsOf(lane)
				p.observed = o.joinPassed(p.observed, passed{r.grid, r.beyond})
			}
		}
	}
	var own record
	if i := v.records.of(b); i >= 0 {
		own = v.records.narrow[i].record
	}
	if len(v.records.wide) == 0 && own.launch == nil {
		return
	}
	p, at := w.patternsOf(lane), s.location()
	for i := range p.seen {
		x := &p.seen[i]
		if x.location != at {
			continue
		}
		for _, r := range v.records.wide {
			x.wide = o.addRecord(x.wide, r)
		}
		if own.launch != nil {
			x.narrow = o.joinRecords(x.narrow, own)
		}
		return
	}
	p.seen = append(p.seen, observation{at, v.records.wide, own})
}

// acquire ends the acquire patterns of a lane begun at a location, or all when at is nil, by an operation of the given scope.
func (b *Block) acquire(w *warp, lane int, at *location, wide bool) {
	if w.patterns == nil || len(w.patterns[lane].seen) == 0 {
		return
	}
	p, v := &w.patterns[lane], w.view(lane)
	k, kept := v.knowledge, p.seen[:0]
	for _, x := range p.seen {
		if at != nil && x.location != *at {
			kept = append(kept, x)
			continue
		}
		k = b.learn(k, x.narrow)
		if !wide {
			if len(x.wide) > 0 {
				kept = append(kept, x)
			}
			continue
		}
		for _, r := range x.wide {
			k = b.learn(k, r)
		}
	}
	clear(p.seen[len(kept):])
	p.seen = kept
	if k != v.knowledge {
		w.set(1<<uint(lane), &View{k, v.Epoch})
	}
}

// learn gives k with a record acquired by a thread of the block.
func (b *Block) learn(k knowledge, r record) knowledge {
	if r.launch == nil {
		return k
	}
	k.beyond = k.beyond.Join(r.beyond)
	own := r.grid
	if r.launch != b.Launch {
		own = k.beyond.Part(b.Info.ID)
	}
	if own != nil {
		k.grid = b.order.join.Join(k.grid, own)
		k.block = k.block.Join(k.grid.At(b.depth, b.Index))
		k.beyond = k.beyond.Without(func(id uint32) bool { return id == b.Info.ID })
	}
	if r.launch != b.Launch && !r.launch.within(k.beyond) {
		k.beyond = k.beyond.WithPart(r.launch.Info.ID, r.grid)
	}
	return k
}

// Perform performs the part of a strong access by a lane that comes after it is judged: a read is noted as an observer, a
// write makes the variable's value and publishes what the lane has released. It gives the chain of a write, nil for a read.
func (b *Block) Perform(wi uint32, lane int, s *Strong) *Chain {
	m := b.memory(s.Shared)
	v := m.find(s.Address, s.Size)
	meets := v.meets(b, s.Wide)
	a := b.Actor(wi, lane)
	if !s.Writes {
		if meets {
			v.chain.observe(&a)
		}
		return nil
	}
	if v == nil {
		v = m.make(s.Address, s.Size)
	}
	v.renew(meets && s.Updates)
	v.valid = 1<<s.Size - 1
	m.overwrite(s.Address, s.Address+uint64(s.Size), v)
	v.launch, v.block, v.wide = b.Launch, b.Index, s.Wide
	v.writer = writer{a.Warp, lane}
	if s.Updates {
		v.chain.observe(&a)
	}
	b.release(wi, lane, v, s)
	return v.chain
}

// release publishes with a write to a variable what the lane has released.
func (b *Block) release(wi uint32, lane int, v *variable, s *Strong) {
	w := &b.warps[wi]
	if s.Releases {
		p, now := w.patternsOf(lane), released{narrow: w.view(lane)}
		if s.Wide {
			now.wide = now.narrow
		}
		if p.own == nil {
			p.own = map[location]released{}
		}
		p.own[s.location()] = p.own[s.location()].newer(now)
	}
	if b.fencesSC && s.Wide {
		if f := b.publishedFences(w, wi, lane); f.grid != nil {
			v.records.fences = b.order.addRecord(v.records.fences, record{b.Launch, f.grid, f.beyond})
		}
	}
	if w.patterns == nil {
		return
	}
	p := &w.patterns[lane]
	b.publish(&v.records, wi, lane, p.fenced.newer(p.own[s.location()]))
}

// publish adds what a lane releases to the patterns that a value carries.
func (b *Block) publish(rs *records, wi uint32, lane int, rel released) {
	recordOf := func(v *View) record { return record{b.Launch, b.gridOf(v, wi, 1<<uint(lane)), v.beyond} }
	if rel.narrow != nil {
		i := rs.of(b)
		if i < 0 {
			rs.narrow = slices.DeleteFunc(rs.narrow, func(x blockRecord) bool { return x.block.alive == 0 })
			i = len(rs.narrow)
			rs.narrow = append(rs.narrow, blockRecord{block: b})
		}
		rs.narrow[i].record = b.order.joinRecords(rs.narrow[i].record, recordOf(rel.narrow))
	}
	if rel.wide != nil {
		rs.wide = b.order.addRecord(rs.wide, recordOf(rel.wide))
	}
}

// of gives the index of the record for threads of b, -1 when there is none.
func (rs *records) of(b *Block) int {
	return slices.IndexFunc(rs.narrow, func(x blockRecord) bool { return x.block == b })
}

// joinRecords joins records of one launch.
func (o *Order) joinRecords(r, q record) record {
	if r.launch == nil {
		return q
	}
	return record{r.launch, o.join.Join(r.grid, q.grid), r.beyond.Join(q.beyond)}
}

// addRecord gives rs, which others may hold and which is not changed, with r.
func (o *Order) addRecord(rs []record, r record) []record {
	out := slices.Clone(rs)
	for i := range out {
		if out[i].launch == r.launch {
			out[i] = o.joinRecords(out[i], r)
			return out
		}
	}
	return append(out, r)
}

// StrongOf gives the size of what an access event of unit bytes means to the order: see Strong. It is the same for all
// lanes and elements but for Address and Size.
func StrongOf(kind event.Kind, flags event.Flags, order event.Order, wide bool) Strong {
	s := Strong{Wide: wide, Reads: kind != event.Store && flags&event.FlagRed == 0,
		Writes: kind == event.Store || kind == event.Atomic && flags&event.FlagWrite != 0}
	s.Updates = kind == event.Atomic && s.Writes
	strong := order == event.AcqRel || order == event.SC
	s.Acquires = s.Reads && (strong || order == event.Acquire)
	s.Releases = s.Writes && (strong || order == event.Release)
	return s
}
