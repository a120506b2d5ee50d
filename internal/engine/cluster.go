package engine

import (
	"fmt"
	"math/bits"
	"strings"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
)

// maxCluster is the most blocks in a cluster. Devices allow more than 8 only on request (programming guide, "Thread
// Block Clusters": portable cluster sizes).
const (
	maxCluster         = 16
	maxPortableCluster = 8
)

// cluster is blocks that are resident together. Its barrier is barrier.cluster (PTX ISA, "Parallel Synchronization and
// Communication Instructions: barrier.cluster").
type cluster struct {
	index   uint32
	ctas    []*CTA // by rank
	live    int    // threads that have not exited
	arrived int    // live threads that have arrived at the current phase
	met     bool   // a phase has completed
}

// newCluster starts the blocks of a cluster.
func (r *Run) newCluster(index uint32) *cluster {
	var k *cluster
	if n := len(r.free); n > 0 {
		k, r.free = r.free[n-1], r.free[:n-1]
	} else {
		k = &cluster{}
		for rank := range uint32(r.Launch.ClusterShape().Count()) {
			k.ctas = append(k.ctas, r.newCTA(k, rank))
		}
	}
	k.index, k.live, k.arrived, k.met = index, 0, 0, false
	for _, c := range k.ctas {
		r.start(c, r.Launch.BlockIn(index, c.rank))
		k.live += c.Live
	}
	return k
}

// single starts a block of a launch without clusters.
func (r *Run) single(block uint32) *CTA { return r.newCluster(block).ctas[0] }

// runnable reports whether a block can continue, now or when others of its cluster have.
func (k *cluster) runnable(c *CTA) bool {
	if c.runnable() {
		return true
	}
	if !c.waitsForCluster() {
		return false
	}
	for _, o := range k.ctas {
		if !o.gone && o.runnable() {
			return true
		}
	}
	return false
}

// waitsForCluster reports whether a thread of the block waits at the cluster barrier.
func (c *CTA) waitsForCluster() bool {
	for _, w := range c.Warps {
		for m := w.Live; m != 0; m &= m - 1 {
			if w.standOf(bits.TrailingZeros32(m)).waits() == waitCluster {
				return true
			}
		}
	}
	return false
}

// gone reports whether all blocks of a cluster are gone.
func (k *cluster) gone() bool {
	for _, c := range k.ctas {
		if !c.gone {
			return false
		}
	}
	return true
}

// arriveCluster executes barrier.cluster.arrive for the lanes of on.
func (r *Run) arriveCluster(w *Warp, in *loader.Instr, on uint32, place uint32) {
	k := w.CTA.cluster
	if twice := on & (w.arrived | w.passed); twice != 0 {
		r.Faults.At(r, ClusterMisuse, w, bits.TrailingZeros32(twice), place, "arrives",
			"a thread arrives at the barrier of its cluster again without barrier.cluster.wait")
	}
	order := event.Release
	if in.Has("relaxed") {
		order = event.Relaxed
	}
	if r.Out.Sync() {
		r.Out.add(event.Event{Kind: event.ClusterArrive, Warp: w.Number, Mask: on, Place: place, Order: order})
	}
	fresh := on &^ w.arrived
	w.arrived |= fresh
	w.passed &^= on
	k.arrived += bits.OnesCount32(fresh)
	w.Writes++
	k.complete(r)
}

// waitCluster executes barrier.cluster.wait for the lanes of on.
func (r *Run) waitCluster(w *Warp, on uint32, place uint32) {
	if without := on &^ (w.arrived | w.passed); without != 0 {
		r.Faults.At(r, ClusterMisuse, w, bits.TrailingZeros32(without), place, "waits",
			"a thread waits at the barrier of its cluster without barrier.cluster.arrive")
		on &^= without
	}
	if through := on & w.passed; through != 0 {
		r.passCluster(w, through, place)
	}
	if stay := on & w.arrived; stay != 0 {
		w.block(r, stay, Standing(waitCluster, 0, 0), place)
	}
}

// passCluster lets lanes continue after the barrier.
func (r *Run) passCluster(w *Warp, on uint32, place uint32) {
	w.passed &^= on
	if r.Out.Sync() {
		r.Out.add(event.Event{Kind: event.ClusterWait, Warp: w.Number, Mask: on, Place: place})
	}
}

// complete completes the phase of the barrier if all live threads have arrived.
func (k *cluster) complete(r *Run) {
	if k.arrived == 0 || k.arrived < k.live {
		return
	}
	k.arrived, k.met = 0, true
	for _, c := range k.ctas {
		c.CountBarrier()
		for _, w := range c.Warps {
			w.passed |= w.arrived
			w.arrived = 0
		}
	}
	for _, c := range k.ctas {
		for _, w := range c.Warps {
			r.wakeCluster(w)
		}
	}
}

// wakeCluster lets lanes continue that wait for a completed phase, those at one place together.
func (r *Run) wakeCluster(w *Warp) {
	var wait uint32
	for m := w.passed & w.Live &^ w.Ready; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros32(m); w.standOf(i).waits() == waitCluster {
			wait |= 1 << i
		}
	}
	all := wait
	for wait != 0 {
		place, same := r.Machine.Place(w, bits.TrailingZeros32(wait)), uint32(0)
		for m := wait; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); r.Machine.Place(w, i) == place {
				same |= 1 << i
			}
		}
		r.passCluster(w, same, place)
		wait &^= same
	}
	if all != 0 {
		r.Machine.Pass(w, all)
		w.wake(r, all)
	}
}

