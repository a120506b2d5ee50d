package main

import (
	"fmt"
	"strings"
)

// param is a parameter between d and mask.
type param struct{ name, typ string }

// The types of parameters, as in the generated Go code.
const (
	v32 = "*V32"
	v64 = "*V64"
	u32 = "uint32"
	u64 = "uint64"
)

// row is a function of the package.
type row struct {
	name string
	doc  string // after the name
	dst  string // type of d; "" for a comparison, which returns a mask
	in   []param
	expr string // of a lane, in Go; $a stands for the value of parameter a in the lane

	imm string // the parameter that an Op holds itself
}

// params returns the whole parameter list.
func (r *row) params() []param {
	var ps []param
	if strings.HasPrefix(r.dst, "*") {
		ps = append(ps, param{"d", r.dst})
	}
	ps = append(ps, r.in...)
	return append(ps, param{"mask", u32})
}

// returns reports whether a mask is returned.
func (r *row) returns() bool { return r.dst == "" }

// lane returns the expression of a lane.
func (r *row) lane() string {
	e := r.expr
	for _, p := range r.in {
		v := p.name
		if strings.HasPrefix(p.typ, "*") {
			v += "[l]"
		}
		e = strings.ReplaceAll(e, "$"+p.name, v)
	}
	return e
}

// vec and word are the vector and the scalar type of a width.
func vec(w int) string  { return fmt.Sprintf("*V%d", w) }
func word(w int) string { return fmt.Sprintf("uint%d", w) }

// list collects rows.
type list []*row

func (t *list) add(r row) { *t = append(*t, &r) }

// scalar returns the row's form whose parameter p is a scalar s.
func (r row) scalar(name, p, doc string) row {
	in := make([]param, len(r.in))
	copy(in, r.in)
	for i := range in {
		if in[i].name == p {
			in[i] = param{"s", strings.ToLower(strings.Replace(in[i].typ, "*V", "uint", 1))}
		}
	}
	r.expr = strings.ReplaceAll(r.expr, "$"+p, "$s")
	r.name, r.in, r.doc = name, in, doc
	return r
}

// scalarDoc names s in the place of p.
func scalarDoc(doc, p string) string {
	var b strings.Builder
	for i := 0; i < len(doc); i++ {
		letter := func(j int) bool {
			return j >= 0 && j < len(doc) && (doc[j] >= 'a' && doc[j] <= 'z' || doc[j] >= 'A' && doc[j] <= 'Z')
		}
		if doc[i] == p[0] && !letter(i-1) && !letter(i+1) {
			b.WriteByte('s')
			continue
		}
		b.WriteByte(doc[i])
	}
	return b.String()
}

// both adds a row of two vectors, and its form with a scalar second.
func (t *list) both(name string, w int, dst, doc, expr string) {
	r := row{name: fmt.Sprint(name, w), doc: doc, dst: dst, in: []param{{"a", vec(w)}, {"b", vec(w)}}, expr: expr}
	t.add(r)
	t.add(r.scalar(r.name+"S", "b", scalarDoc(doc, "b")))
}

// table returns every generated function.
func table() []*row {
	var t list
	for _, w := range []int{32, 64} {
		t.integers(w)
	}
	t.integers32()
	t.widths()
	for _, w := range []int{32, 64} {
		t.floats(w)
	}
	t.floats32()
	t.conversions()
	t.roundings()
	return t
}

// signed writes an operand as a signed number.
func signed(w int, p string) string { return fmt.Sprintf("int%d($%s)", w, p) }

