package main

import (
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/approx"
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
	dst  string // type of d; "" for a comparison, which returns a mask; "mem" when memory is written; "mask" when there is no d
	// and a mask is returned by whole
	in   []param
	expr string // of a lane, in Go; $a stands for the value of parameter a in the lane

	asm   func(*asm)        // writes a chunk in AVX-512; nil where there is the Go code only
	pre   func(*asm)        // written before the chunks
	raw   bool              // pre brings the scalars where asm wants them
	eight bool              // chunks of 8 lanes although no vector has 64 bits
	imm   string            // the parameter that an Op holds itself
	nan   bool              // Z29 holds the NaN of f32
	whole func(*row) []byte // writes all of the assembly instead of asm
	hand  bool              // the Go code and the exported function are written by hand
}

// params gives the whole parameter list.
func (r *row) params() []param {
	var ps []param
	if strings.HasPrefix(r.dst, "*") {
		ps = append(ps, param{"d", r.dst})
	}
	ps = append(ps, r.in...)
	return append(ps, param{"mask", u32})
}

// returns reports whether a mask is returned.
func (r *row) returns() bool { return r.dst == "" || r.dst == "mask" }

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
func (t *list) both(name string, w int, dst, doc, expr string, f func(*asm)) []*row {
	r := row{name: fmt.Sprint(name, w), doc: doc, dst: dst, in: []param{{"a", vec(w)}, {"b", vec(w)}}, expr: expr, asm: f}
	t.add(r)
	t.add(r.scalar(r.name+"S", "b", scalarDoc(doc, "b")))
	return (*t)[len(*t)-2:]
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
	t.roundings()
	return append(t, memory()...)
}

// signed writes an operand as a signed number.
func signed(w int, p string) string { return fmt.Sprintf("int%d($%s)", w, p) }

func (t *list) integers(w int) {
	v, s, q := vec(w), word(w), dq(w)
	for _, o := range []struct{ name, op, ins string }{
		{"Add", "+", "VPADD" + q}, {"Sub", "-", "VPSUB" + q}, {"Mul", "*", "VPMULL" + q}, {"And", "&", "VPAND" + q},
		{"Or", "|", "VPOR" + q}, {"Xor", "^", "VPXOR" + q},
	} {
		t.both(o.name, w, v, "d = a "+o.op+" b", "$a "+o.op+" $b", two(o.ins))
	}
	t.add(row{name: fmt.Sprintf("RSub%dS", w), doc: "d = s - a", dst: v, in: []param{{"a", v}, {"s", s}}, expr: "$s - $a",
		asm: twoBack("VPSUB" + q)})
	t.add(row{name: fmt.Sprint("Not", w), doc: "d = ^a", dst: v, in: []param{{"a", v}}, expr: "^$a", asm: not})
	t.shifts(w)
	for _, o := range []string{"Min", "Max"} {
		f, up := strings.ToLower(o), strings.ToUpper(o)
		t.both(o+"S", w, v, "d = "+f+"(a, b), signed", fmt.Sprintf("%s(%s(%s, %s))", s, f, signed(w, "a"), signed(w, "b")),
			two("VP"+up+"S"+q))
		t.both(o+"U", w, v, "d = "+f+"(a, b), unsigned", f+"($a, $b)", two("VP"+up+"U"+q))
	}
	t.add(row{name: fmt.Sprint("AbsS", w), doc: "d = the magnitude of a, signed; the smallest number is itself", dst: v, in: []param{{"a", v}},
		expr: fmt.Sprintf("%s(max(%s, -%s))", s, signed(w, "a"), signed(w, "a")), asm: one1("VPABS" + q)})
	t.mad("Mad", w, "d = a*b + c", "$a*$b + $c", func(g *asm) {
		g.ins("VPMULL"+q, g.out, g.src[0], g.src[1])
		g.ins("VPADD"+q, g.out, g.out, g.src[2])
	})
	t.compares(w)
	t.odd(w)
	t.moves(w)
	t.add(row{name: fmt.Sprint("Popc", w), doc: "counts the ones of a", dst: v32, in: []param{{"a", v}},
		expr: fmt.Sprintf("uint32(bits.OnesCount%d($a))", w), asm: popc(w), pre: popcTables(w)})
	t.add(row{name: fmt.Sprint("Clz", w), doc: fmt.Sprintf("counts the leading zeros of a; %d for 0", w), dst: v32,
		in: []param{{"a", v}}, expr: fmt.Sprintf("uint32(bits.LeadingZeros%d($a))", w), asm: clz(w)})
}

