package lanes

import (
	"fencepost.dev/fencepost/internal/codegen/amd64"
)

var bitsAnd, bitsOr, bitsXor = amd64.VPAND, amd64.VPOR, amd64.VPXOR

// andNot sets d = b &^ not.
func (t *translator) andNot(all bool, d, not, b vec) { t.V3(amd64.VPANDN, all, d, not, b) }

func (t *translator) copyVector(all bool, d, s vec) { t.V2(amd64.VMOVDQU, all, d, s) }

func broadcast(w int) amd64.VOp { return pick(w, amd64.VPBROADCASTD, amd64.VPBROADCASTQ) }
func equal(w int) amd64.VOp     { return pick(w, amd64.VPCMPEQD, amd64.VPCMPEQQ) }

// pick returns the instruction for lanes of w bits.
func pick(w int, narrow, wide vop) vop {
	if w == 64 {
		return wide
	}
	return narrow
}

// withNumber writes an instruction with a source and a number.
func withNumber(w int, op vop, v uint64) func(t *translator, o *Op) {
	return func(t *translator, o *Op) {
		a, n := t.arg(0), t.num(w, v)
		t.V3(op, t.all(w), t.out(o), a, n)
	}
}

func init() {
	integerCode()
	shiftCode()
	compareCode()
	moveCode()
	widthCode()
	floatCode()
	roundCode()
	bitsCode()
	doubleCode()
}

func integerCode() {
	do(twoSources(32, amd64.VPADDD), OpAdd32, OpAdd32S)
	do(twoSources(64, amd64.VPADDQ), OpAdd64, OpAdd64S)
	do(twoSources(32, amd64.VPSUBD), OpSub32, OpSub32S)
	do(twoSources(64, amd64.VPSUBQ), OpSub64, OpSub64S)
	do(reversed(32, amd64.VPSUBD), OpRSub32S)
	do(reversed(64, amd64.VPSUBQ), OpRSub64S)
	do(twoSources(32, amd64.VPMULLD), OpMul32, OpMul32S)
	do(twoSources(32, amd64.VPAND), OpAnd32, OpAnd32S)
	do(twoSources(64, amd64.VPAND), OpAnd64, OpAnd64S)
	do(twoSources(32, amd64.VPOR), OpOr32, OpOr32S)
	do(twoSources(64, amd64.VPOR), OpOr64, OpOr64S)
	do(twoSources(32, amd64.VPXOR), OpXor32, OpXor32S)
	do(twoSources(64, amd64.VPXOR), OpXor64, OpXor64S)
	do(withNumber(32, amd64.VPXOR, 1<<32-1), OpNot32)
	do(withNumber(64, amd64.VPXOR, 1<<64-1), OpNot64)
	do(twoSources(32, amd64.VPMINSD), OpMinS32, OpMinS32S)
	do(twoSources(32, amd64.VPMINUD), OpMinU32, OpMinU32S)
	do(twoSources(32, amd64.VPMAXSD), OpMaxS32, OpMaxS32S)
	do(twoSources(32, amd64.VPMAXUD), OpMaxU32, OpMaxU32S)
	do(oneSource(32, amd64.VPABSD), OpAbsS32)
	do(func(t *translator, o *Op) {
		a, b, c := t.arg(0), t.arg(1), t.arg(2)
		d := t.out(o)
		t.V3(amd64.VPMULLD, t.all(32), d, a, b)
		t.V3(amd64.VPADDD, t.all(32), d, d, c)
	}, OpMad32, OpMad32S, OpMad32SB)
	do(func(t *translator, o *Op) {
		a, b := t.arg(0), t.arg(1)
		t.multiply64(t.out(o), a, b)
	}, OpMul64, OpMul64S)
	do(func(t *translator, o *Op) {
		a, b, c := t.arg(0), t.arg(1), t.arg(2)
		d := t.out(o)
		t.multiply64(d, a, b)
		t.V3(amd64.VPADDQ, true, d, d, c)
	}, OpMad64, OpMad64S, OpMad64SB)
	do((*translator).lop3, OpLop3)
}

