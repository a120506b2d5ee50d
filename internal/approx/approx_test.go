package approx

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestAccuracy compares with the functions of package math, which are right to the last bit or two.
func TestAccuracy(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := float64(float32(math.Ldexp(r.Float64()+0.5, r.IntN(18)-10)))
		for _, c := range []struct {
			name      string
			x         float64
			got, want float64
		}{
			{"Exp2", x, Exp2(x), math.Exp2(x)}, {"Exp2", -x, Exp2(-x), math.Exp2(-x)},
			{"Log2", x, Log2(x), log2(x)}, {"Log2", 1 / x, Log2(1 / x), log2(1 / x)},
			{"Log2", 1 + x/1024, Log2(1 + x/1024), log2(1 + x/1024)},
		} {
			if math.Abs(c.got-c.want) > math.Abs(c.want)*0x1p-44 {
				t.Fatalf("%s(%g) = %g, want %g", c.name, c.x, c.got, c.want)
			}
		}
	}
}

// log2 is math.Log2 but near 1, where that loses digits.
func log2(x float64) float64 {
	if x > 0.7 && x < 1.5 {
		return math.Log1p(x-1) / math.Ln2
	}
	return math.Log2(x)
}

func TestSpecial(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct{ got, want float64 }{
		{Exp2(0), 1}, {Exp2(10), 1024}, {Exp2(-126), 0x1p-126}, {Exp2(inf), inf}, {Exp2(-inf), 0}, {Exp2(1e30), inf}, {Exp2(-1e30), 0},
		{Log2(0), -inf}, {Log2(math.Copysign(0, -1)), -inf}, {Log2(inf), inf}, {Log2(1), 0}, {Log2(0x1p-149), -149}, {Log2(8), 3},
	} {
		if c.got != c.want {
			t.Errorf("%g, want %g", c.got, c.want)
		}
	}
	for _, x := range []float64{Exp2(math.NaN()), Log2(math.NaN()), Log2(-1), Log2(-inf)} {
		if x == x {
			t.Errorf("%g, want NaN", x)
		}
	}
}

// TestTerms computes the coefficients in many digits.
func TestTerms(t *testing.T) {
	ln2, _, err := big.ParseFloat("0.693147180559945309417232121458176568075500134360255254120680009", 10, 200, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	want := big.NewFloat(1).SetPrec(200)
	for n, got := range exp2Terms {
		if n > 0 {
			want.Mul(want, ln2)
			want.Quo(want, new(big.Float).SetInt64(int64(n)))
		}
		if w, _ := want.Float64(); math.Abs(got-w) > w*0x1p-50 {
			t.Errorf("term %d is %g, want %g", n, got, w)
		}
	}
}
