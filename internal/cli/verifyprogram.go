package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/simt"
	"fencepost.dev/fencepost/internal/verify"
)

// hosted says that the host code of a program is to run up to the launch that is explored: a kernel or a launch is named, and
// nothing says how to launch it.
func (k *kernelOptions) hosted(o *options, name string) bool {
	if k.number > 0 {
		return true
	}
	return k.name != "" && o.launch == "" && !k.launches() && !strings.EqualFold(filepath.Ext(name), ".ptx") && !regular(launchBeside(name))
}

// picked is an engine that runs the launches of a program up to the one that is explored.
type picked struct {
	simt.Engine // of the launches before
	options     verify.Options
	kernel      string // "": any
	number      int    // among the launches of the kernel, from 1
	stop        func() // ends the program

	matched  int
	kernels  []string // that were launched, in the order of their first launches
	launches map[string]int
	explored *simt.Launch
	result   *verify.Result
	took     time.Duration
	err      error
}

// Run implements simt.Engine.
func (x *picked) Run(ctx context.Context, l *simt.Launch) (simt.Stats, error) {
	if x.explored != nil { // the program has been stopped
		return simt.Stats{}, ctx.Err()
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
	x.stop()
	return simt.Stats{}, ctx.Err()
}

// missed says why the launch was not come to.
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

// verifyProgram runs a program up to a launch and explores that, with its arguments and the memory as it then is.
func verifyProgram(ctx context.Context, e *env, o *options, args []string) (int, error) {
	k := &o.kernel
	switch name := args[0]; {
	case o.launch != "" || k.launches():
		return 0, usagef("--launch-number is for programs, which launch their kernels themselves: leave out --launch, --grid, --block, --arg and --shared")
	case strings.EqualFold(filepath.Ext(name), ".ptx"):
		return 0, usagef("--launch-number is for programs, and %s is kernels alone: say with --grid, --block and --arg how to launch one", name)
	case o.checkpoint != "":
		return 0, usagef("--checkpoint is for litmus tests and for a launch that can be made again: give --grid, --block and --arg, or --launch")
	case o.repair:
		return 0, usagef("--repair is for a launch that can be made again: give --grid, --block and --arg, or --launch")
	}
	if isSource(args[0]) && len(args) > 1 {
		args = slices.Concat(args[:1], []string{"--"}, args[1:])
	}
	p, cleanup, err := programOf(ctx, e, o, args)
	if err != nil {
		if text, readErr := os.ReadFile(args[0]); readErr == nil && isSource(args[0]) && !bytes.Contains(text, []byte("main")) {
			err = usagef("%s has no main, so there is no program to run: say with --grid, --block and --arg, or --launch, how to launch a kernel of it", args[0])
		}
		return 0, err
	}
	defer cleanup()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	opts, done := o.verifyProgress(e)
	x := &picked{Engine: simt.NewWarp(), options: opts, kernel: k.name, number: max(k.number, 1), stop: stop, launches: map[string]int{}}
	x.options.Unroll = o.unroll()
	s := o.session
	s.Sources, s.Bare, s.Seeds, s.Engine = &report.Sources{}, true, 1, func() simt.Engine { return x }
	rep, err := session.Run(ctx, &s, p)
	done()
	switch {
	case x.err != nil:
		var large *verify.TooLarge
		if errors.As(x.err, &large) {
			return 0, fmt.Errorf("%w: let the program launch fewer blocks and threads, for instance by an argument of it", x.err)
		}
		return 0, x.err
	case err != nil:
		return 0, err
	case x.result == nil:
		rep.Skipped = append(rep.Skipped, x.missed())
		rep.Verdict = report.NotChecked
		return tell(e, o.reportWriter(e, e.stdout), o, rep, s.Sources.Read)
	}
	x.result.Notes = append(x.result.Notes, fmt.Sprintf("explored is launch %d of the program, %d of %s, with grid %v and block %v; the program was ended there.",
		x.explored.ID, x.launches[x.explored.Kernel], session.CallName(x.explored.Kernel), x.explored.Grid, x.explored.Block))
	rep, err = o.tellResult(e, x.result, x.took, x.launches[x.explored.Kernel], s.Sources.Read, nil)
	if err != nil {
		return 0, err
	}
	return exitCodes[rep.Verdict], writeReports(e, o, rep, s.Sources.Read)
}
