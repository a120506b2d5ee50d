package order

import (
	"cmp"
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
	System   bool // its scope reaches beyond the device; set only where the run has several
	Cluster  bool // its scope ends at the cluster, which has several blocks
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

// variable is a sync variable: a scalar that was last written by a strong write, as long as any byte of it still is.
type variable struct {
	more  *more   // nil where relaxed atomics alone have touched it
	chain ChainID // of the last strong write
	// launch and block are those of the last strong write.
	launch uint32 // Launch.number
	block  uint32
	// epoch is that of the first of the block to observe the value, observer; noThread where none did.
	epoch    uint32
	observer threadInBlock
	writer   threadInBlock
	valid    uint16 // bytes that the last strong write of the whole scalar still fills
	traits   traits
	size     uint8
}

// traits are of the value of a variable.
type traits uint8

const (
	wideWrite    traits = 1 << iota // the scope of its last write reaches beyond the block
	hasRecords                      // it carries release patterns
	ofLaunches                      // writes of several launches made it
	systemWrite                     // the scope of its last write reaches beyond the device, where the run has several
	clusterWrite                    // the scope of its last write ends at the cluster
	observed                        // another block has observed it
)

// threadInBlock is a warp of a block, times 32, and a lane.
type threadInBlock uint16

const noThread threadInBlock = 1<<16 - 1

func threadOf(wi uint32, lane int) threadInBlock { return threadInBlock(wi<<5 | uint32(lane)) }

func (t threadInBlock) warp() uint32  { return uint32(t >> 5) }
func (t threadInBlock) lanes() uint32 { return 1 << (t & 31) }

// more is what few variables have.
type more struct {
	records
	observers []observer // other ones
}

// extra gives what few variables have to one that has it now.
func (v *variable) extra() *more {
	if v.more == nil {
		v.more = &more{}
	}
	return v.more
}

// carried gives the records of a variable, to which some are added.
func (v *variable) carried() *records {
	v.traits |= hasRecords
	return &v.extra().records
}

// records are the release patterns that a read of a variable's value observes: those that other blocks may acquire, of their device
// where the run has several, and those that blocks of other devices may, both joined by launch; those that only the same block may; and
// what fence.sc before the writes published.
type records struct {
	wide   []record
	system []record
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
	block  *Block
	serial uint64 // Block.serial then
	record
	fences passed // what fence.sc of the block published
}

// former is what is kept of the last value of a variable that threads observed and threads overwrote.
type former struct {
	chain     ChainID
	observers []observer
}

// scalar names one in a memory.
type scalar struct {
	address uint64
	size    uint8
}

// observation is what a lane observed at a location and may acquire by a fence, or by an acquire operation there.
type observation struct {
	location
	acquirable
}

// acquirable is the release patterns of a value that a thread of a block may acquire, of wide those by launches of its device, and of
// system those by others.
type acquirable struct {
	wide   []record
	system []record
	narrow record // by patterns of the block
}

// is says that both are the same in memory.
func (x *acquirable) is(y *acquirable) bool {
	return sameRecords(x.wide, y.wide) && x.narrow == y.narrow && sameRecords(x.system, y.system)
}

func sameRecords(x, y []record) bool { return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0]) }

// ChainID names a strong write to a sync variable and the read-modify-writes that continue it, each morally strong with the one
// before. The last of them makes the variable's value. Chains have numbers of their own, in a run of less than 2^32 of
// them; 0 names none.
type ChainID uint32

// observer is lanes of a warp of a launch (Launch.number) that observed the current value, and the epoch in which they did.
type observer struct{ launch, warp, lanes, epoch uint32 }

