package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/cpu"
	cputrace "fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/hw/cache"
	"fencepost.dev/fencepost/internal/hw/gpu"
	"fencepost.dev/fencepost/internal/hw/machine"
	"fencepost.dev/fencepost/internal/hw/programs"
	"fencepost.dev/fencepost/internal/hw/simulate"
	"fencepost.dev/fencepost/internal/nearest"
)

// simulation is what the flags of simulate say.
type simulation struct {
	designs  []simulate.Design
	programs []*programs.Program
	threads  []int
	events   int
	machine  machine.Config

	gpuDesigns []gpu.Detector
	gpu        *gpu.Config // nil: the default one
	resources  bool
}

const simulateHead = `
fencepost simulate TRACE...
  runs traces of CPU programs (docs/cpu.md) on a simulated processor of 16 cores, without race detection and with
  detectors in hardware. It prints their cost: cycles per instruction, what resolves checks, where the overhead is.
  docs/simulate.md describes the designs, the processor and the tables. "fencepost analyze" reports where races are.

fencepost simulate --program all
  runs programs of its own.

fencepost simulate --hw scord,hirace KERNEL...
  executes kernels (.cu and .ptx files with launch files beside them, programs and folders of the corpus) on a simulated GPU in
  the same way: cycles, accesses to DRAM, where the overhead is.

`

func simulateLong() string {
	s := simulateHead + "Designs (--hw):\n"
	for _, d := range simulate.Designs() {
		s += fmt.Sprintf("  %-22s %s\n", d.Name, d.Doc)
	}
	s += "\nDesigns for kernels (--hw):\n"
	for _, d := range gpu.Detectors() {
		s += fmt.Sprintf("  %-22s %s\n", d.Name, d.Doc)
	}
	s += "\nPrograms (--program):\n"
	for _, p := range programs.List() {
		s += fmt.Sprintf("  %-22s %s\n", p.Name, p.Doc)
	}
	return s + "\nExamples:\n  fencepost simulate --hw parsnip,radish trace.std\n  fencepost simulate --hw parsnip --program sor,fluid --threads 2,4,8,16\n  fencepost simulate --hw scord corpus/scopedapps"
}

func simulateCommand() *command {
	return &command{name: "simulate", args: "[TRACE...]", doc: "simulate the cost of race detectors in hardware", long: simulateLong(),
		anywhere: true, run: runSimulate, flags: []*flag{
			{"hw", "NAME,...", "designs to simulate, or all (default parsnip,radish,radish-ts; for kernels scord)", setHardware},
			launchFlag, nvccFlag,
			{"gpu", "FILE", "the GPU, as TOML (docs/simulate.md)", setGPU},
			{"resources", "", "also simulate kernels with half and with twice the L2 cache and the bandwidth of DRAM",
				func(o *options, v string) error { o.simulation.resources = true; return nil }},
			{"program", "NAME,...", "programs to run, or all",
				func(o *options, v string) (err error) {
					o.simulation.programs, err = pick("program", v, programs.List(), func(p *programs.Program) string { return p.Name })
					return err
				}},
			{"threads", "N,...", "run programs with N threads (default 16)", setThreads},
			{"events", "N", "run programs for roughly N events (default 2000000)",
				func(o *options, v string) error { return number(v, 1, 1<<32, &o.simulation.events) }},
			{"variable-bytes", "N", "size of a variable: 1, 2, 4 (default), 8, 16, 32 or 64",
				func(o *options, v string) error {
					err := number(v, 1, cache.LineBytes, &o.simulation.machine.VariableBytes)
					if n := o.simulation.machine.VariableBytes; err == nil && n&(n-1) != 0 {
						return usagef("--variable-bytes: %d is no power of two", n)
					}
					return err
				}},
			{"instructions", "N", "instructions for each event, including the event itself (default 3)",
				func(o *options, v string) error { return number(v, 1, 1000, &o.simulation.machine.Instructions) }},
			{"json", "FILE", "also write the counts as JSON (docs/simulate.md); - is standard output", setJSON},
		}}
}

// pick gives the values that a list of names names.
func pick[T any](flag, list string, all []T, name func(T) string) (picked []T, err error) {
	if list == "all" {
		return all, nil
	}
	var names []string
	for _, x := range all {
		names = append(names, name(x))
	}
next:
	for _, want := range strings.Split(list, ",") {
		for i, x := range all {
			if names[i] == want {
				picked = append(picked, x)
				continue next
			}
		}
		return nil, usagef("--%s: there is no %q%s", flag, want, nearest.Hint(want, names))
	}
	return picked, nil
}

