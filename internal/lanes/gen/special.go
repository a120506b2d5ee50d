package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"fencepost.dev/fencepost/internal/approx"
)

// lop3 jumps to the one of 256 pieces whose instruction has the table, which is part of the instruction. Each goes on
// where BX says.
func lop3(r *row) []byte {
	g := r.begin()
	g.ins("MOVQ", "AX", g.ref("d"))
	for i, name := range []string{"a", "b", "c"} {
		g.ins("MOVQ", pointers[i], g.ref(name))
	}
	g.ins("MOVL", "DX", g.ref("mask"))
	g.d, g.bases = "(AX)", []string{"(BX)", "(CX)", "(SI)"}
	g.lop3Jump("lop3tail")
	g.WriteString("\nTEXT lop3tail<>(SB), NOSPLIT|NOFRAME, $0-0\n")
	g.ins("NOTL", "DX")
	g.keep()
	g.lop3Store(true)
	g.WriteString("\tRET\n")
	for i := range 256 {
		fmt.Fprintf(g, "\nTEXT lop3_%02x<>(SB), NOSPLIT|NOFRAME, $0-0\n", i)
		g.ins("VPTERNLOGD", "Z16", "Z17", "Z18", fmt.Sprintf("$%d", i))
		g.ins("VPTERNLOGD", "Z20", "Z21", "Z22", fmt.Sprintf("$%d", i))
		g.WriteString("\tJMP BX\n")
	}
	g.WriteString("\n")
	for i := range 256 {
		fmt.Fprintf(g, "DATA lop3<>+%d(SB)/8, $lop3_%02x<>(SB)\n", 8*i, i)
	}
	g.WriteString("GLOBL lop3<>(SB), RODATA, $2048\n")
	return g.Bytes()
}

// lop3Jump loads the sources, the second chunk four registers higher, and jumps.
func (g *asm) lop3Jump(tail string) {
	for i := range 3 {
		for g.chunk = range 2 {
			g.ins(movu, fmt.Sprint("Z", 16+i+4*g.chunk), g.mem(v32, g.bases[i]))
		}
	}
	g.fetch("R8", "lut")
	g.ins("MOVBLZX", "R8", "R8")
	fmt.Fprintf(g, "\tLEAQ lop3<>(SB), R9\n\tMOVQ (R9)(R8*8), R9\n\tLEAQ %s<>(SB), BX\n\tJMP R9\n", tail)
}

func (g *asm) lop3Store(masked bool) {
	for g.chunk = range 2 {
		g.out = fmt.Sprint("Z", 16+4*g.chunk)
		g.store(masked)
	}
}

const slice = "[]byte"

// memory gives the functions that move data, whose Go code is written by hand: memory.go.
func memory() []*row {
	var rows []*row
	add := func(name, dst string, in []param, whole func(*row) []byte) {
		rows = append(rows, &row{name: name, dst: dst, in: in, whole: whole, hand: true})
	}
	mem, off := param{"mem", slice}, param{"off", v64}
	add("Gather32", v32, []param{mem, off}, gather("VPGATHERQD"))
	add("Gather64", v64, []param{mem, off}, gather("VPGATHERQQ"))
	add("Scatter32", "mem", []param{mem, off, {"a", v32}}, scatter("VPSCATTERQD"))
	add("Scatter64", "mem", []param{mem, off, {"a", v64}}, scatter("VPSCATTERQQ"))
	add("Load32", v32, []param{mem}, load("VMOVDQU32"))
	add("Load64", v64, []param{mem}, load("VMOVDQU64"))
	add("Store32", "mem", []param{mem, {"a", v32}}, store("VMOVDQU32"))
	add("Store64", "mem", []param{mem, {"a", v64}}, store("VMOVDQU64"))
	add("Offsets", "mask", []param{{"off", v64}, {"addr", v64}, {"origin", u64}, {"limit", u64}, {"align", u64}}, offsets)
	for _, w := range []string{v32, v64} {
		add("Atomic"+fmt.Sprint(width(w)), "mask", []param{{"d", w}, {"op", u32}, mem, off, {"b", w}, {"c", w}}, rmw(width(w)))
	}
	add("Perm32", v32, []param{{"a", v32}, {"from", v32}}, perm)
	return rows
}

