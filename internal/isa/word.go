package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// words marks what accesses a word in order to change a part of it: loads and compare-and-swaps of 32 bits whose address was rounded
// down for them. Compilers make atomic operations on 8 and 16 bits of these.
func words(f *Func) {
	if !slices.ContainsFunc(f.Insts, func(in Inst) bool { return isWordSwap(&in) }) {
		return
	}
	rounded, written := map[int32]bool{}, map[int32]int{}
	for i := range f.Insts {
		in := &f.Insts[i]
		for _, d := range in.Dst {
			written[d.Reg]++
		}
		if in.Row.Op == "and" && len(in.Src) == 2 && in.Src[1].Kind == Imm && in.Src[1].Imm&0xffffffff == 0xfffffffc {
			rounded[in.Dst[0].Reg] = true
		}
	}
	for i := range f.Insts {
		in := &f.Insts[i]
		if !isWordSwap(in) && !(in.Class == Load && in.Type.Size() == 4 && in.Vec == 1) {
			continue
		}
		a := in.Src[0]
		in.Word = a.Kind == Reg && in.Off == 0 && rounded[a.Reg] && written[a.Reg] == 1
	}
}

func isWordSwap(in *Inst) bool {
	return in.Class == Atomic && in.Op == OpCas && in.Type.Size() == 4 && in.Space != event.Shared
}
