package opt

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// AnalyseShapes finds how each value varies over the lanes that compute it together: equal in all (Uniform); base plus
// lane times a constant, and, if a block has rows of less than 32 threads, plus the lane's row times another (Affine);
// or freely (Varying). The lanes of a warp that are at one place form a group with scalars of its own. The scalars are
// copied when a group splits and compared when groups meet. So a value is Uniform only if all lanes of a group must
// agree on it. Where lanes arrive by different ways, a join must not hold different scalars: its phis are Varying.
//
// Affine values that are widened or multiplied wide may wrap. The engine checks the values at the ends and splits the
// group if they wrap.
func AnalyseShapes(f *Func) {
	f.free = map[Value]bool{}
	reconvergeFirst(f)
	f.analyse()
}

func (f *Func) analyse() {
	f.apart, f.ownMemory = false, f.Env.Lockstep && f.hasOwnMemory()
	for again := true; again; {
		for v := range f.Values {
			f.Values[v].Shape = Shape{}
		}
		dom := Dominators(f)
		inner := Loops(f, dom)
		diverged := map[*Block]bool{}
		branches := varying{f: f, pdom: PostDominators(f), seen: map[*Block]bool{}}
		var diverging map[*Loop]bool
		for grew := true; grew; {
			f.propagate(diverged)
			grew = branches.markJoins(diverged)
			var exits map[*Block]bool
			diverging, exits = f.divergingLoops(inner)
			for b := range exits {
				grew = grew || !diverged[b]
				diverged[b] = true
			}
		}
		again = f.varyAfterLoops(diverging, inner, dom)
	}
}

// propagate raises shapes to the fixed point.
func (f *Func) propagate(diverged map[*Block]bool) {
	for changed := true; changed; {
		changed = false
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				for i, v := range in.Dst {
					if v == NoValue {
						continue
					}
					s := Shape{Kind: Varying}
					if !f.free[v] {
						s = f.shapeOf(in, i, diverged)
					}
					if old := f.Values[v].Shape; s.Kind > old.Kind || s.Kind == Affine && old.Kind == Affine && s != old {
						if s.Kind == Affine && old.Kind == Affine {
							s = Shape{Kind: Varying}
						}
						f.Values[v].Shape = s
						changed = true
					}
				}
			}
		}
	}
}

// varying holds the branches that were found to vary while shapes are raised.
type varying struct {
	f    *Func
	pdom []int
	seen map[*Block]bool
}

// markJoins adds the blocks that lanes may reach by different ways from a branch that varies, up to and including its
// immediate post-dominator.
func (y *varying) markJoins(diverged map[*Block]bool) bool {
	f, changed := y.f, false
	for _, b := range f.Blocks {
		t := b.Term()
		if y.seen[b] || t.Op != Branch && t.Op != Switch || f.Values[t.Args[0]].Shape.Kind < Affine {
			continue
		}
		y.seen[b] = true
		if f.Env.Lockstep && !f.apart && f.meetsLate(t, y.pdom[b.ID]) {
			f.apart, changed = true, true
		}
		for _, x := range f.joins(b, y.pdom[b.ID]) {
			changed = changed || !diverged[x]
			diverged[x] = true
		}
	}
	return changed
}

