package warp

import (
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// hotLists is the number of lists of a text that launches execute before the text is compiled (lanes.Compile). Launches
// of a few warps need not wait for the compilation: Go code executes that many lists in about the time of one
// compilation. Of 50, 200 and 1000, the value 200 gave the shortest first launches of the kernels of cmd/bench. Tests
// change it.
var hotLists = 200

// operations executes the list at a place of vcode.Text.Ops.
func (x *machine) operations(at int32, f *lanes.Regs, mask uint32) uint64 {
	if x.machine != nil {
		return x.machine.Run(at, f, mask)
	}
	if x.lists++; x.lists == hotLists {
		x.machine = x.t.Compiled(x.tells)
	}
	return lanes.Run(x.t.Ops[at:], f, mask)
}
