package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// Threads executes the threads of a launch separately, driven by a model checker. A thread runs to its next operation
// that other threads can observe or that waits for others, which is a Request, and is resumed with a value.
// Instructions are executed as in engine ref. Memory that threads share is neither read nor written; Initial gives its
// content before the launch.
//
// The state of a thread between two requests is a State, a value. A thread may be resumed from any of its states, any
// number of times.
type Threads struct {
	r         *Run
	ctas      []*CTA
	live      map[*loader.Code]*liveness
	loops     map[*loader.Code][]bool
	stops     map[*loader.Code][]bool // at branches; nil if nobody asks for them
	states    int                     // bytes of the largest state, to begin the next with
	registers []int32                 // ThreadOptions.Registers
	// depends follows dependencies of the thread that runs; nil if nobody asks for them.
	depends *depends
	// reads says that depends tracks reads, and clocks that it tracks what clocks show. forks counts the states since
	// the last request in which a clock decides a guard, and forking holds them.
	reads   bool
	clocks  bool
	forks   int
	forking []State
}

// State is the state of a thread at a request. From equal states a thread continues in the same way: registers that the
// thread cannot read before writing them are not included. Dependencies, if tracked, follow after Request.Plain bytes.
type State string

// RequestKind is the kind of a Request.
type RequestKind uint8

// The kinds of requests.
const (
	RequestExit        RequestKind = iota // the thread has exited
	RequestLoad                           // resumed with the value read, Size bytes
	RequestStore                          // stores Value
	RequestAtomic                         // resumed with the previous value; Update computes the new one
	RequestFence                          //
	RequestBarrier                        // of the block; resumed when the other threads have arrived
	RequestArrive                         // the same without waiting
	RequestFault                          // the thread does what Message says, and cannot continue
	RequestUnsupported                    // the thread does something that cannot be explored; Message says what
	RequestStop                           // the thread is at a branch, or has executed one: see Threads.Stop
)

// Request is the next operation of a thread.
type Request struct {
	Kind    RequestKind
	Order   event.Order
	Scope   event.Scope
	Space   event.Space // Global or Shared
	Addr    uint64      // in Space
	Size    uint8       // in bytes, at most 8
	Piece   uint8       // the number of the element in a vector
	Pieces  uint8       // the number of elements that the instruction accesses, each by its own request; 1 without a vector
	Place   uint32
	Value   uint64 // the value to store, or the operand of an atomic operation: for cas the value to compare with
	Swap    uint64 // for cas, the value to write
	Barrier uint8
	// Members are the lanes of the warp that take part in a barrier (bar.warp.sync), 0 if it is a barrier of the block.
	// For bar.red, Value is the predicate, and Reduce the operation.
	Members uint32
	Reduce  isa.Op
	// Aligned says that all threads at the barrier must execute the same instruction. A barrier with a number of
	// threads does not require this, since warps with different work meet there.
	Aligned bool
	// Warp says that a barrier of lanes is a shuffle, a vote or another instruction of the warp. It is resumed with
	// what Exchange gives. Sources are the operands of lane Lane without its mask.
	Warp bool
	Lane uint8
	// Converges says that the exchange is among the lanes that happen to execute it together (activemask), and not
	// among Members. Such lanes have equal Stacks.
	Converges bool
	Stack     string
	Sources   [3]uint64
	// NonCoherent says that a load is ld.global.nc.
	NonCoherent bool
	// Reduction says that the old value of an atomic operation is not used (red).
	Reduction bool
	// Repeats says that the operation is in a loop, and Back that control has jumped backwards since the previous
	// request.
	Repeats, Back bool
	// Plain is the length of the State without dependencies. Depends is the set of the thread's reads that the
	// operation depends on; its last bit represents all reads from that number on. Control is the set of those that all
	// later operations depend on too. Local is the beginning of local memory in the State, which extends to Plain.
	Plain, Local     int
	Depends, Control uint64
	Fault            FaultKind
	Message          string // for RequestFault and RequestUnsupported
	inst             *loader.Instr
}

