package history

// slab allocates values that are identified by numbers, from 1 on, and do not move.
type slab[T any] struct {
	blocks []*[slabBlock]T
	n      uint32   // the largest number given out
	free   []uint32 // numbers that are free
}

const slabBlock = 256

func (s *slab[T]) of(n uint32) *T { return &s.blocks[n/slabBlock][n%slabBlock] }

// make allocates a value. It is zero, or has the content that it was dropped with.
func (s *slab[T]) make() (uint32, *T) {
	if k := len(s.free); k > 0 {
		n := s.free[k-1]
		s.free = s.free[:k-1]
		return n, s.of(n)
	}
	if s.n++; s.n/slabBlock >= uint32(len(s.blocks)) {
		s.blocks = append(s.blocks, new([slabBlock]T))
	}
	return s.n, s.of(s.n)
}

// drop frees a number.
func (s *slab[T]) drop(n uint32) { s.free = append(s.free, n) }
