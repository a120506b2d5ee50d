package trace

import (
	"fmt"
	"slices"

	"fencepost.dev/fencepost/internal/cpu"
)

// The states of a thread.
const (
	unborn = iota
	running
	ended
	joined
)

// lockState is the state of a lock.
type lockState struct {
	holder int32 // the thread, plus one; 0 for none
	depth  int32
}

// checker checks that events are possible in a program. It changes inner acquires and releases of a lock that the
// thread already holds to cpu.None.
type checker struct {
	known   [cpu.Tables]uint32 // how many numbers are in use; one more for locations, which begin at 1
	life    []uint8
	inside  [][]uint32 // by thread: the barriers that it has entered; tasks that a thread runs inside one may enter others
	joiner  []uint16   // by thread: the thread that joined it
	syncs   []lockState
	problem string
}

// event reports whether an event is possible. If not, it sets problem to the reason.
func (c *checker) event(e *cpu.Event) bool {
	if e.Op >= cpu.Ops {
		return c.not("%d is no operation", e.Op)
	}
	if e.Op == cpu.Part {
		if e.Location >= c.known[cpu.Variables] {
			return c.not("a variable is a part of number %d, which is not in use", e.Location)
		}
	} else if e.Location > 0 && !c.number(cpu.Locations, e.Location-1) {
		return false
	}
	if !c.number(cpu.Threads, uint32(e.Thread)) {
		return false
	}
	if t := e.Op.Table(); t != cpu.NoObject && !c.number(t, e.Object) {
		return false
	}
	for len(c.life) < int(c.known[cpu.Threads]) {
		c.life, c.inside, c.joiner = append(c.life, unborn), append(c.inside, nil), append(c.joiner, 0)
	}
	for len(c.syncs) < int(c.known[cpu.Syncs]) {
		c.syncs = append(c.syncs, lockState{})
	}
	if l := c.life[e.Thread]; l > running {
		return c.not("the thread acts after its end")
	}
	c.life[e.Thread] = running
	return c.sync(e)
}

// number reports whether a number of a table is valid. The largest valid number is the next unused one.
func (c *checker) number(t cpu.Table, id uint32) bool {
	if id > c.known[t] {
		return c.not("number %d is used before number %d", id, c.known[t])
	}
	if id == c.known[t] {
		if t == cpu.Threads && id >= cpu.MaxThreads {
			return c.not("the trace has more than %d threads", cpu.MaxThreads)
		}
		c.known[t]++
	}
	return true
}

func (c *checker) sync(e *cpu.Event) bool {
	me := int32(e.Thread) + 1
	switch e.Op {
	case cpu.Acquire, cpu.AcquireShared:
		s := &c.syncs[e.Object]
		switch {
		case s.holder == me:
			e.Op = cpu.None
			s.depth++
		case s.holder != 0:
			return c.not("the lock is held by another thread")
		case e.Op == cpu.Acquire:
			s.holder, s.depth = me, 1
		}
	case cpu.Release, cpu.ReleaseShared:
		s := &c.syncs[e.Object]
		switch {
		case s.holder == me && s.depth > 1:
			e.Op = cpu.None
			s.depth--
		case s.holder == me:
			e.Op = cpu.Release
			s.holder = 0
		case s.holder != 0:
			return c.not("the lock is held by another thread")
		}
	case cpu.Fork:
		// A thread may reuse the number of a thread that its creator has joined, or that a thread joined by its creator
		// has joined. The old thread's events precede it.
		if l := c.life[e.Object]; l != unborn && (l != joined || c.joiner[e.Object] != e.Thread) {
			return c.not("the thread that is forked has begun already")
		}
		c.life[e.Object] = running
	case cpu.Join:
		if e.Object == uint32(e.Thread) {
			return c.not("a thread joins itself")
		}
		c.life[e.Object] = joined
		for t, joiner := range c.joiner {
			if c.life[t] == joined && uint32(joiner) == e.Object {
				c.joiner[t] = e.Thread
			}
		}
		c.joiner[e.Object] = e.Thread
	case cpu.End:
		c.life[e.Thread] = ended
	case cpu.BarrierEnter:
		if slices.Contains(c.inside[e.Thread], e.Object) {
			return c.not("the thread has entered a barrier and not left it")
		}
		c.inside[e.Thread] = append(c.inside[e.Thread], e.Object)
	case cpu.BarrierLeave:
		at := slices.Index(c.inside[e.Thread], e.Object)
		if at < 0 {
			return c.not("the thread leaves a barrier that it has not entered")
		}
		c.inside[e.Thread] = slices.Delete(c.inside[e.Thread], at, at+1)
	}
	return true
}

func (c *checker) not(format string, args ...any) bool {
	c.problem = fmt.Sprintf(format, args...)
	return false
}
