package hb

import (
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
)

// An operation that is complete is still no part of what its thread does: who knows of its issue, or of what the thread did after that, does
// not know that it is complete, and its accesses race with the operation as if it were in flight. That it is complete is known by the phase of
// its mbarrier, or by the wait of its warp, and goes from there from thread to thread. Operations that become known in one order are counted
// together (operations): those that one mbarrier tracks, those that one thread commits, and those that one warp waits for. A view says up to
// which count it knows them to be complete. The histories have the operations too, at their issue: they tell of who does not know even that.
//
// Kept are halves that access shared memory or tensor memory, of each thread, place, count and range of addresses the last one: who does not know an
// earlier one to be complete does not know the last one to be.

// operations are asynchronous operations of a block's threads that become known in one order.
type operations struct {
	id   uint32 // for views
	last uint32 // count
}

// operationsKey tells operations of a block apart.
type operationsKey struct {
	kind    uint8
	warp    uint32
	lane    int
	barrier uint64
}

// The kinds of operations.
const (
	trackedOps   uint8 = iota // by an mbarrier
	committedOps              // of tensor cores, by a thread
	matrixOps                 // of a warp
	coreOps                   // of a warp, plus event.CoreLoads or event.CoreStores
)

func (d *Detector) operationsOf(s *bulks, k operationsKey) *operations {
	x := s.operations[k]
	if x == nil {
		if s.operations == nil {
			s.operations = map[operationsKey]*operations{}
		}
		x = &operations{id: order.FirstOperation + d.operations}
		d.operations = (d.operations + 1) % order.FirstOperation
		s.operations[k] = x
	}
	return x
}

// landed is the halves of operations that are complete, of a block or a cluster.
type landed struct {
	list   []*bulkHalf
	counts [2][][]uint32 // of those that read and those that write, by the rank of the block and the granule
}

// count adds n to the counts of what a half accesses.
func (l *landed) count(x *bulkHalf, n uint32) {
	rank, from, _ := sharedAt(&x.memory, x.from)
	list := &l.counts[0]
	if x.site.Side.Write {
		list = &l.counts[1]
	}
	for uint32(len(*list)) <= rank {
		*list = append(*list, nil)
	}
	of := &(*list)[rank]
	for at := from / copyGranule; at <= (from+x.end-x.from-1)/copyGranule; at++ {
		for uint64(len(*of)) <= at {
			*of = append(*of, make([]uint32, max(64, len(*of)))...)
		}
		(*of)[at] += n
	}
}

// conflicts says that a half may conflict with an access.
func (l *landed) conflicts(a *history.Access, rank uint32, from uint64) bool {
	for i, list := range l.counts {
		if i == 0 && !a.Site.Side.Write || rank >= uint32(len(list)) {
			continue
		}
		of := list[rank]
		for at := from / copyGranule; at <= (from+a.End-a.From-1)/copyGranule && at < uint64(len(of)); at++ {
			if of[at] != 0 {
				return true
			}
		}
	}
	return false
}

// land keeps a half that is complete, the count of its operations up to which that is so.
func (d *Detector) land(x *bulkHalf, blk *order.Block, of *operations, count uint32) {
	if _, _, ok := sharedAt(&x.memory, x.from); !ok {
		return
	}
	x.operations, x.count = of, count
	l := &d.proxiesOf(blk).landed
	for i, y := range l.list {
		if y.operations == of && y.site == x.site && y.from == x.from && y.end == x.end && y.warp == x.warp && y.lane == x.lane {
			if y.count <= count {
				l.list[i] = x
			}
			return
		}
	}
	l.list = append(l.list, x)
	l.count(x, 1)
}

// leave forgets those of a block that ends.
func (l *landed) leave(blk *order.Block) {
	kept := l.list[:0]
	for _, x := range l.list {
		if x.block != blk {
			kept = append(kept, x)
		} else {
			l.count(x, ^uint32(0))
		}
	}
	clear(l.list[len(kept):])
	l.list = kept
}

// compareLanded reports where an access by a lane races with operations that are complete, as it does not know.
func (d *Detector) compareLanded(a *history.Access, blk *order.Block) {
	rank, from, ok := sharedAt(&a.Memory, a.From)
	if !ok {
		return
	}
	l := &d.proxiesOf(blk).landed
	if len(l.list) == 0 || !l.conflicts(a, rank, from) {
		return
	}
	for _, x := range l.list {
		if a.From < x.end && x.from < a.End && !a.Actor.View.Knows(x.operations.id, x.count) {
			d.compareBulk(a, x)
		}
	}
}
