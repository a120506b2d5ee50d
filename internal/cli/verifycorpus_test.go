package cli

import (
	"context"
	"slices"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify"
)

// exploreProgram explores a program under a model; nil if it launches more than once, or more than four threads.
func exploreProgram(t *testing.T, p *corpus.Program, model string, limit time.Duration) *verify.Result {
	in, err := session.CorpusInput(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Launch.Launches) != 1 {
		return nil
	}
	if l := &in.Launch.Launches[0]; l.Grid.Count()*l.Block.Count() > 4 {
		return nil
	}
	r, rep, err := exploreLaunch(context.Background(), session.Options{Timeout: limit}, in, verify.Options{Unroll: 8, Model: model})
	if err != nil || r == nil {
		t.Fatalf("%s: %v, %+v", p.Path(), err, rep)
	}
	return r
}

// TestVerifyCorpus explores the programs of the corpus that launch few threads under both models, and wants no verdict that
// contradicts what their sources say: no proof where an error is wanted, and no error where nothing is. Under the model PTX, in
// which volatile accesses are atomic, the detector hb of that model must find no race where there is no error.
func TestVerifyCorpus(t *testing.T) {
	limit, under := time.Second, 8
	if testsize.Long() {
		limit, under = 5*time.Second, 1
	}
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	explored := map[string]int{}
	for i, p := range programs {
		r := exploreProgram(t, p, verify.SRC11, limit)
		if r == nil {
			continue
		}
		verdict := r.Verdict()
		wanted := slices.ContainsFunc(p.Wants, func(w corpus.Want) bool { return w.Severity == detect.Error.String() })
		explored[verdict]++
		t.Logf("%s: wants %v, %s after %d executions %s", p.Path(), p.Wants, verdict, r.Executions, r.Refusal)
		if wanted && verdict == verify.OK || len(p.Wants)+len(p.Gaps) == 0 && verdict == verify.Error {
			t.Errorf("%s: %s, and the source wants %v: %+v", p.Path(), verdict, p.Wants, r.Findings)
		}
		if i%under == 0 {
			verdict := corpusPTX(t, p, limit)
			explored["ptx "+verdict]++
		}
	}
	t.Logf("%v", explored)
	if explored[verify.OK] < 20 || explored[verify.Error] < 20 || explored["ptx "+verify.OK] < 3 {
		t.Errorf("the verdicts are %v: too few", explored)
	}
}

// unordered are programs whose accesses hb finds unordered under the model PTX, and which have no error under it, with the reason.
var unordered = map[string]string{
	"bugs/global_chain_sequence_store": "the manual's order of sc fences orders the accesses, and hb does not know that order",
}

// corpusPTX explores a program under the model PTX, and holds it against what the detector hb finds in three schedules.
func corpusPTX(t *testing.T, p *corpus.Program, limit time.Duration) string {
	r := exploreProgram(t, p, verify.PTX, limit)
	if len(p.Wants)+len(p.Gaps) == 0 && r.Verdict() == verify.Error {
		t.Errorf("%s: an error under the model ptx, and the source wants nothing: %+v", p.Path(), r.Findings)
	}
	if r.Verdict() != verify.OK {
		return r.Verdict()
	}
	in, err := session.CorpusInput(p)
	if err != nil {
		t.Fatal(err)
	}
	hb, err := detect.Choose(all.Detectors(), "hb")
	if err != nil {
		t.Fatal(err)
	}
	o := session.Options{Detectors: []detect.Spec{hb}, Model: detect.ModelPTX, Seeds: 3, Timeout: 30 * time.Second}
	rep, err := session.Check(context.Background(), &o, in)
	if err != nil {
		t.Fatal(err)
	}
	found := slices.ContainsFunc(rep.Findings, func(f report.Finding) bool { return f.Class == detect.Race && f.Severity == detect.Error })
	if why, known := unordered[p.Path()]; known && !found {
		t.Errorf("%s: hb finds no race any more, which was to differ because %s", p.Path(), why)
	} else if found && !known {
		t.Errorf("%s: hb finds a race, and verify no error in %d executions: %+v", p.Path(), r.Executions, rep.Findings)
	}
	return r.Verdict()
}
