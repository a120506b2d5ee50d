package lanes

import "golang.org/x/sys/cpu"

// capable says that the processor can run the assembly, as nearly all since 2015 can.
var capable = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI1 && cpu.X86.HasBMI2

// asmRun does the operations of code until one ends the list, and gives its Imm; or until one that it cannot do, which it gives.
// Where at is not 0 it begins with the code there, which may go on with operations of its own (OpResume).
//
//go:noescape
func asmRun(code *Op, at uintptr, x *Regs, mask uint32) (end uint64, left *Op)

// asmAtomic32 and asmAtomic64 give a number that is not 0 where a lane changed what it found. The mask is not 0.
//
//go:noescape
func asmAtomic32(d *V32, op uint32, mem *byte, off *V64, b, c *V32, mask uint32) uint32

//go:noescape
func asmAtomic64(d *V64, op uint32, mem *byte, off *V64, b, c *V64, mask uint32) uint32
