// Package loader makes modules executable: it gives variables addresses in the memory of a device, and resolves the
// operands of instructions for a kernel.
package loader

import (
	"fmt"
	"sync"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
)

// The windows of the generic address space. Each has a tag in the top byte, so that no host pointer is in a window.
const (
	WindowShift  = 56
	SharedWindow = 1 << WindowShift
	LocalWindow  = 2 << WindowShift
	ParamWindow  = 3 << WindowShift
	codeWindow   = 4 << WindowShift
)

// What a lane accesses in a matrix instruction, in bytes: a row, and an element of it.
const (
	MatrixRow     = 16
	MatrixElement = 2
)

// Program is a module loaded into the memory of a device: its variables have addresses.
type Program struct {
	Module *isa.Module
	Memory *devmem.Memory

	id    uint32
	addrs []uint64 // indexed by Var.Index; 0 for shared variables
	owned []uint64 // addresses to free

	mu     sync.Mutex
	images map[*isa.Func]*Image
	consts map[string]uint64 // texts of the device runtime
	kept   sync.Map
}

// Keep returns a value that an engine keeps with the program, under a key of a type of its own. make makes the value on
// first use.
func (p *Program) Keep(key any, make func() any) any {
	if v, ok := p.kept.Load(key); ok {
		return v
	}
	v, _ := p.kept.LoadOrStore(key, make())
	return v
}

// Load places the __device__, __constant__ and __managed__ variables of mod in mem and initialises them.
func Load(mod *isa.Module, mem *devmem.Memory) (*Program, error) {
	p := &Program{Module: mod, Memory: mem, id: mem.NextProgram(), addrs: make([]uint64, len(mod.Vars)), images: map[*isa.Func]*Image{}}
	for _, v := range mod.Vars {
		if v.Space != event.Global && v.Space != event.Const {
			continue
		}
		kind := devmem.ModuleAlloc
		if v.Managed {
			kind = devmem.ManagedAlloc
		}
		addr, err := mem.Alloc(uint64(v.Size), uint64(v.Align), kind, v.Name)
		if err != nil {
			p.Unload()
			return nil, fmt.Errorf("place variable %s (%d bytes): %w", v.Name, v.Size, err)
		}
		p.addrs[v.Index] = addr
		p.owned = append(p.owned, addr)
	}
	for _, v := range mod.Vars {
		if p.addrs[v.Index] == 0 {
			continue
		}
		if err := p.initialise(v); err != nil {
			p.Unload()
			return nil, err
		}
	}
	return p, nil
}

// initialise writes the initial value of v, with addresses resolved.
func (p *Program) initialise(v *isa.Var) error {
	data, err := p.Memory.Bytes(p.addrs[v.Index], uint64(v.Size))
	if err != nil {
		return fmt.Errorf("initialise variable %s: %w", v.Name, err)
	}
	copy(data, v.Init)
	for _, r := range v.Relocs {
		var addr uint64
		switch {
		case r.Func != nil:
			addr = p.FuncAddr(r.Func)
		case r.Var.Space == event.Shared:
			return fmt.Errorf("initialise variable %s: the address of shared variable %s is not a constant", v.Name, r.Var.Name)
		default:
			addr = p.addrs[r.Var.Index]
		}
		addr = (addr + uint64(r.Add)) >> r.Shift
		if r.At < 0 || r.At+r.Size > len(data) {
			return fmt.Errorf("initialise variable %s: an address at byte %d of %d", v.Name, r.At, len(data))
		}
		devmem.PutUint(data[r.At:r.At+r.Size], addr)
	}
	if v.Space == event.Const {
		p.Memory.SetConst(p.addrs[v.Index])
	}
	return nil
}

// Unload frees the program's variables.
func (p *Program) Unload() {
	for _, a := range p.owned {
		// Nobody else can have freed them: their addresses are not from cudaMalloc, and the API refuses to free one for
		// a program.
		_, _ = p.Memory.Free(a)
	}
	p.owned = nil
}

// Kernel returns the entry with a name; nil if there is none.
func (p *Program) Kernel(name string) *isa.Func {
	if f := p.Module.ByName[name]; f != nil && f.Entry {
		return f
	}
	return nil
}

// Symbol returns the address and the size of a __device__, __constant__ or __managed__ variable.
func (p *Program) Symbol(name string) (addr, size uint64, ok bool) {
	for _, v := range p.Module.Vars {
		if v.Name == name && p.addrs[v.Index] != 0 {
			return p.addrs[v.Index], uint64(v.Size), true
		}
	}
	return 0, 0, false
}

