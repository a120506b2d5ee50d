package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// What follows decides nothing but how a race between blocks is named and explained. It is asked only when a race is
// the first of its pair of places, and may guess.

// handover is the last time that a thread of a warp read strongly what another thread had written strongly: the usual
// way to hand data over.
type handover struct {
	key   locKey
	warp  uint32 // the reader's, within the block
	lane  int
	clock uint32 // the reader's epoch
	place uint32
	meets bool // morally strong
}

func (d *Detector) noteHandover(b *block, wi uint32, lane int, x *loc, c *class) {
	if x.launch != b.launch || x.warp == d.act.warp && x.lane == lane {
		return
	}
	if x.block == b.index {
		b.logged().within = true
	}
	w := &b.warps[wi]
	w.note(handover{locKey{d.act.shared, x.size, x.addr}, wi, lane, w.view(lane).clock, c.key.place,
		x.meets(b, wi, lane, c.side.Wide || c.side.Volatile)})
	b.handed = wi
}

// note keeps a handover to a lane of w.
func (w *warp) note(h handover) {
	w.handovers.add(&h)
	w.observed(h.lane).add(&h)
}

// handovers are the last one, and the last one of another location.
type handovers struct{ last, former handover }

func (o *handovers) add(h *handover) {
	if o.last.key != h.key {
		o.former = o.last
	}
	o.last = *h
}

// before gives the last handover of a location that a hit is not on; its key is zero when there is none.
func (o *handovers) before(d *Detector, h hit) *handover {
	if d.concerns(h, o.last.key) {
		if d.concerns(h, o.former.key) {
			return &handover{}
		}
		return &o.former
	}
	return &o.last
}

// observed are the handovers to a lane.
func (w *warp) observed(lane int) *handovers {
	if w.laneHandovers == nil {
		if w.laneHandovers, w.room.handovers = w.room.handovers, nil; w.laneHandovers == nil {
			w.laneHandovers = new([32]handovers)
		}
	}
	return &w.laneHandovers[lane]
}

// handoverOf tells how the earlier thread of a hit handed over to the later one, nil when nothing shows that it did, and
// whether any thread did: by the lock that the later one holds, or else by what it, or a thread of its block that happens
// before it, observed last.
func (d *Detector) handoverOf(h hit, lane int) (how *detect.Handover, handed bool) {
	a := &d.act
	w := &a.blk.warps[a.wi]
	if early, late := d.locksOf(h, lane); late.size != 0 && !d.concerns(h, late) {
		if o := &w.locks.of[lane].taken; early == late && o.key == late {
			how = d.handoverBy(o, h)
		}
		return how, true
	}
	by := &a.blk.warps[a.blk.handed]
	if h.warp/a.blk.wpb == a.blk.index {
		by = w
	}
	o := by.handovers.before(d, h)
	switch {
	case o.key.size == 0:
		return nil, false
	case (o.warp != a.wi || o.lane != lane) && (h.warp/a.blk.wpb == a.blk.index || w.view(lane).block.Behind(o.warp, 1<<uint(o.lane), o.clock) != 0):
		// The lanes of a warp observe in turns, and others of the block have since.
		if o = w.observed(lane).before(d, h); o.key.size == 0 {
			return nil, true
		}
	}
	how = d.handoverBy(o, h)
	if how != nil && how.Counted && h.cat == detect.VolatileRace && !d.classes[h.class].side.Write {
		// Whoever stops others by a volatile flag that they read between two steps of a counter owes them nothing.
		return nil, true
	}
	return how, true
}

