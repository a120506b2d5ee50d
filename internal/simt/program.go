package simt

import (
	"fmt"
	"sync"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/simt/devmem"
)

// The windows of the generic address space: a tag in the top byte, so that no host pointer can be mistaken for one.
const (
	windowShift  = 56
	sharedWindow = 1 << windowShift
	localWindow  = 2 << windowShift
	paramWindow  = 3 << windowShift
	codeWindow   = 4 << windowShift
)

// What a lane accesses for a matrix instruction: a row, and an element of it, in bytes.
const (
	matrixRow     = 16
	matrixElement = 2
)

// Program is a module loaded into the memory of a device: its variables have addresses.
type Program struct {
	Module *isa.Module
	Memory *devmem.Memory

	id    uint32
	addrs []uint64 // by Var.Index; 0 for shared variables
	owned []uint64 // addresses to free

	mu     sync.Mutex
	images map[*isa.Func]*image
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
	p := &Program{Module: mod, Memory: mem, id: mem.NextProgram(), addrs: make([]uint64, len(mod.Vars)), images: map[*isa.Func]*image{}}
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
			addr = p.funcAddr(r.Func)
		case r.Var.Space == event.Shared:
			return fmt.Errorf("initialise variable %s: the address of shared variable %s is not a constant", v.Name, r.Var.Name)
		default:
			addr = p.addrs[r.Var.Index]
		}
		addr = (addr + uint64(r.Add)) >> r.Shift
		if r.At < 0 || r.At+r.Size > len(data) {
			return fmt.Errorf("initialise variable %s: an address at byte %d of %d", v.Name, r.At, len(data))
		}
		for i := range r.Size {
			data[r.At+i] = byte(addr >> (8 * i))
		}
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
	layout := p.image(kernel).layout
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

// funcAddr is the address of a function as kernels see it.
func (p *Program) funcAddr(f *isa.Func) uint64 {
	return codeWindow | uint64(p.id)<<32 | uint64(f.Index)
}

// funcAt is the function at an address, nil when there is none.
func (p *Program) funcAt(addr uint64) *isa.Func {
	i := addr & 0xffff_ffff
	if addr&^0xffff_ffff != codeWindow|uint64(p.id)<<32 || i >= uint64(len(p.Module.Funcs)) {
		return nil
	}
	return p.Module.Funcs[i]
}

// constText gives the address of a text in memory of the program, 0 where there is none for it.
func (p *Program) constText(text string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr, ok := p.consts[text]; ok {
		return addr
	}
	addr, err := p.Memory.Alloc(uint64(len(text)+1), 1, devmem.DeviceAlloc, "a text of the device runtime")
	if err != nil {
		return 0
	}
	data, err := p.Memory.Bytes(addr, uint64(len(text)+1))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	copy(data, text)
	data[len(text)] = 0
	p.Memory.SetConst(addr)
	p.owned = append(p.owned, addr)
	if p.consts == nil {
		p.consts = map[string]uint64{}
	}
	p.consts[text] = addr
	return addr
}

// image is a kernel with everything it can call, operands resolved.
type image struct {
	p      *Program
	layout *isa.Shared
	mu     sync.Mutex
	codes  map[*isa.Func]*code
	// What the code of the kernel has, see event.Launch.
	synchronises, swaps, nonCoherent, bulk bool

	found    sync.Once
	elements opt.Elements
}

// elementsOf finds the elements of the image's kernel.
func (img *image) elementsOf(kernel *isa.Func) opt.Elements {
	img.found.Do(func() {
		// A kernel that opt does not express has none: its accesses stay those of the instructions.
		img.elements, _ = opt.FindElements(kernel, img.layout)
	})
	return img.elements
}

