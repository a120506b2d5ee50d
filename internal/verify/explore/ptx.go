package explore

import (
	"encoding/binary"

	"fencepost.dev/fencepost/internal/verify/model"
)

// This file is the memory model of PTX on the same graph, for programs without data races whose accesses are by one proxy, and for
// those of their executions in which program order and reads-from form no cycle. The names are those of internal/verify/model/ptx.go.
//
// Without data races, two writes of a location are morally strong or ordered by causality, so coherence order is total. Then Coherence,
// SC-per-Location, Atomicity and Causality say together what Coherence and Atomicity of scoped RC11 say of base causality order in the
// place of happens-before. Orders of the sc fences that Fence-SC and Causality allow exist if psc has no cycle: what comes between two
// fences is then base causality order, or that with one pair of eco in it. That needs scopes of the fences that include each other.
//
// The two models differ in what synchronizes: a strong read and then an acquire of its location are an acquire pattern, and a reduction
// and a fence are none.
//
// A search that goes on after a data race, or that comes to sc fences whose scopes do not include each other, stops with Result.Beyond. The first event
// of an execution that is in a race is found: what it may read, or where it may be written, is decided by what comes before it, of
// which both models say the same; and the race is there whatever is decided.

// PTX are the rules of the memory model of PTX.
var PTX = Rules{EarlierReads: true, PlainReductions: true, VolatileIsAtomic: true, Observation: true, Partial: true}

// beyond stops the search: the model allows what it cannot see.
func (x *explorer) beyond() { x.result.Stopped, x.result.Beyond = true, true }

// acquireBefore completes the clocks of read r, an acquire: the strong reads of its location before it begin acquire patterns that end
// with it.
func (g *graph) acquireBefore(r int) {
	ev := &g.events[r]
	of := g.threads[ev.thread].events
	for _, e := range of[:ev.index] {
		if b := &g.events[e]; b.kind == model.R && b.op.Loc == ev.op.Loc && b.order.Atomic() {
			g.acquire(r, int(e))
		}
	}
}

// excluded says that the scopes of fence f, the last event, and of an sc fence of another thread do not include each other.
func (g *graph) excluded(f int) bool {
	ev := &g.events[f]
	if ev.order != model.SC {
		return false
	}
	for e := range f {
		if b := &g.events[e]; b.order == model.SC && b.thread != ev.thread && !g.includes(b, ev) {
			return true
		}
	}
	return false
}

// observed says that write w precedes in causality order, by observation, what has the clock hb: a read that is there observes it.
func (g *graph) observed(w int32, hb clock) bool {
	for _, r := range g.locs[g.events[w].op.Loc].reads {
		if g.holds(hb, r) && g.observes(r, w) {
			return true
		}
	}
	return false
}

// observes says that read r reads from write w, or from an update that does, and so on, all of them morally strong.
func (g *graph) observes(r, w int32) bool {
	for {
		from := g.events[r].rf
		if from == initial || !g.includes(&g.events[from], &g.events[r]) {
			return false
		}
		if from == w {
			return true
		}
		ev := &g.events[from]
		if !ev.rmw {
			return false
		}
		r = g.threads[ev.thread].events[ev.index-1]
	}
}

// Access is an access of a thread, or its arrival at a barrier.
type Access struct {
	Thread  int
	Barrier bool // an arrival; Phase and Apart alone are of interest then
	// Apart says of an arrival that not all threads of the CTA wait there for each other, and Exchanges that nothing is ordered by it.
	Apart, Exchanges bool
	// Phase is how many barriers the thread has left before.
	Phase int
	Loc   int32
	Write bool
	Value int64 // of a write
	// Strong says that it is atomic, and Full that it is morally strong with each other one of which this holds, whatever its thread.
	Strong, Full bool
}

