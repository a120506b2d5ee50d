package simt

import (
	"fencepost.dev/fencepost/internal/lanes"
	"fencepost.dev/fencepost/internal/opt"
)

type (
	v32 = lanes.V32
	v64 = lanes.V64
)

// The functions of the operations, by ins.fn.
var (
	bin32 = [...]func(d, a, b *v32, mask uint32){
		lanes.Add32, lanes.Sub32, lanes.Mul32, lanes.And32, lanes.Or32, lanes.Xor32, lanes.Shl32, lanes.ShrU32, lanes.ShrS32,
		lanes.MinS32, lanes.MinU32, lanes.MaxS32, lanes.MaxU32, lanes.MulHiU32, lanes.MulHiS32, lanes.DivU32, lanes.DivS32,
		lanes.RemU32, lanes.RemS32, lanes.FAdd32, lanes.FSub32, lanes.FMul32, lanes.FDiv32, lanes.FMin32, lanes.FMax32}
	bin32S = [...]func(d, a *v32, s, mask uint32){
		lanes.Add32S, lanes.Sub32S, lanes.Mul32S, lanes.And32S, lanes.Or32S, lanes.Xor32S, lanes.Shl32S, lanes.ShrU32S, lanes.ShrS32S,
		lanes.MinS32S, lanes.MinU32S, lanes.MaxS32S, lanes.MaxU32S, lanes.MulHiU32S, lanes.MulHiS32S, lanes.DivU32S, lanes.DivS32S,
		lanes.RemU32S, lanes.RemS32S, lanes.FAdd32S, lanes.FSub32S, lanes.FMul32S, lanes.FDiv32S, lanes.FMin32S, lanes.FMax32S,
		lanes.RSub32S, lanes.FRSub32S, lanes.FRDiv32S}
	bin64 = [...]func(d, a, b *v64, mask uint32){
		lanes.Add64, lanes.Sub64, lanes.Mul64, lanes.And64, lanes.Or64, lanes.Xor64,
		lanes.MinS64, lanes.MinU64, lanes.MaxS64, lanes.MaxU64,
		lanes.FAdd64, lanes.FSub64, lanes.FMul64, lanes.FDiv64, lanes.FMin64, lanes.FMax64}
	bin64S = [...]func(d, a *v64, s uint64, mask uint32){
		lanes.Add64S, lanes.Sub64S, lanes.Mul64S, lanes.And64S, lanes.Or64S, lanes.Xor64S,
		lanes.MinS64S, lanes.MinU64S, lanes.MaxS64S, lanes.MaxU64S,
		lanes.FAdd64S, lanes.FSub64S, lanes.FMul64S, lanes.FDiv64S, lanes.FMin64S, lanes.FMax64S,
		lanes.RSub64S, lanes.FRSub64S, lanes.FRDiv64S}
	un32 = [...]func(d, a *v32, mask uint32){
		lanes.Not32, lanes.Popc32, lanes.Clz32, lanes.Brev32, lanes.FSqrt32, lanes.FRcp32, lanes.FNeg32, lanes.FAbs32,
		lanes.FRsqrt32, lanes.S32toF32, lanes.U32toF32, lanes.F32toS32Z, lanes.F32toU32Z}
	un64 = [...]func(d, a *v64, mask uint32){
		lanes.Not64, lanes.FSqrt64, lanes.FRcp64, lanes.FNeg64, lanes.FAbs64, lanes.S64toF64, lanes.U64toF64,
		lanes.F64toS64Z, lanes.F64toU64Z}
	ter32   = [...]func(d, a, b, c *v32, mask uint32){lanes.Mad32, lanes.FMA32}
	ter32S  = [...]func(d, a, b *v32, s, mask uint32){lanes.Mad32S, lanes.FMA32S}
	ter32SB = [...]func(d, a *v32, s uint32, c *v32, mask uint32){lanes.Mad32SB, lanes.FMA32SB}
	ter64   = [...]func(d, a, b, c *v64, mask uint32){lanes.Mad64, lanes.FMA64}
	ter64S  = [...]func(d, a, b *v64, s uint64, mask uint32){lanes.Mad64S, lanes.FMA64S}
	ter64SB = [...]func(d, a *v64, s uint64, c *v64, mask uint32){lanes.Mad64SB, lanes.FMA64SB}
	shift64 = [...]func(d, a *v64, n *v32, mask uint32){lanes.Shl64, lanes.ShrU64, lanes.ShrS64}
	shiftS  = [...]func(d, a *v64, n, mask uint32){lanes.Shl64S, lanes.ShrU64S, lanes.ShrS64S}
	widen   = [...]func(d *v64, a *v32, mask uint32){lanes.SExt64, lanes.ZExt64, lanes.S32toF64, lanes.U32toF64, lanes.F32toF64, lanes.F32toS64Z, lanes.F32toU64Z}
	narrow  = [...]func(d *v32, a *v64, mask uint32){lanes.Low32, lanes.High32, lanes.Popc64, lanes.Clz64, lanes.S64toF32, lanes.U64toF32, lanes.F64toF32, lanes.F64toS32Z, lanes.F64toU32Z}
	mul64   = [...]func(d *v64, a, b *v32, mask uint32){lanes.MulU64, lanes.MulS64}
	mul64S  = [...]func(d *v64, a *v32, s, mask uint32){lanes.MulU64S, lanes.MulS64S}
	bits32  = [...]func(d, a *v32, n, mask uint32){lanes.SExtBits32, lanes.ZExtBits32}
	bits64  = [...]func(d, a *v64, n, mask uint32){lanes.SExtBits64, lanes.ZExtBits64}
	imm32   = [...]func(d, a, b *v32, n, mask uint32){lanes.ShfL32S, lanes.ShfR32S, lanes.Prmt32S}
	imm32T  = [...]func(d, a, b, c *v32, n, mask uint32){lanes.Lop3}
	cmp32   = [...]func(a, b *v32, mask uint32) uint32{
		lanes.EQ32, lanes.NE32, lanes.LTS32, lanes.LES32, nil, nil, lanes.LTU32, lanes.LEU32, nil, nil,
		lanes.FEQ32, lanes.FNE32, lanes.FLT32, lanes.FLE32, lanes.FGT32, lanes.FGE32,
		lanes.FEQU32, lanes.FNEU32, lanes.FLTU32, lanes.FLEU32, lanes.FGTU32, lanes.FGEU32, lanes.FNum32, lanes.FNaN32}
	cmp32S = [...]func(a *v32, s, mask uint32) uint32{
		lanes.EQ32S, lanes.NE32S, lanes.LTS32S, lanes.LES32S, lanes.GTS32S, lanes.GES32S, lanes.LTU32S, lanes.LEU32S, lanes.GTU32S, lanes.GEU32S,
		lanes.FEQ32S, lanes.FNE32S, lanes.FLT32S, lanes.FLE32S, lanes.FGT32S, lanes.FGE32S,
		lanes.FEQU32S, lanes.FNEU32S, lanes.FLTU32S, lanes.FLEU32S, lanes.FGTU32S, lanes.FGEU32S, lanes.FNum32S, lanes.FNaN32S}
	cmp64 = [...]func(a, b *v64, mask uint32) uint32{
		lanes.EQ64, lanes.NE64, lanes.LTS64, lanes.LES64, nil, nil, lanes.LTU64, lanes.LEU64, nil, nil,
		lanes.FEQ64, lanes.FNE64, lanes.FLT64, lanes.FLE64, lanes.FGT64, lanes.FGE64,
		lanes.FEQU64, lanes.FNEU64, lanes.FLTU64, lanes.FLEU64, lanes.FGTU64, lanes.FGEU64, lanes.FNum64, lanes.FNaN64}
	cmp64S = [...]func(a *v64, s uint64, mask uint32) uint32{
		lanes.EQ64S, lanes.NE64S, lanes.LTS64S, lanes.LES64S, lanes.GTS64S, lanes.GES64S, lanes.LTU64S, lanes.LEU64S, lanes.GTU64S, lanes.GEU64S,
		lanes.FEQ64S, lanes.FNE64S, lanes.FLT64S, lanes.FLE64S, lanes.FGT64S, lanes.FGE64S,
		lanes.FEQU64S, lanes.FNEU64S, lanes.FLTU64S, lanes.FLEU64S, lanes.FGTU64S, lanes.FGEU64S, lanes.FNum64S, lanes.FNaN64S}
)

