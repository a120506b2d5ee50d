package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// TestOrderedBarriers compares the numbers of executions with and without the order of arrivals: each complete
// execution occurs once for each order of the arrivals of each generation that agrees with the dependences of the
// arrivals. A thread that only arrives continues, so others may depend on it. The sets of executions are equal.
func TestOrderedBarriers(t *testing.T) {
	for _, c := range []struct {
		src  string
		want int
	}{
		{"C b\nint x; grid 1, 3; kernel { barrier(); }", 6},
		{"C b\nint x; grid 2, 3; kernel { barrier(); barrier(); }", 6 * 6 * 6 * 6},
		{"C b\nint x; grid 1, 4; kernel { fetch_add(x, 1, rlx, cta); barrier(); }", 24 * 24},
		{"C b\nint x; thread A { arrive(); store(x, 1, rlx, cta); } thread B { assume(load(x, rlx, cta) == 1); barrier(); }", 1},
		{"C b\nint x; thread A { arrive(); store(x, 1, rlx, cta); } thread B { barrier(); }", 2},
	} {
		r, _ := searchAgain(t, c.src, explore.Options{Ordered: true})
		if r.Executions != c.want {
			t.Errorf("%d executions, want %d:\n%s", r.Executions, c.want, c.src)
		}
	}
	// Arrivals that wait depend on none of their generation: the factor is n! for n threads of a CTA and each generation.
	r := rand.New(rand.NewPCG(3, 3))
	compared := 0
	for compared < 2000 {
		src := randomProgram(r, 4+r.IntN(6))
		if !strings.Contains(src, "barrier()") || strings.Contains(src, "arrive") {
			continue
		}
		want := map[string]int{}
		_, whole := searchAgain(t, src, explore.Options{})
		got, ordered := searchAgain(t, src, explore.Options{Ordered: true})
		if got.Graphs > 1<<17 {
			continue
		}
		compared++
		for id, n := range whole {
			want[id] = n
		}
		for id, n := range ordered {
			if want[id] != n {
				t.Fatalf("%d orders of an execution, want %d:\n%s\n%s", n, want[id], id, src)
			}
			delete(want, id)
		}
		if len(want) > 0 {
			t.Fatalf("executions are missing with orders: %v\n%s", want, src)
		}
	}
}

// searchAgain counts complete executions. Without Ordered it counts each as often as its barriers have orders.
func searchAgain(t *testing.T, src string, o explore.Options) (explore.Result, map[string]int) {
	t.Helper()
	test, err := litmus.Parse("test.litmus", src, litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	o.Leaf = func(x explore.Execution, end explore.Ending) {
		if end != explore.Complete {
			return
		}
		n := 1
		if !o.Ordered {
			barriers := map[string]int{}
			for i, e := range x.Events() {
				if e.Kind == model.Arrival {
					n, barriers[fmt.Sprint(x.Arrivals(i))] = n*(barriers[fmt.Sprint(x.Arrivals(i))]+1), barriers[fmt.Sprint(x.Arrivals(i))]+1
				}
			}
		}
		seen[identity(x, test.Locations())] += n
	}
	return explore.Explore(context.Background(), test, o), seen
}
