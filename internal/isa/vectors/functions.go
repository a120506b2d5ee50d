package main

import "math/big"

// prec is sufficient for reducing the largest argument (2^128) and for the smallest result (2^-149), with a large
// margin.
const prec = 900

func num2float(n num) *big.Float { return new(big.Float).SetPrec(prec).SetRat(n.signed()) }
func flt(x float64) *big.Float   { return new(big.Float).SetPrec(prec).SetFloat64(x) }
func fnew() *big.Float           { return new(big.Float).SetPrec(prec) }

func float2num(x *big.Float) num {
	r, _ := x.Rat(nil)
	return num{neg: x.Sign() < 0, r: new(big.Rat).Abs(r)}
}

// function computes sin, cos, lg2, ex2 and tanh to many more bits than any format has.
func function(op string, x num) num {
	zero := !x.nan && !x.inf && x.r.Sign() == 0
	switch {
	case x.nan:
		return x
	case op == "sin" || op == "cos":
		if x.inf {
			return num{nan: true}
		}
		if op == "sin" && zero {
			return x
		}
		s, c := sinCos(num2float(x))
		if op == "sin" {
			return float2num(s)
		}
		return float2num(c)
	case op == "lg2":
		switch {
		case zero:
			return num{inf: true, neg: true}
		case x.neg:
			return num{nan: true}
		case x.inf:
			return x
		}
		return float2num(fnew().Quo(ln(num2float(x)), ln2()))
	case op == "ex2":
		return exp2(x)
	case op == "tanh":
		return tanh(x, zero)
	}
	panic("BUG: no oracle for " + op)
}

func exp2(x num) num {
	big1 := big.NewRat(5000, 1)
	switch {
	case x.inf && x.neg:
		return num{r: new(big.Rat)}
	case x.inf:
		return x
	case x.r.Cmp(big1) > 0 && x.neg:
		return num{r: pow2(-5000)}
	case x.r.Cmp(big1) > 0:
		return num{r: pow2(5000)}
	}
	return float2num(exp(fnew().Mul(num2float(x), ln2())))
}

func tanh(x num, zero bool) num {
	one := num{neg: x.neg, r: big.NewRat(1, 1)}
	switch {
	case zero:
		return x
	case x.inf || x.r.Cmp(big.NewRat(200, 1)) > 0:
		return one
	}
	e := exp(fnew().Mul(flt(2), num2float(x)))
	return float2num(fnew().Quo(fnew().Sub(e, flt(1)), fnew().Add(e, flt(1))))
}

// series sums the terms from first on, until they no longer change the sum.
func series(first *big.Float, next func(t *big.Float, n int) *big.Float) *big.Float {
	sum, t := fnew().Set(first), first
	for n := 1; ; n++ {
		t = next(t, n)
		if t.Sign() == 0 || sum.Sign() != 0 && t.MantExp(nil) < sum.MantExp(nil)-prec-2 {
			return sum
		}
		sum.Add(sum, t)
	}
}

// atanhInv returns atanh(1/k).
func atanhInv(k float64) *big.Float {
	return oddSeries(fnew().Quo(flt(1), flt(k)), 1)
}

// oddSeries returns x + s x^3/3 + s^2 x^5/5 + ...: atanh for s = 1, atan for s = -1.
func oddSeries(x *big.Float, s float64) *big.Float {
	x2 := fnew().Mul(fnew().Mul(x, x), flt(s))
	p := fnew().Set(x)
	return series(x, func(_ *big.Float, n int) *big.Float {
		p = fnew().Mul(p, x2)
		return fnew().Quo(p, flt(float64(2*n+1)))
	})
}

func ln2() *big.Float { return fnew().Mul(flt(2), atanhInv(3)) }

// pi uses Machin's formula.
func pi() *big.Float {
	a := fnew().Mul(flt(16), oddSeries(fnew().Quo(flt(1), flt(5)), -1))
	return a.Sub(a, fnew().Mul(flt(4), oddSeries(fnew().Quo(flt(1), flt(239)), -1)))
}

// ln returns the logarithm of a positive number: for m * 2^e with m in [1/2, 1), ln m = 2 atanh((m-1)/(m+1)).
func ln(x *big.Float) *big.Float {
	m := fnew()
	e := x.MantExp(m)
	z := fnew().Quo(fnew().Sub(m, flt(1)), fnew().Add(m, flt(1)))
	l := flt(0)
	if z.Sign() != 0 {
		l = fnew().Mul(flt(2), oddSeries(z, 1))
	}
	return l.Add(l, fnew().Mul(flt(float64(e)), ln2()))
}

// exp reduces the argument and squares the result.
func exp(x *big.Float) *big.Float {
	const halvings = 40
	y := fnew().Set(x)
	y.SetMantExp(y, -halvings)
	r := series(flt(1), func(t *big.Float, n int) *big.Float {
		return fnew().Quo(fnew().Mul(t, y), flt(float64(n)))
	})
	for range halvings {
		r = fnew().Mul(r, r)
	}
	return r
}

// sinCos reduces the argument modulo 2 pi and uses the power series.
func sinCos(x *big.Float) (s, c *big.Float) {
	turn := fnew().Mul(flt(2), pi())
	k, _ := fnew().Quo(x, turn).Int(nil)
	y := fnew().Sub(x, fnew().Mul(fnew().SetInt(k), turn))
	y2 := fnew().Neg(fnew().Mul(y, y))
	s = series(y, func(t *big.Float, n int) *big.Float {
		return fnew().Quo(fnew().Mul(t, y2), flt(float64(2*n*(2*n+1))))
	})
	c = series(flt(1), func(t *big.Float, n int) *big.Float {
		return fnew().Quo(fnew().Mul(t, y2), flt(float64((2*n-1)*2*n)))
	})
	return s, c
}