// Update returns the value that an atomic operation writes over old, and says whether it writes: a failed cas does not.
func (q *Request) Update(old uint64) (uint64, bool) {
	if q.inst.Class == isa.Mbarrier {
		return q.arrived(old)
	}
	if q.inst.Op == isa.OpCas && old != q.Value {
		return old, false
	}
	return LowBytes(q.inst.RMW(q.inst.Inst, old, q.Value, q.Swap), uint64(q.Size)), true
}

// Exchange returns the result of an instruction of the warp for a lane, when the lanes of all, including that lane,
// execute it together: the first result, and in bit 32 the second, a predicate. ok is false if the lane reads from a
// lane that takes no part, so that the result is undefined.
func (q *Request) Exchange(all []*Request) (value uint64, ok bool) {
	var args isa.WarpArgs
	for _, o := range all {
		if !sameOp(q.inst, o.inst) {
			continue // lanes that execute different instructions are reported as divergence
		}
		args.Mask |= 1 << o.Lane
		for k, v := range o.Sources {
			args.S[k][o.Lane] = v
		}
	}
	q.inst.Lanes(q.inst.Inst, &args)
	return args.D[0][q.Lane]&(1<<32-1) | args.D[1][q.Lane]<<32, args.Astray>>q.Lane&1 == 0
}

// maxSilent is the greatest number of instructions of a thread between two requests.
const maxSilent = 1 << 20

// Exchanges reports whether what an atomic operation writes does not depend on the old value.
func (q *Request) Exchanges() bool { return q.inst.Op == isa.OpExch }

// ThreadOptions are options of NewThreads.
type ThreadOptions struct {
	Dependencies bool // requests say which loads they depend on
	Words        bool // atomic operations on elements of words are those of the words
	// Registers are slots of the kernel's registers whose values are part of every state: see Threads.Register.
	Registers []int32
}

// Narrow says that some atomic operations of words are those of elements.
func (t *Threads) Narrow() bool { return t.r.elements != nil }

// NewThreads prepares the threads of a launch. Call Close to end it.
func NewThreads(l *Launch, o ThreadOptions) *Threads {
	alone := *l
	alone.Sink, alone.Needs, alone.OnFault, alone.Printf, alone.Progress = nil, 0, nil, nil, nil
	alone.Schedule = Fair
	t := &Threads{live: map[*loader.Code]*liveness{}, loops: map[*loader.Code][]bool{}, registers: o.Registers}
	t.r = NewRun(context.Background(), &alone)
	t.r.Machine = refMachine{t.r}
	if !o.Words {
		t.r.placeElements()
	}
	for b := range uint32(l.Grid.Count()) {
		t.ctas = append(t.ctas, t.r.single(b))
	}
	t.reads, t.clocks = o.Dependencies, t.Count() > 0 && t.readsClocks()
	if t.reads || t.clocks {
		t.depends = &depends{}
	}
	return t
}

// Stop makes the threads stop, with a RequestStop, at branches: before them, before their targets and after them.
// Kernels that read clocks do not stop: paths that a clock decides between must lead to one request.
func (t *Threads) Stop() {
	if !t.clocks {
		t.stops = map[*loader.Code][]bool{}
	}
}

// stopsAt reports whether the lane is at such a point.
func (t *Threads) stopsAt(ln *lane) bool {
	if t.stops == nil {
		return false
	}
	at, ok := t.stops[ln.code]
	if !ok {
		at = make([]bool, len(ln.code.Insts)+1)
		for pc := range ln.code.Insts {
			for _, to := range ln.code.Insts[pc].Targets {
				at[to], at[pc], at[pc+1] = true, true, true
			}
		}
		t.stops[ln.code] = at
	}
	return at[ln.pc]
}

// Close frees the launch's memory on the device.
func (t *Threads) Close() {
	if t.r.workspace != 0 {
		_, _ = t.r.Memory.Free(t.r.workspace) // the address is not known elsewhere
	}
}

// Timed reports whether a thread may read a clock, and that this is explored.
func (t *Threads) Timed() bool { return t.clocks }

// Initial returns the content of memory before the launch. Shared memory is zero.
func (t *Threads) Initial(space event.Space, addr uint64, size uint8) uint64 {
	if space != event.Global {
		return 0
	}
	b := t.r.Memory.Lookup(addr) // checked when the request was made
	off := addr - b.Addr
	return devmem.Uint(b.Data[off:off+uint64(size)], uint64(size)) // may be past the end, see isa.Inst.Word
}

