package simt

import (
	"math"
	"math/bits"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/lanes"
	"fencepost.dev/fencepost/internal/simt/loader"
	"fencepost.dev/fencepost/internal/simt/vcode"
)

// vec32 gives a vector operand; one that is a scalar is spread into scratch vector k.
func (x *vecMachine) vec32(v *vecWarp, s []uint64, o int32, k int) *v32 {
	if o >= 0 {
		return &v.v32[o]
	}
	l := &x.t.Lines[^o]
	to := &x.x32[k]
	switch {
	case l.Pattern >= 0:
		lanes.Add32S(to, &x.t.Patterns[l.Pattern].Low, uint32(s[l.Reg]), ^uint32(0))
	case l.Stride == 0:
		lanes.Set32(to, uint32(s[l.Reg]), ^uint32(0))
	default:
		lanes.Affine32(to, uint32(s[l.Reg]), uint32(l.Stride), ^uint32(0))
	}
	return to
}

func (x *vecMachine) vec64(v *vecWarp, s []uint64, o int32, k int) *v64 {
	if o >= 0 {
		return &v.v64[o]
	}
	l := &x.t.Lines[^o]
	to := &x.x64[k]
	switch {
	case l.Pattern >= 0:
		lanes.Add64S(to, &x.t.Patterns[l.Pattern].All, s[l.Reg], ^uint32(0))
	case l.Stride == 0:
		lanes.Set64(to, s[l.Reg], ^uint32(0))
	default:
		lanes.Affine64(to, s[l.Reg], l.Stride, ^uint32(0))
	}
	return to
}

// pred gives a predicate operand as lanes.
func (v *vecWarp) pred(s []uint64, o int32) uint32 {
	if o >= 0 {
		return v.preds[o]
	}
	return -uint32(s[^o] & 1)
}

// regs gives the scalars of a group to package lanes.
func (v *vecWarp) regs(s []uint64) { v.files.Scalars = &s[0] }

// spent counts the instructions from one place to another that the lanes of mask executed.
func (x *vecMachine) spent(w *warp, from, to int32, mask uint32) {
	x.count(w, uint64(x.t.Counts[to]-x.t.Counts[from]), mask)
}

// count adds to the counts of instructions, or takes from them: k is a number with a sign then.
func (x *vecMachine) count(w *warp, k uint64, mask uint32) {
	w.time += k
	w.strain += k
	x.r.clock += k
	x.r.stats.Warps += k
	x.r.stats.Lanes += k * uint64(bits.OnesCount32(mask))
}

// follow does the moves of an edge for a group.
func (x *vecMachine) follow(v *vecWarp, g *group, e *vcode.Edge) {
	if e.Moves >= 0 {
		v.regs(x.scalars(v, g.slot))
		x.operations(e.Moves, &v.files, g.mask)
	}
	g.pc = e.To
}

// fork parts the running group at a branch: the lanes of taken go over edge a, the others over b. The group keeps those
// that come to the smaller place.
func (x *vecMachine) fork(w *warp, v *vecWarp, taken uint32, a, b *vcode.Edge) {
	if b.To < a.To {
		a, b, taken = b, a, v.groups[v.cur].mask&^taken
	}
	k := x.part(v, v.cur, v.groups[v.cur].mask&^taken)
	g, h := &v.groups[v.cur], &v.groups[k]
	x.follow(v, h, b)
	x.follow(v, g, a)
	h.ran = w.strain
	v.several, v.next = true, min(v.next, h.pc)
	w.regroup = w.regroup || g.pc >= v.next
}

