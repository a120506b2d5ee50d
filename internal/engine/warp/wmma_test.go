package warp

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// tile is a matrix in memory. Its lines are its rows or its columns.
type tile struct {
	rows, cols int
	typ        string
	byRow      bool
	pad        int // elements between lines
	values     [][]int
}

func (m *tile) layout() string {
	if m.byRow {
		return "row"
	}
	return "col"
}

func (m *tile) size() int {
	return map[string]int{"f16": 2, "bf16": 2, "u8": 1, "s8": 1, "f64": 8}[m.typ] + map[string]int{"f32": 4, "tf32": 4, "s32": 4}[m.typ]
}

// stride returns the distance of adjacent lines in elements.
func (m *tile) stride() int {
	if m.byRow {
		return m.cols + m.pad
	}
	return m.rows + m.pad
}

func (m *tile) at(row, col int) int {
	if m.byRow {
		return (row*m.stride() + col) * m.size()
	}
	return (col*m.stride() + row) * m.size()
}

// random fills it with small numbers.
func (m *tile) random(r *rand.Rand) *tile {
	m.values = make([][]int, m.rows)
	for i := range m.values {
		m.values[i] = make([]int, m.cols)
		for k := range m.values[i] {
			if m.values[i][k] = r.IntN(9) - 4; m.typ == "u8" {
				m.values[i][k] += 4
			}
		}
	}
	return m
}

// write puts the matrix into memory.
func (m *tile) write(to []byte) {
	for i := range m.rows {
		for k := range m.cols {
			at, v := to[m.at(i, k):], m.values[i][k]
			bits := math.Float32bits(float32(v))
			switch m.typ {
			case "f16":
				binary.LittleEndian.PutUint16(at, halfOf(v))
			case "bf16":
				binary.LittleEndian.PutUint16(at, uint16(bits>>16))
			case "u8", "s8":
				at[0] = byte(v)
			case "f32", "tf32":
				binary.LittleEndian.PutUint32(at, bits)
			case "s32":
				binary.LittleEndian.PutUint32(at, uint32(v))
			case "f64":
				binary.LittleEndian.PutUint64(at, math.Float64bits(float64(v)))
			}
		}
	}
}

// holds reports whether an element in memory has a value.
func (m *tile) holds(from []byte, row, col, v int) bool {
	at := from[m.at(row, col):]
	switch m.typ {
	case "f16":
		return binary.LittleEndian.Uint16(at) == halfOf(v)
	case "f32":
		return binary.LittleEndian.Uint32(at) == math.Float32bits(float32(v))
	case "s32":
		return binary.LittleEndian.Uint32(at) == uint32(v)
	}
	return binary.LittleEndian.Uint64(at) == math.Float64bits(float64(v))
}

// halfOf returns a number of up to 11 bits as f16.
func halfOf(v int) uint16 {
	if v == 0 {
		return 0
	}
	b := math.Float32bits(float32(v))
	return uint16(b>>16&0x8000 | (b>>23&0xff-127+15)<<10 | b>>13&0x3ff)
}

// registersOf returns the registers of a matrix of a shape, as an operand, and their declaration.
func registersOf(name string, n int, typ string) (operand, decl string) {
	reg := map[string]string{"f32": "f32", "f64": "f64"}[typ]
	if reg == "" {
		reg = "b32"
	}
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("%%%s%d", name, i))
	}
	return "{" + strings.Join(list, ",") + "}", fmt.Sprintf("\t.reg .%s %%%s<%d>;\n", reg, name, n)
}

const tileRegion = 8192

