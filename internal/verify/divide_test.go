package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

// whole explores a test in one piece.
func whole(test *litmus.Test, o Options) *Result {
	v := newVerifier(litmusTest{test}, test.Name, o)
	v.test, v.observed, v.result.Condition = test, test.Observed(), test.Condition
	if test.Condition != nil || test.Filter != nil {
		v.complete = (*verifier).finalValues
	}
	v.result.Result = explore.Explore(context.Background(), v.subject, v.exploration())
	return v.finish()
}

// TestJobs compares searches in parts, with one goroutine and with three, with the search in one piece: findings with
// the executions that show them, counts and final states.
func TestJobs(t *testing.T) {
	sources := []string{fmt.Sprintf(casLock, 3, 2), fmt.Sprintf(casLock, 5, 1), fmt.Sprintf(ttasLock, 4, 1), fmt.Sprintf(lb, 10), fmt.Sprintf(sb, 11),
		fmt.Sprintf(sum, 6), `C race
int x, y, z; grid 2, 2;
kernel { fetch_add(x, 1, rlx, cta); y = y + 1; store(z, tid, rlx, gpu); barrier(); int a = load(z, rlx, gpu); assert(a != 2); }
exists z == 1 filter x > 2`}
	r := rand.New(rand.NewPCG(7, 7))
	for n := range 4 {
		sources = append(sources, fmt.Sprintf(sb, 6+n)+"\n~exists (P0:a == 0 /\\ P5:a == 0)", fmt.Sprintf(lb, 6+n)+"\nforall (P0:a == 1)")
	}
	n := testsize.Of(50, 60, 200)
	for i := range n {
		src := randomProgram(r, 4+r.IntN(6))
		if i%2 == 1 {
			src += []string{"\n~exists (x == 1)", "\nforall (y != 2)", "\n~exists (x == 2 /\\ y == 1)"}[i/2%3]
		}
		sources = append(sources, src)
	}
	findings, forbidden := 0, 0
	for _, src := range sources {
		test, err := litmus.Parse("test.litmus", src, litmus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, first := range []bool{false, true} {
			want := whole(test, Options{First: first})
			if want.Graphs > 1<<20 {
				break
			}
			findings += len(want.Findings)
			if first && want.Counterexample != nil && len(want.Findings) == 0 {
				forbidden++
			}
			for i, jobs := range []int{1, 3, 1, 3} {
				got := Litmus(context.Background(), test, Options{First: first, Jobs: jobs, graphs: []int{0, 0, 20, 1}[i]})
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%d jobs, first %v:\n%+v\nin one piece:\n%+v\n%s", jobs, first, got, want, src)
				}
			}
		}
	}
	if findings < n/2 || forbidden < n/20 {
		t.Errorf("%d findings, %d executions that a condition forbids", findings, forbidden)
	}
}

// TestFirst checks under both models that with a condition that forbids a final state the search stops at the first
// execution that reaches it. With another condition, or if no execution is forbidden, it explores all.
func TestFirst(t *testing.T) {
	const states = `(P0:a == 0 /\ P1:a == 0 /\ P2:a == 0)`
	for _, m := range []string{SRC11, PTX} {
		for _, condition := range []string{"", "exists " + states, "~exists " + states, "forall ~" + states, "~exists (P0:a == 2)"} {
			src := fmt.Sprintf(sb, 3) + "\n" + condition
			all := verifyText(t, "sb", src, litmus.Options{}, Options{Model: m})
			first := verifyText(t, "sb", src, litmus.Options{}, Options{Model: m, First: true})
			if all.Counterexample == nil {
				if !reflect.DeepEqual(first, all) || first.Verdict() != OK {
					t.Errorf("%s, %q: %+v, and with First %+v", m, condition, all, first)
				}
				continue
			}
			if !first.Stopped || first.Counterexample == nil || first.Holds || first.Verdict() != Error || first.Executions >= all.Executions {
				t.Errorf("%s, %q: %s, and with First %s", m, condition, all.Summary(), first.Summary())
			}
		}
	}
}

