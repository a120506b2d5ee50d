package ptx

import "strings"

// rewind returns to a mark and reads the token there.
func (p *parser) rewind(m mark) {
	p.tok, p.end, p.line, p.lineStart = tokEOF, m.off, m.line, m.lineStart
	p.next()
}

// syncDirective reports whether a directive begins a statement or declaration: reading resumes at one that begins a
// line after an error.
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

// resume continues after the broken statement or declaration that began at m: after its ';', at the '}' that closes
// the enclosing block, or at the next directive that begins a line. Constructs that end with their line or with a brace
// end there. It consumes at least one token. It reports whether such a '}' is next.
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

// resumeHeader continues at the body of the function whose broken header began at m, after the ';' of a declaration,
// or at the next module-level directive.
func (p *parser) resumeHeader(m mark) { p.skip(m, endHeader) }

// resumeLine continues after the line with the error in the construct that began at m: at the token of the error if it
// begins a line, at a '}' after it, or at the line's end.
func (p *parser) resumeLine(m mark) {
	at := m.move(p.src, max(p.errOff, m.off+1))
	if !p.errIllegal && at.line > m.line && strings.TrimLeft(p.src[at.lineStart:at.off], " \t\r") == "" {
		p.rewind(at)
		return
	}
	if n := strings.IndexAny(p.src[at.off:], "}\n"); n >= 0 {
		at.off += n
	} else {
		at.off = len(p.src)
	}
	p.rewind(at)
}

// ending is the end of the broken construct that skip skips.
type ending uint8

const (
	endSemicolon ending = iota
	endBrace            // the brace that closes the first one opened
	endHeader           // the brace that opens a body, or a semicolon
)

// skip continues at the given end.
func (p *parser) skip(m mark, end ending) { p.rewind(m.move(p.src, p.skipTo(m.off, end))) }

// move is the mark of a later offset.
func (m mark) move(src string, off int) mark {
	passed := src[m.off:off]
	m.line += strings.Count(passed, "\n")
	if n := strings.LastIndexByte(passed, '\n'); n >= 0 {
		m.lineStart = m.off + n + 1
	}
	m.off = off
	return m
}

// skipTo returns the offset at which reading can continue after the broken construct at from.
func (p *parser) skipTo(from int, end ending) int {
	src, i, depth := p.src, from, 0
	lineBegins := false // only blanks between the line's begin and i
	for i < len(src) {
		c := src[i]
		switch classes[c] {
		case classNewline:
			i++
			lineBegins = true
			continue
		case classSpace:
			i++
			continue
		case classSlash:
			i = skipComment(src, i)
			continue
		case classQuote:
			i = skipString(src, i)
		case classDot:
			word := i + 1
			for word < len(src) && follow[src[word]] {
				word++
			}
			if lineBegins && i >= p.errOff && i > from && syncDirective(src[i+1:word], end == endHeader) {
				return i
			}
			i = word
		default:
			i++
			switch {
			case c == ';' && i > p.errOff:
				return i
			case c == '{' && end == endHeader && i > p.errOff:
				return i - 1
			case c == '{':
				depth++
			case c == '}' && depth > 0:
				if depth--; depth == 0 && end == endBrace {
					return i
				}
			case c == '}' && i-1 > from:
				return i - 1
			}
		}
		lineBegins = false
	}
	return i
}

// skipComment returns the offset after the comment at i, or after the slash if there is none.
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

// skipString returns the offset after the string at i, which may be unterminated.
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
