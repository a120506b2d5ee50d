package vcode

import (
	"slices"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// compiler turns the internal form of a kernel into a text.
type compiler struct {
	f   *opt.Func
	img *loader.Image
	t   *Text

	file  []file  // by value
	slope []Slope // of scalars
	fixed []bool  // scalars that never change
	reg   []int32
	heads []int // by block: the number of instructions that edges execute

	used            bitset // values that an instruction reads
	liveIn, liveOut []bitset
	starts          []int32 // pc of each block
	lineOf          map[Line]int32
	pending         []lanes.Op // not yet in the code
	counted         int32      // number of instructions that pending stands for
	region          []lanes.Op // the list of operations being built
	runs            []int32    // the OpRun instructions of region, whose A is an index in it
	stores          bool       // region has stores
	jumps           []jump
	placed          int             // number of jumps whose op is an index in Text.Ops; the others index region
	meets           map[uint64]bool // in lockstep: the Meets of branches at which lanes may part
}

// compile makes the text of an optimised function.
func compile(f *opt.Func, img *loader.Image) *Text {
	n := len(f.Values)
	b := &compiler{f: f, img: img, t: &Text{Local: (f.Local + 15) &^ 15, Sites: f.Sites}, file: make([]file, n), slope: make([]Slope, n),
		fixed: make([]bool, n), reg: make([]int32, n), heads: make([]int, len(f.Blocks)), starts: make([]int32, len(f.Blocks)), lineOf: map[Line]int32{}}
	for v := range b.reg {
		b.reg[v] = -1
	}
	b.t.Lockstep, b.t.Shadows = f.Env.Lockstep, f.Env.Uninit
	for b.classify(); ; b.classify() {
		bad := b.check()
		if len(bad) == 0 {
			break
		}
		if b.t.Lockstep { // the values that depend on them, through joins too, must be known
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
	// The edges were made before their target blocks had a place.
	for i := range b.t.Edges {
		b.t.Edges[i].To = b.starts[b.t.Edges[i].To]
	}
	b.findArms()
	if !b.usesLocal() {
		b.t.Local = 0
	}
	return b.t
}

// usesLocal reports whether the kernel can access local memory.
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

// classify assigns a file to each value.
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

// uniform reports whether v is a scalar that is equal in all lanes.
func (b *compiler) uniform(v opt.Value) bool { return b.file[v] == scalars && b.slope[v] == Slope{} }

// partings finds the Meets at which lanes may wait.
func (b *compiler) partings() {
	b.meets = map[uint64]bool{}
	for _, bl := range b.f.Blocks {
		if t := bl.Term(); t.Op == opt.Switch || t.Op == opt.Branch && b.file[t.Args[0]] != scalars {
			b.meets[t.Imm] = b.t.Lockstep
		}
	}
}

// check verifies that the instruction that defines a scalar has scalar arguments of fitting strides. It returns the
// values for which this is not so. They vary from now on.
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
	flat := want == Slope{}
	arg := func(i int) Slope { return b.slope[in.Args[i]] }
	same := func(x Slope) bool { return (x.Lane-want.Lane)&mask == 0 && (x.Row-want.Row)&mask == 0 }
	sum := func(x, y Slope, sign uint64) Slope { return Slope{x.Lane + sign*y.Lane, x.Row + sign*y.Row} }
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
		return same(Slope{arg(0).Lane * c, arg(0).Row * c})
	case opt.SExt, opt.ZExt:
		from := b.f.Width(in.Args[0])
		return same(arg(0)) && (int(in.Imm) >= b.f.Width(v).Bits() || in.Imm == 32 && from == opt.W32)
	case opt.Sel:
		return b.uniform(in.Args[0]) && same(arg(1)) && same(arg(2))
	}
	return false
}

// fix assigns the first registers to the scalars that never change.
func (b *compiler) fix() {
	for _, bl := range b.f.Blocks {
		for _, in := range bl.Instrs {
			if len(in.Dst) != 1 || in.Dst[0] == opt.NoValue || !b.fixed[in.Dst[0]] {
				continue
			}
			v := in.Dst[0]
			x := Fixed{Reg: int32(b.t.Scalars), Val: in.Imm}
			switch in.Op {
			case opt.LocalPtr:
				x.From = FixedLocal
			case opt.KParam:
				x.From, x.Size = FixedParam, uint64(in.Aux)
			case opt.Symbol:
				x.Val = b.img.Operand(in.Sym).Val
			case opt.Special:
				x.From = FixedSpecial
			}
			b.reg[v] = x.Reg
			b.t.Fixed = append(b.t.Fixed, x)
			b.t.Scalars++
		}
	}
}

// slopeOf returns the slope of values of a shape.
func slopeOf(s opt.Shape) Slope { return Slope{uint64(s.Stride), uint64(s.Row)} }

// line returns the operand for a scalar that is used as a vector.
func (b *compiler) line(reg int32, s Slope) int32 {
	l := Line{Reg: reg, Pattern: -1, Stride: s.Lane}
	switch row := uint64(b.f.Env.RowLanes()); {
	case row == 32 || s.Row == row*s.Lane:
	case row == 1:
		l.Stride = s.Row
	default:
		l.Stride, l.Pattern = 0, b.pattern(s)
	}
	return b.lineAt(l)
}

func (b *compiler) lineAt(l Line) int32 {
	i, ok := b.lineOf[l]
	if !ok {
		i = int32(len(b.t.Lines))
		b.lineOf[l] = i
		b.t.Lines = append(b.t.Lines, l)
	}
	return ^i
}

// vec returns v as a vector operand. pred returns it as a predicate operand.
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

// operand returns v in the form for access lane by lane.
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
		l := b.t.Lines[^b.vec(v)]
		wide := b.f.Width(v) == opt.W64
		switch o.Val = l.Stride; {
		case l.Pattern >= 0 && wide:
			o.Kind, o.Val = loader.OpPattern64, uint64(l.Pattern)
		case l.Pattern >= 0:
			o.Kind, o.Val = loader.OpPattern32, uint64(l.Pattern)
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

// results returns the slots of the results that are kept.
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
	b.starts[bl.ID] = int32(len(b.t.Code))
	head := b.heads[bl.ID]
	// For the places inside the block at which groups join, find the live values.
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
	after[head] = live // including the phis that are used
	at, regs := -1, []int32(nil)
	for k := head; k < len(bl.Instrs); k++ {
		if l, ok := after[k]; ok {
			b.flush()
			at, regs = len(b.t.Code), b.scalarsOf(l)
		}
		b.instr(bl, bl.Instrs[k])
		if at >= 0 && len(b.t.Code) > at {
			b.t.Meet[at] = int32(len(b.t.Meets))
			b.t.Meets = append(b.t.Meets, regs)
			at = -1
		}
	}
}

// waits reports whether lanes may wait at the instruction, or return from a call at different times.
func waits(in *opt.Instr) bool {
	return in.Op == opt.Call || in.Op == opt.Barrier || in.Op == opt.WarpBar || in.Op == opt.Warp && in.Inst.Has("sync")
}

// scalarsOf lists the registers of the scalars in a set whose values may differ between groups.
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
	e := Edge{To: int32(from.Succs[k].ID), Moves: -1}
	ops := b.moveOps(b.sequence(moves))
	switch {
	case len(ops) == 0:
	case from.Term().Op == opt.Jump:
		b.pending = append(b.pending, ops...)
	default:
		e.Moves = int32(len(b.t.Ops))
		b.t.Ops = append(append(b.t.Ops, ops...), lanes.Op{Code: lanes.OpEnd})
	}
	b.t.Edges = append(b.t.Edges, e)
	return int32(len(b.t.Edges) - 1)
}

