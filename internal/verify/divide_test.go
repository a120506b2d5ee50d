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

// TestJobs compares searches in parts, by one goroutine and by three, with the search in one piece: findings with the executions that
// show them, counts, final states.
func TestJobs(t *testing.T) {
	sources := []string{fmt.Sprintf(casLock, 3, 2), fmt.Sprintf(casLock, 5, 1), fmt.Sprintf(ttasLock, 4, 1), fmt.Sprintf(lb, 10), fmt.Sprintf(sb, 11),
		fmt.Sprintf(sum, 6), `C race
int x, y, z; grid 2, 2;
kernel { fetch_add(x, 1, rlx, cta); y = y + 1; store(z, tid, rlx, gpu); barrier(); int a = load(z, rlx, gpu); assert(a != 2); }
exists z == 1 filter x > 2`}
	r := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		sources = append(sources, randomProgram(r, 4+r.IntN(6)))
	}
	findings := 0
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
			for i, jobs := range []int{1, 3, 1, 3} {
				got := Litmus(context.Background(), test, Options{First: first, Jobs: jobs, graphs: []int{0, 0, 20, 1}[i]})
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%d jobs, first %v:\n%+v\nin one piece:\n%+v\n%s", jobs, first, got, want, src)
				}
			}
		}
	}
	if findings < 100 {
		t.Errorf("%d findings", findings)
	}
}

// TestParts: every execution is in one part, the parts are many if the search is large, and the same for each number of jobs.
func TestParts(t *testing.T) {
	test, err := litmus.Parse("test.litmus", fmt.Sprintf(lb, 12), litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var counts [2][]explore.Result
	for i, jobs := range []int{1, 4} {
		var mu sync.Mutex
		seen := map[string]bool{}
		d := explore.Division{Program: test, Jobs: jobs, Graphs: 20, Done: func(p *explore.Part, _ []int32) bool {
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

// TestCancelledParts: what has been found when a search ends early is reported.
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

// TestCheckpoint stops searches at many points, again and again, and goes on from the file: the result is that of one search.
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

// TestForeignCheckpoint: a file of another search, a damaged one and one that names no part are errors.
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
