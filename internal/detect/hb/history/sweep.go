package history

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/hb/order"
)

// Interned values are never dropped one by one. When there are many, and a launch begins while none is running, all
// accesses are turned into summaries of launches, and all interned values are dropped.

// sweepFrom is the number of stamps and histories at which that happens, mostSummaries the number of sets of summaries.
const (
	sweepFrom     = 1 << 20
	mostSummaries = 1 << 18
)

// SweepFrom sets the number of stamps and histories at which the history sweeps. It is for tests.
func (h *Fast) SweepFrom(n int) { h.limit = n }

// sweep turns all accesses into summaries, except those that summaries cannot represent.
func (h *Fast) sweep() {
	for _, l := range h.launches {
		if !l.Over() {
			return
		}
	}
	fresh := NewFast(h.order)
	for _, c := range h.chunks {
		for _, p := range &c.pages {
			if p != nil {
				h.summarise(p, fresh)
			}
		}
	}
	fresh.ended, fresh.launches = h.ended, h.launches
	fresh.mostLoads, fresh.mostEnded = h.mostLoads, h.mostEnded
	fresh.chunks, fresh.host, fresh.limit = h.chunks, h.host, max(h.limit, 2*(len(fresh.stamps)+len(fresh.histories)))
	*h = *fresh
}

// whole reports whether others will know all of a launch or none of it, whatever launches agents begin later.
func whole(l *order.Launch) bool { return l.Over() && !l.Published() }

// summarise moves the accesses to a page to a fresh history, as summaries. What summaries cannot represent it moves as
// entries of words: the accesses of launches that have not ended, or of whose threads others may know some, and the
// last strong writes of sync variables.
func (h *Fast) summarise(p *page, fresh *Fast) {
	for i := range p.segments {
		s := &p.segments[i]
		n := p.summaryOf(i)
		old := p.hasPast(i)
		if n == 0 && s.history == 0 && !old {
			continue
		}
		var all []summary
		for _, x := range h.summaries.list[n] {
			all = addSummary(all, x)
		}
		if old || s.history != 0 && s.history&wordsFlag == 0 && !whole(p.launch.Launch) {
			h.split(p, i)
		}
		if s.history&wordsFlag == 0 {
			for _, r := range h.histories[s.history].records {
				k := &h.kinds[r.access]
				all = addSummary(all, summary{k.site, p.launch.Launch, k.all})
			}
			*s = segment{}
		} else {
			words := h.words.of(s.history &^ wordsFlag)
			*s = segment{}
			for at := range words {
				all = h.moveWord(p, i, at, &words[at], fresh, all)
			}
		}
		if p.summaries == nil {
			p.summaries = new([pageSegs]uint32)
		}
		p.summaries[i] = fresh.summaries.intern(all)
	}
	if p.launch != nil {
		p.leave()
	}
	p.saved, p.past, p.launch = nil, nil, nil
}

// moveWord is summarise for a word. It gives the summaries of the word's segment, extended by those of the word.
func (h *Fast) moveWord(p *page, i, at int, w *word, fresh *Fast, all []summary) []summary {
	address := p.address + uint64(i*segmentBytes+at*wordBytes)
	var entries []entry
	h.each(w, func(e *entry) {
		if e.lanes != 0 && e.bytes != 0 {
			entries = append(entries, *e)
		}
	})
	exact := slices.ContainsFunc(entries, func(e entry) bool {
		x := &h.stamps[e.stamp]
		unit := x.site.Unit
		from := (address + uint64(bits.TrailingZeros8(e.bytes))) &^ (unit - 1)
		return !whole(x.launch) || x.site.Strong && x.site.Side.Write && h.order.Made(from, uint8(unit), order.ChainID(e.more))
	})
	for _, e := range entries {
		x := h.stamps[e.stamp]
		if exact {
			e.stamp = fresh.stampOf(fresh.stateOf(x.site), x)
			e.setLast(false)
			w := fresh.wordAt(p, i, address)
			fresh.listed(w).add(fresh, w, e)
			continue
		}
		b := mask{lo: uint64(e.bytes) << (at * wordBytes)}
		if at >= wordsPerSegment/2 {
			b = mask{hi: uint64(e.bytes) << ((at - wordsPerSegment/2) * wordBytes)}
		}
		all = addSummary(all, summary{x.site, x.launch, b})
	}
	return all
}
