package cuda

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// StreamID is a stream of a context.
type StreamID uint64

// The streams that need not be created.
const (
	StreamLegacy    StreamID = calls.StreamLegacy
	StreamPerThread StreamID = calls.StreamPerThread
)

// StreamNonBlocking is the flag of streams that do not synchronise with the legacy default stream.
const StreamNonBlocking = 1

type stream struct {
	gpu         *gpu
	agent       uint32
	nonBlocking bool
	flags       uint32
	priority    int32
	name        string
	asked       polling
	kernel      bool // the last operation in it is a kernel
	awaits      *awaited

	triggers      *eventState // the programmatic event of the launch that follows
	prerequisites []uint64    // tokens of the ends of launches for which the next kernel can wait
}

// EventID is an event of a context.
type EventID uint64

// eventState is an event as a context has it: one that another process made is of the device that was current when it was opened.
type eventState struct {
	gpu *gpu
	*eventRecord
}

// eventRecord is what an event is for all processes that have it.
type eventRecord struct {
	token    uint64
	recorded bool
	at       uint64   // ns
	saw      progress // the work before the newest record
	asked    polling
	flags    uint32
	ended    uint64 // token of the end of the launch whose programmatic event it is; 0: of none
	atStart  bool   // the launch triggers it when its blocks begin
	ofGraph  bool   // an edge of a graph, which separates no two kernels of a branch
}

// The event flags this package looks at.
const (
	EventDisableTiming = 2
	eventInterprocess  = 4
)

// newID returns a handle. Handles are multiples of 16, distinct from the special handles 0, 1 and 2.
func (c *Context) newID() uint64 {
	c.lastID += 16
	return c.lastID
}

// noHandle is the error for a stream or event that does not exist. A program that passes 0 did not create one.
func (c *Context) noHandle(what string, id uint64) error {
	switch {
	case id == 0:
		return fail(InvalidResourceHandle, "the %s is 0", what)
	case id <= c.lastID && id%16 == 0:
		return misuse(InvalidHandle, InvalidResourceHandle, "the %s was destroyed before", what)
	}
	return misuse(InvalidHandle, InvalidResourceHandle, "no call has made the %s", what)
}

// CreateStream is cudaStreamCreateWithPriority.
func (c *Context) CreateStream(flags uint64, priority int32) (StreamID, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	if flags&^(StreamNonBlocking|calls.OfGraph|calls.OfBatch) != 0 {
		return 0, fail(InvalidValue, "stream flags %#x", flags)
	}
	c.live = nil
	id := StreamID(c.newID())
	name := "stream"
	if flags&calls.OfGraph != 0 {
		name = "branch of a graph, stream"
	}
	if flags&calls.OfBatch != 0 {
		name = "part of a batch, stream"
	}
	c.streams[id] = &stream{gpu: c.gpu, agent: c.dev.newAgent(), nonBlocking: flags&StreamNonBlocking != 0, flags: uint32(flags),
		priority: min(max(priority, -5), 0), name: fmt.Sprintf("%s %d%s", name, uint64(id)/16, c.gpu.suffix())}
	return id, nil
}

// DestroyStream is cudaStreamDestroy: work in the stream still runs, and a synchronisation of the device waits for it.
func (c *Context) DestroyStream(id StreamID) error {
	leave, err := c.enter()
	defer leave()
	s, ok := c.streams[id]
	if !ok {
		return first(err, c.noHandle("stream", uint64(id)))
	}
	grave := s.gpu.gone
	if s.nonBlocking {
		grave = s.gpu.goneFree
	}
	c.order(grave, s.agent, "cudaStreamDestroy")
	c.settle(s)
	delete(c.streams, id)
	c.live = nil
	return err
}

// stream finds the stream of an operation. thread is the calling host thread, for the per-thread default stream.
func (c *Context) stream(id StreamID, thread uint32) (*stream, error) {
	s, err := c.lookUp(id, thread)
	if err == nil {
		err = c.blocked(s)
	}
	return s, err
}

func (c *Context) lookUp(id StreamID, thread uint32) (*stream, error) {
	switch id {
	case 0, StreamLegacy:
		return c.gpu.legacy, nil
	case StreamPerThread:
		g := c.gpu
		s := g.perThread[thread]
		if s == nil {
			s = &stream{gpu: g, agent: c.dev.newAgent(), name: fmt.Sprintf("per-thread default stream %d%s", len(g.perThread)+1, g.suffix())}
			g.perThread[thread] = s
			c.live = nil
		}
		return s, nil
	}
	if s, ok := c.streams[id]; ok {
		return s, nil
	}
	return nil, c.noHandle("stream", uint64(id))
}

// allStreams lists the live streams in the order of their agents. The list is kept until a stream is created or
// destroyed.
func (c *Context) allStreams() []*stream {
	if c.live != nil {
		return c.live
	}
	var all []*stream
	for _, g := range c.gpus {
		all = append(all, g.legacy)
		for _, s := range g.perThread {
			all = append(all, s)
		}
	}
	for _, s := range c.streams {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *stream) int { return cmp.Compare(a.agent, b.agent) })
	c.live = all
	return all
}

