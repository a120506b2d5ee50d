package main

import (
	"bytes"
	"fmt"
	"strings"
)

// access is an operation of Run that loads or stores, or one that holds only where nothing wraps: what may stop Run.
type access struct {
	name   string
	file   string // of D: what is loaded or stored
	size   int    // bytes of an element in memory
	signed bool   // elements are extended by their sign
	store  bool
	how    how
}

// how the lanes of an access lie.
type how string

const (
	line    how = "line"    // side by side
	same    how = "same"    // at one address: D is a scalar
	rows    how = "rows"    // 16 lanes side by side, and 16 more an Access.Row away
	spread  how = "spread"  // 16 lanes at one address, and 16 more an Access.Row away
	pattern how = "pattern" // at offsets that a vector of 32 bits a lane holds
	each    how = "each"    // at addresses of their own, of 64 bits
	eachLow how = "eachLow" // the same of 32 bits
)

// accesses lists them: the operations of a kind together.
func accesses() []*access {
	var list []*access
	add := func(name, file string, size int, signed bool, h how) {
		list = append(list, &access{name: "Load" + name, file: file, size: size, signed: signed, how: h})
		if file != "scalars" && !signed {
			list = append(list, &access{name: "Store" + strings.Replace(name, "U", "", 1), file: file, size: size, store: true, how: h})
		}
	}
	for _, e := range []struct {
		name   string
		size   int
		signed bool
	}{{"8U", 1, false}, {"8S", 1, true}, {"16U", 2, false}, {"16S", 2, true}, {"32", 4, false}} {
		add(e.name+"Line", "vectors32", e.size, e.signed, line)
		add(e.name+"Same", "scalars", e.size, e.signed, same)
	}
	add("64Line", "vectors64", 8, false, line)
	add("64Same", "scalars", 8, false, same)
	add("32Rows", "vectors32", 4, false, rows)
	list = append(list, &access{name: "Load32Spread", file: "vectors32", size: 4, how: spread})
	add("32Pattern", "vectors32", 4, false, pattern)
	add("64Pattern", "vectors64", 8, false, pattern)
	for _, e := range []struct {
		name, file string
		size       int
		signed     bool
	}{{"32", "vectors32", 4, false}, {"64", "vectors64", 8, false}, {"8U", "vectors32", 1, false}, {"8S", "vectors32", 1, true},
		{"16U", "vectors32", 2, false}, {"16S", "vectors32", 2, true}} {
		add(e.name+"Each", e.file, e.size, e.signed, each)
		add(e.name+"EachLow", e.file, e.size, e.signed, eachLow)
	}
	return list
}

// files names the register files of the operands.
func (a *access) files() []string {
	switch a.how {
	case pattern:
		return []string{a.file, "scalars", "reaches", "vectors32"}
	case each:
		return []string{a.file, "vectors64", "reaches"}
	case eachLow:
		return []string{a.file, "vectors32", "reaches"}
	}
	return []string{a.file, "scalars", "reaches"}
}