// handoverBy tells how the earlier thread of a hit handed over by way of what a thread of the later one's block observed, nil
// when it did not.
func (d *Detector) handoverBy(o *handover, h hit) *detect.Handover {
	a := &d.act
	block := h.warp / a.blk.wpb
	var out *detect.Handover
	var by strongWrite
	var itself bool
	born := d.classes[h.class].born
	d.strongWrites(o.key, func(w strongWrite) {
		if w.warp/a.blk.wpb != block || block == a.blk.index && (w.warp != h.warp || w.lanes>>uint(h.lane)&1 == 0) {
			return
		}
		// Within an epoch the order of first execution has to do for program order.
		if w.clock < h.clock || w.clock == h.clock && d.classes[w.class].born < born {
			return
		}
		// The thread itself, or else another of its block, which a barrier may have let go on.
		if own := w.warp == h.warp && w.lanes>>uint(h.lane)&1 != 0; out == nil || own && !itself || own == itself && w.clock < by.clock {
			out, by, itself = &detect.Handover{Write: d.classes[w.class].place, Read: o.place, InScope: o.meets, Counted: d.classes[w.class].counts}, w, own
		}
	})
	if out == nil || a.blk.logOf(block).lost(h.clock) {
		return nil
	}
	d.strongWrites(o.key, func(w strongWrite) {
		k := &d.classes[w.class]
		if w.warp == h.warp && w.lanes>>uint(h.lane)&1 != 0 && k.born < born && w.clock <= h.clock && k.side.RMW && !k.discards {
			out.Lock = true
		}
	})
	early, late := a.blk.logOf(block), a.blk.log
	if !itself {
		out.Apart = early == nil || !early.within
		early.all(h.warp%a.blk.wpb, h.lane, func(x *logged) bool {
			out.Apart = out.Apart && !(x.kind == event.Arrive && x.waits && x.clock > h.clock && x.clock <= by.clock)
			return out.Apart
		})
	}
	release := func(x *logged) bool {
		if x.clock > h.clock && (x.kind == event.Fence && x.clock <= by.clock || x.releases() && x.place == out.Write) {
			out.Release, out.ReleaseWide = x.sync(), x.scope >= event.ScopeGPU
		}
		return true
	}
	acquire := func(x *logged) bool {
		if x.clock > o.clock && (x.kind == event.Fence || x.acquires() && x.place == o.place) {
			out.Acquire, out.AcquireWide = x.sync(), x.scope >= event.ScopeGPU
		}
		return true
	}
	// Where a thread acts for others of its block, a fence of its own does, or one of theirs on the other side of the barrier.
	early.all(by.warp%a.blk.wpb, bits.TrailingZeros32(by.lanes), release)
	if out.Release == nil && !itself {
		early.all(h.warp%a.blk.wpb, h.lane, release)
	}
	late.all(o.warp, o.lane, acquire)
	if out.Acquire == nil && (o.warp != a.wi || o.lane != a.lane) {
		late.all(a.wi, a.lane, acquire)
	}
	return out
}

// concerns says that a hit is on a location itself: a flag does not hand itself over, nor does a lock protect itself.
func (d *Detector) concerns(h hit, key locKey) bool {
	return key.shared == d.act.shared && key.addr < h.hi && h.lo < key.addr+uint64(key.size)
}

// strongWrite is a strong write that shadow memory still knows of.
type strongWrite struct {
	class, warp, lanes, clock uint32
}

// strongWrites calls f for the strong writes of the current launch to a location.
func (d *Detector) strongWrites(key locKey, f func(strongWrite)) {
	a := &d.act
	p := d.mem.find(key.addr)
	if key.shared {
		p = d.pageOf(a.blk, true, key.addr) // the access at hand may be of global memory
	}
	if p == nil {
		return
	}
	d.denote(p, key.addr%pageBytes/lineBytes)
	l := p.expanded(key.addr % pageBytes / lineBytes)
	if l == nil {
		return
	}
	d.mem.each(&l.cells[key.addr%lineBytes/cellBytes], func(e *entry) {
		k := &d.classes[e.class()]
		if k.launch != a.blk.launch || !k.strong || !k.side.Write {
			return
		}
		visit := func(warp uint32, g group) bool {
			f(strongWrite{e.class(), warp, g.lanes, g.clock})
			return true
		}
		d.mem.walk(e, nil, visit)
	})
}

// releases says that a synchronisation is a release operation.
func (x *logged) releases() bool {
	return x.kind == event.Store || x.kind == event.Atomic && x.order >= event.Release
}