func (t *list) shifts(w int) {
	v, q := vec(w), dq(w)
	for _, o := range []struct{ name, doc, expr, variable, uniform string }{
		{"Shl", "d = a << n; 0 from the width on", "$a << $n", "VPSLLV", "VPSLL"},
		{"ShrU", "d = a >> n, zeros coming in", "$a >> $n", "VPSRLV", "VPSRL"},
		{"ShrS", "d = a >> n, the sign coming in", word(w) + "(" + signed(w, "a") + " >> $n)", "VPSRAV", "VPSRA"},
	} {
		t.add(row{name: fmt.Sprint(o.name, w), doc: o.doc, dst: v, in: []param{{"a", v}, {"n", v32}}, expr: o.expr, asm: func(g *asm) {
			n := g.src[1]
			if w == 64 {
				n = "Z20"
				g.ins("VPMOVZXDQ", n, g.src[1])
			}
			g.ins(o.variable+q, g.out, g.src[0], n)
		}})
		t.add(row{name: fmt.Sprint(o.name, w, "S"), doc: o.doc, dst: v, in: []param{{"a", v}, {"n", u32}}, expr: o.expr, raw: true,
			pre: func(g *asm) { g.word("VMOVD", "X26", "n") },
			asm: func(g *asm) { g.ins(o.uniform+q, g.out, g.src[0], "X26") }})
	}
}

// mad adds an operation of three sources, its form S with a scalar addend and SB with a scalar factor.
func (t *list) mad(name string, w int, doc, expr string, f func(*asm)) []*row {
	v := vec(w)
	r := row{name: fmt.Sprint(name, w), doc: doc, dst: v, in: []param{{"a", v}, {"b", v}, {"c", v}}, expr: expr, asm: f}
	t.add(r)
	t.add(r.scalar(r.name+"S", "c", scalarDoc(doc, "c")))
	t.add(r.scalar(r.name+"SB", "b", scalarDoc(doc, "b")))
	return (*t)[len(*t)-3:]
}

func (t *list) compares(w int) {
	v, s, q := vec(w), word(w), dq(w)
	for _, o := range []struct {
		name, op string
		imm      int
	}{{"EQ", "==", 0}, {"NE", "!=", 4}} {
		t.both(o.name, w, "", "gives the lanes where a "+o.op+" b", "$a "+o.op+" $b", compare("VPCMPU"+q, o.imm))
	}
	for _, o := range []struct {
		name, op string
		imm      int
	}{{"LT", "<", 1}, {"LE", "<=", 2}} {
		t.both(o.name+"S", w, "", "gives the lanes where a "+o.op+" b, signed", signed(w, "a")+" "+o.op+" "+signed(w, "b"),
			compare("VPCMP"+q, o.imm))
		t.both(o.name+"U", w, "", "gives the lanes where a "+o.op+" b, unsigned", "$a "+o.op+" $b", compare("VPCMPU"+q, o.imm))
	}
	for _, o := range []struct {
		name, op string
		imm      int
	}{{"GT", ">", 6}, {"GE", ">=", 5}} {
		in := []param{{"a", v}, {"s", s}}
		t.add(row{name: fmt.Sprintf("%sS%dS", o.name, w), doc: "gives the lanes where a " + o.op + " s, signed", in: in,
			expr: signed(w, "a") + " " + o.op + " " + signed(w, "s"), asm: compare("VPCMP"+q, o.imm)})
		t.add(row{name: fmt.Sprintf("%sU%dS", o.name, w), doc: "gives the lanes where a " + o.op + " s, unsigned", in: in,
			expr: "$a " + o.op + " $s", asm: compare("VPCMPU"+q, o.imm)})
	}
	t.add(row{name: fmt.Sprint("EQAffine", w), doc: "gives the lanes where a == base + lane*stride",
		in: []param{{"a", v}, {"base", s}, {"stride", s}}, expr: "$a == $base + " + s + "(l)*$stride", imm: "stride",
		pre: func(g *asm) { g.affine("Z27", "Z28") },
		asm: func(g *asm) {
			g.ins("VPCMPU"+q, g.k, g.src[0], "Z27", "$0")
			g.ins("VPADD"+q, "Z27", "Z27", "Z28")
		}})
}

