package detect

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

type listed struct {
	severity Severity
	kind     Kind
}

// offer uses a Shortlist as detectors do.
func offer(s *Shortlist[int, listed], k int, v listed) {
	if severity, ok := s.Beyond(k); ok && v.severity <= severity {
		return
	}
	if x := s.Get(k); x == nil {
		s.Put(k, &v)
	} else if v.severity > x.severity {
		*x = v
	}
	s.Trim()
}

func shortlist(most int) *Shortlist[int, listed] {
	return NewShortlist(most, cmp.Compare[int], func(v *listed) (Severity, Kind) { return v.severity, v.kind })
}

// TestShortlist compares what is kept of findings that come in random order with the result of sorting all of them.
func TestShortlist(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		const most = 8
		all := map[int]listed{}
		s := shortlist(most)
		for range rng.IntN(200) {
			k := rng.IntN(60)
			v := listed{Severity(1 + k%2), []Kind{Unordered, Unordered, Unordered, MissingLock}[k%17%4]}
			all[k] = v
			offer(s, k, v)
		}
		keys := []int{}
		for k := range all {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(x, y int) int { return cmp.Or(cmp.Compare(all[y].severity, all[x].severity), cmp.Compare(x, y)) })
		seen := map[listed]bool{}
		want := []int{}
		for i, k := range keys {
			if i < most || !seen[all[k]] {
				want = append(want, k)
			}
			seen[all[k]] = true
		}
		slices.Sort(want)
		if got := s.Keys(); !slices.Equal(got, want) {
			t.Fatalf("%v is kept of %v, want %v", got, all, want)
		}
		if n, atLeast := s.More(); atLeast || n != len(all)-len(want) {
			t.Fatalf("%d are counted beyond %d, of %d", n, len(want), len(all))
		}
	}
}

// TestShortlistGraver makes a finding that was not kept graver than all others.
func TestShortlistGraver(t *testing.T) {
	s := shortlist(2)
	for k := range 10 {
		offer(s, k, listed{Warning, SameValue})
	}
	offer(s, 9, listed{Error, Unordered})
	if got := s.Keys(); !slices.Equal(got, []int{0, 9}) {
		t.Errorf("kept %v", got)
	}
	if n, _ := s.More(); n != 8 {
		t.Errorf("%d beyond", n)
	}
}

// TestShortlistFull checks that memory is bounded: beyond a number of findings, they are not distinguished.
func TestShortlistFull(t *testing.T) {
	s := shortlist(100)
	s.room = 5000
	for k := range s.room + 1000 {
		offer(s, k, listed{Error, Unordered})
	}
	n, atLeast := s.More()
	if len(s.beyond) > s.room || n != s.room || !atLeast || len(s.kept) > 100 {
		t.Errorf("%d findings kept and %d beyond, at least %t", len(s.kept), n, atLeast)
	}
	offer(s, -1, listed{Error, Unordered})
	if got := s.Keys(); got[0] != -1 || len(got) != 100 {
		t.Errorf("what comes first is not kept: %v", got)
	}
}
