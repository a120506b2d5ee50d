package lanes

import (
	"math"

	"fencepost.dev/fencepost/internal/approx"
	"fencepost.dev/fencepost/internal/codegen/arm64"
)

var bitsAnd, bitsOr, bitsXor = arm64.VAND, arm64.VORR, arm64.VEOR

// andNot sets d = b &^ not.
func (t *translator) andNot(all bool, d, not, b vec) { t.V3(arm64.VBIC, all, d, b, not) }

func (t *translator) copyVector(all bool, d, s vec) { t.VMove(all, d, s) }

func equal(w int) vop { return arm64.VCMEQ.W(w) }

func init() {
	integerCode()
	shiftCode()
	compareCode()
	moveCode()
	widthCode()
	bitsCode()
	floatCode()
	convertCode()
	doubleCode()
}

// byWidth are the operations of a kind on 32 bits and on 64.
type byWidth map[int][]Code

// doEach registers code for the operations of each width.
func (b byWidth) doEach(f func(w int) func(t *translator, o *Op)) {
	for w, cs := range b {
		do(f(w), cs...)
	}
}

func integerCode() {
	for _, x := range []struct {
		op    vop
		codes byWidth
	}{
		{arm64.VADD, byWidth{32: {OpAdd32, OpAdd32S}, 64: {OpAdd64, OpAdd64S}}},
		{arm64.VSUB, byWidth{32: {OpSub32, OpSub32S}, 64: {OpSub64, OpSub64S}}},
		{arm64.VAND, byWidth{32: {OpAnd32, OpAnd32S}, 64: {OpAnd64, OpAnd64S}}},
		{arm64.VORR, byWidth{32: {OpOr32, OpOr32S}, 64: {OpOr64, OpOr64S}}},
		{arm64.VEOR, byWidth{32: {OpXor32, OpXor32S}, 64: {OpXor64, OpXor64S}}},
		{arm64.VMUL, byWidth{32: {OpMul32, OpMul32S}}},
		{arm64.VSMIN, byWidth{32: {OpMinS32, OpMinS32S}}},
		{arm64.VUMIN, byWidth{32: {OpMinU32, OpMinU32S}}},
		{arm64.VSMAX, byWidth{32: {OpMaxS32, OpMaxS32S}}},
		{arm64.VUMAX, byWidth{32: {OpMaxU32, OpMaxU32S}}},
	} {
		x.codes.doEach(func(w int) func(t *translator, o *Op) { return twoSources(w, x.op.W(w)) })
	}
	for _, x := range []struct {
		op    vop
		codes byWidth
	}{
		{arm64.VNOT, byWidth{32: {OpNot32}, 64: {OpNot64}}},
		{arm64.VABS, byWidth{32: {OpAbsS32}, 64: {OpAbsS64}}},
		{arm64.VCLZ, byWidth{32: {OpClz32}}},
		{arm64.VFNEG, byWidth{32: {OpFNeg32}, 64: {OpFNeg64}}},
		{arm64.VFABS, byWidth{32: {OpFAbs32}, 64: {OpFAbs64}}},
	} {
		x.codes.doEach(func(w int) func(t *translator, o *Op) { return oneSource(w, x.op.W(w)) })
	}
	do(reversed(32, arm64.VSUB.W(32)), OpRSub32S)
	do(reversed(64, arm64.VSUB.W(64)), OpRSub64S)
	do(func(t *translator, o *Op) {
		a, b, c := t.arg(0), t.arg(1), t.arg(2)
		d := t.out(o)
		t.VMove(t.all(32), d, c)
		t.V3(arm64.VMLA.W(32), t.all(32), d, a, b)
	}, OpMad32, OpMad32S, OpMad32SB)
	do(func(t *translator, o *Op) {
		a, b := t.arg(0), t.arg(1)
		t.multiply64(t.out(o), a, b)
	}, OpMul64, OpMul64S)
	do(func(t *translator, o *Op) {
		a, b, c := t.arg(0), t.arg(1), t.arg(2)
		d := t.out(o)
		t.multiply64(d, a, b)
		t.V3(arm64.VADD.W(64), true, d, d, c)
	}, OpMad64, OpMad64S, OpMad64SB)
	do((*translator).lop3, OpLop3)
	for _, x := range []struct {
		op   vop // selects where the first source is the result
		v, s Code
	}{{arm64.VCMGT, OpMaxS64, OpMaxS64S}, {arm64.VCMHI, OpMaxU64, OpMaxU64S}} {
		do(func(t *translator, o *Op) {
			a, b := t.arg(0), t.arg(1)
			d := t.out(o)
			t.V3(x.op.W(64), true, d, a, b)
			t.V3(arm64.VBSL, true, d, a, b)
		}, x.v, x.s)
	}
	for _, x := range []struct {
		op   vop
		v, s Code
	}{{arm64.VCMGT, OpMinS64, OpMinS64S}, {arm64.VCMHI, OpMinU64, OpMinU64S}} {
		do(func(t *translator, o *Op) {
			a, b := t.arg(0), t.arg(1)
			d := t.out(o)
			t.V3(x.op.W(64), true, d, b, a)
			t.V3(arm64.VBSL, true, d, a, b)
		}, x.v, x.s)
	}
}

