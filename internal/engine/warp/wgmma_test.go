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

// wgmmaCase is a wgmma.mma_async of a warpgroup: C += A * B. The matrices are in shared memory in the canonical layouts
// of the manual, which are given as CuTe layouts, in elements.
type wgmmaCase struct {
	types    string // of D, A and B
	n, k     int
	span     int // bytes of a swizzle, 16 for none
	a, b     bool
	register bool
	negate   string
}

// layoutOf returns the offset of element (i, k) of a matrix in bytes, for the strides of a descriptor.
func layoutOf(i, k, size, span, leading, stride int, major bool) int {
	t := 16 / size
	u := span / 16
	var at int // in elements
	switch lead, str := leading/size, stride/size; {
	case major && span == 16: // ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
		at = i%t + i/t*str + k%8*t + k/8*lead
	case major: // ((T,u,m),(8,k)):((1,T,LBO),(uT,SBO))
		at = i%t + i/t%u*t + i/(t*u)*lead + k%8*u*t + k/8*str
	case span == 16: // ((8,m),(T,2k)):((1T,SBO),(1,LBO))
		at = i%8*t + i/8*str + k%t + k/t*lead
	default: // ((8,m),(T,2k)):((uT,SBO),(1,T))
		at = i%8*u*t + i/8*str + k%t + k/t*t
	}
	return at * size
}

// kernelOf returns a kernel for a case. It fills shared memory from %out + 8192. It reads D from %out, 4 bytes for each
// register and lane, lane by lane, and writes it back. If A is in registers, it comes from %out + 96 Ki.
func (c *wgmmaCase) kernelOf(registers int, descA, descB uint64) string {
	var d []string
	var load, store strings.Builder
	for i := range registers {
		d = append(d, fmt.Sprintf("%%d%d", i))
		fmt.Fprintf(&load, "\tld.global.b32 %%d%d, [%%rd1+%d];\n", i, 4*i)
		fmt.Fprintf(&store, "\tst.global.b32 [%%rd1+%d], %%d%d;\n", 4*i, i)
	}
	a := fmt.Sprintf("%d", int64(descA))
	if c.register {
		a = "{%a0, %a1, %a2, %a3}"
	}
	tail := ", " + c.negate
	if c.types[0] == 's' {
		tail = ""
	}
	bit := map[bool]string{true: ", 1", false: ", 0"}
	if c.k == 16 {
		if !c.register {
			tail += bit[c.a]
		}
		tail += bit[c.b]
	}
	kind := "f32"
	if c.types[:3] != "f32" {
		kind = "b32"
	}
	return kernel(fmt.Sprintf(`
	.shared .align 1024 .b8 tile[49152];
	.reg .%s %%d<%d>;
	.reg .b32 %%a<4>;
	.reg .b64 %%desca, %%descb;
	mov.u32 %%r1, tile;
	mov.u32 %%r3, %%tx;
fill:
	mul.wide.u32 %%rd1, %%r3, 4;
	add.u64 %%rd1, %%rd1, %%out;
	ld.global.u32 %%r5, [%%rd1+131072];
	mad.lo.u32 %%r4, %%r3, 4, %%r1;
	st.shared.u32 [%%r4], %%r5;
	add.u32 %%r3, %%r3, 128;
	setp.lt.u32 %%p2, %%r3, 12288;
	@%%p2 bra fill;
	fence.proxy.async;
	bar.sync 0;
	mul.wide.u32 %%rd1, %%tx, 1024;
	add.u64 %%rd1, %%rd1, %%out;
	mul.wide.u32 %%rd2, %%tx, 16;
	add.u64 %%rd2, %%rd2, %%out;
	ld.global.v4.b32 {%%a0, %%a1, %%a2, %%a3}, [%%rd2+196608];
%s
	mov.b64 %%desca, %d;
	mov.b64 %%descb, %d;
	setp.ne.u32 %%p1, %%n, 0;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n%dk%d.%s {%s}, %s, %%descb, %%p1%s;
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 0;
%s`, kind, registers, load.String(), int64(descA), int64(descB), c.n, c.k, c.types, strings.Join(d, ", "), strings.Replace(a, fmt.Sprint(int64(descA)), "%desca", 1), tail, store.String()))
}

