package session

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/testsize"
)

// TestPatchesMend applies the patches of findings to the programs of the corpus, compiles them, and checks that the
// findings are gone.
func TestPatchesMend(t *testing.T) {
	sequential(t)
	nvcc := testNVCC(t)
	var programs []*corpus.Program
	for _, p := range corpusPrograms(t) {
		if p.Racy() && strings.Contains(p.Source, "__global__") && (p.Dir == "race" || testsize.Long() && p.Dir != "scopedapps") {
			programs = append(programs, p)
		}
	}
	results := CheckCorpus(context.Background(), &Options{Seeds: 1, Jobs: runtime.NumCPU()}, programs)
	patches := map[detect.Kind]int{}
	slots := make(chan struct{}, runtime.NumCPU())
	t.Run("programs", func(t *testing.T) {
		for i := range results {
			r := results[i].Report
			if r == nil {
				t.Fatal(results[i].Err)
			}
			p := programs[i]
			lines := strings.Split(strings.TrimSuffix(p.Source, "\n"), "\n")
			report.Patches(r.Findings, func(string) []string { return lines })
			mending := map[string][]*report.Finding{} // by the patched source
			for i := range r.Findings {
				if f := &r.Findings[i]; f.Patch != nil {
					patches[f.Kind]++
					source := strings.Join(f.Patch.Apply(lines), "\n") + "\n"
					mending[source] = append(mending[source], f)
				}
			}
			for source, findings := range mending {
				t.Run(p.Path()+"/"+findings[0].ID, func(t *testing.T) {
					t.Parallel()
					slots <- struct{}{}
					defer func() { <-slots }()
					requireMended(t, nvcc, p, source, findings)
				})
			}
		}
	})
	t.Logf("patches by kind: %v", patches)
	if patches[detect.MissingBarrier] < 5 || patches[detect.AtomicScope]+patches[detect.FenceScope]+patches[detect.LockScope] < 5 {
		t.Errorf("only these kinds have patches: %v", patches)
	}
}

// requireMended compiles a patched program and checks that the lines of the findings that the patch is of have no finding.
func requireMended(t *testing.T, nvcc string, p *corpus.Program, source string, findings []*report.Finding) {
	q := *p
	q.Source = source
	var err error
	if q.PTX, err = compileCorpus(t.TempDir(), nvcc, &q); err != nil {
		t.Fatal(err)
	}
	in, err := CorpusInput(&q)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check(context.Background(), &Options{Seeds: 3, Jobs: 1}, in)
	if err != nil {
		t.Fatal(err)
	}
	places := func(f *report.Finding, moved func(int) int) (at []int) {
		for i := range f.Accesses {
			at = append(at, moved(f.Accesses[i].Place().Line))
		}
		slices.Sort(at)
		return at
	}
	for _, f := range findings {
		was := places(f, func(line int) int {
			n := line
			for _, e := range f.Patch.Edits {
				if e.Insert && e.Line <= line {
					n++
				}
			}
			return n
		})
		for i := range r.Findings {
			if g := &r.Findings[i]; g.Severity == detect.Error && slices.Equal(places(g, func(n int) int { return n }), was) {
				t.Errorf("after the patch of %s\n%sthere is still %s: %s", f.Kind, f.Patch.Diff, g.Kind, g.Message)
			}
		}
	}
}
