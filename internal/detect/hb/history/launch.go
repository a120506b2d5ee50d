package history

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
)

// launchState is what the fast history knows of a launch.
type launchState struct {
	*order.Launch
	hosts  []Record        // accesses of the host that its threads may not know of
	logs   [classes]*loads // its deferred loads and atomic operations
	others []*loads        // deferred accesses of launches that it does not follow
}

// enter makes a launch the current one.
func (h *Fast) enter(l *order.Launch) {
	if h.current != nil && h.current.Launch == l {
		return
	}
	for _, x := range h.launches {
		if x.Launch == l {
			h.current = x
			return
		}
	}
	if len(h.stamps)+len(h.histories)+int(h.sets.n/4) > h.limit || len(h.summaries.list) > mostSummaries {
		h.sweep()
	}
	x := &launchState{Launch: l}
	first := l.First()
	for r := range h.host.all() {
		if !first.After(&r.Stamp) {
			x.hosts = append(x.hosts, *r)
		}
	}
	h.beginLoads(x)
	h.launches = slices.DeleteFunc(h.launches, func(x *launchState) bool { return x.Over() })
	h.launches = append(h.launches, x)
	h.current = x
}

// pass makes the current launch the owner of a page's segments. The accesses of the previous launch are split into
// words if that launch is still running. If it has ended, they are summarised. If it has ended but others may know some
// of its threads and not others, or races with it must name a thread, they are kept unchanged in page.past.
func (h *Fast) pass(p *page) {
	if l := p.launch; l != nil {
		var now *past
		for i := range p.segments {
			s := &p.segments[i]
			if s.history == 0 || s.history&wordsFlag != 0 {
				continue
			}
			if !l.Over() {
				h.split(p, i)
				continue
			}
			p.supersede(h, i)
			if whole(l.Launch) && (h.current == nil || h.current.Follows(l.Launch)) {
				if p.summaries == nil {
					p.summaries = new([pageSegs]uint32)
				}
				p.summaries[i] = h.summaries.after(h, p.summaries[i], s.history, l.Launch)
			} else {
				if now == nil {
					now = &past{launch: l.Launch}
				}
				now.segments[i] = *s
			}
			*s = segment{}
		}
		if l.Over() {
			p.saved = nil
			p.past = slices.DeleteFunc(p.past, func(x *past) bool { return x.segments == [pageSegs]segment{} })
		}
		p.leave()
		if now != nil {
			p.past = append(p.past, now)
		}
	}
	p.launch, p.mayRace = h.current, false
	for i := range p.segments {
		p.mayRace = p.mayRace || slices.ContainsFunc(h.summaries.list[p.summaryOf(i)], func(s summary) bool { return !h.current.Follows(s.launch) })
	}
	for _, x := range p.past {
		p.mayRace = p.mayRace || !h.current.Follows(x.launch)
	}
}

// leave records that another launch is about to access a page.
func (p *page) leave() { p.accessed(p.launch.Launch) }

// accessed records that a launch other than the page's has accessed it.
func (p *page) accessed(l *order.Launch) {
	p.earlier = append(slices.DeleteFunc(p.earlier, func(o *order.Launch) bool { return o == l || l.Follows(o) }), l)
}

// past is the accesses of a launch that has ended to the segments of a page. It has none for segments that are split:
// they are in the words.
type past struct {
	launch   *order.Launch
	segments [pageSegs]segment
}

// supersede drops the accesses of earlier launches to a segment if the page's launch follows the earlier launch and has
// accessed at least the same bytes by the same sites. Whoever knows the later accesses knows the earlier ones.
func (p *page) supersede(h *Fast, i int) {
	for _, x := range p.past {
		if s := &x.segments[i]; s.history != 0 && p.launch.Follows(x.launch) && h.repeats(p.segments[i].history, s.history) {
			*s = segment{}
		}
	}
}

