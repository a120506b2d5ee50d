package oracle

import (
	"fmt"
	"math"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// copyNode is the part of a node that only asynchronous copies have. A copy is a thread of its own, between its issue
// and a wait.
type copyNode struct {
	is    bool
	small bool   // by cp.async
	issue int    // the node of the issuing thread
	done  int    // index of the event of the wait that covers it, or of the exit of the last thread of its block
	mask  uint32 // lanes whose copies of the same event that wait covers
	turn  int    // node.turn of its warp at the issue
	first int    // the node of the first arrival through which an mbarrier tracks it; 0: none
	unit  *unitHalf
	after int  // the node of what its thread does next; by cp.async: next after an mbarrier begins to track it
	apart bool // its completion does not follow from what its thread does later
}

// flies reports whether f comes while copy e is in flight. Then nothing orders the two, whatever comes later.
func (t *trace) flies(e, f int) bool {
	return t.nodes[e].copy.is && t.nodes[f].at < t.nodes[e].copy.done
}

// flying is a copy that no wait has covered.
type flying struct {
	node  int
	group uint32
	track []tracked
}

// tracked says that an mbarrier tracks a copy because of an operation of its thread.
type tracked struct {
	addr uint64
	node int
}

// track makes an mbarrier track the copies of the lanes of an event.
func (x *builder) track(e *event.Event, at int) {
	for _, lane := range lanesOf(e.Mask) {
		n := x.op(e, lane, node{at: at})
		list := x.flying[thread{launch: e.Launch, warp: e.Warp, lane: lane}]
		for i := range list {
			list[i].track = append(list[i].track, tracked{e.Addr, n})
			if c := &x.nodes[list[i].node].copy; c.first == 0 {
				c.first = n
			}
		}
	}
}

// phaseDone completes the copies that an mbarrier tracks. They happen before the first arrival that waits for them.
func (x *builder) phaseDone(e *event.Event, at int, block uint32) {
	wpb := x.launches[e.Launch].WarpsPerBlock()
	done := map[int]uint32{}
	var all, landed []int
	for th, list := range x.landed {
		if th.launch != e.Launch || th.warp/wpb != block {
			continue
		}
		for i := range list { // other mbarriers track it too
			if n := len(list[i].track); n > 0 {
				if list[i].track = slices.DeleteFunc(list[i].track, func(t tracked) bool { return t.addr == e.Addr }); len(list[i].track) < n {
					landed = append(landed, list[i].node)
				}
			}
		}
	}
	for th, list := range x.flying {
		if th.launch != e.Launch || th.warp/wpb != block {
			continue
		}
		var left []flying
		for _, f := range list {
			if !slices.ContainsFunc(f.track, func(t tracked) bool { return t.addr == e.Addr }) {
				left = append(left, f)
				continue
			}
			n := &x.nodes[f.node]
			n.copy.apart, n.copy.after = true, f.track[0].node
			landed = append(landed, f.node)
			f.track = slices.DeleteFunc(slices.Clone(f.track), func(t tracked) bool { return t.addr == e.Addr })
			x.landed[th] = append(x.landed[th], f)
			all = append(all, f.node)
			done[x.nodes[f.node].at] |= 1 << th.lane
		}
		x.flying[th] = left
	}
	for _, i := range all {
		n := &x.nodes[i]
		n.copy.done, n.copy.mask, n.copy.turn = at, done[n.at], x.turns[[2]uint32{e.Launch, n.t.warp}]
	}
	x.land(all)
	if len(landed) > 0 {
		r := x.tell(e, at, block, fmt.Sprint("p", e.Place))
		x.nodes[r].silent = true
		for _, i := range landed {
			x.edge(i, r)
		}
	}
}

// copies adds the nodes of the copies that the lanes of an event issue. n describes them.
func (x *builder) copies(e *event.Event, n node) {
	for _, lane := range lanesOf(e.Mask) {
		th := thread{launch: e.Launch, warp: e.Warp, lane: lane}
		issue := x.op(e, lane, node{at: n.at})
		m := n
		x.numbered++
		m.t, m.block = thread{e.Launch, e.Warp, lane, x.numbered}, e.Warp/x.launches[e.Launch].WarpsPerBlock()
		m.mem, m.addr = x.memory(e, x.b.AddrOf(e, lane))
		m.cut, m.nthAcc = len(x.writes), n.at*32+lane
		m.copy = copyNode{is: true, small: true, issue: issue, done: math.MaxInt}
		i := x.add(m)
		x.edge(issue, i)
		x.flying[th] = append(x.flying[th], flying{node: i, group: x.groups[th]})
	}
}

func (x *builder) commit(e *event.Event) {
	for _, lane := range lanesOf(e.Mask) {
		x.groups[thread{launch: e.Launch, warp: e.Warp, lane: lane}]++
	}
}

// wait completes the copies of lanes, except those of their last groups.
func (x *builder) wait(e *event.Event, at int) {
	done := map[int]uint32{} // by event: lanes
	var all []int
	for _, lane := range lanesOf(e.Mask) {
		th := thread{launch: e.Launch, warp: e.Warp, lane: lane}
		w := x.op(e, lane, node{at: at})
		var left, landed []flying
		for _, f := range x.flying[th] {
			if uint64(f.group)+uint64(e.Aux) >= uint64(x.groups[th]) {
				left = append(left, f)
				continue
			}
			x.edge(f.node, w)
			all = append(all, f.node)
			done[x.nodes[f.node].at] |= 1 << lane
			if len(f.track) > 0 { // phases may make the completion known as well
				n := &x.nodes[f.node]
				n.copy.apart, n.copy.after = true, f.track[0].node
				landed = append(landed, f)
			}
		}
		x.flying[th] = left
		for _, f := range x.landed[th] {
			if uint64(f.group)+uint64(e.Aux) < uint64(x.groups[th]) {
				x.edge(f.node, w)
			}
		}
		x.landed[th] = append(x.landed[th], landed...)
	}
	for _, i := range all {
		n := &x.nodes[i]
		n.copy.done, n.copy.mask, n.copy.turn = at, done[n.at], x.turns[[2]uint32{e.Launch, e.Warp}]
	}
	x.land(all)
}

// land performs the writes of copies that have been waited for, in the order of their issue.
func (x *builder) land(all []int) {
	for i := range x.nodes {
		for _, j := range all {
			if i == j && x.nodes[i].write {
				x.wrote(i)
			}
		}
	}
}

// over ends the copies of a block whose threads have all exited.
func (x *builder) over(launch, block uint32, at int) {
	l := x.launches[launch]
	wpb := l.WarpsPerBlock()
	for i := uint64(0); i < l.Block.Count(); i++ {
		if !x.gone[thread{launch: launch, warp: block*wpb + uint32(i/32), lane: int(i % 32)}] {
			return
		}
	}
	x.leave(at, func(th thread) bool { return th.launch == launch && th.warp/wpb == block })
}

// leave ends the copies of threads that have waited for none of them.
func (x *builder) leave(at int, of func(thread) bool) {
	var written []int
	defer func() { x.land(written) }()
	x.leaveUnits(at, of)
	for th, list := range x.bulks {
		if !of(th) {
			continue
		}
		for _, f := range list {
			n := &x.nodes[f.node]
			n.copy.done, n.copy.turn, n.copy.apart = at, x.turns[[2]uint32{th.launch, th.warp}], false
			if !n.mem.shared || n.cluster.several {
				written = append(written, f.node)
			}
		}
		delete(x.bulks, th)
	}
	masks := map[int]uint32{}
	for th, list := range x.flying {
		for _, f := range list {
			if of(th) {
				masks[x.nodes[f.node].at] |= 1 << th.lane
			}
		}
	}
	for th, list := range x.flying {
		if !of(th) {
			continue
		}
		for _, f := range list {
			n := &x.nodes[f.node]
			n.copy.done, n.copy.mask, n.copy.turn = at, masks[n.at], x.turns[[2]uint32{th.launch, th.warp}]
		}
		delete(x.flying, th)
	}
}

// pending says that copy e is in flight as far as f knows (inFlight), and that the wait of e's thread is what is
// missing (awaits). If f is not ordered with the issue, more than the wait is missing.
func (t *trace) pending(e, f int) (inFlight, awaits bool) {
	x, y := &t.nodes[e], &t.nodes[f]
	if !x.copy.is || y.at >= x.copy.done && !x.copy.apart {
		return false, false
	}
	u := x.copy.unit
	any := u != nil && (u.matrix || y.at < x.copy.done) // some thread of the operation may have signalled f
	return true, x.t.launch == y.t.launch && (x.t.warp == y.t.warp || any) || t.before(x.copy.issue, f)
}

// elsewhere reports whether e is a completed copy, tracked by an mbarrier, that has read global memory, and that f
// belongs to another launch and happens after its issue. Knowledge of completion is required only within the launch of
// e.
func (t *trace) elsewhere(e, f int) bool {
	x, y := &t.nodes[e], &t.nodes[f]
	return x.copy.is && x.copy.apart && !x.mem.shared && y.at >= x.copy.done && x.t.launch != y.t.launch &&
		(t.before(x.copy.after, f) || x.copy.after == f)
}

// Copying turns accesses of a program into asynchronous copies, and adds commits and waits. It leaves out allocations
// that begin or end while a launch runs, since an engine runs launches to their end.
func Copying(b *event.Batch, pick func(n int) int) *event.Batch {
	c := *b
	c.Events = nil
	running := 0
	for _, e := range b.Events {
		switch {
		case e.Kind == event.KernelBegin:
			running++
		case e.Kind == event.KernelEnd:
			running--
		case running > 0 && e.Kind == event.Host && b.Hosts[e.Side].Kind >= event.HostAlloc:
			continue
		}
		weak := e.Order == event.Weak && e.Flags&event.FlagVector == 0 && e.Size >= 4 && e.Size <= 16
		half := e.Kind == event.Load && e.Space == event.Global || e.Kind == event.Store && e.Space == event.Shared
		if weak && half && pick(2) == 0 {
			e.Flags = e.Flags&^event.FlagValues | event.FlagAsync
		}
		c.Events = append(c.Events, e)
		if e.Kind != event.Load && e.Kind != event.Store && e.Kind != event.Atomic {
			continue
		}
		by := event.Event{Launch: e.Launch, Warp: e.Warp, Mask: e.Mask, Place: 100}
		if by.Mask&(by.Mask-1) != 0 && pick(3) == 0 {
			by.Mask &= by.Mask - 1
		}
		if pick(2) == 0 {
			by.Kind = event.CopyCommit
			c.Events = append(c.Events, by)
		}
		if pick(4) == 0 {
			by.Kind, by.Addr = event.CopyArrive, uint64(0x8000+8*pick(2))
			c.Events = append(c.Events, by)
			c.Events = append(c.Events, event.Event{Kind: event.Atomic, Flags: event.FlagRead | event.FlagWrite | event.FlagRed, Launch: e.Launch, Warp: e.Warp, Mask: by.Mask,
				Place: 101, Addr: by.Addr, Space: event.Shared, Order: event.Release, Scope: event.ScopeCTA, Size: 4})
		}
		if pick(4) == 0 {
			c.Events = append(c.Events, event.Event{Kind: event.Load, Flags: event.FlagRead, Launch: e.Launch, Warp: e.Warp, Mask: by.Mask, Place: 102,
				Addr: uint64(0x8000 + 8*pick(2)), Space: event.Shared, Order: event.Acquire, Scope: event.ScopeCTA, Size: 4})
		}
		if pick(4) == 0 {
			by.Kind, by.Addr = event.MbarrierDone, uint64(0x8000+8*pick(2))
			c.Events = append(c.Events, by)
		}
		if pick(2) == 0 {
			by.Kind, by.Aux = event.CopyWait, uint32(max(pick(4)-1, 0))
			c.Events = append(c.Events, by)
		}
	}
	return &c
}
