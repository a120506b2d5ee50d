package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

const (
	// pollCost is the cost of an operation that may be a poll, in a warp's turn. Other operations cost 1. Warps that
	// spin therefore give way sooner than those that compute.
	pollCost = 32
	// Starved is how long runnable lanes of a warp wait before they get a slice of their own, and the length of that
	// slice. It is measured in steps, in which a poll counts pollStrain. Lanes that wait for others to reconverge wait
	// long. Lanes that others may be spinning for wait for only four polls: a lane that holds a lock while others of
	// its warp spin delays whole blocks.
	Starved    = 64 << 10
	pollStrain = 1 << 14
)

// Warp is a warp of a resident block. Of its lanes that can step, one group runs: lanes at one instruction of one call
// stack. It is the group that is deepest in calls, and among these the one with the smallest rank (Func.Rank). Lanes
// that have come less far thus run first, so that diverged lanes reconverge at the earliest point. A group that has
// waited for long gets a slice of its own, so that spinning lanes cannot block a lane that they wait for.
type Warp struct {
	CTA    *CTA
	Number uint32 // event.Event.Warp
	Index  int    // within the block
	Live   uint32 // lanes that have not exited
	Ready  uint32 // live lanes that do not wait
	Own    any    // for other engines

	group   uint32 // the lanes that run; all are at one place
	lead    int    // the lowest lane of group
	Regroup bool   // group must be chosen again before the next step
	others  bool   // lanes outside the group could run
	Apart   bool   // not all live lanes have been in one group since they last were
	stood   bool   // some stands are not zero
	Stalled bool   // lockstep: the running path waits
	Over    bool   // its turn is over, before a strong access
	unused  bool   // it is in the state of a warp that begins, except for its number and the number of its lanes (ExitBlock)

	Time   uint64 // the cost that this warp has run, in which polls count pollCost
	Strain uint64 // the same, with polls counting pollStrain
	Period uint64 // how long lanes must have waited to be starved
	Check  uint64 // value of Strain at which starvation is checked next
	Forced uint32 // lanes that have a slice of their own, until Check
	Whole  stand  // what all live lanes wait for, if they wait together; stands are then not used

	began    uint64 // Time at the beginning of its turn
	gaveWay  int    // number of strong accesses before which it might have given way
	Polls    uint64 // since the scheduler last looked
	Writes   uint64
	priority uint64 // PCT

	// Lanes that have arrived at the cluster barrier and not waited: at the current phase, and at the previous one.
	arrived, passed uint32
	first           event.Dim3 // the coordinate of lane 0
	lanes           []lane     // of engine ref: 32
	next            order      // the smallest order of the lanes outside the group

	// Lockstep only.
	Splits []Split
	At     Split  // the position of the last step, and where lanes that diverge there reconverge
	parted uint64 // number of splits so far

	// Fields that most warps never use are last, away from what each turn uses.
	copies *copies // nil before the first use, see async
	stands [32]uint64
	// skipped is for lanes that wait in a warp-level function: the lanes in their masks that had already passed it.
	skipped [32]uint32
}

// order says which of two groups runs first: the one with the smaller order.
type order struct {
	major uint64 // inverted depth, and rank
	place uint32
}

func (a order) less(b order) bool {
	return a.major < b.major || a.major == b.major && a.place < b.place
}

// order returns the order of the lane's instruction.
func (ln *lane) order() order {
	rank := ln.pc
	if f := ln.code.Func; int(ln.pc) < len(f.Rank) {
		rank = f.Rank[ln.pc]
	}
	return order{(1<<31-uint64(ln.depth))<<32 | uint64(uint32(rank)), ln.place()}
}

// start puts the warp at the kernel's first instruction with the lanes of mask.
func (w *Warp) start(r *Run, number uint32, mask uint32) {
	w.Number = number
	w.Live, w.Ready = mask, mask
	if w.unused {
		w.unused = false
		return
	}
	w.Regroup, w.Forced, w.Time, w.Strain = true, 0, 0, 0
	w.Whole = 0
	w.Apart = false
	w.Period = r.Patience()
	w.Check = w.Period
	w.Splits, w.Stalled, w.parted = w.Splits[:0], false, 0
	w.Polls, w.Writes, w.gaveWay = 0, 0, 0
	w.arrived, w.passed = 0, 0
	if w.copies != nil {
		w.copies.reset()
	}
	if w.stood {
		w.stands, w.stood = [32]uint64{}, false
	}
	r.Machine.Start(w, mask)
}

// tid returns the coordinate of a lane within its block.
func (w *Warp) tid(lane int) event.Dim3 {
	if lane == 0 {
		return w.first
	}
	return w.CTA.shape.At(uint64(w.Index*32 + lane))
}

