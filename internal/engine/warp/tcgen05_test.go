package warp

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
)

// coreKernel multiplies matrices without swizzle at %out + 65536: A of rows x 8 words and B of columns x 8 words, whose
// pieces are laid out for tcgen05.mma. It writes the lanes of tensor memory to %out, 64 columns each.
func coreKernel(rows, columns int, kind string, desc uint32, wait bool) string {
	body := fmt.Sprintf(`
	.shared .align 128 .b8 a[%d];
	.shared .align 8 .b64 bar;
	.shared .align 4 .b32 base;
	setp.lt.u32 %%p1, %%tx, 32;
	@!%%p1 bra fill;
	tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 64;
fill:
	mov.u32 %%r1, %%tx;
	mov.u32 %%r2, a;
copy:
	mul.wide.u32 %%rd1, %%r1, 4;
	add.u64 %%rd1, %%rd1, %%out;
	ld.global.u32 %%r3, [%%rd1+65536];
	mad.lo.u32 %%r4, %%r1, 4, %%r2;
	st.shared.u32 [%%r4], %%r3;
	add.u32 %%r1, %%r1, 128;
	setp.lt.u32 %%p2, %%r1, %d;
	@%%p2 bra copy;
	setp.eq.u32 %%p1, %%tx, 0;
	@%%p1 mbarrier.init.shared.b64 [bar], 1;
	fence.proxy.async;
	bar.sync 0;
	ld.shared.u32 %%r5, [base];
	@!%%p1 bra wait;
	mov.u32 %%r6, a;
	shr.u32 %%r6, %%r6, 4;
	cvt.u64.u32 %%rd2, %%r6;
	or.b64 %%rd2, %%rd2, %d;
	mov.u32 %%r6, a;
	add.u32 %%r6, %%r6, %d;
	shr.u32 %%r6, %%r6, 4;
	cvt.u64.u32 %%rd3, %%r6;
	or.b64 %%rd3, %%rd3, %d;
	setp.ne.u32 %%p3, %%tx, 0;
	tcgen05.mma.cta_group::1.kind::%s [%%r5], %%rd2, %%rd3, %d, %%p3;
	setp.eq.u32 %%p3, %%tx, 0;
	tcgen05.mma.cta_group::1.kind::%s [%%r5], %%rd2, %%rd3, %d, %%p3;
	tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
`, 32*(rows+columns), 8*(rows+columns), uint64(8)<<16|uint64(16)<<32|1<<46, 32*rows, uint64(8)<<16|uint64(16)<<32|1<<46, kind, desc, kind, desc)
	body += "wait:\n"
	if wait {
		body += `
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
	@!%p2 bra wait;
`
	}
	body += `
	shr.u32 %r7, %tx, 5;
	shl.b32 %r7, %r7, 21;
	add.u32 %r5, %r5, %r7;
	mul.wide.u32 %rd1, %tx, 256;
	add.u64 %rd1, %rd1, %out;
	mov.u32 %r8, 0;
dump:
	tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r9}, [%r5];
	tcgen05.wait::ld.sync.aligned;
	st.global.u32 [%rd1], %r9;
	add.u64 %rd1, %rd1, 4;
	add.u32 %r5, %r5, 1;
	add.u32 %r8, %r8, 1;
	setp.lt.u32 %p2, %r8, 64;
	@%p2 bra dump;
	bar.sync 0;
	setp.lt.u32 %p1, %tx, 32;
	ld.shared.u32 %r5, [base];
	@!%p1 bra end;
	tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 64;
end:`
	return kernel(body)
}

// coreDescriptor returns an instruction descriptor.
func coreDescriptor(rows, columns int, d, a, b uint32) uint32 {
	return d<<4 | a<<7 | b<<10 | uint32(columns/8)<<17 | uint32(rows/16)<<24
}

