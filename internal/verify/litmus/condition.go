package litmus

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/verify/explore"
)

// Quantifier is the claim of a condition about the final states.
type Quantifier string

// The quantifiers.
const (
	Exists    Quantifier = "exists"  // some final state satisfies the formula
	NotExists Quantifier = "~exists" // none does
	Never     Quantifier = "never"   // the same, in launch files
	ForAll    Quantifier = "forall"  // all do
)

// Condition is the final condition of a test.
type Condition struct {
	Quantifier Quantifier
	Formula    *Formula
}

// Registers gives registers of the threads P0, P1, ... of a launch to a formula.
type Registers interface {
	Threads() int
	// Number numbers a register, from 0. The error is a clause that says why there is no such register.
	Number(name string) (int32, error)
	// Range returns the least and the greatest value that a register can have.
	Range(number int32) (least, most int64)
}

// Registered is an execution of a launch whose formulas mention registers.
type Registered interface {
	// Register returns the value of a register, by its number, when a thread has ended.
	Register(thread int, number int32) int64
}

// ParseFormula reads a formula over variables and registers of a launch. file is its name in messages, and columns count
// from the beginning of text. It is judged on executions that are Registered.
func ParseFormula(file, text string, variables []Variable, registers Registers) (f *Formula, observed []*Formula, err error) {
	tokens, err := lexText(file, text, false)
	if err != nil {
		return nil, nil, err
	}
	t := &Test{Variables: variables}
	p := &parser{file: file, tokens: tokens, test: t, shared: map[string]int{}, consts: map[string]int64{}, registers: registers}
	for i, v := range variables {
		p.shared[v.Name] = i
	}
	if f, err = p.formula(0); err != nil {
		return nil, nil, err
	}
	if t := p.peek(); t.kind != eof {
		return nil, nil, p.fail(t.pos, "%v where the formula must end", t)
	}
	t.Filter = f
	return f, t.Observed(), nil
}

// Holds judges the condition, given the number of final states that satisfy the formula and of those that do not.
func (c *Condition) Holds(satisfying, others int) bool {
	switch c.Quantifier {
	case Exists:
		return satisfying > 0
	case NotExists, Never:
		return satisfying == 0
	}
	return others == 0
}

// Formula is a formula over a final state: a constant, a value of the state, or an operator with operands.
type Formula struct {
	op     string // "" for a value
	args   []*Formula
	value  int64
	thread int // of a register
	reg    int32
	loc    int32
	kind   uint8 // of a value: 'n' a number, 'r' a register, 'x' a location
	name   string
}

// eval computes the formula; truth values are 0 and 1.
func (f *Formula) eval(x explore.Execution) int64 {
	switch f.kind {
	case 'n':
		return f.value
	case 'r':
		if r, ok := x.(Registered); ok {
			return r.Register(f.thread, f.reg)
		}
		return x.State(f.thread)[stateRegs+f.reg]
	case 'x':
		return x.Final(f.loc)
	}
	a := f.args[0].eval(x)
	switch f.op {
	case "not":
		return truth(a == 0)
	case "and":
		return truth(a != 0 && f.args[1].eval(x) != 0)
	case "or":
		return truth(a != 0 || f.args[1].eval(x) != 0)
	}
	b := f.args[1].eval(x)
	switch f.op {
	case "==", "=":
		return truth(a == b)
	case "!=":
		return truth(a != b)
	case "<":
		return truth(a < b)
	case "<=":
		return truth(a <= b)
	case ">":
		return truth(a > b)
	}
	return truth(a >= b)
}

// Satisfied reports whether the final state of x satisfies the formula. A nil formula always holds.
func (f *Formula) Satisfied(x explore.Execution) bool { return f == nil || f.eval(x) != 0 }

// registers calls do for each register that the formula reads.
func (f *Formula) registers(do func(thread int, reg int32)) {
	if f == nil {
		return
	}
	if f.kind == 'r' {
		do(f.thread, f.reg)
	}
	for _, a := range f.args {
		a.registers(do)
	}
}

