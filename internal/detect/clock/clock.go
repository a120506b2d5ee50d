// Package clock implements vector clocks structured like a launch: lanes, warps, blocks, grid. A clock gives for each
// thread the epoch up to which it is known; zero is nothing. Clocks are immutable and share parts, so that what the
// threads of a block or a grid have in common is stored, compared and joined once.
package clock

import (
	"math/bits"
	"slices"
	"unsafe"
)

// Block is what is known of the threads of one block. A nil Block knows nothing.
type Block struct {
	// Min and Max bound the epochs of all threads.
	Min, Max uint32
	warps    []warp // nil: every thread has epoch Min, except those in parts
	// parts are ordered by warp and val. Each lane is in at most one.
	parts []part
	one   [1]part // backing array of parts
	n     int32   // number of warps, if there are parts
}

// warp is one warp of a Block: if lanes is nil, all lanes have the epoch val.
type warp struct {
	val   uint32
	lanes *[32]uint32
}

func (w *warp) at(lane int) uint32 {
	if w.lanes != nil {
		return w.lanes[lane]
	}
	return w.val
}

// spread returns the epoch of each lane. It may use room for the result.
func (w *warp) spread(room *[32]uint32) *[32]uint32 {
	if w.lanes != nil {
		return w.lanes
	}
	for i := range room {
		room[i] = w.val
	}
	return room
}

// Uniform returns the Block that knows every thread up to v.
func Uniform(v uint32) *Block { return &Block{Min: v, Max: v} }

// Unknown returns those of lanes of warp w that b does not know up to epoch c.
func (b *Block) Unknown(w, lanes, c uint32) uint32 {
	if b == nil {
		return lanes
	}
	if b.warps == nil {
		if b.Min >= c {
			return 0
		}
		for i := range b.parts {
			if p := &b.parts[i]; p.warp == w && p.val >= c {
				lanes &^= p.lanes
			}
		}
		return lanes
	}
	x := &b.warps[w]
	if x.lanes == nil {
		if x.val >= c {
			return 0
		}
		return lanes
	}
	var out uint32
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		if x.lanes[l] < c {
			out |= 1 << uint(l)
		}
	}
	return out
}

// With returns b with the lanes of mask in warp w set to v. The block has n warps.
func (b *Block) With(n int, w, mask, v uint32) *Block {
	if few := b.withFew(n, w, mask, v); few != nil {
		return few
	}
	out := &Block{warps: make([]warp, n)}
	switch {
	case b == nil:
	case b.warps == nil:
		for i := range out.warps {
			out.warps[i] = b.of(i)
		}
	default:
		copy(out.warps, b.warps)
	}
	x := &out.warps[w]
	if mask == ^uint32(0) {
		*x = warp{val: v}
	} else {
		l := new([32]uint32)
		for i := range l {
			l[i] = x.at(i)
			if mask>>uint(i)&1 != 0 {
				l[i] = v
			}
		}
		*x = packed(l)
	}
	return out.settle()
}

// WithWarps returns b with lanes[w] of each warp w set to v. The block has len(lanes) warps.
func (b *Block) WithWarps(lanes []uint32, v uint32) *Block {
	out := &Block{warps: make([]warp, len(lanes))}
	for i, mask := range lanes {
		x := &out.warps[i]
		switch {
		case b == nil:
		case b.warps == nil:
			*x = b.of(i)
		default:
			*x = b.warps[i]
		}
		switch mask {
		case 0:
		case ^uint32(0):
			*x = warp{val: v}
		default:
			l := new([32]uint32)
			for j := range l {
				l[j] = x.at(j)
				if mask>>uint(j)&1 != 0 {
					l[j] = v
				}
			}
			*x = packed(l)
		}
	}
	return out.settle()
}

// OfWarp returns a Block of n warps that knows the lanes of warp w up to their epochs in lanes, and all other threads
// up to others.
func OfWarp(n int, w uint32, lanes *[32]uint32, others uint32) *Block {
	out := &Block{warps: make([]warp, n)}
	for i := range out.warps {
		out.warps[i].val = others
	}
	l := *lanes
	out.warps[w] = packed(&l)
	return out.settle()
}

