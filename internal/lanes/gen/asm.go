package main

import (
	"bytes"
	"fmt"
	"strings"
)

// asm is the assembly of a handler of Run being written. It wants AVX2, FMA, BMI1 and BMI2.
//
// It works in chunks that fill a Y register: 8 lanes, or 4 where 64 bits are involved. In a chunk the sources are in Y0 to Y2, the
// result goes to Y3, Y4 to Y6 are free, Y9 has the lanes that keep what they hold, Y12 to Y14 hold scalars and Y7, Y8, Y10, Y11 and
// Y15 constants through all chunks. Lanes of a mask have all their bits set, or none. The lanes that keep what they hold lie in Regs,
// at keep32 and keep64: the operations of a list have one mask.
//
// Lanes outside of the mask are blended into the result, and the whole chunk is stored: a masked store would stall the next
// instruction of the warp, which loads what was stored (6 ns instead of 3, measured).
//
// A handler (see Run) finds its operands through the Op at R12: DI and R11 are the registers of 32 and 64 bits, R13 the scalars, R14
// the predicates, R10 the Regs, R15 the handlers, DX the mask. AX, BX, CX, SI are the offsets of D, A, B, C; R8 and R9 are free, and
// R9 holds the result of a comparison.
type asm struct {
	bytes.Buffer
	r     *row
	body  body
	n     int      // lanes in a chunk
	chunk int      // number of the chunk
	bases []string // the addresses of the sources
	d     string   // the address of the result
	src   []string // the sources in this chunk
	out   string   // the result
}

// ins writes an instruction given in the order of Intel's manual: destination, sources, immediate.
func (g *asm) ins(op string, operands ...string) {
	for i, j := 0, len(operands)-1; i < j; i, j = i+1, j-1 {
		operands[i], operands[j] = operands[j], operands[i]
	}
	fmt.Fprintf(g, "\t%s %s\n", op, strings.Join(operands, ", "))
}

// lanesIn gives the lanes of a chunk.
func (r *row) lanesIn(eight bool) int {
	if eight || r.dst == v64 {
		return 4
	}
	for _, p := range r.in {
		if p.typ == v64 {
			return 4
		}
	}
	return 8
}

// width is the bits of a vector's lane.
func width(typ string) int {
	if typ == v64 {
		return 64
	}
	return 32
}

// reg names register number i as wide as a chunk of a vector type.
func (g *asm) reg(typ string, i int) string {
	return fmt.Sprint(map[int]string{256: "Y", 128: "X"}[width(typ)*g.n], i)
}

// mem addresses the chunk of a vector.
func (g *asm) mem(typ, base string) string {
	return fmt.Sprint(g.chunk*g.n*width(typ)/8, base)
}

// pointers are the registers of the offsets of sources.
var pointers = []string{"BX", "CX", "SI"}

// scalars brings scalar parameters into registers from Y12 on, and what the body prepares.
func (g *asm) scalars() {
	g.src = make([]string, len(g.r.in))
	for i, p := range g.r.in {
		if !strings.HasPrefix(p.typ, "*") && !g.body.raw && p.name != "cond" {
			g.broadcast(i, p)
		}
	}
	if g.body.pre != nil {
		g.body.pre(g)
	}
}

// broadcast brings scalar parameter i into every lane of a register.
func (g *asm) broadcast(i int, p param) {
	op := "VPBROADCASTD"
	if p.typ == u64 {
		op = "VPBROADCASTQ"
	}
	from := "24(R12)"
	if p.name != g.r.imm {
		g.ins("MOVL", "R8", fmt.Sprintf("%d(R12)", 8+4*i))
		from = "(R13)(R8*1)"
	}
	g.ins(op, fmt.Sprint("Y", 12+i), from)
}

// fetch moves a scalar parameter into a general register.
func (g *asm) fetch(reg, name string) {
	at, p := 0, param{}
	for i := range g.r.in {
		if g.r.in[i].name == name {
			at, p = i, g.r.in[i]
		}
	}
	op := "MOVL"
	if p.typ == u64 {
		op = "MOVQ"
	}
	if name == g.r.imm {
		g.ins(op, reg, "24(R12)")
		return
	}
	base := "R13"
	if name == "cond" {
		base = "R14"
	}
	g.ins("MOVL", reg, fmt.Sprintf("%d(R12)", 8+4*at))
	g.ins(op, reg, "("+base+")("+reg+"*1)")
}

// load brings the vector sources of a chunk into registers.
func (g *asm) load() {
	for i, p := range g.r.in {
		switch {
		case strings.HasPrefix(p.typ, "*"):
			g.src[i] = g.reg(p.typ, i)
			g.ins("VMOVDQU", g.src[i], g.mem(p.typ, g.bases[i]))
		case !g.body.raw:
			g.src[i] = g.reg("*V"+p.typ[4:], 12+i)
		}
	}
}

// chunks writes the chunks of a row with a result vector.
func (g *asm) chunks(masked bool) {
	for g.chunk = 0; g.chunk < 32/g.n; g.chunk++ {
		g.load()
		g.out = g.reg(g.r.dst, 3)
		g.body.asm(g)
		g.store(masked)
	}
}

// keeps loads the lanes of this chunk, of w bits, that keep what they hold, into register 9.
func (g *asm) keeps(w int) string {
	at, reg := keep32At, g.y(w, 9)
	if w == 64 {
		at = keep64At
	}
	g.ins("VMOVDQU", reg, fmt.Sprintf("%d(R10)", at+g.chunk*g.n*w/8))
	return reg
}

// store writes the result of a chunk.
func (g *asm) store(masked bool) {
	at := g.mem(g.r.dst, g.d)
	if g.body.nan {
		x, nan := g.like("Y4"), g.like("Y10")
		g.isNaN(32, x, g.out)
		g.blend(g.out, g.out, nan, x)
	}
	if masked {
		to := g.reg(g.r.dst, 3)
		g.blend(to, g.out, at, g.keeps(width(g.r.dst)))
		g.out = to
	}
	g.ins("VMOVDQU", at, g.out)
}

// compare writes a comparison, whose result goes to BX.
func (g *asm) compare() {
	for g.chunk = 0; g.chunk < 32/g.n; g.chunk++ {
		g.load()
		g.out = "Y3"
		g.body.asm(g)
		g.bits("R9", "R8", g.out)
	}
	if g.body.not {
		g.ins("NOTL", "R9")
	}
	g.ins("MOVL", "BX", "R9")
}

// bits adds the lanes of this chunk's mask to those of the chunks before it.
func (g *asm) bits(to, free, mask string) {
	op := "VMOVMSKPS"
	if g.n == 4 {
		op = "VMOVMSKPD"
	}
	if g.chunk == 0 {
		g.ins(op, to, mask)
		return
	}
	g.ins(op, free, mask)
	g.ins("SHLL", free, fmt.Sprintf("$%d", g.chunk*g.n))
	g.ins("ORL", to, free)
}

// dq is the suffix of integer instructions on lanes of w bits.
func dq(w int) string {
	if w == 64 {
		return "Q"
	}
	return "D"
}

// ps is the suffix of floating-point instructions on lanes of w bits.
func ps(w int) string {
	if w == 64 {
		return "PD"
	}
	return "PS"
}
