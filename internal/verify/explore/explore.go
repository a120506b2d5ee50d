package explore

import (
	"context"

	"fencepost.dev/fencepost/internal/verify/model"
)

// Options select what is explored.
type Options struct {
	Incl model.Inclusion
	// Races says that races are looked for.
	Races bool
	// Exits says that a barrier does not wait for threads that have ended. That is an ExitedBarrier; otherwise it is a
	// BarrierDivergence.
	Exits bool
	// Ordered says that the arrivals at a barrier are read-modify-writes, as in the paper: each order of them that agrees with what
	// the threads depend on is an execution of its own.
	Ordered bool
	// Symmetric, if not nil, gives for each thread the one before it in its class of symmetric threads, or -1. Of executions that
	// differ by the names of threads of a class one is explored, rarely more. It is not for Ordered.
	Symmetric []int
	// Overtaken says that executions are explored to their ends in which a thread waits for ever though it need not: see overtaken.go.
	Overtaken bool
	// ReadsFrom says that executions which differ in coherence order alone are one, a reads-from class, of which one is explored. The
	// search stops, with Result.SC, where two threads have sc events whose scopes include each other. It is not for Symmetric.
	ReadsFrom bool
	// Rules are those of the memory model. The zero value is scoped RC11, the only one for Incl, Ordered, Symmetric and
	// ReadsFrom.
	Rules Rules
	// Accessed, if not nil, is called for what threads access, once or a few times for each.
	Accessed func(a Access)
	// Follows, if not nil, is called where a thread writes a location after an atomic read, of the same or another location, with no barrier
	// between; once or a few times for each.
	Follows func(s Segment)
	// Reads, if not nil, is called for each state in which a thread makes an atomic read, the first step of an update included, once or a
	// few times. The thread has made so many reads before.
	Reads func(t int, state []int64, op *Op, reads int)
	// Exchanged, if not nil, is called with the place of each step that exchanges and the value that it gives, once or often.
	Exchanged func(pos int32, value int64)
	// Oldest says that an atomic read that is no update tries the write first that is the first in coherence order of those that it may
	// read from, and not the last: what only a weak memory allows comes early then. It has no effect with ReadsFrom.
	Oldest bool
	// Observed, if not nil, gives of so many locations those whose last values are of interest, in an order that is the same in each
	// search. With ReadsFrom, Leaf is called for each combination of the last values that a complete class leaves them.
	Observed func(locations int) []int32
	// Leaf, if not nil, is called for every execution that is explored: complete ones, and those that are blocked or cut by a
	// bound.
	Leaf func(x Execution, end Ending)
	// Enough, if not nil, is asked after each call of Leaf. The search stops if it says so.
	Enough func() bool
	// Found is called for each error, with the execution so far that shows it. The same error may come many times. The search
	// stops if it returns false.
	Found func(e Error, x Execution) bool
	// Restart is called if the search begins again: what it has reported so far does not count. Explore never calls it.
	Restart func()
	// Progress, if not nil, is called now and then with the number of complete executions so far, and with an estimate of the
	// part of the search that is done; 0 if there is none. Explore does not call it: a Division has its own.
	Progress func(executions int, done float64)
}

// Ending says how an execution ends.
type Ending uint8

// The endings.
const (
	Complete Ending = iota // every thread has ended
	Blocked                // a thread spins, and what it waits for has been written or may be written in another execution
	Cut                    // a thread has reached the bound of a loop
	Stuck                  // a thread waits in vain: no thread can make a step, and each spin has read what was last written
	Diverged               // a thread waits at a barrier that another thread does not reach
)

// ErrorKind is the kind of an error.
type ErrorKind uint8

// The kinds of errors, section 2.1 of the paper.
const (
	AssertionFailed ErrorKind = iota
	DataRace
	HeterogeneousRace
	VolatileRace // of a volatile access, no DataRace
	PolledRace   // the same, of a flag that a loop polls: of the read in the loop, or of a write that follows such a read
	BarrierDivergence
	ExitedBarrier // a barrier that has been completed without a thread, which has ended
	Deadlock      // every thread that has not ended waits, and at least one spins or goes round a loop for ever
	Undefined     // a step that exchanges gives a value that is not defined
	Forbidden     // an execution that a condition forbids; no search finds it, callers do
)