// acquires says that a synchronisation is an acquire operation.
func (x *logged) acquires() bool {
	return x.kind == event.Load || x.kind == event.Atomic && x.order >= event.Acquire && x.order != event.Release
}

// section is a critical section as it looks: a compare-and-swap whose result was read, a fence, and in the end a strong write
// to the same location.
type section struct {
	warp     uint32 // within the block
	lane     int
	key      locKey
	from, to uint32 // epochs
}

// lockState is how far a thread has come in entering a critical section.
type lockState struct {
	key   locKey
	held  bool
	from  uint32
	taken handover // what it observed when it took the lock
}

// noteLock follows a strong write to a location by a lane of warp wi.
func (b *block) noteLock(wi uint32, lane int, key locKey, c *class) {
	w := &b.warps[wi]
	if w.locks == nil {
		if !c.takes {
			return
		}
		w.lock()
	}
	w.locks.settle()
	s := &w.locks.of[lane]
	now := w.view(lane).clock
	if s.held && s.key == key {
		g := b.logged()
		g.sections = append(g.sections, section{wi, lane, key, s.from, now})
		if n := len(g.sections); n > 2*maxSections {
			g.sections = append(g.sections[:0], g.sections[n-maxSections:]...)
		}
		*s = lockState{}
		w.locks.held &^= 1 << lane
		return
	}
	if c.takes && !s.held {
		*s = lockState{key: key, held: c.acquires, from: now}
		if o := &w.handovers.last; o.key == key && o.lane == lane {
			s.taken = *o
		}
		if c.acquires {
			w.locks.held |= 1 << lane
		}
	}
}

// noteLocks is noteLock for relaxed read-modify-writes of words by lanes.
func (d *Detector) noteLocks(b *event.Batch, e *event.Event, w *warp, lanes uint32) {
	a := &d.act
	switch {
	case lanes == 0 || !a.class.takes && (w.locks == nil || w.locks.held&lanes == 0):
		return
	case w.locks == nil:
		w.lock()
	}
	k := w.locks
	if k.held&lanes != 0 || w.each != nil {
		for ; lanes != 0; lanes &= lanes - 1 {
			lane := bits.TrailingZeros32(lanes)
			a.blk.noteLock(a.wi, lane, locKey{a.shared, cellBytes, b.AddrOf(e, lane)}, a.class)
		}
		return
	}
	if k.late&^lanes != 0 {
		k.settle()
	}
	k.late, k.from, k.shared = lanes, w.same.clock, a.shared
	if e.Flags&event.FlagScattered != 0 && lanes == e.Mask {
		copy(k.addrs[:], b.Addrs[e.Side:][:bits.OnesCount32(lanes)])
		return
	}
	for i := 0; lanes != 0; i, lanes = i+1, lanes&(lanes-1) {
		k.addrs[i] = b.AddrOf(e, bits.TrailingZeros32(lanes))
	}
}

// lockStates is how far the lanes of a warp have come.
type lockStates struct {
	of   [32]lockState
	held uint32 // lanes
	// The last read-modify-writes of lanes late, at epoch from, are not in of yet: of the words at addrs, one for each lane.
	late, from uint32
	shared     bool
	addrs      [32]uint64
}

// lock gives a warp lockStates.
func (w *warp) lock() {
	if w.locks, w.room.locks = w.room.locks, nil; w.locks == nil {
		w.locks = new(lockStates)
	}
}

// settle makes of say all.
func (k *lockStates) settle() {
	for i := 0; k.late != 0; i, k.late = i+1, k.late&(k.late-1) {
		k.of[bits.TrailingZeros32(k.late)] = lockState{key: locKey{k.shared, cellBytes, k.addrs[i]}, from: k.from}
	}
}

const maxSections = 64

// noteFence follows a fence by lanes of a warp, after it.
func (w *warp) noteFence(lanes uint32) {
	if w.locks == nil {
		return
	}
	w.locks.settle()
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if s := &w.locks.of[lane]; s.key.size != 0 && !s.held {
			s.held, s.from = true, w.view(lane).clock
			w.locks.held |= m & -m
		}
	}
}

