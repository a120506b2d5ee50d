package history

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
)

// wordsPerSegment is the number of words of four bytes in a segment.
const wordsPerSegment = segmentBytes / wordBytes

// word is the accesses to an aligned word of a split segment. The zero value is no access. Otherwise stamp is one of: the
// stamp of accesses by lanes to the whole word; with setFlag, a set of such stamps; with partsFlag, parts; with
// listFlag, a list.
type word struct{ stamp, lanes uint32 }

const (
	listFlag  = 1 << 31
	setFlag   = 1 << 30
	partsFlag = 1 << 29
	// What the lanes field of a word with a list says.
	listWritten = 1 << 0 // by any access
	listWeak    = 1 << 1 // some accesses are not atomic operations of words with the widest scope
	listStored  = 1 << 2 // by a weak store
	// From this bit on lanes holds the logarithm of the length, as a multiple of fewEntries, at which the list is
	// shortened next.
	fewShift   = 8
	fewEntries = 6
)

// stamp identifies an access by a warp to memory, without its lanes.
type stamp struct {
	site   *Site
	launch *order.Launch
	warp   uint32
	exec   uint32
	epoch  uint32
}

// stampSlot is an entry of a cache of stamps.
type stampSlot struct {
	stamp
	number uint32
}

// stampOf returns the number of a stamp, adding it to h.stamps if necessary.
func (h *Fast) stampOf(s *siteState, x stamp) uint32 {
	c := &s.stamps[x.warp%uint32(len(s.stamps))]
	if c.number == 0 || c.stamp != x {
		*c = stampSlot{x, uint32(len(h.stamps))}
		h.stamps = append(h.stamps, x)
	}
	return c.number
}

// stamp returns the stamp of an access by lanes with a common view.
func (w *Warp) stamp() stamp {
	return stamp{w.Site, w.Block.Launch, w.Event.Warp, w.Event.Mask, w.view.Epoch}
}

// entry is the accesses in a list by lanes with one stamp to some bytes of the word.
type entry struct {
	stamp uint32
	lanes uint32
	// more is the chain of a strong write (for a strong read, the last chain begun before it), or the saved value of a
	// weak store.
	more uint32
	// If the list has an index: one more than the previous entry of the same site and warp (prev), or of the same group
	// (like).
	prev, like int32
	bytes      uint8
	warp       uint8 // the lowest bits of the warp number
	values     values
	traits     entryTraits
}

type entryTraits uint8

const (
	entryLast   entryTraits = 1 << iota // all accesses before it in the list happen before it
	entryWrites                         // it writes
)

func (e *entry) last() bool { return e.traits&entryLast != 0 }

func (e *entry) setLast(last bool) {
	if e.traits &^= entryLast; last {
		e.traits |= entryLast
	}
}

// list is the accesses to a word. They are in execution order, or at least in an order that judges the same. Entries
// that have been superseded have no lanes.
type list struct {
	entries []entry
	launch  *order.Launch // the launch of the entries, or the newest of several
	ordered bool          // some entry may have entryLast
	index   *index        // of a long list; nil: to be made
}

// dead counts the entries without lanes.
func (l *list) dead() (n int) {
	for i := range l.entries {
		if l.entries[i].lanes == 0 {
			n++
		}
	}
	return n
}

// before reports whether all entries of a list happen before an access or are by its own thread. It looks only at the
// newest entry, and returns false if that does not tell.
func (h *Fast) before(l *list, a *Access) bool {
	n := len(l.entries)
	return n > 0 && l.entries[n-1].last() && l.entries[n-1].lanes != 0 && h.known(a, &l.entries[n-1])
}

// grow adds lanes to an entry. Later entries then may not come after all entries before them any more.
func (l *list) grow(e *entry, lanes uint32) {
	if e.lanes |= lanes; l.ordered {
		l.ordered = false
		for i := range l.entries {
			l.entries[i].setLast(false)
		}
	}
}

