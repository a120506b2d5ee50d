package toolchain

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultArch is the architecture of sources if the caller names none: that of the default device.
const DefaultArch = "compute_80"

// startHeader makes programs built with -instrument start themselves under the checker. internal/cuda/standin puts it
// next to the runtime.
const startHeader = "instrumented.h"

// Rewrite configures Wrap.
type Rewrite struct {
	RuntimeDir string // folder of Fencepost's libcudart_static.a and libcudart.so, searched before the toolkit's; "" for none
	Intrinsics string // a file that writeIntrinsics wrote, for each source to include; "" for none
	// ReadFile reads a response file (-optf). If it is nil, response files are passed on unread.
	ReadFile func(name string) ([]byte, error)
}

// Wrap rewrites the arguments of an nvcc call so that the same call produces code that can be checked. PTX is embedded
// in place of machine code, with source lines and with every access of the source in its place (-lineinfo -Xcicc -O0),
// and Fencepost's static runtime is linked in place of NVIDIA's. The additional option -instrument MODE makes programs
// that start themselves under "fencepost run --device auto". Everything else stays as the caller wrote it, so that
// makefiles and CMake need not know. The notes, one line each, name the options of the caller that were overruled.
//
// Calls that make no PTX (-cubin and the like, --version, --help) are not changed. The error is a *UsageError or that
// of ReadFile.
func Wrap(args []string, r Rewrite) (out, notes []string, err error) {
	items, err := parseArgs(args, r.ReadFile)
	if err != nil {
		return nil, nil, err
	}
	if i := slices.IndexFunc(items, func(it item) bool { return informs[it.opt] }); i >= 0 {
		return args, nil, nil
	}
	if i := slices.IndexFunc(items, func(it item) bool { return makesNoPTX[it.opt] }); i >= 0 {
		return args, []string{items[i].opt + " makes no PTX: its output cannot be checked"}, nil
	}
	w := wrapper{r: r, debug: slices.ContainsFunc(items, func(it item) bool { return it.opt == "-G" })}
	for _, it := range items {
		if err := w.take(it); err != nil {
			return nil, nil, err
		}
	}
	targets := w.targets()
	return append(w.prefix(targets), w.kept...), w.notes, nil
}

// UsageError is an argument of the caller that could not be parsed.
type UsageError struct{ Msg string }

// Error returns the message.
func (e *UsageError) Error() string { return e.Msg }

// informs are the calls that compile nothing.
var informs = map[string]bool{"-V": true, "-h": true, "-arch-ls": true, "-code-ls": true}

// makesNoPTX are the output kinds without PTX.
var makesNoPTX = map[string]bool{
	"-cubin": true, "-optix-ir": true, "-ltoir": true, "-tilebc": true, "-tilecubin": true, "-tilefatbin": true,
}

type wrapper struct {
	r       Rewrite
	debug   bool // -G: it disables the optimiser itself, in a way that conflicts with -Xcicc -O0
	kept    []string
	notes   []string
	arch    string // the last -arch
	gencode []string
	mode    string // of -instrument; "" without it
	lines   bool   // the caller requests debugging information of the host code
	calls   bool   // the caller says whether calls in the host code may become jumps
	hostL   bool   // the caller passes -L to the host linker through -Xcompiler, which precedes nvcc's own
}

func (w *wrapper) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(w.notes, n) {
		w.notes = append(w.notes, n)
	}
}

// take handles one argument: it is kept, recorded for later or dropped.
func (w *wrapper) take(it item) error {
	switch it.opt {
	case "-instrument":
		if it.value != "log" && it.value != "hirace" {
			return &UsageError{fmt.Sprintf("%s: the mode is log or hirace", it.text())}
		}
		w.mode = it.value
		return nil
	case "-arch":
		w.arch = it.value
		return nil
	case "-code": // which images to make of -arch; the result has its PTX
		return nil
	case "-gencode":
		arch, err := gencodeArch(it.value)
		if err != nil {
			return err
		}
		w.gencode = append(w.gencode, arch)
		return nil
	case "-lineinfo":
		return nil // added again once, unless with -G
	case "-Xcicc":
		w.ciccOptions(it)
		return nil
	case "-Ofc", "-dopt", "-extra-device-vectorization":
		w.note("%s left out: it lets the compiler move memory accesses", it.text())
		return nil
	case "-dlto", "-lto", "-gen-opt-lto":
		w.note("%s left out: link-time optimisation moves memory accesses and embeds no PTX", it.opt)
		return nil
	case "-cudadevrt":
		return nil
	case "-l":
		if it.value == "cudadevrt" {
			return nil // as -cudadevrt none, see prefix
		}
	case "-g", "-G":
		w.lines = true
	case "-Xcompiler":
		w.lines = w.lines || slices.ContainsFunc(strings.Split(it.value, ","), func(s string) bool { return strings.HasPrefix(s, "-g") })
		w.calls = w.calls || strings.Contains(it.value, "optimize-sibling-calls")
		w.hostL = w.hostL || slices.ContainsFunc(strings.Split(it.value, ","), func(s string) bool { return strings.HasPrefix(s, "-L") })
	case "":
		if w.r.RuntimeDir != "" && filepath.Base(it.value) == "libcudart_static.a" {
			w.note("%s: our own runtime library is linked in its place", it.value)
			w.kept = append(w.kept, filepath.Join(w.r.RuntimeDir, "libcudart_static.a"))
			return nil
		}
	}
	w.kept = append(w.kept, it.raw...)
	return nil
}

