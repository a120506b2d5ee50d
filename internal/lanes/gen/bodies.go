package main

import (
	"fmt"
	"math"
	"strings"

	"fencepost.dev/fencepost/internal/approx"
)

// The offsets of Regs.keep32 and Regs.keep64; a test compares them.
const (
	keep32At = 72
	keep64At = keep32At + 128
)

// body is the assembly of a row.
type body struct {
	asm   func(*asm) // writes a chunk
	pre   func(*asm) // written before the chunks
	post  func(*asm) // written after them
	raw   bool       // pre brings the scalars where asm wants them
	eight bool       // chunks of 4 lanes although no vector has 64 bits
	nan   bool       // the result has one NaN
	not   bool       // of a comparison: the other lanes
}

// Temporary registers and constants, as wide as what they are used with.
const (
	t0, t1, t2         = 4, 5, 6
	c0, c1, c2, c3, c4 = 7, 8, 11, 15, 10 // c4 is the NaN of f32 where there is one
)

// y names a register as wide as all lanes of a chunk with the given bits.
func (g *asm) y(w, i int) string { return g.reg(fmt.Sprint("*V", w), i) }

// spread32 and spread64 put bits into every lane of a constant.
func (g *asm) spread32(i int, bits uint32) {
	g.ins("MOVL", "R8", fmt.Sprintf("$%#x", bits))
	g.ins("VMOVD", fmt.Sprint("X", i), "R8")
	g.ins("VPBROADCASTD", fmt.Sprint("Y", i), fmt.Sprint("X", i))
}

func (g *asm) spread64(i int, bits uint64) {
	g.ins("MOVQ", "R8", fmt.Sprintf("$%#x", bits))
	g.ins("VMOVQ", fmt.Sprint("X", i), "R8")
	g.ins("VPBROADCASTQ", fmt.Sprint("Y", i), fmt.Sprint("X", i))
}

// spread puts bits into every lane of w bits, float a number.
func (g *asm) spread(i, w int, bits uint64) {
	if w == 32 {
		g.spread32(i, uint32(bits))
		return
	}
	g.spread64(i, bits)
}

func (g *asm) float(i, w int, x float64) {
	if w == 32 {
		g.spread32(i, math.Float32bits(float32(x)))
		return
	}
	g.spread64(i, math.Float64bits(x))
}

// blend gives b where the mask holds, a elsewhere.
func (g *asm) blend(out, a, b, mask string) { g.ins("VPBLENDVB", out, a, b, mask) }

// mul64 multiplies lanes of 64 bits, and needs t0 and t1.
func (g *asm) mul64(out, a, b string) {
	x, y := g.y(64, t0), g.y(64, t1)
	g.ins("VPSRLQ", x, a, "$32")
	g.ins("VPMULUDQ", x, x, b)
	g.ins("VPSRLQ", y, b, "$32")
	g.ins("VPMULUDQ", y, y, a)
	g.ins("VPADDQ", x, x, y)
	g.ins("VPSLLQ", x, x, "$32")
	g.ins("VPMULUDQ", y, a, b)
	g.ins("VPADDQ", out, x, y)
}

func (g *asm) mul(w int, out, a, b string) {
	if w == 64 {
		g.mul64(out, a, b)
		return
	}
	g.ins("VPMULLD", out, a, b)
}

// sra64 shifts lanes of 64 bits with their sign by a count that ins takes, and needs t0.
func (g *asm) sra64(ins, out, a, n string) {
	sign := g.y(64, t0)
	g.ins("VPXOR", sign, sign, sign)
	g.ins("VPCMPGTQ", sign, sign, a)
	g.ins("VPXOR", out, a, sign)
	g.ins(ins, out, out, n)
	g.ins("VPXOR", out, out, sign)
}

// narrow makes 4 lanes of 32 bits of the lower halves (which 0x88) or the upper ones (0xdd) of 4 lanes of 64.
func (g *asm) narrow(i, from int, which string) {
	g.ins("VEXTRACTI128", "X9", fmt.Sprint("Y", from), "$1")
	g.ins("VSHUFPS", fmt.Sprint("X", i), fmt.Sprint("X", from), "X9", which)
}

// doublesOf converts lanes of 32 bits to f64; unsigned ones need c0 to hold 1<<31 (32 bits a lane) and c1 to hold 2^31.
func (g *asm) doublesOf(isSigned bool, to int, from string) {
	y := fmt.Sprint("Y", to)
	if isSigned {
		g.ins("VCVTDQ2PD", y, from)
		return
	}
	g.ins("VPXOR", fmt.Sprint("X", to), from, fmt.Sprint("X", c0))
	g.ins("VCVTDQ2PD", y, fmt.Sprint("X", to))
	g.ins("VADDPD", y, y, fmt.Sprint("Y", c1))
}

func unsignedConstants(g *asm) {
	g.spread32(c0, 1<<31)
	g.float(c1, 64, 1<<31)
}