// multiply64 multiplies lanes of 64 bits; d is none of the sources.
func (t *translator) multiply64(d, a, b vec) {
	lowA, lowB, high := t.take(), t.take(), t.take()
	t.V2(arm64.VXTN, false, lowA, a)
	t.V2(arm64.VXTN, false, lowB, b)
	t.VShiftI(arm64.VSHRN, false, d, a, 32)
	t.VShiftI(arm64.VSHRN, false, high, b, 32)
	t.V3(arm64.VMUL.W(32), false, d, d, lowB)
	t.V3(arm64.VMLA.W(32), false, d, lowA, high)
	t.VShiftI(arm64.VUSHLL.W(32), false, d, d, 0)
	t.VShiftI(arm64.VSHL.W(64), true, d, d, 32)
	t.V3(arm64.VUMLAL.W(32), false, d, lowA, lowB)
}

// shiftCode registers code for shifts. The instructions shift by the lowest byte of a lane, right if it is negative,
// and also by the width or more.
func shiftCode() {
	for _, x := range []struct {
		op             vop
		right          bool
		v, s, v64, s64 Code
	}{
		{arm64.VUSHL, false, OpShl32, OpShl32S, OpShl64, OpShl64S},
		{arm64.VUSHL, true, OpShrU32, OpShrU32S, OpShrU64, OpShrU64S},
		{arm64.VSSHL, true, OpShrS32, OpShrS32S, OpShrS64, OpShrS64S},
	} {
		for w, cs := range map[int][2]Code{32: {x.v, x.s}, 64: {x.v64, x.s64}} {
			shift := func(t *translator, d, a, n, free vec) {
				if x.right {
					t.V2(arm64.VNEG.W(32), true, free, n)
					n = free
				}
				t.V3(x.op.W(w), t.all(w), d, a, n)
			}
			do(func(t *translator, o *Op) {
				a, n, most := t.arg(0), t.arg(1), t.num(32, 64)
				d, x := t.out(o), t.take()
				t.V3(arm64.VUMIN.W(32), t.all(32), x, n, most)
				if w == 64 {
					t.VShiftI(arm64.VUSHLL.W(32), false, x, x, 0)
				}
				shift(t, d, a, x, x)
			}, cs[0])
			do(func(t *translator, o *Op) {
				a, n := t.arg(0), t.have(value{shiftCount, uint64(o.B)})
				shift(t, t.out(o), a, n, t.take())
			}, cs[1])
		}
	}
	funnel := func(c Code, left bool) {
		do(func(t *translator, o *Op) {
			low, high := t.arg(0), t.arg(1)
			down := int(o.Imm & 31)
			d := t.out(o)
			switch {
			case down == 0 && left:
				t.VMove(t.all(32), d, high)
				return
			case down == 0:
				t.VMove(t.all(32), d, low)
				return
			case left:
				down = 32 - down
			}
			t.VShiftI(arm64.VSHL.W(32), t.all(32), d, high, 32-down)
			t.VShiftI(arm64.VSRI.W(32), t.all(32), d, low, down)
		}, c)
	}
	funnel(OpShfL32S, true)
	funnel(OpShfR32S, false)
}

