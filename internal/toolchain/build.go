package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fencepost.dev/fencepost/internal/procgroup"
)

// BuildOptions describe what to compile and how.
type BuildOptions struct {
	NVCC       *Tool
	Clang      *Tool     // compiles instead of nvcc, with the headers of its toolkit; nil: nvcc does
	Sources    []string  // .cu, .cpp, .c, .o, .a: anything that nvcc accepts
	Flags      []string  // the user's flags, rewritten as by Wrap
	Arch       string    // the device that --arch names, for example sm_90a: the target of nvcc if Flags name no architecture; empty for the default
	Out        string    // the executable, or for BuildPTX a folder
	RuntimeDir string    // Fencepost's runtime libraries, as made by standin.Build; BuildPTX needs none
	Dir        string    // working folder, "" for the current one
	Env        []string  // nil: that of this process
	Output     io.Writer // receives the output of the compilers, unchanged; nil: dropped
}

// CompileError is a compiler that ended with an error. Its output has gone to BuildOptions.Output.
type CompileError struct {
	Tool   string
	Code   int    // exit code; 128 + the number if a signal ended it
	Remedy string // "" if none is known
}

// Error names tool and code, and the remedy.
func (e *CompileError) Error() string {
	text := fmt.Sprintf("%s failed with exit code %d", e.Tool, e.Code)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

const (
	machineCode = "the library is machine code, which cannot be emulated: build a program without it (docs/run.md)"
	partial     = "link with -lcublas or -lcurand; of these libraries Fencepost computes some functions on the host (docs/run.md has the list), and others are undefined all the same"
)

// remedies maps outputs of compilers and linkers to remedies of their errors.
var remedies = []struct{ printed, remedy string }{
	{"cannot find -lcublasLt", machineCode}, {"cannot find -lcufft", machineCode}, {"cannot find -lcusparse", machineCode},
	{"cannot find -lcusolver", machineCode}, {"cannot find -lcudnn", machineCode}, {"cannot find -lnccl", machineCode},
	{"cannot find -lnpp", machineCode}, {"cannot find -lnvjpeg", machineCode},
	{"undefined reference to `cublas", partial}, {"undefined reference to `curand", partial},
	{"requires separate compilation mode", "kernels that launch kernels need the flag -rdc=true"},
	{"undefined reference to `main'", "sources without main have kernels alone, which \"fencepost check\" launches: see \"fencepost help check\""},
	{"curand_kernel.h: No such file", "the header is part of NVIDIA's cuRAND: install that beside nvcc (pip: nvidia-curand)"},
	{"curand.h: No such file", "the header is part of NVIDIA's cuRAND: install that beside nvcc (pip: nvidia-curand)"},
	{"cublas_v2.h: No such file", "the header is part of NVIDIA's cuBLAS: install that beside nvcc (pip: nvidia-cublas)"},
}

// printedTail is a writer that passes its input on and keeps the end of it.
type printedTail struct {
	to   io.Writer // nil: nobody
	tail []byte
}

// Write implements io.Writer.
func (w *printedTail) Write(p []byte) (int, error) {
	const most = 64 << 10
	w.tail = append(w.tail, p...)
	if n := len(w.tail); n > most {
		w.tail = append(w.tail[:0], w.tail[n-most/2:]...)
	}
	if w.to == nil {
		return len(p), nil
	}
	return w.to.Write(p)
}

// remedy returns the remedy for what was printed, "" if it is not known.
func (w *printedTail) remedy() string {
	for _, r := range remedies {
		if bytes.Contains(w.tail, []byte(r.printed)) {
			return r.remedy
		}
	}
	return ""
}

// BuildPTX compiles each source to PTX and returns the files, in the order of the sources, in the folder o.Out. Notes
// are those of Wrap. The error is a *CompileError if the source is at fault.
func BuildPTX(ctx context.Context, o BuildOptions) (ptx, notes []string, err error) {
	for i, src := range o.Sources {
		base := strings.TrimSuffix(filepath.Base(src), filepath.Ext(src))
		out := filepath.Join(o.Out, base+".ptx")
		if slices.Contains(ptx, out) { // two sources with the same name in two folders
			out = filepath.Join(o.Out, base+"."+strconv.Itoa(i)+".ptx")
		}
		if o.Clang != nil {
			n, err := o.clang(ctx, o.Flags, src, out)
			if err != nil {
				return nil, nil, err
			}
			ptx, notes = append(ptx, out), append(notes, n...)
			continue
		}
		n, err := o.run(ctx, slices.Concat([]string{"-ptx", "-o", out}, o.archFlag(), o.Flags, []string{src}))
		if err != nil {
			return nil, notes, err
		}
		ptx = append(ptx, out)
		for _, s := range n {
			if !slices.Contains(notes, s) {
				notes = append(notes, s)
			}
		}
	}
	return ptx, notes, nil
}

// BuildProgram compiles and links the sources to the executable o.Out, with embedded PTX and with Fencepost's runtime
// library. Notes are those of Wrap. The error is a *CompileError if the sources are at fault.
func BuildProgram(ctx context.Context, o BuildOptions) (notes []string, err error) {
	if o.Clang != nil {
		return o.clang(ctx, slices.Concat(o.Flags, o.Sources), "", "")
	}
	return o.run(ctx, slices.Concat([]string{"-o", o.Out}, o.archFlag(), o.Flags, o.Sources))
}

// archFlag makes nvcc compile for o.Arch if the user's flags name no architecture. Otherwise __CUDA_ARCH__ would be
// that of the default device, and code for the device that the kernels see would be left out. Clang may be too old to
// know the device.
func (o *BuildOptions) archFlag() []string {
	if o.Arch == "" {
		return nil
	}
	items, err := parseArgs(o.Flags, os.ReadFile)
	if err != nil || slices.ContainsFunc(items, func(it item) bool { return it.opt == "-arch" || it.opt == "-gencode" }) {
		return nil // the error is that of Wrap, which parses them again
	}
	return []string{"-arch=" + o.Arch}
}

// run calls nvcc with temporary files of its own, which are removed afterwards even if nvcc is killed.
func (o *BuildOptions) run(ctx context.Context, args []string) (notes []string, err error) {
	if o.NVCC == nil {
		return nil, &Missing{What: "nvcc", Remedy: nvccRemedy}
	}
	tmp, err := os.MkdirTemp("", "fencepost-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	c, err := newCall(args, o.NVCC, o.RuntimeDir, tmp, o.Env)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.NVCC.Path, c.args...)
	cmd.Dir, cmd.Env = o.Dir, setEnv(c.env, "TMPDIR", tmp)
	printed := &printedTail{to: o.Output}
	cmd.Stdout, cmd.Stderr = printed, printed
	// nvcc starts the other compilers: the whole group is ended with it.
	procgroup.Set(cmd)
	cmd.WaitDelay = 2 * time.Second
	err = exitError(ctx, "nvcc", cmd.Run())
	var failed *CompileError
	if errors.As(err, &failed) {
		if m := incomplete(o.NVCC); m != nil {
			return c.notes, m
		}
		failed.Remedy = printed.remedy()
	}
	return c.notes, err
}

// incomplete returns an error that names what a toolkit installed in pieces by pip lacks, or nil.
func incomplete(nvcc *Tool) error {
	missing := missingPackages(nvcc)
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	return &Missing{What: "a part of the CUDA toolkit of " + nvcc.Path + " (" + list + ")", Remedy: "run: pip install " + list}
}

// exitError converts the error of exec to one of this package.
func exitError(ctx context.Context, tool string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	code := exit.ExitCode()
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		code = 128 + int(s.Signal())
	}
	return &CompileError{Tool: tool, Code: code}
}

// call is one call of nvcc with its arguments rewritten.
type call struct {
	args  []string
	env   []string
	notes []string
}

// newCall rewrites the arguments together with those that nvcc takes from NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS,
// because an option there may conflict with one of Fencepost's. If they contain no such option they stay in the
// environment.
//
// headers, if not "", is the folder of the files that sources have to include.
func newCall(args []string, nvcc *Tool, runtimeDir, headers string, env []string) (*call, error) {
	if env == nil {
		env = os.Environ()
	}
	c := &call{env: env}
	before := splitWords(getEnv(env, "NVCC_PREPEND_FLAGS"))
	after := splitWords(getEnv(env, "NVCC_APPEND_FLAGS"))
	items, err := parseArgs(slices.Concat(before, after), os.ReadFile)
	if err == nil && slices.ContainsFunc(items, overruled) {
		args = slices.Concat(before, args, after)
		c.env = setEnv(setEnv(env, "NVCC_PREPEND_FLAGS", ""), "NVCC_APPEND_FLAGS", "")
	}
	r := Rewrite{ReadFile: os.ReadFile}
	if runtimeDir != "" {
		if r.RuntimeDir, err = libraryDir(runtimeDir, nvcc.Major); err != nil {
			return nil, err
		}
	}
	if headers != "" {
		if r.Intrinsics, err = writeIntrinsics(headers); err != nil {
			return nil, err
		}
	}
	c.args, c.notes, err = Wrap(args, r)
	return c, err
}

// libraryDir returns the folder of libcudart_static.a and libcudart.so for a toolkit of that major version: structures
// of the runtime's interface, such as the device properties, differ between versions. internal/cuda/standin defines the
// layout of the folders.
func libraryDir(runtimeDir string, major int) (string, error) {
	switch major {
	case 13:
		return runtimeDir, nil
	case 12:
		return filepath.Join(runtimeDir, "cuda12"), nil
	}
	return "", &Missing{What: fmt.Sprintf("a runtime library for CUDA %d", major), Remedy: "use an nvcc of CUDA 12 or 13, for instance: " + PipLine}
}

func getEnv(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// setEnv returns env with one variable changed, or removed if value is "".
func setEnv(env []string, name, value string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			out = append(out, e)
		}
	}
	if value != "" {
		out = append(out, name+"="+value)
	}
	return out
}
