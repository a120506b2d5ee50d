package isa

import (
	"math"

	approximate "fencepost.dev/fencepost/internal/approx"
)

// floatRows is the manual's "Floating Point Instructions".
var floatRows = []*Row{
	{Op: "testp", Doc: "Floating Point: testp", Bind: bindTestp, Note: "Zeros count as normal.", Forms: forms(
		".mode.type p:pred, a; mode: finite infinite number notanumber normal subnormal; type: f32 f64")},
	{Op: "copysign", Doc: "Floating Point: copysign", Bind: bindCopysign, Forms: forms(".type d, a, b; type: f32 f64")},
	{Op: "add", Doc: "Floating Point: add", Bind: bindFloatAdd, Note: noteNaN, Forms: forms(
		"{.rnd}{.ftz}{.sat}.f32 d, a, b", "{.rnd}{.ftz}.f32x2 d, a, b", "{.rnd}.f64 d, a, b")},
	{Op: "sub", Doc: "Floating Point: sub", Bind: bindFloatSub, Note: noteNaN, Forms: forms(
		"{.rnd}{.ftz}{.sat}.f32 d, a, b", "{.rnd}{.ftz}.f32x2 d, a, b", "{.rnd}.f64 d, a, b")},
	{Op: "mul", Doc: "Floating Point: mul", Bind: bindFloatMul, Note: noteNaN, Forms: forms(
		"{.rnd}{.ftz}{.sat}.f32 d, a, b", "{.rnd}{.ftz}.f32x2 d, a, b", "{.rnd}.f64 d, a, b")},
	{Op: "fma", Doc: "Floating Point: fma", Bind: bindFloatFma, Note: noteNaN, Forms: forms(
		".rnd{.ftz}{.sat}.f32 d, a, b, c", ".rnd{.ftz}.f32x2 d, a, b, c", ".rnd.f64 d, a, b, c")},
	{Op: "mad", Doc: "Floating Point: mad", Bind: bindFloatFma, Note: "The same as fma. " + noteNaN, Forms: forms(
		".rnd{.ftz}{.sat}.f32 d, a, b, c", ".rnd.f64 d, a, b, c")},
	{Op: "div", Doc: "Floating Point: div", Bind: bindFloatDiv, Forms: append(
		approx(2, ".approx{.ftz}.f32 d, a, b", ".full{.ftz}.f32 d, a, b"),
		forms(".rnd{.ftz}.f32 d, a, b", ".rnd.f64 d, a, b")...), Note: "approx and full round to nearest. " + noteNaN},
	{Op: "abs", Doc: "Floating Point: abs", Bind: bindSignOp(func(x, sign uint64) uint64 { return x &^ sign }), Forms: forms(
		"{.ftz}.f32 d, a", ".f64 d, a"), Note: noteSign},
	{Op: "neg", Doc: "Floating Point: neg", Bind: bindSignOp(func(x, sign uint64) uint64 { return x ^ sign }), Forms: forms(
		"{.ftz}.f32 d, a", ".f64 d, a"), Note: noteSign},
	{Op: "min", Doc: "Floating Point: min", Bind: bindFloatMinMax, Note: noteMinMax, Forms: forms(
		"{.ftz}{.NaN}.f32 d, a, b", "{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", "{.ftz}{.NaN}{.abs}.f32 d, a, b, c",
		".f64 d, a, b")},
	{Op: "max", Doc: "Floating Point: max", Bind: bindFloatMinMax, Note: noteMinMax, Forms: forms(
		"{.ftz}{.NaN}.f32 d, a, b", "{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", "{.ftz}{.NaN}{.abs}.f32 d, a, b, c",
		".f64 d, a, b")},
	{Op: "rcp", Doc: "Floating Point: rcp", Bind: bindRcp, Note: noteApprox64, Forms: append(
		forms(".rnd{.ftz}.f32 d, a", ".rnd.f64 d, a"), approx(1, ".approx{.ftz}.f32 d, a", ".approx.ftz.f64 d, a")...)},
	{Op: "sqrt", Doc: "Floating Point: sqrt", Bind: bindSqrt, Note: noteNaN, Forms: append(
		forms(".rnd{.ftz}.f32 d, a", ".rnd.f64 d, a"), approx(2, ".approx{.ftz}.f32 d, a")...)},
	{Op: "rsqrt", Doc: "Floating Point: rsqrt", Bind: bindRsqrt, Note: noteApprox64, Forms: approx(2,
		".approx{.ftz}.f32 d, a", ".approx{.ftz}.f64 d, a")},
	{Op: "sin", Doc: "Floating Point: sin", Bind: bindApprox(math.Sin), Note: noteApprox, Forms: approx(1, ".approx{.ftz}.f32 d, a")},
	{Op: "cos", Doc: "Floating Point: cos", Bind: bindApprox(math.Cos), Note: noteApprox, Forms: approx(1, ".approx{.ftz}.f32 d, a")},
	{Op: "lg2", Doc: "Floating Point: lg2", Bind: bindApprox(approximate.Log2), Note: noteApprox, Forms: approx(1, ".approx{.ftz}.f32 d, a")},
	{Op: "ex2", Doc: "Floating Point: ex2", Bind: bindApprox(approximate.Exp2), Note: noteApprox, Forms: approx(1, ".approx{.ftz}.f32 d, a")},
	{Op: "tanh", Doc: "Floating Point: tanh", Bind: bindApprox(math.Tanh), Note: noteApprox, Forms: approx(1, ".approx.f32 d, a")},
}

