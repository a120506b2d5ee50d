package prefetch

import (
	"testing"
	"unsafe"
)

// TestLines prefetches any number of addresses, with nil and invalid ones among them. None may fault or change.
func TestLines(t *testing.T) {
	x := uint64(7)
	var at [Most]unsafe.Pointer
	for i := range at {
		if i%3 != 0 {
			at[i] = unsafe.Pointer(&x)
		}
	}
	was := at
	for n := -1; n <= Most+1; n++ {
		Lines(&at, n)
	}
	if x != 7 || at != was {
		t.Error("what is asked for has changed")
	}
}
