package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// class returns the identity of an execution without its coherence order.
func class(id string) string { return id[:strings.LastIndex(id, "\n")+1] }

// classes are the results of a search.
type classes struct {
	reached  map[string]explore.Ending // classes, or all executions
	complete map[string]bool           // classes of complete executions
	shown    map[string]bool           // complete executions, with a coherence order
	errors   []string
	explore.Result
}

// searchClasses explores a test by reads-from classes, or by executions.
func searchClasses(t *testing.T, test *litmus.Test, src string, o explore.Options, most int) *classes {
	t.Helper()
	c := &classes{reached: map[string]explore.Ending{}, complete: map[string]bool{}, shown: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaves := 0
	o.Races = true
	o.Leaf = func(x explore.Execution, end explore.Ending) {
		if leaves++; leaves > most {
			cancel()
			return
		}
		id := identity(x, test.Locations())
		key := id
		if o.ReadsFrom {
			key = class(id)
		}
		if _, ok := c.reached[key]; ok {
			t.Fatalf("the search reaches twice, reads-from %v:\n%s\n%s", o.ReadsFrom, id, src)
		}
		c.reached[key] = end
		if end == explore.Complete {
			c.complete[class(id)] = true
			c.shown[id] = true
		}
	}
	o.Found = func(e explore.Error, x explore.Execution) bool {
		pos := []int32{e.Pos, e.OtherPos}
		if e.A >= 0 && e.B >= 0 {
			pos = []int32{x.Step(e.A).Pos, x.Step(e.B).Pos}
		}
		if e.Kind == explore.Deadlock || e.Kind == explore.BarrierDivergence {
			pos = nil // where several threads wait, the first is told
		}
		slices.Sort(pos)
		if s := fmt.Sprint(e.Kind, pos); !slices.Contains(c.errors, s) {
			c.errors = append(c.errors, s)
		}
		return true
	}
	c.Result = explore.Explore(ctx, test, o)
	c.Stopped = c.Stopped || leaves > most
	slices.Sort(c.errors)
	return c
}

var scOrder = regexp.MustCompile(`(load|store|)(\([^\n]*?)\bsc\b`)

// withoutSC returns a program with acquire and release instead of sc.
func withoutSC(src string) string {
	return scOrder.ReplaceAllStringFunc(src, func(s string) string {
		m := scOrder.FindStringSubmatch(s)
		return m[1] + m[2] + map[string]string{"load": "acq", "store": "rel", "": "acqrel"}[m[1]]
	})
}

func parseRandom(t *testing.T, src string) *litmus.Test {
	t.Helper()
	test, err := litmus.Parse("random.litmus", src, litmus.Options{Unroll: 4})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return test
}

func difference(a, b map[string]bool) string {
	for id := range a {
		if !b[id] {
			return id
		}
	}
	return ""
}

// TestReadsFromBruteForce compares the search by reads-from classes with the enumeration of all executions: each class
// of a consistent execution is found once, with a consistent execution, and no other class is found.
func TestReadsFromBruteForce(t *testing.T) {
	want := testsize.Of(200, 250, 3000)
	for _, incl := range []model.Inclusion{model.Each, model.Paper} {
		r := rand.New(rand.NewPCG(21, uint64(incl)))
		executions, found, sc := 0, 0, 0
		for compared := 0; compared < want; {
			src := randomProgram(r, 3+r.IntN(4))
			if r.IntN(3) != 0 {
				src = withoutSC(src)
			}
			test := parseRandom(t, src)
			c := searchClasses(t, test, src, explore.Options{ReadsFrom: true, Incl: incl}, 5000)
			if c.SC {
				sc++
				continue
			}
			b := &brute{p: test, model: model.SRC11{Incl: incl}, limit: 3000}
			if !b.run() {
				continue
			}
			compared++
			all := map[string]bool{}
			for id := range b.found {
				all[class(id)] = true
			}
			for id := range c.shown { // of threads with more events the enumeration knows nothing
				if slices.ContainsFunc(strings.Split(class(id), "\n"), func(thread string) bool { return len(strings.Fields(thread)) > maxSteps }) {
					delete(c.shown, id)
				}
			}
			if id := difference(c.shown, b.found); id != "" {
				t.Fatalf("incl %d: only the search finds\n%s\n%s", incl, id, src)
			}
			for id := range all {
				if _, ok := c.reached[id]; !ok {
					t.Fatalf("incl %d: the search misses\n%s\n%s", incl, id, src)
				}
			}
			executions, found = executions+len(b.found), found+len(all)
		}
		t.Logf("%d executions are %d classes; %d searches stop for sc events", executions, found, sc)
		if found > executions*9/10 || sc < want/50 {
			t.Errorf("%d executions are %d classes; %d searches stop for sc events", executions, found, sc)
		}
	}
}

// TestReadsFrom compares the search by reads-from classes with that of every execution on larger programs: the classes
// of complete executions and the errors are the same.
func TestReadsFrom(t *testing.T) {
	want, most := testsize.Of(200, 250, 6000), 2000
	known := []string{fmt.Sprintf(publish, 3), fmt.Sprintf(relaxation, 3), fmt.Sprintf(casLock, 2, 2), fmt.Sprintf(ttasLock, 3, 1), fmt.Sprintf(ticketLock, 3, 1)}
	r := rand.New(rand.NewPCG(22, 0))
	executions, found, errors, stuck := 0, 0, 0, 0
	for compared := 0; compared < want; {
		src := randomProgram(r, 4+r.IntN(9))
		switch {
		case compared < len(known):
			src = known[compared]
		case r.IntN(4) == 0:
			src = randomKernel(r, 4+r.IntN(8))
		}
		if compared >= len(known) && r.IntN(3) == 0 { // more accesses of one location
			src = strings.ReplaceAll(src, "(y", "(x")
		}
		if r.IntN(3) != 0 {
			src = withoutSC(src)
		}
		test := parseRandom(t, src)
		o := explore.Options{Incl: model.Inclusion(r.IntN(2)), Exits: r.IntN(2) == 0}
		all := searchClasses(t, test, src, o, most)
		if all.Stopped {
			continue
		}
		o.ReadsFrom = true
		c := searchClasses(t, test, src, o, 2*most)
		if c.SC {
			continue
		}
		compared++
		if c.Stopped {
			t.Fatalf("more classes than executions\n%s", src)
		}
		if id := difference(all.complete, c.complete); id != "" {
			t.Fatalf("the search misses\n%s\n%s", id, src)
		}
		if id := difference(c.shown, complete(all)); id != "" {
			t.Fatalf("only the search finds\n%s\n%s", id, src)
		}
		if !slices.Equal(all.errors, c.errors) {
			t.Fatalf("errors %v, by classes %v\n%s", all.errors, c.errors, src)
		}
		if all.Executions < c.Executions || (all.Cut > 0) != (c.Cut > 0) || (all.Stuck > 0) != (c.Stuck > 0) {
			t.Fatalf("%+v, by classes %+v\n%s", all.Result, c.Result, src)
		}
		executions, found = executions+all.Executions, found+c.Executions
		errors, stuck = errors+len(c.errors), stuck+c.Stuck
	}
	t.Logf("%d executions are %d classes; %d errors, %d stuck", executions, found, errors, stuck)
	if found*3 > executions*2 || errors < want || stuck < want/20 {
		t.Errorf("%d executions are %d classes; %d errors, %d stuck", executions, found, errors, stuck)
	}
}

func complete(c *classes) map[string]bool {
	out := map[string]bool{}
	for id, end := range c.reached {
		if end == explore.Complete {
			out[id] = true
		}
	}
	return out
}

// TestReadsFromVerdicts compares the reports: final states of memory and registers, findings, conditions and verdicts,
// for all numbers of parts and goroutines.
func TestReadsFromVerdicts(t *testing.T) {
	want := testsize.Of(200, 250, 10000)
	r := rand.New(rand.NewPCG(23, 0))
	conditions := []string{"exists x == 2 /\\ y == 1", "~exists x == y", "forall x != 0", "exists x == 1 filter y != 0", "~exists (x == 2 /\\ T0:r0 == 1)"}
	executions, found, states, fell := 0, 0, 0, 0
	for compared := 0; compared < want; {
		src := randomProgram(r, 4+r.IntN(9))
		if r.IntN(3) != 0 {
			src = withoutSC(src)
		}
		condition := conditions[r.IntN(len(conditions))]
		if first, _, _ := strings.Cut(src, "thread T1"); strings.Contains(condition, "r0") && !strings.Contains(first, "int r0") {
			continue
		}
		src += condition + "\n"
		test := parseRandom(t, src)
		all := whole(test, Options{})
		if all.Graphs > 1<<16 {
			continue
		}
		compared++
		rf := Litmus(context.Background(), test, Options{ReadsFrom: true, Jobs: 1 + r.IntN(3), graphs: []int{0, 1, 20}[r.IntN(3)]})
		if got, want := reported(rf), reported(all); got != want {
			t.Fatalf("by classes:\n%s\neach execution:\n%s\n%s", got, want, src)
		}
		if rf.Equivalence == EachExecution {
			if fell++; rf.Executions != all.Executions || len(rf.Notes) != 1 {
				t.Fatalf("%+v, want %+v\n%s", rf, all, src)
			}
			continue
		}
		executions, found, states = executions+all.Executions, found+rf.Executions, states+len(rf.Outcomes)
	}
	t.Logf("%d executions are %d classes with %d final states; %d searches were of each execution", executions, found, states, fell)
	if found*10 > executions*9 || fell < want/50 {
		t.Errorf("%d executions are %d classes; %d searches were of each execution", executions, found, fell)
	}
}

// reported returns the part of a report that does not depend on which executions are explored.
func reported(r *Result) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Verdict(), r.Holds, r.Counterexample != nil, r.Filtered > 0, r.Cut > 0, r.Stuck > 0)
	for _, o := range r.Outcomes {
		fmt.Fprintln(&b, o.State, o.Satisfies)
	}
	var lines []string
	for _, f := range r.Findings {
		var sides []string
		for _, s := range f.Sides {
			if f.Kind != "liveness" && f.Kind != "barrier-divergence" { // where several threads wait, the first is told
				sides = append(sides, fmt.Sprintf("%d:%d", s.Line, s.Col))
			}
		}
		slices.Sort(sides)
		lines = append(lines, fmt.Sprint(f.Kind, f.Warning, sides))
	}
	slices.Sort(lines)
	return b.String() + strings.Join(slices.Compact(lines), "\n")
}

