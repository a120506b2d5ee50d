package warp

import (
	"strings"
	"testing"
)

// wants compares the words of a buffer.
func wants(t *testing.T, g *rig, out uint64, want ...uint32) {
	t.Helper()
	for i, w := range g.words(out, len(want)) {
		if w != want[i] {
			t.Errorf("word %d is %#x, want %#x", i, w, want[i])
		}
	}
}

// TestWideAtomics exchanges and compares 16 bytes as one value. If the comparison fails in one half, neither half is
// written.
func TestWideAtomics(t *testing.T) {
	g := newRig(t, kernel(`
	.reg .b128 %q<5>;
	mov.b128 %q1, {0x1111111122222222, 0x3333333344444444};
	mov.b128 %q2, {0x1111111122222222, 5};
	mov.b128 %q3, {7, 8};
	atom.global.exch.b128 %q0, [%out], %q1;
	st.global.b128 [%out+16], %q0;
	atom.relaxed.gpu.global.cas.b128 %q4, [%out], %q2, %q3;
	st.global.b128 [%out+32], %q4;
	atom.cas.b128 %q4, [%out], %q1, %q3;
	st.global.b128 [%out+48], %q4;
	ld.global.b128 %q0, [%out];
	mov.b128 {%rd1, %rd2}, %q0;
	st.global.v2.b64 [%out+64], {%rd1, %rd2};`))
	out := g.buffer(24)
	b, _ := g.mem.Bytes(out, 16)
	for i := range b {
		b[i] = byte(i)
	}
	o := g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 7, 0, 8, 0,
		0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c,
		0x22222222, 0x11111111, 0x44444444, 0x33333333,
		0x22222222, 0x11111111, 0x44444444, 0x33333333,
		7, 0, 8, 0)
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		atomic w0 00000001 global relaxed.gpu rw16 exch out+0 +0
		store w0 00000001 global w16 out+16 +0
		atomic w0 00000001 global relaxed.gpu r16 cas out+0 +0
		store w0 00000001 global w16 out+32 +0
		atomic w0 00000001 global relaxed.gpu rw16 cas out+0 +0
		store w0 00000001 global w16 out+48 +0
		load w0 00000001 global r16 out+0 +0
		store w0 00000001 global w16 out+64 +0
		exit w0 00000001
		kernel-end w0 00000000`)
}

// TestWideVectors moves vectors of eight elements, vector registers, and special registers with all their components.
func TestWideVectors(t *testing.T) {
	g := newRig(t, kernel(`
	.reg .v4 .u32 %v, %u;
	.reg .f16 %h<8>;
	mov.v4.u32 %v, %ntid;
	mov.v4.u32 %u, {%v.y, %v.x, 9, %v.w};
	st.global.v4.u32 [%out], %u;
	ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, _}, [%out+32];
	st.global.v8.b32 [%out+64], {%r7, %r6, %r5, %r4, %r3, %r2, %r1, 1};
	ld.global.v2.u32 {%r1, %r2}, [%out+96];
	mov.v2.u32 {%r1, %r2}, {%r2, %r1};
	st.global.v2.u32 [%out+96], {%r1, %r2};
	ld.f16 %h0, [%out+104];
	mov.b16 %h1, %h0;
	red.global.add.noftz.v8.f16 [%out+112], {%h1, %h0, %h1, %h0, %h1, %h0, %h1, %h0};
	atom.shared::cluster.max.noftz.f16 %h2, [box], %h1;
	ld.shared::cluster.b16 %r3, [box];
	st.global.u32 [%out+128], %r3;`)+"\n.shared .align 4 .b16 box[2];\n")
	out := g.buffer(33)
	b, _ := g.mem.Bytes(out, 33*4)
	for i := 8; i < 16; i++ {
		b[4*i] = byte(i)
	}
	b[96], b[100] = 1, 2
	b[105] = 0x3c // 1.0
	g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 1, 1, 9, 1, 0, 0, 0, 0,
		8, 9, 10, 11, 12, 13, 14, 15,
		14, 13, 12, 11, 10, 9, 8, 1,
		2, 1, 0x3c00, 0, 0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c00)
}

// TestIndexedArrays reads and writes elements of arrays by constants, registers, and registers with an offset.
func TestIndexedArrays(t *testing.T) {
	src := kernel(`
	.shared .align 8 .u64 box[8];
	.local .align 4 .u32 own[4];
	mov.u32 %r1, 2;
	st.shared.u64 box[3], 33;
	st.u64 box[%r1], 22;
	ld.shared.u64 %rd1, box[%r1+1];
	st.global.u64 [%out], %rd1;
	ld.shared.u64 %rd1, box[2];
	st.global.u64 [%out+8], %rd1;
	ld.const.u32 %r2, table[%r1+-1];
	st.global.u32 [%out+16], %r2;
	mov.u64 %rd2, table[2];
	ld.u32 %r3, [%rd2];
	st.global.u32 [%out+20], %r3;
	st.local.u32 own[1], 44;
	ld.local.u32 %r4, own[%r1+-1];
	red.global.add.u32 counters[1], %r4;
	ld.global.u32 %r5, [counters+4];
	st.global.u32 [%out+24], %r5;`)
	g := newRig(t, src+"\n.const .align 4 .u32 table[3] = {5, 6, 7};\n.global .align 4 .u32 counters[2] = {0, 1};\n")
	out := g.buffer(7)
	g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 33, 0, 22, 0, 6, 7, 45)
}

// TestLocalFromItsEnd reads local memory backwards by a pointer that begins after it, and forwards by a pointer that
// begins before it. The code has no address inside the memory.
func TestLocalFromItsEnd(t *testing.T) {
	g := newRig(t, kernel(`
	.local .align 4 .u32 own[4];
	st.local.u32 [own], 1; st.local.u32 [own+4], 2; st.local.u32 [own+8], 3; st.local.u32 [own+12], 4;
	mov.u64 %rd1, own+16;
	mov.u32 %r1, 0;
