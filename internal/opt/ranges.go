package opt

import (
	"math"

	"fencepost.dev/fencepost/internal/isa"
)

// span returns bounds of a 32-bit value read as a signed number, derived from the shape of the launch and the
// arithmetic. ok is false if nothing is known. Phis are not followed: their bounds would need a fixed point.
func (f *Func) span(v Value, depth int) (lo, hi int64, ok bool) {
	d := f.Def(v)
	if d == nil || depth == 0 || f.Width(v) != W32 {
		return 0, 0, false
	}
	two := func() (a, b, c, e int64, ok bool) {
		a, b, ok1 := f.span(d.Args[0], depth-1)
		c, e, ok2 := f.span(d.Args[1], depth-1)
		return a, b, c, e, ok1 && ok2
	}
	switch d.Op {
	case Const:
		x := signed(d.Imm, 32)
		return x, x, true
	case Special:
		return f.Env.span(isa.SpecialID(d.Imm))
	case ZExt:
		if d.Imm < 32 {
			return 0, 1<<d.Imm - 1, true
		}
	case And:
		if c, ok := f.ConstOf(d.Args[1]); ok && c < 1<<31 {
			return 0, int64(c), true
		}
	case Add, Sub:
		a, b, c, e, ok := two()
		if d.Op == Sub {
			c, e = -e, -c
		}
		return within(a+c, b+e, ok)
	case Mul:
		a, b, c, e, ok := two()
		if !ok || a < 0 || c < 0 {
			return 0, 0, false
		}
		return within(a*c, b*e, true)
	case Shl:
		a, b, ok := f.span(d.Args[0], depth-1)
		if k, known := f.ConstOf(d.Args[1]); known && k < 31 {
			return within(a<<k, b<<k, ok)
		}
	case ShrU, ShrS:
		a, b, ok := f.span(d.Args[0], depth-1)
		if k, known := f.ConstOf(d.Args[1]); known && k < 32 && ok && a >= 0 {
			return a >> k, b >> k, true
		}
	}
	return 0, 0, false
}

// within reports whether bounds of exact arithmetic fit 32 bits, so that nothing wrapped.
func within(lo, hi int64, ok bool) (int64, int64, bool) {
	return lo, hi, ok && lo >= math.MinInt32 && hi <= math.MaxInt32
}

func (e *Env) span(id isa.SpecialID) (lo, hi int64, ok bool) {
	switch id {
	case isa.TidX, isa.TidY, isa.TidZ:
		return 0, int64(e.Block[id-isa.TidX]) - 1, true
	case isa.CtaidX, isa.CtaidY, isa.CtaidZ:
		n := int64(e.Grid[id-isa.CtaidX])
		return 0, n - 1, n > 0
	case isa.LaneID:
		return 0, 31, true
	}
	return 0, 0, false
}

// splitsOff reports whether v is x+c with a constant c, where the sum does not wrap as a signed number (or, if unsigned
// is set, as a number that is not negative).
func (f *Func) splitsOff(v Value, unsigned bool) (x Value, c int64, ok bool) {
	d := f.Def(v)
	if d == nil || d.Op != Add || f.Width(v) != W32 {
		return NoValue, 0, false
	}
	k, isConst := f.ConstOf(d.Args[1])
	if !isConst {
		return NoValue, 0, false
	}
	c = signed(k, 32)
	lo, hi, known := f.span(d.Args[0], 10)
	if _, _, ok = within(lo+c, hi+c, known); !ok || unsigned && (lo < 0 || lo+c < 0) {
		return NoValue, 0, false
	}
	return d.Args[0], c, true
}
