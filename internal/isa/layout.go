package isa

import (
	"fmt"
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// Reachable lists the function and those that it may call, in the order in which they are found.
func (f *Func) Reachable() []*Func {
	seen := map[*Func]bool{f: true}
	list := []*Func{f}
	for i := 0; i < len(list); i++ {
		for _, g := range list[i].Calls {
			if !seen[g] {
				seen[g] = true
				list = append(list, g)
			}
		}
	}
	return list
}

// SyncsGrid reports whether the kernel uses the workspace of a cooperative launch, whose address is in %envreg1 and 2.
// The grid synchronisation of cooperative groups does so, and traps if there is none.
func (f *Func) SyncsGrid() bool {
	return f.Any(func(in *Inst) bool {
		return slices.ContainsFunc(in.Src, func(o Operand) bool {
			return o.Kind == SpecialReg && (o.Special == EnvReg0+1 || o.Special == EnvReg0+2)
		})
	})
}

// MayCall reports whether the indirect call in, which is in f, may call g: a function with the call's signature that is
// listed at the call or, if no functions are listed, whose address the program takes.
func (f *Func) MayCall(in *Inst, g *Func) bool {
	list := in.Callees
	if list == nil {
		list = f.Calls
	}
	return slices.Contains(list, g) && !g.Entry && in.CallSig != nil && g.Sig.Matches(in.CallSig)
}

// Check returns all errors in the functions that the kernel can reach, including itself, and nil if it can run. The
// error is a ptx.ErrorList. A function that is declared and neither defined nor supplied is an error at its calls.
func (m *Module) Check(kernel *Func) error {
	var errs ptx.ErrorList
	from := map[*Func][]ptx.Source{} // the calls that lead to a function, innermost first
	for _, f := range kernel.Reachable() {
		if list, ok := f.Err.(ptx.ErrorList); ok {
			for _, e := range list {
				told := *e
				if len(e.Source) > 0 {
					told.Source = slices.Concat(e.Source, from[f])
				}
				errs = append(errs, &told)
			}
		}
		for i := range f.Insts {
			in := &f.Insts[i]
			g := in.Callee
			if in.Class != Call || g == nil {
				continue
			}
			at := slices.Concat(f.source(in), from[f])
			if g.Decl.Body == nil && g.Builtin == "" {
				errs = append(errs, &ptx.Error{File: in.File.Name, Pos: in.Source.Pos, Msg: undefined(g.Name), Source: at})
			}
			if from[g] == nil && g != kernel {
				from[g] = at
			}
		}
	}
	errs.Sort()
	return errs.Err()
}

// source returns the places of an instruction in the source.
func (f *Func) source(in *Inst) []ptx.Source {
	if in.Loc < 0 {
		return nil
	}
	return f.Locs[in.Loc].source(f.Decl)
}

// undefined explains a function that is not defined anywhere.
func undefined(name string) string {
	if call, _ := DeviceRuntime(name); call != "" {
		return fmt.Sprintf("function %s: cuda%s in device code is not supported", name, call)
	}
	return fmt.Sprintf("function %s is declared and defined in no module; sources that call each other's device functions are linked with -rdc=true", name)
}

// ReservedShared is the size of the region of shared memory that belongs to the system software, as on devices of
// compute capability 8.0 and up. The cooperative groups of CUDA C++ keep the barriers of their larger tiles there.
const ReservedShared = 1024

// SharedLayout places the shared variables that the kernel can reach: after the reserved region the static ones in the
// order of their declaration, each aligned, and after them the dynamic ones, which all begin at the same place.
func (m *Module) SharedLayout(kernel *Func) *Shared {
	s := &Shared{Offset: make([]int64, len(m.Vars))}
	used := make([]bool, len(m.Vars))
	for _, f := range kernel.Reachable() {
		for i := range f.Insts {
			for _, o := range f.Insts[i].Src {
				switch {
				case o.Kind == SpecialReg && (o.Special == ReservedSmemOffset || o.Special == ReservedSmemSize):
					s.Reserved = ReservedShared
				case o.Var != nil && o.Var.Space == event.Shared:
					used[o.Var.Index] = true
				}
			}
		}
	}
	align, end := int64(1), s.Reserved
	for i, v := range m.Vars {
		s.Offset[i] = -1
		switch {
		case !used[i]:
		case v.Dynamic:
			align = max(align, v.Align)
		default:
			s.Offset[i] = alignUp64(end, v.Align)
			end = s.Offset[i] + v.Size
		}
	}
	s.Static = end - s.Reserved
	s.Dynamic = alignUp64(end, align)
	for i, v := range m.Vars {
		if used[i] && v.Dynamic {
			s.Offset[i] = s.Dynamic
		}
	}
	return s
}

func alignUp64(x, align int64) int64 {
	if align > 1 {
		if r := x % align; r != 0 {
			x += align - r
		}
	}
	return x
}
