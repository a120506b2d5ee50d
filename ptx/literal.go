package ptx

import (
	"errors"
	"math"
	"strconv"
)

// LiteralKind is the kind of the bits of a literal.
type LiteralKind uint8

// The literal kinds (PTX ISA 4.5, "Constants").
const (
	LiteralSigned   LiteralKind = iota // .s64
	LiteralUnsigned                    // .u64: suffix U, or too large for .s64
	LiteralSingle                      // 0f3F800000: .f32 bits
	LiteralDouble                      // 0d3FF0000000000000 or 1.0: .f64 bits
)

// Literal is the value of a number in PTX.
type Literal struct {
	Kind LiteralKind
	Bits uint64
}

// ParseLiteral reads the text of an OperandImm: a decimal, hexadecimal, octal or binary integer with optional U, a
// decimal float, or the 0f and 0d forms; one leading '-' negates it.
func ParseLiteral(s string) (Literal, error) {
	neg := s != "" && s[0] == '-'
	if neg {
		s = s[1:]
	}
	l, msg := readLiteral(s)
	if msg != "" {
		return Literal{}, errors.New(msg)
	}
	if neg {
		l = l.negate()
	}
	return l, nil
}

func (l Literal) negate() Literal {
	switch l.Kind {
	case LiteralSingle:
		l.Bits ^= 1 << 31
	case LiteralDouble:
		l.Bits ^= 1 << 63
	default:
		l.Bits = -l.Bits
	}
	return l
}

// double is the value as a .f64, the type of floating-point constant expressions.
func (l Literal) double() float64 {
	switch l.Kind {
	case LiteralSigned:
		return float64(int64(l.Bits))
	case LiteralUnsigned:
		return float64(l.Bits)
	case LiteralSingle:
		return float64(math.Float32frombits(uint32(l.Bits)))
	}
	return math.Float64frombits(l.Bits)
}

func (l Literal) isFloat() bool { return l.Kind >= LiteralSingle }

// String returns the literal in a form that ParseLiteral reads back.
func (l Literal) String() string {
	switch l.Kind {
	case LiteralSigned:
		return strconv.FormatInt(int64(l.Bits), 10)
	case LiteralUnsigned:
		return strconv.FormatUint(l.Bits, 10) + "U"
	case LiteralSingle:
		return "0f" + hexDigits(l.Bits, 8)
	}
	return "0d" + hexDigits(l.Bits, 16)
}

func hexDigits(v uint64, n int) string {
	b := make([]byte, n)
	for i := n - 1; i >= 0; i-- {
		b[i] = "0123456789ABCDEF"[v&15]
		v >>= 4
	}
	return string(b)
}

// checkNumber describes an error in the number token s, "" if there is none.
func checkNumber(s string, kind token) string {
	if kind == tokInt && len(s) < 19 && s[0] != '0' {
		// The common case: a short decimal integer.
		for i := 0; i < len(s); i++ {
			if s[i]-'0' > 9 {
				_, msg := readLiteral(s)
				return msg
			}
		}
		return ""
	}
	_, msg := readLiteral(s)
	return msg
}

// readLiteral reads an unsigned number. msg describes an error in it.
func readLiteral(s string) (l Literal, msg string) {
	if s == "" || s[0] != '.' && s[0]-'0' > 9 {
		return l, "not a number: " + strconv.Quote(s)
	}
	if len(s) >= 2 && s[0] == '0' {
		switch s[1] {
		case 'f', 'F':
			return readBits(s, 8, LiteralSingle)
		case 'd', 'D':
			return readBits(s, 16, LiteralDouble)
		}
	}
	digits, base := s, uint64(10)
	if s[0] == '0' && len(s) > 1 {
		switch s[1] {
		case 'x', 'X':
			digits, base = s[2:], 16
		case 'b', 'B':
			digits, base = s[2:], 2
		default:
			digits, base = s[1:], 8
		}
	}
	if base != 16 && base != 2 && isDecimalFloat(s) {
		return readFloat(s)
	}
	l.Kind = LiteralSigned
	if n := len(digits); n > 0 && digits[n-1]|0x20 == 'u' {
		digits, l.Kind = digits[:n-1], LiteralUnsigned
	}
	if digits == "" {
		if base == 8 { // "0U"
			return l, ""
		}
		return l, "number has no digits: " + strconv.Quote(s)
	}
	return readInt(l, s, digits, base)
}

func readInt(l Literal, s, digits string, base uint64) (Literal, string) {
	for i := 0; i < len(digits); i++ {
		d := hexValue(digits[i])
		if d >= base {
			return l, "malformed number " + strconv.Quote(s)
		}
		if l.Bits > (math.MaxUint64-d)/base {
			return l, "integer " + s + " does not fit 64 bits"
		}
		l.Bits = l.Bits*base + d
	}
	if l.Bits > math.MaxInt64 {
		l.Kind = LiteralUnsigned
	}
	return l, ""
}

// readBits reads the 0f and 0d forms: exactly n hexadecimal digits.
func readBits(s string, n int, kind LiteralKind) (l Literal, msg string) {
	l.Kind = kind
	if len(s) != n+2 {
		return l, "malformed number " + strconv.Quote(s) + ": " + s[:2] + " takes exactly " + strconv.Itoa(n) + " hexadecimal digits"
	}
	for i := 2; i < len(s); i++ {
		d := hexValue(s[i])
		if d > 15 {
			return l, "malformed number " + strconv.Quote(s)
		}
		l.Bits = l.Bits<<4 | d
	}
	return l, ""
}

func isDecimalFloat(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '.' || c|0x20 == 'e' {
			return true
		}
	}
	return false
}

func readFloat(s string) (Literal, string) {
	for i := 0; i < len(s); i++ {
		// strconv accepts more spellings (underscores, hexadecimal floats) than PTX.
		if c := s[i]; c-'0' > 9 && c != '.' && c|0x20 != 'e' && c != '+' && c != '-' {
			return Literal{}, "malformed number " + strconv.Quote(s)
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return Literal{}, "malformed number " + strconv.Quote(s)
	}
	return Literal{LiteralDouble, math.Float64bits(v)}, ""
}

// hexValue is the value of a hexadecimal digit, 99 for anything else.
func hexValue(c byte) uint64 {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return uint64(c|0x20-'a') + 10
	}
	return 99
}
