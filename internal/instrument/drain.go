package instrument

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
)

// Layout of the log in device memory, as in device/log.cu, in bytes.
const (
	slotBytes  = 64
	queueBytes = 64
	blockLocks = 1024
	lockBytes  = 8
	headBytes  = 64
	logBytes   = headBytes + blockLocks*lockBytes

	scatteredSlots = 4 // slots for 32 addresses, or for 32 values
)

// Flags of a record.
const (
	recordGeneric   = 1 // the access is generic; the lanes in the record access global memory
	recordShared    = 2 // likewise; they access shared memory
	recordScattered = 4
	recordStores    = 8 // the record has the stored values
	recordDataApart = 16
	recordPublished = 32
)

// Shape describes the size of a log.
type Shape struct {
	Queues int    // blocks are distributed over the queues; by section 5.5.2, 1.1 to 1.5 queues for each multiprocessor are best
	Slots  uint64 // in each queue, of 64 bytes each; a power of two, at least 16
}

// Bytes returns the size of a log in memory.
func (s Shape) Bytes() uint64 { return logBytes + uint64(s.Queues)*(queueBytes+s.Slots*slotBytes) }

// Format writes an empty log to mem, which has Shape.Bytes bytes. addr is the address of mem on the device. mem holds
// zeros or a log of the same shape.
func (s Shape) Format(mem []byte, addr uint64) {
	if s.Queues < 1 || s.Slots < 1+2*scatteredSlots || s.Slots&(s.Slots-1) != 0 {
		panic(fmt.Sprintf("BUG: a log of %d queues of %d slots", s.Queues, s.Slots))
	}
	for q := range s.Queues {
		clear(s.slots(mem, q)[:slotBytes*min(s.head(mem, q), s.Slots)])
	}
	clear(mem[:logBytes+s.Queues*queueBytes])
	for i, v := range []uint64{uint64(s.Queues), s.Slots, 0, 0, addr + logBytes, addr + logBytes + uint64(s.Queues)*queueBytes, blockLocks, addr + headBytes} {
		binary.LittleEndian.PutUint64(mem[8*i:], v)
	}
}

// head returns the number of slots of a queue that were reserved.
func (s Shape) head(mem []byte, queue int) uint64 {
	return binary.LittleEndian.Uint64(mem[logBytes+queue*queueBytes:])
}

// slots returns the memory of the slots of a queue.
func (s Shape) slots(mem []byte, queue int) []byte {
	return mem[logBytes+uint64(s.Queues)*queueBytes+uint64(queue)*s.Slots*slotBytes:][:s.Slots*slotBytes]
}

// Wrapped reports whether slots of a log were reused.
func (s Shape) Wrapped(mem []byte) bool {
	for q := range s.Queues {
		if s.head(mem, q) > s.Slots {
			return true
		}
	}
	return false
}

// Record is a record as the host reads it.
type Record struct {
	Stamp  uint64
	Warp   uint32
	Site   uint32
	Lanes  uint32
	Failed uint32 // those of Lanes whose compare-and-swap failed
	Flags  uint32
	Values [32]uint64 // by lane
	Data   [32]uint64 // by lane: the stored value, or its last 8 bytes
}

// Reader reads the log of a launch.
type Reader struct {
	shape Shape
	mem   []byte
	early map[uint64]*Record // by stamp: records that were read before their turn
	next  uint64             // the stamp of the next record
}

// writable is a word of the log that the device and the host write.
func writable(b []byte) *uint64 { return (*uint64)(unsafe.Pointer(&b[0])) }

// NewReader returns a reader of the log that Format has written to mem. The address of mem must be a multiple of 8.
func NewReader(s Shape, mem []byte) *Reader {
	return &Reader{shape: s, mem: mem, early: map[uint64]*Record{}}
}

