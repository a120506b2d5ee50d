package isa

import (
	"fmt"
	"testing"
)

// TestDiscards checks that the result of an atomic operation is discarded if it is only moved.
func TestDiscards(t *testing.T) {
	names := map[Use]string{Used: "used", Returned: "returned", Discarded: "discarded"}
	for _, test := range []struct {
		body string // of a function that returns res; r0 is a parameter of calls
		want string
	}{
		{"atom.add.u32 %r1, [%rd1], 1;", "discarded"},
		{"atom.add.u32 %r1, [%rd1], 1; mov.u32 %r2, %r1;", "discarded"},
		{"atom.add.u32 %r1, [%rd1], 1; st.u32 [%rd2], %r1;", "used"},
		{"atom.add.u32 %r1, [%rd1], 1; setp.eq.u32 %p1, %r1, 3; @%p1 trap;", "used"},
		{"atom.add.u32 %r1, [%rd1], 1; mov.u32 %r2, %r1; add.u32 %r3, %r2, 1;", "used"},
		{"atom.add.u32 %r1, [%rd1], 1; mov.u32 %r2, %r1; st.param.b32 [res], %r2;", "returned"},
		{"atom.add.u32 %r1, [%rd1], 1; st.param.b32 [res], %r1; st.u32 [%rd2], %r1;", "used"},
		{"atom.add.u32 %r1, [%rd1], 1; { .param .b32 a0; st.param.b32 [a0], %r1; call g, (a0); }", "used"},
		{"{ .param .b32 r0; call (r0), h, (); ld.param.b32 %r1, [r0]; }", "discarded"},
		{"{ .param .b32 r0; call (r0), h, (); ld.param.b32 %r1, [r0]; } mov.u32 %r2, %r1; st.param.b32 [res], %r2;", "returned"},
		{"{ .param .b32 r0; call (r0), h, (); ld.param.b32 %r1, [r0]; } st.u32 [%rd2], %r1;", "used"},
		{"{ .param .b32 r0; call (r0), h, (); ld.param.b32 %r1, [r0]; } { .param .b32 r0; call (r0), h, (); ld.param.b32 %r2, [r0]; st.u32 [%rd2], %r2; }", "discarded"},
	} {
		m := decode(t, fmt.Sprintf(`
.func (.param .b32 out) h () { ret; }
.func g (.param .b32 in) { ret; }
.func (.param .b32 res) f (.param .u64 p) {
	.reg .pred %%p<4>; .reg .b32 %%r<10>; .reg .b64 %%rd<8>;
	ld.param.u64 %%rd1, [p];
	mov.u64 %%rd2, %%rd1;
	%s
	ret;
}
.visible .entry k() { ret; }
`, test.body))
		f := m.ByName["f"]
		of := f.Discards()
		for i := range f.Insts {
			if in := &f.Insts[i]; in.Class == Atomic || in.Class == Call && len(in.RetOps) > 0 {
				if got := names[of[i]]; got != test.want {
					t.Errorf("%s: %s", test.body, got)
				}
				break
			} else if of[i] != Used {
				t.Errorf("%s: instruction %d is %s", test.body, i, names[of[i]])
			}
		}
	}
}
