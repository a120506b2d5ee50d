package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/all"
	"fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

func judgeText(t *testing.T, text string, o Options) *report.Report {
	t.Helper()
	r, err := Trace(context.Background(), "t.std", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sides is a short form of a finding.
func sides(f *report.Finding) string {
	var b strings.Builder
	for i := range f.Accesses {
		a := &f.Accesses[i]
		p := a.Place()
		fmt.Fprintf(&b, "%s %s by %s at %s:%d:%d; ", a.Op, a.Object.Name, a.Actor, p.File, p.Line, p.Column)
	}
	return fmt.Sprintf("%s%d times, %d variables", b.String(), f.Count, f.Addresses)
}

func want(t *testing.T, r *report.Report, findings ...string) {
	t.Helper()
	var got []string
	for i := range r.Findings {
		got = append(got, sides(&r.Findings[i]))
	}
	if strings.Join(got, "\n") != strings.Join(findings, "\n") {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(findings, "\n"))
	}
}

var fasttrack = Options{Detectors: all.Detectors()[:1], FailOn: detect.Error}

// TestPlaces checks that each pair of locations is one finding, with the last access of the earlier thread.
func TestPlaces(t *testing.T) {
	r := judgeText(t, "A|r(x)|a.c:1\nA|w(x)|a.c:2\nA|w(y)|a.c:2\nA|r(y)|a.c:3:7\nB|w(x)|b.c:1\nB|w(y)|b.c:1\n", fasttrack)
	want(t, r, "write x by A at a.c:2:0; write x by B at b.c:1:0; 2 times, 2 variables",
		"read y by A at a.c:3:7; write y by B at b.c:1:0; 1 times, 1 variables")
	if r.Verdict != report.Found || r.Trace.Events != 6 || r.Trace.Threads != 2 || r.Trace.Variables != 2 {
		t.Errorf("%s, %+v", r.Verdict, r.Trace)
	}
}

// TestLocationsWithoutLines checks that a location without a source line is shown at its first use in the trace, and
// that accesses without location are distinguished by variable.
func TestLocationsWithoutLines(t *testing.T) {
	r := judgeText(t, "A|w(x)|7\nA|w(y)|7\nB|w(y)|8\nB|w(x)|8\nA|w(p)\nA|w(q)\nB|w(q)\nB|w(p)\n", fasttrack)
	want(t, r, "write y by A at t.std:1:0; write y by B at t.std:3:0; 2 times, 2 variables",
		"write p by A at t.std:5:0; write p by B at t.std:8:0; 1 times, 1 variables",
		"write q by A at t.std:6:0; write q by B at t.std:7:0; 1 times, 1 variables")
	if f := r.Findings[0].Accesses[1].Place().Function; f != "location_8" {
		t.Errorf("the place is in %q", f)
	}
}

// TestMaxFindings checks that findings beyond the limit are counted.
func TestMaxFindings(t *testing.T) {
	o := fasttrack
	o.MaxFindings = 1
	r := judgeText(t, "A|w(x)|1\nB|w(x)|2\nA|w(x)|3\n", o)
	if len(r.Findings) != 1 || r.More != 1 {
		t.Errorf("%d findings and %d more", len(r.Findings), r.More)
	}
}

// TestMetadata checks that slimfast uses less memory than fasttrack if many variables have one history of many readers.
func TestMetadata(t *testing.T) {
	var b bytes.Buffer
	w := trace.NewWriter(&b)
	const variables, threads = 20_000, 16
	for th := range uint32(threads) {
		for x := range uint32(variables) {
			w.Events([]cpu.Event{{Op: cpu.Read, Thread: uint16(th), Object: x}})
		}
	}
	if err := w.Close(&trace.Names{}); err != nil {
		t.Fatal(err)
	}
	r := judgeText(t, b.String(), Options{Detectors: all.Detectors()[:2]})
	if flat, slim := r.Detectors[0].Metadata, r.Detectors[1].Metadata; flat < 10*slim {
		t.Errorf("fasttrack %d bytes, slimfast %d", flat, slim)
	}
}

// TestStopped checks that the events read before the context ended, or before an error, are judged.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	text := strings.Repeat("A|w(x)|1\n", 3*batch)
	r, err := Trace(ctx, "t.std", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, fasttrack)
	if err != nil || r.Verdict != report.NotChecked || r.Trace.Events != batch || r.Skipped[0].Reason != "interrupted" {
		t.Errorf("%+v, %v", r, err)
	}
	wrong := errors.New("no such file")
	if _, err := Trace(ctx, "t.std", func() (io.ReadCloser, error) { return nil, wrong }, fasttrack); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
}