// Count returns the number of threads.
func (t *Threads) Count() int { return int(t.r.Launch.Grid.Count() * t.r.Launch.Block.Count()) }

// lane returns thread n of the launch, blocks one after the other.
func (t *Threads) lane(n int) (*Warp, int) {
	block := int(t.r.Launch.Block.Count())
	in := n % block
	return t.ctas[n/block].Warps[in/32], in % 32
}

// Start runs thread n to its first request.
func (t *Threads) Start(n int) (State, Request) {
	w, i := t.lane(n)
	clear(w.lanes[i].param)
	w.lanes[i].start(t.r, w.tid(i))
	if t.depends != nil {
		*t.depends = depends{}
		t.depends.fit(&w.lanes[i])
	}
	t.forks = 0
	return t.run(w, i, nil, false)
}

// Resume completes the request of thread n in state s, and runs the thread to its next request. For dependencies, reads
// may give the number of reads that each piece of the instruction has taken so far; by default one each.
func (t *Threads) Resume(n int, s State, value uint64, reads ...int) (State, Request) {
	w, i := t.lane(n)
	pending, stopped := t.decode(&w.lanes[i], s)
	again := stopped
	if !stopped {
		var fault *Request
		if pending, again, fault = t.complete(w, i, pending, value, reads); fault != nil {
			return t.encode(&w.lanes[i], []uint64{value}, fault) // a state with read values is not a state before the operation
		}
	}
	t.forks = 0
	return t.run(w, i, pending, again)
}

// Register returns the value of a register of the kernel, one of ThreadOptions.Registers, in a state of thread n.
func (t *Threads) Register(n int, s State, slot int32) uint64 {
	w, i := t.lane(n)
	t.decode(&w.lanes[i], s)
	return w.lanes[i].allRegs[slot]
}

// complete finishes the request at which lane i stands, unless what it has read is a fault. A vector is accessed element by element; pending has the elements that
// have been read, or as many values as have been written. again says that there are more.
func (t *Threads) complete(w *Warp, i int, pending []uint64, value uint64, reads []int) (rest []uint64, again bool, fault *Request) {
	ln := &w.lanes[i]
	in := &ln.code.Insts[ln.pc]
	t.returns(ln, in, len(pending), reads)
	if t.r.elements != nil && (in.Class == isa.Load || in.Class == isa.Atomic) {
		value = t.r.around(w, i, in, ln.place(), value)
	}
	switch in.Class {
	case isa.Load, isa.Store:
		if pending = append(pending, value); len(pending) < in.Pieces() {
			return pending, true, nil
		}
		for _, d := range in.Results {
			v := pending[d.At]
			if in.Type.Signed() {
				v = in.Type.Extend(v, in.Dst[d.At].Size)
			}
			t.r.Machine.Put(w, i, d, v)
		}
	case isa.Atomic:
		for _, d := range in.Results {
			t.r.Machine.Put(w, i, d, in.Type.Extend(value, in.Dst[d.At].Size))
		}
	case isa.Barrier:
		for _, d := range in.Results {
			t.r.Machine.Put(w, i, d, value)
		}
	case isa.Warp:
		for _, d := range in.Results {
			t.r.Machine.Put(w, i, d, value>>(32*d.At)&(1<<32-1))
		}
	case isa.Mbarrier:
		result, fault := t.completeMbarrier(w, i, in, value)
		if fault != nil {
			fault.Place = ln.place()
			return nil, false, fault
		}
		t.r.give(w, i, in, result)
	}
	ln.pc++
	return nil, false, nil
}

