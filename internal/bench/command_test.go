package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func runMain(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(args, &o, &e)
	return code, o.String(), e.String()
}

func TestReport(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	code, out, errs := runMain("-engine", "ref", "-size", "tiny", "-rounds", "1", "-kernels", "^(saxpy|histogram)$", "-parts", "kernels,growth,cores", "-json", "-write", page)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var r Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || len(r.Growth) != 1 || len(r.Scaling) != 2 || r.Whole != nil {
		t.Fatalf("%d rows, %d steps of growth, %d comparisons of cores, %v", len(r.Rows), len(r.Growth), len(r.Scaling), r.Whole)
	}
	for _, x := range r.Rows {
		if x.Bare <= 0 || x.Events <= 0 || x.Watched <= 0 || x.WatchedOverBare <= 0 || x.KeptOverDefault < 1 || x.DefaultOverDefault != 1 ||
			x.MetadataPerByte <= 0 || x.Lanes == 0 || x.Wrong != "" || !x.Exact || r.Compiler != "" && x.BareOverNative <= 1 {
			t.Errorf("%+v", x)
		}
	}
	if k := Kernels()[0]; r.Rows[0].Digest != k.Digest(references[k.Name](t, k.New(k.Sizes[Tiny]))) {
		t.Errorf("the digest of %s is %s", k.Name, r.Rows[0].Digest)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# How fast is it?\n", "## Kernels on `ref`\n", "\n| saxpy ", "\n| histogram ", "\n| of scattered ", "\n## Growth", "\n## One core and "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-engine reff":    `there is no engine "reff"; did you mean "ref"?`,
		"-kernels xyz":    `no kernel matches "xyz"`,
		"-kernels (":      "missing closing",
		"-size big":       `there is no size "big"`,
		"-parts kernel":   `there is no part "kernel"; did you mean "kernels"?`,
		"-detector bh":    `there is no detector "bh"`,
		"-mode bear":      `there is no mode "bear"`,
		"saxpy":           `"saxpy" is no flag`,
		"-frobnicate":     "frobnicate",
		"-rounds several": "invalid value",
	} {
		if code, _, errs := runMain(strings.Fields(args)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
	if code, out, _ := runMain("-help"); code != 0 || !strings.Contains(out, "-kernels") {
		t.Errorf("help: exit code %d, %s", code, out)
	}
}

func TestProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds")
	}
	name := filepath.Join(t.TempDir(), "cpu.prof")
	code, out, errs := runMain("-profile", name, "-mode", "bare", "-kernels", "saxpy", "-size", "tiny")
	if info, err := os.Stat(name); code != 0 || err != nil || info.Size() == 0 || !strings.HasPrefix(out, "saxpy") {
		t.Errorf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
}

func TestPeak(t *testing.T) {
	code, out, errs := runMain("-peak", "2000", "-engine", "ref")
	if bytes, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64); code != 0 || err != nil || bytes < 1<<20 {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

func TestText(t *testing.T) {
	r := &Report{CPU: "a processor", Cores: 2, Compiler: "cc", Detector: "hb", Rounds: 3,
		Rows: []Row{
			{Kernel: "a", Engine: "e", Coalesced: true, Size: 10, Lanes: 5e6, Native: 0.001, Bare: 0.1, BareOverNative: 100, EventsOverBare: 1.5,
				WatchedOverBare: 2, WatchedOverNative: 200, MetadataPerByte: 0.5, KeptOverDefault: 1.2, DefaultOverDefault: 1, Digest: "d1", Exact: true},
			{Kernel: "b", Engine: "e", Size: 10, Lanes: 5e6, Native: 0.001, Bare: 0.1, BareOverNative: 25, EventsOverBare: 1.5,
				WatchedOverBare: 8, WatchedOverNative: 200, MetadataPerByte: 2, KeptOverDefault: 1.2, DefaultOverDefault: 1, Digest: "d2"},
			{Kernel: "c", Engine: "f", Bare: 0.1, Digest: "d3", Wrong: "finding"},
		},
		Peaks: []Peak{{"e", 1 << 20, true, 8 << 20, 50 << 20}},
		Whole: &Whole{Corpus: []CorpusTime{{"e", 10, 9, 1.5}}, Run: 2, NVCC: 1.25, Built: 0.125}}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(b.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"| a | 10 | 5.00 | 50.0 | 1.00 | 100 | 1.50 | 2.00 | 200 | 0.50 | 1.20 | 1.00 | d1 | = |",
		"| b | 10 | 5.00 | 50.0 | 1.00 | 25.0 | 1.50 | 8.00 | 200 | 2.00 | 1.20 | 1.00 | d2 | ≈ |",
		"| geometric mean | | | 50.0 | | 50.0 | 1.50 | 4.00 | 200 | 1.00 | 1.20 | 1.00 | | |",
		"| of scattered | | | 50.0 | | 25.0 | 1.50 | 8.00 | 200 | 2.00 | 1.20 | 1.00 | | |",
		"| c | 0 | | | | | | | | 0.00 | 0.00 | 0.00 | d3 | WRONG |",
		"| e | 1048576 | hb | 8.00 | 50.0 |",
		"| embedded corpus on `e`, 9 of 10 programs as expected | 1.50 s |",
		"| nvcc alone, the same program and flags | 1.25 s |",
	} {
		if !strings.Contains(strings.Join(rows, "\n"), want+"\n") {
			t.Errorf("no row %s in\n%s", want, b.String())
		}
	}
	if err := Wrong(r.Rows); err == nil || !strings.Contains(err.Error(), "f: finding") {
		t.Error(err)
	}
	if err := r.WriteText(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestMedian(t *testing.T) {
	for want, v := range map[float64][]float64{0: nil, 3: {3}, 2: {3, 1}, 5: {9, 5, 1}} {
		if got := median(v); got != want {
			t.Errorf("the median of %v is %v", v, got)
		}
	}
	if got := medianRatio([]float64{2, 9, 4}, []float64{1, 1, 1}); got != 4 {
		t.Errorf("the median ratio is %v", got)
	}
}
