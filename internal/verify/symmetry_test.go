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
	"fencepost.dev/fencepost/internal/verify/kernel"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// orbit returns a name of an execution that is the same for its images under all permutations of the threads within
// classes. variable returns the names of locations.
func orbit(x explore.Execution, variable func(loc int32) string, perms [][]int) string {
	events := x.Events()
	written := map[string]int32{}
	for _, e := range events {
		if e.Kind == model.W {
			written[variable(e.Loc)] = e.Loc
		}
	}
	variables := slices.Sorted(maps.Keys(written))
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
			s := fmt.Sprintf(" %d@%d=%d", e.Kind, e.Op.Pos, e.Value)
			if e.Kind == model.R {
				s += "<" + name(e.RF)
			}
			if e.Kind == model.R || e.Kind == model.W {
				s += variable(e.Loc)
			}
			threads[to[e.Thread]] += s
		}
		id := strings.Join(threads, "\n")
		for _, v := range variables {
			id += "\n" + v
			for _, w := range x.Coherence(written[v]) {
				id += " " + name(int(w))
			}
		}
		if least == "" || id < least {
			least = id
		}
	}
	return least
}

// renamings returns the permutations of threads within classes.
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

// searchOrbits returns the executions up to renaming, with their counts, and the errors.
func searchOrbits(t *testing.T, p explore.Program, o explore.Options, before []int, variable func(loc int32) string, src string) (map[string]int, []string, explore.Result) {
	t.Helper()
	perms := renamings(before)
	same := [][]int{make([]int, len(before))}
	for i := range before {
		same[0][i] = i
	}
	seen, orbits := map[string]bool{}, map[string]int{}
	var errors []string
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaves := 0
	o.Races = true
	o.Leaf = func(x explore.Execution, end explore.Ending) {
		if leaves++; leaves > 1000 {
			cancel()
			return
		}
		id := orbit(x, variable, same)
		if seen[id] {
			t.Fatalf("the search reaches an execution twice:\n%s\n%s", id, src)
		}
		seen[id] = true
		if end != explore.Blocked {
			orbits[fmt.Sprintf("%d\n", end)+orbit(x, variable, perms)]++
		}
	}
	o.Found = func(e explore.Error, x explore.Execution) bool {
		pos := []int32{e.Pos, e.OtherPos}
		if e.A >= 0 && e.B >= 0 {
			pos = []int32{x.Step(e.A).Pos, x.Step(e.B).Pos}
		}
		slices.Sort(pos)
		if s := fmt.Sprint(e.Kind, pos); !slices.Contains(errors, s) {
			errors = append(errors, s)
		}
		return true
	}
	r := explore.Explore(ctx, p, o)
	r.Stopped = r.Stopped || leaves > 1000
	slices.Sort(errors)
	return orbits, errors, r
}

// randomKernel makes the body of the first thread of a random program the kernel of a grid, and in most cases a second
// body that of other threads.
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

// compareOrbits compares the search up to renaming with the complete one: the executions up to renaming and the errors
// are the same. It returns how many executions differ by more than names. ok is false if no threads are symmetric, or
// if there are too many executions.
func compareOrbits(t *testing.T, p explore.Program, o explore.Options, before []int, variable func(loc int32) string, src string) (differ int, n, m explore.Result, ok bool) {
	t.Helper()
	if !slices.ContainsFunc(before, func(b int) bool { return b >= 0 }) {
		return 0, n, m, false
	}
	whole, errors, n := searchOrbits(t, p, o, before, variable, src)
	if n.Stopped {
		return 0, n, m, false
	}
	o.Symmetric = before
	got, sameErrors, m := searchOrbits(t, p, o, before, variable, src)
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
		t.Fatalf("errors %v, up to symmetry %v, of classes %v\n%s", errors, sameErrors, before, src)
	}
	return len(whole), n, m, true
}

// TestSymmetry compares the search up to renaming with the complete one on random kernels.
func TestSymmetry(t *testing.T) {
	want := testsize.Of(40, 60, 2000)
	r := rand.New(rand.NewPCG(11, 11))
	compared, all, reduced, least := 0, 0, 0, 0
	for compared < want {
		src := randomKernel(r, 3+r.IntN(10))
		test, err := litmus.Parse("test.litmus", src, litmus.Options{Unroll: 4})
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		before := test.Symmetric()
		whole, n, m, ok := compareOrbits(t, test, explore.Options{}, before, test.Location, src)
		if !ok {
			continue
		}
		compared++
		all, reduced, least = all+n.Executions, reduced+m.Executions, least+whole
	}
	t.Logf("%d executions, %d up to symmetry, of which %d differ", all, reduced, least)
	if 3*reduced > all {
		t.Errorf("%d of %d executions are left", reduced, all)
	}
}

// TestSymmetricLocks checks numbers of executions that are known in closed form: of n threads that acquire a lock in
// turn, one order remains. A thread whose number matters, or whose variable the condition names, is not symmetric to
// others. Parts and goroutines do not matter.
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

