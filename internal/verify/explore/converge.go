package explore

import "fencepost.dev/fencepost/internal/verify/model"

// This file has the exchanges of the lanes of a warp that happen to be at an instruction together, as activemask asks for them. Nothing says
// which lanes are: each lane that comes there chooses lanes, itself among them, and waits until all of these have come there with the same
// choice. An execution in which a lane waits in vain is given up. To be alone is the first choice: it is always possible, so it is the one in
// which events that a revisit cuts must have been added.

// gather explores the next step of thread t, which comes to where lanes are together: each choice.
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

// together gives the number, among those of the warp, of the lanes that thread t meets at a step: of those that wait with the same choice at the
// same place, or of lanes to come.
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

// futile says that thread t would wait in vain: for a thread that has ended, or that waits for t with another choice.
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