// multiply64 multiplies lanes of 64 bits; d is none of the sources.
func (t *translator) multiply64(d, a, b amd64.Vec) {
	x := t.take()
	t.VShiftI(amd64.VPSRLQI, true, x, a, 32)
	t.V3(amd64.VPMULUDQ, true, x, x, b)
	t.VShiftI(amd64.VPSRLQI, true, d, b, 32)
	t.V3(amd64.VPMULUDQ, true, d, d, a)
	t.V3(amd64.VPADDQ, true, x, x, d)
	t.VShiftI(amd64.VPSLLQI, true, x, x, 32)
	t.V3(amd64.VPMULUDQ, true, d, a, b)
	t.V3(amd64.VPADDQ, true, d, d, x)
}

func shiftCode() {
	do(twoSources(32, amd64.VPSLLVD), OpShl32)
	do(twoSources(32, amd64.VPSRLVD), OpShrU32)
	do(twoSources(32, amd64.VPSRAVD), OpShrS32)
	by := func(w int, op amd64.VOp, c Code) {
		do(func(t *translator, o *Op) {
			a, n := t.arg(0), t.have(value{shiftCount, uint64(o.B)})
			t.V3(op, t.all(w), t.out(o), a, n)
		}, c)
	}
	by(32, amd64.VPSLLD, OpShl32S)
	by(32, amd64.VPSRLD, OpShrU32S)
	by(32, amd64.VPSRAD, OpShrS32S)
	by(64, amd64.VPSLLQ, OpShl64S)
	by(64, amd64.VPSRLQ, OpShrU64S)
	funnel := func(c Code, left bool) {
		do(func(t *translator, o *Op) {
			low, high := t.arg(0), t.arg(1)
			n := byte(o.Imm & 31)
			down, up := n, 32-n
			if left {
				down, up = 32-n, n
			}
			d, x := t.out(o), t.take()
			t.VShiftI(amd64.VPSRLDI, t.all(32), x, low, down)
			t.VShiftI(amd64.VPSLLDI, t.all(32), d, high, up)
			t.V3(amd64.VPOR, t.all(32), d, d, x)
		}, c)
	}
	funnel(OpShfL32S, true)
	funnel(OpShfR32S, false)
}

func compareCode() {
	plain := func(w int, op amd64.VOp) func(t *translator, d, a, b amd64.Vec) {
		return func(t *translator, d, a, b amd64.Vec) { t.V3(op, t.all(w), d, a, b) }
	}
	swapped := func(w int, op amd64.VOp) func(t *translator, d, a, b amd64.Vec) {
		return func(t *translator, d, a, b amd64.Vec) { t.V3(op, t.all(w), d, b, a) }
	}
	// extreme computes whether a is the minimum, or the maximum, of a and b.
	extreme := func(op amd64.VOp) func(t *translator, d, a, b amd64.Vec) {
		return func(t *translator, d, a, b amd64.Vec) {
			t.V3(op, t.all(32), d, a, b)
			t.V3(amd64.VPCMPEQD, t.all(32), d, d, a)
		}
	}
	flipped := func(swap bool) func(t *translator, d, a, b amd64.Vec) {
		return func(t *translator, d, a, b amd64.Vec) {
			top, x := t.num(64, 1<<63), t.take()
			t.V3(amd64.VPXOR, true, d, a, top)
			t.V3(amd64.VPXOR, true, x, b, top)
			if swap {
				d, x = x, d
			}
			t.V3(amd64.VPCMPGTQ, true, d, d, x)
			if swap {
				t.V2(amd64.VMOVDQU, true, x, d)
			}
		}
	}
	compare(32, false, plain(32, amd64.VPCMPEQD), OpEQ32, OpEQ32S)
	compare(64, false, plain(64, amd64.VPCMPEQQ), OpEQ64, OpEQ64S)
	compare(32, true, plain(32, amd64.VPCMPEQD), OpNE32, OpNE32S)
	compare(64, true, plain(64, amd64.VPCMPEQQ), OpNE64, OpNE64S)
	compare(32, false, swapped(32, amd64.VPCMPGTD), OpLTS32, OpLTS32S)
	compare(64, false, swapped(64, amd64.VPCMPGTQ), OpLTS64, OpLTS64S)
	compare(32, true, plain(32, amd64.VPCMPGTD), OpLES32, OpLES32S)
	compare(64, true, plain(64, amd64.VPCMPGTQ), OpLES64, OpLES64S)
	compare(32, false, plain(32, amd64.VPCMPGTD), OpGTS32S)
	compare(64, false, plain(64, amd64.VPCMPGTQ), OpGTS64S)
	compare(32, true, swapped(32, amd64.VPCMPGTD), OpGES32S)
	compare(64, true, swapped(64, amd64.VPCMPGTQ), OpGES64S)
	compare(32, false, extreme(amd64.VPMINUD), OpLEU32, OpLEU32S)
	compare(32, true, extreme(amd64.VPMAXUD), OpLTU32, OpLTU32S)
	compare(32, false, extreme(amd64.VPMAXUD), OpGEU32S)
	compare(32, true, extreme(amd64.VPMINUD), OpGTU32S)
	compare(64, false, flipped(true), OpLTU64, OpLTU64S)
	compare(64, true, flipped(false), OpLEU64, OpLEU64S)
	compare(64, false, flipped(false), OpGTU64S)
	compare(64, true, flipped(true), OpGEU64S)
	do(func(t *translator, o *Op) {
		a, d := t.arg(0), t.take()
		t.VShiftI(amd64.VPSLLDI, t.all(32), d, a, 31)
		t.compared(32, d)
	}, OpOdd32)
	do(func(t *translator, o *Op) {
		a, d := t.arg(0), t.take()
		t.VShiftI(amd64.VPSLLQI, true, d, a, 63)
		t.compared(64, d)
	}, OpOdd64)
}

