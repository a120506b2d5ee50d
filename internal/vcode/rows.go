package vcode

import (
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
)

// signature is an operation for one type, in one of the spellings that package lanes computes.
type signature struct {
	op   string
	t    isa.Type
	from isa.Type // of cvt and of mixed precision
}

// lanesOp says how an instruction is computed 32 lanes at a time. The opcode is that of a two-operand form (OpBin32),
// which the form with a scalar follows (OpBin32S), that of a three-operand form, which its two scalar forms follow, or
// that of a one-operand form.
type lanesOp struct {
	op      Opcode
	fn      uint16
	commute bool
	// reversed is the function with a scalar first; 0 for none.
	reversed uint16
}

// vectorRows are the instructions that package lanes computes: integers, and floating point rounded to nearest without
// .ftz and .sat.
var vectorRows = map[signature]lanesOp{
	{op: "add", t: isa.F32}: {op: OpBin32, fn: fFAdd, commute: true},
	{op: "sub", t: isa.F32}: {op: OpBin32, fn: fFSub, reversed: fFRSub},
	{op: "mul", t: isa.F32}: {op: OpBin32, fn: fFMul, commute: true},
	{op: "div", t: isa.F32}: {op: OpBin32, fn: fFDiv, reversed: fFRDiv},
	{op: "min", t: isa.F32}: {op: OpBin32, fn: fFMin},
	{op: "max", t: isa.F32}: {op: OpBin32, fn: fFMax},
	{op: "add", t: isa.F64}: {op: OpBin64, fn: fFAdd64}, // the first NaN operand is the result: not commutative
	{op: "sub", t: isa.F64}: {op: OpBin64, fn: fFSub64, reversed: fFRSub64},
	{op: "mul", t: isa.F64}: {op: OpBin64, fn: fFMul64},
	{op: "div", t: isa.F64}: {op: OpBin64, fn: fFDiv64, reversed: fFRDiv64},
	{op: "min", t: isa.F64}: {op: OpBin64, fn: fFMin64},
	{op: "max", t: isa.F64}: {op: OpBin64, fn: fFMax64},
	{op: "fma", t: isa.F32}: {op: OpTer32, fn: 1},
	{op: "mad", t: isa.F32}: {op: OpTer32, fn: 1},
	{op: "fma", t: isa.F64}: {op: OpTer64, fn: 1},
	{op: "mad", t: isa.F64}: {op: OpTer64, fn: 1},

	{op: "min", t: isa.S32}:    {op: OpBin32, fn: fMinS, commute: true},
	{op: "min", t: isa.U32}:    {op: OpBin32, fn: fMinU, commute: true},
	{op: "max", t: isa.S32}:    {op: OpBin32, fn: fMaxS, commute: true},
	{op: "max", t: isa.U32}:    {op: OpBin32, fn: fMaxU, commute: true},
	{op: "min", t: isa.S64}:    {op: OpBin64, fn: fMinS64, commute: true},
	{op: "min", t: isa.U64}:    {op: OpBin64, fn: fMinU64, commute: true},
	{op: "max", t: isa.S64}:    {op: OpBin64, fn: fMaxS64, commute: true},
	{op: "max", t: isa.U64}:    {op: OpBin64, fn: fMaxU64, commute: true},
	{op: "mul.hi", t: isa.S32}: {op: OpBin32, fn: fMulHiS, commute: true},
	{op: "mul.hi", t: isa.U32}: {op: OpBin32, fn: fMulHiU, commute: true},
	{op: "div", t: isa.S32}:    {op: OpBin32, fn: fDivS},
	{op: "div", t: isa.U32}:    {op: OpBin32, fn: fDivU},
	{op: "rem", t: isa.S32}:    {op: OpBin32, fn: fRemS},
	{op: "rem", t: isa.U32}:    {op: OpBin32, fn: fRemU},

	{op: "popc", t: isa.B32}:                   {op: OpUn32, fn: 1},
	{op: "clz", t: isa.B32}:                    {op: OpUn32, fn: 2},
	{op: "brev", t: isa.B32}:                   {op: OpUn32, fn: 3},
	{op: "sqrt", t: isa.F32}:                   {op: OpUn32, fn: 4},
	{op: "rcp", t: isa.F32}:                    {op: OpUn32, fn: 5},
	{op: "neg", t: isa.F32}:                    {op: OpUn32, fn: 6},
	{op: "abs", t: isa.F32}:                    {op: OpUn32, fn: 7},
	{op: "rsqrt", t: isa.F32}:                  {op: OpUn32, fn: 8},
	{op: "cvt", t: isa.F32, from: isa.S32}:     {op: OpUn32, fn: 9},
	{op: "cvt", t: isa.F32, from: isa.U32}:     {op: OpUn32, fn: 10},
	{op: "cvt.rzi", t: isa.S32, from: isa.F32}: {op: OpUn32, fn: 11},
	{op: "cvt.rzi", t: isa.U32, from: isa.F32}: {op: OpUn32, fn: 12},
	{op: "ex2", t: isa.F32}:                    {op: OpUn32, fn: 13},
	{op: "lg2", t: isa.F32}:                    {op: OpUn32, fn: 14},
	{op: "cvt.sat", t: isa.F32, from: isa.F32}: {op: OpUn32, fn: 15},
	{op: "abs", t: isa.S32}:                    {op: OpUn32, fn: 16},
	{op: "cvt.rni", t: isa.F32, from: isa.F32}: {op: OpUn32, fn: 17},
	{op: "cvt.rmi", t: isa.F32, from: isa.F32}: {op: OpUn32, fn: 18},
	{op: "cvt.rpi", t: isa.F32, from: isa.F32}: {op: OpUn32, fn: 19},
	{op: "cvt.rzi", t: isa.F32, from: isa.F32}: {op: OpUn32, fn: 20},
	{op: "cvt.rni", t: isa.S32, from: isa.F32}: {op: OpUn32, fn: 21},
	{op: "cvt.rmi", t: isa.S32, from: isa.F32}: {op: OpUn32, fn: 22},
	{op: "cvt.rpi", t: isa.S32, from: isa.F32}: {op: OpUn32, fn: 23},
	{op: "abs", t: isa.S64}:                    {op: OpUn64, fn: 9},
	{op: "cvt.rni", t: isa.F64, from: isa.F64}: {op: OpUn64, fn: 10},
	{op: "cvt.rmi", t: isa.F64, from: isa.F64}: {op: OpUn64, fn: 11},
	{op: "cvt.rpi", t: isa.F64, from: isa.F64}: {op: OpUn64, fn: 12},
	{op: "cvt.rzi", t: isa.F64, from: isa.F64}: {op: OpUn64, fn: 13},
	{op: "fma.rm", t: isa.F32}:                 {op: OpTer32, fn: 2},
	{op: "sqrt", t: isa.F64}:                   {op: OpUn64, fn: 1},
	{op: "rcp", t: isa.F64}:                    {op: OpUn64, fn: 2},
	{op: "neg", t: isa.F64}:                    {op: OpUn64, fn: 3},
	{op: "abs", t: isa.F64}:                    {op: OpUn64, fn: 4},
	{op: "cvt", t: isa.F64, from: isa.S64}:     {op: OpUn64, fn: 5},
	{op: "cvt", t: isa.F64, from: isa.U64}:     {op: OpUn64, fn: 6},
	{op: "cvt.rzi", t: isa.S64, from: isa.F64}: {op: OpUn64, fn: 7},
	{op: "cvt.rzi", t: isa.U64, from: isa.F64}: {op: OpUn64, fn: 8},
	{op: "cvt", t: isa.F64, from: isa.S32}:     {op: OpWiden, fn: 2},
	{op: "cvt", t: isa.F64, from: isa.U32}:     {op: OpWiden, fn: 3},
	{op: "cvt", t: isa.F64, from: isa.F32}:     {op: OpWiden, fn: 4},
	{op: "cvt.rzi", t: isa.S64, from: isa.F32}: {op: OpWiden, fn: 5},
	{op: "cvt.rzi", t: isa.U64, from: isa.F32}: {op: OpWiden, fn: 6},
	{op: "popc", t: isa.B64}:                   {op: OpNarrow, fn: 2},
	{op: "clz", t: isa.B64}:                    {op: OpNarrow, fn: 3},
	{op: "cvt", t: isa.F32, from: isa.S64}:     {op: OpNarrow, fn: 4},
	{op: "cvt", t: isa.F32, from: isa.U64}:     {op: OpNarrow, fn: 5},
	{op: "cvt", t: isa.F32, from: isa.F64}:     {op: OpNarrow, fn: 6},
	{op: "cvt.rzi", t: isa.S32, from: isa.F64}: {op: OpNarrow, fn: 7},
	{op: "cvt.rzi", t: isa.U32, from: isa.F64}: {op: OpNarrow, fn: 8},
}

