package isa

import (
	"math"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// wgmmaRows is the manual's "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions". The four warps of a warpgroup
// compute 16 rows of D each, from as many rows of A and all of B: D is 64 x N, A is 64 x K, K being 32 bytes, B is K x N.
//
// Lane l holds, with g = l/4 and t = l%4 and E elements of A in a register, of the rows of its warp
//
//	A   register r: row g + 8*(r%2), columns E*t + 4*E*(r/2) and the next E-1
//	D   register i: row g + 8*(i/2%2), column 8*(i/4) + 2*t + i%2; of f16: row g + 8*(i%2), columns 8*(i/2) + 2*t and the next
var wgmmaRows = []*Row{
	{Op: "wgmma", Doc: "Warpgroup Level Matrix: wgmma.mma_async", Class: Warpgroup, Whole: true, Event: event.Wgmma, Bind: bindWgmma, Note: noteWgmma, Forms: forms(
		wgmmaForm("16", "f32.f16.f16", "{, trans}"), wgmmaForm("16", "f16.f16.f16", "{, trans}"), wgmmaForm("16", "f32.bf16.bf16", "{, trans}"),
		wgmmaForm("8", "f32.tf32.tf32", ""), wgmmaForm("32", "f32.atype.btype", "")+fp8, wgmmaForm("32", "f16.atype.btype", "")+fp8,
		wgmmaForm("32", "s32.atype.btype", "")+int8s, wgmmaForm("32{.satfinite}", "s32.atype.btype", "")+int8s)},
	{Op: "wgmma", Doc: "Warpgroup Level Matrix: wgmma.fence", Class: Warpgroup, Whole: true, Bind: bindOp(OpWgmmaFence), Forms: forms(".fence.sync.aligned"),
		Note: "It orders nothing here, because the results of wgmma.mma_async are available at once. But a wgmma.mma_async without this " +
			"fence before it is reported if it is the first one, or if other instructions have written its registers since the last fence."},
	{Op: "wgmma", Doc: "Warpgroup Level Matrix: wgmma.commit_group", Class: Warpgroup, Whole: true, Event: event.WgmmaCommit, Bind: bindOp(OpWgmmaCommit),
		Forms: forms(".commit_group.sync.aligned")},
	{Op: "wgmma", Doc: "Warpgroup Level Matrix: wgmma.wait_group", Class: Warpgroup, Whole: true, Event: event.WgmmaWait, Bind: bindOp(OpWgmmaWait),
		Forms: forms(".wait_group.sync.aligned n:u32"), Note: "Waits until all warps of the warpgroup have issued the groups."},
}

const noteWgmma = "The operation is performed when a warp executes it, and its results are in the registers then. Shared memory " +
	"counts as being read until the wait. The sum begins with D and adds the products in the order of k, product and sum in f32 " +
	"(f16 accumulators rounded once at the end)."

// wgmmaForm makes a form of wgmma.mma_async for all N.
func wgmmaForm(k, types, trans string) string {
	k, sat, _ := strings.Cut(k, "{")
	if sat != "" {
		sat = "{" + sat
	}
	var shapes []string
	for n := 8; n <= 256; n += 8 {
		if strings.HasPrefix(types, "s32") && n > 32 && n%16 != 0 {
			continue
		}
		shapes = append(shapes, "m64n"+strconv.Itoa(n)+"k"+k)
	}
	scales := ", imm-scale-a, imm-scale-b"
	if strings.HasPrefix(types, "s32") {
		scales = ""
	}
	return ".mma_async.sync.aligned.shape" + sat + "." + types + " d, a, b-desc, scale-d" + scales + strings.ReplaceAll(trans, "trans", "imm-trans") + "'; shape: " + strings.Join(shapes, " ")
}

// Wgmma describes the computation of an instruction of a shape, and the places of its operands.
type Wgmma struct {
	Columns, Depth int
	A, B           Layout // A is in registers if its Registers is set
	Accumulators   int    // registers of D
	a, b           element
	f16, integer   bool
	sat            bool
	negateA        bool
	negateB        bool
}

// Layout is the layout of a matrix.
type Layout struct {
	Registers bool
	Size      int  // bytes of an element in memory
	Major     bool // the elements of M or N, not those of K, are adjacent
}

// The sources of wgmma.mma_async after the accumulators: A, in one operand or four, then as many as these from its end.
const (
	WgmmaB     = 3
	WgmmaScale = 2
)

func bindWgmma(in *Inst) {
	in.Op = OpWgmma
	types := in.Mods[len(in.Mods)-3:]
	g := &Wgmma{a: elements[types[1]], b: elements[types[2]], f16: types[0] == "f16", integer: types[0] == "s32", sat: in.Sat}
	_, g.Columns, g.Depth = shapeOf(in.Mods[3])
	g.A.Size, g.B.Size = 32/g.Depth, 32/g.Depth
	g.Accumulators = g.Columns / 2
	if g.f16 {
		g.Accumulators /= 2
	}
	in.Wgmma = g
}

// wgmmaOperands decodes the operands of wgmma.mma_async: Dst is D, Src is D, A, the descriptor of B and whether D is added.
func (b *body) wgmmaOperands(in *Inst) {
	ops := in.Source.Operands
	shared := *in.Wgmma
	g := &shared
	in.Wgmma = g
	if len(ops) < 4 {
		b.errorf(in.Source.Pos, "%s%s takes D, A, B and scale-d at least", in.Source.Op, in.Source.Mods)
		return
	}
	d := opSpec{name: "d", typ: F32, count: g.Accumulators, dst: true}
	switch {
	case g.f16:
		d.typ = B32
	case g.integer:
		d.typ = S32
	}
	b.tuple(in, &d, &ops[0])
	d.dst = false
	b.tuple(in, &d, &ops[0])
	g.A.Registers = ops[1].Kind == ptx.OperandVector
	if g.A.Registers {
		b.tuple(in, &opSpec{name: "a", typ: B32, count: 4}, &ops[1])
	} else {
		b.source(in, &opSpec{name: "a-desc", typ: B64}, &ops[1])
	}
	b.source(in, &opSpec{name: "b-desc", typ: B64}, &ops[2])
	if ops[3].Kind == ptx.OperandImm {
		b.source(in, &opSpec{name: "scale-d", typ: U32}, &ops[3])
	} else {
		b.source(in, &opSpec{name: "scale-d", typ: Pred}, &ops[3])
	}
	in.Src = append(in.Src, Operand{Kind: Imm, Imm: allLanes})
	var flags []*bool
	if !g.integer {
		flags = append(flags, &g.negateA, &g.negateB)
	}
	scales := len(flags)
	if g.A.Size == 2 {
		if !g.A.Registers {
			flags = append(flags, &g.A.Major)
		}
		flags = append(flags, &g.B.Major)
	}
	if len(ops)-4 != len(flags) {
		b.errorf(in.Source.Pos, "%s%s takes %d operands here, not %d", in.Source.Op, in.Source.Mods, 4+len(flags), len(ops))
		return
	}
	for i, to := range flags {
		o := &ops[4+i]
		v, text := uint64(0), "not an immediate"
		negative := o.Kind == ptx.OperandImm && strings.HasPrefix(o.Name, "-")
		if o.Kind == ptx.OperandImm {
			v, text = immediate(strings.TrimPrefix(o.Name, "-"), U32)
		}
		switch {
		case text == "" && i < scales && v == 1:
			*to = negative
		case text == "" && i >= scales && v < 2 && !negative:
			*to = v == 1
		default:
			b.errorf(o.Pos, "%s%s: %s must be 1 or -1 for a scale, 0 or 1 for a transposition", in.Source.Op, in.Source.Mods, describe(o))
		}
	}
}

// Descriptor is the descriptor of a matrix in shared memory (PTX ISA, "Matrix Descriptor Format").
type Descriptor struct {
	start, leading, stride uint64 // in bytes
	mode                   uint64 // the logarithm of the number of 16-byte chunks that are permuted: 0 none, 3 of 128 bytes
	base                   uint64
}

// DescriptorOf reads a descriptor.
func DescriptorOf(v uint64) Descriptor {
	field := func(at uint) uint64 { return v >> at & 0x3fff << 4 }
	return Descriptor{field(0), field(16), field(32), [4]uint64{0, 3, 2, 1}[v>>62], v >> 49 & 7}
}

// Chunk returns the address in shared memory of the 16 bytes with elements of a matrix, from element i of M or N and
// element k of K on. The following elements are adjacent in K or, with major, in M or N (PTX ISA, "Canonical Layouts").
func (d *Descriptor) Chunk(l *Layout, i, k uint64) uint64 {
	t := uint64(16 / l.Size) // elements of a chunk
	span := uint64(16) << d.mode
	var at uint64
	switch {
	case l.Major && d.mode == 0:
		at = i/t*d.stride + k%8*16 + k/8*d.leading
	case l.Major:
		n := span / uint64(l.Size) // elements of a row of the pattern
		at = i%n*uint64(l.Size) + i/n*d.leading + k%8*span + k/8*d.stride
	case d.mode == 0:
		at = i%8*16 + i/8*d.stride + k/t*d.leading
	default:
		at = i%8*span + i/8*d.stride + k*uint64(l.Size)
	}
	at += d.start
	return at ^ (at>>7-d.base)&(1<<d.mode-1)<<4
}

// WgmmaArgs are the values of a warp: its rows of A and all of B, by columns, as the bits of elements, and the
// registers of D.
type WgmmaArgs struct {
	A [16][32]uint32
	B [256][32]uint32
	D [128][32]uint32
}

// FromRegisters reads A from the registers of the lanes.
func (g *Wgmma) FromRegisters(x *WgmmaArgs, registers *[4][32]uint32) {
	per := 4 / g.A.Size
	for r := range registers {
		for l, v := range registers[r] {
			row, k := l/4+8*(r%2), per*(l%4+4*(r/2))
			for j := range per {
				x.A[row][k+j] = v >> (32 / per * j) & uint32(1<<(32/per)-1)
			}
		}
	}
}

// Multiply computes D. If add is set it adds the old D.
func (g *Wgmma) Multiply(x *WgmmaArgs, add bool) {
	if g.integer {
		g.integers(x, add)
		return
	}
	var a [16][32]float32
	var b [32]float32
	for i := range a {
		for k := range g.Depth {
			a[i][k] = g.a.signedNumber(x.A[i][k], g.negateA)
		}
	}
	for n := range g.Columns {
		for k := range g.Depth {
			b[k] = g.b.signedNumber(x.B[n][k], g.negateB)
		}
		for i := range a {
			reg, lane, shift := g.place(i, n)
			sum := float32(0)
			d := &x.D[reg][lane]
			if add && g.f16 {
				sum = half(*d >> shift & 0xffff)
			} else if add {
				sum = math.Float32frombits(*d)
			}
			row := &a[i]
			for k := range g.Depth {
				sum += float32(row[k] * b[k]) // never fused
			}
			switch {
			case g.f16:
				*d = *d&^(0xffff<<shift) | uint32(fmtF16.round(float64(sum), RN))<<shift
			case sum != sum:
				*d = uint32(fmtF32.nan)
			default:
				*d = math.Float32bits(sum)
			}
		}
	}
}

func (g *Wgmma) integers(x *WgmmaArgs, add bool) {
	for n := range g.Columns {
		for i := range x.A {
			reg, lane, _ := g.place(i, n)
			d := &x.D[reg][lane]
			*d = integerSum(*d, add, g.sat, &g.a, &g.b, x.A[i][:g.Depth], x.B[n][:g.Depth])
		}
	}
}

// signedNumber is the value of an element of a matrix, negated if negate is set.
func (e *element) signedNumber(v uint32, negate bool) float32 {
	if f := e.number(v); !negate {
		return f
	} else {
		return -f
	}
}

// integer is the value of an element of 8 bits.
func (e *element) integer(v uint32) int64 {
	if e.signed {
		return int64(int8(v))
	}
	return int64(uint8(v))
}

// integerSum is an element of D: the products of a row and a column, plus, with add, the old value. With sat it
// saturates to 32 bits.
func integerSum(d uint32, add, sat bool, a, b *element, row, column []uint32) uint32 {
	sum := int64(0)
	if add {
		sum = int64(int32(d))
	}
	for k, v := range row {
		sum += a.integer(v) * b.integer(column[k])
	}
	if sat {
		sum = min(max(sum, math.MinInt32), math.MaxInt32)
	}
	return uint32(sum)
}

// place returns the place of an element of D: its register, its lane, and its first bit.
func (g *Wgmma) place(row, col int) (reg, lane, shift int) {
	lane = row%8*4 + col%8/2
	if reg = 2*(col/8) + row/8; g.f16 {
		return reg, lane, 16 * (col % 2)
	}
	return 2*reg + col%2, lane, 0
}