// listed returns the list of a word, converting the word if necessary.
func (h *Fast) listed(w *word) *list {
	if w.stamp&listFlag != 0 {
		return h.lists.of(w.stamp &^ listFlag)
	}
	n, l := h.lists.make()
	was := *w
	*w = word{stamp: n | listFlag}
	if was.stamp&partsFlag != 0 {
		h.eachPart(&was, func(e *entry) {
			l.launch = h.stamps[e.stamp].launch
			l.add(h, w, *e)
		})
		h.drop(&was)
	} else if was.stamp != 0 {
		for i, m := range h.members(was.stamp) {
			e := entry{stamp: m.stamp, lanes: was.lanes, bytes: 15, values: m.values}
			e.setLast(i == 0 || was.lanes&(was.lanes-1) == 0)
			l.launch = h.stamps[m.stamp].launch
			l.add(h, w, e)
		}
	}
	return l
}

// drop forgets the accesses to a word.
func (h *Fast) drop(w *word) {
	if w.stamp&listFlag != 0 {
		n := w.stamp &^ listFlag
		l := h.lists.of(n)
		*l = list{entries: l.entries[:0]}
		if cap(l.entries) > 64 {
			l.entries = nil
		}
		h.lists.drop(n)
	} else if w.stamp&partsFlag != 0 {
		h.parts.drop(w.stamp &^ partsFlag)
	}
	*w = word{}
}

// add appends an entry to the list of a word.
func (l *list) add(h *Fast, w *word, e entry) {
	x := &h.stamps[e.stamp]
	e.warp = uint8(x.warp)
	if s := x.site; !s.Side.Atomic || !s.Widest || s.Unit != wordBytes {
		w.lanes |= listWeak
	}
	if x.site.Side.Write {
		w.lanes |= listWritten
		e.traits |= entryWrites
	}
	if x.site.WeakStore() {
		w.lanes |= listStored
	}
	if n := len(l.entries); n >= fewEntries<<(w.lanes>>fewShift) && l.entries[n-1].last() {
		h.shorten(l)
		w.lanes = w.lanes&(1<<fewShift-1) | uint32(bits.Len(uint(2*len(l.entries)/fewEntries)))<<fewShift
	} else if n == cap(l.entries) && 4*l.dead() > n {
		l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.lanes == 0 })
		l.index = nil
	}
	l.entries, l.ordered = append(l.entries, e), l.ordered || e.last()
}

// inherit makes launch now the launch of a list. Within a launch that has ended, it no longer matters which thread made
// an access.
func (h *Fast) inherit(l *list, now *order.Launch) {
	if l.launch == now || now == nil {
		return
	}
	if l.launch != nil {
		h.dropFollowed(l)
		kept := l.entries[:0]
	next:
		for _, e := range l.entries {
			s := &h.stamps[e.stamp]
			if e.lanes == 0 {
				continue
			}
			if whole(s.launch) {
				for i := range kept {
					if o := &h.stamps[kept[i].stamp]; o.site == s.site && o.launch == s.launch && kept[i].bytes == e.bytes &&
						(!s.site.chained() || kept[i].more == e.more) {
						continue next
					}
				}
			}
			e.setLast(false)
			kept = append(kept, e)
		}
		l.entries, l.ordered, l.index = kept, false, nil
	}
	l.launch = now
}

// dropFollowed drops entries for which there is another entry by the same site, to the same bytes, in a launch that
// follows theirs: whoever does not know the earlier one does not know the later one.
func (h *Fast) dropFollowed(l *list) {
	var later []int // one entry for each site, bytes and launch
	for i := len(l.entries) - 1; i >= 0; i-- {
		e := &l.entries[i]
		s := &h.stamps[e.stamp]
		alike := false
		for _, k := range later {
			o := &l.entries[k]
			x := &h.stamps[o.stamp]
			if x.site != s.site || o.bytes != e.bytes || s.site.chained() && o.more != e.more {
				continue
			}
			alike = alike || x.launch == s.launch
			if x.launch != s.launch && x.launch.Follows(s.launch) {
				e.lanes = 0
				break
			}
		}
		if e.lanes != 0 && !alike {
			later = append(later, i)
		}
	}
}

