package opt

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// With Env.Uninit, a value that may depend on uninitialised storage gets a shadow: a value of the same width whose set
// bits mark the bits of the value that are uninitialised. Registers begin uninitialised, and so does local memory at
// each call. The engine keeps a shadow of local memory, which ShadowLoad reads and ShadowStore writes. Values loaded
// from other memory count as initialised: the events of those reads are judged instead.
//
// A shadow follows a value bit by bit through copies, selections, shifts and bitwise operations, so that padding and
// the other members of a union or a bit-field do not count. For any other operation every bit of the result is marked
// if any bit of a source is. Undefined reports an uninitialised value that decides a branch, is the address of an
// access, or is stored in global memory. Values stored in shared memory count as written.

// Why is the use of an unwritten value: Instr.Aux of Undefined.
const (
	ForBranch uint8 = iota
	ForAddress
	ForOutput // a store to, or an atomic operation on, global memory
)

// undefinedConst, as Instr.Aux, marks a Const that stands for an unwritten register.
const undefinedConst = 1

// shadower is the pass.
type shadower struct {
	f      *Func
	memory bool     // there is local memory
	known  int      // number of values that the function had before
	shadow []Value  // by value: NoValue if it is certainly initialised
	origin []int32  // by value with a shadow: 1 plus the site where it was loaded, 0 if there is not exactly one
	local  []bool   // by value: see findLocal
	phis   []*Instr // whose shadows have no arguments yet
	groups map[copyGroup][]*Instr
	out    []*Instr
	block  *Block
}

// copyGroup is the stores of one copying statement in a block.
type copyGroup struct {
	block     *Block
	call, loc int32
}

// Shadow adds the shadows. memory says that the kernel, or a function that it calls, has local memory.
func Shadow(f *Func, memory bool) {
	s := &shadower{f: f, memory: memory, known: len(f.Values), groups: map[copyGroup][]*Instr{}}
	s.findLocal()
	if !s.find() && !memory {
		return
	}
	for _, b := range f.Blocks[1:] {
		for _, in := range b.Instrs {
			if s.copiesAll(in) {
				k := s.groupOf(in)
				s.groups[k] = append(s.groups[k], in)
			}
		}
	}
	if !f.Fn.Entry {
		s.enter()
	}
	for _, b := range f.Blocks[1:] {
		s.block, s.out = b, make([]*Instr, 0, 2*len(b.Instrs))
		for _, in := range b.Instrs {
			s.before(in)
			in.Block = b
			s.out = append(s.out, in)
			s.after(in)
		}
		b.Instrs = phisFirst(s.out)
	}
	s.finish()
}

// readsShadow reports whether an operation on shadows may be removed if its result is not read.
func (in *Instr) readsShadow() bool {
	return in.Op == ShadowLoad || in.Op == ShadowShuffle || in.Op == ShadowTake
}

// enter receives the shadows of a function's parameters.
func (s *shadower) enter() {
	for _, in := range s.f.entry().Instrs {
		if in.Op == Enter {
			x := &Instr{Op: ShadowTake, Site: -1, Guard: NoValue, Inst: in.Inst}
			s.results(in, x)
			insertBefore(s.f.entry(), x)
			return
		}
	}
}

// pass passes the shadows of values.
func (s *shadower) pass(in *Instr, list []Value) {
	x := &Instr{Op: ShadowPass, Site: in.Site, Guard: NoValue, Inst: in.Inst, Block: s.block}
	for _, v := range list {
		if v == NoValue {
			x.Args = append(x.Args, s.f.Konst(W32, 0))
			continue
		}
		x.Args = append(x.Args, s.of(v))
	}
	s.out = append(s.out, x)
}

// phisFirst moves the phis of a block to the front, keeping their order.
func phisFirst(list []*Instr) []*Instr {
	out := make([]*Instr, 0, len(list))
	for _, phi := range []bool{true, false} {
		for _, in := range list {
			if (in.Op == Phi) == phi {
				out = append(out, in)
			}
		}
	}
	return out
}

