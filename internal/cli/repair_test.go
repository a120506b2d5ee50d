package cli

import (
	"context"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify"
)

// TestRepairCorpus repairs the PTX of the corpus programs that launch few threads and have an error, and explores the
// results, which must have no error.
func TestRepairCorpus(t *testing.T) {
	if !testsize.Long() {
		t.Skip("each program is explored several times")
	}
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{verify.SRC11, verify.PTX} {
		counts := map[string]int{}
		for _, p := range programs {
			repairProgram(t, p, verify.Options{Model: model, Unroll: 8}, counts)
		}
		t.Log(model, counts)
		if counts[verify.OK] < 40 {
			t.Errorf("few programs are repaired under %s: %v", model, counts)
		}
	}
}

// repairProgram repairs a program and counts the results.
func repairProgram(t *testing.T, p *corpus.Program, options verify.Options, counts map[string]int) {
	const threads = 4
	limit := 2 * time.Second
	if options.Model == verify.PTX {
		limit /= 2
	}
	in, err := session.CorpusInput(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Launch.Launches) != 1 || len(in.Images) != 1 || in.Launch.Launches[0].Grid.Count()*in.Launch.Launches[0].Block.Count() > threads {
		return
	}
	claims := claimsOf(in.Launch)
	r, _, err := exploreLaunch(context.Background(), session.Options{Timeout: limit}, in, options)
	if err != nil || r.Verdict() != verify.Error {
		return
	}
	x := &repairer{explorer: explorer{options: options, claims: claims}, text: verify.Text{Can: func(places []verify.Place) bool {
		_, err := verify.EditPTX(in.Images[0].Text, places)
		return err == nil
	}}}
	_, err = session.Check(context.Background(), &session.Options{Timeout: limit, Bare: true, Seeds: 1, Engine: func() engine.Engine { return x }}, in)
	if err != nil || x.repair == nil {
		t.Errorf("%s: %v", p.Path(), err)
		return
	}
	if x.repair.Reason != "" {
		counts["not repaired"]++
		t.Logf("%s: %s", p.Path(), x.repair.Reason)
		return
	}
	text, err := verify.EditPTX(in.Images[0].Text, x.places)
	if err != nil {
		t.Errorf("%s: %v", p.Path(), err)
		return
	}
	in.Images, in.Launch.Expects, in.Launch.Condition = []cuda.Image{{Name: in.Images[0].Name, Text: text}}, claims.expects, claims.condition
	proof, _, err := exploreLaunch(context.Background(), session.Options{Timeout: limit}, in, options)
	if err != nil || proof == nil || proof.Verdict() == verify.Error {
		t.Errorf("%s: %v %v", p.Path(), x.repair.Changes, err)
		if proof != nil {
			t.Log(proof.Summary(), proof.Refusal, proof.Findings)
		}
		return
	}
	counts[proof.Verdict()]++
}