func compareCode() {
	for _, x := range []struct {
		op        vop
		swap, not bool
		codes     byWidth
	}{
		{arm64.VCMEQ, false, false, byWidth{32: {OpEQ32, OpEQ32S}, 64: {OpEQ64, OpEQ64S}}},
		{arm64.VCMEQ, false, true, byWidth{32: {OpNE32, OpNE32S}, 64: {OpNE64, OpNE64S}}},
		{arm64.VCMGT, true, false, byWidth{32: {OpLTS32, OpLTS32S}, 64: {OpLTS64, OpLTS64S}}},
		{arm64.VCMGE, true, false, byWidth{32: {OpLES32, OpLES32S}, 64: {OpLES64, OpLES64S}}},
		{arm64.VCMGT, false, false, byWidth{32: {OpGTS32S}, 64: {OpGTS64S}}},
		{arm64.VCMGE, false, false, byWidth{32: {OpGES32S}, 64: {OpGES64S}}},
		{arm64.VCMHI, true, false, byWidth{32: {OpLTU32, OpLTU32S}, 64: {OpLTU64, OpLTU64S}}},
		{arm64.VCMHS, true, false, byWidth{32: {OpLEU32, OpLEU32S}, 64: {OpLEU64, OpLEU64S}}},
		{arm64.VCMHI, false, false, byWidth{32: {OpGTU32S}, 64: {OpGTU64S}}},
		{arm64.VCMHS, false, false, byWidth{32: {OpGEU32S}, 64: {OpGEU64S}}},
		{arm64.VFCMEQ, false, false, byWidth{32: {OpFEQ32, OpFEQ32S}, 64: {OpFEQ64, OpFEQ64S}}},
		{arm64.VFCMEQ, false, true, byWidth{32: {OpFNEU32, OpFNEU32S}, 64: {OpFNEU64, OpFNEU64S}}},
		{arm64.VFCMGT, true, false, byWidth{32: {OpFLT32, OpFLT32S}, 64: {OpFLT64, OpFLT64S}}},
		{arm64.VFCMGT, true, true, byWidth{32: {OpFGEU32, OpFGEU32S}, 64: {OpFGEU64, OpFGEU64S}}},
		{arm64.VFCMGE, true, false, byWidth{32: {OpFLE32, OpFLE32S}, 64: {OpFLE64, OpFLE64S}}},
		{arm64.VFCMGE, true, true, byWidth{32: {OpFGTU32, OpFGTU32S}, 64: {OpFGTU64, OpFGTU64S}}},
		{arm64.VFCMGT, false, false, byWidth{32: {OpFGT32, OpFGT32S}, 64: {OpFGT64, OpFGT64S}}},
		{arm64.VFCMGT, false, true, byWidth{32: {OpFLEU32, OpFLEU32S}, 64: {OpFLEU64, OpFLEU64S}}},
		{arm64.VFCMGE, false, false, byWidth{32: {OpFGE32, OpFGE32S}, 64: {OpFGE64, OpFGE64S}}},
		{arm64.VFCMGE, false, true, byWidth{32: {OpFLTU32, OpFLTU32S}, 64: {OpFLTU64, OpFLTU64S}}},
	} {
		for w, cs := range x.codes {
			compare(w, x.not, func(t *translator, d, a, b vec) {
				if x.swap {
					a, b = b, a
				}
				t.V3(x.op.W(w), t.all(w), d, a, b)
			}, cs...)
		}
	}
	// less or greater, or their negation
	differ := func(w int) func(t *translator, d, a, b vec) {
		return func(t *translator, d, a, b vec) {
			x := t.take()
			t.V3(arm64.VFCMGT.W(w), t.all(w), d, a, b)
			t.V3(arm64.VFCMGT.W(w), t.all(w), x, b, a)
			t.V3(arm64.VORR, t.all(w), d, d, x)
		}
	}
	numbers := func(w int) func(t *translator, d, a, b vec) {
		return func(t *translator, d, a, b vec) {
			x := t.take()
			t.V3(arm64.VFCMEQ.W(w), t.all(w), d, a, a)
			t.V3(arm64.VFCMEQ.W(w), t.all(w), x, b, b)
			t.V3(arm64.VAND, t.all(w), d, d, x)
		}
	}
	compare(32, false, differ(32), OpFNE32, OpFNE32S)
	compare(64, false, differ(64), OpFNE64, OpFNE64S)
	compare(32, true, differ(32), OpFEQU32, OpFEQU32S)
	compare(64, true, differ(64), OpFEQU64, OpFEQU64S)
	compare(32, false, numbers(32), OpFNum32, OpFNum32S)
	compare(64, false, numbers(64), OpFNum64, OpFNum64S)
	compare(32, true, numbers(32), OpFNaN32, OpFNaN32S)
	compare(64, true, numbers(64), OpFNaN64, OpFNaN64S)
	byWidth{32: {OpOdd32}, 64: {OpOdd64}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			a, one, d := t.arg(0), t.num(w, 1), t.take()
			t.V3(arm64.VCMTST.W(w), t.all(w), d, a, one)
			t.compared(w, d)
		}
	})
	byWidth{32: {OpEQAffine32}, 64: {OpEQAffine64}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			a, base, d := t.arg(0), t.arg(1), t.take()
			t.addLanes(w, d, base, o.Imm)
			t.V3(equal(w), t.all(w), d, d, a)
			t.compared(w, d)
		}
	})
}

// addLanes sets d to base plus the lane number times the stride.
func (t *translator) addLanes(w int, d, base vec, stride uint64) {
	plus := t.table(w, func(l uint64) uint64 { return l * stride })
	t.VLoad(t.all(w), d, t.lanesAt(dataReg, plus, w))
	t.V3(arm64.VADD.W(w), t.all(w), d, d, base)
}

