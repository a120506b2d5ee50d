// Package printf formats what kernels print.
package printf

import (
	"math"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/engine/devmem"
)

// MaxString bounds a string that device code passes to the host.
const MaxString = 64 << 10

// Args reads the arguments of a device-side printf one after the other. If the buffer ends early, it gives zeros.
type Args struct {
	Peek  func(addr, n uint64) []byte
	Addr  uint64
	off   uint64
	Taken int
}

func (a *Args) next(size uint64) uint64 {
	a.off = devmem.RoundUp(a.off, size)
	data := a.Peek(a.Addr+a.off, size)
	a.off += size
	a.Taken++
	if uint64(len(data)) < size {
		return 0
	}
	return devmem.Uint(data, size)
}

// Formatter executes a C format string.
type Formatter struct {
	Format string
	Args   Args
	Text   func(addr uint64) (string, bool)
	out    []byte
}

// spec is a conversion specification: %[flags][width][.precision][length]verb.
type spec struct {
	minus, plus, space, alt, zero bool
	width                         int
	prec                          int // -1: not given
	size                          uint64
	narrow                        int // number of bits that an hh or h argument is truncated to; 0: none
	verb                          byte
}

// Run formats everything. What is not a valid conversion is copied unchanged.
func (f *Formatter) Run() []byte {
	s := f.Format
	for len(s) > 0 {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			f.out = append(f.out, s...)
			break
		}
		f.out = append(f.out, s[:i]...)
		s = s[i:]
		n := f.conversion(s)
		if n == 0 {
			f.out = append(f.out, '%')
			n = 1
		}
		s = s[n:]
	}
	return f.out
}

// conversion executes the conversion at the beginning of s and returns its length; 0 if there is none.
func (f *Formatter) conversion(s string) int {
	p := spec{prec: -1, size: 4}
	i := 1
	for ; i < len(s); i++ {
		flag := map[byte]*bool{'-': &p.minus, '+': &p.plus, ' ': &p.space, '#': &p.alt, '0': &p.zero}[s[i]]
		if flag == nil {
			break
		}
		*flag = true
	}
	var n int
	if p.width, n = f.number(s[i:]); n > 0 {
		i += n
		if p.width < 0 {
			p.minus, p.width = true, -p.width
		}
	}
	if i < len(s) && s[i] == '.' {
		i++
		p.prec, n = f.number(s[i:])
		i += n
	}
	i += p.length(s[i:])
	if i >= len(s) || !strings.ContainsRune("diouxXcspfFeEgGaAn%", rune(s[i])) {
		return 0
	}
	p.verb = s[i]
	f.convert(&p)
	return i + 1
}

// number reads a width or precision, which may be an argument.
func (f *Formatter) number(s string) (v, n int) {
	if strings.HasPrefix(s, "*") {
		return int(max(min(int32(f.Args.next(4)), MaxString), -MaxString)), 1
	}
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		v = min(v*10+int(s[n]-'0'), MaxString)
		n++
	}
	return v, n
}

// length reads a length modifier and returns its length.
func (p *spec) length(s string) int {
	for _, l := range []struct {
		text   string
		size   uint64
		narrow int
	}{{"hh", 4, 8}, {"h", 4, 16}, {"ll", 8, 0}, {"l", 8, 0}, {"z", 8, 0}, {"j", 8, 0}, {"t", 8, 0}, {"L", 8, 0}} {
		if strings.HasPrefix(s, l.text) {
			p.size, p.narrow = l.size, l.narrow
			return len(l.text)
		}
	}
	return 0
}

// convert formats one argument.
func (f *Formatter) convert(p *spec) {
	switch p.verb {
	case '%':
		f.out = append(f.out, '%')
	case 'd', 'i':
		v := f.Args.next(p.size)
		bits := 64 - int(8*p.size)
		if p.narrow != 0 {
			bits = 64 - p.narrow
		}
		n := int64(v<<bits) >> bits
		neg, abs := n < 0, uint64(n)
		if neg {
			abs = -abs
		}
		f.integer(p, p.sign(neg), strconv.FormatUint(abs, 10))
	case 'u', 'o', 'x', 'X':
		f.unsigned(p)
	case 'c':
		f.pad(p, "", string([]byte{byte(f.Args.next(4))}), false)
	case 's':
		s, ok := f.Text(f.Args.next(8))
		if !ok {
			s = "(null)"
		}
		if p.prec >= 0 && p.prec < len(s) {
			s = s[:p.prec]
		}
		f.pad(p, "", s, false)
	case 'p':
		if v := f.Args.next(8); v != 0 {
			f.pad(p, "", "0x"+strconv.FormatUint(v, 16), false)
		} else {
			f.pad(p, "", "(nil)", false)
		}
	case 'n':
		f.Args.next(8) // not supported on the device
	default:
		f.float(p, math.Float64frombits(f.Args.next(8)))
	}
}

