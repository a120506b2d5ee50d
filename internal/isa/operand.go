package isa

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// operands decodes the operands of an instruction by its form. It returns false if their number does not fit the form,
// or if there is a vector where the form has none.
func (b *body) operands(in *Inst, sp *spelling) bool {
	shape := true
	switch in.Class {
	case Branch:
		b.branch(in)
		return true
	case Call:
		b.call(in)
		return true
	case Copy:
		if in.Op == OpCopy {
			b.copyOperands(in)
			return true
		}
		if in.Op == OpBulk {
			b.bulkOperands(in)
			return true
		}
		if in.Op == OpTensor {
			b.tensorOperands(in)
			return true
		}
		if in.Op == OpMapCopy {
			b.mapCopyOperands(in)
			return true
		}
		if in.Op == OpStoreAsync || in.Op == OpTryCancel {
			b.storeOperands(in)
			return true
		}
		if in.Op == OpTcMultiply || in.Op == OpTcCopy || in.Op == OpTcCommit {
			b.coreOperands(in)
			return true
		}
	case Warpgroup:
		if in.Op == OpWgmma {
			b.wgmmaOperands(in)
			return true
		}
		if in.Op == OpTcLoad || in.Op == OpTcStore {
			b.coreOperands(in)
			return true
		}
	case Texture:
		b.textureOperands(in)
		return true
	case Hint:
		if sp.form.text { // a prefetch
			return true
		}
	}
	given := in.Source.Operands
	specs := sp.ops
	// If optional operands are omitted, the later ones are assigned to their own places.
	skip := len(specs) - len(given)
	required := 0
	for _, s := range specs {
		if !s.opt {
			required++
		}
	}
	if skip < 0 || len(given) < required {
		b.errorf(in.Source.Pos, "%s%s takes %s, not %d operands; known: %s", in.Source.Op, in.Source.Mods,
			count(required, len(specs)), len(given), sp.form.decl.Display(in.Row.Op))
		return false
	}
	for i := range specs {
		s := &specs[i]
		if s.opt && skip > 0 {
			skip--
			b.absent(in, s)
			continue
		}
		if vector := given[0].Kind == ptx.OperandVector; in.Class == Pure && vector != s.vector {
			shape = false
		}
		b.operand(in, s, &given[0])
		given = given[1:]
	}
	if len(specs) > 0 && specs[0].selects() {
		in.Src = append(in.Src, Operand{Kind: Imm, Imm: b.selected})
	}
	if in.Class == Mbarrier && in.Has("shared::cluster") && len(in.Dst) > 0 && in.Dst[0].Kind != Sink {
		b.errorf(in.Source.Operands[0].Pos, "%s%s gives no result: write _", in.Source.Op, in.Source.Mods)
	}
	if in.Row.Stack {
		b.stackOperands(in)
	}
	if in.Row.Rank {
		in.Src = append(in.Src, Operand{Kind: SpecialReg, Special: ClusterCtarank})
	}
	if in.Row.Whole {
		in.Src = append(in.Src, Operand{Kind: Imm, Imm: allLanes})
	}
	if in.CarryIn {
		in.Src = append(in.Src, b.carry())
	}
	if in.CarryOut {
		in.Dst = append(in.Dst, b.carry())
	}
	if in.Class <= Special && (len(in.Src) > len(Args{}.S) || len(in.Dst) > len(Args{}.D)) {
		b.errorf(in.Source.Pos, "too many operands")
	}
	return shape
}

func count(lo, hi int) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// absent stands for an omitted optional operand. A cache policy of a memory instruction is not kept at all; the lines
// of a Tile without a stride are dense.
func (b *body) absent(in *Inst, s *opSpec) {
	if in.Class == Tile {
		in.Src = append(in.Src, Operand{Kind: Imm, Imm: in.Tiles.Line / in.Tiles.Element})
	}
	if in.Class == Barrier || in.Class == Pure {
		in.Src = append(in.Src, Operand{})
	}
}

// carry is the condition code, a register of the function.
func (b *body) carry() Operand {
	if b.cc < 0 {
		b.cc = int32(b.f.Regs)
		b.f.Regs++
	}
	return Operand{Kind: Reg, Reg: b.cc, Size: 4}
}

