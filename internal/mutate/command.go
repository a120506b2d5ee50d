package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

const usage = `Usage: go run ./cmd/mutate [flags] PACKAGE

Changes PACKAGE in one place at a time and runs its tests. Prints the changes that no test notices, and how many
were noticed. Exits with 1 when fewer than -goal percent were, 2 for wrong usage or tests that fail unchanged.

A mutant is killed (a test fails), survives, is equivalent (PACKAGE/` + ListName + ` argues that it
changes nothing), or is discarded (it does not compile). For example:

  go run ./cmd/mutate -n 100 -seed 1 ./internal/detect/gwcp
  go run ./cmd/mutate -funcs 'fence|leave' -t '. -short' ./internal/detect/gwcp
  go run ./cmd/mutate -n 100 -seed 1 -json out.json ./internal/opt && edit tests && go run ./cmd/mutate -again out.json ./internal/opt

Flags:
`

// outcome is a mutant with its outcome.
type outcome struct {
	*Mutant
	Outcome string `json:"outcome"`        // killed, survived, equivalent
	By      string `json:"by,omitempty"`   // the test that failed
	Said    string `json:"said,omitempty"` // and the first line of its output
}

// Report is the result of a run of the tool with -json.
type Report struct {
	Package   string    `json:"package"`
	Seed      uint64    `json:"seed"`
	Mutants   []outcome `json:"mutants"`
	Discarded int       `json:"discarded"`
	All       int       `json:"all"` // mutants that pass the filters, before they are compiled
}

// command is the command line.
type command struct {
	n                 int
	seed              uint64
	goal              float64
	files, funcs, ops *regexp.Regexp
	tests             []string
	json, again       string
	list              bool
	memory            int
	pkg               string
	out, errs         io.Writer
}

// Main runs the command and gives its exit code.
func Main(args []string, out, errs io.Writer) int {
	c := &command{out: out, errs: errs}
	if err := c.parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		fmt.Fprintln(errs, "mutate:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := c.run(ctx)
	if r != nil {
		err = errors.Join(err, c.print(r))
	}
	if err != nil {
		fmt.Fprintln(errs, "mutate:", err)
		return 2
	}
	if r != nil && r.percent() < c.goal {
		return 1
	}
	return 0
}

func (c *command) parse(args []string) error {
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&c.n, "n", 0, "how many mutants to run, drawn at random; 0 is all")
	f.Uint64Var(&c.seed, "seed", 1, "seed of the sample")
	f.Float64Var(&c.goal, "goal", 95, "percent that must be killed or argued equivalent")
	files := f.String("files", "", "only files whose names match this regular expression")
	funcs := f.String("funcs", "", "only functions whose names, such as (*Detector).fence, match")
	ops := f.String("ops", "", "only kinds of changes that match, such as swap, constant, never, always, drop, return, skip")
	f.Func("t", `tests to run, "PACKAGE [flags of go test]", may be repeated; those of a mutant run in order until one fails (default ". -short -failfast")`, func(s string) error {
		c.tests = append(c.tests, s)
		return nil
	})
	f.StringVar(&c.json, "json", "", "write every mutant and its outcome to this file")
	f.StringVar(&c.again, "again", "", "run only the mutants that survive in this file, written by -json, in place of a sample")
	f.BoolVar(&c.list, "list", false, "list the sample and run nothing")
	f.IntVar(&c.memory, "memory", 16<<10, "address space of a test in MiB")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(c.out, usage)
		f.SetOutput(c.out)
		f.PrintDefaults()
		return err
	} else if err != nil {
		return fmt.Errorf("%w; -help lists the flags", err)
	}
	if f.NArg() != 1 {
		return fmt.Errorf("want one package, got %q", f.Args())
	}
	c.pkg = f.Arg(0)
	if len(c.tests) == 0 {
		c.tests = []string{". -short -failfast"}
	}
	var err error
	for _, x := range []struct {
		to   **regexp.Regexp
		from *string
	}{{&c.files, files}, {&c.funcs, funcs}, {&c.ops, ops}} {
		if *x.to, err = regexp.Compile(*x.from); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) run(ctx context.Context) (*Report, error) {
	src, err := load(c.pkg)
	if err != nil {
		return nil, err
	}
	equivalent, err := readList(src.dir)
	if err != nil {
		return nil, err
	}
	sample, report, err := c.sample(src)
	if err != nil {
		return nil, err
	}
	if c.list {
		for _, m := range sample {
			fmt.Fprintln(c.out, m)
		}
		return nil, nil
	}
	t, err := c.tester(ctx, src)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(t.tmp)
	begin := time.Now()
	for i, m := range sample {
		o := outcome{Mutant: m, Outcome: "equivalent"}
		if !argued(equivalent, m) {
			v, err := t.judge(ctx, m)
			if err != nil {
				return report, err
			}
			o.Outcome, o.By, o.Said = "survived", v.by, v.said
			if v.failed {
				o.Outcome = "killed"
			}
		}
		report.Mutants = append(report.Mutants, o)
		if o.Outcome == "survived" {
			fmt.Fprintln(c.out, m)
		}
		fmt.Fprintf(c.errs, "%d/%d %s %s:%d %s (%.0f s)\n", i+1, len(sample), o.Outcome, m.File, m.Line, o.By, time.Since(begin).Seconds())
	}
	return report, nil
}

