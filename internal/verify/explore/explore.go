package explore

import (
	"context"

	"fencepost.dev/fencepost/internal/verify/model"
)

// Options select what is explored.
type Options struct {
	Incl model.Inclusion
	// Races requests the search for races.
	Races bool
	// Exits says that a barrier does not wait for threads that have ended. A barrier that an ended thread has not
	// reached is then an ExitedBarrier, otherwise a BarrierDivergence.
	Exits bool
	// Ordered says that the arrivals at a barrier are read-modify-writes, as in the paper: each order of them that
	// agrees with the dependencies of the threads is an execution of its own.
	Ordered bool
	// Symmetric, if not nil, gives for each thread the preceding one in its class of symmetric threads, or -1. Of
	// executions that differ only in the names of threads of a class, one is explored, rarely more. It cannot be
	// combined with Ordered.
	Symmetric []int
	// Overtaken says that executions in which a thread waits forever without need are explored to their ends: see
	// overtaken.go.
	Overtaken bool
	// ReadsFrom says that executions which differ only in coherence order are one, a reads-from class, of which one is
	// explored. The search stops, with Result.SC, if two threads have sc events whose scopes include each other. It
	// cannot be combined with Symmetric.
	ReadsFrom bool
	// Rules are those of the memory model. The zero value is scoped RC11, the only one for Incl, Ordered, Symmetric and
	// ReadsFrom.
	Rules Rules
	// Accessed, if not nil, is called for what threads access, once or a few times for each.
	Accessed func(a Access)
	// Follows, if not nil, is called when a thread writes a location after an atomic read, of the same or another
	// location, without a barrier in between, once or a few times for each such pair.
	Follows func(s Segment)
	// Reads, if not nil, is called for each state in which a thread makes an atomic read, including the first step of
	// an update, once or a few times. reads is the number of reads that the thread has made before.
	Reads func(t int, state []int64, op *Op, reads int)
	// Exchanged, if not nil, is called with the place of each step that exchanges and the value that it returns, once
	// or often.
	Exchanged func(pos int32, value int64)
	// Oldest says that an atomic read that is not part of an update tries the possible sources in coherence order, the
	// first write first, instead of the last first. Behaviour that only a weak memory allows is then found early. It
	// has no effect with ReadsFrom.
	Oldest bool
	// Observed, if not nil, returns, of the given number of locations, those whose last values matter, in an order that
	// is the same in each search. With ReadsFrom, Leaf is called for each combination of the last values that a
	// complete class allows for them.
	Observed func(locations int) []int32
	// Leaf, if not nil, is called for every explored execution: complete ones, and those that are blocked or cut by a
	// bound.
	Leaf func(x Execution, end Ending)
	// Enough, if not nil, is called after each call of Leaf. The search stops if it returns true.
	Enough func() bool
	// Found is called for each error, with the execution so far that shows it. The same error may be reported many
	// times. The search stops if Found returns false.
	Found func(e Error, x Execution) bool
}

// Ending says how an execution ends.
type Ending uint8

// The endings.
const (
	Complete Ending = iota // every thread has ended
	Blocked                // a thread spins, and the value it waits for has been written or may be written in another execution
	Cut                    // a thread has reached the bound of a loop
	Stuck                  // a thread waits forever: no thread can make a step, and each spinning thread has read the last value written
	Diverged               // a thread waits at a barrier that another thread does not reach
)

// ErrorKind is the kind of an error.
type ErrorKind uint8

// The kinds of errors, section 2.1 of the paper.
const (
	AssertionFailed ErrorKind = iota
	DataRace
	HeterogeneousRace
	VolatileRace // of a volatile access; not a DataRace
	PolledRace   // the same, of a flag that a loop polls: of the read in the loop, or of a write that follows such a read
	BarrierDivergence
	ExitedBarrier // a barrier that completed without a thread that has ended
	Deadlock      // every thread that has not ended waits, and at least one spins or loops forever
	Undefined     // a step that exchanges returns an undefined value
	Forbidden     // an execution that a condition forbids; callers find it, not the search
)

