package explore

import "fencepost.dev/fencepost/internal/verify/model"

// This file keeps the search from executions that it would give up.
//
// A thread that spins has read the last value. A write of another value that comes after that one later serves the read (a revisit), or overtakes it: the
// thread waits for ever in what follows, since the read is not maximal any more for a write that depends on the overtaking one. What is left
// to be found there are revisits that cut the overtaking write. The writes that make them do not depend on it, nor do the other reads
// and writes that they need. Events that depend on an overtaking write are there to be cut; so they are left out, but for the read with
// which a thread comes to depend on one: that may be served by another write. It reads the last value, as an event that is cut must.
// No execution there is complete, and none is counted.
//
// A write that serves a read and overtakes another one, which is kept, can no longer be cut without the read that it serves, which
// would have to be maximal. So nothing is to be found there.
//
// Errors are not lost. Without the read that is overtaken the execution is consistent too, and goes on with the thread reading
// the last value. An error in it that is no race of the read is in that one, and a race of the read is told when the later of the two events is
// added, or is one of the read in the place of which the thread reads the later value.

// overtakes says that write w, of another value, comes after what a spinning thread has read last.
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

// dead says that event e depends on a write that overtakes.
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

// kept says that thread t does not make the next step.
func (x *explorer) kept(t int) bool { return x.g.before != nil && x.g.early(t) || x.held(t) }

// held says that the next event of thread t would depend on a write that overtakes, whatever it reads.
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
