// Command build compiles the benchmark kernels to PTX with the nvcc of this machine. NAME.O0.ptx keeps every access
// where the source has it. NAME.ptx is nvcc's default output. "go generate ./internal/bench" runs the command in the
// folder internal/bench.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"fencepost.dev/fencepost/internal/toolchain"
)

// variants are the two compilations of a kernel: the suffix of the PTX file, and nvcc's flags.
var variants = []struct {
	suffix string
	flags  []string
}{
	{".O0.ptx", []string{"-lineinfo", "-Xcicc", "-O0", "-arch=compute_80", "-ptx"}},
	{".ptx", []string{"-lineinfo", "-arch=compute_80", "-ptx"}},
}

func main() {
	if err := build(filepath.Join("kernels", "*.cu")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// build compiles the sources that match a pattern.
func build(pattern string) error {
	nvcc, err := new(toolchain.Finder).FindNVCC(context.Background())
	if err != nil {
		return err
	}
	sources, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, source := range sources {
		for _, v := range variants {
			errs = append(errs, compile(nvcc.Path, source, v.suffix, v.flags))
		}
	}
	return errors.Join(errs...)
}

// compile writes the PTX of a source next to it. The output does not depend on the folders of the source and of the
// toolkit.
func compile(nvcc, source, suffix string, flags []string) error {
	dir, file := filepath.Split(source)
	out := strings.TrimSuffix(file, ".cu") + suffix
	cmd := exec.Command(nvcc, append([]string{file, "-o", out}, flags...)...)
	cmd.Dir = dir
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", source, err, msg)
	}
	ptx, err := os.ReadFile(filepath.Join(dir, out))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, out), neutral(ptx), 0o644)
}

var (
	fileLine = regexp.MustCompile(`(?m)^(\t\.file\t\d+ ").*?([^/"]*)"$`)
	internal = regexp.MustCompile(`_INTERNAL_[0-9a-f]{8}_`)
	// The same name as bytes in .debug_str, which the compiler writes as decimal numbers.
	internalBytes = regexp.MustCompile(`95,73,78,84,69,82,78,65,76,95,(?:\d+,){8}95\b`)
)

// neutral removes from the PTX what depends on the folders of the source and of the toolkit: the folders in .file
// directives, and the hash of the source's absolute path in the names of internal functions. The flag -frandom-seed
// does not change that hash.
func neutral(ptx []byte) []byte {
	ptx = fileLine.ReplaceAll(ptx, []byte(`${1}${2}"`))
	ptx = internal.ReplaceAll(ptx, []byte("_INTERNAL_00000000_"))
	return internalBytes.ReplaceAll(ptx, []byte("95,73,78,84,69,82,78,65,76,95,48,48,48,48,48,48,48,48,95"))
}
