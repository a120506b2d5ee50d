package explain

import (
	"math/bits"
	"slices"
)

// AddressSet is a set of bytes in several spaces. It stores chunks of one bit for each byte, and whole chunks of large
// ranges as ranges. It is compact both for copies of whole buffers and for bytes that lie far apart.
type AddressSet struct {
	chunks map[addressKey]*[chunkBytes / 64]uint64
	ranges []addressRange // disjoint ranges of whole chunks, which are not in chunks
	n      int
}

// addressRange is a range of whole chunks of a space.
type addressRange struct{ space, from, end uint64 }

type addressKey struct{ space, chunk uint64 }

const (
	chunkBytes = 512
	// rangeBytes is the least length at which consecutive chunks are stored as a range.
	rangeBytes = 1 << 20
)

// Len returns the number of bytes in the set.
func (s *AddressSet) Len() int { return s.n }

// addRange adds a range of whole chunks.
func (s *AddressSet) addRange(space, from, end uint64) {
	for k, c := range s.chunks {
		if at := k.chunk * chunkBytes; k.space == space && from <= at && at < end {
			for _, w := range c {
				s.n -= bits.OnesCount64(w)
			}
			delete(s.chunks, k)
		}
	}
	s.ranges = slices.DeleteFunc(s.ranges, func(r addressRange) bool {
		if r.space != space || r.end < from || end < r.from {
			return false
		}
		s.n -= int(r.end - r.from)
		from, end = min(from, r.from), max(end, r.end)
		return true
	})
	s.ranges = append(s.ranges, addressRange{space, from, end})
	s.n += int(end - from)
}

// rangeEnd returns the end of the range that contains an address; 0 if there is none.
func (s *AddressSet) rangeEnd(space, at uint64) uint64 {
	for _, r := range s.ranges {
		if r.space == space && r.from <= at && at < r.end {
			return r.end
		}
	}
	return 0
}

// Add adds the bytes [from, end) of a space.
func (s *AddressSet) Add(space, from, end uint64) {
	if s.chunks == nil {
		s.chunks = map[addressKey]*[chunkBytes / 64]uint64{}
	}
	if first, last := (from+chunkBytes-1)&^(chunkBytes-1), end&^(chunkBytes-1); first+rangeBytes <= last {
		s.addRange(space, first, last)
	}
	for from < end {
		if next := s.rangeEnd(space, from); next != 0 {
			from = next
			continue
		}
		k := addressKey{space, from / chunkBytes}
		c := s.chunks[k]
		if c == nil {
			c = new([chunkBytes / 64]uint64)
			s.chunks[k] = c
		}
		for stop := min((k.chunk+1)*chunkBytes, end); from < stop; {
			next := min((from/64+1)*64, stop)
			m := (^uint64(0) >> (64 - (next - from))) << (from % 64)
			w := &c[from%chunkBytes/64]
			s.n += bits.OnesCount64(m &^ *w)
			*w |= m
			from = next
		}
	}
}
