package explore

import (
	"math"
	"math/bits"

	"fencepost.dev/fencepost/internal/verify/model"
)

// This file is scoped RC11 on a graph that grows by one event at a time: the same relations as figure 3 of seed 004 and
// internal/verify/model. Happens-before is kept as clocks. A new event has no successors, so what is older keeps its clocks.

// includes is incl(a, b).
func (g *graph) includes(a, b *event) bool {
	if !a.order.Atomic() || !b.order.Atomic() {
		return false
	}
	need := g.need[int(a.thread)*len(g.threads)+int(b.thread)]
	if g.incl == model.Paper {
		memory := a.kind != model.F && b.kind != model.F
		return (a.op.Scope >= need || b.op.Scope >= need) && !(memory && a.op.Loc != b.op.Loc)
	}
	return a.op.Scope >= need && b.op.Scope >= need
}

// reads sets what read r, which has no successors, reads from, and its clocks.
func (g *graph) reads(r int, w int32) {
	ev := &g.events[r]
	ev.rf, ev.value = w, g.value(w, ev.op.Loc)
	g.follow(r)
	if w != initial {
		g.prefixOf(r).join(g.prefixOf(int(w)))
	}
	if ev.order.Acquires() {
		g.acquire(r, r)
		if g.rules.EarlierReads {
			g.acquireBefore(r)
		}
	}
}

// fence completes the clocks of fence f. If it acquires, the reads before it count: pacq = po; [F]. An acquire fence of the same
// scope before it has taken the reads that stand before that one.
func (g *graph) fence(f int) {
	ev := &g.events[f]
	if !ev.order.Acquires() {
		return
	}
	of := g.threads[ev.thread].events
	for i := int(ev.index) - 1; i >= 0; i-- {
		switch b := &g.events[of[i]]; {
		case b.kind == model.F && b.order.Acquires() && b.op.Scope == ev.op.Scope:
			return
		case b.kind == model.R && b.order.Atomic() && !(g.rules.PlainReductions && b.op.Reduction):
			g.acquire(f, int(of[i]))
		}
	}
}

// acquire joins the clocks of the releases that e synchronises with through read r, which is e or stands before fence e: it
// walks sw = prel; rseq; (incl ∩ rf); pacq backwards, and requires incl at its ends.
func (g *graph) acquire(e, r int) {
	at, hb := &g.events[e], g.hbOf(e)
	for {
		reader := &g.events[r]
		if reader.rf == initial {
			return
		}
		w := &g.events[reader.rf]
		if !g.includes(w, reader) {
			return
		}
		// prel; [W]; po_=loc?; [W of at least rlx]: a release fence before w, or a release write to its location.
		for s := w.rel; s >= 0; {
			src := &g.events[s]
			if (src.kind == model.F || src.op.Loc == w.op.Loc) && g.includes(src, at) {
				hb.join(g.hbOf(int(s)))
				break // what stands before s happens before s
			}
			if src.index == 0 {
				break
			}
			s = g.events[g.threads[src.thread].events[src.index-1]].rel
		}
		if !w.rmw {
			return
		}
		r = int(g.threads[w.thread].events[w.index-1]) // (incl ∩ rf); rmw
	}
}

// floor is the rank of the last write to the location of e, in coherence order, that e is bound to respect: one that happens
// before it, or that a read which happens before it reads from (Coherence). It is -1 for the initial write. e neither reads nor
// is placed yet.
func (g *graph) floor(e int) int {
	l, hb := g.locs[g.events[e].op.Loc], g.hbOf(e)
	lo := -1
	for i := len(l.co) - 1; i >= 0; i-- {
		if g.holds(hb, l.co[i]) {
			lo = i
			break
		}
	}
	if lo == len(l.co)-1 {
		return lo
	}
	for _, r := range l.reads {
		if g.holds(hb, r) && int(r) != e {
			lo = max(lo, g.rank(r))
		}
	}
	return lo
}

// splits says that a write at rank would stand between the two parts of a read-modify-write (Atomicity).
func (g *graph) splits(l *location, rank int) bool {
	return rank < len(l.co) && g.events[l.co[rank]].rmw
}

