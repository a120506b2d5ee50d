package record

// calls are the call stacks of accesses, as a tree. A node is a call, and its number identifies the stack that ends
// with it.
type calls struct {
	nodes     []node
	below     map[edge]uint32
	locations map[edge]uint32
	places    []edge // by location, from 1
	hot       [1 << 12]struct {
		edge
		next uint32 // also present in below
	}
}

// edge is a place in the code under a call stack.
type edge struct {
	stack uint32
	pc    uint64
}

func (e edge) hash() uint64 { return e.pc ^ e.pc>>6 ^ uint64(e.stack)*0x9E3779B97F4A7C15>>48 }

type node struct {
	caller uint32 // the stack without the innermost call
	pc     uint64 // return address of that call
	last   edge   // the most recent call under this stack
}

// callStack is the current call stack of a thread.
type callStack struct {
	stack  uint32
	depth  int          // number of calls that are not in stack
	recent *[256]recent // allocated on first use
}

// recent is a place in the code that the thread has visited.
type recent struct {
	edge
	location uint32
}

// place returns the entry of a place in the code in recent, if it is there.
func (s *callStack) place(pc uint64) *recent {
	if s.recent == nil {
		s.recent = new([256]recent)
	}
	return &s.recent[edge{s.stack, pc}.hash()%uint64(len(s.recent))]
}

const (
	mostStacks = 1 << 18
	mostDepth  = 64
)

// enter adds a call to the stack. If there are too many stacks, or the stack is too deep, it only counts the call.
func (c *calls) enter(s *callStack, pc uint64) {
	if s.depth > 0 {
		s.depth++
		return
	}
	n := &c.nodes[s.stack]
	if n.last.pc == pc && n.last.stack != 0 {
		s.stack = n.last.stack
		return
	}
	key := edge{s.stack, pc}
	h := &c.hot[key.hash()%uint64(len(c.hot))]
	next, ok := h.next, h.pc == pc && h.stack == s.stack
	if !ok {
		next, ok = c.below[key]
	}
	if !ok {
		if len(c.nodes) >= mostStacks || c.height(s.stack) >= mostDepth {
			s.depth++
			return
		}
		next = uint32(len(c.nodes))
		c.nodes = append(c.nodes, node{caller: s.stack, pc: pc})
		c.below[key] = next
	}
	h.edge, h.next = key, next
	c.nodes[s.stack].last = edge{next, pc}
	s.stack = next
}

func (c *calls) height(stack uint32) (n int) {
	for ; stack != 0; stack = c.nodes[stack].caller {
		n++
	}
	return n
}

func (c *calls) exit(s *callStack) {
	if s.depth > 0 {
		s.depth--
	} else {
		s.stack = c.nodes[s.stack].caller
	}
}

// location returns the number of a place in the code under the current stack. Numbers begin at 1.
func (c *calls) location(s *callStack, pc uint64) uint32 {
	if pc == 0 {
		return 0
	}
	key := edge{s.stack, pc}
	r := s.place(pc)
	if r.pc == pc && r.stack == s.stack {
		return r.location
	}
	l, ok := c.locations[key]
	if !ok {
		c.places = append(c.places, key)
		l = uint32(len(c.places))
		c.locations[key] = l
	}
	r.edge, r.location = key, l
	return l
}

// frames returns the code addresses of a location, innermost first. Each is a return address.
func (c *calls) frames(location uint32) (pcs []uint64) {
	if location == 0 || int(location) > len(c.places) {
		return nil
	}
	at := c.places[location-1]
	pcs = append(pcs, at.pc)
	for s := at.stack; s != 0; s = c.nodes[s].caller {
		pcs = append(pcs, c.nodes[s].pc)
	}
	return pcs
}
