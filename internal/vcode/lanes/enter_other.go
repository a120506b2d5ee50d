//go:build !amd64

package lanes

import "unsafe"

// enterAll is as for amd64.
func enterAll(code uintptr, files **Regs, n uint64, limit int64, marks, want uint64) (done, end, left uint64) {
	for _, x := range unsafe.Slice(files, n) {
		x.Steps, x.Limit, x.Marks = 0, limit, marks
		if end, left = enter(code, x, ^uint32(0)); left != 0 || end != want {
			break
		}
		done++
	}
	return done, end, left
}
