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
	Stdin          io.Reader // an *os.File is handed on as it is; read again from its start for each seed when it can be
	Stdout, Stderr io.Writer
}

// Run runs a program once for each seed. The output of the runs after the first is dropped. The error says why the
// program could not be started.
func Run(ctx context.Context, o *Options, p *Program) (*report.Report, error) {
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	again := *p
	again.Stdout, again.Stderr = nil, nil
	// One at a time: programs may share files, ports and their standard input.
	return overSeeds(ctx, o, 1, func(i int, seed uint64) (*report.Report, error) {
		if i == 0 {
			return runOnce(ctx, o, p, seed)
		}
		again.Stdin = rewound(p.Stdin)
		return runOnce(ctx, o, &again, seed)
	})
}

// rewound gives the input again for another run: a regular file from its start, nothing otherwise.
func rewound(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	return f
}

func runOnce(ctx context.Context, o *Options, p *Program, seed uint64) (*report.Report, error) {
	r, err := newOnce(ctx, o, seed, nil)
	if err != nil {
		return nil, err
	}
	status, err := cuda.Run(ctx, cuda.RunOptions{Path: p.Path, Args: p.Args, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr,
		Device: r.device, Libraries: p.Libraries})
	switch {
	case err != nil && ctx.Err() == nil:
		r.close()
		return nil, fmt.Errorf("%s could not be run: %w", p.Path, err)
	case err != nil && errors.Is(err, ctx.Err()):
		r.skip("the program", whyStopped(ctx))
	default:
		r.program = &report.Program{Exit: status.Code}
		if status.Signal != 0 {
			r.program.Exit, r.program.Signal = 128+int(status.Signal), status.Signal.String()
		}
		if r.ran == 0 {
			r.skip("the program", "no kernel ran in it, so there was nothing to check")
		}
	}
	for _, f := range status.Faults {
		r.skip("the program", fmt.Sprintf("its connection to the device broke: %v", f))
	}
	return r.finish(), nil
}
