package history

import "math/bits"

// parts is what was done to each byte of a word which weak accesses of a byte or of two have accessed, as if it were a word of its own:
// nothing, or accesses that have one stamp or a set of them. Both bytes of an access of two have the same stamps. So threads that
// use the bytes of a word apart, as in arrays of bytes that no pattern of addresses describes, need no list.
type parts [wordBytes]word

// plainPart is plain for an access of a part of a word.
func (h *Fast) plainPart(w *Warp, x *word, number, lane uint32) bool {
	switch {
	case x.stamp == 0:
		n, p := h.parts.make()
		*x, *p = word{stamp: n | partsFlag}, parts{}
	case x.stamp&partsFlag == 0:
		return false
	}
	p := h.parts.of(x.stamp &^ partsFlag)
	was := *p
	from := w.Batch.AddrOf(w.Event, bits.TrailingZeros32(lane)) % wordBytes
	for i := from; i < from+uint64(w.Event.Size); i++ {
		y := &p[i]
		switch {
		case y.stamp == 0:
			*y = word{number, lane}
		case y.stamp == number && !w.Site.Side.Write:
			y.lanes |= lane
		case !h.own(w, y, number, lane):
			*p = was
			return false
		}
	}
	return true
}

// eachPart calls f for the entries of a word whose bytes have histories of their own.
func (h *Fast) eachPart(x *word, f func(e *entry)) {
	for i, y := range h.parts.of(x.stamp &^ partsFlag) {
		if y.stamp == 0 {
			continue
		}
		for _, m := range h.members(y.stamp) {
			size := int(h.stamps[m.stamp].site.Event.Size)
			if i%size == 0 {
				f(&entry{stamp: m.stamp, lanes: y.lanes, bytes: (1<<size - 1) << i, values: m.values})
			}
		}
	}
}