const (
	nan32 = 0x7fffffff
	one64 = 0x3ff0000000000000
)

// one1 is an instruction of one source.
func one1(ins string) func(*asm) { return func(g *asm) { g.ins(ins, g.out, g.src[0]) } }

// two is an instruction of two sources, twoBack has them the other way around.
func two(ins string) func(*asm) { return func(g *asm) { g.ins(ins, g.out, g.src[0], g.src[1]) } }

func twoBack(ins string) func(*asm) { return func(g *asm) { g.ins(ins, g.out, g.src[1], g.src[0]) } }

// like names a register as wide as the result.
func (g *asm) like(reg string) string { return g.out[:1] + reg[1:] }

// bodies gives the assembly of rows, by name. Operations of the others are left to Go code.
func bodies() map[string]body {
	m := map[string]body{}
	for _, w := range []int{32, 64} {
		integers(m, w)
		moves(m, w)
		floats(m, w)
	}
	integers32(m)
	widths(m)
	floats32(m)
	conversions(m)
	return m
}

// forms adds a body for a function and its forms with a scalar.
func forms(m map[string]body, b body, names ...string) {
	for _, n := range names {
		m[n] = b
	}
}

func integers(m map[string]body, w int) {
	q := dq(w)
	name := func(s string) string { return fmt.Sprint(s, w) }
	both := func(s string, b body) { forms(m, b, name(s), name(s)+"S") }
	for s, ins := range map[string]string{"Add": "VPADD" + q, "Sub": "VPSUB" + q, "And": "VPAND", "Or": "VPOR", "Xor": "VPXOR"} {
		both(s, body{asm: two(ins)})
	}
	both("Mul", body{asm: func(g *asm) { g.mul(w, g.out, g.src[0], g.src[1]) }})
	m[fmt.Sprintf("RSub%dS", w)] = body{asm: twoBack("VPSUB" + q)}
	m[name("Not")] = body{asm: func(g *asm) {
		g.ins("VPCMPEQD", "Y4", "Y4", "Y4")
		g.ins("VPXOR", g.out, g.src[0], "Y4")
	}}
	shifts(m, w)
	forms(m, body{asm: func(g *asm) {
		g.mul(w, g.out, g.src[0], g.src[1])
		g.ins("VPADD"+q, g.out, g.out, g.src[2])
	}}, name("Mad"), name("Mad")+"S", name("Mad")+"SB")
	for _, o := range []struct {
		s    string
		swap bool
	}{{"Min", false}, {"Max", true}} {
		if w == 32 {
			both(o.s+"S", body{asm: two("VP" + strings.ToUpper(o.s) + "SD")})
			both(o.s+"U", body{asm: two("VP" + strings.ToUpper(o.s) + "UD")})
			continue
		}
		pick := func(g *asm) {
			a, b := g.src[0], g.src[1]
			if o.swap {
				a, b = b, a
			}
			g.blend(g.out, a, b, "Y4")
		}
		both(o.s+"S", body{asm: func(g *asm) { g.ins("VPCMPGTQ", "Y4", g.src[0], g.src[1]); pick(g) }})
		both(o.s+"U", body{pre: func(g *asm) { g.spread64(c0, 1<<63) }, asm: func(g *asm) {
			g.ins("VPXOR", "Y4", g.src[0], "Y7")
			g.ins("VPXOR", "Y5", g.src[1], "Y7")
			g.ins("VPCMPGTQ", "Y4", "Y4", "Y5")
			pick(g)
		}})
	}
	m[name("AbsS")] = body{asm: func(g *asm) {
		if w == 32 {
			g.ins("VPABSD", g.out, g.src[0])
			return
		}
		g.ins("VPXOR", "Y4", "Y4", "Y4")
		g.ins("VPCMPGTQ", "Y4", "Y4", g.src[0])
		g.ins("VPXOR", g.out, g.src[0], "Y4")
		g.ins("VPSUBQ", g.out, g.out, "Y4")
	}}
	compares(m, w)
}

func shifts(m map[string]body, w int) {
	q := dq(w)
	for _, o := range []struct{ s, variable, uniform string }{
		{"Shl", "VPSLLV", "VPSLL"}, {"ShrU", "VPSRLV", "VPSRL"}, {"ShrS", "VPSRAV", "VPSRA"},
	} {
		shift := func(g *asm, ins, n string) {
			if w == 64 && o.s == "ShrS" {
				g.sra64(strings.Replace(ins, "SRA", "SRL", 1)+q, g.out, g.src[0], n)
				return
			}
			g.ins(ins+q, g.out, g.src[0], n)
		}
		m[fmt.Sprint(o.s, w)] = body{asm: func(g *asm) {
			n := g.src[1]
			if w == 64 {
				g.ins("VPMOVZXDQ", "Y5", n)
				n = "Y5"
			}
			shift(g, o.variable, n)
		}}
		m[fmt.Sprint(o.s, w, "S")] = body{raw: true, pre: func(g *asm) { g.fetch("R8", "n"); g.ins("VMOVD", "X12", "R8") },
			asm: func(g *asm) { shift(g, o.uniform, "X12") }}
	}
}