// What the rows say about matters that the manual leaves open.
const (
	noteNaN    = "A NaN result of f32 is 0x7fffffff. For f64 the result is the first NaN operand, or 0xfff8000000000000 if no operand is NaN."
	noteSign   = "Changes only the sign bit, also of a NaN."
	noteMinMax = "-0 is less than +0. If one operand is NaN, the result is the other one, unless .NaN is given. A NaN result is the " +
		"canonical NaN of the format."
	noteApprox   = "Computed in double precision and rounded to nearest: more exact than hardware, and different from it in the last bits."
	noteApprox64 = noteApprox + " The f64 forms with .ftz read and write only the upper 32 bits, as in the manual."
)

// f32 reads a source as float32.
func f32(x uint64) float32 { return math.Float32frombits(uint32(x)) }

// bits32 gives the bits of a result, a NaN as the hardware gives it.
func bits32(x float32) uint64 {
	if x != x {
		return fmtF32.nan
	}
	return uint64(math.Float32bits(x))
}

// bind2 binds a two-operand operation of a narrow format with the modifiers ftz and sat.
func bind2(in *Inst, f *format, op func(a, b uint64, mode Rounding) uint64) {
	mode, ftz, sat := rounding(in), in.Ftz, in.Sat
	in.Eval = func(_ *Inst, a *Args) {
		x, y := a.S[0]&f.width(), a.S[1]&f.width()
		if ftz {
			x, y = f.flush(x), f.flush(y)
		}
		a.D[0] = f.finish(op(x, y, mode), ftz, sat)
	}
}

// bind3 is bind2 for three operands.
func bind3(in *Inst, f *format, op func(a, b, c uint64, mode Rounding) uint64) {
	mode, ftz, sat := rounding(in), in.Ftz, in.Sat
	in.Eval = func(_ *Inst, a *Args) {
		x, y, z := a.S[0]&f.width(), a.S[1]&f.width(), a.S[2]&f.width()
		if ftz {
			x, y, z = f.flush(x), f.flush(y), f.flush(z)
		}
		a.D[0] = f.finish(op(x, y, z, mode), ftz, sat)
	}
}

// finish applies ftz and sat to a result.
func (f *format) finish(r uint64, ftz, sat bool) uint64 {
	if ftz {
		r = f.flush(r)
	}
	if sat {
		r = f.saturate(r)
	}
	return r
}