// joins finds the blocks at which different ways from b meet, on the way to stop (an ID), which is one too. Each block
// is labelled with the last block that all ways to it pass: a successor of b, a join, or the label of the blocks before
// it. Ways end at b: the header of a loop is not a join of a branch in it whose other way leaves the loop, because the
// lanes that come back to the header are all in one turn.
func (f *Func) joins(b *Block, stop int) []*Block {
	last := make([]*Block, len(f.Blocks))
	edges := map[*Block]int{} // from b
	for _, s := range b.Succs {
		edges[s]++
	}
	// Only blocks that lanes reach before stop, and before they come back to b, can be joins.
	on := make([]bool, len(f.Blocks))
	var way []*Block
	reach := func(from *Block) {
		for _, s := range from.Succs {
			if !on[s.ID] {
				on[s.ID] = true
				way = append(way, s)
			}
		}
	}
	reach(b)
	for i := 0; i < len(way); i++ {
		if x := way[i]; x != b && x.ID != stop {
			reach(x)
		}
	}
	slices.SortFunc(way, func(x, y *Block) int { return x.ID - y.ID })
	var found []*Block
	for pass, changed := 0, true; changed; pass++ {
		changed, found = false, found[:0]
		for _, x := range way {
			var from *Block
			join := edges[x] > 1
			if edges[x] > 0 {
				from = x
			}
			for _, p := range x.Preds {
				if at := last[p.ID]; p != b && p.ID != stop && at != nil {
					join = join || from != nil && from != at
					from = at
				}
			}
			if pass > len(f.Blocks) { // in irreducible loops the labels might alternate forever
				join = join || len(x.Preds) > 1 && from != nil
			}
			if join {
				found, from = append(found, x), x
			}
			changed = changed || from != last[x.ID]
			last[x.ID] = from
		}
	}
	return found
}

// PostDominators returns the immediate post-dominator of each block by ID, -1 if only the end of the thread is one.
func PostDominators(f *Func) []int {
	n := len(f.Blocks)
	exit := &Block{ID: n}
	preds := func(b *Block) []*Block { // in the reversed graph
		if b == exit {
			return nil
		}
		if len(b.Succs) == 0 {
			return []*Block{exit}
		}
		return b.Succs
	}
	var ends []*Block
	for _, b := range f.Blocks {
		if len(b.Succs) == 0 {
			ends = append(ends, b)
		}
	}
	succs := func(b *Block) []*Block {
		if b == exit {
			return ends
		}
		return b.Preds
	}
	seen := make([]bool, n+1)
	var post []*Block
	type visit struct {
		b *Block
		i int
	}
	stack := []visit{{exit, 0}}
	seen[n] = true
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if s := succs(top.b); top.i < len(s) {
			x := s[top.i]
			top.i++
			if !seen[x.ID] {
				seen[x.ID] = true
				stack = append(stack, visit{x, 0})
			}
			continue
		}
		post = append(post, top.b)
		stack = stack[:len(stack)-1]
	}
	idom := dominators(n+1, post, preds)
	for i := range idom {
		if idom[i] == n {
			idom[i] = -1
		}
	}
	return idom[:n]
}

func (f *Func) shapeOf(in *Instr, result int, diverged map[*Block]bool) Shape {
	arg := func(i int) Shape { return f.Values[in.Args[i]].Shape }
	uniform, varying := Shape{Kind: Uniform}, Shape{Kind: Varying}
	affine := func(stride, row int64) Shape {
		if stride == 0 && row == 0 {
			return uniform
		}
		return Shape{Affine, stride, row}
	}
	times := func(n int64) Shape { return affine(arg(0).Stride*n, arg(0).Row*n) }
	worst := Unknown
	unknown := false
	for _, a := range in.Args {
		if a != NoValue {
			k := f.Values[a].Shape.Kind
			worst = max(worst, k)
			unknown = unknown || k == Unknown
		}
	}
	if in.Op == Phi {
		return f.phiShape(in, diverged)
	}
	if unknown {
		return Shape{}
	}
	allUniform := worst <= Uniform
	w := f.Width(in.Dst[result])
	switch in.Op {
	case Const, KParam, Symbol, LocalPtr:
		return uniform
	case Special:
		if f.apart && !in.Pure() {
			return varying
		}
		return f.Env.specialShape(isa.SpecialID(in.Imm))
	case Copy:
		return varying // its purpose is to hold a value that differs once lanes part
	case Add, Sub:
		a, b := arg(0), arg(1)
		if a.Kind == Varying || b.Kind == Varying {
			return varying
		}
		if in.Op == Sub {
			return affine(a.Stride-b.Stride, a.Row-b.Row)
		}
		return affine(a.Stride+b.Stride, a.Row+b.Row)
	case Mul, Shl, MulU, MulS:
		if allUniform {
			return uniform
		}
		if c, ok := f.ConstOf(in.Args[1]); ok && arg(0).Kind == Affine {
			if (in.Op == MulU || in.Op == MulS) && !f.widens(in) {
				return varying
			}
			switch in.Op {
			case Shl:
				if c < 32 {
					return times(1 << c)
				}
			case Mul:
				return times(signed(c, w.Bits()))
			case MulU:
				return times(int64(uint32(c)))
			case MulS:
				return times(int64(int32(c)))
			}
		}
		return varying
	case SExt, ZExt:
		if allUniform {
			return uniform
		}
		from := f.Width(in.Args[0]).Bits()
		if arg(0).Kind == Affine && (in.Imm == 32 && w == W64 && from == 32 && f.widens(in) || int(in.Imm) >= w.Bits()) {
			return arg(0)
		}
		return varying
	case Sel:
		if arg(0).Kind == Uniform && arg(1) == arg(2) {
			return arg(1)
		}
		return varying
	case And, Or, Xor, Not, ShrU, ShrS, Cmp, Row:
		if allUniform {
			return uniform
		}
	case Load:
		// A uniform address is enough: the lanes of one access read together, so that no other thread can write between
		// their reads.
		if f.Values[in.Args[0]].Shape.Kind == Uniform && in.Guard == NoValue && f.readsTogether(in) {
			return uniform
		}
	}
	return varying
}

