package mutate

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCommand mutates a small package. A change that its tests check must be killed, one that they do not check must
// survive, one that its list argues about must be equivalent, and a loop that does not end must be ended.
func TestCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	var out, errs bytes.Buffer
	if code := Main([]string{"-json", file, "-funcs", "Below|Untested|Must|^Largest$", "./testdata/sums"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d, want 1: the goal is not reached\n%s%s", code, &out, &errs)
	}
	r := readReport(t, file)
	if got := r.count("equivalent"); got != 1 {
		t.Errorf("%d equivalent mutants, want 1", got)
	}
	for _, o := range r.Mutants {
		if want := map[string]string{"Below": "TestBelow", "Largest": "TestLargest"}[o.Func]; o.Outcome == "killed" && o.By != want {
			t.Errorf("%s was killed by %q, want %q", o.Mutant, o.By, want)
		}
		if o.By == "TestBelow" && !strings.HasPrefix(o.Said, "sums_test.go:") {
			t.Errorf("%s: %s said %q", o.Mutant, o.By, o.Said)
		}
		if o.Func == "Must" && !strings.HasPrefix(o.New, "if") && o.Op != "drop operator" {
			t.Errorf("an assertion is mutated: %s", o.Mutant)
		}
	}
	survivors := survivorsOf(r)
	if want := []string{"func Untested() bool { return false }"}; !slices.Equal(survivors, want) {
		t.Errorf("survivors %q, want %q", survivors, want)
	}
	for _, want := range []string{"- func Untested() bool { return true }", "killed by TestBelow", "1 survived, 1 equivalent"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not hold %q:\n%s", want, &out)
		}
	}

	out.Reset()
	if code := Main([]string{"-again", file, "-json", file, "-goal", "0", "./testdata/sums"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d with -again and no goal\n%s%s", code, &out, &errs)
	}
	if r := readReport(t, file); len(r.Mutants) != len(survivors) || !slices.Equal(survivorsOf(r), survivors) {
		t.Errorf("-again runs %q, want %q", survivorsOf(r), survivors)
	}
}

func readReport(t *testing.T, file string) *Report {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func survivorsOf(r *Report) []string {
	var lines []string
	for _, o := range r.Mutants {
		if o.Outcome == "survived" {
			lines = append(lines, o.New)
		}
	}
	slices.Sort(lines)
	return lines
}

// TestTime ends a mutant that computes forever by its processor time, and one that waits forever by the clock.
func TestTime(t *testing.T) {
	r := &tester{tmp: t.TempDir(), memory: 1 << 10}
	for _, c := range []struct {
		name, script string
		limits       limits
	}{
		{"computes", "while :; do :; done", limits{cpu: 0, clock: time.Minute}},
		{"waits", "sleep 60 & wait", limits{cpu: time.Minute, clock: time.Second}},
	} {
		begin := time.Now()
		if v := r.run(context.Background(), "/bin/sh", t.TempDir(), []string{"-c", c.script}, c.limits); !v.failed || time.Since(begin) > 30*time.Second {
			t.Errorf("%s: failed %v after %v", c.name, v.failed, time.Since(begin))
		}
	}
}

// TestMutants checks that each kind of change occurs, and that a sample has only changes that compile.
func TestMutants(t *testing.T) {
	src, err := load("./testdata/sums")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range src.mutants() {
		if m.Func == "Halve" && src.compiles(m) {
			got = append(got, m.Op+": "+m.New)
		}
	}
	want := []string{
		"always: for (n > 0 && n%2 == 0) || true {",
		"constant: for n > 0 && n%1 == 0 {",
		"constant: for n > 0 && n%2 == 1 {",
		"constant: for n > 0 && n%3 == 0 {",
		"constant: for n > 1 && n%2 == 0 {",
		"constant: n /= 1",
		"constant: n /= 3",
		"drop operand: for n > 0 {",
		"drop operand: for n%2 == 0 {",
		"drop statement: ",
		"never: for (n > 0 && n%2 == 0) && false {",
		"return: return 0",
		"skip loop: for n > 0 && n%2 == 0 { break;",
		"swap: for n <= 0 && n%2 == 0 {",
		"swap: for n > 0 && n%2 != 0 {",
		"swap: for n > 0 && n*2 == 0 {",
		"swap: for n > 0 || n%2 == 0 {",
		"swap: for n >= 0 && n%2 == 0 {",
		"swap: n *= 2",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("mutants of Halve:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSample checks that the same seed gives the same sample, and another seed a different one.
func TestSample(t *testing.T) {
	src, err := load("./testdata/sums")
	if err != nil {
		t.Fatal(err)
	}
	draw := func(seed string) (lines []string) {
		c := &command{}
		if err := c.parse([]string{"-n", "8", "-seed", seed, "./testdata/sums"}); err != nil {
			t.Fatal(err)
		}
		sample, _, err := c.sample(src)
		if err != nil || len(sample) != 8 {
			t.Fatalf("%d mutants, %v", len(sample), err)
		}
		for _, m := range sample {
			lines = append(lines, m.String())
		}
		return lines
	}
	if a, b := draw("1"), draw("1"); !slices.Equal(a, b) {
		t.Errorf("seed 1 draws %q, then %q", a, b)
	}
	if a, b := draw("1"), draw("2"); slices.Equal(a, b) {
		t.Errorf("seeds 1 and 2 draw the same: %q", a)
	}
}

// TestQuick checks the order of tests: the quickest quarter comes first, unless all are quick.
func TestQuick(t *testing.T) {
	out := "--- PASS: TestA (0.50s)\n    --- PASS: TestA/sub (0.50s)\n--- PASS: TestB (3.00s)\n--- PASS: TestC (0.10s)\n"
	if got := quick([]byte(out)); !slices.Equal(got, []string{"TestC", "TestA"}) {
		t.Errorf("quick tests %q", got)
	}
	if got := quick([]byte("--- PASS: TestA (0.50s)\n")); got != nil {
		t.Errorf("quick tests %q of half a second", got)
	}
}

// TestWrongUsage checks that wrong usage has exit code 2.
func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"-nonsense", "a"}, {"-files", "(", "a"}, {"./nonsense"}, {"-t", "", "./testdata/sums"}} {
		var out, errs bytes.Buffer
		if code := Main(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%q: exit code %d, %q", args, code, &errs)
		}
	}
}

// TestListsHold checks that every listed mutant still exists: an entry whose function or line has changed is invalid.
func TestListsHold(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(filepath.ToSlash(name), "/"+ListName) {
			return nil
		}
		dir := strings.TrimSuffix(filepath.ToSlash(name), "/"+ListName)
		list, err := readList(dir)
		if err != nil {
			return err
		}
		src, err := load(dir)
		if err != nil {
			return err
		}
		is := map[entry]bool{}
		for _, m := range src.mutants() {
			is[m.entry()] = true
		}
		for _, e := range list {
			if !is[entry{fn: e.fn, before: e.before, after: e.after}] {
				t.Errorf("%s:%d: no mutant of %s turns %q into %q any more", name, e.line, e.fn, e.before, e.after)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestListMistakes checks that an entry without an argument is refused.
func TestListMistakes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "testdata"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"f\n- a\n+ b\n", "f\nwhy\n", "- a\n+ b\nwhy\n"} {
		if err := os.WriteFile(filepath.Join(dir, ListName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if list, err := readList(dir); err == nil {
			t.Errorf("%q is read as %v", text, list)
		}
	}
}
