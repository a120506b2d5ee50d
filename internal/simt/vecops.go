package simt

import (
	"fencepost.dev/fencepost/internal/lanes"
	"fencepost.dev/fencepost/internal/opt"
)

// spares are the registers at the end of each file for scalars spread to vectors, by operand, and one for the cycles of
// an edge's moves.
const spares = 4

// opsOf turns an instruction that only computes into operations of package lanes.
func (b *compiler) opsOf(i *ins) []lanes.Op {
	var out []lanes.Op
	// v32, v64 and pred make operand k a register.
	v32 := func(o int32, k int) int32 { return b.spread32(&out, o, k) }
	v64 := func(o int32, k int) int32 { return b.spread64(&out, o, k) }
	pred := func(o int32, k int) int32 {
		if o >= 0 {
			return o
		}
		to := int32(b.t.preds - spares + 1 + k)
		out = append(out, lanes.Make(lanes.OpPredSet, 0, to, ^o))
		return to
	}
	with := func(c lanes.Code, imm uint64, sources ...int32) {
		out = append(out, lanes.Make(c, imm, i.d, sources...))
	}
	do := func(c lanes.Code, sources ...int32) { with(c, 0, sources...) }
	switch i.op {
	case opBin32:
		x, y := v32(i.a, 0), v32(i.b, 1)
		do(bin32[i.fn], x, y)
	case opBin32S:
		do(bin32S[i.fn], v32(i.a, 0), i.b)
	case opUn32:
		do(un32[i.fn], v32(i.a, 0))
	case opTer32:
		x, y, z := v32(i.a, 0), v32(i.b, 1), v32(i.c, 2)
		do(ter32[i.fn], x, y, z)
	case opTer32S:
		x, y := v32(i.a, 0), v32(i.b, 1)
		do(ter32S[i.fn], x, y, i.c)
	case opTer32SB:
		x, z := v32(i.a, 0), v32(i.c, 2)
		do(ter32SB[i.fn], x, i.b, z)
	case opBin64:
		x, y := v64(i.a, 0), v64(i.b, 1)
		do(bin64[i.fn], x, y)
	case opBin64S:
		do(bin64S[i.fn], v64(i.a, 0), i.b)
	case opUn64:
		do(un64[i.fn], v64(i.a, 0))
	case opTer64:
		x, y, z := v64(i.a, 0), v64(i.b, 1), v64(i.c, 2)
		do(ter64[i.fn], x, y, z)
	case opTer64S:
		x, y := v64(i.a, 0), v64(i.b, 1)
		do(ter64S[i.fn], x, y, i.c)
	case opTer64SB:
		x, z := v64(i.a, 0), v64(i.c, 2)
		do(ter64SB[i.fn], x, i.b, z)
	case opShift64:
		x, y := v64(i.a, 0), v32(i.b, 1)
		do(shift64[i.fn], x, y)
	case opShift64S:
		do(shiftS[i.fn], v64(i.a, 0), i.b)
	case opWiden:
		do(widen[i.fn], v32(i.a, 0))
	case opNarrow:
		do(narrow[i.fn], v64(i.a, 0))
	case opMul64:
		x, y := v32(i.a, 0), v32(i.b, 1)
		do(mul64[i.fn], x, y)
	case opMul64S:
		do(mul64S[i.fn], v32(i.a, 0), i.b)
	case opBits32:
		with(bits32[i.fn], i.imm, v32(i.a, 0))
	case opBits64:
		with(bits64[i.fn], i.imm, v64(i.a, 0))
	case opImm32:
		x, y := v32(i.a, 0), v32(i.b, 1)
		with(imm32[i.fn], i.imm, x, y)
	case opImm32T:
		x, y, z := v32(i.a, 0), v32(i.b, 1), v32(i.c, 2)
		with(imm32T[i.fn], i.imm, x, y, z)
	case opCmp32:
		x, y := v32(i.a, 0), v32(i.b, 1)
		do(cmp32[i.fn], x, y)
	case opCmp32S:
		do(cmp32S[i.fn], v32(i.a, 0), i.b)
	case opCmp64:
		x, y := v64(i.a, 0), v64(i.b, 1)
		do(cmp64[i.fn], x, y)
	case opCmp64S:
		do(cmp64S[i.fn], v64(i.a, 0), i.b)
	case opSel32:
		x, y, c := v32(i.a, 0), v32(i.b, 1), pred(i.c, 2)
		do(lanes.OpSel32, x, y, c)
	case opSel64:
		x, y, c := v64(i.a, 0), v64(i.b, 1), pred(i.c, 2)
		do(lanes.OpSel64, x, y, c)
	case opFrom1:
		with(lanes.OpBool32, i.imm, pred(i.a, 0))
	case opFrom1W:
		with(lanes.OpBool64, i.imm, pred(i.a, 0))
	case opTo1:
		do(lanes.OpOdd32, v32(i.a, 0))
	case opTo1W:
		do(lanes.OpOdd64, v64(i.a, 0))
	case opPack:
		x, y := v32(i.a, 0), v32(i.b, 1)
		do(lanes.OpPack64, x, y)
	case opCopy32:
		b.spreadTo(&out, i.d, i.a, lanes.OpCopy32, lanes.OpSet32, lanes.OpAffine32)
	case opCopy64:
		b.spreadTo(&out, i.d, i.a, lanes.OpCopy64, lanes.OpSet64, lanes.OpAffine64)
	case opCopy1:
		if i.a < 0 {
			do(lanes.OpPredSet, ^i.a)
		} else {
			do(lanes.OpPredCopy, i.a)
		}
	case opAnd1, opOr1, opXor1:
		x, y := pred(i.a, 0), pred(i.b, 1)
		do(map[opcode]lanes.Code{opAnd1: lanes.OpPredAnd, opOr1: lanes.OpPredOr, opXor1: lanes.OpPredXor}[i.op], x, y)
	case opNot1:
		do(lanes.OpPredNot, pred(i.a, 0))
	case opSel1:
		x, y, c := pred(i.a, 0), pred(i.b, 1), pred(i.c, 2)
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
	to := int32(b.t.v32 - spares + 1 + k)
	b.spreadTo(out, to, o, lanes.OpCopy32, lanes.OpSet32, lanes.OpAffine32)
	return to
}

// spread64 is spread32 for 64 bits.
func (b *compiler) spread64(out *[]lanes.Op, o int32, k int) int32 {
	if o >= 0 {
		return o
	}
	to := int32(b.t.v64 - spares + 1 + k)
	b.spreadTo(out, to, o, lanes.OpCopy64, lanes.OpSet64, lanes.OpAffine64)
	return to
}

// spreadTo copies a vector operand to a register.
func (b *compiler) spreadTo(out *[]lanes.Op, d, a int32, copying, set, affine lanes.Code) {
	if a >= 0 {
		*out = append(*out, lanes.Make(copying, 0, d, a))
		return
	}
	switch l := b.t.lines[^a]; {
	case l.pattern >= 0 && set == lanes.OpSet32:
		*out = append(*out, lanes.Make(lanes.OpAdd32S, 0, d, b.pattern32(l.pattern), l.reg))
	case l.pattern >= 0:
		*out = append(*out, lanes.Make(lanes.OpAdd64S, 0, d, b.pattern64(l.pattern), l.reg))
	case l.stride == 0:
		*out = append(*out, lanes.Make(set, 0, d, l.reg))
	default:
		*out = append(*out, lanes.Make(affine, l.stride, d, l.reg))
	}
}

// scalarOps is opsOf for scalars.
func (b *compiler) scalarOps(out []lanes.Op, i *ins) []lanes.Op {
	with := func(c lanes.Code, imm uint64, sources ...int32) {
		out = append(out, lanes.Make(c, imm, i.d, sources...))
	}
	do := func(c lanes.Code, sources ...int32) { with(c, 0, sources...) }
	mask := ^uint64(0) >> (64 - i.fn&127)
	wide := i.fn == 64
	pick := func(narrow, long lanes.Code) lanes.Code {
		if wide {
			return long
		}
		return narrow
	}
	switch i.op {
	case opSAdd:
		with(lanes.OpScalarAdd, i.imm, i.a, i.b)
	case opSSub:
		with(lanes.OpScalarSub, i.imm, i.a, i.b)
	case opSMul:
		with(lanes.OpScalarMul, i.imm, i.a, i.b)
	case opSAnd:
		do(lanes.OpScalarAnd, i.a, i.b)
	case opSOr:
		do(lanes.OpScalarOr, i.a, i.b)
	case opSXor:
		do(lanes.OpScalarXor, i.a, i.b)
	case opSNot:
		with(lanes.OpScalarNot, i.imm, i.a)
	case opSShl:
		do(pick(lanes.OpScalarShl32, lanes.OpScalarShl64), i.a, i.b)
	case opSShrU:
		do(pick(lanes.OpScalarShrU32, lanes.OpScalarShrU64), i.a, i.b)
	case opSShrS:
		do(pick(lanes.OpScalarShrS32, lanes.OpScalarShrS64), i.a, i.b)
	case opSMulU:
		do(lanes.OpScalarMulU, i.a, i.b)
	case opSMulS:
		do(lanes.OpScalarMulS, i.a, i.b)
	case opSZExt:
		with(lanes.OpScalarMask, mask&i.imm, i.a)
	case opSSExt:
		with(lanes.OpScalarSExt, 64-uint64(i.fn), i.a)
		if i.imm != ^uint64(0) {
			with(lanes.OpScalarMask, i.imm, i.d)
		}
	case opSCopy:
		do(lanes.OpScalarCopy, i.a)
	case opSSel:
		do(lanes.OpScalarSel, i.a, i.b, i.c)
	case opSCmp:
		code := scalarCmp[i.fn]
		if i.imm == 64 {
			code = scalarCmp64[i.fn]
		}
		do(code, i.a, i.b)
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

// append puts an instruction into the code that stands for n of them.
func (b *compiler) append(i ins, n int32) {
	t := b.t
	t.code = append(t.code, i)
	t.meet = append(t.meet, -1)
	if len(t.counts) == 0 {
		t.counts = append(t.counts, 0)
	}
	t.counts = append(t.counts, t.counts[len(t.counts)-1]+n)
}
