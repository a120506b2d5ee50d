package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"fencepost.dev/fencepost/internal/isa"
)

// inputs selects the sources of a spelling's vectors. All spellings of one kind have the same ones, so a file has each
// set once. For atomics the first source is the old value.
func inputs(j *job) [][]uint64 {
	types := j.Src
	if j.Row.Class == isa.Atomic {
		types = append([]isa.Type{j.typ}, j.Src...)
	}
	if in := j.Inst(); in.CarryIn {
		types = append(append([]isa.Type{}, types[:len(types)-1]...), isa.Pred)
	}
	rnd := rand.New(rand.NewPCG(1, seedOf(types)))
	if strings.HasPrefix(j.Row.Doc, "Video") {
		return selects(j, types, rnd)
	}
	switch j.op {
	case "set", "setp":
		return comparisons(types, rnd)
	case "slct", "selp", "mov", "createpolicy", "copysign", "testp":
		return few(types, rnd, 12)
	case "cvt":
		return conversions(j, types, rnd)
	case "alloca":
		return allocations()
	case "cvta", "isspacep":
		return addresses(types[0])
	case "bfe", "bfi", "szext", "bmsk", "fns", "shl", "shr", "shf", "prmt":
		return positions(types, rnd)
	case "lop3":
		return tables(types, rnd)
	case "sin", "cos", "lg2", "ex2", "tanh":
		return arguments(types[0], rnd)
	case "min", "max":
		if types[0].Float() {
			return crossed(types, rnd, 12)
		}
	}
	if j.Row.Class == isa.Atomic {
		return atomics(types, rnd)
	}
	if types[0].Float() {
		return crossed(types, rnd, 40)
	}
	return crossed(types, rnd, 16)
}

func seedOf(types []isa.Type) uint64 {
	h := uint64(len(types))
	for _, t := range types {
		h = h*31 + uint64(len(t.String())) + uint64(t.Size())*7 + flag(t.Float())*3
	}
	return h
}

// edges are the special values of types.
func edges(t isa.Type) []uint64 {
	switch t {
	case isa.Pred:
		return []uint64{0, 1}
	case isa.U8x4, isa.S8x4:
		e := edges(isa.U8)
		out := make([]uint64, len(e))
		for i := range e {
			for k := range 4 {
				out[i] |= e[(i*(k+1)+k*5)%len(e)] << (8 * k)
			}
		}
		return out
	case isa.F16x2, isa.BF16x2, isa.U16x2, isa.S16x2, isa.F32x2:
		e := edges(map[isa.Type]isa.Type{isa.F16x2: isa.F16, isa.BF16x2: isa.BF16, isa.U16x2: isa.U16, isa.S16x2: isa.S16, isa.F32x2: isa.F32}[t])
		out := make([]uint64, len(e))
		for i := range e {
			out[i] = e[i] | e[(i*5+3)%len(e)]<<(4*t.Size())
		}
		return out
	}
	if t.Float() {
		f := formOf(t)
		one, inf := f.one(), f.infinity()
		return []uint64{0, f.sign(), one, f.sign() | one, one + 1, one - 1, 1, f.sign() | 1, 1<<f.mant - 1, 1 << f.mant,
			inf - 1, f.sign() | (inf - 1), inf, f.sign() | inf, inf | 1<<(f.mant-1), f.sign() | inf | 3, one + 1<<(f.mant-1)}
	}
	n := 8 * t.Size()
	max := uint64(1)<<(n-1)<<1 - 1
	return []uint64{0, 1, max, max >> 1, max>>1 + 1, 2, max - 1, 0x5a & max, max / 3}
}

