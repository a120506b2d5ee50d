package engine

import (
	"fmt"
	"math/bits"
	"sort"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// AllThreads is the expected count of a barrier without a thread count: every live thread of the block.
const AllThreads = -1

// barrier is one of the 16 barriers of a block (PTX ISA, "Parallel Synchronization and Communication Instructions:
// bar, barrier"). Threads arrive one by one, as since Volta.
type barrier struct {
	Expect int      // AllThreads, a thread count, or 0 if no thread has arrived
	Count  int      // arrivals
	got    []uint32 // by warp: lanes that arrived
	Wait   []uint32 // by warp: lanes that wait
	passed []uint32 // by warp: lanes that had passed the barrier when others of the warp arrived
	// For bar.red, over all arrivals.
	Reduced bool
	popc    uint32
	and, or bool
	Sites   []site
	whole   bool // the warps are in lockstep
	Told    bool // a mismatch of counts has been reported, so the places need not be
}

// site is an instruction by which threads arrived, to check that all used the same one.
type site struct {
	Place   uint32
	aligned bool
	block   event.Dim3
	thread  event.Dim3
	threads int
	warps   uint32 // bit i: lanes of warp i arrived by it
}

// Reset returns the barrier to the state in which no thread has arrived.
func (b *barrier) Reset() {
	b.Expect, b.Count, b.popc, b.and, b.or = 0, 0, 0, true, false
	clear(b.got)
	clear(b.Wait)
	clear(b.passed)
	b.Reduced = false
	b.Sites, b.Told = b.Sites[:0], false
}

// arrived returns the number of threads that a barrier counts. For a barrier with a thread count, a warp of which every
// live lane has arrived counts in full: lanes that have exited or never existed do not delay it. A warp in lockstep
// arrives as a whole when any of its lanes does.
func (b *barrier) arrived(c *CTA) int {
	n := b.Count
	for i, got := range b.got {
		live := c.Warps[i].Live
		switch {
		case got == 0:
		case b.Expect != AllThreads && (b.whole || live&^got == 0):
			n += 32 - bits.OnesCount32(got)
		case b.whole:
			n += bits.OnesCount32(live &^ got)
		}
	}
	return n
}

// Barrier executes bar and barrier for the lanes of on.
func (r *Run) Barrier(w *Warp, in *loader.Instr, on uint32, place uint32) {
	if in.Operands[0].Same() && (in.Src[1].Kind == isa.Sink || in.Operands[1].Same()) {
		id, count := r.barrierOperands(w, in, bits.TrailingZeros32(on))
		r.arrive(w, in, on, place, id, count)
		return
	}
	// All lanes have the same operands, except for the predicate of bar.red. If they do not, the lanes arrive in groups
	// with the same barrier and count.
	for on != 0 {
		first := bits.TrailingZeros32(on)
		id, count := r.barrierOperands(w, in, first)
		same := uint32(0)
		for m := on; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			if id2, count2 := r.barrierOperands(w, in, i); id2 == id && count2 == count {
				same |= 1 << i
			}
		}
		on &^= same
		r.arrive(w, in, same, place, id, count)
	}
}

// barrierOperands returns the barrier and the thread count for a lane; AllThreads if there is no count.
func (r *Run) barrierOperands(w *Warp, in *loader.Instr, lane int) (id uint64, count int) {
	id = r.Machine.Value(w, lane, &in.Operands[0]) & 0xffff_ffff
	if in.Src[1].Kind == isa.Sink {
		return id, AllThreads
	}
	return id, int(r.Machine.Value(w, lane, &in.Operands[1]) & 0xffff_ffff)
}

