package opt

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/ptx"
)

// outWords is the number of results of a random program, in 8-byte words.
const outWords = 12

// thread is the state of a thread of a random program: the memory for results, and local memory.
type thread struct {
	params []byte
	out    [outWords * 8]byte
	local  [16 << 10]byte
	log    []string // stores in order
	steps  int
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

// bytesAt reads size bytes at an offset as a number.
func bytesAt(p []byte, off uint64, size int) uint64 {
	var raw [8]byte
	copy(raw[:size], p[off:off+uint64(size)])
	return binary.LittleEndian.Uint64(raw[:])
}

// putBytes writes the low size bytes of v.
func putBytes(p []byte, off, v uint64, size int) {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], v)
	copy(p[off:], raw[:size])
}

// step counts an instruction.
func (t *thread) step(test *testing.T) {
	if t.steps++; t.steps > 300000 {
		test.Fatal("endless")
	}
}

// codeBase is the address of function 0 in these tests.
const codeBase = 0x0400_0000_0000_0000

// decodedFrame is one call of a function that runs as decoded.
type decodedFrame struct {
	f     *isa.Func
	regs  []uint64
	param []byte
	local uint64
}

func (fr *decodedFrame) val(t *testing.T, o *isa.Operand) uint64 {
	switch o.Kind {
	case isa.Reg:
		if o.Not {
			return fr.regs[o.Reg]&1 ^ 1
		}
		return fr.regs[o.Reg]
	case isa.Imm, isa.ParamAddr:
		return o.Imm
	case isa.LocalAddr:
		return fr.local + o.Imm
	case isa.FuncAddr:
		return codeBase + uint64(o.Func.Index)
	case isa.Sink:
		return 0
	}
	t.Fatalf("operand kind %d", o.Kind)
	return 0
}

// call runs the function that a call means and hands over arguments and results.
func (fr *decodedFrame) call(t *testing.T, m *isa.Module, in *isa.Inst, th *thread) {
	fn := in.Callee
	if fn == nil {
		fn = m.Funcs[fr.val(t, &in.Src[0])-codeBase]
	}
	to := &decodedFrame{f: fn, regs: make([]uint64, fn.Regs), param: make([]byte, fn.ParamFrame), local: fr.local + uint64(fr.f.LocalFrame+15)&^15}
	clear(th.local[to.local:][:fn.LocalFrame])
	for i, p := range fn.Sig.Params {
		op := &in.ArgOps[i]
		switch {
		case p.Off >= 0 && op.Kind == isa.ParamAddr:
			copy(to.param[p.Off:][:p.Size], fr.param[op.Imm:])
		case p.Off >= 0:
			putBytes(to.param, uint64(p.Off), fr.val(t, op), p.Size)
		case op.Kind == isa.ParamAddr:
			to.regs[p.Reg] = bytesAt(fr.param, op.Imm, p.Size)
		default:
			to.regs[p.Reg] = fr.val(t, op)
		}
	}
	to.run(t, m, th)
	for i, p := range fn.Sig.Rets {
		op := &in.RetOps[i]
		switch {
		case p.Off >= 0 && op.Kind == isa.ParamAddr:
			copy(fr.param[op.Imm:], to.param[p.Off:][:p.Size])
		case p.Off >= 0:
			fr.regs[op.Reg] = bytesAt(to.param, uint64(p.Off), p.Size)
		case op.Kind == isa.ParamAddr:
			putBytes(fr.param, op.Imm, to.regs[p.Reg], p.Size)
		default:
			fr.regs[op.Reg] = to.regs[p.Reg]
		}
	}
}