// Indices in the tables above.
const (
	fAdd uint16 = iota
	fSub
	fMul
	fAnd
	fOr
	fXor
	fShl
	fShrU
	fShrS
	fMinS
	fMinU
	fMaxS
	fMaxU
	fMulHiU
	fMulHiS
	fDivU
	fDivS
	fRemU
	fRemS
	fFAdd
	fFSub
	fFMul
	fFDiv
	fFMin
	fFMax
	fRSub
	fFRSub
	fFRDiv
)

// The indices of two-operand operations of 64 bits, after those up to fXor.
const (
	fMinS64 = fXor + 1 + iota
	fMinU64
	fMaxS64
	fMaxU64
	fFAdd64
	fFSub64
	fFMul64
	fFDiv64
	fFMin64
	fFMax64
	fRSub64
	fFRSub64
	fFRDiv64
)

var nativeBin = map[opt.Op]uint16{opt.Add: fAdd, opt.Sub: fSub, opt.Mul: fMul, opt.And: fAnd, opt.Or: fOr, opt.Xor: fXor,
	opt.Shl: fShl, opt.ShrU: fShrU, opt.ShrS: fShrS}

var nativePred = map[opt.Op]opcode{opt.And: oAnd1, opt.Or: oOr1, opt.Xor: oXor1, opt.Not: oNot1}

