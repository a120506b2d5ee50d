// Package prefetch asks for memory that is about to be read, so that many reads from all over memory wait together: a processor
// looks only so far ahead by itself.
package prefetch

import "unsafe"

// Most is how many places can be asked for at once.
const Most = 32

// Lines begins to bring the cache lines that the first n of at point to, n at most Most, into the caches. Pointers may be nil.
func Lines(at *[Most]unsafe.Pointer, n int) {
	if n > 0 {
		lines(at, min(n, Most))
	}
}
