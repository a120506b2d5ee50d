package engine

import (
	"fmt"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
)

// WarpOp executes shfl, vote, match, redux, activemask and ldmatrix for the lanes of on. Lanes with a member mask wait
// until all live lanes of the mask execute the same instruction with the same mask (PTX ISA, "shfl.sync", "vote.sync").
func (r *Run) WarpOp(w *Warp, in *loader.Instr, on uint32, place uint32) {
	if !in.Masked {
		r.Sched.Spin.Active = true // activemask, and vote and shfl without .sync
		r.exchange(w, on, in, place)
		return
	}
	on, mask, same := r.memberMasks(w, in, on, place, &in.Operands[len(in.Operands)-1])
	switch {
	case on == 0:
	case same && mask&w.Live == on:
		r.exchange(w, on, in, place)
	default:
		r.gather(w, on, waitLanes, place)
	}
}

// WarpBarrier executes bar.warp.sync for the lanes of on.
func (r *Run) WarpBarrier(w *Warp, in *loader.Instr, on uint32, place uint32) {
	on, mask, same := r.memberMasks(w, in, on, place, &in.Operands[0])
	switch {
	case on == 0:
	case same && mask&w.Live == on:
		r.Out.WarpSync(w, on, place)
	default:
		r.gather(w, on, waitWarp, place)
	}
}

// memberMasks records the member masks of the lanes of on, and says whether these are the same. If a lane's own mask
// does not include it, the behaviour is undefined: that is a fault, and the lane executes the instruction alone. The
// other lanes are in.
func (r *Run) memberMasks(w *Warp, op *loader.Instr, on uint32, place uint32, src *loader.Operand) (in, mask uint32, same bool) {
	same = true
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		v := uint32(r.Machine.Value(w, i, src))
		if v&(1<<i) == 0 {
			r.Faults.At(r, MemberMask, w, i, place, "executes "+op.Mnemonic(), "lane %d executes %s with member mask %#x, which does not name the lane", i, op.Mnemonic(), v)
			r.alone(w, op, i, place)
			continue
		}
		w.stands[i] = uint64(Standing(waitNone, 0, v))
		w.stood = true
		if in == 0 {
			mask = v
		}
		in |= 1 << i
		same = same && v == mask
	}
	return in, mask, same
}

// alone executes a warp-level instruction for one lane as if there were no other lane.
func (r *Run) alone(w *Warp, in *loader.Instr, lane int, place uint32) {
	if in.Class == isa.WarpBarrier {
		r.Out.WarpSync(w, 1<<lane, place)
		return
	}
	r.compute(w, 1<<lane, in, place)
	in.Lanes(in.Inst, &r.WarpArgs)
	r.results(w, 1<<lane, in, place)
}

// gather makes the lanes of on wait for the others of their masks, and lets lanes continue whose masks are complete.
func (r *Run) gather(w *Warp, on uint32, why wait, place uint32) {
	passed := r.passed(w, w.Live&^on, place)
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		w.stands[i] |= uint64(why)
		w.skipped[i] = w.standOf(i).members() & passed
	}
	w.halt(r, on, place)
	r.wakeWarp(w)
}

// passed returns those of lanes that have passed an instruction at a place.
func (r *Run) passed(w *Warp, lanes, place uint32) (passed uint32) {
	at, yes := uint32(0), false // for the previous lane, which is mostly at the same place
	for m := lanes; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if p := r.Machine.Place(w, i); p != at {
			at, yes = p, r.Places.Passed(p, place)
		}
		if yes {
			passed |= 1 << i
		}
	}
	return passed
}

// wakeWarp lets lanes continue whose warp-level waits are complete.
func (r *Run) wakeWarp(w *Warp) {
	for i := range w.stands {
		s := w.standOf(i)
		if w.Live&^w.Ready&(1<<i) == 0 || s.waits() != waitWarp && s.waits() != waitLanes {
			continue
		}
		need := s.members() & w.Live
		if !r.together(w, i, need) {
			continue
		}
		r.skipped(w, need)
		if s.waits() == waitWarp {
			r.Out.WarpSync(w, need, r.Machine.Place(w, i))
		} else {
			if r.exchangeApart(w, need); w.standOf(i).waits() != waitLanes {
				continue // the instruction waits for further lanes
			}
		}
		r.Machine.Pass(w, need)
		w.wake(r, need)
	}
}

