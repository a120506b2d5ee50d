package isa

import "math/bits"

// integerRows is the manual's "Integer Arithmetic Instructions".
var integerRows = []*Row{
	{Op: "add", Doc: "Integer Arithmetic: add", Bind: bindIntAdd, Forms: forms(
		".type d, a, b; type: u16 u32 u64 s16 s32 s64 u16x2 s16x2 u8x4 s8x4",
		".sat.type d, a, b; type: s32 u32 u16x2 s16x2 u8x4 s8x4")},
	{Op: "sub", Doc: "Integer Arithmetic: sub", Bind: bindIntSub, Forms: forms(
		".type d, a, b; type: u16 u32 u64 s16 s32 s64 u8x4 s8x4",
		".sat.type d, a, b; type: s32 u8x4 s8x4")},
	{Op: "mul", Doc: "Integer Arithmetic: mul", Bind: bindIntMul, Forms: forms(
		".half.type d, a, b; half: lo hi; type: u16 u32 u64 s16 s32 s64",
		".wide.type d:wide, a, b; type: u16 u32 s16 s32")},
	{Op: "mad", Doc: "Integer Arithmetic: mad", Bind: bindIntMad, Forms: forms(
		".half.type d, a, b, c; half: lo hi; type: u16 u32 u64 s16 s32 s64",
		".wide.type d:wide, a, b, c:wide; type: u16 u32 s16 s32",
		".hi.sat.s32 d, a, b, c")},
	{Op: "mul24", Doc: "Integer Arithmetic: mul24", Bind: bindMul24, Forms: forms(
		".half.type d, a, b; half: lo hi; type: u32 s32")},
	{Op: "mad24", Doc: "Integer Arithmetic: mad24", Bind: bindMul24, Forms: forms(
		".half.type d, a, b, c; half: lo hi; type: u32 s32",
		".hi.sat.s32 d, a, b, c")},
	{Op: "sad", Doc: "Integer Arithmetic: sad", Bind: bindInts3(
		func(a, b, c uint64) uint64 { return max(a, b) - min(a, b) + c },
		func(a, b, c int64) int64 { return int64(uint64(max(a, b)) - uint64(min(a, b)) + uint64(c)) }), Forms: forms(
		".type d, a, b, c; type: u16 u32 u64 s16 s32 s64")},
	{Op: "div", Doc: "Integer Arithmetic: div", Note: "Division by zero gives all ones. The smallest value divided by -1 gives itself.",
		Bind: bindInts(divU, divS), Forms: forms(".type d, a, b; type: u16 u32 u64 s16 s32 s64")},
	{Op: "rem", Doc: "Integer Arithmetic: rem", Note: "The remainder by zero is all ones.",
		Bind: bindInts(remU, remS), Forms: forms(".type d, a, b; type: u16 u32 u64 s16 s32 s64")},
	{Op: "abs", Doc: "Integer Arithmetic: abs", Bind: bindInts1(func(a int64) int64 { return max(a, -a) }), Forms: forms(
		".type d, a; type: s16 s32 s64")},
	{Op: "neg", Doc: "Integer Arithmetic: neg", Bind: bindIntNeg, Forms: forms(
		".type d, a; type: s16 s32 s64 s8x4")},
	{Op: "min", Doc: "Integer Arithmetic: min", Bind: bindIntMinMax, Forms: forms(
		".type d, a, b; type: u16 u32 u64 s16 s32 s64 u16x2 s16x2 u8x4 s8x4",
		".relu.type d, a, b; type: s16x2 s8x4 s32")},
	{Op: "max", Doc: "Integer Arithmetic: max", Bind: bindIntMinMax, Forms: forms(
		".type d, a, b; type: u16 u32 u64 s16 s32 s64 u16x2 s16x2 u8x4 s8x4",
		".relu.type d, a, b; type: s16x2 s8x4 s32")},
	{Op: "popc", Doc: "Integer Arithmetic: popc", Bind: bindBits(
		func(a uint64, _ uint) uint64 { return uint64(bits.OnesCount64(a)) }), Forms: forms(".type d:u32, a; type: b32 b64")},
	{Op: "clz", Doc: "Integer Arithmetic: clz", Bind: bindBits(
		func(a uint64, w uint) uint64 { return uint64(bits.LeadingZeros64(a)) + uint64(w) - 64 }), Forms: forms(
		".type d:u32, a; type: b32 b64")},
	{Op: "bfind", Doc: "Integer Arithmetic: bfind", Bind: bindBfind, Forms: forms(
		"{.shiftamt}.type d:u32, a; type: u32 u64 s32 s64")},
	{Op: "fns", Doc: "Integer Arithmetic: fns", Bind: setEval(evalFns), Forms: forms(".b32 d, a, b, c:s32"),
		Note: "A base above 31 finds nothing."},
	{Op: "clmad", Doc: "Integer Arithmetic: clmad", Bind: bindClmad, Forms: forms(".half.u64 d, a, b, c; half: lo hi"),
		Note: "One half of the carry-less product of a and b, exclusive-or c."},
	{Op: "brev", Doc: "Integer Arithmetic: brev", Bind: bindBits(
		func(a uint64, w uint) uint64 { return bits.Reverse64(a) >> (64 - w) }), Forms: forms(".type d, a; type: b32 b64")},
	{Op: "bfe", Doc: "Integer Arithmetic: bfe", Bind: bindBfe, Forms: forms(
		".type d, a, b:u32, c:u32; type: u32 u64 s32 s64")},
	{Op: "bfi", Doc: "Integer Arithmetic: bfi", Bind: bindBfi, Forms: forms(
		".type d, a, b, c:u32, e:u32; type: b32 b64")},
	{Op: "szext", Doc: "Integer Arithmetic: szext", Bind: bindSzext, Forms: forms(
		".mode.type d, a, b:u32; mode: clamp wrap; type: u32 s32")},
	{Op: "bmsk", Doc: "Integer Arithmetic: bmsk", Bind: bindBmsk, Forms: forms(".mode.b32 d, a, b; mode: clamp wrap")},
	{Op: "dp4a", Doc: "Integer Arithmetic: dp4a", Bind: bindDp4a, Forms: forms(
		".atype.btype d:b32, a:b32, b:b32, c:b32; atype: u32 s32; btype: u32 s32")},
	{Op: "dp2a", Doc: "Integer Arithmetic: dp2a", Bind: bindDp2a, Forms: forms(
		".half.atype.btype d:b32, a:b32, b:b32, c:b32; half: lo hi; atype: u32 s32; btype: u32 s32")},
}