var nativeScalar = map[opt.Op]opcode{opt.Add: sAdd, opt.Sub: sSub, opt.Mul: sMul, opt.And: sAnd, opt.Or: sOr, opt.Xor: sXor, opt.Not: sNot,
	opt.Shl: sShl, opt.ShrU: sShrU, opt.ShrS: sShrS, opt.MulU: sMulU, opt.MulS: sMulS, opt.SExt: sSExt, opt.ZExt: sZExt, opt.Copy: sCopy,
	opt.Sel: sSel, opt.Cmp: sCmp}

// scalar emits a native operation whose result is a scalar.
func (b *compiler) scalar(in *opt.Instr) {
	w := b.f.Width(in.Result())
	i := ins{op: nativeScalar[in.Op], d: b.reg[in.Result()], imm: w.Mask()}
	regs := [3]int32{}
	line := false
	for k, a := range in.Args {
		regs[k] = b.reg[a]
		line = line || b.stride[a] != 0
	}
	i.a, i.b, i.c = regs[0], regs[1], regs[2]
	switch in.Op {
	case opt.Shl, opt.ShrU, opt.ShrS:
		i.fn = uint16(w.Bits())
	case opt.SExt, opt.ZExt:
		i.fn = uint16(in.Imm)
		if line && w == opt.W64 && in.Imm == 32 {
			b.widenLine(in, 1)
			return
		}
	case opt.MulU, opt.MulS:
		if line {
			c, _ := b.f.ConstOf(in.Args[1])
			if in.Op == opt.MulS {
				c = uint64(int64(int32(c)))
			} else {
				c = uint64(uint32(c))
			}
			b.widenLine(in, c)
			return
		}
	case opt.Sel:
		i.c, i.a, i.b = regs[0], regs[1], regs[2]
	case opt.Cmp:
		i.fn, i.imm = uint16(in.Imm), uint64(in.Aux)
	}
	b.add(i)
}

