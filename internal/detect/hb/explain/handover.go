package explain

import (
	"cmp"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/event"
)

// race is a race between threads of a running launch, or of one with a launch on another device, that is to be explained.
type race struct {
	history.Race
	*launch
	w      *Witness
	later  *history.Access
	before order.Stamp // of the earlier access
	after  order.Stamp // of the later one
	block  *block      // of the later one, nil when nothing is known of it
	wi     uint32      // its warp in the block
	// devices says that the two are of different devices.
	devices bool
	earlier *launch // of the earlier access, nil when it has ended
	// outside says that the earlier thread had given back, before its access, the lock that the later one holds.
	outside bool
}

// explain tells what synchronisation there is between the two accesses, by handovers and locks.
func (w *Witness) explain(f *detect.Facts, a *history.Access, r history.Race) {
	l := w.launches[a.Actor.Launch]
	earlier := r.Earlier.Stamp.Launch
	devices := a.Actor.OtherDevice(earlier) && earlier.Published() // of a launch that releases nothing single threads are not known
	if l == nil || earlier != a.Actor.Launch && !devices {
		return
	}
	x := &race{r, l, w, a, r.Earlier.Stamp, a.Actor.Stamp(), l.blocks[a.Actor.Block], a.Actor.Warp % a.Actor.Launch.WarpsPerBlock,
		devices, w.launches[earlier], false}
	if devices {
		f.Handover, f.Handed = x.handover(nil, nil)
		return
	}
	early, late := x.locks(&x.before, x.before.Epoch), x.locks(&x.after, never)
	f.Handover, f.Handed = x.handover(early, late)
	f.Handed = f.Handed || x.waits(&x.before, x.before.Epoch) || x.waits(&x.after, never)
	f.Signalled = !x.sameBlock() && log(&x.after).Signalled(x.wi, x.later.Actor.Lane)
	f.ByLeader = !x.sameBlock() && x.byLeader()
	if f.Handover == nil && !f.ByLeader {
		f.Alone, f.TwoLocks = x.alone(early, late)
		f.Alone = f.Alone || x.outside
		f.Passed = !f.Alone && f.Handed && !x.sameBlock() && x.passed()
	}
	if f.Kind() == f.Category.Kind() && x.unawaited() {
		f.Unawaited = "second"
	}
}

func (x *race) sameBlock() bool { return !x.devices && x.before.Block() == x.later.Actor.Block }

// wide says that a scope includes both threads where they are not of one block.
func (x *race) wide(s event.Scope) bool {
	switch {
	case x.devices:
		return s == event.ScopeSys
	case s == event.ScopeCluster:
		return x.before.Launch.Info.SameCluster(x.before.Block(), x.later.Actor.Block)
	}
	return s >= event.ScopeGPU
}

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
	me := x.after.Lane
	// A lock with a queue is handed over by other variables, between those who hold it one after the other.
	queued := func(s section) bool {
		return x.concernsLock(s) || s.taking != nil && s.taking.queue && among(early, s.lock)
	}
	if late = slices.DeleteFunc(slices.Clone(late), queued); len(late) > 0 {
		if i := slices.IndexFunc(late, func(s section) bool { return s.taken.size != 0 && among(early, s.lock) }); i >= 0 {
			if how = x.handoverBy(&late[i].taken, x.wi, me); x.gavenBack(how, &late[i].taken) {
				how, x.outside = nil, true
			}
			return how, true
		}
		return x.handoverUnheld(late), true
	}
	from, to := uint32(0), uint32(len(x.block.warps))
	if x.sameBlock() {
		from, to = x.wi, x.wi+1
	}
	o, wi, lane := x.last(from, to, ^uint32(0))
	switch {
	case o.size == 0:
		return nil, false
	case (wi != x.wi || lane != me) && (x.sameBlock() || !x.follows(wi, lane, o.epoch)):
		// The lanes of a warp observe in turns, and others of the block have since.
		if o, wi, lane = x.last(x.wi, x.wi+1, 1<<uint(me)); o.size == 0 {
			return nil, true
		}
	}
	if how = x.handoverBy(&o, wi, lane); how == nil || x.sameData(how, &o) || x.draws(how, &o) {
		how = x.handoverBefore(&o)
	}
	if how != nil && how.Lacking() && x.guarded(&o) {
		return nil, true
	}
	if x.gavenBack(how, &o) || o.failed && slices.ContainsFunc(x.sections(x.before.Block()), o.of) {
		return nil, true // who did not get the lock goes on without it
	}
	if how != nil && how.Counted && x.Category == detect.VolatileRace && (!x.Earlier.Site.Side.Write || how.Ticket) {
		// Whoever stops others by a volatile flag that they access between two steps of a counter owes them nothing: the counter of a
		// ticket lock hands out tickets, and not what its holders do.
		return nil, true
	}
	return how, true
}

