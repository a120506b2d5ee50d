package gwcp

import (
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestWaits checks that a thread that has waited for operations of its warpgroup, or of its warp on tensor memory,
// comes after what the issuing warps did before the issue, and not after what they have done since.
func TestWaits(t *testing.T) {
	all := ^uint32(0)
	store := event.Event{Kind: event.Store, Flags: event.FlagWrite, Space: event.Shared, Mask: 1, Size: 4, Place: 1}
	load := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Shared, Mask: 1, Size: 4, Place: 2, Warp: 1}
	by := func(warp uint32, e event.Event) event.Event {
		if e.Warp = warp; e.Mask == 0 {
			e.Mask = all
		}
		return e
	}
	other := func(e event.Event) event.Event { e.Mask = 2; return e }
	multiply := event.Event{Kind: event.Wgmma, Flags: event.FlagRead, Space: event.Shared, Addr: 256, Aux: 16}
	commit, wait := event.Event{Kind: event.WgmmaCommit}, event.Event{Kind: event.WgmmaWait}
	but1 := wait
	but1.Aux = 1
	read := event.Event{Kind: event.Core, Flags: event.FlagRead, Barrier: event.CoreLoads, Space: event.Shared, Addr: event.TensorBase, Aux: 64}
	write := event.Event{Kind: event.Core, Flags: event.FlagWrite, Barrier: event.CoreStores, Space: event.Shared, Addr: event.TensorBase, Aux: 64}
	read2, wait2 := event.Event{Kind: event.CoreWait, Flags: event.FlagRead}, event.Event{Kind: event.CoreWait, Flags: event.FlagWrite}
	for _, c := range []struct {
		name   string
		events []event.Event
		race   bool
	}{
		{"nothing", []event.Event{store, load}, true},
		{"another warp's operation", []event.Event{store, by(0, multiply), by(0, commit), by(1, multiply), by(1, commit), by(1, wait), load}, false},
		{"no wait", []event.Event{store, by(0, multiply), by(0, commit), by(1, multiply), by(1, commit), load}, true},
		{"not committed", []event.Event{store, by(0, multiply), by(1, commit), by(0, commit), by(0, multiply), by(1, but1), load}, true},
		{"after the operation", []event.Event{by(0, multiply), store, by(0, commit), by(1, multiply), by(1, commit), by(1, wait), load}, true},
		{"a warp of another warpgroup", []event.Event{store, by(0, multiply), by(0, commit), by(4, multiply), by(4, commit), by(4, wait), by(4, load)}, true},
		{"a load of tensor memory", []event.Event{store, by(0, read), by(0, read2), other(by(0, load))}, false},
		{"a store to tensor memory", []event.Event{store, by(0, write), by(0, wait2), other(by(0, load))}, false},
		{"a store where a load was waited for", []event.Event{store, by(0, write), by(0, read2), other(by(0, load))}, true},
		{"another warp's load", []event.Event{store, by(0, read), by(1, read2), load}, true},
	} {
		b := event.Batch{Launches: []event.Launch{{ID: 1, Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 256, Y: 1, Z: 1}, Synchronises: true, Bulk: true}}}
		b.Events = append(b.Events, event.Event{Kind: event.KernelBegin})
		for _, e := range c.events {
			e.Launch = 1
			b.Events = append(b.Events, e)
		}
		d := New(detect.Config{})
		d.Events(&b)
		if got := len(d.Findings()) > 0; got != c.race {
			t.Errorf("%s: found %v", c.name, d.Findings())
		}
	}
}
