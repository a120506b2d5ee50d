package history

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// segmentBytes is the unit of the fast history, the bytes that a warp accesses in lane order, a word each.
const segmentBytes = 128

// mask is a set of bytes of a segment.
type mask struct{ lo, hi uint64 }

// maskOf gives the bytes [from, end) of a segment.
func maskOf(from, end uint64) mask {
	m := below(end)
	b := below(from)
	return mask{m.lo &^ b.lo, m.hi &^ b.hi}
}

// below gives the first n bytes.
func below(n uint64) mask {
	switch {
	case n >= 128:
		return mask{^uint64(0), ^uint64(0)}
	case n >= 64:
		return mask{^uint64(0), 1<<(n-64) - 1}
	}
	return mask{1<<n - 1, 0}
}

func (m mask) or(o mask) mask       { return mask{m.lo | o.lo, m.hi | o.hi} }
func (m mask) and(o mask) mask      { return mask{m.lo & o.lo, m.hi & o.hi} }
func (m mask) without(o mask) mask  { return mask{m.lo &^ o.lo, m.hi &^ o.hi} }
func (m mask) empty() bool          { return m.lo|m.hi == 0 }
func (m mask) overlaps(o mask) bool { return m.lo&o.lo|m.hi&o.hi != 0 }

// word gives the bytes of a word, as four bits.
func (m mask) word(i int) uint8 {
	x := m.lo
	if i >= 16 {
		x = m.hi
	}
	return uint8(x >> (uint(i) % 16 * 4) & 15)
}

// ranges calls f for the runs of bytes in the set.
func (m mask) ranges(f func(from, end uint64)) {
	for at := uint64(0); at < segmentBytes; {
		rest := m.without(below(at))
		if rest.empty() {
			return
		}
		from := rest.first()
		inverse := mask{^m.lo, ^m.hi}.without(below(from))
		end := inverse.first()
		f(from, end)
		at = end
	}
}

// first gives the lowest byte of the set, 128 of an empty one.
func (m mask) first() uint64 {
	if m.lo != 0 {
		return uint64(bits.TrailingZeros64(m.lo))
	}
	return 64 + uint64(bits.TrailingZeros64(m.hi))
}

// footprint is which bytes of a segment each lane of a warp accesses. Lanes are counted from the lowest that accesses it: warps
// that do the same by other lanes have one footprint. It is not changed.
type footprint struct {
	lanes uint32
	bytes [32]mask
}

// all gives the bytes that any lane accesses, and whether no two lanes access the same.
func (f *footprint) all() (all mask, disjoint bool) {
	disjoint = true
	for m := f.lanes; m != 0; m &= m - 1 {
		b := f.bytes[bits.TrailingZeros32(m)]
		disjoint = disjoint && !b.overlaps(all)
		all = all.or(b)
	}
	return all, disjoint
}

// turned gives a footprint with its lanes counted from n lanes below.
func (f *footprint) turned(n uint8) (out footprint) {
	out.lanes = bits.RotateLeft32(f.lanes, int(n))
	for m := f.lanes; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		out.bytes[(i+int(n))%32] = f.bytes[i]
	}
	return out
}

// canonical gives a footprint of lanes with its lanes counted from the lowest, and which that is.
func (f *footprint) canonical() (footprint, uint8) {
	n := uint8(bits.TrailingZeros32(f.lanes))
	return f.turned(32 - n), n
}

// shapeKey is what decides which segments an event accesses and how, but for how far its address is from others.
type shapeKey struct {
	site   *Site
	within uint8  // its segment, of the event's address
	shift  uint8  // of rows, plus one; 0: none
	lanes  uint32 // of those that executed it
	exec   uint32
	stride int64
	rows   int64
}

func keyOf(s *Site, e *event.Event, lanes uint32) shapeKey {
	k := shapeKey{site: s, within: uint8(e.Addr % segmentBytes), lanes: lanes, exec: e.Mask, stride: e.Stride}
	if e.Flags&event.FlagRows != 0 {
		k.shift, k.rows = e.RowShift+1, e.RowStride()
	}
	return k
}

// is says that k is keyOf an event of its site. (Making that first costs more than the comparison.)
func (k *shapeKey) is(e *event.Event, lanes uint32) bool {
	return k.exec == e.Mask && k.lanes == lanes && k.within == uint8(e.Addr%segmentBytes) && k.stride == e.Stride &&
		(e.Flags&event.FlagRows == 0 && k.shift == 0 || e.Flags&event.FlagRows != 0 && k.shift == e.RowShift+1 && k.rows == e.RowStride())
}

// shape is the parts of an event, one for each segment.
type shape struct {
	key   shapeKey
	parts []piece
}

// piece is what an event accesses of a segment.
type piece struct {
	segment int64 // counted from that of the event's address
	access  uint32
	lane    uint8  // from which those of the access are counted
	lanes   uint32 // of the warp
}

// manyShapes is how many shapes of a site are kept: one with more follows no pattern, and is judged by words.
const manyShapes = 96

// shapeOf gives the parts of an event's lanes, nil where its site has too many shapes.
func (h *Fast) shapeOf(b *event.Batch, e *event.Event, k shapeKey, site *siteState) *shape {
	s := h.shapes[k]
	if s != nil || site.shapes >= manyShapes {
		return s
	}
	site.shapes++
	s = &shape{key: k}
	var prints []footprint
	base := e.Addr / segmentBytes
	for m := k.lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := b.AddrOf(e, lane)
		for end := at + uint64(e.Size); at < end; {
			n := at / segmentBytes
			next := min(end, (n+1)*segmentBytes)
			i := 0
			for i < len(s.parts) && s.parts[i].segment != int64(n-base) {
				i++
			}
			if i == len(s.parts) {
				s.parts = append(s.parts, piece{segment: int64(n - base)})
				prints = append(prints, footprint{})
			}
			prints[i].lanes |= m & -m
			prints[i].bytes[lane] = prints[i].bytes[lane].or(maskOf(at-n*segmentBytes, next-n*segmentBytes))
			at = next
		}
	}
	for i := range s.parts {
		p := &s.parts[i]
		p.lanes = prints[i].lanes
		p.access, p.lane = h.accessOf(k.site, k.exec, &prints[i])
	}
	h.shapes[k] = s
	return s
}

// kind is an access of a segment by a warp, one for all that are alike but for warp, lane and epoch.
type kind struct {
	site     *Site
	exec     uint32 // who executed the instruction, lanes counted as in the footprint
	print    *footprint
	all      mask
	disjoint bool // no two lanes access the same byte
	write    bool
}

type kindKey struct {
	site  *Site
	exec  uint32
	print *footprint
}

// accessOf gives the number of the access of a site with a footprint of a warp's lanes, and the lane that it is counted from.
func (h *Fast) accessOf(s *Site, exec uint32, f *footprint) (uint32, uint8) {
	c, lane := f.canonical()
	print := h.prints[c]
	if print == nil {
		print = &c
		h.prints[c] = print
	}
	k := kindKey{s, bits.RotateLeft32(exec, -int(lane)), print}
	n, ok := h.kindOf[k]
	if !ok {
		n = uint32(len(h.kinds))
		all, disjoint := c.all()
		h.kinds = append(h.kinds, kind{site: s, exec: k.exec, print: print, all: all, disjoint: disjoint, write: s.Side.Write})
		h.kindOf[k] = n
	}
	return n, lane
}
