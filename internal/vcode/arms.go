package vcode

import (
	"slices"

	"fencepost.dev/fencepost/internal/engine/loader"
)

// maxArms bounds the instructions of the arms of a branch.
const maxArms = 200

// findArms finds the branches whose lanes soon reconverge (Text.Arms). One way of such a branch, or both, goes through
// an arm: consecutive instructions that only compute, load, store, and branch among themselves. All exits of the arms
// lead to one place, the end. An arm writes no scalar that is live at the start of the other way or at the end. So the
// scalars of one group serve the lanes of both ways.
func (b *compiler) findArms() {
	t := b.t
	if t.Lockstep {
		return
	}
	t.Arms = make([]int32, len(t.Code))
	for pc := range t.Code {
		if in := &t.Code[pc]; in.Op == OpBranch {
			t.Arms[pc] = t.armsEnd(int32(pc))
		}
	}
}

// armsEnd returns the end of the arms of a branch, and 0 if it has none.
func (t *Text) armsEnd(pc int32) int32 {
	in := &t.Code[pc]
	a, b := &t.Edges[in.A], &t.Edges[in.B]
	first, second := min(a.To, b.To), max(a.To, b.To)
	if first <= pc || first == second {
		return 0
	}
	var written []int32 // scalars
	for _, e := range []*Edge{a, b} {
		if e.Moves >= 0 {
			written = t.scalarsWritten(written, e.Moves)
		}
	}
	end, written, ok := t.arm(first, second, written)
	if ok && end != second {
		if end < second {
			return 0
		}
		var behind int32
		behind, written, ok = t.arm(second, end, written)
		ok = ok && behind == end
	}
	if !ok || end-first > maxArms {
		return 0
	}
	for _, place := range []int32{second, end} {
		if t.Meet[place] < 0 || slices.ContainsFunc(t.Meets[t.Meet[place]], func(reg int32) bool { return slices.Contains(written, reg) }) {
			return 0
		}
	}
	return end
}

// arm examines the instructions from one place to another. It returns the only place outside that they lead to and the
// scalars that they write, and false if they are not an arm.
func (t *Text) arm(from, to int32, written []int32) (end int32, _ []int32, ok bool) {
	if to-from > maxArms {
		return 0, nil, false
	}
	goes := func(edge int32) bool {
		at := t.Edges[edge].To
		if at >= from && at < to {
			return true
		}
		if end == 0 {
			end = at
		}
		return at == end
	}
	for pc := from; pc < to; pc++ {
		ok := true
		switch in := &t.Code[pc]; in.Op {
		case OpRun:
			written = t.scalarsWritten(written, in.A)
		case OpSWiden:
			written = append(written, in.D)
		case OpLoad, OpStore:
			e := &t.Effects[in.A]
			ok = !e.Strong() && !slices.ContainsFunc(e.Results, func(d loader.Slot) bool { return d.Kind == loader.OpUniform && e.Reach < 0 })
		case OpJump:
			ok = goes(in.A)
		case OpBranch, OpBranchS:
			ok = goes(in.A) && goes(in.B)
		default:
			ok = false
		}
		if !ok {
			return 0, nil, false
		}
	}
	return end, written, end != 0
}

// scalarsWritten adds to regs the scalars that the list at a place of Text.Ops writes.
func (t *Text) scalarsWritten(regs []int32, at int32) []int32 {
	for ; ; at++ {
		o := &t.Ops[at]
		if o.Ends() {
			return regs
		}
		if reg, ok := o.Scalar(); ok {
			regs = append(regs, reg)
		}
	}
}
