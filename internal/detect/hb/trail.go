package hb

// trail is a few accesses of one class to the same bytes, of several warps: in place of a set where each access is ordered
// after those before it, as under a lock, and of atomics as long as they are few.
//
// Of accesses in order only few are kept. What may race with one of them races with every later one, unless by the later
// one's own thread, which knows them all; but perhaps less gravely: as a thread of the same block or warp. So beside the
// last one it takes the latest of another block, and the latest of another warp.
type trail struct {
	n  int
	of [maxTrail]member
}

const maxTrail = 6

type member struct {
	warp uint32
	group
}

// trailBit in lanes of an entry with headMany tells a trail from a set.
const trailBit uint32 = 1 << 31

func (s *shadow) trail(e *entry) *trail { return s.trails.at(e.lanes &^ trailBit) }

// addFew records an access as add does, of several warps, in a trail. It says false when it must go into a set.
func (s *shadow) addFew(l *line, e *entry, k *class, warp uint32, g group, ordered bool) bool {
	wpb := k.launch.wpb
	switch {
	case e.head&headMany == 0:
		if !ordered && !k.strong || e.warp == warp {
			return false
		}
		old := member{e.warp, group{e.lanes, e.clock, e.exec}}
		l.heavy = true
		s.begin(e, old, member{warp, g})
		return true
	case e.lanes&trailBit != 0:
		t := s.trail(e)
		if ordered && e.exec&lastOrders != 0 && t.follow(warp, g, wpb) || (ordered || k.strong) && t.add(warp, g) {
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
	id := s.trails.add()
	*s.trails.at(id) = trail{n: 2, of: [maxTrail]member{a, b}}
	e.head |= headMany
	e.lanes = id | trailBit
}

// follow adds an access that comes after the last one, and that after all others.
func (t *trail) follow(warp uint32, g group, wpb uint32) bool {
	last := t.of[t.n-1]
	switch {
	case last.warp == warp:
		return false
	case last.warp/wpb != warp/wpb:
		t.of[0] = last
		t.n = 1
	default:
		n := 0
		for _, o := range t.of[:t.n] {
			if o.warp/wpb != warp/wpb {
				t.of[n] = o
				n++
			}
		}
		t.of[n] = last
		t.n = n + 1
	}
	if t.n == maxTrail {
		return false
	}
	t.of[t.n] = member{warp, g}
	t.n++
	return true
}

// add adds any access, as the last.
func (t *trail) add(warp uint32, g group) bool {
	for i := range t.of[:t.n] {
		o := t.of[i]
		if o.warp != warp {
			continue
		}
		if !o.merge(g) {
			return false
		}
		copy(t.of[i:], t.of[i+1:t.n])
		t.of[t.n-1] = o
		return true
	}
	if t.n == maxTrail {
		return false
	}
	t.of[t.n] = member{warp, g}
	t.n++
	return true
}

// spread makes a set of a trail.
func (s *shadow) spread(e *entry, k *class) {
	t := s.trail(e)
	serial := s.sets.serial()
	var root *set
	for _, o := range t.of[:t.n] {
		root = root.add(k.launch.sdepth, o.warp, o.group, serial)
	}
	s.trails.drop(e.lanes &^ trailBit)
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
		t := s.trail(e)
		for _, o := range t.of[:t.n] {
			if !f(o.warp, o.group) {
				return
			}
		}
	}
}

// dropMany ends what an entry of several warps holds.
func (s *shadow) dropMany(e *entry) {
	if e.lanes&trailBit != 0 {
		s.trails.drop(e.lanes &^ trailBit)
	} else {
		s.sets.drop(e.lanes)
	}
}