// operand decodes one operand.
func (b *body) operand(in *Inst, s *opSpec, o *ptx.Operand) {
	switch {
	case s.selects():
		b.selecting(in, s, o)
	case s.addr:
		b.address(in, o)
	case s.count > 0:
		b.tuple(in, s, o)
	case s.vector && in.Vec > 1:
		b.elements(in, s, o)
	case s.vector:
		b.movVector(in, s, o)
	case s.name == "d" && (in.Class == Load || in.Class == Matrix), s.name == "b" && in.Class == Store, in.Class == Atomic && in.Vec > 1 && !s.opt:
		b.elements(in, s, o)
	case s.opt && (in.Class == Load || in.Class == Store || in.Class == Atomic):
		// A cache policy: checked, not used.
		n := len(in.Src)
		b.source(in, s, o)
		in.Src = in.Src[:n]
	case s.dst:
		b.dest(in, s, o)
	default:
		b.source(in, s, o)
	}
}

// selects reports whether a source has a selector of its register, or a sign.
func (s *opSpec) selects() bool { return s.ways > 0 || s.neg }

// selecting decodes an operand that selects parts of its register: `%r1.b0`, `-%r2.h1`. The selector of a result is
// kept for the end of the sources.
func (b *body) selecting(in *Inst, s *opSpec, o *ptx.Operand) {
	plain, reg := *s, *o
	plain.ways, plain.neg = 0, false
	sign := uint64(0)
	if s.neg && o.Kind == ptx.OperandNeg {
		reg, sign = o.Args[0], negated
	}
	code := defaultSelector(s.name, s.ways)
	dot := strings.LastIndexByte(reg.Name, '.')
	switch {
	case s.ways > 0 && dot > 0 && reg.Kind == ptx.OperandIdent:
		var ok bool
		if code, ok = selector(reg.Name[dot+1:], s.ways, s.dst); !ok {
			b.errorf(o.Pos, "%s%s: %s is no selector of an operand", in.Source.Op, in.Source.Mods, reg.Name[dot:])
			return
		}
		reg.Name = reg.Name[:dot]
	case s.dst && s.ways == 1:
		b.errorf(o.Pos, "%s%s with three sources needs a second operation, or a selector of its result", in.Source.Op, in.Source.Mods)
		return
	}
	b.operand(in, &plain, &reg)
	if s.dst {
		b.selected = code
		return
	}
	if s.name == "c" && sign != 0 && len(in.Src) == 5 && (in.Src[1].Imm^in.Src[3].Imm)&negated != 0 {
		b.errorf(o.Pos, "%s%s: only the product or %s can be negated", in.Source.Op, in.Source.Mods, reg.Name)
		return
	}
	in.Src = append(in.Src, Operand{Kind: Imm, Imm: code | sign})
}

// dest decodes a result, or a pair of them.
func (b *body) dest(in *Inst, s *opSpec, o *ptx.Operand) {
	if s.pair != nil {
		if o.Kind == ptx.OperandPair {
			b.result(in, s, &o.Args[0])
			b.result(in, s.pair, &o.Args[1])
			return
		}
		if !s.pair.opt {
			b.errorf(o.Pos, "%s takes a pair of results, a|b", in.Source.Op)
			return
		}
		b.result(in, s, o)
		in.Dst = append(in.Dst, Operand{})
		return
	}
	b.result(in, s, o)
}

// result decodes one result register.
func (b *body) result(in *Inst, s *opSpec, o *ptx.Operand) {
	if o.Kind == ptx.OperandIdent && o.Name == "_" {
		in.Dst = append(in.Dst, Operand{})
		if s.typ == B128 {
			in.Dst = append(in.Dst, Operand{})
		}
		return
	}
	regs, ok := b.registerOperand(o)
	if !ok {
		b.errorf(o.Pos, "%s is not a declared register%s", describe(o), b.nearName(o.Name))
		return
	}
	if !b.fits(in, s, o, regs) {
		return
	}
	in.Dst = append(in.Dst, regs...)
}

// registerOperand returns the slots of a register operand: several for a vector or 128-bit register.
func (b *body) registerOperand(o *ptx.Operand) ([]Operand, bool) {
	if o.Kind != ptx.OperandIdent {
		return nil, false
	}
	x := b.scope.find(o.Name)
	element := -1
	if base, i, ok := vectorElement(o.Name); x == nil && ok {
		element, x = i, b.scope.find(base)
	}
	if x == nil || x.regs == nil {
		return nil, false
	}
	r := x.regs
	first := b.slot(r, x.off)
	per := slotsOf(r.typ)
	n := r.vec * per
	if element >= 0 {
		if element >= r.vec {
			return nil, false
		}
		first += int32(element * per)
		n = per
	}
	size := r.typ.RegisterSize()
	out := make([]Operand, n)
	for i := range out {
		out[i] = Operand{Kind: Reg, Reg: first + int32(i), Size: size}
	}
	return out, true
}