// Drain empties the queues. It calls f for each record whose predecessors by stamp have all been read. It reports
// whether the queues had any records.
func (r *Reader) Drain(f func(*Record)) bool {
	any := false
	for q := range r.shape.Queues {
		reader, slots := writable(r.mem[logBytes+q*queueBytes+8:]), r.shape.slots(r.mem, q)
		mark := func(slot uint64) *uint64 { return writable(slots[slot&(r.shape.Slots-1)*slotBytes+24:]) }
		read := *reader
		for atomic.LoadUint64(mark(read))&recordPublished != 0 {
			rec, n := r.record(slots, read)
			r.early[rec.Stamp] = rec
			any = true
			for ; n > 0; n-- {
				*mark(read) = 0
				read++
			}
		}
		atomic.StoreUint64(reader, read) // the device may reuse the slots that were read
	}
	for {
		rec := r.early[r.next]
		if rec == nil {
			return any
		}
		delete(r.early, r.next)
		r.next++
		f(rec)
	}
}

// Lost returns the number of records that cannot be ordered because a record before them is missing. There are none
// unless the kernel was aborted.
func (r *Reader) Lost() int { return len(r.early) }

// record reads the record at an index, and returns its number of slots.
func (r *Reader) record(slots []byte, at uint64) (*Record, uint64) {
	word := func(slot uint64, i int) uint64 {
		return binary.LittleEndian.Uint64(slots[slot&(r.shape.Slots-1)*slotBytes+uint64(8*i):])
	}
	rec := &Record{Stamp: word(at, 0), Warp: uint32(word(at, 1)), Site: uint32(word(at, 1) >> 32),
		Lanes: uint32(word(at, 2)), Failed: uint32(word(at, 2) >> 32), Flags: uint32(word(at, 3))}
	n := uint64(1)
	values := func(to *[32]uint64, apart bool, from int) {
		first := bits.TrailingZeros32(rec.Lanes)
		for m := rec.Lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			if apart {
				to[l] = word(at+n+uint64(l/8), l%8)
			} else {
				to[l] = word(at, from) + uint64(l-first)*word(at, from+1)
			}
		}
		if apart {
			n += scatteredSlots
		}
	}
	values(&rec.Values, rec.Flags&recordScattered != 0, 4)
	if rec.Flags&recordStores != 0 {
		values(&rec.Data, rec.Flags&recordDataApart != 0, 6)
	}
	return rec, n
}

// Launch describes a launch whose events are made from records.
type Launch struct {
	event.Launch
	Kernel *isa.Func // of the original module
	Sites  []Site
	// Enter returns the base of the places of a call: the place of instruction 0 of callee, called at place caller.
	// caller is 0 if the host calls.
	Enter func(caller uint32, callee *isa.Func) uint32
	// Elements are the accesses to words that touch only a part of the word. It is nil if there are none.
	Elements *opt.Placed
	// Global and Shared report whether an access of size bytes to global or to shared memory takes place. If it does
	// not, it is a fault that the device reports.
	Global, Shared func(in *isa.Inst, addr, size uint64) bool
	// Outside, if not nil, is called for each access of a lane to global memory that does not take place. It is for
	// devices that do not report such accesses.
	Outside func(e *event.Event, in *isa.Inst, lane int, addr uint64)
	Needs   event.Needs
	Sink    event.Sink
}

// Events makes the events of one launch from its records. Except for values, they are the events of an emulator that
// executes the original program. Records must come in the order of stamps.
type Events struct {
	l      *Launch
	batch  event.Batch
	warps  map[uint32]*warpState
	blocks map[uint32]*blockState
	off    spans // global memory that is switched off
	bases  map[base]uint32
}

// base is a call, as an argument of Launch.Enter.
type base struct {
	caller uint32
	callee *isa.Func
}

// warpState is the state of a warp that follows from its records.
type warpState struct {
	number  uint32
	live    uint32
	parted  bool // the last record did not have all live lanes
	calls   [32][]uint32
	waits   [32]uint32  // member masks of the lanes that wait at bar.warp.sync; 0 for none
	places  [32]uint32  // the places of these waits
	off     uint32      // lanes whose accesses are switched off
	memory  [32]memory  // memory that the lanes are switching on or off
	copies  [32]copied  // what the lanes have logged of their next copies
	stride  [32]uint64  // stride of the matrix that they are about to access
	stored  [32]stored  // the values of the store that they are about to execute
	operand [32]operand // of the mbarrier operation that they are about to execute

	// aligned has the addresses that the lanes aligned last, by the instruction that aligned them (opt.Placed).
	aligned map[aligned]*[32]uint64
}

