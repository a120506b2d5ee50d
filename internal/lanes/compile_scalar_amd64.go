package lanes

import "fencepost.dev/fencepost/internal/codegen/amd64"

// scalarConds are the conditions of comparisons of scalars, in the order of their codes.
var scalarConds = [...]amd64.Cond{amd64.Equal, amd64.NotEqual, amd64.Less, amd64.LessEqual, amd64.Greater, amd64.GreaterEqual,
	amd64.Below, amd64.BelowEqual, amd64.Above, amd64.AboveEqual}

// isScalar reports whether an operation is done before the strips of its group.
func (t *translator) isScalar(c Code) bool {
	return c >= OpScalarSet && c <= OpScalarGEU64 || c == OpSteadyS || c == OpSteadyU || t.isScalarLoad(c)
}

func (t *translator) isAccess(c Code) bool { return c >= OpLoad8ULine && c < OpSteadyS }

func (t *translator) isScalarLoad(c Code) bool {
	return t.isAccess(c) && accessOps[c-OpLoad8ULine].how == same
}

// isLoad reports whether an operation is a load that strips do.
func (t *translator) isLoad(c Code) bool {
	if !t.isAccess(c) || t.masked {
		return false
	}
	a := &accessOps[c-OpLoad8ULine]
	return !a.store && (a.how == line || a.how == rows || a.how == spread)
}

// isSingle reports whether single writes code for an operation.
func (t *translator) isSingle(c Code) bool {
	if c >= OpPredCopy && c <= OpPredSet {
		return true
	}
	if !t.isAccess(c) || t.masked {
		return false
	}
	a := &accessOps[c-OpLoad8ULine]
	return a.store && a.how == line || a.size >= 4 && (a.ownPlaces() || a.store && a.how == pattern)
}

// ownPlaces says that each lane has an address of its own.
func (a *accessOp) ownPlaces() bool { return a.how == each || a.how == eachLow }

// unrolls reports whether a load is written for each strip: the place of its lanes is not proportional to that of their registers.
func (a *accessOp) unrolls() bool { return a.size < 4 || a.how != line }

// scalar writes an operation on scalars. It goes to odd() where it cannot be done.
func (t *translator) scalar(o *Op, odd func() *amd64.Label) {
	switch c := o.Code; {
	case c == OpSteadyS || c == OpSteadyU:
		t.steady(o, odd())
		return
	case c >= OpLoad8ULine:
		a := &accessOps[c-OpLoad8ULine]
		t.reach(o, amd64.AX, odd())
		t.Load(int(a.size), a.signed, amd64.AX, amd64.Mem{Base: amd64.AX})
	case c >= OpScalarEQ64:
		t.compareScalars(o, true, scalarConds[c-OpScalarEQ64])
	case c >= OpScalarShl64:
		t.shiftScalar(o, true, c-OpScalarShl64)
	case c >= OpScalarEQ32:
		t.compareScalars(o, false, scalarConds[c-OpScalarEQ32])
	case c >= OpScalarShl32:
		t.shiftScalar(o, false, c-OpScalarShl32)
	default:
		t.word(o)
	}
	t.Store(true, scalarAt(o.D), amd64.AX)
}

