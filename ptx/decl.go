package ptx

import (
	"slices"
	"strconv"
	"strings"
)

// module reads a whole module.
func (p *parser) module() {
	begin := Pos{1, 1}
	for p.tok != tokEOF {
		m := p.mark()
		p.declaration(m)
		if p.tok == tokBad && p.resume(m) {
			// The brace that ends a broken declaration belongs to it.
			p.next()
		}
		p.unclosed = false
	}
	if p.eofTold {
		return
	}
	if !p.versioned {
		p.report(begin, "module has no .version directive")
	}
	if len(p.mod.Targets) == 0 {
		p.report(begin, "module has no .target directive")
	}
}

// declare adds a declaration to the module, unless it is broken.
func (p *parser) declare(d Decl) {
	if p.tok != tokBad {
		p.mod.Decls = append(p.mod.Decls, d)
	}
}

// declaration reads one thing at module level.
func (p *parser) declaration(m mark) {
	pos := p.pos()
	switch p.tok {
	case tokDir:
	case '@':
		p.next()
		if p.tok == '@' && p.start == p.prevEnd {
			p.declare(p.dwarf(pos))
			return
		}
		p.unexpected("a directive")
		return
	case '}':
		p.report(pos, "unexpected '}'")
		p.next()
		return
	default:
		p.unexpected("a directive")
		return
	}
	switch name := p.dirName(); name {
	case "version":
		p.version()
	case "target":
		p.target()
	case "address_size":
		p.addressSize()
	case "file":
		p.declare(p.file())
	case "loc", "loc_intermediate":
		p.declare(p.loc())
	case "section":
		p.declare(p.section())
	case "pragma":
		p.declare(p.pragma())
	case "alias":
		p.declare(p.alias())
	case "entry", "func":
		p.function(m, pos, 0)
	case "extern", "visible", "weak", "common":
		linkage := p.linkage()
		if p.isDir("entry") || p.isDir("func") {
			p.function(m, pos, linkage)
			return
		}
		p.moduleVar(pos, linkage)
	case "reg", "param", "local", "shared", "global", "const", "tex", "surf", "sreg":
		p.moduleVar(pos, 0)
	default:
		p.fail(pos, "unknown directive .%s", name)
	}
}

func (p *parser) moduleVar(pos Pos, linkage Linkage) {
	v := p.variable(pos, linkage)
	p.semicolon("declaration")
	p.declare(v)
}

// linkage reads the linking directives at the current token.
func (p *parser) linkage() (l Linkage) {
	for p.tok == tokDir {
		var bit Linkage
		switch p.dirName() {
		case "extern":
			bit = Extern
		case "visible":
			bit = Visible
		case "weak":
			bit = Weak
		case "common":
			bit = Common
		default:
			return l
		}
		if l&bit != 0 {
			p.fail(p.pos(), "%s is given twice", p.text())
		}
		l |= bit
		p.next()
	}
	return l
}

func (p *parser) version() {
	p.next()
	pos, s := p.pos(), ""
	if p.tok == tokFloat {
		s = p.text()
	}
	major, minor, ok := strings.Cut(s, ".")
	a, err1 := strconv.ParseUint(major, 10, 16)
	b, err2 := strconv.ParseUint(minor, 10, 16)
	if !ok || err1 != nil || err2 != nil {
		p.unexpected("a version such as 9.5")
		return
	}
	p.next()
	v := Version{int(a), int(b)}
	if p.versioned && v != p.mod.Version {
		p.report(pos, "second .version differs from the first")
	}
	p.mod.Version, p.versioned = v, true
}

// maxTargets bounds the names of .target, each of which is compared with the earlier ones. At most seven can be
// combined.
const maxTargets = 100

func (p *parser) target() {
	for {
		p.next()
		name := p.plainName("a target such as sm_80")
		if p.tok == tokBad {
			return
		}
		if !slices.Contains(p.mod.Targets, name) {
			p.mod.Targets = append(p.mod.Targets, name)
		}
		if len(p.mod.Targets) > maxTargets {
			p.fail(p.pos(), "more than %d targets", maxTargets)
			return
		}
		if p.tok != ',' {
			return
		}
	}
}

func (p *parser) addressSize() {
	p.next()
	pos := p.pos()
	n := p.small("32 or 64")
	if p.tok == tokBad {
		return
	}
	if n != 32 && n != 64 {
		p.report(pos, "address size is %d, expected 32 or 64", n)
		return
	}
	if p.mod.AddressSize != 0 && p.mod.AddressSize != n {
		p.report(pos, "second .address_size differs from the first")
	}
	p.mod.AddressSize = n
}

