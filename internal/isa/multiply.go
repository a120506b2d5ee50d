package isa

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// multiplyRows is the instructions of the manual's "Warp Level Matrix" chapter that compute with matrices held in registers, and
// movmatrix, which transposes one. A is M x K, B is K x 8, C and D are M x 8.
//
// Lane l holds, with g = l/4 and t = l%4 and E elements a register, of each of
//
//	A   register r: row g + 8*(r%2), columns E*t + 4*E*(r/2) and the next E-1 (where M is 8 there are no rows from 8 on)
//	B   register r: rows E*t + 4*E*r and the next E-1, column g
//	C   register i: row g + 8*(i/2), column 2*t + i%2; of f16: row g + 8*i, columns 2*t and 2*t+1
var multiplyRows = []*Row{
	{Op: "mma", Doc: "Warp Level Matrix Multiply: mma", Class: Warp, Whole: true, Bind: bindMma, Forms: forms(
		mmaForm("m16n8k8", "f32.f16.f16.f32", 2, 1, "f32", 4), mmaForm("m16n8k16", "f32.f16.f16.f32", 4, 2, "f32", 4),
		mmaForm("m16n8k8", "f16.f16.f16.f16", 2, 1, "b32", 2), mmaForm("m16n8k16", "f16.f16.f16.f16", 4, 2, "b32", 2),
		mmaForm("m16n8k8", "f32.bf16.bf16.f32", 2, 1, "f32", 4), mmaForm("m16n8k16", "f32.bf16.bf16.f32", 4, 2, "f32", 4),
		mmaForm("m16n8k4", "f32.tf32.tf32.f32", 2, 1, "f32", 4), mmaForm("m16n8k8", "f32.tf32.tf32.f32", 4, 2, "f32", 4),
		mmaForm("m16n8k16", "f32.atype.btype.f32", 2, 1, "f32", 4)+fp8, mmaForm("m16n8k32", "f32.atype.btype.f32", 4, 2, "f32", 4)+fp8,
		mmaForm("m16n8k16", "f16.atype.btype.f16", 2, 1, "b32", 2)+fp8, mmaForm("m16n8k32", "f16.atype.btype.f16", 4, 2, "b32", 2)+fp8,
		mmaForm("kind::f8f6f4.m16n8k16", "f32.atype.btype.f32", 2, 1, "f32", 4)+fp8, mmaForm("kind::f8f6f4.m16n8k16", "f16.atype.btype.f16", 2, 1, "b32", 2)+fp8,
		mmaForm("kind::f8f6f4.m16n8k32", "f32.atype.btype.f32", 4, 2, "f32", 4)+fewBits, mmaForm("kind::f8f6f4.m16n8k32", "f16.atype.btype.f16", 4, 2, "b32", 2)+fewBits,
		mmaForm("m8n8k4", double, 1, 1, "f64", 2), mmaForm("m16n8k4", double, 2, 1, "f64", 4),
		mmaForm("m16n8k8", double, 4, 2, "f64", 4), mmaForm("m16n8k16", double, 8, 4, "f64", 4),
		mmaForm("m8n8k16{.satfinite}", "s32.atype.btype.s32", 1, 1, "s32", 2)+int8s,
		mmaForm("m16n8k16{.satfinite}", "s32.atype.btype.s32", 2, 1, "s32", 4)+int8s,
		mmaForm("m16n8k32{.satfinite}", "s32.atype.btype.s32", 4, 2, "s32", 4)+int8s,
		mmaForm("m8n8k32{.satfinite}", "s32.atype.btype.s32", 1, 1, "s32", 2)+int4s,
		mmaForm("m16n8k32{.satfinite}", "s32.atype.btype.s32", 2, 1, "s32", 4)+int4s,
		mmaForm("m16n8k64{.satfinite}", "s32.atype.btype.s32", 4, 2, "s32", 4)+int4s,
		quadForm+"f16.f16.f16.f16 d*4:b32, a*2:b32, b*2:b32, c*4:b32"+quadLayouts,
		quadForm+"f32.f16.f16.f16 d*8:f32, a*2:b32, b*2:b32, c*4:b32"+quadLayouts,
		quadForm+"f32.f16.f16.f32 d*8:f32, a*2:b32, b*2:b32, c*8:f32"+quadLayouts,
		mmaForm("m8n8k128", "s32.b1.b1.s32.bop.popc", 1, 1, "s32", 2)+bitOps,
		mmaForm("m16n8k128", "s32.b1.b1.s32.bop.popc", 2, 1, "s32", 4)+bitOps,
		mmaForm("m16n8k256", "s32.b1.b1.s32.bop.popc", 4, 2, "s32", 4)+bitOps),
		Note: "All 32 lanes of a warp take part, and none may have exited. The sum begins with C and adds the products in the order of k, " +
			"product and sum in f32 (f64 fused, f16 accumulators rounded once at the end). Of tf32 the upper 19 bits count."},
	{Op: "movmatrix", Doc: "Warp Level Matrix Multiply: movmatrix", Class: Warp, Whole: true, Bind: bindMovmatrix,
		Forms: forms(".sync.aligned.m8n8.trans.b16 d:b32, a:b32")},
}

