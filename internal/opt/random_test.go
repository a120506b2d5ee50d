package opt

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// outWords is how many results a random program stores, in 8-byte words.
const outWords = 12

// thread is the state of one thread of a random program: memory it stores results in, local memory.
type thread struct {
	params []byte
	out    [outWords * 8]byte
	local  [256]byte
	log    []string // stores in order
}

func (t *thread) store(space event.Space, addr, v uint64, size int) {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], v)
	if space == event.Local {
		copy(t.local[addr:addr+uint64(size)], raw[:size])
		return
	}
	copy(t.out[addr:addr+uint64(size)], raw[:size])
	t.log = append(t.log, fmt.Sprintf("[%d]%d=%x", addr, size, raw[:size]))
}

func (t *thread) load(space event.Space, addr uint64, size int) uint64 {
	var raw [8]byte
	if space == event.Local {
		copy(raw[:], t.local[addr:addr+uint64(size)])
	} else {
		copy(raw[:], t.out[addr:addr+uint64(size)])
	}
	return binary.LittleEndian.Uint64(raw[:])
}

// runDecoded executes the decoded kernel for one thread: straightforward, by the manual.
func runDecoded(t *testing.T, f *isa.Func, th *thread) {
	regs := make([]uint64, f.Regs)
	val := func(o *isa.Operand) uint64 {
		switch o.Kind {
		case isa.Reg:
			if o.Not {
				return regs[o.Reg]&1 ^ 1
			}
			return regs[o.Reg]
		case isa.Imm, isa.LocalAddr, isa.ParamAddr:
			return o.Imm
		case isa.Sink:
			return 0
		}
		t.Fatalf("operand kind %d", o.Kind)
		return 0
	}
	for pc, steps := 0, 0; ; steps++ {
		if steps > 100000 {
			t.Fatal("endless")
		}
		in := &f.Insts[pc]
		pc++
		if in.Guard >= 0 && (regs[in.Guard]&1 != 0) == in.GuardNot {
			continue
		}
		switch in.Class {
		case isa.Pure:
			var a isa.Args
			for i := range in.Src {
				a.S[i] = val(&in.Src[i])
			}
			in.Eval(in, &a)
			for i := range in.Dst {
				if in.Dst[i].Kind == isa.Reg {
					regs[in.Dst[i].Reg] = a.D[i]
				}
			}
		case isa.Branch:
			pc = int(in.Targets[0])
		case isa.Load:
			addr := val(&in.Src[0]) + uint64(in.Off)
			n := in.Type.Size()
			if in.Space == event.Param {
				var raw [8]byte
				copy(raw[:], th.params[addr:addr+uint64(n)])
				regs[in.Dst[0].Reg] = in.Type.Extend(binary.LittleEndian.Uint64(raw[:]), in.Dst[0].Size)
				continue
			}
			space := in.Space
			if space == event.Generic && addr>>56 == isa.LocalWindow>>56 {
				space, addr = event.Local, addr-isa.LocalWindow
			}
			regs[in.Dst[0].Reg] = in.Type.Extend(th.load(space, addr, n), in.Dst[0].Size)
		case isa.Store:
			addr := val(&in.Src[0]) + uint64(in.Off)
			space := in.Space
			if space == event.Generic && addr>>56 == isa.LocalWindow>>56 {
				space, addr = event.Local, addr-isa.LocalWindow
			}
			th.store(space, addr, val(&in.Src[1]), in.Type.Size())
		case isa.Ret:
			return
		default:
			t.Fatalf("class %d", in.Class)
		}
	}
}

