package warp

import "testing"

// TestVideo executes video instructions with selectors and signs. The values were computed by hand.
func TestVideo(t *testing.T) {
	g := newRig(t, kernel(`
	ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%out];
	vadd.s32.u32.s32.sat %r5, %r1.b0, %r2.h1;
	st.global.u32 [%out+16], %r5;
	vsub.u32.u32.u32.sat %r5.b2, %r1.b0, %r1.b1, %r3;
	st.global.u32 [%out+20], %r5;
	vabsdiff.u32.s32.s32.add %r5, %r2, %r1.b3, %r4;
	st.global.u32 [%out+24], %r5;
	vmad.s32.s32.u32.shr7 %r5, -%r1.h0, %r2.b3, %r4;
	st.global.u32 [%out+28], %r5;
	vset.s32.u32.lt %r5.h1, %r2.b3, %r1.b1, %r3;
	st.global.u32 [%out+32], %r5;
	vshl.u32.u32.u32.sat.clamp.max %r5, %r1.b0, 28, %r4;
	st.global.u32 [%out+36], %r5;
	vadd4.u32.u32.u32.sat %r5.b20, %r1, %r2.b4321, %r3;
	st.global.u32 [%out+40], %r5;
	vabsdiff4.u32.u32.u32.add %r5, %r1, %r2, %r4;
	st.global.u32 [%out+44], %r5;
	vavrg2.s32.s32.s32 %r5, %r1, %r2, %r3;
	st.global.u32 [%out+48], %r5;
	vset2.u32.u32.le.add %r5.h1, %r1.h01, %r2, 7;
	st.global.u32 [%out+52], %r5;`))
	out := g.buffer(14)
	b, _ := g.mem.Bytes(out, 16)
	for i, v := range []uint32{0x80ff0110, 0xfff00002, 0xcccccccc, 1000} {
		for k := range 4 {
			b[4*i+k] = byte(v >> (8 * k))
		}
	}
	g.mustRun(launch{block: 1, out: out})
	wants(t, g, out, 0x80ff0110, 0xfff00002, 0xcccccccc, 1000,
		0,          // 0x10 - 16
		0xcc0fcccc, // 0x10 - 1 in byte 2
		0x00100366, // 1048574 - 128 + 1000
		0xfffffde9, // (-(272*255) + 1000) / 128, down
		0x0001cccc, // -1 is less than 1
		0xffffffff, // 16 * 2^28 saturates
		0xccffcc11, // 0x10 + 0x01 in byte 0, 0xff + 0x80 saturates in byte 2
		0x00000485, // 127 + 15 + 1 + 14 + 1000
		0xc0770089, // (272 + 2 + 1) / 2, (-32513 - 16) / 2 down
		8,          // 0x0110 is less than 0xfff0
	)
}
