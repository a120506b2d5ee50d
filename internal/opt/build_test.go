package opt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/ptx"
)

// TestCorpus builds and optimises every kernel of the corpus with the verifier between the passes, also for warps in
// lockstep. Outside long mode, one of two files is built for warps in lockstep, and the others for independent threads.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("../../corpus/*/*.ptx")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	if extra := os.Getenv("FENCEPOST_PTX"); extra != "" {
		more, _ := filepath.Glob(extra)
		files = append(files, more...)
	}
	for i, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := ptx.Parse(file, string(src))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		m, err := isa.Decode(tree)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, k := range m.Kernels() {
			if m.Check(k) != nil {
				continue
			}
			for _, lockstep := range []bool{false, true} {
				if lockstep != (i%2 == 0) && !testsize.Long() {
					continue
				}
				fs, err := Build(k, Env{Block: [3]uint32{64, 1, 1}, Grid: [3]uint32{4, 1, 1}, Shared: m.SharedLayout(k), Lockstep: lockstep})
				if err != nil {
					if !lockstep || !errors.Is(err, ErrUnsupported) {
						t.Errorf("%s: %v", file, err)
					}
					continue
				}
				for _, f := range fs {
					optimiseVerified(t, file, f)
				}
				fs, err = Build(k, Env{Block: [3]uint32{64, 1, 1}, Grid: [3]uint32{4, 1, 1}, Shared: m.SharedLayout(k), Lockstep: lockstep, Uninit: true})
				if err != nil {
					t.Errorf("%s: %v", file, err)
				}
				for _, f := range fs {
					optimiseVerified(t, file, f)
				}
			}
		}
	}
}

// optimiseVerified runs the passes over f with the verifier between them.
func optimiseVerified(t *testing.T, file string, f *Func) {
	t.Helper()
	if err := Verify(f); err != nil {
		t.Fatalf("%s %s: built: %v\n%s", file, f.Fn.Name, err, f)
	}
	before := size(f)
	Optimise(f, func(pass string, f *Func) {
		if err := Verify(f); err != nil {
			t.Fatalf("%s %s: after %s: %v\n%s", file, f.Fn.Name, pass, err, f)
		}
	})
	t.Logf("%s %s: %d -> %d in %d blocks", filepath.Base(file), f.Fn.Name, before, size(f), len(f.Blocks))
}

func size(f *Func) int {
	n := 0
	for _, b := range f.Blocks {
		n += len(b.Instrs)
	}
	return n
}
