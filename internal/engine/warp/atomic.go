package warp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// atomic executes atom and red for the lanes of mask whose guard holds.
func (x *machine) atomic(w *engine.Warp, i int32, mask uint32, s []uint64) {
	e := &x.t.Effects[i]
	on := regsOf(w).active(e, s, mask)
	if on == 0 {
		return
	}
	first, second := x.r.LaneOrder(w, on, x.places[i])
	x.atomicBy(w, i, first, s)
	if second != 0 {
		x.atomicBy(w, i, second, s)
	}
}

// atomicBy executes atom and red for the lanes of on, lowest first.
func (x *machine) atomicBy(w *engine.Warp, i int32, on uint32, s []uint64) {
	e := &x.t.Effects[i]
	if e.Element != 0 || e.Vec > 1 || e.Width > 8 || !x.reach(w, s, i, on, true) {
		if x.r.Atomic(w, &e.Instr, on, x.places[i]) > 1 {
			w.Polled()
		}
		return
	}
	x.learn(i)
	var changed bool
	var failed uint32
	together := e.LaneRMW == lanes.RMWAdd && x.span.line && x.span.stride == 0 && e.Unread && !x.valued()
	if !together {
		x.each(on)
	}
	switch {
	case together:
		changed = x.addTogether(regsOf(w), s, e, on)
	case e.LaneRMW == lanes.NoRMW:
		changed, failed = x.updateEach(w, s, e, on)
	case e.Piece == 4:
		changed, failed = x.update32(regsOf(w), s, e, on)
	default:
		changed, failed = x.update64(regsOf(w), s, e, on)
	}
	if x.tells {
		x.tellAtomic(w, e, x.places[i], on, failed)
	}
	if changed {
		w.Writes++
	} else if len(e.Dst) > 0 {
		w.Polls++
		w.Polled()
	}
}

// valued reports whether events include the values written.
func (x *machine) valued() bool { return x.r.Out.Needs&event.NeedValues != 0 }

// update32 performs four-byte read-modify-writes. It reports whether one of them changed memory, and which lanes failed
// a compare-and-swap.
func (x *machine) update32(v *registers, s []uint64, e *vcode.Effect, on uint32) (changed bool, failed uint32) {
	b := x.vec32(v, s, e.Vals[0], 0)
	c := b
	cas, valued := e.LaneRMW == lanes.RMWCas, x.valued()
	if cas {
		c = x.vec32(v, s, e.Vals[1], 1)
	}
	// The old values may be written straight over b, unless b is read again later.
	old := &x.x32[2]
	direct := len(e.Results) > 0 && !cas && !valued
	if direct {
		old = &v.v32[e.Results[0].Reg]
	}
	changed = lanes.Atomic32(e.LaneRMW, old, x.span.data, &x.offsets, b, c, on)
	if cas {
		failed = lanes.NE32(old, b, on)
	}
	if valued {
		e.LaneRMW.Leaves32(&x.left, old, b, c, on)
		lanes.ZExt64(&x.before, old, on)
	}
	if len(e.Results) > 0 && !direct {
		lanes.Copy32(&v.v32[e.Results[0].Reg], old, on)
	}
	return changed, failed
}

// addTogether adds to one place the sum of the addends of the lanes of on. It is for atomics whose old value is not
// used and whose events have no values. It reports whether a lane changes memory.
func (x *machine) addTogether(v *registers, s []uint64, e *vcode.Effect, on uint32) (changed bool) {
	at := x.span.data[x.span.at:][:e.Piece]
	sum, mask := uint64(0), ^uint64(0)>>(64-8*e.Piece)
	add := func(val uint64) {
		sum += val
		changed = changed || val&mask != 0
	}
	switch o := e.Vals[0]; {
	case o < 0 && x.t.Lines[^o].Pattern < 0 && x.t.Lines[^o].Stride == 0:
		val := s[x.t.Lines[^o].Reg]
		add(val)
		sum = val * uint64(bits.OnesCount32(on))
	case e.Piece == 4:
		from := x.vec32(v, s, o, 0)
		for m := on; m != 0; m &= m - 1 {
			add(uint64(from[bits.TrailingZeros32(m)&31]))
		}
	default:
		from := x.vec64(v, s, o, 0)
		for m := on; m != 0; m &= m - 1 {
			add(from[bits.TrailingZeros32(m)&31])
		}
	}
	devmem.PutUint(at, devmem.Uint(at, e.Piece)+sum)
	return changed
}