// random returns a random value. Floats have moderate exponents, so that operations do not overflow or underflow.
func random(t isa.Type, rnd *rand.Rand) uint64 {
	switch t {
	case isa.F16x2:
		return random(isa.F16, rnd) | random(isa.F16, rnd)<<16
	case isa.BF16x2:
		return random(isa.BF16, rnd) | random(isa.BF16, rnd)<<16
	case isa.F32x2:
		return random(isa.F32, rnd) | random(isa.F32, rnd)<<32
	case isa.Pred:
		return rnd.Uint64() & 1
	}
	if t.Float() {
		f := formOf(t)
		span := uint64(min(12, 1<<f.exp/4))
		e := uint64(1<<(f.exp-1)-1) - span/2 + rnd.Uint64N(span)
		return rnd.Uint64N(2)*f.sign() | e<<f.mant | rnd.Uint64()&(1<<f.mant-1)
	}
	return rnd.Uint64() >> (64 - 8*t.Size())
}

// wild returns a random float of any exponent.
func wild(t isa.Type, rnd *rand.Rand) uint64 {
	if t.Float() && elem(t) == isa.NoType && t != isa.F32x2 {
		return rnd.Uint64() >> (64 - 8*t.Size())
	}
	return random(t, rnd)
}

// crossed returns all pairs of edges and n random vectors.
func crossed(types []isa.Type, rnd *rand.Rand, n int) [][]uint64 {
	first := edges(types[0])
	var out [][]uint64
	steps := 1
	if len(types) > 1 {
		steps = 5
	}
	for s := range steps {
		for i, x := range first {
			v := []uint64{x}
			for k, t := range types[1:] {
				e := edges(t)
				v = append(v, e[(i*(s+1+k)+s*(2+k))%len(e)])
			}
			out = append(out, v)
		}
	}
	for i := range n {
		v := make([]uint64, len(types))
		for k, t := range types {
			v[k] = random(t, rnd)
			if i%4 == 3 {
				v[k] = wild(t, rnd)
			}
		}
		out = append(out, v)
	}
	return append(out, hard(types)...)
}

// hard returns vectors that distinguish single from double rounding, and results near the largest subnormals.
func hard(types []isa.Type) [][]uint64 {
	f32s := func(xs ...float32) []uint64 {
		out := make([]uint64, len(xs))
		for i, x := range xs {
			out[i] = uint64(math.Float32bits(x))
		}
		return out
	}
	f64s := func(xs ...float64) []uint64 {
		out := make([]uint64, len(xs))
		for i, x := range xs {
			out[i] = math.Float64bits(x)
		}
		return out
	}
	tiny := float32(math.SmallestNonzeroFloat32)
	switch {
	case types[0] == isa.F32 && len(types) == 3:
		return [][]uint64{
			// The product is next to the midpoint of two floats. The addend decides the direction, but is too small for
			// a float64 sum.
			f32s(1+0x1p-12, 1+0x1p-12, 0x1p-60), f32s(1+0x1p-12, 1+0x1p-12, -0x1p-60), f32s(0x1.000002p0, 0x1.8p-24, 0x1p0),
			f32s(0x1.001p0, 0x1.001p0, tiny), f32s(0x1.001p0, 0x1.001p0, -tiny),
			f32s(0x1.000002p0, -0x1.000002p0, 0x1.000004p0), f32s(3, -1.0/3, 1), f32s(0x1p-75, 0x1p-75, tiny), f32s(0x1p-100, -0x1p-49, tiny),
			f32s(0x1p127, 2, -0x1p127), f32s(0x1.fffffep127, 1, 0x1p103), f32s(0x1.fffffep127, 1, 0x1p102), f32s(0x1p-126, 0x1.fffffep-1, 0), f32s(0x1p-126, 0x1.fffffep-1, -tiny)}
	case types[0] == isa.F32 && len(types) == 2:
		return [][]uint64{f32s(1, 0x1p-24), f32s(1, 0x1.000002p-24), f32s(1, -0x1p-25), f32s(1, -0x1.000002p-25), f32s(0x1.000002p0, 0x1p-24),
			f32s(0x1p-126, 0x1.fffffep-1), f32s(0x1.8p-149, 0.5), f32s(0x1p-149, 0.5), f32s(0x1.8p-148, 0.5), f32s(0x1.fffffep127, 0x1p103), f32s(0x1.fffffep127, 0x1p102),
			f32s(1, 3), f32s(-1, 3), f32s(2, 3), f32s(0x1p-140, 0x1p10), f32s(0x1p-126, 3), f32s(1, tiny), f32s(5, -5)}
	case types[0] == isa.F64 && len(types) == 3:
		return [][]uint64{f64s(1+0x1p-27, 1+0x1p-27, 0x1p-200), f64s(1+0x1p-27, 1+0x1p-27, -0x1p-200), f64s(3, -1.0/3, 1), f64s(0x1p-600, 0x1p-600, 5e-324),
			f64s(0x1p-600, -0x1p-600, 5e-324), f64s(0x1p-538, 0x1p-537, -5e-324), f64s(0x1p-538, -0x1p-537, 5e-324), f64s(0x1p-540, 0x1p-537, -5e-324), f64s(0x1p1023, 2, -0x1p1023), f64s(0x1p-1022, 0.75, 5e-324), f64s(1, 1, -1), f64s(0, -1, 0)}
	case types[0] == isa.F64 && len(types) == 2:
		return [][]uint64{f64s(1, 0x1p-53), f64s(1, 0x1.8p-53), f64s(1, -0x1p-54), f64s(0x1p-1022, 0.75), f64s(5e-324, 0.5), f64s(1.5e-323, 0.5), f64s(1, 3), f64s(-1, 3), f64s(0x1.fffffffffffffp1023, 0x1p970), f64s(0x1.fffffffffffffp1023, 0x1p969), f64s(0x1p-1022, 3), f64s(1, 5e-324), f64s(5, -5), f64s(5e-324, 0x1p600)}
	}
	return nil
}

