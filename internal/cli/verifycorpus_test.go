package cli

import (
	"context"
	"slices"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify"
)

// TestVerifyCorpus explores the programs of the corpus that launch few threads, and wants no verdict that contradicts what their
// sources say: no proof where an error is wanted, and no error where nothing is.
func TestVerifyCorpus(t *testing.T) {
	const threads = 4
	limit, unroll := time.Second, 8
	if testsize.Long() {
		limit = 20 * time.Second
	}
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	explored := map[string]int{}
	for _, p := range programs {
		in, err := session.CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Launch.Launches) != 1 {
			continue
		}
		l := &in.Launch.Launches[0]
		if l.Grid.Count()*l.Block.Count() > threads {
			continue
		}
		begin := time.Now()
		r, rep, err := exploreLaunch(context.Background(), session.Options{Timeout: limit}, in, verify.Options{Unroll: unroll})
		if err != nil || r == nil {
			t.Errorf("%s: %v, %+v", p.Path(), err, rep)
			continue
		}
		wanted := slices.ContainsFunc(p.Wants, func(w corpus.Want) bool { return w.Severity == detect.Error.String() })
		verdict := r.Verdict()
		explored[verdict]++
		t.Logf("%s: wants %v, %s after %d executions and %v %s", p.Path(), p.Wants, verdict, r.Executions, time.Since(begin).Round(time.Millisecond), r.Refusal)
		if wanted && verdict == verify.OK || len(p.Wants)+len(p.Gaps) == 0 && verdict == verify.Error {
			t.Errorf("%s: %s, and the source wants %v: %+v", p.Path(), verdict, p.Wants, r.Findings)
		}
	}
	t.Logf("%v", explored)
	if explored[verify.OK] < 20 || explored[verify.Error] < 20 {
		t.Errorf("the verdicts are %v: too few", explored)
	}
}
