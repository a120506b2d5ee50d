package ptx

// slab hands out nodes from chunks, so that a node costs no allocation of its own.
type slab[T any] struct {
	free []T
	size int // of the last chunk
}

// chunkMax bounds a chunk: larger ones no longer save time, and hold more memory than small modules need.
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

// list gives a copy of l that cannot grow into its neighbours; nil for an empty list.
func (s *slab[T]) list(l []T) []T {
	n := len(l)
	if n == 0 {
		return nil
	}
	if n > len(s.free) {
		if n > chunkMax/4 {
			// A list of its own rather than the rest of a chunk thrown away.
			return append(make([]T, 0, n), l...)
		}
		s.grow(n)
	}
	x := s.free[:n:n]
	s.free = s.free[n:]
	copy(x, l)
	return x
}

// nodes holds the slabs of a parser, and the stacks on which lists are gathered before their length is known.
type nodes struct {
	insts    slab[Inst]
	instOps  slab[Operand] // operands of instructions
	operands slab[Operand] // those nested in them, and all others
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