func moveCode() {
	for _, w := range []int{32, 64} {
		by := func(c32, c64 Code) Code {
			if w == 64 {
				return c64
			}
			return c32
		}
		do(func(t *translator, o *Op) {
			a, b, on := t.arg(0), t.arg(1), t.arg(2)
			t.VBlend(t.all(w), t.out(o), b, a, on)
		}, by(OpSel32, OpSel64), by(OpSel32VS, OpSel64VS), by(OpSel32SV, OpSel64SV), by(OpSel32SS, OpSel64SS))
		do(func(t *translator, o *Op) {
			on, v := t.arg(0), t.num(w, o.Imm&(1<<(w-1)<<1-1))
			t.V3(amd64.VPAND, t.all(w), t.out(o), on, v)
		}, by(OpBool32, OpBool64))
		do(oneSource(w, amd64.VMOVDQU), by(OpCopy32, OpCopy64), by(OpSet32, OpSet64))
		do(func(t *translator, o *Op) {
			base := t.arg(0)
			t.addLanes(w, t.out(o), base, o.Imm)
		}, by(OpAffine32, OpAffine64))
	}
}

func widthCode() {
	do(func(t *translator, o *Op) {
		a := t.arg(0)
		t.V2(amd64.VPMOVSXDQ, true, t.out(o), a)
	}, OpSExt64)
	do(func(t *translator, o *Op) {
		a := t.arg(0)
		t.V2(amd64.VPMOVZXDQ, true, t.out(o), a)
	}, OpZExt64)
	half := func(which byte, c Code) {
		do(func(t *translator, o *Op) {
			a := t.arg(0)
			t.narrow(t.out(o), a, which)
		}, c)
	}
	half(lowHalves, OpLow32)
	half(highHalves, OpHigh32)
	do(func(t *translator, o *Op) {
		low, high := t.arg(0), t.arg(1)
		d, x := t.out(o), t.take()
		t.V2(amd64.VPMOVZXDQ, true, x, low)
		t.V2(amd64.VPMOVZXDQ, true, d, high)
		t.VShiftI(amd64.VPSLLQI, true, d, d, 32)
		t.V3(amd64.VPOR, true, d, d, x)
	}, OpPack64)
	product := func(extend, op amd64.VOp, both, scalar Code) {
		do(func(t *translator, o *Op) {
			a, b := t.arg(0), t.arg(1)
			d := t.out(o)
			t.V2(extend, true, d, a)
			if o.Code == scalar { // in the lower half of every lane
				t.V3(op, true, d, d, b)
				return
			}
			x := t.take()
			t.V2(extend, true, x, b)
			t.V3(op, true, d, d, x)
		}, both, scalar)
	}
	product(amd64.VPMOVZXDQ, amd64.VPMULUDQ, OpMulU64, OpMulU64S)
	product(amd64.VPMOVSXDQ, amd64.VPMULDQ, OpMulS64, OpMulS64S)
	do(func(t *translator, o *Op) {
		a, n := t.arg(0), t.num(32, 1<<o.Imm-1)
		t.V3(amd64.VPAND, t.all(32), t.out(o), a, n)
	}, OpZExtBits32)
	do(func(t *translator, o *Op) {
		a, n := t.arg(0), t.num(64, 1<<o.Imm-1)
		t.V3(amd64.VPAND, true, t.out(o), a, n)
	}, OpZExtBits64)
	do(func(t *translator, o *Op) {
		a, d := t.arg(0), t.out(o)
		t.VShiftI(amd64.VPSLLDI, t.all(32), d, a, byte(32-o.Imm))
		t.VShiftI(amd64.VPSRADI, t.all(32), d, d, byte(32-o.Imm))
	}, OpSExtBits32)
}