// fits checks the width of a register against the operand's type (PTX ISA, "Operand Size Exceeding Instruction-Type
// Size"): equal, or larger if the form allows it.
func (b *body) fits(in *Inst, s *opSpec, o *ptx.Operand, regs []Operand) bool {
	want := s.typ.Size()
	got := int(regs[0].Size)
	isPred := b.isPredicate(o)
	switch {
	case isPred != (s.typ == Pred):
		kind := "a predicate"
		if isPred {
			kind = "a value of type ." + s.typ.String()
		}
		b.errorf(o.Pos, "%s%s: operand %s must be %s", in.Source.Op, in.Source.Mods, o.Name, kind)
	case isPred:
		return true
	case want == 16 && got == 16:
		return true
	case len(regs) > 1 && got != 16:
		b.errorf(o.Pos, "%s is a vector register; one of its elements is needed", o.Name)
	case want == 8 && got == 4 && in.Row.Op == "isspacep" && b.u.narrow():
		return true
	case got < want, got > want && !s.wider, got == 16 && s.dst: // a result would have to be extended to the second register of 128 bits
		b.errorf(o.Pos, "%s%s: operand %s has %d bits, .%s needs %d", in.Source.Op, in.Source.Mods, o.Name, 8*got, s.typ, 8*want)
	case !s.braced && !s.typ.takes(b.typeOf(o.Name)):
		b.errorf(o.Pos, "%s%s: operand %s is a register of type .%s, not of .%s or .b%d", in.Source.Op, in.Source.Mods, o.Name, b.typeOf(o.Name), s.typ, 8*got)
	default:
		return true
	}
	return false
}

func (b *body) isPredicate(o *ptx.Operand) bool { return b.typeOf(o.Name) == Pred }

// typeOf is the type of a register or of an element of a vector register, NoType for other names.
func (b *body) typeOf(name string) Type {
	x := b.scope.find(name)
	if base, _, ok := vectorElement(name); x == nil && ok {
		x = b.scope.find(base)
	}
	if x == nil || x.regs == nil {
		return NoType
	}
	return x.regs.typ
}

// vectorElement splits v.x, an element of a vector register.
func vectorElement(name string) (base string, element int, ok bool) {
	n := len(name)
	if n <= 2 || name[n-2] != '.' {
		return "", 0, false
	}
	element, ok = map[byte]int{'x': 0, 'y': 1, 'z': 2, 'w': 3, 'r': 0, 'g': 1, 'b': 2, 'a': 3}[name[n-1]]
	return name[:n-2], element, ok
}

// source decodes a source operand.
func (b *body) source(in *Inst, s *opSpec, o *ptx.Operand) {
	switch o.Kind {
	case ptx.OperandNot:
		if s.typ != Pred {
			b.errorf(o.Pos, "only predicates can be negated with !")
			return
		}
		n := len(in.Src)
		b.source(in, s, &o.Args[0])
		if len(in.Src) > n && in.Src[n].Kind == Reg {
			in.Src[n].Not = true
		}
	case ptx.OperandImm:
		b.constant(in, s, o)
	case ptx.OperandIdent, ptx.OperandAddrOf:
		b.name(in, s, o)
	case ptx.OperandIndex:
		if a, ok := b.indexed(in, o); ok {
			b.nameAddress(in, s, o, a)
		}
	default:
		b.errorf(o.Pos, "%s%s does not take %s here; known: %s", in.Source.Op, in.Source.Mods, describe(o), in.Row.Forms[0].Display(in.Row.Op))
	}
}

func (b *body) constant(in *Inst, s *opSpec, o *ptx.Operand) {
	raw, text := immediate(o.Name, s.typ)
	if text != "" {
		b.errorf(o.Pos, "%s%s: %s", in.Source.Op, in.Source.Mods, text)
		return
	}
	in.Src = append(in.Src, Operand{Kind: Imm, Imm: raw})
	if s.typ == B128 {
		in.Src = append(in.Src, Operand{Kind: Imm})
	}
}

