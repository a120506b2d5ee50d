package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// words marks instructions that may access a word in order to change or read a part of it: loads, and 32-bit
// compare-and-swaps, whose address was rounded down. Compilers and libcu++ implement atomic operations on 8 and 16 bits
// with them. libcu++ rounds in one function and accesses in another, to which it passes the address. So if some
// function of the module rounds, accesses in called functions count as rounded if they have an order. Those of the
// toolkit's own atomic functions have none.
func words(m *Module) {
	if !slices.ContainsFunc(m.Funcs, func(f *Func) bool {
		return slices.ContainsFunc(f.Insts, func(in Inst) bool { return in.RoundsTo() > 0 })
	}) {
		return
	}
	for _, f := range m.Funcs {
		swaps := slices.ContainsFunc(f.Insts, func(in Inst) bool { return isWordSwap(&in) })
		rounded, written := map[int32]int{}, map[int32]int{}
		for i := range f.Insts {
			in := &f.Insts[i]
			for _, d := range in.Dst {
				written[d.Reg]++
			}
			if n := in.RoundsTo(); n > 0 {
				rounded[in.Dst[0].Reg] = n
			}
		}
		for i := range f.Insts {
			in := &f.Insts[i]
			size := in.Type.Size()
			if !isWordSwap(in) && !(in.Class == Load && (size == 2 || size == 4) && in.Vec == 1) {
				continue
			}
			a := in.Src[0]
			ordered := in.Class == Load && in.Order >= event.Relaxed || slices.ContainsFunc([]string{"relaxed", "acquire", "release", "acq_rel"}, in.Has)
			here := rounded[a.Reg] == size && written[a.Reg] == 1 && (ordered || swaps)
			in.Word = a.Kind == Reg && in.Off == 0 && (here || ordered && !f.Entry)
		}
	}
}

// RoundsTo returns the number of bytes, 2 or 4, to which an instruction rounds an address down, and 0 for other
// instructions.
func (in *Inst) RoundsTo() int {
	if in.Row == nil || in.Row.Op != "and" || len(in.Src) != 2 || in.Src[1].Kind != Imm {
		return 0
	}
	switch cleared := ^in.Src[1].Imm & (^uint64(0) >> (64 - 8*in.Type.Size())); cleared {
	case 1, 3:
		return int(cleared) + 1
	}
	return 0
}

func isWordSwap(in *Inst) bool {
	return in.Class == Atomic && in.Op == OpCas && in.Type.Size() == 4
}
