// Package lock infers from events the lock operations of a program, for detectors that need locks. CUDA has no lock
// operations: programs build them from a compare-and-swap followed by a fence, and a fence followed by an exchange. The
// papers interpret that pattern differently; Rules selects the interpretation. 000 is "Predictive Data Race Detection
// for GPUs" (PreDataR, and Barracuda+), 001 is chapter 5 of "Efficient Precise Dynamic Data Race Detection for CPU and
// GPU" (BARRACUDA), 003 is "ScoRD: A Scoped Race Detector for GPUs".
//
// Inferred for each thread: a successful compare-and-swap (or, with TestAndSet, an exchange) and then a fence acquire
// the lock at that address. A fence and then an exchange, another atomic write or a store to the address of a lock that
// the thread holds release it. An operation with acquire or release order is operation and fence in one. The lanes of a
// warp may use different locks.
//
// Not inferred: ticket locks and queue locks (the acquiring thread only reads); read-write locks made of counters;
// locks that one thread acquires and another releases (unless Unheld); of each warp, locks beyond the last 128 that its
// lanes took; and which value means "free".
package lock

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Scope says how the scope of a lock operation follows from the scopes of the atomic operation and the fence.
type Scope uint8

// The interpretations.
const (
	// Narrowest: the lock operation has block scope if one of the two has (003, section III).
	Narrowest Scope = iota
	// OfFence: the scope of the fence decides (001, section 5.4.1; 000, section 5.1, for Barracuda).
	OfFence
	// OfAtomic: the scope of the atomic operation decides, and a fence of a narrower scope does not complete the
	// acquire (003, section IV, the lock table).
	OfAtomic
)

// Rules are the points in which the papers differ. The zero value is the interpretation of 000, sections 2.1 and 4.
type Rules struct {
	Scope Scope
	// Failed: a compare-and-swap counts even if it fails (001 and 003 do not look at its result).
	Failed bool
	// TestAndSet: an exchange acquires like a compare-and-swap, unless the thread executed a fence directly before it.
	TestAndSet bool
	// Adjacent: the thread makes no access between the operation and the fence (001, "immediately").
	Adjacent bool
	// Unfenced: a release needs no fence (003: the exchange alone clears the lock's entry).
	Unfenced bool
	// ExchangeOnly: only exchanges release (000, 001 and 003 to the letter). Otherwise stores and other atomic writes
	// do too.
	ExchangeOnly bool
	// Last: a thread that has executed no fence yet can only be about to acquire one lock, that of its last
	// compare-and-swap. Many programs claim one variable after the other by compare-and-swap, and execute a fence much
	// later or never. With Last, these cost little.
	Last bool
	// Swap: a successful compare-and-swap on a lock that the thread holds releases it. Otherwise it acquires the lock
	// again.
	Swap bool
	// Unheld: an exchange directly after a fence releases the lock even if the thread does not hold it (000 and 001 to
	// the letter).
	Unheld bool
}

// ScoRD returns the rules of ScoRD and iGUARD (003, section IV).
func ScoRD() Rules {
	return Rules{Scope: OfAtomic, Failed: true, Unfenced: true, ExchangeOnly: true, Unheld: true}
}

// ID identifies a lock variable.
type ID struct {
	Addr   uint64 // device address, or offset in the shared window of Block
	Shared bool
	Block  uint32 // 0 unless Shared
}

// Kind is what a Step does.
type Kind uint8

// The kinds of steps.
const (
	Acquire Kind = iota
	Release
	// Drop: the thread no longer holds the lock, but has released nothing: it wrote the variable without a fence
	// before, or has exited.
	Drop
)

// Step is an operation by lanes of a warp on one lock, in one event.
type Step struct {
	Kind   Kind
	Device bool   // the scope is the device; otherwise the block
	Lanes  uint32 // of the event's warp
	Lock   ID
}

// hold is lanes of a warp that have begun to acquire a lock, or hold it.
type hold struct {
	id     ID
	taken  bool // a fence has completed the acquire; until then, device is the scope of the atomic operation
	device bool
	lanes  uint32
	fenced uint32 // lanes that have executed a fence since they acquired it
	wide   uint32 // lanes of fenced with a fence of device scope
}

// begun is, with Last, the locks that lanes of a warp are about to acquire.
type begun struct {
	lanes        uint32
	wide, shared uint32 // lanes with device scope, and with a lock in shared memory
	addrs        [32]uint64
}

// warp is the state of a warp.
type warp struct {
	holds []hold
	begun *begun
	seen  *filter // filter for the addresses of holds; nil: there are few holds
	after uint32  // lanes whose last operation was a fence
	wide  uint32  // lanes of after whose fence had device scope
	empty bool    // some hold may have no lanes
}