// odd adds the test of the lowest bit, which makes a predicate of a number.
func (t *list) odd(w int) {
	t.add(row{name: fmt.Sprint("Odd", w), doc: "gives the lanes where a is odd", in: []param{{"a", vec(w)}}, expr: "$a&1 != 0",
		pre: func(g *asm) { g.ones("Z31"); g.ins("VPSRL"+dq(w), "Z31", "Z31", fmt.Sprintf("$%d", w-1)) },
		asm: func(g *asm) { g.ins("VPTESTM"+dq(w), g.k, g.src[0], "Z31") }})
}

func (t *list) moves(w int) {
	v, s, q := vec(w), word(w), dq(w)
	for _, o := range []struct {
		suffix, a, b string
	}{{"", v, v}, {"VS", v, s}, {"SV", s, v}, {"SS", s, s}} {
		t.add(row{name: fmt.Sprintf("Sel%d%s", w, o.suffix), doc: "d = a in the lanes of cond, b in the others", dst: v,
			in: []param{{"a", o.a}, {"b", o.b}, {"cond", u32}}, expr: fmt.Sprintf("pick%d($cond>>l, $a, $b)", w),
			pre: func(g *asm) { g.word("KMOVD", "K7", "cond") },
			asm: func(g *asm) {
				g.ins("KSHIFTRD", "K5", "K7", fmt.Sprintf("$%d", g.chunk*g.n))
				g.under("K5", "VPBLENDM"+q, g.out, g.src[1], g.src[0])
			}})
	}
	t.add(row{name: fmt.Sprint("Bool", w), doc: "d = s in the lanes of cond, 0 in the others", dst: v, in: []param{{"cond", u32}, {"s", s}}, imm: "s",
		expr: fmt.Sprintf("pick%d($cond>>l, $s, 0)", w),
		pre:  func(g *asm) { g.word("KMOVD", "K7", "cond") },
		asm: func(g *asm) {
			g.ins("KSHIFTRD", "K5", "K7", fmt.Sprintf("$%d", g.chunk*g.n))
			g.under("K5", fmt.Sprintf("VMOVDQA%d.Z", w), g.out, g.src[1])
		}})
	move := func(g *asm) { g.out = g.src[0] }
	t.add(row{name: fmt.Sprint("Copy", w), doc: "d = a", dst: v, in: []param{{"a", v}}, expr: "$a", asm: move})
	t.add(row{name: fmt.Sprint("Set", w), doc: "d = s", dst: v, in: []param{{"s", s}}, expr: "$s",
		asm: func(g *asm) { g.ins("VMOVDQA64", g.out, g.src[0]) }}) // kept lanes are loaded over it
	t.add(row{name: fmt.Sprint("Affine", w), doc: "d = base + lane*stride", dst: v, in: []param{{"base", s}, {"stride", s}},
		expr: "$base + " + s + "(l)*$stride", imm: "stride",
		pre: func(g *asm) { g.affine("Z26", "Z27") },
		asm: func(g *asm) {
			g.ins("VMOVDQA64", g.out, "Z26")
			g.ins("VPADD"+q, "Z26", "Z26", "Z27")
		}})
}