// begin puts an operation into a stream. It follows everything that the host did before the call, and the legacy
// default stream and the blocking streams wait for each other (CUDA Programming Guide, "Default Stream": the legacy
// stream first waits on all blocking streams, the action is queued, then all blocking streams wait on it).
func (c *Context) begin(s *stream, name string) {
	s.kernel = false
	c.order(s.agent, c.host, name)
	switch {
	case s == s.gpu.legacy:
		for _, o := range c.allStreams() {
			if o != s && !o.nonBlocking && o.gpu == s.gpu {
				c.order(s.agent, o.agent, name)
			}
		}
		c.order(s.agent, s.gpu.gone, name)
	case !s.nonBlocking:
		c.order(s.agent, s.gpu.legacy.agent, name)
	}
}

// on runs f as an operation of a stream, under the lock.
func (c *Context) on(id StreamID, thread uint32, f func(s *stream) error) error {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return err
	}
	s, err := c.stream(id, thread)
	if err != nil {
		return err
	}
	return f(s)
}

// SynchronizeStream is cudaStreamSynchronize. thread is the calling host thread (0 if there is only one).
func (c *Context) SynchronizeStream(id StreamID, thread uint32) error {
	return c.on(id, thread, func(s *stream) error {
		c.waitStream(s, "cudaStreamSynchronize ("+s.name+")")
		return nil
	})
}

// waitStream makes the host wait for a stream. Waiting for the legacy stream also waits for the blocking streams,
// because it is an action on that stream.
func (c *Context) waitStream(s *stream, name string) {
	if s == s.gpu.legacy {
		c.begin(s, name)
	}
	c.order(c.host, s.agent, name)
}

// HostFunction is cudaLaunchHostFunc or cudaStreamAddCallback. It returns the agent of the stream, for
// RunsHostFunction.
func (c *Context) HostFunction(id StreamID, thread uint32) (agent uint32, err error) {
	err = c.on(id, thread, func(s *stream) error {
		c.begin(s, "cudaLaunchHostFunc ("+s.name+")")
		c.work(s)
		agent = s.agent
		return nil
	})
	return agent, err
}

// RunsHostFunction records that the calling thread begins or ends a function that a stream calls: after the earlier
// work of the stream, and before its later work. Such a thread is an agent of its own (calls.ThreadOfStream). Its order
// with other threads is recorded as between any two threads.
func (c *Context) RunsHostFunction(agent uint32, ends bool) error {
	leave, err := c.enter()
	defer leave()
	of := slices.IndexFunc(c.allStreams(), func(s *stream) bool { return s.agent == agent })
	switch {
	case of < 0:
		return fail(InvalidValue, "no stream is agent %d", agent)
	case ends:
		c.order(agent, c.host, "a host function")
	default:
		c.order(c.host, agent, "a host function")
	}
	return err
}

// WaitEvent is cudaStreamWaitEvent: later work of the stream waits for the work before the newest record of the event.
func (c *Context) WaitEvent(id StreamID, thread uint32, ev EventID) error {
	return c.on(id, thread, func(s *stream) error {
		e, ok := c.events[ev]
		if !ok {
			return c.noHandle("event", uint64(ev))
		}
		name := "cudaStreamWaitEvent (" + s.name + ")"
		c.begin(s, name)
		if e.recorded {
			c.dev.tell(event.HostOp{Kind: event.HostWait, Agent: s.agent, Token: e.token, Name: name})
			c.follow(s.agent, e.saw)
		}
		if e.ended != 0 {
			s.prerequisites = append(s.prerequisites, e.ended)
		}
		return nil
	})
}

// Programmatic events (cudaLaunchAttributeProgrammaticEvent): a stream that waits for one goes on when the blocks of
// the launch have triggered it, which orders nothing that they do. A kernel in that stream follows the whole launch
// once it executes griddepcontrol.wait, and is assumed to execute that first. If the launch never triggers the event,
// its end does.

// awaitPrerequisites makes the launch of a kernel wait for the launches for whose programmatic events its stream has
// waited.
func (c *Context) awaitPrerequisites(s *stream, k *Kernel) {
	if len(s.prerequisites) == 0 {
		return
	}
	if k.fn.Any(func(in *isa.Inst) bool { return in.Op == isa.OpGridWait }) {
		for _, token := range s.prerequisites {
			c.dev.tell(event.HostOp{Kind: event.HostWait, Agent: s.agent, Token: token, Name: "griddepcontrol.wait (" + s.name + ")"})
		}
	}
	s.prerequisites = nil
}

