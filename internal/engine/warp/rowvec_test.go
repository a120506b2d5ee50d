package warp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// vectorLines are instructions that are executed for 32 lanes at a time. The operands whose numbers follow the bar are
// read as scalars.
var vectorLines = strings.Split(strings.TrimSpace(`
add.f32 %f9, %f0, %f1 | 01
sub.f32 %f9, %f0, %f1 | 01
mul.f32 %f9, %f0, %f1 | 01
div.rn.f32 %f9, %f0, %f1 | 01
min.f32 %f9, %f0, %f1 | 1
max.f32 %f9, %f0, %f1 | 1
fma.rn.f32 %f9, %f0, %f1, %f2 | 012
add.f64 %fd7, %fd0, %fd1 | 1
sub.f64 %fd7, %fd0, %fd1 | 01
mul.f64 %fd7, %fd0, %fd1 | 1
div.rn.f64 %fd7, %fd0, %fd1 | 01
min.f64 %fd7, %fd0, %fd1 | 1
max.f64 %fd7, %fd0, %fd1 | 1
fma.rn.f64 %fd7, %fd0, %fd1, %fd2 | 12
add.u32 %r9, %r0, %r1 | 01
sub.u32 %r9, %r0, %r1 | 01
mul.lo.u32 %r9, %r0, %r1 | 01
mul.hi.u32 %r9, %r0, %r1 | 01
mul.hi.s32 %r9, %r0, %r1 | 01
mul.wide.u32 %rd9, %r0, %r1 | 01
mul.wide.s32 %rd9, %r0, %r1 | 01
mad.lo.u32 %r9, %r0, %r1, %r2 | 012
div.u32 %r9, %r0, %r1 | 1
rem.s32 %r9, %r0, %r1 | 1
min.s32 %r9, %r0, %r1 | 01
max.u32 %r9, %r0, %r1 | 01
and.b32 %r9, %r0, %r1 | 01
xor.b32 %r9, %r0, %r1 | 01
not.b32 %r9, %r0
shl.b32 %r9, %r0, %r1 | 1
shr.s32 %r9, %r0, %r1 | 1
popc.b32 %r9, %r0
clz.b32 %r9, %r0
brev.b32 %r9, %r0
abs.s32 %r9, %r0
add.u64 %rd9, %rd0, %rd1 | 01
sub.u64 %rd9, %rd0, %rd1 | 01
mul.lo.u64 %rd9, %rd0, %rd1 | 01
min.s64 %rd9, %rd0, %rd1 | 01
max.u64 %rd9, %rd0, %rd1 | 01
or.b64 %rd9, %rd0, %rd1 | 01
shl.b64 %rd9, %rd0, %r1 | 1
shr.u64 %rd9, %rd0, %r1 | 1
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
setp.lt.s32 %p7, %r0, %r1 | 01
setp.ge.u64 %p7, %rd0, %rd1 | 01
setp.lt.f32 %p7, %f0, %f1 | 1
setp.neu.f64 %p7, %fd0, %fd1 | 1
selp.b32 %r9, %r0, %r1, %p1
selp.f64 %fd7, %fd0, %fd1, %p1
mov.b64 %rd9, {%r0, %r1}
min.u32 %r9, %r0, %r1 | 01
max.s32 %r9, %r0, %r1 | 01
min.u64 %rd9, %rd0, %rd1 | 01
max.s64 %rd9, %rd0, %rd1 | 01
div.s32 %r9, %r0, %r1 | 1
rem.u32 %r9, %r0, %r1 | 1
or.b32 %r9, %r0, %r1 | 01
and.b64 %rd9, %rd0, %rd1 | 01
xor.b64 %rd9, %rd0, %rd1 | 01
not.b64 %rd9, %rd0
shr.u32 %r9, %r0, %r1 | 1
shr.s64 %rd9, %rd0, %r1 | 1
mad.lo.u64 %rd9, %rd0, %rd1, %rd2
mad.wide.s32 %rd9, %r0, %r1, %rd2
mad.wide.u32 %rd9, %r0, %r1, %rd2
fma.rm.f32 %f9, %f0, %f1, %f2 | 012
mad.rn.f32 %f9, %f0, %f1, %f2 | 012
mad.rn.f64 %fd7, %fd0, %fd1, %fd2 | 12
cvt.rn.f32.s64 %f9, %rd0
cvt.rn.f32.u64 %f9, %rd0
cvt.rn.f64.u32 %fd7, %r0
cvt.rn.f64.u64 %fd7, %rd0
cvt.rzi.u32.f64 %r9, %fd0
cvt.rzi.u64.f64 %rd9, %fd0
cvt.rzi.s64.f32 %rd9, %f0
cvt.rzi.u64.f32 %rd9, %f0
cvt.rni.f32.f32 %f9, %f0
cvt.rpi.f32.f32 %f9, %f0
cvt.rzi.f32.f32 %f9, %f0
cvt.rmi.f64.f64 %fd7, %fd0
cvt.rpi.f64.f64 %fd7, %fd0
cvt.rzi.f64.f64 %fd7, %fd0
cvt.rni.s32.f32 %r9, %f0
cvt.rmi.s32.f32 %r9, %f0
cvt.rpi.s32.f32 %r9, %f0
cvt.u32.u8 %r9, %r0
cvt.s64.s8 %rd9, %r0
cvt.u64.u16 %rd9, %r0
cvt.s64.s16 %rd9, %rd0
cvt.s32.s16 %r9, %rd0
cvt.u16.u64 %r9, %rd0
ex2.approx.ftz.f32 %f9, %f0
lg2.approx.ftz.f32 %f9, %f0
rcp.approx.ftz.f32 %f9, %f0
sqrt.approx.ftz.f32 %f9, %f0
rsqrt.approx.ftz.f32 %f9, %f0
neg.ftz.f32 %f9, %f0
abs.ftz.f32 %f9, %f0
lop3.b32 %r9, %r0, %r1, %r2, 0xca
prmt.b32 %r9, %r0, %r1, 0xba98
selp.b64 %rd9, %rd0, %rd1, %p1
selp.f32 %f9, %f0, %f1, %p1
mov.b64 {%r9, %r10}, %rd0
setp.eq.s32 %p7, %r0, %r1 | 01
setp.ne.s32 %p7, %r0, %r1 | 01
setp.le.s32 %p7, %r0, %r1 | 01
setp.gt.s32 %p7, %r0, %r1 | 01
setp.ge.s32 %p7, %r0, %r1 | 01
setp.eq.u32 %p7, %r0, %r1 | 01
setp.ne.u32 %p7, %r0, %r1 | 01
setp.lt.u32 %p7, %r0, %r1 | 01
setp.le.u32 %p7, %r0, %r1 | 01
setp.gt.u32 %p7, %r0, %r1 | 01
setp.ge.u32 %p7, %r0, %r1 | 01
setp.eq.s64 %p7, %rd0, %rd1 | 01
setp.ne.s64 %p7, %rd0, %rd1 | 01
setp.lt.s64 %p7, %rd0, %rd1 | 01
setp.le.s64 %p7, %rd0, %rd1 | 01
setp.gt.s64 %p7, %rd0, %rd1 | 01
setp.ge.s64 %p7, %rd0, %rd1 | 01
setp.eq.u64 %p7, %rd0, %rd1 | 01
setp.ne.u64 %p7, %rd0, %rd1 | 01
setp.lt.u64 %p7, %rd0, %rd1 | 01
setp.le.u64 %p7, %rd0, %rd1 | 01
setp.gt.u64 %p7, %rd0, %rd1 | 01
setp.eq.f32 %p7, %f0, %f1 | 1
setp.ne.f32 %p7, %f0, %f1 | 1
setp.le.f32 %p7, %f0, %f1 | 1
setp.gt.f32 %p7, %f0, %f1 | 1
setp.ge.f32 %p7, %f0, %f1 | 1
setp.equ.f32 %p7, %f0, %f1 | 1
setp.neu.f32 %p7, %f0, %f1 | 1
setp.ltu.f32 %p7, %f0, %f1 | 1
setp.leu.f32 %p7, %f0, %f1 | 1
setp.gtu.f32 %p7, %f0, %f1 | 1
setp.geu.f32 %p7, %f0, %f1 | 1
setp.num.f32 %p7, %f0, %f1 | 1
setp.nan.f32 %p7, %f0, %f1 | 1
setp.eq.f64 %p7, %fd0, %fd1 | 1
setp.ne.f64 %p7, %fd0, %fd1 | 1
setp.lt.f64 %p7, %fd0, %fd1 | 1
setp.le.f64 %p7, %fd0, %fd1 | 1
setp.gt.f64 %p7, %fd0, %fd1 | 1
setp.ge.f64 %p7, %fd0, %fd1 | 1
setp.equ.f64 %p7, %fd0, %fd1 | 1
setp.ltu.f64 %p7, %fd0, %fd1 | 1
setp.leu.f64 %p7, %fd0, %fd1 | 1
setp.gtu.f64 %p7, %fd0, %fd1 | 1
setp.geu.f64 %p7, %fd0, %fd1 | 1
setp.num.f64 %p7, %fd0, %fd1 | 1
setp.nan.f64 %p7, %fd0, %fd1 | 1`), "\n")

