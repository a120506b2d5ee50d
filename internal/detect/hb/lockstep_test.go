package hb

import (
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// TestLockstep executes a store by lane 0 and a load by lane 1 separately. The race is an error only if a branch may
// have parted the two lanes and they have not reconverged since.
func TestLockstep(t *testing.T) {
	const none, one, other, both = 4, 1, 2, 3 // places, see oracle.Places
	launch := event.Launch{ID: 1, Kernel: "k", Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 4, Y: 1, Z: 1}}
	for _, c := range []struct {
		name                    string
		store, load, reconverge uint32
		want                    detect.Severity
	}{
		{"two arms", one, other, 0, detect.Error},
		{"one arm", one, one + 4, 0, detect.Warning},
		{"after the branch", one, none, 0, detect.Warning},
		{"a place on two arms", both, both, 0, detect.Error},
		{"two arms, of a loop", one, other, 0xf, detect.Warning},
		{"two arms, the lanes of one reconverged", one, other, 3, detect.Error},
	} {
		b := &event.Batch{Launches: []event.Launch{launch}, Events: []event.Event{{Kind: event.KernelBegin, Launch: 1},
			{Kind: event.Store, Launch: 1, Place: c.store, Mask: 1, Space: event.Shared, Size: 4, Flags: event.FlagWrite}}}
		if c.reconverge != 0 {
			b.Events = append(b.Events, event.Event{Kind: event.Reconverge, Launch: 1, Mask: c.reconverge})
		}
		b.Events = append(b.Events, event.Event{Kind: event.Load, Launch: 1, Place: c.load, Mask: 2, Space: event.Shared, Size: 4, Flags: event.FlagRead})
		for _, history := range []string{"fast", "interned", "plain"} {
			d := Spec.New(detect.Config{Places: oracle.Places{}, Options: map[string]string{"history": history}})
			d.Events(b)
			kind := map[detect.Severity]detect.Kind{detect.Error: detect.MissingBarrier, detect.Warning: detect.WarpSynchronous}[c.want]
			if fs := d.Findings(); len(fs) != 1 || fs[0].Severity != c.want || fs[0].Kind != kind {
				t.Errorf("%s, history %s: %+v, want one %v of kind %s", c.name, history, fs, c.want, kind)
			}
		}
	}
}
