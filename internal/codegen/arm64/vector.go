package arm64

import "math/bits"

// VOp is an instruction on vector registers, for lanes of a given width: see W.
type VOp struct {
	name string
	bits uint32
	form form
	w    uint8 // width of a lane in bits
}

// form is the operands of an instruction and the encoding of the lane width.
type form uint8

const (
	three      form = iota // d, n and m
	two                    // d and n
	byteOps                // d, n and m without regard to lanes
	bytes1                 // d and n, lanes of 8 bits
	longer                 // d, n and m; d has lanes of twice the width; sources are the lower halves, or, with all, the upper ones
	longer1                // d and n, as longer
	shorter                // d and n; d has lanes of half the width w of those of n
	left                   // d, n and a number of bits to shift left
	right                  // d, n and a number of bits to shift right
	leftLong               // longer1 with a number of bits
	rightShort             // shorter with a number of bits
	across                 // the lanes of n together
	zero                   // compares n with 0
)

// floats says that the lane width is encoded in one bit.
const floats = 1 << 7

// The vector instructions. Those on whole registers have no lanes. For the others W selects the lane width.
var (
	VADD   = VOp{"add", 0x0e208400, three, 32}
	VSUB   = VOp{"sub", 0x2e208400, three, 32}
	VMUL   = VOp{"mul", 0x0e209c00, three, 32}
	VMLA   = VOp{"mla", 0x0e209400, three, 32}
	VMLS   = VOp{"mls", 0x2e209400, three, 32}
	VCMGT  = VOp{"cmgt", 0x0e203400, three, 32}
	VCMGE  = VOp{"cmge", 0x0e203c00, three, 32}
	VCMHI  = VOp{"cmhi", 0x2e203400, three, 32}
	VCMHS  = VOp{"cmhs", 0x2e203c00, three, 32}
	VCMEQ  = VOp{"cmeq", 0x2e208c00, three, 32}
	VCMTST = VOp{"cmtst", 0x0e208c00, three, 32}
	VSSHL  = VOp{"sshl", 0x0e204400, three, 32}
	VUSHL  = VOp{"ushl", 0x2e204400, three, 32}
	VSMAX  = VOp{"smax", 0x0e206400, three, 32}
	VSMIN  = VOp{"smin", 0x0e206c00, three, 32}
	VUMAX  = VOp{"umax", 0x2e206400, three, 32}
	VUMIN  = VOp{"umin", 0x2e206c00, three, 32}
	VUZP1  = VOp{"uzp1", 0x0e001800, three, 32}
	VUZP2  = VOp{"uzp2", 0x0e005800, three, 32}
	VZIP1  = VOp{"zip1", 0x0e003800, three, 32}

	VAND = VOp{"and", 0x0e201c00, byteOps, 8}
	VBIC = VOp{"bic", 0x0e601c00, byteOps, 8}
	VORR = VOp{"orr", 0x0ea01c00, byteOps, 8}
	VORN = VOp{"orn", 0x0ee01c00, byteOps, 8}
	VEOR = VOp{"eor", 0x2e201c00, byteOps, 8}
	VBSL = VOp{"bsl", 0x2e601c00, byteOps, 8} // d = bits of n where d has ones, of m elsewhere
	VBIT = VOp{"bit", 0x2ea01c00, byteOps, 8} // d = bits of n where m has ones
	VBIF = VOp{"bif", 0x2ee01c00, byteOps, 8} // d = bits of n where m has zeros

	VFADD  = VOp{"fadd", 0x0e20d400, three | floats, 32}
	VFSUB  = VOp{"fsub", 0x0ea0d400, three | floats, 32}
	VFMUL  = VOp{"fmul", 0x2e20dc00, three | floats, 32}
	VFDIV  = VOp{"fdiv", 0x2e20fc00, three | floats, 32}
	VFMLA  = VOp{"fmla", 0x0e20cc00, three | floats, 32}
	VFMAX  = VOp{"fmax", 0x0e20f400, three | floats, 32}
	VFMIN  = VOp{"fmin", 0x0ea0f400, three | floats, 32}
	VFCMEQ = VOp{"fcmeq", 0x0e20e400, three | floats, 32}
	VFCMGE = VOp{"fcmge", 0x2e20e400, three | floats, 32}
	VFCMGT = VOp{"fcmgt", 0x2ea0e400, three | floats, 32}

	VABS    = VOp{"abs", 0x0e20b800, two, 32}
	VNEG    = VOp{"neg", 0x2e20b800, two, 32}
	VCLZ    = VOp{"clz", 0x2e204800, two, 32}
	VNOT    = VOp{"not", 0x2e205800, bytes1, 8}
	VCNT    = VOp{"cnt", 0x0e205800, bytes1, 8}
	VRBIT   = VOp{"rbit", 0x2e605800, bytes1, 8}
	VREV32  = VOp{"rev32", 0x2e200800, bytes1, 8} // the bytes of each 32 bits
	VCMLT0  = VOp{"cmlt", 0x0e20a800, zero, 32}
	VCMEQ0  = VOp{"cmeq", 0x0e209800, zero, 32}
	VFCMGT0 = VOp{"fcmgt", 0x0ea0c800, zero | floats, 32}
	VFABS   = VOp{"fabs", 0x0ea0f800, two | floats, 32}
	VFNEG   = VOp{"fneg", 0x2ea0f800, two | floats, 32}
	VFSQRT  = VOp{"fsqrt", 0x2ea1f800, two | floats, 32}
	VFRINTN = VOp{"frintn", 0x0e218800, two | floats, 32}
	VFRINTM = VOp{"frintm", 0x0e219800, two | floats, 32}
	VFRINTP = VOp{"frintp", 0x0ea18800, two | floats, 32}
	VFRINTZ = VOp{"frintz", 0x0ea19800, two | floats, 32}
	VFCVTNS = VOp{"fcvtns", 0x0e21a800, two | floats, 32}
	VFCVTMS = VOp{"fcvtms", 0x0e21b800, two | floats, 32}
	VFCVTPS = VOp{"fcvtps", 0x0ea1a800, two | floats, 32}
	VFCVTZS = VOp{"fcvtzs", 0x0ea1b800, two | floats, 32}
	VFCVTZU = VOp{"fcvtzu", 0x2ea1b800, two | floats, 32}
	VSCVTF  = VOp{"scvtf", 0x0e21d800, two | floats, 32}
	VUCVTF  = VOp{"ucvtf", 0x2e21d800, two | floats, 32}

	VSMULL  = VOp{"smull", 0x0e20c000, longer, 32}
	VUMULL  = VOp{"umull", 0x2e20c000, longer, 32}
	VUMLAL  = VOp{"umlal", 0x2e208000, longer, 32}
	VUADDLP = VOp{"uaddlp", 0x2e202800, longer1, 8} // sums of two lanes
	VXTN    = VOp{"xtn", 0x0e212800, shorter, 64}
	VSQXTN  = VOp{"sqxtn", 0x0e214800, shorter, 64}
	VUQXTN  = VOp{"uqxtn", 0x2e214800, shorter, 64}
	VFCVTL  = VOp{"fcvtl", 0x0e617800, longer1 | floats, 32}
	VFCVTN  = VOp{"fcvtn", 0x0e616800, shorter | floats, 64}

	VSHL   = VOp{"shl", 0x0f005400, left, 32}
	VUSHR  = VOp{"ushr", 0x2f000400, right, 32}
	VSSHR  = VOp{"sshr", 0x0f000400, right, 32}
	VSRI   = VOp{"sri", 0x2f004400, right, 32} // the bits shifted in are those of d
	VSSHLL = VOp{"sshll", 0x0f00a400, leftLong, 32}
	VUSHLL = VOp{"ushll", 0x2f00a400, leftLong, 32}
	VSHRN  = VOp{"shrn", 0x0f008400, rightShort, 64}

	VADDV  = VOp{"addv", 0x0e31b800, across, 32}
	VUMINV = VOp{"uminv", 0x2e31a800, across, 32}
)