func compares(m map[string]body, w int) {
	q := dq(w)
	both := func(s string, b body) { forms(m, b, fmt.Sprint(s, w), fmt.Sprint(s, w, "S")) }
	both("EQ", body{asm: two("VPCMPEQ" + q)})
	both("NE", body{asm: two("VPCMPEQ" + q), not: true})
	flip := func(g *asm) { g.spread(c0, w, 1<<(w-1)) }
	// greater compares a and b, or b and a.
	greater := func(swap, isSigned bool) func(g *asm) {
		return func(g *asm) {
			a, b := g.src[0], g.src[1]
			if !isSigned {
				g.ins("VPXOR", "Y4", a, "Y7")
				g.ins("VPXOR", "Y5", b, "Y7")
				a, b = "Y4", "Y5"
			}
			if swap {
				a, b = b, a
			}
			g.ins("VPCMPGT"+q, g.out, a, b)
		}
	}
	for _, isSigned := range []bool{true, false} {
		s, pre := "S", func(*asm) {}
		if !isSigned {
			s, pre = "U", flip
		}
		both("LT"+s, body{pre: pre, asm: greater(true, isSigned)})
		both("LE"+s, body{pre: pre, asm: greater(false, isSigned), not: true})
		m[fmt.Sprintf("GT%s%dS", s, w)] = body{pre: pre, asm: greater(false, isSigned)}
		m[fmt.Sprintf("GE%s%dS", s, w)] = body{pre: pre, asm: greater(true, isSigned), not: true}
	}
	m[fmt.Sprint("EQAffine", w)] = body{pre: func(g *asm) { g.affine(w, "Y13", "Y14") }, asm: func(g *asm) {
		g.ins("VPCMPEQ"+q, g.out, g.src[0], "Y13")
		g.ins("VPADD"+q, "Y13", "Y13", "Y14")
	}}
	m[fmt.Sprint("Odd", w)] = body{asm: func(g *asm) { g.ins("VPSLL"+q, g.out, g.src[0], fmt.Sprintf("$%d", w-1)) }}
}

// affine makes base + lane*stride of the first chunk in the register of base, and the step from chunk to chunk in that of stride.
func (g *asm) affine(w int, base, stride string) {
	q := dq(w)
	g.ins("VMOVDQU", "Y6", fmt.Sprintf("iota%d<>(SB)", w))
	g.mul(w, "Y6", stride, "Y6")
	g.ins("VPADD"+q, base, base, "Y6")
	g.ins("VPSLL"+q, stride, stride, fmt.Sprintf("$%d", map[int]int{32: 3, 64: 2}[w]))
}

// lanesOf makes a mask of cond, spread over Y15, for this chunk.
func (g *asm) lanesOf(w int, to string) {
	bits := fmt.Sprintf("bits%d<>+%d(SB)", w, 32*g.chunk)
	g.ins("VPAND", to, "Y15", bits)
	g.ins("VPCMPEQ"+dq(w), to, to, bits)
}

func moves(m map[string]body, w int) {
	q := dq(w)
	cond := func(g *asm) {
		g.fetch("R8", "cond")
		g.ins("VMOVQ", "X15", "R8")
		g.ins("VPBROADCAST"+q, "Y15", "X15")
	}
	for _, suffix := range []string{"", "VS", "SV", "SS"} {
		m[fmt.Sprint("Sel", w, suffix)] = body{pre: cond, asm: func(g *asm) {
			g.lanesOf(w, "Y4")
			g.blend(g.out, g.src[1], g.src[0], "Y4")
		}}
	}
	m[fmt.Sprint("Bool", w)] = body{pre: cond, asm: func(g *asm) {
		g.lanesOf(w, "Y4")
		g.ins("VPAND", g.out, "Y4", g.src[1])
	}}
	m[fmt.Sprint("Copy", w)] = body{asm: func(g *asm) { g.out = g.src[0] }}
	m[fmt.Sprint("Set", w)] = body{asm: func(g *asm) { g.out = g.src[0] }}
	m[fmt.Sprint("Affine", w)] = body{pre: func(g *asm) { g.affine(w, "Y12", "Y13") }, asm: func(g *asm) {
		g.ins("VMOVDQA", g.out, "Y12")
		g.ins("VPADD"+q, "Y12", "Y12", "Y13")
	}}
	m[fmt.Sprint("Popc", w)] = body{pre: func(g *asm) {
		g.ins("VBROADCASTI128", "Y7", "nibblesOnes<>(SB)")
		g.spread32(c1, 0x0f0f0f0f)
		g.spread32(c2, 0x01010101)
		g.spread32(c3, 0x00010001)
	}, asm: func(g *asm) {
		g.ins("VPAND", "Y4", g.src[0], "Y8")
		g.ins("VPSRLD", "Y5", g.src[0], "$4")
		g.ins("VPAND", "Y5", "Y5", "Y8")
		g.ins("VPSHUFB", "Y4", "Y7", "Y4")
		g.ins("VPSHUFB", "Y5", "Y7", "Y5")
		g.ins("VPADDB", "Y4", "Y4", "Y5")
		if w == 64 {
			g.ins("VPXOR", "Y5", "Y5", "Y5")
			g.ins("VPSADBW", "Y4", "Y4", "Y5")
			g.narrow(3, 4, "$0x88")
			return
		}
		g.ins("VPMADDUBSW", "Y4", "Y4", "Y11")
		g.ins("VPMADDWD", g.out, "Y4", "Y15")
	}}
}

