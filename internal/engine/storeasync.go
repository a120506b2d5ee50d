package engine

import (
	"encoding/binary"
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// storeBarrier is the index of the source operand of st.async, red.async and clusterlaunchcontrol.try_cancel that is
// the address of the mbarrier. Values follow.
const storeBarrier = 1

// storeAsync executes st.async and red.async for the lanes of on.
func (r *Run) storeAsync(w *Warp, in *loader.Instr, on uint32, place uint32) {
	size := uint64(in.Type.Size())
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		var data []byte
		for _, o := range in.Operands[storeBarrier+1:] {
			data = binary.LittleEndian.AppendUint64(data, r.Machine.Value(w, i, &o))[:len(data)+int(size)]
		}
		r.writeAsync(w, in, i, data, place)
	}
}

// writeAsync issues a write of bytes to shared memory that an mbarrier tracks.
func (r *Run) writeAsync(w *Warp, in *loader.Instr, lane int, data []byte, place uint32) {
	to := r.Machine.Value(w, lane, &in.Operands[0]) + uint64(in.Off)
	targets, ok := r.targets(w, lane, in, to, storeBarrier, place)
	if !ok {
		return
	}
	if in.Has("multicast::cluster::all") {
		own := targets[0]
		targets = targets[:0]
		for _, c := range w.CTA.cluster.ctas {
			targets = append(targets, bulkTarget{c, own.to, c, own.barrier})
		}
	}
	n := uint64(len(data))
	for _, t := range targets {
		told := w.CTA.tell(t.of, t.to)
		bytes, kind := window(t.of.Shared, t.to, n)
		if kind != "" {
			r.Faults.access(r, kind, w, lane, place, touch{event.FlagWrite, event.Shared, told, n})
			return
		}
		x := r.newBulk(w, lane, in, t)
		x.bytes, x.generic = n, in.Op == isa.OpStoreAsync
		x.parts, x.isRead = []bulkPart{{to: bytes, data: data}}, true
		x.reduces(in)
		r.Out.bulk(x, place, event.FlagWrite, event.Shared, told, n)
		r.fly(x, place)
	}
}

// tryCancel executes clusterlaunchcontrol.try_cancel for the lanes of on: it removes a cluster that has not started
// from the grid, if there is one.
func (r *Run) tryCancel(w *Warp, in *loader.Instr, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		data := make([]byte, 16)
		if first, ok := r.cancel(); ok {
			at := r.Launch.Grid.At(uint64(first))
			for i, v := range []uint32{1, at.X, at.Y, at.Z} {
				binary.LittleEndian.PutUint32(data[4*i:], v)
			}
		}
		r.writeAsync(w, in, bits.TrailingZeros32(m), data, place)
	}
}

// cancel removes a cluster that has not started, and gives its first block.
func (r *Run) cancel() (uint32, bool) {
	s := &r.Sched
	if s.started >= s.blocks {
		return 0, false
	}
	first := r.Launch.BlockIn(r.nextCluster(), 0)
	r.Stats.Blocks += r.Launch.ClusterShape().Count()
	return first, true
}
