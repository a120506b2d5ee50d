package history

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// segmentBytes is the size of a segment, the unit of the fast history: the bytes that a warp accesses when each lane
// accesses the word of its lane number.
const segmentBytes = 128

// mask is a set of bytes of a segment.
type mask struct{ lo, hi uint64 }

// maskOf returns the bytes [from, end) of a segment.
func maskOf(from, end uint64) mask {
	m := below(end)
	b := below(from)
	return mask{m.lo &^ b.lo, m.hi &^ b.hi}
}

// below returns the first n bytes.
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

// word returns the bytes of a word that are in the set, as four bits.
func (m mask) word(i int) uint8 {
	x := m.lo
	if i >= 16 {
		x = m.hi
	}
	return uint8(x >> (uint(i) % 16 * 4) & 15)
}

// ranges calls f for the runs of consecutive bytes in the set.
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

// first returns the lowest byte in the set, or 128 if it is empty.
func (m mask) first() uint64 {
	if m.lo != 0 {
		return uint64(bits.TrailingZeros64(m.lo))
	}
	return 64 + uint64(bits.TrailingZeros64(m.hi))
}

// footprint says which bytes of a segment each lane of a warp accesses. Lanes are numbered from the lowest that
// accesses the segment, so warps that do the same with other lanes have the same footprint. A footprint is never
// changed.
type footprint struct {
	lanes uint32
	bytes [32]mask
}

// all returns the bytes that any lane accesses, and says whether no two lanes access the same byte.
func (f *footprint) all() (all mask, disjoint bool) {
	disjoint = true
	for m := f.lanes; m != 0; m &= m - 1 {
		b := f.bytes[bits.TrailingZeros32(m)]
		disjoint = disjoint && !b.overlaps(all)
		all = all.or(b)
	}
	return all, disjoint
}

// turned rotates the lanes of a footprint up by n.
func (f *footprint) turned(n uint8) (out footprint) {
	out.lanes = bits.RotateLeft32(f.lanes, int(n))
	for m := f.lanes; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		out.bytes[(i+int(n))%32] = f.bytes[i]
	}
	return out
}

// canonical rotates the lanes of a footprint so that the lowest becomes lane 0, and gives the number of that lane.
func (f *footprint) canonical() (footprint, uint8) {
	n := uint8(bits.TrailingZeros32(f.lanes))
	return f.turned(32 - n), n
}

// shapeKey determines which bytes of which segments an event accesses, relative to the segment of its address.
type shapeKey struct {
	site   *Site
	within uint8  // offset of the event's address in its segment
	shift  uint8  // of rows: RowShift plus one; 0: no rows
	lanes  uint32 // the lanes concerned
	exec   uint32 // the lanes that executed the instruction
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

// is reports whether k equals keyOf(site, e, lanes). Comparing field by field is faster than making the key first.
func (k *shapeKey) is(e *event.Event, lanes uint32) bool {
	return k.exec == e.Mask && k.lanes == lanes && k.within == uint8(e.Addr%segmentBytes) && k.stride == e.Stride &&
		(e.Flags&event.FlagRows == 0 && k.shift == 0 || e.Flags&event.FlagRows != 0 && k.shift == e.RowShift+1 && k.rows == e.RowStride())
}

// shape is an event's accesses, divided by segment.
type shape struct {
	key   shapeKey
	parts []piece
}

// piece is an event's access to one segment.
type piece struct {
	segment int64  // relative to the segment of the event's address
	access  uint32 // index in Fast.kinds
	lane    uint8  // the lane that is lane 0 of the access
	lanes   uint32 // the lanes of the warp
}

// manyShapes is the most shapes of a site that are kept. A site with more is irregular, and is judged by words.
const manyShapes = 96

// shapeOf returns the shape of an event's lanes; nil if its site has too many shapes.
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

// kind is an access to a segment by a warp. One kind represents all accesses that differ only in warp, first lane and
// epoch.
type kind struct {
	site     *Site
	exec     uint32 // the lanes that executed the instruction, numbered as in print
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

// accessOf returns the kind of an access, as an index in h.kinds, and the lane that is its lane 0.
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