// instr emits an instruction.
func (b *compiler) instr(bl *opt.Block, in *opt.Instr) {
	switch in.Op {
	case opt.Nop, opt.Const, opt.KParam, opt.Symbol, opt.LocalPtr:
	case opt.Enter:
		b.t.Enter = b.results(in)
	case opt.Special:
		b.special(in)
	case opt.Meet:
		if b.meets[in.Imm] {
			b.flush()
			b.append(Instr{Op: OpReconverge, A: int32(in.Imm)}, 0)
		}
	case opt.Jump:
		b.fuseJump(bl)
	case opt.Branch:
		b.fuseBranch(bl)
	case opt.Switch, opt.Exit, opt.Trap, opt.Load, opt.Store, opt.Atomic, opt.Fence, opt.Barrier, opt.Warp, opt.WarpBar, opt.Builtin,
		opt.Call, opt.Return, opt.Depth:
		b.effect(bl, in)
	case opt.ShadowLoad, opt.ShadowStore, opt.ShadowShuffle, opt.ShadowPass, opt.ShadowTake, opt.ShadowFrame, opt.Undefined:
		b.shadow(in)
	case opt.Row:
		if !b.vectorRow(in) {
			b.row(in, Row{in: in.Inst})
		}
	default:
		if scalar := b.file[in.Result()] == scalars; scalar && b.usual(in) {
			b.scalar(in)
		} else if scalar || !b.vector(in) {
			b.row(in, Row{native: in.Op, Imm: in.Imm, aux: in.Aux, width: b.f.Width(in.Result())})
		}
	}
}