// Error is an error of one execution.
type Error struct {
	Kind ErrorKind
	// A and B are events of the execution. For a race, they are the two accesses. For an assertion, A is the last event
	// of the thread that fails, or -1. For divergence, A is the arrival that waits, and B one that must not meet it, or
	// -1. Otherwise both are -1.
	A, B int
	// Thread is the thread that fails or waits. Other is the thread that does not reach its barrier.
	Thread, Other int
	Pos           int32 // of the step of A, for an assertion, divergence and deadlock
	OtherPos      int32
}

// Result counts what was explored.
type Result struct {
	Executions int // complete
	Blocked    int // abandoned: a thread spins on a value that is not the last one written
	Stuck      int // ended in a deadlock or in barrier divergence
	Cut        int // ended by a bound of a loop
	Events     int // of the longest execution
	Graphs     int // of all sizes that were visited
	Stopped    bool
	SC         bool // the search was by reads-from classes and has stopped: see Options.ReadsFrom
	Beyond     bool // the search was under the model PTX and has stopped: see Rules.Partial
	// Err says why the program cannot be explored, and the search has stopped.
	Err error `json:"-"`
}

// Add adds the counts of the next part of a search.
func (r *Result) Add(p Result) {
	r.Executions += p.Executions
	r.Blocked += p.Blocked
	r.Stuck += p.Stuck
	r.Cut += p.Cut
	r.Events = max(r.Events, p.Events)
	r.Graphs += p.Graphs
	r.Stopped = r.Stopped || p.Stopped
	r.SC = r.SC || p.SC
	r.Beyond = r.Beyond || p.Beyond
	if r.Err == nil {
		r.Err = p.Err
	}
}

// explorer is one search.
type explorer struct {
	*Options
	g       *graph
	depth   int // number of nested revisits
	pool    []*graph
	numbers []int32
	trial   []int64 // a state of a thread, and its next step
	trialOp Op
	told    map[Access]bool  // reported to Accessed
	between map[Segment]bool // reported to Follows
	states  map[string]bool  // reported to Reads
	key     []byte
	psc     psc
	blocks  blocks
	result  Result
	ctx     context.Context
	view    graphView
	done    float64 // part of the search that is done
	part    float64 // part of the search that is below the current graph
	left    int     // number of graphs to visit before divide receives the rest; -1: no limit
	divide  func(node any, share float64)
}

// Explore visits all executions of p.
func Explore(ctx context.Context, p Program, o Options) Result {
	s := NewSearch(p)
	s.Explore(ctx, &o, nil, 1, -1, nil)
	r, _ := s.Report(&o)
	return r
}

// NewSearch returns a search along program order, which calls the functions of p.
func NewSearch(p Program) Search { return &search{p: p} }

// search is a Search. Its nodes are graphs.
type search struct {
	p Program
	x explorer
}

func (s *search) Explore(ctx context.Context, o *Options, node any, share float64, graphs int, divide func(node any, share float64)) {
	s.x = explorer{Options: o, ctx: ctx, part: share, left: graphs, divide: divide, pool: s.x.pool}
	if node == nil {
		s.x.g = newGraph(newShape(s.p, o))
		s.x.begin()
	} else {
		s.x.g = node.(*graph)
		s.x.init()
	}
	s.x.visit()
}

func (s *search) Report(o *Options) (Result, float64) {
	r, done := s.x.result, s.x.done
	s.x.Options, s.x.result, s.x.done = o, Result{Stopped: r.Stopped}, 0
	return r, done
}

// begin reports assertions that fail before the first event.
func (x *explorer) begin() {
	x.init()
	for t := range x.g.threads {
		x.assertion(t, -1)
	}
}

func (x *explorer) init() {
	x.trial = make([]int64, x.g.words)
	x.view.executions = &x.result.Executions
	x.view.ends = map[int32]int32{}
}

