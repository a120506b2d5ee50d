package lanes

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"fencepost.dev/fencepost/internal/testsize"
)

// files are register files with a few registers.
type files struct {
	v32     [8]V32
	v64     [8]V64
	preds   [8]uint32
	scalars [8]uint64
}

func (f *files) regs() *Regs {
	return &Regs{V32: &f.v32[0], V64: &f.v64[0], Preds: &f.preds[0], Scalars: &f.scalars[0]}
}

func randomFiles(r *rand.Rand) *files {
	f := &files{}
	for i := range 8 {
		for l := range 32 {
			f.v32[i][l], f.v64[i][l] = random32(r), random64(r)
		}
		f.preds[i], f.scalars[i] = r.Uint32(), random64(r)
		if r.IntN(2) == 0 {
			f.scalars[i] = uint64(r.IntN(70))
		}
	}
	return f
}

// runList is Run, with compiled code in a tier with machine code.
func runList(list []Op, x *Regs, mask uint32) uint64 {
	return listRunner(list, x)(x, mask)
}

// listRunner returns a function that executes a list with registers like those of x.
func listRunner(list []Op, x *Regs) func(x *Regs, mask uint32) uint64 {
	if Best() != Compiling {
		return func(x *Regs, mask uint32) uint64 { return Run(list, x, mask) }
	}
	told := false
	for _, o := range list {
		if o.Code >= OpLoad8ULine && o.Code < OpSteadyS {
			told = told || (*Access)(unsafe.Add(unsafe.Pointer(x.Reach), o.B)).Told != 0
		}
	}
	c := Compile(list, []int32{0}, nil, told)
	return func(x *Regs, mask uint32) uint64 { return c.Run(0, x, mask) }
}

// randomImm returns a number that the operation takes.
func randomImm(r *rand.Rand, e *entry) uint64 {
	var x args
	ps, _ := e.parse()
	for i, p := range ps {
		if x.fill(r, i, p, e.name); p.typ == "uint32" && p.name != "cond" {
			return uint64(x.u32[i])
		}
	}
	return r.Uint64()
}

// TestRunFunctions compares each operation of Run with the function of its name.
func TestRunFunctions(t *testing.T) {
	rounds := testsize.Of(20, 30, 100)
	bothWays(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(17, 18))
		for i := range generated {
			e := &generated[i]
			c := Code(1 + i)
			ps, hasD := e.parse()
			for range rounds {
				f := randomFiles(r)
				want := *f
				mask := randomMask(r)
				o := Op{Code: c, Imm: randomImm(r, e)}
				x := args{mask: mask}
				at := 0
				var pred *uint32
				next := func() int32 { // the register of the next operand, of which there are few
					n := int32(r.IntN(8))
					field := []*int32{&o.D, &o.A, &o.B, &o.C}[at]
					*field = n * sizes[operands[c][at]]
					at++
					return n
				}
				if !hasD {
					pred = &want.preds[next()]
				}
				for i, p := range ps {
					switch file := operands[c][min(at, 3)]; {
					case at == 4 || file == none: // the number that is no operand
						x.u32[i], x.u64[i] = uint32(o.Imm), o.Imm
					case p.typ == "*V32":
						x.v32[i] = &want.v32[next()]
					case p.typ == "*V64":
						x.v64[i] = &want.v64[next()]
					case p.name == "cond":
						x.u32[i] = want.preds[next()]
					default:
						n := next()
						x.u32[i], x.u64[i] = uint32(want.scalars[n]), want.scalars[n]
					}
				}
				runList([]Op{o, {}}, f.regs(), mask)
				if got := e.call(&x); pred != nil {
					*pred = *pred&^mask | got
				}
				if *f != want {
					t.Errorf("%s by Run, mask %08x, %+v: not what the function gives", e.name, mask, o)
					break
				}
			}
		}
	})
}

