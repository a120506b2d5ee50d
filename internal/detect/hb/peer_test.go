package hb

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// inCluster builds a batch of a launch of two clusters of two blocks of 32 threads. op adds an event of a warp, and
// each warp is a block. The scattered addresses are 64 in the own block and 64 in the block of rank 0.
func inCluster(ops func(op func(warp uint32, e event.Event))) *event.Batch {
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1},
		Cluster: event.Dim3{X: 2, Y: 1, Z: 1}, Synchronises: true}}, Addrs: []uint64{64, 1<<event.PeerShift + 64}}
	b.Events = append(b.Events, event.Event{Kind: event.KernelBegin, Launch: 1})
	ops(func(warp uint32, e event.Event) {
		e.Launch, e.Warp = 1, warp
		if e.Mask == 0 {
			e.Mask = ^uint32(0)
		}
		if e.Place == 0 {
			e.Place = uint32(len(b.Events))
		}
		switch e.Kind {
		case event.Load, event.Store, event.Atomic:
			if e.Size == 0 {
				e.Size, e.Stride = 4, 4
			}
			if e.Space == event.NoSpace {
				e.Space = event.Shared
			}
			e.Flags |= map[event.Kind]event.Flags{event.Load: event.FlagRead, event.Store: event.FlagWrite, event.Atomic: event.FlagRead | event.FlagWrite}[e.Kind]
		}
		b.Events = append(b.Events, e)
	})
	for w := range uint32(4) {
		b.Events = append(b.Events, event.Event{Kind: event.Exit, Launch: 1, Warp: w, Mask: ^uint32(0)})
	}
	b.Events = append(b.Events, event.Event{Kind: event.KernelEnd, Launch: 1})
	return b
}

