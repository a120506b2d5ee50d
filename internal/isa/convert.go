package isa

import (
	"math"

	"fencepost.dev/fencepost/internal/event"
)

// convertRows is cvt, cvta, isspacep and mov of the manual's "Data Movement and Conversion Instructions".
var convertRows = []*Row{
	{Op: "mov", Doc: "Data Movement: mov", Bind: bindMov, Forms: forms(
		".type d, a; type: pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64",
		".vec.type <d>, <a>; vec: v2 v4; type: b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
		".type d, <a>; type: b16 b32 b64 b128",
		".type <d>, a; type: b16 b32 b64 b128")},
	{Op: "cvt", Doc: "Data Movement: cvt", Bind: bindCvt, Note: noteCvt, Forms: append(saturatingForms(), forms(
		".dtype.atype d~, a:atype~; "+cvtDInt+"; "+cvtAInt,
		".rnd{.ftz}{.sat}.f32.atype d~, a:atype~; "+cvtAInt,
		".rnd{.sat}.dtype.atype d~, a:atype~; dtype: f16 f64; "+cvtAInt,
		".rnd.bf16.atype d~, a:atype~; "+cvtAInt,
		".irnd{.ftz}{.sat}.dtype.f32 d~, a:f32~; "+cvtIRnd+"; "+cvtDInt,
		".irnd{.sat}.dtype.atype d~, a:atype~; "+cvtIRnd+"; "+cvtDInt+"; atype: f16 f64",
		".irnd.dtype.bf16 d~, a:bf16~; "+cvtIRnd+"; "+cvtDInt,
		".irnd{.ftz}{.sat}.f32.f32 d~, a~; "+cvtIRnd,
		".irnd{.sat}.f64.f64 d~, a~; "+cvtIRnd,
		".irnd{.sat}.f16.f16 d~, a~; "+cvtIRnd,
		".irnd.bf16.bf16 d, a; "+cvtIRnd,
		"{.ftz}{.sat}.f32.atype d~, a:atype~; atype: f32 f16",
		"{.ftz}.f32.bf16 d~, a:bf16~",
		"{.ftz}{.sat}.f64.f32 d~, a:f32~",
		"{.sat}.f64.atype d~, a:atype~; atype: f64 f16",
		".f64.bf16 d~, a:bf16~",
		"{.sat}.f16.f16 d~, a~",
		".rnd{.ftz}{.sat}.f32.f64 d~, a:f64~",
		".rnd{.ftz}{.sat}.f16.f32 d~, a:f32~",
		".rnd{.sat}.f16.f64 d~, a:f64~",
		".rnd.f16.bf16 d~, a:bf16~",
		".rnd.bf16.atype d, a:atype; atype: f64 f16",
		".rnd{.ftz}.bf16.f32 d, a:f32",
		".rnd.relu{.satfinite}.bf16.f32 d, a:f32; rnd: rn rz",
		".rnd.satfinite.bf16.f32 d, a:f32; rnd: rn rz",
		".rnd.relu{.satfinite}.f16.f32 d, a:f32; rnd: rn rz",
		".rnd.satfinite.f16.f32 d, a:f32; rnd: rn rz",
		".rnd{.relu}{.satfinite}.f16x2.f32 d, a:f32, b:f32; rnd: rn rz",
		".rnd{.relu}{.satfinite}.bf16x2.f32 d, a:f32, b:f32; rnd: rn rz",
		".rs{.relu}{.satfinite}.pair.f32 d, a:f32, b:f32, c:b32; pair: f16x2 bf16x2",
		".rs{.relu}.satfinite.four.f32 d:b32, a*4:f32, c:b32; four: e4m3x4 e5m2x4 e2m3x4 e3m2x4",
		".rs{.relu}.satfinite.e2m1x4.f32 d:b16, a*4:f32, c:b32",
		".rna{.satfinite}.tf32.f32 d:b32, a:f32",
		".rnd{.relu}{.satfinite}.tf32.f32 d:b32, a:f32; rnd: rn rz",
		".pack.sat.ctype.s32 d:b32, a:s32, b:s32; ctype: u16 s16",
		".pack.sat.ctype.s32.b32 d:b32, a:s32, b:s32, c:b32; ctype: u8 s8 u4 s4 u2 s2",
		".rn.satfinite{.relu}.tiny.f32 d:b16, a:f32, b:f32; tiny: "+tinyTypes,
		".rn.satfinite{.relu}.e2m1x2.f32 d:b8, a:f32, b:f32",
		".rn.satfinite{.relu}.tiny.atype d:b16, a:atype; atype: f16x2 bf16x2; tiny: "+tinyTypes,
		".rn.satfinite{.relu}.e2m1x2.atype d:b8, a:atype; atype: f16x2 bf16x2",
		".rn{.relu}.dtype.tiny d, a:b16; dtype: f16x2 bf16x2; tiny: "+tinyTypes,
		".rn{.relu}.satfinite.bf16x2.tiny d, a:b16; tiny: "+tinyTypes,
		".rn{.relu}.satfinite.bf16x2.e2m1x2 d, a:b8",
		".rn{.relu}.dtype.e2m1x2 d, a:b8; dtype: f16x2 bf16x2",
		".rn{.relu}{.satfinite}.scaled::n2::ue8m0.bf16x2.tiny d, a:b16, b:b16; tiny: "+tinyTypes,
		".rn{.relu}{.satfinite}.scaled::n2::ue8m0.bf16x2.e2m1x2 d, a:b8, b:b16",
		".rn.satfinite{.relu}.s2f6x2.f32 d:b16, a:f32, b:f32",
		".rn.satfinite{.relu}.s2f6x2.bf16x2 d:b16, a:bf16x2",
		".rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.f32 d:b16, a:f32, b:f32, c:b16",
		".rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.bf16x2 d:b16, a:bf16x2, b:b16",
		".rn{.satfinite}{.relu}.bf16x2.s2f6x2 d, a:b16",
		".rn{.satfinite}{.relu}.scaled::n2::ue8m0.bf16x2.s2f6x2 d, a:b16, b:b16",
		".rn.bf16x2.ue8m0x2 d, a:b16",
		".rnd{.satfinite}.ue8m0x2.f32 d:b16, a:f32, b:f32; rnd: rz rp",
		".rnd{.satfinite}.ue8m0x2.bf16x2 d:b16, a:bf16x2; rnd: rz rp",
		".bf16.bf16 d, a",
		".rnd{.ftz}.f32.bf16 d, a:bf16",
		".rnd.f64.bf16 d, a:bf16")...)},
	{Op: "cvta", Doc: "Data Movement: cvta", Bind: bindCvta, Note: noteCvta, Forms: forms(
		".space.type d, a; type: u32 u64; "+windowSpaces, ".to.space.type d, a; type: u32 u64; "+windowSpaces)},
	{Op: "isspacep", Doc: "Data Movement: isspacep", Bind: bindIsspacep, Rank: true, Note: noteCvta, Forms: forms(
		".space p:pred, a:u64; space: global shared shared::cta shared::cluster local const param param::entry")},
	{Op: "mapa", Doc: "Data Movement: mapa", Bind: bindMapa, Note: noteMapa, Forms: forms(
		"{.shared::cluster}.type d, a, b:u32; type: u32 u64")},
	{Op: "getctarank", Doc: "Data Movement: getctarank", Bind: bindCtaRank, Rank: true, Note: noteMapa, Forms: forms(
		"{.shared::cluster}.type d:u32, a; type: u32 u64")},
}