// forkMany sends the lanes of a group to the edges that an indexed branch gives them.
func (x *vecMachine) forkMany(w *warp, v *vecWarp, e *vcode.Effect, place uint32) {
	rest := v.groups[v.cur].mask
	for rest != 0 {
		lane := bits.TrailingZeros32(rest)
		k := x.value(w, lane, &e.Operands[0]) & 0xffff_ffff
		same := uint32(0)
		for m := rest; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); x.value(w, i, &e.Operands[0])&0xffff_ffff == k {
				same |= 1 << i
			}
		}
		rest &^= same
		if k >= uint64(len(e.Succs)) {
			// Undefined: a fault, and the lanes go over the last edge.
			for m := same; m != 0; m &= m - 1 {
				x.r.faults.at(x.r, BadCall, w, bits.TrailingZeros32(m), place, "branches", "brx.idx by %d, but the list has %d targets", k, len(e.Succs))
			}
			k = uint64(len(e.Succs) - 1)
		}
		at := v.cur
		if rest != 0 {
			at = x.part(v, v.cur, same)
		}
		g := &v.groups[at]
		x.follow(v, g, &x.t.Edges[e.Succs[k]])
		g.ran = w.strain
	}
	w.regroup = true
}

// widenLine extends a line, or multiplies it by a constant into 64 bits, when no lane of mask wraps. It gives the lanes
// for which that can be done: all of mask, or the first ones; then the group must part.
func (x *vecMachine) widenLine(s []uint64, in *vcode.Instr, mask uint32) uint32 {
	l := &x.t.Lines[in.B]
	plus := func(lane int) uint64 {
		if l.Pattern >= 0 {
			return x.t.Patterns[l.Pattern].All[lane]
		}
		return uint64(lane) * l.Stride
	}
	value := func(lane int) uint64 {
		u := uint32(s[l.Reg] + plus(lane))
		if in.Fn == vcode.WidenS {
			return uint64(int64(int32(u)))
		}
		return uint64(u)
	}
	first, last := bits.TrailingZeros32(mask), 31-bits.LeadingZeros32(mask)
	at := value(first)
	ok := mask
	if even := l.Pattern < 0 && l.Stride+1<<26 < 1<<27; !even || value(last) != at+uint64(last-first)*l.Stride {
		ok = 0
		for m := mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			if value(i) != at+plus(i)-plus(first) {
				break
			}
			ok |= 1 << i
		}
	}
	if ok == mask { // otherwise the source, which may be the same register, is read again
		s[in.D] = (at - plus(first)) * in.Imm
	}
	return ok
}

// rowLanes computes an instruction lane by lane.
func (x *vecMachine) rowLanes(w *warp, n *vcode.Row, mask uint32) {
	a := &x.r.args
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		for k := range n.Src {
			a.S[k] = x.value(w, i, &n.Src[k])
		}
		n.Eval(a)
		for _, d := range n.Dst {
			x.put(w, i, d, a.D[d.At])
		}
	}
}

// rowOnce computes an instruction of uniform values.
func (x *vecMachine) rowOnce(s []uint64, n *vcode.Row) {
	a := &x.r.args
	for k := range n.Src {
		if o := &n.Src[k]; o.Kind == loader.OpUniform {
			a.S[k] = s[o.Reg]
		} else {
			a.S[k] = o.Val
		}
	}
	n.Eval(a)
	for _, d := range n.Dst {
		s[d.Reg] = a.D[d.At]
	}
}

// specialLanes reads a special register lane by lane.
func (x *vecMachine) specialLanes(w *warp, n *vcode.Row, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		val := x.r.special(w, i, isa.SpecialID(n.Imm))
		for _, d := range n.Dst {
			x.put(w, i, d, val)
		}
	}
}

// builtin calls a function that the engine supplies.
func (x *vecMachine) builtin(w *warp, e *vcode.Effect, mask uint32, place uint32) {
	for m := mask; m != 0; m &= m - 1 {
		x.r.builtin(&invocation{x.r, w, bits.TrailingZeros32(m), &e.Instr, e.Fn, place})
	}
}

// exit ends the lanes of mask.
func (x *vecMachine) exit(w *warp, mask uint32, place uint32) {
	heldOf(w).exits.note(mask, w.live, place)
	x.r.exit(w, mask, place)
}

