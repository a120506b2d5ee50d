package lanes

import "golang.org/x/sys/cpu"

// capable says that the processor can run the code, as nearly all since 2015 can.
var capable = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI1 && cpu.X86.HasBMI2

// enter goes to code, and gives what it leaves: the Imm of the operation at which the list ended, or, where left is not 0, the number of
// what it leaves to Go code, counted from 1.
//
//go:noescape
func enter(code uintptr, x *Regs, mask uint32) (end, left uint64)

// enterAll sets what files count and goes to code, all lanes, with one of n files after the other, as long as code leaves
// want. It gives how many did, and what code left for the next one, if there is one.
//
//go:noescape
func enterAll(code uintptr, files **Regs, n uint64, limit int64, marks, want uint64) (done, end, left uint64)