// TestWgmma checks products of small integers, which every order of summation computes exactly, in all types, layouts
// and swizzles.
func TestWgmma(t *testing.T) {
	var cases []wgmmaCase
	for _, span := range []int{16, 32, 64, 128} {
		for _, major := range []int{0, 1, 2, 3} {
			cases = append(cases, wgmmaCase{"f32.f16.f16", 64, 16, span, major&1 != 0, major&2 != 0, false, "1, 1"})
		}
		cases = append(cases, wgmmaCase{"f16.f16.f16", 24, 16, span, false, true, true, "-1, 1"}, wgmmaCase{"f32.bf16.bf16", 256, 16, span, false, false, true, "1, -1"},
			wgmmaCase{"f32.tf32.tf32", 40, 8, span, false, false, false, "-1, -1"}, wgmmaCase{"f32.e4m3.e5m2", 8, 32, span, false, false, true, "1, 1"},
			wgmmaCase{"f16.e5m2.e4m3", 16, 32, span, false, false, false, "1, 1"}, wgmmaCase{"s32.s8.u8", 96, 32, span, false, false, false, ""},
			wgmmaCase{"s32.u8.s8", 32, 32, span, false, false, true, ""}, wgmmaCase{"f32.tf32.tf32", 128, 8, span, false, false, true, "1, 1"})
	}
	rng := rand.New(rand.NewPCG(3, 9))
	for i, c := range cases {
		t.Run(fmt.Sprint(c.types, " ", i), func(t *testing.T) { c.run(t, rng, i%3 != 0) })
	}
}

// bitsOf returns the bits of a small integer in a type.
func bitsOf(typ string, v int) uint32 {
	switch typ {
	case "u8", "s8":
		return uint32(uint8(v))
	case "tf32", "f32":
		return math.Float32bits(float32(v))
	case "bf16":
		return math.Float32bits(float32(v)) >> 16
	case "s32":
		return uint32(v)
	}
	mant, exp := 10, 5
	switch typ {
	case "e4m3":
		mant, exp = 3, 4
	case "e5m2":
		mant, exp = 2, 5
	}
	sign := uint32(0)
	if v < 0 {
		v, sign = -v, 1<<(mant+exp)
	}
	if v == 0 {
		return sign
	}
	e := int(math.Log2(float64(v)))
	return sign | uint32(e+1<<(exp-1)-1)<<mant | uint32(math.Ldexp(float64(v), mant-e))&(1<<mant-1)
}

