package model

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Rel is a relation over the events of an execution: a matrix of bits.
type Rel struct {
	n, words int
	bits     []uint64
}

// NewRel returns the empty relation over n events.
func NewRel(n int) Rel {
	w := (n + 63) / 64
	return Rel{n, w, make([]uint64, n*w)}
}

func (r Rel) row(a int) []uint64 { return r.bits[a*r.words : (a+1)*r.words] }

// Add adds the pair (a, b) to the relation.
func (r Rel) Add(a, b int) { r.bits[a*r.words+b>>6] |= 1 << (b & 63) }

// Has reports whether the pair (a, b) is in the relation.
func (r Rel) Has(a, b int) bool { return r.bits[a*r.words+b>>6]>>(b&63)&1 != 0 }

// Empty reports whether the relation is empty.
func (r Rel) Empty() bool {
	for _, w := range r.bits {
		if w != 0 {
			return false
		}
	}
	return true
}

// where returns the pairs of r for which keep returns true.
func (r Rel) where(keep func(a, b int) bool) Rel {
	out := NewRel(r.n)
	for a := range r.n {
		for i, w := range r.row(a) {
			for ; w != 0; w &= w - 1 {
				if b := i*64 + bits.TrailingZeros64(w); keep(a, b) {
					out.Add(a, b)
				}
			}
		}
	}
	return out
}

func union(rs ...Rel) Rel {
	out := NewRel(rs[0].n)
	for _, r := range rs {
		for i, w := range r.bits {
			out.bits[i] |= w
		}
	}
	return out
}

func inter(r, s Rel) Rel {
	out := NewRel(r.n)
	for i, w := range r.bits {
		out.bits[i] = w & s.bits[i]
	}
	return out
}

// seq is the composition r1; r2; ...
func seq(rs ...Rel) Rel {
	out := rs[0]
	for _, r := range rs[1:] {
		next := NewRel(r.n)
		for a := range r.n {
			to := next.row(a)
			for i, w := range out.row(a) {
				for ; w != 0; w &= w - 1 {
					for j, x := range r.row(i*64 + bits.TrailingZeros64(w)) {
						to[j] |= x
					}
				}
			}
		}
		out = next
	}
	return out
}

func inverse(r Rel) Rel {
	out := NewRel(r.n)
	r.where(func(a, b int) bool { out.Add(b, a); return false })
	return out
}

// plus is the transitive closure.
func plus(r Rel) Rel {
	out := union(r)
	for via := range r.n {
		row := out.row(via)
		for a := range r.n {
			if out.Has(a, via) {
				for i, w := range row {
					out.row(a)[i] |= w
				}
			}
		}
	}
	return out
}

// opt is the reflexive closure.
func opt(r Rel) Rel {
	out := union(r)
	for a := range r.n {
		out.Add(a, a)
	}
	return out
}

func star(r Rel) Rel { return opt(plus(r)) }

func irreflexive(r Rel) bool {
	for a := range r.n {
		if r.Has(a, a) {
			return false
		}
	}
	return true
}

func acyclic(r Rel) bool { return irreflexive(plus(r)) }

// Remove removes the pair (a, b) from the relation.
func (r Rel) Remove(a, b int) { r.row(a)[b>>6] &^= 1 << (b & 63) }

// EmptyRow reports whether a is related to nothing.
func (r Rel) EmptyRow(a int) bool {
	for _, w := range r.row(a) {
		if w != 0 {
			return false
		}
	}
	return true
}

// SameRow reports whether a and b are related to the same events.
func (r Rel) SameRow(a, b int) bool { return slices.Equal(r.row(a), r.row(b)) }

// Key identifies a relation among those over equally many events.
func (r Rel) Key() string {
	b := make([]byte, 0, 8*len(r.bits))
	for _, w := range r.bits {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return string(b)
}

// Union is the union of relations.
func Union(rs ...Rel) Rel { return union(rs...) }

// Of is the relation restricted to some elements, which are renumbered in the order of the list.
func (r Rel) Of(elements []int) Rel {
	out := NewRel(len(elements))
	for i, a := range elements {
		for j, b := range elements {
			if r.Has(a, b) {
				out.Add(i, j)
			}
		}
	}
	return out
}

// Source is the first element that is related to b, -1 if there is none.
func (r Rel) Source(b int) int {
	for a := range r.n {
		if r.Has(a, b) {
			return a
		}
	}
	return -1
}

// In is the relation over n elements in which the elements of r have the numbers in the list.
func (r Rel) In(n int, elements []int) Rel {
	out := NewRel(n)
	for i, a := range elements {
		for j, b := range elements {
			if r.Has(i, j) {
				out.Add(a, b)
			}
		}
	}
	return out
}