// TestCoreMultiply multiplies small integers, which all types represent, twice. The products must be in the lanes and
// columns of the manual's figures.
func TestCoreMultiply(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		kind    string
		d, a, b uint32
		size    int
		code    func(v int) uint32 // of an integer from 0 to 2
	}{
		{"f16", 1, 0, 0, 2, func(v int) uint32 { return [3]uint32{0, 0x3c00, 0x4000}[v] }},
		{"f16", 1, 1, 1, 2, func(v int) uint32 { return [3]uint32{0, 0x3f80, 0x4000}[v] }},
		{"f16", 0, 0, 0, 2, func(v int) uint32 { return [3]uint32{0, 0x3c00, 0x4000}[v] }},
		{"tf32", 1, 2, 2, 4, func(v int) uint32 { return [3]uint32{0, 0x3f800000, 0x40000000}[v] }},
		{"f8f6f4", 1, 0, 0, 1, func(v int) uint32 { return [3]uint32{0, 0x38, 0x40}[v] }},
		{"f8f6f4", 1, 1, 1, 1, func(v int) uint32 { return [3]uint32{0, 0x3c, 0x40}[v] }},
		{"i8", 2, 1, 0, 1, func(v int) uint32 { return uint32(v) }},
	} {
		for _, rows := range []int{128, 64} {
			t.Run(fmt.Sprint(c.kind, c.d, c.a, rows), func(t *testing.T) {
				const columns = 32
				g := newRig(t, coreKernel(rows, columns, c.kind, coreDescriptor(rows, columns, c.d, c.a, c.b), true))
				out := g.buffer(1 << 15)
				data, _ := g.mem.Bytes(out, 1<<17)
				depth := 32 / c.size
				matrices := [2][][]int{}
				at := 65536
				for m, n := range []int{rows, columns} {
					for i := range n {
						matrices[m] = append(matrices[m], make([]int, depth))
						for k := range depth {
							v := rng.IntN(3)
							matrices[m][i][k] = v
							byteOf := k * c.size
							place := at + i/8*256 + byteOf/16*128 + i%8*16 + byteOf%16
							for j := range c.size {
								data[place+j] = byte(c.code(v) >> (8 * j))
							}
						}
					}
					at += 32 * n
				}
				g.mustRun(launch{out: out, block: 128})
				for i := range rows {
					lane := i
					if rows == 64 {
						lane = i/16*32 + i%16
					}
					for n := range columns {
						sum := 0
						for k := range depth {
							sum += 2 * matrices[0][i][k] * matrices[1][n][k]
						}
						got := binary.LittleEndian.Uint32(data[256*lane+4*n:])
						if value := coreValue(c.d, got); value != float64(sum) {
							t.Fatalf("row %d, column %d is %v, not %d", i, n, value, sum)
						}
					}
				}
			})
		}
	}
}

// coreValue returns the value of a word of D, whose type is 0 for f16, 1 for f32 or 2 for s32.
func coreValue(d, word uint32) float64 {
	switch d {
	case 0:
		for v := range 1 << 8 { // integers are all that there is
			if uint32(halfOf(v)) == word {
				return float64(v)
			}
		}
		return math.NaN()
	case 1:
		return float64(math.Float32frombits(word))
	}
	return float64(int32(word))
}

// TestCoreReduce checks that tcgen05.ld.red returns to each lane the minimum or maximum of the words that it loads.
func TestCoreReduce(t *testing.T) {
	for _, c := range []struct {
		op   string
		to   string
		want func(lane uint32) uint32
	}{
		{"min.u32", "%r7", func(lane uint32) uint32 { return min(lane+5, -lane) }},
		{"max.s32", "{%r7}", func(lane uint32) uint32 { return 0x3f800000 }},
		{"min.s32", "%r7", func(lane uint32) uint32 { return 0xc0000000 }},
		{"max.abs.f32", "%r7", func(lane uint32) uint32 { return 0x40000000 }}, // -lane is a NaN but for 0
		{"max.NaN.f32", "%r7", func(lane uint32) uint32 { return map[bool]uint32{true: 0x3f800000, false: 0x7fffffff}[lane == 0] }},
	} {
		g := newRig(t, kernel(`
	.shared .align 4 .b32 base;
	tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
	ld.shared.u32 %r2, [base];
	add.u32 %r3, %tx, 5;
	neg.s32 %r4, %tx;
	tcgen05.st.sync.aligned.32x32b.x4.b32 [%r2], {%r3, %r4, 0x3f800000, 0xc0000000};
	tcgen05.wait::st.sync.aligned;
	tcgen05.ld.red.sync.aligned.32x32b.x4.`+c.op+` {%r3, %r4, %r5, %r6}, `+c.to+`, [%r2];
	tcgen05.wait::ld.sync.aligned;
	mul.wide.u32 %rd1, %tx, 4;
	add.u64 %rd1, %rd1, %out;
	st.global.u32 [%rd1], %r7;
	tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;`))
		out := g.buffer(32)
		data, _ := g.mem.Bytes(out, 128)
		g.mustRun(launch{out: out, block: 32})
		for lane := range uint32(32) {
			if got, want := binary.LittleEndian.Uint32(data[4*lane:]), c.want(lane); got != want {
				t.Errorf("%s, lane %d: %#x, want %#x", c.op, lane, got, want)
			}
		}
	}
}

