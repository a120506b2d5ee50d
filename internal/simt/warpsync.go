package simt

import "math/bits"

// warpOp executes shfl, vote, match, redux and activemask for the lanes of on. Those with a member mask wait until all
// lanes of it that have not exited execute the same instruction with the same mask (PTX ISA, "shfl.sync", "vote.sync").
func (r *run) warpOp(w *warp, in *inst, on uint32, place uint32) {
	if !in.masked {
		r.exchange(w, on, in, 0)
		return
	}
	mask, same := r.memberMasks(w, in, on, place, &in.src[len(in.src)-1])
	if same && mask&w.live == on {
		r.exchange(w, on, in, 0)
		return
	}
	r.gather(w, on, waitLanes, place)
}

// warpBarrier executes bar.warp.sync for the lanes of on.
func (r *run) warpBarrier(w *warp, in *inst, on uint32, place uint32) {
	mask, same := r.memberMasks(w, in, on, place, &in.src[0])
	if same && mask&w.live == on {
		r.out.warpSync(w, on, place)
		return
	}
	r.gather(w, on, waitWarp, place)
}

// memberMasks sets the lanes' member masks and reports whether they have one in common. A lane that its own mask does not
// name is undefined behaviour: a fault, and the lane goes on by itself.
func (r *run) memberMasks(w *warp, in *inst, on uint32, place uint32, src *operand) (mask uint32, same bool) {
	same = true
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		v := uint32(r.value(w, i, src))
		if v&(1<<i) == 0 {
			r.faults.at(r, BarrierDivergence, w, i, place, "executes "+in.Row.Op, "lane %d executes %s with member mask %#x, which does not name the lane", i, in.Row.Op, v)
			v = 1 << i
		}
		w.lanes[i].waitMask = v
		if m == on {
			mask = v
		}
		same = same && v == mask
	}
	return mask, same
}

// gather makes the lanes of on wait for the others of their masks, and lets those go on that are complete.
func (r *run) gather(w *warp, on uint32, why wait, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		ln := &w.lanes[bits.TrailingZeros32(m)]
		ln.pc = int32(place - ln.base)
	}
	w.block(on, why)
	r.wakeWarp(w)
}

// wakeWarp lets the lanes go on whose warp-level waits are complete.
func (r *run) wakeWarp(w *warp) {
	for i := range w.lanes {
		ln := &w.lanes[i]
		if w.live&^w.ready&(1<<i) == 0 || ln.waits != waitWarp && ln.waits != waitLanes {
			continue
		}
		need := ln.waitMask & w.live
		if !w.together(ln, need) {
			continue
		}
		if ln.waits == waitWarp {
			r.out.warpSync(w, need, ln.place())
		} else {
			r.exchange(w, need, nil, i)
		}
		for m := need; m != 0; m &= m - 1 {
			w.lanes[bits.TrailingZeros32(m)].pc++
		}
		w.wake(need)
	}
}

// together reports whether the lanes of need all wait as ln does.
func (w *warp) together(ln *lane, need uint32) bool {
	for m := need; m != 0; m &= m - 1 {
		o := &w.lanes[bits.TrailingZeros32(m)]
		if o.waits != ln.waits || o.waitMask != ln.waitMask {
			return false
		}
		if ln.waits == waitLanes && !sameOp(&ln.code.insts[ln.pc], &o.code.insts[o.pc]) {
			return false
		}
	}
	return true
}

// sameOp reports whether two warp instructions have the same qualifiers.
func sameOp(a, b *inst) bool {
	return a.Row == b.Row && a.Op == b.Op && a.Type == b.Type && a.Mode == b.Mode
}

// exchange executes a warp instruction for the lanes of on together: in, or each lane's own one (all alike; lead's
// decides) when in is nil.
func (r *run) exchange(w *warp, on uint32, in *inst, lead int) {
	own := in == nil
	if own {
		in = &w.lanes[lead].code.insts[w.lanes[lead].pc]
	}
	x := &r.wargs
	x.Mask = on
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at := in
		if own {
			at = &w.lanes[i].code.insts[w.lanes[i].pc]
		}
		for k := range at.src {
			x.S[k][i] = r.value(w, i, &at.src[k])
		}
	}
	in.Lanes(in.Inst, x)
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at := in
		if own {
			at = &w.lanes[i].code.insts[w.lanes[i].pc]
		}
		for _, d := range at.dst {
			w.lanes[i].regs[d.reg] = x.D[d.at][i]
		}
	}
}
