package explain

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/event"
)

// Package lock infers the locks that threads take by a compare-and-swap. This file infers the locks that threads take by
// waiting for a value:
//
//   - A lock that is taken by an exchange. The thread holds it from its acquire operation until it writes the variable.
//   - A ticket lock. A thread draws a number from one variable and polls another variable until it has that number. The
//     thread holds the polled variable until it writes it.
//   - A lock with a queue (MCS, CLH). A thread appends itself to the queue by an exchange, and polls a variable of its own
//     or of its predecessor. It holds the exchanged variable until it next hands over.
//
// A barrier of blocks that counts and polls looks like a ticket lock. The difference: a thread that counts again before it
// writes the polled variable holds no lock.

// variable is the address of a variable that a thread has read, with sharedBit if it lies in shared memory; 0: none.
type variable uint64

const sharedBit = 1 << 63

func (v variable) shared() bool { return v&sharedBit != 0 }
func (v variable) addr() uint64 { return uint64(v &^ sharedBit) }

// waiting records what a thread has read by strong accesses whose results it uses.
type waiting struct {
	drawn, before variable // the variable of the last atomic addition or similar operation, and the last different one
	read          variable // the variable that was read last
	place         uint32   // the place of that read
	// The last exchange: its variable (queue) and its place (queued). other is the only other variable that the thread has
	// read since, and wrote the variable that it has written last.
	queue, other, wrote variable
	queued              uint32
	guard               variable // the variable that it had read last when it last acquired
	fresh               bool     // the thread has not acquired since
}

// taking describes a place where threads may take locks by waiting.
type taking struct {
	polled bool // a thread has read one variable there repeatedly
	given  bool // a thread that read a variable there has acquired and then written it
	queue  bool // threads have exchanged a variable there and then polled another one
}

func (t *taking) proven() bool { return t.polled && t.given }

// maxDrawing is the maximum number of lanes that take locks by one atomic operation. If more lanes draw numbers, these are
// indices into a list. Kernels draw such numbers so often that following them would cost as much as judging them.
const maxDrawing = 8

// read notes a strong access whose result its lanes use. Those of observed have read what other threads wrote.
func (w *Witness) read(o *Operation, observed uint32) {
	e := o.Event
	atomic := e.Kind == event.Atomic
	if atomic && (o.Site.Discards || bits.OnesCount32(e.Mask) > maxDrawing) || e.Flags&event.FlagRead == 0 {
		return
	}
	b := w.block(o.Block, atomic || !o.Site.Sync.Acquires)
	if b == nil {
		return
	}
	x := &b.warps[o.Warp]
	if x.waits == nil {
		if atomic && e.RMW == event.CompareAndSwap || !atomic && o.Site.Sync.Acquires {
			return
		}
		x.waits = new([32]waiting)
		w.waits = true
	}
	var room [32]uint64
	bit := spaceBit(e)
	addrs := o.Batch.Addresses(e, &room)
	for m, i := e.Mask, 0; m != 0; m, i = m&(m-1), i+1 {
		lane := bits.TrailingZeros32(m)
		y, v := &x.waits[lane], variable(addrs[i])|bit
		if atomic && e.RMW == event.OtherRMW {
			if v != y.drawn {
				y.drawn, y.before = v, y.drawn
			}
			if len(x.held) > 0 {
				x.held = slices.DeleteFunc(x.held, func(s section) bool { return s.taking != nil && s.lane == lane && s.drawn == v })
			}
		}
		if v == y.read && y.place == e.Place {
			w.taking(e.Place).polled = true
			if v == y.other {
				t := w.taking(y.queued)
				t.polled, t.queue = true, true
			}
		}
		if b.unpoll(o.Warp, 1<<uint(lane)); observed>>uint(lane)&1 != 0 && !v.shared() && len(b.polls) < maxPassing && w.takings[e.Place] != nil && w.takings[e.Place].polled {
			b.polls = append(b.polls, poll{o.Warp, lane, v, b.of.Epoch()})
		}
		y.queues(v, e.Place, atomic && e.RMW == event.Exchange)
		y.read, y.place = v, e.Place
		y.fresh = !atomic || e.RMW != event.CompareAndSwap
	}
	if o.Site.Sync.Acquires {
		w.acquired(b, e, o.Warp)
	}
}

