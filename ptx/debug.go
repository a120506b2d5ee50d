package ptx

import "strings"

// section reads `.section name { lines }`.
func (p *parser) section() *Section {
	s := &Section{Pos: p.pos()}
	p.next()
	s.Name = p.sectionName("a section name")
	if p.tok != '{' {
		p.unexpected("'{'")
		return s
	}
	p.inSection = true
	p.next()
	for p.tok != '}' && p.tok != tokEOF {
		m := p.mark()
		line := p.sectionLine()
		if p.tok == tokBad {
			p.resumeLine(m)
			continue
		}
		s.Lines = append(s.Lines, line)
	}
	p.inSection = false
	p.expect('}')
	return s
}

// sectionName reads a name that may begin with and contain dots: .debug_str, .nv.info, or a label.
func (p *parser) sectionName(what string) string {
	if p.tok != tokDir && p.tok != tokIdent {
		p.unexpected(what)
		return ""
	}
	start, end := p.start, p.end
	p.next()
	for p.tok == tokDir && p.start == end {
		end = p.end
		p.next()
	}
	return p.src[start:end]
}

func (p *parser) sectionLine() SectionLine {
	l := SectionLine{Pos: p.pos()}
	if p.tok == tokIdent {
		l.Label = p.plainName("a label")
		p.expect(':')
		return l
	}
	if p.tok != tokDir {
		p.unexpected("a label or data")
		return l
	}
	switch l.Type = p.dirName(); l.Type {
	case "b8", "b16", "b32", "b64":
	default:
		p.unexpected(".b8, .b16, .b32 or .b64")
		return l
	}
	p.next()
	base := len(p.operandStack)
	for {
		p.operandStack = append(p.operandStack, p.sectionValue())
		if p.tok != ',' {
			break
		}
		p.next()
	}
	l.Values = p.popOperands(base)
	return l
}

// sectionValue reads a number, a label with offset, a difference of labels, or a section with offset.
func (p *parser) sectionValue() Operand {
	if p.tok == tokDir {
		o := Operand{Kind: OperandDir, Pos: p.pos()}
		o.Name = strings.TrimPrefix(p.sectionName("a section name"), ".")
		p.offset(&o)
		return o
	}
	var o Operand
	p.primary(&o)
	switch o.Kind {
	case OperandImm, OperandIdent, OperandAddrOf, OperandDiff:
	default:
		p.fail(o.Pos, "malformed debug data")
	}
	return o
}

// dwarf reads the rest of an @@DWARF line; the current token is the second '@'.
func (p *parser) dwarf(pos Pos) *Dwarf {
	p.next()
	if p.tok != tokIdent || !strings.EqualFold(p.text(), "dwarf") {
		p.unexpected("DWARF")
		return &Dwarf{Pos: pos}
	}
	rest := p.src[p.end : p.end+lineLen(p.src[p.end:])]
	p.end += len(rest)
	text, _, _ := strings.Cut(rest, "//")
	p.next()
	return &Dwarf{Pos: pos, Text: strings.TrimSpace(text)}
}
