package main

import (
	"bytes"
	"fmt"
	"strings"
)

// The operations of Run: those of the table, and these on the predicates and the scalars.

// word1 is an operation on predicates or scalars: an expression of a, b, c (predicates: all lanes of each) and imm, and
// assembly that makes it in AX of a in BX, b in CX, c in SI.
type word1 struct {
	name, doc string
	in        int // operands
	scalar    bool
	from      bool // a is a scalar although the result is a predicate
	expr      string
	asm       []string
}

func words1() []word1 {
	pred := func(name, doc string, in int, expr string, asm ...string) word1 {
		return word1{name: "Pred" + name, doc: doc, in: in, expr: expr, asm: asm}
	}
	scalar := func(name, doc string, in int, expr string, asm ...string) word1 {
		return word1{name: "Scalar" + name, doc: doc, in: in, scalar: true, expr: expr, asm: asm}
	}
	toAX := func(ins string) []string { return []string{ins + " CX, BX", "MOVQ BX, AX"} }
	masked := func(list ...string) []string { return append(list, "ANDQ 24(R12), AX") }
	ws := []word1{
		pred("Copy", "a", 1, "$a", "MOVL BX, AX"),
		pred("Not", "^a", 1, "^$a", "MOVL BX, AX", "NOTL AX"),
		pred("And", "a & b", 2, "$a & $b", toAX("ANDL")...),
		pred("Or", "a | b", 2, "$a | $b", toAX("ORL")...),
		pred("Xor", "a ^ b", 2, "$a ^ $b", toAX("XORL")...),
		pred("Sel", "c ? a : b", 3, "$a&$c | $b&^$c", "ANDL SI, BX", "ANDNL CX, SI, AX", "ORL BX, AX"),
		{name: "PredSet", doc: "the lowest bit of scalar a in every lane", in: 1, from: true, expr: "-uint32($a & 1)",
			asm: []string{"ANDL $1, BX", "NEGL BX", "MOVL BX, AX"}},
		scalar("Set", "imm", 0, "$imm", "MOVQ 24(R12), AX"),
		scalar("Copy", "a", 1, "$a", "MOVQ BX, AX"),
		scalar("Add", "(a + b) & imm", 2, "($a + $b) & $imm", masked(toAX("ADDQ")...)...),
		scalar("Sub", "(a - b) & imm", 2, "($a - $b) & $imm", masked(toAX("SUBQ")...)...),
		scalar("Mul", "a * b & imm", 2, "$a * $b & $imm", masked(toAX("IMULQ")...)...),
		scalar("And", "a & b", 2, "$a & $b", toAX("ANDQ")...),
		scalar("Or", "a | b", 2, "$a | $b", toAX("ORQ")...),
		scalar("Xor", "a ^ b", 2, "$a ^ $b", toAX("XORQ")...),
		scalar("Not", "^a & imm", 1, "^$a & $imm", masked("MOVQ BX, AX", "NOTQ AX")...),
		scalar("Mask", "a & imm", 1, "$a & $imm", masked("MOVQ BX, AX")...),
		scalar("SExt", "the lower n bits of a as a signed number, where imm is 64 - n", 1, "uint64(int64($a<<$imm) >> $imm)",
			"MOVQ 24(R12), CX", "SHLXQ CX, BX, AX", "SARXQ CX, AX, AX"),
		scalar("MulU", "a * b of their lower halves, unsigned", 2, "uint64(uint32($a)) * uint64(uint32($b))",
			"MOVL BX, AX", "MOVL CX, CX", "IMULQ CX, AX"),
		scalar("MulBy", "a * imm", 1, "$a * $imm", "MOVQ 24(R12), AX", "IMULQ BX, AX"),
		scalar("MulS", "a * b of their lower halves, signed", 2, "uint64(int64(int32($a)) * int64(int32($b)))",
			"MOVLQSX BX, AX", "MOVLQSX CX, CX", "IMULQ CX, AX"),
		scalar("Sel", "c ? a : b by the lowest bit of c", 3, "pick64(uint32($c), $a, $b)",
			"MOVQ CX, AX", "TESTL $1, SI", "CMOVQNE BX, AX"),
	}
	for _, w := range []int{32, 64} {
		mask := fmt.Sprintf("uint64(^uint%d(0))", w)
		ws = append(ws, scalar(fmt.Sprint("Shl", w), "a << b, cut", 2, fmt.Sprintf("uint64(uint%d($a) << $b)", w),
			append([]string{fmt.Sprintf("CMPQ CX, $%d", w), "SBBQ R8, R8", "SHLXQ CX, BX, AX", "ANDQ R8, AX"}, cut(w)...)...),
			scalar(fmt.Sprint("ShrU", w), "a >> b, zeros coming in", 2, fmt.Sprintf("$a & %s >> $b", mask),
				append(cutBX(w), fmt.Sprintf("CMPQ CX, $%d", w), "SBBQ R8, R8", "SHRXQ CX, BX, AX", "ANDQ R8, AX")...),
			scalar(fmt.Sprint("ShrS", w), "a >> b, the sign coming in", 2, fmt.Sprintf("uint64(uint%d(int%d($a) >> $b))", w, w),
				append(append(signBX(w), fmt.Sprintf("MOVL $%d, R8", w-1), "CMPQ CX, R8", "CMOVQHI R8, CX", "SARXQ CX, BX, AX"), cut(w)...)...))
		for _, c := range []struct{ name, op, typ, set string }{
			{"EQ", "==", "uint", "SETEQ"}, {"NE", "!=", "uint", "SETNE"}, {"LTS", "<", "int", "SETLT"}, {"LES", "<=", "int", "SETLE"},
			{"GTS", ">", "int", "SETGT"}, {"GES", ">=", "int", "SETGE"}, {"LTU", "<", "uint", "SETCS"}, {"LEU", "<=", "uint", "SETLS"},
			{"GTU", ">", "uint", "SETHI"}, {"GEU", ">=", "uint", "SETCC"},
		} {
			ws = append(ws, scalar(fmt.Sprint(c.name, w), "1 where a "+c.op+" b", 2,
				fmt.Sprintf("one(%s%d($a) %s %s%d($b))", c.typ, w, c.op, c.typ, w),
				"XORL AX, AX", map[int]string{32: "CMPL BX, CX", 64: "CMPQ BX, CX"}[w], c.set+" AX"))
		}
	}
	return ws
}

