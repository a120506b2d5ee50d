// Package cache models the caches of a multicore processor. They are set-associative, replace the least recently used
// line, and are kept coherent by the MESI protocol. The model has the places of lines, not their contents.
package cache

import (
	"cmp"
	"slices"
)

// LineBytes is the size of a cache line.
const LineBytes = 64

// Line is the number of a cache line. The upper bits may name a space of metadata: see SpaceShift.
type Line uint32

// SpaceShift is the position of the space in a Line. Lines with equal lower bits in different spaces are in different
// sets, so that data and their metadata do not conflict (seed 001, section 4.2.1, figure 4.3).
const SpaceShift = 27

// spaceSets is the distance between the sets of a line in two adjacent spaces.
const spaceSets = 21

// maxWays is the maximum number of ways of a cache. A place has 7 bits for a way.
const maxWays = 127

// way is one way of a set.
type way struct {
	line Line
	used uint32 // when the line was last used; 0 if the way is empty
}

// array is the ways of a cache, set by set. The least recently used line is searched for only when a line must leave,
// so a hit costs one store.
type array struct {
	count int // number of ways of a set
	mask  Line
	ways  []way
}

// newArray makes an empty cache. The number of sets, bytes/LineBytes/ways, must be a power of two.
func newArray(g Geometry) array {
	sets := g.Bytes / LineBytes / g.Ways
	if sets < 1 || sets&(sets-1) != 0 || g.Ways > maxWays {
		panic("BUG: the number of sets of a cache is no power of two, or it has too many ways")
	}
	return array{count: g.Ways, mask: Line(sets - 1), ways: make([]way, sets*g.Ways)}
}

// set returns the index of the first way of a line's set.
func (a *array) set(l Line) int { return int((l+l>>SpaceShift*spaceSets)&a.mask) * a.count }

// use records that the line in a way is used at time now, or, if now is 0, that it is removed.
func (a *array) use(l Line, at int, now uint32) { a.ways[a.set(l)+at].used = now }

// insert adds a new line. It returns the line's way, and the line that must leave for it, if any.
func (a *array) insert(l Line, now uint32) (at int, out Line, left bool) {
	first := a.set(l)
	set := a.ways[first : first+a.count]
	oldest := int64(1<<63 - 1)
	i := 0
	for ; i+8 <= len(set); i += 8 {
		oldest = less(oldest, oldestOf((*[8]way)(set[i:]))|int64(i))
	}
	for ; i < len(set); i++ {
		oldest = less(oldest, int64(set[i].used)<<8|int64(i))
	}
	at = int(oldest & maxWays)
	w := &set[at]
	out = w.line
	*w = way{l, now}
	return at, out, oldest > maxWays
}

// oldestOf returns the least recently used of ways: its index, and, from bit 8 on, the time of its last use. It has no
// branches, because they would be unpredictable, and no comparison depends on more than two others.
func oldestOf(w *[8]way) int64 {
	a := less(int64(w[0].used)<<8, int64(w[1].used)<<8|1)
	b := less(int64(w[2].used)<<8|2, int64(w[3].used)<<8|3)
	c := less(int64(w[4].used)<<8|4, int64(w[5].used)<<8|5)
	d := less(int64(w[6].used)<<8|6, int64(w[7].used)<<8|7)
	return less(less(a, b), less(c, d))
}

// less is the smaller of two numbers that are not negative.
func less(a, b int64) int64 {
	d := a - b
	return b + d&(d>>63)
}

// renumber replaces the times of use by small ones, at most maxWays. It keeps their order within each set.
func (a *array) renumber() {
	order := make([]int, 0, a.count)
	for first := 0; first < len(a.ways); first += a.count {
		set := a.ways[first : first+a.count]
		order = order[:0]
		for i := range set {
			if set[i].used != 0 {
				order = append(order, i)
			}
		}
		slices.SortFunc(order, func(i, j int) int { return cmp.Compare(set[i].used, set[j].used) })
		for rank, i := range order {
			set[i].used = uint32(rank + 1)
		}
	}
}
