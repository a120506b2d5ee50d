package ptx

import (
	"math"
	"strconv"
)

// Operator precedences of constant expressions (PTX ISA 4.6, "Constant Expressions"), loosest first.
const (
	precLowest = iota
	precTernary
	precOrOr
	precAndAnd
	precOr
	precXor
	precAnd
	precEqual
	precCompare
	precShift
	precAdd
	precMul
)

// binaryPrec returns the precedence of a binary operator, precLowest for any other token.
func binaryPrec(t token) int {
	switch t {
	case '?':
		return precTernary
	case tokOr:
		return precOrOr
	case tokAnd:
		return precAndAnd
	case '|':
		return precOr
	case '^':
		return precXor
	case '&':
		return precAnd
	case tokEQ, tokNE:
		return precEqual
	case '<', '>', tokLE, tokGE:
		return precCompare
	case tokShl, tokShr:
		return precShift
	case '+', '-':
		return precAdd
	case '*', '/', '%':
		return precMul
	}
	return precLowest
}

// constant reads a constant expression whose operators bind more tightly than prec and returns its value.
func (p *parser) constant(prec int) (Literal, bool) {
	l, ok := p.unary()
	if !ok {
		return l, false
	}
	return p.binary(l, prec)
}

// binary reads the operators that follow the constant left and bind more tightly than prec.
func (p *parser) binary(left Literal, prec int) (Literal, bool) {
	for {
		p.splitModulo()
		op, opPrec := p.tok, binaryPrec(p.tok)
		if opPrec <= prec {
			return left, p.tok != tokBad
		}
		pos := p.pos()
		p.next()
		if op == '?' {
			return p.ternary(left, pos)
		}
		right, ok := p.constant(opPrec)
		if !ok {
			return right, false
		}
		var msg string
		if left, msg = fold(op, left, right); msg != "" {
			p.fail(pos, "%s", msg)
			return left, false
		}
	}
}

// splitModulo splits `%3` after a constant into an operator and a number: the lexer reads it as a register name.
func (p *parser) splitModulo() {
	if p.tok == tokIdent && p.src[p.start] == '%' && classes[p.src[p.start+1]] == classDigit {
		p.tok, p.end = '%', p.start+1
	}
}

func (p *parser) ternary(cond Literal, pos Pos) (Literal, bool) {
	if !p.enter() {
		return cond, false
	}
	defer p.leave()
	a, ok := p.constant(precLowest)
	if !ok {
		return a, false
	}
	p.expect(':')
	b, ok := p.constant(precLowest)
	if !ok {
		return b, false
	}
	if cond.isFloat() {
		p.fail(pos, "condition of '?' is a floating-point number")
		return a, false
	}
	if cond.Bits != 0 {
		return a, true
	}
	return b, true
}

// unary reads a literal with its unary operators, a cast, or a parenthesised expression.
func (p *parser) unary() (l Literal, ok bool) {
	if !p.enter() {
		return l, false
	}
	defer p.leave()
	pos, op := p.pos(), p.tok
	switch op {
	case tokInt, tokFloat:
		l, _ = readLiteral(p.text())
		p.next()
		return l, p.tok != tokBad
	case tokIdent:
		if p.isWarpSize() {
			p.next()
			return Literal{LiteralSigned, warpSize}, p.tok != tokBad
		}
	case '(':
		return p.parenthesis()
	case '-', '+', '~', '!':
		p.next()
		if l, ok = p.unary(); !ok {
			return l, false
		}
		if l.isFloat() && (op == '~' || op == '!') {
			p.fail(pos, "operator '%c' takes no floating-point number", rune(op))
			return l, false
		}
		return foldUnary(op, l), true
	}
	p.unexpected("a constant")
	return l, false
}

// warpSize is the value of WARP_SZ on all existing targets.
const warpSize = 32

// isWarpSize says that the current token is WARP_SZ, a constant.
func (p *parser) isWarpSize() bool { return p.tok == tokIdent && p.text() == "WARP_SZ" }

func (p *parser) parenthesis() (l Literal, ok bool) {
	p.next()
	if p.isDir("s64") || p.isDir("u64") {
		kind := LiteralSigned
		if p.dirName() == "u64" {
			kind = LiteralUnsigned
		}
		p.next()
		p.expect(')')
		if l, ok = p.unary(); !ok {
			return l, false
		}
		return cast(l, kind), true
	}
	if l, ok = p.constant(precLowest); !ok {
		return l, false
	}
	p.expect(')')
	return l, p.tok != tokBad
}