const (
	cvtDInt      = "dtype: u8 u16 u32 u64 s8 s16 s32 s64"
	cvtAInt      = "atype: u8 u16 u32 u64 s8 s16 s32 s64"
	cvtIRnd      = "irnd: rni rzi rmi rpi"
	tinyTypes    = "e4m3x2 e5m2x2 e2m3x2 e3m2x2"
	windowSpaces = "space: global shared shared::cta shared::cluster local const param param::entry"

	noteCvt = "A value out of range gives the nearest value of the integer type. NaN gives 0, or a 1 followed by zeros if the source is f64 or the result has 64 bits. " + noteStochastic

	noteMapa = "An address of shared::cluster is an offset in the shared memory of the CTA itself, or has 1 plus the rank of a CTA " +
		"from bit 24 on. Using an address of a rank outside the cluster is a fault."

	noteCvta = "Global and const addresses are generic addresses without a change. The top byte of the address distinguishes the " +
		"shared, local and param windows. isspacep.const is false, because constant variables are in global memory here."
)

// The tags of generic address windows, in the top byte of an address. Global addresses have none.
const (
	SharedWindow = 0x01 << 56
	LocalWindow  = 0x02 << 56
	ParamWindow  = 0x03 << 56
	FuncWindow   = 0x04 << 56
	windowMask   = 0xff << 56
)