// repeats reports whether each access of history o has a counterpart in history n: by the same site, to at least the
// same bytes.
func (h *Fast) repeats(n, o uint32) bool {
	for _, r := range h.histories[o].records {
		k := &h.kinds[r.access]
		rest := k.all
		for _, r := range h.histories[n].records {
			if x := &h.kinds[r.access]; x.site == k.site {
				rest = rest.without(x.all)
			}
		}
		if !rest.empty() {
			return false
		}
	}
	return true
}

// hasPast reports whether accesses of earlier launches to a segment are kept unchanged.
func (p *page) hasPast(i int) bool {
	return slices.ContainsFunc(p.past, func(x *past) bool { return x.segments[i].history != 0 })
}

// summaryOf returns the accesses of ended launches to a segment: an index in summaries.list.
func (p *page) summaryOf(i int) uint32 {
	if p.summaries == nil {
		return 0
	}
	return p.summaries[i]
}

// summary is the bytes of a segment that threads of an ended launch accessed by a site.
type summary struct {
	site   *Site
	launch *order.Launch
	bytes  mask
}

// summaries holds interned sets of summaries.
type summaries struct {
	list   [][]summary // list[0] is the empty set
	byHash map[uint64]uint32
	memo   map[summaryKey]uint32
	launch *order.Launch // the launch that memo is about
}

type summaryKey struct{ summaries, history uint32 }

func newSummaries() summaries {
	return summaries{list: make([][]summary, 1), byHash: map[uint64]uint32{}, memo: map[summaryKey]uint32{}}
}

// after returns the summaries of a segment after the end of launch l, which left a history there. from are those
// before.
func (c *summaries) after(h *Fast, from, history uint32, l *order.Launch) uint32 {
	if c.launch != l {
		clear(c.memo)
		c.launch = l
	}
	k := summaryKey{from, history}
	n, ok := c.memo[k]
	if !ok {
		all := slices.Clone(c.list[from])
		for _, r := range h.histories[history].records {
			x := &h.kinds[r.access]
			all = addSummary(all, summary{x.site, l, x.all})
		}
		n = c.intern(all)
		c.memo[k] = n
	}
	return n
}

// addSummary adds a summary to others. It replaces what the same site did in launches that the new launch follows.
func addSummary(all []summary, now summary) []summary {
	kept := all[:0]
	for _, s := range all {
		if s.site == now.site && s.launch == now.launch {
			now.bytes = now.bytes.or(s.bytes)
			continue
		}
		if s.site == now.site && now.launch.Follows(s.launch) {
			s.bytes = s.bytes.without(now.bytes)
		}
		if !s.bytes.empty() {
			kept = append(kept, s)
		}
	}
	return append(kept, now)
}

func (c *summaries) intern(all []summary) uint32 {
	if len(all) == 0 {
		return 0
	}
	slices.SortFunc(all, func(x, y summary) int {
		return int(x.site.Number)<<20 - int(y.site.Number)<<20 + int(x.launch.Info.ID) - int(y.launch.Info.ID)
	})
	key := uint64(0)
	for _, s := range all {
		key = (key ^ uint64(s.site.Number)<<32 ^ uint64(s.launch.Info.ID)) * 0x9e3779b97f4a7c15
		key = (key ^ key>>31 ^ s.bytes.lo) * 0xd6e8feb86659fd93
		key = (key ^ key>>31 ^ s.bytes.hi) * 0xff51afd7ed558ccd
	}
	for ; ; key++ {
		n, ok := c.byHash[key]
		if !ok {
			n = uint32(len(c.list))
			c.list = append(c.list, all)
			c.byHash[key] = n
			return n
		}
		if slices.Equal(c.list[n], all) {
			return n
		}
	}
}