// aligned identifies an instruction that aligns addresses (opt.Placed), at some depth of calls.
type aligned struct{ number, depth int }

// alignedIn returns the instruction for lanes with the same call stack, in the call level levels above theirs.
func (w *warpState) alignedIn(number, level int, lanes uint32) aligned {
	return aligned{number, len(w.calls[bits.TrailingZeros32(lanes)&31]) - level}
}

// stored is what a lane has logged so far about a store.
type stored struct {
	words [4]uint64
	n     uint8
}

func (s *stored) add(word uint64) {
	s.words[s.n&3] = word
	s.n++
}

// memory is what a lane has logged so far about memory that it switches on or off.
type memory struct {
	known, shared bool
	span
}

// blockState is the state of the barriers of a block.
type blockState struct {
	live      int   // number of live threads
	off       spans // shared memory of the block that is switched off
	barriers  [16]barrierState
	mbarriers map[uint64]*mbarrier // by address
}

type barrierState struct {
	threads uint32 // the requested number; 0 for all threads
	count   int    // number of arrivals
	got     map[uint32]uint32
}

// NewEvents returns the Events of a launch.
func NewEvents(l *Launch) *Events {
	e := &Events{l: l, warps: map[uint32]*warpState{}, blocks: map[uint32]*blockState{}, bases: map[base]uint32{}}
	if l.Needs&event.NeedLaunch != 0 {
		told, f := l.Launch, l.Kernel
		told.Synchronises, told.Swaps = f.Synchronises(), f.Swaps()
		told.NonCoherent, told.Bulk = f.Any((*isa.Inst).NonCoherent), f.Any((*isa.Inst).Bulk)
		e.batch.Launches = append(e.batch.Launches, told)
		e.add(event.Event{Kind: event.KernelBegin})
	}
	if l.Needs&event.NeedLocal != 0 {
		e.add(event.Event{Kind: event.Undefined})
	}
	return e
}

// End records that the launch has ended.
func (e *Events) End() {
	if e.l.Needs&event.NeedLaunch != 0 {
		e.add(event.Event{Kind: event.KernelEnd})
	}
	event.Hand(e.l.Sink, &e.batch)
}

const batchEvents = 512

func (e *Events) add(v event.Event) {
	v.Launch = e.l.ID
	e.batch.Events = append(e.batch.Events, v)
	if len(e.batch.Events) >= batchEvents {
		event.Hand(e.l.Sink, &e.batch)
	}
}

func (e *Events) sync(v event.Event) {
	if e.l.Needs&event.NeedSync != 0 {
		e.add(v)
	}
}

// warp returns the state of a warp.
func (e *Events) warp(number uint32) *warpState {
	w := e.warps[number]
	if w == nil {
		w = &warpState{number: number, live: ^uint32(0)}
		per := e.l.WarpsPerBlock()
		if rest := e.l.Block.Count() - uint64(number%per)*32; rest < 32 {
			w.live = 1<<rest - 1
		}
		e.warps[number] = w
	}
	return w
}

// block returns the state of a warp's block.
func (e *Events) block(w *warpState) *blockState {
	n := w.number / e.l.WarpsPerBlock()
	b := e.blocks[n]
	if b == nil {
		b = &blockState{live: int(e.l.Block.Count())}
		e.blocks[n] = b
	}
	return b
}

// span is the memory from one address up to, but excluding, another.
type span struct{ from, end uint64 }

// spans are ranges of memory that are switched off. They are disjoint and unordered.
type spans []span

// set switches a range of memory on or off.
func (s spans) set(x span, on bool) (out spans) {
	for _, y := range s {
		switch {
		case y.end < x.from || y.from > x.end:
			out = append(out, y)
		case !on:
			x = span{min(x.from, y.from), max(x.end, y.end)}
		default:
			if y.from < x.from {
				out = append(out, span{y.from, x.from})
			}
			if y.end > x.end {
				out = append(out, span{x.end, y.end})
			}
		}
	}
	if !on {
		out = append(out, x)
	}
	return out
}

