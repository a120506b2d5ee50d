package lanes

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/codegen/arm64"
)

// scalarConds are the conditions of comparisons of scalars, in the order of their codes.
var scalarConds = [...]arm64.Cond{arm64.Equal, arm64.NotEqual, arm64.Less, arm64.LessEqual, arm64.Greater, arm64.GreaterEqual,
	arm64.Lower, arm64.LowerSame, arm64.Higher, arm64.HigherSame}

func (t *translator) compareScalars(o *Op, wide bool, c arm64.Cond) {
	t.loadScalar(resultReg, o.A, wide)
	t.loadScalar(tmp1, o.B, wide)
	t.compareRegs(wide, resultReg, tmp1)
	t.SetIf(c, resultReg)
}

// shiftScalar shifts left (0), right with zeros (1) or right with the sign (2) by a scalar, which may exceed the width.
func (t *translator) shiftScalar(o *Op, wide bool, kind Code) {
	width := uint32(32)
	if wide {
		width = 64
	}
	t.loadScalar(resultReg, o.A, wide)
	t.loadScalar(tmp1, o.B, true)
	t.CompareI(true, tmp1, width)
	if kind == 2 {
		t.Set(tmp2, uint64(width-1))
		t.Select(arm64.Lower, tmp1, tmp1, tmp2)
	}
	t.RR([]arm64.Op{arm64.LSL, arm64.LSR, arm64.ASR}[kind], wide, resultReg, resultReg, tmp1)
	if kind != 2 {
		t.Select(arm64.Lower, resultReg, resultReg, arm64.ZR)
	}
}

// scalarOps are the instructions of operations on two scalars, and whether they compute all 64 bits without truncation.
var scalarOps = map[Code]struct {
	op    arm64.Op
	whole bool
}{
	OpScalarAdd: {arm64.ADD, false}, OpScalarSub: {arm64.SUB, false}, OpScalarMul: {arm64.MUL, false},
	OpScalarAnd: {arm64.AND, true}, OpScalarOr: {arm64.ORR, true}, OpScalarXor: {arm64.EOR, true},
}

// word computes a scalar into resultReg from other scalars.
func (t *translator) word(o *Op) {
	wide := o.Imm != 1<<32-1 // not truncated to Imm; instructions can compute in 32 bits themselves
	cut := func() {
		if wide && o.Imm != 1<<64-1 {
			t.Set(tmp1, o.Imm)
			t.RR(arm64.AND, true, resultReg, resultReg, tmp1)
		}
	}
	if w, ok := scalarOps[o.Code]; ok {
		t.loadScalar(resultReg, o.A, wide || w.whole)
		t.loadScalar(tmp1, o.B, wide || w.whole)
		t.RR(w.op, wide || w.whole, resultReg, resultReg, tmp1)
		if !w.whole {
			cut()
		}
		return
	}
	switch o.Code {
	case OpScalarSet:
		t.Set(resultReg, o.Imm)
	case OpScalarCopy:
		t.loadScalar(resultReg, o.A, true)
	case OpScalarNot:
		t.loadScalar(resultReg, o.A, wide)
		t.RR(arm64.ORN, wide, resultReg, arm64.ZR, resultReg)
		cut()
	case OpScalarMask:
		t.loadScalar(resultReg, o.A, wide)
		cut()
	case OpScalarSExt:
		t.Set(tmp1, o.Imm)
		t.loadScalar(resultReg, o.A, true)
		t.RR(arm64.LSL, true, resultReg, resultReg, tmp1)
		t.RR(arm64.ASR, true, resultReg, resultReg, tmp1)
	case OpScalarMulU, OpScalarMulS:
		op := arm64.UMULL
		if o.Code == OpScalarMulS {
			op = arm64.SMULL
		}
		t.loadScalar(resultReg, o.A, false)
		t.loadScalar(tmp1, o.B, false)
		t.RR(op, true, resultReg, resultReg, tmp1)
	case OpScalarMulBy:
		t.Set(tmp1, o.Imm)
		t.loadScalar(resultReg, o.A, true)
		t.RR(arm64.MUL, true, resultReg, resultReg, tmp1)
	case OpScalarSel:
		t.loadScalar(resultReg, o.A, true)
		t.loadScalar(tmp1, o.B, true)
		t.loadScalar(tmp2, o.C, false)
		t.TestLowBits(tmp2, 1)
		t.Select(arm64.NotEqual, resultReg, resultReg, tmp1)
	default:
		panic("BUG: an operation on scalars without code")
	}
}

