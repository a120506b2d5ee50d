//go:build !amd64 && !arm64

package lanes

func grouped(Code) bool { return false }
