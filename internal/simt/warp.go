package simt

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/lanes"
)

const (
	// pollCost is what an operation that may be a poll counts in a warp's turn, others counting 1: warps that spin give
	// way sooner than those that compute.
	pollCost = 32
	// starved is how long runnable lanes of a warp wait before they get a slice of their own, and how long that slice is:
	// in steps, of which polls count pollStrain. Lanes that wait for others to reconverge wait long; lanes that others
	// may be spinning for do not: four polls, as a lane that holds a lock while others of its warp spin keeps whole blocks
	// out.
	starved    = 64 << 10
	pollStrain = 1 << 14
)

// warp is a warp of a resident block. Of its lanes that can step, one group runs: lanes at one instruction of one call
// stack. It is the group deepest in calls, and there with the smallest rank (Func.Rank): lanes that are behind run
// first, so that diverged lanes meet again at the earliest point. A group that has been waiting for long gets a slice of
// its own, so that spinning lanes cannot keep out the lane they wait for.
type warp struct {
	cta    *cta
	number uint32     // event.Event.Warp
	index  int        // in the block
	live   uint32     // lanes that have not exited
	ready  uint32     // live lanes that wait for nothing
	first  event.Dim3 // the coordinate of lane 0
	lanes  []lane     // of engine ref, 32
	own    any        // of other engines
	copies copies
	// Lanes that have arrived at the barrier of the cluster and not waited: of the phase that is not complete, and of the one before.
	arrived, passed uint32
	stands          [32]uint64
	whole           stand // what all live lanes wait for, if they do together: the stands do not matter then
	stood           bool  // stands are not zeros

	group   uint32 // the lanes that run; all are at one place
	lead    int    // the lowest of them
	regroup bool   // group must be chosen anew before the next step
	others  bool   // lanes outside the group could run
	apart   bool   // not all live lanes were in one group since they last were
	next    order  // the least order of those

	time   uint64 // what this warp has run, polls counting pollCost
	strain uint64 // the same, polls counting pollStrain
	period uint64 // how long lanes must have waited to be starved
	check  uint64 // strain at which starvation is looked for
	forced uint32 // lanes that have a slice of their own, until check

	// Lockstep only.
	splits  []split
	at      split  // where the last step stood and where lanes that part there meet again
	parted  uint64 // splits so far
	stalled bool   // the running path waits for something

	began   uint64 // time when its turn did
	gaveWay int    // before how many strong accesses it might have given way
	over    bool   // its turn is, before a strong access

	polls    uint64 // since the scheduler last looked
	writes   uint64
	priority uint64 // PCT
}

// order says which of two groups runs first: the smaller.
type order struct {
	major uint64 // depth, inverted, and rank
	place uint32
}

func (a order) less(b order) bool {
	return a.major < b.major || a.major == b.major && a.place < b.place
}

// order of the lane's instruction.
func (ln *lane) order() order {
	rank := ln.pc
	if f := ln.code.Func; int(ln.pc) < len(f.Rank) {
		rank = f.Rank[ln.pc]
	}
	return order{(1<<31-uint64(ln.depth))<<32 | uint64(uint32(rank)), ln.place()}
}

// start makes the warp stand at the kernel's first instruction with the lanes of mask.
func (w *warp) start(r *run, number uint32, index int, mask uint32) {
	w.number, w.index = number, index
	w.live, w.ready = mask, mask
	w.regroup, w.forced, w.time, w.strain = true, 0, 0, 0
	w.whole = 0
	w.apart = false
	w.period = r.patience()
	w.check = w.period
	w.splits, w.stalled, w.parted = w.splits[:0], false, 0
	w.polls, w.writes, w.gaveWay = 0, 0, 0
	w.arrived, w.passed = 0, 0
	w.copies.reset()
	if w.stood {
		w.stands, w.stood = [32]uint64{}, false
	}
	r.m.start(w, mask)
}

// tid gives the coordinate of a lane in its block.
func (w *warp) tid(lane int) event.Dim3 {
	if lane == 0 {
		return w.first
	}
	return w.cta.shape.At(uint64(w.index*32 + lane))
}

// runnable reports whether the warp can make a step.
func (w *warp) runnable() bool { return w.ready != 0 && !w.stalled }

// wake makes lanes able to step again.
func (w *warp) wake(r *run, mask uint32) {
	w.whole = 0
	w.stand(mask, 0)
	r.m.woken(w, mask)
	w.ready |= mask
	w.regroup, w.stalled = true, false
}

// block makes the lanes of mask wait at the instruction at place, which they are executing.
func (w *warp) block(r *run, mask uint32, why stand, place uint32) {
	w.stand(mask, why)
	w.halt(r, mask, place)
}

