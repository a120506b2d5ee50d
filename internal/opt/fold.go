package opt

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/isa"
)

// Fold evaluates operations on constants.
func Fold(f *Func) bool {
	changed := false
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			switch {
			case in.Op == Special:
				if x, ok := f.Env.special(isa.SpecialID(in.Imm)); ok {
					in.toConst(x)
					changed = true
				}
			case in.Op == Row:
				changed = f.foldRow(in) || changed
			case in.Op == And && in.Aux == aligned:
			case in.Op > Copy && in.Op < Row:
				if x, ok := f.foldNative(in); ok {
					in.toConst(x & f.Width(in.Result()).Mask())
					changed = true
				}
			}
		}
	}
	return changed
}

func (in *Instr) toConst(x uint64) {
	in.Op, in.Imm, in.Args, in.Inst, in.Aux = Const, x, nil, nil, 0
}

// special returns a special register that the shape of the launch fixes.
func (e *Env) special(id isa.SpecialID) (uint64, bool) {
	switch id {
	case isa.NtidX, isa.NtidY, isa.NtidZ:
		return uint64(e.Block[id-isa.NtidX]), true
	case isa.NctaidX, isa.NctaidY, isa.NctaidZ:
		n := e.Grid[id-isa.NctaidX]
		return uint64(n), n != 0
	case isa.TidX, isa.TidY, isa.TidZ:
		return 0, e.Block[id-isa.TidX] == 1
	case isa.CtaidX, isa.CtaidY, isa.CtaidZ:
		return 0, e.Grid[id-isa.CtaidX] == 1
	}
	return 0, false
}

func (f *Func) foldRow(in *Instr) bool {
	if in.Inst.Eval == nil || len(in.Dst) != 1 || in.Dst[0] == NoValue {
		return false
	}
	var a isa.Args
	for i, v := range in.Args {
		if v == NoValue {
			continue
		}
		c, ok := f.ConstOf(v)
		if !ok {
			return false
		}
		a.S[i] = c
	}
	in.Inst.Eval(in.Inst, &a)
	in.toConst(a.D[0])
	return true
}

func (f *Func) foldNative(in *Instr) (uint64, bool) {
	var c [3]uint64
	for i, v := range in.Args {
		x, ok := f.ConstOf(v)
		if !ok {
			return 0, false
		}
		c[i] = x
	}
	return evalNative(in.Op, in.Imm, in.Aux, f.Width(in.Result()).Bits(), c[0], c[1], c[2]), true
}

// evalNative computes a native operation whose result has w bits. The caller clears the bits above w. imm and aux are
// the instruction's Imm and Aux.
func evalNative(op Op, imm uint64, aux uint8, w int, a, b, c uint64) uint64 {
	switch op {
	case Add:
		return a + b
	case Sub:
		return a - b
	case Mul:
		return a * b
	case And:
		return a & b
	case Or:
		return a | b
	case Xor:
		return a ^ b
	case Not:
		return ^a
	case Shl: // for w and more, the remaining bits of a are above w bits
		return a << b
	case ShrU:
		return a >> b
	case ShrS:
		return uint64(signed(a, w) >> min(b, uint64(w-1)))
	case MulU:
		return uint64(uint32(a)) * uint64(uint32(b))
	case MulS:
		return uint64(int64(int32(a)) * int64(int32(b)))
	case SExt:
		return uint64(signed(a, int(imm)))
	case ZExt:
		return a & (^uint64(0) >> (64 - imm))
	case Cmp:
		if compare(Cond(imm), int(aux), a, b) {
			return 1
		}
		return 0
	case Sel:
		if a&1 != 0 {
			return b
		}
		return c
	}
	panic("BUG: not a native operation: " + op.String())
}

// signed reads the low w bits of x as a signed number.
func signed(x uint64, w int) int64 {
	return int64(x<<(64-w)) >> (64 - w)
}

func compare(c Cond, w int, a, b uint64) bool {
	sa, sb := signed(a, w), signed(b, w)
	switch c {
	case EQ:
		return a == b
	case NE:
		return a != b
	case LTS:
		return sa < sb
	case LES:
		return sa <= sb
	case GTS:
		return sa > sb
	case GES:
		return sa >= sb
	case LTU:
		return a < b
	case LEU:
		return a <= b
	case GTU:
		return a > b
	}
	return a >= b
}

// log2 returns k for 2^k.
func log2(x uint64) (uint64, bool) {
	return uint64(bits.TrailingZeros64(x)), x != 0 && x&(x-1) == 0
}