// widenLine emits an extension, or multiplication by a constant, of a value that differs from lane to lane and may wrap
// between them.
func (b *compiler) widenLine(in *opt.Instr, factor uint64) {
	kind := widenU
	if in.Op == opt.SExt || in.Op == opt.MulS {
		kind = widenS
	}
	a := in.Args[0]
	b.add(ins{op: sWiden, fn: kind, d: b.reg[in.Result()], a: b.reg[a], b: ^b.line(b.reg[a], b.stride[a]), imm: factor})
}

// vector emits a native operation on vectors or predicates; false where there is no function for it.
func (b *compiler) vector(in *opt.Instr) bool {
	d := in.Result()
	switch w := b.f.Width(d); {
	case in.Op == opt.Cmp:
		return b.compare(in)
	case w == opt.W1:
		return b.predicate(in)
	case in.Op == opt.Sel:
		op := oSel32
		if w == opt.W64 {
			op = oSel64
		}
		b.add(ins{op: op, d: b.reg[d], c: b.pred(in.Args[0]), a: b.vec(in.Args[1]), b: b.vec(in.Args[2])})
		return true
	case in.Op == opt.Copy:
		op := oCopy32
		if w == opt.W64 {
			op = oCopy64
		}
		b.add(ins{op: op, d: b.reg[d], a: b.vec(in.Args[0])})
		return true
	case in.Op == opt.SExt || in.Op == opt.ZExt:
		return b.extend(in, w)
	case in.Op == opt.MulU || in.Op == opt.MulS:
		fn := uint16(0)
		if in.Op == opt.MulS {
			fn = 1
		}
		x, y := b.sides(in.Args[0], in.Args[1])
		b.two(oMul64, oMul64S, fn, d, x, y)
		return true
	case in.Op == opt.Not:
		op := oUn32
		if w == opt.W64 {
			op = oUn64
		}
		b.add(ins{op: op, d: b.reg[d], a: b.vec(in.Args[0])})
		return true
	default:
		return b.arithmetic(in, w)
	}
}

// sides puts a uniform operand of a commutative operation second.
func (b *compiler) sides(x, y opt.Value) (opt.Value, opt.Value) {
	if b.uniform(x) {
		return y, x
	}
	return x, y
}

// two emits an operation of two sources, in the form with a scalar where the second is uniform.
func (b *compiler) two(op, opS opcode, fn uint16, d, x, y opt.Value) {
	if b.uniform(y) {
		b.add(ins{op: opS, fn: fn, d: b.reg[d], a: b.vec(x), b: b.reg[y]})
		return
	}
	b.add(ins{op: op, fn: fn, d: b.reg[d], a: b.vec(x), b: b.vec(y)})
}

// arithmetic emits the operations that have a function for each width.
func (b *compiler) arithmetic(in *opt.Instr, w opt.Width) bool {
	fn, ok := nativeBin[in.Op]
	if !ok {
		return false
	}
	d, x, y := in.Result(), in.Args[0], in.Args[1]
	if shift := fn >= fShl; shift {
		if b.f.Width(y) != opt.W32 || b.f.Width(x) != w {
			return false
		}
		if w == opt.W64 {
			b.two(oShift64, oShift64S, fn-fShl, d, x, y)
		} else {
			b.two(oBin32, oBin32S, fn, d, x, y)
		}
		return true
	}
	if b.f.Width(x) != w || b.f.Width(y) != w {
		return false
	}
	op, opS, reversed := oBin32, oBin32S, fRSub
	if w == opt.W64 {
		op, opS, reversed = oBin64, oBin64S, fRSub64
	}
	switch {
	case fn != fSub:
		x, y = b.sides(x, y)
	case b.uniform(x):
		b.add(ins{op: opS, fn: reversed, d: b.reg[d], a: b.vec(y), b: b.reg[x]})
		return true
	}
	b.two(op, opS, fn, d, x, y)
	return true
}

