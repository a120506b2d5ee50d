// Package opt holds the internal form of kernels and the access-preserving optimiser.
//
// The form is SSA over the lanes of a warp: a Value is one register of 1, 32 or 64 bits a lane. A kernel and its
// inlined calls are one Func. Functions that are recursive, called through pointers, or too large are not inlined; each
// is a Func of its own.
//
// Every pass obeys one law: it does not remove, merge, split, widen, invent or reorder any memory access, atomic,
// barrier, fence, vote, shuffle or call, and each keeps its source place (Site). Only pure computations may be removed
// or moved.
package opt

import (
	"fencepost.dev/fencepost/internal/isa"
)

// Value names a value: an index in Func.Values. NoValue is the absence of one.
type Value int32

// NoValue stands for an absent operand or result.
const NoValue Value = -1

// Width is the size of a value's register. Predicates have one bit a lane; narrow integers are in 32 bits. A value
// holds raw bits, zero above those that its instruction defines (see isa.Args).
type Width uint8

// The widths.
const (
	W1 Width = iota
	W32
	W64
)

// Bits is the number of bits of the register.
func (w Width) Bits() int { return [...]int{1, 32, 64}[w] }

// Mask is the register with all bits set.
func (w Width) Mask() uint64 { return [...]uint64{1, 1<<32 - 1, 1<<64 - 1}[w] }

// Op is an operation. The integer operations of address arithmetic are native, so that passes can reason about them.
// Every other pure instruction is Row and carries its isa.Inst.
type Op uint8

// The operations. w is the width of the result unless said otherwise.
const (
	Nop Op = iota
	// Values.
	Phi      // Args[i] comes from Block.Preds[i]
	Const    // Imm
	Special  // special register isa.SpecialID(Imm)
	KParam   // Imm: byte offset in the kernel's parameter block, Aux bytes, zero-extended
	Symbol   // address of Sym, fixed when the program is loaded
	LocalPtr // address Imm in the thread's local memory, as an address of local space
	Copy     // Args[0]
	// Native integer arithmetic, modulo 2^w.
	Add
	Sub
	Mul
	And
	Or
	Xor
	Not
	Shl  // by Args[1] (any width, unsigned); 0 at w and more
	ShrU // 0 at w and more
	ShrS // sign at w and more
	MulU // 32 x 32 to 64 bits, unsigned
	MulS // 32 x 32 to 64 bits, signed
	SExt // low Imm bits of Args[0], sign-extended to w
	ZExt // low Imm bits of Args[0], zero-extended to w
	Cmp  // W1: Args[0] Cond(Imm) Args[1], both of Aux bits
	Sel  // Args[0] (W1) ? Args[1] : Args[2]
	// Every other pure instruction: Dst are the results of Inst.Eval over Args (one argument for each of Inst.Src).
	Row

	// Effects. They keep their order in the block. Guard (W1; NoValue: always) says which lanes take part. The results
	// of the other lanes are undefined; the builder selects the old value if it is needed.
	Load    // Args[0]: address (Imm is added), results Dst
	Store   // Args[0]: address, Args[1:]: the values
	Atomic  // Args[0]: address, Args[1:]: operands; Dst: old values, none for red
	Fence   // Inst.Order, Inst.Scope
	Barrier // Args: as Inst.Src
	Warp    // shuffles, votes, matches, matrices (Imm is added to the address): Args as Inst.Src
	WarpBar // Args[0]: mask
	Builtin // Fn.Builtin called with Args (Pieces of each parameter); Dst: its result
	// Call calls Fn, or, if Fn is nil, the function at address Args[0] (NoValue otherwise). The other Args are the
	// parts of the parameters (see ParamParts), Dst those of the results. A lane whose call is a fault has results of
	// 0.
	Call
	Enter // in the entry block of a called function: Dst are the parts of its parameters
	Depth // the inlined call of Fn: a fault if the call stack is full
	// Of Env.Uninit: see shadow.go.
	ShadowLoad    // Args[0]: address, as of the preceding load, whose Imm, Guard and Inst it shares; Dst: shadows of its results
	ShadowStore   // Args[0]: address, as of the preceding store; Args[1:]: shadows of its values
	ShadowShuffle // Args: the shadow of the exchanged value, and the rest as of the preceding shfl; Dst: that of its first result
	ShadowPass    // Args: the shadows of the values that the following call or return passes
	ShadowTake    // Dst: the shadows of the values that the preceding call or entry receives
	ShadowFrame   // Args[0]: the start of Imm bytes of local memory that become uninitialised, at the start of a call
	Undefined     // Args[0] (W1): lanes in which the use Aux (Why) depends on an unwritten value; Imm: 1 plus the site where that was loaded
	Meet          // Env.Lockstep: the lanes that diverged at a Branch or Switch of the same Imm reconverge here

	// Terminators. With Env.Lockstep, Imm of Branch and Switch is the Meet at which the lanes that diverge here reconverge
	// (NoMeet: at none), and Aux of Branch is the index in Succs of the block that follows it in the source.
	Jump   // to Succs[0]
	Branch // Args[0] (W1) ? Succs[0] : Succs[1]
	Switch // Succs[Args[0]]; out of range is a fault
	Exit
	Trap
	Return // from a function that is called; Args: the parts of its results
)

// Cond is the condition of Cmp.
type Cond uint8