// words compute the operations on predicates (one lane at a time, in the lowest bit) and on scalars.
var words = map[Code]func(a, b, c, imm uint64) uint64{
	OpPredCopy: func(a, _, _, _ uint64) uint64 { return a }, OpPredNot: func(a, _, _, _ uint64) uint64 { return ^a },
	OpPredAnd: func(a, b, _, _ uint64) uint64 { return a & b }, OpPredOr: func(a, b, _, _ uint64) uint64 { return a | b },
	OpPredXor: func(a, b, _, _ uint64) uint64 { return a ^ b },
	OpPredSel: func(a, b, c, _ uint64) uint64 { return choose(c, a, b) }, OpPredSet: func(a, _, _, _ uint64) uint64 { return a },
	OpScalarCopy: func(a, _, _, _ uint64) uint64 { return a }, OpScalarSet: func(_, _, _, imm uint64) uint64 { return imm },
	OpScalarAdd: func(a, b, _, imm uint64) uint64 { return (a + b) & imm }, OpScalarSub: func(a, b, _, imm uint64) uint64 { return (a - b) & imm },
	OpScalarMul: func(a, b, _, imm uint64) uint64 { return a * b & imm },
	OpScalarAnd: func(a, b, _, _ uint64) uint64 { return a & b }, OpScalarOr: func(a, b, _, _ uint64) uint64 { return a | b },
	OpScalarXor: func(a, b, _, _ uint64) uint64 { return a ^ b }, OpScalarNot: func(a, _, _, imm uint64) uint64 { return ^a & imm },
	OpScalarMask:  func(a, _, _, imm uint64) uint64 { return a & imm },
	OpScalarSExt:  func(a, _, _, imm uint64) uint64 { return uint64(int64(a<<imm) >> imm) },
	OpScalarMulBy: func(a, _, _, imm uint64) uint64 { return a * imm },
	OpScalarMulU:  func(a, b, _, _ uint64) uint64 { return (a & 0xffffffff) * (b & 0xffffffff) },
	OpScalarMulS:  func(a, b, _, _ uint64) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) },
	OpScalarSel:   func(a, b, c, _ uint64) uint64 { return choose(c, a, b) },
	OpScalarShl32: func(a, b, _, _ uint64) uint64 {
		if b > 31 {
			return 0
		}
		return a << b & 0xffffffff
	},
	OpScalarShl64: func(a, b, _, _ uint64) uint64 {
		if b > 63 {
			return 0
		}
		return a << b
	},
	OpScalarShrU32: func(a, b, _, _ uint64) uint64 { return a & 0xffffffff >> min(b, 32) },
	OpScalarShrU64: func(a, b, _, _ uint64) uint64 { return a >> min(b, 64) },
	OpScalarShrS32: func(a, b, _, _ uint64) uint64 { return uint64(uint32(int32(a) >> min(b, 31))) },
	OpScalarShrS64: func(a, b, _, _ uint64) uint64 { return uint64(int64(a) >> min(b, 63)) },
	OpScalarEQ32:   func(a, b, _, _ uint64) uint64 { return truth(uint32(a) == uint32(b)) },
	OpScalarNE32:   func(a, b, _, _ uint64) uint64 { return truth(uint32(a) != uint32(b)) },
	OpScalarLTS32:  func(a, b, _, _ uint64) uint64 { return truth(int32(a) < int32(b)) },
	OpScalarLES32:  func(a, b, _, _ uint64) uint64 { return truth(int32(a) <= int32(b)) },
	OpScalarGTS32:  func(a, b, _, _ uint64) uint64 { return truth(int32(a) > int32(b)) },
	OpScalarGES32:  func(a, b, _, _ uint64) uint64 { return truth(int32(a) >= int32(b)) },
	OpScalarLTU32:  func(a, b, _, _ uint64) uint64 { return truth(uint32(a) < uint32(b)) },
	OpScalarLEU32:  func(a, b, _, _ uint64) uint64 { return truth(uint32(a) <= uint32(b)) },
	OpScalarGTU32:  func(a, b, _, _ uint64) uint64 { return truth(uint32(a) > uint32(b)) },
	OpScalarGEU32:  func(a, b, _, _ uint64) uint64 { return truth(uint32(a) >= uint32(b)) },
	OpScalarEQ64:   func(a, b, _, _ uint64) uint64 { return truth(a == b) },
	OpScalarNE64:   func(a, b, _, _ uint64) uint64 { return truth(a != b) },
	OpScalarLTS64:  func(a, b, _, _ uint64) uint64 { return truth(int64(a) < int64(b)) },
	OpScalarLES64:  func(a, b, _, _ uint64) uint64 { return truth(int64(a) <= int64(b)) },
	OpScalarGTS64:  func(a, b, _, _ uint64) uint64 { return truth(int64(a) > int64(b)) },
	OpScalarGES64:  func(a, b, _, _ uint64) uint64 { return truth(int64(a) >= int64(b)) },
	OpScalarLTU64:  func(a, b, _, _ uint64) uint64 { return truth(a < b) },
	OpScalarLEU64:  func(a, b, _, _ uint64) uint64 { return truth(a <= b) },
	OpScalarGTU64:  func(a, b, _, _ uint64) uint64 { return truth(a > b) },
	OpScalarGEU64:  func(a, b, _, _ uint64) uint64 { return truth(a >= b) },
}

