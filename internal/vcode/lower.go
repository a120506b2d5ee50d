package vcode

import (
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// The operations of package lanes, by Instr.Fn.
var (
	bin32 = [...]lanes.Code{
		lanes.OpAdd32, lanes.OpSub32, lanes.OpMul32, lanes.OpAnd32, lanes.OpOr32, lanes.OpXor32, lanes.OpShl32, lanes.OpShrU32, lanes.OpShrS32,
		lanes.OpMinS32, lanes.OpMinU32, lanes.OpMaxS32, lanes.OpMaxU32, lanes.OpMulHiU32, lanes.OpMulHiS32, lanes.OpDivU32, lanes.OpDivS32,
		lanes.OpRemU32, lanes.OpRemS32, lanes.OpFAdd32, lanes.OpFSub32, lanes.OpFMul32, lanes.OpFDiv32, lanes.OpFMin32, lanes.OpFMax32}
	bin32S = [...]lanes.Code{
		lanes.OpAdd32S, lanes.OpSub32S, lanes.OpMul32S, lanes.OpAnd32S, lanes.OpOr32S, lanes.OpXor32S, lanes.OpShl32S, lanes.OpShrU32S, lanes.OpShrS32S,
		lanes.OpMinS32S, lanes.OpMinU32S, lanes.OpMaxS32S, lanes.OpMaxU32S, lanes.OpMulHiU32S, lanes.OpMulHiS32S, lanes.OpDivU32S, lanes.OpDivS32S,
		lanes.OpRemU32S, lanes.OpRemS32S, lanes.OpFAdd32S, lanes.OpFSub32S, lanes.OpFMul32S, lanes.OpFDiv32S, lanes.OpFMin32S, lanes.OpFMax32S,
		lanes.OpRSub32S, lanes.OpFRSub32S, lanes.OpFRDiv32S}
	bin64 = [...]lanes.Code{
		lanes.OpAdd64, lanes.OpSub64, lanes.OpMul64, lanes.OpAnd64, lanes.OpOr64, lanes.OpXor64,
		lanes.OpMinS64, lanes.OpMinU64, lanes.OpMaxS64, lanes.OpMaxU64,
		lanes.OpFAdd64, lanes.OpFSub64, lanes.OpFMul64, lanes.OpFDiv64, lanes.OpFMin64, lanes.OpFMax64}
	bin64S = [...]lanes.Code{
		lanes.OpAdd64S, lanes.OpSub64S, lanes.OpMul64S, lanes.OpAnd64S, lanes.OpOr64S, lanes.OpXor64S,
		lanes.OpMinS64S, lanes.OpMinU64S, lanes.OpMaxS64S, lanes.OpMaxU64S,
		lanes.OpFAdd64S, lanes.OpFSub64S, lanes.OpFMul64S, lanes.OpFDiv64S, lanes.OpFMin64S, lanes.OpFMax64S,
		lanes.OpRSub64S, lanes.OpFRSub64S, lanes.OpFRDiv64S}
	un32 = [...]lanes.Code{
		lanes.OpNot32, lanes.OpPopc32, lanes.OpClz32, lanes.OpBrev32, lanes.OpFSqrt32, lanes.OpFRcp32, lanes.OpFNeg32, lanes.OpFAbs32,
		lanes.OpFRsqrt32, lanes.OpS32toF32, lanes.OpU32toF32, lanes.OpF32toS32Z, lanes.OpF32toU32Z,
		lanes.OpFExpTwo32, lanes.OpFLogTwo32, lanes.OpFSat32, lanes.OpAbsS32, lanes.OpFRoundN32, lanes.OpFRoundM32, lanes.OpFRoundP32, lanes.OpFRoundZ32,
		lanes.OpF32toS32N, lanes.OpF32toS32M, lanes.OpF32toS32P, lanes.OpFFtz32}
	un64 = [...]lanes.Code{
		lanes.OpNot64, lanes.OpFSqrt64, lanes.OpFRcp64, lanes.OpFNeg64, lanes.OpFAbs64, lanes.OpS64toF64, lanes.OpU64toF64,
		lanes.OpF64toS64Z, lanes.OpF64toU64Z, lanes.OpAbsS64, lanes.OpFRoundN64, lanes.OpFRoundM64, lanes.OpFRoundP64, lanes.OpFRoundZ64}
	ter32   = [...]lanes.Code{lanes.OpMad32, lanes.OpFMA32, lanes.OpFMAM32}
	ter32S  = [...]lanes.Code{lanes.OpMad32S, lanes.OpFMA32S, lanes.OpFMAM32S}
	ter32SB = [...]lanes.Code{lanes.OpMad32SB, lanes.OpFMA32SB, lanes.OpFMAM32SB}
	ter64   = [...]lanes.Code{lanes.OpMad64, lanes.OpFMA64}
	ter64S  = [...]lanes.Code{lanes.OpMad64S, lanes.OpFMA64S}
	ter64SB = [...]lanes.Code{lanes.OpMad64SB, lanes.OpFMA64SB}
	shift64 = [...]lanes.Code{lanes.OpShl64, lanes.OpShrU64, lanes.OpShrS64}
	shiftS  = [...]lanes.Code{lanes.OpShl64S, lanes.OpShrU64S, lanes.OpShrS64S}
	widen   = [...]lanes.Code{lanes.OpSExt64, lanes.OpZExt64, lanes.OpS32toF64, lanes.OpU32toF64, lanes.OpF32toF64, lanes.OpF32toS64Z, lanes.OpF32toU64Z}
	narrow  = [...]lanes.Code{lanes.OpLow32, lanes.OpHigh32, lanes.OpPopc64, lanes.OpClz64, lanes.OpS64toF32, lanes.OpU64toF32, lanes.OpF64toF32, lanes.OpF64toS32Z, lanes.OpF64toU32Z}
	mul64   = [...]lanes.Code{lanes.OpMulU64, lanes.OpMulS64}
	mul64S  = [...]lanes.Code{lanes.OpMulU64S, lanes.OpMulS64S}
	bits32  = [...]lanes.Code{lanes.OpSExtBits32, lanes.OpZExtBits32}
	bits64  = [...]lanes.Code{lanes.OpSExtBits64, lanes.OpZExtBits64}
	imm32   = [...]lanes.Code{lanes.OpShfL32S, lanes.OpShfR32S, lanes.OpPrmt32S}
	imm32T  = [...]lanes.Code{lanes.OpLop3}
	cmp32   = [...]lanes.Code{
		lanes.OpEQ32, lanes.OpNE32, lanes.OpLTS32, lanes.OpLES32, 0, 0, lanes.OpLTU32, lanes.OpLEU32, 0, 0,
		lanes.OpFEQ32, lanes.OpFNE32, lanes.OpFLT32, lanes.OpFLE32, lanes.OpFGT32, lanes.OpFGE32,
		lanes.OpFEQU32, lanes.OpFNEU32, lanes.OpFLTU32, lanes.OpFLEU32, lanes.OpFGTU32, lanes.OpFGEU32, lanes.OpFNum32, lanes.OpFNaN32}
	cmp32S = [...]lanes.Code{
		lanes.OpEQ32S, lanes.OpNE32S, lanes.OpLTS32S, lanes.OpLES32S, lanes.OpGTS32S, lanes.OpGES32S, lanes.OpLTU32S, lanes.OpLEU32S, lanes.OpGTU32S, lanes.OpGEU32S,
		lanes.OpFEQ32S, lanes.OpFNE32S, lanes.OpFLT32S, lanes.OpFLE32S, lanes.OpFGT32S, lanes.OpFGE32S,
		lanes.OpFEQU32S, lanes.OpFNEU32S, lanes.OpFLTU32S, lanes.OpFLEU32S, lanes.OpFGTU32S, lanes.OpFGEU32S, lanes.OpFNum32S, lanes.OpFNaN32S}
	cmp64 = [...]lanes.Code{
		lanes.OpEQ64, lanes.OpNE64, lanes.OpLTS64, lanes.OpLES64, 0, 0, lanes.OpLTU64, lanes.OpLEU64, 0, 0,
		lanes.OpFEQ64, lanes.OpFNE64, lanes.OpFLT64, lanes.OpFLE64, lanes.OpFGT64, lanes.OpFGE64,
		lanes.OpFEQU64, lanes.OpFNEU64, lanes.OpFLTU64, lanes.OpFLEU64, lanes.OpFGTU64, lanes.OpFGEU64, lanes.OpFNum64, lanes.OpFNaN64}
	cmp64S = [...]lanes.Code{
		lanes.OpEQ64S, lanes.OpNE64S, lanes.OpLTS64S, lanes.OpLES64S, lanes.OpGTS64S, lanes.OpGES64S, lanes.OpLTU64S, lanes.OpLEU64S, lanes.OpGTU64S, lanes.OpGEU64S,
		lanes.OpFEQ64S, lanes.OpFNE64S, lanes.OpFLT64S, lanes.OpFLE64S, lanes.OpFGT64S, lanes.OpFGE64S,
		lanes.OpFEQU64S, lanes.OpFNEU64S, lanes.OpFLTU64S, lanes.OpFLEU64S, lanes.OpFGTU64S, lanes.OpFGEU64S, lanes.OpFNum64S, lanes.OpFNaN64S}
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

// The indices of the two-operand operations of 64 bits, after those up to fXor.
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

var nativePred = map[opt.Op]Opcode{opt.And: OpAnd1, opt.Or: OpOr1, opt.Xor: OpXor1, opt.Not: OpNot1}

var nativeScalar = map[opt.Op]Opcode{opt.Add: OpSAdd, opt.Sub: OpSSub, opt.Mul: OpSMul, opt.And: OpSAnd, opt.Or: OpSOr, opt.Xor: OpSXor, opt.Not: OpSNot,
	opt.Shl: OpSShl, opt.ShrU: OpSShrU, opt.ShrS: OpSShrS, opt.MulU: OpSMulU, opt.MulS: OpSMulS, opt.SExt: OpSSExt, opt.ZExt: OpSZExt, opt.Copy: OpSCopy,
	opt.Sel: OpSSel, opt.Cmp: OpSCmp}

// usual reports whether an operation has the widths that the method scalar supports.
func (b *compiler) usual(in *opt.Instr) bool {
	w := b.f.Width(in.Result())
	switch in.Op {
	case opt.Add, opt.Sub, opt.Mul:
		return w != opt.W1 && b.widths(w, in.Args...)
	case opt.Shl, opt.ShrU, opt.ShrS:
		return w != opt.W1 && b.f.Width(in.Args[0]) == w
	case opt.And, opt.Or, opt.Xor, opt.Not:
		return b.widths(w, in.Args...)
	case opt.MulU, opt.MulS:
		return w == opt.W64 && b.widths(opt.W32, in.Args...)
	case opt.Cmp:
		return in.Aux == 32 && b.widths(opt.W32, in.Args...) || in.Aux == 64 && b.widths(opt.W64, in.Args...)
	case opt.SExt, opt.ZExt:
		return in.Imm > 0 && in.Imm <= 64
	}
	return true
}

// scalar emits a native operation whose result is a scalar.
func (b *compiler) scalar(in *opt.Instr) {
	w := b.f.Width(in.Result())
	i := Instr{Op: nativeScalar[in.Op], D: b.reg[in.Result()], Imm: w.Mask()}
	regs := [3]int32{}
	line := false
	for k, a := range in.Args {
		regs[k] = b.reg[a]
		line = line || b.slope[a] != Slope{}
	}
	i.A, i.B, i.C = regs[0], regs[1], regs[2]
	switch in.Op {
	case opt.Shl, opt.ShrU, opt.ShrS:
		i.Fn = uint16(w.Bits())
	case opt.SExt, opt.ZExt:
		i.Fn = uint16(in.Imm)
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
		i.C, i.A, i.B = regs[0], regs[1], regs[2]
	case opt.Cmp:
		i.Fn, i.Imm = uint16(in.Imm), uint64(in.Aux)
	}
	b.add(i)
}

// widenLine emits an extension, or a multiplication by a constant, of a value that differs by lane and may wrap between
// lanes.
func (b *compiler) widenLine(in *opt.Instr, factor uint64) {
	kind := widenU
	if in.Op == opt.SExt || in.Op == opt.MulS {
		kind = WidenS
	}
	a := in.Args[0]
	i := Instr{Op: OpSWiden, Fn: kind, D: b.reg[in.Result()], A: b.reg[a], B: ^b.line(b.reg[a], b.slope[a]), Imm: factor}
	if f := b.fastWiden(&i); f != nil {
		b.fuse(i, f)
		return
	}
	b.add(i)
}

// vector emits a native operation on vectors or predicates. It returns false if package lanes has no operation for it.
func (b *compiler) vector(in *opt.Instr) bool {
	d := in.Result()
	switch w := b.f.Width(d); {
	case in.Op == opt.Cmp:
		return b.compare(in)
	case w == opt.W1:
		return b.predicate(in)
	case in.Op == opt.Sel:
		op := OpSel32
		if w == opt.W64 {
			op = OpSel64
		}
		b.add(Instr{Op: op, D: b.reg[d], C: b.pred(in.Args[0]), A: b.vec(in.Args[1]), B: b.vec(in.Args[2])})
		return true
	case in.Op == opt.Copy:
		op := OpCopy32
		if w == opt.W64 {
			op = OpCopy64
		}
		b.add(Instr{Op: op, D: b.reg[d], A: b.vec(in.Args[0])})
		return true
	case in.Op == opt.SExt || in.Op == opt.ZExt:
		return b.extend(in, w)
	case in.Op == opt.MulU || in.Op == opt.MulS:
		fn := uint16(0)
		if in.Op == opt.MulS {
			fn = 1
		}
		x, y := b.sides(in.Args[0], in.Args[1])
		b.two(OpMul64, OpMul64S, fn, d, x, y)
		return true
	case in.Op == opt.Not:
		op := OpUn32
		if w == opt.W64 {
			op = OpUn64
		}
		b.add(Instr{Op: op, D: b.reg[d], A: b.vec(in.Args[0])})
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

// two emits an operation of two sources, in the form with a scalar if the second source is uniform.
func (b *compiler) two(op, OpS Opcode, fn uint16, d, x, y opt.Value) {
	if b.uniform(y) {
		b.add(Instr{Op: OpS, Fn: fn, D: b.reg[d], A: b.vec(x), B: b.reg[y]})
		return
	}
	b.add(Instr{Op: op, Fn: fn, D: b.reg[d], A: b.vec(x), B: b.vec(y)})
}

// arithmetic emits the operations that exist for each width.
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
			b.two(OpShift64, OpShift64S, fn-fShl, d, x, y)
		} else {
			b.two(OpBin32, OpBin32S, fn, d, x, y)
		}
		return true
	}
	if b.f.Width(x) != w || b.f.Width(y) != w {
		return false
	}
	op, OpS, reversed := OpBin32, OpBin32S, fRSub
	if w == opt.W64 {
		op, OpS, reversed = OpBin64, OpBin64S, fRSub64
	}
	switch {
	case fn != fSub:
		x, y = b.sides(x, y)
	case b.uniform(x):
		b.add(Instr{Op: OpS, Fn: reversed, D: b.reg[d], A: b.vec(y), B: b.reg[x]})
		return true
	}
	b.two(op, OpS, fn, d, x, y)
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
		b.add(Instr{Op: nativePred[in.Op], D: d, A: b.pred(in.Args[0]), B: b.pred(in.Args[1])})
	case opt.Not:
		b.add(Instr{Op: OpNot1, D: d, A: b.pred(in.Args[0])})
	case opt.Copy:
		b.add(Instr{Op: OpCopy1, D: d, A: b.pred(in.Args[0])})
	case opt.Sel:
		b.add(Instr{Op: OpSel1, D: d, C: b.pred(in.Args[0]), A: b.pred(in.Args[1]), B: b.pred(in.Args[2])})
	case opt.ZExt, opt.SExt:
		if in.Imm == 0 {
			return false
		}
		switch a := in.Args[0]; b.f.Width(a) {
		case opt.W1:
			b.add(Instr{Op: OpCopy1, D: d, A: b.pred(a)})
		case opt.W32:
			b.add(Instr{Op: OpTo1, D: d, A: b.vec(a)})
		default:
			b.add(Instr{Op: OpTo1W, D: d, A: b.vec(a)})
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
	op, OpS := OpCmp32, OpCmp32S
	if in.Aux == 64 {
		w, op, OpS = opt.W64, OpCmp64, OpCmp64S
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
	b.two(op, OpS, uint16(c), in.Result(), x, y)
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
		op := OpFrom1
		if w == opt.W64 {
			op = OpFrom1W
		}
		b.add(Instr{Op: op, D: d, A: b.pred(a), Imm: ones})
	case w == opt.W32 && from == opt.W32:
		b.add(Instr{Op: OpBits32, Fn: fn, D: d, A: b.vec(a), Imm: n})
	case w == opt.W32:
		b.add(Instr{Op: OpNarrow, D: d, A: b.vec(a)})
		if n < 32 {
			b.add(Instr{Op: OpBits32, Fn: fn, D: d, A: d, Imm: n})
		}
	case from == opt.W64:
		b.add(Instr{Op: OpBits64, Fn: fn, D: d, A: b.vec(a), Imm: n})
	default:
		if n > 32 {
			fn, n = 1, 32 // the bits above a 32-bit value are zero
		}
		b.add(Instr{Op: OpWiden, Fn: fn, D: d, A: b.vec(a)})
		if n < 32 {
			b.add(Instr{Op: OpBits64, Fn: fn, D: d, A: d, Imm: n})
		}
	}
	return true
}
