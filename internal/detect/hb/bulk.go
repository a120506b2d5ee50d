package hb

import (
	"math"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// bulkHalf is one half of a bulk copy in flight: its read or its write. It is also used for operations of the tensor
// cores, and for copies by cp.async that are complete. Like other asynchronous copies it happens after its issue, and
// an overlapping access races with it until the copy is known to be complete. A thread knows that if it acquires the
// phase of the copy's mbarrier, or if it is the copying thread and has waited for the group. A half is recorded in the
// history as an access by its thread, at the issue or at the wait. One recorded at the issue is kept after it is
// complete (landed.go).
type bulkHalf struct {
	number  int64  // address of the mbarrier that tracks it
	barrier uint64 // number within the block
	warp    uint32 // in the block
	lane    int
	view    *order.View // the view of its lane at the issue, which may know less
	own     *order.View // and that of its lane, which may know less
	stamp   order.Stamp
	site    *history.Site
	memory  history.Memory
	from    uint64
	end     uint64
	tracked bool
	matrix  bool  // a read by wgmma.mma_async
	core    bool  // an access by another tensor core operation (tcgen05)
	generic bool  // through the generic proxy
	small   bool  // by cp.async
	how     uint8 // of core: Event.Barrier, such as event.CoreCommits
	commit  int64 // of core: the first commit that covers it; -1: none
	block   *order.Block
	group   uint32           // of the issuing thread, when it issued
	waited  detect.CopyState // the last wait that did not cover it
	read    bool             // a wait for the copy's reads alone covered it
	issued  int              // the value of copies.time at the issue
	// The rest is set when the operation is complete: see landed.go.
	operations *operations  // the counter that counts it as complete
	count      uint32       // the count from which on it is complete
	tracks     []track      // by cp.async: further mbarriers that track the copy
	others     []phaseCount // by cp.async: the counts for further mbarriers whose phase is complete
	// each is nonzero where one half describes the reads of global memory by consecutive lanes, in address order: the
	// number of bytes that each lane reads.
	each    uint64
	waits   []order.Stamp     // when threads waited for the group, indexed by lane minus x.lane; nil: none has
	left    *detect.CopyState // set when its block ends: the state of the copy then
	earlier *bulkHalf         // of a read by tensor cores: the half that replace put this one in place of
}

// bulks are the bulk copies and tensor core operations of a block.
type bulks struct { // in flight
	list       []*bulkHalf       // the number of groups that threads have committed
	groups     map[thread]uint32 // that threads have committed
	flying     [2]granuleCounts  // counts of the halves in flight that read, and of those that write
	matrix     []matrices        // indexed by warp
	core       coreState
	proxies    *proxies // nil: none yet. In a launch with clusters see Detector.proxies
	operations map[operationsKey]*operations
	sources    []*landedHalf // the complete reads of global memory that are kept
	waitable   []*landedHalf // those of sources by cp.async for whose group a thread may still wait
	trackable  []*bulkHalf   // those by cp.async that further mbarriers track
}

// count adds n to the counts of the granules that a half accesses.
func (s *bulks) count(x *bulkHalf, n uint32) {
	switch {
	case !x.memory.Shared:
	case x.site.Side.Write:
		s.flying[1].add(x.from, x.end, n)
	default:
		s.flying[0].add(x.from, x.end, n)
	}
}

// conflicts reports whether a half in flight may conflict with an access to shared memory.
func (s *bulks) conflicts(a *history.Access) bool {
	return s.flying[1].any(a.From, a.End) || a.Site.Side.Write && s.flying[0].any(a.From, a.End)
}

type thread struct {
	warp uint32
	lane int
}

// bulksOf returns the bulks of a block, creating them if necessary.
func (d *Detector) bulksOf(b *order.Block) *bulks {
	c := d.copiesOf(b)
	if c.bulks == nil {
		c.bulks = &bulks{groups: map[thread]uint32{}}
	}
	return c.bulks
}

// bulk performs an event of bulk copies, tensor core operations or proxy fences.
func (d *Detector) bulk(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	if d.defers {
		d.breakInterval(d.interval(blk))
	}
	s := d.bulksOf(blk)
	switch e.Kind {
	case event.Bulk, event.Wgmma, event.Core:
		d.issueBulk(s, e, blk, wi)
	case event.CoreCommit:
		d.commitCores(s, e, blk, wi)
	case event.CoreDone:
		d.coresDone(s, b, e, blk, wi)
	case event.CoreWait:
		d.waitCores(s, e, blk, wi)
	case event.WgmmaCommit:
		s.matricesOf(wi).groups++
	case event.WgmmaWait:
		d.waitMatrix(s, e, blk, wi)
	case event.BulkCommit:
		for m := e.Mask; m != 0; m &= m - 1 {
			s.groups[thread{wi, bits.TrailingZeros32(m)}]++
		}
	case event.BulkWait:
		d.waitBulk(s, e, blk, wi)
	case event.BulkDone:
		d.bulkDone(s, b, e, blk, wi)
	case event.ProxyFence:
		if e.Space != event.Global {
			p := d.proxiesOf(blk)
			p.fence(blk, wi, e.Mask)
			d.dropped = d.dropped || p.lost
		}
		if e.Space != event.Shared {
			d.fenceGlobal(blk, wi, e.Mask)
		}
		blk.Synchronised(wi, e)
	}
}

// issueBulk judges a half of a bulk copy, which is in flight from then on.
func (d *Detector) issueBulk(s *bulks, e *event.Event, blk *order.Block, wi uint32) {
	as := event.Event{Kind: event.Load, Flags: event.FlagRead | event.FlagAsync, Launch: e.Launch, Warp: e.Warp, Place: e.Place, Mask: e.Mask, Space: e.Space, Size: 16}
	if e.Flags&event.FlagWrite != 0 {
		as.Kind, as.Flags = event.Store, event.FlagWrite|event.FlagAsync
		if e.Order != event.Weak { // a reduction
			as.Kind, as.Flags = event.Atomic, event.FlagRead|event.FlagWrite|event.FlagRed|event.FlagAsync
			as.Order, as.Scope, as.Size = e.Order, e.Scope, e.Size
		}
	}
	if e.Kind == event.Core && e.Barrier == event.CoreAllocates { // complete when the instruction completes
		as.Flags, as.Size = event.FlagWrite, uint8(e.Aux)
	}
	lane := bits.TrailingZeros32(e.Mask)
	x := &bulkHalf{number: e.Stride & (1<<32 - 1), barrier: uint64(e.Stride) >> 32, warp: wi, lane: lane, view: blk.ViewOf(wi, lane), site: d.site(&as), from: e.Addr, end: e.Addr + uint64(e.Aux),
		block: blk, group: s.groups[thread{wi, lane}]}
	x.own = x.view
	c := d.copiesOf(blk)
	c.time++
	x.issued = c.time
	switch e.Kind {
	case event.Wgmma:
		d.matrixRead(s, x, e, blk)
	case event.Core:
		d.coreHalf(s, x, e, blk)
	default:
		x.tracked, x.generic = e.Barrier != 0, e.Barrier == 2
	}
	shared := e.Space == event.Shared
	if shared {
		x.memory = history.Memory{Shared: true, Launch: e.Launch, Block: blk.Index}
	}
	blk.Accesses(wi, e.Mask, shared)
	a := x.access(blk)
	x.stamp = a.Actor.Stamp()
	d.issuing = x
	d.compareCopies(&a, blk)
	d.history.Judge(&a, d.race)
	d.issuing = nil
	if rank, from, ok := sharedAt(&a.Memory, a.From); ok && !event.InTensorMemory(from) && !x.generic {
		d.fenced(&a, rank, from, blk)
	} else if !ok && !x.generic {
		d.fencedGlobal(&a, blk)
	}
	d.findings.Settle()
	if x.core && x.how >= event.CoreFrees {
		d.allocation(s, x, &a)
		return
	}
	if x.tracked || x.matrix || x.core { // the history takes what a thread does in order
		if d.defers && shared {
			d.interval(blk).judged = true
		}
		a.Actor.View = x.own // the history must not take the lane for a thread that knows what all lanes did
		d.history.Record(&a, 0)
	}
	s.list = append(s.list, x)
	s.count(x, 1)
	if !shared {
		d.bulkGlobals = append(d.bulkGlobals, x)
	}
	if !x.matrix && !x.core {
		blk.Advance(wi, e.Mask)
	}
}

// access returns the half as an access by its thread at the time of the issue.
func (x *bulkHalf) access(blk *order.Block) history.Access {
	a := history.Access{Site: x.site, Actor: blk.Actor(x.warp, x.lane), Executed: 1 << x.lane, Memory: x.memory, From: x.from, End: x.end}
	a.Actor.View = x.view
	return a
}

// compareCopies reports the races of an access by a lane with asynchronous copies in flight.
func (d *Detector) compareCopies(a *history.Access, blk *order.Block) {
	for x := range d.inFlight(a.Memory.Shared, blk) {
		d.compareLanes(a, x, d.tellCopyOf(x))
	}
	d.compareBulks(a, blk)
	if l := d.landedIn(blk); l != nil {
		d.compareLanded(a, l)
	}
}

// compareBulks reports the races of an access by a lane, or by the host, with bulk copies in flight.
func (d *Detector) compareBulks(a *history.Access, blk *order.Block) {
	if !a.Memory.Shared {
		for _, x := range d.bulkGlobals {
			d.compareBulk(a, x)
		}
		d.compareSources(a)
		return
	}
	if s := d.copiesOf(blk).bulks; s != nil && s.conflicts(a) {
		for _, x := range s.list {
			if x.memory.Shared {
				d.compareBulk(a, x)
			}
		}
	}
}

func (d *Detector) compareBulk(a *history.Access, x *bulkHalf) {
	blk := x.block
	low, high := max(a.From, x.from), min(a.End, x.end)
	if low >= high || !a.Site.Side.Write && !x.site.Side.Write || d.issuing.inOrder(x) {
		return
	}
	r := history.Race{From: low, End: high, Earlier: &history.Record{Site: x.site, Stamp: x.stamp, Executed: 1 << x.lane, From: x.from, End: x.end}}
	if a.Site.Side.Atomic && x.site.Side.Atomic {
		same := a.Actor.Launch == blk.Launch
		if detect.Classify(x.site.Side, a.Site.Side, detect.Relation{SameLaunch: same, SameBlock: same && a.Actor.Block == blk.Index,
			OtherDevice: a.Actor.OtherDevice(blk.Launch)}) == detect.NoRace {
			return
		}
	}
	any := x.matrix || x.core && x.operations == nil
	if r.Category = category(a, r.Earlier); any && a.Actor.Launch == blk.Launch {
		r.Category = detect.CopyPending // another warp of the warpgroup may have released the stage
	}
	if x.operations != nil && r.Category != detect.CopyPending { // the history reports this race
		return
	}
	p, ok := d.pair(a, &r)
	if !ok {
		return
	}
	across := a.Actor.Launch != blk.Launch || a.Actor.Block != blk.Index
	d.findings.Add(p, 1<<uint(a.Actor.Lane), r.Category, across, false, func() detect.Facts {
		f := d.witness.Facts(a, r)
		if f.Copy = x.left; f.Copy == nil {
			f.Copy = d.stateFor(d.bulksOf(blk), x, a, low)
			f.Reuses = x.memory.Shared && x.tracked && x.site.Side.Write && d.reuses(blk, low, 0)
			if y := d.issuing; y != nil && y.tracked && y.site.Side.Write && (x.matrix || x.core) && !x.site.Side.Write && blk == y.block && d.untold(a, x) {
				f.Copy.Untold = x.matrix
				if d.unfilled(a, x, low) {
					reader := x.access(blk)
					f.Copy.Unfilled, f.Copy.Passed = true, d.passed(&reader, blk, y.barrier, math.MaxInt)
				}
			}
		}
		return f
	})
}

// waitBulk completes the bulk copies of lanes, except those of the last e.Aux groups. A wait for reads completes only
// the halves that read.
func (d *Detector) waitBulk(s *bulks, e *event.Event, blk *order.Block, wi uint32) {
	var done []*bulkHalf
	s.list = slices.DeleteFunc(s.list, func(x *bulkHalf) bool {
		if x.warp != wi || e.Mask>>x.lane&1 == 0 || x.tracked || x.matrix || x.core {
			return false
		}
		if n := s.groups[thread{wi, x.lane}]; uint64(x.group)+uint64(e.Aux) >= uint64(n) {
			x.waited = waitedBy(e, x.group == n)
			return false
		}
		if e.Flags&event.FlagRead != 0 && x.site.Side.Write {
			x.read = true
			return false
		}
		done = append(done, x)
		return true
	})
	for _, x := range done {
		x.view = blk.ViewOf(wi, x.lane)
		d.completeBulk(s, x, blk, true)
	}
}

// bulkDone completes a copy that has signalled its mbarrier. The signal releases what the copy did and what happens
// before its issue.
func (d *Detector) bulkDone(s *bulks, b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	var views [32]*order.View
	lane, place := bits.TrailingZeros32(e.Mask), e.Place
	of := d.operationsOf(s, operationsKey{kind: trackedOps, barrier: e.Addr})
	of.last++
	s.list = slices.DeleteFunc(s.list, func(x *bulkHalf) bool {
		if x.core || x.number != e.Stride {
			return false
		}
		views[lane], place = x.view.Knowing(of.id, of.last), x.site.Event.Place
		d.completeBulk(s, x, blk, false)
		d.land(x, blk, of, of.last)
		return true
	})
	if views[lane] != nil {
		d.tellBarrier(b, e, blk, wi, &views, place)
	}
}

// tellBarrier performs the arrival at the mbarrier at e.Addr by which an operation signals its completion. The arrival
// releases what views know.
func (d *Detector) tellBarrier(b *event.Batch, e *event.Event, blk *order.Block, wi uint32, views *[32]*order.View, place uint32) {
	tell := event.Event{Kind: event.Atomic, Flags: event.FlagRead | event.FlagWrite | event.FlagRed, Launch: e.Launch, Warp: e.Warp, Place: place, Mask: e.Mask,
		Addr: e.Addr, Space: event.Shared, Order: event.Release, Scope: event.ScopeCluster, Size: 4}
	of := &tell
	blk.Tells = true
	if blk.Clustered() {
		b, of = d.peer(b, of, blk)
	}
	blk.As(wi, e.Mask, views, func() { d.access(b, of, blk, wi) })
}

// completeBulk removes a half from those in flight. If record is set, it records the half as an access now.
func (d *Detector) completeBulk(s *bulks, x *bulkHalf, blk *order.Block, record bool) {
	if d.defers && x.memory.Shared {
		d.interval(blk).judged = true
	}
	if record {
		a := x.access(blk)
		d.history.Record(&a, 0)
	}
	if x.site.Side.Write {
		if x.memory.Shared {
			if !x.core {
				for at := x.from / copyGranule; at <= (x.end-1)/copyGranule; at++ {
					d.copiesOf(blk).land(at, nil)
				}
			}
		}
		if rank, from, ok := sharedAt(&x.memory, x.from); ok && !x.generic {
			d.proxiesOf(blk).written(rank, from, x.end-x.from)
		}
		if blk.Synchronises(x.memory.Shared) {
			blk.Overwrite(x.memory.Shared, x.from, x.end)
		}
	}
	s.count(x, ^uint32(0))
	if !x.memory.Shared {
		d.bulkGlobals = slices.DeleteFunc(d.bulkGlobals, func(y *bulkHalf) bool { return y == x })
	}
}

// unawaited identifies a thread and the site at which it issued a bulk copy.
type unawaited struct {
	warp uint32 // number within the grid
	lane int
	site *history.Site
}

// unawaitedBulk is a bulk copy that nobody had waited for when its block ended.
type unawaitedBulk struct {
	stamp order.Stamp // at its issue
	state detect.CopyState
}

// tellPeers signals the mbarriers of other blocks for the copies that an ending block leaves in flight. The copies
// continue without the block, and a thread that waits at such an mbarrier acquires what they did. It is done now
// because the block no longer exists when the copies really complete.
func (d *Detector) tellPeers(s *bulks, blk *order.Block) {
	for i := 0; i < len(s.list); {
		x := s.list[i]
		if !x.tracked || x.matrix || x.core || x.barrier>>event.PeerShift == 0 {
			i++
			continue
		}
		e := event.Event{Kind: event.BulkDone, Launch: blk.Launch.Info.ID, Warp: blk.Index*blk.WarpsPerBlock + x.warp, Mask: 1 << x.lane,
			Place: x.site.Event.Place, Addr: x.barrier, Stride: x.number}
		d.bulkDone(s, &event.Batch{}, &e, blk, x.warp)
		i = 0
	}
}

// endBulks ends the bulk copies of a block that is about to end.
func (d *Detector) endBulks(s *bulks, blk *order.Block) {
	d.tellPeers(s, blk)
	last := &order.Block{Launch: blk.Launch, Index: blk.Index} // the Order will use blk for another block
	if l := d.landedIn(blk); l != nil {
		l.leave(s, blk, last)
	}
	for _, z := range s.sources {
		s.leave(z.half, last)
	}
	for _, x := range s.list {
		if x.memory.Shared {
			continue
		}
		if d.unawaited == nil {
			d.unawaited = map[unawaited]unawaitedBulk{}
		}
		c := s.state(x)
		c.Lacking = true
		d.unawaited[unawaited{x.stamp.Warp, x.lane, x.site}] = unawaitedBulk{x.stamp, c}
		x.view = blk.ViewOf(x.warp, x.lane)
		d.completeBulk(s, x, blk, true)
	}
	s.list = nil
}

// state describes what the program has done to wait for a copy.
func (s *bulks) state(x *bulkHalf) detect.CopyState {
	c := x.waited
	c.Bulk, c.Matrix, c.Core, c.How = !x.small, x.matrix, x.core, x.how
	c.Read, c.Committed, c.Tracked = x.read, s.committed(x) > x.group, x.tracked
	return c
}

// stateFor is state for a copy in flight that races with an access to the byte at.
func (d *Detector) stateFor(s *bulks, x *bulkHalf, a *history.Access, at uint64) *detect.CopyState {
	c := s.state(x)
	c.Committed = c.Committed || x.small && d.copiesOf(x.block).warps[x.warp].groups[x.lane] > x.group
	c.Own, c.Passed = a.Actor.Is(&x.stamp), x.tracked && d.passed(a, x.block, x.barrier, x.issued)
	// A thread that accesses the destination of the first copy to it wants the data of that copy. So does a thread that
	// has since waited for the copy's mbarrier.
	c.Lacking = x.tracked && x.site.Side.Write && (x.memory.Shared && (c.Passed || !d.reuses(x.block, at, 0)) || d.bringsFirst(a, x, at))
	return &c
}

// together reports whether two operations belong to one warp or one warpgroup.
func (x *bulkHalf) together(y *bulkHalf) bool {
	return y.matrix == x.matrix && y.core == x.core && y.block == x.block && (y.warp == x.warp || x.matrix && y.warp/groupWarps == x.warp/groupWarps)
}

// untold reports whether the actor knows of the issue by no warp that took part in the operation of the half.
func (d *Detector) untold(a *history.Access, x *bulkHalf) bool {
	known := func(y *bulkHalf) bool {
		return x.matrix && x.together(y) && y.group == x.group && a.Actor.After(&y.stamp)
	}
	return !a.Actor.After(&x.stamp) && !slices.ContainsFunc(d.bulksOf(x.block).list, known) &&
		!slices.ContainsFunc(d.proxiesOf(x.block).landed.list, func(z *landedHalf) bool { return known(z.half) })
}

// unfilled concerns an operation of the tensor cores, x, that reads the byte at, and a copy into it, a, that is issued
// now and is not ordered after the operation. It reports whether the buffer was already free: an earlier operation that
// is ordered before the issue has read what the last copy wrote, or no copy has written anything yet.
func (d *Detector) unfilled(a *history.Access, x *bulkHalf, at uint64) bool {
	rank, from, ok := sharedAt(&x.memory, at)
	if !ok || event.InTensorMemory(from) {
		return false
	}
	p := d.proxiesOf(x.block)
	var last *bulkHalf
	landed := *p.landed.in(rank, from/copyGranule)
	for _, z := range landed {
		if y := z.half; y.site.Side.Write && y.tracked && (last == nil || y.number > last.number) {
			last = y
		}
	}
	if last == nil {
		return !slices.ContainsFunc(p.at(rank, from).marks, func(m mark) bool { return m.site.Side.Write })
	}
	return slices.ContainsFunc(landed, func(z *landedHalf) bool {
		for y := z.half; y != nil; y = y.earlier {
			if x.together(y) && !y.site.Side.Write && a.Actor.After(&y.stamp) && y.view.Knows(last.operations.id, last.count) {
				return true
			}
		}
		return false
	})
}

// bringsFirst reports whether the copy is the first to write the byte at in the shared memory of a block of a cluster,
// and that the access is by a thread of that block.
func (d *Detector) bringsFirst(a *history.Access, x *bulkHalf, at uint64) bool {
	rank, from, ok := explain.OfPeer(at)
	if x.memory.Shared || !ok || a.Actor.Launch != x.block.Launch {
		return false
	}
	cluster, _ := x.block.Info.ClusterOf(x.block.Index)
	if a.Actor.Block != x.block.Info.BlockIn(cluster, rank) {
		return false
	}
	p := d.proxies[clusterKey{x.block.Info.ID, cluster}]
	return p == nil || !slices.ContainsFunc(*p.landed.in(rank, from/copyGranule), func(z *landedHalf) bool {
		return z.half.site.Side.Write && (z.again || z.half != x)
	})
}

// fills describes the effect of the bulk copy being issued, if an mbarrier tracks it, on the byte at of shared memory,
// where it races with an earlier access through the generic proxy. reuses: something was written there before, so the
// copy reuses the place. first: it is the first write there, and the earlier access, a read, should have waited for it.
func (d *Detector) fills(a *history.Access, at uint64, earlier *history.Site) (reuses, first bool) {
	y := d.issuing
	rank, from, ok := sharedAt(&a.Memory, at)
	if y == nil || !ok || !y.tracked || y.core || !y.site.Side.Write || earlier.Event.Flags&event.FlagAsync != 0 || event.InTensorMemory(from) {
		return false, false
	}
	p := d.proxiesOf(y.block)
	reuses = earlier.Side.Write || slices.ContainsFunc(*p.landed.in(rank, from/copyGranule), func(z *landedHalf) bool { return z.half.site.Side.Write }) ||
		slices.ContainsFunc(p.at(rank, from).marks, func(m mark) bool { return m.site.Side.Write && m.bytes>>(from%copyGranule)&1 != 0 }) || d.reusesOf(y.block, at)
	return reuses, !reuses
}

// reusesOf reports whether copies of the block to a byte of its shared memory are in flight.
func (d *Detector) reusesOf(b *order.Block, at uint64) bool {
	return slices.ContainsFunc(d.bulksOf(b).list, func(x *bulkHalf) bool { return x.site.Side.Write && !x.core && x.from <= at && at < x.end })
}

// neverWaited returns the state of a bulk copy for a race in which the copy, now complete, is the earlier access, and
// the later one is a read by a thread that knows of no completed phase of an mbarrier of any copy to the same bytes. In
// other cases it is nil.
func (d *Detector) neverWaited(a *history.Access, r *history.Race, blk *order.Block) *detect.CopyState {
	rank, from, _ := sharedAt(&a.Memory, r.From)
	l := d.landedIn(blk)
	if l == nil || a.Site.Side.Write || rank >= uint32(len(l.at)) || from/copyGranule >= uint64(len(l.at[rank])) {
		return nil
	}
	var copied *bulkHalf
	for _, z := range l.at[rank][from/copyGranule] {
		switch x := z.half; {
		case !x.tracked || x.small || x.core || !x.site.Side.Write:
		case a.Actor.View.Knows(x.operations.id, 1):
			return nil
		case x.site == r.Earlier.Site && x.stamp == r.Earlier.Stamp:
			copied = x
		}
	}
	if copied == nil {
		return nil
	}
	c := d.stateFor(d.bulksOf(blk), copied, a, r.From)
	c.Lacking = true
	return c
}

// unawaitedBy returns the state of a bulk copy for a race in which the copy is the earlier access and has not been
// waited for: it is in flight, or its block has ended and the other thread knows of the issue. In other cases it is
// nil.
func (d *Detector) unawaitedBy(a *history.Access, r *history.Race) *detect.CopyState {
	earlier := r.Earlier
	if earlier.Site.Event.Flags&event.FlagAsync == 0 || a.Actor.Launch == nil || a.Actor.Launch != earlier.Stamp.Launch {
		return nil
	}
	if _, _, ok := sharedAt(&a.Memory, a.From); ok {
		blk := a.Actor.Launch.Running(earlier.Stamp.Block())
		if blk == nil || blk.Slot >= len(d.copies) || d.copies[blk.Slot].block != blk || d.copies[blk.Slot].bulks == nil {
			return nil
		}
		s := d.copies[blk.Slot].bulks
		for _, x := range s.list {
			if x.site == earlier.Site && x.stamp == earlier.Stamp && x.from <= r.From && r.From < x.end {
				return d.stateFor(s, x, a, r.From)
			}
		}
		return d.neverWaited(a, r, blk)
	}
	if x, ok := d.unawaited[unawaited{earlier.Stamp.Warp, earlier.Stamp.Lane, earlier.Site}]; ok && a.Actor.After(&x.stamp) {
		return &x.state
	}
	return nil
}
