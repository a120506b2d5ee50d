package lanes

import (
	"math"

	"fencepost.dev/fencepost/internal/approx"
	"fencepost.dev/fencepost/internal/codegen/amd64"
)

// Operations that compute in float64.

func doubleCode() {
	throughDoubles(divide(false, false), OpDivU32, OpDivU32S)
	throughDoubles(divide(true, false), OpDivS32, OpDivS32S)
	throughDoubles(divide(false, true), OpRemU32, OpRemU32S)
	throughDoubles(divide(true, true), OpRemS32, OpRemS32S)
	throughDoubles(func(t *translator, o *Op) {
		a, one := t.arg(0), t.float(64, 1)
		d, x := t.out(o), t.take()
		t.V2(amd64.VCVTPS2PD, true, x, a)
		t.V2(amd64.VSQRTPD, true, x, x)
		t.V3(amd64.VDIVPD, true, x, one, x)
		t.V2(amd64.VCVTPD2PS, true, d, x)
		t.oneNaN(32, d)
	}, OpFRsqrt32)
	throughDoubles((*translator).exp2, OpFExpTwo32)
	throughDoubles((*translator).log2, OpFLogTwo32)
	throughDoubles(func(t *translator, o *Op) {
		a := t.arg(0)
		d, x := t.out(o), t.take()
		t.doubles(false, x, a)
		t.V2(amd64.VCVTPD2PS, true, d, x)
	}, OpU32toF32)
	do(oneSource(64, amd64.VCVTDQ2PD), OpS32toF64)
	do(oneSource(64, amd64.VCVTPS2PD), OpF32toF64)
	do(func(t *translator, o *Op) {
		a := t.arg(0)
		t.doubles(false, t.out(o), a)
	}, OpU32toF64)
	do(func(t *translator, o *Op) {
		a, d := t.arg(0), t.out(o)
		t.V2(amd64.VCVTPD2PS, true, d, a)
		t.oneNaN(32, d)
	}, OpF64toF32)
	do(func(t *translator, o *Op) {
		a, limit, most := t.arg(0), t.float(64, 1<<31), t.num(32, 1<<31-1)
		d, x := t.out(o), t.take()
		t.V2(amd64.VCVTTPD2DQ, true, d, a)
		t.V3I(amd64.VCMPPD, true, x, a, limit, 0x1d)
		t.narrow(x, x, lowHalves)
		t.VBlend(false, d, d, most, x)
	}, OpF64toS32Z)
}

func (t *translator) wholeFloat(v float64) amd64.Mem { return t.whole(64, math.Float64bits(v)) }

// doubles converts 4 lanes of 32 bits. There are no conversions of unsigned numbers: the code subtracts 2^31 before and
// adds it again after.
func (t *translator) doubles(isSigned bool, d, a amd64.Vec) {
	if isSigned {
		t.V2(amd64.VCVTDQ2PD, true, d, a)
		return
	}
	t.V3M(amd64.VPXOR, false, d, a, t.whole(32, 1<<31))
	t.V2(amd64.VCVTDQ2PD, true, d, d)
	t.V3M(amd64.VADDPD, true, d, d, t.wholeFloat(1<<31))
}

// The halves of lanes of 64 bits that narrow takes.
const (
	lowHalves  = 0x88
	highHalves = 0xdd
)

// narrow makes 4 lanes of 32 bits out of halves of 4 lanes of 64.
func (t *translator) narrow(d, a amd64.Vec, which byte) {
	x := t.take()
	t.VUpper(x, a)
	t.V3I(amd64.VSHUFPS, false, d, a, x, which)
}

// divide divides in float64. A 32-bit quotient that is not whole is at least 1/b away from the next whole number.
// Rounding moves it by less than that.
func divide(isSigned, rem bool) func(t *translator, o *Op) {
	return func(t *translator, o *Op) {
		a, b := t.arg(0), t.arg(1)
		d, x, y := t.out(o), t.take(), t.take()
		t.doubles(isSigned, x, a)
		t.doubles(isSigned, y, b)
		t.V3(amd64.VDIVPD, true, x, x, y)
		if isSigned {
			t.V2(amd64.VCVTTPD2DQ, true, d, x)
		} else { // subtract 2^31 from a quotient of 2^31 or more, and add it again afterwards
			top, z := t.float(64, 1<<31), t.take()
			t.V3I(amd64.VCMPPD, true, y, x, top, 0x1d)
			t.V3(amd64.VPAND, true, z, y, top)
			t.V3(amd64.VSUBPD, true, x, x, z)
			t.V2(amd64.VCVTTPD2DQ, true, d, x)
			t.narrow(y, y, lowHalves)
			t.VShiftI(amd64.VPSLLDI, false, y, y, 31)
			t.V3(amd64.VPXOR, false, d, d, y)
		}
		if rem {
			t.V3(amd64.VPMULLD, false, d, d, b)
			t.V3(amd64.VPSUBD, false, d, a, d)
		}
		t.V3(amd64.VPXOR, false, x, x, x)
		t.V3(amd64.VPCMPEQD, false, x, x, b)
		t.V3(amd64.VPOR, false, d, d, x) // all ones for a division by zero
	}
}

