package candidates

import (
	"encoding/binary"
	"slices"
	"sync"

	"fencepost.dev/fencepost/internal/verify/explore"
)

// Evidence is what the search along program order has observed; explore.Options describes its methods, which several
// goroutines may call.
type Evidence struct {
	mu        sync.Mutex
	accesses  map[explore.Access]bool
	segments  map[explore.Segment]bool
	exchanged map[int32][]int64 // by place: the values that steps which exchange return
	readings  map[string]*reading
}

// reading is a state of a thread, after a number of reads, in which it makes a strong read.
type reading struct {
	thread int
	state  []int64
	op     explore.Op
	reads  int
}

// maxReadings is the greatest number of readings kept. Beyond it, Needed assumes that a read might read from a later
// write.
const maxReadings = 1 << 17

// NewEvidence returns the evidence of a search that has not begun.
func NewEvidence() *Evidence {
	return &Evidence{accesses: map[explore.Access]bool{}, segments: map[explore.Segment]bool{}, exchanged: map[int32][]int64{}, readings: map[string]*reading{}}
}

// Set adds the methods of the evidence to the options of the search, or of a part of it.
func (e *Evidence) Set(o *explore.Options) {
	o.Accessed = func(a explore.Access) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.accesses[a] = true
	}
	o.Follows = func(s explore.Segment) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.segments[s] = true
	}
	o.Exchanged = func(pos int32, value int64) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !slices.Contains(e.exchanged[pos], value) {
			e.exchanged[pos] = append(e.exchanged[pos], value)
		}
	}
	o.Reads = func(t int, state []int64, op *explore.Op, reads int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		key := stateKey(t, state, op, reads)
		if e.readings[key] == nil && len(e.readings) <= maxReadings {
			e.readings[key] = &reading{t, slices.Clone(state), *op, reads}
		}
	}
}

// stateKey is a key for a state of a thread.
func stateKey(t int, state []int64, op *explore.Op, reads int) string {
	key := binary.LittleEndian.AppendUint64(make([]byte, 0, 8*len(state)+8), uint64(t)<<32|uint64(op.Kind)<<24|uint64(reads))
	for _, w := range state {
		key = binary.LittleEndian.AppendUint64(key, uint64(w))
	}
	return string(key)
}

// Needed reports whether a read of p might read from a write that comes later than the read in every order of the
// events that extends program order. It assumes that p has no data races and that its accesses are by one proxy.
//
// If there is such a read, program order, reads-from and barriers have a cycle: see cycles. The events that do not come
// after a cycle are an execution, or part of one, of the search along program order. Each thread of the cycle makes
// there a strong read of a later write. In one of these threads the next event of the cycle, a write or an arrival at a
// barrier, does not depend on the read. Otherwise each value would depend on itself (No-Thin-Air). Of the values read,
// one is written first, and it depends on none of these reads. So the values are those of the search along program
// order.
func (e *Evidence) Needed(p explore.Program) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := cyclesOf(p, e.accesses, e.segments)
	if len(c.locs) == 0 {
		return false
	}
	if len(e.readings) > maxReadings {
		return true
	}
	written := map[int32]map[int64]int{} // by location and value: the thread that writes it, several for more than one
	for a := range e.accesses {
		if !a.Write {
			continue
		}
		by := written[a.Loc]
		if by == nil {
			by = map[int64]int{}
			written[a.Loc] = by
		}
		if t, ok := by[a.Value]; ok && t != a.Thread {
			by[a.Value] = several
		} else {
			by[a.Value] = a.Thread
		}
	}
	values := map[int32][]int64{}
	for loc, by := range written {
		values[loc] = sorted(by)
	}
	for i := range e.exchanged {
		slices.Sort(e.exchanged[i])
	}
	s := &search{round: &round{p: p}, groups: explore.NewGroups(p.Places()), reach: newReach(p, values)}
	s.reach.exchanged, s.reach.cycles = e.exchanged, c
	for _, k := range sorted(e.readings) {
		r := e.readings[k]
		if !c.locs[r.op.Loc] {
			continue
		}
		for _, v := range values[r.op.Loc] {
			if written[r.op.Loc][v] != r.thread && s.free(r.thread, r.state, &r.op, v, r.reads) {
				return true
			}
		}
	}
	return false
}

const several = -1

// follower searches for an event that follows a read without depending on it.
type follower struct {
	*reach
	t, bit int
	seen   map[string]bool
}

// maxFollowed bounds the number of visited states. Beyond it, the follower assumes that something follows.
const maxFollowed = 1 << 14

// free reports whether some later write of thread t, or an arrival at a barrier, does not depend on step op, a strong
// read of value before which the thread has made reads reads. The write of an exchange does not depend on its read.
func (s *search) free(t int, state []int64, op *explore.Op, value int64, reads int) bool {
	if reads >= 63 || op.Kind == explore.Update && op.Function == explore.Exchange {
		return true
	}
	next := slices.Clone(state)
	var o explore.Op
	s.p.Resume(t, next, value, &o)
	if op.Loops && o.Kind == explore.Await {
		return false
	}
	f := &follower{reach: &s.reach, t: t, bit: reads, seen: map[string]bool{}}
	return f.follows(next, &o)
}

// follows reports whether such an event follows from a state on.
func (f *follower) follows(state []int64, op *explore.Op) bool {
	if op.Control>>f.bit&1 != 0 {
		return false // everything that follows depends on it, too
	}
	key := stateKey(f.t, state, op, 0)
	if f.seen[key] {
		return false
	}
	f.seen[key] = true
	if len(f.seen) > maxFollowed {
		return true
	}
	to := func(value int64) bool {
		next := slices.Clone(state)
		var o explore.Op
		f.p.Resume(f.t, next, value, &o)
		return f.follows(next, &o)
	}
	counts := (f.cycles == nil || f.cycles.locs[op.Loc]) && op.Deps>>f.bit&1 == 0
	switch op.Kind {
	case explore.Write:
		return counts || to(0)
	case explore.Read:
		return slices.ContainsFunc(f.returns(op.Loc), to)
	case explore.Update:
		return slices.ContainsFunc(f.returns(op.Loc), func(v int64) bool {
			_, writes := f.p.Apply(op, v)
			return counts && writes || to(v)
		})
	case explore.Fence:
		return to(0)
	case explore.Arrive, explore.Signal:
		if f.arrives(f.t, op) {
			return true
		}
		if op.Kind == explore.Signal {
			return to(0)
		}
		return slices.ContainsFunc(f.gives(op), to)
	}
	return false
}
