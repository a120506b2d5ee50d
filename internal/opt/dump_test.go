package opt

import (
	"os"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

func TestDump(t *testing.T) {
	file := os.Getenv("DUMP")
	if file == "" {
		t.Skip()
	}
	src, _ := os.ReadFile(file)
	tree, err := ptx.Parse(file, string(src))
	if err != nil {
		t.Fatal(err)
	}
	m, err := isa.Decode(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range m.Kernels() {
		f, err := Build(k, Env{Block: [3]uint32{256, 1, 1}, Grid: [3]uint32{16, 1, 1}, Shared: m.SharedLayout(k)})
		if err != nil {
			t.Log(err)
			continue
		}
		Optimise(f, nil)
		t.Log(f.String())
	}
}
