package history

import "unsafe"

// Bytes estimates the memory that the history uses now, without the overhead of Go's maps and lists of numbers.
func (h *Fast) Bytes() (n uint64) {
	n += uint64(cap(h.moves.table)) * uint64(unsafe.Sizeof(move{}))
	n += uint64(len(h.prints)) * uint64(unsafe.Sizeof(footprint{})) * 2
	n += uint64(cap(h.kinds)) * uint64(unsafe.Sizeof(kind{}))
	n += uint64(cap(h.histories)) * uint64(unsafe.Sizeof(interned{}))
	for i := range h.histories {
		n += uint64(len(h.histories[i].records)) * uint64(unsafe.Sizeof(record{}))
		if h.histories[i].pattern != nil {
			n += uint64(unsafe.Sizeof(pattern{}))
		}
	}
	pages := func(p *page) {
		if p == nil {
			return
		}
		n += uint64(unsafe.Sizeof(*p))
		n += uint64(len(p.past)) * uint64(unsafe.Sizeof(past{}))
		if p.summaries != nil {
			n += uint64(unsafe.Sizeof(*p.summaries))
		}
		for _, k := range p.saved {
			n += uint64(len(k)) * uint64(unsafe.Sizeof(savedValues{}))
		}
	}
	for _, c := range h.chunks {
		n += uint64(unsafe.Sizeof(*c))
		for _, p := range &c.pages {
			pages(p)
		}
	}
	for _, x := range h.launches {
		for _, l := range x.logs {
			n += l.bytes()
		}
	}
	for _, l := range h.ended {
		n += l.bytes()
	}
	for _, w := range h.windows {
		if w.loads != nil {
			n += w.loads.bytes()
		}
		for _, p := range w.pages {
			pages(p)
		}
	}
	n += uint64(len(h.words.blocks)) * slabBlock * uint64(unsafe.Sizeof([wordsPerSegment]word{}))
	n += uint64(len(h.parts.blocks)) * slabBlock * uint64(unsafe.Sizeof(parts{}))
	n += uint64(cap(h.stamps)) * uint64(unsafe.Sizeof(stamp{}))
	for _, b := range h.lists.blocks {
		n += uint64(unsafe.Sizeof(*b))
		for i := range b {
			l := &b[i]
			n += uint64(cap(l.entries)) * uint64(unsafe.Sizeof(entry{}))
			if x := l.index; x != nil {
				n += uint64(cap(x.slots))*4 + uint64(cap(x.groups))*uint64(unsafe.Sizeof(group{}))
			}
		}
	}
	n += uint64(len(h.sets.blocks)) * setsBlock * uint64(unsafe.Sizeof(member{}))
	for _, s := range h.sites {
		if s != nil {
			n += uint64(unsafe.Sizeof(*s))
		}
	}
	return n
}
