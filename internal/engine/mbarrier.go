package engine

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// mbarrier is the 64 bits of a barrier in shared memory.
type mbarrier uint64

// Its fields, from the lowest bit on: the parity of the current phase, the number of arrivals that a phase expects, the
// number of arrivals still missing, the number of transaction bytes still missing (signed), and a mark that it has been
// initialised.
const (
	mbarrierCount = 20
	mbarrierTx    = 21
	maxArrivals   = 1<<mbarrierCount - 1
	mbarrierLive  = 2 << 62
)

func (b mbarrier) parity() uint64   { return uint64(b) & 1 }
func (b mbarrier) expected() uint64 { return uint64(b) >> 1 & maxArrivals }
func (b mbarrier) pending() uint64  { return uint64(b) >> (1 + mbarrierCount) & maxArrivals }
func (b mbarrier) tx() int64        { return int64(b<<2) >> (64 - mbarrierTx) }
func (b mbarrier) live() bool       { return b>>62 == mbarrierLive>>62 }

func newMbarrier(parity, expected, pending uint64, tx int64) mbarrier {
	return mbarrier(parity | expected<<1 | pending<<(1+mbarrierCount) | uint64(tx)&(1<<mbarrierTx-1)<<(1+2*mbarrierCount) | mbarrierLive)
}

// state returns the value that arrivals return and waits take: the object with the number of the phase in place of the
// expected arrivals.
func (b mbarrier) state(phase uint64) uint64 {
	return uint64(b)&^(maxArrivals<<1|1) | phase&maxPhase
}

// maxPhase is the largest phase number in a state.
const maxPhase = 1<<(1+mbarrierCount) - 1

// liveBarrier is a barrier in shared memory between its init and its inval.
type liveBarrier struct {
	addr   uint64   // address
	phase  uint64   // number of the current phase, from 0
	failed bool     // a test has failed since the phase began
	unseen uint64   // number of phases that have ended since a test last succeeded, or the block met at a barrier
	by     arriver  // the thread that made all arrivals of these phases, if it was only one
	tested []uint32 // by warp of the block: lanes that have tested the barrier
}

// arriver is a thread; without a warp it is nobody, or several threads.
type arriver struct {
	warp    *Warp
	lane    int
	several bool
}

// firstTest reports whether a lane has not tested the barrier before, and records the test.
func (b *liveBarrier) firstTest(w *Warp, lane int) bool {
	for len(b.tested) <= w.Index {
		b.tested = append(b.tested, 0)
	}
	first := b.tested[w.Index]>>lane&1 == 0
	b.tested[w.Index] |= 1 << lane
	return first
}

// endedBarrier records where a barrier was invalidated.
type endedBarrier struct {
	addr  uint64
	stand Stand
}

// earlyUse is the fault of using a barrier that was not initialised.
type earlyUse struct {
	addr  uint64
	fault *Fault
}

// notLive reports an operation on a barrier at an address without one.
func (r *Run) notLive(w *Warp, of *CTA, lane int, in *loader.Instr, addr uint64, place uint32) {
	use := Stand{Place: place, Block: w.CTA.id, Thread: w.tid(lane), Threads: 1, Doing: "executes " + in.Mnemonic()}
	what := in.Mnemonic() + " of an object"
	if in.Class == isa.Copy {
		what = in.Mnemonic() + " is given an object as mbarrier"
	}
	if i := slices.IndexFunc(of.ended, func(b endedBarrier) bool { return b.addr == addr }); i >= 0 {
		if f, fresh := r.Faults.count(r, MbarrierEnded, place, false); fresh {
			f.Message, f.Stands = what+" that has been invalidated", []Stand{of.ended[i].stand, use}
		}
		return
	}
	if f, fresh := r.Faults.count(r, MbarrierEarly, place, false); fresh {
		f.Message, f.Stands = what+" that was not initialised", []Stand{use}
		of.early = append(of.early, earlyUse{addr, f})
	}
}

