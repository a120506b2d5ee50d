package cli

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/hw/gpu"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
)

// gpuPrograms returns the programs of the corpus for the tests of the simulated GPU.
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

// otherOrder has the findings that programs lack in the order in which the GPU executes them: a read of a location
// after another thread's update that follows its own, and races of threads that steal work while others work.
var otherOrder = map[string]int{"race/histogram_shared": 1, "scopedapps/treesearch@1": 3, "scopedapps/treesearch@4": 2}

// otherKind has the programs whose races have another kind in that order: in a ring, the late thread has observed a
// later turn.
var otherKind = map[string]bool{"race/ring_blocks": true}

// TestGPUExecutes checks that programs executed by the simulated GPU have the results and findings of their sources:
// all in long mode, otherwise one of two.
func TestGPUExecutes(t *testing.T) {
	folders := []string{"scopedapps", "scoped"}
	if !testing.Short() {
		folders = append(folders, "race", "norace", "async_norace")
	}
	var programs []*corpus.Program
	for i, p := range gpuPrograms(t, folders...) {
		if i%2 == 0 || testsize.Long() {
			programs = append(programs, p)
		}
	}
	o := session.Options{Seeds: 1, Jobs: runtime.NumCPU(), Engine: func() engine.Engine { return &gpu.Engine{Config: gpu.Fermi()} }}
	for _, r := range session.CheckCorpus(context.Background(), &o, programs) {
		if r.Err == nil && len(r.Unexpected) == 0 && !r.WrongResult() && len(r.Missing) == otherOrder[r.Program.Path()] {
			continue
		}
		if r.Err == nil && !r.WrongResult() && otherKind[r.Program.Path()] && len(r.Missing) > 0 && len(r.Unexpected) > 0 {
			continue
		}
		if !r.OK() {
			t.Errorf("%s: %v, missing %v, unexpected %v", r.Program.Path(), r.Err, r.Missing, r.Unexpected)
		}
	}
}

// TestNoCosts checks that a detector whose costs are all switched off changes no cycle.
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

// TestGPURaces checks that the counted races are those that detector scord finds when the same GPU executes the
// program.
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

// chase is a kernel of loads. The address of each is the result of the load before, or the parameter.
const chase = `.version 7.0
.target sm_70
.address_size 64
.visible .entry dependent(.param .u64 p) {
  .reg .b64 %rd<9>;
  ld.param.u64 %rd0, [p];
  ld.volatile.global.u64 %rd1, [%rd0];
  add.u64 %rd1, %rd1, %rd0;
  ld.volatile.global.u64 %rd2, [%rd1];
  add.u64 %rd2, %rd2, %rd0;
  ld.volatile.global.u64 %rd3, [%rd2];
  add.u64 %rd3, %rd3, %rd0;
  ld.volatile.global.u64 %rd4, [%rd3];
  ret;
}
.visible .entry independent(.param .u64 p) {
  .reg .b64 %rd<9>;
  ld.param.u64 %rd0, [p];
  ld.volatile.global.u64 %rd1, [%rd0];
  add.u64 %rd5, %rd0, %rd0;
  ld.volatile.global.u64 %rd2, [%rd0];
  add.u64 %rd6, %rd0, %rd0;
  ld.volatile.global.u64 %rd3, [%rd0];
  add.u64 %rd7, %rd0, %rd0;
  ld.volatile.global.u64 %rd4, [%rd0];
  ret;
}
`

// TestLatencyHiding checks that a load that needs the load before waits for it, and that other loads, and those of
// other warps, do not.
func TestLatencyHiding(t *testing.T) {
	cycles := func(kernel string, threads int) uint64 {
		l, err := session.ReadLaunchFile("test", fmt.Appendf(nil,
			"kernel = %q\ngrid = [1]\nblock = [%d]\nargs = [{ buffer = \"b\", type = \"u64\", shape = [4], fill = 0 }]\n", kernel, threads))
		if err != nil {
			t.Fatal(err)
		}
		g := &gpu.Engine{Config: gpu.Fermi()}
		in := &session.Input{Images: []cuda.Image{{Name: "test.ptx", Text: chase}}, Launch: l}
		if _, err := runOn(context.Background(), session.Options{}, in, g, ""); err != nil {
			t.Fatal(err)
		}
		return g.Counts.Cycles
	}
	// 9 instructions a warp; loads that hit L2 take 169 cycles, and the first one fetches the line.
	if n := cycles("dependent", 32); n < 3*169 {
		t.Errorf("four loads in a chain take %d cycles", n)
	}
	one := cycles("independent", 32)
	if limit := uint64(2 * 169); one > limit {
		t.Errorf("four independent loads take %d cycles, more than %d", one, limit)
	}
	if n := cycles("independent", 256); n > one+100 {
		t.Errorf("eight warps take %d cycles, one takes %d", n, one)
	}
}
