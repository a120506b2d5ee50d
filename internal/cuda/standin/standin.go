// Package standin contains the sources of the stand-in CUDA libraries (src), and builds them with the host's C
// compiler.
//
// The libraries share one base, the connection to the checker (src/wire.h, src/bottom.h), and have two interfaces: the
// runtime API (src/cudart.c, as libcudart.so.12, libcudart.so.13 and libcudart_static.a) and the driver API
// (src/cuda.c, libcuda.so.1). There are also libraries that compute on the host what NVIDIA's libraries, which are
// machine code, compute on a device (src/cublas.c, src/curand.c). For programs that compile at run time, there are
// libraries that forward their calls to NVIDIA's and choose PTX as the output (src/nvrtc.c, src/nvjitlink.c), and a
// ptxas that does the same.
package standin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/python"
)

//go:generate go run ../calls/gen

//go:embed src
var sources embed.FS

// Python is the folder, within that of the libraries, for Python programs.
const Python = "python"

// Header is the file, next to each static runtime library, that sources include first to make programs that start
// themselves under the checker.
const Header = "instrumented.h"

// output is one library: the compiler's arguments, in which {out} and {src} are replaced.
type output struct {
	file string
	args []string
}

var common = []string{"-std=gnu11", "-O1", "-g0", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wno-unused-function", "-I{src}"}

var outputs = []output{
	{"cudart13.o", []string{"-DFP_RUNTIME=13", "-c", "{src}/cudart.c"}},
	{"cudart12.o", []string{"-DFP_RUNTIME=12", "-c", "{src}/cudart.c"}},
	{"libcudart.so.13", []string{"-shared", "-Wl,-soname,libcudart.so.13,-z,nodelete,--version-script={src}/cudart13.map", "{dir}/cudart13.o", "-lpthread", "-ldl"}},
	{"libcudart.so.12", []string{"-shared", "-Wl,-soname,libcudart.so.12,-z,nodelete,--version-script={src}/cudart12.map", "{dir}/cudart12.o", "-lpthread", "-ldl"}},
	{"python/libnvrtc.so.13", nvidia("nvrtc.c", "libnvrtc.so.13", "nvrtc13.map")},
	{"python/libnvrtc.so.12", nvidia("nvrtc.c", "libnvrtc.so.12", "nvrtc12.map")},
	{"python/libnvJitLink.so.13", nvidia("nvjitlink.c", "libnvJitLink.so.13", "nvjitlink13.map")},
	{"python/libnvJitLink.so.12", nvidia("nvjitlink.c", "libnvJitLink.so.12", "nvjitlink12.map")},
	{"libcuda.so.1", []string{"-shared", "-Wl,-soname,libcuda.so.1,-z,nodelete,--version-script={src}/cuda.map", "{src}/cuda.c", "-lpthread", "-ldl"}},
	{calls.ThreadsLibrary, []string{"-shared", "-fexceptions", "-Wl,-soname," + calls.ThreadsLibrary, "{src}/threads.c", "-lpthread", "-ldl"}},
	{calls.GPUWorker, []string{"{src}/gpu.c", "-ldl"}},
	{"libcublas.so.13", computes("cublas", "13")},
	{"libcublas.so.12", computes("cublas", "12")},
	{"libcurand.so.10", computes("curand", "10")},
}

// computes returns the arguments for a library of Fencepost that computes on the host. It finds libcuda.so.1 in its own
// folder.
func computes(name, major string) []string {
	return []string{"-shared", "-O3", "-ffast-math", "-fno-finite-math-only", "-Wl,-soname,lib" + name + ".so." + major + ",-z,nodelete,-rpath,$ORIGIN,--version-script={src}/" + name + ".map", "{src}/" + name + ".c", "-L{dir}", "-l:libcuda.so.1", "-lm"}
}

// nvidia returns the arguments for a library that precedes one of NVIDIA's and forwards calls to it.
func nvidia(source, soname, names string) []string {
	_, major, _ := strings.Cut(soname, ".so.")
	return []string{"-shared", "-DFP_MAJOR=\"" + major + "\"", "-Wl,-soname," + soname + ",-z,nodelete,--version-script={src}/" + names, "{src}/" + source, "-lpthread", "-ldl"}
}

// Key identifies the libraries that a compiler makes from these sources: it is the name of their folder in the cache.
func Key(cc string) string {
	h := sha256.New()
	for _, files := range []embed.FS{sources, python.Files} {
		err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := files.ReadFile(path)
			fmt.Fprintf(h, "%s %d\n%s", path, len(data), data)
			return err
		})
		if err != nil {
			panic("BUG: embedded sources: " + err.Error())
		}
	}
	fmt.Fprintf(h, "%s %v %v", cc, common, outputs)
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// Build returns the folder with the stand-in libraries. It builds them with the C compiler cc if cacheDir does not
// contain them completely.
//
// The folder contains libcudart.so.12, libcudart.so.13, libcudart.so (linked to .13), libcudart_static.a for CUDA 13
// (the folder cuda12 has the last two for CUDA 12), libcuda.so.1 and libcuda.so, libcublas.so.12 and .13,
// libcurand.so.10; the program that drives a GPU; in the folder Python, Fencepost's Python modules, libnvrtc,
// libnvJitLink and ptxas; and Header and fencepost.h. Several processes may build concurrently: the last one wins, and
// all results are equal.
func Build(ctx context.Context, cc, cacheDir string) (dir string, err error) {
	dir = filepath.Join(cacheDir, "standin-"+Key(cc))
	if whole(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", &FolderError{err}
	}
	work, err := os.MkdirTemp(cacheDir, "building-")
	if err != nil {
		return "", &FolderError{err}
	}
	defer os.RemoveAll(work)
	if err := build(ctx, cc, work); err != nil {
		return "", noRoom(cacheDir, err)
	}
	// Remove an incomplete folder. Another process may do the same.
	for range 3 {
		if err = os.Rename(work, dir); err == nil || whole(dir) {
			return dir, nil
		}
		old := work + "-old"
		_ = os.Rename(dir, old)
		_ = os.RemoveAll(old)
	}
	return "", &FolderError{err}
}

