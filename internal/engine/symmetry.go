package engine

import (
	"encoding/binary"

	"fencepost.dev/fencepost/internal/isa"
)

// Likeness returns a value that thread n shares with threads that do the same. Given the same values, such threads make
// the same requests from the first on. If two of them are exchanged, instructions that exchange values between the
// threads of a warp give each the same.
//
// The value consists of the state at the first request, and of the special registers read by the instructions that the
// thread may execute from there on. A thread may therefore read its number before the first request, if what it
// computes from it is equal or not needed later.
//
// An instruction of the warp that distinguishes lanes, or whose mask is not a constant of the instruction, makes lanes
// differ. Threads of different blocks differ if there is shared memory.
func (t *Threads) Likeness(n int) string {
	state, _ := t.Start(n)
	w, i := t.lane(n)
	t.decode(&w.lanes[i], state)
	b := []byte(state)
	word := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	if len(w.CTA.Shared) > 0 {
		word(uint64(w.CTA.index))
	}
	t.reachable(&w.lanes[i], func(in *isa.Inst) {
		for k := range in.Src {
			if o := &in.Src[k]; o.Kind == isa.SpecialReg && !isClock(o.Special) {
				word(t.r.Special(w, i, o.Special))
			}
		}
		switch in.Class {
		case isa.Warp, isa.WarpBarrier, isa.Matrix, isa.Tile, isa.Warpgroup:
			word(uint64(w.Index))
			if last := len(in.Src) - 1; lanesAlike(in) && in.Src[last].Kind == isa.Imm {
				word(in.Src[last].Imm >> i & 1)
			} else {
				word(uint64(i))
			}
		}
	})
	return string(b)
}

// lanesAlike reports whether an instruction of the warp gives each lane of its mask, if it has one, the same result,
// whichever lane has which operand.
func lanesAlike(in *isa.Inst) bool {
	switch in.Source.Op {
	case "bar":
		return in.Class == isa.WarpBarrier
	case "vote":
		return in.Has("sync") && in.Op != isa.OpBallot
	case "redux":
		return !in.Type.Float()
	}
	return false
}

// reachable calls f for each instruction that a lane may execute from its current one on, in the same order for lanes
// in equal states.
func (t *Threads) reachable(ln *lane, f func(in *isa.Inst)) {
	type at struct {
		fn *isa.Func
		pc int
	}
	var todo []at
	for i := range ln.up {
		todo = append(todo, at{ln.up[i].code.Func, int(ln.up[i].pc)})
	}
	todo = append(todo, at{ln.code.Func, int(ln.pc)})
	seen := map[at]bool{}
	for len(todo) > 0 {
		a := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[a] || a.pc >= len(a.fn.Insts) {
			continue
		}
		seen[a] = true
		in := &a.fn.Insts[a.pc]
		f(in)
		if in.Callee != nil {
			todo = append(todo, at{in.Callee, 0})
		} else if in.Class == isa.Call {
			for _, fn := range a.fn.Calls {
				todo = append(todo, at{fn, 0})
			}
		}
		successors(a.fn, a.pc, func(to int) { todo = append(todo, at{a.fn, to}) })
	}
}

// successors calls f for the instructions of a function that may follow the one at pc. The end of the function is one
// past the last.
func successors(fn *isa.Func, pc int, f func(to int)) {
	in := &fn.Insts[pc]
	for _, to := range in.Targets {
		f(int(to))
	}
	if ends := in.Class == isa.Ret || in.Class == isa.Exit || in.Class == isa.Trap || in.Class == isa.Branch; !ends || in.Guard >= 0 {
		f(pc + 1)
	} else if in.Class == isa.Branch && len(in.Src) > 0 {
		f(pc + 1) // an index beyond the list of brx.idx continues
	}
}
