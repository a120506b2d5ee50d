package isa

// logicRows is the manual's "Logic and Shift Instructions", and prmt.
var logicRows = []*Row{
	{Op: "and", Doc: "Logic and Shift: and", Forms: forms(".type d, a, b; type: pred b16 b32 b64"),
		Bind: setEval(func(_ *Inst, a *Args) { a.D[0] = a.S[0] & a.S[1] })},
	{Op: "or", Doc: "Logic and Shift: or", Forms: forms(".type d, a, b; type: pred b16 b32 b64"),
		Bind: setEval(func(_ *Inst, a *Args) { a.D[0] = a.S[0] | a.S[1] })},
	{Op: "xor", Doc: "Logic and Shift: xor", Forms: forms(".type d, a, b; type: pred b16 b32 b64"),
		Bind: setEval(func(_ *Inst, a *Args) { a.D[0] = a.S[0] ^ a.S[1] })},
	{Op: "not", Doc: "Logic and Shift: not", Forms: forms(".type d, a; type: pred b16 b32 b64"), Bind: bindNot},
	{Op: "cnot", Doc: "Logic and Shift: cnot", Forms: forms(".type d, a; type: b16 b32 b64"), Bind: bindCnot},
	{Op: "lop3", Doc: "Logic and Shift: lop3", Bind: bindLop3, Forms: forms(
		".b32 d, a, b, c, e:b32",
		".bop.b32 d|p:pred, a, b, c, e:b32, q1:pred; bop: or and")},
	{Op: "shf", Doc: "Logic and Shift: shf", Bind: bindShf, Forms: forms(
		".dir.mode.b32 d, a, b, c; dir: l r; mode: clamp wrap")},
	{Op: "shl", Doc: "Logic and Shift: shl", Bind: bindShl, Forms: forms(".type d, a, b:u32; type: b16 b32 b64")},
	{Op: "shr", Doc: "Logic and Shift: shr", Bind: bindShr, Forms: forms(
		".type d, a, b:u32; type: b16 b32 b64 u16 u32 u64 s16 s32 s64")},
	{Op: "prmt", Doc: "Data Movement: prmt", Bind: bindPrmt, Forms: forms(
		".b32{.mode} d, a, b, c; mode: f4e b4e rc8 ecl ecr rc16")},
}

func bindNot(in *Inst) {
	mask := widthMask(in.Type)
	if in.Type == Pred {
		mask = 1
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = ^a.S[0] & mask }
}

func bindCnot(in *Inst) {
	mask := widthMask(in.Type)
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = bit(a.S[0]&mask == 0) }
}

// bit is 1 for true.
func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func bindLop3(in *Inst) {
	op := in.Op
	in.Eval = func(_ *Inst, a *Args) {
		x, y, z, lut := a.S[0], a.S[1], a.S[2], a.S[3]
		var r uint64
		for i := range uint(8) {
			if lut>>i&1 == 0 {
				continue
			}
			// Term i: x if bit 2 of i is set, y for bit 1, z for bit 0, complemented if the bit is not set.
			r |= (x ^ (uint64(i>>2&1) - 1)) & (y ^ (uint64(i>>1&1) - 1)) & (z ^ (uint64(i&1) - 1))
		}
		r &= 0xffffffff
		a.D[0] = r
		switch op {
		case OpOr:
			a.D[1] = bit(r != 0) | a.S[4]&1
		case OpAnd:
			a.D[1] = bit(r != 0) & a.S[4]
		}
	}
}

func bindShf(in *Inst) {
	left, mode := in.Has("l"), in.Mode
	in.Eval = func(_ *Inst, a *Args) {
		n := clampOrWrap(mode, a.S[2])
		both := a.S[1]<<32 | a.S[0]&0xffffffff
		if left {
			a.D[0] = both << n >> 32
		} else {
			a.D[0] = both >> n & 0xffffffff
		}
	}
}

func bindShl(in *Inst) {
	mask := widthMask(in.Type)
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0] << uint32(a.S[1]) & mask }
}

func bindShr(in *Inst) {
	mask, size := widthMask(in.Type), in.Type.Size()
	if in.Type.Signed() {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(signExtend(a.S[0], size)>>uint32(a.S[1])) & mask }
		return
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0] & mask >> uint32(a.S[1]) }
}

// prmtSelectors returns the selector of each result byte, 4 bits a byte, for a mode and the two selector bits.
func prmtSelectors(m Mode, c uint64) uint64 {
	k := c & 3
	switch m {
	case ModeF4E:
		return [4]uint64{0x3210, 0x4321, 0x5432, 0x6543}[k]
	case ModeB4E:
		return [4]uint64{0x5670, 0x6701, 0x7012, 0x0123}[k]
	case ModeRC8:
		return k * 0x1111
	case ModeECL:
		return [4]uint64{0x3210, 0x3211, 0x3222, 0x3333}[k]
	case ModeECR:
		return [4]uint64{0x0000, 0x1110, 0x2210, 0x3210}[k]
	case ModeRC16:
		return [4]uint64{0x1010, 0x3232, 0x1010, 0x3232}[k]
	}
	return c
}

func bindPrmt(in *Inst) {
	mode := in.Mode
	in.Eval = func(_ *Inst, a *Args) {
		bytes := a.S[1]<<32 | a.S[0]&0xffffffff
		sel := prmtSelectors(mode, a.S[2])
		var r uint64
		for i := range uint(4) {
			s := sel >> (4 * i) & 15
			b := bytes >> (8 * (s & 7)) & 0xff
			if s&8 != 0 { // replicate the sign
				b = 0xff * (b >> 7)
			}
			r |= b << (8 * i)
		}
		a.D[0] = r
	}
}