BACK:	add.u64 %rd1, %rd1, -4;
	ld.local.u32 %r2, [%rd1];
	mad.lo.u32 %r1, %r1, 10, %r2;
	setp.lt.u32 %p1, %r1, 4321;
	@%p1 bra BACK;
	st.global.u32 [%out], %r1;
	mov.u64 %rd1, own+-4;
	mov.u32 %r1, 0;
ON:	add.u64 %rd1, %rd1, 4;
	ld.local.u32 %r2, [%rd1];
	mad.lo.u32 %r1, %r1, 10, %r2;
	setp.lt.u32 %p1, %r1, 1234;
	@%p1 bra ON;
	st.global.u32 [%out+4], %r1;`))
	out := g.buffer(2)
	g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 4321, 1234)
}

// TestPackedConversions converts to and from numbers of 16 bits and fewer, two in a register.
func TestPackedConversions(t *testing.T) {
	g := newRig(t, kernel(`
	.reg .b8 %c<3>;
	mov.u32 %r1, -1; mov.u32 %r2, 70000; mov.u32 %r3, 0x1234;
	cvt.pack.sat.s16.s32 %r4, %r1, %r2;
	st.global.u32 [%out], %r4;
	cvt.pack.sat.s8.s32.b32 %r4, %r1, %r2, %r3;
	st.global.u32 [%out+4], %r4;
	cvt.pack.sat.u4.s32.b32 %r4, %r1, %r2, %r3;
	st.global.u32 [%out+8], %r4;
	mov.f32 %f1, 0f3FC00000; mov.f32 %f2, 0fC47A0000; // 1.5, -1000
	cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;
	cvt.u32.u16 %r4, %rs1;
	st.global.u32 [%out+12], %r4;
	cvt.rn.f16x2.e4m3x2 %r4, %rs1;
	st.global.u32 [%out+16], %r4;
	cvt.rn.satfinite.relu.e5m2x2.f16x2 %rs1, %r4;
	cvt.rn.bf16x2.e5m2x2 %r4, %rs1;
	st.global.u32 [%out+20], %r4;
	cvt.rn.satfinite.e2m1x2.f32 %c1, %f1, %f2;
	cvt.rn.f16x2.e2m1x2 %r4, %c1;
	st.global.u32 [%out+24], %r4;
	cvt.rz.ue8m0x2.f32 %rs1, %f1, %f2;
	cvt.rp.satfinite.ue8m0x2.f32 %rs2, %f2, %f1;
	mov.b32 %r4, {%rs1, %rs2};
	st.global.u32 [%out+28], %r4;`))
	out := g.buffer(8)
	g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 0xffff7fff, 0x1234ff7f, 0x0012340f, 0x3cfe, 0x3e00df00, 0x3fc00000, 0x3e00c600, 0x89807f88)
}

// TestWideConversions converts from and to registers wider than the types, and in both directions between types of one size.
func TestWideConversions(t *testing.T) {
	g := newRig(t, kernel(`
	mov.u32 %r1, 0xffff3c00; mov.u64 %rd1, 0xffffffff3fc00000; mov.f32 %f2, 0fC0200000; // 1.0 below, 1.5 below, -2.5
	cvt.f32.f16 %f1, %r1;
	st.global.f32 [%out], %f1;
	cvt.rn.f16.f32 %r2, %rd1;
	st.global.u32 [%out+4], %r2;
	cvt.rzi.s16.f32 %rd2, %f2;
	st.global.u64 [%out+8], %rd2;
	cvt.rn.f32.s32 %rd2, %r1;
	st.global.u64 [%out+16], %rd2;
	mov.u16 %rs1, 0x3c00; mov.u16 %rs2, 0x3f80;
	cvt.rn.bf16.f16 %rs3, %rs1;
	cvt.rn.f16.bf16 %rs4, %rs2;
	mov.b32 %r2, {%rs3, %rs4};
	st.global.u32 [%out+24], %r2;
	set.gt.u16.f16 %rs3, %rs1, %rs2; // of f16, 1.875 is greater
	set.lt.s16.bf16 %rs4, %rs1, %rs2;
	mov.b32 %r2, {%rs3, %rs4};
	st.global.u32 [%out+28], %r2;`))
	out := g.buffer(8)
	g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 0x3f800000, 0x3e00, 0xfffffffe, 0xffffffff, 0xc7440000, 0, 0x3c003f80, 0xffff0000)
}

// TestHalfOf128Bits checks that a 128-bit register as a narrower source or as an address is its low half.
func TestHalfOf128Bits(t *testing.T) {
	g := newRig(t, kernel(`
	.reg .b128 %q<3>;
	mov.b128 %q1, {0x1111111122222222, 5};
	mov.b128 %q2, {0x3333333344444444, 6};
	st.global.v2.u32 [%out], {%q1, %q2};
	st.global.u64 [%out+8], %q2;
	cvt.u32.u64 %r1, %q1;
	st.global.u32 [%out+16], %r1;
	mov.b128 %q1, word;
	mov.b128 {%rd1, %rd2}, %q1;
	ld.global.u32 %r1, [%rd1];
	st.global.u32 [%out+20], %r1;
	st.global.u64 [%out+24], %rd2;`)+"\n.global .u32 word = 9;\n")
	out := g.buffer(8)
	g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 0x22222222, 0x44444444, 0x44444444, 0x33333333, 0x22222222, 9, 0, 0)
}

// TestShortSharedAddresses checks that instructions that access only shared memory take 32-bit addresses even without a
// space.
func TestShortSharedAddresses(t *testing.T) {
	g := newRig(t, kernel(`
	mov.u32 %r1, bar;
	mov.u32 %r2, rows;
	setp.ne.u32 %p1, %tx, 0;
	@%p1 bra WAIT;
	mbarrier.init.b64 [%r1], 1;
	mbarrier.arrive.b64 %rd1, [%r1];
	mbarrier.test_wait.b64 %p2, [%r1], %rd1;
	selp.u32 %r3, 7, 6, %p2;
	st.global.u32 [%out], %r3;