// Error is an error of one execution.
type Error struct {
	Kind ErrorKind
	// A and B are events of the execution: those that race; for an assertion, A is the last event of the thread that fails or
	// -1; for divergence, A is the arrival that waits, and B one that must not meet it, or -1. Otherwise they are -1.
	A, B int
	// Thread is the thread that fails or waits, and Other the one that does not come to its barrier.
	Thread, Other int
	Pos           int32 // of the step that A stands at, for an assertion, divergence and deadlock
	OtherPos      int32
}

// Result counts what was explored.
type Result struct {
	Executions int // complete
	Blocked    int // given up: a thread spins on a value that is not the last one written
	Stuck      int // that end in a deadlock or in barrier divergence
	Cut        int // that a bound of a loop ended
	Events     int // of the longest execution
	Graphs     int // of all sizes that were visited
	Stopped    bool
	SC         bool // the search was by reads-from classes, and has stopped: see Options.ReadsFrom
	Beyond     bool // the search has stopped where its rules are not enough: see Rules.Partial
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
}

// explorer is one search.
type explorer struct {
	*Options
	g       *graph
	depth   int // of revisits that are being explored
	pool    []*graph
	numbers []int32
	trial   []int64 // a state of a thread, and its next step
	trialOp Op
	told    map[Access]bool  // of which Accessed has been told
	between map[Segment]bool // of which Follows has been told
	states  map[string]bool  // of which Reads has been told
	key     []byte
	psc     psc
	blocks  blocks
	result  Result
	ctx     context.Context
	view    graphView
	done    float64 // part of the search that is done
	part    float64 // part of the search that is below this graph
	left    int     // graphs to visit; then divide takes those that would be. -1: all
	divide  func()
}

// Explore visits all executions of p.
func Explore(ctx context.Context, p Program, o Options) Result {
	x := &explorer{Options: &o, g: newGraph(newShape(p, &o)), ctx: ctx, part: 1, left: -1}
	x.begin()
	x.visit()
	return x.result
}

// begin tells of assertions that fail before the first event.
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
		x.divide()
		return
	}
	x.left--
	x.result.Graphs++
	// The check of axiom SC takes long where there are many sc events.
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

// acyclic checks the axiom SC, unless the search has been stopped: where there are many sc events that takes long.
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

// next chooses the thread that makes the next step, -1 if none can. Steps that leave no choice come first; what is read is
// chosen when there is nothing else to do. A read after which its thread would wait for another comes last: what it waits for is
// often written before. Any choice is sound that the graph alone determines.
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

// waits says that thread t, which stands at a read, would wait if it read the last value.
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

// resume lets the thread of e, its last event, go on with value, and explores what follows.
func (x *explorer) resume(e int, value int64) {
	x.g.resume(e, value)
	x.proceed(e)
}

// proceed explores what follows event e, whose thread has gone on.
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

// stale says that e, with which an iteration ended that changed nothing, has read what is not the last value. The search need not
// go on: the execution without the iteration is consistent too, and what another thread writes later is explored where e reads
// the last value, and waits. That is said of e alone: the reads before it may be those of an execution in which e reads something
// else, and the loop ends.
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

// assertion tells of thread t if it failed after e.
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

// exited counts the threads that have ended and that arrival a of thread t does not meet, and calls f, if it is not nil, for each.
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

