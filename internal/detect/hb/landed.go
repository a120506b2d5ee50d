package hb

import (
	"iter"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// An asynchronous operation does not become part of its thread when it is complete. A thread that knows of its issue,
// or of what the issuing thread did later, does not thereby know that it is complete: an access by that thread races
// with the operation as if it were in flight. The completion is known through the phase of the mbarrier, or through the
// wait of the warp, and the knowledge passes from there from thread to thread.
// Operations whose completions become known in one order share a counter (operations): those that one mbarrier tracks,
// those that one thread commits, and those that one warp waits for. A view holds for each counter the count up to which
// it knows the operations to be complete. The operations are also in the history, as accesses at their issue. There
// they race with accesses by threads that do not even know of the issue.
//
// A copy by cp.async may be tracked by several mbarriers, and its thread may wait for its group as well. Each of these
// makes its completion known.
//
// Halves are kept after completion if they access shared memory or tensor memory, or read global memory. For each
// thread, place, counter and range of addresses only the last half is kept: a thread that does not know an earlier one
// to be complete does not know the last one to be complete either.

// operations is the counter of asynchronous operations of a block's threads whose completions become known in one
// order.
type operations struct {
	id   uint32 // the agent number in views, from order.FirstOperation on
	last uint32 // the last count given out
}

// operationsKey identifies a counter within a block.
type operationsKey struct {
	kind    uint8
	warp    uint32
	lane    int
	barrier uint64
}

// The kinds of counters.
const (
	trackedOps   uint8 = iota // bulk copies that an mbarrier tracks
	committedOps              // tensor core operations that a thread commits
	matrixOps                 // wgmma.mma_async of a warp
	copyOps                   // cp.async that a phase of an mbarrier tracks
	coreOps                   // tcgen05.ld or tcgen05.st of a warp: plus event.CoreLoads or event.CoreStores
)

func (d *Detector) operationsOf(s *bulks, k operationsKey) *operations {
	x := s.operations[k]
	if x == nil {
		if s.operations == nil {
			s.operations = map[operationsKey]*operations{}
		}
		x = &operations{id: d.newOperations()}
		s.operations[k] = x
	}
	return x
}

// newOperations returns the number of a new counter.
func (d *Detector) newOperations() uint32 {
	id := order.FirstOperation + d.operations
	d.operations = (d.operations + 1) % order.FirstOperation
	return id
}

// sourceKey names a granule of global memory: the completed reads of global memory by copies that an mbarrier tracks
// are kept by granule.
type sourceKey struct {
	launch  *order.Launch
	granule uint64
}

const sourceGranule = 1 << 10

// landed are the kept halves of completed operations on the shared memory of a block or a cluster.
type landed struct {
	list []*landedHalf
	at   [][][]*landedHalf // indexed by the rank of the block and the granule
}

// landedHalf is the last half of a thread, place, counter and range of addresses.
type landedHalf struct {
	half     *bulkHalf
	waitable bool // it is in bulks.waitable
	again    bool // it has replaced an earlier half
}

// in returns the list of the halves of a granule.
func (l *landed) in(rank uint32, granule uint64) *[]*landedHalf {
	return granuleAt(ofRank(&l.at, rank), granule)
}

// land keeps a half that is complete. A thread knows that if its view knows the counter up to count.
func (d *Detector) land(x *bulkHalf, blk *order.Block, of *operations, count uint32) {
	rank, from, ok := sharedAt(&x.memory, x.from)
	source := !ok && x.tracked && !x.site.Side.Write
	if !ok && !source {
		return
	}
	x.operations, x.count = of, count
	if source {
		d.addSource(x)
		return
	}
	l := &d.proxiesOf(blk).landed
	if replace(*l.in(rank, from/copyGranule), x) != nil {
		return
	}
	z := &landedHalf{half: x}
	l.list = append(l.list, z)
	for at := from / copyGranule; at <= (from+x.end-x.from-1)/copyGranule; at++ {
		in := l.in(rank, at)
		*in = append(*in, z)
	}
}

// addSource is land for a half that has read global memory.
func (d *Detector) addSource(x *bulkHalf) {
	if d.sourcesRead == nil {
		d.sourcesRead = map[sourceKey][]*landedHalf{}
	}
	d.order.Watch(x.block.Launch, x.operations.id)
	k := sourceKey{x.block.Launch, x.from / sourceGranule}
	s := d.copiesOf(x.block).bulks
	z := replace(d.sourcesRead[k], x)
	if z == nil {
		z = &landedHalf{half: x}
		for s.sources = append(s.sources, z); k.granule <= (x.end-1)/sourceGranule; k.granule++ {
			d.sourcesRead[k] = append(d.sourcesRead[k], z)
		}
	}
	if x.small && !z.waitable {
		z.waitable = true
		s.waitable = append(s.waitable, z)
	}
	if len(x.tracks) > 0 {
		s.trackable = append(s.trackable, x)
	}
}

// replace puts a half in place of an earlier one of the same thread, place, counter and range of addresses, and gives
// its entry. It returns nil if the list has none.
func replace(list []*landedHalf, x *bulkHalf) *landedHalf {
	for _, z := range list {
		y := z.half
		if y.block == x.block && y.operations == x.operations && y.site == x.site && y.from == x.from && y.end == x.end && y.warp == x.warp && y.lane == x.lane {
			if z.again = true; y.count <= x.count {
				if z.half = x; x.matrix || x.core && !x.site.Side.Write {
					x.earlier, y.earlier = y, nil
				}
			}
			return z
		}
	}
	return nil
}

// leave prepares a half for the end of its block. It saves the state of the copy and replaces the block by last, a copy
// of its identity, since the Order reuses the Block.
func (s *bulks) leave(x *bulkHalf, last *order.Block) {
	c := s.state(x)
	c.Lacking = x.tracked && x.site.Side.Write
	x.left, x.block = &c, last
}

// leave drops the halves in the shared memory of a block that ends. What the block's operations did in the shared
// memory of other blocks of the cluster is kept.
func (l *landed) leave(s *bulks, blk, last *order.Block) {
	_, own := blk.Info.ClusterOf(blk.Index)
	for _, z := range l.list {
		x := z.half
		if rank, _, _ := sharedAt(&x.memory, x.from); x.block == blk && !x.memory.Shared && rank != own {
			s.leave(x, last)
		}
	}
	gone := func(z *landedHalf) bool { return z.half.block == blk }
	if !slices.ContainsFunc(l.list, gone) {
		return
	}
	for _, of := range l.at {
		for i := range of {
			of[i] = slices.DeleteFunc(of[i], gone)
		}
	}
	l.list = slices.DeleteFunc(l.list, gone)
}

// landedIn returns what is kept for a block or its cluster; nil: nothing.
func (d *Detector) landedIn(b *order.Block) *landed {
	var p *proxies
	if b.Clustered() {
		cluster, _ := b.Info.ClusterOf(b.Index)
		p = d.proxies[clusterKey{b.Info.ID, cluster}]
	} else if c := d.copiesOf(b); c.bulks != nil {
		p = c.bulks.proxies
	}
	if p == nil || len(p.landed.list) == 0 {
		return nil
	}
	return &p.landed
}

// compareLanded reports the races of an access by a lane with operations that are complete without the actor knowing
// so.
func (d *Detector) compareLanded(a *history.Access, l *landed) {
	rank, from, ok := sharedAt(&a.Memory, a.From)
	if !ok {
		return
	}
	list := l.list
	if granule := from / copyGranule; (from+a.End-a.From-1)/copyGranule == granule {
		if list = nil; rank < uint32(len(l.at)) && granule < uint64(len(l.at[rank])) {
			list = l.at[rank][granule]
		}
	}
	for _, z := range list {
		if x := z.half; a.From < x.end && x.from < a.End && !x.knownTo(&a.Actor) {
			d.compareBulk(a, x)
		}
	}
}

// compareSources reports the races of a write of global memory with completed copies that have read it, if the actor
// does not know that they are complete.
func (d *Detector) compareSources(a *history.Access) {
	if len(d.sourcesRead) == 0 || !a.Site.Side.Write {
		return
	}
	first := a.From / sourceGranule
	for at := first; at <= (a.End-1)/sourceGranule; at++ {
		for _, z := range d.sourcesRead[sourceKey{a.Actor.Launch, at}] {
			x := z.half
			met := at > first && x.from/sourceGranule < at // compared in the previous granule
			if a.From >= x.end || x.from >= a.End || met {
				continue
			}
			if x = x.lanesOf(a); !x.knownTo(&a.Actor) && !d.told(&a.Actor, x) {
				d.compareBulk(a, x)
			}
		}
	}
}

// lanesOf reduces a half by several lanes to the part of one lane: the first lane that has read any of the bytes of the
// access.
func (x *bulkHalf) lanesOf(a *history.Access) *bulkHalf {
	if x.each == 0 {
		return x
	}
	one := *x
	i := (max(a.From, x.from) - x.from) / x.each
	one.from += i * x.each
	one.lane, one.stamp.Lane, one.end, one.each = x.lane+int(i), x.lane+int(i), one.from+x.each, 0
	if x.waits != nil {
		one.waits = x.waits[i:]
	}
	return &one
}

// knownTo reports whether the actor knows that a half by one lane is complete.
func (x *bulkHalf) knownTo(a *order.Actor) bool {
	return a.View.Knows(x.operations.id, x.count) || len(x.waits) > 0 && x.waits[0].Launch != nil && a.After(&x.waits[0]) ||
		slices.ContainsFunc(x.others, func(o phaseCount) bool { return a.View.Knows(o.operations.id, o.count) })
}

// told reports whether the actor, of another block than the half, knows that a half that has read global memory is
// complete.
func (d *Detector) told(a *order.Actor, x *bulkHalf) bool {
	return d.order.Told(a, x.operations.id, x.count) ||
		slices.ContainsFunc(x.others, func(o phaseCount) bool { return d.order.Told(a, o.operations.id, o.count) })
}

// phaseCount is a count of a counter.
type phaseCount struct {
	operations *operations
	count      uint32
}

// smallLanded returns the kept writes of shared memory by copies of a block by cp.async that an mbarrier tracks.
func (d *Detector) smallLanded(blk *order.Block) iter.Seq[*bulkHalf] {
	return func(yield func(*bulkHalf) bool) {
		l := d.landedIn(blk)
		if l == nil {
			return
		}
		for _, z := range l.list {
			if x := z.half; x.small && x.block == blk && !yield(x) {
				return
			}
		}
	}
}

// tracksDone records a completed phase of the mbarrier at an address for the kept copies that it tracks. These are
// complete already, by a phase of another mbarrier.
func (d *Detector) tracksDone(blk *order.Block, addr uint64, count func() *operations) {
	is := func(t track) bool { return t.addr == addr }
	done := func(x *bulkHalf) bool {
		if slices.ContainsFunc(x.tracks, is) {
			of := count()
			d.order.Watch(blk.Launch, of.id)
			x.tracks, x.others = slices.DeleteFunc(x.tracks, is), append(x.others, phaseCount{of, of.last})
		}
		return len(x.tracks) == 0
	}
	for x := range d.smallLanded(blk) {
		done(x)
	}
	if s := d.copiesOf(blk).bulks; s != nil {
		s.trackable = slices.DeleteFunc(s.trackable, done)
	}
}

// lanes is the number of lanes that a half describes.
func (x *bulkHalf) lanes() int {
	if x.each == 0 {
		return 1
	}
	return int((x.end - x.from) / x.each)
}

// groupsDone records a wait for groups by lanes, for the kept copies by cp.async. These are complete already, by a
// phase of an mbarrier that tracks them too.
func (d *Detector) groupsDone(e *event.Event, blk *order.Block, wi uint32, groups *[32]uint32) {
	done := func(x *bulkHalf) (all bool) {
		all = true
		for i := range x.lanes() {
			if x.waits != nil && x.waits[i].Launch != nil {
				continue
			}
			lane := x.lane + i
			if x.warp != wi || e.Mask>>lane&1 == 0 || uint64(x.group)+uint64(e.Aux) >= uint64(groups[lane]) {
				all = false
				continue
			}
			if x.waits == nil {
				x.waits = make([]order.Stamp, x.lanes())
			}
			a := blk.Actor(wi, lane)
			x.waits[i] = a.Stamp()
		}
		return all
	}
	for x := range d.smallLanded(blk) {
		done(x)
	}
	if s := d.copiesOf(blk).bulks; s != nil {
		s.waitable = slices.DeleteFunc(s.waitable, func(z *landedHalf) bool {
			z.waitable = !done(z.half)
			return !z.waitable
		})
	}
}

// landCopies keeps copies by cp.async of lanes that are complete with a phase of the mbarrier at the address barrier.
// Reads of global memory by consecutive lanes at consecutive addresses are kept as one half.
func (d *Detector) landCopies(x *copyHalf, lanes uint32, barrier uint64, of *operations) {
	var last *bulkHalf
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		from, size := x.batch.AddrOf(&x.event, lane), uint64(x.event.Size)
		tracks := slices.DeleteFunc(slices.Clone(x.tracks), func(t track) bool { return t.lane != lane })
		if y := last; y != nil && y.lane+y.lanes() == lane && y.end == from && y.group == x.groups[lane] && y.stamp.Epoch == x.stamps[lane].Epoch &&
			slices.EqualFunc(y.tracks, tracks, func(s, t track) bool { return s.addr == t.addr }) {
			y.end, y.each = from+size, size
			continue
		}
		if last != nil {
			d.land(last, x.Block, of, of.last)
		}
		last = x.half(lane, barrier, tracks)
		if x.Site.Side.Write {
			d.land(last, x.Block, of, of.last)
			last = nil
		}
	}
	if last != nil {
		d.land(last, x.Block, of, of.last)
	}
}

