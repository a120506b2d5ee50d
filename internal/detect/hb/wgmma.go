package hb

import (
	"slices"

	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// The four warps of a warpgroup execute wgmma.mma_async together. A warp that has waited knows that what all four have
// issued is complete. Like a bulk copy, the operation reads shared memory asynchronously. It happens after what the
// lanes of its warp did before the issue. It is recorded as an access by the warp's first lane at the issue.

// groupWarps is the number of warps in a warpgroup.
const groupWarps = 4

// matrices is what a warp has issued of wgmma.mma_async.
type matrices struct {
	groups uint32         // the number of groups committed
	issued []issuedMatrix // by increasing group
	number int64          // of the operation issued last; -1: none
}

// issuedMatrix is the last operation that a warp has issued in a group.
type issuedMatrix struct {
	group uint32
	view  *order.View // at the issue, of all its lanes together
	own   *order.View // at the issue, of its first lane alone
}

// maxIssued is the number of groups kept for each warp.
const maxIssued = 64

func (s *bulks) matricesOf(wi uint32) *matrices {
	for uint32(len(s.matrix)) <= wi {
		s.matrix = append(s.matrix, matrices{number: -1})
	}
	return &s.matrix[wi]
}

// committed returns the number of groups that the thread of a half has committed.
func (s *bulks) committed(x *bulkHalf) uint32 {
	switch {
	case x.matrix:
		return s.matricesOf(x.warp).groups
	case x.core && x.commit >= 0:
		return x.group + 1
	case x.core:
		return x.group
	}
	return s.groups[thread{x.warp, x.lane}]
}

// matrixRead fills in a half that is a read by a wgmma.mma_async, issued by lanes of a warp.
func (d *Detector) matrixRead(s *bulks, x *bulkHalf, e *event.Event, blk *order.Block) {
	m := s.matricesOf(x.warp)
	if m.number != e.Stride { // the first read of a new operation
		m.number = e.Stride
		now := issuedMatrix{m.groups, blk.Together(x.warp, e.Mask), x.view}
		if n := len(m.issued); n > 0 && m.issued[n-1].group == m.groups {
			m.issued[n-1] = now
		} else {
			m.issued = append(m.issued, now)
		}
		if over := len(m.issued) - maxIssued; over > 0 {
			m.issued = slices.Delete(m.issued, 0, over)
		}
		blk.Advance(x.warp, e.Mask)
	}
	last := &m.issued[len(m.issued)-1]
	x.matrix, x.group, x.view, x.own = true, m.groups, last.view, last.own
}

// waitMatrix completes the operations of a warpgroup, except those of the last e.Aux groups.
func (d *Detector) waitMatrix(s *bulks, e *event.Event, blk *order.Block, wi uint32) {
	n := s.matricesOf(wi).groups
	done := func(group uint32) bool { return uint64(group)+uint64(e.Aux) < uint64(n) }
	s.list = slices.DeleteFunc(s.list, func(x *bulkHalf) bool {
		if !x.matrix || x.warp/groupWarps != wi/groupWarps {
			return false
		}
		if !done(x.group) {
			x.waited = waitedBy(e, x.group == n)
			return false
		}
		d.completeBulk(s, x, blk, false)
		d.land(x, blk, d.operationsOf(s, operationsKey{kind: matrixOps, warp: x.warp}), x.group+1)
		return true
	})
	first := wi / groupWarps * groupWarps
	for w := first; w < first+groupWarps && w < uint32(len(s.matrix)); w++ {
		list := s.matrix[w].issued
		for i := len(list) - 1; i >= 0; i-- {
			if done(list[i].group) {
				blk.Learn(wi, e.Mask, list[i].view.Knowing(d.operationsOf(s, operationsKey{kind: matrixOps, warp: w}).id, list[i].group+1))
				break
			}
		}
	}
	blk.Synchronised(wi, e)
}
