package verify

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// This file enumerates the executions of a program naively: every read returns every value, then every assignment of writes to
// reads and every coherence order is tried, and the axioms of the model decide. It shares nothing with the search but the program.

// step is an event of a thread before its source is known.
type step struct {
	model.Event
	value int64
	rmw   bool // the second part of a read-modify-write
	// deps are the reads of the thread that the event depends on, as bits; the write of an update depends on its read.
	deps uint64
}

// brute holds an enumeration.
type brute struct {
	p      *litmus.Test
	places []model.Place
	model  model.SRC11
	locs   int
	found  map[string]bool
	tried  int
	limit  int // of executions to try
	// counting says that executions are counted and not tried: what there is too much of is not begun.
	counting bool
	// cut says that a thread may do more than is followed.
	cut bool
	// judge, if not nil, judges in the place of model.
	judge func(x *model.Execution, steps []step, rf []int, order [][]int)
}

// traces returns the possible traces of thread t if reads return any of values, by location. It omits traces that do
// not end. It calls written for each write, also of these.
func (b *brute) traces(t int, values []map[int64]bool, written func(s step)) [][]step {
	var out [][]step
	start := make([]int64, b.p.StateWords())
	var op explore.Op
	b.p.Start(t, start, &op)
	walked := 0
	var walk func(state []int64, op explore.Op, done []step)
	walk = func(state []int64, op explore.Op, done []step) {
		if walked++; walked > maxWalked {
			return
		}
		base := model.Event{Thread: t, Order: op.Order, Scope: op.Scope, Loc: op.Loc, Place: b.places[t],
			Proxy: op.Proxy, Address: op.Address, Reduction: op.Reduction}
		next := func(v int64, more ...step) {
			for _, e := range more {
				if e.Kind == model.W {
					written(e)
				}
			}
			s, o := slices.Clone(state), explore.Op{}
			b.p.Resume(t, s, v, &o)
			walk(s, o, slices.Concat(done, more))
		}
		event := func(kind model.Kind, order model.Order, v int64) step {
			e := base
			e.Kind, e.Order = kind, order
			deps := op.Deps
			if kind == model.Arrival {
				deps = op.Control
			}
			return step{Event: e, value: v, deps: deps}
		}
		if len(done) > maxSteps {
			b.cut = true
			return
		}
		switch op.Kind {
		case explore.End, explore.Fail:
			out = append(out, done)
		case explore.Fence:
			next(0, event(model.F, op.Order, 0))
		case explore.Write:
			next(0, event(model.W, op.Order, op.Value))
		case explore.Arrive:
			next(0, event(model.Arrival, model.NA, 0), event(model.Leave, model.NA, 0))
		case explore.Signal:
			next(0, event(model.Arrival, model.NA, 0))
		case explore.Read:
			for _, v := range slices.Sorted(maps.Keys(values[op.Loc])) {
				next(v, event(model.R, op.Order, v))
			}
		case explore.Update:
			for _, v := range slices.Sorted(maps.Keys(values[op.Loc])) {
				read := event(model.R, op.Order.OfRead(), v)
				if w, writes := b.p.Apply(&op, v); writes {
					write := event(model.W, op.Order.OfWrite(), w)
					write.rmw = true
					if op.Function != explore.Exchange {
						write.deps |= 1 << countReads(done)
					}
					next(v, read, write)
				} else {
					next(v, read)
				}
			}
		}
	}
	walk(start, op, nil)
	if walked > maxWalked {
		return make([][]step, maxTraces+1)
	}
	return out
}

func countReads(steps []step) (n int) {
	for i := range steps {
		if steps[i].Kind == model.R {
			n++
		}
	}
	return n
}

// dependencies is the dependency relation of the steps.
func dependencies(steps []step) model.Rel {
	dep := model.NewRel(len(steps))
	for i, s := range steps {
		reads := 0
		for j, r := range steps {
			if r.Thread == s.Thread && r.Kind == model.Leave && j < i {
				dep.Add(j, i)
			}
			if r.Thread == s.Thread && r.Kind == model.R {
				if s.deps>>reads&1 != 0 && s.Thread >= 0 {
					dep.Add(j, i)
				}
				reads++
			}
		}
	}
	return dep
}

