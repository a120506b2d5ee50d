package lanes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/approx"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/testsize"
)

// entry is a generated function: the parameters before the mask as name:type, with the result d first if there is one,
// and a call.
type entry struct {
	name, params string
	call         func(*args) uint32
}

// args are the arguments by position of the parameter.
type args struct {
	v32  [5]*V32
	v64  [5]*V64
	u32  [5]uint32
	u64  [5]uint64
	mask uint32
}

// param is a parsed parameter.
type param struct{ name, typ string }

func (e *entry) parse() (ps []param, hasD bool) {
	for _, f := range strings.Fields(e.params) {
		name, typ, _ := strings.Cut(f, ":")
		ps = append(ps, param{name, typ})
	}
	return ps, len(ps) > 0 && ps[0].name == "d"
}

// entryOf returns the function with a name.
func entryOf(name string) *entry {
	return &generated[slices.IndexFunc(generated, func(e entry) bool { return e.name == name })]
}

// compiledOps are lists of one operation, by the operation.
var compiledOps = map[Op]*Compiled{}

// do calls the function, or, in a tier with machine code, compiled code for its operation. Arguments that are the same
// vector are one register.
func (e *entry) do(x *args) uint32 {
	if Best() != Compiling {
		return e.call(x)
	}
	var f files
	o := Op{Code: Code(1 + slices.IndexFunc(generated, func(g entry) bool { return g.name == e.name }))}
	fields := []*int32{&o.D, &o.A, &o.B, &o.C}
	ps, hasD := e.parse()
	at := 0
	if !hasD {
		at = 1
	}
	for i, p := range ps {
		kind, n := none, i
		if at < 4 {
			kind = operands[o.Code][at]
		}
		switch kind {
		case vectors32:
			n = slices.Index(x.v32[:], x.v32[i])
			f.v32[n] = *x.v32[i]
		case vectors64:
			n = slices.Index(x.v64[:], x.v64[i])
			f.v64[n] = *x.v64[i]
		case preds:
			n = i + 1
			f.preds[n] = x.u32[i]
		case scalars:
			f.scalars[n] = x.u64[i]
			if p.typ == "uint32" {
				f.scalars[n] = x.u64[i]<<32 | uint64(x.u32[i])
			}
		default:
			o.Imm = x.u64[i]
			if p.typ == "uint32" {
				o.Imm = uint64(x.u32[i])
			}
			continue
		}
		*fields[at] = int32(n) * sizes[kind]
		at++
	}
	c := compiledOps[o]
	if c == nil {
		c = Compile([]Op{o, {}}, []int32{0}, nil, false)
		compiledOps[o] = c
	}
	c.Run(0, f.regs(), x.mask)
	switch {
	case hasD && ps[0].typ == "*V32":
		*x.v32[0] = f.v32[o.D/sizes[vectors32]]
	case hasD:
		*x.v64[0] = f.v64[o.D/sizes[vectors64]]
	}
	return f.preds[0] & x.mask
}

