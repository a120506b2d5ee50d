package barracuda

import (
	"fmt"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// The model implements figures 5.4 and 5.5 literally: full vector clocks, a location for each byte, and the rules as
// printed. It sees the whole stream at once, so it knows what follows each access. It shares no code with the detector.

type vc map[int]int // thread: time

func (c vc) copy() vc {
	out := vc{}
	for t, n := range c {
		out[t] = n
	}
	return out
}

func (c vc) join(o vc) {
	for t, n := range o {
		c[t] = max(c[t], n)
	}
}

type modelCell struct {
	wThread, wTime int
	wEvent         int
	atomic, narrow bool
	r              vc
}

type model struct {
	plus      bool
	sameValue bool
	b         *event.Batch
	launch    event.Launch
	c         map[int]vc             // C
	k         map[uint32][][2]uint32 // K
	live      map[uint32]uint32      // by warp
	s         map[string]map[int]vc  // S
	cells     map[string]*modelCell
	arrived   map[string]vc
	waiting   map[string][]int
	last      map[int]event.Kind // by thread, branches not included
	wide      map[int]bool       // the fences directly before
	late      map[int][]lateOp   // by the index of the event that they precede
	races     map[string]bool
	acted     map[int]int // by thread: the time of its last access
	uneven    bool        // part of a warp reached a barrier
}

// lateOp is an access whose role is known.
type lateOp struct {
	at   int // index of the access
	lane int
	what string // plain, acq, ar
	wide bool
	c    vc // C_t at the access
}

func runModel(b *event.Batch, plus, sameValue bool, each func(m *model, i int)) *model {
	m := &model{plus: plus, sameValue: sameValue, b: b, c: map[int]vc{}, k: map[uint32][][2]uint32{}, live: map[uint32]uint32{}, s: map[string]map[int]vc{},
		cells: map[string]*modelCell{}, arrived: map[string]vc{}, waiting: map[string][]int{}, last: map[int]event.Kind{}, wide: map[int]bool{},
		late: map[int][]lateOp{}, races: map[string]bool{}, acted: map[int]int{}}
	for i := range b.Events {
		m.step(i)
		if each != nil {
			each(m, i)
		}
	}
	return m
}

func lanesOf(mask uint32) (out []int) {
	for m := mask; m != 0; m &= m - 1 {
		out = append(out, bits.TrailingZeros32(m))
	}
	return out
}

func (m *model) block(warp uint32) int { return int(warp / m.launch.WarpsPerBlock()) }

func (m *model) inc(t int) { m.c[t][t]++ }

// fork joins the threads of a warp's mask and begins a new time for each.
func (m *model) fork(warp, mask uint32) {
	mask &= m.live[warp]
	all := vc{}
	for _, l := range lanesOf(mask) {
		all.join(m.c[int(warp)*32+l])
	}
	for _, l := range lanesOf(mask) {
		t := int(warp)*32 + l
		m.c[t] = all.copy()
		m.inc(t)
	}
}

func (m *model) active(warp uint32) uint32 {
	if k := m.k[warp]; len(k) > 0 {
		return k[len(k)-1][0] & m.live[warp]
	}
	return m.live[warp]
}

func (m *model) step(i int) {
	e := &m.b.Events[i]
	// In lockstep an access by some of the active lanes is a branch around it.
	predicated := uint32(0)
	switch e.Kind {
	case event.Load, event.Store, event.Atomic, event.Fence:
		if predicated = m.active(e.Warp) &^ e.Mask; predicated != 0 && !m.plus {
			m.fork(e.Warp, e.Mask)
		}
	}
	if e.Kind == event.KernelEnd { // warp by warp
		slices.SortStableFunc(m.late[i], func(x, y lateOp) int { return m.thread(x)/32 - m.thread(y)/32 })
	}
	for _, o := range m.late[i] {
		m.perform(o)
	}
	switch e.Kind {
	case event.KernelBegin:
		m.begin(&m.b.Launches[e.Side])
	case event.Load, event.Store, event.Atomic:
		m.access(i, e)
	case event.Branch, event.Else, event.Reconverge:
		if m.plus {
			break
		}
		k := m.k[e.Warp]
		switch e.Kind { // the two masks of a split are one entry: the running path, and the other
		case event.Branch:
			k = append(k, [2]uint32{e.Mask, e.Aux})
		case event.Else:
			k[len(k)-1] = [2]uint32{k[len(k)-1][1], 0}
		case event.Reconverge:
			k = k[:len(k)-1]
		}
		m.k[e.Warp] = k
		m.fork(e.Warp, m.active(e.Warp))
	case event.WarpSync:
		if m.plus {
			m.fork(e.Warp, e.Mask)
		}
	case event.Arrive:
		m.arrive(e)
	case event.BarrierDone:
		m.barrierDone(e)
	case event.Exit:
		m.live[e.Warp] &^= e.Mask
	}
	if e.Kind == event.Load || e.Kind == event.Store || e.Kind == event.Atomic || e.Kind == event.Fence {
		if !m.plus {
			m.fork(e.Warp, e.Mask)
			if predicated != 0 {
				m.fork(e.Warp, predicated)
				m.fork(e.Warp, predicated|e.Mask)
			}
		}
	}
	m.remember(e)
}

func isBranch(k event.Kind) bool {
	return k == event.Branch || k == event.Else || k == event.Reconverge
}

func (m *model) remember(e *event.Event) {
	if isBranch(e.Kind) || e.Kind == event.BarrierDone {
		return
	}
	for _, l := range lanesOf(e.Mask) {
		t := int(e.Warp)*32 + l
		if e.Kind == event.Fence {
			m.wide[t] = e.Scope >= event.ScopeGPU || m.last[t] == event.Fence && m.wide[t]
		}
		m.last[t] = e.Kind
	}
}

func (m *model) begin(l *event.Launch) {
	m.launch = *l
	threads := int(l.Block.Count())
	for w := 0; w < int(l.Grid.Count())*int(l.WarpsPerBlock()); w++ {
		for lane := 0; lane < 32; lane++ {
			if w%int(l.WarpsPerBlock())*32+lane < threads {
				m.live[uint32(w)] |= 1 << lane
				m.c[w*32+lane] = vc{w*32 + lane: 1}
			}
		}
	}
}

func (m *model) place(e *event.Event, addr uint64) string {
	if e.Space == event.Shared {
		return fmt.Sprint("s", m.block(e.Warp), ":", addr)
	}
	return fmt.Sprint("g", addr)
}

// access decides the role of each lane's access, and performs what is decided at once.
func (m *model) access(i int, e *event.Event) {
	var now []lateOp
	for _, l := range m.order(e) {
		t := int(e.Warp)*32 + l
		before := m.last[t] == event.Fence
		wide := before && m.wide[t]
		if e.Order == event.Release || e.Order == event.AcqRel || e.Order == event.SC {
			before, wide = true, wide || e.Scope >= event.ScopeGPU
		}
		m.acted[t] = m.c[t][t]
		op := lateOp{at: i, lane: l, wide: wide, c: m.c[t].copy()}
		if e.Order == event.Acquire || e.Order == event.AcqRel || e.Order == event.SC {
			op.wide = wide || e.Scope >= event.ScopeGPU
			op.what = meaning(e, before, true)
		} else if with, without := meaning(e, before, true), meaning(e, before, false); with == without {
			op.what = with
		} else {
			at, fence := m.follower(i, l)
			switch {
			case at < 0:
				continue
			case fence:
				op.what, op.wide = with, m.b.Events[at].Scope >= event.ScopeGPU
			default:
				op.what = without
			}
			m.late[at] = append(m.late[at], op)
			continue
		}
		now = append(now, op)
	}
	for _, o := range now {
		m.perform(o)
	}
}

// order returns lanes in the order in which they act within an instruction: first those without a fence before it, then
// those with a fence of block scope, then those with a wider one.
func (m *model) order(e *event.Event) []int {
	rank := func(l int) int {
		switch t := int(e.Warp)*32 + l; {
		case m.last[t] != event.Fence:
			return 0
		case !m.wide[t]:
			return 1
		}
		return 2
	}
	out := lanesOf(e.Mask)
	slices.SortStableFunc(out, func(x, y int) int { return rank(x) - rank(y) })
	return out
}

func (m *model) thread(o lateOp) int { return int(m.b.Events[o.at].Warp)*32 + o.lane }

// meaning implements section 5.4.1.
func meaning(e *event.Event, before, after bool) string {
	switch {
	case e.Kind == event.Load && after, e.Kind == event.Atomic && e.RMW == event.CompareAndSwap && after:
		return "acq"
	case e.Kind == event.Store && before, e.Kind == event.Atomic && e.RMW == event.Exchange && before:
		return "rel"
	case e.Kind == event.Atomic && e.RMW == event.OtherRMW && (before || after):
		return "ar"
	}
	return "plain"
}

// follower finds the event that decides whether a fence follows a lane's access; -1 if a later execution of a poll
// represents the access.
func (m *model) follower(i, lane int) (at int, fence bool) {
	e := &m.b.Events[i]
	for j := i + 1; j < len(m.b.Events); j++ {
		f := &m.b.Events[j]
		mine := f.Mask>>lane&1 != 0
		again := f.Kind == e.Kind && f.Place == e.Place && f.Space == e.Space && f.Size == e.Size
		switch {
		case f.Kind == event.KernelEnd:
			return j, false
		case f.Warp != e.Warp || isBranch(f.Kind) || f.Kind == event.BarrierDone:
		case m.plus && !mine:
		case again && !mine: // others continue to poll
		case again && m.b.AddrOf(f, lane) == m.b.AddrOf(e, lane):
			return -1, false
		default:
			return j, f.Kind == event.Fence && mine
		}
	}
	panic("no end of the kernel")
}

// perform performs one thread's operation.
func (m *model) perform(o lateOp) {
	e := &m.b.Events[o.at]
	t := m.thread(o)
	addr := m.b.AddrOf(e, o.lane)
	if o.what == "plain" {
		for a := addr; a < addr+uint64(e.Size); a++ {
			m.touch(o, e, t, a)
		}
		return
	}
	wide := o.wide && !(m.plus && e.Kind == event.Atomic && e.Scope < event.ScopeGPU)
	x := m.place(e, addr)
	if m.s[x] == nil {
		m.s[x] = map[int]vc{}
	}
	if o.what != "rel" {
		for b, c := range m.s[x] {
			if wide || b == m.block(e.Warp) {
				m.c[t].join(c)
			}
		}
	}
	if o.what != "acq" {
		for b := range int(m.launch.Grid.Count()) {
			if wide || b == m.block(e.Warp) {
				m.s[x][b] = m.c[t].copy()
			}
		}
		m.inc(t)
	}
}

// touch performs rd, wr or atm for one byte.
func (m *model) touch(o lateOp, e *event.Event, t int, addr uint64) {
	x := m.place(e, addr)
	c := m.cells[x]
	if c == nil {
		c = &modelCell{wThread: -1, r: vc{}}
		m.cells[x] = c
	}
	race := func(with string) { m.races[fmt.Sprintf("%d lane %d %s %s", o.at, o.lane, x, with)] = true }
	atomic, narrow := e.Kind == event.Atomic, m.plus && e.Kind == event.Atomic && e.Scope < event.ScopeGPU
	clash := c.wThread >= 0 && c.wTime > o.c[c.wThread]
	if atomic && c.atomic && !(narrow && c.narrow && m.block(e.Warp) != m.block(uint32(c.wThread/32))) {
		clash = false
	}
	if clash && !m.sameValue && c.wEvent == o.at { // two lanes of one instruction
		clash = !m.alike(e, o.lane, c.wThread%32, addr)
	}
	if clash {
		race("W")
	}
	if e.Kind == event.Load {
		c.r[t] = o.c[t]
		return
	}
	for u, n := range c.r {
		if n > o.c[u] {
			race("R")
		}
	}
	c.r = vc{}
	c.wThread, c.wTime, c.wEvent, c.atomic, c.narrow = t, o.c[t], o.at, atomic, narrow
}

func (m *model) alike(e *event.Event, x, y int, addr uint64) bool {
	if e.Flags&event.FlagValues == 0 {
		return false
	}
	at := func(l int) byte {
		i := addr - m.b.AddrOf(e, l)
		return byte(m.b.ValueOf(e, l)[i/8] >> (8 * (i % 8)))
	}
	return at(x) == at(y)
}

func (m *model) arrive(e *event.Event) {
	if m.live[e.Warp] != e.Mask {
		m.uneven = true
	}
	key := fmt.Sprint(m.block(e.Warp), ":", e.Barrier)
	if m.arrived[key] == nil {
		m.arrived[key] = vc{}
	}
	for _, l := range lanesOf(e.Mask) {
		t := int(e.Warp)*32 + l
		m.arrived[key].join(m.c[t])
		if e.Flags&event.FlagWait != 0 {
			m.waiting[key] = append(m.waiting[key], t)
		}
	}
	if e.Flags&event.FlagWait != 0 {
		return
	}
	for _, l := range lanesOf(e.Mask) {
		m.inc(int(e.Warp)*32 + l)
	}
}

func (m *model) barrierDone(e *event.Event) {
	key := fmt.Sprint(m.block(e.Warp), ":", e.Barrier)
	for _, t := range m.waiting[key] {
		m.c[t].join(m.arrived[key])
		m.inc(t)
	}
	delete(m.arrived, key)
	delete(m.waiting, key)
}