// word makes a scalar in AX of others.
func (t *translator) word(o *Op) {
	wide := o.Imm != 1<<32-1 // of what is cut to Imm: to 32 bits an instruction does
	cut := func() {
		if wide && o.Imm != 1<<64-1 {
			t.Set(amd64.CX, o.Imm)
			t.RR(amd64.AND, true, amd64.AX, amd64.CX)
		}
	}
	op := func(op amd64.Op, wide bool) {
		t.loadScalar(amd64.AX, o.A, wide)
		t.RM(op, wide, amd64.AX, scalarAt(o.B))
	}
	switch o.Code {
	case OpScalarSet:
		t.Set(amd64.AX, o.Imm)
	case OpScalarCopy:
		t.loadScalar(amd64.AX, o.A, true)
	case OpScalarAdd:
		op(amd64.ADD, wide)
		cut()
	case OpScalarSub:
		op(amd64.SUB, wide)
		cut()
	case OpScalarMul:
		op(amd64.IMUL, wide)
		cut()
	case OpScalarAnd:
		op(amd64.AND, true)
	case OpScalarOr:
		op(amd64.OR, true)
	case OpScalarXor:
		op(amd64.XOR, true)
	case OpScalarNot:
		t.loadScalar(amd64.AX, o.A, wide)
		t.Not(wide, amd64.AX)
		cut()
	case OpScalarMask:
		t.loadScalar(amd64.AX, o.A, wide)
		cut()
	case OpScalarSExt:
		t.Set(amd64.CX, o.Imm)
		t.loadScalar(amd64.AX, o.A, true)
		t.Shift(amd64.SHL, true, amd64.AX, amd64.AX, amd64.CX)
		t.Shift(amd64.SAR, true, amd64.AX, amd64.AX, amd64.CX)
	case OpScalarMulU, OpScalarMulS:
		signed := o.Code == OpScalarMulS
		t.Load(4, signed, amd64.AX, scalarAt(o.A))
		t.Load(4, signed, amd64.CX, scalarAt(o.B))
		t.RR(amd64.IMUL, true, amd64.AX, amd64.CX)
	case OpScalarMulBy:
		t.Set(amd64.AX, o.Imm)
		t.RM(amd64.IMUL, true, amd64.AX, scalarAt(o.A))
	case OpScalarSel:
		t.loadScalar(amd64.AX, o.B, true)
		t.loadScalar(amd64.CX, o.A, true)
		t.TestI(scalarAt(o.C), 1)
		t.MoveIf(amd64.NotEqual, amd64.AX, amd64.CX)
	default:
		panic("BUG: an operation on scalars without code")
	}
}

func (t *translator) loadScalar(r amd64.Reg, off int32, wide bool) {
	size := 4
	if wide {
		size = 8
	}
	t.Load(size, false, r, scalarAt(off))
}

func (t *translator) compareScalars(o *Op, wide bool, c amd64.Cond) {
	t.loadScalar(amd64.CX, o.A, wide)
	t.RR(amd64.XOR, false, amd64.AX, amd64.AX)
	t.RM(amd64.CMP, wide, amd64.CX, scalarAt(o.B))
	t.SetIf(c, amd64.AX)
}

// shiftScalar shifts to the left (0), to the right with zeros (1) or with the sign (2) by a scalar, which may be more than the width.
func (t *translator) shiftScalar(o *Op, wide bool, kind Code) {
	width := int32(32)
	if wide {
		width = 64
	}
	t.loadScalar(amd64.CX, o.B, true)
	if kind == 2 {
		t.Set(amd64.AX, uint64(width-1))
		t.RR(amd64.CMP, true, amd64.CX, amd64.AX)
		t.MoveIf(amd64.Above, amd64.CX, amd64.AX)
		t.loadScalar(amd64.AX, o.A, wide)
		t.Shift(amd64.SAR, wide, amd64.AX, amd64.AX, amd64.CX)
		return
	}
	t.loadScalar(amd64.AX, o.A, wide)
	t.Shift([]amd64.ShiftKind{amd64.SHL, amd64.SHR}[kind], wide, amd64.AX, amd64.AX, amd64.CX)
	t.RI(amd64.CMP, true, amd64.CX, width)
	t.Set(amd64.CX, 0)
	t.MoveIf(amd64.AboveEqual, amd64.AX, amd64.CX)
}

// steady: see Regs.steady.
func (t *translator) steady(o *Op, odd *amd64.Label) {
	t.Load(4, false, amd64.CX, scalarAt(o.A))
	if o.Code == OpSteadyS {
		t.Set(amd64.AX, 1<<31)
		t.RR(amd64.XOR, false, amd64.CX, amd64.AX)
	}
	t.RI(amd64.ADD, true, amd64.CX, o.B)
	t.Set(amd64.AX, 1<<32-1-uint64(uint32(o.C)))
	t.RR(amd64.CMP, true, amd64.CX, amd64.AX)
	t.JumpIf(amd64.Above, odd)
	t.Load(4, o.Code == OpSteadyS, amd64.AX, scalarAt(o.A))
	t.Store(true, scalarAt(o.D), amd64.AX)
}

