package opt

import "slices"

// Algebra applies identities until none applies: it removes neutral and absorbing elements, moves constants to the
// right and combines them, and simplifies multiplications by powers of two, extensions of extensions, and predicates
// that went through an integer. It moves constant address offsets into memory operations.
func Algebra(f *Func) bool {
	changed := false
	a := algebra{f: f}
	for again := true; again; {
		again = false
		for _, b := range f.Blocks {
			for i := 0; i < len(b.Instrs); i++ {
				in := b.Instrs[i]
				if a.rewrite(in) {
					again = true
				}
			}
		}
		if a.with.n > 0 {
			f.substitute(&a.with)
			a.sweep()
			again = true
		}
		changed = changed || again
	}
	return changed
}

type algebra struct {
	f    *Func
	with substitution
}

// sweep removes the instructions whose results were replaced.
func (a *algebra) sweep() {
	for _, b := range a.f.Blocks {
		b.Instrs = slices.DeleteFunc(b.Instrs, func(in *Instr) bool {
			if len(in.Dst) != 1 {
				return false
			}
			_, gone := a.with.next(in.Dst[0])
			if gone {
				a.f.Values[in.Dst[0]].Def = nil
			}
			return gone
		})
	}
	a.with.clear()
}

// is replaces the result of in by v.
func (a *algebra) is(in *Instr, v Value) bool {
	if _, done := a.with.next(in.Result()); done || v == in.Result() {
		return false
	}
	for n, ok := v, true; ok; n, ok = a.with.next(n) { // never make a cycle of replacements
		if n == in.Result() {
			return false
		}
	}
	a.with.replace(in.Result(), v)
	return true
}

func (a *algebra) konst(in *Instr, x uint64) bool {
	in.toConst(x & a.f.Width(in.Result()).Mask())
	return true
}

// arg returns the definition of an argument.
func (a *algebra) arg(in *Instr, i int) *Instr { return a.f.Def(in.Args[i]) }

func (a *algebra) rewrite(in *Instr) bool {
	f := a.f
	switch in.Op {
	case Load, Store, Atomic, ShadowLoad, ShadowStore:
		return a.address(in)
	case Phi:
		return a.phi(in)
	case Branch:
		if d := a.arg(in, 0); d.Op == Not {
			in.Args[0] = d.Args[0]
			in.Block.Succs[0], in.Block.Succs[1] = in.Block.Succs[1], in.Block.Succs[0]
			in.Aux ^= 1
			return true
		}
		return false
	}
	if in.Op == Row {
		return a.division(in)
	}
	if in.Op <= Copy || in.Op > Row {
		return false
	}
	if _, done := a.with.next(in.Result()); done {
		return false
	}
	w := f.Width(in.Result())
	switch in.Op {
	case Add, Mul, And, Or, Xor:
		return a.commutative(in, w)
	case Sub:
		if c, ok := f.ConstOf(in.Args[1]); ok {
			in.Op, in.Args[1] = Add, f.Konst(w, -c)
			return true
		}
		if in.Args[0] == in.Args[1] {
			return a.konst(in, 0)
		}
	case Not:
		if d := a.arg(in, 0); d.Op == Not {
			return a.is(in, d.Args[0])
		} else if d.Op == Cmp {
			in.Op, in.Imm, in.Aux, in.Args = Cmp, uint64(negated[d.Imm]), d.Aux, []Value{d.Args[0], d.Args[1]}
			return true
		}
	case Shl, ShrU, ShrS:
		return a.shift(in, w)
	case SExt, ZExt:
		return a.extension(in, w) || a.wide(in)
	case MulS, MulU:
		return a.wide(in)
	case Sel:
		return a.sel(in, w)
	case Cmp:
		return a.cmp(in)
	}
	return false
}

var negated = [...]Cond{EQ: NE, NE: EQ, LTS: GES, LES: GTS, GTS: LES, GES: LTS, LTU: GEU, LEU: GTU, GTU: LEU, GEU: LTU}
var swapped = [...]Cond{EQ: EQ, NE: NE, LTS: GTS, LES: GES, GTS: LTS, GES: LES, LTU: GTU, LEU: GEU, GTU: LTU, GEU: LEU}

