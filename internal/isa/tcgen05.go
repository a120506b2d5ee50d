package isa

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// tensorCoreRows is the manual's "TensorCore 5th Generation Family Instructions". They work on tensor memory, which a block has
// beside shared memory: 128 lanes of 512 columns of 32 bits. An address has the lane in its upper half, the column in its lower one.
var tensorCoreRows = []*Row{
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.alloc", Class: Warpgroup, Whole: true, Event: event.Store, Bind: bindCore(OpTcAlloc), Forms: forms(
		".alloc.group.sync.aligned{.space}.b32 [a], b:u32; space: shared::cta" + coreGroups),
		Note: "Each block has 512 columns of its own. An allocation that does not fit waits until other columns of its block are freed."},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.dealloc", Class: Warpgroup, Whole: true, Bind: bindCore(OpTcFree), Forms: forms(
		".dealloc.group.sync.aligned.b32 a:b32, b:u32" + coreGroups)},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.relinquish_alloc_permit", Class: Warpgroup, Whole: true, Bind: bindCore(OpTcRelinquish), Forms: forms(
		".relinquish_alloc_permit.group.sync.aligned" + coreGroups)},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.ld", Class: Warpgroup, Whole: true, Event: event.Core, Bind: bindMove(OpTcLoad), Forms: forms(
		".ld.sync.aligned.shape.num{.pack::16b}.b32 d, [a]'"+coreShapes,
		".ld.sync.aligned.16x32bx2.num{.pack::16b}.b32 d, [a], half'"+coreNumbers),
		Note: "The registers have their values at once. The memory counts as being read until tcgen05.wait::ld."},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.ld.red", Class: Warpgroup, Whole: true, Event: event.Core, Bind: bindMove(OpTcLoad), Forms: forms(
		".ld.red.sync.aligned.32x32b.num.op.type d, reduced, [a]'; op: min max; type: u32 s32"+coreSeveral,
		".ld.red.sync.aligned.32x32b.num.op{.abs}{.NaN}.f32 d, reduced, [a]'; op: min max"+coreSeveral),
		Note: "Like tcgen05.ld. A lane's second result is computed from the registers that it loads. The shape 16x32bx2 is not supported."},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.st", Class: Warpgroup, Whole: true, Event: event.Core, Bind: bindMove(OpTcStore), Forms: forms(
		".st.sync.aligned.shape.num{.unpack::16b}.b32 [a], b'"+coreShapes,
		".st.sync.aligned.16x32bx2.num{.unpack::16b}.b32 [a], half, b'"+coreNumbers),
		Note: "The memory has the values at once. It counts as being written until tcgen05.wait::st."},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.wait", Class: Warpgroup, Whole: true, Event: event.CoreWait, Bind: bindCore(OpTcWait), Forms: forms(
		".for.sync.aligned; for: wait::ld wait::st")},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.mma", Class: Copy, Event: event.Core, Bind: bindCoreMultiply, Note: noteCore, Forms: forms(
		".mma.group.kind{.collector} [d], a, b-desc, idesc{, {disable}}, enable-d{, scale-d}'" + coreKinds + coreGroups)},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.cp", Class: Copy, Event: event.Core, Bind: bindCore(OpTcCopy), Forms: forms(
		".cp.group.shape{.multicast} [d], a-desc'; shape: 128x256b 4x256b 128x128b 64x128b 32x128b; multicast: warpx2::02_13 warpx2::01_23 warpx4" + coreGroups),
		Note: "Conversions of formats are not supported. Performed like tcgen05.mma."},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.commit", Class: Copy, Event: event.CoreCommit, Bind: bindCore(OpTcCommit), Forms: forms(
		".commit.group.mbarrier::arrive::one{.space}{.multicast::cluster}.b64 [bar]{, mask}'; space: shared::cluster" + coreGroups),
		Note: "The operations are performed, and the arrival counts, when a thread next tests the barrier."},
	{Op: "tcgen05", Doc: "Tensor Core: tcgen05.fence", Class: Hint, Forms: forms(".fence; fence: fence::before_thread_sync fence::after_thread_sync"),
		Note: "No effect, and no check requires it: Triton's code waits for the mbarrier and omits this fence."},
}

