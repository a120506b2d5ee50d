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
	asm  func(*asm)
}

// params gives the whole parameter list.
func (r *row) params() []param {
	var ps []param
	if r.dst != "" {
		ps = append(ps, param{"d", r.dst})
	}
	ps = append(ps, r.in...)
	return append(ps, param{"mask", u32})
}

// lane gives the expression of a lane.
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

// scalar gives the row's form whose parameter p is a scalar s.
func (r row) scalar(name, p, doc string, asm func(*asm)) row {
	in := make([]param, len(r.in))
	copy(in, r.in)
	for i := range in {
		if in[i].name == p {
			in[i] = param{"s", strings.ToLower(strings.Replace(in[i].typ, "*V", "uint", 1))}
		}
	}
	r.expr = strings.ReplaceAll(r.expr, "$"+p, "$s")
	r.name, r.in, r.doc, r.asm = name, in, doc, asm
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
	t.add(r.scalar(r.name+"S", "b", scalarDoc(doc, "b"), nil))
}

// table gives every generated function.
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
	for _, o := range []struct{ name, doc, expr string }{
		{"Shl", "d = a << n; 0 from the width on", "$a << $n"},
		{"ShrU", "d = a >> n, zeros coming in", "$a >> $n"},
		{"ShrS", "d = a >> n, the sign coming in", s + "(" + signed(w, "a") + " >> $n)"},
	} {
		r := row{name: fmt.Sprint(o.name, w), doc: o.doc, dst: v, in: []param{{"a", v}, {"n", v32}}, expr: o.expr}
		t.add(r)
		r = r.scalar(r.name+"S", "n", o.doc, nil)
		r.in[1].name, r.expr = "n", o.expr
		t.add(r)
	}
	for _, o := range []string{"Min", "Max"} {
		f := strings.ToLower(o)
		t.both(o+"S", w, v, "d = "+f+"(a, b), signed", fmt.Sprintf("%s(%s(%s, %s))", s, f, signed(w, "a"), signed(w, "b")))
		t.both(o+"U", w, v, "d = "+f+"(a, b), unsigned", f+"($a, $b)")
	}
	t.mad("Mad", w, "d = a*b + c", "$a*$b + $c")
	t.compares(w)
	t.moves(w)
	t.add(row{name: fmt.Sprint("Popc", w), doc: "counts the ones of a", dst: v32, in: []param{{"a", v}},
		expr: fmt.Sprintf("uint32(bits.OnesCount%d($a))", w)})
	t.add(row{name: fmt.Sprint("Clz", w), doc: fmt.Sprintf("counts the leading zeros of a; %d for 0", w), dst: v32, in: []param{{"a", v}},
		expr: fmt.Sprintf("uint32(bits.LeadingZeros%d($a))", w)})
}

// mad adds an operation of three sources, its form S with a scalar addend and SB with a scalar factor.
func (t *list) mad(name string, w int, doc, expr string) {
	v := vec(w)
	r := row{name: fmt.Sprint(name, w), doc: doc, dst: v, in: []param{{"a", v}, {"b", v}, {"c", v}}, expr: expr}
	t.add(r)
	t.add(r.scalar(r.name+"S", "c", scalarDoc(doc, "c"), nil))
	t.add(r.scalar(r.name+"SB", "b", scalarDoc(doc, "b"), nil))
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
}