// cut, cutBX and signBX bring AX and BX to w bits.
func cut(w int) []string {
	if w == 32 {
		return []string{"MOVL AX, AX"}
	}
	return nil
}

func cutBX(w int) []string {
	if w == 32 {
		return []string{"MOVL BX, BX"}
	}
	return nil
}

func signBX(w int) []string {
	if w == 32 {
		return []string{"MOVLQSX BX, BX"}
	}
	return nil
}

// files names the register file of each field of an Op, in the order D, A, B, C.
func (r *row) files() []string {
	var fs []string
	if r.dst == "" {
		fs = append(fs, "preds")
	}
	for _, p := range r.params() {
		switch {
		case p.name == "mask" || p.name == r.imm:
		case p.name == "cond":
			fs = append(fs, "preds")
		case p.typ == v32:
			fs = append(fs, "vectors32")
		case p.typ == v64:
			fs = append(fs, "vectors64")
		default:
			fs = append(fs, "scalars")
		}
	}
	return fs
}

func (w *word1) files() []string {
	file := "preds"
	if w.scalar {
		file = "scalars"
	}
	fs := []string{file}
	for range w.in {
		fs = append(fs, file)
	}
	if w.from {
		fs[1] = "scalars"
	}
	return fs
}

var fields = []string{"D", "A", "B", "C"}

