package opt

import (
	"fencepost.dev/fencepost/internal/event"
)

// Promote turns local memory into values, for every function instance whose local frame is only accessed at constant
// places inside it. Such memory is private to the thread, so no event and no finding depends on it.
func Promote(f *Func) bool {
	changed := false
	for i := 0; i < len(f.Frames); i++ {
		p := promoter{f: f, lo: f.Frames[i][0], hi: f.Frames[i][1]}
		if !p.collect() {
			continue
		}
		p.run()
		f.Frames = append(f.Frames[:i], f.Frames[i+1:]...)
		i--
		changed = true
	}
	return changed
}

// shadowOf turns the address of a variable into the key of its shadow, which is a variable too.
const shadowOf = 1 << 63

type promoter struct {
	f        *Func
	lo, hi   uint64
	accesses map[*Instr]uint64 // address of the first element; with shadowOf, its shadow's
	frames   map[*Instr]bool   // the ShadowFrame of the frame
	size     map[uint64]int    // of the variable at an address
	begin    map[*Block]map[uint64]Value
	end      map[*Block]map[uint64]Value
	with     substitution
	open     []openPhi // phis that have no arguments yet
}

// openPhi is a phi for the variable at addr.
type openPhi struct {
	phi  *Instr
	addr uint64
}

// collect finds the accesses of the frame. It returns false if an address escapes, or if unequal accesses overlap.
func (p *promoter) collect() bool {
	p.accesses, p.size, p.frames = map[*Instr]uint64{}, map[uint64]int{}, map[*Instr]bool{}
	f := p.f
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			for i, a := range in.Args {
				if !p.mayReach(a) {
					continue
				}
				if in.Op == ShadowFrame && f.Def(a).Imm == p.lo {
					p.frames[in] = true
					continue
				}
				shadow := in.Op == ShadowLoad || in.Op == ShadowStore
				if i != 0 || in.Op != Load && in.Op != Store && !shadow || in.Inst.Space != event.Local {
					return false
				}
				n := in.Inst.Type.Size()
				at := f.Def(a).Imm + in.Imm
				if end := at + uint64(n*max(int(in.Inst.Vec), 1)); (at >= p.hi || end <= p.lo) && at < end {
					continue // outside of the frame
				}
				if n > 8 || n == 0 || at%uint64(n*max(int(in.Inst.Vec), 1)) != 0 { // not aligned to the whole access: a fault
					return false
				}
				p.accesses[in] = at
				if shadow {
					p.accesses[in] |= shadowOf
				}
				for k := 0; k < int(in.Inst.Vec); k++ {
					from := at + uint64(k*n)
					if from < p.lo || from+uint64(n) > p.hi || p.size[from] != 0 && p.size[from] != n {
						return false
					}
					p.size[from] = n
				}
			}
		}
	}
	for at, n := range p.size {
		for k := 1; k < n; k++ {
			if p.size[at+uint64(k)] != 0 {
				return false
			}
		}
	}
	return len(p.accesses) > 0
}

// mayReach reports whether v is an address from which the frame can be accessed: one inside it, its end, from which
// loops run backwards, or one in no frame at all.
func (p *promoter) mayReach(v Value) bool {
	if v == NoValue {
		return false
	}
	d := p.f.Def(v)
	if d == nil || d.Op != LocalPtr {
		return false
	}
	for _, fr := range p.f.Frames {
		if d.Imm >= fr[0] && d.Imm <= fr[1] {
			return fr[0] == p.lo
		}
	}
	return true
}

// run replaces loads by the stored values. A first walk over every block finds the values at its end, with a phi for
// each variable that is read before it is written. The phis then get their arguments, which may need phis in earlier
// blocks.
func (p *promoter) run() {
	f := p.f
	p.begin, p.end = map[*Block]map[uint64]Value{}, map[*Block]map[uint64]Value{}
	p.with.clear()
	for _, b := range f.Blocks {
		p.begin[b], p.end[b] = map[uint64]Value{}, map[uint64]Value{}
	}
	for _, b := range f.Blocks {
		p.walk(b)
	}
	for len(p.open) > 0 {
		o := p.open[len(p.open)-1]
		p.open = p.open[:len(p.open)-1]
		for _, pred := range o.phi.Block.Preds {
			o.phi.Args = append(o.phi.Args, p.out(pred, o.addr))
		}
	}
	f.substitute(&p.with)
}