// few returns n vectors of edges and random values.
func few(types []isa.Type, rnd *rand.Rand, n int) [][]uint64 {
	out := make([][]uint64, n)
	for i := range out {
		for k, t := range types {
			e := edges(t)
			x := e[(i*(k+2)+k)%len(e)]
			if t != isa.Pred && i%4 == 3 {
				x = random(t, rnd)
			}
			out[i] = append(out[i], x)
		}
	}
	return out
}

// comparisons returns smaller, equal, larger and unordered pairs, and pairs that only the sign or a subnormal
// distinguishes.
func comparisons(types []isa.Type, rnd *rand.Rand) [][]uint64 {
	t := types[0]
	var pairs [][2]uint64
	if packed := elem(t); packed != isa.NoType {
		single := comparisons([]isa.Type{packed, packed}, rnd)
		for i, p := range single {
			q := single[(i+3)%len(single)]
			pairs = append(pairs, [2]uint64{p[0] | q[0]<<16, p[1] | q[1]<<16})
		}
	} else if t.Float() {
		f := formOf(t)
		one, s := f.one(), f.sign()
		pairs = [][2]uint64{{one, one + 1}, {one + 1, one}, {s | one, s | one + 1}, {one, one}, {0, s}, {f.nan, one}, {one, f.infinity() | 1},
			{1, 0}, {f.infinity(), one}}
	} else {
		n := 8 * t.Size()
		high := uint64(1) << (n - 1)
		pairs = [][2]uint64{{3, 4}, {4, 3}, {high, high}, {high, 1}, {1, high}, {high + 1, high + 2}}
	}
	var out [][]uint64
	for _, p := range pairs {
		if len(types) == 2 {
			out = append(out, p[:])
			continue
		}
		for c := range uint64(2) {
			out = append(out, []uint64{p[0], p[1], c})
		}
	}
	return out
}

