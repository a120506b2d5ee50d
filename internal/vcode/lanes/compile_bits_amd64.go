package lanes

import (
	"encoding/binary"

	"fencepost.dev/fencepost/internal/codegen/amd64"
)

// Integer operations that take more than one instruction.

func bitsCode() {
	long64()
	for _, c := range []struct {
		op   amd64.VOp
		v, s Code
	}{{amd64.VPMULUDQ, OpMulHiU32, OpMulHiU32S}, {amd64.VPMULDQ, OpMulHiS32, OpMulHiS32S}} {
		do(func(t *translator, o *Op) { // the even lanes, then the odd ones
			a, b, all := t.arg(0), t.arg(1), t.all(32)
			d, x, y := t.out(o), t.take(), t.take()
			t.V3(c.op, all, d, a, b)
			t.VShiftI(amd64.VPSRLQI, all, x, a, 32)
			t.VShiftI(amd64.VPSRLQI, all, y, b, 32)
			t.V3(c.op, all, x, x, y)
			t.VShiftI(amd64.VPSRLQI, all, d, d, 32)
			t.V3I(amd64.VPBLENDD, all, d, d, x, 0xaa)
		}, c.v, c.s)
	}
	for w, c := range map[int]Code{32: OpEQAffine32, 64: OpEQAffine64} {
		do(func(t *translator, o *Op) {
			a, base, d := t.arg(0), t.arg(1), t.take()
			t.addLanes(w, d, base, o.Imm)
			t.V3(equal(w), t.all(w), d, d, a)
			t.compared(w, d)
		}, c)
	}
	do((*translator).count, OpPopc32, OpPopc64)
	do(func(t *translator, o *Op) {
		a, nibble, all := t.arg(0), t.num(32, 0x0f0f0f0f), t.all(32)
		d, x := t.out(o), t.take()
		t.V3(amd64.VPAND, all, x, a, nibble)
		t.VShiftI(amd64.VPSRLDI, all, d, a, 4)
		t.V3(amd64.VPAND, all, d, d, nibble)
		t.lookUp(x, x, reversedNibble(4))
		t.lookUp(d, d, reversedNibble(0))
		t.V3(amd64.VPOR, all, d, d, x)
		t.V3M(amd64.VPSHUFB, all, d, d, t.repeated(0x0405060700010203, 0x0c0d0e0f08090a0b))
	}, OpBrev32)
	do((*translator).permute, OpPrmt32S)
}

// long64 registers code for operations on 64 bits that AVX2 has only on 32.
func long64() {
	for _, c := range []struct {
		unsigned, most bool
		v, s           Code
	}{{false, false, OpMinS64, OpMinS64S}, {true, false, OpMinU64, OpMinU64S}, {false, true, OpMaxS64, OpMaxS64S}, {true, true, OpMaxU64, OpMaxU64S}} {
		do(func(t *translator, o *Op) {
			a, b := t.arg(0), t.arg(1)
			d, x := t.out(o), t.take()
			if c.unsigned {
				top, y := t.num(64, 1<<63), t.take()
				t.V3(amd64.VPXOR, true, x, a, top)
				t.V3(amd64.VPXOR, true, y, b, top)
				t.V3(amd64.VPCMPGTQ, true, x, x, y)
			} else {
				t.V3(amd64.VPCMPGTQ, true, x, a, b)
			}
			if c.most {
				a, b = b, a
			}
			t.VBlend(true, d, a, b, x)
		}, c.v, c.s)
	}
	do(func(t *translator, o *Op) {
		a := t.arg(0)
		d, x := t.out(o), t.take()
		t.V3(amd64.VPXOR, true, x, x, x)
		t.V3(amd64.VPCMPGTQ, true, x, x, a)
		t.V3(amd64.VPXOR, true, d, a, x)
		t.V3(amd64.VPSUBQ, true, d, d, x)
	}, OpAbsS64)
	each := func(c Code, signed bool, op amd64.VOp) {
		do(func(t *translator, o *Op) {
			a, n := t.arg(0), t.arg(1)
			d, x := t.out(o), t.take()
			t.V2(amd64.VPMOVZXDQ, true, x, n)
			t.shift64(signed, d, a, func(d, a amd64.Vec) { t.V3(op, true, d, a, x) })
		}, c)
	}
	each(OpShl64, false, amd64.VPSLLVQ)
	each(OpShrU64, false, amd64.VPSRLVQ)
	each(OpShrS64, true, amd64.VPSRLVQ)
	do(func(t *translator, o *Op) {
		a, n := t.arg(0), t.have(value{shiftCount, uint64(o.B)})
		t.shift64(true, t.out(o), a, func(d, a amd64.Vec) { t.V3(amd64.VPSRLQ, true, d, a, n) })
	}, OpShrS64S)
	do(func(t *translator, o *Op) {
		a, d := t.arg(0), t.out(o)
		t.VShiftI(amd64.VPSLLQI, true, d, a, byte(64-o.Imm))
		t.shift64(true, d, d, func(d, a amd64.Vec) { t.VShiftI(amd64.VPSRLQI, true, d, a, byte(64-o.Imm)) })
	}, OpSExtBits64)
}

