package warp

import (
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// hotLists is how many lists of a text launches do before they are compiled (lanes.Compile), so that launches of a few warps do not wait
// for that: Go code does that many in about the time that it takes to compile a text. Of 50, 200 and 1000, 200 gave the shortest first
// launches of kernels of cmd/bench. Tests change it.
var hotLists = 200

// operations does the list at a place of vcode.Text.Ops.
func (x *machine) operations(at int32, f *lanes.Regs, mask uint32) uint64 {
	if x.machine != nil {
		return x.machine.Run(at, f, mask)
	}
	if x.lists++; x.lists == hotLists {
		x.machine = x.t.Compiled(x.tells)
	}
	return lanes.Run(x.t.Ops[at:], f, mask)
}