// visit explores all executions that extend the graph (algorithm 1).
func (x *explorer) visit() {
	if x.result.Stopped {
		return
	}
	if x.left == 0 {
		x.divide(x.g.clone(), x.part)
		return
	}
	x.left--
	x.result.Graphs++
	// Checking axiom SC takes long if there are many sc events.
	if n := x.result.Graphs; n&0x3fff == 0 || x.g.sc > 1 && n&0x1f == 0 {
		x.pause()
	}
	g := x.g
	t := x.next()
	if x.result.Stopped {
		return
	}
	if t < 0 {
		x.leaf()
		return
	}
	op := &g.threads[t].op
	if g.readsFrom && g.ordersSC(t, op) {
		x.result.Stopped, x.result.SC = true, true
		return
	}
	switch op.Kind {
	case Read, Update:
		x.read(t)
	case Write:
		x.write(t)
	case Fence:
		e := g.push(t, model.F, op.Order)
		g.fence(e)
		if g.rules.Partial && g.excluded(e) {
			x.beyond()
		}
		x.resume(e, 0)
		g.pop()
	case Arrive, Signal:
		if op.Converges {
			x.gather(t)
		} else {
			x.arrive(t, op)
		}
	case depart:
		x.leave(t)
	}
}

// acyclic checks the axiom SC, unless the search has been stopped, because the check takes long if there are many sc
// events.
func (x *explorer) acyclic() bool {
	if x.g.sc > 1 && x.ctx.Err() != nil {
		x.result.Stopped = true
	}
	return !x.result.Stopped && x.psc.acyclic(x.g)
}

func (x *explorer) pause() {
	if x.ctx.Err() != nil {
		x.result.Stopped = true
	}
}

// next chooses the thread that makes the next step, and returns -1 if none can. Steps without a choice come first;
// reads come when nothing else is left. A read after which its thread would wait for another comes last, because what
// it waits for is often written before. Any choice that depends on the graph alone is sound.
func (x *explorer) next() int {
	g := x.g
	reader, waiter, free := -1, -1, g.before == nil && len(g.over) == 0
	for t := range g.threads {
		switch g.threads[t].op.Kind {
		case Write, Fence, Arrive, Signal:
			if free || !x.kept(t) {
				return t
			}
		case Refused:
			if free || !x.kept(t) {
				x.result.Stopped = true
				return t
			}
		case depart:
			if free || !x.kept(t) {
				a := &g.events[g.last(t)]
				if missing := g.members(t, &a.op) - len(*g.arrivals(a)); missing == 0 || x.Exits && !a.op.Converges && missing == x.exited(t, a, nil) {
					return t
				}
			}
		case Read, Update:
			switch {
			case reader >= 0 || !free && x.kept(t):
			case !g.threads[t].op.Loops || !x.waits(t):
				reader = t
			case waiter < 0:
				waiter = t
			}
		}
	}
	if reader < 0 {
		return waiter
	}
	return reader
}

// waits reports whether thread t, whose next step is a read, would wait if it read the last value.
func (x *explorer) waits(t int) bool {
	g := x.g
	op := &g.threads[t].op
	w := int32(initial)
	if co := g.locs[op.Loc].co; g.readsFrom {
		w = x.blocks.lastAmong(g, op.Loc, len(g.events), nil)
	} else if len(co) > 0 {
		w = co[len(co)-1]
	}
	copy(x.trial, g.state(t, g.last(t)))
	g.p.Resume(t, x.trial, g.value(w, op.Loc), &x.trialOp)
	return x.trialOp.Awaits()
}

// resume continues the thread of e, whose last event is e, with value, and explores what follows.
func (x *explorer) resume(e int, value int64) {
	x.g.resume(e, value)
	x.proceed(e)
}

// proceed explores what follows event e, whose thread has been continued.
func (x *explorer) proceed(e int) {
	g := x.g
	t := int(g.events[e].thread)
	switch g.threads[t].op.Kind {
	case Fail:
		x.assertion(t, e)
	case Await:
		g.spun = true
		if g.threads[t].op.Awaits() && x.stale(e) && (g.readsFrom || g.changed(int32(e))) {
			x.done += x.part
			return
		}
	case Assumed:
		if g.threads[t].op.Vain && x.stale(e) {
			x.done += x.part
			return
		}
	}
	x.visit()
}

