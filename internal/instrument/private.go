package instrument

import (
	"slices"

	"fencepost.dev/fencepost/internal/isa"
)

// privateRegisters returns the registers whose values are always addresses of local memory: results of cvta.local,
// copies of them, and sums with them. An address that is computed from a variable's address stays within the variable,
// so only the thread itself accesses memory through such registers.
func privateRegisters(f *isa.Func) map[int32]bool {
	private, defs := map[int32]bool{}, map[int32][]*isa.Inst{}
	for i := range f.Insts {
		in := &f.Insts[i]
		for _, d := range in.Dst {
			if d.Kind == isa.Reg {
				defs[d.Reg] = append(defs[d.Reg], in)
				private[d.Reg] = true
			}
		}
		for _, d := range in.RetOps {
			if d.Kind == isa.Reg {
				defs[d.Reg] = append(defs[d.Reg], in)
			}
		}
	}
	for _, p := range f.Sig.Params {
		delete(private, p.Reg)
	}
	for changed := true; changed; {
		changed = false
		for reg := range private {
			if slices.ContainsFunc(defs[reg], func(in *isa.Inst) bool { return !givesPrivate(in, private) }) {
				delete(private, reg)
				changed = true
			}
		}
	}
	return private
}

// givesPrivate reports whether an instruction computes an address of local memory, if the registers in private hold
// such addresses.
func givesPrivate(in *isa.Inst, private map[int32]bool) bool {
	holds := func(o isa.Operand) bool { return o.Kind == isa.Reg && private[o.Reg] }
	switch in.Row.Op {
	case "cvta":
		return in.Has("local") && !in.Has("to")
	case "mov", "add":
		return len(in.Dst) == 1 && slices.ContainsFunc(in.Src, holds)
	case "sub":
		return len(in.Src) == 2 && holds(in.Src[0]) && !holds(in.Src[1])
	}
	return false
}
