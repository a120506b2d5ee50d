package cache

import (
	"fmt"
	"math/bits"
)

// Level is the level that answered an access.
type Level uint8

// The levels. Remote is the private cache of another core. Upgrade means that the line was present but had to be taken
// from other cores.
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

// Config describes the caches of a processor. The caches are inclusive.
type Config struct {
	Cores      int
	L1, L2, L3 Geometry
	Cycles     [Levels]int // total latency of an access
}

// Thesis returns the processor of seed 001, section 4.4. The thesis gives no latency for taking a line from other
// cores. It is assumed to be that of an access to another core's cache.
func Thesis() Config {
	return Config{Cores: 16, L1: Geometry{32 << 10, 8}, L2: Geometry{256 << 10, 8}, L3: Geometry{32 << 20, 16},
		Cycles: [Levels]int{L1: 1, L2: 10, Remote: 15, Upgrade: 15, L3: 35, Memory: 120}}
}

// place describes a line in a core's private caches. From the lowest bit on: its MESI state (2 bits; 0 if the line is
// in neither L1 nor L2), its way in L2 (7), and its way in L1 plus one (7; 0 if it is only in L2).
type place uint16

// The states.
const (
	shared    = 1
	exclusive = 2
	modified  = 3
	states    = 3
)

const (
	secondShift = 2
	firstShift  = secondShift + 7
	inFirst     = maxWays << firstShift
)

func (p place) first() int  { return int(p>>firstShift) - 1 }
func (p place) second() int { return int(p>>secondShift) & maxWays }

// directory describes a line in L3: its way, and the cores that have the line.
type directory struct {
	sharers uint32
	way     uint16
	present bool
	owned   bool // by the only sharer, exclusive or modified
}

const maxCores = 30

// space holds the state of each line of a space, indexed by the line's number. Numbers are assigned in the order of
// first use, so a line is found without a search.
type space struct {
	places      []place // of the first line by core, of the second line by core, and so on
	directories []directory
}

// System is the caches of a processor. Each line of L1 is in L2, and each line of L2 is in L3.
type System struct {
	// Left, if not nil, is called for each line that has left L1 of a core for lack of room (last is false), or all
	// caches (last is true). It is called when the access that caused this is complete. It may call Discard.
	Left   func(core int, l Line, last bool)
	config Config
	now    uint32 // number of accesses since times were last renumbered
	l1, l2 []array
	l3     array
	spaces [1 << (32 - SpaceShift)]space
	left   []departure
	counts [Levels]uint64
}

type departure struct {
	core int
	line Line
	last bool
}

// New returns a processor with empty caches.
func New(c Config) *System {
	if c.Cores < 1 || c.Cores > maxCores {
		panic(fmt.Sprintf("BUG: %d cores", c.Cores))
	}
	s := &System{config: c, l3: newArray(c.L3)}
	for range c.Cores {
		s.l1 = append(s.l1, newArray(c.L1))
		s.l2 = append(s.l2, newArray(c.L2))
	}
	return s
}

// Counts returns the number of accesses that each level answered.
func (s *System) Counts() [Levels]uint64 { return s.counts }

// at returns the space of a line and the line's number in it.
func (s *System) at(l Line) (in *space, n int) {
	return &s.spaces[l>>SpaceShift], int(l & (1<<SpaceShift - 1))
}

// Access reads or writes a line and returns the latency in cycles.
func (s *System) Access(core int, l Line, write bool) int {
	if s.now++; s.now == 0 {
		s.renumber()
	}
	in, n := s.at(l)
	if i := n*s.config.Cores + core; i < len(in.places) {
		if p := in.places[i]; p >= 1<<firstShift && (!write || p&states == modified) {
			s.l1[core].use(l, p.first(), s.now)
			s.counts[L1]++
			return s.config.Cycles[L1]
		}
	}
	return s.miss(core, l, write)
}

// renumber renumbers the times of use.
func (s *System) renumber() {
	for core := range s.l1 {
		s.l1[core].renumber()
		s.l2[core].renumber()
	}
	s.l3.renumber()
	s.now = maxWays + 1
}

// miss handles an access that L1 cannot answer alone.
func (s *System) miss(core int, l Line, write bool) int {
	in, n := s.at(l)
	if n >= len(in.directories) {
		in.grow(n+1, s.config.Cores)
	}
	p, d := &in.places[n*s.config.Cores+core], &in.directories[n]
	var level Level
	if *p == 0 {
		level = s.fetch(core, l, p, d, write)
	} else {
		level = s.hold(core, l, p, d, write)
	}
	s.counts[level]++
	if len(s.left) > 0 {
		s.tell()
	}
	return s.config.Cycles[level]
}

