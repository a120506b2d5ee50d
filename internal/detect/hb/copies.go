package hb

import (
	"iter"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// copies are the asynchronous copies of a block. An asynchronous copy is an actor of its own. It happens after its
// issue, and before what its thread does after the wait that covers it; nothing else orders it. Every access by any
// thread that overlaps with it, and that comes between issue and wait in the event stream, races with it. What happens
// before the issue does not. A copy is therefore judged at its issue as an access by its thread. While it is in flight,
// each access is compared with it. At the wait it is recorded as an access that its thread makes then. A copy that
// nobody waits for reads its source until its block ends.
type copies struct {
	block    *order.Block // nil: the slot's block has issued none
	warps    []warpCopies
	inFlight int           // the number of halves in flight that write shared memory
	written  granuleCounts // counts lanes whose copies in flight write there
	landed   []landing     // indexed by granule
	bulks    *bulks        // nil: none
	passed   map[passing]passage
	phases   map[uint64]int // by mbarrier of the block: the number of completed phases
	time     int            // counts issues, and waits for phases
}

// passing is a thread and an mbarrier that it has successfully waited for.
type passing struct {
	warp    uint32 // number within the block
	lane    int
	barrier uint64
}

// passage describes a thread's last wait for a phase of an mbarrier.
type passage struct {
	time   int  // the value of copies.time
	phases int  // the number of phases completed by then
	again  bool // no phase was completed since the thread's previous wait, or none at all: the parity was that of an older phase
}

// waitsPhase records an acquiring load of shared memory. If it is a load of an mbarrier, its lanes have waited for a
// phase.
func (d *Detector) waitsPhase(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	c := d.copiesOf(blk)
	if c.passed == nil {
		c.passed = map[passing]passage{}
	}
	c.time++
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		k := passing{wi, lane, b.AddrOf(e, lane) &^ 7}
		n := c.phases[k.barrier]
		c.passed[k] = passage{c.time, n, n == c.passed[k].phases}
	}
}

// passed reports whether the thread of an access has waited for a phase of a copy's mbarrier, but not the copy's.
// issued is the time of the copy's issue. A wait before the issue counts only if the parity was that of an older phase.
// Otherwise it waited for the previous phase, and the thread has not waited for this one at all.
func (d *Detector) passed(a *history.Access, b *order.Block, barrier uint64, issued int) bool {
	if a.Actor.Launch != b.Launch || a.Actor.Block != b.Index {
		return false
	}
	p := d.copiesOf(b).passed[passing{a.Actor.Warp - b.Index*b.WarpsPerBlock, a.Actor.Lane, barrier}]
	return p.again || p.time > issued
}

// phase counts a completed phase of an mbarrier.
func (d *Detector) phase(addr uint64, blk *order.Block) {
	if rank := addr >> event.PeerShift; rank != 0 {
		cluster, _ := blk.Info.ClusterOf(blk.Index)
		if blk = blk.Launch.Running(blk.Info.BlockIn(cluster, uint32(rank)-1)); blk == nil {
			return
		}
	}
	c := d.copiesOf(blk)
	if c.phases == nil {
		c.phases = map[uint64]int{}
	}
	c.phases[addr&(1<<event.PeerShift-1)]++
}

// landing counts the completed copies to a granule.
type landing struct {
	last *copyHalf
	n    uint8 // the number of copy instructions, at most 2
}

// copyGranule is the number of bytes of shared memory that are counted together. Copies by cp.async are aligned and not
// larger.
const copyGranule = 16

// granuleCounts holds, for each granule of shared memory, the number of copies in flight.
type granuleCounts []uint32

// add adds n to the counts of the bytes [from, end).
func (g *granuleCounts) add(from, end uint64, n uint32) {
	for at := from / copyGranule; at <= (end-1)/copyGranule; at++ {
		*granuleAt((*[]uint32)(g), at) += n
	}
}

// any reports whether something in flight may touch the bytes [from, end).
func (g granuleCounts) any(from, end uint64) bool {
	first, last := from/copyGranule, (end-1)/copyGranule
	return first < uint64(len(g)) && slices.ContainsFunc(g[first:min(last+1, uint64(len(g)))], func(n uint32) bool { return n != 0 })
}

// granuleAt returns the element of a granule, extending the list if necessary.
func granuleAt[T any](list *[]T, at uint64) *T {
	for uint64(len(*list)) <= at {
		*list = append(*list, make([]T, max(64, len(*list)))...)
	}
	return &(*list)[at]
}

