package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/fatbin"
)

// asWrapper is the environment variable that makes the test program act as `fencepost nvcc`. Its value is the folder of
// the runtime library.
const asWrapper = "FENCEPOST_TEST_RUNTIME"

// printOverlay makes it print the folder of the overlay and the error.
const printOverlay = "--overlay"

func TestMain(m *testing.M) {
	dir := os.Getenv(asWrapper)
	if dir == "" {
		os.Exit(m.Run())
	}
	w := Wrapper{
		Runtime: func(context.Context) (string, error) { return dir, nil },
		Cache:   filepath.Join(dir, "cache"),
		Self:    filepath.Join(dir, "fencepost"),
	}
	if os.Args[1] == printOverlay {
		nvcc, err := w.Finder.FindNVCC(context.Background())
		if err == nil {
			dir, err = Overlay(w.Cache, nvcc, dir, w.Self)
		}
		fmt.Println(dir, err)
		return
	}
	code, err := w.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(code)
}

// compilers returns nvcc, and a folder with a runtime library that reports its calls, laid out as in
// internal/cuda/standin. It skips the test if there is no nvcc.
func compilers(t *testing.T) (*Tool, string) {
	t.Helper()
	var f Finder
	nvcc, err := f.FindNVCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	cc, err := f.FindCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	so := "libcudart.so." + fmt.Sprint(nvcc.Major)
	command(t, dir, cc.Path, "-w", "-fPIC", "-c", testFile(t, "runtime.c"), "-o", "runtime.o")
	static, err := libraryDir(dir, nvcc.Major)
	if err != nil {
		t.Skip(err)
	}
	command(t, dir, "mkdir", "-p", static)
	command(t, dir, "ar", "rcs", filepath.Join(static, "libcudart_static.a"), "runtime.o")
	command(t, dir, "ln", "-s", filepath.Join(dir, so), filepath.Join(static, "libcudart.so"))
	command(t, dir, cc.Path, "-shared", "-Wl,-soname,"+so, "-o", so, "runtime.o")
	command(t, dir, "cp", so, "libcuda.so.1")
	return nvcc, dir
}

func testFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// inspect runs a program built from one.cu or from main.cu and twice.cu, and checks what is in it.
func inspect(t *testing.T, path, runtimeDir string, units int, runtime fatbin.Runtime, arch int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+runtimeDir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", path, err, out)
	}
	version := "version 1, units 0"
	if units > 0 {
		version = fmt.Sprintf("version 2, units %d", units)
	}
	if want := "fencepost-standin-: " + version + "\nkernel _Z5storePi\n"; string(out) != want {
		t.Errorf("%s:\n got %swant %s", path, out, want)
	}
	b, err := fatbin.File(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.Runtime != runtime || b.Problem() != nil || b.Format != fatbin.Executable {
		t.Errorf("%s: a %v with runtime %d, want %d; problem %v", path, b.Format, b.Runtime, runtime, b.Problem())
	}
	if len(b.Groups) != 1 || b.Groups[0].Linked != (units > 0) {
		t.Errorf("%s: groups %+v", path, b.Groups)
	}
	for _, g := range b.Groups {
		for _, e := range g.Entries {
			if e.Kind != fatbin.PTX || e.Arch != arch || !bytes.Contains(e.Text, []byte(".loc")) {
				t.Errorf("%s: entry %v for %d, with lines: %v", path, e.Kind, e.Arch, bytes.Contains(e.Text, []byte(".loc")))
			}
		}
	}
}

func TestBuildProgram(t *testing.T) {
	nvcc, dir := compilers(t)
	one, main, twice := testFile(t, "one.cu"), testFile(t, "main.cu"), testFile(t, "twice.cu")
	for i, c := range []struct {
		flags   string
		sources []string
		units   int
		runtime fatbin.Runtime
		arch    int
	}{
		{"", []string{one}, 0, fatbin.StaticOurs, 80},
		{"-cudart shared", []string{one}, 0, fatbin.SharedRuntime, 80},
		{"-rdc=true -O2", []string{main, twice}, 2, fatbin.StaticOurs, 80},
		{"-rdc=true -dlto -arch=sm_90 -cudart=shared", []string{main, twice}, 2, fatbin.SharedRuntime, 90},
		{"-G -Xcicc -O0", []string{one}, 0, fatbin.StaticOurs, 80},
		{"-Xcicc -O3 -Ofc max -gencode arch=compute_75,code=sm_75", []string{one}, 0, fatbin.StaticOurs, 75},
	} {
		if testing.Short() && i > 0 {
			break
		}
		out := filepath.Join(dir, fmt.Sprint("program", i))
		var text bytes.Buffer
		_, err := BuildProgram(t.Context(), BuildOptions{
			NVCC: nvcc, Sources: c.sources, Flags: strings.Fields(c.flags), Out: out, RuntimeDir: dir, Output: &text})
		if err != nil {
			t.Errorf("%s: %v\n%s", c.flags, err, &text)
			continue
		}
		inspect(t, out, dir, c.units, c.runtime, c.arch)
	}
}

