package event

import "math/bits"

// Strip is lanes of a memory event whose addresses differ by one step from lane to lane.
type Strip struct {
	Addr uint64 // that of the lowest lane
	Mask uint32 // adjacent lanes, unless Step is 0
	Step int64  // 0 for a single lane too
}

// Low is the lowest lane of the strip.
func (s *Strip) Low() int { return bits.TrailingZeros32(s.Mask) }

// High is the highest lane of the strip.
func (s *Strip) High() int { return 31 - bits.LeadingZeros32(s.Mask) }

// Same reports whether several lanes access the same bytes.
func (s *Strip) Same() bool { return s.Step == 0 && s.Mask&(s.Mask-1) != 0 }

// Strip gives a strip of a memory event that starts with the lowest lane of left, which are lanes of the event: the longest, or that in
// the lane's row. Of two lanes it is only if they access the same bytes or adjacent ones. Who takes those
// lanes from left, and so on until none is left, has seen the lanes in order, unless a strip is of lanes at the same address
// between which others stand: that happens only when all lanes of left are in it.
func (b *Batch) Strip(e *Event, left uint32) Strip {
	lane := bits.TrailingZeros32(left)
	s := Strip{Addr: b.AddrOf(e, lane), Mask: 1 << lane}
	near := bits.TrailingZeros32(^(left >> lane)) // lanes next to each other, this one included
	step := e.Stride
	switch {
	case e.Flags&FlagScattered != 0:
		at := b.Addrs[int(e.Side)+rank(e.Mask, lane):]
		n := min(near, 2)
		if n == 2 {
			for step = int64(at[1] - at[0]); n < near && int64(at[n]-at[n-1]) == step; n++ {
			}
		}
		near = n
	case e.Flags&FlagRows != 0:
		near = min(near, 1<<e.RowShift-lane&(1<<e.RowShift-1))
	case step == 0 && left != s.Mask:
		s.Mask = left
		return s
	}
	if near > 2 || near == 2 && (step == 0 || step == int64(e.Size)) {
		s.Mask, s.Step = adjacent(lane, near), step
	}
	return s
}

// Parts calls f for the parts of a strip of accesses of size bytes that lie in one aligned granule of memory: as many adjacent
// lanes as fit, but at least one. Lanes that access the same bytes are one part.
func (s *Strip) Parts(size, granule uint64, f func(part Strip)) {
	if s.Step == 0 {
		f(*s)
		return
	}
	at := s.Addr
	for lane, end := s.Low(), s.High()+1; lane < end; {
		n := 1
		for next := at%granule + uint64(s.Step); lane+n < end && next+size <= granule && next < granule; n++ {
			next += uint64(s.Step)
		}
		part := Strip{Addr: at, Mask: adjacent(lane, n)}
		if n > 1 {
			part.Step = s.Step
		}
		f(part)
		lane, at = lane+n, at+uint64(int64(n)*s.Step)
	}
}

func adjacent(lane, n int) uint32 { return uint32((1<<n - 1) << lane) }
