package opt

import "slices"

// Cleanup simplifies control flow: branches on constants, unreachable blocks, empty blocks, chains of blocks.
func Cleanup(f *Func) bool {
	changed := constantBranches(f)
	live := make([]bool, len(f.Blocks))
	n := 0
	for _, b := range blockPostorder(f) {
		live[b.ID] = true
		n++
	}
	if n < len(f.Blocks) {
		drop(f, live)
		renumber(f, f.Blocks)
		changed = true
	}
	if !f.Env.Lockstep { // in lockstep the ways of a branch stay apart
		changed = skipEmpty(f) || changed
	}
	return joinRows(f) || changed
}

func constantBranches(f *Func) bool {
	changed := false
	for _, b := range f.Blocks {
		t := b.Term()
		switch t.Op {
		case Branch:
			c, ok := f.ConstOf(t.Args[0])
			switch {
			case ok:
				cutEdge(b, int(c&1)) // the edge not taken: Succs[0] is taken if true
			case b.Succs[0] == b.Succs[1] && !hasPhi(b.Succs[0]) && !f.Env.Lockstep:
				cutEdge(b, 1)
			default:
				continue
			}
			t.Op, t.Args = Jump, nil
			changed = true
		}
	}
	return changed
}

func hasPhi(b *Block) bool { return b.Instrs[0].Op == Phi }

// cutEdge removes the i-th outgoing edge of b.
func cutEdge(b *Block, i int) {
	s := b.Succs[i]
	// Among parallel edges the k-th outgoing one is the k-th incoming one.
	k := count(b.Succs[:i], s)
	for j, p := range s.Preds {
		if p == b {
			if k == 0 {
				dropPred(s, j)
				break
			}
			k--
		}
	}
	b.Succs = slices.Delete(b.Succs, i, i+1)
}

// skipEmpty redirects the predecessors of a block that only jumps to the block's successor, unless a phi distinguishes
// them.
func skipEmpty(f *Func) bool {
	changed := false
	for _, b := range f.Blocks[1:] {
		if len(b.Instrs) != 1 || b.Term().Op != Jump || b.Succs[0] == b || len(b.Preds) == 0 {
			continue
		}
		s := b.Succs[0]
		at := slices.Index(s.Preds, b)
		if hasPhi(s) && slices.ContainsFunc(b.Preds, func(p *Block) bool { return slices.Contains(s.Preds, p) }) {
			continue
		}
		if hasPhi(s) && len(b.Preds) > 1 && count(b.Preds, b.Preds[0]) > 1 {
			continue
		}
		preds := b.Preds
		for _, p := range preds {
			p.Succs[slices.Index(p.Succs, b)] = s
		}
		for i, p := range preds {
			if i == 0 {
				s.Preds[at] = p
				continue
			}
			s.Preds = append(s.Preds, p)
			for _, in := range s.Instrs {
				if in.Op != Phi {
					break
				}
				in.Args = append(in.Args, in.Args[at])
			}
		}
		b.Preds, b.Succs = nil, []*Block{}
		b.Instrs = []*Instr{{Op: Exit, Site: -1, Guard: NoValue, Block: b}}
		changed = true
	}
	if changed {
		live := make([]bool, len(f.Blocks))
		for _, b := range blockPostorder(f) {
			live[b.ID] = true
		}
		drop(f, live)
		renumber(f, f.Blocks)
	}
	return changed
}

// joinRows appends a block to its only predecessor if the predecessor has no other successor. The entry block stays
// alone because it holds the constants.
func joinRows(f *Func) bool {
	changed := false
	gone := map[*Block]bool{}
	var with substitution
	for _, b := range f.Blocks[1:] {
		for !gone[b] && len(b.Succs) == 1 {
			s := b.Succs[0]
			if s == b || len(s.Preds) != 1 || b.Term().Op != Jump {
				break
			}
			b.Instrs = b.Instrs[:len(b.Instrs)-1]
			for _, in := range s.Instrs {
				if in.Op == Phi {
					with.replace(in.Result(), in.Args[0])
					f.Values[in.Result()].Def = nil
					continue
				}
				in.Block = b
				b.Instrs = append(b.Instrs, in)
			}
			b.Succs = s.Succs
			for _, t := range s.Succs {
				for i, p := range t.Preds {
					if p == s {
						t.Preds[i] = b
					}
				}
			}
			gone[s] = true
			changed = true
		}
	}
	if changed {
		renumber(f, slices.DeleteFunc(f.Blocks, func(b *Block) bool { return gone[b] }))
		f.substitute(&with)
	}
	return changed
}
