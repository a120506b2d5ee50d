package candidates

import (
	"slices"

	"fencepost.dev/fencepost/internal/verify/model"
)

// built is the execution so far in the form of package model. Its first events are the initial writes.
type built struct {
	x        *model.Execution
	locs     []int32 // of the initial writes
	initials int
}

// build makes the execution of the events so far.
func (s *search) build() *built {
	at := map[int32]int{}
	b := &built{}
	for i := range s.events {
		if e := &s.events[i]; e.Kind == model.R || e.Kind == model.W {
			if _, ok := at[e.Loc]; !ok {
				at[e.Loc] = 0
				b.locs = append(b.locs, e.Loc)
			}
		}
	}
	slices.Sort(b.locs)
	n := len(b.locs) + len(s.events)
	x := &model.Execution{E: make([]model.Event, 0, n), PO: model.NewRel(n), RF: model.NewRel(n), RMW: model.NewRel(n), Bar: model.NewRel(n), Dep: model.NewRel(n), FenceSC: model.NewRel(n)}
	b.x, b.initials = x, len(b.locs)
	for i, l := range b.locs {
		at[l] = i
		x.E = append(x.E, model.Event{Thread: -1, Kind: model.W, Loc: l})
	}
	for i := range s.events {
		x.E = append(x.E, s.events[i].Event.Event)
	}
	for t := range s.threads {
		of := s.threads[t].events
		for k, e := range of {
			i := b.initials + e
			for j := range b.initials {
				x.PO.Add(j, i)
			}
			for _, o := range of[:k] {
				x.PO.Add(b.initials+o, i)
			}
			s.relate(b, at, e)
			if ev := &s.events[e]; ev.Kind == model.W && ev.RMW {
				x.RMW.Add(b.initials+of[k-1], i)
			}
		}
	}
	return b
}

// relate adds the reads-from edge, the dependencies and the barriers of event e.
func (s *search) relate(b *built, at map[int32]int, e int) {
	ev := &s.events[e]
	i := b.initials + e
	switch ev.Kind {
	case model.R:
		if ev.rf >= 0 {
			b.x.RF.Add(b.initials+ev.rf, i)
		} else if ev.rf == initial {
			b.x.RF.Add(at[ev.Loc], i)
		}
	case model.Leave:
		s.arrivals(e, func(a int) { b.x.Bar.Add(b.initials+a, i) })
	}
	of := s.threads[ev.Thread].events
	for _, l := range of[:ev.Index] {
		if s.events[l].Kind == model.Leave {
			b.x.Dep.Add(b.initials+l, i)
		}
	}
	for _, r := range s.dependencies(e) {
		if r != e {
			b.x.Dep.Add(b.initials+r, i)
		}
	}
}

// causes is the result of the model for the first events of an execution.
type causes struct {
	b      *built
	r      *model.PTXRelations
	events int
}

// consistent calls then if no axiom forbids the execution so far, checking coherence only for the locations of the
// given events. The order of sc fences is not chosen yet.
func (s *search) consistent(then func(), of ...int) {
	b := s.build()
	r := s.m.Causes(b.x)
	if s.promises && !s.m.Grounded(b.x) || !s.m.Causal(b.x, r) {
		return
	}
	for k, e := range of {
		if k > 0 && s.events[e].Loc == s.events[of[0]].Loc {
			continue
		}
		if !s.local(b, r, s.events[e].Loc).any() {
			return
		}
	}
	before := s.causes
	s.causes = causes{b, r, len(s.events)}
	then()
	s.causes = before
}

// after reports whether all future events of thread t come after event e in causality order.
func (s *search) after(t, e int) bool {
	c := &s.causes
	if !s.oneProxy || s.m.Drop != model.PTXWhole || e >= c.events {
		return false
	}
	of := s.threads[t].events
	for i := len(of) - 1; i >= 0; i-- {
		if of[i] < c.events {
			return c.r.BaseCausality.Has(c.b.initials+e, c.b.initials+of[i])
		}
	}
	return false
}

