package hb

import (
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestProxyFences checks a copy through the async proxy that reads what threads of two blocks of a cluster have stored,
// or overwrites what they have loaded. Each access needs a fence. Another thread that knows of the access may execute
// the fence.
func TestProxyFences(t *testing.T) {
	const peer = 1 << event.PeerShift // rank 0
	type op = func(uint32, event.Event)
	store, load := event.Event{Kind: event.Store, Place: 100}, event.Event{Kind: event.Load, Place: 100}
	copied := event.Event{Kind: event.Bulk, Flags: event.FlagRead, Space: event.Shared, Mask: 1, Aux: 128, Place: 200}
	into := copied
	into.Flags = event.FlagWrite
	fence := func(mask uint32) event.Event { return event.Event{Kind: event.ProxyFence, Mask: mask} }
	all := ^uint32(0)
	meet := func(op op, warps ...uint32) {
		for _, w := range warps {
			op(w, event.Event{Kind: event.ClusterArrive, Order: event.Release})
		}
		for _, w := range warps {
			op(w, event.Event{Kind: event.ClusterWait})
		}
	}
	at := func(e event.Event, addr uint64) event.Event { e.Addr = addr; return e }
	for _, c := range []struct {
		name   string
		ops    func(op op)
		missed bool
	}{
		{"no fence", func(op op) { op(0, store); op(0, event.Event{Kind: event.WarpSync}); op(0, copied) }, true},
		{"each its fence", func(op op) { op(0, store); op(0, fence(all)); op(0, event.Event{Kind: event.WarpSync}); op(0, copied) }, false},
		{"the fence of one", func(op op) { op(0, store); op(0, fence(1)); op(0, event.Event{Kind: event.WarpSync}); op(0, copied) }, true},
		{"the fence of all but one", func(op op) {
			op(0, store)
			op(0, fence(all&^2))
			op(0, event.Event{Kind: event.WarpSync})
			op(0, copied)
		}, true},
		{"the fence of one who knows of all", func(op op) {
			op(0, store)
			op(0, event.Event{Kind: event.WarpSync})
			op(0, fence(1))
			op(0, copied)
		}, false},
		{"loads, no fence", func(op op) { op(0, load); op(0, event.Event{Kind: event.WarpSync}); op(0, into) }, true},
		{"loads, of which one is fenced", func(op op) {
			op(0, load)
			op(0, fence(1))
			op(0, event.Event{Kind: event.WarpSync})
			op(0, into)
		}, true},
		{"loads only", func(op op) { op(0, load); op(0, event.Event{Kind: event.WarpSync}); op(0, copied) }, false},
		{"a peer's", func(op op) { op(1, at(store, peer)); meet(op, 0, 1); op(0, copied) }, true},
		{"a peer's with its fence", func(op op) { op(1, at(store, peer)); op(1, fence(all)); meet(op, 0, 1); op(0, copied) }, false},
		{"a peer's, fenced here", func(op op) { op(1, at(store, peer)); meet(op, 0, 1); op(0, fence(1)); op(0, copied) }, false},
		{"into a peer's", func(op op) { op(0, load); meet(op, 0, 1); op(1, at(into, peer)) }, true},
		{"into a peer's with its fence", func(op op) { op(0, load); op(0, fence(all)); meet(op, 0, 1); op(1, at(into, peer)) }, false},
		{"another block's", func(op op) { op(0, store); op(0, event.Event{Kind: event.WarpSync}); op(0, at(copied, 2*peer)) }, false},
		{"overwritten by a copy", func(op op) {
			op(0, store)
			op(0, fence(all))
			op(0, event.Event{Kind: event.WarpSync})
			op(0, into)
			op(0, event.Event{Kind: event.BulkCommit, Mask: 1})
			op(0, event.Event{Kind: event.BulkWait, Mask: 1})
			op(0, copied)
		}, false},
		{"a read of less than 16 bytes", func(op op) {
			op(0, store)
			op(0, event.Event{Kind: event.WarpSync})
			x := at(copied, 0)
			x.Aux = 12
			op(0, x)
		}, true},
		{"a read that does not begin with 16 bytes", func(op op) {
			op(0, store)
			op(0, fence(1))
			op(0, event.Event{Kind: event.WarpSync})
			x := at(copied, 20)
			x.Aux = 12
			op(0, x)
		}, true},
		{"a read of what one fence covers, and of no more", func(op op) {
			op(0, store)
			op(0, fence(1<<5|1<<6|1<<7))
			op(0, event.Event{Kind: event.WarpSync})
			x := at(copied, 20)
			x.Aux = 12
			op(0, x)
		}, false},
		{"beside a store to peers through the generic proxy", func(op op) {
			op(0, store)
			op(0, event.Event{Kind: event.WarpSync})
			x := at(into, 12)
			x.Aux, x.Barrier, x.Place = 4, 2, 300
			op(0, x)
			op(0, event.Event{Kind: event.BulkDone, Mask: 1, Addr: 0x8000})
			op(0, at(copied, 0))
		}, true},
	} {
		for _, clusters := range []bool{true, false} {
			b := inCluster(c.ops)
			b.Launches[0].Bulk = true
			if !clusters {
				if b.Launches[0].Cluster = (event.Dim3{}); strings.Contains(c.name, "peer") || strings.Contains(c.name, "another") {
					continue
				}
			}
			for _, kept := range histories {
				if got := races(b, detect.ModelCUDA, kept); strings.Contains(got, "p100-p200 proxy") != c.missed {
					t.Errorf("%s (%s, clusters: %v): %q", c.name, kept, clusters, got)
				}
				if got := want(b, detect.ModelCUDA); strings.Contains(got, "p100-p200 proxy") != c.missed {
					t.Errorf("%s, oracle: %q", c.name, got)
				}
			}
		}
	}
}

// TestCopyFences checks that the write of a cp.async takes place when the copy is complete. A fence before that does
// not cover it, even if an mbarrier tracks the copy. An access that follows it or replaces it needs a fence of its own.
func TestCopyFences(t *testing.T) {
	type op = func(uint32, event.Event)
	copies := event.Event{Kind: event.Store, Flags: event.FlagAsync, Place: 100}
	read := event.Event{Kind: event.Bulk, Flags: event.FlagRead, Space: event.Shared, Mask: 1, Aux: 128, Place: 200}
	multiply := read
	multiply.Kind, multiply.Mask = event.Wgmma, ^uint32(0)
	of := func(kind event.Kind) event.Event { return event.Event{Kind: kind} }
	store := event.Event{Kind: event.Store, Place: 300}
	awaited := func(op op) { op(0, copies); op(0, of(event.CopyCommit)); op(0, of(event.CopyWait)) }
	const bar = 0x8000
	track := func(op op) {
		op(0, event.Event{Kind: event.CopyArrive, Addr: bar})
		op(0, event.Event{Kind: event.Atomic, Flags: event.FlagRed, Addr: bar, Size: 4, Order: event.Release, Scope: event.ScopeCluster, Place: 1})
	}
	phase := func(op op) {
		op(0, event.Event{Kind: event.MbarrierDone, Addr: bar})
		op(0, event.Event{Kind: event.Load, Addr: bar, Size: 4, Order: event.Acquire, Scope: event.ScopeCluster, Mask: 1, Place: 2})
	}
	const missed, stored = "p100-p200 copy-proxy", "p200-p300 proxy"
	for _, c := range []struct {
		name string
		ops  func(op op)
		want []string
	}{
		{"no fence", func(op op) { awaited(op); op(0, of(event.WarpSync)); op(0, read) }, []string{missed}},
		{"no fence before wgmma", func(op op) { awaited(op); op(0, of(event.WarpSync)); op(0, multiply) }, []string{missed}},
		{"each its fence", func(op op) { awaited(op); op(0, of(event.ProxyFence)); op(0, of(event.WarpSync)); op(0, read) }, nil},
		{"the fence of the one who reads", func(op op) {
			awaited(op)
			op(0, of(event.WarpSync))
			op(0, event.Event{Kind: event.ProxyFence, Mask: 1})
			op(0, read)
		}, nil},
		{"a fence before the wait", func(op op) {
			op(0, copies)
			op(0, of(event.CopyCommit))
			op(0, of(event.ProxyFence))
			op(0, of(event.CopyWait))
			op(0, of(event.WarpSync))
			op(0, read)
		}, []string{missed}},
		{"a phase and no fence", func(op op) { op(0, copies); track(op); phase(op); op(0, read) }, []string{missed}},
		{"a phase and a fence before it", func(op op) { op(0, copies); track(op); op(0, of(event.ProxyFence)); phase(op); op(0, read) }, []string{missed}},
		{"a phase and a fence", func(op op) {
			op(0, copies)
			track(op)
			phase(op)
			op(0, event.Event{Kind: event.ProxyFence, Mask: 1})
			op(0, read)
		}, nil},
		{"replaced by a store", func(op op) {
			awaited(op)
			op(0, of(event.WarpSync))
			op(0, store)
			op(0, of(event.WarpSync))
			op(0, read)
		}, []string{stored}},
		{"replaces a store", func(op op) {
			op(0, store)
			op(0, of(event.WarpSync))
			awaited(op)
			op(0, of(event.WarpSync))
			op(0, read)
		}, []string{missed}},
		{"replaces a store and has a fence", func(op op) {
			op(0, store)
			op(0, of(event.WarpSync))
			awaited(op)
			op(0, of(event.ProxyFence))
			op(0, of(event.WarpSync))
			op(0, read)
		}, nil},
		{"a load after it", func(op op) {
			awaited(op)
			op(0, of(event.ProxyFence))
			op(0, event.Event{Kind: event.Load, Place: 300})
			op(0, of(event.WarpSync))
			op(0, read)
		}, nil},
		{"a copy in bulk overwrites it", func(op op) {
			awaited(op)
			op(0, of(event.WarpSync))
			into := read
			into.Flags = event.FlagWrite
			op(0, into)
		}, []string{missed}},
	} {
		for _, clusters := range []bool{true, false} {
			b := inCluster(c.ops)
			if b.Launches[0].Bulk = true; !clusters {
				b.Launches[0].Cluster = event.Dim3{}
			}
			var got []string
			for _, kept := range histories {
				got = append(got, races(b, detect.ModelCUDA, kept))
			}
			got = append(got, want(b, detect.ModelCUDA))
			for _, g := range got {
				n := 0
				if g != "" {
					n = strings.Count(g, "\n") + 1
				}
				if n != len(c.want) || n == 1 && !strings.HasPrefix(g, c.want[0]) {
					t.Errorf("%s (clusters: %v): %q, want %q", c.name, clusters, got, c.want)
					break
				}
			}
		}
	}
}

// TestCopiesInFlight checks copies of one thread that others overtake, or that both their mbarrier and their wait
// complete, with fences that know too little.
func TestCopiesInFlight(t *testing.T) {
	type op = func(uint32, event.Event)
	copies := event.Event{Kind: event.Store, Flags: event.FlagAsync, Mask: 1, Size: 16, Place: 100}
	again, store := copies, copies
	again.Place, store.Place, store.Flags = 300, 300, 0
	read := event.Event{Kind: event.Bulk, Flags: event.FlagRead, Space: event.Shared, Mask: 1, Aux: 16, Place: 200}
	one := func(kind event.Kind, addr uint64) event.Event { return event.Event{Kind: kind, Mask: 1, Addr: addr} }
	const bar = 0x8000
	track := func(op op, at uint64) {
		op(0, one(event.CopyArrive, at))
		op(0, event.Event{Kind: event.Atomic, Flags: event.FlagRed, Mask: 1, Addr: at, Size: 4, Order: event.Release, Scope: event.ScopeCluster, Place: 1})
	}
	acquire := func(op op, at uint64, lane int) {
		op(0, event.Event{Kind: event.Load, Addr: at, Size: 4, Order: event.Acquire, Scope: event.ScopeCluster, Mask: 1 << lane, Place: 2})
	}
	const missed, other, pending = "p100-p200 copy-proxy", "p200-p300 copy-proxy", "p100-p300 copy"
	for _, c := range []struct {
		name string
		ops  func(op op)
		want []string
	}{
		{"a fence between the arrival and the phase", func(op op) {
			op(0, copies)
			track(op, bar)
			op(0, one(event.ProxyFence, 0))
			op(0, one(event.MbarrierDone, bar))
			acquire(op, bar, 0)
			op(0, read)
		}, []string{missed}},
		{"another copy, issued before the first is complete", func(op op) {
			op(0, copies)
			track(op, bar)
			op(0, again)
			track(op, bar+8)
			op(0, one(event.MbarrierDone, bar))
			op(0, one(event.MbarrierDone, bar+8))
			acquire(op, bar, 0)
			acquire(op, bar+8, 0)
			op(0, read)
		}, []string{missed, pending, other}},
		{"another copy, issued when the first is complete", func(op op) {
			op(0, copies)
			track(op, bar)
			op(0, one(event.MbarrierDone, bar))
			acquire(op, bar, 0)
			op(0, again)
			track(op, bar+8)
			op(0, one(event.MbarrierDone, bar+8))
			acquire(op, bar+8, 0)
			op(0, read)
		}, []string{other}},
		{"a store while the copy is in flight", func(op op) {
			op(0, copies)
			op(0, one(event.CopyCommit, 0))
			op(0, store)
			op(0, one(event.CopyWait, 0))
			op(0, read)
		}, []string{missed, pending, "p200-p300 proxy"}},
		{"a fence that knows of the arrival, and not of the wait", func(op op) {
			op(0, copies)
			op(0, one(event.CopyCommit, 0))
			track(op, bar)
			acquire(op, bar, 1)
			op(0, one(event.CopyWait, 0))
			op(0, event.Event{Kind: event.ProxyFence, Mask: 2})
			op(0, event.Event{Kind: event.WarpSync, Mask: 3})
			op(0, read)
		}, []string{missed}},
	} {
		for _, clusters := range []bool{true, false} {
			b := inCluster(c.ops)
			if b.Launches[0].Bulk = true; !clusters {
				b.Launches[0].Cluster = event.Dim3{}
			}
			exp := want(b, detect.ModelCUDA)
			lines := strings.Split(exp, "\n")
			if !slices.EqualFunc(lines, c.want, strings.HasPrefix) {
				t.Errorf("%s, oracle: %q, want %q", c.name, exp, c.want)
			}
			for _, kept := range histories {
				if got := races(b, detect.ModelCUDA, kept); got != exp {
					t.Errorf("%s (%s, clusters: %v): %q, want %q", c.name, kept, clusters, got, exp)
				}
			}
		}
	}
}

// TestClusterFences checks that the order of two fence.sc passes through cluster barriers; that a relaxed arrival
// publishes what was done before a fence, in a launch without clusters too; and that the first lane of a warp that
// issues a matrix operation learns nothing by that.
func TestClusterFences(t *testing.T) {
	type op = func(uint32, event.Event)
	global := func(kind event.Kind, addr uint64, order event.Order, place uint32) event.Event {
		e := event.Event{Kind: kind, Space: event.Global, Mask: 1, Addr: addr, Size: 4, Order: order, Place: place}
		if order != event.Weak {
			e.Scope = event.ScopeGPU
		}
		return e
	}
	meet := func(op op, order event.Order, warps ...uint32) {
		for _, w := range warps {
			op(w, event.Event{Kind: event.ClusterArrive, Order: order})
		}
		for _, w := range warps {
			op(w, event.Event{Kind: event.ClusterWait})
		}
	}
	count := func(of event.Order) func(op) {
		return func(op op) {
			fence := event.Event{Kind: event.Fence, Order: of, Scope: event.ScopeGPU}
			op(1, global(event.Store, 4096, event.Weak, 100))
			op(1, fence)
			meet(op, event.Release, 0, 1)
			op(0, global(event.Atomic, 8192, event.Relaxed, 300))
			op(2, global(event.Atomic, 8192, event.Relaxed, 300))
			meet(op, event.Release, 2, 3)
			op(3, fence)
			op(3, global(event.Load, 4096, event.Weak, 200))
		}
	}
	for _, c := range []struct {
		name    string
		cluster uint32
		ops     func(op op)
		race    bool
	}{
		{"fence.sc and a count", 2, count(event.SC), false},
		{"fence.acq_rel and a count", 2, count(event.AcqRel), true},
		{"relaxed after a fence, in a block", 0, func(op op) {
			op(0, global(event.Store, 4096, event.Weak, 100))
			op(0, event.Event{Kind: event.Fence, Order: event.AcqRel, Scope: event.ScopeCluster})
			meet(op, event.Relaxed, 0)
			x := global(event.Load, 4096, event.Weak, 200)
			x.Mask = 2
			op(0, x)
		}, false},
		{"relaxed, in a block", 0, func(op op) {
			op(0, global(event.Store, 4096, event.Weak, 100))
			meet(op, event.Relaxed, 0)
			x := global(event.Load, 4096, event.Weak, 200)
			x.Mask = 2
			op(0, x)
		}, true},
		{"the first lane of a matrix operation", 0, func(op op) {
			x := event.Event{Kind: event.Store, Mask: 2, Place: 100}
			op(0, x)
			op(0, event.Event{Kind: event.Wgmma, Flags: event.FlagRead, Space: event.Shared, Aux: 16, Place: 300})
			x.Kind, x.Mask, x.Place = event.Load, 1, 200
			op(0, x)
		}, true},
	} {
		b := inCluster(c.ops)
		b.Launches[0].Bulk = true
		b.Launches[0].Cluster = event.Dim3{X: c.cluster, Y: 1, Z: 1}
		if c.cluster == 0 {
			b.Launches[0].Cluster = event.Dim3{}
		}
		for _, kept := range histories {
			if got := races(b, detect.ModelCUDA, kept); strings.Contains(got, "p100-p200") != c.race {
				t.Errorf("%s (%s): %q", c.name, kept, got)
			}
		}
		if got := want(b, detect.ModelCUDA); strings.Contains(got, "p100-p200") != c.race {
			t.Errorf("%s, oracle: %q", c.name, got)
		}
	}
}

// TestGlobalProxyFences checks that what the launch has written to global memory through the generic proxy needs a
// fence for global memory before a bulk copy: in the writer after the write, in the thread of the copy, or in a thread
// between. What was read, or written in bulk, needs none.
func TestGlobalProxyFences(t *testing.T) {
	type op = func(uint32, event.Event)
	const flag = 8192
	access := func(kind event.Kind, addr uint64, order event.Order, place uint32) event.Event {
		e := event.Event{Kind: kind, Space: event.Global, Mask: 1, Addr: addr, Size: 4, Order: order, Place: place}
		if order != event.Weak {
			e.Scope = event.ScopeGPU
		}
		return e
	}
	store, load := access(event.Store, 4096, event.Weak, 100), access(event.Load, 4096, event.Weak, 100)
	count := access(event.Atomic, 4096, event.Relaxed, 100)
	give, take := access(event.Store, flag, event.Release, 300), access(event.Load, flag, event.Acquire, 301)
	copied := event.Event{Kind: event.Bulk, Flags: event.FlagRead, Space: event.Global, Mask: 1, Addr: 4096, Aux: 128, Place: 200}
	into := copied
	into.Flags = event.FlagWrite
	adds := into
	adds.Order, adds.Scope, adds.Size = event.Relaxed, event.ScopeGPU, 4
	fence := func(s event.Space, place uint32) event.Event {
		return event.Event{Kind: event.ProxyFence, Mask: 1, Space: s, Place: place}
	}
	all := fence(event.NoSpace, 400)
	of := func(e event.Event, mask uint32) event.Event { e.Mask = mask; return e }
	for _, c := range []struct {
		name   string
		ops    func(op op)
		missed bool
	}{
		{"its own", func(op op) { op(0, store); op(0, copied) }, true},
		{"its own, fenced", func(op op) { op(0, store); op(0, all); op(0, copied) }, false},
		{"its own, fenced before", func(op op) { op(0, store); op(0, all); op(0, store); op(0, copied) }, true},
		{"its own, a fence of shared memory", func(op op) { op(0, store); op(0, fence(event.Shared, 400)); op(0, copied) }, true},
		{"its own, a fence of global memory", func(op op) { op(0, store); op(0, fence(event.Global, 400)); op(0, copied) }, false},
		{"another block's", func(op op) { op(2, store); op(2, give); op(0, take); op(0, copied) }, true},
		{"another block's, fenced there", func(op op) { op(2, store); op(2, all); op(2, give); op(0, take); op(0, copied) }, false},
		{"another block's, fenced there too late", func(op op) { op(2, store); op(2, give); op(2, all); op(0, take); op(0, copied) }, true},
		{"another block's, fenced here", func(op op) { op(2, store); op(2, give); op(0, take); op(0, all); op(0, copied) }, false},
		{"another block's, fenced here too early", func(op op) { op(2, store); op(2, give); op(0, all); op(0, take); op(0, copied) }, true},
		{"another block's, fenced between", func(op op) {
			next := access(event.Store, flag+4, event.Release, 302)
			op(2, store)
			op(2, give)
			op(1, take)
			op(1, all)
			op(1, next)
			next.Kind, next.Order = event.Load, event.Acquire
			op(0, next)
			op(0, copied)
		}, false},
		{"an overwriting copy", func(op op) { op(0, store); op(0, into) }, true},
		{"an overwriting copy of what was read", func(op op) { op(0, load); op(0, into) }, false},
		{"a reduction", func(op op) { op(0, store); op(0, adds) }, true},
		{"a reduction of what was added to", func(op op) { op(0, count); op(0, adds) }, false},
		{"a copy of what was counted", func(op op) { op(0, count); op(0, copied) }, true},
		{"a copy of what was copied", func(op op) {
			op(0, into)
			op(0, event.Event{Kind: event.BulkCommit, Mask: 1})
			op(0, event.Event{Kind: event.BulkWait, Mask: 1})
			x := copied
			x.Place = 201
			op(0, x)
		}, false},
		{"the second lane of a store", func(op op) {
			x := of(store, 3)
			x.Stride = 4
			op(0, x)
			op(0, fence(event.Global, 400))
			op(0, event.Event{Kind: event.WarpSync, Mask: 3})
			op(0, copied)
		}, true},
	} {
		b := inCluster(c.ops)
		b.Launches[0].Bulk, b.Launches[0].Cluster = true, event.Dim3{}
		exp := want(b, detect.ModelCUDA)
		if c.name == "a reduction of what was added to" { // the oracle treats it as a write
			exp = ""
		}
		if strings.Contains(exp, "p100-p200 proxy") != c.missed {
			t.Errorf("%s, oracle: %q", c.name, exp)
		}
		for _, kept := range histories {
			if got := races(b, detect.ModelCUDA, kept); got != exp {
				t.Errorf("%s (%s): %q, want %q", c.name, kept, got, exp)
			}
		}
	}
}

// TestLastGlobalFences checks that of a lane's fences only the last known one is examined, and none if the first is not
// known, however many there are.
func TestLastGlobalFences(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		const many = 100
		b := inCluster(func(op func(uint32, event.Event)) {
			access := func(kind event.Kind, addr uint64, order event.Order) event.Event {
				return event.Event{Kind: kind, Space: event.Global, Mask: 1, Addr: addr, Size: 4, Order: order, Scope: event.ScopeGPU}
			}
			store := access(event.Store, 4096, event.Weak)
			op(0, store)
			op(2, store)
			for range many {
				op(0, event.Event{Kind: event.ProxyFence, Mask: 1, Space: event.Global})
				op(2, event.Event{Kind: event.ProxyFence, Mask: 1, Space: event.Global})
				op(3, event.Event{Kind: event.ProxyFence, Mask: 1, Space: event.Global})
			}
			if op(2, store); fenced {
				op(2, event.Event{Kind: event.ProxyFence, Mask: 1, Space: event.Global})
				op(3, event.Event{Kind: event.ProxyFence, Mask: 1, Space: event.Global})
			}
			op(2, access(event.Store, 8192, event.Release))
			op(0, access(event.Load, 8192, event.Acquire))
			op(0, event.Event{Kind: event.Bulk, Flags: event.FlagRead, Space: event.Global, Mask: 1, Addr: 4096, Aux: 128, Place: 200})
		})
		b.Launches[0].Bulk, b.Launches[0].Cluster = true, event.Dim3{}
		last := slices.IndexFunc(b.Events, func(e event.Event) bool { return e.Kind == event.Bulk })
		rest := *b
		b.Events, rest.Events = b.Events[:last], b.Events[last:]
		d := New(detect.Config{})
		d.Events(b)
		for _, g := range d.globalFences {
			for warp, w := range g.by {
				for i := 1; i < len(w.list) && (warp == 3 || i < len(w.list)-1); i++ {
					w.list[i].view = nil // looking at it panics
				}
			}
		}
		d.Events(&rest)
		if got := slices.ContainsFunc(d.Findings(), func(f detect.Finding) bool { return f.Kind == detect.MissingProxyFence }); got == fenced {
			t.Errorf("fenced: %v; found: %v", fenced, got)
		}
	}
}

