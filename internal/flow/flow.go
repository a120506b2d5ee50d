// Package flow finds the places in a function where a barrier of the block would order two of its instructions. It
// works on a copy of the function's control flow that can be stored with a trace.
package flow

import (
	"slices"

	"fencepost.dev/fencepost/internal/isa"
)

// Code is the control flow of a function. Instructions are numbered from 0.
type Code struct {
	Function string // linker name
	File     string // of the PTX
	Lines    []int  // of each instruction in the PTX
	// Jumps holds the successors of each instruction, unless the next instruction is the only one.
	Jumps map[int][]int
	// Barriers are the instructions at which all threads of the block that reach them wait for each other; ascending.
	Barriers []int
	// Divergent are the instructions that some threads of a block may execute and others may not, as ranges [from, to).
	Divergent [][2]int
}

// Of describes the control flow of a function.
func Of(f *isa.Func) *Code {
	c := graph(f, map[*isa.Func]bool{})
	c.diverge(f)
	return c
}

// graph describes a function without Divergent. known says for functions whether each call of them is a barrier.
func graph(f *isa.Func, known map[*isa.Func]bool) *Code {
	c := &Code{Function: f.Name, Jumps: map[int][]int{}}
	for i := range f.Insts {
		in := &f.Insts[i]
		line := 0
		if in.Source != nil {
			line = int(in.Source.Pos.Line)
		}
		if in.File != nil {
			c.File = in.File.Name
		}
		c.Lines = append(c.Lines, line)
		if next := successors(f, i); !slices.Equal(next, []int{i + 1}) {
			c.Jumps[i] = next
		}
		if in.Guard < 0 && waits(in, known) {
			c.Barriers = append(c.Barriers, i)
		}
	}
	return c
}

// waits reports whether an instruction is a barrier, or calls a function that no thread leaves without one.
func waits(in *isa.Inst, known map[*isa.Func]bool) bool {
	switch {
	case in.Class == isa.Barrier: // with a count, or a number in a register, it may be a barrier of some threads only
		return in.Op != isa.OpArrive && in.Src[0].Kind == isa.Imm && in.Src[1].Kind == isa.Sink
	case in.Class != isa.Call || in.Callee == nil || len(in.Callee.Insts) == 0:
		return false
	}
	callee := in.Callee
	if w, ok := known[callee]; ok {
		return w
	}
	known[callee] = false // the assumption for a recursion
	c := graph(callee, known)
	known[callee] = slices.Contains(c.Barriers, 0)
	if !known[callee] {
		known[callee] = !slices.ContainsFunc(c.reached(0), func(i int) bool { return callee.Insts[i].Class == isa.Ret }) &&
			callee.Insts[0].Class != isa.Ret
	}
	return known[callee]
}

// successors returns the possible successors of instruction i, ascending.
func successors(f *isa.Func, i int) []int {
	in := &f.Insts[i]
	next := []int{}
	for _, t := range in.Targets {
		next = append(next, int(t))
	}
	stops := false
	switch in.Class {
	case isa.Ret, isa.Exit, isa.Trap, isa.Branch:
		stops = in.Guard < 0
	}
	if !stops && i+1 < len(f.Insts) {
		next = append(next, i+1)
	}
	slices.Sort(next)
	return slices.Compact(next)
}

// Valid reports whether a description that was read from a trace is consistent.
func (c *Code) Valid() bool {
	n := len(c.Lines)
	if n == 0 || c.Jumps[n-1] == nil {
		return false
	}
	for i, next := range c.Jumps {
		if i < 0 || i >= n || slices.ContainsFunc(next, func(x int) bool { return x < 0 || x >= n }) {
			return false
		}
	}
	return true
}

// next returns the successors of instruction i.
func (c *Code) next(i int) []int {
	if j, ok := c.Jumps[i]; ok {
		return j
	}
	return []int{i + 1}
}

// At is the instruction in a line of the PTX, -1 if there is none or more than one.
func (c *Code) At(line int) int {
	i := slices.Index(c.Lines, line)
	if i < 0 || slices.Contains(c.Lines[i+1:], line) {
		return -1
	}
	return i
}

// Gap is the place of a missing barrier between two instructions.
type Gap struct {
	From, To int   // the instructions: a path leads from From to To without a barrier
	Points   []int // a barrier right before any one of these orders the two, and all threads reach it; ascending
}

// Between finds the place of one missing barrier between instructions p and q of different threads, which are given in
// either order. It is not ok if paths without a barrier lead both from p to q and back, because two barriers are then
// missing; if there is no such path; or if no point is on all paths and reached by all threads.
func (c *Code) Between(p, q int) (Gap, bool) {
	there, back := c.open(p, q), c.open(q, p)
	switch {
	case there && p == q:
	case there == back:
		return Gap{}, false
	case back:
		p, q = q, p
	}
	g := Gap{From: p, To: q, Points: slices.DeleteFunc(c.cuts(p, q), c.divergent)}
	slices.Sort(g.Points)
	return g, len(g.Points) > 0
}

// Repeats reports whether a path without a barrier leads from i to i.
func (c *Code) Repeats(i int) bool { return c.open(i, i) }

// open reports whether a path without a barrier leads from p to q.
func (c *Code) open(p, q int) bool { return slices.Contains(c.reached(p), q) }

// reached returns the instructions to which paths without a barrier lead from p, including barriers at their ends.
func (c *Code) reached(p int) []int {
	seen := make([]bool, len(c.Lines))
	var all []int
	work := slices.Clone(c.next(p))
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		all = append(all, i)
		if _, barrier := slices.BinarySearch(c.Barriers, i); !barrier {
			work = append(work, c.next(i)...)
		}
	}
	return all
}

// cuts returns the instructions, including q, that are on every path from p to q, excluding p. All of them are on any
// one path. An instruction of that path is a cut if nothing before it leads past it.
func (c *Code) cuts(p, q int) []int {
	path := c.path(p, q)
	at := make(map[int]int, len(path)) // position in the path
	for i, x := range path {
		at[x] = i
	}
	seen := make([]bool, len(c.Lines))
	var cuts []int
	furthest := -1
	work := slices.Clone(c.next(p))
	for i, x := range path {
		for len(work) > 0 {
			y := work[len(work)-1]
			work = work[:len(work)-1]
			if j, on := at[y]; on {
				furthest = max(furthest, j)
			} else if !seen[y] {
				seen[y] = true
				work = append(work, c.next(y)...)
			}
		}
		if furthest <= i {
			cuts = append(cuts, x)
		}
		if x != q {
			work = append(work, c.next(x)...)
		}
	}
	return cuts
}

// path is a shortest path from p to q, without p and with q; nil if there is none.
func (c *Code) path(p, q int) []int {
	const start = -1
	from := map[int]int{}
	var queue []int
	enter := func(by int, list []int) {
		for _, x := range list {
			if _, ok := from[x]; !ok {
				from[x] = by
				queue = append(queue, x)
			}
		}
	}
	enter(start, c.next(p))
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		if x != q {
			enter(x, c.next(x))
			continue
		}
		var out []int
		for x != start {
			out = append(out, x)
			x = from[x]
		}
		slices.Reverse(out)
		return out
	}
	return nil
}

func (c *Code) divergent(i int) bool {
	return slices.ContainsFunc(c.Divergent, func(r [2]int) bool { return i >= r[0] && i < r[1] })
}
