package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
)

// execution is something that can be executed again and again.
type execution struct {
	// run executes with options; i counts the calls, and only the first one's output is shown.
	run     func(i int, o *session.Options) (*report.Report, error)
	source  func(string) []string
	cleanup func()
}

// executionOf makes what args name ready: a program or its sources, PTX with a launch file, or a program of the corpus.
func executionOf(ctx context.Context, e *env, o *options, args []string) (*execution, error) {
	switch {
	case o.session.Devices > 1 && (isCorpus(args[0]) || strings.EqualFold(filepath.Ext(args[0]), ".ptx")):
		return nil, usagef("--devices is for programs that launch kernels by themselves: those of %s are launched on one device", args[0])
	case isCorpus(args[0]):
		programs, one, err := corpusPrograms(args[0])
		if err != nil {
			return nil, err
		}
		if o.launch != "" {
			return nil, corpusLaunch(args[0])
		}
		if !one {
			return nil, usagef("%s is a folder of programs; name one of them", args[0])
		}
		in, err := session.CorpusInput(programs[0])
		return kernelExecution(ctx, e, o, in, corpusLines(programs[0])), err
	case strings.EqualFold(filepath.Ext(args[0]), ".ptx"):
		in, err := inputFiles(ctx, e, o, args)
		if err != nil {
			return nil, err
		}
		in.Launch, err = launchFile(o, args[0], in)
		return kernelExecution(ctx, e, o, in, sourceBeside(args[0])), err
	}
	p, cleanup, err := programOf(ctx, e, o, args)
	if err != nil {
		return nil, err
	}
	run := func(i int, o *session.Options) (*report.Report, error) {
		if i == 0 {
			return session.Run(ctx, o, p)
		}
		again, err := p.Again()
		if err != nil {
			return nil, err
		}
		defer again.Close()
		return session.Run(ctx, o, again)
	}
	return &execution{run, report.ReadSource, cleanup}, nil
}

func kernelExecution(ctx context.Context, e *env, o *options, in *session.Input, source func(string) []string) *execution {
	printf := o.reportWriter(e, e.stdout)
	run := func(i int, o *session.Options) (*report.Report, error) {
		if o.Printf = nil; i == 0 {
			o.Printf = printf
		}
		return session.Check(ctx, o, in)
	}
	return &execution{run, source, func() {}}
}

const recordLong = `
fencepost record --out FILE prog.cu
fencepost record --out FILE ./app [arguments]
fencepost record --out FILE kernel.ptx [--launch FILE]
fencepost record --out FILE corpus/race/reduce
  runs without a detector and writes every event that a detector may request to FILE: accesses with the written values,
  fences, barriers, launches and host operations, with their source places. "fencepost analyze FILE" judges the trace.
  Detectors that judge warps in lockstep need --schedule lockstep here. With --device emulated or gpu the trace is made
  of the log of the instrumented program, which has neither written values nor branches. Flags come before the program.`

func recordCommand() *command {
	out := &flag{"out", "FILE", "the trace to write (also -o)", setOut}
	values := &flag{"values", "WORD", "on (default) or off: do not record written values; traces are smaller, and same-value writes become errors",
		func(o *options, v string) error {
			return choose(v, map[string]bool{"on": false, "off": true}, "word", &o.session.NoValues)
		}}
	refused := map[string]string{
		"seeds":      "a trace is of one run: --seeds cannot be used here, --seed can",
		"detector":   "record judges nothing: give --detector to \"fencepost analyze\"",
		"model":      "record judges nothing: give --model to \"fencepost analyze\"",
		"instrument": "what programs find by themselves is no trace: with --device emulated their log is recorded"}
	return &command{name: "record", args: "--out FILE PROG.cu | APP | KERNEL.ptx", long: recordLong, doc: "run and write the events to a file",
		flags: without(append([]*flag{out, values, devicesFlag, launchFlag, nvccFlag}, runFlags()...), refused), refused: refused, run: runRecord}
}

func runRecord(ctx context.Context, e *env, o *options, args []string) (code int, err error) {
	switch {
	case len(args) == 0:
		return 0, usagef("record what? Name a CUDA source, a program, or a .ptx file")
	case o.out == "":
		return 0, usagef("record to where? Give --out FILE before the program")
	}
	if path, ok, err := cpuProgram(args); err != nil || ok {
		if err != nil {
			return 0, err
		}
		return recordCPU(ctx, e, o, path, args[1:])
	}
	if err := o.onlyTraces("record runs kernels"); err != nil {
		return 0, err
	}
	x, err := executionOf(ctx, e, o, args)
	if err != nil {
		return 0, err
	}
	defer x.cleanup()
	f, err := os.Create(o.out)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	o.session.Bare, o.session.Record = true, w
	stop := showProgress(e, &o.session)
	r, err := x.run(0, &o.session)
	stop()
	unwritten := errors.Join(w.Flush(), f.Close())
	if err != nil {
		return 0, err
	}
	code, err = tell(e, e.stderr, o, r, x.source)
	if unwritten != nil {
		err = errors.Join(&unwrittenError{fmt.Errorf("--out: the trace is not whole: %w", unwritten)}, err)
	}
	return code, err
}

const analyzeLong = `
fencepost analyze FILE
  judges a trace that "fencepost record" wrote, with the detectors that --detector names. The findings are those of the
  run itself with --schedule fair. If the trace is truncated (a full disk, a killed run), its existing part is judged, and
  the report says so.

fencepost analyze trace.std
  judges the trace of a CPU program: the STD format of RAPID, CSV, or the binary format of "fencepost export"
  (docs/cpu.md). The detectors are fasttrack, slimfast and wcp; fasttrack and wcp judge by default.`

func analyzeCommand() *command {
	const past = "the run is over: give it to \"fencepost record\""
	refused := map[string]string{"kernel": past, "kernel-name": past, "seed": past, "seeds": "a trace is of one run", "schedule": past, "engine": past, "arch": past, "device": past, "instrument": past, "prune": past}
	return &command{name: "analyze", args: "FILE", long: analyzeLong, doc: "judge a recorded run",
		flags: without(runFlags(), refused), refused: refused, run: runAnalyze, anywhere: true}
}

func runAnalyze(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if len(args) != 1 {
		return 0, usagef("analyze takes one file: what \"fencepost record\" wrote, or a trace of a CPU program")
	}
	if err := readable(args[0]); err != nil {
		return 0, err
	}
	f, err := os.Open(args[0])
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if isCPUTrace(f) {
		return analyzeCPU(ctx, e, o, args[0])
	}
	if err := o.onlyTraces(args[0] + " is none"); err != nil {
		return 0, err
	}
	o.recorded = true
	stop := showProgress(e, &o.session)
	r, err := session.Analyze(ctx, &o.session, bufio.NewReaderSize(f, 1<<20))
	stop()
	if err != nil {
		return 0, traceError(args[0], err)
	}
	return tell(e, o.reportWriter(e, e.stdout), o, r, sourceBeside(args[0]))
}
