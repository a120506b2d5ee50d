package explore

import (
	"slices"

	"fencepost.dev/fencepost/internal/verify/model"
)

// event is an event of the graph. A read-modify-write that succeeds is a read and a write, one directly after the other.
type event struct {
	op     Op    // the step of the thread that it belongs to
	value  int64 // read or written
	rf     int32 // of a read: the write, initial for the initial value
	rank   int32 // of a write: its place in coherence order; of an arrival: its number among those of the thread at this barrier
	rel    int32 // the last releasing event of the thread up to this one, or -1
	thread uint16
	index  uint16 // in the thread
	phase  uint16 // number of barriers that the thread has left, including this event
	kind   model.Kind
	order  model.Order
	rmw    bool // part of a read-modify-write that succeeded
	pinned bool // a read that is not revisited any more: a write that has revisited a read depends on it
	full   bool // atomic, with a scope that includes every thread of the program
	chosen bool // an arrival together with others that the thread has chosen: see converge.go
	poll   bool // the read of an update that spins: it would write the value it has read, and its write is left out
}

const initial = -1

// clock is a vector clock: for each thread, the number of its events that come before.
type clock []uint16

func (c clock) join(d clock) {
	for i, v := range d {
		if v > c[i] {
			c[i] = v
		}
	}
}

// thread is a thread of the graph.
type thread struct {
	events []int32
	op     Op // its next step
}

// location holds the accesses of a location.
type location struct {
	co    []int32 // the writes in coherence order, without the initial one
	reads []int32 // in the order of the graph
	weak  int     // number of accesses that are not full
}

// barrier holds the arrivals at a barrier of a CTA, by generation.
type barrier struct{ arrivals [][]int32 }

// BarriersPerCTA is the number of barriers of a CTA (PTX manual, bar), unless a program has more. Such a program has a
// method Barriers() int.
const BarriersPerCTA = 16

// shape is the data that all graphs of a search share.
type shape struct {
	p      Program
	incl   model.Inclusion
	places []model.Place
	need   []model.Scope // at a*threads+b: the scope that thread a needs for thread b
	widest model.Scope   // the widest scope that any thread needs
	cta    []int32       // the CTA of each thread, numbered from 0
	size   []int         // number of threads of each CTA
	groups Groups
	perCTA int // number of barriers
	trades Exchanger
	words  int   // size of a thread's state
	before []int // Options.Symmetric
	// readsFrom is Options.ReadsFrom. With it, co is the order in which the writes were added, not coherence order.
	readsFrom bool
	rules     Rules
}

// graph is an execution graph. Events are numbered in the order in which they were added, which extends program order.
// The last event can be removed again.
type graph struct {
	*shape
	events   []event
	hb       []uint16 // clocks of the events: the events that happen before, including the event
	prefix   []uint16 // clocks of the events: the events on which it depends through po and rf, including the event
	states   []int64  // the state of the thread after the event
	threads  []thread
	locs     []*location // at least those that a step has accessed
	barriers []barrier
	spun     bool    // a thread has reached an Await
	over     []int32 // writes that overtake spinning reads, see overtaken.go
	sc       int     // number of sc events
	start    []int64 // states of the threads before their first event
	first    []Op
}

func newShape(p Program, o *Options) *shape {
	s := &shape{p: p, incl: o.Incl, before: o.Symmetric, readsFrom: o.ReadsFrom, rules: o.Rules, places: p.Places(), words: max(p.StateWords(), 1), perCTA: BarriersPerCTA}
	s.groups = NewGroups(s.places)
	if of, ok := p.(interface{ Barriers() int }); ok {
		s.perCTA = of.Barriers()
	}
	s.trades, _ = p.(Exchanger)
	n := len(s.places)
	s.need = make([]model.Scope, n*n)
	s.cta = make([]int32, n)
	numbers := map[int32]int32{}
	for a, pa := range s.places {
		for b, pb := range s.places {
			s.need[a*n+b] = model.Need(pa, pb)
			s.widest = max(s.widest, s.need[a*n+b])
		}
		if _, ok := numbers[pa.CTA]; !ok {
			numbers[pa.CTA] = int32(len(numbers))
			s.size = append(s.size, 0)
		}
		s.cta[a] = numbers[pa.CTA]
		s.size[s.cta[a]]++
	}
	return s
}

