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

// race is a race to be explained. Its threads are of one running launch, or of two launches on different devices.
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
	earlier *launch // the launch of the earlier access; nil if it has ended
	// outside says that the earlier thread released the lock that the later one holds before its access.
	outside bool
}

// explain finds out what synchronisation lies between the two accesses, in terms of handovers and locks.
func (w *Witness) explain(f *detect.Facts, a *history.Access, r history.Race) {
	l := w.launches[a.Actor.Launch]
	earlier := r.Earlier.Stamp.Launch
	devices := a.Actor.OtherDevice(earlier) && earlier.Published() // if the launch releases nothing, nobody knows single threads of it
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

// wide reports whether a scope includes both threads if they are in different blocks.
func (x *race) wide(s event.Scope) bool {
	switch {
	case x.devices:
		return s == event.ScopeSys
	case s == event.ScopeCluster:
		return x.before.Launch.Info.SameCluster(x.before.Block(), x.later.Actor.Block)
	}
	return s >= event.ScopeGPU
}

// concerns reports whether the race is on the variable itself: a flag does not hand itself over, and a lock does not
// protect itself.
func (x *race) concerns(shared bool, address, size uint64) bool {
	return shared == x.later.Memory.Shared && address < x.End && x.From < address+size
}

// lockSize is the assumed size of a lock in bytes. Package lock does not give the size.
const lockSize = 4

func (x *race) concernsLock(s section) bool {
	return x.concerns(s.lock.Shared, s.lock.Addr, lockSize)
}

// handover describes how the earlier thread handed over to the later one; nil if nothing shows that it did. handed says
// whether any thread did. A handover goes through the lock that the later thread holds. If it holds none, it goes
// through what the later thread observed last, or what a thread of its block observed last that happens before it.
func (x *race) handover(early, late []section) (how *detect.Handover, handed bool) {
	if x.block == nil {
		return nil, false
	}
	me := x.after.Lane
	// A lock with a queue passes from one holder to the next through other variables.
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
		// The lanes of a warp take turns observing, and other threads of the block have observed since.
		if o, wi, lane = x.last(x.wi, x.wi+1, 1<<uint(me)); o.size == 0 {
			return nil, true
		}
	}
	lacking := func(h *detect.Handover) bool { return h.Lacking() }
	narrow := func(h *detect.Handover) bool {
		return !h.Lacking() && !(h.InScope && (x.sameBlock() || h.ReleaseWide && h.AcquireWide))
	}
	if how = x.handoverBy(&o, wi, lane); how == nil || x.sameData(how, &o) || x.draws(how, &o) {
		how = x.handoverBefore(&o, lacking)
	}
	if how != nil && how.Lacking() {
		// A variable that was meant to hand over has its fences. The last one may be an element of a queue or a counter.
		how = cmp.Or(x.handoverBefore(&o, narrow), how)
	}
	if how != nil && how.Lacking() && x.guarded(&o) {
		return nil, true
	}
	if x.gavenBack(how, &o) || o.failed && slices.ContainsFunc(x.sections(x.before.Block()), o.of) {
		return nil, true // a thread that failed to take the lock continued without it
	}
	if how != nil && how.Counted && x.Category == detect.VolatileRace && (!x.Earlier.Site.Side.Write || how.Ticket) {
		// A volatile flag, accessed between two steps of a counter, that keeps others out is not handed over by that
		// counter. The counter of a ticket lock, for instance, gives out tickets, not what the lock's holders did.
		return nil, true
	}
	return how, true
}

// unawaited reports whether the earlier access happens before another thread of the later thread's block, but not
// before the later thread, which has observed nothing since its last barrier. If the data are volatile and that thread
// observed only more of the data, this does not count.
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

// observed reports whether the actor has observed others since it last waited at a barrier.
func (b *block) observed(a *order.Actor) bool {
	wi := a.Warp % a.Launch.WarpsPerBlock
	for _, h := range b.warps[wi].seen(a.Lane) {
		if h.size != 0 && !a.Launch.LogOf(a.Block).Waited(wi, a.Lane, h.epoch, never) {
			return true
		}
	}
	return false
}