func (t *list) integers(w int) {
	v, s := vec(w), word(w)
	for _, o := range []struct{ name, op string }{
		{"Add", "+"}, {"Sub", "-"}, {"Mul", "*"}, {"And", "&"}, {"Or", "|"}, {"Xor", "^"},
	} {
		t.both(o.name, w, v, "d = a "+o.op+" b", "$a "+o.op+" $b")
	}
	t.add(row{name: fmt.Sprintf("RSub%dS", w), doc: "d = s - a", dst: v, in: []param{{"a", v}, {"s", s}}, expr: "$s - $a"})
	t.add(row{name: fmt.Sprint("Not", w), doc: "d = ^a", dst: v, in: []param{{"a", v}}, expr: "^$a"})
	t.shifts(w)
	for _, o := range []string{"Min", "Max"} {
		f := strings.ToLower(o)
		t.both(o+"S", w, v, "d = "+f+"(a, b), signed", fmt.Sprintf("%s(%s(%s, %s))", s, f, signed(w, "a"), signed(w, "b")))
		t.both(o+"U", w, v, "d = "+f+"(a, b), unsigned", f+"($a, $b)")
	}
	t.add(row{name: fmt.Sprint("AbsS", w), doc: "d = the magnitude of a, signed; the smallest number is itself", dst: v, in: []param{{"a", v}},
		expr: fmt.Sprintf("%s(max(%s, -%s))", s, signed(w, "a"), signed(w, "a"))})
	t.mad("Mad", w, "d = a*b + c", "$a*$b + $c")
	t.compares(w)
	t.odd(w)
	t.moves(w)
	t.add(row{name: fmt.Sprint("Popc", w), doc: "counts the ones of a", dst: v32, in: []param{{"a", v}},
		expr: fmt.Sprintf("uint32(bits.OnesCount%d($a))", w)})
	t.add(row{name: fmt.Sprint("Clz", w), doc: fmt.Sprintf("counts the leading zeros of a; %d for 0", w), dst: v32,
		in: []param{{"a", v}}, expr: fmt.Sprintf("uint32(bits.LeadingZeros%d($a))", w)})
}

func (t *list) shifts(w int) {
	v := vec(w)
	for _, o := range []struct{ name, doc, expr string }{
		{"Shl", "d = a << n; 0 from the width on", "$a << $n"},
		{"ShrU", "d = a >> n, zeros coming in", "$a >> $n"},
		{"ShrS", "d = a >> n, the sign coming in", word(w) + "(" + signed(w, "a") + " >> $n)"},
	} {
		t.add(row{name: fmt.Sprint(o.name, w), doc: o.doc, dst: v, in: []param{{"a", v}, {"n", v32}}, expr: o.expr})
		t.add(row{name: fmt.Sprint(o.name, w, "S"), doc: o.doc, dst: v, in: []param{{"a", v}, {"n", u32}}, expr: o.expr})
	}
}

// mad adds an operation of three sources, its form S with a scalar addend and SB with a scalar factor.
func (t *list) mad(name string, w int, doc, expr string) {
	v := vec(w)
	r := row{name: fmt.Sprint(name, w), doc: doc, dst: v, in: []param{{"a", v}, {"b", v}, {"c", v}}, expr: expr}
	t.add(r)
	t.add(r.scalar(r.name+"S", "c", scalarDoc(doc, "c")))
	t.add(r.scalar(r.name+"SB", "b", scalarDoc(doc, "b")))
}

func (t *list) compares(w int) {
	v, s := vec(w), word(w)
	for _, o := range []struct{ name, op string }{{"EQ", "=="}, {"NE", "!="}} {
		t.both(o.name, w, "", "gives the lanes where a "+o.op+" b", "$a "+o.op+" $b")
	}
	for _, o := range []struct{ name, op string }{{"LT", "<"}, {"LE", "<="}} {
		t.both(o.name+"S", w, "", "gives the lanes where a "+o.op+" b, signed", signed(w, "a")+" "+o.op+" "+signed(w, "b"))
		t.both(o.name+"U", w, "", "gives the lanes where a "+o.op+" b, unsigned", "$a "+o.op+" $b")
	}
	for _, o := range []struct{ name, op string }{{"GT", ">"}, {"GE", ">="}} {
		in := []param{{"a", v}, {"s", s}}
		t.add(row{name: fmt.Sprintf("%sS%dS", o.name, w), doc: "gives the lanes where a " + o.op + " s, signed", in: in,
			expr: signed(w, "a") + " " + o.op + " " + signed(w, "s")})
		t.add(row{name: fmt.Sprintf("%sU%dS", o.name, w), doc: "gives the lanes where a " + o.op + " s, unsigned", in: in,
			expr: "$a " + o.op + " $s"})
	}
	t.add(row{name: fmt.Sprint("EQAffine", w), doc: "gives the lanes where a == base + lane*stride",
		in: []param{{"a", v}, {"base", s}, {"stride", s}}, expr: "$a == $base + " + s + "(l)*$stride", imm: "stride"})
}

// odd adds the test of the lowest bit, which makes a predicate of a number.
func (t *list) odd(w int) {
	t.add(row{name: fmt.Sprint("Odd", w), doc: "gives the lanes where a is odd", in: []param{{"a", vec(w)}}, expr: "$a&1 != 0"})
}

