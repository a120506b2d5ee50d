package event

import "math/bits"

// Strip is lanes of a memory event whose addresses have a constant step from lane to lane.
type Strip struct {
	Addr uint64 // of the lowest lane
	Mask uint32 // adjacent lanes, unless Step is 0
	Step int64  // also 0 for a single lane
}

// Low returns the lowest lane of the strip.
func (s *Strip) Low() int { return bits.TrailingZeros32(s.Mask) }

// High returns the highest lane of the strip.
func (s *Strip) High() int { return 31 - bits.LeadingZeros32(s.Mask) }

// Same reports whether several lanes access the same bytes.
func (s *Strip) Same() bool { return s.Step == 0 && s.Mask&(s.Mask-1) != 0 }

// Strip returns a strip of a memory event that begins with the lowest lane of left, a subset of the event's lanes: the
// longest one, or the longest within the lane's row. Two lanes form a strip only if they access the same or adjacent
// bytes. A caller that repeatedly removes the lanes of a strip from left sees the lanes in order, with one exception:
// lanes at one address may have other lanes between them, but only if the strip consists of all lanes of left.
func (b *Batch) Strip(e *Event, left uint32) Strip {
	lane := bits.TrailingZeros32(left)
	s := Strip{Addr: b.AddrOf(e, lane), Mask: 1 << lane}
	near := bits.TrailingZeros32(^(left >> lane)) // number of consecutive lanes, including this one
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

// Parts divides a strip of accesses of size bytes into parts that each lie in one aligned granule of memory, and calls
// f for each: as many adjacent lanes as fit, but at least one. Lanes that access the same bytes are one part.
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
