package opt

import (
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// TestLoopWithoutPreheader: the preheader that the first hoisted computation asks for shifts the numbers of the blocks
// behind it, the last of which is the loop, while the second one is still to be judged.
func TestLoopWithoutPreheader(t *testing.T) {
	tree, err := ptx.Parse("k.ptx", `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n, .param .f32 x)
{
	.reg .pred %q<3>;
	.reg .b32 %r<6>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [n];
	ld.param.f32 %f1, [x];
	mov.u32 %r2, 0;
	mov.u32 %r5, %tid.x;
	setp.eq.u32 %q1, %r5, 3;
	@%q1 bra LOOP;
	st.global.u32 [%rd1], %r5;
	bra LOOP;
DONE:
	ret;
LOOP:
	mul.lo.u32 %r3, %r1, %r1;
	st.global.u32 [%rd1+4], %r3;
	ex2.approx.f32 %f2, %f1;
	st.global.f32 [%rd1+8], %f2;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %q2, %r2, %r1;
	@!%q2 bra DONE;
	bra LOOP;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	m, err := isa.Decode(tree)
	if err != nil {
		t.Fatal(err)
	}
	k := m.ByName["k"]
	fs, err := Build(k, Env{Block: [3]uint32{64, 1, 1}, Grid: [3]uint32{4, 1, 1}, Shared: m.SharedLayout(k)})
	if err != nil {
		t.Fatal(err)
	}
	f := fs[0]
	LICM(f)
	if err := Verify(f); err != nil {
		t.Fatalf("%v\n%s", err, f)
	}
	for _, l := range Loops(f, Dominators(f)) {
		if l == nil {
			continue
		}
		for b := range l.Blocks {
			for _, in := range b.Instrs {
				if in.Op == Row && in.Pure() {
					t.Errorf("the loop still computes a row\n%s", f)
				}
			}
		}
	}
}
