package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/report"
)

// Program is a program to run.
type Program struct {
	Path string
	Args []string // without the program's name
	// Libraries is the folder of the stand-in libraries.
	Libraries      string
	Env            []string  // "NAME=value", overriding this process's environment
	Stdin          io.Reader // an *os.File is passed on directly; it is read again from its start for each seed if possible
	Stdout, Stderr io.Writer
	Outlives       bool     // it keeps running when this process is killed
	input          *os.File // Stdin, if this package opened it
}

// Run runs a program once for each seed: one run after the other, because programs may share files, ports and their
// standard input, or o.Jobs at a time if they do not. It drops the output of all runs but the first. It returns an
// error if the program could not be started.
func Run(ctx context.Context, o *Options, p *Program) (*report.Report, error) {
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	jobs := 1
	if o.Apart {
		jobs = o.Jobs
	}
	return overSeeds(ctx, o, jobs, func(i int, seed uint64, cores int) (*report.Report, error) {
		if i == 0 {
			return runOnce(ctx, o, p, seed, cores)
		}
		again, err := p.Again()
		if err != nil {
			return nil, fmt.Errorf("with seed %d: %w", seed, err)
		}
		defer again.Close()
		return runOnce(ctx, o, again, seed, cores)
	})
}

// Again returns the program for another run: with its input from the start if possible, and its output dropped. Close
// it after use.
func (p *Program) Again() (*Program, error) {
	again := *p
	again.Stdin, again.Stdout, again.Stderr = nil, nil, nil
	in, err := reopened(p.Stdin)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be run again: its input cannot be read again: %w", p.Path, err)
	}
	if again.input = in; in != nil {
		again.Stdin = in
	}
	return &again, nil
}

// Close closes the file that Again opened.
func (p *Program) Close() error {
	if p.input == nil {
		return nil
	}
	return p.input.Close()
}

// reopened returns the input for another run: a regular file from its start, nil otherwise. It opens the file again,
// because concurrent runs must not share a position.
func reopened(in io.Reader) (*os.File, error) {
	f, ok := in.(*os.File)
	if !ok {
		return nil, nil
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

func runOnce(ctx context.Context, o *Options, p *Program, seed uint64, cores int) (*report.Report, error) {
	r, err := newOnce(ctx, o, seed, cores, 0, nil)
	if err != nil {
		return nil, err
	}
	r.hosted = true
	status, err := cuda.Run(ctx, cuda.RunOptions{Path: p.Path, Args: p.Args, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr,
		Device: r.device, Libraries: p.Libraries, Env: append(os.Environ(), p.Env...), Outlives: p.Outlives})
	switch {
	case err != nil && !(ctx.Err() != nil && errors.Is(err, ctx.Err())):
		r.close()
		return nil, fmt.Errorf("%s could not be run: %w", p.Path, err)
	case err != nil:
		r.skip("the program", whyStopped(ctx)+"; it was "+status.Host)
	default:
		r.program = &report.Program{Exit: status.Code}
		if status.Signal != 0 {
			r.program.Exit, r.program.Signal = 128+int(status.Signal), status.Signal.String()
		}
		if r.ran == 0 && r.device.Operators() == 0 && r.program.Exit == 0 {
			r.skip("the program", "no kernel ran in it, so there was nothing to check (programs of the CPU are built with \"fencepost cc\": docs/cpu.md)")
		}
	}
	r.failures()
	r.tellUnseen(&status)
	return r.finish(), nil
}

// tellUnseen reports the parts of a program that the device did not see.
func (r *once) tellUnseen(status *cuda.ExitStatus) {
	for _, f := range status.Faults {
		r.skip("the program", fmt.Sprintf("its connection to the device broke: %v", f))
	}
	if status.Undelivered {
		r.skip("the program", "some of its CUDA calls did not reach the checker and failed: it has cut the connection for good, "+
			"or it calls CUDA in a signal handler that can interrupt a CUDA call")
	}
	for _, u := range status.Unheard {
		switch u.Reason {
		case cuda.Forked:
			what := "a kernel"
			if u.Text != "" {
				what = "kernel " + report.ShortName(report.BareName(u.Text))
			}
			r.skip(what, "launched in a child that fork() made of a process that had used CUDA: "+
				"CUDA refuses that with cudaErrorInitializationError")
		case cuda.NotMapped:
			r.skip("a process of the program", "it has no room at the addresses of device memory: "+u.Text)
		}
	}
	for _, name := range status.Users {
		r.skip("process "+name, fmt.Sprintf("it outlived the program and still ran %s after its last CUDA call; what it does later is not checked", cuda.Linger()))
	}
	for _, name := range status.Left {
		r.note("The program has left process %s running. If it starts programs that use CUDA, they are not checked.", name)
	}
}