func (c *wgmmaCase) run(t *testing.T, rng *rand.Rand, add bool) {
	types := strings.Split(c.types, ".")
	size := 32 / c.k
	draw := func(typ string) int {
		v := rng.IntN(8) // exact in every type
		if typ == "e5m2" && v == 7 || typ == "e5m2" && v == 5 {
			v = 6
		}
		if typ[0] != 'u' && rng.IntN(2) == 0 {
			v = -v
		}
		return v
	}
	a, b, d := make([][]int, 64), make([][]int, c.n), make([][]int, 64)
	for i := range a {
		a[i], d[i] = make([]int, c.k), make([]int, c.n)
		for k := range a[i] {
			a[i][k] = draw(types[1])
		}
		for n := range d[i] {
			d[i][n] = rng.IntN(200) - 100
		}
	}
	for n := range b {
		b[n] = make([]int, c.k)
		for k := range b[n] {
			b[n][k] = draw(types[2])
		}
	}
	// Strides that leave gaps of whole patterns, so that nothing overlaps.
	const baseA, baseB = 0, 16 << 10
	descriptor := func(base, leading, stride int) uint64 {
		mode := map[int]uint64{16: 0, 128: 1, 64: 2, 32: 3}[c.span]
		return uint64(base)>>4 | uint64(leading)>>4<<16 | uint64(stride)>>4<<32 | mode<<62
	}
	strides := func(major bool) (leading, stride int) {
		switch {
		case major && c.span == 16:
			return 128 * 33, 128
		case major:
			return 16 * c.span, 8 * c.span
		case c.span == 16:
			return 128, 128 * 2
		}
		return 16, 8 * c.span
	}
	memory := make([]byte, 48<<10)
	place := func(m [][]int, typ string, base int, major bool) {
		leading, stride := strides(major)
		for i := range m {
			for k, v := range m[i] {
				at := base + layoutOf(i, k, size, c.span, leading, stride, major)
				mode := uint8(map[int]int{16: 0, 32: 1, 64: 2, 128: 3}[c.span])
				at = int(manualSwizzle(mode, uint64(at)))
				bits := bitsOf(typ, v)
				for j := range size {
					memory[at+j] = byte(bits >> (8 * j))
				}
			}
		}
	}
	place(a, types[1], baseA, c.a)
	place(b, types[2], baseB, c.b)
	leadA, strideA := strides(c.a)
	leadB, strideB := strides(c.b)
	registers := c.n / 2
	half := types[0] == "f16"
	if half {
		registers /= 2
	}
	g := newRig(t, c.kernelOf(registers, descriptor(baseA, leadA, strideA), descriptor(baseB, leadB, strideB)))
	buffer := g.buffer(60 << 10)
	global, _ := g.mem.Bytes(buffer, 240<<10)
	copy(global[128<<10:], memory)
	eachD := func(f func(at uint64, row, col int)) {
		for l := range 128 {
			for i := range registers {
				row, col := 16*(l/32)+l%32/4+8*(i/2%2), 8*(i/4)+2*(l%4)+i%2
				at := uint64(1024*l + 4*i)
				if !half {
					f(at, row, col)
					continue
				}
				row, col = 16*(l/32)+l%32/4+8*(i%2), 8*(i/2)+2*(l%4)
				f(at, row, col)
				f(at+2, row, col+1)
			}
		}
	}
	put := func(at uint64, v int) {
		if half {
			binary.LittleEndian.PutUint16(global[at:], uint16(bitsOf("f16", v)))
		} else {
			binary.LittleEndian.PutUint32(global[at:], bitsOf(types[0], v))
		}
	}
	eachD(func(at uint64, row, col int) { put(at, d[row][col]) })
	if c.register {
		per := 4 / size
		for l := range 128 {
			for r := range 4 {
				v := uint32(0)
				for j := range per {
					v |= bitsOf(types[1], a[16*(l/32)+l%32/4+8*(r%2)][per*(l%4)+4*per*(r/2)+j]) << (8 * size * j)
				}
				binary.LittleEndian.PutUint32(global[192<<10+16*l+4*r:], v)
			}
		}
	}
	n := uint32(0)
	if add {
		n = 1
	}
	g.mustRun(launch{out: buffer, n: n, block: 128})
	sign := 1
	if strings.Count(c.negate, "-") == 1 {
		sign = -1
	}
	bad := 0
	eachD(func(at uint64, row, col int) {
		want := 0
		if add {
			want = d[row][col]
		}
		for k := range c.k {
			want += sign * a[row][k] * b[col][k]
		}
		got, w := binary.LittleEndian.Uint32(global[at:]), bitsOf(types[0], want)
		if half {
			got &= 0xffff
		}
		if got != w && bad < 3 {
			t.Errorf("element (%d, %d) is %#x, want %#x (%d)", row, col, got, w, want)
			bad++
		}
	})
}

