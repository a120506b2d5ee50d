package simt

import (
	"fmt"
	"math/bits"
	"sort"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/simt/loader"
)

// allThreads is the expectation of a barrier without thread count: every thread of the block that has not exited.
const allThreads = -1

// barrier is one of the 16 barriers of a block (PTX ISA, "Parallel Synchronization and Communication Instructions:
// bar, barrier"). Threads arrive one by one, as since Volta.
type barrier struct {
	expect int      // allThreads, a thread count, or 0 while nobody has arrived
	count  int      // arrivals
	got    []uint32 // by warp, the lanes that arrived
	wait   []uint32 // by warp, the lanes that wait
	// Of bar.red: over the arrivals.
	reduced bool
	popc    uint32
	and, or bool
	sites   []site
	whole   bool // the warps are in lockstep
	told    bool // a mismatch of counts has been reported: the places need no telling
}

// site is an instruction by which threads arrived, for the check that they all came by the same one.
type site struct {
	place   uint32
	aligned bool
	block   event.Dim3
	thread  event.Dim3
	threads int
	warps   uint32 // bit i: lanes of warp i came by it
}

func (b *barrier) reset() {
	b.expect, b.count, b.popc, b.and, b.or = 0, 0, 0, true, false
	clear(b.got)
	clear(b.wait)
	b.reduced = false
	b.sites, b.told = b.sites[:0], false
}

// arrived is the number of threads a barrier counts. A warp of which every live lane has arrived counts in full for a
// barrier with a thread count: lanes that exited or that the block never had do not hold it up. A warp in lockstep
// arrives as a whole when any of its lanes does.
func (b *barrier) arrived(c *cta) int {
	n := b.count
	for i, got := range b.got {
		live := c.warps[i].live
		switch {
		case got == 0:
		case b.expect != allThreads && (b.whole || live&^got == 0):
			n += 32 - bits.OnesCount32(got)
		case b.whole:
			n += bits.OnesCount32(live &^ got)
		}
	}
	return n
}

// barrier executes bar and barrier for the lanes of on.
func (r *run) barrier(w *warp, in *loader.Instr, on uint32, place uint32) {
	if in.Operands[0].Same() && (in.Src[1].Kind == isa.Sink || in.Operands[1].Same()) {
		id, count := r.barrierOperands(w, in, bits.TrailingZeros32(on))
		r.arrive(w, in, on, place, id, count)
		return
	}
	// The operands are the same for all lanes but for the predicate of bar.red; where they are not, the lanes arrive in
	// groups of one barrier and count.
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

// barrierOperands gives the barrier and thread count for a lane; the count is allThreads when there is none.
func (r *run) barrierOperands(w *warp, in *loader.Instr, lane int) (id uint64, count int) {
	id = r.m.value(w, lane, &in.Operands[0]) & 0xffff_ffff
	if in.Src[1].Kind == isa.Sink {
		return id, allThreads
	}
	return id, int(r.m.value(w, lane, &in.Operands[1]) & 0xffff_ffff)
}

// arrive makes lanes of one warp arrive at one barrier.
func (r *run) arrive(w *warp, in *loader.Instr, on uint32, place uint32, id uint64, count int) {
	first := bits.TrailingZeros32(on)
	if id >= uint64(len(w.cta.bars)) {
		r.faults.at(r, BarrierDivergence, w, first, place, "arrives", "barrier %d does not exist: a block has barriers 0 to 15", id)
		return
	}
	if count != allThreads && (count == 0 || count%32 != 0) {
		r.faults.at(r, BarrierDivergence, w, first, place, "arrives", "barrier %d is given a thread count of %d, which is not a positive multiple of 32", id, count)
		return
	}
	b := &w.cta.bars[id]
	w.cta.met |= 1 << id
	if b.expect != 0 && b.expect != count {
		r.faults.at(r, BarrierDivergence, w, first, place, "arrives", "threads arrive at barrier %d expecting %s, others that wait there expect %s", id, expects(count), expects(b.expect))
		count, b.told = b.expect, true
	}
	b.expect = count
	if b.whole = r.l.Schedule == Lockstep; b.whole && on != w.live {
		r.faults.at(r, BarrierDivergence, w, first, place, "arrives", "barrier %d is reached by lanes %#x of a warp while lanes %#x are elsewhere: warps in lockstep must not part here", id, on, w.live&^on)
		b.told = true
	}
	b.join(w, on)
	b.enter(in, w, on, place)
	waits := in.Op != isa.OpArrive
	if in.Op != isa.OpSync && waits {
		r.reduce(b, w, in, on)
	}
	flags, threads := event.Flags(0), count
	if waits {
		flags |= event.FlagWait
		b.wait[w.index] |= on
		w.block(r, on, standing(waitBarrier, uint8(id), 0), place) // they are here until the barrier completes
	}
	if count == allThreads {
		threads = 0
		if in.Aligned {
			flags |= event.FlagAligned
		}
	}
	r.out.arrive(w, on, place, uint8(id), flags, threads)
	r.complete(b, uint8(id), w, on, place)
}

func expects(count int) string {
	if count == allThreads {
		return "all threads of the block"
	}
	return fmt.Sprintf("%d threads", count)
}

// join counts the lanes of on.
func (b *barrier) join(w *warp, on uint32) {
	if len(b.got) < len(w.cta.warps) {
		b.got, b.wait = make([]uint32, len(w.cta.warps)), make([]uint32, len(w.cta.warps))
	}
	b.got[w.index] |= on
	b.count += bits.OnesCount32(on)
}

// enter notes by which instruction lanes arrived.
func (b *barrier) enter(in *loader.Instr, w *warp, on uint32, place uint32) {
	n := bits.OnesCount32(on)
	for i := range b.sites {
		if b.sites[i].place == place {
			b.sites[i].add(w, n)
			return
		}
	}
	b.sites = append(b.sites, site{place: place, aligned: in.Aligned, block: w.cta.id, thread: w.tid(bits.TrailingZeros32(on)),
		threads: n, warps: 1 << w.index})
}

// add counts n threads of w.
func (s *site) add(w *warp, n int) {
	s.threads += n
	s.warps |= 1 << w.index
}

// reduce takes the predicates of bar.red into account.
func (r *run) reduce(b *barrier, w *warp, in *loader.Instr, on uint32) {
	b.reduced = true
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		p := r.m.value(w, i, &in.Operands[2])&1 != 0
		if p {
			b.popc++
		}
		b.and = b.and && p
		b.or = b.or || p
	}
}

