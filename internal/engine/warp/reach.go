package warp

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// newReaches sets up the memory that lists access. Shared memory is known from the start; other memory is learnt.
func (x *machine) newReaches() {
	r, t := x.r, x.t
	if len(t.Reaches) == 0 {
		return
	}
	x.reaches, x.bases, x.begins = make([]lanes.Access, len(t.Reaches)), make([]unsafe.Pointer, len(t.Reaches)), make([]uint64, len(t.Reaches))
	x.access = &x.reaches[0]
	if x.tells {
		x.events = make([]event.Event, len(t.Reaches))
		if x.log == nil {
			x.log = new(lanes.Log)
		}
		x.newRuns()
	}
	for k := range t.Reaches {
		n, e := &t.Reaches[k], &t.Effects[t.Reaches[k].Effect]
		a := &x.reaches[k]
		a.Base, a.Row = &x.bases[k], n.Row
		if x.tells {
			x.events[k] = newEvent(r.Launch.ID, e, n.Store)
		}
		if e.Space == event.Shared && x.listed(n, event.Shared) {
			x.shares = x.shares || n.Store
			a.Told = uint64(r.Out.Needs & event.NeedShared)
			x.offerShared(k, uint64(int(r.Image.Layout.Reserved)+r.SharedBytes()))
		}
	}
}

// offerShared lets the k-th access reach shared memory: all of it, or only its variable.
func (x *machine) offerShared(k int, all uint64) {
	n, e, a := &x.t.Reaches[k], &x.t.Effects[x.t.Reaches[k].Effect], &x.reaches[k]
	a.Base = &x.shared
	switch {
	case e.VarEnd == 0:
		x.offer(a, n, e, 0, all)
	case e.VarBegin&(n.Align(e)-1) == 0:
		a.Base, x.begins[k] = x.variable(e.VarBegin), e.VarBegin
		x.offer(a, n, e, e.VarBegin, e.VarEnd-e.VarBegin)
	}
}

// variable returns a pointer to a pointer to the byte at offset begin of the running block's shared memory. The machine
// updates it when another block runs.
func (x *machine) variable(begin uint64) *unsafe.Pointer {
	for _, v := range x.variables {
		if v.begin == begin {
			return &v.at
		}
	}
	v := &variable{begin: begin}
	x.variables = append(x.variables, v)
	return &v.at
}

// variable is the place of a variable in the shared memory of the running block.
type variable struct {
	at    unsafe.Pointer
	begin uint64
}

// newEvent returns the event of an access with the fields that are equal for all warps and frames.
func newEvent(launch uint32, e *vcode.Effect, store bool) event.Event {
	ev := event.Event{Launch: launch, Kind: event.Load, Flags: event.FlagRead, Space: event.Global, Order: e.Order, Scope: e.Scope,
		Size: uint8(e.Width)}
	if e.Space == event.Shared {
		ev.Space = event.Shared
	}
	if store {
		ev.Kind, ev.Flags = event.Store, event.FlagWrite
	}
	e.Qualify(&ev)
	return ev
}

// listed reports whether lists may make an access. The event of such an access, if it has one, is made out of the log
// of the list, which does not suffice for an atomic. Nor do lists yield before an atomic, or change the order of its
// lanes.
func (x *machine) listed(n *vcode.Reaching, space event.Space) bool {
	o := &x.r.Out
	switch {
	case (n.Atomic || n.Strong) && x.r.Yields():
		return false
	case space == event.Global && o.Needs&event.NeedGlobal == 0, space == event.Shared && o.Needs&event.NeedShared == 0, space == event.Const:
		return true
	case n.Atomic:
		return false
	}
	return !n.Store || !o.Olds() || n.Before
}

// offer lets an access reach size bytes from an address on.
func (x *machine) offer(a *lanes.Access, n *vcode.Reaching, e *vcode.Effect, addr, size uint64) {
	a.Origin, a.Room = addr-e.Offset-n.Low, 0
	if size >= n.Size {
		a.Room = size - n.Size + 1
	}
}

