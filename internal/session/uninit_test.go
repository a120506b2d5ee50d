package session

import (
	"context"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/report"
)

// TestUninitClean: no correct program of the corpus reads what nothing has written.
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

// TestUninitShared: a block begins without what the one before left in shared memory, on both engines.
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