// run executes the decoded function for one thread: straightforward, by the manual.
func (fr *decodedFrame) run(t *testing.T, m *isa.Module, th *thread) {
	regs := fr.regs
	for pc := 0; ; {
		th.step(t)
		in := &fr.f.Insts[pc]
		pc++
		if in.Guard >= 0 && (regs[in.Guard]&1 != 0) == in.GuardNot {
			continue
		}
		switch in.Class {
		case isa.Pure:
			var a isa.Args
			for i := range in.Src {
				a.S[i] = fr.val(t, &in.Src[i])
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
			addr := fr.val(t, &in.Src[0]) + uint64(in.Off)
			n := in.Type.Size()
			if in.Space == event.Param {
				regs[in.Dst[0].Reg] = in.Type.Extend(bytesAt(fr.param, addr, n), in.Dst[0].Size)
				continue
			}
			space := in.Space
			if space == event.Generic && addr>>56 == isa.LocalWindow>>56 {
				space, addr = event.Local, addr-isa.LocalWindow
			}
			regs[in.Dst[0].Reg] = in.Type.Extend(th.load(space, addr, n), in.Dst[0].Size)
		case isa.Store:
			addr := fr.val(t, &in.Src[0]) + uint64(in.Off)
			space := in.Space
			if space == event.Param {
				putBytes(fr.param, addr, fr.val(t, &in.Src[1]), in.Type.Size())
				continue
			}
			if space == event.Generic && addr>>56 == isa.LocalWindow>>56 {
				space, addr = event.Local, addr-isa.LocalWindow
			}
			for k := range in.Src[1:] {
				th.store(space, addr+uint64(k*in.Type.Size()), fr.val(t, &in.Src[1+k]), in.Type.Size())
			}
		case isa.Call:
			fr.call(t, m, in, th)
		case isa.Ret:
			return
		default:
			t.Fatalf("class %d", in.Class)
		}
	}
}

func runDecoded(t *testing.T, m *isa.Module, f *isa.Func, th *thread) {
	fr := &decodedFrame{f: f, regs: make([]uint64, f.Regs), param: make([]byte, f.ParamFrame)}
	copy(fr.param, th.params)
	fr.run(t, m, th)
}

// forms are the functions of a program in internal form.
type forms map[*isa.Func]*Func

// run executes the internal form for one thread; local is where its local memory begins. It gives the results.
func (fs forms) run(t *testing.T, m *isa.Module, f *Func, th *thread, local uint64, args []uint64) []uint64 {
	vals := make([]uint64, len(f.Values))
	clear(th.local[local:][:f.Local])
	var from *Block
	b := f.Blocks[0]
	for {
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
			th.step(t)
			arg := func(i int) uint64 {
				if in.Args[i] == NoValue {
					return 0
				}
				return vals[in.Args[i]]
			}
			give := func(results []uint64) {
				for i, d := range in.Dst {
					if d != NoValue {
						vals[d] = results[i]
					}
				}
			}
			if in.Guard != NoValue && (vals[in.Guard]&1 != 0) == in.GuardNot {
				continue
			}
			switch {
			case in.Op == Phi:
				vals[in.Result()] = phis[k]
			case in.Op == Const:
				vals[in.Result()] = in.Imm
			case in.Op == LocalPtr:
				vals[in.Result()] = local + in.Imm
			case in.Op == Symbol:
				vals[in.Result()] = codeBase + uint64(in.Sym.Func.Index)
			case in.Op == KParam:
				vals[in.Result()] = bytesAt(th.params, in.Imm, int(in.Aux))
			case in.Op == Copy:
				vals[in.Result()] = arg(0)
			case in.Op == Row:
				var a isa.Args
				for i := range in.Args {
					a.S[i] = arg(i)
				}
				in.Inst.Eval(in.Inst, &a)
				give(a.D[:])
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
					for i := range in.Args[1:] {
						th.store(space, addr+uint64(i*n), arg(1+i), n)
					}
				} else {
					vals[in.Result()] = in.Inst.Type.Extend(th.load(space, addr, n), in.Inst.Dst[0].Size)
				}
			case in.Op == Enter:
				give(args)
			case in.Op == Depth:
			case in.Op == Call:
				fn := in.Fn
				if fn == nil {
					fn = m.Funcs[arg(0)-codeBase]
				}
				var out []uint64
				for i := range in.Args[1:] {
					out = append(out, arg(1+i))
				}
				give(fs.run(t, m, fs[fn], th, local+uint64(f.Local), out))
			case in.Op == Jump:
				next = b.Succs[0]
			case in.Op == Branch:
				next = b.Succs[1-arg(0)&1]
			case in.Op == Exit:
				return nil
			case in.Op == Return:
				var out []uint64
				for i := range in.Args {
					out = append(out, arg(i))
				}
				return out
			default:
				t.Fatalf("cannot run %s", f.Text(in))
			}
		}
		from, b = b, next
	}
}

// program is a random kernel: integer arithmetic of all widths, predicates, selects, guarded instructions, branches,
// bounded loops, local memory accessed through generic pointers, stores of results, and calls, also recursive and
// through pointers.
type program struct {
	rng   *rand.Rand
	s     strings.Builder
	next  int
	funcs int // functions that may be called
	calls int // calls that may still be written in this function
}

func (p *program) pick(list ...string) string { return list[p.rng.IntN(len(list))] }

func (p *program) reg(bits int) string {
	if p.rng.IntN(5) == 0 && bits > 1 {
		return p.number(bits)
	}
	return p.dst(bits)
}

