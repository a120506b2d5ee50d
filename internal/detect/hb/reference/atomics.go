package reference

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// atomics are the relaxed read-modify-writes of aligned words of shared memory of an interval that has no other accesses of
// shared memory. They are morally strong with each other, so they do not race; no thread of the block has begun a pattern, so
// they order nothing; and the barrier ends the values of what they wrote. What is left of them at the end of the interval is
// what explanations ask for: who observed a write of another thread.
type atomics struct {
	log   []deferredAtomic
	words []uint16 // of all lanes, in their order: addresses / 4
	told  int      // how many of log explain.Witness knows
	// writers are, by word, the threads that wrote last, of what the witness knows: 1 + warp<<5 + lane, 0 for none.
	writers []uint16
	high    int // words from here on have not been written
	addrs   [32]uint64
}

// deferredAtomic is a read-modify-write by lanes of a warp.
type deferredAtomic struct {
	site       *history.Site
	mask, warp uint32
	words      uint32 // in atomics.words
	returns    bool
}

const maxAtomicWords = 1 << 18 // of an interval

func (a *atomics) any() bool { return len(a.log) > 0 }

func (a *atomics) reset() {
	clear(a.writers[:a.high])
	a.log, a.words, a.told, a.high = a.log[:0], a.words[:0], 0, 0
}

// putOffAtomic puts off a read-modify-write of shared memory in an interval without weak accesses.
func (d *Detector) putOffAtomic(v *interval, b *event.Batch, e *event.Event, wi uint32) bool {
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
	n := uint32(len(a.words))
	for _, at := range addresses {
		a.words = append(a.words, uint16(at/4))
	}
	a.log = append(a.log, deferredAtomic{s, e.Mask, wi, n, e.Flags&event.FlagRed == 0})
	v.block.Accesses(wi, e.Mask, true)
	return true
}

// each calls f for the read-modify-writes from one on, in their order.
func (a *atomics) each(b *order.Block, from int, f func(batch *event.Batch, e *event.Event, x *deferredAtomic, words []uint16)) {
	batch := event.Batch{Addrs: a.addrs[:]}
	for i := from; i < len(a.log); i++ {
		x := &a.log[i]
		words := a.words[x.words:][:bits.OnesCount32(x.mask)]
		for j, w := range words {
			a.addrs[j&31] = 4 * uint64(w)
		}
		e := x.site.Event
		e.Mask, e.Launch, e.Warp = x.mask, b.Info.ID, b.Index*b.WarpsPerBlock+x.warp
		e.Flags = event.FlagRead | event.FlagWrite | event.FlagScattered
		if !x.returns {
			e.Flags |= event.FlagRed
		}
		f(&batch, &e, x, words)
	}
}

// tellAtomics tells the witness what has been put off in an interval. What perform tells it again changes nothing: it tells
// of the last that each thread observed, and none of these races.
func (d *Detector) tellAtomics(v *interval) {
	a := &v.atomics
	from := a.told
	a.told = len(a.log)
	a.each(v.block, from, func(b *event.Batch, e *event.Event, x *deferredAtomic, words []uint16) {
		observed := uint32(0)
		m := x.mask
		for _, w := range words {
			for int(w) >= len(a.writers) {
				a.writers = append(a.writers, make([]uint16, 256)...)
			}
			me := 1 + uint16(x.warp<<5) + uint16(bits.TrailingZeros32(m))
			if by := a.writers[w]; by != 0 && by != me {
				observed |= m & -m
			}
			a.writers[w] = me
			a.high = max(a.high, int(w)+1)
			m &= m - 1
		}
		if x.returns && observed != 0 {
			o := explain.Operation{Batch: b, Event: e, Site: x.site, Block: v.block, Warp: x.warp}
			d.witness.Observed(&o, 0, observed, observed, true)
		}
	})
}

// tell tells the witness what is put off in a block, whose accesses are to be explained.
func (d *Detector) tell(l *order.Launch, block uint32) {
	for _, v := range d.intervals {
		if v.atomics.any() && v.block.Launch == l && v.block.Index == block {
			d.tellAtomics(v)
		}
	}
}

// StrongWrites implements history.StrongWrites: with those that are put off.
func (d *Detector) StrongWrites(m history.Memory, address uint64, f func(*history.Record)) {
	d.history.StrongWrites(m, address, f)
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
