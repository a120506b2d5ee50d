package hb

import (
	"math/bits"
	"slices"
)

// group is lanes of one warp that made an access of one class at epoch clock. Those lanes and perhaps others, exec,
// executed the instruction together.
type group struct{ lanes, clock, exec uint32 }

// put adds lanes at (clock, exec) to the groups of a warp, which are not changed. Only what can still matter is kept:
// whatever races with an access races with every later access of the same thread and class too, so the earlier one is
// dropped unless it may be the graver: when lockstep orders fewer lanes after it than after the later one. Two accesses
// of one epoch race with the same others and are kept as one, which lockstep orders where it orders both.
func put(groups []group, lanes, clock, exec uint32) []group {
	return putIn(append(make([]group, 0, len(groups)+1), groups...), lanes, clock, exec)
}

// putIn is put, into groups.
func putIn(groups []group, lanes, clock, exec uint32) []group {
	out := groups[:0]
	var room [4]group
	both := room[:0]
	for _, g := range groups {
		if shared := g.lanes & lanes; shared != 0 {
			switch {
			case exec&^g.exec == 0:
				g.lanes &^= shared
			case g.clock == clock:
				g.lanes &^= shared
				lanes &^= shared
				both = append(both, group{shared, clock, exec & g.exec})
			}
		}
		if g.lanes != 0 {
			out = append(out, g)
		}
	}
	for _, g := range both {
		out = putIn(out, g.lanes, g.clock, g.exec)
	}
	if lanes == 0 {
		return out
	}
	for i := range out {
		if out[i].clock == clock && out[i].exec == exec {
			out[i].lanes |= lanes
			return out
		}
	}
	return append(out, group{lanes, clock, exec})
}

// set is the threads of a launch that made accesses of one class, with their epochs: a tree over the launch's warps,
// 32 children a node, absent ones left out. A set is not changed, and sets share parts, except by its owner.
type set struct {
	max  uint32 // the largest epoch below
	here uint32 // which children are there
	kids []*set
	// groups are those of a leaf, which is one warp; above leaves, while kids is nil, of each warp its only group, or one
	// that each has.
	groups []group
	owner  uint64 // who may change the node in place; 0: nobody
}

// setDepth is the number of levels above the leaves for a launch of n warps.
func setDepth(n uint64) int {
	d := 1
	for n > 32 {
		n = (n + 31) / 32
		d++
	}
	return d
}

// add gives s with lanes of a warp at (clock, exec), by the rule of put. Nodes of owner, if it is not 0, are changed.
func (s *set) add(depth int, warp uint32, g group, owner uint64) *set {
	if s == nil {
		s = &set{owner: owner}
	} else if owner == 0 || s.owner != owner {
		s = &set{max: s.max, here: s.here, groups: s.groups, owner: owner, kids: append([]*set(nil), s.kids...)}
		if owner != 0 || depth == 1 {
			s.groups = append([]group(nil), s.groups...)
		}
	}
	if depth == 0 {
		if owner != 0 && s.widen(g) {
			return s
		}
		if owner != 0 {
			s.groups = putIn(s.groups, g.lanes, g.clock, g.exec)
		} else {
			s.groups = put(s.groups, g.lanes, g.clock, g.exec)
		}
		s.max = max(s.max, g.clock) // an upper bound: put may have dropped what had the largest
		return s
	}
	bit := uint32(1) << (warp >> uint(5*(depth-1)) & 31)
	i := bits.OnesCount32(s.here & (bit - 1))
	if depth == 1 && s.kids == nil {
		if s.flat(bit, i, g) {
			return s
		}
		for i := range bits.OnesCount32(s.here) {
			o := s.only(i)
			s.kids = append(s.kids, &set{max: o.clock, groups: []group{o}, owner: owner})
		}
		s.groups = nil
	}
	if s.here&bit == 0 {
		s.here |= bit
		s.kids = append(s.kids, nil)
		copy(s.kids[i+1:], s.kids[i:])
		s.kids[i] = nil
	}
	s.kids[i] = s.kids[i].add(depth-1, warp, g, owner)
	s.max = max(s.max, s.kids[i].max)
	return s
}

// flat adds g to child i of a node whose children have one group each. It says false, having done nothing, if the child
// would have more.
func (s *set) flat(bit uint32, i int, g group) bool {
	if s.here&bit == 0 {
		if len(s.groups) != 1 || s.groups[0] != g {
			s.apart()
			s.groups = slices.Insert(s.groups, i, g)
		}
		s.here |= bit
		s.max = max(s.max, g.clock)
		return true
	}
	o := s.only(i)
	if !o.merge(g) {
		return false
	}
	if o != s.only(i) {
		s.apart()
		s.groups[i] = o
	}
	s.max = max(s.max, g.clock)
	return true
}

// only gives the only group of child i of a node without kids.
func (s *set) only(i int) group {
	if len(s.groups) == 1 {
		return s.groups[0]
	}
	return s.groups[i]
}

