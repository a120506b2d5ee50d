package ptx

// operand reads one operand of an instruction into o.
func (p *parser) operand(o *Operand) {
	p.primary(o)
	if p.tok == '|' {
		var pair [2]Operand
		pair[0] = *o
		p.next()
		p.primary(&pair[1])
		*o = Operand{Kind: OperandPair, Pos: pair[0].Pos, Args: p.operands.list(pair[:])}
	}
}

// primary reads an operand that is not a pair into o.
func (p *parser) primary(o *Operand) {
	*o = Operand{Pos: p.pos()}
	switch p.tok {
	case tokIdent:
		p.symbol(o)
	case tokInt, tokFloat:
		p.literal(o)
	case '[':
		p.address(o)
	case '{':
		o.Kind = OperandVector
		o.Args = p.operandList('}')
	case '(':
		if p.inCall {
			o.Kind = OperandList
			o.Args = p.operandList(')')
		} else {
			p.constantOperand(o)
		}
	case '-':
		p.minus(o)
	case '!':
		p.not(o)
	case '~', '+':
		p.constantOperand(o)
	case tokString:
		o.Kind, o.Name = OperandString, p.src[p.start+1:p.end-1]
		p.next()
	default:
		p.unexpected("an operand")
	}
}

// symbol reads a name and its suffix: an offset, an index, or the parenthesis of generic().
func (p *parser) symbol(o *Operand) {
	warp := p.isWarpSize()
	o.Name = p.text()
	p.next()
	if warp {
		if binaryPrec(p.tok) != precLowest {
			p.constantFrom(o, Literal{LiteralSigned, warpSize})
		}
		return
	}
	switch p.tok {
	case '+', '-':
		p.offset(o)
	case '[':
		if p.start == p.prevEnd {
			p.index(o)
		}
	case '(':
		if o.Name == "generic" {
			p.next()
			o.Kind, o.Generic = OperandAddrOf, true
			o.Name = p.plainName("a variable")
			p.expect(')')
			p.offset(o)
		}
	}
}

// offset reads any number of `+ constant` and `- constant` after a symbol. As in ptxas, everything after a '+' is one
// constant expression: `[r+1<<2]` is r plus 4.
func (p *parser) offset(o *Operand) {
	for p.tok == '+' || p.tok == '-' {
		neg := p.tok == '-'
		p.next()
		if neg && p.inSection && p.tok == tokIdent && o.Kind == OperandIdent {
			a := *o
			b := Operand{Pos: p.pos(), Name: p.text()}
			p.next()
			*o = Operand{Kind: OperandDiff, Pos: o.Pos, Args: p.operands.list([]Operand{a, b})}
			return
		}
		pos, prec := p.pos(), precLowest
		if neg {
			prec = precAdd
		}
		l, ok := p.constant(prec)
		if ok && l.isFloat() {
			p.fail(pos, "offset is a floating-point number")
		}
		if neg {
			l.Bits = -l.Bits
		}
		if o.Kind == OperandIdent {
			o.Kind = OperandAddrOf
		}
		o.HasOff = true
		o.Off += int64(l.Bits)
	}
}

// index reads `[constant]`, `[reg]` or `[reg+constant]` after an array's name.
func (p *parser) index(o *Operand) {
	if !p.enter() {
		return
	}
	defer p.leave()
	p.next()
	var arg Operand
	p.primary(&arg)
	if p.tok != tokBad && arg.Kind != OperandImm && arg.Kind != OperandIdent && arg.Kind != OperandAddrOf {
		p.fail(arg.Pos, "malformed index")
	}
	p.expect(']')
	o.Kind = OperandIndex
	o.Args = p.operands.list([]Operand{arg})
}

// literal reads a number, the constant expression it begins, or a mask.
func (p *parser) literal(o *Operand) {
	o.Kind, o.Name = OperandImm, p.text()
	p.next()
	switch p.tok {
	case ',', ';', ']', '}', ')':
	case '(':
		p.mask(o)
	default:
		p.splitModulo()
		if binaryPrec(p.tok) != precLowest {
			l, _ := ParseLiteral(o.Name)
			p.constantFrom(o, l)
		}
	}
}

