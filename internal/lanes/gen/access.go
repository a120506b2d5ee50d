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
	}{{"32", "vectors32", 4}, {"64", "vectors64", 8}} {
		add(e.name+"Each", e.file, e.size, false, each)
		add(e.name+"EachLow", e.file, e.size, false, eachLow)
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

// handlers writes the two handlers. Where an address is not within the Access, or odd, they jump to stop before anything
// is done.
func (a *access) handlers() []byte {
	g := &asm{handler: true}
	for _, masked := range []bool{false, true} {
		fmt.Fprintf(g, "\nTEXT %s%s<>(SB), NOSPLIT|NOFRAME, $0-0\n", map[bool]string{false: "full", true: "part"}[masked], a.name)
		g.operandsOf([3]bool{true, true, a.how == pattern})
		g.ins("ADDQ", "CX", "32(R10)")
		if a.how == each || a.how == eachLow {
			a.reachEach(g, masked)
			a.move(g, masked, a.chunk(), a.scattered)
		} else {
			a.reach(g)
			switch a.how {
			case same:
				a.scalar(g)
			case pattern:
				a.move(g, masked, a.chunk(), a.scattered)
			default:
				a.move(g, masked, 512/a.width(), a.straight)
			}
		}
		g.next()
		g.WriteString("\ntell:\n")
		a.tell(g, masked)
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
func (a *access) tell(g *asm, masked bool) {
	if !a.tellHead(g) {
		return
	}
	if a.how == each || a.how == eachLow {
		for i := range 4 {
			g.ins(movu, fmt.Sprintf("%d(R9)", 64+64*i), fmt.Sprint("Z", 16+i))
		}
	}
	if a.store {
		to, from := 64+256, "(R11)(AX*1)"
		if a.width() == 32 {
			to, from = to+256, "(DI)(AX*1)"
		}
		for at := 0; at < 4*a.width(); at += 64 {
			g.ins(movu, "Z20", fmt.Sprint(at, from))
			g.ins(movu, fmt.Sprintf("%d(R9)", to+at), "Z20")
		}
	}
	if a.store && a.size >= 4 {
		a.tellBefore(g, masked)
	}
	g.WriteString("\tJMP back\n")
}

// aim points BX at what is accessed.
func (a *access) aim(g *asm) {
	g.ins("MOVQ", "BX", "16(CX)")
	g.ins("MOVQ", "BX", "(BX)")
	if a.how != each && a.how != eachLow {
		g.ins("ADDQ", "BX", "R8")
	}
}

// tellBefore tells what a store overwrites.
func (a *access) tellBefore(g *asm, masked bool) {
	a.aim(g)
	to := 64 + 256 + 256 + 128
	if a.width() == 32 {
		to += 256
	}
	if n := a.chunk(); n > 0 {
		g.n = n
		reg := g.reg(fmt.Sprint("*V", a.width()), 20)
		for g.chunk = range 32 / n {
			a.gather(g, masked, reg, "BX", false)
			g.ins(movu, fmt.Sprintf("%d(R9)", to+g.chunk*n*a.width()/8), reg)
		}
		return
	}
	for at := 0; at < 4*a.width(); at += 64 {
		from := fmt.Sprintf("%d(BX)", at)
		if a.how == rows {
			if from = "(BX)"; at > 0 {
				g.ins("ADDQ", "BX", "24(CX)")
			}
		}
		g.ins(movu, "Z20", from)
		g.ins(movu, fmt.Sprintf("%d(R9)", to+at), "Z20")
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

// reachEach makes of vectors of addresses offsets, in Z16 and three more, of the pointer in R9.
func (a *access) reachEach(g *asm, masked bool) {
	g.ins("VPBROADCASTQ", "Z26", "(CX)")
	g.ins("VPBROADCASTQ", "Z27", "8(CX)")
	g.konst64("Z28", uint64(a.size-1))
	for i, k := range []string{"K0", "K5", "K6", "K7"} {
		z := fmt.Sprint("Z", 16+i)
		if a.how == each {
			g.ins(movu, z, fmt.Sprintf("%d(R11)(BX*1)", 64*i))
		} else {
			g.ins("VPMOVZXDQ", z, fmt.Sprintf("%d(DI)(BX*1)", 32*i))
		}
		g.ins("VPSUBQ", z, z, "Z26")
		even := k
		if k == "K0" { // which is no mask
			even = "K5"
		}
		g.ins("VPTESTNMQ", even, z, "Z28")
		g.under(even, "VPCMPUQ", k, z, "Z27", "$1")
	}
	g.n = 8
	g.join()
	g.ins("KMOVD", "R8", "K0")
	if masked {
		g.ins("ANDL", "R8", "DX")
		g.WriteString("\tCMPL R8, DX\n\tJNE stop\n")
	} else {
		g.WriteString("\tCMPL R8, $-1\n\tJNE stop\n")
	}
	g.told()
	g.ins("MOVQ", "R9", "16(CX)")
	g.ins("MOVQ", "R9", "(R9)")
}

// moves are the instructions that load an element into a lane's register and store it, by the element's size and the
// register's bits.
var moves = map[[2]int][2]string{{1, 32}: {"VPMOVZXBD", "VPMOVDB"}, {2, 32}: {"VPMOVZXWD", "VPMOVDW"}, {4, 32}: {"VMOVDQU32", "VMOVDQU32"}, {8, 64}: {"VMOVDQU64", "VMOVDQU64"}}

// move moves the data by chunks of n lanes, one telling how a chunk in Z20 is loaded or stored under the mask K5.
func (a *access) move(g *asm, masked bool, n int, one func(g *asm, masked bool, reg string)) {
	g.n = n
	typ := fmt.Sprint("*V", a.width())
	reg := g.reg(typ, 20)
	for g.chunk = range 32 / n {
		at := g.mem(typ, file(typ)+"(AX*1)")
		if a.store || masked {
			g.ins(movu, reg, at)
		}
		one(g, masked, reg)
		if !a.store {
			g.ins(movu, at, reg)
		}
	}
}

// straight moves a chunk of lanes side by side, at R8.
func (a *access) straight(g *asm, masked bool, reg string) {
	at := fmt.Sprintf("%d(R8)", g.chunk*g.n*a.size)
	if g.chunk > 0 && (a.how == rows || a.how == spread) {
		at = "(R8)(R9*1)"
	}
	if masked {
		g.ins("KNOTD", "K5", g.keeps())
	}
	op := moves[[2]int{a.size, a.width()}][0]
	switch {
	case a.store:
		op = moves[[2]int{a.size, a.width()}][1]
		reg, at = at, reg
	case a.signed:
		op = map[int]string{1: "VPMOVSXBD", 2: "VPMOVSXWD"}[a.size]
	case a.how == spread:
		op = "VPBROADCASTD"
	}
	if masked {
		g.under("K5", op, reg, at)
	} else {
		g.ins(op, reg, at)
	}
}

// chunk is how many lanes that have offsets are moved at once; 0 where they have none.
func (a *access) chunk() int {
	switch a.how {
	case each, eachLow:
		return 8
	case pattern:
		return 512 / a.width()
	}
	return 0
}

// scattered moves a chunk whose lanes have offsets, under the mask K5.
func (a *access) scattered(g *asm, masked bool, reg string) {
	base := "R9"
	if a.how == pattern {
		base = "R8"
	}
	a.gather(g, masked, reg, base, a.store)
}

// gather loads or stores a chunk whose lanes have offsets from base.
func (a *access) gather(g *asm, masked bool, reg, base string, store bool) {
	op := map[bool]string{true: "VPSCATTER", false: "VPGATHER"}[store] + map[how]string{pattern: "D", each: "Q", eachLow: "Q"}[a.how] + dq(a.width())
	offsets := fmt.Sprint("Z", 16+g.chunk)
	if a.how == pattern {
		offsets = g.reg(v32, 16)
		g.ins(movu, offsets, g.mem(v32, "(DI)(SI*1)"))
	}
	if masked {
		g.ins("KNOTD", "K5", g.keeps())
	} else {
		g.ins("KXNORD", "K5", "K5", "K5")
	}
	at := fmt.Sprintf("(%s)(%s*1)", base, offsets)
	if store {
		reg, at = at, reg
	}
	g.under("K5", op, reg, at)
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
	g := &asm{handler: true}
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
	g := &asm{handler: true}
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
