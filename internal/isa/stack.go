package isa

import "fencepost.dev/fencepost/ptx"

// stackRows is the manual's "Stack Manipulation Instructions". A function that has one has stackArea bytes of local memory
// for what it allocates, and a register with how many of them are taken: the last source of stacksave and alloca, before
// the address of the area, and the last result of alloca and stackrestore.
var stackRows = []*Row{
	{Op: "stacksave", Doc: "Stack Manipulation: stacksave", Stack: true, Bind: bindStackPointer, Forms: forms(".type d; type: u32 u64")},
	{Op: "stackrestore", Doc: "Stack Manipulation: stackrestore", Stack: true, Bind: bindStackPointer, Forms: forms(".type a; type: u32 u64")},
	{Op: "alloca", Doc: "Stack Manipulation: alloca", Stack: true, Bind: bindAlloca, Forms: forms(".type d, a{, b:u32}; type: u32 u64"),
		Note: "A function can allocate 16 KiB at a time. A larger allocation gives an address that cannot be accessed."},
}

// stackArea is the bytes that a call of a function can allocate.
const stackArea = 16 << 10

// noStack is the address of what does not fit.
const noStack = 1 << 31

func bindStackPointer(in *Inst) {
	mask := widthMask(in.Type)
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0] & mask }
}

// bindAlloca binds alloca. Sources are the size, the alignment (8 when absent), what is taken, and the address of the area.
func bindAlloca(in *Inst) {
	mask := widthMask(in.Type)
	in.Eval = func(_ *Inst, a *Args) {
		size, align, taken, area := a.S[0]&mask, max(a.S[1]&0xffffffff, 1), a.S[2], a.S[3]
		if a.S[1] == 0 {
			align = 8
		}
		at := area + taken
		if r := at % align; r != 0 {
			at += align - r
		}
		if taken > stackArea || size > stackArea || at-area+size > stackArea {
			a.D[0], a.D[1] = noStack, taken
			return
		}
		a.D[0], a.D[1] = at, at-area+size
	}
}

// stack gives a function whose body manipulates the stack its area, and a register that begins with 0.
func (b *body) stack() {
	if !manipulatesStack(b.f.Decl.Body) {
		return
	}
	b.area = b.localSpace(stackArea, 16)
	b.taken = Operand{Kind: Reg, Reg: int32(b.f.Regs), Size: 8}
	b.f.Regs++
	in := b.spelled("mov", ".u64").proto
	in.Source = &ptx.Inst{Pos: b.f.Decl.Pos, Op: "mov", Mods: ".u64"}
	in.File, in.Loc = b.u.m, b.locs.now
	in.Src, in.Dst = []Operand{{Kind: Imm}}, []Operand{b.taken}
	b.f.Insts = append(b.f.Insts, in)
}

func manipulatesStack(blk *ptx.Block) bool {
	for _, st := range blk.Stmts {
		switch st := st.(type) {
		case *ptx.Block:
			if manipulatesStack(st) {
				return true
			}
		case *ptx.Inst:
			for _, r := range stackRows {
				if r.Op == st.Op {
					return true
				}
			}
		}
	}
	return false
}

// stackOperands adds what the stack rows read and write besides their operands.
func (b *body) stackOperands(in *Inst) {
	if in.Row.Op != "stackrestore" {
		in.Src = append(in.Src, b.taken)
	}
	if in.Row.Op != "stacksave" {
		in.Dst = append(in.Dst, b.taken)
	}
	if in.Row.Op == "alloca" {
		in.Src = append(in.Src, Operand{Kind: LocalAddr, Imm: uint64(b.area)})
	}
}
