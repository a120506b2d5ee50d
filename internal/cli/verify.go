package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/verify"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

const verifyLong = `
fencepost verify kernel.cu --grid 2 --block 2 --arg 'lock:i32[1]' --arg i32=5
  explores every execution of a small launch of a kernel (CUDA or PTX) under scoped RC11. It reports failed assertions,
  data races, heterogeneous races (of atomics whose scopes do not include each other), barrier divergence and spins that
  never end in a fair execution, each with an execution that shows it. If there are none, it says so for this size.
  --launch takes a launch file instead of the other flags (docs/launch.md). docs/verify.md describes the memory model, the
  meaning of each PTX operation in it, and what is not explored: asynchronous copies and their mbarriers, matrices, atomic
  accesses of different widths to one place. A kernel that has these is refused, with exit code 3.

fencepost verify prog.cu --kernel K [--launch-number N] [-- ARGUMENTS]
  runs the host code of a program, as "fencepost run" does, up to launch N of kernel K (default: the first). It explores
  that launch, with its arguments and the contents of memory at that point. prog.cu may also be ./app, built with
  "fencepost nvcc".

fencepost verify test.litmus
  explores a litmus test, whose language docs/verify.md describes. --model ptx explores a litmus test or a kernel under
  the memory model of PTX, with load buffering and proxies, instead of scoped RC11.

  Loops that wait for a value cost nothing. Other loops are cut after --unroll iterations. If that happens, and there is
  no error, the exit code is 3.

  --equivalence rf explores one of the executions in which each read reads from the same write: orders of writes that no
  thread observes count once. Errors, verdicts and final states are the same. The problem is intractable if two threads
  have sc accesses or sc fences (such as __threadfence()) of scopes that include each other. Then each execution is
  explored, and the report says so.

  --symmetry explores one of the executions that differ only by the names of threads which do the same: threads of a
  block, or blocks of one thread. Errors and verdicts are the same. The report says so if there are no such threads.

  --graph draws the execution of an error as a picture. --schedule writes it as an order of the threads' operations, which
  "fencepost check --schedule FILE" and "fencepost run --schedule FILE" replay.

  --repair searches for the smallest change after which there is no error: wider scopes, stronger orders, atomics, fences,
  barriers. It prints the change as a diff against the source and explores the changed source. The file is not changed.

Examples:
  fencepost verify lock.cu --kernel lock --grid 2 --block 1 --arg 'mutex:i32[1]' --arg 'count:i32[1]'
  fencepost verify lock.litmus
  fencepost verify --first --grid 4 --block 2 lock.litmus`

// asked is the reason why verify leaves out no finding.
const asked = "verify answers whether a kernel has an error at all, and leaves none out"

