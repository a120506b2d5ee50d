// Package isa is the instruction table: one row is the instruction. It checks a parsed PTX module against the table
// and turns it into the decoded form the engines run: names resolved, operands flattened, control flow laid out.
package isa

import (
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// Class says which part of an engine executes a row.
type Class uint8

// The classes.
const (
	Pure        Class = iota // Row.Eval, lane by lane: registers to registers
	Special                  // Pure, but reads a special register or clock that the engine supplies
	Load                     // ld, ldu: Inst.Space, Order, Scope, Vec, Type
	Store                    // st
	Atomic                   // atom, red: Row.RMW
	Fence                    // fence, membar
	Barrier                  // bar, barrier (CTA): Inst.BarOp
	Warp                     // Row.Lanes: needs the whole warp: shfl, vote, match, redux, activemask; WarpBarrier excepted
	WarpBarrier              // bar.warp.sync
	Branch                   // bra, brx.idx
	Call                     // call
	Ret                      // ret
	Exit                     // exit
	Trap                     // trap, brkpt
	Hint                     // prefetch, nanosleep, discard, pragma-like: no effect on values or order
)

// Row is an instruction: everything known about an opcode stands here.
type Row struct {
	Op    string // "add"
	Forms []Form // the accepted spellings, in the manual's notation
	Class Class
	Doc   string     // the manual's section, "9.7.1.1 Integer Arithmetic: add"
	Event event.Kind // the event it makes, None for most
	Eval  func(in *Inst, a *Args)
	RMW   func(in *Inst, old, b, c uint64) uint64 // Atomic: the new value
	Lanes func(in *Inst, w *WarpArgs)
}

// Form is one accepted spelling of a row: modifiers in the manual's notation and the operand shape.
// The isa package owns its grammar; see table.go.
type Form struct {
	Syntax string // ".lo.type d, a, b" and the like
}

// Args are the values of one lane: raw bits, zero-extended to 64. A 128-bit value takes two entries, low first.
type Args struct {
	S [8]uint64 // sources, in the order of Inst.Src
	D [4]uint64 // results, in the order of Inst.Dst
}

// WarpArgs are the values of the lanes of Mask.
type WarpArgs struct {
	Mask uint32 // lanes executing together
	S    [4][32]uint64
	D    [2][32]uint64
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
)

// OperandKind says what an operand is after decoding.
type OperandKind uint8

// The operand kinds.
const (
	Sink        OperandKind = iota // `_`: result thrown away, or an absent optional operand
	Reg                            // register slot Reg; Not: a negated predicate; Neg: unary minus
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
	Neg     bool
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
	// CmpOp is a comparison operator of set, setp, slct.
	CmpOp uint8
	// Rounding is a rounding modifier.
	Rounding uint8
	// Op is a sub-operation: and/or/xor of setp, add/cas/... of atom, idx/up/down/bfly of shfl, any/all/ballot of vote.
	Op uint8
)

// Inst is one decoded instruction.
type Inst struct {
	Row      *Row
	Source   *ptx.Inst
	Loc      int32 // index in Func.Locs, -1 when no .loc stands before it
	Guard    int32 // register slot of the guard predicate, -1 for none
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
	Hi       bool  // mul.hi, mad.hi
	Wide     bool  // mul.wide, mad.wide
	CarryIn  bool  // addc, subc, madc
	CarryOut bool  // .cc
	Mode     uint8 // row-specific: prmt mode, shf.l/.r and .clamp/.wrap, testp kind, cvt.pack, ...

	Space event.Space // memory classes; Generic to be resolved by address
	Order event.Order
	Scope event.Scope
	Vec   uint8 // elements of a vector access, 1 otherwise

	Dst []Operand // flattened: vectors and pairs spread
	Src []Operand // flattened; memory classes: Src[0] is the base address and Off is added, values follow

	Off     int64   // memory classes: offset added to the address
	Targets []int32 // Branch: instruction indices
	Callee  *Func   // Call: direct
	CallSig *Signature
	// Call: ArgOps and RetOps are the actual operands: Reg or ParamAddr (a .param variable of this function).
	ArgOps, RetOps []Operand
	// Call: candidate callees of an indirect call when listed; nil when any function of that signature may be meant.
	Callees []*Func
}

// Signature is the shape of a function's parameters.
type Signature struct {
	Rets, Params []Param
}

// Param is a formal parameter.
type Param struct {
	Name  string
	Type  Type
	Off   int // in the parameter frame; -1 for a .reg parameter
	Size  int // bytes
	Align int
	Reg   int32 // slot of a .reg parameter; -1 otherwise
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
	Dynamic bool    // extern shared: lies after the static shared variables
	Init    []byte  // nil: zero
	Relocs  []Reloc // addresses inside Init
	In      *Func   // function scope; nil at module scope
}

// Reloc asks for the address of a symbol inside an initialiser, as a generic address or one in the symbol's space.
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
	At       *Loc   // where it was inlined; nil at the outermost level
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
	// Rank orders instructions for reconvergence: among the lanes of a warp in this function those with the smallest
	// Rank run first. It is a weak topological order: every block of a loop stands before the blocks after the loop.
	Rank []int32
	// IPDom is, for a Branch instruction, the index of the first instruction of its immediate post-dominator block,
	// -1 when there is none (exit). Indexed by instruction; 0 for others.
	IPDom []int32

	MaxThreads int        // .maxntid product; 0 when absent
	ReqThreads event.Dim3 // .reqntid; zero when absent
	Calls      []*Func    // direct callees, and all address-taken functions when it calls indirectly
}

// Module is a decoded module.
type Module struct {
	Name   string
	Source *ptx.Module
	Funcs  []*Func
	Vars   []*Var
	ByName map[string]*Func
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
// The error is a ptx.ErrorList with every unknown instruction, form, type or name, by place.
//
// SharedLayout (layout.go) places the shared variables a kernel can reach:
//
//	func (m *Module) SharedLayout(kernel *Func) *Shared
//
// Shared gives the offset of each variable in the shared window of the kernel.
type Shared struct {
	Offset  []int64 // by Var.Index; -1 when not reachable
	Static  int64   // bytes of static shared memory, as the API reports it
	Dynamic int64   // offset where dynamic shared memory begins
}
