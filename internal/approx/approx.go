// Package approx computes the functions that PTX only approximates, in double precision. Package lanes computes them 32
// values at a time with the same steps. Every step is an operation that IEEE 754 rounds in one way, so both give the
// same bits on every processor.
package approx

import (
	"math"
	"slices"
)

// Exp2Terms returns the coefficients of 2^t, from that of t^0 on: ln(2)^n / n!. With |t| <= 1/2 the error of the
// truncation is below 2^-46 of the result.
func Exp2Terms() []float64 { return slices.Clone(exp2Terms) }

// Log2Terms returns the coefficients of atanh(s)/s in s^2, from that of s^2 on: 1/(2n+1). With |s| <= 1/5 the error of
// the truncation is below 2^-46 of the result.
func Log2Terms() []float64 { return slices.Clone(log2Terms) }

var exp2Terms = terms(12, func(n int) float64 {
	c := 1.0
	for i := 1; i <= n; i++ {
		c *= math.Ln2 / float64(i)
	}
	return c
})

var log2Terms = terms(9, func(n int) float64 { return 1 / float64(2*n+3) })

// Exp2Limit bounds the argument of Exp2 on both sides: beyond it the result is infinite, or zero, in double precision.
const Exp2Limit = 1200

// Log2Factor is 2 / ln(2).
const Log2Factor = 2 / math.Ln2

func terms(n int, f func(int) float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}

// polynomial computes c[0] + c[1]*x + ..., from the last coefficient on. Each step is rounded once.
func polynomial(c []float64, x float64) float64 {
	y := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		y = math.FMA(y, x, c[i])
	}
	return y
}

// Exp2 is 2^x, with a relative error below 2^-44.
func Exp2(x float64) float64 {
	if x != x {
		return x
	}
	x = min(max(x, -Exp2Limit), Exp2Limit)
	k := math.RoundToEven(x)
	return math.Ldexp(polynomial(exp2Terms, x-k), int(k))
}

// Log2 is the binary logarithm, with an error below 2^-44 of the result: NaN below 0, -Inf for 0.
func Log2(x float64) float64 {
	switch {
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x != x || math.IsInf(x, 1):
		return x
	}
	m, k := math.Frexp(x)
	if m < 0.75 { // m from 3/4 to 3/2
		m, k = 2*m, k-1
	}
	s := (m - 1) / (m + 1) // log(m) is 2*atanh(s)
	z := float64(s * s)
	y := math.FMA(float64(s*z), polynomial(log2Terms, z), s)
	return math.FMA(Log2Factor, y, float64(k))
}