// accessed tells once of event e, an access or an arrival.
func (x *explorer) accessed(e int) {
	if x.Accessed == nil {
		return
	}
	ev := &x.g.events[e]
	a := Access{Thread: int(ev.thread), Phase: int(ev.phase)}
	if ev.kind == model.Arrival {
		t := int(ev.thread)
		a.Barrier, a.Exchanges = true, ev.op.Exchanges
		a.Apart = ev.op.Kind == Signal || ev.op.Converges || x.g.members(t, &ev.op) < x.g.size[x.g.cta[t]]
	} else {
		a.Loc, a.Write, a.Strong, a.Full = ev.op.Loc, ev.kind == model.W, ev.order.Atomic(), ev.order.Atomic() && ev.op.Scope >= x.g.widest
	}
	if a.Write {
		a.Value = ev.value
		x.follows(e)
	}
	if x.told == nil {
		x.told = map[Access]bool{}
	}
	if !x.told[a] {
		x.told[a] = true
		x.Accessed(a)
	}
}

// Segment is an atomic read of a thread and a later write.
type Segment struct {
	Thread      int
	Read, Write int32 // the locations
	// Own says that the two are of one update.
	Own bool
	// Acquires says that an acquire pattern which the read begins ends before the write, and Releases that a release pattern which ends with
	// the write begins after the read, both of wide scopes. Synchronizes says that the one ends before the other begins: what the read
	// synchronizes with precedes, in base causality order, what synchronizes with the write, whatever the threads.
	Acquires, Releases, Synchronizes bool
	// Free says that the write does not depend on the read.
	Free bool
}

// follows tells of the atomic reads that write e follows in its thread.
func (x *explorer) follows(e int) {
	if x.Follows == nil {
		return
	}
	g, ev := x.g, &x.g.events[e]
	if x.between == nil {
		x.between = map[Segment]bool{}
	}
	wide := func(ev *event) bool { return ev.order.Atomic() && ev.op.Scope >= g.widest }
	of := g.threads[ev.thread].events[:ev.index]
	reads := 0
	for _, i := range of {
		if g.events[i].kind == model.R {
			reads++
		}
	}
	released := wide(ev) && ev.order.Releases()
	fenced, acquires := false, false // an acquire fence comes before the write; and before what releases
	for i := len(of) - 1; i >= 0; i-- {
		r := &g.events[of[i]]
		if r.phase != ev.phase {
			return
		}
		if r.kind == model.R {
			reads--
		}
		switch {
		case r.kind == model.F && wide(r) && r.op.Proxy == model.Generic:
			released = released || wide(ev) && r.order.Releases()
			fenced = fenced || r.order.Acquires()
			acquires = acquires || released && r.order.Acquires()
		case r.kind == model.R && r.order.Atomic():
			s := Segment{Thread: int(ev.thread), Read: r.op.Loc, Write: ev.op.Loc, Own: ev.rmw && i == len(of)-1}
			s.Acquires = wide(r) && (fenced && !r.op.Reduction || r.order.Acquires())
			s.Releases = released
			s.Synchronizes = wide(r) && (acquires && !r.op.Reduction || released && r.order.Acquires())
			s.Free = reads >= 63 || ev.op.Deps>>reads&1 == 0 && !(s.Own && ev.op.Function != Exchange)
			if !x.between[s] {
				x.between[s] = true
				x.Follows(s)
			}
		}
	}
}

// readIn tells once of the state in which the thread of read e makes it.
func (x *explorer) readIn(e int) {
	g, ev := x.g, &x.g.events[e]
	if x.Reads == nil || !ev.order.Atomic() {
		return
	}
	t, reads, before := int(ev.thread), 0, -1
	for _, o := range g.threads[t].events[:ev.index] {
		if g.events[o].kind == model.R {
			reads++
		}
		before = int(o)
	}
	state := g.state(t, before)
	x.key = binary.AppendUvarint(binary.AppendUvarint(x.key[:0], uint64(t)), uint64(reads))
	for _, w := range state {
		x.key = binary.LittleEndian.AppendUint64(x.key, uint64(w))
	}
	if x.states == nil {
		x.states = map[string]bool{}
	}
	if !x.states[string(x.key)] {
		x.states[string(x.key)] = true
		x.Reads(t, state, &ev.op, reads)
	}
}