// observe notes that a lane of a warp of a block observed the current value. Its first observation is the one that others know
// soonest.
func (v *variable) observe(b *Block, wi uint32, lane int) {
	v.traits |= observed
	epoch, own := b.warps[wi].view(lane).Epoch, v.launch == b.Launch.number && v.block == b.Index
	switch {
	case own && v.observer == noThread:
		v.observer, v.epoch = threadOf(wi, lane), epoch
		return
	case own && v.observer == threadOf(wi, lane):
		return
	case !own && v.traits&ofLaunches == 0 && b.order.numbered[v.launch].within(b.start): // it happens after the writes anyway
		return
	}
	v.extra().observe(observer{b.Launch.number, b.Index*b.WarpsPerBlock + wi, 1 << uint(lane), epoch})
}

// observe adds an observer, of one lane. Its first observation is enough, but one that is not the last in the list may be there
// again until the list is full.
func (m *more) observe(o observer) {
	n := len(m.observers)
	if n > 0 {
		if x := &m.observers[n-1]; x.launch == o.launch && x.warp == o.warp {
			if x.lanes&o.lanes != 0 {
				return
			}
			if x.epoch == o.epoch {
				x.lanes |= o.lanes
				return
			}
		}
	}
	if n == cap(m.observers) && n >= 8 {
		m.once()
	}
	m.observers = append(m.observers, o)
}

// once drops all but the first observation of each thread.
func (m *more) once() {
	slices.SortStableFunc(m.observers, func(x, y observer) int { return cmp.Or(cmp.Compare(x.launch, y.launch), cmp.Compare(x.warp, y.warp)) })
	kept := m.observers[:0]
	var of observer
	for _, x := range m.observers {
		if x.launch != of.launch || x.warp != of.warp {
			of = observer{launch: x.launch, warp: x.warp}
		}
		x.lanes &^= of.lanes
		if of.lanes |= x.lanes; x.lanes != 0 {
			kept = append(kept, x)
		}
	}
	if m.observers = kept; 2*len(kept) > cap(kept) {
		m.observers = slices.Grow(kept, len(kept))
	}
}

// Observed says that the writes of a chain to a scalar happen before what the actor does now, by the second clause of causality
// order: the chain makes the current value there, or the former one, and a thread that observed this value happens before the actor, or is it.
func (o *Order) Observed(a *Actor, shared bool, address uint64, size uint8, chain ChainID) bool {
	if chain == 0 {
		return false
	}
	m := &o.global
	if shared {
		b, _ := a.Launch.Block(a.Warp)
		m = &b.Shared
	}
	after := func(x observer) bool {
		l := o.numbered[x.launch]
		return l == a.Launch && x.warp == a.Warp && x.lanes>>uint(a.Lane)&1 != 0 || a.Unknown(l, x.warp, x.lanes, x.epoch) != x.lanes
	}
	v := m.find(address, size)
	if v == nil || v.chain != chain {
		f := m.former[scalar{address, size}]
		return f != nil && f.chain == chain && slices.ContainsFunc(f.observers, after)
	}
	first, ok := o.first(v)
	return ok && after(first) || v.more != nil && slices.ContainsFunc(v.more.observers, after)
}

// first gives the first thread of the writer's block to observe the value of a variable, if one did.
func (o *Order) first(v *variable) (observer, bool) {
	if v.observer == noThread {
		return observer{}, false
	}
	return observer{v.launch, v.block*o.numbered[v.launch].WarpsPerBlock + v.observer.warp(), v.observer.lanes(), v.epoch}, true
}

// retire keeps the value of a variable as the former one of its location, if it was observed.
func (o *Order) retire(m *Memory, v *variable, at scalar) {
	if v.traits&observed == 0 {
		return
	}
	f := m.former[at]
	if f == nil {
		if m.former == nil {
			m.former = map[scalar]*former{}
		}
		f = &former{}
		m.former[at] = f
	}
	f.chain, f.observers = v.chain, f.observers[:0]
	if v.more != nil {
		f.observers, v.more.observers = v.more.observers, f.observers
	}
	if first, ok := o.first(v); ok {
		f.observers = append(f.observers, first)
	}
}

