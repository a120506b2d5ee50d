package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/toolchain"
)

func TestNeutral(t *testing.T) {
	in := "\t.file\t1 \"/home/me/kernels/bfs.cu\"\n\t.file\t2 \"/opt/cuda/bin/../include/device_atomic_functions.hpp\"\n\t.file\t3 \"odd\"\n\t.loc\t1 2 3\n" +
		"_ZN31_INTERNAL_e9a97db2_6_bfs_cu\n.b8 90,78,51,49,95,73,78,84,69,82,78,65,76,95,101,57,97,57,55,100,98,50,95,54,95,98\n"
	want := "\t.file\t1 \"bfs.cu\"\n\t.file\t2 \"device_atomic_functions.hpp\"\n\t.file\t3 \"odd\"\n\t.loc\t1 2 3\n" +
		"_ZN31_INTERNAL_00000000_6_bfs_cu\n.b8 90,78,51,49,95,73,78,84,69,82,78,65,76,95,48,48,48,48,48,48,48,48,95,54,95,98\n"
	if got := string(neutral([]byte(in))); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestFresh compiles one of three sources again, in another folder, and one of twelve in CI, which compiles all sources
// again and checks that the PTX is unchanged.
func TestFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles kernels")
	}
	dir := t.TempDir()
	sources, err := filepath.Glob("../kernels/*.cu")
	if err != nil || len(sources) == 0 {
		t.Fatal(len(sources), err)
	}
	compiled := 0
	for i, s := range sources {
		if i%testsize.Of(3, 3, 12) != 0 {
			continue
		}
		compiled++
		text, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(s)), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	err = build(filepath.Join(dir, "*.cu"))
	var missing *toolchain.Missing
	if errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(dir, "*.ptx"))
	if err != nil || len(made) != len(variants)*compiled {
		t.Fatalf("%d files of %d sources, %v", len(made), compiled, err)
	}
	for _, name := range made {
		got, want := read(t, name), read(t, filepath.Join("..", "kernels", filepath.Base(name)))
		switch {
		case compiler(got) != compiler(want):
			t.Skipf("made by another compiler: %s, now %s", compiler(want), compiler(got))
		case !bytes.Equal(got, want):
			t.Errorf("%s is not what nvcc makes of the source; run go generate ./internal/bench", filepath.Base(name))
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// compiler returns the line of a PTX file's head that names the compiler's version.
func compiler(ptx []byte) string {
	for line := range bytes.Lines(ptx) {
		if bytes.HasPrefix(line, []byte("// Cuda compilation tools")) {
			return string(bytes.TrimSpace(line))
		}
	}
	return "an unnamed compiler"
}