func moveCode() {
	byWidth{32: {OpSel32, OpSel32VS, OpSel32SV, OpSel32SS}, 64: {OpSel64, OpSel64VS, OpSel64SV, OpSel64SS}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			a, b, on := t.arg(0), t.arg(1), t.arg(2)
			t.choose(t.all(w), t.out(o), on, a, b)
		}
	})
	byWidth{32: {OpBool32}, 64: {OpBool64}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			on, v := t.arg(0), t.num(w, o.Imm&(1<<(w-1)<<1-1))
			t.V3(arm64.VAND, t.all(w), t.out(o), on, v)
		}
	})
	byWidth{32: {OpCopy32, OpSet32}, 64: {OpCopy64, OpSet64}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			a := t.arg(0)
			t.VMove(t.all(w), t.out(o), a)
		}
	})
	byWidth{32: {OpAffine32}, 64: {OpAffine64}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			base := t.arg(0)
			t.addLanes(w, t.out(o), base, o.Imm)
		}
	})
}

// choose sets d to the bits of a where on has ones, and to those of b elsewhere.
func (t *translator) choose(all bool, d, on, a, b vec) {
	t.VMove(all, d, on)
	t.V3(arm64.VBSL, all, d, a, b)
}

// extend makes lanes of 64 bits out of lanes of 32.
func (t *translator) extend(isSigned bool, d, a vec) {
	op := arm64.VUSHLL
	if isSigned {
		op = arm64.VSSHLL
	}
	t.VShiftI(op.W(32), false, d, a, 0)
}

func widthCode() {
	for _, x := range []struct {
		signed            bool
		extend            Code
		op                vop
		v, s, high, highS Code
	}{{true, OpSExt64, arm64.VSMULL, OpMulS64, OpMulS64S, OpMulHiS32, OpMulHiS32S}, {false, OpZExt64, arm64.VUMULL, OpMulU64, OpMulU64S, OpMulHiU32, OpMulHiU32S}} {
		do(func(t *translator, o *Op) {
			a := t.arg(0)
			t.extend(x.signed, t.out(o), a)
		}, x.extend)
		do(func(t *translator, o *Op) {
			a, b := t.arg(0), t.arg(1)
			d := t.out(o)
			if o.Code == x.s { // in the lower half of every lane
				t.V2(arm64.VXTN, false, d, b)
				b = d
			}
			t.V3(x.op, false, d, a, b)
		}, x.v, x.s)
		do(func(t *translator, o *Op) {
			a, b := t.arg(0), t.arg(1)
			d, y := t.out(o), t.take()
			t.V3(x.op, false, d, a, b)
			t.V3(x.op, true, y, a, b)
			t.V3(arm64.VUZP2, true, d, d, y)
		}, x.high, x.highS)
	}
	do(func(t *translator, o *Op) {
		a := t.arg(0)
		t.V2(arm64.VXTN, false, t.out(o), a)
	}, OpLow32)
	do(func(t *translator, o *Op) {
		a := t.arg(0)
		t.VShiftI(arm64.VSHRN, false, t.out(o), a, 32)
	}, OpHigh32)
	do(func(t *translator, o *Op) {
		low, high := t.arg(0), t.arg(1)
		t.V3(arm64.VZIP1, true, t.out(o), low, high)
	}, OpPack64)
	byWidth{32: {OpZExtBits32}, 64: {OpZExtBits64}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			a, n := t.arg(0), t.num(w, 1<<o.Imm-1)
			t.V3(arm64.VAND, t.all(w), t.out(o), a, n)
		}
	})
	byWidth{32: {OpSExtBits32}, 64: {OpSExtBits64}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			a := t.arg(0)
			d, n := t.out(o), w-int(o.Imm)
			t.VShiftI(arm64.VSHL.W(w), t.all(w), d, a, n)
			if n != 0 {
				t.VShiftI(arm64.VSSHR.W(w), t.all(w), d, d, n)
			}
		}
	})
}

