package litmus

import (
	"maps"
	"slices"
	"strconv"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// This file reads the scoped-C style. docs/verify.md has its grammar.

// thread is the thread whose code is being emitted.
type thread struct {
	title  string // its name
	code   *code
	scopes []map[string]int32 // the registers of variables, by block
	named  map[string]int32   // the registers of all variables, for conditions
	values map[string]int64   // constants that differ from thread to thread
	breaks [][]int            // jumps out of the enclosing loops, to be resolved
	nexts  [][]int            // jumps to the next iterations of the loops
}

func (p *parser) scopedC() error {
	for {
		t := p.peek()
		switch {
		case p.accept("int"):
			if err := p.variables(); err != nil {
				return err
			}
		case p.accept("const"):
			if err := p.constant(); err != nil {
				return err
			}
		case p.accept("grid"):
			if err := p.gridSize(t.pos); err != nil {
				return err
			}
		case p.accept("kernel"):
			if err := p.kernel(t.pos); err != nil {
				return err
			}
		case p.accept("thread"):
			if err := p.oneThread(); err != nil {
				return err
			}
		case len(p.test.Threads) > 0:
			if p.gridAt == 0 {
				return p.wantNoGrid()
			}
			return nil
		default:
			return p.fail(t.pos, `%v where a declaration is expected: "int", "const", "grid", "kernel" or "thread"`, t)
		}
	}
}

// wantNoGrid refuses options that give the size of a grid.
func (p *parser) wantNoGrid() error {
	if p.options.Grid > 0 || p.options.Block > 0 {
		return p.fail(at(1, 1), "the test names its threads; --grid and --block are for one with a kernel")
	}
	return nil
}

// variables reads the rest of "int x = 1, a[4];".
func (p *parser) variables() error {
	for {
		name, err := p.name("a variable")
		if err != nil {
			return err
		}
		size, array, value := int64(1), p.accept("["), int64(0)
		if array {
			if size, err = p.constExpr(); err != nil {
				return err
			}
			if err := p.expect("]", "after the size of an array"); err != nil {
				return err
			}
		}
		if p.accept("=") {
			if value, err = p.constExpr(); err != nil {
				return err
			}
		}
		if err := p.declare(name, size, array, value); err != nil {
			return err
		}
		if !p.accept(",") {
			return p.expect(";", "after a declaration")
		}
	}
}

func (p *parser) constant() error {
	name, err := p.name("a constant")
	if err != nil {
		return err
	}
	if err := p.expect("=", "after the name of a constant"); err != nil {
		return err
	}
	v, err := p.constExpr()
	if err != nil {
		return err
	}
	if _, ok := p.consts[name.text]; ok {
		return p.fail(name.pos, "%q is declared twice", name.text)
	}
	p.consts[name.text] = v
	return p.expect(";", "after a constant")
}

// constExpr reads an expression whose value does not depend on a thread.
func (p *parser) constExpr() (int64, error) {
	saved := p.thread
	p.thread = &thread{code: &code{}, named: map[string]int32{}}
	defer func() { p.thread = saved }()
	begin := p.peek().pos
	o, err := p.expr(0)
	if err != nil {
		return 0, err
	}
	if o >= 0 || len(p.code.instrs) > 0 {
		return 0, p.fail(begin, "this must be a constant: made of numbers and of names declared by \"const\"")
	}
	return p.code.consts[^o], nil
}

func (p *parser) gridSize(begin pos) error {
	if p.gridAt != 0 {
		return p.fail(begin, "the grid is given twice")
	}
	p.gridAt = begin
	for i, what := range []string{"the number of blocks", "the number of threads of a block"} {
		if i > 0 {
			if err := p.expect(",", "between the sizes of grid and block"); err != nil {
				return err
			}
		}
		at := p.peek().pos
		n, err := p.constExpr()
		if err != nil {
			return err
		}
		if n < 1 || n > maxThreads {
			return p.fail(at, "%s is %d; it is from 1 to %d", what, n, maxThreads)
		}
		p.grid[i] = int(n)
	}
	for i, n := range []int{p.options.Grid, p.options.Block} {
		if n > 0 {
			p.grid[i] = n
		}
	}
	if p.grid[0]*p.grid[1] > maxThreads {
		return p.fail(begin, "%d blocks of %d threads are more than %d threads", p.grid[0], p.grid[1], maxThreads)
	}
	p.consts["gridDim"], p.consts["blockDim"] = int64(p.grid[0]), int64(p.grid[1])
	return p.expect(";", "after the size of the grid")
}

// kernel reads the code that each thread of the grid executes.
func (p *parser) kernel(begin pos) error {
	if p.gridAt == 0 {
		return p.fail(begin, `a kernel needs the size of its grid before it, as in "grid 2, 4;"`)
	}
	if len(p.test.Threads) > 0 {
		return p.fail(begin, "a test has one kernel, or threads")
	}
	body := p.at
	for b := range p.grid[0] {
		for t := range p.grid[1] {
			p.at = body
			n := b*p.grid[1] + t
			place := model.Place{CTA: int32(b), Cluster: int32(b), GPU: 0}
			values := map[string]int64{"blockIdx": int64(b), "threadIdx": int64(t), "tid": int64(n)}
			if err := p.threadBody("P"+strconv.Itoa(n), place, values); err != nil {
				return err
			}
			if p.instrs += len(p.code.instrs); p.instrs > maxInstrs {
				return p.fail(begin, "the code of all threads has more than %d instructions: make the grid smaller", maxInstrs)
			}
		}
	}
	return nil
}

func (p *parser) oneThread() error {
	name, err := p.name("a thread")
	if err != nil {
		return err
	}
	for i := range p.test.Threads {
		if p.test.Threads[i].Name == name.text {
			return p.fail(name.pos, "the thread %q is declared twice", name.text)
		}
	}
	if p.gridAt != 0 {
		return p.fail(name.pos, "a test has a kernel with its grid, or threads")
	}
	if len(p.test.Threads) == maxThreads {
		return p.fail(name.pos, "a test has at most %d threads", maxThreads)
	}
	place := model.Place{CTA: 0, Cluster: 1 << 19}
	if p.accept("@") {
		if place, err = p.place(); err != nil {
			return err
		}
	}
	return p.threadBody(name.text, place, map[string]int64{"tid": int64(len(p.test.Threads))})
}

func (p *parser) threadBody(name string, place model.Place, values map[string]int64) error {
	p.thread = &thread{title: name, code: &code{}, named: map[string]int32{}, values: values}
	if err := p.block(); err != nil {
		return err
	}
	p.emit(instr{op: opEnd, pos: p.tokens[p.at-1].pos})
	p.test.Threads = append(p.test.Threads, Thread{Name: name, Place: place, code: p.code, regs: p.named})
	return nil
}

func (p *parser) emit(in instr) int {
	p.code.instrs = append(p.code.instrs, in)
	return len(p.code.instrs) - 1
}

func (p *parser) here() int32 { return int32(len(p.code.instrs)) }

func (p *parser) register() int32 {
	p.code.regs++
	return int32(p.code.regs - 1)
}

func (p *parser) number(v int64) operand {
	i := slices.Index(p.code.consts, v)
	if i < 0 {
		i = len(p.code.consts)
		p.code.consts = append(p.code.consts, v)
	}
	return operand(^i)
}

// kernels reports whether the code is that of a kernel. An error for one thread is then allowed in code that the thread
// does not reach.
func (p *parser) kernels() bool {
	_, ok := p.values["blockIdx"]
	return ok
}

// known returns the value of o if it is a constant.
func (p *parser) known(o operand) (int64, bool) {
	if o < 0 {
		return p.code.consts[^o], true
	}
	return 0, false
}

func (p *parser) block() error {
	if err := p.expect("{", "before statements"); err != nil {
		return err
	}
	p.scopes = append(p.scopes, map[string]int32{})
	for !p.accept("}") {
		if p.peek().kind == eof {
			return p.fail(p.peek().pos, `%v where "}" is expected`, p.peek())
		}
		if err := p.nested(p.statement); err != nil {
			return err
		}
	}
	p.scopes = p.scopes[:len(p.scopes)-1]
	return nil
}

// lookup finds the register of a variable of the thread.
func (p *parser) lookup(name string) (int32, bool) {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if r, ok := p.scopes[i][name]; ok {
			return r, true
		}
	}
	return 0, false
}

