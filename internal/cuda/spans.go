package cuda

import "sort"

// spans is a set of free ranges, by offset, none of which are adjacent.
type spans struct {
	free []span
}

type span struct{ at, size uint64 }

// add returns a range to the set.
func (s *spans) add(at, size uint64) {
	i := sort.Search(len(s.free), func(i int) bool { return s.free[i].at > at })
	s.free = append(s.free, span{})
	copy(s.free[i+1:], s.free[i:])
	s.free[i] = span{at, size}
	if i+1 < len(s.free) && at+size == s.free[i+1].at {
		s.free[i].size += s.free[i+1].size
		s.free = append(s.free[:i+1], s.free[i+2:]...)
	}
	if i > 0 && s.free[i-1].at+s.free[i-1].size == at {
		s.free[i-1].size += s.free[i].size
		s.free = append(s.free[:i], s.free[i+1:]...)
	}
}

// take finds the first range of size bytes.
func (s *spans) take(size uint64) (uint64, bool) {
	for i := range s.free {
		f := &s.free[i]
		if f.size < size {
			continue
		}
		at := f.at
		f.at, f.size = f.at+size, f.size-size
		if f.size == 0 {
			s.free = append(s.free[:i], s.free[i+1:]...)
		}
		return at, true
	}
	return 0, false
}