// row emits an instruction that is computed lane by lane, or once if all its values are uniform.
func (b *compiler) row(in *opt.Instr, w Row) {
	once := true
	for _, a := range in.Args {
		w.Src = append(w.Src, b.operand(a))
		once = once && (a == opt.NoValue || b.uniform(a))
	}
	w.Dst = b.results(in)
	for _, d := range w.Dst {
		once = once && d.Kind == loader.OpUniform
	}
	op := OpRow
	if once {
		op = OpRowS
	}
	b.t.Rows = append(b.t.Rows, w)
	b.add(Instr{Op: op, A: int32(len(b.t.Rows) - 1)})
}

func (b *compiler) special(in *opt.Instr) {
	v := in.Result()
	if b.fixed[v] {
		return
	}
	w := Row{Imm: in.Imm, Kept: !in.Pure(), Dst: b.results(in)}
	b.t.Rows = append(b.t.Rows, w)
	op := OpSpecial
	if b.file[v] == scalars {
		op = OpClock
	}
	b.add(Instr{Op: op, D: b.reg[v], A: int32(len(b.t.Rows) - 1), Imm: in.Imm})
}

var effectOps = map[opt.Op]Opcode{opt.Switch: OpSwitch, opt.Exit: OpExit, opt.Trap: OpTrap, opt.Load: OpLoad, opt.Store: OpStore,
	opt.Atomic: OpAtomic, opt.Fence: OpFence, opt.Barrier: OpSync, opt.Warp: OpSync, opt.WarpBar: OpSync, opt.Builtin: OpBuiltin,
	opt.Call: OpCall, opt.Return: OpReturn, opt.Depth: OpDepth}

// values sets the operands of an effect for the values that it stores or passes.
func (b *compiler) values(e *Effect, args []opt.Value) {
	for _, a := range args {
		if a == opt.NoValue {
			e.Vals, e.Wide = append(e.Vals, 0), append(e.Wide, false)
			continue
		}
		e.Vals, e.Wide = append(e.Vals, b.vec(a)), append(e.Wide, b.f.Width(a) == opt.W64)
	}
}

// shadow emits an operation on the shadow of memory. It counts as no step, so that schedules are the same as without
// shadows.
func (b *compiler) shadow(in *opt.Instr) {
	e := Effect{Site: in.Site, Bar: -1, Shadow: in.Op, Why: in.Aux, Origin: -1, Reach: -1}
	e.Inst = in.Inst
	for _, a := range in.Args {
		e.Operands = append(e.Operands, b.operand(a))
	}
	e.Results = b.results(in)
	if in.Guard != opt.NoValue {
		e.Guarded, e.PredNot, e.Pred = true, in.GuardNot, b.pred(in.Guard)
	}
	switch in.Op {
	case opt.ShadowLoad, opt.ShadowStore:
		size := uint64(in.Inst.Type.Size())
		e.Width, e.Piece = size*uint64(max(in.Inst.Vec, 1)), min(size, 8)
	case opt.Undefined:
		e.Pred = b.pred(in.Args[0])
		if in.Imm != 0 {
			e.Origin = int32(len(b.t.Origins))
			b.t.Origins = append(b.t.Origins, int32(in.Imm)-1)
		}
	}
	e.Offset = in.Imm
	b.flush()
	b.t.Effects = append(b.t.Effects, e)
	b.append(Instr{Op: OpShadow, A: int32(len(b.t.Effects) - 1)}, 0)
}

