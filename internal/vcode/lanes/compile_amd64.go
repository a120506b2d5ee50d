package lanes

import "fencepost.dev/fencepost/internal/codegen/amd64"

type (
	asm   = amd64.Asm
	label = amd64.Label
	mem   = amd64.Mem
	reg   = amd64.Reg
	vec   = amd64.Vec
	vop   = amd64.VOp
)

// The vector registers, all of which are allocated to operations.
const (
	vectorBytes = 32
	vectorRegs  = 16
	allocated   = vectorRegs
)

const mergesLoads = true // see leader

const farthest = 1 << 30 // see lists: the greatest distance of a jump

// tooLong reports that a jump is out of range.
func (t *translator) tooLong() bool { return false }

// The registers. enter sets most of them. R10 is the Regs, DX the mask. CX, R12 and R15 are free in all code.
const (
	wordsReg   = amd64.DI  // vectors of 32 bits
	longsReg   = amd64.R11 // of 64
	predsReg   = amd64.R14
	scalarsReg = amd64.R13
	dataReg    = amd64.AX  // the constants, in strips
	resultReg  = amd64.AX  // the result of an operation on scalars
	stopReg    = amd64.R15 // see writeStops
)

// groupRegs hold addresses and results of comparisons of a group.
var groupRegs = []reg{amd64.R8, amd64.R9, amd64.BX, amd64.SI}

// begin writes an instruction, so that no list begins at 0.
func (t *translator) begin() { t.Prefetch(amd64.Mem{Base: amd64.AX}) }

// leave returns to Go code at the end of a list.
func (t *translator) leave(imm uint64) {
	t.Set(amd64.AX, imm)
	t.back(0)
}

// back returns from enter. AX says where the list ended.
func (t *translator) back(left int32) {
	t.Store(true, amd64.Mem{Base: amd64.SP, Disp: endAt}, amd64.AX)
	t.StoreI(true, amd64.Mem{Base: amd64.SP, Disp: leftAt}, left)
	t.VZeroUpper()
	t.Return()
}

func (t *translator) ifScalar(o *Op, yes, no *label) {
	t.TestI(scalarAt(o.A), 1)
	t.JumpIf(amd64.Equal, no)
	t.Jump(yes)
}

func (t *translator) ifPred(o *Op, all, none *label) {
	t.Load(4, false, amd64.AX, predAt(o.A))
	t.RR(amd64.AND, false, amd64.AX, amd64.DX)
	t.JumpIf(amd64.Equal, none)
	t.RR(amd64.CMP, false, amd64.AX, amd64.DX)
	t.JumpIf(amd64.NotEqual, t.stop(o.Imm))
	t.Jump(all)
}

// jumpOn writes an OpGoto to a label, or to nowhere; see Regs.jump.
func (t *translator) jumpOn(o *Op, to *label) {
	regs := func(at int32) amd64.Mem { return amd64.Mem{Base: amd64.R10, Disp: at} }
	if o.D != 0 {
		t.MI(amd64.ADD, true, regs(marksAt), o.D)
	}
	if to == nil {
		t.MI(amd64.ADD, true, regs(stepsAt), o.C)
		t.leave(o.Imm)
		return
	}
	t.Load(8, false, amd64.AX, regs(stepsAt))
	t.RI(amd64.ADD, true, amd64.AX, o.C)
	t.Store(true, regs(stepsAt), amd64.AX)
	t.RI(amd64.ADD, true, amd64.AX, o.A)
	t.RM(amd64.CMP, true, amd64.AX, regs(limitAt))
	t.JumpIf(amd64.GreaterEqual, t.stop(o.Imm))
	t.Jump(to)
}

// loadReach sets R12 to the accesses.
func (t *translator) loadReach() {
	t.Load(8, false, amd64.R12, amd64.Mem{Base: amd64.R10, Disp: reachAt})
}

// ifStop jumps if the group ends at stop i.
func (t *translator) ifStop(i int, to *label) {
	t.RI(amd64.CMP, false, stopReg, int32(i))
	t.JumpIf(amd64.Equal, to)
}

// beginStrips sets AX to the constants.
func (t *translator) beginStrips() {
	t.Address(amd64.AX, &t.data)
	if t.down {
		t.round(true)
	}
}

// round sets the rounding mode: down, or to nearest as in Go.
func (t *translator) round(down bool) {
	mode := uint64(0x1f80) // of MXCSR
	if down {
		mode = 0x3f80
	}
	t.VRounding(amd64.Mem{Base: amd64.AX, Disp: t.number(32, mode)})
}

