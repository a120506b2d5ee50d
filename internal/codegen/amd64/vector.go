package amd64

// VOp is an instruction on vector registers.
type VOp struct {
	name      string
	pp, group byte // the prefix (0: none, 1: 66, 2: F3, 3: F2) and the opcode map (1: 0F, 2: 0F38, 3: 0F3A)
	wide      bool // VEX.W
	opcode    byte
	form      form
	field     byte // the register field of shifts by a number
}

// form is the operands of an instruction.
type form uint8

const (
	three    form = iota // d, s1 and s2, which may be in memory
	two                  // d and s, which may be in memory
	counted              // d, s1 and the lower half of an X register
	byImm                // d, s and a number
	fused                // d = d*s1 + s2 in the order of its name
	masked               // d, the mask of the lanes moved, and memory
	gathered             // d, the mask of the lanes moved, and memory at a register plus the lanes of another
)

// The vector instructions.
var (
	VPADDD       = VOp{"VPADDD", 1, 1, false, 0xfe, three, 0}
	VPADDQ       = VOp{"VPADDQ", 1, 1, false, 0xd4, three, 0}
	VPSUBD       = VOp{"VPSUBD", 1, 1, false, 0xfa, three, 0}
	VPSUBQ       = VOp{"VPSUBQ", 1, 1, false, 0xfb, three, 0}
	VPMULLD      = VOp{"VPMULLD", 1, 2, false, 0x40, three, 0}
	VPMULUDQ     = VOp{"VPMULUDQ", 1, 1, false, 0xf4, three, 0}
	VPMULDQ      = VOp{"VPMULDQ", 1, 2, false, 0x28, three, 0}
	VPAND        = VOp{"VPAND", 1, 1, false, 0xdb, three, 0}
	VPANDN       = VOp{"VPANDN", 1, 1, false, 0xdf, three, 0}
	VPOR         = VOp{"VPOR", 1, 1, false, 0xeb, three, 0}
	VPXOR        = VOp{"VPXOR", 1, 1, false, 0xef, three, 0}
	VPSHUFB      = VOp{"VPSHUFB", 1, 2, false, 0x00, three, 0}
	VPUNPCKLDQ   = VOp{"VPUNPCKLDQ", 1, 1, false, 0x62, three, 0}
	VPUNPCKLQDQ  = VOp{"VPUNPCKLQDQ", 1, 1, false, 0x6c, three, 0}
	VCVTTPS2DQ   = VOp{"VCVTTPS2DQ", 2, 1, false, 0x5b, two, 0}
	VPMINSD      = VOp{"VPMINSD", 1, 2, false, 0x39, three, 0}
	VPMINUD      = VOp{"VPMINUD", 1, 2, false, 0x3b, three, 0}
	VPMAXSD      = VOp{"VPMAXSD", 1, 2, false, 0x3d, three, 0}
	VPMAXUD      = VOp{"VPMAXUD", 1, 2, false, 0x3f, three, 0}
	VPABSD       = VOp{"VPABSD", 1, 2, false, 0x1e, two, 0}
	VPCMPEQD     = VOp{"VPCMPEQD", 1, 1, false, 0x76, three, 0}
	VPCMPEQQ     = VOp{"VPCMPEQQ", 1, 2, false, 0x29, three, 0}
	VPCMPGTD     = VOp{"VPCMPGTD", 1, 1, false, 0x66, three, 0}
	VPCMPGTQ     = VOp{"VPCMPGTQ", 1, 2, false, 0x37, three, 0}
	VPSLLVD      = VOp{"VPSLLVD", 1, 2, false, 0x47, three, 0}
	VPSRLVD      = VOp{"VPSRLVD", 1, 2, false, 0x45, three, 0}
	VPSRAVD      = VOp{"VPSRAVD", 1, 2, false, 0x46, three, 0}
	VPSLLD       = VOp{"VPSLLD", 1, 1, false, 0xf2, counted, 0}
	VPSLLQ       = VOp{"VPSLLQ", 1, 1, false, 0xf3, counted, 0}
	VPSRLD       = VOp{"VPSRLD", 1, 1, false, 0xd2, counted, 0}
	VPSRLQ       = VOp{"VPSRLQ", 1, 1, false, 0xd3, counted, 0}
	VPSRAD       = VOp{"VPSRAD", 1, 1, false, 0xe2, counted, 0}
	VPSLLDI      = VOp{"VPSLLD", 1, 1, false, 0x72, byImm, 6}
	VPSLLQI      = VOp{"VPSLLQ", 1, 1, false, 0x73, byImm, 6}
	VPSRLDI      = VOp{"VPSRLD", 1, 1, false, 0x72, byImm, 2}
	VPSRLQI      = VOp{"VPSRLQ", 1, 1, false, 0x73, byImm, 2}
	VPSRADI      = VOp{"VPSRAD", 1, 1, false, 0x72, byImm, 4}
	VADDPS       = VOp{"VADDPS", 0, 1, false, 0x58, three, 0}
	VADDPD       = VOp{"VADDPD", 1, 1, false, 0x58, three, 0}
	VSUBPS       = VOp{"VSUBPS", 0, 1, false, 0x5c, three, 0}
	VSUBPD       = VOp{"VSUBPD", 1, 1, false, 0x5c, three, 0}
	VMULPS       = VOp{"VMULPS", 0, 1, false, 0x59, three, 0}
	VMULPD       = VOp{"VMULPD", 1, 1, false, 0x59, three, 0}
	VDIVPS       = VOp{"VDIVPS", 0, 1, false, 0x5e, three, 0}
	VDIVPD       = VOp{"VDIVPD", 1, 1, false, 0x5e, three, 0}
	VMINPS       = VOp{"VMINPS", 0, 1, false, 0x5d, three, 0}
	VMAXPS       = VOp{"VMAXPS", 0, 1, false, 0x5f, three, 0}
	VSQRTPS      = VOp{"VSQRTPS", 0, 1, false, 0x51, two, 0}
	VFMADD213PS  = VOp{"VFMADD213PS", 1, 2, false, 0xa8, fused, 0}
	VFMADD213PD  = VOp{"VFMADD213PD", 1, 2, true, 0xa8, fused, 0}
	VCVTDQ2PS    = VOp{"VCVTDQ2PS", 0, 1, false, 0x5b, two, 0}
	VPMOVSXBD    = VOp{"VPMOVSXBD", 1, 2, false, 0x21, two, 0}
	VPMOVSXWD    = VOp{"VPMOVSXWD", 1, 2, false, 0x23, two, 0}
	VPMOVZXBD    = VOp{"VPMOVZXBD", 1, 2, false, 0x31, two, 0}
	VPMOVZXWD    = VOp{"VPMOVZXWD", 1, 2, false, 0x33, two, 0}
	VPMOVSXDQ    = VOp{"VPMOVSXDQ", 1, 2, false, 0x25, two, 0}
	VPMOVZXDQ    = VOp{"VPMOVZXDQ", 1, 2, false, 0x35, two, 0}
	VPBROADCASTD = VOp{"VPBROADCASTD", 1, 2, false, 0x58, two, 0}
	VPBROADCASTQ = VOp{"VPBROADCASTQ", 1, 2, false, 0x59, two, 0}
	VMOVDQU      = VOp{"VMOVDQU", 2, 1, false, 0x6f, two, 0}
	VCMPPS       = VOp{"VCMPPS", 0, 1, false, 0xc2, three, 0}
	VCMPPD       = VOp{"VCMPPD", 1, 1, false, 0xc2, three, 0}
	VSHUFPS      = VOp{"VSHUFPS", 0, 1, false, 0xc6, three, 0}
	VPADDB       = VOp{"VPADDB", 1, 1, false, 0xfc, three, 0}
	VPCMPGTB     = VOp{"VPCMPGTB", 1, 1, false, 0x64, three, 0}
	VPSADBW      = VOp{"VPSADBW", 1, 1, false, 0xf6, three, 0}
	VPMADDUBSW   = VOp{"VPMADDUBSW", 1, 2, false, 0x04, three, 0}
	VPMADDWD     = VOp{"VPMADDWD", 1, 1, false, 0xf5, three, 0}
	VPBLENDD     = VOp{"VPBLENDD", 1, 3, false, 0x02, three, 0}
	VPSLLVQ      = VOp{"VPSLLVQ", 1, 2, true, 0x47, three, 0}
	VPSRLVQ      = VOp{"VPSRLVQ", 1, 2, true, 0x45, three, 0}
	VMINPD       = VOp{"VMINPD", 1, 1, false, 0x5d, three, 0}
	VMAXPD       = VOp{"VMAXPD", 1, 1, false, 0x5f, three, 0}
	VSQRTPD      = VOp{"VSQRTPD", 1, 1, false, 0x51, two, 0}
	VROUNDPS     = VOp{"VROUNDPS", 1, 3, false, 0x08, two, 0}
	VROUNDPD     = VOp{"VROUNDPD", 1, 3, false, 0x09, two, 0}
	VCVTPS2PD    = VOp{"VCVTPS2PD", 0, 1, false, 0x5a, two, 0}
	VCVTDQ2PD    = VOp{"VCVTDQ2PD", 2, 1, false, 0xe6, two, 0}
	VCVTPD2PS    = VOp{"VCVTPD2PS", 1, 1, false, 0x5a, two, 0}
	VCVTPD2DQ    = VOp{"VCVTPD2DQ", 3, 1, false, 0xe6, two, 0}
	VCVTTPD2DQ   = VOp{"VCVTTPD2DQ", 1, 1, false, 0xe6, two, 0}
	VPMASKMOVD   = VOp{"VPMASKMOVD", 1, 2, false, 0x8c, masked, 0}
	VPMASKMOVQ   = VOp{"VPMASKMOVQ", 1, 2, true, 0x8c, masked, 0}
	VPGATHERDD   = VOp{"VPGATHERDD", 1, 2, false, 0x90, gathered, 0}
	VPGATHERDQ   = VOp{"VPGATHERDQ", 1, 2, true, 0x90, gathered, 0}
	VPGATHERQD   = VOp{"VPGATHERQD", 1, 2, false, 0x91, gathered, 0}
	VPGATHERQQ   = VOp{"VPGATHERQQ", 1, 2, true, 0x91, gathered, 0}
)