// extendedRows is the manual's "Extended-Precision Integer Arithmetic Instructions". The condition code is one more
// operand, a register of the function: the last result with .cc, the last source of addc, subc and madc. It is the carry
// out of the adder, as on hardware, where subtraction adds the complement and 1: after sub.cc it is 1 without a borrow.
var extendedRows = []*Row{
	{Op: "add", Doc: "Extended-Precision Arithmetic: add.cc", Bind: bindAddCC, Forms: forms(
		".cc.type d, a, b; type: u32 s32 u64 s64")},
	{Op: "addc", Doc: "Extended-Precision Arithmetic: addc", Carry: true, Bind: bindAddCC, Forms: forms(
		"{.cc}.type d, a, b; type: u32 s32 u64 s64")},
	{Op: "sub", Doc: "Extended-Precision Arithmetic: sub.cc", Bind: bindSubCC, Forms: forms(
		".cc.type d, a, b; type: u32 s32 u64 s64"), Note: "The condition code of subtraction is the carry of a + ~b + 1, as on hardware: " +
		"1 if there is no borrow. So addc after sub.cc adds 1 there."},
	{Op: "subc", Doc: "Extended-Precision Arithmetic: subc", Carry: true, Bind: bindSubCC, Forms: forms(
		"{.cc}.type d, a, b; type: u32 s32 u64 s64")},
	{Op: "mad", Doc: "Extended-Precision Arithmetic: mad.cc", Bind: bindMadCC, Forms: forms(
		".half.cc.type d, a, b, c; half: lo hi; type: u32 s32 u64 s64")},
	{Op: "madc", Doc: "Extended-Precision Arithmetic: madc", Carry: true, Bind: bindMadCC, Forms: forms(
		".half{.cc}.type d, a, b, c; half: lo hi; type: u32 s32 u64 s64")},
}