// cmpFloat is the index of the first floating-point comparison (isa.CmpEQ) in cmp32 and cmp64.
const cmpFloat = 10

// vectorRow emits a function of package lanes for an instruction that has one, and otherwise returns false.
func (b *compiler) vectorRow(in *opt.Instr) bool {
	inst := in.Inst
	if ftz := inst.Ftz; ftz && !flushes(inst) || inst.Sat && (ftz || inst.Row.Op != "cvt" || inst.Type != isa.F32) || inst.CarryIn || inst.CarryOut || inst.Wide || in.Dst[0] == opt.NoValue || b.file[in.Dst[0]] == scalars {
		return false
	}
	for _, d := range in.Dst[1:] {
		if d != opt.NoValue {
			return b.unpack(in)
		}
	}
	sig := signature{op: inst.Row.Op, t: inst.Type, from: inst.Type2}
	switch sig.op {
	case "setp":
		return b.compareFloats(in)
	case "shf", "prmt", "lop3":
		return b.withConstant(in)
	case "mov":
		return b.pack(in)
	case "cvt":
		if name := integral[inst.Round]; name != "" && !inst.Sat {
			sig.op = name
			break
		}
		if inst.Sat {
			sig.op = "cvt.sat"
		}
		if !sig.t.Float() {
			return false
		}
		if inst.Round != isa.NoRound && inst.Round != isa.RN {
			return false
		}
	case "mul":
		if inst.Hi {
			sig.op = "mul.hi"
		}
	case "min", "max", "mad":
		if inst.Hi || inst.Has("NaN") || inst.Has("abs") || inst.Has("xorsign") || inst.Has("relu") {
			return false
		}
	case "rcp", "sqrt", "rsqrt":
		if inst.Type == isa.F64 && inst.Approx {
			return false
		}
	}
	if sig.op == "fma" && inst.Round == isa.RM {
		sig.op = "fma.rm"
	} else if sig.op != "cvt" && sig.from == isa.NoType && inst.Round != isa.NoRound && inst.Round != isa.RN {
		return false
	}
	o, ok := vectorRows[sig]
	return ok && b.lanesRow(in, o)
}

