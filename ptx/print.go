package ptx

import (
	"fmt"
	"io"
	"strconv"
)

// Print writes the module as PTX in the layout of nvcc. Comments are not part of the tree. Parse reads everything else
// back unchanged, except positions. The error is that of w.
func Print(w io.Writer, m *Module) error {
	p := &printer{w: w}
	p.printf(".version %d.%d\n", m.Version.Major, m.Version.Minor)
	for i, t := range m.Targets {
		p.text(listSep(i, ".target "), t)
	}
	p.text("\n")
	if m.AddressSize != 0 {
		p.printf(".address_size %d\n", m.AddressSize)
	}
	for _, d := range m.Decls {
		p.decl(d)
	}
	p.flush()
	return p.err
}

// String returns the operand as Print writes it.
func (o Operand) String() string {
	p := &printer{}
	p.operand(&o)
	return string(p.buf)
}

// String returns the instruction as Print writes it, on one line, with its guard and semicolon.
func (in *Inst) String() string {
	p := &printer{}
	p.inst(in, " ")
	return string(p.buf)
}

// listSep is the text before element i of a list.
func listSep(i int, first string) string {
	if i == 0 {
		return first
	}
	return ", "
}

type printer struct {
	w    io.Writer
	err  error
	buf  []byte
	line int // offset in buf where the current line begins
	tabs int // indentation
}

const flushSize = 1 << 16

func (p *printer) flush() {
	if p.err == nil {
		_, p.err = p.w.Write(p.buf)
	}
	p.buf = p.buf[:0]
	p.line = 0
}

func (p *printer) text(parts ...string) {
	for _, s := range parts {
		p.buf = append(p.buf, s...)
	}
}

func (p *printer) int(v int64) { p.buf = strconv.AppendInt(p.buf, v, 10) }

func (p *printer) printf(format string, args ...any) { p.buf = fmt.Appendf(p.buf, format, args...) }

// begin starts a line, indented.
func (p *printer) begin() {
	if p.w != nil && len(p.buf) > flushSize {
		p.flush()
	}
	p.line = len(p.buf)
	for range p.tabs {
		p.buf = append(p.buf, '\t')
	}
}

func (p *printer) decl(d Decl) {
	switch d := d.(type) {
	case *Func:
		p.function(d)
	case *Var:
		p.begin()
		p.variable(d)
		p.text(";\n")
	case *Alias:
		p.begin()
		p.text(".alias ", d.New, ", ", d.Old, ";\n")
	case *Section:
		p.section(d)
	case *File:
		p.file(d)
	case *Dwarf:
		p.dwarf(d)
	case *Loc:
		p.loc(d)
	case *Directive:
		p.begin()
		p.directive(d, true)
		p.text("\n")
	default:
		panic(fmt.Sprintf("BUG: declaration %T", d))
	}
}

func (p *printer) linkage(l Linkage) {
	if l&Extern != 0 {
		p.text(".extern ")
	}
	if l&Visible != 0 {
		p.text(".visible ")
	}
	if l&Weak != 0 {
		p.text(".weak ")
	}
	if l&Common != 0 {
		p.text(".common ")
	}
}

func (p *printer) function(f *Func) {
	p.text("\n")
	p.begin()
	p.linkage(f.Linkage)
	if f.Entry {
		p.text(".entry ")
	} else {
		p.text(".func ")
	}
	for _, d := range f.Attributes {
		p.directive(d, false)
		p.text(" ")
	}
	if len(f.Rets) > 0 {
		p.params(f.Rets)
		p.text(" ")
	}
	p.text(f.Name)
	if f.ParamList {
		p.functionParams(f.Params)
	}
	for _, d := range f.Directives {
		p.text("\n")
		p.directive(d, true)
	}
	if f.Body == nil {
		if endsInPragma(f.Directives) {
			p.text("\n")
		} else {
			p.text(";\n")
		}
		return
	}
	p.text("\n")
	p.block(f.Body)
}

func (p *printer) functionParams(params []*Var) {
	if len(params) == 0 {
		p.text("()")
		return
	}
	p.text("(\n")
	for i, v := range params {
		if i > 0 {
			p.text(",\n")
		}
		p.text("\t")
		p.variable(v)
	}
	p.text("\n)")
}

