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

// An asynchronous copy is an actor of its own: it happens after its issue, and before what its thread does after the wait that
// covers it; nothing else orders it. So whatever overlaps with it between the two, in the order of the stream, races with it, of
// whichever thread, and nothing before the issue that is ordered with the issue does. Copies are therefore judged when they are
// issued, as accesses by their thread; while they are in flight each access is compared with them; and at the wait they are
// recorded, as accesses that their thread makes then. A copy that nobody waits for reads its source until its block ends.
type copies struct {
	block    *order.Block // nil: it has issued none
	warps    []warpCopies
	inFlight int           // halves that write shared memory
	written  granuleCounts // the lanes whose copies in flight write there
	landed   []landing     // by granule
	bulks    *bulks        // nil where there is none
	passed   map[passing]passage
	phases   map[uint64]int // of each mbarrier of the block that are complete
	time     int            // counts issues and waits for phases
}

// passing is a thread and an mbarrier, for a phase of which it has waited with success.
type passing struct {
	warp    uint32 // in the block
	lane    int
	barrier uint64
}

// passage is the last wait of a thread for a phase of an mbarrier.
type passage struct {
	time   int
	phases int  // that were complete
	again  bool // the thread had waited for the last of them before, or there was none: the parity was that of an older phase
}

// waitsPhase notes a load that acquires: where one is of an mbarrier, its thread has waited for a phase.
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

// passed says that the thread of an access has waited for another phase of an mbarrier of its block than that of a copy issued at a time. A
// wait before the issue counts if it did not wait: otherwise it was for the phase before, and there is none for this one.
func (d *Detector) passed(a *history.Access, b *order.Block, barrier uint64, issued int) bool {
	if a.Actor.Launch != b.Launch || a.Actor.Block != b.Index {
		return false
	}
	p := d.copiesOf(b).passed[passing{a.Actor.Warp - b.Index*b.WarpsPerBlock, a.Actor.Lane, barrier}]
	return p.again || p.time > issued
}

// phase notes that a phase of an mbarrier is complete.
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

// landing is the copies to a granule that are complete.
type landing struct {
	last *copyHalf
	n    uint8 // instructions, up to 2
}

// copyGranule is the bytes of shared memory that are counted together: no copy by cp.async is larger, and all are aligned.
const copyGranule = 16

// granuleCounts counts what is in flight by granules of shared memory.
type granuleCounts []uint32

// add adds n to the counts of the bytes [from, end).
func (g *granuleCounts) add(from, end uint64, n uint32) {
	for at := from / copyGranule; at <= (end-1)/copyGranule; at++ {
		*granuleAt((*[]uint32)(g), at) += n
	}
}

// any says that something may be in flight that touches the bytes [from, end).
func (g granuleCounts) any(from, end uint64) bool {
	first, last := from/copyGranule, (end-1)/copyGranule
	return first < uint64(len(g)) && slices.ContainsFunc(g[first:min(last+1, uint64(len(g)))], func(n uint32) bool { return n != 0 })
}

// granuleAt gives the element of a granule, made when there is none.
func granuleAt[T any](list *[]T, at uint64) *T {
	for uint64(len(*list)) <= at {
		*list = append(*list, make([]T, max(64, len(*list)))...)
	}
	return &(*list)[at]
}

// ofRank gives the list of the block of a rank, made when there is none.
func ofRank[T any](lists *[][]T, rank uint32) *[]T {
	for uint32(len(*lists)) <= rank {
		*lists = append(*lists, nil)
	}
	return &(*lists)[rank]
}

type warpCopies struct {
	groups [32]uint32 // that lanes have committed
	waited [32]uint32 // the first of these that their last wait did not cover
	list   []*copyHalf
}

// copyHalf is what copies of one instruction read, or what they write, that are in flight.
type copyHalf struct {
	history.Warp
	event  event.Event
	batch  event.Batch
	left   uint32     // lanes whose copy is in flight
	groups [32]uint32 // of each lane's copy
	stamps [32]order.Stamp
	low    uint64 // of what is accessed, of global memory
	high   uint64
	tracks []track
	// tracked are the lanes of which one track at least is, or was.
	tracked uint32
	order   *copyOrder       // nil: the async proxy does not ask
	issued  int              // copies.time
	waited  detect.CopyState // by the last wait that did not cover it
}

// waitedBy gives the state of a copy that a wait did not cover. Early says that it was not committed then.
func waitedBy(e *event.Event, early bool) detect.CopyState {
	return detect.CopyState{Waited: true, Wait: e.Place, Allowed: e.Aux, Early: early}
}

// track says that an mbarrier in shared memory tracks a lane's copy.
type track struct {
	addr uint64
	lane int
}

// copiesOf gives those of a block.
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

// copying says that copies of a block are in flight.
func (d *Detector) copying(b *order.Block) bool {
	return b.Slot < len(d.copies) && d.copies[b.Slot].inFlight > 0
}

