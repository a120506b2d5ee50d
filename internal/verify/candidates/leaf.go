package candidates

import (
	"crypto/sha256"
	"maps"
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// candidate is an execution whose threads have all ended or cannot go on. The order of the sc fences and the orders of
// the writes remain to be chosen.
type candidate struct {
	*search
	*built
	values   []int64 // of the initial writes
	order    [][]int // by location: the order of the writes, as events of the search
	r        *model.PTXRelations
	diverged int // the thread that waits at a barrier that others do not reach, -1 for none
	other    int
	// seen are the coherence orders of executions that were counted with another order of the fences; nil if only one
	// order is tried.
	seen map[[sha256.Size]byte]bool
}

// leaf chooses the last reads of spinning threads when no thread can make another step.
func (s *search) leaf() {
	for t := range s.threads {
		op := s.threads[t].op
		if k := op.Kind; k != explore.Read && k != explore.Update || s.cut() {
			continue
		}
		e := s.push(t, model.R, s.readOrder(&op), 0, op.Deps)
		s.sources(e, func(_, w int, value int64) {
			if !s.awaits(t, value) || s.overwritten(w, value, op.Loc) {
				return
			}
			s.events[e].rf, s.events[e].Value = w, value
			s.resume(t, value, func() { s.consistent(s.leaf, e) })
		})
		s.pop(t)
		return
	}
	s.judge()
}

// cut reports whether a thread has reached its bound. Whether others wait for it then does not matter.
func (s *search) cut() bool {
	return slices.ContainsFunc(s.threads, func(th thread) bool { return th.op.Kind == explore.Bound })
}

// overwritten reports whether a write of another value follows write w of a location in every possible order.
func (s *search) overwritten(w int, value int64, loc int32) bool {
	for i := range s.events {
		f := &s.events[i]
		if f.Kind == model.W && f.Loc == loc && f.Value != value && (w == initial || i > w && f.Thread == s.events[w].Thread && f.SameProxy(&s.events[w].Event.Event)) {
			return true
		}
	}
	return false
}

// judge judges an execution in which no thread can make another step.
func (s *search) judge() {
	c := &candidate{search: s, built: s.build(), diverged: -1}
	if !s.m.Grounded(c.x) {
		return
	}
	s.collect()
	for _, l := range c.locs {
		c.values = append(c.values, s.p.Initial(l))
	}
	c.order = make([][]int, len(c.locs))
	c.parked()
	var fences []int
	for i := range c.x.E {
		if e := &c.x.E[i]; e.Kind == model.F && e.Order == model.SC && e.Proxy == model.Generic {
			fences = append(fences, i)
		}
	}
	r := s.m.Causes(c.x)
	if s.m.Drop == model.PTXWhole && s.oneProxy && c.inclusive(fences) && !c.racing(r) {
		c.coherences(r, func() bool { return c.ordered(r) })
		return
	}
	c.seen = map[[sha256.Size]byte]bool{}
	c.fenceSC(r, fences, nil)
}

// parked finds a thread that waits at a barrier that another thread of its CTA has not reached. If that other thread
// spins, the spinning is the reason.
func (c *candidate) parked() {
	for t := range c.threads {
		if !c.threads[t].parked {
			continue
		}
		for _, o := range c.missing(t) {
			if k := c.threads[o].op.Kind; c.diverged < 0 && k != explore.Await && !(c.Exits && k == explore.End) {
				c.diverged, c.other = t, o
			}
		}
	}
}

// inclusive reports whether all sc fences are morally strong.
func (c *candidate) inclusive(fences []int) bool {
	for i, f := range fences {
		if slices.ContainsFunc(fences[:i], func(g int) bool { return !c.strong(f, g) }) {
			return false
		}
	}
	return true
}

// ordered reports whether an order of the sc fences exists for the chosen coherence order, and adds the required edges.
func (c *candidate) ordered(r *model.PTXRelations) bool {
	order, ok := c.m.FenceOrder(c.x, r)
	if ok {
		c.x.FenceSC = order
		c.r = c.m.Causes(c.x)
		c.r.Coherence, c.r.FR = r.Coherence, r.FR
		c.x.FenceSC = model.NewRel(len(c.x.E))
	}
	return ok
}

// strong reports whether two events are morally strong.
func (c *candidate) strong(a, b int) bool {
	return c.m.MorallyStrong(&c.x.E[a], &c.x.E[b], c.x.PO.Has(a, b) || c.x.PO.Has(b, a))
}

// fenceSC tries the orders of the sc fences. Only the relative order of morally strong fences matters. Causality
// without the fences decides the order of some of them. Of the orders that differ only in unrelated fences, it tries
// the first by their numbers.
func (c *candidate) fenceSC(r *model.PTXRelations, rest, done []int) {
	if c.result.Stopped {
		return
	}
	if len(rest) == 0 {
		c.causes(done)
		return
	}
next:
	for i, f := range rest {
		for k, o := range rest {
			if k < i && c.x.E[o].Thread == c.x.E[f].Thread || k != i && r.BaseCausality.Has(o, f) && c.strong(o, f) {
				continue next
			}
		}
		for k := len(done) - 1; k >= 0 && !c.strong(done[k], f); k-- {
			if done[k] > f { // f might precede it
				continue next
			}
		}
		c.fenceSC(r, slices.Concat(rest[:i:i], rest[i+1:]), append(done, f))
	}
}

// coherent is an order of the writes of a location that the axioms allow.
type coherent struct {
	order     []int
	coherence model.Rel // the part that the model defines
	fr        model.Rel
}

// causes judges the execution with an order of the sc fences. The orders of the writes, of each location separately,
// remain to be chosen.
func (c *candidate) causes(fences []int) {
	c.tick()
	x := c.x
	x.FenceSC = model.NewRel(len(x.E))
	for i, f := range fences {
		for _, g := range fences[i+1:] {
			if c.strong(f, g) {
				x.FenceSC.Add(f, g)
			}
		}
	}
	r := c.m.Causes(x)
	c.coherences(r, func() bool { c.r = r; return true })
}

// coherences judges the execution with each combination of coherence orders that the axioms allow for each location
// separately and together. Those of the location with most writes are not kept in memory.
func (c *candidate) coherences(r *model.PTXRelations, allow func() bool) {
	if !c.m.Causal(c.x, r) {
		return
	}
	locals := make([]*local, len(c.locs))
	most := -1
	for l, loc := range c.locs {
		if locals[l] = c.local(c.built, r, loc); !locals[l].any() {
			return
		}
		if most < 0 || len(locals[l].writes) > len(locals[most].writes) {
			most = l
		}
	}
	allowed := make([][]coherent, len(c.locs))
	for l := range locals {
		if l != most {
			c.coherence(locals[l], func(o coherent) { allowed[l] = append(allowed[l], o) })
		}
	}
	c.search.view = view{c: c, executions: c.result.Executions}
	raced := false
	judge := func(coherence, fr model.Rel) {
		if r.Coherence, r.FR = coherence, fr; !allow() {
			return
		}
		end := c.ending(r)
		if end == unfair {
			return
		}
		if !raced && (c.Races || !c.weak) && end != explore.Blocked {
			raced = true
			c.races(r)
		}
		if c.seen != nil {
			key := sha256.Sum256([]byte(coherence.Key()))
			if c.seen[key] {
				return
			}
			c.seen[key] = true
		}
		c.execution(end)
	}
	var choose func(l int, coherence, fr model.Rel)
	choose = func(l int, coherence, fr model.Rel) {
		with := func(l int, o coherent, next int) {
			c.order[l] = o.order
			choose(next, model.Union(coherence, o.coherence), model.Union(fr, o.fr))
		}
		switch {
		case c.tick():
		case l == most:
			choose(l+1, coherence, fr)
		case l < len(allowed):
			for _, o := range allowed[l] {
				with(l, o, l+1)
			}
		case l == len(allowed) && most >= 0:
			c.coherence(locals[most], func(o coherent) { with(most, o, l+1) })
		default:
			judge(coherence, fr)
		}
	}
	empty := model.NewRel(len(c.x.E))
	choose(0, empty, empty)
}

// coherence calls do with the orders of the writes of a location that the axioms allow, one for each coherence order that
// the model distinguishes.
func (c *candidate) coherence(l *local, do func(coherent)) {
	l.orders(func(order []int) bool {
		if !c.tick() && l.first(order) {
			o := coherent{coherence: l.r.Coherence.In(len(c.x.E), l.global), fr: l.r.FR.In(len(c.x.E), l.global)}
			for _, w := range order {
				o.order = append(o.order, l.global[w]-c.initials)
			}
			do(o)
		}
		return !c.result.Stopped
	})
}

// races reports the data races of the execution.
func (c *candidate) races(r *model.PTXRelations) {
	c.racesOf(r, func(a, b int) bool { c.race(a, b); return true })
}

// racing reports whether the execution has a data race.
func (c *candidate) racing(r *model.PTXRelations) (racing bool) {
	c.racesOf(r, func(int, int) bool { racing = true; return false })
	return racing
}

// racesOf calls do for each data race of the execution until do returns false.
func (c *candidate) racesOf(r *model.PTXRelations, do func(a, b int) bool) {
	for a := c.initials; a < len(c.x.E); a++ {
		for b := a + 1; b < len(c.x.E); b++ {
			if (r.Race(c.x, a, b) || c.polls(r, a, b)) && !do(a, b) {
				return
			}
		}
	}
}

// polls reports whether two events race only because one of them is the read of a spinning update that would write the
// value it has read: see completeRead.
func (c *candidate) polls(r *model.PTXRelations, a, b int) bool {
	e, f := &c.events[a-c.initials], &c.events[b-c.initials]
	if e.Kind != model.R || f.Kind != model.R || e.Loc != f.Loc || e.Thread == f.Thread || !c.writesBack(e) && !c.writesBack(f) {
		return false
	}
	return !r.MorallyStrong.Has(a, b) && !r.Causality.Has(a, b) && !r.Causality.Has(b, a)
}

// writesBack reports whether a read belongs to an update that would write the value it has read, and whose write is
// left out.
func (c *candidate) writesBack(e *event) bool {
	if e.Op.Kind != explore.Update || e.RMW {
		return false
	}
	written, writes := c.p.Apply(&e.Op, e.Value)
	return writes && written == e.Value
}

// execution counts the execution and reports it.
func (c *candidate) execution(end explore.Ending) {
	c.result.Events = max(c.result.Events, len(c.events))
	switch end {
	case explore.Complete:
		c.failures()
		c.uneven()
		c.leaves(0)
		c.result.Executions++
		c.search.view.executions = c.result.Executions
	case explore.Cut:
		c.failures()
		c.result.Cut++
	case explore.Blocked:
		c.result.Blocked++
	default:
		if !c.failures() {
			c.stuck(end)
		}
		c.result.Stuck++
	}
}

// unfair is the ending of an execution in which a thread spins although another value has been written.
const unfair = explore.Ending(255)

// ending says how the execution ends.
func (c *candidate) ending(r *model.PTXRelations) explore.Ending {
	end := explore.Complete
	for t := range c.threads {
		switch c.threads[t].op.Kind {
		case explore.Bound:
			return explore.Cut
		case explore.Assumed:
			end = explore.Blocked
		case explore.Await:
			switch {
			case !c.fair(t, r):
				return unfair
			case end == explore.Complete:
				end = explore.Stuck
			}
		}
	}
	if c.diverged >= 0 && end == explore.Complete {
		return explore.Diverged
	}
	return end
}

// fair reports whether no write of another value follows the writes that thread t, which spins, has read in its last
// iteration.
func (c *candidate) fair(t int, r *model.PTXRelations) bool {
	for _, i := range c.iteration(t) {
		for w := range c.events {
			if r.FR.Has(c.initials+i, c.initials+w) && c.events[w].Value != c.events[i].Value {
				return false
			}
		}
	}
	return true
}

func (c *candidate) found(e explore.Error) {
	if c.Found != nil && !c.result.Stopped && !c.Found(e, &c.search.view) {
		c.result.Stopped = true
	}
}

// race reports a data race.
func (c *candidate) race(a, b int) {
	kind := explore.DataRace
	if c.x.E[a].Strong() && c.x.E[b].Strong() && c.x.E[a].SameProxy(&c.x.E[b]) {
		kind = explore.HeterogeneousRace
	}
	if c.racy = true; !c.Races {
		return
	}
	c.found(explore.Error{Kind: kind, A: a - c.initials, B: b - c.initials, Thread: -1, Other: -1})
}

// failures reports failed assertions, and returns whether there are any.
func (c *candidate) failures() (any bool) {
	for t := range c.threads {
		th := &c.threads[t]
		if th.op.Kind == explore.Fail {
			a := -1
			if n := len(th.events); n > 0 {
				a = th.events[n-1]
			}
			c.found(explore.Error{Kind: explore.AssertionFailed, A: a, B: -1, Thread: t, Other: -1, Pos: th.op.Pos})
			any = true
		}
	}
	return any
}

// uneven reports threads that met at an aligned barrier through different instructions, and barriers that an exited
// thread has not reached.
func (c *candidate) uneven() {
	for i := range c.events {
		e := &c.events[i]
		if e.Kind != model.Leave {
			continue
		}
		came := map[int]bool{}
		c.arrivals(i, func(a int) {
			o := &c.events[a]
			if came[o.Thread] = true; o.Op.Pos != e.Op.Pos && e.Op.Aligned {
				c.found(explore.Error{Kind: explore.BarrierDivergence, A: i, B: a, Thread: e.Thread, Other: o.Thread, Pos: e.Op.Pos, OtherPos: o.Op.Pos})
			}
		})
		for o := range c.threads {
			if c.groups.Same(e.Thread, o, &e.Op) && !came[o] && e.Op.Lanes == 0 {
				c.found(explore.Error{Kind: explore.ExitedBarrier, A: i, B: -1, Thread: e.Thread, Other: o, Pos: e.Op.Pos, OtherPos: c.threads[o].op.Pos})
			}
		}
	}
}

// stuck reports why an execution that cannot go on has not ended.
func (c *candidate) stuck(end explore.Ending) {
	if end == explore.Diverged {
		at, other := &c.threads[c.diverged].op, &c.threads[c.other].op
		c.found(explore.Error{Kind: explore.BarrierDivergence, A: -1, B: -1, Thread: c.diverged, Other: c.other, Pos: at.Pos, OtherPos: other.Pos})
		return
	}
	first := -1 // a spinning thread: one that reads nothing, if there is one
	for t := range c.threads {
		if c.threads[t].op.Kind == explore.Await && (first < 0 || len(c.iteration(t)) == 0 && len(c.iteration(first)) > 0) {
			first = t
		}
	}
	if first >= 0 {
		c.found(explore.Error{Kind: explore.Deadlock, A: -1, B: -1, Thread: first, Other: -1, Pos: c.threads[first].op.Pos})
	}
}

// leaves calls Leaf with each choice of the final values: among writes that are unrelated in coherence order, any may
// be the last.
func (c *candidate) leaves(l int) {
	if c.Leaf == nil || c.result.Stopped {
		return
	}
	if l == 0 {
		c.search.view.final = map[int32]int64{}
	}
	if l == len(c.order) {
		c.Leaf(&c.search.view, explore.Complete)
		c.result.Stopped = c.Enough != nil && c.Enough()
		return
	}
	values := map[int64]bool{}
	if c.r.Coherence.EmptyRow(l) {
		values[c.values[l]] = true
	}
	for _, w := range c.order[l] {
		if c.r.Coherence.EmptyRow(c.initials + w) {
			values[c.events[w].Value] = true
		}
	}
	for _, v := range slices.Sorted(maps.Keys(values)) {
		c.search.view.final[c.locs[l]] = v
		c.leaves(l + 1)
	}
}
