package prefetch

import "unsafe"

// lines is Lines for 0 < n <= Most.
//
//go:noescape
func lines(at *[Most]unsafe.Pointer, n int)
