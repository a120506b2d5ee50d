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

// breakHabits forgets all habits, and with them what pages there are.
func (d *Detector) breakHabits() {
	for i := range d.recent {
		d.recent[i].habit = habit{}
	}
}

// habitual judges and records an access of the block and of a class that acted last, if it is as the habit, by a warp with
// one view. It says false, having done nothing, if not, or if for one of its parts no step is remembered or more is to be seen to.
func (d *Detector) habitual(e *event.Event) bool {
	h := &d.recent[e.Place%uint32(len(d.recent))]
	l := d.lastLaunch
	if !h.is(e) || !h.of(l, e) || l.info.ID != e.Launch {
		return false
	}
	blk := l.lastBlock
	if blk == nil || e.Warp-blk.first >= l.wpb {
		return false
	}
	w := &blk.warps[e.Warp-blk.first]
	if w.each != nil {
		return false
	}
	var to [maxHabit]move
	for n := range h.n {
		if !d.step(h, n, e, blk, w.same.clock, &to[n]) {
			return false
		}
	}
	for n := range h.n {
		x := &to[n]
		m := x.at
		if m.form == 0 {
			d.mem.forms.lines++
		}
		m.form, m.warp, m.clock = x.to.form, x.to.warp, x.to.clock // one by one, as they were written: that is quicker
	}
	w.used |= e.Mask
	return true
}

// move is what a line is about to become.
type move struct {
	at *mark
	to mark
}

// step gives what part n of an access that is as the habit makes of a line.
func (d *Detector) step(h *recentClass, n int, e *event.Event, blk *block, clock uint32, to *move) bool {
	x := &h.parts[n]
	addr := e.Addr&^(lineBytes-1) + x.addr
	if n := addr / pageBytes; x.page == nil || x.number != n {
		x.page, x.number = d.pageOf(blk, false, addr), n
	}
	p := x.page
	i := addr % pageBytes / lineBytes
	if len(p.cold) != 0 && p.warmed != blk.info.ID && !d.allKnown(p, blk) || p.expanded(i) != nil || p.notes[i] != 0 ||
		e.Kind == event.Store && p.valued() {
		return false
	}
	to.at = &p.marks[i]
	from := *to.at
	if from.form == 0 {
		from.warp, from.clock = e.Warp, clock
	}
	f := &d.mem.forms
	k := stepKey{uint64(from.form)<<32 | uint64(h.id<<headShift|headOf(e)|x.head), uint64(x.shape)<<32 | uint64(x.lanes),
		uint64(e.Mask)<<32 | uint64(clock-from.clock), uint64(e.Warp - from.warp)}
	t := &f.steps[x.slot&uint32(len(f.steps)-1)]
	if t.stepKey != k {
		x.slot = f.slot(&k)
		if t = &f.steps[x.slot]; t.stepKey != k {
			return false
		}
	}
	to.to = mark{t.to, from.warp + t.warp, from.clock + t.clock}
	return t.check == 0
}