// judgeSummary finds the races of an access to the bytes [from, end) with the summarised accesses to the segment at
// base.
func (h *Fast) judgeSummary(a *Access, n uint32, base, from, end uint64, race func(*Access, Race)) {
	for _, s := range h.summaries.list[n] {
		both := s.bytes.and(maskOf(max(from, base)-base, min(end, base+segmentBytes)-base))
		if both.empty() || !a.Site.Side.Write && !s.site.Side.Write || a.Actor.Knows(s.launch) {
			continue
		}
		r := Record{Site: s.site, Stamp: order.Stamp{Launch: s.launch}}
		c := detect.Classify(s.site.Side, a.Site.Side, detect.Relation{OtherDevice: a.Actor.OtherDevice(s.launch), Nested: a.Actor.Nested(s.launch), Assumed: a.Actor.Assumes(&r.Stamp)})
		if c == detect.NoRace {
			continue
		}
		both.ranges(func(lo, hi uint64) {
			r.From, r.End = base+lo, base+hi
			race(a, Race{c, &r, base + lo, base + hi})
		})
	}
}

// pages calls f for the pages of global memory that overlap [from, end), in order of address.
func (h *Fast) pages(from, end uint64, f func(p *page)) {
	visit := func(n uint64, c *chunk) {
		for i, p := range &c.pages {
			if at := (n*chunkSize + uint64(i)) * pageBytes; p != nil && at < end && from < at+pageBytes {
				f(p)
			}
		}
	}
	if first, last := from/chunkBytes, (end-1)/chunkBytes; last-first < uint64(len(h.chunks)) {
		for n := first; n <= last; n++ {
			if c := h.chunks[n]; c != nil {
				visit(n, c)
			}
		}
		return
	}
	var all []uint64
	for n := range h.chunks {
		all = append(all, n)
	}
	slices.Sort(all)
	for _, n := range all {
		visit(n, h.chunks[n])
	}
}

// judgeHost finds the races of an access by the host.
func (h *Fast) judgeHost(a *Access, race func(*Access, Race)) {
	h.performLoads(a)
	for _, i := range h.host.overlapping(a.From, a.End) {
		h.judgeHosts(a, &h.host.list[i].Record, a.From, a.End, race)
	}
	h.pages(a.From, a.End, func(p *page) {
		for i := range p.segments {
			base := p.address + uint64(i)*segmentBytes
			from, end := max(a.From, base), min(a.End, base+segmentBytes)
			if from >= end {
				continue
			}
			h.judgeSummary(a, p.summaryOf(i), base, from, end, race)
			for _, x := range p.past {
				h.judgeSegment(a, x.launch, &x.segments[i], base, from, end, race)
			}
			s := &p.segments[i]
			if s.history&wordsFlag == 0 {
				if s.history != 0 {
					h.judgeSegment(a, p.launch.Launch, s, base, from, end, race)
				}
				continue
			}
			for at := from; at < end; at = (at + wordBytes) &^ (wordBytes - 1) {
				word := at &^ (wordBytes - 1)
				bytes := uint8(1<<(min(word+wordBytes, end)-word) - 1<<(at-word))
				h.judgeWord(a, &h.words.of(s.history &^ wordsFlag)[word%segmentBytes/wordBytes], word, bytes, race)
			}
		}
	})
}

// judgeHosts finds the race of an access, in the bytes [from, end), with one of the host.
func (h *Fast) judgeHosts(a *Access, r *Record, from, end uint64, race func(*Access, Race)) {
	from, end = max(a.From, r.From, from), min(a.End, r.End, end)
	if from >= end || a.Memory.Shared || !a.Site.Side.Write && !r.Site.Side.Write || a.Actor.After(&r.Stamp) {
		return
	}
	if c := detect.Classify(r.Site.Side, a.Site.Side, detect.Relation{Assumed: a.Actor.Assumes(&r.Stamp)}); c != detect.NoRace {
		race(a, Race{c, r, from, end})
	}
}

