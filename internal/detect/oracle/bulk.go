package oracle

import (
	"fmt"
	"math"
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// bulkCopy is a half of a bulk copy that is not complete.
type bulkCopy struct {
	node    int
	after   int // the node of what its thread does next
	group   uint32
	number  int64
	tracked bool
}

// bulk adds the node of a half of a bulk copy. Like every copy it is a thread of its own.
func (x *builder) bulk(e *event.Event, at int, block uint32) {
	th := thread{launch: e.Launch, warp: e.Warp, lane: bits.TrailingZeros32(e.Mask)}
	issue := x.op(e, th.lane, node{at: at})
	after := x.op(e, th.lane, node{at: at})
	x.numbered++
	n := node{kind: accessNode, t: thread{th.launch, th.warp, th.lane, x.numbered}, block: block, at: at, place: fmt.Sprint("p", e.Place), pc: e.Place,
		addr: e.Addr, size: uint64(e.Aux), unit: uint64(e.Aux), read: e.Flags&event.FlagRead != 0, write: e.Flags&event.FlagWrite != 0,
		mask: e.Mask, turn: x.turns[[2]uint32{e.Launch, e.Warp}], cut: len(x.writes), nthAcc: at*32 + th.lane,
		copy: copyNode{is: true, issue: issue, after: after, done: math.MaxInt, mask: e.Mask}}
	n.key = fmt.Sprint("bulk", at)
	if n.mem, n.addr = x.memory(e, e.Addr); n.mem.shared {
		x.touched[th] = true
	}
	n.async = e.Barrier != 2
	n.copy.apart = e.Barrier != 0 && (n.mem.shared || !n.write)
	n.copy.turn = n.turn
	i := x.add(n)
	x.edge(issue, i)
	x.bulks[th] = append(x.bulks[th], bulkCopy{i, after, x.bulkGroups[th], e.Stride, e.Barrier != 0})
}

// landBulks ends the bulk copies of a thread for which done is true.
func (x *builder) landBulks(th thread, at int, done func(*bulkCopy) bool) {
	var left []bulkCopy
	for _, f := range x.bulks[th] {
		if !done(&f) {
			left = append(left, f)
			continue
		}
		x.nodes[f.node].copy.done = at
		if x.nodes[f.node].write {
			x.wrote(f.node)
		}
	}
	x.bulks[th] = left
}

// bulkWait completes the bulk copies of lanes, except those of their last groups.
func (x *builder) bulkWait(e *event.Event, at int) {
	for _, lane := range lanesOf(e.Mask) {
		th := thread{launch: e.Launch, warp: e.Warp, lane: lane}
		w := x.op(e, lane, node{at: at})
		x.landBulks(th, at, func(f *bulkCopy) bool {
			n := &x.nodes[f.node]
			if f.tracked || uint64(f.group)+uint64(e.Aux) >= uint64(x.bulkGroups[th]) || e.Flags&event.FlagRead != 0 && n.write {
				return false
			}
			x.edge(f.node, w)
			n.copy.turn = x.turns[[2]uint32{e.Launch, e.Warp}]
			return true
		})
	}
}

// bulkDone completes a copy, which performs a release on its mbarrier.
func (x *builder) bulkDone(e *event.Event, at int, block uint32) {
	th := thread{launch: e.Launch, warp: e.Warp, lane: bits.TrailingZeros32(e.Mask)}
	var halves []int
	x.landBulks(th, at, func(f *bulkCopy) bool {
		if f.number != e.Stride {
			return false
		}
		if n := &x.nodes[f.node]; !n.copy.apart { // histories treat it as part of its thread
			x.edge(f.node, f.after)
		}
		halves = append(halves, f.node)
		return true
	})
	if len(halves) == 0 {
		return
	}
	r := x.tell(e, at, block, x.nodes[halves[0]].place)
	for _, h := range halves {
		x.edge(h, r)
	}
}

// tell adds the node of a release on the mbarrier at the address of an event.
func (x *builder) tell(e *event.Event, at int, block uint32, place string) int {
	x.numbered++
	lane := bits.TrailingZeros32(e.Mask)
	n := node{kind: accessNode, t: thread{e.Launch, e.Warp, lane, x.numbered}, block: block, at: at, place: place,
		order: event.Release, scope: event.ScopeCluster, size: 4, unit: 4, read: true, write: true, atomic: true, red: true,
		cut: len(x.writes), nthAcc: at*32 + lane, mask: e.Mask}
	n.mem, n.addr = x.memory(e, e.Addr)
	n.mem.shared = true
	r := x.add(n)
	x.nodes[r].saw = x.observed(r)
	x.wrote(r)
	return r
}

// Bulking turns accesses of a program into bulk copies, with proxy fences for what precedes them, and adds waits.
func Bulking(b *event.Batch, pick func(n int) int) *event.Batch {
	c := *b
	c.Events, c.Launches = nil, nil
	for _, l := range b.Launches {
		l.Bulk = true
		c.Launches = append(c.Launches, l)
	}
	var issued []event.Event
	running, number := 0, int64(0)
	for _, e := range b.Events {
		switch {
		case e.Kind == event.KernelBegin:
			running++
		case e.Kind == event.KernelEnd:
			running--
		case running > 0 && e.Kind == event.Host && b.Hosts[e.Side].Kind >= event.HostAlloc:
			continue
		}
		if e.Kind != event.Load && e.Kind != event.Store && e.Kind != event.Atomic {
			c.Events = append(c.Events, e)
			continue
		}
		by := event.Event{Launch: e.Launch, Warp: e.Warp, Mask: e.Mask, Place: 100}
		one := by
		one.Mask &= -one.Mask
		if e.Order == event.Weak && e.Kind != event.Atomic && pick(2) == 0 {
			one.Kind, one.Space = event.ProxyFence, []event.Space{event.NoSpace, event.Shared, event.Global}[pick(3)]
			if pick(3) > 0 {
				c.Events = append(c.Events, one)
			}
			one.Kind, one.Place, one.Space, one.Addr, one.Aux = event.Bulk, e.Place, e.Space, b.AddrOf(&e, bits.TrailingZeros32(e.Mask)), uint32(e.Size)<<pick(2)
			one.Flags, one.Barrier, one.Stride = e.Flags&(event.FlagRead|event.FlagWrite), uint8(pick(2)), number
			number++
			c.Events = append(c.Events, one)
			if one.Barrier != 0 {
				issued = append(issued, one)
			}
		} else {
			c.Events = append(c.Events, e)
		}
		if pick(2) == 0 {
			by.Kind = event.BulkCommit
			c.Events = append(c.Events, by)
		}
		if pick(2) == 0 {
			by.Kind, by.Aux = event.BulkWait, uint32(max(pick(4)-1, 0))
			if pick(3) == 0 {
				by.Flags = event.FlagRead
			}
			c.Events = append(c.Events, by)
			by.Flags, by.Aux = 0, 0
		}
		if len(issued) > 0 && pick(2) == 0 {
			i := pick(len(issued))
			one = issued[i]
			issued = append(issued[:i:i], issued[i+1:]...)
			c.Events = append(c.Events, event.Event{Kind: event.BulkDone, Launch: one.Launch, Warp: one.Warp, Mask: one.Mask, Place: 100, Addr: uint64(0x8000 + 4*pick(2)), Stride: one.Stride})
		}
		if pick(3) == 0 {
			by.Kind, by.Place, by.Addr, by.Space, by.Size, by.Order, by.Scope, by.Flags = event.Load, 101, uint64(0x8000+4*pick(2)), event.Shared, 4, event.Acquire, event.ScopeCTA, event.FlagRead
			c.Events = append(c.Events, by)
		}
	}
	return &c
}
