package order

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// clusterBarrier is the barrier of a cluster: what threads have released by arriving, indexed by the parity of the
// phase. Each thread alternates between arriving and waiting, so at most two phases matter at a time: threads that have
// waited for one phase may arrive at the next while others have yet to wait. What was released in earlier phases, all
// waiters know already.
type clusterBarrier [2]struct {
	record
	fences *fences // passed on with the record
}

// Clustered reports whether the launch has clusters of several blocks.
func (l *Launch) Clustered() bool { return l.clustered }

// beyondBlock reports whether a scope reaches beyond the block. In a launch with clusters of several blocks scope
// cluster does, and the block's own cluster is not distinguished from others.
func (b *Block) beyondBlock(s event.Scope) bool {
	return s >= event.ScopeGPU || s == event.ScopeCluster && b.clustered
}

func (b *Block) clusterBarrier() *clusterBarrier {
	cluster, _ := b.Info.ClusterOf(b.Index)
	bar := b.clusters[cluster]
	if bar == nil {
		bar = &clusterBarrier{}
		b.clusters[cluster] = bar
	}
	return bar
}

// phases splits lanes of a warp by the parity of the phase that they arrive at or wait for next.
func (w *warp) phases(lanes uint32) [2]uint32 { return [2]uint32{lanes &^ w.phase, lanes & w.phase} }

// arriveCluster publishes what lanes have done. A relaxed arrival publishes what they had done at their last fence
// whose scope includes the cluster.
func (b *Block) arriveCluster(wi uint32, e *event.Event) {
	w, bar := &b.warps[wi], b.clusterBarrier()
	b.published = true
	for i, lanes := range w.phases(e.Mask & w.live) {
		tell := func(v *View, lanes uint32) {
			bar[i].record = b.order.joinRecords(bar[i].record, record{b.Launch, b.gridOf(v, wi, lanes), v.beyond})
		}
		if e.Order == event.Release {
			for v, having := range w.of(lanes) {
				tell(v, having)
			}
			if b.fencesSC {
				bar[i].fences = b.order.joinFences(bar[i].fences, b.carried(w, wi, lanes))
			}
			continue
		}
		for m := lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			f := w.releasedBy(lane)
			v := f.wide
			if !b.clustered { // each block is a cluster of its own
				v = f.narrow
			}
			if v != nil {
				tell(v, 1<<lane)
			}
		}
	}
	b.next(wi, e.Mask, e)
}

// waitCluster makes lanes acquire what was released by arrivals at the phase that they wait for.
func (b *Block) waitCluster(wi uint32, e *event.Event) {
	w, bar := &b.warps[wi], b.clusterBarrier()
	for i, lanes := range w.phases(e.Mask & w.live) {
		if lanes == 0 {
			continue
		}
		for v, having := range w.of(lanes) {
			k := b.learn(v.knowledge, bar[i].record)
			k.fences = b.order.joinFences(k.fences, bar[i].fences)
			w.learned(having, v, k)
		}
		w.phase ^= lanes
	}
	b.next(wi, e.Mask, e)
}

// Known reports whether all blocks of the cluster of a block are running, and that all their live threads know an epoch
// of lanes of a warp of that block.
func (l *Launch) Known(block, wi, lanes, epoch uint32) bool {
	cluster, _ := l.Info.ClusterOf(block)
	for rank := range uint32(l.Info.ClusterShape().Count()) {
		b := l.blocks[l.Info.BlockIn(cluster, rank)]
		if b == nil { // a block that has not begun may still learn what was released long ago
			return false
		}
		for i := range b.warps {
			for v, having := range b.warps[i].of(b.warps[i].live) {
				unknown := v.Unknown(l, b.Index, l, block*l.WarpsPerBlock+wi, lanes, epoch)
				if b.Index == block && uint32(i) == wi && having&(having-1) == 0 {
					unknown &^= having // the lane knows itself
				}
				if unknown != 0 {
					return false
				}
			}
		}
	}
	return true
}