// race looks for an event that races with e, an access without successors but a read of it (which is in no race with e if e
// happens before it, as their scopes include each other then): in conflict and not ordered by happens-before, and
// not atomic (a data race) or of scopes that do not include each other (a heterogeneous race), section 2.1.
func (g *graph) race(e int, found func(other int32, kind ErrorKind)) {
	ev := &g.events[e]
	l := g.locs[ev.op.Loc]
	if l.weak == 0 {
		return
	}
	hb := g.hbOf(e)
	check := func(o int32) {
		other := &g.events[o]
		if other.thread == ev.thread || g.holds(hb, o) {
			return
		}
		atomic, includes := ev.order.Atomic() && other.order.Atomic(), g.includes(ev, other)
		switch {
		case includes && g.rules.VolatileIsAtomic, other.kind == model.W && g.rules.Observation && g.observed(o, hb):
		case !atomic:
			found(o, DataRace)
		case !includes:
			found(o, HeterogeneousRace)
		case ev.op.Volatile || other.op.Volatile:
			kind := VolatileRace
			if g.polled(o, int32(e)) {
				kind = PolledRace
			}
			found(o, kind)
		}
	}
	for _, w := range l.co {
		check(w)
	}
	for _, r := range l.reads {
		if ev.kind == model.W || ev.poll || g.events[r].poll {
			check(r)
		}
	}
}

// polled says of accesses o and e of one location, of which e was added later, that a loop polls the location: that one of them reads it
// in a loop, or that the thread of e has done so and has read what depends on o. So the locks are written that a volatile store releases.
func (g *graph) polled(o, e int32) bool {
	waits := func(ev *event) bool { return ev.op.Loops && (ev.kind == model.R || ev.op.Kind == Update) }
	ev := &g.events[e]
	if waits(ev) || waits(&g.events[o]) {
		return true
	}
	for _, r := range g.threads[ev.thread].events[:ev.index] {
		read := &g.events[r]
		if read.kind == model.R && read.op.Loc == ev.op.Loc && read.op.Loops && read.rf != initial &&
			(read.rf == o || g.holds(g.prefixOf(int(read.rf)), o)) {
			return true
		}
	}
	return false
}

// psc checks the axiom SC: incl ∩ psc is acyclic. It computes the relation anew; the search asks where a cycle may have come
// about.
type psc struct {
	g     *graph
	n, w  int
	sc    []int32
	after []uint64 // the rows of hb
	other []uint64 // the rows of po between different locations
	edges []uint64 // incl ∩ psc between the elements of sc
	a, b  []uint64
	// For each sc fence and location, the number of the first access after it and of the last before it: see fences.
	first, last []int
}

func (p *psc) row(m []uint64, e int) []uint64 { return m[e*p.w : (e+1)*p.w] }

func grow(s []uint64, n int) []uint64 {
	s = resize(s, n)
	clear(s)
	return s
}

func set(b []uint64, i int32)      { b[i>>6] |= 1 << (i & 63) }
func has(b []uint64, i int32) bool { return b[i>>6]>>(i&63)&1 != 0 }

func each(b []uint64, f func(e int)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			f(i*64 + bits.TrailingZeros64(w))
		}
	}
}

func (p *psc) acyclic(g *graph) bool {
	if g.sc < 2 {
		return true
	}
	p.g, p.n = g, len(g.events)
	p.w = (p.n + 63) / 64
	accesses := false
	p.sc = p.sc[:0]
	for e := range g.events {
		if ev := &g.events[e]; ev.order == model.SC {
			p.sc = append(p.sc, int32(e))
			accesses = accesses || ev.kind != model.F
		}
	}
	if accesses {
		p.general()
	} else {
		p.fences()
	}
	return p.closed()
}

// general sets edges, whatever the sc events are.
func (p *psc) general() {
	g := p.g
	p.after, p.other = grow(p.after, p.n*p.w), grow(p.other, p.n*p.w)
	p.a, p.b = grow(p.a, p.w), grow(p.b, p.w)
	for e := range p.n {
		for d := range p.n {
			if d != e && g.holds(g.hbOf(d), int32(e)) {
				set(p.row(p.after, e), int32(d))
			}
		}
		ev := &g.events[e]
		for _, d := range g.threads[ev.thread].events[ev.index+1:] {
			if !sameLocation(ev, &g.events[d]) {
				set(p.row(p.other, e), d)
			}
		}
	}
	m := len(p.sc)
	mw := (m + 63) / 64
	p.edges = grow(p.edges, m*mw)
	for i, e := range p.sc {
		p.successors(int(e))
		for j, f := range p.sc {
			if p.reaches(f) && g.includes(&g.events[e], &g.events[f]) || p.fenceBefore(e, f) {
				set(p.edges[i*mw:(i+1)*mw], int32(j))
			}
		}
	}
}

// closed says that the relation edges has no cycle. It becomes its transitive closure.
func (p *psc) closed() bool {
	m := len(p.sc)
	mw := (m + 63) / 64
	for via := range m {
		for i := range m {
			if has(p.edges[i*mw:(i+1)*mw], int32(via)) {
				for k := range mw {
					p.edges[i*mw+k] |= p.edges[via*mw+k]
				}
			}
		}
	}
	for i := range m {
		if has(p.edges[i*mw:(i+1)*mw], int32(i)) {
			return false
		}
	}
	return true
}

