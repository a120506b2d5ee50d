package ptx

import "strings"

// token is a kind of token; punctuation is its own byte.
type token uint8

const (
	tokEOF     token = iota
	tokBad           // after an error: sticky until the parser has recovered
	tokIllegal       // not a token: msg says why
	tokIdent         // name, or opcode with its modifiers: "add.s32", "%tid.x", "ld.shared::cta.u32"
	tokDir           // ".word"
	tokInt
	tokFloat
	tokString
	tokShl // <<
	tokShr // >>
	tokLE  // <=
	tokGE  // >=
	tokEQ  // ==
	tokNE  // !=
	tokAnd // &&
	tokOr  // ||
)

// class is the lexical class of a byte.
type class uint8

const (
	classBad class = iota
	classSpace
	classNewline
	classLetter // letter, _ $ %: can begin a name
	classDigit
	classDot
	classQuote
	classSlash
	classPunct  // single-byte token
	classDouble // < > = ! & |: may begin a two-byte token
)

// classes and follow are the tables of the lexer. follow holds the bytes that continue a name.
var (
	classes = makeClasses()
	follow  = makeFollow()
)

func makeClasses() (t [256]class) {
	for c := range 256 {
		switch b := byte(c); {
		case b == '\n':
			t[c] = classNewline
		case strings.IndexByte(" \t\r\v\f", b) >= 0:
			t[c] = classSpace
		case 'a' <= b|0x20 && b|0x20 <= 'z', b == '_', b == '$', b == '%':
			t[c] = classLetter
		case '0' <= b && b <= '9':
			t[c] = classDigit
		case b == '.':
			t[c] = classDot
		case b == '"':
			t[c] = classQuote
		case b == '/':
			t[c] = classSlash
		case strings.IndexByte("(){}[],;:@+-*?~^", b) >= 0:
			t[c] = classPunct
		case strings.IndexByte("<>=!&|", b) >= 0:
			t[c] = classDouble
		}
	}
	return t
}

func makeFollow() (t [256]bool) {
	for c := range 256 {
		b := byte(c)
		t[c] = 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9' || b == '_' || b == '$'
	}
	return t
}

// lexer reads tokens. The fields describe the current token; next moves on.
type lexer struct {
	src       string
	tok       token
	start     int // offset of the current token
	end       int // offset after it
	dot       int // of a tokIdent: offset of its first '.', 0 if it has none
	line      int // of the current token
	lineStart int // offset of that line's first byte
	prevEnd   int // end of the token before
	prevLine  int
	prevStart int    // offset of the first byte of prevLine
	msg       string // of a tokIllegal: the error
	asm       asmState
	asmLine   int // line on which its block begins
}

// asmState is the state within a block of inline assembly, which compilers mark by comments.
type asmState uint8

const (
	noAsm      asmState = iota
	asmBegun            // no .loc in it yet
	asmLocated          // a .loc was in it
)

// illegal makes the current token one that nothing accepts. The parser function that expected something else reports
// msg.
func (l *lexer) illegal(msg string) { l.tok, l.msg = tokIllegal, msg }

const unclosedComment = "comment is not closed"

// mark is a place the lexer can return to.
type mark struct{ off, line, lineStart int }

func (l *lexer) mark() mark { return mark{l.start, l.line, l.lineStart} }

// at returns the position of an offset on the current line.
func (l *lexer) at(off int) Pos { return Pos{int32(l.line), int32(off-l.lineStart) + 1} }

func (l *lexer) pos() Pos { return l.at(l.start) }

// prevPos is the place after the preceding token.
func (l *lexer) prevPos() Pos { return Pos{int32(l.prevLine), int32(l.prevEnd-l.prevStart) + 1} }

func (l *lexer) text() string { return l.src[l.start:l.end] }

// next reads one token. After an error it stays at tokBad until the parser resumes.
func (l *lexer) next() {
	if l.tok == tokBad {
		return
	}
	l.prevEnd, l.prevLine, l.prevStart = l.end, l.line, l.lineStart
	src, i := l.src, l.end
	for i < len(src) {
		c := src[i]
		switch classes[c] {
		case classSpace:
			i++
			continue
		case classNewline:
			i++
			l.line++
			l.lineStart = i
			continue
		case classSlash:
			end, ok := l.comment(i)
			if ok {
				i = end
				continue
			}
			l.single(i)
			if end > i {
				l.end = end
				l.illegal(unclosedComment)
			}
		case classLetter:
			l.name(i)
		case classDigit:
			l.number(i)
		case classDot:
			l.directive(i)
		case classPunct:
			l.single(i)
		case classDouble:
			l.double(i)
		case classQuote:
			l.string(i)
		default:
			if c == '#' && l.lineMarker(i) {
				i += lineLen(src[i:])
				continue
			}
			l.start, l.end = i, i+1
			l.illegal("illegal character " + quoteByte(src[i:]))
		}
		return
	}
	l.tok, l.start, l.end = tokEOF, i, i
}

func (l *lexer) single(i int) {
	l.tok, l.start, l.end = token(l.src[i]), i, i+1
}

func (l *lexer) double(i int) {
	l.single(i)
	if i+1 >= len(l.src) {
		return
	}
	if t := twoByte(l.src[i], l.src[i+1]); t != tokEOF {
		l.tok, l.end = t, i+2
	}
}