// W returns the instruction for lanes of w bits, and the instruction itself if it does not depend on the width.
func (o VOp) W(w int) VOp {
	if o.form != byteOps && o.form != bytes1 {
		o.w = uint8(w)
	}
	return o
}

func q(all bool) uint32 {
	if all {
		return 1 << 30
	}
	return 0
}

// size returns the bits that encode the lane width.
func (o *VOp) size() uint32 {
	log := uint32(bits.TrailingZeros8(o.w) - 3)
	switch o.form {
	case three | floats, two | floats, zero | floats:
		return (log - 2) << 22
	case three, two, longer, longer1, across, zero:
		return log << 22
	case shorter:
		return (log - 1) << 22
	}
	return 0
}

func vdn(d, n Vec) uint32 { return uint32(n)<<5 | uint32(d) }

// V3 encodes an instruction with two sources. It operates on 128 bits if all is set, and else on 64.
func (a *Asm) V3(o VOp, all bool, d, n, m Vec) {
	a.emit(o.bits | o.size() | q(all) | uint32(m)<<16 | vdn(d, n))
}

// V2 encodes an instruction with one source.
func (a *Asm) V2(o VOp, all bool, d, n Vec) { a.emit(o.bits | o.size() | q(all) | vdn(d, n)) }

// VShiftI shifts by a number.
func (a *Asm) VShiftI(o VOp, all bool, d, s Vec, n int) {
	w := int(o.w)
	switch o.form {
	case right:
		n = 2*w - n
	case rightShort:
		n = w - n
	default:
		n += w
	}
	a.emit(o.bits | q(all) | uint32(n)<<16 | vdn(d, s))
}