// renew begins a new value of a variable, of the same chain or of a new one.
func (o *Order) renew(m *Memory, v *variable, at scalar, continues bool) {
	if !continues {
		o.retire(m, v, at)
		o.chains = max(o.chains+1, 1)
		v.chain = o.chains
	}
	v.observer = noThread
	v.traits &^= observed
	if m := v.more; m != nil {
		m.observers = m.observers[:0]
		if !continues && v.traits&hasRecords != 0 {
			m.records = records{}
		}
	}
	if !continues {
		v.traits = 0
	}
}

// Overwrite tells that the host wrote the bytes [from, end) of global memory, or that they became or ceased to be an allocation.
func (o *Order) Overwrite(from, end uint64) { o.global.overwrite(from, end, nil, nil) }

// Overwrite tells that threads of the block wrote the bytes [from, end) weakly.
func (b *Block) Overwrite(shared bool, from, end uint64) {
	b.memory(shared).overwrite(from, end, nil, b.order)
}

// memory gives the shared memory of the block, or global memory.
func (b *Block) memory(shared bool) *Memory {
	if shared {
		return &b.Shared
	}
	return &b.order.global
}

// morallyStrong says that the last write of the variable and an operation of a thread of b on it are morally strong: each scope
// includes the other thread.
func (v *variable) morallyStrong(b *Block, s *Strong) bool {
	return v != nil && (v.block == b.Index && v.launch == b.Launch.number || v.traits&wideWrite != 0 && s.Wide &&
		(b.Info.Device == 0 || v.traits&systemWrite != 0 && s.System || !b.elsewhere(v)) &&
		(v.traits&clusterWrite == 0 && !s.Cluster || v.launch == b.Launch.number && b.Info.SameCluster(v.block, b.Index)))
}

// elsewhere says that the last write of a variable was on another device.
func (b *Block) elsewhere(v *variable) bool {
	return b.Info.Device != 0 && b.order.numbered[v.launch].Info.Device != b.Info.Device
}

// Observe performs the part of a strong access by a lane that comes before the access is judged: what it observes begins
// acquire patterns, and an acquire operation ends those of its location.
func (b *Block) Observe(wi uint32, lane int, s *Strong) {
	if !s.Reads {
		return
	}
	w := &b.warps[wi]
	if v := b.memory(s.Shared).find(s.Address, s.Size); v.morallyStrong(b, s) && v.traits&hasRecords != 0 {
		b.observe(w, v, lane, s)
	}
	if s.Acquires {
		at := s.location()
		b.acquire(w, lane, &at, s.Wide, s.System)
	}
}

// observe lets a strong read of the value of a variable begin an acquire pattern.
func (b *Block) observe(w *warp, v *variable, lane int, s *Strong) {
	o := b.order
	if s.Wide {
		for _, r := range v.more.fences {
			if r.launch == b.Launch {
				p := w.patternsOf(lane)
				p.observed = o.joinPassed(p.observed, passed{r.grid, r.beyond})
			}
		}
	}
	now := acquirable{wide: v.more.wide}
	if slices.ContainsFunc(v.more.system, func(r record) bool { return r.launch.Info.Device != b.Info.Device }) {
		now.system = v.more.system
	}
	if i := v.more.of(b); i >= 0 {
		now.narrow = v.more.narrow[i].record
		if f := v.more.narrow[i].fences; f.grid != nil {
			p := w.patternsOf(lane)
			p.inner = o.joinPassed(p.inner, f)
		}
	}
	if len(now.wide) == 0 && now.narrow.launch == nil { // without wide ones there are none of the system
		return
	}
	p, at := w.patternsOf(lane), s.location()
	if now.is(&p.acquired) {
		return
	}
	for i := range p.seen {
		x := &p.seen[i]
		if x.location != at {
			continue
		}
		if !x.is(&now) {
			for _, r := range now.wide {
				x.wide = o.addRecord(x.wide, r)
			}
			for _, r := range now.system {
				x.system = o.addRecord(x.system, r)
			}
			x.narrow = o.joinRecords(x.narrow, now.narrow)
		}
		return
	}
	p.seen = append(p.seen, observation{at, now})
}

