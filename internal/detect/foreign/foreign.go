// Package foreign finds uses of pointers to memory of another thread or block. A thread stores the address of a local
// variable, or of shared memory, in memory that others read. Another thread, or a thread of another block, loads the
// address and accesses memory through it. The address means the same offset in the memory of whoever uses it, so it is
// another variable there.
//
// Blind spots: pointers that are not stored (shuffles); pointers stored by a thread that has loaded the same value from
// another one; pointers stored in parts, or by a matrix or asynchronous operation; and pointers left behind by another
// launch.
package foreign

import (
	"cmp"
	"fmt"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// maxPointers is the most pointers kept for a launch.
const maxPointers = 1 << 20

// Beside extends a detector to find such uses. The findings carry the detector's name. The detector must have
// NeedGlobal, NeedShared, NeedValues and NeedLaunch.
func Beside(d detect.Detector, name string, c detect.Config) detect.Detector {
	return &checker{Detector: d, name: name, cfg: c, launches: map[uint32]*launch{}, room: maxPointers, found: detect.NewShortlist(c.MaxFindings,
		func(x, y pair) int { return cmp.Or(cmp.Compare(x.load, y.load), cmp.Compare(x.store, y.store)) },
		func(f *detect.Finding) (detect.Severity, detect.Kind) { return f.Severity, f.Kind })}
}

// checker is the extended detector.
type checker struct {
	detect.Detector
	name     string
	cfg      detect.Config
	launches map[uint32]*launch
	room     int // the limit for the pointers of a launch
	notes    []string
	found    *detect.Shortlist[pair, detect.Finding]
}

// pair is the places of a load and of the store that it reads from.
type pair struct{ load, store uint32 }

// launch holds the pointers to local and shared memory that a launch has stored.
type launch struct {
	info      event.Launch
	stored    map[location]pointer
	loaded    map[held]bool // what threads have loaded that others had stored
	low, high uint64        // bounds of the addresses of stored, over global memory and all shared memories
	full      bool          // some pointers were not kept
}

// held is a pointer that a thread has loaded after another stored it. If the thread stores the same value, it may pass
// the pointer on.
type held struct {
	warp  uint32
	lane  uint8
	value uint64
}

// location is eight bytes of global memory (block 0), or of the shared memory of a block, numbered from 1.
type location struct {
	block   uint32
	address uint64
}

// pointer is a stored pointer.
type pointer struct {
	to          event.Space
	kind        event.Kind
	order       event.Order
	scope       event.Scope
	lane        uint8
	passed      bool // its thread had loaded it from another: the owner is not known
	warp, place uint32
	value       uint64
}

// Events implements event.Sink.
func (c *checker) Events(b *event.Batch) {
	var l *launch
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.KernelBegin:
			c.launches[e.Launch] = &launch{info: b.Launches[e.Side], stored: map[location]pointer{}, loaded: map[held]bool{}, low: ^uint64(0)}
		case event.KernelEnd:
			if x := c.launches[e.Launch]; x != nil && x.full {
				c.notes = append(c.notes, fmt.Sprintf("launch %d of %s: it stores more than %d pointers to local or shared memory, of which not all were checked.",
					x.info.ID, x.info.Kernel, c.room))
			}
			delete(c.launches, e.Launch)
		case event.Load, event.Store, event.Atomic, event.Again:
			if l == nil || l.info.ID != e.Launch {
				l = c.launches[e.Launch]
			}
			switch {
			case l == nil:
			case e.Kind != event.Again:
				c.look(b, e, l)
			default:
				for k := range b.Series[e.Side].Events {
					if b.Series[e.Side].Events[k].Size >= 8 || len(l.stored) > 0 {
						x := b.Nth(e, k)
						c.look(b, &x, l)
					}
				}
			}
		}
	}
	c.Detector.Events(b)
}

// look examines an access.
func (c *checker) look(b *event.Batch, e *event.Event, l *launch) {
	if (e.Space == event.Global || e.Space == event.Shared) && e.Flags&event.FlagAsync == 0 {
		if pointers := stores(b, e); pointers || len(l.stored) > 0 {
			c.access(b, e, l, pointers)
		}
	}
}

// stores reports whether lanes store a pointer to local or shared memory.
func stores(b *event.Batch, e *event.Event) bool {
	if e.Size < 8 || e.Flags&event.FlagValues == 0 {
		return false
	}
	for _, v := range b.Values[e.Val:][:bits.OnesCount32(e.Mask)*event.ValueWords(e.Size)] {
		if event.PrivateSpace(v) != event.NoSpace {
			return true
		}
	}
	return false
}

