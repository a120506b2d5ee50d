package opt

import (
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// Spaces finds the state space of generic addresses that hold the tag of a window: a constant with the tag plus terms
// too small to change it. It converts such an access to an access of that space, without the tag. isspacep on such an
// address is a constant.
func Spaces(f *Func) bool {
	changed := false
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			switch {
			case (in.Op == Load || in.Op == Store || in.Op == Atomic || in.Op == ShadowLoad || in.Op == ShadowStore) && in.Inst.Space == event.Generic:
				space, tag := f.window(in.Args[0], in.Imm)
				if space == event.Shared || space == event.Local {
					inst := *in.Inst
					inst.Space = space
					in.Inst = &inst
					in.Imm -= tag
					changed = true
				}
			case in.Op == Row && in.Inst.Row.Op == "isspacep":
				if space, _ := f.window(in.Args[0], 0); space != event.NoSpace && !f.perhapsPeer(in, space) {
					var a isa.Args
					a.S[0] = map[event.Space]uint64{event.Shared: isa.SharedWindow, event.Local: isa.LocalWindow}[space]
					in.Inst.Eval(in.Inst, &a)
					in.toConst(a.D[0])
					changed = true
				}
			}
		}
	}
	return changed
}

// perhapsPeer reports whether isspacep depends on the block to which an address of shared memory belongs, and this
// block is unknown.
func (f *Func) perhapsPeer(in *Instr, space event.Space) bool {
	if space != event.Shared || in.Inst.Space != event.Shared || in.Inst.Has("shared::cluster") {
		return false
	}
	c, magnitude := f.terms(in.Args[0], 8)
	return magnitude >= event.PeerShift || c&(1<<event.PeerShift-1)+1<<magnitude > 1<<event.PeerShift || c>>event.PeerShift&0xff != 0
}

// window returns the window of v+off and its tag, and NoSpace if that is not certain.
func (f *Func) window(v Value, off uint64) (event.Space, uint64) {
	c, magnitude := f.terms(v, 8)
	if magnitude >= 54 {
		return event.NoSpace, 0
	}
	c += off
	switch (c + 1<<55) >> 56 << 56 {
	case isa.SharedWindow:
		return event.Shared, isa.SharedWindow
	case isa.LocalWindow:
		return event.Local, isa.LocalWindow
	}
	return event.NoSpace, 0
}

// terms splits v into a constant and a remainder of less than 2^magnitude in absolute value.
func (f *Func) terms(v Value, depth int) (c uint64, magnitude int) {
	d := f.Def(v)
	if w := f.Width(v); w != W64 {
		return 0, w.Bits()
	}
	if depth == 0 || d == nil {
		return 0, 64
	}
	switch d.Op {
	case Const:
		return d.Imm, 0
	case LocalPtr:
		return 0, 40
	case Add:
		c1, m1 := f.terms(d.Args[0], depth-1)
		c2, m2 := f.terms(d.Args[1], depth-1)
		return c1 + c2, min(64, max(m1, m2)+1)
	case SExt, ZExt:
		return 0, int(d.Imm)
	case MulU, MulS, Mul:
		if k, ok := f.ConstOf(d.Args[1]); ok && k < 1<<20 {
			if d.Op != Mul {
				return 0, 32 + 20
			}
			if c1, m := f.terms(d.Args[0], depth-1); c1 == 0 {
				return 0, min(64, m+20)
			}
		}
	case And:
		if k, ok := f.ConstOf(d.Args[1]); ok && k < 1<<40 {
			return 0, 40
		}
	case Shl:
		if k, ok := f.ConstOf(d.Args[1]); ok && k < 20 {
			if c1, m := f.terms(d.Args[0], depth-1); c1 == 0 {
				return 0, min(64, m+int(k))
			}
		}
	case Sel:
		c1, m1 := f.terms(d.Args[1], depth-1)
		c2, m2 := f.terms(d.Args[2], depth-1)
		if c1 == c2 {
			return c1, max(m1, m2)
		}
	}
	return 0, 64
}