func (a *algebra) commutative(in *Instr, w Width) bool {
	f := a.f
	if _, ok := f.ConstOf(in.Args[0]); ok {
		if _, both := f.ConstOf(in.Args[1]); both {
			return false // this is for Fold
		}
		in.Args[0], in.Args[1] = in.Args[1], in.Args[0]
		return true
	}
	if in.Args[0] == in.Args[1] {
		switch in.Op {
		case And, Or:
			return a.is(in, in.Args[0])
		case Xor:
			return a.konst(in, 0)
		}
	}
	c, ok := f.ConstOf(in.Args[1])
	if !ok {
		return in.Op == Add && w == W64 && (a.outwards(in, 0) || a.outwards(in, 1))
	}
	ones := w.Mask()
	switch {
	case c == 0 && (in.Op == Add || in.Op == Or || in.Op == Xor), c == ones && in.Op == And, c == 1 && in.Op == Mul:
		return a.is(in, in.Args[0])
	case c == 0 && (in.Op == Mul || in.Op == And):
		return a.konst(in, 0)
	case c == ones && in.Op == Or:
		return a.konst(in, ones)
	case c == 1 && in.Op == Xor && w == W1:
		in.Op, in.Args = Not, in.Args[:1]
		return true
	}
	if d := a.arg(in, 0); in.Op == And && d.Op == ZExt {
		// The bits that an extension cleared stay clear. A mask of ones below a width is an extension.
		if known := uint64(1)<<d.Imm - 1; d.Imm < 64 && c&known == known {
			return a.is(in, in.Args[0])
		}
	}
	if d := a.arg(in, 0); d.Op == in.Op {
		if c2, ok := f.ConstOf(d.Args[1]); ok {
			x := evalNative(in.Op, 0, 0, w.Bits(), c2, c, 0)
			in.Args = []Value{d.Args[0], f.Konst(w, x)}
			return true
		}
	}
	if d := a.arg(in, 0); in.Op == Mul && d.Op == Add && w == W64 {
		if k, ok := f.ConstOf(d.Args[1]); ok {
			return a.split(in, Mul, d.Args[0], in.Args[1], k*c)
		}
	}
	if k, ok := log2(c); ok && in.Op == Mul {
		in.Op, in.Args[1] = Shl, f.Konst(W32, k)
		return true
	}
	return false
}

func (a *algebra) shift(in *Instr, w Width) bool {
	c, ok := a.f.ConstOf(in.Args[1])
	if !ok {
		return false
	}
	if c == 0 {
		return a.is(in, in.Args[0])
	}
	if c >= uint64(w.Bits()) && in.Op != ShrS {
		return a.konst(in, 0)
	}
	d := a.arg(in, 0)
	if d.Op == in.Op && in.Op == Shl {
		if c2, ok := a.f.ConstOf(d.Args[1]); ok {
			in.Args = []Value{d.Args[0], a.f.Konst(W32, c+c2)}
			return true
		}
	}
	if in.Op == Shl && w == W64 && (d.Op == SExt && c < 31 || d.Op == ZExt && c < 32) && d.Imm == 32 && a.f.Width(d.Args[0]) == W32 {
		// An index times an element size: one wide product.
		op := MulU
		if d.Op == SExt {
			op = MulS
		}
		in.Op, in.Args = op, []Value{d.Args[0], a.f.Konst(W32, 1<<c)}
		return true
	}
	if in.Op == Shl && d.Op == Add {
		// (x + k) << c is (x << c) + (k << c): constants move outwards, into the addresses.
		if k, ok := a.f.ConstOf(d.Args[1]); ok {
			sh := &Instr{Op: Shl, Site: in.Site, Guard: NoValue, Args: []Value{d.Args[0], in.Args[1]}}
			a.before(in, sh, w)
			in.Op, in.Args = Add, []Value{sh.Result(), a.f.Konst(w, k<<c)}
			return true
		}
	}
	return false
}