// steady is the code of Regs.steady.
func (t *translator) steady(o *Op, odd *label) {
	t.loadScalar(resultReg, o.A, false)
	if o.Code == OpSteadyS {
		t.Set(tmp1, 1<<31)
		t.RR(arm64.EOR, false, resultReg, resultReg, tmp1)
	}
	t.AddI(resultReg, resultReg, int64(o.B))
	t.Set(tmp1, 1<<32-1-uint64(uint32(o.C)))
	t.compareRegs(true, resultReg, tmp1)
	t.JumpIf(arm64.Higher, odd)
	t.Load(4, o.Code == OpSteadyS, resultReg, scalarAt(o.A))
	t.Store(true, scalarAt(o.D), resultReg)
}

func (t *translator) predicate(o *Op) {
	if o.Code == OpPredSet {
		t.loadScalar(resultReg, o.A, false)
		t.LowBits(resultReg, resultReg, 1)
		t.RR(arm64.SUB, false, resultReg, arm64.ZR, resultReg)
		t.setPred(o.D, resultReg)
		return
	}
	t.Load(4, false, resultReg, predAt(o.A))
	if operands[o.Code][2] == preds {
		t.Load(4, false, tmp1, predAt(o.B))
	}
	op := func(op arm64.Op, d, n, m reg) { t.RR(op, false, d, n, m) }
	switch o.Code {
	case OpPredNot:
		op(arm64.ORN, resultReg, arm64.ZR, resultReg)
	case OpPredAnd:
		op(arm64.AND, resultReg, resultReg, tmp1)
	case OpPredOr:
		op(arm64.ORR, resultReg, resultReg, tmp1)
	case OpPredXor:
		op(arm64.EOR, resultReg, resultReg, tmp1)
	case OpPredSel: // ((a ^ b) & c) ^ b
		t.Load(4, false, tmp2, predAt(o.C))
		op(arm64.EOR, resultReg, resultReg, tmp1)
		op(arm64.AND, resultReg, resultReg, tmp2)
		op(arm64.EOR, resultReg, resultReg, tmp1)
	}
	t.setPred(o.D, resultReg)
}

// logSize returns the logarithm of the access size: the number of low bits that must be zero in an address.
func (a *accessOp) logSize() int { return bits.TrailingZeros64(a.size) }

// reach computes into r the address of an access that has a scalar address, and logs the access. It leaves accessReg at
// the Access. The code jumps to odd if the address is outside of the Access or misaligned, or if the log is full.
func (t *translator) reach(o *Op, r reg, odd *label) {
	a := &accessOps[o.Code-OpLoad8ULine]
	t.AddI(accessReg, reachReg, int64(o.B))
	t.loadScalar(r, o.A, true)
	t.LoadPair(tmp1, tmp2, mem{Base: accessReg, Disp: originAt}) // and Room after it
	t.RR(arm64.SUB, true, r, r, tmp1)
	t.compareRegs(true, r, tmp2)
	t.JumpIf(arm64.HigherSame, odd)
	if low := a.logSize(); low > 0 || t.told && a.tellsBytes() {
		if t.told && a.tellsBytes() {
			low = 2
		}
		t.TestLowBits(r, low)
		t.JumpIf(arm64.NotEqual, odd)
	}
	t.noteHead(o, r, odd)
	t.loadBase(tmp1)
	t.RR(arm64.ADD, true, r, r, tmp1)
	if a.how == line || a.how == rows {
		t.askAhead(a, r)
	}
}

