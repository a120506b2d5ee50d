package opt

import (
	"fmt"
	"math/big"
	"math/bits"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// expr is an expression over inputs: a tree that tests compile to a function and also evaluate themselves.
type expr struct {
	op   Op // Const, KParam (input number imm), Special, or a native operation; Row divides
	w    Width
	imm  uint64
	aux  uint8
	args []*expr
	inst *isa.Inst // of Row
}

func konst(w Width, x uint64) *expr { return &expr{op: Const, w: w, imm: x & w.Mask()} }

// input returns one of two inputs of each width.
func input(w Width, k int) *expr { return &expr{op: KParam, w: w, imm: uint64(k)} }

func (e *expr) String() string {
	switch e.op {
	case Const:
		return fmt.Sprintf("%#x:%d", e.imm, e.w.Bits())
	case KParam:
		return fmt.Sprintf("%c:%d", 'x'+rune(e.imm), e.w.Bits())
	case Row:
		return fmt.Sprintf("%s.%v%v", e.inst.Row.Op, e.inst.Type, e.args)
	case Cmp:
		return fmt.Sprintf("%s%v", condNames[e.imm], e.args)
	}
	return fmt.Sprintf("%v%d#%d%v", e.op, e.w.Bits(), e.imm, e.args)
}

// value evaluates the expression by the definition of its operations, independently of evalNative.
func (e *expr) value(in [2]uint64, tid uint64) uint64 {
	var a [3]uint64
	var n [3]*big.Int // as unsigned numbers
	for i, x := range e.args {
		a[i] = x.value(in, tid)
		n[i] = new(big.Int).SetUint64(a[i])
	}
	cut := func(x *big.Int) uint64 { // modulo 2^w
		m := new(big.Int).Lsh(big.NewInt(1), uint(e.w.Bits()))
		return x.Mod(x, m).Uint64()
	}
	number := func(i, width int) *big.Int { // the low bits as a signed number
		x := new(big.Int).SetUint64(a[i] & (1<<(width-1)<<1 - 1))
		if x.Bit(width-1) == 1 {
			x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(width)))
		}
		return x
	}
	switch e.op {
	case Const:
		return e.imm
	case KParam:
		return in[e.imm] & e.w.Mask()
	case Special:
		return tid
	case Add:
		return cut(n[0].Add(n[0], n[1]))
	case Sub:
		return cut(n[0].Sub(n[0], n[1]))
	case Mul, MulU:
		return cut(n[0].Mul(n[0], n[1]))
	case MulS:
		return cut(new(big.Int).Mul(number(0, 32), number(1, 32)))
	case And:
		return cut(n[0].And(n[0], n[1]))
	case Or:
		return cut(n[0].Or(n[0], n[1]))
	case Xor:
		return cut(n[0].Xor(n[0], n[1]))
	case Not:
		return cut(n[0].Not(n[0]))
	case Shl:
		return cut(n[0].Lsh(n[0], uint(min(a[1], 200))))
	case ShrU:
		return cut(n[0].Rsh(n[0], uint(min(a[1], 200))))
	case ShrS:
		x := number(0, e.w.Bits())
		return cut(x.Rsh(x, uint(min(a[1], 200))))
	case SExt:
		return cut(number(0, int(e.imm)))
	case ZExt:
		return cut(n[0].And(n[0], new(big.Int).SetUint64(1<<(e.imm-1)<<1-1)))
	case Cmp:
		return oneIf(holds(Cond(e.imm), n[0].Cmp(n[1]), number(0, int(e.aux)).Cmp(number(1, int(e.aux)))))
	case Sel:
		return a[2-a[0]]
	}
	return divide(e.inst, e.w, number(0, e.w.Bits()), number(1, e.w.Bits()), a)
}

