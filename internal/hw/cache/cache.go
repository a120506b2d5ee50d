// Package cache models caches: a set-associative array, and the caches of a multicore processor that the MESI protocol keeps
// coherent. It models where lines are, not what they contain.
package cache

// LineBytes is the size of a cache line.
const LineBytes = 64

// Line is the number of a cache line. The upper bits may name a space of metadata: see SpaceShift.
type Line uint32

// SpaceShift is the position of the space in a Line. Lines of equal lower bits in different spaces are in different sets, so that
// data and their metadata do not conflict (seed 001, section 4.2.1, figure 4.3).
const SpaceShift = 27

// spaceSets is the distance of the sets of one line in two spaces.
const spaceSets = 21

// entry is a line (upper half) and what its owner wants to know of it (lower half). 0 is an empty way: a valid entry has a
// nonzero lower half.
type entry uint64

func (e entry) line() Line { return Line(e >> 32) }

// Array is a set-associative cache with least-recently-used replacement. The ways of a set are in the order of their last use.
type Array struct {
	ways    int
	mask    Line
	entries []entry
}

// NewArray makes an empty cache. The number of sets, bytes/LineBytes/ways, must be a power of two.
func NewArray(bytes, ways int) *Array {
	sets := bytes / LineBytes / ways
	if sets < 1 || sets&(sets-1) != 0 {
		panic("BUG: the number of sets of a cache is no power of two")
	}
	return &Array{ways: ways, mask: Line(sets - 1), entries: make([]entry, sets*ways)}
}

func (a *Array) set(l Line) []entry {
	at := int((l+l>>SpaceShift*spaceSets)&a.mask) * a.ways
	return a.entries[at : at+a.ways : at+a.ways]
}

// use finds a line and makes it the most recently used one, whose entry it gives; nil if the line is not there.
func (a *Array) use(l Line) *entry {
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

// peek finds a line; nil if it is not there.
func (a *Array) peek(l Line) *entry {
	set := a.set(l)
	for i := range set {
		if set[i].line() == l && set[i] != 0 {
			return &set[i]
		}
	}
	return nil
}

// insert adds a line that is not there and gives the one that has to leave; 0 if there is room.
func (a *Array) insert(l Line, info uint32) (left entry) {
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

// remove takes a line away and gives its entry; 0 if it was not there.
func (a *Array) remove(l Line) entry {
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