// image gives the resolved form of a kernel.
func (p *Program) image(kernel *isa.Func) *image {
	p.mu.Lock()
	defer p.mu.Unlock()
	img := p.images[kernel]
	if img == nil {
		img = &image{p: p, layout: p.Module.SharedLayout(kernel), codes: map[*isa.Func]*code{},
			synchronises: kernel.Synchronises(), swaps: kernel.Swaps(),
			nonCoherent: kernel.Any((*isa.Inst).NonCoherent), bulk: kernel.Any((*isa.Inst).Bulk)}
		p.images[kernel] = img
	}
	return img
}

// code is a function whose operands are resolved for one kernel.
type code struct {
	fn     *isa.Func
	insts  []inst
	params int // bytes of a kernel's own parameters; 0 for other functions
}

// inst is an instruction with resolved operands.
type inst struct {
	*isa.Inst
	src []operand
	// fixed and regs are the sources again when all of them are registers and constants (plain): fixed holds the
	// constants, regs the rest.
	plain bool
	fixed [8]uint64
	regs  []slot
	dst   []slot // results that are kept
	// Of memory instructions: bytes of an access, and of the piece that one operand holds.
	width, piece uint64
	off          uint64 // added to the address
	// The access is to a variable that lies in shared memory from begin to end; 0, 0 where it is not known to which.
	begin, end uint64
	// element, of engine warp, is the size of the element that an access means, whose address is the last source; 0 for none.
	element     uint8
	nonCoherent bool
	// masked says that the last source of a Warp, Matrix or Tile instruction is a member mask.
	masked bool
	// args are the actual parameters of a call; those in .param variables are read from the frame.
	args []operand
}

// strong says that in is an access that others may synchronise with.
func (in *inst) strong() bool {
	return in.Class == isa.Atomic || (in.Class == isa.Load || in.Class == isa.Store) && in.Order != event.Weak
}

// unit is the size of the elements that an access is of, each an access of its own; 0 where it is of one.
func (in *inst) unit() uint64 {
	switch {
	case in.Class == isa.Atomic && (in.Type == isa.F16x2 || in.Type == isa.BF16x2):
		return 2
	case in.Class == isa.Tile && in.piece == in.width:
		return 0
	case in.Vec > 1 || in.Class == isa.Matrix || in.Class == isa.Tile:
		return in.piece
	}
	return 0
}

// qualify gives the event of an access what follows from the instruction.
func (in *inst) qualify(e *event.Event) {
	if n := in.unit(); n != 0 {
		e.Flags |= event.FlagVector
		e.Aux = uint32(n)
	}
	if in.nonCoherent && e.Space == event.Global {
		e.Flags |= event.FlagNonCoherent
	}
	if in.Copies {
		e.Flags |= event.FlagCopied
	}
	if in.Class == isa.Mbarrier && in.Op == isa.OpInit {
		e.Barrier = event.StoreInits
	}
}

// pieces is the number of requests that a memory instruction makes: one for each element of a vector.
func (in *inst) pieces() int { return int(in.width / in.piece) }

// mnemonic is the instruction with its modifiers, as in the PTX.
func (in *inst) mnemonic() string {
	if in.Source == nil {
		return in.Row.Op
	}
	return in.Source.Op + in.Source.Mods
}

// slot pairs an entry of isa.Args with a register.
type slot struct {
	at, reg int32
	kind    operandKind // of engine warp
}

// operandKind says how a resolved operand gets its value.
type operandKind uint8

const (
	opConst operandKind = iota // val
	opReg
	opNotReg  // a negated predicate
	opLocal   // val + the local frame
	opSpecial // special register

	// Of engine warp. A value that is uniform, or base + lane * val, or base + what pattern val says, over a group is the
	// scalar reg, base.
	opUniform
	opAffine32
	opAffine64
	opPattern32
	opPattern64
	opV32
	opV64
	opPred
)

// operand is a source with everything known before the launch resolved.
type operand struct {
	kind    operandKind
	special isa.SpecialID
	reg     int32
	val     uint64
}

// same reports whether the operand is the same for all lanes that execute the instruction together.
func (o *operand) same() bool { return o.kind == opConst || o.kind == opUniform }

