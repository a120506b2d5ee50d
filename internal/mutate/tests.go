package mutate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/procgroup"
)

// round is one run of a test binary. The rounds of a mutant run in order until one fails.
type round struct {
	pkg   string // a package pattern; "." is the package that is changed
	args  []string
	limit limits
}

// limits end a mutant that hangs or allocates too much memory. They bound the processor time, because the machine may
// be busy with other work; the bound on elapsed time is for mutants that wait.
type limits struct {
	cpu, clock time.Duration
}

// newRound reads a round as "PACKAGE [go test flags]".
func newRound(s string) (round, error) {
	f := strings.Fields(s)
	if len(f) == 0 {
		return round{}, errors.New(`a test is "PACKAGE [flags of go test]"`)
	}
	r := round{pkg: f[0]}
	for _, a := range f[1:] {
		if name, ok := strings.CutPrefix(a, "-"); ok {
			a = "-test." + strings.TrimPrefix(name, "-")
		}
		r.args = append(r.args, a)
	}
	return r, nil
}

// tester runs the tests of one package, each time with one file replaced.
type tester struct {
	src    *source
	rounds []round
	tmp    string
	memory int               // MiB that a test may use
	number int               // of mutants so far, for the names of files
	dirs   map[string]string // of packages
}

// build makes the test binary of a package with the overlay, and returns its path and the folder in which it runs.
func (t *tester) build(ctx context.Context, pkg, overlay string) (bin, dir string, err error) {
	if pkg == "." {
		pkg = t.src.path
	}
	if dir = t.dirs[pkg]; dir == "" {
		out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
		if err != nil {
			return "", "", fmt.Errorf("go list %s: %w", pkg, err)
		}
		dir = strings.TrimSpace(string(out))
		t.dirs[pkg] = dir
	}
	bin = filepath.Join(t.tmp, fmt.Sprintf("%d-%s.test", t.number, strings.ReplaceAll(strings.Trim(pkg, "./"), "/", "-")))
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", bin}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("go test -c %s: %w\n%s", pkg, err, out)
	}
	return bin, dir, nil
}

// verdict is the end of a round.
type verdict struct {
	failed  bool
	by      string // the test that failed, "time", or "crash"
	said    string // the first line of the failure
	took    time.Duration
	cpu     time.Duration
	outputs []byte
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+).*\n(?:\s*--- FAIL.*\n)*\s*(.*)`)

// run executes a test binary under limits, in a process group of its own, and ends the whole group when it exceeds
// them.
func (t *tester) run(ctx context.Context, bin, dir string, args []string, l limits) verdict {
	ctx, cancel := context.WithTimeout(ctx, l.clock)
	defer cancel()
	script := fmt.Sprintf(`ulimit -t %d; ulimit -v %d; exec "$0" "$@"`, 1+int(l.cpu.Seconds()), t.memory<<10)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, bin}, args...)...)
	cmd.Dir = dir
	procgroup.Set(cmd)
	cmd.WaitDelay = 5 * time.Second
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	v := verdict{failed: err != nil, took: time.Since(begin), outputs: out}
	if cmd.ProcessState != nil {
		v.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if !v.failed {
		return v
	}
	if m := failedTest.FindSubmatch(out); m != nil {
		v.by, v.said = string(m[1]), string(m[2])
	} else if ctx.Err() != nil || bytes.Contains(out, []byte("SIGXCPU")) {
		v.by = "time"
	} else {
		v.by = "crash"
	}
	return v
}

// calibrate runs the tests unchanged. They must pass, and their time determines the limits. The quick tests of a round
// then run before the slow ones, which most mutants do not reach.
func (t *tester) calibrate(ctx context.Context) error {
	var rounds []round
	for _, r := range t.rounds {
		bin, dir, err := t.build(ctx, r.pkg, "")
		if err != nil {
			return err
		}
		v := t.run(ctx, bin, dir, append(r.args, "-test.v"), limits{time.Hour, time.Hour})
		os.Remove(bin)
		if v.failed {
			return fmt.Errorf("%s fails unchanged (%s):\n%s", r.pkg, v.by, lastLines(v.outputs, 40))
		}
		r.limit = limits{cpu: 3*v.cpu + 5*time.Second, clock: 10*v.took + time.Minute}
		if names := quick(v.outputs); len(names) > 0 && !slices.ContainsFunc(r.args, func(a string) bool { return strings.HasPrefix(a, "-test.skip") }) {
			first, rest := r, r
			re := "^(" + strings.Join(names, "|") + ")$"
			first.args = append(withoutRun(r.args), "-test.run="+re)
			first.limit.cpu = v.cpu + 5*time.Second // a quarter of the time was theirs
			rest.args = append(slices.Clone(r.args), "-test.skip="+re)
			rounds = append(rounds, first, rest)
		} else {
			rounds = append(rounds, r)
		}
	}
	t.rounds = rounds
	return nil
}

func withoutRun(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-test.run=") })
}

func lastLines(b []byte, n int) []byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], nil)
}

var passedTest = regexp.MustCompile(`(?m)^--- PASS: (\S+) \(([0-9.]+)s\)`)

// quick names the tests that together take the first quarter of the time, from the output of a verbose run.
func quick(out []byte) []string {
	type timed struct {
		name    string
		seconds float64
	}
	var tests []timed
	total := 0.0
	for _, m := range passedTest.FindAllSubmatch(out, -1) {
		seconds, _ := strconv.ParseFloat(string(m[2]), 64)
		tests = append(tests, timed{string(m[1]), seconds})
		total += seconds
	}
	slices.SortStableFunc(tests, func(a, b timed) int { return cmp.Compare(a.seconds, b.seconds) })
	var names []string
	sum := 0.0
	for _, x := range tests {
		if sum += x.seconds; sum > total/4 {
			break
		}
		names = append(names, regexp.QuoteMeta(x.name))
	}
	if len(names) == len(tests) || total < 2 {
		return nil
	}
	return names
}

// judge builds and runs the rounds with a mutant until one detects it, and returns the verdict of that round.
func (t *tester) judge(ctx context.Context, m *Mutant) (v verdict, err error) {
	t.number++
	changed := filepath.Join(t.tmp, fmt.Sprintf("%d.go", t.number))
	overlay := filepath.Join(t.tmp, fmt.Sprintf("%d.json", t.number))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(t.src.dir, m.File): changed}})
	if err != nil {
		return v, err
	}
	if err := errors.Join(os.WriteFile(changed, m.apply(t.src.texts[m.File]), 0o644), os.WriteFile(overlay, replace, 0o644)); err != nil {
		return v, err
	}
	built := map[string][2]string{}
	defer func() {
		for _, b := range built {
			os.Remove(b[0])
		}
	}()
	for _, r := range t.rounds {
		b, ok := built[r.pkg]
		if !ok {
			if b[0], b[1], err = t.build(ctx, r.pkg, overlay); err != nil {
				return v, err
			}
			built[r.pkg] = b
		}
		v = t.run(ctx, b[0], b[1], r.args, r.limit)
		if v.failed || ctx.Err() != nil {
			return v, ctx.Err()
		}
	}
	return v, nil
}
