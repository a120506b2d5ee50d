package isa

// copies finds the loads whose results are only stored again (Inst.Copies). Structures are copied in this way,
// including their padding.
func copies(f *Func) {
	used := make([]bool, f.Regs) // for any other purpose
	for changed := true; changed; {
		changed = false
		for i := range f.Insts {
			in := &f.Insts[i]
			moved := in.Class == Pure && in.Row.Op == "mov" && len(in.Dst) == 1 && in.Dst[0].Kind == Reg && !used[in.Dst[0].Reg]
			use := func(o *Operand) {
				if o.Kind == Reg && !used[o.Reg] {
					used[o.Reg], changed = true, true
				}
			}
			if in.Guard >= 0 && !used[in.Guard] {
				used[in.Guard], changed = true, true
			}
			for k := range in.Src {
				if !moved && (in.Class != Store || k == 0) {
					use(&in.Src[k])
				}
			}
			for k := range in.ArgOps {
				use(&in.ArgOps[k])
			}
		}
	}
	for i := range f.Insts {
		in := &f.Insts[i]
		in.Copies = in.Class == Load
		for _, d := range in.Dst {
			in.Copies = in.Copies && (d.Kind != Reg || !used[d.Reg])
		}
	}
}
