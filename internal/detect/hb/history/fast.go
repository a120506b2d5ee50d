package history

import (
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/prefetch"
)

// Fast is a history for whole programs. It judges weak accesses of a warp segment by segment as long as they do not
// race. It judges words where accesses may race, or where synchronisation or irregular addresses make the histories of
// a segment's words differ.
//
// It represents accesses as follows:
//   - load: a deferred access of memory that the launch only loads from, or only accesses by relaxed atomic operations.
//     Loads are kept in launch order (loads.go).
//   - record: a warp's access to a segment of 128 bytes. Records form histories, which segments share (segment.go).
//   - stamp and lanes: an access to a word, or to a byte of a word (parts.go): alone, in a set (set.go) or in a list
//     (word.go).
//   - summary: the accesses of an ended launch to a segment (launch.go).
//   - Record: an access of the host.
//
// A segment has records until something is done to it that a record cannot represent. Then split.go turns the records
// into stamps of words.
type Fast struct {
	order *order.Order

	// Interned values.
	shapes    map[shapeKey]*shape
	prints    map[footprint]*footprint
	kindOf    map[kindKey]uint32
	kinds     []kind
	histories []interned // histories[0] is the empty one
	historyOf map[uint64]uint32
	moves     moves
	checks    [][]check // checks[0] is the empty list
	sites     []*siteState

	chunks       map[uint64]*chunk
	recentChunks [16]recentChunk // a cache, by hash of the number
	windows      map[Memory]*window
	recent       [64]*window
	words        slab[[wordsPerSegment]word]
	parts        slab[parts]
	stamps       []stamp
	lists        slab[list]
	sets         sets
	single       [1]member // scratch space of members
	joins        [1024]join
	pending      pending
	relaxed      relaxed

	launches  []*launchState
	current   *launchState
	ended     []*loads // loads of launches that have ended
	mostLoads int      // limit for the deferred loads of a launch and class
	mostEnded int      // limit for ended
	host      hostRecords
	limit     int // the number of stamps and histories from which sweep runs
	summaries summaries
}

// siteState is what the fast history keeps for a site.
type siteState struct {
	recent [32]*shape
	shapes int // the number of shapes made for it
	stamps [64]stampSlot
	loads  siteLoads
	direct *launchState // the launch in which the site's loads are not deferred
}

const (
	pageBytes = 4096
	pageSegs  = pageBytes / segmentBytes
	chunkSize = 512 // pages
)

// page is the history of a page of memory.
type page struct {
	address   uint64
	launch    *launchState    // the launch whose accesses segments describe
	mayRace   bool            // summaries or past may race with accesses of launch
	clean     bool            // launch follows all others that have accessed the page
	touched   uint16          // granules that launch has accessed, except by deferred loads
	deferred  [classes]uint16 // by class: granules for which deferred loads exist
	earlier   []*order.Launch // launches that have accessed it, except those that another of them follows
	segments  [pageSegs]segment
	past      []*past
	summaries *[pageSegs]uint32 // indices in Fast.summaries; nil: none
	saved     map[int][]*savedValues
}

type chunk struct{ pages [chunkSize]*page }

type recentChunk struct {
	number uint64
	chunk  *chunk
}

// window is the shared memory of a block.
type window struct {
	Memory
	pages []*page
	loads *loads // deferred loads; nil: none yet
}

// NewFast makes an empty history.
func NewFast(o *order.Order) *Fast {
	return &Fast{order: o, limit: sweepFrom, mostLoads: mostLoads, mostEnded: mostEnded,
		shapes: map[shapeKey]*shape{}, prints: map[footprint]*footprint{}, kindOf: map[kindKey]uint32{}, kinds: make([]kind, 1),
		histories: make([]interned, 1), historyOf: map[uint64]uint32{}, moves: newMoves(), checks: make([][]check, 1), chunks: map[uint64]*chunk{}, windows: map[Memory]*window{},
		stamps: make([]stamp, 1), summaries: newSummaries()}
}