// aim points the accesses at the memory of a warp that is about to run.
func (x *machine) aim(w *engine.Warp) {
	x.shared = unsafe.Pointer(unsafe.SliceData(w.CTA.Shared))
	for _, v := range x.variables {
		v.at = unsafe.Add(x.shared, v.begin)
	}
	if now := x.r.Memory.Epoch(); now != x.epoch {
		x.epoch = now
		for k := range x.reaches {
			if x.reaches[k].Base == &x.bases[k] {
				x.reaches[k].Room = 0
			}
		}
	}
}

// learn records the allocation that an access found, for later accesses by lists.
func (x *machine) learn(i int32) {
	e, sp := &x.t.Effects[i], &x.span
	if e.Reach < 0 || sp.space != event.Global && sp.space != event.Const || !x.listed(&x.t.Reaches[e.Reach], sp.space) {
		return
	}
	c := &x.cache[i]
	if c.epoch != x.epoch || c.b.Addr&(x.t.Reaches[e.Reach].Align(e)-1) != 0 {
		return
	}
	x.bases[e.Reach] = unsafe.Pointer(unsafe.SliceData(c.b.Data))
	a := &x.reaches[e.Reach]
	if a.Told = 0; sp.space == event.Global {
		a.Told = uint64(x.r.Out.Needs & event.NeedGlobal)
	}
	a.Last = 1 // memory that is probably not in the caches is prefetched
	x.begins[e.Reach] = c.b.Addr
	x.offer(a, &x.t.Reaches[e.Reach], e, c.b.Addr, uint64(len(c.b.Data)))
}

// told emits the events of the accesses of a list, for the lanes of mask.
func (x *machine) told(w *engine.Warp, mask uint32) {
	for i := 0; i < int(x.log.N); {
		n := 0
		if x.runs != nil && !x.said.off {
			n = x.again(w, mask, i)
		}
		if n == 0 {
			x.tellOf(w, mask, i)
			n = 1
		}
		i += n
	}
	x.log.N = 0
}

// tellOf emits the event of the i-th access of the log.
func (x *machine) tellOf(w *engine.Warp, mask uint32, i int) {
	o := &x.r.Out
	k := x.t.Code[x.log.Heads[i].Imm].B
	n := len(o.Batch.Events)
	if n == cap(o.Batch.Events) {
		o.Batch.Events = slices.Grow(o.Batch.Events, 1)
	}
	o.Batch.Events = o.Batch.Events[:n+1]
	ev := &o.Batch.Events[n]
	*ev = x.events[k] // append would copy it twice, and the second copy wait for the first
	ev.Warp = w.Number
	x.fill(ev, k, mask, i)
	if x.t.Reaches[k].Store && o.Needs&event.NeedValues != 0 {
		x.toldValues(ev, i)
	}
	o.Added()
}

// fill sets the fields of an event of reach k from the i-th access of the log, except warp and values.
func (x *machine) fill(ev *event.Event, k int32, mask uint32, i int) {
	n := &x.t.Reaches[k]
	ev.Mask, ev.Place = mask, x.places[n.Effect]
	x.locate(ev, n, i, x.begins[k]-n.Low)
}

// locate sets the addresses of an event's lanes: plus plus the offsets in the i-th access of the log.
func (x *machine) locate(ev *event.Event, n *vcode.Reaching, i int, plus uint64) {
	from, slope := &x.log.List[i].Offsets, vcode.Slope{}
	if !n.Each {
		plus += x.log.Heads[i].At
		l := &n.Line
		if l.Pattern < 0 {
			first := bits.TrailingZeros32(ev.Mask)
			ev.Addr = plus + uint64(first)*l.Stride
			if ev.Mask&(ev.Mask-1) != 0 {
				ev.Stride = int64(l.Stride)
			}
			return
		}
		p := &x.t.Patterns[l.Pattern]
		from, slope = &p.All, p.Slope
	}
	o := &x.r.Out
	switch full := ^ev.Mask == 0; {
	case full && n.Each && o.Row > 0:
		if engine.AllRows(ev, o.Row, (*[32]uint64)(from)) {
			ev.Addr += plus
			return
		}
	case n.Each || !full: // some of the lanes of a pattern may lie on a line; all of them do not
		if _, stride, ok := lanes.Stride(from, ev.Mask); ok {
			ev.Addr, ev.Stride = from[bits.TrailingZeros32(ev.Mask)]+plus, int64(stride)
			return
		}
		if n.Each && engine.FitRows(ev, o.Row, (*[32]uint64)(from)) {
			ev.Addr += plus
			return
		}
	}
	if !n.Each && ev.InRows(o.Row, int64(slope.Lane), int64(slope.Row)) {
		ev.Addr = from[bits.TrailingZeros32(ev.Mask)] + plus
		return
	}
	b := &o.Batch
	ev.Flags |= event.FlagScattered
	ev.Side = uint32(len(b.Addrs))
	if ^ev.Mask == 0 {
		b.Addrs = slices.Grow(b.Addrs, 32)[:len(b.Addrs)+32]
		lanes.Add64S((*v64)(b.Addrs[ev.Side:]), from, plus, ev.Mask)
		return
	}
	lanes.Add64S(&x.out, from, plus, ev.Mask)
	b.Addrs = engine.Pack(b.Addrs, &x.out, ev.Mask)
}

