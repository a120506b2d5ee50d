package isa

import "fencepost.dev/fencepost/internal/event"

// Addresses of 32 bits.
//
// A module with 32-bit addresses (`.address_size 32`; without the directive, any module that holds an address in 32
// bits, because PTX before ISA 2.3 has no directive) runs on the same device as any other. A 32-bit address is the low
// half of a device address, whose upper half is the same everywhere. The 32-bit addresses of shared, local and
// parameter memory are in windows of 16 MiB at the top. An instruction that needs an address of 64 bits is preceded by
// one that widens it.

// GlobalBase is the start of device memory. Its low half is 0.
const GlobalBase = 0x2000_0000_0000

// The windows of 32-bit generic addresses.
const (
	narrowParam  = 0xfd << 24
	narrowLocal  = 0xfe << 24
	narrowShared = 0xff << 24
	narrowMask   = 0xff << 24
)

// NarrowLimit is the start of the windows of 32-bit addresses: a 32-bit program can access device memory below it.
const NarrowLimit = narrowParam

// Widen returns the generic address that a 32-bit address stands for.
func Widen(a uint32) uint64 {
	switch uint64(a) & narrowMask {
	case narrowParam:
		return ParamWindow | uint64(a)&^narrowMask
	case narrowLocal:
		return LocalWindow | uint64(a)&^narrowMask
	case narrowShared:
		return SharedWindow | uint64(a)&^narrowMask
	}
	return GlobalBase | uint64(a)
}

// narrowWindow is the start of the window of a space among 32-bit generic addresses.
func narrowWindow(s event.Space) uint64 {
	switch s {
	case event.Shared:
		return narrowShared
	case event.Local:
		return narrowLocal
	case event.Param:
		return narrowParam
	}
	return 0
}

// widenRow is the row of the instruction before an access by a 32-bit generic address. It has no PTX name.
var widenRow = &Row{Op: "widen", Class: Pure, Bind: setEval(func(_ *Inst, a *Args) { a.D[0] = Widen(uint32(a.S[0])) })}

// narrow reports whether addresses of the unit may have 32 bits.
func (u *unit) narrow() bool { return u.m.AddressSize != 64 }

// widenAddress widens an operand with a 32-bit address to 64 bits, by instructions inserted before in.
func (b *body) widenAddress(in *Inst, o *Operand, space event.Space) {
	if o.Kind != Reg || o.Size != 4 || narrowSpace(space) {
		return
	}
	base := uint64(GlobalBase)
	switch space {
	case event.Generic:
		*o = b.before(in, widenRow, nil, 8, *o)
		return
	case event.NoSpace: // of code
		base = FuncWindow
	}
	wide := b.before(in, nil, b.spelled("cvt", ".u64.u32"), 8, *o)
	*o = b.before(in, nil, b.spelled("add", ".u64"), 8, wide, Operand{Kind: Imm, Imm: base})
}

// spelled is an instruction that the decoder itself inserts.
func (b *body) spelled(op, mods string) *spelling {
	list, err := b.l.spell(op, mods, today)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return list[0]
}

// before inserts an instruction that computes size bytes from src, and returns the register of its result.
func (b *body) before(in *Inst, row *Row, sp *spelling, size uint8, src ...Operand) Operand {
	var x Inst
	if sp != nil {
		x = sp.proto
	} else {
		x = Inst{Row: row, Class: row.Class, Guard: -1, Vec: 1, Type: U64}
		row.Bind(&x)
	}
	x.Source, x.File, x.Loc = in.Source, in.File, in.Loc
	d := Operand{Kind: Reg, Reg: int32(b.f.Regs), Size: size}
	b.f.Regs++
	x.Src, x.Dst = src, []Operand{d}
	b.f.Insts = append(b.f.Insts, x)
	return d
}
