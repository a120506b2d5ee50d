package opt

import (
	"maps"
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

func sortKeys(keys []int32) { slices.Sort(keys) }

// widthOf is the width of the value for a register of size bytes (isa.Operand.Size). A size of 0 is a predicate.
func widthOf(size uint8) Width {
	switch {
	case size == 0:
		return W1
	case size <= 4:
		return W32
	}
	return W64
}

// block emits the instructions of a draft and its terminator.
func (b *builder) block(d *draft) {
	b.enter(d)
	if b.f.Env.Lockstep {
		b.meet(d)
	}
	fn := d.fr.fn
	for i := d.from; i < d.to; i++ {
		in := &fn.Insts[i]
		b.site = -1
		if in.Class != isa.Branch && in.Class != isa.Ret || in.Class == isa.Branch && b.f.Env.Uninit {
			b.site = b.siteOf(d.fr, i)
		}
		if ends(in) {
			b.end(d, in)
			return
		}
		b.inst(d, in)
	}
	b.site = -1
	if d.check {
		in := &fn.Insts[d.from]
		if b.f.Env.Uninit {
			b.site = b.siteOf(d.fr, d.from)
		}
		b.branch(b.guard(d.fr, in), in.GuardNot, d.block)
		return
	}
	b.jump(d.block)
}

// enter initialises the draft's knowledge of .param variables at its start.
func (b *builder) enter(d *draft) {
	d.params = map[int]atom{}
	switch {
	case d.prologue:
		b.site = -1
		b.formals(d.fr)
	case d.returns != nil:
		maps.Copy(d.params, d.before.params)
		b.results(d)
	case len(d.preds) == 1 && d.preds[0].fr == d.fr:
		maps.Copy(d.params, d.preds[0].params)
	}
}

// results copies the bytes that the callee stored before it returned to the caller's .param variables.
func (b *builder) results(d *draft) {
	call := &d.fr.fn.Insts[d.before.to-1]
	for i := range d.returns.fn.Sig.Rets {
		b.result(d, &call.RetOps[i], b.returned(d.returns, i), d.returns.fn.Sig.Rets[i].Size)
	}
}

// returned returns the bytes that a frame's function leaves in its i-th result. Bytes that it never stores are missing.
func (b *builder) returned(fr *frame, i int) map[int]atom {
	ret := fr.fn.Sig.Rets[i]
	bytes := map[int]atom{}
	if ret.Off < 0 {
		setParam(bytes, 0, b.read(b.cur.block, fr.regs+ret.Reg, widthOf(ret.Register().Size)), ret.Size)
		return bytes
	}
	for _, p := range pieces(fr.fn, ret) {
		setParam(bytes, p.off-ret.Off, b.read(b.cur.block, fr.params+int32(p.off), pieceWidth(p.size)), p.size)
	}
	return bytes
}

// result puts the bytes of a call's result in its destination operand.
func (b *builder) result(d *draft, op *isa.Operand, bytes map[int]atom, size int) {
	switch op.Kind {
	case isa.Reg:
		b.write(d.fr.regs+op.Reg, b.fit(b.gather(bytes, 0, size), widthOf(op.Size)))
	case isa.ParamAddr:
		for k := range size {
			if a, ok := bytes[k]; ok {
				b.keep(d, int(op.Imm)+k, a)
			}
		}
	}
}

type piece struct{ off, size int }

func pieceWidth(size int) Width {
	if size > 4 {
		return W64
	}
	return W32
}

// pieces cuts a result parameter into the ranges that the function stores. Each is either always stored as a whole, or
// is bytes.
func pieces(fn *isa.Func, ret isa.Param) []piece {
	size := map[int]int{}
	bytes := map[int]bool{}
	for i := range fn.Insts {
		in := &fn.Insts[i]
		if in.Class != isa.Store || in.Space != event.Param || in.Src[0].Kind != isa.ParamAddr {
			continue
		}
		n := min(in.Type.Size(), 8)
		for k := range in.Src[1:] {
			off := int(in.Src[0].Imm) + int(in.Off) + k*n
			if off < ret.Off || off+n > ret.Off+ret.Size {
				continue
			}
			if old, ok := size[off]; ok && old != n {
				for j := 0; j < max(n, old); j++ {
					bytes[off+j] = true
				}
			}
			size[off] = max(size[off], n)
		}
	}
	offs := slices.Sorted(maps.Keys(size))
	var ps []piece
	end := -1
	for _, off := range offs {
		if off < end {
			// Stores of different offsets overlap: split everything into bytes.
			for j := ret.Off; j < ret.Off+ret.Size; j++ {
				bytes[j] = true
			}
		}
		end = off + size[off]
	}
	for _, off := range offs {
		n := size[off]
		split := false
		for j := 0; j < n; j++ {
			split = split || bytes[off+j]
		}
		if !split {
			ps = append(ps, piece{off, n})
			continue
		}
		for j := 0; j < n; j++ {
			ps = append(ps, piece{off + j, 1})
		}
	}
	slices.SortFunc(ps, func(a, b piece) int { return a.off - b.off })
	return slices.Compact(ps)
}

// setParam stores the low size bytes of v at an offset of the parameter frame.
func setParam(params map[int]atom, off int, v Value, size int) {
	for k := 0; k < size; k++ {
		params[off+k] = atom{v, uint8(k)}
	}
}

// getParam reads size bytes, zero-extended. It returns false if none of them is known.
func (b *builder) getParam(params map[int]atom, off, size int) (Value, bool) {
	w := pieceWidth(size)
	out := NoValue
	for k := 0; k < size; {
		a, ok := params[off+k]
		if !ok {
			return NoValue, false
		}
		v := b.find(a.v)
		n := 1
		for k+n < size {
			next, ok := params[off+k+n]
			if !ok || b.find(next.v) != v || next.k != a.k+uint8(n) {
				break
			}
			n++
		}
		part := b.field(v, int(a.k)*8, n*8, w)
		if k > 0 {
			part = b.emit(Shl, w, 0, part, b.konst(W32, uint64(k*8)))
			part = b.emit(Or, w, 0, out, part)
		}
		out = part
		k += n
	}
	return out, true
}

// field extracts bits [lo, lo+bits) of v, zero-extended to w.
func (b *builder) field(v Value, lo, bits int, w Width) Value {
	from := b.f.Width(v)
	if lo > 0 {
		v = b.emit(ShrU, from, 0, v, b.konst(W32, uint64(lo)))
	}
	if from == W1 {
		return b.emit(ZExt, w, 1, v)
	}
	if from == w && lo+bits >= w.Bits() {
		return v
	}
	return b.emit(ZExt, w, uint64(bits), v)
}

func (b *builder) guard(fr *frame, in *isa.Inst) Value {
	return b.read(b.cur.block, fr.regs+in.Guard, W1)
}

func (b *builder) jump(bl *Block) {
	b.add(bl, &Instr{Op: Jump, Site: b.site, Guard: NoValue})
}

func (b *builder) branch(cond Value, not bool, bl *Block) {
	if not {
		bl.Succs[0], bl.Succs[1] = bl.Succs[1], bl.Succs[0]
	}
	b.add(bl, &Instr{Op: Branch, Site: b.site, Guard: NoValue, Args: []Value{cond}})
}

// end emits the terminator for an instruction.
func (b *builder) end(d *draft, in *isa.Inst) {
	bl := d.block
	switch in.Class {
	case isa.Branch:
		switch {
		case len(d.succs) == 1:
			b.jump(bl)
		case in.Guard >= 0 && !d.applied:
			b.branch(b.guard(d.fr, in), in.GuardNot, bl)
			b.parts(d, in)
		default:
			v := b.operand(d.fr, &in.Src[0])
			b.add(bl, &Instr{Op: Switch, Site: b.siteOf(d.fr, d.to-1), Guard: NoValue, Args: []Value{v}, Inst: in})
			b.parts(d, in)
		}
	case isa.Ret:
		if d.fr.up != nil {
			b.jump(bl)
			return
		}
		b.site = b.siteOf(d.fr, d.to-1)
		b.leave(d)
	case isa.Exit:
		b.add(bl, &Instr{Op: Exit, Site: b.site, Guard: NoValue})
	case isa.Trap:
		b.add(bl, &Instr{Op: Trap, Site: b.site, Guard: NoValue, Inst: in})
	case isa.Call:
		if d.inlines != nil {
			b.pass(d, in)
		} else {
			b.call(d, in)
		}
		b.site = -1
		b.jump(bl)
	}
}

// spill stores the parameters whose address the callee takes into its local memory. The caller may have left bytes
// between them unwritten. Bytes that one store wrote are known as a whole.
func (b *builder) spill(callee *frame) {
	for _, s := range callee.fn.Spills {
		known := func(k, n int) bool {
			for ; n > 0; n-- {
				if _, ok := callee.formals[s.Param+k+n-1]; !ok {
					return false
				}
			}
			return true
		}
		for k := 0; k < s.Size; {
			n := 8
			for n > s.Size-k || (s.Local+k)%n != 0 || n > 1 && !known(k, n) {
				n /= 2
			}
			if v, ok := b.getParam(callee.formals, s.Param+k, n); ok {
				t := map[int]isa.Type{1: isa.B8, 2: isa.B16, 4: isa.B32, 8: isa.B64}[n]
				at := b.emit(LocalPtr, W64, callee.local+uint64(s.Local+k))
				b.add(b.cur.block, &Instr{Op: Store, Site: b.site, Guard: NoValue, Args: []Value{at, v},
					Inst: &isa.Inst{Class: isa.Store, Space: event.Local, Type: t, Vec: 1, Guard: -1, Loc: -1}})
			}
			k += n
		}
	}
}

// operand returns the value of a source operand.
func (b *builder) operand(fr *frame, op *isa.Operand) Value {
	switch op.Kind {
	case isa.Reg:
		v := b.read(b.cur.block, fr.regs+op.Reg, widthOf(op.Size))
		if op.Not {
			return b.emit(Not, W1, 0, v)
		}
		return v
	case isa.Imm:
		w := W32
		if op.Imm>>32 != 0 {
			w = W64
		}
		return b.konst(w, op.Imm)
	case isa.SpecialReg:
		switch op.Special {
		case isa.Clock64, isa.GridID, isa.GlobalTimer:
			return b.emit(Special, W64, uint64(op.Special))
		}
		return b.emit(Special, W32, uint64(op.Special))
	case isa.SharedAddr:
		at := b.f.Env.Shared.Dynamic
		if !op.Var.Dynamic {
			at = b.f.Env.Shared.Offset[op.Var.Index]
		}
		return b.konst(W64, uint64(at)+op.Imm)
	case isa.LocalAddr:
		return b.emit(LocalPtr, W64, fr.local+op.Imm)
	case isa.ParamAddr:
		return b.konst(W64, op.Imm)
	case isa.GlobalAddr, isa.GenericAddr, isa.FuncAddr:
		if op.Kind == isa.GenericAddr && op.Var != nil && op.Var.Space == event.Shared {
			shared := *op
			shared.Kind = isa.SharedAddr
			return b.emit(Add, W64, 0, b.operand(fr, &shared), b.konst(W64, isa.SharedWindow))
		}
		in := &Instr{Op: Symbol, Site: b.site, Guard: NoValue, Sym: op}
		v := b.f.NewValue(W64, in)
		in.Dst = []Value{v}
		b.add(b.cur.block, in)
		return v
	}
	return b.konst(W32, 0)
}

// inst emits an instruction that does not end its block.
func (b *builder) inst(d *draft, in *isa.Inst) {
	guard := NoValue
	if in.Guard >= 0 && !d.applied {
		guard = b.guard(d.fr, in)
	}
	param := in.Space == event.Param && (in.Class == isa.Load || in.Class == isa.Store) && in.Src[0].Kind == isa.ParamAddr
	switch in.Class {
	case isa.Pure, isa.Special:
		b.pure(d, in, guard)
	case isa.Load:
		if param {
			b.loadParam(d, in, guard)
			return
		}
		b.effect(d, in, Load, guard)
	case isa.Store:
		if param {
			b.storeParam(d, in, guard)
			return
		}
		b.effect(d, in, Store, guard)
	case isa.Atomic:
		b.effect(d, in, Atomic, guard)
	case isa.Fence:
		b.effect(d, in, Fence, guard)
	case isa.Barrier:
		b.effect(d, in, Barrier, guard)
	case isa.Warp, isa.Matrix, isa.Tile, isa.Warpgroup, isa.Copy, isa.Mbarrier, isa.Texture:
		b.effect(d, in, Warp, guard)
	case isa.WarpBarrier:
		b.effect(d, in, WarpBar, guard)
	case isa.Hint:
	case isa.Call:
		b.builtin(d, in)
	default:
		panic("BUG: class in the middle of a block")
	}
}

// effect emits an instruction that is more than a computation.
func (b *builder) effect(d *draft, in *isa.Inst, op Op, guard Value) {
	e := &Instr{Op: op, Site: b.site, Guard: guard, GuardNot: in.GuardNot && guard != NoValue, Inst: in}
	for i := range in.Src {
		if in.Src[i].Kind == isa.Sink {
			e.Args = append(e.Args, NoValue)
			continue
		}
		e.Args = append(e.Args, b.operand(d.fr, &in.Src[i]))
	}
	if op == Load || op == Store || op == Atomic || in.Class == isa.Matrix {
		e.Imm = uint64(in.Off)
	}
	b.add(b.cur.block, e)
	b.define(d, in, e, guard)
}

// define sets the destination registers of in to the results of e, or to their old values where the guard is false.
func (b *builder) define(d *draft, in *isa.Inst, e *Instr, guard Value) {
	for i := range in.Dst {
		op := &in.Dst[i]
		if op.Kind != isa.Reg {
			e.Dst = append(e.Dst, NoValue)
			continue
		}
		v := b.f.NewValue(widthOf(op.Size), e)
		e.Dst = append(e.Dst, v)
		b.assign(d, in, op, v, guard)
	}
}

func (b *builder) assign(d *draft, in *isa.Inst, op *isa.Operand, v, guard Value) {
	key := d.fr.regs + op.Reg
	if guard != NoValue {
		w := widthOf(op.Size)
		old := b.read(b.cur.block, key, w)
		if in.GuardNot {
			v, old = old, v
		}
		v = b.emit(Sel, w, 0, guard, v, old)
	}
	b.write(key, v)
}

func (b *builder) pure(d *draft, in *isa.Inst, guard Value) {
	if len(in.Dst) >= 1 && in.Dst[0].Kind == isa.Reg {
		if v := b.native(d, in); v != NoValue {
			b.assign(d, in, &in.Dst[0], v, guard)
			return
		}
	}
	e := &Instr{Op: Row, Site: b.site, Guard: NoValue, Inst: in}
	for i := range in.Src {
		if in.Src[i].Kind == isa.Sink {
			e.Args = append(e.Args, NoValue)
			continue
		}
		e.Args = append(e.Args, b.operand(d.fr, &in.Src[i]))
	}
	b.add(b.cur.block, e)
	b.define(d, in, e, guard)
}
