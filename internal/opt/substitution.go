package opt

// substitution holds the values that others replace. The zero value replaces nothing.
type substitution struct {
	by []Value // by value, NoValue where it stays; as long as the largest value that is replaced
	n  int
}

func (s *substitution) replace(old, now Value) {
	for int(old) >= len(s.by) {
		s.by = append(s.by, NoValue)
	}
	if s.by[old] == NoValue {
		s.n++
	}
	s.by[old] = now
}

// next gives what replaces v.
func (s *substitution) next(v Value) (Value, bool) {
	if v == NoValue || int(v) >= len(s.by) || s.by[v] == NoValue {
		return NoValue, false
	}
	return s.by[v], true
}

// find follows the replacements of v to their end.
func (s *substitution) find(v Value) Value {
	for n, ok := s.next(v); ok; n, ok = s.next(v) {
		v = n
	}
	return v
}

func (s *substitution) clear() {
	for i := range s.by {
		s.by[i] = NoValue
	}
	s.n = 0
}

// substitute makes every use of a value that is replaced a use of what replaces it.
func (f *Func) substitute(s *substitution) {
	if s.n == 0 {
		return
	}
	for _, bl := range f.Blocks {
		for _, in := range bl.Instrs {
			for i, a := range in.Args {
				in.Args[i] = s.find(a)
			}
			in.Guard = s.find(in.Guard)
		}
	}
}