// apart gives each child of a node without kids a group in groups.
func (s *set) apart() {
	if n := bits.OnesCount32(s.here); n > 1 && len(s.groups) == 1 {
		s.groups = slices.Repeat(s.groups, n)
	}
}

// merge adds g to o by the rule of put. It says false, having done nothing, when that makes several groups.
func (o *group) merge(g group) bool {
	switch {
	case o.clock == g.clock && o.exec == g.exec:
		o.lanes |= g.lanes
	case o.lanes&^g.lanes == 0 && g.exec&^o.exec == 0:
		*o = g
	case o.lanes&g.lanes == 0:
		return false
	default:
		m := put([]group{*o}, g.lanes, g.clock, g.exec)
		if len(m) != 1 {
			return false
		}
		*o = m[0]
	}
	return true
}

// widen adds to a leaf that may be changed in place lanes that its only group has or is alike.
func (s *set) widen(g group) bool {
	if len(s.groups) != 1 || s.groups[0].clock != g.clock || s.groups[0].exec != g.exec {
		return false
	}
	s.groups[0].lanes |= g.lanes
	return true
}

// has says that a lane of a warp is in s.
func (s *set) has(depth int, warp uint32, lane int) bool {
	for ; depth > 0; depth-- {
		bit := uint32(1) << (warp >> uint(5*(depth-1)) & 31)
		if s.here&bit == 0 {
			return false
		}
		if depth == 1 && s.kids == nil {
			return s.only(bits.OnesCount32(s.here&(bit-1))).lanes>>uint(lane)&1 != 0
		}
		s = s.kids[bits.OnesCount32(s.here&(bit-1))]
	}
	for _, g := range s.groups {
		if g.lanes>>uint(lane)&1 != 0 {
			return true
		}
	}
	return false
}

// holds says that adding g of a warp changes nothing: it lies within the warp's only group.
func (s *set) holds(depth int, warp uint32, g group) bool {
	for ; depth > 0; depth-- {
		bit := uint32(1) << (warp >> uint(5*(depth-1)) & 31)
		if s.here&bit == 0 {
			return false
		}
		i := bits.OnesCount32(s.here & (bit - 1))
		if depth == 1 && s.kids == nil {
			return s.only(i).covers(g)
		}
		s = s.kids[i]
	}
	return len(s.groups) == 1 && s.groups[0].covers(g)
}

func (o group) covers(g group) bool {
	return o.clock == g.clock && o.exec == g.exec && g.lanes&^o.lanes == 0
}

// walk calls f for each group until f says false; it says whether it came to the end. A subtree that skip, told its
// first warp, the number of its warps and a bound of its epochs, says true to is left out.
func (s *set) walk(depth int, base uint32, skip func(warp, n uint64, top uint32) bool, f func(warp uint32, g group) bool) bool {
	if depth == 0 {
		for _, g := range s.groups {
			if !f(base, g) {
				return false
			}
		}
		return true
	}
	span := uint32(1) << uint(5*(depth-1))
	i := 0
	for m := s.here; m != 0; m &= m - 1 {
		at := base + uint32(bits.TrailingZeros32(m))*span
		if depth == 1 && s.kids == nil {
			if g := s.only(i); (skip == nil || !skip(uint64(at), 1, g.clock)) && !f(at, g) {
				return false
			}
			i++
			continue
		}
		kid := s.kids[i]
		i++
		if skip != nil && skip(uint64(at), uint64(span), kid.max) {
			continue
		}
		if !kid.walk(depth-1, at, skip, f) {
			return false
		}
	}
	return true
}

// sets numbers the sets that shadow entries hold and counts their holders. Locations used alike share their sets: the
// last transitions from one set to the next are remembered. A class whose transitions do not repeat stops asking, and
// its sets are changed in place.
type sets struct {
	slots []slot
	free  []uint32
	next  uint64
	memo  []memo // a power of two, by hash
	lack  int    // grows by goodHits with a transition that was not remembered, and falls by one with one that was
}

type slot struct {
	root   *set
	depth  int
	refs   uint32
	serial uint64 // never used again
}

// memo remembers that adding g of warp to from, or when from is 0 to the group first of the warp before, gave to; when it is
// fromWarps, what several gave for first, before and the bits in warp, g.lanes apart.
type memo struct {
	from, to uint64 // serials
	id       uint32 // of to, held
	before   uint32
	warp     uint32
	first, g group
}

// fromWarps is no serial.
const fromWarps = ^uint64(0)

// Transitions that are remembered at first, and at most.
const (
	minMemo = 1 << 4
	maxMemo = 1 << 14
)

// A class begins with patience transitions that may miss; a hit gains some more.
const (
	patience    = 512
	patienceMax = 1 << 16
	hitPatience = 8
	goodHits    = 8 // for a miss: there is room enough for what repeats, see sets.lack
)

func newSets() *sets {
	return &sets{slots: make([]slot, 1), memo: make([]memo, minMemo), next: 1}
}

