package standin

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/testsize"
)

// TestBuild builds the libraries and checks what they offer: every call of the tables, under the version node that
// programs linked with NVIDIA's library ask for, and nothing that is not the API's.
func TestBuild(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil || testing.Short() {
		t.Skip("gcc is not installed, or the test is to be short")
	}
	cache := t.TempDir()
	dir, err := Build(context.Background(), "gcc", cache)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Build(context.Background(), "/no/such/compiler-but-cached", cache)
	if err == nil {
		t.Errorf("a compiler that does not exist built %s", again)
	}
	if again, err := Build(context.Background(), "gcc", cache); err != nil || again != dir {
		t.Errorf("built again: %s, %v; want %s from the cache", again, err, dir)
	}
	damages := []func(dir string){
		func(dir string) { os.Truncate(filepath.Join(dir, "libcudart.so.13"), 100) },
		func(dir string) { os.WriteFile(filepath.Join(dir, "libcudart_static.a"), []byte("!<arch>\n"), 0o644) },
		func(dir string) { os.Remove(filepath.Join(dir, "libcuda.so")) },
		func(dir string) { os.Remove(filepath.Join(dir, sums)) },
		func(dir string) { os.RemoveAll(dir); os.WriteFile(dir, nil, 0o644) },
	}
	for i, damage := range damages {
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil || !whole(copied) {
			t.Fatalf("the copy of the folder is not whole: %v", err)
		}
		if damage(copied); whole(copied) {
			t.Fatalf("damage %d is not seen", i)
		}
	}
	// A folder that is damaged, and something that is no folder, are mended: each means another build.
	for _, damage := range damages[len(damages)-testsize.Of(0, 0, 2):] {
		damage(dir)
		if again, err := Build(context.Background(), "gcc", cache); err != nil || again != dir || !whole(dir) {
			t.Errorf("a damaged folder is not mended: %s, %v", again, err)
		}
	}
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the cache: %v, %v", entries, err)
	}

	var runtime []string
	for _, f := range calls.Runtime {
		runtime = append(runtime, f.Name)
	}
	runtime = append(runtime, calls.UnsupportedCalls...)
	runtime = append(runtime, "cudaMemcpy", "cudaLaunchKernel", "__cudaRegisterFatBinary", "__cudaPushCallConfiguration", "fencepost_start")
	for _, version := range []string{"12", "13"} {
		name := "libcudart.so." + version
		checkExports(t, filepath.Join(dir, name), name, runtime, "cuda", "fencepost")
		nvrtc, linker := "libnvrtc.so."+version, "libnvJitLink.so."+version
		checkExports(t, filepath.Join(dir, Python, nvrtc), nvrtc, []string{"nvrtcVersion", "nvrtcCompileProgram", "nvrtcGetCUBIN"}, "nvrtc")
		checkExports(t, filepath.Join(dir, Python, linker), linker, []string{"nvJitLinkCreate", "__nvJitLinkCreate_13_0", "__nvJitLinkGetLinkedCubin_12_9"}, "nvJitLink")
	}
	driver := append([]string{"cuInit", "cuLaunchKernel", "cuGetProcAddress_v2", "fencepostOperator"}, calls.UnsupportedDriver...)
	checkExports(t, filepath.Join(dir, "libcuda.so.1"), "", driver, "cu", "fencepost")
	for _, name := range []string{"libcudart_static.a", "cuda12/libcudart_static.a", "libcudart.so", "libcuda.so"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(data), calls.Marker) {
			t.Errorf("%s: %v, or without the marker", name, err)
		}
	}
}

// checkExports checks the names, prefixes and version node of a shared library's functions.
func checkExports(t *testing.T, path, node string, want []string, prefixes ...string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		begins := func(prefix string) bool { return strings.HasPrefix(strings.TrimPrefix(s.Name, "__"), prefix) }
		if !slices.ContainsFunc(prefixes, begins) || s.Version != node {
			t.Errorf("%s offers %s@%s", path, s.Name, s.Version)
		}
		names = append(names, s.Name)
	}
	for _, w := range want {
		if !slices.Contains(names, w) {
			t.Errorf("%s lacks %s", path, w)
		}
	}
}

