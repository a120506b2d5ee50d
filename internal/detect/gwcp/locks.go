package gwcp

import (
	"maps"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/event"
)

// lockState is the state of a lock variable. It has one lock for device scope and one for the block scope of each
// block.
type lockState struct {
	id     lock.ID
	device instance
	blocks map[uint32]*instance
	// touched is L^r and L^w of 000: what ended critical sections accessed.
	touched map[granule][]touched
	holder  *section
	taker   taker
	// known says that it has been released as a lock, broken that it is not a lock (see sane and forgo).
	known, broken bool
}

// instance is a lock of one scope: the clocks P and H of 000 at its releases, and its queue, of which all threads share
// one copy.
type instance struct {
	p, h  *clock.Grid
	queue []entry
}

// entry is a critical section in a queue: its acquire, an epoch, and what its release knew.
type entry struct {
	visit
	h      *clock.Grid
	merged bool // merged from two sections
}

// visit describes a critical section.
type visit struct {
	by       thread
	epoch    uint32 // at the acquire
	number   uint32 // number within the launch, in the order of acquires
	from, to uint32 // places of acquire and release; to is 0 until the release
	device   bool   // the acquire has device scope
	wide     bool   // the release has device scope
	block    uint32
}

// maxQueue bounds a queue. Beyond it neighbouring entries are merged, which orders more than they did.
const maxQueue = 256

// maxSection bounds the granules that a critical section accesses. A lock with a larger section is treated as no lock:
// most such sections take something by a compare-and-swap and never give it back.
const maxSection = 1024

// granule identifies four bytes of global memory (block 0), or of the shared memory of block-1.
type granule struct {
	word  uint64
	block uint32
}

// thread identifies a thread.
type thread struct{ warp, lane uint32 }

// touched is an access to a granule in an ended critical section.
type touched struct {
	by      thread
	epoch   uint32 // at the release
	cover   thread // if covered: the thread of a later access that represents this one, except for that thread itself
	covered bool
	device  bool   // the release has device scope
	block   uint32 // of the section
	bytes   uint8
	write   bool
	h       *clock.Grid // at the release
}

// section is a critical section that has not ended.
type section struct {
	visit
	lock     *lockState
	told     []*detect.Section // sections in findings, to be completed with the place of the release
	joint    bool              // its owner has met others at a barrier, who may work under its lock
	accesses []access
	index    map[granule]int
}

// access is what a section accessed of a granule: R and W of 000.
type access struct {
	at          granule
	read, write uint8 // a bit for each byte
}

// locks makes lanes acquire and release locks.
func (d *Detector) locks(blk *block, wi, place uint32, steps []lock.Step) {
	w := &blk.warps[wi]
	for _, s := range steps {
		w.each(s.Lanes, func(g *group, lane int) {
			by := thread{blk.first + wi, uint32(lane)}
			if s.Kind == lock.Acquire {
				d.take(g, blk, by, place, s)
				return
			}
			i := slices.IndexFunc(g.sections, func(x *section) bool { return x.lock.id == s.Lock })
			if i < 0 {
				return // never acquired, or not a lock
			}
			x := g.sections[i]
			x.lock.holder, x.lock.taker = nil, taker{}
			if s.Kind == lock.Release {
				x.to, x.wide = place, s.Device
				for _, t := range x.told {
					t.To = place
				}
				d.release(g, blk, wi, x, s.Device)
			}
			g.sections = without(g.sections, x)
			d.recycle(x)
		})
	}
}

// sane finds variables that turn out not to be locks: a second thread is about to acquire one while the first holds it,
// or a release leaves it in a state other than free, which is 0. A thread that waits for such a state comes after the
// release in every order.
func (d *Detector) sane(e *event.Event, steps []lock.Step) {
	for _, s := range steps {
		switch s.Kind {
		case lock.Drop:
			continue
		case lock.Release:
			if st := d.lockStates[s.Lock]; st != nil && !st.broken && d.leaves(e, s.Lanes) {
				d.forgo(st)
			}
			continue
		}
		st := d.state(s.Lock)
		if x := st.holder; st.broken || s.Lanes&(s.Lanes-1) == 0 && (x == nil || x.by.warp == e.Warp && 1<<x.by.lane == s.Lanes) {
			continue
		}
		d.forgo(st)
	}
}

// leaves reports whether one of lanes writes a value that is known not to be 0.
func (d *Detector) leaves(e *event.Event, lanes uint32) bool {
	for m := lanes; m != 0; m &= m - 1 {
		for _, v := range d.batch.ValueOf(e, bits.TrailingZeros32(m)) {
			if v != 0 {
				return true
			}
		}
	}
	return false
}