// randomSymmetric returns the body of a random kernel, parts of which depend on the number of the thread or of the
// block.
func randomSymmetric(r *rand.Rand, size int, shared bool) string {
	var b strings.Builder
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	label := 0
	code := func(n int) {
		b.WriteString("mov.u32 %r0, 0;\n")
		for range n {
			space, v, scope := "global", pick("x", "y"), pick("cta", "gpu")
			if shared && r.IntN(3) == 0 {
				space, v = "shared", "s"
			}
			at := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
			switch k := r.IntN(20); {
			case k < 3:
				at("ld.%s.%s.%s.u32 %%r0, [%s];", pick("relaxed", "acquire"), scope, space, v)
			case k < 6:
				at("st.%s.%s.%s.u32 [%s], %s;", pick("relaxed", "release"), scope, space, v, pick("1", "2", "%r0"))
			case k < 9:
				at("atom.%s.%s.%s.%s;", pick("relaxed", "acq_rel"), scope, space, fmt.Sprintf(pick("add.u32 %%r0, [%s], 1", "exch.b32 %%r0, [%s], 2", "cas.b32 %%r0, [%s], 0, 1"), v))
			case k < 10:
				at("ld.%s.u32 %%r0, [%s];", space, v)
			case k < 11:
				at("st.%s.u32 [%s], %s;", space, v, pick("1", "%r0"))
			case k < 12:
				at("fence.%s.%s;", pick("sc", "acq_rel"), scope)
			case k < 13:
				at("barrier.sync %s;", pick("0", "1"))
			case k < 14:
				at("setp.eq.u32 %%p0, %%r0, %s; bar.red.popc.u32 %%r0, 0, %%p0;", pick("0", "1"))
			case k < 15:
				at("%s", pick("bar.warp.sync -1;", "redux.sync.add.u32 %r0, %r0, -1;", "setp.eq.u32 %p0, %r0, 1; vote.sync.any.pred %p1, %p0, -1; selp.u32 %r0, 1, 0, %p1;",
					"shfl.sync.bfly.b32 %r0, %r0, 1, 31, -1;", "setp.eq.u32 %p0, %r0, 1; vote.sync.ballot.b32 %r0, %p0, -1;", "bar.warp.sync 5;", "elect.sync _|%p0, -1; selp.u32 %r0, 1, 0, %p0;"))
			case k < 16:
				at("setp.eq.u32 %%p0, %%r0, %s; @%%p0 %s;", pick("1", "2"), pick("exit", "trap"))
			case k < 17:
				at("%s", pick("add.u32 %r0, %r0, %t;", "add.u32 %r0, %r0, %b;", "mov.u32 %r1, %tid.x; add.u32 %r0, %r0, %r1;", "mov.u32 %r0, %laneid;", "mov.u32 %r0, %ntid.x;", "mov.u32 %r0, %warpid;"))
			default:
				at("L%d: ld.acquire.%s.%s.u32 %%r0, [%s]; setp.eq.u32 %%p0, %%r0, %s; @%%p0 bra L%d;", label, scope, space, v, pick("0", "1"), label)
				label++
			}
		}
		b.WriteString("ret;\n")
	}
	if r.IntN(3) > 0 {
		fmt.Fprintf(&b, "setp.%s.u32 %%p2, %%%s, %d;\n@%%p2 bra OTHER;\n", pick("eq", "ne"), pick("t", "b"), r.IntN(3))
		code(1 + r.IntN(size))
		b.WriteString("OTHER:\n")
	}
	code(1 + r.IntN(size))
	return b.String()
}

// TestKernelSymmetry compares the search up to renaming with the complete one on random kernels.
func TestKernelSymmetry(t *testing.T) {
	want := testsize.Of(60, 80, 1500)
	r := rand.New(rand.NewPCG(15, 11))
	compared, all, reduced, least, stuck := 0, 0, 0, 0, 0
	for compared < want {
		size := [][2]uint32{{1, 2}, {1, 3}, {1, 4}, {2, 1}, {3, 1}, {2, 2}}[r.IntN(6)]
		variables := ".global .u32 x;\n"
		shared := r.IntN(3) == 0
		if shared {
			variables += ".shared .u32 s;\n"
		}
		body := randomSymmetric(r, 5, shared)
		l := launchOf(t, variables, body, size[0], size[1])
		p, err := kernel.New(l, kernel.Options{Unroll: 3})
		if err != nil {
			t.Fatal(err)
		}
		src := fmt.Sprint(size, "\n", variables, body)
		whole, n, m, ok := compareOrbits(t, p, explore.Options{Exits: true}, p.Symmetric(), kernelLaunch{p}.location, src)
		p.Close()
		l.Program.Unload()
		if !ok || p.Refusal() != nil {
			continue
		}
		compared++
		all, reduced, least, stuck = all+n.Executions, reduced+m.Executions, least+whole, stuck+m.Stuck
	}
	t.Logf("%d executions, %d up to symmetry, of which %d differ; %d stuck", all, reduced, least, stuck)
	if 2*reduced > all || stuck < want/10 {
		t.Errorf("%d of %d executions are left, and %d are stuck", reduced, all, stuck)
	}
}

