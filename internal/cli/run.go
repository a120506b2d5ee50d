package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	cpus "fencepost.dev/fencepost/internal/cpu/all"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/fatbin"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/toolchain"
)

const runLong = `
Examples:
  fencepost run prog.cu
  fencepost run prog.cu -O2 -lz -- in.txt
  fencepost run --seeds 5 --timeout 60s --json report.json ./app in.txt
  fencepost run python3 train.py

fencepost run prog.cu [more.cu] [compiler flags] [-- arguments]
  compiles CUDA sources so that every memory access stays on its line, and runs the program.

fencepost run ./app [arguments]
  runs a program that was built with "fencepost nvcc" or "nvcc -cudart shared" and holds PTX, or a CPU program that was
  built with "fencepost cc", "c++" or "fc": docs/cpu.md.

fencepost run python3 SCRIPT [arguments]
  runs a Python program with its installed PyTorch, Triton, numba-cuda or CUDA Python: docs/python.md.

The host code runs natively. Kernels run on an emulated GPU (--arch) whose memory accesses are observed. The program
reads its own input and writes its own output; the report goes to standard error. Flags of fencepost come before the
program.`

func runCommand() *command {
	return &command{name: "run", args: "PROG.cu | APP [ARGUMENTS]", long: runLong,
		doc:   "run a CUDA program and report its races",
		flags: append([]*flag{apartFlag, devicesFlag, killFlag, leaksFlag, nvccFlag, compilerFlag, uninitFlag, verboseFlag}, runFlags()...), run: runRun}
}

// detectorHelp lists the detectors.
func detectorHelp() string {
	s := "Detectors for --detector NAME,... Options follow colons: --detector hb,scord:granularity=8\n" +
		"By default hb judges, and gwcp predicts. The others are for comparison: they behave as published, including blind spots.\n"
	for _, d := range all.Detectors() {
		s += fmt.Sprintf("\n  %-12s %s", d.Name, d.Doc)
		for _, o := range d.Options {
			s += fmt.Sprintf("\n    :%s=%s  %s", o.Name, strings.Join(o.Values, "|"), o.Doc)
		}
	}
	s += "\n\nDetectors of traces of CPU programs (docs/cpu.md), for \"fencepost analyze\"; by default fasttrack and wcp judge:\n"
	for _, d := range cpus.Detectors() {
		s += fmt.Sprintf("\n  %-12s %s", d.Name, d.Doc)
	}
	return s
}

func runRun(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if path, ok, err := cpuProgram(args); err != nil || ok {
		if err != nil {
			return 0, err
		}
		return runCPU(ctx, e, o, path, args[1:], false)
	}
	if err := o.onlyTraces("run runs kernels"); err != nil {
		return 0, err
	}
	p, cleanup, err := programOf(ctx, e, o, args)
	if err != nil {
		return 0, err
	}
	defer cleanup()
	if o.verbose {
		tellEnv(e.stderr, p.Env)
	}
	o.session.Sources, o.session.Rerun = &report.Sources{}, !o.once
	stop := showProgress(e, &o.session)
	r, err := session.Run(ctx, &o.session, p)
	stop()
	if err != nil {
		return 0, err
	}
	return tell(e, e.stderr, o, r, o.session.Sources.Read)
}

// programOf makes the program that args name ready to run, compiling it where they are sources. cleanup removes what was
// made.
func programOf(ctx context.Context, e *env, o *options, args []string) (p *session.Program, cleanup func(), err error) {
	if len(args) == 0 {
		return nil, nil, usagef("run what? Name a CUDA source or a program: fencepost run prog.cu")
	}
	if err := cuda.Supported(); err != nil {
		return nil, nil, err
	}
	if err := readable(args[0]); err != nil {
		path, lookErr := exec.LookPath(args[0])
		if lookErr != nil || strings.Contains(args[0], "/") {
			return nil, nil, err
		}
		args[0] = path
	}
	p = &session.Program{Stdin: e.stdin, Stdout: e.stdout.to, Stderr: e.stderr.to, Outlives: o.outlives}
	if o.json == "-" {
		p.Stdout = e.stderr.to
	}
	if !isSource(args[0]) {
		return p, func() {}, program(ctx, e, args, p)
	}
	dir, cleanup, err := workDir()
	if err != nil {
		return nil, nil, fmt.Errorf("no folder for the compiled program: %w", err)
	}
	if err := compile(ctx, e, o, args, dir, p); err != nil {
		cleanup()
		return nil, nil, err
	}
	return p, cleanup, nil
}