// arrive makes lanes of one warp arrive at one barrier.
func (r *Run) arrive(w *Warp, in *loader.Instr, on uint32, place uint32, id uint64, count int) {
	first := bits.TrailingZeros32(on)
	if id >= uint64(len(w.CTA.Bars)) {
		r.Faults.At(r, BarrierDivergence, w, first, place, "arrives", "barrier %d does not exist: a block has barriers 0 to 15", id)
		return
	}
	if count != AllThreads && (count == 0 || count%32 != 0) {
		r.Faults.At(r, BarrierDivergence, w, first, place, "arrives", "barrier %d is given a thread count of %d, which is not a positive multiple of 32", id, count)
		return
	}
	b := &w.CTA.Bars[id]
	w.CTA.Met |= 1 << id
	if b.Expect != 0 && b.Expect != count {
		r.Faults.At(r, BarrierDivergence, w, first, place, "arrives", "threads arrive at barrier %d expecting %s, others that wait there expect %s", id, expects(count), expects(b.Expect))
		count, b.Told = b.Expect, true
	}
	b.Expect = count
	if b.whole = r.Launch.Schedule == Lockstep; b.whole && on != w.Live {
		r.Faults.At(r, BarrierDivergence, w, first, place, "arrives", "barrier %d is reached by lanes %#x of a warp while lanes %#x are elsewhere: warps in lockstep must not diverge here", id, on, w.Live&^on)
		b.Told = true
	}
	b.Join(w, on)
	b.Enter(in, w, on, place)
	if in.Aligned && count == AllThreads && !b.whole && on != w.Live {
		b.passed[w.Index] |= r.passed(w, w.Live&^b.got[w.Index], place)
	}
	waits := in.Op != isa.OpArrive
	if in.Op != isa.OpSync && waits {
		r.reduce(b, w, in, on)
	}
	flags, threads := event.Flags(0), count
	if waits {
		flags |= event.FlagWait
		b.Wait[w.Index] |= on
		w.block(r, on, Standing(WaitBarrier, uint8(id), 0), place) // they are here until the barrier completes
	}
	if count == AllThreads {
		threads = 0
		if in.Aligned {
			flags |= event.FlagAligned
		}
	}
	r.Out.Arrive(w, on, place, uint8(id), flags, threads)
	r.complete(b, uint8(id), w, on, place)
}

func expects(count int) string {
	if count == AllThreads {
		return "all threads of the block"
	}
	return fmt.Sprintf("%d threads", count)
}

// Join counts the arrival of the lanes of on.
func (b *barrier) Join(w *Warp, on uint32) {
	if len(b.got) < len(w.CTA.Warps) {
		n := len(w.CTA.Warps)
		b.got, b.Wait, b.passed = make([]uint32, n), make([]uint32, n), make([]uint32, n)
	}
	b.got[w.Index] |= on
	b.Count += bits.OnesCount32(on)
}

// Enter records the instruction by which lanes arrived.
func (b *barrier) Enter(in *loader.Instr, w *Warp, on uint32, place uint32) {
	n := bits.OnesCount32(on)
	for i := range b.Sites {
		if b.Sites[i].Place == place {
			b.Sites[i].Add(w, n)
			return
		}
	}
	b.Sites = append(b.Sites, site{Place: place, aligned: in.Aligned, block: w.CTA.id, thread: w.tid(bits.TrailingZeros32(on)),
		threads: n, warps: 1 << w.Index})
}

// Add counts n threads of w.
func (s *site) Add(w *Warp, n int) {
	s.threads += n
	s.warps |= 1 << w.Index
}

// reduce includes the predicates of bar.red.
func (r *Run) reduce(b *barrier, w *Warp, in *loader.Instr, on uint32) {
	b.Reduced = true
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		p := r.Machine.Value(w, i, &in.Operands[2])&1 != 0
		if p {
			b.popc++
		}
		b.and = b.and && p
		b.or = b.or || p
	}
}

// complete lets the waiting threads of a barrier continue if enough have arrived.
func (r *Run) complete(b *barrier, id uint8, w *Warp, on uint32, place uint32) {
	c := w.CTA
	if b.Expect == 0 || b.arrived(c) < b.needs(c) {
		return
	}
	if b.Expect == AllThreads {
		r.CheckSites(b, id, c)
	}
	r.Out.BarrierDone(w, on, place, id)
	c.CountBarrier()
	for _, v := range c.Warps {
		if woken := b.Wait[v.Index]; woken != 0 {
			r.Wake(b, v, woken)
		}
	}
	b.Reset()
}