// ofRank returns the list of the block of a rank, extending lists if necessary.
func ofRank[T any](lists *[][]T, rank uint32) *[]T {
	for uint32(len(*lists)) <= rank {
		*lists = append(*lists, nil)
	}
	return &(*lists)[rank]
}

type warpCopies struct {
	groups [32]uint32  // the number of groups that each lane has committed
	waited [32]uint32  // by lane: the first group that its last wait did not cover
	list   []*copyHalf // copies in flight
}

// copyHalf is the reads, or the writes, of the copies in flight by one cp.async instruction of a warp.
type copyHalf struct {
	history.Warp
	event  event.Event
	batch  event.Batch
	left   uint32     // lanes whose copies are in flight
	groups [32]uint32 // the group of each lane's copy
	stamps [32]order.Stamp
	low    uint64 // bounds of the bytes accessed in global memory
	high   uint64
	tracks []track
	// tracked are the lanes whose copies an mbarrier tracks or has tracked.
	tracked uint32
	order   *copyOrder       // nil: proxies are not checked
	issued  int              // the value of copies.time
	waited  detect.CopyState // the last wait that did not cover it
}

// waitedBy returns the state of a copy that a wait did not cover. early says that the copy was not committed yet.
func waitedBy(e *event.Event, early bool) detect.CopyState {
	return detect.CopyState{Waited: true, Wait: e.Place, Allowed: e.Aux, Early: early}
}

// track says that the mbarrier at addr tracks a lane's copy.
type track struct {
	addr uint64
	lane int
}

// copiesOf returns the copies of a block, creating them if necessary.
func (d *Detector) copiesOf(b *order.Block) *copies {
	for len(d.copies) <= b.Slot {
		d.copies = append(d.copies, &copies{})
	}
	c := d.copies[b.Slot]
	if c.block == nil {
		c.block, c.warps = b, make([]warpCopies, b.WarpsPerBlock)
	}
	return c
}

// copying reports whether copies to the shared memory of a block are in flight.
func (d *Detector) copying(b *order.Block) bool {
	return b.Slot < len(d.copies) && d.copies[b.Slot].inFlight > 0
}

// issue judges a half of the copies that lanes of a warp issue. It is in flight from then on.
func (d *Detector) issue(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	if d.defers {
		d.breakInterval(d.interval(blk))
	}
	x := &copyHalf{event: *e, left: e.Mask}
	x.batch.Addrs = slices.Clone(b.Addresses(e, &[32]uint64{}))
	x.event.Flags = x.event.Flags&^(event.FlagRows|event.FlagValues|event.FlagOld) | event.FlagScattered
	x.event.Side, x.event.Addr, x.event.Stride = 0, 0, 0
	if n := valueWords(e); n > 0 {
		x.event.Flags |= e.Flags & (event.FlagValues | event.FlagOld)
		x.batch.Values, x.event.Val = slices.Clone(b.Values[e.Val:][:n]), 0
	}
	w := &x.Warp
	w.Block, w.InBlock, w.Batch, w.Event, w.Site = blk, wi, &x.batch, &x.event, d.site(e)
	shared := e.Space == event.Shared
	if shared {
		w.Memory = history.Memory{Shared: true, Launch: e.Launch, Block: blk.Index}
	}
	blk.Accesses(wi, e.Mask, shared)
	d.compareWithCopies(w)
	w.Each()
	if w.Site.Side.Write {
		w.JudgeStore(d.history, d.race)
	}
	c := d.copiesOf(blk)
	mine := &c.warps[wi]
	c.time++
	x.issued = c.time
	x.groups, x.low = mine.groups, ^uint64(0)
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		a := w.Lane(lane)
		if !w.Site.Side.Write {
			d.history.Judge(a, d.race)
		}
		x.stamps[lane] = a.Actor.Stamp()
		x.low, x.high = min(x.low, a.From), max(x.high, a.End)
	}
	d.findings.Settle()
	d.copyIssued(x)
	mine.list = append(mine.list, x)
	if shared {
		c.inFlight++
		c.count(x, e.Mask, 1)
	} else {
		d.sources = append(d.sources, x)
	}
}

// count adds n to the counts of the granules that the copies of lanes write.
func (c *copies) count(x *copyHalf, lanes uint32, n uint32) {
	for m := lanes; m != 0; m &= m - 1 {
		from := x.batch.AddrOf(&x.event, bits.TrailingZeros32(m))
		c.written.add(from, from+uint64(x.event.Size), n)
	}
}

