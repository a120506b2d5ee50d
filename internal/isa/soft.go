package isa

import (
	"math"
	"math/big"
	"math/bits"
)

// Bit-exact floating point in every rounding mode.
//
// Sums, products, quotients and roots of formats up to 32 bits are computed in float64 rounded to odd: truncated, with
// the last bit set if anything was lost. Rounding that to a format at least two bits shorter is the same as rounding
// the exact value, in any mode, so nothing is rounded twice. For float64 itself the result rounded to nearest is
// compared with the exact value and moved by one step if the mode requires it.

// format is a binary interchange format narrower than 64 bits, or f64.
type format struct {
	mant, exp uint   // numbers of bits of the stored mantissa and of the exponent
	nan       uint64 // the NaN that operations generate
}

var (
	fmtF16  = &format{10, 5, 0x7fff}
	fmtBF16 = &format{7, 8, 0x7fff}
	fmtF32  = &format{23, 8, 0x7fffffff}
	fmtTF32 = &format{10, 8, 0x3ffff} // placed in the upper 19 bits of a b32 register
	fmtF64  = &format{52, 11, 0xfff8000000000000}
)

func (f *format) bias() int     { return 1<<(f.exp-1) - 1 }
func (f *format) inf() uint64   { return (1<<f.exp - 1) << f.mant }
func (f *format) sign() uint64  { return 1 << (f.mant + f.exp) }
func (f *format) width() uint64 { return f.sign()<<1 - 1 }

func (f *format) isNaN(x uint64) bool { return x&(f.sign()-1) > f.inf() }

// isSubnormal is true for nonzero subnormals.
func (f *format) isSubnormal(x uint64) bool {
	m := x & (f.sign() - 1)
	return m != 0 && m>>f.mant == 0
}

// flush replaces a subnormal by a zero of the same sign.
func (f *format) flush(x uint64) uint64 {
	if f.isSubnormal(x) {
		return x & f.sign()
	}
	return x
}

// value is the number as a float64; NaN for NaN.
func (f *format) value(x uint64) float64 {
	switch f.mant {
	case 23:
		return float64(math.Float32frombits(uint32(x)))
	case 52:
		return math.Float64frombits(x)
	}
	m := x & (1<<f.mant - 1)
	e := int(x >> f.mant & (1<<f.exp - 1))
	var v float64
	switch {
	case e == 1<<f.exp-1 && m != 0:
		return math.NaN()
	case e == 1<<f.exp-1:
		v = math.Inf(1)
	case e == 0:
		v = math.Ldexp(float64(m), 1-f.bias()-int(f.mant))
	default:
		v = math.Ldexp(float64(m|1<<f.mant), e-f.bias()-int(f.mant))
	}
	if x&f.sign() != 0 {
		return -v
	}
	return v
}

// pack rounds (-1)^neg * m * 2^e to the format. m may have a sticky last bit if it has at least two more bits than
// needed.
func (f *format) pack(neg bool, m uint64, e int, mode Rounding) uint64 {
	var sign uint64
	if neg {
		sign = f.sign()
	}
	if m == 0 {
		return sign
	}
	lead := bits.Len64(m) - 1
	exp := e + lead            // of the leading bit
	drop := lead - int(f.mant) // bits below the last kept one
	if least := 1 - f.bias(); exp < least {
		drop += least - exp
		exp = least
	}
	var q uint64
	switch {
	case drop <= 0:
		q = m << uint(-drop)
	case drop > 64:
		if roundsUp(mode, neg, false, 1) {
			q = 1
		}
	default:
		q = m >> uint(drop)
		rest := m << uint(64-drop) // the dropped bits, left-aligned
		if roundsUp(mode, neg, q&1 != 0, rest) {
			q++
		}
	}
	// q contains the implicit bit if normal, so adding the exponent minus one carries correctly.
	r := uint64(exp+f.bias()-1)<<f.mant + q
	if r >= f.inf() {
		r = f.inf()
		if mode == RZ || mode == RM && !neg || mode == RP && neg {
			r--
		}
	}
	return sign | r
}