// exec runs the current group until its turn ends, it stands, or others must be looked at.
func (x *vecMachine) exec(w *warp, end uint64) {
	v := vecOf(w)
	if x.calls != nil {
		x.stage(v)
	}
	t := x.t
	code := t.Code
	g := &v.groups[v.cur]
	mask, pc := g.mask, g.pc
	s := x.scalars(v, g.slot)
	x.aim(w)
	v.regs(s)
	from, yields := pc, x.r.yields()
	for {
		in := &code[pc]
		if yields && in.Op >= vcode.OpLoad && in.Op <= vcode.OpAtomic && t.Effects[in.A].Strong() {
			x.spent(w, from, pc, mask)
			if from = pc; x.r.givesWay(w, end) {
				g.pc, g.ran = pc, w.strain
				return
			}
		}
		var to *vcode.Edge
		switch in.Op {
		case vcode.OpJump:
			to = &t.Edges[in.A]
		case vcode.OpBranchS:
			if to = &t.Edges[in.B]; s[in.C]&1 != 0 {
				to = &t.Edges[in.A]
			}
		case vcode.OpBranch:
			taken := v.preds[in.C] & mask
			switch taken {
			case mask:
				to = &t.Edges[in.A]
			case 0:
				to = &t.Edges[in.B]
			default:
				x.spent(w, from, pc+1, mask)
				if t.Lockstep {
					g.ran = w.strain
					x.forkPath(w, in, taken)
					return
				}
				x.fork(w, v, taken, &t.Edges[in.A], &t.Edges[in.B])
				g = &v.groups[v.cur]
				g.ran = w.strain
				if w.regroup || w.time >= end || w.strain >= w.check {
					w.regroup = w.regroup || w.strain >= w.check
					return
				}
				mask, pc = g.mask, g.pc
				s = x.scalars(v, g.slot)
				v.regs(s)
				from = pc
				continue
			}
		case vcode.OpMeet:
			if n := len(w.splits); n > 0 && w.splits[n-1].meet == in.A {
				x.spent(w, from, pc, mask)
				g.pc, g.ran, w.regroup = pc+1, w.strain, true
				return
			}
			pc++
			continue
		case vcode.OpSwitch, vcode.OpExit, vcode.OpTrap, vcode.OpFence, vcode.OpSync, vcode.OpBuiltin:
			e, place := &t.Effects[in.A], x.places[in.A]
			x.spent(w, from, pc+1, mask)
			if e.Bar >= 0 && mask == w.live && x.meet(w, g, e, pc, place) {
				g.ran = w.strain
				if pc++; w.ready == 0 || w.time >= end {
					return
				}
				from = pc
				continue
			}
			g.pc, g.ran = pc+1, w.strain
			switch in.Op {
			case vcode.OpSwitch:
				if t.Lockstep {
					x.switchPath(w, in.A)
				}
				x.forkMany(w, v, e, place)
			case vcode.OpExit:
				x.exit(w, mask, place)
			case vcode.OpTrap:
				x.r.trap(w, mask, place)
			case vcode.OpFence:
				x.r.out.fence(w, &e.Instr, mask, place)
			case vcode.OpSync:
				if t.Lockstep {
					x.partsAt(w, in.A, behind(pc+1), pc+1)
				}
				x.sync(w, in.A, mask, place)
			default:
				x.builtin(w, e, mask, place)
				x.aim(w)
			}
			if w.regroup || x.r.stop != nil {
				return
			}
			pc++
			from = pc
			continue
		case vcode.OpCall, vcode.OpReturn, vcode.OpDepth:
			x.spent(w, from, pc+1, mask)
			g.pc, g.ran = pc+1, w.strain
			if x.cross(w, in, mask); w.regroup || x.r.stop != nil {
				return
			}
			pc++
			from = pc
			continue
		case vcode.OpRun:
			pc = x.list(w, in, mask, end, from)
			if t.Meet[pc] < 0 {
				continue
			}
			// The list has come to the begin of a block where it may have to end.
			x.spent(w, from, pc, mask)
			from = pc
			if x.ends(w, v, pc, end) {
				g.pc, g.ran = pc, w.strain
				return
			}
			continue
		case vcode.OpLoad:
			if e := &t.Effects[in.A]; e.Uniform && !t.Lockstep && x.parts(s, e, mask) {
				x.spent(w, from, pc, mask)
				g, from = x.leave(w, v, pc, mask&(mask-1)), pc
				mask, s = g.mask, x.scalars(v, g.slot)
				v.regs(s)
				continue
			}
			x.load(w, in.A, mask, s)
		case vcode.OpStore:
			x.store(w, in.A, mask, s)
		case vcode.OpAtomic:
			x.atomic(w, in.A, mask, s)
		case vcode.OpRow:
			x.rowLanes(w, &t.Rows[in.A], mask)
		case vcode.OpRowS:
			x.rowOnce(s, &t.Rows[in.A])
		case vcode.OpClock, vcode.OpSpecial:
			x.spent(w, from, pc, mask)
			from = pc
			if in.Op == vcode.OpClock {
				s[in.D] = x.r.special(w, bits.TrailingZeros32(mask), isa.SpecialID(in.Imm))
			} else {
				x.specialLanes(w, &t.Rows[in.A], mask)
			}
			if t.Rows[in.A].Kept {
				w.polls++
				w.polled()
			}
		case vcode.OpSWiden:
			if ok := x.widenLine(s, in, mask); ok != mask {
				x.spent(w, from, pc, mask)
				g, from = x.leave(w, v, pc, mask&^ok), pc
				mask, s = g.mask, x.scalars(v, g.slot)
				v.regs(s)
				continue
			}
		default:
			panic("BUG: an unknown operation")
		}
		if to == nil {
			pc++
			continue
		}
		if to.Moves >= 0 {
			x.operations(to.Moves, &v.files, mask)
		}
		x.spent(w, from, pc+1, mask)
		pc = to.To
		from = pc
		if x.ends(w, v, pc, end) {
			g.pc, g.ran = pc, w.strain
			return
		}
	}
}