// steady reports whether the lanes of a warp probably hold an affine value without a wrap between them. A hash of the
// lane number, say, wraps all the time.
func (s Shape) steady() bool {
	return -1<<20 < s.Stride && s.Stride < 1<<20 && -1<<20 < s.Row && s.Row < 1<<20
}

// widens reports whether the engine shall widen an affine value as a whole; it splits the group if a lane wraps. A warp
// in lockstep cannot be split, so there it must be known that no lane wraps.
func (f *Func) widens(in *Instr) bool {
	if !f.Env.Lockstep {
		return f.Values[in.Args[0]].Shape.steady()
	}
	lo, _, ok := f.span(in.Args[0], 10)
	return ok && (lo >= 0 || in.Op == SExt || in.Op == MulS)
}

// readsTogether reports whether the lanes of a load at one address certainly get the same bytes, which is not so in
// memory that is private to a lane. A generic address that turns out to be local makes the engine split the group.
func (f *Func) readsTogether(in *Instr) bool {
	return in.Inst.Space != event.Local && !f.apart && !(f.ownMemory && in.Inst.Space == event.Generic)
}

func (f *Func) phiShape(in *Instr, diverged map[*Block]bool) Shape {
	s := Shape{}
	for _, a := range in.Args {
		x := f.Values[a].Shape
		switch {
		case x.Kind == Unknown, a == in.Result():
		case s.Kind == Unknown:
			s = x
		case s != x:
			return Shape{Kind: Varying}
		}
	}
	if s.Kind != Unknown && diverged[in.Block] {
		return Shape{Kind: Varying}
	}
	return s
}

func (e *Env) specialShape(id isa.SpecialID) Shape {
	x, y := e.Block[0], e.Block[1]
	row := e.RowLanes()
	several := row < 32
	// Within a row tid.x grows by 1 from lane to lane and the others are constant. From row to row tid.y grows, unless
	// it wraps to 0.
	rows := uint32(32 / row)
	grows := several && (y%rows == 0 || e.Block[2] == 1)
	switch id {
	case isa.TidX:
		if several || x%32 == 0 || y*e.Block[2] == 1 {
			return Shape{Kind: Affine, Stride: 1}
		}
		return Shape{Kind: Varying}
	case isa.TidY:
		switch {
		case grows:
			return Shape{Kind: Affine, Row: 1}
		case x%32 == 0:
			return Shape{Kind: Uniform}
		}
		return Shape{Kind: Varying}
	case isa.TidZ:
		if x*y%32 == 0 {
			return Shape{Kind: Uniform}
		}
		return Shape{Kind: Varying}
	case isa.LaneID:
		if several {
			return Shape{Affine, 1, row}
		}
		return Shape{Kind: Affine, Stride: 1}
	case isa.LanemaskEQ, isa.LanemaskLE, isa.LanemaskLT, isa.LanemaskGE, isa.LanemaskGT:
		return Shape{Kind: Varying}
	}
	return Shape{Kind: Uniform}
}