const (
	double  = "f64.f64.f64.f64"
	fp8     = "; atype: e4m3 e5m2; btype: e4m3 e5m2"
	fewBits = "; atype: e4m3 e5m2 e3m2 e2m3 e2m1; btype: e4m3 e5m2 e3m2 e2m3 e2m1"
	int8s   = "; atype: u8 s8; btype: u8 s8"
	int4s   = "; atype: u4 s4; btype: u4 s4"
	bitOps  = "; bop: xor and"
)

// mmaForm makes a form of mma of the number of registers that A, B and C have.
func mmaForm(shape, types string, a, b int, acc string, c int) string {
	n, cs := strconv.Itoa, strconv.Itoa(c)+":"+acc
	rounding := "."
	if types == double {
		rounding = "{.rnd}."
	}
	return ".sync.aligned." + shape + ".row.col" + rounding + types + " d*" + cs + ", a*" + n(a) + ":" + mmaRegister(types) + ", b*" + n(b) + ":" + mmaRegister(types) +
		", c*" + cs
}

func mmaRegister(types string) string {
	if types == double {
		return "f64"
	}
	return "b32"
}

// multiply is the shape and the element types of a matrix instruction.
type multiply struct {
	rows, cols, deep int
	a, b             element
	countA, countB   int  // registers of a lane, which may hold an element more than once
	f64              bool // accumulators
	f16, from16      bool // D and C
	integer          bool
	sat              bool
	bits             bool     // elements of one bit: the products are those of op, added up
	op               Op       // and or xor
	round            Rounding // of f64
}

// element is a type of the elements of A or B.
type element struct {
	per    int // elements in a register
	number func(x uint32) float32
	signed bool // of integers
}

// elements of A and B, by the names of their types.
var elements = map[string]element{
	"f16":  {per: 2, number: half},
	"bf16": {per: 2, number: func(x uint32) float32 { return math.Float32frombits(x << 16) }},
	"tf32": {per: 1, number: func(x uint32) float32 { return math.Float32frombits(x &^ 0x1fff) }},
	"e4m3": {per: 4, number: fp8Number(E4M3x2)},
	"e5m2": {per: 4, number: fp8Number(E5M2x2)},
	"u8":   {per: 4}, "s8": {per: 4, signed: true},
	"u4": {per: 8}, "s4": {per: 8, signed: true},
	"b1":  {per: 32},
	"f64": {per: 1},
}

// narrow are the elements of mma with .kind::f8f6f4 that have fewer bits than the byte that holds one: of 6 the low ones, of 4 those from bit 2 on.
var narrow = map[string]element{
	"e3m2": {per: 4, number: narrowNumber(E3M2x2, 0, 6)},
	"e2m3": {per: 4, number: narrowNumber(E2M3x2, 0, 6)},
	"e2m1": {per: 4, number: narrowNumber(E2M1x2, 2, 4)},
}

func narrowNumber(t Type, shift, bits int) func(x uint32) float32 {
	f := tinies[t]
	return func(x uint32) float32 { return float32(f.value(uint64(x >> shift & (1<<bits - 1)))) }
}

// elementOf is the element of a type by name.
func elementOf(name string) (e element, ok bool) {
	if e, ok = elements[name]; !ok {
		e, ok = narrow[name]
	}
	return e, ok
}

// half is the value of an f16.
func half(x uint32) float32 {
	v := math.Float32frombits(x&0x7fff<<13) * 0x1p112 // exact, subnormals too
	if x&0x7c00 == 0x7c00 {
		v = math.Float32frombits(x&0x7fff<<13 | 0x7f800000)
	}
	return math.Float32frombits(math.Float32bits(v) | x&0x8000<<16)
}