// begun reports the initialisation of a barrier that was used before.
func (x *mbarrierOp) begun() {
	x.of.ended = slices.DeleteFunc(x.of.ended, func(b endedBarrier) bool { return b.addr == x.addr })
	x.of.early = slices.DeleteFunc(x.of.early, func(u earlyUse) bool {
		if u.addr == x.addr {
			u.fault.Stands = append(u.fault.Stands, x.stand("initialises it"))
		}
		return u.addr == x.addr
	})
}

func (x *mbarrierOp) stand(doing string) Stand {
	return Stand{Place: x.place, Block: x.w.CTA.id, Thread: x.w.tid(x.lane), Threads: 1, Doing: doing}
}

// trackedCopies is an arrival at a barrier that is pending until copies that lanes have issued are performed.
type trackedCopies struct {
	warp   *Warp
	lane   int
	addr   uint64
	issued uint64 // number of instructions of the warp before it
}

// Mbarriers executes mbarrier instructions, and cp.async.mbarrier.arrive, for the lanes of on, lowest first. It returns
// their cost.
func (r *Run) Mbarriers(w *Warp, in *loader.Instr, on uint32, place uint32) uint64 {
	if in.Op == isa.OpPending {
		for m := on; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			r.give(w, i, in, mbarrier(r.Machine.Value(w, i, &in.Operands[0])).pending())
		}
		return 1
	}
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		addr := r.Machine.Value(w, i, &in.Operands[0]) + uint64(in.Off)
		if !r.inShared(w, i, in, place, addr) {
			r.give(w, i, in, 1) // so that nobody waits for it
			continue
		}
		if in.Space == event.Generic {
			_, addr = SplitGeneric(addr)
		}
		of, addr, kind := w.CTA.owner(addr)
		var data []byte
		if kind == "" {
			data, kind = window(of.Shared, addr&(1<<event.PeerShift-1), 8)
		}
		if kind != "" {
			r.Faults.access(r, kind, w, i, place, touch{event.FlagRead | event.FlagWrite, event.Shared, addr, 8})
			r.give(w, i, in, 1)
			continue
		}
		r.reaches(w, of, i, place)
		x := mbarrierOp{r: r, w: w, of: of, in: in, lane: i, place: place, addr: addr & (1<<event.PeerShift - 1), told: addr, data: data}
		x.execute()
	}
	if in.Op == isa.OpTest {
		w.Polls++
		return pollCost
	}
	w.Writes++
	return 1
}

// give gives a lane the result of an instruction, if it has one.
func (r *Run) give(w *Warp, lane int, in *loader.Instr, v uint64) {
	if len(in.Results) > 0 {
		r.Machine.Put(w, lane, in.Results[0], v)
	}
}

// mbarrierOp is an operation of a lane on a barrier.
type mbarrierOp struct {
	r     *Run
	w     *Warp
	of    *CTA // the block of the barrier
	in    *loader.Instr
	lane  int
	place uint32
	addr  uint64 // address in of
	told  uint64 // address in events
	data  []byte
	live  *liveBarrier
}

func (x *mbarrierOp) get() mbarrier  { return mbarrier(devmem.Uint(x.data, 8)) }
func (x *mbarrierOp) set(b mbarrier) { devmem.PutUint(x.data, uint64(b)) }

func (x *mbarrierOp) operand(k int, absent uint64) uint64 {
	if k >= len(x.in.Operands) {
		return absent
	}
	return x.r.Machine.Value(x.w, x.lane, &x.in.Operands[k])
}

func (x *mbarrierOp) wrong(format string, args ...any) {
	x.r.Faults.At(x.r, MbarrierMisuse, x.w, x.lane, x.place, "executes "+x.in.Mnemonic(), format, args...)
}

