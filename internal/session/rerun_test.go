package session

import (
	"context"
	"runtime"
	"slices"
	"testing"
)

// TestCorpusRerun checks that launches that are executed once more change no verdict of the corpus and no result, but where its source says
// that the fault shows in other executions alone.
func TestCorpusRerun(t *testing.T) {
	unlike := []string{
		"predict/gap_after_section", "predict/gap_composed", "predict/gap_conflict_early", // which other orders of their sections show
		"scopedapps/treesearch@1", // of two faults of a lock another one is seen first
	}
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Rerun: true}
	seen := 0
	for _, r := range CheckCorpus(context.Background(), o, corpusPrograms(t)) {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Program.Path(), r.Err)
			continue
		}
		if slices.Contains(unlike, r.Program.Path()) {
			if seen++; len(r.Unexpected) == 0 || len(r.Missing) > 0 || r.WrongResult() {
				t.Errorf("%s: unexpected %v, missing %v", r.Program.Path(), r.Unexpected, r.Missing)
			}
		} else if !r.OK() {
			t.Errorf("%s: unexpected %v, missing %v, skipped %v", r.Program.Path(), r.Unexpected, r.Missing, r.Report.Skipped)
		}
	}
	if seen != len(unlike) {
		t.Errorf("%d of %d programs were seen", seen, len(unlike))
	}
}
