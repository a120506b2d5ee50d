package opt

import (
	"maps"
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

func sortKeys(keys []int32) { slices.Sort(keys) }

// widthOf is the register width of a register operand.
func widthOf(size uint8) Width {
	switch {
	case size == 1:
		return W1
	case size <= 4:
		return W32
	}
	return W64
}

// block emits the instructions of a draft and its terminator.
func (b *builder) block(d *draft) error {
	b.enter(d)
	fn := d.fr.fn
	for i := d.from; i < d.to; i++ {
		in := &fn.Insts[i]
		b.site = -1
		if in.Class != isa.Branch && in.Class != isa.Ret {
			b.site = b.siteOf(d.fr, i)
		}
		if ends(in) {
			return b.end(d, in)
		}
		if err := b.inst(d, in); err != nil {
			return err
		}
	}
	b.site = -1
	if d.check {
		in := &fn.Insts[d.from]
		b.branch(b.guard(d.fr, in), in.GuardNot, d.block)
		return nil
	}
	b.jump(d.block)
	return nil
}

// enter sets up what the draft knows of .param variables when it begins.
func (b *builder) enter(d *draft) {
	switch {
	case d.returns != nil:
		d.params = maps.Clone(d.before.params)
		b.results(d)
	case d.fr.up != nil && d == d.fr.leads[0]:
		d.params = map[int]atom{}
	case len(d.preds) == 1 && d.preds[0].fr == d.fr:
		d.params = maps.Clone(d.preds[0].params)
	default:
		d.params = map[int]atom{}
	}
}

// results gives the caller's .param variables what the callee that just returned stored.
func (b *builder) results(d *draft) {
	call := &d.fr.fn.Insts[d.before.to-1]
	for i, ret := range d.returns.fn.Sig.Rets {
		if i >= len(call.RetOps) {
			break
		}
		op := &call.RetOps[i]
		if ret.Off < 0 {
			v := b.read(d.block, d.returns.regs+ret.Reg, widthOf(uint8(ret.Size)))
			if op.Kind == isa.Reg {
				b.write(d.fr.regs+op.Reg, v)
			} else {
				b.setParam(d.params, int(op.Imm), v, ret.Size)
			}
			continue
		}
		for _, p := range pieces(d.returns.fn, ret) {
			v := b.read(d.block, d.returns.rets+int32(p.off), pieceWidth(p.size))
			b.setParam(d.params, int(op.Imm)+p.off-ret.Off, v, p.size)
		}
		if op.Kind == isa.Reg {
			v, ok := b.getParam(d.params, int(op.Imm), ret.Size)
			if ok {
				b.write(d.fr.regs+op.Reg, v)
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

// pieces cuts a result parameter into the ranges that the function stores: each either always stored whole, or bytes.
func pieces(fn *isa.Func, ret isa.Param) []piece {
	size := map[int]int{}
	bytes := map[int]bool{}
	for i := range fn.Insts {
		in := &fn.Insts[i]
		if in.Class != isa.Store || in.Space != event.Param || in.Src[0].Kind != isa.ParamAddr {
			continue
		}
		for k := 0; k < int(in.Vec); k++ {
			n := in.Type.Size()
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
			// Overlapping stores of different offsets: everything by bytes.
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
func (b *builder) setParam(params map[int]atom, off int, v Value, size int) {
	for k := 0; k < size; k++ {
		params[off+k] = atom{v, uint8(k)}
	}
}

// getParam reads size bytes, zero-extended; false when nothing is known of them.
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

// end emits the terminator that an instruction asks for.
func (b *builder) end(d *draft, in *isa.Inst) error {
	bl := d.block
	switch in.Class {
	case isa.Branch:
		switch {
		case len(d.succs) == 1:
			b.jump(bl)
		case in.Guard >= 0:
			if bl.Succs[0] == bl.Succs[1] {
				return unsupported("a branch to what follows it")
			}
			b.branch(b.guard(d.fr, in), in.GuardNot, bl)
		default:
			v := b.operand(d.fr, &in.Src[0])
			b.add(bl, &Instr{Op: Switch, Site: b.siteOf(d.fr, d.to-1), Guard: NoValue, Args: []Value{v}})
		}
	case isa.Ret:
		if d.fr.up == nil {
			b.site = b.siteOf(d.fr, d.to-1)
			b.add(bl, &Instr{Op: Exit, Site: b.site, Guard: NoValue})
			return nil
		}
		b.jump(bl)
	case isa.Exit:
		b.add(bl, &Instr{Op: Exit, Site: b.site, Guard: NoValue})
	case isa.Trap:
		b.add(bl, &Instr{Op: Trap, Site: b.site, Guard: NoValue, Inst: in})
	case isa.Call:
		if err := b.pass(d, in); err != nil {
			return err
		}
		b.site = -1
		b.jump(bl)
	}
	return nil
}

// pass hands the arguments of an inlined call to the callee.
func (b *builder) pass(d *draft, in *isa.Inst) error {
	callee := d.inlines
	for i, p := range callee.fn.Sig.Params {
		if i >= len(in.ArgOps) {
			break
		}
		op := &in.ArgOps[i]
		if p.Off < 0 {
			v := NoValue
			if op.Kind == isa.ParamAddr {
				var ok bool
				if v, ok = b.getParam(d.params, int(op.Imm), p.Size); !ok {
					return unsupported("an argument of %s set in another block", callee.fn.Name)
				}
			} else {
				v = b.operand(d.fr, op)
			}
			b.write(callee.regs+p.Reg, v)
			continue
		}
		if op.Kind != isa.ParamAddr {
			b.setParam(callee.formals, p.Off, b.operand(d.fr, op), p.Size)
			continue
		}
		for k := 0; k < p.Size; k++ {
			if a, ok := d.params[int(op.Imm)+k]; ok {
				callee.formals[p.Off+k] = a
			} else if a, ok := d.fr.formals[int(op.Imm)+k]; ok {
				callee.formals[p.Off+k] = a
			}
		}
	}
	return b.spill(callee)
}

// spill stores the parameters whose address the callee takes into its local memory.
func (b *builder) spill(callee *frame) error {
	for _, s := range callee.fn.Spills {
		for k := 0; k < s.Size; {
			n := 8
			for n > s.Size-k || (s.Local+k)%n != 0 {
				n /= 2
			}
			v, ok := b.getParam(callee.formals, s.Param+k, n)
			if ok {
				t := map[int]isa.Type{1: isa.B8, 2: isa.B16, 4: isa.B32, 8: isa.B64}[n]
				at := b.emit(LocalPtr, W64, callee.local+uint64(s.Local+k))
				b.add(b.cur.block, &Instr{Op: Store, Site: b.site, Guard: NoValue, Args: []Value{at, v},
					Inst: &isa.Inst{Class: isa.Store, Space: event.Local, Type: t, Vec: 1, Guard: -1, Loc: -1}})
			}
			k += n
		}
	}
	return nil
}

// operand gives the value of a source operand.
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
	return b.zero(W32)
}

// inst emits an instruction that does not end its block.
func (b *builder) inst(d *draft, in *isa.Inst) error {
	guard := NoValue
	if in.Guard >= 0 && !d.applied {
		guard = b.guard(d.fr, in)
	}
	switch in.Class {
	case isa.Pure, isa.Special:
		b.pure(d, in, guard)
		return nil
	case isa.Load:
		if in.Space == event.Param && in.Src[0].Kind == isa.ParamAddr {
			return b.loadParam(d, in, guard)
		}
		b.effect(d, in, Load, guard)
	case isa.Store:
		if in.Space == event.Param && in.Src[0].Kind == isa.ParamAddr {
			return b.storeParam(d, in, guard)
		}
		b.effect(d, in, Store, guard)
	case isa.Atomic:
		b.effect(d, in, Atomic, guard)
	case isa.Fence:
		b.effect(d, in, Fence, guard)
	case isa.Barrier:
		b.effect(d, in, Barrier, guard)
	case isa.Warp:
		b.effect(d, in, Warp, guard)
	case isa.WarpBarrier:
		b.effect(d, in, WarpBar, guard)
	case isa.Hint:
	case isa.Call:
		return b.builtin(d, in)
	default:
		panic("BUG: class in the middle of a block")
	}
	return nil
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
	if op == Load || op == Store || op == Atomic {
		e.Imm = uint64(in.Off)
	}
	b.add(b.cur.block, e)
	b.define(d, in, e, guard)
}

// define gives the destination registers of in the results of e, or their old values where the guard is false.
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

// loadParam reads a parameter or a result of a call: no memory access, but a value that is known.
func (b *builder) loadParam(d *draft, in *isa.Inst, guard Value) error {
	n := in.Type.Size()
	if n > 8 {
		return unsupported("a parameter of %d bytes in one register", n)
	}
	for i := range in.Dst {
		op := &in.Dst[i]
		if op.Kind != isa.Reg {
			continue
		}
		off := int(in.Src[0].Imm) + int(in.Off) + i*n
		w := widthOf(op.Size)
		v, ok := b.getParam(d.params, off, n)
		if !ok {
			v, ok = b.getParam(d.fr.formals, off, n)
		}
		if !ok && d.fr.up == nil && off+n <= formalEnd(d.fr.fn) {
			v, ok = b.emit(KParam, pieceWidth(n), uint64(off)), true
			b.f.Def(v).Aux = uint8(n)
		}
		if !ok {
			return unsupported("a .param variable of %s set in another block", d.fr.fn.Name)
		}
		b.assign(d, in, op, b.extend(v, in.Type, op.Size, w), guard)
	}
	return nil
}

// formalEnd is where the kernel's parameter block ends in its parameter frame.
func formalEnd(fn *isa.Func) int {
	end := 0
	for _, p := range fn.Sig.Params {
		end = max(end, p.Off+p.Size)
	}
	return end
}

// extend widens the low bytes of v, read as type t, to a register of size bytes.
func (b *builder) extend(v Value, t isa.Type, size uint8, w Width) Value {
	bits := t.Size() * 8
	switch {
	case t.Signed() && int(size)*8 > bits && size >= 4:
		return b.emit(SExt, w, uint64(bits), v)
	case b.f.Width(v) != w:
		return b.emit(ZExt, w, uint64(min(bits, int(size)*8)), v)
	}
	return v
}

func (b *builder) storeParam(d *draft, in *isa.Inst, guard Value) error {
	if guard != NoValue {
		return unsupported("a guarded store to a .param variable")
	}
	n := in.Type.Size()
	if n > 8 {
		return unsupported("a parameter of %d bytes in one register", n)
	}
	for i := 0; i < int(in.Vec); i++ {
		off := int(in.Src[0].Imm) + int(in.Off) + i*n
		v := b.operand(d.fr, &in.Src[1+i])
		if p, ok := resultAt(d.fr.fn, off, n); ok {
			if d.fr.up == nil {
				return unsupported("a kernel with results")
			}
			for _, pc := range pieces(d.fr.fn, p) {
				if pc.off >= off && pc.off+pc.size <= off+n {
					part := b.field(v, (pc.off-off)*8, pc.size*8, pieceWidth(pc.size))
					b.write(d.fr.rets+int32(pc.off), part)
				}
			}
			continue
		}
		b.setParam(d.params, off, v, n)
	}
	return nil
}

func resultAt(fn *isa.Func, off, n int) (isa.Param, bool) {
	for _, p := range fn.Sig.Rets {
		if p.Off >= 0 && off >= p.Off && off+n <= p.Off+p.Size {
			return p, true
		}
	}
	return isa.Param{}, false
}

// builtin emits the call of a function that the engine supplies.
func (b *builder) builtin(d *draft, in *isa.Inst) error {
	e := &Instr{Op: Builtin, Site: b.site, Guard: NoValue, Fn: in.Callee, Inst: in}
	for i, p := range in.Callee.Sig.Params {
		op := &in.ArgOps[i]
		if op.Kind != isa.ParamAddr {
			e.Args = append(e.Args, b.operand(d.fr, op))
			continue
		}
		v, ok := b.getParam(d.params, int(op.Imm), p.Size)
		if !ok {
			return unsupported("an argument of %s set in another block", in.Callee.Name)
		}
		e.Args = append(e.Args, v)
	}
	b.add(b.cur.block, e)
	for i, p := range in.Callee.Sig.Rets {
		op := &in.RetOps[i]
		v := b.f.NewValue(pieceWidth(p.Size), e)
		e.Dst = append(e.Dst, v)
		if op.Kind == isa.Reg {
			b.write(d.fr.regs+op.Reg, v)
		} else {
			b.setParam(d.params, int(op.Imm), v, p.Size)
		}
	}
	return nil
}