// TestArchOfDevice checks that nvcc compiles for the device of --arch, unless the flags name an architecture.
func TestArchOfDevice(t *testing.T) {
	dir := t.TempDir()
	response := filepath.Join(dir, "flags")
	if err := os.WriteFile(response, []byte("-O2 -arch=sm_80"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arch  string
		flags string
		want  string
	}{
		{"", "-O2", ""},
		{"sm_90", "-O2", "-arch=sm_90"},
		{"sm_100f", "", "-arch=sm_100f"},
		{"sm_90", "-O2 -arch=sm_80", ""},
		{"sm_90", "--gpu-architecture sm_80", ""},
		{"sm_90", "-gencode arch=compute_80,code=sm_80", ""},
		{"sm_90", "-optf " + response, ""},
		{"sm_90", "-o -arch", "-arch=sm_90"},
	} {
		o := BuildOptions{Arch: c.arch, Flags: strings.Fields(c.flags)}
		if got := strings.Join(o.archFlag(), " "); got != c.want {
			t.Errorf("--arch %s, flags %q: nvcc gets %q, want %q", c.arch, c.flags, got, c.want)
		}
	}
}

// TestRuntimesToldApart checks that the runtime of stripped programs is recognised too. NVIDIA's library is only
// inspected here, and never executed.
func TestRuntimesToldApart(t *testing.T) {
	if testing.Short() {
		t.Skip("links with NVIDIA's runtime")
	}
	nvcc, dir := compilers(t)
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	sass := filepath.Join(dir, "sass")
	one := testFile(t, "one.cu")
	static, err := libraryDir(dir, nvcc.Major)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := BuildProgram(t.Context(), BuildOptions{NVCC: nvcc, Sources: []string{one}, Out: ours, RuntimeDir: dir}); err != nil {
		t.Fatal(err)
	}
	command(t, dir, nvcc.Path, "-o", theirs, one)
	command(t, dir, nvcc.Path, "-L", static, "-gencode", "arch=compute_80,code=sm_80", "-o", sass, one)
	for _, strip := range []bool{false, true} {
		if strip {
			command(t, dir, "strip", ours, theirs, sass)
		}
		for path, want := range map[string]string{
			ours:   "",
			theirs: "NVIDIA's CUDA runtime is linked into it statically",
			sass:   "it holds machine code (SASS) but no PTX; the machine code is for sm_80",
		} {
			b, err := fatbin.File(path)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			var no *fatbin.CannotRun
			if errors.As(b.Problem(), &no) {
				got = no.Reason
			}
			if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
				t.Errorf("%s, stripped %v: %q, want %q", filepath.Base(path), strip, got, want)
			}
		}
	}
}

