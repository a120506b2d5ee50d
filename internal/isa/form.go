// Package isa is the instruction table: one row is one instruction. It checks a parsed PTX module against the table and
// converts it to the decoded form that the engines run: names resolved, operands flattened, control flow laid out.
package isa

import (
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// Class determines the part of an engine that executes a row.
type Class uint8

// The classes.
const (
	Pure        Class = iota // Inst.Eval, lane by lane: registers to registers
	Special                  // Pure, with a source that is a special register that the engine supplies
	Load                     // ld, ldu: Inst.Space, Order, Scope, Vec, Type
	Store                    // st
	Atomic                   // atom, red: Inst.RMW, element by element of Vec; red has no Dst
	Fence                    // fence, membar
	Barrier                  // bar, barrier (CTA): Inst.Op is OpSync, OpArrive, or of bar.red OpPopc, OpAnd, OpOr; Aligned
	Warp                     // Inst.Lanes: needs the whole warp: shfl, vote, match, redux, activemask; WarpBarrier excepted
	Matrix                   // ldmatrix: a Warp whose sources are rows in memory, see matrixRows; Inst.Space
	Tile                     // wmma.load, wmma.store, stmatrix: a Warp that moves a matrix between memory and registers; Inst.Tiles, Space
	Warpgroup                // wgmma, and tcgen05 of warps: a Warp that the warps of a warpgroup may execute together: Inst.Op, Wgmma, Core
	Copy                     // cp.async, cp.async.bulk, their groups and waits, fence.proxy.async, tcgen05 of single threads: Inst.Op; Off2, Off3, Ignores
	Mbarrier                 // mbarrier: Inst.Op, Space, Order, Scope; Src[0] is the address to which Off is added
	Texture                  // tex, tld4, suld, sust, sured, txq, suq: Inst.Op, Texel; Src[0] is the texture or surface object
	WarpBarrier              // bar.warp.sync
	Branch                   // bra, brx.idx
	Call                     // call
	Ret                      // ret
	Exit                     // exit
	Trap                     // trap, brkpt
	Hint                     // prefetch, nanosleep, discard, pragma-like: no effect on values or order
)

// Row is an instruction, with everything known about an opcode. An opcode that the manual describes in several sections
// ("add" of integers and of floats) has a row for each.
type Row struct {
	Op    string // "add"
	Doc   string // the section of the manual and the instruction: "Integer Arithmetic: add"
	Class Class
	Event event.Kind // the event it emits, None for most
	Forms []Form     // the accepted spellings, in the manual's notation
	Carry bool       // reads the condition code: addc, subc, madc
	Whole bool       // needs all 32 lanes of a warp without a member mask in the PTX; the mask is the last source all the same
	Rank  bool       // reads the rank of the CTA in its cluster, which is the last source and not an operand
	Stack bool       // concerns the stack of the function: see stackRows
	Note  string     // what the manual leaves open and the decision taken here; "" for nothing
	// Bind selects the implementation for the modifiers of the instruction: it sets Inst.Eval (Pure and Special),
	// Inst.RMW (Atomic) or Inst.Lanes (Warp). It is nil for the classes that the engine executes itself.
	Bind func(in *Inst)
}

// Form is one accepted spelling of a row: modifiers in the manual's notation and the operand shape.
// The isa package owns its grammar; see table.go.
type Form struct {
	Syntax string // ".lo.type d, a, b" and the like
	// Ulp is the tolerance, in units in the last place, of an approximate form's value vectors; 0: exact.
	Ulp float64
}

// Eval computes a.D from a.S for one lane.
type Eval func(in *Inst, a *Args)

// Args are the values of one lane. Sources are the raw bits of the register or immediate: an Eval reads no more bits
// than its type has. Results are the exact contents of the destination register: extended to its width, zero above it.
// A predicate is 0 or 1. A 128-bit value takes two entries, low first.
type Args struct {
	S [8]uint64 // sources, in the order of Inst.Src
	D [4]uint64 // results, in the order of Inst.Dst
}

// WarpArgs are the values of the lanes of Mask.
type WarpArgs struct {
	Mask uint32 // lanes executing together
	S    [26][32]uint64
	D    [8][32]uint64
	// Astray is a result of shfl only: the lanes of Mask whose source lane is in range and not in Mask. The manual
	// leaves their results undefined.
	Astray uint32
}

// Type is a PTX fundamental type.
type Type uint8

// The types.
const (
	NoType Type = iota
	Pred
	B8
	B16
	B32
	B64
	B128
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	F16x2
	BF16
	BF16x2
	F32
	F64
	U16x2
	S16x2
	TF32
	F32x2
	U8x4
	S8x4
	E4M3x2
	E5M2x2
	E2M3x2
	E3M2x2
	E2M1x2
	UE8M0x2
	S2F6x2
)

// OperandKind is the kind of a decoded operand.
type OperandKind uint8

// The operand kinds.
const (
	Sink        OperandKind = iota // `_`: result discarded, or an absent optional operand
	Reg                            // register slot Reg; Not: a negated predicate
	Imm                            // Imm, raw bits in the operand's type
	SpecialReg                     // Special
	GlobalAddr                     // address of Var (global or const) in its own space + Imm
	GenericAddr                    // generic address of Var + Imm
	SharedAddr                     // offset of shared Var in the shared window + Imm
	LocalAddr                      // offset Imm in the local frame of the function
	ParamAddr                      // offset Imm in the parameter frame of the function
	FuncAddr                       // Func, as a code address
)

// Operand is one flattened operand.
type Operand struct {
	Kind    OperandKind
	Not     bool
	Size    uint8 // Reg: bytes of the register's type, 0 for a predicate; a load extends its value to it (Type.Extend)
	Special SpecialID
	Reg     int32 // first 8-byte slot in the frame's registers
	Imm     uint64
	Var     *Var
	Func    *Func
}

// SpecialID names a special register component, "%tid.x" and so on; the isa package lists them.
type SpecialID uint8

// CmpOp, Rounding and the like are small enumerations of modifiers; see mods.go.
type (
	// CmpOp is a comparison operator of set, setp.
	CmpOp uint8
	// Rounding is a rounding modifier.
	Rounding uint8
	// Op is a sub-operation: and/or/xor of setp, add/cas/... of atom, idx/up/down/bfly of shfl, any/all/ballot of vote,
	// sync/arrive of bar and popc/and/or of bar.red.
	Op uint8
	// Mode is a modifier of one row only.
	Mode uint8
)

// Inst is one decoded instruction.
type Inst struct {
	Row      *Row
	Class    Class                                   // Row.Class, except that a Pure instruction that reads a special register is Special
	Eval     Eval                                    // Pure, Special
	RMW      func(in *Inst, old, b, c uint64) uint64 // Atomic: the new value of an element; cas: b compared, c new
	Lanes    func(in *Inst, w *WarpArgs)             // Warp, Matrix, Tile
	Source   *ptx.Inst
	File     *ptx.Module // the module Source is in
	Loc      int32       // index in Func.Locs, -1 if no .loc precedes it
	Guard    int32       // register slot of the guard predicate, -1 for none
	GuardNot bool

	Type     Type // the instruction type: the (first) type suffix
	Type2    Type // the second type suffix: source type of cvt, set, ...
	Cmp      CmpOp
	Op       Op
	Round    Rounding
	Ftz      bool
	Sat      bool
	Approx   bool
	Full     bool
	Hi       bool     // mul.hi, mad.hi
	Wide     bool     // mul.wide, mad.wide
	CarryIn  bool     // addc, subc, madc
	CarryOut bool     // .cc
	Mode     Mode     // row-specific: prmt mode, shf .clamp/.wrap, testp kind, ...
	Aligned  bool     // Barrier: bar, or barrier.aligned; Matrix: always
	Mods     []string // every modifier, in the order of the form; see Has

	// Word says that a load or an atomic operation may exceed the end of an allocation that contains the first byte of
	// its word: see words.
	Word bool

	// Object is the static shared variable that a load, a store or an atomic operation accesses, and nil if it is not
	// known: see objects.
	Object *Var

	// Copies says that the result of a load is only stored again.
	Copies bool

	// Made says that the compiler generated the instruction for a statement as a whole: its .loc has line 0. An example
	// is the loop that copies a structure.
	Made bool

	// Tool says that the instruction belongs to a function that instrumentation added to the program.
	Tool bool

	Space event.Space // memory classes; Generic to be resolved by address
	Order event.Order
	Scope event.Scope
	Vec   uint8 // elements of a vector access, matrices of a Matrix, 1 otherwise

	// Dst and Src are flattened: vectors and pairs are spread, an absent optional operand is a Sink, a 128-bit register
	// is two operands. Memory classes: Src[0] is the base address (Reg, Imm, GlobalAddr, SharedAddr, LocalAddr,
	// ParamAddr) to which Off is added, and values follow. Barrier: Src is barrier, thread count or Sink, predicate of
	// bar.red or Sink. WarpBarrier: Src[0] is the mask. Branch: Src[0] is the index of brx.idx. Call: Src[0] is the
	// address called, if Callee is nil. Warp: the last Src of the .sync forms is the member mask. With Row.Whole it is
	// the mask of all lanes, which the PTX does not contain. Matrix and Tile: the same, and Src[0] is the address to
	// which Off is added; the registers that Tile stores follow. Lanes reads and writes the pieces of a Tile, two words
	// each: those of the first round, then those of the next.
	Dst, Src []Operand

	sources int // number of operands of the form that are read: distinguishes two-operand from three-operand forms in Bind

	Off  int64 // memory classes: offset added to the address
	Off2 int64 // Copy: offset added to the source's address
	Off3 int64 // Copy: offset added to the mbarrier's address
	// Copy: Multicast is the index of the source that is the mask of the blocks to which a bulk copy writes, 0 for
	// none. Coordinates is the number of coordinates of a tensor copy, and Offsets the number of offsets of its im2col
	// mode, which follow them.
	Multicast, Coordinates, Offsets int
	Tiles                           *Tiles // Tile
	Wgmma                           *Wgmma // Warpgroup: of wgmma.mma_async
	Core                            *Core  // Warpgroup, Copy: of tcgen05
	// Touch is, for OpTouch, the accesses of the next instruction to registers of matrix operations.
	Touch   *Touch
	Texel   *Texel  // Texture
	Ignores bool    // Copy: the last source is a predicate; if it is set nothing is read
	Reduce  Op      // Copy: the operation of cp.reduce.async.bulk, NoOp for a plain copy
	Targets []int32 // Branch: instruction indices
	Callee  *Func   // Call: direct
	CallSig *Signature
	// Call: ArgOps and RetOps are the actual operands: Reg or ParamAddr (a .param variable of this function).
	ArgOps, RetOps []Operand
	// Call: candidate callees of an indirect call if listed; nil if any function of that signature may be meant.
	Callees []*Func
}

// Signature is the shape of a function's parameters.
type Signature struct {
	Rets, Params []Param
}

// Param is a formal parameter. A .reg parameter that takes several slots, a vector register or one of 128 bits, is as
// many parameters.
type Param struct {
	Name  string
	Type  Type
	Off   int // in the parameter frame; -1 for a .reg parameter
	Size  int // bytes
	Align int
	Reg   int32 // slot of a .reg parameter; -1 otherwise
	Vec   int   // for the first parameter of such a register: the number of its parameters; 0 otherwise
}

// Register is the register of a .reg parameter, as an operand of the function.
func (p *Param) Register() Operand {
	return Operand{Kind: Reg, Reg: p.Reg, Size: p.Type.RegisterSize()}
}

// Var is a module- or function-scope variable in global, const or shared space.
type Var struct {
	Index   int // in Module.Vars
	Name    string
	Decl    *ptx.Var
	Space   event.Space
	Size    int64 // bytes; 0 for an extern array of unknown size
	Align   int64
	Linkage ptx.Linkage
	Managed bool
	Dynamic bool    // extern shared: placed after the static shared variables
	Init    []byte  // nil: zero; may be shorter than Size, the rest is zero
	Relocs  []Reloc // addresses inside Init
	In      *Func   // function scope; nil at module scope
}

// Reloc requests the address of a symbol inside an initialiser, as a generic address or one in the symbol's space.
type Reloc struct {
	At      int // byte offset in Init
	Size    int // bytes, 8 unless a mask() narrows it
	Shift   uint
	Generic bool
	Var     *Var
	Func    *Func
	Add     int64
}

// Loc is a source place, inlined calls included.
type Loc struct {
	File     string
	Line     int
	Column   int
	Function string // function of an inlined frame; "" for the enclosing PTX function
	At       *Loc   // the place where it was inlined; nil at the outermost level
}

// Func is a decoded function.
type Func struct {
	Index      int // in Module.Funcs
	Name       string
	Entry      bool
	Decl       *ptx.Func
	Sig        Signature
	NoReturn   bool
	Builtin    string // name of a function the engine supplies (vprintf, malloc, free, __assertfail, ...); no body
	Regs       int    // register slots of 8 bytes
	ParamFrame int    // bytes: own parameters and results, and .param variables of call sequences
	LocalFrame int    // bytes of .local variables, a multiple of 16
	Insts      []Inst
	Locs       []Loc
	// Spills are parameters whose address is taken. They are in the local frame; the engine copies them there when the
	// function is entered. Only device functions have them: a kernel's parameters have addresses in the param window.
	Spills []Spill
	// Err holds the errors in the body (a ptx.ErrorList). Such a function must not run. See Module.Check.
	Err error
	// Rank orders instructions for reconvergence: among the lanes of a warp in this function, those with the smallest
	// Rank run first. It is a weak topological order: every block of a loop precedes the blocks after the loop.
	Rank []int32
	// IPDom is, for a Branch instruction, the index of the first instruction of its immediate post-dominator block, -1
	// if there is none (exit). Indexed by instruction; 0 for others.
	IPDom []int32

	MaxThreads int        // .maxntid product; 0 when absent
	ReqThreads event.Dim3 // .reqntid; zero when absent
	Cluster    event.Dim3 // .reqnctapercluster; zero when absent
	MaxCluster int        // .maxclusterrank, CTAs; 0 when absent
	// ExplicitCluster is .explicitcluster: launches must specify a cluster shape.
	ExplicitCluster bool
	Called          bool    // engines must not inline it although they could: it is called so often that its copies would be expensive
	Calls           []*Func // direct callees, and the possible targets of indirect calls: listed, or with its signature and address-taken
}

// Spill is a parameter in the local frame.
type Spill struct {
	Param, Local int // byte offsets in the parameter frame and the local frame
	Size         int
}

// Module is a decoded program: one module, or several linked.
type Module struct {
	Name   string
	Source []*ptx.Module
	Funcs  []*Func
	Vars   []*Var
	ByName map[string]*Func // visible names first; aliases included
}

// Kernels lists the entries in source order.
func (m *Module) Kernels() []*Func {
	var ks []*Func
	for _, f := range m.Funcs {
		if f.Entry {
			ks = append(ks, f)
		}
	}
	return ks
}

// Decode (decode.go) checks a parsed module and decodes it:
//
//	func Decode(ms ...*ptx.Module) (*Module, error)
//
// The error is a ptx.ErrorList of errors at module level. Errors inside a function (an unknown instruction, form, type
// or name) are in Func.Err, so that one unusual kernel does not prevent the use of the others.
//
// Check (layout.go) returns the errors of everything that a kernel can reach, including undefined functions. Call it
// before a launch:
//
//	func (m *Module) Check(kernel *Func) error
//
// SharedLayout (layout.go) places the shared variables that a kernel can reach:
//
//	func (m *Module) SharedLayout(kernel *Func) *Shared
//
// Shared holds the offset of each variable in the shared window of the kernel.
type Shared struct {
	Offset []int64 // by Var.Index; -1 if not reachable
	// Reserved is the number of bytes at the beginning of the window that belong to the system software: ReservedShared
	// if the kernel can reach a %reserved_smem_offset register, otherwise 0.
	Reserved int64
	Static   int64 // bytes of static shared memory, as the API reports it: without the reserved ones
	Dynamic  int64 // offset at which dynamic shared memory begins
}