// The bounds of an enumeration: the traces of a thread, the steps needed to find them, and the steps of a trace.
const maxTraces, maxWalked, maxSteps = 400, 2000, 12

// run enumerates the executions. It returns false if there are too many.
func (b *brute) run() bool {
	b.places, b.locs = b.p.Places(), b.p.Locations()
	b.found = map[string]bool{}
	values := make([]map[int64]bool, b.locs)
	for l := range values {
		values[l] = map[int64]bool{b.p.Initial(int32(l)): true}
	}
	threads := make([][][]step, len(b.places))
	for grown, round := true, 0; grown; round++ {
		grown = false
		for t := range threads {
			var writes []step
			threads[t] = b.traces(t, values, func(s step) { writes = append(writes, s) })
			if len(threads[t]) > maxTraces {
				return false
			}
			for _, s := range writes {
				if !values[s.Loc][s.value] && round < 6 {
					values[s.Loc][s.value] = true
					grown = true
				}
			}
		}
	}
	chosen := make([][]step, len(threads))
	b.tried = 0
	var choose func(t int) bool
	choose = func(t int) bool {
		if t == len(threads) {
			return b.combine(chosen)
		}
		for _, tr := range threads[t] {
			chosen[t] = tr
			if !choose(t + 1) {
				return false
			}
		}
		return true
	}
	b.counting = true
	few := choose(0)
	b.counting = false
	return few && choose(0)
}

// combine tries, or counts, all combinations of the threads' traces. It returns false if there are too many.
func (b *brute) combine(threads [][]step) bool {
	var steps []step
	first := b.locs // the initial writes come first
	for l := range b.locs {
		steps = append(steps, step{Event: model.Event{Thread: -1, Kind: model.W, Loc: int32(l)}, value: b.p.Initial(int32(l))})
	}
	for _, tr := range threads {
		steps = append(steps, tr...)
	}
	writes := make([][]int, b.locs)
	var reads []int
	for i, s := range steps {
		switch {
		case s.Kind == model.W && s.Thread >= 0:
			writes[s.Loc] = append(writes[s.Loc], i)
		case s.Kind == model.R:
			reads = append(reads, i)
		}
	}
	sources := make([][]int, len(steps)) // the writes that a read may read from
	ways := 1
	for _, r := range reads {
		for w, s := range steps {
			if s.Kind == model.W && s.Loc == steps[r].Loc && s.value == steps[r].value && !(w == r+1 && s.rmw) {
				sources[r] = append(sources[r], w)
			}
		}
		if ways = min(ways*len(sources[r]), b.limit+1); ways == 0 {
			return true
		}
	}
	for _, ws := range writes {
		for i := range ws {
			ways = min(ways*(i+1), b.limit+1)
		}
	}
	n := len(steps)
	x := &model.Execution{PO: model.NewRel(n), RMW: model.NewRel(n), Bar: model.NewRel(n)}
	if !b.barriers(x, steps) {
		return true
	}
	if b.counting {
		b.tried += ways
		return b.tried <= b.limit
	}
	for i, s := range steps {
		x.E = append(x.E, s.Event)
		if s.rmw {
			x.RMW.Add(i-1, i)
		}
		for j := range i {
			if steps[j].Thread == s.Thread && s.Thread >= 0 || j < first && i >= first {
				x.PO.Add(j, i)
			}
		}
	}
	rf := make([]int, n)
	order := make([][]int, b.locs)
	var coherence func(l int)
	coherence = func(l int) {
		if l == b.locs {
			b.check(x, steps, reads, rf, order)
			return
		}
		permutations(writes[l], func(p []int) {
			order[l] = p
			coherence(l + 1)
		})
	}
	var source func(i int)
	source = func(i int) {
		if i == len(reads) {
			coherence(0)
			return
		}
		for _, w := range sources[reads[i]] {
			rf[reads[i]] = w
			source(i + 1)
		}
	}
	source(0)
	return true
}