// stale reports whether e, which ended an iteration that changed nothing, has read a value that is not the last one.
// Then the search can stop here. The execution without the iteration is consistent too, and a later write by another
// thread is explored where e reads the last value and waits. This holds for e only: the reads before it may belong to
// an execution in which e reads another value and the loop ends.
func (x *explorer) stale(e int) bool {
	g := x.g
	ev := &g.events[e]
	if ev.kind != model.R {
		return false
	}
	if g.readsFrom {
		w, ok := g.only(ev.op.Loc, len(g.events), nil)
		return w != ev.rf && (ok || !x.blocks.of(g, ev.op.Loc).mayBeLast(ev.rf))
	}
	return g.rank(int32(e)) < len(g.locs[ev.op.Loc].co)-1
}

// assertion reports thread t if it failed after e.
func (x *explorer) assertion(t, e int) {
	if op := &x.g.threads[t].op; op.Kind == Fail {
		x.found(Error{Kind: AssertionFailed, A: e, B: -1, Thread: t, Other: -1, Pos: op.Pos})
	}
}

func (x *explorer) found(e Error) {
	x.view.g = x.g
	if x.Found != nil && !x.result.Stopped && !x.Found(e, &x.view) {
		x.result.Stopped = true
	}
}

func (x *explorer) arrive(t int, op *Op) {
	g := x.g
	rank := int32(0)
	of := g.threads[t].events
	for i := len(of) - 1; i >= 0; i-- {
		if b := &g.events[of[i]]; b.kind == model.Arrival && b.op.Loc == op.Loc {
			rank = b.rank + 1
			break
		}
	}
	waits := op.Kind == Arrive
	e := g.push(t, model.Arrival, model.NA)
	g.events[e].rank = rank
	x.accessed(e)
	a := g.arrivals(&g.events[e])
	*a = append(*a, int32(e))
	if waits {
		g.inherit(e)
		g.threads[t].op.Kind = depart
		x.visit()
	} else {
		x.resume(e, 0)
	}
	g.pop()
}

// exited counts the ended threads of t's barrier that have not arrived with arrival a of t. It calls f, if it is not
// nil, for each.
func (x *explorer) exited(t int, a *event, f func(o int)) int {
	g, n := x.g, 0
	for o := range g.threads {
		if g.threads[o].op.Kind == End && g.groups.Same(t, o, &a.op) && !x.arrived(o, a) {
			if n++; f != nil {
				f(o)
			}
		}
	}
	return n
}

// leave adds the event in which thread t leaves a barrier. Everything before the arrivals happens before it.
func (x *explorer) leave(t int) {
	g := x.g
	own := g.last(t)
	at := g.events[own]
	arrivals := *g.arrivals(&at)
	g.threads[t].op.Kind = Arrive
	e := g.push(t, model.Leave, model.NA)
	var values []int64
	var all []*Op
	for _, a := range arrivals {
		values = append(values, g.events[a].op.Value)
		if at.op.Exchanges {
			all = append(all, &g.events[a].op)
		} else {
			g.hbOf(e).join(g.hbOf(int(a)))
		}
		g.prefixOf(e).join(g.prefixOf(int(a)))
		if o := &g.events[a]; o.op.Pos != at.op.Pos && at.op.Aligned {
			x.found(Error{Kind: BarrierDivergence, A: own, B: int(a), Thread: t, Other: int(o.thread), Pos: at.op.Pos, OtherPos: o.op.Pos})
		}
	}
	if len(arrivals) < g.members(t, &at.op) { // that a thread has ended orders nothing, but the execution depends on it
		x.exited(t, &at, func(o int) {
			if last := g.last(o); last >= 0 {
				g.prefixOf(e).join(g.prefixOf(last))
			}
			if at.op.Lanes != 0 {
				return // bar.warp.sync concerns lanes that have not exited
			}
			x.found(Error{Kind: ExitedBarrier, A: own, B: -1, Thread: t, Other: o, Pos: at.op.Pos, OtherPos: g.threads[o].op.Pos})
		})
	}
	value := at.op.Reduce(values)
	if at.op.Exchanges {
		var ok bool
		if value, ok = g.trades.Exchange(&at.op, all); !ok {
			x.found(Error{Kind: Undefined, A: own, B: -1, Thread: t, Other: -1, Pos: at.op.Pos})
		}
		if x.Exchanged != nil {
			x.Exchanged(at.op.Pos, value)
		}
	}
	if !x.Ordered || at.op.Exchanges {
		x.resume(e, value)
	} else if first := x.firstToLeave(arrivals); first == e {
		x.orders(e, value, arrivals)
	} else { // an event that a revisit keeps must keep the order
		g.prefixOf(e).join(g.prefixOf(first))
		x.resume(e, value)
	}
	g.pop()
}

