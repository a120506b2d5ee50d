package litmus

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/verify/model"
)

// parser reads a file. It emits the code of threads while reading. The kernel of a grid is read once for each thread,
// with the numbers of the thread as constants.
type parser struct {
	file    string
	tokens  []token
	at      int
	options Options
	test    *Test
	shared  map[string]int   // index in test.Variables
	virtual map[string]int32 // the virtual addresses of variables and of their aliases
	consts  map[string]int64
	grid    [2]int // blocks, threads of each
	gridAt  pos
	quorums []quorum // of barriers in the PTX style
	// registers are those of a launch; nil for a litmus test, whose threads have theirs.
	registers Registers
	*thread
	depth  int // of nested statements and expressions
	instrs int // of the threads so far
}

// maxDepth bounds the nesting of statements and expressions, and with it the stack.
const maxDepth = 200

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != eof {
		p.at++
	}
	return t
}

func (p *parser) fail(at pos, format string, args ...any) error {
	line, col := Line(int32(at))
	return &Error{p.file, line, col, fmt.Sprintf(format, args...)}
}

// is reports whether the next token is the mark or word s.
func (p *parser) is(s string) bool {
	t := p.peek()
	return (t.kind == mark || t.kind == word) && t.text == s
}

func (p *parser) accept(s string) bool {
	if p.is(s) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(s, after string) error {
	if p.accept(s) {
		return nil
	}
	t := p.peek()
	return p.fail(t.pos, "%v where %q is expected %s", t, s, after)
}

func (p *parser) name(what string) (token, error) {
	t := p.take()
	if t.kind != word {
		return t, p.fail(t.pos, "%v where the name of %s is expected", t, what)
	}
	return t, nil
}

// integer reads a number with an optional sign.
func (p *parser) integer(what string) (int64, error) {
	negative := p.accept("-")
	t := p.take()
	if c, ok := p.consts[t.text]; ok && t.kind == word {
		t.kind, t.value = number, c
	}
	if t.kind != number {
		return 0, p.fail(t.pos, "%v where %s is expected, a number", t, what)
	}
	if negative {
		return -t.value, nil
	}
	return t.value, nil
}

// whole reads the whole file.
func (p *parser) whole() error {
	head := p.take()
	switch {
	case head.kind == word && head.text == "C":
	case head.kind == word && head.text == "PTX":
	default:
		if head.kind == eof {
			return p.fail(head.pos, `the file is empty: begin it with "C NAME" or "PTX NAME"`)
		}
		return p.fail(head.pos, `%v where the style is expected: begin the file with "C NAME" or "PTX NAME"`, head)
	}
	line, _ := Line(int32(head.pos))
	if l, _ := Line(int32(p.peek().pos)); l != line || p.peek().kind != word {
		return p.fail(p.peek().pos, "%v where the name of the test is expected: %q", p.peek(), head.text+" NAME")
	}
	p.test.Name = p.take().text
	var doc []string
	for p.peek().kind == text {
		doc = append(doc, unquote(p.take().text))
	}
	p.test.Doc = strings.Join(doc, "\n")
	p.consts = map[string]int64{}
	var err error
	if head.text == "C" {
		err = p.scopedC()
	} else {
		err = p.ptx()
	}
	if err != nil {
		return err
	}
	if err := p.final(); err != nil {
		return err
	}
	var keep []([]int32)
	for range p.test.Threads {
		keep = append(keep, nil)
	}
	for _, f := range append([]*Formula{p.test.Filter, p.test.formula()}, p.test.listed...) {
		f.registers(func(thread int, reg int32) { keep[thread] = append(keep[thread], reg) })
	}
	for i := range p.test.Threads {
		p.test.Threads[i].code.finish(keep[i], p.options.PTX)
	}
	return nil
}

func (t *Test) formula() *Formula {
	if t.Condition == nil {
		return nil
	}
	return t.Condition.Formula
}

// declare adds a shared variable.
func (p *parser) declare(name token, size int64, array bool, value int64) error {
	if _, ok := p.shared[name.text]; ok {
		return p.fail(name.pos, "%q is declared twice", name.text)
	}
	if _, ok := p.consts[name.text]; ok {
		return p.fail(name.pos, "%q is a constant already", name.text)
	}
	if size < 1 || size > int64(maxLocations-len(p.test.initial)) {
		return p.fail(name.pos, "%q has %d elements; a test has from 1 to %d locations", name.text, size, maxLocations)
	}
	p.shared[name.text] = len(p.test.Variables)
	p.virtual[name.text] = int32(len(p.virtual))
	p.test.Variables = append(p.test.Variables, Variable{name.text, int32(len(p.test.initial)), int(size), array})
	for range size {
		p.test.initial = append(p.test.initial, value)
	}
	return nil
}

// placeLevels are the levels of a place.
var placeLevels = []string{"cta", "cluster", "gpu"}

// place reads the text after the @ of a thread: "cta 0, cluster 0, gpu 0", of which parts may be left out.
func (p *parser) place() (model.Place, error) {
	at := map[string]int64{}
	for {
		t := p.take()
		if t.kind != word || !slices.Contains(placeLevels, t.text) {
			return model.Place{}, p.fail(t.pos, `%v where a place is expected, as in "@ cta 0, gpu 0"`, t)
		}
		n, err := p.integer("the number of the " + t.text)
		if err != nil {
			return model.Place{}, err
		}
		if n < 0 || n >= 1<<10 {
			return model.Place{}, p.fail(t.pos, "the %s has the number %d; from 0 to 1023 is possible", t.text, n)
		}
		at[t.text] = n
		if !p.accept(",") {
			break
		}
	}
	// Numbers count within the enclosing level, and a place is unique in the whole system.
	gpu := int32(at["gpu"])
	cluster := gpu<<10 | int32(at["cluster"])
	if _, ok := at["cluster"]; !ok {
		cluster = gpu<<20 | 1<<19 | int32(at["cta"]) // a cluster of its own
	}
	return model.Place{GPU: gpu, Cluster: cluster, CTA: gpu<<20 | int32(at["cluster"])<<10 | int32(at["cta"])}, nil
}

// nested bounds the nesting depth of the text that f reads.
func (p *parser) nested(f func() error) error {
	if p.depth++; p.depth > maxDepth {
		return p.fail(p.peek().pos, "statements and expressions are nested more than %d deep", maxDepth)
	}
	err := f()
	p.depth--
	return err
}

func hint(name string, known []string) string { return nearest.Hint(name, known) }
