package session

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
)

// nestedCases are the kinds of the findings of the cases in testdata/nested.cu, none for correct ones, and how the
// program ends.
var nestedCases = map[string]struct {
	kind detect.Kind
	ends string
}{
	"sync_ok": {}, "own": {}, "two_null": {}, "two_threads_null": {}, "tail": {}, "tail_all_blocks": {}, "named_event": {}, "set": {},
	"recursive": {}, "quicksort": {}, "next": {},
	"rows": {}, "rows_race": {kind: detect.InterKernel}, "asks": {kind: detect.Kind(engine.DeviceRefused)},
	"nosync": {kind: detect.InterKernel}, "after": {kind: detect.InterKernel}, "two_blocks": {kind: detect.InterKernel}, "forget": {kind: detect.InterKernel},
	"named_noevent": {kind: detect.InterKernel}, "set_race": {kind: detect.InterKernel}, "next_other_stream": {kind: detect.InterKernel},
	"grandchild": {kind: detect.InterKernel},
	"local":      {kind: detect.Kind(engine.DeviceRefused)},
	"badcfg":     {kind: detect.Kind(engine.DeviceRefused)}, "deep_error": {kind: detect.Kind(engine.DeviceRefused)},
	"oob": {kind: detect.Kind(engine.OutOfBounds), ends: "cudaErrorIllegalAddress"},
}

// TestNested runs programs whose kernels launch kernels, on both engines.
func TestNested(t *testing.T) {
	nvcc, libraries := testNVCC(t), standins(t)
	exe := filepath.Join(t.TempDir(), "nested")
	if out, err := exec.Command(nvcc, "-rdc=true", "-lineinfo", "-Xcicc", "-O0", "-gencode", "arch=compute_80,code=compute_80", "-L"+libraries, "-o", exe,
		"testdata/nested.cu").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range nestedCases {
		for _, emulator := range []string{"ref", "warp"} {
			var out bytes.Buffer
			o := &Options{Seeds: 1, Jobs: 1, FailOn: detect.Error, Engine: Engines()[emulator]}
			r, err := Run(context.Background(), o, &Program{Path: exe, Args: []string{name}, Stdout: &out})
			if err != nil {
				t.Fatal(err)
			}
			if want.ends == "" {
				want.ends = "cudaSuccess"
			}
			if got := strings.TrimSpace(out.String()); got != want.ends+", 0 wrong" {
				t.Errorf("%s on %s: %s", name, emulator, got)
			}
			found := false
			for i := range r.Findings {
				f := &r.Findings[i]
				if found = found || f.Kind == want.kind; f.Kind != want.kind {
					t.Errorf("%s on %s: %s %s", name, emulator, f.Kind, f.Message)
				}
			}
			if found != (want.kind != "") || len(r.Skipped) > 0 {
				t.Errorf("%s on %s: %d findings, want %q; not checked: %v", name, emulator, len(r.Findings), want.kind, r.Skipped)
			}
		}
	}
}