// unawaited says that another thread of the later one's block comes after the earlier access, though the later one, which has observed
// nothing since it last met its block, does not. Volatile data are none where what that thread observed is more of them.
func (x *race) unawaited() bool {
	if x.block == nil || x.sameBlock() || x.block.observed(&x.later.Actor) {
		return false
	}
	if x.Category == detect.VolatileRace {
		o, wi, lane := x.last(0, uint32(len(x.block.warps)), ^uint32(0))
		if how := x.handoverBy(&o, wi, lane); how == nil || x.sameData(how, &o) {
			return false
		}
	}
	return unawaited(x.block.of, &x.later.Actor, x.block.of.ViewOf(x.wi, x.later.Actor.Lane), &x.before)
}

// observed says that a thread of the block has observed others since it last waited at a barrier.
func (b *block) observed(a *order.Actor) bool {
	wi := a.Warp % a.Launch.WarpsPerBlock
	for _, h := range b.warps[wi].seen(a.Lane) {
		if h.size != 0 && !a.Launch.LogOf(a.Block).Waited(wi, a.Lane, h.epoch, never) {
			return true
		}
	}
	return false
}

// unawaited says that a thread of the block of an actor comes after an access of another block now, but not the actor, whose view is own.
func unawaited(b *order.Block, a *order.Actor, own *order.View, other *order.Stamp) bool {
	after := func(v *order.View) bool {
		return v.Unknown(a.Launch, a.Block, other.Launch, other.Warp, 1<<uint(other.Lane), other.Epoch) == 0
	}
	for i := range a.Launch.WarpsPerBlock {
		for v := range b.Views(i, ^uint32(0)) {
			if after(v) {
				return !after(own)
			}
		}
	}
	return false
}

// of says that the handover is by the lock of a section.
func (h *handover) of(s section) bool { return s.lock.Shared == h.shared && s.lock.Addr == h.address }

// gavenBack says that the earlier thread, which takes the lock itself, had given it back before its access: another thread of its block,
// which has given back the lock since, does not act for it.
func (x *race) gavenBack(how *detect.Handover, o *handover) bool {
	return how != nil && how.Apart && slices.ContainsFunc(x.sections(x.before.Block()), func(s section) bool {
		return s.is(&x.before) && o.of(s)
	})
}

// handoverBefore tells how the earlier thread handed over, without the fences, by what the later thread observed before the last
// handover o, which was of another thread: who polls two variables by turns has observed the one of them first. It gives nil when
// there is no such handover.
func (x *race) handoverBefore(o *handover) *detect.Handover {
	all := x.block.warps[x.wi].seen(x.after.Lane)
	slices.SortFunc(all[:], func(a, b handover) int { return cmp.Compare(b.number, a.number) })
	for i := range all {
		h := &all[i]
		if h.size == 0 || x.idle(h) || h.elsewhere != x.devices || h.number >= o.number || x.concerns(h.shared, h.address, uint64(h.size)) {
			continue
		}
		if how := x.handoverBy(h, x.wi, x.after.Lane); how != nil && how.Lacking() && !how.Apart && !x.sameData(how, h) && !x.draws(how, h) {
			return how
		}
	}
	return nil
}

// sameData says that what passed from the one thread to the other by o is no flag but more of the data: another element of a volatile
// array, or of what atomic operations add up, accessed by an instruction that also accesses what the race is on. Vertices that read and update their neighbours' values meet
// so all the time, and hand nothing over.
func (x *race) sameData(how *detect.Handover, o *handover) (same bool) {
	if x.Category != detect.VolatileRace && x.Category != detect.AtomicWithPlain {
		return false
	}
	block, data := x.later.Actor.Block, []uint32{x.Earlier.Site.Event.Place, x.later.Site.Event.Place}
	x.strongAccesses(x.later.Memory.Shared, block, x.From, func(w *history.Record) { data = append(data, w.Site.Event.Place) })
	same = slices.Contains(data, how.Write) || slices.Contains(data, how.Read)
	x.strongAccesses(o.shared, block, o.address, func(w *history.Record) { same = same || slices.Contains(data, w.Site.Event.Place) })
	return same
}