// rounding is the rounding mode, to nearest when none is given.
func rounding(in *Inst) Rounding {
	if in.Round == NoRound {
		return RN
	}
	return in.Round
}

// flush32 is fmtF32.flush for float32.
func flush32(x float32) float32 {
	if u := math.Float32bits(x); u&0x7f800000 == 0 {
		return math.Float32frombits(u & (1 << 31))
	}
	return x
}

// native2 rebinds a two-operand f32 operation to nearest on the machine's own arithmetic, which rounds as IEEE 754 says.
func native2(in *Inst, op func(x, y float32) float32) {
	ftz, sat := in.Ftz, in.Sat
	switch {
	case rounding(in) != RN:
	case !ftz && !sat:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = bits32(op(f32(a.S[0]), f32(a.S[1]))) }
	default:
		in.Eval = func(_ *Inst, a *Args) {
			x, y := f32(a.S[0]), f32(a.S[1])
			if ftz {
				x, y = flush32(x), flush32(y)
			}
			a.D[0] = fmtF32.finish(bits32(op(x, y)), ftz, sat)
		}
	}
}

// native64 rebinds a two-operand f64 operation to nearest on the machine's own arithmetic; NaN results are left to slow.
func native64(in *Inst, op func(x, y float64) float64) {
	if rounding(in) != RN {
		return
	}
	slow := in.Eval
	in.Eval = func(in *Inst, a *Args) {
		r := op(math.Float64frombits(a.S[0]), math.Float64frombits(a.S[1]))
		if r != r {
			slow(in, a)
			return
		}
		a.D[0] = math.Float64bits(r)
	}
}

// packed lifts an operation of n sources on a narrow type to both halves of a packed one.
func packed(inner Eval, width uint, n int) Eval {
	mask := uint64(1)<<width - 1
	return func(in *Inst, a *Args) {
		var lo, hi Args
		for i := range n {
			lo.S[i], hi.S[i] = a.S[i]&mask, a.S[i]>>width&mask
		}
		inner(in, &lo)
		inner(in, &hi)
		a.D[0] = lo.D[0] | hi.D[0]<<width
	}
}

func bindFloatAdd(in *Inst) {
	mode := rounding(in)
	if in.Type == F64 {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = add64(a.S[0], a.S[1], mode) }
		native64(in, func(x, y float64) float64 { return x + y })
		return
	}
	bind2(in, fmtF32, fmtF32.add)
	native2(in, func(x, y float32) float32 { return x + y })
	if in.Type == F32x2 {
		in.Eval = packed(in.Eval, 32, 2)
	}
}

func bindFloatSub(in *Inst) {
	mode := rounding(in)
	if in.Type == F64 {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = sub64(a.S[0], a.S[1], mode) }
		native64(in, func(x, y float64) float64 { return x - y })
		return
	}
	bind2(in, fmtF32, fmtF32.sub)
	native2(in, func(x, y float32) float32 { return x - y })
	if in.Type == F32x2 {
		in.Eval = packed(in.Eval, 32, 2)
	}
}

// sub is a-b; a NaN result is the format's own, so turning the sign of a NaN does not show.
func (f *format) sub(a, b uint64, mode Rounding) uint64 { return f.add(a, b^f.sign(), mode) }

func sub64(a, b uint64, mode Rounding) uint64 {
	if n, ok := nan64(a, b); ok {
		return n
	}
	return add64(a, b^fmtF64.sign(), mode)
}

func bindFloatMul(in *Inst) {
	mode := rounding(in)
	if in.Type == F64 {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = mul64(a.S[0], a.S[1], mode) }
		native64(in, func(x, y float64) float64 { return x * y })
		return
	}
	bind2(in, fmtF32, fmtF32.mul)
	native2(in, func(x, y float32) float32 { return x * y })
	if in.Type == F32x2 {
		in.Eval = packed(in.Eval, 32, 2)
	}
}