// hold reports whether an access is entirely to memory that is switched off.
func (s spans) hold(addr, size uint64) bool {
	return slices.ContainsFunc(s, func(x span) bool { return x.from <= addr && addr+size <= x.end })
}

// switched executes the functions of fencepost.h.
func (e *Events) switched(r *Record, k Kind, w *warpState) {
	for m := r.Lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		v, x := r.Values[l], &w.memory[l]
		switch k {
		case SwitchThread:
			if w.off |= 1 << l; v != 0 {
				w.off &^= 1 << l
			}
		case SwitchAddress:
			*x = memory{true, r.Flags&recordShared != 0, span{v, v}}
		case SwitchBytes:
			if x.end += v; x.end < v {
				x.end = math.MaxUint64
			}
		case SwitchMemory:
			off := &e.off
			if x.shared {
				off = &e.block(w).off
			}
			if x.known && x.end > x.from {
				*off = off.set(x.span, v != 0)
			}
			*x = memory{}
		}
	}
}

// unchecked reports whether accesses of a lane to an address are switched off. An access that may order others never
// is.
func (e *Events) unchecked(in *isa.Inst, w *warpState, lane int, space event.Space, addr, size uint64) bool {
	if strong(in) {
		return false
	}
	off := e.off
	if space == event.Shared {
		off = e.block(w).off
	}
	return w.off>>lane&1 != 0 || off.hold(addr, size)
}

// Record makes the events of a record.
func (e *Events) Record(r *Record) {
	site, w := &e.l.Sites[r.Site], e.warp(r.Warp)
	if site.Kind >= SwitchThread {
		e.switched(r, site.Kind, w)
		return
	}
	e.reconverge(w, r.Lanes)
	for rest := r.Lanes; rest != 0; { // for each call stack, the lanes with it
		first := bits.TrailingZeros32(rest)
		lanes := rest
		for m := rest; m != 0; m &= m - 1 {
			if l := bits.TrailingZeros32(m); !slices.Equal(w.calls[l], w.calls[first]) {
				lanes &^= 1 << l
			}
		}
		rest &^= lanes
		e.operation(r, site, w, lanes, e.place(site, w.calls[first]))
	}
}

// reconverge emits an event when all live lanes of a diverged warp execute together again.
func (e *Events) reconverge(w *warpState, lanes uint32) {
	if together := lanes == w.live; together && w.parted {
		w.parted = false
		if e.l.Needs&event.NeedReconverge != 0 {
			e.add(event.Event{Kind: event.Reconverge, Warp: w.number, Mask: lanes})
		}
	} else if !together {
		w.parted = true
	}
}

// place returns the place of a site under a stack of calls.
func (e *Events) place(s *Site, calls []uint32) uint32 {
	caller := uint32(0)
	if n := len(calls); n > 0 {
		caller = calls[n-1]
	}
	k := base{caller, s.Func}
	b, ok := e.bases[k]
	if !ok {
		b = e.l.Enter(caller, s.Func)
		e.bases[k] = b
	}
	return b + uint32(s.Index)
}