// TestVectorInstructions checks that the most common instructions are executed for 32 lanes at a time, whichever
// operand is the same in all lanes. An instruction executed lane by lane takes many times as long.
func TestVectorInstructions(t *testing.T) {
	for _, line := range vectorLines {
		line, scalar, _ := strings.Cut(line, " | ")
		for uniform := -1; uniform < 3; uniform++ {
			if uniform >= 0 && !strings.Contains(line, fmt.Sprintf("%d,", uniform)) && !strings.HasSuffix(line, fmt.Sprint(uniform)) {
				break
			}
			g := newRig(t, vectorKernel(line, uniform))
			text, err := textOf(g.prepare(launch{out: g.buffer(32)}), false)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(text.Code, func(in vcode.Instr) bool { return in.Op == vcode.OpRow }) {
				t.Errorf("%s, operand %d the same for all: computed lane by lane", line, uniform)
			}
			for _, o := range text.Ops {
				if spread := o.Code == lanes.OpSet32 || o.Code == lanes.OpSet64 || o.Code == lanes.OpPredSet; spread && uniform >= 0 && strings.Contains(scalar, fmt.Sprint(uniform)) {
					t.Errorf("%s, operand %d the same for all: it becomes a vector first", line, uniform)
				}
			}
		}
	}
}

