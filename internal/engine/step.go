package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// step executes one instruction for the group of w.
func (r *Run) step(w *Warp) {
	ln := &w.lanes[w.lead]
	c, pc := ln.code, ln.pc
	r.Clock++
	r.Stats.Warps++
	r.Stats.Lanes += uint64(bits.OnesCount32(w.group))
	in := &c.Insts[pc]
	on := w.group
	if in.Guard >= 0 {
		on = w.guarded(in)
	}
	if r.Launch.Schedule == Lockstep {
		w.note(in)
	}
	if in.Class != isa.Branch {
		w.jump(w.group, pc+1) // lanes that wait or go elsewhere are set below
	} else {
		w.jump(w.group&^on, pc+1)
	}
	cost := uint64(1)
	if on != 0 {
		cost = r.perform(w, in, on, ln.base+uint32(pc))
	}
	w.moved(r, cost)
}

// perform executes in, at place, for the lanes of on, and returns its cost.
func (r *Run) perform(w *Warp, in *loader.Instr, on uint32, place uint32) uint64 {
	switch in.Class {
	case isa.Pure, isa.Special:
		if r.elements != nil {
			r.noteBase(w, in, on, place)
		}
		return r.pure(w, in, on)
	case isa.Load:
		return r.Load(w, in, on, place)
	case isa.Store:
		r.Store(w, in, on, place)
	case isa.Atomic:
		first, second := r.LaneOrder(w, on, place)
		cost := r.Atomic(w, in, first, place)
		if second != 0 {
			cost = min(cost, r.Atomic(w, in, second, place))
		}
		return cost
	case isa.Fence:
		r.Out.Fence(w, in, on, place)
	case isa.Barrier:
		r.Barrier(w, in, on, place)
	case isa.Warp, isa.Matrix, isa.Tile, isa.Warpgroup:
		r.WarpOp(w, in, on, place)
	case isa.Mbarrier:
		return r.Mbarriers(w, in, on, place)
	case isa.Texture:
		r.Texture(w, in, on, place)
	case isa.Copy:
		r.Copies(w, in, on, place)
	case isa.WarpBarrier:
		r.WarpBarrier(w, in, on, place)
	case isa.Branch:
		r.branch(w, in, on, place)
	case isa.Call:
		r.call(w, in, on, place)
	case isa.Ret:
		r.ret(w, on, place)
	case isa.Exit:
		r.Machine.Hold(w, on, place) // reports say where they exited
		r.Exit(w, on, place)
	case isa.Trap:
		r.Trap(w, on, place)
	case isa.Hint:
		w.Polls++
		return pollCost
	default:
		panic("BUG: instruction of an unknown class")
	}
	return 1
}

// guarded returns the lanes of the group whose guard holds.
func (w *Warp) guarded(in *loader.Instr) uint32 {
	on := uint32(0)
	for m := w.group; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if (w.lanes[i].regs[in.Guard]&1 != 0) != in.GuardNot {
			on |= 1 << i
		}
	}
	return on
}

// note records where lanes that diverge at in reconverge, for warps in lockstep.
func (w *Warp) note(in *loader.Instr) {
	ln := &w.lanes[w.lead]
	w.At = Split{Place: ln.place(), depth: ln.depth, pc: ln.pc + 1}
	switch {
	case in.Class == isa.Branch && int(ln.pc) < len(ln.code.Func.IPDom):
		w.At.pc = ln.code.Func.IPDom[ln.pc]
	case in.Class == isa.Ret:
		w.At.pc = -1
	}
}

// pure computes results from sources, lane by lane.
func (r *Run) pure(w *Warp, in *loader.Instr, on uint32) uint64 {
	a := &r.Args
	if !in.Plain {
		return r.pureSlow(w, in, on)
	}
	a.S = in.Fixed
	for m := on; m != 0; m &= m - 1 {
		regs := w.lanes[bits.TrailingZeros32(m)&31].regs
		for _, s := range in.Regs {
			a.S[s.At] = regs[s.Reg]
		}
		in.Eval(in.Inst, a)
		for _, d := range in.Results {
			regs[d.Reg] = a.D[d.At]
		}
	}
	return 1
}

// pureSlow is pure for sources of any kind.
func (r *Run) pureSlow(w *Warp, in *loader.Instr, on uint32) uint64 {
	a := &r.Args
	cost := uint64(1)
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		ln := &w.lanes[i]
		for k := range in.Operands {
			a.S[k] = r.value(w, i, &in.Operands[k])
			if o := &in.Operands[k]; o.Kind == loader.OpSpecial && o.Special >= isa.Clock && o.Special <= isa.GlobalTimerHi {
				cost = pollCost
			}
		}
		in.Eval(in.Inst, a)
		for _, d := range in.Results {
			ln.regs[d.Reg] = a.D[d.At]
		}
	}
	if cost > 1 {
		w.Polls++
	}
	return cost
}

// value returns the value of an operand for a lane.
func (r *Run) value(w *Warp, lane int, o *loader.Operand) uint64 {
	ln := &w.lanes[lane]
	switch o.Kind {
	case loader.OpReg:
		return ln.regs[o.Reg]
	case loader.OpNotReg:
		return ln.regs[o.Reg]&1 ^ 1
	case loader.OpLocal:
		return o.Val + uint64(ln.localAt)
	case loader.OpSpecial:
		return r.Special(w, lane, o.Special)
	}
	return o.Val
}

