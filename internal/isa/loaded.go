package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// maxLoaded bounds the work on a function. In a large function without any waits only the first loads are reported.
const maxLoaded = 1 << 22

// unawaited returns, for instructions of a function, the tcgen05.ld whose registers, or values computed from them, they
// use, if control may reach them from the load without a tcgen05.wait::ld. Computing is not a use: LLVM moves
// computations before the wait because it sees no connection between them, and ptxas waits where necessary.
// Instructions that access memory, synchronise or branch stay where the program has them.
func unawaited(f *Func) map[int][]*Core {
	found := map[int][]*Core{}
	left := maxLoaded
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
		carry := func(from int, regs ...Operand) {
			in := &f.Insts[from]
			next := in.Targets
			if stops, _ := leaves(in); !stops && from+1 < len(f.Insts) {
				next = append(slices.Clone(next), int32(from+1))
			}
			for _, n := range next {
				for _, o := range regs {
					if p := (point{n, o.Reg}); o.Kind == Reg && !seen[p] {
						seen[p] = true
						work = append(work, p)
					}
				}
			}
		}
		carry(i, load.Dst...)
		for ; len(work) > 0 && left > 0; left-- {
			p := work[len(work)-1]
			work = work[:len(work)-1]
			at, in := int(p.before), &f.Insts[p.before]
			of := func(o Operand) bool { return o.Kind == Reg && o.Reg == p.reg }
			switch reads := in.Guard == p.reg || slices.ContainsFunc(in.Src, of); {
			case in.Op == OpTcWait && in.Has("wait::ld"):
				continue
			case reads && in.Class <= Special:
				carry(at, in.Dst...)
			case reads && (in.Op == OpTcStore || in.storesGeneric() || !moves(in)) && !slices.Contains(found[at], load.Core):
				found[at] = append(found[at], load.Core)
			}
			if in.Guard >= 0 || !slices.ContainsFunc(in.Dst, of) {
				carry(at, Operand{Kind: Reg, Reg: p.reg})
			}
		}
	}
	return found
}

// storesGeneric reports whether an instruction stores to memory that may be local, which the engine observes.
func (in *Inst) storesGeneric() bool { return in.Class == Store && in.Space == event.Generic }
