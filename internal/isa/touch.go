package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Until its warpgroup has waited for a wgmma.mma_async, nothing may access its accumulators but another one of the same shape (PTX ISA,
// "wgmma.mma_async", "wgmma.wait_group"). Where the text alone does not exclude that, an instruction of ours (OpTouch) is before the access,
// and the engine tells whether the operation is in flight then.
//
// Copies of registers, and loads and stores of what may be local memory, are no accesses: compilers move accumulators about that a program does
// not touch, and ptxas waits where it has to. So code that was compiled without optimisation, which keeps all variables in local memory, is
// not looked at.

// touchRow is the row of OpTouch, which no PTX spells.
var touchRow = &Row{Op: "wgmma", Doc: "an access to accumulators", Class: Copy}

// watchAccumulators puts OpTouch before instructions of a function that may touch accumulators in flight.
func watchAccumulators(f *Func) {
	a := flightsOf(f)
	if a == nil {
		return
	}
	a.solve()
	var insts []Inst
	at := make([]int32, len(f.Insts)+1) // of each instruction, with what is before it
	for i := range f.Insts {
		in := &f.Insts[i]
		at[i] = int32(len(insts))
		if of := a.touched(i); of != nil {
			insts = append(insts, Inst{Row: touchRow, Class: Copy, Op: OpTouch, Source: in.Source, File: in.File, Loc: in.Loc, Guard: in.Guard, GuardNot: in.GuardNot, Touches: of})
		}
		insts = append(insts, *in)
	}
	at[len(f.Insts)] = int32(len(insts))
	for i := range insts {
		for j, t := range insts[i].Targets {
			insts[i].Targets[j] = at[t]
		}
	}
	f.Insts = insts
}

// flights is which operations may be in flight, by their accumulators, before each instruction of a function.
type flights struct {
	f      *Func
	defs   []accumulator
	of     map[int32][]int // definitions, by register
	words  int
	before []flight // by instruction
}

// flight is definitions that may be of operations in flight, as a set of those that have been committed to a group and one of those that
// have not; nil where control does not come.
type flight [2][]uint64

// has says that a definition is in the set.
func (s *flight) has(k int) bool { return (s[0][k/64]|s[1][k/64])>>(k%64)&1 != 0 }

func (s *flight) remove(k int) {
	s[0][k/64] &^= 1 << (k % 64)
	s[1][k/64] &^= 1 << (k % 64)
}

// add adds another set, and says whether that added something.
func (s *flight) add(o *flight) (more bool) {
	for h := range s {
		for k, w := range o[h] {
			more = more || w&^s[h][k] != 0
			s[h][k] |= w
		}
	}
	return more
}

// accumulator is a register that an instruction has as an accumulator.
type accumulator struct {
	inst int
	reg  int32
}

func flightsOf(f *Func) *flights {
	a := &flights{f: f, of: map[int32][]int{}, before: make([]flight, len(f.Insts))}
	for i := range f.Insts {
		if f.Insts[i].Op != OpWgmma {
			continue
		}
		for _, d := range f.Insts[i].Dst {
			if d.Kind == Reg {
				a.of[d.Reg] = append(a.of[d.Reg], len(a.defs))
				a.defs = append(a.defs, accumulator{i, d.Reg})
			}
		}
	}
	if len(a.defs) == 0 {
		return nil
	}
	a.words = (len(a.defs) + 63) / 64
	return a
}

func (a *flights) none() flight { return flight{make([]uint64, a.words), make([]uint64, a.words)} }

// solve computes the sets.
func (a *flights) solve() {
	f := a.f
	a.before[0] = a.none()
	after := a.none()
	for work := []int{0}; len(work) > 0; {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		copy(after[0], a.before[i][0])
		copy(after[1], a.before[i][1])
		a.execute(i, &after)
		in := &f.Insts[i]
		next := slices.Clone(in.Targets)
		if stops, _ := leaves(in); !stops && i+1 < len(f.Insts) {
			next = append(next, int32(i+1))
		}
		for _, n := range next {
			fresh := a.before[n][0] == nil
			if fresh {
				a.before[n] = a.none()
			}
			fresh = a.before[n].add(&after) || fresh
			if fresh {
				work = append(work, int(n))
			}
		}
	}
}

// execute changes a set as an instruction does.
func (a *flights) execute(i int, set *flight) {
	in := &a.f.Insts[i]
	if in.Class == Warpgroup && in.Guard < 0 {
		switch in.Op {
		case OpWgmmaCommit:
			set.add(&flight{nil, set[0]})
			clear(set[0])
		case OpWgmmaWait:
			if in.Src[0].Kind == Imm && in.Src[0].Imm == 0 {
				clear(set[1])
			}
		}
	}
	for _, d := range in.Dst {
		if d.Kind != Reg {
			continue
		}
		for _, k := range a.of[d.Reg] {
			if in.Guard < 0 {
				set.remove(k)
			}
			if a.defs[k].inst == i {
				set[0][k/64] |= 1 << (k % 64)
			}
		}
	}
}

// touched are the operations that may be in flight, an accumulator of which an instruction accesses.
func (a *flights) touched(i int) []*Wgmma {
	in, set := &a.f.Insts[i], &a.before[i]
	if set[0] == nil || moves(in) {
		return nil
	}
	var of []*Wgmma
	for _, list := range [][]Operand{in.Dst, in.Src} {
		for _, o := range list {
			if o.Kind != Reg {
				continue
			}
			for _, k := range a.of[o.Reg] {
				if g := a.f.Insts[a.defs[k].inst].Wgmma; set.has(k) && !slices.Contains(of, g) {
					of = append(of, g)
				}
			}
		}
	}
	return of
}

// moves says that an instruction only moves values about, or is a matrix operation itself.
func moves(in *Inst) bool {
	switch in.Class {
	case Warpgroup, Call, Ret:
		return true
	case Load, Store:
		return in.Space == event.Local || in.Space == event.Param || in.Space == event.Generic
	}
	return in.Row.Op == "mov"
}
