package lanes

import "golang.org/x/sys/cpu"

// capable reports whether the processor can run the code, as nearly all since 2015 can.
var capable = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI1 && cpu.X86.HasBMI2

// enter runs the code. It returns the Imm of the operation at which the list ended. If left is not 0, it is the number,
// counted from 1, of the operations that the code leaves to Go code.
//
//go:noescape
func enter(code uintptr, x *Regs, mask uint32) (end, left uint64)

// enterAll initialises the counts of files and runs the code for all lanes, with one of n files after the other, as
// long as the list ends at want. It returns how many did, and the results for the next one, if there is one.
//
//go:noescape
func enterAll(code uintptr, files **Regs, n uint64, limit int64, marks, want uint64) (done, end, left uint64)
