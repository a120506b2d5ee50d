package isa

import (
	"math"

	approximate "fencepost.dev/fencepost/internal/approx"
)

// halfRows is the manual's "Half Precision Floating Point Instructions" and the corresponding bf16 forms.
var halfRows = []*Row{
	{Op: "add", Doc: "Half Precision: add", Bind: bindHalf2((*format).add), Note: noteHalf, Forms: halfArith2},
	{Op: "sub", Doc: "Half Precision: sub", Bind: bindHalf2((*format).sub), Note: noteHalf, Forms: halfArith2},
	{Op: "mul", Doc: "Half Precision: mul", Bind: bindHalf2((*format).mul), Note: noteHalf, Forms: halfArith2},
	{Op: "fma", Doc: "Half Precision: fma", Bind: bindHalfFma, Note: noteHalf, Forms: forms(
		".rn{.ftz}{.sat}.type d, a, b, c; type: f16 f16x2",
		".rn{.ftz}.relu.type d, a, b, c; type: f16 f16x2",
		".rn{.relu}.type d, a, b, c; type: bf16 bf16x2")},
	{Op: "neg", Doc: "Half Precision: neg", Bind: bindSignOp(func(x, sign uint64) uint64 { return x ^ sign }), Note: noteSign,
		Forms: forms("{.ftz}.type d, a; type: f16 f16x2", ".type d, a; type: bf16 bf16x2")},
	{Op: "abs", Doc: "Half Precision: abs", Bind: bindSignOp(func(x, sign uint64) uint64 { return x &^ sign }), Note: noteSign,
		Forms: forms("{.ftz}.type d, a; type: f16 f16x2", ".type d, a; type: bf16 bf16x2")},
	{Op: "min", Doc: "Half Precision: min", Bind: bindFloatMinMax, Note: noteMinMax, Forms: halfMinMax},
	{Op: "max", Doc: "Half Precision: max", Bind: bindFloatMinMax, Note: noteMinMax, Forms: halfMinMax},
	{Op: "tanh", Doc: "Half Precision: tanh", Bind: bindApprox(math.Tanh), Note: noteApprox, Forms: approx(1,
		".approx.type d, a; type: f16 f16x2 bf16 bf16x2")},
	{Op: "ex2", Doc: "Half Precision: ex2", Bind: bindApprox(approximate.Exp2), Note: noteApprox, Forms: approx(1,
		".approx.type d, a; type: f16 f16x2", ".approx.ftz.type d, a; type: bf16 bf16x2")},
}

var (
	halfArith2 = forms("{.rn}{.ftz}{.sat}.type d, a, b; type: f16 f16x2", "{.rn}.type d, a, b; type: bf16 bf16x2")
	halfMinMax = forms("{.ftz}{.NaN}.type d, a, b; type: f16 f16x2", "{.NaN}.type d, a, b; type: bf16 bf16x2",
		"{.ftz}{.NaN}.xorsign.abs.type d, a, b; type: f16 f16x2", "{.NaN}.xorsign.abs.type d, a, b; type: bf16 bf16x2")
)

const noteHalf = "Rounded once, to nearest. A NaN result is 0x7fff."

// bindHalf2 binds a two-operand operation of the 16-bit formats and their packed pairs.
func bindHalf2(op func(f *format, a, b uint64, mode Rounding) uint64) func(in *Inst) {
	return func(in *Inst) {
		f := formatOf(in.Type)
		bind2(in, f, func(a, b uint64, mode Rounding) uint64 { return op(f, a, b, mode) })
		if in.Type == F16x2 || in.Type == BF16x2 {
			in.Eval = packed(in.Eval, 16, 2)
		}
	}
}

func bindHalfFma(in *Inst) {
	f, relu := formatOf(in.Type), in.Has("relu")
	bind3(in, f, func(a, b, c uint64, mode Rounding) uint64 {
		r := f.fma(a, b, c, mode)
		if relu {
			r = f.relu(r)
		}
		return r
	})
	if in.Type == F16x2 || in.Type == BF16x2 {
		in.Eval = packed(in.Eval, 16, 3)
	}
}

// relu clamps negative values to zero; NaN stays.
func (f *format) relu(x uint64) uint64 {
	if x&f.sign() != 0 && !f.isNaN(x) {
		return 0
	}
	return x
}