func (t *list) moves(w int) {
	v, s := vec(w), word(w)
	for _, o := range []struct {
		suffix, a, b string
	}{{"", v, v}, {"VS", v, s}, {"SV", s, v}, {"SS", s, s}} {
		t.add(row{name: fmt.Sprintf("Sel%d%s", w, o.suffix), doc: "d = a in the lanes of cond, b in the others", dst: v,
			in: []param{{"a", o.a}, {"b", o.b}, {"cond", u32}}, expr: fmt.Sprintf("pick%d($cond>>l, $a, $b)", w)})
	}
	t.add(row{name: fmt.Sprint("Bool", w), doc: "d = s in the lanes of cond, 0 in the others", dst: v, in: []param{{"cond", u32}, {"s", s}}, imm: "s",
		expr: fmt.Sprintf("pick%d($cond>>l, $s, 0)", w)})
	t.add(row{name: fmt.Sprint("Copy", w), doc: "d = a", dst: v, in: []param{{"a", v}}, expr: "$a"})
	t.add(row{name: fmt.Sprint("Set", w), doc: "d = s", dst: v, in: []param{{"s", s}}, expr: "$s"})
	t.add(row{name: fmt.Sprint("Affine", w), doc: "d = base + lane*stride", dst: v, in: []param{{"base", s}, {"stride", s}},
		expr: "$base + " + s + "(l)*$stride", imm: "stride"})
}

func (t *list) integers32() {
	t.both("MulHiU", 32, v32, "d = the upper half of a*b, unsigned", "uint32(uint64($a) * uint64($b) >> 32)")
	t.both("MulHiS", 32, v32, "d = the upper half of a*b, signed", "uint32(int64(int32($a)) * int64(int32($b)) >> 32)")
	t.both("DivU", 32, v32, "d = a / b, unsigned; all ones where b = 0", "divU32($a, $b)")
	t.both("DivS", 32, v32, "d = a / b, signed; -1 where b = 0, the smallest number by -1 is itself", "divS32($a, $b)")
	t.both("RemU", 32, v32, "d = the remainder of a / b, unsigned; all ones where b = 0", "remU32($a, $b)")
	t.both("RemS", 32, v32, "d = the remainder of a / b, signed; -1 where b = 0", "remS32($a, $b)")
	t.add(row{name: "Brev32", doc: "reverses the bits of a", dst: v32, in: []param{{"a", v32}}, expr: "bits.Reverse32($a)"})
	shf := []param{{"lo", v32}, {"hi", v32}, {"n", u32}}
	t.add(row{name: "ShfL32S", doc: "d = the upper half of hi:lo << (n & 31), as shf.l.wrap; a rotation to the left when lo and hi are one vector",
		dst: v32, in: shf, expr: "uint32((uint64($hi)<<32 | uint64($lo)) << ($n & 31) >> 32)", imm: "n"})
	t.add(row{name: "ShfR32S", doc: "d = the lower half of hi:lo >> (n & 31), as shf.r.wrap; a rotation to the right when lo and hi are one vector",
		dst: v32, in: shf, expr: "uint32((uint64($hi)<<32 | uint64($lo)) >> ($n & 31))", imm: "n"})
	t.add(row{name: "Lop3", doc: "d = the function of three bits whose table is lut, as lop3: bit 4a+2b+c of lut", dst: v32,
		in: []param{{"a", v32}, {"b", v32}, {"c", v32}, {"lut", u32}}, expr: "lop3($a, $b, $c, $lut)", imm: "lut"})
	t.add(row{name: "Prmt32S", doc: "picks four bytes of b:a by the selector s, as prmt", dst: v32,
		in: []param{{"a", v32}, {"b", v32}, {"s", u32}}, expr: "prmt($a, $b, $s)", imm: "s"})
}

