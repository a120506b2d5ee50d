package curd_test

import (
	"context"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/curd"
	"fencepost.dev/fencepost/internal/session"
)

const (
	syncwarp  = "__syncwarp orders nothing"
	part      = "a barrier for a part of the block orders nothing"
	barracuda = "judged by barracuda, and judged so"
	oneKernel = "the analysis knows one kernel at a time"
)

// exceptions are the programs of the corpus that are not judged as their sources say, with the reason: races that are
// not reported, and false alarms.
var exceptions = map[string]string{
	"race/counter_scope":         barracuda,
	"race/ldg":                   "the barrier orders the two, and caches are not looked at",
	"race/surface_in_place":      "the barrier orders the two, and caches are not looked at",
	"race/texture_stale":         "the barrier orders the two, and caches are not looked at",
	"norace/byte_flag":           barracuda,
	"norace/byte_lock":           barracuda,
	"norace/byte_mixed":          barracuda,
	"race/last_block_volatile":   barracuda,
	"race/lock_atomic_scope":     barracuda,
	"race/message_plain":         barracuda,
	"race/message_volatile":      barracuda,
	"race/mixed_size":            barracuda,
	"race/streams":               oneKernel,
	"norace/bitonic":             syncwarp,
	"norace/branches":            syncwarp,
	"norace/exchange":            syncwarp,
	"norace/fence_everyone":      barracuda,
	"norace/last_block_everyone": barracuda,
	"norace/tile_not_block":      syncwarp,
	"race/counter_reset":         barracuda,
	"race/event_query":           oneKernel,
	"race/stream_query":          oneKernel,
	"race/ring_blocks":           barracuda,
	"race/rwlock":                barracuda,
	"norace/lane_turns":          syncwarp,
	"norace/lanes_pass":          syncwarp,
	"norace/lookback":            barracuda,
	"norace/named_barrier":       part,
	"norace/reduce_syncwarp":     syncwarp,
	"norace/ring":                part,
	"norace/shuffle_index":       syncwarp,
	"norace/syncwarp_mask":       syncwarp,
	"norace/two_ifs":             syncwarp,
	"norace/vote":                syncwarp,
}

// TestCorpus runs the racy and the clean programs of the corpus in both modes.
func TestCorpus(t *testing.T) {
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	for _, choice := range []string{"curd", "curd:mode=eager"} {
		spec, err := detect.Choose([]detect.Spec{curd.Spec}, choice)
		if err != nil {
			t.Fatal(err)
		}
		left := len(exceptions)
		o := &session.Options{Seeds: 1, Jobs: runtime.NumCPU(), Detectors: []detect.Spec{spec}}
		for _, r := range session.CheckCorpus(context.Background(), o, programs) {
			p := r.Program
			if p.Dir == corpus.Fault || p.Dir == corpus.Predict {
				continue
			}
			if r.Err != nil || len(r.Report.Skipped) > 0 {
				t.Errorf("%s: %v %v", p.Path(), r.Err, r.Report)
				continue
			}
			races := 0
			for _, f := range r.Report.Findings {
				if f.Detector == "curd" && f.Class == detect.Race {
					races++
				}
			}
			reason, exception := exceptions[p.Path()]
			if exception {
				left--
			}
			if (races > 0) == (p.Dir == corpus.Race) == exception {
				t.Errorf("%s has %d findings of %s (exception: %q)", p.Path(), races, choice, reason)
			}
		}
		if left != 0 {
			t.Errorf("%d exceptions are of no program", left)
		}
	}
}
