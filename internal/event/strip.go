package event

import "math/bits"

// Strip is lanes of a memory event whose addresses follow from each other: neighbours, each of which accesses the bytes behind those of
// the one before, or lanes that all access the same.
type Strip struct {
	Addr uint64 // that of the lowest lane
	Mask uint32 // adjacent lanes, unless Same
	Same bool   // all at Addr; never for a single lane
}

// Low is the lowest lane of the strip.
func (s *Strip) Low() int { return bits.TrailingZeros32(s.Mask) }

// High is the highest lane of the strip.
func (s *Strip) High() int { return 31 - bits.LeadingZeros32(s.Mask) }

// Strip gives a strip of a memory event that starts with the lowest lane of left, which are lanes of the event: the longest, or that in
// the lane's row. Who takes those
// lanes from left, and so on until none is left, has seen the lanes in order, unless a strip is of lanes at the same address
// between which others stand: that happens only when all lanes of left are in it.
func (b *Batch) Strip(e *Event, left uint32) Strip {
	lane := bits.TrailingZeros32(left)
	s := Strip{Addr: b.AddrOf(e, lane), Mask: 1 << lane}
	near := bits.TrailingZeros32(^(left >> lane)) // lanes next to each other, this one included
	if e.Flags&FlagRows != 0 {
		near = min(near, 1<<e.RowShift-lane&(1<<e.RowShift-1))
		if s.Same = e.Stride == 0 && near > 1; s.Same || e.Stride == int64(e.Size) {
			s.Mask = adjacent(lane, near)
		}
		return s
	}
	if e.Affine() {
		switch {
		case e.Stride == 0:
			s.Mask, s.Same = left, left&(left-1) != 0
		case e.Stride == int64(e.Size):
			s.Mask = adjacent(lane, near)
		}
		return s
	}
	at := b.Addrs[int(e.Side)+rank(e.Mask, lane):]
	n := 1
	if near > 1 {
		step := at[1] - at[0]
		if s.Same = step == 0; s.Same || step == uint64(e.Size) {
			for n = 2; n < near && at[n]-at[n-1] == step; n++ {
			}
		}
	}
	s.Mask = adjacent(lane, n)
	return s
}

// Parts calls f for the parts of a strip of neighbours, that access size bytes each, that lie in one aligned granule of memory: as
// many lanes as fit, but at least one.
func (s *Strip) Parts(size, granule uint64, f func(part Strip)) {
	at := s.Addr
	for lane, end := s.Low(), s.High()+1; lane < end; {
		n := max(1, min(end-lane, int((granule-at%granule)/size)))
		f(Strip{Addr: at, Mask: adjacent(lane, n)})
		lane, at = lane+n, at+uint64(n)*size
	}
}

func adjacent(lane, n int) uint32 { return uint32((1<<n - 1) << lane) }