// asPTX has the instruction that computes the same in a lane, and the parameters that are its sources. Forms with a
// scalar are found through the function of which they are a form.
var asPTX = map[string]string{
	"RSub#S": "sub.u# s a", "Not#": "not.b# a", "Mad#": "mad.lo.u# a b c", "Mul#": "mul.lo.u# a b",
	"Add#": "add.u# a b", "Sub#": "sub.u# a b", "And#": "and.b# a b", "Or#": "or.b# a b", "Xor#": "xor.b# a b",
	"Shl#": "shl.b# a n", "ShrU#": "shr.u# a n", "ShrS#": "shr.s# a n",
	"MinS#": "min.s# a b", "MinU#": "min.u# a b", "MaxS#": "max.s# a b", "MaxU#": "max.u# a b",
	"EQ#": "setp.eq.u# a b", "NE#": "setp.ne.u# a b", "LTS#": "setp.lt.s# a b", "LTU#": "setp.lt.u# a b",
	"LES#": "setp.le.s# a b", "LEU#": "setp.le.u# a b", "GTS#S": "setp.gt.s# a s", "GTU#S": "setp.gt.u# a s",
	"GES#S": "setp.ge.s# a s", "GEU#S": "setp.ge.u# a s",
	"Sel#": "selp.b# a b cond", "Sel#VS": "selp.b# a b cond", "Sel#SV": "selp.b# a b cond", "Sel#SS": "selp.b# a b cond",
	"Copy#": "mov.b# a", "Set#": "mov.b# s", "Popc#": "popc.b# a", "Clz#": "clz.b# a",
	"MulHiU32": "mul.hi.u32 a b", "MulHiS32": "mul.hi.s32 a b", "DivU32": "div.u32 a b", "DivS32": "div.s32 a b",
	"RemU32": "rem.u32 a b", "RemS32": "rem.s32 a b", "Brev32": "brev.b32 a",
	"ShfL32S": "shf.l.wrap.b32 lo hi n", "ShfR32S": "shf.r.wrap.b32 lo hi n", "Lop3": "lop3.b32 a b c lut",
	"Prmt32S": "prmt.b32 a b s",
	"SExt64":  "cvt.s64.s32 a", "ZExt64": "cvt.u64.u32 a", "Low32": "cvt.u32.u64 a",
	"SExtBits#": "bfe.s# a 0 n", "ZExtBits#": "bfe.u# a 0 n", "MulU64": "mul.wide.u32 a b", "MulS64": "mul.wide.s32 a b",
	"FAdd#": "add.rn.f# a b", "FSub#": "sub.rn.f# a b", "FMul#": "mul.rn.f# a b", "FDiv#": "div.rn.f# a b",
	"FRSub#S": "sub.rn.f# s a", "FRDiv#S": "div.rn.f# s a", "FMA#": "fma.rn.f# a b c",
	"FSqrt#": "sqrt.rn.f# a", "FRcp#": "rcp.rn.f# a", "FNeg#": "neg.f# a", "FAbs#": "abs.f# a",
	"FMin#": "min.f# a b", "FMax#": "max.f# a b",
	"FEQ#": "setp.eq.f# a b", "FNE#": "setp.ne.f# a b", "FLT#": "setp.lt.f# a b", "FLE#": "setp.le.f# a b",
	"FGT#": "setp.gt.f# a b", "FGE#": "setp.ge.f# a b",
	"FEQU#": "setp.equ.f# a b", "FNEU#": "setp.neu.f# a b", "FLTU#": "setp.ltu.f# a b", "FLEU#": "setp.leu.f# a b",
	"FGTU#": "setp.gtu.f# a b", "FGEU#": "setp.geu.f# a b", "FNum#": "setp.num.f# a b", "FNaN#": "setp.nan.f# a b",
	"FRsqrt32": "rsqrt.approx.f32 a", "FSat32": "cvt.sat.f32.f32 a",
	"S32toF32": "cvt.rn.f32.s32 a", "U32toF32": "cvt.rn.f32.u32 a", "S32toF64": "cvt.rn.f64.s32 a", "U32toF64": "cvt.rn.f64.u32 a",
	"S64toF32": "cvt.rn.f32.s64 a", "U64toF32": "cvt.rn.f32.u64 a", "S64toF64": "cvt.rn.f64.s64 a", "U64toF64": "cvt.rn.f64.u64 a",
	"F32toF64": "cvt.f64.f32 a", "F64toF32": "cvt.rn.f32.f64 a",
	"FMAM32": "fma.rm.f32 a b c", "AbsS#": "abs.s# a",
	"FRoundN#": "cvt.rni.f#.f# a", "FRoundM#": "cvt.rmi.f#.f# a", "FRoundP#": "cvt.rpi.f#.f# a", "FRoundZ#": "cvt.rzi.f#.f# a",
	"F32toS32N": "cvt.rni.s32.f32 a", "F32toS32M": "cvt.rmi.s32.f32 a", "F32toS32P": "cvt.rpi.s32.f32 a",
	"F32toS32Z": "cvt.rzi.s32.f32 a", "F32toU32Z": "cvt.rzi.u32.f32 a", "F32toS64Z": "cvt.rzi.s64.f32 a", "F32toU64Z": "cvt.rzi.u64.f32 a",
	"F64toS32Z": "cvt.rzi.s32.f64 a", "F64toU32Z": "cvt.rzi.u32.f64 a", "F64toS64Z": "cvt.rzi.s64.f64 a", "F64toU64Z": "cvt.rzi.u64.f64 a",
}

// reference computes a lane from the values of the parameters after d.
type reference func(v []uint64, lane uint64) uint64