// TestForgottenFences checks that the detector says so if more fences for global memory were executed than it keeps.
func TestForgottenFences(t *testing.T) {
	for _, more := range []int{0, 1} {
		b := inCluster(func(op func(uint32, event.Event)) {
			op(0, event.Event{Kind: event.Store, Space: event.Global, Mask: 1, Addr: 4096, Size: 4})
			for range mostProxyFences + more {
				op(0, event.Event{Kind: event.ProxyFence, Mask: 1, Space: event.Global})
			}
		})
		b.Launches[0].Bulk, b.Launches[0].Cluster = true, event.Dim3{}
		d := New(detect.Config{})
		if d.Events(b); len(d.Notes()) != more {
			t.Errorf("%d fences more than are kept: %q", more, d.Notes())
		}
	}
}

// TestManyProxyFences checks that only those fences are dropped that later ones make needless.
func TestManyProxyFences(t *testing.T) {
	for _, barriers := range []bool{true, false} {
		for _, fenced := range []bool{true, false} {
			b := inCluster(func(op func(uint32, event.Event)) {
				op(0, event.Event{Kind: event.Store, Place: 100})
				op(0, event.Event{Kind: event.ProxyFence})
				op(0, event.Event{Kind: event.WarpSync})
				for range 3 * maxProxyFences {
					if op(0, event.Event{Kind: event.ProxyFence, Mask: 1, Place: 1}); barriers {
						op(0, event.Event{Kind: event.WarpSync, Place: 1})
					}
				}
				if !fenced {
					op(0, event.Event{Kind: event.Store, Place: 100})
					op(0, event.Event{Kind: event.WarpSync})
				}
				op(0, event.Event{Kind: event.Bulk, Flags: event.FlagRead, Space: event.Shared, Mask: 1, Aux: 128, Place: 200})
			})
			b.Launches[0].Bulk, b.Launches[0].Cluster = true, event.Dim3{}
			d := New(detect.Config{})
			d.Events(b)
			if got := len(d.Findings()) > 0; got == fenced {
				t.Errorf("barriers: %v, fenced: %v; found: %v", barriers, fenced, got)
			}
		}
	}
}