// before inserts n before in, with one result of width w.
func (a *algebra) before(in, n *Instr, w Width) {
	n.Block = in.Block
	n.Dst = []Value{a.f.NewValue(w, n)}
	for i, x := range in.Block.Instrs {
		if x == in {
			rest := append([]*Instr{n}, in.Block.Instrs[i:]...)
			in.Block.Instrs = append(in.Block.Instrs[:i:i], rest...)
			return
		}
	}
	panic("BUG: instruction not in its block")
}

// outwards rewrites (x + k) + y of 64 bits as (x + y) + k, which moves constants towards the addresses.
func (a *algebra) outwards(in *Instr, i int) bool {
	d := a.arg(in, i)
	if d.Op != Add {
		return false
	}
	k, ok := a.f.ConstOf(d.Args[1])
	if !ok {
		return false
	}
	return a.split(in, Add, d.Args[0], in.Args[1-i], k)
}

// split rewrites in, of 64 bits, as the sum of op(x, y) and a constant.
func (a *algebra) split(in *Instr, op Op, x, y Value, k uint64) bool {
	n := &Instr{Op: op, Site: in.Site, Guard: NoValue, Args: []Value{x, y}}
	a.before(in, n, W64)
	in.Op, in.Imm, in.Args = Add, 0, []Value{n.Result(), a.f.Konst(W64, k)}
	return true
}

// wide moves a constant out of a widened sum that does not wrap.
func (a *algebra) wide(in *Instr) bool {
	f := a.f
	if f.Width(in.Result()) != W64 {
		return false
	}
	x, c, ok := f.splitsOff(in.Args[0], in.Op == ZExt || in.Op == MulU)
	if !ok {
		return false
	}
	if in.Op == SExt || in.Op == ZExt {
		if in.Imm != 32 {
			return false
		}
		n := &Instr{Op: in.Op, Site: in.Site, Guard: NoValue, Imm: 32, Args: []Value{x}}
		a.before(in, n, W64)
		in.Op, in.Imm, in.Args = Add, 0, []Value{n.Result(), f.Konst(W64, uint64(c))}
		return true
	}
	m, ok := f.ConstOf(in.Args[1])
	if !ok {
		return false
	}
	if in.Op == MulS {
		return a.split(in, MulS, x, in.Args[1], uint64(c*signed(m, 32)))
	}
	return a.split(in, MulU, x, in.Args[1], uint64(c)*m)
}

// division turns division by a power of two, and its remainder, into shifts. Signed division rounds toward zero, so the
// divisor minus one is first added to a negative dividend.
func (a *algebra) division(in *Instr) bool {
	f, op := a.f, in.Inst.Row.Op
	if op != "div" && op != "rem" || len(in.Args) != 2 || in.Dst[0] == NoValue {
		return false
	}
	w := f.Width(in.Result())
	t := in.Inst.Type
	if t.Float() || t.Size()*8 != w.Bits() || f.Width(in.Args[0]) != w {
		return false
	}
	c, ok := f.ConstOf(in.Args[1])
	k, pow := log2(c & w.Mask())
	if !ok || !pow || k == 0 || t.Signed() && int(k) == w.Bits()-1 {
		return false
	}
	x := in.Args[0]
	emit := func(op Op, p, q Value) Value {
		n := &Instr{Op: op, Site: in.Site, Guard: NoValue, Args: []Value{p, q}}
		a.before(in, n, w)
		return n.Result()
	}
	count := func(n uint64) Value { return f.Konst(W32, n) }
	in.Inst, in.Imm, in.Aux = nil, 0, 0
	switch {
	case !t.Signed() && op == "div":
		in.Op, in.Args = ShrU, []Value{x, count(k)}
	case !t.Signed():
		in.Op, in.Args = And, []Value{x, f.Konst(w, c-1)}
	default:
		bits := uint64(w.Bits())
		up := emit(ShrU, emit(ShrS, x, count(bits-1)), count(bits-k))
		sum := emit(Add, x, up)
		if op == "div" {
			in.Op, in.Args = ShrS, []Value{sum, count(k)}
		} else {
			in.Op, in.Args = Sub, []Value{x, emit(And, sum, f.Konst(w, -c))}
		}
	}
	return true
}

