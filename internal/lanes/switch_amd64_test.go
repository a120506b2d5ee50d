package lanes

// processor is what cpu_amd64.go found.
type processor struct{ avx512, popcnt bool }

func (p processor) any() bool { return p.avx512 }

func (p processor) restore() { avx512, avx512popcnt = p.avx512, p.popcnt }

// setAssembly allows the assembly or not, and tells what was allowed before.
func setAssembly(on bool) processor {
	old := processor{avx512, avx512popcnt}
	avx512, avx512popcnt = avx512 && on, avx512popcnt && on
	return old
}