func integers32(m map[string]body) {
	for s, ins := range map[string]string{"U": "VPMULUDQ", "S": "VPMULDQ"} {
		forms(m, body{asm: func(g *asm) {
			g.ins("VPSRLQ", "Y4", g.src[0], "$32")
			g.ins("VPSRLQ", "Y5", g.src[1], "$32")
			g.ins(ins, g.out, g.src[0], g.src[1])
			g.ins(ins, "Y4", "Y4", "Y5")
			g.ins("VPSRLQ", g.out, g.out, "$32")
			g.ins("VPBLENDD", g.out, g.out, "Y4", "$0xaa")
		}}, "MulHi"+s+"32", "MulHi"+s+"32S")
	}
	for _, o := range []struct {
		name          string
		isSigned, rem bool
	}{{"DivU32", false, false}, {"DivS32", true, false}, {"RemU32", false, true}, {"RemS32", true, true}} {
		forms(m, body{eight: true, pre: unsignedConstants, asm: divide(o.isSigned, o.rem)}, o.name, o.name+"S")
	}
	m["Brev32"] = body{pre: func(g *asm) {
		g.ins("VBROADCASTI128", "Y7", "nibblesHigh<>(SB)")
		g.ins("VBROADCASTI128", "Y8", "nibblesLow<>(SB)")
		g.ins("VBROADCASTI128", "Y11", "bytesBack<>(SB)")
		g.spread32(c3, 0x0f0f0f0f)
	}, asm: func(g *asm) {
		g.ins("VPAND", "Y4", g.src[0], "Y15")
		g.ins("VPSRLD", "Y5", g.src[0], "$4")
		g.ins("VPAND", "Y5", "Y5", "Y15")
		g.ins("VPSHUFB", "Y4", "Y7", "Y4")
		g.ins("VPSHUFB", "Y5", "Y8", "Y5")
		g.ins("VPOR", g.out, "Y4", "Y5")
		g.ins("VPSHUFB", g.out, g.out, "Y11")
	}}
	counts := func(g *asm) {
		g.fetch("R8", "n")
		g.ins("ANDL", "R8", "$31")
		g.ins("VMOVD", "X12", "R8")
		g.ins("MOVL", "R9", "$32")
		g.ins("SUBL", "R9", "R8")
		g.ins("VMOVD", "X13", "R9")
	}
	for s, by := range map[string][2]string{"ShfL32S": {"X13", "X12"}, "ShfR32S": {"X12", "X13"}} {
		m[s] = body{raw: true, pre: counts, asm: func(g *asm) {
			g.ins("VPSRLD", "Y4", g.src[0], by[0])
			g.ins("VPSLLD", "Y5", g.src[1], by[1])
			g.ins("VPOR", g.out, "Y4", "Y5")
		}}
	}
	m["Prmt32S"] = body{raw: true, pre: prmtIndices, asm: func(g *asm) {
		g.ins("VPSHUFB", "Y4", g.src[0], "Y12")
		g.ins("VPSHUFB", "Y5", g.src[1], "Y13")
		g.ins("VPOR", g.out, "Y4", "Y5")
		g.ins("VPXOR", "Y4", "Y4", "Y4")
		g.ins("VPCMPGTB", "Y4", "Y4", g.out)
		g.blend(g.out, g.out, "Y4", "Y14")
	}}
}

