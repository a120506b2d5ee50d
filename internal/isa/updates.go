package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Updates returns, for each store of a value that the thread computed from a value loaded from the same address, as in
// x++, the load, and -1 for other instructions. Executing the update twice must differ from executing it once. Minimum,
// maximum, and, or and selection alone are no such computations.
func (f *Func) Updates() []int32 { // falling off the end is a place too
	out := make([]int32, len(f.Insts)+1) // falling off the end is a place too
	u := &updates{f: f, defs: make([][]int32, f.Regs), equal: map[[2]int32]bool{}}
	for i := range f.Insts {
		for _, d := range f.Insts[i].Dst {
			if d.Kind == Reg {
				u.defs[d.Reg] = append(u.defs[d.Reg], int32(i))
			}
		}
	}
	for i := range out {
		out[i] = -1
		if i < len(f.Insts) && f.Insts[i].Class == Store && shareable(f.Insts[i].Space) {
			out[i] = u.updates(int32(i))
		}
	}
	return out
}

type updates struct {
	f     *Func
	defs  [][]int32         // by register: the instructions that write it
	equal map[[2]int32]bool // results of same for two registers that one instruction each writes
}

// shareable reports whether threads may share memory of a space.
func shareable(s event.Space) bool {
	return s == event.Global || s == event.Shared || s == event.Generic
}

// updates follows the value of a store back to a load of the same memory, and returns -1 if there is none.
func (u *updates) updates(store int32) int32 {
	type value struct {
		reg     int32
		changed bool // on the way to the store
	}
	seen := map[value]bool{}
	var work []value
	follow := func(list []Operand, changed bool) {
		for _, o := range list {
			if v := (value{o.Reg, changed}); o.Kind == Reg && !seen[v] {
				seen[v] = true
				work = append(work, v)
			}
		}
	}
	st := &u.f.Insts[store]
	for follow(st.Src[1:], false); len(work) > 0; {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		for _, i := range u.defs[v.reg] {
			switch in := &u.f.Insts[i]; {
			case in.Class == Load:
				if v.changed && shareable(in.Space) && in.Type.Size() == st.Type.Size() && in.Off == st.Off && u.same(i, &in.Src[0], store, &st.Src[0]) {
					return i
				}
			case in.Class != Pure || in.Row.Op == "setp":
			case in.Row.Op == "selp":
				follow(in.Src[:2], v.changed)
			default:
				follow(in.Src, v.changed || !slices.Contains(repeatable, in.Row.Op))
			}
		}
	}
	return -1
}

// repeatable are the operations that return their result unchanged when applied to it again, and those that move
// values.
var repeatable = []string{"mov", "cvt", "cvta", "min", "max", "and", "or"}

// same reports whether two operands have one value: x as instruction i reads it, and y as instruction j reads it next.
// It returns false if that is not known.
func (u *updates) same(i int32, x *Operand, j int32, y *Operand) bool {
	if x.Kind != Reg || y.Kind != Reg {
		return *x == *y
	}
	if x.Reg == y.Reg && !u.written(x.Reg, i, j) {
		return x.Not == y.Not
	}
	if len(u.defs[x.Reg]) != 1 || len(u.defs[y.Reg]) != 1 {
		return false
	}
	key := [2]int32{x.Reg, y.Reg}
	known, ok := u.equal[key]
	if !ok {
		u.equal[key] = false // in a cycle
		known = u.alike(u.defs[x.Reg][0], u.defs[y.Reg][0])
		u.equal[key] = known
	}
	return known && x.Not == y.Not
}

// alike reports whether two instructions compute the same from the same operands.
func (u *updates) alike(i, j int32) bool {
	a, b := &u.f.Insts[i], &u.f.Insts[j]
	constant := a.Class == Pure || a.Class == Special || a.Class == Load && (a.Space == event.Param || a.Space == event.Const)
	if !constant || a.Row != b.Row || a.Class != b.Class || a.Type != b.Type || a.Type2 != b.Type2 || a.Off != b.Off || a.Guard >= 0 || b.Guard >= 0 ||
		!slices.Equal(a.Mods, b.Mods) || len(a.Dst) != 1 || len(b.Dst) != 1 || len(a.Src) != len(b.Src) {
		return false
	}
	for k := range a.Src {
		if !u.same(i, &a.Src[k], j, &b.Src[k]) {
			return false
		}
	}
	return true
}

// written reports whether an instruction may write a register after instruction i, before i and j are executed again.
func (u *updates) written(reg, i, j int32) bool {
	seen := make([]bool, len(u.f.Insts))
	work := []int32{i}
	for len(work) > 0 {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		in := &u.f.Insts[x]
		if slices.ContainsFunc(in.Dst, func(d Operand) bool { return d.Kind == Reg && d.Reg == reg }) {
			return true
		}
		next := in.Targets
		if stops, _ := leaves(in); !stops && int(x)+1 < len(u.f.Insts) {
			next = append(slices.Clip(next), x+1)
		}
		for _, n := range next {
			if n != i && n != j && !seen[n] {
				seen[n] = true
				work = append(work, n)
			}
		}
	}
	return false
}