// half returns the copy of one lane as a bulkHalf.
func (x *copyHalf) half(lane int, barrier uint64, tracks []track) *bulkHalf {
	from := x.batch.AddrOf(&x.event, lane)
	return &bulkHalf{small: true, tracked: true, barrier: barrier, warp: x.InBlock, lane: lane, stamp: x.stamps[lane], site: x.Site, memory: x.Memory,
		from: from, end: from + uint64(x.event.Size), block: x.Block, group: x.groups[lane], waited: x.waited,
		issued: x.issued, tracks: tracks}
}

// landGroups keeps copies by cp.async of lanes that have waited for their groups, if phases of mbarriers that track
// them are not complete yet. It returns these lanes: their copies have been in the history since an mbarrier began to
// track them.
func (d *Detector) landGroups(x *copyHalf, lanes uint32) (kept uint32) {
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		tracks := slices.DeleteFunc(slices.Clone(x.tracks), func(t track) bool { return t.lane != lane })
		if len(tracks) == 0 {
			continue
		}
		kept |= 1 << lane
		a := x.Block.Actor(x.InBlock, lane)
		h := x.half(lane, tracks[0].addr, tracks)
		h.waits = []order.Stamp{a.Stamp()}
		of := d.operationsOf(d.bulksOf(x.Block), operationsKey{kind: copyOps, barrier: h.barrier})
		d.land(h, x.Block, of, of.last+1) // the coming phase
	}
	return kept
}

// tellPhase orders the counter's operations before the threads that wait for the completed phase of the mbarrier at
// e.Addr.
func (d *Detector) tellPhase(e *event.Event, blk *order.Block, wi uint32, of *operations) {
	lane := bits.TrailingZeros32(e.Mask)
	tell := event.Event{Kind: event.Atomic, Flags: event.FlagRead | event.FlagWrite | event.FlagRed, Launch: e.Launch, Warp: e.Warp, Place: e.Place, Mask: 1 << lane,
		Addr: e.Addr, Space: event.Shared, Order: event.Release, Scope: event.ScopeCluster, Size: 4}
	is := &tell
	if blk.Tells = true; blk.Clustered() {
		_, is = d.peer(&event.Batch{}, is, blk)
	}
	to := d.site(is).Sync
	to.Address, to.Size = is.Addr, 4
	var views [32]*order.View
	views[lane] = order.Operations(of.id, of.last)
	blk.As(wi, 1<<lane, &views, func() { blk.Perform(wi, lane, &to) })
}