// name decodes a source that is a name: a register, a special register, or the address of something.
func (b *body) name(in *Inst, s *opSpec, o *ptx.Operand) {
	if o.Kind == ptx.OperandIdent {
		if regs, ok := b.registerOperand(o); ok {
			if b.fits(in, s, o, regs) {
				if regs[0].Size == 16 && s.typ.Size() < 16 {
					regs = regs[:1] // the low half of 128 bits
				}
				in.Src = append(in.Src, regs...)
			}
			return
		}
		id, special := specialNames[o.Name]
		if s.typ == Pred && (special && id != IsExplicitCluster || o.Name == "WARP_SZ") {
			b.errorf(o.Pos, "%s%s: operand %s must be a predicate", in.Source.Op, in.Source.Mods, o.Name)
			return
		}
		if o.Name == "WARP_SZ" {
			b.source(in, s, &ptx.Operand{Kind: ptx.OperandImm, Pos: o.Pos, Name: "32"})
			return
		}
		if special {
			if in.Class == Barrier || s.typ == B128 {
				b.errorf(o.Pos, "%s%s takes a register or a constant here, not %s", in.Source.Op, in.Source.Mods, o.Name)
				return
			}
			in.Src = append(in.Src, Operand{Kind: SpecialReg, Special: id})
			return
		}
	}
	if b.registerPlus(in, s, o) {
		return
	}
	if a, ok := b.addressOf(in, o); ok {
		b.nameAddress(in, s, o, a)
	}
}

// registerPlus accepts `reg+number` as a source. NVIDIA's assembler accepts it for integers wherever it accepts a
// register. The sum is computed, as wide as the register, by instructions inserted before in. It returns false if o is
// not of this form.
func (b *body) registerPlus(in *Inst, s *opSpec, o *ptx.Operand) bool {
	if o.Kind != ptx.OperandAddrOf || o.Generic {
		return false
	}
	reg := ptx.Operand{Kind: ptx.OperandIdent, Pos: o.Pos, Name: o.Name}
	regs, ok := b.registerOperand(&reg)
	if !ok {
		return false
	}
	x := b.scope.find(o.Name)
	if x == nil || len(regs) != 1 || s.typ == Pred || s.typ.Float() || x.regs.typ == Pred || x.regs.typ.Float() {
		b.errorf(o.Pos, "a number can be added to an integer register only, not to %s", o.Name)
		return true
	}
	if !b.fits(in, s, &reg, regs) {
		return true
	}
	size := int(regs[0].Size)
	typ := map[int]string{1: ".u16", 2: ".u16", 4: ".u32", 8: ".u64"}[size]
	raw := uint64(o.Off) & (1<<(8*uint(size)-1)<<1 - 1)
	sum := b.before(in, nil, b.spelled("add", typ), uint8(max(size, 2)), regs[0], Operand{Kind: Imm, Imm: raw})
	if size == 1 {
		sum = b.before(in, nil, b.spelled("and", ".b16"), 1, sum, Operand{Kind: Imm, Imm: 0xff})
	}
	in.Src = append(in.Src, sum)
	return true
}

// nameAddress uses the address a of the named object as a source.
func (b *body) nameAddress(in *Inst, s *opSpec, o *ptx.Operand, a Operand) {
	if a.Kind == GenericAddr && s.typ.Size() == 4 && a.Var.Space == event.Shared { // in the window of 32-bit addresses
		a.Kind, a.Imm = SharedAddr, a.Imm+narrowShared
	}
	if in.Class == Barrier {
		b.errorf(o.Pos, "%s%s takes a register or a constant here, not the address of %s", in.Source.Op, in.Source.Mods, o.Name)
		return
	}
	if s.typ.Size() < 8 && (s.typ.Size() != 4 || !b.u.narrow() && a.Kind != SharedAddr && a.Kind != LocalAddr && a.Kind != ParamAddr) {
		b.errorf(o.Pos, "the address of %s does not fit .%s", o.Name, s.typ)
		return
	}
	if a.Kind == ParamAddr && !b.f.Entry {
		a = b.takeParam(o, a)
	}
	in.Src = append(in.Src, a)
	if s.typ == B128 {
		in.Src = append(in.Src, Operand{Kind: Imm})
	}
}

// takeParam returns a parameter of a device function a place in the local frame, because its address is taken.
func (b *body) takeParam(o *ptx.Operand, a Operand) Operand {
	x := b.scope.find(o.Name)
	if x == nil || !x.formal {
		b.errorf(o.Pos, "the address of %s, a .param variable of a call, cannot be taken", o.Name)
		return a
	}
	if slices.ContainsFunc(b.f.Sig.Rets, func(r Param) bool { return r.Name == o.Name }) {
		b.errorf(o.Pos, "the address of %s, a result of the function, cannot be taken", o.Name)
		return a
	}
	s := b.spills[o.Name]
	if s == nil {
		s = &Spill{Param: x.off, Local: b.localSpace(x.size, 16), Size: x.size}
		b.spills[o.Name] = s
	}
	return Operand{Kind: LocalAddr, Imm: uint64(s.Local) + uint64(o.Off)}
}

