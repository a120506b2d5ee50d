package explore

import "fencepost.dev/fencepost/internal/verify/model"

// This file implements exchanges between the lanes of a warp that happen to be at an instruction together, as
// activemask requests them. Nothing determines which lanes these are. Each lane that reaches the instruction chooses a
// set of lanes, itself included, and waits until all of them have reached it with the same choice. An execution in
// which a lane waits for ever is abandoned. The first choice of a lane is to be alone. This choice is always possible,
// so it is the one with which events that a revisit cuts must have been added.

// gather explores each choice for the next step of thread t, which reaches the place of the exchange.
func (x *explorer) gather(t int) {
	g, part := x.g, x.part
	step := g.threads[t].op
	own, others := uint32(1)<<(g.groups.index[t]%32), uint32(0)
	step.Lanes = 0xffff_ffff
	for o := range g.threads {
		if o != t && g.groups.Same(t, o, &step) {
			others |= 1 << (g.groups.index[o] % 32)
		}
	}
	for chosen := uint32(0); ; chosen = (chosen - others) & others { // the next subset of others
		if step.Lanes = own | chosen; !x.futile(t, &step) {
			g.threads[t].op = step
			rank := g.together(t, &step)
			e := g.push(t, model.Arrival, model.NA)
			g.events[e].rank, g.events[e].chosen = rank, chosen != 0
			x.accessed(e)
			a := g.arrivals(&g.events[e])
			*a = append(*a, int32(e))
			g.inherit(e)
			g.threads[t].op.Kind = depart
			x.visit()
			g.pop()
			x.part = 0 // of the estimate, which does not foresee the other choices
		}
		if chosen == others {
			break
		}
	}
	x.part = part
}

// together returns the number, among the sets of the warp, of the set of lanes that thread t meets at a step: an
// existing set, whose lanes wait with the same choice at the same place, or a new one.
func (g *graph) together(t int, step *Op) int32 {
	b := &g.barriers[int(g.cta[t])*g.perCTA+int(step.Loc)]
	free := len(b.arrivals)
	for i, of := range b.arrivals {
		if len(of) == 0 {
			free = min(free, i)
		} else if o := &g.events[of[0]]; o.op.Lanes == step.Lanes && o.op.Value == step.Value && len(of) < g.members(t, step) {
			return int32(i)
		}
	}
	return int32(free)
}

// futile reports whether thread t would wait for ever: for a thread that has ended, or that waits for t with another
// choice.
func (x *explorer) futile(t int, step *Op) bool {
	g := x.g
	for o := range g.threads {
		if o == t || !g.groups.Same(t, o, step) {
			continue
		}
		switch g.threads[o].op.Kind {
		case End:
			return true
		case depart:
			a := &g.events[g.last(o)]
			waits := a.op.Converges && len(*g.arrivals(a)) < g.members(o, &a.op)
			if waits && g.groups.Same(o, t, &a.op) && (a.op.Lanes != step.Lanes || a.op.Value != step.Value) {
				return true
			}
		}
	}
	return false
}