func (t *list) integers32() {
	t.both("MulHiU", 32, v32, "d = the upper half of a*b, unsigned", "uint32(uint64($a) * uint64($b) >> 32)", mulHi("VPMULUDQ"))
	t.both("MulHiS", 32, v32, "d = the upper half of a*b, signed", "uint32(int64(int32($a)) * int64(int32($b)) >> 32)", mulHi("VPMULDQ"))
	for _, r := range (*t)[len(*t)-4:] {
		r.pre = func(g *asm) {
			g.ins("MOVL", "R8", "$0xaaaa")
			g.ins("KMOVW", "K7", "R8")
		}
	}
	t.both("DivU", 32, v32, "d = a / b, unsigned; all ones where b = 0", "divU32($a, $b)", divide(false, false))
	t.both("DivS", 32, v32, "d = a / b, signed; -1 where b = 0, the smallest number by -1 is itself", "divS32($a, $b)", divide(true, false))
	t.both("RemU", 32, v32, "d = the remainder of a / b, unsigned; all ones where b = 0", "remU32($a, $b)", divide(false, true))
	t.both("RemS", 32, v32, "d = the remainder of a / b, signed; -1 where b = 0", "remS32($a, $b)", divide(true, true))
	for _, r := range (*t)[len(*t)-8:] {
		r.eight = true
		r.pre = func(g *asm) { g.konst32("Z31", 0xffffffff) }
	}
	t.add(row{name: "Brev32", doc: "reverses the bits of a", dst: v32, in: []param{{"a", v32}}, expr: "bits.Reverse32($a)",
		pre: brevTables, asm: brev})
	shf := []param{{"lo", v32}, {"hi", v32}, {"n", u32}}
	t.add(row{name: "ShfL32S", doc: "d = the upper half of hi:lo << (n & 31), as shf.l.wrap; a rotation to the left when lo and hi are one vector",
		dst: v32, in: shf, expr: "uint32((uint64($hi)<<32 | uint64($lo)) << ($n & 31) >> 32)", raw: true, imm: "n", pre: funnelCounts,
		asm: funnel("X27", "X26")})
	t.add(row{name: "ShfR32S", doc: "d = the lower half of hi:lo >> (n & 31), as shf.r.wrap; a rotation to the right when lo and hi are one vector",
		dst: v32, in: shf, expr: "uint32((uint64($hi)<<32 | uint64($lo)) >> ($n & 31))", raw: true, imm: "n", pre: funnelCounts,
		asm: funnel("X26", "X27")})
	t.add(row{name: "Lop3", doc: "d = the function of three bits whose table is lut, as lop3: bit 4a+2b+c of lut", dst: v32,
		in: []param{{"a", v32}, {"b", v32}, {"c", v32}, {"lut", u32}}, expr: "lop3($a, $b, $c, $lut)", imm: "lut", whole: lop3})
	t.add(row{name: "Prmt32S", doc: "picks four bytes of b:a by the selector s, as prmt", dst: v32,
		in: []param{{"a", v32}, {"b", v32}, {"s", u32}}, expr: "prmt($a, $b, $s)", raw: true, pre: prmtIndices, asm: prmt, imm: "s"})
}