func (p *parser) file() *File {
	f := &File{Pos: p.pos()}
	p.next()
	f.Index = p.small("file index")
	if p.tok != tokString {
		p.unexpected("a file name")
		return f
	}
	f.Name = p.src[p.start+1 : p.end-1]
	p.next()
	if p.accept(',') {
		f.HasStat = true
		f.Timestamp = uint64(p.integer("a timestamp", precLowest))
		p.expect(',')
		f.Size = uint64(p.integer("a file size", precLowest))
	}
	return f
}

func (p *parser) alias() *Alias {
	a := &Alias{Pos: p.pos()}
	p.next()
	a.New = p.plainName("a function")
	p.expect(',')
	a.Old = p.plainName("a function")
	p.semicolon(".alias")
	return a
}

func (p *parser) pragma() *Directive {
	d := &Directive{Pos: p.pos(), Name: "pragma"}
	p.next()
	for {
		if p.tok != tokString {
			p.unexpected("a string")
			return d
		}
		d.Args = append(d.Args, Operand{Kind: OperandString, Pos: p.pos(), Name: p.src[p.start+1 : p.end-1]})
		p.next()
		if !p.accept(',') {
			break
		}
	}
	p.semicolon(".pragma")
	return d
}

// function reads an .entry or .func that began at m; the current token is that directive.
func (p *parser) function(m mark, pos Pos, linkage Linkage) {
	f := &Func{Pos: pos, Linkage: linkage}
	p.header(f)
	if p.tok == tokBad {
		// Read the body for its errors only.
		p.resumeHeader(m)
		if p.tok == '{' {
			p.block()
		}
		return
	}
	if p.tok != '{' {
		if !endsInPragma(f.Directives) {
			p.semicolon("function declaration")
		}
		p.declare(f)
		return
	}
	f.Body = p.block()
	p.declare(f)
}

func (p *parser) header(f *Func) {
	f.Entry = p.dirName() == "entry"
	p.next()
	for p.tok == tokDir {
		f.Attributes = append(f.Attributes, p.directive())
	}
	if p.tok == '(' && !f.Entry {
		f.Rets = p.params()
	}
	f.Name = p.plainName("a function name")
	if p.tok == '(' {
		f.ParamList = true
		f.Params = p.params()
	}
	f.Directives = p.directives()
	if p.tok != '{' && p.tok != ';' && !endsInPragma(f.Directives) {
		p.unexpected("'{' or ';'")
	}
}

// endsInPragma reports whether a header ends in .pragma, whose semicolon also ends the declaration.
func endsInPragma(l []*Directive) bool { return len(l) > 0 && l[len(l)-1].Name == "pragma" }

// directives reads the directives between the header of a function and its body.
func (p *parser) directives() (l []*Directive) {
	for p.tok == tokDir {
		if p.isDir("pragma") {
			l = append(l, p.pragma())
			continue
		}
		if endsInPragma(l) && syncDirective(p.dirName(), false) {
			break
		}
		l = append(l, p.directive())
	}
	return l
}

// directive reads `.name`, `.name arg, arg` or `.name(arg, arg)`.
func (p *parser) directive() *Directive {
	d := &Directive{Pos: p.pos(), Name: p.dirName()}
	if syncDirective(d.Name, false) && d.Name != "pragma" {
		p.unexpected("a performance directive, '{' or ';'")
		return d
	}
	p.next()
	if p.tok == '(' {
		d.Paren = true
		d.Args = p.directiveArgs()
		return d
	}
	for p.tok == tokInt || p.tok == tokString {
		o := Operand{Kind: OperandImm, Pos: p.pos(), Name: p.text()}
		if p.tok == tokString {
			o.Kind, o.Name = OperandString, p.src[p.start+1:p.end-1]
		}
		d.Args = append(d.Args, o)
		p.next()
		if !p.accept(',') {
			break
		}
		if p.tok != tokInt && p.tok != tokString {
			p.unexpected("an argument of ." + d.Name)
		}
	}
	return d
}

// directiveArgs reads a parenthesised list that may contain directives: `(.managed)`, `(.unified(1, 2))`.
func (p *parser) directiveArgs() (args []Operand) {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	p.next()
	for p.tok != ')' {
		if p.tok == tokDir {
			o := Operand{Kind: OperandDir, Pos: p.pos(), Name: p.dirName()}
			p.next()
			if p.tok == '(' {
				o.Args = p.directiveArgs()
			}
			args = append(args, o)
		} else {
			var o Operand
			p.primary(&o)
			args = append(args, o)
		}
		if p.tok != ',' {
			break
		}
		p.next()
	}
	p.expect(')')
	return args
}