// loadBase loads the start of the memory of the access.
func (t *translator) loadBase(r reg) {
	t.Load(8, false, r, mem{Base: accessReg, Disp: baseAt})
	t.Load(8, false, r, mem{Base: r})
}

// askAhead prefetches memory as far after r as r is after the place of the last access. The code keeps that place in
// memory; see Access.Last.
func (t *translator) askAhead(a *accessOp, r reg) {
	var near label
	last := mem{Base: accessReg, Disp: lastAt}
	t.Load(8, false, tmp1, last)
	t.JumpZero(true, tmp1, &near)
	t.Store(true, last, r)
	t.RR(arm64.SUB, true, tmp1, r, tmp1)
	t.RR(arm64.ADD, true, tmp1, tmp1, r)
	if a.how == rows { // of 64 bytes each
		t.Prefetch(mem{Base: tmp1})
		t.Load(8, false, tmp2, mem{Base: accessReg, Disp: rowAt})
		t.RR(arm64.ADD, true, tmp1, tmp1, tmp2)
		t.Prefetch(mem{Base: tmp1})
	} else {
		for at := int32(0); at < 32*int32(a.size); at += 64 {
			t.Prefetch(mem{Base: tmp1, Disp: at})
		}
	}
	t.Bind(&near)
}

// byLanes reports whether an access moves some of the lanes of a row of adjacent ones. No single load or store does
// that.
func (t *translator) byLanes(a *accessOp) bool { return t.masked && (a.how == line || a.how == rows) }

// loadLanes loads the lanes of a strip from the address in r and advances r to the next strip.
func (t *translator) loadLanes(o *Op, r reg, _ int32, d vec) {
	a := &accessOps[o.Code-OpLoad8ULine]
	if t.strip == t.strips/2 && (a.how == rows || a.how == spread) {
		t.Load(8, false, tmp1, mem{Base: reachReg, Disp: o.B + rowAt})
		t.RR(arm64.ADD, true, r, r, tmp1)
		if a.how == rows {
			t.AddI(r, r, -16*int64(a.size))
		}
	}
	if a.how == spread {
		t.VLoadAll(false, true, d, r)
		return
	}
	t.VLoadNext(32/t.strips*int(a.size), d, r)
	op := arm64.VUSHLL
	if a.signed {
		op = arm64.VSSHLL
	}
	for w := 8 * int(a.size); w < 32; w *= 2 {
		t.VShiftI(op.W(w), false, d, d, 0)
	}
}

// The registers of operations that are in no group: the place of their lanes, and of the second row of them.
const (
	placeReg  = reg(19)
	place2Reg = reg(20)
	lanesReg  = reg(21) // the lanes still to be moved
	laneReg   = reg(22)
	offReg    = reg(23)
	fromReg   = reg(24) // the place of their offsets
	valuesReg = reg(25) // the place of the values that are moved
)

// moveLanes writes an access that strips do not execute.
func (t *translator) moveLanes(o *Op, a *accessOp) {
	odd := t.stop(o.Imm)
	p := lanePlaces{}
	switch a.how {
	case each, eachLow:
		p.from, p.size = mem{Base: wordsReg, Disp: o.A}, 4
		if a.how == each {
			p.from.Base, p.size = longsReg, 8
		}
		t.checkEach(o, a, p, odd)
	default:
		if a.how == pattern {
			p.from, p.size, p.signed = mem{Base: wordsReg, Disp: o.C}, 4, true
		}
		t.reach(o, placeReg, odd)
	}
	if a.how == rows {
		t.Load(8, false, tmp1, mem{Base: accessReg, Disp: rowAt})
		t.RR(arm64.ADD, true, place2Reg, placeReg, tmp1)
	}
	_, base := a.register()
	data := mem{Base: base, Disp: o.D}
	if a.store || a.ownPlaces() {
		t.noteRest(func() { t.noteLanes(a, p, data) })
	}
	t.move(a, a.store, p, data)
}

