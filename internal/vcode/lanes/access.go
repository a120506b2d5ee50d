package lanes

import (
	"encoding/binary"
	"unsafe"
)

// Access is the memory that a load or store of Run may touch. The offset of a lane is its address less Origin, counted
// from *Base. If the offset is not below Room, or is not a multiple of the access size, the operation is not executed
// and Run ends there.
//
// The name of the operation says where the lanes are. Line: adjacent, from the scalar address, which is that of lane 0.
// Same: all at the scalar address. Rows: lanes 0 to 15 adjacent, lanes 16 to 31 the same Row bytes further. Spread:
// lanes 0 to 15 at one address, lanes 16 to 31 Row bytes further. Pattern: at the scalar address plus the offsets in a
// vector of 32 signed bits a lane. In all these forms only the scalar address is compared with Room. Room must be
// chosen so that all other lanes, in the mask or not, are then inside too. Each: at the addresses in a vector of 64
// bits a lane; EachLow: of 32 bits a lane. Each lane of the mask is then compared with Room. If several lanes store to
// one place, the value of the last of them stays. Increase adds to memory in place of storing, one lane after the
// other.
//
// The operands are: the value loaded or stored; the address; the Access; the offsets of Pattern. Loads of less than 32
// bits extend by zeros, or by the sign if the name says so; a scalar result then has zeros above 32 bits. Run returns
// Imm.
//
// SteadyS and SteadyU extend, from 32 to 64 bits, a scalar that represents the values of all lanes. These lie between
// scalar + B and scalar + B + C. B and C are numbers, signed for SteadyS and unsigned for SteadyU. The operation is not
// executed, and Run ends, if one of the bounds does not fit 32 bits.
type Access struct {
	Origin uint64
	Room   uint64
	Base   *unsafe.Pointer
	Row    uint64
	Told   uint64 // not 0: accesses are logged; an access that cannot be logged is not executed (see Log and Told)
	Last   uint64 // not 0: the place of the last access; code prefetches as far ahead of this one as this one is ahead of it, and Run leaves it alone
}

// Log is the accesses that Run made and that were to be logged, in order. It has room for 32.
type Log struct {
	N     uint64 // number of loads and stores
	_     [7]uint64
	Heads [32]Head
	List  [32]Told
}

// Head is the log entry of a load or store.
type Head struct {
	At  uint64 // the scalar address less Origin, if there is one
	Imm uint64 // of the Op
}

// Told is the part of a log entry that only some accesses have.
type Told struct {
	_        [8]uint64 // keeps fields at equal offsets of several entries from competing for one cache line
	Offsets  V64       // of Each and EachLow: by lane, the address less Origin
	Values   V64       // the vector of 64 bits that is stored
	Values32 V32       // the vector of 32 bits that is stored
	// The old values of a store of 64 or of 32 bits, as if each lane were the first to write. For a smaller store of
	// adjacent lanes, Before32 holds the old bytes; such a store is executed only if it begins at a multiple of 4.
	Before   V64
	Before32 V32
}

// how says where the lanes of an access are.
type how uint8

const (
	line how = iota
	same
	rows
	spread
	pattern
	each
	eachLow
)

// accessOp is the meaning of an operation that loads or stores.
type accessOp struct {
	how           how
	size          uint64
	signed, store bool
	add           bool // a store of the sum with the old value
}

