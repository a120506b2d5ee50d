package history

import "math/bits"

// parts is used for a word that weak accesses of one or two bytes have accessed. Each byte has a history like that of a
// word: nothing, or accesses with one stamp or with a set of stamps. Both bytes of a two-byte access have the same
// stamps. With parts, threads that use different bytes of a word do not need a list, as in arrays of bytes with
// irregular accesses.
type parts [wordBytes]word

// plainPart is plain for an access to a part of a word.
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

// eachPart calls f for the entries of a word that has parts.
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