// window gives the tag of a space.
func window(s event.Space) uint64 {
	switch s {
	case event.Shared:
		return SharedWindow
	case event.Local:
		return LocalWindow
	case event.Param:
		return ParamWindow
	}
	return 0
}

func bindCvta(in *Inst) {
	tag, mask := window(in.Space), widthMask(in.Type)
	if in.Type == U32 {
		tag = narrowWindow(in.Space)
	}
	if in.Has("to") {
		tag = -tag
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = (a.S[0] + tag) & mask }
}

func bindMapa(in *Inst) {
	mask := widthMask(in.Type)
	in.Eval = func(_ *Inst, a *Args) {
		rank := min(a.S[1]&0xffff_ffff, peerRanks)
		a.D[0] = (a.S[0]&^peerMask | (rank+1)<<event.PeerShift) & mask
	}
}

// The rank in addresses of shared memory: see event.PeerShift.
const (
	peerMask  = 0xff << event.PeerShift
	peerRanks = 0xfe // the greatest rank that an address can tell
)

// bindCtaRank binds getctarank, whose last source is the rank of the CTA itself.
func bindCtaRank(in *Inst) {
	in.Eval = func(_ *Inst, a *Args) {
		if a.D[0] = a.S[1]; a.S[0]&peerMask != 0 {
			a.D[0] = a.S[0]&peerMask>>event.PeerShift - 1
		}
	}
}

func bindIsspacep(in *Inst) {
	if in.Space == event.Const {
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = 0 }
		return
	}
	tag := window(in.Space)
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = bit(a.S[0]&windowMask == tag) }
	if in.Space == event.Shared && !in.Has("shared::cluster") {
		in.Eval = func(_ *Inst, a *Args) {
			of := a.S[0] & peerMask >> event.PeerShift
			a.D[0] = bit(a.S[0]&windowMask == tag && (of == 0 || of == a.S[1]+1))
		}
	}
}

// bindMov binds mov: of a value, of a vector packed into one, of a value unpacked into a vector. The elements' widths
// are known when the operands are: see bindMovVector.
func bindMov(in *Inst) {
	switch n := int(in.Vec); {
	case n > 1:
		mask := widthMask(in.Type)
		in.Eval = func(_ *Inst, a *Args) {
			for i := range n {
				a.D[i] = a.S[i] & mask
			}
		}
	case in.Type == B128:
		in.Eval = func(_ *Inst, a *Args) { a.D[0], a.D[1] = a.S[0], a.S[1] }
	case in.Type == Pred:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0] & 1 }
	default:
		mask := widthMask(in.Type)
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0] & mask }
	}
}

// bindMovVector binds a packing or unpacking mov with n elements.
func bindMovVector(in *Inst, n int, pack bool) {
	w := 8 * uint(in.Type.Size()) / uint(n)
	switch {
	case w == 64: // of b128, which is two slots itself
		in.Eval = func(_ *Inst, a *Args) { a.D[0], a.D[1] = a.S[0], a.S[1] }
	case in.Type == B128 && pack:
		in.Eval = func(_ *Inst, a *Args) {
			a.D[0], a.D[1] = a.S[0]&0xffffffff|a.S[1]<<32, a.S[2]&0xffffffff|a.S[3]<<32
		}
	case in.Type == B128:
		in.Eval = func(_ *Inst, a *Args) {
			a.D[0], a.D[1], a.D[2], a.D[3] = a.S[0]&0xffffffff, a.S[0]>>32, a.S[1]&0xffffffff, a.S[1]>>32
		}
	case pack:
		mask := uint64(1)<<w - 1
		in.Eval = func(_ *Inst, a *Args) {
			var r uint64
			for i := range n {
				r |= a.S[i] & mask << (uint(i) * w)
			}
			a.D[0] = r
		}
	default:
		mask := uint64(1)<<w - 1
		in.Eval = func(_ *Inst, a *Args) {
			for i := range n {
				a.D[i] = a.S[0] >> (uint(i) * w) & mask
			}
		}
	}
}

