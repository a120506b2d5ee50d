package session

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/flow"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/report"
)

// cause names the cause of a race, so that races with one cause form one group. It returns nil if the cause is not
// certain.
func cause(r namer, f *detect.Finding, out *report.Finding) *report.Cause {
	if f.Class != detect.Race || len(f.Accesses) != 2 {
		return nil
	}
	if f.Accesses[0].Host != "" && f.Accesses[1].Host != "" {
		return streamCause(f.Accesses[0].Host, f.Accesses[1].Host)
	}
	if f.Accesses[0].Host != "" || f.Accesses[1].Host != "" || f.Accesses[0].Launch.ID != f.Accesses[1].Launch.ID {
		return nil
	}
	switch {
	case f.Kind == detect.MissingBarrier && out.Accesses[0].Block == out.Accesses[1].Block:
		return barrierCause(r, f.Accesses[0].Launch.ID, out)
	case f.Flag != [2]uint32{}:
		return &report.Cause{Key: fmt.Sprintf("flag %s %s\n%s\n%s", f.Kind, f.Fix, stack(r.frames(f.Flag[0])), stack(r.frames(f.Flag[1])))}
	case f.Kind == detect.MixedAtomic || f.Kind == detect.AtomicScope:
		// An access that is not atomic, or not for the other block, races with any other.
		faulty := func(a *detect.Access) bool {
			if f.Kind == detect.AtomicScope {
				return a.Scope < event.ScopeGPU
			}
			return a.Op != detect.AtomicOp && a.Order < event.Relaxed
		}
		x, y := &f.Accesses[0], &f.Accesses[1]
		if faulty(x) == faulty(y) {
			return nil
		}
		if faulty(y) {
			x = y
		}
		return &report.Cause{Key: fmt.Sprintf("access %s\n%s", f.Kind, stack(r.frames(x.Place)))}
	}
	return nil
}

// streamCause is the cause of a race of two operations of streams, given by their names: the later one does not wait
// for the stream of the earlier. One wait orders it after everything that this stream did before, including the
// allocation.
func streamCause(earlier, later string) *report.Cause {
	call, _ := event.CutHostPlace(earlier)
	_, stream, ok := strings.Cut(call, " (")
	if !ok || !strings.Contains(stream, "stream") {
		return nil // a call of the host
	}
	return &report.Cause{Key: fmt.Sprintf("wait for %s\n%s", stream, later)}
}

// stack names a place with the calls that led to it.
func stack(frames []event.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%s %s:%d %s:%d\n", f.Function, f.PTXFile, f.PTXLine, f.File, f.Line)
	}
	return b.String()
}

// functions returns the frames that are functions of the PTX, innermost first. A function that was inlined into another
// has the PTX line of that function. It returns none for a recursion.
func functions(frames []event.Frame) []event.Frame {
	var out []event.Frame
	for i, f := range frames {
		if i+1 < len(frames) && frames[i+1].PTXFile == f.PTXFile && frames[i+1].PTXLine == f.PTXLine {
			continue
		}
		if slices.ContainsFunc(out, func(g event.Frame) bool { return g.Function == f.Function }) {
			return nil
		}
		out = append(out, f)
	}
	return out
}

// barrierCause finds the place where one barrier between two accesses of a block is missing. It examines the innermost
// function that both call stacks share: in it the accesses, or the calls that lead to them, are two instructions.
func barrierCause(r namer, launch uint32, f *report.Finding) *report.Cause {
	p, q := functions(f.Accesses[0].Frames), functions(f.Accesses[1].Frames)
	i, j := len(p)-1, len(q)-1
	for i > 0 && j > 0 && p[i] == q[j] {
		c := r.code(p[i], launch)
		if c == nil {
			return nil
		}
		if at := c.At(p[i].PTXLine); at < 0 || c.Repeats(at) {
			return nil // the two may belong to two turns of a loop
		}
		i, j = i-1, j-1
	}
	if i < 0 || j < 0 || p[i].Function != q[j].Function || p[i].PTXFile != q[j].PTXFile {
		return nil
	}
	c := r.code(p[i], launch)
	if c == nil {
		return nil
	}
	from, to := c.At(p[i].PTXLine), c.At(q[j].PTXLine)
	if from < 0 || to < 0 {
		return nil
	}
	g, ok := c.Between(from, to)
	if !ok {
		return nil
	}
	out := &report.Cause{Key: fmt.Sprintf("barrier in %s %s\n%s", c.Function, c.File, stack(p[i+1:])), Points: g.Points, From: g.From, To: g.To}
	if g.From != from {
		out.First = 1
	}
	return out
}

// codes are the control flows of the functions of a run.
type codes struct {
	of    map[*isa.Func]*flow.Code
	lists map[*isa.Func][]*isa.Func // see callable
}

func (c *codes) get(fn *isa.Func) *flow.Code {
	code, ok := c.of[fn]
	if !ok {
		code = flow.Of(fn)
		if c.of == nil {
			c.of = map[*isa.Func]*flow.Code{}
		}
		c.of[fn] = code
	}
	return code
}

// callable returns a kernel and the functions with code that it may call.
func (c *codes) callable(kernel *isa.Func) []*isa.Func {
	list, ok := c.lists[kernel]
	if ok {
		return list
	}
	list, seen := []*isa.Func{kernel}, map[*isa.Func]bool{kernel: true}
	for i := 0; i < len(list); i++ {
		for _, callee := range list[i].Calls {
			if len(callee.Insts) > 0 && !seen[callee] {
				seen[callee] = true
				list = append(list, callee)
			}
		}
	}
	if c.lists == nil {
		c.lists = map[*isa.Func][]*isa.Func{}
	}
	c.lists[kernel] = list
	return list
}

// budget bounds the work on causes, in instructions examined: a report may have thousands of findings in functions of
// tens of thousands of instructions.
type budget int

const wholeBudget budget = 1 << 23

// spend returns code while there is budget for it, and nil later.
func (b *budget) spend(code *flow.Code) *flow.Code {
	if *b += budget(len(code.Lines)); *b > wholeBudget {
		return nil
	}
	return code
}

// code implements namer.
func (r *once) code(f event.Frame, launch uint32) *flow.Code {
	l, ok := r.launched[launch]
	if !ok {
		return nil
	}
	for _, fn := range r.codes.callable(l.fn) {
		if fn.Name != f.Function {
			continue
		}
		if c := r.codes.get(fn); c.File == f.PTXFile {
			return r.budget.spend(c)
		}
	}
	return nil
}

// code implements namer.
func (t *traceNames) code(f event.Frame, launch uint32) *flow.Code {
	for _, i := range t.Launched[launch] {
		if c := t.Code[i]; c.Function == f.Function && c.File == f.PTXFile {
			return t.budget.spend(c)
		}
	}
	return nil
}

// checkCode drops the code of a damaged trace.
func (a *appendix) checkCode() {
	bad := slices.ContainsFunc(a.Code, func(c *flow.Code) bool { return c == nil || !c.Valid() })
	for _, list := range a.Launched {
		bad = bad || slices.ContainsFunc(list, func(i int) bool { return i < 0 || i >= len(a.Code) })
	}
	if bad {
		a.Code, a.Launched = nil, nil
	}
}
