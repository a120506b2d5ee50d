package detect

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestWarpFix checks that the fix for lanes of one warp is not a barrier that exists already or that their branches
// forbid.
func TestWarpFix(t *testing.T) {
	launch := event.Launch{ID: 1}
	const lane, other = 3, 20
	apart, whole, barrier := &Sync{Lanes: 1<<lane | 1}, &Sync{Lanes: ^uint32(0)}, &Sync{}
	for _, c := range []struct {
		category Category
		warp     uint32
		sync     *Sync
		want     string
	}{
		{LockstepRace, 0, nil, "put __syncwarp()"},
		{LockstepRace, 0, apart, "a mask that names both lanes"},
		{LockstepRace, 0, whole, "put __syncwarp()"}, // one before both and one after both
		{SameBlock, 0, nil, "end the branch after the first access"},
		{SameBlock, 0, apart, "a mask that names both lanes"},
		{SameBlock, 0, barrier, "end the branch after the first access"},
		{SameBlock, 1, barrier, "put __syncthreads()"},
	} {
		later := c.sync
		if later == apart {
			later = &Sync{Lanes: 1 << other}
		}
		f := NewRace("hb", &Facts{Category: c.category,
			Earlier: Access{Op: Write, Place: 1, Launch: launch, Lane: lane, Sync: c.sync},
			Later:   Access{Op: Read, Place: 2, Launch: launch, Warp: c.warp, Lane: other, Sync: later}})
		if !strings.Contains(f.Fix, c.want) {
			t.Errorf("category %d, warp %d: fix %q, want %q", c.category, c.warp, f.Fix, c.want)
		}
	}
}

// TestUpdateFix checks that the load and the store of one update, by different threads, are not told to order the two.
func TestUpdateFix(t *testing.T) {
	load, store := Access{Op: Read, Place: 1, Launch: event.Launch{ID: 1}}, Access{Op: Write, Place: 2, Updates: true, Load: 1, Warp: 1, Launch: event.Launch{ID: 1}}
	for _, c := range []struct {
		category       Category
		earlier, later Access
		load           uint32
		want           bool
	}{
		{SameBlock, load, store, 1, true},
		{CrossBlock, load, store, 1, true},
		{CrossBlock, store, load, 1, true},
		{CrossBlock, load, store, 3, false}, // of another element, by another load
	} {
		for _, a := range []*Access{&c.earlier, &c.later} {
			if a.Updates {
				a.Load = c.load
			}
			a.Launch.Block = event.Dim3{X: 64, Y: 1, Z: 1}
			if c.category == CrossBlock {
				a.Launch.Block.X = 32
			}
		}
		f := NewRace("hb", &Facts{Category: c.category, Earlier: c.earlier, Later: c.later})
		if got := strings.Contains(f.Fix, "make the whole update one atomic operation"); got != c.want {
			t.Errorf("category %d: fix %q", c.category, f.Fix)
		}
	}
}

// TestHostFix checks that a race of the program's own instructions on the host is mended by a wait, and one of a call by streams too.
func TestHostFix(t *testing.T) {
	kernel := Access{Op: Write, Place: 1, Launch: event.Launch{ID: 1}}
	for host, want := range map[string][2]string{
		"host code" + event.HostPlace([]event.Frame{{File: "a.cu", Line: 7}}): {"a write of a kernel and host code at a.cu:7 touch", "let the host wait before"},
		"cudaMemcpyAsync (stream 2)":                                          {"a write of a kernel and cudaMemcpyAsync (stream 2) touch", "cudaStreamWaitEvent"},
	} {
		f := NewRace("hb", &Facts{Category: CrossLaunch, Earlier: kernel, Later: Access{Op: Read, Place: 2, Host: host}})
		if !strings.Contains(f.Message, want[0]) || !strings.Contains(f.Fix, want[1]) {
			t.Errorf("%s: message %q, fix %q", host, f.Message, f.Fix)
		}
	}
}