// number returns a number of the given bits, usually one at which a rule begins or ceases to apply.
func (p *program) number(bits int) string {
	top := int64(1) << (bits - 1)
	c := []int64{0, 1, -1, 2, 4, 5, 31, 32, 33, 255, 65535, 1 << 31, top, top - 1, top + 1, -2, -8, 1 << p.rng.IntN(bits), int64(bits) - 1, int64(bits), int64(bits) + 1,
		int64(p.rng.Uint64())}[p.rng.IntN(22)]
	return fmt.Sprint(uint64(c) & (1<<(bits-1)<<1 - 1))
}

// two returns two operands: registers, a number on either side, or the same register twice.
func (p *program) two(bits int) string {
	switch p.rng.IntN(8) {
	case 0:
		return p.number(bits) + ", " + p.dst(bits)
	case 1:
		r := p.dst(bits)
		return r + ", " + r
	}
	return p.dst(bits) + ", " + p.reg(bits)
}

func (p *program) dst(bits int) string {
	return fmt.Sprintf("%%%s%d", map[int]string{1: "p", 8: "b", 16: "h", 32: "r", 64: "d"}[bits], p.rng.IntN(6))
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
	switch p.rng.IntN(19) {
	case 0, 1:
		p.line("%s.%s%s %s, %s", p.pick("add", "sub"), sign, n, p.dst(bits), p.two(bits))
	case 2:
		p.line("mul.lo.%s%s %s, %s", sign, n, p.dst(bits), p.two(bits))
	case 3:
		p.line("mad.lo.%s%s %s, %s, %s, %s", sign, n, p.dst(bits), p.dst(bits), p.reg(bits), p.reg(bits))
	case 4:
		if bits == 64 {
			bits = 32
		}
		p.line("mul.wide.%s%d %s, %s, %s", sign, bits, p.dst(2*bits), p.dst(bits), p.reg(bits))
	case 5, 6:
		p.line("%s.b%s %s, %s", p.pick("and", "or", "xor"), n, p.dst(bits), p.two(bits))
	case 7:
		p.line("%s.b%s %s, %s, %d", "shl", n, p.dst(bits), p.dst(bits), p.rng.IntN(70))
	case 8:
		p.line("%s%s %s, %s, %s", p.pick("shr.s", "shr.u", "shr.b", "shl.b"), n, p.dst(bits), p.reg(bits), p.pick(p.reg(32), fmt.Sprint(bits-1), fmt.Sprint(bits), fmt.Sprint(bits+1)))
	case 9:
		p.line("not.b%s %s, %s", n, p.dst(bits), p.dst(bits))
	case 10:
		p.line("setp.%s.%s%s %s, %s", p.pick("eq", "ne", "lt", "le", "gt", "ge"), sign, n, p.dst(1), p.two(bits))
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
			"setp.lt.and.s32 %p1, %r1, %r2, %p2", "mov.b16 %h3, {%b1, %b2}", "mov.b32 {%b0, %b1, %b2, %b3}, %r1", "popc.b32 %r0, %r1", "mov.b64 %d1, {%r1, %r2}", "mov.b64 {%r1, %r2}, %d3"))
	case 16, 17:
		p.line("%s.%s%s %s, %s", p.pick("div", "rem"), sign, n, p.dst(bits), p.two(bits))
	case 18:
		wide := []int{16, 32, 64}[p.rng.IntN(3)]
		if p.rng.IntN(2) == 0 {
			p.line("cvt%s.%s8.%s%d %s, %s", p.pick("", ".sat"), p.pick("s", "u"), sign, wide, p.dst(8), p.dst(wide))
		} else {
			p.line("cvt.%s%d.%s8 %s, %s", p.pick("s", "u"), wide, sign, p.dst(wide), p.dst(8))
		}
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
			bits := []int{8, 16, 32, 64}[p.rng.IntN(4)]
			at := p.rng.IntN(4) * 8
			reg := max(bits, []int{8, 16, 32, 64}[p.rng.IntN(4)])
			if p.rng.IntN(2) == 0 {
				p.line("st.b%d [%%sp+%d], %s", bits, at, p.dst(reg))
			} else {
				p.line("ld.%s%d %s, [%%sp+%d]", p.pick("u", "s"), bits, p.dst(reg), at)
			}
		case k < 6:
			bits := []int{8, 16, 32, 64}[p.rng.IntN(4)]
			p.line("st.global.b%d [%d], %s", bits, p.rng.IntN(outWords)*8, p.dst(bits))
		case k == 6 && p.calls > 0:
			p.calls--
			p.call()
		default:
			p.op()
		}
	}
}

