//go:build !amd64

package lanes

func grouped(Code) bool { return false }
