package opt

import (
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// wordAround computes for the one or two bytes at %d1 the word's address %d2, the shift %r0 and the masks %r1 and %r2.
const wordAround = `
	and.b64 %d2, %d1, -4; cvt.u32.u64 %r0, %d1; shl.b32 %r0, %r0, 3; and.b32 %r0, %r0, 24;
	mov.u32 %r1, 255; shl.b32 %r1, %r1, %r0; not.b32 %r2, %r1;
	ld.relaxed.gpu.b32 %r3, [%d2];`

// TestFindElements checks which accesses of a kernel touch only elements.
func TestFindElements(t *testing.T) {
	for _, c := range []struct {
		name, code string
		sizes      []uint8
	}{
		{"a byte", "shr.u32 %r4, %r3, %r0; and.b32 %r4, %r4, 255; st.global.u32 [%d0], %r4;", []uint8{1}},
		{"a byte by its mask", "and.b32 %r4, %r3, %r1; st.global.u32 [%d0], %r4;", []uint8{1}},
		{"two bytes", "shr.u32 %r4, %r3, %r0; cvt.u32.u16 %r4, %r4; st.global.u32 [%d0], %r4;", []uint8{2}},
		{"a byte and two", "and.b32 %r5, %r3, %r1; st.global.u32 [%d0], %r5; shr.u32 %r4, %r3, %r0; st.global.u16 [%d0], %r4;", []uint8{2}},
		{"three bytes", "shr.u32 %r4, %r3, %r0; and.b32 %r4, %r4, 0xffffff; st.global.u32 [%d0], %r4;", nil},
		{"what is above the byte", "shr.u32 %r4, %r3, %r0; shr.u32 %r4, %r4, 8; and.b32 %r4, %r4, 255; st.global.u32 [%d0], %r4;", nil},
		{"the whole as well", "shr.u32 %r4, %r3, %r0; and.b32 %r4, %r4, 255; st.global.u32 [%d0], %r4; st.global.u32 [%d0+4], %r3;", nil},
		{"compared as a whole", "setp.eq.u32 %p, %r3, 7; selp.u32 %r4, 1, 2, %p; st.global.u32 [%d0], %r4;", nil},
		{"another shift", "add.u32 %r5, %r0, 8; shr.u32 %r4, %r3, %r5; and.b32 %r4, %r4, 255; st.global.u32 [%d0], %r4;", nil},
		{"an address in between", "ld.relaxed.gpu.b32 %r4, [%d2+4]; shr.u32 %r4, %r3, %r0; and.b32 %r4, %r4, 255; st.global.u32 [%d0], %r4;", nil},
		{"a sum beyond the byte", "shr.u32 %r4, %r3, %r0; add.u32 %r4, %r4, 1; and.b32 %r4, %r4, 511; st.global.u32 [%d0], %r4;", []uint8{2}},
		{"around a loop", "shr.u32 %r4, %r3, %r0; mov.u32 %r5, 0; L: shr.u32 %r4, %r4, 1; add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, 9; @%p bra L; st.global.u8 [%d0], %r4;", nil},
		{"a swap", "L: and.b32 %r4, %r3, %r2; mov.u32 %r5, 7; shl.b32 %r5, %r5, %r0; or.b32 %r4, %r4, %r5; " +
			"atom.cas.gpu.b32 %r6, [%d2], %r3, %r4; setp.ne.u32 %p, %r6, %r3; mov.u32 %r3, %r6; @%p bra L;", []uint8{1, 1}},
		{"a swap that writes more", "L: and.b32 %r4, %r3, %r2; mov.u32 %r5, 0x107; shl.b32 %r5, %r5, %r0; or.b32 %r4, %r4, %r5; " +
			"atom.cas.gpu.b32 %r6, [%d2], %r3, %r4; setp.ne.u32 %p, %r6, %r3; mov.u32 %r3, %r6; @%p bra L;", nil},
		{"a swap of what nobody compared with", "and.b32 %r4, %r3, %r2; ld.relaxed.gpu.b32 %r7, [%d2]; atom.cas.gpu.b32 %r6, [%d2], %r7, %r4;", nil},
		{"a swap to what comes from elsewhere", "ld.global.u32 %r4, [%d0]; atom.cas.gpu.b32 %r6, [%d2], %r3, %r4;", nil},
		{"a byte, and a swap to what comes from elsewhere", "shr.u32 %r5, %r3, %r0; and.b32 %r5, %r5, 255; st.global.u32 [%d0+4], %r5; " +
			"ld.global.u32 %r4, [%d0]; atom.cas.gpu.b32 %r6, [%d2], %r3, %r4;", nil},
		{"a byte, and whether the word has changed", "shr.u32 %r5, %r3, %r0; and.b32 %r5, %r5, 255; st.global.u32 [%d0+4], %r5; " +
			"ld.relaxed.gpu.b32 %r7, [%d2]; setp.eq.u32 %p, %r7, %r3; selp.u32 %r4, 1, 2, %p; st.global.u32 [%d0], %r4;", nil},
		{"a store to the word", "and.b32 %r4, %r3, %r1; st.global.u32 [%d0], %r4; st.global.u32 [%d2], %r4;", nil},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := ptx.Parse("k.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b) {\n"+
				".reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p; ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b];"+wordAround+c.code+" ret; }\n")
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
			found, err := FindElements(k, m.SharedLayout(k))
			if err != nil {
				t.Fatal(err)
			}
			var sizes []uint8
			if found.Bases > 0 {
				for _, e := range found.funcs[0].list {
					sizes = append(sizes, e.Size)
				}
			}
			if string(sizes) != string(c.sizes) {
				t.Errorf("elements of %v bytes, want %v", sizes, c.sizes)
			}
		})
	}
}
