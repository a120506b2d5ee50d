//go:build !amd64 && !arm64

package lanes

const capable = false

func enter(uintptr, *Regs, uint32) (end, left uint64) { panic("BUG: no code for this processor") }

func (c *Compiled) translate([]int32, []Near, bool) []byte { panic("BUG: no code for this processor") }
