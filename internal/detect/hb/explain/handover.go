package explain

import (
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/event"
)

// race is a race between threads of a running launch that is to be explained.
type race struct {
	history.Race
	*launch
	writes history.StrongWrites
	later  *history.Access
	before order.Stamp // of the earlier access
	block  *block      // of the later access, nil when nothing is known of it
	wi     uint32      // its warp in the block
}

// explain tells what synchronisation there is between the two accesses, by handovers and locks.
func (w *Witness) explain(f *detect.Facts, a *history.Access, r history.Race) {
	l := w.launches[a.Actor.Launch]
	if l == nil || r.Earlier.Stamp.Launch != a.Actor.Launch {
		return
	}
	x := &race{r, l, w.writes, a, r.Earlier.Stamp, l.blocks[a.Actor.Block], a.Actor.Warp % a.Actor.Launch.WarpsPerBlock}
	early, late := x.earlierLocks(), x.laterLocks()
	f.Handover, f.Handed = x.handover(early, late)
	f.ByLeader = !x.sameBlock() && x.byLeader()
	if f.Handover == nil && !f.ByLeader {
		f.Alone, f.TwoLocks = x.alone(early, late)
	}
}

func (x *race) sameBlock() bool { return x.before.Block() == x.later.Actor.Block }

// concerns says that the race is on a variable itself: a flag does not hand itself over, nor does a lock protect itself.
func (x *race) concerns(shared bool, address, size uint64) bool {
	return shared == x.later.Memory.Shared && address < x.End && x.From < address+size
}

// lockSize is how many bytes a lock has: package lock does not tell.
const lockSize = 4

func (x *race) concernsLock(s section) bool {
	return x.concerns(s.lock.Shared, s.lock.Addr, lockSize)
}

// handover tells how the earlier thread handed over to the later one, nil when nothing shows that it did, and whether any
// thread did: by the lock that the later one holds, or else by what it, or a thread of its block that happens before it,
// observed last.
func (x *race) handover(early, late []section) (how *detect.Handover, handed bool) {
	if x.block == nil {
		return nil, false
	}
	me := x.later.Actor.Lane
	if late = slices.DeleteFunc(slices.Clone(late), x.concernsLock); len(late) > 0 {
		if i := slices.IndexFunc(late, func(s section) bool { return s.taken.size != 0 && among(early, s.lock) }); i >= 0 {
			how = x.handoverBy(&late[i].taken, x.wi, me)
		}
		return how, true
	}
	warps := [2]uint32{0, uint32(len(x.block.warps))}
	if x.sameBlock() {
		warps = [2]uint32{x.wi, x.wi + 1}
	}
	o, wi, lane := x.last(warps, 0, 32)
	switch {
	case o == nil:
		return nil, false
	case (wi != x.wi || lane != me) && (x.sameBlock() || !x.after(wi, lane, o.epoch)):
		// The lanes of a warp observe in turns, and others of the block have since.
		if o, wi, lane = x.last([2]uint32{x.wi, x.wi + 1}, me, me+1); o == nil {
			return nil, true
		}
	}
	how = x.handoverBy(o, wi, lane)
	if how != nil && how.Counted && x.Category == detect.VolatileRace && !x.Earlier.Site.Side.Write {
		// Whoever stops others by a volatile flag that they read between two steps of a counter owes them nothing.
		return nil, true
	}
	return how, true
}

// after says that the later thread happens after an epoch of a lane of its block.
func (x *race) after(wi uint32, lane int, epoch uint32) bool {
	a := &x.later.Actor
	return a.After(&order.Stamp{Launch: a.Launch, Warp: a.Block*a.Launch.WarpsPerBlock + wi, Lane: lane, Epoch: epoch})
}

// last gives the last handover to some lanes of some warps of the later thread's block, but for what the race is on, nil when
// there is none.
func (x *race) last(warps [2]uint32, from, to int) (last *handover, warp uint32, lane int) {
	for wi := warps[0]; wi < warps[1]; wi++ {
		seen := x.block.warps[wi].seen
		if seen == nil {
			continue
		}
		for i := from; i < to; i++ {
			for j := range seen[i] {
				o := &seen[i][j]
				if o.size != 0 && (last == nil || o.number > last.number) && !x.concerns(o.shared, o.address, uint64(o.size)) {
					last, warp, lane = o, wi, i
				}
			}
		}
	}
	return last, warp, lane
}

