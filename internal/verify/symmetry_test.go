package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// orbit names an execution as its images do under all permutations of the threads within classes.
func orbit(x explore.Execution, locs int, perms [][]int) string {
	events := x.Events()
	least := ""
	for _, to := range perms {
		name := func(e int) string {
			if e < 0 {
				return "init"
			}
			return fmt.Sprintf("%d.%d", to[events[e].Thread], events[e].Index)
		}
		threads := make([]string, len(to))
		for _, e := range events {
			s := fmt.Sprintf(" %d:%d=%d", e.Kind, e.Loc, e.Value)
			if e.Kind == model.R {
				s += "<" + name(e.RF)
			}
			threads[to[e.Thread]] += s
		}
		id := strings.Join(threads, "\n")
		for l := range locs {
			id += "\n"
			for _, w := range x.Coherence(int32(l)) {
				id += " " + name(int(w))
			}
		}
		if least == "" || id < least {
			least = id
		}
	}
	return least
}

// renamings gives the permutations of threads within classes.
func renamings(before []int) [][]int {
	class := make([]int, len(before))
	for t, b := range before {
		class[t] = t
		if b >= 0 {
			class[t] = class[b]
		}
	}
	var out [][]int
	ids := make([]int, len(before))
	for i := range ids {
		ids[i] = i
	}
	permutations(ids, func(p []int) {
		for t, to := range p {
			if class[t] != class[to] {
				return
			}
		}
		out = append(out, p)
	})
	return out
}

// searchOrbits gives the executions up to renaming, and how often each comes; and the errors.
func searchOrbits(t *testing.T, src string, symmetric bool) (map[string]int, []string, explore.Result, bool) {
	t.Helper()
	test, err := litmus.Parse("test.litmus", src, litmus.Options{Unroll: 4})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	before := test.Symmetric()
	perms := renamings(before)
	seen, orbits := map[string]bool{}, map[string]int{}
	var errors []string
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaves := 0
	o := explore.Options{Races: true, Leaf: func(x explore.Execution, end explore.Ending) {
		if leaves++; leaves > 1000 {
			cancel()
			return
		}
		id := identity(x, test.Locations())
		if seen[id] {
			t.Fatalf("the search reaches an execution twice:\n%s\n%s", id, src)
		}
		seen[id] = true
		if end != explore.Blocked {
			orbits[fmt.Sprintf("%d\n", end)+orbit(x, test.Locations(), perms)]++
		}
	}, Found: func(e explore.Error, x explore.Execution) bool {
		pos := []int32{e.Pos, e.OtherPos}
		if e.A >= 0 && e.B >= 0 {
			pos = []int32{x.Step(e.A).Pos, x.Step(e.B).Pos}
		}
		if e.Kind == explore.Deadlock || e.Kind == explore.BarrierDivergence {
			pos = nil // where several threads wait, the first is told
		}
		slices.Sort(pos)
		if s := fmt.Sprint(e.Kind, pos); !slices.Contains(errors, s) {
			errors = append(errors, s)
		}
		return true
	}}
	if symmetric {
		o.Symmetric = before
	}
	r := explore.Explore(ctx, test, o)
	r.Stopped = r.Stopped || leaves > 1000
	slices.Sort(errors)
	return orbits, errors, r, len(perms) > 1
}

// randomKernel makes the body of the first thread of a random program the kernel of a grid, most often, and a second one that of other threads.
func randomKernel(r *rand.Rand, size int) string {
	src := randomProgram(r, size)
	_, body, _ := strings.Cut(src, "{\n")
	body, _, _ = strings.Cut(body, "}\n")
	_, second, _ := strings.Cut(src, "thread T1")
	_, second, _ = strings.Cut(second, "{\n")
	second, _, _ = strings.Cut(second, "}\n")
	grid := []string{"1, 3", "3, 1", "2, 1", "1, 2", "2, 2"}[r.IntN(5)]
	if r.IntN(2) == 0 {
		return fmt.Sprintf("C random\nint x, y;\ngrid %s;\nkernel {\n%s}\n", grid, body)
	}
	return fmt.Sprintf("C random\nint x, y;\ngrid %s;\nkernel {\nif (tid == 0) {\n%s} else {\n%s}\n}\n", grid, second, body)
}

// TestSymmetry compares the search up to renaming with the whole one on random kernels: the same executions up to renaming, and the
// same errors.
func TestSymmetry(t *testing.T) {
	want := 200
	if testsize.Long() {
		want = 2000
	}
	r := rand.New(rand.NewPCG(11, 11))
	compared, all, reduced, least := 0, 0, 0, 0
	for compared < want {
		src := randomKernel(r, 3+r.IntN(10))
		whole, errors, n, some := searchOrbits(t, src, false)
		if !some || n.Stopped {
			continue
		}
		compared++
		got, sameErrors, m, _ := searchOrbits(t, src, true)
		for id := range whole {
			if got[id] == 0 {
				t.Fatalf("the search up to symmetry misses\n%s\n%s", id, src)
			}
		}
		for id := range got {
			if whole[id] == 0 {
				t.Fatalf("only the search up to symmetry finds\n%s\n%s", id, src)
			}
		}
		if !slices.Equal(errors, sameErrors) {
			t.Fatalf("errors %v, up to symmetry %v\n%s", errors, sameErrors, src)
		}
		all, reduced, least = all+n.Executions, reduced+m.Executions, least+len(whole)
	}
	t.Logf("%d executions, %d up to symmetry, of which %d differ", all, reduced, least)
	if 3*reduced > all {
		t.Errorf("%d of %d executions are left", reduced, all)
	}
}

// TestSymmetricLocks holds numbers of executions that are known in closed form: of n threads that take a lock in turn one order is
// left. A thread whose number matters, or whose variable the condition names, is not symmetric to others. Parts and goroutines change
// nothing.
func TestSymmetricLocks(t *testing.T) {
	for _, c := range []struct {
		src  string
		want int
	}{
		{fmt.Sprintf(casLock, 2, 2), 6}, {fmt.Sprintf(casLock, 6, 1), 1}, {fmt.Sprintf(ticketLock, 7, 1), 1}, {fmt.Sprintf(sum, 8), 1},
		{fmt.Sprintf(ttasLock, 4, 1), factorial(4)}, {fmt.Sprintf(lb, 6), 1<<6 - 1},
		{fmt.Sprintf(sum, 3) + "\nexists P1:a == 0", 3},
		{"C two\nint x; grid 2, 2; kernel { fetch_add(x, 1, rlx, cta); }", 4 * 3 * 2 / 2 / 2},
	} {
		if strings.Contains(c.src, "P1:a") {
			c.src = strings.Replace(c.src, "fetch_add(", "int a = fetch_add(", 1)
		}
		test, err := litmus.Parse("test.litmus", c.src, litmus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, jobs := range []int{1, 3} {
			r := Litmus(context.Background(), test, Options{Symmetry: true, Jobs: jobs, graphs: 40})
			if r.Executions != c.want {
				t.Errorf("%d goroutines: %d executions, want %d\n%s", jobs, r.Executions, c.want, c.src)
			}
		}
	}
}
