package main

import (
	"fmt"
	"math"

	"fencepost.dev/fencepost/internal/approx"
)

// The pieces of assembly that rows share.

const (
	nan32 = 0x7fffffff
	one64 = 0x3ff0000000000000
)

// one1 is an instruction of one source.
func one1(ins string) func(*asm) { return func(g *asm) { g.ins(ins, g.out, g.src[0]) } }

// two is an instruction of two sources, twoBack has them the other way around.
func two(ins string) func(*asm) { return func(g *asm) { g.ins(ins, g.out, g.src[0], g.src[1]) } }

func twoBack(ins string) func(*asm) { return func(g *asm) { g.ins(ins, g.out, g.src[1], g.src[0]) } }

// compare is a comparison by the predicate imm.
func compare(ins string, imm int) func(*asm) {
	return func(g *asm) { g.ins(ins, g.k, g.src[0], g.src[1], fmt.Sprintf("$%d", imm)) }
}

// not is the ternary function that turns its third bit.
func not(g *asm) { g.ins("VPTERNLOGD", g.out, g.src[0], g.src[0], "$0x55") }

// ones sets every bit.
func (g *asm) ones(reg string) { g.ins("VPTERNLOGD", reg, reg, reg, "$0xff") }

// konst32 and konst64 put bits into every lane.
func (g *asm) konst32(reg string, bits uint32) {
	g.ins("MOVL", "R8", fmt.Sprintf("$%#x", bits))
	g.ins("VPBROADCASTD", reg, "R8")
}

func (g *asm) konst64(reg string, bits uint64) {
	g.ins("MOVQ", "R8", fmt.Sprintf("$%#x", bits))
	g.ins("VPBROADCASTQ", reg, "R8")
}

// konst puts a floating-point number into every lane.
func (g *asm) konst(reg string, w int, x float64) {
	if w == 32 {
		g.konst32(reg, math.Float32bits(float32(x)))
		return
	}
	g.konst64(reg, math.Float64bits(x))
}

// oneNaN makes every NaN of the f32 result the one there is.
func (r *row) oneNaN() {
	f := r.asm
	r.nan = true
	r.asm = func(g *asm) {
		f(g)
		g.ins("VCMPPS", "K5", g.out, g.out, "$3")
		g.under("K5", "VMOVDQA32", g.out, g.like("Z29"))
	}
}

// like names a register as wide as the result.
func (g *asm) like(reg string) string { return g.out[:1] + reg[1:] }

// affine makes base + lane*stride of the first chunk in the register of base, and the step from chunk to chunk in that
// of stride.
func (g *asm) affine(base, stride string) {
	w := 32
	if g.n == 8 {
		w = 64
	}
	q := dq(w)
	g.ins("VPMULL"+q, "Z20", stride, fmt.Sprintf("iota%d<>(SB)", w))
	g.ins("VPADD"+q, base, base, "Z20")
	g.ins("VPSLL"+q, stride, stride, fmt.Sprintf("$%d", map[int]int{16: 4, 8: 3}[g.n]))
}

// clz counts leading zeros; of 64 bits the counts are narrowed.
func clz(w int) func(*asm) {
	return func(g *asm) {
		if w == 32 {
			g.ins("VPLZCNTD", g.out, g.src[0])
			return
		}
		g.ins("VPLZCNTQ", "Z20", g.src[0])
		g.ins("VPMOVQD", g.out, "Z20")
	}
}

// popcTables loads the counts of nibbles, the mask of nibbles, and what adds bytes up.
func popcTables(w int) func(*asm) {
	return func(g *asm) {
		g.ins("VBROADCASTI32X4", "Z30", "nibblesOnes<>(SB)")
		g.konst32("Z31", 0x0f0f0f0f)
		if w == 32 {
			g.konst32("Z27", 0x01010101)
			g.konst32("Z28", 0x00010001)
		} else {
			g.ins("VPXORD", "Z27", "Z27", "Z27")
		}
	}
}

