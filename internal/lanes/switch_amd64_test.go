package lanes

// ways are those in which this processor can do lists, the fastest first.
func ways() []string {
	if hasAVX2 {
		return []string{"assembly", "portable"}
	}
	return []string{"portable"}
}

// use makes one of them the one that is used.
func use(way string) { avx2 = way == "assembly" }

var hasAVX2 = avx2
