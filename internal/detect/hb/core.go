package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// This file handles operations of the tensor cores on tensor memory and shared memory. A thread issues tcgen05.mma and
// tcgen05.cp, and they are performed in order. A thread knows of their completion if it acquires the phase of an
// mbarrier that the issuing thread named in a later commit. A warp issues tcgen05.ld and tcgen05.st, and waits for them
// itself. All of them are recorded as accesses at the issue; those of a warp as accesses by its first lane.

// coreState is what the threads of a block have issued.
type coreState struct {
	number  int64 // of the operation issued last
	view    *order.View
	own     *order.View // the view of its first lane
	commits []coreCommit
	waits   map[coreWait]*order.View // for each warp and kind, the view of the operation issued last
}

// coreCommit is a commit that has not arrived at its mbarrier yet.
type coreCommit struct {
	thread
	number int64
	view   *order.View
}

type coreWait struct {
	warp uint32
	how  uint8
}

// coreHalf fills in a half that is an access by a tensor core operation.
func (d *Detector) coreHalf(s *bulks, x *bulkHalf, e *event.Event, blk *order.Block) {
	k := &s.core
	if k.view == nil || k.number != e.Stride { // the first access of a new operation
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

// inOrder reports whether x and y are accesses by one tensor core operation, or by two of the same thread or warp that
// are performed one after the other.
func (x *bulkHalf) inOrder(y *bulkHalf) bool {
	if x == nil || !x.core || !y.core || x.block != y.block || x.warp != y.warp || x.lane != y.lane {
		return false
	}
	return x.number == y.number || x.how == y.how && x.how != event.CoreLoads
}

// commitCores records a commit: when all that the thread has issued before is complete, an arrival at the mbarrier
// follows.
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

// coresDone completes the operations of a thread up to a commit that has arrived at its mbarrier. The arrival releases
// what they did.
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

// waitCores completes the loads of tensor memory that a warp has issued, or its stores.
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

// allocation records the write to shared memory by which tcgen05.alloc tells where the allocated tensor memory begins.
// Deallocations are not recorded, since the block may allocate the same tensor memory again.
func (d *Detector) allocation(s *bulks, x *bulkHalf, a *history.Access) {
	if x.how != event.CoreAllocates {
		return
	}
	if d.defers && x.memory.Shared {
		d.interval(x.block).judged = true
	}
	a.Actor.View = x.own
	d.history.Record(a, 0)
	if rank, from, ok := sharedAt(&x.memory, x.from); ok {
		g := d.proxiesOf(x.block).at(rank, from)
		g.marks, g.allocated = nil, true
	}
}
