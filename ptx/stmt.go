package ptx

import (
	"strconv"
	"strings"
)

// block reads `{ ... }`; the current token is the opening brace.
func (p *parser) block() *Block {
	b := p.blocks.new()
	b.Pos = p.pos()
	if !p.enter() {
		return b
	}
	base := len(p.stmtStack)
	p.next()
	for p.tok != '}' && p.tok != tokEOF && !p.unclosed {
		m := p.mark()
		p.statement()
		if p.tok == tokBad {
			p.resume(m)
		}
	}
	b.End = p.pos()
	switch {
	case p.tok == '}' && !p.unclosed:
		p.next()
	case p.tok == tokEOF && !p.eofTold:
		p.eofTold = true
		p.report(p.prevPos(), "unexpected end of file: '{' of line %d is not closed", b.Pos.Line)
	}
	p.leave()
	b.Stmts = p.stmts.list(p.stmtStack[base:])
	p.stmtStack = p.stmtStack[:base]
	return b
}

// push adds a statement to the block being read, unless it is broken.
func (p *parser) push(s Stmt) {
	if p.tok != tokBad {
		p.stmtStack = append(p.stmtStack, s)
	}
}

// statement reads one statement and pushes it.
func (p *parser) statement() {
	switch p.tok {
	case tokIdent:
		pos, start, end, dot := p.pos(), p.start, p.end, p.dot
		p.next()
		if p.tok == ':' && dot == 0 && strings.IndexByte(p.src[start:end], ':') < 0 {
			p.label(pos, p.src[start:end])
			return
		}
		p.inst(pos, start, end, dot, "", false)
	case tokDir:
		p.bodyDirective()
	case '@':
		p.guarded()
	case '{':
		p.push(p.block())
	default:
		p.unexpected("an instruction")
	}
}

// guarded reads `@p op ...`, `@!p op ...` or an @@DWARF line.
func (p *parser) guarded() {
	pos := p.pos()
	p.next()
	if p.tok == '@' && p.start == p.prevEnd {
		p.push(p.dwarf(pos))
		return
	}
	not := p.accept('!')
	pred := p.plainName("a predicate register")
	if p.tok != tokIdent {
		p.unexpected("an instruction")
		return
	}
	start, end, dot := p.start, p.end, p.dot
	p.next()
	p.inst(pos, start, end, dot, pred, not)
}

// inst reads the modifiers and operands of the opcode src[start:end], which the lexer has consumed.
func (p *parser) inst(pos Pos, start, end, dot int, pred string, not bool) {
	if c := p.src[start]; c == '%' || c == '$' {
		if p.tok != tokBad {
			p.fail(pos, "expected an instruction, found %q", p.src[start:end])
		}
		return
	}
	in := p.insts.new()
	in.Pos, in.Pred, in.PredNot = pos, pred, not
	if dot != 0 {
		in.Op, in.Mods = p.src[start:dot], p.src[dot:end]
	} else {
		in.Op = p.src[start:end]
	}
	if p.tok == '[' && p.start == end && strings.HasSuffix(in.Mods, ".const") {
		in.Mods = p.constBank(dot)
	}
	if p.tok == tokDir && p.line == p.prevLine {
		in.Mods = p.moreMods(in.Mods)
	}
	switch p.tok {
	case ';':
		p.next()
		p.push(in)
		return
	case '}', '@', tokDir:
		p.semicolon("instruction " + in.Op)
		p.push(in)
		return
	}
	p.inCall = in.Op == "call"
	in.Operands = p.instOperands()
	p.inCall = false
	if p.tok == ';' {
		p.next()
	} else {
		p.semicolon("instruction " + in.Op)
	}
	p.push(in)
}

// constBank continues to read modifiers, which begin at from, at a bank of constant memory: `ld.const[3].u32`.
func (p *parser) constBank(from int) string {
	p.next()
	p.small("a bank of constant memory")
	p.expect(']')
	for p.tok == tokDir && p.start == p.prevEnd {
		p.next()
	}
	return p.src[from:p.prevEnd]
}

// moreMods reads modifiers separated from the opcode: `ld.global .u32`.
func (p *parser) moreMods(mods string) string {
	b := []byte(mods)
	for p.tok == tokDir && p.line == p.prevLine {
		b = append(b, p.text()...)
		p.next()
	}
	return string(b)
}

// label reads the text after `name` and a colon.
func (p *parser) label(pos Pos, name string) {
	p.next()
	if p.tok == tokDir {
		switch p.dirName() {
		case "callprototype":
			p.prototype(pos, name)
			return
		case "branchtargets", "calltargets":
			p.targetList(pos, name)
			return
		}
	}
	l := p.labels.new()
	l.Pos, l.Name = pos, name
	p.push(l)
}

