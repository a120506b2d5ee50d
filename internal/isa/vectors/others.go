package main

import (
	"math/big"

	"fencepost.dev/fencepost/internal/isa"
)

// comparing computes set, setp, selp and slct.
func comparing(j *job, in []uint64) []uint64 {
	switch j.op {
	case "selp":
		if in[2] == 1 {
			return in[:1]
		}
		return in[1:2]
	case "slct":
		var first bool
		if j.Inst().Type2 == isa.S32 {
			first = signedInt(in[2], 32).Sign() >= 0
		} else {
			c := f32.decode(in[2])
			if j.Has("ftz") && f32.subnormal(in[2]) {
				c.r = new(big.Rat)
			}
			first = !c.nan && (!c.neg || !c.inf && c.r.Sign() == 0)
		}
		if first {
			return in[:1]
		}
		return in[1:2]
	case "set":
		return []uint64{set(j, in)}
	}
	t := j.typ
	c := uint64(2) // absent
	if len(in) > 2 {
		c = in[2]
	}
	if t == isa.F16x2 || t == isa.BF16x2 {
		e := elem(t)
		return []uint64{boolean(j, compare(j, in[0]&0xffff, in[1]&0xffff, e), c), boolean(j, compare(j, in[0]>>16, in[1]>>16, e), c)}
	}
	r := compare(j, in[0], in[1], t)
	return []uint64{boolean(j, r, c), boolean(j, !r, c)}
}

// elem returns the element type of a packed type.
func elem(t isa.Type) isa.Type {
	return map[isa.Type]isa.Type{isa.F16x2: isa.F16, isa.BF16x2: isa.BF16}[t]
}

// boolean combines a comparison with the third operand. A c of 2 means that there is none.
func boolean(j *job, r bool, c uint64) uint64 {
	if c == 2 {
		return flag(r)
	}
	switch {
	case j.Has("and"):
		return flag(r) * c
	case j.Has("or"):
		return max(flag(r), c)
	}
	return (flag(r) + c) % 2
}

func set(j *job, in []uint64) uint64 {
	d, s := j.typ, j.Inst().Type2
	c := uint64(2)
	if len(in) > 2 {
		c = in[2]
	}
	ones := wrap(big.NewInt(-1), 8*d.Size())
	if d.Float() {
		ones = formOf(d).one()
	}
	if e := elem(s); e != isa.NoType {
		return ones&0xffff*boolean(j, compare(j, in[0]&0xffff, in[1]&0xffff, e), c) | ones&0xffff*boolean(j, compare(j, in[0]>>16, in[1]>>16, e), c)<<16
	}
	return ones * boolean(j, compare(j, in[0], in[1], s), c)
}

// compare applies the comparison operator, which is the first modifier.
func compare(j *job, a, b uint64, t isa.Type) bool {
	op := j.Mods[0]
	var c int
	if t.Float() {
		f := formOf(t)
		if j.Has("ftz") {
			if f.subnormal(a) {
				a &= f.sign()
			}
			if f.subnormal(b) {
				b &= f.sign()
			}
		}
		x, y := f.decode(a), f.decode(b)
		if x.nan || y.nan {
			switch op {
			case "equ", "neu", "ltu", "leu", "gtu", "geu", "nan":
				return true
			}
			return false
		}
		c = order(x, y)
	} else {
		c = intOf(a, t).Cmp(intOf(b, t))
	}
	switch op {
	case "eq", "equ":
		return c == 0
	case "ne", "neu":
		return c != 0
	case "lt", "ltu", "lo":
		return c < 0
	case "le", "leu", "ls":
		return c <= 0
	case "gt", "gtu", "hi":
		return c > 0
	case "ge", "geu", "hs":
		return c >= 0
	}
	return op == "num"
}

// moving computes mov, cvt, cvta, isspacep, prmt and createpolicy.
func moving(j *job, in []uint64) []uint64 {
	switch j.op {
	case "mov":
		return in
	case "createpolicy":
		return []uint64{0}
	case "getctarank":
		if of := in[0] >> 24 & 0xff; of != 0 {
			return []uint64{of - 1}
		}
		return []uint64{0} // the rank of the executing block
	case "mapa":
		return []uint64{wrap(new(big.Int).SetUint64(in[0]-in[0]>>24&0xff<<24+(min(in[1], 254)+1)<<24), 8*j.typ.Size())}
	case "prmt":
		return []uint64{permute(j, in)}
	case "cvta":
		tag := windows[j.space()]
		if j.typ == isa.U32 {
			tag = map[string]uint64{"shared": 0xff << 24, "local": 0xfe << 24, "param": 0xfd << 24}[j.space()]
			if j.Has("to") {
				tag = -tag
			}
			return []uint64{wrap(new(big.Int).SetUint64(in[0]+tag), 32)}
		}
		if j.Has("to") {
			return []uint64{in[0] - tag}
		}
		return []uint64{in[0] + tag}
	case "isspacep":
		if j.space() == "const" {
			return []uint64{0}
		}
		of := in[0] >> 24 & 0xff
		peer := (j.Has("shared") || j.Has("shared::cta")) && of > 1
		return []uint64{flag(in[0]>>56<<56 == windows[j.space()] && !peer)}
	}
	return []uint64{convert(j, in)}
}

