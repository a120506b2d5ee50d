package isa

// typeNames are the types in PTX notation, by Type.
var typeNames = [...]string{
	NoType: "", Pred: "pred", B8: "b8", B16: "b16", B32: "b32", B64: "b64", B128: "b128",
	U8: "u8", U16: "u16", U32: "u32", U64: "u64", S8: "s8", S16: "s16", S32: "s32", S64: "s64",
	F16: "f16", F16x2: "f16x2", BF16: "bf16", BF16x2: "bf16x2", F32: "f32", F64: "f64",
	U16x2: "u16x2", S16x2: "s16x2", TF32: "tf32", F32x2: "f32x2", U8x4: "u8x4", S8x4: "s8x4",
	E4M3x2: "e4m3x2", E5M2x2: "e5m2x2", E2M3x2: "e2m3x2", E3M2x2: "e3m2x2", E2M1x2: "e2m1x2", UE8M0x2: "ue8m0x2", S2F6x2: "s2f6x2",
}

var typeSizes = [...]int{
	Pred: 1, B8: 1, B16: 2, B32: 4, B64: 8, B128: 16, U8: 1, U16: 2, U32: 4, U64: 8, S8: 1, S16: 2, S32: 4, S64: 8,
	F16: 2, F16x2: 4, BF16: 2, BF16x2: 4, F32: 4, F64: 8, U16x2: 4, S16x2: 4, TF32: 4, F32x2: 8, U8x4: 4, S8x4: 4, E4M3x2: 2, E5M2x2: 2, E2M3x2: 2, E3M2x2: 2, E2M1x2: 1, UE8M0x2: 2, S2F6x2: 2,
}

var typeByName = func() map[string]Type {
	m := make(map[string]Type, len(typeNames))
	for t, n := range typeNames {
		if n != "" {
			m[n] = Type(t)
		}
	}
	return m
}()

// String returns the type in PTX notation, without the dot.
func (t Type) String() string { return typeNames[t] }

// Size is the number of bytes of a value; a predicate counts as 1, NoType as 0.
func (t Type) Size() int { return typeSizes[t] }

// RegisterSize is Operand.Size of a register of the type: its size in bytes, and 0 for a predicate, which is one bit.
func (t Type) RegisterSize() uint8 {
	if t == Pred {
		return 0
	}
	return uint8(t.Size())
}

// Signed reports whether narrower values are sign-extended.
func (t Type) Signed() bool { return t >= S8 && t <= S64 }

// Float reports whether the type is a scalar or packed floating-point type.
func (t Type) Float() bool {
	switch t {
	case F16, F16x2, BF16, BF16x2, F32, F64, TF32, F32x2:
		return true
	}
	return false
}

// untyped reports whether a register of the type holds bits that instructions of any type accept.
func (t Type) untyped() bool { return t >= B8 && t <= B128 }

// takes reports whether an instruction of type t accepts a register of type r, sizes aside (PTX ISA, "Operand Type
// Checking"): untyped bits agree with everything, integers with each other, floating-point types with themselves.
// Packed types that registers cannot have require untyped bits. NVIDIA's assembler also accepts .f16x2 for integers.
func (t Type) takes(r Type) bool {
	switch {
	case t == r || t.untyped() || r.untyped():
		return true
	case t.Float() || r.Float():
		return r == F16x2 && !t.Float()
	}
	return true
}

// Extend returns the contents of a register of size bytes after a value of type t (raw bits, of which the low Size()
// bytes count) was written to it: sign-extended for a signed type, zero-extended for the others (PTX ISA, "Operand Size
// Exceeding Instruction-Type Size").
func (t Type) Extend(raw uint64, size uint8) uint64 {
	switch t {
	case S8:
		raw = uint64(int8(raw))
	case S16:
		raw = uint64(int16(raw))
	case S32:
		raw = uint64(int32(raw))
	default:
		if n := t.Size(); n < 8 {
			raw &= 1<<(8*uint(n)) - 1
		}
		return raw
	}
	if size < 8 {
		raw &= 1<<(8*uint(size)) - 1
	}
	return raw
}
