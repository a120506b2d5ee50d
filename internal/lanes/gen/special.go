package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"fencepost.dev/fencepost/internal/approx"
)

// pairs are the functions of two bits b and c by their tables, bit 2b+c: what is done to them in a register, which is there for the
// result. Y15 has all ones.
var pairs = [16][]string{
	0: {"VPXOR R R R"}, 1: {"VPOR R B C", "VPXOR R R O"}, 2: {"VPANDN R B C"}, 3: {"VPXOR R B O"},
	4: {"VPANDN R C B"}, 5: {"VPXOR R C O"}, 6: {"VPXOR R B C"}, 7: {"VPAND R B C", "VPXOR R R O"},
	8: {"VPAND R B C"}, 9: {"VPXOR R B C", "VPXOR R R O"}, 10: {"VMOVDQA R C"}, 11: {"VPANDN R C B", "VPXOR R R O"},
	12: {"VMOVDQA R B"}, 13: {"VPANDN R B C", "VPXOR R R O"}, 14: {"VPOR R B C"}, 15: {"VPCMPEQD R R R"},
}

// lop3Handlers writes the handlers of Lop3, which jump to one of 256 pieces. A piece makes the function of b and c where a is
// clear, and what differs where it is set; SI says where it goes on.
func (r *row) lop3Handlers() []byte {
	g := &asm{r: r, n: 8}
	for _, masked := range []bool{false, true} {
		kind := kindOf(masked)
		fmt.Fprintf(g, "\nTEXT %sLop3<>(SB), NOSPLIT|NOFRAME, $0-0\n", kind)
		g.fetch("R8", "lut")
		g.ins("MOVBLZX", "R8", "R8")
		g.ins("MOVQ", "BX", "8(R12)")
		g.ins("MOVQ", "CX", "BX")
		g.ins("MOVL", "BX", "BX")
		g.ins("SHRQ", "CX", "$32")
		g.ins("VPCMPEQD", "Y15", "Y15", "Y15")
		fmt.Fprintf(g, "\tLEAQ lop3<>(SB), R9\n\tMOVQ (R9)(R8*8), R9\n\tMOVL 16(R12), SI\n")
		fmt.Fprintf(g, "\tLEAQ %sLop3tail<>(SB), R8\n\tJMP R9\n", kind)
		fmt.Fprintf(g, "\nTEXT %sLop3tail<>(SB), NOSPLIT|NOFRAME, $0-0\n", kind)
		for g.chunk = range 4 {
			out := []string{"Y0", "Y1", "Y2", "Y3"}[g.chunk]
			at := g.mem(v32, "(DI)(AX*1)")
			if masked {
				g.blend(out, out, at, g.keeps(32))
			}
			g.ins("VMOVDQU", at, out)
		}
		g.next()
	}
	for lut := range 256 {
		fmt.Fprintf(g, "\nTEXT lop3_%02x<>(SB), NOSPLIT|NOFRAME, $0-0\n", lut)
		clear, set := lut&15, lut>>4
		for g.chunk = range 4 {
			out := fmt.Sprint("Y", g.chunk)
			g.ins("VMOVDQU", "Y5", g.mem(v32, "(DI)(CX*1)"))
			g.ins("VMOVDQU", "Y6", g.mem(v32, "(DI)(SI*1)"))
			g.pair(clear, out)
			if clear != set {
				g.pair(clear^set, "Y7")
				g.ins("VPAND", "Y7", "Y7", g.mem(v32, "(DI)(BX*1)"))
				g.ins("VPXOR", out, out, "Y7")
			}
		}
		g.WriteString("\tJMP R8\n")
	}
	g.WriteString("\n")
	for i := range 256 {
		fmt.Fprintf(g, "DATA lop3<>+%d(SB)/8, $lop3_%02x<>(SB)\n", 8*i, i)
	}
	g.WriteString("GLOBL lop3<>(SB), RODATA, $2048\n")
	return g.Bytes()
}

// pair writes a function of b in Y5 and c in Y6.
func (g *asm) pair(table int, out string) {
	for _, line := range pairs[table] {
		f := strings.Fields(line)
		for i := range f[1:] {
			f[1+i] = map[string]string{"R": out, "B": "Y5", "C": "Y6", "O": "Y15"}[f[1+i]]
		}
		g.ins(f[0], f[1:]...)
	}
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
	for i := range uint64(8) {
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
	words("iota64", 8, iota[:4]...)
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
