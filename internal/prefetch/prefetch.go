// Package prefetch prefetches memory that is about to be read, so that many reads from distant places wait together: a
// processor looks ahead only a short distance by itself.
package prefetch

import "unsafe"

// Most is the greatest number of places in one call.
const Most = 32

// Lines begins to load the cache lines to which the first n of at point into the caches. n is at most Most. Pointers
// may be nil.
func Lines(at *[Most]unsafe.Pointer, n int) {
	if n > 0 {
		lines(at, min(n, Most))
	}
}
