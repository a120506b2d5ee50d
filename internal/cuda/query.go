package cuda

import "maps"

// progress is the work that precedes the next operation of an agent: for each stream, by agent, the number of its last
// such operation. Operations are numbered over the whole context.
type progress map[uint32]uint64

// polling is the record of queries of a stream or an event since the host last waited for it.
type polling struct {
	refused int      // number of "not ready" answers
	work    progress // the work that the last of these was about
}

// patience is the number of consecutive queries that are answered "not ready". A loop that puts new work into the
// stream that it polls must end too, because a device would catch up with it.
const patience = 1000

// work counts an operation, which from the host's view is unfinished until the host waits for it.
func (c *Context) work(s *stream) {
	c.works++
	c.progressOf(s.agent)[s.agent] = c.works
}

func (c *Context) progressOf(agent uint32) progress {
	p := c.progress[agent]
	if p == nil {
		p = progress{}
		c.progress[agent] = p
	}
	return p
}

// follow orders everything in p before the next operation of agent.
func (c *Context) follow(agent uint32, p progress) {
	if len(p) == 0 {
		return
	}
	c.progressOf(agent).add(p)
}

// add merges two sets of work.
func (p progress) add(q progress) {
	for a, n := range q {
		p[a] = max(p[a], n)
	}
}

// finished reports whether the host has waited for everything in p that is not in asked.
func (c *Context) finished(p, asked progress) bool {
	known := c.progress[c.threads.first]
	for a, n := range p {
		if n > known[a] && n > asked[a] {
			return false
		}
	}
	return true
}

// ready is the answer to a query about work that may not be finished. In fact work is always finished. The first query
// after new work answers that it is not, which exposes a program that ignores the answer. The second answers that it
// is, so that polling ends.
func (c *Context) ready(p progress, q *polling) bool {
	if c.finished(q.work, nil) {
		*q = polling{}
	}
	if c.finished(p, q.work) || q.refused == patience {
		*q = polling{}
		return true
	}
	q.refused++
	q.work = maps.Clone(p)
	return false
}

// settle drops the work of a stream that is destroyed, after the host has waited for it: no query asks for it any more.
func (c *Context) settle(s *stream) {
	if !c.finished(progress{s.agent: c.progress[s.agent][s.agent]}, nil) {
		return
	}
	for _, p := range c.progress {
		delete(p, s.agent)
	}
	for _, e := range c.events {
		delete(e.saw, s.agent)
	}
	delete(c.progress, s.agent)
}

// settleAll drops all work: the host has waited for it.
func (c *Context) settleAll() {
	clear(c.progress)
	for _, s := range c.allStreams() {
		s.asked = polling{}
	}
	for _, e := range c.events {
		e.saw = nil
	}
}

// QueryStream is cudaStreamQuery: NotReady for the first query after new work. Only success orders.
func (c *Context) QueryStream(id StreamID, thread uint32) error {
	return c.on(id, thread, func(s *stream) error {
		p := c.progress[s.agent]
		if s == s.gpu.legacy { // an action on it waits for the blocking streams
			p = maps.Clone(c.progressOf(s.agent))
			for _, o := range c.allStreams() {
				if !o.nonBlocking && o.gpu == s.gpu {
					p.add(c.progress[o.agent])
				}
			}
			p.add(c.progress[s.gpu.gone])
		}
		name := "cudaStreamQuery (" + s.name + ")"
		if !c.ready(p, &s.asked) {
			return fail(NotReady, "%s: the stream has work to do", name)
		}
		c.waitStream(s, name)
		return nil
	})
}

// QueryEvent is cudaEventQuery: NotReady for the first query after a record of unfinished work. An event that was never
// recorded is ready.
func (c *Context) QueryEvent(ev EventID) error {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return err
	}
	e, ok := c.events[ev]
	switch {
	case !ok:
		return c.noHandle("event", uint64(ev))
	case !c.ready(e.saw, &e.asked):
		return fail(NotReady, "cudaEventQuery: the work before the event has not ended")
	}
	c.waitEvent(e, "cudaEventQuery")
	return nil
}
