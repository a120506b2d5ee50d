package session

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
)

// TestBLAS checks that the stand-ins for cuBLAS and cuRAND compute the same as plain loops, and that their accesses
// belong to their streams.
func TestBLAS(t *testing.T) {
	exe := hostProgram(t, "testdata/blas.c", "-l:libcublas.so.13", "-l:libcurand.so.10", "-lm")
	for _, scenario := range []string{"products", "vectors", "others", "random", "ordered", "unordered"} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		var out bytes.Buffer
		r, err := Run(ctx, &Options{Seeds: 1, Jobs: 1, FailOn: detect.Error}, &Program{Path: exe, Args: []string{scenario}, Stdout: &out})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != "right\n" {
			t.Errorf("%s: printed %q; %v", scenario, out.String(), r.Skipped)
		}
		if (len(r.Findings) > 0) != (scenario == "unordered") {
			t.Errorf("%s: findings %+v", scenario, r.Findings)
		}
		for _, f := range r.Findings {
			if f.Kind != "inter-kernel" || !strings.HasPrefix(f.Accesses[1].Host, "cublasSscal_v2") && !strings.HasPrefix(f.Accesses[1].Host, "cublasSnrm2_v2") {
				t.Errorf("%s: %s: %s", scenario, f.Kind, f.Message)
			}
		}
	}
}