// filter is a Bloom filter. It is useful because most atomic operations are on variables that the warp does not hold.
type filter struct {
	bits  [16]uint64
	added int
}

// filterFrom is the number of holds from which a filter is used.
const filterFrom = 8

func (f *filter) add(addr uint64) {
	word, bit := place(addr)
	f.bits[word] |= bit
	f.added++
}

// place returns the bit of an address in a filter.
func place(addr uint64) (word int, bit uint64) {
	n := addr * 0x9e3779b97f4a7c15 >> 54
	return int(n >> 6), 1 << (n & 63)
}

// may reports whether the warp may hold a lock at addr.
func (w *warp) may(addr uint64) bool {
	if w.seen == nil {
		return len(w.holds) > 0
	}
	word, bit := place(addr)
	return w.seen.bits[word]&bit != 0
}

// add adds a hold. If the list is full, it rebuilds the filter without the locks that are no longer held.
func (w *warp) add(h hold) {
	if len(w.holds) == cap(w.holds) {
		w.holds = append(make([]hold, 0, max(4, 2*len(w.holds))), w.holds...)
	}
	w.holds = append(w.holds, h)
	switch {
	case w.seen == nil && len(w.holds) < filterFrom:
	case w.seen == nil || w.seen.added >= 2*maxHolds:
		if w.seen == nil {
			w.seen = new(filter)
		}
		*w.seen = filter{}
		for i := range w.holds {
			w.seen.add(w.holds[i].id.Addr)
		}
	default:
		w.seen.add(h.id.Addr)
	}
}

// drop removes lanes from a hold.
func (w *warp) drop(h *hold, lanes uint32) {
	h.lanes &^= lanes
	w.empty = w.empty || h.lanes == 0
}

// Tracker infers the locks of launches, one launch at a time.
type Tracker struct {
	rules Rules
	wpb   uint32
	first uint32 // warp
	warps []warp
	steps []Step
}

// New makes a Tracker.
func New(r Rules) *Tracker { return &Tracker{rules: r} }

// Begin drops all state and prepares for the events of l.
func (t *Tracker) Begin(l *event.Launch) {
	t.wpb = l.WarpsPerBlock()
	t.begin(0, int(l.Grid.Count())*int(t.wpb))
}

// BeginBlock is Begin for the events of one block of l.
func (t *Tracker) BeginBlock(l *event.Launch, block uint32) {
	t.wpb = l.WarpsPerBlock()
	t.begin(block*t.wpb, int(t.wpb))
}

func (t *Tracker) begin(first uint32, n int) {
	t.first = first
	if cap(t.warps) < n {
		t.warps = make([]warp, n)
	}
	t.warps = t.warps[:n]
	for i := range t.warps {
		w := &t.warps[i]
		if w.begun != nil {
			w.begun.lanes = 0
		}
		*w = warp{holds: w.holds[:0], begun: w.begun}
	}
}

// Event handles a device event of the launch and returns its lock operations, in the order of lanes. They are valid
// until the next call. They take effect together with the event: a Release publishes what the thread did before it, and
// an Acquire affects what it does after it.
func (t *Tracker) Event(b *event.Batch, e *event.Event) []Step {
	t.steps = t.steps[:0]
	w := &t.warps[e.Warp-t.first]
	switch e.Kind {
	case event.Load:
		t.apart(w, e.Mask)
	case event.Store:
		if len(w.holds) > 0 && (e.Space == event.Global || e.Space == event.Shared) {
			t.write(b, e, w, !t.rules.ExchangeOnly, false)
		}
		t.desist(b, e, w)
		t.apart(w, e.Mask)
	case event.Atomic:
		t.atomic(b, e, w)
	case event.Fence:
		t.fence(e, w)
	case event.Exit:
		if w.begun != nil {
			w.begun.lanes &^= e.Mask
		}
		for i := range w.holds {
			h := &w.holds[i]
			if lanes := h.lanes & e.Mask; lanes != 0 {
				w.drop(h, lanes)
				if h.taken {
					t.steps = append(t.steps, Step{Drop, h.device, lanes, h.id})
				}
			}
		}
		t.settle(w)
	}
	return t.steps
}

// Holds reports whether lanes of the warp hold locks or are about to.
func (t *Tracker) Holds(warp uint32) bool {
	w := &t.warps[warp-t.first]
	return len(w.holds) > 0 || w.begun != nil && w.begun.lanes != 0
}

// apart records an access by lanes: their next operation does not directly follow a fence.
func (t *Tracker) apart(w *warp, lanes uint32) {
	w.after &^= lanes
	if !t.rules.Adjacent {
		return
	}
	if w.begun != nil {
		w.begun.lanes &^= lanes
	}
	for i := range w.holds {
		h := &w.holds[i]
		h.fenced &^= lanes
		h.wide &^= lanes
		if !h.taken {
			w.drop(h, lanes)
		}
	}
	t.settle(w)
}

