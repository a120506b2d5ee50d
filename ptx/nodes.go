package ptx

// slab allocates nodes from chunks, so that a node costs no allocation of its own.
type slab[T any] struct {
	free []T
	size int // of the last chunk
}

// chunkMax bounds a chunk: larger ones save no more time, and take more memory than small modules need.
const chunkMax = 512

func (s *slab[T]) grow(n int) {
	s.size = min(max(2*s.size, 8), chunkMax)
	s.free = make([]T, max(s.size, n))
}

func (s *slab[T]) new() *T {
	if len(s.free) == 0 {
		s.grow(1)
	}
	x := &s.free[0]
	s.free = s.free[1:]
	return x
}

// list returns a copy of l without spare capacity, so that it cannot grow into its neighbours; nil for an empty list.
func (s *slab[T]) list(l []T) []T {
	n := len(l)
	if n == 0 {
		return nil
	}
	if n > len(s.free) {
		if n > chunkMax/4 {
			// Allocate a separate list rather than waste the rest of a chunk.
			return append(make([]T, 0, n), l...)
		}
		s.grow(n)
	}
	x := s.free[:n:n]
	s.free = s.free[n:]
	copy(x, l)
	return x
}

// nodes holds the slabs of a parser, and the stacks on which lists are collected before their length is known.
type nodes struct {
	insts    slab[Inst]
	instOps  slab[Operand] // operands of instructions
	operands slab[Operand] // operands nested in them, and all others
	stmts    slab[Stmt]
	locs     slab[Loc]
	labels   slab[Label]
	blocks   slab[Block]
	vars     slab[Var]
	varNames slab[VarName]
	inits    slab[Init]
	initPtrs slab[*Init]
	varPtrs  slab[*Var]

	operandStack []Operand
	stmtStack    []Stmt
	initStack    []*Init
}
