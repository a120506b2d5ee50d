package warp

import (
	"fencepost.dev/fencepost/internal/lanes"
)

// hotLists is how many lists of a text launches do before they are compiled (lanes.Compile). Of 50, 200 and 1000, 200 gave the shortest
// first launches of the kernels of cmd/bench: Go code does that many in about the time in which they are compiled, so
// that launches of a few warps do not wait for that. Tests change it.
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
