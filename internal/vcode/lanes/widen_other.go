//go:build !amd64

package lanes

// Widen is ZExt64 for all lanes.
func Widen(d *V64, a *V32) { ZExt64(d, a, ^uint32(0)) }
