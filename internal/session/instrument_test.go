package session

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
)

// unlogged is what a log does not tell, by program of the corpus: what is found instead differs from what the emulator finds.
var unlogged = map[string]string{
	"bugs/global_warps_same_widths":         "the values of stores",
	"bugs/shared_lanes_plain_same":          "the values of stores",
	"race/found":                            "the values of stores",
	"norace/byte_flag":                      "the values of compare-and-swaps, by which one of a byte is known",
	"norace/byte_lock":                      "the values of compare-and-swaps, by which one of a byte is known",
	"norace/byte_mixed":                     "the values of compare-and-swaps, by which one of a byte is known",
	"race/byte_flag":                        "the values of compare-and-swaps, by which one of a byte is known",
	"race/byte_lock":                        "the values of compare-and-swaps, by which one of a byte is known",
	"bugs/global_lanes_exit_syncwarp":       "when lanes part and reconverge, but for what they do next",
	"bugs/shared_lanes_coalesced_path":      "when lanes part and reconverge, but for what they do next",
	"bugs/shared_lanes_syncwarp_halves":     "when lanes part and reconverge, but for what they do next",
	"race/bitonic":                          "when lanes part and reconverge, but for what they do next",
	"fault/flag_unset":                      "that a loop waits for what nobody writes: it ends when the time is over",
	"fault/lock_kept":                       "that a loop waits for what nobody writes: it ends when the time is over",
	"bugs/global_blocks_lock_plain_release": "nothing; but the threads come in another order",
	"predict/gap_composed":                  "nothing; but the threads come in another order",
	"scopedapps/treesearch":                 "nothing; but the threads come in another order",
}

// TestCorpusLogged wants of instrumented programs, judged by their logs, what is wanted of the programs as they are: results in
// memory, and findings but for those of unlogged. What cannot be instrumented yet says so.
func TestCorpusLogged(t *testing.T) {
	t.Parallel()
	var programs []*corpus.Program
	for i, p := range corpusPrograms(t) {
		name, _, _ := strings.Cut(p.Path(), "@")
		if unlogged[name] == "" && (!testing.Short() || i%10 == 0) {
			programs = append(programs, p)
		}
	}
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Timeout: 10 * time.Minute}
	var judged []CorpusResult
	for _, r := range CheckCorpus(context.Background(), o, programs) {
		if r.Err == nil || !strings.Contains(r.Err.Error(), "cannot be instrumented") {
			judged = append(judged, r)
		}
	}
	t.Logf("%d of %d programs were instrumented", len(judged), len(programs))
	if 5*len(judged) < 4*len(programs) {
		t.Errorf("only %d of %d programs were instrumented", len(judged), len(programs))
	}
	requireAsWanted(t, judged)
}