// packed returns the warp with the epochs l, in compact form if they are all equal.
func packed(l *[32]uint32) warp {
	for _, v := range l {
		if v != l[0] {
			return warp{lanes: l}
		}
	}
	return warp{val: l[0]}
}

// settle computes the bounds of a new Block, and drops its warps if all epochs are equal.
func (b *Block) settle() *Block {
	b.Min, b.Max = ^uint32(0), 0
	for i := range b.warps {
		x := &b.warps[i]
		if x.lanes == nil {
			b.Min, b.Max = min(b.Min, x.val), max(b.Max, x.val)
			continue
		}
		for _, v := range x.lanes {
			b.Min, b.Max = min(b.Min, v), max(b.Max, v)
		}
	}
	if b.Min == b.Max {
		b.warps = nil
	}
	return b
}

// Join returns what b or c knows. The result is b or c itself if it knows all that the other knows; c if they know the
// same. Preferring c makes clocks that are joined repeatedly share memory after the first join, even if only parts of
// them are equal.
func (b *Block) Join(c *Block) *Block {
	out, _, _ := b.join(c)
	return out
}

// join is Join, and says whether b, and whether c, knows as much as the result. If one of the answers is true, the
// other may be false by mistake.
func (b *Block) join(c *Block) (out *Block, asB, asC bool) {
	switch {
	case b == c:
		return c, true, true
	case c == nil:
		return b, true, b.Max == 0
	case b == nil:
		return c, c.Max == 0, true
	case c.Min >= b.Max:
		return c, b.Min >= c.Max, true
	case b.Min >= c.Max:
		return b, true, false
	}
	if b.warps == nil && c.warps == nil {
		if few := b.joinFew(c); few != nil {
			return few, few == b, few == c
		}
	}
	n := max(len(b.warps), len(c.warps), int(b.n), int(c.n))
	asB, asC = true, true
	var room [32]warp
	warps := room[:0]
	for i := range n {
		z, asX, asY := joinWarps(b.warp(i), c.warp(i))
		warps = append(warps, z)
		asB, asC = asB && asX, asC && asY
	}
	switch {
	case asC:
		return c, asB, true
	case asB:
		return b, true, false
	}
	return (&Block{warps: slices.Clone(warps)}).settle(), false, false
}

func (b *Block) warp(i int) warp {
	if b.warps == nil {
		return b.of(i)
	}
	return b.warps[i]
}

// joinWarps returns what x or y knows, y itself if they know the same, and says whether x, and whether y, knows as much
// as the result.
func joinWarps(x, y warp) (z warp, asX, asY bool) {
	if x == y {
		return y, true, true
	}
	if x.lanes == nil && y.lanes == nil {
		return warp{val: max(x.val, y.val)}, x.val > y.val, y.val > x.val
	}
	var l, roomX, roomY [32]uint32
	p, q := x.spread(&roomX), y.spread(&roomY)
	var more, less int64 // negative if x, or y, knows more of any lane; computed without branches, which would be mispredicted
	for i := range l {
		l[i] = max(p[i], q[i])
		more |= int64(q[i]) - int64(p[i])
		less |= int64(p[i]) - int64(q[i])
	}
	asX, asY = less >= 0, more >= 0
	switch {
	case asY:
		return y, asX, true
	case asX:
		return x, true, false
	}
	made := l // allocated only here
	return packed(&made), false, false
}

// Grid is what is known of the threads of a launch: a list of blocks, or a tree of blocks in which each node has 32
// children. A nil Grid knows nothing. All Grids of one launch have the same depth, see Depth.
type Grid struct {
	// Min and Max bound the epochs of all threads in it.
	Min, Max uint32
	kids     *[32]*Grid
	blocks   *[32]*Block // at depth 0
	// held, depth and n are for a list: its blocks by index, its depth as a tree, and the number of warps in a block.
	held  []held
	depth int32
	n     int32
}

