package opt

// substitution maps values to the values that replace them. The zero value replaces nothing.
type substitution struct {
	by []Value // by value, NoValue if it stays; as long as the largest replaced value requires
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

// next returns the replacement of v.
func (s *substitution) next(v Value) (Value, bool) {
	if v == NoValue || int(v) >= len(s.by) || s.by[v] == NoValue {
		return NoValue, false
	}
	return s.by[v], true
}

// find follows the replacements of v to the last one.
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

// substitute replaces every use of a replaced value.
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
