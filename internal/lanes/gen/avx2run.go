package main

import (
	"bytes"
	"fmt"
	"strings"
)

// broadcast brings a scalar parameter into every lane of a register.
func (g *asm) broadcast(i int, p param) {
	op := "VPBROADCASTD"
	if p.typ == u64 {
		op = "VPBROADCASTQ"
	}
	g.src[i-12] = fmt.Sprint("Y", i)
	if p.name == g.r.imm {
		g.ins(op, g.src[i-12], "24(R12)")
		return
	}
	g.ins("MOVL", "R8", fmt.Sprintf("%d(R12)", 8+4*(i-12)))
	g.ins(op, g.src[i-12], "(R13)(R8*1)")
}

// keep loads the lanes of this chunk, of w bits, that keep what they hold, into register 9.
func (g *asm) keeps2(w int) string {
	at, reg := keep32At, g.y(w, 9)
	if w == 64 {
		at = keep64At
	}
	g.ins("VMOVDQU", reg, fmt.Sprintf("%d(R10)", at+g.chunk*g.n*w/8))
	return reg
}

// store2 writes the result of a chunk.
func (g *asm) store2(masked bool) {
	at := g.mem(g.r.dst, g.d)
	if g.r.nan {
		x, nan := g.like("Y4"), g.like("Y10")
		g.ins("VCMPPS", x, g.out, g.out, "$3")
		g.blend(g.out, g.out, nan, x)
	}
	if masked {
		to := g.reg(g.r.dst, 3)
		g.blend(to, g.out, at, g.keeps2(width(g.r.dst)))
		g.out = to
	}
	g.ins("VMOVDQU", at, g.out)
}

// compare2 writes a comparison, whose result goes to BX.
func (g *asm) compare2(not bool) {
	for g.chunk = 0; g.chunk < 32/g.n; g.chunk++ {
		g.load()
		g.out = "Y3"
		g.r.asm(g)
		g.gatherBits("R9", "R8", g.out)
	}
	if not {
		g.ins("NOTL", "R9")
	}
	g.ins("MOVL", "BX", "R9")
}