// toldValues gives the event of a store, the i-th access of the log, its values.
func (x *machine) toldValues(ev *event.Event, i int) {
	t := &x.log.List[i]
	o, b := &x.r.Out, &x.r.Out.Batch
	ev.Flags |= event.FlagValues
	ev.Val = uint32(len(b.Values))
	add := func(wide *v64, low *v32) {
		switch n := len(b.Values); {
		case ev.Size == 8:
			b.Values = engine.Pack(b.Values, wide, ev.Mask)
		case ^ev.Mask == 0:
			b.Values = slices.Grow(b.Values, 32)[:n+32]
			lanes.Widen((*v64)(b.Values[n:]), low)
		default:
			lanes.ZExt64(&x.out, low, ev.Mask)
			b.Values = engine.Pack(b.Values, &x.out, ev.Mask)
		}
	}
	if ev.Size < 4 {
		lanes.And32S(&t.Values32, &t.Values32, 1<<(8*ev.Size)-1, ev.Mask)
	}
	add(&t.Values, &t.Values32)
	if o.Olds() {
		if ev.Size < 4 {
			wordsAround(ev, t)
		} else if n := &x.t.Reaches[x.t.Code[x.log.Heads[i].Imm].B]; !n.Apart && (!ev.Affine() || ev.Stride == 0) && ev.Mask&(ev.Mask-1) != 0 {
			x.overlay(ev, n, t)
		}
		ev.Flags |= event.FlagOld
		add(&t.Before, &t.Before32)
	}
}

// wordsAround replaces the old values of a store of one or two bytes by adjacent lanes by the words around them. Each
// lane sees its word as it is after the stores of the lower lanes.
func wordsAround(ev *event.Event, t *lanes.Told) {
	var mem [64]byte
	copy(mem[:], unsafe.Slice((*byte)(unsafe.Pointer(&t.Before32)), 64))
	for m := ev.Mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		at := l * int(ev.Size)
		t.Before32[l] = binary.LittleEndian.Uint32(mem[at&^3:])
		devmem.PutUint(mem[at:at+int(ev.Size)], uint64(t.Values32[l]))
	}
}

// onePlace is what lanes that access one place add to its address.
var onePlace v64

// overlay corrects what is told of a store whose lanes may write one place: a lane overwrites what the last one below it
// wrote there.
func (x *machine) overlay(ev *event.Event, n *vcode.Reaching, t *lanes.Told) {
	at := &t.Offsets
	switch {
	case n.Each:
	case n.Line.Pattern < 0:
		at = &onePlace
	default:
		at = &x.t.Patterns[n.Line.Pattern].All
	}
	var lanes [64]uint8 // lane plus one, by a hash of its address
	for m := ev.Mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		h := at[l] * 0x9e3779b97f4a7c15 >> 58
		for lanes[h] != 0 && at[(lanes[h]-1)&31] != at[l] {
			h = (h + 1) % 64
		}
		if k := lanes[h]; k == 0 {
		} else if k--; ev.Size == 8 {
			t.Before[l] = t.Values[k&31]
		} else {
			t.Before32[l] = t.Values32[k&31]
		}
		lanes[h] = uint8(l) + 1
	}
}