// access executes a load, a store, SteadyS or SteadyU. It returns false if that is not possible.
func (x *Regs) access(o *Op, mask uint32) bool {
	if o.Code == OpSteadyS || o.Code == OpSteadyU {
		return x.steady(o)
	}
	a := &accessOps[o.Code-OpLoad8ULine]
	w := (*Access)(unsafe.Add(unsafe.Pointer(x.Reach), o.B))
	inside := func(at uint64) bool { return at < w.Room && at%a.size == 0 }
	var at V64
	switch a.how {
	case each, eachLow:
		for m := mask; m != 0; m &= m - 1 {
			l := first(m)
			if a.how == each {
				at[l] = x.v64(o.A)[l] - w.Origin
			} else {
				at[l] = uint64(x.v32(o.A)[l]) - w.Origin
			}
			if !inside(at[l]) {
				return false
			}
		}
	default:
		base := *x.scalar(o.A) - w.Origin
		if !inside(base) {
			return false
		}
		for l := range uint64(32) {
			switch a.how {
			case line:
				at[l] = base + l*a.size
			case rows:
				at[l] = base + l%16*a.size + l/16*w.Row
			case spread:
				at[l] = base + l/16*w.Row
			case pattern:
				at[l] = base + uint64(int64(int32(x.v32(o.C)[l])))
			default:
				at[l] = base
			}
		}
	}
	if w.Told != 0 && !x.tell(a, o, &at, *w.Base, mask) {
		return false
	}
	if a.how == same {
		*x.scalar(o.D) = a.load(unsafe.Add(*w.Base, at[0]))
		return true
	}
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		p := unsafe.Add(*w.Base, at[l])
		before := uint64(0)
		if a.add {
			before = a.load(p)
		}
		switch wide := a.size == 8; {
		case a.store && wide:
			a.put(p, before+x.v64(o.D)[l])
		case a.store:
			a.put(p, before+uint64(x.v32(o.D)[l]))
		case wide:
			x.v64(o.D)[l] = a.load(p)
		default:
			x.v32(o.D)[l] = uint32(a.load(p))
		}
	}
	return true
}

// tellsBefore reports whether a Told holds the old values of the store.
func (a *accessOp) tellsBefore() bool { return a.store && a.size >= 4 }

// tellsBytes reports whether a Told holds the old bytes of the store.
func (a *accessOp) tellsBytes() bool { return a.store && a.size < 4 && a.how == line }

// tell logs an access. It returns false if that is not possible. At has the offsets of the lanes from base.
func (x *Regs) tell(a *accessOp, o *Op, at *V64, base unsafe.Pointer, mask uint32) bool {
	if x.Log.N == uint64(len(x.Log.List)) || a.tellsBytes() && at[0]%4 != 0 {
		return false
	}
	h, t := &x.Log.Heads[x.Log.N], &x.Log.List[x.Log.N]
	x.Log.N++
	h.Imm = o.Imm
	switch a.how {
	case each, eachLow:
		t.Offsets = *at
	case pattern:
		h.At = *x.scalar(o.A) - (*Access)(unsafe.Add(unsafe.Pointer(x.Reach), o.B)).Origin
	default:
		h.At = at[0]
	}
	switch {
	case a.store && a.size == 8:
		t.Values = *x.v64(o.D)
	case a.store:
		t.Values32 = *x.v32(o.D)
	}
	if a.tellsBytes() {
		n := 32 * a.size
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&t.Before32)), n), unsafe.Slice((*byte)(unsafe.Add(base, at[0])), n))
	}
	if a.tellsBefore() {
		for m := mask; m != 0; m &= m - 1 {
			l := first(m)
			v := a.load(unsafe.Add(base, at[l]))
			t.Before[l], t.Before32[l] = v, uint32(v)
		}
	}
	return true
}

// load reads an element, extended to 32 bits if it is smaller.
func (a *accessOp) load(p unsafe.Pointer) uint64 {
	b := unsafe.Slice((*byte)(p), a.size)
	var v uint64
	switch a.size {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
	default:
		v = binary.LittleEndian.Uint64(b)
	}
	if a.signed {
		s := 64 - 8*a.size
		v = uint64(uint32(int64(v<<s) >> s))
	}
	return v
}

func (a *accessOp) put(p unsafe.Pointer, v uint64) {
	b := unsafe.Slice((*byte)(p), a.size)
	switch a.size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func (x *Regs) steady(o *Op) bool {
	v := uint32(*x.scalar(o.A))
	wide, from := uint64(v), uint64(v)
	if o.Code == OpSteadyS {
		wide, from = uint64(int64(int32(v))), uint64(v^1<<31)
	}
	if from+uint64(int64(o.B)) > 1<<32-1-uint64(uint32(o.C)) {
		return false
	}
	*x.scalar(o.D) = wide
	return true
}
