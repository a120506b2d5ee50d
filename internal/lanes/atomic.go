package lanes

import "encoding/binary"

// RMW is a read-modify-write of memory (PTX ISA, "atom"): what it leaves, of what was there (old) and the operands b
// and c.
type RMW uint32

// The read-modify-writes. Their order is that of the generator.
const (
	NoRMW   RMW = iota
	RMWAdd      // old + b
	RMWAnd      // old & b
	RMWOr       // old | b
	RMWXor      // old ^ b
	RMWExch     // b
	RMWCas      // c where old = b, old otherwise
	RMWMinS
	RMWMinU
	RMWMaxS
	RMWMaxU
	RMWFAdd // f32 or f64
	RMWInc  // 0 where old >= b, old + 1 otherwise; 32 bits only
	RMWDec  // b where old = 0 or old > b, old - 1 otherwise; 32 bits only
)

// Atomic32 does a read-modify-write of the four bytes at mem[off] in each lane, the lowest lane first; d gets what was
// there. It reports whether a lane changed what it found. D may be b or c; c is for RMWCas. Bounds are the caller's, as
// in all accesses of this package.
func Atomic32(op RMW, d *V32, mem []byte, off *V64, b, c *V32, mask uint32) (changed bool) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		at := mem[off[l]:]
		old := binary.LittleEndian.Uint32(at)
		now := op.leaves32(old, b[l], c[l])
		binary.LittleEndian.PutUint32(at, now)
		d[l] = old
		changed = changed || now != old
	}
	return changed
}

// Atomic64 is Atomic32 of eight bytes.
func Atomic64(op RMW, d *V64, mem []byte, off *V64, b, c *V64, mask uint32) (changed bool) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		at := mem[off[l]:]
		old := binary.LittleEndian.Uint64(at)
		now := op.leaves64(old, b[l], c[l])
		binary.LittleEndian.PutUint64(at, now)
		d[l] = old
		changed = changed || now != old
	}
	return changed
}

// Leaves32 gives what the read-modify-writes leave in memory, zeros above it. D, old, b and c are different vectors.
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
	default:
		for m := mask; m != 0; m &= m - 1 {
			l := first(m)
			now[l] = op.leaves32(old[l], b[l], c[l])
		}
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

func (op RMW) leaves32(old, b, c uint32) uint32 {
	switch op {
	case RMWAdd:
		return old + b
	case RMWAnd:
		return old & b
	case RMWOr:
		return old | b
	case RMWXor:
		return old ^ b
	case RMWExch:
		return b
	case RMWCas:
		return pick32(uint32(one(old == b)), c, old)
	case RMWMinS:
		return uint32(min(int32(old), int32(b)))
	case RMWMinU:
		return min(old, b)
	case RMWMaxS:
		return uint32(max(int32(old), int32(b)))
	case RMWMaxU:
		return max(old, b)
	case RMWFAdd:
		return fadd32(old, b)
	case RMWInc:
		return pick32(uint32(one(old >= b)), 0, old+1)
	case RMWDec:
		return pick32(uint32(one(old == 0 || old > b)), b, old-1)
	}
	panic("BUG: an unknown read-modify-write")
}

func (op RMW) leaves64(old, b, c uint64) uint64 {
	switch op {
	case RMWAdd:
		return old + b
	case RMWAnd:
		return old & b
	case RMWOr:
		return old | b
	case RMWXor:
		return old ^ b
	case RMWExch:
		return b
	case RMWCas:
		return pick64(uint32(one(old == b)), c, old)
	case RMWMinS:
		return uint64(min(int64(old), int64(b)))
	case RMWMinU:
		return min(old, b)
	case RMWMaxS:
		return uint64(max(int64(old), int64(b)))
	case RMWMaxU:
		return max(old, b)
	case RMWFAdd:
		return fadd64(old, b)
	}
	panic("BUG: an unknown read-modify-write of 64 bits")
}