// spaceBit returns sharedBit for an access to shared memory, and 0 for others.
func spaceBit(e *event.Event) variable {
	if e.Space == event.Shared {
		return sharedBit
	}
	return 0
}

// queues updates the state of a possible queue lock after a read of v.
func (y *waiting) queues(v variable, place uint32, exchange bool) {
	const none = 0
	switch {
	case exchange:
		y.queue, y.queued, y.other, y.wrote = v, place, none, none
	case y.queue == none || v == y.queue || v == y.other:
	case y.other == none && v != y.wrote:
		y.other = v
	default: // the thread counts and waits for others to count: a barrier
		y.queue, y.other = none, none
	}
}

func (w *Witness) taking(place uint32) *taking {
	t := w.takings[place]
	if t == nil {
		t = &taking{}
		w.takings[place] = t
	}
	return t
}

// acquired notes that lanes have acquired: they take the locks that they have waited for.
func (w *Witness) acquired(b *block, e *event.Event, wi uint32) {
	x, epochs := &b.warps[wi], b.of.Epochs(wi)
	b.unpoll(wi, e.Mask)
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		y := &x.waits[lane]
		y.guard = y.read
		drawn, v, place := y.drawn, y.read, y.place
		if drawn == y.read {
			drawn = y.before
		}
		switch {
		case !y.fresh:
			continue
		case y.queue != 0:
			v, place, drawn = y.queue, y.queued, 0
		case drawn == 0:
			continue
		}
		y.fresh, y.queue, y.other = false, 0, 0
		id := lock.ID{Addr: v.addr()}
		if v.shared() {
			id.Shared, id.Block = true, b.of.Index
		}
		taken := newest(x.seen(lane), func(h *handover) bool { return h.address == id.Addr && h.shared == id.Shared && h.place == place })
		s := section{lock: id, taken: taken, warp: b.of.Index*b.of.WarpsPerBlock + wi, lane: lane, from: epochs.Of(lane), to: never,
			taking: w.taking(place), drawn: drawn}
		if i := slices.IndexFunc(x.held, func(s section) bool { return s.lane == lane && s.lock == id }); i < 0 {
			x.held = append(x.held, s)
		} else if x.held[i].taking == s.taking { // it acquires each time it polls
			x.held[i] = s
		}
	}
}

// given notes a strong write: lanes release by it locks that they have waited for. Those of handed hand over by it.
func (w *Witness) given(b *block, o *Operation, handed uint32) (gave uint32) {
	x := &b.warps[o.Warp]
	epochs := b.of.Epochs(o.Warp)
	reads := o.Event.Kind == event.Atomic && !o.Site.Discards // perhaps an addition of 0
	for m := o.Event.Mask; m != 0 && (x.waits != nil || len(b.polls) > 0) && !reads; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		v := variable(o.Batch.AddrOf(o.Event, lane)) | spaceBit(o.Event)
		if x.waits != nil {
			x.waits[lane].wrote = v
		}
		if len(b.polls) > 0 && !v.shared() {
			w.passes(b, o.Warp, lane, v)
		}
	}
	x.held = slices.DeleteFunc(x.held, func(s section) bool {
		bit := o.Event.Mask & (1 << uint(s.lane))
		if s.taking == nil || bit == 0 {
			return false
		}
		writes := (!reads || o.Event.RMW == event.CompareAndSwap) && o.Batch.AddrOf(o.Event, s.lane) == s.lock.Addr && s.lock.Shared == (o.Event.Space == event.Shared)
		if !writes && !(s.taking.queue && handed&bit != 0) {
			return false
		}
		s.taking.given = true
		gave |= bit
		s.to = epochs.Of(s.lane)
		b.sections = append(b.sections, s)
		return true
	})
	b.trim()
	return gave
}

// waits reports whether a thread is, or was at an epoch, in a possible critical section of a lock for which threads wait:
// no thread is known yet to have waited for the lock and released it.
func (x *race) waits(t *order.Stamp, epoch uint32) bool {
	in := func(s section) bool {
		return s.taking != nil && !s.taking.proven() && s.is(t) && s.from <= epoch && epoch <= s.to
	}
	if b := x.blocks[t.Block()]; b != nil && slices.ContainsFunc(b.warps[t.Warp%t.Launch.WarpsPerBlock].held, in) {
		return true
	}
	return slices.ContainsFunc(x.past(t.Block()).sections, in)
}

