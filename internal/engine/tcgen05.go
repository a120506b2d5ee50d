package engine

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// cores is a block's state of the tensor cores: its tensor memory, and the operations that its threads have issued.
type cores struct {
	words   []uint32 // tensor memory, numbered like event.TensorWord; nil before the first allocation
	allocs  []columns
	closed  bool // no more may be allocated
	issued  []*coreOp
	commits []coreCommit // those that name a barrier of the block
}

// columns is a range of allocated columns.
type columns struct {
	from, n int
	stand   Stand
}

// coreOp is an operation that a thread has issued and that has not been performed. With seed 0 it is performed when a
// thread tests a barrier that a later commit names, so a program that does not wait computes with the old data.
type coreOp struct {
	number  uint64 // number within the block
	warp    *Warp
	lane    int
	perform func()
}

// coreCommit is an arrival at a barrier that is pending until a thread's operations so far are complete.
type coreCommit struct {
	warp   *Warp
	lane   int
	addr   uint64
	issued uint64 // number of operations of the block before it
	number uint32 // number among the thread's commits
	place  uint32
}

// coreLoad is a tcgen05.ld that a warp has not waited for.
type coreLoad struct {
	of    *isa.Core
	place uint32
}

const unitColumns = 32 // the unit in which columns are allocated

func (k *cores) reset() {
	k.words, k.allocs, k.closed = nil, k.allocs[:0], false
	k.issued, k.commits = k.issued[:0], k.commits[:0]
}

// core executes tcgen05 for the lanes of on; operations of a warp for all of them together.
func (r *Run) core(w *Warp, in *loader.Instr, on uint32, place uint32) {
	switch in.Op {
	case isa.OpTcAlloc:
		if !r.allocate(w, in, place) {
			w.block(r, on, Standing(waitColumns, 0, 0), place)
		}
	case isa.OpTcFree:
		r.deallocate(w, in, place)
	case isa.OpTcRelinquish:
		w.CTA.cores.closed = true
	case isa.OpTcLoad, isa.OpTcStore:
		r.move(w, in, place)
	case isa.OpTcWait:
		flags := event.FlagRead
		if in.Has("wait::st") {
			flags = event.FlagWrite
		} else {
			w.async().loads = w.async().loads[:0]
		}
		if r.Out.Sync() {
			r.Out.add(event.Event{Kind: event.CoreWait, Flags: flags, Warp: w.Number, Mask: on, Place: place})
		}
	}
}

// coreLanes executes tcgen05 operations of single threads for the lanes of on.
func (r *Run) coreLanes(w *Warp, in *loader.Instr, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		switch in.Op {
		case isa.OpTcMultiply:
			r.coreMultiply(w, in, i, place)
		case isa.OpTcCopy:
			r.coreCopy(w, in, i, place)
		case isa.OpTcCommit:
			r.coreCommit(w, in, i, place)
		}
	}
}

// wrongTensor reports a use of tensor memory that violates its rules.
func (r *Run) wrongTensor(w *Warp, in *loader.Instr, lane int, place uint32, format string, args ...any) {
	r.Faults.At(r, TensorMemory, w, lane, place, "executes "+in.Mnemonic(), format, args...)
}

// allocate executes tcgen05.alloc. It returns false if it must wait for columns.
func (r *Run) allocate(w *Warp, in *loader.Instr, place uint32) bool {
	k := &w.CTA.cores
	n := int(r.Machine.Value(w, 0, &in.Operands[1]) & 0xffff_ffff)
	if n < unitColumns || n > event.TensorColumns || n&(n-1) != 0 {
		r.wrongTensor(w, in, 0, place, "%d columns of tensor memory are to be allocated: it must be a power of two from %d to %d", n, unitColumns, event.TensorColumns)
		return true
	}
	if k.closed {
		r.wrongTensor(w, in, 0, place, "tensor memory is to be allocated after tcgen05.relinquish_alloc_permit")
	}
	from := k.room(n)
	if from < 0 {
		return false
	}
	if k.words == nil {
		k.words = make([]uint32, event.TensorLanes*event.TensorColumns)
	}
	k.allocs = append(k.allocs, columns{from, n, Stand{Place: place, Block: w.CTA.id, Thread: w.tid(0), Threads: 32, Doing: "allocate it"}})
	addr := r.Machine.Value(w, 0, &in.Operands[0]) + uint64(in.Off)
	if in.Space != event.Shared {
		_, addr = SplitGeneric(addr)
	}
	data, kind := window(w.CTA.Shared, addr, 4)
	if kind != "" {
		r.Faults.access(r, kind, w, 0, place, touch{event.FlagWrite, event.Shared, addr, 4})
		return true
	}
	devmem.PutUint(data, uint64(from))
	w.Writes++
	r.Out.core(w, ^uint32(0), place, w.CTA.number(), event.CoreAllocates, event.FlagWrite, extent{addr, addr + 4})
	return true
}