func bindCvt(in *Inst) {
	d, s := in.Type, in.Type2
	switch {
	case in.Has("pack"):
		bindCvtPack(in)
	case in.Has("rs"):
		bindCvtStochastic(in)
	case tinies[d] != nil:
		bindCvtTiny(in)
	case d == UE8M0x2:
		bindCvtScale(in)
	case tinies[s] != nil || s == UE8M0x2:
		bindCvtFromTiny(in)
	case d == F16x2 || d == BF16x2:
		bindCvtPair(in)
	case d.Float() && s.Float():
		bindCvtFloat(in)
	case d.Float():
		bindCvtFromInt(in)
	case s.Float():
		bindCvtToInt(in)
	default:
		bindCvtInt(in)
	}
}

// saturatingForms are cvt between integers with .sat, which is for types that do not hold all values of the source's.
func saturatingForms() []Form {
	var out []Form
	ints := []Type{U8, U16, U32, U64, S8, S16, S32, S64}
	for _, d := range ints {
		var from string
		for _, s := range ints {
			lo, hi := intRange(d)
			if least, most := intRange(s); least < lo || most > hi {
				from += " " + s.String()
			}
		}
		out = append(out, forms(".sat."+d.String()+".atype d~, a:atype~; atype:"+from)...)
	}
	return out
}

// intRange gives the range of an integer type, as a signed lower and an unsigned upper bound.
func intRange(t Type) (lo int64, hi uint64) {
	w := 8 * uint(t.Size())
	if t.Signed() {
		return -1 << (w - 1), 1<<(w-1) - 1
	}
	return 0, 1<<(w-1)<<1 - 1
}

func bindCvtInt(in *Inst) {
	d, s, sat := in.Type, in.Type2, in.Sat
	dm, sm, size := widthMask(d), widthMask(s), s.Size()
	lo, hi := intRange(d)
	switch {
	case s.Signed() && sat:
		in.Eval = func(_ *Inst, a *Args) {
			x := signExtend(a.S[0], size)
			if x < lo {
				x = lo
			} else if x > 0 && uint64(x) > hi {
				x = int64(hi)
			}
			a.D[0] = uint64(x) & dm
		}
	case s.Signed():
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(signExtend(a.S[0], size)) & dm }
	case sat:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = min(a.S[0]&sm, hi) }
	default:
		in.Eval = func(_ *Inst, a *Args) { a.D[0] = a.S[0] & sm & dm }
	}
}

func bindCvtFromInt(in *Inst) {
	f, s, mode, ftz, sat := formatOf(in.Type), in.Type2, rounding(in), in.Ftz, in.Sat
	mask, size, signed := widthMask(s), s.Size(), s.Signed()
	in.Eval = func(_ *Inst, a *Args) {
		x, neg := a.S[0]&mask, false
		if signed {
			if v := signExtend(a.S[0], size); v < 0 {
				x, neg = uint64(-v), true
			}
		}
		a.D[0] = f.finish(f.pack(neg, x, 0, mode), ftz, sat)
	}
	if in.Type == F32 && mode == RN && !sat { // the machine's conversion rounds to nearest; subnormals cannot come out
		if signed {
			in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(math.Float32bits(float32(signExtend(a.S[0], size)))) }
		} else {
			in.Eval = func(_ *Inst, a *Args) { a.D[0] = uint64(math.Float32bits(float32(a.S[0] & mask))) }
		}
	}
	if in.Type == F64 && size <= 4 && !sat { // exact
		if signed {
			in.Eval = func(_ *Inst, a *Args) { a.D[0] = math.Float64bits(float64(signExtend(a.S[0], size))) }
		} else {
			in.Eval = func(_ *Inst, a *Args) { a.D[0] = math.Float64bits(float64(a.S[0] & mask)) }
		}
	}
}