func (p *parser) statement() error {
	t := p.peek()
	switch {
	case p.is("{"):
		return p.block()
	case p.accept(";"):
		return nil
	case p.accept("if"):
		return p.ifElse()
	case p.accept("while"):
		return p.while(t.pos)
	case p.accept("do"):
		return p.doWhile(t.pos)
	case p.accept("for"):
		return p.forLoop(t.pos)
	case p.accept("break"), p.accept("continue"):
		if len(p.breaks) == 0 {
			return p.fail(t.pos, "%q is in no loop", t.text)
		}
		list := &p.breaks[len(p.breaks)-1]
		if t.text == "continue" {
			list = &p.nexts[len(p.nexts)-1]
		}
		*list = append(*list, p.emit(instr{op: opJump, pos: t.pos}))
		return p.expect(";", "after a statement")
	case p.accept("return"):
		p.emit(instr{op: opEnd, pos: t.pos})
		return p.expect(";", "after a statement")
	}
	if err := p.simple(); err != nil {
		return err
	}
	return p.expect(";", "after a statement")
}

// simple reads a statement that has no statements in it.
func (p *parser) simple() error {
	t := p.peek()
	switch {
	case p.accept("int"):
		return p.locals()
	case p.is("assert") || p.is("assume"):
		p.at++
		if err := p.expect("(", "after "+t.text); err != nil {
			return err
		}
		o, err := p.expr(0)
		if err != nil {
			return err
		}
		op := opAssert
		if t.text == "assume" {
			op = opAssume
		}
		p.emit(instr{op: op, b: o, pos: t.pos})
		return p.expect(")", "after the condition")
	case t.kind != word:
		return p.fail(t.pos, "%v where a statement must begin", t)
	}
	if p.tokens[min(p.at+1, len(p.tokens)-1)].text == "(" {
		_, err := p.call(true)
		return err
	}
	return p.assignment()
}