// TestOnePlace checks that the fix for one store by many threads is not a barrier between the store and itself.
func TestOnePlace(t *testing.T) {
	a := Access{Op: Write, Place: 7, Launch: event.Launch{ID: 1}}
	b := a
	b.Warp = 1
	if f := NewRace("hb", &Facts{Category: SameBlock, Earlier: a, Later: b}); !strings.Contains(f.Fix, "let one thread write") {
		t.Errorf("fix %q", f.Fix)
	}
}

// TestFlag checks that a race names the flag or lock that causes it, and no other.
func TestFlag(t *testing.T) {
	fenced := &Sync{}
	for _, c := range []struct {
		name  string
		facts Facts
		kind  Kind
		flag  bool
	}{
		{"no fences", Facts{Handover: &Handover{InScope: true}}, MissingFence, true},
		{"another thread signals", Facts{Handover: &Handover{InScope: true, Apart: true}}, MissingBarrier, true},
		{"nothing wrong with it", Facts{Handover: &Handover{InScope: true, Release: fenced, Acquire: fenced, ReleaseWide: true,
			AcquireWide: true}}, Unordered, false},
		{"a leader's lock, around which barriers lack", Facts{ByLeader: true, Handover: &Handover{InScope: true}}, MissingBarrier, false},
		{"none", Facts{}, Unordered, false},
	} {
		f := &c.facts
		f.Category = CrossBlock
		f.Earlier = Access{Op: Write, Place: 1, Launch: event.Launch{ID: 1}}
		f.Later = Access{Op: Read, Place: 2, Launch: event.Launch{ID: 1}, Warp: 1}
		want := [2]uint32{}
		if f.Handover != nil {
			f.Handover.Write, f.Handover.Read = 3, 4
		}
		if c.flag {
			want = [2]uint32{3, 4}
		}
		if got := NewRace("hb", f); got.Kind != c.kind || got.Flag != want {
			t.Errorf("%s: %s with flag %v, want %s with %v", c.name, got.Kind, got.Flag, c.kind, want)
		}
	}
}

// TestAtomicHandedOver checks a value that atomic operations have accumulated and that another block reads by a plain
// load: the message names what is wrong with the handover, if there was one. Between blocks of a cluster, cluster scope
// suffices.
func TestAtomicHandedOver(t *testing.T) {
	fenced := &Sync{What: "__threadfence_block()"}
	for _, c := range []struct {
		name     string
		handover *Handover
		block    uint32
		kind     Kind
		text     string
	}{
		{"none", nil, 1, MixedAtomic, "the plain access is not atomic"},
		{"no fence", &Handover{InScope: true}, 1, MissingFence, "by threads of different blocks"},
		{"another thread signals", &Handover{InScope: true, Apart: true}, 1, MissingBarrier, "no __syncthreads()"},
		{"a fence of the block", &Handover{InScope: true, Release: fenced, Acquire: fenced}, 1, FenceScope, "does not include the other block"},
		{"no fence, in one block", &Handover{InScope: true}, 0, MixedAtomic, "the plain access is not atomic"},
		{"by a lock", &Handover{InScope: true, Lock: true}, 1, MixedAtomic, "the plain access is not atomic"},
	} {
		l := event.Launch{ID: 1, Block: event.Dim3{X: 32, Y: 1, Z: 1}}
		got := NewRace("hb", &Facts{Category: AtomicWithPlain, Handover: c.handover, Earlier: Access{Op: AtomicOp, Order: event.Relaxed, Place: 1, Launch: l, Space: event.Global},
			Later: Access{Op: Read, Place: 2, Launch: l, Warp: c.block, Space: event.Global}})
		if got.Kind != c.kind || !strings.Contains(got.Message, c.text) {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, got.Kind, got.Message, c.kind, c.text)
		}
	}
}

