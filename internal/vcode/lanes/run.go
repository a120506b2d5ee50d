package lanes

import (
	"fmt"
	"unsafe"
)

// Code is what an Op does: OpAdd32 and so on.
type Code uint32

// Op is an operation of Run; Make makes it. D, A, B, C are the operands: byte offsets in their register files, the
// result first, in the order of the function's parameters.
type Op struct {
	Code       Code
	D, A, B, C int32
	Imm        uint64
}

// Regs are the register files that the operands lie in, each given by its first register: vectors, predicates (the lanes
// where they hold) and scalars, which every lane of the mask shares. Reach is the first of what loads and stores reach, Log
// where those are told of that say so.
type Regs struct {
	V32     *V32
	V64     *V64
	Preds   *uint32
	Scalars *uint64
	Reach   *Access
	Log     *Log
	// Steps grows by what OpGoto says, which is not followed where they come to Limit. Marks are what those add that were met.
	Steps, Limit int64
	Marks        uint64
	// What code wants of a mask: all bits set in the lanes that are in it.
	lanes32 [8][4]uint32
	lanes64 [8][4]uint64
	lanesOf uint32
}

// file is the kind of an operand.
type file uint8

const (
	none file = iota
	vectors32
	vectors64
	preds
	scalars
	reaches // Access
	literal // no register: the number itself
)

var sizes = [...]int32{vectors32: 128, vectors64: 256, preds: 4, scalars: 8, reaches: int32(unsafe.Sizeof(Access{})), literal: 1}

// Make makes an Op of the numbers of its operands in their register files: d, and the sources in the order of the
// function's parameters; a comparison's d is a predicate, as is cond of the selections. A parameter that is a number is a
// scalar register (of which 32-bit operations read the lower half), but imm where the function can do with one: lut of
// Lop3, the stride of Affine and EQAffine, n of ExtBits and of the funnel shifts, the selector of Prmt32S.
func Make(c Code, imm uint64, d int32, sources ...int32) Op {
	want := &operands[c]
	o := Op{Code: c, D: d * sizes[want[0]], Imm: imm}
	for i, to := range []*int32{&o.A, &o.B, &o.C} {
		switch have := i < len(sources); {
		case have != (want[1+i] != none):
			panic(fmt.Sprintf("BUG: operation %d with %d sources", c, len(sources)))
		case have:
			*to = sources[i] * sizes[want[1+i]]
		}
	}
	return o
}

// Ends reports whether the operation is OpEnd.
func (o *Op) Ends() bool { return o.Code == OpEnd }

// Scalar gives the number of the scalar register that the operation writes; false where it writes none.
func (o *Op) Scalar() (reg int32, ok bool) {
	return o.D / sizes[scalars], operands[o.Code][0] == scalars
}

// Run does the operations of code, one after the other, in the lanes of mask; the last one must be OpEnd. It should not be given more
// than some thousands of them. The offsets are not checked. Run gives Imm of the operation at which it ended: OpEnd, or one that could
// not be done (see Access), of which nothing is done then. Lists that are done often should be compiled: see Compile.
func Run(code []Op, x *Regs, mask uint32) uint64 { return runGo(code, x, mask) }

// after gives the operation n behind o.
func (o *Op) after(n int) *Op {
	return (*Op)(unsafe.Add(unsafe.Pointer(o), n*int(unsafe.Sizeof(Op{}))))
}

// jump tells how many operations behind o Run goes on; false where it ends.
//
// OpGoto adds C to Steps and D to Marks, and goes on B bytes behind; Run ends where B is 0, or Steps and A together are Limit or
// more. OpIfScalar: B bytes behind
// if scalar A is odd, C otherwise. OpIfPred: B if predicate A holds in all lanes of the mask, C if in none; Run ends if in some.
func (x *Regs) jump(o *Op, mask uint32) (n int, ok bool) {
	yes := true
	switch o.Code {
	case OpGoto:
		x.Steps += int64(o.C)
		x.Marks += uint64(o.D)
		if o.B == 0 || x.Steps+int64(o.A) >= x.Limit {
			return 0, false
		}
	case OpIfScalar:
		yes = *x.scalar(o.A)&1 != 0
	default:
		on := *x.pred(o.A) & mask
		if yes = on == mask; !yes && on != 0 {
			return 0, false
		}
	}
	if yes {
		return int(o.B) / int(unsafe.Sizeof(Op{})), true
	}
	return int(o.C) / int(unsafe.Sizeof(Op{})), true
}

func (x *Regs) v32(at int32) *V32       { return (*V32)(unsafe.Add(unsafe.Pointer(x.V32), at)) }
func (x *Regs) v64(at int32) *V64       { return (*V64)(unsafe.Add(unsafe.Pointer(x.V64), at)) }
func (x *Regs) pred(at int32) *uint32   { return (*uint32)(unsafe.Add(unsafe.Pointer(x.Preds), at)) }
func (x *Regs) scalar(at int32) *uint64 { return (*uint64)(unsafe.Add(unsafe.Pointer(x.Scalars), at)) }

// setPred writes the lanes of mask of a predicate.
func (x *Regs) setPred(at int32, val, mask uint32) {
	p := x.pred(at)
	*p = *p&^mask | val&mask
}

func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
