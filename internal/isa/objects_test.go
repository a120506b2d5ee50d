package isa

import (
	"fmt"
	"strings"
	"testing"
)

// TestObjects checks that an access belongs to a variable if its address is the variable's plus an index, and to none
// if this is uncertain.
func TestObjects(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{"mov.u32 %r1, a; ld.shared.u32 %r2, [%r1+4];", "a"},
		{"mov.u32 %r1, a; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r9, 4; add.s64 %rd4, %rd2, %rd3; st.u32 [%rd4], %r2;", "a"},
		{"mov.u32 %r1, a; mad.lo.s32 %r3, %r9, 4, %r1; atom.shared.add.u32 %r2, [%r3], 1;", "a"},
		{"ld.shared.u32 %r2, [b];", "b"},
		{"mov.u32 %r1, a; loop: ld.shared.u32 %r2, [%r1]; add.u32 %r1, %r1, 4; setp.ne.u32 %p1, %r2, 0; @%p1 bra loop;", "a"},
		{"mov.u32 %r1, a; @%p1 mov.u32 %r1, b; ld.shared.u32 %r2, [%r1];", "-"},
		{"mov.u32 %r1, a; mov.u32 %r3, b; selp.b32 %r4, %r1, %r3, %p1; ld.shared.u32 %r2, [%r4];", "-"},
		{"mov.u32 %r1, a; mov.u32 %r3, b; sub.u32 %r4, %r3, %r1; add.u32 %r5, %r1, %r4; ld.shared.u32 %r2, [%r5];", "-"},
		{"mov.u32 %r1, a; and.b32 %r3, %r1, -4; ld.shared.u32 %r2, [%r3];", "-"},
		{"mov.u32 %r1, dynamic; ld.shared.u32 %r2, [%r1];", "-"},
		{"ld.shared.u32 %r1, [b]; ld.shared.u32 %r2, [%r1];", "b -"},
		{"sub.u32 %r3, %r9, 4; mov.u32 %r1, a; sub.u32 %r4, %r3, %r1; ld.shared.u32 %r2, [%r4];", "-"},
	} {
		m := decode(t, fmt.Sprintf(`
.extern .shared .align 4 .b8 dynamic[];
.visible .entry k() {
	.reg .pred %%p<4>; .reg .b32 %%r<10>; .reg .b64 %%rd<8>;
	.shared .align 4 .b8 a[128];
	.shared .align 4 .b8 b[128];
	mov.u32 %%r9, %%tid.x;
	%s
	ret;
}
`, test.body))
		var got []string
		for _, in := range m.ByName["k"].Insts {
			switch {
			case in.Class != Load && in.Class != Store && in.Class != Atomic:
			case in.Object == nil:
				got = append(got, "-")
			default:
				got = append(got, in.Object.Name)
			}
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s: objects %s, want %s", test.body, s, test.want)
		}
	}
}