// unawaited reports whether an access of another block happens before some thread of the actor's block, but not before
// the actor, whose view is own.
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

// of reports whether the handover goes through the lock of a section.
func (h *handover) of(s section) bool { return s.lock.Shared == h.shared && s.lock.Addr == h.address }

// gavenBack reports whether the earlier thread takes the lock of handover o itself, and had released it before its
// access. Another thread of its block that has released the lock since does not act on its behalf.
func (x *race) gavenBack(how *detect.Handover, o *handover) bool {
	return how != nil && how.Apart && slices.ContainsFunc(x.sections(x.before.Block()), func(s section) bool {
		return s.is(&x.before) && o.of(s)
	})
}

// handoverBefore describes a faulty handover through what the later thread observed before handover o: the last one for
// which faulty returns true. A thread may poll two variables in turn, for example. It returns nil if there is none.
func (x *race) handoverBefore(o *handover, faulty func(*detect.Handover) bool) *detect.Handover {
	all := x.block.warps[x.wi].seen(x.after.Lane)
	slices.SortFunc(all[:], func(a, b handover) int { return cmp.Compare(b.number, a.number) })
	for i := range all {
		h := &all[i]
		if h.size == 0 || x.idle(h) || h.elsewhere != x.devices || h.number >= o.number || x.concerns(h.shared, h.address, uint64(h.size)) {
			continue
		}
		if how := x.handoverBy(h, x.wi, x.after.Lane); how != nil && faulty(how) && !how.Apart && !x.sameData(how, h) && !x.draws(how, h) {
			return how
		}
	}
	return nil
}

// sameData reports whether what the later thread observed by o is not a flag but more of the data: another element of a
// volatile array, or of an array updated by atomic operations, accessed by an instruction that also accesses the racing
// bytes. Threads that process vertices and update neighbouring vertices observe each other like this all the time,
// without handing anything over.
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

// handoverUnheld describes how the earlier thread, which never held a lock that the later one holds, handed over by
// that lock; nil if it did not. For example, readers of a reader-writer lock count in its word, and a semaphore that is
// taken first signals. Other threads of its block that release the lock do not act on its behalf.
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

// idle reports whether a handover is to be ignored, because no thread waits in it. Threads of a block that add to a sum and discard
// the result do not wait for each other. (Threads of different blocks also add in this way when they arrive at a barrier, but then
// they poll. The last one reads the value that it has written itself.) A thread that releases a lock by an exchange does not wait
// for the threads that have tried to take the lock.
func (x *race) idle(h *handover) bool { return h.discards && (x.sameBlock() || h.takes) }

// follows reports whether an epoch of another thread of the later access's block happens before that access.
func (x *race) follows(wi uint32, lane int, epoch uint32) bool {
	return x.later.Actor.Unknown(x.after.Launch, x.after.Warp-x.wi+wi, 1<<uint(lane), epoch) == 0
}

