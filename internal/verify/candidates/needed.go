package candidates

import (
	"encoding/binary"
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
)

// Needed says that a read of p might read from a write that comes later than the read in every order of the events that extends
// program order, whereas p has no data races and its accesses are by one proxy. accesses are those of the executions without such reads.
//
// Then program order, reads-from and barriers have a cycle: see cycles. Where there may be one, each thread is followed by itself, and its
// reads return each value that there is. Such a read is strong, another thread may write
// the value, and what follows in the thread of the read does not depend on the read: see promisable. Of the executions with such
// reads, each is reached through one in which the first of them has not been made; so all follow from the accesses of those without.
//
// exchanged are the values that steps which exchange give in these executions, by place. Such a step counts as a write that does not depend on the reads
// before it: another thread may write what follows from it.
func Needed(p explore.Program, accesses map[explore.Access]bool, exchanged map[int32][]int64) bool {
	cycles := cyclesOf(p, accesses)
	if len(cycles.locs) == 0 {
		return false
	}
	values := map[int32][]int64{}
	for a := range accesses {
		if a.Write && !slices.Contains(values[a.Loc], a.Value) {
			values[a.Loc] = append(values[a.Loc], a.Value)
		}
	}
	for _, sets := range []map[int32][]int64{values, exchanged} {
		for i := range sets {
			slices.Sort(sets[i])
		}
	}
	s := &search{p: p, groups: explore.NewGroups(p.Places()), reach: newReach(p, values)}
	s.reach.exchanged, s.reach.cycles = exchanged, cycles
	s.begin()
	for t := range s.threads {
		if s.needed(t, s.threads[t].state, &s.threads[t].op, 0, map[string]bool{}) {
			return true
		}
	}
	return false
}

// needed says so of thread t from a state on, in which it has made so many reads.
func (s *search) needed(t int, state []int64, op *explore.Op, reads int, seen map[string]bool) bool {
	key := make([]byte, 0, 8*len(state))
	for _, w := range state {
		key = binary.LittleEndian.AppendUint64(key, uint64(w))
	}
	if s.reach.full {
		return true
	}
	if seen[string(key)] {
		return false
	}
	seen[string(key)] = true
	to := func(value int64, reads int) bool {
		next := slices.Clone(state)
		var o explore.Op
		s.p.Resume(t, next, value, &o)
		return s.needed(t, next, &o, reads, seen)
	}
	switch op.Kind {
	case explore.Read, explore.Update:
		for _, v := range s.reach.values[op.Loc] {
			if s.reach.cycles.locs[op.Loc] && s.suppliable(t, op, v) && s.free(t, state, op, v, reads) {
				return true
			}
		}
		for _, v := range s.reach.returns(op.Loc) {
			if to(v, reads+1) {
				return true
			}
		}
	case explore.Write, explore.Fence, explore.Signal:
		return to(0, reads)
	case explore.Arrive:
		for _, v := range s.reach.gives(op) {
			if to(v, reads) {
				return true
			}
		}
	}
	return false
}

// suppliable says that step op of thread t is a strong read, and that another thread may write value to its location.
func (s *search) suppliable(t int, op *explore.Op, value int64) bool {
	if !op.Order.Atomic() {
		return false
	}
	for o := range s.threads {
		if o != t && s.reach.may(o, &s.threads[o], location{op.Loc, value}) {
			return true
		}
	}
	return false
}

// free says that a write of thread t that follows step op, a strong read of value, does not depend on the read, before which the thread has
// made so many.
func (s *search) free(t int, state []int64, op *explore.Op, value int64, reads int) bool {
	if reads >= 63 || op.Kind == explore.Update && op.Function == explore.Exchange && s.mixed(op.Loc) {
		return true
	}
	next := slices.Clone(state)
	var o explore.Op
	s.p.Resume(t, next, value, &o)
	if op.Loops && o.Kind == explore.Await {
		return false
	}
	n := s.reach.of(t, next, &o)
	return s.reach.full || n.deps>>reads&1 == 0
}