func choose(c, a, b uint64) uint64 {
	if c&1 != 0 {
		return a
	}
	return b
}

// TestRunWords checks the operations on predicates and scalars.
func TestRunWords(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(19, 20))
		for c := Code(1 + len(generated)); c < OpLoad8ULine; c++ {
			ref := words[c]
			if ref == nil {
				t.Fatalf("operation %d: nothing to compare with; add it to words", c)
			}
			for range 500 {
				f := randomFiles(r)
				want := *f
				mask := randomMask(r)
				imm := []uint64{1<<32 - 1, 1<<64 - 1, 32, 56}[r.IntN(4)]
				if c == OpScalarSExt {
					imm = uint64(r.IntN(64))
				}
				d, from := int32(r.IntN(8)), []int32{}
				for _, k := range operands[c][1:] {
					if k != none {
						from = append(from, int32(r.IntN(8)))
					}
				}
				var in [3]uint64
				if operands[c][0] == scalars {
					for i, n := range from {
						in[i] = f.scalars[n]
					}
					want.scalars[d] = ref(in[0], in[1], in[2], imm)
				} else {
					for l := range 32 {
						if mask>>l&1 == 0 {
							continue
						}
						for i, n := range from {
							in[i] = uint64(f.preds[n] >> l & 1)
							if operands[c][1+i] == scalars {
								in[i] = f.scalars[n] & 1
							}
						}
						want.preds[d] = want.preds[d]&^(1<<l) | uint32(ref(in[0], in[1], in[2], imm)&1)<<l
					}
				}
				runList([]Op{Make(c, imm, d, from...), {}}, f.regs(), mask)
				if *f != want {
					t.Fatalf("operation %d, mask %08x, d %d, from %d, imm %#x: not what is wanted", c, mask, d, from, imm)
				}
			}
		}
	})
}

// TestRunLists compares long lists with the Go code.
func TestRunLists(t *testing.T) { bothWays(t, runLists) }

// isPattern reports whether the lanes of an operation have offsets that are not checked: random ones would be outside
// memory.
func isPattern(c Code) bool {
	return c >= OpLoad8ULine && c < OpSteadyS && accessOps[c-OpLoad8ULine].how == pattern
}

func runLists(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 300 {
		f := randomFiles(r)
		want := *f
		mask := randomMask(r)
		var code []Op
		m := newReach(r)
		m.aim(r, f)
		want = *f
		for range 1 + r.IntN(100) {
			c := Code(1 + r.IntN(int(OpGoto)-1))
			if c >= OpLoad8ULine && (r.IntN(4) != 0 || isPattern(c)) {
				continue // few, as most of them end the list
			}
			imm := r.Uint64()
			if int(c) <= len(generated) {
				imm = randomImm(r, &generated[c-1])
			} else if c == OpScalarSExt {
				imm %= 64
			}
			o := Op{Code: c, Imm: imm}
			for i, field := range []*int32{&o.D, &o.A, &o.B, &o.C} {
				*field = int32(r.IntN(8)) * sizes[operands[c][i]]
			}
			code = append(code, o)
		}
		code = append(code, Op{Imm: 1})
		other := m.clone()
		x, y := f.regs(), want.regs()
		x.Reach, x.Log, y.Reach, y.Log = &m.reach[0], &m.log, &other.reach[0], &other.log
		got, end := runList(code, x, mask), runGo(code, y, mask)
		if *f != want || got != end || m.mem != other.mem || m.log.N != other.log.N {
			t.Fatalf("mask %08x, %d operations: not what the Go code gives", mask, len(code))
		}
	}
}