// predicate emits an operation whose result is a predicate.
func (b *compiler) predicate(in *opt.Instr) bool {
	d := b.reg[in.Result()]
	for _, a := range in.Args {
		if b.f.Width(a) != opt.W1 && in.Op != opt.ZExt && in.Op != opt.SExt {
			return false
		}
	}
	switch in.Op {
	case opt.And, opt.Or, opt.Xor:
		b.add(ins{op: nativePred[in.Op], d: d, a: b.pred(in.Args[0]), b: b.pred(in.Args[1])})
	case opt.Not:
		b.add(ins{op: oNot1, d: d, a: b.pred(in.Args[0])})
	case opt.Copy:
		b.add(ins{op: oCopy1, d: d, a: b.pred(in.Args[0])})
	case opt.Sel:
		b.add(ins{op: oSel1, d: d, c: b.pred(in.Args[0]), a: b.pred(in.Args[1]), b: b.pred(in.Args[2])})
	case opt.ZExt, opt.SExt:
		if in.Imm == 0 {
			return false
		}
		switch a := in.Args[0]; b.f.Width(a) {
		case opt.W1:
			b.add(ins{op: oCopy1, d: d, a: b.pred(a)})
		case opt.W32:
			b.add(ins{op: oTo1, d: d, a: b.vec(a)})
		default:
			b.add(ins{op: oTo1W, d: d, a: b.vec(a)})
		}
	default:
		return false
	}
	return true
}

// swapped is the condition with the operands exchanged.
var swapped = [...]opt.Cond{opt.EQ: opt.EQ, opt.NE: opt.NE, opt.LTS: opt.GTS, opt.LES: opt.GES, opt.GTS: opt.LTS, opt.GES: opt.LES,
	opt.LTU: opt.GTU, opt.LEU: opt.GEU, opt.GTU: opt.LTU, opt.GEU: opt.LEU}

func (b *compiler) compare(in *opt.Instr) bool {
	x, y := in.Args[0], in.Args[1]
	w := opt.W32
	op, opS := oCmp32, oCmp32S
	if in.Aux == 64 {
		w, op, opS = opt.W64, oCmp64, oCmp64S
	}
	if in.Aux != 32 && in.Aux != 64 || b.f.Width(x) != w || b.f.Width(y) != w {
		return false
	}
	c := opt.Cond(in.Imm)
	vectorOnly := !b.uniform(x) && !b.uniform(y)
	if b.uniform(x) || vectorOnly && (c == opt.GTS || c == opt.GES || c == opt.GTU || c == opt.GEU) {
		x, y, c = y, x, swapped[c]
	}
	if b.uniform(x) {
		return false
	}
	b.two(op, opS, uint16(c), in.Result(), x, y)
	return true
}

// extend emits an extension to 32 or 64 bits.
func (b *compiler) extend(in *opt.Instr, w opt.Width) bool {
	a, d := in.Args[0], b.reg[in.Result()]
	from, fn, n := b.f.Width(a), uint16(0), in.Imm
	if in.Op == opt.ZExt {
		fn = 1
	}
	switch {
	case n == 0 || int(n) > w.Bits():
		return false
	case from == opt.W1:
		ones := uint64(1)
		if in.Op == opt.SExt && n == 1 {
			ones = w.Mask()
		}
		op := oFrom1
		if w == opt.W64 {
			op = oFrom1W
		}
		b.add(ins{op: op, d: d, a: b.pred(a), imm: ones})
	case w == opt.W32 && from == opt.W32:
		b.add(ins{op: oBits32, fn: fn, d: d, a: b.vec(a), imm: n})
	case w == opt.W32:
		b.add(ins{op: oNarrow, d: d, a: b.vec(a)})
		if n < 32 {
			b.add(ins{op: oBits32, fn: fn, d: d, a: d, imm: n})
		}
	case from == opt.W64:
		b.add(ins{op: oBits64, fn: fn, d: d, a: b.vec(a), imm: n})
	default:
		if n > 32 {
			fn, n = 1, 32 // what is above a 32-bit value is zero
		}
		b.add(ins{op: oWiden, fn: fn, d: d, a: b.vec(a)})
		if n < 32 {
			b.add(ins{op: oBits64, fn: fn, d: d, a: d, imm: n})
		}
	}
	return true
}
