package verify

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/kernel"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

// Expected is an element of global memory with an expected value at the end of every execution.
type Expected struct {
	Name  string // of the buffer
	Index uint64
	Addr  uint64
	Size  int // bytes
	// Judge returns the value as text and whether it is the expected one.
	Judge func(data []byte) (value string, ok bool)
}

// maxListed is the greatest number of expected elements that are listed with each final state. If there are more, only
// those with unexpected values are listed.
const maxListed = 8

// Condition is a claim about the final memory of all executions. The locations of the formula are elements of buffers.
type Condition struct {
	litmus.Condition
	Observed []*litmus.Formula
	// Element returns the address, the size in bytes and the signedness of the element that a location stands for.
	Element func(loc int32) (addr uint64, size int, signed bool)
	// Registers are the registers that the formula mentions, by their number.
	Registers []Register
}

// Register is a register of a kernel.
type Register struct {
	Slot   int32 // see isa.Func.Register
	Bytes  int
	Signed bool
}

// slots returns the slots of the registers of a condition, which may be nil.
func (c *Condition) slots() (out []int32) {
	if c != nil {
		for _, r := range c.Registers {
			out = append(out, r.Slot)
		}
	}
	return out
}

// memoryView is an execution whose locations are elements of buffers.
type memoryView struct {
	explore.Execution
	p *kernel.Program
	c *Condition
}

// Final implements explore.Execution.
func (m memoryView) Final(loc int32) int64 {
	addr, size, signed := m.c.Element(loc)
	var b [8]byte
	copy(b[:], m.p.Final(m.Execution, addr, uint64(size)))
	return number(binary.LittleEndian.Uint64(b[:]), size, signed)
}

// Register implements litmus.Registered.
func (m memoryView) Register(thread int, n int32) int64 {
	r := m.c.Registers[n]
	return number(m.p.Register(m.Execution, thread, r.Slot), r.Bytes, r.Signed)
}

// number returns the value of the low bytes of v.
func number(v uint64, bytes int, signed bool) int64 {
	shift := 64 - 8*bytes
	if signed {
		return int64(v<<shift) >> shift
	}
	return int64(v << shift >> shift)
}

// TooLarge says that a launch has more threads than can be explored.
type TooLarge = kernel.TooLarge

// Kernel explores a launch of a kernel, starting from the current memory. The error says why it cannot begin.
func Kernel(ctx context.Context, l *engine.Launch, expected []Expected, condition *Condition, o Options) (*Result, error) {
	use := kernel.Options{Unroll: o.Unroll, Dependencies: o.Model == PTX, Attempts: o.Checkpoint != nil, Registers: condition.slots()}
	if o.Jobs > 1 {
		alone, cancel := context.WithCancel(ctx)
		use.Refused = cancel
		r, refusal, err := exploreKernel(alone, l, expected, condition, o, use)
		cancel()
		if refusal == nil {
			return r, err
		}
		// What is refused, and when, depends on the order in which the goroutines explore. Refusals mostly happen
		// early.
		o.Jobs, use.Refused = 1, nil
	}
	// A checkpoint belongs to a search with fixed settings: it keeps following what it followed at the start, with the
	// widths of the start.
	if o.Checkpoint == nil {
		use.Widths = kernel.Widths{}
	}
	var before *Result // the result with elements
	for {
		r, refusal, err := exploreKernel(ctx, l, expected, condition, o, use)
		switch {
		case refusal == nil:
			return r, err
		case refusal.Regroup || refusal.Attempts:
			use.Attempts = use.Attempts || refusal.Attempts
		case inWords(&use, refusal):
			before = r
		case before != nil:
			return before, err
		default:
			return r, err
		}
	}
}

// inWords reports whether another search is to be made with words in place of their elements.
func inWords(use *kernel.Options, refusal *kernel.Refusal) bool {
	if !refusal.Words || use.Words || use.Widths == nil {
		return false
	}
	use.Words, use.Widths = true, kernel.Widths{}
	return true
}

