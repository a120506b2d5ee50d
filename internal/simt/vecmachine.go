package simt

import (
	"slices"

	"fencepost.dev/fencepost/internal/lanes"
)

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

// readyCode is the machine code that there is already, nil for none.
func (t *text) readyCode(told bool) *lanes.Compiled {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine[withLog(told)]
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
		if in := &t.code[i]; in.op == opRun {
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
