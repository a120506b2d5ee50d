package opt

import "slices"

const (
	// maxTurns and maxUnrolled bound the unrolling of one loop: its turns, and the instructions written.
	maxTurns    = 130
	maxUnrolled = 12 << 10
	// maxFunc is the size from which on a function is not unrolled.
	maxFunc = 1 << 16
)

// Unroll unrolls loops whose number of turns is known. The copies make the same accesses as the turns, at the same
// sites. The gain is in counters, tests and address arithmetic. Each call unrolls one innermost loop: the passes after
// it turn its counters into constants, which may determine the turns of the loop around it.
func Unroll(f *Func) bool {
	size := 0
	for _, b := range f.Blocks {
		size += len(b.Instrs)
	}
	if size > maxFunc {
		return false
	}
	changed := false
	for again := true; again; {
		again = false
		dom := Dominators(f)
		for _, l := range innermost(f, dom) {
			u := unroller{f: f, l: l}
			if !u.fits() {
				continue
			}
			n := u.turns()
			if n == 0 || n*u.size > maxUnrolled {
				continue
			}
			u.pre = u.l.enter(f)
			u.leave()
			u.close()
			for range n {
				u.peel()
			}
			changed, again = true, true
			// The rest of the loop cannot be reached; the last copy's exit is taken.
			Fold(f)
			Algebra(f)
			Cleanup(f)
			DCE(f)
			break
		}
	}
	return changed
}

// innermost returns the loops without loops inside.
func innermost(f *Func, dom *DomTree) []*Loop {
	inner := Loops(f, dom)
	outer := map[*Loop]bool{}
	var all []*Loop
	for _, b := range f.Blocks {
		l := inner[b.ID]
		if l == nil {
			continue
		}
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
		if l.Parent != nil {
			outer[l.Parent] = true
		}
	}
	return slices.DeleteFunc(all, func(l *Loop) bool { return outer[l] })
}

type unroller struct {
	f      *Func
	l      *Loop
	blocks []*Block // of the loop, in the order of the function
	pre    *Block
	from   *Block // the only block with an edge out of the loop
	exit   *Block // the target of that edge
	size   int
}

// fits reports whether the loop has the form that can be unrolled: one entry, one exit.
func (u *unroller) fits() bool {
	if u.l.Header == u.f.entry() || u.l.Header.meets() {
		return false
	}
	for _, b := range u.f.Blocks {
		if !u.l.Blocks[b] {
			continue
		}
		u.blocks = append(u.blocks, b)
		u.size += len(b.Instrs)
		for _, s := range b.Succs {
			if u.l.Blocks[s] {
				continue
			}
			if u.exit != nil || b.Term().Op != Branch {
				return false
			}
			u.from, u.exit = b, s
		}
	}
	return u.exit != nil && u.size <= maxUnrolled
}

// leave gives the loop an exit block with no other predecessor.
func (u *unroller) leave() {
	if len(u.exit.Preds) == 1 {
		return
	}
	b := &Block{Preds: []*Block{u.from}, Succs: []*Block{u.exit}}
	b.Instrs = []*Instr{{Op: Jump, Site: -1, Guard: NoValue, Block: b}}
	u.from.Succs[slices.Index(u.from.Succs, u.exit)] = b
	u.exit.Preds[slices.Index(u.exit.Preds, u.from)] = b
	renumber(u.f, slices.Insert(u.f.Blocks, slices.Index(u.f.Blocks, u.exit), b))
	u.exit = b
}

// turns counts the turns until the exit is taken, by evaluating what depends on constants alone. It returns 0 if that
// is not possible or if there are too many.
func (u *unroller) turns() int {
	f := u.f
	t := u.from.Term()
	now := map[Value]uint64{}
	h := u.l.Header
	if len(h.Preds) != 2 || u.l.Blocks[h.Preds[0]] == u.l.Blocks[h.Preds[1]] {
		return 0
	}
	before, latch := 0, 1 // edges
	if u.l.Blocks[h.Preds[0]] {
		before, latch = 1, 0
	}
	var phis []*Instr
	for _, in := range h.Instrs {
		if in.Op != Phi {
			break
		}
		if c, ok := f.ConstOf(in.Args[before]); ok {
			now[in.Result()] = c
			phis = append(phis, in)
		}
	}
	for turn := 1; turn <= maxTurns; turn++ {
		memo := map[Value]*uint64{}
		cond, ok := u.value(t.Args[0], now, memo)
		if !ok {
			return 0
		}
		if t.Block.Succs[1-cond&1] == u.exit {
			return turn
		}
		next := map[Value]uint64{}
		for _, phi := range phis {
			if c, ok := u.value(phi.Args[latch], now, memo); ok {
				next[phi.Result()] = c
			}
		}
		now = next
	}
	return 0
}

