package opt

import "slices"

// finish resolves replaced values and removes remains of the construction.
func (b *builder) finish() {
	f := b.f
	for _, bl := range f.Blocks {
		bl.Instrs = slices.DeleteFunc(bl.Instrs, func(in *Instr) bool { return in.Op == Nop })
	}
	f.substitute(&b.subst)
	for v := range f.Values {
		if d := f.Values[v].Def; d != nil && d.Op == Nop {
			f.Values[v].Def = nil
		}
	}
}

// entry returns the entry block, which holds the constants.
func (f *Func) entry() *Block { return f.Blocks[0] }

// insertBefore puts in before the terminator of bl.
func insertBefore(bl *Block, in *Instr) {
	in.Block = bl
	n := len(bl.Instrs) - 1
	bl.Instrs = append(bl.Instrs, bl.Instrs[n])
	bl.Instrs[n] = in
}

// Konst returns a constant of width w, in the entry block.
func (f *Func) Konst(w Width, x uint64) Value {
	in := &Instr{Op: Const, Site: -1, Guard: NoValue, Imm: x & w.Mask()}
	v := f.NewValue(w, in)
	in.Dst = []Value{v}
	insertBefore(f.entry(), in)
	return v
}