// popc counts the ones of nibbles and adds them up; there is an instruction, but not in every processor with AVX-512.
func popc(w int) func(*asm) {
	return func(g *asm) {
		g.ins("VPANDD", "Z20", g.src[0], "Z31")
		g.ins("VPSRLD", "Z21", g.src[0], "$4")
		g.ins("VPANDD", "Z21", "Z21", "Z31")
		g.ins("VPSHUFB", "Z20", "Z30", "Z20")
		g.ins("VPSHUFB", "Z21", "Z30", "Z21")
		g.ins("VPADDB", "Z20", "Z20", "Z21")
		if w == 64 {
			g.ins("VPSADBW", "Z20", "Z20", "Z27")
			g.ins("VPMOVQD", g.out, "Z20")
			return
		}
		g.ins("VPMADDUBSW", "Z20", "Z20", "Z27")
		g.ins("VPMADDWD", g.out, "Z20", "Z28")
	}
}

// mulHi multiplies even and odd lanes apart; K7 has the odd ones.
func mulHi(ins string) func(*asm) {
	return func(g *asm) {
		g.ins("VPSRLQ", "Z20", g.src[0], "$32")
		g.ins("VPSRLQ", "Z21", g.src[1], "$32")
		g.ins(ins, g.out, g.src[0], g.src[1])
		g.ins(ins, "Z20", "Z20", "Z21")
		g.ins("VPSRLQ", g.out, g.out, "$32")
		g.under("K7", "VMOVDQA32", g.out, "Z20")
	}
}

// divide divides in float64: a quotient of 32 bits that is not whole is at least 1/b away from the next whole number,
// more than what rounding can move it. What does not fit, and a division by zero, converts to all ones where unsigned
// and to the smallest number where signed. Z31 holds all ones.
func divide(isSigned, rem bool) func(*asm) {
	up, down := "VCVTUDQ2PD", "VCVTTPD2UDQ"
	if isSigned {
		up, down = "VCVTDQ2PD", "VCVTTPD2DQ"
	}
	return func(g *asm) {
		g.ins(up, "Z20", g.src[0])
		g.ins(up, "Z21", g.src[1])
		g.ins("VDIVPD", "Z20", "Z20", "Z21")
		g.ins(down, g.out, "Z20")
		if rem {
			g.ins("VPMULLD", g.out, g.out, g.src[1])
			g.ins("VPSUBD", g.out, g.src[0], g.out)
		}
		if rem || isSigned {
			g.ins("VPTESTNMD", "K5", g.src[1], g.src[1])
			g.under("K5", "VMOVDQA32", g.out, "Y31")
		}
	}
}

// brevTables loads what brev looks up: the reversed nibbles, in the upper and the lower half of a byte, and the bytes of
// words the other way around.
func brevTables(g *asm) {
	g.ins("VBROADCASTI32X4", "Z28", "nibblesHigh<>(SB)")
	g.ins("VBROADCASTI32X4", "Z27", "nibblesLow<>(SB)")
	g.ins("VBROADCASTI32X4", "Z30", "bytesBack<>(SB)")
	g.konst32("Z31", 0x0f0f0f0f)
}

func brev(g *asm) {
	g.ins("VPANDD", "Z20", g.src[0], "Z31")
	g.ins("VPSRLD", "Z21", g.src[0], "$4")
	g.ins("VPANDD", "Z21", "Z21", "Z31")
	g.ins("VPSHUFB", "Z20", "Z28", "Z20")
	g.ins("VPSHUFB", "Z21", "Z27", "Z21")
	g.ins("VPORD", g.out, "Z20", "Z21")
	g.ins("VPSHUFB", g.out, g.out, "Z30")
}

// funnelCounts puts n & 31 into X26 and 32 less that into X27; a shift by 32 gives 0, as it should.
func funnelCounts(g *asm) {
	g.fetch("R8", "n")
	g.ins("ANDL", "R8", "$31")
	g.ins("VMOVD", "X26", "R8")
	g.ins("MOVL", "R9", "$32")
	g.ins("SUBL", "R9", "R8")
	g.ins("VMOVD", "X27", "R9")
}

// funnel shifts lo to the right and hi to the left.
func funnel(right, left string) func(*asm) {
	return func(g *asm) {
		g.ins("VPSRLD", "Z20", g.src[0], right)
		g.ins("VPSLLD", "Z21", g.src[1], left)
		g.ins("VPORD", g.out, "Z20", "Z21")
	}
}