// find marks the values that may depend on uninitialised storage, and makes the shadows of phis and of uninitialised
// registers, which are used before they are visited. It reports whether there are any.
func (s *shadower) find() bool {
	f := s.f
	marked, any := make([]bool, s.known), false
	s.origin = make([]int32, s.known)
	for changed := true; changed; {
		changed = false
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				from, ok := s.source(in, marked)
				if !ok {
					continue
				}
				for i, v := range in.Dst {
					if v != NoValue && !marked[v] && s.carries(in, i) {
						marked[v], s.origin[v], changed, any = true, from, true, true
					}
				}
			}
		}
	}
	s.shadow = make([]Value, s.known)
	for v := range s.shadow {
		s.shadow[v] = NoValue
		if !marked[v] {
			continue
		}
		switch d := f.Values[v].Def; d.Op {
		case Const:
			s.shadow[v] = f.Konst(f.Values[v].Width, ^uint64(0))
		case Phi:
			phi := &Instr{Op: Phi, Site: -1, Guard: NoValue, Block: d.Block}
			phi.Dst = []Value{f.NewValue(f.Values[v].Width, phi)}
			s.shadow[v] = phi.Result()
		default:
			s.shadow[v] = pendingShadow
		}
	}
	return any
}

// pendingShadow stands for the shadow of a value that has not been visited yet.
const pendingShadow Value = -2

// source reports whether the results of an instruction may depend on uninitialised storage, and where that was loaded.
func (s *shadower) source(in *Instr, marked []bool) (origin int32, ok bool) {
	switch {
	case in.Op == Const:
		return 0, in.Aux == undefinedConst
	case in.Op == Load:
		return in.Site + 1, s.maybeLocal(in)
	case in.Op == Enter, in.Op == Call:
		return 0, true
	case in.Pure(), in.Op == Warp && slices.Contains(combining, in.Inst.Row.Op):
		for i, a := range in.Args {
			if a != NoValue && marked[a] && (!exchanges(in) || i == 0) {
				return s.origin[a], true
			}
		}
	}
	return 0, false
}

// combining are the instructions that compute a lane's result from the values of several lanes. For all but shfl the
// lane's own value stands for all: a value that one lane has not written is usually unwritten in the others too.
var combining = []string{"shfl", "redux", "mma", "wmma", "movmatrix"}

// exchanges reports whether an instruction is a shfl.
func exchanges(in *Instr) bool { return in.Op == Warp && in.Inst.Row.Op == "shfl" }

// carries reports whether a result of an instruction depends on the values of its sources.
func (s *shadower) carries(in *Instr, result int) bool { return !exchanges(in) || result == 0 }

// maybeLocal reports whether an access may be one of local memory.
func (s *shadower) maybeLocal(in *Instr) bool {
	switch in.Inst.Space {
	case event.Local:
		return true
	case event.Generic:
		return s.local[in.Args[0]]
	}
	return false
}

// findLocal finds the values that may be addresses of local memory: all that are computed from one, and pointers that
// were loaded or passed. Addresses that come from the host or from the program's text are none.
func (s *shadower) findLocal() {
	s.local = make([]bool, s.known)
	for changed := s.memory; changed; {
		changed = false
		for _, b := range s.f.Blocks {
			for _, in := range b.Instrs {
				for _, v := range in.Dst {
					if v != NoValue && !s.local[v] && s.f.Width(v) == W64 && s.givesLocal(in) {
						s.local[v], changed = true, true
					}
				}
			}
		}
	}
}

func (s *shadower) givesLocal(in *Instr) bool {
	switch in.Op {
	case Const, KParam, Symbol, Special, Mul, MulU, MulS, Shl, ShrU, ShrS:
		return false
	case Phi, Copy, Add, Sub, And, Or, Xor, Not, SExt, ZExt, Sel:
		return slices.ContainsFunc(in.Args, func(a Value) bool { return s.local[a] })
	}
	return true
}