func fp8Number(t Type) func(x uint32) float32 {
	var list [256]float32
	for i := range list {
		list[i] = float32(tinies[t].value(uint64(i)))
	}
	return func(x uint32) float32 { return list[x&0xff] }
}

// bindMma binds mma: sources are the registers of A, B and C.
func bindMma(in *Inst) {
	at := slices.IndexFunc(in.Mods, isShape)
	types := matrixTypes(in.Mods[at+1:])
	if in.Mods[at] == "m8n8k4" && types[1] == "f16" {
		bindQuads(in, types)
		return
	}
	p := multiplyOf(in.Mods[at], types, in)
	p.countA, p.countB = p.registers()
	p.countB *= p.cols / 8
	in.Lanes = p.function()
}

// matrixTypes gives those of the modifiers that are types of elements.
func matrixTypes(mods []string) []string {
	return slices.DeleteFunc(slices.Clone(mods), func(m string) bool {
		_, factor := elementOf(m)
		return !factor && m != "f32" && m != "s32"
	})
}

// multiplyOf describes the instruction of a shape and of the types of D, A, B and C.
func multiplyOf(shape string, types []string, in *Inst) *multiply {
	a, _ := elementOf(types[1])
	b, _ := elementOf(types[2])
	p := &multiply{a: a, b: b, f64: types[0] == "f64", f16: types[0] == "f16", from16: types[3] == "f16",
		integer: types[0] == "s32", sat: in.Sat, bits: types[1] == "b1", op: in.Op, round: in.Round}
	if p.round == NoRound {
		p.round = RN
	}
	p.rows, p.cols, p.deep = shapeOf(shape)
	return p
}

func (p *multiply) function() func(*Inst, *WarpArgs) {
	switch {
	case p.f64:
		return p.doubles
	case p.bits:
		return p.popcounts
	case p.integer:
		return p.integers
	}
	return p.floats
}

// registers is how many registers of a lane hold A, and 8 columns of B.
func (p *multiply) registers() (a, b int) {
	return p.rows * p.deep / 32 / p.a.per, 8 * p.deep / 32 / p.b.per
}

// eachA calls f for the registers of A with the row and the k of its first element.
func (p *multiply) eachA(f func(r, lane, row, k int)) {
	n, _ := p.registers()
	tall := p.rows / 8
	for r := range n {
		for l := range 32 {
			f(r, l, l/4+8*(r%tall), p.a.per*(l%4+4*(r/tall)))
		}
	}
}

// eachB calls f for the registers of 8 columns of B with the column and the k of its first element.
func (p *multiply) eachB(block int, f func(r, lane, column, k int)) {
	_, n := p.registers()
	for r := range n {
		for l := range 32 {
			f(p.countA+block*n+r, l, l/4, p.b.per*(l%4+4*r))
		}
	}
}

// inC says where the element of C of a row, and of a column of 8, is: in which register, and which lane.
func (p *multiply) inC(block, row, col int, half bool) (reg, lane int) {
	reg, lane = block*p.rows/8+row/8, row%8*4+col/2
	if half {
		return reg, lane
	}
	return 2*reg + col%2, lane
}

// floats multiplies in f32.
func (p *multiply) floats(_ *Inst, w *WarpArgs) {
	var a [32][32]float32
	var b [32][8]float32
	p.eachA(func(r, l, row, k int) {
		for j, x := 0, uint32(w.S[r][l]); j < p.a.per; j, x = j+1, x>>(32/p.a.per) {
			a[row][k+j] = p.a.number(lowElement(x, p.a.per))
		}
	})
	c := w.S[p.countA+p.countB:]
	for block := range p.cols / 8 {
		p.eachB(block, func(r, l, column, k int) {
			for j, x := 0, uint32(w.S[r][l]); j < p.b.per; j, x = j+1, x>>(32/p.b.per) {
				b[k+j][column] = p.b.number(lowElement(x, p.b.per))
			}
		})
		for row := range p.rows {
			var sum [8]float32
			for n := range sum {
				if r, l := p.inC(block, row, n, p.from16); p.from16 {
					sum[n] = half(uint32(c[r][l]>>(16*(n%2))) & 0xffff)
				} else {
					sum[n] = math.Float32frombits(uint32(c[r][l]))
				}
			}
			for k, x := range a[row][:p.deep] {
				of := &b[k]
				for n := range sum {
					sum[n] += float32(x * of[n]) // never fused
				}
			}
			for n, v := range sum {
				r, l := p.inC(block, row, n, p.f16)
				switch {
				case !p.f16 && v != v:
					w.D[r][l] = fmtF32.nan
				case !p.f16:
					w.D[r][l] = uint64(math.Float32bits(v))
				case n%2 == 0:
					w.D[r][l] = fmtF16.round(float64(v), RN)
				default:
					w.D[r][l] |= fmtF16.round(float64(v), RN) << 16
				}
			}
		}
	}
}