func bindFloatFma(in *Inst) {
	mode := rounding(in)
	if in.Type == F64 {
		in.Eval = func(_ *Inst, a *Args) {
			if mode == RN {
				r := math.FMA(math.Float64frombits(a.S[0]), math.Float64frombits(a.S[1]), math.Float64frombits(a.S[2]))
				if r == r {
					a.D[0] = math.Float64bits(r)
					return
				}
			}
			a.D[0] = fma64(a.S[0], a.S[1], a.S[2], mode)
		}
		return
	}
	bind3(in, fmtF32, fmtF32.fma)
	if ftz, sat := in.Ftz, in.Sat; mode == RN {
		in.Eval = func(_ *Inst, a *Args) {
			x, y, z := f32(a.S[0]), f32(a.S[1]), f32(a.S[2])
			if ftz {
				x, y, z = flush32(x), flush32(y), flush32(z)
			}
			a.D[0] = fmtF32.finish(bits32(float32(addOdd(float64(x)*float64(y), float64(z)))), ftz, sat)
		}
	}
	if in.Type == F32x2 {
		in.Eval = packed(in.Eval, 32, 3)
	}
}

func bindFloatDiv(in *Inst) {
	mode := rounding(in)
	if in.Type == F64 {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = div64(a.S[0], a.S[1], mode) }
		native64(in, func(x, y float64) float64 { return x / y })
		return
	}
	bind2(in, fmtF32, fmtF32.div)
	native2(in, func(x, y float32) float32 { return x / y })
}

// bindSignOp binds abs and neg of every format.
func bindSignOp(op func(x, sign uint64) uint64) func(in *Inst) {
	return func(in *Inst) {
		f := formatOf(in.Type)
		ftz := in.Ftz
		in.Eval = func(_ *Inst, a *Args) {
			x := a.S[0] & f.width()
			if ftz {
				x = f.flush(x)
			}
			a.D[0] = op(x, f.sign())
		}
		if in.Type == F16x2 || in.Type == BF16x2 {
			in.Eval = packed(in.Eval, 16, 1)
		}
	}
}

// formatOf gives the format of a type, of its elements for a packed one.
func formatOf(t Type) *format {
	switch t {
	case F16, F16x2:
		return fmtF16
	case BF16, BF16x2:
		return fmtBF16
	case TF32:
		return fmtTF32
	case F64:
		return fmtF64
	}
	return fmtF32
}

func bindTestp(in *Inst) {
	f, mode := formatOf(in.Type), in.Mode
	in.Eval = func(_ *Inst, a *Args) {
		x := a.S[0] & (f.sign() - 1)
		var r bool
		switch mode {
		case ModeFinite:
			r = x < f.inf()
		case ModeInfinite:
			r = x == f.inf()
		case ModeNumber:
			r = x <= f.inf()
		case ModeNotANumber:
			r = x > f.inf()
		case ModeNormal:
			r = x < f.inf() && (x == 0 || x>>f.mant != 0) // zeros count as normal
		case ModeSubnormal:
			r = x != 0 && x>>f.mant == 0
		}
		a.D[0] = bit(r)
	}
}

func bindCopysign(in *Inst) {
	f := formatOf(in.Type)
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0]&f.sign() | a.S[1]&(f.sign()-1) }
}

// less orders numbers, -0 below +0.
func (f *format) less(a, b uint64) bool {
	key := func(x uint64) int64 {
		if x&f.sign() != 0 {
			return -1 - int64(x&(f.sign()-1))
		}
		return int64(x)
	}
	return key(a) < key(b)
}

// minMax is the smaller or larger of two values.
func (f *format) minMax(a, b uint64, isMin, nan bool) uint64 {
	an, bn := f.isNaN(a), f.isNaN(b)
	switch {
	case an && bn, nan && (an || bn):
		if f == fmtF64 {
			return fmtF64.nanOf(a, b)
		}
		return f.nan
	case an:
		return b
	case bn:
		return a
	case f.less(a, b) == isMin:
		return a
	}
	return b
}

