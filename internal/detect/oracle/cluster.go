package oracle

import (
	"fmt"
	"math"
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// cluster identifies a cluster of a launch.
type cluster struct {
	several bool // it has several blocks
	number  uint32
}

func clustered(l *event.Launch) bool { return l.ClusterShape().Count() > 1 }

// memory returns the memory that an address of an event belongs to, and the address within it.
func (x *builder) memory(e *event.Event, addr uint64) (instance, uint64) {
	if e.Space == event.Global {
		return instance{}, addr
	}
	l := x.launches[e.Launch]
	block := e.Warp / l.WarpsPerBlock()
	if rank := addr >> event.PeerShift; rank != 0 {
		c, _ := l.ClusterOf(block)
		block = l.BlockIn(c, uint32(rank)-1)
		addr &= 1<<event.PeerShift - 1
	}
	return instance{true, e.Launch, block}, addr
}

// clusterBarrier orders what arrivals at a cluster barrier release before those that wait for the phase.
func (x *builder) clusterBarrier(e *event.Event, at int) {
	l := x.launches[e.Launch]
	c, _ := l.ClusterOf(e.Warp / l.WarpsPerBlock())
	for _, lane := range lanesOf(e.Mask) {
		th := thread{launch: e.Launch, warp: e.Warp, lane: lane}
		if x.gone[th] {
			continue
		}
		phase := [3]uint32{e.Launch, c, uint32(x.phases[th])}
		n := x.op(e, lane, node{at: at})
		if e.Kind == event.ClusterWait {
			x.phases[th]++
			for _, a := range x.arrived[phase] {
				x.fenced(a, n)
				x.weak[[2]int{a, n}] = x.nodes[a].kind == fenceNode
			}
			continue
		}
		if e.Order == event.Release {
			x.arrived[phase] = append(x.arrived[phase], n)
			continue
		}
		for i := range x.nodes { // what its fences have released
			f := &x.nodes[i]
			if f.t == th && f.kind == fenceNode && f.order != event.Acquire && (f.wide() || !f.cluster.several) {
				x.arrived[phase] = append(x.arrived[phase], i)
			}
		}
	}
}

// clusterPhases counts for each thread its arrivals at the cluster barrier, and its waits.
type clusterPhases map[thread][2]int

// legal reports whether threads alternate between arriving and waiting, and that a wait ends only when all live threads
// have arrived.
func (p clusterPhases) legal(l *event.Launch, e *event.Event, gone map[thread]bool) bool {
	for _, lane := range lanesOf(e.Mask) {
		th := thread{launch: e.Launch, warp: e.Warp, lane: lane}
		at := p[th]
		if e.Kind == event.ClusterArrive {
			at[0]++
		} else {
			at[1]++
		}
		if p[th] = at; at[0] != at[1] && at[0] != at[1]+1 {
			return false
		}
	}
	if e.Kind == event.ClusterArrive {
		return true
	}
	wpb := l.WarpsPerBlock()
	mine, _ := l.ClusterOf(e.Warp / wpb)
	waited := p[thread{launch: e.Launch, warp: e.Warp, lane: bits.TrailingZeros32(e.Mask)}][1]
	for i := range l.Grid.Count() * l.Block.Count() {
		block, in := uint32(i/l.Block.Count()), uint32(i%l.Block.Count())
		th := thread{launch: e.Launch, warp: block*wpb + in/32, lane: int(in % 32)}
		if c, _ := l.ClusterOf(block); c == mine && !gone[th] && p[th][0] < waited {
			return false
		}
	}
	return true
}

// completes performs the operation that completes a phase of an mbarrier: the second word passes on what was released
// to the first.
func (x *builder) completes(e *event.Event, at int, block uint32) {
	if e.Kind == event.Load {
		return
	}
	lane := bits.TrailingZeros32(e.Mask)
	n := node{kind: accessNode, at: at, order: event.Relaxed, scope: e.Scope, place: fmt.Sprint("p", e.Place), write: true, mask: e.Mask, pc: e.Place,
		turn: x.turns[[2]uint32{e.Launch, e.Warp}], size: uint64(e.Size), unit: uint64(e.Size), cut: len(x.writes), nthAcc: at*32 + lane}
	if e.Barrier == event.ApartReleases {
		n.order = event.Release
	}
	n.key = fmt.Sprint(e.Launch, e.Place, e.Kind)
	n.mem, n.addr = x.memory(e, x.b.AddrOf(e, lane))
	n.handed = 1 + x.strongAt(n.mem, n.addr-n.size, n.size, len(x.writes))
	n.silent = e.Barrier == event.ApartTests
	x.wrote(x.op(e, lane, n))
}

// released returns the first operations of the release patterns that write w carries.
func (t *trace) released(w int) []int {
	if h := t.nodes[w].handed - 1; h >= 0 {
		var out []int
		for _, v := range t.chain(h) {
			out = append(out, t.releases(v)...)
		}
		if len(out) > 0 {
			return out
		}
	}
	return t.releases(w)
}

// unfenced says of byte b that f accesses it through the async proxy, that e accessed it through the generic proxy and
// happens before f, and that no proxy fence by a thread of the cluster lies between. If another access through the
// generic proxy, or a completed one through the async proxy, has replaced e since, the answer is false for e. A
// cp.async takes place when it is complete. For global memory, all writes by the same launch count, and fences by any
// of its threads.
func (t *trace) unfenced(e, f int, b uint64) bool {
	x, y := &t.nodes[e], &t.nodes[f]
	if !y.async || x.async || x.copy.is && !x.copy.small || x.mem.shared && event.InTensorMemory(b) {
		return false
	}
	if !x.mem.shared && (x.t.launch != y.t.launch || !x.write) {
		return false
	}
	other := event.Global // the space of fences that do not cover the memory
	if !x.mem.shared {
		other = event.Shared
	}
	done := x.at
	if x.copy.is {
		done = x.copy.done
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		switch {
		case n.kind == proxyNode && n.space != other && n.t.launch == x.t.launch && (n.cluster == y.cluster || !x.mem.shared) && n.at > done && t.before(e, i) && t.before(i, f):
			return false
		case n.kind != accessNode || !n.mem.shared || n.mem != x.mem || b < n.addr || b >= n.addr+n.size:
		case n.async:
			if n.write && n.copy.done > done && n.copy.done < y.at {
				return false
			}
		case n.copy.is:
			if n.copy.small && n.at > done && n.copy.done < y.at && t.before(e, i) {
				return false
			}
		case !n.silent && i > e && i < f && n.at >= done && (n.write || !x.write) && t.before(e, i):
			return false
		}
	}
	return true
}

// units is the state of matrix operations of warpgroups and of tensor core operations.
type units struct {
	phases  map[thread]int      // the number of phases of the cluster barrier that a thread has waited for
	arrived map[[3]uint32][]int // launch, cluster, phase: nodes that arrivals have released

	matrixGroups map[[2]uint32]uint32 // launch, warp: the number of committed groups
	halves       []*unitHalf
	issues       map[[3]uint32][]int // launch, block, number of the operation: nodes of its lanes before it, and those after it
	commits      map[thread][]commit
}

type commit struct {
	node   int
	number int64
}

func newUnits() units {
	return units{map[thread]int{}, map[[3]uint32][]int{}, map[[2]uint32]uint32{}, nil, map[[3]uint32][]int{}, map[thread][]commit{}}
}

// unitHalf is a read or a write by a matrix operation or a tensor core operation.
type unitHalf struct {
	matrix bool
	launch uint32
	block  uint32
	warp   uint32
	lane   int
	node   int
	number int64
	how    uint8
	group  uint32 // of a matrix operation
	commit int64  // of a tensor core operation; -1: none yet
	landed bool
	done   bool // it is complete; false if it landed only because its block ended
}

// inOrder reports whether e and f belong to one tensor core operation, or to two that are performed one after the
// other.
func (t *trace) inOrder(e, f int) bool {
	x, y := t.nodes[e].copy.unit, t.nodes[f].copy.unit
	if x == nil || y == nil || x.matrix || y.matrix || x.launch != y.launch || x.warp != y.warp || x.lane != y.lane {
		return false
	}
	return x.number == y.number || x.how == y.how && x.how != event.CoreLoads
}

// unit adds the node of a read or a write by a matrix operation. It happens after all that its lanes have done.
func (x *builder) unit(e *event.Event, at int, block uint32) {
	key := [3]uint32{e.Launch, block, uint32(e.Stride)}
	k := x.issues[key]
	if k == nil {
		for _, lane := range lanesOf(e.Mask) {
			k = append(k, x.op(e, lane, node{at: at}))
		}
		k = append(k, x.op(e, bits.TrailingZeros32(e.Mask), node{at: at}))
		x.issues[key] = k
	}
	lanes := k[:len(k)-1]
	lane := bits.TrailingZeros32(e.Mask)
	x.numbered++
	h := &unitHalf{matrix: e.Kind == event.Wgmma, launch: e.Launch, block: block, warp: e.Warp, lane: lane, number: e.Stride, how: e.Barrier,
		group: x.matrixGroups[[2]uint32{e.Launch, e.Warp}], commit: -1}
	n := node{kind: accessNode, t: thread{e.Launch, e.Warp, lane, x.numbered}, block: block, at: at,
		place: fmt.Sprint("p", e.Place), pc: e.Place, size: uint64(e.Aux), unit: uint64(e.Aux), read: e.Flags&event.FlagRead != 0, write: e.Flags&event.FlagWrite != 0,
		mask: 1 << lane, turn: x.turns[[2]uint32{e.Launch, e.Warp}], cut: len(x.writes), nthAcc: at*32 + lane, async: true,
		copy: copyNode{is: true, issue: lanes[0], done: math.MaxInt, mask: 1 << lane, unit: h, apart: true}}
	n.copy.turn = n.turn
	n.key = fmt.Sprint("unit", at)
	n.mem, n.addr = x.memory(e, e.Addr)
	h.node = x.add(n)
	for _, i := range lanes {
		x.edge(i, h.node)
	}
	x.halves = append(x.halves, h)
}

// landUnits ends the halves for which done is true.
func (x *builder) landUnits(at int, done func(*unitHalf) bool) {
	for _, h := range x.halves {
		if h.landed || !done(h) {
			continue
		}
		h.landed, h.done = true, true
		x.nodes[h.node].copy.done = at
		if x.nodes[h.node].write {
			x.wrote(h.node)
		}
	}
}

// leaveUnits ends the halves of threads that nobody has waited for.
func (x *builder) leaveUnits(at int, of func(thread) bool) {
	for _, h := range x.halves {
		if n := &x.nodes[h.node]; !h.landed && of(thread{launch: h.launch, warp: h.warp, lane: h.lane}) {
			h.landed, n.copy.apart = true, false
			n.copy.done, n.copy.turn = at, x.turns[[2]uint32{h.launch, h.warp}]
			if n.write && n.cluster.several {
				x.wrote(h.node)
			}
		}
	}
}

// waitMatrix makes lanes wait for the operations of their warpgroup, except those of the last groups.
func (x *builder) waitMatrix(e *event.Event, at int, block uint32) {
	l := x.launches[e.Launch]
	first := block * l.WarpsPerBlock()
	done := func(h *unitHalf) bool {
		return h.matrix && h.launch == e.Launch && h.block == block && (h.warp-first)/4 == (e.Warp-first)/4 &&
			uint64(h.group)+uint64(e.Aux) < uint64(x.matrixGroups[[2]uint32{e.Launch, e.Warp}])
	}
	for _, lane := range lanesOf(e.Mask) {
		n := x.op(e, lane, node{at: at})
		for _, h := range x.halves {
			if done(h) {
				x.edge(h.node, n)
			}
		}
	}
	x.landUnits(at, done)
}

// commitCores performs a commit: an mbarrier will be signalled when the thread's operations so far are complete.
func (x *builder) commitCores(e *event.Event, at int) {
	lane := bits.TrailingZeros32(e.Mask)
	th := thread{launch: e.Launch, warp: e.Warp, lane: lane}
	x.commits[th] = append(x.commits[th], commit{x.op(e, lane, node{at: at}), e.Stride})
	for _, h := range x.halves {
		if !h.matrix && !h.landed && h.how == event.CoreCommits && h.commit < 0 && h.launch == e.Launch && h.warp == e.Warp && h.lane == lane {
			h.commit = e.Stride
		}
	}
}

// coresDone completes the operations of a thread up to a commit. This releases what the thread has done until then.
func (x *builder) coresDone(e *event.Event, at int, block uint32) {
	lane := bits.TrailingZeros32(e.Mask)
	for _, c := range x.commits[thread{launch: e.Launch, warp: e.Warp, lane: lane}] {
		if c.number != e.Stride {
			continue
		}
		x.landUnits(at, func(h *unitHalf) bool {
			return !h.matrix && h.how == event.CoreCommits && h.launch == e.Launch && h.warp == e.Warp && h.lane == lane && h.commit >= 0 && h.commit <= e.Stride
		})
		r := x.tell(e, at, block, fmt.Sprint("p", e.Place))
		x.edge(c.node, r)
		for _, h := range x.halves {
			if h.done && !h.matrix && h.how == event.CoreCommits && h.launch == e.Launch && h.warp == e.Warp && h.lane == lane && h.commit <= e.Stride {
				x.edge(h.node, r)
			}
		}
	}
}

// waitCores makes lanes of a warp wait for its loads of tensor memory, or its stores.
func (x *builder) waitCores(e *event.Event, at int) {
	how := event.CoreLoads
	if e.Flags&event.FlagWrite != 0 {
		how = event.CoreStores
	}
	mine := func(h *unitHalf) bool {
		return !h.matrix && h.how == how && h.launch == e.Launch && h.warp == e.Warp
	}
	for _, lane := range lanesOf(e.Mask) {
		n := x.op(e, lane, node{at: at})
		for _, h := range x.halves {
			if mine(h) {
				x.edge(h.node, n)
			}
		}
	}
	x.landUnits(at, mine)
}