// acquire ends the acquire patterns of a lane begun at a location, or all when at is nil, by an operation. wide says that its scope reaches
// beyond the block, system that it reaches beyond the device.
func (b *Block) acquire(w *warp, lane int, at *location, wide, system bool) {
	if w.patterns == nil || w.patterns[lane] == nil || len(w.patterns[lane].seen) == 0 {
		return
	}
	p, v := w.patterns[lane], w.view(lane)
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
			if r.launch.Info.Device == b.Info.Device {
				k = b.learn(k, r)
			}
		}
		if !system && len(x.system) > 0 {
			kept = append(kept, x)
			continue
		}
		for _, r := range x.system {
			if r.launch.Info.Device != b.Info.Device {
				k = b.learn(k, r)
			}
		}
		p.acquired = x.acquirable
	}
	clear(p.seen[len(kept):])
	p.seen = kept
	w.learned(1<<uint(lane), v, k)
}

// learned lets lanes that have a view know k.
func (w *warp) learned(lanes uint32, v *View, k knowledge) {
	if k != v.knowledge {
		w.set(lanes, &View{k, v.Epoch})
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
		if g := b.order.join.Join(k.grid, own); g != k.grid {
			k.grid, k.block = g, k.block.Join(g.At(b.depth, b.Index))
		}
		k.beyond = k.beyond.Without(func(id uint32) bool { return id == b.Info.ID })
	}
	if r.launch != b.Launch && !r.launch.within(k.beyond) {
		k.beyond = k.beyond.WithPart(r.launch.Info.ID, r.grid)
	}
	return k
}

// Perform performs the part of a strong access by a lane that comes after it is judged: a read is noted as an observer, a
// write makes the variable's value and publishes what the lane has released. It gives the chain of a write, 0 for a read.
func (b *Block) Perform(wi uint32, lane int, s *Strong) ChainID {
	m := b.memory(s.Shared)
	v := m.find(s.Address, s.Size)
	strong := v.morallyStrong(b, s)
	if !s.Writes {
		if strong {
			v.observe(b, wi, lane)
		}
		return 0
	}
	if v == nil {
		v = m.make(s.Address, s.Size)
	}
	b.write(m, v, wi, lane, s, strong)
	if s.Releases || b.Begun(wi) {
		b.release(wi, lane, v, s)
	}
	return v.chain
}

// write makes a strong write the last one of a variable. Strong: it is morally strong with the one before.
func (b *Block) write(m *Memory, v *variable, wi uint32, lane int, s *Strong, strong bool) {
	b.order.renew(m, v, scalar{s.Address, s.Size}, strong && s.Updates)
	v.valid = 1<<s.Size - 1
	if m.mixed && m.piece(s.Address/pieceBytes).mixed {
		m.overwrite(s.Address, s.Address+uint64(s.Size), v, b.order)
	}
	if v.traits &^= wideWrite | systemWrite | clusterWrite; s.Wide {
		v.traits |= wideWrite
		if s.System {
			v.traits |= systemWrite
		}
		if s.Cluster {
			v.traits |= clusterWrite
		}
	}
	if v.launch != b.Launch.number && strong && s.Updates {
		v.traits |= ofLaunches
	}
	v.launch, v.block, v.writer = b.Launch.number, b.Index, threadOf(wi, lane)
	if s.Updates {
		v.observe(b, wi, lane)
	}
}

