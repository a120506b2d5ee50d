package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// The operations of tensor cores on tensor memory and shared memory. A thread issues tcgen05.mma and tcgen05.cp, which are performed in
// order; that they are complete is known to who acquires the phase of an mbarrier that the thread has named in a later commit. A
// warp issues tcgen05.ld and tcgen05.st, and waits for them itself. All are recorded as accesses at the issue, of a warp by its first lane.

// coreState is what the threads of a block have issued.
type coreState struct {
	number  int64 // of the operation issued last
	view    *order.View
	own     *order.View // of its first lane
	commits []coreCommit
	waits   map[coreWait]*order.View // for the operations that a warp has issued last
}

// coreCommit is a commit whose arrival at an mbarrier is pending.
type coreCommit struct {
	thread
	number int64
	view   *order.View
}

type coreWait struct {
	warp uint32
	how  uint8
}

// coreHalf makes a half that of an operation.
func (d *Detector) coreHalf(s *bulks, x *bulkHalf, e *event.Event, blk *order.Block) {
	k := &s.core
	if k.view == nil || k.number != e.Stride { // the first of its accesses
		k.number = e.Stride
		k.own = x.view
		if k.view = x.view; e.Barrier != event.CoreCommits {
			k.view = blk.Together(x.warp, e.Mask)
		}
		blk.Advance(x.warp, e.Mask)
	}
	x.core, x.how, x.commit, x.view, x.own = true, e.Barrier, -1, k.view, k.own
	if e.Barrier == event.CoreLoads || e.Barrier == event.CoreStores {
		if k.waits == nil {
			k.waits = map[coreWait]*order.View{}
		}
		k.waits[coreWait{x.warp, x.how}] = x.view
	}
}

// inOrder says that two operations of tensor cores are of one thread, or one warp, which performs them one after the other, or that they are one.
func (x *bulkHalf) inOrder(y *bulkHalf) bool {
	if x == nil || !x.core || !y.core || x.block != y.block || x.warp != y.warp || x.lane != y.lane {
		return false
	}
	return x.number == y.number || x.how == y.how && x.how != event.CoreLoads
}

// commitCores notes a commit: an arrival at an mbarrier follows when what a thread has issued is complete.
func (d *Detector) commitCores(s *bulks, e *event.Event, blk *order.Block, wi uint32) {
	lane := bits.TrailingZeros32(e.Mask)
	s.core.commits = append(s.core.commits, coreCommit{thread{wi, lane}, e.Stride, blk.ViewOf(wi, lane)})
	blk.Advance(wi, e.Mask)
	for _, x := range s.list {
		if x.core && x.how == event.CoreCommits && x.warp == wi && x.lane == lane && x.commit < 0 {
			x.commit, x.tracked, x.barrier = e.Stride, true, e.Addr
		}
	}
}

// coresDone completes the operations of a thread up to a commit that has arrived at its mbarrier: that releases what they did.
func (d *Detector) coresDone(s *bulks, b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	lane := bits.TrailingZeros32(e.Mask)
	i := slices.IndexFunc(s.core.commits, func(c coreCommit) bool { return c.thread == thread{wi, lane} && c.number == e.Stride })
	if i < 0 {
		return
	}
	var views [32]*order.View
	of := d.operationsOf(s, operationsKey{kind: committedOps, warp: wi, lane: lane})
	views[lane] = s.core.commits[i].view.Knowing(of.id, uint32(e.Stride)+1)
	s.core.commits = slices.Delete(s.core.commits, i, i+1)
	s.list = slices.DeleteFunc(s.list, func(x *bulkHalf) bool {
		if !x.core || x.how != event.CoreCommits || x.warp != wi || x.lane != lane || x.commit < 0 || x.commit > e.Stride {
			return false
		}
		d.completeBulk(s, x, blk, false)
		d.land(x, blk, of, uint32(x.commit)+1)
		return true
	})
	d.tellBarrier(b, e, blk, wi, &views, e.Place)
}

// waitCores completes what a warp has loaded of tensor memory, or stored.
func (d *Detector) waitCores(s *bulks, e *event.Event, blk *order.Block, wi uint32) {
	how := event.CoreLoads
	if e.Flags&event.FlagWrite != 0 {
		how = event.CoreStores
	}
	of := d.operationsOf(s, operationsKey{kind: coreOps + how, warp: wi})
	of.last++
	s.list = slices.DeleteFunc(s.list, func(x *bulkHalf) bool {
		if !x.core || x.how != how || x.warp != wi {
			return false
		}
		d.completeBulk(s, x, blk, false)
		d.land(x, blk, of, of.last)
		return true
	})
	if v := s.core.waits[coreWait{wi, how}]; v != nil {
		blk.Learn(wi, e.Mask, v.Knowing(of.id, of.last))
	}
	blk.Synchronised(wi, e)
}

// allocation records where allocated tensor memory begins, which is written to shared memory; that tensor memory it was freed is not kept, since
// its block may allocate it again.
func (d *Detector) allocation(s *bulks, x *bulkHalf, a *history.Access) {
	if x.how != event.CoreAllocates {
		return
	}
	if d.putsOff && x.memory.Shared {
		d.interval(x.block).judged = true
	}
	a.Actor.View = x.own
	d.history.Record(a, 0)
	if rank, from, ok := sharedAt(&x.memory, x.from); ok {
		g := d.proxiesOf(x.block).at(rank, from)
		g.marks, g.allocated = nil, true
	}
}