// access examines what lanes load and store. pointers says that they store pointers.
func (c *checker) access(b *event.Batch, e *event.Event, l *launch, pointers bool) {
	if e.Flags&event.FlagWrite == 0 && e.Size < 8 {
		return
	}
	at := location{}
	if e.Space == event.Shared {
		at.block = e.Warp/l.info.WarpsPerBlock() + 1
	}
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		from := b.AddrOf(e, lane)
		if end := from + uint64(e.Size); pointers {
			l.low, l.high = min(l.low, from), max(l.high, end)
		} else if end <= l.low || l.high <= from {
			continue
		}
		values := b.ValueOf(e, lane)
		for k := range max(1, uint64(e.Size)/8) {
			at.address = from&^7 + 8*k
			p, ok := l.stored[at]
			if e.Flags&event.FlagRead != 0 && ok && e.Size >= 8 && (p.warp != e.Warp || int(p.lane) != lane) {
				if p.foreign(e.Warp, lane, &l.info) && c.cfg.Dereferences(e.Place) {
					c.add(p, e, lane, at.address, l)
				}
				if l.full = l.full || len(l.loaded) >= c.room; len(l.loaded) < c.room {
					l.loaded[held{e.Warp, uint8(lane), p.value}] = true
				}
			}
			if e.Flags&event.FlagWrite == 0 {
				continue
			}
			to := event.NoSpace
			if e.Size >= 8 && values != nil {
				to = event.PrivateSpace(values[k])
			}
			switch l.full = l.full || to != event.NoSpace && !ok && len(l.stored) >= c.room; {
			case to == event.NoSpace:
				delete(l.stored, at)
			case ok || len(l.stored) < c.room:
				l.stored[at] = pointer{to: to, kind: e.Kind, order: e.Order, scope: e.Scope, lane: uint8(lane), warp: e.Warp, place: e.Place, value: values[k],
					passed: l.loaded[held{e.Warp, uint8(lane), values[k]}]}
			}
		}
	}
}

// foreign reports whether a pointer refers to other memory for the thread that uses it.
func (p *pointer) foreign(warp uint32, lane int, l *event.Launch) bool {
	if p.passed {
		return false
	}
	if p.to == event.Shared {
		return p.warp/l.WarpsPerBlock() != warp/l.WarpsPerBlock()
	}
	return p.warp != warp || int(p.lane) != lane
}

// add makes the finding of a load.
func (c *checker) add(p pointer, e *event.Event, lane int, address uint64, l *launch) {
	k := pair{e.Place, p.place}
	if f := c.found.Get(k); f != nil {
		f.Count++
		return
	}
	message, fix := "a thread stores the address of a local variable, and another thread loads it and accesses memory by it: local memory is each thread's own, so on a GPU the address means what the second thread has there",
		"store the value and not its address, or keep the variable in shared or global memory"
	if p.to == event.Shared {
		message = "a thread stores an address in shared memory, and a thread of another block loads it and accesses memory by it: shared memory is each block's own, so the address means what the second block has there"
		fix = "keep in global memory what blocks share, or launch them as a cluster and use map_shared_rank of cooperative groups"
	}
	access := func(k event.Kind, op detect.Op, order event.Order, scope event.Scope, place, warp uint32, lane int) detect.Access {
		if k == event.Atomic {
			op = detect.AtomicOp
		}
		return detect.Access{Op: op, Order: order, Scope: scope, Space: e.Space, Place: place, Launch: l.info, Warp: warp, Lane: lane, Address: address, Size: 8}
	}
	c.found.Put(k, &detect.Finding{Class: detect.MemoryFault, Kind: detect.ForeignPointer, Severity: detect.Error, Detector: c.name, Count: 1,
		Message: message, Fix: fix, Accesses: []detect.Access{access(p.kind, detect.Write, p.order, p.scope, p.place, p.warp, int(p.lane)),
			access(e.Kind, detect.Read, e.Order, e.Scope, e.Place, e.Warp, lane)}})
	c.found.Trim()
}

// Findings returns the detector's findings followed by those about pointers.
func (c *checker) Findings() []detect.Finding {
	out := c.Detector.Findings()
	for _, k := range c.found.Keys() {
		out = append(out, *c.found.Get(k))
	}
	return out
}

// More implements detect.Capped.
func (c *checker) More() (int, bool) {
	n, atLeast := c.found.More()
	if d, ok := c.Detector.(detect.Capped); ok {
		m, more := d.More()
		n, atLeast = n+m, atLeast || more
	}
	return n, atLeast
}

// MemoryBytes implements detect.Metered.
func (c *checker) MemoryBytes() (n uint64) {
	for _, l := range c.launches {
		n += uint64(len(l.stored))*64 + uint64(len(l.loaded))*24
	}
	if d, ok := c.Detector.(detect.Metered); ok {
		n += d.MemoryBytes()
	}
	return n
}

// Notes implements detect.Noted.
func (c *checker) Notes() []string {
	if d, ok := c.Detector.(detect.Noted); ok {
		return append(d.Notes(), c.notes...)
	}
	return c.notes
}
