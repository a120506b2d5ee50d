package toolchain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake writes a program that prints text when its version is queried.
func fake(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat <<'EOF'\n"+text+"\nEOF\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func nvccText(version string) string {
	parts := strings.Split(version, ".")
	return "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release " + parts[0] + "." + parts[1] + ", V" + version + "\nBuild cuda_1.2.r3"
}

// requireShell skips the test if the fake compilers cannot run.
func requireShell(t *testing.T) {
	t.Helper()
	for _, p := range []string{"/bin/sh", "/bin/cat"} {
		if !executable(p) {
			t.Skip("no " + p)
		}
	}
}

// finder returns a Finder that uses only the given variables and the toolkits under root.
func finder(root string, vars map[string]string) *Finder {
	return &Finder{Roots: []string{filepath.Join(root, "usr", "cuda-*")}, Getenv: func(n string) string { return vars[n] }}
}

func TestFindNVCC(t *testing.T) {
	requireShell(t)
	root := t.TempDir()
	sub := func(s string) string { return filepath.Join(root, s) }
	fake(t, sub("p/nvcc"), nvccText("12.4.131"))
	fake(t, sub("home/bin/nvcc"), nvccText("11.8.89"))
	fake(t, sub("venv/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc"), nvccText("13.5.37"))
	fake(t, sub("venv/lib/python3.11/site-packages/nvidia/cu9/bin/nvcc"), nvccText("9.0.1"))
	fake(t, sub("usr/cuda-12.9/bin/nvcc"), nvccText("12.9.1"))
	fake(t, sub("usr/cuda-12.10/bin/nvcc"), nvccText("12.10.2"))
	fake(t, sub("wrapper/nvcc"), "calls fencepost nvcc\n"+nvccText("1.0.0"))
	fake(t, sub("odd/nvcc"), "something else")
	for _, c := range []struct {
		name    string
		flag    string
		vars    map[string]string
		version string
		from    string
	}{
		{"flag", sub("home/bin/nvcc"), map[string]string{"PATH": sub("p")}, "11.8.89", "--nvcc"},
		{"flag by name", "nvcc", map[string]string{"PATH": sub("p")}, "12.4.131", "--nvcc"},
		{"PATH", "", map[string]string{"PATH": sub("p"), "CUDA_HOME": sub("home")}, "12.4.131", "PATH"},
		{"variable of ours", "", map[string]string{"PATH": sub("p"), "FENCEPOST_NVCC": sub("home/bin/nvcc")}, "11.8.89", "FENCEPOST_NVCC"},
		{"wrapper in PATH", "", map[string]string{"PATH": sub("wrapper") + ":" + sub("p")}, "12.4.131", "PATH"},
		{"not nvcc in PATH", "", map[string]string{"PATH": sub("odd"), "CUDA_HOME": sub("home")}, "11.8.89", "CUDA_HOME"},
		{"CUDA_PATH", "", map[string]string{"CUDA_PATH": sub("home")}, "11.8.89", "CUDA_PATH"},
		{"venv", "", map[string]string{"VIRTUAL_ENV": sub("venv")}, "13.5.37", "VIRTUAL_ENV"},
		{"install folders, newest first", "", nil, "12.10.2", sub("usr/cuda-12.10")},
	} {
		f := finder(root, c.vars)
		f.NVCC = c.flag
		got, err := f.FindNVCC(context.Background())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.Version != c.version || got.From != c.from {
			t.Errorf("%s: %s from %s, want %s from %s", c.name, got.Version, got.From, c.version, c.from)
		}
	}
}

func TestFindNVCCInPython(t *testing.T) {
	requireShell(t)
	root := t.TempDir()
	fake(t, filepath.Join(root, "site", "nvidia", "cu13", "bin", "nvcc"), nvccText("13.0.48"))
	fake(t, filepath.Join(root, "p", "python3"), filepath.Join(root, "site")+"\n/absent")
	f := finder(root, map[string]string{"PATH": filepath.Join(root, "p")})
	got, err := f.FindNVCC(context.Background())
	if err != nil || got.Version != "13.0.48" || got.Major != 13 || got.Minor != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNothingFound(t *testing.T) {
	root := t.TempDir()
	f := finder(root, nil)
	var m *Missing
	_, err := f.FindNVCC(context.Background())
	if !errors.As(err, &m) || !strings.Contains(err.Error(), PipLine) {
		t.Errorf("nvcc: %v", err)
	}
	if _, err = f.FindCC(context.Background()); !errors.As(err, &m) || m.What != "host C compiler" {
		t.Errorf("cc: %v", err)
	}
	if _, err = f.FindClang(context.Background()); !errors.As(err, &m) || m.Remedy != clangRemedy {
		t.Errorf("clang: %v", err)
	}
	f.NVCC = filepath.Join(root, "nowhere", "nvcc")
	if _, err = f.FindNVCC(context.Background()); !errors.As(err, &m) || !strings.Contains(err.Error(), f.NVCC) {
		t.Errorf("--nvcc: %v", err)
	}
	for _, c := range Doctor(context.Background(), f) {
		if c.Problem == "" || c.Remedy == "" || c.Tool != nil {
			t.Errorf("doctor: %+v", c)
		}
	}
}

func TestFindHostCompilers(t *testing.T) {
	requireShell(t)
	root := t.TempDir()
	p := filepath.Join(root, "p")
	fake(t, filepath.Join(p, "gcc"), "gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright")
	fake(t, filepath.Join(p, "clang"), "Debian clang version 13.0.1\nTarget: x86_64")
	f := finder(root, map[string]string{"PATH": p, "CC": "tcc -m64"})
	cc, err := f.FindCC(context.Background())
	if err != nil || cc.Path != filepath.Join(p, "gcc") || cc.Major != 12 {
		t.Errorf("cc: %+v, %v", cc, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fake(t, filepath.Join(p, "nvcc"), nvccText("13.5.37"))
	for _, name := range []string{self + " nvcc", "nvcc -O2", filepath.Join(p, "nvcc")} {
		f := finder(root, map[string]string{"PATH": p, "CC": name})
		if cc, err := f.FindCC(context.Background()); err != nil || cc.Path != filepath.Join(p, "gcc") {
			t.Errorf("CC=%s: %+v, %v", name, cc, err)
		}
	}
	if _, err = f.FindClang(context.Background()); err == nil || !strings.Contains(err.Error(), "is 13.0.1") {
		t.Errorf("an old clang: %v", err)
	}
	fake(t, filepath.Join(p, "clang-19"), "Debian clang version 19.1.7 (3+b1)\nTarget: x86_64")
	clang, err := f.FindClang(context.Background())
	if err != nil || clang.Version != "19.1.7" || clang.Major != 19 || clang.Minor != 1 {
		t.Errorf("clang: %+v, %v", clang, err)
	}
}

// TestIncompleteToolkit checks that an incomplete toolkit from pip is distinguished from a program with an error.
func TestIncompleteToolkit(t *testing.T) {
	requireShell(t)
	root := t.TempDir()
	top := filepath.Join(root, "nvidia", "cu13")
	path := fake(t, filepath.Join(top, "bin", "nvcc"), nvccText("13.5.37"))
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'sh: 1: cicc: not found'\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	nvcc := &Tool{Name: "nvcc", Path: path, Major: 13}
	_, err := BuildProgram(context.Background(), BuildOptions{NVCC: nvcc, Sources: []string{"a.cu"}, Out: filepath.Join(root, "a")})
	var m *Missing
	if !errors.As(err, &m) || m.Remedy != "run: pip install nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl" {
		t.Errorf("error %v", err)
	}
	for _, f := range []string{"nvvm/bin/cicc", "include/cuda_runtime.h", "include/crt/host_config.h", "include/cccl/x"} {
		fake(t, filepath.Join(top, f), "")
	}
	var failed *CompileError
	_, err = BuildProgram(context.Background(), BuildOptions{NVCC: nvcc, Sources: []string{"a.cu"}, Out: filepath.Join(root, "a")})
	if !errors.As(err, &failed) || failed.Code != 127 {
		t.Errorf("error %v", err)
	}
}