func verifyCommand() *command {
	return &command{name: "verify", args: "KERNEL.cu | KERNEL.ptx | TEST.litmus | PROGRAM", doc: "explore every execution of a small concurrent program", long: verifyLong,
		anywhere: true, run: runVerify, refused: map[string]string{"suppress": asked, "baseline": asked}, flags: append([]*flag{
			{"first", "", "stop at the first error, or at the first execution that the condition forbids",
				func(o *options, v string) error { o.verify.First = true; return nil }},
			{"repair", "", "search for the smallest change without error, print it as a diff, and explore the changed source",
				func(o *options, v string) error { o.repair = true; return nil }},
			{"jobs", "N", "explore with N goroutines (default: one for each processor); the result is the same",
				func(o *options, v string) error { return number(v, 1, 1024, &o.verify.Jobs) }},
			{"checkpoint", "FILE", "save the state of the search in this file, regularly and when it is stopped; continue from the file if it exists",
				func(o *options, v string) error { o.checkpoint = v; return nil }},
			{"unroll", "N", fmt.Sprintf("cut loops that do not wait after N iterations (default %d)", litmus.DefaultUnroll),
				func(o *options, v string) error { return number(v, 1, 1<<20, &o.litmus.Unroll) }},
			gridFlag, blockFlag, argFlag, sharedFlag,
			{"kernel", "NAME", "the kernel of the file to launch, or the kernel of a program whose launch is explored",
				func(o *options, v string) error { o.kernel.name = v; return nil }},
			{"launch-number", "N", "explore the Nth launch (of --kernel, if given) that a program makes (default 1)",
				func(o *options, v string) error { return number(v, 1, 1<<30, &o.kernel.number) }},
			launchFlag, nvccFlag,
			{"model", "NAME", "memory model: src11 (default; scoped RC11) or ptx",
				func(o *options, v string) error {
					return choose(v, map[string]string{verify.SRC11: verify.SRC11, verify.PTX: verify.PTX}, "memory model", &o.verify.Model)
				}},
			{"incl", "NAME", "when scopes include each other: each (default; the scope of each includes the other thread), paper",
				func(o *options, v string) error {
					return choose(v, map[string]model.Inclusion{"each": model.Each, "paper": model.Paper}, "inclusion", &o.verify.Incl)
				}},
			{"barriers", "NAME", "arrivals at a barrier: unordered (default; one execution), paper (read-modify-writes; one execution for each order)",
				func(o *options, v string) error {
					return choose(v, map[string]bool{"unordered": false, "paper": true}, "treatment of barriers", &o.verify.Ordered)
				}},
			{"equivalence", "NAME", "which executions count as one: execution (default; none), rf (those in which each read reads from the same write); docs/verify.md",
				func(o *options, v string) error {
					return choose(v, map[string]bool{verify.EachExecution: false, verify.ReadsFrom: true}, "equivalence", &o.verify.ReadsFrom)
				}},
			{"symmetry", "", "explore executions up to the names of symmetric threads, which do the same whatever their number; docs/verify.md",
				func(o *options, v string) error { o.verify.Symmetry = true; return nil }},
			{"graph", "FILE", "draw the execution of each error, as SVG or PNG (FILE.svg, FILE.png), with po, rf, co, synchronisation and scopes; the second in FILE-2.svg",
				func(o *options, v string) error {
					if ext := filepath.Ext(v); ext != ".svg" && ext != ".png" {
						return usagef("--graph: an execution is drawn as SVG or PNG: name a file with the extension .svg or .png, not %q", v)
					}
					o.graph, o.verify.Drawings = v, true
					return writable("graph", v, "")
				}},
			{"schedule", "FILE", "write a schedule of each error of a kernel that an interleaving shows, for --schedule of check and run; the second in FILE-2",
				func(o *options, v string) error {
					o.kernel.schedule, o.verify.Schedules = v, true
					return writable("schedule", v, "")
				}},
			{"json", "FILE", "also write the report as JSON (docs/json.md); - is standard output", setJSON},
			{"times", "", "print the time and memory of the search and the largest number of events of an execution; also in the JSON, which has 0 otherwise",
				func(o *options, v string) error { o.times = true; return nil }},
			{"timeout", "DURATION", "stop after this time, as in 90s or 5m, and report what was found", setTimeout},
		}, exportFlags()...)}
}

// verifyProgress returns the options of a search, with its progress on a terminal. stop ends the progress.
func (o *options) verifyProgress(e *env) (opts verify.Options, stop func()) {
	opts = o.verify
	if !terminal(e.stderr) {
		return opts, func() {}
	}
	begin, shown := time.Now(), false
	opts.Progress = func(text string) {
		if time.Since(begin) >= progressAfter {
			shown = true
			fmt.Fprintf(e.stderr, saveCursor+eraseBelow+" %s (%s)"+restoreCursor, text, time.Since(begin).Round(time.Second))
		}
	}
	return opts, func() {
		if shown {
			fmt.Fprint(e.stderr, eraseBelow)
		}
	}
}

// openCheckpoint opens the checkpoint of a search, and returns nil if none is requested. Its identity includes what is
// explored and the options that affect the result.
func (o *options) openCheckpoint(identity ...string) (*verify.Checkpoint, error) {
	if o.checkpoint == "" {
		return nil, nil
	}
	return verify.OpenCheckpoint(o.checkpoint, append(identity, fmt.Sprint(o.verify.Model, o.verify.Incl, o.verify.First, o.verify.Ordered, o.verify.Symmetry, o.verify.ReadsFrom, o.verify.Schedules, o.verify.Drawings))...)
}

// closeCheckpoint closes a checkpoint, and notes how the search can be continued.
func (o *options) closeCheckpoint(opts *verify.Options, r *verify.Result) {
	c := opts.Checkpoint
	if c == nil {
		return
	}
	opts.Checkpoint = nil
	if n := c.Resumed(); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the first %d executions were explored before: %s", n, o.checkpoint))
	}
	if err := c.Close(r); err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("the checkpoint could not be written: %v", err))
	} else if r.Stopped {
		r.Notes = append(r.Notes, fmt.Sprintf("the same command goes on from %s", o.checkpoint))
	}
}