func (t *list) widths() {
	one := func(name, dst, src, doc, expr string, f func(*asm)) {
		t.add(row{name: name, doc: doc, dst: dst, in: []param{{"a", src}}, expr: expr, asm: f})
	}
	one("SExt64", v64, v32, "d = a, signed", "uint64(int64(int32($a)))", one1("VPMOVSXDQ"))
	one("ZExt64", v64, v32, "d = a, unsigned", "uint64($a)", one1("VPMOVZXDQ"))
	one("Low32", v32, v64, "d = the lower half of a", "uint32($a)", one1("VPMOVQD"))
	one("High32", v32, v64, "d = the upper half of a", "uint32($a >> 32)", func(g *asm) {
		g.ins("VPSRLQ", "Z20", g.src[0], "$32")
		g.ins("VPMOVQD", g.out, "Z20")
	})
	t.add(row{name: "Pack64", doc: "d = hi:lo", dst: v64, in: []param{{"lo", v32}, {"hi", v32}}, expr: "uint64($hi)<<32 | uint64($lo)",
		asm: func(g *asm) {
			g.ins("VPMOVZXDQ", "Z20", g.src[0])
			g.ins("VPMOVZXDQ", "Z21", g.src[1])
			g.ins("VPSLLQ", "Z21", "Z21", "$32")
			g.ins("VPORQ", g.out, "Z20", "Z21")
		}})
	for _, w := range []int{32, 64} {
		in := []param{{"a", vec(w)}, {"n", u32}}
		t.add(row{name: fmt.Sprint("SExtBits", w), doc: fmt.Sprintf("d = the lower n bits of a as a signed number, n from 1 to %d", w),
			dst: vec(w), in: in, expr: fmt.Sprintf("uint%d(int%d($a<<(%d-$n)) >> (%d-$n))", w, w, w, w),
			raw: true, imm: "n", pre: extendCount(w), asm: extend(w, "VPSRA")})
		t.add(row{name: fmt.Sprint("ZExtBits", w), doc: fmt.Sprintf("d = the lower n bits of a, n from 1 to %d", w),
			dst: vec(w), in: in, expr: fmt.Sprintf("$a << (%d - $n) >> (%d - $n)", w, w),
			raw: true, imm: "n", pre: extendCount(w), asm: extend(w, "VPSRL")})
	}
	for _, o := range []struct{ name, doc, expr, widen, mul string }{
		{"MulU64", "d = a*b, all of the unsigned product", "uint64($a) * uint64($b)", "VPMOVZXDQ", "VPMULUDQ"},
		{"MulS64", "d = a*b, all of the signed product", "uint64(int64(int32($a)) * int64(int32($b)))", "VPMOVSXDQ", "VPMULDQ"},
	} {
		r := row{name: o.name, doc: o.doc, dst: v64, in: []param{{"a", v32}, {"b", v32}}, expr: o.expr, asm: func(g *asm) {
			g.ins(o.widen, "Z20", g.src[0])
			g.ins(o.widen, "Z21", g.src[1])
			g.ins(o.mul, g.out, "Z20", "Z21")
		}}
		t.add(r)
		t.add(r.scalar(r.name+"S", "b", scalarDoc(o.doc, "b")))
	}
}

func (t *list) floats(w int) {
	v, p := vec(w), ps(w)
	from := len(*t)
	for _, o := range []struct{ name, op, ins string }{
		{"FAdd", "+", "VADD"}, {"FSub", "-", "VSUB"}, {"FMul", "*", "VMUL"}, {"FDiv", "/", "VDIV"},
	} {
		f := fmt.Sprintf("%s%d", strings.ToLower(o.name[:2])+o.name[2:], w)
		t.both(o.name, w, v, "d = a "+o.op+" b", f+"($a, $b)", two(o.ins+p))
		if o.name == "FSub" || o.name == "FDiv" {
			t.add(row{name: fmt.Sprintf("FR%s%dS", o.name[1:], w), doc: "d = s " + o.op + " a", dst: v,
				in: []param{{"a", v}, {"s", word(w)}}, expr: f + "($s, $a)", asm: twoBack(o.ins + p)})
		}
	}
	t.mad("FMA", w, "d = a*b + c, rounded once", fmt.Sprintf("fma%d($a, $b, $c)", w), func(g *asm) {
		g.ins("VMOVDQA64", g.out, g.src[1])
		g.ins("VFMADD213"+p, g.out, g.src[0], g.src[2]) // a in the middle: of several NaNs that operand's wins
	})
	t.add(row{name: fmt.Sprint("FSqrt", w), doc: "d = the square root of a", dst: v, in: []param{{"a", v}},
		expr: fmt.Sprintf("fsqrt%d($a)", w), asm: one1("VSQRT" + p)})
	t.add(row{name: fmt.Sprint("FRcp", w), doc: "d = 1 / a", dst: v, in: []param{{"a", v}}, expr: fmt.Sprintf("fdiv%d(one%d, $a)", w, w),
		pre: func(g *asm) { g.konst("Z30", w, 1) },
		asm: func(g *asm) { g.ins("VDIV"+p, g.out, "Z30", g.src[0]) }})
	if w == 32 {
		for _, r := range (*t)[from:] {
			r.oneNaN()
		}
	}
	t.signs(w)
	for i, o := range []string{"Min", "Max"} {
		for _, r := range t.both("F"+o, w, v, "d = "+strings.ToLower(o)+"(a, b): -0 is less than +0, a NaN loses to a number",
			fmt.Sprintf("f%s%d($a, $b)", strings.ToLower(o), w), minMax(w, 4+i)) {
			r.nan = w == 32
			r.pre = func(g *asm) {
				if w == 64 {
					g.konst64("Z31", 1<<51)
				}
			}
		}
	}
	t.floatCompares(w)
}