// Address returns the address in global memory of a variable of the program's module; 0: it has none.
func (p *Program) Address(v *isa.Var) uint64 { return p.addrs[v.Index] }

// SharedVar returns the name and the offset of the shared variable of kernel that covers offset off of its window.
func (p *Program) SharedVar(kernel *isa.Func, off uint64) (name string, at uint64, ok bool) {
	layout := p.Image(kernel).Layout
	if off < uint64(layout.Reserved) {
		return "reserved shared memory", 0, true
	}
	for i, v := range p.Module.Vars {
		if i >= len(layout.Offset) || layout.Offset[i] < 0 || v.Space != event.Shared {
			continue
		}
		begin := uint64(layout.Offset[i])
		if v.Dynamic && off >= begin || off-begin < uint64(v.Size) {
			return v.Name, begin, true
		}
	}
	if off >= uint64(layout.Dynamic) {
		return "dynamic shared memory", uint64(layout.Dynamic), true
	}
	return "", 0, false
}

// FuncAddr returns the address of a function as kernels see it.
func (p *Program) FuncAddr(f *isa.Func) uint64 {
	return codeWindow | uint64(p.id)<<32 | uint64(f.Index)
}

// FuncAt returns the function at an address; nil if there is none.
func (p *Program) FuncAt(addr uint64) *isa.Func {
	i := addr & 0xffff_ffff
	if addr&^0xffff_ffff != codeWindow|uint64(p.id)<<32 || i >= uint64(len(p.Module.Funcs)) {
		return nil
	}
	return p.Module.Funcs[i]
}

// ConstText returns the address of a text in memory of the program; 0 if there is no memory for it.
func (p *Program) ConstText(text string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr, ok := p.consts[text]; ok {
		return addr
	}
	addr, data, err := p.own(uint64(len(text)+1), 1, "a text of the device runtime")
	if err != nil {
		return 0
	}
	copy(data, text)
	data[len(text)] = 0
	p.Memory.SetConst(addr)
	if p.consts == nil {
		p.consts = map[string]uint64{}
	}
	p.consts[text] = addr
	return addr
}

// Own allocates memory that the program has until it is unloaded.
func (p *Program) Own(size, align uint64, name string) (addr uint64, data []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own(size, align, name)
}

func (p *Program) own(size, align uint64, name string) (addr uint64, data []byte, err error) {
	if addr, err = p.Memory.Alloc(size, align, devmem.DeviceAlloc, name); err != nil {
		return 0, nil, err
	}
	if data, err = p.Memory.Bytes(addr, size); err != nil {
		panic("BUG: " + err.Error())
	}
	p.owned = append(p.owned, addr)
	return addr, data, nil
}

// Image is a kernel with all functions that it can call, with operands resolved.
type Image struct {
	Program *Program
	Layout  *isa.Shared
	mu      sync.Mutex
	codes   map[*isa.Func]*Code
	// Properties of the kernel's code, see event.Launch.
	Synchronises, Swaps, NonCoherentLoad, Bulk bool
	// Communicates: see isa.Func. Cancels says that blocks may cancel other blocks that have not begun.
	Communicates, Cancels bool

	found    sync.Once
	elements opt.Elements
}

// ElementsOf returns the elements of the image's kernel.
func (img *Image) ElementsOf(kernel *isa.Func) opt.Elements {
	img.found.Do(func() {
		// A kernel that opt cannot express has none: its accesses are those of the instructions.
		img.elements, _ = opt.FindElements(kernel, img.Layout)
	})
	return img.elements
}

// Image returns the resolved form of a kernel.
func (p *Program) Image(kernel *isa.Func) *Image {
	p.mu.Lock()
	defer p.mu.Unlock()
	img := p.images[kernel]
	if img == nil {
		img = &Image{Program: p, Layout: p.Module.SharedLayout(kernel), codes: map[*isa.Func]*Code{},
			Synchronises: kernel.Synchronises(), Swaps: kernel.Swaps(),
			NonCoherentLoad: kernel.Any((*isa.Inst).NonCoherent), Bulk: kernel.Any((*isa.Inst).Bulk),
			Communicates: kernel.Communicates() || kernel.ReadsClocks(), Cancels: kernel.Any(func(in *isa.Inst) bool { return in.Op == isa.OpTryCancel })}
		p.images[kernel] = img
	}
	return img
}

