package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/verify"
)

// hosted reports whether to run the host code of a program up to the launch that is explored. That is so if a kernel or
// a launch is named, and nothing describes the launch.
func (k *kernelOptions) hosted(o *options, name string) bool {
	if k.number > 0 {
		return true
	}
	return k.name != "" && o.launch == "" && !k.launches() && !strings.EqualFold(filepath.Ext(name), ".ptx") && !regular(launchBeside(name))
}

// picked is an engine that runs the launches of a program up to the one that is explored.
type picked struct {
	engine.Engine // of the launches before
	options       verify.Options
	kernel        string // "": any
	number        int    // among the launches of the kernel, from 1
	stop          func() // ends the program

	matched  int
	kernels  []string // in the order of their first launches
	launches map[string]int
	explored *engine.Launch
	result   *verify.Result
	took     time.Duration
	err      error

	text   verify.Text    // for a repair; none without --repair
	repair *verify.Repair // of a launch with errors
	places []verify.Place // the changes of the repair
}

// Run implements engine.Engine.
func (x *picked) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	if x.explored != nil { // the program has been stopped
		return engine.Stats{}, ctx.Err()
	}
	if x.launches[l.Kernel]++; x.launches[l.Kernel] == 1 {
		x.kernels = append(x.kernels, l.Kernel)
	}
	if x.kernel != "" && !session.Called(l.Kernel, x.kernel) {
		return x.Engine.Run(ctx, l)
	}
	if x.matched++; x.matched < x.number {
		return x.Engine.Run(ctx, l)
	}
	x.explored = l
	begin := time.Now()
	x.result, x.err = verify.Kernel(ctx, l, nil, nil, x.options)
	x.took = time.Since(begin)
	if x.text.Can != nil && x.err == nil && x.result.Verdict() == verify.Error {
		o := x.options
		o.First = false
		x.repair, x.places, x.err = verify.RepairKernel(ctx, l, nil, nil, o, x.text)
	}
	x.stop()
	return engine.Stats{}, ctx.Err()
}

// missed says why the launch was not reached.
func (x *picked) missed() report.Skipped {
	var launched, names []string
	for _, k := range x.kernels {
		name := session.CallName(k)
		names = append(names, name)
		launched = append(launched, fmt.Sprintf("%s (%s)", name, times(x.launches[k])))
	}
	all := "it launched " + strings.Join(launched, ", ")
	if len(launched) == 0 {
		all = "it launched no kernel"
	}
	switch {
	case x.kernel == "":
		return report.Skipped{What: fmt.Sprintf("launch %d", x.number), Reason: "the program did not come to it: " + all}
	case x.matched > 0:
		return report.Skipped{What: fmt.Sprintf("launch %d of %s", x.number, x.kernel), Reason: "the program did not come to it: " + all}
	}
	if w := nearest.Word(x.kernel, names); w != "" {
		all += fmt.Sprintf("; did you mean %q?", w)
	}
	return report.Skipped{What: "kernel " + x.kernel, Reason: "the program did not launch it: " + all}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// verifyProgram runs a program up to a launch, and explores the launch with its arguments and the current memory.
func verifyProgram(ctx context.Context, e *env, o *options, args []string) (int, error) {
	k := &o.kernel
	switch name := args[0]; {
	case o.launch != "" || k.launches():
		return 0, usagef("--launch-number is for programs, which launch their kernels themselves: leave out --launch, --grid, --block, --arg and --shared")
	case strings.EqualFold(filepath.Ext(name), ".ptx"):
		return 0, usagef("--launch-number is for programs, and %s is kernels alone: say with --grid, --block and --arg how to launch one", name)
	case o.checkpoint != "":
		return 0, usagef("--checkpoint is for litmus tests and for a launch that can be made again: give --grid, --block and --arg, or --launch")
	case o.repair && !isSource(name):
		return 0, usagef("--repair changes a source file, and %s is a program: name its source, as in fencepost verify prog.cu --kernel K --repair", name)
	}
	if isSource(args[0]) && len(args) > 1 {
		args = slices.Concat(args[:1], []string{"--"}, args[1:])
	}
	opts, done := o.verifyProgress(e)
	x := &picked{options: opts}
	x.options.Unroll = o.unroll()
	var before string
	if o.repair {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return 0, err
		}
		before = string(text)
		x.text = verify.Text{CUDA: true, Can: func(places []verify.Place) bool {
			_, err := verify.EditCUDA(args[0], before, places)
			return err == nil
		}}
	}
	sources := &report.Sources{}
	rep, err := x.run(ctx, e, o, args, sources, false)
	var fixed error
	if x.repair != nil && err == nil {
		fixed = repairSource(ctx, e, o, args, before, x)
	}
	done()
	switch {
	case err != nil:
		return 0, err
	case x.result == nil:
		rep.Skipped = append(rep.Skipped, x.missed())
		rep.Notes = slices.DeleteFunc(rep.Notes, func(n string) bool { return n == session.NoDetector })
		rep.Verdict = report.NotChecked
		return tell(e, o.reportWriter(e, e.stdout), o, rep, sources.Read)
	}
	x.result.Notes = append(x.result.Notes, fmt.Sprintf("explored is launch %d of the program, %d of %s, with grid %v and block %v; the program was ended there.",
		x.explored.ID, x.launches[x.explored.Kernel], session.CallName(x.explored.Kernel), x.explored.Grid, x.explored.Block))
	rep, err = o.tellResult(e, x.result, x.took, x.launches[x.explored.Kernel], sources.Read, func(rep *report.Report, w io.Writer) error {
		if x.repair != nil && fixed == nil {
			x.repair.Text(w)
			rep.Verify.Repair = x.repair.Report()
		}
		return fixed
	})
	if err != nil {
		return 0, err
	}
	return exitCodes[rep.Verdict], writeReports(e, o, rep, sources.Read)
}