// params reads `(.param .b32 a, .reg .u32 b)`.
func (p *parser) params() []*Var {
	var buf [16]*Var
	list := buf[:0]
	p.next()
	for p.tok != ')' {
		if !p.isDir("param") && !p.isDir("reg") {
			p.unexpected("a parameter")
			return nil
		}
		v := p.variable(p.pos(), 0)
		list = append(list, v)
		if p.tok != tokBad && (len(v.Names) != 1 || v.Names[0].Range >= 0 || v.Names[0].Init != nil) {
			p.fail(v.Pos, "a parameter is one name without initialiser")
		}
		if p.tok != ',' {
			break
		}
		p.next()
	}
	p.expect(')')
	return p.varPtrs.list(list)
}

// variable reads a declaration up to, not including, its ';'. In a parameter list a comma ends it too.
func (p *parser) variable(pos Pos, linkage Linkage) *Var {
	v := p.vars.new()
	v.Pos, v.Linkage, v.Vector = pos, linkage, 1
	if p.tok != tokDir {
		p.unexpected("a state space")
		return v
	}
	v.Space = p.dirName()
	p.next()
	if v.Space == "const" && p.tok == '[' {
		p.next()
		v.Bank = p.small("a bank of constant memory")
		p.expect(']')
	}
	p.varModifiers(v)
	if v.Type == "" {
		p.unexpected("a type")
		return v
	}
	var buf [4]VarName
	names := buf[:0]
	for {
		names = append(names, p.declarator())
		if p.tok != ',' {
			break
		}
		m := p.mark()
		p.next()
		if p.tok == tokDir {
			p.rewind(m) // the next parameter
			break
		}
	}
	v.Names = p.varNames.list(names)
	return v
}

// varModifiers reads alignment, attributes, vector size, type and .ptr, in any order.
func (p *parser) varModifiers(v *Var) {
	for p.tok == tokDir {
		switch name := p.dirName(); name {
		case "align":
			p.next()
			v.Align = p.alignment()
		case "attribute":
			v.Attributes = append(v.Attributes, p.directive())
		case "ptr":
			p.next()
			v.Ptr = p.ptrAttr()
		case "v2", "v4", "v8":
			v.Vector = int(name[1] - '0')
			p.next()
		default:
			if v.Type != "" || !isType(name) {
				p.unexpected("a type or a name")
				return
			}
			v.Type = name
			p.next()
		}
	}
}

// isType reports whether a directive in a declaration can be a type: anything except the words that begin a
// declaration, so that types of later ISA versions are accepted too.
func isType(name string) bool {
	return !syncDirective(name, false) && classes[name[0]] == classLetter
}

func (p *parser) ptrAttr() *PtrAttr {
	a := &PtrAttr{}
	if p.tok == tokDir && !p.isDir("align") {
		a.Space = p.dirName()
		p.next()
	}
	if p.isDir("align") {
		p.next()
		a.Align = p.alignment()
	}
	return a
}

// declarator reads one name of a declaration with its bounds and initialiser.
func (p *parser) declarator() VarName {
	n := VarName{Pos: p.pos(), Range: -1}
	n.Name = p.plainName("a name")
	if p.tok == '<' {
		p.next()
		pos := p.pos()
		count := p.inBounds("a number of registers")
		if count > 1<<30 && p.tok != tokBad {
			p.fail(pos, "%d registers are too many", count)
		}
		n.Range = int(count)
		p.expect('>')
	}
	for p.tok == '[' {
		p.next()
		dim := int64(-1)
		if p.tok != ']' {
			dim = p.inBounds("an array dimension")
		}
		n.Dims = append(n.Dims, dim)
		p.expect(']')
	}
	if p.tok == '=' {
		p.next()
		n.Init = p.initialiser()
	}
	return n
}

func (p *parser) initialiser() *Init {
	in := p.inits.new()
	in.Pos = p.pos()
	if p.tok == '{' {
		p.initList(in)
		return in
	}
	p.primary(&in.Value)
	if p.tok == '=' && in.Value.Kind == OperandIdent {
		in.Key = in.Value.Name
		p.next()
		if p.tok == '{' {
			in.Value = Operand{}
			p.initList(in)
			return in
		}
		p.primary(&in.Value)
	}
	switch in.Value.Kind {
	case OperandImm, OperandIdent, OperandAddrOf, OperandMask:
	default:
		if p.tok != tokBad {
			p.fail(in.Value.Pos, "malformed initialiser")
		}
	}
	return in
}

func (p *parser) initList(in *Init) {
	if !p.enter() {
		return
	}
	defer p.leave()
	in.IsList = true
	base := len(p.initStack)
	p.next()
	if p.tok != '}' {
		for {
			p.initStack = append(p.initStack, p.initialiser())
			if p.tok != ',' {
				break
			}
			p.next()
		}
	}
	p.expect('}')
	in.List = p.initPtrs.list(p.initStack[base:])
	p.initStack = p.initStack[:base]
}
