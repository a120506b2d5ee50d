package main

import (
	"bytes"
	"fmt"
	"strings"
)

// asm is the assembly of one function, or of one handler of Run, being written.
//
// It works in chunks of 16 lanes, or of 8 where 64 bits are involved: a chunk of 64-bit lanes fills a Z register. Only Z16
// to Z31 are used: writing them needs no VZEROUPPER before Go's own SSE code runs. In a chunk the sources are in Z16 to
// Z18, the result goes to Z19, Z20 to Z25 are free, Z26 to Z28, Z30 and Z31 hold scalars and constants through all
// chunks, and Z29 the NaN of f32. K1 to K4 tell the lanes that keep what they hold, one by chunk of 8, each with those of
// the chunks after it; K0 and K5 to K7 are free. AX, BX, CX, SI address d and the sources; R8 and R9 are free.
//
// Lanes outside of the mask are loaded over the result, and the whole chunk is stored: a masked store would stall the
// next instruction of the warp, which loads what was stored (6 ns instead of 3, measured). A full mask saves the load.
//
// A handler (see Run) finds its operands through the Op at R12: DI and R11 are the registers of 32 and 64 bits, R13 the
// scalars, R14 the predicates, R10 the Regs, R15 the handlers, DX the mask.
type asm struct {
	bytes.Buffer
	r       *row
	handler bool
	avx2    bool     // see avx2.go
	n       int      // lanes in a chunk
	chunk   int      // number of the chunk
	bases   []string // the addresses of the sources
	d       string   // the address of the result
	src     []string // the sources in this chunk
	out     string   // the result
	k       string   // comparisons: the result
}

// ins writes an instruction given in the order of Intel's manual: destination, sources, immediate.
func (g *asm) ins(op string, operands ...string) {
	for i, j := 0, len(operands)-1; i < j; i, j = i+1, j-1 {
		operands[i], operands[j] = operands[j], operands[i]
	}
	fmt.Fprintf(g, "\t%s %s\n", op, strings.Join(operands, ", "))
}

// under writes an instruction under a mask.
func (g *asm) under(k, op string, operands ...string) {
	dst := operands[0]
	rest := operands[1:]
	for i, j := 0, len(rest)-1; i < j; i, j = i+1, j-1 {
		rest[i], rest[j] = rest[j], rest[i]
	}
	fmt.Fprintf(g, "\t%s %s, %s, %s\n", op, strings.Join(rest, ", "), k, dst)
}

// slot is a parameter's place in the frame.
type slot struct {
	param
	at int
}

// frame places the parameters; size includes the result, at ret.
func (r *row) frame() (slots []slot, ret, size int) {
	at := 0
	for _, p := range r.params() {
		n, align := 8, 8
		switch p.typ {
		case u32:
			n, align = 4, 4
		case slice:
			n = 24
		}
		at = (at + align - 1) &^ (align - 1)
		slots = append(slots, slot{p, at})
		at += n
	}
	size = at
	if r.returns() {
		ret = (at + 7) &^ 7
		size = ret + 4
	}
	return slots, ret, size
}

// ref names a parameter in the frame.
func (g *asm) ref(name string) string {
	slots, _, _ := g.r.frame()
	for _, s := range slots {
		if s.name == name {
			if s.typ == slice {
				name += "_base"
			}
			return fmt.Sprintf("%s+%d(FP)", name, s.at)
		}
	}
	panic("BUG: no parameter " + name + " in " + g.r.name)
}

// lanesIn gives the lanes of a chunk.
func (r *row) lanesIn() int {
	if r.eight || r.dst == v64 {
		return 8
	}
	for _, p := range r.in {
		if p.typ == v64 {
			return 8
		}
	}
	return 16
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
	return fmt.Sprint(map[int]string{512: "Z", 256: "Y", 128: "X"}[width(typ)*g.n], i)
}

// mem addresses the chunk of a vector.
func (g *asm) mem(typ, base string) string {
	return fmt.Sprint(g.chunk*g.n*width(typ)/8, base)
}

const movu = "VMOVDQU64"

// begin writes the comment and the TEXT line of a function.
func (r *row) begin() *asm {
	g := &asm{r: r, n: r.lanesIn()}
	_, _, size := r.frame()
	fmt.Fprintf(g, "\n// func asm%s%s\nTEXT ·asm%s(SB), NOSPLIT, $0-%d\n", r.name, r.signature(), r.name, size)
	return g
}

// pointers are the registers of the addresses of sources.
var pointers = []string{"BX", "CX", "SI"}

