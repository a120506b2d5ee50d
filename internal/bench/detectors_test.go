package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
)

// TestDeadlock runs the locks of the hash table's buckets with warps in lockstep, where lanes wait forever for other
// lanes of their warp.
func TestDeadlock(t *testing.T) {
	lockstep := all.Detectors()[slices.IndexFunc(all.Detectors(), func(s detect.Spec) bool { return s.Lockstep })]
	for _, k := range Kernels() {
		if k.Name != "hashtable" {
			continue
		}
		for name, engine := range session.Engines() {
			_, why, err := k.bounded(t.Context(), k.New(k.Sizes[Small]), Setup{Engine: engine, Detector: &lockstep}, time.Minute)
			if why != "is a deadlock (warps in lockstep)" || err != nil {
				t.Errorf("%s: %q, %v", name, why, err)
			}
		}
	}
}

// TestDetectors checks that each detector on tiny kernels has a number or a reason why it has none.
func TestDetectors(t *testing.T) {
	if !testsize.Long() {
		t.Skip("runs the corpus with every detector")
	}
	code, out, errs := runMain("-engine", "warp", "-size", "tiny", "-rounds", "1", "-kernels", "^(saxpy|stencil)$", "-parts", "detectors", "-json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var r Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	d := r.Detectors
	for _, s := range all.Detectors() {
		if !slices.Contains(d.Names, s.Name) {
			t.Errorf("%s is not measured", s.Name)
		}
	}
	costs := func(what string, cs []Cost) {
		if len(cs) != len(d.Names) {
			t.Fatalf("%s: %d costs for %d detectors", what, len(cs), len(d.Names))
		}
		for i, c := range cs {
			if c.Detector != d.Names[i] || c.Seconds <= 0 || c.OverBare <= 0 || c.Why != "" || c.Wrong != "" || c.Findings != 0 ||
				c.MetadataPerByte <= 0 && c.Detector != "gwcp:report=predicted" {
				t.Errorf("%s: %+v", what, c)
			}
		}
	}
	if len(d.Kernels) != 2 || len(d.Growth) != 1 || len(d.Growth[0].Steps) != len(blockSteps) || len(d.Compressed) == 0 || len(d.Suites) < 4 {
		t.Fatalf("%+v", d)
	}
	for _, k := range d.Kernels {
		if k.Bare <= 0 || k.Digest == "" || k.Blocks == 0 {
			t.Errorf("%+v", k)
		}
		costs(k.Kernel, k.Costs)
	}
	for _, s := range d.Growth[0].Steps {
		costs("growth", s.Costs)
	}
	for _, s := range d.Suites {
		if s.Programs == 0 || len(s.OverBare) != len(d.Names) || slices.Min(s.OverBare) < 1 || slices.Max(s.Metadata) == 0 {
			t.Errorf("%+v", s)
		}
	}
	for _, c := range d.Compressed {
		if c.On.Seconds <= 0 || c.Off.Seconds <= 0 || c.Off.MetadataPerByte < c.On.MetadataPerByte {
			t.Errorf("%+v", c)
		}
	}
}

// TestDetectorText checks the text of numbers, of missing numbers with their reasons, and of means.
func TestDetectorText(t *testing.T) {
	r := &Report{CPU: "a processor", Cores: 2, Detector: "hb", Rounds: 1, Detectors: &Detectors{Engine: "e", Names: []string{"x", "y"},
		Kernels: []DetectorKernel{
			{Kernel: "a", Coalesced: true, Size: 10, Bare: 0.001, Digest: "d1", Costs: []Cost{
				{Detector: "x", OverBare: 2, MetadataPerByte: 0.5}, {Detector: "y", Why: "did not end within 10s"}}},
			{Kernel: "b", Size: 20, Bare: 0.002, Digest: "d2", Costs: []Cost{
				{Detector: "x", OverBare: 8, MetadataPerByte: 1, Findings: 3}, {Detector: "y", OverBare: 3, Wrong: "word 1"}}},
		},
		Suites: []DetectorSuite{{"race", 3, []float64{2, 3}, []uint64{1024, 0}}},
		Growth: []DetectorGrowth{{"a", []GrowthStep{{4, Cost{Seconds: 8e-6}, []Cost{{Seconds: 16e-6, MetadataPerByte: 2}, {Why: "no"}}}}}},
		Compressed: []Compression{{"a", 5, Cost{Detector: "x", OverBare: 2, MetadataPerByte: 1}, Cost{OverBare: 3, MetadataPerByte: 4}},
			{"b", 5, Cost{Detector: "x", OverBare: 2, MetadataPerByte: 1}, Cost{Why: "did not end within 10s"}}},
	}}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(b.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"| a | 10 | 1.00 | 2.00 | - |",
		"| b | 20 | 2.00 | 8.00 | WRONG |",
		"| mean of coalesced | | | 2.00 | - |",
		"| mean of scattered | | | 8.00 | 3.00 |",
		"- `y` on a did not end within 10s.",
		"- `x` on b: false findings, 3 of them.",
		"- `y` on b: word 1",
		"| a | d1 | 0.50 | - |",
		"| race | 3 | time | 2.00 | 3.00 |",
		"| | | KiB | 1.00 | |",
		"| none | 2.00 | 0 |",
		"| x | 4.00 | 2.00 |",
		"| y | - | - |",
		"- `y` on 4 blocks no.",
		"| a | 5 | x | 2.00 | 3.00 | 1.50 | 1.00 | 4.00 | 4.00 |",
		"| b | 5 | x | 2.00 | - | - | 1.00 | - | - |",
		"`x` without compression on b did not end within 10s.",
	} {
		if !strings.Contains(strings.Join(rows, "\n"), want+"\n") && !strings.HasSuffix(strings.Join(rows, "\n"), want) {
			t.Errorf("no row %s in\n%s", want, b.String())
		}
	}
	if err := r.Detectors.Wrong(); err == nil || !strings.Contains(err.Error(), "b on e with y: word 1") {
		t.Error(err)
	}
}
