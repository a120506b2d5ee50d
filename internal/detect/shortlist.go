package detect

import (
	"cmp"
	"maps"
	"slices"
)

// DefaultFindings is the default limit for the findings that a detector keeps and a report lists.
const DefaultFindings = 10000

// maxBeyond bounds how many findings beyond those kept are distinguished.
const maxBeyond = 1 << 20

// Shortlist keeps a bounded number of a detector's findings, identified by keys. It keeps those of the greatest
// severity, and among these those with the first keys; in addition it keeps at least one of each severity and kind.
// What it keeps does not depend on the order in which the findings come. It counts the others.
type Shortlist[K comparable, V any] struct {
	max     int
	compare func(x, y K) int
	rank    func(*V) (Severity, Kind)
	kept    map[K]*V
	beyond  map[K]Severity // findings that are not kept
	room    int            // the limit for len(beyond)
	full    bool           // beyond has reached the limit, so not all findings are counted
	last    K              // if errors: the last key kept when beyond became full
	errors  bool           // the findings kept then were all errors
}

// NewShortlist makes a Shortlist for at most most findings; 0: DefaultFindings.
func NewShortlist[K comparable, V any](most int, compare func(x, y K) int, rank func(*V) (Severity, Kind)) *Shortlist[K, V] {
	return &Shortlist[K, V]{max: cmp.Or(most, DefaultFindings), compare: compare, rank: rank, kept: map[K]*V{}, beyond: map[K]Severity{}, room: maxBeyond}
}

// Get returns the finding of a key; nil if it is not kept.
func (s *Shortlist[K, V]) Get(k K) *V { return s.kept[k] }

// Beyond says whether the finding of a key may be left out, as long as it is not graver than the returned severity.
func (s *Shortlist[K, V]) Beyond(k K) (Severity, bool) {
	if severity, ok := s.beyond[k]; ok {
		return severity, true
	}
	return Error, s.full && s.errors && s.compare(k, s.last) > 0
}

// Put keeps a finding until the next Trim at least.
func (s *Shortlist[K, V]) Put(k K, v *V) {
	delete(s.beyond, k)
	s.kept[k] = v
}

// Trim drops findings that need not be kept, if there are many.
func (s *Shortlist[K, V]) Trim() {
	if len(s.kept) >= 2*s.max {
		s.trim()
	}
}

func (s *Shortlist[K, V]) trim() {
	if len(s.kept) <= s.max {
		return
	}
	type group struct {
		severity Severity
		kind     Kind
	}
	type ranked struct {
		key K
		group
	}
	all := make([]ranked, 0, len(s.kept))
	for k, v := range s.kept {
		r := ranked{key: k}
		r.severity, r.kind = s.rank(v)
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(y.severity, x.severity), s.compare(x.key, y.key))
	})
	seen := map[group]bool{}
	for i, r := range all {
		first := !seen[r.group]
		seen[r.group] = true
		if i < s.max {
			s.last, s.errors = r.key, r.severity == Error
			continue
		}
		if first {
			continue
		}
		delete(s.kept, r.key)
		if len(s.beyond) < s.room {
			s.beyond[r.key] = r.severity
		} else {
			s.full = true
		}
	}
}

// Keys returns the keys of the findings that are kept, sorted.
func (s *Shortlist[K, V]) Keys() []K {
	s.trim()
	return slices.SortedFunc(maps.Keys(s.kept), s.compare)
}

// More returns the number of findings that are not kept. atLeast says that there are more than n.
func (s *Shortlist[K, V]) More() (n int, atLeast bool) {
	s.trim()
	return len(s.beyond), s.full
}