// function writes the whole function.
func (r *row) function() []byte {
	g := r.begin()
	if r.dst != "" {
		g.ins("MOVQ", "AX", g.ref("d"))
	}
	g.d, g.bases = "(AX)", make([]string, len(r.in))
	for i, p := range r.in {
		if strings.HasPrefix(p.typ, "*") {
			g.ins("MOVQ", pointers[i], g.ref(p.name))
			g.bases[i] = "(" + pointers[i] + ")"
		}
	}
	g.ins("MOVL", "DX", g.ref("mask"))
	if r.nan {
		g.konst32("Z29", nan32)
	}
	g.scalars()
	if r.dst == "" {
		_, ret, _ := r.frame()
		g.compare()
		g.ins("KMOVD", "AX", "K0")
		g.ins("ANDL", "AX", "DX")
		fmt.Fprintf(g, "\tMOVL AX, ret+%d(FP)\n\tRET\n", ret)
		return g.Bytes()
	}
	g.ins("CMPL", "$-1", "DX")
	g.WriteString("\tJNE part\n")
	g.chunks(false)
	g.WriteString("\tRET\n\npart:\n")
	g.ins("NOTL", "DX")
	g.keep()
	g.chunks(true)
	g.WriteString("\tRET\n")
	return g.Bytes()
}

// keep makes K1 to K4, as far as this function needs them, of the mask in DX, turned.
func (g *asm) keep() {
	g.ins("KMOVD", "K1", "DX")
	for i := g.n / 8; i < 4; i += g.n / 8 {
		g.ins("KSHIFTRD", fmt.Sprint("K", 1+i), "K1", fmt.Sprintf("$%d", 8*i))
	}
}

// keeps is the register with the lanes of the chunk that keep what they hold.
func (g *asm) keeps() string { return fmt.Sprint("K", 1+g.chunk*g.n/8) }

// scalars brings scalar parameters into registers from Z26 on, and what the row prepares.
func (g *asm) scalars() {
	g.src = make([]string, len(g.r.in))
	for i, p := range g.r.in {
		if strings.HasPrefix(p.typ, "*") || g.r.raw || p.name == "cond" {
			continue
		}
		if g.avx2 {
			g.broadcast(12+i, p)
			continue
		}
		g.src[i] = fmt.Sprint("Z", 26+i)
		if p.typ == u64 {
			g.word("VPBROADCASTQ", g.src[i], p.name)
			continue
		}
		g.word("VPBROADCASTD", g.src[i], p.name)
	}
	if g.r.pre != nil {
		g.r.pre(g)
	}
}

// word gives a scalar parameter to an instruction, by way of R8: vet takes instructions in D for eight bytes.
func (g *asm) word(op, to, name string) {
	g.fetch("R8", name)
	g.ins(op, to, "R8")
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
	switch {
	case !g.handler:
		g.ins(op, reg, g.ref(name))
	case name == g.r.imm:
		g.ins(op, reg, "24(R12)")
	default:
		base := "R13"
		if name == "cond" {
			base = "R14"
		}
		g.ins("MOVL", reg, fmt.Sprintf("%d(R12)", 8+4*at))
		g.ins(op, reg, "("+base+")("+reg+"*1)")
	}
}

// load brings the vector sources of a chunk into registers.
func (g *asm) load() {
	for i, p := range g.r.in {
		switch {
		case strings.HasPrefix(p.typ, "*"):
			g.src[i] = g.reg(p.typ, g.first(16, 0)+i)
			g.ins(g.move(), g.src[i], g.mem(p.typ, g.bases[i]))
		case !g.r.raw:
			g.src[i] = g.reg("*V"+p.typ[4:], g.first(26, 12)+i)
		}
	}
}

// first and move choose between AVX-512 and AVX2.
func (g *asm) first(avx512, avx2 int) int {
	if g.avx2 {
		return avx2
	}
	return avx512
}

func (g *asm) move() string {
	if g.avx2 {
		return "VMOVDQU"
	}
	return movu
}

// chunks writes the chunks of a function with a result vector.
func (g *asm) chunks(masked bool) {
	for g.chunk = 0; g.chunk < 32/g.n; g.chunk++ {
		g.load()
		g.out = g.reg(g.r.dst, g.first(19, 3))
		g.r.asm(g)
		if g.avx2 {
			g.store2(masked)
			continue
		}
		g.store(masked)
	}
}

// store writes the result of a chunk.
func (g *asm) store(masked bool) {
	at := g.mem(g.r.dst, g.d)
	if masked {
		g.under(g.keeps(), fmt.Sprint("VMOVDQU", width(g.r.dst)), g.out, at)
	}
	g.ins(movu, at, g.out)
}

// compare writes a comparison, whose result goes to K0.
func (g *asm) compare() {
	for g.chunk = 0; g.chunk < 32/g.n; g.chunk++ {
		g.load()
		g.k = []string{"K0", "K5", "K6", "K7"}[g.chunk]
		g.r.asm(g)
	}
	g.join()
}

// join brings the results of the chunks together in K0.
func (g *asm) join() {
	if g.n == 8 {
		g.ins("KUNPCKBW", "K0", "K5", "K0")
		g.ins("KUNPCKBW", "K6", "K7", "K6")
		g.ins("KUNPCKWD", "K0", "K6", "K0")
	} else {
		g.ins("KUNPCKWD", "K0", "K5", "K0")
	}
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