// issue judges a half of copies that lanes of a warp issue, which is in flight from now on.
func (d *Detector) issue(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	if d.putsOff {
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

// count adds n to the counts of what the copies of lanes write.
func (c *copies) count(x *copyHalf, lanes uint32, n uint32) {
	for m := lanes; m != 0; m &= m - 1 {
		from := x.batch.AddrOf(&x.event, bits.TrailingZeros32(m))
		c.written.add(from, from+uint64(x.event.Size), n)
	}
}

// land notes a copy to a granule that is complete, by lanes of x where it is by cp.async.
func (c *copies) land(granule uint64, x *copyHalf) {
	if at := granuleAt(&c.landed, granule); x == nil || at.last != x {
		at.last, at.n = x, min(at.n+1, 2)
	}
}

// writes says that a copy in flight may write what lanes of an access to shared memory access.
func (c *copies) writes(w *history.Warp) bool {
	e := w.Event
	for m := e.Mask; m != 0; m &= m - 1 {
		if from := w.Batch.AddrOf(e, bits.TrailingZeros32(m)); c.written.any(from, from+uint64(e.Size)) {
			return true
		}
	}
	return false
}

// inFlight gives the halves in flight that access global memory, or the shared memory of a block.
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

// compareWithCopies reports the copies in flight with which an access by a warp races.
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

// compareLanes calls race for each copy in flight with which an access races.
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

// category says why an access races with a copy in flight. Who is ordered with the issue, or would be in a warp that runs in
// lockstep, has only the copy itself to wait for.
func category(a *history.Access, r *history.Record) detect.Category {
	x := &r.Stamp
	same := a.Actor.Launch == x.Launch
	if same && a.Actor.Warp == x.Warp || a.Actor.After(x) {
		return detect.CopyPending
	}
	return detect.Classify(r.Site.Side, a.Site.Side, detect.Relation{SameLaunch: same, SameBlock: same && a.Actor.Block == x.Block(),
		OtherDevice: a.Actor.OtherDevice(x.Launch), Nested: !same && a.Actor.Nested(x.Launch), Assumed: !same && a.Actor.Assumes(x)})
}

// reuses says that copies have been complete before where a copy writes: of those by which an access races, the last one
// may be told already.
func (d *Detector) reuses(b *order.Block, at uint64, last uint8) bool {
	if b.Slot >= len(d.copies) {
		return false
	}
	c := d.copies[b.Slot]
	if c.written.any(at, at+1) || c.bulks != nil && c.bulks.flying[1].any(at, at+1) { // it is not complete itself
		last = 0
	}
	at /= copyGranule
	return at < uint64(len(c.landed)) && c.landed[at].n > last
}

// tellCopyOf gives what adds a race with a copy in flight to the findings.
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

// copies says that copies of a lane by a site are in flight in a group.
func (c *warpCopies) copies(lane int, s *history.Site, group uint32) bool {
	return slices.ContainsFunc(c.list, func(x *copyHalf) bool { return x.Site == s && x.left>>uint(lane)&1 != 0 && x.groups[lane] == group })
}

// passedTrack says that the thread of an access has waited for an mbarrier that tracks a lane's copy.
func (d *Detector) passedTrack(a *history.Access, x *copyHalf, lane int) bool {
	return slices.ContainsFunc(x.tracks, func(t track) bool { return t.lane == lane && d.passed(a, x.Block, t.addr, x.issued) })
}

// commit puts the copies of lanes into groups.
func (d *Detector) commit(e *event.Event, blk *order.Block, wi uint32) {
	c := &d.copiesOf(blk).warps[wi]
	for m := e.Mask; m != 0; m &= m - 1 {
		c.groups[bits.TrailingZeros32(m)]++
	}
}

// wait completes the copies of lanes but for their last groups.
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

// phaseDone completes the copies that an mbarrier tracks, whose phase is complete. They happen before those who wait for the phase, by
// the first arrival for them that the thread that copies has released: so they have been recorded as what it did then.
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

// complete ends copies of lanes, by a wait of their threads or with a phase of an mbarrier, and records those of some lanes.
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

// recordCopies records copies of lanes as accesses that their threads make now.
func (d *Detector) recordCopies(x *copyHalf, done uint32) {
	if done == 0 {
		return
	}
	w := x.Warp
	e := x.event
	if done != e.Mask { // of some
		b := event.Batch{}
		for m := done; m != 0; m &= m - 1 {
			b.Addrs = append(b.Addrs, x.batch.AddrOf(&x.event, bits.TrailingZeros32(m)))
		}
		e.Flags &^= event.FlagValues | event.FlagOld
		e.Mask = done
		w.Batch = &b
	}
	w.Event = &e
	if x.Memory.Shared && d.putsOff {
		d.interval(x.Block).judged = true
	}
	d.history.Weak(&w, func(*history.Access, history.Race) {}) // what races has been told
}

// landed notes that no copy of a half is in flight any more.
func (d *Detector) landed(x *copyHalf) {
	if x.Memory.Shared {
		d.copiesOf(x.Block).inFlight--
		return
	}
	if i := slices.Index(d.sources, x); i >= 0 {
		d.sources = slices.Delete(d.sources, i, i+1)
	}
}

// endCopies ends those of a block that is about to end: their sources have been read, when the launch ends at the latest.
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