func (x *mbarrierOp) execute() {
	op := x.in.Op
	x.live = x.of.liveBarrier(x.addr)
	switch {
	case op == isa.OpInit:
	case x.live == nil:
		x.r.notLive(x.w, x.of, x.lane, x.in, x.addr, x.place)
	case !x.get().live():
		x.wrong("%s of an object whose bytes have been written since its initialisation", x.in.Mnemonic())
		x.live = nil
	}
	if op != isa.OpInit && x.live == nil {
		x.r.give(x.w, x.lane, x.in, 1) // so that nobody waits for it
		return
	}
	n := x.operand(1, 1) & 0xffff_ffff
	switch op {
	case isa.OpInit:
		x.init(n)
	case isa.OpInval:
		x.set(0)
		for at := uint64(0); at < 8; at += 4 {
			x.r.Out.mbarrier(event.Store, event.FlagWrite, event.Relaxed, x, at)
		}
		x.r.untrack(x.of, x.addr)
		x.of.endBarrier(x.addr)
		x.of.ended = append(x.of.ended, endedBarrier{x.addr, x.stand("invalidates it")})
	case isa.OpExpect:
		x.tell(event.Relaxed)
		x.transfer(int64(n))
		x.complete()
	case isa.OpComplete:
		x.tell(event.Relaxed)
		x.transfer(-int64(n))
		x.complete()
	case isa.OpArrive, isa.OpDrop:
		x.r.give(x.w, x.lane, x.in, x.get().state(x.live.phase))
		if x.in.Has("expect_tx") {
			x.transfer(int64(n))
			n = 1
		}
		x.tell(x.in.MbarrierOrder(event.Release))
		x.arrive(n, op == isa.OpDrop)
	case isa.OpArriveCopies:
		x.track()
	case isa.OpTest:
		x.test()
	}
}

// init initialises the object; phases expect n arrivals.
func (x *mbarrierOp) init(n uint64) {
	if x.live != nil {
		x.wrong("an mbarrier is initialised again without mbarrier.inval")
	}
	if n == 0 || n > maxArrivals {
		x.wrong("an mbarrier is given a count of %d: it must be between 1 and %d", n, maxArrivals)
		n = 1
	}
	x.overwrite(newMbarrier(0, n, n, 0))
	c := x.of
	x.r.untrack(c, x.addr)
	c.endBarrier(x.addr)
	c.barriers = append(c.barriers, liveBarrier{addr: x.addr})
	x.begun()
}

// liveBarrier returns the barrier at an address of shared memory; nil if there is none.
func (c *CTA) liveBarrier(addr uint64) *liveBarrier {
	for i := range c.barriers {
		if c.barriers[i].addr == addr {
			return &c.barriers[i]
		}
	}
	return nil
}

// CountBarrier records that threads of the block met at a barrier, by which they may know which phases of its mbarriers
// have ended.
func (c *CTA) CountBarrier() {
	c.Completed++
	for i := range c.barriers {
		c.barriers[i].unseen, c.barriers[i].by = 0, arriver{}
	}
}

func (c *CTA) endBarrier(addr uint64) {
	c.barriers = slices.DeleteFunc(c.barriers, func(b liveBarrier) bool { return b.addr == addr })
}

// transfer adds to the transaction bytes that the phase waits for.
func (x *mbarrierOp) transfer(n int64) {
	b := x.get()
	tx := b.tx() + n
	if tx > maxArrivals || tx < -maxArrivals {
		x.wrong("the phase of the mbarrier waits for %d bytes: the count must stay between -%d and %[2]d", tx, maxArrivals)
		tx = 0
	}
	x.set(newMbarrier(b.parity(), b.expected(), b.pending(), tx))
}

// arrive counts n arrivals. With drop, later phases expect n fewer.
func (x *mbarrierOp) arrive(n uint64, drop bool) {
	switch by := (arriver{x.w, x.lane, false}); {
	case x.in.Op == isa.OpTest: // by an asynchronous operation
		x.live.by = arriver{several: true}
	case x.live.by == arriver{}:
		x.live.by = by
	case x.live.by != by:
		x.live.by = arriver{several: true}
	}
	b := x.get()
	switch {
	case n == 0 || n > maxArrivals:
		x.wrong("%d arrivals at once at an mbarrier: it must be between 1 and %d", n, maxArrivals)
		return
	case n > b.pending():
		x.wrong("%d more arrivals than the phase of the mbarrier expects", n-b.pending())
		n = b.pending()
	}
	if x.in.Has("noComplete") && n == b.pending() && b.tx() == 0 {
		x.wrong("an arrival with .noComplete completes the phase of the mbarrier")
	}
	expected := b.expected()
	if drop {
		expected -= min(n, expected)
	}
	x.set(newMbarrier(b.parity(), expected, b.pending()-n, b.tx()))
	x.complete()
}

