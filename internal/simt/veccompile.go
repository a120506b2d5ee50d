package simt

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/lanes"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/simt/loader"
)

// compiler turns the internal form of a kernel into a text.
type compiler struct {
	f   *opt.Func
	img *loader.Image
	t   *text

	file  []file  // by value
	slope []slope // of scalars
	fixed []bool  // scalars that never change
	reg   []int32
	heads []int // by block: the instructions that edges do

	used            bitset // values that an instruction reads
	liveIn, liveOut []bitset
	starts          []int32 // pc of each block
	lineOf          map[line]int32
	pending         []lanes.Op // not yet in the code
	counted         int32      // instructions that pending stands for
	region          []lanes.Op // the list of operations being made
	runs            []int32    // the opRun of region, which have places in it
	stores          bool       // region has stores
	jumps           []jump
	placed          int             // how many of jumps lie in text.ops; the others in region
	meets           map[uint64]bool // in lockstep: the Meets of branches that lanes may part at
}

// compile makes the text of an optimised function.
func compile(f *opt.Func, img *loader.Image) *text {
	n := len(f.Values)
	b := &compiler{f: f, img: img, t: &text{local: (f.Local + 15) &^ 15, sites: f.Sites}, file: make([]file, n), slope: make([]slope, n),
		fixed: make([]bool, n), reg: make([]int32, n), heads: make([]int, len(f.Blocks)), starts: make([]int32, len(f.Blocks)), lineOf: map[line]int32{}}
	for v := range b.reg {
		b.reg[v] = -1
	}
	b.t.lockstep = f.Env.Lockstep
	for b.classify(); ; b.classify() {
		bad := b.check()
		if len(bad) == 0 {
			break
		}
		if b.t.lockstep { // what hangs on them, joins among it, must be known
			f.Vary(bad)
			return compile(f, img)
		}
		clear(b.heads)
		clear(b.file)
		clear(b.slope)
	}
	b.fix()
	b.partings()
	b.liveness()
	b.allocate()
	for _, bl := range f.Blocks {
		b.block(bl)
	}
	b.flush()
	b.link()
	// Edges were made before the blocks behind them had a place.
	for i := range b.t.edges {
		b.t.edges[i].to = b.starts[b.t.edges[i].to]
	}
	if !b.usesLocal() {
		b.t.local = 0
	}
	return b.t
}

// usesLocal reports whether the kernel can reach local memory.
func (b *compiler) usesLocal() bool {
	for _, bl := range b.f.Blocks {
		for _, in := range bl.Instrs {
			if in.Op == opt.LocalPtr || in.Op >= opt.Load && in.Op <= opt.Atomic && in.Inst.Space == event.Local {
				return true
			}
		}
	}
	return false
}

// classify gives each value its file.
func (b *compiler) classify() {
	for _, bl := range b.f.Blocks {
		head := true
		for _, in := range bl.Instrs {
			copyOfHead := false
			if in.Op == opt.Copy {
				d := b.f.Def(in.Args[0])
				copyOfHead = d != nil && d.Op == opt.Copy && d.Block == bl
			}
			if head = head && (in.Op == opt.Phi || in.Op == opt.Copy && !copyOfHead); head {
				b.heads[bl.ID]++
			}
			for _, v := range in.Dst {
				if v != opt.NoValue {
					b.classifyValue(v, in)
				}
			}
		}
	}
}

func (b *compiler) classifyValue(v opt.Value, in *opt.Instr) {
	info := &b.f.Values[v]
	switch in.Op {
	case opt.Const, opt.KParam, opt.Symbol, opt.LocalPtr:
		b.file[v], b.fixed[v] = scalars, true
		return
	case opt.Special:
		if s := b.f.Values[v].Shape; s.Kind == opt.Uniform || s.Kind == opt.Affine {
			b.file[v], b.slope[v] = scalars, slopeOf(s)
			b.fixed[v] = in.Pure()
			return
		}
	}
	switch {
	case info.Shape.Kind == opt.Uniform:
		b.file[v] = scalars
	case info.Shape.Kind == opt.Affine && info.Width != opt.W1:
		b.file[v], b.slope[v] = scalars, slopeOf(info.Shape)
	case info.Width == opt.W1:
		b.file[v] = predicates
	case info.Width == opt.W32:
		b.file[v] = vectors32
	default:
		b.file[v] = vectors64
	}
}

