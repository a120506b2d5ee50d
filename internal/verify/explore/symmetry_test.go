package explore

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMayLead compares mayLead with the names of threads under all permutations within classes.
func TestMayLead(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 12))
	can, cannot := 0, 0
	for range 3000 {
		n := 1 + r.IntN(5)
		class, last := make([]int, n), map[int]int{}
		g := &graph{shape: &shape{before: make([]int, n)}}
		for i := range class {
			class[i] = r.IntN(3)
			g.before[i] = -1
			if b, ok := last[class[i]]; ok {
				g.before[i] = b
			}
			last[class[i]] = i
		}
		some := func(but int) []int {
			var s []int
			for len(s) == 0 {
				for i := range n {
					if i != but && r.IntN(2) == 0 {
						s = append(s, i)
					}
				}
			}
			return s
		}
		ts := some(-1)
		at := ts[r.IntN(len(ts))]
		o, os := at, ts
		if n > 1 && r.IntN(4) > 0 {
			os = some(at)
			o = os[r.IntN(len(os))]
		}
		want := false
		names := make([]int, n)
		var name func(i int)
		name = func(i int) {
			if i == n {
				leads := func(t int, ts []int) bool {
					return !slices.ContainsFunc(ts, func(u int) bool { return names[u] < names[t] })
				}
				want = want || leads(at, ts) && leads(o, os)
				return
			}
			for k := range n {
				if class[k] == class[i] && !slices.Contains(names[:i], k) {
					names[i] = k
					name(i + 1)
				}
			}
		}
		name(0)
		if got := g.mayLead(at, ts, o, os); got != want {
			t.Fatalf("classes %v: %d of %v and %d of %v: %v, want %v", class, at, ts, o, os, got, want)
		}
		if want {
			can++
		} else {
			cannot++
		}
	}
	if can < 500 || cannot < 500 {
		t.Errorf("%d can lead, and %d cannot", can, cannot)
	}
}
