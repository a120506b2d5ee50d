package lanes

import "fencepost.dev/fencepost/internal/codegen/arm64"

type (
	asm   = arm64.Asm
	label = arm64.Label
	mem   = arm64.Mem
	reg   = arm64.Reg
	vec   = arm64.Vec
	vop   = arm64.VOp
)

// The vector registers. Those after the allocated ones collect results of comparisons, one for each of groupRegs.
const (
	vectorBytes = 16
	vectorRegs  = 32
	allocated   = 26
)

// mergesLoads is false because address registers advance from strip to strip, so that loads cannot share them.
const mergesLoads = false

func (t *translator) reachAll(*Op, reg, span, *label) { panic("BUG: loads that are checked together") }

const farthest = 64 << 10 // see lists: conditional jumps reach a megabyte, and the code of a group and of its parts may be long

// tooLong reports that a jump is out of range.
func (t *translator) tooLong() bool { return t.Far }

// The registers. enter sets the first of them, R0 to R7. R18 belongs to the system, R28 to Go.
const (
	regsReg    = reg(0) // the Regs
	wordsReg   = reg(1) // vectors of 32 bits
	longsReg   = reg(2) // of 64
	predsReg   = reg(3)
	scalarsReg = reg(4)
	reachReg   = reg(5)
	logReg     = reg(6)
	maskReg    = reg(7)
	dataReg    = reg(8) // the constants
	resultReg  = reg(9) // the result of an operation on scalars
	tmp1       = reg(10)
	tmp2       = reg(11)
	accessReg  = reg(12) // the current Access
	stopReg    = reg(13) // see writeStops
	wordsStrip = reg(14) // in a loop over strips: the counterpart of wordsReg for the current strip
	longsStrip = reg(15)
	indexReg   = reg(16) // the offset of the strip's lanes of 32 bits
)

// groupRegs hold addresses of a group. The registers from placeReg on are free in operations that are in no group.
var groupRegs = []reg{19, 20, 21, 22, 23, 24}

// collected returns the vector register of the lanes of a comparison.
func collected(r reg) vec { return allocated + vec(r-groupRegs[0]) }

// begin writes an instruction, so that no list begins at 0.
func (t *translator) begin() { t.Return() }

// leave returns to Go code at the end of a list.
func (t *translator) leave(imm uint64) {
	t.Set(resultReg, imm)
	t.back(0)
}

// back returns from enter. resultReg says where the list ended.
func (t *translator) back(left int32) {
	t.Store(true, mem{Base: arm64.SP, Disp: endAt}, resultReg)
	t.Set(tmp1, uint64(left))
	t.Store(true, mem{Base: arm64.SP, Disp: leftAt}, tmp1)
	t.Return()
}

func (t *translator) ifScalar(o *Op, yes, no *label) {
	var odd label
	t.loadScalar(resultReg, o.A, false)
	t.JumpBit(resultReg, 0, &odd)
	t.Jump(no)
	t.Bind(&odd)
	t.Jump(yes)
}

func (t *translator) ifPred(o *Op, all, none *label) {
	var some label
	t.Load(4, false, resultReg, predAt(o.A))
	t.RR(arm64.ANDS, false, resultReg, resultReg, maskReg)
	t.JumpIf(arm64.NotEqual, &some)
	t.Jump(none)
	t.Bind(&some)
	t.compareRegs(false, resultReg, maskReg)
	t.JumpIf(arm64.NotEqual, t.stop(o.Imm))
	t.Jump(all)
}

func (t *translator) compareRegs(wide bool, a, b reg) { t.RR(arm64.SUBS, wide, arm64.ZR, a, b) }

// jumpOn writes an OpGoto to a label, or to nowhere; see Regs.jump.
func (t *translator) jumpOn(o *Op, to *label) {
	add := func(at, n int32) {
		t.Load(8, false, resultReg, mem{Base: regsReg, Disp: at})
		t.AddI(resultReg, resultReg, int64(n))
		t.Store(true, mem{Base: regsReg, Disp: at}, resultReg)
	}
	if o.D != 0 {
		add(marksAt, o.D)
	}
	add(stepsAt, o.C)
	if to == nil {
		t.leave(o.Imm)
		return
	}
	t.AddI(resultReg, resultReg, int64(o.A))
	t.Load(8, false, tmp1, mem{Base: regsReg, Disp: limitAt})
	t.compareRegs(true, resultReg, tmp1)
	t.JumpIf(arm64.GreaterEqual, t.stop(o.Imm))
	t.Jump(to)
}

// loadReach does nothing: reachReg already points to the accesses.
func (t *translator) loadReach() {}

// ifStop jumps if the group ends at stop i.
func (t *translator) ifStop(i int, to *label) {
	t.CompareI(false, stopReg, uint32(i))
	t.JumpIf(arm64.Equal, to)
}

// beginStrips sets dataReg to the constants.
func (t *translator) beginStrips() {
	t.Address(dataReg, &t.data)
	if t.down {
		t.round(true)
	}
}