// last returns the last handover to lanes of the warps [from, to) of the later thread's block, and the warp and lane.
// Handovers by the racing bytes themselves do not count. Its size is 0 if there is none.
func (x *race) last(from, to uint32, lanes uint32) (last handover, warp uint32, lane int) {
	take := func(h handover, wi uint32, i int) {
		if h.size != 0 && !x.idle(&h) && h.elsewhere == x.devices && h.number >= last.number && !x.concerns(h.shared, h.address, uint64(h.size)) {
			last, warp, lane = h, wi, i
		}
	}
	spaces := 2
	if !x.sameBlock() && !x.before.Launch.Clustered() {
		spaces = 1 // blocks do not share shared memory
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
	for wi := from; wi < to; wi++ { // these are mostly older
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

// strongWrites calls f for the launch's strong writes to a byte of global memory, or of the shared memory of a block.
func (x *race) strongWrites(shared bool, block uint32, address uint64, f func(w *history.Record)) {
	x.strongAccesses(shared, block, address, func(w *history.Record) {
		if w.Site.Side.Write {
			f(w)
		}
	})
}

// strongAccesses calls f for the strong reads as well.
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

// handoverBy describes how the earlier thread handed over through what a thread of the later one's block observed; nil
// if it did not.
func (x *race) handoverBy(o *handover, wi uint32, lane int) *detect.Handover {
	if o.chains < x.Earlier.Chain {
		return nil // it was observed before the earlier access
	}
	// Within an epoch, program order is not recorded. It is approximated by the order in which sites were first
	// executed, or by chains if they tell.
	precedes := func(w *history.Record) bool {
		if w.Stamp.Epoch == x.before.Epoch && x.Earlier.Site.Strong && !w.Site.Sync.Updates {
			return w.Chain <= x.Earlier.Chain
		}
		return w.Stamp.Epoch < x.before.Epoch || w.Stamp.Epoch == x.before.Epoch && w.Site.Number < x.Earlier.Site.Number
	}
	// by is a strong write after the earlier access: by the earlier thread itself, or else by another thread of its
	// block, which a barrier may have released.
	var by history.Record
	// last is the last strong write of the earlier thread.
	var last history.Record
	itself, locks := false, false
	x.strongWrites(o.shared, x.later.Actor.Block, o.address, func(w *history.Record) {
		own := sameThread(&w.Stamp, &x.before)
		if own && precedes(w) && w.Site.Number < x.Earlier.Site.Number && w.Site.Event.RMW != event.OtherRMW && w.Site.Sync.Reads {
			locks = true
		}
		if w.Stamp.Block() != x.before.Block() || x.sameBlock() && !own || precedes(w) || w.Chain > o.chains {
			return // it was written after the observation
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
		// The write may be a poll of a flag by adding nothing, or a look at the top of a stack, before the thread's
		// fence. A later write hands over.
		if y := x.handoverOf(o, &last, itself, locks, wi, lane); y.Release != nil {
			out, by = y, last
		}
	}
	if !itself {
		apart := x.met(&by.Stamp) == 0
		out.Relayed = x.earlier.past(x.before.Block()).within >= x.before.Epoch // what was observed before the access handed nothing on
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
	// The instruction that releases a lock differs from the one that takes it; threads that arrive at a barrier all
	// execute the same one. Counting, or polling a counter or flag by adding nothing, does not take a lock.
	out := &detect.Handover{Write: site.Event.Place, Read: o.place, InScope: o.inScope, Lock: locks && o.takes && o.place != site.Event.Place,
		Counted: site.Sync.Updates && site.Event.RMW == event.OtherRMW, Ticket: site.Number < x.Earlier.Site.Number && o.place == site.Event.Place}
	x.fences(out, o, by, itself, wi, lane)
	return out
}

// observedBefore reports whether the later thread observed an earlier write by the site of by than the last one, which
// is the only one recorded. That happens when a loop writes again: the release found is then that of the next
// iteration. If the observed write were by itself, nothing would be missing. The check is that in the code no release
// lies between the access and the write.
func (x *race) observedBefore(h *detect.Handover, by *history.Record) bool {
	if h.Release == nil || h.Acquire == nil || !h.InScope || !x.sameBlock() && !(h.ReleaseWide && h.AcquireWide) {
		return false
	}
	access, write, release := x.Earlier.Site.Event.Place, by.Site.Event.Place, h.Release.Place
	return x.w.inOrder(access, write) && (x.w.inOrder(release, access) || x.w.inOrder(write, release))
}

// inOrder reports whether place a comes before place b in the code: in the function that both were called from, if any.
func (w *Witness) inOrder(a, b uint32) bool {
	x, y := w.frames(a), w.frames(b)
	for i, j := len(x)-1, len(y)-1; i >= 0 && j >= 0; i, j = i-1, j-1 {
		if c := cmp.Compare(x[i].PTXLine, y[j].PTXLine); c != 0 {
			return c < 0
		}
	}
	return a < b
}

// fences records in out the synchronisation between the earlier access and the write by, and between the read o, by a
// lane of a warp of the later thread's block, and the later access.
func (x *race) fences(out *detect.Handover, o *handover, by *history.Record, itself bool, wi uint32, lane int) {
	wpb, me := x.before.Launch.WarpsPerBlock, x.after.Lane
	early, late := log(&x.before), log(&x.after)
	// If a thread acts for others of its block, a fence of its own after the barrier counts, and so does a fence of
	// theirs before it (on the acquiring side, after it).
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

// met returns the epoch of the barrier at which the earlier thread, after its access, waited for another thread of its
// block; 0: none.
func (x *race) met(other *order.Stamp) uint32 {
	lanes := uint32(0)
	if other.Warp == x.before.Warp {
		lanes = 1 << other.Lane
	}
	return log(&x.before).Met(x.before.Warp%x.before.Launch.WarpsPerBlock, x.before.Lane, lanes, x.before.Epoch, other.Epoch)
}

// past returns the past of a block. If the block has been dropped, nothing can be excluded.
func (l *launch) past(block uint32) past {
	if l == nil {
		return past{within: never}
	}
	if b := l.blocks[block]; b != nil {
		return b.past
	}
	p, known := l.ended[block]
	if !known && l.dropped {
		p.within = never
	}
	return p
}

// locks returns the critical sections that a thread was in at an epoch, or is in now if epoch is never.
func (x *race) locks(t *order.Stamp, epoch uint32) []section {
	return slices.DeleteFunc(x.sections(t.Block()), func(s section) bool {
		return !s.is(t) || epoch < s.from || s.to < epoch
	})
}

// sections returns the last critical sections of a block, including those that have not ended.
func (l *launch) sections(block uint32) []section {
	all := slices.Clone(l.past(block).sections)
	if b := l.blocks[block]; b != nil {
		for wi := range b.warps {
			all = append(all, b.warps[wi].held...)
		}
	}
	return slices.DeleteFunc(all, func(s section) bool { return s.taking != nil && !s.taking.proven() })
}

// is reports whether the section is by a thread of its launch.
func (s *section) is(t *order.Stamp) bool { return s.warp == t.Warp && s.lane == t.Lane }

// sameThread reports whether two stamps of one launch are by the same thread.
func sameThread(s, t *order.Stamp) bool { return s.Warp == t.Warp && s.Lane == t.Lane }

func among(all []section, id lock.ID) bool {
	return slices.ContainsFunc(all, func(s section) bool { return s.lock == id })
}

// byLeader reports whether in each of the two blocks one thread takes the same lock on behalf of all threads. The
// leader of the earlier block holds it across a barrier, and not both threads of the race are leaders.
func (x *race) byLeader() bool {
	late := x.sections(x.after.Block())
	return len(late) > 0 && slices.ContainsFunc(x.sections(x.before.Block()), func(e section) bool {
		return !x.concernsLock(e) && slices.ContainsFunc(late, func(l section) bool {
			return l.lock == e.lock && !(e.is(&x.before) && l.is(&x.after))
		}) && log(&x.before).Waited(e.warp%x.before.Launch.WarpsPerBlock, e.lane, e.from, e.to)
	})
}

// alone says that one of the two threads is in a critical section of a lock that the other never took or had released.
// twoLocks says that the other is in a critical section of another lock.
func (x *race) alone(early, late []section) (yes, twoLocks bool) {
	if slices.ContainsFunc(early, func(s section) bool { return among(late, s.lock) }) ||
		slices.ContainsFunc(early, x.concernsLock) || slices.ContainsFunc(late, x.concernsLock) {
		return false, false
	}
	yes = slices.ContainsFunc(early, func(s section) bool { return x.without(s.lock, &x.after, never) }) ||
		slices.ContainsFunc(late, func(s section) bool { return x.without(s.lock, &x.before, x.before.Epoch) })
	return yes, yes && len(early) > 0 && len(late) > 0
}

// without reports whether a thread, which is in no critical section of a lock at an epoch, never took the lock, or
// released it before and has not written it since: it does not hand over by the lock either.
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