func twoByte(a, b byte) token {
	switch {
	case a == '<' && b == '<':
		return tokShl
	case a == '>' && b == '>':
		return tokShr
	case a == '<' && b == '=':
		return tokLE
	case a == '>' && b == '=':
		return tokGE
	case a == '=' && b == '=':
		return tokEQ
	case a == '!' && b == '=':
		return tokNE
	case a == '&' && b == '&':
		return tokAnd
	case a == '|' && b == '|':
		return tokOr
	}
	return tokEOF
}

// name reads a name with all its parts that follow a '.' or '::'.
func (l *lexer) name(i int) {
	src := l.src
	l.tok, l.start, l.dot = tokIdent, i, 0
	i++
	for i < len(src) {
		c := src[i]
		if follow[c] {
			i++
			continue
		}
		if c == '.' {
			if i+1 >= len(src) || !follow[src[i+1]] {
				break
			}
			if l.dot == 0 {
				l.dot = i
			}
			i += 2
			continue
		}
		if c == ':' && l.dot > 0 && ratio(src, i) { // sp::2:4
			i += 2
			continue
		}
		if c != ':' || i+2 >= len(src) || src[i+1] != ':' || !follow[src[i+2]] {
			break
		}
		i += 3
	}
	l.end = i
	if i == l.start+1 && src[l.start] == '%' {
		l.tok = '%'
	}
}

// ratio reports whether the colon at i, which is not the first byte, is between two numbers of which the first follows
// a "::".
func ratio(src string, i int) bool {
	j := i
	for classes[src[j-1]] == classDigit {
		j--
	}
	return j < i && i+1 < len(src) && classes[src[i+1]] == classDigit && strings.HasSuffix(src[:j], "::")
}

func (l *lexer) directive(i int) {
	src := l.src
	if i+1 < len(src) && classes[src[i+1]] == classDigit {
		l.number(i)
		return
	}
	l.tok, l.start = tokDir, i
	i++
	for i < len(src) && (follow[src[i]] || src[i] == ':' && i+2 < len(src) && src[i+1] == ':' && follow[src[i+2]]) {
		if src[i] == ':' {
			i += 2
		}
		i++
	}
	l.end = i
	if i == l.start+1 {
		l.illegal("'.' begins no directive")
	}
}

// number reads an integer or a float. Its contents are checked when the value is needed, so that the common path reads
// each byte once; here only the extent is determined.
func (l *lexer) number(i int) {
	src := l.src
	l.start = i
	kind := tokInt
	if src[i] == '0' && i+1 < len(src) {
		switch src[i+1] | 0x20 {
		case 'f', 'd':
			kind = tokFloat
		case 'x', 'b':
			i++
		}
	}
	hex := i > l.start || kind == tokFloat
	for i < len(src) {
		c := src[i]
		switch {
		case follow[c]:
			if (c == 'e' || c == 'E') && !hex {
				kind = tokFloat
				if i+1 < len(src) && (src[i+1] == '+' || src[i+1] == '-') {
					i++
				}
			}
		case c == '.' && !hex && (i+1 >= len(src) || classes[src[i+1]] != classLetter || src[i+1]|0x20 == 'e'):
			kind = tokFloat
		default:
			l.finishNumber(i, kind)
			return
		}
		i++
	}
	l.finishNumber(i, kind)
}

func (l *lexer) finishNumber(end int, kind token) {
	l.end, l.tok = end, kind
	if msg := checkNumber(l.src[l.start:end], kind); msg != "" {
		l.illegal(msg)
	}
}

func (l *lexer) string(i int) {
	src := l.src
	l.tok, l.start = tokString, i
	for i++; i < len(src) && src[i] != '\n'; i++ {
		switch src[i] {
		case '\\':
			if i+1 < len(src) && src[i+1] != '\n' {
				i++
			}
		case '"':
			l.end = i + 1
			return
		}
	}
	l.end = i
	l.illegal("string is not closed on its line")
}

// comment returns the offset after the comment at i. ok is false if there is none (end is i), or if it is not closed.
func (l *lexer) comment(i int) (end int, ok bool) {
	switch end = skipComment(l.src, i); {
	case end == i+1:
		return i, false
	case l.src[i+1] == '/':
		switch strings.TrimRight(l.src[i+2:end], " \r\n") {
		case " begin inline asm":
			l.asm, l.asmLine = asmBegun, l.line
		case " end inline asm":
			l.asm = noAsm
		}
		return end, true
	case end < i+4 || l.src[end-2:end] != "*/":
		return end, false
	}
	l.newlines(i, end)
	return end, true
}

// newlines counts the lines of src[from:to].
func (l *lexer) newlines(from, to int) {
	for s := l.src[from:to]; ; {
		n := strings.IndexByte(s, '\n')
		if n < 0 {
			return
		}
		l.line++
		s = s[n+1:]
		l.lineStart = to - len(s)
	}
}

// lineMarker reports whether the '#' at i begins a line from a preprocessor: `# 1 "file"` or `#line 1`.
func (l *lexer) lineMarker(i int) bool {
	if strings.TrimLeft(l.src[l.lineStart:i], " \t") != "" {
		return false
	}
	rest := strings.TrimLeft(strings.TrimPrefix(l.src[i+1:], "line"), " \t")
	return rest != "" && classes[rest[0]] == classDigit
}

// lineLen is the length of the first line of s, without its newline.
func lineLen(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}
