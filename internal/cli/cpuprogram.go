package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/cpu"
	cpus "fencepost.dev/fencepost/internal/cpu/all"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/cpu/judge"
	"fencepost.dev/fencepost/internal/cpu/record"
	cputrace "fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/toolchain"
)

const ccLong = `
Replaces %[1]s in a build. It takes the same arguments, and "fencepost run" and "fencepost record" can observe the
resulting programs: threads of POSIX, C11 and C++11, atomics, locks, OpenMP (docs/cpu.md). The compiler instruments
accesses (-fsanitize=thread), and Fencepost's recorder is linked instead of ThreadSanitizer's library. Without fencepost,
the programs record nothing.

  make %[2]s="fencepost %[3]s"
  %[2]s="fencepost %[3]s" cmake ..
  fencepost %[3]s -fopenmp -O1 prog%[4]s -o prog && fencepost run ./prog

%[5]s names the compiler to call; otherwise it is the first of %[6]s in PATH.`

func ccCommand() *command {
	return compilerCommand("cc", "a C compiler", "CC", ".c", "FENCEPOST_CC", []string{"cc", "gcc", "clang"})
}

func cxxCommand() *command {
	return compilerCommand("c++", "a C++ compiler", "CXX", ".cpp", "FENCEPOST_CXX", []string{"c++", "g++", "clang++"})
}

func fcCommand() *command {
	return compilerCommand("fc", "a Fortran compiler", "FC", ".f90", "FENCEPOST_FC", []string{"gfortran"})
}

func compilerCommand(name, what, variable, ext, env1 string, names []string) *command {
	return &command{name: name, args: "ARGUMENTS...", raw: true, doc: "compile like " + what + ", for \"fencepost run\"",
		long: fmt.Sprintf(ccLong, what, variable, name, ext, env1, strings.Join(names, ", ")),
		run: func(ctx context.Context, e *env, o *options, args []string) (int, error) {
			if len(args) == 0 {
				return 0, usagef("%s what? Give it the arguments of %s", name, what)
			}
			path, err := compilerPath(env1, names)
			if err != nil {
				return 0, err
			}
			c := record.Compiler{Path: path, Clang: record.IsClang(ctx, path), Fortran: name == "fc", Recorder: func() (string, error) { return recorder(ctx) }}
			code, err := c.Run(ctx, args, e.stdin, e.stdout.to, e.stderr.to)
			if usage := (*record.UsageError)(nil); errors.As(err, &usage) {
				return 0, usagef("%s: %s", name, usage.Msg)
			}
			return code, remedy(err)
		}}
}

// compilerPath finds the compiler that the variable names, or the first of names.
func compilerPath(variable string, names []string) (string, error) {
	if name := os.Getenv(variable); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", variable, err)
		}
		return path, nil
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", remedy(&toolchain.Missing{What: "compiler", Looked: []string{variable, strings.Join(names, ", ") + " in PATH"},
		Remedy: "install gcc or clang (Debian, Ubuntu: apt-get install g++), or set " + variable})
}

// recorder builds the recorder, in the first cache that takes it.
func recorder(ctx context.Context) (string, error) {
	finder := toolchain.Finder{CC: os.Getenv("FENCEPOST_CC")}
	cc, err := finder.FindCC(ctx)
	if err != nil {
		return "", err
	}
	var all error
	for _, cache := range []func() (string, error){sharedCache, spareCache} {
		dir, err := cache()
		if err == nil {
			dir, err = record.Build(ctx, cc.Path, dir)
		}
		if err == nil {
			return dir, nil
		}
		all = errors.Join(all, err)
	}
	return "", all
}

