// Package arm64 encodes the A64 instructions that package lanes needs to compile lists of operations: a few on general
// registers, and some of Advanced SIMD (NEON). Names and the order of operands are those of Arm's manual. A test
// compares every encoding with an assembler.
package arm64

import (
	"encoding/binary"
	"math/bits"
)

// Reg is a general register.
type Reg uint8

// The general registers that have names of their own. SP and ZR are one number; the instruction determines which of
// them it means.
const (
	LR Reg = 30
	SP Reg = 31
	ZR Reg = 31
	// Scratch is overwritten by accesses whose offset does not fit the instruction.
	Scratch Reg = 17
)

// Vec is a vector register, all 128 bits of it or the lower 64.
type Vec uint8

// Mem is a place in memory: Base + Disp.
type Mem struct {
	Base Reg
	Disp int32
}

// Label is a place in the code. Its zero value is not bound yet.
type Label struct {
	at   int   // one more than the offset; 0: not bound
	uses []int // the instructions that refer to it
}

// Asm collects code. Its zero value is ready for use. Far says that a jump does not reach its label; the code must then
// not be used.
type Asm struct {
	Code []byte
	Far  bool
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

func (a *Asm) emit(word uint32) { a.Code = binary.LittleEndian.AppendUint32(a.Code, word) }

// refer appends an instruction that refers to a label.
func (a *Asm) refer(word uint32, l *Label) {
	at := len(a.Code)
	a.emit(word)
	if l.at != 0 {
		a.patch(at, l)
	} else {
		l.uses = append(l.uses, at)
	}
}

// patch writes the distance to a label into an instruction.
func (a *Asm) patch(at int, l *Label) {
	field := a.Code[at:]
	word, far := binary.LittleEndian.Uint32(field), l.At()-at
	width, shift := 19, 5 // conditional jumps
	switch {
	case word&0x7c000000 == 0x14000000: // B
		width, shift = 26, 0
	case word&0x7e000000 == 0x36000000: // TBZ, TBNZ
		width, shift = 14, 5
	case word&0x1f000000 == 0x10000000: // ADRP, and the ADD after it; code begins at a page boundary
		pages := l.At()>>12 - at>>12
		binary.LittleEndian.PutUint32(field, word|uint32(pages)&3<<29|uint32(pages>>2)&(1<<19-1)<<5)
		binary.LittleEndian.PutUint32(field[4:], binary.LittleEndian.Uint32(field[4:])|uint32(l.At())&0xfff<<10)
		return
	}
	far >>= 2
	a.Far = a.Far || far != far<<(64-width)>>(64-width)
	binary.LittleEndian.PutUint32(field, word|uint32(far)&(1<<width-1)<<shift)
}

func sf(wide bool) uint32 {
	if wide {
		return 1 << 31
	}
	return 0
}

func rdn(d, n Reg) uint32     { return uint32(n)<<5 | uint32(d) }
func rdnm(d, n, m Reg) uint32 { return uint32(m)<<16 | rdn(d, n) }

// Op is an instruction of three registers.
type Op struct {
	name string
	bits uint32
}

// The instructions of three registers. Those whose names end in S set the flags. SMULL and UMULL multiply 32 bits to
// 64.
var (
	ADD   = Op{"add", 0x0b000000}
	SUB   = Op{"sub", 0x4b000000}
	SUBS  = Op{"subs", 0x6b000000}
	AND   = Op{"and", 0x0a000000}
	ANDS  = Op{"ands", 0x6a000000}
	BIC   = Op{"bic", 0x0a200000}
	ORR   = Op{"orr", 0x2a000000}
	ORN   = Op{"orn", 0x2a200000}
	EOR   = Op{"eor", 0x4a000000}
	MUL   = Op{"mul", 0x1b007c00}
	LSL   = Op{"lsl", 0x1ac02000}
	LSR   = Op{"lsr", 0x1ac02400}
	ASR   = Op{"asr", 0x1ac02800}
	SMULL = Op{"smull", 0x9b207c00}
	UMULL = Op{"umull", 0x9ba07c00}
)

// RR encodes an instruction on 32 bits, or, if wide is set, on 64.
func (a *Asm) RR(o Op, wide bool, d, n, m Reg) { a.emit(o.bits | sf(wide) | rdnm(d, n, m)) }

// RRShift is RR with m shifted left, for sums and logic.
func (a *Asm) RRShift(o Op, wide bool, d, n, m Reg, by int) {
	a.emit(o.bits | sf(wide) | uint32(by)<<10 | rdnm(d, n, m))
}

// AddIndex sets d to n plus the sign- or zero-extended lower 32 bits of m.
func (a *Asm) AddIndex(d, n, m Reg, signed bool) { a.emit(0x8b200000 | extend(signed) | rdnm(d, n, m)) }

func extend(signed bool) uint32 {
	if signed {
		return 6 << 13 // SXTW
	}
	return 2 << 13 // UXTW
}

// MulAdd sets d to n*m + s of 64 bits.
func (a *Asm) MulAdd(d, n, m, s Reg) { a.emit(0x9b000000 | uint32(s)<<10 | rdnm(d, n, m)) }

// AddI sets d to n + v of 64 bits. It puts a number of more than 24 bits into Scratch.
func (a *Asm) AddI(d, n Reg, v int64) {
	word, size := uint32(0x91000000), uint64(v)
	if v < 0 {
		word, size = 0xd1000000, uint64(-v)
	}
	if size>>24 != 0 {
		if n == Scratch {
			panic("BUG: a far place behind one that is far itself")
		}
		a.Set(Scratch, uint64(v))
		a.RR(ADD, true, d, n, Scratch)
		return
	}
	if size>>12 != 0 {
		a.emit(word | 1<<22 | uint32(size>>12)<<10 | rdn(d, n))
		n = d
	}
	if size&0xfff != 0 || d != n {
		a.emit(word | uint32(size)&0xfff<<10 | rdn(d, n))
	}
}

// CompareI sets the flags by n and a number below 4096.
func (a *Asm) CompareI(wide bool, n Reg, v uint32) { a.emit(0x7100001f | sf(wide) | v<<10 | rdn(0, n)) }

// LowBits sets d to the lower bits of n, fewer than 32. TestLowBits sets the flags by them.
func (a *Asm) LowBits(d, n Reg, bits int) { a.emit(0x12000000 | uint32(bits-1)<<10 | rdn(d, n)) }

// TestLowBits is described at LowBits.
func (a *Asm) TestLowBits(n Reg, bits int) { a.emit(0x7200001f | uint32(bits-1)<<10 | rdn(0, n)) }

// Set sets a register to a number.
func (a *Asm) Set(d Reg, v uint64) {
	zeros, ones := 0, 0
	for i := range 4 {
		switch v >> (16 * i) & 0xffff {
		case 0:
			zeros++
		case 0xffff:
			ones++
		}
	}
	word, skip := uint32(0xd2800000), uint64(0) // MOVZ, and the value of the other parts
	if ones > zeros {
		word, skip = 0x92800000, 0xffff // MOVN
	}
	part := func(i int) uint64 { return v >> (16 * i) & 0xffff }
	first := 0
	for first < 3 && part(first) == skip {
		first++
	}
	if part(first) == skip {
		first = 0
	}
	a.emit(word | uint32(first)<<21 | uint32(part(first)^skip)<<5 | uint32(d))
	for i := first + 1; i < 4; i++ {
		if part(i) != skip {
			a.emit(0xf2800000 | uint32(i)<<21 | uint32(part(i))<<5 | uint32(d)) // MOVK
		}
	}
}

// Cond is a condition of the flags.
type Cond uint32

// The conditions. Lower and higher compare unsigned numbers, less and greater signed ones.
const (
	Equal        Cond = 0
	NotEqual     Cond = 1
	HigherSame   Cond = 2
	Lower        Cond = 3
	Unordered    Cond = 6 // of floating-point numbers
	Higher       Cond = 8
	LowerSame    Cond = 9
	GreaterEqual Cond = 10
	Less         Cond = 11
	Greater      Cond = 12
	LessEqual    Cond = 13
)

// Select sets d to n if the condition holds, and to m otherwise. SetIf sets d to 1 or 0.
func (a *Asm) Select(c Cond, d, n, m Reg) { a.emit(0x9a800000 | uint32(c)<<12 | rdnm(d, n, m)) }

// SetIf is described at Select.
func (a *Asm) SetIf(c Cond, d Reg) { a.emit(0x9a800400 | uint32(c^1)<<12 | rdnm(d, ZR, ZR)) }

// LowestBit sets d to the number of the lowest bit set in the lower 32 of s (RBIT, CLZ).
func (a *Asm) LowestBit(d, s Reg) {
	a.emit(0x5ac00000 | rdn(d, s))
	a.emit(0x5ac01000 | rdn(d, d))
}

// Jump jumps to a label. JumpIf jumps if the condition holds, JumpZero and JumpNotZero if a register is 0 or not,
// JumpBit if a bit of it is set.
func (a *Asm) Jump(l *Label) { a.refer(0x14000000, l) }

// JumpIf is described at Jump.
func (a *Asm) JumpIf(c Cond, l *Label) { a.refer(0x54000000|uint32(c), l) }

// JumpZero is described at Jump.
func (a *Asm) JumpZero(wide bool, r Reg, l *Label) { a.refer(0x34000000|sf(wide)|uint32(r), l) }

// JumpNotZero is described at Jump.
func (a *Asm) JumpNotZero(wide bool, r Reg, l *Label) { a.refer(0x35000000|sf(wide)|uint32(r), l) }

// JumpBit is described at Jump.
func (a *Asm) JumpBit(r Reg, bit uint32, l *Label) {
	a.refer(0x37000000|bit>>5<<31|bit&31<<19|uint32(r), l)
}

// Return is RET.
func (a *Asm) Return() { a.emit(0xd65f03c0) }

// Address sets a register to the address of a label, if the code begins at a page boundary (of 4096 bytes; ADRP, ADD).
func (a *Asm) Address(d Reg, l *Label) {
	at := len(a.Code)
	a.emit(0x90000000 | uint32(d))
	a.emit(0x91000000 | rdn(d, d))
	if l.at != 0 {
		a.patch(at, l)
	} else {
		l.uses = append(l.uses, at)
	}
}

// offset returns the address fields for a place. For an offset that does not fit (a multiple of size below 4096 times
// size) it first appends instructions that compute the address.
func (a *Asm) offset(m Mem, size int32) uint32 {
	if m.Disp < 0 || m.Disp%size != 0 || m.Disp/size > 4095 {
		low := int64(0)
		if m.Disp >= 0 && m.Disp&0xfff%size == 0 && m.Disp>>24 == 0 {
			low = int64(m.Disp & 0xfff)
		}
		a.AddI(Scratch, m.Base, int64(m.Disp)-low)
		m = Mem{Scratch, int32(low)}
	}
	return uint32(m.Disp/size)<<10 | rdn(0, m.Base)
}

// access returns the bits that select the kind of a load or store; see Load.
func access(size int, signed, store bool) uint32 {
	word := uint32(bits.TrailingZeros(uint(size))) << 30
	switch {
	case store:
	case !signed:
		word |= 1 << 22
	case size == 4:
		word |= 2 << 22
	default:
		word |= 3 << 22
	}
	return word
}

// Load loads the size bytes at m into a register. If signed is set it sign-extends 1 or 2 bytes to 32 bits, and 4 bytes
// to 64 bits. Otherwise it zero-extends.
func (a *Asm) Load(size int, signed bool, d Reg, m Mem) {
	a.emitAt(access(size, signed, false)|0x39000000|uint32(d), m, int32(size))
}

// emitAt appends a load or store, preceded by the instructions that its address needs.
func (a *Asm) emitAt(word uint32, m Mem, size int32) { a.emit(word | a.offset(m, size)) }

// Store writes 4 or 8 bytes of a register. StoreLow writes 1, 2, 4 or 8.
func (a *Asm) Store(wide bool, m Mem, s Reg) {
	size := 4
	if wide {
		size = 8
	}
	a.StoreLow(size, m, s)
}

// StoreLow is described at Store.
func (a *Asm) StoreLow(size int, m Mem, s Reg) {
	a.emitAt(access(size, false, true)|0x39000000|uint32(s), m, int32(size))
}

// LoadIndex and StoreIndex are Load and StoreLow at base plus the sign- or zero-extended lower 32 bits of a register,
// times the size if scaled is set.
func (a *Asm) LoadIndex(size int, signed bool, d, base, index Reg, signedIndex, scaled bool) {
	a.emit(access(size, signed, false) | atIndex(base, index, signedIndex, scaled) | uint32(d))
}

// StoreIndex is described at LoadIndex.
func (a *Asm) StoreIndex(size int, s, base, index Reg, signedIndex, scaled bool) {
	a.emit(access(size, false, true) | atIndex(base, index, signedIndex, scaled) | uint32(s))
}

func atIndex(base, index Reg, signedIndex, scaled bool) uint32 {
	word := 0x38200800 | extend(signedIndex) | rdnm(0, base, index)
	if scaled {
		word |= 1 << 12
	}
	return word
}

// LoadPair loads 16 bytes at m into two registers. The offset is a multiple of 8 below 512.
func (a *Asm) LoadPair(d1, d2 Reg, m Mem) {
	a.emit(0xa9400000 | uint32(m.Disp/8)<<15 | uint32(d2)<<10 | rdn(d1, m.Base))
}

// Prefetch prefetches a line of memory (PRFM PLDL1KEEP).
func (a *Asm) Prefetch(m Mem) { a.emitAt(0xf9800000, m, 8) }

// SetFPCR writes the register that holds the rounding mode.
func (a *Asm) SetFPCR(s Reg) { a.emit(0xd51b4400 | uint32(s)) }