// barriers relates the arrivals of a CTA at a barrier, the n-th of each thread, to the events that leave it. It returns
// false if a thread of the CTA has not arrived and another has left.
func (b *brute) barriers(x *model.Execution, steps []step) bool {
	generation := make([]int, len(steps))
	count := map[[2]int]int{}
	for i, s := range steps {
		key := [2]int{s.Thread, int(s.Loc)}
		switch s.Kind {
		case model.Arrival:
			count[key]++
			generation[i] = count[key]
		case model.Leave:
			generation[i] = generation[i-1]
		}
	}
	for i, s := range steps {
		if s.Kind != model.Leave {
			continue
		}
		arrived := map[int]bool{}
		for j, a := range steps {
			if a.Kind == model.Arrival && a.Loc == s.Loc && a.Place.CTA == s.Place.CTA && generation[j] == generation[i] {
				x.Bar.Add(j, i)
				arrived[a.Thread] = true
			}
		}
		for t, p := range b.places {
			if p.CTA == s.Place.CTA && !arrived[t] {
				return false
			}
		}
	}
	return true
}

// check records the execution if it is consistent.
func (b *brute) check(x *model.Execution, steps []step, reads, rf []int, order [][]int) {
	n := len(steps)
	x.RF, x.CO = model.NewRel(n), model.NewRel(n)
	for _, r := range reads {
		x.RF.Add(rf[r], r)
	}
	for l, ws := range order {
		for i, w := range ws {
			x.CO.Add(l, w)
			for _, v := range ws[i+1:] {
				x.CO.Add(w, v)
			}
		}
	}
	if b.judge != nil {
		b.judge(x, steps, rf, order)
	} else if b.model.Consistent(x) {
		b.found[b.identity(steps, rf, order)] = true
	}
}

// identity names an execution as the function of the same name does for the search.
func (b *brute) identity(steps []step, rf []int, order [][]int) string {
	index := make([]int, len(steps))
	next := map[int]int{}
	for i, s := range steps {
		index[i] = next[s.Thread]
		next[s.Thread]++
	}
	name := func(e int) string {
		if e < b.locs {
			return "init"
		}
		return fmt.Sprintf("%d.%d", steps[e].Thread, index[e])
	}
	threads := map[int][]string{}
	n := 0
	for i, s := range steps {
		if s.Thread < 0 {
			continue
		}
		t := fmt.Sprintf("%d:%d=%d", s.Kind, s.Loc, s.value)
		if s.Kind == model.R {
			t += "<" + name(rf[i])
		}
		threads[s.Thread] = append(threads[s.Thread], t)
		n = max(n, s.Thread+1)
	}
	var w strings.Builder
	for t := range n {
		fmt.Fprintln(&w, threads[t])
	}
	for _, ws := range order {
		for _, e := range ws {
			w.WriteString(" " + name(e))
		}
		w.WriteString(";")
	}
	return w.String()
}

func permutations(s []int, do func([]int)) {
	s = slices.Clone(s)
	var at func(i int)
	at = func(i int) {
		if i == len(s) {
			do(slices.Clone(s))
			return
		}
		for j := i; j < len(s); j++ {
			s[i], s[j] = s[j], s[i]
			at(i + 1)
			s[i], s[j] = s[j], s[i]
		}
	}
	at(0)
}