// call writes a call of one of the functions, by name or through a pointer. It happens while there are turns left.
func (p *program) call() {
	p.next++
	l, fn := p.next, fmt.Sprintf("f%d", p.rng.IntN(p.funcs))
	proto := ""
	fmt.Fprintf(&p.s, "\tsetp.eq.u32 %%q%d, %%left, 0;\n\t@%%q%d bra A%d;\n", l, l, l)
	if p.rng.IntN(2) == 0 {
		fmt.Fprintf(&p.s, "\tmov.u64 %%fp, %s;\n\tmov.u64 %%fq, f%d;\n\tselp.b64 %%fp, %%fp, %%fq, %s;\n", fn, p.rng.IntN(p.funcs), p.dst(1))
		fmt.Fprintf(&p.s, "P%d: .callprototype (.param .b32 _, .param .align 8 .b8 _[12]) _ (.param .b32 _, .param .b64 _, .param .align 8 .b8 _[20]);\n", l)
		fn, proto = "%fp", fmt.Sprintf(", P%d", l)
	}
	p.s.WriteString("\t{ .param .b32 a; .param .b64 b; .param .align 8 .b8 c[20]; .param .b32 d; .param .align 8 .b8 e[12];\n")
	p.s.WriteString("\tsub.u32 %next, %left, 1;\n\tst.param.b32 [a], %next;\n")
	fmt.Fprintf(&p.s, "\tst.param.b64 [b], %s;\n\tst.param.b64 [c], %s;\n\tst.param.b32 [c+8], %s;\n", p.pick("%sp", "%sp", "%up"), p.dst(64), p.dst(32))
	if p.rng.IntN(4) == 0 { // set on both sides of a branch
		fmt.Fprintf(&p.s, "\t@%s bra S%d;\n\tst.param.b32 [c+4], %s;\nS%d:\n", p.dst(1), l, p.dst(32), l)
	}
	fmt.Fprintf(&p.s, "\tst.param.b64 [c+12], %s;\n", p.dst(64))
	p.line("st.param.b%s", p.pick("32 [c+16], "+p.dst(32), "16 [c+2], "+p.dst(16)))
	fmt.Fprintf(&p.s, "\tcall (d, e), %s, (a, b, c)%s;\n", fn, proto)
	fmt.Fprintf(&p.s, "\tld.param.b32 %s, [d];\n\tld.param.b64 %s, [e];\n\tld.param.s16 %s, [e+10];\n\tld.param.u16 %s, [e+8]; }\nA%d:\n", p.dst(32), p.dst(64), p.dst(32), p.dst(16), l)
}

const programRegs = "\t.reg .pred %p<6>;\n\t.reg .b8 %b<6>;\n\t.reg .b16 %h<6>;\n\t.reg .b32 %r<6>, %left, %next;\n\t.reg .b64 %d<6>;\n\t.reg .b64 %sp, %spl, %up, %fp, %fq;\n"

// function writes function i. It may write its caller's memory through a pointer.
func (p *program) function(i int) string {
	p.s.Reset()
	p.s.WriteString("\t.local .align 8 .b8 depot[32];\n\tmov.u64 %spl, depot;\n\tcvta.local.u64 %sp, %spl;\n" +
		"\tld.param.u32 %left, [x];\n\tld.param.u64 %up, [y];\n\tld.param.u64 %d0, [z];\n\tld.param.u32 %r0, [z+8];\n\tld.param.u16 %h0, [z+12];\n\tld.param.b32 %r1, [z+16];\n")
	for j := range 5 {
		fmt.Fprintf(&p.s, "\tcvt.u8.u32 %%b%d, %%r0;\n", j)
		fmt.Fprintf(&p.s, "\tadd.u64 %%d%d, %%d0, %d;\n\tadd.u32 %%r%d, %%r%d, %d;\n\tadd.u16 %%h%d, %%h0, %d;\n\tsetp.lt.s32 %%p%d, %%r%d, %%r0;\n", j+1, j*7, j+1, j%2, j*j, j+1, j, j, j+1)
	}
	// What was never written is undefined, and an inlined call finds there what the last one left.
	p.s.WriteString("\tcvt.u8.u32 %b5, %r1;\n")
	p.s.WriteString("\tsetp.gt.u32 %p5, %r2, %r3;\n\tst.b32 [%up+8], %r2;\n\tst.local.v4.b32 [depot], {%r0, %r1, %r2, %r3};\n\tst.v2.u64 [%sp+16], {%d0, %d1};\n")
	p.calls = 2
	p.body(2, 6)
	fmt.Fprintf(&p.s, "\tld.u32 %%r4, [%%up+%d];\n\tst.param.b32 [out], %%r4;\n\tst.param.b64 [rest], %s;\n\tst.param.b16 [rest+8], %%h1;\n\tst.param.b16 [rest+10], %%h2;\n", 4*p.rng.IntN(8), p.dst(64))
	p.line("st.param.b32 [rest], %%r%d", p.rng.IntN(6))
	return fmt.Sprintf(".func (.param .b32 out, .param .align 8 .b8 rest[12]) f%d(.param .b32 x, .param .b64 y, .param .align 8 .b8 z[20])\n{\n%s", i, programRegs) +
		p.counters() + p.s.String() + "\tret;\n}\n"
}

