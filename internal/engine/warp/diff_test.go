package warp_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
)

// schedules are the seeds and policies with which a program is run.
var schedules = []struct {
	seed   uint64
	policy engine.Schedule
}{{0, engine.Fair}, {1, engine.Fair}, {2, engine.Fair}, {3, engine.PCT}, {0, engine.Lockstep}, {4, engine.Lockstep}}

// otherKind are the programs whose races have another kind in other schedules: the thread that signals for a block may
// run before the other threads have done anything.
var otherKind = map[string]bool{"race/last_block_everyone": true}

// spinning are the programs whose threads wait forever. How soon an engine detects this depends on the schedule, so
// they are compared in one schedule only.
var spinning = map[string]bool{"fault/mbarrier_bytes": true, "fault/mbarrier_count": true, "fault/flag_unset": true}

// runDiff runs a program of the corpus on both engines and compares the runs. If judged is set, it also compares the
// findings with warp with the expected ones.
func runDiff(t *testing.T, p *corpus.Program, judged bool) {
	runs := schedules
	if !testsize.Long() || spinning[p.Path()] {
		runs = runs[:1]
	}
	for _, s := range runs {
		o := &session.Options{Engine: func() engine.Engine { return warp.NewDiff(t, p.Racy()) }, Seeds: 1, Seed: s.seed, Schedule: s.policy, Jobs: 1}
		for _, r := range session.CheckCorpus(context.Background(), o, []*corpus.Program{p}) {
			if judged && s.policy != engine.Lockstep && !r.OK() && !(otherKind[p.Path()] && s.seed != 0 && len(r.Unexpected) > 0) || r.Err != nil {
				t.Errorf("seed %d: missing %v, unexpected %v, error %v", s.seed, r.Missing, r.Unexpected, r.Err)
			}
		}
	}
}

func programs(t *testing.T) []*corpus.Program {
	t.Helper()
	all, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range []string{"async", "async_norace"} {
		more, err := corpus.Suite(suite)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
	}
	return all
}

// TestCorpusNoDiff compares the engines on the programs of the corpus: on all in long mode, otherwise on one of two.
func TestCorpusNoDiff(t *testing.T) {
	for i, p := range programs(t) {
		if i%testsize.Of(4, 3, 1) != 0 {
			continue
		}
		t.Run(p.Path(), func(t *testing.T) { runDiff(t, p, true) })
	}
}

// TestOptimisedNoDiff compares the engines on one of four programs of the corpus as nvcc compiles them by default. This
// removes and moves accesses, so findings are not compared. It needs nvcc: FENCEPOST_NVCC, or the one in the path.
func TestOptimisedNoDiff(t *testing.T) {
	nvcc, err := exec.LookPath(cmp.Or(os.Getenv("FENCEPOST_NVCC"), "nvcc"))
	if err != nil || !testsize.Long() {
		t.Skip("no nvcc, or takes minutes")
	}
	for i, p := range programs(t) {
		if i%4 != 0 {
			continue
		}
		t.Run(p.Path(), func(t *testing.T) {
			dir := t.TempDir()
			cu, ptx := filepath.Join(dir, p.Name+".cu"), filepath.Join(dir, p.Name+".ptx")
			if err := os.WriteFile(cu, []byte(p.Source), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(nvcc, "-lineinfo", "-arch="+p.Arch(), "-ptx", "-o", ptx, cu).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			text, err := os.ReadFile(ptx)
			if err != nil {
				t.Fatal(err)
			}
			optimised := *p
			optimised.PTX = string(text)
			runDiff(t, &optimised, false)
		})
	}
}