func (a *algebra) extension(in *Instr, w Width) bool {
	f := a.f
	from := f.Width(in.Args[0])
	if from == w && in.Imm >= uint64(w.Bits()) {
		return a.is(in, in.Args[0])
	}
	d := a.arg(in, 0)
	switch {
	case d.Op == ZExt && in.Op == ZExt:
		in.Imm, in.Args = min(in.Imm, d.Imm), []Value{d.Args[0]}
		return true
	case d.Op == SExt && in.Imm <= d.Imm, d.Op == ZExt && in.Imm <= d.Imm:
		in.Args = []Value{d.Args[0]}
		return true
	case d.Op == SExt && in.Op == SExt && in.Imm > d.Imm:
		in.Imm, in.Args = d.Imm, []Value{d.Args[0]}
		return true
	case d.Op == ZExt && in.Op == SExt && in.Imm > d.Imm:
		in.Op, in.Imm, in.Args = ZExt, d.Imm, []Value{d.Args[0]}
		return true
	}
	return false
}

func (a *algebra) sel(in *Instr, w Width) bool {
	f := a.f
	if in.Args[1] == in.Args[2] {
		return a.is(in, in.Args[1])
	}
	if c, ok := f.ConstOf(in.Args[0]); ok {
		return a.is(in, in.Args[2-int(c&1)])
	}
	if d := a.arg(in, 0); d.Op == Not {
		in.Args[0], in.Args[1], in.Args[2] = d.Args[0], in.Args[2], in.Args[1]
		return true
	}
	x, okx := f.ConstOf(in.Args[1])
	y, oky := f.ConstOf(in.Args[2])
	if okx && oky && y == 0 && x == 1 {
		in.Op, in.Imm, in.Args = ZExt, 1, in.Args[:1]
		if w == W1 {
			return a.is(in, in.Args[0])
		}
		return true
	}
	return false
}

func (a *algebra) cmp(in *Instr) bool {
	f := a.f
	if _, ok := f.ConstOf(in.Args[0]); ok {
		if _, both := f.ConstOf(in.Args[1]); both {
			return false
		}
		in.Args[0], in.Args[1], in.Imm = in.Args[1], in.Args[0], uint64(swapped[in.Imm])
		return true
	}
	c, ok := f.ConstOf(in.Args[1])
	if !ok {
		return false
	}
	cond := Cond(in.Imm)
	d := a.arg(in, 0)
	// A predicate that was stored as 0 or 1 (nvcc's bool variables), perhaps masked again.
	if d.Op == ZExt && f.Width(d.Args[0]) == W1 && (cond == EQ || cond == NE) && c <= 1 {
		if (cond == NE) == (c == 0) {
			return a.is(in, d.Args[0])
		}
		in.Op, in.Imm, in.Aux, in.Args = Not, 0, 0, []Value{d.Args[0]}
		return true
	}
	return false
}

func (a *algebra) phi(in *Instr) bool {
	if _, done := a.with.next(in.Result()); done {
		return false
	}
	same := NoValue
	for _, v := range in.Args {
		if v == in.Result() || v == same {
			continue
		}
		if same != NoValue {
			return false
		}
		same = v
	}
	if same == NoValue {
		return false
	}
	return a.is(in, same)
}

// address moves a constant addend of the address into Imm. Both are sums modulo 2^64.
func (a *algebra) address(in *Instr) bool {
	d := a.arg(in, 0)
	if d.Op == Const && d.Imm != 0 {
		in.Imm += d.Imm
		in.Args[0] = a.f.Konst(W64, 0)
		return true
	}
	if d.Op != Add || a.f.Width(d.Result()) != W64 {
		return false
	}
	c, ok := a.f.ConstOf(d.Args[1])
	if !ok {
		return false
	}
	in.Args[0] = d.Args[0]
	in.Imm += c
	return true
}