// V3 and V3M encode instructions with two sources, the second a register or in memory. They operate on 256 bits if all
// is set, and else on 128.
func (a *Asm) V3(o VOp, all bool, d, s1, s2 Vec) {
	a.vexReg(&o, all, uint8(d), uint8(s1), uint8(s2))
}

// V3M is described at V3.
func (a *Asm) V3M(o VOp, all bool, d, s1 Vec, m Mem) { a.vexMem(&o, all, uint8(d), uint8(s1), m) }

// V3I is V3 with an additional number.
func (a *Asm) V3I(o VOp, all bool, d, s1, s2 Vec, imm byte) {
	a.V3(o, all, d, s1, s2)
	a.bytes(imm)
}

// V2 and V2M encode instructions with one source.
func (a *Asm) V2(o VOp, all bool, d, s Vec) {
	if o.opcode == VMOVDQU.opcode && o.pp == VMOVDQU.pp {
		o.opcode, d, s = 0x7f, s, d // as Go's assembler does
	}
	a.vexReg(&o, all, uint8(d), 0, uint8(s))
}

// V2M is described at V2.
func (a *Asm) V2M(o VOp, all bool, d Vec, m Mem) { a.vexMem(&o, all, uint8(d), 0, m) }

// V2I is V2 with an additional number.
func (a *Asm) V2I(o VOp, all bool, d, s Vec, imm byte) {
	a.V2(o, all, d, s)
	a.bytes(imm)
}

