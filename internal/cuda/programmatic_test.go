package cuda

import (
	"context"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/event"
)

// TestEventsOfLaunches checks what is ordered after an event that a launch records.
func TestEventsOfLaunches(t *testing.T) {
	const kernels = `.version 8.0
.target sm_90
.address_size 64
.visible .entry plain() { ret; }
.visible .entry triggers() { griddepcontrol.launch_dependents; ret; }
.visible .entry waits() { griddepcontrol.wait; ret; }
`
	for _, x := range []struct {
		name           string
		of             uint64
		first, second  string
		earlier, whole bool // what the second launch comes after: the work before the first one, and that one
		last           bool // a third launch, after the second, comes after the first
	}{
		{"begin", calls.RecordBegin, "triggers", "waits", true, false, false},
		{"no wait", calls.RecordTrigger, "triggers", "plain", true, false, false},
		{"wait", calls.RecordTrigger, "triggers", "waits", true, true, true},
		{"no trigger", calls.RecordTrigger, "plain", "plain", true, true, true},
		{"at start", calls.RecordTriggerAtStart, "plain", "plain", true, false, false},
		{"at start, wait", calls.RecordTriggerAtStart, "plain", "waits", true, true, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newScript(t)
			m, err := s.c.LoadModule(Image{"k.ptx", kernels})
			s.must(err)
			launch := func(name string, id StreamID) {
				k, err := m.Kernel(name)
				s.must(err)
				s.must(s.c.Launch(context.Background(), k, LaunchConfig{Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}, Stream: id}, nil))
			}
			a, b := s.stream(1), s.stream(1)
			ev, err := s.c.CreateEvent(EventDisableTiming)
			s.must(err)
			launch("plain", a) // 1
			s.must(s.c.recordEvent(ev, a, 0, x.of))
			launch(x.first, a) // 2
			launch("plain", a) // 3: has no event
			s.must(s.c.WaitEvent(b, 0, ev))
			launch(x.second, b) // 4
			launch("waits", b)  // 5
			for _, c := range []struct {
				before, after uint32
				want          bool
			}{{1, 4, x.earlier}, {2, 4, x.whole}, {3, 4, false}, {2, 5, x.last}, {3, 5, false}} {
				if got := s.log.before[c.after][c.before]; got != c.want {
					t.Errorf("launch %d before launch %d: %v, want %v", c.before, c.after, got, c.want)
				}
			}
			s.must(s.c.RecordEvent(ev, a, 0)) // a plain record takes its place
			s.must(s.c.WaitEvent(b, 0, ev))
			launch("plain", b) // 6
			if !s.log.before[6][2] || !s.log.before[6][3] {
				t.Error("a later record of the event does not tell of all work before")
			}
		})
	}
}