// value computes v from the constants that the header's phis are in this turn.
func (u *unroller) value(v Value, now map[Value]uint64, memo map[Value]*uint64) (uint64, bool) {
	f := u.f
	if c, ok := now[v]; ok {
		return c, true
	}
	if c, ok := f.ConstOf(v); ok {
		return c, true
	}
	if m, ok := memo[v]; ok {
		if m == nil {
			return 0, false
		}
		return *m, true
	}
	memo[v] = nil
	d := f.Def(v)
	if d == nil || d.Op == Phi {
		return 0, false
	}
	if d.Op <= Copy || d.Op >= Row {
		return 0, false
	}
	var c [3]uint64
	for i, a := range d.Args {
		x, ok := u.value(a, now, memo)
		if !ok {
			return 0, false
		}
		c[i] = x
	}
	w := f.Width(v)
	x := evalNative(d.Op, d.Imm, d.Aux, w.Bits(), c[0], c[1], c[2]) & w.Mask()
	memo[v] = &x
	return x, true
}

// close gives the exit a phi for each value of the loop that is used after it, so that copies of the loop can add
// arguments.
func (u *unroller) close() {
	f := u.f
	with := map[Value]Value{}
	var phis []*Instr
	outside := func(v Value) Value {
		if v == NoValue {
			return v
		}
		d := f.Def(v)
		if d == nil || !u.l.Blocks[d.Block] {
			return v
		}
		if p, ok := with[v]; ok {
			return p
		}
		phi := &Instr{Op: Phi, Site: -1, Guard: NoValue, Args: []Value{v}, Block: u.exit}
		p := f.NewValue(f.Width(v), phi)
		phi.Dst = []Value{p}
		phis = append(phis, phi)
		with[v] = p
		return p
	}
	for _, b := range f.Blocks {
		if u.l.Blocks[b] {
			continue
		}
		for _, in := range b.Instrs {
			if in.Op == Phi && b == u.exit {
				continue // it already reads at the end of the loop's block
			}
			for i, a := range in.Args {
				in.Args[i] = outside(a)
			}
			in.Guard = outside(in.Guard)
		}
	}
	u.exit.Instrs = append(phis, u.exit.Instrs...)
}

// peel writes one turn before the loop.
func (u *unroller) peel() {
	f := u.f
	copies := map[*Block]*Block{}
	values := map[Value]Value{}
	var fresh []*Block
	for _, b := range u.blocks {
		c := &Block{}
		copies[b] = c
		fresh = append(fresh, c)
	}
	first := slices.Index(u.l.Header.Preds, u.pre)
	for _, b := range u.blocks {
		c := copies[b]
		for _, in := range b.Instrs {
			if in.Op == Phi && b == u.l.Header {
				values[in.Result()] = in.Args[first] // the turn begins with the initial values of the loop
				continue
			}
			n := new(Instr)
			*n = *in
			n.Block, n.Args, n.Dst = c, slices.Clone(in.Args), slices.Clone(in.Dst)
			for i, v := range n.Dst {
				if v != NoValue {
					n.Dst[i] = f.NewValue(f.Width(v), n)
					values[v] = n.Dst[i]
				}
			}
			c.Instrs = append(c.Instrs, n)
		}
	}
	rename := func(v Value) Value {
		if n, ok := values[v]; ok {
			return n
		}
		return v
	}
	for _, c := range fresh {
		for _, in := range c.Instrs {
			for i, a := range in.Args {
				in.Args[i] = rename(a)
			}
			in.Guard = rename(in.Guard)
		}
	}
	fresh = append(fresh, u.connect(copies, rename, first))
	at := slices.Index(f.Blocks, u.blocks[0])
	renumber(f, slices.Insert(f.Blocks, at, fresh...))
}

// connect gives the copies their edges: in from the preheader, on to the loop through a preheader of its own, and out
// to the loop's exit.
func (u *unroller) connect(copies map[*Block]*Block, rename func(Value) Value, first int) *Block {
	h := u.l.Header
	pre := &Block{Succs: []*Block{h}}
	pre.Instrs = []*Instr{{Op: Jump, Site: -1, Guard: NoValue, Block: pre}}
	latch := h.Preds[1-first]
	for _, phi := range h.Instrs {
		if phi.Op != Phi {
			break
		}
		phi.Args[first] = rename(phi.Args[1-first])
	}
	h.Preds[first] = pre
	for _, b := range u.blocks {
		c := copies[b]
		for _, s := range b.Succs {
			switch {
			case s == h:
				c.Succs = append(c.Succs, pre)
			case u.l.Blocks[s]:
				c.Succs = append(c.Succs, copies[s])
			default:
				c.Succs = append(c.Succs, s)
				k := slices.Index(s.Preds, b)
				s.Preds = append(s.Preds, c)
				for _, phi := range s.Instrs {
					if phi.Op != Phi {
						break
					}
					phi.Args = append(phi.Args, rename(phi.Args[k]))
				}
			}
		}
		if b == h {
			c.Preds = []*Block{u.pre}
			u.pre.Succs = []*Block{c}
			continue
		}
		for _, p := range b.Preds {
			c.Preds = append(c.Preds, copies[p])
		}
	}
	pre.Preds = []*Block{copies[latch]}
	u.pre = pre
	return pre
}