// grow makes room for the first n lines.
func (in *space) grow(n, cores int) {
	n = max(n, 2*len(in.directories), 256)
	in.places = append(make([]place, 0, n*cores), in.places...)[:n*cores]
	in.directories = append(make([]directory, 0, n), in.directories...)[:n]
}

// tell calls Left for the lines that have left.
func (s *System) tell() {
	for i := 0; i < len(s.left); i++ { // Left may append to s.left
		if d := s.left[i]; s.Left != nil {
			s.Left(d.core, d.line, d.last)
		}
	}
	s.left = s.left[:0]
}

// hold handles an access to a line that is in L2, but not in L1 or not in a state that allows the access.
func (s *System) hold(core int, l Line, p *place, d *directory, write bool) Level {
	level := L1
	s.l2[core].use(l, p.second(), s.now)
	if *p < 1<<firstShift {
		level = L2
	} else {
		s.l1[core].use(l, p.first(), s.now)
	}
	if write {
		if *p&states == shared {
			level = Upgrade
			s.l3.use(l, int(d.way), s.now)
			s.invalidate(d, l, core)
			d.owned, d.sharers = true, 1<<core
		}
		*p |= modified
	}
	if *p < 1<<firstShift {
		s.fillFirst(core, l, p)
	}
	return level
}

// fetch brings a line into the private caches of a core.
func (s *System) fetch(core int, l Line, p *place, d *directory, write bool) Level {
	state, level := place(exclusive), L3
	if write {
		state = modified
	}
	if d.present {
		s.l3.use(l, int(d.way), s.now)
	}
	switch {
	case !d.present:
		level = Memory
		way, out, left := s.l3.insert(l, s.now)
		*d = directory{way: uint16(way), present: true, owned: true, sharers: 1 << core}
		if left {
			s.leave(out)
		}
	case d.sharers == 0:
		d.owned, d.sharers = true, 1<<core
	case write:
		level = Remote
		s.invalidate(d, l, core)
		d.owned, d.sharers = true, 1<<core
	default:
		level, state = Remote, shared
		if d.owned {
			s.share(d, l)
		}
		d.owned = false
		d.sharers |= 1 << core
	}
	way, out, left := s.l2[core].insert(l, s.now)
	*p = place(way)<<secondShift | state
	if left {
		in, n := s.at(out)
		old := &in.places[n*s.config.Cores+core]
		if *old >= 1<<firstShift {
			s.l1[core].use(out, old.first(), 0)
			s.left = append(s.left, departure{core, out, false})
		}
		*old = 0
		dir := &in.directories[n]
		dir.owned = false
		dir.sharers &^= 1 << core
	}
	s.fillFirst(core, l, p)
	return level
}

// fillFirst brings a line of L2 into L1.
func (s *System) fillFirst(core int, l Line, p *place) {
	way, out, left := s.l1[core].insert(l, s.now)
	*p |= place(way+1) << firstShift
	if left {
		in, n := s.at(out)
		in.places[n*s.config.Cores+core] &^= inFirst
		s.left = append(s.left, departure{core, out, false})
	}
}

// share changes the copy of the only owner to shared.
func (s *System) share(d *directory, l Line) {
	in, n := s.at(l)
	for m := d.sharers; m != 0; m &= m - 1 {
		p := &in.places[n*s.config.Cores+bits.TrailingZeros32(m)]
		*p = *p&^states | shared
	}
}

// invalidate removes a line from all private caches except those of core but. If but is -1 it removes the line from
// all.
func (s *System) invalidate(d *directory, l Line, but int) {
	in, n := s.at(l)
	for m := d.sharers; m != 0; m &= m - 1 {
		if core := bits.TrailingZeros32(m); core != but {
			s.remove(core, l, &in.places[n*s.config.Cores+core])
		}
	}
}

// remove removes a line from a core's private caches.
func (s *System) remove(core int, l Line, p *place) {
	if *p == 0 {
		return
	}
	s.l2[core].use(l, p.second(), 0)
	if *p >= 1<<firstShift {
		s.l1[core].use(l, p.first(), 0)
	}
	*p = 0
}

// leave removes a line from all caches because L3 has no room for it.
func (s *System) leave(l Line) {
	in, n := s.at(l)
	d := &in.directories[n]
	s.invalidate(d, l, -1)
	*d = directory{}
	s.left = append(s.left, departure{-1, l, true})
}

// Discard removes a line from a core's caches, and from all caches if no other core has it. It reports whether no copy
// remains.
func (s *System) Discard(core int, l Line) bool {
	in, n := s.at(l)
	if n >= len(in.directories) {
		return true
	}
	s.remove(core, l, &in.places[n*s.config.Cores+core])
	d := &in.directories[n]
	if !d.present {
		return true
	}
	d.owned = false
	d.sharers &^= 1 << core
	if d.sharers != 0 {
		return false
	}
	s.l3.use(l, int(d.way), 0)
	*d = directory{}
	return true
}
