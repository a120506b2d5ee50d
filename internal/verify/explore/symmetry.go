package explore

import (
	"slices"

	"fencepost.dev/fencepost/internal/verify/model"
)

// This file restricts the search to executions that differ by more than the names of symmetric threads. Threads of a
// class may be exchanged in every execution; Options.Symmetric gives the classes as linked lists.
//
// Two threads are alike up to event k if their first k events are not writes and read from the same writes. They are in
// one state then. As long as a thread is like the preceding one in its class, its next event depends on the event of
// the same index of that other thread: it is added later, and everything that depends on it depends on that event too.
// And the two must not be in the wrong order: the event must not read from, and must not be, a write that precedes that
// of the other thread in coherence order.
//
// Each execution has a naming of threads for which this holds. The events in the order of any linear extension of po ∪
// rf give the threads names for which the dependencies have no cycle. If two neighbours are in the wrong order, they
// are exchanged, together with the threads that are like them up to and including the event. This leaves fewer pairs in
// the wrong order. It is not possible if the source of the second depends on the first, and therefore that order is
// allowed. Whether an order is allowed is determined by the dependencies of an event, and to read from the last write,
// or to write last, is always allowed. The search requires nothing else of a memory model, so it finds each of these
// executions once. There may be several of them for one execution up to naming, if reads from earlier writes depend on
// reads from later ones.
//
// Leaving a barrier depends on all threads that have arrived there and, with Options.Exits, on the last events of the
// threads that have ended. A linear extension respects that too. Threads that are alike up to it are in one state, so
// both have arrived or both have ended.
//
// Without Options.Symmetric graph.before is nil, and nothing here is called.

// counterpart returns the event that event e must follow, of the preceding thread of its class, and -1 if there is
// none.
func (g *graph) counterpart(e int) int {
	ev := &g.events[e]
	return g.alike(int(ev.thread), int(ev.index))
}

// alike returns event k of the thread before t in its class if the two are alike up to k, and -1 otherwise.
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

// depend makes event e depend on its counterpart.
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

// early reports whether thread t waits for the preceding thread of its class, which it has been like so far, to make
// the same step.
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

// same reports whether two events, of threads that are alike up to them, leave the threads alike.
func (g *graph) same(a, b int) bool {
	x, y := &g.events[a], &g.events[b]
	return x.kind == y.kind && x.kind != model.W && (x.kind != model.R || x.rf == y.rf)
}

// sorted reports whether read r is not in the wrong order with its counterpart.
func (g *graph) sorted(r int) bool {
	other := g.counterpart(r)
	if other < 0 || g.rank(int32(other)) <= g.rank(int32(r)) {
		return true
	}
	w := g.events[r].rf
	if w == initial {
		return false
	}
	// Find the first of the threads that are like the counterpart, including that event: the others depend on it.
	for {
		first := g.counterpart(other)
		if first < 0 || !g.same(first, other) {
			break
		}
		other = first
	}
	return g.holds(g.prefixOf(int(w)), int32(other))
}

// after returns the rank of the counterpart of write w, after which w must come, or lo if that is higher or there is no
// counterpart.
func (g *graph) after(w, lo int) int {
	if other := g.counterpart(w); other >= 0 {
		return max(lo, int(g.events[other].rank))
	}
	return lo
}

// mayLead reports whether threads can be renamed within their classes so that t is the first of the threads ts and o
// the first of os. t is one of ts, and o one of os. os is ts if t is o; otherwise os does not contain t. Without
// symmetric threads the names are fixed.
func (g *graph) mayLead(t int, ts []int, o int, os []int) bool {
	if g.before == nil {
		return t == ts[0] && o == os[0]
	}
	class := make([]int, len(g.before)) // by thread: the first of its class
	for i, b := range g.before {
		class[i] = i
		if b >= 0 {
			class[i] = class[b]
		}
	}
	// The lowest possible name for t is best: with a higher one, more names below it must go to threads that must not
	// be first. But o may have to come after t.
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

// canLead is mayLead with the name p for t and the name q for o.
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