// operands returns the operands of an instruction that are present.
func (b *compiler) operands(in *opt.Instr) []opt.Value {
	var args []opt.Value
	for _, a := range in.Args {
		if a != opt.NoValue {
			args = append(args, a)
		}
	}
	return args
}

// widths reports whether all values have the width.
func (b *compiler) widths(w opt.Width, vs ...opt.Value) bool {
	for _, v := range vs {
		if b.f.Width(v) != w {
			return false
		}
	}
	return true
}

// reads reports whether the values can be read in the width: a constant of 64 bits may be used as one of 32.
func (b *compiler) reads(w opt.Width, vs ...opt.Value) bool {
	for _, v := range vs {
		if b.f.Width(v) != w && !(w == opt.W64 && b.fixed[v] && b.uniform(v)) {
			return false
		}
	}
	return true
}

func (b *compiler) lanesRow(in *opt.Instr, o lanesOp) bool {
	args, d := b.operands(in), in.Dst[0]
	src, dst := opt.W32, opt.W32
	switch o.op {
	case OpBin64, OpTer64, OpUn64:
		src, dst = opt.W64, opt.W64
	case OpWiden:
		dst = opt.W64
	case OpNarrow:
		src = opt.W64
	}
	if !b.reads(src, args...) || !b.widths(dst, d) {
		return false
	}
	switch o.op {
	case OpBin32, OpBin64:
		if len(args) != 2 {
			return false
		}
		x, y := args[0], args[1]
		switch {
		case o.commute:
			x, y = b.sides(x, y)
		case o.reversed != 0 && b.uniform(x):
			b.add(Instr{Op: o.op + 1, Fn: o.reversed, D: b.reg[d], A: b.vec(y), B: b.reg[x]})
			return true
		}
		b.two(o.op, o.op+1, o.fn, d, x, y)
	case OpTer32, OpTer64:
		if len(args) != 3 {
			return false
		}
		x, y, z := args[0], args[1], args[2]
		if o.op == OpTer32 {
			x, y = b.sides(x, y)
		}
		i := Instr{Op: o.op, Fn: o.fn, D: b.reg[d], A: b.vec(x)}
		switch {
		case b.uniform(y):
			i.Op, i.B, i.C = o.op+2, b.reg[y], b.vec(z)
		case b.uniform(z):
			i.Op, i.B, i.C = o.op+1, b.vec(y), b.reg[z]
		default:
			i.B, i.C = b.vec(y), b.vec(z)
		}
		b.add(i)
	default:
		if len(args) != 1 {
			return false
		}
		if from := b.vec(args[0]); !in.Inst.Ftz {
			b.add(Instr{Op: o.op, Fn: o.fn, D: b.reg[d], A: from})
		} else {
			b.add(Instr{Op: OpUn32, Fn: flush, D: b.reg[d], A: from})
			b.add(Instr{Op: o.op, Fn: o.fn, D: b.reg[d], A: b.reg[d]})
			b.add(Instr{Op: OpUn32, Fn: flush, D: b.reg[d], A: b.reg[d]})
		}
	}
	return true
}

