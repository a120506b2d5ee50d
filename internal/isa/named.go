package isa

import (
	"fmt"
	"slices"

	"fencepost.dev/fencepost/ptx"
)

// Register finds a register that the body of a function declares outside of inner blocks. It gives the register's slot
// and type. The error is a clause that says why there is no such register.
func (f *Func) Register(name string) (slot int32, typ Type, err error) {
	if typ, err = f.declared(name); err != nil {
		return 0, 0, err
	}
	for i := range f.Insts {
		in := &f.Insts[i]
		if in.Source == nil || len(in.Source.Operands) == 0 {
			continue
		}
		written, dst := in.Source.Operands[:1], in.Dst
		switch written[0].Kind {
		case ptx.OperandVector, ptx.OperandPair:
			written = written[0].Args
		case ptx.OperandList: // the results of a call
			written, dst = written[0].Args, in.RetOps
		}
		for k := range min(len(written), len(dst)) {
			if written[k].Kind != ptx.OperandIdent || written[k].Name != name || dst[k].Kind != Reg {
				continue
			}
			return dst[k].Reg, typ, nil
		}
	}
	return 0, 0, fmt.Errorf("no instruction of %s writes the register %s", f.Name, name)
}

// declared returns the type of a register by its declaration.
func (f *Func) declared(name string) (Type, error) {
	outer, inner := declarations(f.Decl.Body, name)
	switch {
	case len(outer) == 0 && len(name) > 0 && name[0] != '%':
		if outer, _ = declarations(f.Decl.Body, "%"+name); len(outer) > 0 {
			return 0, fmt.Errorf("%s has no register %s; did you mean %%%s?", f.Name, name, name)
		}
		fallthrough
	case len(outer) == 0:
		return 0, fmt.Errorf("%s has no register %s", f.Name, name)
	case len(outer)+inner > 1:
		return 0, fmt.Errorf("several registers of %s are named %s", f.Name, name)
	}
	t := typeByName[outer[0].Type]
	if t.Float() || t == B128 || outer[0].Vector > 1 {
		return 0, fmt.Errorf("the register %s is no integer and no predicate", name)
	}
	return t, nil
}

// declarations returns the declarations of a register in a block, and the number of those in the blocks within it.
func declarations(b *ptx.Block, name string) (here []*ptx.Var, within int) {
	for _, st := range b.Stmts {
		switch st := st.(type) {
		case *ptx.Var:
			if st.Space == "reg" && slices.ContainsFunc(st.Names, func(n ptx.VarName) bool { return declares(&n, name) }) {
				here = append(here, st)
			}
		case *ptx.Block:
			of, deeper := declarations(st, name)
			within += len(of) + deeper
		}
	}
	return here, within
}

// declares says that a declaration declares a register: by its name, or as one of a range.
func declares(n *ptx.VarName, name string) bool {
	if n.Range < 0 {
		return n.Name == name
	}
	for prefix, i := range splits(name) {
		if prefix == n.Name && i < n.Range {
			return true
		}
	}
	return false
}