func bitsCode() {
	ones := func(t *translator, d, a vec, sums ...int) { // of bytes, then of wider and wider lanes
		t.V2(arm64.VCNT, true, d, a)
		for _, w := range sums {
			t.V2(arm64.VUADDLP.W(w), true, d, d)
		}
	}
	do(func(t *translator, o *Op) {
		a := t.arg(0)
		ones(t, t.out(o), a, 8, 16)
	}, OpPopc32)
	do(func(t *translator, o *Op) {
		a, d := t.arg(0), t.out(o)
		ones(t, d, a, 8, 16, 32)
		t.V2(arm64.VXTN, false, d, d)
	}, OpPopc64)
	do(func(t *translator, o *Op) { // the count of the upper half, and that of the lower half if the upper is 0
		a, all := t.arg(0), t.num(64, 32)
		d, x := t.out(o), t.take()
		t.V2(arm64.VCLZ.W(32), true, x, a)
		t.VShiftI(arm64.VUSHR.W(64), true, d, x, 32)
		y := t.take()
		t.V3(equal(64), true, y, d, all)
		t.V3(arm64.VAND, true, x, x, y)
		t.V3(arm64.VADD.W(32), true, d, d, x)
		t.V2(arm64.VXTN, false, d, d)
	}, OpClz64)
	do(func(t *translator, o *Op) {
		a, d := t.arg(0), t.out(o)
		t.V2(arm64.VRBIT, true, d, a)
		t.V2(arm64.VREV32, true, d, d)
	}, OpBrev32)
	do((*translator).permute, OpPrmt32S)
}

// permute selects bytes of a and of b. It then replicates the sign of those bytes that ask for it.
func (t *translator) permute(o *Op) {
	from := [2][]byte{make([]byte, vectorBytes), make([]byte, vectorBytes)}
	var sign uint64
	for i := range vectorBytes {
		n := byte(o.Imm >> (i % 4 * 4) & 15)
		from[0][i], from[1][i] = 0xff, 0xff // none
		from[n>>2&1][i] = byte(i&^3) | n&3
		if n&8 != 0 {
			sign |= 0xff << (i % 4 * 8)
		}
	}
	a, b := t.arg(0), t.arg(1)
	d, x := t.out(o), t.take()
	for i, source := range []vec{a, b} {
		t.VLoad(true, x, mem{Base: dataReg, Disp: t.constant(from[i])})
		t.VLookUp(i == 1, true, d, source, x)
	}
	if sign == 0 {
		return
	}
	signs := t.num(32, sign)
	t.V2(arm64.VCMLT0.W(8), true, x, d)
	t.V3(arm64.VBIT, true, d, x, signs)
}

// oneNaN replaces every NaN of a result by the canonical NaN of the package.
func (t *translator) oneNaN(w int, d vec, sources ...vec) {
	if w == 32 && t.anyNaN() {
		return
	}
	x := t.take()
	if w == 64 {
		t.firstNaN(d, x, sources)
		return
	}
	t.V3(arm64.VFCMEQ, t.all(32), x, d, d)
	t.V3(arm64.VBIF, t.all(32), d, t.num(32, nan32), x)
}

// firstNaN replaces a NaN of a result by the first NaN among the sources; the processor prefers signalling ones. If no
// source is a NaN, the result is the negative one. That code is out of line: NaNs are rare, and so are sums of two
// infinities that yield one.
func (t *translator) firstNaN(d, x vec, sources []vec) {
	first, y := t.take(), t.take()
	odd, on := new(label), new(label)
	t.VSumDoubles(x, d)
	t.VCompareDoubles(x, x)
	t.JumpIf(arm64.Unordered, odd)
	t.Bind(on)
	op := func(op vop, d, n, m vec) { t.V3(op.W(64), true, d, n, m) }
	t.cold = append(t.cold, func() {
		t.Bind(odd)
		op(arm64.VFCMEQ, x, d, d)
		t.VLoad(true, y, t.whole(64, nan64))
		op(arm64.VBIF, d, y, x)
		t.VMove(true, first, sources[len(sources)-1])
		for i := len(sources) - 2; i >= 0; i-- {
			op(arm64.VFCMEQ, y, sources[i], sources[i])
			op(arm64.VBIF, first, sources[i], y)
		}
		op(arm64.VFADD, first, first, first) // quiet
		op(arm64.VFCMEQ, y, first, first)
		op(arm64.VBIF, d, first, y)
		t.Jump(on)
	})
}