// asGo computes functions that are not an instruction.
var asGo = map[string]reference{
	"Affine32":   func(v []uint64, l uint64) uint64 { return uint64(uint32(v[0] + l*v[1])) },
	"Affine64":   func(v []uint64, l uint64) uint64 { return v[0] + l*v[1] },
	"EQAffine32": func(v []uint64, l uint64) uint64 { return truth(uint32(v[0]) == uint32(v[1]+l*v[2])) },
	"EQAffine64": func(v []uint64, l uint64) uint64 { return truth(v[0] == v[1]+l*v[2]) },
	"FExpTwo32": func(v []uint64, _ uint64) uint64 {
		return uint64(bits32(float32(approx.Exp2(float64(f32(uint32(v[0])))))))
	},
	"FLogTwo32": func(v []uint64, _ uint64) uint64 {
		return uint64(bits32(float32(approx.Log2(float64(f32(uint32(v[0])))))))
	},
	"Bool32": func(v []uint64, _ uint64) uint64 { return v[0] * v[1] },
	"Bool64": func(v []uint64, _ uint64) uint64 { return v[0] * v[1] },
	"Odd32":  func(v []uint64, _ uint64) uint64 { return v[0] & 1 },
	"Odd64":  func(v []uint64, _ uint64) uint64 { return v[0] & 1 },
	"High32": func(v []uint64, _ uint64) uint64 { return v[0] >> 32 },
	"Pack64": func(v []uint64, _ uint64) uint64 { return v[0] | v[1]<<32 },
	"FFtz32": func(v []uint64, _ uint64) uint64 {
		if x := v[0] & 0x7fffffff; x < 0x00800000 {
			return v[0] & 0x80000000
		}
		return v[0]
	},
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// find returns the reference of a function.
func find(t *testing.T, e *entry, spellings map[string]*isa.Spelling) reference {
	t.Helper()
	if f := asGo[e.name]; f != nil {
		return f
	}
	ps, hasD := e.parse()
	if hasD {
		ps = ps[1:]
	}
	text, names := lookUp(e, ps)
	if text == "" {
		t.Fatalf("%s: nothing to compare with; add it to asPTX or asGo", e.name)
	}
	words := strings.Fields(text)
	s := spellings[words[0]]
	if s == nil {
		t.Fatalf("%s: isa spells no %s", e.name, words[0])
	}
	in := s.Inst()
	from := make([]int, 0, 4) // which parameter each source is; -1 for 0
	for _, w := range words[1:] {
		at := -1
		for i, n := range names {
			if n == w {
				at = i
			}
		}
		if at < 0 && w != "0" {
			t.Fatalf("%s: no parameter %s", e.name, w)
		}
		from = append(from, at)
	}
	return func(v []uint64, _ uint64) uint64 {
		var a isa.Args
		for i, at := range from {
			if at >= 0 {
				a.S[i] = v[at]
			}
		}
		in.Eval(&in, &a)
		return a.D[0]
	}
}

// lookUp returns the line of asPTX, and its names of the parameters.
func lookUp(e *entry, ps []param) (string, []string) {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.name
	}
	for _, base := range []string{e.name, strings.TrimSuffix(e.name, "S"), strings.TrimSuffix(e.name, "SB")} {
		for _, w := range []string{"", "32", "64"} {
			key := base
			if w != "" {
				key = strings.Replace(base, w, "#", 1)
			}
			text, ok := asPTX[key]
			if !ok {
				continue
			}
			if base != e.name { // the operand that is a scalar goes by its own name
				own := strings.Fields(text)[1:]
				for i := range names {
					if names[i] == "s" {
						names[i] = own[i]
					}
				}
			}
			return strings.ReplaceAll(text, "#", w), names
		}
	}
	return "", nil
}

var special32 = []uint32{
	0, 1, 2, 31, 32, 33, 63, 64, 65, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe,
	0xffffffff,
	0x00000003, 0x007fffff, 0x00800000, 0x807fffff, 0x80800000, // subnormal and normal
	0x3f800000, 0xbf800000, 0x3f000000, 0xbf000000, 0x3fc00000, 0x40000000, 0x3f7fffff, 0x3f800001, 0x33800000,
	0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5effffff, 0x5f000000, 0xdf000000, 0x5f7fffff, 0x5f800000,
	0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, // the largest and infinity
	0x7f800001, 0xff800001, 0x7fbfffff, 0x7fc00000, 0xffc00000, 0x7fc12345, // NaN, first signalling
}