// firstToLeave returns the event in which the first thread left a barrier. It decides the order of the arrivals.
func (x *explorer) firstToLeave(arrivals []int32) int {
	g, first := x.g, len(x.g.events)
	for _, a := range arrivals {
		ev := &g.events[a]
		if of := g.threads[ev.thread].events; ev.op.Kind == Arrive && int(ev.index)+1 < len(of) {
			first = min(first, int(of[ev.index+1]))
		}
	}
	return first
}

// orders explores what follows e, in which the first thread leaves a barrier, once for each order of the arrivals. The
// rank of e numbers the orders.
func (x *explorer) orders(e int, value int64, arrivals []int32) {
	g, part, n := x.g, x.part, int32(0)
	var add func(placed uint64, count int)
	add = func(placed uint64, count int) {
		if count == len(arrivals) {
			g.events[e].rank = n
			n++
			x.resume(e, value)
			g.threads[g.events[e].thread].op = g.events[e].op
			x.part = 0 // of the estimate, which does not foresee how many there are
			return
		}
		for i, a := range arrivals {
			follows := func() bool { // an arrival that has no place yet
				for j, b := range arrivals {
					if i != j && placed>>j&1 == 0 && g.holds(g.prefixOf(int(a)), b) {
						return true
					}
				}
				return false
			}
			if placed>>i&1 == 0 && !follows() {
				add(placed|1<<i, count+1)
			}
		}
	}
	add(0, 0)
	x.part = part
}

// read explores the next step of thread t, a read or an update, with each write that the read may read from.
func (x *explorer) read(t int) {
	g := x.g
	op := &g.threads[t].op
	order := op.Order
	if op.Kind == Update {
		order = order.OfRead()
	}
	e := g.push(t, model.R, order)
	x.accessed(e)
	x.readIn(e)
	if g.readsFrom {
		x.readAny(e)
		g.pop()
		return
	}
	l := g.locs[g.events[e].op.Loc]
	lo := g.floor(e)
	part, over := x.part, len(g.over) > 0
	x.part /= float64(len(l.co) - lo)
	top := len(l.co) - 1
	oldest := x.Oldest && op.Kind == Read && op.Order.Atomic()
	for i := range top - lo + 1 {
		rank := top - i
		if oldest {
			rank = lo + i
		}
		w := int32(initial)
		if rank >= 0 {
			w = l.co[rank]
		}
		g.reads(e, w)
		if over && g.dead(e) {
			if rank == top {
				x.visit()
			} else {
				x.done += x.part
			}
			continue
		}
		if g.before == nil || g.sorted(e) {
			x.completeRead(e, rank == top)
		} else {
			x.done += x.part
		}
		g.threads[t].op = g.events[e].op
	}
	x.part = part
	g.pop()
}

// completeRead explores what follows read e, which reads from a write. last says that the write is the last in
// coherence order.
func (x *explorer) completeRead(e int, last bool) {
	g := x.g
	if !last && !x.acyclic() {
		x.done += x.part
		return
	}
	ev := &g.events[e]
	value, writes := ev.value, false
	if ev.op.Kind == Update {
		value, writes = g.p.Apply(&ev.op, ev.value)
	}
	ev.poll = writes && value == ev.value && ev.op.Loops && x.spins(e)
	if x.Races {
		x.races(e)
	}
	if writes && !ev.poll {
		x.update(e, value)
		return
	}
	x.resume(e, ev.value)
}

// spins reports whether an iteration that changes nothing ends with update e, which has read its value and would write
// the same value. The write is then left out. The execution without the iteration is consistent, and so is the one with
// it, in which others may read from the previous write what they would read from this one. Only races can distinguish
// the two.
func (x *explorer) spins(e int) bool {
	g := x.g
	ev := &g.events[e]
	before := -1
	if ev.index > 0 {
		before = int(g.threads[ev.thread].events[ev.index-1])
	}
	copy(x.trial, g.state(int(ev.thread), before))
	g.p.Resume(int(ev.thread), x.trial, ev.value, &x.trialOp)
	return x.trialOp.Awaits()
}

