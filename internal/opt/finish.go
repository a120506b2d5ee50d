package opt

import "slices"

// finish resolves replaced values and drops what the construction left over.
func (b *builder) finish() {
	f := b.f
	for _, bl := range f.Blocks {
		bl.Instrs = slices.DeleteFunc(bl.Instrs, func(in *Instr) bool { return in.Op == Nop })
		for _, in := range bl.Instrs {
			for i, a := range in.Args {
				in.Args[i] = b.find(a)
			}
			if in.Guard != NoValue {
				in.Guard = b.find(in.Guard)
			}
		}
	}
	for v := range f.Values {
		if d := f.Values[v].Def; d != nil && d.Op == Nop {
			f.Values[v].Def = nil
		}
	}
}

// entry gives the entry block, where constants are.
func (f *Func) entry() *Block { return f.Blocks[0] }

// insertBefore puts in before the terminator of bl.
func insertBefore(bl *Block, in *Instr) {
	in.Block = bl
	n := len(bl.Instrs) - 1
	bl.Instrs = append(bl.Instrs, bl.Instrs[n])
	bl.Instrs[n] = in
}

// Konst gives a constant of width w, in the entry block.
func (f *Func) Konst(w Width, x uint64) Value {
	in := &Instr{Op: Const, Site: -1, Guard: NoValue, Imm: x & w.Mask()}
	v := f.NewValue(w, in)
	in.Dst = []Value{v}
	insertBefore(f.entry(), in)
	return v
}

// Replace makes every use of a value a use of another, for all pairs in the map at once, chains followed.
func (f *Func) Replace(with map[Value]Value) {
	if len(with) == 0 {
		return
	}
	find := func(v Value) Value {
		for {
			n, ok := with[v]
			if !ok {
				return v
			}
			v = n
		}
	}
	for _, bl := range f.Blocks {
		for _, in := range bl.Instrs {
			for i, a := range in.Args {
				if a != NoValue {
					in.Args[i] = find(a)
				}
			}
			if in.Guard != NoValue {
				in.Guard = find(in.Guard)
			}
		}
	}
}
