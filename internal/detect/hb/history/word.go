package history

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
)

// wordsPerSegment is how many words of four bytes a segment has.
const wordsPerSegment = segmentBytes / wordBytes

// word is what was done to an aligned word of a segment that is split: nothing (zero), accesses of the whole word that have one
// stamp by lanes, or (stamp with listFlag) a list.
type word struct{ stamp, lanes uint32 }

const (
	listFlag = 1 << 31
	setFlag  = 1 << 30
	readFlag = 1 << 29
	// What the lanes of a word with a list say.
	listWritten = 1 << 0 // by any access
	listWeak    = 1 << 1 // not all are atomic operations of one size and of the widest scope
	listStored  = 1 << 2 // by a weak store
)

// stamp is who accessed memory and when, but for the lanes.
type stamp struct {
	site   *Site
	launch *order.Launch
	warp   uint32
	exec   uint32
	epoch  uint32
}

// stampSlot is a recent stamp.
type stampSlot struct {
	stamp
	number uint32
}

// stampOf gives the number of a stamp.
func (h *Fast) stampOf(s *siteState, x stamp) uint32 {
	c := &s.stamps[x.warp%uint32(len(s.stamps))]
	if c.number == 0 || c.stamp != x {
		*c = stampSlot{x, uint32(len(h.stamps))}
		h.stamps = append(h.stamps, x)
	}
	return c.number
}

// entry is accesses in a list: by lanes that have one stamp, to some bytes of the word.
type entry struct {
	stamp uint32
	lanes uint32
	// more is, of a strong write, its chain, and of a weak store whose values are aside, what it wrote.
	more   uint32
	prev   int32 // one more than the entry before of the same site and warp, where the list has an index
	bytes  uint8
	warp   uint8 // the lowest bits of the warp's number
	values values
	// last says that all accesses before it in the list happen before it.
	last bool
}

// list is the accesses of a word, in their order. Entries that others have superseded have no lanes.
type list struct {
	entries  []entry
	index    []int32       // of a long list: one more than the newest entry of a site and warp, by hash
	dead     int           // entries without lanes
	free     uint32        // the next list that is not used
	launch   *order.Launch // of the entries, or the newest of several
	top      newest        // of entries
	variable order.Hint    // of the word
}

// newest is the newest entry of a list, where all others happen before it: who comes after it comes after all.
type newest struct {
	last               bool
	warp, lanes, epoch uint32
}

// settle notes the newest entry of a list.
func (l *list) settle(h *Fast) {
	n := len(l.entries)
	if l.top.last = n > 0 && l.entries[n-1].last; l.top.last {
		e := &l.entries[n-1]
		s := &h.stamps[e.stamp]
		l.top = newest{true, s.warp, e.lanes, s.epoch}
	}
}

// before says that all entries of a list happen before an access, or are by its own thread, where that is seen by the newest.
func (l *list) before(a *Access) bool {
	if !l.top.last {
		return false
	}
	lanes := l.top.lanes
	if l.launch == a.Actor.Launch && l.top.warp == a.Actor.Warp {
		lanes &^= 1 << uint(a.Actor.Lane)
	}
	return lanes == 0 || a.Actor.Behind(l.launch, l.top.warp, lanes, l.top.epoch) == 0
}

// listed gives the list of a word, made when it has none.
func (h *Fast) listed(w *word) *list {
	if w.stamp&listFlag != 0 {
		return h.lists[w.stamp&^listFlag]
	}
	n := h.freeList
	if n == 0 {
		n = uint32(len(h.lists))
		h.lists = append(h.lists, &list{})
	} else {
		h.freeList = h.lists[n].free
	}
	l := h.lists[n]
	was := *w
	*w = word{stamp: n | listFlag}
	if was.stamp&readFlag != 0 {
		for _, r := range h.readersOf(&was) {
			if r.lanes != 0 {
				l.add(h, w, entry{stamp: r.stamp, lanes: r.lanes, bytes: 15})
			}
		}
		h.drop(&was)
	} else if was.stamp != 0 {
		for _, m := range h.members(was.stamp) {
			l.add(h, w, entry{stamp: m.stamp, lanes: was.lanes, bytes: 15, values: m.values})
		}
	}
	return l
}

// drop forgets what was done to a word.
func (h *Fast) drop(w *word) {
	if w.stamp&listFlag != 0 {
		n := w.stamp &^ listFlag
		l := h.lists[n]
		*l = list{entries: l.entries[:0], free: h.freeList}
		if cap(l.entries) > 64 {
			l.entries = nil
		}
		h.freeList = n
	} else if w.stamp&readFlag != 0 {
		h.freeReaders = append(h.freeReaders, w.stamp&^readFlag)
	}
	*w = word{}
}

