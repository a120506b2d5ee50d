package history

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
)

const (
	longList = 24 // a list with more entries has an index
	// With more entries than crowded, not all are judged: see enoughRaces.
	crowded = 256
)

// index finds entries of a long list.
type index struct {
	slots  []int32 // hash table: one more than the newest entry of a site and warp
	groups []group
	linked int // the number of entries in the index
}

// group is the entries of a list by one site, to the same bytes, in one launch. An access that races with one of them
// races with the others for the same reason, except that its own block may make a difference. The entries of a weak
// store have the same values.
type group struct {
	site   *Site
	launch *order.Launch
	bytes  uint8
	newest int32 // index of the newest entry, plus one
	// known is a view whose grid knows all entries up to the one that was newest then. Whoever knows that much knows them too.
	known *order.View
	then  int32
}

// indexed returns the index of a long list, created and brought up to date if necessary.
func (h *Fast) indexed(l *list) *index {
	n := len(l.entries)
	x := l.index
	if x == nil || 2*n > len(x.slots) {
		x = &index{slots: make([]int32, 4<<bits.Len(uint(n)))}
		l.index = x
	}
	for x.linked < n {
		x.link(h, l, x.linked)
	}
	return x
}

// link adds an entry to the index.
func (x *index) link(h *Fast, l *list, i int) {
	x.linked = i + 1
	e := &l.entries[i]
	if e.lanes == 0 {
		return
	}
	s := &h.stamps[e.stamp]
	at := x.slot(h, l, s)
	e.prev, *at = *at, int32(i+1)
	g := x.group(s, e.bytes)
	e.like, g.newest = g.newest, int32(i+1)
}

// slot returns the slot for the site and warp of a stamp.
func (x *index) slot(h *Fast, l *list, s *stamp) *int32 {
	for n := (s.warp*0x9e3779b1 ^ s.site.Number*0x85ebca6b) >> 7; ; n++ {
		at := &x.slots[int(n)&(len(x.slots)-1)]
		if *at == 0 {
			return at
		}
		if o := &h.stamps[l.entries[*at-1].stamp]; o.warp == s.warp && o.site == s.site {
			return at
		}
	}
}

// group returns the group of a stamp and some bytes, creating it if necessary.
func (x *index) group(s *stamp, bytes uint8) *group {
	for i := range x.groups {
		if g := &x.groups[i]; g.site == s.site && g.bytes == bytes && g.launch == s.launch {
			return g
		}
	}
	x.groups = append(x.groups, group{site: s.site, launch: s.launch, bytes: bytes})
	return &x.groups[len(x.groups)-1]
}

// newest returns one more than the index of the newest entry that an access with a stamp may supersede. l.next gives
// the one before it.
func (l *list) newest(h *Fast, s *stamp) int32 {
	if n := len(l.entries); n <= longList {
		return int32(n)
	}
	return *h.indexed(l).slot(h, l, s)
}

func (l *list) next(h *Fast, i int32) int32 {
	if len(l.entries) <= longList {
		return i - 1
	}
	return l.entries[i-1].prev
}

// enoughRaces is the number of races with entries of one group, of other blocks than the access's own, after which the
// rest of the group is skipped. No further race would be graver, and the places are the same. All that may be lost is a
// fact that would improve the explanation.
const enoughRaces = 8

// judgeGroups finds the races of an access with the entries of a long list. In each group it stops after most races
// with other blocks.
func (h *Fast) judgeGroups(a *Access, l *list, at uint64, bytes uint8, most int, race func(*Access, Race)) {
	x := h.indexed(l)
	for i := range x.groups {
		g := &x.groups[i]
		// What does not race with an access of another block does not race with one of the same block either.
		same := g.launch == a.Actor.Launch
		if g.bytes&bytes == 0 || detect.Classify(g.site.Side, a.Site.Side, detect.Relation{SameLaunch: same, OtherDevice: a.Actor.OtherDevice(g.launch)}) == detect.NoRace ||
			same && h.gridKnows(l, g, a.Actor.View) {
			continue
		}
		races := 0
		for n := g.newest; n != 0 && races < most; {
			e := &l.entries[n-1]
			if e.lanes != 0 && h.judgeEntry(a, e, at, bytes, race) {
				if s := &h.stamps[e.stamp]; s.launch != a.Actor.Launch || s.warp/s.launch.WarpsPerBlock != a.Actor.Block {
					races++
				}
			}
			n = e.like
		}
	}
}

// gridKnows reports whether a view knows all entries of a group of its launch, without what only the threads of its own
// block know. Threads that meet at a barrier of the grid then know the same, so only the first of them looks at each entry.
func (h *Fast) gridKnows(l *list, g *group, v *order.View) bool {
	then := int32(0)
	if g.known != nil && v.CoversGrid(g.known) {
		then = g.then
	}
	for n := g.newest; n != then; n = l.entries[n-1].like {
		e := &l.entries[n-1]
		// Lanes may be added to the entry later, but only some of those that executed the instruction.
		if s := &h.stamps[e.stamp]; e.lanes != 0 && v.GridUnknown(s.launch, s.warp, s.exec, s.epoch) != 0 {
			return false
		}
	}
	g.known, g.then = v, g.newest
	return true
}
