package verify

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// identity formats an execution: each thread's events, the reads-from relation and the coherence order.
func identity(x explore.Execution, locs int) string {
	return identityOf(x, locs, func(loc int32) int { return int(loc) })
}

// identityOf does the same, with the numbers of locations from variable.
func identityOf(x explore.Execution, locs int, variable func(loc int32) int) string {
	events := x.Events()
	name := func(e int) string {
		if e < 0 {
			return "init"
		}
		return fmt.Sprintf("%d.%d", events[e].Thread, events[e].Index)
	}
	threads := map[int][]string{}
	n := 0
	for _, e := range events {
		loc := int(e.Loc)
		if e.Kind == model.R || e.Kind == model.W {
			loc = variable(e.Loc)
		}
		s := fmt.Sprintf("%d:%d=%d", e.Kind, loc, e.Value)
		if e.RF >= 0 || e.Kind == 0 {
			s += "<" + name(e.RF)
		}
		threads[e.Thread] = append(threads[e.Thread], s)
		n = max(n, e.Thread+1)
	}
	var b strings.Builder
	for t := range n {
		fmt.Fprintln(&b, threads[t])
	}
	orders := map[int]string{}
	for _, e := range events {
		if e.Kind != model.W {
			continue
		}
		v, order := variable(e.Loc), ""
		for _, w := range x.Coherence(e.Loc) {
			order += " " + name(int(w))
		}
		orders[v] = order
	}
	for v := range locs {
		b.WriteString(orders[v] + ";")
	}
	return b.String()
}

