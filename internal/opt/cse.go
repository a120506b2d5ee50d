package opt

import "fencepost.dev/fencepost/internal/isa"

// key identifies a computation: equal keys mean equal computations.
type key struct {
	op   Op
	aux  uint8
	w    Width
	n    uint8
	imm  uint64
	args [4]Value
	row  rowKey
	sym  isa.Operand
}

// rowKey is everything in an isa.Inst that its Eval may read.
type rowKey struct {
	row   *isa.Row
	mods  string
	t, t2 isa.Type
	dst   [2]uint8
	src   [4]uint8
}

// CSE replaces a pure computation by an equal one that dominates it. Constants, which are in the entry block, are
// shared too.
func CSE(f *Func) bool {
	dom := Dominators(f)
	seen := map[key][]*Instr{}
	var with substitution
	post := blockPostorder(f)
	for i := len(post) - 1; i >= 0; i-- {
		b := post[i]
		kept := b.Instrs[:0]
		for _, in := range b.Instrs {
			k, ok := f.keyOf(in, with.find)
			if !ok {
				kept = append(kept, in)
				continue
			}
			var same *Instr
			for _, c := range seen[k] {
				if dom.Dominates(c.Block, b) {
					same = c
					break
				}
			}
			if same == nil {
				seen[k] = append(seen[k], in)
				kept = append(kept, in)
				continue
			}
			for j, v := range in.Dst {
				if v != NoValue {
					with.replace(v, same.Dst[j])
					f.Values[v].Def = nil
				}
			}
		}
		b.Instrs = kept
	}
	f.substitute(&with)
	return with.n > 0
}

func (f *Func) keyOf(in *Instr, find func(Value) Value) (key, bool) {
	if !in.Pure() || in.Op == Phi || in.Op == Nop || len(in.Args) > 4 || len(in.Dst) > 2 || len(in.Dst) == 0 {
		return key{}, false
	}
	k := key{op: in.Op, aux: in.Aux, imm: in.Imm, n: uint8(len(in.Args))}
	for i, a := range in.Args {
		k.args[i] = find(a)
	}
	for _, v := range in.Dst {
		if v == NoValue {
			return key{}, false
		}
	}
	k.w = f.Width(in.Dst[0])
	if in.Op == Symbol {
		k.sym = *in.Sym
	}
	if in.Op == Row {
		i := in.Inst
		k.row = rowKey{row: i.Row, mods: i.Source.Mods, t: i.Type, t2: i.Type2}
		for j := range in.Dst {
			k.row.dst[j] = i.Dst[j].Size
		}
		for j := range i.Src {
			k.row.src[j] = i.Src[j].Size
		}
	}
	return k, true
}

// DCE removes pure computations without uses, and the unread results and parameters of calls.
func DCE(f *Func) bool {
	used := make([]bool, len(f.Values))
	var work []Value
	use := func(v Value) {
		if v != NoValue && !used[v] {
			used[v] = true
			work = append(work, v)
		}
	}
	uses := func(in *Instr) {
		for _, a := range in.Args {
			use(a)
		}
		use(in.Guard)
	}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if !in.Pure() && in.Op != Special && !in.readsShadow() {
				uses(in)
			}
		}
	}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if d := f.Def(v); d != nil {
			uses(d)
		}
	}
	changed := false
	for _, b := range f.Blocks {
		kept := b.Instrs[:0]
		for _, in := range b.Instrs {
			dead := in.Pure() || in.Op == Special || in.readsShadow()
			for _, v := range in.Dst {
				dead = dead && (v == NoValue || !used[v])
			}
			if in.Op == Enter || in.Op == Call {
				changed = f.forget(in, used) || changed
			}
			if dead {
				for _, v := range in.Dst {
					if v != NoValue {
						f.Values[v].Def = nil
					}
				}
				changed = true
				continue
			}
			kept = append(kept, in)
		}
		b.Instrs = kept
	}
	return changed
}

// forget drops the results of in that are not used.
func (f *Func) forget(in *Instr, used []bool) bool {
	changed := false
	for i, v := range in.Dst {
		if v != NoValue && !used[v] {
			f.Values[v].Def = nil
			in.Dst[i] = NoValue
			changed = true
		}
	}
	return changed
}
