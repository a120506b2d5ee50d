package opt

// LICM moves pure computations whose arguments do not change in a loop before it. Nothing traps, so computing early is
// safe; what is dear (a Row) moves only from where every iteration computes it.
func LICM(f *Func) bool {
	dom := Dominators(f)
	inner := Loops(f, dom)
	changed := false
	done := map[*Loop]bool{}
	for _, b := range f.Blocks {
		for l := inner[b.ID]; l != nil; l = l.Parent {
			if !done[l] && l.Header != f.entry() {
				done[l] = true
				if hoist(f, l, dom) {
					changed = true
				}
			}
		}
	}
	return changed
}

// preheader is the only predecessor from outside the loop, when it leads nowhere else.
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

func hoist(f *Func, l *Loop, dom *DomTree) bool {
	pre := l.preheader()
	if pre == nil {
		return false
	}
	inside := func(v Value) bool {
		d := f.Def(v)
		return d != nil && l.Blocks[d.Block]
	}
	changed := false
	for again := true; again; {
		again = false
		for _, b := range f.Blocks {
			if !l.Blocks[b] {
				continue
			}
			kept := b.Instrs[:0]
			for _, in := range b.Instrs {
				if !in.Pure() || in.Op == Phi || in.Op == Row && !everyTurn(l, b, dom) || anyArg(in, inside) {
					kept = append(kept, in)
					continue
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
