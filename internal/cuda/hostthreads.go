package cuda

import (
	"context"
	"encoding/binary"
	"sort"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/event"
)

// hostThreads is the threads of a process that have called CUDA, each an agent of the host, and the order between them
// as far as the libraries observe it (standin/src/threads.c). Synchronisation that they do not observe, such as atomic
// variables, is assumed to order the calls as they are made, and is reported as such (event.HostOp). In queries for
// unfinished work, a wait of one thread counts for all, because the work is then in fact finished.
type hostThreads struct {
	first    uint32 // agent of number 0, and of threads without a number
	numbers  map[uint32]uint32
	list     map[uint32]*hostThread // by number
	agents   map[uint32]bool
	tokens   uint64
	speaking uint32 // agent of the last call
}

// hostThread is one thread. Its calls form epochs, numbered from 1; 0 is none.
type hostThread struct {
	agent uint32
	epoch uint64     // of its last call
	ended []endOfRun // earlier epochs, in order
}

// endOfRun is the end of an epoch, published under a token.
type endOfRun struct{ epoch, token uint64 }

func (t *hostThreads) begin(first uint32) {
	t.first, t.speaking = first, first
	t.numbers, t.list, t.agents = map[uint32]uint32{}, map[uint32]*hostThread{0: {agent: first, epoch: 1}}, map[uint32]bool{first: true}
}

// party is the agent that represents another one in the records of unfinished work.
func (t *hostThreads) party(agent uint32) uint32 {
	if t.agents[agent] {
		return t.first
	}
	return agent
}

// speak sets the thread that makes the calls that follow.
func (c *Context) speak(thread uint32) {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	t := &c.threads
	c.host = t.list[t.numbers[thread]].agent
	c.use(c.currentOf(thread))
	c.meet()
	if c.host == t.speaking {
		return
	}
	const name = "the order of the calls"
	c.dev.tell(event.HostOp{Kind: event.HostSignal, Agent: t.speaking, Token: uint64(t.speaking), Name: name, Assumed: true})
	c.dev.tell(event.HostOp{Kind: event.HostWait, Agent: c.host, Token: uint64(t.speaking), Name: name, Assumed: true})
	t.speaking = c.host
}

// Learn records that a thread has a number, that it closed epochs before its next call, and that calls of other threads
// precede that call: those in the given first epochs of each of these threads. If ofStream is set, the thread executes
// a function for a stream: work finished for the stream is not finished for all threads.
func (c *Context) Learn(thread, number uint32, ofStream bool, closed uint64, of []Closed) {
	leave, _ := c.enter()
	defer leave()
	t := &c.threads
	if old, ok := t.numbers[thread]; ok && old != number {
		c.anew(thread)
	}
	t.numbers[thread] = number
	me := t.list[number]
	if me == nil {
		me = &hostThread{agent: c.dev.newAgent()}
		t.list[number], t.agents[me.agent] = me, !ofStream
	}
	if me.epoch != 0 && closed >= me.epoch {
		t.tokens++
		token := c.id<<48 | 1<<47 | t.tokens
		c.dev.tell(event.HostOp{Kind: event.HostSignal, Agent: me.agent, Token: token, Name: threadsName})
		me.ended = append(me.ended, endOfRun{me.epoch, token})
	}
	me.epoch = max(me.epoch, closed+1)
	for _, x := range of {
		other := t.list[x.Number]
		if other == nil || other == me {
			continue
		}
		if other.epoch <= x.Epochs {
			c.order(me.agent, other.agent, threadsName)
			continue
		}
		after := sort.Search(len(other.ended), func(i int) bool { return other.ended[i].epoch > x.Epochs })
		if after > 0 {
			c.dev.tell(event.HostOp{Kind: event.HostWait, Agent: me.agent, Token: other.ended[after-1].token, Name: threadsName})
		}
	}
}

const threadsName = "synchronisation of host threads"

// Closed is epochs of a thread.
type Closed struct {
	Number uint32
	Epochs uint64
}

// anew gives a thread that reuses the id of an ended one default streams of its own, and the first device.
func (c *Context) anew(thread uint32) {
	delete(c.current, thread)
	for _, g := range c.gpus {
		if s := g.perThread[thread]; s != nil {
			c.order(g.gone, s.agent, "the end of a thread")
			delete(g.perThread, thread)
			c.live = nil
		}
	}
}

func (p *process) thread(_ context.Context, r *request) ([]uint64, []byte, error) {
	const most = calls.Threads
	number := r.args[0] &^ calls.ThreadOfStream
	if number >= most || len(r.blob)%16 != 0 || len(r.blob) > 16*most {
		return nil, nil, fail(InvalidValue, "thread %d with %d bytes", r.args[0], len(r.blob))
	}
	var of []Closed
	for b := r.blob; len(b) > 0; b = b[16:] {
		if n := binary.LittleEndian.Uint64(b); n < most {
			of = append(of, Closed{uint32(n), binary.LittleEndian.Uint64(b[8:])})
		}
	}
	p.ctx.Learn(r.thread, uint32(number), r.args[0] != number, r.args[1], of)
	return nil, nil, nil
}
