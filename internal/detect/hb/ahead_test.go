package hb

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// TestReadersAhead checks the message for a ring filled by bulk copies when a thread reads a stage before the copy that
// it should wait for. The message must not say that the stage was freed too early, or that a wait for matrix operations
// let too many be pending.
func TestReadersAhead(t *testing.T) {
	const bar, free = 0x8000, 0x9000
	type op = func(uint32, event.Event)
	fill := func(op op, number int64) {
		op(1, event.Event{Kind: event.Bulk, Flags: event.FlagWrite, Space: event.Shared, Mask: 1, Aux: 128, Barrier: 1, Stride: number | bar<<32, Place: 100})
	}
	filled := func(op op, number int64) {
		op(1, event.Event{Kind: event.BulkDone, Mask: 1, Addr: bar, Stride: number, Place: 101})
		op(1, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar, Place: 101})
	}
	wait := func(op op) {
		op(0, event.Event{Kind: event.Load, Order: event.Acquire, Scope: event.ScopeCTA, Addr: bar, Size: 4, Place: 102})
	}
	number := int64(100)
	multiply := func(op op) {
		number++
		op(0, event.Event{Kind: event.Wgmma, Flags: event.FlagRead, Space: event.Shared, Aux: 64, Stride: number, Place: 200})
		op(0, event.Event{Kind: event.WgmmaCommit, Place: 201})
	}
	pending := func(op op, n uint32) { op(0, event.Event{Kind: event.WgmmaWait, Aux: n, Place: 202}) }
	release := func(op op) {
		op(0, event.Event{Kind: event.Store, Order: event.Release, Scope: event.ScopeCTA, Mask: 1, Addr: free, Size: 4, Place: 203})
		op(1, event.Event{Kind: event.Load, Order: event.Acquire, Scope: event.ScopeCTA, Mask: 1, Addr: free, Size: 4, Place: 103})
	}
	// turn fills the stage and multiplies its content. All operations except the newest are awaited.
	turn := func(op op, newest uint32) {
		fill(op, 1)
		filled(op, 1)
		wait(op)
		multiply(op)
		pending(op, newest)
	}
	for _, c := range []struct {
		name string
		ops  func(op op)
		want detect.Kind
		why  string
	}{
		{"right", func(op op) {
			turn(op, 0)
			release(op)
			fill(op, 2)
		}, "", ""},
		{"one too many pending", func(op op) {
			turn(op, 1)
			release(op)
			fill(op, 2)
		}, detect.GroupPending, "all groups except the newest 1"},
		{"one too many pending, complete since", func(op op) {
			turn(op, 1)
			release(op)
			pending(op, 0)
			fill(op, 2)
		}, detect.GroupPending, "all groups except the newest 1"},
		{"not freed at all", func(op op) {
			turn(op, 1)
			fill(op, 2)
		}, detect.StageReuse, "nothing signals to the writing thread"},
		{"a turn ahead", func(op op) {
			turn(op, 0)
			release(op)
			multiply(op)
			pending(op, 1)
			fill(op, 2)
		}, detect.CopyNotAwaited, "the stage was free"},
		{"a turn ahead, complete", func(op op) {
			turn(op, 0)
			release(op)
			multiply(op)
			pending(op, 0)
			fill(op, 2)
		}, detect.CopyNotAwaited, "the stage was free"},
		{"a turn ahead, by a wait for the phase before", func(op op) {
			turn(op, 0)
			release(op)
			wait(op)
			multiply(op)
			pending(op, 0)
			fill(op, 2)
		}, detect.WrongPhase, "the stage was free"},
		{"before the first copy", func(op op) {
			multiply(op)
			pending(op, 1)
			fill(op, 1)
		}, detect.CopyNotAwaited, "the stage was free"},
		{"before the first copy, but of what was stored", func(op op) {
			op(0, event.Event{Kind: event.Store, Size: 4, Stride: 4, Place: 204})
			op(0, event.Event{Kind: event.ProxyFence, Place: 205})
			op(0, event.Event{Kind: event.WarpSync, Place: 206})
			multiply(op)
			pending(op, 1)
			fill(op, 1)
		}, detect.StageReuse, "nothing signals to the writing thread"},
		{"a load that has waited for no phase, of the second copy", func(op op) {
			fill(op, 1)
			filled(op, 1)
			fill(op, 2)
			filled(op, 2)
			op(0, event.Event{Kind: event.Load, Size: 4, Stride: 4, Place: 200})
		}, detect.CopyNotAwaited, "completes with a phase"},
		{"a load before the first copy", func(op op) {
			op(0, event.Event{Kind: event.Load, Size: 4, Stride: 4, Place: 200})
			fill(op, 1)
		}, detect.CopyNotAwaited, "nothing had been written there"},
		{"a load before the first copy, of what was stored", func(op op) {
			op(0, event.Event{Kind: event.Store, Size: 4, Stride: 4, Place: 204})
			op(0, event.Event{Kind: event.ProxyFence, Place: 205})
			op(0, event.Event{Kind: event.Load, Size: 4, Stride: 4, Place: 200})
			fill(op, 1)
		}, detect.StageReuse, "nothing signals that the buffer is free"},
		{"a load while the second copy is in flight", func(op op) {
			fill(op, 1)
			filled(op, 1)
			wait(op)
			fill(op, 2)
			op(0, event.Event{Kind: event.Load, Size: 4, Stride: 4, Place: 200})
		}, detect.StageReuse, "nothing signals that the buffer is free"},
		{"a load of what the first copy has brought, by another mbarrier", func(op op) {
			fill(op, 1)
			filled(op, 1)
			wait(op)
			const other = bar + 8
			op(1, event.Event{Kind: event.Bulk, Flags: event.FlagWrite, Space: event.Shared, Mask: 1, Aux: 128, Barrier: 1, Stride: 2 | other<<32, Place: 100})
			op(1, event.Event{Kind: event.BulkDone, Mask: 1, Addr: other, Stride: 2, Place: 101})
			op(0, event.Event{Kind: event.Load, Size: 4, Stride: 4, Place: 200})
		}, detect.StageReuse, "nothing signals that the buffer is free"},
	} {
		b := inCluster(c.ops)
		l := &b.Launches[0]
		l.Bulk, l.Cluster, l.Grid, l.Block = true, event.Dim3{}, event.Dim3{X: 2, Y: 1, Z: 1}, event.Dim3{X: 64, Y: 1, Z: 1}
		for _, kept := range histories {
			d := New(detect.Config{Places: oracle.Places{}, Options: map[string]string{"history": kept}})
			d.Events(b)
			found := detect.Kind("")
			why := ""
			for _, f := range d.Findings() {
				if f.Accesses[0].Place == 200 || f.Accesses[1].Place == 200 {
					found, why = f.Kind, f.Message
				}
			}
			if found != c.want || !strings.Contains(why, c.why) {
				t.Errorf("%s (%s): %q (%s), want %q (%s)", c.name, kept, found, why, c.want, c.why)
			}
		}
	}
}

