package warp

import (
	"strings"
	"testing"
)

// TestNarrowAddresses runs a module with 32-bit addresses: of variables, of functions, and generic ones of every space.
func TestNarrowAddresses(t *testing.T) {
	src := kernel(`
	.reg .b32 %a, %b, %c, %d;
	.shared .align 4 .b32 box[32];
	.local .align 4 .b32 own[2];
	cvt.u32.u64 %a, %out;              // a pointer as such a module has it
	ld.global.u32 %r1, [%a+4];
	st.global.u32 [%a], %r1;
	mov.u32 %b, table;
	add.u32 %b, %b, 8;
	ld.const.u32 %r2, [%b+-4];
	st.global.u32 [%a+8], %r2;
	mov.u32 %c, box;
	cvta.shared.u32 %c, %c;
	st.u32 [%c+12], 33;
	ld.shared.u32 %r3, [box+12];
	st.u32 [%a+12], %r3;
	isspacep.shared %p1, %c;
	isspacep.global %p2, %c;
	isspacep.global %p3, %a;
	selp.u32 %r4, 1, 0, %p1;
	selp.u32 %r5, 2, 0, %p2;
	selp.u32 %r6, 4, 0, %p3;
	or.b32 %r4, %r4, %r5;
	or.b32 %r4, %r4, %r6;
	st.global.u32 [%a+16], %r4;
	cvta.local.u32 %d, own;
	st.u32 [%d+4], 44;
	ld.local.u32 %r7, [own+4];
	red.global.add.u32 [%a+20], %r7;
	cvta.to.shared.u32 %c, %c;
	ld.shared.u32 %r8, [%c+12];
	atom.add.u32 %r9, [%a+20], %r8;
	ld.global.u32 %r10, [pointers+4];
	ld.u32 %r11, [%r10];
	st.global.u32 [%a+24], %r11;
	ld.global.u32 %r12, [pointers];
	{ .reg .b32 %x; call (%x), %r12, (%r11), proto; st.global.u32 [%a+28], %x; }
	proto: .callprototype (.reg .b32 _) _ (.reg .b32 _);`)
	src = strings.Replace(src, ".address_size 64", ".address_size 32", 1)
	src = strings.Replace(src, ".visible .entry", `
.const .align 4 .u32 table[3] = {5, 6, 7};
.global .align 4 .u32 pointers[2] = {twice, counter};
.global .align 4 .u32 counter = 21;
.func (.reg .b32 r) twice(.reg .b32 a) { add.u32 r, a, a; ret; }
.visible .entry`, 1)
	g := newRig(t, src)
	out := g.buffer(8)
	b, _ := g.mem.Bytes(out, 8)
	b[4] = 11
	o := g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 11, 11, 6, 33, 5, 77, 21, 42)
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		load w0 00000001 global r4 out+4 +0
		store w0 00000001 global w4 out+0 +0
		store w0 00000001 global w4 out+8 +0
		store w0 00000001 shared w4 c+0
		load w0 00000001 shared r4 c+0
		store w0 00000001 global w4 out+12 +0
		store w0 00000001 global w4 out+16 +0
		atomic w0 00000001 global relaxed.gpu rw4 out+20 +0
		load w0 00000001 shared r4 c+0
		atomic w0 00000001 global relaxed.gpu rw4 out+20 +0
		load w0 00000001 global r4 200000000404+0
		load w0 00000001 global r4 200000000800+0
		store w0 00000001 global w4 out+24 +0
		load w0 00000001 global r4 200000000400+0
		store w0 00000001 global w4 out+28 +0
		exit w0 00000001
		kernel-end w0 00000000`)
}
