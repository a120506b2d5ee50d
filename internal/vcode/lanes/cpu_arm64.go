package lanes

// capable: every processor has what the code needs.
const capable = true

// enter is as for amd64.
//
//go:noescape
func enter(code uintptr, x *Regs, mask uint32) (end, left uint64)
