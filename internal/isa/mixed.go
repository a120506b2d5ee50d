package isa

// mixedRows is the manual's "Mixed Precision Floating Point Instructions": 16-bit operands that count as f32.
var mixedRows = []*Row{
	{Op: "add", Doc: "Mixed Precision: add", Note: noteMixed, Forms: mixedForms("{.rnd}{.sat}.f32.atype d, a:atype, c"),
		Bind: bindMixed(2, func(x, _, z uint64, mode Rounding) uint64 { return fmtF32.add(x, z, mode) })},
	{Op: "sub", Doc: "Mixed Precision: sub", Note: noteMixed, Forms: mixedForms("{.rnd}{.sat}.f32.atype d, a:atype, c"),
		Bind: bindMixed(2, func(x, _, z uint64, mode Rounding) uint64 { return fmtF32.sub(x, z, mode) })},
	{Op: "fma", Doc: "Mixed Precision: fma", Note: noteMixed, Forms: mixedForms(".rnd{.sat}.f32.atype d, a:atype, b:atype, c"),
		Bind: bindMixed(3, fmtF32.fma)},
}

const noteMixed = "Every f16 and bf16 value is an f32 value, so only the result is rounded. A NaN result is 0x7fffffff."

func mixedForms(syntax string) []Form { return forms(syntax + "; atype: f16 bf16") }

// bindMixed binds an operation of f32 whose n sources but the last are of a 16-bit format. With two sources y is not used.
func bindMixed(n int, op func(x, y, z uint64, mode Rounding) uint64) func(in *Inst) {
	return func(in *Inst) {
		f, mode, sat := formatOf(in.Type2), rounding(in), in.Sat
		widen := func(x uint64) uint64 { return fmtF32.round(f.value(x&f.width()), RN) }
		in.Eval = func(_ *Inst, a *Args) {
			r := op(widen(a.S[0]), widen(a.S[1]), a.S[n-1]&fmtF32.width(), mode)
			a.D[0] = fmtF32.finish(r, false, sat)
		}
	}
}