// addressOf returns the address of a variable or function.
func (b *body) addressOf(in *Inst, o *ptx.Operand) (Operand, bool) {
	if x := b.scope.find(o.Name); x != nil {
		switch {
		case x.param:
			return Operand{Kind: ParamAddr, Imm: uint64(x.off) + uint64(o.Off)}, true
		case x.local:
			return Operand{Kind: LocalAddr, Imm: uint64(x.off) + uint64(o.Off)}, true
		case x.v != nil:
			return varAddress(x.v, o), true
		}
		b.errorf(o.Pos, "%s is a register and has no address", o.Name)
		return Operand{}, false
	}
	t := b.u.target(o.Name)
	switch {
	case t == nil:
		b.errorf(o.Pos, "unknown name %s%s", o.Name, b.nearName(o.Name))
		return Operand{}, false
	case t.fn != nil:
		b.l.takeAddress(t.fn)
		return Operand{Kind: FuncAddr, Func: t.fn, Imm: uint64(o.Off)}, true
	case !t.defined && !t.v.Dynamic:
		b.errorf(o.Pos, "variable %s is declared .extern and defined in no module", o.Name)
		return Operand{}, false
	}
	return varAddress(t.v, o), true
}

func varAddress(v *Var, o *ptx.Operand) Operand {
	a := Operand{Kind: GlobalAddr, Var: v, Imm: uint64(o.Off)}
	switch {
	case v.Space == event.Shared && !o.Generic:
		a.Kind = SharedAddr
	case o.Generic:
		a.Kind = GenericAddr
	}
	return a
}

// nearName suggests a special register for a misspelt one, and explains names that exist where they are not supported.
func (b *body) nearName(name string) string {
	if space := b.u.outside[name]; space != "" {
		return ": ." + space + " variables at module level are not supported"
	}
	if name == "" || name[0] != '%' {
		return ""
	}
	return didYouMean(name, specialList())
}

// address decodes a memory operand: the base to Src, the offset to Off.
func (b *body) address(in *Inst, o *ptx.Operand) {
	if o.Kind == ptx.OperandIndex {
		if a, ok := b.indexed(in, o); ok {
			in.Src = append(in.Src, a)
		}
		return
	}
	if o.Kind != ptx.OperandAddr || len(o.Args) != 1 || o.Name != "" && o.Name != "unified" {
		b.errorf(o.Pos, "%s%s takes an address [a] here, not %s", in.Source.Op, in.Source.Mods, describe(o))
		return
	}
	base := &o.Args[0]
	in.Off = o.Off
	switch base.Kind {
	case ptx.OperandImm:
		raw, text := immediate(base.Name, U64)
		if text != "" {
			b.errorf(base.Pos, "%s", text)
		}
		in.Src = append(in.Src, Operand{Kind: Imm, Imm: raw})
		return
	case ptx.OperandIdent:
		if regs, ok := b.registerOperand(base); ok {
			if len(regs) == 1 && regs[0].Size == 4 && in.Space != event.Shared && !b.u.narrow() &&
				(in.Class == Mbarrier || in.Row.Op == "ldmatrix" || in.Row.Op == "stmatrix" || in.Row.Op == "tcgen05") {
				in.Space = event.Shared // no other space is possible, and the headers of the toolkit write 32-bit addresses without one
			}
			if len(regs) != 1 || b.typeOf(base.Name).Float() || regs[0].Size != 8 && (regs[0].Size != 4 || !narrowSpace(in.Space) && !b.u.narrow()) {
				b.errorf(base.Pos, "%s cannot hold an address: a 64-bit register of integers or bits is needed", base.Name)
				return
			}
			in.Src = append(in.Src, regs[0])
			return
		}
	case ptx.OperandAddrOf:
	default:
		b.errorf(base.Pos, "%s is not the base of an address", describe(base))
		return
	}
	a, ok := b.addressOf(in, base)
	if !ok {
		return
	}
	b.addressSpace(in, base, a)
	in.Src = append(in.Src, a)
}