// reach makes r the address of an access whose address is a scalar, and notes it. It goes to odd where that is not within its Access,
// which R12 with what the operation says points to, or is odd, or where there is no room to note it.
func (t *translator) reach(o *Op, r amd64.Reg, odd *amd64.Label) {
	a := &accessOps[o.Code-OpLoad8ULine]
	in := func(disp int32) amd64.Mem { return amd64.Mem{Base: amd64.R12, Disp: o.B + disp} }
	t.Load(8, false, r, scalarAt(o.A))
	t.RM(amd64.SUB, true, r, in(originAt))
	t.RM(amd64.CMP, true, r, in(roomAt))
	t.JumpIf(amd64.AboveEqual, odd)
	if a.size > 1 {
		t.TestRegI(r, int32(a.size-1))
		t.JumpIf(amd64.NotEqual, odd)
	}
	if t.told && a.tellsBytes() {
		t.TestRegI(r, 3)
		t.JumpIf(amd64.NotEqual, odd)
	}
	t.noteHead(o, r, odd)
	t.Load(8, false, amd64.CX, in(baseAt))
	t.RM(amd64.ADD, true, r, amd64.Mem{Base: amd64.CX})
	if a.how == line || a.how == rows {
		t.askAhead(a, r, in(lastAt))
	}
}

// askAhead prefetches the memory as far after r as r is after the last place, which is kept in memory; see Access.Last.
func (t *translator) askAhead(a *accessOp, r amd64.Reg, last amd64.Mem) {
	var near amd64.Label
	t.Load(8, false, amd64.CX, last)
	t.Test(true, amd64.CX, amd64.CX)
	t.JumpIf(amd64.Equal, &near)
	t.Store(true, last, r)
	t.Neg(true, amd64.CX)
	t.Lea(amd64.CX, amd64.Mem{Base: amd64.CX, Index: r, Scale: 2})
	for at := int32(0); at < 32*int32(a.size); at += 64 {
		if a.how == rows { // of 64 bytes each
			t.Prefetch(amd64.Mem{Base: amd64.CX})
			last.Disp += rowAt - lastAt
			t.RM(amd64.ADD, true, amd64.CX, last)
			t.Prefetch(amd64.Mem{Base: amd64.CX})
			break
		}
		t.Prefetch(amd64.Mem{Base: amd64.CX, Disp: at})
	}
	t.Bind(&near)
}

// single writes the code of an operation that is in no group; false where there is none.
func (t *translator) single(i int) bool {
	switch o := &t.ops[i]; {
	case !t.isSingle(o.Code):
		return false
	case o.Code <= OpPredSet:
		t.predicate(o)
	case accessOps[o.Code-OpLoad8ULine].how == line:
		t.storeLine(i)
	default:
		t.byLane(i)
	}
	return true
}

func (t *translator) predicate(o *Op) {
	from := predAt
	if o.Code == OpPredSet {
		from = scalarAt
	}
	t.Load(4, false, amd64.AX, from(o.A))
	switch o.Code {
	case OpPredCopy:
	case OpPredNot:
		t.Not(false, amd64.AX)
	case OpPredAnd:
		t.RM(amd64.AND, false, amd64.AX, predAt(o.B))
	case OpPredOr:
		t.RM(amd64.OR, false, amd64.AX, predAt(o.B))
	case OpPredXor:
		t.RM(amd64.XOR, false, amd64.AX, predAt(o.B))
	case OpPredSel: // ((a ^ b) & c) ^ b
		t.RM(amd64.XOR, false, amd64.AX, predAt(o.B))
		t.RM(amd64.AND, false, amd64.AX, predAt(o.C))
		t.RM(amd64.XOR, false, amd64.AX, predAt(o.B))
	case OpPredSet:
		t.RI(amd64.AND, false, amd64.AX, 1)
		t.Neg(false, amd64.AX)
	}
	t.setPred(o.D, amd64.AX)
}

