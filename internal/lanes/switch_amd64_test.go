package lanes

// tiers are the ways in which functions are done on this processor, the fastest first.
func tiers() []string {
	list := []string{"portable"}
	if hasAVX2 {
		list = append([]string{"AVX2"}, list...)
	}
	if hasAVX512 {
		list = append([]string{"AVX-512"}, list...)
	}
	return list
}

// use makes one of them the one that is used.
func use(tier string) {
	avx512, avx2 = hasAVX512 && tier == "AVX-512", hasAVX2 && tier != "portable"
}

var hasAVX512, hasAVX2 = avx512, avx2
