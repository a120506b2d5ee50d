package warp

import (
	"math"
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// vec32 returns a vector operand. A scalar is spread into scratch vector k.
func (x *machine) vec32(v *registers, s []uint64, o int32, k int) *v32 {
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

func (x *machine) vec64(v *registers, s []uint64, o int32, k int) *v64 {
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

// pred returns a predicate operand as a lane mask.
func (v *registers) pred(s []uint64, o int32) uint32 {
	if o >= 0 {
		return v.preds[o]
	}
	return -uint32(s[^o] & 1)
}

// regs gives package lanes the scalars of a group.
func (v *registers) regs(s []uint64) { v.files.Scalars = &s[0] }

// spent counts the instructions from one place to another that the lanes of mask executed.
func (x *machine) spent(w *engine.Warp, from, to int32, mask uint32) {
	x.count(w, uint64(x.t.Counts[to]-x.t.Counts[from]), mask)
}

// count adds k to the counts of instructions. To subtract, k is a negative number in two's complement.
func (x *machine) count(w *engine.Warp, k uint64, mask uint32) {
	w.Time += k
	w.Strain += k
	x.r.Clock += k
	x.r.Stats.Warps += k
	x.r.Stats.Lanes += k * uint64(bits.OnesCount32(mask))
}

// follow makes the moves of an edge for a group and sends the group to the target.
func (x *machine) follow(v *registers, g *group, e *vcode.Edge) {
	if e.Moves >= 0 {
		v.regs(x.scalars(v, g.slot))
		x.operations(e.Moves, &v.files, g.mask)
	}
	g.pc = e.To
}

// fork splits the running group at a branch: the lanes of taken take edge a, the others edge b. The running group keeps
// the lanes whose target is the smaller place.
func (x *machine) fork(w *engine.Warp, v *registers, taken uint32, a, b *vcode.Edge) {
	if b.To < a.To {
		a, b, taken = b, a, v.groups[v.cur].mask&^taken
	}
	k := x.part(v, v.cur, v.groups[v.cur].mask&^taken)
	g, h := &v.groups[v.cur], &v.groups[k]
	x.follow(v, h, b)
	x.follow(v, g, a)
	h.ran = w.Strain
	v.several, v.next = true, min(v.next, h.pc)
	w.Regroup = w.Regroup || g.pc >= v.next
}

// forkMany sends the lanes of a group over the edges that an indexed branch selects for them.
func (x *machine) forkMany(w *engine.Warp, v *registers, e *vcode.Effect, place uint32) {
	rest := v.groups[v.cur].mask
	for rest != 0 {
		lane := bits.TrailingZeros32(rest)
		k := x.Value(w, lane, &e.Operands[0]) & 0xffff_ffff
		same := uint32(0)
		for m := rest; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); x.Value(w, i, &e.Operands[0])&0xffff_ffff == k {
				same |= 1 << i
			}
		}
		rest &^= same
		if k >= uint64(len(e.Succs)) {
			// The behaviour is undefined: report a fault; the lanes take the last edge.
			for m := same; m != 0; m &= m - 1 {
				x.r.Faults.At(x.r, engine.BadCall, w, bits.TrailingZeros32(m), place, "branches", "brx.idx by %d, but the list has %d targets", k, len(e.Succs))
			}
			k = uint64(len(e.Succs) - 1)
		}
		at := v.cur
		if rest != 0 {
			at = x.part(v, v.cur, same)
		}
		g := &v.groups[at]
		x.follow(v, g, &x.t.Edges[e.Succs[k]])
		g.ran = w.Strain
	}
	w.Regroup = true
}

// widenLine extends a line to 64 bits, or multiplies it by a constant into 64 bits, if no lane of mask wraps. It
// returns the lanes for which this is possible: all of mask, or the first ones of it; in the latter case the group must
// be split.
func (x *machine) widenLine(s []uint64, in *vcode.Instr, mask uint32) uint32 {
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
func (x *machine) rowLanes(w *engine.Warp, n *vcode.Row, mask uint32) {
	a := &x.r.Args
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		for k := range n.Src {
			a.S[k] = x.Value(w, i, &n.Src[k])
		}
		n.Eval(a)
		for _, d := range n.Dst {
			x.Put(w, i, d, a.D[d.At])
		}
	}
}

// rowOnce computes an instruction of uniform values.
func (x *machine) rowOnce(s []uint64, n *vcode.Row) {
	a := &x.r.Args
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
func (x *machine) specialLanes(w *engine.Warp, n *vcode.Row, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		val := x.r.Special(w, i, isa.SpecialID(n.Imm))
		for _, d := range n.Dst {
			x.Put(w, i, d, val)
		}
	}
}

// builtin calls a function that the engine supplies.
func (x *machine) builtin(w *engine.Warp, e *vcode.Effect, mask uint32, place uint32) {
	for m := mask; m != 0; m &= m - 1 {
		x.r.Builtin(&engine.Invocation{R: x.r, W: w, Lane: bits.TrailingZeros32(m), In: &e.Instr, Fn: e.Fn, Place: place})
	}
}

// exit ends the lanes of mask.
func (x *machine) exit(w *engine.Warp, mask uint32, place uint32) {
	heldOf(w).exits.note(mask, w.Live, place)
	x.r.Exit(w, mask, place)
}

// exec runs the current group until its turn ends, it waits, or the next group must be chosen.
func (x *machine) exec(w *engine.Warp, end uint64) {
	v := regsOf(w)
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
	from, yields := pc, x.r.Yields()
	for {
		in := &code[pc]
		if yields && in.Op >= vcode.OpLoad && in.Op <= vcode.OpAtomic && t.Effects[in.A].Strong() {
			x.spent(w, from, pc, mask)
			if from = pc; x.r.GivesWay(w, end, &t.Effects[in.A].Instr) {
				g.pc, g.ran = pc, w.Strain
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
				if !v.several {
					x.spent(w, from, pc, mask)
					if from = pc; x.arms(w, v, pc, end) != noArms {
						g = &v.groups[v.cur]
						if mask, pc = g.mask, g.pc; t.Meet[pc] >= 0 && (w.Regroup || w.Time >= end) {
							return
						}
						s = x.scalars(v, g.slot)
						v.regs(s)
						from = pc
						continue
					}
				}
				x.spent(w, from, pc+1, mask)
				if t.Lockstep {
					g.ran = w.Strain
					x.forkPath(w, in, taken)
					return
				}
				x.fork(w, v, taken, &t.Edges[in.A], &t.Edges[in.B])
				g = &v.groups[v.cur]
				g.ran = w.Strain
				if w.Regroup || w.Time >= end || w.Strain >= w.Check {
					w.Regroup = w.Regroup || w.Strain >= w.Check
					return
				}
				mask, pc = g.mask, g.pc
				s = x.scalars(v, g.slot)
				v.regs(s)
				from = pc
				continue
			}
		case vcode.OpReconverge:
			if n := len(w.Splits); n > 0 && w.Splits[n-1].Meet == in.A {
				x.spent(w, from, pc, mask)
				g.pc, g.ran, w.Regroup = pc+1, w.Strain, true
				return
			}
			pc++
			continue
		case vcode.OpSwitch, vcode.OpExit, vcode.OpTrap, vcode.OpFence, vcode.OpSync, vcode.OpBuiltin:
			e, place := &t.Effects[in.A], x.places[in.A]
			x.spent(w, from, pc+1, mask)
			if e.Bar >= 0 && mask == w.Live && x.meet(w, g, e, pc, place) {
				g.ran = w.Strain
				if pc++; w.Ready == 0 || w.Time >= end {
					return
				}
				from = pc
				continue
			}
			g.pc, g.ran = pc+1, w.Strain
			switch in.Op {
			case vcode.OpSwitch:
				if t.Lockstep {
					x.switchPath(w, in.A)
				}
				x.forkMany(w, v, e, place)
			case vcode.OpExit:
				x.exit(w, mask, place)
			case vcode.OpTrap:
				x.r.Trap(w, mask, place)
			case vcode.OpFence:
				x.r.Out.Fence(w, &e.Instr, mask, place)
			case vcode.OpSync:
				if t.Lockstep {
					x.partsAt(w, in.A, behind(pc+1), pc+1)
				}
				x.sync(w, in.A, mask, place)
			default:
				x.builtin(w, e, mask, place)
				x.aim(w)
			}
			if w.Regroup || x.r.Stop != nil {
				return
			}
			pc++
			from = pc
			continue
		case vcode.OpCall, vcode.OpReturn, vcode.OpDepth:
			x.spent(w, from, pc+1, mask)
			g.pc, g.ran = pc+1, w.Strain
			if x.cross(w, in, mask); w.Regroup || x.r.Stop != nil {
				return
			}
			pc++
			from = pc
			continue
		case vcode.OpRun:
			pc = x.list(w, v, in, mask, end, from)
			if t.Meet[pc] < 0 {
				continue
			}
			// The list has reached the start of a block at which it may have to end.
			x.spent(w, from, pc, mask)
			from = pc
			if x.ends(w, v, pc, end) {
				g.pc, g.ran = pc, w.Strain
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
		case vcode.OpShadow:
			x.shadow(w, in.A, mask, s)
		case vcode.OpRow:
			x.rowLanes(w, &t.Rows[in.A], mask)
		case vcode.OpRowS:
			x.rowOnce(s, &t.Rows[in.A])
		case vcode.OpClock, vcode.OpSpecial:
			x.spent(w, from, pc, mask)
			from = pc
			if in.Op == vcode.OpClock {
				s[in.D] = x.r.Special(w, bits.TrailingZeros32(mask), isa.SpecialID(in.Imm))
			} else {
				x.specialLanes(w, &t.Rows[in.A], mask)
			}
			if t.Rows[in.A].Kept {
				w.Polls++
				w.Polled()
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
			g.pc, g.ran = pc, w.Strain
			return
		}
	}
}

// ends reports whether the running group must stop at the start of a block, because another group must be chosen (it
// then sets Regroup) or because the turn is over.
func (x *machine) ends(w *engine.Warp, v *registers, pc int32, end uint64) bool {
	w.Regroup = v.several && (pc >= v.next || w.Strain >= w.Check)
	return w.Regroup || w.Time >= end
}

// list executes a list of operations, counts its steps, and returns the place at which it ended.
func (x *machine) list(w *engine.Warp, v *registers, in *vcode.Instr, mask uint32, end uint64, from int32) int32 {
	f, limit := &v.files, int64(math.MinInt64)
	if !v.several {
		limit = int64(end-w.Time) + int64(x.t.Counts[from])
	}
	pc := x.do(w, f, in, mask, limit)
	if f.Steps != 0 {
		x.count(w, uint64(f.Steps), mask)
	}
	return pc
}

// do executes a list of operations. The list enters another block only while its steps, plus the instructions before
// that block, are fewer than limit.
func (x *machine) do(w *engine.Warp, f *lanes.Regs, in *vcode.Instr, mask uint32, limit int64) int32 {
	f.Steps, f.Limit, f.Marks = 0, limit, uint64(in.Fn)
	pc := int32(x.operations(in.A, f, mask))
	// While a launch is checked for spinning, lists store to global memory only where an instruction has stored since,
	// and the instruction has counted a write. So only stores of lists to shared memory must be counted here.
	if x.r.Sched.Spin.Phase == engine.SpinIdle || x.shares {
		w.Writes += f.Marks
	}
	if x.log != nil && x.log.N != 0 {
		x.told(w, mask)
	}
	return pc
}

// leave splits the lanes of rest off the running group. They stay at pc. The other lanes, which can make the step, go
// on, so that the two do not reconverge at once.
func (x *machine) leave(w *engine.Warp, v *registers, pc int32, rest uint32) *group {
	if x.t.Lockstep {
		panic("BUG: lanes in lockstep go apart")
	}
	v.groups[v.cur].pc, v.groups[v.cur].ran = pc, w.Strain
	x.part(v, v.cur, rest)
	v.several, v.next = true, min(v.next, pc)
	return &v.groups[v.cur]
}
