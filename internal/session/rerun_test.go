package session

import (
	"context"
	"runtime"
	"slices"
	"testing"
)

// TestCorpusRerun checks that executing launches again changes no verdict and no result of the corpus, except if the
// source says that the fault appears only in other executions.
func TestCorpusRerun(t *testing.T) {
	unlike := []string{
		"predict/gap_after_section", "predict/gap_composed", "predict/gap_conflict_early", // which other orders of their sections show
	}
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Rerun: true}
	for _, r := range CheckCorpus(context.Background(), o, some(6, corpusPrograms(t))) {
		switch {
		case r.Err != nil:
			t.Errorf("%s: %v", r.Program.Path(), r.Err)
		case slices.Contains(unlike, r.Program.Path()):
			if len(r.Unexpected) == 0 || r.WrongResult() {
				t.Errorf("%s: unexpected %v", r.Program.Path(), r.Unexpected)
			}
		case !r.OK():
			t.Errorf("%s: unexpected %v, missing %v, skipped %v", r.Program.Path(), r.Unexpected, r.Missing, r.Report.Skipped)
		}
	}
}
