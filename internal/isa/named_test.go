package isa_test

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// TestRegister looks for registers by their names.
func TestRegister(t *testing.T) {
	src := `.version 8.0
.target sm_80
.address_size 64
.func (.reg .s32 %ret, .reg .s32 %other) f(.reg .s32 %n)
{
	mov.s32 %ret, %n;
	mov.s32 %other, %n;
	ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .b64 %rd<3>;
	.reg .s32 %r<12>, %r1x, %c1, %c2, %c3;
	.reg .pred %p<2>;
	.reg .f32 %f<2>;
	.reg .u16 %h;
	ld.param.u64 %rd1, [p];
	ld.global.v2.s32 {%r1, %r11}, [%rd1];
	setp.eq.s32 %p0|%p1, %r1, 0;
	mov.f32 %f1, 0f00000000;
	mov.s32 %r1x, %r11;
	{
		.reg .s32 %r2;
		mov.s32 %r2, 1;
		.reg .s32 %r3;
		mov.s32 %r3, 1;
	}
	mov.s32 %r3, 2;
	call (%c1, %c2), f, (%c3);
	ret;
}
`
	m, err := ptx.Parse("k.ptx", src)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := isa.Decode(m)
	if err != nil {
		t.Fatal(err)
	}
	f := mod.Funcs[1]
	slots := map[int32]string{}
	for _, c := range []struct{ name, want string }{
		{"%rd1", "b64"}, {"%r1", "s32"}, {"%r11", "s32"}, {"%r1x", "s32"}, {"%p0", "pred"}, {"%p1", "pred"},
		{"%c1", "s32"}, {"%c2", "s32"}, {"%c3", "no instruction of k writes the register %c3"},
		{"%f1", "the register %f1 is no integer and no predicate"},
		{"%h", "no instruction of k writes the register %h"},
		{"%r2", "several registers of k are named %r2"},
		{"%r3", "several registers of k are named %r3"},
		{"%r12", "k has no register %r12"},
		{"rd1", "k has no register rd1; did you mean %rd1?"},
	} {
		slot, typ, err := f.Register(c.name)
		got := typ.String()
		if err != nil {
			got = err.Error()
		} else if other := slots[slot]; other != "" {
			t.Errorf("%s and %s have one slot", c.name, other)
		}
		if err == nil {
			slots[slot] = c.name
		}
		if got = strings.TrimPrefix(got, "."); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
