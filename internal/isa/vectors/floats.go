package main

import (
	"math/big"

	"fencepost.dev/fencepost/internal/isa"
)

// roundingOf returns the rounding mode of a spelling.
func roundingOf(j *job) string {
	for _, m := range j.Mods {
		switch m {
		case "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi":
			return m
		}
	}
	return "rn"
}

// floating computes the rows of floating-point arithmetic.
func floating(j *job, in []uint64) []uint64 {
	f := formOf(j.typ)
	switch j.typ {
	case isa.F16x2, isa.BF16x2:
		return []uint64{elements(2, 16, in, func(p []uint64) uint64 { return floating1(j, p, f) })}
	case isa.F32x2:
		return []uint64{elements(2, 32, in, func(p []uint64) uint64 { return floating1(j, p, f) })}
	}
	return []uint64{floating1(j, in, f)}
}

// floating1 computes one result.
func floating1(j *job, in []uint64, f form) uint64 {
	in = append([]uint64{}, in...)
	if j.op == "rcp" && f == f64 && j.Has("approx") || j.op == "rsqrt" && f == f64 && j.Has("ftz") {
		return upperHalf(j, in[0])
	}
	if j.Has("ftz") {
		for i, x := range in {
			if f.subnormal(x) {
				in[i] = x & f.sign()
			}
		}
	}
	r := compute(j, in, f)
	if j.Has("relu") && r&f.sign() != 0 && !f.decode(r).nan {
		r = 0
	}
	if j.Has("ftz") && f.subnormal(r) {
		r &= f.sign()
	}
	if j.Has("sat") {
		r = clampToOne(f, r)
	}
	return r
}

// upperHalf computes rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64.
func upperHalf(j *job, x uint64) uint64 {
	x &= 0xffffffff00000000
	if f64.subnormal(x) {
		x &= f64.sign()
	}
	n := f64.decode(x)
	if j.op == "rsqrt" {
		n = inverse(rootOrInf(n))
	} else {
		n = inverse(n)
	}
	r := f64.finish(n, "rn")
	if n.nan {
		return 0x7fffffff00000000
	}
	if f64.subnormal(r) {
		r &= f64.sign()
	}
	return r & 0xffffffff00000000
}

func inverse(n num) num { return quotient(num{r: big.NewRat(1, 1)}, n) }

// rootOrInf returns the root. The root of -0 is -0.
func rootOrInf(n num) num { return root(n) }

// mixed computes the rows of mixed precision. All sources except the last are of the 16-bit format.
func mixed(j *job, in []uint64) uint64 {
	g, mode := formOf(j.Inst().Type2), roundingOf(j)
	x, z := g.decode(in[0]), f32.decode(in[len(in)-1])
	switch j.op {
	case "sub":
		z.neg = !z.neg
	case "fma":
		x = product(x, g.decode(in[1]))
	}
	r := f32.sum(x, z, mode)
	if j.Has("sat") {
		r = clampToOne(f32, r)
	}
	return r
}

// clampToOne applies .sat.
func clampToOne(f form, r uint64) uint64 {
	switch n := f.decode(r); {
	case n.nan || n.neg:
		return 0
	case n.inf || n.r.Cmp(big.NewRat(1, 1)) > 0:
		return f.one()
	}
	return r
}

// compute computes the operation, without the modifications of its operands and its result.
func compute(j *job, in []uint64, f form) uint64 {
	mode := roundingOf(j)
	val := make([]num, len(in))
	for i, x := range in {
		val[i] = f.decode(x)
	}
	switch j.op {
	case "add":
		return f.sum(val[0], val[1], mode, in...)
	case "sub":
		y := val[1]
		y.neg = !y.neg
		return f.sum(val[0], y, mode, in...)
	case "mul":
		return f.finish(product(val[0], val[1]), mode, in...)
	case "fma", "mad":
		return f.sum(product(val[0], val[1]), val[2], mode, in...)
	case "div":
		return f.finish(quotient(val[0], val[1]), mode, in...)
	case "rcp":
		return f.finish(inverse(val[0]), mode, in...)
	case "sqrt":
		return f.finish(root(val[0]), mode, in...)
	case "rsqrt":
		return f.finish(inverse(rootOrInf(val[0])), mode, in...)
	case "abs":
		return in[0] &^ f.sign()
	case "neg":
		return in[0] ^ f.sign()
	case "min", "max":
		r := smallest(j, f, in[0], in[1])
		if len(in) == 3 {
			r = smallest(j, f, r, in[2])
		}
		return r
	case "copysign":
		return in[0]&f.sign() | in[1]&^f.sign()
	case "testp":
		return testp(j, f, val[0], in[0])
	}
	return f.finish(function(j.op, val[0]), "rn")
}

// smallest returns the min or max of two values.
func smallest(j *job, f form, a, b uint64) uint64 {
	sign := (a ^ b) & f.sign()
	if j.Has("abs") {
		a, b = a&^f.sign(), b&^f.sign()
	}
	x, y := f.decode(a), f.decode(b)
	r := a
	switch {
	case x.nan && y.nan, j.Has("NaN") && (x.nan || y.nan):
		return f.nanOf(a, b)
	case x.nan:
		r = b
	case y.nan:
	default:
		c := order(x, y)
		if c == 0 && x.neg != y.neg { // of two zeros the negative one is smaller
			c = 1
			if x.neg {
				c = -1
			}
		}
		if c > 0 == (j.op == "min") && c != 0 {
			r = b
		}
	}
	if j.Has("xorsign") {
		r |= sign
	}
	return r
}

// order compares two numbers.
func order(x, y num) int {
	key := func(n num) int {
		switch {
		case !n.inf:
			return 0
		case n.neg:
			return -1
		}
		return 1
	}
	if kx, ky := key(x), key(y); kx != 0 || ky != 0 {
		return kx - ky
	}
	return x.signed().Cmp(y.signed())
}

func testp(j *job, f form, n num, raw uint64) uint64 {
	var r bool
	switch {
	case j.Has("finite"):
		r = !n.nan && !n.inf
	case j.Has("infinite"):
		r = n.inf
	case j.Has("number"):
		r = !n.nan
	case j.Has("notanumber"):
		r = n.nan
	case j.Has("normal"):
		r = !n.nan && !n.inf && !f.subnormal(raw) // zeros too, by the manual
	case j.Has("subnormal"):
		r = f.subnormal(raw)
	}
	return flag(r)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
