package isa

import (
	"math/bits"
	"strings"
)

// videoRows is the manual's "Video Instructions". Their operands select parts of registers, and those of vmad may have
// a sign. Each such selection is a source of its own after the operand; that of the result follows all others: see
// selector.
var videoRows = func() []*Row {
	var rows []*Row
	add := func(op string, bind func(in *Inst), syntax ...string) {
		rows = append(rows, &Row{Op: op, Doc: "Video: " + op, Bind: bind, Forms: forms(syntax...)})
	}
	for _, op := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax"} {
		add(op, bindVideo, scalarVideo(".dtype.atype.btype{.sat}", "; dtype: u32 s32; atype: u32 s32; btype: u32 s32")...)
	}
	for _, op := range []string{"vshl", "vshr"} {
		add(op, bindVideo, scalarVideo(".dtype.atype.u32{.sat}.mode", "; dtype: u32 s32; atype: u32 s32; mode: clamp wrap")...)
	}
	add("vmad", bindVmad,
		".dtype.atype.btype{.sat}{.scale} d:b32, -a^1:b32, -b^1:b32, -c:b32; dtype: u32 s32; atype: u32 s32; btype: u32 s32; scale: shr7 shr15",
		".dtype.atype.btype.po{.sat}{.scale} d:b32, a^1:b32, b^1:b32, c:b32; dtype: u32 s32; atype: u32 s32; btype: u32 s32; scale: shr7 shr15")
	add("vset", bindVideo, scalarVideo(".atype.btype.cmp", "; atype: u32 s32; btype: u32 s32; cmp: eq ne lt le gt ge")...)
	for _, n := range []string{"2", "4"} {
		operands := strings.ReplaceAll(" d^N:b32, a^N:b32, b^N:b32, c:b32", "N", n)
		types := "; dtype: u32 s32; atype: u32 s32; btype: u32 s32"
		for _, op := range []string{"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"} {
			add(op+n, bindVideoLanes, ".dtype.atype.btype{.sat}"+operands+types, ".dtype.atype.btype.add"+operands+types)
		}
		add("vset"+n, bindVideoLanes, ".atype.btype.cmp{.add}"+operands+"; atype: u32 s32; btype: u32 s32; cmp: eq ne lt le gt ge")
	}
	return rows
}()

// scalarVideo is the forms of a scalar video instruction: alone, with a second operation, and merged into c.
func scalarVideo(mods, lists string) []string {
	return []string{
		mods + " d:b32, a^1:b32, b^1:b32" + lists,
		mods + ".op d:b32, a^1:b32, b^1:b32, c:b32" + lists + "; op: add min max",
		mods + " d^1:b32, a^1:b32, b^1:b32, c:b32" + lists,
	}
}

// Selectors of parts of a 32-bit register, as sources: 0 is the whole register, 1 to 4 are bytes, 5 and 6 are halves.
// An operand that may have a sign adds negated. Selectors of two- and four-way instructions have a hexadecimal digit
// for each element: the index of its source among the parts of a and b. For a result they are a mask.
const (
	selectByte = 1
	selectHalf = 5
	negated    = 0x10
)

// selector reads the selector after an operand's name: of one, two or four parts, of a result or a source. ok is false
// if the word is not a selector.
func selector(word string, ways int, dst bool) (code uint64, ok bool) {
	if ways == 1 {
		i := strings.Index("b0 b1 b2 b3 h0 h1 ", word+" ")
		return uint64(selectByte + i/3), i >= 0
	}
	letter, digits := byte('b'), word[min(1, len(word)):]
	if ways == 2 {
		letter = 'h'
	}
	if word == "" || word[0] != letter || digits == "" || !dst && len(digits) != ways {
		return 0, false
	}
	last := byte('0' + ways)
	for i := range len(digits) {
		switch c := digits[i]; {
		case !dst && c-'0' < byte(2*ways):
			code = code<<4 | uint64(c-'0')
		case dst && c >= '0' && c < last: // from high to low
			code |= 1 << (c - '0')
			last = c
		default:
			return 0, false
		}
	}
	return code, true
}

