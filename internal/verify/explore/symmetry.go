package explore

import (
	"slices"

	"fencepost.dev/fencepost/internal/verify/model"
)

// This file restricts the search to executions that differ by more than the names of symmetric threads. Threads of a class may change
// places in every execution; Options.Symmetric gives them in a list.
//
// Two threads are alike up to event k if their first k events are no writes and read from the same writes: they are in one state then.
// As long as a thread is like the one before it in its class, its next event depends on the event of that index of the other one: it
// is added later, and what depends on it depends on that event too. And the two must not be in the wrong order: the event reads from
// no write, or is no write, that comes before that of the other thread in coherence order.
//
// Each execution has a name under which this holds. The events in the order of any linear extension of po ∪ rf give the threads names
// for which the dependencies have no cycle. If two neighbours are in the wrong order, they (and the threads that are like them up to
// and including the event) change places, which leaves fewer pairs in the wrong order; unless what the second reads from depends on
// the first, which is why that is allowed. What is allowed is told by what an event depends on, and to read from the last write, or to
// write last, is always allowed. That is all that the search asks of a memory model, so it finds each of these executions once. There
// may be several for one execution up to names, where reads from earlier writes depend on reads from later ones.
//
// To leave a barrier depends on all that have arrived there and, with Options.Exits, on the last events of the threads that have ended. A
// linear extension respects that too. Threads that are alike up to it are in one state, so both have arrived or both have ended.
//
// Without Options.Symmetric graph.before is nil, and nothing here is called.

// counterpart gives the event that event e is to come after, of the thread before its own in their class; -1 if there is none.
func (g *graph) counterpart(e int) int {
	ev := &g.events[e]
	return g.alike(int(ev.thread), int(ev.index))
}

// alike gives event k of the thread before t in its class if the two are alike up to k, and -1 otherwise.
func (g *graph) alike(t, k int) int {
	if g.before[t] < 0 {
		return -1
	}
	of, other := g.threads[t].events, g.threads[g.before[t]].events
	if len(other) <= k {
		return -1
	}
	for i := range k {
		a, b := &g.events[of[i]], &g.events[other[i]]
		if a.kind != b.kind || a.kind == model.W || a.kind == model.R && a.rf != b.rf {
			return -1
		}
	}
	return int(other[k])
}

// depend lets event e depend on its counterpart.
func (g *graph) depend(e int) {
	other := g.counterpart(e)
	if other < 0 {
		return
	}
	prefix := g.prefixOf(e)
	prefix.join(g.prefixOf(other))
	if o := &g.events[other]; o.rmw && o.kind == model.R { // the two parts are cut together
		prefix.join(g.prefixOf(int(g.threads[o.thread].events[o.index+1])))
	}
}

// early says that thread t waits for the one before it in its class, which it is like so far, to make the same step.
func (g *graph) early(t int) bool {
	if g.before[t] < 0 {
		return false
	}
	k, other := len(g.threads[t].events), len(g.threads[g.before[t]].events)
	switch {
	case other > k:
		return false
	case k == 0:
		return true
	}
	return other == k && g.alike(t, k-1) >= 0 && g.same(int(g.threads[t].events[k-1]), int(g.threads[g.before[t]].events[k-1]))
}

// same says that two events of threads that are alike up to them leave them alike.
func (g *graph) same(a, b int) bool {
	x, y := &g.events[a], &g.events[b]
	return x.kind == y.kind && x.kind != model.W && (x.kind != model.R || x.rf == y.rf)
}

// sorted says that read r is not in the wrong order with its counterpart.
func (g *graph) sorted(r int) bool {
	other := g.counterpart(r)
	if other < 0 || g.rank(int32(other)) <= g.rank(int32(r)) {
		return true
	}
	w := g.events[r].rf
	if w == initial {
		return false
	}
	// The first of the threads that are like the counterpart, that event included: the others depend on it.
	for {
		first := g.counterpart(other)
		if first < 0 || !g.same(first, other) {
			break
		}
		other = first
	}
	return g.holds(g.prefixOf(int(w)), int32(other))
}

// after gives the rank of the counterpart of write w, if it has one, or lo if that is higher: w must come after it.
func (g *graph) after(w, lo int) int {
	if other := g.counterpart(w); other >= 0 {
		return max(lo, int(g.events[other].rank))
	}
	return lo
}

// mayLead says that threads can change names within their classes so that t is the first of the threads ts, of which it is one, and o the first
// of os, which are ts if t is o, and else are without t. Without symmetric threads they are that by the names they have.
func (g *graph) mayLead(t int, ts []int, o int, os []int) bool {
	if g.before == nil {
		return t == ts[0] && o == os[0]
	}
	class := make([]int, len(g.before)) // of each thread, the first of its class
	for i, b := range g.before {
		class[i] = i
		if b >= 0 {
			class[i] = class[b]
		}
	}
	// The lowest name that t can have is best: with a higher one, more names below it must be those of threads that are not to be first. But o
	// may have to come after t.
	p := class[t]
	if t == o {
		return g.canLead(class, t, p, ts, o, p, os)
	}
	for q := range class {
		if q != p && class[q] == class[o] && g.canLead(class, t, p, ts, o, q, os) {
			return true
		}
	}
	second := slices.Index(g.before, p)
	return p == class[o] && g.canLead(class, t, second, ts, o, p, os)
}

// canLead says the same where t gets the name p, and o the name q.
func (g *graph) canLead(class []int, t, p int, ts []int, o, q int, os []int) bool {
	if q < p && slices.Contains(ts, o) {
		return false
	}
	if p > q { // names below the lower one are for threads in neither list, those below the higher one for threads that are not in its list
		p, q, ts, os = q, p, os, ts
	}
	for c := range class {
		if class[c] != c {
			continue
		}
		low, high, neither, others := 0, 0, 0, 0
		for i := range class {
			if class[i] != c {
				continue
			}
			if i < p {
				low++
			}
			if i < q && i != p {
				high++
			}
			if i != t && i != o && !slices.Contains(os, i) {
				others++
				if !slices.Contains(ts, i) {
					neither++
				}
			}
		}
		if neither < low || others < high {
			return false
		}
	}
	return true
}
