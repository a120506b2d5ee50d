package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
)

// Wrapper is `fencepost nvcc`: it takes the place of nvcc in a makefile or in CMake.
//
// Makefiles set NVCC="fencepost nvcc". CMake wants the path of one program that is called nvcc (CMAKE_CUDA_COMPILER or
// CUDACXX): a link of that name to fencepost, which recognises it by the name it was called by, or a script of two lines;
// WriteScript makes one.
type Wrapper struct {
	Finder  Finder
	Runtime func(context.Context) (dir string, err error) // builds our runtime libraries; not called when nothing is compiled
	Env     []string                                      // nil: that of this process
}

// Run calls the real nvcc with args rewritten by Wrap and returns its exit code. Notes go to stderr, each with
// "fencepost nvcc: " before it. An error means that nvcc could not be called at all.
func (w *Wrapper) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, err error) {
	nvcc, err := w.Finder.FindNVCC(ctx)
	if err != nil {
		return 0, err
	}
	runtimeDir := ""
	if w.Runtime != nil && !asksOnly(args) {
		if runtimeDir, err = w.Runtime(ctx); err != nil {
			return 0, err
		}
	}
	c, err := newCall(args, nvcc, runtimeDir, w.Env)
	if err != nil {
		return 0, err
	}
	for _, n := range c.notes {
		fmt.Fprintf(stderr, "fencepost nvcc: %s\n", n)
	}
	cmd := exec.CommandContext(ctx, nvcc.Path, c.args...)
	cmd.Env = c.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	err = exitError(ctx, "nvcc", cmd.Run())
	var failed *CompileError
	if errors.As(err, &failed) {
		return failed.Code, nil
	}
	return 0, err
}

// asksOnly says whether a call only asks nvcc about itself.
func asksOnly(args []string) bool {
	items, err := parseArgs(args, nil, 0)
	return err == nil && slices.ContainsFunc(items, func(it item) bool { return informs[it.opt] })
}