func cast(l Literal, kind LiteralKind) Literal {
	if l.isFloat() {
		f := l.double()
		if kind == LiteralUnsigned && f >= 1<<63 && f < 1<<64 {
			l.Bits = uint64(f-1<<63) + 1<<63
		} else if f > -1<<63 && f < 1<<63 {
			l.Bits = uint64(int64(f))
		} else {
			l.Bits = 0
		}
	}
	l.Kind = kind
	return l
}

func foldUnary(op token, l Literal) Literal {
	switch op {
	case '-':
		return l.negate()
	case '~':
		l.Kind, l.Bits = LiteralUnsigned, ^l.Bits
	case '!':
		return truth(l.Bits == 0)
	}
	return l
}

func truth(b bool) Literal {
	if b {
		return Literal{LiteralSigned, 1}
	}
	return Literal{LiteralSigned, 0}
}

// usual converts two operands to one type: .f64 if either is a float, else .u64 if either is unsigned.
func usual(a, b Literal) (Literal, Literal) {
	switch {
	case a.isFloat() || b.isFloat():
		if a.Kind == b.Kind {
			return a, b
		}
		return floatLiteral(a.double()), floatLiteral(b.double())
	case a.Kind == LiteralUnsigned || b.Kind == LiteralUnsigned:
		a.Kind, b.Kind = LiteralUnsigned, LiteralUnsigned
	}
	return a, b
}

func floatLiteral(f float64) Literal { return Literal{LiteralDouble, math.Float64bits(f)} }

// fold evaluates a binary operator. msg describes an error.
func fold(op token, a, b Literal) (l Literal, msg string) {
	if op == tokShl || op == tokShr {
		if a.isFloat() || b.isFloat() {
			return a, "shift of a floating-point number"
		}
		return shift(op, a, b.Bits), ""
	}
	a, b = usual(a, b)
	if a.isFloat() {
		return foldFloat(op, a.double(), b.double())
	}
	switch op {
	case '+':
		a.Bits += b.Bits
	case '-':
		a.Bits -= b.Bits
	case '*':
		a.Bits *= b.Bits
	case '/', '%':
		return divide(op, a, b)
	case '&':
		a.Bits &= b.Bits
	case '|':
		a.Bits |= b.Bits
	case '^':
		a.Bits ^= b.Bits
	case tokAnd:
		return truth(a.Bits != 0 && b.Bits != 0), ""
	case tokOr:
		return truth(a.Bits != 0 || b.Bits != 0), ""
	default:
		if a.Kind == LiteralUnsigned {
			return compare(op, a.Bits, b.Bits), ""
		}
		return compare(op, int64(a.Bits), int64(b.Bits)), ""
	}
	return a, ""
}

// shift shifts by the low six bits of n, as ptxas does.
func shift(op token, a Literal, n uint64) Literal {
	n &= 63
	switch {
	case op == tokShl:
		a.Bits <<= n
	case a.Kind == LiteralUnsigned:
		a.Bits >>= n
	default:
		a.Bits = uint64(int64(a.Bits) >> n)
	}
	return a
}

// divide divides signed or unsigned numbers. The remainder is always that of unsigned numbers.
func divide(op token, a, b Literal) (Literal, string) {
	switch {
	case b.Bits == 0:
		return a, "division by zero in a constant expression"
	case op == '%':
		a.Kind, a.Bits = LiteralUnsigned, a.Bits%b.Bits
	case a.Kind == LiteralSigned:
		a.Bits = uint64(int64(a.Bits) / int64(b.Bits))
	default:
		a.Bits /= b.Bits
	}
	return a, ""
}

func foldFloat(op token, a, b float64) (Literal, string) {
	switch op {
	case '+':
		return floatLiteral(a + b), ""
	case '-':
		return floatLiteral(a - b), ""
	case '*':
		return floatLiteral(a * b), ""
	case '/':
		return floatLiteral(a / b), ""
	case tokEQ, tokNE, '<', '>', tokLE, tokGE:
		return compare(op, a, b), ""
	}
	return Literal{}, "operator takes no floating-point number"
}

func compare[T int64 | uint64 | float64](op token, a, b T) Literal {
	switch op {
	case tokEQ:
		return truth(a == b)
	case tokNE:
		return truth(a != b)
	case '<':
		return truth(a < b)
	case '>':
		return truth(a > b)
	case tokLE:
		return truth(a <= b)
	case tokGE:
		return truth(a >= b)
	}
	panic("BUG: not a comparison: " + strconv.Itoa(int(op)))
}