// beginMemory loads the parameters: d at AX, mem at BX, off at CX, a at SI, the mask in K1 and DX.
func (r *row) beginMemory() *asm {
	g := r.begin()
	at := map[string]string{"d": "AX", "mem": "BX", "off": "CX", "a": "SI", "from": "DI"}
	for _, p := range r.params() {
		if reg, ok := at[p.name]; ok {
			g.ins("MOVQ", reg, g.ref(p.name))
		}
	}
	g.ins("MOVL", "DX", g.ref("mask"))
	g.ins("KMOVD", "K1", "DX")
	return g
}

// maskOf puts the mask of chunk i, of n lanes, into K2.
func (g *asm) maskOf(i, n int) {
	g.ins("KSHIFTRD", "K2", "K1", fmt.Sprintf("$%d", i*n))
}

func gather(ins string) func(*row) []byte {
	return func(r *row) []byte {
		g := r.beginMemory()
		g.n = 8
		for g.chunk = range 4 {
			reg := g.reg(r.dst, 19)
			g.maskOf(g.chunk, 8)
			g.ins(movu, "Z16", g.mem(v64, "(CX)"))
			g.ins(movu, reg, g.mem(r.dst, "(AX)"))
			g.under("K2", ins, reg, "(BX)(Z16*1)")
			g.ins(movu, g.mem(r.dst, "(AX)"), reg)
		}
		g.WriteString("\tRET\n")
		return g.Bytes()
	}
}

func scatter(ins string) func(*row) []byte {
	return func(r *row) []byte {
		g := r.beginMemory()
		g.n = 8
		typ := r.in[2].typ
		for g.chunk = range 4 {
			reg := g.reg(typ, 19)
			g.maskOf(g.chunk, 8)
			g.ins(movu, "Z16", g.mem(v64, "(CX)"))
			g.ins(movu, reg, g.mem(typ, "(SI)"))
			g.under("K2", ins, "(BX)(Z16*1)", reg)
		}
		g.WriteString("\tRET\n")
		return g.Bytes()
	}
}

// load reads lanes that lie side by side; a masked instruction touches the lanes of the mask only.
func load(ins string) func(*row) []byte {
	return func(r *row) []byte {
		g := r.beginMemory()
		w := width(r.dst)
		g.n = 512 / w
		g.ins("CMPL", "$-1", "DX")
		g.WriteString("\tJNE part\n")
		for g.chunk = range 32 / g.n {
			g.ins(ins, "Z19", fmt.Sprintf("%d(BX)", 64*g.chunk))
			g.ins(movu, g.mem(r.dst, "(AX)"), "Z19")
		}
		g.WriteString("\tRET\n\npart:\n")
		for g.chunk = range 32 / g.n {
			g.maskOf(g.chunk, g.n)
			g.ins(movu, "Z19", g.mem(r.dst, "(AX)"))
			g.under("K2", ins, "Z19", fmt.Sprintf("%d(BX)", 64*g.chunk))
			g.ins(movu, g.mem(r.dst, "(AX)"), "Z19")
		}
		g.WriteString("\tRET\n")
		return g.Bytes()
	}
}

// store writes lanes side by side.
func store(ins string) func(*row) []byte {
	return func(r *row) []byte {
		g := r.beginMemory()
		typ := r.in[1].typ
		g.n = 512 / width(typ)
		g.ins("CMPL", "$-1", "DX")
		g.WriteString("\tJNE part\n")
		for _, masked := range []bool{false, true} {
			for g.chunk = range 32 / g.n {
				g.ins(movu, "Z19", g.mem(typ, "(SI)"))
				to := fmt.Sprintf("%d(BX)", 64*g.chunk)
				if masked {
					g.maskOf(g.chunk, g.n)
					g.under("K2", ins, to, "Z19")
				} else {
					g.ins(ins, to, "Z19")
				}
			}
			g.WriteString("\tRET\n")
			if !masked {
				g.WriteString("\npart:\n")
			}
		}
		return g.Bytes()
	}
}

