package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestClangArguments translates arguments of nvcc to those of clang.
func TestClangArguments(t *testing.T) {
	dir := t.TempDir()
	nvcc := filepath.Join(dir, "bin", "nvcc")
	if err := errors.Join(os.Mkdir(filepath.Dir(nvcc), 0o755), os.WriteFile(nvcc, nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, arch, both, host, link, inputs string }{
		{"a.cu", "sm_80", "", "", "", "a.cu"},
		{"a.cu -O2 b.cpp -lz -L lib -I include -DX=1 -std=c++20", "sm_80", "-Iinclude -DX=1 -std=c++20", "-O2", "-lz -Llib", "a.cu b.cpp"},
		{"-arch=compute_75 a.cu -Xcompiler -fopenmp,-Wall -Xlinker --as-needed", "sm_75", "", "-fopenmp -Wall", "-Xlinker --as-needed", "a.cu"},
		{"-gencode arch=compute_86,code=sm_86 -lineinfo -Xcicc -O0 --expt-relaxed-constexpr --extended-lambda -Xptxas -v a.cu", "sm_86", "", "", "", "a.cu"},
		{"--cuda-gpu-arch=sm_70 -fno-exceptions -rdc=false a.cu c.o", "sm_70", "-fno-exceptions", "", "", "a.cu c.o"},
		{"-default-stream per-thread -include x.h a.cu", "sm_80", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1 -include x.h", "", "", "a.cu"},
	} {
		o := &BuildOptions{NVCC: &Tool{Path: nvcc, Major: 13}, Clang: &Tool{Path: "clang"}}
		b, err := o.newClang(strings.Fields(c.args), dir)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		got := []string{b.arch, strings.Join(b.both, " "), strings.Join(b.host, " "), strings.Join(b.link, " "), strings.Join(b.inputs, " ")}
		if want := []string{c.arch, c.both, c.host, c.link, c.inputs}; !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", c.args, got, want)
		}
	}
	for _, args := range []string{"-rdc=true a.cu", "-dc a.cu", "-dlto a.cu", "-G a.cu"} {
		var usage *UsageError
		if _, err := (&BuildOptions{NVCC: &Tool{Path: nvcc}}).newClang(strings.Fields(args), dir); !errors.As(err, &usage) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