// signs adds what changes the sign bit.
func (t *list) signs(w int) {
	v, q := vec(w), dq(w)
	top := fmt.Sprintf("$%d", w-1)
	t.add(row{name: fmt.Sprint("FNeg", w), doc: "turns the sign bit", dst: v, in: []param{{"a", v}}, expr: fmt.Sprintf("$a ^ 1<<%d", w-1),
		pre: func(g *asm) { g.ones("Z31"); g.ins("VPSLL"+q, "Z31", "Z31", top) },
		asm: func(g *asm) { g.ins("VPXOR"+q, g.out, g.src[0], "Z31") }})
	t.add(row{name: fmt.Sprint("FAbs", w), doc: "clears the sign bit", dst: v, in: []param{{"a", v}}, expr: fmt.Sprintf("$a &^ (1<<%d)", w-1),
		pre: func(g *asm) { g.ones("Z31"); g.ins("VPSRL"+q, "Z31", "Z31", "$1") },
		asm: func(g *asm) { g.ins("VPAND"+q, g.out, g.src[0], "Z31") }})
}

func (t *list) floatCompares(w int) {
	f := func(p string) string { return fmt.Sprintf("f%d($%s)", w, p) }
	is := func(op string) string { return f("a") + " " + op + " " + f("b") }
	differ := is("<") + " || " + is(">")
	for _, o := range []struct {
		name, op, ordered, unordered string
		immO, immU                   int
	}{
		{"FEQ", "==", is("=="), "!(" + differ + ")", 0x00, 0x08},
		{"FNE", "!=", differ, is("!="), 0x0c, 0x04},
		{"FLT", "<", is("<"), "!(" + is(">=") + ")", 0x11, 0x19},
		{"FLE", "<=", is("<="), "!(" + is(">") + ")", 0x12, 0x1a},
		{"FGT", ">", is(">"), "!(" + is("<=") + ")", 0x1e, 0x16},
		{"FGE", ">=", is(">="), "!(" + is("<") + ")", 0x1d, 0x15},
	} {
		t.both(o.name, w, "", "gives the lanes where a "+o.op+" b and neither is NaN", o.ordered, compare("VCMP"+ps(w), o.immO))
		t.both(o.name+"U", w, "", "gives the lanes where a "+o.op+" b or one is NaN", o.unordered, compare("VCMP"+ps(w), o.immU))
	}
	t.both("FNum", w, "", "gives the lanes where neither a nor b is NaN", f("a")+" == "+f("a")+" && "+f("b")+" == "+f("b"),
		compare("VCMP"+ps(w), 7))
	t.both("FNaN", w, "", "gives the lanes where a or b is NaN", f("a")+" != "+f("a")+" || "+f("b")+" != "+f("b"),
		compare("VCMP"+ps(w), 3))
}