// TestPeers checks that accesses to the shared memory of other blocks of a cluster race unless the cluster barrier
// orders them.
func TestPeers(t *testing.T) {
	const peer = 1 << event.PeerShift // rank 0
	type op = func(uint32, event.Event)
	sync := func(op op, order event.Order, warps ...uint32) {
		for _, w := range warps {
			op(w, event.Event{Kind: event.ClusterArrive, Order: order})
		}
		for _, w := range warps {
			op(w, event.Event{Kind: event.ClusterWait})
		}
	}
	store, load := event.Event{Kind: event.Store, Place: 100}, event.Event{Kind: event.Load, Addr: peer, Place: 200}
	init := event.Event{Kind: event.Store, Place: 100, Barrier: event.StoreInits}
	fenceInits := event.Event{Kind: event.InitFence, Order: event.Release, Scope: event.ScopeCluster}
	for _, c := range []struct {
		name string
		ops  func(op op)
		race bool
	}{
		{"nothing orders", func(op op) { op(0, store); op(1, load) }, true},
		{"the load first", func(op op) { op(1, load); op(0, store) }, true},
		{"a barrier", func(op op) { op(0, store); sync(op, event.Release, 0, 1); op(1, load) }, false},
		{"a barrier, the load first", func(op op) { op(1, load); sync(op, event.Release, 0, 1); op(0, store) }, false},
		{"relaxed", func(op op) { op(0, store); sync(op, event.Relaxed, 0, 1); op(1, load) }, true},
		{"relaxed after a fence", func(op op) {
			op(0, store)
			op(0, event.Event{Kind: event.Fence, Order: event.AcqRel, Scope: event.ScopeCluster})
			sync(op, event.Relaxed, 0, 1)
			op(1, load)
		}, false},
		{"a fence of initialisations releases no data", func(op op) { op(0, store); op(0, fenceInits); sync(op, event.Relaxed, 0, 1); op(1, load) }, true},
		{"a fence of initialisations releases them", func(op op) { op(0, init); op(0, fenceInits); sync(op, event.Relaxed, 0, 1); op(1, load) }, false},
		{"an initialisation after the fence of such", func(op op) { op(0, fenceInits); op(0, init); sync(op, event.Relaxed, 0, 1); op(1, load) }, true},
		{"an initialisation without a fence", func(op op) { op(0, init); sync(op, event.Relaxed, 0, 1); op(1, load) }, true},
		{"an initialisation, and a flag", func(op op) {
			op(0, init)
			op(0, fenceInits)
			op(0, event.Event{Kind: event.Store, Order: event.Relaxed, Scope: event.ScopeCluster, Mask: 1, Addr: 512, Place: 101})
			op(1, event.Event{Kind: event.Load, Order: event.Acquire, Scope: event.ScopeCluster, Mask: 1, Addr: peer + 512, Place: 201})
			op(1, event.Event{Kind: event.Load, Mask: 1, Addr: peer, Place: 200})
		}, false},
		{"a fence of initialisations after a fence", func(op op) {
			op(0, store)
			op(0, event.Event{Kind: event.Fence, Order: event.AcqRel, Scope: event.ScopeCluster})
			op(0, event.Event{Kind: event.Store, Addr: 128, Barrier: event.StoreInits})
			op(0, fenceInits)
			sync(op, event.Relaxed, 0, 1)
			op(1, load)
			op(1, event.Event{Kind: event.Load, Addr: peer + 128})
		}, false},
		{"a fence of the block", func(op op) {
			op(0, store)
			op(0, event.Event{Kind: event.Fence, Order: event.AcqRel, Scope: event.ScopeCTA})
			sync(op, event.Relaxed, 0, 1)
			op(1, load)
		}, true},
		{"between arrival and wait", func(op op) {
			op(0, event.Event{Kind: event.ClusterArrive, Order: event.Release})
			op(0, store)
			op(1, event.Event{Kind: event.ClusterArrive, Order: event.Release})
			op(0, event.Event{Kind: event.ClusterWait})
			op(1, event.Event{Kind: event.ClusterWait})
			op(1, load)
		}, true},
		{"arrived at the next phase", func(op op) {
			op(0, event.Event{Kind: event.ClusterArrive, Order: event.Release})
			op(1, event.Event{Kind: event.ClusterArrive, Order: event.Release})
			op(0, event.Event{Kind: event.ClusterWait})
			op(0, store)
			op(0, event.Event{Kind: event.ClusterArrive, Order: event.Release})
			op(1, event.Event{Kind: event.ClusterWait})
			op(1, load)
		}, true},
		{"many phases", func(op op) {
			for range 5 {
				sync(op, event.Release, 0, 1)
			}
			op(0, store)
			sync(op, event.Release, 0, 1)
			op(1, load)
			sync(op, event.Release, 0, 1)
			op(0, store)
		}, false},
		{"old phases are forgotten", func(op op) {
			op(0, store)
			sync(op, event.Release, 0, 1)
			sync(op, event.Release, 0, 1)
			op(0, store)
			sync(op, event.Relaxed, 0, 1)
			op(1, load)
		}, true},
		{"its own", func(op op) { op(0, store); op(0, event.Event{Kind: event.Load, Addr: 0, Place: 200}) }, false},
		{"lanes of its own block and of others", func(op op) {
			op(1, event.Event{Kind: event.Store, Flags: event.FlagScattered, Mask: 3, Place: 100})
			op(0, event.Event{Kind: event.Load, Addr: 2*peer + 64, Mask: 1, Place: 200})
		}, true},
		{"another offset", func(op op) { op(0, store); op(1, event.Event{Kind: event.Load, Addr: peer + 128, Place: 200}) }, false},
		{"another block", func(op op) { op(1, store); op(1, load) }, false},
		{"another cluster", func(op op) { op(0, store); op(3, load) }, false},
		{"the barrier of another cluster", func(op op) { op(0, store); sync(op, event.Release, 2, 3); op(1, load) }, true},
		{"global memory", func(op op) {
			op(0, event.Event{Kind: event.Store, Addr: 4096, Space: event.Global, Place: 100})
			sync(op, event.Release, 0, 1)
			op(1, event.Event{Kind: event.Load, Addr: 4096, Space: event.Global, Place: 200})
		}, false},
		{"a flag", func(op op) {
			op(0, store)
			op(0, event.Event{Kind: event.Store, Order: event.Release, Scope: event.ScopeCluster, Mask: 1, Addr: 512, Place: 101})
			op(1, event.Event{Kind: event.Load, Order: event.Acquire, Scope: event.ScopeCluster, Mask: 1, Addr: peer + 512, Place: 201})
			op(1, event.Event{Kind: event.Load, Mask: 1, Addr: peer, Place: 200})
		}, false},
		{"a flag of block scope", func(op op) {
			op(0, event.Event{Kind: event.Store, Mask: 1, Place: 100})
			op(0, event.Event{Kind: event.Store, Order: event.Release, Scope: event.ScopeCTA, Mask: 1, Addr: 512, Place: 101})
			op(1, event.Event{Kind: event.Load, Order: event.Acquire, Scope: event.ScopeCluster, Mask: 1, Addr: peer + 512, Place: 201})
			op(1, event.Event{Kind: event.Load, Mask: 1, Addr: peer, Place: 200})
		}, true},
	} {
		b := inCluster(c.ops)
		for _, kept := range histories {
			if got := races(b, detect.ModelCUDA, kept); strings.Contains(got, "p100") && strings.Contains(got, "p200") != c.race {
				t.Errorf("%s (%s): %q", c.name, kept, got)
			} else if (got != "") != c.race {
				t.Errorf("%s (%s): %q", c.name, kept, got)
			}
		}
	}
	d := New(detect.Config{Places: oracle.Places{}})
	d.Events(inCluster(func(op op) { op(0, store); op(1, load) }))
	f := d.Findings()
	if len(f) != 1 || len(f[0].Accesses) != 2 {
		t.Fatalf("%+v", f)
	}
	for _, a := range f[0].Accesses {
		if a.Space != event.Shared || a.Address != 0 || a.Owner == nil || *a.Owner != (event.Dim3{}) {
			t.Errorf("%+v", a)
		}
	}
}