// maxHolds bounds the holds of a warp. Beyond it, the oldest hold is dropped: programs that claim things by a
// compare-and-swap and never give them back would accumulate holds without limit.
const maxHolds = 128

// settle removes holds without lanes.
func (t *Tracker) settle(w *warp) {
	if !w.empty {
		return
	}
	w.empty = false
	keep := w.holds[:0]
	for _, h := range w.holds {
		if h.lanes != 0 {
			keep = append(keep, h)
		}
	}
	w.holds = keep
}

// wide reports whether a scope reaches beyond the block. A cluster is one block.
func wide(s event.Scope) bool { return s >= event.ScopeGPU }

func acquires(o event.Order) bool {
	return o == event.Acquire || o == event.AcqRel || o == event.SC
}

func releases(o event.Order) bool {
	return o == event.Release || o == event.AcqRel || o == event.SC
}

func (t *Tracker) atomic(b *event.Batch, e *event.Event, w *warp) {
	takes := e.RMW == event.CompareAndSwap && (t.rules.Failed || e.Flags&event.FlagWrite != 0) ||
		e.RMW == event.Exchange && t.rules.TestAndSet && e.Flags&event.FlagRead != 0
	gives := e.RMW == event.Exchange || !t.rules.ExchangeOnly
	given := uint32(0)
	if !takes && e.Flags&event.FlagWrite != 0 {
		t.desist(b, e, w)
	}
	if e.Flags&event.FlagWrite != 0 && (t.rules.Swap || e.RMW != event.CompareAndSwap) && (t.rules.Unheld || len(w.holds) > 0) {
		given = t.write(b, e, w, gives, takes)
	}
	after := w.after
	t.apart(w, e.Mask)
	if !takes {
		return
	}
	lanes := e.Mask &^ given
	if e.RMW == event.Exchange {
		lanes &^= after
	}
	if t.rules.Last && !acquires(e.Order) {
		w.begin(b, e, lanes)
		return
	}
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		t.take(t.idOf(b, e, lane), w, 1<<uint(lane), acquires(e.Order), wide(e.Scope))
	}
	t.settle(w)
}

// begin records, with Last, what lanes are about to acquire.
func (w *warp) begin(b *event.Batch, e *event.Event, lanes uint32) {
	if w.begun == nil {
		w.begun = new(begun)
	}
	g := w.begun
	g.lanes, g.wide, g.shared = g.lanes|lanes, g.wide&^lanes, g.shared&^lanes
	if wide(e.Scope) {
		g.wide |= lanes
	}
	if e.Space == event.Shared {
		g.shared |= lanes
	}
	var room [32]uint64
	addrs := b.Addresses(e, &room)
	if lanes == ^uint32(0) {
		copy(g.addrs[:], addrs)
		return
	}
	for m, i := e.Mask, 0; m != 0; m, i = m&(m-1), i+1 {
		if m&-m&lanes != 0 {
			g.addrs[bits.TrailingZeros32(m)&31] = addrs[i]
		}
	}
}

// desist handles writes by lanes to the lock that they were about to acquire.
func (t *Tracker) desist(b *event.Batch, e *event.Event, w *warp) {
	if w.begun == nil {
		return
	}
	for m := w.begun.lanes & e.Mask; m != 0; m &= m - 1 {
		if lane := bits.TrailingZeros32(m); w.begun.id(lane, e.Warp/t.wpb) == t.idOf(b, e, lane) {
			w.begun.lanes &^= m & -m
		}
	}
}

// id returns the ID of the lock that a lane is about to acquire.
func (g *begun) id(lane int, block uint32) ID {
	if g.shared>>uint(lane)&1 != 0 {
		return ID{g.addrs[lane], true, block}
	}
	return ID{Addr: g.addrs[lane]}
}

func (t *Tracker) idOf(b *event.Batch, e *event.Event, lane int) ID {
	id := ID{Addr: b.AddrOf(e, lane)}
	if e.Space == event.Shared {
		id.Shared, id.Block = true, e.Warp/t.wpb
	}
	return id
}

// take records that a lane has executed the first half of an acquire, or all of it.
func (t *Tracker) take(id ID, w *warp, lane uint32, taken, device bool) {
	if w.may(id.Addr) {
		for i := range w.holds { // again
			if h := &w.holds[i]; h.id == id && h.lanes&lane != 0 {
				w.drop(h, lane)
				if h.taken {
					t.step(Step{Drop, h.device, lane, id})
				}
			}
		}
	}
	if len(w.holds) >= maxHolds {
		if o := w.holds[0]; o.taken {
			t.step(Step{Drop, o.device, o.lanes, o.id})
		}
		w.holds = append(w.holds[:0], w.holds[1:]...)
	}
	t.hold(w, hold{id: id, taken: taken, device: device, lanes: lane})
	if taken {
		t.step(Step{Acquire, device, lane, id})
	}
}