// oneNaN canonicalises every NaN of a result. Only results of 32 bits have others.
func (t *translator) oneNaN(w int, d amd64.Vec) {
	if w == 64 || t.anyNaN() {
		return
	}
	nan, x := t.num(32, nan32), t.take()
	t.V3I(amd64.VCMPPS, t.all(32), x, d, d, 3)
	t.VBlend(t.all(32), d, d, nan, x)
}

func floatCode() {
	float := func(w int, op amd64.VOp, swap bool, cs ...Code) {
		do(func(t *translator, o *Op) {
			a, b := t.arg(0), t.arg(1)
			if swap {
				a, b = b, a
			}
			d := t.out(o)
			t.V3(op, t.all(w), d, a, b)
			t.oneNaN(w, d)
		}, cs...)
	}
	float(32, amd64.VADDPS, false, OpFAdd32, OpFAdd32S)
	float(64, amd64.VADDPD, false, OpFAdd64, OpFAdd64S)
	float(32, amd64.VSUBPS, false, OpFSub32, OpFSub32S)
	float(64, amd64.VSUBPD, false, OpFSub64, OpFSub64S)
	float(32, amd64.VSUBPS, true, OpFRSub32S)
	float(64, amd64.VSUBPD, true, OpFRSub64S)
	float(32, amd64.VMULPS, false, OpFMul32, OpFMul32S)
	float(64, amd64.VMULPD, false, OpFMul64, OpFMul64S)
	float(32, amd64.VDIVPS, false, OpFDiv32, OpFDiv32S)
	float(64, amd64.VDIVPD, false, OpFDiv64, OpFDiv64S)
	float(32, amd64.VDIVPS, true, OpFRDiv32S)
	float(64, amd64.VDIVPD, true, OpFRDiv64S)
	for w, cs := range map[int][]Code{32: {OpFMA32, OpFMA32S, OpFMA32SB, OpFMAM32, OpFMAM32S, OpFMAM32SB}, 64: {OpFMA64, OpFMA64S, OpFMA64SB}} {
		do(func(t *translator, o *Op) {
			a, b, c := t.arg(0), t.arg(1), t.arg(2)
			d := t.out(o)
			t.V2(amd64.VMOVDQU, t.all(w), d, b)
			t.V3(pick(w, amd64.VFMADD213PS, amd64.VFMADD213PD), t.all(w), d, a, c)
			t.oneNaN(w, d)
		}, cs...)
	}
	for w, c := range map[int][2]Code{32: {OpFSqrt32, OpFRcp32}, 64: {OpFSqrt64, OpFRcp64}} {
		do(func(t *translator, o *Op) {
			a, d := t.arg(0), t.out(o)
			t.V2(pick(w, amd64.VSQRTPS, amd64.VSQRTPD), t.all(w), d, a)
			t.oneNaN(w, d)
		}, c[0])
		do(func(t *translator, o *Op) {
			a, one := t.arg(0), t.float(w, 1)
			d := t.out(o)
			t.V3(pick(w, amd64.VDIVPS, amd64.VDIVPD), t.all(w), d, one, a)
			t.oneNaN(w, d)
		}, c[1])
		extremes(w)
	}
	do(withNumber(32, amd64.VPXOR, 1<<31), OpFNeg32)
	do(withNumber(64, amd64.VPXOR, 1<<63), OpFNeg64)
	do(withNumber(32, amd64.VPAND, 1<<31-1), OpFAbs32)
	do(withNumber(64, amd64.VPAND, 1<<63-1), OpFAbs64)
	do(oneSource(32, amd64.VCVTDQ2PS), OpS32toF32)
	floatCompares()
}