// polynomial computes a polynomial in x.
func (t *translator) polynomial(d, x amd64.Vec, terms []float64) {
	last := len(terms) - 1
	t.V2M(amd64.VMOVDQU, true, d, t.wholeFloat(terms[last]))
	for i := last - 1; i >= 0; i-- {
		t.V3M(amd64.VFMADD213PD, true, d, x, t.wholeFloat(terms[i]))
	}
}

// exp2 follows the steps of package approx. Beyond 400 the result is infinite, or zero, in single precision. Up to
// there the exponent of the double does not overflow.
func (t *translator) exp2(o *Op) {
	a, most, least := t.arg(0), t.float(64, 400), t.float(64, -400)
	d, x, n, p := t.out(o), t.take(), t.take(), t.take()
	t.V2(amd64.VCVTPS2PD, true, x, a)
	t.V3(amd64.VMAXPD, true, x, least, x) // if one operand is a NaN the result is the second: a NaN in x stays
	t.V3(amd64.VMINPD, true, x, most, x)
	t.V2I(amd64.VROUNDPD, true, n, x, 8)
	t.V3(amd64.VSUBPD, true, x, x, n)
	t.polynomial(p, x, approx.Exp2Terms())
	t.V2(amd64.VCVTPD2DQ, true, n, n)
	t.V2(amd64.VPMOVSXDQ, true, n, n)
	t.VShiftI(amd64.VPSLLQI, true, n, n, 52)
	t.V3(amd64.VPADDQ, true, p, p, n)
	t.V2(amd64.VCVTPD2PS, true, d, p)
	t.oneNaN(32, d)
}

// log2 follows the steps of package approx. It takes the exponent and the mantissa (from 3/4 to 3/2) out of the bits.
func (t *translator) log2(o *Op) {
	const two52 = 1 << 52 // with the exponent as the low bits of 2^52, subtracting 2^52 and the bias gives it as a number
	a, one := t.arg(0), t.float(64, 1)
	d, x, size := t.out(o), t.take(), t.take()
	exponent, mantissa, y, z := t.take(), t.take(), t.take(), t.take()
	t.V2(amd64.VCVTPS2PD, true, x, a)
	t.V3M(amd64.VPAND, true, size, x, t.whole(64, 1<<63-1))
	t.VShiftI(amd64.VPSRLQI, true, exponent, size, 52)
	t.V3M(amd64.VPOR, true, exponent, exponent, t.wholeFloat(two52))
	t.V3M(amd64.VSUBPD, true, exponent, exponent, t.wholeFloat(two52+1023))
	t.V3M(amd64.VPAND, true, mantissa, size, t.whole(64, two52-1))
	t.V3(amd64.VPOR, true, mantissa, mantissa, one) // from 1 to 2
	t.V2M(amd64.VMOVDQU, true, y, t.wholeFloat(1.5))
	t.V3I(amd64.VCMPPD, true, y, mantissa, y, 0x1d)
	t.V3(amd64.VPAND, true, z, y, one)
	t.V3(amd64.VADDPD, true, exponent, exponent, z)
	t.V3M(amd64.VMULPD, true, z, mantissa, t.wholeFloat(0.5))
	t.VBlend(true, mantissa, mantissa, z, y)
	t.V2M(amd64.VMOVDQU, true, y, t.wholeFloat(math.Inf(1)))
	t.V3I(amd64.VCMPPD, true, y, size, y, 0x15) // infinity or NaN: not less than infinity
	t.VBlend(true, exponent, exponent, size, y)
	t.VBlend(true, mantissa, mantissa, one, y)
	t.V3(amd64.VPXOR, true, y, y, y)
	t.V3I(amd64.VCMPPD, true, y, size, y, 0)
	t.V2M(amd64.VMOVDQU, true, z, t.wholeFloat(math.Inf(-1)))
	t.VBlend(true, exponent, exponent, z, y)
	t.V3(amd64.VSUBPD, true, y, mantissa, one)
	t.V3(amd64.VADDPD, true, z, mantissa, one)
	t.V3(amd64.VDIVPD, true, y, y, z)
	t.V3(amd64.VMULPD, true, z, y, y)
	t.V3(amd64.VMULPD, true, size, y, z)
	t.polynomial(mantissa, z, approx.Log2Terms())
	t.V3(amd64.VFMADD213PD, true, mantissa, size, y)
	t.V2M(amd64.VMOVDQU, true, y, t.wholeFloat(approx.Log2Factor))
	t.V3(amd64.VFMADD213PD, true, mantissa, y, exponent)
	t.V2(amd64.VCVTPD2PS, true, d, mantissa)
	t.oneNaN(32, d)
	nan := t.num(32, nan32)
	t.V3(amd64.VPXOR, true, y, y, y)
	t.V3I(amd64.VCMPPD, true, y, x, y, 0x11) // negative: NaN
	t.narrow(y, y, lowHalves)
	t.VBlend(false, d, d, nan, y)
}