// handoverUnheld tells how the earlier thread handed over by a lock that the later one holds and that the earlier one never held,
// nil when it did not: readers of a reader-writer lock count in it, and a semaphore that is taken at first signals. Other threads of its
// block that give the lock back do not act for it.
func (x *race) handoverUnheld(late []section) *detect.Handover {
	for i := range late {
		s := &late[i]
		if s.taken.size == 0 || slices.ContainsFunc(x.sections(x.before.Block()), func(e section) bool { return e.is(&x.before) && e.lock == s.lock }) {
			continue
		}
		if how := x.handoverBy(&s.taken, x.wi, x.after.Lane); how != nil && !how.Apart && !how.Relayed && !x.draws(how, &s.taken) {
			return how
		}
	}
	return nil
}

// idle says that a handover is none: threads of a block that add to a sum, and do not look at it, do not wait for each other. (Those
// of different blocks that arrive at a barrier add so too, and then poll; the last one reads what it has written itself.) Nor does a
// thread that gives a lock back by an exchange wait for those that have tried to take it.
func (x *race) idle(h *handover) bool { return h.discards && (x.sameBlock() || h.takes) }

// follows says that the later access happens after an epoch of a thread of its block.
func (x *race) follows(wi uint32, lane int, epoch uint32) bool {
	return x.later.Actor.Unknown(x.after.Launch, x.after.Warp-x.wi+wi, 1<<uint(lane), epoch) == 0
}

// last gives the last handover to some lanes of some warps of the later thread's block, but for what the race is on; its size is
// 0 when there is none.
func (x *race) last(from, to uint32, lanes uint32) (last handover, warp uint32, lane int) {
	take := func(h handover, wi uint32, i int) {
		if h.size != 0 && !x.idle(&h) && h.elsewhere == x.devices && h.number >= last.number && !x.concerns(h.shared, h.address, uint64(h.size)) {
			last, warp, lane = h, wi, i
		}
	}
	spaces := 2
	if !x.sameBlock() && !x.before.Launch.Clustered() {
		spaces = 1 // blocks do not share the other
	}
	for wi := from; wi < to; wi++ {
		for k := range spaces {
			w := &x.block.warps[wi].seenIn[k]
			for i := 0; w.last != nil && i < len(w.last); i++ {
				s := &w.last[i]
				for m := s.lanes & lanes; m != 0 && s.number >= last.number; m &= m - 1 {
					j := bits.TrailingZeros32(m)
					take(s.handover(j), wi, j)
				}
			}
		}
	}
	for wi := from; wi < to; wi++ { // mostly older
		for k := range spaces {
			w := &x.block.warps[wi].seenIn[k]
			for m := lanes; m != 0 && w.settled >= last.number && w.before != nil; m &= m - 1 {
				i := bits.TrailingZeros32(m)
				take(w.before[i][0], wi, i)
				take(w.before[i][1], wi, i)
			}
		}
	}
	return last, warp, lane
}

// strongWrites calls f for the launch's strong writes of a byte of global memory, or of the shared memory of a block.
func (x *race) strongWrites(shared bool, block uint32, address uint64, f func(w *history.Record)) {
	x.strongAccesses(shared, block, address, func(w *history.Record) {
		if w.Site.Side.Write {
			f(w)
		}
	})
}

// strongAccesses does so for strong reads too.
func (x *race) strongAccesses(shared bool, block uint32, address uint64, f func(w *history.Record)) {
	m := history.Memory{}
	if shared {
		m = history.Memory{Shared: true, Launch: x.before.Launch.Info.ID, Block: block}
	}
	x.w.accesses.StrongAccesses(m, address, func(w *history.Record) {
		if w.Stamp.Launch == x.before.Launch {
			f(w)
		}
	})
}