func floatCode() {
	for _, x := range []struct {
		op    vop
		swap  bool
		codes byWidth
	}{
		{arm64.VFADD, false, byWidth{32: {OpFAdd32, OpFAdd32S}, 64: {OpFAdd64, OpFAdd64S}}},
		{arm64.VFSUB, false, byWidth{32: {OpFSub32, OpFSub32S}, 64: {OpFSub64, OpFSub64S}}},
		{arm64.VFSUB, true, byWidth{32: {OpFRSub32S}, 64: {OpFRSub64S}}},
		{arm64.VFMUL, false, byWidth{32: {OpFMul32, OpFMul32S}, 64: {OpFMul64, OpFMul64S}}},
		{arm64.VFDIV, false, byWidth{32: {OpFDiv32, OpFDiv32S}, 64: {OpFDiv64, OpFDiv64S}}},
		{arm64.VFDIV, true, byWidth{32: {OpFRDiv32S}, 64: {OpFRDiv64S}}},
	} {
		x.codes.doEach(func(w int) func(t *translator, o *Op) {
			return func(t *translator, o *Op) {
				a, b := t.arg(0), t.arg(1)
				if x.swap {
					a, b = b, a
				}
				d := t.out(o)
				t.V3(x.op.W(w), t.all(w), d, a, b)
				t.oneNaN(w, d, a, b)
			}
		})
	}
	byWidth{32: {OpFMA32, OpFMA32S, OpFMA32SB, OpFMAM32, OpFMAM32S, OpFMAM32SB}, 64: {OpFMA64, OpFMA64S, OpFMA64SB}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			a, b, c := t.arg(0), t.arg(1), t.arg(2)
			d := t.out(o)
			t.VMove(t.all(w), d, c)
			t.V3(arm64.VFMLA.W(w), t.all(w), d, a, b)
			t.oneNaN(w, d, a, b, c)
		}
	})
	for _, x := range []struct {
		op    vop
		codes byWidth
	}{
		{arm64.VFSQRT, byWidth{32: {OpFSqrt32}, 64: {OpFSqrt64}}},
		{arm64.VFRINTN, byWidth{32: {OpFRoundN32}, 64: {OpFRoundN64}}}, {arm64.VFRINTM, byWidth{32: {OpFRoundM32}, 64: {OpFRoundM64}}},
		{arm64.VFRINTP, byWidth{32: {OpFRoundP32}, 64: {OpFRoundP64}}}, {arm64.VFRINTZ, byWidth{32: {OpFRoundZ32}, 64: {OpFRoundZ64}}},
	} {
		x.codes.doEach(func(w int) func(t *translator, o *Op) {
			return func(t *translator, o *Op) {
				a, d := t.arg(0), t.out(o)
				t.V2(x.op.W(w), t.all(w), d, a)
				t.oneNaN(w, d, a)
			}
		})
	}
	byWidth{32: {OpFRcp32}, 64: {OpFRcp64}}.doEach(func(w int) func(t *translator, o *Op) {
		return func(t *translator, o *Op) {
			a, one := t.arg(0), t.float(w, 1)
			d := t.out(o)
			t.V3(arm64.VFDIV.W(w), t.all(w), d, one, a)
			t.oneNaN(w, d, a)
		}
	})
	// -0 is less than +0, and a NaN loses to a number: it is first replaced by the other source.
	for _, x := range []struct {
		op    vop
		codes byWidth
	}{
		{arm64.VFMIN, byWidth{32: {OpFMin32, OpFMin32S}, 64: {OpFMin64, OpFMin64S}}}, {arm64.VFMAX, byWidth{32: {OpFMax32, OpFMax32S}, 64: {OpFMax64, OpFMax64S}}},
	} {
		x.codes.doEach(func(w int) func(t *translator, o *Op) {
			return func(t *translator, o *Op) {
				a, b, all := t.arg(0), t.arg(1), t.all(w)
				d, y := t.out(o), t.take()
				t.V3(arm64.VFCMEQ.W(w), all, y, b, b)
				t.V3(arm64.VBSL, all, y, b, a)
				t.V3(arm64.VFCMEQ.W(w), all, d, a, a)
				t.V3(arm64.VBSL, all, d, a, y)
				t.V3(x.op.W(w), all, d, d, y)
				if w == 32 {
					t.oneNaN(w, d)
				}
			}
		})
	}
	do(func(t *translator, o *Op) { // 0 for a NaN
		a, one, all := t.arg(0), t.float(32, 1), t.all(32)
		d := t.out(o)
		t.V2(arm64.VFCMGT0.W(32), all, d, a)
		t.V3(arm64.VAND, all, d, d, a)
		t.V3(arm64.VFMIN.W(32), all, d, d, one)
	}, OpFSat32)
	do(func(t *translator, o *Op) { // a subnormal becomes a zero of its sign
		a, exponent, sign, all := t.arg(0), t.num(32, 0x7f800000), t.num(32, 1<<31), t.all(32)
		d, x := t.out(o), t.take()
		t.V3(arm64.VAND, all, x, a, sign)
		t.V3(arm64.VCMTST.W(32), all, d, a, exponent)
		t.V3(arm64.VBSL, all, d, a, x)
	}, OpFFtz32)
}

