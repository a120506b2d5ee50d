// Package vcode is the vector form of kernels: the result of the passes of package opt, as instructions on the
// registers of a warp that process 32 lanes at a time. Compile makes it. Most instructions are lists of operations of
// package lanes. The others (accesses, barriers, branches, calls) are effects, which the engine executes.
package vcode

import (
	"sync"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// Text is a kernel, or a function that is not inlined, compiled for a block and grid shape. Values are in four register
// files: vectors of 32 and of 64 bits a lane, predicates (a bit a lane) and scalars (64 bits). A scalar holds a value
// that is equal in all lanes of a group, or the value of lane 0 if the value grows by a constant from lane to lane; the
// constant is in the code. Vectors and predicates belong to the warp, and an instruction writes only the lanes of its
// group. Scalars belong to the group.
type Text struct {
	Code     []Instr
	Ops      []lanes.Op // the lists of OpRun and of edges, each ending in OpEnd
	Counts   []int32    // by pc: number of instructions of the internal form before it
	Lines    []Line     // scalars that are used as vectors
	Patterns []Pattern
	Const32  []lanes.V32 // registers that never change, after the others
	Const64  []lanes.V64
	Edges    []Edge
	Effects  []Effect
	Reaches  []Reaching
	Rows     []Row
	Fixed    []Fixed
	Meet     []int32   // by pc: index in Meets, -1 if groups do not join there
	Meets    [][]int32 // the scalars that are live where groups may join
	Arms     []int32   // by pc of a branch: where its lanes reconverge, 0 if that is not known; nil in lockstep

	Scalars, V32, V64, Preds int // sizes of the files
	Local                    int // bytes of local memory of a thread
	Sites                    []opt.Site
	Origins                  []int32 // the sites that Effect.Origin refers to
	Shadows                  bool    // opt.Env.Uninit
	Lockstep                 bool
	// For kernels, Units holds the texts of the functions that they can call, after the kernel's own; it is nil if all
	// calls are inlined. For functions, Enter holds the registers of the parameters, by part.
	Units []*Text
	Enter []loader.Slot

	mu      sync.Mutex
	machine [2]*lanes.Compiled // the compiled lists, once they are executed often; the second for launches with logged accesses
	done    [2]int             // lists executed without
}

// Instr is one instruction. Register operands are indices in the file that the operation determines. A negative vector
// operand o means Text.Lines[^o]. A negative predicate operand o means scalar ^o.
type Instr struct {
	Op         Opcode // function within the operation's table
	Fn         uint16 // function within the operation's table
	D, A, B, C int32
	Imm        uint64
}

// Line is a scalar seen as a vector: each lane adds its number times the stride, or its value in a pattern.
type Line struct {
	Reg     int32
	Pattern int32 // index in Text.Patterns; -1 for none
	Stride  uint64
}

// Slope is the difference of a value between lanes: from lane to lane within a row (opt.Env.RowLanes), and from row to
// row.
type Slope struct{ Lane, Row uint64 }

// Pattern is the values that the lanes add to a scalar if these are not multiples of the lane number.
type Pattern struct {
	Slope       Slope
	Low         lanes.V32 // in 32 bits
	All         lanes.V64
	least, most int64
	reg32       int32 // the register that holds low, -1 if none does; in every register file
	reg64       int32
}

// Edge is an edge from one block to another.
type Edge struct {
	To    int32
	Moves int32 // list in Text.Ops that defines the values live after it; -1 for none
}

// move copies a value over an edge. src is an operand of the file's kind.
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

// Fixed is a scalar that is equal for all groups of a warp.
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
	Bar     int8  // the number of a plain barrier of all threads, -1 for others
	Pred    int32 // predicate operand
	Guarded bool
	PredNot bool
	// Of accesses: Addr is the address operand, of 32 bits if Narrow and otherwise of 64. Vals are the operands of the
	// values stored.
	Addr     int32
	Narrow   bool
	Reach    int32 // index in Text.Reaches for the operation of package lanes that makes the access; -1 for none
	Vals     []int32
	Wide     []bool    // by value: 64 bits
	Uniform  bool      // a load whose result is a scalar
	Shuffles bool      // shfl of 32 bits in registers, with the same clamp for all lanes
	LaneRMW  lanes.RMW // the operation of an atomic, NoRMW for one that is executed lane by lane
	Shadow   opt.Op    // of OpShadow: the operation
	Why      uint8     // of opt.Undefined: the use of the value
	Origin   int32     // of opt.Undefined: the site of its load, an index in Text.Origins; -1 if it was not loaded
	Unread   bool      // of an atomic: no instruction reads its results
	Fn       *isa.Func
	Call     *Call
	Succs    []int32 // of OpSwitch: edges
	Meet     int32   // in lockstep, of a branch or OpSwitch: the OpReconverge; -1 for none
	Fall     int     // in lockstep, of OpSwitch: the index in Succs of the fall-through, -1 for none
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
	Kept   bool // a clock: it costs what a poll costs
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

// The operations. The suffix S says that the last source is a scalar.
const (
	OpJump       Opcode = iota // a: edge
	OpBranch                   // c: predicate; a, b: edges; in lockstep d: effect, fn: 1 if b is the fall-through edge
	OpBranchS                  // c: scalar; a, b: edges
	OpReconverge               // in lockstep: lanes reconverge that diverged at effects whose Meet is a
	OpSwitch                   // a: effect
	OpExit                     // a: effect; so for all up to OpAtomic
	OpTrap                     //
	OpFence                    //
	OpSync                     // barriers and warp instructions
	OpBuiltin                  //
	OpCall                     //
	OpReturn                   //
	OpDepth                    // an inlined call
	OpLoad                     // b: the index in Text.Reaches, if it is also in a list
	OpStore                    //
	OpAtomic                   //
	OpShadow                   // a: effect, see opt.Env.Uninit
	OpRun                      // a: operations; fn: 1 if there are stores among them
	OpRow                      // a: row, lane by lane
	OpRowS                     // a: row, once
	OpClock                    // d: scalar; a: row
	OpSpecial                  // a: row
	OpBin32                    // d, a, b: vectors
	OpBin32S                   // d, a: vectors, b: scalar
	OpUn32                     // d, a
	OpTer32                    // d, a, b, c
	OpTer32S                   // c scalar
	OpTer32SB                  // b scalar
	OpBin64                    //
	OpBin64S                   //
	OpUn64                     //
	OpTer64                    //
	OpTer64S                   //
	OpTer64SB                  //
	OpShift64                  // d, a: 64, b: 32 bits
	OpShift64S                 // b: scalar
	OpWiden                    // d: 64, a: 32
	OpNarrow                   // d: 32, a: 64
	OpMul64                    // d: 64, a, b: 32
	OpMul64S                   // b: scalar
	OpBits32                   // d, a; imm: bits
	OpBits64                   // d, a; imm: bits
	OpImm32                    // d, a, b; imm: the last operand
	OpImm32T                   // d, a, b, c; imm
	OpCmp32                    // d: predicate, a, b
	OpCmp32S                   // b: scalar
	OpCmp64                    //
	OpCmp64S                   //
	OpSel32                    // d, a, b: vectors, c: predicate
	OpSel64                    //
	OpFrom1                    // d: 32, a: predicate; imm: the value for a set bit
	OpFrom1W                   // d: 64
	OpTo1                      // d: predicate, a: 32: the lowest bit
	OpTo1W                     // a: 64
	OpPack                     // d: 64, a, b: 32 bits
	OpCopy32                   //
	OpCopy64                   //
	OpCopy1                    //
	OpAnd1                     // d, a, b: predicates
	OpOr1                      //
	OpXor1                     //
	OpNot1                     //
	OpSel1                     // d, a, b, c: predicates; c selects
	OpSAdd                     // scalars; imm: mask of the width
	OpSSub                     //
	OpSMul                     //
	OpSAnd                     //
	OpSOr                      //
	OpSXor                     //
	OpSNot                     //
	OpSShl                     // fn: width
	OpSShrU                    //
	OpSShrS                    //
	OpSMulU                    //
	OpSMulS                    //
	OpSSExt                    // fn: bits
	OpSZExt                    // fn: bits
	OpSCopy                    //
	OpSSel                     // c ? a : b
	OpSCmp                     // fn: condition, imm: bits
	OpSWiden                   // d, a; b: line of a; fn: kind; imm: factor: an extension that may wrap between lanes
)

// The kinds of OpSWiden.
const (
	WidenS uint16 = iota
	widenU
)