// TestKernelJobs explores kernels with one, two and three goroutines, in large parts and in small ones, also by
// reads-from classes. The results are equal, including schedules, drawings, refusals and final states.
func TestKernelJobs(t *testing.T) {
	type launch struct {
		variables, body string
		grid, block     uint32
	}
	launches := []launch{
		{lockVariables, lockPTX, 3, 1},
		{lockVariables, strings.Replace(lockPTX, "acquire", "relaxed", 1), 4, 1},
		{lockVariables, "atom.relaxed.cta.global.add.u32 %r0, [x], 1; setp.eq.u32 %p0, %r0, 2; @%p0 trap;", 2, 2},
		{".global .u32 a[4];", "atom.relaxed.gpu.global.add.u32 %r0, [y], 1; mul.wide.u32 %rd1, %r0, 8; mov.u64 %rd0, a; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], 1;", 4, 1},
		{".global .align 8 .b32 v[2];", "st.global.v2.u32 [v], {%b, %b};", 3, 1},
		{lockVariables, "call (%r1), same, (%b); red.relaxed.gpu.global.add.u32 [x], %r1; call (%r1), same, (%b); ld.global.u32 %r2, [lock]; setp.eq.u32 %p0, %b, 2; @%p0 st.global.u32 [lock], %r1;", 4, 1},
		{"", "mov.u32 %r3, 1; shl.b32 %r3, %r3, %t; bar.warp.sync %r3; red.relaxed.gpu.global.add.u32 [y], 1; bar.warp.sync -1; atom.relaxed.gpu.global.add.u32 %r1, [y], 2;", 1, 4},
		{".global .align 4 .b8 x[4];", "setp.eq.u32 %p0, %b, 0; @%p0 st.global.u32 [x], 1; ld.global.u16 %r1, [x+2]; @!%p0 ld.global.u8 %r1, [x];", 3, 1},
		// Refused, by what an execution reads.
		{".global .align 4 .b8 x[4];", "atom.relaxed.gpu.global.add.u32 %r0, [y], 1; setp.eq.u32 %p0, %r0, 0; @!%p0 bra L; st.relaxed.gpu.global.u32 [x], 1; bra M; L: setp.eq.u32 %p0, %b, 1; @%p0 ld.global.u8 %r1, [x+1]; M: atom.relaxed.gpu.global.add.u32 %r0, [y], 1;", 4, 1},
		{lockVariables, "atom.relaxed.gpu.global.add.u32 %r0, [x], 1; setp.eq.u32 %p0, %r0, 3; setp.eq.and.u32 %p0, %b, 1, %p0; @%p0 mov.u32 %r0, %clock; st.global.u32 [lock], 1;", 4, 1},
	}
	r := rand.New(rand.NewPCG(15, 8))
	n := testsize.Of(12, 15, 600)
	for range n {
		blocks, block := 1+r.IntN(2), 1+r.IntN(2)
		_, body := both(r, 18/(blocks*block), blocks*block, block, true)
		launches = append(launches, launch{".global .u32 x;", body, uint32(blocks), uint32(block)})
	}
	findings, refused, several := 0, 0, 0
	for i, c := range launches {
		l := launchOf(t, c.variables+"\n.func (.reg .b32 a) same(.reg .b32 b) { ld.global.u32 a, [y]; add.u32 a, a, b; ret; }\n", c.body, c.grid, c.block)
		at, _, _ := l.Program.Symbol("y")
		expected := []Expected{{Name: "y", Addr: at, Size: 4, Judge: func(data []byte) (string, bool) { return fmt.Sprint(data), data[0] != 1 }}}
		for mode := range 3 {
			first, classes := mode == 1, mode == 2
			var want *Result
			for k, jobs := range []int{1, 1, 2, 3, 3} {
				ctx, cancel := context.WithCancel(context.Background())
				o := Options{Unroll: 4, First: first, ReadsFrom: classes, Jobs: jobs, Schedules: !classes, Drawings: true, graphs: []int{2000, 20, 20, 1, 50}[k]}
				if k == 0 {
					o.Progress = func(string) { cancel() }
				}
				got, err := Kernel(ctx, l, expected, nil, o)
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				if got.Stopped && got.Refusal == "" && (!first || got.errors() == 0 && got.Counterexample == nil) { // a large program
					break
				}
				if want == nil {
					want = got
					findings += len(got.Findings)
					refused += len(got.Refused)
				}
				if got.Graphs > 60 {
					several++
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("launch %d, %d jobs, mode %d:\n%+v\n%+v\n%s", i, jobs, mode, got, want, c.body)
				}
			}
		}
	}
	if findings < min(100, 2*n) || refused < 4 || several < min(120, 3*n) {
		t.Errorf("%d findings, %d places of refusals, %d searches of several parts", findings, refused, several)
	}
}

