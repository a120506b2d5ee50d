package hb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestKindsOfCopies checks that the kind of a race with a copy (cp.async) follows from what its threads have waited
// for. A program is a sequence of steps by warps of a block; the first lane of the warp executes each step. "0 copy x"
// is place 1, a load is place 2, and "0 wait 1" leaves one group pending.
func TestKindsOfCopies(t *testing.T) {
	for _, tt := range []struct{ name, program, want string }{
		{"waited", "0 copy x; 0 commit; 0 wait 0; bar; 1 load x", ""},
		{"no wait", "0 copy x; 0 commit; bar; 1 load x", "copy-not-awaited"},
		{"no wait by any, and no barrier", "0 copy x; 0 commit; 1 copy y; 1 commit; 1 load x", "copy-not-awaited"},
		{"a wait, and no barrier", "0 copy x; 0 commit; 1 copy y; 1 commit; 1 wait 0; 1 load x", "missing-barrier"},
		{"a barrier before the wait", "0 copy x; 0 commit; 1 copy y; 1 commit; bar; 1 wait 0; 1 load x", "missing-barrier"},
		{"a barrier before the wait of the next turn", "0 copy x; 0 commit; 0 wait 1; 1 copy y; 1 commit; 1 wait 1; bar; 1 copy z; 1 commit; 1 wait 1; 1 load x", "missing-barrier"},
		{"a wait for too few", "0 copy x; 0 commit; 1 copy y; 1 commit; 0 wait 1; 1 wait 1; bar; 1 load x", "group-pending"},
		{"a reader that copies nothing", "0 copy x; 0 commit; 1 load x", "missing-barrier"},
		{"a reader that copies the next stage", "0 copy x; 0 commit; 0 copy z; 0 commit; 1 copy y; 1 commit; 1 copy w; 1 commit; 1 wait 1; bar; 1 load x", "missing-barrier"},
	} {
		b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}}},
			Events: []event.Event{{Kind: event.KernelBegin, Launch: 1}}}
		for _, step := range strings.Split(tt.program, "; ") {
			e := event.Event{Launch: 1, Mask: 1}
			var op, arg string
			if step == "bar" {
				e.Kind, e.Flags, e.Mask = event.Arrive, event.FlagWait, ^uint32(0)
				b.Events = append(b.Events, e)
				e.Warp = 1
				b.Events = append(b.Events, e)
				e.Kind = event.BarrierDone
			} else if _, err := fmt.Sscan(step+" 0", &e.Warp, &op, &arg); err != nil {
				t.Fatal(step, err)
			}
			access := func(k event.Kind, f event.Flags, place uint32) {
				e.Kind, e.Flags, e.Place, e.Space, e.Size, e.Addr = k, f, place, event.Shared, 4, uint64(arg[0])*64
			}
			switch op {
			case "copy":
				access(event.Store, event.FlagWrite|event.FlagAsync, 1)
			case "load":
				access(event.Load, event.FlagRead, 2)
			case "commit":
				e.Kind = event.CopyCommit
			case "wait":
				e.Kind = event.CopyWait
				fmt.Sscan(arg, &e.Aux)
			}
			b.Events = append(b.Events, e)
		}
		d := New(detect.Config{})
		d.Events(b)
		var got []string
		for _, f := range d.Findings() {
			got = append(got, string(f.Kind))
		}
		if slices.Sort(got); strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %s\n  gives %q\n  not   %q", tt.name, tt.program, got, tt.want)
		}
	}
}