// toInt converts a float64 that is integral, or infinite, to the nearest value of an integer type, at its width.
func toInt(x float64, t Type) uint64 {
	lo, hi := intRange(t)
	switch {
	case x <= float64(lo):
		return uint64(lo) & widthMask(t)
	case x >= float64(hi): // float64(hi) is hi or, of 64 bits, the power of two above
		return hi
	case x < 0:
		return uint64(int64(x)) & widthMask(t)
	}
	return uint64(x)
}

func bindCvtToInt(in *Inst) {
	d, f, mode, ftz := in.Type, formatOf(in.Type2), in.Round, in.Ftz
	var nan uint64
	if in.Type2 == F64 || d.Size() == 8 {
		nan = 1 << (8*uint(d.Size()) - 1)
	}
	in.Eval = func(_ *Inst, a *Args) {
		x := a.S[0] & f.width()
		if ftz {
			x = f.flush(x)
		}
		v := f.value(x)
		if v != v {
			a.D[0] = nan
			return
		}
		a.D[0] = toInt(roundIntegral(v, mode), d)
	}
}

// narrow applies what cvt does after rounding to a narrower format.
func (f *format) narrow(r uint64, relu, satfinite bool) uint64 {
	if relu {
		r = f.relu(r)
	}
	if satfinite && r&(f.sign()-1) == f.inf() {
		r--
	}
	return r
}

func bindCvtFloat(in *Inst) {
	d, s := formatOf(in.Type), formatOf(in.Type2)
	mode, ftz, relu, satfinite := in.Round, in.Ftz, in.Has("relu"), in.Has("satfinite")
	sat := in.Sat && !satfinite
	integral := mode >= RNI
	shift := uint(0)
	if in.Type == TF32 {
		shift = 13
	}
	in.Eval = func(_ *Inst, a *Args) {
		x := a.S[0] & s.width()
		// ftz concerns f32 alone: a subnormal f32 source, a subnormal f32 result.
		if ftz && (s == fmtF32 || d == s) {
			x = s.flush(x)
		}
		if s.isNaN(x) {
			a.D[0] = d.finish(nanTo(d, s, x), false, sat) << shift
			return
		}
		v := s.value(x)
		if integral {
			v = roundIntegral(v, mode)
		}
		r := d.round(v, mode)
		a.D[0] = d.narrow(d.finish(r, ftz && (d == fmtF32 || d == s), sat), relu, satfinite) << shift
	}
}

// nanTo converts a NaN: to f64 keeping sign and payload, to other formats the format's own.
func nanTo(d, s *format, x uint64) uint64 {
	if d != fmtF64 {
		return d.nan
	}
	if s == fmtF64 {
		return x | 1<<51
	}
	return x&s.sign()<<(63-s.mant-s.exp) | 0x7ff<<52 | 1<<51 | x&(1<<s.mant-1)<<(52-s.mant)
}

// bindCvtPair binds the conversions of two f32 to a packed pair, the first operand in the upper half.
func bindCvtPair(in *Inst) {
	d, mode, relu, satfinite := formatOf(in.Type), in.Round, in.Has("relu"), in.Has("satfinite")
	half := func(x uint64) uint64 {
		return d.narrow(d.round(fmtF32.value(x&0xffffffff), mode), relu, satfinite)
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = half(a.S[0])<<16 | half(a.S[1]) }
}

// bindCvtPack binds cvt.pack: two s32 saturated to the narrow type, the first above the second, and for types below 16
// bits the low bits of c above both.
func bindCvtPack(in *Inst) {
	w := map[byte]uint{'2': 2, '4': 4, '8': 8, '1': 16}[in.Mods[2][1]]
	signed := in.Mods[2][0] == 's'
	clamp := func(x uint64) uint64 { return uint64(clampBits(int64(int32(x)), w, signed)) & (1<<w - 1) }
	in.Eval = func(_ *Inst, a *Args) {
		r := clamp(a.S[0])<<w | clamp(a.S[1])
		if w < 16 {
			r |= a.S[2] << (2 * w) & 0xffffffff
		}
		a.D[0] = r
	}
}
