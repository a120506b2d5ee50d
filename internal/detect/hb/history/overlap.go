package history

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// JudgeStore judges a store by all lanes. The lanes are not ordered with each other.
func (w *Warp) JudgeStore(h History, race func(*Access, Race)) {
	for m := w.Event.Mask; m != 0; m &= m - 1 {
		a := w.Lane(bits.TrailingZeros32(m))
		h.Judge(a, race)
	}
	if !w.apart() {
		w.overlaps(race)
	}
}

// overlaps finds the races between the lanes of one store.
func (w *Warp) overlaps(race func(*Access, Race)) {
	e := w.Event
	for m := e.Mask; m != 0; m &= m - 1 {
		for n := e.Mask & (m&-m - 1); n != 0; n &= n - 1 {
			earlier := *w.Lane(bits.TrailingZeros32(n))
			a := w.Lane(bits.TrailingZeros32(m))
			from, end := max(a.From, earlier.From), min(a.End, earlier.End)
			if from >= end {
				continue
			}
			rel := detect.Relation{SameLaunch: true, SameBlock: true, SameWarp: true, SameEvent: true, SameValue: sameBytes(a, &earlier, from, end)}
			if c := detect.Classify(a.Site.Side, a.Site.Side, rel); c != detect.NoRace {
				r := Record{Site: a.Site, Stamp: earlier.Actor.Stamp(), Executed: e.Mask, From: earlier.From, End: earlier.End}
				race(a, Race{c, &r, from, end})
			}
		}
	}
}

// restore sets a.Old to the bytes before the whole store. A lower lane may have written the same bytes, and then the
// batch returns what that lane wrote.
func (w *Warp) restore(a *Access) {
	old := w.before[:copy(w.before[:], a.Old)]
	size := uint64(w.Event.Size)
	base := a.From
	if size < wordBytes {
		base &^= wordBytes - 1
	}
	for at := a.From; at < a.End; at++ {
		for m := w.Event.Mask & (1<<uint(a.Actor.Lane) - 1); m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if from := w.Batch.AddrOf(w.Event, lane); from <= at && at < from+size {
				x := Access{From: from, End: from + size, Old: w.Batch.OldOf(w.Event, lane)}
				shift := (at - base) % 8 * 8
				old[(at-base)/8] = old[(at-base)/8]&^(0xff<<shift) | uint64(x.old(at))<<shift
				break
			}
		}
	}
	a.Old = old
}

// sameBytes reports whether two stores write the same into [from, end).
func sameBytes(a, b *Access, from, end uint64) bool {
	if a.Values == nil || b.Values == nil {
		return false
	}
	for at := from; at < end; at++ {
		if a.Value(at) != b.Value(at) {
			return false
		}
	}
	return true
}

// apart reports whether no two lanes of a store write the same bytes. It may return false if that is not cheap to see.
func (w *Warp) apart() bool {
	e := w.Event
	size := uint64(e.Size)
	switch {
	case e.Mask&(e.Mask-1) == 0:
		return true
	case e.Flags&event.FlagScattered == 0:
		stride := max(e.Stride, -e.Stride)
		if e.Flags&event.FlagRows == 0 {
			return stride >= int64(size)
		}
		rows := max(e.RowStride(), -e.RowStride())
		if stride < rows { // rows one after another, or interleaved
			return stride >= int64(size) && rows >= stride<<e.RowShift
		}
		return rows >= int64(size) && stride >= rows<<(5-e.RowShift)
	}
	if size&(size-1) != 0 {
		return false
	}
	var seen [64]uint64
	addrs := w.Batch.Addrs[e.Side:][:bits.OnesCount32(e.Mask)]
	shift := bits.TrailingZeros64(size)
	for i, at := range addrs {
		if at&(size-1) != 0 {
			return false
		}
		n := at >> shift * 0x9e3779b97f4a7c15
		bit := uint64(1) << (n >> 58)
		if x := &seen[n>>52&63]; *x&bit == 0 {
			*x |= bit
			continue
		}
		for _, o := range addrs[:i] {
			if at-o < size || o-at < size {
				return false
			}
		}
	}
	return true
}
