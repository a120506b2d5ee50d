package judge

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/all"
	"fencepost.dev/fencepost/internal/cpu/trace"
)

// FuzzDetectors gives the detectors all events that a reader accepts. No detector may fail. slimfast must find the
// races that fasttrack finds, and wcp must find a race of each variable for which they find one.
func FuzzDetectors(f *testing.F) {
	f.Add("A|r(x)\nB|r(x)\nC|r(x)\nB|r(y)\nC|r(y)\nA|fork(D)\nD|w(x)\nA|join(D)\nA|w(x)\n")
	f.Add("A|rel(l)\nA|acq(l)\nA|acq(m)\nA|w(x)\nA|rel(l)\nB|acq(l)\nB|w(x)\nA|rel(m)\nB|rel(l)\nB|rel(l)\n")
	f.Add("thread,op,object,location\nA,barrier-enter,b,\nB,barrier-enter,b,\nA,barrier-leave,b,\nA,barrier-enter,b,\nB,barrier-leave,b,\n" +
		"A,acquire-shared,l,\nA,release-shared,l,\nB,acquire,l,\nB,release-shared,l,\nA,atomic-update,v,\nB,atomic-read,v,\nB,write,x,\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := trace.NewReader(bytes.NewReader([]byte(text)))
		if err != nil {
			return
		}
		var races [3][]cpu.Race
		var detectors []cpu.Detector
		for i, spec := range all.Detectors() {
			detectors = append(detectors, spec.New(func(r cpu.Race) { races[i] = append(races[i], r) }))
		}
		events := make([]cpu.Event, 7)
		for {
			n, err := r.Next(events)
			for _, d := range detectors {
				d.Events(events[:n])
			}
			if err != nil {
				if e := (*trace.Error)(nil); !errors.Is(err, io.EOF) && !errors.As(err, &e) {
					t.Fatal(err)
				}
				break
			}
		}
		if !slices.Equal(races[0], races[1]) {
			t.Fatalf("fasttrack finds %v, slimfast %v", races[0], races[1])
		}
		for _, r := range races[0] {
			if !slices.ContainsFunc(races[2], func(w cpu.Race) bool { return w.Variable == r.Variable && w.Event <= r.Event }) {
				t.Fatalf("wcp does not find %v, but %v", r, races[2])
			}
		}
		for _, d := range detectors {
			d.MemoryBytes()
		}
	})
}
