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

// Package lock infers the locks that threads take by a compare-and-swap. Here are those that they take by waiting for a value:
//
//   - a lock that is taken by an exchange, which the thread holds from when it acquires until it writes the variable
//   - a ticket lock, whose threads draw a number from one variable and poll another one until it has that number: the variable that is
//     polled is held until the thread writes it
//   - a lock with a queue (MCS, CLH), whose threads put themselves at the end of the queue by an exchange and poll a variable that is their
//     own, or their predecessor's: what was exchanged is held until the thread next hands over
//
// A barrier of blocks that counts and polls looks like a ticket lock, but who counts again before it writes what it polled holds no lock.

// variable is one that a thread has read: its address, with sharedBit if it lies in shared memory; 0 for none.
type variable uint64

const sharedBit = 1 << 63

func (v variable) shared() bool { return v&sharedBit != 0 }
func (v variable) addr() uint64 { return uint64(v &^ sharedBit) }

// waiting is what a thread has read by strong accesses whose results it uses.
type waiting struct {
	drawn, before variable // by the last atomic additions and the like: that variable, and the last other one
	read          variable // last
	place         uint32   // of that read
	// The last exchange: what was exchanged, and where; then the only other variable that the thread has read since, and what it has
	// written last.
	queue, other, wrote variable
	queued              uint32
	guard               variable // that it had read last when it last acquired
	fresh               bool     // the thread has not acquired since
}

// taking is a place where threads may take locks by waiting.
type taking struct {
	polled bool // a thread has read a variable there again and again
	given  bool // a thread that had read a variable there has written it, having acquired
	queue  bool // threads have exchanged a variable there, and have polled another one then
}

func (t *taking) proven() bool { return t.polled && t.given }

// maxDrawing is how many lanes may take locks by one atomic operation: where more draw numbers, these are places in a list, which kernels
// draw so often that to follow them would cost as much as to judge them.
const maxDrawing = 8

// read notes a strong access whose result its lanes use, and of which some have observed others.
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

// spaceBit is what variables have beside their addresses.
func spaceBit(e *event.Event) variable {
	if e.Space == event.Shared {
		return sharedBit
	}
	return 0
}

// queues follows a queue over a read of v.
func (y *waiting) queues(v variable, place uint32, exchange bool) {
	const none = 0
	switch {
	case exchange:
		y.queue, y.queued, y.other, y.wrote = v, place, none, none
	case y.queue == none || v == y.queue || v == y.other:
	case y.other == none && v != y.wrote:
		y.other = v
	default: // it counts, and waits for others to count
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

// acquired lets lanes take the locks that they have waited for.
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
		} else if x.held[i].taking == s.taking { // it has acquired each time that it polled
			x.held[i] = s
		}
	}
}

// given lets lanes give back, by a strong write by which some hand over, the locks that they have waited for.
func (w *Witness) given(b *block, o *Operation, handed uint32) (gave uint32) {
	x := &b.warps[o.Warp]
	epochs := b.of.Epochs(o.Warp)
	reads := o.Event.Kind == event.Atomic && !o.Site.Discards // by adding nothing, perhaps
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

// waits says that a thread is, or was at an epoch, in what may be a critical section of a lock for which threads wait, though no
// thread is known to have waited for it and given it back yet.
func (x *race) waits(t *order.Stamp, epoch uint32) bool {
	in := func(s section) bool {
		return s.taking != nil && !s.taking.proven() && s.is(t) && s.from <= epoch && epoch <= s.to
	}
	if b := x.blocks[t.Block()]; b != nil && slices.ContainsFunc(b.warps[t.Warp%t.Launch.WarpsPerBlock].held, in) {
		return true
	}
	return slices.ContainsFunc(x.past(t.Block()).sections, in)
}

// draws says that what passed is no more than that the two threads tried to take a lock by an exchange, or that they drew tickets of a
// lock that the later one waits for, or holds.
func (x *race) draws(how *detect.Handover, h *handover) bool {
	if how.Write != how.Read {
		return false
	}
	t := x.w.takings[how.Read]
	return t != nil && t.polled || slices.ContainsFunc(x.block.warps[x.wi].held, func(s section) bool {
		return s.taking != nil && s.is(&x.after) && s.taking.polled && h.address == s.drawn.addr() && h.shared == s.drawn.shared()
	})
}

// guarded says that what passed by o is no more than other data of a sequence lock: before it, the later thread has read a counter and has
// acquired, and the earlier thread has written that counter since its access, or at two places. Readers look at the counter again when they have read all
// data, and read them once more where it has changed.
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

// poll is that a lane, which has polled a variable, has observed what another thread wrote there, and has not acquired since.
type poll struct {
	wi    uint32
	lane  int
	v     variable
	epoch uint32
}

// unpoll forgets polls by lanes.
func (b *block) unpoll(wi, lanes uint32) {
	if len(b.polls) > 0 {
		b.polls = slices.DeleteFunc(b.polls, func(p poll) bool { return p.wi == wi && lanes>>uint(p.lane)&1 != 0 })
	}
}

// passes notes that a lane writes v: it may pass on what it has polled, and what others of its block have that it has met since.
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

// passed says that a thread of a third block has polled a variable that the earlier thread, or one of its block, wrote after its access,
// and, without a fence, has passed that on by what the later thread observed last.
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

// maxPassed bounds the variables of a launch by which something was passed on, and maxPassing the polls of a block, and what is passed on by one variable.
const (
	maxPassed  = 1 << 10
	maxPassing = 16
)

// sections gives the last critical sections of a block that explain the race. Of volatile variables those of locks that threads wait for do not:
// they may be parts of these locks, which are used outside the critical sections too.
func (x *race) sections(block uint32) []section {
	all := x.launch.sections(block)
	if x.Category == detect.VolatileRace {
		all = slices.DeleteFunc(all, func(s section) bool { return s.taking != nil })
	}
	return all
}
