package order

import (
	"cmp"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// Strong describes a strong access to one scalar by one lane, as far as it matters for synchronisation.
type Strong struct {
	Address  uint64
	Size     uint8
	Shared   bool
	Reads    bool // a thread can acquire what it reads; false for red
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

// variable is a sync variable: a scalar whose last write was strong. It exists until all of its bytes have been
// overwritten by other writes.
type variable struct {
	more  *more   // nil if only relaxed atomics have accessed it
	chain ChainID // the chain of the last strong write
	// launch and block are those of the last strong write.
	launch uint32 // Launch.number
	block  uint32
	// observer is the first thread of the writer's block that observed the value, in epoch; noThread if none did.
	epoch    uint32
	observer threadInBlock
	writer   threadInBlock
	valid    uint16 // a bit for each byte that still holds the last strong write of the whole scalar
	traits   traits
	size     uint8
}

// traits are properties of a variable's value.
type traits uint8

const (
	wideWrite    traits = 1 << iota // the scope of its last write reaches beyond the block
	hasRecords                      // it carries release patterns: more.records
	ofLaunches                      // writes of several launches contributed to it
	systemWrite                     // the scope of its last write reaches beyond the device, where the run has several
	clusterWrite                    // the scope of its last write ends at the cluster
	observed                        // a thread has observed it
)

// threadInBlock identifies a thread within its block: warp*32 + lane.
type threadInBlock uint16

const noThread threadInBlock = 1<<16 - 1

func threadOf(wi uint32, lane int) threadInBlock { return threadInBlock(wi<<5 | uint32(lane)) }

func (t threadInBlock) warp() uint32  { return uint32(t >> 5) }
func (t threadInBlock) lanes() uint32 { return 1 << (t & 31) }

// more is the part of a variable that few variables need.
type more struct {
	records
	observers []observer // besides variable.observer
}

// extra returns the more of a variable, creating it if necessary.
func (v *variable) extra() *more {
	if v.more == nil {
		v.more = &more{}
	}
	return v.more
}

// carried returns the records of a variable in order to add to them.
func (v *variable) carried() *records {
	v.traits |= hasRecords
	return &v.extra().records
}

// records are the release patterns that a read of a variable's value observes. wide are the patterns that other blocks
// of the same device may acquire, and system those that blocks of other devices may acquire (in a run with several
// devices); both are joined by launch. narrow are those that only the same block may acquire. fences is what fence.sc
// before the writes published.
type records struct {
	wide   []record
	system []record
	narrow []blockRecord
	fences []record
}

// record is the knowledge released by patterns of one launch: about that launch (grid), and about everything else
// (beyond).
type record struct {
	launch *Launch
	grid   *clock.Grid
	beyond *clock.Foreign
}

// blockRecord is a record that threads of one block may acquire.
type blockRecord struct {
	block  *Block
	serial uint64 // block.serial when the record was made
	record
	fences passed // what fence.sc of the block published
} // what fence.sc of the block published

// former is kept for a location after its variable's value was overwritten: the last value that threads observed and
// that a thread overwrote.
type former struct {
	chain     ChainID
	observers []observer
}

// scalar identifies a scalar within a Memory.
type scalar struct {
	address uint64
	size    uint8
}

// observation is what a lane observed at a location. It may acquire that by a fence, or by an acquire operation on the
// location.
type observation struct {
	location
	acquirable
}

// acquirable is the release patterns of a value that a thread of a block may acquire. wide may be acquired from
// launches of its own device, and system from launches of others.
type acquirable struct {
	wide   []record
	system []record
	narrow record // patterns of the same block
}

// is reports whether x and y refer to the same records in memory.
func (x *acquirable) is(y *acquirable) bool {
	return sameRecords(x.wide, y.wide) && x.narrow == y.narrow && sameRecords(x.system, y.system)
}

func sameRecords(x, y []record) bool { return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0]) }

// ChainID identifies a strong write to a sync variable together with the read-modify-writes that continue it, each
// morally strong with the one before. The last of them makes the variable's value. IDs are unique in a run with fewer
// than 2^32 chains. 0 is no chain.
type ChainID uint32

// observer records that lanes of a warp of a launch (Launch.number) observed the current value in an epoch. warp is
// numbered within the grid.
type observer struct{ launch, warp, lanes, epoch uint32 }

// observe records that a lane of a warp of a block observed the current value. Only a thread's first observation
// matters: other threads know of that one first.
func (v *variable) observe(b *Block, wi uint32, lane int) {
	v.traits |= observed
	epoch, own := b.warps[wi].view(lane).Epoch, v.launch == b.Launch.number && v.block == b.Index
	switch {
	case own && v.observer == noThread:
		v.observer, v.epoch = threadOf(wi, lane), epoch
		return
	case own && v.observer == threadOf(wi, lane):
		return
	case !own && v.traits&ofLaunches == 0 && b.order.numbered[v.launch].within(b.start): // the observer happens after the writes anyway
		return
	}
	v.extra().observe(observer{b.Launch.number, b.Index*b.WarpsPerBlock + wi, 1 << uint(lane), epoch})
}

// observe adds an observer of one lane. The first observation of a thread is enough. A repetition is recognised only in
// the last entry, or when the list is full (see once).
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

// Observed reports whether the writes of a chain to a scalar happen before what the actor does now, by the second
// clause of causality order. That is so if the chain made the current value of the scalar, or the former one, and a
// thread that observed this value happens before the actor or is the actor.
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