// groupOf returns the statement of a store.
func (s *shadower) groupOf(in *Instr) copyGroup {
	return copyGroup{in.Block, s.f.Sites[in.Site].Call, in.Inst.Loc}
}

// copiesAll reports whether a store stores a value that was only moved since it was loaded or computed as a whole.
func (s *shadower) copiesAll(in *Instr) bool {
	if in.Op != Store || in.Site < 0 || !s.public(in) {
		return false
	}
	for _, v := range in.Args[1:] {
		if v == NoValue || !moved(s.f.Def(v)) {
			return false
		}
	}
	return true
}

// moved reports whether a value was loaded, passed, or assembled from parts of others.
func moved(d *Instr) bool {
	switch d.Op {
	case Load, Const, Copy, Phi, Sel, And, Or, Xor, Shl, ShrU, ZExt, SExt, Enter, Call:
		return true
	case Row:
		return movesBits(d.Inst)
	}
	return false
}

// public reports whether an access may be one of global memory.
func (s *shadower) public(in *Instr) bool {
	return in.Inst.Space == event.Global || in.Inst.Space == event.Generic
}

// of returns the shadow of a value, a constant if the value is certainly initialised.
func (s *shadower) of(v Value) Value {
	if sh := s.shadow[v]; sh != NoValue {
		if sh == pendingShadow {
			panic("BUG: a shadow is used before it is made")
		}
		return sh
	}
	return s.f.Konst(s.f.Width(v), 0)
}

func (s *shadower) has(v Value) bool {
	return v != NoValue && int(v) < s.known && s.shadow[v] != NoValue
}

// emit adds an instruction with one result.
func (s *shadower) emit(op Op, w Width, imm uint64, args ...Value) Value {
	in := &Instr{Op: op, Site: -1, Guard: NoValue, Args: args, Imm: imm, Block: s.block}
	in.Dst = []Value{s.f.NewValue(w, in)}
	s.out = append(s.out, in)
	return in.Result()
}

// any returns the predicate that some bit of v is set.
func (s *shadower) any(v Value) Value {
	w := s.f.Width(v)
	if w == W1 {
		return v
	}
	return s.compare(NE, v, s.f.Konst(w, 0))
}

func (s *shadower) compare(c Cond, a, b Value) Value {
	v := s.emit(Cmp, W1, uint64(c), a, b)
	s.f.Def(v).Aux = uint8(s.f.Width(a).Bits())
	return v
}

// spread returns a value of width w, with all bits set if a bit of v is.
func (s *shadower) spread(v Value, w Width) Value {
	if v = s.any(v); w == W1 {
		return v
	}
	return s.emit(SExt, w, 1, v)
}

// union combines shadows, without those that are NoValue, as predicates.
func (s *shadower) union(list []Value) Value {
	all := NoValue
	for _, v := range list {
		if !s.has(v) {
			continue
		}
		if p := s.any(s.of(v)); all == NoValue {
			all = p
		} else {
			all = s.emit(Or, W1, 0, all, p)
		}
	}
	return all
}

// guarded restricts a predicate to the lanes that take part in an instruction.
func (s *shadower) guarded(in *Instr, p Value) Value {
	if in.Guard == NoValue {
		return p
	}
	g := in.Guard
	if in.GuardNot {
		g = s.emit(Not, W1, 0, g)
	}
	return s.emit(And, W1, 0, p, g)
}

// report adds an Undefined for the lanes of a predicate, at an instruction that depends on v.
func (s *shadower) report(in *Instr, why uint8, p, v Value) {
	origin := int32(0)
	if int(v) < s.known {
		origin = s.origin[v]
	}
	s.out = append(s.out, &Instr{Op: Undefined, Site: in.Site, Guard: NoValue, Args: []Value{p}, Aux: why, Imm: uint64(origin), Inst: in.Inst, Block: s.block})
}

