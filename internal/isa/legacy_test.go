package isa

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/ptx"
)

// TestLegacy checks that omissions that only PTX 1.x and devices sm_1x allow are accepted for these and for no others.
func TestLegacy(t *testing.T) {
	body := `
.entry k(.param .u32 p) {
	.reg .f32 %f<4>; .reg .f64 %d<4>;
	mad.f32 %f1, %f2, %f3, %f1;
	mad.sat.f32 %f1, %f2, %f3, %f1;
	div.f32 %f1, %f2, %f3;
	sqrt.f64 %d1, %d2;
	sin.f32 %f1, %f2;
	ret; }`
	for head, want := range map[string]string{
		".version 1.0\n.target sm_10\n": "",
		".version 3.0\n.target sm_13\n": "",
		".version 1.4\n.target sm_20\n": "mad.f32 needs one of .rn",
		".version 8.0\n.target sm_120":  "mad.f32 needs one of .rn",
		".version 3.1\n.target sm_20\n": "div.f32 needs one of",
	} {
		m, err := ptx.Parse("test.ptx", head+body)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Check(d.ByName["k"])
		if want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
			t.Errorf("%q: got %v, want %q", head, got, want)
		}
		if want != "" {
			if early := strings.Contains(head, "3.1"); early == strings.Contains(got.Error(), "mad.f32 needs") {
				t.Errorf("%q: mad.f32: %v", head, got)
			}
			continue
		}
		for i, ftz := range []bool{true, true, true, false, true} {
			if in := &d.ByName["k"].Insts[i]; in.Ftz != ftz || in.Sat != (i == 1) || in.Approx != (i == 2 || i == 4) {
				t.Errorf("%q: instruction %d: %v", head, i, in.Mods)
			}
		}
	}
}

// TestConstantBanks checks that the bank of a constant variable is redundant.
func TestConstantBanks(t *testing.T) {
	f := decode(t, `
.const[2] .b32 two[2] = {1, 2};
.const[11] .b32 eleven;
.entry k() { .reg .b32 %r<3>; ld.const[2].b32 %r1, [two+4]; ld.const[11].b32 %r2, [eleven]; ret; }`).ByName["k"]
	if f.Err != nil || f.Insts[0].Src[0].Var.Name != "two" || f.Insts[0].Off+int64(f.Insts[0].Src[0].Imm) != 4 || f.Insts[1].Src[0].Var.Name != "eleven" {
		t.Errorf("%v %+v", f.Err, f.Insts)
	}
}

// TestOutside checks that a module may declare variables that belong to each thread. Only a kernel that uses one is
// refused.
func TestOutside(t *testing.T) {
	m := decode(t, `
.reg .u32 counter;
.local .b32 mine[4];
.entry bad() { .reg .u32 r; mov.u32 counter, 1; ld.local.u32 r, [mine]; ret; }
.entry good() { ret; }`)
	if err := m.Check(m.ByName["good"]); err != nil {
		t.Error(err)
	}
	err := m.Check(m.ByName["bad"])
	for _, want := range []string{
		"counter is not a declared register: .reg variables at module level are not supported",
		"unknown name mine: .local variables at module level are not supported",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