// TestTablesDoNotOverlap checks that no call is in two tables.
func TestTablesDoNotOverlap(t *testing.T) {
	seen := map[string]string{}
	add := func(table, name string) {
		if other, ok := seen[name]; ok {
			t.Errorf("%s is in %s and in %s", name, other, table)
		}
		seen[name] = table
	}
	for _, f := range append(slices.Clone(calls.Runtime), calls.Driver...) {
		add("the requests", f.Name)
	}
	for _, a := range append(slices.Clone(calls.Accepted), calls.AcceptedDriver...) {
		name, _, _ := strings.Cut(a, ":")
		add("the accepted calls", name)
	}
	for _, n := range append(slices.Clone(calls.UnsupportedCalls), calls.UnsupportedDriver...) {
		add("the unsupported calls", n)
	}
}

// header returns a header of CUDA's toolkit, preprocessed with some macros.
func header(t *testing.T, name string, macros ...string) string {
	t.Helper()
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		t.Skip("nvcc is not installed")
	}
	include := filepath.Join(filepath.Dir(nvcc), "..", "include")
	text, err := exec.Command("gcc", append(macros, "-E", "-P", "-I"+include, filepath.Join(include, name))...).Output()
	if err != nil {
		t.Skipf("%s: %v", name, err)
	}
	return string(text)
}

// TestHeaders checks that the libraries offer every function that CUDA's headers declare: one that they lack, a program that calls it cannot be
// linked with, or it takes the one for the other default stream.
func TestHeaders(t *testing.T) {
	if testing.Short() {
		t.Skip("the libraries are built")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := Build(context.Background(), "gcc", filepath.Join(cache, "fencepost-test"))
	if err != nil {
		t.Skip(err)
	}
	for _, api := range []struct{ header, library, declared string }{
		{"cuda.h", "libcuda.so.1", `\bcu[A-Z]\w*\(`}, {"cuda_runtime_api.h", "libcudart.so.13", `\bcuda[A-Z]\w*\(`},
	} {
		f, err := elf.Open(filepath.Join(dir, api.library))
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := f.DynamicSymbols()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		offered := map[string]bool{}
		for _, s := range symbols {
			offered[s.Name] = s.Section != elf.SHN_UNDEF
		}
		for _, macro := range []string{"-DUNUSED", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM"} {
			declared := regexp.MustCompile(api.declared).FindAllString(header(t, api.header, macro), -1)
			if len(declared) < 300 {
				t.Errorf("%s declares %d functions", api.header, len(declared))
			}
			for _, name := range declared {
				if name = strings.TrimSuffix(name, "("); !offered[name] {
					t.Errorf("%s lacks %s", api.library, name)
					offered[name] = true // once is enough
				}
			}
		}
	}
}

// TestErrorNames compares the table of errors with the headers.
func TestErrorNames(t *testing.T) {
	const base = 10000 // cudaErrorApiFailureBase, which no call returns
	for _, api := range []struct{ header, from string }{
		{"driver_types.h", "cudaError\n"}, {"cuda.h", "typedef enum cudaError_enum"},
	} {
		text := header(t, api.header)
		i := strings.Index(text, api.from)
		if i < 0 {
			t.Fatalf("%s has no %q", api.header, api.from)
		}
		all := regexp.MustCompile(`(\w+)\s*=\s*(\d+)`).FindAllStringSubmatch(text[i:i+strings.Index(text[i:], "}")], -1)
		if len(all) < 80 {
			t.Errorf("%s has %d errors", api.header, len(all))
		}
		for _, m := range all {
			code, _ := strconv.Atoi(m[2])
			i := slices.IndexFunc(calls.Errors, func(e calls.Error) bool { return e.Code == uint32(code) })
			if i < 0 {
				if code != base {
					t.Errorf("no error %d, %s", code, m[1])
				}
				continue
			}
			if e := calls.Errors[i]; e.Name != m[1] && e.Driver != m[1] {
				t.Errorf("error %d is %s and %s, not %s", code, e.Name, e.Driver, m[1])
			}
		}
	}
}
