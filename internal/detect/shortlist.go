package detect

import (
	"cmp"
	"maps"
	"slices"
)

// DefaultFindings is how many findings a detector keeps, and a report lists, when nobody says otherwise.
const DefaultFindings = 10000

// maxBeyond bounds how many findings are told apart beyond those that are kept.
const maxBeyond = 1 << 20

// Shortlist keeps the findings of a detector by what tells them apart, at most so many: of the gravest severity those whose
// keys come first, and of each severity and kind at least one. What it keeps depends on what there is, not on the order in
// which it came. It counts the others.
type Shortlist[K comparable, V any] struct {
	max     int
	compare func(x, y K) int
	rank    func(*V) (Severity, Kind)
	kept    map[K]*V
	beyond  map[K]Severity // the others
	room    int            // for beyond
	full    bool           // beyond is, and not all are counted
	last    K              // of those kept when beyond was full, where they were errors
	errors  bool
}

// NewShortlist makes one for at most so many findings, 0 for DefaultFindings.
func NewShortlist[K comparable, V any](most int, compare func(x, y K) int, rank func(*V) (Severity, Kind)) *Shortlist[K, V] {
	return &Shortlist[K, V]{max: cmp.Or(most, DefaultFindings), compare: compare, rank: rank, kept: map[K]*V{}, beyond: map[K]Severity{}, room: maxBeyond}
}

// Get gives the finding of a key, nil when it is not kept.
func (s *Shortlist[K, V]) Get(k K) *V { return s.kept[k] }

// Beyond says that a finding of the key that is no graver than the severity it gives need not be kept.
func (s *Shortlist[K, V]) Beyond(k K) (Severity, bool) {
	if severity, ok := s.beyond[k]; ok {
		return severity, true
	}
	return Error, s.full && s.errors && s.compare(k, s.last) > 0
}

// Put keeps a finding, for the time being.
func (s *Shortlist[K, V]) Put(k K, v *V) {
	delete(s.beyond, k)
	s.kept[k] = v
}

// Trim lets go of what need not be kept, now and then.
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

// Keys gives the keys of what is kept in the end, in their own order.
func (s *Shortlist[K, V]) Keys() []K {
	s.trim()
	return slices.SortedFunc(maps.Keys(s.kept), s.compare)
}

// More is how many findings are not kept; atLeast says that there are more still.
func (s *Shortlist[K, V]) More() (n int, atLeast bool) {
	s.trim()
	return len(s.beyond), s.full
}