// together reports whether the lanes of need all wait like lane.
func (r *Run) together(w *Warp, lane int, need uint32) bool {
	for m := need; m != 0; m &= m - 1 {
		if !w.waitsWith(r, lane, bits.TrailingZeros32(m)) {
			return false
		}
	}
	return true
}

// waitsWith reports whether lane i waits like lane, which is at a warp-level wait.
func (w *Warp) waitsWith(r *Run, lane, i int) bool {
	s := w.standOf(lane)
	return w.standOf(i) == s && (s.waits() == waitWarp || sameOp(r.Machine.At(w, lane), r.Machine.At(w, i)))
}

// sameOp reports whether two warp instructions have the same qualifiers.
func sameOp(a, b *loader.Instr) bool {
	return a.Inst == b.Inst || a.Row == b.Row && slices.Equal(a.Mods, b.Mods)
}

// exchange executes a warp instruction for the lanes of on, which are at it together.
func (r *Run) exchange(w *Warp, on uint32, in *loader.Instr, place uint32) {
	if in.Class == isa.Warpgroup {
		r.warpgroup(w, in, on, place)
		return
	}
	r.compute(w, on, in, place)
	r.whole(w, on, in, place)
	in.Lanes(in.Inst, &r.WarpArgs)
	if in.Masked && r.WarpArgs.Astray != 0 {
		r.Astray(w, in, r.WarpArgs.Astray, place)
	}
	r.results(w, on, in, place)
}

// exchangeApart executes a warp instruction for the lanes of on, which wait at it, possibly at several places.
func (r *Run) exchangeApart(w *Warp, on uint32) {
	x := &r.WarpArgs
	lead := bits.TrailingZeros32(on)
	in, apart := r.Machine.At(w, lead), false
	for rest := on; rest != 0; {
		first := bits.TrailingZeros32(rest)
		place := r.Machine.Place(w, first)
		here := uint32(0)
		for m := rest; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); r.Machine.Place(w, i) == place {
				here |= 1 << i
			}
		}
		if in.Class != isa.Warpgroup {
			r.compute(w, here, r.Machine.At(w, first), place)
		}
		apart = apart || here != on
		rest &^= here
	}
	if in.Class == isa.Warpgroup {
		if apart {
			r.apart(w, in, on)
		}
		r.warpgroup(w, in, on, r.Machine.Place(w, lead))
		return
	}
	x.Mask = on
	r.whole(w, on, in, r.Machine.Place(w, lead))
	in.Lanes(in.Inst, x)
	if apart {
		r.apart(w, in, on)
	}
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at := r.Machine.At(w, i)
		if x.Astray>>uint(i)&1 != 0 {
			r.Astray(w, at, 1<<i, r.Machine.Place(w, i))
		}
		r.results(w, 1<<i, at, r.Machine.Place(w, i))
	}
}

// compute sets the arguments of in, at which the lanes of on are, and computes its results.
func (r *Run) compute(w *Warp, on uint32, in *loader.Instr, place uint32) {
	r.WarpArgs.Mask, r.WarpArgs.Astray = on, 0
	if in.Class == isa.Matrix {
		r.ReadRows(w, on, in, place)
		return
	}
	for m := on; m != 0; m &= m - 1 {
		r.sources(w, bits.TrailingZeros32(m), in)
	}
	if in.Class == isa.Tile && !in.Tiles.Store {
		r.ReadTile(w, on, in, place)
	}
}

func (r *Run) sources(w *Warp, lane int, in *loader.Instr) {
	for k := range in.Operands {
		r.WarpArgs.S[k][lane] = r.Machine.Value(w, lane, &in.Operands[k])
	}
}