// uniform reports whether v is a scalar that is the same in all lanes.
func (b *compiler) uniform(v opt.Value) bool { return b.file[v] == scalars && b.slope[v] == slope{} }

// partings finds out which Meets lanes may wait at.
func (b *compiler) partings() {
	b.meets = map[uint64]bool{}
	for _, bl := range b.f.Blocks {
		if t := bl.Term(); t.Op == opt.Switch || t.Op == opt.Branch && b.file[t.Args[0]] != scalars {
			b.meets[t.Imm] = b.t.lockstep
		}
	}
}

// check makes sure that what defines a scalar has scalar arguments of fitting strides. It gives the values for which that was not
// so: they vary now.
func (b *compiler) check() (bad []opt.Value) {
	for _, bl := range b.f.Blocks {
		for _, in := range bl.Instrs {
			for _, v := range in.Dst {
				if v != opt.NoValue && b.file[v] == scalars && !b.fixed[v] && !b.fits(in, v) {
					b.f.Values[v].Shape = opt.Shape{Kind: opt.Varying}
					bad = append(bad, v)
				}
			}
		}
	}
	return bad
}

func (b *compiler) fits(in *opt.Instr, v opt.Value) bool {
	mask := b.f.Width(v).Mask()
	all := true // every argument is uniform
	scalar := true
	for _, a := range in.Args {
		if a != opt.NoValue {
			all = all && b.uniform(a)
			scalar = scalar && b.file[a] == scalars
		}
	}
	want := b.slope[v]
	flat := want == slope{}
	arg := func(i int) slope { return b.slope[in.Args[i]] }
	same := func(x slope) bool { return (x.lane-want.lane)&mask == 0 && (x.row-want.row)&mask == 0 }
	sum := func(x, y slope, sign uint64) slope { return slope{x.lane + sign*y.lane, x.row + sign*y.row} }
	switch in.Op {
	case opt.Special:
		return true
	case opt.Phi, opt.Copy:
		for i := range in.Args {
			if b.file[in.Args[i]] != scalars || !same(arg(i)) {
				return false
			}
		}
		return true
	case opt.Load:
		return flat && b.uniform(in.Args[0]) && in.Guard == opt.NoValue && in.Inst.Space != event.Local
	case opt.Warp, opt.Atomic, opt.Builtin, opt.Barrier, opt.Call, opt.Enter:
		return false
	}
	if all {
		return flat
	}
	if !scalar {
		return false
	}
	switch in.Op {
	case opt.Add:
		return same(sum(arg(0), arg(1), 1))
	case opt.Sub:
		return same(sum(arg(0), arg(1), ^uint64(0)))
	case opt.Mul, opt.MulU, opt.MulS, opt.Shl:
		c, ok := b.f.ConstOf(in.Args[1])
		if !ok {
			return false
		}
		switch in.Op {
		case opt.Shl:
			if c >= 64 {
				return false
			}
			c = 1 << c
		case opt.MulU:
			c = uint64(uint32(c))
		case opt.MulS:
			c = uint64(int64(int32(c)))
		}
		return same(slope{arg(0).lane * c, arg(0).row * c})
	case opt.SExt, opt.ZExt:
		from := b.f.Width(in.Args[0])
		return same(arg(0)) && (int(in.Imm) >= b.f.Width(v).Bits() || in.Imm == 32 && from == opt.W32)
	case opt.Sel:
		return b.uniform(in.Args[0]) && same(arg(1)) && same(arg(2))
	}
	return false
}

// fix gives the scalars that never change the first registers.
func (b *compiler) fix() {
	for _, bl := range b.f.Blocks {
		for _, in := range bl.Instrs {
			if len(in.Dst) != 1 || in.Dst[0] == opt.NoValue || !b.fixed[in.Dst[0]] {
				continue
			}
			v := in.Dst[0]
			x := fixed{reg: int32(b.t.scalars), val: in.Imm}
			switch in.Op {
			case opt.LocalPtr:
				x.from = fixedLocal
			case opt.KParam:
				x.from, x.size = fixedParam, uint64(in.Aux)
			case opt.Symbol:
				x.val = b.img.Operand(in.Sym).Val
			case opt.Special:
				x.from = fixedSpecial
			}
			b.reg[v] = x.reg
			b.t.fixed = append(b.t.fixed, x)
			b.t.scalars++
		}
	}
}