func search(t *testing.T, src string, o explore.Options) (explore.Result, map[string]int) {
	t.Helper()
	test, err := litmus.Parse("test.litmus", src, litmus.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	seen := map[string]bool{}
	outcomes := map[string]int{}
	o.Leaf = func(x explore.Execution, end explore.Ending) {
		id := identity(x, test.Locations())
		if seen[id] {
			t.Fatalf("the search reaches an execution twice:\n%s\n%s", id, src)
		}
		seen[id] = true
		if end == explore.Complete {
			s := ""
			for _, f := range test.Observed() {
				s += fmt.Sprintf("%s=%d ", f.Name(), f.Value(x))
			}
			outcomes[strings.TrimSpace(s)]++
		}
	}
	return explore.Explore(context.Background(), test, o), outcomes
}

const casLock = `C caslock
int lock, x; grid %d, %d;
kernel {
  while (cas(lock, 0, 1, acq, gpu) != 0) ;
  x = x + 1;
  store(lock, 0, rel, gpu);
}`

const ticketLock = `C ticketlock
int next, owner, x; grid %d, %d;
kernel {
  int me = fetch_add(next, 1, rlx, gpu);
  while (load(owner, acq, gpu) != me) ;
  x = x + 1;
  store(owner, me + 1, rel, gpu);
}`

const ttasLock = `C ttaslock
int lock, x; grid %d, %d;
kernel {
  do {
    while (load(lock, acq, gpu) != 0) ;
  } while (cas(lock, 0, 1, acq, gpu) != 0);
  x = x + 1;
  store(lock, 0, rel, gpu);
}`

const lb = `C LB
int x[%d]; grid %[1]d, 1;
kernel {
  int a = load(x[tid], rlx, gpu);
  store(x[(tid + 1) %% gridDim], 1, rlx, gpu);
}`

const sb = `C SB
int x[%d]; grid %[1]d, 1;
kernel {
  store(x[tid], 1, rlx, gpu);
  int a = load(x[(tid + 1) %% gridDim], rlx, gpu);
}`

const sum = `C INC
int x; grid %d, 1;
kernel { fetch_add(x, 1, rlx, gpu); }`

func factorial(n int) int {
	if n < 2 {
		return 1
	}
	return n * factorial(n-1)
}

// TestCounts compares with counts that are known in closed form.
func TestCounts(t *testing.T) {
	for n := 2; n <= 6; n++ {
		for _, c := range []struct {
			name, src string
			want      int
		}{
			{"LB", fmt.Sprintf(lb, n), 1<<n - 1},
			{"SB", fmt.Sprintf(sb, n), 1 << n},
			{"increments", fmt.Sprintf(sum, n), factorial(n)},
			{"caslock", fmt.Sprintf(casLock, n, 1), factorial(n)},
			{"ticketlock", fmt.Sprintf(ticketLock, n, 1), factorial(n)},
			{"ttaslock", fmt.Sprintf(ttasLock, n, 1), factorial(n) * factorial(n)},
		} {
			if c.want > 20000 {
				continue
			}
			r, _ := search(t, c.src, explore.Options{Races: true, Found: func(e explore.Error, x explore.Execution) bool {
				t.Errorf("%s %d: error %+v", c.name, n, e)
				return false
			}})
			if r.Executions != c.want {
				t.Errorf("%s with %d threads: %d executions, want %d (blocked %d, stuck %d)", c.name, n, r.Executions, c.want, r.Blocked, r.Stuck)
			}
			if r.Blocked > 0 {
				t.Errorf("%s with %d threads: %d executions are given up", c.name, n, r.Blocked)
			}
			t.Logf("%s %d: %+v", c.name, n, r)
		}
	}
}

// TestClassics checks the numbers of executions of well-known litmus tests, with scopes that include the other threads
// and scopes that do not, and compares them with the enumeration.
func TestClassics(t *testing.T) {
	for _, c := range []struct {
		name, src string
		// With O the order and S the scope of each access; threads are in CTAs of their own.
		order, scope string
		want         int
	}{
		{"SB", sbOS, "rlx", "gpu", 4}, {"SB", sbOS, "sc", "gpu", 3}, {"SB", sbOS, "sc", "cta", 4},
		{"SB+fences", sbFences, "sc", "gpu", 3}, {"SB+fences", sbFences, "sc", "cta", 4}, {"SB+fences", sbFences, "acqrel", "gpu", 4},
		{"2+2W", twoTwoW, "rlx", "gpu", 4}, {"2+2W", twoTwoW, "sc", "gpu", 3}, {"2+2W", twoTwoW, "sc", "cta", 4},
		{"IRIW", iriw, "rlx", "gpu", 16}, {"IRIW", iriw, "sc", "gpu", 15}, {"IRIW", iriw, "sc", "cta", 16},
		{"CoRR", coRR, "rlx", "gpu", 3}, {"CoRR", coRR, "sc", "cta", 3},
		{"CoWW", coWW, "rlx", "cta", 3},
		{"SB+fence", sbFence, "sc", "gpu", 3}, {"SB+fence", sbFence, "sc", "cta", 4},
		{"MP+fences", mpFences, "sc", "gpu", 3}, {"MP+fences", mpFences, "sc", "cta", 4}, {"MP+fences", mpFences, "acqrel", "gpu", 4},
		{"MP+two fences", mpTwoFences, "acq", "gpu", 3}, {"MP+two fences", mpTwoFences, "acq", "cta", 4},
		{"MP", mp, "rlx", "gpu", 4}, {"MP", mpSync, "rel", "gpu", 3}, {"MP", mpSync, "rel", "cta", 4},
	} {
		src := strings.NewReplacer("O", c.order, "S", c.scope).Replace(c.src)
		src = fmt.Sprintf("C classic\nint x, y;\n%s", src)
		r, _ := search(t, src, explore.Options{})
		if r.Executions != c.want || r.Blocked+r.Stuck+r.Cut > 0 {
			t.Errorf("%s %s %s: %+v, want %d executions", c.name, c.order, c.scope, r, c.want)
		}
		if diff, ok := compare(t, src, model.SRC11{}); diff != "" || !ok {
			t.Errorf("%s %s %s: %s", c.name, c.order, c.scope, diff)
		}
	}
}

const (
	sbOS = `thread a @ cta 0 { store(x, 1, O, S); int r = load(y, O, S); }
thread b @ cta 1 { store(y, 1, O, S); int r = load(x, O, S); }`
	sbFences = `thread a @ cta 0 { store(x, 1, rlx, gpu); fence(O, S); int r = load(y, rlx, gpu); }
thread b @ cta 1 { store(y, 1, rlx, gpu); fence(O, S); int r = load(x, rlx, gpu); }`
	sbFence = `thread a @ cta 0 { store(x, 1, O, S); int r = load(y, O, S); }
thread b @ cta 1 { store(y, 1, rlx, gpu); fence(O, S); int r = load(x, rlx, gpu); }`
	// The accesses to x do not synchronise, as their scope is too narrow; the fences are ordered by what is read alone.
	mpFences = `thread a @ cta 0 { store(y, 1, rlx, gpu); fence(O, S); store(x, 1, rlx, cta); }
thread b @ cta 1 { int r = load(x, rlx, cta); fence(O, S); int q = load(y, rlx, gpu); }`
	mpTwoFences = `thread a @ cta 0 { store(y, 1, rlx, gpu); store(x, 1, rel, gpu); }
thread b @ cta 1 { int r = load(x, rlx, gpu); fence(acq, cta); fence(O, S); int q = load(y, rlx, gpu); }`
	twoTwoW = `thread a @ cta 0 { store(x, 1, O, S); store(y, 2, O, S); } thread b @ cta 1 { store(y, 1, O, S); store(x, 2, O, S); }`
	iriw    = `thread a @ cta 0 { store(x, 1, O, S); } thread b @ cta 1 { store(y, 1, O, S); }
thread c @ cta 2 { int r = load(x, O, S); int q = load(y, O, S); } thread d @ cta 3 { int r = load(y, O, S); int q = load(x, O, S); }`
	coRR   = `thread a @ cta 0 { store(x, 1, O, S); } thread b @ cta 1 { int r = load(x, O, S); int q = load(x, O, S); }`
	coWW   = `thread a @ cta 0 { store(x, 1, O, S); store(x, 2, O, S); } thread b @ cta 1 { int r = load(x, O, S); }`
	mp     = `thread a @ cta 0 { store(x, 1, O, S); store(y, 1, O, S); } thread b @ cta 1 { int r = load(y, O, S); int q = load(x, O, S); }`
	mpSync = `thread a @ cta 0 { store(x, 1, rlx, S); store(y, 1, rel, S); } thread b @ cta 1 { int r = load(y, acq, S); int q = load(x, rlx, S); }`
)