// roundsUp decides whether the magnitude goes up, for dropped bits given left-aligned in 64.
func roundsUp(mode Rounding, neg, odd bool, rest uint64) bool {
	const half = 1 << 63
	switch mode {
	case RZ, RZI:
		return false
	case RM, RMI:
		return neg && rest != 0
	case RP, RPI:
		return !neg && rest != 0
	case RNA:
		return rest >= half
	}
	return rest > half || rest == half && odd
}

// round converts a float64 that is exact or rounded to odd to the format. NaN becomes the format's default NaN.
func (f *format) round(x float64, mode Rounding) uint64 {
	b := math.Float64bits(x)
	m, e, neg := b&(1<<52-1), int(b>>52&0x7ff), b>>63 != 0
	switch {
	case e == 0x7ff && m != 0:
		return f.nan
	case e == 0x7ff:
		if neg {
			return f.inf() | f.sign()
		}
		return f.inf()
	case e == 0:
		e = 1
	default:
		m |= 1 << 52
	}
	return f.pack(neg, m, e-1075, mode)
}

// toOdd moves x, a value rounded to nearest whose error (exact minus x) has the sign of err, to the odd neighbour.
func toOdd(x, err float64) float64 {
	if err == 0 || x != x || math.IsInf(x, 0) {
		return x
	}
	u := math.Float64bits(x)
	if u&1 != 0 {
		return x
	}
	if (err > 0) == (x > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}

// addOdd is a+b rounded to odd. The explicit conversions keep the compiler from fusing operations.
func addOdd(a, b float64) float64 {
	s := float64(a + b)
	bb := float64(s - a)
	err := float64(a-float64(s-bb)) + float64(b-bb)
	if err != err { // an infinity is involved
		return s
	}
	return toOdd(s, err)
}

// divOdd is a/b rounded to odd, for operands of 32 bits or fewer (no underflow).
func divOdd(a, b float64) float64 {
	q := a / b
	if q == 0 || q != q || math.IsInf(q, 0) || math.IsInf(b, 0) {
		return q
	}
	r := math.FMA(-q, b, a)
	if b < 0 {
		r = -r
	}
	return toOdd(q, r)
}

// sqrtOdd is the root rounded to odd, for operands of 32 bits or fewer.
func sqrtOdd(a float64) float64 {
	s := math.Sqrt(a)
	if s == 0 || s != s || math.IsInf(s, 0) {
		return s
	}
	return toOdd(s, math.FMA(-s, s, a))
}

// zeroSum sets the sign of a zero sum of a and b: minus in mode rm unless both are plus.
func zeroSum(s, a, b float64, mode Rounding) float64 {
	if s == 0 && mode == RM && (math.Signbit(a) || math.Signbit(b)) {
		return math.Copysign(0, -1)
	}
	return s
}

// The operations of the narrow formats, on raw bits.

func (f *format) add(a, b uint64, mode Rounding) uint64 {
	x, y := f.value(a), f.value(b)
	return f.round(zeroSum(addOdd(x, y), x, y, mode), mode)
}

func (f *format) mul(a, b uint64, mode Rounding) uint64 {
	return f.round(f.value(a)*f.value(b), mode) // exact in float64
}

func (f *format) fma(a, b, c uint64, mode Rounding) uint64 {
	p, z := f.value(a)*f.value(b), f.value(c) // exact in float64
	return f.round(zeroSum(addOdd(p, z), p, z, mode), mode)
}

func (f *format) div(a, b uint64, mode Rounding) uint64 {
	return f.round(divOdd(f.value(a), f.value(b)), mode)
}

func (f *format) sqrt(a uint64, mode Rounding) uint64 { return f.round(sqrtOdd(f.value(a)), mode) }

// saturate clamps to [0, 1]; NaN gives +0.
func (f *format) saturate(x uint64) uint64 {
	one := uint64(f.bias()) << f.mant
	switch {
	case f.isNaN(x), x&f.sign() != 0:
		return 0
	case x > one:
		return one
	}
	return x
}

// The operations of f64, on raw bits.

// nan64 returns the result of an operation with a NaN operand: the first such operand, made quiet.
func nan64(ops ...uint64) (uint64, bool) {
	for _, x := range ops {
		if fmtF64.isNaN(x) {
			return x | 1<<51, true
		}
	}
	return 0, false
}

// fix64 finishes a result rounded to nearest. A NaN becomes the default NaN. Otherwise the result is moved if the mode
// requires it, given the sign of the exact value relative to the result.
func fix64(y float64, mode Rounding, exactMinusY func() int) uint64 {
	if y != y {
		return fmtF64.nan
	}
	if mode == RN || mode == NoRound {
		return math.Float64bits(y)
	}
	d := exactMinusY()
	switch {
	case d < 0 && (mode == RM || mode == RZ && y > 0):
		y = math.Nextafter(y, math.Inf(-1))
	case d > 0 && (mode == RP || mode == RZ && y < 0):
		y = math.Nextafter(y, math.Inf(1))
	}
	return math.Float64bits(y)
}

// exactPrec is enough for any sum of a float64 and a product of two: exponents from -2148 to 2048.
const exactPrec = 4300

func bigF(x float64) *big.Float { return new(big.Float).SetPrec(exactPrec).SetFloat64(x) }

func bigProduct(a, b float64) *big.Float {
	return new(big.Float).SetPrec(exactPrec).Mul(bigF(a), bigF(b))
}

func add64(a, b uint64, mode Rounding) uint64 {
	if n, ok := nan64(a, b); ok {
		return n
	}
	x, y := math.Float64frombits(a), math.Float64frombits(b)
	s := zeroSum(x+y, x, y, mode)
	return fix64(s, mode, func() int {
		if math.IsInf(x, 0) || math.IsInf(y, 0) {
			return 0
		}
		return new(big.Float).SetPrec(exactPrec).Add(bigF(x), bigF(y)).Cmp(bigF(s))
	})
}

func mul64(a, b uint64, mode Rounding) uint64 {
	if n, ok := nan64(a, b); ok {
		return n
	}
	x, y := math.Float64frombits(a), math.Float64frombits(b)
	p := x * y
	return fix64(p, mode, func() int {
		if math.IsInf(x, 0) || math.IsInf(y, 0) {
			return 0
		}
		return bigProduct(x, y).Cmp(bigF(p))
	})
}

func fma64(a, b, c uint64, mode Rounding) uint64 {
	if n, ok := nan64(a, b, c); ok {
		return n
	}
	x, y, z := math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c)
	r := math.FMA(x, y, z)
	finite := !math.IsInf(x, 0) && !math.IsInf(y, 0) && !math.IsInf(z, 0)
	exact := func() *big.Float {
		e := bigProduct(x, y)
		return e.Add(e, bigF(z))
	}
	if r == 0 && mode == RM {
		switch {
		case z == 0 && (x == 0 || y == 0):
			r = zeroSum(r, math.Copysign(0, x)*math.Copysign(1, y), z, mode)
		case z != 0 && exact().Sign() == 0:
			r = math.Copysign(0, -1)
		}
	}
	return fix64(r, mode, func() int {
		if !finite {
			return 0
		}
		return exact().Cmp(bigF(r))
	})
}

