package cli

import (
	"context"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/hw/gpu"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/simt"
)

// gpuPrograms are the programs of the corpus that the simulated GPU is tested with.
func gpuPrograms(t *testing.T, folders ...string) (chosen []*corpus.Program) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, f := range folders {
			if p.Dir == f {
				chosen = append(chosen, p)
			}
		}
	}
	if len(chosen) == 0 {
		t.Fatal("no programs")
	}
	return chosen
}

// otherOrder has the findings that programs do not give in the order in which the GPU executes them: a read of what its thread has
// updated after another thread's update, and what happens where threads steal while others work.
var otherOrder = map[string]int{"race/histogram_shared": 1, "scopedapps/treesearch@1": 3}

// TestGPUExecutes: programs give the results and findings that their sources ask for when the simulated GPU executes them.
func TestGPUExecutes(t *testing.T) {
	folders := []string{"scopedapps", "scoped"}
	if !testing.Short() {
		folders = append(folders, "race", "norace", "async_norace")
	}
	o := session.Options{Seeds: 1, Jobs: runtime.NumCPU(), Engine: func() simt.Engine { return &gpu.Engine{Config: gpu.Fermi()} }}
	for _, r := range session.CheckCorpus(context.Background(), &o, gpuPrograms(t, folders...)) {
		if r.Err == nil && len(r.Unexpected) == 0 && !r.WrongResult() && len(r.Missing) == otherOrder[r.Program.Path()] {
			continue
		}
		if !r.OK() {
			t.Errorf("%s: %v, missing %v, unexpected %v", r.Program.Path(), r.Err, r.Missing, r.Unexpected)
		}
	}
}

// TestNoCosts: a detector none of whose costs takes time changes no cycle.
func TestNoCosts(t *testing.T) {
	for _, p := range gpuPrograms(t, "scopedapps") {
		in, err := session.CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		cycles := map[string]uint64{}
		for _, d := range append(gpu.Detectors(), gpu.Detector{}) {
			g := &gpu.Engine{Config: gpu.Fermi(), Detector: &d}
			if d.Name == "" {
				g.Detector = nil
			}
			if _, err := runOn(context.Background(), session.Options{}, in, g, ""); err != nil {
				t.Fatal(err)
			}
			cycles[d.Name] = g.Counts.Cycles
		}
		for name, n := range cycles {
			if n != cycles[""] {
				t.Errorf("%s: %d cycles with %s, %d without", p.Path(), n, name, cycles[""])
			}
		}
	}
}

// TestGPURaces: what is counted as races is what detector scord finds when the same GPU executes the program.
func TestGPURaces(t *testing.T) {
	found := 0
	for _, p := range gpuPrograms(t, "scopedapps") {
		in, err := session.CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		races := func(g *gpu.Engine) int {
			n, err := runOn(context.Background(), session.Options{}, in, g, "scord")
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		d := gpu.Detectors()[0]
		with := races(&gpu.Engine{Config: gpu.Fermi(), Detector: &d, Costs: gpu.All()})
		if again := races(&gpu.Engine{Config: gpu.Fermi(), Detector: &d, Costs: gpu.All()}); again != with {
			t.Errorf("%s: %d races, then %d", p.Path(), with, again)
		}
		if want := len(p.Wants) > 0; want != (with > 0) {
			t.Errorf("%s: scord finds %d races on the simulated GPU", p.Path(), with)
		}
		found += with
	}
	if found == 0 {
		t.Error("no program has a race")
	}
}
