package clock

import "slices"

// In programs with locks, most clocks know only a few threads. These clocks are lists: a Block lists the threads that
// are known further than all others, and a Grid the blocks of which anything is known.

// part is lanes of a warp that are known up to val, which is more than the Block's Min.
type part struct{ warp, lanes, val uint32 }

// maxParts is the most parts of a Block. With more, the Block stores every warp.
const maxParts = 6

// held is what is known of a block: only the part only if that has lanes, and otherwise all.
type held struct {
	index uint32
	only  part
	all   *Block
}

// heldOf returns what b knows of block index.
func heldOf(index uint32, b *Block) held {
	if b.Min == 0 && b.warps == nil && len(b.parts) == 1 {
		return held{index: index, only: b.parts[0]}
	}
	return held{index: index, all: b}
}

// block returns what is known, as a Block of n warps.
func (h *held) block(n int32) *Block {
	if h.only.lanes == 0 {
		return h.all
	}
	b := &Block{Max: h.only.val, n: n, one: [1]part{h.only}}
	b.parts = b.one[:]
	return b
}

// most is an upper bound of the known epochs.
func (h *held) most() uint32 {
	if h.only.lanes == 0 {
		return h.all.Max
	}
	return h.only.val
}

// within reports whether b knows all that h knows.
func (h *held) within(b *Block) bool {
	if h.only.lanes != 0 {
		return b.Unknown(h.only.warp, h.only.lanes, h.only.val) == 0
	}
	_, _, within := h.all.join(b)
	return within
}

// unknown is Block.Unknown for h.
func (h *held) unknown(w, lanes, c uint32) uint32 {
	switch {
	case h.only.lanes == 0:
		return h.all.Unknown(w, lanes, c)
	case c == 0:
		return 0
	case h.only.warp == w && h.only.val >= c:
		return lanes &^ h.only.lanes
	}
	return lanes
}

// join is Block.join for h and o, of a block of n warps.
func (h *held) join(o *held, n int32) (out held, asH, asO bool) {
	if h.only.lanes != 0 && h.only.lanes == o.only.lanes && h.only.warp == o.only.warp {
		if o.only.val >= h.only.val {
			return *o, h.only.val == o.only.val, true
		}
		return *h, true, false
	}
	b, asH, asO := h.block(n).join(o.block(n))
	switch {
	case asO:
		return *o, asH, true
	case asH:
		return *h, true, false
	}
	return heldOf(h.index, b), false, false
}

// maxHeld is the most blocks in the list of a Grid. With more, the Grid is a tree.
const maxHeld = 24

// raise sets lanes of warp w in parts to v. With most, it sets only those that have less.
func raise(parts []part, w, lanes, v uint32, most bool) []part {
	at := 0
	for i := 0; i < len(parts); i++ {
		p := &parts[i]
		if p.warp != w {
			if p.warp < w {
				at = i + 1
			}
			continue
		}
		if both := p.lanes & lanes; both != 0 && most && p.val >= v {
			lanes &^= both
		} else if p.lanes &^= both; p.lanes == 0 {
			parts = slices.Delete(parts, i, i+1)
			i--
			continue
		}
		if p.val < v {
			at = i + 1
		}
	}
	if lanes == 0 {
		return parts
	}
	if at < len(parts) && parts[at].warp == w && parts[at].val == v {
		parts[at].lanes |= lanes
		return parts
	}
	return slices.Insert(parts, at, part{w, lanes, v})
}

// listed returns the Block of n warps that knows all threads up to low, and those in parts. It copies parts. It returns
// nil if the Block should not be a list.
func listed(n int, low uint32, parts []part) *Block {
	if len(parts) > maxParts {
		return nil
	}
	b := &Block{Min: low, Max: low, n: int32(n)}
	full := 0
	for _, p := range parts {
		b.Max = max(b.Max, p.val)
		if p.lanes == ^uint32(0) {
			full++
		}
	}
	switch {
	case full == n && n > 0: // Min would be different
		return nil
	case len(parts) == 1:
		b.one[0] = parts[0]
		b.parts = b.one[:]
	case len(parts) > 0:
		b.parts = slices.Clone(parts)
	}
	return b
}

// room has space for the parts of two lists and one more.
type room [2*maxParts + 1]part

// withFew is With if the result is a list; otherwise it returns nil.
func (b *Block) withFew(n int, w, mask, v uint32) *Block {
	var buf room
	parts, low := buf[:0], uint32(0)
	if b != nil {
		if b.warps != nil {
			return nil
		}
		parts, low = append(parts, b.parts...), b.Min
	}
	if v < low {
		return nil
	}
	parts = raise(parts, w, mask, v, false)
	if v == low {
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.val == low })
	}
	return listed(n, low, parts)
}

// joinFew is Join of two lists if the result is a list; otherwise it returns nil.
func (b *Block) joinFew(c *Block) *Block {
	var buf room
	low := max(b.Min, c.Min)
	parts := buf[:0]
	for _, p := range b.parts {
		if p.val > low {
			parts = append(parts, p)
		}
	}
	for _, p := range c.parts {
		if p.val > low {
			parts = raise(parts, p.warp, p.lanes, p.val, true)
		}
	}
	switch {
	case low == c.Min && slices.Equal(parts, c.parts):
		return c
	case low == b.Min && slices.Equal(parts, b.parts):
		return b
	}
	return listed(int(max(b.n, c.n)), low, parts)
}