func (p *parser) prototype(pos Pos, name string) {
	t := &Prototype{Pos: pos, Name: name}
	p.next()
	if p.tok == '(' {
		t.Rets = p.params()
	}
	if p.tok != tokIdent || p.text() != "_" {
		p.unexpected("'_'")
		return
	}
	p.next()
	if p.tok == '(' {
		t.Params = p.params()
	}
	t.Directives = p.directives()
	p.semicolon(".callprototype")
	p.push(t)
}

func (p *parser) targetList(pos Pos, name string) {
	t := &TargetList{Pos: pos, Name: name, Calls: p.dirName() == "calltargets"}
	what := "a label"
	if t.Calls {
		what = "a function"
	}
	p.next()
	for {
		name := p.plainName(what)
		if p.tok == '<' {
			t.Targets = p.targetRange(t.Targets, name)
		} else {
			t.Targets = append(t.Targets, name)
		}
		if !p.accept(',') {
			break
		}
	}
	if t.Calls {
		p.semicolon(".calltargets")
	} else {
		p.semicolon(".branchtargets")
	}
	p.push(t)
}

// maxRanged is how many targets the ranges of a module may name together: a range of a few bytes stands for many names.
const maxRanged = 1 << 16

// targetRange reads the `<n>` of `name<n>`, which is name0 to the one before namen.
func (p *parser) targetRange(targets []string, name string) []string {
	p.next()
	pos := p.pos()
	n := p.inBounds("a number of targets")
	if p.tok != tokBad && n > int64(maxRanged-p.ranged) {
		p.fail(pos, "%d targets are too many", n)
	}
	p.expect('>')
	if p.tok == tokBad {
		return targets
	}
	p.ranged += int(n)
	for i := range n {
		targets = append(targets, name+strconv.FormatInt(i, 10))
	}
	return targets
}

// bodyDirective reads a statement that begins with a directive.
func (p *parser) bodyDirective() {
	switch name := p.dirName(); name {
	case "reg", "param", "local", "shared", "global", "const", "tex", "surf", "sreg":
		v := p.variable(p.pos(), 0)
		p.semicolon("declaration")
		p.push(v)
	case "loc", "loc_intermediate":
		// LLVM writes a .loc for each instruction and label of a block of inline assembly, and adds to its line the
		// number of preceding lines of the assembly text, as if the source had them too.
		within, before := p.asm, p.line-p.asmLine-1
		if within == asmBegun {
			p.asm = asmLocated
		}
		l := p.loc()
		if within == asmBegun && before < l.Line {
			l.Line -= before
		}
		if within != asmLocated {
			p.push(l)
		}
	case "pragma":
		p.push(p.pragma())
	case "section":
		p.push(p.section())
	case "file":
		p.push(p.file())
	case "extern", "visible", "weak", "common":
		m := p.mark()
		pos := p.pos()
		linkage := p.linkage()
		if p.isDir("entry") || p.isDir("func") {
			p.rewind(m)
			p.missingBrace()
			return
		}
		v := p.variable(pos, linkage)
		p.semicolon("declaration")
		p.push(v)
	case "entry", "func", "version", "target", "address_size", "alias":
		p.missingBrace()
	case "callprototype", "branchtargets", "calltargets":
		p.fail(p.pos(), ".%s needs a label", name)
	default:
		p.fail(p.pos(), "unknown directive .%s", name)
	}
}

// missingBrace reports a module-level directive in a body, once, and ends all open blocks.
func (p *parser) missingBrace() {
	p.report(p.pos(), "missing '}' before .%s", p.dirName())
	p.unclosed = true
}

// loc reads .loc and .loc_intermediate.
func (p *parser) loc() *Loc {
	l := p.locs.new()
	l.Pos = p.pos()
	l.Intermediate = p.dirName() == "loc_intermediate"
	p.next()
	l.File = p.small("file index")
	l.Line = p.small("line")
	l.Column = p.small("column")
	for p.tok == ',' {
		p.next()
		switch {
		case p.tok == tokIdent && p.text() == "function_name" && l.FunctionName == "":
			p.next()
			l.FunctionName = p.sectionName("a label")
			if p.tok == '+' || p.tok == '-' {
				l.FunctionOff = p.integer("an offset", precLowest)
			}
		case p.tok == tokIdent && p.text() == "inlined_at" && !l.Inlined:
			p.next()
			l.Inlined = true
			l.AtFile = p.small("file index")
			l.AtLine = p.small("line")
			l.AtColumn = p.small("column")
		default:
			p.unexpected("function_name or inlined_at")
		}
	}
	return l
}
