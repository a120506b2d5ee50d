package session

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/testsize"
)

func corpusPrograms(t testing.TB) []*corpus.Program {
	t.Helper()
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

// folder returns a program's folder in the corpus.
func folder(p *corpus.Program) string {
	name, _, _ := strings.Cut(p.Path(), "/")
	return name
}

func requireAsWanted(t *testing.T, results []CorpusResult) {
	t.Helper()
	for i := range results {
		r := &results[i]
		if r.Err != nil {
			t.Errorf("%s: %v", r.Program.Path(), r.Err)
			continue
		}
		for _, m := range r.Missing {
			t.Errorf("%s: missing: %s", r.Program.Path(), m)
		}
		for _, u := range r.Unexpected {
			t.Errorf("%s: unexpected: %s", r.Program.Path(), u)
		}
		if r.WrongResult() {
			t.Errorf("%s: wrong result: %v", r.Program.Path(), r.Report.Notes)
		}
		for _, s := range r.Report.Skipped {
			t.Errorf("%s: not checked: %s: %s", r.Program.Path(), s.What, s.Reason)
		}
	}
}

// TestCorpus checks every program of the corpus as it is embedded.
func TestCorpus(t *testing.T) {
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU()}
	requireAsWanted(t, CheckCorpus(context.Background(), o, corpusPrograms(t)))
}

// TestCorpusOnReference checks the same with the reference engine, whose threads take turns at every instruction.
func TestCorpusOnReference(t *testing.T) {
	sequential(t)
	o := &Options{Engine: engine.NewRef, Seeds: 1, Jobs: runtime.NumCPU()}
	requireAsWanted(t, CheckCorpus(context.Background(), o, some(2, corpusPrograms(t))))
}

// TestWrongResult checks that a program whose result differs from its launch file fails.
func TestWrongResult(t *testing.T) {
	for _, p := range corpusPrograms(t) {
		if p.Path() != "norace/lock_block" {
			continue
		}
		q := *p
		q.Launch = []byte(strings.ReplaceAll(string(p.Launch), "192", "193"))
		r := CheckCorpus(context.Background(), &Options{Seeds: 1}, []*corpus.Program{p, &q})
		if !r[0].OK() || r[1].OK() || !r[1].WrongResult() {
			t.Errorf("%s is as wanted: %v; with another result expected: %v", p.Path(), r[0].OK(), r[1].OK())
		}
		return
	}
	t.Fatal("norace/lock_block is missing")
}

// underSeeds checks programs under n seeds of a schedule, from 1 on: in long mode each under all of them, otherwise
// under one.
func underSeeds(t *testing.T, schedule engine.Schedule, n int, programs []*corpus.Program) {
	t.Helper()
	for seed := range n {
		var taken []*corpus.Program
		for i, p := range programs {
			if i%n == seed || testsize.Long() {
				taken = append(taken, p)
			}
		}
		o := &Options{Seeds: 1, Seed: 1 + uint64(seed), Jobs: runtime.NumCPU(), Schedule: schedule}
		requireAsWanted(t, CheckCorpus(context.Background(), o, taken))
	}
}

// TestCorpusUnderOtherSchedules checks that programs without a defect have no finding under any schedule. The findings
// of a racy program may depend on the schedule.
func TestCorpusUnderOtherSchedules(t *testing.T) {
	sequential(t)
	t.Parallel()
	var clean []*corpus.Program
	for _, p := range corpusPrograms(t) {
		if len(p.Wants)+len(p.Gaps) == 0 {
			clean = append(clean, p)
		}
	}
	for _, schedule := range []engine.Schedule{engine.Fair, engine.PCT} {
		t.Run(fmt.Sprint(schedule), func(t *testing.T) { underSeeds(t, schedule, 3, some(2, clean)) })
	}
}

// TestCorpusFromSource compiles programs of the corpus with the nvcc of this machine, like "fencepost run", and
// compares the verdicts with those of the embedded PTX. If the compiler made the embedded PTX, whose freshness CI
// checks, it takes one of forty programs, otherwise all except the suites.
func TestCorpusFromSource(t *testing.T) {
	nvcc := testNVCC(t)
	if !testsize.Long() {
		t.Skip("takes minutes")
	}
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	fresh := make([]*corpus.Program, len(programs))
	compile := func(step int) {
		slots := make(chan struct{}, runtime.NumCPU())
		var wg sync.WaitGroup
		for i := 0; i < len(programs); i += step {
			if fresh[i] != nil {
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				q := *programs[i]
				var err error
				if q.PTX, err = compileCorpus(t.TempDir(), nvcc, programs[i]); err != nil {
					t.Errorf("%s: %v", q.Path(), err)
				}
				fresh[i] = &q
			})
		}
		wg.Wait()
	}
	if compile(40); compilerOf(fresh[0].PTX) != compilerOf(programs[0].PTX) {
		compile(1)
	}
	if t.Failed() {
		return
	}
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU()}
	requireAsWanted(t, CheckCorpus(context.Background(), o, slices.DeleteFunc(fresh, func(p *corpus.Program) bool { return p == nil })))
}

