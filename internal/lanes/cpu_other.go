//go:build !amd64

package lanes

const capable = false

func asmRun(*Op, uintptr, *Regs, uint32) (uint64, *Op)                 { panic("BUG: no assembly") }
func asmAtomic32(*V32, uint32, *byte, *V64, *V32, *V32, uint32) uint32 { panic("BUG: no assembly") }
func asmAtomic64(*V64, uint32, *byte, *V64, *V64, *V64, uint32) uint32 { panic("BUG: no assembly") }

func (c *Compiled) translate([]int32, bool) []byte { panic("BUG: no code for this processor") }
