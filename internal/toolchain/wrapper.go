package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// Wrapper is `fencepost nvcc`: it replaces nvcc in a makefile or in CMake.
//
// Makefiles set NVCC="fencepost nvcc". Those that name the toolkit's folder set CUDA_PATH (or CUDA_HOME) to an Overlay
// of the toolkit. CMake requires a single program as the compiler, so -DCMAKE_CUDA_COMPILER (or CUDACXX) is bin/nvcc in
// that overlay. A link named nvcc to fencepost also works, because the command line treats argv[0] "nvcc" as `fencepost
// nvcc`.
type Wrapper struct {
	Finder  Finder
	Runtime func(context.Context) (dir string, err error) // builds Fencepost's runtime libraries; not called if nothing is compiled
	// Cache and Self are those of Overlay. Without them CMake finds the real toolkit, and its CUDA::cudart_static is
	// then NVIDIA's library.
	Cache, Self string
	Env         []string // nil: that of this process
}

// cmakeAsks is the name of a file that does not exist and that CMake makes nvcc compile, to learn from its output where
// the toolkit is.
const cmakeAsks = "__cmake_determine_cuda"

// Run calls the real nvcc with args rewritten by Wrap and returns its exit code. Notes go to stderr, each after
// "fencepost nvcc: ". An error means that nvcc could not be called at all.
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
	headers := ""
	if !asksOnly(args) {
		headers = w.Cache
	}
	c, err := newCall(args, nvcc, runtimeDir, headers, w.Env)
	if err != nil {
		return 0, err
	}
	for _, n := range c.notes {
		fmt.Fprintf(stderr, "fencepost nvcc: %s\n", n)
	}
	if w.Cache != "" && w.Self != "" && slices.Contains(args, cmakeAsks) {
		dir, err := Overlay(w.Cache, nvcc, runtimeDir, w.Self)
		if err != nil {
			return 0, err
		}
		return c.runShowing(ctx, nvcc, dir, stdout, stderr)
	}
	return c.exec(ctx, nvcc, stdin, stdout, stderr)
}

func (c *call) exec(ctx context.Context, nvcc *Tool, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, nvcc.Path, c.args...)
	cmd.Env = c.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	err := exitError(ctx, "nvcc", cmd.Run())
	var failed *CompileError
	if errors.As(err, &failed) {
		return failed.Code, nil
	}
	return 0, err
}

// runShowing answers CMake's question with the overlay as the toolkit's folder, so that the targets of its
// FindCUDAToolkit (CUDA::cudart_static and so on), which name libraries by path, are Fencepost's.
func (c *call) runShowing(ctx context.Context, nvcc *Tool, overlay string, stdout, stderr io.Writer) (int, error) {
	var out, errs bytes.Buffer
	code, err := c.exec(ctx, nvcc, nil, &out, &errs)
	for _, s := range []struct {
		from *bytes.Buffer
		to   io.Writer
	}{{&out, stdout}, {&errs, stderr}} {
		text := toolkitLine.ReplaceAll(s.from.Bytes(), []byte("#$$ TOP="+strings.ReplaceAll(overlay, "$", "$$")))
		if _, werr := s.to.Write(text); err == nil {
			err = werr
		}
	}
	return code, err
}

var toolkitLine = regexp.MustCompile(`(?m)^#\$ TOP=(.*)$`)

// asksOnly reports whether a call only asks nvcc about itself.
func asksOnly(args []string) bool {
	items, err := parseArgs(args, nil)
	return err == nil && slices.ContainsFunc(items, func(it item) bool { return informs[it.opt] })
}
