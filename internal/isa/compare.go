package isa

// compareRows is the manual's "Comparison and Selection Instructions", those of the half precision formats included.
var compareRows = []*Row{
	{Op: "set", Doc: "Comparison and Selection: set", Bind: bindSet, Forms: setForms(
		".dtype.stype d:dtype, a:stype, b:stype", "; cmp: eq ne; dtype: u32 s32 f32 f16 bf16; stype: b16 b32 b64",
		".dtype.stype d:dtype, a:stype, b:stype", "; cmp: eq ne lt le gt ge lo ls hi hs; dtype: u32 s32 f32 f16 bf16; stype: u16 u32 u64",
		".dtype.stype d:dtype, a:stype, b:stype", "; cmp: eq ne lt le gt ge; dtype: u32 s32 f32 f16 bf16; stype: s16 s32 s64",
		"{.ftz}.dtype.f32 d:dtype, a:f32, b:f32", floatCmp+"; dtype: u32 s32 f32 f16",
		"{.ftz}.dtype.f16 d:dtype, a:f16, b:f16", floatCmp+"; dtype: u16 s16 u32 s32 f16",
		".dtype.f64 d:dtype, a:f64, b:f64", floatCmp+"; dtype: u32 s32 f32 f16 bf16",
		".dtype.bf16 d:dtype, a:bf16, b:bf16", floatCmp+"; dtype: u16 s16 u32 s32 bf16",
		".bf16.stype d:bf16, a:stype, b:stype", floatCmp+"; stype: f16 f32",
		"{.ftz}.dtype.f16x2 d:dtype, a:f16x2, b:f16x2", floatCmp+"; dtype: f16x2 u32 s32",
		".dtype.bf16x2 d:dtype, a:bf16x2, b:bf16x2", floatCmp+"; dtype: bf16x2 u32 s32"),
		Note: "For packed operands, each half of an integer result is all ones or zero."},
	{Op: "setp", Doc: "Comparison and Selection: setp", Bind: bindSetp, Forms: setForms(
		".type p:pred{|q:pred}, a, b", "; cmp: eq ne; type: b16 b32 b64",
		".type p:pred{|q:pred}, a, b", "; cmp: eq ne lt le gt ge lo ls hi hs; type: u16 u32 u64",
		".type p:pred{|q:pred}, a, b", "; cmp: eq ne lt le gt ge; type: s16 s32 s64",
		"{.ftz}.type p:pred{|q:pred}, a, b", floatCmp+"; type: f32 f16x2",
		".type p:pred{|q:pred}, a, b", floatCmp+"; type: f64 bf16x2",
		"{.ftz}.f16 p:pred, a, b", floatCmp,
		".bf16 p:pred, a, b", floatCmp)},
	{Op: "selp", Doc: "Comparison and Selection: selp", Forms: forms(
		".type d, a, b, c:pred; type: b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"),
		Bind: setEval(func(_ *Inst, a *Args) {
			if a.S[2]&1 != 0 {
				a.D[0] = a.S[0]
			} else {
				a.D[0] = a.S[1]
			}
		})},
	{Op: "slct", Doc: "Comparison and Selection: slct", Bind: bindSlct, Forms: forms(
		".type.s32 d, a, b, c:s32; type: b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
		"{.ftz}.type.f32 d, a, b, c:f32; type: b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64")},
}

const floatCmp = "; cmp: eq ne lt le gt ge equ neu ltu leu gtu geu num nan"

// setForms makes forms of set and setp from pairs of what follows the comparison, and lists: without a Boolean operator and with one.
func setForms(parts ...string) []Form {
	var plain, combined []string
	for i := 0; i < len(parts); i += 2 {
		plain = append(plain, ".cmp"+parts[i]+parts[i+1])
		combined = append(combined, ".cmp.bop"+parts[i]+", c:pred"+parts[i+1]+"; bop: and or xor")
	}
	return forms(append(plain, combined...)...)
}

// compareInts compares by an ordering operator.
func compareInts[T int64 | uint64](cmp CmpOp, a, b T) bool {
	switch cmp {
	case CmpEQ:
		return a == b
	case CmpNE:
		return a != b
	case CmpLT:
		return a < b
	case CmpLE:
		return a <= b
	case CmpGT:
		return a > b
	}
	return a >= b
}