// TestRunJumps executes lists with jumps: a loop with a condition of each kind.
func TestRunJumps(t *testing.T) {
	const size = int32(32)
	bothWays(t, func(t *testing.T) {
		for _, c := range []struct {
			limit, steps int64
			pred         uint32
			end, turns   uint64
		}{
			{1000, 9*7 + 10, ^uint32(0), 100, 10}, // the loop runs out
			{24, 3 * 7, ^uint32(0), 50, 3},        // the third turn comes to the limit
			{1000, 0, 0, 200, 1},                  // in no lane
			{1000, 0, 6, 60, 1},                   // in some lanes
		} {
			f := &files{}
			f.preds[1] = c.pred
			f.scalars[1], f.scalars[2] = 1, 10
			code := []Op{
				Make(OpScalarAdd, 1<<32-1, 0, 0, 1),
				Make(OpIfPred, 60, 0, 1, 2*size, 1*size),
				{Code: OpEnd, Imm: 200},
				Make(OpScalarLTS32, 0, 3, 0, 2),
				Make(OpIfScalar, 70, 0, 3, 1*size, 2*size),
				Make(OpGoto, 50, 2, 3, -5*size, 7),
				Make(OpGoto, 51, 0, 0, 1*size, 10),
				{Code: OpEnd, Imm: 100},
			}
			x := f.regs()
			x.Limit, x.Marks = c.limit, 1
			if end := runList(code, x, 14); end != c.end || f.scalars[0] != c.turns || x.Steps != c.steps || x.Marks != 1+2*uint64(c.steps/7-c.steps/73) {
				t.Errorf("limit %d, predicate %x: ends with %d after %d turns and %d steps, want %d, %d, %d", c.limit, c.pred, end, f.scalars[0], x.Steps, c.end, c.turns, c.steps)
			}
		}
		f := &files{}
		x := f.regs()
		x.Limit = 1
		if end := runList([]Op{Make(OpGoto, 9, 0, 0, 0, 4), {Code: OpEnd, Imm: 8}}, x, 1); end != 9 || x.Steps != 4 {
			t.Errorf("a jump to nowhere ends with %d after %d steps", end, x.Steps)
		}
	})
}

// TestRunTime prints the time of an operation in a list of 64, each dependent on the one before or on the eighth
// before, and of the same calls.
func TestRunTime(t *testing.T) {
	if testing.Short() || !testing.Verbose() {
		t.Skip("prints times: go test -v -run RunTime")
	}
	for _, back := range []int32{1, 8} {
		for _, mask := range []uint32{^uint32(0), 0x0ffffff1} {
			regs := make([]V32, 64)
			wide := make([]V64, 64)
			var s [64]uint64
			x := &Regs{V32: &regs[0], V64: &wide[0], Preds: new(uint32), Scalars: &s[0]}
			for _, c := range []Code{OpAdd32, OpAdd32S, OpFAdd32, OpFMA32, OpAdd64, OpLop3, OpScalarAdd} {
				var code []Op
				for i := range int32(64) {
					from := (i + 64 - back) % 64
					o := Make(c, 0, i, []int32{from, from, from}[:count(c)]...)
					code = append(code, o)
				}
				code = append(code, Op{})
				do := listRunner(code, x)
				run := least(func() { do(x, mask) }) / 64
				t.Logf("operation %3d, %d back, mask %08x: %.2f ns", c, back, mask, run)
			}
			call := least(func() {
				for i := range int32(64) {
					Add32(&regs[i], &regs[(i+64-back)%64], &regs[(i+64-back)%64], mask)
				}
			}) / 64
			t.Logf("calls of Add32, %d back, mask %08x: %.2f ns", back, mask, call)
		}
	}
}

// count returns the sources of an operation.
func count(c Code) (n int) {
	for _, k := range operands[c][1:] {
		if k != none {
			n++
		}
	}
	return n
}
