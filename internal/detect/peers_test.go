package detect

import (
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestPeerFilter checks that accesses to the shared memory of other blocks are removed while a launch with clusters
// runs, and nothing else.
func TestPeerFilter(t *testing.T) {
	const peer = 2 << event.PeerShift
	load := func(launch uint32, at uint64, s event.Space) event.Event {
		return event.Event{Kind: event.Load, Launch: launch, Mask: 3, Addr: at, Stride: 4, Size: 4, Space: s}
	}
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Cluster: event.Dim3{X: 2, Y: 1, Z: 1}}, {ID: 2}}, Addrs: []uint64{0, peer}, Events: []event.Event{
		{Kind: event.KernelBegin, Launch: 1}, {Kind: event.KernelBegin, Launch: 2, Side: 1},
		load(1, 0, event.Shared), load(1, peer, event.Shared), load(1, peer, event.Global),
		{Kind: event.Load, Launch: 1, Mask: 3, Flags: event.FlagScattered, Size: 4, Space: event.Shared},
		{Kind: event.Bulk, Launch: 1, Mask: 1, Addr: peer, Aux: 16, Space: event.Shared},
		load(2, peer, event.Shared), {Kind: event.KernelEnd, Launch: 1}, load(1, peer, event.Shared)}}
	var f PeerFilter
	kept := f.Filter(b).Events
	want := []int{0, 1, 2, 4, 7, 8, 9}
	if len(kept) != len(want) {
		t.Fatalf("%d events are left, want %d", len(kept), len(want))
	}
	for i, k := range want {
		if kept[i] != b.Events[k] {
			t.Errorf("event %d is %+v, want %+v", i, kept[i], b.Events[k])
		}
	}
	plain := &event.Batch{Events: []event.Event{load(3, peer, event.Shared)}}
	if f.Filter(plain) != plain {
		t.Error("a batch without clusters is copied")
	}
}