// mask reads the parenthesis of `0xFF00(symbol)`.
func (p *parser) mask(o *Operand) {
	if !p.enter() {
		return
	}
	defer p.leave()
	p.next()
	var arg Operand
	p.primary(&arg)
	if p.tok != tokBad && arg.Kind != OperandIdent && arg.Kind != OperandAddrOf {
		p.fail(arg.Pos, "a mask takes the address of a variable or function")
	}
	p.expect(')')
	o.Kind = OperandMask
	o.Args = p.operands.list([]Operand{arg})
}

// constantFrom reads the rest of a constant expression that begins with l.
func (p *parser) constantFrom(o *Operand, l Literal) {
	if l, ok := p.binary(l, precLowest); ok {
		o.Kind, o.Name = OperandImm, l.String()
	}
}

func (p *parser) constantOperand(o *Operand) {
	if l, ok := p.constant(precLowest); ok {
		o.Kind, o.Name = OperandImm, l.String()
	}
}

// minus reads a negative literal, a constant expression, or a negated register.
func (p *parser) minus(o *Operand) {
	from := p.start
	p.next()
	switch p.tok {
	case tokInt, tokFloat:
		o.Kind = OperandImm
		if p.start == from+1 {
			o.Name = p.src[from:p.end]
		} else {
			o.Name = "-" + p.text()
		}
		p.next()
		p.splitModulo()
		if binaryPrec(p.tok) != precLowest {
			l, _ := ParseLiteral(o.Name)
			p.constantFrom(o, l)
		}
	default:
		if p.tok == tokIdent && !p.isWarpSize() {
			o.Kind = OperandNeg
			o.Args = p.operands.list([]Operand{{Pos: p.pos(), Name: p.text()}})
			p.next()
			return
		}
		if l, ok := p.unary(); ok {
			p.constantFrom(o, l.negate())
		}
	}
}

// not reads a negated predicate or a constant expression.
func (p *parser) not(o *Operand) {
	pos := p.pos()
	p.next()
	if p.tok == tokIdent && !p.isWarpSize() {
		o.Kind = OperandNot
		o.Args = p.operands.list([]Operand{{Pos: p.pos(), Name: p.text()}})
		p.next()
		return
	}
	l, ok := p.unary()
	if ok && l.isFloat() {
		p.fail(pos, "operator '!' takes no floating-point number")
	} else if ok {
		p.constantFrom(o, foldUnary('!', l))
	}
}

// operandList reads `{a, b}` or `(a, b)` up to the closing token.
func (p *parser) operandList(end token) []Operand {
	if !p.enter() {
		return nil
	}
	base := len(p.operandStack)
	p.next()
	if p.tok != end {
		for {
			p.pushOperand()
			if p.tok != ',' {
				break
			}
			p.next()
		}
	}
	p.expect(end)
	p.leave()
	return p.popOperands(base)
}

// pushOperand reads an operand onto the stack.
func (p *parser) pushOperand() {
	var o Operand
	p.operand(&o)
	p.operandStack = append(p.operandStack, o)
}

func (p *parser) popOperands(base int) []Operand {
	l := p.operands.list(p.operandStack[base:])
	p.operandStack = p.operandStack[:base]
	return l
}

// address reads `[base+off, more]` and the suffix that may follow.
func (p *parser) address(o *Operand) {
	if !p.enter() {
		return
	}
	o.Kind = OperandAddr
	base := len(p.operandStack)
	p.next()
	var a Operand
	p.primary(&a)
	if a.Kind == OperandAddrOf && !a.Generic {
		o.HasOff, o.Off = true, a.Off
		a.Kind, a.HasOff, a.Off = OperandIdent, false, 0
	}
	p.operandStack = append(p.operandStack, a)
	for p.tok == ',' {
		p.next()
		p.pushOperand()
	}
	p.expect(']')
	if p.tok == tokDir && p.line == p.prevLine {
		o.Name = p.dirName()
		p.next()
	}
	p.leave()
	o.Args = p.popOperands(base)
}

// instOperands reads the operands of an instruction. They come from a slab of their own, which the nested lists do not
// use, so that each is written in its final place.
func (p *parser) instOperands() []Operand {
	s := &p.instOps
	if len(s.free) < 4 {
		s.grow(4)
	}
	n := 0
	for {
		if n == len(s.free) {
			old := s.free
			s.grow(2 * n)
			copy(s.free, old)
		}
		p.operand(&s.free[n])
		n++
		if p.tok != ',' {
			break
		}
		p.next()
	}
	l := s.free[:n:n]
	s.free = s.free[n:]
	return l
}
