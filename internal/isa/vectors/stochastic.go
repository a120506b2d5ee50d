package main

import (
	"math/big"

	"fencepost.dev/fencepost/internal/isa"
)

// stochastic computes cvt.rs. A magnitude has a lesser and a greater neighbour. The result is the greater one if adding
// random bits to the distance from the lesser one, in units of the distance of the two, carries.
func stochastic(j *job, in []uint64) uint64 {
	random := in[len(in)-1]
	in = in[:len(in)-1]
	bits := 32 / len(in)
	var r uint64
	for i, x := range in {
		share := random >> (32 - bits*(i+1)) & (1<<bits - 1)
		n := f32.decode(x)
		switch f := formOf(j.typ); {
		case len(in) == 4:
			c := fourOf(j)
			r = r<<c.place() | c.between(n, share, bits, j.Has("relu"))
		case n.nan:
			r = r<<16 | f.nan
		default:
			r = r<<16 | after(j, f, f.between(n, share, bits), true)
		}
	}
	return r
}

// fourOf returns the element format of a type of four tiny numbers.
func fourOf(j *job) code {
	for name, t := range map[string]isa.Type{"e4m3x4": isa.E4M3x2, "e5m2x4": isa.E5M2x2, "e2m3x4": isa.E2M3x2, "e3m2x4": isa.E3M2x2, "e2m1x4": isa.E2M1x2} {
		if j.Has(name) {
			c, _ := codeOf(t)
			return c
		}
	}
	panic("BUG: no four numbers in " + j.Text)
}

// carries reports whether random bits and the first bits of the fraction (x-lo)/(hi-lo) carry.
func carries(x, lo, hi *big.Rat, random uint64, bits int) bool {
	part := new(big.Rat).Quo(new(big.Rat).Sub(x, lo), new(big.Rat).Sub(hi, lo))
	part.Mul(part, pow2(bits))
	first := new(big.Int).Quo(part.Num(), part.Denom())
	return first.Uint64()+random >= 1<<bits
}

// between rounds to one of the two codes next to a number. The last code is the greatest.
func (c code) between(n num, random uint64, bits int, relu bool) uint64 {
	best := uint64(len(c.list) - 1)
	switch {
	case n.nan:
		return c.nan
	case n.neg && relu:
		return 0
	case n.inf:
	default:
		for x := range len(c.list) - 1 {
			lo, hi := c.list[x], c.list[x+1]
			if n.r.Cmp(lo) >= 0 && n.r.Cmp(hi) < 0 {
				if best = uint64(x); carries(n.r, lo, hi, random, bits) {
					best++
				}
				break
			}
		}
	}
	if n.neg {
		best |= 1 << (c.bits - 1)
	}
	return best
}

// between rounds to one of the two values of a format next to a number.
func (f form) between(n num, random uint64, bits int) uint64 {
	sign := uint64(0)
	if n.neg {
		sign = f.sign()
	}
	if n.inf {
		return sign | f.infinity()
	}
	lo := f.finish(num{r: n.r}, "rz")
	x := f.decode(lo).r
	var hi *big.Rat
	if next := f.decode(lo + 1); next.inf { // the value that would follow
		hi = new(big.Rat).Sub(new(big.Rat).Mul(big.NewRat(2, 1), x), f.decode(lo-1).r)
	} else {
		hi = next.r
	}
	if n.r.Cmp(hi) >= 0 || carries(n.r, x, hi, random, bits) {
		lo++
	}
	return sign | lo
}