// local is the part of an execution that concerns one location. Each axiom about coherence concerns one location.
type local struct {
	m      model.PTX
	global []int // the numbers of its events in the whole execution
	x      *model.Execution
	r      *model.PTXRelations
	writes []int // without the initial one
	tick   func() (stopped bool)
}

// local returns the part of the execution that concerns location loc.
func (s *search) local(b *built, r *model.PTXRelations, loc int32) *local {
	l := &local{m: s.m, tick: s.tick}
	for i := range b.x.E {
		if e := &b.x.E[i]; (e.Kind == model.R || e.Kind == model.W) && e.Loc == loc {
			l.global = append(l.global, i)
		}
	}
	l.x = &model.Execution{PO: b.x.PO.Of(l.global), RF: b.x.RF.Of(l.global), RMW: b.x.RMW.Of(l.global)}
	l.r = &model.PTXRelations{MorallyStrong: r.MorallyStrong.Of(l.global), Causality: r.Causality.Of(l.global)}
	for k, i := range l.global {
		l.x.E = append(l.x.E, b.x.E[i])
		if k > 0 && b.x.E[i].Kind == model.W {
			l.writes = append(l.writes, k)
		}
	}
	return l
}

// any reports whether some order of the writes is allowed.
func (l *local) any() bool {
	found := false
	l.orders(func([]int) bool { found = true; return false })
	return found
}

// orders calls do for each order of the writes that the axioms allow, with the relations that follow from it, until do
// returns false.
func (l *local) orders(do func(order []int) bool) {
	var order []int
	var place func(rest []int) bool
	place = func(rest []int) bool {
		if l.tick() {
			return false
		}
		if len(rest) == 0 {
			return !l.allowed(order) || do(order)
		}
	next:
		for i, w := range rest {
			for _, o := range rest {
				if o != w && l.before(o, w) {
					continue next
				}
			}
			if l.x.E[w].Kind == model.W && l.m.Drop == model.PTXWhole && !l.follows(w, order) {
				continue
			}
			order = append(order, w)
			on := place(slices.Concat(rest[:i:i], rest[i+1:]))
			if order = order[:len(order)-1]; !on {
				return false
			}
		}
		return true
	}
	place(l.writes)
}

// before reports whether write o precedes write w in every order. That is so for writes of one thread by one proxy, and
// for writes ordered by causality.
func (l *local) before(o, w int) bool {
	return l.x.PO.Has(o, w) && l.x.E[o].SameProxy(&l.x.E[w]) || l.m.Drop == model.PTXWhole && l.r.Causality.Has(o, w)
}

// follows reports whether update w may come next: no write that is morally strong with the update and with its source
// is between the two.
func (l *local) follows(w int, order []int) bool {
	if w == 0 || !l.x.RMW.Has(w-1, w) {
		return true
	}
	from := l.x.RF.Source(w - 1)
	if from < 0 {
		return true // a promise
	}
	if from > 0 && !l.r.MorallyStrong.Has(from, w) {
		return true
	}
	for i := len(order) - 1; i >= 0; i-- {
		if order[i] == from {
			return true
		}
		if l.r.MorallyStrong.Has(order[i], w) && l.r.MorallyStrong.Has(from, order[i]) {
			return false
		}
	}
	return from == 0
}

// allowed reports whether the axioms allow an order of the writes. It leaves the relations of the order in l.r.
func (l *local) allowed(order []int) bool {
	l.x.CO = model.NewRel(len(l.global))
	for i, w := range order {
		l.x.CO.Add(0, w)
		for _, v := range order[i+1:] {
			l.x.CO.Add(w, v)
		}
	}
	l.m.Communicate(l.x, l.r)
	return l.m.Coherent(l.x, l.r)
}

// first reports whether an order of the writes, whose coherence order is in l.r, is the first one of those with the same
// coherence order: no write could have come before an earlier one with a larger number.
func (l *local) first(order []int) bool {
	for i, w := range order {
		for j := i + 1; j < len(order); j++ {
			if v := order[j]; v < w && !slices.ContainsFunc(order[i:j], func(u int) bool { return l.r.Coherence.Has(u, v) }) {
				return false
			}
		}
	}
	return true
}
