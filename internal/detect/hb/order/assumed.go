package order

import (
	"maps"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// assumed is the order of the host with what is assumed of host threads (event.HostOp): what each agent would know if
// the host were one thread. Races are judged without it. It tells which of them the assumption would exclude. What the
// threads of running kernels learn of each other is included only where that is certain.
type assumed struct {
	known  map[uint32]*clock.Foreign // by agent
	tokens map[uint64]*clock.Foreign
}

// Assume performs a Signal or Wait that is only assumed.
func (o *Order) Assume(agent uint32, token uint64, wait bool) {
	a := o.Agent(agent)
	if o.assumed == nil { // so far, the assumed and the known order are the same
		o.assumed = &assumed{map[uint32]*clock.Foreign{}, maps.Clone(o.tokens)}
		for id, x := range o.agents {
			o.assumed.known[id] = x.View.beyond.Agents()
		}
	}
	if wait {
		o.assumed.wait(a, token)
	} else {
		a.next()
		o.assumed.signal(a, token)
	}
}

// does returns what an agent knows in the assumed order, after it has begun an epoch or learned something. A nil x
// gives nil.
func (x *assumed) does(a *Agent) *clock.Foreign {
	if x == nil {
		return nil
	}
	known := x.known[a.ID].Join(a.View.beyond.Agents())
	x.known[a.ID] = known
	return known
}

func (x *assumed) signal(a *Agent, token uint64) {
	if x != nil {
		x.tokens[token] = x.does(a)
	}
}

func (x *assumed) wait(a *Agent, token uint64) {
	if x != nil {
		x.known[a.ID] = x.known[a.ID].Join(x.tokens[token])
	}
}

// Assumes reports whether the assumed order puts an access of another launch, or of the host, before what the actor
// does.
func (a *Actor) Assumes(s *Stamp) bool {
	known := a.Assumed
	if a.Launch != nil {
		known = a.Launch.assumed
	}
	switch {
	case known == nil:
		return false
	case s.Launch != nil:
		return s.Launch.within(known)
	}
	return known.Agent(s.Agent) >= s.Epoch
}
