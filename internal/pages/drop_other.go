//go:build unix && !linux

package pages

// Drop says that pages cannot be given back so that they read as zero: only Linux promises that.
func Drop([]byte, bool) bool { return false }