// Wake lets the lanes of woken, which wait at b, continue.
func (r *Run) Wake(b *barrier, w *Warp, woken uint32) {
	for m := woken; b.Reduced && m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if in := r.Machine.At(w, i); len(in.Results) > 0 {
			r.Machine.Put(w, i, in.Results[0], b.result(in))
		}
	}
	r.Machine.Pass(w, woken)
	w.wake(r, woken)
}

// needs returns the number of threads that complete the barrier.
func (b *barrier) needs(c *CTA) int {
	if b.Expect == AllThreads {
		return c.Live
	}
	return b.Expect
}

// result returns the result of bar.red.
func (b *barrier) result(in *loader.Instr) uint64 {
	switch {
	case in.Op == isa.OpPopc:
		return uint64(b.popc)
	case in.Op == isa.OpAnd && b.and, in.Op == isa.OpOr && b.or:
		return 1
	}
	return 0
}

// exitedBarriers completes the barriers that waited for lanes that have exited.
func (r *Run) exitedBarriers(w *Warp, on uint32, place uint32) {
	for m := w.CTA.Met; m != 0; m &= m - 1 {
		id := bits.TrailingZeros16(m)
		if b := &w.CTA.Bars[id]; b.Expect != 0 {
			r.complete(b, uint8(id), w, on, place)
		}
	}
}

// CheckSites checks a completed barrier of all threads: no thread may have exited without reaching it, and all must
// have used the same __syncthreads().
func (r *Run) CheckSites(b *barrier, id uint8, c *CTA) {
	if len(b.Sites) == 1 && c.Live == c.Threads {
		return
	}
	sort.Slice(b.Sites, func(i, j int) bool { return b.Sites[i].Place < b.Sites[j].Place })
	first := b.Sites[0].Place
	if missing := c.Threads - c.Live; missing > 0 {
		// The PTX manual requires all lanes of a warp that continue to execute an aligned barrier.
		passed := 0
		for i, lanes := range b.passed {
			passed += bits.OnesCount32(lanes &^ b.got[i])
		}
		if f, fresh := r.Faults.count(r, BarrierDivergence, first, passed == 0); fresh {
			f.Message = fmt.Sprintf("barrier %d completed without %d of the block's %d threads, which have exited", id, missing, c.Threads)
			if passed > 0 {
				f.Message += fmt.Sprintf("; %d of them had skipped it while lanes of their warps waited", passed)
			}
			f.Stands = append(b.stands(id), r.exitStands(c)...)
		}
	}
	if len(b.Sites) == 1 || b.Told {
		return
	}
	aligned, mixed, seen := false, false, uint32(0)
	for _, s := range b.Sites {
		aligned = aligned || s.aligned
		mixed = mixed || seen&s.warps != 0
		seen |= s.warps
	}
	if !aligned {
		return // barrier.sync may be executed anywhere
	}
	// The PTX manual requires the threads of a warp to execute the same aligned barrier. The programming guide requires
	// it of all threads of the block.
	if f, fresh := r.Faults.count(r, BarrierDivergence, first, !mixed); fresh {
		f.Message = fmt.Sprintf("the threads of a block met at barrier %d by different instructions: the barrier is in divergent code", id)
		f.Stands = b.stands(id)
	}
}

// stands returns the instructions by which threads arrived.
func (b *barrier) stands(id uint8) []Stand {
	var list []Stand
	for _, s := range b.Sites {
		list = append(list, Stand{Place: s.Place, Block: s.block, Thread: s.thread, Threads: s.threads, Doing: fmt.Sprintf("arrived at barrier %d", id)})
	}
	return list
}

// exitStands returns the places where threads of a block exited.
func (r *Run) exitStands(c *CTA) []Stand {
	var s standSet
	for _, w := range c.Warps {
		for i := range min(32, c.Threads-32*w.Index) {
			if w.Live&(1<<i) == 0 {
				s.add(r.Machine.Place(w, i), "exited", c.id, w.tid(i))
			}
		}
	}
	return s.stands()
}