// TestWmma multiplies small integers by all forms of wmma, from matrices by rows and by columns, with and without
// padding, in all spaces, and compares with the exact result.
func TestWmma(t *testing.T) {
	counts := map[string][4]int{ // registers of A, B, C and D but for f16
		"bf16 m16n16k16": {4, 4, 8, 8}, "bf16 m8n32k16": {2, 8, 8, 8}, "bf16 m32n8k16": {8, 2, 8, 8},
		"u8 m16n16k16": {2, 2, 8, 8}, "u8 m8n32k16": {1, 4, 8, 8}, "u8 m32n8k16": {4, 1, 8, 8},
		"s8 m16n16k16": {2, 2, 8, 8}, "s8 m8n32k16": {1, 4, 8, 8}, "s8 m32n8k16": {4, 1, 8, 8},
		"tf32 m16n16k8": {4, 4, 8, 8}, "f64 m8n8k4": {1, 1, 2, 2},
		"f16 m16n16k16": {8, 8, 0, 0}, "f16 m8n32k16": {8, 8, 0, 0}, "f16 m32n8k16": {8, 8, 0, 0},
	}
	sums := map[string][]string{"f16": {"f16 f16", "f16 f32", "f32 f16", "f32 f32"}, "bf16": {"f32 f32"}, "u8": {"s32 s32"}, "s8": {"s32 s32"},
		"tf32": {"f32 f32"}, "f64": {"f64 f64"}}
	n := 0
	for form, regs := range counts {
		typ, shape, _ := strings.Cut(form, " ")
		var rows, cols, deep int
		fmt.Sscanf(shape, "m%dn%dk%d", &rows, &cols, &deep)
		for _, sum := range sums[typ] {
			d, c, _ := strings.Cut(sum, " ")
			regs := regs
			if typ == "f16" {
				for i, x := range []string{c, d} {
					if regs[2+i] = 8; x == "f16" {
						regs[2+i] = 4
					}
				}
			}
			for layouts := range 4 {
				n++
				r := rand.New(rand.NewPCG(uint64(n), 5))
				pad := r.IntN(3) * 16
				tiles := [4]*tile{{rows: rows, cols: deep, typ: typ, byRow: layouts&1 == 0, pad: pad}, {rows: deep, cols: cols, typ: typ, byRow: layouts&2 == 0, pad: pad},
					{rows: rows, cols: cols, typ: c, byRow: r.IntN(2) == 0}, {rows: rows, cols: cols, typ: d, byRow: r.IntN(2) == 0, pad: 16}}
				w := &wmmaCase{tiles: tiles, regs: regs, shape: shape, space: []string{"", ".global", ".shared", ".shared::cta"}[r.IntN(4)]}
				t.Run(fmt.Sprintf("%s %s %s %d%s", form, d, c, layouts, w.space), func(t *testing.T) { w.check(t, r) })
			}
		}
	}
}

// wmmaCase is a use of wmma: the matrices A, B, C and D in memory, and their registers.
type wmmaCase struct {
	tiles [4]*tile
	regs  [4]int
	shape string
	space string
}

func (w *wmmaCase) kernel() string {
	var decl, code strings.Builder
	var operands [4]string
	for i, m := range w.tiles {
		name := string("abcd"[i])
		var reg string
		operands[i], reg = registersOf("m"+name, w.regs[i], m.typ)
		decl.WriteString(reg)
		if i == 3 {
			break
		}
		stride := fmt.Sprintf(", %d", m.stride())
		if m.pad == 0 {
			stride = ""
		}
		fmt.Fprintf(&code, "\twmma.load.%s.sync.aligned.%s.%s%s.%s %s, [%%rd1+%d]%s;\n", name, m.layout(), w.shape, w.space, m.typ, operands[i], i*tileRegion, stride)
	}
	a, b, c, d := w.tiles[0], w.tiles[1], w.tiles[2], w.tiles[3]
	types := d.typ + "." + a.typ + "." + a.typ + "." + c.typ
	if a.typ == "f16" {
		types = d.typ + "." + c.typ
	}
	fmt.Fprintf(&code, "\twmma.mma.sync.aligned.%s.%s.%s.%s %s, %s, %s, %s;\n", a.layout(), b.layout(), w.shape, types, operands[3], operands[0], operands[1], operands[2])
	fmt.Fprintf(&code, "\tmov.u32 %%r9, %d;\n\twmma.store.d.sync.aligned.%s.%s%s.%s [%%rd1+%d], %s, %%r9;\n", d.stride(), d.layout(), w.shape, w.space, d.typ, 3*tileRegion, operands[3])
	if !strings.HasPrefix(w.space, ".shared") {
		return kernel(decl.String() + "mov.u64 %rd1, %out;\n" + code.String())
	}
	move := func(name, load, store string) string {
		return fmt.Sprintf(`
	shl.b32 %%r1, %%tx, 4; cvt.u64.u32 %%rd2, %%r1; add.u64 %%rd3, %%rd2, %%out; add.u64 %%rd2, %%rd2, %%rd1;
	mov.u32 %%r2, 0;
%[1]s:
	ld.%[2]s.v4.u32 {%%r3,%%r4,%%r5,%%r6}, [%%rd%[4]d]; st.%[3]s.v4.u32 [%%rd%[5]d], {%%r3,%%r4,%%r5,%%r6};
	add.u64 %%rd2, %%rd2, 512; add.u64 %%rd3, %%rd3, 512; add.u32 %%r2, %%r2, 512;
	setp.lt.u32 %%p1, %%r2, %[6]d; @%%p1 bra %[1]s;
	bar.sync 0;
`, name, load, store, map[string]int{"shared": 2, "global": 3}[load], map[string]int{"shared": 2, "global": 3}[store], 4*tileRegion)
	}
	return kernel(fmt.Sprintf("\t.shared .align 16 .b8 box[%d];\n", 4*tileRegion) + decl.String() + "mov.u64 %rd1, box;\n" +
		move("in", "global", "shared") + code.String() + "bar.sync 0;\n" + move("back", "shared", "global"))
}