// tester makes the tester and runs the tests unchanged.
func (c *command) tester(ctx context.Context, src *source) (*tester, error) {
	t := &tester{src: src, memory: c.memory, dirs: map[string]string{}}
	for _, s := range c.tests {
		r, err := newRound(s)
		if err != nil {
			return nil, err
		}
		t.rounds = append(t.rounds, r)
	}
	var err error
	if t.tmp, err = os.MkdirTemp("", "mutate-"); err != nil {
		return nil, err
	}
	if err := t.calibrate(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(t.tmp))
	}
	return t, nil
}

// sample draws mutants that compile. The same seed draws the same mutants from the same source.
func (c *command) sample(src *source) ([]*Mutant, *Report, error) {
	all := slices.DeleteFunc(src.mutants(), func(m *Mutant) bool {
		return !c.files.MatchString(m.File) || !c.funcs.MatchString(m.Func) || !c.ops.MatchString(m.Op)
	})
	r := &Report{Package: src.path, Seed: c.seed, All: len(all)}
	wanted := func(*Mutant) bool { return true }
	if c.again != "" {
		var old Report
		text, err := os.ReadFile(c.again)
		if err != nil {
			return nil, nil, err
		}
		if err := json.Unmarshal(text, &old); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.again, err)
		}
		survived := map[entry]bool{}
		for _, o := range old.Mutants {
			if o.Outcome == "survived" {
				survived[o.entry()] = true
			}
		}
		wanted = func(m *Mutant) bool { return survived[m.entry()] }
	}
	var sample []*Mutant
	for _, i := range rand.New(rand.NewPCG(c.seed, 0)).Perm(len(all)) {
		if c.n > 0 && len(sample) == c.n {
			break
		}
		if m := all[i]; !wanted(m) {
			continue
		} else if src.compiles(m) {
			sample = append(sample, m)
		} else {
			r.Discarded++
		}
	}
	return sample, r, nil
}

func (r *Report) count(outcome string) (n int) {
	for _, o := range r.Mutants {
		if o.Outcome == outcome {
			n++
		}
	}
	return n
}

// percent is the share of mutants that were detected or are equivalent.
func (r *Report) percent() float64 {
	return 100 * float64(r.count("killed")+r.count("equivalent")) / float64(max(1, len(r.Mutants)))
}

// print writes the summary, and the report if it is requested.
func (c *command) print(r *Report) error {
	by := map[string]int{}
	for _, o := range r.Mutants {
		if o.Outcome == "killed" {
			by[o.By]++
		}
	}
	tests := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		if by[a] != by[b] {
			return by[b] - by[a]
		}
		if a < b {
			return -1
		}
		return 1
	})
	for _, t := range tests {
		fmt.Fprintf(c.out, "%5d killed by %s\n", by[t], t)
	}
	fmt.Fprintf(c.out, "%s: %d mutants of %d, seed %d: %d killed, %d survived, %d equivalent, %.1f %% killed or equivalent; %d more do not compile\n",
		r.Package, len(r.Mutants), r.All, r.Seed, r.count("killed"), r.count("survived"), r.count("equivalent"), r.percent(), r.Discarded)
	if c.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.json, text, 0o644)
}