// defaultSelector is the selector of an operand without one.
func defaultSelector(name string, ways int) uint64 {
	switch {
	case ways == 1:
		return 0
	case name == "d":
		return 1<<ways - 1
	case name == "b":
		return map[int]uint64{2: 0x32, 4: 0x7654}[ways]
	}
	return map[int]uint64{2: 0x10, 4: 0x3210}[ways]
}

// selectPart reads the part of x that a selector names.
func selectPart(x, sel uint64, signed bool) int64 {
	w := partWidth(sel)
	switch at := sel &^ negated; {
	case w == 8:
		x >>= 8 * (at - selectByte)
	case w == 16:
		x >>= 16 * (at - selectHalf)
	}
	if signed {
		return signExtend(x, int(w/8))
	}
	return int64(x & (1<<w - 1))
}

// partWidth is the bits of the part that a selector names.
func partWidth(sel uint64) uint {
	switch sel &^= negated; {
	case sel == 0:
		return 32
	case sel < selectHalf:
		return 8
	}
	return 16
}

// mergePart puts the low bits of r into the part of c that a selector names.
func mergePart(r, c, sel uint64) uint64 {
	w := partWidth(sel)
	shift := uint(0)
	switch w {
	case 8:
		shift = 8 * uint(sel-selectByte)
	case 16:
		shift = 16 * uint(sel-selectHalf)
	}
	mask := uint64(1)<<w - 1
	return c&^(mask<<shift) | r&mask<<shift
}

// clampBits clamps x to the range of an integer of w bits.
func clampBits(x int64, w uint, signed bool) int64 {
	lo, hi := int64(0), int64(1)<<w-1
	if signed {
		lo, hi = -1<<(w-1), 1<<(w-1)-1
	}
	return min(max(x, lo), hi)
}

// videoOp returns the operation of a video instruction on values of at most 33 bits, given its name without the digit.
// The operation returns the exact result, or one with the same low 32 bits that is equally out of range.
func videoOp(in *Inst) func(a, b int64) int64 {
	mode, cmp := in.Mode, in.Cmp
	shift := func(b int64) uint {
		if mode == ModeWrap {
			return uint(b & 31)
		}
		return uint(min(b, 32))
	}
	switch strings.TrimRight(in.Row.Op, "24") {
	case "vadd":
		return func(a, b int64) int64 { return a + b }
	case "vsub":
		return func(a, b int64) int64 { return a - b }
	case "vabsdiff":
		return func(a, b int64) int64 { return max(a-b, b-a) }
	case "vmin":
		return func(a, b int64) int64 { return min(a, b) }
	case "vmax":
		return func(a, b int64) int64 { return max(a, b) }
	case "vavrg": // half of the sum, rounded away from zero
		return func(a, b int64) int64 {
			if a+b >= 0 {
				return (a + b + 1) >> 1
			}
			return (a + b) >> 1
		}
	case "vshl":
		return func(a, b int64) int64 {
			if n := shift(b); n < 32 {
				return a << n
			}
			switch { // 65 bits would be needed; only the sign of the overflow matters
			case a > 0:
				return 1 << 40
			case a < 0:
				return -1 << 40
			}
			return 0
		}
	case "vshr":
		return func(a, b int64) int64 { return a >> shift(b) }
	case "vset":
		return func(a, b int64) int64 { return int64(bit(compareInts(cmp, a, b))) }
	}
	panic("BUG: no video instruction " + in.Row.Op)
}

// videoTypes reports which of the result and the sources a and b are signed.
func videoTypes(in *Inst) (d, a, b bool) {
	var signed []bool
	for _, m := range in.Mods {
		if m == "u32" || m == "s32" {
			signed = append(signed, m == "s32")
		}
	}
	if strings.HasPrefix(in.Row.Op, "vset") {
		return false, signed[0], signed[1]
	}
	return signed[0], signed[1], signed[2]
}