func (t *list) widths() {
	one := func(name, dst, src, doc, expr string) {
		t.add(row{name: name, doc: doc, dst: dst, in: []param{{"a", src}}, expr: expr})
	}
	one("SExt64", v64, v32, "d = a, signed", "uint64(int64(int32($a)))")
	one("ZExt64", v64, v32, "d = a, unsigned", "uint64($a)")
	one("Low32", v32, v64, "d = the lower half of a", "uint32($a)")
	one("High32", v32, v64, "d = the upper half of a", "uint32($a >> 32)")
	t.add(row{name: "Pack64", doc: "d = hi:lo", dst: v64, in: []param{{"lo", v32}, {"hi", v32}}, expr: "uint64($hi)<<32 | uint64($lo)"})
	for _, w := range []int{32, 64} {
		in := []param{{"a", vec(w)}, {"n", u32}}
		t.add(row{name: fmt.Sprint("SExtBits", w), doc: fmt.Sprintf("d = the lower n bits of a as a signed number, n from 1 to %d", w),
			dst: vec(w), in: in, expr: fmt.Sprintf("uint%d(int%d($a<<(%d-$n)) >> (%d-$n))", w, w, w, w), imm: "n"})
		t.add(row{name: fmt.Sprint("ZExtBits", w), doc: fmt.Sprintf("d = the lower n bits of a, n from 1 to %d", w),
			dst: vec(w), in: in, expr: fmt.Sprintf("$a << (%d - $n) >> (%d - $n)", w, w), imm: "n"})
	}
	for _, o := range []struct{ name, doc, expr string }{
		{"MulU64", "d = a*b, all of the unsigned product", "uint64($a) * uint64($b)"},
		{"MulS64", "d = a*b, all of the signed product", "uint64(int64(int32($a)) * int64(int32($b)))"},
	} {
		r := row{name: o.name, doc: o.doc, dst: v64, in: []param{{"a", v32}, {"b", v32}}, expr: o.expr}
		t.add(r)
		t.add(r.scalar(r.name+"S", "b", scalarDoc(o.doc, "b")))
	}
}

func (t *list) floats(w int) {
	v := vec(w)
	for _, o := range []struct{ name, op string }{{"FAdd", "+"}, {"FSub", "-"}, {"FMul", "*"}, {"FDiv", "/"}} {
		f := fmt.Sprintf("%s%d", strings.ToLower(o.name[:2])+o.name[2:], w)
		t.both(o.name, w, v, "d = a "+o.op+" b", f+"($a, $b)")
		if o.name == "FSub" || o.name == "FDiv" {
			t.add(row{name: fmt.Sprintf("FR%s%dS", o.name[1:], w), doc: "d = s " + o.op + " a", dst: v,
				in: []param{{"a", v}, {"s", word(w)}}, expr: f + "($s, $a)"})
		}
	}
	t.mad("FMA", w, "d = a*b + c, rounded once", fmt.Sprintf("fma%d($a, $b, $c)", w))
	t.add(row{name: fmt.Sprint("FSqrt", w), doc: "d = the square root of a", dst: v, in: []param{{"a", v}},
		expr: fmt.Sprintf("fsqrt%d($a)", w)})
	t.add(row{name: fmt.Sprint("FRcp", w), doc: "d = 1 / a", dst: v, in: []param{{"a", v}}, expr: fmt.Sprintf("fdiv%d(one%d, $a)", w, w)})
	t.signs(w)
	for _, o := range []string{"Min", "Max"} {
		t.both("F"+o, w, v, "d = "+strings.ToLower(o)+"(a, b): -0 is less than +0, a NaN loses to a number",
			fmt.Sprintf("f%s%d($a, $b)", strings.ToLower(o), w))
	}
	t.floatCompares(w)
}

// signs adds what changes the sign bit.
func (t *list) signs(w int) {
	v := vec(w)
	t.add(row{name: fmt.Sprint("FNeg", w), doc: "turns the sign bit", dst: v, in: []param{{"a", v}}, expr: fmt.Sprintf("$a ^ 1<<%d", w-1)})
	t.add(row{name: fmt.Sprint("FAbs", w), doc: "clears the sign bit", dst: v, in: []param{{"a", v}}, expr: fmt.Sprintf("$a &^ (1<<%d)", w-1)})
}

func (t *list) floatCompares(w int) {
	f := func(p string) string { return fmt.Sprintf("f%d($%s)", w, p) }
	is := func(op string) string { return f("a") + " " + op + " " + f("b") }
	differ := is("<") + " || " + is(">")
	for _, o := range []struct{ name, op, ordered, unordered string }{
		{"FEQ", "==", is("=="), "!(" + differ + ")"},
		{"FNE", "!=", differ, is("!=")},
		{"FLT", "<", is("<"), "!(" + is(">=") + ")"},
		{"FLE", "<=", is("<="), "!(" + is(">") + ")"},
		{"FGT", ">", is(">"), "!(" + is("<=") + ")"},
		{"FGE", ">=", is(">="), "!(" + is("<") + ")"},
	} {
		t.both(o.name, w, "", "gives the lanes where a "+o.op+" b and neither is NaN", o.ordered)
		t.both(o.name+"U", w, "", "gives the lanes where a "+o.op+" b or one is NaN", o.unordered)
	}
	t.both("FNum", w, "", "gives the lanes where neither a nor b is NaN", f("a")+" == "+f("a")+" && "+f("b")+" == "+f("b"))
	t.both("FNaN", w, "", "gives the lanes where a or b is NaN", f("a")+" != "+f("a")+" || "+f("b")+" != "+f("b"))
}

