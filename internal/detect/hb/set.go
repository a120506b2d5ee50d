package hb

import "math/bits"

// group is lanes of one warp that made an access of one class at epoch clock. Those lanes and perhaps others, exec,
// executed the instruction together.
type group struct{ lanes, clock, exec uint32 }

// put adds lanes at (clock, exec) to the groups of a warp, which are not changed. Only what can still matter is kept:
// whatever races with an access races with every later access of the same thread and class too, so the earlier one is
// dropped unless it may be the graver: when lockstep orders fewer lanes after it than after the later one. Two accesses
// of one epoch race with the same others and are kept as one, which lockstep orders where it orders both.
func put(groups []group, lanes, clock, exec uint32) []group {
	out := make([]group, 0, len(groups)+1)
	var both []group
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
		out = put(out, g.lanes, g.clock, g.exec)
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
// 32 children a node, absent ones left out. Sets are immutable and share their parts.
type set struct {
	max    uint32 // the largest epoch below
	here   uint32 // which children are there
	kids   []*set
	groups []group // of a leaf, which is one warp
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

// add gives s with lanes of a warp at (clock, exec), by the rule of put.
func (s *set) add(depth int, warp uint32, g group) *set {
	if depth == 0 {
		var old []group
		if s != nil {
			old = s.groups
		}
		out := &set{groups: put(old, g.lanes, g.clock, g.exec)}
		for _, g := range out.groups {
			out.max = max(out.max, g.clock)
		}
		return out
	}
	bit := uint32(1) << (warp >> uint(5*(depth-1)) & 31)
	if s == nil {
		kid := (*set)(nil).add(depth-1, warp, g)
		return &set{max: kid.max, here: bit, kids: []*set{kid}}
	}
	i := bits.OnesCount32(s.here & (bit - 1))
	out := &set{max: s.max, here: s.here | bit}
	if s.here&bit != 0 {
		out.kids = append([]*set(nil), s.kids...)
		out.kids[i] = s.kids[i].add(depth-1, warp, g)
	} else {
		out.kids = make([]*set, len(s.kids)+1)
		copy(out.kids, s.kids[:i])
		out.kids[i] = (*set)(nil).add(depth-1, warp, g)
		copy(out.kids[i+1:], s.kids[i:])
	}
	out.max = max(out.max, out.kids[i].max)
	return out
}

// has says that a lane of a warp is in s.
func (s *set) has(depth int, warp uint32, lane int) bool {
	for ; depth > 0; depth-- {
		bit := uint32(1) << (warp >> uint(5*(depth-1)) & 31)
		if s.here&bit == 0 {
			return false
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

// walk calls f for each group until f says false; it says whether it came to the end. A subtree that skip, told its
// first warp, the number of its warps and its largest epoch, says true to is left out.
func (s *set) walk(depth int, base uint32, skip func(warp, n, max uint32) bool, f func(warp uint32, g group) bool) bool {
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
		kid := s.kids[i]
		i++
		if skip != nil && skip(at, span, kid.max) {
			continue
		}
		if !kid.walk(depth-1, at, skip, f) {
			return false
		}
	}
	return true
}

// sets numbers the sets that shadow entries hold, counts their holders, and remembers transitions, so that locations
// used alike share their sets.
type sets struct {
	slots []slot
	free  []uint32
	next  uint64
	memo  []memo
}

type slot struct {
	root   *set
	depth  int
	refs   uint32
	serial uint64 // never used again
}

type memo struct {
	from, to uint64 // serials
	id       uint32
	warp     uint32
	g        group
}

const memoBits = 14

func newSets() *sets {
	return &sets{slots: make([]slot, 1), memo: make([]memo, 1<<memoBits), next: 1}
}

// hold gives root a number, held once.
func (t *sets) hold(root *set, depth int) uint32 {
	var id uint32
	if n := len(t.free); n > 0 {
		id = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		id = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	t.slots[id] = slot{root: root, depth: depth, refs: 1, serial: t.next}
	t.next++
	return id
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

// grow exchanges a hold of id for one of id with g of warp added.
func (t *sets) grow(id, warp uint32, g group) uint32 {
	from := t.slots[id].serial
	h := (from*0x9e3779b97f4a7c15 ^ uint64(warp)<<32 ^ uint64(g.lanes)) * 0xd6e8feb86659fd93
	h ^= uint64(g.clock) * 0xff51afd7ed558ccd
	m := &t.memo[h>>(64-memoBits)]
	if m.from == from && m.warp == warp && m.g == g && t.slots[m.id].serial == m.to {
		t.slots[m.id].refs++
		t.drop(id)
		return m.id
	}
	s := t.slots[id]
	to := t.hold(s.root.add(s.depth, warp, g), s.depth)
	*m = memo{from: from, to: t.slots[to].serial, id: to, warp: warp, g: g}
	t.drop(id)
	return to
}
