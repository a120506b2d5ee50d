package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of blocks, operands, initialisers and expressions, so that hostile input cannot exhaust
// the stack. Real code nests less than ten levels.
const maxDepth = 500

// parser builds the tree. A syntax error sets the lexer to tokBad, at which every loop ends, so that the rest of the
// broken construct produces no further messages. The loops over statements and declarations call resume.
type parser struct {
	lexer
	mod    *Module
	errs   ErrorList
	errOff int // offset of the token at which the last error stopped the parser
	depth  int
	// eofTold says that the unexpected end of the text has been reported, once.
	eofTold    bool
	errIllegal bool // the token at errOff was illegal
	versioned  bool // a .version directive was read
	unclosed   bool // a '}' is missing: all open blocks end
	inCall     bool // in the operands of a call, where parentheses make lists
	inSection  bool // in a debug section, where labels are subtracted
	ranged     int  // the targets that ranges have named: see maxRanged
	nodes
}

// Parse reads a PTX module. name is the name of the file in messages. The error, if any, is an ErrorList of all errors
// in the text, by place; the module then contains what could be parsed. NUL bytes at the end, as in the PTX of fat
// binaries, and a byte order mark are ignored.
func Parse(name, src string) (*Module, error) {
	p := &parser{mod: &Module{Name: name}}
	p.line = 1
	if len(src) >= math.MaxInt32 {
		p.fail(Pos{1, 1}, "file is larger than 2 GiB")
		return p.mod, p.errs
	}
	src = strings.TrimRight(src, "\x00")
	p.src = src
	p.end = len(src) - len(strings.TrimPrefix(src, "\uFEFF"))
	p.next()
	p.module()
	p.errs.Sort()
	return p.mod, p.errs.Err()
}

// fail records an error and stops the construct being parsed. Only the first error of a construct counts.
func (p *parser) fail(pos Pos, format string, args ...any) {
	if p.tok == tokBad {
		return
	}
	p.errIllegal = p.tok == tokIllegal
	p.tok, p.errOff = tokBad, p.start
	p.report(pos, format, args...)
}

// report records an error without stopping.
func (p *parser) report(pos Pos, format string, args ...any) {
	e := &Error{File: p.mod.Name, Pos: pos, Msg: fmt.Sprintf(format, args...)}
	if n := len(p.errs); n > 0 && p.errs[n-1].Pos == e.Pos && p.errs[n-1].Msg == e.Msg {
		return // two consecutive constructs broken by the same token
	}
	p.errs = append(p.errs, e)
}

// unexpected fails at the current token and reports what was expected and what was found.
func (p *parser) unexpected(want string) {
	if p.tok == tokEOF {
		if !p.eofTold {
			p.eofTold = true
			p.fail(p.prevPos(), "unexpected end of file, expected %s", want)
		}
		p.tok, p.errOff, p.errIllegal = tokBad, p.start, false
		return
	}
	if p.tok == tokIllegal {
		p.eofTold = p.eofTold || p.msg == unclosedComment
		p.fail(p.pos(), "%s", p.msg)
		return
	}
	p.fail(p.pos(), "expected %s, found %s", want, p.found())
}

// found names the current token in messages.
func (p *parser) found() string {
	switch p.tok {
	case tokEOF:
		return "end of file"
	case tokString:
		return "a string"
	}
	s := p.text()
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return strconv.Quote(s)
}

// quoteByte names the first character of s.
func quoteByte(s string) string {
	if r, n := utf8.DecodeRuneInString(s); n > 1 || r < utf8.RuneSelf {
		return strconv.QuoteRune(r)
	}
	return fmt.Sprintf("0x%02X", s[0])
}

// expect consumes a punctuation token, or fails.
func (p *parser) expect(t token) {
	if p.tok != t {
		p.unexpected("'" + string(rune(t)) + "'")
		return
	}
	p.next()
}

// accept consumes the token if it is next.
func (p *parser) accept(t token) bool {
	if p.tok != t {
		return false
	}
	p.next()
	return true
}

// semicolon ends a statement. One that is missing at the end of a line is reported there, and the next line is read as
// the next statement.
func (p *parser) semicolon(after string) {
	if p.tok == ';' {
		p.next()
		return
	}
	if p.tok == tokBad {
		return
	}
	if p.line > p.prevLine && (p.tok == tokIdent || p.tok == tokDir || p.tok == '}' || p.tok == '@') {
		p.report(p.prevPos(), "missing ';' after %s", after)
		return
	}
	p.unexpected("';' after " + after)
}

// enter counts a level of nesting. It reports an error and returns false if there are too many.
func (p *parser) enter() bool {
	p.depth++
	if p.depth > maxDepth {
		p.depth--
		p.fail(p.pos(), "nested more than %d deep", maxDepth)
		return false
	}
	return true
}

func (p *parser) leave() { p.depth-- }

// isDir reports whether the current token is the directive name.
func (p *parser) isDir(name string) bool {
	return p.tok == tokDir && p.src[p.start+1:p.end] == name
}

// dirName is the current directive without its dot.
func (p *parser) dirName() string { return p.src[p.start+1 : p.end] }

// plainName reads a name that has no parts.
func (p *parser) plainName(what string) string {
	if p.tok != tokIdent {
		p.unexpected(what)
		return ""
	}
	if p.dot != 0 || strings.IndexByte(p.text(), ':') >= 0 {
		p.fail(p.pos(), "malformed name %s", p.found())
		return ""
	}
	s := p.text()
	p.next()
	return s
}

// integer reads an integer constant expression whose operators bind more tightly than prec.
func (p *parser) integer(what string, prec int) int64 {
	return int64(p.integerLiteral(what, prec).Bits)
}

func (p *parser) integerLiteral(what string, prec int) Literal {
	switch p.tok {
	case tokInt, '-', '+', '(', '~', tokIdent:
	default:
		p.unexpected(what)
		return Literal{}
	}
	pos := p.pos()
	l, ok := p.constant(prec)
	if ok && l.isFloat() {
		p.fail(pos, "expected %s, found a floating-point number", what)
	}
	return l
}

// small reads a plain non-negative integer that fits an int32: an index, a line, a count.
func (p *parser) small(what string) int {
	if p.tok != tokInt {
		p.unexpected(what)
		return 0
	}
	l, _ := readLiteral(p.text())
	if l.Bits > math.MaxInt32 {
		p.fail(p.pos(), "%s %s is out of range", what, p.text())
		return 0
	}
	p.next()
	return int(l.Bits)
}

// alignment reads the number of .align.
func (p *parser) alignment() int {
	pos := p.pos()
	n := p.small("an alignment")
	if p.tok != tokBad && n&(n-1) != 0 {
		p.fail(pos, "the alignment %d is no power of two", n)
	}
	return n
}

// inBounds reads a constant expression between brackets: a count of registers or an array dimension.
func (p *parser) inBounds(what string) int64 {
	pos := p.pos()
	// Tighter than comparisons, because '>' ends `<n>`.
	l := p.integerLiteral(what, precCompare)
	v := int64(l.Bits)
	switch {
	case p.tok == tokBad || v >= 0:
	case l.Kind == LiteralUnsigned:
		p.fail(pos, "%s %d is too large", what, l.Bits)
	default:
		p.fail(pos, "%s %d is negative", what, v)
	}
	return v
}
