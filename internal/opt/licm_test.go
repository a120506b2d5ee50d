package opt

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// TestLoopWithoutPreheader checks that the preheader for the first hoisted computation renumbers the blocks after it,
// the last of which is the loop, before the second computation is handled.
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

// builtText builds a kernel of a module's text.
func builtText(t *testing.T, src string) *Func {
	t.Helper()
	tree, err := ptx.Parse("k.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n"+src)
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
	fs, err := Build(k, Env{Block: [3]uint32{64, 1, 1}, Shared: m.SharedLayout(k)})
	if err != nil {
		t.Fatal(err)
	}
	return fs[0]
}

// TestPreheader checks that computations are hoisted into the existing block before a loop if that has no other
// successor.
func TestPreheader(t *testing.T) {
	f := builtText(t, `.visible .entry k(.param .u64 p, .param .u32 n) {
	.reg .pred %q; .reg .b32 %r<6>; .reg .b64 %d;
	ld.param.u64 %d, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0; mov.u32 %r3, %tid.x;
LOOP:
	mul.lo.u32 %r4, %r1, %r3;
	st.global.u32 [%d], %r4;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %q, %r2, %r1;
	@%q bra LOOP;
	ret; }`)
	blocks := len(f.Blocks)
	if !LICM(f) {
		t.Error("nothing moves")
	}
	if len(f.Blocks) != blocks {
		t.Errorf("%d blocks become %d\n%v", blocks, len(f.Blocks), f)
	}
	for _, l := range Loops(f, Dominators(f)) {
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				if l != nil && l.Blocks[b] && in.Op == Mul {
					t.Errorf("the product stays in the loop\n%v", f)
				}
			}
		}
	}
}

// TestPromotedFrames checks that the local memory of each function instance becomes values independently, except if its
// address escapes.
func TestPromotedFrames(t *testing.T) {
	const function = `.func (.reg .b32 r) NAME(.reg .b32 x, .reg .b64 p) {
	.local .align 4 .b32 own[4]; .reg .b64 %q; .reg .b32 %a;
	st.local.b32 [own+4], x; ESCAPE
	ld.local.b32 %a, [own+4]; add.u32 r, %a, 1; ret; }
`
	named := func(name, escape string) string {
		return strings.NewReplacer("NAME", name, "ESCAPE", escape).Replace(function)
	}
	src := named("f", "") + named("g", "mov.u64 %q, own; st.global.u64 [p], %q;") + named("h", "") + `.visible .entry k(.param .u64 p) {
	.reg .b32 %r<6>; .reg .b64 %d; .local .align 4 .b32 mine[2];
	ld.param.u64 %d, [p]; mov.u32 %r0, %tid.x; st.local.b32 [mine], %r0; ld.local.b32 %r0, [mine];
	call (%r1), f, (%r0, %d); call (%r2), CALLEE, (%r1, %d); call (%r3), h, (%r2, %d); call (%r4), f, (%r3, %d);
	st.global.u32 [%d], %r4; ret; }`
	for callee, want := range map[string]int{"g": 2, "h": 0} {
		f := builtText(t, strings.Replace(src, "CALLEE", callee, 1))
		Optimise(f, nil)
		n := 0
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				if in.Op == Load || in.Op == Store && in.Inst.Space == event.Local {
					n++
				}
			}
		}
		if n != want {
			t.Errorf("calling %s: %d accesses of local memory stay, want %d\n%v", callee, n, want, f)
		}
	}
}
