package session

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cuda/standin"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/testsize"
)

var (
	hostPrograms = flag.Int("host-programs", 0, "random host programs to run; 0: 400 where tests may take long, 120 with -short, and 200 otherwise")
	hostSeed     = flag.Uint64("host-seed", 0, "the first of their seeds")
)

// TestHostPrograms runs random sequences of API calls, correct and wrong. It compares the results and the report with a
// model of the API.
func TestHostPrograms(t *testing.T) {
	exe := interpreter(t)
	n := *hostPrograms
	if n == 0 {
		n = testsize.Of(120, 150, 400)
	}
	verdicts := map[report.Verdict]int{}
	start := time.Now()
	for seed := *hostSeed; seed < *hostSeed+uint64(n) && !t.Failed(); seed++ {
		m := newHostModel(seed)
		m.generate()
		verdicts[m.verdict()]++
		m.run(t, exe, seed)
	}
	t.Logf("%d programs in %v: %v", n, time.Since(start), verdicts)
	for _, v := range []report.Verdict{report.Clean, report.Found, report.NotChecked, report.ProgramFailed} {
		if verdicts[v] == 0 && n >= 200 {
			t.Errorf("no program with verdict %s", v)
		}
	}
}

// interpreter builds the program that makes the calls.
func interpreter(t *testing.T) string {
	t.Helper()
	return hostProgram(t, "testdata/host/interpreter.c")
}

// hostProgram builds a C program with the stand-in libraries, and with the libraries in more.
func hostProgram(t *testing.T, source string, more ...string) string {
	t.Helper()
	libraries := standins(t)
	exe := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-w", "-g1", "-o", exe, source, "-L" + libraries, "-Wl,-rpath," + libraries, "-lcudart_static"}, more...)
	out, err := exec.Command("gcc", append(args, "-lpthread", "-ldl")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// standins returns the folder of the stand-in libraries.
func standins(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not installed")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := standin.Build(context.Background(), "gcc", filepath.Join(cache, "fencepost-test"))
	if err != nil {
		t.Fatal(err)
	}
	return libraries
}

// run runs the script and compares.
func (m *hostModel) run(t *testing.T, exe string, seed uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	script := strings.Join(m.script, ";")
	r, err := Run(ctx, &Options{Seeds: 1, Jobs: 1, FailOn: detect.Error}, &Program{Path: exe, Args: []string{script}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if got, want := strings.Fields(out.String()), m.codes; !slices.Equal(got, want) {
		complain("the calls return %v, want %v", got, want)
	}
	if r.Verdict != m.verdict() {
		complain("verdict %s, want %s", r.Verdict, m.verdict())
	}
	m.compare(r, complain)
	if len(wrong) > 0 {
		var text []string
		for _, f := range r.Findings {
			text = append(text, fmt.Sprintf("%s %s: %s", f.Severity, f.Kind, f.Message))
		}
		t.Errorf("seed %d\n%s\n%s\nfindings:\n%s\nnot checked: %v", seed, strings.Join(m.script, "\n"), strings.Join(wrong, "\n"), strings.Join(text, "\n"), r.Skipped)
	}
}

// compare compares the findings, without their places and counts.
func (m *hostModel) compare(r *report.Report, complain func(string, ...any)) {
	calls, minor, races, fault := map[string]bool{}, map[string]bool{}, map[string]bool{}, false
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case f.Class == detect.Race:
			races[f.Severity.String()] = true
		case f.Class == detect.MemoryFault:
			fault = true
		case f.Severity == detect.Error:
			calls[string(f.Kind)+" "+f.Accesses[0].Host] = true
		case f.Kind == "launch-refused" || f.Kind == "error-ignored":
		default:
			minor[string(f.Kind)+" "+f.Accesses[0].Host] = true
		}
		if f.Class == detect.API && f.Accesses[0].Place().Line == 0 {
			complain("finding %s has no place", f.Kind)
		}
	}
	if !maps.Equal(calls, m.findings) {
		complain("failed calls %v, want %v", calls, m.findings)
	}
	want := maps.Clone(m.minor)
	maps.DeleteFunc(want, func(k string, _ bool) bool { return m.findings[k] }) // one finding with the grave ones of its place
	if !maps.Equal(minor, want) {
		complain("mild failures %v, want %v", minor, want)
	}
	// A pair of places is reported once, under its gravest race: of mild races beside grave ones nothing is sure.
	if races["error"] != m.races["error"] || races["warning"] && !m.races["warning"] || m.races["warning"] && !races["warning"] && !races["error"] {
		complain("races %v, want %v", races, m.races)
	}
	if fault != m.faulted {
		complain("memory fault: %v, want %v", fault, m.faulted)
	}
	ignored := slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return f.Kind == "error-ignored" })
	if want := len(m.ignored) > 0 && m.exit == 0; ignored != want {
		complain("error-ignored: %v, want %v", ignored, want)
	}
}
