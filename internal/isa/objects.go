package isa

import "fencepost.dev/fencepost/internal/event"

// root is the origin of a register's value with respect to shared variables.
type root struct {
	kind rootKind
	of   *Var
}

type rootKind uint8

const (
	unset   rootKind = iota // no definition was visited yet
	index                   // not the address of a shared variable
	within                  // an address in of, or beyond it by an index out of bounds
	unknown                 // several variables, or an address from which more than an index was computed
)

// objects finds the static shared variable that each load, store and atomic operation accesses, if its address is that
// of one variable plus an index: Inst.Object. An address from memory, a parameter or a call is unknown.
func objects(f *Func) {
	roots := make([]root, f.Regs)
	for changed := true; changed; {
		changed = false
		for i := range f.Insts {
			in := &f.Insts[i]
			if len(in.Dst) == 0 {
				continue
			}
			v := in.root(roots)
			for _, d := range in.Dst {
				if d.Kind == Reg {
					changed = roots[d.Reg].join(v) || changed
				}
			}
		}
	}
	for i := range f.Insts {
		in := &f.Insts[i]
		if in.Class != Load && in.Class != Store && in.Class != Atomic || in.Word || in.Space != event.Shared && in.Space != event.Generic {
			continue
		}
		if v := in.Src[0].root(roots); v.kind == within {
			in.Object = v.of
		}
	}
}

// join adds the result of another definition, and reports whether r has changed.
func (r *root) join(v root) bool {
	old := *r
	switch {
	case v.kind == unset || *r == v:
	case r.kind == unset:
		*r = v
	default:
		*r = root{kind: unknown}
	}
	return *r != old
}

func (o *Operand) root(roots []root) root {
	switch {
	case o.Kind == Reg:
		return roots[o.Reg]
	case o.Kind != SharedAddr && o.Kind != GenericAddr || o.Var == nil || o.Var.Space != event.Shared:
		return root{kind: index}
	case o.Var.Dynamic || o.Var.Size == 0:
		return root{kind: unknown}
	}
	return root{within, o.Var}
}

// root is the root of the results of an instruction.
func (in *Inst) root(roots []root) root {
	if in.Class != Pure {
		return root{kind: index}
	}
	all := root{kind: index}
	for k := range in.Src {
		v := in.Src[k].root(roots)
		switch {
		case v.kind == unset:
			return root{} // until its definition was visited
		case v.kind == index:
		case all.kind != index || !in.keeps(k):
			all = root{kind: unknown}
		default:
			all = v
		}
	}
	return all
}

// keeps reports whether the result is the k-th source, or that plus an index.
func (in *Inst) keeps(k int) bool {
	switch in.Row.Op {
	case "mov", "cvt", "cvta":
		return true
	case "add":
		return !in.Type.Float()
	case "sub":
		return !in.Type.Float() && k == 0
	case "mad":
		return !in.Type.Float() && k == 2
	}
	return false
}