// Observed returns the values that the condition mentions, sorted by name. Final states are distinguished by them.
func (t *Test) Observed() []*Formula {
	all := map[string]*Formula{}
	var walk func(f *Formula)
	walk = func(f *Formula) {
		if f == nil {
			return
		}
		if f.kind == 'r' || f.kind == 'x' {
			all[f.name] = f
		}
		for _, a := range f.args {
			walk(a)
		}
	}
	walk(t.Filter)
	walk(t.formula())
	for _, f := range t.listed {
		walk(f)
	}
	var out []*Formula
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

// Name is the name of a value.
func (f *Formula) Name() string { return f.name }

// Location is the location of a value. ok is false for a register.
func (f *Formula) Location() (loc int32, ok bool) { return f.loc, f.kind == 'x' }

// Value is the value in the final state of x.
func (f *Formula) Value(x explore.Execution) int64 { return f.eval(x) }

// final reads the condition, the filter and the list of locations, in any order, up to the end of the file.
func (p *parser) final() error {
	for {
		t := p.take()
		switch {
		case t.kind == eof:
			return nil
		case t.text == ";":
			continue
		case t.text == "locations":
			if err := p.listed(); err != nil {
				return err
			}
			continue
		case t.text == "filter":
			if p.test.Filter != nil {
				return p.fail(t.pos, "the filter is given twice")
			}
			f, err := p.formula(0)
			if err != nil {
				return err
			}
			p.test.Filter = f
			continue
		}
		q := Quantifier(t.text)
		if (t.text == "~" || t.text == "not") && p.accept("exists") {
			q = NotExists
		}
		if t.kind == text || q != Exists && q != NotExists && q != ForAll {
			return p.fail(t.pos, `%v where the condition is expected: "exists", "~exists", "forall" or "filter"`, t)
		}
		if p.test.Condition != nil {
			return p.fail(t.pos, "the condition is given twice")
		}
		f, err := p.formula(0)
		if err != nil {
			return err
		}
		p.test.Condition = &Condition{q, f}
	}
}

// listed reads "[x; P0:r0;]": values that are counted in addition to those of the condition.
func (p *parser) listed() error {
	if err := p.expect("[", "after locations"); err != nil {
		return err
	}
	for !p.accept("]") {
		f, err := p.value()
		if err != nil {
			return err
		}
		p.test.listed = append(p.test.listed, f)
		if !p.accept(";") && !p.is("]") {
			return p.fail(p.peek().pos, `%v where ";" or "]" is expected after a location`, p.peek())
		}
	}
	return nil
}

// The operators of formulas, by strength.
var connectives = []map[string]string{{`\/`: "or", "||": "or", "or": "or"}, {`/\`: "and", "&&": "and", "and": "and"}}

func (p *parser) formula(level int) (f *Formula, err error) {
	err = p.nested(func() error {
		if level == len(connectives) {
			f, err = p.comparison()
		} else {
			f, err = p.formula(level + 1)
		}
		return err
	})
	for err == nil && level < len(connectives) {
		op := connectives[level][p.peek().text]
		if op == "" || p.peek().kind == text {
			break
		}
		p.at++
		var right *Formula
		if right, err = p.formula(level + 1); err == nil {
			f = &Formula{op: op, args: []*Formula{f, right}}
		}
	}
	return f, err
}

func (p *parser) comparison() (*Formula, error) {
	if p.accept("~") || p.accept("!") || p.accept("not") {
		f, err := p.formula(len(connectives))
		if err != nil {
			return nil, err
		}
		return &Formula{op: "not", args: []*Formula{f}}, nil
	}
	if p.accept("(") {
		f, err := p.formula(0)
		if err != nil {
			return nil, err
		}
		return f, p.expect(")", "after a formula")
	}
	for word, value := range map[string]int64{"true": 1, "false": 0} {
		if p.accept(word) {
			return &Formula{kind: 'n', value: value}, nil
		}
	}
	before := p.peek().pos
	left, err := p.value()
	if err != nil {
		return nil, err
	}
	t := p.take()
	if t.kind != mark || !slices.Contains([]string{"==", "=", "!=", "<", "<=", ">", ">="}, t.text) {
		return nil, p.fail(t.pos, "%v where a comparison is expected: ==, !=, <, <=, > or >=", t)
	}
	behind := p.peek().pos
	right, err := p.value()
	if err == nil {
		err = p.inRange(left, right, behind)
	}
	if err == nil {
		err = p.inRange(right, left, before)
	}
	if err != nil {
		return nil, err
	}
	return &Formula{op: t.text, args: []*Formula{left, right}}, nil
}

// inRange refuses the comparison of a register of a launch with a number that the register cannot have. Such a
// comparison has the same result in all executions: with -1, a condition "never" of a .b32 register would always hold.
func (p *parser) inRange(register, number *Formula, where pos) error {
	if p.registers == nil || register.kind != 'r' || number.kind != 'n' {
		return nil
	}
	least, most := p.registers.Range(register.reg)
	if number.value >= least && number.value <= most {
		return nil
	}
	return p.fail(where, "the register %s has values from %d to %d, never %d", register.name, least, most, number.value)
}

// value reads a number, P0:r, x or a[1].
func (p *parser) value() (*Formula, error) {
	t := p.peek()
	if _, isConst := p.consts[t.text]; t.kind == number || p.is("-") || t.kind == word && isConst {
		begin := t.pos
		v, err := p.integer("a value")
		if err == nil && p.accept(":") { // 0:r0 is P0:r0
			return p.registerOf(token{kind: word, text: fmt.Sprintf("P%d", v), pos: begin})
		}
		return &Formula{kind: 'n', value: v}, err
	}
	bracket := p.accept("[")
	name, err := p.name("a variable, or of a thread and its register")
	if err != nil {
		return nil, err
	}
	if p.accept(":") {
		return p.registerOf(name)
	}
	i, ok := p.shared[name.text]
	if !ok {
		return nil, p.fail(name.pos, "there is no shared variable %q%s; a register is written THREAD:REGISTER", name.text,
			hint(name.text, slices.Sorted(maps.Keys(p.shared))))
	}
	v := &p.test.Variables[i]
	n := int64(0)
	if v.Array || !bracket && p.is("[") {
		if err := p.expect("[", "after the name of an array"); err != nil {
			return nil, err
		}
		if n, err = p.integer("an index"); err != nil {
			return nil, err
		}
		if n < 0 || n >= int64(v.Size) {
			return nil, p.fail(name.pos, "the index %d is outside of %s[%d]", n, v.Name, v.Size)
		}
		if err := p.expect("]", "after an index"); err != nil {
			return nil, err
		}
	}
	if bracket {
		if err := p.expect("]", "after the variable"); err != nil {
			return nil, err
		}
	}
	loc := v.First + int32(n)
	return &Formula{kind: 'x', loc: loc, name: p.test.Location(loc)}, nil
}

func (p *parser) registerOf(name token) (*Formula, error) {
	if p.registers != nil {
		return p.registerIn(name)
	}
	var names []string
	for i := range p.test.Threads {
		th := &p.test.Threads[i]
		names = append(names, th.Name)
		if th.Name != name.text {
			continue
		}
		r, err := p.name("a register")
		if err != nil {
			return nil, err
		}
		reg, ok := th.regs[strings.TrimPrefix(r.text, "%")]
		if !ok {
			return nil, p.fail(r.pos, "the thread %s has no register %q%s", th.Name, r.text, hint(r.text, slices.Sorted(maps.Keys(th.regs))))
		}
		return &Formula{kind: 'r', thread: i, reg: reg, name: strings.Join([]string{th.Name, r.text}, ":")}, nil
	}
	return nil, p.fail(name.pos, "there is no thread %q%s", name.text, hint(name.text, names))
}

// registerIn is registerOf for a launch.
func (p *parser) registerIn(name token) (*Formula, error) {
	thread, err := strconv.Atoi(strings.TrimPrefix(name.text, "P"))
	if n := p.registers.Threads(); err != nil || thread < 0 || thread >= n || name.text != fmt.Sprintf("P%d", thread) {
		return nil, p.fail(name.pos, "there is no thread %q; the launch has the threads P0 to P%d", name.text, n-1)
	}
	r, err := p.name("a register")
	if err != nil {
		return nil, err
	}
	number, err := p.registers.Number(r.text)
	if err != nil {
		return nil, p.fail(r.pos, "%v", err)
	}
	return &Formula{kind: 'r', thread: thread, reg: number, name: name.text + ":" + r.text}, nil
}