// first returns the first thread of the writer's block that observed the value of a variable; ok is false if none did.
func (o *Order) first(v *variable) (observer, bool) {
	if v.observer == noThread {
		return observer{}, false
	}
	return observer{v.launch, v.block*o.numbered[v.launch].WarpsPerBlock + v.observer.warp(), v.observer.lanes(), v.epoch}, true
}

// retire makes the value of a variable the former one of its location, if it was observed.
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

// renew begins a new value of a variable. The value continues the variable's chain, or begins a new chain.
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

// Overwrite ends the values in the bytes [from, end) of global memory: the host wrote them, or they became an
// allocation or ceased to be one.
func (o *Order) Overwrite(from, end uint64) { o.global.overwrite(from, end, nil, nil) }

// Overwrite ends the values in the bytes [from, end): threads of the block wrote them weakly.
func (b *Block) Overwrite(shared bool, from, end uint64) {
	b.memory(shared).overwrite(from, end, nil, b.order)
}

// memory returns the variables of the block's shared memory, or of global memory.
func (b *Block) memory(shared bool) *Memory {
	if shared {
		return &b.Shared
	}
	return &b.order.global
}

// morallyStrong reports whether the last write of the variable and an operation by a thread of b are morally strong:
// each scope includes the other thread.
func (v *variable) morallyStrong(b *Block, s *Strong) bool {
	return v != nil && (v.block == b.Index && v.launch == b.Launch.number || v.traits&wideWrite != 0 && s.Wide &&
		(b.Info.Device == 0 || v.traits&systemWrite != 0 && s.System || !b.elsewhere(v)) &&
		(v.traits&clusterWrite == 0 && !s.Cluster || v.launch == b.Launch.number && b.Info.SameCluster(v.block, b.Index)))
}

// elsewhere reports whether the last write of a variable was made on another device.
func (b *Block) elsewhere(v *variable) bool {
	return b.Info.Device != 0 && b.order.numbered[v.launch].Info.Device != b.Info.Device
}

// Observe performs the part of a strong access by a lane that precedes the judgement of the access. The observed value
// begins acquire patterns. An acquire operation completes those of its location.
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

// observe begins an acquire pattern by a strong read of the value of a variable.
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
	if len(now.wide) == 0 && now.narrow.launch == nil { // an empty wide implies an empty system
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

// acquire completes the acquire patterns that a lane has begun at a location, or at all locations if at is nil. wide
// says that the scope of the acquiring operation reaches beyond the block, system that it reaches beyond the device.
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

// learned gives lanes that have the view v the knowledge k.
func (w *warp) learned(lanes uint32, v *View, k knowledge) {
	if k != v.knowledge {
		w.set(lanes, &View{k, v.Epoch})
	}
}

// learn returns k extended by a record that a thread of the block acquires.
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

// Perform performs the part of a strong access by a lane that follows the judgement of the access. A read becomes an
// observer. A write makes the variable's value and publishes what the lane has released. Perform returns the chain of a
// write, 0 for a read.
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

// write makes a strong write the last one of a variable. strong says that it is morally strong with the previous one.
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

// release publishes, with a write to a variable, what the lane has released.
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

// HandOn makes a value that a lane has written carry the release patterns that the value at from carries. The lane does
// not acquire them.
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

// publish adds what a lane releases to the patterns that a value carries. rel.narrow must not be nil.
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

// blockRecord returns the record for threads of b, creating it if necessary.
func (rs *records) blockRecord(b *Block) *blockRecord {
	i := rs.of(b)
	if i < 0 {
		rs.narrow = slices.DeleteFunc(rs.narrow, func(x blockRecord) bool { return x.block.serial != x.serial })
		i = len(rs.narrow)
		rs.narrow = append(rs.narrow, blockRecord{block: b, serial: b.serial})
	}
	return &rs.narrow[i]
}

// of returns the index of the record for threads of b, or -1.
func (rs *records) of(b *Block) int {
	return slices.IndexFunc(rs.narrow, func(x blockRecord) bool { return x.serial == b.serial })
}

// joinRecords joins two records of one launch. Either may be empty.
func (o *Order) joinRecords(r, q record) record {
	switch {
	case r == q || q.launch == nil:
		return r
	case r.launch == nil:
		return q
	}
	return record{r.launch, o.join.Join(r.grid, q.grid), r.beyond.Join(q.beyond)}
}

// addRecord returns rs extended by r. It does not change rs, which other values may hold.
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

// includes reports whether acquiring r conveys all that x releases: the launch of x has ended, and r includes it.
func (r record) includes(x record) bool {
	return x.launch.Info.Device == r.launch.Info.Device && x.launch.within(r.beyond) && r.beyond.Join(x.beyond) == r.beyond
}

// StrongOf returns the Strong of an access event. It holds for all lanes and elements; the caller sets Address and
// Size, and Shared, System and Cluster.
func StrongOf(kind event.Kind, flags event.Flags, order event.Order, wide bool) Strong {
	s := Strong{Wide: wide, Reads: kind != event.Store && flags&event.FlagRed == 0,
		Writes: kind == event.Store || kind == event.Atomic && flags&event.FlagWrite != 0}
	s.Updates = kind == event.Atomic && s.Writes
	strong := order == event.AcqRel || order == event.SC
	s.Acquires = s.Reads && (strong || order == event.Acquire)
	s.Releases = s.Writes && (strong || order == event.Release)
	return s
}
