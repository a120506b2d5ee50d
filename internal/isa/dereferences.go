package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Dereferences says, for each instruction that is a load of addresses of 64 bits from memory that threads may share, whether the thread
// accesses memory by what it loads, as it is or after additions, or passes it to a function.
func (f *Func) Dereferences() []bool {
	out := make([]bool, len(f.Insts)+1) // falling off the end is a place too
	var reads map[int32][]int32
	for i := range f.Insts {
		in := &f.Insts[i]
		if (in.Class == Load || in.Class == Atomic) && shareable(in.Space) && in.Type.Size() == 8 {
			if reads == nil {
				reads = newDiscards(f).reads
			}
			out[i] = f.dereferences(in, reads)
		}
	}
	return out
}

// pointerMoves are the operations whose result points to where an operand points, or beside it.
var pointerMoves = []string{"mov", "cvta", "add", "sub", "selp", "mad"}

// dereferences follows the results of a load. reads are the instructions that read each register.
func (f *Func) dereferences(load *Inst, reads map[int32][]int32) bool {
	seen := map[int32]bool{}
	var work []int32
	follow := func(list []Operand) {
		for _, o := range list {
			if o.Kind == Reg && !seen[o.Reg] {
				seen[o.Reg] = true
				work = append(work, o.Reg)
			}
		}
	}
	for follow(load.Dst); len(work) > 0; {
		reg := work[len(work)-1]
		work = work[:len(work)-1]
		for _, i := range reads[reg] {
			in := &f.Insts[i]
			switch at := func(k int) bool { return len(in.Src) > k && in.Src[k].Kind == Reg && in.Src[k].Reg == reg }; {
			case in.Class == Pure && slices.Contains(pointerMoves, in.Row.Op):
				follow(in.Dst)
			case in.Class == Store && in.Space == event.Param, in.Class == Call:
				return true
			case in.Class == Load || in.Class == Store || in.Class == Atomic:
				if at(0) {
					return true
				}
			}
		}
	}
	return false
}
