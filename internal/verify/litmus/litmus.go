// Package litmus reads litmus tests: small concurrent programs with a condition on their final states. docs/verify.md
// describes the two styles, scoped C and PTX.
package litmus

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// Test is a litmus test. It is an explore.Program.
type Test struct {
	Name      string
	File      string
	Doc       string // the quoted lines
	Threads   []Thread
	Variables []Variable
	Condition *Condition // nil if there is none
	Filter    *Formula   // nil if there is none
	listed    []*Formula // values that are counted although neither Condition nor Filter mentions them
	initial   []int64    // by location
	unroll    int64
	words     int
}

// Thread is a thread of a test.
type Thread struct {
	Name  string
	Place model.Place
	code  *code
	regs  map[string]int32
	init  map[string]int64
}

// Variable is a shared variable or array.
type Variable struct {
	Name  string
	First int32 // its first location
	Size  int   // 1 for a variable that is not an array
	Array bool
}

// Options select how a test is read.
type Options struct {
	Unroll      int // iterations of a loop, 0 for DefaultUnroll
	Grid, Block int // instead of the numbers in a grid declaration; 0 for those
	// PTX says that the test is for the model PTX: it may have proxies, and its steps carry their dependencies.
	PTX bool
}

// DefaultUnroll is the bound of loops that are not recognised as waiting.
const DefaultUnroll = 64

// The limits of a test.
const (
	maxThreads   = 1024
	maxLocations = 1 << 16
	maxInstrs    = 1 << 20 // of all threads of a kernel
	maxLocal     = 1 << 22 // that a thread executes between two steps
)

// Parse reads a litmus test. file is its name in messages. An error is an *Error.
func Parse(file, src string, o Options) (*Test, error) {
	if o.Unroll <= 0 {
		o.Unroll = DefaultUnroll
	}
	tokens, err := lex(file, src)
	if err != nil {
		return nil, err
	}
	p := &parser{file: file, tokens: tokens, options: o, test: &Test{File: file, unroll: int64(o.Unroll)}, shared: map[string]int{}, virtual: map[string]int32{}}
	if err := p.whole(); err != nil {
		return nil, err
	}
	t := p.test
	for i := range t.Threads {
		t.words = max(t.words, t.Threads[i].code.words)
	}
	return t, nil
}

// Places implements explore.Program.
func (t *Test) Places() []model.Place {
	out := make([]model.Place, len(t.Threads))
	for i := range t.Threads {
		out[i] = t.Threads[i].Place
	}
	return out
}

// Locations is the number of locations.
func (t *Test) Locations() int { return len(t.initial) }

// Apply implements explore.Program.
func (t *Test) Apply(op *explore.Op, old int64) (int64, bool) { return op.Apply(old) }

// Initial implements explore.Program.
func (t *Test) Initial(loc int32) int64 { return t.initial[loc] }

// StateWords implements explore.Program.
func (t *Test) StateWords() int { return t.words }

// Start implements explore.Program.
func (t *Test) Start(i int, s []int64, op *explore.Op) {
	th := &t.Threads[i]
	for name, v := range th.init {
		s[stateRegs+th.regs[name]] = v
	}
	th.code.run(s, t.unroll, op)
}

// Pass records that a thread in a state has passed a barrier that is not a step of the test: the iteration changes
// something.
func (t *Test) Pass(s []int64) { s[stateEffects]++; s[stateReads]++ }

// Resume implements explore.Program.
func (t *Test) Resume(i int, s []int64, value int64, op *explore.Op) {
	c := t.Threads[i].code
	c.complete(s, value)
	c.run(s, t.unroll, op)
}

// Alike implements explore.Program.
func (t *Test) Alike(i int, a, b []int64) bool {
	to := stateRegs + t.Threads[i].code.regs
	return a[statePC] == b[statePC] && slices.Equal(a[stateRegs:to], b[stateRegs:to])
}

// OneProxy reports whether all accesses are by the generic proxy and by the first virtual address of a variable.
func (t *Test) OneProxy() bool {
	address := map[int32]int32{}
	for i := range t.Threads {
		for _, in := range t.Threads[i].code.instrs {
			switch in.op {
			case opLoad, opStore, opUpdate:
				if a, ok := address[in.base]; in.proxy != model.Generic || ok && a != in.address {
					return false
				}
				address[in.base] = in.address
			}
		}
	}
	return true
}

// Location is the name of a location.
func (t *Test) Location(loc int32) string {
	for i := range t.Variables {
		if v := &t.Variables[i]; loc >= v.First && loc < v.First+int32(v.Size) {
			if v.Array {
				return fmt.Sprintf("%s[%d]", v.Name, loc-v.First)
			}
			return v.Name
		}
	}
	return fmt.Sprintf("location %d", loc)
}

// Line returns the line and column of the place of a step.
func (t *Test) Line(p int32) (line, col int) { return Line(p) }

// unquote returns the text of a quoted token.
func unquote(s string) string { return strings.Trim(s, `"`) }
