package warp

import (
	"math"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/vcode"
)

// goesThroughArms enables the method arms. Tests clear it to compare with the execution by groups.
var goesThroughArms = true

// The results of arms.
const (
	noArms     = iota // nothing was executed
	throughArm        // the lanes have reconverged at the end of the arms
	inArms            // the lanes are still diverged: the warp has two groups, and one of them goes on
)

// arms executes a divergent branch of a warp whose lanes are all in one group, and the code up to the point where the
// lanes reconverge (vcode.Text.Arms). It has the effect of exec, fork and choose, but makes no group and joins none.
// This is possible only if the turn does not end in between and nobody inspects the warp. Otherwise, or if an arm
// contains an instruction that arms does not execute, it makes the groups that exec would have made.
func (x *machine) arms(w *engine.Warp, v *registers, pc int32, end uint64) (how int) {
	t, g := x.t, &v.groups[0]
	if t.Arms == nil || t.Arms[pc] == 0 || x.calls != nil || len(v.groups) != 1 || g.mask != w.Ready || w.Forced != 0 ||
		x.r.Sched.Spin.Phase != engine.SpinIdle || !goesThroughArms {
		return noArms
	}
	cost := uint64(t.Counts[pc+1] - t.Counts[pc])
	if w.Time+cost >= end || w.Strain+cost >= w.Check {
		return noArms
	}
	in, mask := &t.Code[pc], g.mask
	first, second, lanes := &t.Edges[in.A], &t.Edges[in.B], v.preds[in.C]&mask
	if lanes == 0 || lanes == mask {
		return noArms
	}
	if second.To < first.To {
		first, second, lanes = second, first, mask&^lanes
	}
	x.count(w, cost, mask)
	a := arm{x: x, w: w, v: v, s: x.scalars(v, g.slot), end: end, began: w.Strain}
	v.regs(a.s)
	if second.Moves >= 0 {
		x.operations(second.Moves, &v.files, mask&^lanes)
	}
	if first.Moves >= 0 {
		x.operations(first.Moves, &v.files, lanes)
	}
	join := t.Arms[pc]
	at, ok := a.run(first.To, second.To, lanes)
	ran := w.Strain
	if !ok || !a.goesOn() || x.r.Stop != nil {
		a.part(mask&^lanes, group{pc: at, ran: ran}, group{pc: second.To, ran: a.began}, 0)
		return inArms
	}
	a.apart(at, second.To, lanes, mask&^lanes)
	if at == second.To {
		ran = a.began
	} else {
		other, ok := a.run(second.To, join, mask&^lanes)
		if !ok || !a.goesOn() || x.r.Stop != nil {
			a.part(mask&^lanes, group{pc: at, ran: ran}, group{pc: other, ran: w.Strain}, 1)
			return inArms
		}
		a.apart(at, other, lanes, mask&^lanes)
	}
	if x.r.Out.Needs&event.NeedReconverge != 0 {
		w.Together(x.r, mask)
	}
	g.pc, g.ran = join, ran
	return throughArm
}

// arm is the state that the two arms of a branch share.
type arm struct {
	x          *machine
	w          *engine.Warp
	v          *registers
	s          []uint64
	end, began uint64
}

// goesOn reports, at the start of a block, that the turn goes on and that no check for starved lanes is due.
func (a *arm) goesOn() bool {
	return a.w.Time < a.end && a.w.Strain < a.w.Check
}

// run executes the arm that begins at pc for the lanes of mask, up to the place behind, which follows the arm. It
// returns the place that the lanes reached, and false if that place is inside the arm.
func (a *arm) run(pc, behind int32, mask uint32) (int32, bool) {
	x, w, t := a.x, a.w, a.x.t
	for from := pc; ; {
		switch in := &t.Code[pc]; {
		case in.Op == vcode.OpRun:
			pc = x.do(w, &a.v.files, in, mask, math.MinInt64)
			if n := a.v.files.Steps; n != 0 {
				x.count(w, uint64(n), mask)
			}
			if t.Meet[pc] < 0 {
				continue
			}
			x.spent(w, from, pc, mask)
		case in.Op == vcode.OpJump: // without moves: they are in a list
			x.spent(w, from, pc+1, mask)
			pc = t.Edges[in.A].To
		case in.Op == vcode.OpLoad && !t.Effects[in.A].Uniform:
			x.load(w, in.A, mask, a.s)
			pc++
			continue
		case in.Op == vcode.OpStore:
			x.store(w, in.A, mask, a.s)
			pc++
			continue
		default:
			x.spent(w, from, pc, mask)
			return pc, false
		}
		if from = pc; pc >= behind || !a.goesOn() {
			return pc, pc >= behind
		}
	}
}

// apart records, for reconvergence events, that the lanes of the two masks were at two places when the next group was
// chosen, as choose does.
func (a *arm) apart(one, other int32, first, second uint32) {
	if a.x.r.Out.Needs&event.NeedReconverge == 0 {
		return
	}
	w, ending := a.w, uint32(0)
	for _, g := range []group{{pc: one, mask: first}, {pc: other, mask: second}} {
		if a.x.t.Code[g.pc].Op == vcode.OpExit {
			ending |= g.mask
		}
	}
	for _, on := range []uint32{first, second} {
		w.Apart = w.Apart || on&^ending != 0 && on|ending != w.Live
	}
	if one != other {
		w.Together(a.x.r, second|ending)
	}
}

// part makes the groups of the two ways. Group cur goes on.
func (a *arm) part(rest uint32, first, second group, cur int) {
	x, v := a.x, a.v
	k := x.part(v, 0, rest)
	g, h := &v.groups[0], &v.groups[k]
	g.pc, g.ran = first.pc, first.ran
	h.pc, h.ran = second.pc, second.ran
	v.cur, v.several, v.next = cur, true, h.pc
	if cur != 0 {
		v.next = g.pc
	}
	pc := v.groups[cur].pc
	a.w.Regroup = x.t.Meet[pc] >= 0 && (pc >= v.next || a.w.Strain >= a.w.Check)
}