// lowElement is the lowest of the elements that are left of a register.
func lowElement(x uint32, per int) uint32 { return x & uint32(1<<(32/per)-1) }

// integers multiplies in 64 bits, of which the result keeps 32.
func (p *multiply) integers(_ *Inst, w *WarpArgs) {
	var a [32][64]int64
	var b [64][8]int64
	value := func(reg uint64, j int, e element) int64 {
		x := int32(reg) << (32 - 32/e.per*(j+1))
		if e.signed {
			return int64(x >> (32 - 32/e.per))
		}
		return int64(uint32(x) >> (32 - 32/e.per))
	}
	p.eachA(func(r, l, row, k int) {
		for j := range p.a.per {
			a[row][k+j] = value(w.S[r][l], j, p.a)
		}
	})
	for block := range p.cols / 8 {
		p.eachB(block, func(r, l, column, k int) {
			for j := range p.b.per {
				b[k+j][column] = value(w.S[r][l], j, p.b)
			}
		})
		for row := range p.rows {
			for n := range 8 {
				i, l := p.inC(block, row, n, false)
				sum := int64(int32(w.S[p.countA+p.countB+i][l]))
				for k, x := range a[row][:p.deep] {
					sum += x * b[k][n]
				}
				if p.sat {
					sum = min(max(sum, math.MinInt32), math.MaxInt32)
				}
				w.D[i][l] = uint64(uint32(sum))
			}
		}
	}
}

// popcounts counts the ones that op leaves of the bits of a row and of a column.
func (p *multiply) popcounts(_ *Inst, w *WarpArgs) {
	var a [16][8]uint32 // 32 elements of k in each
	var b [8][8]uint32
	p.eachA(func(r, l, row, k int) { a[row][k/32] = uint32(w.S[r][l]) })
	p.eachB(0, func(r, l, column, k int) { b[k/32][column] = uint32(w.S[r][l]) })
	for row := range p.rows {
		for n := range 8 {
			i, l := p.inC(0, row, n, false)
			sum := uint32(w.S[p.countA+p.countB+i][l])
			for k, x := range a[row][:p.deep/32] {
				if p.op == OpAnd {
					sum += uint32(bits.OnesCount32(x & b[k][n]))
				} else {
					sum += uint32(bits.OnesCount32(x ^ b[k][n]))
				}
			}
			w.D[i][l] = uint64(sum)
		}
	}
}

// doubles multiplies in f64, by fused operations.
func (p *multiply) doubles(_ *Inst, w *WarpArgs) {
	var a [16][16]uint64
	var b [16][8]uint64
	p.eachA(func(r, l, row, k int) { a[row][k] = w.S[r][l] })
	p.eachB(0, func(r, l, column, k int) { b[k][column] = w.S[r][l] })
	for row := range p.rows {
		for n := range 8 {
			i, l := p.inC(0, row, n, false)
			sum := w.S[p.countA+p.countB+i][l]
			for k, x := range a[row][:p.deep] {
				sum = fma64(x, b[k][n], sum, p.round)
			}
			w.D[i][l] = sum
		}
	}
}

// bindMovmatrix binds movmatrix: a lane holds two neighbouring elements of a row.
func bindMovmatrix(in *Inst) {
	in.Lanes = func(_ *Inst, w *WarpArgs) {
		element := func(row, col int) uint64 { return w.S[0][4*row+col/2] >> (16 * (col % 2)) & 0xffff }
		for l := range 32 {
			row, col := l/4, 2*(l%4)
			w.D[0][l] = element(col, row) | element(col+1, row)<<16
		}
	}
}