func (p *parser) locals() error {
	for {
		name, err := p.name("a variable")
		if err != nil {
			return err
		}
		if _, ok := p.shared[name.text]; ok {
			return p.fail(name.pos, "%q is a shared variable; give the variable of the thread another name", name.text)
		}
		if _, ok := p.scopes[len(p.scopes)-1][name.text]; ok {
			return p.fail(name.pos, "%q is declared twice", name.text)
		}
		value := p.number(0)
		if p.accept("=") {
			if value, err = p.expr(0); err != nil {
				return err
			}
		}
		r := p.register()
		p.move(r, value, name.pos)
		p.scopes[len(p.scopes)-1][name.text] = r
		p.named[name.text] = r
		if !p.accept(",") {
			return nil
		}
	}
}

// move emits a = o. If o is the result of the preceding instruction, that instruction is changed to write a itself.
func (p *parser) move(a int32, o operand, at pos) {
	if n := len(p.code.instrs); n > 0 && o >= 0 && int(o) == p.code.regs-1 && int32(o) != a {
		switch last := &p.code.instrs[n-1]; last.op {
		case opBinary, opLoad, opUpdate:
			if last.a == int32(o) {
				last.a = a
				return
			}
		}
	}
	p.emit(instr{op: opMove, a: a, b: o, pos: at})
}