// gatherBits adds the lanes of this chunk's mask to those of the chunks before it.
func (g *asm) gatherBits(to, free, mask string) {
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

// run2 writes asmRun2, the handlers for AVX2 and their tables. Operations on words are those of asmRun.
func run2(rows []*row, names []string) []byte {
	var b bytes.Buffer
	b.WriteString(`
// func asmRun2(code *Op, x *Regs, mask uint32) (end uint64, left *Op)
TEXT ·asmRun2(SB), NOSPLIT, $0-40
	MOVQ code+0(FP), R12
	MOVQ x+8(FP), AX
	MOVL mask+16(FP), DX
	MOVQ 0(AX), DI
	MOVQ 8(AX), R11
	MOVQ 16(AX), R14
	MOVQ 24(AX), R13
	MOVQ AX, R10
	LEAQ full2<>(SB), R15
	CMPL DX, $-1
	JEQ go
	LEAQ part2<>(SB), R15
	MOVL DX, AX
	VMOVQ AX, X0
	VPBROADCASTQ X0, Y1
	VPBROADCASTD X0, Y0
	VPXOR Y3, Y3, Y3
`)
	for i := range 4 {
		fmt.Fprintf(&b, "\tVPAND bits32<>+%d(SB), Y0, Y2\n\tVPCMPEQD Y3, Y2, Y2\n\tVMOVDQU Y2, %d(R10)\n", 32*i, keep32At+32*i)
	}
	for i := range 8 {
		fmt.Fprintf(&b, "\tVPAND bits64<>+%d(SB), Y1, Y2\n\tVPCMPEQQ Y3, Y2, Y2\n\tVMOVDQU Y2, %d(R10)\n", 32*i, keep64At+32*i)
	}
	b.WriteString(`
go:
	MOVQ (R12), AX
	MOVL AX, R8
	SHRQ $32, AX
	MOVQ (R15)(R8*8), R8
	JMP R8

TEXT runLeft<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ R12, 40(SP)
	VZEROUPPER
	RET
`)
	table := map[string]bool{}
	do := bodies()
	for _, r := range runnable(rows) {
		if x, ok := do[r.name]; ok {
			delete(do, r.name)
			b.Write(r.handlers2(x))
			table[r.name] = true
		} else if r.name == "Lop3" {
			b.Write(r.lop3Handlers2())
			table[r.name] = true
		}
	}
	for name := range do {
		panic("BUG: no row for " + name)
	}
	for _, a := range accesses() {
		b.Write(a.handlers2())
		table[a.name] = true
	}
	shared := map[string]bool{}
	for _, w := range words1() {
		shared[w.name] = true
	}
	for _, name := range []string{"SteadyS", "SteadyU", "Goto", "IfScalar", "IfPred"} {
		shared[name] = true
	}
	for _, kind := range []string{"full", "part"} {
		b.WriteString("\n")
		for i, name := range names {
			switch {
			case i == 0:
			case table[name]:
				name = kind + "2" + name
			case shared[name]:
				name = kind + name
			default:
				name = "runLeft"
			}
			fmt.Fprintf(&b, "DATA %s2<>+%d(SB)/8, $%s<>(SB)\n", kind, 8*i, name)
		}
		fmt.Fprintf(&b, "GLOBL %s2<>(SB), RODATA, $%d\n", kind, 8*len(names))
	}
	return b.Bytes()
}

// avx2 gives the row as it is done in AVX2, and its assembly so far.
func (r *row) inAVX2(x body) *asm {
	c := *r
	c.asm, c.pre, c.raw, c.eight, c.nan = x.asm, x.pre, x.raw, x.eight, x.nan
	return &asm{r: &c, n: c.lanesIn() / 2, handler: true, avx2: true, bases: make([]string, len(r.in))}
}

// handlers2 writes the two handlers of a row.
func (r *row) handlers2(x body) []byte {
	g := r.inAVX2(x)
	for _, masked := range []bool{false, true} {
		fmt.Fprintf(g, "\nTEXT %s2%s<>(SB), NOSPLIT|NOFRAME, $0-0\n", kindOf(masked), r.name)
		g.d = file(r.dst) + "(AX*1)"
		g.operands()
		if x.nan {
			g.ins("VBROADCASTSS", "Y10", "nan32<>(SB)")
		}
		g.scalars()
		if r.dst == "" {
			g.compare2(x.not)
			g.merge(masked, "BX", "(R14)(AX*1)")
		} else {
			g.chunks(masked)
		}
		if x.post != nil {
			x.post(g)
		}
		g.next()
	}
	return g.Bytes()
}

func kindOf(masked bool) string {
	if masked {
		return "part"
	}
	return "full"
}

// operands loads where the vectors of an Op are.
func (g *asm) operands() {
	var used [3]bool
	for i, p := range g.r.in {
		if strings.HasPrefix(p.typ, "*") {
			used[i] = true
			g.bases[i] = file(p.typ) + "(" + pointers[i] + "*1)"
		}
	}
	g.operandsOf(used)
}

// pairs are the functions of two bits b and c by their tables, bit 2b+c: what is done to them in a register, which is there for the
// result. Y15 has all ones.
var pairs = [16][]string{
	0: {"VPXOR R R R"}, 1: {"VPOR R B C", "VPXOR R R O"}, 2: {"VPANDN R B C"}, 3: {"VPXOR R B O"},
	4: {"VPANDN R C B"}, 5: {"VPXOR R C O"}, 6: {"VPXOR R B C"}, 7: {"VPAND R B C", "VPXOR R R O"},
	8: {"VPAND R B C"}, 9: {"VPXOR R B C", "VPXOR R R O"}, 10: {"VMOVDQA R C"}, 11: {"VPANDN R C B", "VPXOR R R O"},
	12: {"VMOVDQA R B"}, 13: {"VPANDN R B C", "VPXOR R R O"}, 14: {"VPOR R B C"}, 15: {"VPCMPEQD R R R"},
}

// lop3Handlers2 writes the handlers of Lop3, which jump to one of 256 pieces. A piece makes the function of b and c where a is
// clear, and what differs where it is set; SI says where it goes on.
func (r *row) lop3Handlers2() []byte {
	g := r.inAVX2(body{raw: true})
	for _, masked := range []bool{false, true} {
		kind := kindOf(masked)
		fmt.Fprintf(g, "\nTEXT %s2Lop3<>(SB), NOSPLIT|NOFRAME, $0-0\n", kind)
		g.fetch("R8", "lut")
		g.ins("MOVBLZX", "R8", "R8")
		g.ins("MOVQ", "BX", "8(R12)")
		g.ins("MOVQ", "CX", "BX")
		g.ins("MOVL", "BX", "BX")
		g.ins("SHRQ", "CX", "$32")
		g.ins("VPCMPEQD", "Y15", "Y15", "Y15")
		fmt.Fprintf(g, "\tLEAQ lop3avx2<>(SB), R9\n\tMOVQ (R9)(R8*8), R9\n\tMOVL 16(R12), SI\n")
		fmt.Fprintf(g, "\tLEAQ %s2Lop3tail<>(SB), R8\n\tJMP R9\n", kind)
		fmt.Fprintf(g, "\nTEXT %s2Lop3tail<>(SB), NOSPLIT|NOFRAME, $0-0\n", kind)
		for g.chunk = range 4 {
			out := []string{"Y0", "Y1", "Y2", "Y3"}[g.chunk]
			at := g.mem(v32, "(DI)(AX*1)")
			if masked {
				g.blend(out, out, at, g.keeps2(32))
			}
			g.ins("VMOVDQU", at, out)
		}
		g.next()
	}
	for lut := range 256 {
		fmt.Fprintf(g, "\nTEXT lop3avx2_%02x<>(SB), NOSPLIT|NOFRAME, $0-0\n", lut)
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
		fmt.Fprintf(g, "DATA lop3avx2<>+%d(SB)/8, $lop3avx2_%02x<>(SB)\n", 8*i, i)
	}
	g.WriteString("GLOBL lop3avx2<>(SB), RODATA, $2048\n")
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

// handlers2 writes the two handlers of an access.
func (a *access) handlers2() []byte {
	g := &asm{handler: true, avx2: true}
	for _, masked := range []bool{false, true} {
		fmt.Fprintf(g, "\nTEXT %s2%s<>(SB), NOSPLIT|NOFRAME, $0-0\n", kindOf(masked), a.name)
		single := a.how == each || a.how == eachLow
		g.operandsOf([3]bool{true, true, a.how == pattern})
		g.ins("ADDQ", "CX", "32(R10)")
		g.n = 256 / a.width()
		typ := fmt.Sprint("*V", a.width())
		switch {
		case single:
			g.n = 4
			a.reachEach2(g, masked)
			if a.store {
				a.byLane(g)
				break
			}
			for g.chunk = range 8 {
				a.offsets2(g)
				a.gather2(g, masked, "R9", "VPGATHERQ", "Y0")
			}
		case a.how == same:
			a.reach(g)
			a.scalar(g)
		case a.how == pattern:
			a.reach(g)
			if a.store {
				a.byLane(g)
				break
			}
			for g.chunk = range 32 / g.n {
				offsets := g.reg(v32, 0)
				g.ins("VMOVDQU", offsets, g.mem(v32, "(DI)(SI*1)"))
				a.gather2(g, masked, "R8", "VPGATHERD", offsets)
			}
		case masked && a.size < 4: // there are no masks of less than 32 bits
			a.reach(g)
			a.byLane(g)
		default:
			a.reach(g)
			for g.chunk = range 32 / g.n {
				if reg := g.mem(typ, file(typ)+"(AX*1)"); a.store {
					a.storeLine(g, masked, reg)
				} else {
					a.loadLine(g, masked, reg)
				}
			}
		}
		g.next()
		g.WriteString("\ntell:\n")
		a.tell2(g)
		g.WriteString("\nstop:\n\tJMP runEnd<>(SB)\n")
	}
	return g.Bytes()
}

// byLane loads or stores a lane after the other, from where R9 points for single addresses and R8 for others.
func (a *access) byLane(g *asm) {
	move := map[int]string{1: "MOVBLZX", 2: "MOVWLZX", 4: "MOVL", 8: "MOVQ"}[a.size]
	put := map[int]string{1: "MOVB", 2: "MOVW", 4: "MOVL", 8: "MOVQ"}[a.size]
	if a.signed {
		move = strings.Replace(move, "ZX", "SX", 1)
	}
	whole, registers := "MOVL", "DI"
	if a.width() == 64 {
		whole, registers = "MOVQ", "R11"
	}
	// R9 and R8 give the address, BX the offsets; SI is the lane, CX has those to come, AX points to the register.
	index, at := "", "(R9)(R8*1)"
	switch a.how {
	case each:
		g.ins("SUBQ", "R9", "(CX)")
		g.ins("ADDQ", "BX", "R11")
		index = "MOVQ (BX)(SI*8), R8"
	case eachLow:
		g.ins("SUBQ", "R9", "(CX)")
		g.ins("ADDQ", "BX", "DI")
		index = "MOVL (BX)(SI*4), R8"
	case pattern:
		g.ins("MOVQ", "R9", "R8")
		g.ins("LEAQ", "BX", "(DI)(SI*1)")
		index = "MOVLQSX (BX)(SI*4), R8"
	default:
		at = fmt.Sprintf("(R8)(SI*%d)", a.size)
	}
	g.ins("ADDQ", "AX", registers)
	g.ins("MOVL", "CX", "DX")
	g.WriteString("\tTESTL CX, CX\n\tJEQ all\n\nlane:\n")
	g.ins("TZCNTL", "SI", "CX")
	if index != "" {
		g.WriteString("\t" + index + "\n")
	}
	reg := fmt.Sprintf("(AX)(SI*%d)", a.width()/8)
	if a.store {
		g.ins(whole, "R15", reg)
		g.ins(put, at, "R15")
	} else {
		g.ins(move, "R15", at)
		g.ins(whole, reg, "R15")
	}
	g.ins("BLSRL", "CX", "CX")
	g.WriteString("\tJNE lane\n\tLEAQ full2<>(SB), R15\n\tCMPL DX, $-1\n\tJEQ all\n\tLEAQ part2<>(SB), R15\n\nall:\n")
}

// place addresses this chunk of lanes that lie side by side, or of rows of 16.
func (a *access) place(g *asm) string {
	at, base := g.chunk*g.n*a.size, "(R8)"
	if a.how == rows || a.how == spread {
		if g.chunk*g.n >= 16 {
			at, base = at-16*a.size, "(R8)(R9*1)"
		}
		if a.how == spread {
			at = 0
		}
	}
	return fmt.Sprint(at, base)
}

func (a *access) loadLine(g *asm, masked bool, reg string) {
	op := map[int]string{1: "VPMOVZXBD", 2: "VPMOVZXWD", 4: "VMOVDQU", 8: "VMOVDQU"}[a.size]
	if a.signed {
		op = strings.Replace(op, "ZX", "SX", 1)
	}
	if a.how == spread {
		op = "VPBROADCASTD"
	}
	if masked { // a lane outside may lie outside of memory, too
		keep := g.keeps2(a.width())
		if a.how != spread {
			op = "VPMASKMOV" + dq(a.width())
			g.ins("VPCMPEQD", "Y4", "Y4", "Y4")
			g.ins("VPXOR", "Y4", "Y4", keep)
			g.ins(op, "Y3", "Y4", a.place(g))
		} else {
			g.ins(op, "Y3", a.place(g))
		}
		g.blend("Y3", "Y3", reg, keep)
	} else {
		g.ins(op, "Y3", a.place(g))
	}
	g.ins("VMOVDQU", reg, "Y3")
}

func (a *access) storeLine(g *asm, masked bool, reg string) {
	at := a.place(g)
	g.ins("VMOVDQU", "Y3", reg)
	switch {
	case a.size < 4: // the lower parts of both halves, side by side
		table := map[int]string{1: "byteOfWord", 2: "halfOfWord"}[a.size]
		g.ins("VBROADCASTI128", "Y4", table+"<>(SB)")
		g.ins("VPSHUFB", "Y3", "Y3", "Y4")
		g.ins("VEXTRACTI128", "X4", "Y3", "$1")
		if a.size == 1 {
			g.ins("VPUNPCKLDQ", "X3", "X3", "X4")
			g.ins("VMOVQ", at, "X3")
			return
		}
		g.ins("VPUNPCKLQDQ", "X3", "X3", "X4")
		g.ins("VMOVDQU", at, "X3")
	case masked:
		g.ins("VPCMPEQD", "Y4", "Y4", "Y4")
		g.ins("VPXOR", "Y4", "Y4", g.keeps2(a.width()))
		g.ins("VPMASKMOV"+dq(a.width()), at, "Y4", "Y3")
	default:
		g.ins("VMOVDQU", at, "Y3")
	}
}

// gather2 loads a chunk whose lanes have offsets from base.
func (a *access) gather2(g *asm, masked bool, base, op, offsets string) {
	w := a.width()
	out, who, at := g.y(w, 3), g.y(w, 4), g.mem(fmt.Sprint("*V", w), file(fmt.Sprint("*V", w))+"(AX*1)")
	g.ins("VPCMPEQD", who, who, who)
	if masked {
		g.ins("VPXOR", who, who, g.keeps2(w))
		g.ins("VMOVDQU", out, at)
	} else {
		g.ins("VPXOR", out, out, out) // so that it does not wait for what the register held
	}
	g.ins(op+dq(w), out, fmt.Sprintf("(%s)(%s*1)", base, offsets), who)
	g.ins("VMOVDQU", at, out)
}

// offsets2 makes offsets of this chunk's addresses, in Y0. Y12 has the Origin.
func (a *access) offsets2(g *asm) {
	if a.how == each {
		g.ins("VMOVDQU", "Y0", fmt.Sprintf("%d(R11)(BX*1)", 32*g.chunk))
	} else {
		g.ins("VPMOVZXDQ", "Y0", fmt.Sprintf("%d(DI)(BX*1)", 16*g.chunk))
	}
	g.ins("VPSUBQ", "Y0", "Y0", "Y12")
}

// reachEach2 checks vectors of addresses, and points R9 at what they are counted from.
func (a *access) reachEach2(g *asm, masked bool) {
	g.ins("VPBROADCASTQ", "Y12", "(CX)")
	g.ins("VPBROADCASTQ", "Y13", "8(CX)")
	g.spread64(14, 1<<63)
	g.spread64(15, uint64(a.size-1))
	g.ins("VPXOR", "Y13", "Y13", "Y14")
	g.ins("VPXOR", "Y7", "Y7", "Y7")
	for g.chunk = range 8 {
		a.offsets2(g)
		g.ins("VPXOR", "Y4", "Y0", "Y14")
		g.ins("VPCMPGTQ", "Y4", "Y13", "Y4")
		g.ins("VPAND", "Y5", "Y0", "Y15")
		g.ins("VPCMPEQQ", "Y5", "Y5", "Y7")
		g.ins("VPAND", "Y4", "Y4", "Y5")
		g.gatherBits("R8", "R9", "Y4")
	}
	if masked {
		g.ins("ANDL", "R8", "DX")
		g.WriteString("\tCMPL R8, DX\n\tJNE stop\n")
	} else {
		g.WriteString("\tCMPL R8, $-1\n\tJNE stop\n")
	}
	g.told()
	g.ins("MOVL", "BX", "8(R12)")
	g.ins("MOVQ", "R9", "16(CX)")
	g.ins("MOVQ", "R9", "(R9)")
}

// tell2 makes a Told of the access at hand and goes back. Stores to addresses of their own are left to Go code where they are told.
func (a *access) tell2(g *asm) {
	if a.store && (a.how == each || a.how == eachLow || a.how == pattern) {
		g.WriteString("\tJMP runLeft<>(SB)\n")
		return
	}
	if !a.tellHead(g) {
		return
	}
	if a.how == each || a.how == eachLow {
		g.ins("MOVL", "BX", "8(R12)")
		for g.chunk = range 8 {
			a.offsets2(g)
			g.ins("VMOVDQU", fmt.Sprintf("%d(R9)", 64+32*g.chunk), "Y0")
		}
	}
	if a.store {
		to, from := 64+256, "(R11)(AX*1)"
		if a.width() == 32 {
			to, from = to+256, "(DI)(AX*1)"
		}
		for at := 0; at < 4*a.width(); at += 32 {
			g.ins("VMOVDQU", "Y3", fmt.Sprint(at, from))
			g.ins("VMOVDQU", fmt.Sprintf("%d(R9)", to+at), "Y3")
		}
	}
	if a.store && a.size >= 4 {
		a.aim(g)
		to := 64 + 256 + 256 + 128
		if a.width() == 32 {
			to += 256
		}
		for at := 0; at < 4*a.width(); at += 32 {
			from := at
			if a.how == rows && at >= 64 {
				if from = at - 64; from == 0 {
					g.ins("ADDQ", "BX", "24(CX)")
				}
			}
			g.ins("VMOVDQU", "Y3", fmt.Sprintf("%d(BX)", from))
			g.ins("VMOVDQU", fmt.Sprintf("%d(R9)", to+at), "Y3")
		}
	}
	g.WriteString("\tJMP back\n")
}