// narrowSpace reports whether 32 bits can hold any address of the space.
func narrowSpace(s event.Space) bool {
	return s == event.Shared || s == event.Local || s == event.Param
}

// addressSpace checks the space of a named variable against that of the access, or sets it.
func (b *body) addressSpace(in *Inst, o *ptx.Operand, a Operand) {
	var s event.Space
	switch a.Kind {
	case GlobalAddr:
		s = a.Var.Space
	case SharedAddr:
		s = event.Shared
	case LocalAddr:
		s = event.Local
	case ParamAddr:
		s = event.Param
		if in.Class == Store && b.isArgument(o.Name) {
			b.errorf(o.Pos, "%s is a parameter of the function: it cannot be written", o.Name)
			return
		}
	case FuncAddr:
		b.errorf(o.Pos, "%s is a function: it cannot be accessed as memory", o.Name)
		return
	default:
		return
	}
	if in.Space == event.Generic || in.Space == event.NoSpace {
		in.Space = s
	}
	if in.Space != s && !(in.Space == event.Global && s == event.Const) {
		b.errorf(o.Pos, "%s is a %s variable, accessed as %s", o.Name, s, in.Space)
	}
}

// isArgument reports whether a name is a .param variable with which the function is called.
func (b *body) isArgument(name string) bool {
	x := b.scope.find(name)
	return x != nil && x.formal && slices.ContainsFunc(b.f.Sig.Params, func(p Param) bool { return p.Name == name })
}

// elements decodes the value of a load, store, vector atomic or matrix: one operand, or a vector of Vec elements.
func (b *body) elements(in *Inst, s *opSpec, o *ptx.Operand) {
	elem := *s
	elem.braced = in.Vec > 1
	one := func(o *ptx.Operand) {
		if s.dst {
			b.result(in, &elem, o)
		} else {
			b.source(in, &elem, o)
		}
	}
	if n, most := int(in.Vec)*in.Type.Size(), widest(in); n > most {
		b.errorf(o.Pos, "%s%s is a vector of %d bytes: at most %d can be accessed at once", in.Source.Op, in.Source.Mods, n, most)
		return
	}
	if in.Vec == 1 {
		if o.Kind == ptx.OperandVector && len(o.Args) == 1 { // ptxas accepts braces around one register
			o = &o.Args[0]
		}
		one(o)
		return
	}
	if o.Kind == ptx.OperandIdent {
		if regs, ok := b.registerOperand(o); ok && regs[0].Size != 16 && len(regs) == int(in.Vec) {
			if s.dst {
				in.Dst = append(in.Dst, regs...)
			} else {
				in.Src = append(in.Src, regs...)
			}
			return
		}
	}
	if o.Kind == ptx.OperandIdent && !s.dst && in.Vec == 4 && specialVector(o.Name) {
		for _, c := range "xyzw" {
			in.Src = append(in.Src, Operand{Kind: SpecialReg, Special: specialNames[o.Name+"."+string(c)]})
		}
		return
	}
	if o.Kind != ptx.OperandVector || len(o.Args) != int(in.Vec) {
		b.errorf(o.Pos, "%s%s takes a vector of %d registers in braces", in.Source.Op, in.Source.Mods, in.Vec)
		return
	}
	for i := range o.Args {
		one(&o.Args[i])
	}
}

// widest is how many bytes an instruction with a vector can access at once.
func widest(in *Inst) int {
	switch {
	case in.Class == Matrix:
		return math.MaxInt
	case (in.Source.Op == "ld" || in.Source.Op == "st") && (in.Space == event.Global || in.Space == event.Generic):
		return 32
	}
	return 16
}

// tuple decodes a vector of as many registers as the form says.
func (b *body) tuple(in *Inst, s *opSpec, o *ptx.Operand) {
	list := o.Args
	if o.Kind != ptx.OperandVector {
		list = []ptx.Operand{*o}
	}
	if len(list) != s.count {
		b.errorf(o.Pos, "%s%s: operand %s is %d registers in braces", in.Source.Op, in.Source.Mods, s.name, s.count)
		return
	}
	one := *s
	one.count, one.braced = 0, true
	for i := range list {
		if in.Class == Matrix && s.dst { // Vec counts matrices
			b.result(in, &one, &list[i])
			continue
		}
		b.operand(in, &one, &list[i])
	}
}

