package main

import (
	"bytes"
	"fmt"
	"strings"
)

// asm is the assembly of one function being written.
//
// A function works in chunks of 16 lanes, or of 8 where 64 bits are involved: a chunk of 64-bit lanes fills a Z register.
// Only Z16 to Z31 are used: writing them needs no VZEROUPPER before Go's own SSE code runs. d lies at AX, vector sources
// at BX, CX, SI; in a chunk the sources are in Z16 to Z18, the result goes to Z19, Z20 to Z25 are free, and Z26 to Z31
// hold scalars and constants through all chunks. K1 tells the lanes that keep what they hold, K2 those of the chunk; K3
// to K7 are free.
//
// Lanes outside of the mask are loaded over the result, and the whole chunk is stored: a masked store would stall the
// next instruction of the warp, which loads what was stored (6 ns instead of 3, measured). A full mask saves the load.
type asm struct {
	bytes.Buffer
	r     *row
	n     int      // lanes in a chunk
	chunk int      // number of the chunk
	src   []string // the sources in this chunk
	out   string   // the result
	k     string   // comparisons: the result
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
	if r.dst == "" {
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
	if width(typ)*g.n == 512 {
		return fmt.Sprint("Z", i)
	}
	return fmt.Sprint("Y", i)
}

// mem addresses the chunk of a vector.
func (g *asm) mem(typ, base string) string {
	return fmt.Sprintf("%d(%s)", g.chunk*g.n*width(typ)/8, base)
}

const movu = "VMOVDQU64"

// function writes the whole function.
func (r *row) function() []byte {
	g := &asm{r: r, n: r.lanesIn()}
	_, ret, size := r.frame()
	fmt.Fprintf(g, "\n// func asm%s%s\nTEXT ·asm%s(SB), NOSPLIT, $0-%d\n", r.name, r.signature(), r.name, size)
	if r.dst != "" {
		g.ins("MOVQ", "AX", g.ref("d"))
	}
	bases := []string{"BX", "CX", "SI"}
	for i, p := range r.in {
		if strings.HasPrefix(p.typ, "*") {
			g.ins("MOVQ", bases[i], g.ref(p.name))
		}
	}
	g.ins("MOVL", "DX", g.ref("mask"))
	g.scalars()
	if r.dst == "" {
		g.compare(bases)
		fmt.Fprintf(g, "\tMOVL AX, ret+%d(FP)\n\tRET\n", ret)
		return g.Bytes()
	}
	g.ins("CMPL", "$-1", "DX")
	g.WriteString("\tJNE part\n")
	g.chunks(bases, false)
	g.WriteString("\tRET\n\npart:\n")
	g.ins("NOTL", "DX")
	g.ins("KMOVD", "K1", "DX")
	g.chunks(bases, true)
	g.WriteString("\tRET\n")
	return g.Bytes()
}

// scalars brings scalar parameters into registers from Z26 on, and what the row prepares.
func (g *asm) scalars() {
	g.src = make([]string, len(g.r.in))
	for i, p := range g.r.in {
		if strings.HasPrefix(p.typ, "*") || g.r.raw || p.name == "cond" {
			continue
		}
		g.src[i] = fmt.Sprint("Z", 26+i)
		if p.typ == u64 {
			g.ins("VPBROADCASTQ", g.src[i], g.ref(p.name))
			continue
		}
		g.word("VPBROADCASTD", g.src[i], p.name)
	}
	if g.r.pre != nil {
		g.r.pre(g)
	}
}

// word moves a 32-bit parameter by way of R8: vet takes instructions in D for eight bytes.
func (g *asm) word(op, to, name string) {
	g.ins("MOVL", "R8", g.ref(name))
	g.ins(op, to, "R8")
}

// load brings the vector sources of a chunk into registers.
func (g *asm) load(bases []string) {
	for i, p := range g.r.in {
		switch {
		case strings.HasPrefix(p.typ, "*"):
			g.src[i] = g.reg(p.typ, 16+i)
			g.ins(movu, g.src[i], g.mem(p.typ, bases[i]))
		case !g.r.raw:
			g.src[i] = g.reg("*V"+p.typ[4:], 26+i)
		}
	}
}

// chunks writes the chunks of a function with a result vector.
func (g *asm) chunks(bases []string, masked bool) {
	w := width(g.r.dst)
	for g.chunk = 0; g.chunk < 32/g.n; g.chunk++ {
		g.load(bases)
		g.out = g.reg(g.r.dst, 19)
		g.r.asm(g)
		at := g.mem(g.r.dst, "AX")
		if !masked {
			g.ins(movu, at, g.out)
			continue
		}
		k := "K1"
		if g.chunk > 0 {
			k = "K2"
			g.ins("KSHIFTRD", k, "K1", fmt.Sprintf("$%d", g.chunk*g.n))
		}
		g.under(k, "VMOVDQU"+fmt.Sprint(w), g.out, at)
		g.ins(movu, at, g.out)
	}
}

// compare writes a comparison.
func (g *asm) compare(bases []string) {
	for g.chunk = 0; g.chunk < 32/g.n; g.chunk++ {
		g.load(bases)
		g.k = fmt.Sprint("K", 1+g.chunk)
		g.r.asm(g)
	}
	if g.n == 8 {
		g.ins("KUNPCKBW", "K1", "K2", "K1")
		g.ins("KUNPCKBW", "K3", "K4", "K3")
		g.ins("KUNPCKWD", "K1", "K3", "K1")
	} else {
		g.ins("KUNPCKWD", "K1", "K2", "K1")
	}
	g.ins("KMOVD", "AX", "K1")
	g.ins("ANDL", "AX", "DX")
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
