package history

import (
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/prefetch"
)

// Relaxed judges and records relaxed atomic operations of words by a warp, as far as it is plain that they do not race: all
// accesses of the word are atomic operations of words with the widest scope. Perform performs that of a lane, or those of lanes
// that update one word, by the last of them; it says false, having done nothing, where that is not to be done here. Relaxed gives
// the lanes whose operations remain to be judged, performed and recorded.
func (h *Fast) Relaxed(w *Warp, perform func(lane int, at uint64) (order.ChainID, bool)) (rest uint32) {
	e := w.Event
	h.enter(w.Block.Launch)
	if len(h.current.hosts) > 0 {
		return e.Mask
	}
	v, same := w.Block.View(w.InBlock)
	if !same {
		return e.Mask
	}
	w.begin(v, e.Mask)
	s := h.stateOf(w.Site)
	h.seen(s, w.Block.Launch, e.Warp, w.serial)
	number := h.stampOf(s, stamp{w.Site, w.Block.Launch, e.Warp, e.Mask, v.Epoch})
	lanes, each := e.Mask, uint32(0)
	if e.Flags&(event.FlagScattered|event.FlagRows) == 0 && e.Stride == 0 && w.Site.Sync.Updates {
		lanes, each = 1<<(31-bits.LeadingZeros32(e.Mask)), e.Mask // all of one word
	}
	var words [32]*word
	rest = h.locate(w, lanes, &words)
	h.ask(w, lanes&^rest, &words)
	for m := lanes &^ rest; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		x := words[lane]
		if x.stamp != 0 && (x.stamp&listFlag == 0 || x.lanes&listWeak != 0) {
			rest |= m & -m
			continue
		}
		l := h.listed(x)
		h.inherit(l, w.Block.Launch)
		chain, ok := perform(lane, w.Batch.AddrOf(e, lane))
		if !ok {
			rest |= m & -m
			continue
		}
		if w.Site.Side.Write {
			x.lanes |= listWritten
			if l.chain == 0 {
				l.chain = chain
			}
		}
		switch now := each | m&-m; {
		case w.Site.Side.Write && chain != l.chain:
			h.update(l, x, entry{stamp: number, lanes: now, more: uint32(chain), bytes: 15})
		case l.atomics.stamp == 0:
			l.atomics, l.top.lanes = h.begin(word{number, now}), 0
		default:
			h.read(&l.atomics, number, now)
			l.top.lanes = 0
		}
	}
	if rest != 0 {
		rest |= each
	}
	return rest
}

// ask brings what is to be read of the lists and variables of words that lanes access into the processor's caches.
func (h *Fast) ask(w *Warp, lanes uint32, words *[32]*word) {
	if lanes&(lanes-1) == 0 {
		return
	}
	write := w.Site.Side.Write
	var variables, entries, earlier [prefetch.Most]unsafe.Pointer
	n := 0
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		x := words[lane]
		if x.stamp&listFlag == 0 {
			continue
		}
		l := h.lists.of(x.stamp &^ listFlag)
		variables[n] = h.order.Variable(w.Batch.AddrOf(w.Event, lane))
		if r := h.readers.of(&l.atomics); len(r) > 0 {
			entries[n], earlier[n] = unsafe.Pointer(&r[len(r)-1]), unsafe.Pointer(&r[max(len(r)-recentReads, 0)])
		} else if k := len(l.entries); k > 0 && write {
			entries[n], earlier[n] = unsafe.Pointer(&l.entries[k-1]), unsafe.Pointer(&l.entries[max(k-4, 0)])
		}
		n++
	}
	prefetch.Lines(&variables, n)
	prefetch.Lines(&entries, n)
	prefetch.Lines(&earlier, n)
}

// update records an atomic operation of a word by lanes.
func (h *Fast) update(l *list, w *word, now entry) {
	n := &h.stamps[now.stamp]
	for i := l.newest(h, n); i != 0; i = l.next(h, i) {
		e := &l.entries[i-1]
		if e.warp != uint8(n.warp) || e.more != now.more || e.lanes == 0 {
			continue
		}
		if e.stamp == now.stamp {
			e.lanes |= now.lanes
			e.setLast(false)
			l.top.lanes = 0
			return
		}
		if e.lanes&now.lanes != 0 && h.supersedes(now.stamp, &h.stamps[e.stamp]) {
			e.lanes &^= now.lanes
		}
	}
	l.add(h, w, now)
}