var special64 = []uint64{
	0, 1, 2, 31, 32, 63, 64, 65, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
	0x8000000000000001, 0xffffffffffffffff,
	0x000fffffffffffff, 0x0010000000000000, 0x800fffffffffffff,
	0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
	0x7ff0000000000001, 0xfff0000000000001, 0x7ff8000000000000, 0xfff8000000000000, 0x7ff8000000012345, 0xfff4000000054321,
	math.Float64bits(1), math.Float64bits(-1), math.Float64bits(0.5), math.Float64bits(-0.5), math.Float64bits(1.5),
	math.Float64bits(1<<31 - 1), math.Float64bits(1<<31 - 0.5), math.Float64bits(1 << 31), math.Float64bits(-1 << 31),
	math.Float64bits(-1<<31 - 0.5), math.Float64bits(-1<<31 - 1), math.Float64bits(1<<32 - 1), math.Float64bits(1<<32 - 0.5),
	math.Float64bits(1 << 32), 0x43dfffffffffffff, 0x43e0000000000000, 0xc3e0000000000000, 0x43efffffffffffff, 0x43f0000000000000,
	0x47efffffe0000000, 0x47effffff0000000, 0x36a0000000000000, 0x3690000000000000, 0x3690000000000001, // f32's ends
}

func random32(r *rand.Rand) uint32 {
	switch r.IntN(6) {
	case 0, 1:
		return special32[r.IntN(len(special32))]
	case 2:
		return math.Float32bits(float32(r.NormFloat64()))
	case 3:
		return uint32(r.IntN(64)) - 8
	case 4:
		return math.Float32bits(float32(r.IntN(2048)-1024) / 4)
	}
	return r.Uint32()
}

func random64(r *rand.Rand) uint64 {
	switch r.IntN(7) {
	case 0, 1:
		return special64[r.IntN(len(special64))]
	case 2:
		return math.Float64bits(r.NormFloat64())
	case 3:
		return uint64(r.IntN(64)) - 8
	case 4:
		return math.Float64bits(float64(r.IntN(2048)-1024) / 4)
	case 5:
		return math.Float64bits(math.Ldexp(r.NormFloat64(), r.IntN(80)))
	}
	return r.Uint64()
}

func randomMask(r *rand.Rand) uint32 {
	switch r.IntN(6) {
	case 0:
		return 0
	case 1, 2:
		return ^uint32(0)
	case 3:
		return 1 << r.IntN(32)
	case 4:
		return 1<<r.IntN(32) - 1
	}
	return r.Uint32()
}

// fill sets a parameter to a random value that its contract allows.
func (x *args) fill(r *rand.Rand, i int, p param, base string) {
	x.v32[i], x.v64[i] = new(V32), new(V64)
	near := r.IntN(2) == 0
	for l := range 32 {
		x.v32[i][l], x.v64[i][l] = random32(r), random64(r)
		if near && i > 0 && r.IntN(2) == 0 { // like the lane of the parameter before
			x.v32[i][l], x.v64[i][l] = x.v32[i-1][l], x.v64[i-1][l]
		}
	}
	x.u32[i], x.u64[i] = random32(r), random64(r)
	if near && i > 0 {
		x.u32[i], x.u64[i] = x.v32[i-1][7], x.v64[i-1][7]
	}
	switch {
	case strings.Contains(base, "ExtBits") && p.name == "n":
		x.u32[i] = 1 + uint32(r.IntN(32))
		if strings.HasSuffix(base, "64") {
			x.u32[i] = 1 + uint32(r.IntN(64))
		}
	case p.name == "n":
		x.u32[i] = []uint32{0, 1, 5, 31, 32, 33, 63, 64, 65, 255, 256, 1 << 31, 1<<32 - 1, uint32(r.IntN(64))}[r.IntN(14)]
		for l := range 32 {
			if r.IntN(2) == 0 {
				x.v32[i][l] = uint32(r.IntN(70))
			}
		}
	case p.name == "lut":
		x.u32[i] = uint32(r.IntN(256))
	case base == "Prmt32S" && p.name == "s" && near:
		x.u32[i] = r.Uint32() & 0x77777777
	case base == "Prmt32S" && p.name == "s":
		x.u32[i] = r.Uint32()
	}
}

// value returns the value of parameter i in lane l for the reference.
func (x *args) value(i, l int, p param) uint64 {
	switch p.typ {
	case "*V32":
		return uint64(x.v32[i][l])
	case "*V64":
		return x.v64[i][l]
	case "uint32":
		if p.name == "cond" {
			return uint64(x.u32[i] >> l & 1)
		}
		return uint64(x.u32[i])
	}
	return x.u64[i]
}