// prmtIndices makes of a selector the byte indices into a (Z26) and b (Z27), and all ones in the bytes that only keep their
// sign (Z28). An index with its top bit set gives 0.
func prmtIndices(g *asm) {
	g.prmtSelector()
	g.ins("VPBROADCASTD", "Z28", "R9")
	g.prmtBytes()
	g.ins("VPBROADCASTD", "Z26", "R8")
	g.ins("VPBROADCASTD", "Z27", "SI")
	g.ins("VBROADCASTI32X4", "Z31", "words<>(SB)")
	g.ins("VPORD", "Z26", "Z26", "Z31")
	g.ins("VPORD", "Z27", "Z27", "Z31")
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

func prmt(g *asm) {
	g.ins("VPSHUFB", "Z20", g.src[0], "Z26")
	g.ins("VPSHUFB", "Z21", g.src[1], "Z27")
	g.ins("VPORD", g.out, "Z20", "Z21")
	g.ins("VPMOVB2M", "K5", g.out)
	g.ins("VPMOVM2B", "Z20", "K5")
	g.ins("VPTERNLOGD", g.out, "Z28", "Z20", "$0xb8") // the sign where the second is set
}

// extendCount puts the bits to drop into X26; extend shifts them out and the others back.
func extendCount(w int) func(*asm) {
	return func(g *asm) {
		g.fetch("R9", "n")
		g.ins("MOVL", "R8", fmt.Sprintf("$%d", w))
		g.ins("SUBL", "R8", "R9")
		g.ins("VMOVD", "X26", "R8")
	}
}

func extend(w int, back string) func(*asm) {
	return func(g *asm) {
		g.ins("VPSLL"+dq(w), g.out, g.src[0], "X26")
		g.ins(back+dq(w), g.out, g.out, "X26")
	}
}

// minMax uses VRANGE, which orders -0 and +0, and puts right what it makes of NaNs. Z31 holds the quiet bit of f64.
func minMax(w, imm int) func(*asm) {
	move := fmt.Sprint("VMOVDQA", w)
	return func(g *asm) {
		a, b := g.src[0], g.src[1]
		g.ins("VRANGE"+ps(w), g.out, a, b, fmt.Sprintf("$%d", imm))
		g.ins("VCMP"+ps(w), "K5", a, a, "$3")
		g.ins("VCMP"+ps(w), "K6", b, b, "$3")
		g.under("K5", move, g.out, b)
		g.under("K6", move, g.out, a)
		g.ins("KANDW", "K5", "K5", "K6")
		if w == 32 {
			g.under("K5", move, g.out, "Z29")
		} else {
			g.under("K5", "VPORQ", g.out, g.out, "Z31")
		}
	}
}

func f32toS32Constants(g *asm) {
	g.konst("Z30", 32, 1<<31)
	g.konst32("Z31", 1<<31-1)
}

// f32toS32 converts; what does not fit and NaN give the smallest number, so the large (from Z30 on) and NaN are put right.
func f32toS32(ins string) func(*asm) {
	return func(g *asm) {
		g.ins(ins, g.out, g.src[0])
		g.ins("VCMPPS", "K5", g.src[0], "Z30", "$0x1d")
		g.under("K5", "VMOVDQA32", g.out, "Z31")
		g.ins("VCMPPS", "K5", g.src[0], g.src[0], "$3")
		g.under("K5", "VPXORD", g.out, g.out, g.out)
	}
}

// double gives the source as f64.
func (g *asm) double() string {
	if g.r.in[0].typ == v64 {
		return g.src[0]
	}
	g.ins("VCVTPS2PD", "Z20", g.src[0])
	return "Z20"
}

// toInt is the conversion of f64 to integers.
func toInt(isSigned bool, w int) string {
	u := "U"
	if isSigned {
		u = ""
	}
	return map[int]string{32: "VCVTTPD2" + u + "DQ", 64: "VCVTTPD2" + u + "QQ"}[w]
}

func toSignedConstants(w int) func(*asm) {
	return func(g *asm) {
		g.konst("Z30", 64, math.Ldexp(1, w-1))
		g.ones("Z31")
		g.ins("VPSRL"+dq(w), "Z31", "Z31", "$1")
	}
}

// toSigned converts f64; NaN and what does not fit give the smallest number, which is right but for the large.
func toSigned(w int) func(*asm) {
	return func(g *asm) {
		x := g.double()
		g.ins(toInt(true, w), g.out, x)
		g.ins("VCMPPD", "K5", x, "Z30", "$0x1d")
		g.under("K5", fmt.Sprint("VMOVDQA", w), g.out, g.like("Z31"))
	}
}

func toUnsignedConstants(w int) func(*asm) {
	return func(g *asm) {
		g.ins("VPXORD", "Z30", "Z30", "Z30")
		g.ones("Z31")
		g.ins("VPSLL"+dq(w), "Z31", "Z31", fmt.Sprintf("$%d", w-1))
	}
}

// toUnsigned converts f64; what does not fit and NaN give all ones, so the negative and NaN are put right.
func toUnsigned(w int) func(*asm) {
	return func(g *asm) {
		x := g.double()
		g.ins(toInt(false, w), g.out, x)
		g.ins("VCMPPD", "K5", x, "Z30", "$0x12")
		g.under("K5", "VPXOR"+dq(w), g.out, g.out, g.out)
		g.ins("VCMPPD", "K5", x, x, "$3")
		g.under("K5", fmt.Sprint("VMOVDQA", w), g.out, g.like("Z31"))
	}
}

// polynomial computes a polynomial in x whose coefficients are in a table, into y.
func (g *asm) polynomial(y, x, table string, n int) {
	at := func(i int) string { return fmt.Sprintf("%s<>+%d(SB)", table, 8*i) }
	g.ins("VBROADCASTSD", y, at(n-1))
	for i := n - 2; i >= 0; i-- {
		g.ins("VFMADD213PD.BCST", y, x, at(i))
	}
}

// exp2 and log2 take the steps of package approx.
func exp2(g *asm) {
	g.ins("VCVTPS2PD", "Z20", g.src[0])
	g.ins("VMAXPD", "Z20", "Z31", "Z20") // of a NaN the second: it stays
	g.ins("VMINPD", "Z20", "Z30", "Z20")
	g.ins("VRNDSCALEPD", "Z21", "Z20", "$8")
	g.ins("VSUBPD", "Z20", "Z20", "Z21")
	g.polynomial("Z22", "Z20", "exp2", len(approx.Exp2Terms()))
	g.ins("VSCALEFPD", "Z22", "Z22", "Z21")
	g.ins("VCVTPD2PS", g.out, "Z22")
}

func log2Constants(g *asm) {
	g.ones("Z26")
	g.ins("VPSRLQ", "Z26", "Z26", "$1")
	g.konst("Z27", 64, approx.Log2Factor)
	g.ins("VPXORD", "Z28", "Z28", "Z28")
	g.konst("Z30", 64, 1)
}

func log2(g *asm) {
	g.ins("VCVTPS2PD", "Z20", g.src[0])
	g.ins("VPANDQ", "Z21", "Z20", "Z26")
	g.ins("VGETEXPPD", "Z22", "Z21")
	g.ins("VGETMANTPD", "Z23", "Z21", "$3") // from 3/4 to 3/2; 1 for zero and infinity
	g.ins("VCMPPD", "K5", "Z23", "Z30", "$0x11")
	g.under("K5", "VADDPD", "Z22", "Z22", "Z30")
	g.ins("VSUBPD", "Z24", "Z23", "Z30")
	g.ins("VADDPD", "Z25", "Z23", "Z30")
	g.ins("VDIVPD", "Z24", "Z24", "Z25")
	g.ins("VMULPD", "Z25", "Z24", "Z24")
	g.ins("VMULPD", "Z21", "Z24", "Z25")
	g.polynomial("Z23", "Z25", "log2", len(approx.Log2Terms()))
	g.ins("VFMADD213PD", "Z23", "Z21", "Z24")
	g.ins("VFMADD213PD", "Z23", "Z27", "Z22")
	g.ins("VCVTPD2PS", g.out, "Z23")
	g.ins("VCMPPD", "K5", "Z20", "Z28", "$0x11")
	g.under("K5", "VMOVDQA32", g.out, g.like("Z29"))
}