// move copies lanes from or to memory.
func (t *translator) move(a *accessOp, store bool, p lanePlaces, data mem) {
	switch side := a.how == line || a.how == rows; {
	case !t.masked && side:
		t.storeSide(a, data)
	case !t.masked && a.size >= 4:
		t.allLanes(a, store, p, data)
	case a.how == rows:
		t.eachRun(a, store, data, placeReg, 0xffff)
		t.AddI(place2Reg, place2Reg, -16*int64(a.size))
		t.eachRun(a, store, data, place2Reg, 0xffff0000)
	case side && a.size >= 4:
		t.eachRun(a, store, data, placeReg, 1<<32-1)
	default:
		t.eachLane(a, store, p, data)
	}
}

// storeSide stores all lanes, to adjacent places.
func (t *translator) storeSide(a *accessOp, data mem) {
	half := 16 * int32(a.size)
	w, _ := a.register()
	n := w / 8 / int(a.size) // number of registers that 16 bytes are made of
	for at := int32(0); at < 2*half; at += 16 {
		for i := range n {
			t.VLoad(true, vec(i), data)
			data.Disp += 16
		}
		for i, to := n/2, 16; i > 0; i, to = i/2, to/2 { // the lower halves of the lanes, which have twice as many bits
			for k := range i {
				t.V3(arm64.VUZP1.W(to), true, vec(k), vec(2*k), vec(2*k+1))
			}
		}
		to := mem{Base: placeReg, Disp: at}
		if a.how == rows && at >= half {
			to = mem{Base: place2Reg, Disp: at - half}
		}
		t.VStore(true, to, 0)
	}
}

// allLanes moves all lanes, of 32 bits or of 64, each at a place of its own.
func (t *translator) allLanes(a *accessOp, store bool, p lanePlaces, data mem) {
	n := 16 / int(a.size) // lanes of a register
	for l := range 32 {
		off := lanesReg + reg(l%4)
		t.Load(p.size, false, off, p.from)
		p.from.Disp += int32(p.size)
		if p.size == 4 {
			t.AddIndex(off, placeReg, off, p.signed)
		} else {
			t.RR(arm64.ADD, true, off, placeReg, off)
		}
		if store { // in order: if several lanes write one place, the last one counts
			t.Load(int(a.size), false, tmp1, data)
			t.increase(a, off)
			t.StoreLow(int(a.size), mem{Base: off}, tmp1)
			data.Disp += int32(a.size)
			continue
		}
		v := vec(l / n % 4)
		if t.VLoadLane(a.size == 8, v, l%n, off); l%n == n-1 {
			t.VStore(true, data, v)
			data.Disp += 16
		}
	}
}

// lanesToMove sets lanesReg to those of some lanes that are in the mask, and valuesReg to the place of the values
// moved. The code jumps to none if no lane is left.
func (t *translator) lanesToMove(lanes uint64, data mem, none *label) {
	t.Set(lanesReg, lanes)
	if t.masked {
		t.RR(arm64.AND, false, lanesReg, lanesReg, maskReg)
		t.JumpZero(false, lanesReg, none)
	}
	t.AddI(valuesReg, data.Base, int64(data.Disp))
}

// eachRun moves those of some adjacent lanes that are in the mask: as many as are in a register, or one by one.
func (t *translator) eachRun(a *accessOp, store bool, data mem, place reg, lanes uint64) {
	var again, single, done label
	n := 16 / int(a.size)
	t.lanesToMove(lanes, data, &done)
	t.AddI(offReg, place, 0)
	from, to := mem{Base: offReg}, mem{Base: valuesReg}
	if store {
		from, to = to, from
	}
	t.Bind(&again)
	t.LowestBit(laneReg, lanesReg)
	t.RR(arm64.LSR, false, lanesReg, lanesReg, laneReg)
	t.RRShift(arm64.ADD, true, offReg, offReg, laneReg, a.logSize())
	t.RRShift(arm64.ADD, true, valuesReg, valuesReg, laneReg, a.logSize())
	t.LowBits(tmp1, lanesReg, n)
	t.CompareI(false, tmp1, 1<<n-1)
	t.JumpIf(arm64.NotEqual, &single)
	t.VLoad(true, 0, from)
	t.VStore(true, to, 0)
	t.AddI(lanesReg, lanesReg, -(1<<n - 1))
	t.JumpNotZero(false, lanesReg, &again)
	t.Jump(&done)
	t.Bind(&single)
	t.Load(int(a.size), false, tmp1, from)
	t.StoreLow(int(a.size), to, tmp1)
	t.AddI(lanesReg, lanesReg, -1)
	t.JumpNotZero(false, lanesReg, &again)
	t.Bind(&done)
}

