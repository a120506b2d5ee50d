package opt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// TestRecursive compares the recursive functions of random call graphs with the transitive closure, whichever function
// is queried first.
func TestRecursive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + rng.IntN(8)
		fns := make([]*isa.Func, n)
		for i := range fns {
			fns[i] = &isa.Func{Name: fmt.Sprint("f", i)}
		}
		reach := make([][]bool, n)
		for i := range reach {
			reach[i] = make([]bool, n)
			for range rng.IntN(3) {
				j := rng.IntN(n)
				reach[i][j] = true
				fns[i].Insts = append(fns[i].Insts, isa.Inst{Class: isa.Call, Callee: fns[j]})
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		g := newCallGraph()
		for _, i := range rng.Perm(n) {
			if got := g.recursive(fns[i]); got != reach[i][i] {
				t.Fatalf("%d functions, f%d: %v, and the closure %v", n, i, got, reach)
			}
		}
	}
}

// TestInliningIsBounded checks functions that each call the one before twice, which would inline 65536 instructions.
func TestInliningIsBounded(t *testing.T) {
	src := ".version 9.0\n.target sm_90\n.address_size 64\n.func f0() { ret; }\n"
	for i := range 40 {
		src += fmt.Sprintf(".func f%d() { call f%d; call f%d; ret; }\n", i+1, i, i)
	}
	tree, err := ptx.Parse("t", src+".entry k() { call f40; ret; }")
	if err != nil {
		t.Fatal(err)
	}
	m, err := isa.Decode(tree)
	if err != nil {
		t.Fatal(err)
	}
	k := m.ByName["k"]
	built, err := Build(k, Env{Block: [3]uint32{1, 1, 1}, Grid: [3]uint32{1, 1, 1}, Shared: m.SharedLayout(k)})
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, b := range built {
		blocks += len(b.Blocks)
	}
	if len(built) < 2 || blocks > 2*maxSpent {
		t.Errorf("%d functions of %d blocks", len(built), blocks)
	}
}