var sourceExts = []string{".cu", ".cpp", ".cc", ".cxx", ".c"}

func isSource(name string) bool {
	return slices.Contains(sourceExts, strings.ToLower(filepath.Ext(name)))
}

// compile builds the program of sources and compiler flags.
func compile(ctx context.Context, e *env, o *options, args []string, dir string, p *session.Program) error {
	if i := slices.Index(args, "--"); i >= 0 {
		args, p.Args = args[:i], args[i+1:]
	}
	if err := compilerArgs(args); err != nil {
		return err
	}
	nvcc, clang, err := compilers(ctx, o)
	if err != nil {
		return err
	}
	if p.Libraries, err = libraries(ctx, e.stderr); err != nil {
		return remedy(err)
	}
	p.Env = pythonEnv(p.Libraries)
	base := filepath.Base(args[0])
	p.Path = filepath.Join(dir, strings.TrimSuffix(base, filepath.Ext(base)))
	notes, err := toolchain.BuildProgram(ctx, toolchain.BuildOptions{NVCC: nvcc, Clang: clang, Flags: slices.Concat(o.config.compiler, args), Arch: o.arch, Out: p.Path, RuntimeDir: p.Libraries, Output: e.stderr.to})
	for _, n := range notes {
		fmt.Fprintf(e.stderr, "fencepost: %s\n", n)
	}
	if err == nil {
		p.Env = append(p.Env, jitEnv(p.Path, p.Libraries)...)
	}
	return err
}

// compilerArgs finds what cannot be meant for the compiler: flags of ours, and arguments of the program.
func compilerArgs(args []string) error {
	c := runCommand()
	for i, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case strings.HasPrefix(a, "--") && c.flag(name) != nil:
			return usagef("%s stands behind %s, where flags are the compiler's; flags of fencepost go first: fencepost run %s ... %s", a, args[0], a, args[0])
		case a == "-o" || strings.HasPrefix(a, "--output-file"):
			return usagef("%s: run makes a program of its own and throws it away; \"fencepost nvcc\" builds one to keep", a)
		case i > 0 && !strings.HasPrefix(a, "-") && !strings.HasPrefix(args[i-1], "-") && !compilable(a):
			return usagef("%s is no source; arguments of the program stand behind \"--\": fencepost run %s -- %s", a, args[0], a)
		}
	}
	return nil
}

// compilable says that nvcc takes a file of this name.
func compilable(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return isSource(name) || slices.Contains([]string{".o", ".obj", ".a", ".so", ".lib", ".ptx", ".cubin", ".fatbin", ".gpu", ".ii", ".i"}, ext) ||
		strings.Contains(filepath.Base(name), ".so.")
}

// program looks at an executable before it runs.
func program(ctx context.Context, e *env, args []string, p *session.Program) error {
	name := args[0]
	p.Args = args[1:]
	if len(p.Args) > 0 && p.Args[0] == "--" {
		p.Args = p.Args[1:]
	}
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".ptx", ".cubin", ".fatbin":
		return usagef("%s is no program; kernels alone are launched by \"fencepost check %s --launch l.toml\"", name, name)
	case ".o", ".obj", ".a":
		return usagef("%s is not linked; link it with \"fencepost nvcc %s -o app\", then \"fencepost run ./app\"", name, name)
	case ".py":
		if !shebang(name) {
			return usagef("%s is a Python script that names no interpreter: fencepost run python3 %s", name, name)
		}
	case ".toml", ".json", ".txt", ".h", ".cuh", ".hpp":
		return usagef("%s is neither a program nor a CUDA source", name)
	}
	parts, err := fatbin.Program(name, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")))
	if err != nil {
		return err
	}
	for _, b := range parts {
		if err := b.Problem(); err != nil {
			return remedy(err)
		}
	}
	switch parts[0].Format {
	case fatbin.Object, fatbin.Cubin, fatbin.FatBinary, fatbin.PTXFile, fatbin.Library:
		return usagef("%s is no program but a %s", name, parts[0].Format)
	}
	if p.Path, err = filepath.Abs(name); err != nil {
		return err
	}
	if st, err := os.Stat(name); err == nil && st.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not executable; if it is a program, run: chmod +x %s", name, name)
	}
	if p.Libraries, err = libraries(ctx, e.stderr); err != nil {
		return remedy(err)
	}
	p.Env = append(pythonEnv(p.Libraries), jitEnv(p.Path, p.Libraries)...)
	if flag := blind(name, p.Args); flag != "" {
		fmt.Fprintf(e.stderr, "fencepost: with %s Python does not run what shows GPU packages the emulated GPU, and they will find none\n"+
			"  remedy: leave %s out; -s and -P keep the user's and the script's folders off the path without it\n", flag, flag)
	}
	return nil
}