// extremes registers code for the minimum and the maximum: -0 is less than +0, and a NaN loses to a number.
func extremes(w int) {
	compare := pick(w, amd64.VCMPPS, amd64.VCMPPD)
	for _, c := range []struct {
		narrow, wide, zeros amd64.VOp // zeros: which of two zeros is less
		codes               [4]Code
	}{{amd64.VMINPS, amd64.VMINPD, amd64.VPOR, [4]Code{OpFMin32, OpFMin32S, OpFMin64, OpFMin64S}},
		{amd64.VMAXPS, amd64.VMAXPD, amd64.VPAND, [4]Code{OpFMax32, OpFMax32S, OpFMax64, OpFMax64S}}} {
		do(func(t *translator, o *Op) {
			a, b, all := t.arg(0), t.arg(1), t.all(w)
			d, x, y := t.out(o), t.take(), t.take()
			op := pick(w, c.narrow, c.wide)
			t.V3(op, all, x, a, b)
			t.V3(op, all, y, b, a)
			t.V3(c.zeros, all, d, x, y)
			t.V3I(compare, all, x, a, a, 3)
			t.V3I(compare, all, y, b, b, 3)
			t.VBlend(all, d, d, b, x)
			t.VBlend(all, d, d, a, y)
			t.V3(amd64.VPAND, all, x, x, y) // both are NaN
			if w == 64 {
				t.V3M(amd64.VPAND, all, x, x, t.whole(64, quiet64))
				t.V3(amd64.VPOR, all, d, d, x)
				return
			}
			t.VBlend(all, d, d, t.num(32, nan32), x)
		}, c.codes[w/64*2:w/64*2+2]...)
	}
}

// roundCode registers code for rounding to whole numbers, conversion, and saturation.
func roundCode() {
	// The immediates of VROUNDPS and VROUNDPD: to nearest, down, up, to zero.
	for _, c := range []struct {
		mode                  byte
		narrow, wide, integer Code
	}{{8, OpFRoundN32, OpFRoundN64, OpF32toS32N}, {9, OpFRoundM32, OpFRoundM64, OpF32toS32M}, {10, OpFRoundP32, OpFRoundP64, OpF32toS32P},
		{11, OpFRoundZ32, OpFRoundZ64, OpF32toS32Z}} {
		for w, code := range map[int]Code{32: c.narrow, 64: c.wide} {
			do(func(t *translator, o *Op) {
				a, d := t.arg(0), t.out(o)
				t.V2I(pick(w, amd64.VROUNDPS, amd64.VROUNDPD), t.all(w), d, a, c.mode)
				t.oneNaN(w, d)
			}, code)
		}
		do(func(t *translator, o *Op) {
			a, limit, most, all := t.arg(0), t.float(32, 1<<31), t.num(32, 1<<31-1), t.all(32)
			d, x, y := t.out(o), t.take(), t.take()
			t.V2I(amd64.VROUNDPS, all, x, a, c.mode)
			t.V2(amd64.VCVTTPS2DQ, all, d, x)
			t.V3I(amd64.VCMPPS, all, y, x, limit, 0x1d)
			t.VBlend(all, d, d, most, y)
			t.V3I(amd64.VCMPPS, all, y, x, x, 7)
			t.V3(amd64.VPAND, all, d, d, y) // 0 for a NaN
		}, c.integer)
	}
	do(func(t *translator, o *Op) {
		a, top, limit, all := t.arg(0), t.float(32, 1<<31), t.float(32, 1<<32), t.all(32)
		d, x, y, z := t.out(o), t.take(), t.take(), t.take()
		t.V3(amd64.VPXOR, all, x, x, x)
		t.V3(amd64.VMAXPS, all, x, a, x) // 0 for a NaN
		t.V3I(amd64.VCMPPS, all, y, x, top, 0x1d)
		t.V3(amd64.VPAND, all, z, y, top)
		t.V3(amd64.VSUBPS, all, z, x, z)
		t.V2(amd64.VCVTTPS2DQ, all, d, z)
		t.VShiftI(amd64.VPSLLDI, all, y, y, 31)
		t.V3(amd64.VPXOR, all, d, d, y)
		t.V3I(amd64.VCMPPS, all, y, x, limit, 0x1d)
		t.V3(amd64.VPOR, all, d, d, y)
	}, OpF32toU32Z)
	do(func(t *translator, o *Op) { // a subnormal becomes a zero of its sign
		a, all := t.arg(0), t.all(32)
		d, x, y := t.out(o), t.take(), t.take()
		t.V3(amd64.VPXOR, all, x, x, x)
		t.V3M(amd64.VPAND, all, y, a, t.whole(32, 0x7f800000))
		t.V3(amd64.VPCMPEQD, all, y, y, x)
		t.V3M(amd64.VPAND, all, x, a, t.whole(32, 1<<31))
		t.VBlend(all, d, a, x, y)
	}, OpFFtz32)
	do(func(t *translator, o *Op) {
		a, one, all := t.arg(0), t.float(32, 1), t.all(32)
		d, x := t.out(o), t.take()
		t.V3(amd64.VPXOR, all, x, x, x)
		t.V3(amd64.VMAXPS, all, d, a, x) // 0 for a NaN
		t.V3(amd64.VMINPS, all, d, d, one)
	}, OpFSat32)
}