func (f *Formatter) unsigned(p *spec) {
	v := f.Args.next(p.size)
	if p.narrow != 0 {
		v &= 1<<p.narrow - 1
	}
	prefix, base := "", 10
	switch p.verb {
	case 'o':
		base = 8
	case 'x', 'X':
		base = 16
		if p.alt && v != 0 {
			prefix = "0" + string(p.verb)
		}
	}
	digits := strconv.FormatUint(v, base)
	if p.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if p.verb == 'o' && p.alt && digits[0] != '0' && p.prec <= len(digits) {
		digits = "0" + digits
	}
	f.integer(p, prefix, digits)
}

// integer pads the digits of an integer to the precision, and the result to the width.
func (f *Formatter) integer(p *spec, prefix, digits string) {
	if octal := p.verb == 'o' && p.alt; p.prec == 0 && digits == "0" && !octal { // # requires the first digit of an octal number to be 0
		digits = ""
	}
	if n := p.prec - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	f.pad(p, prefix, digits, p.prec < 0)
}

// sign returns the sign before a number.
func (p *spec) sign(neg bool) string {
	switch {
	case neg:
		return "-"
	case p.plus:
		return "+"
	case p.space:
		return " "
	}
	return ""
}

// pad pads to the width: with zeros after the prefix if the flag is given and zeros are allowed.
func (f *Formatter) pad(p *spec, prefix, body string, zeros bool) {
	n := p.width - len(prefix) - len(body)
	switch {
	case n <= 0:
		f.out = append(append(f.out, prefix...), body...)
	case p.minus:
		f.out = append(append(append(f.out, prefix...), body...), strings.Repeat(" ", n)...)
	case p.zero && zeros:
		f.out = append(append(append(f.out, prefix...), strings.Repeat("0", n)...), body...)
	default:
		f.out = append(append(append(f.out, strings.Repeat(" ", n)...), prefix...), body...)
	}
}

func (f *Formatter) float(p *spec, v float64) {
	prefix := p.sign(math.Signbit(v))
	abs := math.Abs(v)
	upper := p.verb >= 'A' && p.verb <= 'Z'
	var body string
	switch {
	case math.IsNaN(v):
		body = "nan"
	case math.IsInf(v, 0):
		body = "inf"
	default:
		body = p.finite(abs)
	}
	if strings.HasPrefix(body, "0x") {
		prefix, body = prefix+"0x", body[2:]
	}
	if upper {
		prefix, body = strings.ToUpper(prefix), strings.ToUpper(body)
	}
	f.pad(p, prefix, body, !math.IsNaN(v) && !math.IsInf(v, 0))
}

// finite formats a finite, non-negative number.
func (p *spec) finite(v float64) string {
	prec := p.prec
	if prec < 0 && p.verb|0x20 != 'a' {
		prec = 6
	}
	switch p.verb | 0x20 {
	case 'f':
		return p.point(strconv.FormatFloat(v, 'f', prec, 64))
	case 'e':
		return p.point(strconv.FormatFloat(v, 'e', prec, 64))
	case 'a':
		s := strconv.FormatFloat(v, 'x', prec, 64)
		if i := strings.IndexByte(s, 'p'); i >= 0 && len(s) == i+4 && s[i+2] == '0' {
			s = s[:i+2] + s[i+3:] // the exponent has no leading zero in C
		}
		return s
	}
	// %g: the style depends on the exponent that %e would use.
	prec = max(prec, 1)
	s := strconv.FormatFloat(v, 'e', prec-1, 64)
	exp, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if exp >= -4 && exp < prec {
		s = strconv.FormatFloat(v, 'f', prec-1-exp, 64)
	}
	if p.alt {
		return p.point(s)
	}
	mantissa, exponent := s, ""
	if i := strings.IndexByte(s, 'e'); i >= 0 {
		mantissa, exponent = s[:i], s[i:]
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + exponent
}

// point adds the decimal point that the # flag requires.
func (p *spec) point(s string) string {
	if !p.alt || strings.Contains(s, ".") {
		return s
	}
	if i := strings.IndexByte(s, 'e'); i >= 0 {
		return s[:i] + "." + s[i:]
	}
	return s + "."
}