// storeLine writes a store of lanes side by side.
func (t *translator) storeLine(i int) {
	o := &t.ops[i]
	a := &accessOps[o.Code-OpLoad8ULine]
	odd := t.odd(i)
	t.Load(8, false, amd64.R12, amd64.Mem{Base: amd64.R10, Disp: reachAt})
	t.reach(o, amd64.R8, odd)
	w, base := 32, amd64.DI
	if a.size == 8 {
		w, base = 64, amd64.R11
	}
	t.noteRest(o, func() {
		before := t.noteValues(a, amd64.Mem{Base: base, Disp: o.D})
		if a.tellsBefore() || a.tellsBytes() {
			t.copyBytes(before, amd64.Mem{Base: amd64.R8}, 32*int32(a.size))
		}
	})
	if a.size < 4 {
		t.Address(amd64.AX, &t.data)
		lower := t.constant(lowerBytes(int(a.size)))
		t.V2M(amd64.VMOVDQU, true, 1, amd64.Mem{Base: amd64.AX, Disp: lower})
	}
	for at := int32(0); at < int32(4*w); at += 32 {
		from := amd64.Mem{Base: base, Disp: o.D + at}
		to := amd64.Mem{Base: amd64.R8, Disp: at * int32(a.size) * 8 / int32(w)}
		t.V2M(amd64.VMOVDQU, true, 0, from)
		switch a.size {
		case 1:
			t.V3(amd64.VPSHUFB, true, 0, 0, 1)
			t.VUpper(2, 0)
			t.V3(amd64.VPUNPCKLDQ, false, 0, 0, 2)
			t.VStoreLow(to, 0)
		case 2:
			t.V3(amd64.VPSHUFB, true, 0, 0, 1)
			t.VUpper(2, 0)
			t.V3(amd64.VPUNPCKLQDQ, false, 0, 0, 2)
			t.VStore(false, to, 0)
		default:
			t.VStore(true, to, 0)
		}
	}
}

// lowerBytes are the indices that bring the lower size bytes of 4 lanes of 32 bits together, for both halves of a register.
func lowerBytes(size int) []byte {
	b := make([]byte, 32)
	for i := range b {
		b[i] = 0x80
		if i%16 < 4*size {
			b[i] = byte(i%16/size*4 + i%16%size)
		}
	}
	return b
}

// odd gives a label at which the assembly does operation i, where it may end.
func (t *translator) odd(i int) *amd64.Label {
	l, next := new(amd64.Label), t.after(i+1)
	t.cold = append(t.cold, func() { t.Bind(l); t.assembly(t.ops[i:i+1], next) })
	return l
}

