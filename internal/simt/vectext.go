package simt

import (
	"sync"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/lanes"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/simt/loader"
)

// text is a kernel, or a function that stays called, compiled for a block and grid shape, as engine warp executes it. Values live in four register files:
// vectors of 32 and of 64 bits a lane, predicates (a bit a lane) and scalars (64 bits). A scalar holds a value that is
// the same in all lanes of a group, or that of lane 0 of one that grows by a constant from lane to lane; the constant is
// in the code. Vectors and predicates belong to the warp, an instruction writing the lanes of its group only; scalars
// belong to the group.
type text struct {
	code     []ins
	ops      []lanes.Op // what opRun and edges do, lists that end in OpEnd
	counts   []int32    // by pc: instructions of the internal form before it
	lines    []line     // scalars that are used as vectors
	patterns []pattern
	consts32 []v32 // registers that never change, behind the others
	consts64 []v64
	edges    []edge
	effects  []effect
	reaches  []reaching
	rows     []row
	fixed    []fixed
	meet     []int32   // by pc: index in meets, -1 where groups do not meet
	meets    [][]int32 // the scalars that live where groups may meet

	scalars, v32, v64, preds int // sizes of the files
	local                    int // bytes of local memory a thread
	sites                    []opt.Site
	lockstep                 bool
	// Of kernels: the texts of what they can call, the kernel's first; nil where nothing stays a call. Of the others: the
	// registers that their parameters come in, by part.
	units []*text
	enter []loader.Slot

	mu      sync.Mutex
	machine [2]*lanes.Compiled // the lists, where they are done often; of launches of which accesses are told the second
}

// ins is one instruction. Register operands are indices in the file that the operation says. Where a vector is asked
// for, a negative index stands for ^index in text.lines; where a predicate is, for scalar ^index.
type ins struct {
	op         opcode
	fn         uint16 // function within the operation's table
	d, a, b, c int32
	imm        uint64
}

// line is a scalar seen as a vector: what lanes add to it is their number times the stride, or a pattern.
type line struct {
	reg     int32
	pattern int32 // in text.patterns; -1 for none
	stride  uint64
}

// slope is how the lanes of a warp differ from lane 0: in a row (opt.Env.RowLanes) from lane to lane, and from row to row.
type slope struct{ lane, row uint64 }

// pattern is what the lanes add to a scalar where that is no multiple of their number.
type pattern struct {
	slope       slope
	low         v32 // in 32 bits
	all         v64
	least, most int64
	reg32       int32 // the register that holds low, -1 while there is none; of every register file
	reg64       int32
}

// edge is a way from a block to another.
type edge struct {
	to    int32
	moves int32 // operations that define what lives behind it, in text.ops; -1 for none
}

// move copies a value over an edge. src is as an operand of the file's kind is.
type move struct {
	file     file
	dst, src int32
}

// file is a register file.
type file uint8

const (
	noFile file = iota
	scalars
	vectors32
	vectors64
	predicates
)

// fixed is a scalar that is the same for all groups of a warp.
type fixed struct {
	reg  int32
	from fixedKind
	val  uint64 // value; offset in the frame's local memory; offset of a parameter; number of the special register
	size uint64 // of a parameter
}

type fixedKind uint8

const (
	fixedValue fixedKind = iota
	fixedLocal           // an address in the frame's local memory
	fixedParam
	fixedSpecial
)

// effect is an instruction that does more than compute.
type effect struct {
	loader.Instr
	site     int32
	bar      int8  // the number of a barrier of all threads without more to it, -1 for others
	guard    int32 // predicate operand
	guarded  bool
	guardNot bool
	// Memory: the address operand, in 32 bits or 64, and those of the values stored.
	addr     int32
	narrow   bool
	reach    int32 // what the operation of package lanes that does the access reaches, in text.reaches; -1 for none
	vals     []int32
	wide     []bool    // by value: 64 bits
	uniform  bool      // a load whose result is a scalar
	shuffles bool      // shfl of 32 bits in registers, with the same clamp for all lanes
	rmw      lanes.RMW // what an atomic does, NoRMW for one that is done lane by lane
	unread   bool      // of an atomic: no instruction reads its results
	fn       *isa.Func
	call     *vecCall
	succs    []int32 // Switch: edges
	meet     int32   // in lockstep, of a branch or Switch: the opMeet; -1 for none
	fall     int     // and of a Switch: the index in succs of those that fall through, -1 for none
}