// nanOf is the first NaN of two values of which one is.
func (f *format) nanOf(a, b uint64) uint64 {
	n, _ := nan64(a, b)
	return n
}

// bindFloatMinMax binds min and max of every format, of two and three operands.
func bindFloatMinMax(in *Inst) {
	f := formatOf(in.Type)
	isMin, nan, ftz := in.Row.Op == "min", in.Has("NaN"), in.Ftz
	abs, xorsign := in.Has("abs"), in.Has("xorsign")
	prepare := func(x uint64) uint64 {
		x &= f.width()
		if ftz {
			x = f.flush(x)
		}
		if abs {
			x &^= f.sign()
		}
		return x
	}
	two := func(_ *Inst, a *Args) {
		r := f.minMax(prepare(a.S[0]), prepare(a.S[1]), isMin, nan)
		if xorsign && !f.isNaN(r) {
			r |= (a.S[0] ^ a.S[1]) & f.sign()
		}
		a.D[0] = r
	}
	three := func(_ *Inst, a *Args) {
		r := f.minMax(prepare(a.S[0]), prepare(a.S[1]), isMin, nan)
		a.D[0] = f.minMax(r, prepare(a.S[2]), isMin, nan)
	}
	in.Eval = two
	if in.sources == 3 {
		in.Eval = three
	}
	if in.Type == F16x2 || in.Type == BF16x2 {
		in.Eval = packed(in.Eval, 16, 2)
	}
}

func bindRcp(in *Inst) {
	mode := rounding(in)
	switch {
	case in.Type == F64 && in.Approx:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = approxUpper(a.S[0], func(x float64) float64 { return 1 / x }) }
	case in.Type == F64:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = div64(math.Float64bits(1), a.S[0], mode) }
	default:
		one := uint64(math.Float32bits(1))
		bind2(in, fmtF32, func(a, _ uint64, mode Rounding) uint64 { return fmtF32.div(one, a, mode) })
	}
}

func bindSqrt(in *Inst) {
	mode := rounding(in)
	if in.Type == F64 {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = sqrt64(a.S[0], mode) }
		return
	}
	bind2(in, fmtF32, func(a, _ uint64, mode Rounding) uint64 { return fmtF32.sqrt(a, mode) })
}

func bindRsqrt(in *Inst) {
	rsqrt := func(x float64) float64 { return 1 / math.Sqrt(x) }
	switch {
	case in.Type == F64 && in.Ftz:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = approxUpper(a.S[0], rsqrt) }
	case in.Type == F64:
		in.Eval = func(_ *Inst, a *Args) {
			if n, ok := nan64(a.S[0]); ok {
				a.D[0] = n
				return
			}
			a.D[0] = fix64(rsqrt(math.Float64frombits(a.S[0])), RN, nil)
		}
	default:
		bindApprox(rsqrt)(in)
	}
}

// approxUpper applies f as rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 do: to the upper 32 bits of the source with
// subnormals flushed, giving the upper 32 bits of the result; any NaN is 0x7fffffff00000000.
func approxUpper(x uint64, f func(float64) float64) uint64 {
	x = fmtF64.flush(x &^ 0xffffffff)
	r := f(math.Float64frombits(x))
	if r != r {
		return 0x7fffffff00000000
	}
	return fmtF64.flush(math.Float64bits(r)) &^ 0xffffffff
}

// bindApprox binds a function approximated in double precision.
func bindApprox(fn func(float64) float64) func(in *Inst) {
	return func(in *Inst) {
		f := formatOf(in.Type)
		bind2(in, f, func(a, _ uint64, mode Rounding) uint64 { return f.round(fn(f.value(a)), mode) })
		if in.Type == F16x2 || in.Type == BF16x2 {
			in.Eval = packed(in.Eval, 16, 1)
		}
	}
}