// update64 is update32 for eight bytes.
func (x *machine) update64(v *registers, s []uint64, e *vcode.Effect, on uint32) (changed bool, failed uint32) {
	b := x.vec64(v, s, e.Vals[0], 0)
	c := b
	cas, valued := e.LaneRMW == lanes.RMWCas, x.valued()
	if cas {
		c = x.vec64(v, s, e.Vals[1], 1)
	}
	old := &x.x64[2]
	direct := len(e.Results) > 0 && !cas && !valued
	if direct {
		old = &v.v64[e.Results[0].Reg]
	}
	changed = lanes.Atomic64(e.LaneRMW, old, x.span.data, &x.offsets, b, c, on)
	if cas {
		failed = lanes.NE64(old, b, on)
	}
	if valued {
		e.LaneRMW.Leaves64(&x.left, old, b, c, on)
		lanes.Copy64(&x.before, old, on)
	}
	if len(e.Results) > 0 && !direct {
		lanes.Copy64(&v.v64[e.Results[0].Reg], old, on)
	}
	return changed, failed
}

// updateEach performs the read-modify-writes that package lanes does not implement, lowest lane first.
func (x *machine) updateEach(w *engine.Warp, s []uint64, e *vcode.Effect, on uint32) (changed bool, failed uint32) {
	n, off := e.Piece, &x.offsets
	for m := on; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		at := x.span.data[off[l]:][:n:n]
		old, b, c := devmem.Uint(at, n), x.Value(w, l, &e.Operands[1]), uint64(0)
		if e.Op == isa.OpCas {
			c = x.Value(w, l, &e.Operands[2])
			if engine.LowBytes(b, n) != old {
				failed |= 1 << l
			}
		}
		now := engine.LowBytes(e.RMW(e.Inst, old, b, c), n)
		if x.before[l] = old; n < 4 {
			x.before[l] = engine.Around(x.span.data, off[l], x.span.origin)
		}
		devmem.PutUint(at, now)
		changed = changed || now != old
		for k := range e.Results {
			d := &e.Results[k]
			x.Put(w, l, *d, e.Type.Extend(old, e.Dst[d.At].Size))
		}
		x.left[l] = now
	}
	return changed, failed
}

// tellAtomic emits the events of an atomic. x.left holds the values that the lanes left in memory.
func (x *machine) tellAtomic(w *engine.Warp, e *vcode.Effect, place uint32, on, failed uint32) {
	sp, o := &x.span, &x.r.Out
	switch {
	case sp.space == event.Global && o.Needs&event.NeedGlobal != 0:
	case sp.space == event.Shared && o.Needs&event.NeedShared != 0:
	default:
		return
	}
	off := &x.offsets
	if failed != 0 && failed != on {
		acc := &x.r.Access
		acc.Global, acc.Shared = on, 0
		if sp.space == event.Shared {
			acc.Global, acc.Shared = 0, on
		}
		for m := on; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			acc.Addr[l] = sp.origin + off[l]
			clear(acc.Value[l][:])
			clear(acc.Old[l][:])
			acc.Value[l][0], acc.Old[l][0] = x.left[l], x.before[l]
		}
		o.Atomics(w, &e.Instr, place, acc, failed)
		return
	}
	flags := engine.Wrote(&e.Instr)
	if failed != 0 {
		flags &^= event.FlagWrite
	}
	ev := x.event(event.Atomic, flags, w, e, place, on)
	ev.RMW = engine.RMWOf(e.Op)
	if o.Needs&event.NeedValues != 0 && flags&event.FlagWrite != 0 {
		ev.Flags |= event.FlagValues
		ev.Val = uint32(len(o.Batch.Values))
		o.Batch.Values = engine.Pack(o.Batch.Values, &x.left, on)
		if o.Olds() {
			ev.Flags |= event.FlagOld
			o.Batch.Values = engine.Pack(o.Batch.Values, &x.before, on)
		}
	}
	o.Added()
}