// Code is a function with operands resolved for one kernel.
type Code struct {
	Func   *isa.Func
	Insts  []Instr
	Params int // size in bytes of a kernel's own parameters; 0 for other functions
}

// Instr is an instruction with resolved operands.
type Instr struct {
	*isa.Inst
	Operands []Operand
	// If all sources are registers and constants (Plain), Fixed and Regs are the sources in another form: Fixed holds
	// the constants, Regs the registers.
	Plain   bool
	Fixed   [8]uint64
	Regs    []Slot
	Results []Slot // results that are used
	// For memory instructions, in bytes: the size of an access, and the size of the piece in one operand.
	Width, Piece uint64
	Offset       uint64 // added to the address
	// Bounds in shared memory of the variable that is accessed; 0, 0 if it is not known.
	VarBegin, VarEnd uint64
	// Element, for engine warp, is the size of the element that an access uses, whose address is the last source; 0:
	// none.
	Element         uint8
	NonCoherentLoad bool
	// Masked says that the last source of a Warp, Matrix or Tile instruction is a member mask.
	Masked bool
	// Actuals are the actual parameters of a call. Those in .param variables are read from the frame.
	Actuals []Operand
}

// Strong reports whether in is an access that others may synchronise with.
func (in *Instr) Strong() bool {
	return in.Class == isa.Atomic || (in.Class == isa.Load || in.Class == isa.Store) && in.Order != event.Weak
}

// Releases reports whether in is a release operation.
func (in *Instr) Releases() bool {
	return in.Strong() && in.Order >= event.Release && in.Class != isa.Load
}

// unit returns the size of the elements of an access, each of which is an access of its own; 0 if there is only one.
func (in *Instr) unit() uint64 {
	switch {
	case in.Class == isa.Atomic && (in.Type == isa.F16x2 || in.Type == isa.BF16x2):
		return 2
	case in.Class == isa.Tile && in.Piece == in.Width:
		return 0
	case in.Vec > 1 || in.Class == isa.Matrix || in.Class == isa.Tile:
		return in.Piece
	}
	return 0
}

// Qualify sets the properties of an access event that follow from the instruction.
func (in *Instr) Qualify(e *event.Event) {
	if n := in.unit(); n != 0 {
		e.Flags |= event.FlagVector
		e.Aux = uint32(n)
	}
	if in.NonCoherentLoad && e.Space == event.Global {
		e.Flags |= event.FlagNonCoherent
	}
	if in.Copies {
		e.Flags |= event.FlagCopied
	}
	if in.Class == isa.Mbarrier && in.Op == isa.OpInit {
		e.Barrier = event.StoreInits
	}
}

// Pieces returns the number of requests that a memory instruction makes: one for each element of a vector.
func (in *Instr) Pieces() int { return int(in.Width / in.Piece) }

// Mnemonic returns the instruction with its modifiers, as in PTX.
func (in *Instr) Mnemonic() string {
	if in.Source == nil {
		return in.Row.Op
	}
	return in.Source.Op + in.Source.Mods
}

// Slot pairs an entry of isa.Args with a register.
type Slot struct {
	At, Reg int32
	Kind    OperandKind // for engine warp
}

// OperandKind says how a resolved operand gets its value.
type OperandKind uint8

// The kinds of operands.
const (
	OpConst OperandKind = iota // Val
	OpReg
	OpNotReg  // a negated predicate
	OpLocal   // Val + the local frame
	OpSpecial // special register

	// For engine warp. A value that over a group is uniform, or base + lane * val, or base + pattern val: base is the
	// scalar reg.
	OpUniform
	OpAffine32
	OpAffine64
	OpPattern32
	OpPattern64
	OpV32
	OpV64
	OpPred
)

// Operand is a source operand with everything resolved that is known before the launch.
type Operand struct {
	Kind    OperandKind
	Special isa.SpecialID
	Reg     int32
	Val     uint64
}

// Same reports whether the operand is the same for all lanes that execute the instruction together.
func (o *Operand) Same() bool { return o.Kind == OpConst || o.Kind == OpUniform }