// maxLitmus is the greatest size of a litmus file.
const maxLitmus = 1 << 20

// verifyGC makes the garbage collector run when the heap has grown by a quarter of the live data (including the ballast
// of Main), that is by some 8 MB. A search keeps little data and makes little garbage, so this costs nothing and keeps
// the process small.
const verifyGC = 25

func runVerify(ctx context.Context, e *env, o *options, args []string) (int, error) {
	debug.SetGCPercent(verifyGC)
	program := len(args) > 0 && o.kernel.hosted(o, args[0])
	if ext := filepath.Ext(o.json); len(args) == 0 && slices.Contains([]string{".litmus", ".cu", ".ptx"}, ext) {
		return 0, usagef("--json takes the file to write, and that is %s here: write --json - %s for the standard output", o.json, o.json)
	}
	if len(args) != 1 && !program {
		return 0, usagef("verify takes one file: a litmus test (.litmus), a kernel (.cu, .ptx), or with --kernel or --launch-number a program and its arguments")
	}
	name := args[0]
	if o.verify.Model == verify.PTX && o.verify.Incl != model.Each {
		return 0, usagef("--incl is for the model src11")
	}
	if o.verify.Model == verify.PTX && o.checkpoint != "" {
		return 0, usagef("--checkpoint is for the model src11")
	}
	if o.verify.Model == verify.PTX && o.verify.Ordered {
		return 0, usagef("--barriers paper is for the model src11")
	}
	if o.verify.ReadsFrom && (o.verify.Model == verify.PTX || o.verify.Ordered || o.verify.Symmetry || o.verify.Schedules) {
		return 0, usagef("--equivalence rf is for the model src11, without --barriers paper, --symmetry and --schedule, which need coherence order")
	}
	if o.verify.Symmetry && (o.verify.Model == verify.PTX || o.verify.Ordered) {
		return 0, usagef("--symmetry is for the model src11, without --barriers paper")
	}
	if o.verify.Jobs == 0 {
		o.verify.Jobs = runtime.GOMAXPROCS(0)
	}
	litmusFile := strings.HasSuffix(name, ".litmus")
	if program && !litmusFile {
		return verifyProgram(ctx, e, o, args)
	}
	if !litmusFile {
		return verifyKernel(ctx, e, o, name)
	}
	k := &o.kernel
	if len(k.args) > 0 || k.name != "" || k.number > 0 || k.schedule != "" || k.shared > 0 || o.launch != "" || len(k.grid) > 1 || len(k.block) > 1 {
		return 0, usagef("--arg, --kernel, --launch-number, --shared, --schedule, --launch and grids of more than one dimension are for kernels, and %s is a litmus test", name)
	}
	if len(k.grid) > 0 {
		o.litmus.Grid = k.grid[0]
	}
	if len(k.block) > 0 {
		o.litmus.Block = k.block[0]
	}
	if err := readable(name); err != nil {
		return 0, err
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
	o.litmus.PTX = o.verify.Model == verify.PTX
	test, err := litmus.Parse(name, string(src), o.litmus)
	if err != nil {
		return 0, err
	}
	if o.session.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.session.Timeout)
		defer cancel()
	}
	opts, stop := o.verifyProgress(e)
	defer stop()
	if opts.Checkpoint, err = o.openCheckpoint(name, string(src), fmt.Sprint(o.litmus)); err != nil {
		return 0, err
	}
	begin := time.Now()
	r := verify.Litmus(ctx, test, opts)
	took := time.Since(begin)
	o.closeCheckpoint(&opts, r)
	w := o.reportWriter(e, e.stdout)
	if err := o.writeFindings(r, 1); err != nil {
		return 0, err
	}
	lines := strings.Split(string(src), "\n")
	rep := r.Report()
	source := func(string) []string { return lines }
	report.Fingerprint(rep.Findings, source)
	o.annotate(w, rep, source)
	r.Text(w, func(_ string, n int) string {
		if n < 1 || n > len(lines) {
			return ""
		}
		return lines[n-1]
	}, newText(w, nil).Paint)
	o.tellTimes(w, took, rep)
	if o.repair && r.Verdict() == verify.Error {
		opts.First = false
		fixed := verify.RepairLitmus(ctx, test, string(src), o.litmus, opts)
		fixed.Text(w)
		rep.Verify.Repair = fixed.Report()
	}
	return exitCodes[rep.Verdict], writeReports(e, o, rep, source)
}