// run builds the program if args name a source, and runs it up to the launch. again says that it has been run before,
// which has consumed the input.
func (x *picked) run(ctx context.Context, e *env, o *options, args []string, sources *report.Sources, again bool) (*report.Report, error) {
	p, cleanup, err := programOf(ctx, e, o, args)
	if err != nil {
		if text, readErr := os.ReadFile(args[0]); readErr == nil && isSource(args[0]) && !bytes.Contains(text, []byte("main")) {
			err = usagef("%s has no main, so there is no program to run: say with --grid, --block and --arg, or --launch, how to launch a kernel of it", args[0])
		}
		return nil, err
	}
	defer cleanup()
	if again {
		if p, err = p.Again(); err != nil {
			return nil, err
		}
		defer p.Close()
	}
	ctx, x.stop = context.WithCancel(ctx)
	defer x.stop()
	x.Engine, x.kernel, x.number, x.launches = warp.New(), o.kernel.name, max(o.kernel.number, 1), map[string]int{}
	s := o.session
	s.Sources, s.Bare, s.Seeds, s.Engine = sources, true, 1, func() engine.Engine { return x }
	rep, err := session.Run(ctx, &s, p)
	var large *verify.TooLarge
	switch {
	case errors.As(x.err, &large):
		return rep, fmt.Errorf("%w: let the program launch fewer blocks and threads, for instance by an argument of it", x.err)
	case x.err != nil:
		return rep, x.err
	}
	return rep, err
}

// repairSource writes the repair of a launch into the source text, builds and runs the resulting program, and explores
// its launch.
func repairSource(ctx context.Context, e *env, o *options, args []string, before string, x *picked) error {
	r := x.repair
	if r.Reason != "" {
		return nil
	}
	after, err := verify.EditCUDA(args[0], before, x.places)
	if err != nil {
		r.Reason = "the changes cannot be written in the source: " + err.Error()
		return nil
	}
	file, beside, cleanup, err := writeChanged(args[0], after)
	if err != nil {
		return err
	}
	defer cleanup()
	changed := slices.Concat([]string{file, beside}, args[1:])
	again := &picked{options: x.options}
	quiet := &env{stdin: e.stdin, stdout: &stream{to: io.Discard}, stderr: &stream{to: io.Discard}} // the first run has already shown the program's output
	_, err = again.run(ctx, quiet, o, changed, &report.Sources{}, true)
	switch {
	case err != nil:
		r.Reason = "the changed source could not be built and explored: " + err.Error()
	case again.result == nil:
		r.Reason = "the changed program does not come to the launch; if it reads its standard input, give that as a file, which can be read again (< FILE)"
	case !again.result.Repaired():
		r.Reason = "the changes that can be written in the source do not rule out the errors"
	default:
		r.Proof, r.Diff = again.result, verify.Diff(args[0], before, after)
	}
	return nil
}