// movVector decodes the vector of a packing or unpacking mov and binds it.
func (b *body) movVector(in *Inst, s *opSpec, o *ptx.Operand) {
	n := len(o.Args)
	if o.Kind == ptx.OperandIdent {
		if regs, ok := b.registerOperand(o); ok && len(regs) > 1 && regs[0].Size < 16 {
			if int(regs[0].Size)*len(regs) == in.Type.Size() {
				b.bindVector(in, s, len(regs))
				if s.dst {
					in.Dst = append(in.Dst, regs...)
				} else {
					in.Src = append(in.Src, regs...)
				}
				return
			}
		}
	}
	if o.Kind != ptx.OperandVector || n != 2 && n != 4 || in.Type.Size()%n != 0 {
		b.errorf(o.Pos, "%s%s takes a vector of 2 or 4 elements that fill .%s, not %s", in.Source.Op, in.Source.Mods, in.Type, describe(o))
		return
	}
	elem := *s
	elem.vector = false
	elem.typ = map[int]Type{1: B8, 2: B16, 4: B32, 8: B64}[in.Type.Size()/n]
	for i := range o.Args {
		b.operand(in, &elem, &o.Args[i])
	}
	b.bindVector(in, s, n)
}

func (b *body) bindVector(in *Inst, s *opSpec, n int) { bindMovVector(in, n, !s.dst) }

// branch decodes bra and brx.idx.
func (b *body) branch(in *Inst) {
	ops := in.Source.Operands
	var names []string
	switch {
	case in.Source.Op == "bra" && len(ops) == 1 && ops[0].Kind == ptx.OperandIdent:
		names = []string{ops[0].Name}
	case in.Source.Op == "brx" && len(ops) == 2 && ops[1].Kind == ptx.OperandIdent:
		b.source(in, &opSpec{name: "index", typ: U32}, &ops[0])
		l := b.scope.targetList(ops[1].Name)
		if l == nil || l.Calls || len(l.Targets) == 0 {
			b.errorf(ops[1].Pos, "%s is not a list of .branchtargets", ops[1].Name)
			return
		}
		names = l.Targets
	default:
		b.errorf(in.Source.Pos, "%s%s takes a label", in.Source.Op, in.Source.Mods)
		return
	}
	j := jump{inst: len(b.f.Insts)}
	for _, name := range names {
		l := b.scope.label(name)
		if l == nil {
			b.errorf(ops[len(ops)-1].Pos, "unknown label %s", name)
			continue
		}
		j.labels = append(j.labels, l)
	}
	b.jumps = append(b.jumps, j)
}

// call decodes call: (results), function, (arguments), prototype or list of targets.
func (b *body) call(in *Inst) {
	ops := in.Source.Operands
	var rets, args *ptx.Operand
	if len(ops) > 0 && ops[0].Kind == ptx.OperandList {
		rets, ops = &ops[0], ops[1:]
	}
	if len(ops) == 0 || ops[0].Kind != ptx.OperandIdent {
		b.errorf(in.Source.Pos, "call needs the name of a function")
		return
	}
	callee := &ops[0]
	ops = ops[1:]
	if len(ops) > 0 && ops[0].Kind == ptx.OperandList {
		args, ops = &ops[0], ops[1:]
	}
	var hint *ptx.Operand
	if len(ops) > 0 && ops[0].Kind == ptx.OperandIdent {
		hint, ops = &ops[0], ops[1:]
	}
	if len(ops) > 0 {
		b.errorf(ops[0].Pos, "call takes (results), function, (arguments), prototype; %s is too much", describe(&ops[0]))
		return
	}
	if regs, ok := b.registerOperand(callee); ok {
		if regs[0].Size != 8 && (regs[0].Size != 4 || !b.u.narrow()) {
			b.errorf(callee.Pos, "%s cannot hold the address of a function", callee.Name)
			return
		}
		in.Src = append(in.Src, regs[0])
		b.indirect(in, callee, hint)
	} else {
		b.direct(in, callee)
	}
	if in.CallSig == nil {
		return
	}
	in.RetOps = b.actuals(in, rets, in.CallSig.Rets, "results")
	in.ArgOps = b.actuals(in, args, in.CallSig.Params, "arguments")
}

func (b *body) direct(in *Inst, callee *ptx.Operand) {
	t := b.u.target(callee.Name)
	switch {
	case t == nil || t.fn == nil:
		b.errorf(callee.Pos, "unknown function %s", callee.Name)
		return
	case t.fn.Entry:
		b.errorf(callee.Pos, "%s is a kernel: it cannot be called", callee.Name)
		return
	}
	in.Callee, in.CallSig = t.fn, &t.fn.Sig
}