// conversions returns sources near the values that are special for the rounding or the range of the result type.
func conversions(j *job, types []isa.Type, rnd *rand.Rand) [][]uint64 {
	if len(types) > 1 {
		return crossed(types, rnd, 8)
	}
	s, d := types[0], j.typ
	var out [][]uint64
	if _, ok := codeOf(j.Inst().Type2); ok { // all codes
		for x := range uint64(128) {
			out = append(out, []uint64{(x | (255-x)<<8) & (1<<(8*s.Size()) - 1)})
		}
		if s.Size() == 1 {
			for x := range uint64(128) {
				out = append(out, []uint64{x + 128})
			}
		}
		return out
	}
	if _, ok := codeOf(d); ok {
		return crossed(types, rnd, 40)
	}
	put := func(xs ...uint64) {
		for _, x := range xs {
			out = append(out, []uint64{x})
		}
	}
	if !s.Float() {
		put(edges(s)...)
		for range 5 {
			put(random(s, rnd))
		}
		if s.Size() >= 4 { // ties for f32
			put(0x1000001, 0x1000003, 0xfffffe81)
		}
		return out
	}
	f := formOf(s)
	put(0, f.sign(), 1, f.sign()|1, f.infinity(), f.sign()|f.infinity(), f.nan, f.infinity()-1)
	values := []float64{0.5, 1.5, -2.5, 0.75, -0.25, 3, 127.5, -129, 255.5}
	if !d.Float() {
		n := 8 * d.Size()
		values = append(values, math.Ldexp(1, n), -math.Ldexp(1, n-1), math.Ldexp(1, n-1), 1e9)
	} else {
		values = append(values, 1+0x1p-11, 1+0x1p-8, 1+0x1.8p-10, 1+0x1p-24, 0x1p-24, 0x1.8p-25, 0x1p-126, 0x1.cp-134, 0x1p-150, 65519, 65520, 0x1.ffp127, 0x1p120, 0x1.fffffefp127, 1e300)
		g := formOf(d)
		if g.bits() < f.bits() { // halfway between two results, and next to it
			half := f.one() + 1<<(f.mant-g.mant-1)
			put(half, half+1, half-1, half+1<<(f.mant-g.mant), f.sign()|half)
		}
	}
	for _, v := range values {
		x := f.decode64(v)
		put(x)
	}
	return out
}

// decode64 returns the float64 v rounded to the format.
func (f form) decode64(v float64) uint64 {
	return f.finish(f64.decode(math.Float64bits(v)), "rn")
}

func addresses(t isa.Type) [][]uint64 {
	if t == isa.U32 {
		return [][]uint64{{0}, {0x10}, {0x00400000}, {0xfd000010}, {0xfe000020}, {0xff000030}, {0xffffffff}}
	}
	return [][]uint64{{0}, {0x10}, {0x200000001234}, {0x0100000000000040}, {0x0200000000000080}, {0x03000000000000c0}, {0x0400000000000001}}
}

// allocations returns sizes, alignments, numbers of used bytes, and beginnings of the stack.
func allocations() [][]uint64 {
	return [][]uint64{{8, 0, 0, 16}, {1, 0, 3, 16}, {4, 4, 5, 32}, {5, 16, 1, 48}, {0, 0, 8, 0}, {16384, 1, 0, 64}, {16385, 1, 0, 64},
		{16380, 8, 1, 0}, {16376, 8, 1, 0}, {4, 64, 0, 16}, {0xffffffff, 0, 0, 0}, {8, 0, 16380, 0}}
}

// positions returns values with shifts and widths in and out of range.
func positions(types []isa.Type, rnd *rand.Rand) [][]uint64 {
	at := []uint64{0, 1, 4, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000005, 0xffffffff}
	var out [][]uint64
	for i := range 3 * len(at) {
		v := make([]uint64, len(types))
		for k, t := range types {
			switch {
			case k == 0 || len(types) == 4 && k == 1:
				v[k] = random(t, rnd)
				if i%5 == 0 {
					v[k] = edges(t)[i/5%len(edges(t))]
				}
			case t.Size() == 8 || i%3 == 2:
				v[k] = random(t, rnd)
			default:
				v[k] = at[(i*(k+k*k)+i/len(at)*3)%len(at)]
			}
		}
		out = append(out, v)
	}
	return out
}