func (w *wmmaCase) check(t *testing.T, r *rand.Rand) {
	g := newRig(t, w.kernel())
	out := g.buffer(tileRegion)
	data, err := g.mem.Bytes(out, 4*tileRegion)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range w.tiles[:3] {
		m.random(r).write(data[i*tileRegion:])
	}
	a, b, c, d := w.tiles[0], w.tiles[1], w.tiles[2], w.tiles[3]
	g.mustRun(launch{out: out, set: func(l *engine.Launch) { l.Needs |= event.NeedValues | event.NeedOld }})
	for row := range d.rows {
		for col := range d.cols {
			want := c.values[row][col]
			for k := range a.cols {
				want += a.values[row][k] * b.values[k][col]
			}
			if !d.holds(data[3*tileRegion:], row, col, want) {
				t.Fatalf("row %d, column %d is not %d\n%s", row, col, want, w.kernel())
			}
		}
		if at := d.at(row, d.cols-1) + d.size(); d.byRow && data[3*tileRegion+at] != 0 {
			t.Fatalf("row %d: writes beyond its end", row)
		}
	}
}

// TestWmmaEvents checks that lanes access pieces of lines of the elements' size, and each byte of the matrix once.
func TestWmmaEvents(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 32 .b8 box[4096];
	.reg .b32 %a<8>;
	.reg .f32 %c<8>;
	mov.u32 %r1, box;
	wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, [%r1], 64;
	wmma.load.b.sync.aligned.col.m32n8k16.shared.u8 {%a0}, [%r1+16], 32;
	wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, [%r1];
	wmma.store.d.sync.aligned.col.m8n32k16.shared.f32 [%r1], {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, 16;`))
	o := g.mustRun(launch{out: g.buffer(1), set: func(l *engine.Launch) { l.Needs = event.NeedShared }})
	lines := func(round, lanes, piece, line, stride, from int) []string {
		var list []string
		for l := range lanes {
			at := (32*round + l) * piece
			list = append(list, fmt.Sprintf("%x", from+at/line*stride+at%line))
		}
		return list
	}
	want := []string{
		"load w0 ffffffff shared r16 scattered " + strings.Join(lines(0, 32, 16, 32, 128, 0), " "),
		"load w0 ffffffff shared r4 scattered " + strings.Join(lines(0, 32, 4, 16, 32, 16), " "),
		"load w0 ffffffff shared r16 0+16", "load w0 ffffffff shared r16 200+16",
		"store w0 ffffffff shared w16 scattered " + strings.Join(lines(0, 32, 16, 32, 64, 0), " "), "store w0 ffffffff shared w16 scattered " + strings.Join(lines(1, 32, 16, 32, 64, 0), " "),
	}
	if strings.Join(o.rec.lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(o.rec.lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestTileFaults gives wmma and stmatrix invalid addresses, and executes them in warps with missing lanes.
func TestTileFaults(t *testing.T) {
	const store, given = "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r7], {%r1,%r2,%r3,%r4};\n", "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r7], {%r1,%r2};\n"
	const load = "wmma.load.b.sync.aligned.col.m32n8k16.shared.s8 {%r5}, [%r6+2]; mov.u32 %r1, %r5;\n"
	for _, c := range []struct {
		name, body string
		block      int
		kind       engine.FaultKind
		text       string
		count      int
	}{
		{"store misaligned", "add.u32 %r7, %r6, 8;" + store, 32, engine.Misaligned, "writes 16 bytes at offset 0x8 of shared memory (box + 8)", 32},
		{"load misaligned", load, 32, engine.Misaligned, "reads 4 bytes at offset 0x2 of shared memory", 32},
		{"store past the end", "add.u32 %r7, %r6, 768;" + store, 32, engine.OutOfBounds, "writes 16 bytes at offset 0x400 of shared memory, of which the block has 1024 bytes", 16},
		{"rows misaligned", "setp.eq.u32 %p1, %ln, 5; @%p1 add.u32 %r7, %r7, 8;" + given, 32, engine.Misaligned, "writes 16 bytes at offset 0x58 of shared memory", 1},
		{"rows of global memory", "stmatrix.sync.aligned.m8n8.x1.b16 [%out], {%r1};\n", 32, engine.OutOfBounds, "lane 0 gives address 0x200000000000 to stmatrix", 8},
		{"others' rows do not matter", "setp.ge.u32 %p1, %ln, 16; @%p1 add.u32 %r7, %r7, 0x7fffff1;" + given, 32, "", "", 0},
		{"too few threads", "mov.u32 %r7, %r6;" + store, 20, engine.WarpDivergence, "needs all 32 lanes of a warp, but the warp has 20 threads", 1},
		{"exited", "setp.lt.u32 %p1, %ln, 2; @%p1 ret;\n" + given, 32, engine.WarpDivergence, "but lanes 0x3 have exited", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g := newRig(t, kernel(box+"mov.u32 %r6, box; mad.lo.u32 %r7, %ln, 16, %r6;\n"+c.body+toOut))
				l := launch{block: c.block, out: g.buffer(128), set: set}
				if c.kind == "" {
					g.mustRun(l)
					return
				}
				o := g.run(l)
				if f := o.wantFault(t, c.kind, c.text); o.err != nil || f.Count != c.count {
					t.Errorf("ended with %v, %+v", o.err, f)
				}
			})
		})
	}
}

// TestStoreMatrix stores matrices to rows at any address and compares them with the manual's figure.
func TestStoreMatrix(t *testing.T) {
	for _, c := range loads {
		for _, trans := range []string{"", ".trans"} {
			for _, space := range []string{".shared", ".shared::cta", ""} {
				inst := fmt.Sprintf("stmatrix.sync.aligned.m8n8."+strings.Replace(c.text, "{", "%s{", 1), trans+space+".b16 ", "[%rd7], ")
				t.Run(strings.Fields(inst)[0], func(t *testing.T) {
					g := newRig(t, kernel(box+`
	mad.lo.u32 %r5, %ln, 5, 3; and.b32 %r5, %r5, 63;
	mul.wide.u32 %rd7, %r5, 16;
	mov.u64 %rd5, box;
	`+map[bool]string{true: "cvta.shared.u64 %rd5, %rd5;"}[space == ""]+`
	add.u64 %rd7, %rd5, %rd7;
	mad.lo.u32 %r1, %ln, 0x20002, 0x10000; add.u32 %r2, %r1, 0x00400040; add.u32 %r3, %r2, 0x00400040; add.u32 %r4, %r3, 0x00400040;
	`+inst+`;
	bar.warp.sync -1;
	mov.u32 %r6, box; mad.lo.u32 %r6, %ln, 32, %r6;
	mul.wide.u32 %rd1, %ln, 32; add.u64 %rd1, %rd1, %out;
	ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%r6]; st.global.v4.u32 [%rd1], {%r1,%r2,%r3,%r4};
	ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%r6+16]; st.global.v4.u32 [%rd1+16], {%r1,%r2,%r3,%r4};`))
					everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
						g.t = t
						out := g.buffer(256)
						g.mustRun(launch{out: out, set: set})
						data, err := g.mem.Bytes(out, 1024)
						if err != nil {
							t.Fatal(err)
						}
						want := make([]uint16, 512)
						for i := range want {
							want[i] = uint16(i)
						}
						for k := range c.n {
							for i := range 64 { // of the k-th matrix, in the order of the fragments
								row, col := i/8, i%8
								if trans != "" {
									row, col = col, row
								}
								want[8*((5*(8*k+row)+3)%64)+col] = uint16(64*k + i)
							}
						}
						for i, v := range want {
							if got := binary.LittleEndian.Uint16(data[2*i:]); got != v {
								t.Fatalf("row %d, column %d: %d, want %d", i/8, i%8, got, v)
							}
						}
					})
				})
			}
		}
	}
}

// TestStoreByteMatrix stores matrices of bytes, transposed, to rows of shared memory, and compares them with the manual's figure.
func TestStoreByteMatrix(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		regs := strings.Join([]string{"%r1", "%r2", "%r3", "%r4"}[:n], ",")
		g := newRig(t, kernel(box+fmt.Sprintf(`
	mov.u32 %%r6, box; mad.lo.u32 %%r7, %%ln, 16, %%r6;
	mul.lo.u32 %%r1, %%ln, 0x01020304; add.u32 %%r2, %%r1, 0x40404040; add.u32 %%r3, %%r2, 0x40404040; add.u32 %%r4, %%r3, 0x40404040;
	stmatrix.sync.aligned.m16n8.x%d.trans.shared.b8 [%%r7], {%s};
	bar.warp.sync -1;
	mul.wide.u32 %%rd1, %%ln, 16; add.u64 %%rd1, %%rd1, %%out;
	ld.shared.v4.u32 {%%r1,%%r2,%%r3,%%r4}, [%%r7]; st.global.v4.u32 [%%rd1], {%%r1,%%r2,%%r3,%%r4};`, n, regs)))
		everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
			g.t = t
			out := g.buffer(128)
			g.mustRun(launch{out: out, set: set})
			data, err := g.mem.Bytes(out, 512)
			if err != nil {
				t.Fatal(err)
			}
			for at := range 128 * n {
				matrix, row, col := at/128, at/16%8, at%16
				register := uint32(4*(col%8)+row/2)*0x01020304 + uint32(matrix)*0x40404040
				if want := byte(register >> (8 * (row%2 + 2*(col/8)))); data[at] != want {
					t.Fatalf("x%d: byte %d is %#x, want %#x", n, at, data[at], want)
				}
			}
		})
	}
}