// each calls f for the entries of a word.
func (h *Fast) each(w *word, f func(e *entry)) {
	switch {
	case w.stamp&listFlag != 0:
		l := h.lists.of(w.stamp &^ listFlag)
		for i := range l.entries {
			f(&l.entries[i])
		}
	case w.stamp&partsFlag != 0:
		h.eachPart(w, f)
	case w.stamp != 0:
		for _, m := range h.members(w.stamp) {
			f(&entry{stamp: m.stamp, lanes: w.lanes, bytes: 15, values: m.values})
		}
	}
}

// StrongAccesses implements the interface StrongAccesses.
func (h *Fast) StrongAccesses(m Memory, address uint64, f func(*Record)) {
	p := h.page(m, address)
	s := &p.segments[address/segmentBytes%pageSegs]
	if s.history&wordsFlag == 0 {
		return
	}
	h.each(&h.words.of(s.history &^ wordsFlag)[address%segmentBytes/wordBytes], func(e *entry) {
		x := &h.stamps[e.stamp]
		if e.bytes>>(address%wordBytes)&1 == 0 || !x.site.Strong {
			return
		}
		from := address &^ (x.site.Unit - 1)
		r := Record{Site: x.site, Stamp: order.Stamp{Launch: x.launch, Warp: x.warp, Epoch: x.epoch}, Executed: x.exec, From: from, End: from + x.site.Unit,
			Chain: order.ChainID(e.more)}
		for m := e.lanes; m != 0; m &= m - 1 {
			r.Stamp.Lane = bits.TrailingZeros32(m)
			f(&r)
		}
	})
}

// judgeWord finds the races of an access to some bytes of the word at an address.
func (h *Fast) judgeWord(a *Access, w *word, at uint64, bytes uint8, race func(*Access, Race)) {
	if w.stamp == 0 {
		return
	}
	if w.stamp&partsFlag != 0 {
		h.eachPart(w, func(e *entry) { h.judgeEntry(a, e, at, bytes, race) })
		return
	}
	if w.stamp&listFlag == 0 {
		for _, m := range h.members(w.stamp) {
			h.judgeEntry(a, &entry{stamp: m.stamp, lanes: w.lanes, bytes: 15, values: m.values}, at, bytes, race)
		}
		return
	}
	side := &a.Site.Side
	if !side.Write && w.lanes&listWritten == 0 || side.Atomic && a.Site.Widest && a.Site.Unit == wordBytes && w.lanes&listWeak == 0 && bytes == 15 {
		return
	}
	l := h.lists.of(w.stamp &^ listFlag)
	h.inherit(l, a.Actor.Launch)
	if h.before(l, a) {
		return
	}
	if len(l.entries) > crowded {
		h.judgeGroups(a, l, at, bytes, enoughRaces, race)
	} else if len(l.entries) > longList {
		h.judgeGroups(a, l, at, bytes, crowded, race)
	}
	for i := len(l.entries) - 1; i >= 0 && len(l.entries) <= longList; i-- { // newest first: shorten keeps the newest
		if e := &l.entries[i]; e.lanes != 0 && (side.Write || e.traits&entryWrites != 0) {
			h.judgeEntry(a, e, at, bytes, race)
		}
	}
}