// update adds the write of a read-modify-write directly after its read e, in the thread and in coherence order.
func (x *explorer) update(e int, value int64) {
	g := x.g
	g.inherit(e)
	g.events[e].rmw = true
	t := int(g.events[e].thread)
	w := g.push(t, model.W, g.events[e].op.Order.OfWrite())
	g.events[w].value, g.events[w].rmw = value, true
	x.accessed(w)
	g.resume(w, g.events[e].value)
	l := g.locs[g.events[e].op.Loc]
	rank, splits := len(l.co), false
	if g.readsFrom {
		splits = g.updated(g.events[e].rf, l)
	} else {
		rank = g.rank(int32(e)) + 1
		splits = g.splits(l, rank)
	}
	if !splits {
		last := rank == len(l.co)
		g.place(w, rank)
		if last || x.acyclic() {
			if x.Races {
				x.races(w)
			}
			x.assertion(t, w)
			x.settle(w)
		}
		g.unplace(w)
	} else {
		x.done += x.part
	}
	x.revisits(w)
	g.pop()
	g.events[e].rmw = false
}

// write explores the next step of thread t, a write, at each place in coherence order, and then with each read that it
// could serve.
func (x *explorer) write(t int) {
	g := x.g
	e := g.push(t, model.W, g.threads[t].op.Order)
	ev := &g.events[e]
	ev.value = ev.op.Value
	x.accessed(e)
	if x.Races {
		x.races(e)
	}
	l := g.locs[ev.op.Loc]
	lo := len(l.co) - 1
	if !g.readsFrom {
		lo = g.floor(e)
	}
	if g.before != nil {
		lo = g.after(e, lo)
	}
	g.resume(e, 0)
	x.assertion(t, e)
	part := x.part
	x.part /= float64(len(l.co) - lo)
	for rank := len(l.co); rank > lo; rank-- {
		if g.splits(l, rank) {
			x.done += x.part
			continue
		}
		last := rank == len(l.co)
		g.place(e, rank)
		if last || x.acyclic() {
			x.settle(e)
		} else {
			x.done += x.part
		}
		g.unplace(e)
	}
	x.part = part
	x.revisits(e)
	g.pop()
}

// revisits explores the executions in which write w, the last event and not yet in coherence order, serves a read that
// was added before it (algorithm 2). The events after the read on which w does not depend are cut. All of them, and the
// read, must be maximal (algorithm 3), so going backwards the first that is not maximal ends the search.
func (x *explorer) revisits(w int) {
	g := x.g
	loc := g.events[w].op.Loc
	keep := g.prefixOf(w)
	for e := w - 1; e >= 0; e-- {
		ev := &g.events[e]
		if keep[ev.thread] > ev.index {
			continue
		}
		if g.readsFrom {
			if ev.kind == model.R && x.blocks.lastAmong(g, ev.op.Loc, e, keep) != ev.rf || ev.kind == model.Leave && ev.rank != 0 || ev.chosen {
				return
			}
		} else if !g.maximal(e, keep) {
			return
		}
		if ev.kind == model.R && ev.op.Loc == loc && !ev.pinned {
			x.revisit(e, w)
		}
	}
}

// maximal reports whether event e was added in the one way in which cut events must have been added: a read reads the
// last write, and a write is the last, among the events that were there before e or that are kept (algorithm 3). A read
// that reads from a later write has been revisited by it. If that write is cut too, the read is no longer as it was
// added. Between the two are only events on which the write depends, whose reads are pinned, so no revisit keeps the
// read and cuts the write.
func (g *graph) maximal(e int, keep clock) bool {
	ev := &g.events[e]
	from := 0
	switch ev.kind {
	case model.R:
		if f := ev.rf; f != initial {
			if int(f) > e && !g.holds(keep, f) {
				return false
			}
			from = int(g.events[f].rank) + 1
		}
	case model.W:
		from = int(ev.rank) + 1
	case model.Leave:
		return ev.rank == 0 // the first of the orders of the arrivals
	case model.Arrival:
		return !ev.chosen
	default:
		return true
	}
	for _, u := range g.locs[ev.op.Loc].co[from:] {
		if int(u) < e || g.holds(keep, u) {
			return false
		}
	}
	return true
}