// complete completes the phase if nothing is missing.
func (x *mbarrierOp) complete() {
	b := x.get()
	if b.pending() != 0 || b.tx() != 0 {
		return
	}
	x.set(newMbarrier(b.parity()^1, b.expected(), b.expected(), 0))
	x.live.phase++
	x.live.unseen++
	x.live.failed = false
	x.of.Completed++
	x.w.Writes++
	o := &x.r.Out
	o.mbarrierDone(x)
	o.mbarrier(event.Load, event.FlagRead|event.FlagApart, event.Acquire, x, 0)
	o.mbarrier(event.Store, event.FlagWrite|event.FlagApart, event.Release, x, 4)
}

// track makes the barrier wait for the copies that the lane has issued.
func (x *mbarrierOp) track() {
	if !x.in.Has("noinc") {
		b := x.get()
		x.set(newMbarrier(b.parity(), b.expected(), min(b.pending()+1, maxArrivals), b.tx()))
	}
	x.r.Out.copyArrive(x)
	x.tell(event.Release)
	c := x.of
	c.tracked = append(c.tracked, trackedCopies{x.w, x.lane, x.addr, x.w.async().issued})
}

// test tests whether a phase is complete. Copies that the barrier waits for are performed now at the latest, except
// those of a later phase than the tested one.
func (x *mbarrierOp) test() {
	done := x.phaseDone()
	if !done {
		x.performAll()
		done = x.phaseDone()
	}
	x.live.failed = x.live.failed || !done
	order := event.Relaxed
	if first := x.live.firstTest(x.w, x.lane); done {
		if x.live.unseen > 1 && x.in.Has("parity") && x.live.by != (arriver{x.w, x.lane, false}) {
			x.wrong("the wait for phase %d of the mbarrier, by its parity, may pass before phase %d has ended, which no thread has waited for: "+
				"there may be more arrivals than the count of %d that it was initialised with", x.live.phase-1, x.live.phase-2, x.get().expected())
		}
		x.live.unseen, x.live.by = 0, arriver{}
		if order = x.in.MbarrierOrder(event.Acquire); first && order != event.Relaxed {
			// The lane might have tested earlier: what it learns from this test does not imply that the barrier was
			// initialised at that time.
			x.r.Out.mbarrier(event.Load, event.FlagRead, event.Relaxed, x, 4)
		}
	}
	x.r.Out.mbarrier(event.Load, event.FlagRead, order, x, 4)
	v := uint64(0)
	if done {
		v = 1
	}
	x.r.give(x.w, x.lane, x.in, v)
}

// phaseDone reports whether the phase that a test asks for is complete.
func (x *mbarrierOp) phaseDone() bool {
	if x.in.Has("parity") {
		return x.get().parity() != x.operand(1, 0)&1
	}
	return x.passed(x.operand(1, 0))
}

// performAll performs the copies that the barrier waits for.
func (x *mbarrierOp) performAll() {
	c := x.of
	var left, due []trackedCopies
	for _, t := range c.tracked {
		if t.addr == x.addr {
			due = append(due, t)
		} else {
			left = append(left, t)
		}
	}
	c.tracked = left
	for _, t := range due {
		x.r.performTracked(&t)
		x.arrive(1, false)
		x.w.Writes++
	}
	x.completeBulks()
	x.completeCores()
}

// passed reports whether the phase of a state is complete.
func (x *mbarrierOp) passed(state uint64) bool {
	behind := (x.live.phase - state) & maxPhase
	if behind > 1 || !mbarrier(state).live() {
		x.wrong("the state that %s is given is neither of the current phase of the mbarrier nor of the one before", x.in.Mnemonic())
	}
	return behind != 0
}