// returns updates dependencies for the value that a lane's request is resumed with, for piece number piece of its
// instruction. made gives the number of reads for each piece so far; nil: one each.
func (t *Threads) returns(ln *lane, in *loader.Instr, piece int, made []int) {
	d := t.depends
	if t.clocks || t.reads && in.Class == isa.Warp { // memory does not depend on clocks; and the result of an exchange depends on the reads of other lanes too
		d.results(ln, in, func(r int32) { *d.reg(ln, r) = 0 })
	}
	reads := in.Class == isa.Load || in.Class == isa.Atomic || in.Class == isa.Mbarrier && in.Op != isa.OpInit && in.Op != isa.OpInval
	if !t.reads || !reads {
		return
	}
	of := func(piece int) uint64 {
		if piece < len(made) {
			return uint64(made[piece])
		}
		return 1
	}
	d.reads += of(piece)
	if in.Class == isa.Load && piece+1 < in.Pieces() {
		return
	}
	sets, end := make([]uint64, piece+1), d.reads
	for k := piece; k >= 0; k-- {
		for range of(k) {
			end--
			sets[k] |= t.bit(end)
		}
	}
	for k := range in.Dst {
		if in.Dst[k].Kind == isa.Reg {
			*d.reg(ln, in.Dst[k].Reg) = sets[min(k, piece)]
		}
	}
}

// run executes lane i up to its next request. within says that its current instruction has been started.
func (t *Threads) run(w *Warp, i int, pending []uint64, within bool) (State, Request) {
	r, ln := t.r, &w.lanes[i]
	w.group, w.lead = 1<<i, i
	back := false
	for range maxSilent {
		if int(ln.pc) >= len(ln.code.Insts) {
			panic("BUG: a thread runs past the end of its function")
		}
		in := &ln.code.Insts[ln.pc]
		place := ln.place()
		if !within && t.stopsAt(ln) {
			return t.encode(ln, nil, &Request{Kind: RequestStop, Place: place, Back: back, inst: in})
		}
		within = false
		if t.clocks {
			if s, q, ok := t.timed(w, i, in, place); ok {
				q.Back = q.Back || back
				return s, q
			}
		}
		if in.Guard >= 0 && (ln.regs[in.Guard]&1 != 0) == in.GuardNot {
			if t.depends != nil {
				t.depends.skip(ln, in)
			}
			ln.pc++
			continue
		}
		if q, ok := t.request(w, i, in, place, len(pending)); ok {
			q.Place, q.Back, q.inst = place, back, in
			q.Repeats = t.repeats(ln)
			if t.depends != nil {
				q.Depends, q.Control = t.told(t.depends.request(ln, in)), t.told(t.depends.control)
			}
			return t.encode(ln, pending, &q)
		}
		if t.clocks && readsClock(in.Inst) {
			for _, d := range in.Results {
				t.r.Machine.Put(w, i, d, 0)
			}
			t.depends.results(ln, in, func(r int32) { *t.depends.reg(ln, r) = t.depends.guard(ln, in) | shown })
			ln.pc++
			continue
		}
		from, depth := ln.pc, ln.depth
		if in.Class != isa.Branch {
			ln.pc++
		}
		t.perform(w, i, in, func() { r.perform(w, in, w.group, place) })
		if len(r.Faults.list) > 0 || r.Stop != nil {
			q := Request{Kind: RequestFault, Place: place, Fault: r.Faults.list[0].Kind, Message: r.Faults.list[0].Message, Back: back, inst: in}
			r.Faults, r.Stop = faultLog{}, nil
			ln.depth, ln.pc = depth, from
			return t.encode(ln, nil, &q)
		}
		back = back || ln.depth == depth && ln.pc <= from
	}
	return t.encode(ln, nil, &Request{Kind: RequestUnsupported, Place: ln.place(),
		Message: fmt.Sprintf("a thread executes %d instructions and accesses no memory of others: it may never end", maxSilent)})
}