// revisit explores the graph in which read r reads from write w, the last event.
func (x *explorer) revisit(r, w int) {
	from, part := x.g, x.part
	x.part = 0 // of the estimate: revisits are not foreseen
	if x.depth == len(x.pool) {
		x.pool = append(x.pool, &graph{})
	}
	g := x.pool[x.depth]
	x.depth++
	if len(x.numbers) < len(from.events) {
		x.numbers = make([]int32, 2*len(from.events))
	}
	r, w = g.cut(from, r, w, x.numbers)
	x.g = g
	rv, wv := &g.events[r], &g.events[w]
	g.threads[rv.thread].op = rv.op
	rv.rf, rv.rmw = initial, false
	g.follow(r)
	l := g.locs[wv.op.Loc]
	if g.readsFrom {
		x.serveAny(r, w)
	} else if wv.rmw {
		rank := g.rank(g.threads[wv.thread].events[wv.index-1]) + 1
		if !g.splits(l, rank) && rank > g.floor(r) {
			x.serve(r, w, rank)
		}
	} else {
		lo := max(g.floor(r), g.floor(w))
		if g.before != nil {
			lo = g.after(w, lo)
		}
		for rank := len(l.co); rank > lo; rank-- {
			if !g.splits(l, rank) {
				x.serve(r, w, rank)
			}
		}
	}
	x.depth--
	x.g, x.part = from, part
}

// serve lets read r, the last of its thread, read from write w at rank.
func (x *explorer) serve(r, w, rank int) {
	g := x.g
	last := rank == len(g.locs[g.events[w].op.Loc].co)
	g.place(w, rank)
	if !x.Overtaken && g.overtakes(w) {
		g.unplace(w)
		return
	}
	x.served(r, w, last)
	g.unplace(w)
}

// served explores what follows read r, the last of its thread, which reads from write w.
func (x *explorer) served(r, w int, last bool) {
	g := x.g
	g.reads(r, int32(w))
	if g.before != nil && !g.sorted(r) {
		return
	}
	if g.events[w].rmw && (last || x.acyclic()) { // where the write was added, atomicity may not have held
		if x.Races {
			x.races(w)
		}
		x.assertion(int(g.events[w].thread), w)
	}
	x.completeRead(r, last)
	g.threads[g.events[r].thread].op = g.events[r].op
}

// races reports the races of event e with those before it.
func (x *explorer) races(e int) {
	x.g.race(e, func(other int32, kind ErrorKind) {
		x.found(Error{Kind: kind, A: int(other), B: e, Thread: -1, Other: -1})
		if x.g.rules.Partial && !x.result.Stopped {
			x.beyond()
		}
	})
}

// leaf ends an execution that has no next step.
func (x *explorer) leaf() {
	g := x.g
	x.done += x.part
	if len(g.over) > 0 {
		return
	}
	end := Complete
	stuck := false
	for t := range g.threads {
		switch g.threads[t].op.Kind {
		case Bound:
			end = Cut
		case Assumed:
			if end == Complete {
				end = Blocked
			}
		case Await:
			stuck = true
			if end == Complete && !g.readsFrom && x.overtaken(t) {
				end = Blocked
			}
		case depart:
			if !g.events[g.last(t)].op.Converges {
				stuck = true
			} else if end == Complete {
				end = Blocked
			}
		}
	}
	if end == Complete && stuck && g.readsFrom && !x.lastRead() {
		end = Blocked
	}
	switch {
	case end == Complete && stuck:
		end = x.stuck()
	case end == Cut && x.circling():
		x.stuck()
	}
	switch end {
	case Complete:
		x.result.Executions++
	case Blocked:
		x.result.Blocked++
	case Cut:
		x.result.Cut++
	default:
		x.result.Stuck++
	}
	x.result.Events = max(x.result.Events, len(g.events))
	if x.Leaf == nil {
		return
	}
	x.view.g = g
	if g.readsFrom && end == Complete && x.Observed != nil {
		x.lastValues(x.Observed(len(g.locs)))
		return
	}
	x.show(end)
}