// complete lets the waiting threads of a barrier go on when enough have arrived.
func (r *run) complete(b *barrier, id uint8, w *warp, on uint32, place uint32) {
	c := w.cta
	if b.expect == 0 || b.arrived(c) < b.needs(c) {
		return
	}
	if b.expect == allThreads {
		r.checkSites(b, id, c)
	}
	r.out.barrierDone(w, on, place, id)
	c.completed++
	for _, v := range c.warps {
		if woken := b.wait[v.index]; woken != 0 {
			r.wake(b, v, woken)
		}
	}
	b.reset()
}

// wake lets the lanes of woken go on, which wait at b.
func (r *run) wake(b *barrier, w *warp, woken uint32) {
	for m := woken; b.reduced && m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if in := r.m.at(w, i); len(in.Results) > 0 {
			r.m.put(w, i, in.Results[0], b.result(in))
		}
	}
	r.m.pass(w, woken)
	w.wake(r, woken)
}

// needs is the number of threads that complete the barrier.
func (b *barrier) needs(c *cta) int {
	if b.expect == allThreads {
		return c.live
	}
	return b.expect
}

// result is what bar.red gives.
func (b *barrier) result(in *loader.Instr) uint64 {
	switch {
	case in.Op == isa.OpPopc:
		return uint64(b.popc)
	case in.Op == isa.OpAnd && b.and, in.Op == isa.OpOr && b.or:
		return 1
	}
	return 0
}

// exitedBarriers completes the barriers that waited for lanes that have now exited.
func (r *run) exitedBarriers(w *warp, on uint32, place uint32) {
	for m := w.cta.met; m != 0; m &= m - 1 {
		id := bits.TrailingZeros16(m)
		if b := &w.cta.bars[id]; b.expect != 0 {
			r.complete(b, uint8(id), w, on, place)
		}
	}
}

// checkSites judges a barrier of all threads that has completed: threads that have exited never reached it, and
// __syncthreads() must be the same one for all.
func (r *run) checkSites(b *barrier, id uint8, c *cta) {
	if len(b.sites) == 1 && c.live == c.threads {
		return
	}
	sort.Slice(b.sites, func(i, j int) bool { return b.sites[i].place < b.sites[j].place })
	first := b.sites[0].place
	if missing := c.threads - c.live; missing > 0 {
		if f, fresh := r.faults.count(r, BarrierDivergence, first, true); fresh {
			f.Message = fmt.Sprintf("barrier %d completed without %d of the block's %d threads, which have exited", id, missing, c.threads)
			f.Stands = append(b.stands(id), r.exitStands(c)...)
		}
	}
	if len(b.sites) == 1 || b.told {
		return
	}
	aligned, mixed, seen := false, false, uint32(0)
	for _, s := range b.sites {
		aligned = aligned || s.aligned
		mixed = mixed || seen&s.warps != 0
		seen |= s.warps
	}
	if !aligned {
		return // barrier.sync may be executed anywhere
	}
	// The PTX manual wants the threads of a warp to execute the same aligned barrier; the programming guide wants it of
	// all threads of the block.
	if f, fresh := r.faults.count(r, BarrierDivergence, first, !mixed); fresh {
		f.Message = fmt.Sprintf("the threads of a block met at barrier %d by different instructions: the barrier is in divergent code", id)
		f.Stands = b.stands(id)
	}
}

// stands tells by which instructions threads arrived.
func (b *barrier) stands(id uint8) []Stand {
	var list []Stand
	for _, s := range b.sites {
		list = append(list, Stand{Place: s.place, Block: s.block, Thread: s.thread, Threads: s.threads, Doing: fmt.Sprintf("arrived at barrier %d", id)})
	}
	return list
}

// exitStands tells where threads of a block exited.
func (r *run) exitStands(c *cta) []Stand {
	var s standSet
	for _, w := range c.warps {
		for i := range min(32, c.threads-32*w.index) {
			if w.live&(1<<i) == 0 {
				s.add(r.m.place(w, i), "exited", c.id, w.tid(i))
			}
		}
	}
	return s.stands()
}