// indirect finds the signature of an indirect call, and its candidates if they are listed.
func (b *body) indirect(in *Inst, callee, hint *ptx.Operand) {
	if hint == nil {
		b.errorf(callee.Pos, "an indirect call needs a prototype or a list of targets")
		return
	}
	if p := b.scope.proto(hint.Name); p != nil {
		sig, _ := layParams(p.Rets, p.Params)
		in.CallSig = &sig
		return
	}
	if table := b.callTable(hint.Name); len(table) > 0 {
		in.Callees, in.CallSig = table, &table[0].Sig
		return
	}
	l := b.scope.targetList(hint.Name)
	if l == nil || !l.Calls || len(l.Targets) == 0 {
		b.errorf(hint.Pos, "%s is neither a prototype nor a list of .calltargets nor an array of functions", hint.Name)
		return
	}
	for _, name := range l.Targets {
		t := b.u.target(name)
		if t == nil || t.fn == nil || t.fn.Entry {
			b.errorf(l.Pos, "%s is not a function that can be called", name)
			continue
		}
		b.l.takeAddress(t.fn)
		in.Callees = append(in.Callees, t.fn)
		in.CallSig = &t.fn.Sig
	}
}

// callTable is the functions in a variable's initialiser (PTX ISA, "call": the name of a call table).
func (b *body) callTable(name string) []*Func {
	var v *Var
	if x := b.scope.find(name); x != nil {
		v = x.v
	} else if t := b.u.target(name); t != nil {
		v = t.v
	}
	if v == nil {
		return nil
	}
	var out []*Func
	for _, r := range v.Relocs {
		if r.Func != nil && !r.Func.Entry && !slices.Contains(out, r.Func) {
			out = append(out, r.Func)
		}
	}
	return out
}

// actuals decodes the results or arguments of a call against the signature.
func (b *body) actuals(in *Inst, list *ptx.Operand, formals []Param, what string) []Operand {
	var given []ptx.Operand
	pos := in.Source.Pos
	if list != nil {
		given, pos = list.Args, list.Pos
	}
	var firsts []int // by formal as declared: its first parameter
	for i := 0; i < len(formals); i += max(formals[i].Vec, 1) {
		firsts = append(firsts, i)
	}
	if len(given) != len(firsts) {
		b.errorf(pos, "call has %d %s, the function %d", len(given), what, len(firsts))
		return nil
	}
	out := make([]Operand, 0, len(formals))
	for i, k := range firsts {
		out = append(out, b.actual(&given[i], &formals[k], what)...)
	}
	return out
}

// actual decodes one result or argument of a call: an operand for each parameter that p stands for.
func (b *body) actual(o *ptx.Operand, p *Param, what string) []Operand {
	n := max(p.Vec, 1)
	if o.Kind == ptx.OperandIdent && o.Name == "_" && what == "results" {
		return make([]Operand, n)
	}
	if o.Kind == ptx.OperandIdent {
		if x := b.scope.find(o.Name); x != nil && x.param && n == 1 {
			if x.size != p.Size && p.Size != 0 {
				b.errorf(o.Pos, "%s has %d bytes, the function's %s has %d", o.Name, x.size, p.Name, p.Size)
			}
			return []Operand{{Kind: ParamAddr, Imm: uint64(x.off)}}
		}
		if regs, ok := b.registerOperand(o); ok && len(regs) == n {
			size := uint8(min(p.Size, 255))
			if p.Off < 0 {
				size = p.Type.RegisterSize()
			}
			if regs[0].Size != size {
				b.errorf(o.Pos, "%s has %s, the function's %s has %s", o.Name, bitsOf(regs[0].Size), p.Name, bitsOf(size))
			}
			return regs
		}
		if o.Name == "WARP_SZ" && what == "arguments" && n == 1 {
			return []Operand{{Kind: Imm, Imm: 32}}
		}
	}
	if o.Kind == ptx.OperandImm && what == "arguments" && n == 1 {
		raw, text := immediate(o.Name, p.Type)
		if text != "" {
			b.errorf(o.Pos, "%s", text)
		}
		return []Operand{{Kind: Imm, Imm: raw}}
	}
	b.errorf(o.Pos, "%s cannot be passed to a function", describe(o))
	return nil
}

// bitsOf describes the width of a register.
func bitsOf(size uint8) string {
	if size == 0 {
		return "1 bit"
	}
	return fmt.Sprintf("%d bytes", size)
}