// assignment reads x = e, x += e, x++ and the like, of a variable of the thread or a shared one.
func (p *parser) assignment() error {
	name := p.take()
	r, local := p.lookup(name.text)
	var to instr
	if !local {
		var err error
		if to, err = p.location(name); err != nil {
			return err
		}
	}
	read := func() operand {
		if local {
			return operand(r)
		}
		in := to
		in.op, in.a = opLoad, p.register()
		p.emit(in)
		return operand(in.a)
	}
	t := p.take()
	var value operand
	var err error
	switch t.text {
	case "=":
		value, err = p.expr(0)
	case "+=", "-=", "++", "--":
		old, by := read(), p.number(1)
		if len(t.text) == 2 && t.text[1] == '=' {
			by, err = p.expr(0)
		}
		if err == nil {
			value = p.arithmetic(map[byte]uint8{'+': fnAdd, '-': fnSub}[t.text[0]], old, by, t.pos)
		}
	default:
		return p.fail(t.pos, "%v where an assignment is expected: =, +=, -=, ++ or --", t)
	}
	if err != nil {
		return err
	}
	if local {
		p.move(r, value, name.pos)
		return nil
	}
	to.op, to.b = opStore, value
	p.emit(to)
	return nil
}

// location reads the text after the name of a shared variable and returns an instruction that accesses it, not
// atomically.
func (p *parser) location(name token) (instr, error) {
	i, ok := p.shared[name.text]
	if !ok {
		names := slices.Collect(maps.Keys(p.shared))
		for _, s := range p.scopes {
			names = slices.AppendSeq(names, maps.Keys(s))
		}
		slices.Sort(names)
		return instr{}, p.fail(name.pos, "there is no variable %q%s", name.text, hint(name.text, names))
	}
	v := &p.test.Variables[i]
	in := instr{base: v.First, size: int32(v.Size), index: p.number(0), pos: name.pos}
	if v.Array != p.is("[") {
		if v.Array {
			return in, p.fail(name.pos, "%q is an array; choose an element: %s[0]", v.Name, v.Name)
		}
		return in, p.fail(name.pos, "%q is no array", v.Name)
	}
	if !p.accept("[") {
		return in, nil
	}
	begin := p.peek().pos
	o, err := p.expr(0)
	if err != nil {
		return in, err
	}
	if n, ok := p.known(o); ok && (n >= 0 && n < int64(v.Size) || !p.kernels()) {
		if n < 0 || n >= int64(v.Size) {
			return in, p.fail(begin, "the index %d is outside of %s[%d] in thread %s", n, v.Name, v.Size, p.title)
		}
		in.base, in.size, o = v.First+int32(n), 1, p.number(0)
	}
	in.index = o
	return in, p.expect("]", "after an index")
}

func (p *parser) condition() (operand, error) {
	if err := p.expect("(", "before a condition"); err != nil {
		return 0, err
	}
	o, err := p.expr(0)
	if err != nil {
		return 0, err
	}
	return o, p.expect(")", "after a condition")
}

func (p *parser) ifElse() error {
	begin := p.peek().pos
	o, err := p.condition()
	if err != nil {
		return err
	}
	skip := p.emit(instr{op: opZero, b: o, pos: begin})
	if err := p.nested(p.statement); err != nil {
		return err
	}
	if p.accept("else") {
		end := p.emit(instr{op: opJump, pos: begin})
		p.code.instrs[skip].imm = p.here()
		skip = end
		if err := p.nested(p.statement); err != nil {
			return err
		}
	}
	p.code.instrs[skip].imm = p.here()
	return nil
}

// enter begins a loop and returns the instruction of its head.
func (p *parser) enter(begin pos) int32 {
	n := int32(len(p.code.loops))
	p.code.loops = append(p.code.loops, loop{})
	p.emit(instr{op: opEnter, imm: n, pos: begin})
	p.breaks, p.nexts = append(p.breaks, nil), append(p.nexts, nil)
	return int32(p.emit(instr{op: opHead, imm: n, pos: begin}))
}

// next resolves the jumps of "continue" to the current place.
func (p *parser) next() {
	for _, j := range p.nexts[len(p.nexts)-1] {
		p.code.instrs[j].imm = p.here()
	}
	p.nexts = p.nexts[:len(p.nexts)-1]
}

// leave resolves the jumps out of a loop to the current place.
func (p *parser) leave() {
	for _, j := range p.breaks[len(p.breaks)-1] {
		p.code.instrs[j].imm = p.here()
	}
	p.breaks = p.breaks[:len(p.breaks)-1]
}