// effect emits an instruction that does more than compute.
func (b *compiler) effect(bl *opt.Block, in *opt.Instr) {
	e := Effect{Site: in.Site, Fn: in.Fn, Bar: -1}
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
		e.Guarded, e.PredNot, e.Pred = true, in.GuardNot, b.pred(in.Guard)
	}
	switch in.Op {
	case opt.Load, opt.Store, opt.Atomic:
		size := uint64(in.Inst.Type.Size())
		e.Width, e.Piece, e.Offset = size*uint64(max(in.Inst.Vec, 1)), min(size, 8), in.Imm
		e.NonCoherentLoad = in.Inst.NonCoherent()
		e.VarBegin, e.VarEnd = b.img.Object(in.Inst)
		e.Addr, e.Narrow = b.vec(in.Args[0]), b.f.Width(in.Args[0]) != opt.W64
		e.Reach = -1
		vals := in.Args[1:]
		if e.Element = in.Elem; e.Element != 0 {
			vals = vals[:len(vals)-1]
		}
		b.values(&e, vals)
		if in.Op == opt.Atomic {
			e.Unread = !slices.ContainsFunc(e.Results, func(d loader.Slot) bool { return b.used.has(in.Dst[d.At]) })
			e.LaneRMW = lanesRMW(&e)
		}
		e.Uniform = in.Op == opt.Load && slices.ContainsFunc(e.Results, func(d loader.Slot) bool { return d.Kind == loader.OpUniform })
	case opt.Barrier:
		if id, ok := b.f.ConstOf(in.Args[0]); ok && id < 16 && in.Inst.Op == isa.OpSync && in.Inst.Src[1].Kind == isa.Sink {
			e.Bar = int8(id)
		}
	case opt.Warp:
		e.Masked = in.Inst.Has("sync")
		if in.Inst.Class == isa.Tile {
			e.Width, e.Piece = in.Inst.Tiles.Piece, in.Inst.Tiles.Element
		}
		if in.Inst.Class == isa.Matrix {
			e.Width, e.Piece, e.Offset = loader.MatrixRow, loader.MatrixElement, in.Imm
			e.Addr, e.Narrow = b.vec(in.Args[0]), b.f.Width(in.Args[0]) != opt.W64
		}
		if e.Shuffles = in.Inst.Row.Op == "shfl" && b.uniform(in.Args[2]) && b.f.Width(in.Args[0]) == opt.W32 && b.f.Width(in.Args[1]) == opt.W32; e.Shuffles {
			e.Vals = []int32{b.vec(in.Args[0]), b.vec(in.Args[1])}
		}
	case opt.Call, opt.Return, opt.Depth:
		b.callEffect(&e, in)
	case opt.Switch:
		for k := range bl.Succs {
			e.Succs = append(e.Succs, b.edge(bl, k))
		}
		e.Meet = int32(in.Imm)
		e.Fall = slices.Index(in.Inst.Targets, b.f.Sites[in.Site].At+1)
	}
	i := Instr{Op: effectOps[in.Op], A: int32(len(b.t.Effects))}
	var f *fused
	switch in.Op {
	case opt.Load, opt.Store:
		f = b.fastAccess(&e, in.Op == opt.Store)
	case opt.Atomic:
		f = b.fastAtomic(&e, in)
	}
	if f != nil {
		b.t.Effects = append(b.t.Effects, e)
		i.B = e.Reach
		b.fuse(i, f)
		return
	}
	b.t.Effects = append(b.t.Effects, e)
	b.add(i)
}