// land counts a completed copy to a granule: by lanes of x, or by a bulk copy if x is nil.
func (c *copies) land(granule uint64, x *copyHalf) {
	if at := granuleAt(&c.landed, granule); x == nil || at.last != x {
		at.last, at.n = x, min(at.n+1, 2)
	}
}

// writes reports whether a copy in flight may write what an access to shared memory touches.
func (c *copies) writes(w *history.Warp) bool {
	e := w.Event
	for m := e.Mask; m != 0; m &= m - 1 {
		if from := w.Batch.AddrOf(e, bits.TrailingZeros32(m)); c.written.any(from, from+uint64(e.Size)) {
			return true
		}
	}
	return false
}

// inFlight returns the halves in flight that access global memory, or the shared memory of blk.
func (d *Detector) inFlight(shared bool, blk *order.Block) iter.Seq[*copyHalf] {
	return func(yield func(*copyHalf) bool) {
		if !shared {
			for _, x := range d.sources {
				if !yield(x) {
					return
				}
			}
			return
		}
		if !d.copying(blk) {
			return
		}
		for _, w := range d.copiesOf(blk).warps {
			for _, x := range w.list {
				if x.Memory.Shared && !yield(x) {
					return
				}
			}
		}
	}
}

// compareWithCopies reports the races of an access by a warp with asynchronous copies in flight.
func (d *Detector) compareWithCopies(w *history.Warp) {
	w.Each()
	if bulk := w.Block.Launch.Info.Bulk; bulk || !w.Memory.Shared && len(d.bulkGlobals)+len(d.sourcesRead) > 0 {
		for m := w.Event.Mask; m != 0; m &= m - 1 {
			d.compareBulks(w.Lane(bits.TrailingZeros32(m)), w.Block)
		}
		if bulk && w.Event.Flags&event.FlagAsync == 0 {
			d.touches(w)
		}
	}
	if l := d.landedIn(w.Block); l != nil {
		for m := w.Event.Mask; m != 0; m &= m - 1 {
			d.compareLanded(w.Lane(bits.TrailingZeros32(m)), l)
		}
	}
	if w.Memory.Shared && !(d.copying(w.Block) && d.copiesOf(w.Block).writes(w)) {
		return
	}
	for x := range d.inFlight(w.Memory.Shared, w.Block) {
		if !w.Site.Side.Write && !x.Site.Side.Write {
			continue
		}
		for m := w.Event.Mask; m != 0; m &= m - 1 {
			d.compareLanes(w.Lane(bits.TrailingZeros32(m)), x, d.tellCopyOf(x))
		}
	}
}

// compareLanes calls race for each copy in flight that an access races with.
func (d *Detector) compareLanes(a *history.Access, x *copyHalf, race func(*history.Access, history.Race)) {
	if a.End <= x.low || x.high <= a.From || !a.Site.Side.Write && !x.Site.Side.Write {
		return
	}
	for n := x.left; n != 0; n &= n - 1 {
		lane := bits.TrailingZeros32(n)
		from := x.batch.AddrOf(&x.event, lane)
		end := from + uint64(x.event.Size)
		if low, high := max(a.From, from), min(a.End, end); low < high {
			r := &history.Record{Site: x.Site, Stamp: x.stamps[lane], Executed: x.event.Mask, From: from, End: end}
			race(a, history.Race{Category: category(a, r), From: low, End: high, Earlier: r})
		}
	}
}

// category returns the reason why an access races with a copy in flight. If the access is ordered after the issue, or
// would be in a warp that runs in lockstep, only the wait for the copy is missing.
func category(a *history.Access, r *history.Record) detect.Category {
	x := &r.Stamp
	same := a.Actor.Launch == x.Launch
	if same && a.Actor.Warp == x.Warp || a.Actor.After(x) {
		return detect.CopyPending
	}
	return detect.Classify(r.Site.Side, a.Site.Side, detect.Relation{SameLaunch: same, SameBlock: same && a.Actor.Block == x.Block(),
		OtherDevice: a.Actor.OtherDevice(x.Launch), Nested: !same && a.Actor.Nested(x.Launch), Assumed: !same && a.Actor.Assumes(x)})
}

