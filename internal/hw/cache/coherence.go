package cache

import "fmt"

// Level is where an access was answered.
type Level uint8

// The levels. Remote is the private cache of another core, Upgrade a line that was there and had to be taken from other cores.
const (
	L1 Level = iota
	L2
	Remote
	Upgrade
	L3
	Memory
	Levels
)

var levelNames = [Levels]string{"L1", "L2", "remote L2", "upgrade", "L3", "memory"}

func (l Level) String() string { return levelNames[l] }

// Geometry is the size of a cache.
type Geometry struct{ Bytes, Ways int }

// Config describes the caches of a processor. The lower levels contain what is in the upper ones.
type Config struct {
	Cores      int
	L1, L2, L3 Geometry
	Cycles     [Levels]int // of an access, in all
}

// Thesis is the processor of seed 001, section 4.4. The thesis gives no latency for taking a line from other cores; it is assumed
// to be that of an access to another core's cache.
func Thesis() Config {
	return Config{Cores: 16, L1: Geometry{32 << 10, 8}, L2: Geometry{256 << 10, 8}, L3: Geometry{32 << 20, 16},
		Cycles: [Levels]int{L1: 1, L2: 10, Remote: 15, Upgrade: 15, L3: 35, Memory: 120}}
}

// Info of a line in a private cache: its MESI state.
const (
	shared    = 1
	exclusive = 2
	modified  = 3
)

// Info of a line in L3: who has it.
const (
	present  = 1 << 31
	owned    = 1 << 30 // by the only sharer, exclusive or modified
	sharers  = 1<<maxCores - 1
	maxCores = 30
)

// System is the caches of a processor.
type System struct {
	// Left is told, if it is not nil, of each line that has left a core's L1 for want of room (last is false), or all caches. It is
	// called when the access that caused it is complete. It may call Discard.
	Left   func(core int, l Line, last bool)
	config Config
	l1, l2 []*Array
	l3     *Array
	left   []departure
	counts [Levels]uint64
}

type departure struct {
	core int
	line Line
	last bool
}

// New makes a processor with empty caches.
func New(c Config) *System {
	if c.Cores < 1 || c.Cores > maxCores {
		panic(fmt.Sprintf("BUG: %d cores", c.Cores))
	}
	s := &System{config: c, l3: NewArray(c.L3.Bytes, c.L3.Ways)}
	for range c.Cores {
		s.l1 = append(s.l1, NewArray(c.L1.Bytes, c.L1.Ways))
		s.l2 = append(s.l2, NewArray(c.L2.Bytes, c.L2.Ways))
	}
	return s
}

// Counts is the number of accesses that each level answered.
func (s *System) Counts() [Levels]uint64 { return s.counts }

// Access reads or writes a line and gives the latency in cycles.
func (s *System) Access(core int, l Line, write bool) int {
	if e := s.l1[core].use(l); e != nil && (!write || *e&modified == modified) {
		s.counts[L1]++
		return s.config.Cycles[L1]
	}
	level := s.miss(core, l, write)
	s.counts[level]++
	for i := 0; i < len(s.left); i++ { // Left may add to it
		if d := s.left[i]; s.Left != nil {
			s.Left(d.core, d.line, d.last)
		}
	}
	s.left = s.left[:0]
	return s.config.Cycles[level]
}

// miss is an access that the L1 alone cannot answer.
func (s *System) miss(core int, l Line, write bool) Level {
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
func (s *System) fetch(core int, l Line, write bool) Level {
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

func (s *System) fillFirst(core int, l Line, state uint32) {
	out := s.l1[core].insert(l, state)
	if out == 0 {
		return
	}
	if e := s.l2[core].peek(out.line()); e != nil {
		*e |= out & modified
	}
	s.left = append(s.left, departure{core, out.line(), false})
}

// share makes the copy of the only owner a shared one.
func (s *System) share(dir entry, l Line) {
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

// invalidate takes a line from all private caches but one; core may be -1 for none.
func (s *System) invalidate(dir entry, l Line, but int) {
	for core := range s.l1 {
		if core != but && dir>>core&1 != 0 {
			s.l1[core].remove(l)
			s.l2[core].remove(l)
		}
	}
}

// leave takes a line that L3 has no room for from all caches.
func (s *System) leave(dir entry) {
	if dir == 0 {
		return
	}
	s.invalidate(dir, dir.line(), -1)
	s.left = append(s.left, departure{-1, dir.line(), true})
}

// Discard takes a line from a core's caches, and, if no other core has it, from all. It says whether no copy is left.
func (s *System) Discard(core int, l Line) bool {
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
