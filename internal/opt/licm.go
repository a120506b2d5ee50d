package opt

import "slices"

// LICM moves pure computations with loop-invariant arguments out of the loop. No computation traps, so computing early
// is safe. An expensive one (a Row) moves only if every iteration computes it.
func LICM(f *Func) bool {
	changed := false
	done := map[*Block]bool{}
	for again := true; again; {
		again = false
		dom := Dominators(f)
		for _, l := range byDepth(f, dom) {
			if done[l.Header] || l.Header == f.entry() {
				continue
			}
			done[l.Header] = true
			n := len(f.Blocks)
			changed = hoist(f, l, dom) || changed
			if len(f.Blocks) != n {
				again = true // a preheader was added: IDs have shifted
				break
			}
		}
	}
	return changed
}

// byDepth lists the loops, inner ones first.
func byDepth(f *Func, dom *DomTree) []*Loop {
	var all []*Loop
	seen := map[*Loop]bool{}
	for _, l := range Loops(f, dom) {
		for ; l != nil && !seen[l]; l = l.Parent {
			seen[l] = true
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b *Loop) int { return b.Depth - a.Depth })
	return all
}

// preheader is the only predecessor from outside the loop, if the loop is its only successor.
func (l *Loop) preheader() *Block {
	var pre *Block
	for _, p := range l.Header.Preds {
		if l.Blocks[p] {
			continue
		}
		if pre != nil {
			return nil
		}
		pre = p
	}
	if pre == nil || len(pre.Succs) != 1 {
		return nil
	}
	return pre
}

// enter gives the loop a preheader if it has none: a block on the edge, or the joined edges, from outside. The new
// block precedes the header in f.Blocks. Dominators and loops computed before do not know it; their statements about
// the other blocks stay true.
func (l *Loop) enter(f *Func) *Block {
	if pre := l.preheader(); pre != nil {
		return pre
	}
	h := l.Header
	pre := &Block{Succs: []*Block{h}}
	jump := &Instr{Op: Jump, Site: -1, Guard: NoValue, Block: pre}
	var phis []*Instr
	for _, phi := range h.Instrs {
		if phi.Op != Phi {
			break
		}
		n := &Instr{Op: Phi, Site: -1, Guard: NoValue, Block: pre}
		n.Dst = []Value{f.NewValue(f.Width(phi.Result()), n)}
		var inner []Value
		for i, p := range h.Preds {
			if l.Blocks[p] {
				inner = append(inner, phi.Args[i])
			} else {
				n.Args = append(n.Args, phi.Args[i])
			}
		}
		phi.Args = append([]Value{n.Result()}, inner...)
		phis = append(phis, n)
	}
	pre.Instrs = append(phis, jump)
	preds := []*Block{pre}
	for _, p := range h.Preds {
		if l.Blocks[p] {
			preds = append(preds, p)
			continue
		}
		pre.Preds = append(pre.Preds, p)
	}
	for _, p := range pre.Preds {
		for i, s := range p.Succs {
			if s == h {
				p.Succs[i] = pre
			}
		}
	}
	h.Preds = preds
	renumber(f, slices.Insert(f.Blocks, slices.Index(f.Blocks, h), pre))
	return pre
}

func hoist(f *Func, l *Loop, dom *DomTree) bool {
	inside := func(v Value) bool {
		d := f.Def(v)
		return d != nil && l.Blocks[d.Block]
	}
	// Computed before a preheader is added, which shifts the IDs that dom uses.
	var blocks []*Block // of the loop, in order
	every := map[*Block]bool{}
	for _, b := range f.Blocks {
		if l.Blocks[b] {
			blocks = append(blocks, b)
			every[b] = everyTurn(l, b, dom)
		}
	}
	pre := l.preheader()
	if pre == nil && l.Header.meets() {
		return false
	}
	changed := false
	for again := true; again; {
		again = false
		for _, b := range blocks {
			kept := b.Instrs[:0]
			for _, in := range b.Instrs {
				if !in.Pure() || in.Op == Phi || in.Op == Row && !every[b] || anyArg(in, inside) {
					kept = append(kept, in)
					continue
				}
				if pre == nil {
					pre = l.enter(f)
				}
				insertBefore(pre, in)
				again, changed = true, true
			}
			b.Instrs = kept
		}
	}
	return changed
}

func anyArg(in *Instr, test func(Value) bool) bool {
	for _, a := range in.Args {
		if a != NoValue && test(a) {
			return true
		}
	}
	return false
}

// everyTurn reports whether each turn of the loop passes b.
func everyTurn(l *Loop, b *Block, dom *DomTree) bool {
	for _, p := range l.Header.Preds {
		if l.Blocks[p] && !dom.Dominates(b, p) {
			return false
		}
	}
	return true
}