WAIT:
	bar.sync 0;
	mad.lo.u32 %r3, %tx, 4, %r2;
	st.shared.u32 [%r3], %tx;
	bar.sync 0;
	mad.lo.u32 %r3, %tx, 16, %r2;
	ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%r3];
	setp.eq.u32 %p1, %tx, 5;
	@%p1 st.global.u32 [%out+4], %r4;`)+"\n.shared .align 8 .b64 bar;\n.shared .align 16 .b8 rows[512];\n")
	out := g.buffer(2)
	g.mustRun(launch{out: out})
	wants(t, g, out, 7, 5)
}

// TestStack allocates local memory of a dynamic size, in a kernel and in a function that it calls, and frees it in a
// loop that would otherwise exceed the stack.
func TestStack(t *testing.T) {
	src := strings.Replace(kernel(`
	mov.u64 %rd1, 12;
	alloca.u64 %rd2, %rd1;
	add.u32 %r1, %ln, 5;
	st.local.u32 [%rd2+8], %r1;
	alloca.u64 %rd3, 4, 64;
	st.local.u32 [%rd3], 7;
	cvta.local.u64 %rd4, %rd2;
	ld.u32 %r2, [%rd4+8];
	ld.local.u32 %r3, [%rd3];
	mad.lo.u32 %r4, %r2, 100, %r3;
	mov.u32 %r5, 0;
AGAIN:	stacksave.u64 %rd5;
	alloca.u64 %rd6, 4096;
	st.local.u32 [%rd6+4092], %r5;
	stackrestore.u64 %rd5;
	add.u32 %r5, %r5, 1;
	setp.lt.u32 %p1, %r5, 100;
	@%p1 bra AGAIN;
	{ .reg .b32 %x; call (%x), sum, (%r5); add.u32 %r4, %r4, %x; call (%x), sum, (%r5); sub.u32 %r4, %r4, %x; }
	and.b64 %rd3, %rd3, 63;
	cvt.u32.u64 %r6, %rd3;
	add.u32 %r4, %r4, %r6;
	st.global.u32 [%mine], %r4;`), ".visible .entry", `
.func (.reg .b32 r) sum(.reg .b32 n) {
	.reg .b32 %a; .reg .b64 %p, %q;
	cvt.u64.u32 %p, n;
	alloca.u64 %q, %p;
	st.local.u32 [%q+96], n;
	ld.local.u32 r, [%q+96];
	ret;
}
.visible .entry`, 1)
	g := newRig(t, src)
	out := g.buffer(32)
	g.mustRun(launch{block: 32, out: out})
	for i, w := range g.words(out, 32) {
		if want := uint32(i+5)*100 + 7; w != want {
			t.Errorf("lane %d has %d, want %d", i, w, want)
		}
	}
}