// writers are n threads that write different values to x.
func writers(n int) string {
	var b strings.Builder
	b.WriteString("C writers\nint x, y;\n")
	for i := range n {
		fmt.Fprintf(&b, "thread W%d { store(x, %d, rlx); }\n", i, i+1)
	}
	return b.String()
}

// TestReadsFromCounts checks numbers of classes, executions and final states that are known in closed form.
func TestReadsFromCounts(t *testing.T) {
	const n = 6
	readers := ""
	for i := range 2 {
		readers += fmt.Sprintf("thread R%d { int a = load(x, rlx); }\n", i)
	}
	for _, c := range []struct {
		name, src       string
		classes, states int
		executions      int // 0: not explored
	}{
		{"writers", writers(n) + "exists x == 1", 1, n, factorial(n)},
		{"many writers", writers(100) + "exists x == 1", 1, 100, 0},
		{"writers, two readers", writers(n) + readers, (n + 1) * (n + 1), 0, factorial(n) * (n + 1) * (n + 1)},
		// A thread that has read a write does not read the initial value then.
		{"writers, one reads twice", writers(n) + "thread R { int a = load(x, rlx); int b = load(x, rlx); }", n*n + n + 1, 0, factorial(n) * (n + 1) * (n + 2) / 2},
		{"writers, an update", writers(n) + "thread U { exchange(x, 9, rlx); }\nexists x == 9", n + 1, n + 1, factorial(n) * (n + 1)},
		{"2+2W", `C 2+2W
int x, y; thread A { store(x, 1, rlx); store(y, 2, rlx); } thread B { store(y, 1, rlx); store(x, 2, rlx); }
exists (x == 1 /\ y == 1)`, 1, 4, 4},
		{"one thread writes", `C own
int x; thread A { store(x, 1, rlx); store(x, 2, rlx); } thread B { fetch_add(x, 5, rlx); }
exists x == 2`, 3, 2, 3},
		{"increments", fmt.Sprintf(sum, 5), factorial(5), 0, factorial(5)},
		{"LB", fmt.Sprintf(lb, 8), 1<<8 - 1, 0, 1<<8 - 1},
		{"SB", fmt.Sprintf(sb, 8), 1 << 8, 0, 1 << 8},
		{"CAS lock", fmt.Sprintf(casLock, 4, 1), factorial(4), 0, factorial(4)},
		{"ticket lock", fmt.Sprintf(ticketLock, 4, 1), factorial(4), 0, factorial(4)},
		// What C and D have read cannot both be the last value: each waits for what another execution has.
		{"two waits", `C waits
int x;
thread A { store(x, 1, rlx); } thread B { store(x, 2, rlx); }
thread C { while (load(x, rlx) < 2) ; store(x, 4, rlx); } thread D { while (load(x, rlx) % 2 == 0 && load(x, rlx) != 4) ; store(x, 3, rlx); }`, 0, 0, 0},
	} {
		test := parseRandom(t, c.src)
		all := &Result{}
		if c.executions > 0 || c.classes == 0 {
			if all = Litmus(context.Background(), test, Options{}); c.classes > 0 && all.Executions != c.executions {
				t.Errorf("%s: %d executions, want %d", c.name, all.Executions, c.executions)
			}
		}
		rf := Litmus(context.Background(), test, Options{ReadsFrom: true})
		if c.classes > 0 && (rf.Executions != c.classes || len(rf.Outcomes) != c.states) {
			t.Errorf("%s: %d classes, %d final states; want %d, %d", c.name, rf.Executions, len(rf.Outcomes), c.classes, c.states)
		}
		if rf.Equivalence != ReadsFrom || (c.executions > 0 || c.classes == 0) && reported(rf) != reported(all) {
			t.Errorf("%s, %s:\n%s\neach execution:\n%s", c.name, rf.Equivalence, reported(rf), reported(all))
		}
	}
}

