package gpu_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/instrument/gpu"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/toolchain"
)

// unlike are programs with other findings on a GPU. Only the emulator knows mbarriers and barriers that threads do not
// reach. If lanes race for a location, the order of their turns determines which accesses the mode hirace compares. The
// driver's GPU has longer turns, as for the mode log.
var unlike = []string{"async/mbarrier_init", "async/mbarrier_inval", "bugs/shared_warps_barrier_exit", "race/bitonic", "race/lock_atomic_scope"}

// TestCorpus runs programs of the corpus on the GPU of a driver for tests. The findings and the results in memory must
// be those of the emulated device.
func TestCorpus(t *testing.T) {
	d := newDriver(t)
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	every := testsize.Of(200, 100, 40)
	for _, mode := range []instrument.Mode{instrument.Log, instrument.HiRace} {
		judged := 0
		for i, p := range all {
			if folder, _, _ := strings.Cut(p.Path(), "/"); i%every != int(mode)*every/2 ||
				folder == "scopedapps" || // threads depend on an order that placed code changes
				folder == "fault" || // a GPU reports less: see TestFaults
				slices.Contains(unlike, p.Path()) {
				continue
			}
			on := session.Options{Seeds: 1, Jobs: 1, Logged: true, Mode: mode, Timeout: 5 * time.Minute}
			want := session.CheckCorpus(context.Background(), &on, []*corpus.Program{p})[0]
			if want.Err != nil && strings.Contains(want.Err.Error(), "cannot be instrumented") ||
				want.Report != nil && len(want.Report.Skipped) > 0 && strings.Contains(want.Report.Skipped[0].Reason, "cannot be instrumented") {
				continue
			}
			on.Engine = d.New
			got := session.CheckCorpus(context.Background(), &on, []*corpus.Program{p})[0]
			if r := got.Report; r != nil && len(r.Skipped) == 1 && strings.Contains(r.Skipped[0].Reason, "cannot place it") {
				continue
			}
			judged++
			if w, g := summary(want), summary(got); !slices.Equal(g, w) {
				t.Errorf("%s, mode %d: on a GPU\n%q\nemulated\n%q", p.Path(), mode, g, w)
			}
		}
		t.Logf("mode %d: %d programs, %d launches and %d queries so far", mode, judged, d.launches, d.queries)
		if judged == 0 {
			t.Errorf("mode %d: no program was judged", mode)
		}
	}
}

// check checks kernel k(.param .u64 p) of a module, given its body. p points to words words, %rd1 is p, and %r1 is the
// number of the thread.
func check(t *testing.T, d *driver, o session.Options, module, body string, block, words int) *report.Report {
	t.Helper()
	text := ".version 7.0\n.target sm_80\n.address_size 64\n" + module + ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n" +
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n" + body + "\nret;\n}\n"
	launch, err := session.ReadLaunchFile("launch.toml", fmt.Appendf(nil, "grid = 1\nblock = %d\nargs = [{ buffer = \"x\", type = \"i32\", shape = [%d], fill = 0 }]\n", block, words))
	if err != nil {
		t.Fatal(err)
	}
	o.Seeds, o.Jobs, o.Logged, o.Engine = 1, 1, true, d.New
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	r, err := session.Check(context.Background(), &o, &session.Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: launch})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFaults checks that invalid accesses are reported from the log, whether or not the GPU ends the kernel, and that
// the driver's report is used for other faults.
func TestFaults(t *testing.T) {
	d := newDriver(t)
	const index = "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;\n"
	for _, c := range []struct{ name, body, kind, message string }{
		{"past the end", index + "st.global.u32 [%rd2+4], %r1;", "out-of-bounds", "the thread writes 4 bytes at 0x200000000480, just past the end of buffer"},
		{"misaligned", "ld.global.u32 %r2, [%rd1+2];", "misaligned", "the thread reads 4 bytes at 0x200000000402 (buffer \"x\" (128 bytes) + 2), which is not a multiple of 4"},
		{"far away", "mov.u64 %rd2, 64; atom.global.add.u32 %r2, [%rd2], 1;", "out-of-bounds", "the thread updates 4 bytes at 0x40: a null pointer"},
		{"trap", "trap;", "trap", "the GPU has ended the kernel (unspecified launch failure); it does not tell where: --device watched does"},
	} {
		r := check(t, d, session.Options{}, "", c.body, 32, 32)
		if len(r.Findings) != 1 || string(r.Findings[0].Kind) != c.kind || !strings.Contains(r.Findings[0].Message, c.message) {
			t.Errorf("%s: %+v, want one finding of kind %s: %s", c.name, r.Findings, c.kind, c.message)
		}
	}
}

// TestLost ends the process that drives the GPU during a launch. The next launch must start another process.
func TestLost(t *testing.T) {
	d := newDriver(t)
	for _, dies := range []bool{true, false} {
		d.dies.Store(dies)
		r := check(t, d, session.Options{}, "", "st.global.u32 [%rd1], %r1;", 32, 1)
		if dies != (len(r.Skipped) == 1 && strings.Contains(r.Skipped[0].Reason, "the process that drives the GPU has ended")) || dies == (len(r.Findings) == 1) {
			t.Errorf("%v: %+v, %d findings", dies, r.Skipped, len(r.Findings))
		}
	}
}

