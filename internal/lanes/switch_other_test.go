//go:build !amd64

package lanes

func setAssembly(bool) bool { return false }