// bindVideo binds the scalar video instructions. Sources are a, b and c. The selector of the result comes last.
func bindVideo(in *Inst) {
	f, op, sat := videoOp(in), in.Op, in.Sat
	ds, as, bs := videoTypes(in)
	merge := in.sources == 3 && op == NoOp
	in.Eval = func(_ *Inst, x *Args) {
		t := f(selectPart(x.S[0], x.S[1], as), selectPart(x.S[2], x.S[3], bs))
		part := uint64(0)
		if merge {
			part = x.S[5]
		}
		if sat {
			t = clampBits(t, partWidth(part), ds)
		}
		c := selectPart(x.S[4], 0, ds)
		switch {
		case merge:
			t = int64(mergePart(uint64(t), x.S[4], part))
		case op == OpAdd:
			t += c
		case op == OpMin:
			t = min(t, c)
		case op == OpMax:
			t = max(t, c)
		}
		x.D[0] = uint64(uint32(t))
	}
}

// bindVideoLanes binds the two- and four-way video instructions.
func bindVideoLanes(in *Inst) {
	f, sat, add := videoOp(in), in.Sat, in.Has("add")
	ds, as, bs := videoTypes(in)
	ways := uint(2)
	if strings.HasSuffix(in.Row.Op, "4") {
		ways = 4
	}
	w := 32 / ways
	mask := uint64(1)<<w - 1
	element := func(both, sel uint64, i uint, signed bool) int64 {
		x := both >> (uint64(w) * (sel >> (4 * i) & 15))
		if signed {
			return signExtend(x, int(w/8))
		}
		return int64(x & mask)
	}
	in.Eval = func(_ *Inst, x *Args) {
		both, c, lanes := x.S[2]<<32|x.S[0]&0xffffffff, x.S[4], x.S[5]
		d, sum := c, c
		for i := range ways {
			if lanes>>i&1 == 0 {
				continue
			}
			t := f(element(both, x.S[1], i, as), element(both, x.S[3], i, bs))
			if sat {
				t = clampBits(t, w, ds)
			}
			sum += uint64(t)
			d = d&^(mask<<(i*w)) | uint64(t)&mask<<(i*w)
		}
		if add {
			d = sum
		}
		x.D[0] = uint64(uint32(d))
	}
}

// bindVmad binds vmad: the product plus c in 128 bits, with .po plus one; shifted right, saturated, truncated to 32
// bits.
func bindVmad(in *Inst) {
	_, as, bs := videoTypes(in)
	po, sat := in.Has("po"), in.Sat
	shift := uint(0)
	if in.Has("shr7") {
		shift = 7
	} else if in.Has("shr15") {
		shift = 15
	}
	in.Eval = func(_ *Inst, x *Args) {
		negProduct := (x.S[1]^x.S[3])&negated != 0
		negC := !po && x.S[5]&negated != 0
		signed := as || bs || negProduct || negC
		hi, lo := product128(selectPart(x.S[0], x.S[1], as), selectPart(x.S[2], x.S[3], bs), negProduct)
		c := selectPart(x.S[4], 0, signed)
		if negC {
			c = -c
		}
		var carry uint64
		lo, carry = bits.Add64(lo, uint64(c), uint64(bit(po)))
		hi += c>>63 + int64(carry)
		if shift > 0 {
			lo, hi = lo>>shift|uint64(hi)<<(64-shift), hi>>shift
		}
		if sat {
			lo = saturate128(hi, lo, signed)
		}
		x.D[0] = uint64(uint32(lo))
	}
}

// product128 is a*b or -(a*b) in 128 bits.
func product128(a, b int64, neg bool) (hi int64, lo uint64) {
	h, l := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if (a < 0) != (b < 0) != neg {
		var borrow uint64
		l, borrow = bits.Sub64(0, l, 0)
		h, _ = bits.Sub64(0, h, borrow)
	}
	return int64(h), l
}

// saturate128 brings a value of 128 bits into the range of s32 or u32.
func saturate128(hi int64, lo uint64, signed bool) uint64 {
	x := int64(lo)
	switch {
	case hi > 0 || hi == 0 && x < 0: // 2^63 or more
		x = 1<<63 - 1
	case hi < -1 || hi == -1 && x >= 0:
		x = -1 << 63
	}
	return uint64(clampBits(x, 32, signed))
}