// compareFloats compares; the unordered operators are true when an operand is NaN.
func compareFloats(cmp CmpOp, a, b float64) bool {
	if a != a || b != b {
		return cmp >= CmpEQU && cmp != CmpNum
	}
	switch cmp {
	case CmpEQ, CmpEQU:
		return a == b
	case CmpNE, CmpNEU:
		return a != b
	case CmpLT, CmpLTU:
		return a < b
	case CmpLE, CmpLEU:
		return a <= b
	case CmpGT, CmpGTU:
		return a > b
	case CmpGE, CmpGEU:
		return a >= b
	}
	return cmp == CmpNum
}

// comparison gives the predicate on raw bits that an instruction's operator makes of values of type t.
func comparison(cmp CmpOp, t Type, ftz bool) func(a, b uint64) bool {
	if t.Float() {
		f := formatOf(t)
		if t == F32 && !ftz {
			return func(a, b uint64) bool { return compareFloats(cmp, float64(f32(a)), float64(f32(b))) }
		}
		return func(a, b uint64) bool {
			a, b = a&f.width(), b&f.width()
			if ftz {
				a, b = f.flush(a), f.flush(b)
			}
			return compareFloats(cmp, f.value(a), f.value(b))
		}
	}
	mask, size := widthMask(t), t.Size()
	switch {
	case t == S32:
		return func(a, b uint64) bool { return compareInts(cmp, int64(int32(a)), int64(int32(b))) }
	case t.Signed():
		return func(a, b uint64) bool { return compareInts(cmp, signExtend(a, size), signExtend(b, size)) }
	case cmp == CmpEQ:
		return func(a, b uint64) bool { return (a^b)&mask == 0 }
	case cmp == CmpNE:
		return func(a, b uint64) bool { return (a^b)&mask != 0 }
	}
	return func(a, b uint64) bool { return compareInts(cmp, a&mask, b&mask) }
}

// combine applies the Boolean operator of set and setp.
func combine(op Op, t, c bool) bool {
	switch op {
	case OpAnd:
		return t && c
	case OpOr:
		return t || c
	case OpXor:
		return t != c
	}
	return t
}

func bindSetp(in *Inst) {
	test, op := comparison(in.Cmp, in.Type, in.Ftz), in.Op
	switch {
	case in.Type == F16x2 || in.Type == BF16x2:
		in.Eval = func(_ *Inst, a *Args) {
			c := a.S[2]&1 != 0
			a.D[0] = bit(combine(op, test(a.S[0]&0xffff, a.S[1]&0xffff), c))
			a.D[1] = bit(combine(op, test(a.S[0]>>16, a.S[1]>>16), c))
		}
	case op == NoOp:
		in.Eval = func(_ *Inst, a *Args) {
			t := bit(test(a.S[0], a.S[1]))
			a.D[0], a.D[1] = t, t^1
		}
	default:
		in.Eval = func(_ *Inst, a *Args) {
			t, c := test(a.S[0], a.S[1]), a.S[2]&1 != 0
			a.D[0], a.D[1] = bit(combine(op, t, c)), bit(combine(op, !t, c))
		}
	}
}

// bindSet binds set: all ones or zero for an integer result, 1.0 or 0.0 for a floating-point one.
func bindSet(in *Inst) {
	test, op := comparison(in.Cmp, in.Type2, in.Ftz), in.Op
	yes := widthMask(in.Type)
	switch in.Type {
	case F32, F16, F16x2, BF16, BF16x2:
		f := formatOf(in.Type)
		yes = uint64(f.bias()) << f.mant
	}
	if in.Type2 == F16x2 || in.Type2 == BF16x2 {
		yes &= 0xffff
		in.Eval = func(_ *Inst, a *Args) {
			c := a.S[2]&1 != 0
			lo, hi := combine(op, test(a.S[0]&0xffff, a.S[1]&0xffff), c), combine(op, test(a.S[0]>>16, a.S[1]>>16), c)
			a.D[0] = bit(lo)*yes | bit(hi)*yes<<16
		}
		return
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = yes * bit(combine(op, test(a.S[0], a.S[1]), a.S[2]&1 != 0)) }
}

func bindSlct(in *Inst) {
	ftz, float := in.Ftz, in.Type2 == F32
	in.Eval = func(_ *Inst, a *Args) {
		c := a.S[2]
		var first bool
		if float {
			if ftz {
				c = fmtF32.flush(c & 0xffffffff)
			}
			first = f32(c) >= 0
		} else {
			first = int32(c) >= 0
		}
		a.D[0] = a.S[1]
		if first {
			a.D[0] = a.S[0]
		}
	}
}
