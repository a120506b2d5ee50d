package session

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/testsize"
)

// TestCorpusLogged wants of instrumented programs, judged by their logs, what is wanted of the programs as they are. What
// cannot be instrumented yet says so.
func TestCorpusLogged(t *testing.T) {
	t.Parallel()
	var programs []*corpus.Program
	for i, p := range corpusPrograms(t) {
		if !testing.Short() || testsize.Long() || i%10 == 0 {
			programs = append(programs, p)
		}
	}
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Timeout: 10 * time.Minute}
	var judged []CorpusResult
	for _, r := range CheckCorpus(context.Background(), o, programs) {
		if r.Err != nil && strings.Contains(r.Err.Error(), "cannot be instrumented") {
			continue
		}
		judged = append(judged, r)
	}
	t.Logf("%d of %d programs were instrumented", len(judged), len(programs))
	if 2*len(judged) < len(programs) {
		t.Errorf("only %d of %d programs were instrumented", len(judged), len(programs))
	}
	requireAsWanted(t, judged)
}
