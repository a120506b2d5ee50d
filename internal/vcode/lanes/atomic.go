package lanes

import "unsafe"

// RMW is a read-modify-write of memory (PTX ISA, "atom"): the value that it writes, in terms of the old value and the
// operands b and c.
type RMW uint32

// The read-modify-writes.
const (
	NoRMW   RMW = iota
	RMWAdd      // old + b
	RMWAnd      // old & b
	RMWOr       // old | b
	RMWXor      // old ^ b
	RMWExch     // b
	RMWCas      // c if old = b, old otherwise
	RMWMinS
	RMWMinU
	RMWMaxS
	RMWMaxU
	RMWFAdd // f32 or f64
	RMWInc  // 0 if old >= b, old + 1 otherwise; 32 bits only
	RMWDec  // b if old = 0 or old > b, old - 1 otherwise; 32 bits only
)

// Atomic32 performs a read-modify-write of the four bytes at mem[off] in each lane, the lowest lane first, and sets d
// to the old values. It reports whether a lane changed memory. D may be b or c. C is used by RMWCas only. The caller
// has checked the bounds, as for all accesses of this package.
func Atomic32(op RMW, d *V32, mem []byte, off *V64, b, c *V32, mask uint32) (changed bool) {
	return op.do32(d, unsafe.Pointer(unsafe.SliceData(mem)), off, b, c, mask)
}

// Atomic64 is Atomic32 of eight bytes.
func Atomic64(op RMW, d *V64, mem []byte, off *V64, b, c *V64, mask uint32) (changed bool) {
	return op.do64(d, unsafe.Pointer(unsafe.SliceData(mem)), off, b, c, mask)
}

// Leaves32 computes the values that the read-modify-writes leave in memory, zero-extended. D, old, b and c are
// different vectors.
func (op RMW) Leaves32(d *V64, old, b, c *V32, mask uint32) {
	var now V32
	switch op {
	case RMWAdd:
		Add32(&now, old, b, mask)
	case RMWAnd:
		And32(&now, old, b, mask)
	case RMWOr:
		Or32(&now, old, b, mask)
	case RMWXor:
		Xor32(&now, old, b, mask)
	case RMWMinS:
		MinS32(&now, old, b, mask)
	case RMWMinU:
		MinU32(&now, old, b, mask)
	case RMWMaxS:
		MaxS32(&now, old, b, mask)
	case RMWMaxU:
		MaxU32(&now, old, b, mask)
	case RMWFAdd:
		FAdd32(&now, old, b, mask)
	case RMWCas:
		Sel32(&now, c, old, EQ32(old, b, mask), mask)
	case RMWExch:
		now = *b
	case RMWInc, RMWDec:
		for m := mask; m != 0; m &= m - 1 {
			if l := first(m); op == RMWInc {
				now[l] = inc(old[l], b[l])
			} else {
				now[l] = dec(old[l], b[l])
			}
		}
	default:
		panic("BUG: an unknown read-modify-write of 32 bits")
	}
	ZExt64(d, &now, mask)
}

// Leaves64 is Leaves32 of eight bytes.
func (op RMW) Leaves64(d, old, b, c *V64, mask uint32) {
	switch op {
	case RMWAdd:
		Add64(d, old, b, mask)
	case RMWAnd:
		And64(d, old, b, mask)
	case RMWOr:
		Or64(d, old, b, mask)
	case RMWXor:
		Xor64(d, old, b, mask)
	case RMWMinS:
		MinS64(d, old, b, mask)
	case RMWMinU:
		MinU64(d, old, b, mask)
	case RMWMaxS:
		MaxS64(d, old, b, mask)
	case RMWMaxU:
		MaxU64(d, old, b, mask)
	case RMWFAdd:
		FAdd64(d, old, b, mask)
	case RMWCas:
		Sel64(d, c, old, EQ64(old, b, mask), mask)
	case RMWExch:
		Copy64(d, b, mask)
	default:
		panic("BUG: an unknown read-modify-write of 64 bits")
	}
}

func inc(old, b uint32) uint32 {
	if old >= b {
		return 0
	}
	return old + 1
}

func dec(old, b uint32) uint32 {
	if old == 0 || old > b {
		return b
	}
	return old - 1
}