// forgo turns a variable that is not a lock into an ordinary synchronisation variable. What was released by it as a
// lock becomes published.
func (d *Detector) forgo(st *lockState) {
	st.broken, st.holder, st.touched = true, nil, nil
	at := d.locations[st.key()]
	if at == nil {
		return
	}
	at.lock = nil
	if at.narrow == nil {
		at.narrow = map[uint32]clocks{}
	}
	for b, x := range st.blocks {
		at.narrow[b] = d.both(at.narrow[b], clocks{x.h, x.h})
	}
	from := st.taker.warp / d.run.wpb
	p := d.passed(st, &block{index: from})
	at.wide = d.both(at.wide, p.wide)
	at.narrow[from] = d.both(at.narrow[from], p.narrow)
}

func (d *Detector) state(id lock.ID) *lockState {
	st := d.lockStates[id]
	if st == nil {
		st = &lockState{id: id}
		d.lockStates[id] = st
	}
	return st
}

func (st *lockState) key() locKey {
	k := locKey{addr: st.id.Addr}
	if st.id.Shared {
		k.block = st.id.Block + 1
	}
	return k
}

// take is algorithm 1, ACQUIRE.
func (d *Detector) take(g *group, blk *block, by thread, place uint32, s lock.Step) {
	st := d.state(s.Lock)
	if st.broken {
		return
	}
	st.overlapping(s.Device, blk.index, func(x *instance) {
		d.learn(&g.h, blk, x.h)
		d.learn(&g.p, blk, x.p)
	})
	d.taken++
	x := &section{visit: visit{by: by, epoch: g.epoch, number: d.taken, from: place, device: s.Device, block: blk.index}, lock: st, index: d.index()}
	st.holder = x
	g.sections = append(slices.Clip(g.sections), x)
}

// together handles the critical sections of a thread that is about to meet others at a barrier: they become sections of
// all of them. By hard edges they come after the earlier sections of the lock, and the later sections come after them.
func (d *Detector) together(g *group, blk *block) {
	for _, x := range g.sections {
		if x.lock.broken {
			continue
		}
		x.joint = true
		x.lock.overlapping(x.device, blk.index, func(o *instance) { d.learn(&g.p, blk, o.h) })
	}
}

// overlapping calls f for the instances whose scope overlaps with that of a lock operation by a thread of a block.
func (st *lockState) overlapping(device bool, block uint32, f func(*instance)) {
	f(&st.device)
	if !device {
		if x := st.blocks[block]; x != nil {
			f(x)
		}
		return
	}
	for _, b := range slices.Sorted(maps.Keys(st.blocks)) {
		f(st.blocks[b])
	}
}

// release is algorithm 1, RELEASE.
func (d *Detector) release(g *group, blk *block, wi uint32, x *section, device bool) {
	st := x.lock
	if !st.known && !st.broken {
		st.known = true
		at := d.locations[st.key()]
		if at == nil {
			at = &location{}
			d.locations[st.key()] = at
		}
		at.lock = st
	}
	if !st.broken {
		st.overlapping(device, blk.index, func(o *instance) { d.dequeue(g, blk, x.by, o) })
		d.leave(g, blk, wi, x, device)
	}
	blk.number++
	g.epoch = blk.number
}

// dequeue is rule (ii) of definition 1: if the acquire of another thread's critical section is ordered before this
// release, so is its release. Only the latest such section needs to be joined: sections in a queue happen before each
// other, so it knows what the earlier ones knew.
func (d *Detector) dequeue(g *group, blk *block, by thread, x *instance) {
	for i := len(x.queue) - 1; i >= 0; i-- {
		if e := &x.queue[i]; e.by != by && d.run.unknown(&g.p, blk, e.by.warp, 1<<e.by.lane, e.epoch) == 0 {
			d.learn(&g.p, blk, e.h)
			return
		}
	}
}

// leave publishes a section that ends.
func (d *Detector) leave(g *group, blk *block, wi uint32, x *section, device bool) {
	st := x.lock
	h := d.run.tree(&g.h, blk, wi, 1<<x.by.lane, g.epoch)
	in := &st.device
	if !device {
		if st.blocks == nil {
			st.blocks = map[uint32]*instance{}
		}
		if in = st.blocks[blk.index]; in == nil {
			in = &instance{}
			st.blocks[blk.index] = in
		}
	}
	in.h = d.join.Join(in.h, h)
	if x.joint {
		in.p = d.join.Join(in.p, h)
	} else {
		in.p = d.join.Join(in.p, d.run.tree(&g.p, blk, 0, 0, 0))
	}
	in.enqueue(entry{visit: x.visit, h: h})
	if st.touched == nil {
		st.touched = map[granule][]touched{}
	}
	for _, a := range x.accesses {
		t := touched{by: x.by, epoch: g.epoch, device: device, block: blk.index, h: h}
		list := st.touched[a.at]
		if a.write != 0 {
			t.bytes, t.write = a.write, true
			list = d.touch(list, t)
		}
		if r := a.read &^ a.write; r != 0 {
			t.bytes, t.write = r, false
			list = d.touch(list, t)
		}
		st.touched[a.at] = list
	}
}