// leave adds the event in which thread t leaves a barrier. All that stands before the arrivals happens before it.
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
	if len(arrivals) < g.members(t, &at.op) { // that a thread has ended is no order, but the execution depends on it
		x.exited(t, &at, func(o int) {
			if last := g.last(o); last >= 0 {
				g.prefixOf(e).join(g.prefixOf(last))
			}
			if at.op.Lanes != 0 {
				return // bar.warp.sync is of lanes that have not exited
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
	} else { // whoever is kept by a revisit keeps the order
		g.prefixOf(e).join(g.prefixOf(first))
		x.resume(e, value)
	}
	g.pop()
}

// firstToLeave gives the event in which the first thread left a barrier. It decides the order of the arrivals.
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

// orders explores what follows e, with which the first thread leaves a barrier, once for each order of the arrivals. The rank of e
// numbers them.
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

// read explores the next step of thread t, a read or an update: each write that the read may read from.
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

// completeRead explores what follows read e, which reads from a write, the last in coherence order or not.
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

// spins says that an iteration that changes nothing ends with update e, which has read its value and would write the same. The
// write is left out then: the execution without the iteration is consistent, and so is the one with it, in which others may read
// from the write before it what they would read from it. Only races can tell the two apart.
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

// write explores the next step of thread t, a write: each place in coherence order, and then the reads that it could serve.
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

// revisits explores the executions in which write w, the last event and not yet in coherence order, serves a read that was added
// before it (algorithm 2). The events after the read that w does not depend on are cut. All of them must be maximal (algorithm
// 3), the read included, so going backwards the first that is not ends the search.
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

// maximal says that event e was added in the one way in which cut events must have been added: a read reads the last write, and a
// write is the last, among those that were there before e or that are kept (algorithm 3). A read that reads from a later write has
// been revisited by it; if that write is cut too, the read is not as it was added. Between the two stand events that the write
// depends on alone, whose reads are pinned, so no revisit keeps the read and cuts the write.
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
		return ev.rank == 0 // of the orders of the arrivals, the first
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
	x.part = 0 // of the estimate: what is revisited is not foreseen
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
	if g.events[w].rmw && (last || x.acyclic()) { // where it was added, atomicity may not have held
		if x.Races {
			x.races(w)
		}
		x.assertion(int(g.events[w].thread), w)
	}
	x.completeRead(r, last)
	g.threads[g.events[r].thread].op = g.events[r].op
}

// races tells of the races of event e with those before it.
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

// show calls Leaf, and asks whether that is enough.
func (x *explorer) show(end Ending) {
	x.Leaf(&x.view, end)
	if x.Enough != nil && x.Enough() {
		x.result.Stopped = true
	}
}

// overtaken says that a write of another value comes after what thread t, which spins, has read.
func (x *explorer) overtaken(t int) (over bool) {
	x.g.iteration(t, func(r int32) { over = over || x.g.changed(r) })
	return over
}

// changed says that a write of another value comes after what r reads from. Threads that spin in turn may write what they have read.
func (g *graph) changed(r int32) bool {
	ev := &g.events[r]
	for _, w := range g.locs[ev.op.Loc].co[g.rank(r)+1:] {
		if g.events[w].value != ev.value {
			return true
		}
	}
	return false
}

// iteration calls do for each read in the last iteration of thread t, which spins, the last first. An update writes what it has read.
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

// endless are those of threads that spin which read nothing, all if there are none: what others wait for, these may yet write again.
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

// stuck tells why an execution that cannot go on has not ended: of the first thread that waits at a barrier and the first that does not come
// to it, or else of the first that spins. Of symmetric threads each is told that would be the first by another name.
func (x *explorer) stuck() Ending {
	g := x.g
	missing := make([][]int, len(g.threads)) // of each thread at a barrier, those that do not come to it
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
				// If another thread of the CTA spins, then that is why it has not arrived.
				if o != t && g.groups.Same(t, o, &at.op) && !x.arrived(o, &at) && g.threads[o].op.Kind != Await {
					missing[t] = append(missing[t], o)
				}
			}
			if missing[t] != nil {
				waiting = append(waiting, t)
			}
		}
	}
	switch { // what waits for a thread that has failed is no error of its own
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

// arrived says that thread o has come to the barrier and generation of arrival at.
func (x *explorer) arrived(o int, at *event) bool {
	for _, a := range *x.g.arrivals(at) {
		if int(x.g.events[a].thread) == o {
			return true
		}
	}
	return false
}