// vectorKernel executes an instruction on loaded registers. Those with a given number are the same in all lanes.
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
	if d[0] == '{' {
		d = "%r9"
	}
	b.WriteString(line + ";\n")
	if d == "%p7" {
		b.WriteString("selp.b32 %r9, %ln, %tx, %p7;\n")
		d = "%r9"
	}
	fmt.Fprintf(&b, "st.global.%s [%%rd20+96], %s;\n", store[d], d)
	return kernel(b.String())
}

// vectorValues executes every line of vectorLines and stores 16 bytes of each for a thread, after the operands. The
// operands with the number same are the same in all lanes. Those with the number even differ by a constant between
// adjacent lanes.
func vectorValues(same, even int) string {
	var b strings.Builder
	b.WriteString("mov.u32 %r8, %tid.y; mov.u32 %r7, %ntid.x; mad.lo.u32 %r8, %r8, %r7, %tx; mul.wide.u32 %rd20, %r8, 96; add.u64 %rd20, %rd20, %out;\n" +
		"and.b32 %r7, %r8, 5; setp.lt.u32 %p1, %r7, 2; mul.wide.u32 %rd21, %r8, 16; add.u64 %rd21, %rd21, %out;\n")
	for k := range 3 {
		base := "%rd20"
		if k == same {
			base = "%out"
		}
		if k == even {
			fmt.Fprintf(&b, "mad.lo.u32 %%r%d, %%tx, 12, %%n; mov.b32 %%f%d, %%r%d; mul.wide.u32 %%rd%d, %%r8, 0x40000001; mov.b64 %%fd%d, %%rd%d;\n", k, k, k, k, k, k)
			continue
		}
		fmt.Fprintf(&b, "ld.global.u32 %%r%d, [%s+%d]; ld.global.u64 %%rd%d, [%s+%d]; ld.global.f32 %%f%d, [%s+%d]; ld.global.f64 %%fd%d, [%s+%d];\n",
			k, base, 32*k, k, base, 32*k+8, k, base, 32*k+16, k, base, 32*k+24)
	}
	for i, line := range vectorLines {
		line, _, _ := strings.Cut(line, " | ")
		at := fmt.Sprintf("[%%rd21+%d]", valueThreads*(96+16*i))
		fmt.Fprintf(&b, "{ .reg .b32 %%r9, %%r10; .reg .b64 %%rd9; .reg .f32 %%f9; .reg .f64 %%fd7; .reg .pred %%p7;\n%s;\n", line)
		switch _, rest, _ := strings.Cut(line, " "); rest[:3] {
		case "%p7":
			fmt.Fprintf(&b, "selp.b32 %%r9, 5, 3, %%p7; st.global.u32 %s, %%r9; }\n", at)
		case "%rd":
			fmt.Fprintf(&b, "st.global.u64 %s, %%rd9; }\n", at)
		case "%fd":
			fmt.Fprintf(&b, "st.global.f64 %s, %%fd7; }\n", at)
		case "%f9":
			fmt.Fprintf(&b, "st.global.f32 %s, %%f9; }\n", at)
		case "{%r":
			fmt.Fprintf(&b, "st.global.v2.u32 %s, {%%r9, %%r10}; }\n", at)
		default:
			fmt.Fprintf(&b, "st.global.u32 %s, %%r9; }\n", at)
		}
	}
	return kernel(b.String())
}