// TestParts checks that every execution is in one part, that a large search has many parts, and that they are the same
// for each number of jobs.
func TestParts(t *testing.T) {
	test, err := litmus.Parse("test.litmus", fmt.Sprintf(lb, 12), litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var counts [2][]explore.Result
	for i, jobs := range []int{1, 4} {
		var mu sync.Mutex
		seen := map[string]bool{}
		d := explore.Division{Search: func() explore.Search { return explore.NewSearch(test) }, Jobs: jobs, Graphs: 20, Done: func(p *explore.Part, _ []int32) bool {
			counts[i] = append(counts[i], p.Result)
			return true
		}, Begin: func() *explore.Options {
			return &explore.Options{Leaf: func(x explore.Execution, _ explore.Ending) {
				id := identity(x, test.Locations())
				mu.Lock()
				defer mu.Unlock()
				if seen[id] {
					t.Errorf("two parts have %s", id)
				}
				seen[id] = true
			}}
		}}
		if err := d.Explore(context.Background()); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 1<<12-1 {
			t.Errorf("%d executions, want %d", len(seen), 1<<12-1)
		}
		largest := 0
		for _, r := range counts[i] {
			largest = max(largest, r.Executions)
		}
		if len(counts[i]) < 100 || largest > 20 {
			t.Errorf("%d parts, the largest of %d executions", len(counts[i]), largest)
		}
	}
	if !reflect.DeepEqual(counts[0], counts[1]) {
		t.Error("four jobs have other parts than one")
	}
}

// TestCancelledParts checks that the results so far are reported if a search ends early.
func TestCancelledParts(t *testing.T) {
	test, err := litmus.Parse("test.litmus", `C race
int x, y; grid 9, 1;
kernel { x = 1; fetch_add(y, 1, rlx, gpu); int a = load(y, rlx, gpu); }`, litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := Litmus(ctx, test, Options{Jobs: 2, graphs: 1000, Progress: func(string) { cancel() }})
	if !r.Stopped || len(r.Findings) != 1 || r.Verdict() != Error {
		t.Errorf("%+v", r)
	}
}

// TestCheckpoint stops searches at many points repeatedly, and resumes them from the file. The result is that of one
// search.
func TestCheckpoint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "search")
	r := rand.New(rand.NewPCG(8, 8))
	sources := []string{fmt.Sprintf(casLock, 5, 1), fmt.Sprintf(lb, 9)}
	for range 60 {
		sources = append(sources, randomProgram(r, 5+r.IntN(5)))
	}
	sources = append(sources, fmt.Sprintf(sb, 8)+"\n~exists (P0:a == 0 /\\ P1:a == 0)")
	resumed := 0
	for i, src := range sources {
		test, err := litmus.Parse("test.litmus", src, litmus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := whole(test, Options{})
		if want.Graphs > 1<<16 {
			continue
		}
		for n := 1; ; n++ {
			c, err := OpenCheckpoint(file, src)
			if err != nil {
				t.Fatal(err)
			}
			resumed += min(c.Resumed(), 1)
			ctx, cancel := context.WithCancel(context.Background())
			told := 0
			got := Litmus(ctx, test, Options{Jobs: 1 + i%3, graphs: 10, Checkpoint: c, Progress: func(string) {
				if told++; n < 20 && told > want.Graphs/100+2 {
					cancel()
				}
			}})
			cancel()
			if err := c.Close(got); err != nil {
				t.Fatal(err)
			}
			if got.Stopped {
				continue
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after %d searches:\n%+v\nin one:\n%+v\n%s", n, got, want, src)
			}
			break
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the file is still there: %v", err)
		}
	}
	if resumed < 100 {
		t.Errorf("%d searches went on from another", resumed)
	}
}

// TestKernelCheckpoint stops the search of a kernel repeatedly, and resumes it with a launch whose places have other
// numbers. Findings in functions that were called first before the stop must not be counted again.
func TestKernelCheckpoint(t *testing.T) {
	const body = `
	atom.relaxed.gpu.global.add.u32 %r0, [y], 1;
	atom.relaxed.gpu.global.add.u32 %r2, [y], 1;
	mad.lo.u32 %r0, %r0, 6, %r2;
	setp.eq.u32 %p0, %r0, 2;
	setp.eq.u32 %p1, %r0, 23;
	setp.eq.u32 %p2, %r0, 9;
	@%p0 call (%r1), one, (%b);
	@%p1 call (%r1), two, (%b);
	@%p2 call (%r1), three, (%b);`
	const variables = ".global .u32 x;\n.global .u32 z;\n" + `
.func (.reg .b32 a) one(.reg .b32 b) { st.global.u32 [x], b; ret; }
.func (.reg .b32 a) two(.reg .b32 b) { ld.global.u32 a, [x];
ld.global.u32 a, [x]; ret; }
.func (.reg .b32 a) three(.reg .b32 b) { ld.global.u32 a, [x]; ret; }
`
	file := filepath.Join(t.TempDir(), "search")
	search := func(ctx context.Context, o Options) *Result {
		l := launchOf(t, variables, body, 3, 1)
		defer l.Program.Unload()
		o.Unroll = 4
		for _, f := range l.Program.Module.Funcs[:o.Jobs] { // other searches come to functions in another order
			l.Places.Enter(0, f)
		}
		r, err := Kernel(ctx, l, nil, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := search(context.Background(), Options{})
	resumed := 0
	for n := 1; ; n++ {
		c, err := OpenCheckpoint(file, "kernel")
		if err != nil {
			t.Fatal(err)
		}
		resumed += min(c.Resumed(), 1)
		ctx, cancel := context.WithCancel(context.Background())
		told := 0
		got := search(ctx, Options{Jobs: 1 + n%3, graphs: 10, Checkpoint: c, Progress: func(string) {
			if told++; told > want.Graphs/100+2 {
				cancel()
			}
		}})
		cancel()
		if err := c.Close(got); err != nil {
			t.Fatal(err)
		}
		if got.Stopped {
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("after %d searches:\n%+v\nin one:\n%+v", n, got, want)
		}
		break
	}
	if resumed < 3 || len(want.Findings) < 3 {
		t.Errorf("%d searches went on from another, %d findings", resumed, len(want.Findings))
	}
}

// TestForeignCheckpoint checks that a file of another search, a damaged file and a file that names no part are errors.
func TestForeignCheckpoint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "search")
	test, err := litmus.Parse("test.litmus", fmt.Sprintf(lb, 9), litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCheckpoint(file, "a")
	if err != nil {
		t.Fatal(err)
	}
	c.note(newVerifier(litmusTest{test}, "", Options{}), []int32{0, 99}, true)
	if _, err := OpenCheckpoint(file, "b"); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("another program: %v", err)
	}
	if c, err = OpenCheckpoint(file, "a"); err != nil {
		t.Fatal(err)
	}
	if r := Litmus(context.Background(), test, Options{Checkpoint: c, graphs: 10}); r.Verdict() == OK || !strings.Contains(r.Refusal, "no part") {
		t.Errorf("no such part: %s %q", r.Verdict(), r.Refusal)
	}
	for _, text := range []string{"", "{}", "null", `{"SHA256":"","Search":{}}`} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenCheckpoint(file, "a"); err == nil || !strings.Contains(err.Error(), "no checkpoint") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, name := range []string{filepath.Join(file, "x"), filepath.Join(t.TempDir(), "missing", "x")} {
		if _, err := OpenCheckpoint(name, "a"); err == nil {
			t.Errorf("%s can be written", name)
		}
	}
	if c, err = OpenCheckpoint(filepath.Join(t.TempDir(), "new"), "a"); err != nil || c.Resumed() != 0 {
		t.Error(err)
	}
}
