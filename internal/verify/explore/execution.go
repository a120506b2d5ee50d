package explore

import "fencepost.dev/fencepost/internal/verify/model"

// Execution is the form in which a search shows an execution. It is valid only during the call to which it is passed.
type Execution interface {
	// Events returns the events in an order that extends program order.
	Events() []Event
	// Coherence returns the writes to loc in coherence order, without the initial one.
	Coherence(loc int32) []int32
	// Final is the last value of loc.
	Final(loc int32) int64
	// State is the state of thread t after its last event.
	State(t int) []int64
	// Before reports whether event a happens before event b. Prefix reports whether event b depends on event a.
	Before(a, b int) bool
	Prefix(a, b int) bool
	// Includes reports whether the scopes of two events include each other's thread.
	Includes(a, b int) bool
	// Arrivals returns the arrivals at the barrier of event a, an arrival.
	Arrivals(a int) []int32
	// Step is the step that event e belongs to.
	Step(e int) *Op
	// Executions is the number of complete executions explored before.
	Executions() int
	// Next is the next step of thread t.
	Next(t int) *Op
	// Iteration returns the reads in the last iteration of thread t, which spins, the last first.
	Iteration(t int) []int
}

// graphView is an execution graph as an Execution.
type graphView struct {
	g          *graph
	executions *int
	blocks     blocks
	// ends holds the writes that are the last ones of their locations, in a search by reads-from classes.
	ends map[int32]int32
}

// Event is one event of an Execution.
type Event struct {
	model.Event
	Op    Op    // the step of the thread that it belongs to
	Index int   // in the thread
	Value int64 // read or written
	RF    int   // of a read: the write that it reads from, -1 for the initial value
	RMW   bool  // one of the two parts of a read-modify-write
}

// Events returns the events in the order in which they were added.
func (x *graphView) Events() []Event {
	out := make([]Event, len(x.g.events))
	for i := range x.g.events {
		ev := &x.g.events[i]
		out[i] = Event{Event: model.Event{Thread: int(ev.thread), Kind: ev.kind, Order: ev.order, Scope: ev.op.Scope, Loc: ev.op.Loc,
			Place: x.g.places[ev.thread]}, Op: ev.op, Index: int(ev.index), Value: ev.value, RF: -1, RMW: ev.rmw}
		if ev.kind == model.R {
			out[i].RF = int(ev.rf)
		}
	}
	return out
}

// Coherence returns the writes to loc in coherence order, without the initial one.
func (x *graphView) Coherence(loc int32) []int32 {
	if int(loc) >= len(x.g.locs) {
		return nil // no step has named it yet
	}
	if x.g.readsFrom {
		return x.blocks.of(x.g, loc).coherence(x.end(loc))
	}
	return x.g.locs[loc].co
}

// Final is the last value of loc.
func (x *graphView) Final(loc int32) int64 {
	if int(loc) < len(x.g.locs) && x.g.readsFrom {
		return x.g.value(x.end(loc), loc)
	}
	co := x.Coherence(loc)
	if len(co) == 0 {
		return x.g.p.Initial(loc)
	}
	return x.g.events[co[len(co)-1]].value
}

// State is the state of thread t after its last event.
func (x *graphView) State(t int) []int64 { return x.g.state(t, x.g.last(t)) }

// Before reports whether event a happens before event b.
func (x *graphView) Before(a, b int) bool { return a != b && x.g.holds(x.g.hbOf(b), int32(a)) }

// Includes is incl(a, b).
func (x *graphView) Includes(a, b int) bool { return x.g.includes(&x.g.events[a], &x.g.events[b]) }

// Arrivals returns the arrivals at the barrier of event a, an arrival.
func (x *graphView) Arrivals(a int) []int32 { return *x.g.arrivals(&x.g.events[a]) }

// Prefix reports whether event b depends on event a through po, rf and barriers.
func (x *graphView) Prefix(a, b int) bool { return x.g.holds(x.g.prefixOf(b), int32(a)) }

// Step is the step that event e belongs to.
func (x *graphView) Step(e int) *Op { return &x.g.events[e].op }

// Executions is the number of complete executions explored before.
func (x *graphView) Executions() int { return *x.executions }

// Iteration returns the reads in the last iteration of thread t, which spins, the last first.
func (x *graphView) Iteration(t int) (out []int) {
	x.g.iteration(t, func(r int32) { out = append(out, int(r)) })
	return out
}

// Next is the next step of thread t.
func (x *graphView) Next(t int) *Op { return &x.g.threads[t].op }