// handoverBy tells how the earlier thread handed over by way of what a thread of the later one's block observed, nil when it
// did not.
func (x *race) handoverBy(o *handover, wi uint32, lane int) *detect.Handover {
	if o.chains < x.Earlier.Chain {
		return nil // it was observed before the earlier access
	}
	// Within an epoch the order of first execution has to do for program order, but for chains that tell.
	precedes := func(w *history.Record) bool {
		if w.Stamp.Epoch == x.before.Epoch && x.Earlier.Site.Strong && !w.Site.Sync.Updates {
			return w.Chain <= x.Earlier.Chain
		}
		return w.Stamp.Epoch < x.before.Epoch || w.Stamp.Epoch == x.before.Epoch && w.Site.Number < x.Earlier.Site.Number
	}
	var by history.Record   // a strong write of the thread itself, or else of another of its block, which a barrier may have let go on
	var last history.Record // strong write of the thread itself
	itself, locks := false, false
	x.strongWrites(o.shared, x.later.Actor.Block, o.address, func(w *history.Record) {
		own := sameThread(&w.Stamp, &x.before)
		if own && precedes(w) && w.Site.Number < x.Earlier.Site.Number && w.Site.Event.RMW != event.OtherRMW && w.Site.Sync.Reads {
			locks = true
		}
		if w.Stamp.Block() != x.before.Block() || x.sameBlock() && !own || precedes(w) || w.Chain > o.chains {
			return // or it was written after it was observed
		}
		if by.Site == nil || own && !itself || own == itself && w.Stamp.Epoch < by.Stamp.Epoch {
			by, itself = *w, own
		}
		if own && (last.Site == nil || w.Stamp.Epoch > last.Stamp.Epoch) {
			last = *w
		}
	})
	early := log(&x.before)
	if by.Site == nil || early.Lost(x.before.Epoch) {
		return nil
	}
	out := x.handoverOf(o, &by, itself, locks, wi, lane)
	if itself && out.Release == nil && last.Site != by.Site {
		// It read a flag by adding nothing, or looked at the top of a stack, before its fence: what it wrote after that hands over.
		if y := x.handoverOf(o, &last, itself, locks, wi, lane); y.Release != nil {
			out, by = y, last
		}
	}
	if !itself {
		apart := x.met(&by.Stamp) == 0
		out.Relayed = x.earlier.past(x.before.Block()).within >= x.before.Epoch // what was observed before passed nothing on
		out.Apart, out.Relayed = apart && !out.Relayed, apart && out.Relayed
	}
	if itself && x.observedBefore(out, &by) {
		out.Release, out.ReleaseWide = nil, false
	}
	return out
}

// handoverOf describes the handover by a strong write.
func (x *race) handoverOf(o *handover, by *history.Record, itself, locks bool, wi uint32, lane int) *detect.Handover {
	site := by.Site
	// Who releases a lock does not do what takes it; who arrives at a barrier does what all do. Who counts, and who polls a counter or
	// a flag by adding nothing, takes no lock.
	out := &detect.Handover{Write: site.Event.Place, Read: o.place, InScope: o.inScope, Lock: locks && o.takes && o.place != site.Event.Place,
		Counted: site.Sync.Updates && site.Event.RMW == event.OtherRMW, Ticket: site.Number < x.Earlier.Site.Number && o.place == site.Event.Place}
	x.fences(out, o, by, itself, wi, lane)
	return out
}

// observedBefore says that the later thread has observed an earlier write of the site of by, which is known only by its last one:
// a loop writes again, and what releases is of the turn after. Were the observed write by itself, nothing would be missing. In the
// code no release is between the access and the write; places are in the order of the code, functions in that of their first call.
func (x *race) observedBefore(h *detect.Handover, by *history.Record) bool {
	if h.Release == nil || h.Acquire == nil || !h.InScope || !x.sameBlock() && !(h.ReleaseWide && h.AcquireWide) {
		return false
	}
	access, write, release := x.Earlier.Site.Place, uint64(by.Site.Event.Place), uint64(h.Release.Place)
	return access < write && (release < access || write < release)
}

// fences tells of the synchronisations between the earlier access and the write by, and between the read o, by a lane of a warp
// of the later thread's block, and the later access.
func (x *race) fences(out *detect.Handover, o *handover, by *history.Record, itself bool, wi uint32, lane int) {
	wpb, me := x.before.Launch.WarpsPerBlock, x.after.Lane
	early, late := log(&x.before), log(&x.after)
	// Where a thread acts for others of its block, a fence of its own after the barrier does, or one of theirs on the other side of it.
	var released, acquired event.Scope
	since := x.before.Epoch
	if !itself {
		since = max(since, x.met(&by.Stamp))
		out.Barrier = since > x.before.Epoch
	}
	out.Release, released = early.Released(by.Stamp.Warp%wpb, by.Stamp.Lane, since, by.Stamp.Epoch, out.Write)
	if out.Release == nil && !itself {
		out.Release, released = early.Released(x.before.Warp%wpb, x.before.Lane, x.before.Epoch, by.Stamp.Epoch, out.Write)
	}
	out.Acquire, acquired = late.Acquired(wi, lane, o.epoch, o.place, o.address)
	if out.Acquire == nil && (wi != x.wi || lane != me) {
		out.Acquire, acquired = late.Acquired(x.wi, me, o.epoch, o.place, o.address)
	}
	out.ReleaseWide, out.AcquireWide = x.wide(released), x.wide(acquired)
}