func (t *list) moves(w int) {
	v, s := vec(w), word(w)
	cond := param{"cond", u32}
	for _, o := range []struct {
		suffix, a, b string
	}{{"", v, v}, {"VS", v, s}, {"SV", s, v}, {"SS", s, s}} {
		t.add(row{name: fmt.Sprintf("Sel%d%s", w, o.suffix), doc: "d = a in the lanes of cond, b in the others", dst: v,
			in: []param{{"a", o.a}, {"b", o.b}, cond}, expr: fmt.Sprintf("pick%d($cond>>l, $a, $b)", w)})
	}
	t.add(row{name: fmt.Sprint("Copy", w), doc: "d = a", dst: v, in: []param{{"a", v}}, expr: "$a"})
	t.add(row{name: fmt.Sprint("Set", w), doc: "d = s", dst: v, in: []param{{"s", s}}, expr: "$s"})
	t.add(row{name: fmt.Sprint("Affine", w), doc: "d = base + lane*stride", dst: v, in: []param{{"base", s}, {"stride", s}},
		expr: "$base + " + s + "(l)*$stride"})
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
		dst: v32, in: shf, expr: "uint32((uint64($hi)<<32 | uint64($lo)) << ($n & 31) >> 32)"})
	t.add(row{name: "ShfR32S", doc: "d = the lower half of hi:lo >> (n & 31), as shf.r.wrap; a rotation to the right when lo and hi are one vector",
		dst: v32, in: shf, expr: "uint32((uint64($hi)<<32 | uint64($lo)) >> ($n & 31))"})
	t.add(row{name: "Lop3", doc: "d = the function of three bits whose table is lut, as lop3: bit 4a+2b+c of lut", dst: v32,
		in: []param{{"a", v32}, {"b", v32}, {"c", v32}, {"lut", u32}}, expr: "lop3($a, $b, $c, $lut)"})
	t.add(row{name: "Prmt32S", doc: "picks four bytes of b:a by the selector s, as prmt", dst: v32,
		in: []param{{"a", v32}, {"b", v32}, {"s", u32}}, expr: "prmt($a, $b, $s)"})
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
		t.add(row{name: fmt.Sprint("SExtBits", w), doc: fmt.Sprintf("d = the lower n bits of a as a signed number, n from 1 to %d", w), dst: vec(w), in: in,
			expr: fmt.Sprintf("uint%d(int%d($a<<(%d-$n)) >> (%d-$n))", w, w, w, w)})
		t.add(row{name: fmt.Sprint("ZExtBits", w), doc: fmt.Sprintf("d = the lower n bits of a, n from 1 to %d", w), dst: vec(w), in: in,
			expr: fmt.Sprintf("$a << (%d - $n) >> (%d - $n)", w, w)})
	}
	for _, o := range []struct{ name, doc, expr string }{
		{"MulU64", "d = a*b, all of the unsigned product", "uint64($a) * uint64($b)"},
		{"MulS64", "d = a*b, all of the signed product", "uint64(int64(int32($a)) * int64(int32($b)))"},
	} {
		r := row{name: o.name, doc: o.doc, dst: v64, in: []param{{"a", v32}, {"b", v32}}, expr: o.expr}
		t.add(r)
		t.add(r.scalar(r.name+"S", "b", scalarDoc(o.doc, "b"), nil))
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
	sign := fmt.Sprintf("1<<%d", w-1)
	for _, o := range []struct{ name, doc, expr string }{
		{"FSqrt", "d = the square root of a", fmt.Sprintf("fsqrt%d($a)", w)},
		{"FRcp", "d = 1 / a", fmt.Sprintf("fdiv%d(one%d, $a)", w, w)},
		{"FNeg", "turns the sign bit", "$a ^ " + sign},
		{"FAbs", "clears the sign bit", "$a &^ (" + sign + ")"},
	} {
		t.add(row{name: fmt.Sprint(o.name, w), doc: o.doc, dst: v, in: []param{{"a", v}}, expr: o.expr})
	}
	t.both("FMin", w, v, "d = min(a, b): -0 is less than +0, a NaN loses to a number", fmt.Sprintf("fmin%d($a, $b)", w))
	t.both("FMax", w, v, "d = max(a, b): -0 is less than +0, a NaN loses to a number", fmt.Sprintf("fmax%d($a, $b)", w))
	f := func(p string) string { return fmt.Sprintf("f%d($%s)", w, p) }
	for _, o := range []struct{ name, op, neg string }{
		{"FEQ", "==", "!="}, {"FNE", "!=", "=="}, {"FLT", "<", ">="}, {"FLE", "<=", ">"}, {"FGT", ">", "<="}, {"FGE", ">=", "<"},
	} {
		expr := f("a") + " " + o.op + " " + f("b")
		unordered := "!(" + f("a") + " " + o.neg + " " + f("b") + ")"
		switch o.name {
		case "FNE":
			expr = f("a") + " < " + f("b") + " || " + f("a") + " > " + f("b")
			unordered = f("a") + " != " + f("b")
		case "FEQ":
			unordered = "!(" + f("a") + " < " + f("b") + " || " + f("a") + " > " + f("b") + ")"
		}
		t.both(o.name, w, "", "gives the lanes where a "+o.op+" b and neither is NaN", expr)
		t.both(o.name+"U", w, "", "gives the lanes where a "+o.op+" b or one is NaN", unordered)
	}
	t.both("FNum", w, "", "gives the lanes where neither a nor b is NaN", f("a")+" == "+f("a")+" && "+f("b")+" == "+f("b"))
	t.both("FNaN", w, "", "gives the lanes where a or b is NaN", f("a")+" != "+f("a")+" || "+f("b")+" != "+f("b"))
}