// release publishes with a write to a variable what the lane has released.
func (b *Block) release(wi uint32, lane int, v *variable, s *Strong) {
	w := &b.warps[wi]
	if s.Releases {
		b.published = true
		p, now := w.patternsOf(lane), released{narrow: w.view(lane)}
		if s.Wide {
			now.wide = now.narrow
			b.tell(now.wide, wi, 1<<uint(lane))
		}
		if s.System {
			now.system = now.narrow
		}
		if p.own == nil {
			p.own = map[location]released{}
		}
		p.own[s.location()] = p.own[s.location()].newer(now)
	}
	if b.fencesSC {
		wide, inner := b.publishedFences(w, wi, lane)
		if s.Wide && wide.grid != nil {
			rs := v.carried()
			rs.fences = b.order.addRecord(rs.fences, record{b.Launch, wide.grid, b.within(wide.beyond)})
		}
		if inner.grid != nil {
			r := v.carried().blockRecord(b)
			r.fences = b.order.joinPassed(r.fences, inner)
		}
	}
	rel := w.releasedBy(lane)
	if w.patterns != nil && w.patterns[lane] != nil {
		rel = rel.newer(w.patterns[lane].own[s.location()])
	}
	if rel.narrow != nil {
		b.publish(v.carried(), wi, lane, rel)
	}
}

// HandOn lets a value that a lane has written carry the release patterns that another one carries, without that the lane acquires them.
func (b *Block) HandOn(from, to *Strong) {
	m := b.memory(to.Shared)
	v := m.find(from.Address, from.Size)
	if v == nil || v.traits&hasRecords == 0 {
		return
	}
	is := v.more.records
	is.narrow = slices.Clone(is.narrow)
	if w := m.find(to.Address, to.Size); w != nil {
		*w.carried() = is
	}
}

// publish adds what a lane releases, to its block at least, to the patterns that a value carries.
func (b *Block) publish(rs *records, wi uint32, lane int, rel released) {
	recordOf := func(v *View) record { return record{b.Launch, b.gridOf(v, wi, 1<<uint(lane)), v.beyond} }
	wideOf := func(v *View) record {
		r := recordOf(v)
		r.beyond = b.within(r.beyond)
		return r
	}
	r := rs.blockRecord(b)
	r.record = b.order.joinRecords(r.record, recordOf(rel.narrow))
	if rel.wide != nil {
		rs.wide = b.order.addRecord(rs.wide, wideOf(rel.wide))
	}
	if rel.system != nil {
		rs.system = b.order.addRecord(rs.system, wideOf(rel.system))
	}
}

// blockRecord gives the record for threads of b.
func (rs *records) blockRecord(b *Block) *blockRecord {
	i := rs.of(b)
	if i < 0 {
		rs.narrow = slices.DeleteFunc(rs.narrow, func(x blockRecord) bool { return x.block.serial != x.serial })
		i = len(rs.narrow)
		rs.narrow = append(rs.narrow, blockRecord{block: b, serial: b.serial})
	}
	return &rs.narrow[i]
}

// of gives the index of the record for threads of b, -1 when there is none.
func (rs *records) of(b *Block) int {
	return slices.IndexFunc(rs.narrow, func(x blockRecord) bool { return x.serial == b.serial })
}

// joinRecords joins records of one launch.
func (o *Order) joinRecords(r, q record) record {
	switch {
	case r == q || q.launch == nil:
		return r
	case r.launch == nil:
		return q
	}
	return record{r.launch, o.join.Join(r.grid, q.grid), r.beyond.Join(q.beyond)}
}

// addRecord gives rs, which others may hold and which is not changed, with r.
func (o *Order) addRecord(rs []record, r record) []record {
	for i := range rs {
		if rs[i].launch != r.launch {
			continue
		}
		if r = o.joinRecords(rs[i], r); r == rs[i] {
			return rs
		}
		out := slices.Clone(rs)
		out[i] = r
		return out
	}
	if slices.ContainsFunc(rs, r.includes) {
		rs = slices.DeleteFunc(slices.Clone(rs), r.includes)
	}
	return append(slices.Clip(rs), r)
}

// includes says that who acquires r knows all that x releases: the launch of x is over, and happens before.
func (r record) includes(x record) bool {
	return x.launch.Info.Device == r.launch.Info.Device && x.launch.within(r.beyond) && r.beyond.Join(x.beyond) == r.beyond
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
