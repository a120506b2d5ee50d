package opt

import (
	"fencepost.dev/fencepost/internal/isa"
)

// Variables of .param space are not memory but names for the values that calls pass. A draft knows the bytes that were
// stored in its own block or in the blocks that lead straight to it. If a function stores a byte in another block than
// the one that reads it, the byte is also a variable of the SSA construction (spread).

// keep stores one byte of the draft's parameter frame.
func (b *builder) keep(d *draft, off int, a atom) {
	d.params[off] = a
	if b.graph.spread(d.fr.fn, off) {
		b.write(d.fr.params+int32(off), b.field(b.find(a.v), int(a.k)*8, 8, W32))
	}
}

// byteAt returns a byte of the draft's parameter frame, and false for one that nothing stores.
func (b *builder) byteAt(d *draft, off int) (atom, bool) {
	fr := d.fr
	if a, ok := d.params[off]; ok {
		return a, true
	}
	if a, ok := fr.formals[off]; ok {
		return a, true
	}
	if fr.fn.Entry && off < formalEnd(fr.fn) {
		v := b.emit(KParam, W32, uint64(off))
		b.f.Def(v).Aux = 1
		return atom{v: v}, true
	}
	if b.graph.spread(fr.fn, off) {
		return atom{v: b.read(b.cur.block, fr.params+int32(off), W32)}, true
	}
	return atom{}, false
}

// param reads size bytes, at most 8, of the draft's parameter frame, zero-extended. Bytes that nothing stores are
// undefined and read as 0.
func (b *builder) param(d *draft, off, size int) Value {
	if v, ok := b.getParam(d.params, off, size); ok {
		return v
	}
	if v, ok := b.getParam(d.fr.formals, off, size); ok {
		return v
	}
	if d.fr.fn.Entry && off+size <= formalEnd(d.fr.fn) {
		v := b.emit(KParam, pieceWidth(size), uint64(off))
		b.f.Def(v).Aux = uint8(size)
		return v
	}
	bytes := map[int]atom{}
	for k := range size {
		if a, ok := b.byteAt(d, off+k); ok {
			bytes[k] = a
		}
	}
	return b.gather(bytes, 0, size)
}

// gather reads size bytes; missing ones are 0.
func (b *builder) gather(bytes map[int]atom, off, size int) Value {
	for k := range size {
		if _, ok := bytes[off+k]; !ok {
			bytes[off+k] = atom{v: b.zero(W32)}
		}
	}
	v, _ := b.getParam(bytes, off, size)
	return v
}

// formalEnd is the end of the kernel's parameter block in its parameter frame.
func formalEnd(fn *isa.Func) int {
	end := 0
	for _, p := range fn.Sig.Params {
		end = max(end, p.Off+p.Size)
	}
	return end
}

// loadParam reads a parameter or a result of a call. This is not a memory access: the value is known.
func (b *builder) loadParam(d *draft, in *isa.Inst, guard Value) {
	t := in.Type
	if t.Size() > 8 {
		t = isa.B64 // a register of 128 bits is two registers
	}
	n := t.Size()
	for i := range in.Dst {
		op := &in.Dst[i]
		if op.Kind != isa.Reg {
			continue
		}
		v := b.param(d, int(in.Src[0].Imm)+int(in.Off)+i*n, n)
		b.assign(d, in, op, b.extend(v, t, op.Size, widthOf(op.Size)), guard)
	}
}

// extend widens the low bytes of v, read as type t, to a register of size bytes.
func (b *builder) extend(v Value, t isa.Type, size uint8, w Width) Value {
	bits := t.Size() * 8
	switch {
	case t.Signed() && int(size)*8 > bits:
		v = b.emit(SExt, w, uint64(bits), v)
		if int(size)*8 < w.Bits() {
			v = b.emit(ZExt, w, uint64(size)*8, v)
		}
		return v
	case b.f.Width(v) != w:
		return b.emit(ZExt, w, uint64(min(bits, int(size)*8)), v)
	}
	return v
}

// storeParam stores to a parameter of a call, or to a result of the function.
func (b *builder) storeParam(d *draft, in *isa.Inst, guard Value) {
	n := min(in.Type.Size(), 8)
	for i := range in.Src[1:] {
		off := int(in.Src[0].Imm) + int(in.Off) + i*n
		v := b.operand(d.fr, &in.Src[1+i])
		if p, ok := resultAt(d.fr.fn, off, n); ok {
			b.storeResult(d, in, p, off, n, v, guard)
			continue
		}
		if guard != NoValue {
			w := pieceWidth(n)
			v = b.choose(in, guard, w, b.field(v, 0, n*8, w), b.param(d, off, n))
		}
		for k := range n {
			b.keep(d, off+k, atom{v, uint8(k)})
		}
	}
}

// choose returns v where the guard of in holds, and old elsewhere.
func (b *builder) choose(in *isa.Inst, guard Value, w Width, v, old Value) Value {
	if in.GuardNot {
		v, old = old, v
	}
	return b.emit(Sel, w, 0, guard, v, old)
}

// storeResult stores n bytes of v to a result.
func (b *builder) storeResult(d *draft, in *isa.Inst, ret isa.Param, off, n int, v, guard Value) {
	for _, pc := range pieces(d.fr.fn, ret) {
		if pc.off < off || pc.off+pc.size > off+n {
			continue
		}
		w := pieceWidth(pc.size)
		part := b.field(v, (pc.off-off)*8, pc.size*8, w)
		key := d.fr.params + int32(pc.off)
		if guard != NoValue {
			part = b.choose(in, guard, w, part, b.read(b.cur.block, key, w))
		}
		b.write(key, part)
	}
}

func resultAt(fn *isa.Func, off, n int) (isa.Param, bool) {
	for _, p := range fn.Sig.Rets {
		if p.Off >= 0 && off >= p.Off && off+n <= p.Off+p.Size {
			return p, true
		}
	}
	return isa.Param{}, false
}

// pieceSize is the greatest number of bytes of a parameter in one value.
const pieceSize = 8

// Pieces is the number of arguments of Builtin for a parameter of size bytes.
func Pieces(size int) int { return (size + pieceSize - 1) / pieceSize }

// builtin emits the call of a function that the engine supplies.
func (b *builder) builtin(d *draft, in *isa.Inst) {
	e := &Instr{Op: Builtin, Site: b.site, Guard: NoValue, Fn: in.Callee, Inst: in}
	for i, p := range in.Callee.Sig.Params {
		for off := 0; off < p.Size; off += pieceSize {
			e.Args = append(e.Args, b.argument(d, &in.ArgOps[i], ParamPart{off, min(p.Size-off, pieceSize)}))
		}
	}
	b.add(b.cur.block, e)
	for i, p := range in.Callee.Sig.Rets {
		v := b.f.NewValue(pieceWidth(p.Size), e)
		e.Dst = append(e.Dst, v)
		bytes := map[int]atom{}
		setParam(bytes, 0, v, p.Size)
		b.result(d, &in.RetOps[i], bytes, p.Size)
	}
}

// argument returns the bytes of an actual parameter that a part holds.
func (b *builder) argument(d *draft, op *isa.Operand, p ParamPart) Value {
	if op.Kind == isa.ParamAddr {
		return b.param(d, int(op.Imm)+p.Off, p.Size)
	}
	return b.fit(b.operand(d.fr, op), pieceWidth(p.Size))
}