// shift64 shifts right. If signed is set it extends the sign, by inverting a negative number before and after.
func (t *translator) shift64(signed bool, d, a amd64.Vec, shift func(d, a amd64.Vec)) {
	if !signed {
		shift(d, a)
		return
	}
	x := t.take()
	t.V3(amd64.VPXOR, true, x, x, x)
	t.V3(amd64.VPCMPGTQ, true, x, x, a)
	t.V3(amd64.VPXOR, true, d, a, x)
	shift(d, d)
	t.V3(amd64.VPXOR, true, d, d, x)
}

// addLanes sets d to base plus the lane number times the stride.
func (t *translator) addLanes(w int, d, base amd64.Vec, stride uint64) {
	plus := t.table(w, func(l uint64) uint64 { return l * stride })
	t.V3M(pick(w, amd64.VPADDD, amd64.VPADDQ), t.all(w), d, base, t.lanesAt(amd64.AX, plus, w))
}

// repeated returns the place of 16 bytes that are in both halves of a register.
func (t *translator) repeated(low, high uint64) amd64.Mem {
	var b []byte
	for range 2 {
		b = binary.LittleEndian.AppendUint64(b, low)
		b = binary.LittleEndian.AppendUint64(b, high)
	}
	return amd64.Mem{Base: amd64.AX, Disp: t.constant(b)}
}

// lookUp applies a function to each byte of a, which is below 16, and puts the result in d.
func (t *translator) lookUp(d, a amd64.Vec, f func(n uint64) uint64) {
	var half [2]uint64
	for n := range uint64(16) {
		half[n/8] |= f(n) << (n % 8 * 8)
	}
	table := t.take()
	t.V2M(amd64.VMOVDQU, true, table, t.repeated(half[0], half[1]))
	t.V3(amd64.VPSHUFB, true, d, table, a)
}

// reversedNibble reverses the four bits of a number and shifts them up.
func reversedNibble(up int) func(n uint64) uint64 {
	return func(n uint64) uint64 { return (n&1<<3 | n&2<<1 | n&4>>1 | n>>3) << up }
}

// count counts the ones: first in groups of four bits, then over the bytes of a lane.
func (t *translator) count(o *Op) {
	w := 32
	if o.Code == OpPopc64 {
		w = 64
	}
	ones := func(n uint64) uint64 { return n&1 + n>>1&1 + n>>2&1 + n>>3 }
	a, nibble, all := t.arg(0), t.num(w, 0x0f0f0f0f0f0f0f0f>>(64-w)), t.all(w)
	d, x, y := t.out(o), t.take(), t.take()
	t.VShiftI(amd64.VPSRLDI, all, y, a, 4)
	t.V3(amd64.VPAND, all, x, a, nibble)
	t.V3(amd64.VPAND, all, y, y, nibble)
	t.lookUp(x, x, ones)
	t.lookUp(y, y, ones)
	t.V3(amd64.VPADDB, all, x, x, y)
	if w == 64 {
		t.V3(amd64.VPXOR, true, y, y, y)
		t.V3(amd64.VPSADBW, true, x, x, y)
		t.narrow(d, x, lowHalves)
		return
	}
	t.V3M(amd64.VPMADDUBSW, all, x, x, t.whole(32, 0x01010101))
	t.V3M(amd64.VPMADDWD, all, d, x, t.whole(32, 0x00010001))
}

// permute selects bytes: those of a and those of b, each in place with zeros between. It then replicates the sign of
// those bytes that ask for it.
func (t *translator) permute(o *Op) {
	var from [2][32]byte
	var sign uint64
	for i := range 32 {
		n := byte(o.Imm >> (i % 4 * 4) & 15)
		from[0][i], from[1][i] = 0x80, 0x80 // gives 0
		from[n>>2&1][i] = byte(i%16&^3) | n&3
		if n&8 != 0 {
			sign |= 0xff << (i % 4 * 8)
		}
	}
	a, b, all := t.arg(0), t.arg(1), t.all(32)
	d, x := t.out(o), t.take()
	t.V3M(amd64.VPSHUFB, all, d, a, amd64.Mem{Base: amd64.AX, Disp: t.constant(from[0][:])})
	t.V3M(amd64.VPSHUFB, all, x, b, amd64.Mem{Base: amd64.AX, Disp: t.constant(from[1][:])})
	t.V3(amd64.VPOR, all, d, d, x)
	if sign == 0 {
		return
	}
	signs := t.num(32, sign)
	t.V3(amd64.VPXOR, all, x, x, x)
	t.V3(amd64.VPCMPGTB, all, x, x, d)
	t.VBlend(all, d, d, x, signs)
}