// launched publishes the end of a launch that has a programmatic event.
func (c *Context) launched(s *stream, k *Kernel) {
	e := s.triggers
	s.triggers = nil
	if e == nil {
		return
	}
	end := event.HostOp{Kind: event.HostSignal, Agent: s.agent, Token: e.ended, Name: "the end of " + k.Name() + " (" + s.name + ")"}
	c.dev.tell(end)
	if !e.atStart && !k.fn.Any(func(in *isa.Inst) bool { return in.Op == isa.OpGridLaunch }) {
		end.Token, e.saw = e.token, maps.Clone(c.progress[s.agent])
		c.dev.tell(end)
	}
}

// CreateEvent is cudaEventCreateWithFlags.
func (c *Context) CreateEvent(flags uint64) (EventID, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	if flags&^(7|calls.OfGraph) != 0 || flags&eventInterprocess != 0 && flags&EventDisableTiming == 0 {
		return 0, fail(InvalidValue, "event flags %#x", flags)
	}
	id := EventID(c.newID())
	// Tokens of events lie above those of agents and apart for each context, which counts from 1.
	c.events[id] = &eventState{c.gpu, &eventRecord{token: c.id<<48 | uint64(id), flags: uint32(flags), ofGraph: flags&calls.OfGraph != 0}}
	return id, nil
}

// DestroyEvent is cudaEventDestroy.
func (c *Context) DestroyEvent(ev EventID) error {
	leave, err := c.enter()
	defer leave()
	if _, ok := c.events[ev]; !ok {
		return first(err, c.noHandle("event", uint64(ev)))
	}
	delete(c.events, ev)
	return err
}

// RecordEvent is cudaEventRecord.
func (c *Context) RecordEvent(ev EventID, id StreamID, thread uint32) error {
	return c.recordEvent(ev, id, thread, calls.RecordWork)
}

// recordEvent records an event. of is its meaning: calls.RecordWork or one of the following constants.
func (c *Context) recordEvent(ev EventID, id StreamID, thread uint32, of uint64) error {
	return c.on(id, thread, func(s *stream) error {
		e, ok := c.events[ev]
		if !ok {
			return c.noHandle("event", uint64(ev))
		}
		if e.gpu != s.gpu {
			return fail(InvalidResourceHandle, "the event is of device %d, and the stream of device %d", e.gpu.number, s.gpu.number)
		}
		name := "cudaEventRecord (" + s.name + ")"
		kernel := s.kernel && e.ofGraph
		c.begin(s, name)
		s.kernel = kernel
		c.clock += eventTime
		e.recorded, e.at = true, c.clock
		e.saw, e.asked = maps.Clone(c.progress[s.agent]), polling{}
		e.ended, s.triggers = 0, nil
		if of == calls.RecordTrigger || of == calls.RecordTriggerAtStart {
			e.ended, e.atStart = c.id<<48|c.newID(), of == calls.RecordTriggerAtStart
			s.triggers = e
		}
		c.dev.tell(event.HostOp{Kind: event.HostSignal, Agent: s.agent, Token: e.token, Name: name})
		return nil
	})
}

// eventTime and laneTime are the artificial nanoseconds of an API call and of a lane-instruction. Elapsed times between
// events are therefore the same in every run.
const (
	eventTime = 1000
	laneTime  = 1
)

// SynchronizeEvent is cudaEventSynchronize.
func (c *Context) SynchronizeEvent(ev EventID) error {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return err
	}
	e, ok := c.events[ev]
	if !ok {
		return c.noHandle("event", uint64(ev))
	}
	c.waitEvent(e, "cudaEventSynchronize")
	return nil
}

// waitEvent makes the host wait for the newest record of an event.
func (c *Context) waitEvent(e *eventState, name string) {
	if e.recorded {
		c.dev.tell(event.HostOp{Kind: event.HostWait, Agent: c.host, Token: e.token, Name: name})
		c.follow(c.threads.first, e.saw)
	}
}

// Elapsed is cudaEventElapsedTime, in artificial nanoseconds.
func (c *Context) Elapsed(start, end EventID) (uint64, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	a, b := c.events[start], c.events[end]
	switch {
	case a == nil:
		return 0, c.noHandle("event", uint64(start))
	case b == nil:
		return 0, c.noHandle("event", uint64(end))
	}
	if a.gpu != b.gpu {
		return 0, fail(InvalidResourceHandle, "elapsed time of events of devices %d and %d", a.gpu.number, b.gpu.number)
	}
	if !a.recorded || !b.recorded || (a.flags|b.flags)&EventDisableTiming != 0 {
		return 0, fail(InvalidResourceHandle, "elapsed time of events that were not recorded with timing")
	}
	return b.at - a.at, nil
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// StreamInfo returns the flags, the priority, the number and the device of a stream.
func (c *Context) StreamInfo(id StreamID, thread uint32) (flags uint32, priority int32, number uint64, device int, err error) {
	err = c.on(id, thread, func(s *stream) error {
		flags, priority, number, device = s.flags, s.priority, uint64(s.agent), s.gpu.number
		return nil
	})
	return flags, priority, number, device, err
}