// exploreKernel explores a launch.
func exploreKernel(ctx context.Context, l *engine.Launch, expected []Expected, condition *Condition, o Options, use kernel.Options) (*Result, *kernel.Refusal, error) {
	p, err := kernel.New(l, use)
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	v := newVerifier(kernelLaunch{p}, report.ShortName(report.BareName(l.Kernel)), o)
	switch {
	case condition != nil:
		v.result.Condition = &condition.Condition
		v.complete = func(v *verifier, x explore.Execution) { v.finalState(memoryView{x, p, condition}, condition) }
	case len(expected) > 0:
		v.result.Condition = &litmus.Condition{Quantifier: litmus.ForAll}
		v.complete = func(v *verifier, x explore.Execution) { v.finalMemory(x, p, expected) }
	}
	v.locations = func(n int) []int32 { return observed(p, n, expected, condition) }
	v.search(ctx)
	refusal := p.Refusal()
	if use.Words {
		v.result.Notes = append(v.result.Notes, "atomic operations on bytes and halves are explored as those of their words, which execute them: other accesses "+
			"are as wide as these words, or of another part of them")
	}
	if refusal != nil {
		v.result.Refusal = refusal.Reason
		for _, at := range refusal.Places {
			s := Side{What: "here", frames: v.subject.frames(int32(at))}
			s.File, s.Line, s.Col = place(s.frames)
			v.result.Refused = append(v.result.Refused, s)
		}
	} else if p.Convergent() {
		v.result.Notes = append(v.result.Notes, "threads ask which lanes of their warp are active (activemask, coalesced_threads()): each set of those "+
			"that come there is explored, as nothing says that lanes which have parted meet again")
	}
	return v.finish(), refusal, nil
}

// observed returns, of the first n locations, those with bytes whose final value matters, by address: see
// explore.Options.
func observed(p *kernel.Program, n int, expected []Expected, condition *Condition) []int32 {
	var out []int32
	for loc := range int32(n) {
		space, _, addr, size := p.Location(loc)
		overlaps := func(at uint64, n int) bool { return at < addr+uint64(size) && addr < at+uint64(n) }
		if space == event.Global && (slices.ContainsFunc(expected, func(e Expected) bool { return condition == nil && overlaps(e.Addr, e.Size) }) ||
			condition != nil && slices.ContainsFunc(condition.Observed, func(f *litmus.Formula) bool {
				element, ok := f.Location()
				if !ok {
					return false
				}
				at, n, _ := condition.Element(element)
				return overlaps(at, n)
			})) {
			out = append(out, loc)
		}
	}
	slices.SortFunc(out, func(a, b int32) int {
		_, _, x, _ := p.Location(a)
		_, _, y, _ := p.Location(b)
		return cmp.Compare(x, y)
	})
	return out
}

// finalState counts the final state of an execution, as far as a condition mentions it.
func (v *verifier) finalState(x explore.Execution, c *Condition) {
	v.state = v.state[:0]
	for i, f := range c.Observed {
		if i > 0 {
			v.state = append(v.state, ' ')
		}
		v.state = fmt.Appendf(v.state, "%s=%d", f.Name(), f.Value(x))
	}
	v.outcome(x, func() bool { return c.Formula.Satisfied(x) })
}

// finalMemory counts the final state of an execution.
func (v *verifier) finalMemory(x explore.Execution, p *kernel.Program, expected []Expected) {
	v.state = v.state[:0]
	all := true
	for i := range expected {
		e := &expected[i]
		value, ok := e.Judge(p.Final(x, e.Addr, uint64(e.Size)))
		if all = all && ok; ok && len(expected) > maxListed {
			continue
		}
		if len(v.state) > 0 {
			v.state = append(v.state, ' ')
		}
		v.state = fmt.Appendf(v.state, "%s[%d]=%s", e.Name, e.Index, value)
	}
	if len(v.state) == 0 {
		v.state = append(v.state, "as expected"...)
	}
	v.outcome(x, func() bool { return all })
}