// TestWgmmaRegisters checks accesses to accumulators, and writes of registers of A, while an operation is in flight,
// and a first operation without a fence.
func TestWgmmaRegisters(t *testing.T) {
	const mma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, 0, 0, 1, 1, 1, 0, 0;\n"
	const other = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d4, %d5, %d6, %d7}, 0, 0, 1, 1, 1, 0, 0;\n"
	const fragments = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, 0, 1, 1, 1, 0;\n"
	wide := strings.Replace(mma, "k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, 0, 0, 1, 1, 1, 0, 0", "k8.f32.tf32.tf32 {%d0, %d1, %d2, %d3}, 0, 0, 1, 1, 1", 1)
	const integer = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%a0, %a1, %a2, %a3}, 0, 0, 1;\n"
	spelled := strings.NewReplacer("FENCE", "wgmma.fence.sync.aligned;\n", "SCALE4", "add.f32 %d4, %d4, %d4;\n", "SCALE", "add.f32 %d0, %d0, %d0;\n", "WIDE", wide, "INTEGER", integer, "FROM", fragments, "MMA", mma, "OTHER", other,
		"COMMIT", "wgmma.commit_group.sync.aligned;\n", "WAIT", "wgmma.wait_group.sync.aligned", "USE", "add.f32 %f1, %d0, %d3;\n", "\t", "")
	for _, c := range []struct {
		name, body string
		kind       engine.FaultKind // "" for none
		text       string
	}{
		{"right", "FENCE MMA MMA COMMIT WAIT 0; USE", "", ""},
		{"no wait", "FENCE MMA COMMIT USE WAIT 0;", engine.WgmmaTouched, "its warpgroup has not waited for its group"},
		{"no commit", "FENCE MMA WAIT 0; USE", engine.WgmmaTouched, "it was not even committed to a group"},
		{"written", "FENCE MMA COMMIT add.f32 %d1, %f1, %f1; WAIT 0;", engine.WgmmaTouched, "has not waited"},
		{"stored", "FENCE MMA COMMIT st.global.f32 [%out], %d2; WAIT 0;", engine.WgmmaTouched, "has not waited"},
		{"moved", "FENCE MMA mov.f32 %f1, %d0; COMMIT WAIT 0; add.f32 %f1, %f1, %f1;", "", ""},
		{"to local memory", ".local .align 4 .b8 room[4]; FENCE MMA COMMIT st.local.f32 [room], %d0; WAIT 0; ld.local.f32 %f1, [room];", "", ""},
		{"written anew", "FENCE MMA COMMIT mov.f32 %d0, %f1; add.f32 %f2, %d0, %f1; WAIT 0;", "", ""},
		{"the older of two", "FENCE MMA COMMIT OTHER COMMIT WAIT 1; USE WAIT 0;", "", ""},
		{"the newer of two", "FENCE OTHER COMMIT MMA COMMIT WAIT 1; USE WAIT 0;", engine.WgmmaTouched, "has not waited"},
		{"another time", "FENCE mov.u32 %r1, 0; again: setp.eq.u32 %p1, %r1, 0; @%p1 bra first; WAIT 0; @%p1 bra first; USE first: MMA COMMIT add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3; @%p2 bra again; WAIT 0;", "", ""},
		{"on one way", "FENCE mov.u32 %r1, 0; setp.eq.u32 %p1, %r1, 1; MMA COMMIT @%p1 bra out; WAIT 0; out: USE WAIT 0;", "", ""},
		{"on the other", "FENCE mov.u32 %r1, 0; setp.eq.u32 %p1, %r1, 0; MMA COMMIT @%p1 bra out; WAIT 0; out: USE WAIT 0;", engine.WgmmaTouched, "has not waited"},
		{"under a guard", "FENCE mov.u32 %r1, %tx; setp.lt.u32 %p1, %r1, 3; MMA COMMIT @%p1 add.f32 %f1, %d0, %d3; WAIT 0;", engine.WgmmaTouched, "has not waited"},
		{"A written", "FENCE FROM COMMIT add.u32 %a2, %a2, 1; WAIT 0;", engine.WgmmaTouched, "writes registers of operand A of a wgmma.mma_async that may not be complete: its warpgroup has not waited"},
		{"A loaded", "FENCE FROM COMMIT ld.shared.u32 %a2, [tile]; WAIT 0;", engine.WgmmaTouched, "operand A"},
		{"A written, not committed", "FENCE FROM add.u32 %a0, %a0, 1; COMMIT WAIT 0;", engine.WgmmaTouched, "operand A of a wgmma.mma_async that may not be complete: it was not even committed to a group"},
		{"A written after the wait", "FENCE FROM COMMIT WAIT 0; add.u32 %a2, %a2, 1;", "", ""},
		{"A read", "FENCE FROM COMMIT add.u32 %r1, %a2, 1; WAIT 0;", "", ""},
		{"A moved", "FENCE FROM COMMIT mov.u32 %a2, %r1; add.u32 %a2, %a2, 1; WAIT 0;", "", ""},
		{"A of the older of two", "FENCE FROM COMMIT OTHER COMMIT WAIT 1; add.u32 %a2, %a2, 1; WAIT 0;", "", ""},
		{"A of the newer of two", "FENCE OTHER COMMIT FROM COMMIT WAIT 1; add.u32 %a2, %a2, 1; WAIT 0;", engine.WgmmaTouched, "operand A"},
		{"both", "FENCE FROM COMMIT cvt.rzi.u32.f32 %a1, %d1; WAIT 0;", engine.WgmmaTouched, "accesses accumulators"},
		{"a later one, written", "FENCE MMA COMMIT WAIT 0; SCALE MMA COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction has written registers of it, with no wgmma.fence between"},
		{"a later one, written and fenced", "FENCE MMA COMMIT WAIT 0; SCALE FENCE MMA COMMIT WAIT 0;", "", ""},
		{"a later one of the same shape", "FENCE MMA MMA COMMIT WAIT 0; MMA COMMIT WAIT 0;", "", ""},
		{"a later one of another shape", "FENCE MMA WIDE COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction"},
		{"a later one of another shape, fenced", "FENCE MMA COMMIT WAIT 0; FENCE WIDE COMMIT WAIT 0;", "", ""},
		{"of other registers", "FENCE MMA SCALE4 COMMIT WAIT 0;", "", ""},
		{"of the next one's", "FENCE MMA SCALE4 OTHER COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction"},
		{"of the first, after the fence", "FENCE SCALE MMA COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction"},
		{"read only", "FENCE MMA COMMIT WAIT 0; USE MMA COMMIT WAIT 0;", "", ""},
		{"moved to", "FENCE MMA COMMIT WAIT 0; mov.f32 %d0, 0f00000000; MMA COMMIT WAIT 0;", "", ""},
		{"through a move", "FENCE MMA COMMIT WAIT 0; add.f32 %f1, %d0, %d0; mov.f32 %d0, %f1; MMA COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction"},
		{"a fence before the move", "FENCE MMA COMMIT WAIT 0; add.f32 %f1, %d0, %d0; FENCE mov.f32 %d0, %f1; MMA COMMIT WAIT 0;", "", ""},
		{"A of a later one", "FENCE MMA add.u32 %a1, %a1, 1; FROM COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction"},
		{"A of a later one, fenced", "FENCE MMA add.u32 %a1, %a1, 1; FENCE FROM COMMIT WAIT 0;", "", ""},
		{"the accumulators as A", "FENCE INTEGER COMMIT WAIT 0; FROM COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction"},
		{"in a loop", "mov.u32 %r1, 0; FENCE again: MMA COMMIT WAIT 0; SCALE add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3; @%p2 bra again;", engine.WgmmaNoFence, "after another instruction"},
		{"in a loop with the fence", "mov.u32 %r1, 0; again: FENCE MMA COMMIT WAIT 0; SCALE add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3; @%p2 bra again;", "", ""},
		{"on one way, not taken", "FENCE MMA COMMIT WAIT 0; mov.u32 %r1, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra over; SCALE over: MMA COMMIT WAIT 0;", "", ""},
		{"on one way, taken", "FENCE MMA COMMIT WAIT 0; mov.u32 %r1, 0; setp.eq.u32 %p1, %r1, 1; @%p1 bra over; SCALE over: MMA COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction"},
		{"a fence on the way", "FENCE MMA COMMIT WAIT 0; SCALE mov.u32 %r1, 0; setp.eq.u32 %p1, %r1, 1; @%p1 bra over; FENCE over: MMA COMMIT WAIT 0;", "", ""},
		{"by some lanes", "FENCE MMA COMMIT WAIT 0; mov.u32 %r1, %tx; setp.eq.u32 %p1, %r1, 40; @%p1 add.f32 %d0, %d0, %d0; MMA COMMIT WAIT 0;", engine.WgmmaNoFence, "after another instruction"},
		{"no fence", "MMA COMMIT WAIT 0;", engine.WgmmaNoFence, "with no wgmma.fence before it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(".shared .align 128 .b8 tile[4096]; .reg .f32 %d<8>; .reg .u32 %at, %a<4>; mov.u32 %at, tile;\n"+spelled.Replace(c.body)+"st.global.f32 [%out], %f1;"))
			o := g.run(launch{out: g.buffer(64), block: 128})
			if c.kind == "" {
				if len(o.faults) != 0 || o.err != nil {
					t.Errorf("%v, %+v", o.err, o.faults)
				}
				return
			}
			if f := o.wantFault(t, c.kind, c.text); (c.kind == engine.WgmmaTouched || strings.Contains(c.text, "another instruction")) && (len(f.Stands) != 2 || f.Stands[0].Place == f.Stands[1].Place) {
				t.Errorf("stands %+v", f.Stands)
			}
		})
	}
}
