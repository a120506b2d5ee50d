package history

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// The values that stores of a site wrote are not kept as long as memory holds them, since the next write tells what it
// overwrites (event.Batch.OldOf). They are saved when another store overwrites them with something else. They are given
// up (mixed) when the site itself does so.

// How a store changes memory.
const (
	unchanged uint8 = iota
	partlyChanged
	allChanged
)

// changes says whether a store changes words in memory. The event must carry new and old values.
func changes(a *acting) uint8 {
	some, all := false, true
	word := func(changed bool) { some, all = some || changed, all && changed }
	e := a.Event
	n := event.ValueWords(e.Size)
	now := a.Batch.Values[e.Val:][:bits.OnesCount32(e.Mask)*n]
	old := a.Batch.Values[int(e.Val)+len(now):][:len(now)]
	for m := a.lanes; m != 0 && (all || !some); m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if e.Size < wordBytes { // only the accessed bytes of the word count
			x := a.Lane(lane)
			differs := false
			for i := x.From; i < x.End; i++ {
				differs = differs || x.Value(i) != x.old(i)
			}
			word(differs)
			continue
		}
		first := bits.OnesCount32(e.Mask&(1<<lane-1)) * n
		for i := first; i < first+n; i++ {
			word(uint32(now[i]) != uint32(old[i]))
			if e.Size > wordBytes {
				word(now[i]>>32 != old[i]>>32)
			}
		}
	}
	switch {
	case !some:
		return unchanged
	case all:
		return allChanged
	}
	return partlyChanged
}

// savedValues is what stores of a site wrote to a segment, where memory does not hold it.
type savedValues struct {
	site  *Site
	mixed mask // bytes that were written with several values
	saved mask // bytes whose value is in value, and no longer in memory
	value [segmentBytes]byte
}

// savedOf returns the saved values of a site, creating them if necessary.
func (p *page) savedOf(i int, s *Site) *savedValues {
	if p.saved == nil {
		p.saved = map[int][]*savedValues{}
	}
	for _, k := range p.saved[i] {
		if k.site == s {
			return k
		}
	}
	k := &savedValues{site: s}
	p.saved[i] = append(p.saved[i], k)
	return k
}

// storedSite is what weak stores of a site have written according to a history.
type storedSite struct {
	site   *Site
	bytes  mask
	values values
}

// save saves values of segment i of a page that a store is about to overwrite, or that its site has written differently
// before. from is the history before the store, to the one after it.
func (h *Fast) save(p *page, i int, from, to uint32, a *acting) {
	stored := make([]storedSite, 0, 8)
	for _, r := range h.histories[from].records {
		k := &h.kinds[r.access]
		if !k.site.WeakStore() {
			continue
		}
		n := slices.IndexFunc(stored, func(x storedSite) bool { return x.site == k.site })
		if n < 0 {
			n = len(stored)
			stored = append(stored, storedSite{site: k.site})
		}
		stored[n].bytes, stored[n].values = stored[n].bytes.or(k.all), r.values
	}
	base := p.address + uint64(i)*segmentBytes
	var was overwritten
	for _, r := range h.histories[to].records {
		if r.values != saved {
			continue
		}
		s := h.kinds[r.access].site
		n := slices.IndexFunc(stored, func(x storedSite) bool { return x.site == s })
		if n < 0 {
			continue
		}
		k, bytes := p.savedOf(i, s), stored[n].bytes
		if stored[n].values == mixed {
			k.mixed = bytes
		}
		stored[n].site = nil // visit each site once
		switch bytes = bytes.without(k.mixed); {
		case bytes.empty():
		case s == a.Site:
			k.compare(a, base, bytes)
		default:
			if was.bytes.empty() {
				was.of(a, base)
			}
			fresh := was.bytes.and(bytes).without(k.saved)
			k.saved = k.saved.or(fresh)
			fresh.ranges(func(lo, hi uint64) { copy(k.value[lo:hi], was.value[lo:hi]) })
		}
	}
}

// overwritten is the bytes of a segment that a store overwrites.
type overwritten struct {
	bytes mask
	value [segmentBytes]byte
}

func (o *overwritten) of(a *acting, base uint64) {
	for m := a.lanes; m != 0; m &= m - 1 {
		x := a.Lane(bits.TrailingZeros32(m))
		from, end := max(x.From, base), min(x.End, base+segmentBytes)
		if from >= end {
			continue
		}
		b := maskOf(from-base, end-base)
		for at := from; at < end; at++ {
			if !o.bytes.overlaps(b) || !o.bytes.overlaps(maskOf(at-base, at-base+1)) { // otherwise a lower lane has overwritten it
				o.value[at-base] = x.old(at)
			}
		}
		o.bytes = o.bytes.or(b)
	}
}