// TestSymmetricThreads checks which threads of a kernel are symmetric, and the remaining numbers of executions, which
// are known in closed form.
func TestSymmetricThreads(t *testing.T) {
	const add = "atom.relaxed.gpu.global.add.u32 %r0, [x], 1;"
	wide := slices.Repeat([]int{-1}, 34)
	for i := range wide {
		if i > 0 && i != 32 {
			wide[i] = i - 1
		}
	}
	block := slices.Clone(wide)
	block[32] = 31
	for _, c := range []struct {
		name, variables, body string
		grid, block           uint32
		before                []int
		want                  int // executions; 0: not explored
	}{
		{"a lock", "", lockPTX, 4, 1, []int{-1, 0, 1, 2}, 1},
		{"two blocks", "", lockPTX, 2, 2, []int{-1, 0, -1, 2}, 6},
		{"its number is not used", "", "add.u32 %r1, %t, %b;" + add, 3, 1, []int{-1, 0, 1}, 1},
		{"its number is used", "", add + "add.u32 %r1, %r0, %t; red.relaxed.gpu.global.add.u32 [x], %r1;", 1, 2, []int{-1, -1}, 6},
		{"its number is asked for later", "", add + "mov.u32 %r1, %tid.x; st.relaxed.gpu.global.u32 [x], %r1;", 1, 2, []int{-1, -1}, 6},
		{"a number that is the same", "", add + "mov.u32 %r1, %ctaid.x; add.u32 %r1, %r1, %ntid.x;" + add, 1, 2, []int{-1, 0}, 3},
		{"the first of a block", "", "setp.eq.u32 %p0, %t, 0; @%p0 " + add + add, 1, 4, []int{-1, -1, 1, 2}, 0},
		{"an address", "", "mov.u64 %rd0, x; mul.wide.u32 %rd1, %t, 4; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], 1;", 1, 2, []int{-1, -1}, 1},
		{"in a function", "", add + "call (%r1), number, ();" + add, 1, 2, []int{-1, -1}, 6},
		{"shared memory of blocks", ".shared .u32 s;", "st.shared.u32 [s], 1;" + add, 2, 1, []int{-1, -1}, 2},
		{"shared memory of a block", ".shared .u32 s;", "st.relaxed.cta.shared.u32 [s], 1;", 1, 3, []int{-1, 0, 1}, 1},
		{"a barrier of lanes", "", "bar.warp.sync -1;" + add, 1, 3, []int{-1, 0, 1}, 1},
		{"a barrier of other lanes", "", "bar.warp.sync 3;" + add, 1, 3, []int{-1, 0, -1}, 0},
		{"a barrier with a mask in a register", "", "mov.u32 %r1, -1; bar.warp.sync %r1;" + add, 1, 2, []int{-1, -1}, 2},
		{"a vote", "", add + "setp.eq.u32 %p0, %r0, 0; vote.sync.any.pred %p0, %p0, -1;", 1, 3, []int{-1, 0, 1}, 1},
		{"a ballot", "", add + "setp.eq.u32 %p0, %r0, 0; vote.sync.ballot.b32 %r0, %p0, -1;", 1, 2, []int{-1, -1}, 2},
		{"a shuffle", "", add + "shfl.sync.bfly.b32 %r0, %r0, 1, 31, -1;", 1, 2, []int{-1, -1}, 2},
		{"a shuffle of one lane", "", add + "shfl.sync.idx.b32 %r0, %r0, 0, 31, -1;", 3, 1, []int{-1, 0, 1}, 1},
		{"active lanes", "", add + "activemask.b32 %r0;", 1, 2, []int{-1, -1}, 0},
		{"two warps", "", "bar.warp.sync -1;" + add, 1, 34, wide, 0},
		{"two warps and no barrier of lanes", "", add, 1, 34, block, 0},
	} {
		l := launchOf(t, ".global .u32 lock;\n.global .align 8 .u32 x[4];\n"+c.variables+"\n.func (.reg .b32 n) number() { mov.u32 n, %tid.x; ret; }\n", c.body, c.grid, c.block)
		p, err := kernel.New(l, kernel.Options{Unroll: 3})
		if err != nil {
			t.Fatal(err)
		}
		before := p.Symmetric()
		p.Close()
		if !slices.Equal(before, c.before) {
			t.Errorf("%s: classes %v, want %v", c.name, before, c.before)
		}
		for _, jobs := range []int{1, 3} {
			if c.want == 0 {
				break
			}
			if r := verifyLaunch(t, l, Options{Symmetry: true, Jobs: jobs, graphs: 40}); r.Executions != c.want || r.Refusal != "" || len(r.Notes) != 1 {
				t.Errorf("%s, %d goroutines: %d executions, want %d (%s)", c.name, jobs, r.Executions, c.want, r.Refusal)
			}
		}
		l.Program.Unload()
	}
}
