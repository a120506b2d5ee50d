package isa

import (
	"fmt"
	"strings"
	"testing"
)

// TestCopies checks that a load is a copy if and only if its whole result is stored unchanged.
func TestCopies(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1;", "copy"},
		{"ld.global.v2.u32 {%r1, %r2}, [%rd1]; mov.u32 %r3, %r1; st.global.v2.u32 [%rd2], {%r3, %r2};", "copy"},
		{"ld.global.u32 %r1, [%rd1]; add.u32 %r2, %r1, 1; st.global.u32 [%rd2], %r2;", "use"},
		{"ld.global.u32 %r1, [%rd1]; mov.u32 %r2, %r1; setp.eq.u32 %p1, %r2, 0; @%p1 bra end; st.global.u32 [%rd2], %r1; end:", "use"},
		{"ld.global.u64 %rd3, [%rd1]; st.global.u32 [%rd3], 1;", "use"},
		{"ld.global.u32 %r1, [%rd1]; atom.global.add.u32 %r2, [%rd2], %r1;", "use"},
		{"ld.global.u32 %r1, [%rd1]; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; st.global.u32 [%rd2], %r2;", "use"},
		{"ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; mov.u32 %r3, %r1; st.global.u32 [%rd2], %r3; mul.lo.u32 %r4, %r2, %r2;", "copy use"},
	} {
		f := kernel(t, ".reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<8>; "+c.body+" ret;")
		var got []string
		for _, in := range f.Insts {
			if in.Class == Load {
				got = append(got, map[bool]string{true: "copy", false: "use"}[in.Copies])
			}
		}
		if s := fmt.Sprint(strings.Join(got, " ")); s != c.want {
			t.Errorf("%s: %s, want %s", c.body, s, c.want)
		}
	}
}
