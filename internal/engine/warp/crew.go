package warp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// goesInStep enables crews. Tests clear it to compare with single turns.
var goesInStep = true

// A crew executes a block of whole warps that emits no events. It has the effect of the turns of the single warps one
// after the other, with less work between the lists. Consecutive warps at one place execute one list in a row
// (lanes.Compiled.RunAll), and a bit mask records which warps wait at a barrier of all threads. The order of steps and
// the length of each turn are the same as without a crew. If a warp reaches any other instruction, the crew is
// dissolved: the barrier and the warps get the state that single turns would have given them.

// maxCrew is the greatest number of warps in a crew.
//
// crewBytes is the most that the registers of a crew may take if the kernel has no barriers. Without a crew such warps
// run to their end one after the other and reuse the registers of the previous warp, which are in the cache.
//
// After mostVain consecutive blocks in which no crew reached a barrier or the end of the block, crews are no longer
// used.
const (
	maxCrew   = 32
	crewBytes = 24 << 10
	mostVain  = 32
)

// crew executes blocks. It keeps the registers from one block to the next.
type crew struct {
	x     *machine
	size  int // number of warps; 0 if the launch has no use for a crew
	warps []*engine.Warp
	regs  [maxCrew]*registers
	files [maxCrew]*lanes.Regs // the files of regs
	block []vcode.Fixed        // special registers that are equal for all warps of a block

	// By warp: its place, and the pending additions to its Time and Strain, and to its Writes.
	pcs          [maxCrew]int32
	time, writes [maxCrew]uint64

	waits, gone uint32 // the warps that wait at a barrier, and those that have exited
	handed      uint32 // the warps that hold their registers themselves (hand)
	all         uint32
	bar         int32  // the place of the barrier that waits wait at
	first       int    // the warp that arrived there first
	steps       uint64 // not yet counted in the run
	vain        int    // blocks since a crew last reached a barrier or the end of its block
}

// newCrew makes the crew of a launch.
func (x *machine) newCrew() *crew {
	k, t, n := &crew{x: x}, x.t, int(x.r.Launch.WarpsPerBlock())
	if !goesInStep || x.calls != nil || t.Lockstep || t.Shadows || x.log != nil || n > maxCrew || t.Code[0].Op != vcode.OpRun {
		return k
	}
	barriers := false
	for i := range t.Effects {
		barriers = barriers || t.Effects[i].Bar >= 0
	}
	if !barriers && n*(128*t.V32+256*t.V64+32*t.Local) > crewBytes {
		return k
	}
	k.size, k.all = n, uint32(1<<n-1)
	for _, f := range x.specials {
		switch isa.SpecialID(f.Val) {
		case isa.TidX, isa.TidY, isa.TidZ, isa.LaneID, isa.WarpID, isa.LanemaskEQ, isa.LanemaskLT, isa.LanemaskLE, isa.LanemaskGE, isa.LanemaskGT:
		default:
			k.block = append(k.block, f)
		}
	}
	return k
}

// march returns the warps of a block that has just begun turns of n steps, pass after pass. It returns how many warps
// have had their turn in the last pass, and 0 if no crew can execute the block.
func (k *crew) march(warps []*engine.Warp, n int64, p *engine.Passes) int {
	x, c := k.x, warps[0].CTA
	if k.vain == mostVain || warps[0].Time != 0 || len(warps) != k.size || k.size != len(c.Warps) || !x.r.InStep(c) { // the first turn of a block is its first warp's
		return 0
	}
	k.muster(warps)
	for {
		for i := 0; i < k.size; i++ {
			if (k.waits|k.gone)>>i&1 != 0 {
				continue
			}
			from := k.pcs[i]
			if !k.turn(i, -1, n) {
				return i + 1
			}
			var ok bool
			if i, ok = k.follow(i, from, n); !ok {
				return i + 1
			}
		}
		k.tally()
		if k.gone == k.all {
			for m := k.handed; m != 0; m &= m - 1 {
				heldOf(warps[bits.TrailingZeros32(m)]).registers = nil
			}
			k.vain = 0
			x.r.ExitBlock(c, k.handed)
			return k.size
		}
		if !p.Again(c) {
			k.dissolve(-1)
			return k.size
		}
	}
}

// muster gives the warps registers.
func (k *crew) muster(warps []*engine.Warp) {
	x := k.x
	k.warps, k.waits, k.gone, k.handed = warps, 0, 0, 0
	k.vain++
	var block [8]uint64
	for i, f := range k.block {
		if i < len(block) {
			block[i] = x.r.Special(warps[0], 0, isa.SpecialID(f.Val))
		}
	}
	for i, w := range warps {
		v := k.regs[i]
		k.pcs[i], k.time[i], k.writes[i] = 0, 0, 0
		if v == nil || len(k.block) > len(block) {
			if v != nil {
				x.pool = append(x.pool, v)
			}
			x.begin(w)
			v = regsOf(w)
			k.regs[i], k.files[i] = v, &v.files
			k.handed |= 1 << i
			v.regs(x.scalars(v, 0))
			continue
		}
		clear(v.local)
		for j, f := range k.block {
			v.sc[f.Reg] = block[j]
		}
	}
}