// setEval binds one implementation whatever the modifiers.
func setEval(e Eval) func(in *Inst) { return func(in *Inst) { in.Eval = e } }

// widthMask has a one for each bit of the type.
func widthMask(t Type) uint64 { return 1<<(8*uint(t.Size())-1)<<1 - 1 }

// signExtend reads the low bits of x that a signed type of n bytes has.
func signExtend(x uint64, n int) int64 {
	s := uint(64 - 8*n)
	return int64(x<<s) >> s
}

// bindInts binds a two-operand operation given on zero-extended and on sign-extended values; results are cut to width.
func bindInts(u func(a, b uint64) uint64, s func(a, b int64) int64) func(in *Inst) {
	return func(in *Inst) {
		mask, size := widthMask(in.Type), in.Type.Size()
		switch {
		case in.Type == S32:
			in.Eval = func(_ *Inst, a *Args) {
				a.D[0] = uint64(uint32(s(int64(int32(a.S[0])), int64(int32(a.S[1])))))
			}
		case in.Type.Signed():
			in.Eval = func(_ *Inst, a *Args) {
				a.D[0] = uint64(s(signExtend(a.S[0], size), signExtend(a.S[1], size))) & mask
			}
		default:
			in.Eval = func(_ *Inst, a *Args) { a.D[0] = u(a.S[0]&mask, a.S[1]&mask) & mask }
		}
	}
}

// bindInts3 is bindInts for three operands.
func bindInts3(u func(a, b, c uint64) uint64, s func(a, b, c int64) int64) func(in *Inst) {
	return func(in *Inst) {
		mask, size := widthMask(in.Type), in.Type.Size()
		if in.Type.Signed() {
			in.Eval = func(_ *Inst, a *Args) {
				a.D[0] = uint64(s(signExtend(a.S[0], size), signExtend(a.S[1], size), signExtend(a.S[2], size))) & mask
			}
			return
		}
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = u(a.S[0]&mask, a.S[1]&mask, a.S[2]&mask) & mask }
	}
}

// bindInts1 is bindInts for one signed operand.
func bindInts1(s func(a int64) int64) func(in *Inst) {
	return func(in *Inst) {
		mask, size := widthMask(in.Type), in.Type.Size()
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(s(signExtend(a.S[0], size))) & mask }
	}
}

// bindBits binds an operation on the bits of one operand, given with its width in bits.
func bindBits(f func(a uint64, w uint) uint64) func(in *Inst) {
	return func(in *Inst) {
		mask, w := widthMask(in.Type), uint(8*in.Type.Size())
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = f(a.S[0]&mask, w) }
	}
}

// packedElem is the element type of the packed integer types, NoType for others.
func packedElem(t Type) Type {
	switch t {
	case U16x2:
		return U16
	case S16x2:
		return S16
	case U8x4:
		return U8
	case S8x4:
		return S8
	}
	return NoType
}

// elementwise applies an operation to the elements, of type elem, of two packed 32-bit values. f gets them extended to 64
// bits as the type reads them, and its result is cut to the element.
func elementwise(elem Type, f func(a, b uint64) uint64) Eval {
	mask, w := widthMask(elem), uint(8*elem.Size())
	return func(_ *Inst, a *Args) {
		var r uint64
		for at := uint(0); at < 32; at += w {
			r |= f(extended(a.S[0]>>at, elem), extended(a.S[1]>>at, elem)) & mask << at
		}
		a.D[0] = r
	}
}

// clampTo brings a value into the range of an integer type of at most 32 bits.
func clampTo(x int64, t Type) uint64 {
	lo, hi := intRange(t)
	return uint64(min(max(x, lo), int64(hi))) & widthMask(t)
}

// bindSum binds add and sub, given for 64 bits.
func bindSum(in *Inst, f func(a, b uint64) uint64) {
	elem := packedElem(in.Type)
	switch {
	case elem != NoType && in.Sat:
		in.Eval = elementwise(elem, func(a, b uint64) uint64 { return clampTo(int64(f(a, b)), elem) })
	case elem != NoType:
		in.Eval = elementwise(elem, f)
	case in.Sat:
		t := in.Type
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = clampTo(int64(f(extended(a.S[0], t), extended(a.S[1], t))), t) }
	default:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(uint16(f(a.S[0], a.S[1]))) }
	}
}