// stateOf returns the state of a site.
func (h *Fast) stateOf(s *Site) *siteState {
	for uint32(len(h.sites)) <= s.Number {
		h.sites = append(h.sites, nil)
	}
	if h.sites[s.Number] == nil {
		h.sites[s.Number] = &siteState{}
	}
	return h.sites[s.Number]
}

// Weak implements History.
func (h *Fast) Weak(w *Warp, race func(*Access, Race)) {
	h.enter(w.Block.Launch)
	s := h.stateOf(w.Site)
	v, same := w.Block.View(w.InBlock)
	mask := w.Event.Mask
	switch {
	case same && !w.Site.Side.Write && h.deferLoad(w, s, v):
		return
	case same:
		h.weak(w, s, v, mask, race)
		return
	case mask&(mask-1) == 0:
		h.weak(w, s, w.Block.ViewOf(w.InBlock, bits.TrailingZeros32(mask)), mask, race)
		return
	case w.Site.Side.Write: // all lanes are judged before any is recorded
		w.Each()
		h.byLanes(w, s, w.Event.Mask, 0, ^uint64(0), race)
		return
	}
	for v, lanes := range w.Block.Views(w.InBlock, w.Event.Mask) {
		h.weak(w, s, v, lanes, race)
	}
}

// weak is Weak for lanes with a common view.
func (h *Fast) weak(w *Warp, s *siteState, v *order.View, lanes uint32, race func(*Access, Race)) {
	e := w.Event
	w.begin(v, lanes)
	write := w.Site.Side.Write
	if e.Flags&event.FlagScattered != 0 || write && (lanes != e.Mask || e.Flags&event.FlagOld == 0 || !w.apart()) || !aligned(e) {
		h.byLanes(w, s, lanes, 0, ^uint64(0), race)
		return
	}
	if lanes&(lanes-1) == 0 && h.isSplit(w, e) {
		h.byLanes(w, s, lanes, 0, ^uint64(0), race)
		return
	}
	slot := &s.recent[(uint32(e.Addr%segmentBytes)>>2^lanes>>7^lanes)%uint32(len(s.recent))]
	if *slot == nil || !(*slot).key.is(e, lanes) {
		x := h.shapeOf(w.Batch, e, keyOf(w.Site, e, lanes), s)
		if x == nil {
			h.byLanes(w, s, lanes, 0, ^uint64(0), race)
			return
		}
		*slot = x
	}
	parts := (*slot).parts
	a := acting{Warp: w, site: s}
	base := e.Addr / segmentBytes
	changed := ^uint8(0)
	for i := range parts {
		part := &parts[i]
		n := base + uint64(part.segment)
		p := h.page(w.Memory, n*segmentBytes)
		j := int(n % pageSegs)
		seg := &p.segments[j]
		if seg.history&wordsFlag == 0 && !p.mayRace && len(h.current.hosts) == 0 {
			a.access, a.lane, a.changed = part.access, part.lane, unchanged
			if write && h.histories[seg.history].stored.overlaps(h.kinds[part.access].all) {
				if changed > allChanged {
					changed = changes(&a)
				}
				a.changed = changed
			}
			from := *seg
			keep, ok := h.step(seg, &a)
			if ok {
				if keep {
					h.save(p, j, from.history, seg.history, &a)
				}
				continue
			}
		}
		h.byLanes(w, s, part.lanes, n*segmentBytes, (n+1)*segmentBytes, race)
	}
}

// aligned reports whether the lanes' accesses are aligned to their size, a power of two. A modulo operation would cost
// as much as the rest of the check.
func aligned(e *event.Event) bool {
	below := uint64(e.Size) - 1
	return uint64(e.Size)&below == 0 && e.Addr&below == 0
}

// isSplit reports whether the words of the segment at an event's address have histories of their own.
func (h *Fast) isSplit(w *Warp, e *event.Event) bool {
	return h.page(w.Memory, e.Addr).segments[e.Addr/segmentBytes%pageSegs].history&wordsFlag != 0
}