// runForm executes the internal form for one thread.
func runForm(t *testing.T, f *Func, th *thread) {
	vals := make([]uint64, len(f.Values))
	var from *Block
	b := f.Blocks[0]
	for steps := 0; ; steps++ {
		if steps > 100000 {
			t.Fatal("endless")
		}
		var phis []uint64
		for _, in := range b.Instrs {
			if in.Op != Phi {
				break
			}
			for i, p := range b.Preds {
				if p == from {
					phis = append(phis, vals[in.Args[i]])
					break
				}
			}
		}
		var next *Block
		for k, in := range b.Instrs {
			arg := func(i int) uint64 {
				if in.Args[i] == NoValue {
					return 0
				}
				return vals[in.Args[i]]
			}
			if in.Guard != NoValue && (vals[in.Guard]&1 != 0) == in.GuardNot {
				continue
			}
			switch {
			case in.Op == Phi:
				vals[in.Result()] = phis[k]
			case in.Op == Const, in.Op == LocalPtr:
				vals[in.Result()] = in.Imm
			case in.Op == KParam:
				var raw [8]byte
				copy(raw[:], th.params[in.Imm:in.Imm+uint64(in.Aux)])
				vals[in.Result()] = binary.LittleEndian.Uint64(raw[:])
			case in.Op == Copy:
				vals[in.Result()] = arg(0)
			case in.Op == Row:
				var a isa.Args
				for i := range in.Args {
					a.S[i] = arg(i)
				}
				in.Inst.Eval(in.Inst, &a)
				for i, d := range in.Dst {
					if d != NoValue {
						vals[d] = a.D[i]
					}
				}
			case in.Op > Copy && in.Op < Row:
				var c [3]uint64
				for i := range in.Args {
					c[i] = arg(i)
				}
				w := f.Width(in.Result())
				vals[in.Result()] = evalNative(in.Op, in.Imm, in.Aux, w.Bits(), c[0], c[1], c[2]) & w.Mask()
			case in.Op == Load, in.Op == Store:
				addr, space := arg(0)+in.Imm, in.Inst.Space
				if space == event.Generic && addr>>56 == isa.LocalWindow>>56 {
					space, addr = event.Local, addr-isa.LocalWindow
				}
				n := in.Inst.Type.Size()
				if in.Op == Store {
					th.store(space, addr, arg(1), n)
				} else {
					vals[in.Result()] = in.Inst.Type.Extend(th.load(space, addr, n), in.Inst.Dst[0].Size)
				}
			case in.Op == Jump:
				next = b.Succs[0]
			case in.Op == Branch:
				next = b.Succs[1-arg(0)&1]
			case in.Op == Exit:
				return
			default:
				t.Fatalf("cannot run %s", f.Text(in))
			}
		}
		from, b = b, next
	}
}

// program is a random kernel: integer arithmetic of all widths, predicates, selects, guarded instructions, branches,
// bounded loops, local memory reached through generic pointers, stores of results.
type program struct {
	rng  *rand.Rand
	s    strings.Builder
	next int
}

func (p *program) pick(list ...string) string { return list[p.rng.IntN(len(list))] }

func (p *program) reg(bits int) string {
	if p.rng.IntN(5) == 0 && bits > 1 {
		c := []int64{0, 1, -1, 2, 4, 31, 32, 33, 255, 65535, 1 << 31, int64(p.rng.Uint32())}[p.rng.IntN(12)]
		return fmt.Sprint(uint64(c) & (1<<min(bits, 32) - 1))
	}
	return p.dst(bits)
}

func (p *program) dst(bits int) string {
	return fmt.Sprintf("%%%s%d", map[int]string{1: "p", 16: "h", 32: "r", 64: "d"}[bits], p.rng.IntN(6))
}

func (p *program) line(format string, args ...any) {
	guard := ""
	if p.rng.IntN(8) == 0 {
		guard = p.pick("@", "@!") + p.dst(1) + " "
	}
	fmt.Fprintf(&p.s, "\t%s"+format+";\n", append([]any{guard}, args...)...)
}

