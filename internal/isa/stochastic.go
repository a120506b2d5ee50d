package isa

import "math"

// fours are the types of two tiny numbers, by the name of four.
var fours = map[string]Type{"e4m3x4": E4M3x2, "e5m2x4": E5M2x2, "e2m3x4": E2M3x2, "e3m2x4": E3M2x2, "e2m1x4": E2M1x2}

const noteStochastic = "With .rs each element uses a part of the random bits, the first element the uppermost: 16 bits of two " +
	"elements, 8 bits of four. They are added to the first bits that are cut off, and a carry rounds the magnitude up. The " +
	"manual's figures may distribute the bits differently."

// bindCvtStochastic binds the conversions of f32 with random bits, the last source, to two or four numbers that are packed.
func bindCvtStochastic(in *Inst) {
	relu, satfinite := in.Has("relu"), in.Has("satfinite")
	count, width := 2, uint(16)
	d := formatOf(in.Type)
	one := func(v float64, random uint64) uint64 {
		if v != v {
			return d.nan
		}
		r := min(roundUpBy(v, int(d.mant), 1-int(d.bias()), random, 16), d.inf())
		if math.Signbit(v) {
			r |= d.sign()
		}
		return d.narrow(r, relu, satfinite)
	}
	for _, m := range in.Mods {
		f := tinies[fours[m]]
		if f == nil {
			continue
		}
		count, width = 4, f.width
		one = func(v float64, random uint64) uint64 {
			if v != v {
				return f.round(v)
			}
			r := min(roundUpBy(v, int(f.mant), 1-f.bias(), random, 8), f.max)
			switch {
			case math.Signbit(v) && relu:
				return 0
			case math.Signbit(v):
				r |= f.sign()
			}
			return r
		}
	}
	share := 32 / count
	in.Eval = func(_ *Inst, a *Args) {
		var r uint64
		for i := range count {
			random := a.S[count] >> (share * (count - 1 - i)) & (1<<share - 1)
			r = r<<width | one(fmtF32.value(a.S[i]&0xffffffff), random)
		}
		a.D[0] = r
	}
}

// roundUpBy gives the code of the magnitude of a number in a format of mant bits of fraction and a least exponent, with no upper limit. It is
// rounded up where the first n of the bits that are cut off and as many random ones carry.
func roundUpBy(v float64, mant, least int, random uint64, n int) uint64 {
	mag, e := math.Abs(v), least
	switch {
	case math.IsInf(v, 0):
		return math.MaxInt64
	case mag > 0:
		e = max(math.Ilogb(mag), least)
	}
	q := math.Ldexp(mag, mant-e)
	whole := math.Floor(q)
	if uint64(math.Ldexp(q-whole, n))+random >= 1<<n {
		whole++
	}
	return uint64(e-least)<<mant + uint64(whole)
}
