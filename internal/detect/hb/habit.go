package hb

import "fencepost.dev/fencepost/internal/event"

// habit is how an instruction accesses global memory: the parts of its last access by a warp, lines being counted from that of
// the access's address. What warps with other addresses do is mostly the same, some lines on.
type habit struct {
	stride int64
	mask   uint32
	within uint32 // where in its line the address is
	flags  event.Flags
	n      int // parts; 0: nothing is known
	parts  [maxHabit]part
}

// maxHabit is how many parts an access has at most that is a habit: lanes with 16 bytes each, in lines that they fill.
const maxHabit = 4

// is says that an event of the habit's class accesses memory as the last one did.
func (h *habit) is(e *event.Event) bool {
	return h.n != 0 && h.mask == e.Mask && h.stride == e.Stride && h.within == uint32(e.Addr%lineBytes) && h.flags == e.Flags
}

// learn makes an access of given parts the habit, if it may be one.
func (h *habit) learn(e *event.Event, parts []part) {
	if e.Space != event.Global || !e.Affine() || len(parts) > maxHabit {
		return
	}
	h.stride, h.mask, h.within, h.flags = e.Stride, e.Mask, uint32(e.Addr%lineBytes), e.Flags
	h.n = copy(h.parts[:], parts)
	for i := range h.parts[:h.n] {
		h.parts[i].addr -= e.Addr &^ (lineBytes - 1)
	}
}

// habitual judges and records an access that is as the habit of its class, by a warp with one view, as whole does. It gives the
// number of parts done: it ends at one of which no step is remembered, or where more is to be seen to.
func (d *Detector) habitual(h *habit, id uint32, e *event.Event, blk *block, w *warp) int {
	f := &d.mem.forms
	head := uint64(id)<<headShift | uint64(headOf(e))
	origin := e.Addr &^ (lineBytes - 1)
	clock := w.same.clock
	for n := range h.n {
		x := &h.parts[n]
		p := d.pageOf(blk, false, origin+x.addr)
		i := (origin + x.addr) % pageBytes / lineBytes
		if len(p.cold) != 0 && p.warmed != blk.info.ID && !d.allKnown(p, blk) || p.expanded(i) != nil || p.notes[i] != 0 ||
			e.Kind == event.Store && p.valued() {
			return n
		}
		m := &p.marks[i]
		from := *m
		if from.form == 0 {
			from.warp, from.clock = e.Warp, clock
		}
		k := stepKey{uint64(from.form)<<32 | head | uint64(x.head), uint64(x.shape)<<32 | uint64(x.lanes),
			uint64(e.Mask)<<32 | uint64(clock-from.clock), uint64(e.Warp - from.warp)}
		t := &f.steps[x.slot&uint32(len(f.steps)-1)]
		if t.stepKey != k {
			x.slot = f.slot(&k)
			if t = &f.steps[x.slot]; t.stepKey != k {
				return n
			}
		}
		if t.check != 0 {
			return n
		}
		if from.form == 0 {
			f.lines++
		}
		*m = mark{t.to, from.warp + t.warp, from.clock + t.clock}
	}
	return h.n
}