// ends reports whether the running group must give way at the begin of a block, and whether another may go on then.
func (x *vecMachine) ends(w *warp, v *vecWarp, pc int32, end uint64) bool {
	w.regroup = v.several && (pc >= v.next || w.strain >= w.check)
	return w.regroup || w.time >= end
}

// list does a list of operations and gives the place at which it ended; from is the one up to which instructions are counted.
func (x *vecMachine) list(w *warp, in *vcode.Instr, mask uint32, end uint64, from int32) int32 {
	f := &vecOf(w).files
	f.Steps, f.Limit, f.Marks = 0, math.MinInt64, uint64(in.Fn)
	if !vecOf(w).several {
		f.Limit = int64(end-w.time) + int64(x.t.Counts[from])
	}
	pc := int32(x.operations(in.A, f, mask))
	if f.Steps != 0 {
		x.count(w, uint64(f.Steps), mask)
	}
	// A launch that is suspected to spin: nothing is known of global memory but what an instruction has stored to since.
	if x.r.sched.spin.phase == spinIdle || x.shares {
		w.writes += f.Marks
	}
	if x.log != nil && x.log.N != 0 {
		x.told(w, mask)
	}
	return pc
}

// leave parts the lanes of rest from the running group: they stay at pc while the others, which can make the step, go
// on, so that the two do not meet again at once.
func (x *vecMachine) leave(w *warp, v *vecWarp, pc int32, rest uint32) *group {
	if x.t.Lockstep {
		panic("BUG: lanes in lockstep go apart")
	}
	v.groups[v.cur].pc, v.groups[v.cur].ran = pc, w.strain
	x.part(v, v.cur, rest)
	v.several, v.next = true, min(v.next, pc)
	return &v.groups[v.cur]
}