// halt makes the lanes of mask, whose stands are noted, unable to step.
func (w *warp) halt(r *run, mask uint32, place uint32) {
	r.m.hold(w, mask, place)
	w.ready &^= mask
	w.regroup = true
}

// stand notes what the lanes of mask wait for.
func (w *warp) stand(mask uint32, s stand) {
	lanes.Set64(&w.stands, uint64(s), mask)
	w.stood = true
}

// standOf tells what a lane waits for.
func (w *warp) standOf(lane int) stand {
	if w.whole != 0 {
		return w.whole
	}
	return stand(w.stands[lane])
}

// patience is how long lanes wait before they count as starved, and how long the next look for such lanes is off.
func (r *run) patience() uint64 {
	if r.l.Seed == 0 && r.l.Schedule != PCT {
		return starved
	}
	return uint64(r.rng.spread(16)) + 512
}

// choose picks the group that runs next. The warp must be runnable; afterwards it is not when its path waits (Lockstep).
func (w *warp) choose(r *run) {
	w.regroup = false
	if r.l.Schedule == Lockstep {
		if w.group = r.choosePath(w); w.group != 0 {
			w.lead = bits.TrailingZeros32(w.group)
		}
		w.others = false
		return
	}
	for m := w.group & w.ready; m != 0; m &= m - 1 {
		w.lanes[bits.TrailingZeros32(m)].ran = w.strain
	}
	if w.strain >= w.check {
		w.forced = w.longWaiting()
		w.period = r.patience()
		w.check = w.strain + w.period
	}
	from := w.ready
	if w.forced &= w.ready; w.forced != 0 {
		from = w.forced
	}
	w.group, w.others = 0, false
	var best order
	for m := from; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		o := w.lanes[i].order()
		switch {
		case w.group == 0:
			w.group, w.lead, best = 1<<i, i, o
		case o == best:
			w.group |= 1 << i
		case o.less(best):
			w.next, w.others = best, true
			w.group, w.lead, best = 1<<i, i, o
		case !w.others || o.less(w.next):
			w.next, w.others = o, true
		}
	}
	if w.others && r.out.needs&event.NeedReconverge != 0 {
		w.together(r, w.group|w.ending())
		return
	}
	w.together(r, w.group)
}

// ending gives the lanes of engine ref that are about to exit.
func (w *warp) ending() (lanes uint32) {
	for m := w.ready; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		ln := &w.lanes[i]
		if f := ln.code.Func; ln.depth == 0 && int(ln.pc) < len(f.Insts) {
			if in := &f.Insts[ln.pc]; in.Guard < 0 && (in.Class == isa.Ret || in.Class == isa.Exit) {
				lanes |= 1 << i
			}
		}
	}
	return lanes
}

// together notes which lanes run as a group, those that are about to exit included.
func (w *warp) together(r *run, group uint32) {
	if group == w.live && w.apart {
		r.out.reconverged(w)
	}
	w.apart = group != w.live
}

// longWaiting gives the lanes that are with the one that has waited longest, none when nobody is starved.
func (w *warp) longWaiting() uint32 {
	oldest, lanes := w.strain-w.period+1, uint32(0)
	var at order
	for m := w.ready; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		ln := &w.lanes[i]
		switch o := ln.order(); {
		case ln.ran < oldest:
			oldest, lanes, at = ln.ran, 1<<i, o
		case lanes != 0 && o == at:
			lanes |= 1 << i
		}
	}
	if lanes == w.ready {
		return 0
	}
	return lanes
}

// moved tells the warp that its group made a step that cost so much and is together still.
func (w *warp) moved(r *run, cost uint64) {
	w.time += cost
	if w.strain++; cost == pollCost {
		w.strain += pollStrain - 1
	}
	switch {
	case w.regroup:
	case len(w.splits) > 0:
		w.regroup = w.splits[len(w.splits)-1].met(&w.lanes[w.lead])
	case w.others && (w.strain >= w.check || !w.lanes[w.lead].order().less(w.next)):
		w.regroup = true
	case w.group != w.ready && w.strain >= w.check:
		w.regroup = true
	}
}

// jump sets the instruction at which the lanes of mask stand.
func (w *warp) jump(mask uint32, pc int32) {
	for m := mask; m != 0; m &= m - 1 {
		w.lanes[bits.TrailingZeros32(m)].pc = pc
	}
}

// polled counts an operation that may be a poll, besides being an instruction.
func (w *warp) polled() {
	w.time += pollCost - 1
	w.strain += pollStrain - 1
}
