package ptx

import "strings"

// rewind returns to a mark and reads the token there.
func (p *parser) rewind(m mark) {
	p.tok, p.end, p.line, p.lineStart = tokEOF, m.off, m.line, m.lineStart
	p.next()
}

// syncDirectives begin a statement or declaration: reading resumes at one that begins a line behind an error.
func syncDirective(name string, header bool) bool {
	switch name {
	case "version", "target", "address_size", "entry", "func", "extern", "visible", "weak", "common",
		"global", "const", "tex", "surf", "sreg", "alias", "section", "file":
		return true
	case "reg", "param", "local", "shared", "loc", "loc_intermediate", "pragma":
		return !header
	}
	return false
}

// resume goes on behind the statement or declaration that began at m and is broken: behind its ';', at the '}' that
// closes the block around it, or at the next directive that begins a line. What ends with its line or with a brace
// ends there. At least one token is passed. The result says that it is such a '}' that comes next.
func (p *parser) resume(m mark) (brace bool) {
	switch rest := p.src[m.off:]; {
	case startsWithWord(rest, ".loc", ".loc_intermediate", ".file", ".version", ".target", ".address_size", "@@"):
		p.resumeLine(m)
	case startsWithWord(rest, ".section"):
		p.skip(m, endBrace)
	default:
		p.skip(m, endSemicolon)
		return p.tok == '}'
	}
	return false
}

func startsWithWord(s string, words ...string) bool {
	for _, w := range words {
		if strings.HasPrefix(s, w) && (len(s) == len(w) || w == "@@" || !follow[s[len(w)]]) {
			return true
		}
	}
	return false
}

// resumeHeader goes on at the body of the function whose header, begun at m, is broken, behind the ';' of a
// declaration, or at the next module-level directive.
func (p *parser) resumeHeader(m mark) { p.skip(m, endHeader) }

// resumeLine goes on behind the line of the error in what began at m: at the token of the error if that begins a
// line of its own, at a '}' behind it, or at the line's end.
func (p *parser) resumeLine(m mark) {
	off := max(p.errOff, m.off+1)
	before := p.src[m.off:off]
	line, lineStart := m.line+strings.Count(before, "\n"), m.lineStart
	if n := strings.LastIndexByte(before, '\n'); n >= 0 {
		lineStart = m.off + n + 1
	}
	n := strings.IndexAny(p.src[off:], "}\n")
	if n < 0 {
		n = len(p.src) - off
	}
	if !p.errIllegal && line > m.line && strings.TrimLeft(p.src[lineStart:off], " \t\r") == "" {
		n = 0
	}
	p.rewind(mark{off + n, line, lineStart})
}

// ending says what ends the broken thing that skip passes.
type ending uint8

const (
	endSemicolon ending = iota
	endBrace            // the brace that closes the first one opened
	endHeader           // the brace that opens a body, or a semicolon
)

func (p *parser) skip(m mark, end ending) {
	header := end == endHeader
	src, i, depth := p.src, m.off, 0
	lineBegins := false // only blanks between the line's begin and i
	line, lineStart := m.line, m.lineStart
	done := func(off int) { p.rewind(mark{off, line, lineStart}) }
	for i < len(src) {
		c := src[i]
		switch classes[c] {
		case classNewline:
			line++
			i++
			lineStart, lineBegins = i, true
			continue
		case classSpace:
			i++
			continue
		case classSlash:
			next := skipComment(src, i)
			if n := strings.Count(src[i:next], "\n"); n > 0 {
				line += n
				lineStart = i + strings.LastIndexByte(src[i:next], '\n') + 1
			}
			i = next
			continue
		case classQuote:
			i = skipString(src, i)
		case classDot:
			word := i + 1
			for word < len(src) && follow[src[word]] {
				word++
			}
			if lineBegins && i >= p.errOff && i > m.off && syncDirective(src[i+1:word], header) {
				done(i)
				return
			}
			i = word
		default:
			i++
			switch {
			case c == ';' && i > p.errOff:
				done(i)
				return
			case c == '{' && header && i > p.errOff:
				done(i - 1)
				return
			case c == '{':
				depth++
			case c == '}' && depth > 0:
				if depth--; depth == 0 && end == endBrace {
					done(i)
					return
				}
			case c == '}' && i-1 > m.off:
				done(i - 1)
				return
			}
		}
		lineBegins = false
	}
	done(i)
}

// skipComment gives the offset behind the comment at i, or behind the slash when there is none.
func skipComment(src string, i int) int {
	switch {
	case strings.HasPrefix(src[i:], "//"):
		return i + lineLen(src[i:])
	case strings.HasPrefix(src[i:], "/*"):
		if n := strings.Index(src[i+2:], "*/"); n >= 0 {
			return i + 2 + n + 2
		}
		return len(src)
	}
	return i + 1
}

// skipString gives the offset behind the string at i, which may not be closed.
func skipString(src string, i int) int {
	for i++; i < len(src) && src[i] != '\n'; i++ {
		if src[i] == '"' {
			return i + 1
		}
		if src[i] == '\\' && i+1 < len(src) && src[i+1] != '\n' {
			i++
		}
	}
	return i
}