// loop writes the loop over the strips, with R12 as the offset of the lanes of 32 bits.
func (t *translator) loop(strip func()) {
	t.RR(amd64.XOR, false, amd64.R12, amd64.R12)
	for k := range t.n {
		if t.compares(k) {
			t.RR(amd64.XOR, false, t.uses[k], t.uses[k])
		}
	}
	var again label
	t.Bind(&again)
	strip()
	t.RI(amd64.ADD, false, amd64.R12, int32(128/t.strips))
	t.RI(amd64.CMP, false, amd64.R12, 128)
	t.JumpIf(amd64.NotEqual, &again)
}

// setCompared writes the result of a comparison, which is in r.
func (t *translator) setCompared(o *Op, r amd64.Reg) {
	if negated[o.Code] {
		t.Not(false, r)
	}
	t.setPred(o.D, r)
}

// setPred writes a register to a predicate, only in the lanes of the mask.
func (t *translator) setPred(off int32, r amd64.Reg) {
	if t.masked {
		t.RR(amd64.AND, false, r, amd64.DX)
		t.AndNot(amd64.CX, amd64.DX, predAt(off))
		t.RR(amd64.OR, false, r, amd64.CX)
	}
	t.Store(false, predAt(off), r)
}

// compared adds the lanes of a strip, each all ones or all zeros, to the result of the current comparison.
func (t *translator) compared(w int, lanes amd64.Vec) {
	to, n := t.uses[t.at], byte(32/t.strips)
	switch {
	case t.strip == 0:
		t.VSigns(w == 64, to, lanes)
	case t.strip == anyStrip:
		t.VSigns(w == 64, amd64.CX, lanes)
		t.ShiftI(amd64.SHR, false, to, n)
		t.ShiftI(amd64.SHL, false, amd64.CX, 32-n)
		t.RR(amd64.OR, false, to, amd64.CX)
	default:
		t.VSigns(w == 64, amd64.CX, lanes)
		t.ShiftI(amd64.SHL, false, amd64.CX, n*byte(t.strip))
		t.RR(amd64.OR, false, to, amd64.CX)
	}
}

// lanesAt returns the place of the strip's lanes of w bits in the data that begins disp bytes after base.
func (t *translator) lanesAt(base amd64.Reg, disp int32, w int) amd64.Mem {
	if t.strip == anyStrip {
		return amd64.Mem{Base: base, Index: amd64.R12, Scale: byte(w / 32), Disp: disp}
	}
	return amd64.Mem{Base: base, Disp: disp + int32(t.strip*32/t.strips*w/8)}
}

// maskAt returns the place of the mask of the strip's lanes.
func (t *translator) maskAt(w int) amd64.Mem {
	if w == 64 {
		return t.lanesAt(amd64.R10, lanes64At, 64)
	}
	return t.lanesAt(amd64.R10, lanes32At, 32)
}

// writeBack writes a register to the place of a vector.
func (t *translator) writeBack(v value, r amd64.Vec) {
	w := vectorWidth(v.kind)
	if t.masked {
		// A store of the lanes alone would stall the next operation, which loads the stored bytes.
		in, old := t.takeFree(), t.takeFree()
		t.V2M(amd64.VMOVDQU, t.all(w), in, t.maskAt(w))
		t.V2M(amd64.VMOVDQU, t.all(w), old, t.vectorAt(v))
		t.VBlend(t.all(w), old, old, r, in)
		t.VStore(t.all(w), t.vectorAt(v), old)
		return
	}
	t.VStore(t.all(w), t.vectorAt(v), r)
}

// fetch loads a value into a register.
func (t *translator) fetch(v value, r amd64.Vec) {
	w := vectorWidth(v.kind)
	all := t.all(w)
	switch v.kind {
	case vector32, vector64:
		t.V2M(amd64.VMOVDQU, all, r, t.vectorAt(v))
	case spread32:
		t.V2M(amd64.VPBROADCASTD, all, r, scalarAt(int32(v.at)))
	case spread64:
		t.V2M(amd64.VPBROADCASTQ, all, r, scalarAt(int32(v.at)))
	case shiftCount:
		t.VLoadLow(false, r, scalarAt(int32(v.at)))
	case const32, const64:
		t.V2M(broadcast(w), all, r, amd64.Mem{Base: amd64.AX, Disp: t.number(w, v.at)})
	case lanes32, lanes64:
		bits := t.table(w, func(l uint64) uint64 { return 1 << l })
		t.V2M(amd64.VPBROADCASTD, all, r, predAt(int32(v.at)))
		t.V3M(amd64.VPAND, all, r, r, t.lanesAt(amd64.AX, bits, w))
		t.V3M(equal(w), all, r, r, t.lanesAt(amd64.AX, bits, w))
	}
}

// number is constant for one number.
func (t *translator) number(w int, v uint64) int32 {
	b := make([]byte, w/8)
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return t.constant(b)
}