// hold gives root a number, held once.
func (t *sets) hold(root *set, depth int, serial uint64) uint32 {
	var id uint32
	if n := len(t.free); n > 0 {
		id = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		id = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	t.slots[id] = slot{root: root, depth: depth, refs: 1, serial: serial}
	return id
}

func (t *sets) serial() uint64 {
	t.next++
	return t.next
}

// drop ends one hold of id.
func (t *sets) drop(id uint32) {
	s := &t.slots[id]
	s.refs--
	if s.refs == 0 {
		*s = slot{}
		t.free = append(t.free, id)
	}
}

// find gives the place of a transition in the memo, and whether it is there.
func (t *sets) find(x *memo) (*memo, bool) {
	h := (x.from*0x9e3779b97f4a7c15 ^ uint64(x.warp)<<32 ^ uint64(x.g.lanes)) * 0xd6e8feb86659fd93
	h ^= (uint64(x.g.clock)<<32 | uint64(x.first.lanes)) * 0xff51afd7ed558ccd
	m := &t.memo[h>>32&uint64(len(t.memo)-1)]
	return m, m.id != 0 && m.from == x.from && m.warp == x.warp && m.g == x.g && m.before == x.before && m.first == x.first
}

// keep notes the transition x to id in its place m.
func (t *sets) keep(m *memo, x memo, id uint32) {
	if m.id != 0 {
		t.drop(m.id)
	}
	x.id, x.to = id, t.slots[id].serial
	t.slots[id].refs++
	*m = x
	if t.lack += goodHits; t.lack > goodHits*len(t.memo) && len(t.memo) < maxMemo {
		t.more()
	}
}

// tire takes the patience of a class a transition further. When it ends, nothing is remembered of what came of that.
func (t *sets) tire(patience *int32) {
	if *patience--; *patience > 0 {
		return
	}
	for i := range t.memo {
		if id := t.memo[i].id; id != 0 {
			t.drop(id)
		}
	}
	t.memo, t.lack = make([]memo, minMemo), 0
}

// more makes room for more transitions.
func (t *sets) more() {
	old := t.memo
	t.memo, t.lack = make([]memo, 4*len(old)), 0
	for i := range old {
		if old[i].id == 0 {
			continue
		}
		m, _ := t.find(&old[i])
		if m.id != 0 {
			t.drop(m.id)
		}
		*m = old[i]
	}
}

// make gives a hold of the set of the group first of warp before, and g of warp.
func (t *sets) make(depth int, before uint32, first group, warp uint32, g group, patience *int32) uint32 {
	x := memo{before: before, warp: warp, first: first, g: g}
	serial := t.serial()
	if *patience <= 0 {
		return t.hold((*set)(nil).add(depth, before, first, serial).add(depth, warp, g, serial), depth, serial)
	}
	m, ok := t.find(&x)
	if ok && t.slots[m.id].depth == depth {
		*patience = min(*patience+hitPatience, patienceMax)
		t.lack = max(t.lack-1, 0)
		t.slots[m.id].refs++
		return m.id
	}
	id := t.hold((*set)(nil).add(depth, before, first, 0).add(depth, warp, g, 0), depth, serial)
	t.keep(m, x, id)
	t.tire(patience)
	return id
}

// several gives a hold of the set of g of warp + n*far for each bit n of warps.
func (t *sets) several(depth int, warp, warps, far uint32, g group, patience *int32) uint32 {
	x := memo{from: fromWarps, before: warp, warp: warps, first: g, g: group{lanes: far}}
	m, ok := t.find(&x)
	if ok && t.slots[m.id].depth == depth {
		t.slots[m.id].refs++
		return m.id
	}
	serial := t.serial()
	owner := serial
	if *patience > 0 {
		owner = 0
	}
	var root *set
	for ; warps != 0; warps &= warps - 1 {
		root = root.add(depth, warp+uint32(bits.TrailingZeros32(warps))*far, g, owner)
	}
	id := t.hold(root, depth, serial)
	if owner == 0 {
		t.keep(m, x, id)
		t.tire(patience)
	}
	return id
}

// grow exchanges a hold of id for one of id with g of warp added.
func (t *sets) grow(id, warp uint32, g group, patience *int32) uint32 {
	s := t.slots[id]
	if s.root.holds(s.depth, warp, g) {
		return id
	}
	serial := t.serial()
	if *patience <= 0 {
		if s.refs == 1 {
			// serial names the content, owner stays that of the nodes.
			owner := s.root.owner
			if owner == 0 {
				owner = serial
			}
			t.slots[id].root = s.root.add(s.depth, warp, g, owner)
			t.slots[id].serial = serial
			return id
		}
		t.drop(id)
		return t.hold(s.root.add(s.depth, warp, g, serial), s.depth, serial)
	}
	x := memo{from: s.serial, warp: warp, g: g}
	m, ok := t.find(&x)
	if ok {
		*patience = min(*patience+hitPatience, patienceMax)
		t.lack = max(t.lack-1, 0)
		t.slots[m.id].refs++
		t.drop(id)
		return m.id
	}
	to := t.hold(s.root.add(s.depth, warp, g, 0), s.depth, serial)
	t.keep(m, x, to)
	t.tire(patience)
	t.drop(id)
	return to
}