// reuses reports whether more than last copies to the granule of a byte have completed, so that a copy to it reuses the
// place. last is 1 if the copy of the race itself may have completed; it is ignored while a copy is in flight there.
func (d *Detector) reuses(b *order.Block, at uint64, last uint8) bool {
	if b.Slot >= len(d.copies) {
		return false
	}
	c := d.copies[b.Slot]
	if c.written.any(at, at+1) || c.bulks != nil && c.bulks.flying[1].any(at, at+1) { // the copy of the race is not complete
		last = 0
	}
	at /= copyGranule
	return at < uint64(len(c.landed)) && c.landed[at].n > last
}

// tellCopyOf returns a function that adds a race with a copy in flight to the findings.
func (d *Detector) tellCopyOf(x *copyHalf) func(*history.Access, history.Race) {
	return func(a *history.Access, r history.Race) { d.tellCopy(a, x, r) }
}

// tellCopy adds a race with a copy in flight to the findings.
func (d *Detector) tellCopy(a *history.Access, x *copyHalf, r history.Race) {
	p, ok := d.pair(a, &r)
	if !ok {
		return
	}
	lane := r.Earlier.Stamp.Lane
	across := a.Actor.Launch != x.Block.Launch || a.Actor.Block != r.Earlier.Stamp.Block()
	d.findings.Add(p, 1<<uint(a.Actor.Lane), r.Category, across, false, func() detect.Facts {
		f := d.witness.Facts(a, r)
		c := x.waited
		c.Passed, c.Own = d.passedTrack(a, x, lane), a.Actor.Is(&r.Earlier.Stamp)
		c.Committed = d.copiesOf(x.Block).warps[x.InBlock].groups[lane] > x.groups[lane]
		c.Tracked = slices.ContainsFunc(x.tracks, func(t track) bool { return t.lane == lane })
		if l := a.Actor.Launch; l == x.Block.Launch && a.Actor.Block == x.Block.Index && !c.Own && !c.Tracked {
			mine := &d.copiesOf(x.Block).warps[a.Actor.Warp%l.WarpsPerBlock]
			c.Ahead = mine.waited[a.Actor.Lane] > x.groups[lane]
			c.Lacking = !c.Ahead && !a.Site.Side.Write && mine.copies(a.Actor.Lane, x.Site, x.groups[lane])
		}
		f.Copy = &c
		f.Reuses = x.Memory.Shared && d.reuses(x.Block, r.From, 0)
		return f
	})
}

// copies reports whether copies of a lane issued at a site are in flight in a group.
func (c *warpCopies) copies(lane int, s *history.Site, group uint32) bool {
	return slices.ContainsFunc(c.list, func(x *copyHalf) bool { return x.Site == s && x.left>>uint(lane)&1 != 0 && x.groups[lane] == group })
}

// passedTrack reports whether the thread of an access has waited for another phase of an mbarrier that tracks a lane's
// copy.
func (d *Detector) passedTrack(a *history.Access, x *copyHalf, lane int) bool {
	return slices.ContainsFunc(x.tracks, func(t track) bool { return t.lane == lane && d.passed(a, x.Block, t.addr, x.issued) })
}

// commit ends the current group of each lane: its copies belong to a committed group.
func (d *Detector) commit(e *event.Event, blk *order.Block, wi uint32) {
	c := &d.copiesOf(blk).warps[wi]
	for m := e.Mask; m != 0; m &= m - 1 {
		c.groups[bits.TrailingZeros32(m)]++
	}
}

// wait completes the copies of lanes, except those of the last e.Aux groups.
func (d *Detector) wait(e *event.Event, blk *order.Block, wi uint32) {
	c := &d.copiesOf(blk).warps[wi]
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		c.waited[lane] = c.groups[lane] - min(c.groups[lane], e.Aux)
	}
	kept := c.list[:0]
	for _, x := range c.list {
		done := uint32(0)
		for m := x.left & e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if uint64(x.groups[lane])+uint64(e.Aux) < uint64(c.groups[lane]) {
				done |= 1 << lane
			} else {
				x.waited = waitedBy(e, x.groups[lane] == c.groups[lane])
			}
		}
		if d.complete(x, done, true, done&^d.landGroups(x, done)); x.left != 0 {
			kept = append(kept, x)
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
	d.groupsDone(e, blk, wi, &c.groups)
}

