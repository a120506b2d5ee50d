package isa

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// maxInit bounds the bytes of an initialiser: far above what a PTX text can contain, and harmless.
const maxInit = 64 << 20

// initialisers evaluates the initialisers of all variables, each in the module that defines it.
func (l *linker) initialisers() {
	for _, u := range l.units {
		for _, s := range u.order {
			if s.resolved == s && s.varDecl != nil && s.varName.Init != nil {
				l.initialise(s.unit, s.v, s.varDecl, s.varName, s.unit.target)
			}
		}
	}
}

// initialise evaluates one initialiser.
func (l *linker) initialise(u *unit, v *Var, d *ptx.Var, n *ptx.VarName, lookup func(string) *symbol) {
	if v.Space == event.Shared {
		l.errorf(u, n.Init.Pos, "shared variable %s cannot be initialised", n.Name)
		return
	}
	i := &initialiser{l: l, u: u, v: v, typ: typeByName[d.Type], lookup: lookup}
	dims := n.Dims
	if d.Vector > 1 {
		dims = append(append([]int64{}, dims...), int64(d.Vector))
	}
	i.fill(n.Init, dims, 0)
}

// initialiser is the evaluation of one initialiser.
type initialiser struct {
	l      *linker
	u      *unit
	v      *Var
	typ    Type
	lookup func(string) *symbol
	failed bool
}

func (i *initialiser) errorf(pos ptx.Pos, format string, args ...any) {
	if !i.failed { // one message a variable
		i.l.errorf(i.u, pos, format, args...)
	}
	i.failed = true
}

// fill evaluates in, which initialises an array of the given dimensions at byte offset at. A flat list fills inner
// dimensions in order.
func (i *initialiser) fill(in *ptx.Init, dims []int64, at int64) {
	if !in.IsList {
		i.scalar(&in.Value, at)
		return
	}
	stride := int64(i.typ.Size())
	for _, d := range dims[min(1, len(dims)):] {
		if d < 0 || d > 0 && stride > maxInit/d {
			stride = maxInit
			break
		}
		stride *= d
	}
	stride = max(stride, 1)
	elem := int64(i.typ.Size())
	for _, x := range in.List {
		if i.failed {
			return
		}
		if x.IsList {
			if r := at % stride; r != 0 && len(dims) > 1 {
				at += stride - r
			}
			i.fill(x, dims[min(1, len(dims)):], at)
			at += stride
			continue
		}
		i.scalar(&x.Value, at)
		at += elem
	}
}

// scalar evaluates one value at byte offset at.
func (i *initialiser) scalar(o *ptx.Operand, at int64) {
	size := int64(i.typ.Size())
	if at+size > i.v.Size {
		i.errorf(o.Pos, "too many initialisers for %s, which has %d bytes", i.v.Name, i.v.Size)
		return
	}
	switch o.Kind {
	case ptx.OperandImm:
		bits, err := immediate(o.Name, i.typ)
		if err != "" {
			i.errorf(o.Pos, "%s", err)
			return
		}
		i.put(o, at, bits)
	case ptx.OperandIdent, ptx.OperandAddrOf:
		if o.Name == "WARP_SZ" && i.typ != F32 && i.typ != F64 {
			i.put(o, at, 32)
			return
		}
		i.reloc(o, at, int(size), 0)
	case ptx.OperandMask:
		lit, err := ptx.ParseLiteral(o.Name)
		if err != nil || lit.Bits == 0 {
			i.errorf(o.Pos, "the mask %s selects nothing", o.Name)
			return
		}
		i.reloc(&o.Args[0], at, int(size), uint(bits.TrailingZeros64(lit.Bits)))
	default:
		i.errorf(o.Pos, "this cannot initialise a variable")
	}
}

// put stores raw bits. Init grows as far as nonzero values require.
func (i *initialiser) put(o *ptx.Operand, at int64, bits uint64) {
	size := int64(i.typ.Size())
	if bits == 0 {
		return
	}
	if at+size > maxInit {
		i.errorf(o.Pos, "the initialiser of %s spans more than %d MiB", i.v.Name, maxInit>>20)
		return
	}
	if need := at + size; need > int64(len(i.v.Init)) {
		i.v.Init = append(i.v.Init, make([]byte, need-int64(len(i.v.Init)))...)
	}
	for b := range min(size, 8) {
		i.v.Init[at+b] = byte(bits >> (8 * b))
	}
}

func (i *initialiser) reloc(o *ptx.Operand, at int64, size int, shift uint) {
	s := i.lookup(o.Name)
	if s == nil {
		i.errorf(o.Pos, "unknown name %s in the initialiser of %s", o.Name, i.v.Name)
		return
	}
	r := Reloc{At: int(at), Size: size, Shift: shift, Generic: o.Generic, Var: s.v, Func: s.fn, Add: o.Off}
	if size > 8 {
		r.Size = 8
	}
	switch {
	case s.fn != nil:
		i.l.takeAddress(s.fn)
	case s.v.Space == event.Shared:
		i.errorf(o.Pos, "the address of shared variable %s is no constant", o.Name)
		return
	case !s.defined:
		i.errorf(o.Pos, "variable %s is declared .extern and defined in no module", o.Name)
		return
	}
	i.v.Relocs = append(i.v.Relocs, r)
}

// immediate reads a literal as raw bits of a type. text describes the error, "" if there is none.
func immediate(lit string, t Type) (raw uint64, text string) {
	l, err := ptx.ParseLiteral(lit)
	if err != nil {
		return 0, err.Error()
	}
	single, double := l.Kind == ptx.LiteralSingle, l.Kind == ptx.LiteralDouble
	switch t {
	case F16, F16x2, BF16, BF16x2, F32x2, TF32:
		return 0, "." + t.String() + " takes a register, not a constant"
	case F32:
		switch {
		case single:
			return l.Bits, ""
		case double:
			return fmtF32.round(fmtF64.value(l.Bits), RN), ""
		case l.Bits == 0: // 0 is 0.0 in every interpretation
			return 0, ""
		}
		return 0, lit + " is an integer; .f32 takes 0f... or a number with a decimal point"
	case F64:
		switch {
		case double:
			return l.Bits, ""
		case single:
			x := fmtF32.value(l.Bits)
			return fmtF64.round(x, RN), ""
		case l.Bits == 0:
			return 0, ""
		}
		return 0, lit + " is an integer; .f64 takes 0d... or a number with a decimal point"
	case Pred:
		return bit(l.Bits != 0), ""
	}
	switch {
	case single && t == B32, double && t == B64:
		return l.Bits, ""
	case double && t == B32: // of initial values and of elements in braces
		return fmtF32.round(fmtF64.value(l.Bits), RN), ""
	case single || double:
		return 0, lit + " is a floating-point number; ." + t.String() + " takes an integer"
	}
	if t.Size() >= 8 {
		return l.Bits, ""
	}
	return l.Bits & widthMask(t), ""
}
