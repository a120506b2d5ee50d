package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/hw/gpu"
	"fencepost.dev/fencepost/internal/session"
)

// isKernel reports whether an argument of simulate is kernels, and not a trace.
func isKernel(name string) bool {
	return isCorpus(name) || strings.HasSuffix(name, ".cu") || strings.HasSuffix(name, ".ptx")
}

// kernelProgram is kernels to simulate.
type kernelProgram struct {
	name string
	in   *session.Input
}

// simulateKernels runs kernels on simulated GPUs.
func simulateKernels(ctx context.Context, e *env, o *options, args []string) (int, error) {
	s := &o.simulation
	if s.gpuDesigns == nil && s.designs != nil {
		return 0, usagef("--hw %s is for CPU programs, and %s is kernels: scord, scord-base and hirace are for those", s.designs[0].Name, args[0])
	}
	if s.gpuDesigns == nil {
		s.gpuDesigns = gpu.Detectors()[:1]
	}
	if s.programs != nil {
		return 0, usagef("--program is of programs for CPUs, and %s is kernels", args[0])
	}
	config := gpu.Fermi()
	if s.gpu != nil {
		config = *s.gpu
	}
	var programs []kernelProgram
	for _, name := range args {
		if !isKernel(name) {
			return 0, usagef("%s is no kernel, as %s is: simulate traces and kernels apart", name, args[0])
		}
		more, err := kernelPrograms(ctx, e, o, name)
		if err != nil {
			return 0, err
		}
		programs = append(programs, more...)
	}
	var results []*gpu.Result
	var failed error
	for _, p := range programs {
		r, err := gpu.Run(p.name, config, s.gpuDesigns, s.resources, func(g *gpu.Engine, judge string) (int, error) {
			return runOn(ctx, o.session, p.in, g, judge)
		})
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		results = append(results, r)
	}
	if err := tellKernels(e, o, config, results); err != nil {
		return 0, err
	}
	if failed != nil {
		fmt.Fprintf(e.stderr, "fencepost: %v\n", failed)
		return exitNotChecked, nil
	}
	return exitClean, nil
}

// kernelPrograms prepares the kernels that an argument names.
func kernelPrograms(ctx context.Context, e *env, o *options, name string) (programs []kernelProgram, err error) {
	if isCorpus(name) {
		chosen, _, err := corpusPrograms(name)
		if err != nil {
			return nil, err
		}
		for _, p := range chosen {
			in, err := session.CorpusInput(p)
			if err != nil {
				return nil, err
			}
			programs = append(programs, kernelProgram{p.Path(), in})
		}
		return programs, nil
	}
	in, err := inputFiles(ctx, e, o, []string{name})
	if err != nil {
		return nil, err
	}
	if in.Launch, err = launchFile(o, name, in); err != nil {
		return nil, err
	}
	return []kernelProgram{{filepath.Base(name), in}}, nil
}

// runOn runs kernels on a simulated GPU. It returns an error if the counts do not cover the whole program.
func runOn(ctx context.Context, o session.Options, in *session.Input, g *gpu.Engine, judge string) (races int, err error) {
	o.Bare, o.Seeds, o.Jobs, o.Engine = true, 1, 1, func() engine.Engine { return g }
	if judge != "" {
		spec, err := detect.Choose(all.Detectors(), judge)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		o.Bare, o.Detectors = false, []detect.Spec{spec}
	}
	rep, err := session.Check(ctx, &o, in)
	if err != nil {
		return 0, err
	}
	if len(rep.Skipped) > 0 {
		return 0, fmt.Errorf("%s: %s", rep.Skipped[0].What, rep.Skipped[0].Reason)
	}
	if g.Counts.Cycles == 0 {
		return 0, errors.New("no kernel ran")
	}
	for i := range rep.Findings {
		if rep.Findings[i].Detector == judge && judge != "" {
			races++
		}
	}
	return races, nil
}

// tellKernels writes the tables, and the counts as JSON.
func tellKernels(e *env, o *options, config gpu.Config, results []*gpu.Result) error {
	if len(results) == 0 {
		return nil
	}
	if o.json != "-" {
		if err := gpu.Write(e.stdout, results); err != nil {
			return err
		}
	}
	return writeJSONValue(e, o, map[string]any{"version": 1, "gpu": config, "runs": results})
}
