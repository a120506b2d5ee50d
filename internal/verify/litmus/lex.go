package litmus

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is a mistake in a litmus file.
type Error struct {
	File      string
	Line, Col int
	Msg       string // what is wrong, and how to correct it
}

// Error returns file:line:column: message.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg) }

// pos is a place in the source: the line in the upper bits and the column in the lower ones.
type pos int32

const columnBits = 10

func at(line, col int) pos { return pos(line<<columnBits | min(col, 1<<columnBits-1)) }

// Line returns the line and column of a place of the source, the Pos of a step.
func Line(p int32) (line, col int) { return int(p >> columnBits), int(p & (1<<columnBits - 1)) }

// maxLines is the greatest number of lines of a file.
const maxLines = 1 << 20

type tokenKind uint8

const (
	eof tokenKind = iota
	word
	number
	text // a quoted string
	mark // an operator or a delimiter
)

type token struct {
	kind  tokenKind
	text  string
	value int64
	pos   pos
}

func (t token) String() string {
	if t.kind == eof {
		return "the end of the file"
	}
	return strconv.Quote(t.text)
}

// marks are the operators and delimiters, with each before its prefixes.
var marks = []string{`/\`, `\/`, "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=", "{", "}", "(", ")", "[", "]", ";", ",", "=", "<",
	">", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", ":", "@", "?", "."}

type lexer struct {
	file   string
	src    string
	at     int
	line   int
	col    int
	tokens []token
	ptx    bool // the file is in the PTX style: %r is a register, and (* *) a comment
}

func (l *lexer) fail(p pos, format string, args ...any) error {
	line, col := Line(int32(p))
	return &Error{l.file, line, col, fmt.Sprintf(format, args...)}
}

// advance steps over n bytes of one line.
func (l *lexer) advance(n int) { l.at, l.col = l.at+n, l.col+n }

// title reads the name of the test, the rest of the line after the style. It is no token because names such as 2+2W are
// not words.
func (l *lexer) title() {
	rest := l.src[l.at:]
	if n := strings.IndexAny(rest, "\n\"{"); n >= 0 {
		rest = rest[:n]
	}
	if n := strings.Index(rest, "//"); n >= 0 {
		rest = rest[:n]
	}
	name := strings.TrimSpace(rest)
	if name != "" {
		at := at(l.line, l.col+strings.Index(rest, name))
		l.tokens = append(l.tokens, token{kind: word, text: name, pos: at})
	}
	l.advance(len(rest))
}

// lex splits a file into tokens, the last of which is eof.
func lex(file, src string) ([]token, error) { return lexText(file, src, true) }

// lexText splits a text into tokens. A file begins with its style and name.
func lexText(file, src string, titled bool) ([]token, error) {
	l := &lexer{file: file, ptx: !titled, src: strings.TrimPrefix(src, "\ufeff"), line: 1, col: 1} // some editors put that mark before a text
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		l.tokens = append(l.tokens, t)
		switch {
		case t.kind == eof:
			return l.tokens, nil
		case titled && len(l.tokens) == 1:
			l.ptx = t.text == "PTX"
			l.title()
		}
	}
}

// space skips white space and comments.
func (l *lexer) space() error {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		switch {
		case rest[0] == '\n':
			l.at, l.line, l.col = l.at+1, l.line+1, 1
			if l.line > maxLines {
				return l.fail(at(maxLines, 1), "the file has more than %d lines", maxLines)
			}
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			l.advance(1)
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.advance(n)
		case strings.HasPrefix(rest, "/*") || l.ptx && strings.HasPrefix(rest, "(*"):
			begin, end := at(l.line, l.col), "*"+map[byte]string{'/': "/", '(': ")"}[rest[0]]
			n := strings.Index(rest[2:], end)
			if n < 0 {
				return l.fail(begin, "the comment is not closed; end it with %q", end)
			}
			for range n + 4 {
				if l.src[l.at] == '\n' {
					l.at, l.line, l.col = l.at+1, l.line+1, 1
				} else {
					l.advance(1)
				}
			}
		default:
			return nil
		}
	}
	return nil
}

func letter(c byte) bool { return c == '_' || c == '$' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

func (l *lexer) next() (token, error) {
	if err := l.space(); err != nil {
		return token{}, err
	}
	t := token{pos: at(l.line, l.col)}
	rest := l.src[l.at:]
	if rest == "" {
		return t, nil
	}
	n := 0
	switch {
	case letter(rest[0]) || l.ptx && rest[0] == '%' && len(rest) > 1 && letter(rest[1]):
		for n = 1; n < len(rest) && (letter(rest[n]) || digit(rest[n])); {
			n++
		}
		t.kind = word
	case digit(rest[0]):
		for n < len(rest) && (letter(rest[n]) || digit(rest[n])) {
			n++
		}
		v, err := strconv.ParseInt(rest[:n], 0, 64)
		if err != nil {
			return t, l.fail(t.pos, "%q is no number; write one of 64 bits, as in 42 or 0x2a", rest[:n])
		}
		t.kind, t.value = number, v
	case rest[0] == '"':
		n = strings.IndexAny(rest[1:], "\"\n") + 2
		if n < 2 || rest[n-1] != '"' {
			return t, l.fail(t.pos, "the quoted text does not end on its line")
		}
		t.kind = text
	default:
		for _, m := range marks {
			if strings.HasPrefix(rest, m) {
				n = len(m)
				break
			}
		}
		if n == 0 {
			r, _ := utf8.DecodeRuneInString(rest)
			return t, l.fail(t.pos, "%q has no meaning here", r)
		}
		t.kind = mark
	}
	t.text = rest[:n]
	l.advance(n)
	return t, nil
}