// memory names that of the later thread which a location lies in.
func (x *race) memory(shared bool) history.Memory {
	if !shared {
		return history.Memory{}
	}
	return history.Memory{Shared: true, Launch: x.before.Launch.Info.ID, Block: x.later.Actor.Block}
}

// strongWrites calls f for the launch's strong writes of a byte.
func (x *race) strongWrites(m history.Memory, address uint64, f func(w *history.Record)) {
	x.writes.StrongWrites(m, address, func(w *history.Record) {
		if w.Stamp.Launch == x.before.Launch {
			f(w)
		}
	})
}

// handoverBy tells how the earlier thread handed over by way of what a thread of the later one's block observed, nil when it
// did not.
func (x *race) handoverBy(o *handover, wi uint32, lane int) *detect.Handover {
	mine := func(w *history.Record) bool { return w.Stamp.Warp == x.before.Warp && w.Stamp.Lane == x.before.Lane }
	// Within an epoch the order of first execution has to do for program order.
	precedes := func(w *history.Record) bool {
		return w.Stamp.Epoch < x.before.Epoch || w.Stamp.Epoch == x.before.Epoch && w.Site.Born < x.Earlier.Site.Born
	}
	var by history.Record // a strong write of the thread itself, or else of another of its block, which a barrier may have let go on
	itself, locks := false, false
	x.strongWrites(x.memory(o.shared), o.address, func(w *history.Record) {
		own := mine(w)
		if own && precedes(w) && w.Site.Born < x.Earlier.Site.Born && w.Site.Sync.Updates && w.Site.Sync.Reads {
			locks = true
		}
		if w.Stamp.Block() != x.before.Block() || x.sameBlock() && !own || precedes(w) {
			return
		}
		if by.Site == nil || own && !itself || own == itself && w.Stamp.Epoch < by.Stamp.Epoch {
			by, itself = *w, own
		}
	})
	early := log(&x.before)
	if by.Site == nil || early.Lost(x.before.Epoch) {
		return nil
	}
	site := by.Site
	out := &detect.Handover{Write: site.Event.Place, Read: o.place, InScope: o.inScope, Lock: locks,
		Counted: site.Sync.Updates && site.Event.RMW == event.OtherRMW}
	if !itself {
		out.Apart = !x.within() && !x.barrier(x.before.Warp, x.before.Lane, x.before.Epoch, by.Stamp.Epoch)
	}
	x.fences(out, o, &by, itself, wi, lane)
	return out
}

// fences tells of the synchronisations between the earlier access and the write by, and between the read o, by a lane of a warp
// of the later thread's block, and the later access.
func (x *race) fences(out *detect.Handover, o *handover, by *history.Record, itself bool, wi uint32, lane int) {
	wpb := x.before.Launch.WarpsPerBlock
	early, late := log(&x.before), x.later.Actor.Launch.LogOf(x.later.Actor.Block)
	release := func(s order.Logged) {
		if s.Epoch > x.before.Epoch && (s.Kind == event.Fence && s.Epoch <= by.Stamp.Epoch || s.Releases() && s.Place == out.Write) {
			out.Release, out.ReleaseWide = s.Sync, s.Scope >= event.ScopeGPU
		}
	}
	acquire := func(s order.Logged) {
		if s.Epoch > o.epoch && (s.Kind == event.Fence || s.Acquires() && s.Place == o.place) {
			out.Acquire, out.AcquireWide = s.Sync, s.Scope >= event.ScopeGPU
		}
	}
	// Where a thread acts for others of its block, a fence of its own does, or one of theirs on the other side of the barrier.
	early.Each(by.Stamp.Warp%wpb, by.Stamp.Lane, release)
	if out.Release == nil && !itself {
		early.Each(x.before.Warp%wpb, x.before.Lane, release)
	}
	late.Each(wi, lane, acquire)
	if me := x.later.Actor.Lane; out.Acquire == nil && (wi != x.wi || lane != me) {
		late.Each(x.wi, me, acquire)
	}
}