// alias makes parameters of one type the same vector: d and a source, or two sources.
func (x *args) alias(r *rand.Rand, ps []param) {
	if len(ps) < 2 || r.IntN(2) == 0 {
		return
	}
	i, j := r.IntN(len(ps)), r.IntN(len(ps))
	if ps[i].typ == ps[j].typ {
		x.v32[i], x.v64[i] = x.v32[j], x.v64[j]
	}
}

// bothWays runs a test on each tier of the machine, the best one first.
func bothWays(t *testing.T, f func(t *testing.T)) {
	defer use(possible)
	for tier := possible; ; tier-- {
		use(tier)
		t.Run(tier.String(), f)
		if tier == 0 {
			break
		}
	}
}

// use selects a tier.
func use(t Tier) { current.Store(uint32(t)) }

func TestGenerated(t *testing.T) {
	spellings := map[string]*isa.Spelling{}
	list := isa.Spellings()
	for i := range list {
		spellings[list[i].Text] = &list[i]
	}
	rounds := testsize.Of(60, 80, 300)
	bothWays(t, func(t *testing.T) {
		for i := range generated {
			e := &generated[i]
			ref := find(t, e, spellings)
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range rounds {
				if !check(t, e, ref, r) {
					break
				}
			}
		}
	})
}

// TestSpecial checks combinations of the special values: all pairs, and all triples for FMA.
func TestSpecial(t *testing.T) {
	spellings := map[string]*isa.Spelling{}
	list := isa.Spellings()
	for i := range list {
		spellings[list[i].Text] = &list[i]
	}
	bothWays(t, func(t *testing.T) {
		for i := range generated {
			e := &generated[i]
			ps, hasD := e.parse()
			if !hasD {
				ps = append([]param{{}}, ps...)
			}
			vectors := 0
			for _, p := range ps[1:] {
				if strings.HasPrefix(p.typ, "*") {
					vectors++
				}
			}
			if vectors < 2 && len(ps) != 2 || len(ps) > 4 || len(ps) == 4 && (testing.Short() || !strings.HasPrefix(e.name, "FMA") || vectors < 3) {
				continue
			}
			trySpecial(t, e, find(t, e, spellings), len(ps)-1)
		}
	})
}

// trySpecial checks all combinations of the special values.
func trySpecial(t *testing.T, e *entry, ref reference, n int) {
	count := max(len(special32), len(special64))
	total := 1
	for range n {
		total *= count
	}
	r := rand.New(rand.NewPCG(5, 6))
	for from := 0; from < total; from += 32 {
		ok := checkWith(t, e, ref, r, func(x *args, ps []param) {
			for l := range 32 {
				k := from + l
				for i := range ps {
					if ps[i].name == "d" {
						continue
					}
					x.v32[i][l], x.v64[i][l] = special32[k%count%len(special32)], special64[k%count%len(special64)]
					k /= count
				}
			}
			x.mask = ^uint32(0)
		})
		if !ok {
			return
		}
	}
}

// check calls a function once, with random arguments.
func check(t *testing.T, e *entry, ref reference, r *rand.Rand) bool {
	t.Helper()
	return checkWith(t, e, ref, r, func(x *args, ps []param) {
		x.alias(r, ps)
		x.mask = randomMask(r)
	})
}

// checkWith calls a function once, with arguments that prepare has changed, and compares every lane.
func checkWith(t *testing.T, e *entry, ref reference, r *rand.Rand, prepare func(*args, []param)) bool {
	t.Helper()
	ps, hasD := e.parse()
	var x args
	for i, p := range ps {
		x.fill(r, i, p, e.name)
	}
	prepare(&x, ps)
	if strings.HasPrefix(e.name, "EQAffine") { // mostly affine
		for l := range 32 {
			if r.IntN(9) > 0 {
				x.v32[0][l], x.v64[0][l] = x.u32[1]+uint32(l)*x.u32[2], x.u64[1]+uint64(l)*x.u64[2]
			}
		}
	}
	first := 0
	if hasD {
		first = 1
	}
	var want [32]uint64
	var values [32][]uint64
	for l := range 32 {
		for i := first; i < len(ps); i++ {
			values[l] = append(values[l], x.value(i, l, ps[i]))
		}
		switch {
		case x.mask>>l&1 != 0:
			want[l] = ref(values[l], uint64(l))
		case hasD:
			want[l] = x.value(0, l, ps[0])
		}
	}
	got := e.do(&x)
	for l := range 32 {
		g := uint64(got >> l & 1)
		if hasD {
			g = x.value(0, l, ps[0])
		}
		if g != want[l] {
			t.Errorf("%s(%s), mask %08x, lane %d: %x gives %#x, want %#x", e.name, e.params, x.mask, l, values[l], g, want[l])
			return false
		}
	}
	return true
}