func convertCode() {
	for c, op := range map[Code]vop{OpS32toF32: arm64.VSCVTF, OpU32toF32: arm64.VUCVTF, OpF32toS32N: arm64.VFCVTNS, OpF32toS32M: arm64.VFCVTMS,
		OpF32toS32P: arm64.VFCVTPS, OpF32toS32Z: arm64.VFCVTZS, OpF32toU32Z: arm64.VFCVTZU} { // 0 for a NaN
		do(oneSource(32, op.W(32)), c)
	}
	do(oneSource(64, arm64.VSCVTF.W(64)), OpS64toF64)
	do(oneSource(64, arm64.VUCVTF.W(64)), OpU64toF64)
	for c, isSigned := range map[Code]bool{OpS32toF64: true, OpU32toF64: false} {
		do(func(t *translator, o *Op) {
			a, d := t.arg(0), t.out(o)
			t.doubles(isSigned, d, a)
		}, c)
	}
	for c, isSigned := range map[Code]bool{OpS64toF32: true, OpU64toF32: false} {
		do(func(t *translator, o *Op) { // there are no such vector conversions
			a, d, x := t.arg(0), t.out(o), t.take()
			for i, v := range []vec{d, x} {
				t.VLane(true, tmp1, a, i)
				t.VSingle(isSigned, v, tmp1)
			}
			t.V3(arm64.VZIP1, false, d, d, x)
		}, c)
	}
	do(func(t *translator, o *Op) {
		a := t.arg(0)
		t.V2(arm64.VFCVTL, false, t.out(o), a)
	}, OpF32toF64)
	do(func(t *translator, o *Op) {
		a, d := t.arg(0), t.out(o)
		t.toSingle(d, a)
	}, OpF64toF32)
	for _, x := range []struct {
		code     Code
		from     int
		op       vop
		nan      uint64
		narrower *vop
	}{
		{OpF64toS64Z, 64, arm64.VFCVTZS, 1 << 63, nil}, {OpF64toU64Z, 64, arm64.VFCVTZU, 1 << 63, nil},
		{OpF32toS64Z, 32, arm64.VFCVTZS, 1 << 63, nil}, {OpF32toU64Z, 32, arm64.VFCVTZU, 1 << 63, nil},
		{OpF64toS32Z, 64, arm64.VFCVTZS, 1 << 63, &arm64.VSQXTN}, {OpF64toU32Z, 64, arm64.VFCVTZU, 1 << 31, &arm64.VUQXTN},
	} {
		do(func(t *translator, o *Op) {
			a, nan := t.arg(0), t.num(64, x.nan)
			d, y := t.out(o), t.take()
			if x.from == 32 {
				t.V2(arm64.VFCVTL, false, d, a)
				a = d
			}
			t.V3(arm64.VFCMEQ.W(64), true, y, a, a)
			t.V2(x.op.W(64), true, d, a)
			t.V3(arm64.VBIF, true, d, nan, y)
			if x.narrower != nil {
				t.V2(*x.narrower, false, d, d)
			}
		}, x.code)
	}
}

// doubles converts lanes of 32 bits to double precision.
func (t *translator) doubles(isSigned bool, d, a vec) {
	t.extend(isSigned, d, a)
	op := arm64.VUCVTF
	if isSigned {
		op = arm64.VSCVTF
	}
	t.V2(op.W(64), true, d, d)
}

// toSingle rounds lanes from double to single precision.
func (t *translator) toSingle(d, a vec) {
	t.V2(arm64.VFCVTN, false, d, a)
	t.oneNaN(32, d)
}

func doubleCode() {
	throughDoubles(divide(false, false), OpDivU32, OpDivU32S)
	throughDoubles(divide(true, false), OpDivS32, OpDivS32S)
	throughDoubles(divide(false, true), OpRemU32, OpRemU32S)
	throughDoubles(divide(true, true), OpRemS32, OpRemS32S)
	throughDoubles(func(t *translator, o *Op) {
		a, one := t.arg(0), t.float(64, 1)
		d, x := t.out(o), t.take()
		t.V2(arm64.VFCVTL, false, x, a)
		t.V2(arm64.VFSQRT.W(64), true, x, x)
		t.V3(arm64.VFDIV.W(64), true, x, one, x)
		t.toSingle(d, x)
	}, OpFRsqrt32)
	throughDoubles((*translator).exp2, OpFExpTwo32)
	throughDoubles((*translator).log2, OpFLogTwo32)
}

// divide divides in float64. A 32-bit quotient that is not whole is at least 1/b away from the next whole number.
// Rounding moves it by less than that.
func divide(isSigned, rem bool) func(t *translator, o *Op) {
	whole := arm64.VFCVTZU
	if isSigned {
		whole = arm64.VFCVTZS
	}
	return func(t *translator, o *Op) {
		a, b := t.arg(0), t.arg(1)
		d, x, y := t.out(o), t.take(), t.take()
		t.doubles(isSigned, x, a)
		t.doubles(isSigned, y, b)
		t.V3(arm64.VFDIV.W(64), true, x, x, y)
		t.V2(whole.W(64), true, x, x)
		t.V2(arm64.VXTN, false, d, x)
		if rem {
			t.VMove(false, x, a)
			t.V3(arm64.VMLS.W(32), false, x, d, b)
			t.VMove(false, d, x)
		}
		t.V2(arm64.VCMEQ0.W(32), false, x, b)
		t.V3(arm64.VORR, false, d, d, x) // all ones for a division by zero
	}
}