// offsets subtracts and compares in one go.
func offsets(r *row) []byte {
	g := r.begin()
	g.n = 8
	g.ins("MOVQ", "AX", g.ref("off"))
	g.ins("MOVQ", "BX", g.ref("addr"))
	g.ins("MOVL", "DX", g.ref("mask"))
	for i, name := range []string{"origin", "limit", "align"} {
		g.ins("VPBROADCASTQ", fmt.Sprint("Z", 26+i), g.ref(name))
	}
	for g.chunk = range 4 {
		k := []string{"K0", "K5", "K6", "K7"}[g.chunk]
		g.ins(movu, "Z16", g.mem(v64, "(BX)"))
		g.ins("VPSUBQ", "Z17", "Z16", "Z26")
		g.ins("VPTESTNMQ", "K1", "Z17", "Z28")
		g.under("K1", "VPCMPUQ", k, "Z17", "Z27", "$2")
		g.ins(movu, g.mem(v64, "(AX)"), "Z17")
	}
	g.join()
	g.ins("KMOVD", "AX", "K0")
	g.ins("ANDL", "AX", "DX")
	_, ret, _ := r.frame()
	fmt.Fprintf(g, "\tMOVL AX, ret+%d(FP)\n\tRET\n", ret)
	return g.Bytes()
}

// perm looks up in all of a, in registers before anything is written.
func perm(r *row) []byte {
	g := r.beginMemory()
	g.n = 16
	g.ins(movu, "Z16", "(SI)")
	g.ins(movu, "Z17", "64(SI)")
	for g.chunk = range 2 {
		g.maskOf(g.chunk, 16)
		g.ins(movu, "Z18", g.mem(v32, "(DI)"))
		g.ins(movu, "Z19", g.mem(v32, "(AX)"))
		g.ins("VPERMI2D", "Z18", "Z16", "Z17")
		g.under("K2", "VMOVDQA32", "Z19", "Z18")
		g.ins(movu, g.mem(v32, "(AX)"), "Z19")
	}
	g.WriteString("\tRET\n")
	return g.Bytes()
}

// constants writes the tables that the assembly reads.
func constants() []byte {
	var b bytes.Buffer
	words := func(name string, size int, vs ...uint64) {
		for i, v := range vs {
			fmt.Fprintf(&b, "DATA %s<>+%d(SB)/%d, $%#x\n", name, i*size, size, v)
		}
		fmt.Fprintf(&b, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n\n", name, len(vs)*size)
	}
	var iota []uint64
	for i := range uint64(16) {
		iota = append(iota, i)
	}
	words("iota32", 4, iota...)
	var lanes []uint64
	for i := range 32 {
		lanes = append(lanes, 1<<i)
	}
	words("bits32", 4, lanes...)
	words("bits64", 8, lanes...)
	words("nan32", 4, nan32)
	words("roundNear", 4, 0x1f80) // of MXCSR, as Go has it
	words("roundDown", 4, 0x3f80)
	words("byteOfWord", 8, 0x808080800c080400, 0x8080808080808080)
	words("halfOfWord", 8, 0x0d0c090805040100, 0x8080808080808080)
	words("iota64", 8, iota[:8]...)
	words("exp2", 8, doubles(approx.Exp2Terms())...)
	words("log2", 8, doubles(approx.Log2Terms())...)
	words("words", 4, 0, 0x04040404, 0x08080808, 0x0c0c0c0c)
	words("nibblesHigh", 8, 0xe060a020c0408000, 0xf070b030d0509010)
	words("nibblesLow", 8, 0x0e060a020c040800, 0x0f070b030d050901)
	words("nibblesOnes", 8, 0x0302020102010100, 0x0403030203020201)
	words("bytesBack", 4, 0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f)
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// doubles gives the bits of numbers.
func doubles(xs []float64) []uint64 {
	list := make([]uint64, len(xs))
	for i, x := range xs {
		list[i] = math.Float64bits(x)
	}
	return list
}