// add appends an entry to the list of a word.
func (l *list) add(h *Fast, w *word, e entry) {
	x := &h.stamps[e.stamp]
	e.warp = uint8(x.warp)
	if s := x.site; !s.Side.Atomic || !s.Side.Wide || s.Unit != wordBytes {
		w.lanes |= listWeak
	}
	if x.site.Side.Write {
		w.lanes |= listWritten
	}
	if x.site.WeakStore() {
		w.lanes |= listStored
	}
	if n := len(l.entries); n == cap(l.entries) && n >= 4 && (l.dead > n/4 || l.entries[n-1].last) {
		h.shorten(l)
	}
	l.entries = append(l.entries, e)
	l.settle(h)
	if n := len(l.entries); l.index != nil {
		if 2*n > len(l.index) {
			l.reindex(h)
		} else {
			l.link(h, n-1)
		}
	}
}

// longList is from how many entries on a list has an index.
const longList = 24

// reindex makes the index of a list anew.
func (l *list) reindex(h *Fast) {
	l.index = make([]int32, 4<<bits.Len(uint(len(l.entries))))
	for i := range l.entries {
		if l.entries[i].lanes != 0 {
			l.link(h, i)
		}
	}
}

// link puts an entry into the index.
func (l *list) link(h *Fast, i int) {
	e := &l.entries[i]
	at := l.slot(h, &h.stamps[e.stamp])
	e.prev, *at = *at, int32(i+1)
}

// slot gives the place in the index of the accesses of a stamp's site and warp.
func (l *list) slot(h *Fast, s *stamp) *int32 {
	for n := (s.warp*0x9e3779b1 ^ s.site.Number*0x85ebca6b) >> 7; ; n++ {
		at := &l.index[int(n)&(len(l.index)-1)]
		if *at == 0 {
			return at
		}
		if o := &h.stamps[l.entries[*at-1].stamp]; o.warp == s.warp && o.site == s.site {
			return at
		}
	}
}

// inherit makes a list one of a launch. Of what threads of launches did that have ended, it does not matter any more which did it.
func (h *Fast) inherit(l *list, now *order.Launch) {
	if l.launch == now || now == nil {
		return
	}
	if l.launch != nil {
		kept := l.entries[:0]
	next:
		for _, e := range l.entries {
			s := &h.stamps[e.stamp]
			if e.lanes == 0 {
				continue
			}
			if h.summed(s.launch) {
				for i := range kept {
					if o := &h.stamps[kept[i].stamp]; o.site == s.site && o.launch == s.launch && kept[i].bytes == e.bytes &&
						(!s.site.Strong || kept[i].more == e.more) {
						continue next
					}
				}
			}
			e.last = false
			kept = append(kept, e)
		}
		l.entries, l.dead, l.index, l.top = kept, 0, nil, newest{}
	}
	l.launch = now
}

// newest gives one more than the newest entry that may supersede those of a stamp, and l.next the one before.
func (l *list) newest(h *Fast, s *stamp) int32 {
	n := len(l.entries)
	switch {
	case h.first: // only the access itself may have one, which is the last
		return int32(min(n, 1) * n)
	case n <= longList:
		return int32(n)
	case l.index == nil:
		l.reindex(h)
	}
	return *l.slot(h, s)
}

func (l *list) next(h *Fast, i int32) int32 {
	switch {
	case h.first:
		return 0
	case len(l.entries) <= longList:
		return i - 1
	}
	return l.entries[i-1].prev
}

// each calls f for the entries of a word.
func (h *Fast) each(w *word, f func(e *entry)) {
	switch {
	case w.stamp&listFlag != 0:
		l := h.lists[w.stamp&^listFlag]
		for i := range l.entries {
			f(&l.entries[i])
		}
	case w.stamp&readFlag != 0:
		for _, r := range h.readersOf(w) {
			f(&entry{stamp: r.stamp, lanes: r.lanes, bytes: 15})
		}
	case w.stamp != 0:
		for _, m := range h.members(w.stamp) {
			f(&entry{stamp: m.stamp, lanes: w.lanes, bytes: 15, values: m.values})
		}
	}
}