// VMove copies a register.
func (a *Asm) VMove(all bool, d, s Vec) { a.V3(VORR, all, d, s, s) }

// VLoad and VStore move 16 bytes, or 8. VLoad clears the rest of the register.
func (a *Asm) VLoad(all bool, d Vec, m Mem) { a.vectorAt(all, 1, d, m) }

// VStore is described at VLoad.
func (a *Asm) VStore(all bool, m Mem, s Vec) { a.vectorAt(all, 0, s, m) }

func (a *Asm) vectorAt(all bool, load uint32, v Vec, m Mem) {
	word, size := uint32(0xfd000000), int32(8)
	if all {
		word, size = 0x3d800000, 16
	}
	a.emitAt(word|load<<22|uint32(v), m, size)
}

// VLoadNext loads 2, 4, 8 or 16 bytes and advances the address by their number.
func (a *Asm) VLoadNext(size int, d Vec, base Reg) {
	word := uint32(bits.TrailingZeros(uint(size)))<<30 | 0x3c400400
	if size == 16 {
		word = 0x3cc00400
	}
	a.emit(word | uint32(size)<<12 | uint32(base)<<5 | uint32(d))
}

// VLoadLane loads one lane of 32 bits, or of 64, of a register.
func (a *Asm) VLoadLane(wide bool, d Vec, lane int, base Reg) {
	i := uint32(lane)
	word := 0x0d408000 | i>>1<<30 | i&1<<12
	if wide {
		word = 0x0d408400 | i<<30
	}
	a.emit(word | uint32(base)<<5 | uint32(d))
}

// VLoadAll loads the value at an address into every lane of 32 bits, or of 64 (LD1R).
func (a *Asm) VLoadAll(wide, all bool, d Vec, base Reg) {
	word := uint32(0x0d40c800)
	if wide {
		word = 0x0d40cc00
	}
	a.emit(word | q(all) | uint32(base)<<5 | uint32(d))
}

// VFill sets every lane of 32 bits, or of 64, to the value of a general register.
func (a *Asm) VFill(wide, all bool, d Vec, s Reg) {
	a.emit(0x0e000c00 | laneField(wide, 0) | q(all) | uint32(s)<<5 | uint32(d))
}

// VLane sets a general register to a lane of 32 bits, or of 64 (UMOV).
func (a *Asm) VLane(wide bool, d Reg, s Vec, lane int) {
	a.emit(0x0e003c00 | laneField(wide, lane) | q(wide) | uint32(s)<<5 | uint32(d))
}

// laneField encodes the number and width of a lane.
func laneField(wide bool, lane int) uint32 {
	if wide {
		return (uint32(lane)<<4 | 8) << 16
	}
	return (uint32(lane)<<3 | 4) << 16
}

// VLookUp sets each byte of d to the byte of n whose number is in m. A number out of range gives 0 (TBL) or, with keep,
// leaves the byte of d (TBX).
func (a *Asm) VLookUp(keep, all bool, d, n, m Vec) {
	word := uint32(0x0e000000)
	if keep {
		word = 0x0e001000
	}
	a.emit(word | q(all) | uint32(m)<<16 | vdn(d, n))
}

// VSumDoubles sets the lower lane of d to the sum of both lanes of s in double precision (FADDP). VCompareDoubles sets
// the flags by the lower lanes of two registers (FCMP).
func (a *Asm) VSumDoubles(d, s Vec) { a.emit(0x7e70d800 | vdn(d, s)) }

// VCompareDoubles is described at VSumDoubles.
func (a *Asm) VCompareDoubles(n, m Vec) { a.emit(0x1e602000 | uint32(m)<<16 | vdn(0, n)) }

// VSingle sets the lower lane of 32 bits of d to a 64-bit integer rounded to single precision (SCVTF, UCVTF).
func (a *Asm) VSingle(signed bool, d Vec, s Reg) {
	word := uint32(0x9e230000)
	if signed {
		word = 0x9e220000
	}
	a.emit(word | uint32(s)<<5 | uint32(d))
}