// code gives the resolved form of fn.
func (img *image) code(fn *isa.Func) *code {
	img.mu.Lock()
	defer img.mu.Unlock()
	c := img.codes[fn]
	if c == nil {
		c = &code{fn: fn, insts: make([]inst, len(fn.Insts))}
		if fn.Entry {
			c.params = paramBytes(fn)
		}
		for i := range fn.Insts {
			img.resolve(&c.insts[i], &fn.Insts[i])
		}
		img.codes[fn] = c
	}
	return c
}

func (img *image) resolve(to *inst, in *isa.Inst) {
	to.Inst = in
	if in.Class == isa.Load || in.Class == isa.Store || in.Class == isa.Atomic {
		size := uint64(in.Type.Size())
		to.width, to.piece, to.off = size*uint64(max(in.Vec, 1)), min(size, 8), uint64(in.Off)
		to.nonCoherent = in.NonCoherent()
		to.begin, to.end = img.object(in)
	}
	if in.Class == isa.Matrix {
		to.width, to.piece, to.off = matrixRow, matrixElement, uint64(in.Off)
	}
	if in.Class == isa.Tile {
		to.width, to.piece = in.Tiles.Piece, in.Tiles.Element
	}
	to.masked = (in.Class == isa.Warp || in.Class == isa.Matrix || in.Class == isa.Tile || in.Class == isa.Warpgroup) && in.Has("sync")
	for i := range in.ArgOps {
		to.args = append(to.args, img.operand(&in.ArgOps[i]))
	}
	to.src = make([]operand, len(in.Src))
	to.plain = len(in.Src) <= len(to.fixed)
	for i := range in.Src {
		o := img.operand(&in.Src[i])
		to.src[i] = o
		switch {
		case o.kind == opConst && i < len(to.fixed):
			to.fixed[i] = o.val
		case o.kind == opReg:
			to.regs = append(to.regs, slot{at: int32(i), reg: o.reg})
		default:
			to.plain = false
		}
	}
	for i := range in.Dst {
		if in.Dst[i].Kind == isa.Reg {
			to.dst = append(to.dst, slot{at: int32(i), reg: in.Dst[i].Reg})
		}
	}
}

// object tells where the shared variable lies that an instruction accesses; 0, 0 where that is not known.
func (img *image) object(in *isa.Inst) (begin, end uint64) {
	if in.Object == nil {
		return 0, 0
	}
	begin = uint64(img.layout.Offset[in.Object.Index])
	return begin, begin + uint64(in.Object.Size)
}

// operand resolves a source operand.
func (img *image) operand(o *isa.Operand) operand {
	switch o.Kind {
	case isa.Reg:
		if o.Not {
			return operand{kind: opNotReg, reg: o.Reg}
		}
		return operand{kind: opReg, reg: o.Reg}
	case isa.SpecialReg:
		return operand{kind: opSpecial, special: o.Special}
	case isa.LocalAddr:
		return operand{kind: opLocal, val: o.Imm}
	case isa.FuncAddr:
		return operand{val: img.p.funcAddr(o.Func)}
	case isa.GlobalAddr, isa.GenericAddr, isa.SharedAddr:
		return operand{val: img.varAddr(o.Var, o.Kind == isa.GenericAddr) + o.Imm}
	default: // Sink, Imm, ParamAddr
		return operand{val: o.Imm}
	}
}

// varAddr is the address of a variable.
func (img *image) varAddr(v *isa.Var, generic bool) uint64 {
	if v.Space != event.Shared {
		return img.p.addrs[v.Index]
	}
	off := uint64(img.layout.Dynamic)
	if !v.Dynamic {
		off = uint64(img.layout.Offset[v.Index])
	}
	if generic {
		off |= sharedWindow
	}
	return off
}

// paramBytes is the size of the parameter block of a kernel.
func paramBytes(f *isa.Func) int {
	n := 0
	for _, p := range f.Sig.Params {
		n = max(n, p.Off+p.Size)
	}
	return n
}