// room finds the first n consecutive free columns; -1 if there are none.
func (k *cores) room(n int) int {
	for from := 0; from+n <= event.TensorColumns; from += unitColumns {
		if !slices.ContainsFunc(k.allocs, func(a columns) bool { return a.from < from+n && from < a.from+a.n }) {
			return from
		}
	}
	return -1
}

// deallocate executes tcgen05.dealloc.
func (r *Run) deallocate(w *Warp, in *loader.Instr, place uint32) {
	k := &w.CTA.cores
	from, n := int(r.Machine.Value(w, 0, &in.Operands[0])&0xffff_ffff), int(r.Machine.Value(w, 0, &in.Operands[1])&0xffff_ffff)
	i := slices.IndexFunc(k.allocs, func(a columns) bool { return a.from == from && a.n == n })
	if i < 0 {
		r.wrongTensor(w, in, 0, place, "%d columns of tensor memory at %#x are to be freed, which are not allocated so", n, from)
		return
	}
	k.allocs = slices.Delete(k.allocs, i, i+1)
	for group := 0; group < event.TensorLanes; group += 16 {
		r.Out.core(w, ^uint32(0), place, w.CTA.number(), event.CoreFrees, event.FlagWrite, extent{event.TensorWord(group, from), event.TensorWord(group, from) + 64*uint64(n)})
	}
	for _, v := range w.CTA.Warps {
		if v.Live != 0 && v.standOf(bits.TrailingZeros32(v.Live)).waits() == waitColumns {
			if lane := bits.TrailingZeros32(v.Live); !r.allocate(v, r.Machine.At(v, lane), r.Machine.Place(v, lane)) {
				continue
			}
			r.Machine.Pass(v, v.Live)
			v.wake(r, v.Live)
		}
	}
}

// endCores reports tensor memory that a block has not freed at its end.
func (r *Run) endCores(c *CTA) {
	for _, a := range c.cores.allocs {
		if f, fresh := r.Faults.count(r, TensorLeak, a.stand.Place, false); fresh {
			f.Message = "the block ends without freeing tensor memory that it has allocated: later blocks on the same processor wait for it for ever"
			f.Stands = []Stand{a.stand}
		}
	}
}

// has reports whether a range of columns is allocated.
func (k *cores) has(column, n int) bool {
	return n > 0 && column+n <= event.TensorColumns && slices.ContainsFunc(k.allocs, func(a columns) bool { return a.from <= column && column+n <= a.from+a.n })
}

// columnsOf checks that the columns that an instruction accesses are allocated.
func (r *Run) columnsOf(w *Warp, c *CTA, in *loader.Instr, lane, column, n int, place uint32) bool {
	if c.cores.has(column, n) {
		return true
	}
	r.wrongTensor(w, in, lane, place, "columns %d to %d of tensor memory are accessed, which are not allocated together", column, column+n-1)
	return false
}

// tensorExtent returns the extent of columns of 16 lanes.
func tensorExtent(lane, column, n int) extent {
	at := event.TensorWord(lane, column)
	return extent{at, at + 64*uint64(n)}
}

func (k *cores) word(lane, column int) *uint32 {
	return &k.words[(event.TensorWord(lane, column)-event.TensorBase)/4]
}

// move executes tcgen05.ld and tcgen05.st for a warp.
func (r *Run) move(w *Warp, in *loader.Instr, place uint32) {
	c, k := in.Core, &w.CTA.cores
	addr := uint32(r.Machine.Value(w, 0, &in.Operands[0]) + uint64(in.Off))
	row, column := int(addr>>16), int(addr&0xffff)
	per := 1
	if c.Packed {
		per = 2
	}
	span := per * c.Number * c.Bits / 32
	store := in.Op == isa.OpTcStore
	quarter := w.Index % groupWarps * 32
	if row < quarter || row+c.Lanes > quarter+32 || row%16 != 0 {
		r.wrongTensor(w, in, 0, place, "lanes %d to %d of tensor memory are accessed by warp %d of its block, which reaches lanes %d to %d", row, row+c.Lanes-1, w.Index, quarter, quarter+31)
		return
	}
	if !r.columnsOf(w, w.CTA, in, 0, column, span, place) || c.Halves && !r.columnsOf(w, w.CTA, in, 0, column+c.Half, span, place) {
		return
	}
	var loaded [32][]uint32 // used for reductions
	for i := range c.Registers() {
		for lane := range 32 {
			at, word := c.Cell(lane, i)
			word += column
			if c.Packed { // two columns are one word, except for the gap between the halves
				word += c.Word(lane, i)
			}
			low := k.word(row+at, word)
			switch {
			case store && c.Packed:
				v := uint32(r.Machine.Value(w, lane, &in.Operands[1+i]))
				*low, *k.word(row+at, word+1) = v&0xffff, v>>16
			case store:
				*low = uint32(r.Machine.Value(w, lane, &in.Operands[1+i]))
			case c.Packed:
				r.Machine.Put(w, lane, in.Results[i], uint64(*low&0xffff|*k.word(row+at, word+1)<<16))
			default:
				r.Machine.Put(w, lane, in.Results[i], uint64(*low))
				if c.Reduces != nil {
					loaded[lane] = append(loaded[lane], *low)
				}
			}
		}
	}
	for lane, values := range loaded {
		if values != nil {
			r.Machine.Put(w, lane, in.Results[len(values)], uint64(c.Reduces.Of(values...)))
		}
	}
	if x := (coreLoad{c, place}); !store && !slices.Contains(w.async().loads, x) {
		w.async().loads = append(w.async().loads, x)
	}
	number, flags, how := w.CTA.number(), event.FlagRead, event.CoreLoads
	if store {
		flags, how = event.FlagWrite, event.CoreStores
	}
	for group := row; group < row+c.Lanes; group += 16 {
		r.Out.core(w, ^uint32(0), place, number, how, flags, tensorExtent(group, column, span))
		if c.Halves {
			r.Out.core(w, ^uint32(0), place, number, how, flags, tensorExtent(group, column+c.Half, span))
		}
	}
}

