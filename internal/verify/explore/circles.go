package explore

import "fencepost.dev/fencepost/internal/verify/model"

// This file recognises threads that have reached the bound of their loops and would loop forever. It cuts nothing: the
// execution counts as one that reached its bound, and the search goes on.
//
// A thread that has come back to a state repeats its steps if it reads the same values. It reads them if each iteration
// leaves memory unchanged, and if no other thread that goes on reads the values that it writes in between. Then each
// thread reads the last values again, whatever the interleaving. So no fair execution that begins like this one leaves
// the loops.

// circling reports whether all threads that have not ended spin or loop forever in that way.
func (x *explorer) circling() bool {
	g := x.g
	if g.readsFrom { // no write is the last
		return false
	}
	iterations := make([][]int32, len(g.threads))
	for t := range g.threads {
		op := &g.threads[t].op
		switch op.Kind {
		case End:
			continue
		case Await:
			if !op.Awaits() {
				continue
			}
		case Bound:
			op.Value = x.period(t)
		default:
			return false
		}
		if iterations[t] = g.lastSteps(t, op.Value); len(iterations[t]) == 0 || !g.restores(iterations[t]) {
			return false
		}
	}
	for t, of := range iterations {
		for _, w := range of {
			if ev := &g.events[w]; ev.kind == model.W && ev.value != g.final(ev.op.Loc) && g.readElsewhere(iterations, t, ev.op.Loc) {
				return false
			}
		}
	}
	return true
}

// period is after how many steps thread t has come back to the state that its last step leads to: it has made this step before, and read the same
// value. It is 0 if it has not. If it has come back only to the state before its last step, it may be about to leave the loop.
func (x *explorer) period(t int) int64 {
	g := x.g
	of := g.threads[t].events
	before := func(i int) []int64 { // the state before the step that begins with event i of the thread
		if i == 0 {
			return g.state(t, -1)
		}
		return g.state(t, int(of[i-1]))
	}
	last, steps := -1, int64(0)
	for i := len(of) - 1; i >= 0; i-- {
		ev := &g.events[of[i]]
		if ev.kind == model.W && ev.rmw || ev.op.Inserted { // its read comes before it; the step is none of the program
			continue // its read comes before it; or the step is not one of the program
		}
		if last < 0 {
			last = i
			continue
		}
		if steps++; ev.value == g.events[of[last]].value && g.p.Alike(t, before(i), before(last)) {
			return steps
		}
	}
	return 0
}

// lastSteps returns the events of the last steps of thread t.
func (g *graph) lastSteps(t int, steps int64) []int32 {
	of := g.threads[t].events
	i := len(of)
	for ; steps > 0 && i > 0; steps-- {
		i--
		ev := &g.events[of[i]]
		if ev.op.Inserted {
			steps++
		}
		if ev.kind == model.W && ev.rmw {
			i--
		}
	}
	return of[i:]
}

// restores reports whether an iteration passes no barrier, reads the same values again if no other thread writes, and
// leaves memory unchanged.
func (g *graph) restores(of []int32) bool {
	now := map[int32]int64{}
	for _, e := range of {
		ev := &g.events[e]
		v, written := now[ev.op.Loc]
		if !written {
			v = g.final(ev.op.Loc)
		}
		switch ev.kind {
		case model.R:
			if ev.value != v {
				return false
			}
		case model.W:
			now[ev.op.Loc] = ev.value
		case model.F:
		default:
			return false
		}
	}
	for loc, v := range now {
		if v != g.final(loc) {
			return false
		}
	}
	return true
}

// final returns the last value of loc.
func (g *graph) final(loc int32) int64 {
	co := g.locs[loc].co
	if len(co) == 0 {
		return g.p.Initial(loc)
	}
	return g.events[co[len(co)-1]].value
}

// readElsewhere reports whether an iteration of a thread other than t reads loc.
func (g *graph) readElsewhere(iterations [][]int32, t int, loc int32) bool {
	for o, of := range iterations {
		for _, e := range of {
			if ev := &g.events[e]; o != t && ev.kind == model.R && ev.op.Loc == loc {
				return true
			}
		}
	}
	return false
}