// handlers writes the two handlers. Where an address is not within the Access, or odd, they jump to stop before anything is done.
func (a *access) handlers() []byte {
	g := &asm{}
	for _, masked := range []bool{false, true} {
		fmt.Fprintf(g, "\nTEXT %s%s<>(SB), NOSPLIT|NOFRAME, $0-0\n", kindOf(masked), a.name)
		single := a.how == each || a.how == eachLow
		g.operandsOf([3]bool{true, true, a.how == pattern})
		g.ins("ADDQ", "CX", "32(R10)")
		g.n = 256 / a.width()
		typ := fmt.Sprint("*V", a.width())
		switch {
		case single:
			g.n = 4
			a.reachEach(g, masked)
			if a.store || a.size < 4 { // there are no gathers of less than 32 bits

				a.byLane(g)
				break
			}
			for g.chunk = range 8 {
				a.offsets(g)
				a.gather(g, masked, "R9", "VPGATHERQ", "Y0")
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
				a.gather(g, masked, "R8", "VPGATHERD", offsets)
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
		a.tell(g)
		g.WriteString("\nstop:\n\tJMP runEnd<>(SB)\n")
	}
	return g.Bytes()
}

// The offsets of Log and the sizes of what is in it; a test compares them.
const (
	logRoom  = 32
	logHeads = 64
	logList  = logHeads + logRoom*headSize
	headSize = 16
	toldSize = 64 + 256 + 256 + 128 + 256 + 128
)

// tellHead notes the access at hand, and goes back where that is all; else it points R9 at the Told and says true.
func (a *access) tellHead(g *asm) bool {
	g.ins("MOVQ", "R9", "40(R10)")
	g.ins("MOVQ", "BX", "(R9)")
	fmt.Fprintf(g, "\tCMPQ BX, $%d\n\tJEQ stop\n", logRoom)
	g.WriteString("\tINCQ (R9)\n")
	g.ins("IMULQ", "BX", fmt.Sprintf("$%d", headSize))
	g.ins("LEAQ", "R9", fmt.Sprintf("%d(R9)(BX*1)", logHeads))
	g.ins("MOVQ", "(R9)", "R8")
	g.ins("MOVQ", "BX", "24(R12)")
	g.ins("MOVQ", "8(R9)", "BX")
	if !a.store && a.how != each && a.how != eachLow {
		g.WriteString("\tJMP back\n")
		return false
	}
	g.ins("MOVQ", "R9", "40(R10)")
	g.ins("MOVQ", "BX", "(R9)")
	g.ins("IMULQ", "BX", fmt.Sprintf("$%d", toldSize))
	g.ins("LEAQ", "R9", fmt.Sprintf("%d(R9)(BX*1)", logList-toldSize))
	return true
}

// tell makes a Told of the access at hand and goes back.
func (a *access) tell(g *asm) {
	bytes := a.store && a.size < 4 && a.how == line
	if bytes {
		g.WriteString("\tTESTQ $3, R8\n\tJNE stop\n")
	}
	if !a.tellHead(g) {
		return
	}
	if a.how == each || a.how == eachLow {
		g.ins("MOVL", "BX", "8(R12)")
		for g.chunk = range 8 {
			a.offsets(g)
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
	if bytes {
		a.aim(g)
		for at := 0; at < 32*a.size; at += 32 {
			g.ins("VMOVDQU", "Y3", fmt.Sprintf("%d(BX)", at))
			g.ins("VMOVDQU", fmt.Sprintf("%d(R9)", 64+256+256+128+256+at), "Y3")
		}
	}
	if a.store && a.size >= 4 {
		a.aim(g)
		to := 64 + 256 + 256 + 128
		if a.width() == 32 {
			to += 256
		}
		if a.how == each || a.how == eachLow || a.how == pattern {
			a.beforeByLane(g, to)
			return
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

// beforeByLane notes what the lanes of the mask overwrite, one after the other, to bytes behind R9, and goes back.
func (a *access) beforeByLane(g *asm, to int) {
	offset, move := "MOVQ 64(R9)(R14*8), R15", map[int]string{4: "MOVL", 8: "MOVQ"}[a.size]
	if a.how == pattern {
		g.ins("ADDQ", "DI", "SI")
		offset = "MOVLQSX (DI)(R14*4), R15"
	}
	g.ins("MOVL", "R13", "DX")
	g.WriteString("\tTESTL R13, R13\n\tJEQ told\n\nbefore:\n")
	g.ins("TZCNTL", "R14", "R13")
	g.WriteString("\t" + offset + "\n")
	g.ins(move, "R15", "(BX)(R15*1)")
	g.ins(move, fmt.Sprintf("%d(R9)(R14*%d)", to, a.size), "R15")
	g.ins("BLSRL", "R13", "R13")
	g.WriteString("\tJNE before\n\ntold:\n")
	g.ins("MOVQ", "DI", "0(R10)")
	g.ins("MOVQ", "R14", "16(R10)")
	g.ins("MOVQ", "R13", "24(R10)")
	g.WriteString("\tLEAQ full<>(SB), R15\n\tCMPL DX, $-1\n\tJEQ back\n\tLEAQ part<>(SB), R15\n\tJMP back\n")
}

// aim points BX at what is accessed.
func (a *access) aim(g *asm) {
	g.ins("MOVQ", "BX", "16(CX)")
	g.ins("MOVQ", "BX", "(BX)")
	if a.how != each && a.how != eachLow {
		g.ins("ADDQ", "BX", "R8")
	}
}

// prefetch asks for the memory as far behind R8 as that is behind the last place of the Access: often the next one. Those
// that stay at 0 do not ask.
func (a *access) prefetch(g *asm) {
	g.ins("MOVQ", "SI", "40(CX)")
	g.WriteString("\tTESTQ SI, SI\n\tJEQ near\n")
	g.ins("MOVQ", "40(CX)", "R8")
	g.ins("NEGQ", "SI")
	g.ins("LEAQ", "SI", "(SI)(R8*2)")
	for at := 0; at < 32*a.size; at += 64 {
		from := fmt.Sprintf("%d(SI)", at)
		if a.how == rows {
			if from = "(SI)"; at > 0 {
				g.ins("ADDQ", "SI", "R9")
			}
		}
		g.ins("PREFETCHT0", from)
	}
	g.WriteString("\nnear:\n")
}

// told tells of the access where that is wanted.
func (g *asm) told() { g.WriteString("\tCMPQ 32(CX), $0\n\tJNE tell\n\nback:\n") }

// width is the bits of a lane's register.
func (a *access) width() int {
	if a.file == "vectors64" {
		return 64
	}
	return 32
}

// reach makes of a scalar address the pointer to the lowest byte, in R8, and the distance of the rows, in R9.
func (a *access) reach(g *asm) {
	g.ins("MOVQ", "R8", "(R13)(BX*1)")
	g.ins("SUBQ", "R8", "(CX)")
	g.WriteString("\tCMPQ R8, 8(CX)\n\tJCC stop\n")
	if a.size > 1 {
		fmt.Fprintf(g, "\tTESTQ $%d, R8\n\tJNE stop\n", a.size-1)
	}
	g.told()
	g.ins("MOVQ", "R9", "16(CX)")
	g.ins("ADDQ", "R8", "(R9)")
	if a.how == rows || a.how == spread {
		g.ins("MOVQ", "R9", "24(CX)")
	}
	if a.how == line || a.how == rows {
		a.prefetch(g)
	}
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
	g.WriteString("\tJNE lane\n\tLEAQ full<>(SB), R15\n\tCMPL DX, $-1\n\tJEQ all\n\tLEAQ part<>(SB), R15\n\nall:\n")
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
		keep := g.keeps(a.width())
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
		g.ins("VPXOR", "Y4", "Y4", g.keeps(a.width()))
		g.ins("VPMASKMOV"+dq(a.width()), at, "Y4", "Y3")
	default:
		g.ins("VMOVDQU", at, "Y3")
	}
}

// gather loads a chunk whose lanes have offsets from base.
func (a *access) gather(g *asm, masked bool, base, op, offsets string) {
	w := a.width()
	out, who, at := g.y(w, 3), g.y(w, 4), g.mem(fmt.Sprint("*V", w), file(fmt.Sprint("*V", w))+"(AX*1)")
	g.ins("VPCMPEQD", who, who, who)
	if masked {
		g.ins("VPXOR", who, who, g.keeps(w))
		g.ins("VMOVDQU", out, at)
	} else {
		g.ins("VPXOR", out, out, out) // so that it does not wait for what the register held
	}
	g.ins(op+dq(w), out, fmt.Sprintf("(%s)(%s*1)", base, offsets), who)
	g.ins("VMOVDQU", at, out)
}

// offsets makes offsets of this chunk's addresses, in Y0. Y12 has the Origin.
func (a *access) offsets(g *asm) {
	if a.how == each {
		g.ins("VMOVDQU", "Y0", fmt.Sprintf("%d(R11)(BX*1)", 32*g.chunk))
	} else {
		g.ins("VPMOVZXDQ", "Y0", fmt.Sprintf("%d(DI)(BX*1)", 16*g.chunk))
	}
	g.ins("VPSUBQ", "Y0", "Y0", "Y12")
}

// reachEach checks vectors of addresses, and points R9 at what they are counted from.
func (a *access) reachEach(g *asm, masked bool) {
	g.ins("VPBROADCASTQ", "Y12", "(CX)")
	g.ins("VPBROADCASTQ", "Y13", "8(CX)")
	g.spread64(14, 1<<63)
	g.spread64(15, uint64(a.size-1))
	g.ins("VPXOR", "Y13", "Y13", "Y14")
	g.ins("VPXOR", "Y7", "Y7", "Y7")
	for g.chunk = range 8 {
		a.offsets(g)
		g.ins("VPXOR", "Y4", "Y0", "Y14")
		g.ins("VPCMPGTQ", "Y4", "Y13", "Y4")
		g.ins("VPAND", "Y5", "Y0", "Y15")
		g.ins("VPCMPEQQ", "Y5", "Y5", "Y7")
		g.ins("VPAND", "Y4", "Y4", "Y5")
		g.bits("R8", "R9", "Y4")
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

// scalar loads an element into a scalar.
func (a *access) scalar(g *asm) {
	op := map[int]string{1: "MOVBLZX", 2: "MOVWLZX", 4: "MOVL", 8: "MOVQ"}[a.size]
	if a.signed {
		op = map[int]string{1: "MOVBLSX", 2: "MOVWLSX"}[a.size]
	}
	g.ins(op, "R8", "(R8)")
	g.ins("MOVQ", "(R13)(AX*1)", "R8")
}

// steady are the operations that extend a scalar which stands for 32 lanes from 32 to 64 bits, and stop where one of
// them wraps. B is the least of what lanes add to it, C how much more the greatest is.
func steady() []byte {
	g := &asm{}
	for _, table := range []string{"full", "part"} {
		for _, signed := range []bool{true, false} {
			name, extend := "U", "MOVL"
			if signed {
				name, extend = "S", "MOVLQSX"
			}
			fmt.Fprintf(g, "\nTEXT %sSteady%s<>(SB), NOSPLIT|NOFRAME, $0-0\n", table, name)
			g.ins("MOVL", "BX", "8(R12)")
			g.ins("MOVL", "R8", "(R13)(BX*1)")
			g.ins(extend, "SI", "R8")
			if signed {
				g.ins("XORL", "R8", "$0x80000000")
			}
			g.ins("MOVLQSX", "R9", "12(R12)")
			g.ins("ADDQ", "R8", "R9")
			g.ins("MOVL", "R9", "16(R12)")
			g.ins("MOVL", "CX", "$0xffffffff")
			g.ins("SUBQ", "CX", "R9")
			g.WriteString("\tCMPQ R8, CX\n\tJHI stop\n")
			g.ins("MOVQ", "(R13)(AX*1)", "SI")
			g.next()
			g.WriteString("\nstop:\n\tJMP runEnd<>(SB)\n")
		}
	}
	return g.Bytes()
}

// jumps are the operations that go on elsewhere.
func jumps() []byte {
	g := &asm{}
	// The next Op is CX bytes behind the one at hand.
	dispatch := func() {
		g.ins("ADDQ", "R12", "CX")
		g.WriteString("\tMOVQ (R12), AX\n\tMOVL AX, R8\n\tSHRQ $32, AX\n\tMOVQ (R15)(R8*8), R8\n\tJMP R8\n")
	}
	end := "\nstop:\n\tJMP runEnd<>(SB)\n"
	for _, table := range []string{"full", "part"} {
		fmt.Fprintf(g, "\nTEXT %sGoto<>(SB), NOSPLIT|NOFRAME, $0-0\n", table)
		g.ins("ADDQ", "64(R10)", "AX")
		g.ins("MOVLQSX", "BX", "16(R12)")
		g.ins("ADDQ", "BX", "48(R10)")
		g.ins("MOVQ", "48(R10)", "BX")
		g.ins("MOVLQSX", "SI", "8(R12)")
		g.ins("ADDQ", "BX", "SI")
		g.ins("MOVLQSX", "CX", "12(R12)")
		g.WriteString("\tTESTQ CX, CX\n\tJEQ stop\n\tCMPQ BX, 56(R10)\n\tJGE stop\n")
		dispatch()
		g.WriteString(end)

		fmt.Fprintf(g, "\nTEXT %sIfScalar<>(SB), NOSPLIT|NOFRAME, $0-0\n", table)
		g.ins("MOVL", "BX", "8(R12)")
		g.ins("MOVLQSX", "CX", "12(R12)")
		g.ins("MOVLQSX", "SI", "16(R12)")
		g.WriteString("\tTESTB $1, (R13)(BX*1)\n")
		g.ins("CMOVQEQ", "CX", "SI")
		dispatch()

		fmt.Fprintf(g, "\nTEXT %sIfPred<>(SB), NOSPLIT|NOFRAME, $0-0\n", table)
		g.ins("MOVL", "BX", "8(R12)")
		g.ins("MOVLQSX", "CX", "16(R12)")
		g.ins("MOVL", "R8", "(R14)(BX*1)")
		g.WriteString("\tANDL DX, R8\n\tJEQ none\n")
		g.ins("MOVLQSX", "CX", "12(R12)")
		g.WriteString("\tCMPL R8, DX\n\tJNE stop\n\nnone:\n")
		dispatch()
		g.WriteString(end)

		fmt.Fprintf(g, "\nTEXT %sResume<>(SB), NOSPLIT|NOFRAME, $0-0\n", table)
		g.ins("MOVQ", "AX", "24(R12)")
		g.ins("ADDQ", "AX", "R12")
		g.WriteString("\tJMP AX\n")
	}
	return g.Bytes()
}

// accessNames are the operations of this file in the order of their codes, with what they take.
func accessNames() (names []string, files [][]string) {
	for _, a := range accesses() {
		names, files = append(names, a.name), append(files, a.files())
	}
	for _, name := range []string{"SteadyS", "SteadyU"} {
		names, files = append(names, name), append(files, []string{"scalars", "scalars", "literal", "literal"})
	}
	names, files = append(names, "Goto"), append(files, []string{"literal", "literal", "literal", "literal"})
	names, files = append(names, "IfScalar"), append(files, []string{"literal", "scalars", "literal", "literal"})
	names, files = append(names, "IfPred"), append(files, []string{"literal", "preds", "literal", "literal"})
	names, files = append(names, "Resume"), append(files, []string{"literal"})
	return names, files
}

// accessTable writes the Go table of what the accesses are.
func accessTable() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// accessOps says what the operations from OpLoad8ULine on do.\nvar accessOps = [...]accessOp{\n")
	for _, a := range accesses() {
		fmt.Fprintf(&b, "\t{how: %s, size: %d, signed: %v, store: %v},\n", a.how, a.size, a.signed, a.store)
	}
	b.WriteString("}\n")
	return b.Bytes()
}