func (p *promoter) walk(b *Block) {
	f := p.f
	now := p.end[b]
	var out []*Instr
	read := func(at uint64) Value {
		v, ok := now[at]
		if !ok {
			v = p.at(b, at)
			now[at] = v
		}
		return v
	}
	emit := func(op Op, w Width, imm uint64, args ...Value) Value {
		n := &Instr{Op: op, Site: -1, Guard: NoValue, Args: args, Imm: imm, Block: b}
		v := f.NewValue(w, n)
		n.Dst = []Value{v}
		out = append(out, n)
		return v
	}
	for _, in := range b.Instrs {
		if p.frames[in] {
			for at, n := range p.size {
				now[at|shadowOf] = p.unwritten(n)
			}
			continue
		}
		at, ok := p.accesses[in]
		if !ok {
			out = append(out, in)
			continue
		}
		n := in.Inst.Type.Size()
		for k := 0; k < int(in.Inst.Vec); k++ {
			from := at + uint64(k*n)
			w := pieceWidth(n)
			if in.Op == Store || in.Op == ShadowStore {
				v := in.Args[1+k]
				if f.Width(v) != w || n*8 < w.Bits() {
					v = emit(ZExt, w, uint64(n*8), v)
				}
				if in.Guard != NoValue {
					v, old := v, read(from)
					if in.GuardNot {
						v, old = old, v
					}
					now[from] = emit(Sel, w, 0, in.Guard, v, old)
					continue
				}
				now[from] = v
				continue
			}
			dst := in.Dst[k]
			if dst == NoValue {
				continue
			}
			v := read(from)
			wd, size := f.Width(dst), int(in.Inst.Dst[k].Size)
			switch {
			case in.Inst.Type.Signed() && n < size:
				v = emit(SExt, wd, uint64(n*8), v)
				if size*8 < wd.Bits() {
					v = emit(ZExt, wd, uint64(size*8), v)
				}
			case wd != w:
				v = emit(ZExt, wd, uint64(n*8), v)
			}
			p.with.replace(dst, v)
			f.Values[dst].Def = nil
		}
	}
	// Reads at the start of a block prepended phis to b.Instrs after the walk had passed the block.
	var phis []*Instr
	for _, in := range b.Instrs {
		if in.Op == Phi && !contains(out, in) {
			phis = append(phis, in)
		}
	}
	b.Instrs = append(phis, out...)
}

func contains(list []*Instr, in *Instr) bool {
	for _, x := range list {
		if x.Op != Phi {
			return false
		}
		if x == in {
			return true
		}
	}
	return false
}

// at returns the value of a variable at the beginning of b.
func (p *promoter) at(b *Block, addr uint64) Value {
	if v, ok := p.begin[b][addr]; ok {
		return v
	}
	f := p.f
	n := p.size[addr&^shadowOf]
	w := pieceWidth(n)
	if len(b.Preds) == 0 {
		v := f.Konst(w, 0)
		if addr&shadowOf != 0 {
			v = p.unwritten(n)
		}
		p.begin[b][addr] = v
		return v
	}
	phi := &Instr{Op: Phi, Site: -1, Guard: NoValue, Block: b}
	v := f.NewValue(w, phi)
	phi.Dst = []Value{v}
	p.begin[b][addr] = v
	b.Instrs = append([]*Instr{phi}, b.Instrs...)
	p.open = append(p.open, openPhi{phi, addr})
	return v
}

// out returns the value of a variable at the end of b.
func (p *promoter) out(b *Block, addr uint64) Value {
	v, ok := p.end[b][addr]
	if !ok {
		v = p.at(b, addr)
		p.end[b][addr] = v
	}
	return v
}

// unwritten is the shadow of n bytes that nothing has written.
func (p *promoter) unwritten(n int) Value { return p.f.Konst(pieceWidth(n), ^uint64(0)>>(64-8*n)) }
