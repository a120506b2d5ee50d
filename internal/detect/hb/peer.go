package hb

import (
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// In a launch with clusters of several blocks, other blocks can access a block's shared memory. The optimisations for
// shared memory assume that they cannot. Such shared memory is therefore judged like global memory, at addresses that
// no device has (explain.PeerBase). The address encodes the launch, the cluster, the rank of the block and the offset.

// peer translates an event on shared memory, in a launch with clusters, into one on global memory, and gives the batch
// for it.
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

// endCluster forgets the shared memory of a cluster when the last of its blocks has ended.
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
