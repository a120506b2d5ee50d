package lanes

import "golang.org/x/sys/cpu"

// avx512 says that the processor can run the assembly; the tests clear it to run the Go code. The set is that of every
// server since 2017, and of AMD's processors since 2022.
var avx512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512CD && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL &&
	cpu.X86.HasBMI1 && cpu.X86.HasBMI2