// shebang says whether a script's first line names its interpreter.
func shebang(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return true // told by who runs it
	}
	defer f.Close()
	var head [2]byte
	_, _ = io.ReadFull(f, head[:])
	return string(head[:]) == "#!"
}

// remedy puts what is wrong and what to do about it on lines of their own.
func remedy(err error) error {
	var missing *toolchain.Missing
	var cannot *fatbin.CannotRun
	switch {
	case errors.As(err, &missing):
		s := missing.What + " was not found"
		if len(missing.Looked) > 0 {
			s += "\n  looked in: " + strings.Join(report.Wrap(strings.Join(missing.Looked, ", "), 100), "\n             ")
		}
		return errors.New(s + "\n  remedy: " + missing.Remedy)
	case errors.As(err, &cannot):
		return fmt.Errorf("%s cannot be run: %s\n  remedy: %s", cannot.Path, cannot.Reason, cannot.Remedy)
	}
	return err
}

const nvccLong = `
Replaces nvcc in a build. It takes the same arguments, and "fencepost run" can run and check the resulting programs.
It adds source lines, keeps every memory access at its place in the source, embeds PTX for compute capability 8.0 unless
you name another one, and links Fencepost's runtime instead of NVIDIA's. Separate compilation (-rdc=true, -dc, -dlink) works.

  make NVCC="fencepost nvcc"
  cmake -DCMAKE_CUDA_COMPILER="$(fencepost nvcc --toolkit)/bin/nvcc" ..
  make CUDA_HOME="$(fencepost nvcc --toolkit)"

--instrument log or hirace makes a program that starts itself under "fencepost run --device auto --instrument MODE"
(docs/gpu.md). So ./app checks itself, on a GPU if there is one. It finds fencepost on PATH, or by the variable FENCEPOST.

--toolkit prints the path of a toolkit folder that consists of links to yours, except for Fencepost's nvcc and runtime
libraries. A link named nvcc to the fencepost program works too. FENCEPOST_NVCC names the compiler to call.`

func nvccCommand() *command {
	return &command{name: "nvcc", args: "ARGUMENTS...", long: nvccLong,
		doc: "compile like nvcc, for \"fencepost run\"", raw: true,
		run: func(ctx context.Context, e *env, o *options, args []string) (int, error) {
			switch {
			case len(args) == 0:
				return 0, usagef("nvcc what? Give it the arguments of nvcc")
			case len(args) == 1 && args[0] == "--toolkit":
				return printToolkit(ctx, e)
			}
			return wrapNVCC(ctx, e, args)
		}}
}

// wrapNVCC compiles. The exit code is nvcc's own.
func wrapNVCC(ctx context.Context, e *env, args []string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	w := toolchain.Wrapper{Self: self}
	w.Runtime = func(ctx context.Context) (string, error) {
		libs, err := libraries(ctx, e.stderr)
		w.Cache = filepath.Dir(libs)
		return libs, err
	}
	code, err := w.Run(ctx, args, e.stdin, e.stdout.to, e.stderr.to)
	var usage *toolchain.UsageError
	if errors.As(err, &usage) {
		return 0, usagef("nvcc: %s", usage.Msg)
	}
	return code, remedy(err)
}

func printToolkit(ctx context.Context, e *env) (int, error) {
	finder := toolchain.Finder{}
	nvcc, err := finder.FindNVCC(ctx)
	if err != nil {
		return 0, remedy(err)
	}
	libs, err := libraries(ctx, e.stderr)
	if err != nil {
		return 0, remedy(err)
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	dir, err := toolchain.Overlay(filepath.Dir(libs), nvcc, libs, self)
	if err != nil {
		return 0, err
	}
	fmt.Fprintln(e.stdout, dir)
	return exitClean, nil
}
