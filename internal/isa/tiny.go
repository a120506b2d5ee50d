package isa

import "math"

// tiny is a format of at most 8 bits, of which two numbers are packed. It is floating point, or fixed point with a sign
// and 6 bits of fraction.
type tiny struct {
	fixed     bool
	mant, exp uint
	width     uint   // bits of one of the packed numbers
	max       uint64 // the largest number
	inf       bool   // has infinities
	nan       uint64 // 0 if there is none
}

// tinies are the formats, by the type of two numbers (PTX ISA, "Packed Data Types" and "Alternate Floating-Point Data
// Formats").
var tinies = map[Type]*tiny{
	E4M3x2: {mant: 3, exp: 4, width: 8, max: 0x7e, nan: 0x7f},
	E5M2x2: {mant: 2, exp: 5, width: 8, max: 0x7b, nan: 0x7f, inf: true},
	E2M3x2: {mant: 3, exp: 2, width: 8, max: 0x1f},
	E3M2x2: {mant: 2, exp: 3, width: 8, max: 0x1f},
	E2M1x2: {mant: 1, exp: 2, width: 4, max: 0x7},
	S2F6x2: {fixed: true, width: 8},
}

func (f *tiny) bias() int    { return 1<<(f.exp-1) - 1 }
func (f *tiny) sign() uint64 { return 1 << (f.mant + f.exp) }

// value is the number as a float64.
func (f *tiny) value(x uint64) float64 {
	if f.fixed {
		return float64(int8(x)) / 64
	}
	mag := x & (f.sign() - 1)
	v := math.NaN()
	switch e := int(mag >> f.mant); {
	case mag <= f.max && e == 0:
		v = math.Ldexp(float64(mag), 1-f.bias()-int(f.mant))
	case mag <= f.max:
		v = math.Ldexp(float64(mag&(1<<f.mant-1)|1<<f.mant), e-f.bias()-int(f.mant))
	case f.inf && mag == f.max+1:
		v = math.Inf(1)
	}
	if x&f.sign() != 0 {
		return -v
	}
	return v
}

// round rounds a number to nearest in the format. Numbers that are too large become the largest number. NaN becomes NaN
// or, if the format has none, the largest number, too.
func (f *tiny) round(v float64) uint64 {
	switch {
	case f.fixed && v != v:
		return math.MaxInt8
	case f.fixed:
		return uint64(uint8(int8(min(max(math.RoundToEven(v*64), math.MinInt8), math.MaxInt8))))
	}
	if v != v {
		return max(f.nan, f.max)
	}
	mag, least := math.Abs(v), 1-f.bias()
	r := f.max
	if !math.IsInf(v, 0) {
		e := least
		if mag > 0 {
			e = max(math.Ilogb(mag), least)
		}
		q := math.RoundToEven(math.Ldexp(mag, int(f.mant)-e))
		r = min(uint64(e-least)<<f.mant+uint64(min(q, 1<<20)), f.max)
	}
	if math.Signbit(v) {
		r |= f.sign()
	}
	return r
}

// bindCvtTiny binds the conversions to two numbers of a tiny format: of two f32, the first to the upper place, or of
// the halves of a packed operand. Each is divided by its scale if there are scales.
func bindCvtTiny(in *Inst) {
	f, g, relu := tinies[in.Type], formatOf(in.Type2), in.Has("relu")
	scaled := in.Has("scaled::n2::ue8m0")
	one := func(x, scale uint64) uint64 {
		v := g.value(x)
		if scaled {
			v /= power(scale)
		}
		if relu && math.Signbit(v) {
			return f.round(math.Max(v, 0)) // NaN stays
		}
		return f.round(v)
	}
	if in.Type2 == F32 {
		in.Eval = func(_ *Inst, a *Args) {
			a.D[0] = one(a.S[0]&0xffffffff, a.S[2]>>8)<<f.width | one(a.S[1]&0xffffffff, a.S[2])
		}
		return
	}
	in.Eval = func(_ *Inst, a *Args) {
		a.D[0] = one(a.S[0]>>16&0xffff, a.S[1]>>8)<<f.width | one(a.S[0]&0xffff, a.S[1])
	}
}

// bindCvtScale binds the conversions to two numbers of ue8m0, powers of two without a sign: of the magnitudes of two
// f32, the first to the upper place, or of the halves of a packed operand. A number that is too large becomes NaN, or
// with .satfinite the largest power.
func bindCvtScale(in *Inst) {
	g, up, satfinite := formatOf(in.Type2), in.Round == RP, in.Has("satfinite")
	one := func(x uint64) uint64 {
		v := math.Abs(g.value(x))
		e := -127
		switch {
		case v != v:
			return 0xff
		case math.IsInf(v, 0):
			e = 128
		case v > 0:
			e = math.Ilogb(v)
			if up && math.Ldexp(1, e) < v {
				e++
			}
		}
		if e > 127 && satfinite {
			e = 127
		}
		return uint64(max(e, -127) + 127)
	}
	if in.Type2 == F32 {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = one(a.S[0]&0xffffffff)<<8 | one(a.S[1]&0xffffffff) }
		return
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = one(a.S[0]>>16&0xffff)<<8 | one(a.S[0]&0xffff) }
}

// power is the number of a code of ue8m0, which is an exponent alone.
func power(x uint64) float64 {
	if x&0xff == 0xff {
		return math.NaN()
	}
	return math.Ldexp(1, int(x&0xff)-127)
}

// bindCvtFromTiny binds the conversions of two numbers of a tiny format to a packed pair. All are exact except those
// with a scale: each number is multiplied by a power of two before it is rounded.
func bindCvtFromTiny(in *Inst) {
	d, relu, satfinite, scaled := formatOf(in.Type), in.Has("relu"), in.Has("satfinite"), in.Has("scaled::n2::ue8m0")
	width, value := uint(8), power
	if f := tinies[in.Type2]; f != nil {
		width, value = f.width, f.value
	}
	mask := uint64(1)<<width - 1
	one := func(x, scale uint64) uint64 {
		v := value(x & mask)
		if scaled {
			v *= power(scale)
		}
		return d.narrow(d.round(v, RN), relu, satfinite)
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = one(a.S[0]>>width, a.S[1]>>8)<<16 | one(a.S[0], a.S[1]) }
}