// extended is the value of the low bits of x as the type reads them, in 64 bits.
func extended(x uint64, t Type) uint64 {
	if t.Signed() {
		return uint64(signExtend(x, t.Size()))
	}
	return x & widthMask(t)
}

func bindIntAdd(in *Inst) {
	bindSum(in, func(a, b uint64) uint64 { return a + b })
	switch {
	case in.Sat || packedElem(in.Type) != NoType:
	case in.Type.Size() == 8:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0] + a.S[1] }
	case in.Type.Size() == 4:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(uint32(a.S[0] + a.S[1])) }
	}
}

func bindIntSub(in *Inst) {
	bindSum(in, func(a, b uint64) uint64 { return a - b })
	switch {
	case in.Sat || packedElem(in.Type) != NoType:
	case in.Type.Size() == 8:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0] - a.S[1] }
	case in.Type.Size() == 4:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(uint32(a.S[0] - a.S[1])) }
	}
}

// product is the double-width product of two values of type t, the half asked for, or for narrow types all of it.
func product(t Type, hi, wide bool) func(a, b uint64) uint64 {
	mask, w := widthMask(t), uint(8*t.Size())
	switch {
	case !hi && !wide:
		return func(a, b uint64) uint64 { return a * b & mask }
	case t == U64:
		return func(a, b uint64) uint64 { h, _ := bits.Mul64(a, b); return h }
	case t == S64:
		return mulHiSigned
	}
	shift := uint(0)
	if hi {
		shift = w
	}
	wideMask := mask
	if wide {
		wideMask = 1<<(2*w-1)<<1 - 1
	}
	if t.Signed() {
		size := t.Size()
		return func(a, b uint64) uint64 {
			return uint64(signExtend(a, size)*signExtend(b, size)) >> shift & wideMask
		}
	}
	return func(a, b uint64) uint64 { return (a & mask) * (b & mask) >> shift & wideMask }
}

// mulHiSigned is the upper half of the 128-bit product of signed values.
func mulHiSigned(a, b uint64) uint64 {
	h, _ := bits.Mul64(a, b)
	if int64(a) < 0 {
		h -= b
	}
	if int64(b) < 0 {
		h -= a
	}
	return h
}

func bindIntMul(in *Inst) {
	f := product(in.Type, in.Hi, in.Wide)
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = f(a.S[0], a.S[1]) }
	if !in.Hi && !in.Wide && in.Type.Size() == 4 {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(uint32(a.S[0]) * uint32(a.S[1])) }
	}
}

func bindIntMad(in *Inst) {
	f := product(in.Type, in.Hi, in.Wide)
	mask := widthMask(in.Type)
	if in.Wide {
		mask = 1<<(16*uint(in.Type.Size())-1)<<1 - 1
	}
	if in.Sat {
		in.Eval = func(_ *Inst, a *Args) {
			a.D[0] = clampTo(int64(int32(f(a.S[0], a.S[1])))+int64(int32(a.S[2])), S32)
		}
		return
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = (f(a.S[0], a.S[1]) + a.S[2]) & mask }
}

// bindMul24 binds mul24 and mad24: the 48-bit product of the low 24 bits, its low 32 bits or its bits 47 to 16.
func bindMul24(in *Inst) {
	signed, add, sat := in.Type == S32, in.Row.Op == "mad24", in.Sat
	shift := uint(0)
	if in.Hi {
		shift = 16
	}
	in.Eval = func(_ *Inst, a *Args) {
		x, y := a.S[0]&0xffffff, a.S[1]&0xffffff
		if signed {
			x, y = uint64(int64(x<<40)>>40), uint64(int64(y<<40)>>40)
		}
		r := uint64(int64(x*y) >> shift)
		switch {
		case sat:
			a.D[0] = clampTo(int64(int32(r))+int64(int32(a.S[2])), S32)
		case add:
			a.D[0] = uint64(uint32(r + a.S[2]))
		default:
			a.D[0] = uint64(uint32(r))
		}
	}
}