// divide divides in float64: a quotient of 32 bits that is not whole is at least 1/b away from the next whole number, more than what
// rounding can move it. There are no conversions of unsigned numbers: 2^31 is taken off those from there on, and put back.
func divide(isSigned, rem bool) func(*asm) {
	return func(g *asm) {
		g.doublesOf(isSigned, t0, g.src[0])
		g.doublesOf(isSigned, t1, g.src[1])
		g.ins("VDIVPD", "Y4", "Y4", "Y5")
		if isSigned {
			g.ins("VCVTTPD2DQY", "X3", "Y4")
		} else {
			g.ins("VCMPPD", "Y5", "Y4", "Y8", "$0x1d")
			g.ins("VANDPD", "Y6", "Y5", "Y8")
			g.ins("VSUBPD", "Y4", "Y4", "Y6")
			g.ins("VCVTTPD2DQY", "X3", "Y4")
			g.narrow(t1, t1, "$0x88")
			g.ins("VPSLLD", "X5", "X5", "$31")
			g.ins("VPXOR", "X3", "X3", "X5")
		}
		if rem {
			g.ins("VPMULLD", "X3", "X3", g.src[1])
			g.ins("VPSUBD", "X3", g.src[0], "X3")
		}
		g.ins("VPXOR", "X4", "X4", "X4")
		g.ins("VPCMPEQD", "X4", "X4", g.src[1])
		g.ins("VPOR", "X3", "X3", "X4") // all ones for a division by zero
	}
}

// prmtIndices makes of a selector the byte indices into a (Y12) and b (Y13), and all ones in the bytes that only keep their sign
// (Y14). An index with its top bit set gives 0.
func prmtIndices(g *asm) {
	g.prmtSelector()
	g.ins("VMOVD", "X14", "R9")
	g.ins("VPBROADCASTD", "Y14", "X14")
	g.prmtBytes()
	g.ins("VMOVD", "X12", "R8")
	g.ins("VMOVD", "X13", "SI")
	g.ins("VPBROADCASTD", "Y12", "X12")
	g.ins("VPBROADCASTD", "Y13", "X13")
	g.ins("VBROADCASTI128", "Y15", "words<>(SB)")
	g.ins("VPOR", "Y12", "Y12", "Y15")
	g.ins("VPOR", "Y13", "Y13", "Y15")
}

func widths(m map[string]body) {
	m["SExt64"] = body{asm: one1("VPMOVSXDQ")}
	m["ZExt64"] = body{asm: one1("VPMOVZXDQ")}
	m["Low32"] = body{asm: func(g *asm) { g.narrow(3, 0, "$0x88") }}
	m["High32"] = body{asm: func(g *asm) { g.narrow(3, 0, "$0xdd") }}
	m["Pack64"] = body{asm: func(g *asm) {
		g.ins("VPMOVZXDQ", "Y4", g.src[0])
		g.ins("VPMOVZXDQ", "Y5", g.src[1])
		g.ins("VPSLLQ", "Y5", "Y5", "$32")
		g.ins("VPOR", g.out, "Y4", "Y5")
	}}
	for _, w := range []int{32, 64} {
		q := dq(w)
		count := func(g *asm) {
			g.fetch("R9", "n")
			g.ins("MOVL", "R8", fmt.Sprintf("$%d", w))
			g.ins("SUBL", "R8", "R9")
			g.ins("VMOVD", "X12", "R8")
		}
		m[fmt.Sprint("SExtBits", w)] = body{raw: true, pre: count, asm: func(g *asm) {
			g.ins("VPSLL"+q, g.out, g.src[0], "X12")
			if w == 64 {
				g.sra64("VPSRLQ", g.out, g.out, "X12")
				return
			}
			g.ins("VPSRAD", g.out, g.out, "X12")
		}}
		m[fmt.Sprint("ZExtBits", w)] = body{raw: true, pre: count, asm: func(g *asm) {
			g.ins("VPSLL"+q, g.out, g.src[0], "X12")
			g.ins("VPSRL"+q, g.out, g.out, "X12")
		}}
	}
	for s, ins := range map[string][2]string{"MulU64": {"VPMOVZXDQ", "VPMULUDQ"}, "MulS64": {"VPMOVSXDQ", "VPMULDQ"}} {
		forms(m, body{asm: func(g *asm) {
			g.ins(ins[0], "Y4", g.src[0])
			g.ins(ins[0], "Y5", g.src[1])
			g.ins(ins[1], g.out, "Y4", "Y5")
		}}, s+"", s+"S")
	}
}

// isNaN makes a mask of the lanes that hold NaN.
func (g *asm) isNaN(w int, to, x string) { g.ins("VCMP"+ps(w), to, x, x, "$3") }