// TestReadsFromKernels compares the reports on random kernels, with expectations about the final memory or a condition
// on it.
func TestReadsFromKernels(t *testing.T) {
	n := testsize.Of(400, 400, 4000)
	r := rand.New(rand.NewPCG(24, 0))
	executions, found, states, fell := 0, 0, 0, 0
	for range n {
		blocks, block := 1+r.IntN(2), 1+r.IntN(2)
		_, body := both(r, 8/(blocks*block), blocks*block, block, false)
		if r.IntN(3) != 0 {
			body = strings.ReplaceAll(body, "fence.sc", "fence.acq_rel")
		}
		l := launchOf(t, ".global .u32 x;\n", body, uint32(blocks), uint32(block))
		addr := map[string]uint64{}
		var expected []Expected
		for _, v := range []string{"x", "y"} {
			addr[v], _, _ = l.Program.Symbol(v)
			// A part of the bytes is enough.
			expected = append(expected, Expected{Name: v, Addr: addr[v] + uint64(r.IntN(2)), Size: 1 + r.IntN(3),
				Judge: func(data []byte) (string, bool) { return fmt.Sprint(data), data[0] != 2 }})
		}
		var condition *Condition
		if r.IntN(2) == 0 {
			f, values, err := litmus.ParseFormula("k", "x != y", []litmus.Variable{{Name: "x", Size: 1}, {Name: "y", First: 1, Size: 1}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			condition = &Condition{Condition: litmus.Condition{Quantifier: litmus.ForAll, Formula: f}, Observed: values,
				Element: func(loc int32) (uint64, int, bool) { return addr["xy"[loc:loc+1]], 4, false }}
		}
		var results [2]*Result
		for i := range results {
			var err error
			if results[i], err = Kernel(context.Background(), l, expected, condition, Options{Unroll: litmus.DefaultUnroll, ReadsFrom: i == 1, Jobs: 1 + 2*i, graphs: 100}); err != nil {
				t.Fatal(err)
			}
		}
		l.Program.Unload()
		all, rf := results[0], results[1]
		if got, want := reported(rf), reported(all); got != want || rf.Refusal != all.Refusal {
			t.Fatalf("by classes:\n%s\neach execution:\n%s\n%s", got, want, body)
		}
		if rf.Equivalence == EachExecution {
			fell++
			continue
		}
		executions, found, states = executions+all.Executions, found+rf.Executions, states+len(rf.Outcomes)
	}
	t.Logf("%d executions are %d classes with %d final states; %d searches were of each execution", executions, found, states, fell)
	if found*10 > executions*9 || states < n/2 || fell == 0 {
		t.Errorf("%d executions are %d classes with %d final states; %d searches were of each execution", executions, found, states, fell)
	}
}

// TestReadsFromCheckpoint checks that a search that has fallen back to single executions is resumed as such.
func TestReadsFromCheckpoint(t *testing.T) {
	file := t.TempDir() + "/search"
	for _, src := range []string{writers(5) + "thread R { int a = load(x, rlx); int b = load(x, rlx); } thread S { int a = load(x, rlx); }\nexists x == 1",
		writers(4) + "thread A { store(x, 1, sc); int a = load(y, sc); } thread B { store(y, 1, sc); int b = load(x, sc); }\nexists x == 1"} {
		test := parseRandom(t, src)
		want := Litmus(context.Background(), test, Options{ReadsFrom: true})
		searches := 0
		for {
			c, err := OpenCheckpoint(file, src)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			told := 0
			got := Litmus(ctx, test, Options{ReadsFrom: true, graphs: 10, Checkpoint: c, Progress: func(string) {
				if told++; searches < 20 && told > 3 {
					cancel()
				}
			}})
			cancel()
			if err := c.Close(got); err != nil {
				t.Fatal(err)
			}
			if searches++; got.Stopped {
				continue
			}
			if reported(got) != reported(want) || got.Executions != want.Executions || got.Equivalence != want.Equivalence || len(got.Notes) != len(want.Notes) {
				t.Errorf("after %d searches:\n%+v\nin one:\n%+v", searches, got, want)
			}
			break
		}
		if searches < 5 {
			t.Errorf("%d searches", searches)
		}
	}
}