// runGo writes the codes, what they take, and the Go code of Run.
func runGo(rows []*row) []byte {
	var b bytes.Buffer
	b.WriteString(header + "package lanes\n\n// The operations of Run. Those named for a function do what it does.\nconst (\n\tOpEnd Code = iota // ends the list\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "\tOp%s\n", r.name)
	}
	for _, w := range words1() {
		fmt.Fprintf(&b, "\tOp%s // d = %s\n", w.name, w.doc)
	}
	b.WriteString("\t// Accesses; see access.\n")
	names, files := accessNames()
	for _, name := range names {
		fmt.Fprintf(&b, "\tOp%s\n", name)
	}
	b.WriteString("\n\tcodes\n)\n\n")
	b.Write(accessTable())
	b.WriteString("\nvar operands = [codes][4]file{\n")
	list := func(name string, fs []string) {
		fmt.Fprintf(&b, "\tOp%s: {%s},\n", name, strings.Join(fs, ", "))
	}
	for _, r := range rows {
		list(r.name, r.files())
	}
	for _, w := range words1() {
		list(w.name, w.files())
	}
	for i, name := range names {
		list(name, files[i])
	}
	b.WriteString("}\n\nfunc runGo(code []Op, x *Regs, mask uint32) uint64 {\n\tfor o := &code[0]; ; o = o.after(1) {\n\t\tswitch o.Code {\n\t\tcase OpEnd:\n\t\t\treturn o.Imm\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "\t\tcase Op%s:\n\t\t\t%s\n", r.name, r.goCall())
	}
	for _, w := range words1() {
		e := w.expr
		for i, p := range []string{"$a", "$b", "$c"} {
			get := "x.pred"
			if w.scalar || w.from {
				get = "x.scalar"
			}
			e = strings.ReplaceAll(e, p, "*"+get+"(o."+fields[1+i]+")")
		}
		e = strings.ReplaceAll(e, "$imm", "o.Imm")
		if w.scalar {
			fmt.Fprintf(&b, "\t\tcase Op%s:\n\t\t\t*x.scalar(o.D) = %s\n", w.name, e)
		} else {
			fmt.Fprintf(&b, "\t\tcase Op%s:\n\t\t\tx.setPred(o.D, %s, mask)\n", w.name, e)
		}
	}
	b.WriteString("\t\tcase OpGoto, OpIfScalar, OpIfPred:\n\t\t\tn, ok := x.jump(o, mask)\n\t\t\tif !ok {\n\t\t\t\treturn o.Imm\n\t\t\t}\n\t\t\to = o.after(n - 1)\n" +
		"\t\tdefault:\n\t\t\tif !x.access(o, mask) {\n\t\t\t\treturn o.Imm\n\t\t\t}\n\t\t}\n\t}\n}\n")
	return b.Bytes()
}

// goCall calls the portable function with the operands of an Op.
func (r *row) goCall() string {
	var args []string
	if r.dst != "" {
		args = append(args, fmt.Sprintf("x.v%d(o.D)", width(r.dst)))
	}
	for i, p := range r.in {
		f := "o." + fields[min(i, 2)+1]
		switch {
		case p.name == r.imm:
			args = append(args, p.typ+"(o.Imm)")
		case p.name == "cond":
			args = append(args, "*x.pred("+f+")")
		case p.typ == v32, p.typ == v64:
			args = append(args, fmt.Sprintf("x.v%d(%s)", width(p.typ), f))
		default:
			args = append(args, p.typ+"(*x.scalar("+f+"))")
		}
	}
	call := fmt.Sprintf("%s(%s, mask)", r.name, strings.Join(args, ", "))
	if r.dst == "" {
		return "x.setPred(o.D, " + call + ", mask)"
	}
	return call
}

// runAssembly writes asmRun and the handlers, one for a full mask and one for others.
func runAssembly(rows []*row) []byte {
	var b bytes.Buffer
	b.WriteString(`
// func asmRun(code *Op, at uintptr, x *Regs, mask uint32) (end uint64, left *Op)
TEXT ·asmRun(SB), NOSPLIT, $0-48
	MOVQ code+0(FP), R12
	MOVQ x+16(FP), AX
	MOVL mask+24(FP), DX
	MOVQ 0(AX), DI
	MOVQ 8(AX), R11
	MOVQ 16(AX), R14
	MOVQ 24(AX), R13
	MOVQ AX, R10
	LEAQ full<>(SB), R15
	CMPL DX, $-1
	JEQ go
	LEAQ part<>(SB), R15
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
	MOVQ at+8(FP), AX
	TESTQ AX, AX
	JEQ list
	JMP AX

list:
	MOVQ (R12), AX
	MOVL AX, R8
	SHRQ $32, AX
	MOVQ (R15)(R8*8), R8
	JMP R8

TEXT runEnd<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ 24(R12), AX
	MOVQ AX, 40(SP)
	MOVQ $0, 48(SP)
	VZEROUPPER
	RET

TEXT runLeft<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ R12, 48(SP)
	VZEROUPPER
	RET
`)
	names := []string{"runEnd"}
	left := map[string]bool{}
	do := bodies()
	for _, r := range rows {
		names = append(names, r.name)
		x, ok := do[r.name]
		delete(do, r.name)
		switch {
		case r.name == "Lop3":
			b.Write(r.lop3Handlers())
		case ok:
			b.Write(r.handlers(x))
		default:
			left[r.name] = true
		}
	}
	for name := range do {
		panic("BUG: no row for " + name)
	}
	for _, w := range words1() {
		b.Write(w.handlers())
		names = append(names, w.name)
	}
	for _, a := range accesses() {
		b.Write(a.handlers())
	}
	b.Write(steady())
	b.Write(jumps())
	more, _ := accessNames()
	names = append(names, more...)
	for _, table := range []string{"full", "part"} {
		b.WriteString("\n")
		for i, name := range names {
			switch {
			case left[name]:
				name = "runLeft"
			case i > 0:
				name = table + name
			}
			fmt.Fprintf(&b, "DATA %s<>+%d(SB)/8, $%s<>(SB)\n", table, 8*i, name)
		}
		fmt.Fprintf(&b, "GLOBL %s<>(SB), RODATA, $%d\n", table, 8*len(names))
	}
	return b.Bytes()
}

