package hb

// A trail is a few accesses of one class to the same bytes, of several warps: in place of a set where each access is ordered
// after those before it, as under a lock, and of atomics as long as they are few.
//
// Of accesses in order only few are kept. What may race with one of them races with every later one, unless by the later
// one's own thread, which knows them all; but perhaps less gravely: as a thread of the same block or warp. So beside the
// last one it takes the latest of another block, and the latest of another warp.
//
// Atomics of a lock's word are not in order: who releases with one publishes what was before its fence, and so not the atomic. All
// of them stay, for who knows of a later one need not know of an earlier, and races with that.
type member struct {
	warp uint32
	group
}

// maxTrail is the log of how many accesses a trail has at most.
const maxTrail = 5

// trailBit in lanes of an entry with headMany tells a trail from a set. Beside it stands the number of a chunk of a slab, and the log
// of its length<<trailLog.
const (
	trailBit uint32 = 1 << 31
	trailLog        = 28
)

// trail gives the members of a trail, and free places behind them.
func (s *shadow) trail(e *entry) []member {
	log := uint(e.lanes &^ trailBit >> trailLog)
	return s.trails[log].at(e.lanes&(1<<trailLog-1), log)
}

// members gives the members of a trail.
func (s *shadow) members(e *entry) []member {
	t := s.trail(e)
	n := len(t)
	for n > 0 && t[n-1].lanes == 0 {
		n--
	}
	return t[:n]
}

// addFew records an access as add does, of several warps, in a trail. It says false when it must go into a set.
func (s *shadow) addFew(e *entry, k *class, warp uint32, g group, ordered bool) bool {
	wpb := k.launch.wpb
	switch {
	case e.head&headMany == 0:
		if !ordered && !k.strong || e.warp == warp && e.lanes&g.lanes != 0 {
			return false
		}
		s.begin(e, member{e.warp, group{e.lanes, e.clock, e.exec}}, member{warp, g})
		return true
	case e.lanes&trailBit != 0:
		if ordered && e.exec&lastOrders != 0 && s.follow(e, warp, g, wpb) || (ordered || k.strong) && s.join(e, warp, g) {
			return true
		}
		s.spread(e, k)
		return false
	case ordered && e.exec&lastOrders != 0 && e.warp/wpb != warp/wpb:
		// All but the last of a set come before the last, which is of another block.
		s.sets.drop(e.lanes)
		s.begin(e, member{e.warp, group{1 << (e.exec & 31), e.clock, 0}}, member{warp, g})
		return true
	}
	return false
}

// begin gives an entry a trail of two.
func (s *shadow) begin(e *entry, a, b member) {
	e.lanes = trailBit | 1<<trailLog | s.trails[1].add(1)
	e.head |= headMany
	t := s.trail(e)
	t[0], t[1] = a, b
}

// append adds a member to a trail. It says false when that is full.
func (s *shadow) append(e *entry, n int, m member) bool {
	t := s.trail(e)
	if n == len(t) {
		log := uint(e.lanes&^trailBit>>trailLog) + 1
		if log > maxTrail {
			return false
		}
		was := *e
		e.lanes = trailBit | uint32(log)<<trailLog | s.trails[log].add(log)
		longer := s.trail(e)
		copy(longer, t)
		s.dropMany(&was)
		t = longer
	}
	t[n] = m
	return true
}

// follow adds to a trail an access that comes after the last one, and that after all others.
func (s *shadow) follow(e *entry, warp uint32, g group, wpb uint32) bool {
	t := s.members(e)
	last := t[len(t)-1]
	n := 0
	switch {
	case last.warp == warp:
		return false
	case last.warp/wpb == warp/wpb:
		for _, o := range t {
			if o.warp/wpb != warp/wpb {
				t[n] = o
				n++
			}
		}
	}
	t[n] = last
	clear(t[n+1:])
	return s.append(e, n+1, member{warp, g})
}

// join adds any access to a trail, as the last. It says false, having done nothing, where the groups of a warp overlap.
func (s *shadow) join(e *entry, warp uint32, g group) bool {
	t := s.members(e)
	with := -1 // the member to be changed
	for i := range t {
		o := &t[i]
		if o.warp != warp {
			continue
		}
		if o.lanes&g.lanes != 0 || o.clock == g.clock && o.exec == g.exec {
			if with >= 0 {
				return false
			}
			with = i
		}
	}
	if with < 0 {
		return s.append(e, len(t), member{warp, g})
	}
	o := t[with]
	if !o.merge(g) {
		return false
	}
	copy(t[with:], t[with+1:])
	t[len(t)-1] = o
	return true
}

// spread makes a set of a trail.
func (s *shadow) spread(e *entry, k *class) {
	serial := s.sets.serial()
	var root *set
	for _, o := range s.members(e) {
		root = root.add(k.launch.sdepth, o.warp, o.group, serial)
	}
	s.dropMany(e)
	e.lanes = s.sets.hold(root, k.launch.sdepth, serial)
}

// walk calls f for the groups of an entry until it says false. For skip see set.walk.
func (s *shadow) walk(e *entry, skip func(warp, n uint64, top uint32) bool, f func(warp uint32, g group) bool) {
	switch {
	case e.head&headMany == 0:
		f(e.warp, group{e.lanes, e.clock, e.exec})
	case e.lanes&trailBit == 0:
		x := &s.sets.slots[e.lanes]
		x.root.walk(x.depth, 0, skip, f)
	default:
		for _, o := range s.members(e) {
			if !f(o.warp, o.group) {
				return
			}
		}
	}
}

// dropMany ends what an entry of several warps holds.
func (s *shadow) dropMany(e *entry) {
	if e.lanes&trailBit != 0 {
		slab := &s.trails[e.lanes&^trailBit>>trailLog]
		slab.free = append(slab.free, e.lanes&(1<<trailLog-1))
	} else {
		s.sets.drop(e.lanes)
	}
}