func div64(a, b uint64, mode Rounding) uint64 {
	if n, ok := nan64(a, b); ok {
		return n
	}
	x, y := math.Float64frombits(a), math.Float64frombits(b)
	q := x / y
	return fix64(q, mode, func() int {
		switch {
		case math.IsInf(x, 0) || math.IsInf(y, 0) || y == 0:
			return 0
		case math.IsInf(q, 1):
			return -1
		case math.IsInf(q, -1):
			return 1
		}
		d := bigF(x).Cmp(bigProduct(q, y))
		if y < 0 {
			d = -d
		}
		return d
	})
}

func sqrt64(a uint64, mode Rounding) uint64 {
	if n, ok := nan64(a); ok {
		return n
	}
	x := math.Float64frombits(a)
	s := math.Sqrt(x)
	return fix64(s, mode, func() int {
		if math.IsInf(x, 0) || x == 0 {
			return 0
		}
		return bigF(x).Cmp(bigProduct(s, s))
	})
}

// roundIntegral rounds to an integral value and keeps the sign of zero.
func roundIntegral(x float64, mode Rounding) float64 {
	var r float64
	switch mode {
	case RZI, RZ:
		r = math.Trunc(x)
	case RMI, RM:
		r = math.Floor(x)
	case RPI, RP:
		r = math.Ceil(x)
	default:
		r = math.RoundToEven(x)
	}
	return math.Copysign(r, x)
}