// next goes on with the next Op, whose D is then in AX. Fields are loaded in pairs: loads are what operations wait for.
func (g *asm) next() {
	g.WriteString("\tMOVQ 32(R12), AX\n\tADDQ $32, R12\n\tMOVL AX, R8\n\tSHRQ $32, AX\n\tMOVQ (R15)(R8*8), R8\n\tJMP R8\n")
}

// operandsOf loads the fields of an Op that are vectors, or words: BX, CX, SI.
func (g *asm) operandsOf(used [3]bool) {
	switch {
	case used[0] && used[1]:
		g.ins("MOVQ", "BX", "8(R12)")
		g.ins("MOVQ", "CX", "BX")
		g.ins("MOVL", "BX", "BX")
		g.ins("SHRQ", "CX", "$32")
	case used[0]:
		g.ins("MOVL", "BX", "8(R12)")
	case used[1]:
		g.ins("MOVL", "CX", "12(R12)")
	}
	if used[2] {
		g.ins("MOVL", "SI", "16(R12)")
	}
}

// handlers writes the two handlers of a row.
func (r *row) handlers(x body) []byte {
	g := &asm{r: r, body: x, n: r.lanesIn(x.eight), bases: make([]string, len(r.in))}
	for _, masked := range []bool{false, true} {
		fmt.Fprintf(g, "\nTEXT %s%s<>(SB), NOSPLIT|NOFRAME, $0-0\n", kindOf(masked), r.name)
		g.d = file(r.dst) + "(AX*1)"
		var used [3]bool
		for i, p := range r.in {
			if strings.HasPrefix(p.typ, "*") {
				used[i] = true
				g.bases[i] = file(p.typ) + "(" + pointers[i] + "*1)"
			}
		}
		g.operandsOf(used)
		if x.nan {
			g.ins("VBROADCASTSS", "Y10", "nan32<>(SB)")
		}
		g.scalars()
		if r.dst == "" {
			g.compare()
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

// kindOf names the table of handlers.
func kindOf(masked bool) string {
	if masked {
		return "part"
	}
	return "full"
}

// merge writes a register to a predicate, the lanes of the mask only.
func (g *asm) merge(masked bool, reg, at string) {
	if masked {
		g.ins("ANDL", reg, "DX")
		g.ins("ANDNL", "CX", "DX", at)
		g.ins("ORL", reg, "CX")
	}
	g.ins("MOVL", at, reg)
}

// file is the base register of the vectors of a type.
func file(typ string) string {
	if typ == v64 {
		return "(R11)"
	}
	return "(DI)"
}

// handlers writes the two handlers of an operation on words; those on scalars do not differ.
func (w *word1) handlers() []byte {
	g := &asm{}
	for _, masked := range []bool{false, true} {
		fmt.Fprintf(g, "\nTEXT %s%s<>(SB), NOSPLIT|NOFRAME, $0-0\n", kindOf(masked), w.name)
		g.operandsOf([3]bool{w.in > 0, w.in > 1, w.in > 2})
		for i := range w.in {
			if w.scalar || w.from {
				g.ins("MOVQ", pointers[i], "(R13)("+pointers[i]+"*1)")
			} else {
				g.ins("MOVL", pointers[i], "(R14)("+pointers[i]+"*1)")
			}
		}
		for _, line := range w.asm {
			g.WriteString("\t" + line + "\n")
		}
		g.ins("MOVL", "BX", "4(R12)")
		if w.scalar {
			g.ins("MOVQ", "(R13)(BX*1)", "AX")
		} else {
			g.merge(masked, "AX", "(R14)(BX*1)")
		}
		g.next()
	}
	return g.Bytes()
}
