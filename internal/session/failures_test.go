package session

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
)

// TestLeakText checks the text about memory that is never freed.
func TestLeakText(t *testing.T) {
	one := failure(&cuda.Failure{Kind: cuda.Leak, Call: "cudaMalloc", Msg: "cudaMalloc #2 (64 bytes)", Count: 1, Bytes: 64})
	if want := "cudaMalloc #2 (64 bytes) is not freed when the program ends or calls cudaDeviceReset"; one.Message != want || one.Severity != detect.Warning || one.Accesses[0].Doing != "allocates it" {
		t.Errorf("%s %q: %+v", one.Severity, one.Message, one.Accesses)
	}
	many := failure(&cuda.Failure{Kind: cuda.Leak, Call: "cudaMalloc", Msg: "cudaMalloc #2 (64 bytes)", Count: 3, Bytes: 192})
	if want := "3 allocations, 192 bytes in all, are not freed"; !strings.HasPrefix(many.Message, want) || !strings.HasSuffix(many.Message, "; the first is cudaMalloc #2 (64 bytes)") {
		t.Errorf("%q, want %q ...", many.Message, want)
	}
}
