package isa

import "slices"

// unawaited gives, for instructions of a function, the tcgen05.ld of which they access registers, or copies of these, where control may come
// to them from it with no tcgen05.wait::ld between. Moves are no such accesses: compilers put them anywhere.
func unawaited(f *Func) map[int][]*Core {
	found := map[int][]*Core{}
	type point struct {
		before int32 // an instruction
		reg    int32
	}
	for i := range f.Insts {
		load := &f.Insts[i]
		if load.Op != OpTcLoad {
			continue
		}
		seen := map[point]bool{}
		var work []point
		carry := func(from int, reg int32) {
			in := &f.Insts[from]
			next := in.Targets
			if stops, _ := leaves(in); !stops && from+1 < len(f.Insts) {
				next = append(slices.Clone(next), int32(from+1))
			}
			for _, n := range next {
				if p := (point{n, reg}); !seen[p] {
					seen[p] = true
					work = append(work, p)
				}
			}
		}
		for _, d := range load.Dst {
			if d.Kind == Reg {
				carry(i, d.Reg)
			}
		}
		for len(work) > 0 {
			p := work[len(work)-1]
			work = work[:len(work)-1]
			in := &f.Insts[p.before]
			of := func(o Operand) bool { return o.Kind == Reg && o.Reg == p.reg }
			reads, writes := slices.ContainsFunc(in.Src, of), slices.ContainsFunc(in.Dst, of)
			switch {
			case in.Op == OpTcWait && in.Has("wait::ld"):
				continue
			case reads && in.Row.Op == "mov":
				for _, d := range in.Dst {
					if d.Kind == Reg {
						carry(int(p.before), d.Reg)
					}
				}
			case (reads || writes) && (in.Op == OpTcStore || !moves(in)) && !slices.Contains(found[int(p.before)], load.Core):
				found[int(p.before)] = append(found[int(p.before)], load.Core)
			}
			if !writes || in.Guard >= 0 {
				carry(int(p.before), p.reg)
			}
		}
	}
	return found
}