func floats(m map[string]body, w int) {
	p := ps(w)
	nan := w == 32
	name := func(s string) string { return fmt.Sprint(s, w) }
	both := func(s string, b body) { forms(m, b, name(s), name(s)+"S") }
	for _, o := range []struct{ s, ins string }{{"FAdd", "VADD"}, {"FSub", "VSUB"}, {"FMul", "VMUL"}, {"FDiv", "VDIV"}} {
		both(o.s, body{asm: two(o.ins + p), nan: nan})
		if o.s == "FSub" || o.s == "FDiv" {
			m[fmt.Sprintf("FR%s%dS", o.s[1:], w)] = body{asm: twoBack(o.ins + p), nan: nan}
		}
	}
	forms(m, body{nan: nan, asm: func(g *asm) {
		g.ins("VMOVDQA", g.out, g.src[1])
		g.ins("VFMADD213"+p, g.out, g.src[0], g.src[2])
	}}, name("FMA"), name("FMA")+"S", name("FMA")+"SB")
	m[name("FSqrt")] = body{asm: one1("VSQRT" + p), nan: nan}
	m[name("FRcp")] = body{nan: nan, pre: func(g *asm) { g.float(c0, w, 1) }, asm: func(g *asm) { g.ins("VDIV"+p, g.out, "Y7", g.src[0]) }}
	m[name("FNeg")] = body{pre: func(g *asm) { g.spread(c0, w, 1<<(w-1)) }, asm: func(g *asm) { g.ins("VPXOR", g.out, g.src[0], "Y7") }}
	m[name("FAbs")] = body{pre: func(g *asm) { g.spread(c0, w, 1<<(w-1)-1) }, asm: func(g *asm) { g.ins("VPAND", g.out, g.src[0], "Y7") }}
	for s, ins := range map[string][2]string{"FMin": {"VMIN", "VPOR"}, "FMax": {"VMAX", "VPAND"}} {
		both(s, body{pre: func(g *asm) {
			if w == 32 {
				g.spread32(c4, nan32)
			} else {
				g.spread64(c4, 1<<51)
			}
		}, asm: func(g *asm) {
			a, b := g.src[0], g.src[1]
			g.ins(ins[0]+p, "Y4", a, b)
			g.ins(ins[0]+p, "Y5", b, a)
			g.ins(ins[1], g.out, "Y4", "Y5") // which of two zeros is less
			g.isNaN(w, "Y4", a)
			g.isNaN(w, "Y5", b)
			g.blend(g.out, g.out, b, "Y4")
			g.blend(g.out, g.out, a, "Y5")
			g.ins("VPAND", "Y4", "Y4", "Y5")
			g.ins("VPAND", "Y5", "Y4", "Y10")
			if w == 64 {
				g.ins("VPOR", g.out, g.out, "Y5")
				return
			}
			g.blend(g.out, g.out, "Y5", "Y4")
		}})
	}
	for _, o := range []struct {
		s          string
		immO, immU int
	}{{"FEQ", 0x00, 0x08}, {"FNE", 0x0c, 0x04}, {"FLT", 0x11, 0x19}, {"FLE", 0x12, 0x1a}, {"FGT", 0x1e, 0x16}, {"FGE", 0x1d, 0x15}} {
		forms(m, body{asm: cmp(p, o.immO)}, name(o.s), name(o.s)+"S")
		forms(m, body{asm: cmp(p, o.immU)}, name(o.s+"U"), name(o.s+"U")+"S")
	}
	both("FNum", body{asm: cmp(p, 7)})
	both("FNaN", body{asm: cmp(p, 3)})
	for _, mode := range modes {
		m[fmt.Sprint("FRound", mode.name, w)] = body{nan: nan, asm: func(g *asm) { g.ins("VROUND"+p, g.out, g.src[0], fmt.Sprintf("$%d", mode.imm)) }}
	}
}

func cmp(p string, imm int) func(*asm) {
	return func(g *asm) { g.ins("VCMP"+p, g.out, g.src[0], g.src[1], fmt.Sprintf("$%d", imm)) }
}

// polynomial computes a polynomial in x whose coefficients are in a table, into y, and needs t.
func (g *asm) polynomial(y, x, t, table string, n int) {
	at := func(i int) string { return fmt.Sprintf("%s<>+%d(SB)", table, 8*i) }
	g.ins("VBROADCASTSD", y, at(n-1))
	for i := n - 2; i >= 0; i-- {
		g.ins("VBROADCASTSD", t, at(i))
		g.ins("VFMADD213PD", y, x, t)
	}
}

