// Package amd64 encodes the x86-64 instructions that package lanes needs to compile lists of operations: a few on
// general registers, and some of AVX2, FMA and BMI2. Names and meanings are those of Go's assembler, with which a test
// compares every encoding. Operands are in the order of Intel's manual, the destination first.
package amd64

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Reg is a general register.
type Reg uint8

// The general registers, by number.
const (
	AX Reg = iota
	CX
	DX
	BX
	SP
	BP
	SI
	DI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// Vec is a vector register, all 256 bits of it or the lower 128.
type Vec uint8

// Mem is a place in memory: Base + Index*Scale + Disp. A Scale of 0 means no index.
type Mem struct {
	Base, Index Reg
	Scale       uint8
	Disp        int32
}

// Label is a place in the code. Its zero value is not bound yet.
type Label struct {
	at   int   // one more than the offset; 0: not bound
	uses []int // ends of the 32-bit fields that are relative to it
}

// Asm collects code. Its zero value is ready for use.
type Asm struct {
	Code []byte
}

// Bind binds a label to the current place.
func (a *Asm) Bind(l *Label) {
	if l.at != 0 {
		panic("BUG: a label is bound twice")
	}
	l.at = len(a.Code) + 1
	for _, u := range l.uses {
		a.patch(u, l)
	}
	l.uses = nil
}

// At returns the offset that a label is bound to.
func (l *Label) At() int {
	if l.at == 0 {
		panic("BUG: a label is bound to no place")
	}
	return l.at - 1
}

// Bound reports whether the label is bound.
func (l *Label) Bound() bool { return l.at != 0 }

func (a *Asm) patch(field int, l *Label) {
	binary.LittleEndian.PutUint32(a.Code[field:], uint32(l.At()-field-4))
}

// relative appends a 32-bit field with the distance to a label.
func (a *Asm) relative(l *Label) {
	at := len(a.Code)
	a.imm32(0)
	if l.Bound() {
		a.patch(at, l)
	} else {
		l.uses = append(l.uses, at)
	}
}

func (a *Asm) bytes(b ...byte)     { a.Code = append(a.Code, b...) }
func (a *Asm) imm32(v int32)       { a.Code = binary.LittleEndian.AppendUint32(a.Code, uint32(v)) }
func bit(b bool, n uint) byte      { return byte(one(b)) << n }
func fits8(v int32) bool           { return v >= math.MinInt8 && v <= math.MaxInt8 }
func high(r uint8) bool            { return r > 7 }
func (m *Mem) highIndex() bool     { return m.Scale != 0 && high(uint8(m.Index)) }
func modrm(mod, reg, rm byte) byte { return mod<<6 | reg&7<<3 | rm&7 }

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// place appends the bytes that encode a register field and a place in memory.
func (a *Asm) place(reg uint8, m *Mem) {
	mod := byte(2)
	switch {
	case m.Disp == 0 && m.Base&7 != BP:
		mod = 0
	case fits8(m.Disp):
		mod = 1
	}
	if m.Scale == 0 && m.Base&7 != SP {
		a.bytes(modrm(mod, reg, byte(m.Base)))
	} else {
		scale, index := byte(0), byte(SP) // no index
		if m.Scale != 0 {
			if m.Index == SP {
				panic("BUG: the stack pointer as an index")
			}
			index = byte(m.Index)
			for 1<<scale != m.Scale {
				scale++
			}
		}
		a.bytes(modrm(mod, reg, byte(SP)), modrm(scale, index, byte(m.Base)))
	}
	switch mod {
	case 1:
		a.bytes(byte(m.Disp))
	case 2:
		a.imm32(m.Disp)
	}
}

// rex appends a REX prefix if one is needed. always forces one.
func (a *Asm) rex(wide bool, reg, index, base bool, always bool) {
	if b := 0x40 | bit(wide, 3) | bit(reg, 2) | bit(index, 1) | bit(base, 0); b != 0x40 || always {
		a.bytes(b)
	}
}

// onMem encodes an instruction on a register field and memory.
func (a *Asm) onMem(wide bool, reg uint8, m Mem, opcode ...byte) {
	a.rex(wide, high(reg), m.highIndex(), high(uint8(m.Base)), false)
	a.bytes(opcode...)
	a.place(reg, &m)
}

// onReg encodes an instruction on a register field and a register.
func (a *Asm) onReg(wide bool, reg uint8, rm Reg, opcode ...byte) {
	a.rex(wide, high(reg), false, high(uint8(rm)), false)
	a.bytes(append(opcode, modrm(3, reg, byte(rm)))...)
}

// Op is an instruction d = d op s.
type Op struct {
	name   string // in Go's assembler, without the size suffix
	opcode []byte
	imm    byte // the register field if s is a number
}

// The instructions of two operands. CMP and TEST change only the flags. TEST takes no memory operand here.
var (
	ADD  = Op{"ADD", []byte{0x03}, 0}
	OR   = Op{"OR", []byte{0x0b}, 1}
	AND  = Op{"AND", []byte{0x23}, 4}
	SUB  = Op{"SUB", []byte{0x2b}, 5}
	XOR  = Op{"XOR", []byte{0x33}, 6}
	CMP  = Op{"CMP", []byte{0x3b}, 7}
	IMUL = Op{"IMUL", []byte{0x0f, 0xaf}, noImm}
)

const noImm = 0xff

// RR, RM and RI encode an instruction on 32 bits, or, if wide is set, on 64: on two registers, on a register and
// memory, and on a register and a number.
func (a *Asm) RR(o Op, wide bool, d, s Reg) {
	if o.imm == noImm {
		a.onReg(wide, uint8(d), s, o.opcode...)
	} else {
		a.onReg(wide, uint8(s), d, o.opcode[0]-2)
	}
}

// RM is RR with a source in memory.
func (a *Asm) RM(o Op, wide bool, d Reg, s Mem) { a.onMem(wide, uint8(d), s, o.opcode...) }

// RI is RR with a sign-extended number as the source.
func (a *Asm) RI(o Op, wide bool, d Reg, v int32) {
	o.wantImm()
	if fits8(v) {
		a.onReg(wide, o.imm, d, 0x83)
		a.bytes(byte(v))
		return
	}
	if d == AX {
		a.rex(wide, false, false, false, false)
		a.bytes(o.opcode[0] + 2)
	} else {
		a.onReg(wide, o.imm, d, 0x81)
	}
	a.imm32(v)
}

// MI is RI with a destination in memory.
func (a *Asm) MI(o Op, wide bool, d Mem, v int32) {
	o.wantImm()
	if fits8(v) {
		a.onMem(wide, o.imm, d, 0x83)
		a.bytes(byte(v))
		return
	}
	a.onMem(wide, o.imm, d, 0x81)
	a.imm32(v)
}

func (o *Op) wantImm() {
	if o.imm == noImm {
		panic(fmt.Sprintf("BUG: %s with a number", o.name))
	}
}

// Test sets the flags by d & s. TestI sets them by the lowest byte of d & v.
func (a *Asm) Test(wide bool, d, s Reg) { a.onReg(wide, uint8(s), d, 0x85) }

// TestI is described at Test.
func (a *Asm) TestI(d Mem, v byte) {
	a.onMem(false, 0, d, 0xf6)
	a.bytes(v)
}

// TestRegI sets the flags by the lower 32 bits of d & v.
func (a *Asm) TestRegI(d Reg, v int32) {
	if d == AX {
		a.bytes(0xa9)
	} else {
		a.onReg(false, 0, d, 0xf7)
	}
	a.imm32(v)
}

// Load loads the size bytes at m into a register. If signed is set it sign-extends 1 or 2 bytes to 32 bits, and 4 bytes
// to 64 bits. Otherwise it zero-extends.
func (a *Asm) Load(size int, signed bool, d Reg, m Mem) {
	switch {
	case size == 8:
		a.onMem(true, uint8(d), m, 0x8b)
	case size == 4 && signed:
		a.onMem(true, uint8(d), m, 0x63)
	case size == 4:
		a.onMem(false, uint8(d), m, 0x8b)
	default:
		a.onMem(false, uint8(d), m, 0x0f, 0xb6|byte(one(signed))<<3|byte(size-1))
	}
}

// Store writes 4 or 8 bytes of a register. StoreLow writes 1, 2, 4 or 8.
func (a *Asm) Store(wide bool, m Mem, s Reg) { a.onMem(wide, uint8(s), m, 0x89) }

// StoreLow is described at Store.
func (a *Asm) StoreLow(size int, m Mem, s Reg) {
	switch size {
	case 1:
		a.rex(false, high(uint8(s)), m.highIndex(), high(uint8(m.Base)), s >= SP)
		a.bytes(0x88)
		a.place(uint8(s), &m)
	case 2:
		a.bytes(0x66)
		a.onMem(false, uint8(s), m, 0x89)
	default:
		a.Store(size == 8, m, s)
	}
}

// StoreI writes a sign-extended number.
func (a *Asm) StoreI(wide bool, m Mem, v int32) {
	a.onMem(wide, 0, m, 0xc7)
	a.imm32(v)
}

// Move copies a register.
func (a *Asm) Move(wide bool, d, s Reg) { a.onReg(wide, uint8(s), d, 0x89) }

// Set sets a register to a number.
func (a *Asm) Set(d Reg, v uint64) {
	switch {
	case v>>32 == 0:
		a.rex(false, false, false, high(uint8(d)), false)
		a.bytes(0xb8 | byte(d)&7)
		a.imm32(int32(v))
	case int64(v) == int64(int32(v)):
		a.onReg(true, 0, d, 0xc7)
		a.imm32(int32(v))
	default:
		a.rex(true, false, false, high(uint8(d)), false)
		a.bytes(0xb8 | byte(d)&7)
		a.Code = binary.LittleEndian.AppendUint64(a.Code, v)
	}
}

// Address sets a register to the address of a label. Lea sets it to that of a place in memory.
func (a *Asm) Address(d Reg, l *Label) {
	a.rex(true, high(uint8(d)), false, false, false)
	a.bytes(0x8d, modrm(0, byte(d), byte(BP)))
	a.relative(l)
}

// Lea is described at Address.
func (a *Asm) Lea(d Reg, m Mem) { a.onMem(true, uint8(d), m, 0x8d) }

// Neg negates a register. Not inverts its bits.
func (a *Asm) Neg(wide bool, d Reg) { a.onReg(wide, 3, d, 0xf7) }

// Not is described at Neg.
func (a *Asm) Not(wide bool, d Reg) { a.onReg(wide, 2, d, 0xf7) }

// ShiftKind is the direction of a shift and the kind of bits shifted in.
type ShiftKind uint8

// The shifts: left, right with zeros, right with the sign.
const (
	SHL ShiftKind = 4
	SHR ShiftKind = 5
	SAR ShiftKind = 7
)

// ShiftI shifts by a number that is not 0 or 1.
func (a *Asm) ShiftI(k ShiftKind, wide bool, d Reg, n byte) {
	a.onReg(wide, byte(k), d, 0xc1)
	a.bytes(n)
}

// Shift sets d to s shifted by n (SHLX, SHRX, SARX).
func (a *Asm) Shift(k ShiftKind, wide bool, d, s, n Reg) {
	pp := map[ShiftKind]byte{SHL: 1, SHR: 3, SAR: 2}[k]
	a.vex(pp, 2, wide, false, high(uint8(d)), false, high(uint8(s)), uint8(n))
	a.bytes(0xf7, modrm(3, byte(d), byte(s)))
}

// AndNot sets d to ^s & m (ANDN).
func (a *Asm) AndNot(d, s Reg, m Mem) {
	a.vex(0, 2, false, false, high(uint8(d)), m.highIndex(), high(uint8(m.Base)), uint8(s))
	a.bytes(0xf2)
	a.place(uint8(d), &m)
}

// LowestBit sets d to the number of the lowest bit set in s (TZCNT). ClearLowest sets d to the lower 32 bits of s
// without their lowest set bit, and sets the flags (BLSR).
func (a *Asm) LowestBit(d, s Reg) {
	a.bytes(0xf3)
	a.onReg(false, uint8(d), s, 0x0f, 0xbc)
}

// ClearLowest is described at LowestBit.
func (a *Asm) ClearLowest(d, s Reg) {
	a.vex(0, 2, false, false, false, false, high(uint8(s)), uint8(d))
	a.bytes(0xf3, modrm(3, 1, byte(s)))
}

// Cond is a condition of the flags.
type Cond byte

// The conditions. Below and above compare unsigned numbers, less and greater signed ones.
const (
	Below        Cond = 2
	AboveEqual   Cond = 3
	Equal        Cond = 4
	NotEqual     Cond = 5
	BelowEqual   Cond = 6
	Above        Cond = 7
	Less         Cond = 12
	GreaterEqual Cond = 13
	LessEqual    Cond = 14
	Greater      Cond = 15
)

// SetIf sets the lowest byte of d, one of AX, CX, DX and BX, to 1 if the condition holds, and to 0 otherwise.
func (a *Asm) SetIf(c Cond, d Reg) { a.bytes(0x0f, 0x90|byte(c), modrm(3, 0, byte(d))) }

// MoveIf copies 64 bits if the condition holds.
func (a *Asm) MoveIf(c Cond, d, s Reg) { a.onReg(true, uint8(d), s, 0x0f, 0x40|byte(c)) }

// Jump jumps to a label. JumpIf jumps if the condition holds. JumpTo jumps to the address at m.
func (a *Asm) Jump(l *Label) {
	a.bytes(0xe9)
	a.relative(l)
}

// JumpIf is described at Jump.
func (a *Asm) JumpIf(c Cond, l *Label) {
	a.bytes(0x0f, 0x80|byte(c))
	a.relative(l)
}

// JumpTo is described at Jump.
func (a *Asm) JumpTo(m Mem) { a.onMem(false, 4, m, 0xff) }

// Return is RET.
func (a *Asm) Return() { a.bytes(0xc3) }

// Prefetch prefetches a line of memory (PREFETCHT0).
func (a *Asm) Prefetch(m Mem) { a.onMem(false, 1, m, 0x0f, 0x18) }