func (t *list) floats32() {
	in := []param{{"a", v32}}
	r := row{name: "FRsqrt32", doc: "d = 1 / the square root of a, computed in double precision as isa approximates it", dst: v32, in: in,
		expr: "frsqrt32($a)", eight: true,
		pre: func(g *asm) { g.konst64("Z30", one64) },
		asm: func(g *asm) {
			g.ins("VCVTPS2PD", "Z20", g.src[0])
			g.ins("VSQRTPD", "Z20", "Z20")
			g.ins("VDIVPD", "Z20", "Z30", "Z20")
			g.ins("VCVTPD2PS", g.out, "Z20")
		}}
	r.oneNaN()
	t.add(r)
	r = row{name: "FExpTwo32", doc: "d = 2^a, as package approx computes it", dst: v32, in: in, expr: "fexp2($a)", eight: true,
		pre: func(g *asm) {
			g.konst("Z30", 64, approx.Exp2Limit)
			g.konst("Z31", 64, -approx.Exp2Limit)
		},
		asm: exp2}
	r.oneNaN()
	t.add(r)
	r = row{name: "FLogTwo32", doc: "d = the binary logarithm of a, as package approx computes it", dst: v32, in: in, expr: "flog2($a)", eight: true,
		pre: log2Constants, asm: log2}
	r.oneNaN()
	t.add(r)
	t.add(row{name: "FFtz32", doc: "gives a zero of the same sign for a subnormal", dst: v32, in: in, expr: "fftz32($a)",
		pre: func(g *asm) { g.konst32("Z31", 1<<31) },
		asm: func(g *asm) {
			g.ins("VMOVDQA64", g.out, g.src[0])
			g.ins("VFPCLASSPSZ", "K5", g.src[0], "$0x20")
			g.under("K5", "VPANDD", g.out, g.out, "Z31")
		}})
	t.add(row{name: "FSat32", doc: "clamps to [0, 1]; +0 for NaN and -0", dst: v32, in: in, expr: "fsat32($a)",
		pre: func(g *asm) {
			g.konst("Z30", 32, 1)
			g.ins("VPXORD", "Z31", "Z31", "Z31")
		},
		asm: func(g *asm) {
			g.ins("VMAXPS", g.out, g.src[0], "Z31") // the second of NaN and 0, and of -0 and +0
			g.ins("VMINPS", g.out, g.out, "Z30")
		}})
}

// modes are the rounding modes of PTX and those of the assembly: the suffix of instructions, the immediate of VRNDSCALE.
var modes = []struct {
	name, doc, suffix string
	imm               int
}{
	{"N", "to nearest, ties to even", "RN_SAE", 8}, {"M", "down", "RD_SAE", 9}, {"P", "up", "RU_SAE", 10}, {"Z", "to zero", "RZ_SAE", 11},
}

// roundings adds what rounds in other modes than to nearest, and to whole numbers.
func (t *list) roundings() {
	for _, r := range t.mad("FMAM", 32, "d = a*b + c, rounded down once (fma.rm)", "fma32Down($a, $b, $c)", func(g *asm) {
		g.ins("VMOVDQA64", g.out, g.src[1])
		g.ins("VFMADD213PS.RD_SAE", g.out, g.src[0], g.src[2])
	}) {
		r.oneNaN()
	}
	for _, m := range modes {
		for _, w := range []int{32, 64} {
			v := vec(w)
			r := row{name: fmt.Sprintf("FRound%s%d", m.name, w), doc: "rounds a to a whole number, " + m.doc + "; the sign of zero stays", dst: v,
				in: []param{{"a", v}}, expr: fmt.Sprintf("fround%d($a, %s)", w, mathRound[m.name]),
				asm: func(g *asm) { g.ins("VRNDSCALE"+ps(w), g.out, g.src[0], fmt.Sprintf("$%d", m.imm)) }}
			if w == 32 {
				r.oneNaN()
			}
			t.add(r)
		}
		if m.name == "Z" {
			continue // see conversions
		}
		t.add(row{name: "F32toS32" + m.name, doc: "rounds " + m.doc + ", and saturates; 0 for NaN", dst: v32, in: []param{{"a", v32}},
			expr: "f32toS32(fround32($a, " + mathRound[m.name] + "))", asm: f32toS32("VCVTPS2DQ." + m.suffix), pre: f32toS32Constants})
	}
}

