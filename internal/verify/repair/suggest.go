package repair

import (
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// suggester collects the changes that might exclude an execution.
type suggester struct {
	x      explore.Execution
	events []explore.Event
	site   func(pos int32) int32
	ptx    bool
	out    []Patch
}

// Suggest returns changes each of which might exclude error e of execution x. If the execution fails a condition e is
// nil. ptx says that the model is that of PTX, which has no sc accesses.
func Suggest(x explore.Execution, e *explore.Error, site func(pos int32) int32, ptx bool) []Patch {
	s := &suggester{x: x, events: x.Events(), site: site, ptx: ptx}
	switch {
	case e == nil:
		s.order(nil)
	case e.Kind == explore.DataRace || e.Kind == explore.VolatileRace:
		s.synchronise(e.A, e.B)
		s.synchronise(e.B, e.A)
		s.barriers(e.A, e.B)
		if len(s.out) == 0 {
			s.hops(e.A, e.B)
			s.hops(e.B, e.A)
		}
		// For example, when threads let each other pass because of values that they do not read.
		if len(s.out) == 0 && s.events[e.A].RF != e.B && s.events[e.B].RF != e.A {
			s.order(func(i int) bool { return x.Before(i, e.A) || x.Before(i, e.B) })
		}
		s.atomic(e.A, e.B)
	case e.Kind == explore.HeterogeneousRace:
		s.atomic(e.A, e.B)
		s.synchronise(e.A, e.B)
		s.synchronise(e.B, e.A)
	case e.Kind == explore.AssertionFailed:
		s.order(func(i int) bool { return i == e.A || e.A >= 0 && x.Prefix(i, e.A) })
	case e.Kind == explore.Deadlock:
		for _, wait := range explore.Waits(x) {
			for _, w := range wait.Lost {
				s.synchronise(s.events[wait.Read].RF, w)
			}
		}
		s.order(nil)
	case e.Kind == explore.BarrierDivergence || e.Kind == explore.ExitedBarrier:
		s.out = append(s.out, Patch{site(e.Pos): {Drop: true}})
		if e.B >= 0 {
			s.out = append(s.out, Patch{site(e.OtherPos): {Drop: true}})
		} else {
			s.out = append(s.out, Patch{site(e.OtherPos): {Barrier: true}})
		}
	}
	return s.out
}

func (s *suggester) pos(e int) int32 { return s.site(s.events[e].Op.Pos) }

func (s *suggester) need(a, b int) model.Scope {
	return model.Need(s.events[a].Place, s.events[b].Place)
}

// included returns the change that makes e strong with at least that scope.
func (s *suggester) included(e int, scope model.Scope) Patch {
	ev := &s.events[e]
	switch {
	case !ev.Order.Atomic():
		return Patch{s.pos(e): {Order: model.Relaxed, Scope: scope, Atomic: true}}
	case ev.Scope < scope:
		return Patch{s.pos(e): {Scope: scope}}
	}
	return Patch{}
}

// atomic suggests making both accesses atomic with scopes that include each other: the repair of the paper.
func (s *suggester) atomic(a, b int) {
	out, scope := Patch{}, s.need(a, b)
	for _, e := range []int{a, b} {
		if s.events[e].Op.Volatile {
			out = out.And(Patch{s.pos(e): {Order: model.Relaxed, Scope: scope, Atomic: true}})
		}
		out = out.And(s.included(e, scope))
	}
	s.out = append(s.out, out)
}

// synchronise suggests changes that make a happen before b. A read that happens before b is made to synchronise with
// its source, if a happens before that write, or before a write whose release sequence contains the source. a and b
// themselves are not changed in this way; they only become atomic: see atomic.
func (s *suggester) synchronise(a, b int) {
	before := func(x, y int) bool { return x == y || s.x.Before(x, y) }
	for r := range s.events {
		if s.events[r].Kind != model.R || !before(r, b) || r == b && s.events[r].RF == a {
			continue
		}
		chain := Patch{}
		for read := r; ; {
			w := s.events[read].RF
			if w < 0 {
				break
			}
			scope := s.need(w, read)
			chain = chain.And(s.included(w, scope)).And(s.included(read, scope))
			if s.events[w].Thread != s.events[r].Thread && before(a, w) && !s.x.Before(w, b) {
				s.pair(w, r, chain, a, b)
			}
			if !s.events[w].RMW {
				break
			}
			read = slices.IndexFunc(s.events, func(e explore.Event) bool {
				return e.Thread == s.events[w].Thread && e.Index == s.events[w].Index-1
			})
		}
	}
}

// hops suggests changes that make a happen before b if a third thread has read what the thread of a has written, and
// written what the thread of b has read, and more than one of these reads does not synchronise: it suggests changing
// each of them.
func (s *suggester) hops(a, b int) {
	for r := range s.events {
		w := s.events[r].RF
		if s.events[r].Kind != model.R || w < 0 || s.events[w].Thread == s.events[r].Thread || s.x.Before(w, r) || w == a && r == b {
			continue
		}
		if (w == a || s.x.Prefix(a, w)) && (r == b || s.x.Prefix(r, b)) {
			scope := s.need(w, r)
			s.pair(w, r, s.included(w, scope).And(s.included(r, scope)), -1, -1)
		}
	}
}

// pair suggests changes that make write w a release, for a, and read r an acquire, for b. a or b is -1 if there is no
// such access.
func (s *suggester) pair(w, r int, chain Patch, a, b int) {
	scope := s.need(w, r)
	for _, release := range s.side(w, scope, true, a) {
		for _, acquire := range s.side(r, scope, false, b) {
			s.out = append(s.out, chain.And(release).And(acquire))
		}
	}
}

// side returns the ways to make access e a release, or an acquire: by itself or with a fence of that scope. An existing
// fence counts if it is between e and the other access, if there is one.
func (s *suggester) side(e int, scope model.Scope, release bool, other int) []Patch {
	ev := &s.events[e]
	if release && ev.Order.Releases() || !release && ev.Order.Acquires() {
		return []Patch{{}}
	}
	order, fence := model.Acquire, Change{After: Fence{model.AcqRel, scope}}
	if release {
		order, fence = model.Release, Change{Before: Fence{model.AcqRel, scope}}
	}
	out := []Patch{{s.pos(e): {Order: order}}, {s.pos(e): fence}}
	for i := range s.events {
		f := &s.events[i]
		if f.Kind != model.F || f.Order == model.NA || f.Thread != ev.Thread || (f.Index < ev.Index) != release {
			continue
		}
		if between := func(x, y int) bool { return x == y || s.x.Before(x, y) }; other >= 0 &&
			(release && !between(other, i) || !release && !between(i, other)) {
			continue
		}
		have := release && f.Order.Releases() || !release && f.Order.Acquires()
		switch {
		case have && f.Scope >= scope:
			return []Patch{{}}
		case have:
			out = append(out, Patch{s.pos(i): {Scope: scope}})
		default:
			out = append(out, Patch{s.pos(i): {Order: order, Scope: scope}})
		}
	}
	return out
}

// maxBarriers is the number of places at which a barrier is tried for one race.
const maxBarriers = 12

// barriers suggests a barrier before b or before an earlier step, and after a. Places that most threads of the CTA
// reach come first.
func (s *suggester) barriers(a, b int) {
	if s.need(a, b) != model.CTA {
		return
	}
	var places []int32
	add := func(pos int32) {
		if !slices.Contains(places, pos) {
			places = append(places, pos)
		}
	}
	for _, e := range []int{b, a} {
		for i := e; i >= 0; i-- {
			if s.events[i].Thread == s.events[e].Thread {
				if s.events[i].Kind == model.Leave && !s.events[i].Op.Exchanges {
					break
				}
				add(s.pos(i))
			}
		}
	}
	for _, e := range []int{a, b} {
		for i := e + 1; i < len(s.events); i++ {
			if s.events[i].Thread == s.events[e].Thread {
				add(s.pos(i))
			}
		}
		add(s.site(s.x.Next(s.events[e].Thread).Pos))
	}
	come := map[int32]map[int]bool{}
	for i := range s.events {
		if ev := &s.events[i]; s.need(i, a) == model.CTA {
			pos := s.pos(i)
			if come[pos] == nil {
				come[pos] = map[int]bool{}
			}
			come[pos][ev.Thread] = true
		}
	}
	slices.SortStableFunc(places, func(p, q int32) int { return len(come[q]) - len(come[p]) })
	for _, pos := range places[:min(len(places), maxBarriers)] {
		s.out = append(s.out, Patch{pos: {Barrier: true}})
	}
}

// Strongest returns the change that gives the atomic accesses of an execution the strongest order: they become sc or,
// if ptx says that the model is that of PTX, acquires and releases with sc fences between them.
func Strongest(x explore.Execution, site func(pos int32) int32, ptx bool) Patch {
	s := &suggester{x: x, events: x.Events(), site: site, ptx: ptx}
	out, widest := Patch{}, s.widest()
	for i := range s.events {
		ev := &s.events[i]
		if ev.Kind != model.R && ev.Kind != model.W || !ev.Order.Atomic() {
			continue
		}
		c := Change{Order: model.SC}
		if ev.Scope < widest {
			c.Scope = widest
		}
		if ptx {
			if c.Order = model.Release; ev.Kind == model.R {
				c.Order = model.Acquire
			}
			switch {
			case ev.Kind == model.W:
				c.After = Fence{model.SC, widest}
			case !ev.Op.Loops: // rather than in the loop
				c.Before = Fence{model.SC, widest}
			}
		}
		out = out.And(Patch{s.pos(i): c})
	}
	return out
}

// Weaker returns changes that ask for less at a place than c does, the weakest first.
func (c Change) Weaker() (out []Change) {
	fenceless := c
	fenceless.Before, fenceless.After = Fence{}, Fence{}
	if c.Order == model.SC {
		for _, o := range []model.Order{model.Acquire, model.Release, model.AcqRel} {
			w := c
			w.Order = o
			out = append(out, w)
		}
	}
	if fenceless != c && fenceless != (Change{}) {
		unordered := c
		unordered.Order = model.NA
		out = append(out, fenceless, unordered)
	}
	return out
}

// widest is the scope that includes all threads.
func (s *suggester) widest() model.Scope {
	widest := model.CTA
	for i := range s.events {
		widest = max(widest, s.need(0, i))
	}
	return widest
}

// order suggests changes that order an execution more: synchronisation of reads with their sources, sc accesses, and sc
// fences before reads; under the model PTX, fences before writes instead of sc accesses. Only events for which matters
// returns true count.
func (s *suggester) order(matters func(e int) bool) {
	widest := s.widest()
	for i := range s.events {
		ev := &s.events[i]
		if matters != nil && !matters(i) {
			continue
		}
		if ev.Kind == model.R && ev.RF >= 0 && s.events[ev.RF].Thread != ev.Thread && !s.x.Before(ev.RF, i) {
			scope := s.need(i, ev.RF)
			s.pair(ev.RF, i, s.included(i, scope).And(s.included(ev.RF, scope)), -1, -1)
		}
		if ev.Kind == model.R || ev.Kind == model.W || ev.Kind == model.F && ev.Order != model.NA {
			c := Change{Order: model.SC, Scope: widest}
			if c.Atomic = !ev.Order.Atomic(); !c.Atomic && ev.Scope >= widest {
				c.Scope = model.Thread
			}
			if ev.Order != model.SC && (!s.ptx || ev.Kind == model.F) {
				s.out = append(s.out, Patch{s.pos(i): c})
			}
		}
		if (ev.Kind == model.R || ev.Kind == model.W && !ev.RMW && s.ptx) && ev.Index > 0 {
			before := slices.IndexFunc(s.events, func(e explore.Event) bool { return e.Thread == ev.Thread && e.Index == ev.Index-1 })
			if ev.Op.Loops && s.events[before].Kind == model.W { // rather than in the loop
				s.out = append(s.out, Patch{s.pos(before): {After: Fence{model.SC, widest}}})
			} else {
				s.out = append(s.out, Patch{s.pos(i): {Before: Fence{model.SC, widest}}})
			}
		}
	}
}
