package lanes

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"fencepost.dev/fencepost/internal/testsize"
)

// manyFiles are register files with more registers than the processor has.
type manyFiles struct {
	v32     [40]V32
	v64     [40]V64
	preds   [40]uint32
	scalars [40]uint64
}

func (f *manyFiles) regs() *Regs {
	return &Regs{V32: &f.v32[0], V64: &f.v64[0], Preds: &f.preds[0], Scalars: &f.scalars[0]}
}

func (f *manyFiles) fill(r *rand.Rand) {
	for i := range f.v32 {
		for l := range 32 {
			f.v32[i][l], f.v64[i][l] = random32(r), random64(r)
		}
		f.preds[i], f.scalars[i] = r.Uint32(), random64(r)
		if r.IntN(2) == 0 {
			f.scalars[i] = uint64(r.IntN(70))
		}
	}
}

// randomOp returns an operation on the first n registers of each file. at is the result of Run if it ends there.
func randomOp(r *rand.Rand, c Code, n int, at uint64) Op {
	o := Op{Code: c, Imm: r.Uint64()}
	switch {
	case int(c) <= len(generated):
		o.Imm = randomImm(r, &generated[c-1])
	case c == OpScalarSExt:
		o.Imm %= 64
	case c >= OpLoad8ULine:
		o.Imm = at
	case r.IntN(2) == 0:
		o.Imm = []uint64{1<<32 - 1, 1<<64 - 1}[r.IntN(2)]
	}
	for i, field := range []*int32{&o.D, &o.A, &o.B, &o.C} {
		k := n
		if operands[c][i] == reaches {
			k = 8
		}
		*field = int32(r.IntN(k)) * sizes[operands[c][i]]
	}
	if c == OpSteadyS || c == OpSteadyU {
		o.B, o.C = int32(r.IntN(2000)-1000), int32(r.IntN(2000))
	}
	return o
}

// favourites returns the operations that are frequent in random lists: those that are compiled into groups.
func favourites(t *testing.T) []Code {
	var cs []Code
	for c := Code(1); c < OpGoto; c++ {
		if grouped(c) {
			cs = append(cs, c)
		}
	}
	if len(cs) < 100 {
		t.Fatalf("%d operations are compiled into groups", len(cs))
	}
	return cs
}

// keptScalars is the number of scalars that are addresses throughout the lists of some rounds of TestCompiled.
const keptScalars = 20

// keep allows only copies to write the scalars that are addresses, and accesses to read them.
func keep(o *Op) {
	field := func(p *int32) *int32 {
		*p %= keptScalars * sizes[scalars]
		return p
	}
	switch {
	case o.Code == OpScalarCopy:
		field(&o.D)
		field(&o.A)
	case operands[o.Code][0] == scalars:
		*field(&o.D) += keptScalars * sizes[scalars]
	}
	if o.Code >= OpLoad8ULine && operands[o.Code][1] == scalars {
		field(&o.A)
	}
}

// differsIn compares the logs of lists of operations. Each operation has its number as Imm.
func differsIn(code []Op, x, y *Log, mask uint32) string {
	for i := range x.N {
		if s := differsAt(accessOps[code[y.Heads[i].Imm].Code-OpLoad8ULine], x, y, i, mask); s != "" {
			return s
		}
	}
	return ""
}