// request describes the request of the instruction at which lane i is; false if it affects the lane alone.
func (t *Threads) request(w *Warp, i int, in *loader.Instr, place uint32, piece int) (Request, bool) {
	r, ln := t.r, &w.lanes[i]
	unsupported := func(why string) (Request, bool) {
		return Request{Kind: RequestUnsupported, Message: fmt.Sprintf("%s%s: %s", in.Source.Op, in.Source.Mods, why)}, true
	}
	switch in.Class {
	case isa.Load, isa.Store, isa.Atomic:
		return t.access(w, i, in, place, piece)
	case isa.Fence:
		if in.Row.Event == event.InitFence {
			return Request{}, false // it releases the stores of mbarrier.init, which matters between blocks of a cluster
		}
		return Request{Kind: RequestFence, Order: in.Order, Scope: in.Scope}, true
	case isa.Barrier:
		return t.barrier(w, i, in)
	case isa.WarpBarrier:
		return t.members(w, i, in, &in.Operands[0])
	case isa.Warp:
		if !in.Masked && in.Source.Op == "activemask" {
			return Request{Kind: RequestBarrier, Members: 1<<32 - 1, Warp: true, Lane: uint8(i), Converges: true, Stack: stackOf(ln)}, true
		}
		if !in.Masked {
			return unsupported("threads are explored one by one, and this needs the warp")
		}
		q, ok := t.members(w, i, in, &in.Operands[len(in.Operands)-1])
		q.Warp, q.Aligned, q.Lane = true, true, uint8(i)
		for k := range in.Operands[:len(in.Operands)-1] {
			q.Sources[k] = r.value(w, i, &in.Operands[k])
		}
		return q, ok
	case isa.Matrix, isa.Tile, isa.Warpgroup:
		return unsupported("threads are explored one by one, and this needs the warp")
	case isa.Mbarrier:
		return t.mbarrier(w, i, in)
	case isa.Copy:
		if in.Op == isa.OpGridLaunch || in.Op == isa.OpGridWait { // launches are explored one by one
			return Request{}, false
		}
		return unsupported("asynchronous operations are not explored")
	case isa.Texture:
		return unsupported("textures and surfaces are not explored")
	case isa.Exit:
		return Request{Kind: RequestExit}, true
	case isa.Ret:
		return Request{Kind: RequestExit}, w.lanes[i].depth == 0
	case isa.Hint:
		if in.Source.Op == "fence" || in.Source.Op == "membar" {
			return unsupported("the model has no proxies")
		}
	case isa.Special:
		if readsClock(in.Inst) && !t.clocks {
			return unsupported("what a clock shows is not explored")
		}
	case isa.Call:
		fn := in.Callee
		if fn == nil {
			fn = r.p.FuncAt(r.value(w, i, &in.Operands[0]))
		}
		if fn != nil && fn.DeviceCall() != "" {
			return unsupported("cuda" + fn.DeviceCall() + " in device code is not explored")
		}
		if fn != nil && (fn.Builtin == "malloc" || fn.Builtin == "free") {
			return Request{Kind: RequestUnsupported, Message: "device-side " + fn.Builtin + ": memory that a kernel allocates is not explored"}, true
		}
	}
	return Request{}, false
}

// stackOf identifies the position of a lane by the places in its frames.
func stackOf(ln *lane) string {
	var b []byte
	for k := range ln.up {
		b = binary.LittleEndian.AppendUint32(b, uint32(ln.up[k].pc))
	}
	return string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(ln.pc)), uint32(ln.code.Func.Index)))
}

// access describes a load, store or atomic operation on memory that others can see.
func (t *Threads) access(w *Warp, i int, in *loader.Instr, place uint32, piece int) (Request, bool) {
	r := t.r
	addr, space := r.value(w, i, &in.Operands[0])+in.Offset, in.Space
	if space == event.Generic {
		space, addr = SplitGeneric(addr)
	}
	q := Request{Order: in.Order, Scope: in.Scope, Space: space, NonCoherent: in.NonCoherentLoad, Size: uint8(in.Piece)}
	flags, kind := event.FlagRead, FaultKind("")
	q.Kind = RequestLoad
	switch in.Class {
	case isa.Store:
		q.Kind, flags = RequestStore, event.FlagWrite
	case isa.Atomic:
		q.Kind, flags = RequestAtomic, event.FlagRead|event.FlagWrite
	}
	switch space {
	case event.Global:
		_, kind = r.global(addr, in, flags, place)
	case event.Shared:
		if _, kind = sharedWindow(w.CTA, in, addr); kind == "" && in.VarEnd != 0 && (addr < in.VarBegin || addr+in.Width > in.VarEnd) {
			r.Faults.beside(r, w, i, place, touch{flags, space, addr, in.Width}, in.Object)
			q = Request{Kind: RequestFault, Fault: OutOfVariable, Message: r.Faults.list[0].Message}
			r.Faults = faultLog{}
			return q, true
		}
	default: // the thread's own memory, or a fault
		return Request{}, false
	}
	if kind != "" {
		return Request{}, false // a fault
	}
	if in.Pieces() > 1 && in.Order != event.Weak && in.Order != event.Volatile {
		return Request{Kind: RequestUnsupported, Message: fmt.Sprintf("%s%s: an atomic access of more than 8 bytes or of a vector", in.Source.Op, in.Source.Mods)}, true
	}
	q.Addr = addr + uint64(piece)*in.Piece
	q.Piece, q.Pieces = uint8(piece), uint8(in.Pieces())
	if in.Class != isa.Load {
		q.Value = LowBytes(r.value(w, i, &in.Operands[1+piece]), in.Piece)
	}
	q.Reduction = in.Class == isa.Atomic && len(in.Results) == 0
	if in.Op == isa.OpCas {
		q.Swap = LowBytes(r.value(w, i, &in.Operands[2]), in.Piece)
	}
	if r.elements != nil {
		q.narrow(r, w, i, in, place)
	}
	return q, true
}

