package simt_test

import (
	"context"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/simt"
)

// TestCorpusNoDiff runs the corpus on both engines and compares them, and what is found with warp with what is expected.
func TestCorpusNoDiff(t *testing.T) {
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Run(p.Path(), func(t *testing.T) {
			o := &session.Options{Engine: func() simt.Engine { return simt.NewDiff(t) }, Seeds: 1, Jobs: 1}
			for _, r := range session.CheckCorpus(context.Background(), o, []*corpus.Program{p}) {
				if !r.OK() {
					t.Errorf("missing %v, unexpected %v, error %v", r.Missing, r.Unexpected, r.Err)
				}
			}
		})
	}
}