// TestCompiled compares compiled lists with the Go code: operations in groups, accesses before which they end and after
// which they begin again, few and many registers, all and some lanes, and in half of the rounds mostly valid addresses.
func TestCompiled(t *testing.T) {
	if possible < Compiling {
		t.Skip("no machine code on this machine")
	}
	often := favourites(t)
	rounds := testsize.Of(200, 300, 1500)
	r := rand.New(rand.NewPCG(51, 52))
	ended, noted := 0, uint64(0)
	for round := range rounds {
		f, m := new(manyFiles), newReach(r)
		f.fill(r)
		told, kept := r.IntN(2) == 0, r.IntN(2) == 0
		for i := range m.reach {
			if m.reach[i].Room = uint64(reachSize); !told {
				m.reach[i].Told = 0
			}
			if r.IntN(2) == 0 {
				m.reach[i].Last = 1
			}
		}
		n := []int{3, 8, 40}[r.IntN(3)]
		for i := range f.scalars { // most are addresses
			if w := &m.reach[r.IntN(8)]; r.IntN(2) == 0 {
				f.scalars[i] = w.Origin + uint64(r.IntN(100))&^uint64(7*r.IntN(2))
			}
		}
		if kept {
			for i := range m.reach {
				m.reach[i].Origin = m.reach[0].Origin
			}
			for i := range keptScalars {
				f.scalars[i] = m.reach[0].Origin + uint64(r.IntN(reachSize/8))*8
				if r.IntN(20) == 0 {
					f.scalars[i] -= 1 << 20
				}
			}
		}
		wide := r.IntN(3)
		var code []Op
		starts := []int32{0}
		length := 1 + r.IntN(300)
		if round == 0 {
			length = 6000 // further than a jump on a condition reaches on ARM
		}
		for at := range length {
			c := often[r.IntN(len(often))]
			if r.IntN(30) == 0 {
				c = Code(1 + r.IntN(int(OpGoto)-1))
			} else if kept && r.IntN(6) == 0 {
				c = OpLoad8ULine + Code(r.IntN(int(OpLoad32Pattern-OpLoad8ULine)))
			}
			if size := lanesOf(c); wide < 2 && size != 0 && size != 8-4*wide && r.IntN(8) != 0 {
				c = OpScalarCopy // so that groups are long
			}
			if c >= OpLoad8ULine && (!kept && r.IntN(2) != 0 || isPattern(c)) {
				c = OpScalarXor
			}
			o := randomOp(r, c, n, uint64(at))
			if kept {
				keep(&o)
			}
			if code = append(code, o); c >= OpLoad8ULine {
				starts = append(starts, int32(at)+1)
			}
		}
		code = append(code, Op{Imm: 1 << 20})
		mask := ^uint32(0)
		if r.IntN(3) == 0 {
			mask = randomMask(r)
		}
		want, other := *f, m.clone()
		x, y := f.regs(), want.regs()
		x.Reach, x.Log, y.Reach, y.Log = &m.reach[0], &m.log, &other.reach[0], &other.log
		c := Compile(code, starts, nil, told)
		if round == 0 && c.Size() < 1<<20 {
			t.Errorf("%d bytes of code are too few to need far jumps", c.Size())
		}
		for at := int32(0); ; {
			got, end := c.Run(at, x, mask), runGo(code[at:], y, mask)
			if *f != want || got != end || m.mem != other.mem || m.log.N != other.log.N || differsIn(code, &m.log, &other.log, mask) != "" {
				t.Fatalf("round %d, mask %08x, %d operations from %d: code ends with %d, Go code with %d", round, mask, len(code), at, got, end)
			}
			noted += m.log.N
			if at = int32(got) + 1; got == 1<<20 {
				break
			}
			ended++
			m.log.N, other.log.N = 0, 0
		}
	}
	if ended < rounds || noted < uint64(rounds) {
		t.Errorf("%d lists ended at an access, %d accesses were told", ended, noted)
	}
}

// lanesOf returns the lanes of a strip of an operation, or 0 if it has no vector.
func lanesOf(c Code) int {
	n := 0
	for _, f := range operands[c] {
		switch f {
		case vectors64:
			return 4
		case vectors32, preds:
			n = 8
		}
	}
	return n
}

// TestCompiledTargets compiles jumps back and ahead between lists, entered at each.
func TestCompiledTargets(t *testing.T) {
	if possible < Compiling {
		t.Skip("no machine code on this machine")
	}
	code := []Op{
		Make(OpAdd32, 0, 0, 0, 1), // 0: the loop
		Make(OpScalarAdd, 1<<64-1, 0, 0, 1),
		Make(OpLTU32S, 0, 0, 0, 2),
		Make(OpIfPred, 9, 0, 0, opBytes, 2*opBytes),
		Make(OpGoto, 50, 0, 0, -4*opBytes, 1),
		Make(OpGoto, 51, 0, 0, 0, 1),
		Make(OpMul32, 0, 0, 0, 1), // 6: after the loop
		{Code: OpEnd, Imm: 60},
	}
	starts := []int32{0, 6}
	for _, mask := range []uint32{^uint32(0), 0xff} {
		for _, at := range starts {
			var f files
			for l := range 32 {
				f.v32[1][l] = 3
			}
			f.scalars[1], f.scalars[2] = 1, 30
			want := f
			x, y := f.regs(), want.regs()
			x.Limit, y.Limit = 100, 100
			got, end := Compile(code, starts, nil, false).Run(at, x, mask), runGo(code[at:], y, mask)
			if got != end || f != want || x.Steps != y.Steps || x.Steps == 0 && at == 0 {
				t.Errorf("from %d: ends with %d after %d steps, want %d after %d", at, got, x.Steps, end, y.Steps)
			}
		}
	}
}

