package lanes

import (
	"fmt"
	"unsafe"
)

// Code is the kind of an Op: OpAdd32 and so on.
type Code uint32

// Op is an operation of Run; Make makes it. D, A, B and C are the operands: byte offsets in their register files, the
// result first, then the sources in the order of the function's parameters.
type Op struct {
	Code       Code
	D, A, B, C int32
	Imm        uint64
}

// Regs are the register files of the operands, each given by its first register: vectors, predicates (the mask of the
// lanes in which they hold) and scalars, which all lanes of the mask share. Reach is the first Access of loads and
// stores. Log receives the accesses that are to be logged.
type Regs struct {
	V32     *V32
	V64     *V64
	Preds   *uint32
	Scalars *uint64
	Reach   *Access
	Log     *Log
	// OpGoto adds to Steps, and ends Run when Steps reaches Limit. It also adds to Marks.
	Steps, Limit int64
	Marks        uint64
	// The mask in the form that the code needs: all bits set in the lanes of the mask.
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

// Make makes an Op out of the numbers of its operands in their register files: d, and the sources in the order of the
// function's parameters. The d of a comparison is a predicate, and so is cond of the selections. A parameter that is a
// number is a scalar register (32-bit operations read its lower half), except where the function can use a constant,
// which is imm: lut of Lop3, the stride of Affine and EQAffine, n of ExtBits and of the funnel shifts, the selector of
// Prmt32S.
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

// Scalar returns the number of the scalar register that the operation writes. It returns false if it writes none.
func (o *Op) Scalar() (reg int32, ok bool) {
	return o.D / sizes[scalars], operands[o.Code][0] == scalars
}

// Run executes the operations of code, one after the other, in the lanes of mask. The last one must be OpEnd. A list
// should have at most some thousands of operations. The offsets are not checked. Run returns the Imm of the operation
// at which it ended: OpEnd, or one that could not be executed (see Access) and has had no effect. Lists that are
// executed often should be compiled; see Compile.
func Run(code []Op, x *Regs, mask uint32) uint64 { return runGo(code, x, mask) }

// after returns operation n after o.
func (o *Op) after(n int) *Op {
	return (*Op)(unsafe.Add(unsafe.Pointer(o), n*int(unsafe.Sizeof(Op{}))))
}

// jump returns how many operations after o Run continues. It returns false if Run ends.
//
// Distances are in bytes from o. OpGoto adds C to Steps and D to Marks and continues at distance B. Run ends if B is 0,
// or if Steps plus A is Limit or more. OpIfScalar continues at distance B if scalar A is odd, and at C otherwise.
// OpIfPred continues at distance B if predicate A holds in all lanes of the mask, and at C if it holds in none. Run ends
// if it holds in some.
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