// compilerOf returns the line of a PTX file with the version of its compiler.
func compilerOf(ptx string) string {
	_, line, _ := strings.Cut(ptx, "// Cuda compilation tools")
	line, _, _ = strings.Cut(line, "\n")
	return line
}

// testNVCC returns the compiler of the tests: FENCEPOST_TEST_NVCC, FENCEPOST_NVCC, or nvcc in PATH.
func testNVCC(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("FENCEPOST_TEST_NVCC"), os.Getenv("FENCEPOST_NVCC"), "nvcc"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("nvcc is missing")
	return ""
}

// compileCorpus compiles a program in a folder.
func compileCorpus(dir, nvcc string, p *corpus.Program) (string, error) {
	src, out := filepath.Join(dir, p.Name+".cu"), filepath.Join(dir, p.Name+".ptx")
	if err := os.WriteFile(src, []byte(p.Source), 0o666); err != nil {
		return "", err
	}
	cmd := exec.Command(nvcc, "-lineinfo", "-Xcicc", "-O0", "-arch="+p.Arch(), "-ptx", "-o", out, src)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	ptx, err := os.ReadFile(out)
	return strings.ReplaceAll(string(ptx), src, p.Name+".cu"), err
}

// TestCorpusIsDeterministic checks that equal runs give equal reports, however many run in parallel.
func TestCorpusIsDeterministic(t *testing.T) {
	t.Parallel()
	programs := some(3, corpusPrograms(t))
	text := func(jobs int) string {
		var b strings.Builder
		for _, r := range CheckCorpus(context.Background(), &Options{Seeds: 1, Seed: 7, Jobs: jobs}, programs) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if err := report.JSON(&b, r.Report, false); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	if text(1) != text(4) {
		t.Error("two runs gave different reports")
	}
}

// some returns all programs in long mode, and otherwise one of n.
func some(n int, programs []*corpus.Program) (taken []*corpus.Program) {
	for i, p := range programs {
		if i%n == 0 || testsize.Long() {
			taken = append(taken, p)
		}
	}
	return taken
}

// withHistory returns hb with another implementation of its access history.
func withHistory(t *testing.T, history string) []detect.Spec {
	t.Helper()
	plain, err := detect.Choose(all.Detectors(), "hb:history="+history)
	if err != nil {
		t.Fatal(err)
	}
	return []detect.Spec{plain}
}

// TestHistories checks that the other access histories of hb find the same on the corpus as the default one: the same
// pairs of places with the same counts of accesses and bytes, and the same kinds, severities and fixes.
func TestHistories(t *testing.T) {
	sequential(t)
	programs := some(6, slices.DeleteFunc(corpusPrograms(t), func(p *corpus.Program) bool {
		return folder(p) == "fault" // some poll until they are stopped
	}))
	races := 0
	said := func(specs []detect.Spec) []string {
		var lines []string
		for _, r := range CheckCorpus(context.Background(), &Options{Seeds: 1, Jobs: runtime.NumCPU(), Detectors: specs}, programs) {
			if r.Err != nil {
				t.Fatalf("%s: %v", r.Program.Path(), r.Err)
			}
			var found []string
			for _, f := range r.Report.Findings {
				if f.Class == detect.Race {
					races++
					x, y := f.Accesses[0].Place(), f.Accesses[1].Place()
					found = append(found, fmt.Sprintf("\n    %d-%d %d %d %v %s: %s", min(x.PTXLine, y.PTXLine), max(x.PTXLine, y.PTXLine),
						f.Count, f.Addresses, f.Severity, f.Kind, f.Fix))
				}
			}
			slices.Sort(found) // a report has errors first
			lines = append(lines, r.Program.Path()+strings.Join(found, ""))
		}
		return lines
	}
	want := said(all.Detectors()[:1])
	for i, got := range said(withHistory(t, "plain")) {
		if got != want[i] {
			t.Errorf("the histories differ\n  default: %s\n  plain: %s", want[i], got)
		}
	}
	if races < len(programs)*3/5 {
		t.Errorf("%d races only", races)
	}
}