// within says that threads of the earlier block may have observed strong writes of each other.
func (x *race) within() bool {
	p, known := x.past(x.before.Block())
	return p.within || !known
}

// past gives that of a block, and whether it is known.
func (l *launch) past(block uint32) (p past, known bool) {
	if b := l.blocks[block]; b != nil {
		return b.past, true
	}
	p, known = l.ended[block]
	return p, known || !l.forgot
}

// barrier says that a thread of the launch waited at a barrier of its block after an epoch, until another one.
func (x *race) barrier(warp uint32, lane int, after, until uint32) (yes bool) {
	l := x.before.Launch
	l.LogOf(warp/l.WarpsPerBlock).Each(warp%l.WarpsPerBlock, lane, func(s order.Logged) {
		yes = yes || s.Kind == event.Arrive && s.Waits && s.Epoch > after && s.Epoch <= until
	})
	return yes
}

// earlierLocks gives the critical sections in which the earlier access was made.
func (x *race) earlierLocks() []section {
	all := x.sections(x.before.Block())
	wi := x.before.Warp % x.before.Launch.WarpsPerBlock
	return slices.DeleteFunc(all, func(s section) bool {
		return !s.is(wi, x.before.Lane) || x.before.Epoch < s.from || s.to < x.before.Epoch
	})
}

// laterLocks gives the critical sections in which the later thread is.
func (x *race) laterLocks() (all []section) {
	if x.block != nil {
		for _, s := range x.block.warps[x.wi].held {
			if s.lane == x.later.Actor.Lane {
				all = append(all, s)
			}
		}
	}
	return all
}

// sections gives the last critical sections of a block, those that have not ended too.
func (l *launch) sections(block uint32) []section {
	p, _ := l.past(block)
	all := slices.Clone(p.sections)
	if b := l.blocks[block]; b != nil {
		for wi := range b.warps {
			all = append(all, b.warps[wi].held...)
		}
	}
	return all
}

// is says that the section is of a thread of the block.
func (s *section) is(warp uint32, lane int) bool { return s.warp == warp && s.lane == lane }

func among(all []section, id lock.ID) bool {
	return slices.ContainsFunc(all, func(s section) bool { return s.lock == id })
}

// byLeader says that a thread of each of the two blocks takes a lock for all its threads: the same lock, which that of the
// earlier block holds over a barrier, and the two threads of the race do not both hold.
func (x *race) byLeader() bool {
	wpb, late := x.before.Launch.WarpsPerBlock, x.sections(x.later.Actor.Block)
	for _, e := range x.sections(x.before.Block()) {
		if x.concernsLock(e) || !x.barrier(x.before.Block()*wpb+e.warp, e.lane, e.from, e.to) {
			continue
		}
		for _, l := range late {
			if l.lock == e.lock && !(e.is(x.before.Warp%wpb, x.before.Lane) && l.is(x.wi, x.later.Actor.Lane)) {
				return true
			}
		}
	}
	return false
}

// alone says that one of the two threads is in a critical section of a lock that the other never took, and whether the other
// is in one of another lock.
func (x *race) alone(early, late []section) (yes, twoLocks bool) {
	if slices.ContainsFunc(early, func(s section) bool { return among(late, s.lock) }) ||
		slices.ContainsFunc(early, x.concernsLock) || slices.ContainsFunc(late, x.concernsLock) {
		return false, false
	}
	a := &x.later.Actor
	yes = slices.ContainsFunc(early, func(s section) bool { return !x.wrote(s.lock, a.Warp, a.Lane) }) ||
		slices.ContainsFunc(late, func(s section) bool { return !x.wrote(s.lock, x.before.Warp, x.before.Lane) })
	return yes, yes && len(early) > 0 && len(late) > 0
}

// wrote says that a thread has strongly written a lock.
func (x *race) wrote(id lock.ID, warp uint32, lane int) (yes bool) {
	m := history.Memory{}
	if id.Shared {
		m = history.Memory{Shared: true, Launch: x.before.Launch.Info.ID, Block: id.Block}
	}
	x.strongWrites(m, id.Addr, func(w *history.Record) { yes = yes || w.Stamp.Warp == warp && w.Stamp.Lane == lane })
	return yes
}