func newGraph(s *shape) *graph {
	n := len(s.places)
	g := &graph{shape: s, threads: make([]thread, n), barriers: make([]barrier, len(s.size)*s.perCTA), start: make([]int64, n*s.words), first: make([]Op, n)}
	for t := range n {
		s.p.Start(t, g.start[t*s.words:(t+1)*s.words], &g.first[t])
		g.threads[t].op = g.first[t]
		g.meet(&g.first[t])
	}
	return g
}

// members is the number of threads of a barrier of thread t.
func (g *graph) members(t int, op *Op) int {
	if op.Lanes == 0 {
		return g.size[g.cta[t]]
	}
	n := 0
	for o := range g.threads {
		if g.groups.Same(t, o, op) {
			n++
		}
	}
	return n
}

// meet allocates the data of the location of a step.
func (g *graph) meet(op *Op) {
	if op.Kind == Read || op.Kind == Write || op.Kind == Update {
		g.name(int(op.Loc) + 1)
	}
}

// name allocates locations until there are n. Existing ones are not moved.
func (g *graph) name(n int) {
	for len(g.locs) < n {
		g.locs = append(g.locs, &location{})
	}
}

func (g *graph) hbOf(e int) clock {
	n := len(g.threads)
	return g.hb[e*n : (e+1)*n]
}

func (g *graph) prefixOf(e int) clock {
	n := len(g.threads)
	return g.prefix[e*n : (e+1)*n]
}

// state is the state of thread t after its event e, or before its first event if e is negative.
func (g *graph) state(t, e int) []int64 {
	if e < 0 {
		return g.start[t*g.words : (t+1)*g.words]
	}
	return g.states[e*g.words : (e+1)*g.words]
}

// last is the last event of thread t, or -1.
func (g *graph) last(t int) int {
	if ev := g.threads[t].events; len(ev) > 0 {
		return int(ev[len(ev)-1])
	}
	return -1
}

// holds reports whether event e is in the set of events that c counts.
func (g *graph) holds(c clock, e int32) bool {
	ev := &g.events[e]
	return c[ev.thread] > ev.index
}

// push adds the next event of thread t, with the clocks of its predecessor in program order.
func (g *graph) push(t int, kind model.Kind, order model.Order) int {
	e, n := len(g.events), len(g.threads)
	th := &g.threads[t]
	before := g.last(t)
	if (e+1)*n > len(g.hb) {
		g.hb = append(g.hb, make([]uint16, (e+16)*n)...)
		g.prefix = append(g.prefix, make([]uint16, (e+16)*n)...)
		g.states = append(g.states, make([]int64, (e+16)*g.words)...)
	}
	rel, phase := int32(-1), uint16(0)
	if before >= 0 {
		rel, phase = g.events[before].rel, g.events[before].phase
	}
	if kind == model.Leave {
		phase++
	}
	if order.Releases() && kind != model.R {
		rel = int32(e)
	}
	g.events = append(g.events, event{op: th.op, thread: uint16(t), index: uint16(len(th.events)), phase: phase, kind: kind, order: order, rel: rel,
		full: order.Atomic() && !th.op.Volatile && th.op.Scope >= g.widest})
	th.events = append(th.events, int32(e))
	if order == model.SC {
		g.sc++
	}
	g.follow(e)
	switch kind {
	case model.R:
		l := g.locs[th.op.Loc]
		l.reads = append(l.reads, int32(e))
		l.count(&g.events[e], 1)
	case model.W:
		g.locs[th.op.Loc].count(&g.events[e], 1)
	}
	return e
}

func (l *location) count(ev *event, by int) {
	if !ev.full {
		l.weak += by
	}
}

// follow gives event e the clocks of its predecessor in program order.
func (g *graph) follow(e int) {
	ev := &g.events[e]
	hb, prefix := g.hbOf(e), g.prefixOf(e)
	if ev.index == 0 {
		clear(hb)
		clear(prefix)
	} else {
		before := int(g.threads[ev.thread].events[ev.index-1])
		copy(hb, g.hbOf(before))
		copy(prefix, g.prefixOf(before))
	}
	hb[ev.thread] = ev.index + 1
	prefix[ev.thread] = ev.index + 1
	if g.before != nil {
		g.depend(e)
	}
}