// stack computes the stack instructions; alloca is limited to 16 KiB.
func stack(j *job, in []uint64) []uint64 {
	if j.op != "alloca" {
		return []uint64{wrap(new(big.Int).SetUint64(in[0]), 8*j.typ.Size())}
	}
	align := in[1]
	if align == 0 {
		align = 8
	}
	at := in[3] + in[2]
	for at%align != 0 {
		at++
	}
	if at+in[0]-in[3] > 16384 {
		return []uint64{1 << 31, in[2]}
	}
	return []uint64{at, at + in[0] - in[3]}
}

// windows are the bases of the generic address windows; the others begin at 0.
var windows = map[string]uint64{"shared": 1 << 56, "local": 2 << 56, "param": 3 << 56}

// space returns the state space of a spelling without its qualifier.
func (j *job) space() string {
	for _, m := range j.Mods {
		switch m {
		case "shared", "shared::cta", "shared::cluster":
			return "shared"
		case "param", "param::entry":
			return "param"
		case "global", "local", "const":
			return m
		}
	}
	panic("BUG: no space in " + j.Text)
}

// permute computes prmt. The modes are written as in the manual's tables: the bytes of the result from high to low.
func permute(j *job, in []uint64) uint64 {
	modes := map[string][4]string{
		"f4e": {"3210", "4321", "5432", "6543"}, "b4e": {"5670", "6701", "7012", "0123"},
		"rc8": {"0000", "1111", "2222", "3333"}, "ecl": {"3210", "3211", "3222", "3333"},
		"ecr": {"0000", "1110", "2210", "3210"}, "rc16": {"1010", "3232", "1010", "3232"},
	}
	var r uint64
	for i := range 4 {
		pick, replicate := int(in[2]>>(4*i)&7), in[2]>>(4*i+3)&1 == 1
		for _, m := range j.Mods {
			if t, ok := modes[m]; ok {
				pick, replicate = int(t[in[2]&3][3-i]-'0'), false
			}
		}
		src := in[0]
		if pick >= 4 {
			src, pick = in[1], pick-4
		}
		b := src >> (8 * pick) & 0xff
		if replicate {
			b = b / 128 * 0xff
		}
		r |= b << (8 * i)
	}
	return r
}

// convert computes cvt.
func convert(j *job, in []uint64) uint64 {
	d, s := j.typ, j.Inst().Type2
	if j.Has("rs") {
		return stochastic(j, in)
	}
	if c, ok := codeOf(d); ok {
		return toTiny(j, in, c)
	}
	if c, ok := codeOf(s); ok {
		return fromTiny(j, in, c)
	}
	switch {
	case j.Has("pack"):
		return packed(j, in)
	case d == isa.F16x2 || d == isa.BF16x2:
		return toFloat(j, in[0], d, s)<<16 | toFloat(j, in[1], d, s)
	case d == isa.TF32:
		return toFloat(j, in[0], d, s) << 13
	case d.Float():
		return toFloat(j, in[0], d, s)
	case s.Float():
		return toInteger(j, in[0], d, s)
	}
	v := intOf(in[0], s)
	if j.Has("sat") {
		v = clamp(v, d)
	}
	return wrap(v, 8*d.Size())
}

// packed computes cvt.pack.
func packed(j *job, in []uint64) uint64 {
	sizes := map[string]int{"u16": 16, "s16": 16, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "u2": 2, "s2": 2}
	for _, m := range j.Mods {
		bits := sizes[m]
		if bits == 0 {
			continue
		}
		lo, hi := int64(0), int64(1)<<bits-1
		if m[0] == 's' {
			lo, hi = -(hi+1)/2, hi/2
		}
		limited := func(x uint64) []int {
			return digits(uint64(min(max(signedInt(x, 32).Int64(), lo), hi)), bits)
		}
		d := append(limited(in[1]), limited(in[0])...)
		if bits < 16 {
			d = append(d, digits(in[2], 32-2*bits)...)
		}
		return number(d)
	}
	panic("BUG: no oracle for " + j.Text)
}