func divU(a, b uint64) uint64 {
	if b == 0 {
		return ^uint64(0)
	}
	return a / b
}

func divS(a, b int64) int64 {
	if b == 0 {
		return -1
	}
	if b == -1 {
		return -a
	}
	return a / b
}

func remU(a, b uint64) uint64 {
	if b == 0 {
		return ^uint64(0)
	}
	return a % b
}

func remS(a, b int64) int64 {
	if b == 0 {
		return -1
	}
	if b == -1 {
		return 0
	}
	return a % b
}

func bindIntMinMax(in *Inst) {
	isMin, relu := in.Row.Op == "min", in.Has("relu")
	u := func(a, b uint64) uint64 { return max(a, b) }
	s := func(a, b int64) int64 { return max(a, b) }
	if isMin {
		u = func(a, b uint64) uint64 { return min(a, b) }
		s = func(a, b int64) int64 { return min(a, b) }
	}
	if relu {
		inner := s
		s = func(a, b int64) int64 { return max(inner(a, b), 0) }
	}
	switch elem := packedElem(in.Type); {
	case elem == NoType:
		bindInts(u, s)(in)
	case elem.Signed():
		in.Eval = elementwise(elem, func(a, b uint64) uint64 { return uint64(s(int64(a), int64(b))) })
	default:
		in.Eval = elementwise(elem, u)
	}
}

func bindIntNeg(in *Inst) {
	if elem := packedElem(in.Type); elem != NoType {
		in.Eval = elementwise(elem, func(a, _ uint64) uint64 { return -a })
		return
	}
	bindInts1(func(a int64) int64 { return -a })(in)
}

func bindBfind(in *Inst) {
	mask, w, signed, amount := widthMask(in.Type), uint64(8*in.Type.Size()), in.Type.Signed(), in.Has("shiftamt")
	in.Eval = func(_ *Inst, a *Args) {
		x := a.S[0] & mask
		if signed && x>>(w-1) != 0 {
			x = ^x & mask
		}
		switch n := uint64(bits.Len64(x)); {
		case n == 0:
			a.D[0] = 0xffffffff
		case amount:
			a.D[0] = w - n
		default:
			a.D[0] = n - 1
		}
	}
}

// bindClmad binds clmad: the product is that of polynomials over the field of two elements.
func bindClmad(in *Inst) {
	hi := in.Hi
	in.Eval = func(_ *Inst, a *Args) {
		var upper, lower uint64
		for m := a.S[1]; m != 0; m &= m - 1 {
			n := bits.TrailingZeros64(m)
			lower ^= a.S[0] << n
			upper ^= a.S[0] >> 1 >> (63 - n)
		}
		if hi {
			lower = upper
		}
		a.D[0] = lower ^ a.S[2]
	}
}

// evalFns finds the n-th set bit of a mask from a base, forward for a positive n, backward for a negative one.
func evalFns(_ *Inst, a *Args) {
	mask, base, n := uint32(a.S[0]), uint32(a.S[1]), int64(int32(a.S[2]))
	a.D[0] = 0xffffffff
	if base > 31 {
		return
	}
	step, count := int64(1), n
	if n < 0 {
		step, count = -1, -n
	}
	if n == 0 {
		count = 1
	}
	for pos := int64(base); pos >= 0 && pos < 32; pos += step {
		if mask>>uint(pos)&1 != 0 {
			if count--; count == 0 {
				a.D[0] = uint64(pos)
				return
			}
		}
		if n == 0 {
			return
		}
	}
}

func bindBfe(in *Inst) {
	mask, w, signed := widthMask(in.Type), uint64(8*in.Type.Size()), in.Type.Signed()
	in.Eval = func(_ *Inst, a *Args) {
		x, pos, n := a.S[0]&mask, a.S[1]&0xff, a.S[2]&0xff
		if n == 0 {
			a.D[0] = 0
			return
		}
		field := uint64(1)<<n - 1 // all ones from 64 on: Go shifts to zero
		r := x >> pos & field
		if top := min(pos+n-1, w-1); signed && x>>top&1 != 0 {
			// Ones above what was taken: from the field's width, or from where the value ended.
			taken := n
			if pos < w {
				taken = min(n, w-pos)
			} else {
				taken = 0
			}
			r |= ^(uint64(1)<<taken - 1)
		}
		a.D[0] = r & mask
	}
}