// judgeSegment finds the races of an access by the host to the bytes [from, end) with the accesses of a launch to a
// segment.
func (h *Fast) judgeSegment(a *Access, l *order.Launch, s *segment, base, from, end uint64, race func(*Access, Race)) {
	if a.Actor.Knows(l) {
		return
	}
	for _, r := range h.histories[s.history].records {
		k := &h.kinds[r.access]
		if !a.Site.Side.Write && !k.write {
			continue
		}
		var both mask
		out := Record{Site: k.site, Stamp: order.Stamp{Launch: l, Epoch: s.epoch + r.epoch}}
		warp := s.warp() + r.warp
		lanes := a.Actor.Unknown(l, warp, bits.RotateLeft32(k.print.lanes, int(s.lane()+r.lane)&31), s.epoch+r.epoch)
		for m := lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			b := k.print.bytes[(lane-int(s.lane()+r.lane))&31].and(maskOf(from-base, end-base))
			if !b.empty() && both.empty() {
				out.Stamp.Warp, out.Stamp.Lane = warp, lane
			}
			both = both.or(b)
		}
		if c := detect.Classify(k.site.Side, a.Site.Side, detect.Relation{Assumed: a.Actor.Assumes(&out.Stamp)}); c != detect.NoRace {
			both.ranges(func(lo, hi uint64) { race(a, Race{c, &out, base + lo, base + hi}) })
		}
	}
}

// recordHost records an access of the host.
func (h *Fast) recordHost(a *Access) {
	r := Record{Site: a.Site, Stamp: a.Actor.Stamp(), From: a.From, End: a.End}
	h.host.supersede(r)
	for _, x := range h.launches {
		if !x.Over() {
			x.hosts = append(x.hosts, r)
		}
	}
}

// Reuse drops the records of the bytes [from, end) of global memory, which became an allocation or ceased to be one.
func (h *Fast) Reuse(from, end uint64) {
	h.reuseLoads(from, end)
	h.pages(from, end, func(p *page) {
		for i := range p.segments {
			base := p.address + uint64(i)*segmentBytes
			lo, hi := max(from, base), min(end, base+segmentBytes)
			switch {
			case lo >= hi:
			case lo == base && hi == base+segmentBytes:
				h.clearSegment(p, i)
			default:
				h.reuse(p, i, lo, hi)
			}
		}
	})
	h.host.cut(from, end)
	for _, x := range h.launches {
		x.hosts = withoutRange(x.hosts, from, end)
	}
}

// reuse is Reuse for some bytes of a segment.
func (h *Fast) reuse(p *page, i int, from, end uint64) {
	base := p.address + uint64(i)*segmentBytes
	gone := maskOf(from-base, end-base)
	if p.summaryOf(i) != 0 {
		var all []summary
		for _, s := range h.summaries.list[p.summaries[i]] {
			if s.bytes = s.bytes.without(gone); !s.bytes.empty() {
				all = append(all, s)
			}
		}
		p.summaries[i] = h.summaries.intern(all)
	}
	if p.segments[i].history == 0 && !p.hasPast(i) {
		return
	}
	for w := range wordsPerSegment {
		b := gone.word(w)
		if b == 0 {
			continue
		}
		x := h.wordAt(p, i, base+uint64(w)*wordBytes)
		if b == 15 || x.stamp == 0 {
			h.drop(x)
			continue
		}
		l := h.listed(x)
		for j := range l.entries {
			if e := &l.entries[j]; e.bytes&b != 0 {
				if e.bytes &^= b; e.bytes == 0 {
					e.lanes = 0
				}
			}
		}
	}
}

// withoutRange returns records of the host without the bytes [from, end).
func withoutRange(records []Record, from, end uint64) (kept []Record) {
	if from >= end || !slices.ContainsFunc(records, func(r Record) bool { return r.From < end && from < r.End }) {
		return records
	}
	for _, r := range records {
		for _, rest := range [][2]uint64{{r.From, min(r.End, from)}, {max(r.From, end), r.End}} {
			if rest[0] < rest[1] {
				x := r
				x.From, x.End = rest[0], rest[1]
				kept = append(kept, x)
			}
		}
	}
	return kept
}
