package flow

import "fencepost.dev/fencepost/internal/isa"

// uniform are the special registers that have one value in all threads of a block.
var uniform = map[isa.SpecialID]bool{isa.NtidX: true, isa.NtidY: true, isa.NtidZ: true, isa.CtaidX: true, isa.CtaidY: true,
	isa.CtaidZ: true, isa.NctaidX: true, isa.NctaidY: true, isa.NctaidZ: true,
	isa.ClusterIDX: true, isa.ClusterIDY: true, isa.ClusterIDZ: true, isa.NClusterIDX: true, isa.NClusterIDY: true, isa.NClusterIDZ: true,
	isa.ClusterCtaidX: true, isa.ClusterCtaidY: true, isa.ClusterCtaidZ: true, isa.ClusterNctaidX: true, isa.ClusterNctaidY: true,
	isa.ClusterNctaidZ: true, isa.ClusterCtarank: true, isa.ClusterNctarank: true, isa.IsExplicitCluster: true, isa.SpecialZero: true, isa.SpecialOne: true}

// diverge computes Divergent. A branch is divergent if its condition may differ between threads of a block: it depends
// on the thread number, on memory, or on another thread, or was set in divergent code. The code between a divergent
// branch and its post-dominator is divergent. An early return of a kernel is an exception: a barrier does not wait for
// threads that have exited.
func (c *Code) diverge(f *isa.Func) {
	varying := make([]bool, f.Regs)
	sets := make([]int, f.Regs)
	for i := range f.Insts {
		for _, r := range written(&f.Insts[i]) {
			sets[r]++
		}
	}
	if !f.Entry {
		for _, p := range f.Sig.Params {
			if p.Reg >= 0 {
				varying[p.Reg] = true
			}
		}
	}
	divergent := make([]bool, len(f.Insts))
	for changed := true; changed; {
		changed = false
		for i := range f.Insts {
			in := &f.Insts[i]
			v := differs(f, in, varying)
			for _, r := range written(in) {
				if (v || divergent[i] && sets[r] > 1) && !varying[r] {
					varying[r], changed = true, true
				}
			}
			switch {
			case !depends(in, varying):
			case in.Class == isa.Branch && !returns(f, i):
				changed = c.spread(i, int(f.IPDom[i]), divergent) || changed
			case in.Class == isa.Ret && !f.Entry: // the caller's code goes on
				changed = c.spread(i, -1, divergent) || changed
			}
		}
	}
	for i := 0; i < len(divergent); i++ {
		if divergent[i] {
			from := i
			for i < len(divergent) && divergent[i] {
				i++
			}
			c.Divergent = append(c.Divergent, [2]int{from, i})
		}
	}
}

// returns reports whether a branch is an early exit of threads: one of its sides has no instruction except jumps before
// the end of the kernel, where the sides join.
func returns(f *isa.Func, branch int) bool {
	join := int(f.IPDom[branch])
	if join < 0 || f.Insts[join].Class != isa.Exit && !(f.Entry && f.Insts[join].Class == isa.Ret) {
		return false
	}
	for _, t := range successors(f, branch) {
		const jumps = 4
		for n := 0; t != join && n < jumps && f.Insts[t].Class == isa.Branch && f.Insts[t].Guard < 0 && len(f.Insts[t].Targets) == 1; n++ {
			t = int(f.Insts[t].Targets[0])
		}
		if t == join {
			return true
		}
	}
	return false
}

// spread marks the instructions between a branch and its post-dominator, -1 if it has none. It reports whether one was
// not marked before.
func (c *Code) spread(branch, join int, divergent []bool) bool {
	fresh := false
	seen := map[int]bool{join: true}
	work := append([]int{}, c.next(branch)...)
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		fresh = fresh || !divergent[i]
		divergent[i] = true
		work = append(work, c.next(i)...)
	}
	return fresh
}

// differs reports whether the result of an instruction may differ between threads of a block that execute it.
func differs(f *isa.Func, in *isa.Inst, varying []bool) bool {
	switch in.Class {
	case isa.Atomic, isa.Warp, isa.Matrix, isa.Tile, isa.Warpgroup, isa.Texture, isa.Call:
		return true
	case isa.Barrier: // a vote of the block
		return false
	case isa.Load:
		return !f.Entry || in.Src[0].Kind != isa.ParamAddr
	}
	return depends(in, varying)
}

// depends reports whether an operand or the guard of an instruction may differ between threads of a block.
func depends(in *isa.Inst, varying []bool) bool {
	if in.Guard >= 0 && varying[in.Guard] {
		return true
	}
	for i := range in.Src {
		s := &in.Src[i]
		if s.Kind == isa.Reg && varying[s.Reg] || s.Kind == isa.SpecialReg && !uniform[s.Special] {
			return true
		}
	}
	return false
}

// written are the registers that an instruction sets.
func written(in *isa.Inst) []int32 {
	var out []int32
	for _, ops := range [][]isa.Operand{in.Dst, in.RetOps} {
		for i := range ops {
			if ops[i].Kind == isa.Reg {
				out = append(out, ops[i].Reg)
			}
		}
	}
	return out
}