// Code returns the resolved form of fn.
func (img *Image) Code(fn *isa.Func) *Code {
	img.mu.Lock()
	defer img.mu.Unlock()
	c := img.codes[fn]
	if c == nil {
		c = &Code{Func: fn, Insts: make([]Instr, len(fn.Insts))}
		if fn.Entry {
			c.Params = ParamBytes(fn)
		}
		for i := range fn.Insts {
			img.resolve(&c.Insts[i], &fn.Insts[i])
		}
		img.codes[fn] = c
	}
	return c
}

func (img *Image) resolve(to *Instr, in *isa.Inst) {
	to.Inst = in
	if in.Class == isa.Load || in.Class == isa.Store || in.Class == isa.Atomic {
		size := uint64(in.Type.Size())
		to.Width, to.Piece, to.Offset = size*uint64(max(in.Vec, 1)), min(size, 8), uint64(in.Off)
		to.NonCoherentLoad = in.NonCoherent()
		to.VarBegin, to.VarEnd = img.Object(in)
	}
	if in.Class == isa.Matrix {
		to.Width, to.Piece, to.Offset = MatrixRow, MatrixElement, uint64(in.Off)
	}
	if in.Class == isa.Tile {
		to.Width, to.Piece = in.Tiles.Piece, in.Tiles.Element
	}
	to.Masked = (in.Class == isa.Warp || in.Class == isa.Matrix || in.Class == isa.Tile || in.Class == isa.Warpgroup) && in.Has("sync")
	for i := range in.ArgOps {
		to.Actuals = append(to.Actuals, img.Operand(&in.ArgOps[i]))
	}
	to.Operands = make([]Operand, len(in.Src))
	to.Plain = len(in.Src) <= len(to.Fixed)
	for i := range in.Src {
		o := img.Operand(&in.Src[i])
		to.Operands[i] = o
		switch {
		case o.Kind == OpConst && i < len(to.Fixed):
			to.Fixed[i] = o.Val
		case o.Kind == OpReg:
			to.Regs = append(to.Regs, Slot{At: int32(i), Reg: o.Reg})
		default:
			to.Plain = false
		}
	}
	for i := range in.Dst {
		if in.Dst[i].Kind == isa.Reg {
			to.Results = append(to.Results, Slot{At: int32(i), Reg: in.Dst[i].Reg})
		}
	}
}

// Object returns the bounds of the shared variable that an instruction accesses; 0, 0 if it is not known.
func (img *Image) Object(in *isa.Inst) (begin, end uint64) {
	if in.Object == nil {
		return 0, 0
	}
	begin = uint64(img.Layout.Offset[in.Object.Index])
	return begin, begin + uint64(in.Object.Size)
}

// Operand resolves a source operand.
func (img *Image) Operand(o *isa.Operand) Operand {
	switch o.Kind {
	case isa.Reg:
		if o.Not {
			return Operand{Kind: OpNotReg, Reg: o.Reg}
		}
		return Operand{Kind: OpReg, Reg: o.Reg}
	case isa.SpecialReg:
		return Operand{Kind: OpSpecial, Special: o.Special}
	case isa.LocalAddr:
		return Operand{Kind: OpLocal, Val: o.Imm}
	case isa.FuncAddr:
		return Operand{Val: img.Program.FuncAddr(o.Func)}
	case isa.GlobalAddr, isa.GenericAddr, isa.SharedAddr:
		return Operand{Val: img.varAddr(o.Var, o.Kind == isa.GenericAddr) + o.Imm}
	default: // Sink, Imm, ParamAddr
		return Operand{Val: o.Imm}
	}
}

// varAddr returns the address of a variable.
func (img *Image) varAddr(v *isa.Var, generic bool) uint64 {
	if v.Space != event.Shared {
		return img.Program.addrs[v.Index]
	}
	off := uint64(img.Layout.Dynamic)
	if !v.Dynamic {
		off = uint64(img.Layout.Offset[v.Index])
	}
	if generic {
		off |= SharedWindow
	}
	return off
}

// ParamBytes returns the size of the parameter block of a kernel.
func ParamBytes(f *isa.Func) int {
	n := 0
	for _, p := range f.Sig.Params {
		n = max(n, p.Off+p.Size)
	}
	return n
}

// LocalAlign is the alignment of the local memory of a frame.
const LocalAlign = 32

// FrameAt returns the beginning of the local memory of a function called by caller, whose own begins at from.
func FrameAt(from int32, caller *isa.Func) int32 {
	return int32(devmem.RoundUp(uint64(from)+uint64(caller.LocalFrame), LocalAlign))
}
