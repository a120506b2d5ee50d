package lanes

import "fencepost.dev/fencepost/internal/codegen/amd64"

// scalarConds are the conditions of comparisons of scalars, in the order of their codes.
var scalarConds = [...]amd64.Cond{amd64.Equal, amd64.NotEqual, amd64.Less, amd64.LessEqual, amd64.Greater, amd64.GreaterEqual,
	amd64.Below, amd64.BelowEqual, amd64.Above, amd64.AboveEqual}

// word computes a scalar into AX from other scalars.
func (t *translator) word(o *Op) {
	wide := o.Imm != 1<<32-1 // not truncated to Imm; instructions can compute in 32 bits themselves
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

func (t *translator) compareScalars(o *Op, wide bool, c amd64.Cond) {
	t.loadScalar(amd64.CX, o.A, wide)
	t.RR(amd64.XOR, false, amd64.AX, amd64.AX)
	t.RM(amd64.CMP, wide, amd64.CX, scalarAt(o.B))
	t.SetIf(c, amd64.AX)
}

// shiftScalar shifts left (0), right with zeros (1) or right with the sign (2) by a scalar, which may exceed the width.
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

// steady is the code of Regs.steady.
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

// reach computes into r the address of an access that has a scalar address, and logs the access. It leaves R12 at the
// accesses; the operation holds the offset of its Access. The code jumps to odd if the address is outside of the Access
// or misaligned, or if the log is full.
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

// reachAll is reach for all loads that are checked with a load. None of them is logged.
func (t *translator) reachAll(o *Op, r amd64.Reg, p span, odd *amd64.Label) {
	a := &accessOps[o.Code-OpLoad8ULine]
	in := func(disp int32) amd64.Mem { return amd64.Mem{Base: amd64.R12, Disp: o.B + disp} }
	t.Load(8, false, r, scalarAt(o.A))
	t.RM(amd64.SUB, true, r, in(originAt))
	t.Load(8, false, amd64.AX, in(roomAt))
	t.RI(amd64.SUB, true, amd64.AX, int32(p.hi-p.lo-int64(t.nearOf(o).Size)))
	t.JumpIf(amd64.Below, odd)
	t.Lea(amd64.CX, amd64.Mem{Base: r, Disp: int32(p.lo)})
	t.RR(amd64.CMP, true, amd64.CX, amd64.AX)
	t.JumpIf(amd64.AboveEqual, odd)
	if a.size > 1 {
		t.TestRegI(r, int32(a.size-1))
		t.JumpIf(amd64.NotEqual, odd)
	}
	t.Load(8, false, amd64.CX, in(baseAt))
	t.RM(amd64.ADD, true, r, amd64.Mem{Base: amd64.CX})
}

// askAhead prefetches memory as far after r as r is after the place of the last access. The code keeps that place in
// memory; see Access.Last.
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

// byLanes reports whether an access moves lanes of less than 32 bits under a mask. The processor has no instruction for
// that.
func (t *translator) byLanes(a *accessOp) bool { return t.masked && a.size < 4 }

// moveLanes writes an access that strips do not execute.
func (t *translator) moveLanes(o *Op, a *accessOp) {
	switch {
	case a.store && (a.how == line || a.how == rows) && !t.byLanes(a):
		t.storeLine(o, a)
	case a.size < 4 || t.masked && a.store:
		t.byLane(o, a, t.eachLane)
	case t.masked:
		t.byLane(o, a, t.someLanes)
	default:
		t.byLane(o, a, t.allLanes)
	}
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

// storeLine writes a store of adjacent lanes, or of two rows of them.
func (t *translator) storeLine(o *Op, a *accessOp) {
	t.Load(8, false, amd64.R12, amd64.Mem{Base: amd64.R10, Disp: reachAt})
	t.reach(o, amd64.R8, t.stop(o.Imm))
	w, base := a.register()
	half := 16 * int32(a.size)
	second := amd64.Mem{Base: amd64.R8, Disp: half}
	if a.how == rows {
		second = amd64.Mem{Base: amd64.R9}
		t.Load(8, false, amd64.R9, amd64.Mem{Base: amd64.R12, Disp: o.B + rowAt})
		t.RR(amd64.ADD, true, amd64.R9, amd64.R8)
	}
	t.noteRest(o, func() {
		before := t.noteValues(a, amd64.Mem{Base: base, Disp: o.D})
		if a.tellsBefore() || a.tellsBytes() {
			before = t.copyBytes(before, amd64.Mem{Base: amd64.R8}, half)
			t.copyBytes(before, second, half)
		}
	})
	if a.size < 4 {
		t.Address(amd64.AX, &t.data)
		lower := t.constant(lowerBytes(int(a.size)))
		t.V2M(amd64.VMOVDQU, true, 1, amd64.Mem{Base: amd64.AX, Disp: lower})
	}
	t.strips = 8 * w / 64
	for t.strip = range t.strips {
		to := amd64.Mem{Base: amd64.R8, Disp: 32 * int32(a.size) * int32(t.strip) / int32(t.strips)}
		if to.Disp >= half {
			to = amd64.Mem{Base: second.Base, Disp: second.Disp + to.Disp - half}
		}
		t.V2M(amd64.VMOVDQU, true, 0, t.lanesAt(base, o.D, w))
		switch {
		case a.size == 1: // the lower parts of both halves, next to each other
			t.V3(amd64.VPSHUFB, true, 0, 0, 1)
			t.VUpper(2, 0)
			t.V3(amd64.VPUNPCKLDQ, false, 0, 0, 2)
			t.VStoreLow(to, 0)
		case a.size == 2:
			t.V3(amd64.VPSHUFB, true, 0, 0, 1)
			t.VUpper(2, 0)
			t.V3(amd64.VPUNPCKLQDQ, false, 0, 0, 2)
			t.VStore(false, to, 0)
		case t.masked:
			t.V2M(amd64.VMOVDQU, true, 1, t.maskAt(w))
			t.VStoreIf(pick(w, amd64.VPMASKMOVD, amd64.VPMASKMOVQ), true, to, 1, 0)
		default:
			t.VStore(true, to, 0)
		}
	}
}

// lowerBytes returns the shuffle indices that bring the lower size bytes of 4 lanes of 32 bits together, for both
// halves of a register.
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

// byLane writes an access of lanes at places of their own. move writes the accesses themselves, and the copy of the old
// values to the log.
func (t *translator) byLane(o *Op, a *accessOp, move func(a *accessOp, store bool, p lanePlaces, data amd64.Mem)) {
	odd := t.stop(o.Imm)
	t.Load(8, false, amd64.R12, amd64.Mem{Base: amd64.R10, Disp: reachAt})
	p := lanePlaces{from: amd64.Mem{Base: amd64.DI, Disp: o.A}, size: 4}
	switch a.how {
	case pattern:
		p.from.Disp, p.signed = o.C, true
		t.reach(o, amd64.R9, odd)
	case line:
		p.size = 0
		t.reach(o, amd64.R9, odd)
	case each:
		p.from.Base, p.size = amd64.R11, 8
		fallthrough
	default:
		in := func(disp int32) amd64.Mem { return amd64.Mem{Base: amd64.R12, Disp: o.B + disp} }
		t.checkEach(a, in, p.from, odd)
		t.noteHead(o, amd64.R9, odd)
		t.Load(8, false, amd64.R9, in(baseAt))
		t.Load(8, false, amd64.R9, amd64.Mem{Base: amd64.R9})
		t.RM(amd64.SUB, true, amd64.R9, in(originAt))
	}
	_, base := a.register()
	data := amd64.Mem{Base: base, Disp: o.D}
	t.noteRest(o, func() {
		if a.ownPlaces() {
			t.noteOffsets(o, p.from, p.size)
		}
		if !a.store {
			return
		}
		before := t.noteValues(a, data)
		switch {
		case a.tellsBefore() && t.masked:
			t.someLanes(a, false, p, before)
		case a.tellsBefore():
			move(a, false, p, before)
		case a.tellsBytes():
			t.copyBytes(before, amd64.Mem{Base: amd64.R9}, 32*int32(a.size))
		}
	})
	move(a, a.store, p, data)
}

// allLanes moves all lanes, of 32 bits or of 64. It loads by single loads, which take less time than gather
// instructions.
func (t *translator) allLanes(a *accessOp, store bool, p lanePlaces, data amd64.Mem) {
	regs := [...]amd64.Reg{amd64.BX, amd64.SI, amd64.R8}
	at := func(l int32) amd64.Mem {
		r, m := regs[l%3], p.from
		m.Disp += l * int32(p.size)
		t.Load(p.size, p.signed, r, m)
		return amd64.Mem{Base: amd64.R9, Index: r, Scale: 1}
	}
	if !store {
		t.gather(a, at, data)
		return
	}
	for l := range int32(32) { // in order: if several lanes write one place, the last one counts
		m := at(l)
		t.Load(int(a.size), false, amd64.AX, data)
		if a.add {
			t.RM(amd64.ADD, a.size == 8, amd64.AX, m)
		}
		t.Store(a.size == 8, m, amd64.AX)
		data.Disp += int32(a.size)
	}
}

// someLanes loads the lanes of the mask, of 32 bits or of 64.
func (t *translator) someLanes(a *accessOp, _ bool, p lanePlaces, data amd64.Mem) {
	w, _ := a.register()
	byPattern := a.how == pattern
	t.strips = 8
	op := pick(w, amd64.VPGATHERQD, amd64.VPGATHERQQ)
	if byPattern {
		t.strips = 8 * w / 64
		op = pick(w, amd64.VPGATHERDD, amd64.VPGATHERDQ)
	}
	const d, mask, offsets = 0, 1, 2
	for t.strip = range t.strips {
		all := w == 64 || t.strips == 4
		from := t.lanesAt(p.from.Base, p.from.Disp, 8*p.size)
		switch {
		case byPattern:
			t.V2M(amd64.VMOVDQU, t.strips == 4, offsets, from)
		case p.size == 4:
			t.V2M(amd64.VPMOVZXDQ, true, offsets, from)
		default:
			t.V2M(amd64.VMOVDQU, true, offsets, from)
		}
		to := t.lanesAt(data.Base, data.Disp, w)
		t.V2M(amd64.VMOVDQU, all, mask, t.maskAt(w))
		t.V2M(amd64.VMOVDQU, all, d, to)
		t.VGather(op, true, d, mask, amd64.R9, offsets)
		t.VStore(all, to, d)
	}
}

// eachLane moves the lanes of the mask one after the other.
func (t *translator) eachLane(a *accessOp, store bool, p lanePlaces, data amd64.Mem) {
	w, _ := a.register()
	lane := amd64.Mem{Base: data.Base, Index: amd64.SI, Scale: byte(w / 8), Disp: data.Disp}
	place := amd64.Mem{Base: amd64.R9, Index: amd64.SI, Scale: byte(a.size)}
	var again, done amd64.Label
	t.Move(false, amd64.BX, amd64.DX)
	t.Test(false, amd64.BX, amd64.BX)
	t.JumpIf(amd64.Equal, &done)
	t.Bind(&again)
	t.LowestBit(amd64.SI, amd64.BX)
	if p.size != 0 {
		t.Load(p.size, p.signed, amd64.R8, amd64.Mem{Base: p.from.Base, Index: amd64.SI, Scale: byte(p.size), Disp: p.from.Disp})
		place = amd64.Mem{Base: amd64.R9, Index: amd64.R8, Scale: 1}
	}
	if store {
		t.Load(w/8, false, amd64.AX, lane)
		if a.add {
			t.RM(amd64.ADD, w == 64, amd64.AX, place)
		}
		t.StoreLow(int(a.size), place, amd64.AX)
	} else {
		t.Load(int(a.size), a.signed, amd64.AX, place)
		t.Store(w == 64, lane, amd64.AX)
	}
	t.ClearLowest(amd64.BX, amd64.BX)
	t.JumpIf(amd64.NotEqual, &again)
	t.Bind(&done)
}

// gather copies the bytes at the places of the lanes.
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

// checkEach writes the check of the lanes' addresses, which are in the register at from. The code jumps to odd if the
// address of a lane, less Origin, is not below Room or is not a multiple of the size. Room is below 1<<63.
func (t *translator) checkEach(a *accessOp, in func(int32) amd64.Mem, from amd64.Mem, odd *amd64.Label) {
	const origin, last, bad, bits, x, y, lanes = 0, 1, 2, 3, 4, 5, 6
	t.V2M(amd64.VPBROADCASTQ, true, origin, in(originAt))
	t.V2M(amd64.VPBROADCASTQ, true, last, in(roomAt))
	t.V3(amd64.VPCMPEQD, true, x, x, x)
	t.V3(amd64.VPADDQ, true, last, last, x)
	t.V3(amd64.VPXOR, true, bad, bad, bad)
	t.V3(amd64.VPXOR, true, bits, bits, bits)
	t.strips = 8
	for t.strip = range t.strips {
		if a.how == each {
			t.V2M(amd64.VMOVDQU, true, x, from)
			from.Disp += 32
		} else {
			t.V2M(amd64.VPMOVZXDQ, true, x, from)
			from.Disp += 16
		}
		t.V3(amd64.VPSUBQ, true, x, x, origin)
		t.V3(amd64.VPSUBQ, true, y, last, x)
		t.V3(amd64.VPOR, true, y, y, x) // negative where x is, or more than last
		if t.masked {
			t.V2M(amd64.VMOVDQU, true, lanes, t.maskAt(64))
			t.V3(amd64.VPAND, true, x, x, lanes)
			t.V3(amd64.VPAND, true, y, y, lanes)
		}
		t.V3(amd64.VPOR, true, bits, bits, x)
		t.V3(amd64.VPOR, true, bad, bad, y)
	}
	t.VSigns(true, amd64.AX, bad)
	t.Test(false, amd64.AX, amd64.AX)
	t.JumpIf(amd64.NotEqual, odd)
	if a.size == 1 {
		return
	}
	t.VShiftI(amd64.VPSLLQI, true, bits, bits, byte(64-map[uint64]int{2: 1, 4: 2, 8: 3}[a.size]))
	t.V3(amd64.VPXOR, true, x, x, x)
	t.V3(amd64.VPCMPEQQ, true, bits, bits, x)
	t.VSigns(true, amd64.AX, bits)
	t.RI(amd64.CMP, false, amd64.AX, 15)
	t.JumpIf(amd64.NotEqual, odd)
}
