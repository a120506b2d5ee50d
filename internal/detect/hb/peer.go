package hb

import (
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// Where a launch has clusters of several blocks, a block's shared memory is reached by others. All that is made to be fast by the
// knowledge that it is not stays away from it: it is judged as global memory is, at addresses that no device has
// (explain.PeerBase), which tell the launch, the cluster, the rank of the block and the offset.

// peer gives an event of shared memory, of a launch with clusters, as one of global memory, with its batch.
func (d *Detector) peer(b *event.Batch, e *event.Event, blk *order.Block) (*event.Batch, *event.Event) {
	cluster, rank := blk.Info.ClusterOf(blk.Index)
	base := explain.PeerBase(e.Launch, cluster)
	own := uint64(rank+1) << event.PeerShift
	d.peerEvent = *e
	x := &d.peerEvent
	x.Space = event.Global
	var room [32]uint64
	if e.Kind == event.Bulk || e.Kind == event.Wgmma || e.Kind == event.Core {
		if x.Addr += base; e.Addr>>event.PeerShift == 0 {
			x.Addr += own
		}
		return b, x
	}
	addrs := b.Addresses(e, &room)
	foreign := false
	for _, at := range addrs {
		foreign = foreign || at>>event.PeerShift != 0
	}
	if !foreign && e.Flags&event.FlagScattered == 0 {
		x.Addr += base + own
		return b, x
	}
	d.peerBatch = *b
	to := d.peerAddrs[:0]
	for _, at := range addrs {
		if at>>event.PeerShift == 0 {
			at += own
		}
		to = append(to, base+at)
	}
	d.peerAddrs, d.peerBatch.Addrs = to, to
	x.Flags = x.Flags&^event.FlagRows | event.FlagScattered
	x.Addr, x.Stride, x.Side = 0, 0, 0
	return &d.peerBatch, x
}

// endCluster forgets the shared memory of the blocks of a cluster when all of them have ended.
func (d *Detector) endCluster(l *order.Launch, block uint32) {
	cluster, _ := l.Info.ClusterOf(block)
	for rank := range uint32(l.Info.ClusterShape().Count()) {
		if i := l.Info.BlockIn(cluster, rank); i != block && !l.Ended(i) {
			return
		}
	}
	from := explain.PeerBase(l.Info.ID, cluster)
	d.order.Overwrite(from, from+explain.PeerBytes)
	delete(d.proxies, clusterKey{l.Info.ID, cluster})
}
