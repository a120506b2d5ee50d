package litmus

import (
	"maps"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// This file reads the PTX style: a block of initial values, a line that names the threads, and a column of instructions for each.
// docs/verify.md has its grammar.

// column is a thread of the PTX style.
type column struct {
	*thread
	place  model.Place
	labels map[string]int32
	jumps  []jump
}

// jump is an instruction whose label is not resolved yet.
type jump struct {
	at    int
	label token
}

func (p *parser) ptx() error {
	if err := p.wantNoGrid(); err != nil {
		return err
	}
	inits := map[string]map[string]int64{} // of registers, by thread
	if p.accept("{") {
		for !p.accept("}") {
			if p.accept(";") {
				continue
			}
			if err := p.initialValue(inits); err != nil {
				return err
			}
			if !p.is("}") {
				if err := p.expect(";", "after an initial value"); err != nil {
					return err
				}
			}
		}
		p.accept(";")
	}
	columns, err := p.heads()
	if err != nil {
		return err
	}
	for t := p.peek(); t.kind != eof && !p.conditionBegins(); t = p.peek() {
		if err := p.row(columns); err != nil {
			return err
		}
	}
	if err := p.checkQuorums(columns); err != nil {
		return err
	}
	for _, c := range columns {
		p.thread = c.thread
		p.emit(instr{op: opEnd, pos: p.tokens[p.at].pos})
		for _, j := range c.jumps {
			to, ok := c.labels[j.label.text]
			if !ok {
				return p.fail(j.label.pos, "thread %s has no label %q%s", c.title, j.label.text,
					hint(j.label.text, slices.Sorted(maps.Keys(c.labels))))
			}
			p.code.instrs[j.at].imm = to
		}
		for name := range inits[c.title] {
			c.named[name] = p.registerNamed(name)
		}
		p.test.Threads = append(p.test.Threads, Thread{Name: c.title, Place: c.place, code: c.code, regs: c.named, init: inits[c.title]})
	}
	for name := range inits {
		if !slices.ContainsFunc(columns, func(c *column) bool { return c.title == name }) {
			return p.fail(at(1, 1), "the initial values name a thread %q that there is none of", name)
		}
	}
	return nil
}

func (p *parser) conditionBegins() bool {
	return p.is("~") || p.is("not") || p.is("exists") || p.is("forall") || p.is("filter") || p.is("locations")
}

// initialTypes may precede a variable in the block of initial values. All of them are integers here.
var initialTypes = []string{"int", "long", "unsigned", "uint32_t", "uint64_t", "int32_t", "int64_t"}

// initialValue reads "x = 1", "int x", "P0:r0 = 1" or "y @ generic aliases x".
func (p *parser) initialValue(inits map[string]map[string]int64) error {
	if p.peek().kind == number && p.tokens[p.at+1].text == ":" { // 0:r0 is P0:r0
		p.tokens[p.at].kind, p.tokens[p.at].text = word, "P"+p.peek().text
	}
	if slices.Contains(initialTypes, p.peek().text) && p.tokens[p.at+1].kind == word {
		p.take()
	}
	name, err := p.name("a variable")
	if err != nil {
		return err
	}
	switch {
	case p.is(";") || p.is("}"):
		return p.declare(name, 1, false, 0)
	case p.accept(":"):
		reg, err := p.name("a register")
		if err != nil {
			return err
		}
		if err := p.expect("=", "after a register"); err != nil {
			return err
		}
		v, err := p.integer("its initial value")
		if err != nil {
			return err
		}
		if inits[name.text] == nil {
			inits[name.text] = map[string]int64{}
		}
		inits[name.text][strings.TrimPrefix(reg.text, "%")] = v
	case p.is("|"), p.is("@") && slices.Contains(placeLevels, p.tokens[p.at+1].text):
		return p.fail(name.pos, "%q begins the line of the threads, and the block of initial values has no \"}\"", name.text)
	case p.accept("@"):
		if err := p.alias(name); err != nil {
			return err
		}
	default:
		if err := p.expect("=", "after a variable"); err != nil {
			return err
		}
		v, err := p.integer("its initial value")
		if err != nil {
			return err
		}
		return p.declare(name, 1, false, v)
	}
	return nil
}

func (p *parser) alias(name token) error {
	proxy, err := p.name("a proxy")
	if err != nil {
		return err
	}
	if _, ok := proxies[proxy.text]; !ok && proxy.text != "generic" {
		return p.fail(proxy.pos, "there is no proxy %q%s", proxy.text, hint(proxy.text, append(slices.Sorted(maps.Keys(proxies)), "generic")))
	}
	if proxy.text != "generic" && !p.options.PTX {
		return p.fail(proxy.pos, "scoped RC11 has no proxy %q: use --model ptx", proxy.text)
	}
	if err := p.expect("aliases", "after a proxy"); err != nil {
		return err
	}
	of, err := p.name("a variable")
	if err != nil {
		return err
	}
	i, ok := p.shared[of.text]
	if !ok {
		return p.fail(of.pos, "there is no variable %q before this line%s", of.text, hint(of.text, slices.Sorted(maps.Keys(p.shared))))
	}
	if _, ok := p.shared[name.text]; ok {
		return p.fail(name.pos, "%q is declared twice", name.text)
	}
	p.shared[name.text] = i
	p.virtual[name.text] = int32(len(p.virtual))
	return nil
}

// proxies are those that a fence names.
var proxies = map[string]model.Proxy{"alias": model.Alias, "surface": model.Surface, "texture": model.Texture, "constant": model.Constant}

// proxyAccess are the accesses by a proxy other than the generic one.
var proxyAccess = map[string]model.Proxy{"sust": model.Surface, "suld": model.Surface, "tld": model.Texture, "cold": model.Constant}

// heads reads "P0 @ cta 0, gpu 0 | P1 @ cta 1, gpu 0 ;".
func (p *parser) heads() ([]*column, error) {
	var columns []*column
	for {
		name, err := p.name("a thread")
		if err != nil {
			return nil, err
		}
		for _, c := range columns {
			if c.title == name.text {
				return nil, p.fail(name.pos, "the thread %q is declared twice", name.text)
			}
		}
		if len(columns) == maxThreads {
			return nil, p.fail(name.pos, "a test has at most %d threads", maxThreads)
		}
		c := &column{thread: &thread{title: name.text, code: &code{}, named: map[string]int32{}}, labels: map[string]int32{},
			place: model.Place{Cluster: 1 << 19}}
		if p.accept("@") {
			if c.place, err = p.place(); err != nil {
				return nil, err
			}
		}
		columns = append(columns, c)
		if p.accept("|") {
			continue
		}
		return columns, p.expect(";", "after the threads")
	}
}

// row reads one line: an instruction, or nothing, for each thread.
func (p *parser) row(columns []*column) error {
	for i, c := range columns {
		p.thread = c.thread
		if err := p.cell(c); err != nil {
			return err
		}
		if i+1 < len(columns) {
			if p.is(";") {
				return p.fail(p.peek().pos, "the line ends after column %d; there are %d threads", i+1, len(columns))
			}
			if err := p.expect("|", "after an instruction of thread "+c.title); err != nil {
				return err
			}
		}
	}
	return p.expect(";", "after the instruction of the last thread")
}

// cell reads labels and an instruction.
func (p *parser) cell(c *column) error {
	for p.peek().kind == word && p.tokens[p.at+1].text == ":" {
		label := p.take()
		p.at++
		if _, ok := c.labels[label.text]; ok {
			return p.fail(label.pos, "thread %s has the label %q twice", c.title, label.text)
		}
		// Any label may be the target of a backward jump.
		c.labels[label.text] = p.here()
		p.code.loops = append(p.code.loops, loop{})
		p.emit(instr{op: opHead, imm: int32(len(p.code.loops) - 1), pos: label.pos})
	}
	if p.is("|") || p.is(";") {
		return nil
	}
	begin, err := p.name("an instruction")
	if err != nil {
		return err
	}
	parts := []string{begin.text}
	for p.accept(".") {
		m, err := p.name("a modifier")
		if err != nil {
			return err
		}
		parts = append(parts, m.text)
	}
	return p.instruction(c, begin, parts)
}

// The opcodes of the PTX style, for messages.
var ptxOpcodes = []string{"add", "and", "atom", "bar", "barrier", "beq", "bge", "bgt", "ble", "blt", "bne", "bra", "cold", "div", "fence", "goto", "ld", "membar",
	"mov", "mul", "or", "red", "rem", "shl", "shr", "st", "sub", "suld", "sust", "tld", "xor"}

var ptxArithmetic = map[string]uint8{"add": fnAdd, "sub": fnSub, "mul": fnMul, "div": fnDiv, "rem": fnMod, "and": fnAnd, "or": fnOr, "xor": fnXor,
	"shl": fnShl, "shr": fnShr}

// ptxBranches are the conditional jumps, with the comparison that does not jump, and whether its operands are
// exchanged.
var ptxBranches = map[string]struct {
	stays     uint8
	exchanged bool
}{"beq": {fnNe, false}, "bne": {fnEq, false}, "bge": {fnLt, false}, "blt": {fnLe, true}, "bgt": {fnLe, false}, "ble": {fnLt, true}}

func (p *parser) instruction(c *column, begin token, parts []string) error {
	in := instr{pos: begin.pos, index: p.number(0), size: 1}
	switch op := parts[0]; op {
	case "goto", "bra":
		return p.branch(c, in)
	case "beq", "bne", "bge", "blt", "bgt", "ble":
		return p.branchIf(c, begin, in, op)
	case "mov":
		return p.moveRegister(begin)
	case "ld", "suld", "tld", "cold":
		if err := p.proxied(begin, &in, op); err != nil {
			return err
		}
		return p.load(begin, in, parts[1:])
	case "st", "sust":
		if err := p.proxied(begin, &in, op); err != nil {
			return err
		}
		in.op = opStore
		if err := p.modifiers(begin, &in, parts[1:], model.NA, model.Sys); err != nil {
			return err
		}
		if err := p.address(&in); err != nil {
			return err
		}
		return p.last(in)
	case "atom", "red":
		return p.atom(begin, in, parts)
	case "fence":
		in.op = opFence
		if len(parts) > 1 && parts[1] == "proxy" {
			return p.proxyFence(begin, in, parts[2:])
		}
		if err := p.modifiers(begin, &in, parts[1:], model.AcqRel, model.Sys); err != nil {
			return err
		}
		p.emit(in)
		return nil
	case "membar":
		return p.membar(begin, in, parts[1:])
	case "bar", "barrier":
		return p.bar(begin, in, parts)
	default:
		return p.arithmeticInstruction(begin, op)
	}
}

// branchIf reads the operands of a conditional branch.
func (p *parser) branchIf(c *column, begin token, in instr, op string) error {
	a, b, err := p.twoValues()
	if err != nil {
		return err
	}
	if err := p.expect(",", "before the label"); err != nil {
		return err
	}
	to := ptxBranches[op]
	if to.exchanged {
		a, b = b, a
	}
	in.op, in.b = opZero, p.arithmetic(to.stays, a, b, begin.pos)
	return p.branch(c, in)
}

// arithmeticInstruction reads the operands of an instruction that computes a register from two values.
func (p *parser) arithmeticInstruction(begin token, op string) error {
	fn, ok := ptxArithmetic[op]
	if !ok {
		return p.fail(begin.pos, "there is no instruction %q%s", op, hint(op, ptxOpcodes))
	}
	r, err := p.target()
	if err != nil {
		return err
	}
	a, b, err := p.twoValues()
	if err != nil {
		return err
	}
	p.emit(instr{op: opBinary, fn: fn, a: r, b: a, c: b, pos: begin.pos})
	return nil
}

// proxied sets the proxy of an access.
func (p *parser) proxied(begin token, in *instr, op string) error {
	in.proxy = proxyAccess[op]
	if in.proxy != model.Generic && !p.options.PTX {
		return p.fail(begin.pos, "scoped RC11 has no proxies for surfaces, textures and constants: %s needs --model ptx", op)
	}
	return nil
}

// proxyFence reads the text after "fence.proxy".
func (p *parser) proxyFence(begin token, in instr, names []string) error {
	if !p.options.PTX {
		return p.fail(begin.pos, "scoped RC11 has no proxies: fence.proxy needs --model ptx")
	}
	if len(names) != 1 || proxies[names[0]] == model.Generic {
		return p.fail(begin.pos, "a proxy fence names its proxy: %s", strings.Join(slices.Sorted(maps.Keys(proxies)), ", "))
	}
	in.proxy = proxies[names[0]]
	p.emit(in)
	return nil
}

// membar reads the older name of fence.sc (PTX manual, membar).
func (p *parser) membar(begin token, in instr, modifiers []string) error {
	scope, ok := map[string]model.Scope{"cta": model.CTA, "gl": model.GPU, "sys": model.Sys}[strings.Join(modifiers, ".")]
	if !ok {
		return p.fail(begin.pos, "membar has a scope: membar.cta, membar.gl or membar.sys")
	}
	in.op, in.order, in.scope = opFence, model.SC, scope
	p.emit(in)
	return nil
}

func (p *parser) branch(c *column, in instr) error {
	label, err := p.name("a label")
	if err != nil {
		return err
	}
	if in.op != opZero {
		in.op = opJump
	}
	c.jumps = append(c.jumps, jump{p.emit(in), label})
	return nil
}

// load reads ld: of memory, or, without modifiers, of a constant, as mov does.
func (p *parser) load(begin token, in instr, modifiers []string) error {
	r, err := p.target()
	if err != nil {
		return err
	}
	if t := p.peek(); t.kind == number || p.is("-") || len(modifiers) == 0 && t.kind == word && p.isRegister(t.text) {
		if len(modifiers) > 0 {
			return p.fail(p.peek().pos, "%v where a variable is expected", p.peek())
		}
		v, err := p.source()
		if err != nil {
			return err
		}
		p.emit(instr{op: opMove, a: r, b: v, pos: begin.pos})
		return nil
	}
	in.op, in.a = opLoad, r
	if err := p.modifiers(begin, &in, modifiers, model.NA, model.Sys); err != nil {
		return err
	}
	if err := p.variable(&in); err != nil {
		return err
	}
	p.emit(in)
	return nil
}

func (p *parser) moveRegister(begin token) error {
	r, err := p.target()
	if err != nil {
		return err
	}
	v, err := p.source()
	if err != nil {
		return err
	}
	p.emit(instr{op: opMove, a: r, b: v, pos: begin.pos})
	return nil
}

var ptxUpdates = map[string]explore.Function{"add": explore.Add, "exch": explore.Exchange, "and": explore.And, "or": explore.Or,
	"xor": explore.Xor, "min": explore.Min, "max": explore.Max, "sub": explore.Sub, "inc": explore.Inc, "dec": explore.Dec,
	"cas": explore.CompareSwap}

// atom reads "atom.acquire.gpu.cas r0, x, 0, 1" and "red.relaxed.gpu.add x, 1".
func (p *parser) atom(begin token, in instr, parts []string) error {
	in.op = opUpdate
	var rest []string
	function := ""
	for _, m := range parts[1:] {
		if fn, ok := ptxUpdates[m]; ok && function == "" {
			function, in.fn = m, uint8(fn)
		} else {
			rest = append(rest, m)
		}
	}
	if function == "" || function == "cas" && parts[0] == "red" {
		functions := slices.Sorted(maps.Keys(ptxUpdates))
		if parts[0] == "red" {
			functions = slices.DeleteFunc(functions, func(f string) bool { return f == "cas" })
		}
		return p.fail(begin.pos, "%s needs what it does: %s", parts[0], strings.Join(functions, ", "))
	}
	if err := p.modifiers(begin, &in, rest, model.Relaxed, model.GPU); err != nil {
		return err
	}
	var err error
	if parts[0] == "red" {
		in.a, in.reduction = p.register(), true
	} else if in.a, err = p.target(); err != nil {
		return err
	}
	if err := p.address(&in); err != nil {
		return err
	}
	in.c = p.number(0)
	if function == "cas" {
		if in.c, err = p.source(); err != nil {
			return err
		}
		if err := p.expect(",", "before the new value"); err != nil {
			return err
		}
	}
	return p.last(in)
}

// bar reads "bar.cta.sync 1". The number may be in a register, and may be followed by the number of threads of the
// barrier: all of the CTA.
func (p *parser) bar(begin token, in instr, parts []string) error {
	kind := strings.Join(parts[1:], ".")
	in.op = map[string]opcode{"cta.sync": opBarrier, "cta.red": opBarrier, "sync": opBarrier, "red": opBarrier, "cta.arrive": opSignal, "arrive": opSignal}[kind]
	if in.op == 0 {
		return p.fail(begin.pos, "%q is no barrier; write bar.cta.sync, bar.cta.arrive or bar.cta.red", strings.Join(parts, "."))
	}
	t := p.peek()
	n, err := p.source()
	if err != nil {
		return err
	}
	if n < 0 {
		if v := p.code.consts[^n]; v < 0 || v >= barriers {
			return p.fail(t.pos, "the barrier has the number %d; from 0 to %d is possible", v, barriers-1)
		}
	}
	in.index = n
	if p.accept(",") {
		c := p.peek()
		n, err := p.integer("how many threads the barrier is of")
		if err != nil {
			return err
		}
		p.quorums = append(p.quorums, quorum{c.pos, p.title, n})
	}
	p.emit(in)
	return nil
}

// quorum is the number of threads that a barrier names.
type quorum struct {
	pos    pos
	thread string
	n      int64
}

// checkQuorums requires that barriers are of all threads of a CTA.
func (p *parser) checkQuorums(columns []*column) error {
	for _, q := range p.quorums {
		i := slices.IndexFunc(columns, func(c *column) bool { return c.title == q.thread })
		size := int64(0)
		for _, c := range columns {
			if c.place.CTA == columns[i].place.CTA {
				size++
			}
		}
		if q.n != size {
			return p.fail(q.pos, "a barrier of %d threads, and the CTA of %s has %d: barriers of a part of the CTA are not explored", q.n, q.thread, size)
		}
	}
	return nil
}

var ptxOrders = map[string]model.Order{"weak": model.NA, "relaxed": model.Relaxed, "acquire": model.Acquire, "release": model.Release,
	"acq_rel": model.AcqRel, "sc": model.SC}

// ptxTypes are the types of an access that a test may name. Values are 64-bit integers, whatever the type.
var ptxTypes = []string{"b32", "b64", "s32", "s64", "u32", "u64"}

// modifiers reads the order and scope of an instruction, in the given order.
func (p *parser) modifiers(begin token, in *instr, names []string, order model.Order, scope model.Scope) error {
	in.order, in.scope = order, scope
	ordered, scoped, volatile := "", "", false
	for _, m := range names {
		if o, ok := ptxOrders[m]; ok {
			if ordered != "" {
				return p.fail(begin.pos, "%s has two orders, %s and %s", begin.text, ordered, m)
			}
			in.order, ordered = o, m
		} else if (m == "volatile" || m == "mmio") && (in.op == opLoad || in.op == opStore) {
			in.order = max(in.order, model.Relaxed) // of sys, which is the default (PTX manual, ld.volatile)
			volatile = m == "volatile"
		} else if in.op != opFence && (m == "global" || slices.Contains(ptxTypes, m)) {
			continue
		} else if s, ok := scopes[m]; ok {
			if scoped != "" {
				return p.fail(begin.pos, "%s has two scopes, %s and %s", begin.text, scoped, m)
			}
			in.scope, scoped = s, m
		} else {
			known := append(slices.Sorted(maps.Keys(ptxOrders)), slices.Sorted(maps.Keys(scopes))...)
			return p.fail(begin.pos, "%s has no modifier %q%s", begin.text, m, hint(m, known))
		}
	}
	switch {
	case volatile && ordered != "":
		return p.fail(begin.pos, "a volatile %s has no order of its own: it is relaxed, of scope sys", begin.text)
	case volatile && scoped != "":
		return p.fail(begin.pos, "a volatile %s has no scope of its own: it is relaxed, of scope sys", begin.text)
	case scoped != "" && (in.op == opLoad || in.op == opStore) && in.order == model.NA:
		return p.fail(begin.pos, "a weak %s has no scope: give it the order relaxed, or leave out %s", begin.text, scoped)
	case scoped == "" && in.op == opFence:
		return p.fail(begin.pos, "%s needs a scope: cta, cluster, gpu or sys", begin.text)
	}
	var possible []model.Order
	switch in.op {
	case opLoad:
		possible = []model.Order{model.NA, model.Relaxed, model.Acquire}
	case opStore:
		possible = []model.Order{model.NA, model.Relaxed, model.Release}
	case opFence:
		possible = []model.Order{model.Acquire, model.Release, model.AcqRel, model.SC}
	default:
		possible = []model.Order{model.Relaxed, model.Acquire, model.Release, model.AcqRel}
	}
	if !slices.Contains(possible, in.order) {
		var names []string
		for _, m := range slices.Sorted(maps.Keys(ptxOrders)) {
			if slices.Contains(possible, ptxOrders[m]) {
				names = append(names, m)
			}
		}
		return p.fail(begin.pos, "the order of this %s must be one of %s", begin.text, strings.Join(names, ", "))
	}
	return nil
}

// registerNamed returns the register with a name; %r0 is r0.
func (p *parser) registerNamed(name string) int32 {
	name = strings.TrimPrefix(name, "%")
	r, ok := p.named[name]
	if !ok {
		r = p.register()
		p.named[name] = r
	}
	return r
}

// isRegister reports whether a name is that of a register, and not of a variable.
func (p *parser) isRegister(name string) bool {
	_, shared := p.shared[name]
	_, register := p.named[strings.TrimPrefix(name, "%")]
	return register && !shared
}

// target reads the register that an instruction writes, and the comma after it.
func (p *parser) target() (int32, error) {
	t, err := p.name("a register")
	if err != nil {
		return 0, err
	}
	if _, ok := p.shared[t.text]; ok {
		return 0, p.fail(t.pos, "%q is a variable; a register is expected here", t.text)
	}
	return p.registerNamed(t.text), p.expect(",", "after the register")
}

// source reads a number or a register.
func (p *parser) source() (operand, error) {
	if t := p.peek(); t.kind == word {
		p.at++
		if _, ok := p.shared[t.text]; ok {
			return 0, p.fail(t.pos, "%q is a variable; a register or a number is expected here", t.text)
		}
		return operand(p.registerNamed(t.text)), nil
	}
	v, err := p.integer("a value")
	return p.number(v), err
}

func (p *parser) twoValues() (a, b operand, err error) {
	if a, err = p.source(); err != nil {
		return 0, 0, err
	}
	if err = p.expect(",", "between two values"); err != nil {
		return 0, 0, err
	}
	b, err = p.source()
	return a, b, err
}

// variable reads a memory operand. A variable without an initial value has the value 0.
func (p *parser) variable(in *instr) error {
	bracket := p.accept("[")
	t, err := p.name("a variable")
	if err != nil {
		return err
	}
	if _, ok := p.shared[t.text]; !ok {
		if _, ok := p.named[t.text]; ok {
			return p.fail(t.pos, "%q is a register; a variable is expected here", t.text)
		}
		if err := p.declare(t, 1, false, 0); err != nil {
			return err
		}
	}
	in.base, in.address = p.test.Variables[p.shared[t.text]].First, p.virtual[t.text]
	if bracket {
		return p.expect("]", "after the variable")
	}
	return nil
}

// address reads a memory operand and the comma after it.
func (p *parser) address(in *instr) error {
	if err := p.variable(in); err != nil {
		return err
	}
	return p.expect(",", "after the variable")
}

// last reads the value that in writes, its last operand, and emits in.
func (p *parser) last(in instr) (err error) {
	if in.b, err = p.source(); err == nil {
		p.emit(in)
	}
	return err
}