// VShiftI shifts by a number.
func (a *Asm) VShiftI(o VOp, all bool, d, s Vec, n byte) {
	a.vexReg(&o, all, o.field, uint8(d), uint8(s))
	a.bytes(n)
}

// VStoreIf stores the lanes of s whose mask is set. o is the instruction that loads them (VPMASKMOVD, VPMASKMOVQ).
func (a *Asm) VStoreIf(o VOp, all bool, m Mem, mask, s Vec) {
	o.opcode += 2
	a.vexMem(&o, all, uint8(s), uint8(mask), m)
}

// VGather loads the lanes of d whose highest bits in the mask are set, each from base plus its lane of offsets, and
// clears the mask.
func (a *Asm) VGather(o VOp, all bool, d, mask Vec, base Reg, offsets Vec) {
	if base&7 == BP {
		panic("BUG: a base of which there is no form without a displacement")
	}
	a.vex(o.pp, o.group, o.wide, all, high(uint8(d)), high(uint8(offsets)), high(uint8(base)), uint8(mask))
	a.bytes(o.opcode, modrm(0, byte(d), byte(SP)), modrm(0, byte(offsets), byte(base)))
}

// VStore writes a register to memory (VMOVDQU).
func (a *Asm) VStore(all bool, m Mem, s Vec) {
	o := VMOVDQU
	o.opcode = 0x7f
	a.vexMem(&o, all, uint8(s), 0, m)
}

