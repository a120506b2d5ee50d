//go:build unix && !linux

package pages

// Drop reports false: only Linux guarantees that returned pages read as zero.
func Drop([]byte, bool) bool { return false }
