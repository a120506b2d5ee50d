package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

const (
	// pollCost is what an operation that may be a poll counts in a warp's turn, others counting 1: warps that spin give
	// way sooner than those that compute.
	pollCost = 32
	// Starved is how long runnable lanes of a warp wait before they get a slice of their own, and how long that slice is:
	// in steps, of which polls count pollStrain. Lanes that wait for others to reconverge wait long; lanes that others
	// may be spinning for do not: four polls, as a lane that holds a lock while others of its warp spin keeps whole blocks
	// out.
	Starved    = 64 << 10
	pollStrain = 1 << 14
)

// Warp is a warp of a resident block. Of its lanes that can step, one group runs: lanes at one instruction of one call
// stack. It is the group deepest in calls, and there with the smallest rank (Func.Rank): lanes that are behind run
// first, so that diverged lanes meet again at the earliest point. A group that has been waiting for long gets a slice of
// its own, so that spinning lanes cannot keep out the lane they wait for.
type Warp struct {
	CTA    *CTA
	Number uint32 // event.Event.Warp
	Index  int    // in the block
	Live   uint32 // lanes that have not exited
	Ready  uint32 // live lanes that wait for nothing
	Own    any    // of other engines

	group   uint32 // the lanes that run; all are at one place
	lead    int    // the lowest of them
	Regroup bool   // group must be chosen anew before the next step
	others  bool   // lanes outside the group could run
	Apart   bool   // not all live lanes were in one group since they last were
	stood   bool   // stands are not zeros
	Stalled bool   // lockstep: the running path waits for something
	Over    bool   // its turn is, before a strong access
	unused  bool   // it is as a warp that begins, but for what says which and how many lanes it has (ExitBlock)

	Time   uint64 // what this warp has run, polls counting pollCost
	Strain uint64 // the same, polls counting pollStrain
	Period uint64 // how long lanes must have waited to be starved
	Check  uint64 // strain at which starvation is looked for
	Forced uint32 // lanes that have a slice of their own, until check
	Whole  stand  // what all live lanes wait for, if they do together: the stands do not matter then

	began    uint64 // time when its turn did
	gaveWay  int    // before how many strong accesses it might have given way
	Polls    uint64 // since the scheduler last looked
	Writes   uint64
	priority uint64 // PCT

	// Lanes that have arrived at the barrier of the cluster and not waited: of the phase that is not complete, and of the one before.
	arrived, passed uint32
	first           event.Dim3 // the coordinate of lane 0
	lanes           []lane     // of engine ref, 32
	next            order      // the least order of the lanes outside the group

	// Lockstep only.
	Splits []Split
	At     Split  // where the last step stood and where lanes that part there meet again
	parted uint64 // splits so far

	// What most warps never use comes last, away from what each turn does.
	copies *copies // nil before the first use, see async
	stands [32]uint64
	// skipped are, of lanes that wait in a warp-level function, those that their masks name and that had passed it by then.
	skipped [32]uint32
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

// tid gives the coordinate of a lane in its block.
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

// halt makes the lanes of mask, whose stands are noted, unable to step.
func (w *Warp) halt(r *Run, mask uint32, place uint32) {
	r.Machine.Hold(w, mask, place)
	w.Ready &^= mask
	w.Regroup = true
}

// stand notes what the lanes of mask wait for.
func (w *Warp) stand(mask uint32, s stand) {
	lanes.Set64(&w.stands, uint64(s), mask)
	w.stood = true
}

// standOf tells what a lane waits for.
func (w *Warp) standOf(lane int) stand {
	if w.Whole != 0 {
		return w.Whole
	}
	return stand(w.stands[lane])
}

// Patience is how long lanes wait before they count as starved, and how long the next look for such lanes is off.
func (r *Run) Patience() uint64 {
	if r.Launch.Seed == 0 && r.Launch.Schedule != PCT {
		return Starved
	}
	return uint64(r.rng.spread(16)) + 512
}

// choose picks the group that runs next. The warp must be runnable; afterwards it is not when its path waits (Lockstep).
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

// ending gives the lanes of engine ref that are about to exit.
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

// Together notes which lanes run as a group, those that are about to exit included.
func (w *Warp) Together(r *Run, group uint32) {
	if group == w.Live && w.Apart {
		r.Out.reconverged(w)
	}
	w.Apart = group != w.Live
}

// longWaiting gives the lanes that are with the one that has waited longest, none when nobody is starved.
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

// moved tells the warp that its group made a step that cost so much and is together still.
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

// jump sets the instruction at which the lanes of mask stand.
func (w *Warp) jump(mask uint32, pc int32) {
	for m := mask; m != 0; m &= m - 1 {
		w.lanes[bits.TrailingZeros32(m)].pc = pc
	}
}

// Polled counts an operation that may be a poll, besides being an instruction.
func (w *Warp) Polled() {
	w.Time += pollCost - 1
	w.Strain += pollStrain - 1
}
