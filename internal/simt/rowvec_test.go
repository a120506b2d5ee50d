package simt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestVectorInstructions makes sure that what programs compute most is done 32 lanes at once, whichever operand is the same for
// all lanes: an instruction done lane by lane takes many times as long.
func TestVectorInstructions(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(`
add.f32 %f9, %f0, %f1
sub.f32 %f9, %f0, %f1
mul.f32 %f9, %f0, %f1
div.rn.f32 %f9, %f0, %f1
min.f32 %f9, %f0, %f1
max.f32 %f9, %f0, %f1
fma.rn.f32 %f9, %f0, %f1, %f2
add.f64 %fd7, %fd0, %fd1
sub.f64 %fd7, %fd0, %fd1
mul.f64 %fd7, %fd0, %fd1
div.rn.f64 %fd7, %fd0, %fd1
min.f64 %fd7, %fd0, %fd1
max.f64 %fd7, %fd0, %fd1
fma.rn.f64 %fd7, %fd0, %fd1, %fd2
add.u32 %r9, %r0, %r1
sub.u32 %r9, %r0, %r1
mul.lo.u32 %r9, %r0, %r1
mul.hi.u32 %r9, %r0, %r1
mul.hi.s32 %r9, %r0, %r1
mul.wide.u32 %rd9, %r0, %r1
mul.wide.s32 %rd9, %r0, %r1
mad.lo.u32 %r9, %r0, %r1, %r2
div.u32 %r9, %r0, %r1
rem.s32 %r9, %r0, %r1
min.s32 %r9, %r0, %r1
max.u32 %r9, %r0, %r1
and.b32 %r9, %r0, %r1
xor.b32 %r9, %r0, %r1
not.b32 %r9, %r0
shl.b32 %r9, %r0, %r1
shr.s32 %r9, %r0, %r1
popc.b32 %r9, %r0
clz.b32 %r9, %r0
brev.b32 %r9, %r0
abs.s32 %r9, %r0
add.u64 %rd9, %rd0, %rd1
sub.u64 %rd9, %rd0, %rd1
mul.lo.u64 %rd9, %rd0, %rd1
min.s64 %rd9, %rd0, %rd1
max.u64 %rd9, %rd0, %rd1
or.b64 %rd9, %rd0, %rd1
shl.b64 %rd9, %rd0, %r1
shr.u64 %rd9, %rd0, %r1
popc.b64 %r9, %rd0
clz.b64 %r9, %rd0
abs.s64 %rd9, %rd0
sqrt.rn.f32 %f9, %f0
rcp.rn.f32 %f9, %f0
rsqrt.approx.f32 %f9, %f0
ex2.approx.f32 %f9, %f0
lg2.approx.f32 %f9, %f0
neg.f32 %f9, %f0
abs.f32 %f9, %f0
sqrt.rn.f64 %fd7, %fd0
rcp.rn.f64 %fd7, %fd0
neg.f64 %fd7, %fd0
abs.f64 %fd7, %fd0
cvt.rn.f32.s32 %f9, %r0
cvt.rn.f32.u32 %f9, %r0
cvt.rn.f32.f64 %f9, %fd0
cvt.rn.f64.s32 %fd7, %r0
cvt.f64.f32 %fd7, %f0
cvt.rn.f64.s64 %fd7, %rd0
cvt.rzi.s32.f32 %r9, %f0
cvt.rzi.u32.f32 %r9, %f0
cvt.rzi.s32.f64 %r9, %fd0
cvt.rzi.s64.f64 %rd9, %fd0
cvt.rmi.f32.f32 %f9, %f0
cvt.rni.f64.f64 %fd7, %fd0
cvt.sat.f32.f32 %f9, %f0
cvt.s64.s32 %rd9, %r0
cvt.u64.u32 %rd9, %r0
cvt.u32.u64 %r9, %rd0
cvt.s32.s8 %r9, %r0
shf.l.wrap.b32 %r9, %r0, %r1, 7
shf.r.wrap.b32 %r9, %r0, %r1, 7
prmt.b32 %r9, %r0, %r1, 0x5410
lop3.b32 %r9, %r0, %r1, %r2, 0x96
setp.lt.s32 %p7, %r0, %r1
setp.ge.u64 %p7, %rd0, %rd1
setp.lt.f32 %p7, %f0, %f1
setp.neu.f64 %p7, %fd0, %fd1
selp.b32 %r9, %r0, %r1, %p1
selp.f64 %fd7, %fd0, %fd1, %p1
mov.b64 %rd9, {%r0, %r1}`), "\n") {
		for uniform := -1; uniform < 3; uniform++ {
			if uniform >= 0 && !strings.Contains(line, fmt.Sprintf("%d,", uniform)) && !strings.HasSuffix(line, fmt.Sprint(uniform)) {
				break
			}
			g := newRig(t, vectorKernel(line, uniform))
			text, err := g.prog.text(g.prepare(launch{out: g.buffer(32)}), false)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(text.code, func(in ins) bool { return in.op == oRow }) {
				t.Errorf("%s, operand %d the same for all: computed lane by lane", line, uniform)
			}
		}
	}
}

// vectorKernel computes an instruction on registers that are loaded, those of a number from one place for all lanes.
func vectorKernel(line string, uniform int) string {
	var b strings.Builder
	b.WriteString("mul.wide.u32 %rd20, %gid, 128; add.u64 %rd20, %rd20, %out; setp.lt.u32 %p1, %n, %ln;\n")
	for k := range 3 {
		base := "%rd20"
		if k == uniform {
			base = "%out"
		}
		fmt.Fprintf(&b, "ld.global.u32 %%r%d, [%s+%d]; ld.global.u64 %%rd%d, [%s+%d]; ld.global.f32 %%f%d, [%s+%d]; ld.global.f64 %%fd%d, [%s+%d];\n",
			k, base, 32*k, k, base, 32*k+8, k, base, 32*k+16, k, base, 32*k+24)
	}
	store := map[string]string{"%r9": "u32", "%rd9": "u64", "%f9": "f32", "%fd7": "f64"}
	_, rest, _ := strings.Cut(line, " ")
	d, _, _ := strings.Cut(rest, ",")
	b.WriteString(line + ";\n")
	if d == "%p7" {
		b.WriteString("selp.u32 %r9, 5, 3, %p7;\n")
		d = "%r9"
	}
	fmt.Fprintf(&b, "st.global.%s [%%rd20+96], %s;\n", store[d], d)
	return kernel(b.String())
}
