package opt

import (
	"fmt"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// With Env.Lockstep, lanes of a warp diverge at branches of the source. They reconverge at the branch's immediate
// post-dominator in the source (isa.Func.IPDom), or after the call if the function ends before. Passes change the
// graph. So each such place holds a Meet, and each branch names its Meet.

// inStep returns the reason why the lanes of a function cannot run in lockstep in this form, and nil if they can. In
// the source an instruction with a guard does not make the lanes diverge. In this form, a guard that becomes control
// flow would make them diverge, so a function with such a guard is refused.
func inStep(g *callGraph, fn *isa.Func) error {
	seen := map[*isa.Func]bool{fn: true}
	work := []*isa.Func{fn}
	for len(work) > 0 {
		fn := work[len(work)-1]
		work = work[:len(work)-1]
		for i := range fn.Insts {
			if splits(&fn.Insts[i]) {
				return fmt.Errorf("%w: warps in lockstep, and a guarded %s in %s", ErrUnsupported, fn.Insts[i].Row.Op, fn.Name)
			}
		}
		for _, c := range g.direct(fn) {
			if !seen[c] {
				seen[c] = true
				work = append(work, c)
			}
		}
	}
	return nil
}

func (f *Func) hasCalls() bool {
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Op == Call || in.Op == Depth {
				return true
			}
		}
	}
	return false
}

// hasOwnMemory reports whether lanes have local memory that they can access.
func (f *Func) hasOwnMemory() bool {
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Op == LocalPtr || in.Op >= Load && in.Op <= Atomic && in.Inst.Space == event.Local {
				return true
			}
		}
	}
	return false
}

// meetings numbers the places of a frame at which lanes reconverge, and makes blocks begin there.
func (b *builder) meetings(fr *frame, lead []bool) {
	fr.meets = map[int]uint64{}
	for i := range fr.fn.Insts {
		in := &fr.fn.Insts[i]
		if in.Class != isa.Branch || in.Guard < 0 && len(in.Src) == 0 {
			continue
		}
		at := int(fr.fn.IPDom[i])
		if _, ok := fr.meets[at]; ok || at < 0 && fr.up == nil {
			continue
		}
		fr.meets[at] = b.meets
		b.meets++
		if at >= 0 {
			lead[at] = true
		}
	}
}

// meet emits the Meet with which a draft begins.
func (b *builder) meet(d *draft) {
	at, fr := d.from, d.fr
	switch {
	case d.prologue || d.applied:
		return
	case d.returns != nil:
		at, fr = -1, d.returns
	}
	if id, ok := fr.meets[at]; ok {
		b.add(d.block, &Instr{Op: Meet, Site: -1, Guard: NoValue, Imm: id})
	}
}

// parts completes the branch that ends a draft.
func (b *builder) parts(d *draft, in *isa.Inst) {
	if !b.f.Env.Lockstep {
		return
	}
	t := d.block.Term()
	t.Site, t.Imm = b.siteOf(d.fr, d.to-1), NoMeet
	if id, ok := d.fr.meets[int(d.fr.fn.IPDom[d.to-1])]; ok {
		t.Imm = id
	}
	if t.Op == Branch && !in.GuardNot {
		t.Aux = 1
	}
}

// meets reports whether lanes reconverge at the start of a block. They do so on arrival, so no block may be merged
// before it.
func (b *Block) meets() bool {
	for _, in := range b.Instrs {
		if in.Op == Meet {
			return true
		}
		if !in.Pure() {
			break
		}
	}
	return false
}

// reconvergeFirst moves each Meet to the front of its block, before computations: lanes reconverge when they reach the block.
func reconvergeFirst(f *Func) {
	for _, b := range f.Blocks {
		at := 0
		for i, in := range b.Instrs {
			switch {
			case in.Op == Meet:
				copy(b.Instrs[at+1:i+1], b.Instrs[at:i])
				b.Instrs[at] = in
				at++
			case !in.Pure():
				at = i + 1
			case in.Op == Phi:
				at = i + 1
			}
		}
	}
}

// meetsLate reports whether lanes that diverge at t remain separate after the block (an ID) at which all their paths
// join. This happens if the source has paths that have been removed, or that leave the function.
func (f *Func) meetsLate(t *Instr, at int) bool {
	if at < 0 {
		return false
	}
	for _, in := range f.Blocks[at].Instrs {
		if in.Op == Meet && in.Imm == t.Imm {
			return false
		}
		if in.Op != Meet && !in.Pure() {
			break
		}
	}
	return true
}

// Vary makes values Varying whatever their arguments are, and repeats the analysis of shapes.
func (f *Func) Vary(vs []Value) {
	for _, v := range vs {
		f.free[v] = true
	}
	f.analyse()
}