// met gives the epoch that began where the earlier thread waited for another of its block, after its access; 0 when it did not.
func (x *race) met(other *order.Stamp) uint32 {
	lanes := uint32(0)
	if other.Warp == x.before.Warp {
		lanes = 1 << other.Lane
	}
	return log(&x.before).Met(x.before.Warp%x.before.Launch.WarpsPerBlock, x.before.Lane, lanes, x.before.Epoch, other.Epoch)
}

// past gives that of a block. Of one that is forgotten nothing can be ruled out.
func (l *launch) past(block uint32) past {
	if l == nil {
		return past{within: never}
	}
	if b := l.blocks[block]; b != nil {
		return b.past
	}
	p, known := l.ended[block]
	if !known && l.forgot {
		p.within = never
	}
	return p
}

// locks gives the critical sections in which a thread was at an epoch, or is, at never.
func (x *race) locks(t *order.Stamp, epoch uint32) []section {
	return slices.DeleteFunc(x.sections(t.Block()), func(s section) bool {
		return !s.is(t) || epoch < s.from || s.to < epoch
	})
}

// sections gives the last critical sections of a block, those that have not ended too.
func (l *launch) sections(block uint32) []section {
	all := slices.Clone(l.past(block).sections)
	if b := l.blocks[block]; b != nil {
		for wi := range b.warps {
			all = append(all, b.warps[wi].held...)
		}
	}
	return slices.DeleteFunc(all, func(s section) bool { return s.taking != nil && !s.taking.proven() })
}

// is says that the section is of a thread of its launch.
func (s *section) is(t *order.Stamp) bool { return s.warp == t.Warp && s.lane == t.Lane }

// sameThread says that two stamps of one launch are of one thread.
func sameThread(s, t *order.Stamp) bool { return s.Warp == t.Warp && s.Lane == t.Lane }

func among(all []section, id lock.ID) bool {
	return slices.ContainsFunc(all, func(s section) bool { return s.lock == id })
}

// byLeader says that a thread of each of the two blocks takes a lock for all its threads: the same lock, which that of the
// earlier block holds over a barrier, and the two threads of the race do not both hold.
func (x *race) byLeader() bool {
	late := x.sections(x.after.Block())
	return len(late) > 0 && slices.ContainsFunc(x.sections(x.before.Block()), func(e section) bool {
		return !x.concernsLock(e) && slices.ContainsFunc(late, func(l section) bool {
			return l.lock == e.lock && !(e.is(&x.before) && l.is(&x.after))
		}) && log(&x.before).Waited(e.warp%x.before.Launch.WarpsPerBlock, e.lane, e.from, e.to)
	})
}

// alone says that one of the two threads is in a critical section of a lock that the other never took, or had given back, and
// whether the other is in one of another lock.
func (x *race) alone(early, late []section) (yes, twoLocks bool) {
	if slices.ContainsFunc(early, func(s section) bool { return among(late, s.lock) }) ||
		slices.ContainsFunc(early, x.concernsLock) || slices.ContainsFunc(late, x.concernsLock) {
		return false, false
	}
	yes = slices.ContainsFunc(early, func(s section) bool { return x.without(s.lock, &x.after, never) }) ||
		slices.ContainsFunc(late, func(s section) bool { return x.without(s.lock, &x.before, x.before.Epoch) })
	return yes, yes && len(early) > 0 && len(late) > 0
}

// without says that a thread that is in no critical section of a lock at an epoch never took it, or gave it back before and has not
// written it since: it does not hand over by it either.
func (x *race) without(id lock.ID, t *order.Stamp, epoch uint32) bool {
	wrote, since := false, false
	x.strongWrites(id.Shared, id.Block, id.Addr, func(w *history.Record) {
		if t := x.w.takings[w.Site.Event.Place]; t != nil && t.polled {
			return // an attempt to take it, by an exchange
		}
		own := sameThread(&w.Stamp, t)
		wrote, since = wrote || own, since || own && w.Stamp.Epoch > epoch
	})
	return !wrote || !since && slices.ContainsFunc(x.sections(t.Block()), func(s section) bool { return s.is(t) && s.lock == id })
}
