package opt

import (
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// native emits a pure instruction as native operations if there are any. It returns NoValue if the instruction must
// stay a Row.
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
		if len(in.Dst) == 1 && len(in.Src) == 1 && in.Src[0].Kind != isa.Reg {
			return b.narrow(b.fit(arg(0), w), in.Type)
		}
	case "cvta":
		if in.Type != isa.U64 {
			return NoValue
		}
		tag := map[event.Space]uint64{event.Shared: isa.SharedWindow, event.Local: isa.LocalWindow, event.Param: isa.ParamWindow}[in.Space]
		if in.Has("to") {
			tag = -tag
		}
		if tag == 0 {
			return b.fit(arg(0), W64)
		}
		return b.emit(Add, W64, 0, b.fit(arg(0), W64), b.konst(W64, tag))
	case "selp":
		if in.Type.RegisterSize() == dst.Size {
			return b.emit(Sel, w, 0, arg(2), b.fit(arg(0), w), b.fit(arg(1), w))
		}
	case "setp":
		return b.nativeCmp(d, in)
	case "cvt":
		return b.nativeCvt(d, in)
	case "and", "or", "xor", "not":
		if dst.Size == in.Type.RegisterSize() {
			return b.nativeLogic(op, w, in, arg)
		}
	case "add", "sub", "mul", "mad", "shl", "shr", "neg":
		return b.nativeArith(d, in)
	}
	return NoValue
}

// fit returns the raw bits of v in a register of width w.
func (b *builder) fit(v Value, w Width) Value {
	from := b.f.Width(v)
	if from == w {
		return v
	}
	if c, ok := b.f.ConstOf(b.find(v)); ok && b.f.Def(b.find(v)).Aux == undefinedConst {
		return b.zero(w)
	} else if ok {
		return b.konst(w, c)
	}
	return b.emit(ZExt, w, uint64(min(from.Bits(), w.Bits())), v)
}

func (b *builder) nativeLogic(op string, w Width, in *isa.Inst, arg func(int) Value) Value {
	ops := map[string]Op{"and": And, "or": Or, "xor": Xor, "not": Not}
	if op == "not" {
		v := b.emit(Not, w, 0, b.fit(arg(0), w))
		return b.narrow(v, in.Type)
	}
	v := b.emit(ops[op], w, 0, b.fit(arg(0), w), b.fit(arg(1), w))
	if b.aligns && AlignsDown(in) {
		b.f.Def(v).Aux = aligned
	}
	return v
}

// narrow clears the bits that an operation on 16 bits left above them in its 32-bit register.
func (b *builder) narrow(v Value, t isa.Type) Value {
	if t.Size() == 2 {
		return b.emit(ZExt, W32, 16, v)
	}
	return v
}

// widen reads v, of type t, as a number of width w. Narrow signed integers are stored without sign extension.
func (b *builder) widen(v Value, t isa.Type, w Width) Value {
	v = b.fit(v, w)
	if t.Signed() && t.Size() == 2 {
		return b.emit(SExt, w, 16, v)
	}
	return v
}

// integer reports whether t is an integer or untyped type of 16, 32 or 64 bits.
func integer(t isa.Type) bool {
	switch t {
	case isa.B16, isa.U16, isa.S16, isa.B32, isa.B64, isa.U32, isa.U64, isa.S32, isa.S64:
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
	w := widthOf(in.Type.RegisterSize())
	x, y := b.operand(d.fr, &in.Src[0]), b.operand(d.fr, &in.Src[1])
	if c == EQ || c == NE {
		x, y = b.fit(x, w), b.fit(y, w)
	} else {
		x, y = b.widen(x, in.Type, w), b.widen(y, in.Type, w)
	}
	if in.Type.Size() == 2 && (!fits16(in, 0) || !fits16(in, 1)) {
		return NoValue
	}
	v := b.emit(Cmp, W1, uint64(c), x, y)
	b.f.Def(v).Aux = uint8(w.Bits())
	return v
}

// fits16 reports whether a source of a 16-bit instruction has no bits above 16.
func fits16(in *isa.Inst, i int) bool {
	op := &in.Src[i]
	return op.Kind == isa.Reg && op.Size == 2 || op.Kind == isa.Imm && op.Imm < 1<<16
}

func (b *builder) nativeCvt(d *draft, in *isa.Inst) Value {
	dst := &in.Dst[0]
	t, from := in.Type, in.Type2
	if t.Float() || from.Float() || in.Sat || len(in.Src) != 1 || dst.Size < 2 || !scalarInt(t) || !scalarInt(from) {
		return NoValue
	}
	w := widthOf(dst.Size)
	v := b.operand(d.fr, &in.Src[0])
	if from.Size() < t.Size() {
		if from.Signed() != t.Signed() && int(dst.Size) > t.Size() {
			return NoValue // extended twice, in two ways
		}
		v = b.emit(ext(from), w, uint64(from.Size()*8), v)
	} else if t.Size() != int(dst.Size) || t.Size() == 2 {
		v = b.emit(ext(t), w, uint64(t.Size()*8), v)
	} else {
		v = b.fit(v, w)
	}
	if dst.Size == 2 {
		return b.emit(ZExt, W32, 16, v)
	}
	return v
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
	wt := widthOf(t.RegisterSize())
	if t.Size() == 2 {
		for i := range in.Src {
			if !fits16(in, i) && (op != "shl" && op != "shr" || i == 0) && (op != "mad" || i < 2) {
				return NoValue
			}
		}
	}
	arg := func(i int) Value { return b.fit(b.operand(d.fr, &in.Src[i]), wt) }
	if in.Wide && t.Size() == 2 {
		v := b.emit(Mul, W32, 0, b.widen(arg(0), t, W32), b.widen(arg(1), t, W32))
		if op == "mad" {
			v = b.emit(Add, W32, 0, v, b.fit(b.operand(d.fr, &in.Src[2]), W32))
		}
		return v
	}
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
	v := NoValue
	switch op {
	case "add":
		v = b.emit(Add, w, 0, arg(0), arg(1))
	case "sub":
		v = b.emit(Sub, w, 0, arg(0), arg(1))
	case "mul":
		v = b.emit(Mul, w, 0, arg(0), arg(1))
	case "mad":
		v = b.emit(Add, w, 0, b.emit(Mul, w, 0, arg(0), arg(1)), arg(2))
	case "neg":
		v = b.emit(Sub, w, 0, b.konst(w, 0), arg(0))
	case "shl":
		v = b.emit(Shl, w, 0, arg(0), b.fit(b.operand(d.fr, &in.Src[1]), W32))
	case "shr":
		op := ShrU
		if t.Signed() {
			op = ShrS
		}
		v = b.emit(op, w, 0, b.widen(arg(0), t, w), b.fit(b.operand(d.fr, &in.Src[1]), W32))
	}
	return b.narrow(v, t)
}
