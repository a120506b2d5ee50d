package order

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// clusterBarrier is the barrier of a cluster: what threads have released by their arrivals, by the parity of the phase. A thread
// arrives and waits in turn, so that two phases are ever of interest: threads that have waited for one may arrive at the next while
// others have yet to wait. What was released by phases before all know that wait.
type clusterBarrier [2]struct {
	record
	fences *fences // that what was released carries
}

// Clustered says that the launch has clusters of several blocks.
func (l *Launch) Clustered() bool { return l.clustered }

// beyondBlock says that a scope reaches beyond the block. Scope cluster does where the launch has clusters: those of other clusters are
// not told apart from those of the block's own.
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

// phases gives lanes of a warp by the phase that they are to arrive at or wait for.
func (w *warp) phases(lanes uint32) [2]uint32 { return [2]uint32{lanes &^ w.phase, lanes & w.phase} }

// arriveCluster lets lanes publish what they have done, or, by a relaxed arrival, what they had at their last fence
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
			if !b.clustered { // the cluster is the block
				v = f.narrow
			}
			if v != nil {
				tell(v, 1<<lane)
			}
		}
	}
	b.next(wi, e.Mask, e)
}

// waitCluster lets lanes know what was released by arrivals at the phase that they have arrived at.
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

// Known says that all blocks of the cluster of a block run, and that all their threads that have not exited know an epoch of lanes of a
// warp of that block.
func (l *Launch) Known(block, wi, lanes, epoch uint32) bool {
	cluster, _ := l.Info.ClusterOf(block)
	for rank := range uint32(l.Info.ClusterShape().Count()) {
		b := l.blocks[l.Info.BlockIn(cluster, rank)]
		if b == nil { // one that is yet to begin may learn what was released long ago
			return false
		}
		for i := range b.warps {
			for v, having := range b.warps[i].of(b.warps[i].live) {
				unknown := v.Unknown(l, b.Index, l, block*l.WarpsPerBlock+wi, lanes, epoch)
				if b.Index == block && uint32(i) == wi && having&(having-1) == 0 {
					unknown &^= having // itself
				}
				if unknown != 0 {
					return false
				}
			}
		}
	}
	return true
}
