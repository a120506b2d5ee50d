package main

import (
	"math/big"

	"fencepost.dev/fencepost/internal/isa"
)

// code is a format with so few numbers that all are listed.
type code struct {
	bits, mant, bias int
	list             []*big.Rat // the numbers that are not negative, by code
	nan              uint64     // the result of converting NaN
	infinite         bool       // the code after the numbers is infinity
	fixed            bool       // the numbers are the codes, in two's complement, divided by 64
}

func newCode(bits, mant, bias, count int, nan uint64) code {
	c := code{bits: bits, mant: mant, bias: bias, nan: nan}
	for x := range count {
		e, m := x>>mant, x%(1<<mant)
		if e == 0 {
			e = 1
		} else {
			m += 1 << mant
		}
		c.list = append(c.list, new(big.Rat).Mul(big.NewRat(int64(m), 1), pow2(e-bias-mant)))
	}
	return c
}

// codeOf returns the element format of a type of two tiny numbers. ok is false for other types.
func codeOf(t isa.Type) (c code, ok bool) {
	switch t {
	case isa.E4M3x2: // 1111.111 is NaN
		return newCode(8, 3, 7, 127, 0x7f), true
	case isa.E5M2x2: // as in IEEE 754
		c = newCode(8, 2, 15, 124, 0x7f)
		c.infinite = true
		return c, true
	case isa.E2M3x2:
		return newCode(6, 3, 1, 32, 31), true
	case isa.E3M2x2:
		return newCode(6, 2, 3, 32, 31), true
	case isa.E2M1x2:
		return newCode(4, 1, 1, 8, 7), true
	case isa.S2F6x2:
		return code{bits: 8, fixed: true}, true
	case isa.UE8M0x2:
		for x := range 255 {
			c.list = append(c.list, pow2(x-127))
		}
		c.bits = 9 // no sign
		return c, true
	}
	return c, false
}

// place returns how many bits each of two packed numbers takes.
func (c code) place() int {
	if c.bits == 4 {
		return 4
	}
	return 8
}

// encode returns the code of the nearest number. Of two it returns the even code.
func (c code) encode(n num) uint64 {
	if c.fixed {
		best, least := 127, (*big.Rat)(nil)
		for x := -128; x < 128 && !n.nan; x++ {
			switch d := new(big.Rat).Abs(new(big.Rat).Sub(n.signed(), big.NewRat(int64(x), 64))); {
			case n.inf && n.neg:
				best = -128
			case !n.inf && (least == nil || d.Cmp(least) < 0 || d.Cmp(least) == 0 && x%2 == 0):
				best, least = x, d
			}
		}
		return uint64(best) & 0xff
	}
	best := uint64(len(c.list) - 1)
	switch {
	case n.nan:
		return c.nan
	case n.inf:
	default:
		var least *big.Rat
		for x, v := range c.list {
			d := new(big.Rat).Abs(new(big.Rat).Sub(v, n.r))
			if least == nil || d.Cmp(least) < 0 || d.Cmp(least) == 0 && x%2 == 0 {
				best, least = uint64(x), d
			}
		}
	}
	if n.neg {
		best |= 1 << (c.bits - 1)
	}
	return best
}

// power returns the code of the nearest power of two that is not less than the magnitude if up is set, or not greater
// otherwise. 0xff is NaN, and the result for magnitudes that are too large.
func (c code) power(n num, up, satfinite bool) uint64 {
	switch {
	case n.nan:
		return 0xff
	case !n.inf && !up:
		best := uint64(0)
		for x, v := range c.list {
			if v.Cmp(n.r) <= 0 {
				best = uint64(x)
			}
		}
		return best
	case !n.inf:
		for x, v := range c.list {
			if v.Cmp(n.r) >= 0 {
				return uint64(x)
			}
		}
	}
	if satfinite {
		return 0xfe
	}
	return 0xff
}

func (c code) decode(x uint64) num {
	if c.fixed {
		v := int64(int8(x))
		return num{neg: v < 0, r: big.NewRat(max(v, -v), 64)}
	}
	n := num{neg: x>>(c.bits-1)&1 == 1}
	x &= 1<<(c.bits-1) - 1
	switch {
	case int(x) < len(c.list):
		n.r = c.list[x]
	case c.infinite && int(x) == len(c.list):
		n.inf = true
	default:
		n.nan = true
	}
	return n
}

// toTiny converts two f32, or the halves of a packed operand. If there are scales, each is divided by a power of two.
func toTiny(j *job, in []uint64, c code) uint64 {
	f := formOf(j.Inst().Type2)
	hi, lo, rest := in[0]>>16, in[0]&0xffff, in[1:]
	if j.Inst().Type2 == isa.F32 {
		hi, lo, rest = in[0], in[1], in[2:]
	}
	scales := uint64(127<<8 | 127)
	if len(rest) > 0 {
		scales = rest[0]
	}
	one := func(x, scale uint64) uint64 {
		n := f.decode(x)
		switch {
		case scale&0xff == 0xff:
			n = num{nan: true}
		case !n.nan && !n.inf:
			n.r = new(big.Rat).Mul(n.r, pow2(127-int(scale&0xff)))
		}
		if j.Inst().Type == isa.UE8M0x2 {
			return c.power(n, j.Has("rp"), j.Has("satfinite"))
		}
		if j.Has("relu") && n.neg && !n.nan {
			return 0
		}
		return c.encode(n)
	}
	return one(hi, scales>>8)<<c.place() | one(lo, scales)
}

// fromTiny converts two tiny numbers to the halves of a packed result. If there are scales, each is multiplied by a
// power of two.
func fromTiny(j *job, in []uint64, c code) uint64 {
	f := formOf(j.typ)
	one := func(x, scale uint64) uint64 {
		n := c.decode(x & (1<<c.place() - 1))
		switch {
		case scale&0xff == 0xff:
			n = num{nan: true}
		case !n.nan && !n.inf:
			n.r = new(big.Rat).Mul(n.r, pow2(int(scale&0xff)-127))
		}
		return after(j, f, f.finish(n, "rn"), false)
	}
	scales := uint64(127<<8 | 127)
	if len(in) > 1 {
		scales = in[1]
	}
	return one(in[0]>>c.place(), scales>>8)<<16 | one(in[0], scales)
}