// byLane writes an access of lanes at places of their own. What is loaded is put together from single loads, which takes less time than
// instructions that gather: with it a convolution takes 1.9 times less than by the assembly, without it 1.7.
func (t *translator) byLane(i int) {
	o := &t.ops[i]
	a := &accessOps[o.Code-OpLoad8ULine]
	odd := t.odd(i)
	t.Load(8, false, amd64.R12, amd64.Mem{Base: amd64.R10, Disp: reachAt})
	// A lane lies at R9 and what the register at from holds for it.
	from, size := amd64.Mem{Base: amd64.DI, Disp: o.A}, 4
	switch in := func(disp int32) amd64.Mem { return amd64.Mem{Base: amd64.R12, Disp: o.B + disp} }; a.how {
	case pattern:
		from.Disp = o.C
		t.reach(o, amd64.R9, odd)
	case each:
		from.Base, size = amd64.R11, 8
		fallthrough
	default:
		t.checkEach(a, in, from, odd)
		t.noteHead(o, amd64.R9, odd)
		t.Load(8, false, amd64.R9, in(baseAt))
		t.Load(8, false, amd64.R9, amd64.Mem{Base: amd64.R9})
		t.RM(amd64.SUB, true, amd64.R9, in(originAt))
	}
	regs := [...]amd64.Reg{amd64.BX, amd64.SI, amd64.R8}
	at := func(l int32) amd64.Mem {
		r, m := regs[l%3], from
		m.Disp += l * int32(size)
		t.Load(size, a.how == pattern, r, m)
		return amd64.Mem{Base: amd64.R9, Index: r, Scale: 1}
	}
	data := amd64.Mem{Base: amd64.DI, Disp: o.D}
	if a.size == 8 {
		data.Base = amd64.R11
	}
	t.noteRest(o, func() {
		if a.ownPlaces() {
			t.noteOffsets(o, from, size)
		}
		if a.store {
			t.gather(a, at, t.noteValues(a, data))
		}
	})
	if !a.store {
		t.gather(a, at, data)
		return
	}
	for l := range int32(32) { // in their order: the last one counts where several write one place
		m := at(l)
		t.Load(int(a.size), false, amd64.AX, data)
		t.Store(a.size == 8, m, amd64.AX)
		data.Disp += int32(a.size)
	}
}

// gather copies what lies at the places of the lanes.
func (t *translator) gather(a *accessOp, at func(lane int32) amd64.Mem, to amd64.Mem) {
	n := 16 / int32(a.size) // lanes in half a register
	for l := int32(0); l < 32; l += 2 * n {
		for half := range int32(2) {
			r := amd64.Vec(half)
			t.VLoadLow(a.size == 8, r, at(l+n*half))
			for k := int32(1); k < n; k++ {
				if a.size == 8 {
					t.VInsertHigh(r, r, at(l+n*half+k))
				} else {
					t.VInsert(r, r, at(l+n*half+k), byte(k))
				}
			}
		}
		t.VJoin(0, 0, 1)
		t.VStore(true, to, 0)
		to.Disp += 32
	}
}

// checkEach goes to odd where the address of a lane, in the register at from, less the Origin, is not below Room, which is below 1<<63, or no multiple of the
// size.
func (t *translator) checkEach(a *accessOp, in func(int32) amd64.Mem, from amd64.Mem, odd *amd64.Label) {
	const origin, room, good, bits, x, y = 0, 1, 2, 3, 4, 5
	t.V2M(amd64.VPBROADCASTQ, true, origin, in(originAt))
	t.V2M(amd64.VPBROADCASTQ, true, room, in(roomAt))
	for l := int32(0); l < 32; l += 4 {
		if a.how == each {
			t.V2M(amd64.VMOVDQU, true, x, from)
			from.Disp += 32
		} else {
			t.V2M(amd64.VPMOVZXDQ, true, x, from)
			from.Disp += 16
		}
		t.V3(amd64.VPSUBQ, true, x, x, origin)
		t.V3(amd64.VPSUBQ, true, y, x, room)
		if l == 0 { // negative less Room, and not before
			t.V2(amd64.VMOVDQU, true, bits, x)
			t.V3(amd64.VPANDN, true, good, x, y)
			continue
		}
		t.V3(amd64.VPOR, true, bits, bits, x)
		t.V3(amd64.VPANDN, true, y, x, y)
		t.V3(amd64.VPAND, true, good, good, y)
	}
	t.VSigns(true, amd64.AX, good)
	t.VShiftI(amd64.VPSLLQI, true, bits, bits, byte(64-map[uint64]int{4: 2, 8: 3}[a.size]))
	t.V3(amd64.VPXOR, true, x, x, x)
	t.V3(amd64.VPCMPEQQ, true, bits, bits, x)
	t.VSigns(true, amd64.CX, bits)
	t.RR(amd64.AND, false, amd64.AX, amd64.CX)
	t.RI(amd64.CMP, false, amd64.AX, 15)
	t.JumpIf(amd64.NotEqual, odd)
}