// params writes a parameter list on one line.
func (p *printer) params(params []*Var) {
	p.text("(")
	for i, v := range params {
		p.text(listSep(i, ""))
		p.variable(v)
	}
	p.text(")")
}

// directive writes a directive. As a statement it gets a semicolon if its kind requires one.
func (p *printer) directive(d *Directive, statement bool) {
	p.text(".", d.Name)
	if d.Paren {
		p.operands("(", d.Args, ")")
	} else {
		for i := range d.Args {
			p.text(listSep(i, " "))
			p.operand(&d.Args[i])
		}
	}
	if statement && d.Name == "pragma" {
		p.text(";")
	}
}

func (p *printer) variable(v *Var) {
	p.linkage(v.Linkage)
	p.text(".", v.Space)
	if v.Bank != 0 {
		p.printf("[%d]", v.Bank)
	}
	for _, d := range v.Attributes {
		p.text(" ")
		p.directive(d, false)
	}
	if v.Align != 0 {
		p.text(" .align ")
		p.int(int64(v.Align))
	}
	if v.Vector > 1 {
		p.text(" .v")
		p.int(int64(v.Vector))
	}
	p.text(" .", v.Type)
	if v.Ptr != nil {
		p.text(" .ptr")
		if v.Ptr.Space != "" {
			p.text(" .", v.Ptr.Space)
		}
		if v.Ptr.Align != 0 {
			p.text(" .align ")
			p.int(int64(v.Ptr.Align))
		}
	}
	for i := range v.Names {
		p.text(listSep(i, " "))
		p.varName(&v.Names[i])
	}
}

func (p *printer) varName(n *VarName) {
	p.text(n.Name)
	if n.Range >= 0 {
		p.text("<")
		p.int(int64(n.Range))
		p.text(">")
	}
	for _, d := range n.Dims {
		p.text("[")
		if d >= 0 {
			p.int(d)
		}
		p.text("]")
	}
	if n.Init != nil {
		p.text(" = ")
		p.initialiser(n.Init)
	}
}

// wrapColumn is the column at which a long initialiser continues on the next line.
const wrapColumn = 100

func (p *printer) initialiser(in *Init) {
	if in.Key != "" {
		p.text(in.Key, " = ")
	}
	if !in.IsList {
		p.operand(&in.Value)
		return
	}
	p.text("{")
	for i, e := range in.List {
		if i > 0 {
			p.text(",")
			if len(p.buf)-p.line > wrapColumn {
				p.text("\n")
				p.begin()
				p.text("\t")
			} else {
				p.text(" ")
			}
		}
		p.initialiser(e)
	}
	p.text("}")
}

func (p *printer) file(f *File) {
	p.begin()
	p.text(".file\t")
	p.int(int64(f.Index))
	p.text(` "`, f.Name, `"`)
	if f.HasStat {
		p.printf(", %d, %d", f.Timestamp, f.Size)
	}
	p.text("\n")
}

func (p *printer) dwarf(d *Dwarf) {
	p.begin()
	p.text("@@DWARF ", d.Text, "\n")
}

func (p *printer) loc(l *Loc) {
	p.begin()
	if l.Intermediate {
		p.text(".loc_intermediate\t")
	} else {
		p.text(".loc\t")
	}
	p.int(int64(l.File))
	p.text(" ")
	p.int(int64(l.Line))
	p.text(" ")
	p.int(int64(l.Column))
	if l.FunctionName != "" {
		p.text(", function_name ", l.FunctionName)
		if l.FunctionOff != 0 {
			p.text("+")
			p.int(l.FunctionOff)
		}
	}
	if l.Inlined {
		p.printf(", inlined_at %d %d %d", l.AtFile, l.AtLine, l.AtColumn)
	}
	p.text("\n")
}

func (p *printer) section(s *Section) {
	p.begin()
	p.text(".section\t", s.Name, "\n")
	p.begin()
	p.text("{\n")
	for i := range s.Lines {
		l := &s.Lines[i]
		p.begin()
		if l.Label != "" {
			p.text(l.Label, ":\n")
			continue
		}
		p.text(".", l.Type)
		for j := range l.Values {
			p.text(listSep(j, " "))
			p.operand(&l.Values[j])
		}
		p.text("\n")
	}
	p.begin()
	p.text("}\n")
}