// setHardware takes designs. They are all for CPU programs or all for kernels; "all" stands for those that fit what is run.
func setHardware(o *options, v string) (err error) {
	s := &o.simulation
	s.designs, s.gpuDesigns = nil, nil
	if v == "all" {
		s.designs, s.gpuDesigns = simulate.Designs(), gpu.Detectors()
		return nil
	}
	var names []string
	for _, d := range gpu.Detectors() {
		names = append(names, d.Name)
	}
	if first, _, _ := strings.Cut(v, ","); slices.Contains(names, first) {
		s.gpuDesigns, err = pick("hw", v, gpu.Detectors(), func(d gpu.Detector) string { return d.Name })
		return err
	}
	s.designs, err = pick("hw", v, simulate.Designs(), func(d simulate.Design) string { return d.Name })
	return err
}

func setGPU(o *options, v string) error {
	text, err := os.ReadFile(v)
	if err != nil {
		return usagef("--gpu: %v", err)
	}
	c, err := gpu.Parse(text)
	if err != nil {
		return usagef("--gpu %s: %v", v, err)
	}
	o.simulation.gpu = &c
	return nil
}

func setThreads(o *options, v string) error {
	o.simulation.threads = nil
	for _, text := range strings.Split(v, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 63 {
			return usagef("--threads: %q is no number from 1 to 63", text)
		}
		o.simulation.threads = append(o.simulation.threads, n)
	}
	return nil
}

func runSimulate(ctx context.Context, e *env, o *options, args []string) (int, error) {
	s := &o.simulation
	if len(args) == 0 && len(s.programs) == 0 {
		return 0, usagef("simulate takes traces of CPU programs, or --program: \"fencepost help simulate\" lists them")
	}
	if len(args) > 0 && isKernel(args[0]) {
		return simulateKernels(ctx, e, o, args)
	}
	if s.designs == nil && s.gpuDesigns != nil {
		return 0, usagef("--hw %s is for kernels: name .cu or .ptx files, or programs of the corpus", s.gpuDesigns[0].Name)
	}
	if s.designs == nil {
		s.designs = simulate.Designs()[:3]
	}
	standard := machine.Thesis()
	if s.machine.VariableBytes == 0 {
		s.machine.VariableBytes = standard.VariableBytes
	}
	if s.machine.Instructions == 0 {
		s.machine.Instructions = standard.Instructions
	}
	standard.VariableBytes, standard.Instructions = s.machine.VariableBytes, s.machine.Instructions
	s.machine = standard
	var runs []*simulate.Result
	var failed error
	one := func(name string, from simulate.Source) {
		r, err := simulate.Run(name, s.machine, s.designs, from)
		if r.Base.Events > 0 {
			runs = append(runs, r)
		} else if err == nil {
			err = errors.New("it has no events")
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	for _, name := range args {
		one(filepath.Base(name), func(out func([]cpu.Event)) error { return traceEvents(ctx, name, out) })
	}
	if s.threads == nil {
		s.threads = []int{standard.Caches.Cores}
	}
	if s.events == 0 {
		s.events = 2_000_000
	}
	for _, p := range s.programs {
		for _, threads := range s.threads {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			one(p.Name, func(out func([]cpu.Event)) error { p.Events(threads, s.events, out); return nil })
		}
	}
	if err := tellRuns(e, o, runs); err != nil {
		return 0, err
	}
	if failed != nil {
		fmt.Fprintf(e.stderr, "fencepost: %v\n", failed)
		return exitNotChecked, nil
	}
	return exitClean, nil
}

// traceEvents reads a trace.
func traceEvents(ctx context.Context, name string, out func([]cpu.Event)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := cputrace.NewReader(f)
	if err != nil {
		return err
	}
	events := make([]cpu.Event, 1<<12)
	for ctx.Err() == nil {
		n, err := r.Next(events)
		out(events[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("interrupted")
}

// tellRuns writes the tables, and the counts as JSON.
func tellRuns(e *env, o *options, runs []*simulate.Result) error {
	if len(runs) == 0 {
		return nil
	}
	if o.json != "-" {
		if err := simulate.Write(e.stdout, runs); err != nil {
			return err
		}
	}
	return writeJSONValue(e, o, map[string]any{"version": 1, "variable_bytes": o.simulation.machine.VariableBytes,
		"instructions_per_event": o.simulation.machine.Instructions, "runs": runs})
}
