//go:build !amd64

package prefetch

import "unsafe"

// lines does nothing: the processor's own reads have to do.
func lines(*[Most]unsafe.Pointer, int) {}