// operation makes the events of an operation of lanes with the same call stack.
func (e *Events) operation(r *Record, s *Site, w *warpState, lanes, place uint32) {
	switch s.Kind {
	case Access:
		e.access(r, s.Inst(), w, lanes, place)
	case AlignDown:
		if e.l.Elements == nil {
			return
		}
		k, level, ok := e.l.Elements.Base(place)
		if !ok {
			return
		}
		to := w.alignedIn(k, level, lanes)
		at := w.aligned[to]
		if at == nil {
			if w.aligned == nil {
				w.aligned = map[aligned]*[32]uint64{}
			}
			at = new([32]uint64)
			w.aligned[to] = at
		}
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			at[l] = r.Values[l]
		}
	case MbarrierOperand:
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			w.operand[l] = operand{true, r.Values[l]}
		}
	case Mbarrier:
		e.mbarriers(r, s.Inst(), w, lanes, place)
	case Fence:
		in := s.Inst()
		kind := event.Fence
		if in.Row.Event == event.InitFence {
			kind = event.InitFence
		}
		e.sync(event.Event{Kind: kind, Warp: w.number, Mask: lanes, Place: place, Order: in.Order, Scope: in.Scope})
	case Barrier:
		e.barrier(r, s.Inst(), w, lanes, place)
	case WarpSync:
		e.warpSync(r, w, lanes, place)
	case Exit:
		e.sync(event.Event{Kind: event.Exit, Warp: w.number, Mask: lanes, Place: place})
		w.live &^= lanes
		b := e.block(w)
		b.live -= bits.OnesCount32(lanes)
		e.warpWaits(w)
		for id := range b.barriers {
			e.complete(b, id, w, lanes, place)
		}
		if b.live == 0 {
			e.forget(w)
		}
	case TileStride:
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			w.stride[l] = r.Values[l]
		}
	case StoreWord:
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			w.stored[l].add(r.Values[l])
		}
	case CopyTo, CopySize:
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			if s.Kind == CopySize {
				w.copies[l] = copied{true, r.Values[l], 0}
			} else {
				w.copies[l].to = r.Values[l]
			}
		}
	case CopyFrom:
		e.copy(r, s.Inst(), w, lanes, place)
	case CopyCommit:
		e.sync(event.Event{Kind: event.CopyCommit, Warp: w.number, Mask: lanes, Place: place})
	case CopyWait:
		e.copyWait(r, s.Inst(), w, lanes, place)
	case CallBegin:
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			w.calls[l] = append(w.calls[l], place)
		}
	case CallEnd:
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			if n := len(w.calls[l]); n > 0 {
				w.calls[l] = w.calls[l][:n-1]
			}
		}
	}
}

// forget removes the state of a block that has ended.
func (e *Events) forget(w *warpState) {
	per := e.l.WarpsPerBlock()
	n := w.number / per
	delete(e.blocks, n)
	for i := range per {
		delete(e.warps, n*per+i)
	}
}

// access makes the events of a load, store or atomic.
func (e *Events) access(r *Record, in *isa.Inst, w *warpState, lanes, place uint32) {
	v := event.Event{Warp: r.Warp, Place: place, Order: in.Order, Scope: in.Scope, Space: spaceOf(in)}
	v.Size = uint8(pieceBytes(in))
	if in.Class == isa.Matrix {
		lanes &= in.Rows()
	}
	switch {
	case r.Flags&recordGeneric != 0:
		v.Space = event.Global
	case r.Flags&recordShared != 0:
		v.Space = event.Shared
	}
	if in.Class == isa.Tile {
		e.tile(r, in, w, lanes, v)
		return
	}
	executes := lanes
	lanes = e.told(&v, in, w, &r.Values, lanes)
	e.narrow(r, w, &v, lanes)
	switch {
	case in.Class == isa.Atomic && (in.Type == isa.F16x2 || in.Type == isa.BF16x2):
		v.Flags, v.Aux = event.FlagVector, 2
	case in.Class == isa.Matrix:
		v.Flags, v.Aux = event.FlagVector, uint32(in.Type.Size())
	case in.Vec > 1:
		v.Flags, v.Aux = event.FlagVector, uint32(min(in.Type.Size(), 8))
	}
	if in.NonCoherent() && v.Space == event.Global {
		v.Flags |= event.FlagNonCoherent
	}
	switch in.Class {
	case isa.Load, isa.Matrix:
		v.Kind = event.Load
		v.Flags |= event.FlagRead
		e.lanes(r, v, lanes)
	case isa.Store:
		v.Kind = event.Store
		v.Flags |= event.FlagWrite
		e.values(r, in, w, &v, executes, lanes)
		e.lanes(r, v, lanes)
	case isa.Atomic:
		v.Kind = event.Atomic
		e.atomic(r, in, v, lanes)
	}
}

// narrow replaces the lanes' accesses to words by accesses to their elements, as the emulator does. If an element is
// not aligned, or its address is unknown, it changes nothing.
func (e *Events) narrow(r *Record, w *warpState, v *event.Event, lanes uint32) {
	if e.l.Elements == nil {
		return
	}
	x, level, ok := e.l.Elements.Access(v.Place)
	base := w.aligned[w.alignedIn(x.Base, level, lanes)]
	if !ok || base == nil {
		return
	}
	width, size := uint64(v.Size), uint64(x.Size)
	for m := lanes; m != 0; m &= m - 1 {
		if base[bits.TrailingZeros32(m)]%width%size != 0 {
			return
		}
	}
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		r.Values[l] += base[l] % width
	}
	v.Size = x.Size
}

