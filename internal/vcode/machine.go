package vcode

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// Compiled returns the machine code of a text's lists, compiling them if necessary, and nil if there is no code for
// this machine. Launches with logged accesses (see lanes.Log) have code of their own; told selects it.
func (t *Text) Compiled(told bool) *lanes.Compiled {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.machine[withLog(told)]
	if *m == nil {
		*m = lanes.Compile(t.Ops, t.lists(), t.near(), told)
	}
	return *m
}

// ReadyCode returns the machine code if it is already compiled, and nil otherwise. Done is the number of lists that
// launches have executed without machine code.
func (t *Text) ReadyCode(told bool) (code *lanes.Compiled, done int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine[withLog(told)], t.done[withLog(told)]
}

// Done records the number of lists that launches have executed without machine code. The number is a lower bound: of
// launches that run concurrently it counts only one.
func (t *Text) Done(told bool, lists int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.done[withLog(told)]
	*n = max(*n, lists)
}

// withLog returns the index in Text.machine.
func withLog(told bool) int {
	if told {
		return 1
	}
	return 0
}

// near describes the memory that loads touch. All loads of one variable of shared memory touch the same piece. So do
// all loads of shared memory without a variable.
func (t *Text) near() []lanes.Near {
	type piece struct{ begin, end uint64 }
	pieces := map[piece]int32{}
	near := make([]lanes.Near, len(t.Reaches))
	for k := range t.Reaches {
		n, e := &t.Reaches[k], &t.Effects[t.Reaches[k].Effect]
		if e.Space != event.Shared || n.Store || n.Each || n.Row > 1<<20 {
			continue
		}
		p := piece{e.VarBegin, e.VarEnd}
		if pieces[p] == 0 {
			pieces[p] = int32(len(pieces) + 1)
		}
		near[k] = lanes.Near{Piece: pieces[p], At: int64(e.Offset + n.Low), Size: n.Size, Row: n.Row}
	}
	return near
}

// lists returns the places in Text.Ops at which lists begin.
func (t *Text) lists() []int32 {
	var starts []int32
	for i := range t.Code {
		if in := &t.Code[i]; in.Op == OpRun {
			starts = append(starts, in.A)
		}
	}
	for i := range t.Edges {
		if m := t.Edges[i].Moves; m >= 0 {
			starts = append(starts, m)
		}
	}
	slices.Sort(starts)
	return slices.Compact(starts)
}