// pop removes the last event. A write is no longer in coherence order by then.
func (g *graph) pop() {
	e := len(g.events) - 1
	ev := &g.events[e]
	th := &g.threads[ev.thread]
	th.events = th.events[:len(th.events)-1]
	th.op = ev.op
	if ev.order == model.SC {
		g.sc--
	}
	switch ev.kind {
	case model.R:
		l := g.locs[ev.op.Loc]
		l.reads = l.reads[:len(l.reads)-1]
		l.count(ev, -1)
	case model.W:
		g.locs[ev.op.Loc].count(ev, -1)
	case model.Arrival:
		a := g.arrivals(ev)
		*a = (*a)[:len(*a)-1]
	case model.Leave:
		th.op.Kind = depart
	}
	g.events = g.events[:e]
}

// arrivals returns the arrivals at the barrier of ev, an arrival, in its generation.
func (g *graph) arrivals(ev *event) *[]int32 {
	b := &g.barriers[int(g.cta[ev.thread])*g.perCTA+int(ev.op.Loc)]
	for int(ev.rank) >= len(b.arrivals) {
		b.arrivals = append(b.arrivals, nil)
	}
	return &b.arrivals[ev.rank]
}

// place inserts write w into coherence order at rank.
func (g *graph) place(w, rank int) {
	l := g.locs[g.events[w].op.Loc]
	l.co = slices.Insert(l.co, rank, int32(w))
	for i := rank; i < len(l.co); i++ {
		g.events[l.co[i]].rank = int32(i)
	}
}

// unplace undoes place.
func (g *graph) unplace(w int) {
	l := g.locs[g.events[w].op.Loc]
	rank := int(g.events[w].rank)
	l.co = slices.Delete(l.co, rank, rank+1)
	for i := rank; i < len(l.co); i++ {
		g.events[l.co[i]].rank = int32(i)
	}
}

// rank is the place in coherence order of the source of read r; -1 is the initial write.
func (g *graph) rank(r int32) int {
	if w := g.events[r].rf; w != initial {
		return int(g.events[w].rank)
	}
	return -1
}

// value is what write w wrote to loc.
func (g *graph) value(w int32, loc int32) int64 {
	if w == initial {
		return g.p.Initial(loc)
	}
	return g.events[w].value
}

// resume continues the thread of its last event e with value.
func (g *graph) resume(e int, value int64) {
	ev := &g.events[e]
	g.inherit(e)
	t := int(ev.thread)
	g.p.Resume(t, g.state(t, e), value, &g.threads[t].op)
	g.meet(&g.threads[t].op)
	if len(g.threads[t].events) >= maxEvents {
		g.threads[t].op.Kind = Bound
	}
}

// maxEvents is the number of events that a thread can have at least; clocks count them in 16 bits.
const maxEvents = 60000

// inherit gives event e the state of its predecessor.
func (g *graph) inherit(e int) {
	ev := &g.events[e]
	before := -1
	if ev.index > 0 {
		before = int(g.threads[ev.thread].events[ev.index-1])
	}
	copy(g.state(int(ev.thread), e), g.state(int(ev.thread), before))
}

// cut makes g the part of from that remains when write w, the last event, revisits read r: the events before r, r
// itself, and the events on which w depends. It returns the numbers of r and w in g. w is not in coherence order yet.
func (g *graph) cut(from *graph, r, w int, number []int32) (int, int) {
	n := len(from.threads)
	keep := from.prefixOf(w)
	g.shape, g.start, g.first = from.shape, from.start, from.first
	size := r + 1
	g.events = append(g.events[:0], from.events[:size]...)
	if need := len(from.events) * n; len(g.hb) < need {
		g.hb, g.prefix = make([]uint16, need+16*n), make([]uint16, need+16*n)
		g.states = make([]int64, (len(from.events)+16)*g.words)
	}
	copy(g.hb, from.hb[:size*n])
	copy(g.prefix, from.prefix[:size*n])
	copy(g.states, from.states[:size*g.words])
	number = number[:len(from.events)]
	for e := range size {
		number[e] = int32(e)
		if ev := &g.events[e]; ev.kind == model.R && from.holds(keep, int32(e)) {
			ev.pinned = true
		}
	}
	for e := size; e <= w; e++ {
		ev := &from.events[e]
		number[e] = -1
		if keep[ev.thread] <= ev.index {
			continue
		}
		to := len(g.events)
		number[e] = int32(to)
		g.events = append(g.events, *ev)
		nv := &g.events[to]
		nv.pinned = ev.kind == model.R
		copy(g.hb[to*n:(to+1)*n], from.hbOf(e))
		copy(g.prefix[to*n:(to+1)*n], from.prefixOf(e))
		copy(g.states[to*g.words:(to+1)*g.words], from.states[e*g.words:(e+1)*g.words])
	}
	g.renumber(from, number)
	return r, int(number[w])
}

