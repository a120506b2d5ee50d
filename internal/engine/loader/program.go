// Package loader makes modules executable: variables get addresses in the memory of a device, and operands of instructions
// are resolved for a kernel.
package loader

import (
	"fmt"
	"sync"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
)

// The windows of the generic address space: a tag in the top byte, so that no host pointer can be mistaken for one.
const (
	WindowShift  = 56
	SharedWindow = 1 << WindowShift
	LocalWindow  = 2 << WindowShift
	ParamWindow  = 3 << WindowShift
	codeWindow   = 4 << WindowShift
)

// What a lane accesses for a matrix instruction: a row, and an element of it, in bytes.
const (
	MatrixRow     = 16
	MatrixElement = 2
)

// Program is a module loaded into the memory of a device: its variables have addresses.
type Program struct {
	Module *isa.Module
	Memory *devmem.Memory

	id    uint32
	addrs []uint64 // by Var.Index; 0 for shared variables
	owned []uint64 // addresses to free

	mu     sync.Mutex
	images map[*isa.Func]*Image
	consts map[string]uint64 // texts of the device runtime
	kept   sync.Map
}

// Keep gives what an engine keeps with the program under a key of a type of its own; make makes it when it is first asked for.
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

// initialise writes the initial value of v, addresses resolved.
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
		// They cannot have been freed by anyone else: their addresses are no cudaMalloc results, and Free of one by a
		// program is refused by the API.
		_, _ = p.Memory.Free(a)
	}
	p.owned = nil
}

// Kernel gives the entry called name, nil when there is none.
func (p *Program) Kernel(name string) *isa.Func {
	if f := p.Module.ByName[name]; f != nil && f.Entry {
		return f
	}
	return nil
}

// Symbol gives the address and size of a __device__, __constant__ or __managed__ variable.
func (p *Program) Symbol(name string) (addr, size uint64, ok bool) {
	for _, v := range p.Module.Vars {
		if v.Name == name && p.addrs[v.Index] != 0 {
			return p.addrs[v.Index], uint64(v.Size), true
		}
	}
	return 0, 0, false
}

// Address is where a variable of the program's module is in global memory; 0: nowhere.
func (p *Program) Address(v *isa.Var) uint64 { return p.addrs[v.Index] }

// SharedVar names the shared variable of kernel that covers offset off of its window, and the variable's offset.
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

// FuncAddr is the address of a function as kernels see it.
func (p *Program) FuncAddr(f *isa.Func) uint64 {
	return codeWindow | uint64(p.id)<<32 | uint64(f.Index)
}

// FuncAt is the function at an address, nil when there is none.
func (p *Program) FuncAt(addr uint64) *isa.Func {
	i := addr & 0xffff_ffff
	if addr&^0xffff_ffff != codeWindow|uint64(p.id)<<32 || i >= uint64(len(p.Module.Funcs)) {
		return nil
	}
	return p.Module.Funcs[i]
}

// ConstText gives the address of a text in memory of the program, 0 where there is none for it.
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

// Own gives bytes of memory that the program has until it is unloaded.
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

// Image is a kernel with everything it can call, operands resolved.
type Image struct {
	Program *Program
	Layout  *isa.Shared
	mu      sync.Mutex
	codes   map[*isa.Func]*Code
	// What the code of the kernel has, see event.Launch.
	Synchronises, Swaps, NonCoherentLoad, Bulk bool
	// Communicates: see isa.Func. Cancels says that blocks may cancel others that have not begun.
	Communicates, Cancels bool

	found    sync.Once
	elements opt.Elements
}

// ElementsOf finds the elements of the image's kernel.
func (img *Image) ElementsOf(kernel *isa.Func) opt.Elements {
	img.found.Do(func() {
		// A kernel that opt does not express has none: its accesses stay those of the instructions.
		img.elements, _ = opt.FindElements(kernel, img.Layout)
	})
	return img.elements
}

// Image gives the resolved form of a kernel.
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

// Code is a function whose operands are resolved for one kernel.
type Code struct {
	Func   *isa.Func
	Insts  []Instr
	Params int // bytes of a kernel's own parameters; 0 for other functions
}

// Instr is an instruction with resolved operands.
type Instr struct {
	*isa.Inst
	Operands []Operand
	// Fixed and Regs are the sources again when all of them are registers and constants (Plain): Fixed holds the
	// constants, Regs the rest.
	Plain   bool
	Fixed   [8]uint64
	Regs    []Slot
	Results []Slot // results that are kept
	// Of memory instructions: bytes of an access, and of the piece that one operand holds.
	Width, Piece uint64
	Offset       uint64 // added to the address
	// The access is to a variable that lies in shared memory from VarBegin to VarEnd; 0, 0 where it is not known to which.
	VarBegin, VarEnd uint64
	// Element, of engine warp, is the size of the element that an access means, whose address is the last source; 0 for none.
	Element         uint8
	NonCoherentLoad bool
	// Masked says that the last source of a Warp, Matrix or Tile instruction is a member mask.
	Masked bool
	// Actuals are the actual parameters of a call; those in .param variables are read from the frame.
	Actuals []Operand
}

// Strong says that in is an access that others may synchronise with.
func (in *Instr) Strong() bool {
	return in.Class == isa.Atomic || (in.Class == isa.Load || in.Class == isa.Store) && in.Order != event.Weak
}

// Releases says that in is a release operation.
func (in *Instr) Releases() bool {
	return in.Strong() && in.Order >= event.Release && in.Class != isa.Load
}

// unit is the size of the elements that an access is of, each an access of its own; 0 where it is of one.
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

// Qualify gives the event of an access what follows from the instruction.
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

// Pieces is the number of requests that a memory instruction makes: one for each element of a vector.
func (in *Instr) Pieces() int { return int(in.Width / in.Piece) }

// Mnemonic is the instruction with its modifiers, as in the PTX.
func (in *Instr) Mnemonic() string {
	if in.Source == nil {
		return in.Row.Op
	}
	return in.Source.Op + in.Source.Mods
}

// Slot pairs an entry of isa.Args with a register.
type Slot struct {
	At, Reg int32
	Kind    OperandKind // of engine warp
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

	// Of engine warp. A value that is uniform, or base + lane * val, or base + what pattern val says, over a group is the
	// scalar reg, base.
	OpUniform
	OpAffine32
	OpAffine64
	OpPattern32
	OpPattern64
	OpV32
	OpV64
	OpPred
)

// Operand is a source with everything known before the launch resolved.
type Operand struct {
	Kind    OperandKind
	Special isa.SpecialID
	Reg     int32
	Val     uint64
}

// Same reports whether the operand is the same for all lanes that execute the instruction together.
func (o *Operand) Same() bool { return o.Kind == OpConst || o.Kind == OpUniform }

// Code gives the resolved form of fn.
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

// Object tells where the shared variable lies that an instruction accesses; 0, 0 where that is not known.
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

// varAddr is the address of a variable.
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

// ParamBytes is the size of the parameter block of a kernel.
func ParamBytes(f *isa.Func) int {
	n := 0
	for _, p := range f.Sig.Params {
		n = max(n, p.Off+p.Size)
	}
	return n
}

// LocalAlign is the alignment of the local memory of a frame.
const LocalAlign = 32

// FrameAt is where the local memory of a function begins that is called by one whose own begins at from.
func FrameAt(from int32, caller *isa.Func) int32 {
	return int32(devmem.RoundUp(uint64(from)+uint64(caller.LocalFrame), LocalAlign))
}