// round sets the rounding mode: down, or to nearest as in Go.
func (t *translator) round(down bool) {
	mode := arm64.ZR
	if down {
		mode = tmp1
		t.Set(mode, 2<<22)
	}
	t.SetFPCR(mode)
}

// loop writes the loop over the strips.
func (t *translator) loop(strip func()) {
	t.Set(indexReg, 0)
	for k := range t.n {
		if c := collected(t.uses[k]); t.compares(k) {
			t.V3(arm64.VEOR, true, c, c, c)
		}
	}
	var again label
	t.Bind(&again)
	t.RR(arm64.ADD, true, wordsStrip, wordsReg, indexReg)
	t.RRShift(arm64.ADD, true, longsStrip, longsReg, indexReg, 1)
	strip()
	t.AddI(indexReg, indexReg, int64(128/t.strips))
	t.CompareI(false, indexReg, 128)
	t.JumpIf(arm64.NotEqual, &again)
}

// compared adds the lanes of a strip, each all ones or all zeros, to the result of the current comparison. It keeps in
// each lane the bit of the lane; setCompared adds up the bits.
func (t *translator) compared(w int, lanes vec) {
	own, to := t.laneBits(w), collected(t.uses[t.at])
	if t.strip == 0 {
		t.V3(arm64.VAND, t.all(w), to, lanes, own)
		return
	}
	t.V3(arm64.VAND, t.all(w), lanes, lanes, own)
	t.V3(arm64.VORR, t.all(w), to, to, lanes)
}

// laneBits returns a register that has in each lane the bit of the lane.
func (t *translator) laneBits(w int) vec {
	if w == 64 {
		return t.have(value{kind: bits64Of})
	}
	return t.have(value{kind: bits32Of})
}

// setCompared writes the result of a comparison.
func (t *translator) setCompared(o *Op, r reg) {
	c := collected(r)
	t.V2(arm64.VADDV, true, c, c)
	t.VLane(false, resultReg, c, 0)
	if negated[o.Code] {
		t.RR(arm64.ORN, false, resultReg, arm64.ZR, resultReg)
	}
	t.setPred(o.D, resultReg)
}

// setPred writes a register to a predicate, only in the lanes of the mask.
func (t *translator) setPred(off int32, r reg) {
	if t.masked {
		t.Load(4, false, tmp1, predAt(off))
		t.RR(arm64.AND, false, r, r, maskReg)
		t.RR(arm64.BIC, false, tmp1, tmp1, maskReg)
		t.RR(arm64.ORR, false, r, r, tmp1)
	}
	t.Store(false, predAt(off), r)
}

// lanesAt returns the place of the strip's lanes of w bits in the data that begins disp bytes after base. The caller
// must use it at once: it may be in arm64.Scratch.
func (t *translator) lanesAt(base reg, disp int32, w int) mem {
	switch {
	case t.strip != anyStrip:
		disp += int32(t.strip * 32 / t.strips * w / 8)
	case base == wordsReg:
		base = wordsStrip
	case base == longsReg:
		base = longsStrip
	default:
		t.RRShift(arm64.ADD, true, arm64.Scratch, base, indexReg, w/64)
		base = arm64.Scratch
	}
	return mem{Base: base, Disp: disp}
}

// writeBack writes a register to the place of a vector, only in the lanes of the mask.
func (t *translator) writeBack(v value, r vec) {
	w := vectorWidth(v.kind)
	if t.masked {
		in, old := t.takeFree(), t.takeFree()
		at := int32(lanes32At)
		if w == 64 {
			at = lanes64At
		}
		t.VLoad(t.all(w), in, t.lanesAt(regsReg, at, w))
		t.VLoad(t.all(w), old, t.vectorAt(v))
		t.V3(arm64.VBIT, t.all(w), old, r, in)
		r = old
	}
	t.VStore(t.all(w), t.vectorAt(v), r)
}

// fetch loads a value into a register.
func (t *translator) fetch(v value, r vec) {
	w := vectorWidth(v.kind)
	all := t.all(w)
	everywhere := func(wide, all bool, from mem) {
		t.AddI(arm64.Scratch, from.Base, int64(from.Disp))
		t.VLoadAll(wide, all, r, arm64.Scratch)
	}
	switch v.kind {
	case vector32, vector64:
		t.VLoad(all, r, t.vectorAt(v))
	case spread32, spread64:
		everywhere(w == 64, all, scalarAt(int32(v.at)))
	case shiftCount: // shifts use the lowest byte of a lane, of either width
		everywhere(false, true, scalarAt(int32(v.at)))
		t.V3(arm64.VUMIN.W(32), true, r, r, t.num(32, 64))
	case const32, const64:
		t.VLoad(true, r, t.whole(w, v.at))
	case bits32Of, bits64Of:
		t.VLoad(all, r, t.lanesAt(dataReg, t.table(w, func(l uint64) uint64 { return 1 << l }), w))
	case lanes32, lanes64:
		everywhere(false, true, predAt(int32(v.at)))
		t.V3(arm64.VCMTST.W(w), all, r, r, t.laneBits(w))
	}
}
