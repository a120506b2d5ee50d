package warp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// cached is the allocation that an effect accessed last.
type cached struct {
	b     *devmem.Block
	epoch uint64
}

// span is the memory that the lanes of an access touch: a piece of memory and the offset of each lane in it. The offset
// is at + (lane - first) * stride if line is set, and otherwise machine.offsets[lane].
type span struct {
	data   []byte
	space  event.Space
	line   bool
	first  int
	at     uint64 // offset in data of the first lane
	addr   uint64 // address of the first lane, as in events
	shift  uint64 // addresses minus those in events
	stride uint64
	origin uint64 // address of the start of data, as in events
}

// active returns the lanes of mask that take part in an access.
func (v *registers) active(e *vcode.Effect, s []uint64, mask uint32) uint32 {
	if !e.Guarded {
		return mask
	}
	on := v.pred(s, e.Pred)
	if e.PredNot {
		on = ^on
	}
	return on & mask
}

// reach finds the memory that the lanes of on access. It returns false in unusual cases (a fault, several spaces,
// several allocations). The access then goes lane by lane.
func (x *machine) reach(w *engine.Warp, s []uint64, i int32, on uint32, write bool) bool {
	e, sp := &x.t.Effects[i], &x.span
	sp.stride, sp.shift, sp.data = 0, 0, nil
	sp.line = e.Addr < 0 && x.t.Lines[^e.Addr].Pattern < 0
	sp.first = bits.TrailingZeros32(on)
	var ok bool
	if sp.line {
		ok = x.reachLine(w, s, i, on, write)
	} else {
		ok = x.reachEach(w, s, i, on, write)
	}
	sp.origin -= sp.shift
	sp.addr = sp.origin + sp.at
	return ok
}

// reachLine is reach for an address that is a scalar.
func (x *machine) reachLine(w *engine.Warp, s []uint64, i int32, on uint32, write bool) bool {
	e, sp := &x.t.Effects[i], &x.span
	l := &x.t.Lines[^e.Addr]
	n := uint64(31 - bits.LeadingZeros32(on) - sp.first) // from the first lane to the last
	base := s[l.Reg] + uint64(sp.first)*l.Stride
	if sp.stride = l.Stride; sp.stride+1<<40 >= 1<<41 {
		return false
	}
	if e.Narrow {
		base &= 0xffff_ffff
		if end := base + n*sp.stride; end>>32 != 0 {
			return false
		}
	}
	base += e.Offset
	span := n * sp.stride
	low := base
	if int64(span) < 0 {
		low += span
		span = -span
	}
	x.region(w, sp, i, low, write)
	limit, ok := x.limit(e, sp)
	if !ok || (base|sp.stride)&(e.Width-1) != 0 || low-sp.origin > limit || span > limit-(low-sp.origin) {
		return false
	}
	sp.at = base - sp.origin
	if n == 0 {
		sp.stride = 0
	}
	if sp.space == event.Local {
		own := x.own
		sp.at += uint64(sp.first) * own
		sp.stride += own
	}
	return true
}

// limit returns the greatest offset that an access may have in the memory of the span.
func (x *machine) limit(e *vcode.Effect, sp *span) (uint64, bool) {
	n := uint64(len(sp.data))
	if sp.space == event.Local {
		n = x.end
	}
	return n - e.Width, sp.data != nil && n >= e.Width && sp.origin&(e.Width-1) == 0
}

// reachEach is reach for lanes that each have an address.
func (x *machine) reachEach(w *engine.Warp, s []uint64, i int32, on uint32, write bool) bool {
	e, v, sp := &x.t.Effects[i], regsOf(w), &x.span
	off := &x.offsets
	addr := off
	if e.Narrow {
		lanes.ZExt64(off, x.vec32(v, s, e.Addr, 0), on)
	} else {
		addr = x.vec64(v, s, e.Addr, 0)
	}
	x.region(w, sp, i, addr[sp.first]+e.Offset, write)
	limit, ok := x.limit(e, sp)
	if !ok {
		return false
	}
	if !lanes.Offsets(off, addr, sp.origin-e.Offset, limit, e.Width-1, on) {
		return false
	}
	sp.at = off[sp.first]
	if x.tells { // a line makes a shorter event, and is no faster otherwise
		_, sp.stride, sp.line = lanes.Stride(off, on)
	}
	if sp.space == event.Local {
		n := x.own
		sp.at += uint64(sp.first) * n
		if sp.line {
			sp.stride += n
		}
		for m := on; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			off[l] += uint64(l) * n
		}
	}
	return true
}