// members describes a barrier of the lanes in a mask.
func (t *Threads) members(w *Warp, i int, in *loader.Instr, mask *loader.Operand) (Request, bool) {
	members := uint32(t.r.value(w, i, mask))
	if members>>i&1 == 0 {
		return Request{Kind: RequestFault, Fault: MemberMask,
			Message: fmt.Sprintf("the mask %#x of %s does not name the lane %d that executes it", members, in.Source.Op+in.Source.Mods, i)}, true
	}
	return Request{Kind: RequestBarrier, Members: members}, true
}

// barrier describes a barrier of the block.
func (t *Threads) barrier(w *Warp, i int, in *loader.Instr) (Request, bool) {
	id, count := t.r.barrierOperands(w, in, i)
	unsupported := func(format string, args ...any) (Request, bool) {
		return Request{Kind: RequestUnsupported, Message: fmt.Sprintf("%s%s: ", in.Source.Op, in.Source.Mods) + fmt.Sprintf(format, args...)}, true
	}
	switch {
	case id >= uint64(len(w.CTA.Bars)):
		return Request{Kind: RequestFault, Fault: BarrierDivergence,
			Message: fmt.Sprintf("barrier %d does not exist: a block has barriers 0 to %d", id, len(w.CTA.Bars)-1)}, true
	case count != AllThreads && count != 32*int(t.r.Launch.WarpsPerBlock()): // lanes that a warp lacks count
		return unsupported("a barrier of %d threads, and the block has %d: barriers of a part of the block are not explored", count, t.r.Launch.Block.Count())
	case in.Op == isa.OpArrive:
		return Request{Kind: RequestArrive, Barrier: uint8(id)}, true
	}
	q := Request{Kind: RequestBarrier, Barrier: uint8(id), Aligned: in.Aligned && count == AllThreads}
	if in.Op != isa.OpSync {
		q.Reduce, q.Value = in.Op, t.r.value(w, i, &in.Operands[2])&1
	}
	return q, true
}

// repeats reports whether the lane is in a loop of a function on its stack.
func (t *Threads) repeats(ln *lane) bool {
	at := func(f *frame) bool {
		in, ok := t.loops[f.code]
		if !ok {
			in = make([]bool, len(f.code.Insts)+1)
			for pc := range f.code.Insts {
				for _, to := range f.code.Insts[pc].Targets {
					for k := int(to); k <= pc; k++ {
						in[k] = true
					}
				}
			}
			t.loops[f.code] = in
		}
		return in[f.pc]
	}
	for i := range ln.up {
		if at(&ln.up[i]) {
			return true
		}
	}
	return at(&ln.frame)
}

