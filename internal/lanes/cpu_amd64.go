package lanes

import "golang.org/x/sys/cpu"

// avx512 and avx2 say what assembly the processor can run; the tests clear them to run the Go code. The first set is that of
// every server since 2017, and of AMD's processors since 2022; the second, of nearly all processors since 2015.
var (
	avx512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512CD && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL &&
		cpu.X86.HasBMI1 && cpu.X86.HasBMI2
	avx2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI1 && cpu.X86.HasBMI2
)