const (
	coreGroups  = "; group: cta_group::1 cta_group::2"
	coreNumbers = "; num: x1 x2 x4 x8 x16 x32 x64 x128"
	coreSeveral = "; num: x2 x4 x8 x16 x32 x64 x128"
	coreShapes  = "; shape: 32x32b 16x64b 16x128b 16x256b" + coreNumbers
	coreKinds   = "; kind: kind::f16 kind::tf32 kind::f8f6f4 kind::i8; collector: collector::a::fill collector::a::use collector::a::lastuse collector::a::discard"
	noteCore    = "With seed 0 an operation is performed when a thread tests an mbarrier that a later tcgen05.commit names. Another " +
		"seed may perform it at once. " +
		"The operations of a thread are performed in order. The sum begins with D and adds the products in the order of k, product and sum in f32. " +
		"Elements of fewer than 8 bits are not supported."
)

// Core is what an instruction of the tensor cores does.
type Core struct {
	Group int // blocks that it concerns: 1 or 2
	// Of tcgen05.ld and tcgen05.st: lanes and bits of a shape, how often it is repeated along the columns, and whether a register has
	// two elements of 16 bits.
	Lanes, Bits, Number int
	Packed              bool
	Halves              bool // 16x32bx2: the upper lanes of the warp access other columns, Half behind
	Half                int
	Reduces             *reducer // of tcgen05.ld.red: what a lane loads
	// Of tcgen05.mma: InMemory says that A is in tensor memory. Lanes of D that are left alone are the Disabled sources from Disable on.
	InMemory          bool
	Disable, Disabled int
	Scale             int // D is divided by 2 to the power of that, before the product is added
	Mask              bool
}

func bindCore(op Op) func(in *Inst) {
	return func(in *Inst) {
		in.Op, in.Core = op, &Core{Group: 1}
		if in.Has("cta_group::2") {
			in.Core.Group = 2
		}
	}
}

func bindCoreMultiply(in *Inst) { bindCore(OpTcMultiply)(in) }

// bindMove binds tcgen05.ld and tcgen05.st.
func bindMove(op Op) func(in *Inst) {
	return func(in *Inst) {
		c := &Core{Group: 1, Packed: in.Has("pack::16b") || in.Has("unpack::16b")}
		if in.Has("red") {
			x := reduction(in)
			c.Reduces = &x
		}
		in.Op, in.Core = op, c
		for _, m := range in.Mods {
			switch lanes, bits, ok := strings.Cut(strings.TrimSuffix(m, "b"), "x"); {
			case !ok || m == "max":
			case lanes == "":
				c.Number, _ = strconv.Atoi(bits)
			default:
				c.Lanes, _ = strconv.Atoi(lanes)
				c.Bits, _ = strconv.Atoi(bits)
			}
		}
		if c.Halves = in.Has("16x32bx2"); c.Halves {
			c.Lanes, c.Bits = 16, 32
		}
	}
}

// Registers is how many registers of a lane tcgen05.ld or tcgen05.st moves.
func (c *Core) Registers() int {
	if c.Halves {
		return c.Number
	}
	return c.Lanes * c.Bits / 32 / 32 * c.Number
}

// Cell says which lane, from the first of the shape on, and which word of it, from the column on, a register of a lane is.
func (c *Core) Cell(lane, register int) (row, word int) {
	switch {
	case c.Halves:
		return lane % 16, register + lane/16*c.Half
	case c.Bits == 32:
		return lane, register
	case c.Bits == 64:
		return lane/4 + lane%2*8, 2*register + lane/2%2
	case c.Bits == 128:
		return lane/4 + register%2*8, register/2*4 + lane%4
	}
	return lane/4 + register/2%2*8, register/4*8 + lane%4*2 + register%2
}

// Word is the word of a register, from the column on, but for what lies between the halves.
func (c *Core) Word(lane, register int) int {
	_, word := c.Cell(lane, register)
	if c.Halves {
		word -= lane / 16 * c.Half
	}
	return word
}

// coreOperands decodes the operands of an instruction of the tensor cores. Src is
//
//	tcgen05.ld      the address; Dst is the registers, and what they are reduced to
//	tcgen05.st      the address and the registers
//	tcgen05.mma     the address of D, A as an address, to which Off2 is added, or a descriptor, the descriptor of B, that of the instruction,
//	                the lanes that are left alone, and whether D is added
//	tcgen05.cp      the address and the descriptor
//	tcgen05.commit  the address of the mbarrier, and the mask of blocks, or a Sink
//
// to which Off is added where it is an address.
func (b *body) coreOperands(in *Inst) {
	ops := in.Source.Operands
	shared := *in.Core
	in.Core = &shared
	switch in.Op {
	case OpTcLoad, OpTcStore:
		b.coreMove(in, ops)
	case OpTcMultiply:
		b.coreMultiply(in, ops)
	case OpTcCopy:
		if b.takes(in, ops, 2) {
			b.tensorAddress(in, &ops[0])
			b.source(in, &opSpec{name: "a-desc", typ: B64}, &ops[1])
		}
	case OpTcCommit:
		want := 1
		if in.Core.Mask = in.Has("multicast::cluster"); in.Core.Mask {
			want = 2
		}
		if !b.takes(in, ops, want) {
			return
		}
		in.Space = event.Shared
		if !in.Has("shared::cluster") {
			in.Space = event.Generic
		}
		b.address(in, &ops[0])
		if in.Core.Mask {
			b.source(in, &opSpec{name: "mask", typ: B16}, &ops[1])
		} else {
			in.Src = append(in.Src, Operand{})
		}
	}
}