// TestPrinted checks the output of a kernel, which is read after the kernel has ended.
func TestPrinted(t *testing.T) {
	d := newDriver(t)
	var out bytes.Buffer
	module := ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .align 1 .b8 text[4] = {104, 105, 10, 0};\n"
	call := "mov.u64 %rd2, text; cvta.global.u64 %rd2, %rd2; mov.u64 %rd3, 0;\n{ .param .b64 f; st.param.b64 [f], %rd2; .param .b64 a; st.param.b64 [a], %rd3; .param .b32 r; call.uni (r), vprintf, (f, a); }"
	check(t, d, session.Options{Printf: &out}, module, call, 2, 1)
	if out.String() != "hi\nhi\n" {
		t.Errorf("printed %q", out.String())
	}
}

// TestTimeout checks that a launch that does not end is ended, and that its events until then are judged.
func TestTimeout(t *testing.T) {
	d := newDriver(t)
	d.engine = func() engine.Engine { return endless{} }
	begin := time.Now()
	r := check(t, d, session.Options{Timeout: 500 * time.Millisecond}, "", "st.global.u32 [%rd1], %r1;", 32, 1)
	if len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, "time") || time.Since(begin) > 30*time.Second {
		t.Errorf("%+v after %s", r.Skipped, time.Since(begin))
	}
}

// endless is an engine whose launches never end.
type endless struct{}

func (endless) Run(_ context.Context, l *engine.Launch) (engine.Stats, error) {
	for {
		l.Progress(engine.Stats{})
	}
}

// TestNoDriver checks that a missing GPU is reported, once for each launch.
func TestNoDriver(t *testing.T) {
	d := newDriver(t)
	t.Setenv("LD_LIBRARY_PATH", "")
	m, err := devmem.New(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := gpu.Name(d.worker, m); err == nil || !strings.Contains(err.Error(), "no file") {
		t.Errorf("with memory of its own: %v", err)
	}
	r := check(t, d, session.Options{}, "", "st.global.u32 [%rd1], %r1;", 32, 1)
	if len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, "the GPU: ") {
		t.Errorf("%+v", r.Skipped)
	}
}

// summary returns what a run has found, and whether its results are correct.
func summary(r session.CorpusResult) (out []string) {
	if r.Err != nil {
		return []string{r.Err.Error()}
	}
	for _, f := range r.Report.Findings {
		out = append(out, fmt.Sprintf("%s %s %d", f.ID, f.Kind, f.Count))
	}
	for _, s := range r.Report.Skipped {
		out = append(out, fmt.Sprintf("skipped: %+v", s))
	}
	return append(out, fmt.Sprint("wrong result: ", r.WrongResult()))
}

// program uses features that only the host side of a whole program has: variables by their symbols, and large memory
// that is cleared, freed and reused.
const program = `#include <cstdio>
__constant__ int factor[2];
__device__ int total, table[4] = {1, 2, 3, 4};
__device__ int *in_table = table + 1;
__global__ void add(const int *x, int *t, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&total, x[i] * factor[i % 2] + t[i % 4] + *in_table);
}
__global__ void racy(int *x) { x[threadIdx.x / 2] = threadIdx.x; }
int main() {
  const int n = 100, large = 10 << 20;
  int f[2] = {2, 3}, *x, *t, sum = 0;
  cudaMemcpyToSymbol(factor, f, sizeof f);
  cudaGetSymbolAddress((void **)&t, table);
  for (int turn = 0; turn < 2; turn++) {
    cudaMalloc(&x, large * sizeof *x);
    cudaMemset(x, turn ? 0 : 1, large * sizeof *x);
    add<<<4, 32>>>(x, t, n);
    cudaDeviceSynchronize();
    cudaFree(x);
  }
  cudaMallocManaged(&x, 64 * sizeof *x);
  racy<<<1, 64>>>(x);
  cudaDeviceSynchronize();
  cudaMemcpyFromSymbol(&sum, total, sizeof sum);
  printf("%d %d\n", sum, x[31] / 2);
}
`

// TestProgram checks that a whole program runs on a GPU as it runs on the emulator.
func TestProgram(t *testing.T) {
	d := newDriver(t)
	nvcc, err := (&toolchain.Finder{}).FindNVCC(t.Context())
	if err != nil {
		t.Skip("no nvcc")
	}
	source, path := filepath.Join(t.TempDir(), "p.cu"), filepath.Join(t.TempDir(), "p")
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := toolchain.BuildProgram(t.Context(), toolchain.BuildOptions{NVCC: nvcc, Flags: []string{source}, Out: path, RuntimeDir: build().libs, Output: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	var found [2][]string
	for i, emulator := range []func() engine.Engine{nil, d.New} {
		var out bytes.Buffer
		o := session.Options{Seeds: 1, Jobs: 1, Logged: true, Engine: emulator, Timeout: 5 * time.Minute}
		r, err := session.Run(t.Context(), &o, &session.Program{Path: path, Libraries: build().libs, Stdout: &out, Stderr: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		found[i] = append(summary(session.CorpusResult{Report: r}), out.String())
	}
	sum := uint32(0x01010101*100*5/2 + 2*(100*10/4+100*2))
	if want := fmt.Sprintf("%d 31\n", int32(sum)); !strings.HasSuffix(found[0][len(found[0])-1], want) {
		t.Errorf("emulated: %q, want %q", found[0], want)
	}
	if !slices.Equal(found[0], found[1]) || len(found[0]) != 3 {
		t.Errorf("on a GPU\n%q\nemulated\n%q", found[1], found[0])
	}
}