const valueThreads = 64

// TestVectorValues executes vectorLines on both engines, with special and random values.
func TestVectorValues(t *testing.T) {
	for _, c := range []struct{ same, even int }{{-1, -1}, {0, -1}, {1, -1}, {2, -1}, {-1, 0}, {-1, 1}, {-1, 2}, {0, 1}, {1, 0}} {
		g := newRig(t, vectorValues(c.same, c.even))
		size := valueThreads * (96 + 16*len(vectorLines))
		out := g.buffer(size / 4)
		data, err := g.mem.Bytes(out, uint64(size))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 4))
		for round := range 4 {
			in := data[:96*valueThreads]
			for at := 0; at < len(in); at += 4 {
				v := r.Uint32()
				if r.IntN(3) > 0 {
					v = specials[r.IntN(len(specials))]
				}
				binary.LittleEndian.PutUint32(in[at:], v)
			}
			start := slices.Clone(in)
			var results [2][]byte
			for k, e := range []engine.Engine{engine.NewRef(), New()} {
				clear(data)
				copy(in, start)
				l := g.prepare(launch{out: out, n: uint32(round)<<30 - 100})
				l.Block = []event.Dim3{{X: valueThreads, Y: 1, Z: 1}, {X: 16, Y: 4, Z: 1}, {X: 8, Y: 8, Z: 1}, {X: 5, Y: 12, Z: 1}}[round]
				if _, err := e.Run(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				results[k] = slices.Clone(data)
			}
			for i, line := range vectorLines {
				for th := range valueThreads {
					at := valueThreads*(96+16*i) + 16*th
					if a, b := results[0][at:at+8], results[1][at:at+8]; !slices.Equal(a, b) {
						t.Errorf("%s, operand %d the same for all, %d even, thread %d, of % x: ref gives % x, warp % x", line, c.same, c.even, th, start[96*th:][:96], a, b)
						break
					}
				}
			}
		}
	}
}
