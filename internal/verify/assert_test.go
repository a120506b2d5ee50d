package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/verify/candidates"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

var assigned = regexp.MustCompile(`int (r\d+) = [^;]*;`)

// TestAssertions explores random programs with assertions about read values. An assertion must be reported as failed if
// and only if it fails in some execution at whose end its thread has stopped there.
func TestAssertions(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	failed := [2]int{}
	sources := []string{`C a
int x;
thread A { int q = exchange(x, 1, rlx); }
thread B { int r0 = fetch_add(x, 5, rlx); }`}
	for range 2000 {
		sources = append(sources, randomProgram(r, 3+r.IntN(4)))
	}
	for i, src := range sources {
		for m := range 2 {
			if i%4 != 0 && m > 0 {
				continue
			}
			src := assigned.ReplaceAllString(src, "$0 assert($1 != "+fmt.Sprint(i%3)+");")
			test, err := litmus.Parse("a.litmus", src, litmus.Options{Unroll: 4, PTX: m > 0})
			if m > 0 && err != nil {
				continue // sc accesses
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, src)
			}
			got, want := map[string]bool{}, map[string]bool{}
			o := explore.Options{}
			o.Found = func(e explore.Error, x explore.Execution) bool {
				if e.Kind == explore.AssertionFailed {
					got[fmt.Sprint(e.Thread, " ", e.Pos)] = true
				}
				return true
			}
			o.Leaf = func(x explore.Execution, end explore.Ending) {
				for thread := range test.Threads {
					if op := x.Next(thread); op.Kind == explore.Fail {
						want[fmt.Sprint(thread, " ", op.Pos)] = true
					}
				}
			}
			if m == 0 {
				explore.Explore(context.Background(), test, o)
			} else if _, err := candidates.Enumerate(context.Background(), test, model.PTX{}, o, func() { clear(got); clear(want) }); err != nil {
				t.Fatal(err)
			}
			failed[m] += len(want)
			whole := !strings.Contains(src, "while") && !strings.Contains(src, "barrier") // otherwise an execution may be given up
			for k := range got {
				if whole && !want[k] {
					t.Errorf("under %s the assertion of thread and place %s is told of, and does not fail:\n%s", []string{SRC11, PTX}[m], k, src)
				}
			}
			for k := range want {
				if !got[k] {
					t.Errorf("under %s the assertion of thread and place %s fails, and is not told of:\n%s", []string{SRC11, PTX}[m], k, src)
				}
			}
		}
	}
	t.Log(failed)
	if failed[0] < 1000 || failed[1] < 100 {
		t.Errorf("%d assertions fail: too few", failed)
	}
}