// region finds the memory around an address, and the address at which it begins. It leaves data nil if the memory may
// not be accessed.
func (x *machine) region(w *engine.Warp, sp *span, i int32, addr uint64, write bool) {
	sp.space, sp.origin = x.t.Effects[i].Space, 0
	if sp.space == event.Generic {
		sp.space, _ = engine.SplitGeneric(addr)
		sp.origin = addr >> loader.WindowShift << loader.WindowShift
	}
	switch sp.space {
	case event.Global, event.Const:
		c := &x.cache[i]
		if now := x.r.Memory.Epoch(); c.epoch != now || c.b == nil || !c.b.Covers(addr) {
			*c = cached{x.r.Memory.Lookup(addr), now}
			x.r.Meets(c.b, &x.t.Effects[i].Instr)
		}
		if b := c.b; b != nil && !b.Freed && !(b.Const && write) {
			sp.data, sp.origin = b.Data, b.Addr
		}
	case event.Shared:
		sp.data, sp.shift = w.CTA.Shared, sp.origin
		if e := &x.t.Effects[i]; e.VarEnd != 0 { // an access outside the variable goes lane by lane
			sp.data, sp.origin = sp.data[e.VarBegin:e.VarEnd], sp.origin+e.VarBegin
		}
	case event.Local:
		sp.data = regsOf(w).local
	}
}

// parts reports whether a load of a uniform address reads local memory, which differs by lane, so that the group must
// be split.
func (x *machine) parts(s []uint64, e *vcode.Effect, mask uint32) bool {
	if e.Space != event.Generic || mask&(mask-1) == 0 {
		return false
	}
	return (s[x.t.Lines[^e.Addr].Reg]+e.Offset)>>loader.WindowShift == loader.LocalWindow>>loader.WindowShift
}

// load executes ld for the lanes of mask whose guard holds.
func (x *machine) load(w *engine.Warp, i int32, mask uint32, s []uint64) {
	e, v := &x.t.Effects[i], regsOf(w)
	on := v.active(e, s, mask)
	if on == 0 {
		return
	}
	sp := &x.span
	if e.Element != 0 || !x.reach(w, s, i, on, false) {
		x.isLate = e.Uniform
		cost := x.r.Load(w, &e.Instr, on, x.places[i])
		if x.isLate = false; e.Uniform {
			x.writeLate(s, e)
		}
		if cost > 1 {
			w.Polled()
		}
		return
	}
	x.learn(i)
	for k := range e.Results {
		x.loadPiece(v, e, &e.Results[k], sp, on)
	}
	if e.Uniform {
		x.writeLate(s, e)
	}
	x.tell(w, s, event.Load, event.FlagRead, e, x.places[i], sp, on)
	if e.Order != event.Weak {
		w.Polls++
		w.Polled()
	}
}

// writeLate writes the scalar results of a load, after the last use of its address.
func (x *machine) writeLate(s []uint64, e *vcode.Effect) {
	for _, d := range e.Results {
		if d.Kind == loader.OpUniform {
			s[d.Reg] = x.late[d.At]
		}
	}
}