// takes says that an instruction has as many operands as it takes.
func (b *body) takes(in *Inst, ops []ptx.Operand, n int) bool {
	if len(ops) != n {
		b.errorf(in.Source.Pos, "%s%s takes %d, not %d operands", in.Source.Op, in.Source.Mods, n, len(ops))
	}
	return len(ops) == n
}

// tensorAddress decodes an address of tensor memory, which a register of 32 bits holds, as one of shared memory does.
func (b *body) tensorAddress(in *Inst, o *ptx.Operand) {
	in.Space = event.Shared
	b.address(in, o)
}

func (b *body) coreMove(in *Inst, ops []ptx.Operand) {
	c := in.Core
	want := 2
	if c.Halves || c.Reduces != nil {
		want++
	}
	if !b.takes(in, ops, want) {
		return
	}
	at, value := 0, want-1
	switch {
	case c.Reduces != nil:
		at, value = 2, 0
	case in.Op == OpTcLoad:
		at, value = 1, 0
	}
	if c.Halves {
		half := &ops[at+1]
		n, text := immediate(half.Name, U32)
		if half.Kind != ptx.OperandImm || text != "" {
			b.errorf(half.Pos, "%s%s: the columns between the halves must be an immediate, not %s", in.Source.Op, in.Source.Mods, describe(half))
			return
		}
		c.Half = int(n)
	}
	b.tensorAddress(in, &ops[at])
	if c.Registers() == 0 || c.Registers() > 128 {
		b.errorf(in.Source.Pos, "%s%s is no shape of tensor memory: it would have %d registers", in.Source.Op, in.Source.Mods, c.Registers())
		return
	}
	b.tuple(in, &opSpec{name: "r", typ: B32, count: c.Registers(), dst: in.Op == OpTcLoad}, &ops[value])
	if c.Reduces != nil {
		b.tuple(in, &opSpec{name: "reduced", typ: B32, count: 1, dst: true}, &ops[1])
	}
	in.Src = append(in.Src, Operand{Kind: Imm, Imm: allLanes})
}

func (b *body) coreMultiply(in *Inst, ops []ptx.Operand) {
	c := in.Core
	if len(ops) < 5 || len(ops) > 7 {
		b.errorf(in.Source.Pos, "%s%s takes 5 to 7 operands, not %d", in.Source.Op, in.Source.Mods, len(ops))
		return
	}
	b.tensorAddress(in, &ops[0])
	off := in.Off
	if c.InMemory = ops[1].Kind == ptx.OperandAddr; c.InMemory {
		b.tensorAddress(in, &ops[1])
		in.Off2 = in.Off
	} else {
		b.source(in, &opSpec{name: "a-desc", typ: B64}, &ops[1])
	}
	in.Off = off
	b.source(in, &opSpec{name: "b-desc", typ: B64}, &ops[2])
	b.source(in, &opSpec{name: "idesc", typ: B32}, &ops[3])
	rest := ops[4:]
	if rest[0].Kind == ptx.OperandVector {
		c.Disable, c.Disabled = len(in.Src), 4*c.Group
		b.tuple(in, &opSpec{name: "disable", typ: B32, count: c.Disabled}, &rest[0])
		rest = rest[1:]
	}
	if len(rest) == 0 {
		b.errorf(in.Source.Pos, "%s%s: the predicate that says whether D is added is missing", in.Source.Op, in.Source.Mods)
		return
	}
	if rest[0].Kind == ptx.OperandImm {
		b.source(in, &opSpec{name: "enable-d", typ: U32}, &rest[0])
	} else {
		b.source(in, &opSpec{name: "enable-d", typ: Pred}, &rest[0])
	}
	if len(rest) == 2 {
		n, text := immediate(rest[1].Name, U32)
		if rest[1].Kind != ptx.OperandImm || text != "" || n > 15 {
			b.errorf(rest[1].Pos, "%s%s: the scale of D must be an immediate from 0 to 15", in.Source.Op, in.Source.Mods)
			return
		}
		c.Scale = int(n)
	}
}