// flush is the function that flushes subnormals to zero.
const flush = 24

// flushes reports whether flush can execute the .ftz of an instruction, which is so for functions of one f32 that
// return an f32.
func flushes(in *isa.Inst) bool {
	switch in.Row.Op {
	case "ex2", "lg2", "rcp", "sqrt", "rsqrt", "neg", "abs":
		return in.Type == isa.F32
	}
	return false
}

// integral names the rounding of cvt to whole numbers.
var integral = map[isa.Rounding]string{isa.RNI: "cvt.rni", isa.RMI: "cvt.rmi", isa.RPI: "cvt.rpi", isa.RZI: "cvt.rzi"}

// compareFloats emits setp of f32 and f64 without a Boolean operation.
func (b *compiler) compareFloats(in *opt.Instr) bool {
	inst, args := in.Inst, b.operands(in)
	op, OpS, w := OpCmp32, OpCmp32S, opt.W32
	switch inst.Type {
	case isa.F32:
	case isa.F64:
		op, OpS, w = OpCmp64, OpCmp64S, opt.W64
	default:
		return false
	}
	if inst.Op != isa.NoOp || len(args) != 2 || !b.reads(w, args...) || b.f.Width(in.Dst[0]) != opt.W1 || inst.Cmp < isa.CmpEQ || inst.Cmp > isa.CmpNaN {
		return false
	}
	b.two(op, OpS, cmpFloat+uint16(inst.Cmp-isa.CmpEQ), in.Dst[0], args[0], args[1])
	return true
}

// withConstant emits instructions whose last operand must be constant.
func (b *compiler) withConstant(in *opt.Instr) bool {
	inst, args := in.Inst, b.operands(in)
	if len(args) < 3 || !b.widths(opt.W32, args...) || !b.widths(opt.W32, in.Dst[0]) {
		return false
	}
	n, ok := b.f.ConstOf(args[len(args)-1])
	if !ok {
		return false
	}
	i := Instr{Op: OpImm32, D: b.reg[in.Dst[0]], A: b.vec(args[0]), B: b.vec(args[1]), Imm: n}
	switch inst.Row.Op {
	case "shf":
		if len(args) != 3 || n > 31 {
			return false
		}
		if inst.Has("r") {
			i.Fn = 1
		}
	case "prmt":
		if len(args) != 3 || inst.Mode != isa.NoMode {
			return false
		}
		i.Fn, i.Imm = 2, n&0xffff
	default:
		if len(args) != 4 || inst.Op != isa.NoOp {
			return false
		}
		i.Op, i.C = OpImm32T, b.vec(args[2])
	}
	b.add(i)
	return true
}

// pack emits mov of two halves into 64 bits.
func (b *compiler) pack(in *opt.Instr) bool {
	args := b.operands(in)
	if in.Inst.Type.Size() != 8 || len(args) != 2 || !b.widths(opt.W32, args...) || !b.widths(opt.W64, in.Dst[0]) {
		return false
	}
	b.add(Instr{Op: OpPack, D: b.reg[in.Dst[0]], A: b.vec(args[0]), B: b.vec(args[1])})
	return true
}

// unpack emits mov of 64 bits into two halves.
func (b *compiler) unpack(in *opt.Instr) bool {
	args := b.operands(in)
	if in.Inst.Row.Op != "mov" || in.Inst.Type.Size() != 8 || len(args) != 1 || len(in.Dst) != 2 || !b.widths(opt.W64, args[0]) {
		return false
	}
	for _, d := range in.Dst {
		if d == opt.NoValue || b.f.Width(d) != opt.W32 || b.file[d] == scalars {
			return false
		}
	}
	for k, d := range in.Dst {
		b.add(Instr{Op: OpNarrow, Fn: uint16(k), D: b.reg[d], A: b.vec(args[0])})
	}
	return true
}