// increase adds the value in memory at r to tmp1, which the access is about to store there, if the access is an
// Increase.
func (t *translator) increase(a *accessOp, r reg) {
	if a.add {
		t.Load(int(a.size), false, tmp2, mem{Base: r})
		t.RR(arm64.ADD, true, tmp1, tmp1, tmp2)
	}
}

// eachLane moves the lanes of the mask one after the other.
func (t *translator) eachLane(a *accessOp, store bool, p lanePlaces, data mem) {
	var again, done label
	w, _ := a.register()
	t.lanesToMove(1<<32-1, data, &done)
	if p.size != 0 {
		t.AddI(fromReg, p.from.Base, int64(p.from.Disp))
	}
	t.Bind(&again)
	t.LowestBit(laneReg, lanesReg)
	if p.size != 0 {
		t.LoadIndex(p.size, p.signed, offReg, fromReg, laneReg, false, true)
		t.RR(arm64.ADD, true, offReg, placeReg, offReg)
	} else {
		t.RRShift(arm64.ADD, true, offReg, placeReg, laneReg, a.logSize())
	}
	if store {
		t.LoadIndex(w/8, false, tmp1, valuesReg, laneReg, false, true)
		t.increase(a, offReg)
		t.StoreLow(int(a.size), mem{Base: offReg}, tmp1)
	} else {
		t.Load(int(a.size), a.signed, tmp1, mem{Base: offReg})
		t.StoreIndex(w/8, tmp1, valuesReg, laneReg, false, true)
	}
	t.AddI(tmp1, lanesReg, -1)
	t.RR(arm64.ANDS, false, lanesReg, lanesReg, tmp1) // without the lowest
	t.JumpIf(arm64.NotEqual, &again)
	t.Bind(&done)
}

// checkEach sets placeReg to the base of the lanes' addresses and logs the access. The code jumps to odd if the address
// of a lane, less Origin, is not below Room or is not a multiple of the size.
func (t *translator) checkEach(o *Op, a *accessOp, p lanePlaces, odd *label) {
	const origin, room, good, low, x, y, lanes = 0, 1, 2, 3, 4, 5, 6
	t.AddI(accessReg, reachReg, int64(o.B))
	t.LoadPair(placeReg, tmp2, mem{Base: accessReg, Disp: originAt}) // and Room after it
	t.VFill(true, true, origin, placeReg)
	t.VFill(true, true, room, tmp2)
	t.V3(arm64.VCMEQ, true, good, good, good)
	t.V3(arm64.VEOR, true, low, low, low)
	t.strips = 16
	for t.strip = range t.strips {
		t.addresses(x, p)
		p.from.Disp += 2 * int32(p.size)
		t.V3(arm64.VSUB.W(64), true, x, x, origin)
		t.V3(arm64.VCMHI.W(64), true, y, room, x)
		if t.masked {
			t.VLoad(true, lanes, t.lanesAt(regsReg, lanes64At, 64))
			t.V3(arm64.VAND, true, x, x, lanes)
			t.V3(arm64.VORN, true, y, y, lanes)
		}
		t.V3(arm64.VORR, true, low, low, x)
		t.V3(arm64.VAND, true, good, good, y)
	}
	t.V2(arm64.VUMINV, true, good, good)
	t.VLane(false, tmp1, good, 0)
	t.JumpZero(false, tmp1, odd)
	if a.size > 1 {
		t.VLane(true, tmp1, low, 0)
		t.VLane(true, tmp2, low, 1)
		t.RR(arm64.ORR, true, tmp1, tmp1, tmp2)
		t.TestLowBits(tmp1, a.logSize())
		t.JumpIf(arm64.NotEqual, odd)
	}
	t.noteHead(o, arm64.ZR, odd)
	t.loadBase(tmp1)
	t.RR(arm64.SUB, true, placeReg, tmp1, placeReg)
}