// encode returns the state of a lane at a request: its call stack, and those registers and parameters that may be read
// before they are written; the others are zero. Local memory is included completely, since pointers may refer to it.
func (t *Threads) encode(ln *lane, pending []uint64, q *Request) (State, Request) {
	b := make([]byte, 0, t.states)
	word := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	word(uint64(ln.depth))
	if q.Kind == RequestStop {
		word(stopped)
	} else {
		word(uint64(len(pending)))
	}
	for _, v := range pending {
		word(v)
	}
	keep := func(f *frame, live []uint64) {
		fn := f.code.Func
		word(uint64(fn.Index)<<32 | uint64(uint32(f.pc)))
		word(uint64(f.base))
		for i := range fn.Regs {
			if v := ln.allRegs[int(f.regAt)+i]; v != 0 && live[i>>6]>>(i&63)&1 != 0 {
				word(uint64(i))
				word(v)
			}
		}
		word(^uint64(0))
		for i := range fn.ParamFrame {
			v := ln.param[int(f.paramAt)+i]
			if k := fn.Regs + i; live[k>>6]>>(k&63)&1 == 0 {
				v = 0
			}
			b = append(b, v)
		}
	}
	t.frames(ln, keep)
	if t.r.elements != nil {
		ln.elements = slices.DeleteFunc(ln.elements, func(x aligned) bool { return x.depth > ln.depth }) // of calls that have returned
		word(uint64(len(ln.elements)))
		for _, x := range ln.elements {
			word(uint64(x.number)<<32 | uint64(x.depth))
			word(x.addr & 7) // the offset in the word
		}
	}
	q.Local = len(b)
	b = append(b, ln.local[:int(ln.localAt)+ln.code.Func.LocalFrame]...)
	if q.Plain = len(b); t.depends != nil {
		b = t.depends.encode(b, ln, func(f func(f *frame, live []uint64)) { t.frames(ln, f) })
	}
	t.states = max(t.states, len(b))
	return State(b), *q
}

// frames calls f for each frame of a lane, outermost first, with the registers and parameters that may still be read.
func (t *Threads) frames(ln *lane, f func(f *frame, live []uint64)) {
	for i := range ln.up {
		up := &ln.up[i]
		f(up, t.liveness(up.code).during(int(up.pc)-1))
	}
	f(&ln.frame, t.liveness(ln.code).before(int(ln.pc)))
}

// stopped replaces the number of accessed elements in a State if the request is a RequestStop.
const stopped = 1 << 32

// decode sets a lane to a state. It returns the elements of a vector that have been accessed, and whether the request
// is a RequestStop.
func (t *Threads) decode(ln *lane, s State) (pending []uint64, stop bool) {
	b := []byte(s)
	word := func() uint64 {
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return v
	}
	depth := int(word())
	n := word()
	if stop = n == stopped; stop {
		n = 0
	}
	for ; n > 0; n-- {
		pending = append(pending, word())
	}
	clear(ln.allRegs)
	clear(ln.param)
	clear(ln.local)
	ln.up, ln.depth = ln.up[:0], int32(depth)
	var last frame
	for level := range depth + 1 {
		at := word()
		f := frame{code: t.r.Image.Code(t.r.p.Module.Funcs[at>>32]), pc: int32(uint32(at)), base: uint32(word())}
		if level > 0 {
			up := last.code.Func
			f.regAt, f.paramAt, f.localAt = last.regAt+int32(up.Regs), last.paramAt+int32(up.ParamFrame), loader.FrameAt(last.localAt, up)
			ln.up = append(ln.up, last)
		}
		ln.frame, last = f, f
		ln.fit()
		for i := word(); i != ^uint64(0); i = word() {
			ln.regs[i] = word()
		}
		n := f.code.Func.ParamFrame
		copy(ln.param[f.paramAt:], b[:n])
		b = b[n:]
	}
	if ln.elements = ln.elements[:0]; t.r.elements != nil {
		for range word() {
			at := word()
			ln.elements = append(ln.elements, aligned{int32(at >> 32), int32(uint32(at)), word()})
		}
	}
	local := copy(ln.local[:int(ln.localAt)+ln.code.Func.LocalFrame], b)
	if t.depends != nil {
		t.depends.decode(ln, b[local:])
	}
	return pending, stop
}

// liveness says which registers and bytes of the parameter frame of a function (numbered in this order) may be read
// before they are written.
type liveness struct {
	fn    *isa.Func
	words int
	in    []uint64 // before each instruction, and after the last
}

func (l *liveness) before(pc int) []uint64 { return l.in[pc*l.words : (pc+1)*l.words] }

// during returns what the caller may still read while the call at pc has not returned.
func (l *liveness) during(pc int) []uint64 {
	out := append([]uint64(nil), l.before(pc+1)...)
	in := &l.fn.Insts[pc]
	l.writes(in, func(from, n int) {
		for i := from; i < from+n; i++ {
			out[i>>6] &^= 1 << (i & 63)
		}
	})
	return out
}

