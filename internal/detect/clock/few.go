package clock

import "slices"

// Most clocks of programs with locks know of a few threads only. They are lists: a Block of what threads are known
// further than all others, a Grid of the blocks that anything is known of.

// part is lanes of a warp that are known up to val, further than the Block's Min.
type part struct{ warp, lanes, val uint32 }

// maxParts is how many parts a Block has before each warp has a place of its own.
const maxParts = 6

// held is what is known of a block.
type held struct {
	index uint32
	*Block
}

// maxHeld is how many blocks a Grid lists before it is a tree.
const maxHeld = 12

// raise adds to parts that lanes of warp w are known up to v: in place of what they say of these lanes, or with max only
// where they say less.
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

// listed gives the Block of n warps that knows all threads up to low, and parts, which may change afterwards. It gives nil
// when it is better not a list.
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
	case full == n && n > 0: // its Min is another
		return nil
	case len(parts) == 1:
		b.one[0] = parts[0]
		b.parts = b.one[:]
	case len(parts) > 0:
		b.parts = slices.Clone(parts)
	}
	return b
}

// room for the parts of two lists, and one more.
type room [2*maxParts + 1]part

// withFew is With where the outcome is a list; nil when it is not.
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

// joinFew is Join of two lists where the outcome is one; nil when it is not.
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

// of gives a warp's part of a Block that is a list.
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

// list says that g is a list and not a tree.
func (g *Grid) list() bool { return g == nil || g.kids == nil && g.blocks == nil }

// withHeld is With of a Grid that is a list.
func (g *Grid) withHeld(depth int, block uint32, b *Block) *Grid {
	out := &Grid{depth: int32(depth)}
	var old []held
	if g != nil {
		old = g.held
	}
	at, there := slices.BinarySearchFunc(old, block, func(h held, block uint32) int { return int(int64(h.index) - int64(block)) })
	switch {
	case there && b == nil:
		out.held = slices.Concat(old[:at], old[at+1:])
	case there:
		out.held = slices.Clone(old)
		out.held[at].Block = b
	case b == nil:
		out.held = old
	default:
		out.held = append(append(append(make([]held, 0, len(old)+1), old[:at]...), held{block, b}), old[at:]...)
	}
	return out.bound()
}

// bound computes the bounds of a new list, and makes it a tree when it is long.
func (g *Grid) bound() *Grid {
	if len(g.held) > maxHeld {
		return g.tree()
	}
	for _, h := range g.held {
		g.Max = max(g.Max, h.Max)
	}
	return g
}

// tree gives a list as a tree.
func (g *Grid) tree() *Grid {
	var t *Grid
	for _, h := range g.held {
		t = t.withTree(int(g.depth), h.index, h.Block)
	}
	return t
}

// joinLists is join of two lists.
func (g *Grid) joinLists(h *Grid) (out *Grid, asG, asH bool) {
	var buf [2 * maxHeld]held
	all := buf[:0]
	asG, asH = true, true
	for i, j := 0, 0; i < len(g.held) || j < len(h.held); {
		switch {
		case j == len(h.held) || i < len(g.held) && g.held[i].index < h.held[j].index:
			all, asH = append(all, g.held[i]), asH && g.held[i].Max == 0
			i++
		case i == len(g.held) || h.held[j].index < g.held[i].index:
			all, asG = append(all, h.held[j]), asG && h.held[j].Max == 0
			j++
		default:
			both, asX, asY := g.held[i].Block.join(h.held[j].Block)
			all = append(all, held{g.held[i].index, both})
			asG, asH = asG && asX, asH && asY
			i, j = i+1, j+1
		}
	}
	if asG || asH {
		return pick(g, h, asG, asH)
	}
	return (&Grid{depth: g.depth, held: slices.Clone(all)}).bound(), false, false
}

// joinList is join of a tree and a list.
func (g *Grid) joinList(h *Grid) (out *Grid, asG, asH bool) {
	for _, x := range h.held {
		if _, covers, _ := g.At(int(h.depth), x.index).join(x.Block); !covers {
			return g.join(h.tree())
		}
	}
	return g, true, false
}
