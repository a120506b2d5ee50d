package peak

import (
	"runtime"
	"testing"
)

// TestMemory checks that the peak grows by the touched memory, and remains when the memory is freed.
func TestMemory(t *testing.T) {
	before := Memory()
	const size = 256 << 20 // more than anything else here has needed
	touch(size)
	runtime.GC()
	after := Memory()
	if after < size || after < before {
		t.Errorf("%d bytes, and then %d; %d were touched between", before, after, size)
	}
}

//go:noinline
func touch(size int) {
	b := make([]byte, size)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	runtime.KeepAlive(b)
}
