package engine

import (
	"slices"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
)

// A clock may show any value. Threads explores a thread that reads a clock if the thread behaves the same whatever the
// clock shows. That is the case if the clock only determines how long to wait before the next attempt, as when libcu++
// waits for atomic variables, latches and semaphores. Registers and bytes that depend on a clock are marked, in the
// same way as depends marks what depends on reads. If the guard of an instruction is a marked register, the thread is
// run both ways up to its next request. Both ways must lead to the same request; whatever else differs afterwards is
// marked. A request, an address or a target that is marked cannot be explored.

// shown is the mark. It uses the bit of a read.
const shown = 1 << (lastRead - 1)

// bit returns the bit of a read in a set.
func (t *Threads) bit(read uint64) uint64 {
	if t.clocks && read >= lastRead-1 {
		return 1 << lastRead
	}
	return 1 << min(read, lastRead)
}

// told returns a set as other code uses it: a bit for each read, where the last bit represents all further reads.
func (t *Threads) told(set uint64) uint64 {
	if t.clocks {
		if set &^= shown; set>>lastRead != 0 {
			set |= 1 << (lastRead - 1)
		}
	}
	return set
}

// maxForks is the most guards that may depend on clocks between two requests, over all ways.
const maxForks = 256

// requestAgain is not a request: the thread has returned to a state from which it has begun to run both ways. Since
// time passes, it leaves the loop by another way.
const requestAgain RequestKind = 255

func isClock(s isa.SpecialID) bool { return s >= isa.Clock && s <= isa.GlobalTimerHi }

func readsClock(in *isa.Inst) bool {
	return in.Class == isa.Special && slices.ContainsFunc(in.Src, func(o isa.Operand) bool { return o.Kind == isa.SpecialReg && isClock(o.Special) })
}

// readsClocks reports whether a thread may read a clock.
func (t *Threads) readsClocks() bool {
	w, i := t.lane(0)
	w.lanes[i].start(t.r, w.tid(i))
	found := false
	t.reachable(&w.lanes[i], func(in *isa.Inst) { found = found || readsClock(in) })
	return found
}

// timed handles clocks before lane i executes an instruction. ok says that this has led to a request.
func (t *Threads) timed(w *Warp, i int, in *loader.Instr, place uint32) (s State, q Request, ok bool) {
	d, ln := t.depends, &w.lanes[i]
	d.fit(ln)
	if d.guard(ln, in)&shown != 0 {
		s, q = t.either(w, i, in, place)
		return s, q, true
	}
	if in.Guard >= 0 && (ln.regs[in.Guard]&1 != 0) == in.GuardNot {
		return "", Request{}, false
	}
	all, first := d.sources(ln, in)
	all, first = all&shown, first&shown
	var bad bool
	switch in.Class {
	case isa.Load, isa.Store, isa.Atomic, isa.Call: // of the thread's own memory, or builtin; others are requests
		bad = first != 0
	case isa.Branch, isa.Exit, isa.Ret, isa.Trap:
		bad = all != 0
	}
	if !bad && all != 0 {
		_, bad = t.request(w, i, in, place, 0)
	}
	if bad {
		s, q = t.depending(ln, place)
	}
	return s, q, bad
}

// depending returns the request for a dependence that cannot be explored.
func (t *Threads) depending(ln *lane, place uint32) (State, Request) {
	return t.encode(ln, nil, &Request{Kind: RequestUnsupported, Place: place, Message: "what the thread does next depends on what a clock shows: that is not explored"})
}

// either runs lane i to its next request with both values of the guard of its current instruction.
func (t *Threads) either(w *Warp, i int, in *loader.Instr, place uint32) (State, Request) {
	ln := &w.lanes[i]
	from, _ := t.encode(ln, nil, &Request{})
	if slices.Contains(t.forking, from) {
		return from, Request{Kind: requestAgain}
	}
	if t.forks++; t.forks > maxForks {
		return t.depending(ln, place)
	}
	t.forking = append(t.forking, from)
	defer func() { t.forking = t.forking[:len(t.forking)-1] }()
	var s State
	q := Request{Kind: requestAgain}
	for value := range uint64(2) {
		t.decode(ln, from)
		ln.regs[in.Guard] = value // the value is known on this way
		*t.depends.reg(ln, int32(in.Guard)) &^= shown
		to, r := t.run(w, i, nil, false)
		switch {
		case r.Kind == requestAgain:
		case q.Kind == requestAgain, r.Kind == RequestUnsupported:
			s, q = to, r
		case !t.join(ln, &s, &q, to, &r):
			t.decode(ln, from)
			return t.depending(ln, place)
		}
		if q.Kind == RequestUnsupported {
			break
		}
	}
	if q.Kind == requestAgain && len(t.forking) == 1 {
		t.decode(ln, from)
		return t.depending(ln, place)
	}
	return s, q
}

// join merges the results of two ways into s and q. It fails if they lead to different requests.
func (t *Threads) join(ln *lane, s *State, q *Request, to State, r *Request) bool {
	back := q.Back || r.Back
	a, b := *q, *r
	a.Back, b.Back, a.Plain, b.Plain, a.Local, b.Local = false, false, 0, 0, 0, 0
	if a != b {
		return false
	}
	q.Back = back
	if *s == to {
		return true
	}
	d := t.depends
	t.decode(ln, *s)
	up, top := slices.Clone(ln.up), ln.frame
	regs, param, local := slices.Clone(ln.allRegs), slices.Clone(ln.param), slices.Clone(ln.local)
	marks := depends{regs: slices.Clone(d.regs), param: slices.Clone(d.param), local: slices.Clone(d.local), control: d.control, reads: d.reads}
	t.decode(ln, to)
	if !slices.Equal(up, ln.up) || top != ln.frame || d.control != marks.control || d.reads != marks.reads ||
		!merge(ln.allRegs, regs, d.regs, marks.regs) || !merge(ln.param, param, d.param, marks.param) || !merge(ln.local, local, d.local, marks.local) {
		return false
	}
	*s, *q = t.encode(ln, nil, q)
	return true
}

// merge marks the values that differ. It returns false if the two depend on several reads.
func merge[T comparable](values, others []T, marks, otherMarks []uint64) bool {
	var zero T
	for i := range values {
		other := uint64(0)
		if i < len(otherMarks) {
			other = otherMarks[i]
		}
		if (marks[i]^other)&^shown != 0 {
			return false
		}
		marks[i] |= other
		if i >= len(others) || values[i] != others[i] {
			values[i] = zero
			marks[i] |= shown
		}
	}
	return true
}
