package history

import (
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/prefetch"
)

// Relaxed judges and records those relaxed atomic operations of words by a warp that clearly do not race: those on a
// word that has only been accessed by atomic operations of words with the widest scope. perform performs the operation
// of one lane, or those of several lanes that update one word. If perform returns false it has done nothing, and the
// operation must be performed elsewhere. Relaxed returns the lanes whose operations have still to be judged, performed
// and recorded.
func (h *Fast) Relaxed(w *Warp, perform func(lanes uint32, at uint64) (order.ChainID, bool)) (rest uint32) {
	e := w.Event
	h.enter(w.Block.Launch)
	v, same := w.Block.View(w.InBlock)
	if !same || len(h.current.hosts) > 0 {
		return e.Mask
	}
	w.begin(v, e.Mask)
	a := &h.relaxed
	a.Warp, a.site, a.perform, a.lanes, a.each = w, h.stateOf(w.Site), perform, e.Mask, 0
	if e.Flags&(event.FlagScattered|event.FlagRows) == 0 && e.Stride == 0 && w.Site.Sync.Updates {
		a.lanes, a.each = 1<<(31-bits.LeadingZeros32(e.Mask)), e.Mask // all update one word
	}
	if !w.Memory.Shared && (w.Site.Sync.Updates || !w.Site.Side.Write) && h.mayPutOff(h.current.logs[relaxedAtomics], w, a.site) && h.pending.aligned() {
		rest = h.deferAtomics(a)
	} else {
		rest = h.atomics(a)
	}
	if rest != 0 {
		rest |= a.each
	}
	return rest
}

// relaxed is the relaxed atomic operations by a warp.
type relaxed struct {
	*Warp
	site    *siteState
	perform func(lanes uint32, at uint64) (order.ChainID, bool)
	lanes   uint32 // one lane for each operation to perform
	each    uint32 // lanes that update one word together; 0: each lane has its own word
}

// all returns the lanes whose operations are performed with that of lane.
func (a *relaxed) all(lane int) uint32 { return a.each | 1<<lane }

// aligned reports whether all lanes access aligned words.
func (a *pending) aligned() bool {
	all := uint64(0)
	for _, at := range a.Batch.Addresses(a.Event, &a.room) {
		all |= at
	}
	return all%wordBytes == 0
}

// atomics performs and records atomic operations at once. It returns the lanes whose operations remain.
func (h *Fast) atomics(a *relaxed) (rest uint32) {
	number := h.stampOf(a.site, a.stamp())
	var words [32]*word
	rest = h.locate(a.Warp, a.lanes, &words)
	h.askVariables(a.Warp, a.lanes&^rest)
	for m := a.lanes &^ rest; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		x := words[lane]
		if x.stamp != 0 && (x.stamp&listFlag == 0 || x.lanes&listWeak != 0) {
			rest |= m & -m
			continue
		}
		chain, ok := a.perform(a.all(lane), a.Batch.AddrOf(a.Event, lane))
		if !ok {
			rest |= m & -m
			continue
		}
		h.atomic(x, word{number, a.all(lane)}, chain)
	}
	return rest
}

// deferAtomics performs atomic operations and defers recording them, unless operations of some lanes remain. It
// returns these lanes.
func (h *Fast) deferAtomics(a *relaxed) (rest uint32) {
	var chains [32]order.ChainID
	h.askVariables(a.Warp, a.lanes)
	for m := a.lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		chain, ok := a.perform(a.all(lane), a.Batch.AddrOf(a.Event, lane))
		if chains[lane] = chain; !ok {
			rest |= m & -m
		}
		h.pending.to.newest = max(h.pending.to.newest, chain)
	}
	if rest == 0 {
		h.write(a.view.Epoch)
		return 0
	}
	number := h.stampOf(a.site, a.stamp())
	for m := a.lanes &^ rest; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		h.atomic(h.wordIn(a.Memory, a.Batch.AddrOf(a.Event, lane)), word{number, a.all(lane)}, chains[lane])
	}
	return rest
}

// atomic records relaxed atomic operations on a word. chain is the chain of a write that made the current value of the
// word.
func (h *Fast) atomic(w *word, by word, chain order.ChainID) {
	l := h.listed(w)
	n := &h.stamps[by.stamp]
	h.inherit(l, n.launch)
	now := entry{stamp: by.stamp, lanes: by.lanes, bytes: 15}
	if n.site.Side.Write {
		now.more = uint32(chain)
	} else {
		now.more = uint32(h.order.Chains())
	}
	for i := l.newest(h, n); i != 0; i = l.next(h, i) {
		e := &l.entries[i-1]
		if e.warp != uint8(n.warp) || n.site.Side.Write && e.more != now.more || e.lanes == 0 {
			continue
		}
		if e.stamp == now.stamp {
			l.grow(e, now.lanes)
			e.more = now.more
			return
		}
		if e.lanes&now.lanes != 0 && h.supersedes(now.stamp, &h.stamps[e.stamp]) {
			e.lanes &^= now.lanes
		}
	}
	l.add(h, w, now)
}

// performAtomics records deferred atomic operations by lanes of a warp. last is at least the last chain that their
// launch made or continued; 0: the launch is running.
func (h *Fast) performAtomics(w *Warp, v *order.View, lanes uint32, last order.ChainID) {
	w.begin(v, lanes)
	number := h.stampOf(h.stateOf(w.Site), w.stamp())
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		now := word{number, m & -m}
		if w.Event.Stride == 0 && w.Event.Flags&(event.FlagScattered|event.FlagRows) == 0 {
			now.lanes, m = lanes, m&-m
		}
		at := w.Batch.AddrOf(w.Event, lane)
		h.atomic(h.wordIn(w.Memory, at), now, h.chainOf(w.Site, at, last))
	}
}

// chainOf returns the chain of a deferred write.
func (h *Fast) chainOf(s *Site, at uint64, last order.ChainID) order.ChainID {
	if !s.Side.Write {
		return 0
	}
	if last == 0 {
		last = h.order.Chains()
	}
	return h.order.Chain(at, wordBytes, last)
}

// askVariables prefetches the sync variables of the words that lanes access.
func (h *Fast) askVariables(w *Warp, lanes uint32) {
	var ask [prefetch.Most]unsafe.Pointer
	n := 0
	for m := lanes; m != 0; m &= m - 1 {
		ask[n] = h.order.Variable(w.Batch.AddrOf(w.Event, bits.TrailingZeros32(m)))
		n++
	}
	prefetch.Lines(&ask, n)
}