// renumber replaces event numbers of from by the numbers given; -1 is an event that is cut.
func (g *graph) renumber(from *graph, number []int32) {
	g.name(len(from.locs))
	for _, l := range g.locs {
		l.weak, l.co, l.reads = 0, l.co[:0], l.reads[:0]
	}
	g.sc, g.spun, g.over = 0, from.spun, g.over[:0]
	for _, w := range from.over {
		if number[w] >= 0 {
			g.over = append(g.over, number[w])
		}
	}
	for i := range g.events {
		ev := &g.events[i]
		if ev.kind == model.R && ev.rf != initial {
			ev.rf = number[ev.rf] // -1 at most for the revisited read
		}
		if ev.rel >= 0 {
			ev.rel = number[ev.rel]
		}
		if ev.order == model.SC {
			g.sc++
		}
		if ev.kind == model.R || ev.kind == model.W {
			g.locs[ev.op.Loc].count(ev, 1)
		}
	}
	g.threads = resize(g.threads, len(from.threads))
	for t := range from.threads {
		ft, th := &from.threads[t], &g.threads[t]
		th.op, th.events = ft.op, th.events[:0]
		for _, e := range ft.events {
			if number[e] < 0 {
				th.op = from.events[e].op
				if from.events[e].kind == model.Leave {
					th.op.Kind = depart
				}
				break
			}
			th.events = append(th.events, number[e])
		}
	}
	for i, fl := range from.locs {
		l := g.locs[i]
		for _, e := range fl.co {
			if m := number[e]; m >= 0 {
				g.events[m].rank = int32(len(l.co))
				l.co = append(l.co, m)
			}
		}
		for _, e := range fl.reads {
			if number[e] >= 0 {
				l.reads = append(l.reads, number[e])
			}
		}
	}
	g.barriers = resize(g.barriers, len(from.barriers))
	for i := range from.barriers {
		fb, b := &from.barriers[i], &g.barriers[i]
		b.arrivals = resize(b.arrivals, len(fb.arrivals))
		for gen := range fb.arrivals {
			b.arrivals[gen] = b.arrivals[gen][:0]
			for _, e := range fb.arrivals[gen] {
				if number[e] >= 0 {
					b.arrivals[gen] = append(b.arrivals[gen], number[e])
				}
			}
		}
	}
}

// resize changes s to n elements and keeps the existing elements with their memory.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)
}

// clone copies the graph.
func (g *graph) clone() *graph {
	n := len(g.events)
	c := *g
	c.events = slices.Clone(g.events)
	c.hb, c.prefix = slices.Clone(g.hb[:n*len(g.threads)]), slices.Clone(g.prefix[:n*len(g.threads)])
	c.over = slices.Clone(g.over)
	c.states = slices.Clone(g.states[:n*g.words])
	c.threads = slices.Clone(g.threads)
	for t := range c.threads {
		c.threads[t].events = slices.Clone(c.threads[t].events)
	}
	c.locs = nil
	for _, l := range g.locs {
		c.locs = append(c.locs, &location{slices.Clone(l.co), slices.Clone(l.reads), l.weak})
	}
	c.barriers = slices.Clone(g.barriers)
	for i, b := range c.barriers {
		c.barriers[i].arrivals = slices.Clone(b.arrivals)
		for j, a := range b.arrivals {
			c.barriers[i].arrivals[j] = slices.Clone(a)
		}
	}
	return &c
}