// row is an instruction that is computed lane by lane.
type row struct {
	in     *isa.Inst // nil: a native operation
	native opt.Op
	imm    uint64
	aux    uint8
	width  opt.Width
	src    []loader.Operand
	dst    []loader.Slot
	kept   bool // a clock: costs what a poll does
}

// eval computes the row for one lane.
func (w *row) eval(a *isa.Args) {
	if w.in != nil {
		w.in.Eval(w.in, a)
		return
	}
	a.D[0] = opt.Eval(w.native, w.imm, w.aux, w.width, [3]uint64{a.S[0], a.S[1], a.S[2]})
}

// opcode is an operation of the warp engine.
type opcode uint16

// The operations. "S" after a name: the last source is a scalar.
const (
	opJump     opcode = iota // a: edge
	opBranch                 // c: predicate; a, b: edges; in lockstep d: effect, fn: 1 if b is the edge of those that fall through
	opBranchS                // c: scalar; a, b: edges
	opMeet                   // in lockstep: lanes meet that parted at effects whose meet is a
	opSwitch                 // a: effect
	opExit                   // a: effect; and for all down to oMemory
	opTrap                   //
	opFence                  //
	opSync                   // barriers and warp instructions
	opBuiltin                //
	opCall                   //
	opReturn                 //
	opDepth                  // an inlined call
	opLoad                   // b: what it reaches, where lists do it too
	opStore                  //
	opAtomic                 //
	opRun                    // a: operations; fn: 1 where there are stores among them
	opRow                    // a: row, lane by lane
	opRowS                   // a: row, once
	opClock                  // d: scalar; a: row
	opSpecial                // a: row
	opBin32                  // d, a, b: vectors
	opBin32S                 // d, a: vectors, b: scalar
	opUn32                   // d, a
	opTer32                  // d, a, b, c
	opTer32S                 // c scalar
	opTer32SB                // b scalar
	opBin64                  //
	opBin64S                 //
	opUn64                   //
	opTer64                  //
	opTer64S                 //
	opTer64SB                //
	opShift64                // d, a: 64, b: 32 bits
	opShift64S               // b: scalar
	opWiden                  // d: 64, a: 32
	opNarrow                 // d: 32, a: 64
	opMul64                  // d: 64, a, b: 32
	opMul64S                 // b: scalar
	opBits32                 // d, a; imm: bits
	opBits64                 // d, a; imm: bits
	opImm32                  // d, a, b; imm: the last operand
	opImm32T                 // d, a, b, c; imm
	opCmp32                  // d: predicate, a, b
	opCmp32S                 // b: scalar
	opCmp64                  //
	opCmp64S                 //
	opSel32                  // d, a, b: vectors, c: predicate
	opSel64                  //
	opFrom1                  // d: 32, a: predicate; imm: the ones
	opFrom1W                 // d: 64
	opTo1                    // d: predicate, a: 32: the lowest bit
	opTo1W                   // a: 64
	opPack                   // d: 64, a, b: 32 bits
	opCopy32                 //
	opCopy64                 //
	opCopy1                  //
	opAnd1                   // d, a, b: predicates
	opOr1                    //
	opXor1                   //
	opNot1                   //
	opSel1                   // d, a, b, c: predicates; c chooses
	opSAdd                   // scalars; imm: mask of the width
	opSSub                   //
	opSMul                   //
	opSAnd                   //
	opSOr                    //
	opSXor                   //
	opSNot                   //
	opSShl                   // fn: width
	opSShrU                  //
	opSShrS                  //
	opSMulU                  //
	opSMulS                  //
	opSSExt                  // fn: bits
	opSZExt                  // fn: bits
	opSCopy                  //
	opSSel                   // c ? a : b
	opSCmp                   // fn: condition, imm: bits
	opSWiden                 // d, a; b: line of a; fn: kind; imm: factor: what may wrap between lanes
	opcodes
)

// The kinds of opSWiden.
const (
	widenS uint16 = iota
	widenU
)
