package isa

import (
	"testing"

	"fencepost.dev/fencepost/ptx"
)

// TestWords checks that called functions may access the word around an element if they have an order, as those of
// libcu++ do, and that functions without one, as for atomicCAS, do not. If no function aligns addresses, nothing may.
func TestWords(t *testing.T) {
	const head = ".version 8.0\n.target sm_80\n.address_size 64\n"
	const called = `.func f(.param .b64 p)
{
	.reg .b64 %rd<2>; .reg .b32 %r<4>;
	ld.param.b64 %rd1, [p];
	ld.relaxed.gpu.b32 %r1, [%rd1];
	ld.b32 %r1, [%rd1];
	ld.volatile.b32 %r1, [%rd1];
	atom.cas.relaxed.gpu.b32 %r2, [%rd1], %r1, %r3;
	atom.cas.b32 %r2, [%rd1], %r1, %r3;
	atom.add.relaxed.gpu.u32 %r2, [%rd1], %r1;
	ld.acquire.gpu.b32 %r1, [%rd1+4];
	ret;
}
`
	const rounding = `.entry k(.param .b64 p)
{
	.reg .b64 %rd<3>;
	ld.param.b64 %rd1, [p];
	and.b64 %rd2, %rd1, -4;
	ret;
}
`
	for _, c := range []struct {
		text string
		want []bool
	}{
		{head + called + rounding, []bool{true, false, false, true, false, false, false}},
		{head + called, make([]bool, 7)},
	} {
		tree, err := ptx.Parse("t.ptx", c.text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(tree)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if in := &m.ByName["f"].Insts[1+i]; in.Word != want {
				t.Errorf("%s: %v, want %v", in.Source, in.Word, want)
			}
		}
	}
}