// byLanes judges and records, lane by lane, the accesses of lanes to bytes in [from, end).
func (h *Fast) byLanes(w *Warp, s *siteState, lanes uint32, from, end uint64, race func(*Access, Race)) {
	write := w.Site.Side.Write
	rest := lanes
	if w.view != nil && w.Event.Size <= wordBytes && len(h.current.hosts) == 0 {
		rest = h.quick(w, s, lanes)
	}
	for m := rest; m != 0; m &= m - 1 {
		a := w.Lane(bits.TrailingZeros32(m))
		if write && a.Old != nil && !w.apart() {
			w.restore(a)
		}
		h.judge(a, from, end, race)
		if !write {
			h.record(a, s, 0, from, end)
		}
	}
	if !write {
		return
	}
	if from == 0 && !w.apart() {
		w.overlaps(race)
	}
	for m := rest; m != 0; m &= m - 1 {
		h.record(w.Lane(bits.TrailingZeros32(m)), s, 0, from, end)
	}
}

// quick judges and records accesses to words, or to parts of them, by lanes for which it is clear that they do not
// race: nobody has accessed the word, or the lane loads it and nobody has written it. It returns the remaining lanes.
func (h *Fast) quick(w *Warp, s *siteState, lanes uint32) (rest uint32) {
	e := w.Event
	write := w.Site.Side.Write
	if write && (e.Flags&event.FlagOld == 0 || !w.apart()) {
		return lanes
	}
	number := h.stampOf(s, w.stamp())
	if lanes&(lanes-1) == 0 { // prefetching gains nothing for one lane
		at := w.Batch.AddrOf(e, bits.TrailingZeros32(lanes))
		if p := h.page(w.Memory, at); at%uint64(e.Size) == 0 && !p.mayRace && h.plain(w, h.wordAt(p, int(at/segmentBytes%pageSegs), at), number, lanes) {
			return 0
		}
		return lanes
	}
	var words [32]*word
	rest = h.locate(w, lanes, &words)
	for m := lanes &^ rest; m != 0; m &= m - 1 {
		if !h.plain(w, words[bits.TrailingZeros32(m)], number, m&-m) {
			rest |= m & -m
		}
	}
	return rest
}

// plain judges and records an access by a lane to a word, or to a part of it, if it is clear that it does not race.
// Otherwise it does nothing and returns false.
func (h *Fast) plain(w *Warp, x *word, number, lane uint32) bool {
	write := w.Site.Side.Write
	switch {
	case w.Event.Size < wordBytes:
		return h.plainPart(w, x, number, lane)
	case x.stamp == 0:
		*x = word{number, lane}
		return true
	case x.stamp == number && !write:
		x.lanes |= lane
		return true
	case x.stamp&(listFlag|partsFlag) == 0 && h.own(w, x, number, lane):
		return true
	}
	return x.stamp&listFlag != 0 && h.next(w, x, number, lane)
}

// next judges and records an access by one lane to a word with a list, if it happens after all accesses in the list.
// Otherwise it does nothing and returns false.
func (h *Fast) next(w *Warp, x *word, number, lane uint32) bool {
	l := h.lists.of(x.stamp &^ listFlag)
	a := w.Lane(bits.TrailingZeros32(lane))
	h.inherit(l, a.Actor.Launch)
	if !h.before(l, a) {
		return false
	}
	if x.lanes&listStored != 0 {
		h.overwrite(a, l, a.From, 15)
	}
	h.recordList(a, x, l, entry{stamp: number, lanes: lane, bytes: 15}, a.From, 0, true)
	return true
}