// judgeEntry finds the gravest race of an access with the accesses of an entry. It returns true if there is one.
func (h *Fast) judgeEntry(a *Access, e *entry, at uint64, bytes uint8, race func(*Access, Race)) bool {
	s := &h.stamps[e.stamp]
	both := e.bytes & bytes
	if both == 0 || !a.Site.Side.Write && !s.site.Side.Write {
		return false
	}
	x := &a.Actor
	unknown := e.lanes
	switch {
	case x.Launch == nil || x.Launch != s.launch:
		if unknown = x.Unknown(s.launch, s.warp, e.lanes, s.epoch); unknown == 0 {
			return false
		}
	default:
		if s.warp == x.Warp {
			unknown &^= 1 << uint(x.Lane)
		}
		if unknown == 0 {
			return false
		}
		if s.site.Side.Atomic && a.Site.Side.Atomic && detect.Classify(s.site.Side, a.Site.Side, detect.Relation{SameLaunch: true,
			SameBlock: x.Block == s.warp/s.launch.WarpsPerBlock}) == detect.NoRace {
			return false
		}
		if unknown = x.Unknown(s.launch, s.warp, unknown, s.epoch); unknown == 0 {
			return false
		}
	}
	r := Record{Site: s.site, Stamp: order.Stamp{Launch: s.launch, Warp: s.warp, Epoch: s.epoch}, Executed: s.exec}
	lo := uint64(bits.TrailingZeros8(e.bytes))
	if s.site.Strong {
		r.From = (at + lo) &^ (s.site.Unit - 1)
		r.End = r.From + s.site.Unit
		r.Chain = order.ChainID(e.more)
		if s.site.Side.Write && h.order.Observed(&a.Actor, a.Memory.Shared, r.From, uint8(s.site.Unit), r.Chain) {
			return false
		}
	} else {
		r.From = at + lo
		r.End = at + 8 - uint64(bits.LeadingZeros8(e.bytes))
	}
	var best detect.Category
	for m := unknown; m != 0; m &= m - 1 {
		rel := a.relation(&Record{Site: s.site, Stamp: order.Stamp{Launch: s.launch, Warp: s.warp, Lane: bits.TrailingZeros32(m), Epoch: s.epoch}, Executed: s.exec})
		rel.SameValue = rel.SameLaunch && a.Site.WeakStore() && s.site.WeakStore() && h.sameValue(a, e, at)
		if c := detect.Classify(s.site.Side, a.Site.Side, rel); c > best {
			best, r.Stamp.Lane = c, bits.TrailingZeros32(m)
		}
		if !rel.SameWarp {
			break
		}
	}
	if best == detect.NoRace {
		return false
	}
	for b := both; b != 0; {
		from := uint64(bits.TrailingZeros8(b))
		n := uint64(bits.TrailingZeros8(^(b >> from)))
		race(a, Race{best, &r, at + from, at + from + n})
		b &^= (1<<n - 1) << from
	}
	return true
}

// sameValue reports whether a store writes into a word the same as all stores by an entry's site have written there, in
// the bytes that both write.
func (h *Fast) sameValue(a *Access, e *entry, at uint64) bool {
	if e.values == mixed || a.Values == nil {
		return false
	}
	for i := uint64(0); i < wordBytes; i++ {
		if x := at + i; e.bytes>>i&1 != 0 && a.From <= x && x < a.End {
			was := byte(e.more >> (8 * i))
			if e.values == inMemory {
				was = a.old(x)
			}
			if was != a.Value(x) {
				return false
			}
		}
	}
	return true
}

// recordWord adds an access to a word. The access must have been judged.
func (h *Fast) recordWord(a *Access, number uint32, w *word, at uint64, bytes uint8, chain order.ChainID) {
	lane := uint32(1) << uint(a.Actor.Lane)
	if bytes == 15 && !a.Site.Strong && (!a.Site.Side.Write || a.Old != nil && a.Values != nil) && w.stamp == 0 {
		*w = word{number, lane}
		return
	}
	l := h.listed(w)
	h.inherit(l, a.Actor.Launch)
	if w.lanes&listStored != 0 {
		h.overwrite(a, l, at, bytes)
	}
	h.recordList(a, w, l, entry{stamp: number, lanes: lane, bytes: bytes}, at, chain, h.afterAll(a, l))
}

// supersedes reports whether accesses by the same lanes with stamps number and s differ only in that those of number
// are later.
func (h *Fast) supersedes(number uint32, s *stamp) bool {
	n := &h.stamps[number]
	return s.site == n.site && s.launch == n.launch && s.warp == n.warp && s.exec == n.exec
}

