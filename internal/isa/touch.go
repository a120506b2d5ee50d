package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Until its warpgroup has waited for a wgmma.mma_async, nothing may access its accumulators except another
// wgmma.mma_async of the same shape, and nothing may access A if it is in registers (PTX ISA, "wgmma.mma_async",
// "wgmma.wait_group"). If the text alone does not exclude such an access, an inserted instruction (OpTouch) precedes
// it, and the engine checks whether the operation is in flight. For A only writes are reported: a read changes nothing.
//
// A wgmma.fence must separate an instruction that accesses such registers from the operation that uses them, except
// between operations of one shape that use them as accumulators. Here too only writes are checked: those after which an
// operation may follow without a fence (unfenced.go).
//
// Copies of registers, and loads and stores of memory that may be local, do not count as accesses: compilers move
// accumulators that the program does not touch, and ptxas waits where necessary. So code compiled without optimisation,
// which keeps all variables in local memory, is not checked.
//
// The same holds for the registers of tcgen05.ld until tcgen05.wait::ld (loaded.go), except that stores to global
// memory by generic addresses count.

// touchRow is the row of OpTouch, which has no PTX spelling.
var touchRow = &Row{Op: "wgmma", Doc: "an access to registers of a matrix operation", Class: Copy}

// Touch describes the accesses of an instruction to registers of operations that may be in flight.
type Touch struct {
	Accumulators []*Wgmma // the operations whose accumulators it accesses
	Fragments    []*Wgmma // the operations whose registers of A it writes
	Unfenced     []*Wgmma // the operations that may follow and use registers that it writes, without a wgmma.fence in between
	Loads        []*Core  // the tcgen05.ld whose registers it uses; with a source, by a store to that address
}

// watchRegisters inserts OpTouch before instructions of a function that may access registers of operations in flight.
func watchRegisters(f *Func) {
	a, loads := flightsOf(f), unawaited(f)
	if a == nil && len(loads) == 0 {
		return
	}
	later := map[int][]*Wgmma{}
	if a != nil {
		a.solve()
		later = unfenced(f)
	}
	var insts []Inst
	at := make([]int32, len(f.Insts)+1) // by instruction: its new index, including insertions before it
	for i := range f.Insts {
		in := &f.Insts[i]
		at[i] = int32(len(insts))
		of := Touch{Unfenced: later[i], Loads: loads[i]}
		if a != nil {
			a.touched(i, &of)
		}
		if of.Accumulators != nil || of.Fragments != nil || of.Unfenced != nil || of.Loads != nil {
			touch := Inst{Row: touchRow, Class: Copy, Op: OpTouch, Source: in.Source, File: in.File, Loc: in.Loc, Guard: in.Guard, GuardNot: in.GuardNot, Touch: &of}
			if of.Loads != nil && in.storesGeneric() {
				touch.Src, touch.Off = in.Src[:1], in.Off
			}
			insts = append(insts, touch)
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

// flights is the operations that may be in flight, by their registers, before each instruction of a function.
type flights struct {
	f      *Func
	defs   []operandOf
	of     map[int32][]int // definitions, by register
	words  int
	before []flight // by instruction
}

// flight is the definitions of operations that may be in flight: the set of those that have been committed to a group,
// and the set of those that have not. Both are nil if control does not reach the instruction.
type flight [2][]uint64

// has reports whether a definition is in one of the sets.
func (s *flight) has(k int) bool { return (s[0][k/64]|s[1][k/64])>>(k%64)&1 != 0 }

func (s *flight) remove(k int) {
	s[0][k/64] &^= 1 << (k % 64)
	s[1][k/64] &^= 1 << (k % 64)
}

// add adds the sets of another flight, and reports whether s has grown.
func (s *flight) add(o *flight) (more bool) {
	for h := range s {
		for k, w := range o[h] {
			more = more || w&^s[h][k] != 0
			s[h][k] |= w
		}
	}
	return more
}

// operandOf is a register that an instruction uses as an accumulator, or for A.
type operandOf struct {
	inst     int
	reg      int32
	fragment bool
}

func flightsOf(f *Func) *flights {
	a := &flights{f: f, of: map[int32][]int{}, before: make([]flight, len(f.Insts))}
	for i := range f.Insts {
		if f.Insts[i].Op != OpWgmma {
			continue
		}
		add := func(list []Operand, fragment bool) {
			for _, o := range list {
				if o.Kind == Reg {
					a.of[o.Reg] = append(a.of[o.Reg], len(a.defs))
					a.defs = append(a.defs, operandOf{i, o.Reg, fragment})
				}
			}
		}
		add(f.Insts[i].Dst, false)
		add(f.Insts[i].fragments(), true)
	}
	if len(a.defs) == 0 {
		return nil
	}
	a.words = (len(a.defs) + 63) / 64
	return a
}

// fragments returns the registers that hold A of a matrix operation.
func (in *Inst) fragments() []Operand {
	g := in.Wgmma
	if !g.A.Registers {
		return nil
	}
	return in.Src[g.Accumulators : len(in.Src)-WgmmaB]
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

// execute applies the effect of an instruction to a set.
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
		}
	}
	if in.Op == OpWgmma {
		for _, list := range [][]Operand{in.Dst, in.fragments()} {
			for _, o := range list {
				for _, k := range a.of[o.Reg] {
					if o.Kind == Reg && a.defs[k].inst == i {
						set[0][k/64] |= 1 << (k % 64)
					}
				}
			}
		}
	}
}

// touched adds the operations that may be in flight and whose registers an instruction accesses.
func (a *flights) touched(i int, of *Touch) {
	in, set := &a.f.Insts[i], &a.before[i]
	if set[0] == nil || moves(in) {
		return
	}
	for h, list := range [][]Operand{in.Dst, in.Src} {
		for _, o := range list {
			if o.Kind != Reg {
				continue
			}
			for _, k := range a.of[o.Reg] {
				to := &of.Accumulators
				if a.defs[k].fragment {
					to = &of.Fragments
				}
				g := a.f.Insts[a.defs[k].inst].Wgmma
				if set.has(k) && !slices.Contains(*to, g) && (h == 0 || !a.defs[k].fragment) {
					*to = append(*to, g)
				}
			}
		}
	}
}

// moves reports whether an instruction only moves values, or is a matrix operation itself.
func moves(in *Inst) bool {
	switch in.Class {
	case Warpgroup, Call, Ret:
		return true
	case Load, Store:
		return in.Space == event.Local || in.Space == event.Param || in.Space == event.Generic
	}
	return in.Row.Op == "mov"
}