// polynomial computes a polynomial in x and returns the register of the result.
func (t *translator) polynomial(x vec, terms []float64) vec {
	d, next := t.take(), t.take()
	t.loadFloat(d, terms[len(terms)-1])
	for i := len(terms) - 2; i >= 0; i-- {
		t.loadFloat(next, terms[i])
		t.V3(arm64.VFMLA.W(64), true, next, d, x)
		d, next = next, d
	}
	return d
}

// loadFloat sets every lane of 64 bits to a number that is not used again soon.
func (t *translator) loadFloat(d vec, v float64) { t.VLoad(true, d, t.whole(64, math.Float64bits(v))) }

// exp2 follows the steps of package approx. Beyond 400 the result is infinite, or zero, in single precision. Up to
// there the exponent of the double does not overflow.
func (t *translator) exp2(o *Op) {
	a, most, least := t.arg(0), t.float(64, 400), t.float(64, -400)
	d, x, n := t.out(o), t.take(), t.take()
	t.V2(arm64.VFCVTL, false, x, a)
	t.V3(arm64.VFMAX.W(64), true, x, x, least)
	t.V3(arm64.VFMIN.W(64), true, x, x, most)
	t.V2(arm64.VFRINTN.W(64), true, n, x)
	t.V3(arm64.VFSUB.W(64), true, x, x, n)
	p := t.polynomial(x, approx.Exp2Terms())
	t.V2(arm64.VFCVTZS.W(64), true, n, n)
	t.VShiftI(arm64.VSHL.W(64), true, n, n, 52)
	t.V3(arm64.VADD.W(64), true, p, p, n)
	t.toSingle(d, p)
}

// log2 follows the steps of package approx. It takes the exponent and the mantissa (from 3/4 to 3/2) out of the bits.
func (t *translator) log2(o *Op) {
	a, one := t.arg(0), t.float(64, 1)
	d, x, size := t.out(o), t.take(), t.take()
	exponent, mantissa, y, z := t.take(), t.take(), t.take(), t.take()
	op := func(op vop, d, n, m vec) { t.V3(op, true, d, n, m) }
	t.V2(arm64.VFCVTL, false, x, a)
	t.V2(arm64.VFABS.W(64), true, size, x)
	t.VShiftI(arm64.VUSHR.W(64), true, exponent, size, 52)
	t.V2(arm64.VUCVTF.W(64), true, exponent, exponent)
	t.loadFloat(y, 1023)
	op(arm64.VFSUB.W(64), exponent, exponent, y)
	t.VLoad(true, y, t.whole(64, 1<<52-1))
	op(arm64.VAND, mantissa, size, y)
	op(arm64.VORR, mantissa, mantissa, one) // from 1 to 2
	t.loadFloat(y, 1.5)
	op(arm64.VFCMGE.W(64), y, mantissa, y)
	op(arm64.VAND, z, y, one)
	op(arm64.VFADD.W(64), exponent, exponent, z)
	t.loadFloat(z, 0.5)
	op(arm64.VFMUL.W(64), z, z, mantissa)
	op(arm64.VBIT, mantissa, z, y)
	t.loadFloat(y, math.Inf(1))
	op(arm64.VFCMGT.W(64), y, y, size) // neither infinity nor NaN
	op(arm64.VBIF, exponent, size, y)
	op(arm64.VBIF, mantissa, one, y)
	t.V2(arm64.VCMEQ0.W(64), true, y, size)
	t.loadFloat(z, math.Inf(-1))
	op(arm64.VBIT, exponent, z, y)
	op(arm64.VFSUB.W(64), y, mantissa, one)
	op(arm64.VFADD.W(64), z, mantissa, one)
	op(arm64.VFDIV.W(64), y, y, z)
	op(arm64.VFMUL.W(64), z, y, y)
	op(arm64.VFMUL.W(64), size, y, z)
	op(arm64.VFMLA.W(64), y, t.polynomial(z, approx.Log2Terms()), size)
	t.loadFloat(z, approx.Log2Factor)
	op(arm64.VFMLA.W(64), exponent, y, z)
	t.loadFloat(z, math.NaN())
	op(arm64.VEOR, y, y, y)
	op(arm64.VFCMGT.W(64), x, y, x) // negative
	op(arm64.VBIT, exponent, z, x)
	t.toSingle(d, exponent)
}