// recordList adds an entry of one lane to a list. last says that the entry happens after all in the list.
func (h *Fast) recordList(a *Access, w *word, l *list, now entry, at uint64, chain order.ChainID, last bool) {
	now.more = uint32(chain)
	if a.Site.WeakStore() {
		h.storeWord(a, l, &now, at)
	}
	n := &h.stamps[now.stamp]
	for i := l.newest(h, n); i != 0; i = l.next(h, i) {
		e := &l.entries[i-1]
		if e.warp != uint8(n.warp) || e.lanes&now.lanes == 0 && e.stamp != now.stamp || e.lanes == 0 || e.bytes != now.bytes || a.Site.chained() && e.more != now.more {
			continue
		}
		if s := &h.stamps[e.stamp]; s.site != n.site || s.launch != n.launch || s.warp != n.warp || s.exec != n.exec {
			continue
		}
		if e.stamp == now.stamp && (int(i) == len(l.entries) || e.lanes&now.lanes != 0) {
			e.setLast(last && int(i) == len(l.entries) && e.lanes|now.lanes == now.lanes)
			e.lanes, l.ordered = e.lanes|now.lanes, l.ordered || e.last()
			if a.Site.Strong && !a.Site.Side.Write {
				e.more = now.more
			}
			return
		}
		e.lanes &^= now.lanes
	}
	now.setLast(last)
	l.add(h, w, now)
}

// known reports whether the accesses of an entry happen before an access or are by its own thread.
func (h *Fast) known(a *Access, e *entry) bool {
	s := &h.stamps[e.stamp]
	lanes := e.lanes
	if s.launch == a.Actor.Launch && s.warp == a.Actor.Warp {
		lanes &^= 1 << uint(a.Actor.Lane)
	}
	return lanes == 0 || a.Actor.Unknown(s.launch, s.warp, lanes, s.epoch) == 0
}

// afterAll reports whether all entries of a list happen before an access or are by its own thread.
func (h *Fast) afterAll(a *Access, l *list) bool {
	if h.before(l, a) {
		return true
	}
	n := len(l.entries)
	if n > longList || n > 0 && !h.known(a, &l.entries[n-1]) {
		return false
	}
	for i := range l.entries {
		if e := &l.entries[i]; e.lanes != 0 && !h.known(a, e) {
			return false
		}
	}
	return true
}

// shorten drops entries of a list that no race depends on. An access that races with a dropped entry also races with
// later entries of the same site, and for a reason at least as grave: these happen after all others, and are of two
// blocks, or of two warps of the dropped entry's block.
func (h *Fast) shorten(l *list) {
	type chain struct {
		of            *stamp
		more          uint32
		bytes         uint8
		blocks, warps bool // later entries are of two blocks, or of two warps
	}
	var later [16]chain // for the first few sites; of others nothing is dropped
	n, to := 0, len(l.entries)
next:
	for i := len(l.entries) - 1; i >= 0; i-- {
		e := &l.entries[i]
		if e.lanes == 0 {
			continue
		}
		s := &h.stamps[e.stamp]
		per := s.launch.WarpsPerBlock
		at := 0
		for at < n {
			x := &later[at]
			if x.of.site == s.site && x.bytes == e.bytes && x.of.launch == s.launch && (!s.site.chained() || x.more == e.more) {
				break
			}
			at++
		}
		if at < n {
			x := &later[at]
			if x.blocks || x.warps && s.warp/per == x.of.warp/per {
				continue next
			}
			if e.last() {
				x.blocks = x.blocks || s.warp/per != x.of.warp/per
				x.warps = x.warps || s.warp != x.of.warp
			}
		} else if e.last() && n < len(later) {
			later[n] = chain{of: s, more: e.more, bytes: e.bytes}
			n++
		}
		to--
		l.entries[to] = *e
	}
	l.entries = l.entries[:copy(l.entries, l.entries[to:])]
	l.index = nil
}