// hold adds h, merging it into a similar hold if there is one.
func (t *Tracker) hold(w *warp, h hold) {
	if w.may(h.id.Addr) {
		for i := range w.holds {
			if o := &w.holds[i]; o.id == h.id && o.taken == h.taken && o.device == h.device {
				o.lanes |= h.lanes
				o.fenced &^= h.lanes
				o.wide &^= h.lanes
				return
			}
		}
	}
	w.add(h)
}

// step adds a step, merging it into the last one if they differ only in lanes: the steps on one lock remain in the
// order of lanes.
func (t *Tracker) step(s Step) {
	if n := len(t.steps); n > 0 {
		if o := &t.steps[n-1]; o.Kind == s.Kind && o.Lock == s.Lock && o.Device == s.Device {
			o.Lanes |= s.Lanes
			return
		}
	}
	t.steps = append(t.steps, s)
}

// write handles an access by lanes that writes the variables of locks that they hold. If such an access can release
// locks (can), and a fence preceded it where the rules require one, it releases them; otherwise it drops them. takes
// says that the same access may also acquire. It returns the lanes that wrote a lock that they held.
func (t *Tracker) write(b *event.Batch, e *event.Event, w *warp, can, takes bool) (given uint32) {
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		bit := uint32(1) << uint(lane)
		id := t.idOf(b, e, lane)
		holds := w.holds
		if !w.may(id.Addr) {
			holds = nil
		}
		for i := range holds {
			h := &holds[i]
			if h.id != id || h.lanes&bit == 0 || !h.taken && takes {
				continue // a second attempt replaces the first
			}
			given |= bit
			w.drop(h, bit)
			if h.taken {
				t.give(e, h, bit, can)
			}
		}
		if given&bit == 0 && t.rules.Unheld && e.Kind == event.Atomic && e.RMW == event.Exchange {
			if free := w.after&bit != 0; free || releases(e.Order) {
				device := wide(e.Scope)
				if free {
					device = t.scope(device, w.wide&bit != 0)
				}
				given |= bit
				t.step(Step{Release, device, bit, id})
			}
		}
	}
	t.settle(w)
	return given
}

// give ends a lane's hold of a lock because the lane wrote its variable.
func (t *Tracker) give(e *event.Event, h *hold, bit uint32, can bool) {
	device := e.Kind == event.Store && e.Order <= event.Volatile || wide(e.Scope)
	switch {
	case !can:
		t.step(Step{Drop, h.device, bit, h.id})
	case releases(e.Order), t.rules.Unfenced:
		t.step(Step{Release, device, bit, h.id})
	case h.fenced&bit != 0:
		t.step(Step{Release, t.scope(device, h.wide&bit != 0), bit, h.id})
	default:
		t.step(Step{Drop, h.device, bit, h.id})
	}
}

// scope returns the scope of a lock operation made of an atomic operation and a fence.
func (t *Tracker) scope(atomic, fence bool) bool {
	switch t.rules.Scope {
	case OfFence:
		return fence
	case OfAtomic:
		return atomic
	}
	return atomic && fence
}

func (t *Tracker) fence(e *event.Event, w *warp) {
	device := wide(e.Scope)
	if e.Order != event.Acquire {
		w.after |= e.Mask
		w.wide &^= e.Mask
		if device {
			w.wide |= e.Mask
		}
	}
	for i := range w.holds {
		if h := &w.holds[i]; h.taken && e.Order != event.Acquire {
			h.fenced |= h.lanes & e.Mask
			if device {
				h.wide |= h.lanes & e.Mask
			}
		}
	}
	if e.Order == event.Release {
		return
	}
	n := len(w.holds)
	for i := 0; i < n; i++ {
		h := &w.holds[i]
		lanes := h.lanes & e.Mask
		if lanes == 0 || h.taken || t.rules.Scope == OfAtomic && h.device && !device {
			continue
		}
		w.drop(h, lanes)
		s := Step{Acquire, t.scope(h.device, device), lanes, h.id}
		t.step(s)
		t.hold(w, hold{id: s.Lock, taken: true, device: s.Device, lanes: lanes})
	}
	if g := w.begun; g != nil {
		for m := g.lanes & e.Mask; m != 0; m &= m - 1 {
			lane, at := bits.TrailingZeros32(m), m&-m
			if atomic := g.wide&at != 0; t.rules.Scope != OfAtomic || !atomic || device {
				g.lanes &^= at
				t.take(g.id(lane, e.Warp/t.wpb), w, at, true, t.scope(atomic, device))
			}
		}
	}
	t.settle(w)
}