func (p *printer) block(b *Block) {
	p.begin()
	p.text("{\n")
	p.tabs++
	for _, s := range b.Stmts {
		p.stmt(s)
	}
	p.tabs--
	p.begin()
	p.text("}\n")
}

func (p *printer) stmt(s Stmt) {
	switch s := s.(type) {
	case *Inst:
		p.begin()
		p.inst(s, " \t")
		p.text("\n")
	case *Label:
		p.text(s.Name, ":\n")
	case *Var:
		p.begin()
		p.variable(s)
		p.text(";\n")
	case *Loc:
		p.loc(s)
	case *Block:
		p.block(s)
	case *Directive:
		p.begin()
		p.directive(s, true)
		p.text("\n")
	case *Prototype:
		p.prototype(s)
	case *TargetList:
		p.targetList(s)
	case *File:
		p.file(s)
	case *Section:
		p.section(s)
	case *Dwarf:
		p.dwarf(s)
	default:
		panic(fmt.Sprintf("BUG: statement %T", s))
	}
}

func (p *printer) prototype(t *Prototype) {
	p.text(t.Name, ": .callprototype ")
	p.params(t.Rets)
	p.text(" _ ")
	p.params(t.Params)
	for _, d := range t.Directives {
		p.text(" ")
		p.directive(d, true)
	}
	p.text(";\n")
}

func (p *printer) targetList(t *TargetList) {
	if t.Calls {
		p.text(t.Name, ": .calltargets")
	} else {
		p.text(t.Name, ": .branchtargets")
	}
	for i, name := range t.Targets {
		p.text(listSep(i, " "), name)
	}
	p.text(";\n")
}

func (p *printer) inst(in *Inst, sep string) {
	if in.Pred != "" {
		p.text("@")
		if in.PredNot {
			p.text("!")
		}
		p.text(in.Pred, " ")
	}
	p.text(in.Op, in.Mods)
	for i := range in.Operands {
		p.text(listSep(i, sep))
		p.operand(&in.Operands[i])
	}
	p.text(";")
}

func (p *printer) operands(begin string, l []Operand, end string) {
	p.text(begin)
	for i := range l {
		p.text(listSep(i, ""))
		p.operand(&l[i])
	}
	p.text(end)
}

func (p *printer) operand(o *Operand) {
	switch o.Kind {
	case OperandIdent, OperandImm:
		p.text(o.Name)
	case OperandAddr:
		p.address(o)
	case OperandVector:
		p.operands("{", o.Args, "}")
	case OperandList:
		p.operands("(", o.Args, ")")
	case OperandPair:
		p.operand(&o.Args[0])
		p.text("|")
		p.operand(&o.Args[1])
	case OperandNot:
		p.text("!")
		p.operand(&o.Args[0])
	case OperandNeg:
		p.text("-")
		p.operand(&o.Args[0])
	case OperandAddrOf:
		if o.Generic {
			p.text("generic(", o.Name, ")")
		} else {
			p.text(o.Name)
		}
		p.offset(o)
	case OperandString:
		p.text(`"`, o.Name, `"`)
	case OperandMask:
		p.text(o.Name)
		p.operands("(", o.Args, ")")
	case OperandDir:
		p.text(".", o.Name)
		if o.Args != nil {
			p.operands("(", o.Args, ")")
		}
		p.offset(o)
	case OperandIndex:
		p.text(o.Name)
		p.operands("[", o.Args, "]")
	case OperandDiff:
		p.operand(&o.Args[0])
		p.text("-")
		p.operand(&o.Args[1])
	default:
		panic(fmt.Sprintf("BUG: operand kind %d", o.Kind))
	}
}

// address writes `[base+off, more]`; the offset belongs to the base.
func (p *printer) address(o *Operand) {
	p.text("[")
	for i := range o.Args {
		p.text(listSep(i, ""))
		p.operand(&o.Args[i])
		if i == 0 {
			p.offset(o)
		}
	}
	p.text("]")
	if o.Name != "" {
		p.text(".", o.Name)
	}
}

// offset writes `+4` or, as nvcc does, `+-4`.
func (p *printer) offset(o *Operand) {
	if o.HasOff {
		p.text("+")
		p.int(o.Off)
	}
}