// slopeOf is the slope of values of a shape.
func slopeOf(s opt.Shape) slope { return slope{uint64(s.Stride), uint64(s.Row)} }

// line gives the operand for a scalar that is used as a vector.
func (b *compiler) line(reg int32, s slope) int32 {
	l := line{reg: reg, pattern: -1, stride: s.lane}
	switch row := uint64(b.f.Env.RowLanes()); {
	case row == 32 || s.row == row*s.lane:
	case row == 1:
		l.stride = s.row
	default:
		l.stride, l.pattern = 0, b.pattern(s)
	}
	return b.lineAt(l)
}

func (b *compiler) lineAt(l line) int32 {
	i, ok := b.lineOf[l]
	if !ok {
		i = int32(len(b.t.lines))
		b.lineOf[l] = i
		b.t.lines = append(b.t.lines, l)
	}
	return ^i
}

// vec is v as a vector operand, pred as a predicate operand.
func (b *compiler) vec(v opt.Value) int32 {
	if b.file[v] == scalars {
		return b.line(b.reg[v], b.slope[v])
	}
	return b.reg[v]
}

func (b *compiler) pred(v opt.Value) int32 {
	if b.file[v] == scalars {
		return ^b.reg[v]
	}
	return b.reg[v]
}

// operand is v for access lane by lane.
func (b *compiler) operand(v opt.Value) loader.Operand {
	if v == opt.NoValue {
		return loader.Operand{}
	}
	o := loader.Operand{Reg: b.reg[v]}
	switch b.file[v] {
	case scalars:
		o.Kind = loader.OpUniform
		if b.uniform(v) {
			break
		}
		l := b.t.lines[^b.vec(v)]
		wide := b.f.Width(v) == opt.W64
		switch o.Val = l.stride; {
		case l.pattern >= 0 && wide:
			o.Kind, o.Val = loader.OpPattern64, uint64(l.pattern)
		case l.pattern >= 0:
			o.Kind, o.Val = loader.OpPattern32, uint64(l.pattern)
		case wide:
			o.Kind = loader.OpAffine64
		default:
			o.Kind = loader.OpAffine32
		}
	case vectors32:
		o.Kind = loader.OpV32
	case vectors64:
		o.Kind = loader.OpV64
	case predicates:
		o.Kind = loader.OpPred
	}
	return o
}

// results are the slots of the results that are kept.
func (b *compiler) results(in *opt.Instr) []loader.Slot {
	var out []loader.Slot
	for i, v := range in.Dst {
		if v != opt.NoValue {
			o := b.operand(v)
			out = append(out, loader.Slot{At: int32(i), Reg: o.Reg, Kind: o.Kind})
		}
	}
	return out
}

// block emits the instructions of a block.
func (b *compiler) block(bl *opt.Block) {
	b.starts[bl.ID] = int32(len(b.t.code))
	head := b.heads[bl.ID]
	// Where groups meet again inside the block, what lives there must be known.
	after := map[int]bitset{}
	live := append(bitset(nil), b.liveOut[bl.ID]...)
	for k := len(bl.Instrs) - 1; k >= head; k-- {
		in := bl.Instrs[k]
		if waits(in) || in.Op == opt.Meet && b.meets[in.Imm] {
			after[k+1] = append(bitset(nil), live...)
		}
		for _, v := range in.Dst {
			if v != opt.NoValue {
				live[v>>6] &^= 1 << (uint(v) & 63)
			}
		}
		b.uses(in, live.add)
	}
	after[head] = live // the phis included, as far as they are used
	at, regs := -1, []int32(nil)
	for k := head; k < len(bl.Instrs); k++ {
		if l, ok := after[k]; ok {
			b.flush()
			at, regs = len(b.t.code), b.scalarsOf(l)
		}
		b.instr(bl, bl.Instrs[k])
		if at >= 0 && len(b.t.code) > at {
			b.t.meet[at] = int32(len(b.t.meets))
			b.t.meets = append(b.t.meets, regs)
			at = -1
		}
	}
}