// Runnable reports whether the warp can make a step.
func (w *Warp) Runnable() bool { return w.Ready != 0 && !w.Stalled }

// wake makes lanes able to step again.
func (w *Warp) wake(r *Run, mask uint32) {
	w.Whole = 0
	w.stand(mask, 0)
	r.Machine.Woken(w, mask)
	w.Ready |= mask
	w.Regroup, w.Stalled = true, false
}

// block makes the lanes of mask wait at the instruction at place, which they are executing.
func (w *Warp) block(r *Run, mask uint32, why stand, place uint32) {
	w.stand(mask, why)
	w.halt(r, mask, place)
}

// halt makes the lanes of mask, whose stands are set, unable to step.
func (w *Warp) halt(r *Run, mask uint32, place uint32) {
	r.Machine.Hold(w, mask, place)
	w.Ready &^= mask
	w.Regroup = true
}

// stand sets what the lanes of mask wait for.
func (w *Warp) stand(mask uint32, s stand) {
	lanes.Set64(&w.stands, uint64(s), mask)
	w.stood = true
}

// standOf returns what a lane waits for.
func (w *Warp) standOf(lane int) stand {
	if w.Whole != 0 {
		return w.Whole
	}
	return stand(w.stands[lane])
}

// Patience returns how long lanes wait before they count as starved, and the time until the next check for such lanes.
func (r *Run) Patience() uint64 {
	if r.Launch.Seed == 0 && r.Launch.Schedule != PCT {
		if r.Launch.HostWrites {
			return instrumentedCost * Starved
		}
		return Starved
	}
	return uint64(r.rng.spread(16)) + 512
}

// choose chooses the group that runs next. The warp must be runnable. In lockstep it may not be afterwards, if its path
// waits.
func (w *Warp) choose(r *Run) {
	w.Regroup = false
	if r.Launch.Schedule == Lockstep {
		if w.group = r.ChoosePath(w); w.group != 0 {
			w.lead = bits.TrailingZeros32(w.group)
		}
		w.others = false
		return
	}
	for m := w.group & w.Ready; m != 0; m &= m - 1 {
		w.lanes[bits.TrailingZeros32(m)].ran = w.Strain
	}
	if w.Strain >= w.Check {
		w.Forced = w.longWaiting()
		w.Period = r.Patience()
		w.Check = w.Strain + w.Period
	}
	from := w.Ready
	if w.Forced &= w.Ready; w.Forced != 0 {
		from = w.Forced
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
	if w.others && r.Out.Needs&event.NeedReconverge != 0 {
		w.Together(r, w.group|w.ending())
		return
	}
	w.Together(r, w.group)
}

// ending returns the lanes of engine ref that are about to exit.
func (w *Warp) ending() (lanes uint32) {
	for m := w.Ready; m != 0; m &= m - 1 {
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

// Together records which lanes run as a group, including those that are about to exit.
func (w *Warp) Together(r *Run, group uint32) {
	if group == w.Live && w.Apart {
		r.Out.reconverged(w)
	}
	w.Apart = group != w.Live
}

// longWaiting returns the lanes that are with the one that has waited longest; none if no lane is starved.
func (w *Warp) longWaiting() uint32 {
	oldest, lanes := w.Strain-w.Period+1, uint32(0)
	var at order
	for m := w.Ready; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		ln := &w.lanes[i]
		switch o := ln.order(); {
		case ln.ran < oldest:
			oldest, lanes, at = ln.ran, 1<<i, o
		case lanes != 0 && o == at:
			lanes |= 1 << i
		}
	}
	if lanes == w.Ready {
		return 0
	}
	return lanes
}

// moved records a step of the warp's group and its cost. The group is still together.
func (w *Warp) moved(r *Run, cost uint64) {
	w.Time += cost
	if w.Strain++; cost == pollCost {
		w.Strain += pollStrain - 1
	}
	switch {
	case w.Regroup:
	case len(w.Splits) > 0:
		w.Regroup = w.Splits[len(w.Splits)-1].met(&w.lanes[w.lead])
	case w.others && (w.Strain >= w.Check || !w.lanes[w.lead].order().less(w.next)):
		w.Regroup = true
	case w.group != w.Ready && w.Strain >= w.Check:
		w.Regroup = true
	}
}

// jump sets the instruction of the lanes of mask.
func (w *Warp) jump(mask uint32, pc int32) {
	for m := mask; m != 0; m &= m - 1 {
		w.lanes[bits.TrailingZeros32(m)].pc = pc
	}
}

// Polled counts an operation that may be a poll, in addition to the instruction.
func (w *Warp) Polled() {
	w.Time += pollCost - 1
	w.Strain += pollStrain - 1
}
