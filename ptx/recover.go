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
		"global", "const", "alias", "section", "file":
		return true
	case "reg", "param", "local", "shared", "loc", "loc_intermediate", "pragma":
		return !header
	}
	return false
}

// resume goes on behind the statement or declaration that began at m and is broken: behind its ';', at the '}' that
// closes the block around it, or at the next directive that begins a line. It always passes at least one token.
func (p *parser) resume(m mark) { p.skip(m, false) }

// resumeHeader goes on at the body of the function whose header, begun at m, is broken, behind the ';' of a
// declaration, or at the next module-level directive.
func (p *parser) resumeHeader(m mark) { p.skip(m, true) }

func (p *parser) skip(m mark, header bool) {
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
			end := skipComment(src, i)
			if n := strings.Count(src[i:end], "\n"); n > 0 {
				line += n
				lineStart = i + strings.LastIndexByte(src[i:end], '\n') + 1
			}
			i = end
			continue
		case classQuote:
			i = skipString(src, i)
		case classDot:
			end := i + 1
			for end < len(src) && follow[src[end]] {
				end++
			}
			if lineBegins && i >= p.errOff && i > m.off && syncDirective(src[i+1:end], header) {
				done(i)
				return
			}
			i = end
		default:
			i++
			switch {
			case c == ';':
				done(i)
				return
			case c == '{' && header:
				done(i - 1)
				return
			case c == '{':
				depth++
			case c == '}' && depth > 0:
				depth--
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