// before adds the reports for the values that an instruction uses.
func (s *shadower) before(in *Instr) {
	if in.Site < 0 {
		return
	}
	switch in.Op {
	case Branch, Switch, Call:
		if v := in.Args[0]; s.has(v) {
			s.report(in, ForBranch, s.any(s.of(v)), v)
		}
		if in.Op == Call {
			s.pass(in, in.Args[1:])
		}
	case Return:
		s.pass(in, in.Args)
	case Load, Store, Atomic:
		if v := in.Args[0]; s.has(v) {
			s.report(in, ForAddress, s.guarded(in, s.any(s.of(v))), v)
		}
		switch {
		case in.Op == Store:
			s.stored(in)
		case in.Op == Atomic && s.public(in):
			for _, v := range in.Args[1:] {
				if s.has(v) {
					s.report(in, ForOutput, s.outside(in, s.guarded(in, s.any(s.of(v)))), v)
				}
			}
		}
	case Warp:
		if in.Inst.Class == isa.Tile && len(in.Dst) == 0 && s.public(in) {
			for _, v := range in.Args[1:] {
				if s.has(v) {
					s.report(in, ForOutput, s.outside(in, s.whole(v, 8)), v)
				}
			}
		}
	}
}

// stored reports uninitialised values that a store writes to global memory. A computed value counts. A copied value may
// be padding: it counts only if nothing of all that the statement copies was written, and it does not count if the
// compiler has made a loop of the statement.
func (s *shadower) stored(in *Instr) {
	if !s.public(in) {
		return
	}
	if !s.copiesAll(in) {
		for _, v := range in.Args[1:] {
			if s.has(v) {
				s.report(in, ForOutput, s.outside(in, s.guarded(in, s.any(s.low(v, pieceSizeOf(in))))), v)
			}
		}
		return
	}
	group := s.groups[s.groupOf(in)]
	if in != group[len(group)-1] || in.Inst.Made {
		return
	}
	all, first := NoValue, NoValue
	for _, st := range group {
		for _, v := range st.Args[1:] {
			if !s.has(v) || st.Guard != NoValue && len(group) > 1 {
				return
			}
			if p := s.whole(v, pieceSizeOf(st)); all == NoValue {
				all, first = p, v
			} else {
				all = s.emit(And, W1, 0, all, p)
			}
		}
	}
	s.report(in, ForOutput, s.outside(in, s.guarded(in, all)), first)
}

// pieceSizeOf is the number of bytes in an operand of a store.
func pieceSizeOf(in *Instr) int { return min(in.Inst.Type.Size(), 8) }

// low returns the shadow of the low bytes of a value.
func (s *shadower) low(v Value, size int) Value {
	sh, w := s.of(v), s.f.Width(v)
	if 8*size >= w.Bits() {
		return sh
	}
	return s.emit(And, w, 0, sh, s.f.Konst(w, 1<<(8*size)-1))
}

// whole returns the predicate that none of the low bytes of a value was written.
func (s *shadower) whole(v Value, size int) Value {
	w := s.f.Width(v)
	if w == W1 {
		return s.of(v)
	}
	return s.compare(EQ, s.low(v, size), s.f.Konst(w, 1<<min(8*size, w.Bits())-1))
}

// outside restricts a predicate to the lanes whose access is one of global memory.
func (s *shadower) outside(in *Instr, p Value) Value {
	if in.Inst.Space == event.Global || s.f.Width(in.Args[0]) != W64 {
		return p
	}
	at := s.emit(Add, W64, 0, in.Args[0], s.f.Konst(W64, in.Imm))
	return s.emit(And, W1, 0, p, s.compare(LTU, at, s.f.Konst(W64, isa.SharedWindow))) // the lowest of the windows
}