// randomProgram writes a program of at most size operations.
func randomProgram(r *rand.Rand, size int) string {
	var b strings.Builder
	threads := 2 + r.IntN(2)
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	scope := func() string { return pick("cta", "cta", "gpu", "sys", "cluster") }
	// Few programs are interesting if all is mixed: a program has one taste.
	orders := [][]string{{"rlx"}, {"rlx", "acq", "rel"}, {"sc"}, {"sc", "rlx", "acq", "rel"}}[r.IntN(4)]
	order := func(of ...string) string {
		var possible []string
		for _, o := range orders {
			if slices.Contains(of, o) {
				possible = append(possible, o)
			}
		}
		if len(possible) == 0 {
			possible = of
		}
		return pick(possible...)
	}
	b.WriteString("C random\nint x, y;\n")
	sizes := make([]int, threads)
	for range size {
		sizes[r.IntN(threads)]++
	}
	barriers := r.IntN(4) == 0 // one in each thread of one CTA, and perhaps one more
	regs := 0
	for t := range threads {
		gpu, cluster, cta := r.IntN(2)*r.IntN(2), r.IntN(2)*r.IntN(2), r.IntN(2)
		if barriers {
			gpu, cluster, cta = 0, 0, 0
		}
		fmt.Fprintf(&b, "thread T%d @ cta %d, cluster %d, gpu %d {\n", t, cta, cluster, gpu)
		var last string
		barrier := r.IntN(sizes[t] + 1)
		for i := range sizes[t] + 1 {
			if barriers && i == barrier {
				b.WriteString("  barrier();\n")
			}
			if i == sizes[t] {
				break
			}
			v, n := pick("x", "y"), 1+r.IntN(2)
			reg := fmt.Sprintf("r%d", regs)
			switch k := r.IntN(21); {
			case k < 5:
				fmt.Fprintf(&b, "  int %s = load(%s, %s, %s);\n", reg, v, order("rlx", "acq", "sc"), scope())
				last = reg
				regs++
			case k < 10:
				value := fmt.Sprint(n)
				if last != "" && r.IntN(3) == 0 {
					value = last + " + 1"
				}
				if last != "" && r.IntN(4) == 0 {
					fmt.Fprintf(&b, "  if (%s != 0)\n", last)
				}
				fmt.Fprintf(&b, "  store(%s, %s, %s, %s);\n", v, value, order("rlx", "rel", "sc"), scope())
			case k < 13:
				fmt.Fprintf(&b, "  fence(%s, %s);\n", pick("acq", "rel", "acqrel", "sc", "sc"), scope())
			case k < 15:
				op := pick("fetch_add("+v+", 1", "exchange("+v+", 2", "cas("+v+", 0, 1", "cas("+v+", 1, 2")
				fmt.Fprintf(&b, "  int %s = %s, %s, %s);\n", reg, op, pick("rlx", "acq", "rel", "acqrel", "sc"), scope())
				last = reg
				regs++
			case k < 16:
				fmt.Fprintf(&b, "  int %s = %s;\n", reg, v)
				last = reg
				regs++
			case k < 17:
				fmt.Fprintf(&b, "  %s = %d;\n", v, n)
			case k < 18:
				fmt.Fprintf(&b, "  while (load(%s, %s, %s) == 0) ;\n", v, order("rlx", "acq"), scope())
			case k == 20:
				fmt.Fprintf(&b, "  while (%s, %s, %s) != %d) ;\n", pick("exchange("+v+", 1", "fetch_add("+v+", 0", "fetch_max("+v+", 1"),
					pick("rlx", "acq", "rel", "sc"), scope(), r.IntN(2))
			case k < 19:
				fmt.Fprintf(&b, "  while (cas(%s, 0, 1, %s, %s) != 0) ;\n", v, pick("rlx", "acq"), scope())
			case barriers:
				fmt.Fprintf(&b, "  barrier();\n")
			default:
				fmt.Fprintf(&b, "  int %s = load(%s, acq, sys);\n", reg, v)
				last = reg
				regs++
			}
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// compare describes how the executions that the search finds differ from those of the enumeration under m, or returns
// "". ok is false if there are too many to enumerate.
func compare(t *testing.T, src string, m model.SRC11) (string, bool) {
	t.Helper()
	test, err := litmus.Parse("random.litmus", src, litmus.Options{Unroll: 4})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	b := &brute{p: test, model: m, limit: 3000}
	if !b.run() {
		return "", false
	}
	seen := map[string]bool{}
	explore.Explore(context.Background(), test, explore.Options{Incl: m.Incl, Races: true, Oldest: len(src)%2 == 0, Leaf: func(x explore.Execution, end explore.Ending) {
		id := identity(x, test.Locations())
		if seen[id] {
			t.Errorf("the search reaches an execution twice:\n%s\n%s", id, src)
		}
		seen[id] = true
		if end != explore.Complete {
			seen[id] = false
		}
	}})
	for id, complete := range seen {
		if complete && !b.found[id] {
			return "only the search finds\n" + id, true
		}
	}
	for id := range b.found {
		if !seen[id] {
			return "the search misses\n" + id, true
		}
	}
	return "", true
}

// TestBruteForce compares the search with the enumeration on random programs.
func TestBruteForce(t *testing.T) {
	want := testsize.Of(300, 400, 20000)
	for _, incl := range []model.Inclusion{model.Each, model.Paper} {
		r := rand.New(rand.NewPCG(1, uint64(incl)))
		compared := 0
		for compared < want {
			src := randomProgram(r, 3+r.IntN(4))
			diff, ok := compare(t, src, model.SRC11{Incl: incl})
			if diff != "" {
				t.Fatalf("incl %d: %s\n%s", incl, diff, src)
			}
			if ok {
				compared++
			}
		}
	}
}

// clauses has a program for each clause of the model. Without the clause the program has more or fewer executions.
var clauses = map[model.Drop]string{
	model.DropCoherence: `C CoRR
int x; thread A { store(x, 1, rlx); } thread B { int a = load(x, rlx); int b = load(x, rlx); }`,
	model.DropAtomicity: `C INC
int x; thread A { fetch_add(x, 1, rlx); } thread B { fetch_add(x, 1, rlx); }`,
	model.DropSC: `C SB
int x, y; thread A { store(x, 1, sc); int a = load(y, sc); } thread B { store(y, 1, sc); int b = load(x, sc); }`,
	model.DropPSCBase: `C SB
int x, y; thread A { store(x, 1, sc); int a = load(y, sc); } thread B { store(y, 1, sc); int b = load(x, sc); }`,
	model.DropThinAir: `C LB
int x, y; thread A { int a = load(x, rlx); store(y, 1, rlx); } thread B { int b = load(y, rlx); store(x, 1, rlx); }`,
	model.DropInclRF: `C MP-through-an-update-of-narrow-scope
int x, y; thread A @ cta 0 { store(x, 1, rlx); store(y, 1, rel, gpu); } thread B @ cta 1 { fetch_add(y, 1, rlx, cta); }
thread C @ cta 2 { int a = load(y, acq, gpu); int b = load(x, rlx); }`,
	model.DropInclSW: `C MP-with-a-fence-of-narrow-scope
int x, y; thread A @ cta 0 { store(x, 1, rlx); fence(rel, cta); store(y, 1, rlx, gpu); }
thread B @ cta 1 { int a = load(y, acq, gpu); int b = load(x, rlx); }`,
	model.DropInclPSC: `C SB-of-narrow-scope
int x, y; thread A @ cta 0 { store(x, 1, sc, cta); int a = load(y, sc, cta); }
thread B @ cta 1 { store(y, 1, sc, cta); int b = load(x, sc, cta); }`,
	model.DropRMWChain: `C MP-through-an-update
int x, y; thread A { store(x, 1, rlx); store(y, 1, rel); } thread B { fetch_add(y, 1, rlx); }
thread C { int a = load(y, acq); int b = load(x, rlx); }`,
	model.DropReleaseFence: `C MP-fence-acq
int x, y; thread A { store(x, 1, rlx); fence(rel); store(y, 1, rlx); } thread B { int a = load(y, acq); int b = load(x, rlx); }`,
	model.DropAcquireFence: `C MP-rel-fence
int x, y; thread A { store(x, 1, rlx); store(y, 1, rel); } thread B { int a = load(y, rlx); fence(acq); int b = load(x, rlx); }`,
	model.DropSameLocation: `C MP-release-sequence
int x, y; thread A { store(x, 1, rlx); store(y, 1, rel); store(y, 2, rlx); } thread B { int a = load(y, acq); int b = load(x, rlx); }`,
	model.DropPSCFence: `C IRIW-fences
int x, y; thread A { store(x, 1, rlx); } thread B { store(y, 1, rlx); }
thread C { int a = load(x, rlx); fence(sc); int b = load(y, rlx); } thread D { int c = load(y, rlx); fence(sc); int d = load(x, rlx); }`,
	model.DropBarrier: `C MP-barrier
int x; thread A @ cta 0 { store(x, 1, rlx); barrier(); } thread B @ cta 0 { barrier(); int a = load(x, rlx); }`,
}

// TestMutants checks that every clause of the model matters: without it, the enumeration differs from the search on a
// program of clauses, and with it they agree.
func TestMutants(t *testing.T) {
	for drop := model.Nothing + 1; drop < model.Drops; drop++ {
		src, ok := clauses[drop]
		if !ok {
			t.Errorf("no program for clause %d", drop)
			continue
		}
		if diff, ok := compare(t, src, model.SRC11{}); diff != "" || !ok {
			t.Errorf("%s\n%s", diff, src)
		}
		if diff, _ := compare(t, src, model.SRC11{Drop: drop}); diff == "" {
			t.Errorf("the model without clause %d has the same executions:\n%s", drop, src)
		}
	}
}
