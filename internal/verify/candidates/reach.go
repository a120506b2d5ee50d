package candidates

import (
	"encoding/binary"
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// maxReach is the greatest number of states kept. Beyond it, any thread is assumed to write everything it has written
// in the previous round.
const maxReach = 1 << 17

// reach computes what a thread may still write, for all values that its reads may return.
type reach struct {
	p       explore.Program
	values  map[int32][]int64
	nodes   map[string]*node
	bits    map[location]int // values that may be promised
	locs    map[int32]int    // locations
	need    model.Scope      // the scope that includes all threads
	company []bool           // by thread: there are others in its CTA
	threads int
	full    bool
	by      map[writer]bool // the threads that wrote the values
	// mixed are the locations with an access, in an earlier round, that is not morally strong with all other accesses of
	// the location.
	mixed map[int32]bool
	// cycles, if not nil, restricts the locations and barriers that count: see follower.
	cycles *cycles
	// exchanged are the values that steps which exchange may return, by place.
	exchanged map[int32][]int64
}

// node is a state of a thread.
type node struct {
	values set // promisable values that are written from here on
	locs   set // locations that are written
	mixed  set // locations with accesses that are not morally strong with all others
	next   []*node
}

// set is a set of small numbers.
type set []uint64

func newReach(p explore.Program, values map[int32][]int64) reach {
	places := p.Places()
	need, members := model.CTA, map[int32]int{}
	for _, a := range places {
		need = max(need, model.Need(a, places[0]))
		members[a.CTA]++
	}
	company := make([]bool, len(places))
	for t, a := range places {
		company[t] = members[a.CTA] > 1
	}
	r := reach{p: p, need: need, company: company, threads: len(places), values: values, nodes: map[string]*node{}, bits: map[location]int{}, locs: map[int32]int{}}
	for _, loc := range sorted(values) {
		for _, v := range values[loc] {
			r.bits[location{loc, v}] = len(r.bits)
		}
	}
	return r
}

// may reports whether thread t may write w from its current state on.
func (r *reach) may(t int, th *thread, w location) bool {
	b, ok := r.bits[w]
	n := r.at(t, th)
	if ok && r.full {
		return r.by[writer{w, t}]
	}
	return !ok || n.values.has(b)
}

// writes reports whether thread t may write a location from its current state on.
func (r *reach) writes(t int, th *thread, loc int32) bool {
	n := r.at(t, th)
	b, ok := r.locs[loc]
	return r.full || ok && n.locs.has(b)
}

// returns returns the values that a read of a location may return.
func (r *reach) returns(loc int32) []int64 {
	return append([]int64{r.p.Initial(loc)}, r.values[loc]...)
}

// gives returns the values that a thread may receive at a barrier.
func (r *reach) gives(op *explore.Op) []int64 {
	if op.Exchanges {
		return r.exchanged[op.Pos]
	}
	return op.Reductions(r.threads)
}

func (r *reach) at(t int, th *thread) *node {
	if th.node == nil {
		th.node = r.of(t, th.state, &th.op)
	}
	return th.node
}

func (s set) has(b int) bool { return b/64 < len(s) && s[b/64]>>(b%64)&1 != 0 }

func (s *set) add(b int) {
	for len(*s) <= b/64 {
		*s = append(*s, 0)
	}
	(*s)[b/64] |= 1 << (b % 64)
}

// join adds another set and reports whether s has grown.
func (s *set) join(o set) (grown bool) {
	for i, w := range o {
		if i >= len(*s) {
			*s = append(*s, 0)
		}
		grown = grown || w&^(*s)[i] != 0
		(*s)[i] |= w
	}
	return grown
}

// join adds the sets of another node and reports whether n has grown.
func (n *node) join(o *node) bool {
	values, locs := n.values.join(o.values), n.locs.join(o.locs)
	mixed := n.mixed.join(o.mixed)
	return values || locs || mixed
}

func (r *reach) number(loc int32) int {
	l, ok := r.locs[loc]
	if !ok {
		l = len(r.locs)
		r.locs[loc] = l
	}
	return l
}

// of returns the node of a state, with all nodes that follow.
func (r *reach) of(t int, state []int64, op *explore.Op) *node {
	var fresh []*node
	root := r.walk(t, state, op, &fresh)
	for grown := true; grown; {
		grown = false
		for i := len(fresh) - 1; i >= 0; i-- {
			for _, next := range fresh[i].next {
				grown = fresh[i].join(next) || grown
			}
		}
	}
	for _, n := range fresh {
		n.next = nil
	}
	return root
}

// walk makes the nodes from a state on. fresh are the new ones.
func (r *reach) walk(t int, state []int64, op *explore.Op, fresh *[]*node) *node {
	key := make([]byte, 0, 8*len(state)+4)
	key = binary.LittleEndian.AppendUint32(key, uint32(t)<<8|uint32(op.Kind))
	for _, w := range state {
		key = binary.LittleEndian.AppendUint64(key, uint64(w))
	}
	if n := r.nodes[string(key)]; n != nil {
		return n
	}
	n := &node{}
	if len(r.nodes) >= maxReach || r.full {
		r.full = true
		return n
	}
	r.nodes[string(key)] = n
	*fresh = append(*fresh, n)
	to := func(value int64) {
		next := append([]int64(nil), state...)
		var o explore.Op
		r.p.Resume(t, next, value, &o)
		n.next = append(n.next, r.walk(t, next, &o, fresh))
	}
	write := func(v int64) {
		if b, ok := r.bits[location{op.Loc, v}]; ok {
			n.values.add(b)
		}
		n.locs.add(r.number(op.Loc))
	}
	if r.partial(op) {
		n.mixed.add(r.number(op.Loc))
	}
	switch op.Kind {
	case explore.Write:
		write(op.Value)
		to(0)
	case explore.Read, explore.Update:
		for _, v := range r.returns(op.Loc) {
			if op.Kind == explore.Update {
				if w, writes := r.p.Apply(op, v); writes {
					write(w)
				}
			}
			to(v)
		}
	case explore.Fence, explore.Signal:
		to(0)
	case explore.Arrive:
		for _, v := range r.gives(op) {
			to(v)
		}
	}
	return n
}

// partial reports whether a step is an access that is not morally strong with every other access of its location.
func (r *reach) partial(op *explore.Op) bool {
	k := op.Kind
	return (k == explore.Read || k == explore.Write || k == explore.Update) && !(op.Order.Atomic() && op.Scope >= r.need && op.Proxy == model.Generic)
}

// arrives reports whether the arrival of thread t at a barrier enables other threads to write something that they could
// not write before.
func (r *reach) arrives(t int, op *explore.Op) bool {
	return (op.Exchanges || r.company[t]) && (r.cycles == nil || r.cycles.ctas[r.p.Places()[t].CTA])
}

// promisable reports whether read e of thread t, the last event, may be promised a value: a later write of the thread,
// or an arrival at a barrier after which others write, does not depend on it. Other reads need no promise. If
// everything that follows depends on a read, the read may as well wait until the write it reads from exists:
// dependencies and reads-from form no cycle (No-Thin-Air).
func (s *search) promisable(t, e int, value int64) bool {
	switch ev := &s.events[e]; {
	case s.m.Drop != model.PTXWhole:
		return true
	case !s.weak && !ev.Strong():
		return false
	}
	ev, reads := &s.events[e], len(s.threads[t].reads)-1
	state := stateKey(t, s.threads[t].state, &ev.Op, reads)
	free, ok := s.freed[state][value]
	if !ok {
		free = s.free(t, s.threads[t].state, &ev.Op, value, reads)
		if len(s.freed) > maxFreed {
			clear(s.freed)
		}
		if s.freed[state] == nil {
			s.freed[state] = map[int64]bool{}
		}
		s.freed[state][value] = free
	}
	return free
}

// mixed reports whether some access of a location is not morally strong with all others.
func (s *search) mixed(loc int32) bool {
	if !s.oneProxy {
		return true
	}
	b, ok := s.reach.locs[loc]
	if s.reach.full {
		return s.reach.mixed[loc]
	}
	if !ok {
		return true
	}
	for _, n := range s.start {
		if n.mixed.has(b) {
			return true
		}
	}
	return false
}

// keepable reports whether every open promise may still be kept: by a thread that goes on without it, and without
// promises that wait for it.
func (s *search) keepable() bool {
	if len(s.open) == 0 {
		return true
	}
	kept := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, r := range s.open {
			if !kept[r] && s.keeper(r, kept) {
				kept[r], grown = true, true
			}
		}
	}
	return len(kept) == len(s.open)
}