// Depth returns the number of inner levels of the Grids of a launch of n blocks.
func Depth(n uint64) int {
	d := 0
	for n > 32 {
		n = (n + 31) / 32
		d++
	}
	return d
}

// At returns what is known of a block.
func (g *Grid) At(depth int, block uint32) *Block {
	if g != nil && g.list() {
		for i := range g.held {
			if g.held[i].index >= block {
				if g.held[i].index == block {
					return g.held[i].block(g.n)
				}
				break
			}
		}
		return nil
	}
	for ; depth > 0 && g != nil; depth-- {
		g = g.kids[block>>uint(5*depth)&31]
	}
	if g == nil {
		return nil
	}
	return g.blocks[block&31]
}

// With returns g with what is known of block replaced by b.
func (g *Grid) With(depth int, block uint32, b *Block) *Grid {
	if g.list() {
		return g.withHeld(depth, block, b)
	}
	return g.withTree(depth, block, b)
}

// withTree is With for a tree.
func (g *Grid) withTree(depth int, block uint32, b *Block) *Grid {
	out := &Grid{}
	i := block >> uint(5*depth) & 31
	if depth > 0 {
		out.kids = new([32]*Grid)
		var kid *Grid
		if g != nil {
			*out.kids = *g.kids
			kid = g.kids[i]
		}
		out.kids[i] = kid.withTree(depth-1, block, b)
	} else {
		out.blocks = new([32]*Block)
		if g != nil {
			*out.blocks = *g.blocks
		}
		out.blocks[i] = b
	}
	return out.settle()
}

func (g *Grid) settle() *Grid {
	g.Min, g.Max = ^uint32(0), 0
	if g.kids != nil {
		for _, k := range g.kids {
			if k == nil {
				g.Min = 0
			} else {
				g.Min, g.Max = min(g.Min, k.Min), max(g.Max, k.Max)
			}
		}
		return g
	}
	for _, k := range g.blocks {
		if k == nil {
			g.Min = 0
		} else {
			g.Min, g.Max = min(g.Min, k.Min), max(g.Max, k.Max)
		}
	}
	return g
}

// Join returns what g or h knows. The result is g or h itself if it knows all that the other knows; h if they know the
// same.
func (g *Grid) Join(h *Grid) *Grid {
	out, _, _ := g.join(h)
	return out
}

// Covers reports whether g knows all that h knows. It may return false if that is not cheap to see.
func (g *Grid) Covers(h *Grid) bool {
	_, covers, _ := g.join(h)
	return covers
}

// join is Join, and says whether g, and whether h, knows as much as the result. If both do, it may say so of only one.
func (g *Grid) join(h *Grid) (out *Grid, asG, asH bool) {
	switch {
	case g == h:
		return h, true, true
	case h == nil:
		return g, true, g.Max == 0
	case g == nil:
		return h, h.Max == 0, true
	case h.Min >= g.Max:
		return h, g.Min >= h.Max, true
	case g.Min >= h.Max:
		return g, true, false
	}
	switch {
	case g.list() && h.list():
		return g.joinLists(h)
	case g.list():
		out, asH, asG = h.joinList(g)
		return out, asG, asH
	case h.list():
		return g.joinList(h)
	}
	asG, asH = true, true
	if g.kids != nil {
		var kids [32]*Grid
		for i := range kids {
			kid, asX, asY := g.kids[i].join(h.kids[i])
			kids[i], asG, asH = kid, asG && asX, asH && asY
		}
		if asG || asH {
			return pick(g, h, asG, asH)
		}
		made := kids // allocated only here
		return (&Grid{kids: &made}).settle(), false, false
	}
	var blocks [32]*Block
	for i := range blocks {
		block, asX, asY := g.blocks[i].join(h.blocks[i])
		blocks[i], asG, asH = block, asG && asX, asH && asY
	}
	if asG || asH {
		return pick(g, h, asG, asH)
	}
	made := blocks
	return (&Grid{blocks: &made}).settle(), false, false
}