// waits reports whether lanes may wait at the instruction, or come back from a call at different times.
func waits(in *opt.Instr) bool {
	return in.Op == opt.Call || in.Op == opt.Barrier || in.Op == opt.WarpBar || in.Op == opt.Warp && in.Inst.Has("sync")
}

// scalarsOf lists the registers of the scalars in a set that groups may disagree about.
func (b *compiler) scalarsOf(live bitset) []int32 {
	regs := []int32{}
	live.each(func(v opt.Value) {
		if b.file[v] == scalars && !b.fixed[v] {
			regs = append(regs, b.reg[v])
		}
	})
	return regs
}

// edge makes an edge.
func (b *compiler) edge(from *opt.Block, k int) int32 {
	var moves []move
	b.edgeSources(from, k, func(dst, src opt.Value) {
		m := move{file: b.file[dst], dst: b.reg[dst]}
		switch m.file {
		case scalars:
			m.src = b.reg[src]
		case predicates:
			m.src = b.pred(src)
		default:
			m.src = b.vec(src)
		}
		if m.src != m.dst {
			moves = append(moves, m)
		}
	})
	e := edge{to: int32(from.Succs[k].ID), moves: -1}
	ops := b.moveOps(b.sequence(moves))
	switch {
	case len(ops) == 0:
	case from.Term().Op == opt.Jump:
		b.pending = append(b.pending, ops...)
	default:
		e.moves = int32(len(b.t.ops))
		b.t.ops = append(append(b.t.ops, ops...), lanes.Op{Code: lanes.OpEnd})
	}
	b.t.edges = append(b.t.edges, e)
	return int32(len(b.t.edges) - 1)
}

// instr emits an instruction.
func (b *compiler) instr(bl *opt.Block, in *opt.Instr) {
	switch in.Op {
	case opt.Nop, opt.Const, opt.KParam, opt.Symbol, opt.LocalPtr:
	case opt.Enter:
		b.t.enter = b.results(in)
	case opt.Special:
		b.special(in)
	case opt.Meet:
		if b.meets[in.Imm] {
			b.flush()
			b.append(ins{op: opMeet, a: int32(in.Imm)}, 0)
		}
	case opt.Jump:
		b.fuseJump(bl)
	case opt.Branch:
		b.fuseBranch(bl)
	case opt.Switch, opt.Exit, opt.Trap, opt.Load, opt.Store, opt.Atomic, opt.Fence, opt.Barrier, opt.Warp, opt.WarpBar, opt.Builtin,
		opt.Call, opt.Return, opt.Depth:
		b.effect(bl, in)
	case opt.Row:
		if !b.vectorRow(in) {
			b.row(in, row{in: in.Inst})
		}
	default:
		if scalar := b.file[in.Result()] == scalars; scalar && b.usual(in) {
			b.scalar(in)
		} else if scalar || !b.vector(in) {
			b.row(in, row{native: in.Op, imm: in.Imm, aux: in.Aux, width: b.f.Width(in.Result())})
		}
	}
}

// row emits an instruction that is computed lane by lane, or once where everything is uniform.
func (b *compiler) row(in *opt.Instr, w row) {
	once := true
	for _, a := range in.Args {
		w.src = append(w.src, b.operand(a))
		once = once && (a == opt.NoValue || b.uniform(a))
	}
	w.dst = b.results(in)
	for _, d := range w.dst {
		once = once && d.Kind == loader.OpUniform
	}
	op := opRow
	if once {
		op = opRowS
	}
	b.t.rows = append(b.t.rows, w)
	b.add(ins{op: op, a: int32(len(b.t.rows) - 1)})
}

func (b *compiler) special(in *opt.Instr) {
	v := in.Result()
	if b.fixed[v] {
		return
	}
	w := row{imm: in.Imm, kept: !in.Pure(), dst: b.results(in)}
	b.t.rows = append(b.t.rows, w)
	op := opSpecial
	if b.file[v] == scalars {
		op = opClock
	}
	b.add(ins{op: op, d: b.reg[v], a: int32(len(b.t.rows) - 1), imm: in.Imm})
}

var effectOps = map[opt.Op]opcode{opt.Switch: opSwitch, opt.Exit: opExit, opt.Trap: opTrap, opt.Load: opLoad, opt.Store: opStore,
	opt.Atomic: opAtomic, opt.Fence: opFence, opt.Barrier: opSync, opt.Warp: opSync, opt.WarpBar: opSync, opt.Builtin: opBuiltin,
	opt.Call: opCall, opt.Return: opReturn, opt.Depth: opDepth}