func (p *program) op() {
	bits := []int{16, 32, 32, 32, 64, 64}[p.rng.IntN(6)]
	n := fmt.Sprint(bits)
	sign := p.pick("s", "u")
	switch p.rng.IntN(16) {
	case 0, 1:
		p.line("%s.%s%s %s, %s, %s", p.pick("add", "sub"), sign, n, p.dst(bits), p.dst(bits), p.reg(bits))
	case 2:
		p.line("mul.lo.%s%s %s, %s, %s", sign, n, p.dst(bits), p.dst(bits), p.reg(bits))
	case 3:
		p.line("mad.lo.%s%s %s, %s, %s, %s", sign, n, p.dst(bits), p.dst(bits), p.reg(bits), p.reg(bits))
	case 4:
		if bits == 64 {
			bits = 32
		}
		p.line("mul.wide.%s%d %s, %s, %s", sign, bits, p.dst(2*bits), p.dst(bits), p.reg(bits))
	case 5, 6:
		p.line("%s.b%s %s, %s, %s", p.pick("and", "or", "xor"), n, p.dst(bits), p.dst(bits), p.reg(bits))
	case 7:
		p.line("%s.b%s %s, %s, %d", "shl", n, p.dst(bits), p.dst(bits), p.rng.IntN(70))
	case 8:
		p.line("shr.%s%s %s, %s, %s", p.pick("s", "u", "b"), n, p.dst(bits), p.dst(bits), p.reg(32))
	case 9:
		p.line("not.b%s %s, %s", n, p.dst(bits), p.dst(bits))
	case 10:
		p.line("setp.%s.%s%s %s, %s, %s", p.pick("eq", "ne", "lt", "le", "gt", "ge"), sign, n, p.dst(1), p.dst(bits), p.reg(bits))
	case 11:
		p.line("selp.b%s %s, %s, %s, %s", n, p.dst(bits), p.reg(bits), p.reg(bits), p.dst(1))
	case 12, 13:
		from := []int{16, 32, 64}[p.rng.IntN(3)]
		t, st := p.pick("s", "u"), p.pick("s", "u")
		tb, sb := bits, from
		if p.rng.IntN(3) == 0 {
			tb = min(tb, []int{8, 16, 32}[p.rng.IntN(3)])
		}
		if p.rng.IntN(3) == 0 {
			sb = min(sb, []int{8, 16, 32}[p.rng.IntN(3)])
		}
		p.line("cvt.%s%d.%s%d %s, %s", t, tb, st, sb, p.dst(bits), p.dst(from))
	case 14:
		p.line("%s.pred %s, %s, %s", p.pick("and", "or", "xor"), p.dst(1), p.dst(1), p.dst(1))
	case 15:
		p.line("%s", p.pick("not.pred %p1, %p2", "neg.s32 %r1, %r2", "selp.u16 %h1, 1, 0, %p3", "and.b16 %h2, %h1, 1", "setp.eq.b16 %p4, %h2, 1",
			"mov.b32 %r3, %r4", "min.s32 %r2, %r2, %r5", "div.u32 %r4, %r3, %r2", "div.s32 %r4, %r3, 8", "rem.u32 %r1, %r2, 16",
			"setp.lt.and.s32 %p1, %r1, %r2, %p2", "popc.b32 %r0, %r1", "mov.b64 %d1, {%r1, %r2}", "mov.b64 {%r1, %r2}, %d3"))
	}
}

func (p *program) body(depth, n int) {
	for range n {
		switch k := p.rng.IntN(20); {
		case k == 0 && depth > 0:
			p.next++
			l := p.next
			fmt.Fprintf(&p.s, "\t@%s bra A%d;\n", p.dst(1), l)
			p.body(depth-1, n/2)
			fmt.Fprintf(&p.s, "\tbra B%d;\nA%d:\n", l, l)
			p.body(depth-1, n/2)
			fmt.Fprintf(&p.s, "B%d:\n", l)
		case k == 1 && depth > 0:
			p.next++
			l := p.next
			fmt.Fprintf(&p.s, "\tmov.u32 %%c%d, 0;\nA%d:\n", l, l)
			p.body(depth-1, n/2)
			fmt.Fprintf(&p.s, "\tadd.u32 %%c%d, %%c%d, 1;\n\tsetp.lt.u32 %%q%d, %%c%d, %d;\n\t@%%q%d bra A%d;\n", l, l, l, l, 1+p.rng.IntN(4), l, l)
		case k < 4:
			bits := []int{16, 32, 64}[p.rng.IntN(3)]
			at := p.rng.IntN(4) * 8
			if p.rng.IntN(2) == 0 {
				p.line("st.b%d [%%sp+%d], %s", bits, at, p.dst(bits))
			} else {
				p.line("ld.%s%d %s, [%%sp+%d]", p.pick("u", "s"), bits, p.dst(bits), at)
			}
		case k < 6:
			bits := []int{16, 32, 64}[p.rng.IntN(3)]
			p.line("st.global.b%d [%d], %s", bits, p.rng.IntN(outWords)*8, p.dst(bits))
		default:
			p.op()
		}
	}
}

