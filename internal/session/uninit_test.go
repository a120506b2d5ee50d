package session

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/report"
)

// TestUninitClean checks that no correct program of the corpus has uninitialised reads.
func TestUninitClean(t *testing.T) {
	sequential(t)
	all, err := corpus.Suite("norace")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d programs, error %v", len(all), err)
	}
	for _, folder := range []string{"async_norace", "predict_norace"} {
		more, err := corpus.Suite(folder)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %d programs, error %v", folder, len(more), err)
		}
		all = append(all, more...)
	}
	for _, r := range CheckCorpus(context.Background(), &Options{Jobs: runtime.GOMAXPROCS(0), Bare: true, Beside: uninitErrors(), FailOn: detect.Error}, all) {
		if r.Err != nil {
			t.Fatalf("%s: %v", r.Program.Path(), r.Err)
		}
		for _, f := range r.Report.Findings {
			t.Errorf("%s: %s: %s", r.Program.Path(), f.Kind, f.Message)
		}
	}
}

func uninitErrors() []detect.Spec { return []detect.Spec{all.Uninit("error")} }

// TestUninitShared checks on both engines that a block does not begin with the contents of shared memory that the block
// before left.
func TestUninitShared(t *testing.T) {
	const text = `.version 8.0
.target sm_80
.address_size 64

.visible .entry twice(.param .u64 p)
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<4>;
	.shared .align 4 .b8 box[256];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	shl.b32 %r1, %r1, 2;
	mov.u32 %r2, box;
	add.u32 %r2, %r2, %r1;
	st.shared.u32 [%r2], %r1;
	bar.sync 0;
	ld.shared.u32 %r3, [%r2+64];
	add.u32 %r3, %r3, 1;
	cvt.u64.u32 %rd2, %r1;
	add.s64 %rd3, %rd1, %rd2;
	st.global.u32 [%rd3], %r3;
	ret;
}
`
	l, err := ReadLaunchFile("l.toml", []byte("grid = [3]\nblock = [32]\nargs = [{ buffer = \"p\", type = \"u32\", shape = [32] }]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, emulator := range []func() engine.Engine{engine.NewRef, warp.New} {
		r, err := Check(context.Background(), &Options{Engine: emulator, Bare: true, Beside: uninitErrors(), FailOn: detect.Error},
			&Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: l})
		if err != nil {
			t.Fatal(err)
		}
		// The last 16 threads of each of three blocks read what none writes.
		if len(r.Findings) != 1 || r.Findings[0].Kind != "uninitialised-read" || r.Findings[0].Count != 48 || r.Verdict != report.Found {
			t.Errorf("findings %+v", r.Findings)
		}
	}
}

// TestUninitLocal checks that the programs of testdata/uninit are reported where their sources want it, and that their
// corrected twins (NAME_ok) are not, under all schedules. After a change of a source: nvcc -frandom-seed=uninit/NAME.cu
// -arch=compute_80 -lineinfo -Xcicc -O0 -ptx NAME.cu, with the folder of nvcc's headers shortened to "cuda".
func TestUninitLocal(t *testing.T) {
	sources, err := filepath.Glob("testdata/uninit/*.cu")
	if err != nil || len(sources) < 2 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		name := strings.TrimSuffix(source, ".cu")
		text := map[string]string{}
		for _, ending := range []string{".cu", ".ptx", ".toml"} {
			b, err := os.ReadFile(name + ending)
			if err != nil {
				t.Fatal(err)
			}
			text[ending] = string(b)
		}
		l, err := ReadLaunchFile(name+".toml", []byte(text[".toml"]))
		if err != nil {
			t.Fatal(err)
		}
		p := &corpus.Program{Name: filepath.Base(name), Dir: "uninit", Source: text[".cu"]}
		if p.Wants, _, err = corpus.ParseWants(source, p.Source); err != nil || (len(p.Wants) == 0) != strings.HasSuffix(name, "_ok") {
			t.Fatalf("%s: wants %v, error %v", source, p.Wants, err)
		}
		for seed, schedule := range []engine.Schedule{engine.Fair, engine.PCT, engine.Lockstep} {
			o := &Options{Bare: true, Beside: uninitErrors(), FailOn: detect.Error, Schedule: schedule, Seed: uint64(seed)}
			if schedule == engine.Lockstep && (strings.Contains(name, "recursive") || strings.Contains(name, "virtual")) {
				continue // engine ref executes them: it follows no local variables
			}
			in := &Input{Images: []cuda.Image{{Name: p.Name + ".ptx", Text: text[".ptx"]}}, Launch: l, Rename: func(string) string { return corpusSource(p) }}
			r, err := Check(context.Background(), o, in)
			if err != nil {
				t.Fatal(err)
			}
			if missing, unexpected := MatchCorpus(p, r); len(missing) > 0 || len(unexpected) > 0 {
				t.Errorf("%s, schedule %d: missing %v, unexpected %v", source, schedule, missing, unexpected)
			}
		}
	}
}
