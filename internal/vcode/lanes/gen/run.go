package main

import (
	"bytes"
	"fmt"
	"strings"
)

// The operations of Run: those of the table, and these on the predicates and the scalars.

// wordRow is an operation on predicates or scalars: an expression of a, b, c (predicates: all lanes of each) and imm.
type wordRow struct {
	name, doc string
	in        int // operands
	scalar    bool
	from      bool // a is a scalar although the result is a predicate
	expr      string
}

func wordRows() []wordRow {
	pred := func(name, doc string, in int, expr string) wordRow {
		return wordRow{name: "Pred" + name, doc: doc, in: in, expr: expr}
	}
	scalar := func(name, doc string, in int, expr string) wordRow {
		return wordRow{name: "Scalar" + name, doc: doc, in: in, scalar: true, expr: expr}
	}
	ws := []wordRow{
		pred("Copy", "a", 1, "$a"),
		pred("Not", "^a", 1, "^$a"),
		pred("And", "a & b", 2, "$a & $b"),
		pred("Or", "a | b", 2, "$a | $b"),
		pred("Xor", "a ^ b", 2, "$a ^ $b"),
		pred("Sel", "c ? a : b", 3, "$a&$c | $b&^$c"),
		{name: "PredSet", doc: "the lowest bit of scalar a in every lane", in: 1, from: true, expr: "-uint32($a & 1)"},
		scalar("Set", "imm", 0, "$imm"),
		scalar("Copy", "a", 1, "$a"),
		scalar("Add", "(a + b) & imm", 2, "($a + $b) & $imm"),
		scalar("Sub", "(a - b) & imm", 2, "($a - $b) & $imm"),
		scalar("Mul", "a * b & imm", 2, "$a * $b & $imm"),
		scalar("And", "a & b", 2, "$a & $b"),
		scalar("Or", "a | b", 2, "$a | $b"),
		scalar("Xor", "a ^ b", 2, "$a ^ $b"),
		scalar("Not", "^a & imm", 1, "^$a & $imm"),
		scalar("Mask", "a & imm", 1, "$a & $imm"),
		scalar("SExt", "the lower n bits of a as a signed number, where imm is 64 - n", 1, "uint64(int64($a<<$imm) >> $imm)"),
		scalar("MulU", "a * b of their lower halves, unsigned", 2, "uint64(uint32($a)) * uint64(uint32($b))"),
		scalar("MulBy", "a * imm", 1, "$a * $imm"),
		scalar("MulS", "a * b of their lower halves, signed", 2, "uint64(int64(int32($a)) * int64(int32($b)))"),
		scalar("Sel", "c ? a : b by the lowest bit of c", 3, "pick64(uint32($c), $a, $b)"),
	}
	for _, w := range []int{32, 64} {
		mask := fmt.Sprintf("uint64(^uint%d(0))", w)
		ws = append(ws, scalar(fmt.Sprint("Shl", w), "a << b, cut", 2, fmt.Sprintf("uint64(uint%d($a) << $b)", w)),
			scalar(fmt.Sprint("ShrU", w), "a >> b, zeros coming in", 2, fmt.Sprintf("$a & %s >> $b", mask)),
			scalar(fmt.Sprint("ShrS", w), "a >> b, the sign coming in", 2, fmt.Sprintf("uint64(uint%d(int%d($a) >> $b))", w, w)))
		for _, c := range []struct{ name, op, typ string }{
			{"EQ", "==", "uint"}, {"NE", "!=", "uint"}, {"LTS", "<", "int"}, {"LES", "<=", "int"}, {"GTS", ">", "int"}, {"GES", ">=", "int"},
			{"LTU", "<", "uint"}, {"LEU", "<=", "uint"}, {"GTU", ">", "uint"}, {"GEU", ">=", "uint"},
		} {
			ws = append(ws, scalar(fmt.Sprint(c.name, w), "1 where a "+c.op+" b", 2,
				fmt.Sprintf("one(%s%d($a) %s %s%d($b))", c.typ, w, c.op, c.typ, w)))
		}
	}
	return ws
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

func (w *wordRow) files() []string {
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
	for _, w := range wordRows() {
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
	for _, w := range wordRows() {
		list(w.name, w.files())
	}
	for i, name := range names {
		list(name, files[i])
	}
	b.WriteString("}\n\nfunc runGo(code []Op, x *Regs, mask uint32) uint64 {\n\tfor o := &code[0]; ; o = o.after(1) {\n\t\tswitch o.Code {\n\t\tcase OpEnd:\n\t\t\treturn o.Imm\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "\t\tcase Op%s:\n\t\t\t%s\n", r.name, r.goCall())
	}
	for _, w := range wordRows() {
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
		args = append(args, fmt.Sprintf("x.v%s(o.D)", width(r.dst)))
	}
	for i, p := range r.in {
		f := "o." + fields[min(i, 2)+1]
		switch {
		case p.name == r.imm:
			args = append(args, p.typ+"(o.Imm)")
		case p.name == "cond":
			args = append(args, "*x.pred("+f+")")
		case p.typ == v32, p.typ == v64:
			args = append(args, fmt.Sprintf("x.v%s(%s)", width(p.typ), f))
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

// width is the bits of a lane of a vector, which end the name of its type.
func width(typ string) string { return strings.TrimPrefix(typ, "*V") }