// pick returns g or h, whichever knows as much as both.
func pick(g, h *Grid, asG, asH bool) (*Grid, bool, bool) {
	if asH {
		return h, asG, true
	}
	return g, true, false
}

// Joiner joins Grids and memoises the last joins, since the threads of a grid mostly learn the same one after the
// other.
type Joiner struct {
	recent [4]struct{ a, b, both *Grid }
	next   int
}

// Join returns g.Join(h).
func (j *Joiner) Join(g, h *Grid) *Grid {
	if g == h || h == nil {
		return g
	}
	if g == nil {
		return h
	}
	for i := range j.recent {
		if r := &j.recent[i]; r.a == g && r.b == h {
			return r.both
		}
	}
	r := &j.recent[j.next]
	j.next = (j.next + 1) % len(j.recent)
	r.a, r.b, r.both = g, h, g.Join(h)
	return r.both
}

// Seen is the set of parts of clocks that have been counted.
type Seen map[any]struct{}

// first adds a part and returns true if it was not in the set.
func (s Seen) first(part any) bool {
	_, was := s[part]
	s[part] = struct{}{}
	return !was
}

// Bytes returns the memory of g, without the parts that are in seen because other clocks share them. It adds what it
// counts to seen.
func (g *Grid) Bytes(seen Seen) uint64 {
	if g == nil || !seen.first(g) {
		return 0
	}
	n := uint64(unsafe.Sizeof(*g))
	switch {
	case g.list():
		n += uint64(cap(g.held)) * uint64(unsafe.Sizeof(held{}))
		for i := range g.held {
			n += g.held[i].all.Bytes(seen)
		}
	case g.kids != nil:
		n += uint64(unsafe.Sizeof(*g.kids))
		for _, k := range g.kids {
			n += k.Bytes(seen)
		}
	case g.blocks != nil:
		n += uint64(unsafe.Sizeof(*g.blocks))
		for _, b := range g.blocks {
			n += b.Bytes(seen)
		}
	}
	return n
}

// Bytes returns the memory of b, without the parts that are in seen. It adds what it counts to seen.
func (b *Block) Bytes(seen Seen) uint64 {
	if b == nil || !seen.first(b) {
		return 0
	}
	n := uint64(unsafe.Sizeof(*b)) + uint64(len(b.warps))*uint64(unsafe.Sizeof(warp{}))
	if len(b.parts) > 1 {
		n += uint64(cap(b.parts)) * uint64(unsafe.Sizeof(part{}))
	}
	for i := range b.warps {
		if l := b.warps[i].lanes; l != nil && seen.first(l) {
			n += uint64(unsafe.Sizeof(*l))
		}
	}
	return n
}

// Expanded returns b with a number for each thread of its n warps, without sharing memory with other clocks.
func (b *Block) Expanded(n int) *Block {
	if b == nil {
		return nil
	}
	out := &Block{Min: b.Min, Max: b.Max, warps: make([]warp, n)}
	for i := range out.warps {
		x := b.warp(i)
		out.warps[i].lanes = new([32]uint32)
		for l := range out.warps[i].lanes {
			out.warps[i].lanes[l] = x.at(l)
		}
	}
	return out
}

// Expanded returns g with all its blocks expanded, each of n warps, without sharing memory with other clocks.
func (g *Grid) Expanded(n int) *Grid {
	if g == nil {
		return nil
	}
	out := &Grid{Min: g.Min, Max: g.Max, depth: g.depth, n: g.n}
	if g.list() {
		for i := range g.held {
			out.held = append(out.held, held{index: g.held[i].index, all: g.held[i].block(g.n).Expanded(n)})
		}
		return out
	}
	if g.kids != nil {
		out.kids = new([32]*Grid)
		for i, k := range g.kids {
			out.kids[i] = k.Expanded(n)
		}
		return out
	}
	out.blocks = new([32]*Block)
	for i, b := range g.blocks {
		out.blocks[i] = b.Expanded(n)
	}
	return out
}