// TestClusterScope checks that a fence of scope cluster is wide enough between blocks of a cluster, and that the
// message names the other fence, of scope cta.
func TestClusterScope(t *testing.T) {
	const peer = 1 << event.PeerShift // rank 0
	fence := func(s event.Scope, place uint32) event.Event {
		return event.Event{Kind: event.Fence, Order: event.AcqRel, Scope: s, Mask: 1, Place: place}
	}
	for _, c := range []struct {
		release, acquire event.Scope
		want             detect.Kind
		place            uint32
	}{
		{event.ScopeCluster, event.ScopeCluster, "", 0},
		{event.ScopeCluster, event.ScopeCTA, detect.FenceScope, 301},
		{event.ScopeCTA, event.ScopeCluster, detect.FenceScope, 300},
	} {
		b := inCluster(func(op func(uint32, event.Event)) {
			op(1, event.Event{Kind: event.Store, Mask: 1, Addr: peer, Size: 4, Place: 100})
			op(1, fence(c.release, 300))
			op(1, event.Event{Kind: event.Store, Mask: 1, Addr: peer + 64, Size: 4, Order: event.Relaxed, Scope: event.ScopeCluster, Place: 101})
			op(0, event.Event{Kind: event.Load, Mask: 1, Addr: 64, Size: 4, Order: event.Relaxed, Scope: event.ScopeCluster, Place: 201})
			op(0, fence(c.acquire, 301))
			op(0, event.Event{Kind: event.Load, Mask: 1, Size: 4, Place: 200})
		})
		for _, kept := range histories {
			d := New(detect.Config{Places: oracle.Places{}, Options: map[string]string{"history": kept}})
			d.Events(b)
			var kind detect.Kind
			why := ""
			for _, f := range d.Findings() {
				kind, why = f.Kind, f.Message
			}
			narrow := map[uint32]event.Scope{300: c.release, 301: c.acquire}[c.place]
			if kind != c.want || kind != "" && !strings.Contains(why, "fence.acq_rel."+narrow.String()) {
				t.Errorf("%v, %v (%s): %s: %s", c.release, c.acquire, kept, kind, why)
			}
		}
	}
}