// integral rounds a magnitude to a whole number.
func integral(n num, mode string) num {
	if n.nan || n.inf {
		return n
	}
	q := new(big.Int).Quo(n.r.Num(), n.r.Denom())
	rest := new(big.Rat).Sub(n.r, new(big.Rat).SetInt(q))
	if up(mode, n.neg, q.Bit(0) == 1, rest) {
		q.Add(q, big.NewInt(1))
	}
	n.r = new(big.Rat).SetInt(q)
	return n
}

func toInteger(j *job, x uint64, d, s isa.Type) uint64 {
	f := formOf(s)
	if j.Has("ftz") && f.subnormal(x) {
		x &= f.sign()
	}
	n := f.decode(x)
	bits := 8 * d.Size()
	switch {
	case n.nan && (s == isa.F64 || d.Size() == 8):
		return 1 << (bits - 1)
	case n.nan:
		return 0
	case n.inf:
		n.inf, n.r = false, pow2(100)
	}
	v := integral(n, roundingOf(j)).signed()
	return wrap(clamp(new(big.Int).Set(v.Num()), d), bits)
}

func toFloat(j *job, x uint64, d, s isa.Type) uint64 {
	f, mode := formOf(d), roundingOf(j)
	if !s.Float() {
		v := intOf(x, s)
		n := num{neg: v.Sign() < 0, r: new(big.Rat).SetInt(new(big.Int).Abs(v))}
		return after(j, f, f.finish(n, mode), true)
	}
	g := formOf(s)
	flushes := s == isa.F32 || d == s // .ftz applies to f32, and to f16 from f16
	if j.Has("ftz") && flushes && g.subnormal(x) {
		x &= g.sign()
	}
	n := g.decode(x)
	if n.nan && d == isa.F64 { // keeps the sign and the payload
		quiet := x&g.sign()<<(64-g.bits()) | f64.infinity() | 1<<51 | x&(1<<g.mant-1)<<(52-g.mant)
		return after(j, f, quiet, false)
	}
	if len(mode) == 3 && mode != "rna" {
		n = integral(n, mode)
	}
	return after(j, f, f.finish(n, mode, x), d == isa.F32 || d == s)
}

// after applies the modifiers that follow the rounding of a conversion.
func after(j *job, f form, r uint64, flushes bool) uint64 {
	if j.Has("ftz") && flushes && f.subnormal(r) {
		r &= f.sign()
	}
	n := f.decode(r)
	if j.Has("sat") {
		switch {
		case n.nan || n.neg:
			return 0
		case n.inf || n.r.Cmp(big.NewRat(1, 1)) > 0:
			return f.one()
		}
	}
	if j.Has("relu") && n.neg && !n.nan {
		return 0
	}
	if j.Has("satfinite") && n.inf {
		r--
	}
	return r
}

// atomic computes the new value of a memory element. in[0] is the old value.
func atomic(j *job, in []uint64) uint64 {
	t := j.typ
	bits := 8 * t.Size()
	switch {
	case j.Has("exch"):
		return in[1]
	case j.Has("cas"):
		if in[0] == in[1] {
			return in[2]
		}
		return in[0]
	case j.Has("inc"):
		if in[0] >= in[1] {
			return 0
		}
		return in[0] + 1
	case j.Has("dec"):
		if in[0] == 0 || in[0] > in[1] {
			return in[1]
		}
		return in[0] - 1
	case t.Float():
		f := formOf(t)
		one := func(p []uint64) uint64 {
			if j.Has("add") {
				return f.sum(f.decode(p[0]), f.decode(p[1]), "rn", p...)
			}
			k := *j
			k.op = "max"
			if j.Has("min") {
				k.op = "min"
			}
			return smallest(&k, f, p[0], p[1])
		}
		if elem(t) != isa.NoType {
			return elements(2, 16, in[:2], one)
		}
		return one(in[:2])
	}
	a, b := intOf(in[0], t), intOf(in[1], t)
	switch {
	case j.Has("add"):
		return wrap(add(a, b), bits)
	case j.Has("and"):
		return wrap(new(big.Int).And(a, b), bits)
	case j.Has("or"):
		return wrap(new(big.Int).Or(a, b), bits)
	case j.Has("xor"):
		return wrap(new(big.Int).Xor(a, b), bits)
	case (a.Cmp(b) < 0) == j.Has("min"):
		return in[0]
	}
	return in[1]
}