// values gives an effect operands for what it stores or hands over.
func (b *compiler) values(e *effect, args []opt.Value) {
	for _, a := range args {
		if a == opt.NoValue {
			e.vals, e.wide = append(e.vals, 0), append(e.wide, false)
			continue
		}
		e.vals, e.wide = append(e.vals, b.vec(a)), append(e.wide, b.f.Width(a) == opt.W64)
	}
}

// effect emits an instruction that does more than compute.
func (b *compiler) effect(bl *opt.Block, in *opt.Instr) {
	e := effect{site: in.Site, fn: in.Fn, bar: -1}
	e.Inst = in.Inst
	if e.Inst == nil {
		e.Inst = &isa.Inst{}
	}
	for _, a := range in.Args {
		e.Operands = append(e.Operands, b.operand(a))
	}
	e.Actuals = e.Operands
	e.Results = b.results(in)
	if in.Guard != opt.NoValue {
		e.guarded, e.guardNot, e.guard = true, in.GuardNot, b.pred(in.Guard)
	}
	switch in.Op {
	case opt.Load, opt.Store, opt.Atomic:
		size := uint64(in.Inst.Type.Size())
		e.Width, e.Piece, e.Offset = size*uint64(max(in.Inst.Vec, 1)), min(size, 8), in.Imm
		e.NonCoherentLoad = in.Inst.NonCoherent()
		e.VarBegin, e.VarEnd = b.img.Object(in.Inst)
		e.addr, e.narrow = b.vec(in.Args[0]), b.f.Width(in.Args[0]) != opt.W64
		e.reach = -1
		vals := in.Args[1:]
		if e.Element = in.Elem; e.Element != 0 {
			vals = vals[:len(vals)-1]
		}
		b.values(&e, vals)
		if in.Op == opt.Atomic {
			e.unread = !slices.ContainsFunc(e.Results, func(d loader.Slot) bool { return b.used.has(in.Dst[d.At]) })
			e.rmw = lanesRMW(&e)
		}
		e.uniform = in.Op == opt.Load && slices.ContainsFunc(e.Results, func(d loader.Slot) bool { return d.Kind == loader.OpUniform })
	case opt.Barrier:
		if id, ok := b.f.ConstOf(in.Args[0]); ok && id < 16 && in.Inst.Op == isa.OpSync && in.Inst.Src[1].Kind == isa.Sink {
			e.bar = int8(id)
		}
	case opt.Warp:
		e.Masked = in.Inst.Has("sync")
		if in.Inst.Class == isa.Tile {
			e.Width, e.Piece = in.Inst.Tiles.Piece, in.Inst.Tiles.Element
		}
		if in.Inst.Class == isa.Matrix {
			e.Width, e.Piece, e.Offset = loader.MatrixRow, loader.MatrixElement, in.Imm
			e.addr, e.narrow = b.vec(in.Args[0]), b.f.Width(in.Args[0]) != opt.W64
		}
		if e.shuffles = in.Inst.Row.Op == "shfl" && b.uniform(in.Args[2]) && b.f.Width(in.Args[0]) == opt.W32 && b.f.Width(in.Args[1]) == opt.W32; e.shuffles {
			e.vals = []int32{b.vec(in.Args[0]), b.vec(in.Args[1])}
		}
	case opt.Call, opt.Return, opt.Depth:
		b.callEffect(&e, in)
	case opt.Switch:
		for k := range bl.Succs {
			e.succs = append(e.succs, b.edge(bl, k))
		}
		e.meet = int32(in.Imm)
		e.fall = slices.Index(in.Inst.Targets, b.f.Sites[in.Site].At+1)
	}
	i := ins{op: effectOps[in.Op], a: int32(len(b.t.effects))}
	if in.Op == opt.Load || in.Op == opt.Store {
		if f := b.fastAccess(&e, in.Op == opt.Store); f != nil {
			b.t.effects = append(b.t.effects, e)
			i.b = e.reach
			b.fuse(i, f)
			return
		}
	}
	b.t.effects = append(b.t.effects, e)
	b.add(i)
}