// locate finds the words that lanes of a warp access, and prefetches them. It returns the lanes whose access is not
// within one word, or is to a page with earlier accesses that may race.
func (h *Fast) locate(w *Warp, lanes uint32, words *[32]*word) (rest uint32) {
	var at [32]uint64
	var pages [32]*page
	var ask [prefetch.Most]unsafe.Pointer
	n := 0
	var p *page
	for m := lanes; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at[i] = w.Batch.AddrOf(w.Event, i)
		if p == nil || at[i]&^(pageBytes-1) != p.address {
			p = h.page(w.Memory, at[i])
		} else {
			h.touch(w.Memory, p, at[i])
		}
		if at[i]%uint64(w.Event.Size) != 0 || p.mayRace {
			rest |= m & -m
			continue
		}
		pages[i] = p
		ask[n] = unsafe.Pointer(&p.segments[at[i]/segmentBytes%pageSegs])
		n++
	}
	prefetch.Lines(&ask, n)
	n = 0
	for m := lanes &^ rest; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		words[i] = h.wordAt(pages[i], int(at[i]/segmentBytes%pageSegs), at[i])
		ask[n] = unsafe.Pointer(words[i])
		n++
	}
	prefetch.Lines(&ask, n)
	n = 0
	for m := lanes &^ rest; m != 0; m &= m - 1 {
		if x := words[bits.TrailingZeros32(m)]; x.stamp&listFlag != 0 {
			ask[n] = unsafe.Pointer(h.lists.of(x.stamp &^ listFlag))
			n++
		} else if x.stamp&partsFlag != 0 {
			ask[n] = unsafe.Pointer(h.parts.of(x.stamp &^ partsFlag))
			n++
		}
	}
	prefetch.Lines(&ask, n)
	return rest
}

// own judges and records an access by a lane to a word without a list, or to a byte of one, if only the lane's own
// thread has accessed it in the launch. Otherwise it does nothing and returns false.
func (h *Fast) own(w *Warp, x *word, number, lane uint32) bool {
	if x.stamp&setFlag == 0 {
		if s := &h.stamps[x.stamp]; s.site == w.Site && s.launch != w.Block.Launch && w.Block.Follows(s.launch) {
			*x = word{number, lane} // replaces what its site did in an earlier launch
			return true
		}
	}
	j := h.joinOf(x.stamp, member{stamp: number})
	if !j.clear || j.thread && x.lanes != lane {
		return false
	}
	if w.Site.Side.Write && j.stored {
		changed := w.changes(bits.TrailingZeros32(lane))
		now := member{stamp: number}
		for _, m := range h.members(x.stamp) {
			switch s := &h.stamps[m.stamp]; {
			case s.launch != w.Block.Launch || !s.site.WeakStore():
			case s.site == w.Site:
				if changed || m.values == mixed {
					now.values = mixed
				}
			case changed && m.values == inMemory:
				return false
			}
		}
		j = h.joinOf(x.stamp, now)
	}
	*x = word{j.to, lane}
	return true
}

// changes reports whether a lane's store of at most a word changes what is in memory.
func (w *Warp) changes(lane int) bool {
	now, was := w.Batch.ValueOf(w.Event, lane)[0], w.Batch.OldOf(w.Event, lane)[0]
	if w.Event.Size < wordBytes { // Old holds the surrounding word
		was >>= w.Batch.AddrOf(w.Event, lane) % wordBytes * 8
		return uint32(now^was)<<(32-8*w.Event.Size) != 0
	}
	return now != was
}

// Judge implements History.
func (h *Fast) Judge(a *Access, race func(*Access, Race)) {
	if a.Actor.Launch == nil {
		h.judgeHost(a, race)
		return
	}
	h.enter(a.Actor.Launch)
	h.judge(a, 0, ^uint64(0), race)
}

// Before implements History. It calls f for one lane and for bytes of one word at a time.
func (h *Fast) Before(a *Access, f func(Race)) {
	h.enter(a.Actor.Launch)
	for at := a.From; at < a.End; at = (at + wordBytes) &^ (wordBytes - 1) {
		base := at &^ (wordBytes - 1)
		stop := min(base+wordBytes, a.End)
		these := uint8(1<<(stop-base) - 1<<(at-base))
		h.each(h.wordAt(h.page(a.Memory, at), int(at/segmentBytes%pageSegs), base), func(e *entry) { h.entryBefore(a, e, base, these, f) })
	}
}