// TestLop3 checks every table.
func TestLop3(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		e := entryOf("Lop3")
		var a, b, c, d V32
		for l := range uint32(32) {
			a[l], b[l], c[l] = 0xf0f0f0f0+l, 0xcccccccc-l, 0xaaaaaaaa^l<<9
		}
		for lut := range uint32(256) {
			e.do(&args{v32: [5]*V32{&d, &a, &b, &c}, u32: [5]uint32{4: lut}, mask: ^uint32(0)})
			for l := range d {
				for bit := range 32 {
					i := a[l]>>bit&1<<2 | b[l]>>bit&1<<1 | c[l]>>bit&1
					if d[l]>>bit&1 != lut>>i&1 {
						t.Fatalf("lut %#x, lane %d, bit %d", lut, l, bit)
					}
				}
			}
		}
	})
}

// TestApprox compares f32 numbers of all exponents with the bits of package approx.
func TestApprox(t *testing.T) {
	step := uint32(9973)
	if testing.Short() {
		step = 99991
	}
	bothWays(t, func(t *testing.T) {
		exp2, log2 := entryOf("FExpTwo32"), entryOf("FLogTwo32")
		var a, e, g V32
		for x := uint64(0); x < 1<<32; x += 32 * uint64(step) {
			for l := range a {
				a[l] = uint32(x) + uint32(l)*step
			}
			exp2.do(&args{v32: [5]*V32{&e, &a}, mask: ^uint32(0)})
			log2.do(&args{v32: [5]*V32{&g, &a}, mask: ^uint32(0)})
			for l := range a {
				if e[l] != fexp2(a[l]) || g[l] != flog2(a[l]) {
					t.Fatalf("of %g: 2^x %g, log2 %g; want %g, %g", f32(a[l]), f32(e[l]), f32(g[l]), f32(fexp2(a[l])), f32(flog2(a[l])))
				}
			}
		}
	})
}

// TestDivide32 checks quotients next to integers, where a wrong rounding would show.
func TestDivide32(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		div, rem := entryOf("DivU32"), entryOf("RemU32")
		var a, b, q, m V32
		for range 3000 {
			for l := range a {
				b[l] = max(1, r.Uint32()>>r.IntN(32))
				a[l] = b[l]*(r.Uint32()>>r.IntN(32)) + uint32(r.IntN(3)) - 1
			}
			div.do(&args{v32: [5]*V32{&q, &a, &b}, mask: ^uint32(0)})
			rem.do(&args{v32: [5]*V32{&m, &a, &b}, mask: ^uint32(0)})
			for l := range a {
				if q[l] != a[l]/b[l] || m[l] != a[l]%b[l] {
					t.Fatalf("%d / %d gives %d, %d", a[l], b[l], q[l], m[l])
				}
			}
		}
	})
}

// TestTime prints the time of each function with a full mask. It is the minimum of many runs, because the machine may
// be busy.
func TestTime(t *testing.T) {
	if testing.Short() || !testing.Verbose() {
		t.Skip("prints times: go test -v -run TestTime")
	}
	var b strings.Builder
	for i := range generated {
		e := &generated[i]
		var x args
		ps, _ := e.parse()
		r := rand.New(rand.NewPCG(3, 4))
		for i, p := range ps {
			x.fill(r, i, p, e.name)
			for l := range 32 { // ordinary numbers
				x.v32[i][l], x.v64[i][l] = math.Float32bits(1+r.Float32()), math.Float64bits(1+r.Float64())
			}
		}
		x.mask = ^uint32(0)
		full := least(func() { e.call(&x) })
		x.mask = 0x00ffff71
		fmt.Fprintf(&b, "%-12s %6.1f ns, part of the lanes %6.1f ns\n", e.name, full, least(func() { e.call(&x) }))
	}
	t.Log("\n" + b.String())
}

// least returns the shortest time of f in ns.
func least(f func()) float64 {
	const calls = 256
	best := math.Inf(1)
	for range 200 {
		from := time.Now()
		for range calls {
			f()
		}
		best = min(best, float64(time.Since(from).Nanoseconds())/calls)
	}
	return best
}