// keeper reports whether some thread may write the value that read r is promised, depending only on promises in kept.
func (s *search) keeper(r int, kept map[int]bool) bool {
	e := &s.events[r]
	if s.starved(r) {
		return false
	}
	for t := range s.threads {
		th := &s.threads[t]
		if t == e.Thread && s.oneProxy || th.parked && !s.released(t) || s.after(t, r) || s.passed(t, r) {
			continue
		}
		free := true
		if s.m.Drop != model.PTXDropThinAir {
			s.below(s.readsOf(t, th.op.Control), func(o int) bool {
				free = o != r && (s.events[o].rf != promised || kept[o])
				return free
			})
		}
		if free && s.reach.may(t, th, location{e.Loc, e.Value}) {
			return true
		}
	}
	return false
}

// passed reports whether thread t has read a value that the thread of read r wrote to the location of r after r, or an
// update of it. What t writes there comes later in coherence order, and the source of r must come earlier.
func (s *search) passed(t, r int) bool {
	e := &s.events[r]
	if s.m.Drop != model.PTXWhole || s.mixed(e.Loc) {
		return false
	}
	for _, o := range s.threads[t].reads {
		for o >= 0 && s.events[o].Loc == e.Loc && s.events[o].rf >= 0 {
			f := &s.events[s.events[o].rf]
			if f.Thread == e.Thread && f.Index > e.Index {
				return true
			}
			if o = -1; f.RMW {
				o = s.threads[f.Thread].events[f.Index-1]
			}
		}
	}
	return false
}

// starved reports whether every other thread that may write the location of read r, which has an open promise, waits to
// read a value that is written there after the promise, and no other thread has written there since. The first of these
// threads reads a value that the thread of r writes after r. So all of them come too late, as in passed.
func (s *search) starved(r int) bool {
	e := &s.events[r]
	if s.m.Drop != model.PTXWhole || s.mixed(e.Loc) {
		return false
	}
	for t := range s.threads {
		th := &s.threads[t]
		reads := (th.op.Kind == explore.Read || th.op.Kind == explore.Update) && th.op.Loc == e.Loc && th.fresh > r
		if t != e.Thread && !reads && s.reach.writes(t, th, e.Loc) {
			return false
		}
	}
	return !slices.ContainsFunc(s.events[r:], func(w event) bool { return w.Kind == model.W && w.Loc == e.Loc && w.Thread != e.Thread })
}

// released reports whether a thread that is parked at a barrier may still leave it: no missing thread has ended.
func (s *search) released(t int) bool {
	for _, o := range s.missing(t) {
		switch s.threads[o].op.Kind {
		case explore.Await, explore.Fail, explore.Bound, explore.Assumed:
			return false
		case explore.End:
			if !s.Exits {
				return false
			}
		}
	}
	return true
}