// entryBefore is Before for an entry of the word at an address.
func (h *Fast) entryBefore(a *Access, e *entry, at uint64, bytes uint8, f func(Race)) {
	s := &h.stamps[e.stamp]
	if bytes &= e.bytes; bytes == 0 || !s.site.Side.Write || s.launch != a.Actor.Launch {
		return
	}
	for m := e.lanes; m != 0; m &= m - 1 {
		r := Record{Site: s.site, Stamp: order.Stamp{Launch: s.launch, Warp: s.warp, Lane: bits.TrailingZeros32(m), Epoch: s.epoch}, Executed: s.exec, From: at, End: at + wordBytes}
		if !a.Actor.After(&r.Stamp) {
			continue
		}
		for b := bytes; b != 0; {
			from := uint64(bits.TrailingZeros8(b))
			n := uint64(bits.TrailingZeros8(^(b >> from)))
			f(Race{detect.NoRace, &r, at + from, at + from + n})
			b &^= (1<<n - 1) << from
		}
	}
}

// Record implements History. The access must have been judged.
func (h *Fast) Record(a *Access, chain order.ChainID) {
	if a.Actor.Launch == nil {
		h.recordHost(a)
		return
	}
	h.record(a, h.stateOf(a.Site), chain, 0, ^uint64(0))
}

// judge is Judge for a lane, restricted to the bytes [from, end).
func (h *Fast) judge(a *Access, from, end uint64, race func(*Access, Race)) {
	for i := range h.current.hosts {
		h.judgeHosts(a, &h.current.hosts[i], from, end, race)
	}
	for at := max(a.From, from); at < min(a.End, end); at = (at + wordBytes) &^ (wordBytes - 1) {
		p := h.page(a.Memory, at)
		i := int(at / segmentBytes % pageSegs)
		base := at &^ (wordBytes - 1)
		stop := min(base+wordBytes, a.End, end)
		bytes := uint8(1<<(stop-base) - 1<<(at-base))
		if p.mayRace && p.summaryOf(i) != 0 {
			h.judgeSummary(a, p.summaries[i], p.address+uint64(i)*segmentBytes, at, stop, race)
		}
		h.judgeWord(a, h.wordAt(p, i, base), base, bytes, race)
	}
}

// record is Record for a lane, restricted to the bytes [from, end).
func (h *Fast) record(a *Access, s *siteState, chain order.ChainID, from, end uint64) {
	number := h.stampOf(s, stamp{a.Site, a.Actor.Launch, a.Actor.Warp, a.Executed, a.Actor.View.Epoch})
	for at := max(a.From, from); at < min(a.End, end); at = (at + wordBytes) &^ (wordBytes - 1) {
		p := h.page(a.Memory, at)
		i := int(at / segmentBytes % pageSegs)
		base := at &^ (wordBytes - 1)
		stop := min(base+wordBytes, a.End, end)
		h.recordWord(a, number, h.wordAt(p, i, base), base, uint8(1<<(stop-base)-1<<(at-base)), chain)
	}
}

// wordAt returns the word at an address in segment i of a page. It splits the segment if necessary.
func (h *Fast) wordAt(p *page, i int, at uint64) *word {
	s := &p.segments[i]
	if s.history&wordsFlag == 0 {
		h.split(p, i)
	}
	return &h.words.of(s.history &^ wordsFlag)[at%segmentBytes/wordBytes]
}

// wordIn returns the word of an address.
func (h *Fast) wordIn(m Memory, at uint64) *word {
	return h.wordAt(h.page(m, at), int(at/segmentBytes%pageSegs), at)
}

