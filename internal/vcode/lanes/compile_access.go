//go:build amd64 || arm64

package lanes

import "unsafe"

// isScalar reports whether an operation is executed before the strips of its group.
func (t *translator) isScalar(c Code) bool {
	return c >= OpScalarSet && c <= OpScalarGEU64 || c == OpSteadyS || c == OpSteadyU || t.isScalarLoad(c)
}

func (t *translator) isAccess(c Code) bool { return c >= OpLoad8ULine && c < OpSteadyS }

func (t *translator) isScalarLoad(c Code) bool {
	return t.isAccess(c) && accessOps[c-OpLoad8ULine].how == same
}

// isLoad reports whether an operation is a load that strips execute.
func (t *translator) isLoad(c Code) bool {
	if !t.isAccess(c) {
		return false
	}
	a := &accessOps[c-OpLoad8ULine]
	return !a.store && (a.how == line || a.how == rows || a.how == spread) && !t.byLanes(a)
}

// isSingle reports whether single writes the code of an operation.
func (t *translator) isSingle(c Code) bool {
	return c >= OpPredCopy && c <= OpPredSet || t.isAccess(c) && !t.isScalarLoad(c) && !t.isLoad(c)
}

// ownPlaces reports whether each lane has an address of its own.
func (a *accessOp) ownPlaces() bool { return a.how == each || a.how == eachLow }

// unrolls reports whether the code of a load is written for each strip. That is so if the place of its lanes is not
// proportional to that of their registers.
func (a *accessOp) unrolls() bool { return a.size < 4 || a.how != line }

// scalar writes an operation on scalars. The code jumps to odd() if it cannot execute the operation.
func (t *translator) scalar(o *Op, odd func() *label) {
	switch c := o.Code; {
	case c == OpSteadyS || c == OpSteadyU:
		t.steady(o, odd())
		return
	case c >= OpLoad8ULine:
		a := &accessOps[c-OpLoad8ULine]
		t.reach(o, resultReg, odd())
		t.Load(int(a.size), a.signed, resultReg, mem{Base: resultReg})
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
	t.Store(true, scalarAt(o.D), resultReg)
}

func (t *translator) loadScalar(r reg, off int32, wide bool) {
	size := 4
	if wide {
		size = 8
	}
	t.Load(size, false, r, scalarAt(off))
}

func scalarAt(off int32) mem { return mem{Base: scalarsReg, Disp: off} }
func predAt(off int32) mem   { return mem{Base: predsReg, Disp: off} }

// single writes the code of an operation that is in no group. It returns false if there is no code for it.
func (t *translator) single(i int) bool {
	o := &t.ops[i]
	switch {
	case !t.isSingle(o.Code):
		return false
	case o.Code <= OpPredSet:
		t.predicate(o)
	default:
		t.moveLanes(o, &accessOps[o.Code-OpLoad8ULine])
	}
	return true
}

// register returns the width in bits of a lane of the vector that an access moves, and the base register of the
// vector's offset.
func (a *accessOp) register() (w int, base reg) {
	if a.size == 8 {
		return 64, longsReg
	}
	return 32, wordsReg
}

// lanePlaces says where the lanes of an access are, relative to a register.
type lanePlaces struct {
	from   mem // the offset of lane 0
	size   int // bytes of an offset; 0 if the lanes are adjacent
	signed bool
}

// The offsets of the fields of Log and Told that the code writes. See Regs.tell.
const (
	headsAt  = int32(unsafe.Offsetof(Log{}.Heads))
	headImm  = int32(unsafe.Offsetof(Head{}.Imm))
	headSize = unsafe.Sizeof(Head{})
	listAt   = int32(unsafe.Offsetof(Log{}.List))
	toldSize = int32(unsafe.Sizeof(Told{}))

	offsetsAt  = int32(unsafe.Offsetof(Told{}.Offsets))
	valuesAt   = int32(unsafe.Offsetof(Told{}.Values))
	values32At = int32(unsafe.Offsetof(Told{}.Values32))
	beforeAt   = int32(unsafe.Offsetof(Told{}.Before))
	before32At = int32(unsafe.Offsetof(Told{}.Before32))
)
