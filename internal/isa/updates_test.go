package isa

import (
	"fmt"
	"testing"
)

// TestUpdates checks that a store is an update if its value is computed from a load of the same address.
func TestUpdates(t *testing.T) {
	for _, test := range []struct {
		body string
		want bool
	}{
		{"ld.u32 %r1, [%rd1]; add.s32 %r2, %r1, 1; st.u32 [%rd1], %r2;", true},
		{"ld.shared.f32 %f1, [a+4]; fma.rn.f32 %f1, %f1, 0f40000000, 0f3F800000; st.shared.f32 [a+4], %f1;", true},
		{"ld.shared.f32 %f1, [a+4]; add.f32 %f1, %f1, 0f3F800000; st.shared.f32 [a], %f1;", false},
		{"ld.u32 %r1, [%rd1+8]; sub.s32 %r2, 5, %r1; st.u32 [%rd1+8], %r2;", true},
		{"ld.v2.u32 {%r1, %r2}, [%rd1]; add.s32 %r1, %r1, 1; add.s32 %r2, %r2, 1; st.v2.u32 [%rd1], {%r1, %r2};", true},
		// the address is computed twice
		{"mov.u32 %r4, %tid.x; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; ld.u32 %r1, [%rd3]; add.s32 %r2, %r1, 1; mov.u32 %r5, %tid.x; mul.wide.u32 %rd4, %r5, 4; add.s64 %rd5, %rd1, %rd4; st.u32 [%rd5], %r2;", true},
		{"mov.u32 %r4, %tid.x; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; ld.u32 %r1, [%rd3]; add.s32 %r2, %r1, 1; mov.u32 %r5, %tid.y; mul.wide.u32 %rd4, %r5, 4; add.s64 %rd5, %rd1, %rd4; st.u32 [%rd5], %r2;", false},
		// the index changes between
		{"mul.wide.u32 %rd2, %r8, 4; add.s64 %rd3, %rd1, %rd2; ld.u32 %r1, [%rd3]; add.s32 %r2, %r1, 1; add.u32 %r8, %r8, 1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd5, %rd1, %rd4; st.u32 [%rd5], %r2;", false},
		{"loop: mul.wide.u32 %rd2, %r8, 4; add.s64 %rd3, %rd1, %rd2; st.u32 [%rd3], %r2; ld.u32 %r1, [%rd3]; add.s32 %r2, %r1, 1; add.u32 %r8, %r8, 1; setp.ne.u32 %p1, %r8, 9; @%p1 bra loop;", false},
		{"loop: ld.u32 %r1, [%rd1]; add.s64 %rd1, %rd1, 4; add.s32 %r2, %r1, 1; st.u32 [%rd1], %r2; setp.ne.u32 %p1, %r2, 9; @%p1 bra loop;", false},
		// or after the store alone, in a loop
		{"loop: mul.wide.u32 %rd2, %r8, 4; add.s64 %rd3, %rd1, %rd2; ld.u32 %r1, [%rd3]; add.s32 %r2, %r1, 1; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd5, %rd1, %rd4; st.u32 [%rd5], %r2; add.u32 %r8, %r8, 1; setp.ne.u32 %p1, %r8, 9; @%p1 bra loop;", true},
		// by way of an accumulator
		{"ld.u32 %r1, [%rd1]; loop: add.s32 %r1, %r1, %r8; add.u32 %r8, %r8, 1; setp.ne.u32 %p1, %r8, 9; @%p1 bra loop; st.u32 [%rd1], %r1;", true},
		{"ld.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r8, 9; add.s32 %r2, %r1, 1; @%p1 mov.u32 %r2, 7; st.u32 [%rd1], %r2;", true},
		// what may be done twice
		{"ld.u32 %r1, [%rd1]; max.s32 %r2, %r1, %r8; and.b32 %r3, %r2, 255; st.u32 [%rd1], %r3;", false},
		{"ld.u32 %r1, [%rd1]; setp.lt.s32 %p1, %r1, 5; selp.b32 %r2, 5, %r8, %p1; st.u32 [%rd1], %r2;", false},
		{"ld.u32 %r1, [%rd1]; setp.lt.s32 %p1, %r1, 5; @%p1 st.u32 [%rd1], 5;", false},
		{"ld.u32 %r1, [%rd2]; add.s32 %r2, %r1, 1; st.u32 [%rd1], %r2;", false},
		{"ld.local.u32 %r1, [%rd1]; add.s32 %r2, %r1, 1; st.local.u32 [%rd1], %r2;", false},
		{"ld.u16 %r1, [%rd1]; add.s32 %r2, %r1, 1; st.u32 [%rd1], %r2;", false},
	} {
		m := decode(t, fmt.Sprintf(`
.visible .entry k(.param .u64 p) {
	.reg .pred %%p<4>; .reg .b32 %%r<10>; .reg .f32 %%f<4>; .reg .b64 %%rd<8>;
	.shared .align 4 .b8 a[128];
	ld.param.u64 %%rd1, [p];
	mov.u32 %%r8, 0;
	%s
	ret;
}
`, test.body))
		f := m.ByName["k"]
		got := false
		for i, load := range f.Updates() {
			updates := load >= 0
			if updates && (f.Insts[i].Class != Store || f.Insts[load].Class != Load) {
				t.Fatalf("%s: instruction %d updates", test.body, i)
			}
			got = got || updates
		}
		if got != test.want {
			t.Errorf("%s: %v", test.body, got)
		}
	}
}