// compare finds the bytes, among those given of the segment at base, to which stores of one site write other values
// than before.
func (k *savedValues) compare(a *acting, base uint64, bytes mask) {
	for m := a.lanes; m != 0; m &= m - 1 {
		x := a.Lane(bits.TrailingZeros32(m))
		for at := max(x.From, base); at < min(x.End, base+segmentBytes); at++ {
			b := maskOf(at-base, at-base+1)
			if !bytes.overlaps(b) || k.mixed.overlaps(b) {
				continue
			}
			value := x.old(at)
			if k.saved.overlaps(b) {
				value = k.value[at-base]
			}
			if value != x.Value(at) {
				from, end := part(at, x.From, x.End)
				k.mixed = k.mixed.or(maskOf(from-base, end-base))
			}
		}
	}
}

// storeWord updates what is known of the values of a weak store's site, in now and in the entries of the list. Entries
// of one site, launch and bytes have the same values.
func (h *Fast) storeWord(a *Access, l *list, now *entry, at uint64) {
	if a.Values == nil {
		now.values = mixed
	} else if a.Old == nil {
		now.values, now.more = saved, a.word(at, now.bytes, a.Value)
	}
	h.stores(l, func(s *stamp, e *entry) bool {
		if s.site != a.Site || s.launch != a.Actor.Launch || e.bytes != now.bytes {
			return false
		}
		switch {
		case e.values == mixed || a.Values == nil:
			now.values = mixed
		case e.values == saved && e.more == a.word(at, now.bytes, a.Value):
			now.values, now.more = saved, e.more
		case e.values == inMemory && a.Old != nil && a.word(at, now.bytes, a.old) == a.word(at, now.bytes, a.Value):
		default:
			now.values = mixed
		}
		return now.values == mixed && e.values != mixed
	}, func(e *entry) { e.values = mixed })
}

// overwrite marks as saved the values that stores of other sites wrote to bytes of a word that an access overwrites.
func (h *Fast) overwrite(a *Access, l *list, at uint64, bytes uint8) {
	if !a.Site.Side.Write || a.Old == nil {
		return
	}
	h.stores(l, func(s *stamp, e *entry) bool { return e.values == inMemory && e.bytes&bytes != 0 && s.site != a.Site },
		func(e *entry) { e.values, e.more = saved, a.word(at, e.bytes, a.old) })
}

// stores applies change to the entries of a list by weak stores for which is returns true. Entries of one site, launch
// and bytes give the same answer, so in a long list only one of them is asked.
func (h *Fast) stores(l *list, is func(s *stamp, e *entry) bool, change func(e *entry)) {
	if len(l.entries) <= longList {
		for i := range l.entries {
			e := &l.entries[i]
			if e.traits&entryWrites == 0 {
				continue
			}
			if s := &h.stamps[e.stamp]; s.site.WeakStore() && is(s, e) {
				change(e)
			}
		}
		return
	}
	x := h.indexed(l)
	for i := range x.groups {
		g := &x.groups[i]
		if e := &l.entries[g.newest-1]; !g.site.WeakStore() || !is(&h.stamps[e.stamp], e) {
			continue
		}
		for n := g.newest; n != 0; n = l.entries[n-1].like {
			change(&l.entries[n-1])
		}
	}
}

// word returns bytes of a word as a number. Bytes that the access does not touch are zero.
func (a *Access) word(at uint64, bytes uint8, of func(uint64) byte) (x uint32) {
	for i := uint64(0); i < wordBytes; i++ {
		if bytes>>i&1 != 0 && a.holds(at+i) {
			x |= uint32(of(at+i)) << (8 * i)
		}
	}
	return x
}

// holds reports whether the old value of a byte is known: the access touches the byte or its word.
func (a *Access) holds(at uint64) bool {
	return at >= a.From&^(wordBytes-1) && at < (a.End+wordBytes-1)&^(wordBytes-1)
}

// old returns the byte at an address before the access.
func (a *Access) old(at uint64) byte {
	base := a.From
	if a.End-a.From < wordBytes {
		base &^= wordBytes - 1
	}
	return byte(a.Old[(at-base)/8] >> ((at - base) % 8 * 8))
}
