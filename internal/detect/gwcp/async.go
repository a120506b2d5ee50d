package gwcp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// The completion of an asynchronous operation is a hard edge. A thread that acquires the phase of its mbarrier, or that
// waits for its group, comes after what the issuing thread or warp did before the issue. The accesses of asynchronous
// operations are not judged, with one exception: copies by cp.async count as accesses of their thread at the issue.

// asynchronous is what threads of a block have issued.
type asynchronous struct {
	bulks   map[int64]clocks  // by number of the copy: what precedes it
	commits map[commit]clocks // of tensor core operations: what precedes them
	matrix  []matrices        // by warp
	cores   map[unit]clocks   // of a warp's last operation on tensor memory: what precedes it
}

// commit identifies a commit by a lane of a warp of the block.
type commit struct {
	warp   uint32
	lane   int
	number int64
}

// unit identifies a warp of the block and a kind of tensor memory operation: event.CoreLoads or event.CoreStores.
type unit struct {
	warp uint32
	how  uint8
}

// matrices is what a warp has issued of its warpgroup's matrix operations: for each group, what precedes the last
// operation.
type matrices struct {
	groups uint32 // the number of groups committed
	issued []issued
}

type issued struct {
	group  uint32
	before clocks
}

// groupWarps is the number of warps in a warpgroup.
const groupWarps = 4

func (b *block) asynchronous() *asynchronous {
	if b.async == nil {
		b.async = &asynchronous{map[int64]clocks{}, map[commit]clocks{}, make([]matrices, len(b.warps)), map[unit]clocks{}}
	}
	return b.async
}

// before returns what precedes an operation that lanes of a warp issue, their own actions included. What the lanes do
// afterwards is not part of it.
func (d *Detector) before(blk *block, wi, lanes uint32) (all clocks) {
	blk.number++
	blk.warps[wi].split(lanes&blk.warps[wi].live, func(g *group) {
		all = d.both(all, d.run.trees(&g.p, &g.h, blk, wi, g.lanes, g.epoch))
		g.epoch = blk.number
	})
	return all
}

// async handles an event of an asynchronous operation.
func (d *Detector) async(blk *block, wi uint32, e *event.Event) {
	x := blk.asynchronous()
	lane := bits.TrailingZeros32(e.Mask)
	switch e.Kind {
	case event.Bulk:
		if e.Flags&event.FlagWrite != 0 {
			d.unknown(blk, e, e.Addr, uint64(e.Aux))
		}
		number := e.Stride & (1<<32 - 1)
		x.bulks[number] = d.before(blk, wi, e.Mask)
	case event.BulkDone:
		if c, ok := x.bulks[e.Stride]; ok {
			delete(x.bulks, e.Stride)
			d.tell(blk, e.Addr, c)
		}
	case event.CoreCommit:
		x.commits[commit{wi, lane, e.Stride}] = d.before(blk, wi, e.Mask)
	case event.CoreDone:
		k := commit{wi, lane, e.Stride}
		if c, ok := x.commits[k]; ok {
			delete(x.commits, k)
			d.tell(blk, e.Addr, c)
		}
	case event.Core:
		if e.Barrier == event.CoreLoads || e.Barrier == event.CoreStores {
			x.cores[unit{wi, e.Barrier}] = d.before(blk, wi, e.Mask)
		}
	case event.CoreWait:
		how := event.CoreLoads
		if e.Flags&event.FlagWrite != 0 {
			how = event.CoreStores
		}
		d.comesAfter(blk, wi, e.Mask, x.cores[unit{wi, how}])
	case event.Wgmma:
		x.matrix[wi].issue(d.before(blk, wi, e.Mask))
	case event.WgmmaCommit:
		x.matrix[wi].groups++
	case event.WgmmaWait:
		d.waitMatrix(blk, wi, e)
	}
}

// maxIssued is the number of groups kept for each warp.
const maxIssued = 64

func (m *matrices) issue(before clocks) {
	if n := len(m.issued); n > 0 && m.issued[n-1].group == m.groups {
		m.issued[n-1].before = before
		return
	}
	if len(m.issued) == maxIssued {
		m.issued = append(m.issued[:0], m.issued[1:]...)
	}
	m.issued = append(m.issued, issued{m.groups, before})
}

// waitMatrix orders lanes after the operations of their warpgroup, except those of the last groups.
func (d *Detector) waitMatrix(blk *block, wi uint32, e *event.Event) {
	x := blk.asynchronous()
	first := wi / groupWarps * groupWarps
	for w := first; w < min(first+groupWarps, uint32(len(x.matrix))); w++ {
		list := x.matrix[w].issued
		for i := len(list) - 1; i >= 0; i-- {
			if uint64(list[i].group)+uint64(e.Aux) < uint64(x.matrix[wi].groups) {
				d.comesAfter(blk, wi, e.Mask, list[i].before)
				break
			}
		}
	}
}

// comesAfter orders lanes of a warp after an operation by a hard edge.
func (d *Detector) comesAfter(blk *block, wi, lanes uint32, before clocks) {
	if before.h == nil {
		return
	}
	w := &blk.warps[wi]
	w.split(lanes&w.live, func(g *group) { d.follow(&g.view, blk, before) })
	d.spread(w, lanes)
}

// tell makes an mbarrier in shared memory release what precedes a completed operation.
func (d *Detector) tell(blk *block, addr uint64, before clocks) {
	k := locKey{addr: addr, block: blk.index + 1}
	at := d.locations[k]
	if at == nil {
		at = &location{}
		d.locations[k] = at
	}
	if at.narrow == nil {
		at.narrow = map[uint32]clocks{}
	}
	at.narrow[blk.index] = d.both(at.narrow[blk.index], before)
}
