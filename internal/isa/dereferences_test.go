package isa

import (
	"fmt"
	"testing"
)

// TestDereferences checks that a loaded address is used where an access uses it, or a sum with it, or where it is
// passed on.
func TestDereferences(t *testing.T) {
	for body, want := range map[string]bool{
		"ld.u64 %rd3, [%rd1]; ld.u32 %r1, [%rd3];":                                                     true,
		"ld.u64 %rd3, [%rd1]; mov.u64 %rd4, %rd3; add.u64 %rd5, %rd4, 8; st.u32 [%rd5], 1;":            true,
		"ld.u64 %rd3, [%rd1]; cvta.to.local.u64 %rd4, %rd3; ld.local.u32 %r1, [%rd4];":                 true,
		"atom.exch.b64 %rd3, [%rd1], 0; atom.add.u32 %r1, [%rd3], 1;":                                  true,
		"ld.u64 %rd3, [%rd1]; { .param .b64 a0; st.param.b64 [a0], %rd3; call g, (a0); }":              true,
		"ld.u64 %rd3, [%rd1]; setp.eq.u64 %p1, %rd3, %rd2; @%p1 trap;":                                 false,
		"ld.u64 %rd3, [%rd1]; st.u64 [%rd2], %rd3;":                                                    false,
		"ld.u64 %rd3, [%rd1]; shr.u64 %rd4, %rd3, 32; ld.u32 %r1, [%rd4];":                             false,
		"ld.u32 %r2, [%rd1]; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd2, %rd3; ld.u32 %r1, [%rd4];": false,
		"ld.local.u64 %rd3, [%rd1]; ld.u32 %r1, [%rd3];":                                               false,
	} {
		f := decode(t, fmt.Sprintf(`
.func g (.param .b64 in) { ret; }
.func f (.param .u64 p) {
	.reg .pred %%p<4>; .reg .b32 %%r<10>; .reg .b64 %%rd<8>;
	ld.param.u64 %%rd1, [p];
	mov.u64 %%rd2, %%rd1;
	%s
	ret;
}
.visible .entry k() { ret; }
`, body)).ByName["f"]
		got := false
		for _, d := range f.Dereferences() {
			got = got || d
		}
		if got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}
