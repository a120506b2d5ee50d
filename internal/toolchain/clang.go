package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/procgroup"
)

// clangBuild is one build by clang with the headers, libdevice and fatbinary of a toolkit. Device code is compiled
// separately, at -O0, to PTX, which is put into the object of the host code. So no tool of the toolkit needs to know
// this version of clang.
type clangBuild struct {
	o        *BuildOptions
	tmp      string
	toolkit  string
	arch     string   // sm_80
	both     []string // flags for device and host code
	host     []string // for host code only
	link     []string
	inputs   []string // sources and objects, in their order
	standard bool     // the caller chose a C++ standard
	lines    bool     // and debugging information
	notes    []string
}

// clangArch is the architecture without -arch: clang 14 knows none after 8.6.
const clangArch = "sm_80"

func (o *BuildOptions) newClang(args []string, tmp string) (*clangBuild, error) {
	if o.NVCC == nil {
		return nil, &Missing{What: "nvcc, of whose toolkit clang takes the headers", Remedy: nvccRemedy}
	}
	path, err := filepath.EvalSymlinks(o.NVCC.Path)
	if err != nil {
		return nil, err
	}
	b := &clangBuild{o: o, tmp: tmp, toolkit: filepath.Dir(filepath.Dir(path)), arch: clangArch}
	items, err := parseArgs(args, os.ReadFile)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if err := b.take(it); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// take translates one argument of nvcc. Unknown arguments are passed to clang.
func (b *clangBuild) take(it item) error {
	switch it.opt {
	case "":
		b.inputs = append(b.inputs, it.value)
	case "-arch":
		b.arch = realArch(virtual(it.value))
	case "-gencode":
		arch, err := gencodeArch(it.value)
		if err != nil {
			return err
		}
		b.arch = realArch(arch)
	case "-rdc", "-dc", "-dlto", "-G", "-instrument":
		if it.opt == "-rdc" && it.value == "false" {
			return nil
		}
		return &UsageError{fmt.Sprintf("%s: clang compiles each source by itself here; use --compiler nvcc", it.text())}
	case "-Xcompiler":
		b.host = append(b.host, strings.Split(it.value, ",")...)
	case "-Xlinker":
		for o := range strings.SplitSeq(it.value, ",") {
			b.link = append(b.link, "-Xlinker", o)
		}
	case "-l", "-L":
		b.link = append(b.link, it.opt+it.value)
	case "-O":
		b.host = append(b.host, "-O"+it.value)
	case "-D", "-U", "-I":
		b.both = append(b.both, it.opt+it.value)
	case "-isystem", "-include":
		b.both = append(b.both, it.opt, it.value)
	case "-std":
		b.standard = true
		b.both = append(b.both, "-std="+it.value)
	case "-default-stream":
		if it.value == "per-thread" {
			b.both = append(b.both, "-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1")
		}
	case "-g":
		b.lines = true
		b.host = append(b.host, "-g")
	case "-lineinfo", "-code", "-cudart", "-Xcicc", "-Xptxas", "-Xcudafe", "-Xnvlink", "-maxrregcount", "-t", "-diag-suppress", "-Werror", "-x", "-m":
	default:
		return b.other(it)
	}
	return nil
}

func (b *clangBuild) other(it item) error {
	switch text := it.text(); {
	case strings.HasPrefix(text, "-O"):
		b.host = append(b.host, text)
	case strings.HasPrefix(text, "--expt-"), strings.HasPrefix(text, "-expt-"), text == "--extended-lambda", text == "-extended-lambda":
	case strings.HasPrefix(text, "--offload-arch="), strings.HasPrefix(text, "--cuda-gpu-arch="):
		_, b.arch, _ = strings.Cut(text, "=")
	default:
		b.both = append(b.both, it.raw...)
	}
	return nil
}

// realArch is clang's architecture for a virtual one.
func realArch(arch string) string {
	if n, ok := strings.CutPrefix(arch, "compute_"); ok {
		return "sm_" + n
	}
	return arch
}

// shims writes the headers that clang includes and newer toolkits do not have, and returns their folder.
func (b *clangBuild) shims() (string, error) {
	dir := filepath.Join(b.tmp, "include")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"texture_fetch_functions.h", "curand_mtgp32_kernel.h"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// cuda returns the flags for a CUDA source. Clang's own header of texture functions needs types that CUDA 12 and newer
// do not have. The toolkit's headers declare functions with variable arguments, which are not called.
func (b *clangBuild) cuda() ([]string, error) {
	shims, err := b.shims()
	if err != nil {
		return nil, err
	}
	f := []string{"-x", "cuda", "--cuda-path=" + b.toolkit, "-Wno-unknown-cuda-version", "-isystem", shims, "-D_NV_RSQRT_SPECIFIER=",
		"-D__CLANG_CUDA_TEXTURE_INTRINSICS_H__", "-isystem", filepath.Join(b.toolkit, "include", "cccl"), "-Xclang", "-fcuda-allow-variadic-functions"}
	if !b.standard {
		f = append(f, "-std=c++17")
	}
	if b.o.RuntimeDir != "" {
		f = append(f, "-I"+b.o.RuntimeDir) // fencepost.h
	}
	return append(f, b.both...), nil
}

// ptx compiles the device code of a source.
func (b *clangBuild) ptx(ctx context.Context, source, out string) error {
	flags, err := b.cuda()
	if err != nil {
		return err
	}
	// The combiner would narrow the update of a word to a byte.
	err = b.call(ctx, b.o.Clang, slices.Concat(flags, []string{"--cuda-device-only", "--cuda-gpu-arch=" + b.arch, "-S", "-O0", "-gline-directives-only",
		"-mllvm", "-combiner-shrink-load-replace-store-with-store=0", "-o", out, source}))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(b.path(out))
	if err == nil && aligned.Match(text) {
		b.notes = append(b.notes, fmt.Sprintf("%s has atomic operations of bytes or halves, which libcu++ makes of words: with clang they are judged as those of "+
			"the word, so races with its other bytes, and around it, may be reported that are none. Use nvcc to be sure", source))
	}
	return err
}

// path is the path of a file that the compilers name.
func (b *clangBuild) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(b.o.Dir, name)
}

// aligned matches the code that computes the address of a word from that of a part of it.
var aligned = regexp.MustCompile(`(?m)^\s*and\.b64\s+%rd\d+, %rd\d+, -[24];(?s:.*?)\satom\.[a-z.]*cas\.`)

// object compiles a source to an object that contains the PTX of its device code.
func (b *clangBuild) object(ctx context.Context, source, base string) (string, error) {
	out := base + ".o"
	host := slices.Concat([]string{"-fno-optimize-sibling-calls"}, b.host, []string{"-c", "-o", out, source})
	if !b.lines {
		host = append([]string{"-g1"}, host...)
	}
	if filepath.Ext(source) != ".cu" {
		include := []string{"-I" + filepath.Join(b.toolkit, "include")}
		return out, b.call(ctx, b.o.Clang, slices.Concat(include, b.both, host))
	}
	if err := b.ptx(ctx, source, base+".ptx"); err != nil {
		return "", err
	}
	fatbinary := &Tool{Name: "fatbinary", Path: filepath.Join(b.toolkit, "bin", "fatbinary")}
	image := fmt.Sprintf("--image3=kind=ptx,sm=%s,file=%s.ptx", strings.TrimPrefix(b.arch, "sm_"), base)
	if err := b.call(ctx, fatbinary, []string{"-64", "--create", base + ".fatbin", image}); err != nil {
		return "", err
	}
	flags, err := b.cuda()
	if err != nil {
		return "", err
	}
	// The stub of a kernel, which is not declared inline, would otherwise be mistaken for the place of the launch.
	return out, b.call(ctx, b.o.Clang, slices.Concat(flags, []string{"--cuda-host-only", "-finline-hint-functions", "-Xclang", "-fcuda-include-gpubinary", "-Xclang", base + ".fatbin"}, host))
}

// program compiles all sources and links them with Fencepost's runtime library.
func (b *clangBuild) program(ctx context.Context) error {
	lib, err := libraryDir(b.o.RuntimeDir, b.o.NVCC.Major)
	if err != nil {
		return err
	}
	args := []string{"-o", b.o.Out}
	for i, in := range b.inputs {
		switch filepath.Ext(in) {
		case ".cu", ".cpp", ".cc", ".cxx", ".c":
			if in, err = b.object(ctx, in, filepath.Join(b.tmp, fmt.Sprintf("%d", i))); err != nil {
				return err
			}
		}
		args = append(args, in)
	}
	args = slices.Concat(args, []string{"-L" + lib}, b.link, []string{"-lcudart_static", "-lstdc++", "-lm", "-lpthread", "-ldl", "-lrt"})
	return b.call(ctx, b.o.Clang, args)
}

func (b *clangBuild) call(ctx context.Context, tool *Tool, args []string) error {
	cmd := exec.CommandContext(ctx, tool.Path, args...)
	cmd.Dir, cmd.Env = b.o.Dir, b.o.Env
	cmd.Stdout, cmd.Stderr = b.o.Output, b.o.Output
	procgroup.Set(cmd)
	cmd.WaitDelay = 2 * time.Second
	return exitError(ctx, tool.Name, cmd.Run())
}

// clang builds with clang: the PTX of a source to the file ptx, or a program if ptx is "".
func (o *BuildOptions) clang(ctx context.Context, args []string, source, ptx string) (notes []string, err error) {
	tmp, err := os.MkdirTemp("", "fencepost-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	b, err := o.newClang(args, tmp)
	if err != nil {
		return nil, err
	}
	if ptx != "" {
		err = b.ptx(ctx, source, ptx)
	} else {
		err = b.program(ctx)
	}
	return b.notes, err
}