func floats32(m map[string]body) {
	m["FRsqrt32"] = body{eight: true, nan: true, pre: func(g *asm) { g.spread64(c0, one64) }, asm: func(g *asm) {
		g.ins("VCVTPS2PD", "Y4", g.src[0])
		g.ins("VSQRTPD", "Y4", "Y4")
		g.ins("VDIVPD", "Y4", "Y7", "Y4")
		g.ins("VCVTPD2PSY", g.out, "Y4")
	}}
	// Beyond 400 the result is infinite, or zero, in single precision, and the exponent of the double does not overflow.
	m["FExpTwo32"] = body{eight: true, nan: true, pre: func(g *asm) { g.float(c0, 64, 400); g.float(c1, 64, -400) }, asm: func(g *asm) {
		g.ins("VCVTPS2PD", "Y4", g.src[0])
		g.ins("VMAXPD", "Y4", "Y8", "Y4") // of a NaN the second: it stays
		g.ins("VMINPD", "Y4", "Y7", "Y4")
		g.ins("VROUNDPD", "Y5", "Y4", "$8")
		g.ins("VSUBPD", "Y4", "Y4", "Y5")
		g.polynomial("Y6", "Y4", "Y9", "exp2", len(approx.Exp2Terms()))
		g.ins("VCVTPD2DQY", "X5", "Y5")
		g.ins("VPMOVSXDQ", "Y5", "X5")
		g.ins("VPSLLQ", "Y5", "Y5", "$52")
		g.ins("VPADDQ", "Y6", "Y6", "Y5")
		g.ins("VCVTPD2PSY", g.out, "Y6")
	}}
	forms(m, body{nan: true, asm: func(g *asm) {
		g.ins("VMOVDQA", g.out, g.src[1])
		g.ins("VFMADD213PS", g.out, g.src[0], g.src[2])
	}, pre: func(g *asm) { g.WriteString("\tVLDMXCSR roundDown<>(SB)\n") },
		post: func(g *asm) { g.WriteString("\tVLDMXCSR roundNear<>(SB)\n") }}, "FMAM32", "FMAM32S", "FMAM32SB")
	m["FLogTwo32"] = body{eight: true, nan: true, pre: log2Constants, asm: log2}
	m["FFtz32"] = body{pre: func(g *asm) { g.spread32(c0, 0x7f800000); g.spread32(c1, 1<<31) }, asm: func(g *asm) {
		g.ins("VPXOR", "Y5", "Y5", "Y5")
		g.ins("VPAND", "Y4", g.src[0], "Y7")
		g.ins("VPCMPEQD", "Y4", "Y4", "Y5")
		g.ins("VPAND", "Y5", g.src[0], "Y8")
		g.blend(g.out, g.src[0], "Y5", "Y4")
	}}
	m["FSat32"] = body{pre: func(g *asm) { g.float(c0, 32, 1); g.ins("VPXOR", "Y8", "Y8", "Y8") }, asm: func(g *asm) {
		g.ins("VMAXPS", g.out, g.src[0], "Y8")
		g.ins("VMINPS", g.out, g.out, "Y7")
	}}
}

// log2Constants puts 1<<52-1 into Y7, 1 into Y8, -infinity into Y11, infinity into Y15 and approx.Log2Factor into Y12.
func log2Constants(g *asm) {
	g.spread64(c0, 1<<52-1)
	g.float(c1, 64, 1)
	g.float(c2, 64, math.Inf(-1))
	g.float(c3, 64, math.Inf(1))
	g.float(12, 64, approx.Log2Factor)
}

// log2 takes the steps of package approx, with the exponent (Y5) and the mantissa (Y6, from 3/4 to 3/2) taken out of the bits.
func log2(g *asm) {
	const magic = 1<<52 + 1023 // the exponent's bits, below those of 2^52, are a number when this is subtracted
	g.ins("VCVTPS2PD", "Y0", g.src[0])
	g.ins("VPSLLQ", "Y4", "Y0", "$1")
	g.ins("VPSRLQ", "Y4", "Y4", "$1") // the magnitude
	g.ins("VPSRLQ", "Y5", "Y4", "$52")
	g.spread64(13, math.Float64bits(1<<52))
	g.ins("VPOR", "Y5", "Y5", "Y13")
	g.float(13, 64, magic)
	g.ins("VSUBPD", "Y5", "Y5", "Y13")
	g.ins("VPAND", "Y6", "Y4", "Y7")
	g.ins("VPOR", "Y6", "Y6", "Y8") // from 1 to 2
	g.float(13, 64, 1.5)
	g.ins("VCMPPD", "Y1", "Y6", "Y13", "$0x1d")
	g.ins("VANDPD", "Y2", "Y1", "Y8")
	g.ins("VADDPD", "Y5", "Y5", "Y2")
	g.float(13, 64, 0.5)
	g.ins("VMULPD", "Y2", "Y6", "Y13")
	g.blend("Y6", "Y6", "Y2", "Y1")
	g.ins("VCMPPD", "Y1", "Y4", "Y15", "$0x15") // infinity or NaN: not less than infinity
	g.blend("Y5", "Y5", "Y4", "Y1")
	g.blend("Y6", "Y6", "Y8", "Y1")
	g.ins("VPXOR", "Y2", "Y2", "Y2")
	g.ins("VCMPPD", "Y1", "Y4", "Y2", "$0")
	g.blend("Y5", "Y5", "Y11", "Y1")
	g.ins("VSUBPD", "Y1", "Y6", "Y8")
	g.ins("VADDPD", "Y2", "Y6", "Y8")
	g.ins("VDIVPD", "Y1", "Y1", "Y2")
	g.ins("VMULPD", "Y2", "Y1", "Y1")
	g.ins("VMULPD", "Y4", "Y1", "Y2")
	g.polynomial("Y6", "Y2", "Y9", "log2", len(approx.Log2Terms()))
	g.ins("VFMADD213PD", "Y6", "Y4", "Y1")
	g.ins("VFMADD213PD", "Y6", "Y12", "Y5")
	g.ins("VCVTPD2PSY", g.out, "Y6")
	g.ins("VPXOR", "Y2", "Y2", "Y2")
	g.ins("VCMPPD", "Y1", "Y0", "Y2", "$0x11") // negative: NaN
	g.narrow(1, 1, "$0x88")
	g.blend(g.out, g.out, "X10", "X1")
}

