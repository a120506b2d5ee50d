package candidates

import (
	"context"
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// The source of a read that reads from no event.
const (
	initial  = -1
	promised = -2 // a write that is still to come
)

// event is an event of the execution that is being built.
type event struct {
	explore.Event
	deps uint64 // reads of the thread that it depends on, as bits
	rf   int    // of a read
	// cycle says whether a read must be in a cycle.
	cycle membership
	// generation is how often the thread reached the barrier before.
	generation int
}

// thread is a thread of the execution that is being built.
type thread struct {
	op     explore.Op
	state  []int64
	node   *node // of the state; nil until computed
	events []int
	reads  []int
	parked bool // at a barrier
	// fresh is the first event from which the next read of the thread may read. acyclic says that this read is not in a
	// cycle if its value may be promised. See choose.
	fresh   int
	acyclic bool
}

// membership says whether a read must be in a cycle. A read is in a cycle if the write that it reads from comes after it
// by program order, reads-from and barriers.
type membership uint8

const (
	either membership = iota
	inCycle
	inNone
)

// search builds executions by one event at a time. It is an explore.Search. The calls of visit form a tree. A node of
// the search is the path to a call: its index at each level.
type search struct {
	*round
	*explore.Options
	ctx      context.Context
	groups   explore.Groups
	written  map[writer]bool // values that depend on no open promise
	partial  map[int32]bool  // locations with accesses that are not morally strong with all others
	racy     bool            // there is a data race
	threads  []thread
	events   []event
	open     []int // reads with promises
	reach    reach
	start    []*node // of the threads
	view     view
	result   explore.Result
	ticks    int
	trial    []int64
	trialOp  explore.Op
	promises bool                      // a read has read from a write that was added later
	oneProxy bool                      // no access is by another proxy or another virtual address
	freed    map[string]map[int64]bool // results of free, by state and value
	causes   causes

	from   []int32 // the node with which the part begins
	path   []int32 // to the current node
	next   []int32 // by level: the number of nodes so far that follow from the node above on the path
	left   int     // the number of nodes to visit before divide receives the rest; negative for all
	divide func(node any, share float64)
	share  float64 // of the part
	part   float64 // the share of what is below the current node
	done   float64 // the share of what has been explored since the last report
	shared float64 // the share of what has been explored or divided
}

// maxFreed is the greatest number of states for which results of free are kept.
const maxFreed = 1 << 14

func newSearch(r *round) *search {
	s := &search{round: r, groups: explore.NewGroups(r.p.Places()), written: map[writer]bool{}, partial: map[int32]bool{}, trial: make([]int64, r.p.StateWords())}
	s.oneProxy = explore.OneProxy(r.p)
	s.reach, s.freed = newReach(r.p, r.values), map[string]map[int64]bool{}
	s.reach.by, s.reach.mixed = r.by, r.mixed
	s.begin()
	return s
}

// begin brings the threads to their first steps.
func (s *search) begin() {
	s.threads = make([]thread, len(s.groups.Places))
	for t := range s.threads {
		th := &s.threads[t]
		th.state, th.fresh = make([]int64, s.p.StateWords()), initial
		s.p.Start(t, th.state, &th.op)
		s.start = append(s.start, s.reach.at(t, th))
	}
}

// Explore implements explore.Search.
func (s *search) Explore(ctx context.Context, o *explore.Options, node any, share float64, graphs int, divide func(node any, share float64)) {
	s.ctx, s.Options, s.left, s.divide = ctx, o, graphs, divide
	s.result, s.done, s.shared, s.share = explore.Result{}, 0, 0, share
	s.from, s.path, s.next = nil, nil, []int32{0}
	if node != nil {
		s.from = node.([]int32)
	}
	s.visit()
}

// Report implements explore.Search.
func (s *search) Report(o *explore.Options) (explore.Result, float64) {
	r, done := s.result, s.done
	s.Options, s.result, s.done = o, explore.Result{Stopped: r.Stopped, Err: r.Err}, 0
	return r, done
}

// visit explores all executions that extend the current one. Above the node with which the part begins, it explores the
// path to this node alone.
func (s *search) visit() {
	level := len(s.path)
	index := s.next[level]
	s.next[level]++
	above := level < len(s.from)
	switch {
	case s.result.Stopped || above && index != s.from[level]:
		return
	case !above && s.left == 0:
		s.divide(append(slices.Clone(s.path), index), s.part)
		s.shared += s.part
		return
	case !above:
		s.left--
		s.tick()
	}
	s.path, s.next = append(s.path, index), append(s.next, 0)
	if level+1 == max(len(s.from), 1) {
		s.part = s.share
	}
	s.portion(1, s.extend)
	s.path, s.next = s.path[:level], s.next[:level+1]
}

// above reports whether the current node is above that with which the part begins.
func (s *search) above() bool { return len(s.path) < len(s.from) }

// portion calls do, which explores one of several alternatives. Each has the same share. If do visits no node, this share
// is done.
func (s *search) portion(of int, do func()) {
	part, before := s.part, s.shared
	s.part /= float64(of)
	do()
	if !s.above() {
		rest := max(s.part-(s.shared-before), 0)
		s.done, s.shared = s.done+rest, s.shared+rest
	}
	s.part = part
}

// refuse stops the search.
func (s *search) refuse(err error) {
	s.result.Stopped, s.result.Err = true, err
}

// extend explores all executions that extend the current one.
func (s *search) extend() {
	if s.result.Stopped || !s.keepable() {
		return
	}
	if len(s.events) > maxEvents || len(s.open) > maxPromises {
		s.refuse(ErrTooLarge)
		return
	}
	for t := range s.threads {
		switch {
		case s.threads[t].op.Kind == explore.Refused:
			s.result.Stopped = true
			return
		case s.eager(t):
			s.step(t)
			return
		}
	}
	s.choose()
}

// choose explores the executions that follow when each thread has ended, waits at a barrier, or is at a read. A complete
// execution determines which choice leads to it, so none is reached twice:
//
//   - If threads read next from existing writes, the first of them continues.
//   - Otherwise each thread at a read either spins forever, or reads from a write that is still to come. Such a write
//     comes after the read of another thread, so some of the reads are in cycles. Of those that are in cycles and whose
//     values may be promised (see promisable), the first is promised its value.
//   - If all threads at reads spin forever, the execution ends.
func (s *search) choose() {
	before := slices.Clone(s.threads)
	var reads []int // threads
	for t := range s.threads {
		if k := s.threads[t].op.Kind; k == explore.Read || k == explore.Update {
			reads = append(reads, t)
		}
	}
	spins := true
	for _, t := range reads {
		s.portion(len(reads)+1, func() { spins = s.read(t) && spins })
		s.threads[t].fresh = len(s.events)
	}
	if spins && len(s.open) == 0 && !s.result.Stopped && !s.above() {
		s.leaf()
	}
	for _, t := range reads {
		if !s.threads[t].acyclic {
			s.portion(len(reads)*(len(reads)+1), func() { s.promise(t) })
			s.threads[t].acyclic = true
		}
	}
	for t := range s.threads {
		s.threads[t].fresh, s.threads[t].acyclic = before[t].fresh, before[t].acyclic
	}
}

// eager reports whether the next step of thread t is made before any other: it leaves no choice, or it is a read and no
// other thread writes what it might read. By another proxy it might read what its own thread writes later.
func (s *search) eager(t int) bool {
	th := &s.threads[t]
	switch th.op.Kind {
	case explore.Write, explore.Fence, explore.Signal:
		return true
	case explore.Arrive:
		return !th.parked || s.complete(t)
	case explore.Read, explore.Update:
		for o := range s.threads {
			if (o != t || !s.oneProxy) && s.reach.writes(o, &s.threads[o], th.op.Loc) {
				return false
			}
		}
		return !th.op.Loops // reads of spinning threads come last
	}
	return false
}

// step makes an eager step of thread t.
func (s *search) step(t int) {
	switch op := s.threads[t].op; op.Kind {
	case explore.Read, explore.Update:
		s.read(t)
	case explore.Write:
		e := s.push(t, model.W, op.Order, op.Value, op.Deps)
		s.resume(t, 0, func() { s.supply(e, s.visit) })
		s.pop(t)
	case explore.Fence:
		s.push(t, model.F, op.Order, 0, 0)
		s.resume(t, 0, s.visit)
		s.pop(t)
	default:
		s.arrive(t)
	}
}

// tick counts the steps tried and reports whether the search has been stopped.
func (s *search) tick() bool {
	if s.ticks++; s.ticks&0xff == 0 && s.ctx.Err() != nil {
		s.result.Stopped = true
	}
	if !s.above() {
		s.result.Graphs++
	}
	return s.result.Stopped
}

// awaits reports whether thread t waits after a read of value.
func (s *search) awaits(t int, value int64) bool {
	copy(s.trial, s.threads[t].state)
	s.p.Resume(t, s.trial, value, &s.trialOp)
	return s.trialOp.Awaits()
}

// push adds an event of the next step of thread t.
func (s *search) push(t int, kind model.Kind, order model.Order, value int64, deps uint64) int {
	th := &s.threads[t]
	op := &th.op
	if s.reach.partial(op) {
		s.partial[op.Loc] = true
	}
	e := len(s.events)
	s.events = append(s.events, event{rf: initial, deps: deps, Event: explore.Event{Event: model.Event{Thread: t, Kind: kind, Order: order, Scope: op.Scope, Loc: op.Loc,
		Place: s.groups.Places[t], Proxy: op.Proxy, Address: op.Address, Reduction: op.Reduction}, Op: *op, Index: len(th.events), Value: value, RF: -1}})
	th.events = append(th.events, e)
	if kind == model.R {
		th.reads = append(th.reads, e)
	}
	return e
}

// pop removes the last event, which is one of thread t.
func (s *search) pop(t int) {
	th := &s.threads[t]
	if s.events[len(s.events)-1].Kind == model.R {
		th.reads = th.reads[:len(th.reads)-1]
	}
	s.events = s.events[:len(s.events)-1]
	th.events = th.events[:len(th.events)-1]
}

// resume continues thread t with value, calls then, and restores the thread.
func (s *search) resume(t int, value int64, then func()) {
	th := &s.threads[t]
	op, state, node, fresh, acyclic := th.op, slices.Clone(th.state), th.node, th.fresh, th.acyclic
	th.node, th.fresh, th.acyclic = nil, initial, false
	s.p.Resume(t, th.state, value, &th.op)
	then()
	copy(th.state, state)
	th.op, th.node, th.fresh, th.acyclic = op, node, fresh, acyclic
}

// read explores the next step of thread t, a read or an update, from existing writes. It leaves out values after which
// the thread waits: the thread makes its step when there are other values. It reports whether there are such values.
func (s *search) read(t int) (spins bool) {
	th := &s.threads[t]
	op := th.op
	e := s.push(t, model.R, s.readOrder(&op), 0, op.Deps)
	s.sources(e, func(of, w int, value int64) {
		switch {
		case op.Loops && s.awaits(t, value):
			spins = true
		case w >= th.fresh:
			s.events[e].rf, s.events[e].Value, s.events[e].cycle = w, value, either
			if th.acyclic && s.promisable(t, e, value) {
				s.events[e].cycle = inNone
			}
			s.portion(of, func() { s.completeRead(t, e) })
		}
	})
	s.pop(t)
	return spins
}

// promise explores the executions in which the next step of thread t, a read or an update, is promised its value.
func (s *search) promise(t int) {
	op := s.threads[t].op
	for _, value := range s.values[op.Loc] {
		if op.Loops && s.awaits(t, value) {
			continue
		}
		e := s.push(t, model.R, s.readOrder(&op), value, op.Deps)
		s.events[e].rf, s.events[e].cycle = promised, inCycle
		if s.promisable(t, e, value) {
			s.open = append(s.open, e)
			s.portion(len(s.values[op.Loc]), func() { s.completeRead(t, e) })
			s.open = s.open[:len(s.open)-1]
		}
		s.pop(t)
	}
}

// readOrder is the order of the read of a step.
func (s *search) readOrder(op *explore.Op) model.Order {
	if op.Kind == explore.Update {
		return op.Order.OfRead()
	}
	return op.Order
}

// sources calls f for each write from which read e, the last event, may read. of is their number.
func (s *search) sources(e int, f func(of, w int, value int64)) {
	loc := s.events[e].Loc
	writes := []int{initial}
	for w := range e {
		if s.events[w].Kind == model.W && s.events[w].Loc == loc {
			writes = append(writes, w)
		}
	}
	f(len(writes), initial, s.p.Initial(loc))
	for _, w := range writes[1:] {
		f(len(writes), w, s.events[w].Value)
	}
}

// completeRead explores the executions after read e of thread t, which has its value.
func (s *search) completeRead(t, e int) {
	if s.result.Stopped {
		return
	}
	ev := &s.events[e]
	op, value := ev.Op, ev.Value
	if op.Kind == explore.Update {
		// An update that writes the value it has read, and so ends an iteration that changed nothing, is a read: see
		// explore.
		written, writes := s.p.Apply(&op, value)
		if writes && !(written == value && op.Loops && s.awaits(t, value)) {
			deps := op.Deps
			if op.Function != explore.Exchange {
				deps |= 1 << min(len(s.threads[t].reads)-1, 63)
			}
			ev.RMW = true
			w := s.push(t, model.W, op.Order.OfWrite(), written, deps)
			s.events[w].RMW = true
			s.resume(t, value, func() { s.supply(w, func() { s.consistent(s.visit, e, w) }) })
			s.pop(t)
			s.events[e].RMW = false
			return
		}
	}
	s.resume(t, value, func() {
		if s.events[e].rf == promised {
			s.visit()
		} else {
			s.consistent(s.visit, e)
		}
	})
}

// supply lets write w, the last event, keep any of the promises of its value, and explores the executions that follow.
func (s *search) supply(w int, then func()) {
	s.collect()
	s.supplyFrom(w, 0, then)
}

func (s *search) supplyFrom(w, from int, then func()) {
	if s.result.Stopped {
		return
	}
	if len(s.open) > 0 && !s.followsOpen(w) {
		then()
		return
	}
	for k := from; k < len(s.open); k++ {
		r := s.open[k]
		e, f := &s.events[r], &s.events[w]
		if e.Loc != f.Loc || e.Value != f.Value || e.Thread == f.Thread && e.SameProxy(&f.Event.Event) {
			continue
		}
		// The promise is kept by this write, or by another one.
		open, promises := s.open, s.promises
		s.open, s.promises, e.rf = slices.Delete(slices.Clone(open), k, k+1), true, w
		if len(s.open) > 0 || s.cyclesAsRequired() {
			s.consistent(func() {
				s.collect()
				s.supplyFrom(w, k, then)
			}, r, w)
		}
		s.open, s.promises, s.events[r].rf = open, promises, promised
		s.supplyFrom(w, k+1, then)
		return
	}
	then()
}

// cyclesAsRequired reports whether each read is in a cycle, or is not, as it must be. No promise is open.
func (s *search) cyclesAsRequired() bool {
	for r := range s.events {
		if e := &s.events[r]; e.cycle != either && s.follows(e.rf, func(o int) bool { return o == r }) != (e.cycle == inCycle) {
			return false
		}
	}
	return true
}

// followsOpen reports whether event w comes after a read with an open promise by program order, reads-from and
// barriers.
func (s *search) followsOpen(w int) bool {
	return s.follows(w, func(r int) bool { return s.events[r].rf == promised })
}

// follows reports whether event w, if it is not an initial write, comes after a read for which is holds by program
// order, reads-from and barriers.
func (s *search) follows(w int, is func(r int) bool) bool {
	upto := make([]int, len(s.threads)) // by thread: the number of events known to come before w
	var walk func(e int) bool
	walk = func(e int) bool {
		if e < 0 {
			return false
		}
		ev := &s.events[e]
		of, known := s.threads[ev.Thread].events, upto[ev.Thread]
		upto[ev.Thread] = max(known, ev.Index+1)
		for i := ev.Index; i >= known; i-- {
			found := false
			switch o := &s.events[of[i]]; o.Kind {
			case model.R:
				found = is(of[i]) || walk(o.rf)
			case model.Leave:
				s.arrivals(of[i], func(a int) { found = found || walk(a) })
			}
			if found {
				return true
			}
		}
		return false
	}
	return walk(w)
}

// arrive lets thread t arrive at a barrier, or leave one at which all have arrived.
func (s *search) arrive(t int) {
	th := &s.threads[t]
	if th.op.Exchanges {
		s.refuse(ErrExchanges)
		return
	}
	if th.parked {
		last := s.events[th.events[len(th.events)-1]]
		e := s.push(t, model.Leave, model.NA, 0, 0)
		s.events[e].generation = last.generation
		th.parked = false
		s.resume(t, s.reduction(e), s.visit)
		th.parked = true
		s.pop(t)
		return
	}
	e := s.push(t, model.Arrival, model.NA, th.op.Value, th.op.Control)
	for _, i := range th.events[:len(th.events)-1] {
		if o := &s.events[i]; o.Kind == model.Arrival && o.Loc == th.op.Loc {
			s.events[e].generation++
		}
	}
	if th.op.Kind == explore.Arrive {
		th.parked = true
		s.visit()
		th.parked = false
	} else {
		s.resume(t, 0, s.visit)
	}
	s.pop(t)
}

// arrivals calls f for the arrivals at the barrier and generation of event e.
func (s *search) arrivals(e int, f func(a int)) {
	ev := &s.events[e]
	for a := range s.events {
		o := &s.events[a]
		if o.Kind == model.Arrival && o.Loc == ev.Loc && o.generation == ev.generation && s.groups.Same(ev.Thread, o.Thread, &ev.Op) {
			f(a)
		}
	}
}

// reduction is the result of the reduction over the arrivals at the barrier of event e.
func (s *search) reduction(e int) int64 {
	var values []int64
	s.arrivals(e, func(a int) { values = append(values, s.events[a].Op.Value) })
	return s.events[e].Op.Reduce(values)
}

// missing returns the threads for which thread t, which is parked, still waits at its barrier.
func (s *search) missing(t int) (out []int) {
	th := &s.threads[t]
	at := th.events[len(th.events)-1]
	came := map[int]bool{}
	s.arrivals(at, func(a int) { came[s.events[a].Thread] = true })
	for o := range s.threads {
		if s.groups.Same(t, o, &th.op) && !came[o] {
			out = append(out, o)
		}
	}
	return out
}

// complete reports whether no thread is missing at the barrier at which thread t is parked. In a kernel, exited threads
// are not missing.
func (s *search) complete(t int) bool {
	for _, o := range s.missing(t) {
		if !s.Exits || s.threads[o].op.Kind != explore.End {
			return false
		}
	}
	return true
}

// iteration returns the reads of the last iteration of thread t, which spins, the last first. Steps inserted by a
// repair do not count.
func (s *search) iteration(t int) (out []int) {
	th := &s.threads[t]
	steps := th.op.Value
	for i := len(th.events) - 1; i >= 0 && steps > 0; i-- {
		e := &s.events[th.events[i]]
		if e.Kind == model.R {
			out = append(out, th.events[i])
		}
		if !(e.Kind == model.W && e.RMW) && e.Kind != model.Leave && !e.Op.Inserted {
			steps--
		}
	}
	return out
}