// cpuProgram says whether a program records what it does on the CPU. The error is for one that would if it were linked otherwise.
func cpuProgram(args []string) (path string, ok bool, err error) {
	if len(args) == 0 || isSource(args[0]) {
		return "", false, nil
	}
	if path = args[0]; readable(path) != nil { // as kernels' programs are named, too
		if path, err = exec.LookPath(path); err != nil {
			return "", false, nil // told by who runs it
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", false, err
	}
	ours, theirs, readable := record.Instrumented(path)
	if theirs {
		return "", false, fmt.Errorf("%s has ThreadSanitizer's runtime library, and the recorder can only take its place\n"+
			"  remedy: compile and link it with \"fencepost cc\" or \"fencepost c++\"", args[0])
	}
	if ours && !readable {
		return "", false, fmt.Errorf("%s has the recorder of another version of Fencepost, whose records this one does not read\n"+
			"  remedy: compile and link it again with this version's \"fencepost cc\" or \"fencepost c++\"", args[0])
	}
	return path, ours, nil
}

// recording gives the options of a run of a CPU program.
func (o *options) recording(e *env, path string, args []string) (record.Options, error) {
	switch {
	case len(o.session.Detectors) > 0:
		return record.Options{}, usagef("--detector: %s judges kernels, and %s is a program of the CPU", o.session.Detectors[0].Name, path)
	case o.session.Model != detect.ModelCUDA:
		return record.Options{}, usagef("--model: %s is a program of the CPU, which has no scopes", path)
	case o.session.Seeds > 1:
		return record.Options{}, usagef("--seeds: the operating system schedules %s; run it again instead", path)
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	r := record.Options{Path: path, Args: args, Stdin: e.stdin, Stdout: e.stdout.to, Stderr: e.stderr.to, Outlives: o.outlives}
	if o.json == "-" {
		r.Stdout = e.stderr.to
	}
	return r, nil
}

// runCPU runs a program that was built with "fencepost cc" and judges it. compare attaches all detectors, and tells who found what.
func runCPU(ctx context.Context, e *env, o *options, path string, args []string, compare bool) (int, error) {
	ro, err := o.recording(e, path, args)
	if err != nil {
		return 0, err
	}
	detectors := o.cpuDetectors
	if len(detectors) == 0 && compare {
		detectors = cpus.Detectors()
	} else if len(detectors) == 0 && !o.session.Bare {
		// Critical sections are only as predictable as their accesses are known, and those of libraries are not.
		detectors = []cpu.Spec{fasttrack.Spec}
	}
	var lives []*judge.Live
	ro.Process = func(names *record.Names) func([]cpu.Event) {
		live := judge.NewLive(judge.Options{Detectors: detectors, MaxFindings: o.session.MaxFindings, FailOn: o.session.FailOn}, names)
		lives = append(lives, live)
		return live.Events
	}
	ctx, cancel := o.timeLimit(ctx)
	defer cancel()
	result, err := record.Run(ctx, ro)
	if err != nil {
		return 0, fmt.Errorf("%s could not be run: %w", path, err)
	}
	out := &report.Report{Trace: &report.Trace{}}
	for i, p := range result.Processes {
		addReport(out, lives[i].Report(report.Trace{Events: int(p.Events), Threads: p.Threads, Variables: p.Variables, Syncs: p.Syncs}, nil))
		if compare {
			out.Notes = append(out.Notes, lives[i].Describe()...)
		}
	}
	finishCPU(ctx, out, &result, o)
	if compare {
		return tellComparison(e, o, out, report.ReadSource)
	}
	return tell(e, e.stderr, o, out, report.ReadSource)
}

// timeLimit is --timeout.
func (o *options) timeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.session.Timeout > 0 {
		return context.WithTimeout(ctx, o.session.Timeout)
	}
	return context.WithCancel(ctx)
}

// addReport unites the reports of processes.
func addReport(to, r *report.Report) {
	to.Findings = report.Merge(append(to.Findings, r.Findings...))
	to.More += r.More
	to.Skipped = append(to.Skipped, r.Skipped...)
	to.Trace.Events += r.Trace.Events
	to.Trace.Threads += r.Trace.Threads
	to.Trace.Variables += r.Trace.Variables
	to.Trace.Syncs += r.Trace.Syncs
	if to.Detectors == nil {
		to.Detectors = r.Detectors
		return
	}
	for i := range to.Detectors {
		to.Detectors[i].Seconds += r.Detectors[i].Seconds
		to.Detectors[i].Metadata += r.Detectors[i].Metadata
	}
}

// finishCPU adds how the program ended and what was not recorded.
func finishCPU(ctx context.Context, out *report.Report, result *record.Result, o *options) {
	skip := func(reason string, args ...any) {
		s := report.Skipped{What: "the program", Reason: fmt.Sprintf(reason, args...)}
		if !slices.Contains(out.Skipped, s) {
			out.Skipped = append(out.Skipped, s)
		}
	}
	out.Program = &report.Program{Exit: result.Exit}
	if result.Signal != 0 {
		out.Program.Signal = result.Signal.String()
	}
	if len(result.Processes) == 0 {
		skip("it recorded nothing")
	}
	for _, p := range result.Processes {
		for _, problem := range p.Problems {
			skip("not recorded: %s", problem)
		}
	}
	if result.Unseen > 0 {
		skip("not recorded: %s beyond the first", count(result.Unseen, "process"))
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		out.Program = nil
		skip("it was stopped when the time was over (--timeout)")
	case ctx.Err() != nil:
		out.Program = nil
		skip("it was interrupted")
	}
	out.Verdict = report.Judge(out, o.session.FailOn)
}

// recordCPU writes the trace of a program that was built with "fencepost cc".
func recordCPU(ctx context.Context, e *env, o *options, path string, args []string) (code int, err error) {
	ro, err := o.recording(e, path, args)
	if err != nil {
		return 0, err
	}
	f, err := os.Create(o.out)
	if err != nil {
		return 0, err
	}
	buffered := bufio.NewWriterSize(f, 1<<20)
	w := cputrace.NewWriter(buffered)
	first := true
	ro.Process = func(*record.Names) func([]cpu.Event) {
		if !first {
			return func([]cpu.Event) {}
		}
		first = false
		return w.Events
	}
	ctx, cancel := o.timeLimit(ctx)
	defer cancel()
	result, err := record.Run(ctx, ro)
	var names cputrace.Names
	out := &report.Report{Trace: &report.Trace{}}
	if len(result.Processes) > 0 {
		p := result.Processes[0]
		names = traceNames(p.Names)
		out.Trace = &report.Trace{Events: int(p.Events), Threads: p.Threads, Variables: p.Variables, Syncs: p.Syncs}
		out.Notes = append(out.Notes, fmt.Sprintf("%d events were recorded. Races were not looked for: \"fencepost analyze\" does that.", p.Events))
	}
	unwritten := errors.Join(w.Close(&names), buffered.Flush(), f.Close())
	if err != nil {
		return 0, fmt.Errorf("%s could not be run: %w", path, err)
	}
	if n := len(result.Processes); n > 1 {
		out.Skipped = append(out.Skipped, report.Skipped{What: "the program", Reason: fmt.Sprintf("a trace is of one process: %s more not in it", count(n-1, "process"))})
	}
	finishCPU(ctx, out, &result, o)
	o.session.Bare = true
	code, err = tell(e, e.stderr, o, out, report.ReadSource)
	if unwritten != nil {
		err = errors.Join(&unwrittenError{fmt.Errorf("--out: the trace is not whole: %w", unwritten)}, err)
	}
	return code, err
}

// traceNames are the names that a trace keeps.
func traceNames(n *record.Names) (names cputrace.Names) {
	names[cpu.Locations] = []string{""} // they are numbered from 1
	for l := range n.Locations() {
		frames := n.Frames(uint32(l+1), 0)
		for i := range frames {
			frames[i].Function = report.BareName(frames[i].Function)
		}
		names[cpu.Locations] = append(names[cpu.Locations], judge.Location(frames))
	}
	for t := range n.Threads() {
		names[cpu.Threads] = append(names[cpu.Threads], n.Thread(uint16(t)))
	}
	for v := range n.Variables() {
		name := ""
		if o := n.Global(uint32(v)); o.Named && o.Offset == 0 {
			name = o.Name
		} else if o.Named {
			name = fmt.Sprintf("%s+%d", o.Name, o.Offset)
		}
		names[cpu.Variables] = append(names[cpu.Variables], name)
	}
	return names
}
