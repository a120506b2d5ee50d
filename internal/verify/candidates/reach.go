package candidates

import (
	"encoding/binary"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// maxReach is how many states of threads are kept. Beyond it, any thread is taken to write anything.
const maxReach = 1 << 17

// reach says what a thread may still write, whatever its reads return of the values that there are.
type reach struct {
	p      explore.Program
	values map[int32][]int64
	nodes  map[string]*node
	bits   map[location]int
	full   bool
}

// node is a state of a thread.
type node struct {
	writes []uint64 // values that are written from here on, as bits
	next   []*node
}

func newReach(p explore.Program, values map[int32][]int64) reach {
	r := reach{p: p, values: values, nodes: map[string]*node{}, bits: map[location]int{}}
	for _, loc := range sorted(values) {
		for _, v := range values[loc] {
			r.bits[location{loc, v}] = len(r.bits)
		}
	}
	return r
}

// may says that thread t may write w from its state on.
func (r *reach) may(t int, th *thread, w location) bool {
	b, ok := r.bits[w]
	if !ok || r.full {
		return true
	}
	n := r.of(t, th.state, &th.op)
	return r.full || n.has(b)
}

func (n *node) has(b int) bool { return b/64 < len(n.writes) && n.writes[b/64]>>(b%64)&1 != 0 }

func (n *node) add(b int) {
	for len(n.writes) <= b/64 {
		n.writes = append(n.writes, 0)
	}
	n.writes[b/64] |= 1 << (b % 64)
}

// join adds what another node writes, and says whether that is new.
func (n *node) join(o *node) (grown bool) {
	for i, w := range o.writes {
		if i >= len(n.writes) {
			n.writes = append(n.writes, 0)
		}
		grown = grown || w&^n.writes[i] != 0
		n.writes[i] |= w
	}
	return grown
}

// of gives the node of a state, of which all that follow are known.
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

// walk makes the nodes from a state on; fresh are those that were not there before.
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
			n.add(b)
		}
	}
	switch op.Kind {
	case explore.Write:
		write(op.Value)
		to(0)
	case explore.Read, explore.Update:
		known := r.values[op.Loc]
		for _, v := range append([]int64{r.p.Initial(op.Loc)}, known...) {
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
		for _, v := range op.Reductions() {
			to(v)
		}
	}
	return n
}

// keepable says that each open promise may still be kept: by a thread that goes on without it, and without promises that wait for it.
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

// keeper says that some thread may write what read r is promised, and depends on no promise but those that are kept.
func (s *search) keeper(r int, kept map[int]bool) bool {
	e := &s.events[r]
	for t := range s.threads {
		th := &s.threads[t]
		if t == e.Thread || th.parked && !s.released(t) || s.after(t, r) {
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

// released says that a thread that is parked at a barrier may still leave it: nobody is missing who has ended.
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