// exited removes lanes that have exited.
func (k *cluster) exited(r *Run, w *Warp, on uint32) {
	k.live -= bits.OnesCount32(on)
	if k.arrived == 0 && w.arrived|w.passed == 0 {
		return
	}
	k.arrived -= bits.OnesCount32(on & w.arrived)
	w.arrived &^= on
	w.passed &^= on
	k.complete(r)
}

// waiting describes what a thread at the cluster barrier waits for.
func (k *cluster) waiting() string {
	var lack []string
	for _, c := range k.ctas {
		n := 0
		for _, w := range c.Warps {
			n += bits.OnesCount32(w.Live &^ w.arrived)
		}
		if n != 0 {
			lack = append(lack, fmt.Sprintf("%d of block %v", n, c.id))
		}
	}
	return fmt.Sprintf("waits at barrier.cluster (%d of %d threads have arrived; it lacks %s)", k.arrived, k.live, strings.Join(lack, ", "))
}

// owner returns the block whose shared memory contains an address, and the address as used in events.
func (c *CTA) owner(addr uint64) (*CTA, uint64, FaultKind) {
	tag := addr >> event.PeerShift
	switch {
	case tag == 0:
		return c, addr, ""
	case tag > uint64(len(c.cluster.ctas)):
		return nil, addr, OutOfBounds
	case tag == uint64(c.rank)+1:
		return c, addr & (1<<event.PeerShift - 1), ""
	}
	of := c.cluster.ctas[tag-1]
	if of.Live == 0 {
		return nil, addr, PeerGone
	}
	return of, addr, ""
}

// reaches reports an access to the shared memory of another block before any phase of the cluster barrier has
// completed: the block may not have started. Blocks of a cooperative launch may know otherwise that it has.
func (r *Run) reaches(w *Warp, of *CTA, lane int, place uint32) {
	if of == w.CTA || w.CTA.cluster.met || r.Launch.Cooperative {
		return
	}
	if f, fresh := r.Faults.count(r, PeerEarly, place, true); fresh {
		f.Message = fmt.Sprintf("the thread accesses the shared memory of block %v of its cluster, which may not have started: no barrier of the cluster is complete", of.id)
		f.Stands = []Stand{{Place: place, Block: w.CTA.id, Thread: w.tid(lane), Threads: 1, Doing: "access it"}}
	}
}

// describePeer describes the address of a faulting access to the shared memory of another block.
func (r *Run) describePeer(kind FaultKind, w *Warp, t touch) string {
	k, rank := w.CTA.cluster, t.addr>>event.PeerShift-1
	at := t.addr & (1<<event.PeerShift - 1)
	if rank >= uint64(len(k.ctas)) {
		return fmt.Sprintf("offset %#x of the shared memory of rank %d of the cluster, which has %d blocks", at, rank, len(k.ctas))
	}
	what := fmt.Sprintf("offset %#x of the shared memory of block %v", at, k.ctas[rank].id)
	if name, from, ok := r.p.SharedVar(r.Launch.Func, at); ok {
		what += fmt.Sprintf(" (%s + %d)", name, at-from)
	}
	switch kind {
	case PeerGone:
		return what + ", which has ended: its shared memory is gone. Put a barrier of the cluster (cluster.sync()) between the access and the end of the block"
	case Misaligned:
		return fmt.Sprintf("%s, which is not a multiple of %d", what, t.size)
	}
	return what
}

// MaxCluster returns the largest number of blocks in a cluster.
func MaxCluster(nonPortable bool) int {
	if nonPortable {
		return maxCluster
	}
	return maxPortableCluster
}

// checkCluster says what is wrong with the cluster shape of a launch.
func checkCluster(l *Launch, bad func(api, format string, args ...any) error) error {
	f, shape := l.Func, l.Cluster
	if f.Cluster.Count() > 0 && f.Cluster != shape {
		return bad("cudaErrorInvalidConfiguration", "the kernel is compiled for clusters of %v blocks (.reqnctapercluster), the launch has %v", f.Cluster, shape)
	}
	if f.ExplicitCluster && shape.Count() == 0 {
		return bad("cudaErrorInvalidConfiguration", "the kernel requires a shape of clusters (.explicitcluster), the launch gives none")
	}
	if shape == (event.Dim3{}) {
		return nil
	}
	n := shape.Count()
	most := MaxCluster(l.NonPortableCluster)
	if n == 0 || n > uint64(most) {
		return bad("cudaErrorInvalidClusterSize", "a cluster of %v has %d blocks, the device allows 1 to %d", shape, n, most)
	}
	if f.MaxCluster != 0 && n > uint64(f.MaxCluster) {
		return bad("cudaErrorInvalidClusterSize", "a cluster of %v has %d blocks, the kernel is compiled for %d (.maxclusterrank)", shape, n, f.MaxCluster)
	}
	if g := l.Grid; g.X%shape.X != 0 || g.Y%shape.Y != 0 || g.Z%shape.Z != 0 {
		return bad("cudaErrorInvalidConfiguration", "grid %v is not a multiple of the clusters of %v blocks", g, shape)
	}
	return nil
}
