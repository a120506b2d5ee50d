package cache

// This file implements the model with lists: the ways of a set are in the order of their last use, and each look-up is
// a search. System must behave the same.

// entry is a line (upper half) and the information of its owner about it (lower half). 0 is an empty way: the lower
// half of a valid entry is not 0.
type entry uint64

func (e entry) line() Line { return Line(e >> 32) }

// lists is a set-associative cache with least-recently-used replacement. The ways of a set are in the order of their last use.
type lists struct {
	ways    int
	mask    Line
	entries []entry
}

// newLists returns an empty cache. The number of sets, bytes/LineBytes/ways, must be a power of two.
func newLists(bytes, ways int) *lists {
	sets := bytes / LineBytes / ways
	if sets < 1 || sets&(sets-1) != 0 {
		panic("BUG: the number of sets of a cache is no power of two")
	}
	return &lists{ways: ways, mask: Line(sets - 1), entries: make([]entry, sets*ways)}
}

func (a *lists) set(l Line) []entry {
	at := int((l+l>>SpaceShift*spaceSets)&a.mask) * a.ways
	return a.entries[at : at+a.ways : at+a.ways]
}

// use makes a line the most recently used one and returns its entry, or nil if the line is absent.
func (a *lists) use(l Line) *entry {
	set := a.set(l)
	if set[0].line() == l && set[0] != 0 {
		return &set[0]
	}
	for i := 1; i < len(set); i++ {
		if e := set[i]; e.line() == l && e != 0 {
			copy(set[1:i+1], set[:i])
			set[0] = e
			return &set[0]
		}
	}
	return nil
}

// peek returns the entry of a line, or nil if the line is absent.
func (a *lists) peek(l Line) *entry {
	set := a.set(l)
	for i := range set {
		if set[i].line() == l && set[i] != 0 {
			return &set[i]
		}
	}
	return nil
}

// insert adds an absent line. It returns the entry that must leave, or 0 if there is room.
func (a *lists) insert(l Line, info uint32) (left entry) {
	set := a.set(l)
	last := 0
	for last < len(set)-1 && set[last] != 0 {
		last++
	}
	left = set[last]
	copy(set[1:last+1], set[:last])
	set[0] = entry(l)<<32 | entry(info)
	return left
}

// remove removes a line and returns its entry, or 0 if it was absent.
func (a *lists) remove(l Line) entry {
	set := a.set(l)
	for i, e := range set {
		if e.line() == l && e != 0 {
			copy(set[i:], set[i+1:])
			set[len(set)-1] = 0
			return e
		}
	}
	return 0
}

// Info of a line in L3: the cores that have it.
const (
	present = 1 << 31
	owned   = 1 << 30 // by the only sharer, exclusive or modified
	sharers = 1<<maxCores - 1
)

// model is the caches of a processor.
type model struct {
	// Left, if not nil, is called for each line that has left L1 of a core for lack of room (last is false), or all
	// caches (last is true). It is called when the access that caused this is complete. It may call Discard.
	Left   func(core int, l Line, last bool)
	config Config
	l1, l2 []*lists
	l3     *lists
	left   []departure
	counts [Levels]uint64
}

// newModel returns a processor with empty caches.
func newModel(c Config) *model {
	s := &model{config: c, l3: newLists(c.L3.Bytes, c.L3.Ways)}
	for range c.Cores {
		s.l1 = append(s.l1, newLists(c.L1.Bytes, c.L1.Ways))
		s.l2 = append(s.l2, newLists(c.L2.Bytes, c.L2.Ways))
	}
	return s
}

// Counts returns the number of accesses that each level answered.
func (s *model) Counts() [Levels]uint64 { return s.counts }