// TestCoreLate checks that with seed 0 a product that is not waited for is missing, and that with some other seed it is
// present.
func TestCoreLate(t *testing.T) {
	seen := map[bool]bool{}
	for seed := range uint64(12) {
		g := newRig(t, coreKernel(128, 32, "i8", coreDescriptor(128, 32, 2, 0, 0), false))
		out := g.buffer(1 << 15)
		data, _ := g.mem.Bytes(out, 1<<17)
		for i := range 32 * (128 + 32) {
			data[65536+i] = 1
		}
		g.mustRun(launch{out: out, block: 128, set: func(l *engine.Launch) { l.Seed = seed }})
		there := binary.LittleEndian.Uint32(data) != 0
		if seen[there] = true; seed == 0 && there {
			t.Error("the product is there by seed 0")
		}
	}
	if !seen[true] {
		t.Error("the product is never there early")
	}
}

// TestCoreLoadRegisters checks uses of registers of tcgen05.ld without a tcgen05.wait::ld before.
func TestCoreLoadRegisters(t *testing.T) {
	spelled := strings.NewReplacer("LOAD", "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r3, %r4}, [%r2];", "OTHER", "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5}, [%r2];",
		"WAIT", "tcgen05.wait::ld.sync.aligned;", "STORE", "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r4}; tcgen05.wait::st.sync.aligned;", "USE", "add.u32 %r6, %r4, 1; st.shared.u32 [base], %r6;", "COMPUTE", "add.u32 %r6, %r4, 1;", "KEEP", "st.global.u32 [%out], %r6;")
	for _, c := range []struct {
		name, body string
		found      bool
	}{
		{"right", "LOAD WAIT USE", false},
		{"no wait", "LOAD USE WAIT", true},
		{"the wait for stores", "LOAD tcgen05.wait::st.sync.aligned; USE WAIT", true},
		{"computed before the wait, as LLVM does", "LOAD COMPUTE WAIT KEEP", false},
		{"computed and stored", "LOAD COMPUTE KEEP WAIT", true},
		{"compared, and a branch", "LOAD setp.eq.u32 %p1, %r4, 0; @%p1 bra out; WAIT out: WAIT", true},
		{"a guarded store", "LOAD setp.eq.u32 %p1, %r4, 0; @%p1 st.global.u32 [%out], 1; WAIT", true},
		{"an address", "LOAD and.b32 %r4, %r4, 0; ld.shared.u32 %r6, [%r4]; WAIT", true},
		{"a generic store", "LOAD st.u32 [%out], %r4; WAIT", true},
		{"a generic store to local memory", ".local .align 4 .b8 room[8]; mov.u64 %rd1, room; cvta.local.u64 %rd2, %rd1; LOAD st.u32 [%rd2+4], %r4; WAIT", false},
		{"written anew", "LOAD mov.u32 %r4, 5; USE WAIT", false},
		{"stored to tensor memory", "LOAD STORE WAIT", true},
		{"loaded again", "LOAD LOAD WAIT USE", false},
		{"of another load", "LOAD WAIT OTHER USE WAIT", false},
		{"moved", "LOAD mov.b32 %r7, %r4; WAIT add.u32 %r6, %r7, 1;", false},
		{"moved and used", "LOAD mov.b32 %r7, %r4; add.u32 %r6, %r7, 1; KEEP WAIT", true},
		{"packed and used", "LOAD mov.b64 %rd1, {%r3, %r4}; st.global.u64 [%out], %rd1; WAIT", true},
		{"in a loop, the load is a turn ahead", "LOAD WAIT mov.b32 %r8, 0; again: mov.b32 %r7, %r4; LOAD add.u32 %r6, %r7, 1; KEEP WAIT add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra again;", false},
		{"in a loop, the wait is a turn late", "mov.b32 %r8, 0; again: LOAD USE WAIT add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra again;", true},
		{"on a way not taken", "LOAD setp.eq.u32 %p1, %tx, 99; @%p1 bra use; WAIT use: USE WAIT", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(`
	.shared .align 4 .b32 base;
	tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
	ld.shared.u32 %r2, [base];
	`+spelled.Replace(c.body)+`
	tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;`))
			o := g.run(launch{out: g.buffer(8), block: 32})
			switch {
			case !c.found:
				if len(o.faults) != 0 || o.err != nil {
					t.Errorf("%v, %+v", o.err, o.faults)
				}
			default:
				if f := o.wantFault(t, engine.WgmmaTouched, "what a tcgen05.ld loads that may not be complete"); len(f.Stands) != 2 || f.Stands[0].Place == f.Stands[1].Place {
					t.Errorf("stands %+v", f.Stands)
				}
			}
		})
	}
}
