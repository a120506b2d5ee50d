package history

// slab is values of one kind that have numbers, from 1 on, and do not move.
type slab[T any] struct {
	blocks []*[slabBlock]T
	n      uint32   // the last number
	free   []uint32 // numbers that are not used
}

const slabBlock = 256

func (s *slab[T]) of(n uint32) *T { return &s.blocks[n/slabBlock][n%slabBlock] }

// make gives a value that is not used: a zero, or as it was when it was dropped.
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

// drop lets a number be used again.
func (s *slab[T]) drop(n uint32) { s.free = append(s.free, n) }