// loadPiece loads one result.
func (x *machine) loadPiece(v *registers, e *vcode.Effect, d *loader.Slot, sp *span, on uint32) {
	plus := uint64(d.At) * e.Piece
	if sp.line && (sp.stride == 0 || d.Kind == loader.OpUniform) {
		val := devmem.Uint(sp.data[sp.at+plus:], e.Piece)
		if e.Type.Signed() {
			val = e.Type.Extend(val, e.Dst[d.At].Size)
		}
		switch d.Kind {
		case loader.OpUniform:
			x.late[d.At] = val
		case loader.OpV32:
			lanes.Set32(&v.v32[d.Reg], uint32(val), on)
		default:
			lanes.Set64(&v.v64[d.Reg], val, on)
		}
		return
	}
	back := uint64(sp.first) * sp.stride
	together := sp.line && sp.stride == e.Piece && sp.at+plus >= back
	switch {
	case d.Kind == loader.OpV32 && e.Piece == 4 && together:
		lanes.Load32(&v.v32[d.Reg], sp.data[sp.at+plus-back:], on)
		return
	case d.Kind == loader.OpV64 && e.Piece == 8 && together:
		lanes.Load64(&v.v64[d.Reg], sp.data[sp.at+plus-back:], on)
		return
	}
	off := x.each(on)
	data := sp.data[plus:]
	switch {
	case d.Kind == loader.OpV32 && e.Piece == 4:
		lanes.Gather32(&v.v32[d.Reg], data, off, on)
	case d.Kind == loader.OpV64 && e.Piece == 8:
		lanes.Gather64(&v.v64[d.Reg], data, off, on)
	default:
		signed, size := e.Type.Signed(), e.Dst[d.At].Size
		for m := on; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			val := devmem.Uint(data[off[l]:], e.Piece)
			if signed {
				val = e.Type.Extend(val, size)
			}
			if d.Kind == loader.OpV32 {
				v.v32[d.Reg][l] = uint32(val)
			} else {
				v.v64[d.Reg][l] = val
			}
		}
	}
}

// each returns the offsets by lane.
func (x *machine) each(on uint32) *v64 {
	sp, off := &x.span, &x.offsets
	if sp.line {
		lanes.Affine64(off, sp.at-uint64(sp.first)*sp.stride, sp.stride, on)
	}
	return off
}

// store executes st for the lanes of mask whose guard holds.
func (x *machine) store(w *engine.Warp, i int32, mask uint32, s []uint64) {
	e, v := &x.t.Effects[i], regsOf(w)
	on := v.active(e, s, mask)
	if on == 0 {
		return
	}
	sp := &x.span
	if !x.reach(w, s, i, on, true) {
		x.r.Store(w, &e.Instr, on, x.places[i])
		return
	}
	x.learn(i)
	if x.r.Out.Olds() && (sp.space == event.Global || sp.space == event.Shared) {
		x.storeOver(w, v, s, e, sp, on)
	} else {
		x.storePieces(w, v, s, e, sp, on)
	}
	if sp.space != event.Local || x.r.Sched.Spin.Phase == engine.SpinIdle {
		w.Writes++
	}
	x.tell(w, s, event.Store, event.FlagWrite, e, x.places[i], sp, on)
}

func (x *machine) storePieces(w *engine.Warp, v *registers, s []uint64, e *vcode.Effect, sp *span, on uint32) {
	// An access is aligned to its size, so two lanes touch either the same bytes or disjoint ones. Storing piece by
	// piece, each piece lowest lane first, therefore leaves the same bytes as storing lane by lane.
	for k := 0; uint64(k)*e.Piece < e.Width; k++ {
		x.storePiece(w, v, s, e, k, sp, on)
	}
}

// storeOver stores, and keeps the overwritten values in x.olds.
func (x *machine) storeOver(w *engine.Warp, v *registers, s []uint64, e *vcode.Effect, sp *span, on uint32) {
	x.olds = x.olds[:0]
	back := uint64(sp.first) * sp.stride
	if sp.line && sp.stride == e.Width && sp.at >= back && e.Piece == e.Width { // side by side
		switch e.Width {
		case 4:
			lanes.Load32(&x.was, sp.data[sp.at-back:], on)
			lanes.ZExt64(&x.out, &x.was, on)
			x.olds = engine.Pack(x.olds, &x.out, on)
			x.storePiece(w, v, s, e, 0, sp, on)
			return
		case 8:
			lanes.Load64(&x.out, sp.data[sp.at-back:], on)
			x.olds = engine.Pack(x.olds, &x.out, on)
			x.storePiece(w, v, s, e, 0, sp, on)
			return
		}
	}
	off := x.each(on)
	n := uint64(event.ValueWords(uint8(e.Width)))
	far := int64(sp.stride)
	apart := sp.line && max(far, -far) >= int64(max(e.Width, 4)) // no lane changes the old value of another
	for m := on; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if e.Width < 4 {
			x.olds = append(x.olds, engine.Around(sp.data, off[l], sp.origin))
		} else {
			for k := uint64(0); k < n; k++ {
				x.olds = append(x.olds, devmem.Uint(sp.data[off[l]+8*k:], min(8, e.Width)))
			}
		}
		if !apart {
			x.storePieces(w, v, s, e, sp, m&-m)
		}
	}
	if apart {
		x.storePieces(w, v, s, e, sp, on)
	}
}