// enqueue adds a critical section. If the queue is full, it merges pairs of the oldest ones.
func (x *instance) enqueue(e entry) {
	if len(x.queue) == maxQueue {
		const half, quarter = maxQueue / 2, maxQueue / 4
		for i := 0; i < quarter; i++ {
			x.queue[i] = x.queue[2*i]
			x.queue[i].h, x.queue[i].merged = x.queue[2*i+1].h, true
		}
		n := quarter + copy(x.queue[quarter:], x.queue[half:])
		clear(x.queue[n:])
		x.queue = x.queue[:n]
	}
	x.queue = append(x.queue, e)
}

// touch adds t to the accesses of a granule, and drops those that it represents. An access represents others for all
// threads except its own, so an access is dropped only when two accesses of different threads represent it.
func (d *Detector) touch(list []touched, t touched) []touched {
	keep := list[:0]
	for _, o := range list {
		stands := o.bytes&^t.bytes == 0 && (t.write || !o.write) && (t.device || !o.device && o.block == t.block) &&
			d.knows(t.h, o.by, o.epoch)
		switch {
		case !stands:
		case o.by == t.by, o.covered && o.cover != t.by:
			continue
		default:
			o.covered, o.cover = true, t.by
		}
		keep = append(keep, o)
	}
	return append(keep, t)
}

// knows reports whether a clock knows a thread's epoch.
func (d *Detector) knows(g *clock.Grid, t thread, epoch uint32) bool {
	l := d.run
	i := t.warp / l.wpb
	return g.Unknown(l.depth, i, t.warp-i*l.wpb, 1<<t.lane, epoch) == 0
}

// inside is algorithm 2, for accesses by threads in critical sections, and keeps R and W. Each such thread has been a
// group of its own since its acquire.
func (d *Detector) inside(blk *block, wi uint32, w *warp, e *event.Event) {
	write := e.Kind == event.Store || e.Kind == event.Atomic && e.Flags&event.FlagWrite != 0
	for i := range w.groups {
		if g := &w.groups[i]; len(g.sections) > 0 && g.lanes&e.Mask != 0 {
			d.touches(g, blk, thread{blk.first + wi, uint32(bits.TrailingZeros32(g.lanes))}, e, write)
		}
	}
}

// touches is inside for one thread.
func (d *Detector) touches(g *group, blk *block, by thread, e *event.Event, write bool) {
	addr := d.batch.AddrOf(e, int(by.lane))
	at := granule{}
	id := lock.ID{Addr: addr}
	if e.Space == event.Shared {
		at.block, id.Shared, id.Block = blk.index+1, true, blk.index
	}
	if d.lockStates[id] != nil {
		return // accesses to a lock variable do not count
	}
	for end := addr + uint64(e.Size); addr < end; {
		at.word = addr >> 2
		next := min(end, (at.word+1)<<2)
		bytes := uint8((1<<(next-addr) - 1) << (addr & 3))
		for _, s := range g.sections {
			if s.lock.broken {
				continue
			}
			for i := range s.lock.touched[at] {
				t := &s.lock.touched[at][i]
				if t.by != by && t.bytes&bytes != 0 && (write || t.write) && (t.device || s.device || t.block == s.block) {
					d.learn(&g.p, blk, t.h)
				}
			}
			if s.add(at, bytes, write); len(s.accesses) > maxSection {
				d.forgo(s.lock)
			}
		}
		addr = next
	}
}

// add records an access to bytes of a granule.
func (s *section) add(at granule, bytes uint8, write bool) {
	i := s.find(at)
	if i < 0 {
		i = len(s.accesses)
		s.accesses = append(s.accesses, access{at: at})
		switch {
		case i > short:
			s.index[at] = i
		case i == short:
			for j := range s.accesses {
				s.index[s.accesses[j].at] = j
			}
		}
	}
	if write {
		s.accesses[i].write |= bytes
	} else {
		s.accesses[i].read |= bytes
	}
}

// short is the number of granules up to which a section has no index.
const short = 8

// find returns the number of the access to a granule, or -1.
func (s *section) find(at granule) int {
	if len(s.accesses) > short {
		if i, ok := s.index[at]; ok {
			return i
		}
		return -1
	}
	for i := range s.accesses {
		if s.accesses[i].at == at {
			return i
		}
	}
	return -1
}

// index returns an empty index for a section.
func (d *Detector) index() map[granule]int {
	if n := len(d.indexes); n > 0 {
		x := d.indexes[n-1]
		d.indexes = d.indexes[:n-1]
		return x
	}
	return map[granule]int{}
}

// recycle keeps the memory of an ended section for reuse.
func (d *Detector) recycle(x *section) {
	clear(x.index)
	d.indexes = append(d.indexes, x.index)
	x.index, x.accesses = nil, nil
}