func (p *parser) while(begin pos) error {
	head := p.enter(begin)
	o, err := p.condition()
	if err != nil {
		return err
	}
	out := -1
	if v, ok := p.known(o); !ok || v == 0 {
		out = p.emit(instr{op: opZero, b: o, pos: begin})
	}
	if err := p.nested(p.statement); err != nil {
		return err
	}
	p.next()
	p.emit(instr{op: opJump, imm: head, pos: begin})
	if out >= 0 {
		p.code.instrs[out].imm = p.here()
	}
	p.leave()
	return nil
}

func (p *parser) doWhile(begin pos) error {
	head := p.enter(begin)
	if err := p.nested(p.statement); err != nil {
		return err
	}
	p.next()
	if err := p.expect("while", "after the statement of do"); err != nil {
		return err
	}
	o, err := p.condition()
	if err != nil {
		return err
	}
	out := p.emit(instr{op: opZero, b: o, pos: begin})
	p.emit(instr{op: opJump, imm: head, pos: begin})
	p.code.instrs[out].imm = p.here()
	p.leave()
	return p.expect(";", "after do ... while (...)")
}

// forLoop reads for (init; condition; step) statement. It reads the step a second time after the statement.
func (p *parser) forLoop(begin pos) error {
	p.scopes = append(p.scopes, map[string]int32{})
	if err := p.expect("(", "after for"); err != nil {
		return err
	}
	if !p.is(";") {
		if err := p.simple(); err != nil {
			return err
		}
	}
	if err := p.expect(";", "after the beginning of a for loop"); err != nil {
		return err
	}
	head := p.enter(begin)
	out := -1
	if !p.is(";") {
		o, err := p.expr(0)
		if err != nil {
			return err
		}
		out = p.emit(instr{op: opZero, b: o, pos: begin})
	}
	if err := p.expect(";", "after the condition of a for loop"); err != nil {
		return err
	}
	step := p.at
	if err := p.skipParentheses(); err != nil {
		return err
	}
	if err := p.nested(p.statement); err != nil {
		return err
	}
	p.next()
	end := p.at
	p.at = step
	if !p.is(")") {
		if err := p.simple(); err != nil {
			return err
		}
	}
	if err := p.expect(")", "after the step of a for loop"); err != nil {
		return err
	}
	p.at = end
	p.emit(instr{op: opJump, imm: head, pos: begin})
	if out >= 0 {
		p.code.instrs[out].imm = p.here()
	}
	p.leave()
	p.scopes = p.scopes[:len(p.scopes)-1]
	return nil
}

// skipParentheses skips the text up to the ")" that closes the open parenthesis.
func (p *parser) skipParentheses() error {
	for open := 1; open > 0; {
		t := p.take()
		switch {
		case t.kind == eof:
			return p.fail(t.pos, `%v where ")" is expected`, t)
		case t.kind == mark && t.text == "(":
			open++
		case t.kind == mark && t.text == ")":
			open--
		}
	}
	return nil
}