// locksOf gives the locks that the two threads of a hit held at their accesses; zero for none.
func (d *Detector) locksOf(h hit, lane int) (early, late locKey) {
	a := &d.act
	block := h.warp / a.blk.wpb
	if l := a.blk.logOf(block); l != nil {
		for i := max(len(l.sections)-maxSections, 0); i < len(l.sections); i++ {
			x := &l.sections[i]
			if x.warp == h.warp%a.blk.wpb && x.lane == h.lane && x.from <= h.clock && h.clock <= x.to {
				early = x.key
			}
		}
	}
	if b := a.blk.running()[block]; b != nil && early.size == 0 {
		early = b.warps[h.warp%a.blk.wpb].holds(h.lane, h.clock)
	}
	return early, a.blk.warps[a.wi].holds(lane, ^uint32(0))
}

// byLeader says that a thread of each of the two blocks of a hit takes a lock for all its threads: the same lock, which that of
// the earlier block holds over a barrier, and the two threads of the hit do not both hold.
func (d *Detector) byLeader(h hit) bool {
	a := &d.act
	block := h.warp / a.blk.wpb
	for _, early := range a.blk.locks(block) {
		if !a.blk.overBarrier(block, early) || d.concerns(h, early.key) {
			continue
		}
		for _, late := range a.blk.locks(a.blk.index) {
			if late.key == early.key && !(early.is(h.warp%a.blk.wpb, h.lane) && late.is(a.wi, a.lane)) {
				return true
			}
		}
	}
	return false
}

// is says that the section is of a thread of the block.
func (x *section) is(warp uint32, lane int) bool { return x.warp == warp && x.lane == lane }

// locks gives the last critical sections of a block; those that have not ended yet end with the last epoch.
func (l *launch) locks(block uint32) (all []section) {
	if g := l.logOf(block); g != nil {
		all = slices.Clone(g.sections[max(len(g.sections)-maxSections, 0):])
	}
	if b := l.running()[block]; b != nil {
		for wi := range b.warps {
			if k := b.warps[wi].locks; k != nil {
				for m := k.held; m != 0; m &= m - 1 {
					lane := bits.TrailingZeros32(m)
					all = append(all, section{uint32(wi), lane, k.of[lane].key, k.of[lane].from, ^uint32(0)})
				}
			}
		}
	}
	return all
}

// overBarrier says that a thread waited at a barrier of its block within a critical section.
func (l *launch) overBarrier(block uint32, x section) (yes bool) {
	l.logOf(block).all(x.warp, x.lane, func(s *logged) bool {
		yes = yes || s.kind == event.Arrive && s.waits && s.clock > x.from && s.clock <= x.to
		return !yes
	})
	return yes
}

// alone says that one of the two threads of a hit is in a critical section of a lock that the other never took, and whether the
// other is in one of another lock.
func (d *Detector) alone(h hit, lane int) (yes, twoLocks bool) {
	early, late := d.locksOf(h, lane)
	if early == late || d.concerns(h, early) || d.concerns(h, late) {
		return false, false
	}
	yes = early.size != 0 && !d.wrote(early, d.act.warp, lane) || late.size != 0 && !d.wrote(late, h.warp, h.lane)
	return yes, yes && early.size != 0 && late.size != 0
}

// holds gives the lock that a lane has held since epoch c or before.
func (w *warp) holds(lane int, c uint32) locKey {
	if w.locks == nil || !w.locks.of[lane].held || w.locks.of[lane].from > c {
		return locKey{}
	}
	return w.locks.of[lane].key
}

// wrote says that a thread has strongly written a location.
func (d *Detector) wrote(key locKey, warp uint32, lane int) (yes bool) {
	d.strongWrites(key, func(w strongWrite) { yes = yes || w.warp == warp && w.lanes>>uint(lane)&1 != 0 })
	return yes
}
