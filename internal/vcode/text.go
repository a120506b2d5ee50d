// Package vcode is the vector form of kernels: what the passes of package opt leave, as instructions on the registers of a warp,
// 32 lanes at once. Compile makes it. Most instructions are lists of operations of package lanes; the others (accesses,
// barriers, branches, calls) are effects, which the engine that executes the form does.
package vcode

import (
	"sync"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// Text is a kernel, or a function that stays called, compiled for a block and grid shape. Values live in four register files:
// vectors of 32 and of 64 bits a lane, predicates (a bit a lane) and scalars (64 bits). A scalar holds a value that is
// the same in all lanes of a group, or that of lane 0 of one that grows by a constant from lane to lane; the constant is
// in the code. Vectors and predicates belong to the warp, an instruction writing the lanes of its group only; scalars
// belong to the group.
type Text struct {
	Code     []Instr
	Ops      []lanes.Op // what OpRun and edges do, lists that end in OpEnd
	Counts   []int32    // by pc: instructions of the internal form before it
	Lines    []Line     // scalars that are used as vectors
	Patterns []Pattern
	Const32  []lanes.V32 // registers that never change, behind the others
	Const64  []lanes.V64
	Edges    []Edge
	Effects  []Effect
	Reaches  []Reaching
	Rows     []Row
	Fixed    []Fixed
	Meet     []int32   // by pc: index in Meets, -1 where groups do not meet
	Meets    [][]int32 // the scalars that live where groups may meet
	Arms     []int32   // by pc, of branches: where the lanes are together again, 0 where that is not known; nil in lockstep

	Scalars, V32, V64, Preds int // sizes of the files
	Local                    int // bytes of local memory a thread
	Sites                    []opt.Site
	Origins                  []int32 // sites of which Effect.Origin is of
	Shadows                  bool    // opt.Env.Uninit
	Lockstep                 bool
	// Of kernels: the texts of what they can call, the kernel's first; nil where nothing stays a call. Of the others: the
	// registers that their parameters come in, by part.
	Units []*Text
	Enter []loader.Slot

	mu      sync.Mutex
	machine [2]*lanes.Compiled // the lists, where they are done often; of launches of which accesses are told the second
	done    [2]int             // lists done without
}

// Instr is one instruction. Register operands are indices in the file that the operation says. Where a vector is asked
// for, a negative index stands for ^index in Text.Lines; where a predicate is, for scalar ^index.
type Instr struct {
	Op         Opcode
	Fn         uint16 // function within the operation's table
	D, A, B, C int32
	Imm        uint64
}

// Line is a scalar seen as a vector: what lanes add to it is their number times the stride, or a pattern.
type Line struct {
	Reg     int32
	Pattern int32 // in Text.Patterns; -1 for none
	Stride  uint64
}

// Slope is how the lanes of a warp differ from lane 0: in a row (opt.Env.RowLanes) from lane to lane, and from row to row.
type Slope struct{ Lane, Row uint64 }

// Pattern is what the lanes add to a scalar where that is no multiple of their number.
type Pattern struct {
	Slope       Slope
	Low         lanes.V32 // in 32 bits
	All         lanes.V64
	least, most int64
	reg32       int32 // the register that holds low, -1 while there is none; of every register file
	reg64       int32
}

// Edge is a way from a block to another.
type Edge struct {
	To    int32
	Moves int32 // operations that define what lives behind it, in Text.Ops; -1 for none
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

// Fixed is a scalar that is the same for all groups of a warp.
type Fixed struct {
	Reg  int32
	From FixedKind
	Val  uint64 // value; offset in the frame's local memory; offset of a parameter; number of the special register
	Size uint64 // of a parameter
}

// FixedKind says where a fixed scalar comes from.
type FixedKind uint8

// The kinds of fixed scalars.
const (
	FixedValue FixedKind = iota
	FixedLocal           // an address in the frame's local memory
	FixedParam
	FixedSpecial
)

// Effect is an instruction that does more than compute.
type Effect struct {
	loader.Instr
	Site    int32
	Bar     int8  // the number of a barrier of all threads without more to it, -1 for others
	Pred    int32 // predicate operand
	Guarded bool
	PredNot bool
	// Memory: the address operand, in 32 bits or 64, and those of the values stored.
	Addr     int32
	Narrow   bool
	Reach    int32 // what the operation of package lanes that does the access reaches, in Text.Reaches; -1 for none
	Vals     []int32
	Wide     []bool    // by value: 64 bits
	Uniform  bool      // a load whose result is a scalar
	Shuffles bool      // shfl of 32 bits in registers, with the same clamp for all lanes
	LaneRMW  lanes.RMW // what an atomic does, NoRMW for one that is done lane by lane
	Shadow   opt.Op    // OpShadow: what it does
	Why      uint8     // opt.Undefined: for what
	Origin   int32     // and where that was loaded, in Text.Origins; -1 where it was not
	Unread   bool      // of an atomic: no instruction reads its results
	Fn       *isa.Func
	Call     *Call
	Succs    []int32 // Switch: edges
	Meet     int32   // in lockstep, of a branch or Switch: the OpMeet; -1 for none
	Fall     int     // and of a Switch: the index in Succs of those that fall through, -1 for none
}

// Row is an instruction that is computed lane by lane.
type Row struct {
	in     *isa.Inst // nil: a native operation
	native opt.Op
	Imm    uint64
	aux    uint8
	width  opt.Width
	Src    []loader.Operand
	Dst    []loader.Slot
	Kept   bool // a clock: costs what a poll does
}

// Eval computes the row for one lane.
func (w *Row) Eval(a *isa.Args) {
	if w.in != nil {
		w.in.Eval(w.in, a)
		return
	}
	a.D[0] = opt.Eval(w.native, w.Imm, w.aux, w.width, [3]uint64{a.S[0], a.S[1], a.S[2]})
}

// Opcode is an operation of the warp engine.
type Opcode uint16

// The operations. "S" after a name: the last source is a scalar.
const (
	OpJump     Opcode = iota // a: edge
	OpBranch                 // c: predicate; a, b: edges; in lockstep d: effect, fn: 1 if b is the edge of those that fall through
	OpBranchS                // c: scalar; a, b: edges
	OpMeet                   // in lockstep: lanes meet that parted at effects whose meet is a
	OpSwitch                 // a: effect
	OpExit                   // a: effect; and for all down to oMemory
	OpTrap                   //
	OpFence                  //
	OpSync                   // barriers and warp instructions
	OpBuiltin                //
	OpCall                   //
	OpReturn                 //
	OpDepth                  // an inlined call
	OpLoad                   // b: what it reaches, where lists do it too
	OpStore                  //
	OpAtomic                 //
	OpShadow                 // a: effect, see opt.Env.Uninit
	OpRun                    // a: operations; fn: 1 where there are stores among them
	OpRow                    // a: row, lane by lane
	OpRowS                   // a: row, once
	OpClock                  // d: scalar; a: row
	OpSpecial                // a: row
	OpBin32                  // d, a, b: vectors
	OpBin32S                 // d, a: vectors, b: scalar
	OpUn32                   // d, a
	OpTer32                  // d, a, b, c
	OpTer32S                 // c scalar
	OpTer32SB                // b scalar
	OpBin64                  //
	OpBin64S                 //
	OpUn64                   //
	OpTer64                  //
	OpTer64S                 //
	OpTer64SB                //
	OpShift64                // d, a: 64, b: 32 bits
	OpShift64S               // b: scalar
	OpWiden                  // d: 64, a: 32
	OpNarrow                 // d: 32, a: 64
	OpMul64                  // d: 64, a, b: 32
	OpMul64S                 // b: scalar
	OpBits32                 // d, a; imm: bits
	OpBits64                 // d, a; imm: bits
	OpImm32                  // d, a, b; imm: the last operand
	OpImm32T                 // d, a, b, c; imm
	OpCmp32                  // d: predicate, a, b
	OpCmp32S                 // b: scalar
	OpCmp64                  //
	OpCmp64S                 //
	OpSel32                  // d, a, b: vectors, c: predicate
	OpSel64                  //
	OpFrom1                  // d: 32, a: predicate; imm: the ones
	OpFrom1W                 // d: 64
	OpTo1                    // d: predicate, a: 32: the lowest bit
	OpTo1W                   // a: 64
	OpPack                   // d: 64, a, b: 32 bits
	OpCopy32                 //
	OpCopy64                 //
	OpCopy1                  //
	OpAnd1                   // d, a, b: predicates
	OpOr1                    //
	OpXor1                   //
	OpNot1                   //
	OpSel1                   // d, a, b, c: predicates; c chooses
	OpSAdd                   // scalars; imm: mask of the width
	OpSSub                   //
	OpSMul                   //
	OpSAnd                   //
	OpSOr                    //
	OpSXor                   //
	OpSNot                   //
	OpSShl                   // fn: width
	OpSShrU                  //
	OpSShrS                  //
	OpSMulU                  //
	OpSMulS                  //
	OpSSExt                  // fn: bits
	OpSZExt                  // fn: bits
	OpSCopy                  //
	OpSSel                   // c ? a : b
	OpSCmp                   // fn: condition, imm: bits
	OpSWiden                 // d, a; b: line of a; fn: kind; imm: factor: what may wrap between lanes
)

// The kinds of OpSWiden.
const (
	WidenS uint16 = iota
	widenU
)