// after adds the shadows of an instruction's results, and its effect on the shadow of local memory.
func (s *shadower) after(in *Instr) {
	switch {
	case in.Op == Phi:
		if s.has(in.Result()) {
			s.phis = append(s.phis, in)
			s.out = append(s.out, s.f.Def(s.shadow[in.Result()]))
		}
		return
	case in.Op == Store && s.maybeLocal(in):
		s.access(in, s.of)
		return
	case in.Op == Atomic && s.maybeLocal(in):
		s.access(in, func(v Value) Value { return s.f.Konst(s.f.Width(v), 0) })
		return
	}
	pending := false
	for _, v := range in.Dst {
		pending = pending || v != NoValue && s.shadow[v] == pendingShadow
	}
	switch {
	case !pending:
	case in.Op == Load:
		x := s.copyOf(in, ShadowLoad, []Value{in.Args[0]})
		s.results(in, x)
	case in.Op == Call:
		x := &Instr{Op: ShadowTake, Site: in.Site, Guard: NoValue, Inst: in.Inst, Block: s.block}
		s.results(in, x)
		s.out = append(s.out, x)
	case exchanges(in):
		args := append([]Value{s.of(in.Args[0])}, in.Args[1:]...)
		x := &Instr{Op: ShadowShuffle, Site: in.Site, Guard: NoValue, Args: args, Inst: in.Inst, Block: s.block}
		x.Dst = []Value{s.f.NewValue(s.f.Width(in.Dst[0]), x)}
		s.out = append(s.out, x)
		s.shadow[in.Dst[0]] = x.Dst[0]
	case in.Op == Row && movesBits(in.Inst) && s.exact(in):
	case in.Op == Row || in.Op == Warp:
		s.row(in)
	default:
		s.shadow[in.Result()] = s.native(in)
	}
}

// copyOf adds an operation on the shadow of the memory that an access touches.
func (s *shadower) copyOf(in *Instr, op Op, args []Value) *Instr {
	x := &Instr{Op: op, GuardNot: in.GuardNot, Site: in.Site, Guard: in.Guard, Args: args, Imm: in.Imm, Inst: in.Inst, Block: s.block}
	s.out = append(s.out, x)
	return x
}

// access adds a ShadowStore for a store or an atomic operation.
func (s *shadower) access(in *Instr, of func(Value) Value) {
	pieces := int(max(in.Inst.Vec, 1)) * max(1, in.Inst.Type.Size()/8)
	args := []Value{in.Args[0]}
	for _, v := range in.Args[1 : 1+pieces] {
		if v == NoValue {
			args = append(args, s.f.Konst(W64, 0))
			continue
		}
		args = append(args, of(v))
	}
	s.copyOf(in, ShadowStore, args)
}

// results makes the shadows of the results of in the results of x.
func (s *shadower) results(in, x *Instr) {
	for _, v := range in.Dst {
		if v == NoValue || s.shadow[v] != pendingShadow {
			x.Dst = append(x.Dst, NoValue)
			continue
		}
		sh := s.f.NewValue(s.f.Width(v), x)
		x.Dst = append(x.Dst, sh)
		s.shadow[v] = sh
	}
}

// native returns the shadow of the result of a native operation.
func (s *shadower) native(in *Instr) Value {
	f, w := s.f, s.f.Width(in.Result())
	x := in.Args[0]
	y := NoValue
	if len(in.Args) > 1 {
		y = in.Args[1]
	}
	switch in.Op {
	case Copy, Not:
		return s.of(x)
	case SExt, ZExt:
		return s.emit(in.Op, w, in.Imm, s.of(x))
	case And:
		return s.masked(x, y, func(v Value) Value { return v })
	case Or:
		return s.masked(x, y, func(v Value) Value { return s.emit(Not, w, 0, v) })
	case Add, Sub, Xor:
		if f.Width(x) == w && f.Width(y) == w {
			return s.emit(Or, w, 0, s.of(x), s.of(y))
		}
	case Shl, ShrU, ShrS:
		if !s.has(y) {
			return s.emit(in.Op, w, 0, s.of(x), y)
		}
	case Sel:
		v := s.emit(Sel, w, 0, x, s.of(y), s.of(in.Args[2]))
		if s.has(x) {
			v = s.emit(Or, w, 0, v, s.spread(s.of(x), w))
		}
		return v
	}
	return s.spread(s.union(in.Args), w)
}