const opBytes = int32(unsafe.Sizeof(Op{}))

// TestTierVariable checks the results of a choice of the tier.
func TestTierVariable(t *testing.T) {
	defer use(possible)
	if err := chooseTier(""); err != nil || Best() != possible {
		t.Error(err, Best())
	}
	if err := chooseTier("interpret"); err != nil || Best() != Interpreted {
		t.Error(err, Best())
	}
	if err := chooseTier("fast"); err == nil || err.Error() != `FENCEPOST_TIER is "fast"; the tiers are interpret, compiled` || Best() != possible {
		t.Error(err, Best())
	}
	if err := chooseTier("compiled"); (err == nil) != (possible == Compiling) || Best() != possible {
		t.Error(err, Best())
	}
}

// TestCompiledAgain checks that compiling a list twice gives the same code.
func TestCompiledAgain(t *testing.T) {
	if possible < Compiling {
		t.Skip("no machine code on this machine")
	}
	code := slices.Repeat([]Op{Make(OpAdd32, 0, 0, 1, 2), Make(OpFAdd64, 0, 0, 1, 2)}, 200)
	code = append(code, Op{})
	a, b := (&Compiled{ops: code}).translate([]int32{0}, nil, false), (&Compiled{ops: code}).translate([]int32{0}, nil, false)
	if !slices.Equal(a, b) || len(a) < 4096 {
		t.Errorf("%d and %d bytes", len(a), len(b))
	}
}

// TestCompiledFar has registers, accesses and constants that are too far for one instruction of ARM.
func TestCompiledFar(t *testing.T) {
	if possible < Compiling {
		t.Skip("no machine code on this machine")
	}
	const v32s, v64s, words, accesses = 1000, 500, 9000, 2000
	r := rand.New(rand.NewPCG(61, 62))
	for _, mask := range []uint32{^uint32(0), 0x7ff00ff5} {
		type state struct {
			v32 [v32s]V32
			v64 [v64s]V64
			p   [words]uint32
			s   [words]uint64
			m   reach
		}
		a := &state{m: *newReach(r)}
		for i := range 8 {
			for l := range 32 {
				a.v32[v32s-8+i][l], a.v64[v64s-8+i][l] = random32(r), random64(r)
			}
			a.p[words-8+i], a.s[words-8+i] = r.Uint32(), random64(r)
		}
		a.s[words-1] = 64 // an address
		var code []Op
		for i := range int32(300) { // with a table of constants each
			code = append(code, Make(OpAffine64, uint64(i)*1000003, v64s-1-i%4, words-2), Make(OpXor64, 0, v64s-5, v64s-5, v64s-1-i%4))
		}
		for range 8 { // in a loop over strips, and in none
			code = append(code, Make(OpAdd32, 0, v32s-1, v32s-2, v32s-3), Make(OpMul32S, 0, v32s-3, v32s-1, words-3), Make(OpLTU32S, 0, words-1, v32s-3, words-4),
				Make(OpPredAnd, 0, words-2, words-1, words-3), Make(OpSel32, 0, v32s-2, v32s-4, v32s-3, words-2), Make(OpScalarAdd, 1<<64-1, words-3, words-3, words-4),
				Make(OpLoad32Line, 7, v32s-4, words-1, accesses-1), Make(OpStore32Line, 8, v32s-2, words-1, accesses-2), Make(OpLoad32Same, 9, words-5, words-1, accesses-1))
		}
		code = append(code, Op{Imm: 1})
		run := func(do func(x *Regs) uint64) *state {
			b := *a
			b.m.point()
			far := make([]Access, accesses)
			for i := range far {
				far[i] = Access{Room: 128, Base: &b.m.base}
			}
			if end := do(&Regs{V32: &b.v32[0], V64: &b.v64[0], Preds: &b.p[0], Scalars: &b.s[0], Reach: &far[0]}); end != 1 {
				t.Errorf("mask %08x: ends with %d", mask, end)
			}
			b.m.base, b.m.reach = nil, [8]Access{}
			return &b
		}
		c := Compile(code, []int32{0}, nil, false)
		if got, want := run(func(x *Regs) uint64 { return c.Run(0, x, mask) }), run(func(x *Regs) uint64 { return runGo(code, x, mask) }); *got != *want {
			t.Errorf("mask %08x: not what the Go code gives", mask)
		}
	}
}
