package isa

import "fencepost.dev/fencepost/ptx"

// indexed returns the address `array[i]`: that of the array, and that of element i after it. An index in a register is
// multiplied by instructions inserted before in.
func (b *body) indexed(in *Inst, o *ptx.Operand) (Operand, bool) {
	elem := b.elementSize(o.Name)
	if elem == 0 {
		b.errorf(o.Pos, "%s is no array", o.Name)
		return Operand{}, false
	}
	base := ptx.Operand{Kind: ptx.OperandAddrOf, Pos: o.Pos, Name: o.Name}
	index := o.Args[0]
	if index.Kind == ptx.OperandImm {
		l, err := ptx.ParseLiteral(index.Name)
		if err != nil || l.Kind > ptx.LiteralUnsigned {
			b.errorf(index.Pos, "%s is no index", index.Name)
			return Operand{}, false
		}
		base.Off = int64(l.Bits) * elem
		return b.arrayAddress(in, o, &base)
	}
	base.Off = index.Off * elem
	index.Kind, index.Off = ptx.OperandIdent, 0
	regs, ok := b.registerOperand(&index)
	if !ok || len(regs) != 1 || regs[0].Size != 4 {
		b.errorf(index.Pos, "%s is no index: a constant or a 32-bit register is needed", describe(&index))
		return Operand{}, false
	}
	a, ok := b.arrayAddress(in, o, &base)
	if !ok {
		return a, false
	}
	scaled := b.before(in, nil, b.spelled("mul", ".wide.u32"), 8, regs[0], Operand{Kind: Imm, Imm: uint64(elem)})
	return b.before(in, nil, b.spelled("add", ".u64"), 8, scaled, a), true
}

// arrayAddress is the address of base, which determines the space of an access at o.
func (b *body) arrayAddress(in *Inst, o, base *ptx.Operand) (Operand, bool) {
	a, ok := b.addressOf(in, base)
	if ok && (in.Class == Load || in.Class == Store || in.Class == Atomic) {
		b.addressSpace(in, o, a)
	}
	return a, ok
}

// elementSize is the number of bytes of an element of a variable, 0 if there is no such variable.
func (b *body) elementSize(name string) int64 {
	v := (*Var)(nil)
	if x := b.scope.find(name); x != nil {
		if v = x.v; v == nil {
			return int64(x.elem)
		}
	} else if t := b.u.target(name); t != nil {
		v = t.v
	}
	if v == nil {
		return 0
	}
	return int64(declaredSize(v.Decl))
}
