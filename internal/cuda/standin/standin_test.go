package standin

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