// masked returns the shadow of x And y, or of x Or y. shows returns the bits of a source that let the other source
// through: its ones for And, its zeros for Or. An uninitialised bit of one source counts only if the other source's bit
// lets it through or is uninitialised itself.
func (s *shadower) masked(x, y Value, shows func(Value) Value) Value {
	w := s.f.Width(x)
	part := func(of, by Value) Value { // the uninitialised bits of of that by lets through
		if !s.has(of) {
			return NoValue
		}
		through := shows(by)
		if s.has(by) {
			through = s.emit(Or, w, 0, through, s.of(by))
		}
		return s.emit(And, w, 0, s.of(of), through)
	}
	a, b := part(x, y), part(y, x)
	switch {
	case a == NoValue:
		return b
	case b == NoValue:
		return a
	}
	return s.emit(Or, w, 0, a, b)
}

// movesBits reports whether an instruction only moves bits of some of its sources, and which sources control the move.
func movesBits(in *isa.Inst) bool {
	_, ok := bitMoves[in.Row.Op]
	return ok && !in.Sat && (in.Row.Op != "cvt" || !in.Type.Float() && !in.Type2.Float())
}

// bitMoves are the instructions that move bits, with the sources that control the move.
var bitMoves = map[string][]int{"mov": nil, "cvt": nil, "brev": nil, "prmt": {2}, "bfe": {1, 2}, "bfi": {2, 3}, "shf": {2}, "shl": {1}, "shr": {1}}

// exact makes the shadows of an instruction that moves bits by moving the shadows. It returns false if it cannot.
func (s *shadower) exact(in *Instr) bool {
	control := bitMoves[in.Inst.Row.Op]
	args := make([]Value, len(in.Args))
	for i, a := range in.Args {
		switch {
		case a == NoValue:
			args[i] = a
		case !slices.Contains(control, i):
			args[i] = s.of(a)
		case s.has(a):
			return false
		default:
			args[i] = a
		}
	}
	x := &Instr{Op: Row, Site: -1, Guard: NoValue, Args: args, Inst: in.Inst, Block: s.block}
	s.results(in, x)
	s.out = append(s.out, x)
	return true
}

// row gives all results of an instruction the same shadow.
func (s *shadower) row(in *Instr) {
	var p Value
	switch c := NoValue; {
	case in.Inst.Row.Op == "setp" && len(in.Args) > 2 && in.Args[2] != NoValue && in.Inst.Op != isa.NoOp:
		// The comparison does not count if the predicate that it is combined with decides.
		c = in.Args[2]
		if p = s.union(in.Args[:2]); p != NoValue && in.Inst.Op != isa.OpXor {
			open := c
			if in.Inst.Op == isa.OpOr {
				open = s.emit(Not, W1, 0, c)
			}
			p = s.emit(And, W1, 0, p, open)
		}
		switch {
		case p == NoValue:
			p = s.of(c)
		case s.has(c):
			p = s.emit(Or, W1, 0, p, s.of(c))
		}
	case in.Inst.Row.Op == "selp" && s.f.Width(in.Args[2]) == W1:
		p = s.emit(Sel, W1, 0, in.Args[2], s.any(s.of(in.Args[0])), s.any(s.of(in.Args[1])))
		if s.has(in.Args[2]) {
			p = s.emit(Or, W1, 0, p, s.of(in.Args[2]))
		}
	default:
		p = s.union(in.Args)
	}
	for _, v := range in.Dst {
		if v != NoValue && s.shadow[v] == pendingShadow {
			s.shadow[v] = s.spread(p, s.f.Width(v))
		}
	}
}

// finish sets the arguments of the shadows of phis.
func (s *shadower) finish() {
	for _, in := range s.phis {
		phi := s.f.Def(s.shadow[in.Result()])
		for _, a := range in.Args {
			phi.Args = append(phi.Args, s.of(a))
		}
	}
}