// Special returns the value of a special register for a lane. Clocks count steps of the launch: they increase, and are
// the same in every run.
func (r *Run) Special(w *Warp, lane int, id isa.SpecialID) uint64 {
	pick := func(d event.Dim3, first isa.SpecialID) uint64 {
		return uint64([3]uint32{d.X, d.Y, d.Z}[id-first])
	}
	switch id {
	case isa.TidX, isa.TidY, isa.TidZ:
		return pick(w.tid(lane), isa.TidX)
	case isa.NtidX, isa.NtidY, isa.NtidZ:
		return pick(r.Launch.Block, isa.NtidX)
	case isa.CtaidX, isa.CtaidY, isa.CtaidZ:
		return pick(w.CTA.id, isa.CtaidX)
	case isa.NctaidX, isa.NctaidY, isa.NctaidZ:
		return pick(r.Launch.Grid, isa.NctaidX)
	case isa.ClusterIDX, isa.ClusterIDY, isa.ClusterIDZ:
		return pick(r.Launch.Clusters().At(uint64(w.CTA.cluster.index)), isa.ClusterIDX)
	case isa.NClusterIDX, isa.NClusterIDY, isa.NClusterIDZ:
		return pick(r.Launch.Clusters(), isa.NClusterIDX)
	case isa.ClusterCtaidX, isa.ClusterCtaidY, isa.ClusterCtaidZ:
		return pick(r.Launch.ClusterShape().At(uint64(w.CTA.rank)), isa.ClusterCtaidX)
	case isa.ClusterNctaidX, isa.ClusterNctaidY, isa.ClusterNctaidZ:
		return pick(r.Launch.ClusterShape(), isa.ClusterNctaidX)
	case isa.ClusterCtarank:
		return uint64(w.CTA.rank)
	case isa.ClusterNctarank:
		return r.Launch.ClusterShape().Count()
	case isa.IsExplicitCluster:
		return min(1, r.Launch.Cluster.Count())
	case isa.LaneID:
		return uint64(lane)
	case isa.WarpID:
		return uint64(w.Index)
	case isa.NWarpID:
		return uint64(r.limits.ThreadsPerSM / r.limits.WarpSize)
	case isa.SMID:
		return uint64(w.CTA.index) % uint64(r.limits.SMs)
	case isa.NSMID:
		return uint64(r.limits.SMs)
	case isa.GridID:
		return uint64(r.Launch.ID)
	case isa.LanemaskEQ:
		return 1 << lane
	case isa.LanemaskLT:
		return 1<<lane - 1
	case isa.LanemaskLE:
		return 2<<lane - 1
	case isa.LanemaskGE:
		return 1<<32 - 1<<lane
	case isa.LanemaskGT:
		return 1<<32 - 2<<lane
	case isa.Clock, isa.GlobalTimerLo:
		return r.time() & 0xffff_ffff
	case isa.ClockHi, isa.GlobalTimerHi:
		return r.time() >> 32
	case isa.Clock64, isa.GlobalTimer:
		return r.time()
	case isa.DynamicSmemSize:
		return uint64(r.Launch.DynamicShared)
	case isa.TotalSmemSize, isa.AggrSmemSize:
		return uint64(r.SharedBytes())
	case isa.ReservedSmemSize:
		return isa.ReservedShared
	case isa.SpecialOne:
		return 1
	case isa.EnvReg0 + 1:
		return r.workspace >> 32
	case isa.EnvReg0 + 2:
		return r.workspace & 0xffff_ffff
	}
	return 0 // SpecialZero, other environment registers
}

// branch moves the lanes of on to their targets.
func (r *Run) branch(w *Warp, in *loader.Instr, on uint32, place uint32) {
	if len(in.Operands) > 0 {
		r.branchIndexed(w, in, on, place)
		return
	}
	w.jump(on, in.Targets[0])
	if on != w.group {
		w.Regroup = true
	}
}

// branchIndexed is brx.idx. An index beyond the list is undefined: it falls through, and is a fault.
func (r *Run) branchIndexed(w *Warp, in *loader.Instr, on uint32, place uint32) {
	w.Regroup = true
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		k := r.value(w, i, &in.Operands[0]) & 0xffff_ffff
		if k < uint64(len(in.Targets)) {
			w.lanes[i].pc = in.Targets[k]
			continue
		}
		w.lanes[i].pc++
		r.Faults.At(r, BadCall, w, i, place, "branches", "brx.idx by %d, but the list has %d targets", k, len(in.Targets))
	}
}

// Exit ends the lanes of on.
func (r *Run) Exit(w *Warp, on uint32, place uint32) {
	w.Live &^= on
	w.Ready &^= on
	w.Regroup = true
	w.CTA.Live -= bits.OnesCount32(on)
	r.Out.exit(w, on, place)
	r.exitedBarriers(w, on, place)
	w.CTA.cluster.exited(r, w, on)
	switch {
	case w.Live != 0:
		r.wakeWarp(w)
	case w.CTA.grouped:
		r.wakeGroup(w)
	}
}

// Trap ends the launch.
func (r *Run) Trap(w *Warp, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		r.Faults.At(r, TrapHit, w, bits.TrailingZeros32(m), place, "traps", "%s", r.whyTrapped())
	}
	r.fail(ErrTrap)
}

// whyTrapped explains a trap.
func (r *Run) whyTrapped() string {
	if !r.Launch.Cooperative && r.Launch.Func.SyncsGrid() {
		return "the kernel executes a trap instruction, as grid synchronisation does in a launch that is not cooperative " +
			"(cudaLaunchCooperativeKernel, or cooperative = true in a launch file)"
	}
	return "the kernel executes a trap instruction"
}