// number numbers an asynchronous operation of the block.
func (c *CTA) number() uint64 {
	c.bulksDone++
	return c.bulksDone - 1
}

// flyCore issues a tensor core operation.
func (r *Run) flyCore(w *Warp, lane int, number uint64, perform func()) {
	w.CTA.cores.issued = append(w.CTA.cores.issued, &coreOp{number, w, lane, perform})
	_, now := r.early(w)
	if w.async().issued++; now {
		r.performCores(w, lane, number+1)
	}
}

// performCores performs the operations of a thread that precede a number.
func (r *Run) performCores(w *Warp, lane int, before uint64) {
	k := &w.CTA.cores
	k.issued = slices.DeleteFunc(k.issued, func(x *coreOp) bool {
		if x.warp != w || x.lane != lane || x.number >= before {
			return false
		}
		x.perform()
		return true
	})
}

// coreCommit executes tcgen05.commit for a lane.
func (r *Run) coreCommit(w *Warp, in *loader.Instr, lane int, place uint32) {
	addr := r.Machine.Value(w, lane, &in.Operands[0]) + uint64(in.Off)
	if !r.inShared(w, lane, in, place, addr) {
		return
	}
	if in.Space != event.Shared {
		_, addr = SplitGeneric(addr)
	}
	number := w.async().coreCommits[lane]
	w.async().coreCommits[lane]++
	to, mask := w.CTA.cluster.ctas, uint64(0)
	if in.Core.Mask {
		mask = r.Machine.Value(w, lane, &in.Operands[1])
		addr &= 1<<event.PeerShift - 1
	} else {
		of, at, ok := r.resolve(w, lane, addr, place)
		if !ok {
			return
		}
		mask, addr = 1<<of.rank, at
	}
	for rank, of := range to {
		if mask>>rank&1 == 0 {
			continue
		}
		if addr%8 != 0 || of.liveBarrier(addr) == nil {
			r.notLive(w, of, lane, in, addr, place)
			continue
		}
		of.cores.commits = append(of.cores.commits, coreCommit{w, lane, addr, w.CTA.bulksDone, number, place})
		if told := w.CTA.tell(of, addr); r.Out.Sync() {
			r.Out.add(event.Event{Kind: event.CoreCommit, Warp: w.Number, Mask: 1 << lane, Place: place, Addr: told, Stride: int64(number)})
		}
	}
}

// tell converts an address of the shared memory of a block of the cluster to the form in events of block of.
func (c *CTA) tell(of *CTA, addr uint64) uint64 {
	if of == c {
		return addr
	}
	return addr | uint64(of.rank+1)<<event.PeerShift
}

// completeCores performs the operations whose commits name the barrier, one commit after the other, until the phase
// that the test is for is complete.
func (x *mbarrierOp) completeCores() {
	for k := &x.of.cores; ; {
		i := slices.IndexFunc(k.commits, func(c coreCommit) bool { return c.addr == x.addr })
		if i < 0 || x.phaseDone() {
			return
		}
		c := k.commits[i]
		k.commits = slices.Delete(k.commits, i, i+1)
		x.r.performCores(c.warp, c.lane, c.issued)
		if o := &x.r.Out; o.Sync() {
			o.add(event.Event{Kind: event.CoreDone, Warp: c.warp.Number, Mask: 1 << c.lane, Place: c.place, Addr: c.warp.CTA.tell(x.of, x.addr), Stride: int64(c.number)})
		}
		x.arrive(1, false)
	}
}

// core emits the event of a half of an operation.
func (o *Emitter) core(w *Warp, mask uint32, place uint32, number uint64, how uint8, flags event.Flags, e extent) {
	if o.Needs&event.NeedShared != 0 {
		o.add(event.Event{Kind: event.Core, Flags: flags, Warp: w.Number, Mask: mask, Place: place, Addr: e.from, Stride: int64(number), Barrier: how,
			Space: event.Shared, Aux: uint32(e.end - e.from)})
	}
}