// VStoreLow writes 8 bytes of a register (VMOVQ).
func (a *Asm) VStoreLow(m Mem, s Vec) {
	a.vexMem(&VOp{pp: 1, group: 1, wide: true, opcode: 0x7e}, false, uint8(s), 0, m)
}

// VLoadLow loads 4 bytes, or 8 if wide is set, and clears the rest of the register (VMOVD, VMOVQ).
func (a *Asm) VLoadLow(wide bool, d Vec, m Mem) {
	a.vexMem(&VOp{pp: 1, group: 1, wide: wide, opcode: 0x6e}, false, uint8(d), 0, m)
}

// VInsert sets d to the lower half of s with lane i of 32 bits replaced by 4 bytes of memory (VPINSRD). VInsertHigh
// replaces the upper lane of 64 bits by 8 bytes (VMOVHPS).
func (a *Asm) VInsert(d, s Vec, m Mem, i byte) {
	a.vexMem(&VOp{pp: 1, group: 3, opcode: 0x22}, false, uint8(d), uint8(s), m)
	a.bytes(i)
}

// VInsertHigh is described at VInsert.
func (a *Asm) VInsertHigh(d, s Vec, m Mem) {
	a.vexMem(&VOp{group: 1, opcode: 0x16}, false, uint8(d), uint8(s), m)
}

// VJoin sets d to the lower halves of two registers (VINSERTI128).
func (a *Asm) VJoin(d, low, high Vec) {
	a.vexReg(&VOp{pp: 1, group: 3, opcode: 0x38}, true, uint8(d), uint8(low), uint8(high))
	a.bytes(1)
}

// VBlend sets each byte of d to that of s2 where the highest bit of the mask's byte is set, and to that of s1 elsewhere
// (VPBLENDVB).
func (a *Asm) VBlend(all bool, d, s1, s2, mask Vec) {
	a.vexReg(&VOp{pp: 1, group: 3, opcode: 0x4c}, all, uint8(d), uint8(s1), uint8(s2))
	a.bytes(byte(mask) << 4)
}

// VSigns sets d to the highest bits of the lanes of 32 bits, or of 64 (VMOVMSKPS, VMOVMSKPD).
func (a *Asm) VSigns(wide bool, d Reg, s Vec) {
	a.vexReg(&VOp{pp: byte(one(wide)), group: 1, opcode: 0x50}, true, uint8(d), 0, uint8(s))
}

// VUpper sets d to the upper half of s (VEXTRACTI128).
func (a *Asm) VUpper(d, s Vec) {
	a.vexReg(&VOp{pp: 1, group: 3, opcode: 0x39}, true, uint8(s), 0, uint8(d))
	a.bytes(1)
}

// VRounding sets the rounding mode (VLDMXCSR).
func (a *Asm) VRounding(m Mem) { a.vexMem(&VOp{group: 1, opcode: 0xae}, false, 2, 0, m) }

// VZeroUpper is VZEROUPPER.
func (a *Asm) VZeroUpper() { a.bytes(0xc5, 0xf8, 0x77) }

func (a *Asm) vexReg(o *VOp, all bool, reg, vvvv, rm uint8) {
	a.vex(o.pp, o.group, o.wide, all, high(reg), false, high(rm), vvvv)
	a.bytes(o.opcode, modrm(3, reg, rm))
}

func (a *Asm) vexMem(o *VOp, all bool, reg, vvvv uint8, m Mem) {
	a.vex(o.pp, o.group, o.wide, all, high(reg), m.highIndex(), high(uint8(m.Base)), vvvv)
	a.bytes(o.opcode)
	a.place(reg, &m)
}

// vex appends a VEX prefix, of two bytes if they suffice.
func (a *Asm) vex(pp, group byte, wide, all bool, reg, index, base bool, vvvv uint8) {
	last := ^vvvv&15<<3 | bit(all, 2) | pp
	if !index && !base && !wide && group == 1 {
		a.bytes(0xc5, bit(!reg, 7)|last)
		return
	}
	a.bytes(0xc4, bit(!reg, 7)|bit(!index, 6)|bit(!base, 5)|group, bit(wide, 7)|last)
}
