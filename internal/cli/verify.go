package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/verify"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

const verifyLong = `
fencepost verify test.litmus
  explores every execution of a small concurrent program under scoped RC11 and reports failed assertions, data races,
  heterogeneous races (of atomics whose scopes do not include each other), barrier divergence and deadlocks, each with
  the execution that shows it; or says that there are none at this size. docs/verify.md describes the language of the
  file and the memory model.

  Loops that wait for a value cost nothing. Others are cut after --unroll iterations; if that happens, and nothing is
  wrong otherwise, the exit code is 3.

Examples:
  fencepost verify lock.litmus
  fencepost verify --first --grid 4 --block 2 lock.litmus`

func verifyCommand() *command {
	return &command{name: "verify", args: "FILE.litmus", doc: "explore every execution of a small concurrent program", long: verifyLong,
		anywhere: true, run: runVerify, flags: append([]*flag{
			{"first", "", "stop at the first error",
				func(o *options, v string) error { o.verify.First = true; return nil }},
			{"unroll", "N", fmt.Sprintf("cut loops that do not wait after N iterations (default %d)", litmus.DefaultUnroll),
				func(o *options, v string) error { return number(v, 1, 1<<20, &o.litmus.Unroll) }},
			{"grid", "N", "run a kernel with N blocks, whatever the file says",
				func(o *options, v string) error { return number(v, 1, 1024, &o.litmus.Grid) }},
			{"block", "N", "run a kernel with blocks of N threads, whatever the file says",
				func(o *options, v string) error { return number(v, 1, 1024, &o.litmus.Block) }},
			{"incl", "NAME", "when scopes include each other: each (default; the scope of each includes the other thread), paper",
				func(o *options, v string) error {
					return choose(v, map[string]model.Inclusion{"each": model.Each, "paper": model.Paper}, "inclusion", &o.verify.Incl)
				}},
			{"json", "FILE", "write the report as JSON too (docs/json.md); - is the standard output", setJSON},
			{"timeout", "DURATION", "stop after this time, as in 90s or 5m, and report what was found", setTimeout},
		}, exportFlags()...)}
}

// maxLitmus is how large a litmus file may be.
const maxLitmus = 1 << 20

func runVerify(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if len(args) != 1 {
		return 0, usagef("verify takes one litmus file")
	}
	name := args[0]
	if !strings.HasSuffix(name, ".litmus") {
		return 0, usagef("%s is no litmus test: the name of one ends in .litmus", name)
	}
	st, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	if st.Size() > maxLitmus {
		return 0, fmt.Errorf("%s has %d bytes; a litmus test has at most %d", name, st.Size(), maxLitmus)
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	test, err := litmus.Parse(name, string(src), o.litmus)
	if err != nil {
		return 0, err
	}
	if o.session.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.session.Timeout)
		defer cancel()
	}
	opts := o.verify
	if terminal(e.stderr) {
		begin, shown := time.Now(), false
		opts.Progress = func(text string) {
			if time.Since(begin) >= progressAfter {
				shown = true
				fmt.Fprintf(e.stderr, saveCursor+eraseBelow+" %s (%s)"+restoreCursor, text, time.Since(begin).Round(time.Second))
			}
		}
		defer func() {
			if shown {
				fmt.Fprint(e.stderr, eraseBelow)
			}
		}()
	}
	r := verify.Litmus(ctx, test, opts)
	w := o.reportWriter(e, e.stdout)
	lines := strings.Split(string(src), "\n")
	rep := r.Report()
	source := func(string) []string { return lines }
	report.Fingerprint(rep.Findings, source)
	o.annotate(w, rep, source)
	r.Text(w, func(n int) string {
		if n < 1 || n > len(lines) {
			return ""
		}
		return lines[n-1]
	}, newText(w, nil).Paint)
	return exitCodes[rep.Verdict], writeReports(e, o, rep, source)
}