func (t *list) floats32() {
	for _, o := range []struct{ name, doc, expr string }{
		{"FRsqrt32", "d = 1 / the square root of a, as isa approximates it: computed in double precision", "frsqrt32($a)"},
		{"FFtz32", "gives a zero of the same sign for a subnormal", "fftz32($a)"},
		{"FSat32", "clamps to [0, 1]; +0 for NaN and -0", "fsat32($a)"},
	} {
		t.add(row{name: o.name, doc: o.doc, dst: v32, in: []param{{"a", v32}}, expr: o.expr})
	}
}

func (t *list) conversions() {
	for _, o := range []struct{ name, dst, src, doc, expr string }{
		{"S32toF32", v32, v32, "rounds to nearest", "bits32(float32(int32($a)))"},
		{"U32toF32", v32, v32, "rounds to nearest", "bits32(float32($a))"},
		{"S32toF64", v64, v32, "is exact", "bits64(float64(int32($a)))"},
		{"U32toF64", v64, v32, "is exact", "bits64(float64($a))"},
		{"S64toF32", v32, v64, "rounds to nearest", "bits32(float32(int64($a)))"},
		{"U64toF32", v32, v64, "rounds to nearest", "bits32(float32($a))"},
		{"S64toF64", v64, v64, "rounds to nearest", "bits64(float64(int64($a)))"},
		{"U64toF64", v64, v64, "rounds to nearest", "bits64(float64($a))"},
		{"F32toF64", v64, v32, "is exact; a NaN keeps sign and payload and becomes quiet", "f32toF64($a)"},
		{"F64toF32", v32, v64, "rounds to nearest; a NaN becomes 0x7fffffff", "f64toF32($a)"},
		{"F32toS32Z", v32, v32, "rounds to zero and saturates; 0 for NaN", "f32toS32($a)"},
		{"F32toU32Z", v32, v32, "rounds to zero and saturates; 0 for NaN", "f32toU32($a)"},
		{"F32toS64Z", v64, v32, "rounds to zero and saturates; 1<<63 for NaN", "f64toS64(float64(f32($a)))"},
		{"F32toU64Z", v64, v32, "rounds to zero and saturates; 1<<63 for NaN", "f64toU64(float64(f32($a)))"},
		{"F64toS32Z", v32, v64, "rounds to zero and saturates; 1<<31 for NaN", "f64toS32(f64($a))"},
		{"F64toU32Z", v32, v64, "rounds to zero and saturates; 1<<31 for NaN", "f64toU32(f64($a))"},
		{"F64toS64Z", v64, v64, "rounds to zero and saturates; 1<<63 for NaN", "f64toS64(f64($a))"},
		{"F64toU64Z", v64, v64, "rounds to zero and saturates; 1<<63 for NaN", "f64toU64(f64($a))"},
	} {
		t.add(row{name: o.name, doc: o.doc, dst: o.dst, in: []param{{"a", o.src}}, expr: o.expr})
	}
}