func (x *machine) storePiece(w *engine.Warp, v *registers, s []uint64, e *vcode.Effect, k int, sp *span, on uint32) {
	plus := uint64(k) * e.Piece
	back := uint64(sp.first) * sp.stride
	together := sp.line && sp.stride == e.Piece && sp.at+plus >= back
	word := e.Piece == 4 && !e.Wide[k]
	long := e.Piece == 8 && e.Wide[k]
	if together && word {
		lanes.Store32(sp.data[sp.at+plus-back:], x.vec32(v, s, e.Vals[k], 0), on)
		return
	}
	if together && long {
		lanes.Store64(sp.data[sp.at+plus-back:], x.vec64(v, s, e.Vals[k], 0), on)
		return
	}
	off := x.each(on)
	data := sp.data[plus:]
	switch {
	case word:
		lanes.Scatter32(data, off, x.vec32(v, s, e.Vals[k], 0), on)
	case long:
		lanes.Scatter64(data, off, x.vec64(v, s, e.Vals[k], 0), on)
	default:
		for m := on; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			devmem.PutUint(data[off[l]:][:e.Piece], x.Value(w, l, &e.Operands[1+k]))
		}
	}
}

// tell emits the event of an access.
func (x *machine) tell(w *engine.Warp, s []uint64, kind event.Kind, flags event.Flags, e *vcode.Effect, place uint32, sp *span, on uint32) {
	o := &x.r.Out
	switch {
	case sp.space == event.Global && o.Needs&event.NeedGlobal != 0:
	case sp.space == event.Shared && o.Needs&event.NeedShared != 0:
	default:
		return
	}
	ev := x.event(kind, flags, w, e, place, on)
	if o.Needs&event.NeedValues != 0 && flags&event.FlagWrite != 0 {
		ev.Flags |= event.FlagValues
		ev.Val = uint32(len(o.Batch.Values))
		x.values(w, s, e, on)
		if o.Olds() {
			ev.Flags |= event.FlagOld
			o.Batch.Values = append(o.Batch.Values, x.olds...)
		}
	}
	o.Added()
}

// event appends the event of the access of the current span, without values.
func (x *machine) event(kind event.Kind, flags event.Flags, w *engine.Warp, e *vcode.Effect, place uint32, on uint32) *event.Event {
	o, sp := &x.r.Out, &x.span
	ev := o.Next(kind, w, on, place)
	ev.Flags, ev.Space, ev.Order, ev.Scope, ev.Size = flags, sp.space, e.Order, e.Scope, uint8(e.Width)
	e.Qualify(ev)
	if sp.line {
		ev.Addr, ev.Stride = sp.addr, int64(sp.stride)
		return ev
	}
	lanes.Add64S(&x.out, &x.offsets, sp.origin, on)
	if !engine.FitRows(ev, o.Row, (*[32]uint64)(&x.out)) {
		ev.Flags |= event.FlagScattered
		ev.Side = uint32(len(o.Batch.Addrs))
		o.Batch.Addrs = engine.Pack(o.Batch.Addrs, &x.out, on)
	}
	return ev
}

// values appends the values that the lanes of on store.
func (x *machine) values(w *engine.Warp, s []uint64, e *vcode.Effect, on uint32) {
	o, v := &x.r.Out, regsOf(w)
	switch {
	case e.Width == 4 && e.Piece == 4 && !e.Wide[0]:
		lanes.ZExt64(&x.out, x.vec32(v, s, e.Vals[0], 0), on)
		o.Batch.Values = engine.Pack(o.Batch.Values, &x.out, on)
		return
	case e.Width == 8 && e.Piece == 8 && e.Wide[0]:
		o.Batch.Values = engine.Pack(o.Batch.Values, x.vec64(v, s, e.Vals[0], 0), on)
		return
	}
	for m := on; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		for at := uint64(0); at < e.Width; {
			word := uint64(0)
			for in := uint64(0); in < 8 && at < e.Width; in += e.Piece {
				word |= engine.LowBytes(x.Value(w, l, &e.Operands[1+at/e.Piece]), e.Piece) << (8 * in)
				at += e.Piece
			}
			o.Batch.Values = append(o.Batch.Values, word)
		}
	}
}