// performTracked performs the copies of a pending arrival.
func (r *Run) performTracked(t *trackedCopies) {
	c := t.warp.async()
	kept := c.list[:0]
	for _, x := range c.list {
		if x.number < t.issued && x.left>>t.lane&1 != 0 {
			r.performCopies(t.warp, x, 1<<t.lane)
			x.left &^= 1 << t.lane
		}
		if x.left != 0 {
			kept = append(kept, x)
		} else {
			r.spareCopies = append(r.spareCopies, x)
		}
	}
	c.list = kept
}

// untrack drops the pending arrivals of a barrier that begins or ends.
func (r *Run) untrack(c *CTA, addr uint64) {
	kept := c.tracked[:0]
	for _, t := range c.tracked {
		if t.addr != addr {
			kept = append(kept, t)
		}
	}
	c.tracked = kept
	c.cores.commits = slices.DeleteFunc(c.cores.commits, func(k coreCommit) bool { return k.addr == addr })
}

// overwrite writes the object as a plain store does. The object is opaque, so its value in events is zero.
func (x *mbarrierOp) overwrite(b mbarrier) {
	acc := &x.r.Access
	acc.Addr[x.lane] = x.addr
	if acc.Old[x.lane] = wordsOf(x.data); x.get().live() {
		acc.Old[x.lane] = [4]uint64{}
	}
	x.set(b)
	acc.Value[x.lane] = [4]uint64{}
	if o := &x.r.Out; o.Needs&event.NeedShared != 0 {
		as := loader.Instr{Inst: x.in.Inst, Width: 8, Piece: 8}
		o.access(event.Store, event.FlagWrite, x.w, &as, x.place, event.Shared, 1<<x.lane, acc)
	}
}

// tell emits a read-modify-write of the barrier.
func (x *mbarrierOp) tell(order event.Order) {
	x.r.Out.mbarrier(event.Atomic, event.FlagRead|event.FlagWrite|event.FlagRed, order, x, 0)
}

// mbarrier emits a strong access to one half of a barrier.
func (o *Emitter) mbarrier(kind event.Kind, flags event.Flags, order event.Order, x *mbarrierOp, at uint64) {
	if o.Needs&event.NeedShared == 0 {
		return
	}
	scope := x.in.Scope
	switch {
	case scope != event.NoScope:
	case len(x.w.CTA.cluster.ctas) > 1:
		// The manual's default scope is .cta, but with it a remote arrival would order nothing; all code for clusters
		// relies on that order.
		scope = event.ScopeCluster
	default:
		scope = event.ScopeCTA
	}
	e := event.Event{Kind: kind, Flags: flags, Warp: x.w.Number, Place: x.place, Mask: 1 << x.lane, Addr: x.told + at,
		Space: event.Shared, Order: order, Scope: scope, Size: 4}
	if flags&event.FlagApart != 0 {
		e.Barrier = x.in.Apart()
	}
	if o.Needs&event.NeedValues != 0 && flags&event.FlagWrite != 0 {
		e.Flags |= event.FlagValues
		e.Val = uint32(len(o.Batch.Values))
		o.Batch.Values = append(o.Batch.Values, 0)
		if o.Olds() {
			e.Flags |= event.FlagOld
			o.Batch.Values = append(o.Batch.Values, 0)
		}
	}
	o.add(e)
}

// mbarrierDone emits the completion of a phase.
func (o *Emitter) mbarrierDone(x *mbarrierOp) {
	if o.Sync() {
		o.add(event.Event{Kind: event.MbarrierDone, Warp: x.w.Number, Place: x.place, Mask: 1 << x.lane, Addr: x.told})
	}
}

// copyArrive emits that a barrier waits for copies.
func (o *Emitter) copyArrive(x *mbarrierOp) {
	if o.Sync() {
		o.add(event.Event{Kind: event.CopyArrive, Warp: x.w.Number, Place: x.place, Mask: 1 << x.lane, Addr: x.addr})
	}
}