func (t *list) floats32() {
	in := []param{{"a", v32}}
	t.add(row{name: "FRsqrt32", doc: "d = 1 / the square root of a, computed in double precision as isa approximates it", dst: v32, in: in,
		expr: "frsqrt32($a)"})
	t.add(row{name: "FExpTwo32", doc: "d = 2^a, as package approx computes it", dst: v32, in: in, expr: "fexp2($a)"})
	t.add(row{name: "FLogTwo32", doc: "d = the binary logarithm of a, as package approx computes it", dst: v32, in: in, expr: "flog2($a)"})
	t.add(row{name: "FFtz32", doc: "gives a zero of the same sign for a subnormal", dst: v32, in: in, expr: "fftz32($a)"})
	t.add(row{name: "FSat32", doc: "clamps to [0, 1]; +0 for NaN and -0", dst: v32, in: in, expr: "fsat32($a)"})
}

// modes are the rounding modes of PTX, and what rounds to them in Go.
var modes = []struct{ name, doc, round string }{{"N", "to nearest, ties to even", "math.RoundToEven"}, {"M", "down", "math.Floor"},
	{"P", "up", "math.Ceil"}, {"Z", "to zero", "math.Trunc"}}

// roundings adds what rounds in other modes than to nearest, and to whole numbers.
func (t *list) roundings() {
	t.mad("FMAM", 32, "d = a*b + c, rounded down once (fma.rm)", "fma32Down($a, $b, $c)")
	for _, m := range modes {
		for _, w := range []int{32, 64} {
			v := vec(w)
			t.add(row{name: fmt.Sprintf("FRound%s%d", m.name, w), doc: "rounds a to a whole number, " + m.doc + "; the sign of zero stays", dst: v,
				in: []param{{"a", v}}, expr: fmt.Sprintf("fround%d($a, %s)", w, m.round)})
		}
		if m.name == "Z" {
			continue // see conversions
		}
		t.add(row{name: "F32toS32" + m.name, doc: "rounds " + m.doc + ", and saturates; 0 for NaN", dst: v32, in: []param{{"a", v32}},
			expr: "f32toS32(fround32($a, " + m.round + "))"})
	}
}

func (t *list) conversions() {
	one := func(name, dst, src, doc, expr string) {
		t.add(row{name: name, doc: doc, dst: dst, in: []param{{"a", src}}, expr: expr})
	}
	one("S32toF32", v32, v32, "rounds to nearest", "bits32(float32(int32($a)))")
	one("U32toF32", v32, v32, "rounds to nearest", "bits32(float32($a))")
	one("S32toF64", v64, v32, "is exact", "bits64(float64(int32($a)))")
	one("U32toF64", v64, v32, "is exact", "bits64(float64($a))")
	one("S64toF32", v32, v64, "rounds to nearest", "bits32(float32(int64($a)))")
	one("U64toF32", v32, v64, "rounds to nearest", "bits32(float32($a))")
	one("S64toF64", v64, v64, "rounds to nearest", "bits64(float64(int64($a)))")
	one("U64toF64", v64, v64, "rounds to nearest", "bits64(float64($a))")
	one("F32toF64", v64, v32, "is exact; a NaN keeps sign and payload and becomes quiet", "f32toF64($a)")
	one("F64toF32", v32, v64, "rounds to nearest; a NaN becomes 0x7fffffff", "f64toF32($a)")
	one("F32toS32Z", v32, v32, "rounds to zero and saturates; 0 for NaN", "f32toS32($a)")
	one("F32toU32Z", v32, v32, "rounds to zero and saturates; 0 for NaN", "f32toU32($a)")
	for _, src := range []struct{ name, typ, value string }{{"F32", v32, "float64(f32($a))"}, {"F64", v64, "f64($a)"}} {
		for _, w := range []int{32, 64} {
			if src.name == "F32" && w == 32 {
				continue // another value for NaN: see above
			}
			nan := fmt.Sprintf("rounds to zero and saturates; 1<<%d for NaN", w-1)
			one(fmt.Sprintf("%stoS%dZ", src.name, w), vec(w), src.typ, nan, fmt.Sprintf("f64toS%d(%s)", w, src.value))
			one(fmt.Sprintf("%stoU%dZ", src.name, w), vec(w), src.typ, nan, fmt.Sprintf("f64toU%d(%s)", w, src.value))
		}
	}
}
