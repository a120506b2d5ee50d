package evaluate

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
	"fencepost.dev/fencepost/internal/cpu/slimfast"
)

// segment is the accesses of a thread between two synchronisation operations.
type segment struct {
	clock    order.Clock
	ended    bool // an epoch of the thread ended before the segment
	accesses []access
}

type access struct {
	variable uint32
	write    bool
}

// segments returns the segments of each thread. It omits operations other than plain accesses and synchronisation: the
// replay measures time and finds no races.
func segments(events []cpu.Event) (threads [][]segment, variables int) {
	var o order.Order
	begin := func(thread uint16, ended bool) {
		for len(threads) <= int(thread) {
			threads = append(threads, nil)
		}
		threads[thread] = append(threads[thread], segment{clock: slices.Clone(o.Clock(thread)), ended: ended})
	}
	for i := range events {
		e := &events[i]
		if int(e.Thread) >= len(threads) || threads[e.Thread] == nil {
			begin(e.Thread, false)
		}
		switch {
		case e.Op == cpu.Read || e.Op == cpu.Write:
			variables = max(variables, int(e.Object)+1)
			s := &threads[e.Thread][len(threads[e.Thread])-1]
			s.accesses = append(s.accesses, access{e.Object, e.Op == cpu.Write})
		case e.Op.Access() || e.Op == cpu.Part || e.Op == cpu.Forget:
		default:
			begin(e.Thread, o.Step(e))
			if e.Op == cpu.Fork {
				begin(uint16(e.Object), true)
			}
		}
	}
	return threads, variables
}

// judge judges the accesses of one thread. Several judges may run concurrently.
type judge interface {
	clock(c order.Clock, ended bool)
	access(a access)
}

// replay judges each thread in a goroutine. A segment begins when all segments that are ordered before it have ended.
func replay(threads [][]segment, judges func(thread int) judge) {
	over := make([]atomic.Uint64, len(threads)) // by thread: the last epoch that has ended
	var all sync.WaitGroup
	for id := range threads {
		all.Go(func() {
			j := judges(id)
			var epoch order.Epoch
			for i := range threads[id] {
				s := &threads[id][i]
				if s.ended {
					over[id].Store(uint64(epoch))
				}
				epoch = s.clock[id]
				for other, until := range s.clock {
					for other != id && over[other].Load() < uint64(until) {
						runtime.Gosched()
					}
				}
				j.clock(s.clock, s.ended)
				for _, a := range s.accesses {
					j.access(a)
				}
			}
			over[id].Store(^uint64(0))
		})
	}
	all.Wait()
}

// slim is a thread of SlimFast.
type slim struct {
	*slimfast.Thread
	variables []slimfast.Variable
}

func (s slim) clock(c order.Clock, ended bool) {
	if ended {
		s.Advance(c)
	} else {
		s.Clock = c
	}
}

func (s slim) access(a access) {
	if a.write {
		s.Write(&s.variables[a.variable])
	} else {
		s.Read(&s.variables[a.variable])
	}
}

// locked is a thread of FastTrack as in RoadRunner: each variable is an object that a lock guards (section 3.4.1).
type locked struct {
	id        uint16
	now       order.Clock
	variables []*variable
}

func (l *locked) clock(c order.Clock, ended bool) { l.now = c }

func (l *locked) access(a access) {
	v := l.variables[a.variable]
	v.Lock()
	v.access(l.id, l.now, a.write)
	v.Unlock()
}