// The conditions. The letters after the name: S signed, U unsigned.
const (
	EQ Cond = iota
	NE
	LTS
	LES
	GTS
	GES
	LTU
	LEU
	GTU
	GEU
)

// Instr is one operation.
type Instr struct {
	Op       Op
	GuardNot bool
	Aux      uint8
	Elem     uint8 // Load, Atomic: bytes of the element accessed, at the address in the last of Args; 0: all. See AttachElements
	Site     int32 // index in Func.Sites; -1 if the instruction stands for no source instruction
	Guard    Value
	Dst      []Value
	Args     []Value
	Imm      uint64
	Inst     *isa.Inst    // Row and the effects: modifiers and semantics
	Sym      *isa.Operand // Symbol
	Fn       *isa.Func    // Builtin, Call, Depth
	Block    *Block
}

// Result is the only result of the instruction.
func (i *Instr) Result() Value { return i.Dst[0] }

// Block is a basic block. Phis come first, the terminator last.
type Block struct {
	ID     int // index in Func.Blocks
	Instrs []*Instr
	Preds  []*Block
	Succs  []*Block
}

// Term is the terminator.
func (b *Block) Term() *Instr { return b.Instrs[len(b.Instrs)-1] }

// ValueInfo is the knowledge about a value.
type ValueInfo struct {
	Width Width
	Def   *Instr // nil if the value has been removed
	Shape Shape
}

// Shape says how a value varies over the lanes that compute it together.
type Shape struct {
	Kind   ShapeKind
	Stride int64 // Affine: difference between neighbouring lanes of a row
	Row    int64 // Affine, where a warp has several rows (Env.RowLanes): difference between one row and the next
}

// ShapeKind is the kind of a Shape.
type ShapeKind uint8

// The shapes, from most to least known.
const (
	Unknown ShapeKind = iota // not analysed, or unreachable
	Uniform                  // equal in all lanes
	Affine                   // base + lane%RowLanes*Stride + lane/RowLanes*Row, modulo 2^w
	Varying
)

// Site is the source place of an instruction: an instruction of a function and the chain of inlined calls that lead to
// it.
type Site struct {
	Call int32 // site of the call that was inlined; -1 in the Func's own function
	Fn   *isa.Func
	At   int32 // index in Fn.Insts
}

// Func is a kernel, or a function that is not inlined, in internal form.
type Func struct {
	Fn     *isa.Func
	Blocks []*Block // Blocks[0] is the entry; in weak topological order after Order
	Values []ValueInfo
	Sites  []Site
	Local  int // bytes of local memory of a thread and call, before promotion
	// Frames are the ranges of local memory that belong to one instance of a function.
	Frames [][2]uint64
	// Env is what the kernel was specialised for.
	Env Env
	// Calls are the possible targets of its calls, without the functions that the engine supplies.
	Calls []*isa.Func
	// free holds the values that are treated as Varying whatever their arguments are; see AnalyseShapes.
	free map[Value]bool
	// For lockstep. apart says that lanes may reach a place at different times although the branches alone would keep
	// them together. ownMemory says that generic addresses may be local ones.
	apart, ownMemory bool
}

// Env is the knowledge about the launches that will run a Func. Block and grid shapes are constants of the form, so
// that address arithmetic can be folded and shown not to wrap. A Grid of zeros is unknown.
type Env struct {
	Block, Grid [3]uint32
	Shared      *isa.Shared
	// Lockstep says that lanes that have diverged reconverge at the immediate post-dominator in the source, and only there,
	// as on hardware before Volta. Every branch of the source at which lanes may diverge is kept, and so is every place
	// at which they reconverge (Meet).
	Lockstep bool
	// Uninit says that uses of unwritten values are reported; see shadow.go.
	Uninit bool
}

// NoMeet is the Imm of a branch whose lanes do not reconverge.
const NoMeet = ^uint64(0)

// RowLanes is the number of lanes of a warp that have the same tid.y and tid.z, and 32 if all lanes have or if no such
// number exists.
func (e *Env) RowLanes() int64 {
	if x := e.Block[0]; x < 32 && x > 0 && 32%x == 0 && e.Block[1]*e.Block[2] > 1 {
		return int64(x)
	}
	return 32
}

// NewValue makes a value of the given width, to be defined by def.
func (f *Func) NewValue(w Width, def *Instr) Value {
	f.Values = append(f.Values, ValueInfo{Width: w, Def: def})
	return Value(len(f.Values) - 1)
}

// Width returns the width of v.
func (f *Func) Width(v Value) Width { return f.Values[v].Width }

// Def returns the instruction that defines v.
func (f *Func) Def(v Value) *Instr { return f.Values[v].Def }

// ConstOf returns the value of v if v is a constant.
func (f *Func) ConstOf(v Value) (uint64, bool) {
	if d := f.Values[v].Def; d != nil && d.Op == Const {
		return d.Imm, true
	}
	return 0, false
}

// Pure reports whether the operation only computes its results from its arguments. Such an instruction may be removed,
// shared and moved. KParam and Symbol are constants of the launch. Special is pure unless it reads a clock.
func (i *Instr) Pure() bool {
	if i.Op == Special {
		switch id := isa.SpecialID(i.Imm); id {
		case isa.Clock, isa.ClockHi, isa.Clock64, isa.GlobalTimer, isa.GlobalTimerLo, isa.GlobalTimerHi:
			return false
		}
		return true
	}
	return i.Op >= Phi && i.Op <= Row
}