// FolderError says that a folder cannot hold the libraries.
type FolderError struct{ Err error }

func (e *FolderError) Error() string {
	return "the stand-in CUDA libraries are built on first use and kept in the cache folder, which failed: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *FolderError) Unwrap() error { return e.Err }

// noRoom returns a FolderError for a build error if the folder accepts no files: the compiler's message would not help.
func noRoom(folder string, err error) error {
	probe, e := os.MkdirTemp(folder, "building-")
	if e != nil {
		return &FolderError{errors.Join(e, err)}
	}
	defer os.RemoveAll(probe)
	if e := os.WriteFile(filepath.Join(probe, "probe"), make([]byte, 1<<20), 0o644); e != nil {
		return &FolderError{errors.Join(e, err)}
	}
	return err
}

// sums is the file that completes a folder of libraries: the digest of all others.
const sums = "complete"

// whole reports whether a folder contains the libraries as they were built: a full disk or a cleaner may have removed
// some.
func whole(dir string) bool {
	want, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		return false
	}
	got, err := digest(dir)
	return err == nil && bytes.Equal(got, want)
}

// digest lists the files of a folder with their digests and the links with their targets.
func digest(dir string) ([]byte, error) {
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, dir)
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__": // Python keeps compiled files there
			return fs.SkipDir
		case d.IsDir() || name == "/"+sums:
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(&b, "%s -> %s\n", name, target)
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %x\n", name, sha256.Sum256(data))
		return err
	})
	return b.Bytes(), err
}

// build makes all libraries in work.
func build(ctx context.Context, cc, work string) error {
	src := filepath.Join(work, "src")
	if err := os.CopyFS(work, sources); err != nil {
		return err
	}
	fill := strings.NewReplacer("{src}", src, "{dir}", work)
	if err := os.CopyFS(filepath.Join(work, Python), python.Files); err != nil {
		return err
	}
	for _, o := range outputs {
		args := []string{"-o", filepath.Join(work, o.file)}
		for _, a := range append(common[:len(common):len(common)], o.args...) {
			args = append(args, fill.Replace(a))
		}
		if text, err := exec.CommandContext(ctx, cc, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("building %s with %s: %w\n%s", o.file, cc, err, text)
		}
	}
	if err := os.Mkdir(filepath.Join(work, "cuda12"), 0o755); err != nil {
		return err
	}
	if err := errors.Join(archive(work, "cudart13.o", "libcudart_static.a"), archive(work, "cudart12.o", "cuda12/libcudart_static.a")); err != nil {
		return err
	}
	links := map[string]string{"libcudart.so": "libcudart.so.13", "libcuda.so": "libcuda.so.1", "libcublas.so": "libcublas.so.13", "libcurand.so": "libcurand.so.10",
		"cuda12/libcublas.so": "../libcublas.so.12", "cuda12/libcudart.so": "../libcudart.so.12"}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			return err
		}
	}
	script, err := os.ReadFile(filepath.Join(src, "ptxas"))
	if err != nil {
		return err
	}
	for _, name := range []string{"ptxas", "ptxas-blackwell"} {
		if err := os.WriteFile(filepath.Join(work, Python, name), script, 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{Header, "fencepost.h"} {
		header, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			return err
		}
		for _, folder := range []string{".", "cuda12"} {
			if err := os.WriteFile(filepath.Join(work, folder, name), header, 0o644); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	all, err := digest(work)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, sums), all, 0o644)
}

// archive makes a static library of one object.
func archive(dir, object, name string) error {
	data, err := os.ReadFile(filepath.Join(dir, object))
	if err != nil {
		return err
	}
	symbols, err := definedSymbols(data)
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	return os.WriteFile(filepath.Join(dir, name), arArchive("cudart.o", data, symbols), 0o644)
}