// varyAfterLoops handles loops that lanes may leave in different iterations: after such a loop a value varies even if it is
// equal for all lanes in every iteration. It adds a Copy after the exit for values that are computed in the loop and
// used after it.
// If no single exit leads to a use, the value is treated as Varying from the start. It reports whether f changed.
func (f *Func) varyAfterLoops(diverging map[*Loop]bool, inner []*Loop, dom *DomTree) bool {
	changed := false
	users := map[Value][]*Instr{}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			for _, a := range append(in.Args[:len(in.Args):len(in.Args)], in.Guard) {
				if a != NoValue {
					users[a] = append(users[a], in)
				}
			}
		}
	}
	for _, b := range f.Blocks {
		for l := inner[b.ID]; l != nil; l = l.Parent {
			if !diverging[l] {
				continue
			}
			for _, in := range b.Instrs {
				for _, v := range in.Dst {
					if v != NoValue && !f.free[v] && f.Values[v].Shape.Kind < Varying {
						changed = f.carryOut(v, l, users[v], dom) || changed
					}
				}
			}
			break
		}
	}
	return changed
}

// carryOut routes the uses of v outside l through copies.
func (f *Func) carryOut(v Value, l *Loop, users []*Instr, dom *DomTree) bool {
	changed := false
	copies := map[*Block]Value{}
	for _, u := range users {
		if u.Op == Phi || l.Blocks[u.Block] {
			// A phi reads at the end of its predecessor, so it is a use outside the loop if that predecessor is
			// outside.
			outside := false
			if u.Op == Phi {
				for i, a := range u.Args {
					outside = outside || a == v && !l.Blocks[u.Block.Preds[i]]
				}
			}
			if !outside {
				continue
			}
		}
		exit := exitBefore(l, u.Block, dom)
		if u.Op == Copy && exit == u.Block {
			continue // the Copy of an earlier run
		}
		if exit == nil || u.Op == Phi {
			f.free[v] = true
			return true
		}
		c, ok := copies[exit]
		if !ok {
			n := &Instr{Op: Copy, Site: -1, Guard: NoValue, Args: []Value{v}, Block: exit}
			c = f.NewValue(f.Width(v), n)
			n.Dst = []Value{c}
			at := 0
			for exit.Instrs[at].Op == Phi {
				at++
			}
			exit.Instrs = append(exit.Instrs[:at:at], append([]*Instr{n}, exit.Instrs[at:]...)...)
			copies[exit] = c
		}
		for i, a := range u.Args {
			if a == v {
				u.Args[i] = c
			}
		}
		if u.Guard == v {
			u.Guard = c
		}
		changed = true
	}
	return changed
}

// exitBefore finds the block after an exit of l, entered only from l, that dominates b. It returns nil if there is
// none.
func exitBefore(l *Loop, b *Block, dom *DomTree) *Block {
	for x := b; ; {
		all := len(x.Preds) > 0
		for _, p := range x.Preds {
			all = all && l.Blocks[p]
		}
		if all {
			return x
		}
		d := dom.idom[x.ID]
		if d < 0 {
			return nil
		}
		x = dom.blocks[d]
		if l.Blocks[x] {
			return nil
		}
	}
}

// divergingLoops returns the loops that lanes may leave in different turns, and the blocks after their exits.
func (f *Func) divergingLoops(inner []*Loop) (map[*Loop]bool, map[*Block]bool) {
	loops, exits := map[*Loop]bool{}, map[*Block]bool{}
	for _, b := range f.Blocks {
		t := b.Term()
		if t.Op != Branch && t.Op != Switch || f.Values[t.Args[0]].Shape.Kind < Affine {
			continue
		}
		for l := inner[b.ID]; l != nil; l = l.Parent {
			for _, s := range b.Succs {
				if !l.Blocks[s] {
					loops[l] = true
				}
			}
		}
	}
	for l := range loops {
		for b := range l.Blocks {
			for _, s := range b.Succs {
				if !l.Blocks[s] {
					exits[s] = true
				}
			}
		}
	}
	return loops, exits
}