func (t *Threads) liveness(c *loader.Code) *liveness {
	l := t.live[c]
	if l == nil {
		l = newLiveness(c)
		if c.Func == t.r.Launch.Func {
			l.keep(t.registers)
		}
		t.live[c] = l
	}
	return l
}

// newLiveness computes liveness by backward data-flow analysis.
func newLiveness(c *loader.Code) *liveness {
	fn := c.Func
	l := &liveness{fn: fn, words: (fn.Regs + fn.ParamFrame + 63) / 64}
	l.in = make([]uint64, (len(fn.Insts)+1)*l.words)
	out := make([]uint64, l.words)
	set := func(from, n int) {
		for i := from; i < from+n; i++ {
			out[i>>6] |= 1 << (i & 63)
		}
	}
	reset := func(from, n int) {
		for i := from; i < from+n; i++ {
			out[i>>6] &^= 1 << (i & 63)
		}
	}
	for changed := true; changed; {
		changed = false
		for pc := len(fn.Insts) - 1; pc >= 0; pc-- {
			in := &fn.Insts[pc]
			clear(out)
			successors(fn, pc, func(to int) {
				for k, w := range l.before(to) {
					out[k] |= w
				}
			})
			if in.Guard < 0 {
				l.writes(in, reset)
			}
			l.reads(&c.Insts[pc], set)
			for k, w := range out {
				changed = changed || l.before(pc)[k] != w
			}
			copy(l.before(pc), out)
		}
	}
	return l
}

// keep makes registers live everywhere.
func (l *liveness) keep(registers []int32) {
	for at := 0; at < len(l.in); at += l.words {
		for _, r := range registers {
			l.in[at+int(r>>6)] |= 1 << (r & 63)
		}
	}
}

// writes calls f for what an instruction overwrites, wherever it is executed.
func (l *liveness) writes(in *isa.Inst, f func(from, n int)) {
	for i := range in.Dst {
		if in.Dst[i].Kind == isa.Reg {
			f(int(in.Dst[i].Reg), 1)
		}
	}
	for k := range in.RetOps {
		switch o := &in.RetOps[k]; {
		case o.Kind == isa.Reg:
			f(int(o.Reg), 1)
		case o.Kind == isa.ParamAddr && in.Callee != nil:
			f(l.fn.Regs+int(o.Imm), in.Callee.Sig.Rets[k].Size)
		}
	}
	if in.Class == isa.Store && in.Space == event.Param && in.Src[0].Kind == isa.ParamAddr {
		f(l.fn.Regs+int(in.Src[0].Imm)+int(in.Off), in.Type.Size()*int(max(in.Vec, 1)))
	}
}

// reads calls f for what an instruction may read.
func (l *liveness) reads(in *loader.Instr, f func(from, n int)) {
	fn := l.fn
	if in.Guard >= 0 {
		f(int(in.Guard), 1)
	}
	for i := range in.Src {
		if in.Src[i].Kind == isa.Reg {
			f(int(in.Src[i].Reg), 1)
		}
	}
	switch in.Class {
	case isa.Load:
		switch {
		case in.Space == event.Param && in.Inst.Src[0].Kind == isa.ParamAddr:
			f(fn.Regs+int(in.Src[0].Imm)+int(in.Off), int(in.Width))
		case in.Space == event.Param:
			f(fn.Regs, fn.ParamFrame)
		}
	case isa.Call:
		for k := range in.ArgOps {
			switch o := &in.ArgOps[k]; {
			case o.Kind == isa.Reg:
				f(int(o.Reg), 1)
			case o.Kind == isa.ParamAddr:
				n := fn.ParamFrame - int(o.Imm)
				if in.Callee != nil && k < len(in.Callee.Sig.Params) {
					n = in.Callee.Sig.Params[k].Size
				}
				f(fn.Regs+int(o.Imm), n)
			}
		}
	case isa.Ret:
		if fn.Entry {
			return
		}
		for k := range fn.Sig.Rets {
			if p := &fn.Sig.Rets[k]; p.Off >= 0 {
				f(fn.Regs+p.Off, p.Size)
			} else {
				f(int(p.Reg), 1)
			}
		}
	}
}