// fences sets edges where all sc events are fences. Between two fences psc is hb ∪ hb; eco; hb: the parts of scb are in hb and in eco.
// A write of rank i has the number 2i and a read of it 2i+1; the pairs of eco are those of ascending numbers. So it is enough to
// know, for each location, the first access after one fence and the last before the other.
func (p *psc) fences() {
	g := p.g
	m, locs := len(p.sc), len(g.locs)
	mw := (m + 63) / 64
	p.edges = grow(p.edges, m*mw)
	p.first, p.last = resize(p.first, m*locs), resize(p.last, m*locs)
	for i := range p.first {
		p.first[i], p.last[i] = math.MaxInt32, math.MinInt32
	}
	for e := range g.events {
		ev := &g.events[e]
		if ev.kind != model.R && ev.kind != model.W {
			continue
		}
		number := 2 * p.rank(e)
		if ev.kind == model.R {
			number++
		}
		hb := g.hbOf(e)
		for i, f := range p.sc {
			at := i*locs + int(ev.op.Loc)
			if g.holds(hb, f) {
				p.first[at] = min(p.first[at], number)
			} else if g.hb[int(f)*len(g.threads)+int(ev.thread)] > ev.index {
				p.last[at] = max(p.last[at], number)
			}
		}
	}
	for i, e := range p.sc {
		for j, f := range p.sc {
			if !g.includes(&g.events[e], &g.events[f]) {
				continue
			}
			edge := i != j && g.holds(g.hbOf(int(f)), e)
			for l := 0; l < locs && !edge; l++ {
				edge = p.first[i*locs+l] < p.last[j*locs+l]
			}
			if edge {
				set(p.edges[i*mw:(i+1)*mw], int32(j))
			}
		}
	}
}

func sameLocation(a, b *event) bool {
	access := func(e *event) bool { return e.kind == model.R || e.kind == model.W }
	return access(a) && access(b) && a.op.Loc == b.op.Loc
}

// successors sets a to ([E_sc] ∪ [F_sc]; hb?); scb of sc event e.
func (p *psc) successors(e int) {
	clear(p.a)
	p.scb(e)
	if p.g.events[e].kind == model.F {
		each(p.row(p.after, e), p.scb)
	}
}

// scb adds to a the events that e is in scb with.
func (p *psc) scb(e int) {
	g := p.g
	ev := &g.events[e]
	for _, d := range g.threads[ev.thread].events[ev.index+1:] { // po
		set(p.a, d)
	}
	clear(p.b) // po≠loc; hb; po≠loc
	each(p.row(p.other, e), func(c int) {
		for i, w := range p.row(p.after, c) {
			p.b[i] |= w
		}
	})
	each(p.b, func(d int) {
		for i, w := range p.row(p.other, d) {
			p.a[i] |= w
		}
	})
	if ev.kind != model.R && ev.kind != model.W {
		return
	}
	each(p.row(p.after, e), func(d int) { // hb_=loc
		if sameLocation(ev, &g.events[d]) {
			set(p.a, int32(d))
		}
	})
	for _, w := range g.locs[ev.op.Loc].co[p.rank(e)+1:] { // co, fr
		set(p.a, w)
	}
}

// rank is the place in coherence order of write e, or of what read e reads from.
func (p *psc) rank(e int) int {
	if ev := &p.g.events[e]; ev.kind == model.W {
		return int(ev.rank)
	}
	return p.g.rank(int32(e))
}

// reaches says that f is in a; ([E_sc] ∪ hb?; [F_sc]).
func (p *psc) reaches(f int32) bool {
	if has(p.a, f) {
		return true
	}
	if p.g.events[f].kind != model.F {
		return false
	}
	found := false
	each(p.a, func(d int) { found = found || has(p.row(p.after, d), f) })
	return found
}

// fenceBefore is incl ∩ psc_F: [F_sc]; (hb ∪ hb; eco; hb); [F_sc].
func (p *psc) fenceBefore(e, f int32) bool {
	g := p.g
	if g.events[e].kind != model.F || g.events[f].kind != model.F || !g.includes(&g.events[e], &g.events[f]) {
		return false
	}
	after := p.row(p.after, int(e))
	if has(after, f) {
		return true
	}
	// eco: a write or read of rank i comes before the writes of higher rank and the reads of them; a write also before its reads.
	found := false
	each(after, func(c int) {
		ev := &g.events[c]
		if found || ev.kind != model.R && ev.kind != model.W {
			return
		}
		l, at := g.locs[ev.op.Loc], p.rank(c)
		for _, w := range l.co[at+1:] {
			found = found || has(p.row(p.after, int(w)), f)
		}
		for _, r := range l.reads {
			if k := g.rank(r); k > at || k == at && ev.kind == model.W {
				found = found || has(p.row(p.after, int(r)), f)
			}
		}
	})
	return found
}