// addresses loads the addresses of two lanes.
func (t *translator) addresses(d vec, p lanePlaces) {
	t.VLoad(p.size == 8, d, p.from)
	if p.size == 4 {
		t.extend(false, d, d)
	}
}

// The code logs accesses as Regs.tell does.

// noteHead logs the access at the place r (less Origin), if it is to be logged. The code jumps to full if the Log has
// no room.
func (t *translator) noteHead(o *Op, r reg, full *label) {
	if !t.told {
		return
	}
	var quiet label
	t.Load(8, false, tmp1, mem{Base: accessReg, Disp: toldAt})
	t.JumpZero(true, tmp1, &quiet)
	t.Load(8, false, tmp1, mem{Base: logReg})
	t.CompareI(true, tmp1, uint32(len(Log{}.List)))
	t.JumpIf(arm64.Equal, full)
	t.AddI(tmp2, tmp1, 1)
	t.Store(true, mem{Base: logReg}, tmp2)
	t.RRShift(arm64.ADD, true, tmp2, logReg, tmp1, 4) // headSize
	t.Store(true, mem{Base: tmp2, Disp: headsAt}, r)
	t.Set(tmp1, o.Imm)
	t.Store(true, mem{Base: tmp2, Disp: headsAt + headImm}, tmp1)
	t.Bind(&quiet)
}

// noteRest writes f, with tmp2 at the Told of the last logged access, for the case that this access is logged.
func (t *translator) noteRest(f func()) {
	if !t.told {
		return
	}
	var quiet label
	t.Load(8, false, tmp1, mem{Base: accessReg, Disp: toldAt})
	t.JumpZero(true, tmp1, &quiet)
	t.Load(8, false, tmp1, mem{Base: logReg})
	t.Set(tmp2, uint64(toldSize))
	t.MulAdd(tmp2, tmp1, tmp2, logReg)
	t.AddI(tmp2, tmp2, int64(listAt-toldSize))
	f()
	t.Bind(&quiet)
}

// noteLanes writes to the Told at tmp2 the offsets of lanes, the values stored, and the old values.
func (t *translator) noteLanes(a *accessOp, p lanePlaces, data mem) {
	if a.ownPlaces() {
		t.AddI(tmp1, accessReg, originAt)
		t.VLoadAll(true, true, 1, tmp1)
		for l := int32(0); l < 32; l += 2 {
			q := p
			q.from.Disp += l * int32(p.size)
			t.addresses(0, q)
			t.V3(arm64.VSUB.W(64), true, 0, 0, 1)
			t.VStore(true, mem{Base: tmp2, Disp: offsetsAt + 8*l}, 0)
		}
	}
	if !a.store {
		return
	}
	values, before, n := values32At, before32At, int32(128)
	if a.size == 8 {
		values, before, n = valuesAt, beforeAt, 256
	}
	t.copyBytes(mem{Base: tmp2, Disp: values}, data, n)
	to := mem{Base: tmp2, Disp: before}
	switch half := 16 * int32(a.size); {
	case a.how == rows:
		t.copyBytes(to, mem{Base: placeReg}, half)
		t.copyBytes(mem{Base: tmp2, Disp: before + half}, mem{Base: place2Reg}, half)
	case a.how == line:
		t.copyBytes(to, mem{Base: placeReg}, 2*half)
	case a.tellsBefore():
		t.move(a, false, p, to)
	}
}

// copyBytes copies n bytes, a multiple of 16.
func (t *translator) copyBytes(to, from mem, n int32) {
	for at := int32(0); at < n; at += 16 {
		v := vec(at / 16 % 4)
		t.VLoad(true, v, mem{Base: from.Base, Disp: from.Disp + at})
		t.VStore(true, mem{Base: to.Base, Disp: to.Disp + at}, v)
	}
}
