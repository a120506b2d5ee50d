package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Check is one line of `fencepost doctor`.
type Check struct {
	Name    string // "nvcc", "clang", "host C compiler", "nvcc compiles a kernel"
	Purpose string // the use of the tool
	Needed  bool   // required for the purpose; otherwise it is an alternative
	Tool    *Tool  // nil if it was not found
	Problem string // "" if there is none
	Remedy  string // the solution of the problem
}

// Doctor looks for every compiler and tries out nvcc. It never fails; problems are in the checks.
func Doctor(ctx context.Context, f *Finder) []Check {
	var checks []Check
	add := func(name, purpose string, needed bool, t *Tool, err error) {
		c := Check{Name: name, Purpose: purpose, Needed: needed, Tool: t}
		var m *Missing
		switch {
		case errors.As(err, &m):
			c.Remedy = m.Remedy
			m = &Missing{What: m.What, Looked: m.Looked}
			c.Problem = strings.TrimSuffix(m.Error(), "; ")
		case err != nil:
			c.Problem = err.Error()
		}
		checks = append(checks, c)
	}
	cc, err := f.FindCC(ctx)
	add("host C compiler", "builds the stand-in CUDA libraries and host code", true, cc, err)
	nvcc, err := f.FindNVCC(ctx)
	add("nvcc", "compiles .cu files", true, nvcc, err)
	if nvcc != nil {
		checks = append(checks, tryOut(ctx, nvcc))
	}
	clang, err := f.FindClang(ctx)
	add("clang", "second compiler (--compiler clang)", false, clang, err)
	return checks
}

// tryOut compiles a kernel with host code, which tests every part of a toolkit that pip installs separately.
func tryOut(ctx context.Context, nvcc *Tool) Check {
	c := Check{Name: "nvcc compiles a kernel", Purpose: "compiles .cu files", Needed: true, Tool: nvcc}
	dir, err := os.MkdirTemp("", "fencepost-doctor-")
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	defer os.RemoveAll(dir)
	const source = "#include <cuda/atomic>\n__global__ void k(int *p) { *p = 1; }\nvoid f(int *p) { k<<<1, 1>>>(p); }\n"
	src := filepath.Join(dir, "doctor.cu")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		c.Problem = err.Error()
		return c
	}
	var out bytes.Buffer
	_, err = BuildProgram(ctx, BuildOptions{NVCC: nvcc, Sources: []string{src}, Flags: []string{"-c"}, Out: filepath.Join(dir, "doctor.o"), Output: &out})
	if err == nil {
		return c
	}
	c.Problem = fmt.Sprintf("%v: %s", err, firstError(out.String()))
	if missing := missingPackages(nvcc); len(missing) > 0 {
		c.Remedy = "run: pip install " + strings.Join(missing, " ")
	} else {
		c.Remedy = "install a host compiler that this nvcc supports, g++ among it, or the toolkit again: " + PipLine
	}
	return c
}

// firstError returns the most informative line of a compiler's output.
func firstError(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, l := range lines {
		if strings.Contains(l, "error") || strings.Contains(l, "fatal") || strings.Contains(l, "not found") || strings.Contains(l, "No such file") {
			return l
		}
	}
	return lines[0]
}

// missingPackages names the packages of PipLine whose files are missing. A toolkit installed otherwise has all of them,
// perhaps in other places.
func missingPackages(nvcc *Tool) []string {
	top, err := toolkitRoot(nvcc)
	if err != nil || filepath.Base(filepath.Dir(top)) != "nvidia" {
		return nil
	}
	var missing []string
	for _, p := range []struct{ pkg, file string }{
		{"nvidia-nvvm", "nvvm/bin/cicc"},
		{"nvidia-cuda-runtime", "include/cuda_runtime.h"},
		{"nvidia-cuda-crt", "include/crt/host_config.h"},
		{"nvidia-cuda-cccl", "include/cccl"},
	} {
		if _, err := os.Stat(filepath.Join(top, p.file)); err != nil {
			missing = append(missing, p.pkg)
		}
	}
	return missing
}
