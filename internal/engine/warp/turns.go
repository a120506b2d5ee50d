package warp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/vcode"
)

// short counts the steps of turns on the fast path (Turns) that the run has not counted yet.
type short struct{ warps, lanes uint64 }

// Turns implements engine.Machine. It is a fast path: most turns of warps whose lanes are together are lists that end
// at a barrier of all threads or at the exit. It has the effect of Run and exec but checks less: conditions that are
// equal for all warps of a block are checked once, and steps are counted once a turn.
func (x *machine) Turns(warps []*engine.Warp, n uint64, p *engine.Passes) (done int, ran bool) {
	if x.machine == nil || x.calls != nil || x.t.Lockstep {
		return 0, false
	}
	x.aim(warps[0])
	if x.crew == nil {
		x.crew = x.newCrew()
	}
	if x.crew.size != 0 {
		if done = x.crew.march(warps, int64(n), p); done != 0 {
			if ran = true; x.r.Stop != nil {
				return done, ran
			}
		}
	}
	for _, w := range warps[done:] {
		if w.Runnable() {
			h := heldOf(w)
			if h.registers == nil {
				x.begin(w)
			}
			if w.Regroup || len(h.registers.groups) != 1 || w.Ready != w.Live {
				break
			}
			ran = true
			if x.turn(w, h.registers, int64(n)); x.r.Stop != nil {
				done++
				break
			}
		}
		done++
	}
	x.tally()
	return done, ran
}

// tally adds the counts to the counts of the run.
func (x *machine) tally() {
	x.r.Count(x.short.warps, x.short.lanes)
	x.short = short{}
}

// turn is a turn, of n steps, of a warp whose lanes are together.
func (x *machine) turn(w *engine.Warp, v *registers, n int64) {
	t, g, f := x.t, &v.groups[0], &v.files
	code, counts := t.Code, t.Counts
	pc, left := g.pc, n
	v.regs(x.scalars(v, g.slot))
	usual := false
	for {
		if in := &code[pc]; in.Op == vcode.OpRun {
			at := x.do(w, f, in, g.mask, left+int64(counts[pc]))
			left -= f.Steps + int64(counts[at]-counts[pc])
			pc = at
		}
		to := &code[pc]
		if to.Op == vcode.OpBranch {
			x.took(w, g, pc, n-left)
			n = left
			from := w.Time
			how := x.arms(w, v, pc, from+uint64(left))
			x.r.Spent(w.Time - from)
			n -= int64(w.Time - from)
			if left = n; how == inArms {
				x.rest(w, v, left)
				return
			}
			if pc = g.pc; how == throughArm {
				continue
			}
		}
		if to.Op != vcode.OpSync && to.Op != vcode.OpExit {
			break
		}
		if usual = left <= 0 && t.Meet[pc] >= 0; usual {
			break
		}
		e, place := &t.Effects[to.A], x.places[to.A]
		if to.Op == vcode.OpExit {
			x.took(w, g, pc+1, n-left+1)
			x.exit(w, g.mask, place)
			x.release(w)
			return
		}
		if e.Bar < 0 || !x.meet(w, g, e, pc, place) {
			break
		}
		left--
		pc = g.pc
		if usual = w.Ready == 0 || left <= 0; usual {
			break
		}
	}
	x.took(w, g, pc, n-left)
	if usual {
		return
	}
	x.rest(w, v, left)
}

// rest executes the rest of a turn without the fast path.
func (x *machine) rest(w *engine.Warp, v *registers, left int64) {
	x.tally()
	from, end := w.Time, w.Time+uint64(left)
	if x.t.Meet[v.groups[v.cur].pc] < 0 {
		x.exec(w, end)
	}
	x.Run(w, end)
	x.r.Spent(w.Time - from)
}

// took records that all lanes of a warp have made steps steps and are at a place.
func (x *machine) took(w *engine.Warp, g *group, pc int32, steps int64) {
	k := uint64(steps)
	w.Time += k
	w.Strain += k
	x.short.warps += k
	x.short.lanes += k * uint64(bits.OnesCount32(g.mask))
	g.pc, g.ran = pc, w.Strain
}
