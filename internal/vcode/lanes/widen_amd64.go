package lanes

// Widen is ZExt64 for all lanes, two at a time.
//
//go:noescape
func Widen(d *V64, a *V32)
