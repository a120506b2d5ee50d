package toolchain

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// InstallFolder is the folder of Install in the user's cache: a Python environment of its own. It is "" if there is no
// cache.
func (f *Finder) InstallFolder() string {
	cache := f.env("XDG_CACHE_HOME")
	if cache == "" && f.env("HOME") != "" {
		cache = filepath.Join(f.env("HOME"), ".cache")
	}
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "fencepost", "compiler")
}

// nvccInstalled looks in the folder of Install.
func (f *Finder) nvccInstalled(context.Context) ([]candidate, string) {
	dir := f.InstallFolder()
	if dir == "" {
		return nil, "the cache of the user, who has none"
	}
	return inPackages(filepath.Join(escapeGlob(dir), "lib", "python3*", "site-packages"), "fencepost doctor --install"), dir
}

// Install installs a CUDA compiler into the folder, with pip, and shows pip's output. It first removes the remains of
// an earlier attempt.
func (f *Finder) Install(ctx context.Context, out io.Writer) (*Tool, error) {
	dir, python := f.InstallFolder(), f.inPath("python3")
	if dir == "" {
		return nil, &Missing{What: "a cache folder", Remedy: "set HOME or XDG_CACHE_HOME"}
	}
	if python == "" {
		return nil, &Missing{What: "python3", Looked: []string{"PATH"}, Remedy: "install Python 3 with its module venv (Debian, Ubuntu: apt-get install python3-venv)"}
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	pip := strings.Fields(PipLine)
	for _, args := range [][]string{
		{python, "-m", "venv", dir},
		append([]string{filepath.Join(dir, "bin", "python3"), "-m"}, pip...),
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			os.RemoveAll(dir)
			return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	list, _ := f.nvccInstalled(ctx)
	for _, c := range list {
		if t, err := probe(ctx, "nvcc", c.path, c.from); err == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("pip has installed no nvcc that runs into %s", dir)
}
