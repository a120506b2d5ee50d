package main

import (
	"math/big"

	"fencepost.dev/fencepost/internal/isa"
)

// form is a binary floating-point format.
type form struct {
	mant, exp int
	nan       uint64
}

var (
	f16  = form{10, 5, 0x7fff}
	bf16 = form{7, 8, 0x7fff}
	f32  = form{23, 8, 0x7fffffff}
	f64  = form{52, 11, 0xfff8000000000000}
	tf32 = form{10, 8, 0x3ffff}
)

// formOf returns the format of a type or of its elements.
func formOf(t isa.Type) form {
	switch t {
	case isa.F16, isa.F16x2:
		return f16
	case isa.BF16, isa.BF16x2:
		return bf16
	case isa.TF32:
		return tf32
	case isa.F64:
		return f64
	}
	return f32
}

func (f form) bits() int        { return 1 + f.mant + f.exp }
func (f form) sign() uint64     { return 1 << (f.bits() - 1) }
func (f form) infinity() uint64 { return (1<<f.exp - 1) << f.mant }
func (f form) least() int       { return 2 - 1<<(f.exp-1) } // exponent of the smallest normal
func (f form) one() uint64      { return (1<<(f.exp-1) - 1) << f.mant }
func (f form) subnormal(x uint64) bool {
	m := x &^ f.sign()
	return m > 0 && m < 1<<f.mant
}

// num is a value: a NaN, an infinity, or a rational number. neg is its sign, also that of zero.
type num struct {
	nan, inf, neg bool
	r             *big.Rat // magnitude
}

// decode returns the value of raw bits.
func (f form) decode(x uint64) num {
	n := num{neg: x&f.sign() != 0, r: new(big.Rat)}
	m := x &^ f.sign()
	if m >= f.infinity() {
		n.inf = m == f.infinity()
		n.nan = !n.inf
		return n
	}
	e := int(m >> f.mant)
	frac := m & (1<<f.mant - 1)
	if e == 0 {
		e = 1
	} else {
		frac |= 1 << f.mant
	}
	n.r.SetInt(new(big.Int).SetUint64(frac))
	n.r.Mul(n.r, pow2(e-1+f.least()-f.mant))
	return n
}

// pow2 returns 2^e.
func pow2(e int) *big.Rat {
	if e >= 0 {
		return new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(e)))
	}
	return new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), uint(-e)))
}

// floorLog2 returns the exponent of the leading bit of a positive rational.
func floorLog2(r *big.Rat) int {
	e := r.Num().BitLen() - r.Denom().BitLen()
	if r.Cmp(pow2(e)) < 0 {
		e--
	}
	return e
}

// encode rounds a magnitude to the format.
func (f form) encode(neg bool, r *big.Rat, mode string) uint64 {
	var sign uint64
	if neg {
		sign = f.sign()
	}
	if r.Sign() == 0 {
		return sign
	}
	e := max(floorLog2(r), f.least())
	scaled := new(big.Rat).Mul(r, pow2(f.mant-e))
	q := new(big.Int).Quo(scaled.Num(), scaled.Denom())
	rest := new(big.Rat).Sub(scaled, new(big.Rat).SetInt(q))
	if up(mode, neg, q.Bit(0) == 1, rest) {
		q.Add(q, big.NewInt(1))
	}
	// q counts units of 2^(e-mant). If q is 2^(mant+1) units, the sum is the encoding in the next binade.
	x := uint64(e-f.least())<<f.mant + q.Uint64()
	if x >= f.infinity() {
		x = f.infinity()
		if mode == "rz" || mode == "rm" && !neg || mode == "rp" && neg {
			x--
		}
	}
	return sign | x
}

// up reports whether a remainder below one unit rounds the magnitude up.
func up(mode string, neg, odd bool, rest *big.Rat) bool {
	half := rest.Cmp(big.NewRat(1, 2))
	switch mode {
	case "rz", "rzi":
		return false
	case "rm", "rmi":
		return neg && rest.Sign() > 0
	case "rp", "rpi":
		return !neg && rest.Sign() > 0
	case "rna":
		return half >= 0
	}
	return half > 0 || half == 0 && odd
}

// nanOf returns the NaN result of an operation on raw operands.
func (f form) nanOf(ops ...uint64) uint64 {
	if f.bits() == 64 {
		for _, x := range ops {
			if f.decode(x).nan {
				return x | 1<<51
			}
		}
	}
	return f.nan
}

