package barracuda_test

import (
	"context"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/barracuda"
	"fencepost.dev/fencepost/internal/session"
)

const (
	lockstep  = "warps in lockstep order it: BARRACUDA's model of a warp"
	inferred  = "the flag and the fences beside it are an acquire and a release, whatever kind of access the flag's are"
	bothWays  = "an atomic operation behind a fence acquires too"
	noScope   = "scopes of atomic operations are ignored"
	noSizes   = "two atomic operations never race, of whatever size"
	oneKernel = "the analysis knows one kernel at a time"
	word      = "a relaxed load is a plain access, and an operation with an order is no fence"
	readOnly  = "the barrier orders the two, and caches are not looked at"
	adjacent  = "an access or a barrier stands between the fence and the flag: the fence does not count"
	counted   = "the atomic operations do not race with the plain write before them"
	counters  = "the counter and the fences beside it are an acquire and a release, on whichever side they are"
)

// exceptions are the programs of the corpus that a detector does not judge as their sources say, with the reason: races
// that it does not report, and false alarms.
var exceptions = map[string]map[string]string{
	"barracuda": {
		"norace/byte_flag":           word,
		"norace/byte_lock":           word,
		"norace/byte_mixed":          word,
		"race/bitonic":               lockstep,
		"race/lane_turns":            lockstep,
		"race/shuffle_index":         lockstep,
		"race/two_ifs":               lockstep,
		"race/ldg":                   readOnly,
		"race/surface_in_place":      readOnly,
		"race/texture_stale":         readOnly,
		"race/counter_scope":         noScope,
		"race/exchange":              lockstep,
		"race/last_block_volatile":   bothWays,
		"race/lock_atomic_scope":     noScope,
		"race/message_plain":         inferred,
		"race/message_volatile":      inferred,
		"race/mixed_size":            noSizes,
		"race/reduce_syncwarp":       lockstep,
		"race/reduce_volatile":       lockstep,
		"race/streams":               oneKernel,
		"race/syncwarp_mask":         lockstep,
		"race/vote":                  lockstep,
		"norace/fence_everyone":      adjacent,
		"norace/last_block_everyone": adjacent,
		"race/counter_reset":         counted,
		"race/event_query":           oneKernel,
		"race/stream_query":          oneKernel,
		"race/ring_blocks":           counters,
		"race/rwlock":                counters,
		"norace/lookback":            adjacent,
	},
	"barracuda+": {
		"norace/byte_alone":          word,
		"norace/byte_flag":           word,
		"norace/byte_lock":           word,
		"norace/byte_mixed":          word,
		"race/ldg":                   readOnly,
		"race/surface_in_place":      readOnly,
		"race/texture_stale":         readOnly,
		"race/last_block_volatile":   bothWays,
		"race/message_plain":         inferred,
		"race/message_volatile":      inferred,
		"race/mixed_size":            noSizes,
		"race/streams":               oneKernel,
		"norace/fence_everyone":      adjacent,
		"norace/last_block_everyone": adjacent,
		"race/counter_reset":         counted,
		"race/event_query":           oneKernel,
		"race/stream_query":          oneKernel,
		"race/ring_blocks":           counters,
		"race/rwlock":                counters,
		"norace/lookback":            adjacent,
	},
}

// TestCorpus runs the racy and the clean programs of the corpus.
func TestCorpus(t *testing.T) {
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []detect.Spec{barracuda.Spec, barracuda.PlusSpec} {
		left := len(exceptions[spec.Name])
		counts := map[string]int{}
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
				if f.Detector == spec.Name && f.Class == detect.Race {
					races++
				}
			}
			if races > 0 {
				counts[p.Dir]++
			}
			reason, exception := exceptions[spec.Name][p.Path()]
			if exception {
				left--
			}
			if (races > 0) == (p.Dir == corpus.Race) == exception {
				t.Errorf("%s has %d findings of %s (exception: %q)", p.Path(), races, spec.Name, reason)
			}
		}
		if left != 0 {
			t.Errorf("%s: %d exceptions are of no program", spec.Name, left)
		}
		t.Logf("%s reports %d racy programs and %d clean ones", spec.Name, counts[corpus.Race], counts[corpus.NoRace])
	}
}
