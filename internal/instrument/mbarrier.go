package instrument

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// mbarrier is the state of an mbarrier since its initialisation, as the log implies it. The object itself is opaque.
type mbarrier struct {
	phase             uint64
	expected, pending uint64            // numbers of arrivals
	bytes             int64             // of pending transactions
	tested            map[uint32]uint32 // by warp, the lanes that have tested it
	arrived           map[thread]uint64 // by thread: the phase of its last arrival
	copies            int               // number of arrivals that will be made when copies complete
}

// thread is a thread of a warp.
type thread struct {
	warp uint32
	lane int
}

// operand is the operand of an operation on an mbarrier, if the operation has one.
type operand struct {
	given bool
	value uint64
}

// mbarrierBytes is the size of an mbarrier. Arrivals are events of its first half, and tests are events of its second
// half.
const mbarrierBytes = 8

// mbarrierOp is an operation of a lane on an mbarrier.
type mbarrierOp struct {
	e     *Events
	in    *isa.Inst
	w     *warpState
	lane  int
	place uint32
	addr  uint64
	b     *mbarrier
}

// mbarriers makes the events of operations on mbarriers, those of the lowest lane first, as internal/engine does.
func (e *Events) mbarriers(r *Record, in *isa.Inst, w *warpState, lanes, place uint32) {
	block := e.block(w)
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		given := w.operand[l]
		w.operand[l] = operand{}
		addr := r.Values[l]
		if !e.l.Shared(in, addr, mbarrierBytes) || spaceOf(in) == event.Generic && r.Flags&recordShared == 0 {
			continue
		}
		x := mbarrierOp{e, in, w, l, place, addr, block.mbarriers[addr]}
		if in.Op == isa.OpInit {
			x.write(event.Weak, 0, mbarrierBytes)
			if block.mbarriers == nil {
				block.mbarriers = map[uint64]*mbarrier{}
			}
			block.mbarriers[addr] = &mbarrier{expected: given.value, pending: given.value, tested: map[uint32]uint32{}, arrived: map[thread]uint64{}}
			continue
		}
		if x.b == nil {
			continue // a fault
		}
		x.execute(given, r.Failed>>l&1 == 0)
		if in.Op == isa.OpInval {
			delete(block.mbarriers, addr)
		}
	}
}

func (x *mbarrierOp) execute(given operand, done bool) {
	switch op := x.in.Op; op {
	case isa.OpInval:
		x.write(event.Relaxed, 0, mbarrierBytes/2)
		x.write(event.Relaxed, mbarrierBytes/2, mbarrierBytes/2)
	case isa.OpExpect, isa.OpComplete:
		x.update(event.Relaxed)
		if x.b.bytes += int64(given.value); op == isa.OpComplete {
			x.b.bytes -= 2 * int64(given.value)
		}
		x.complete()
	case isa.OpArrive, isa.OpDrop:
		n := uint64(1)
		if x.in.Has("expect_tx") {
			x.b.bytes += int64(given.value)
		} else if given.given {
			n = given.value
		}
		x.b.arrived[x.thread()] = x.b.phase
		x.update(x.in.MbarrierOrder(event.Release))
		if op == isa.OpDrop {
			x.b.expected -= min(n, x.b.expected)
		}
		x.arrive(n)
	case isa.OpArriveCopies:
		if !x.in.Has("noinc") {
			x.b.pending++
		}
		x.e.sync(event.Event{Kind: event.CopyArrive, Warp: x.w.number, Place: x.place, Mask: 1 << x.lane, Addr: x.addr})
		x.update(event.Release)
		x.b.copies++
	case isa.OpTest:
		x.test(given.value, done)
	}
}

func (x *mbarrierOp) thread() thread { return thread{x.w.number, x.lane} }

func (x *mbarrierOp) arrive(n uint64) {
	x.b.pending -= min(n, x.b.pending)
	x.complete()
}

// complete ends the phase if no arrival and no transaction is pending.
func (x *mbarrierOp) complete() {
	b := x.b
	if b.pending != 0 || b.bytes != 0 {
		return
	}
	b.phase++
	b.pending = b.expected
	x.e.sync(event.Event{Kind: event.MbarrierDone, Warp: x.w.number, Place: x.place, Mask: 1 << x.lane, Addr: x.addr})
	x.half(event.Event{Kind: event.Load, Flags: event.FlagRead | event.FlagApart, Order: event.Acquire}, 0)
	x.half(event.Event{Kind: event.Store, Flags: event.FlagWrite | event.FlagApart, Order: event.Release}, mbarrierBytes/2)
}

// test records the result of a test. Copies that a wait waits for are complete.
func (x *mbarrierOp) test(phase uint64, done bool) {
	asked, known := x.b.arrived[x.thread()]
	passed := known && asked < x.b.phase
	if x.in.Has("parity") {
		passed = x.b.phase&1 != phase&1
	}
	if b := x.b; !passed {
		for ; b.copies > 0; b.copies-- {
			x.arrive(1)
		}
	}
	first := x.b.tested[x.w.number]>>x.lane&1 == 0
	x.b.tested[x.w.number] |= 1 << x.lane
	order := event.Relaxed
	if done {
		if order = x.in.MbarrierOrder(event.Acquire); first && order != event.Relaxed {
			x.half(event.Event{Kind: event.Load, Flags: event.FlagRead, Order: event.Relaxed}, mbarrierBytes/2)
		}
	}
	x.half(event.Event{Kind: event.Load, Flags: event.FlagRead, Order: order}, mbarrierBytes/2)
}

// update emits a read-modify-write.
func (x *mbarrierOp) update(order event.Order) {
	x.half(event.Event{Kind: event.Atomic, Flags: event.FlagRead | event.FlagWrite | event.FlagRed, Order: order}, 0)
}

// half emits a strong access to one half.
func (x *mbarrierOp) half(v event.Event, at uint64) {
	if v.Scope = x.in.Scope; v.Scope == event.NoScope {
		if v.Scope = event.ScopeCTA; x.e.l.Cluster.Count() > 1 {
			v.Scope = event.ScopeCluster
		}
	}
	if v.Flags&event.FlagApart != 0 {
		v.Barrier = x.in.Apart()
	}
	x.tell(v, at, mbarrierBytes/2)
}

// write emits a store: of an initialisation, or of an operation that ends the mbarrier.
func (x *mbarrierOp) write(order event.Order, at uint64, size uint8) {
	v := event.Event{Kind: event.Store, Flags: event.FlagWrite, Order: order}
	if order != event.Weak {
		x.half(v, at)
		return
	}
	v.Barrier = event.StoreInits
	if !x.e.unchecked(x.in, x.w, x.lane, event.Shared, x.addr, uint64(size)) {
		x.tell(v, at, size)
	}
}

// tell emits an access. The values of its stores are zeros, because the object is opaque.
func (x *mbarrierOp) tell(v event.Event, at uint64, size uint8) {
	if x.e.l.Needs&event.NeedShared == 0 {
		return
	}
	v.Warp, v.Place, v.Mask, v.Space, v.Addr, v.Size = x.w.number, x.place, 1<<x.lane, event.Shared, x.addr+at, size
	if x.e.l.Needs&event.NeedValues != 0 && v.Flags&event.FlagWrite != 0 {
		v.Flags |= event.FlagValues
		v.Val = uint32(len(x.e.batch.Values))
		x.e.batch.Values = append(x.e.batch.Values, 0)
	}
	x.e.add(v)
}