// show calls Leaf and asks Enough.
func (x *explorer) show(end Ending) {
	x.Leaf(&x.view, end)
	if x.Enough != nil && x.Enough() {
		x.result.Stopped = true
	}
}

// overtaken reports whether a write of another value comes after a write that thread t, which spins, has read.
func (x *explorer) overtaken(t int) (over bool) {
	x.g.iteration(t, func(r int32) { over = over || x.g.changed(r) })
	return over
}

// changed reports whether a write of another value comes after the source of r. Threads that spin in turn may write the
// values they have read.
func (g *graph) changed(r int32) bool {
	ev := &g.events[r]
	for _, w := range g.locs[ev.op.Loc].co[g.rank(r)+1:] {
		if g.events[w].value != ev.value {
			return true
		}
	}
	return false
}

// iteration calls do for each read in the last iteration of thread t, which spins, the last first. An update writes the
// value it has read.
func (g *graph) iteration(t int, do func(r int32)) {
	of := g.threads[t].events
	for steps := g.threads[t].op.Value; steps > 0 && len(of) > 0; steps-- {
		e := of[len(of)-1]
		of = of[:len(of)-1]
		ev := &g.events[e]
		if ev.op.Inserted {
			steps++
		}
		switch {
		case ev.kind == model.W && ev.rmw: // and its read before it
			do(of[len(of)-1])
			of = of[:len(of)-1]
		case ev.kind == model.R:
			do(e)
		}
	}
}

// endless returns the spinning threads that read nothing, or all if there are none. These threads may yet write again
// what the others wait for.
func (g *graph) endless(spinning []int) []int {
	var out []int
	for _, t := range spinning {
		reads := false
		if g.iteration(t, func(int32) { reads = true }); !reads {
			out = append(out, t)
		}
	}
	if out == nil {
		return spinning
	}
	return out
}

// stuck reports why an execution that cannot go on has not ended: the first thread that waits at a barrier and the
// first that does not reach it, or else the first that spins. Of symmetric threads it reports each that would be the
// first under another naming.
func (x *explorer) stuck() Ending {
	g := x.g
	missing := make([][]int, len(g.threads)) // by thread at a barrier: the threads that do not reach it
	var waiting, spinning []int
	failed := false
	for t := range g.threads {
		switch g.threads[t].op.Kind {
		case Fail:
			failed = true
		case Await, Bound:
			spinning = append(spinning, t)
		case depart:
			at := g.events[g.last(t)]
			for o := range g.threads {
				// If another thread of the CTA spins, that is the reason why it has not arrived.
				if o != t && g.groups.Same(t, o, &at.op) && !x.arrived(o, &at) && g.threads[o].op.Kind != Await {
					missing[t] = append(missing[t], o)
				}
			}
			if missing[t] != nil {
				waiting = append(waiting, t)
			}
		}
	}
	switch { // waiting for a thread that has failed is not an error of its own
	case failed && waiting != nil:
		return Diverged
	case failed:
		return Stuck
	}
	for _, t := range waiting {
		for _, o := range missing[t] {
			if g.mayLead(t, waiting, o, missing[t]) {
				x.found(Error{Kind: BarrierDivergence, A: g.last(t), B: -1, Thread: t, Other: o, Pos: g.events[g.last(t)].op.Pos, OtherPos: g.threads[o].op.Pos})
			}
		}
	}
	if waiting != nil {
		return Diverged
	}
	spinning = g.endless(spinning)
	for _, t := range spinning {
		if g.mayLead(t, spinning, t, spinning) {
			x.found(Error{Kind: Deadlock, A: g.last(t), B: -1, Thread: t, Other: -1, Pos: g.threads[t].op.Pos})
		}
	}
	return Stuck
}

// arrived reports whether thread o has reached the barrier and generation of arrival at.
func (x *explorer) arrived(o int, at *event) bool {
	for _, a := range *x.g.arrivals(at) {
		if int(x.g.events[a].thread) == o {
			return true
		}
	}
	return false
}
