package session

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/report"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt")

// TestDetectorTable compares the misses and false reports of each detector on each program of the corpus with
// testdata/detectors.txt, so that every change of a verdict is seen.
func TestDetectorTable(t *testing.T) {
	sequential(t)
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("Programs of the corpus on which detectors miss races (-) or name some that are none (+); the others all judge right.\n\n")
	type sum struct {
		misses, alarms int
		metadata       uint64
	}
	sums := map[string]*sum{}
	for _, d := range all.Detectors() {
		sums[d.Name] = &sum{}
	}
	for _, r := range CompareCorpus(context.Background(), &Options{Jobs: runtime.GOMAXPROCS(0)}, programs) {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Program.Path(), r.Err)
			continue
		}
		line := ""
		for _, d := range r.Report.Detectors {
			s := sums[d.Name]
			s.misses += d.Misses
			s.alarms += d.FalseAlarms
			s.metadata = max(s.metadata, d.Metadata)
			if d.Misses > 0 {
				line += fmt.Sprintf(" %s-%d", d.Name, d.Misses)
			}
			if d.FalseAlarms > 0 {
				line += fmt.Sprintf(" %s+%d", d.Name, d.FalseAlarms)
			}
		}
		if line != "" {
			fmt.Fprintf(&b, "%s:%s\n", r.Program.Path(), line)
		}
	}
	b.WriteString("\ndetector, lines with races missed, false alarms\n")
	for _, d := range all.Detectors() {
		fmt.Fprintf(&b, "%s %d %d\n", d.Name, sums[d.Name].misses, sums[d.Name].alarms)
		if sums[d.Name].metadata == 0 {
			t.Errorf("%s tells of no metadata on any program", d.Name)
		}
	}
	requireGolden(t, "detectors", b.String())
	if sums["hb"].alarms+sums["gwcp"].alarms > 0 {
		t.Error("a detector of ours has a false alarm")
	}
}

// requireGolden compares text with testdata/NAME.txt, or writes it there.
func requireGolden(t *testing.T, name, text string) {
	t.Helper()
	file := "testdata/" + name + ".txt"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s is now (go test ./internal/session -run %s -update writes it)\n%s", file, t.Name(), text)
	}
}

// suiteResults compares all detectors on the programs of a suite, and its table of verdicts with testdata/SUITE.txt.
func suiteResults(t *testing.T, suite string) []CorpusResult {
	t.Helper()
	programs, err := corpus.Suite(suite)
	if err != nil || len(programs) == 0 {
		t.Fatalf("suite %s: %d programs, error %v", suite, len(programs), err)
	}
	results := CompareCorpus(context.Background(), &Options{Jobs: runtime.GOMAXPROCS(0)}, programs)
	for i := range results {
		if r := &results[i]; r.Err != nil {
			t.Fatalf("%s: %v", r.Program.Path(), r.Err)
		}
	}
	var b strings.Builder
	WriteSuite(&b, results)
	requireGolden(t, suite, b.String())
	return results
}

// TestFixes compares the kind, the explanation and the fix of every race of the corpus's kernels, errors and warnings,
// with testdata/fixes.txt, which was reviewed against the sources. It compares the groups with several members with
// testdata/groups.txt.
func TestFixes(t *testing.T) {
	sequential(t)
	requireFixes(t, nil)
}

// TestFixesOfHistory checks the same with the plain history of hb.
func TestFixesOfHistory(t *testing.T) {
	sequential(t)
	requireFixes(t, withHistory(t, "plain"))
}

func requireFixes(t *testing.T, detectors []detect.Spec) {
	var b strings.Builder
	b.WriteString("Races of the corpus by program and source lines: kind, why, and what would order the accesses.\n")
	var groups strings.Builder
	groups.WriteString("Groups of several findings in the corpus, by program: kind and source lines of each member.\n")
	cured, pairs := map[string]bool{}, map[string]bool{}
	for _, p := range corpusPrograms(t) {
		cured[p.Name] = cured[p.Name] || folder(p) == corpus.NoRace
	}
	programs := slices.DeleteFunc(corpusPrograms(t), func(p *corpus.Program) bool {
		return !slices.Contains([]string{"race", "bugs", "scoped"}, folder(p))
	})
	for _, r := range CheckCorpus(context.Background(), &Options{Seeds: 1, Jobs: runtime.GOMAXPROCS(0), Detectors: detectors}, programs) {
		if r.Err != nil {
			continue
		}
		for _, g := range report.Groups(r.Report.Findings) {
			if len(g) == 1 {
				continue
			}
			fmt.Fprintf(&groups, "\n%s\n", r.Program.Path())
			for _, f := range g {
				fmt.Fprintf(&groups, "  %s %s", f.Severity, f.Kind)
				for i := range f.Accesses {
					fmt.Fprintf(&groups, " %s:%d", f.Accesses[i].Op, f.Accesses[i].Place().Line)
				}
				groups.WriteString("\n")
			}
		}
		said := map[string]bool{}
		for i := range r.Report.Findings {
			f := &r.Report.Findings[i]
			if f.Class != detect.Race || said[string(f.Kind)+f.Fix] {
				continue
			}
			said[string(f.Kind)+f.Fix] = true
			if folder(r.Program) == corpus.Race && cured[r.Program.Name] {
				pairs[r.Program.Name] = true
			}
			severity := ""
			if f.Severity != detect.Error {
				severity = f.Severity.String() + " "
			}
			fmt.Fprintf(&b, "\n%s lines %d %d: %s%s\n  why: %s\n  fix: %s\n", r.Program.Path(), f.Accesses[0].Place().Line, f.Accesses[1].Place().Line, severity, f.Kind, f.Message, f.Fix)
		}
	}
	if len(pairs) < 60 {
		t.Errorf("only %d programs of the folder race have a corrected twin and a fix that is held here", len(pairs))
	}
	requireGolden(t, "fixes", b.String())
	requireGolden(t, "groups", groups.String())
}
