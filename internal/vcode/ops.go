package vcode

import (
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// spares is the number of spare registers at the end of each file. One per operand holds a scalar spread to a vector,
// and one breaks the cycles of an edge's moves.
const spares = 4

// opsOf turns an instruction that only computes into operations of package lanes.
func (b *compiler) opsOf(i *Instr) []lanes.Op {
	var out []lanes.Op
	// v32, v64 and pred make operand k a register.
	v32 := func(o int32, k int) int32 { return b.spread32(&out, o, k) }
	v64 := func(o int32, k int) int32 { return b.spread64(&out, o, k) }
	pred := func(o int32, k int) int32 {
		if o >= 0 {
			return o
		}
		to := int32(b.t.Preds - spares + 1 + k)
		out = append(out, lanes.Make(lanes.OpPredSet, 0, to, ^o))
		return to
	}
	with := func(c lanes.Code, imm uint64, sources ...int32) {
		out = append(out, lanes.Make(c, imm, i.D, sources...))
	}
	do := func(c lanes.Code, sources ...int32) { with(c, 0, sources...) }
	switch i.Op {
	case OpBin32:
		x, y := v32(i.A, 0), v32(i.B, 1)
		do(bin32[i.Fn], x, y)
	case OpBin32S:
		do(bin32S[i.Fn], v32(i.A, 0), i.B)
	case OpUn32:
		do(un32[i.Fn], v32(i.A, 0))
	case OpTer32:
		x, y, z := v32(i.A, 0), v32(i.B, 1), v32(i.C, 2)
		do(ter32[i.Fn], x, y, z)
	case OpTer32S:
		x, y := v32(i.A, 0), v32(i.B, 1)
		do(ter32S[i.Fn], x, y, i.C)
	case OpTer32SB:
		x, z := v32(i.A, 0), v32(i.C, 2)
		do(ter32SB[i.Fn], x, i.B, z)
	case OpBin64:
		x, y := v64(i.A, 0), v64(i.B, 1)
		do(bin64[i.Fn], x, y)
	case OpBin64S:
		do(bin64S[i.Fn], v64(i.A, 0), i.B)
	case OpUn64:
		do(un64[i.Fn], v64(i.A, 0))
	case OpTer64:
		x, y, z := v64(i.A, 0), v64(i.B, 1), v64(i.C, 2)
		do(ter64[i.Fn], x, y, z)
	case OpTer64S:
		x, y := v64(i.A, 0), v64(i.B, 1)
		do(ter64S[i.Fn], x, y, i.C)
	case OpTer64SB:
		x, z := v64(i.A, 0), v64(i.C, 2)
		do(ter64SB[i.Fn], x, i.B, z)
	case OpShift64:
		x, y := v64(i.A, 0), v32(i.B, 1)
		do(shift64[i.Fn], x, y)
	case OpShift64S:
		do(shiftS[i.Fn], v64(i.A, 0), i.B)
	case OpWiden:
		do(widen[i.Fn], v32(i.A, 0))
	case OpNarrow:
		do(narrow[i.Fn], v64(i.A, 0))
	case OpMul64:
		x, y := v32(i.A, 0), v32(i.B, 1)
		do(mul64[i.Fn], x, y)
	case OpMul64S:
		do(mul64S[i.Fn], v32(i.A, 0), i.B)
	case OpBits32:
		with(bits32[i.Fn], i.Imm, v32(i.A, 0))
	case OpBits64:
		with(bits64[i.Fn], i.Imm, v64(i.A, 0))
	case OpImm32:
		x, y := v32(i.A, 0), v32(i.B, 1)
		with(imm32[i.Fn], i.Imm, x, y)
	case OpImm32T:
		x, y, z := v32(i.A, 0), v32(i.B, 1), v32(i.C, 2)
		with(imm32T[i.Fn], i.Imm, x, y, z)
	case OpCmp32:
		x, y := v32(i.A, 0), v32(i.B, 1)
		do(cmp32[i.Fn], x, y)
	case OpCmp32S:
		do(cmp32S[i.Fn], v32(i.A, 0), i.B)
	case OpCmp64:
		x, y := v64(i.A, 0), v64(i.B, 1)
		do(cmp64[i.Fn], x, y)
	case OpCmp64S:
		do(cmp64S[i.Fn], v64(i.A, 0), i.B)
	case OpSel32:
		x, y, c := v32(i.A, 0), v32(i.B, 1), pred(i.C, 2)
		do(lanes.OpSel32, x, y, c)
	case OpSel64:
		x, y, c := v64(i.A, 0), v64(i.B, 1), pred(i.C, 2)
		do(lanes.OpSel64, x, y, c)
	case OpFrom1:
		with(lanes.OpBool32, i.Imm, pred(i.A, 0))
	case OpFrom1W:
		with(lanes.OpBool64, i.Imm, pred(i.A, 0))
	case OpTo1:
		do(lanes.OpOdd32, v32(i.A, 0))
	case OpTo1W:
		do(lanes.OpOdd64, v64(i.A, 0))
	case OpPack:
		x, y := v32(i.A, 0), v32(i.B, 1)
		do(lanes.OpPack64, x, y)
	case OpCopy32:
		b.spreadTo(&out, i.D, i.A, lanes.OpCopy32, lanes.OpSet32, lanes.OpAffine32)
	case OpCopy64:
		b.spreadTo(&out, i.D, i.A, lanes.OpCopy64, lanes.OpSet64, lanes.OpAffine64)
	case OpCopy1:
		if i.A < 0 {
			do(lanes.OpPredSet, ^i.A)
		} else {
			do(lanes.OpPredCopy, i.A)
		}
	case OpAnd1, OpOr1, OpXor1:
		x, y := pred(i.A, 0), pred(i.B, 1)
		do(map[Opcode]lanes.Code{OpAnd1: lanes.OpPredAnd, OpOr1: lanes.OpPredOr, OpXor1: lanes.OpPredXor}[i.Op], x, y)
	case OpNot1:
		do(lanes.OpPredNot, pred(i.A, 0))
	case OpSel1:
		x, y, c := pred(i.A, 0), pred(i.B, 1), pred(i.C, 2)
		do(lanes.OpPredSel, x, y, c)
	default:
		out = b.scalarOps(out, i)
	}
	return out
}

// spread32 makes vector operand k a register, spreading a scalar first.
func (b *compiler) spread32(out *[]lanes.Op, o int32, k int) int32 {
	if o >= 0 {
		return o
	}
	to := int32(b.t.V32 - spares + 1 + k)
	b.spreadTo(out, to, o, lanes.OpCopy32, lanes.OpSet32, lanes.OpAffine32)
	return to
}

// spread64 is spread32 for 64 bits.
func (b *compiler) spread64(out *[]lanes.Op, o int32, k int) int32 {
	if o >= 0 {
		return o
	}
	to := int32(b.t.V64 - spares + 1 + k)
	b.spreadTo(out, to, o, lanes.OpCopy64, lanes.OpSet64, lanes.OpAffine64)
	return to
}

// spreadTo copies a vector operand to a register.
func (b *compiler) spreadTo(out *[]lanes.Op, d, a int32, copying, set, affine lanes.Code) {
	if a >= 0 {
		*out = append(*out, lanes.Make(copying, 0, d, a))
		return
	}
	switch l := b.t.Lines[^a]; {
	case l.Pattern >= 0 && set == lanes.OpSet32:
		*out = append(*out, lanes.Make(lanes.OpAdd32S, 0, d, b.pattern32(l.Pattern), l.Reg))
	case l.Pattern >= 0:
		*out = append(*out, lanes.Make(lanes.OpAdd64S, 0, d, b.pattern64(l.Pattern), l.Reg))
	case l.Stride == 0:
		*out = append(*out, lanes.Make(set, 0, d, l.Reg))
	default:
		*out = append(*out, lanes.Make(affine, l.Stride, d, l.Reg))
	}
}

// scalarOps is opsOf for scalars.
func (b *compiler) scalarOps(out []lanes.Op, i *Instr) []lanes.Op {
	with := func(c lanes.Code, imm uint64, sources ...int32) {
		out = append(out, lanes.Make(c, imm, i.D, sources...))
	}
	do := func(c lanes.Code, sources ...int32) { with(c, 0, sources...) }
	mask := ^uint64(0) >> (64 - i.Fn&127)
	wide := i.Fn == 64
	pick := func(narrow, long lanes.Code) lanes.Code {
		if wide {
			return long
		}
		return narrow
	}
	switch i.Op {
	case OpSAdd:
		with(lanes.OpScalarAdd, i.Imm, i.A, i.B)
	case OpSSub:
		with(lanes.OpScalarSub, i.Imm, i.A, i.B)
	case OpSMul:
		with(lanes.OpScalarMul, i.Imm, i.A, i.B)
	case OpSAnd:
		do(lanes.OpScalarAnd, i.A, i.B)
	case OpSOr:
		do(lanes.OpScalarOr, i.A, i.B)
	case OpSXor:
		do(lanes.OpScalarXor, i.A, i.B)
	case OpSNot:
		with(lanes.OpScalarNot, i.Imm, i.A)
	case OpSShl:
		do(pick(lanes.OpScalarShl32, lanes.OpScalarShl64), i.A, i.B)
	case OpSShrU:
		do(pick(lanes.OpScalarShrU32, lanes.OpScalarShrU64), i.A, i.B)
	case OpSShrS:
		do(pick(lanes.OpScalarShrS32, lanes.OpScalarShrS64), i.A, i.B)
	case OpSMulU:
		do(lanes.OpScalarMulU, i.A, i.B)
	case OpSMulS:
		do(lanes.OpScalarMulS, i.A, i.B)
	case OpSZExt:
		with(lanes.OpScalarMask, mask&i.Imm, i.A)
	case OpSSExt:
		with(lanes.OpScalarSExt, 64-uint64(i.Fn), i.A)
		if i.Imm != ^uint64(0) {
			with(lanes.OpScalarMask, i.Imm, i.D)
		}
	case OpSCopy:
		do(lanes.OpScalarCopy, i.A)
	case OpSSel:
		do(lanes.OpScalarSel, i.A, i.B, i.C)
	case OpSCmp:
		code := scalarCmp[i.Fn]
		if i.Imm == 64 {
			code = scalarCmp64[i.Fn]
		}
		do(code, i.A, i.B)
	default:
		panic("BUG: an operation that nobody computes")
	}
	return out
}

var (
	scalarCmp = [...]lanes.Code{opt.EQ: lanes.OpScalarEQ32, opt.NE: lanes.OpScalarNE32, opt.LTS: lanes.OpScalarLTS32, opt.LES: lanes.OpScalarLES32,
		opt.GTS: lanes.OpScalarGTS32, opt.GES: lanes.OpScalarGES32, opt.LTU: lanes.OpScalarLTU32, opt.LEU: lanes.OpScalarLEU32,
		opt.GTU: lanes.OpScalarGTU32, opt.GEU: lanes.OpScalarGEU32}
	scalarCmp64 = [...]lanes.Code{opt.EQ: lanes.OpScalarEQ64, opt.NE: lanes.OpScalarNE64, opt.LTS: lanes.OpScalarLTS64, opt.LES: lanes.OpScalarLES64,
		opt.GTS: lanes.OpScalarGTS64, opt.GES: lanes.OpScalarGES64, opt.LTU: lanes.OpScalarLTU64, opt.LEU: lanes.OpScalarLEU64,
		opt.GTU: lanes.OpScalarGTU64, opt.GEU: lanes.OpScalarGEU64}
)

// moveOps turns the moves of an edge into operations.
func (b *compiler) moveOps(moves []move) []lanes.Op {
	var out []lanes.Op
	for _, m := range moves {
		switch m.file {
		case scalars:
			out = append(out, lanes.Make(lanes.OpScalarCopy, 0, m.dst, m.src))
		case vectors32:
			b.spreadTo(&out, m.dst, m.src, lanes.OpCopy32, lanes.OpSet32, lanes.OpAffine32)
		case vectors64:
			b.spreadTo(&out, m.dst, m.src, lanes.OpCopy64, lanes.OpSet64, lanes.OpAffine64)
		default:
			if m.src < 0 {
				out = append(out, lanes.Make(lanes.OpPredSet, 0, m.dst, ^m.src))
			} else {
				out = append(out, lanes.Make(lanes.OpPredCopy, 0, m.dst, m.src))
			}
		}
	}
	return out
}

// append adds to the code an instruction that stands for n instructions of the internal form.
func (b *compiler) append(i Instr, n int32) {
	t := b.t
	t.Code = append(t.Code, i)
	t.Meet = append(t.Meet, -1)
	if len(t.Counts) == 0 {
		t.Counts = append(t.Counts, 0)
	}
	t.Counts = append(t.Counts, t.Counts[len(t.Counts)-1]+n)
}
