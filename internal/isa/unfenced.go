package isa

import "slices"

// unfenced returns, for instructions of a function, the operations with registers that the instruction writes, if
// control may come from it to the operation without a wgmma.fence and without another write. Copies of registers and
// loads of memory that may be local do not count as such writes, but the write of a register that is copied there does.
func unfenced(f *Func) map[int][]*Wgmma {
	before := make([][]int32, len(f.Insts)) // the instructions from which control comes
	for i := range f.Insts {
		in := &f.Insts[i]
		for _, t := range in.Targets {
			before[t] = append(before[t], int32(i))
		}
		if stops, _ := leaves(in); !stops && i+1 < len(f.Insts) {
			before[i+1] = append(before[i+1], int32(i))
		}
	}
	type point struct {
		behind int32 // an instruction
		of     operandOf
	}
	seen := map[point]bool{}
	var work []point
	need := func(i int, n operandOf) {
		for _, from := range before[i] {
			if p := (point{from, n}); !seen[p] {
				seen[p] = true
				work = append(work, p)
			}
		}
	}
	for i := range f.Insts {
		if f.Insts[i].Op != OpWgmma {
			continue
		}
		for h, list := range [][]Operand{f.Insts[i].Dst, f.Insts[i].fragments()} {
			for _, o := range list {
				if o.Kind == Reg {
					need(i, operandOf{i, o.Reg, h == 1})
				}
			}
		}
	}
	found := map[int][]*Wgmma{}
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		i, in, g := int(p.behind), &f.Insts[p.behind], f.Insts[p.of.inst].Wgmma
		if in.Op == OpWgmmaFence && in.Guard < 0 {
			continue
		}
		writes := slices.ContainsFunc(in.Dst, func(d Operand) bool { return d.Kind == Reg && d.Reg == p.of.reg })
		if !writes || in.Guard >= 0 {
			need(i, p.of)
		}
		switch {
		case !writes:
		case in.Op == OpWgmma && !p.of.fragment && in.Wgmma.Columns == g.Columns && in.Wgmma.Depth == g.Depth:
		case in.Op != OpWgmma && moves(in):
			for _, s := range in.Src {
				if s.Kind == Reg && in.Row.Op == "mov" {
					need(i, operandOf{p.of.inst, s.Reg, p.of.fragment})
				}
			}
		case !slices.Contains(found[i], g):
			found[i] = append(found[i], g)
		}
	}
	return found
}