func floatCompares() {
	for _, c := range []struct {
		how                          byte
		narrow, narrowS, wide, wideS Code
	}{
		{0x00, OpFEQ32, OpFEQ32S, OpFEQ64, OpFEQ64S}, {0x08, OpFEQU32, OpFEQU32S, OpFEQU64, OpFEQU64S},
		{0x0c, OpFNE32, OpFNE32S, OpFNE64, OpFNE64S}, {0x04, OpFNEU32, OpFNEU32S, OpFNEU64, OpFNEU64S},
		{0x11, OpFLT32, OpFLT32S, OpFLT64, OpFLT64S}, {0x19, OpFLTU32, OpFLTU32S, OpFLTU64, OpFLTU64S},
		{0x12, OpFLE32, OpFLE32S, OpFLE64, OpFLE64S}, {0x1a, OpFLEU32, OpFLEU32S, OpFLEU64, OpFLEU64S},
		{0x1e, OpFGT32, OpFGT32S, OpFGT64, OpFGT64S}, {0x16, OpFGTU32, OpFGTU32S, OpFGTU64, OpFGTU64S},
		{0x1d, OpFGE32, OpFGE32S, OpFGE64, OpFGE64S}, {0x15, OpFGEU32, OpFGEU32S, OpFGEU64, OpFGEU64S},
		{0x07, OpFNum32, OpFNum32S, OpFNum64, OpFNum64S}, {0x03, OpFNaN32, OpFNaN32S, OpFNaN64, OpFNaN64S},
	} {
		compare(32, false, func(t *translator, d, a, b amd64.Vec) { t.V3I(amd64.VCMPPS, t.all(32), d, a, b, c.how) }, c.narrow, c.narrowS)
		compare(64, false, func(t *translator, d, a, b amd64.Vec) { t.V3I(amd64.VCMPPD, true, d, a, b, c.how) }, c.wide, c.wideS)
	}
}

// loadLanes loads the lanes of a strip from off bytes after the address in r.
func (t *translator) loadLanes(o *Op, r amd64.Reg, off int32, d amd64.Vec) {
	a := &accessOps[o.Code-OpLoad8ULine]
	w, op := 32, amd64.VMOVDQU
	switch {
	case a.size == 8:
		w = 64
	case a.how == spread:
		op = amd64.VPBROADCASTD
	case a.size == 2 && a.signed:
		op = amd64.VPMOVSXWD
	case a.size == 2:
		op = amd64.VPMOVZXWD
	case a.size == 1 && a.signed:
		op = amd64.VPMOVSXBD
	case a.size == 1:
		op = amd64.VPMOVZXBD
	}
	at := t.lanesAt(r, off, w)
	if a.unrolls() {
		at = amd64.Mem{Base: r, Disp: off + int32(t.strip)*8*int32(a.size)}
		if a.how != line {
			if at.Disp = off + int32(t.strip%2)*32; a.how == spread {
				at.Disp = off
			}
			if n := t.nearOf(o); n != nil && t.strip >= 2 { // the second row
				at.Disp += int32(n.Row)
			} else if t.strip == 2 {
				t.Load(8, false, amd64.CX, amd64.Mem{Base: amd64.R10, Disp: reachAt})
				t.RM(amd64.ADD, true, r, amd64.Mem{Base: amd64.CX, Disp: o.B + rowAt})
			}
		}
	}
	if t.masked && a.how != spread { // a lane outside the mask may be outside memory, too
		t.V2M(amd64.VMOVDQU, true, d, t.maskAt(w))
		t.V3M(pick(w, amd64.VPMASKMOVD, amd64.VPMASKMOVQ), true, d, d, at)
		return
	}
	t.V2M(op, true, d, at)
}