// counters declares the counters of loops and calls.
func (p *program) counters() string {
	return fmt.Sprintf("\t.reg .pred %%q<%d>;\n\t.reg .b32 %%c<%d>;\n", p.next+1, p.next+1)
}

func randomProgram(seed uint64) string {
	p := &program{rng: rand.New(rand.NewPCG(seed, 1))}
	var head strings.Builder
	head.WriteString(".version 8.0\n.target sm_80\n.address_size 64\n")
	if seed%3 == 0 {
		p.funcs = 1 + p.rng.IntN(3)
		for i := range p.funcs {
			fmt.Fprintf(&head, ".func (.param .b32 out, .param .align 8 .b8 rest[12]) f%d(.param .b32 x, .param .b64 y, .param .align 8 .b8 z[20]);\n", i)
		}
		for i := range p.funcs {
			head.WriteString(p.function(i))
		}
		p.s.Reset()
		p.calls = 4
	}
	p.s.WriteString("\t.local .align 8 .b8 depot[32];\n\tmov.u64 %spl, depot;\n\tcvta.local.u64 %sp, %spl;\n\tmov.u64 %up, %sp;\n")
	fmt.Fprintf(&p.s, "\tmov.u32 %%left, %d;\n", p.rng.IntN(4))
	for i := range 6 {
		fmt.Fprintf(&p.s, "\tld.param.u64 %%d%d, [in+%d];\n\tld.param.u32 %%r%d, [in+%d];\n\tld.param.u16 %%h%d, [in+%d];\n", i, i*8, i, i*4, i, i*2)
		fmt.Fprintf(&p.s, "\tsetp.lt.s32 %%p%d, %%r%d, %%r%d;\n\tld.param.u8 %%b%d, [in+%d];\n", i, i, max(0, i-1), i, i*7)
	}
	p.body(3, 16)
	for i := range 6 {
		fmt.Fprintf(&p.s, "\tst.global.b64 [%d], %%d%d;\n\tst.global.b32 [%d], %%r%d;\n\tst.global.b16 [%d], %%h%d;\n\tst.global.b8 [%d], %%b%d;\n", i*8, i, 48+i*4, i, 72+i*2, i, 84+i, i)
	}
	head.WriteString(".visible .entry k(.param .align 8 .b8 in[48])\n{\n" + programRegs)
	return head.String() + p.counters() + p.s.String() + "\tret;\n}\n"
}

// TestRandom runs random programs as decoded and as optimised. They must make the same stores in the same order.
func TestRandom(t *testing.T) {
	n := 3000
	if !testsize.Long() {
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
	t.Helper()
	checkProgram(t, seed, randomProgram(seed))
}

// checkProgram runs the kernel of a module as decoded and as optimised, with random parameters.
func checkProgram(t *testing.T, seed uint64, src string) {
	t.Helper()
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
	list, err := Build(k, Env{Block: [3]uint32{1, 1, 1}, Grid: [3]uint32{1, 1, 1}, Shared: m.SharedLayout(k)})
	if err != nil {
		t.Fatal(err)
	}
	built, optimised := "", ""
	fs := forms{}
	for _, f := range list {
		if err := Verify(f); err != nil {
			t.Fatalf("seed %d, built: %v\n%s\n%s", seed, err, f, src)
		}
		built += f.String()
		Optimise(f, func(pass string, f *Func) {
			if err := Verify(f); err != nil {
				t.Fatalf("seed %d, after %s: %v\n%s\n%s", seed, pass, err, f, src)
			}
		})
		optimised += f.String()
		fs[f.Fn] = f
	}
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
		runDecoded(t, m, k, want)
		fs.run(t, m, list[0], got, 0, nil)
		if a, b := strings.Join(want.log, " "), strings.Join(got.log, " "); a != b {
			t.Errorf("seed %d: the stores differ\nwant %s\ngot  %s\n%s\nbuilt:\n%s\noptimised:\n%s", seed, a, b, src, built, optimised)
			return
		}
	}
}
