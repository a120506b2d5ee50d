package bench

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/toolchain"
)

//go:embed native/main.c
var nativeMain embed.FS

// nativeFlags are the compiler flags of the C versions.
var nativeFlags = []string{"-O3", "-march=native"}

// Native is the compiled C versions of the kernels.
type Native struct {
	Compiler string // "clang 19.1.7 -O3 -march=native"
	path     string
}

// BuildNative compiles the C versions to one program in dir, with clang or, if there is none, with the host C compiler.
// If there is neither, the error is a *toolchain.Missing.
func BuildNative(ctx context.Context, dir string) (*Native, error) {
	cc, err := findCompiler(ctx)
	if err != nil {
		return nil, err
	}
	list, sources := "", []string{"main.c"}
	text, err := nativeMain.ReadFile("native/main.c")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.c"), text, 0o666); err != nil {
		return nil, err
	}
	for _, k := range Kernels() {
		text, err := files.ReadFile("kernels/" + k.Name + ".c")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, k.Name+".c"), text, 0o666); err != nil {
			return nil, err
		}
		sources = append(sources, k.Name+".c")
		list += "KERNEL(" + k.Name + ")\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "list.h"), []byte(list), 0o666); err != nil {
		return nil, err
	}
	args := append(append([]string{"-std=c11", "-o", "native"}, nativeFlags...), sources...)
	cmd := exec.CommandContext(ctx, cc.Path, append(args, "-lm")...)
	cmd.Dir = dir
	if msg, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cc.Name, err, msg)
	}
	name := strings.TrimSpace(cc.Name + " " + cc.Version + " " + strings.Join(nativeFlags, " "))
	return &Native{Compiler: name, path: filepath.Join(dir, "native")}, nil
}

func findCompiler(ctx context.Context) (*toolchain.Tool, error) {
	var finder toolchain.Finder
	cc, err := finder.FindClang(ctx)
	var missing *toolchain.Missing
	if errors.As(err, &missing) {
		return finder.FindCC(ctx)
	}
	return cc, err
}

// Run runs a kernel's C version for about budget, at least five times, and returns the median time.
func (n *Native) Run(ctx context.Context, k *Kernel, p *Problem, budget time.Duration) (*Run, error) {
	cmd := exec.CommandContext(ctx, n.path, k.Name)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nativeInput(p, budget), &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s, native: %w\n%s", k.Name, err, errs.Bytes())
	}
	head, err := out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s, native: no time in its output", k.Name)
	}
	first, _, _ := strings.Cut(head, " ")
	nanoseconds, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s, native: %w", k.Name, err)
	}
	run := &Run{Elapsed: time.Duration(nanoseconds), Results: p.results()}
	for _, r := range run.Results {
		if _, err := io.ReadFull(&out, r); err != nil {
			return nil, fmt.Errorf("%s, native: results: %w", k.Name, err)
		}
	}
	return run, nil
}

// nativeInput returns the input of native/main.c.
func nativeInput(p *Problem, budget time.Duration) io.Reader {
	var head []byte
	word := func(w uint64) { head = binary.NativeEndian.AppendUint64(head, w) }
	word(uint64(budget.Milliseconds()))
	word(uint64(len(p.Args)))
	for _, a := range p.Args {
		word(a)
	}
	word(uint64(len(p.Buffers)))
	readers := []io.Reader{nil}
	for _, b := range p.Buffers {
		word(uint64(len(b.Data)))
		word(uint64(b.Role))
		readers = append(readers, bytes.NewReader(b.Data))
	}
	readers[0] = bytes.NewReader(head)
	return io.MultiReader(readers...)
}