// StrongWrites implements the interface StrongWrites.
func (h *Fast) StrongWrites(m Memory, address uint64, f func(*Record)) {
	p := h.page(m, address)
	s := &p.segments[address/segmentBytes%pageSegs]
	if s.history&wordsFlag == 0 {
		return
	}
	h.each(&h.words[s.history&^wordsFlag][address%segmentBytes/wordBytes], func(e *entry) {
		x := &h.stamps[e.stamp]
		if e.bytes>>(address%wordBytes)&1 == 0 || !x.site.Strong || !x.site.Side.Write {
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

// judgeWord finds the races of an access of some bytes of a word at an address.
func (h *Fast) judgeWord(a *Access, w *word, at uint64, bytes uint8, race func(*Access, Race)) {
	if w.stamp == 0 {
		return
	}
	if w.stamp&readFlag != 0 {
		if a.Site.Side.Write {
			for _, r := range h.readersOf(w) {
				h.judgeEntry(a, &entry{stamp: r.stamp, lanes: r.lanes, bytes: 15}, at, bytes, race)
			}
		}
		return
	}
	if w.stamp&listFlag == 0 {
		for _, m := range h.members(w.stamp) {
			h.judgeEntry(a, &entry{stamp: m.stamp, lanes: w.lanes, bytes: 15, values: m.values}, at, bytes, race)
		}
		return
	}
	side := &a.Site.Side
	if !side.Write && w.lanes&listWritten == 0 || side.Atomic && side.Wide && a.Site.Unit == wordBytes && w.lanes&listWeak == 0 && bytes == 15 {
		return
	}
	l := h.lists[w.stamp&^listFlag]
	h.inherit(l, a.Actor.Launch)
	if l.before(a) {
		return
	}
	for i := range l.entries {
		if l.entries[i].lanes != 0 {
			h.judgeEntry(a, &l.entries[i], at, bytes, race)
		}
	}
}

// judgeEntry finds the race of an access with the accesses of an entry: the gravest of them.
func (h *Fast) judgeEntry(a *Access, e *entry, at uint64, bytes uint8, race func(*Access, Race)) {
	s := &h.stamps[e.stamp]
	both := e.bytes & bytes
	if both == 0 || !a.Site.Side.Write && !s.site.Side.Write {
		return
	}
	x := &a.Actor
	behind := e.lanes
	switch {
	case x.Launch == nil || x.Launch != s.launch:
		if behind = x.Behind(s.launch, s.warp, e.lanes, s.epoch); behind == 0 {
			return
		}
	default:
		if s.warp == x.Warp {
			behind &^= 1 << uint(x.Lane)
		}
		if behind == 0 {
			return
		}
		if s.site.Side.Atomic && a.Site.Side.Atomic && detect.Classify(s.site.Side, a.Site.Side, detect.Relation{SameLaunch: true,
			SameBlock: x.Block == s.warp/s.launch.WarpsPerBlock}) == detect.NoRace {
			return
		}
		if behind = x.Behind(s.launch, s.warp, behind, s.epoch); behind == 0 {
			return
		}
	}
	r := Record{Site: s.site, Stamp: order.Stamp{Launch: s.launch, Warp: s.warp, Epoch: s.epoch}, Executed: s.exec}
	lo := uint64(bits.TrailingZeros8(e.bytes))
	if s.site.Strong {
		r.From = (at + lo) &^ (s.site.Unit - 1)
		r.End = r.From + s.site.Unit
		if s.site.Side.Write && h.order.Observed(&a.Actor, a.Memory.Shared, r.From, uint8(s.site.Unit), order.ChainID(e.more)) {
			return
		}
	} else {
		r.From = at + lo
		r.End = at + 8 - uint64(bits.LeadingZeros8(e.bytes))
	}
	var best detect.Category
	for m := behind; m != 0; m &= m - 1 {
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
		return
	}
	for b := both; b != 0; {
		from := uint64(bits.TrailingZeros8(b))
		n := uint64(bits.TrailingZeros8(^(b >> from)))
		race(a, Race{best, &r, at + from, at + from + n})
		b &^= (1<<n - 1) << from
	}
}

// sameValue says that a store writes into a word what the stores of an entry's site have all written there, where they overlap.
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

// recordWord adds an access, which was judged, to a word.
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
	h.recordList(a, w, l, entry{stamp: number, lanes: lane, bytes: bytes}, at, chain)
}

// load records a load of a word that only loads have accessed. It says false, having done nothing, of others.
func (h *Fast) load(w *word, number, lane uint32) bool {
	switch {
	case w.stamp&listFlag != 0:
		if w.lanes&listWritten != 0 {
			return false
		}
	case w.stamp&readFlag != 0:
		if h.read(w, number, lane) {
			return true
		}
	case w.stamp&setFlag != 0 || h.stamps[w.stamp].site.Side.Write:
		return false
	default:
		h.share(w)
		return h.read(w, number, lane)
	}
	l := h.listed(w)
	n := &h.stamps[number]
	h.inherit(l, n.launch)
	for i := l.newest(h, n); i != 0; i = l.next(h, i) {
		e := &l.entries[i-1]
		if e.stamp == number {
			e.lanes |= lane
			e.last, l.top.last = false, false
			return true
		}
		if e.warp == uint8(n.warp) && e.lanes&lane != 0 && e.bytes == 15 && h.supersedes(number, &h.stamps[e.stamp]) {
			if e.lanes &^= lane; e.lanes == 0 {
				l.dead++
			}
		}
	}
	l.add(h, w, entry{stamp: number, lanes: lane, bytes: 15})
	return true
}

// supersedes says that accesses by the same lanes with two stamps differ in nothing but that the first is later.
func (h *Fast) supersedes(number uint32, s *stamp) bool {
	n := &h.stamps[number]
	return s.site == n.site && s.launch == n.launch && s.warp == n.warp && s.exec == n.exec
}

// recordList adds an entry of one lane to a list.
func (h *Fast) recordList(a *Access, w *word, l *list, now entry, at uint64, chain order.ChainID) {
	now.more = uint32(chain)
	if a.Site.WeakStore() {
		h.storeWord(a, l, &now, at)
	}
	last := h.afterAll(a, l)
	n := h.stamps[now.stamp]
	for i := l.newest(h, &n); i != 0; i = l.next(h, i) {
		e := &l.entries[i-1]
		if s := &h.stamps[e.stamp]; s.launch != n.launch && s.site == n.site && e.bytes == now.bytes && e.lanes != 0 &&
			(!s.site.Strong || e.more == now.more) && h.summed(s.launch) && n.launch.Follows(s.launch) {
			e.lanes = 0
			l.dead++
			continue
		}
		if e.warp != uint8(n.warp) || e.lanes&now.lanes == 0 && e.stamp != now.stamp || e.lanes == 0 || e.bytes != now.bytes || a.Site.Strong && e.more != now.more {
			continue
		}
		if s := &h.stamps[e.stamp]; s.site != n.site || s.launch != n.launch || s.warp != n.warp || s.exec != n.exec {
			continue
		}
		if e.stamp == now.stamp && (int(i) == len(l.entries) || e.lanes&now.lanes != 0) {
			e.last = last && int(i) == len(l.entries) && e.lanes|now.lanes == now.lanes
			e.lanes |= now.lanes
			l.settle(h)
			return
		}
		if e.lanes &^= now.lanes; e.lanes == 0 {
			l.dead++
		}
	}
	now.last = last
	l.add(h, w, now)
}

// known says that the accesses of an entry happen before an access, or are by its own thread.
func (h *Fast) known(a *Access, e *entry) bool {
	s := &h.stamps[e.stamp]
	lanes := e.lanes
	if s.launch == a.Actor.Launch && s.warp == a.Actor.Warp {
		lanes &^= 1 << uint(a.Actor.Lane)
	}
	return lanes == 0 || a.Actor.Behind(s.launch, s.warp, lanes, s.epoch) == 0
}

// afterAll says that all entries of a list happen before an access, or are by its own thread.
func (h *Fast) afterAll(a *Access, l *list) bool {
	if l.before(a) {
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

// shorten drops entries of a list that no race depends on: who races with one of them races with later ones of its site, and for
// as grave a reason, because these come after all others and are of two blocks, or of two warps of its block.
func (h *Fast) shorten(l *list) {
	type chain struct {
		of            stamp
		more          uint32
		bytes         uint8
		blocks, warps bool // two of them
	}
	var later []chain
	var kept []entry
next:
	for i := len(l.entries) - 1; i >= 0; i-- {
		e := &l.entries[i]
		if e.lanes == 0 {
			continue
		}
		s := h.stamps[e.stamp]
		per := s.launch.WarpsPerBlock
		at := slices.IndexFunc(later, func(x chain) bool {
			return x.of.site == s.site && x.bytes == e.bytes && x.of.launch == s.launch && (!s.site.Strong || x.more == e.more)
		})
		if at >= 0 {
			x := &later[at]
			if x.blocks || x.warps && s.warp/per == x.of.warp/per {
				continue next
			}
			if e.last {
				x.blocks = x.blocks || s.warp/per != x.of.warp/per
				x.warps = x.warps || s.warp != x.of.warp
			}
		} else if e.last {
			later = append(later, chain{of: s, more: e.more, bytes: e.bytes})
		}
		kept = append(kept, *e)
	}
	slices.Reverse(kept)
	l.entries, l.dead, l.index = append(make([]entry, 0, max(4, 2*len(kept))), kept...), 0, nil
}