func (f form) inf(neg bool) uint64 {
	if neg {
		return f.sign() | f.infinity()
	}
	return f.infinity()
}

// signed returns the value with its sign.
func (n num) signed() *big.Rat {
	if n.neg {
		return new(big.Rat).Neg(n.r)
	}
	return n.r
}

// sum returns x+y rounded. raw are the raw operands, for NaNs.
func (f form) sum(x, y num, mode string, raw ...uint64) uint64 {
	switch {
	case x.nan || y.nan || x.inf && y.inf && x.neg != y.neg:
		return f.nanOf(raw...)
	case x.inf:
		return f.inf(x.neg)
	case y.inf:
		return f.inf(y.neg)
	}
	s := new(big.Rat).Add(x.signed(), y.signed())
	if s.Sign() == 0 {
		neg := mode == "rm"
		if x.neg == y.neg && x.r.Sign() == 0 {
			neg = x.neg
		}
		return f.encode(neg, s, mode)
	}
	return f.encode(s.Sign() < 0, new(big.Rat).Abs(s), mode)
}

// product returns the exact product as a value.
func product(x, y num) num {
	p := num{neg: x.neg != y.neg, r: new(big.Rat)}
	switch {
	case x.nan || y.nan || x.inf && !y.inf && y.r.Sign() == 0 || y.inf && !x.inf && x.r.Sign() == 0:
		p.nan = true
	case x.inf || y.inf:
		p.inf = true
	default:
		p.r.Mul(x.r, y.r)
	}
	return p
}

// finish rounds a value.
func (f form) finish(n num, mode string, raw ...uint64) uint64 {
	switch {
	case n.nan:
		return f.nanOf(raw...)
	case n.inf:
		return f.inf(n.neg)
	}
	return f.encode(n.neg, n.r, mode)
}

// quotient returns x/y as a value.
func quotient(x, y num) num {
	q := num{neg: x.neg != y.neg, r: new(big.Rat)}
	switch {
	case x.nan || y.nan || x.inf && y.inf:
		q.nan = true
	case x.inf:
		q.inf = true
	case y.inf:
	case y.r.Sign() == 0:
		q.nan = x.r.Sign() == 0
		q.inf = !q.nan
	default:
		q.r.Quo(x.r, y.r)
	}
	return q
}

// root returns the square root. If it is irrational, the result is a rational so close that every format rounds it in
// the same way.
func root(x num) num {
	if x.nan || x.inf && !x.neg || !x.inf && x.r.Sign() == 0 {
		return x
	}
	if x.neg {
		return num{nan: true}
	}
	// sqrt(n/d) = sqrt(n*d)/d. A factor of 2^(2k) under the root gives k more bits.
	const k = 400
	v := new(big.Int).Mul(x.r.Num(), x.r.Denom())
	v.Lsh(v, 2*k)
	s := new(big.Int).Sqrt(v)
	exact := new(big.Int).Mul(s, s).Cmp(v) == 0
	r := new(big.Rat).SetInt(s)
	if !exact {
		r.Add(r, big.NewRat(1, 2))
	}
	r.Quo(r, new(big.Rat).SetInt(new(big.Int).Lsh(x.r.Denom(), k)))
	return num{r: r}
}

// signedInt and unsignedInt return the low bits of x.
func unsignedInt(x uint64, bits int) *big.Int {
	v := new(big.Int).SetUint64(x)
	return v.Mod(v, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
}

func signedInt(x uint64, bits int) *big.Int {
	v := unsignedInt(x, bits)
	if v.Bit(bits-1) == 1 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	return v
}

// intOf returns x as an integer of the type.
func intOf(x uint64, t isa.Type) *big.Int {
	if t.Signed() {
		return signedInt(x, 8*t.Size())
	}
	return unsignedInt(x, 8*t.Size())
}

// wrap returns the low bits of v.
func wrap(v *big.Int, bits int) uint64 {
	return new(big.Int).And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(1))).Uint64()
}

// clamp limits v to the range of a type.
func clamp(v *big.Int, t isa.Type) *big.Int {
	bits := uint(8 * t.Size())
	lo, hi := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), bits)
	if t.Signed() {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	switch {
	case v.Cmp(lo) < 0:
		return lo
	case v.Cmp(hi) > 0:
		return hi
	}
	return v
}
