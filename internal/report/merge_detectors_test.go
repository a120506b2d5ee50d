package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

func raceBy(detector string, kind detect.Kind, lines ...int) Finding {
	f := Finding{Class: detect.Race, Kind: kind, Severity: detect.Error, Detector: detector, Count: 1}
	for _, line := range lines {
		f.Accesses = append(f.Accesses, Access{Op: detect.Write, Frames: []event.Frame{{File: "a.cu", Line: line, Function: "k"}}})
	}
	return f
}

// TestMergeDetectors checks that a race is one finding, whichever detectors found it under whichever kinds.
func TestMergeDetectors(t *testing.T) {
	predicted := raceBy("gwcp", detect.Unordered, 7, 8)
	predicted.Predicted = true
	out := Merge([]Finding{
		predicted,
		raceBy("hb", detect.MissingFence, 3, 5), raceBy("hb", detect.MissingBarrier, 5, 3),
		raceBy("gwcp", detect.Unordered, 5, 3), raceBy("scord", detect.MissingFence, 3, 5),
		raceBy("hb", detect.Unordered, 7, 8), raceBy("scord", detect.Unordered, 1, 1),
	})
	r := &Report{Findings: out, Detectors: []Detector{{Name: "hb", Judged: true, Misses: 1}, {Name: "gwcp", Metadata: 2048}, {Name: "scord", Seconds: 1, Bare: 4}}}
	var got []string
	for _, f := range out {
		got = append(got, strings.Join(append([]string{string(f.Kind), f.Detector}, f.Also...), " "))
	}
	want := []string{"unordered scord", "missing-barrier hb gwcp scord", "unordered hb gwcp"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
	if slices.ContainsFunc(out, func(f Finding) bool { return f.Predicted }) {
		t.Error("a race that was observed is called predicted")
	}
	for name, n := range map[string]int{"hb": 2, "gwcp": 2, "scord": 2} {
		if len(r.IDs(name)) != n {
			t.Errorf("%s has findings %v, want %d", name, r.IDs(name), n)
		}
	}
	var b bytes.Buffer
	(&Text{}).Detectors(&b, r)
	table := "detector  findings  misses  false alarms  time/bare  metadata\n" +
		"hb               2       1             0          -         -\n" +
		"gwcp             2       0             0          -  2.00 KiB\n" +
		"scord            2       0             0        1.2         -\n"
	if b.String() != table {
		t.Errorf("table\n%s, want\n%s", b.String(), table)
	}
	again := Merge(out)
	if len(again) != len(out) || !slices.Equal(again[0].Also, out[0].Also) {
		t.Error("merging again changes findings")
	}
}