// TestAcrossBlocks checks that the fix for threads of different blocks does not mention a CTA barrier, and that it
// names cluster scope within a cluster.
func TestAcrossBlocks(t *testing.T) {
	l := event.Launch{ID: 1, Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}}
	for _, warp := range []uint32{0, 1} {
		f := &Facts{Category: CopyPending, Copy: &CopyState{Bulk: true, Read: true}, Earlier: Access{Op: Write, Async: true, Launch: l}, Later: Access{Op: Read, Launch: l, Warp: warp}}
		if got := NewRace("hb", f); strings.Contains(got.Fix, "__syncthreads") != (warp == 0) {
			t.Errorf("warp %d: %q", warp, got.Fix)
		}
	}
	for _, cluster := range []uint32{1, 2} {
		l.Cluster = event.Dim3{X: cluster, Y: 1, Z: 1}
		f := &Facts{Category: ScopeRace, Earlier: Access{Op: AtomicOp, Order: event.Release, Scope: event.ScopeCluster, Launch: l},
			Later: Access{Op: AtomicOp, Order: event.Acquire, Scope: event.ScopeCTA, Launch: l, Warp: 1}}
		got := NewRace("hb", f)
		if strings.Contains(got.Fix, "cluster scope") != (cluster == 2) || strings.Contains(got.Message, "the second has block scope") != (cluster == 2) {
			t.Errorf("cluster of %d: %q, %q", cluster, got.Message, got.Fix)
		}
	}
}

// TestJoin checks that the message about a flag that lacks both a fence and a barrier mentions both, whichever race
// comes first, and that the barrier is mentioned for that flag only.
func TestJoin(t *testing.T) {
	race := func(h Handover) *Facts {
		return &Facts{Category: CrossBlock, Earlier: Access{Op: Write, Place: 1}, Handover: &h}
	}
	own, others := race(Handover{Write: 3, InScope: true}), race(Handover{Write: 3, InScope: true, Apart: true})
	elsewhere := race(Handover{Write: 4, InScope: true, Apart: true})
	for _, c := range []struct {
		f, g    *Facts
		barrier bool
	}{{own, others, true}, {others, own, true}, {own, own, false}, {own, elsewhere, false}, {own.Join(others), own, true}, {own, own.Join(others), true}} {
		got := NewRace("hb", c.f.Join(c.g))
		if got.Kind != MissingFence || strings.Contains(got.Fix, "__syncthreads()") != c.barrier || !strings.Contains(got.Fix, "__threadfence()") {
			t.Errorf("%s: %s", got.Kind, got.Fix)
		}
	}
}

// TestSyncName checks the name of each kind of event that a report may show as the nearest synchronisation.
func TestSyncName(t *testing.T) {
	for k, want := range map[event.Kind]string{event.BarrierDone: "bar.sync 3", event.WarpSync: "bar.warp.sync", event.ClusterWait: "barrier.cluster.wait",
		event.ProxyFence: "fence.proxy.async", event.MapFence: "fence.proxy.tensormap", event.WgmmaWait: "wgmma.wait_group", event.CoreWait: "tcgen05.wait",
		event.Fence: "fence.acquire.gpu", event.Load: "ld.acquire.gpu", event.Atomic: "atom.acquire.gpu"} {
		if got := SyncName(k, event.Acquire, event.ScopeGPU, 3, true); got != want {
			t.Errorf("kind %d: %q, want %q", k, got, want)
		}
	}
}

// TestCoreWords checks that messages do not call an operation of the tensor cores on tensor memory a copy.
func TestCoreWords(t *testing.T) {
	core := func(op Op, space event.Space) Access { return Access{Op: op, Space: space, Async: true} }
	for _, c := range []struct {
		earlier, later Access
		want           string
	}{
		{core(Write, event.Tensor), core(Read, event.Tensor), "a write by an operation of the tensor cores and a read by an operation of the tensor cores of the same bytes of tensor memory, "},
		{core(Write, event.Tensor), core(Write, event.Tensor), "writes by two operations of the tensor cores of the same bytes of tensor memory, "},
		{core(Read, event.Shared), Access{Op: Write, Space: event.Shared}, "a read and a write of the same bytes of shared memory, "},
		{core(Read, event.Shared), core(Write, event.Shared), "a read and a write by an asynchronous copy of the same bytes of shared memory, "},
	} {
		f := NewRace("d", &Facts{Category: CopyPending, Earlier: c.earlier, Later: c.later, Copy: &CopyState{Bulk: true, Core: true, How: event.CoreCommits}})
		if !strings.HasPrefix(f.Message, c.want) {
			t.Errorf("%q, want %q", f.Message, c.want)
		}
	}
}