// precedence is the precedence of the binary operators, from weak to strong.
var precedence = map[string]int{"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
	"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}

var functions = map[string]uint8{"|": fnOr, "^": fnXor, "&": fnAnd, "==": fnEq, "!=": fnNe, "<": fnLt, "<=": fnLe, ">": fnLt, ">=": fnLe,
	"<<": fnShl, ">>": fnShr, "+": fnAdd, "-": fnSub, "*": fnMul, "/": fnDiv, "%": fnMod}

// expr reads an expression of operators that bind more tightly than above.
func (p *parser) expr(above int) (o operand, err error) {
	err = p.nested(func() error {
		o, err = p.unary()
		return err
	})
	for err == nil {
		t := p.peek()
		strength := precedence[t.text]
		if t.kind != mark || strength <= above {
			return o, nil
		}
		p.at++
		if t.text == "&&" || t.text == "||" {
			o, err = p.shortCircuit(o, t, strength)
			continue
		}
		var right operand
		if right, err = p.expr(strength); err != nil {
			return 0, err
		}
		if t.text == ">" || t.text == ">=" {
			o, right = right, o
		}
		if v, ok := p.known(right); ok && v == 0 && !p.kernels() && (t.text == "/" || t.text == "%") {
			return 0, p.fail(t.pos, "division by zero")
		}
		o = p.arithmetic(functions[t.text], o, right, t.pos)
	}
	return o, err
}

func (p *parser) arithmetic(fn uint8, a, b operand, at pos) operand {
	x, xok := p.known(a)
	y, yok := p.known(b)
	if xok && yok {
		if v, ok := binary(fn, x, y); ok {
			return p.number(v)
		}
	}
	r := p.register()
	p.emit(instr{op: opBinary, fn: fn, a: r, b: a, c: b, pos: at})
	return operand(r)
}

// shortCircuit reads the right operand of && or ||, which is executed only if it matters.
func (p *parser) shortCircuit(left operand, t token, strength int) (operand, error) {
	r := p.register()
	left = p.arithmetic(fnNe, left, p.number(0), t.pos)
	p.emit(instr{op: opMove, a: r, b: left, pos: t.pos})
	test := operand(r)
	if t.text == "||" {
		test = p.arithmetic(fnEq, operand(r), p.number(0), t.pos)
	}
	skip := p.emit(instr{op: opZero, b: test, pos: t.pos})
	right, err := p.expr(strength)
	if err != nil {
		return 0, err
	}
	right = p.arithmetic(fnNe, right, p.number(0), t.pos)
	p.emit(instr{op: opMove, a: r, b: right, pos: t.pos})
	p.code.instrs[skip].imm = p.here()
	return operand(r), nil
}

func (p *parser) unary() (operand, error) {
	t := p.peek()
	switch {
	case p.accept("-"), p.accept("!"), p.accept("~"):
		var o operand
		err := p.nested(func() (err error) { o, err = p.unary(); return err })
		switch {
		case err != nil:
			return 0, err
		case t.text == "-":
			return p.arithmetic(fnSub, p.number(0), o, t.pos), nil
		case t.text == "~":
			return p.arithmetic(fnXor, o, p.number(-1), t.pos), nil
		}
		return p.arithmetic(fnEq, o, p.number(0), t.pos), nil
	case p.accept("("):
		o, err := p.expr(0)
		if err != nil {
			return 0, err
		}
		return o, p.expect(")", "after an expression")
	case t.kind == number:
		p.at++
		return p.number(t.value), nil
	case t.kind != word:
		return 0, p.fail(t.pos, "%v where an expression is expected", t)
	}
	if p.tokens[min(p.at+1, len(p.tokens)-1)].text == "(" {
		return p.call(false)
	}
	p.at++
	if r, ok := p.lookup(t.text); ok {
		return operand(r), nil
	}
	if v, ok := p.values[t.text]; ok {
		return p.number(v), nil
	}
	if v, ok := p.consts[t.text]; ok {
		return p.number(v), nil
	}
	in, err := p.location(t)
	if err != nil {
		return 0, err
	}
	in.op, in.a = opLoad, p.register()
	p.emit(in)
	return operand(in.a), nil
}

var updates = map[string]explore.Function{"exchange": explore.Exchange, "fetch_add": explore.Add, "fetch_and": explore.And,
	"fetch_or": explore.Or, "fetch_xor": explore.Xor, "fetch_min": explore.Min, "fetch_max": explore.Max, "cas": explore.CompareSwap}

// call reads an atomic operation, a fence or a barrier.
func (p *parser) call(statement bool) (operand, error) {
	name := p.take()
	p.at++ // (
	in := instr{pos: name.pos}
	switch name.text {
	case "fence", "barrier", "arrive":
		if !statement {
			return 0, p.fail(name.pos, "%s has no value", name.text)
		}
		if name.text == "fence" {
			in.op = opFence
			return 0, p.ordered(name, in, model.Acquire, model.Release, model.AcqRel, model.SC)
		}
		return 0, p.barrier(name)
	case "load":
		in.op = opLoad
	case "store":
		in.op = opStore
		if !statement {
			return 0, p.fail(name.pos, "store has no value")
		}
	default:
		fn, ok := updates[name.text]
		if !ok {
			names := append(slices.Sorted(maps.Keys(updates)), "arrive", "assert", "assume", "barrier", "fence", "load", "store")
			return 0, p.fail(name.pos, "there is no operation %q%s", name.text, hint(name.text, names))
		}
		in.op, in.fn = opUpdate, uint8(fn)
	}
	v, err := p.name("a shared variable")
	if err != nil {
		return 0, err
	}
	where, err := p.location(v)
	if err != nil {
		return 0, err
	}
	in.base, in.size, in.index = where.base, where.size, where.index
	if err := p.operands(name, &in); err != nil {
		return 0, err
	}
	if in.op != opStore {
		in.a = p.register()
	}
	switch in.op {
	case opLoad:
		err = p.ordered(name, in, model.Relaxed, model.Acquire, model.SC)
	case opStore:
		err = p.ordered(name, in, model.Relaxed, model.Release, model.SC)
	default:
		err = p.ordered(name, in, model.Relaxed, model.Acquire, model.Release, model.AcqRel, model.SC)
	}
	return operand(in.a), err
}

// operands reads the operands of an operation, each after a comma.
func (p *parser) operands(name token, in *instr) error {
	list := []*operand{&in.b}
	switch {
	case in.op == opLoad:
		list = nil
	case name.text == "cas":
		list = []*operand{&in.c, &in.b} // the expected value comes first
	}
	in.b, in.c = p.number(0), p.number(0)
	for _, o := range list {
		if err := p.expect(",", "before the next operand of "+name.text); err != nil {
			return err
		}
		var err error
		if *o, err = p.expr(0); err != nil {
			return err
		}
	}
	return p.expect(",", "before the order of "+name.text)
}

var orders = map[string]model.Order{"rlx": model.Relaxed, "relaxed": model.Relaxed, "acq": model.Acquire, "acquire": model.Acquire,
	"rel": model.Release, "release": model.Release, "acqrel": model.AcqRel, "acq_rel": model.AcqRel, "sc": model.SC}

var scopes = map[string]model.Scope{"cta": model.CTA, "cluster": model.Cluster, "gpu": model.GPU, "sys": model.Sys}

// ordered reads the order, the scope (sys if it is left out) and ")", and emits the operation.
func (p *parser) ordered(name token, in instr, possible ...model.Order) error {
	t := p.take()
	o, ok := orders[t.text]
	if !ok || t.kind != word || !slices.Contains(possible, o) {
		return p.fail(t.pos, "%v where the order of %s is expected: %s", t, name.text, list(possible))
	}
	if p.options.PTX && o == model.SC && in.op != opFence {
		return p.fail(t.pos, "PTX has no sc accesses: write fence(sc) before an acquire or a release, as compilers do")
	}
	in.order, in.scope = o, model.Sys
	if p.accept(",") {
		s := p.take()
		if in.scope, ok = scopes[s.text]; !ok || s.kind != word {
			return p.fail(s.pos, "%v where a scope is expected: cta, cluster, gpu or sys", s)
		}
	}
	p.emit(in)
	return p.expect(")", "after the operands of "+name.text)
}

func list(orders []model.Order) string {
	s := ""
	for i, o := range orders {
		switch {
		case i == 0:
		case i == len(orders)-1:
			s += " or "
		default:
			s += ", "
		}
		s += o.String()
	}
	return s
}

func (p *parser) barrier(name token) error {
	n := int64(0)
	begin := p.peek().pos
	if !p.is(")") {
		o, err := p.expr(0)
		if err != nil {
			return err
		}
		v, ok := p.known(o)
		if !ok || v < 0 || v > 15 {
			return p.fail(begin, "the number of a barrier is a constant from 0 to 15")
		}
		n = v
	}
	op := opBarrier
	if name.text == "arrive" {
		op = opSignal
	}
	p.emit(instr{op: op, imm: int32(n), pos: name.pos})
	return p.expect(")", "after the number of a barrier")
}
