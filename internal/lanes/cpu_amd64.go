package lanes

import "golang.org/x/sys/cpu"

// What the processor has; the tests clear it to run the Go code.
var (
	// avx512 is the set of every server since 2017 and of AMD's processors since 2022.
	avx512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512CD && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL
	// avx512popcnt came two years later.
	avx512popcnt = cpu.X86.HasAVX512VPOPCNTDQ
)