// tables returns lop3 truth tables with operands that select every row of them.
func tables(types []isa.Type, rnd *rand.Rand) [][]uint64 {
	var out [][]uint64
	for _, lut := range []uint64{0, 0xff, 0xf0, 0xcc, 0xaa, 0x80, 0xfe, 0x96, 0xe8, 0xca, 0x01, 0x3c} {
		v := []uint64{0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, lut}
		if len(out)%3 == 2 {
			v = []uint64{rnd.Uint64() >> 32, rnd.Uint64() >> 32, rnd.Uint64() >> 32, lut}
		}
		if len(types) == 5 {
			v = append(v, uint64(len(out)%2))
		}
		out = append(out, v)
	}
	return out
}

// arguments returns arguments of approximate functions.
func arguments(t isa.Type, rnd *rand.Rand) [][]uint64 {
	if e := elem(t); e != isa.NoType {
		var out [][]uint64
		single := arguments(e, rnd)
		for i := range single {
			out = append(out, []uint64{single[i][0] | single[(i+7)%len(single)][0]<<16})
		}
		return out
	}
	f := formOf(t)
	out := [][]uint64{{0}, {f.sign()}, {1}, {1 << f.mant}, {f.infinity()}, {f.sign() | f.infinity()}, {f.nan}}
	for _, v := range []float64{1, 2, 0.5, -1, 3, 10, -10, 0.1, 1e-3, 100, -100, 3.14159, 1.5707, 4, 1.0001, 0.9999, 1e5, 1e20, 126.5, -126.5, -140, 128, 15.5, -20} {
		out = append(out, []uint64{f.decode64(v)})
	}
	for range 16 {
		out = append(out, []uint64{random(t, rnd)})
	}
	return out
}

// atomics returns old values and operands, with equal ones among them.
func atomics(types []isa.Type, rnd *rand.Rand) [][]uint64 {
	out := few(types, rnd, 16)
	for i := range 4 {
		v := make([]uint64, len(types))
		x := random(types[0], rnd)
		for k := range v {
			v[k] = x
		}
		if len(v) == 3 {
			v[2] = random(types[0], rnd)
		}
		if i > 1 && !types[0].Float() {
			v[0], v[1] = uint64(i), uint64(5-i)
		}
		out = append(out, v)
	}
	return out
}

// addWarp writes the vectors of an instruction of whole warps: a mask, the sources of the 32 lanes, and the results of
// the lanes in the mask. A run of equal values is written once with a count.
func (f *file) addWarp(j *job) {
	fmt.Fprintf(&f.b, "warp %s\n", j.Text)
	for _, c := range warpCases(j) {
		fmt.Fprintf(&f.b, "mask %x\n", c.mask)
		for _, s := range c.src {
			fmt.Fprintf(&f.b, "src %s\n", runs(s[:], 0xffffffff))
		}
		for _, d := range warpOracle(j, c) {
			fmt.Fprintf(&f.b, "dst %s\n", runs(d[:], c.mask))
		}
	}
}

// runs writes the values of the lanes of a mask.
func runs(v []uint64, mask uint32) string {
	s := ""
	for l := 0; l < 32; {
		if mask>>l&1 == 0 {
			l++
			continue
		}
		n := 1
		for l+n < 32 && mask>>(l+n)&1 == 1 && v[l+n] == v[l] {
			n++
		}
		if s != "" {
			s += " "
		}
		s += fmt.Sprintf("%x", v[l])
		if n > 1 {
			s += fmt.Sprintf("*%d", n)
		}
		l += n
	}
	return s
}