// Access reads or writes a line and returns the latency in cycles.
func (s *model) Access(core int, l Line, write bool) int {
	if e := s.l1[core].use(l); e != nil && (!write || *e&modified == modified) {
		s.counts[L1]++
		return s.config.Cycles[L1]
	}
	level := s.miss(core, l, write)
	s.counts[level]++
	for i := 0; i < len(s.left); i++ { // Left may append to s.left
		if d := s.left[i]; s.Left != nil {
			s.Left(d.core, d.line, d.last)
		}
	}
	s.left = s.left[:0]
	return s.config.Cycles[level]
}

// miss handles an access that L1 cannot answer alone.
func (s *model) miss(core int, l Line, write bool) Level {
	level := L1
	first := s.l1[core].peek(l)
	second := s.l2[core].use(l)
	if second == nil {
		return s.fetch(core, l, write)
	}
	if first == nil {
		level = L2
	} else if *first&3 > *second&3 {
		*second = *first
	}
	if write {
		if *second&3 == shared {
			level = Upgrade
			dir := s.l3.use(l)
			s.invalidate(*dir, l, core)
			*dir = entry(l)<<32 | present | owned | 1<<core
		}
		*second |= modified
	}
	if first != nil {
		*first = *second
	} else {
		s.fillFirst(core, l, uint32(*second&3))
	}
	return level
}

// fetch brings a line into the private caches of a core.
func (s *model) fetch(core int, l Line, write bool) Level {
	state, level := uint32(exclusive), L3
	if write {
		state = modified
	}
	dir := s.l3.use(l)
	switch {
	case dir == nil:
		level = Memory
		s.leave(s.l3.insert(l, present|owned|1<<core))
	case *dir&sharers == 0:
		*dir |= owned | 1<<core
	case write:
		level = Remote
		s.invalidate(*dir, l, core)
		*dir = entry(l)<<32 | present | owned | 1<<core
	default:
		level, state = Remote, shared
		if *dir&owned != 0 {
			s.share(*dir, l)
		}
		*dir = *dir&^owned | 1<<core
	}
	if out := s.l2[core].insert(l, state); out != 0 {
		if s.l1[core].remove(out.line()) != 0 {
			s.left = append(s.left, departure{core, out.line(), false})
		}
		if dir := s.l3.peek(out.line()); dir != nil {
			*dir &^= owned | 1<<core
		}
	}
	s.fillFirst(core, l, state)
	return level
}

func (s *model) fillFirst(core int, l Line, state uint32) {
	out := s.l1[core].insert(l, state)
	if out == 0 {
		return
	}
	if e := s.l2[core].peek(out.line()); e != nil {
		*e |= out & modified
	}
	s.left = append(s.left, departure{core, out.line(), false})
}

// share changes the copy of the only owner to shared.
func (s *model) share(dir entry, l Line) {
	for core := range s.l1 {
		if dir>>core&1 == 0 {
			continue
		}
		if e := s.l1[core].peek(l); e != nil {
			*e = *e&^3 | shared
		}
		if e := s.l2[core].peek(l); e != nil {
			*e = *e&^3 | shared
		}
	}
}

// invalidate removes a line from all private caches except those of core but. If but is -1 it removes the line from
// all.
func (s *model) invalidate(dir entry, l Line, but int) {
	for core := range s.l1 {
		if core != but && dir>>core&1 != 0 {
			s.l1[core].remove(l)
			s.l2[core].remove(l)
		}
	}
}

// leave removes a line from all caches because L3 has no room for it.
func (s *model) leave(dir entry) {
	if dir == 0 {
		return
	}
	s.invalidate(dir, dir.line(), -1)
	s.left = append(s.left, departure{-1, dir.line(), true})
}

// Discard removes a line from a core's caches, and from all caches if no other core has it. It reports whether no copy
// remains.
func (s *model) Discard(core int, l Line) bool {
	s.l1[core].remove(l)
	s.l2[core].remove(l)
	dir := s.l3.peek(l)
	if dir == nil {
		return true
	}
	*dir &^= owned | 1<<core
	if *dir&sharers != 0 {
		return false
	}
	s.l3.remove(l)
	return true
}
