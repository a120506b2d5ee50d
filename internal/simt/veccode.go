package simt

import (
	"slices"

	"fencepost.dev/fencepost/internal/lanes"
)

// hotLists is how many lists of a text a launch does before they are compiled (lanes.Compile): some milliseconds of a warp's work,
// which take about as long as to compile them, so that launches of a few warps do not wait for that. Tests change it.
var hotLists = 1000

// operations does the list at a place of text.ops.
func (x *vecMachine) operations(at int32, f *lanes.Regs, mask uint32) uint64 {
	if x.machine != nil {
		return x.machine.Run(at, f, mask)
	}
	if x.lists++; x.lists == hotLists {
		x.machine = x.t.compiled(x.tells)
	}
	return lanes.Run(x.t.ops[at:], f, mask)
}

// compiled gives the machine code of a text's lists; nil where there is none. Launches whose accesses are logged (see lanes.Log) have
// code of their own.
func (t *text) compiled(told bool) *lanes.Compiled {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.machine[withLog(told)]
	if *m == nil {
		*m = lanes.Compile(t.ops, t.lists(), told)
	}
	return *m
}

// withLog is the index in text.machine.
func withLog(told bool) int {
	if told {
		return 1
	}
	return 0
}

// lists gives the places in text.ops at which lists begin.
func (t *text) lists() []int32 {
	var starts []int32
	for i := range t.code {
		if in := &t.code[i]; in.op == oRun {
			starts = append(starts, in.a)
		}
	}
	for i := range t.edges {
		if m := t.edges[i].moves; m >= 0 {
			starts = append(starts, m)
		}
	}
	slices.Sort(starts)
	return slices.Compact(starts)
}