// draws reports whether the handover is only that the two threads tried to take a lock by an exchange, or that they drew
// tickets of a lock that the later thread waits for or holds.
func (x *race) draws(how *detect.Handover, h *handover) bool {
	if how.Write != how.Read {
		return false
	}
	t := x.w.takings[how.Read]
	return t != nil && t.polled || slices.ContainsFunc(x.block.warps[x.wi].held, func(s section) bool {
		return s.taking != nil && s.is(&x.after) && s.taking.polled && h.address == s.drawn.addr() && h.shared == s.drawn.shared()
	})
}

// guarded reports whether the variable of o is only other data of a sequence lock: before o, the later thread has read a
// counter and acquired, and the earlier thread has written that counter after its access or at two places. Readers of a
// sequence lock read the counter again after the data, and read the data again if it has changed.
func (x *race) guarded(o *handover) bool {
	w := x.block.warps[x.wi].waits
	if x.Category != detect.VolatileRace || w == nil {
		return false
	}
	g := w[x.after.Lane].guard
	if g == 0 || g.addr() == o.address || x.concerns(g.shared(), g.addr(), lockSize) {
		return false
	}
	wrote, since := 0, false
	x.strongWrites(g.shared(), x.later.Actor.Block, g.addr(), func(w *history.Record) {
		if sameThread(&w.Stamp, &x.before) && w.Stamp.Epoch != x.before.Epoch {
			wrote++
			since = since || w.Stamp.Epoch > x.before.Epoch
		}
	})
	return since || wrote > 1
}

// poll says that a lane that polled a variable has read what another thread wrote there, and has not acquired since.
type poll struct {
	wi    uint32
	lane  int
	v     variable
	epoch uint32
}

// unpoll removes the polls of lanes.
func (b *block) unpoll(wi, lanes uint32) {
	if len(b.polls) > 0 {
		b.polls = slices.DeleteFunc(b.polls, func(p poll) bool { return p.wi == wi && lanes>>uint(p.lane)&1 != 0 })
	}
}

// passes notes that a lane writes v. By that it may pass on what it has polled, and what other threads of its block have
// polled with which it has met at a barrier since.
func (w *Witness) passes(b *block, wi uint32, lane int, v variable) {
	l := w.launches[b.of.Launch]
	for _, p := range b.polls {
		if p.v == v || (p.wi != wi || p.lane != lane) && !b.of.Launch.LogOf(b.of.Index).Waited(wi, lane, p.epoch, never) {
			continue
		}
		if l.passed == nil || len(l.passed) >= maxPassed {
			l.passed = map[variable][]variable{}
		}
		if all := l.passed[v]; len(all) < maxPassing && !slices.Contains(all, p.v) {
			l.passed[v] = append(all, p.v)
		}
	}
}

// passed reports whether a thread of a third block has polled a variable that the earlier thread, or a thread of its
// block, wrote after the earlier access, and has then, without a fence, written what the later thread observed last.
func (x *race) passed() bool {
	if x.block == nil || x.launch.passed == nil {
		return false
	}
	o, _, _ := x.last(x.wi, x.wi+1, 1<<uint(x.after.Lane))
	if o.size == 0 {
		o, _, _ = x.last(0, uint32(len(x.block.warps)), ^uint32(0))
	}
	if o.size == 0 || o.shared {
		return false
	}
	return slices.ContainsFunc(x.launch.passed[variable(o.address)], func(v variable) (wrote bool) {
		x.strongWrites(false, 0, v.addr(), func(w *history.Record) {
			wrote = wrote || w.Stamp.Block() == x.before.Block() && w.Stamp.Epoch > x.before.Epoch
		})
		return wrote
	})
}

// maxPassed bounds the variables of a launch by which something was passed on. maxPassing bounds the polls of a block, and
// the variables that are passed on by one variable.
const (
	maxPassed  = 1 << 10
	maxPassing = 16
)

// sections returns the last critical sections of a block that explain the race. Sections of locks that threads wait for do
// not explain a race of volatile variables: these may be parts of such locks, which are used outside the sections too.
func (x *race) sections(block uint32) []section {
	all := x.launch.sections(block)
	if x.Category == detect.VolatileRace {
		all = slices.DeleteFunc(all, func(s section) bool { return s.taking != nil })
	}
	return all
}