// of returns a warp of a Block that is a list.
func (b *Block) of(w int) warp {
	x := warp{val: b.Min}
	for _, p := range b.parts {
		if int(p.warp) != w {
			continue
		}
		if p.lanes == ^uint32(0) {
			return warp{val: p.val}
		}
		if x.lanes == nil {
			x.lanes = new([32]uint32)
			for i := range x.lanes {
				x.lanes[i] = b.Min
			}
		}
		for i := range x.lanes {
			if p.lanes>>uint(i)&1 != 0 {
				x.lanes[i] = p.val
			}
		}
	}
	return x
}

// list reports whether g is a list and not a tree.
func (g *Grid) list() bool { return g == nil || g.kids == nil && g.blocks == nil }

// withHeld is With for a Grid that is a list.
func (g *Grid) withHeld(depth int, block uint32, b *Block) *Grid {
	out := &Grid{depth: int32(depth)}
	var old []held
	if g != nil {
		old, out.n = g.held, g.n
	}
	at := 0
	for at < len(old) && old[at].index < block {
		at++
	}
	there := at < len(old) && old[at].index == block
	switch {
	case there && b == nil:
		out.held = slices.Concat(old[:at], old[at+1:])
	case there:
		out.held = slices.Clone(old)
		out.held[at] = heldOf(block, b)
	case b == nil:
		out.held = old
	default:
		return g.inserted(depth, at, heldOf(block, b), max(b.n, int32(len(b.warps))))
	}
	if b != nil {
		out.n = max(out.n, b.n, int32(len(b.warps)))
	}
	return out.bound()
}

// inserted returns a list with h, of a block of n warps, inserted at an index.
func (g *Grid) inserted(depth, at int, h held, n int32) *Grid {
	var old []held
	if g != nil {
		old, n = g.held, max(g.n, n)
	}
	out := newList(depth, n, len(old)+1)
	copy(out.held, old[:at])
	out.held[at] = h
	copy(out.held[at+1:], old[at:])
	return out.bound()
}

// newList returns a list of k blocks of n warps each, to be filled in. A short list is allocated in one piece.
func newList(depth int, n int32, k int) *Grid {
	var out *Grid
	switch {
	case k <= 2:
		x := new(struct {
			Grid
			room [2]held
		})
		out = &x.Grid
		out.held = x.room[:k]
	case k <= 4:
		x := new(struct {
			Grid
			room [4]held
		})
		out = &x.Grid
		out.held = x.room[:k]
	case k <= 8:
		x := new(struct {
			Grid
			room [8]held
		})
		out = &x.Grid
		out.held = x.room[:k]
	default:
		out = &Grid{held: make([]held, k)}
	}
	out.depth, out.n = int32(depth), n
	return out
}

// WithLanes returns g with what is known of block replaced by b, with the lanes of mask in warp w set to v. The block
// has n warps.
func (g *Grid) WithLanes(depth int, block uint32, b *Block, n int, w, mask, v uint32) *Grid {
	if b != nil || v == 0 || mask == 0 || !g.list() {
		return g.With(depth, block, b.With(n, w, mask, v))
	}
	at := 0
	if g != nil {
		for at < len(g.held) && g.held[at].index < block {
			at++
		}
		if at < len(g.held) && g.held[at].index == block {
			return g.With(depth, block, b.With(n, w, mask, v))
		}
	}
	if n == 1 && mask == ^uint32(0) {
		return g.inserted(depth, at, held{index: block, all: Uniform(v)}, 1)
	}
	return g.inserted(depth, at, held{index: block, only: part{w, mask, v}}, int32(n))
}

// Unknown returns those of lanes of warp w of a block that g does not know up to epoch c.
func (g *Grid) Unknown(depth int, block, w, lanes, c uint32) uint32 {
	if g == nil || !g.list() {
		return g.At(depth, block).Unknown(w, lanes, c)
	}
	for i := range g.held {
		if h := &g.held[i]; h.index >= block {
			if h.index == block {
				return h.unknown(w, lanes, c)
			}
			break
		}
	}
	return lanes
}

// bound computes the bounds of a new list, and converts it to a tree if it is long.
func (g *Grid) bound() *Grid {
	if len(g.held) > maxHeld {
		return g.tree()
	}
	for i := range g.held {
		g.Max = max(g.Max, g.held[i].most())
	}
	return g
}

// tree converts a list to a tree.
func (g *Grid) tree() *Grid {
	var t *Grid
	for i := range g.held {
		t = t.withTree(int(g.depth), g.held[i].index, g.held[i].block(g.n))
	}
	return t
}

// joinLists is join for two lists.
func (g *Grid) joinLists(h *Grid) (out *Grid, asG, asH bool) {
	var buf [2 * maxHeld]held
	all := buf[:0]
	asG, asH = true, true
	n := max(g.n, h.n)
	for i, j := 0, 0; i < len(g.held) || j < len(h.held); {
		switch {
		case j == len(h.held) || i < len(g.held) && g.held[i].index < h.held[j].index:
			all, asH = append(all, g.held[i]), asH && g.held[i].most() == 0
			i++
		case i == len(g.held) || h.held[j].index < g.held[i].index:
			all, asG = append(all, h.held[j]), asG && h.held[j].most() == 0
			j++
		default:
			both, asX, asY := g.held[i].join(&h.held[j], n)
			all = append(all, both)
			asG, asH = asG && asX, asH && asY
			i, j = i+1, j+1
		}
	}
	if asG || asH {
		return pick(g, h, asG, asH)
	}
	out = newList(int(g.depth), n, len(all))
	copy(out.held, all)
	return out.bound(), false, false
}

// joinList is join for a tree and a list.
func (g *Grid) joinList(h *Grid) (out *Grid, asG, asH bool) {
	for i := range h.held {
		x := &h.held[i]
		if !x.within(g.At(int(h.depth), x.index)) {
			return g.join(h.tree())
		}
	}
	return g, true, false
}