func randomProgram(seed uint64) string {
	p := &program{rng: rand.New(rand.NewPCG(seed, 1))}
	p.s.WriteString("\t.local .align 8 .b8 depot[32];\n\tmov.u64 %spl, depot;\n\tcvta.local.u64 %sp, %spl;\n")
	for i := range 6 {
		fmt.Fprintf(&p.s, "\tld.param.u64 %%d%d, [in+%d];\n\tld.param.u32 %%r%d, [in+%d];\n\tld.param.u16 %%h%d, [in+%d];\n", i, i*8, i, i*4, i, i*2)
		fmt.Fprintf(&p.s, "\tsetp.lt.s32 %%p%d, %%r%d, %%r%d;\n", i, i, max(0, i-1))
	}
	p.body(3, 16)
	for i := range 6 {
		fmt.Fprintf(&p.s, "\tst.global.b64 [%d], %%d%d;\n\tst.global.b32 [%d], %%r%d;\n\tst.global.b16 [%d], %%h%d;\n", i*8, i, 48+i*4, i, 72+i*2, i)
	}
	var head strings.Builder
	head.WriteString(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .align 8 .b8 in[48])\n{\n" +
		"\t.reg .pred %p<6>;\n\t.reg .b16 %h<6>;\n\t.reg .b32 %r<6>;\n\t.reg .b64 %d<6>;\n\t.reg .b64 %sp, %spl;\n")
	fmt.Fprintf(&head, "\t.reg .pred %%q<%d>;\n\t.reg .b32 %%c<%d>;\n", p.next+1, p.next+1)
	return head.String() + p.s.String() + "\tret;\n}\n"
}

// TestRandom runs random programs as decoded and as optimised, and wants the same stores in the same order.
func TestRandom(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 300
	}
	for seed := range uint64(n) {
		checkRandom(t, seed)
		if t.Failed() {
			return
		}
	}
}

func checkRandom(t *testing.T, seed uint64) {
	src := randomProgram(seed)
	tree, err := ptx.Parse("random.ptx", src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	m, err := isa.Decode(tree)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	k := m.Kernels()[0]
	if k.Err != nil {
		t.Fatalf("%v\n%s", k.Err, src)
	}
	f, err := Build(k, Env{Block: [3]uint32{1, 1, 1}, Grid: [3]uint32{1, 1, 1}, Shared: m.SharedLayout(k)})
	if err != nil {
		t.Fatal(err)
	}
	built := f.String()
	Optimise(f, func(pass string, f *Func) {
		if err := Verify(f); err != nil {
			t.Fatalf("seed %d, after %s: %v\n%s\n%s", seed, pass, err, f, src)
		}
	})
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 4 {
		params := make([]byte, 48)
		for i := range params {
			params[i] = byte(rng.Uint32())
			if rng.IntN(3) == 0 {
				params[i] = byte(rng.IntN(2) * 255)
			}
		}
		want, got := &thread{params: params}, &thread{params: params}
		runDecoded(t, k, want)
		runForm(t, f, got)
		if a, b := strings.Join(want.log, " "), strings.Join(got.log, " "); a != b {
			t.Errorf("seed %d: the stores differ\nwant %s\ngot  %s\n%s\nbuilt:\n%s\noptimised:\n%s", seed, a, b, src, built, f)
			return
		}
	}
}