// track makes an mbarrier track the copies that lanes have in flight.
func (d *Detector) track(e *event.Event, blk *order.Block, wi uint32) {
	for _, x := range d.copiesOf(blk).warps[wi].list {
		for m := x.left & e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			x.tracks = append(x.tracks, track{e.Addr, lane})
		}
		fresh := x.left & e.Mask &^ x.tracked
		x.tracked |= fresh
		x.copyTracked(fresh)
		d.recordCopies(x, fresh)
	}
}

// phaseDone completes the copies that an mbarrier tracks when its phase completes. The copies happen before what waits
// for the phase, because the copying thread released them by its first arrival for them. They were therefore recorded
// as accesses at the time of that arrival.
func (d *Detector) phaseDone(e *event.Event, blk *order.Block, wi uint32) {
	if blk.Slot >= len(d.copies) {
		return
	}
	addr := e.Addr
	c := d.copiesOf(blk)
	var of *operations
	count := func() *operations {
		if of == nil {
			of = d.operationsOf(d.bulksOf(blk), operationsKey{kind: copyOps, barrier: addr})
			of.last++
		}
		return of
	}
	d.tracksDone(blk, addr, count)
	for wi := range c.warps {
		w := &c.warps[wi]
		kept := w.list[:0]
		for _, x := range w.list {
			done := uint32(0)
			x.tracks = slices.DeleteFunc(x.tracks, func(t track) bool {
				if t.addr != addr {
					return false
				}
				done |= 1 << t.lane
				return true
			})
			if done &= x.left; done != 0 {
				d.landCopies(x, done, addr, count())
			}
			d.complete(x, done, false, 0)
			if x.left != 0 {
				kept = append(kept, x)
			}
		}
		clear(w.list[len(kept):])
		w.list = kept
	}
	if of != nil {
		d.tellPhase(e, blk, wi, of)
	}
}

// complete ends copies of the lanes done, by a wait of their threads (waited) or by a phase of an mbarrier. It records
// those of the lanes in record.
func (d *Detector) complete(x *copyHalf, done uint32, waited bool, record uint32) {
	if done == 0 {
		return
	}
	c := d.copiesOf(x.Block)
	shared := x.Memory.Shared
	if shared {
		c.count(x, done, ^uint32(0))
		for m := done; m != 0; m &= m - 1 {
			c.land(x.batch.AddrOf(&x.event, bits.TrailingZeros32(m))/copyGranule, x)
		}
	}
	if x.left &^= done; x.left == 0 {
		d.landed(x)
	}
	d.copyDone(x, done, waited)
	d.recordCopies(x, record)
	if shared && x.Block.Synchronises(true) {
		for m := done; m != 0; m &= m - 1 {
			from := x.batch.AddrOf(&x.event, bits.TrailingZeros32(m))
			x.Block.Overwrite(true, from, from+uint64(x.event.Size))
		}
	}
}

// recordCopies records copies of the lanes done as accesses that their threads make now.
func (d *Detector) recordCopies(x *copyHalf, done uint32) {
	if done == 0 {
		return
	}
	w := x.Warp
	e := x.event
	if done != e.Mask { // only some lanes
		b := event.Batch{}
		for m := done; m != 0; m &= m - 1 {
			b.Addrs = append(b.Addrs, x.batch.AddrOf(&x.event, bits.TrailingZeros32(m)))
		}
		e.Flags &^= event.FlagValues | event.FlagOld
		e.Mask = done
		w.Batch = &b
	}
	w.Event = &e
	if x.Memory.Shared && d.defers {
		d.interval(x.Block).judged = true
	}
	d.history.Weak(&w, func(*history.Access, history.Race) {}) // races have been reported already
}

// landed records that all copies of a half are complete.
func (d *Detector) landed(x *copyHalf) {
	if x.Memory.Shared {
		d.copiesOf(x.Block).inFlight--
		return
	}
	if i := slices.Index(d.sources, x); i >= 0 {
		d.sources = slices.Delete(d.sources, i, i+1)
	}
}

// endCopies ends the copies of a block that is about to end. Their sources have been read by the end of the launch at
// the latest.
func (d *Detector) endCopies(blk *order.Block) {
	if blk.Slot >= len(d.copies) {
		return
	}
	c := d.copies[blk.Slot]
	for i := range c.warps {
		for _, x := range c.warps[i].list {
			if x.Memory.Shared {
				x.left = 0
			} else {
				d.complete(x, x.left, true, x.left)
			}
		}
	}
	if c.bulks != nil {
		d.endBulks(c.bulks, blk)
	}
	d.copies[blk.Slot] = &copies{}
}
