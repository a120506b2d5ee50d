package explore

import "fencepost.dev/fencepost/internal/verify/model"

// This file spares the search executions that it would abandon later.
//
// A spinning thread has read the last value. A later write of another value, placed after that one, serves the read (a
// revisit) or overtakes it. If it overtakes the read, the thread waits forever in what follows, because the read is no
// longer maximal for a write that depends on the overtaking one. Only revisits that cut the overtaking write remain to
// be found there. The writes that make them do not depend on the overtaking write, nor do the other reads and writes
// that they need. Events that depend on an overtaking write exist only to be cut, so they are left out. An exception is
// the read by which a thread comes to depend on one, because another write may serve it. It reads the last value, as an
// event that is cut must. No such execution is complete, and none is counted.
//
// A write that serves a read and overtakes another read that is kept can no longer be cut without the read that it
// serves, which would have to be maximal. So nothing remains to be found there.
//
// Errors are not lost. Without the overtaken read the execution is consistent too, and it goes on with the thread
// reading the last value. An error that is not a race of the read is found there. A race of the read is reported when
// the later of the two events is added, or as a race of the read that takes its place and reads the later value.

// overtakes reports whether write w, of another value, comes after a write that a spinning thread has read last.
func (g *graph) overtakes(w int) bool {
	if !g.spun || g.readsFrom {
		return false
	}
	for t := range g.threads {
		if !g.threads[t].op.Awaits() {
			continue
		}
		if r := &g.events[g.last(t)]; r.kind == model.R && r.op.Loc == g.events[w].op.Loc && r.value != g.events[w].value &&
			g.rank(int32(g.last(t))) < int(g.events[w].rank) {
			return true
		}
	}
	return false
}

// settle explores what follows write w, which has its place in coherence order.
func (x *explorer) settle(w int) {
	g, n := x.g, len(x.g.over)
	if !x.Overtaken && g.overtakes(w) {
		g.over = append(g.over, int32(w))
	}
	x.visit()
	g.over = g.over[:n]
}

// dead reports whether event e depends on an overtaking write.
func (g *graph) dead(e int) bool {
	if e < 0 || len(g.over) == 0 {
		return false
	}
	prefix := g.prefixOf(e)
	for _, w := range g.over {
		if g.holds(prefix, w) {
			return true
		}
	}
	return false
}

// kept reports whether thread t must not make the next step.
func (x *explorer) kept(t int) bool { return x.g.before != nil && x.g.early(t) || x.held(t) }

// held reports whether the next event of thread t would depend on an overtaking write, whatever it reads.
func (x *explorer) held(t int) bool {
	g := x.g
	if g.dead(g.last(t)) {
		return true
	}
	if g.threads[t].op.Kind != depart {
		return false
	}
	at := &g.events[g.last(t)]
	for _, a := range *g.arrivals(at) {
		if g.dead(int(a)) {
			return true
		}
	}
	held := false
	x.exited(t, at, func(o int) { held = held || g.dead(g.last(o)) })
	return held
}