// values adds the stored values of the lanes that execute the store to the event.
func (e *Events) values(r *Record, in *isa.Inst, w *warpState, v *event.Event, executes, lanes uint32) {
	if wanted := e.l.Needs&event.NeedValues != 0 && in.Type.Size() <= 8; wanted && lanes != 0 {
		v.Flags |= event.FlagValues
		v.Val = uint32(len(e.batch.Values))
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			s := w.stored[l]
			if r.Flags&recordStores != 0 {
				s.add(r.Data[l])
			}
			e.batch.Values = append(e.batch.Values, s.words[:event.ValueWords(v.Size)]...)
		}
	}
	for m := executes; m != 0; m &= m - 1 {
		w.stored[bits.TrailingZeros32(m)].n = 0
	}
}

// told returns the lanes that the event of an access gets: those whose access takes place and is not switched off.
func (e *Events) told(v *event.Event, in *isa.Inst, w *warpState, at *[32]uint64, lanes uint32) uint32 {
	size := uint64(v.Size)
	need, there := event.NeedGlobal, e.l.Global
	if v.Space == event.Shared {
		need, there = event.NeedShared, e.l.Shared
	}
	if e.l.Needs&need == 0 {
		return 0
	}
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		here := there(in, at[l], size)
		if !here && e.l.Outside != nil && v.Space == event.Global {
			e.l.Outside(v, in, l, at[l])
		}
		if !here || e.unchecked(in, w, l, v.Space, at[l], size) {
			lanes &^= 1 << l
		}
	}
	return lanes
}

// lanes emits one event for all of the lanes.
func (e *Events) lanes(r *Record, v event.Event, lanes uint32) {
	if lanes == 0 {
		return
	}
	v.Mask = lanes
	first := bits.TrailingZeros32(lanes)
	if rest := lanes & (lanes - 1); rest != 0 {
		second := bits.TrailingZeros32(rest)
		v.Stride = int64(r.Values[second]-r.Values[first]) / int64(second-first)
	}
	v.Addr = r.Values[first]
	for m := lanes; m != 0; m &= m - 1 {
		if l := bits.TrailingZeros32(m); r.Values[l] != v.Addr+uint64(int64(l-first)*v.Stride) {
			v.Flags |= event.FlagScattered
		}
	}
	if v.Flags&event.FlagScattered != 0 {
		v.Addr, v.Stride, v.Side = 0, 0, uint32(len(e.batch.Addrs))
		for m := lanes; m != 0; m &= m - 1 {
			e.batch.Addrs = append(e.batch.Addrs, r.Values[bits.TrailingZeros32(m)])
		}
	}
	e.add(v)
}

// atomic makes the events of an atomic operation. A lane whose compare-and-swap failed only reads. Such lanes get
// events of their own, ordered so that every lane sees the writes of all lower lanes and of no others.
func (e *Events) atomic(r *Record, in *isa.Inst, v event.Event, lanes uint32) {
	v.RMW = event.OtherRMW
	wrote := event.FlagRead | event.FlagWrite
	switch {
	case in.Op == isa.OpCas:
		v.RMW = event.CompareAndSwap
	case in.Op == isa.OpExch:
		v.RMW = event.Exchange
	}
	if len(in.Dst) == 0 || !slices.ContainsFunc(in.Dst, func(o isa.Operand) bool { return o.Kind != isa.Sink }) {
		if wrote |= event.FlagRed; in.Op == isa.OpExch {
			wrote = event.FlagWrite
		}
	}
	swapped, failed := v, v
	swapped.Flags |= wrote
	failed.Flags |= wrote &^ event.FlagWrite
	no := r.Failed & lanes
	before, after := false, false // a failed lane is below (above) a lane that wrote the same location
	for f := no; f != 0; f &= f - 1 {
		i := bits.TrailingZeros32(f)
		for m := lanes &^ no; m != 0; m &= m - 1 {
			if j := bits.TrailingZeros32(m); r.Values[i] == r.Values[j] {
				before, after = before || i < j, after || i > j
			}
		}
	}
	switch {
	case before && after:
		for rest := lanes; rest != 0; {
			run, other, of := rest&^no, rest&no, swapped
			if no&(rest&-rest) != 0 {
				run, other, of = other, run, failed
			}
			if other != 0 {
				run &= other&-other - 1
			}
			e.lanes(r, of, run)
			rest &^= run
		}
	case before:
		e.lanes(r, failed, no)
		e.lanes(r, swapped, lanes&^no)
	default:
		e.lanes(r, swapped, lanes&^no)
		e.lanes(r, failed, no)
	}
}

