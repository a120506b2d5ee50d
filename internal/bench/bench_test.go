package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/toolchain"
)

// TestKernels runs every kernel under every engine and the default detector: no findings, and the results of the plain
// Go version.
func TestKernels(t *testing.T) {
	engines, hb, seeds := session.Engines(), all.Detectors()[0], uint64(testsize.Of(1, 1, 3))
	for _, k := range Kernels() {
		p := k.New(k.Sizes[Tiny])
		want := references[k.Name](t, p)
		for name, engine := range engines {
			for _, v := range []Variant{Kept, Default} {
				for seed := range seeds {
					t.Run(fmt.Sprintf("%s%s/%s/%d", k.Name, v.suffix(), name, seed), func(t *testing.T) {
						t.Parallel()
						requireRight(t, k, p, Setup{Variant: v, Engine: engine, Detector: &hb, Seed: seed}, want)
					})
				}
			}
		}
	}
}

func requireRight(t *testing.T, k *Kernel, p *Problem, s Setup, want [][]byte) {
	t.Helper()
	run, err := k.Execute(context.Background(), p, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Check(k, want); err != nil {
		t.Error(err)
	}
	if k.Digest(run.Results) != k.Digest(want) {
		t.Errorf("digest %s, want %s", k.Digest(run.Results), k.Digest(want))
	}
	if run.Stats.Lanes == 0 || run.Stats.Warps == 0 || run.Elapsed == 0 {
		t.Errorf("nothing counted: %+v", run.Stats)
	}
}

// TestCheckFails checks that wrong results and findings are errors.
func TestCheckFails(t *testing.T) {
	for _, k := range Kernels() {
		p := k.New(k.Sizes[Tiny])
		want := references[k.Name](t, p)
		wrong := slices.Clone(want)
		wrong[0] = slices.Clone(want[0])
		wrong[0][3] ^= 0x40
		if err := k.Compare(wrong, want); err == nil {
			t.Errorf("%s: a wrong result passes", k.Name)
		}
		if k.Tolerance == 0 && k.Digest(wrong) == k.Digest(want) {
			t.Errorf("%s: a wrong result has the right digest", k.Name)
		}
		if err := k.Compare(want, want); err != nil {
			t.Error(err)
		}
	}
}

// TestNative compiles the C versions and compares their results.
func TestNative(t *testing.T) {
	ctx := context.Background()
	native, err := BuildNative(ctx, t.TempDir())
	var missing *toolchain.Missing
	if errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kernels() {
		p := k.New(k.Sizes[Tiny])
		run, err := native.Run(ctx, k, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Compare(run.Results, references[k.Name](t, p)); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		if run.Elapsed <= 0 {
			t.Errorf("%s took %v", k.Name, run.Elapsed)
		}
	}
	if _, err := native.Run(ctx, &Kernel{Name: "none"}, &Problem{}, 0); err == nil || !strings.Contains(err.Error(), "no such function") {
		t.Error(err)
	}
}

// TestFiles checks that every kernel has its four files and a reference, and that there are no other files.
func TestFiles(t *testing.T) {
	var want []string
	for _, k := range Kernels() {
		for _, ext := range []string{".O0.ptx", ".c", ".cu", ".ptx"} {
			want = append(want, "kernels/"+k.Name+ext)
		}
		if references[k.Name] == nil {
			t.Errorf("%s has no reference", k.Name)
		}
		if p := k.New(k.Sizes[Tiny]); p.Bytes() == 0 || len(p.results()) == 0 {
			t.Errorf("%s has no buffers or no results", k.Name)
		}
	}
	slices.Sort(want)
	got, err := fs.Glob(files, "kernels/*")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
	onDisk, err := filepath.Glob("kernels/*")
	if err != nil || len(onDisk) != len(got) {
		t.Errorf("%d files on disk, %d embedded, %v", len(onDisk), len(got), err)
	}
	for _, name := range got {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".ptx") && strings.Contains(string(text), "/include/") {
			t.Errorf("%s holds a path of the machine it was made on", name)
		}
	}
}