func TestCompileError(t *testing.T) {
	nvcc, dir := compilers(t)
	src := filepath.Join(dir, "bad.cu")
	if err := os.WriteFile(src, []byte("__global__ void k() { undeclared = 1; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	var text bytes.Buffer
	_, err := BuildProgram(t.Context(), BuildOptions{NVCC: nvcc, Sources: []string{src}, Out: filepath.Join(dir, "bad"), RuntimeDir: dir, Output: &text})
	var failed *CompileError
	if !errors.As(err, &failed) || failed.Code == 0 || failed.Tool != "nvcc" {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(text.String(), src+`(1): error: identifier "undeclared" is undefined`) {
		t.Errorf("nvcc's message did not come through:\n%s", &text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := BuildProgram(ctx, BuildOptions{NVCC: nvcc, Sources: []string{src}, Out: filepath.Join(dir, "bad")}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func TestBuildPTX(t *testing.T) {
	nvcc, dir := compilers(t)
	again := filepath.Join(dir, "again")
	if err := os.Mkdir(again, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "cp", testFile(t, "twice.cu"), again)
	files, notes, err := BuildPTX(t.Context(), BuildOptions{
		NVCC: nvcc, Sources: []string{testFile(t, "twice.cu"), filepath.Join(again, "twice.cu")}, Flags: []string{"-rdc=true", "-Ofc", "max"}, Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || files[0] == files[1] || len(notes) != 1 {
		t.Fatalf("files %q, notes %q", files, notes)
	}
	for _, p := range files {
		b, err := fatbin.File(p)
		if err != nil || b.Format != fatbin.PTXFile || b.Groups[0].Entries[0].Arch != 80 || !bytes.Contains(b.Groups[0].Entries[0].Text, []byte(".loc")) {
			t.Errorf("%s: %+v, %v", p, b, err)
		}
	}
}

// wrapperScript makes a program that acts like fencepost for `fencepost nvcc`.
func wrapperScript(t *testing.T, nvcc *Tool, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "fencepost")
	text := fmt.Sprintf("#!/bin/sh\nshift\n%s=%s\nFENCEPOST_NVCC=%s\nexport %s FENCEPOST_NVCC\nexec %s \"$@\"\n",
		asWrapper, quote(dir), quote(nvcc.Path), asWrapper, quote(self))
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMakefile(t *testing.T) {
	if testing.Short() {
		t.Skip("several calls of nvcc")
	}
	nvcc, dir := compilers(t)
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	const makefile = `
all: plain linked toolkit
plain: one.o
	$(NVCC) -arch=sm_80 -o $@ $^
linked: main.o twice.o
	$(NVCC) -arch=sm_80 -o $@ $^
toolkit: one.o
	g++ -o $@ $^ -L$(CUDA_PATH)/lib64 -lcudart_static -ldl -lrt -lpthread
one.o: $(SRC)/one.cu
	$(CUDA_PATH)/bin/nvcc -O3 -arch=sm_80 -c -o $@ $<
%.o: $(SRC)/%.cu
	$(NVCC) -O3 -arch=sm_80 -dc -o $@ $<
`
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(makefile), 0o644); err != nil {
		t.Fatal(err)
	}
	self := wrapperScript(t, nvcc, dir)
	toolkit := strings.TrimSuffix(command(t, dir, self, "nvcc", printOverlay), " <nil>\n")
	if again := strings.TrimSuffix(command(t, dir, self, "nvcc", printOverlay), " <nil>\n"); again != toolkit {
		t.Errorf("another overlay for the same toolkit: %s, %s", toolkit, again)
	}
	t.Setenv("NVCC_APPEND_FLAGS", "-lineinfo -Xcicc -O0") // collides with ours unless it is seen
	command(t, dir, "make", "NVCC="+self+" nvcc", "CUDA_PATH="+toolkit, "SRC="+filepath.Dir(testFile(t, "one.cu")))
	inspect(t, filepath.Join(dir, "plain"), dir, 0, fatbin.StaticOurs, 80)
	inspect(t, filepath.Join(dir, "linked"), dir, 2, fatbin.StaticOurs, 80)
	inspect(t, filepath.Join(dir, "toolkit"), dir, 0, fatbin.StaticOurs, 80)
}

func TestCMake(t *testing.T) {
	if testing.Short() {
		t.Skip("CMake tries the compiler out several times")
	}
	nvcc, dir := compilers(t)
	for _, tool := range []string{"cmake", "make", "g++"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	self := wrapperScript(t, nvcc, dir)
	toolkit := strings.TrimSuffix(command(t, dir, self, "nvcc", printOverlay), " <nil>\n")
	build := filepath.Join(dir, "build")
	out := command(t, dir, "cmake", "-G", "Unix Makefiles", "-S", filepath.Dir(testFile(t, "one.cu")), "-B", build,
		"-DCMAKE_CUDA_COMPILER="+toolkit+"/bin/nvcc", "-DCMAKE_CUDA_ARCHITECTURES=80")
	if !strings.Contains(out, "Detecting CUDA compiler ABI info - done") {
		t.Errorf("CMake does not know the compiler:\n%s", out)
	}
	command(t, dir, "cmake", "--build", build, "-j2")
	for name, c := range map[string]struct {
		units   int
		runtime fatbin.Runtime
	}{
		"plain": {0, fatbin.StaticOurs}, "linked": {2, fatbin.StaticOurs}, "library": {2, fatbin.StaticOurs},
		"shared": {0, fatbin.SharedRuntime}, "named": {0, fatbin.StaticOurs},
	} {
		inspect(t, filepath.Join(build, name), dir, c.units, c.runtime, 80)
	}
}

func TestDoctorTriesNVCC(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	compilers(t)
	var f Finder
	for _, c := range Doctor(t.Context(), &f) {
		if c.Name == "nvcc compiles a kernel" && c.Problem != "" {
			t.Errorf("%+v", c)
		}
	}
}
