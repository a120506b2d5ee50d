package opt

import (
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// lockstepForm builds a kernel for warps in lockstep.
func lockstepForm(t *testing.T, src string) *Func {
	t.Helper()
	tree, err := ptx.Parse("k.ptx", src)
	if err != nil {
		t.Fatal(err)
	}
	m, err := isa.Decode(tree)
	if err != nil {
		t.Fatal(err)
	}
	k := m.Kernels()[0]
	if err := m.Check(k); err != nil {
		t.Fatal(err)
	}
	fs, err := Build(k, Env{Block: [3]uint32{64, 1, 1}, Shared: m.SharedLayout(k), Lockstep: true})
	if err != nil {
		t.Fatal(err)
	}
	return fs[0]
}

// firstPlace returns the place of the first instruction in the source that a block, or the chain of its only
// successors, executes.
func (f *Func) firstPlace(b *Block) *Site {
	for range f.Blocks {
		for _, in := range b.Instrs {
			if in.Site >= 0 && !in.Pure() {
				return &f.Sites[in.Site]
			}
		}
		if len(b.Succs) != 1 {
			return nil
		}
		b = b.Succs[0]
	}
	return nil
}

// checkMeetings checks the promises of ir.go for each branch. Aux is the successor that comes later in the source. Imm
// names the Meet at the branch's immediate post-dominator, which for a branch in an inlined function may be after the
// call. The code has an access after each branch and at each reconvergence point. It returns the number of branches.
func checkMeetings(t *testing.T, f *Func) int {
	t.Helper()
	meets := map[uint64]*Block{}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Op != Meet {
				continue
			}
			if meets[in.Imm] != nil {
				t.Errorf("two places of meeting are number %d\n%v", in.Imm, f)
			}
			meets[in.Imm] = b
			if !b.meets() {
				t.Errorf("block %d is not said to be a place of meeting", b.ID)
			}
		}
	}
	branches := 0
	for _, b := range f.Blocks {
		in := b.Term()
		if in.Op != Branch && in.Op != Switch {
			continue
		}
		branches++
		s := f.Sites[in.Site]
		if in.Op == Branch {
			behind, target := f.firstPlace(b.Succs[in.Aux]), f.firstPlace(b.Succs[1-in.Aux])
			if behind == nil || behind.Fn != s.Fn || behind.At != s.At+1 || target == nil || target.At != s.Fn.Insts[s.At].Targets[0] {
				t.Errorf("%s: behind instruction %d stands %+v, at its target %+v\n%v", f.Text(in), s.At, behind, target, f)
			}
		}
		want := Site{Call: s.Call, Fn: s.Fn, At: s.Fn.IPDom[s.At]}
		if want.At < 0 {
			if s.Call < 0 {
				if in.Imm != NoMeet {
					t.Errorf("%s: its lanes meet at none\n%v", f.Text(in), f)
				}
				continue
			}
			want = f.Sites[s.Call]
			want.At++
		}
		if at := meets[in.Imm]; at == nil || f.firstPlace(at) == nil || *f.firstPlace(at) != want {
			t.Errorf("%s: its lanes meet at %+v\n%v", f.Text(in), want, f)
		}
	}
	return branches
}

// TestMeetings checks that each branch of the source is kept for warps in lockstep, and that it has its reconvergence
// point.
func TestMeetings(t *testing.T) {
	for _, c := range []struct {
		name, code string
		branches   int
	}{
		{"if", "@%p0 bra L; st.global.u32 [%d0], 1; L: st.global.u32 [%d0], 2;", 1},
		{"if not", "@!%p0 bra L; st.global.u32 [%d0], 1; L: st.global.u32 [%d0], 2;", 1},
		{"if else", "@%p0 bra L; st.global.u32 [%d0], 1; bra M; L: st.global.u32 [%d0], 2; M: st.global.u32 [%d0], 3;", 1},
		{"of a predicate that is negated", "not.pred %p2, %p0; @%p2 bra L; st.global.u32 [%d0], 1; bra M; L: st.global.u32 [%d0], 2; M: st.global.u32 [%d0], 3;", 1},
		{"one in the other", "@%p0 bra L; st.global.u32 [%d0], 1; @!%p1 bra M; st.global.u32 [%d0], 2; M: st.global.u32 [%d0], 3; L: st.global.u32 [%d0], 4;", 2},
		{"two that meet at one place", "@%p0 bra L; st.global.u32 [%d0], 1; @!%p1 bra L; st.global.u32 [%d0], 2; L: st.global.u32 [%d0], 4;", 2},
		{"loop", "L: st.global.u32 [%d0], %r0; add.u32 %r0, %r0, 1; setp.lt.u32 %p2, %r0, %r1; @%p2 bra L; st.global.u32 [%d0], 3;", 1},
		{"both ways leave", "@%p0 bra L; st.global.u32 [%d0], 1; ret; L: st.global.u32 [%d0], 2;", 1},
		{"by a table", "and.b32 %r3, %r0, 1; T: .branchtargets A, B; brx.idx %r3, T; A: st.global.u32 [%d0], 1; bra E; B: st.global.u32 [%d0], 2; E: st.global.u32 [%d0], 3;", 1},
		{"in a function whose ways end apart", "call part, (%r0, %d0); st.global.u32 [%d0], 9;", 1},
		{"in a function, and around it", "@%p0 bra L; st.global.u32 [%d1], 1; call part, (%r0, %d0); st.global.u32 [%d0], 9; L: st.global.u32 [%d0], 2;", 2},
		{"in a function that is called twice", "call part, (%r0, %d0); st.global.u32 [%d0], 8; call part, (%r1, %d0); st.global.u32 [%d0], 9;", 2},
	} {
		f := lockstepForm(t, kernelHead+`.func part(.reg .b32 x, .reg .b64 p) { .reg .pred %q; setp.ne.u32 %q, x, 3; @%q bra L; st.global.u32 [p], 5; ret; L: st.global.u32 [p], 6; ret; }
`+kernelBody+c.code+" ret; }\n")
		if err := Verify(f); err != nil {
			t.Fatalf("%s: %v\n%v", c.name, err, f)
		}
		if n := checkMeetings(t, f); n != c.branches || t.Failed() {
			t.Fatalf("%s: built with %d branches, want %d\n%v", c.name, n, c.branches, f)
		}
		optimiseVerified(t, c.name, f)
		if n := checkMeetings(t, f); n != c.branches || t.Failed() {
			t.Fatalf("%s: optimised to %d branches, want %d\n%v", c.name, n, c.branches, f)
		}
	}
}