func conversions(m map[string]body) {
	m["S32toF32"] = body{asm: one1("VCVTDQ2PS")}
	m["U32toF32"] = body{eight: true, pre: unsignedConstants, asm: func(g *asm) {
		g.doublesOf(false, t0, g.src[0])
		g.ins("VCVTPD2PSY", g.out, "Y4")
	}}
	m["S32toF64"] = body{asm: one1("VCVTDQ2PD")}
	m["U32toF64"] = body{pre: unsignedConstants, asm: func(g *asm) { g.doublesOf(false, 3, g.src[0]) }}
	m["F32toF64"] = body{asm: one1("VCVTPS2PD")}
	m["F64toF32"] = body{asm: one1("VCVTPD2PSY"), nan: true}
	for mode, imm := range map[string]string{"Z": "", "N": "$8", "M": "$9", "P": "$10"} {
		m["F32toS32"+mode] = body{pre: func(g *asm) { g.float(c0, 32, 1<<31); g.spread32(c1, 1<<31-1) }, asm: func(g *asm) {
			x := g.src[0]
			if imm != "" {
				g.ins("VROUNDPS", "Y4", x, imm)
				x = "Y4"
			}
			g.ins("VCVTTPS2DQ", g.out, x)
			g.ins("VCMPPS", "Y5", x, "Y7", "$0x1d")
			g.blend(g.out, g.out, "Y8", "Y5")
			g.ins("VCMPPS", "Y5", x, x, "$7")
			g.ins("VPAND", g.out, g.out, "Y5")
		}}
	}
	m["F32toU32Z"] = body{pre: func(g *asm) {
		g.float(c0, 32, 1<<31)
		g.float(c1, 32, 1<<32)
		g.ins("VPXOR", "Y11", "Y11", "Y11")
	}, asm: func(g *asm) {
		g.ins("VMAXPS", "Y4", g.src[0], "Y11") // 0 for a NaN
		g.ins("VCMPPS", "Y5", "Y4", "Y7", "$0x1d")
		g.ins("VANDPS", "Y6", "Y5", "Y7")
		g.ins("VSUBPS", "Y6", "Y4", "Y6")
		g.ins("VCVTTPS2DQ", g.out, "Y6")
		g.ins("VPSLLD", "Y5", "Y5", "$31")
		g.ins("VPXOR", g.out, g.out, "Y5")
		g.ins("VCMPPS", "Y5", "Y4", "Y8", "$0x1d")
		g.ins("VPOR", g.out, g.out, "Y5")
	}}
	m["F64toS32Z"] = body{pre: func(g *asm) { g.float(c0, 64, 1<<31); g.spread32(c1, 1<<31-1) }, asm: func(g *asm) {
		g.ins("VCVTTPD2DQY", g.out, g.src[0])
		g.ins("VCMPPD", "Y4", g.src[0], "Y7", "$0x1d")
		g.narrow(t1, t0, "$0x88")
		g.blend(g.out, g.out, "X8", "X5")
	}}
}

// prmtSelector makes of the selector a byte each in R8, and in R9 all ones in the bytes that only keep their sign.
func (g *asm) prmtSelector() {
	g.fetch("R8", "s")
	g.ins("ANDL", "R8", "$0xffff")
	for _, step := range []struct {
		by   int
		mask uint32
	}{{8, 0x00ff00ff}, {4, 0x0f0f0f0f}} { // one nibble to a byte
		g.ins("MOVL", "R9", "R8")
		g.ins("SHLL", "R9", fmt.Sprintf("$%d", step.by))
		g.ins("ORL", "R8", "R9")
		g.ins("ANDL", "R8", fmt.Sprintf("$%#x", step.mask))
	}
	g.ins("MOVL", "R9", "R8")
	g.ins("ANDL", "R9", "$0x08080808")
	g.ins("SHRL", "R9", "$3")
	g.ins("IMULL", "R9", "$255")
}

// prmtBytes makes of it the indices into a in R8, and into b in SI.
func (g *asm) prmtBytes() {
	g.ins("MOVL", "R9", "R8")
	g.ins("ANDL", "R9", "$0x03030303")
	g.ins("ANDL", "R8", "$0x04040404")
	g.ins("SHLL", "R8", "$5")
	g.ins("MOVL", "SI", "R8")
	g.ins("XORL", "SI", "$0x80808080")
	g.ins("ORL", "R8", "R9")
	g.ins("ORL", "SI", "R9")
}