// follow executes the turn of warp i for the consecutive warps after i that are at the place from, where warp i began
// its turn, and have not had their turn yet. It returns the last warp that has had its turn, and false if the crew is
// dissolved.
func (k *crew) follow(i int, from int32, n int64) (int, bool) {
	to := k.pcs[i]
	if (k.waits|k.gone)>>i&1 == 0 || k.x.t.Code[from].Op != vcode.OpRun {
		return i, true
	}
	j := i + 1
	for j < k.size && (k.waits|k.gone)>>j&1 == 0 && k.pcs[j] == from {
		j++
	}
	if j == i+1 {
		return i, true
	}
	t, in := k.x.t, &k.x.t.Code[from]
	done, end := k.x.machine.RunAll(in.A, k.files[i+1:j], n+int64(t.Counts[from]), uint64(in.Fn), uint64(to))
	done = i + done
	gone := k.gone>>i&1 != 0
	steps := int64(t.Counts[to] - t.Counts[from])
	for m := i + 1; m <= done; m++ {
		f := k.files[m]
		if n <= f.Steps+steps || !gone && k.waits|1<<m == k.all {
			if !k.turn(m, to, n-k.ran(m, from, to)) {
				return m, false
			}
			continue
		}
		k.writes[m] += f.Marks
		k.spend(m, f.Steps+steps+1)
		if k.pcs[m] = to; gone {
			k.gone |= 1 << m
		} else {
			k.waits |= 1 << m
		}
	}
	if m := done + 1; m < j {
		return m, k.turn(m, int32(end), n-k.ran(m, from, int32(end)))
	}
	return done, true
}

// ran counts what a list executed for warp i and returns its number of steps.
func (k *crew) ran(i int, from, to int32) int64 {
	f, t := k.files[i], k.x.t
	k.writes[i] += f.Marks
	steps := f.Steps + int64(t.Counts[to]-t.Counts[from])
	k.spend(i, steps)
	return steps
}

func (k *crew) spend(i int, steps int64) {
	k.time[i] += uint64(steps)
	k.steps += uint64(steps)
}

// tally adds the counts to the counts of the run.
func (k *crew) tally() {
	k.x.short.warps, k.x.short.lanes = k.steps, 32*k.steps
	k.steps = 0
	k.x.tally()
}

// hand gives warp i its registers and its counts.
func (k *crew) hand(i int) {
	w := k.warps[i]
	k.handed |= 1 << i
	heldOf(w).registers = k.regs[i]
	w.Regroup = false
	w.Time += k.time[i]
	w.Strain += k.time[i]
	w.Writes += k.writes[i]
	k.time[i], k.writes[i] = 0, 0
}

// turn continues the turn of warp i, which has left steps left. It continues at the place at, which a list has reached,
// or if at is -1 with the list at the place of the warp. False says that the crew is dissolved and the turn is over.
func (k *crew) turn(i int, at int32, left int64) bool {
	x, w, t := k.x, k.warps[i], k.x.t
	for {
		if from := k.pcs[i]; at < 0 && t.Code[from].Op != vcode.OpRun {
			at = from
		} else if at < 0 {
			in, f := &t.Code[from], k.files[i]
			f.Steps, f.Limit, f.Marks = 0, left+int64(t.Counts[from]), uint64(in.Fn)
			at = int32(x.machine.Run(in.A, f, ^uint32(0)))
			left -= k.ran(i, from, at)
		}
		k.pcs[i] = at
		switch to := &t.Code[at]; {
		case to.Op == vcode.OpBranch:
			k.hand(i)
			from := w.Time
			how := x.arms(w, k.regs[i], at, from+uint64(left))
			x.r.Spent(w.Time - from)
			left -= int64(w.Time - from)
			switch how {
			case noArms:
				return k.leave(i, left)
			case inArms:
				v := k.regs[i]
				k.dissolve(i)
				x.rest(w, v, left)
				return false
			}
			k.pcs[i], at = k.regs[i].groups[0].pc, -1
		case left <= 0 && t.Meet[at] >= 0:
			return true
		case to.Op == vcode.OpExit && k.waits == 0:
			k.spend(i, 1)
			k.gone |= 1 << i
			return true
		case to.Op == vcode.OpSync && t.Effects[to.A].Bar >= 0 && k.gone == 0 && (k.waits == 0 || k.bar == at):
			k.spend(i, 1)
			left--
			if k.waits == 0 {
				k.first, k.bar = i, at
			}
			if k.waits |= 1 << i; k.waits != k.all {
				return true
			}
			k.waits, k.vain = 0, 0
			w.CTA.CountBarrier()
			for j := range k.size {
				k.pcs[j] = at + 1
			}
			if left <= 0 {
				return true
			}
			at = -1
		default:
			return k.leave(i, left)
		}
	}
}

// leave dissolves the crew and executes the rest of the turn of warp i.
func (k *crew) leave(i int, left int64) bool {
	x, w, v := k.x, k.warps[i], k.regs[i]
	k.hand(i)
	k.dissolve(i)
	v.groups[0].pc = k.pcs[i]
	x.turn(w, v, left)
	return false
}

// dissolve gives the warps of the crew, except the one whose turn it is, the state that single turns would have given
// them.
func (k *crew) dissolve(turn int) {
	x, t := k.x, k.x.t
	k.tally()
	for i, w := range k.warps {
		v := k.regs[i]
		if i != turn {
			k.hand(i)
		}
		if k.regs[i] = nil; i == turn {
			continue
		}
		g := &v.groups[0]
		if g.pc, g.ran = k.pcs[i], w.Strain; k.gone>>i&1 != 0 {
			x.exit(w, g.mask, x.places[t.Code[g.pc].A])
			x.release(w)
		}
	}
	for i := range k.size {
		if i = (i + k.first) % k.size; k.waits>>i&1 == 0 {
			continue
		}
		w, e := k.warps[i], t.Code[k.bar].A
		if !x.meet(w, &regsOf(w).groups[0], &t.Effects[e], k.bar, x.places[e]) || bits.OnesCount32(k.waits) == k.size {
			panic("BUG: a barrier of a crew is complete")
		}
	}
}