// CoreShape is what the instruction descriptor of tcgen05.mma says (PTX ISA, "Instruction Descriptor").
type CoreShape struct {
	Rows, Columns, Depth int
	A, B                 Layout
	TypeA, TypeB         string
	Half, Integer        bool // the type of D; neither: f32
	a, b                 element
	sat                  bool
	negateA, negateB     bool
}

// CoreShapeOf reads an instruction descriptor. text says what is wrong with it.
func CoreShapeOf(in *Inst, v uint32) (s *CoreShape, text string) {
	kind := in.Mods[slices.IndexFunc(in.Mods, func(m string) bool { return strings.HasPrefix(m, "kind::") })]
	types := map[string][]string{"kind::f16": {"f16", "bf16"}, "kind::tf32": {"", "", "tf32"}, "kind::f8f6f4": {"e4m3", "e5m2", "", "e2m3", "e3m2", "e2m1"}, "kind::i8": {"u8", "s8"}}[kind]
	name := func(at uint) string {
		if k := int(v >> at & 7); k < len(types) {
			return types[k]
		}
		return ""
	}
	s = &CoreShape{Columns: int(v>>17&63) * 8, Rows: int(v>>24&31) * 16, TypeA: name(7), TypeB: name(10), sat: v>>3&1 != 0, negateA: v>>13&1 != 0, negateB: v>>14&1 != 0}
	var okA, okB bool
	s.a, okA = elements[s.TypeA]
	s.b, okB = elements[s.TypeB]
	format := v >> 4 & 3
	switch {
	case v>>2&1 != 0:
		return nil, "says that A is sparse, which is not supported"
	case s.TypeA == "" || s.TypeB == "":
		return nil, "has a type of elements that " + kind + " does not have"
	case !okA || !okB:
		return nil, "has elements of fewer than 8 bits, which are not supported"
	case (kind == "kind::i8") != (format == 2) || format == 3 || kind == "kind::tf32" && format == 0:
		return nil, "has a type of D that " + kind + " does not have"
	}
	s.Half, s.Integer = format == 0, format == 2
	s.A = Layout{Size: 4 / s.a.per, Major: v>>15&1 != 0}
	s.B = Layout{Size: 4 / s.b.per, Major: v>>16&1 != 0}
	s.Depth = 32 / s.A.Size
	rows := s.Rows / in.Core.Group
	if rows != 64 && rows != 128 || s.Rows%in.Core.Group != 0 || s.Columns < 8 || s.Columns > 256 || s.Columns%8 != 0 {
		return nil, "has a shape that there is not: " + strconv.Itoa(s.Rows) + " rows, " + strconv.Itoa(s.Columns) + " columns"
	}
	return s, ""
}

// CoreArgs are the values of an operation: A by rows, B by columns, as the bits of elements, and D by rows as words of tensor memory.
type CoreArgs struct {
	A, B [][32]uint32
	D    [][]uint32
}

// Multiply computes D; with add what it was, divided by 2 to the power of scale, is added.
func (s *CoreShape) Multiply(x *CoreArgs, add bool, scale int) {
	if s.Integer {
		s.integers(x, add)
		return
	}
	a, b := numbers(&s.a, x.A, s.Depth, s.negateA), numbers(&s.b, x.B, s.Depth, s.negateB)
	factor := float32(1) / float32(int(1)<<scale)
	for i := range a {
		row := &a[i]
		for n := range b {
			sum, d, column := float32(0), &x.D[i][n], &b[n]
			switch {
			case add && s.Half:
				sum = half(*d&0xffff) * factor
			case add:
				sum = math.Float32frombits(*d) * factor
			}
			for k := range s.Depth {
				sum += float32(row[k] * column[k]) // never fused
			}
			switch {
			case s.Half:
				*d = uint32(fmtF16.round(float64(sum), RN))
			case sum != sum:
				*d = uint32(fmtF32.nan)
			default:
				*d = math.Float32bits(sum)
			}
		}
	}
}

// numbers are the values of elements.
func numbers(e *element, bits [][32]uint32, depth int, negate bool) [][32]float32 {
	out := make([][32]float32, len(bits))
	for i := range bits {
		for k := range depth {
			out[i][k] = e.signedNumber(bits[i][k], negate)
		}
	}
	return out
}

func (s *CoreShape) integers(x *CoreArgs, add bool) {
	for i := range x.A {
		for n := range x.B {
			d := &x.D[i][n]
			*d = integerSum(*d, add, s.sat, &s.a, &s.b, x.A[i][:s.Depth], x.B[n][:s.Depth])
		}
	}
}