// page returns the page of an address, creating it if necessary. The page is the current launch's from then on.
func (h *Fast) page(m Memory, at uint64) *page {
	var slot **page
	if m.Shared {
		slot = h.windowOf(m).page(at)
	} else {
		slot = &h.chunkOf(at / chunkBytes).pages[at/pageBytes%chunkSize]
	}
	p := *slot
	if p == nil || p.launch != h.current {
		p = h.enterPage(m, slot, at)
	}
	h.touch(m, p, at)
	return p
}

// enterPage makes the page of an address, created if necessary, one of the current launch.
func (h *Fast) enterPage(m Memory, slot **page, at uint64) *page {
	if !m.Shared && h.current != nil {
		h.performOthers(at)
	}
	p := *slot
	if p == nil {
		p = &page{address: at &^ (pageBytes - 1), launch: h.current, clean: true}
		*slot = p
	}
	if p.launch != h.current {
		p.clean = p.before(h.current)
		h.pass(p)
	}
	p.touched, p.deferred = 0, [classes]uint16{}
	if h.current == nil {
		return p
	}
	logs := h.current.logs
	if m.Shared {
		logs = [classes]*loads{h.loadsOf(m)}
	}
	for class, l := range logs {
		if l != nil && l.granules.chunks[at/chunkBytes] != nil {
			p.deferred[class] = l.granules.chunks[at/chunkBytes].page(at)
		}
	}
	return p
}

// chunkOf returns a chunk of pages of global memory, creating it if necessary.
func (h *Fast) chunkOf(n uint64) *chunk {
	c := &h.recentChunks[n*0x9e3779b97f4a7c15>>60]
	if c.chunk == nil || c.number != n {
		c.number, c.chunk = n, h.chunks[n]
		if c.chunk == nil {
			c.chunk = new(chunk)
			h.chunks[n] = c.chunk
		}
	}
	return c.chunk
}

// windowOf returns the shared memory of a block, creating it if necessary.
func (h *Fast) windowOf(m Memory) *window {
	slot := &h.recent[m.Block%uint32(len(h.recent))]
	if *slot != nil && (*slot).Memory == m {
		return *slot
	}
	w := h.windows[m]
	if w == nil {
		w = &window{Memory: m}
		h.windows[m] = w
	}
	*slot = w
	return w
}

// page returns the slot of the page of an address. The address wraps at maxWindow: the shared memory of all devices is
// much smaller.
func (w *window) page(at uint64) **page {
	n := at / pageBytes % (maxWindow / pageBytes)
	for uint64(len(w.pages)) <= n {
		w.pages = append(w.pages, nil)
	}
	return &w.pages[n]
}

// maxWindow bounds the size of a block's shared memory.
const maxWindow = 16 << 20

// Forget implements History.
func (h *Fast) Forget(m Memory) {
	w := h.windows[m]
	if w == nil {
		return
	}
	w.loads.forget()
	for _, p := range w.pages {
		if p != nil {
			h.clear(p)
		}
	}
}

// EndBlock implements History.
func (h *Fast) EndBlock(m Memory) {
	h.Forget(m)
	if h.windows[m] != nil {
		delete(h.windows, m)
		h.recent[m.Block%uint32(len(h.recent))] = nil
	}
}

// clear drops all accesses to a page.
func (h *Fast) clear(p *page) {
	for i := range p.segments {
		h.clearSegment(p, i)
	}
	p.saved, p.past = nil, nil
	p.touched, p.deferred = 0, [classes]uint16{}
}

func (h *Fast) clearSegment(p *page, i int) {
	s := &p.segments[i]
	if s.history&wordsFlag != 0 {
		n := s.history &^ wordsFlag
		words := h.words.of(n)
		for j := range words {
			h.drop(&words[j])
		}
		h.words.drop(n)
	}
	*s = segment{}
	for _, x := range p.past {
		x.segments[i] = segment{}
	}
	if p.summaries != nil {
		p.summaries[i] = 0
	}
	if p.saved != nil {
		delete(p.saved, i)
	}
}