// ciccOptions keeps the options for the device compiler except the optimisation level, which may be given only once.
func (w *wrapper) ciccOptions(it item) {
	var keep []string
	for o := range strings.SplitSeq(it.value, ",") {
		if len(o) == 3 && strings.HasPrefix(o, "-O") && o[2] >= '0' && o[2] <= '9' {
			if o != "-O0" {
				w.note("-Xcicc %s left out: it lets the compiler move memory accesses", o)
			}
			continue
		}
		keep = append(keep, o)
	}
	if len(keep) > 0 {
		w.kept = append(w.kept, "-Xcicc", strings.Join(keep, ","))
	}
}

// targets returns the virtual architectures to compile for, in the caller's order.
func (w *wrapper) targets() []string {
	var list []string
	switch w.arch {
	case "":
	case "all", "all-major", "native":
		if len(w.gencode) == 0 {
			w.note("-arch=%s: compiled for %s alone", w.arch, DefaultArch)
			list = append(list, DefaultArch)
		}
	default:
		list = append(list, virtual(w.arch))
	}
	for _, g := range w.gencode {
		if !slices.Contains(list, g) {
			list = append(list, g)
		}
	}
	if len(list) == 0 {
		list = []string{DefaultArch}
	}
	return list
}

// prefix returns the arguments that Wrap adds. They come first so that Fencepost's library folder is searched first.
func (w *wrapper) prefix(targets []string) []string {
	var p []string
	if dir := w.r.RuntimeDir; dir != "" {
		if p = append(p, "-L", dir, "-I", dir); w.hostL { // fencepost.h is there too
			p = append(p, "-Xcompiler", "-L"+dir)
		}
		if w.mode != "" {
			p = append(p, "-include", filepath.Join(dir, startHeader), "-DFENCEPOST_INSTRUMENT="+w.mode)
		}
	}
	if w.r.Intrinsics != "" {
		p = append(p, "-include", w.r.Intrinsics)
	}
	// For the places of calls in host code: line tables, and no call that becomes a jump.
	if !w.lines {
		p = append(p, "-Xcompiler", "-g1")
	}
	if !w.calls {
		p = append(p, "-Xcompiler", "-fno-optimize-sibling-calls")
	}
	if !w.debug {
		p = append(p, "-lineinfo", "-Xcicc", "-O0")
	}
	for _, t := range targets {
		p = append(p, "-gencode", "arch="+t+",code="+t)
	}
	// Without this every separately compiled program contains a megabyte of device code that only launches made by
	// kernels would call. The engine supplies those functions.
	return append(p, "-cudadevrt", "none")
}

// virtual returns the virtual architecture of a real or an LTO one: compute_90a for sm_90a.
func virtual(arch string) string {
	for _, p := range []string{"sm_", "lto_"} {
		if n, ok := strings.CutPrefix(arch, p); ok {
			return "compute_" + n
		}
	}
	return arch
}

// gencodeArch returns the virtual architecture of a -gencode value such as arch=compute_80,code=[sm_80,compute_80].
func gencodeArch(value string) (string, error) {
	for part := range strings.SplitSeq(value, ",") {
		if a, ok := strings.CutPrefix(strings.Trim(part, `"' `), "arch="); ok {
			return virtual(strings.Trim(a, `"'`)), nil
		}
	}
	return "", &UsageError{fmt.Sprintf("-gencode %s: there is no arch= in it", value)}
}
