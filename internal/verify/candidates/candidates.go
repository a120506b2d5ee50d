// Package candidates enumerates the executions of a small concurrent program under the memory model of PTX. That model lets a load and
// a later store of its thread be exchanged unless the store depends on the load, so executions cannot be grown along program order
// as internal/verify/explore does. Instead, each thread is run alone with all values that its reads may have; the traces of the
// threads are combined; every read is given each write of its value; and the writes of each location are ordered, one location
// independently of the others. The axioms of the model decide.
//
// It is for litmus tests: time grows with the product of these choices.
package candidates

import (
	"context"
	"errors"
	"maps"
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// The bounds of an enumeration.
const (
	maxEvents = 40      // of a thread
	maxValues = 64      // of a location
	maxTraces = 1 << 14 // of a thread
	maxSteps  = 1 << 20 // to find these
)

// ErrTooLarge says that a program has too many candidate executions.
var ErrTooLarge = errors.New("the test is too large for the model ptx: it has more than 40 events in a thread, 64 values of a location " +
	"or 16,384 traces of a thread")

// trace is what a thread does if its reads return certain values.
type trace struct {
	events []explore.Event
	deps   []uint64 // of events: reads of the thread
	state  []int64
	last   explore.Op // at which it ends
	parked bool       // at a barrier
	// needs and writes are the values of locations that are read and written, as bits.
	needs, writes []uint64
}

// enumeration is the search for one program.
type enumeration struct {
	explore.Options
	ctx    context.Context
	p      explore.Program
	m      model.PTX
	places []model.Place
	values map[int32]map[int64]bool
	steps  int
	traces [][]trace
	// initial is the initial values, as bits.
	initial []uint64
	view    view
	result  explore.Result
}

// Enumerate visits every execution of p that the model allows, once: what its reads read from, and the coherence order as far as the
// model has it. Executions in which a thread spins on a value that is not the last one, has reached a bound, or waits for what does
// not hold, do not count.
func Enumerate(ctx context.Context, p explore.Program, m model.PTX, o explore.Options) (explore.Result, error) {
	n := &enumeration{Options: o, ctx: ctx, p: p, m: m, places: p.Places(), values: map[int32]map[int64]bool{}}
	if err := n.threads(); err != nil {
		return n.result, err
	}
	n.number()
	n.choose(make([]*trace, len(n.places)), 0)
	return n.result, nil
}

// threads finds the traces of each thread: first with the initial values, then with those that are written, until there are no new
// ones. A value that is written may depend on one that is read, which depends on another; no chain of these is longer than there are
// such writes, because none depends on itself.
func (n *enumeration) threads() error {
	for round := 0; ; round++ {
		grown, longest := false, 0
		n.traces, n.steps = nil, 0
		for t := range n.places {
			found, err := n.thread(t)
			if err != nil {
				return err
			}
			n.traces = append(n.traces, found)
			dependent := 0
			for i := range found {
				writes := 0
				for k, e := range found[i].events {
					if e.Kind == model.W && found[i].deps[k] != 0 {
						writes++
					}
					if e.Kind == model.W && !n.of(e.Loc)[e.Value] {
						n.of(e.Loc)[e.Value] = true
						if grown = true; len(n.of(e.Loc)) > maxValues {
							return ErrTooLarge
						}
					}
				}
				dependent = max(dependent, writes)
			}
			longest += dependent
		}
		if !grown || round > longest {
			return nil
		}
	}
}

// number gives the values of locations bits.
func (n *enumeration) number() {
	numbers := map[[2]int64]int{}
	set := func(bits *[]uint64, loc int32, value int64) {
		k := [2]int64{int64(loc), value}
		b, ok := numbers[k]
		if !ok {
			b = len(numbers)
			numbers[k] = b
		}
		for len(*bits) <= b/64 {
			*bits = append(*bits, 0)
		}
		(*bits)[b/64] |= 1 << (b % 64)
	}
	for _, loc := range slices.Sorted(maps.Keys(n.values)) {
		set(&n.initial, loc, n.p.Initial(loc))
	}
	for _, all := range n.traces {
		for i := range all {
			for _, e := range all[i].events {
				switch e.Kind {
				case model.R:
					set(&all[i].needs, e.Loc, e.Value)
				case model.W:
					set(&all[i].writes, e.Loc, e.Value)
				}
			}
		}
	}
}

// feasible says that each value that is read is written, too.
func (n *enumeration) feasible(chosen []*trace) bool {
	for _, tr := range chosen {
		for i, missing := range tr.needs {
			if i < len(n.initial) {
				missing &^= n.initial[i]
			}
			for _, o := range chosen {
				if i < len(o.writes) {
					missing &^= o.writes[i]
				}
			}
			if missing != 0 {
				return false
			}
		}
	}
	return true
}

// of gives the values that a location may have.
func (n *enumeration) of(loc int32) map[int64]bool {
	v := n.values[loc]
	if v == nil {
		v = map[int64]bool{n.p.Initial(loc): true}
		n.values[loc] = v
	}
	return v
}

// thread gives the traces of a thread.
func (n *enumeration) thread(t int) (out []trace, err error) {
	var walk func(tr trace, op explore.Op)
	// end adds a trace.
	end := func(tr trace, op explore.Op, parked bool) {
		tr.events, tr.deps, tr.state = slices.Clone(tr.events), slices.Clone(tr.deps), slices.Clone(tr.state)
		tr.last, tr.parked = op, parked
		if out = append(out, tr); len(out) > maxTraces {
			err = ErrTooLarge
		}
	}
	// event adds an event of a step.
	event := func(tr *trace, op *explore.Op, kind model.Kind, order model.Order, value int64, deps uint64) *explore.Event {
		tr.events = append(tr.events, explore.Event{Event: model.Event{Thread: t, Kind: kind, Order: order, Scope: op.Scope, Loc: op.Loc, Place: n.places[t],
			Proxy: op.Proxy, Address: op.Address, Reduction: op.Reduction}, Op: *op, Index: len(tr.events), Value: value, RF: -1})
		tr.deps = append(tr.deps, deps)
		return &tr.events[len(tr.events)-1]
	}
	resume := func(tr trace, value int64) {
		tr.state = slices.Clone(tr.state)
		var op explore.Op
		n.p.Resume(t, tr.state, value, &op)
		walk(tr, op)
	}
	walk = func(tr trace, op explore.Op) {
		if n.steps++; n.steps > maxSteps || len(tr.events) > maxEvents {
			err = ErrTooLarge
		}
		if err != nil {
			return
		}
		switch op.Kind {
		case explore.End, explore.Fail, explore.Await, explore.Assumed, explore.Bound, explore.Refused:
			end(tr, op, false)
		case explore.Fence:
			event(&tr, &op, model.F, op.Order, 0, 0)
			resume(tr, 0)
		case explore.Write:
			event(&tr, &op, model.W, op.Order, op.Value, op.Deps)
			resume(tr, 0)
		case explore.Arrive, explore.Signal:
			event(&tr, &op, model.Arrival, model.NA, 0, 0)
			if op.Kind == explore.Arrive {
				end(tr, op, true)
				event(&tr, &op, model.Leave, model.NA, 0, 0)
			}
			resume(tr, 0)
		case explore.Read, explore.Update:
			reads := 0
			for i := range tr.events {
				if tr.events[i].Kind == model.R {
					reads++
				}
			}
			for _, v := range slices.Sorted(maps.Keys(n.of(op.Loc))) {
				tr := tr
				if op.Kind == explore.Read {
					event(&tr, &op, model.R, op.Order, v, op.Deps)
				} else {
					w, writes := n.p.Apply(&op, v)
					r := event(&tr, &op, model.R, op.Order.OfRead(), v, op.Deps)
					if writes {
						r.RMW = true
						deps := op.Deps
						if op.Function != explore.Exchange {
							deps |= 1 << min(reads, 63)
						}
						event(&tr, &op, model.W, op.Order.OfWrite(), w, deps).RMW = true
					}
				}
				// Appends of other values must not share what follows.
				tr.events, tr.deps = slices.Clip(tr.events), slices.Clip(tr.deps)
				resume(tr, v)
			}
		}
	}
	start := trace{state: make([]int64, n.p.StateWords())}
	var op explore.Op
	n.p.Start(t, start.state, &op)
	walk(start, op)
	return out, err
}

// choose combines the traces of the threads.
func (n *enumeration) choose(chosen []*trace, t int) {
	if t == len(chosen) {
		n.combine(chosen)
		return
	}
	for i := range n.traces[t] {
		if n.result.Stopped {
			return
		}
		chosen[t] = &n.traces[t][i]
		n.choose(chosen, t+1)
	}
}

// combine tries what the threads may have read from, and the orders of their writes.
func (n *enumeration) combine(chosen []*trace) {
	if n.result.Graphs++; n.result.Graphs&0xff == 0 {
		n.pause()
	}
	if !n.feasible(chosen) {
		return
	}
	if c := n.newCandidate(chosen); c != nil {
		c.source(0)
	}
}

func (n *enumeration) pause() {
	if n.ctx.Err() != nil {
		n.result.Stopped = true
	}
	if n.Progress != nil {
		n.Progress(n.result.Executions, 0)
	}
}

// candidate is a combination of traces. The initial writes are its first events.
type candidate struct {
	*enumeration
	threads  []*trace
	x        *model.Execution
	events   []explore.Event
	locs     []int32
	initials int
	reads    []int
	fences   []int   // sc
	writes   [][]int // by location, but for the initial ones
	order    [][]int
	rf       []int
	diverged int // the thread that waits at a barrier that others do not reach, -1 for none
	other    int
	seen     map[string]bool
}

// newCandidate gives nil if the threads cannot come to such an end together.
func (n *enumeration) newCandidate(chosen []*trace) *candidate {
	c := &candidate{enumeration: n, threads: chosen, diverged: -1}
	at := map[int32]int{}
	for _, tr := range chosen {
		for i := range tr.events {
			if e := &tr.events[i]; e.Kind == model.R || e.Kind == model.W {
				if _, ok := at[e.Loc]; !ok {
					at[e.Loc] = 0
					c.locs = append(c.locs, e.Loc)
				}
			}
		}
	}
	slices.Sort(c.locs)
	for i, l := range c.locs {
		at[l] = i
		c.events = append(c.events, explore.Event{Event: model.Event{Thread: -1, Kind: model.W, Loc: l}, Value: n.p.Initial(l), RF: -1})
	}
	c.initials = len(c.locs)
	c.writes, c.order = make([][]int, c.initials), make([][]int, c.initials)
	for _, tr := range chosen {
		c.events = append(c.events, tr.events...)
	}
	size := len(c.events)
	c.x = &model.Execution{PO: model.NewRel(size), RF: model.NewRel(size), RMW: model.NewRel(size), Bar: model.NewRel(size), Dep: model.NewRel(size)}
	for i := range c.events {
		c.x.E = append(c.x.E, c.events[i].Event)
	}
	first := c.initials
	for _, tr := range chosen {
		var reads []int
		for k := range tr.events {
			i := first + k
			e := &c.events[i]
			for j := range i {
				if j < c.initials || j >= first {
					c.x.PO.Add(j, i)
				}
			}
			for r, from := range reads {
				if tr.deps[k]>>min(r, 63)&1 != 0 {
					c.x.Dep.Add(from, i)
				}
			}
			switch {
			case e.Kind == model.R:
				reads = append(reads, i)
				c.reads = append(c.reads, i)
			case e.Kind == model.W:
				if e.RMW {
					c.x.RMW.Add(i-1, i)
				}
				c.writes[at[e.Loc]] = append(c.writes[at[e.Loc]], i)
			case e.Kind == model.F && e.Order == model.SC:
				c.fences = append(c.fences, i)
			}
		}
		first += len(tr.events)
	}
	c.rf = make([]int, size)
	if !c.barriers() {
		return nil
	}
	return c
}

// barriers relates the arrivals of a block at a barrier, the n-th of each thread, to the events that leave it. It gives false if one
// has left where another has not arrived, or if one waits where all have arrived.
func (c *candidate) barriers() bool {
	type meeting struct {
		cta, barrier int32
		generation   int
	}
	arrivals := map[meeting][]int{}
	counts := map[[2]int]int{}
	meetings := make([]meeting, len(c.events))
	for i := range c.events {
		e := &c.events[i]
		switch e.Kind {
		case model.Arrival:
			k := [2]int{e.Thread, int(e.Loc)}
			meetings[i] = meeting{e.Place.CTA, e.Loc, counts[k]}
			counts[k]++
			arrivals[meetings[i]] = append(arrivals[meetings[i]], i)
		case model.Leave:
			meetings[i] = meetings[i-1]
		}
	}
	missing := func(m meeting) int {
	threads:
		for t, p := range c.places {
			if p.CTA == m.cta {
				for _, a := range arrivals[m] {
					if c.events[a].Thread == t {
						continue threads
					}
				}
				return t
			}
		}
		return -1
	}
	end := c.initials
	for t, tr := range c.threads {
		for i := end; i < end+len(tr.events); i++ {
			if c.events[i].Kind == model.Leave {
				if missing(meetings[i]) >= 0 {
					return false
				}
				for _, a := range arrivals[meetings[i]] {
					c.x.Bar.Add(a, i)
				}
			}
		}
		if end += len(tr.events); tr.parked {
			o := missing(meetings[end-1])
			if o < 0 {
				return false
			}
			if c.diverged < 0 {
				c.diverged, c.other = t, o
			}
		}
	}
	return true
}

// strong says that two accesses are morally strong.
func (c *candidate) strong(a, b int) bool {
	return c.m.MorallyStrong(&c.x.E[a], &c.x.E[b], c.x.PO.Has(a, b) || c.x.PO.Has(b, a))
}

// source gives read i and those after it each write of their values.
func (c *candidate) source(i int) {
	if c.result.Stopped {
		return
	}
	if i == len(c.reads) {
		if c.m.Grounded(c.x) {
			c.seen = map[string]bool{}
			c.fenceSC(c.fences, nil)
		}
		return
	}
	r := c.reads[i]
	e := &c.events[r]
next:
	for w := range c.events {
		f := &c.events[w]
		if f.Kind != model.W || f.Loc != e.Loc || f.Value != e.Value || f.Thread == e.Thread && f.Index > e.Index {
			continue
		}
		if e.RMW && c.m.Drop != model.PTXDropAtomicity { // two cannot update one value
			for _, o := range c.reads[:i] {
				if c.rf[o] == w && c.events[o].RMW && c.strong(r, o) && c.strong(w, r) && c.strong(w, o) {
					continue next
				}
			}
		}
		c.x.RF.Add(w, r)
		c.rf[r] = w
		c.source(i + 1)
		c.x.RF.Remove(w, r)
	}
}

// fenceSC tries the orders of the sc fences: of those that are morally strong it matters which comes first.
func (c *candidate) fenceSC(rest, done []int) {
	if c.result.Stopped {
		return
	}
	if len(rest) == 0 {
		c.causes(done)
		return
	}
next:
	for i, f := range rest {
		for _, o := range rest[:i] {
			// Those of a thread, and those that are not related, come in one order.
			if c.x.E[o].Thread == c.x.E[f].Thread || !c.strong(o, f) {
				continue next
			}
		}
		c.fenceSC(slices.Concat(rest[:i:i], rest[i+1:]), append(done, f))
	}
}

// coherent is an order of the writes of a location that the axioms allow.
type coherent struct {
	order     []int
	coherence model.Rel // as far as the model has it
	fr        model.Rel
	key       string
}

// causes judges what was read from where, and the order of the fences. What remains is the order of writes, of each location alone.
func (c *candidate) causes(fences []int) {
	c.tick()
	x := c.x
	x.FenceSC = model.NewRel(len(c.events))
	for i, f := range fences {
		for _, g := range fences[i+1:] {
			if c.strong(f, g) {
				x.FenceSC.Add(f, g)
			}
		}
	}
	r := c.m.Causes(x)
	if !c.m.Causal(x, r) {
		return
	}
	allowed := make([][]coherent, len(c.writes))
	for l := range c.writes {
		if allowed[l] = c.coherence(l, r); len(allowed[l]) == 0 {
			return
		}
	}
	c.view = view{c: c, r: r, executions: c.result.Executions}
	raced := false
	var choose func(l int, coherence, fr model.Rel, key string)
	choose = func(l int, coherence, fr model.Rel, key string) {
		if c.result.Stopped {
			return
		}
		if l < len(allowed) {
			for _, o := range allowed[l] {
				c.order[l] = o.order
				choose(l+1, model.Union(coherence, o.coherence), model.Union(fr, o.fr), key+o.key+";")
			}
			return
		}
		r.Coherence, r.FR = coherence, fr
		end := c.ending(r)
		if !raced && c.Races && (end == explore.Complete || end == explore.Stuck || end == explore.Diverged) {
			raced = true
			c.races(r)
		}
		if !c.seen[key] { // with another order of the fences
			c.seen[key] = true
			c.execution(end)
		}
	}
	empty := model.NewRel(len(c.events))
	choose(0, empty, empty, "")
}

func (c *candidate) tick() {
	if c.result.Graphs++; c.result.Graphs&0xff == 0 {
		c.pause()
	}
}

// coherence gives the orders of the writes of location l that the axioms allow. Those of a thread by one proxy are in its order, and
// an update follows what it has read.
func (c *candidate) coherence(l int, r *model.PTXRelations) (out []coherent) {
	seen := map[string]bool{}
	var order []int
	var place func(rest []int)
	place = func(rest []int) {
		if c.result.Stopped {
			return
		}
		if len(rest) == 0 {
			c.tick()
			c.x.CO = model.NewRel(len(c.events))
			for i, w := range order {
				c.x.CO.Add(l, w)
				for _, v := range order[i+1:] {
					c.x.CO.Add(w, v)
				}
			}
			if c.m.Communicate(c.x, r); !c.m.Coherent(c.x, r) {
				return
			}
			if key := r.Coherence.Key(); !seen[key] {
				seen[key] = true
				out = append(out, coherent{slices.Clone(order), r.Coherence, r.FR, key})
			}
			return
		}
	next:
		for i, w := range rest {
			for _, o := range rest[:i] {
				if c.events[o].Thread == c.events[w].Thread && c.events[o].SameProxy(&c.events[w].Event) {
					continue next
				}
			}
			if c.events[w].RMW && c.m.Drop == model.PTXWhole && !c.follows(w, order) {
				continue
			}
			order = append(order, w)
			place(slices.Concat(rest[:i:i], rest[i+1:]))
			order = order[:len(order)-1]
		}
	}
	place(c.writes[l])
	return out
}

// follows says that update w may come next: no write that is morally strong with what it has read and with it is between the two.
func (c *candidate) follows(w int, order []int) bool {
	from := c.rf[w-1]
	if from >= c.initials && !c.strong(from, w) {
		return true
	}
	for i := len(order) - 1; i >= 0; i-- {
		if order[i] == from {
			return true
		}
		if c.strong(order[i], w) && c.strong(from, order[i]) {
			return false
		}
	}
	return from < c.initials
}

// races tells of the data races of the execution.
func (c *candidate) races(r *model.PTXRelations) {
	for a := c.initials; a < len(c.events); a++ {
		for b := a + 1; b < len(c.events); b++ {
			if r.Race(c.x, a, b) {
				c.race(a, b)
			}
		}
	}
}

// execution counts the execution and tells of it.
func (c *candidate) execution(end explore.Ending) {
	c.result.Events = max(c.result.Events, len(c.events)-c.initials)
	switch end {
	case explore.Complete:
		c.failures()
		c.leaves(0)
		c.result.Executions++
		c.view.executions = c.result.Executions
	case explore.Cut:
		c.result.Cut++
	case explore.Blocked:
		c.result.Blocked++
	default:
		c.stuck(end)
		c.result.Stuck++
	}
}

// ending says how the execution ends.
func (c *candidate) ending(r *model.PTXRelations) explore.Ending {
	end := explore.Complete
	for t, tr := range c.threads {
		switch tr.last.Kind {
		case explore.Bound, explore.Refused:
			return explore.Cut
		case explore.Assumed:
			end = explore.Blocked
		case explore.Await:
			if end == explore.Blocked || !c.fair(t, r) {
				end = explore.Blocked
			} else {
				end = explore.Stuck
			}
		}
	}
	if c.diverged >= 0 && end != explore.Blocked {
		return explore.Diverged
	}
	return end
}

// fair says that thread t, which spins, has read in its last iteration what no write follows.
func (c *candidate) fair(t int, r *model.PTXRelations) bool {
	end := c.initials
	for _, tr := range c.threads[:t+1] {
		end += len(tr.events)
	}
	steps := c.threads[t].last.Value
	for i := end - 1; i >= end-len(c.threads[t].events) && steps > 0; i-- {
		if c.events[i].Kind == model.R && !r.FR.EmptyRow(i) {
			return false
		}
		if e := &c.events[i]; !(e.Kind == model.W && e.RMW) && e.Kind != model.Leave {
			steps--
		}
	}
	return true
}

func (c *candidate) found(e explore.Error) {
	if c.Found != nil && !c.result.Stopped && !c.Found(e, &c.view) {
		c.result.Stopped = true
	}
}

// race tells of a data race.
func (c *candidate) race(a, b int) {
	kind := explore.DataRace
	if c.x.E[a].Strong() && c.x.E[b].Strong() && c.x.E[a].SameProxy(&c.x.E[b]) {
		kind = explore.HeterogeneousRace
	}
	c.found(explore.Error{Kind: kind, A: a - c.initials, B: b - c.initials, Thread: -1, Other: -1})
}

// failures tells of assertions that have failed.
func (c *candidate) failures() {
	end := -1
	for t, tr := range c.threads {
		if end += len(tr.events); tr.last.Kind == explore.Fail {
			a := end
			if len(tr.events) == 0 {
				a = -1
			}
			c.found(explore.Error{Kind: explore.AssertionFailed, A: a, B: -1, Thread: t, Other: -1, Pos: tr.last.Pos})
		}
	}
}

// stuck tells why an execution that cannot go on has not ended.
func (c *candidate) stuck(end explore.Ending) {
	if end == explore.Diverged {
		at, other := &c.threads[c.diverged].last, &c.threads[c.other].last
		c.found(explore.Error{Kind: explore.BarrierDivergence, A: -1, B: -1, Thread: c.diverged, Other: c.other, Pos: at.Pos, OtherPos: other.Pos})
		return
	}
	for t, tr := range c.threads {
		if tr.last.Kind == explore.Await {
			c.found(explore.Error{Kind: explore.Deadlock, A: -1, B: -1, Thread: t, Other: -1, Pos: tr.last.Pos})
			return
		}
	}
}

// leaves calls Leaf with each choice of the final values: of writes that are not related in coherence order, any may be the last.
func (c *candidate) leaves(l int) {
	if c.Leaf == nil {
		return
	}
	if l == 0 {
		c.view.final = map[int32]int64{}
	}
	if l == len(c.order) {
		c.Leaf(&c.view, explore.Complete)
		return
	}
	values := map[int64]bool{}
	for _, w := range append([]int{l}, c.order[l]...) {
		if c.view.r.Coherence.EmptyRow(w) {
			values[c.events[w].Value] = true
		}
	}
	for _, v := range slices.Sorted(maps.Keys(values)) {
		c.view.final[c.locs[l]] = v
		c.leaves(l + 1)
	}
}