func oneIf(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// holds reports whether a condition holds, given how the operands compare as unsigned and as signed numbers.
func holds(c Cond, unsigned, signed int) bool {
	switch c {
	case EQ:
		return unsigned == 0
	case NE:
		return unsigned != 0
	case LTS:
		return signed < 0
	case LES:
		return signed <= 0
	case GTS:
		return signed > 0
	case GES:
		return signed >= 0
	case LTU:
		return unsigned < 0
	case LEU:
		return unsigned <= 0
	case GTU:
		return unsigned > 0
	}
	return unsigned >= 0
}

// divide computes div and rem of the instruction's type, rounding towards zero.
func divide(in *isa.Inst, w Width, x, y *big.Int, a [3]uint64) uint64 {
	if !in.Type.Signed() {
		x, y = new(big.Int).SetUint64(a[0]), new(big.Int).SetUint64(a[1])
	}
	r := big.NewInt(-1)
	if y.Sign() != 0 {
		if r = new(big.Int).Quo(x, y); in.Row.Op == "rem" {
			r = new(big.Int).Rem(x, y)
		}
	}
	return r.Mod(r, new(big.Int).Lsh(big.NewInt(1), uint(w.Bits()))).Uint64()
}

// testBlock is the block shape of the functions in these tests.
var testBlock = [3]uint32{100, 1, 1}

// exprFunc makes a function that stores the values of expressions.
func exprFunc(list []*expr) (*Func, []*Instr) {
	f := &Func{Fn: &isa.Func{Name: "test", Entry: true}, Env: Env{Block: testBlock}, Sites: []Site{{Call: -1}}}
	entry, body := &Block{}, &Block{ID: 1}
	entry.Succs, body.Preds = []*Block{body}, []*Block{entry}
	f.Blocks = []*Block{entry, body}
	add := func(b *Block, in *Instr) *Instr {
		in.Block, in.Guard = b, NoValue
		b.Instrs = append(b.Instrs, in)
		return in
	}
	add(entry, &Instr{Op: Jump, Site: -1})
	inputs := map[[3]uint64]Value{}
	var make func(e *expr) Value
	make = func(e *expr) Value {
		if e.op == Const {
			return f.Konst(e.w, e.imm)
		}
		key := [3]uint64{uint64(e.op), uint64(e.w), e.imm}
		if v, ok := inputs[key]; ok && len(e.args) == 0 { // the same input is the same value
			return v
		}
		in := &Instr{Op: e.op, Imm: e.imm, Aux: e.aux, Inst: e.inst, Site: -1}
		for _, a := range e.args {
			in.Args = append(in.Args, make(a))
		}
		if e.op == KParam {
			in.Imm, in.Aux = 8*e.imm, uint8(max(e.w.Bits()/8, 1))
		}
		v := f.NewValue(e.w, in)
		in.Dst = []Value{v}
		add(body, in)
		if len(e.args) == 0 {
			inputs[key] = v
		}
		return v
	}
	var stores []*Instr
	for _, e := range list {
		v := make(e)
		stores = append(stores, add(body, &Instr{Op: Store, Site: 0, Args: []Value{f.Konst(W64, 0), v},
			Inst: &isa.Inst{Class: isa.Store, Space: event.Global, Type: isa.B64, Vec: 1, Guard: -1, Loc: -1}}))
	}
	add(body, &Instr{Op: Exit, Site: -1})
	return f, stores
}

// computed returns the values that the instructions of a function of exprFunc compute.
func computed(f *Func, in [2]uint64, tid uint64) []uint64 {
	vals := make([]uint64, len(f.Values))
	for _, b := range f.Blocks {
		for _, i := range b.Instrs {
			arg := func(k int) uint64 { return vals[i.Args[k]] }
			switch {
			case i.Op == Const:
				vals[i.Result()] = i.Imm
			case i.Op == KParam:
				vals[i.Result()] = in[i.Imm/8] & f.Width(i.Result()).Mask()
			case i.Op == Special:
				vals[i.Result()] = tid
			case i.Op == Row:
				var a isa.Args
				for k := range i.Args {
					a.S[k] = arg(k)
				}
				i.Inst.Eval(i.Inst, &a)
				vals[i.Result()] = a.D[0]
			case i.Op > Copy && i.Op < Row:
				var a [3]uint64
				for k := range i.Args {
					a[k] = arg(k)
				}
				vals[i.Result()] = Eval(i.Op, i.Imm, i.Aux, f.Width(i.Result()), a)
			}
		}
	}
	return vals
}

// operands are pairs of inputs: the limits of every width, equal ones, and some between.
var operands = func() [][2]uint64 {
	edges := []uint64{0, 1, 2, 5, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 1 << 32, 1<<32 + 5,
		1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 2, 1<<64 - 1, 0x123456789abcdef1, 0xfedcba9876543210}
	var list [][2]uint64
	for i, x := range edges {
		list = append(list, [2]uint64{x, edges[(i*7+3)%len(edges)]})
		if i%4 == 0 {
			list = append(list, [2]uint64{x, x})
		}
	}
	return list
}()

// numbers returns constants of a width at which a rule may begin or cease to apply.
func numbers(w Width) []uint64 {
	if w == W1 {
		return []uint64{0, 1}
	}
	n := uint64(w.Bits())
	top := uint64(1) << (n - 1)
	return []uint64{0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 19, 20, 30, 31, 32, 33, 62, 63, 64, 65, 0x7f, 0xff, 0x7fff, 0xffff, 0x10000, 1<<31 - 1, 1 << 31, 1<<32 - 1,
		top >> 1, top - 1, top, top + 1, w.Mask() - 7, w.Mask() - 1, w.Mask()}
}

// same checks that optimising a function of the expressions changes no value.
func same(t *testing.T, list []*expr) {
	t.Helper()
	for len(list) > 0 {
		n := min(len(list), 40)
		sameFew(t, list[:n])
		if list = list[n:]; t.Failed() {
			return
		}
	}
}

func sameFew(t *testing.T, list []*expr) {
	t.Helper()
	f, stores := exprFunc(list)
	for range 2 {
		Algebra(f)
		Fold(f)
	}
	CSE(f)
	DCE(f)
	if err := Verify(f); err != nil {
		t.Fatalf("%v\n%v\n%v", list, err, f)
	}
	for k, in := range operands {
		tid := []uint64{0, 1, 31, 50, 98, 99}[k%6]
		vals := computed(f, in, tid)
		for i, e := range list {
			if got, want := vals[stores[i].Args[1]], e.value(in, tid); got != want {
				t.Errorf("%v of %#x, %#x, thread %d is %#x, want %#x", e, in[0], in[1], tid, got, want)
				return
			}
		}
	}
}

// natives are the operations with two operands of the result's width. Shifts are by 32 bits.
var natives = []Op{Add, Sub, Mul, And, Or, Xor, Shl, ShrU, ShrS}

func second(op Op, w Width) Width {
	if op == Shl || op == ShrU || op == ShrS {
		return W32
	}
	return w
}

// widthsOf returns the widths of an operation of natives.
func widthsOf(op Op) []Width {
	if op == And || op == Or || op == Xor {
		return []Width{W1, W32, W64}
	}
	return []Width{W32, W64}
}

func two(op Op, w Width, x, y *expr) *expr { return &expr{op: op, w: w, args: []*expr{x, y}} }

// TestAlgebraOfConstants checks every operation with every boundary number on either side, with the same operand twice,
// and with two numbers.
func TestAlgebraOfConstants(t *testing.T) {
	var list []*expr
	for _, op := range natives {
		for _, w := range widthsOf(op) {
			w2 := second(op, w)
			for _, c := range numbers(w2) {
				list = append(list, two(op, w, input(w, 0), konst(w2, c)), two(op, w, konst(w, numbers(w)[5%len(numbers(w))]), konst(w2, c)))
			}
			for _, c := range numbers(w) {
				list = append(list, two(op, w, konst(w, c), input(w2, 1)), two(op, w, konst(w, c), konst(w2, 31&w2.Mask())))
			}
			list = append(list, two(op, w, input(w, 0), input(w2, 1)))
			if w == w2 {
				list = append(list, two(op, w, input(w, 0), input(w, 0)))
			}
		}
	}
	for _, w := range []Width{W1, W32, W64} {
		not := &expr{op: Not, w: w, args: []*expr{input(w, 0)}}
		list = append(list, not, &expr{op: Not, w: w, args: []*expr{not}}, &expr{op: Not, w: w, args: []*expr{konst(w, 5)}})
	}
	for _, op := range []Op{MulU, MulS} {
		for _, c := range numbers(W32) {
			list = append(list, two(op, W64, input(W32, 0), konst(W32, c)), two(op, W64, konst(W32, c), input(W32, 0)), two(op, W64, konst(W32, c), konst(W32, 1<<31)))
		}
		list = append(list, two(op, W64, input(W32, 0), input(W32, 0)), two(op, W64, input(W32, 0), input(W32, 1)))
	}
	same(t, list)
}

// TestAlgebraOfPairs checks every operation with a boundary number on the result of every such operation.
func TestAlgebraOfPairs(t *testing.T) {
	var list []*expr
	for _, w := range []Width{W32, W64} {
		n := uint64(w.Bits())
		few := []uint64{0, 1, 4, 31, n - 1, n, 1 << (n - 1), w.Mask()}
		if testing.Short() {
			few = []uint64{1, 31, n - 1, w.Mask()}
		}
		for _, inner := range natives {
			for _, c := range few {
				x := two(inner, w, input(w, 0), konst(second(inner, w), c))
				for _, outer := range natives {
					for _, d := range few {
						list = append(list, two(outer, w, x, konst(second(outer, w), d)))
					}
					if second(outer, w) == w {
						list = append(list, two(outer, w, input(w, 1), x), two(outer, w, x, input(w, 1)))
					}
				}
			}
		}
	}
	same(t, list)
}

// extensions returns extensions of an expression to a width, from every number of bits that instructions have.
func extensions(x *expr, to Width) []*expr {
	var list []*expr
	for _, op := range []Op{SExt, ZExt} {
		for _, n := range []uint64{1, 8, 16, 32, 64} {
			if int(n) <= to.Bits() && (op == ZExt || int(n) <= x.w.Bits()) {
				list = append(list, &expr{op: op, w: to, imm: n, args: []*expr{x}})
			}
		}
	}
	return list
}

// TestAlgebraOfExtensions checks extensions of extensions, of masks and of shifts, and masks and shifts of extensions.
func TestAlgebraOfExtensions(t *testing.T) {
	var list []*expr
	for _, from := range []Width{W1, W32, W64} {
		for _, w := range []Width{W32, W64} {
			for _, e := range extensions(input(from, 0), w) {
				list = append(list, e)
				for _, to := range []Width{W32, W64} {
					list = append(list, extensions(e, to)...)
				}
				for _, c := range numbers(w) {
					list = append(list, two(And, w, e, konst(w, c)))
					for _, op := range []Op{Shl, ShrU, ShrS} {
						if c < 66 {
							list = append(list, two(op, w, e, konst(W32, c)))
						}
					}
				}
			}
		}
	}
	for _, n := range []uint64{0xff, 0xffff, 1, 0x80} {
		for _, w := range []Width{W32, W64} {
			list = append(list, extensions(two(And, W32, input(W32, 0), konst(W32, n)), w)...)
		}
	}
	same(t, list)
}

// TestAlgebraOfComparisons checks every condition with every boundary number on either side, of both widths, negated,
// and on a predicate held as a number, and selections by them.
func TestAlgebraOfComparisons(t *testing.T) {
	var list []*expr
	add := func(e *expr) {
		list = append(list, e, &expr{op: Not, w: W1, args: []*expr{e}})
	}
	for c := EQ; c <= GEU; c++ {
		for _, w := range []Width{W32, W64} {
			cmp := func(x, y *expr) *expr {
				return &expr{op: Cmp, w: W1, imm: uint64(c), aux: uint8(w.Bits()), args: []*expr{x, y}}
			}
			for _, k := range numbers(w) {
				add(cmp(input(w, 0), konst(w, k)))
				add(cmp(konst(w, k), input(w, 0)))
				add(cmp(konst(w, 5), konst(w, k)))
				add(cmp(konst(w, k), konst(w, k)))
			}
			add(cmp(input(w, 0), input(w, 1)))
			add(cmp(input(w, 0), input(w, 0)))
			for k := range uint64(3) {
				add(cmp(&expr{op: ZExt, w: w, imm: 1, args: []*expr{input(W1, 0)}}, konst(w, k)))
				add(cmp(&expr{op: SExt, w: w, imm: 1, args: []*expr{input(W1, 0)}}, konst(w, k)))
				add(cmp(&expr{op: ZExt, w: w, imm: 1, args: []*expr{input(W32, 0)}}, konst(w, k)))
			}
		}
	}
	same(t, list)
}

// TestAlgebraOfSelections checks selections by predicates that are known, negated or held as numbers, between equal
// choices, and between 0 and 1.
func TestAlgebraOfSelections(t *testing.T) {
	var list []*expr
	p := input(W1, 0)
	for _, w := range []Width{W1, W32, W64} {
		values := []*expr{input(w, 0), input(w, 1), konst(w, 0), konst(w, 1), konst(w, 2), konst(w, w.Mask())}
		for _, c := range []*expr{p, {op: Not, w: W1, args: []*expr{p}}, konst(W1, 0), konst(W1, 1)} {
			for _, x := range values {
				for _, y := range values {
					e := &expr{op: Sel, w: w, args: []*expr{c, x, y}}
					list = append(list, e)
					if w != W1 {
						list = append(list, &expr{op: Cmp, w: W1, imm: uint64(NE), aux: uint8(w.Bits()), args: []*expr{e, konst(w, 0)}})
					}
				}
			}
		}
	}
	same(t, list)
}

// divisions returns the rows div and rem of 32 and 64 bits, signed and unsigned, with their widths.
func divisions(t *testing.T) map[*isa.Inst]Width {
	rows := map[*isa.Inst]Width{}
	src := ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n"
	for _, op := range []string{"div", "rem"} {
		src += op + ".u32 %r0,%r1,%r2; " + op + ".s32 %r0,%r1,%r2; " + op + ".u64 %d0,%d1,%d2; " + op + ".s64 %d0,%d1,%d2;\n"
	}
	tree, err := ptx.Parse("div.ptx", src+"ret; }\n")
	if err != nil {
		t.Fatal(err)
	}
	m, err := isa.Decode(tree)
	if err != nil {
		t.Fatal(err)
	}
	insts := m.Kernels()[0].Insts
	for i := range insts[:8] {
		rows[&insts[i]] = widthOf(insts[i].Dst[0].Size)
	}
	return rows
}

// TestAlgebraOfDivisions checks divisions by every power of two and by the adjacent numbers, including those with the
// sign bit.
func TestAlgebraOfDivisions(t *testing.T) {
	for in, w := range divisions(t) {
		var list []*expr
		row := func(x, y *expr) { list = append(list, &expr{op: Row, w: w, inst: in, args: []*expr{x, y}}) }
		for k := range w.Bits() {
			for _, d := range []int64{-1, 0, 1} {
				row(input(w, 0), konst(w, 1<<k+uint64(d)))
				row(input(w, 0), konst(w, -(1<<k)+uint64(d)))
			}
			row(konst(w, 1<<k), input(w, 0))
		}
		row(input(w, 0), input(w, 0))
		row(konst(w, 1<<(w.Bits()-1)), konst(w, 1<<(w.Bits()-1)))
		same(t, list)
	}
}

// TestAlgebraOfSums checks sums with known bounds that are widened, or multiplied with a wide result, with constants at
// which they begin to wrap.
func TestAlgebraOfSums(t *testing.T) {
	tid := &expr{op: Special, w: W32, imm: uint64(isa.TidX)}
	n := uint64(testBlock[0])
	bounded := []*expr{tid, two(Mul, W32, tid, konst(W32, 1000)), two(Shl, W32, tid, konst(W32, 4)), two(Shl, W32, tid, konst(W32, 24)), two(Shl, W32, tid, konst(W32, 25)),
		two(And, W32, input(W32, 0), konst(W32, 0xff)), two(And, W32, input(W32, 0), konst(W32, 1<<31-1)), two(And, W32, input(W32, 0), konst(W32, 1<<31)),
		{op: ZExt, w: W32, imm: 16, args: []*expr{input(W32, 0)}}, {op: SExt, w: W32, imm: 16, args: []*expr{input(W32, 0)}},
		two(Sub, W32, konst(W32, 50), tid), two(Sub, W32, tid, konst(W32, 50)), two(ShrU, W32, tid, konst(W32, 2)), two(ShrS, W32, two(Sub, W32, tid, konst(W32, 50)), konst(W32, 1)),
		two(ShrU, W32, two(Sub, W32, tid, konst(W32, 50)), konst(W32, 1)), two(Mul, W32, two(Sub, W32, tid, konst(W32, 50)), konst(W32, 3)), two(Add, W32, tid, tid), input(W32, 0)}
	var list []*expr
	for _, x := range bounded {
		for _, c := range []uint64{1, 5, ^uint64(0), ^uint64(49), ^uint64(50), -(n - 1), -n, 1<<31 - 1, 1 << 31, 1<<31 - n, 1<<31 - n + 1, 1<<31 - 256, 1<<31 - 255, 1<<31 - 65536, 1<<31 - 65535, 1 << 30} {
			sum := two(Add, W32, x, konst(W32, c))
			list = append(list, sum)
			for _, op := range []Op{SExt, ZExt} {
				for _, bits := range []uint64{8, 16, 32} {
					list = append(list, &expr{op: op, w: W64, imm: bits, args: []*expr{sum}})
				}
			}
			for _, op := range []Op{MulU, MulS} {
				for _, m := range []uint64{12, 1 << 31, ^uint64(0)} {
					list = append(list, two(op, W64, sum, konst(W32, m)))
				}
				wide := two(op, W64, sum, konst(W32, 4))
				list = append(list, wide, two(Add, W64, wide, input(W64, 1)), two(Add, W64, input(W64, 1), wide), two(Mul, W64, two(Add, W64, wide, konst(W64, 7)), konst(W64, c)))
				list = append(list, two(op, W64, sum, input(W32, 1)))
			}
		}
	}
	same(t, list)
}

// boundsOf makes a function of expressions without optimising it, and returns their values.
func boundsOf(list []*expr) (*Func, []Value) {
	f, stores := exprFunc(list)
	var vs []Value
	for _, s := range stores {
		vs = append(vs, s.Args[1])
	}
	return f, vs
}

// arithmeticOfBounds returns expressions for the analyses of ranges.
func arithmeticOfBounds() []*expr {
	tid := &expr{op: Special, w: W32, imm: uint64(isa.TidX)}
	list := []*expr{tid, konst(W32, 1<<31), konst(W32, 7), input(W32, 0), input(W64, 0)}
	leaves := append([]*expr{}, list[:4]...)
	leaves = append(leaves, two(And, W32, input(W32, 0), konst(W32, 0xff)), &expr{op: ZExt, w: W32, imm: 8, args: []*expr{input(W32, 1)}}, two(Sub, W32, tid, konst(W32, 50)))
	for _, x := range leaves {
		for _, y := range leaves {
			for _, op := range []Op{Add, Sub, Mul, And, Or, Xor} {
				list = append(list, two(op, W32, x, y))
			}
		}
		for _, c := range numbers(W32) {
			for _, op := range natives {
				list = append(list, two(op, W32, x, konst(W32, c)))
			}
		}
		for _, w := range []Width{W32, W64} {
			list = append(list, extensions(x, w)...)
		}
	}
	return list
}

// TestSpan checks that no value is outside the bounds of span, and that span finds the bounds that it should.
func TestSpan(t *testing.T) {
	list := arithmeticOfBounds()
	f, vs := boundsOf(list)
	known := 0
	for i, e := range list {
		lo, hi, ok := f.span(vs[i], 10)
		if !ok {
			continue
		}
		known++
		for k, in := range operands {
			tid := []uint64{0, 1, 31, 50, 98, 99}[k%6]
			if x := signed(e.value(in, tid), 32); x < lo || x > hi {
				t.Errorf("%v of %#x, thread %d is %d, outside %d to %d", e, in[0], tid, x, lo, hi)
			}
		}
	}
	if known < 300 {
		t.Errorf("the bounds of %d expressions of %d are known", known, len(list))
	}
	tid := list[0]
	for _, c := range []struct {
		e      *expr
		lo, hi int64
	}{
		{tid, 0, 99}, {two(Add, W32, tid, konst(W32, 5)), 5, 104}, {two(Sub, W32, konst(W32, 5), tid), -94, 5}, {two(Mul, W32, tid, konst(W32, 3)), 0, 297},
		{two(Shl, W32, tid, konst(W32, 2)), 0, 396}, {two(ShrU, W32, tid, konst(W32, 1)), 0, 49}, {two(And, W32, input(W32, 0), konst(W32, 6)), 0, 6},
		{&expr{op: ZExt, w: W32, imm: 8, args: []*expr{input(W32, 0)}}, 0, 255}, {konst(W32, 1<<32-1), -1, -1},
	} {
		f, vs := boundsOf([]*expr{c.e})
		if lo, hi, ok := f.span(vs[0], 10); !ok || lo != c.lo || hi != c.hi {
			t.Errorf("the bounds of %v are %d to %d, %v, want %d to %d", c.e, lo, hi, ok, c.lo, c.hi)
		}
	}
}

// TestTerms checks that a value is the constant of terms plus a rest of at most the stated bits.
func TestTerms(t *testing.T) {
	var list []*expr
	for i, e := range arithmeticOfBounds() {
		list = append(list, e)
		if e.w == W32 && i%8 == 0 {
			wide := &expr{op: ZExt, w: W64, imm: 32, args: []*expr{e}}
			list = append(list, wide, two(Add, W64, wide, konst(W64, isa.SharedWindow)), two(Mul, W64, wide, konst(W64, 12)), two(MulU, W64, e, konst(W32, 12)),
				two(MulS, W64, e, konst(W32, 1<<31)), two(Shl, W64, wide, konst(W32, 3)), two(Shl, W64, two(Add, W64, wide, konst(W64, 1<<50)), konst(W32, 3)),
				two(Mul, W64, two(Add, W64, wide, konst(W64, 1<<50)), konst(W64, 3)), two(Add, W64, wide, two(Add, W64, wide, konst(W64, isa.LocalWindow))))
		}
	}
	p := input(W1, 1)
	for _, k := range []uint64{0, 1, 19, 20, 21, 1 << 20, 1<<20 - 1, 1<<40 - 1, 1 << 40, 1<<64 - 1} {
		x, y := two(Add, W64, &expr{op: ZExt, w: W64, imm: 16, args: []*expr{input(W32, 0)}}, konst(W64, k)), two(Add, W64, konst(W64, k), konst(W64, 0))
		list = append(list, two(Mul, W64, &expr{op: ZExt, w: W64, imm: 16, args: []*expr{input(W32, 0)}}, konst(W64, k)),
			two(Mul, W64, input(W64, 0), konst(W64, k)), two(Shl, W64, input(W64, 0), konst(W32, k)), two(And, W64, input(W64, 0), konst(W64, k)), x,
			two(Shl, W64, &expr{op: SExt, w: W64, imm: 32, args: []*expr{input(W32, 0)}}, konst(W32, k)), &expr{op: Sel, w: W64, args: []*expr{p, x, y}}, &expr{op: Sel, w: W64, args: []*expr{p, x, input(W64, 0)}})
	}
	f, vs := boundsOf(list)
	for i, e := range list {
		c, magnitude := f.terms(vs[i], 8)
		for k, in := range operands {
			rest := int64(e.value(in, []uint64{0, 1, 31, 50, 98, 99}[k%6]) - c)
			if n := bits.Len64(uint64(max(rest, -rest))); magnitude < 64 && n > magnitude && rest != -1<<magnitude {
				t.Errorf("%v of %#x is %#x and %d, of more than %d bits", e, in[0], c, rest, magnitude)
				break
			}
		}
	}
}

// TestWindow checks that an address is in a window only if no added value can leave the window.
func TestWindow(t *testing.T) {
	small := &expr{op: ZExt, w: W64, imm: 16, args: []*expr{input(W32, 0)}}
	times := func(x *expr) *expr { return two(Mul, W64, x, konst(W64, 1<<20-1)) }
	for _, tag := range []uint64{isa.SharedWindow, isa.LocalWindow} {
		want := map[uint64]event.Space{isa.SharedWindow: event.Shared, isa.LocalWindow: event.Local}[tag]
		for _, c := range []struct {
			rest  *expr
			known bool
		}{
			{konst(W64, 0), true}, {konst(W64, 1<<40), true}, {small, true}, {times(small), true}, {times(times(small)), false}, {input(W64, 0), false},
			{two(MulS, W64, input(W32, 0), konst(W32, 1<<20-1)), true}, {two(MulS, W64, input(W32, 0), konst(W32, 1<<20)), false},
			{two(And, W64, input(W64, 0), konst(W64, 1<<40-1)), true}, {two(And, W64, input(W64, 0), konst(W64, 1<<60)), false},
			{&expr{op: SExt, w: W64, imm: 32, args: []*expr{input(W32, 0)}}, true}, {two(Shl, W64, small, konst(W32, 19)), true}, {two(Shl, W64, small, konst(W32, 20)), false},
		} {
			f, vs := boundsOf([]*expr{two(Add, W64, konst(W64, tag), c.rest), two(Add, W64, c.rest, konst(W64, tag-8))})
			for i, off := range []uint64{0, 8} {
				space, got := f.window(vs[i], off)
				if c.known && (space != want || got != tag) || !c.known && space != event.NoSpace {
					t.Errorf("%#x and %v: %v, %#x", tag, c.rest, space, got)
				}
			}
		}
	}
	f, vs := boundsOf([]*expr{konst(W64, 0x1000), konst(W64, 3<<56)})
	for _, v := range vs {
		if space, _ := f.window(v, 0); space != event.NoSpace {
			t.Errorf("%s lies in %v", f.Text(f.Def(v)), space)
		}
	}
}

// TestAlgebraFires checks that each rule applies as intended. The tests above check that the rules are correct.
func TestAlgebraFires(t *testing.T) {
	x, y, p, d := input(W32, 0), input(W32, 1), input(W1, 0), input(W64, 0)
	tid := &expr{op: Special, w: W32, imm: uint64(isa.TidX)}
	n := func(c uint64) *expr { return konst(W32, c) }
	un := func(op Op, w Width, imm uint64, a *expr) *expr {
		return &expr{op: op, w: w, imm: imm, args: []*expr{a}}
	}
	cmp := func(c Cond, a, b *expr) *expr {
		return &expr{op: Cmp, w: W1, imm: uint64(c), aux: uint8(a.w.Bits()), args: []*expr{a, b}}
	}
	sel := func(w Width, a ...*expr) *expr { return &expr{op: Sel, w: w, args: a} }
	for _, c := range []struct {
		e    *expr
		want string
	}{
		{two(Add, W32, x, n(0)), "x"}, {two(Or, W32, x, n(0)), "x"}, {two(Xor, W32, n(0), x), "x"}, {two(And, W32, x, n(1<<32-1)), "x"}, {two(Mul, W32, x, n(1)), "x"},
		{two(Mul, W32, x, n(0)), "0"}, {two(And, W32, x, n(0)), "0"}, {two(Or, W32, x, n(1<<32-1)), "ffffffff"}, {two(And, W32, x, x), "x"}, {two(Or, W32, x, x), "x"},
		{two(Xor, W32, x, x), "0"}, {two(Sub, W32, x, x), "0"}, {two(Sub, W32, x, n(1)), "add(x,ffffffff)"}, {two(Add, W32, n(5), x), "add(x,5)"},
		{two(Mul, W32, x, n(8)), "shl(x,3)"}, {two(Mul, W32, n(1<<31), x), "shl(x,1f)"}, {two(Mul, W32, x, n(6)), "mul(x,6)"},
		{two(Add, W32, two(Add, W32, x, n(3)), n(4)), "add(x,7)"}, {two(Mul, W32, two(Mul, W32, x, n(3)), n(5)), "mul(x,f)"},
		{two(Xor, W1, p, konst(W1, 1)), "not(x)"}, {un(Not, W32, 0, un(Not, W32, 0, x)), "x"}, {un(Not, W1, 0, cmp(LTS, x, y)), "cmp.ges(x,y)"},
		{two(Shl, W32, x, n(0)), "x"}, {two(Shl, W32, x, n(32)), "0"}, {two(ShrU, W32, x, n(32)), "0"}, {two(ShrU, W32, x, n(31)), "shru(x,1f)"}, {two(ShrS, W32, x, n(32)), "shrs(x,20)"},
		{two(Shl, W32, two(Shl, W32, x, n(3)), n(4)), "shl(x,7)"}, {two(Shl, W64, d, n(64)), "0"}, {two(Shl, W32, two(Add, W32, x, n(3)), n(2)), "add(shl(x,2),c)"},
		{two(Shl, W64, un(SExt, W64, 32, x), n(30)), "muls(x,40000000)"}, {two(Shl, W64, un(SExt, W64, 32, x), n(31)), "shl(sext32(x),1f)"},
		{two(Shl, W64, un(ZExt, W64, 32, x), n(31)), "mulu(x,80000000)"}, {two(Shl, W64, un(ZExt, W64, 32, x), n(32)), "shl(zext32(x),20)"},
		{two(Add, W64, two(Add, W64, d, konst(W64, 3)), input(W64, 1)), "add(add(x,y),3)"}, {two(Add, W64, input(W64, 1), two(Add, W64, d, konst(W64, 3))), "add(add(x,y),3)"},
		{two(Mul, W64, two(Add, W64, d, konst(W64, 3)), konst(W64, 5)), "add(mul(x,5),f)"},
		{un(ZExt, W32, 32, x), "x"}, {un(ZExt, W32, 8, un(ZExt, W32, 16, x)), "zext8(x)"}, {un(ZExt, W32, 16, un(ZExt, W32, 8, x)), "zext8(x)"}, {un(SExt, W32, 16, un(SExt, W32, 8, x)), "sext8(x)"},
		{un(SExt, W32, 8, un(SExt, W32, 16, x)), "sext8(x)"}, {un(SExt, W32, 16, un(ZExt, W32, 8, x)), "zext8(x)"}, {un(SExt, W32, 8, un(ZExt, W32, 16, x)), "sext8(x)"},
		{un(ZExt, W32, 16, un(SExt, W32, 8, x)), "zext16(sext8(x))"}, {two(And, W32, un(ZExt, W32, 8, x), n(255)), "zext8(x)"}, {two(And, W32, un(ZExt, W32, 8, x), n(127)), "and(zext8(x),7f)"},
		{un(SExt, W64, 32, two(Add, W32, tid, n(5))), "add(sext32(tid),5)"}, {un(ZExt, W64, 32, two(Add, W32, tid, n(5))), "add(zext32(tid),5)"}, {un(ZExt, W64, 32, two(Add, W32, tid, n(1<<32-1))), "zext32(add(tid,ffffffff))"},
		{un(SExt, W64, 32, two(Add, W32, tid, n(1<<32-1))), "add(sext32(tid),ffffffffffffffff)"}, {two(MulS, W64, two(Add, W32, tid, n(5)), n(4)), "add(muls(tid,4),14)"},
		{two(MulU, W64, two(Add, W32, tid, n(5)), n(4)), "add(mulu(tid,4),14)"}, {un(SExt, W64, 16, two(Add, W32, tid, n(5))), "sext16(add(tid,5))"},
		{sel(W32, p, x, x), "x"}, {sel(W32, konst(W1, 1), x, y), "x"}, {sel(W32, konst(W1, 0), x, y), "y"}, {sel(W32, un(Not, W1, 0, p), x, y), "sel(x,y,x)"},
		{sel(W32, p, n(1), n(0)), "zext1(x)"}, {sel(W1, p, konst(W1, 1), konst(W1, 0)), "x"}, {cmp(LTS, n(5), x), "cmp.gts(x,5)"}, {cmp(GEU, n(5), x), "cmp.leu(x,5)"},
		{cmp(NE, un(ZExt, W32, 1, p), n(0)), "x"}, {cmp(EQ, un(ZExt, W32, 1, p), n(1)), "x"}, {cmp(EQ, un(ZExt, W32, 1, p), n(0)), "not(x)"}, {cmp(NE, un(ZExt, W32, 1, p), n(1)), "not(x)"},
		{two(Add, W32, n(3), n(4)), "7"}, {two(ShrS, W32, n(1<<31), n(40)), "ffffffff"}, {cmp(LTS, n(1<<31), n(0)), "1"}, {sel(W32, konst(W1, 1), n(3), n(4)), "3"},
	} {
		f, stores := exprFunc([]*expr{c.e})
		for range 3 {
			Algebra(f)
			Fold(f)
		}
		if got := f.tree(stores[0].Args[1]); got != c.want {
			t.Errorf("%v becomes %s, want %s", c.e, got, c.want)
		}
	}
	for in, w := range divisions(t) {
		f, stores := exprFunc([]*expr{{op: Row, w: w, inst: in, args: []*expr{input(w, 0), konst(w, 8)}}})
		Algebra(f)
		if got := f.tree(stores[0].Args[1]); strings.Contains(got, "row") {
			t.Errorf("%s.%v by 8 stays %s", in.Row.Op, in.Type, got)
		}
	}
}

// tree writes the computation of v.
func (f *Func) tree(v Value) string {
	d := f.Def(v)
	name := d.Op.String()
	switch d.Op {
	case Const:
		return fmt.Sprintf("%x", d.Imm)
	case KParam:
		return string('x' + rune(d.Imm/8))
	case Special:
		return "tid"
	case SExt, ZExt:
		name += fmt.Sprint(d.Imm)
	case Cmp:
		name += "." + condNames[d.Imm]
	}
	var args []string
	for _, a := range d.Args {
		args = append(args, f.tree(a))
	}
	return name + "(" + strings.Join(args, ",") + ")"
}

// TestSpecials checks what is known of special registers before a launch against every thread of blocks of many shapes:
// constants, bounds, and how they differ between lanes, if rows of a block are a part of a warp or whole warps.
func TestSpecials(t *testing.T) {
	sizes := []uint32{1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 48, 64}
	ids := []isa.SpecialID{isa.TidX, isa.TidY, isa.TidZ, isa.NtidX, isa.NtidY, isa.NtidZ, isa.LaneID}
	for _, x := range sizes {
		for _, y := range sizes[:9] {
			for _, z := range []uint32{1, 2, 3} {
				e := &Env{Block: [3]uint32{x, y, z}}
				for _, id := range ids {
					checkSpecial(t, e, id)
				}
			}
		}
	}
	for _, g := range []uint32{0, 1, 7} {
		e := &Env{Block: [3]uint32{32, 1, 1}, Grid: [3]uint32{g, 1, 3}}
		n, known := e.special(isa.NctaidX)
		zero, alone := e.special(isa.CtaidX)
		if known != (g != 0) || known && n != uint64(g) || alone != (g == 1) || zero != 0 {
			t.Errorf("%d blocks: %d %v, %d %v", g, n, known, zero, alone)
		}
		if lo, hi, ok := e.span(isa.CtaidX); ok != (g > 0) || ok && (lo != 0 || hi != int64(g)-1) {
			t.Errorf("%d blocks: %d to %d, %v", g, lo, hi, ok)
		}
		if n, ok := e.special(isa.NctaidZ); !ok || n != 3 {
			t.Errorf("%d in z, %v", n, ok)
		}
	}
}

func checkSpecial(t *testing.T, e *Env, id isa.SpecialID) {
	t.Helper()
	x, y, z := e.Block[0], e.Block[1], e.Block[2]
	value := func(thread uint32) int64 {
		switch id {
		case isa.TidX:
			return int64(thread % x)
		case isa.TidY:
			return int64(thread / x % y)
		case isa.TidZ:
			return int64(thread / x / y)
		case isa.LaneID:
			return int64(thread % 32)
		}
		return int64(e.Block[id-isa.NtidX])
	}
	constant, isConst := e.special(id)
	lo, hi, bounded := e.span(id)
	s, row := e.specialShape(id), e.RowLanes()
	threads := x * y * z
	exact := true // one stride and one step from row to row describe all warps
	for warp := uint32(0); warp < threads; warp += 32 {
		n := min(32, threads-warp)
		for l := range n {
			v := value(warp + l)
			if isConst && v != int64(constant) || bounded && (v < lo || v > hi) {
				t.Errorf("block %v, register %v of thread %d is %d: said %d %v, %d to %d %v", e.Block, id, warp+l, v, constant, isConst, lo, hi, bounded)
				return
			}
			stride, step := s.Stride, s.Row
			if s.Kind < Varying && v != value(warp)+int64(l)%row*stride+int64(l)/row*step {
				t.Errorf("block %v, register %v of thread %d is %d: said %v in rows of %d", e.Block, id, warp+l, v, s, row)
				return
			}
			exact = exact && v == value(warp)+int64(l)%row*(value(warp+min(1, n-1))-value(warp))
		}
	}
	if isConst { // folded before anybody asks
		return
	}
	wholeRows := x%32 == 0 || 32%x == 0 && y*z > 1 && x > 1 // lanes are columns
	if wholeRows && id == isa.TidX && s.Kind == Varying || x%32 == 0 && s.Kind == Varying || exact && s.Kind == Varying && y*z == 1 {
		t.Errorf("block %v, register %v: nothing is known of how it varies", e.Block, id)
	}
	if id == isa.TidY && 32%x == 0 && x < 32 && z == 1 && y > 1 && s.Kind != Affine {
		t.Errorf("block %v: %%tid.y is not known to grow by rows", e.Block)
	}
}