// results gives the lanes of on the computed results of in.
func (r *Run) results(w *Warp, on uint32, in *loader.Instr, place uint32) {
	if in.Class == isa.Tile && in.Tiles.Store {
		r.WriteTile(w, on, in, place)
		return
	}
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		for _, d := range in.Results {
			r.Machine.Put(w, i, d, r.WarpArgs.D[d.At][i])
		}
	}
}

// Astray counts the lanes of stray, which read from lanes that take no part in the shuffle in. Call it before they have
// their results.
func (r *Run) Astray(w *Warp, in *loader.Instr, stray, place uint32) {
	fault, fresh := r.Faults.count(r, UndefinedShuffle, place, true)
	fault.Count += bits.OnesCount32(stray) - 1
	if !fresh {
		return
	}
	i := bits.TrailingZeros32(stray)
	from, _ := in.ShuffleSource(i, r.Machine.Value(w, i, &in.Operands[1]), r.Machine.Value(w, i, &in.Operands[2]))
	mask := uint32(r.Machine.Value(w, i, &in.Operands[len(in.Operands)-1]))
	fault.Stands = []Stand{{Place: place, Block: w.CTA.id, Thread: w.tid(i), Threads: 1, Doing: fmt.Sprintf("reads lane %d", from)}}
	why := ""
	switch threads := w.CTA.Threads - 32*w.Index; {
	case from >= threads:
		why = fmt.Sprintf("but the warp has %d threads", threads)
	case w.Live>>from&1 == 0:
		why = "which has exited"
		fault.Stands = append(fault.Stands, Stand{Place: r.Machine.Place(w, from), Block: w.CTA.id, Thread: w.tid(from), Threads: 1, Doing: "exited"})
	default:
		why = "which the mask does not name"
	}
	fault.Message = fmt.Sprintf("lane %d reads lane %d, %s, by %s with member mask %#x: the value is undefined", i, from, why, in.Mnemonic(), mask)
}

// apart counts a warp instruction that lanes of one mask execute at several places. The programming guide requires the
// same instruction, except for bar.warp.sync.
func (r *Run) apart(w *Warp, in *loader.Instr, on uint32) {
	var s standSet
	first := ^uint32(0)
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		place := r.Machine.Place(w, i)
		first = min(first, place)
		s.add(place, "executes "+in.Mnemonic(), w.CTA.id, w.tid(i))
	}
	fault, fresh := r.Faults.count(r, WarpDivergence, first, true)
	if fresh {
		fault.Message = fmt.Sprintf("lanes %#x of a warp execute one %s together, but at different places", on, in.Mnemonic())
		fault.Stands = s.stands()
	}
}

// skipped counts a warp instruction that lanes execute without others of their mask that passed it and exited while
// they waited. The programming guide requires all lanes of the mask, except those that had exited before.
func (r *Run) skipped(w *Warp, on uint32) {
	skipped, first, at := uint32(0), ^uint32(0), 0
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		skipped |= w.skipped[i] &^ w.Live
		w.skipped[i] = 0
		if place := r.Machine.Place(w, i); place < first {
			first, at = place, i
		}
	}
	if skipped == 0 {
		return
	}
	in := r.Machine.At(w, at)
	if in.Row.Whole {
		return // that is an error, see whole
	}
	if fault, fresh := r.Faults.count(r, WarpDivergence, first, true); fresh {
		fault.Message = fmt.Sprintf("lanes %#x of a warp execute %s without lanes %#x, which their mask names: those skipped it and have exited", on, in.Mnemonic(), skipped)
		var s standSet
		for i := range 32 {
			switch {
			case on>>i&1 != 0:
				s.add(r.Machine.Place(w, i), "executes "+in.Mnemonic(), w.CTA.id, w.tid(i))
			case skipped>>i&1 != 0:
				s.add(r.Machine.Place(w, i), "exited", w.CTA.id, w.tid(i))
			}
		}
		fault.Stands = s.stands()
	}
}
