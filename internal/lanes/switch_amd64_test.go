package lanes

// setAssembly allows the assembly or not, and tells what was allowed before.
func setAssembly(on bool) bool {
	old := avx512
	avx512 = on && cpuHas
	return old
}

var cpuHas = avx512