// mathRound rounds in portable code.
var mathRound = map[string]string{"N": "math.RoundToEven", "M": "math.Floor", "P": "math.Ceil", "Z": "math.Trunc"}

func (t *list) conversions() {
	one := func(name, dst, src, doc, expr string, f func(*asm)) *row {
		t.add(row{name: name, doc: doc, dst: dst, in: []param{{"a", src}}, expr: expr, asm: f})
		return (*t)[len(*t)-1]
	}
	one("S32toF32", v32, v32, "rounds to nearest", "bits32(float32(int32($a)))", one1("VCVTDQ2PS"))
	one("U32toF32", v32, v32, "rounds to nearest", "bits32(float32($a))", one1("VCVTUDQ2PS"))
	one("S32toF64", v64, v32, "is exact", "bits64(float64(int32($a)))", one1("VCVTDQ2PD"))
	one("U32toF64", v64, v32, "is exact", "bits64(float64($a))", one1("VCVTUDQ2PD"))
	one("S64toF32", v32, v64, "rounds to nearest", "bits32(float32(int64($a)))", one1("VCVTQQ2PS"))
	one("U64toF32", v32, v64, "rounds to nearest", "bits32(float32($a))", one1("VCVTUQQ2PS"))
	one("S64toF64", v64, v64, "rounds to nearest", "bits64(float64(int64($a)))", one1("VCVTQQ2PD"))
	one("U64toF64", v64, v64, "rounds to nearest", "bits64(float64($a))", one1("VCVTUQQ2PD"))
	one("F32toF64", v64, v32, "is exact; a NaN keeps sign and payload and becomes quiet", "f32toF64($a)", one1("VCVTPS2PD"))
	one("F64toF32", v32, v64, "rounds to nearest; a NaN becomes 0x7fffffff", "f64toF32($a)", one1("VCVTPD2PS")).oneNaN()
	one("F32toS32Z", v32, v32, "rounds to zero and saturates; 0 for NaN", "f32toS32($a)", f32toS32("VCVTTPS2DQ")).pre = f32toS32Constants
	one("F32toU32Z", v32, v32, "rounds to zero and saturates; 0 for NaN", "f32toU32($a)", func(g *asm) {
		g.ins("VCMPPS", "K5", g.src[0], "Z31", "$0x1e") // above 0
		g.under("K5", "VCVTTPS2UDQ.Z", g.out, g.src[0])
	}).pre = func(g *asm) { g.ins("VPXORD", "Z31", "Z31", "Z31") }
	for _, src := range []struct{ name, typ, value string }{{"F32", v32, "float64(f32($a))"}, {"F64", v64, "f64($a)"}} {
		for _, w := range []int{32, 64} {
			if src.name == "F32" && w == 32 {
				continue // another value for NaN: see above
			}
			nan := fmt.Sprintf("rounds to zero and saturates; 1<<%d for NaN", w-1)
			one(fmt.Sprintf("%stoS%dZ", src.name, w), vec(w), src.typ, nan, fmt.Sprintf("f64toS%d(%s)", w, src.value), toSigned(w)).pre =
				toSignedConstants(w)
			one(fmt.Sprintf("%stoU%dZ", src.name, w), vec(w), src.typ, nan, fmt.Sprintf("f64toU%d(%s)", w, src.value), toUnsigned(w)).pre =
				toUnsignedConstants(w)
		}
	}
}
