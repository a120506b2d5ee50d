package opt

import (
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// native emits a pure instruction in native operations, where there are some; NoValue where the row must stand.
func (b *builder) native(d *draft, in *isa.Inst) Value {
	op := in.Row.Op
	dst := &in.Dst[0]
	w := widthOf(dst.Size)
	arg := func(i int) Value { return b.operand(d.fr, &in.Src[i]) }
	switch op {
	case "mov":
		if len(in.Dst) == 1 && len(in.Src) == 1 && in.Src[0].Kind == isa.Reg && in.Src[0].Size == dst.Size {
			return arg(0)
		}
		if len(in.Dst) == 1 && len(in.Src) == 1 && in.Src[0].Kind != isa.Reg && dst.Size >= 4 {
			return b.fit(arg(0), w)
		}
	case "cvta":
		tag := map[event.Space]uint64{event.Shared: isa.SharedWindow, event.Local: isa.LocalWindow, event.Param: isa.ParamWindow}[in.Space]
		if in.Has("to") {
			tag = -tag
		}
		if tag == 0 {
			return b.fit(arg(0), W64)
		}
		return b.emit(Add, W64, 0, b.fit(arg(0), W64), b.konst(W64, tag))
	case "selp":
		if dst.Size >= 4 && !in.Type.Float() || dst.Size == 4 || dst.Size == 8 {
			return b.emit(Sel, w, 0, arg(2), b.fit(arg(0), w), b.fit(arg(1), w))
		}
	case "setp":
		return b.nativeCmp(d, in)
	case "cvt":
		return b.nativeCvt(d, in)
	case "and", "or", "xor", "not":
		if in.Type == isa.Pred || int(dst.Size) == in.Type.Size() && dst.Size >= 4 {
			return b.nativeLogic(op, w, in, arg)
		}
	case "add", "sub", "mul", "mad", "shl", "shr", "neg":
		return b.nativeArith(d, in)
	}
	return NoValue
}

// fit gives v in a register of width w, raw bits kept.
func (b *builder) fit(v Value, w Width) Value {
	from := b.f.Width(v)
	if from == w {
		return v
	}
	if c, ok := b.f.ConstOf(b.find(v)); ok {
		return b.konst(w, c)
	}
	return b.emit(ZExt, w, uint64(min(from.Bits(), w.Bits())), v)
}

func (b *builder) nativeLogic(op string, w Width, in *isa.Inst, arg func(int) Value) Value {
	ops := map[string]Op{"and": And, "or": Or, "xor": Xor, "not": Not}
	if op == "not" {
		return b.emit(Not, w, 0, b.fit(arg(0), w))
	}
	return b.emit(ops[op], w, 0, b.fit(arg(0), w), b.fit(arg(1), w))
}

// integer reports whether t is an integer or untyped type of 32 or 64 bits.
func integer(t isa.Type) bool {
	switch t {
	case isa.B32, isa.B64, isa.U32, isa.U64, isa.S32, isa.S64:
		return true
	}
	return false
}

var conds = map[isa.CmpOp][2]Cond{
	isa.CmpEQ: {EQ, EQ}, isa.CmpNE: {NE, NE}, isa.CmpLT: {LTU, LTS}, isa.CmpLE: {LEU, LES}, isa.CmpGT: {GTU, GTS}, isa.CmpGE: {GEU, GES},
}

func (b *builder) nativeCmp(d *draft, in *isa.Inst) Value {
	if !integer(in.Type) || in.Op != isa.NoOp || len(in.Dst) > 1 && in.Dst[1].Kind == isa.Reg || len(in.Src) > 2 && in.Src[2].Kind != isa.Sink {
		return NoValue
	}
	pair, ok := conds[in.Cmp]
	if !ok {
		return NoValue
	}
	c := pair[0]
	if in.Type.Signed() {
		c = pair[1]
	}
	w := widthOf(uint8(in.Type.Size()))
	v := b.emit(Cmp, W1, uint64(c), b.fit(b.operand(d.fr, &in.Src[0]), w), b.fit(b.operand(d.fr, &in.Src[1]), w))
	b.f.Def(v).Aux = uint8(w.Bits())
	return v
}

func (b *builder) nativeCvt(d *draft, in *isa.Inst) Value {
	dst := &in.Dst[0]
	t, from := in.Type, in.Type2
	if t.Float() || from.Float() || in.Sat || len(in.Src) != 1 || dst.Size < 4 || !scalarInt(t) || !scalarInt(from) {
		return NoValue
	}
	w := widthOf(dst.Size)
	v := b.operand(d.fr, &in.Src[0])
	if from.Size() < t.Size() {
		if from.Signed() != t.Signed() && int(dst.Size) > t.Size() {
			return NoValue // extended twice, in two ways
		}
		return b.emit(ext(from), w, uint64(from.Size()*8), v)
	}
	if t.Size() == int(dst.Size) {
		return b.fit(v, w)
	}
	return b.emit(ext(t), w, uint64(t.Size()*8), v)
}

func scalarInt(t isa.Type) bool { return t >= isa.B8 && t <= isa.S64 && t != isa.B128 }

func ext(t isa.Type) Op {
	if t.Signed() {
		return SExt
	}
	return ZExt
}

func (b *builder) nativeArith(d *draft, in *isa.Inst) Value {
	op, t := in.Row.Op, in.Type
	dst := &in.Dst[0]
	w := widthOf(dst.Size)
	if in.Row.Carry || in.CarryIn || in.CarryOut || in.Sat || in.Hi || !integer(t) || len(in.Dst) != 1 {
		return NoValue
	}
	wt := widthOf(uint8(t.Size()))
	arg := func(i int) Value { return b.fit(b.operand(d.fr, &in.Src[i]), wt) }
	if in.Wide {
		if t.Size() != 4 || dst.Size != 8 {
			return NoValue
		}
		mul := MulU
		if t.Signed() {
			mul = MulS
		}
		v := b.emit(mul, W64, 0, arg(0), arg(1))
		if op == "mad" {
			v = b.emit(Add, W64, 0, v, b.fit(b.operand(d.fr, &in.Src[2]), W64))
		}
		return v
	}
	if int(dst.Size) != t.Size() {
		return NoValue
	}
	switch op {
	case "add":
		return b.emit(Add, w, 0, arg(0), arg(1))
	case "sub":
		return b.emit(Sub, w, 0, arg(0), arg(1))
	case "mul":
		return b.emit(Mul, w, 0, arg(0), arg(1))
	case "mad":
		return b.emit(Add, w, 0, b.emit(Mul, w, 0, arg(0), arg(1)), arg(2))
	case "neg":
		return b.emit(Sub, w, 0, b.konst(w, 0), arg(0))
	case "shl":
		return b.emit(Shl, w, 0, arg(0), b.fit(b.operand(d.fr, &in.Src[1]), W32))
	case "shr":
		op := ShrU
		if t.Signed() {
			op = ShrS
		}
		return b.emit(op, w, 0, arg(0), b.fit(b.operand(d.fr, &in.Src[1]), W32))
	}
	return NoValue
}
