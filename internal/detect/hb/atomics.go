package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// atomics are the relaxed read-modify-writes of aligned words in an interval that has no other accesses to shared
// memory. They are morally strong with each other, so they do not race. No thread of the block has begun a pattern, so
// they order nothing. The barrier that ends the interval also ends the sync variables that they made. All that is
// needed of them at the end of the interval is what explanations ask for: which threads observed a write of another
// thread.
type atomics struct {
	log   []deferredAtomic
	words []uint16 // the addresses of all lanes, divided by 4, in execution order
	told  int      // the length of the prefix of log that explain.Witness has been told of
	// writers holds for each word the thread that wrote it last: 1 + warp<<5 + lane, or 0 if none did.
	writers   []uint16
	high      int              // words from this index on have not been written
	observers [maxWarps]uint32 // by warp: lanes that have observed a write of another thread
	addrs     [32]uint64
}

// deferredAtomic is one read-modify-write instruction executed by lanes of a warp.
type deferredAtomic struct {
	site       *history.Site
	mask, warp uint32
	words      uint32 // the index of its first address in atomics.words
	observed   uint32 // lanes that received a value written by another thread; none for red
	tell       uint32 // lanes of observed that tellAtomics reports
}

const maxAtomicWords = 1 << 18 // addresses in one interval

func (a *atomics) any() bool { return len(a.log) > 0 }

func (a *atomics) reset() {
	clear(a.writers[:a.high])
	a.log, a.words, a.told, a.high = a.log[:0], a.words[:0], 0, 0
	clear(a.observers[:])
}

// deferAtomic defers a read-modify-write of shared memory in an interval without weak accesses. It returns false if it
// cannot.
func (d *Detector) deferAtomic(v *interval, b *event.Batch, e *event.Event, wi uint32) bool {
	a := &v.atomics
	const flags = event.FlagRead | event.FlagWrite
	if e.Order > event.Relaxed || e.Order == event.Volatile || e.RMW != event.OtherRMW || e.Flags&flags != flags || e.Size != 4 ||
		e.Flags&event.FlagVector != 0 || len(a.words) >= maxAtomicWords {
		return false
	}
	s := d.site(e)
	if s.Sync.Acquires || len(a.log) == 0 && (v.block.Patterns() || d.witness.Follows(v.block)) {
		return false
	}
	all := uint64(0)
	var room [32]uint64
	addresses := b.Addresses(e, &room)
	for _, at := range addresses {
		all |= at
	}
	if all%4 != 0 || all >= 4<<16 {
		return false
	}
	x := deferredAtomic{site: s, mask: e.Mask, warp: wi, words: uint32(len(a.words))}
	a.words = slices.Grow(a.words, 32)[:len(a.words)+len(addresses)]
	words := a.words[x.words:]
	a.high = max(a.high, int(all/4)+1) // the OR of all addresses bounds each of them
	a.writers = append(a.writers, make([]uint16, max(a.high-len(a.writers), 0))...)
	writers, m := a.writers, e.Mask
	for i, at := range addresses {
		w := at / 4
		words[i] = uint16(w)
		me := uint16(1 + wi<<5 + uint32(bits.TrailingZeros32(m)))
		if by := writers[w]; by != 0 && by != me {
			x.observed |= m & -m
		}
		writers[w] = me
		m &= m - 1
	}
	if e.Flags&event.FlagRed != 0 {
		x.observed = 0
	}
	a.observers[wi] |= x.observed
	a.log = append(a.log, x)
	v.block.Accesses(wi, e.Mask, true)
	return true
}

// event rebuilds the event of a deferred read-modify-write and a batch for it. Both are valid until the next call.
func (a *atomics) event(b *order.Block, x *deferredAtomic) (event.Batch, event.Event) {
	for i, w := range a.words[x.words:][:bits.OnesCount32(x.mask)] {
		a.addrs[i&31] = 4 * uint64(w)
	}
	e := x.site.Event
	e.Mask, e.Launch, e.Warp = x.mask, b.Info.ID, b.Index*b.WarpsPerBlock+x.warp
	e.Flags = event.FlagRead | event.FlagWrite | event.FlagScattered
	if !x.site.Sync.Reads {
		e.Flags |= event.FlagRed
	}
	return event.Batch{Addrs: a.addrs[:]}, e
}

// tellAtomics tells the witness about the deferred operations of an interval: for each thread its last observation, and
// its last observation of another location. The witness keeps no more than that. When perform tells it of the same
// operations again, nothing changes, because none of these accesses races.
func (d *Detector) tellAtomics(v *interval) {
	a := &v.atomics
	var done [maxWarps]uint32
	var last [maxWarps][32]uint16
	var seen [maxWarps]uint32
	first := len(a.log)
	for left := a.observers; first > a.told && left != done; first-- {
		x := &a.log[first-1]
		x.tell = 0
		for m := x.observed &^ done[x.warp]; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			w := a.words[x.words+uint32(bits.OnesCount32(x.mask&(m&-m-1)))]
			switch at := &last[x.warp][lane]; {
			case seen[x.warp]&m&-m == 0:
				*at = w
				seen[x.warp] |= m & -m
			case *at != w:
				done[x.warp] |= m & -m
			default:
				continue
			}
			x.tell |= m & -m
		}
	}
	for i := first; i < len(a.log); i++ {
		if x := &a.log[i]; x.tell != 0 {
			b, e := a.event(v.block, x)
			o := explain.Operation{Batch: &b, Event: &e, Site: x.site, Block: v.block, Warp: x.warp}
			d.witness.Observed(&o, 0, &order.Observations{Lanes: x.tell, InScope: x.tell, Within: true})
		}
	}
	a.told = len(a.log)
}

// tell tells the witness about the deferred operations of a block, because a race of that block is about to be
// explained.
func (d *Detector) tell(l *order.Launch, block uint32) {
	for _, v := range d.intervals {
		if v.atomics.any() && v.block.Launch == l && v.block.Index == block {
			d.tellAtomics(v)
		}
	}
}

// StrongAccesses implements history.StrongAccesses. It includes the deferred ones.
func (d *Detector) StrongAccesses(m history.Memory, address uint64, f func(*history.Record)) {
	d.history.StrongAccesses(m, address, f)
	for _, v := range d.intervals {
		if !m.Shared || v.block == nil || v.block.Info.ID != m.Launch || v.block.Index != m.Block {
			continue
		}
		a := &v.atomics
		for i := range a.log {
			x := &a.log[i]
			n := x.words
			for rest := x.mask; rest != 0; rest &= rest - 1 {
				if from := 4 * uint64(a.words[n]); from <= address && address < from+4 {
					lane := bits.TrailingZeros32(rest)
					who := v.block.Actor(x.warp, lane)
					f(&history.Record{Site: x.site, Stamp: who.Stamp(), Executed: x.mask, From: from, End: from + 4})
				}
				n++
			}
		}
	}
}
