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
		v := uint32(r.m.value(w, i, src))
		if v&(1<<i) == 0 {
			r.faults.at(r, MemberMask, w, i, place, "executes "+in.Row.Op, "lane %d executes %s with member mask %#x, which does not name the lane", i, in.Row.Op, v)
			v = 1 << i
		}
		w.stands[i] = uint64(standing(waitNone, 0, v))
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
		w.stands[bits.TrailingZeros32(m)] |= uint64(why)
	}
	w.halt(r, on, place)
	r.wakeWarp(w)
}

// wakeWarp lets the lanes go on whose warp-level waits are complete.
func (r *run) wakeWarp(w *warp) {
	for i := range w.stands {
		s := w.standOf(i)
		if w.live&^w.ready&(1<<i) == 0 || s.waits() != waitWarp && s.waits() != waitLanes {
			continue
		}
		need := s.members() & w.live
		if !r.together(w, i, need) {
			continue
		}
		if s.waits() == waitWarp {
			r.out.warpSync(w, need, r.m.place(w, i))
		} else {
			r.exchange(w, need, nil, i)
		}
		r.m.pass(w, need)
		w.wake(r, need)
	}
}

// together reports whether the lanes of need all wait as lane does.
func (r *run) together(w *warp, lane int, need uint32) bool {
	s := w.standOf(lane)
	for m := need; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if w.standOf(i) != s {
			return false
		}
		if s.waits() == waitLanes && !sameOp(r.m.at(w, lane), r.m.at(w, i)) {
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
		in = r.m.at(w, lead)
	}
	x := &r.wargs
	x.Mask = on
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at := in
		if own {
			at = r.m.at(w, i)
		}
		for k := range at.src {
			x.S[k][i] = r.m.value(w, i, &at.src[k])
		}
	}
	in.Lanes(in.Inst, x)
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at := in
		if own {
			at = r.m.at(w, i)
		}
		for _, d := range at.dst {
			r.m.put(w, i, d, x.D[d.at][i])
		}
	}
}