// barrier counts arrivals.
func (e *Events) barrier(r *Record, in *isa.Inst, w *warpState, lanes, place uint32) {
	for lanes != 0 { // for each barrier and number of threads, the lanes with these
		value := r.Values[bits.TrailingZeros32(lanes)]
		same := uint32(0)
		for m := lanes; m != 0; m &= m - 1 {
			if l := bits.TrailingZeros32(m); r.Values[l] == value {
				same |= 1 << l
			}
		}
		lanes &^= same
		id, threads := uint32(value), uint32(value>>32)
		if id > 15 || threads%32 != 0 {
			continue // a fault
		}
		v := event.Event{Kind: event.Arrive, Warp: w.number, Mask: same, Place: place, Barrier: uint8(id), Aux: threads}
		if in.Op != isa.OpArrive {
			v.Flags |= event.FlagWait
		}
		if threads == 0 && in.Aligned {
			v.Flags |= event.FlagAligned
		}
		e.sync(v)
		b := e.block(w)
		bar := &b.barriers[id]
		if bar.got == nil {
			*bar = barrierState{threads: threads, got: map[uint32]uint32{}}
		}
		bar.count += bits.OnesCount32(same)
		bar.got[w.number] |= same
		e.complete(b, int(id), w, same, place)
	}
}

// complete ends a phase of a barrier when enough threads have arrived. If a number of threads was requested, a warp
// whose live lanes have all arrived counts as 32 threads.
func (e *Events) complete(b *blockState, id int, w *warpState, lanes, place uint32) {
	bar := &b.barriers[id]
	if bar.got == nil {
		return
	}
	n := bar.count
	for number, got := range bar.got {
		if bar.threads != 0 && e.warp(number).live&^got == 0 {
			n += 32 - bits.OnesCount32(got)
		}
	}
	need := b.live
	if bar.threads != 0 {
		need = int(bar.threads)
	}
	if n < need {
		return
	}
	bar.got = nil
	e.sync(event.Event{Kind: event.BarrierDone, Warp: w.number, Mask: lanes, Place: place, Barrier: uint8(id)})
}

// warpSync records that lanes wait for the other lanes of their member masks.
func (e *Events) warpSync(r *Record, w *warpState, lanes, place uint32) {
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		members := uint32(r.Values[l])
		if members&(1<<l) == 0 { // a fault: the lane does not wait
			e.sync(event.Event{Kind: event.WarpSync, Warp: w.number, Mask: 1 << l, Place: place})
			continue
		}
		w.waits[l], w.places[l] = members, place
	}
	e.warpWaits(w)
}

// warpWaits emits the events of completed warp barriers: all members that have not exited wait with the same member
// mask.
func (e *Events) warpWaits(w *warpState) {
	for l, members := range w.waits {
		need := members & w.live
		if need == 0 || w.waits[l] == 0 {
			continue
		}
		complete := true
		for m := need; m != 0; m &= m - 1 {
			complete = complete && w.waits[bits.TrailingZeros32(m)] == members
		}
		if !complete {
			continue
		}
		for m := need; m != 0; m &= m - 1 {
			w.waits[bits.TrailingZeros32(m)] = 0
		}
		e.sync(event.Event{Kind: event.WarpSync, Warp: w.number, Mask: need, Place: w.places[l]})
	}
}