func bindBfi(in *Inst) {
	mask := widthMask(in.Type)
	in.Eval = func(_ *Inst, a *Args) {
		pos, n := a.S[2]&0xff, a.S[3]&0xff
		field := (uint64(1)<<n - 1) << pos & mask
		a.D[0] = (a.S[1]&^field | a.S[0]<<pos&field) & mask
	}
}

// clampOrWrap brings a 32-bit shift or width into range.
func clampOrWrap(m Mode, x uint64) uint64 {
	if m == ModeWrap {
		return x & 31
	}
	return min(uint64(uint32(x)), 32)
}

func bindSzext(in *Inst) {
	mode, signed := in.Mode, in.Type == S32
	in.Eval = func(_ *Inst, a *Args) {
		n := clampOrWrap(mode, a.S[1])
		r := a.S[0] & (1<<n - 1)
		if signed && n > 0 && r>>(n-1)&1 != 0 {
			r |= ^uint64(0) << n
		}
		a.D[0] = uint64(uint32(r))
	}
}

func bindBmsk(in *Inst) {
	mode := in.Mode
	in.Eval = func(_ *Inst, a *Args) {
		at, n := clampOrWrap(mode, a.S[0]), clampOrWrap(mode, a.S[1])
		a.D[0] = uint64(uint32((1<<n - 1) << at))
	}
}

// part gives element i of size bits of a 32-bit value, sign-extended for S32.
func part(x uint64, i, size uint, t Type) int64 {
	x = x >> (i * size) & (1<<size - 1)
	if t == S32 {
		return int64(x<<(64-size)) >> (64 - size)
	}
	return int64(x)
}

func bindDp4a(in *Inst) {
	ta, tb := in.Type, in.Type2
	in.Eval = func(_ *Inst, a *Args) {
		sum := int64(a.S[2])
		for i := range uint(4) {
			sum += part(a.S[0], i, 8, ta) * part(a.S[1], i, 8, tb)
		}
		a.D[0] = uint64(uint32(sum))
	}
}

func bindDp2a(in *Inst) {
	ta, tb := in.Type, in.Type2
	from := uint(0)
	if in.Hi {
		from = 2
	}
	in.Eval = func(_ *Inst, a *Args) {
		sum := int64(a.S[2])
		for i := range uint(2) {
			sum += part(a.S[0], i, 16, ta) * part(a.S[1], from+i, 8, tb)
		}
		a.D[0] = uint64(uint32(sum))
	}
}

// addCarry adds with carry at the width of the type.
func addCarry(t Type, a, b, carry uint64) (sum, out uint64) {
	if t.Size() == 8 {
		return bits.Add64(a, b, carry)
	}
	s := uint64(uint32(a)) + uint64(uint32(b)) + carry
	return uint64(uint32(s)), s >> 32
}

func bindAddCC(in *Inst) {
	t, carryIn := in.Type, in.CarryIn
	in.Eval = func(_ *Inst, a *Args) {
		var c uint64
		if carryIn {
			c = a.S[2] & 1
		}
		a.D[0], a.D[1] = addCarry(t, a.S[0], a.S[1], c)
	}
}

// bindSubCC subtracts by adding the complement, with a carry of 1 where none comes in.
func bindSubCC(in *Inst) {
	t, carryIn := in.Type, in.CarryIn
	in.Eval = func(_ *Inst, a *Args) {
		c := uint64(1)
		if carryIn {
			c = a.S[2] & 1
		}
		a.D[0], a.D[1] = addCarry(t, a.S[0], ^a.S[1], c)
	}
}

func bindMadCC(in *Inst) {
	t, carryIn := in.Type, in.CarryIn
	f := product(in.Type, in.Hi, false)
	in.Eval = func(_ *Inst, a *Args) {
		var c uint64
		if carryIn {
			c = a.S[3] & 1
		}
		a.D[0], a.D[1] = addCarry(t, f(a.S[0], a.S[1]), a.S[2], c)
	}
}
