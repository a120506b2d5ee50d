package arm64

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// listing is code with the text that an assembler makes it of, an instruction a line.
type listing struct {
	Asm
	text []string
}

// note adds the text of what is appended next.
func (l *listing) note(format string, args ...any) {
	l.text = append(l.text, fmt.Sprintf(format, args...))
}

// name returns the name of a register of 32 bits, or of 64; 31 is zr.
func name(wide bool, r Reg) string {
	letter := "w"
	if wide {
		letter = "x"
	}
	if r == ZR {
		return letter + "zr"
	}
	return fmt.Sprint(letter, r)
}

func x(r Reg) string { return name(true, r) }

// base is the name of a register that 31 is the stack pointer of.
func base(r Reg) string {
	if r == SP {
		return "sp"
	}
	return x(r)
}

// registers are every register as a destination, with two others.
func registers(f func(d, n, m Reg)) {
	for d := range Reg(32) {
		f(d, (d*7+3)%32, (d*5+9)%32)
	}
}

func (l *listing) general() {
	wides := []bool{false, true}
	registers(func(d, n, m Reg) {
		for _, o := range []Op{ADD, SUB, SUBS, AND, ANDS, BIC, ORR, ORN, EOR, MUL, LSL, LSR, ASR} {
			for _, wide := range wides {
				l.note("%s %s, %s, %s", o.name, name(wide, d), name(wide, n), name(wide, m))
				l.RR(o, wide, d, n, m)
				if o.bits&0x1f000000 != 0x0a000000 && o.bits&0x1f000000 != 0x0b000000 {
					continue
				}
				by := int(d)
				if wide {
					by *= 2
				}
				l.note("%s %s, %s, %s, lsl #%d", o.name, name(wide, d), name(wide, n), name(wide, m), by)
				l.RRShift(o, wide, d, n, m, by)
			}
		}
		for _, o := range []Op{SMULL, UMULL} {
			l.note("%s %s, %s, %s", o.name, x(d), name(false, n), name(false, m))
			l.RR(o, true, d, n, m)
		}
		for signed, ext := range map[bool]string{false: "uxtw", true: "sxtw"} {
			l.note("add %s, %s, %s, %s", base(d), base(n), name(false, m), ext)
			l.AddIndex(d, n, m, signed)
		}
		l.note("madd %s, %s, %s, %s", x(d), x(n), x(m), x((d+1)%32))
		l.MulAdd(d, n, m, (d+1)%32)
		for _, wide := range wides {
			for _, v := range []uint32{0, 1, 32, 4095} {
				if n == SP {
					continue
				}
				l.note("cmp %s, #%d", name(wide, n), v)
				l.CompareI(wide, n, v)
			}
		}
		for bits := 1; bits < 32; bits++ {
			if d != SP {
				l.note("and %s, %s, #%#x", name(false, d), name(false, n), 1<<bits-1)
				l.LowBits(d, n, bits)
			}
			l.note("tst %s, #%#x", name(false, n), 1<<bits-1)
			l.TestLowBits(n, bits)
		}
		for c, text := range map[Cond]string{Equal: "eq", NotEqual: "ne", HigherSame: "hs", Lower: "lo", Higher: "hi", LowerSame: "ls",
			Unordered: "vs", GreaterEqual: "ge", Less: "lt", Greater: "gt", LessEqual: "le"} {
			l.note("csel %s, %s, %s, %s", x(d), x(n), x(m), text)
			l.Select(c, d, n, m)
			l.note("cset %s, %s", x(d), text)
			l.SetIf(c, d)
		}
		l.note("rbit %s, %s", name(false, d), name(false, n))
		l.note("clz %s, %s", name(false, d), name(false, d))
		l.LowestBit(d, n)
		l.note("msr fpcr, %s", x(d))
		l.SetFPCR(d)
	})
	l.note("ret")
	l.Return()
}

// numbers makes registers hold numbers, and adds some.
func (l *listing) numbers() {
	for i, v := range []uint64{0, 1, 0xffff, 0x10000, 0xffff0000, 1 << 48, 0xabcd << 32, ^uint64(0), ^uint64(1), 0xffffffffffff1234, 0xffff1234ffffffff} {
		l.note("mov x%d, #%#x", i, v)
		l.Set(Reg(i), v)
	}
	for _, v := range []uint64{0x12345678, 0x123456789abcdef0, 0xffff123456789abc, 0xffff1234ffff5678} {
		parts, first := []int{}, "movz"
		skip := uint64(0)
		if v>>48 == 0xffff {
			first, skip = "movn", 0xffff
		}
		for i := range 4 {
			if v>>(16*i)&0xffff != skip {
				parts = append(parts, i)
			}
		}
		for k, i := range parts {
			part := v >> (16 * i) & 0xffff
			switch {
			case k > 0:
				l.note("movk x9, #%#x, lsl #%d", part, 16*i)
			case first == "movn":
				l.note("movn x9, #%#x, lsl #%d", part^0xffff, 16*i)
			default:
				l.note("movz x9, #%#x, lsl #%d", part, 16*i)
			}
		}
		l.Set(9, v)
	}
	for i, v := range []int64{0, 1, 4095, -1, -4095, 4096, -4096, 0xfff000} {
		d, n, op := Reg(i), Reg(i+3), "add"
		shown := v
		if v < 0 {
			op, shown = "sub", -v
		}
		l.note("%s %s, %s, #%d", op, base(d), base(n), shown)
		l.AddI(d, n, v)
	}
	l.AddI(3, 3, 0) // nothing
	l.note("add x1, x2, #0x123, lsl #12")
	l.note("add x1, x1, #0x456")
	l.AddI(1, 2, 0x123456)
	l.note("mov x17, #0x1000000")
	l.note("add x1, x2, x17")
	l.AddI(1, 2, 1<<24)
	l.note("movn x17, #0xffff")
	l.note("movk x17, #0xfe00, lsl #16")
	l.note("add x1, x2, x17")
	l.AddI(1, 2, -1<<25)
}

// places are places in memory with every register; text is what comes before an access of some bytes, and the place.
func places(size int32, f func(m Mem, before []string, place string)) {
	for b := range Reg(32) {
		for _, d := range []int32{0, size, 4095 * size} {
			f(Mem{b, d}, nil, fmt.Sprintf("[%s, #%d]", base(b), d))
		}
	}
	f(Mem{5, 1 << 16}, []string{"add x17, x5, #0x10000"}, "[x17]")
	f(Mem{17, 1<<16 + 16}, []string{"add x17, x17, #0x10000"}, "[x17, #16]")
	f(Mem{6, -16}, []string{"sub x17, x6, #16"}, "[x17]")
	f(Mem{7, 1<<24 + 32}, []string{"movz x17, #32", "movk x17, #0x100, lsl #16", "add x17, x7, x17"}, "[x17]")
	if size > 1 {
		f(Mem{6, 0x21001}, []string{"add x17, x6, #0x21000", "add x17, x17, #1"}, "[x17]")
	}
}

func (l *listing) memory() {
	for _, k := range []struct {
		size   int
		signed bool
		load   string
		wide   bool
	}{{1, false, "ldrb", false}, {1, true, "ldrsb", false}, {2, false, "ldrh", false}, {2, true, "ldrsh", false}, {4, false, "ldr", false},
		{4, true, "ldrsw", true}, {8, false, "ldr", true}} {
		store := map[int]string{1: "strb", 2: "strh", 4: "str", 8: "str"}[k.size]
		i := Reg(0)
		places(int32(k.size), func(m Mem, before []string, place string) {
			for _, s := range before {
				l.note("%s", s)
			}
			l.note("%s %s, %s", k.load, name(k.wide, i), place)
			l.Load(k.size, k.signed, i, m)
			if !k.signed {
				for _, s := range before {
					l.note("%s", s)
				}
				l.note("%s %s, %s", store, name(k.wide, i), place)
				if m == (Mem{17, 1<<16 + 16}) && k.size >= 4 {
					l.Store(k.size == 8, m, i)
				} else {
					l.StoreLow(k.size, m, i)
				}
			}
			i = (i + 1) % 32
		})
		registers(func(d, n, m Reg) {
			for signed, ext := range map[bool]string{false: "uxtw", true: "sxtw"} {
				for _, scaled := range []bool{false, true} {
					place := fmt.Sprintf("[%s, %s, %s]", base(n), name(false, m), ext)
					if scaled && k.size == 1 {
						continue
					} else if scaled {
						place = fmt.Sprintf("[%s, %s, %s #%d]", base(n), name(false, m), ext, map[int]int{2: 1, 4: 2, 8: 3}[k.size])
					}
					l.note("%s %s, %s", k.load, name(k.wide, d), place)
					l.LoadIndex(k.size, k.signed, d, n, m, signed, scaled)
					if !k.signed {
						l.note("%s %s, %s", store, name(k.wide, d), place)
						l.StoreIndex(k.size, d, n, m, signed, scaled)
					}
				}
			}
		})
	}
	registers(func(d, n, _ Reg) {
		l.note("ldp %s, %s, [%s, #%d]", x(d), x((d+1)%32), base(n), d*8)
		l.LoadPair(d, (d+1)%32, Mem{n, int32(d) * 8})
		l.note("prfm pldl1keep, [%s, #%d]", base(n), d*8)
		l.Prefetch(Mem{n, int32(d) * 8})
	})
}

// lanes names the lanes of a register.
func lanes(w int, all bool) string {
	bytes := 8
	if all {
		bytes = 16
	}
	return fmt.Sprint(bytes*8/w, map[int]string{8: "b", 16: "h", 32: "s", 64: "d"}[w])
}

// vectorOps are all the instructions, with the widths that there are of their lanes.
var vectorOps = map[*VOp][]int{
	&VADD: {8, 16, 32, 64}, &VSUB: {8, 16, 32, 64}, &VMUL: {8, 16, 32}, &VMLA: {8, 16, 32}, &VMLS: {8, 16, 32}, &VCMGT: {8, 16, 32, 64}, &VCMGE: {8, 16, 32, 64},
	&VCMHI: {8, 16, 32, 64}, &VCMHS: {8, 16, 32, 64}, &VCMEQ: {8, 16, 32, 64}, &VCMTST: {8, 16, 32, 64}, &VSSHL: {8, 16, 32, 64}, &VUSHL: {8, 16, 32, 64},
	&VSMAX: {8, 16, 32}, &VSMIN: {8, 16, 32}, &VUMAX: {8, 16, 32}, &VUMIN: {8, 16, 32}, &VUZP1: {8, 16, 32, 64}, &VUZP2: {8, 16, 32, 64},
	&VZIP1: {8, 16, 32, 64},
	&VAND:  {8}, &VBIC: {8}, &VORR: {8}, &VORN: {8}, &VEOR: {8}, &VBSL: {8}, &VBIT: {8}, &VBIF: {8},
	&VFADD: {32, 64}, &VFSUB: {32, 64}, &VFMUL: {32, 64}, &VFDIV: {32, 64}, &VFMLA: {32, 64}, &VFMAX: {32, 64}, &VFMIN: {32, 64}, &VFCMEQ: {32, 64},
	&VFCMGE: {32, 64}, &VFCMGT: {32, 64},
	&VABS: {8, 16, 32, 64}, &VNEG: {8, 16, 32, 64}, &VCLZ: {8, 16, 32}, &VNOT: {8}, &VCNT: {8}, &VRBIT: {8}, &VREV32: {8}, &VCMLT0: {8, 16, 32, 64},
	&VCMEQ0: {8, 16, 32, 64}, &VFCMGT0: {32, 64}, &VFABS: {32, 64}, &VFNEG: {32, 64}, &VFSQRT: {32, 64}, &VFRINTN: {32, 64}, &VFRINTM: {32, 64},
	&VFRINTP: {32, 64}, &VFRINTZ: {32, 64}, &VFCVTNS: {32, 64}, &VFCVTMS: {32, 64}, &VFCVTPS: {32, 64}, &VFCVTZS: {32, 64}, &VFCVTZU: {32, 64},
	&VSCVTF: {32, 64}, &VUCVTF: {32, 64},
	&VSMULL: {8, 16, 32}, &VUMULL: {8, 16, 32}, &VUMLAL: {8, 16, 32}, &VUADDLP: {8, 16, 32}, &VXTN: {16, 32, 64}, &VSQXTN: {16, 32, 64}, &VUQXTN: {16, 32, 64},
	&VFCVTL: {32}, &VFCVTN: {64},
	&VSHL: {8, 16, 32, 64}, &VUSHR: {8, 16, 32, 64}, &VSSHR: {8, 16, 32, 64}, &VSRI: {8, 16, 32, 64}, &VSSHLL: {8, 16, 32}, &VUSHLL: {8, 16, 32}, &VSHRN: {16, 32, 64},
	&VADDV: {32}, &VUMINV: {32},
}

// vector adds an instruction with all registers and numbers.
func (l *listing) vector(op VOp, w int, all bool) {
	o := op.W(w)
	same, twice, half := lanes(w, all), lanes(min(2*w, 64), true), lanes(max(w/2, 8), all)
	second := "" // of instructions on the upper half
	if all {
		second = "2"
	}
	registers(func(rd, rn, rm Reg) {
		d, n, m := Vec(rd), Vec(rn), Vec(rm)
		switch o.form &^ floats {
		case three, byteOps:
			l.note("%s v%d.%s, v%d.%s, v%d.%s", o.name, d, same, n, same, m, same)
			l.V3(o, all, d, n, m)
		case longer:
			l.note("%s%s v%d.%s, v%d.%s, v%d.%s", o.name, second, d, twice, n, same, m, same)
			l.V3(o, all, d, n, m)
		case two, bytes1:
			l.note("%s v%d.%s, v%d.%s", o.name, d, same, n, same)
			l.V2(o, all, d, n)
		case zero:
			number := "#0"
			if o.form&floats != 0 {
				number = "#0.0"
			}
			l.note("%s v%d.%s, v%d.%s, %s", o.name, d, same, n, same, number)
			l.V2(o, all, d, n)
		case longer1:
			if o.name == "uaddlp" {
				l.note("%s v%d.%s, v%d.%s", o.name, d, lanes(2*w, all), n, same)
			} else {
				l.note("%s%s v%d.%s, v%d.%s", o.name, second, d, twice, n, same)
			}
			l.V2(o, all, d, n)
		case shorter:
			l.note("%s%s v%d.%s, v%d.%s", o.name, second, d, half, n, lanes(w, true))
			l.V2(o, all, d, n)
		case across:
			l.note("%s s%d, v%d.%s", o.name, d, n, same)
			l.V2(o, all, d, n)
		case left, right, leftLong, rightShort:
			from, to := 0, w-1
			switch o.form {
			case right:
				from, to = 1, w
			case rightShort:
				from, to = 1, w/2
			}
			for by := from; by <= to; by++ {
				switch o.form {
				case leftLong:
					l.note("%s%s v%d.%s, v%d.%s, #%d", o.name, second, d, twice, n, same, by)
				case rightShort:
					l.note("%s%s v%d.%s, v%d.%s, #%d", o.name, second, d, half, n, lanes(w, true), by)
				default:
					l.note("%s v%d.%s, v%d.%s, #%d", o.name, d, same, n, same, by)
				}
				l.VShiftI(o, all, d, n, by)
			}
		}
	})
}

func (l *listing) vectors() {
	for op, widths := range vectorOps {
		for _, w := range widths {
			for _, all := range []bool{false, true} {
				narrow := op.form &^ floats
				if !all && (narrow == across || w == 64 && narrow != shorter && narrow != rightShort) {
					continue // there is no such form
				}
				l.vector(*op, w, all)
			}
		}
	}
	registers(func(rd, rn, rm Reg) {
		d, n, m := Vec(rd), Vec(rn), Vec(rm)
		for _, all := range []bool{false, true} {
			bytes := lanes(8, all)
			l.note("mov v%d.%s, v%d.%s", d, bytes, n, bytes)
			l.VMove(all, d, n)
			for keep, text := range map[bool]string{false: "tbl", true: "tbx"} {
				l.note("%s v%d.%s, {v%d.16b}, v%d.%s", text, d, bytes, n, m, bytes)
				l.VLookUp(keep, all, d, n, m)
			}
			l.note("dup v%d.%s, %s", d, lanes(32, all), name(false, rn))
			l.VFill(false, all, d, rn)
			l.note("ld1r {v%d.%s}, [%s]", d, lanes(32, all), base(rn))
			l.VLoadAll(false, all, d, rn)
		}
		l.note("dup v%d.2d, %s", d, x(rn))
		l.VFill(true, true, d, rn)
		l.note("ld1r {v%d.2d}, [%s]", d, base(rn))
		l.VLoadAll(true, true, d, rn)
		for size, letter := range map[int]string{2: "h", 4: "s", 8: "d", 16: "q"} {
			l.note("ldr %s%d, [%s], #%d", letter, d, base(rn), size)
			l.VLoadNext(size, d, rn)
		}
		for i := range 4 {
			l.note("umov %s, v%d.s[%d]", name(false, rd), n, i)
			l.VLane(false, rd, n, i)
			l.note("ld1 {v%d.s}[%d], [%s]", d, i, base(rn))
			l.VLoadLane(false, d, i, rn)
		}
		for i := range 2 {
			l.note("umov %s, v%d.d[%d]", x(rd), n, i)
			l.VLane(true, rd, n, i)
			l.note("ld1 {v%d.d}[%d], [%s]", d, i, base(rn))
			l.VLoadLane(true, d, i, rn)
		}
		l.note("faddp d%d, v%d.2d", d, n)
		l.VSumDoubles(d, n)
		l.note("fcmp d%d, d%d", d, n)
		l.VCompareDoubles(d, n)
		l.note("scvtf s%d, %s", d, x(rn))
		l.VSingle(true, d, rn)
		l.note("ucvtf s%d, %s", d, x(rn))
		l.VSingle(false, d, rn)
	})
	for _, all := range []bool{false, true} {
		size, letter := int32(8), "d"
		if all {
			size, letter = 16, "q"
		}
		v := Vec(0)
		places(size, func(m Mem, before []string, place string) {
			for _, kind := range []string{"ldr", "str"} {
				for _, s := range before {
					l.note("%s", s)
				}
				l.note("%s %s%d, %s", kind, letter, v, place)
				if kind == "ldr" {
					l.VLoad(all, v, m)
				} else {
					l.VStore(all, m, v)
				}
			}
			v = (v + 1) % 32
		})
	}
}

// assembled returns what GNU's assembler makes of lines.
func assembled(t *testing.T, lines []string) []byte {
	tool := func(name string) string {
		for _, n := range []string{"aarch64-linux-gnu-" + name, name} {
			if path, err := exec.LookPath(n); err == nil && (n != name || runtime.GOARCH == "arm64") {
				return path
			}
		}
		t.Skip("there is no assembler for arm64: aarch64-linux-gnu-" + name)
		return ""
	}
	file := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(file+".s", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range [][]string{{tool("as"), "-o", file + ".o", file + ".s"}, {tool("objcopy"), "-O", "binary", "-j", ".text", file + ".o", file + ".bin"}} {
		if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	code, err := os.ReadFile(file + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// TestEncodings compares every instruction with what GNU's assembler makes of its text.
func TestEncodings(t *testing.T) {
	l := &listing{}
	l.general()
	l.numbers()
	l.memory()
	l.vectors()
	l.compare(t)
}

// TestAllOps checks that each instruction on vectors is among those that are compared.
func TestAllOps(t *testing.T) {
	source, err := os.ReadFile("vector.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "= VOp{"); n != len(vectorOps) {
		t.Errorf("%d of %d instructions are compared", len(vectorOps), n)
	}
}

func (l *listing) compare(t *testing.T) {
	t.Helper()
	want := assembled(t, l.text)
	if len(want) != len(l.Code) || len(want) != 4*len(l.text) {
		t.Errorf("%d bytes of %d instructions, want %d", len(l.Code), len(l.text), len(want))
	}
	wrong := 0
	for i, text := range l.text {
		if 4*i+4 > min(len(want), len(l.Code)) {
			break
		}
		got, want := binary.LittleEndian.Uint32(l.Code[4*i:]), binary.LittleEndian.Uint32(want[4*i:])
		if got != want {
			t.Errorf("%s: %08x, want %08x", text, got, want)
			if wrong++; wrong == 20 {
				t.FailNow()
			}
		}
	}
}

// TestLabels compares jumps and addresses, back and ahead.
func TestLabels(t *testing.T) {
	l := &listing{}
	var back, ahead Label
	l.Bind(&back)
	l.text = append(l.text, ".balign 4096", "back:")
	labels := len(l.text)
	for _, to := range []struct {
		text string
		at   *Label
	}{{"back", &back}, {"ahead", &ahead}} {
		l.note("b %s", to.text)
		l.Jump(to.at)
		l.note("b.hi %s", to.text)
		l.JumpIf(Higher, to.at)
		l.note("cbz w3, %s", to.text)
		l.JumpZero(false, 3, to.at)
		l.note("cbnz x30, %s", to.text)
		l.JumpNotZero(true, 30, to.at)
		l.note("tbnz x5, #40, %s", to.text)
		l.JumpBit(5, 40, to.at)
		l.note("tbnz w5, #0, %s", to.text)
		l.JumpBit(5, 0, to.at)
	}
	l.text = append(l.text, "ahead:")
	l.Bind(&ahead)
	want := assembled(t, l.text)
	if string(want) != string(l.Code) || len(want) != 4*(len(l.text)-labels-1) {
		t.Errorf("%x, want %x", l.Code, want)
	}
	if ahead.At() != 48 {
		t.Error("a label is bound elsewhere")
	}
}

// TestAddress loads the address of a label two pages and 8 bytes ahead, and of one before the instruction.
func TestAddress(t *testing.T) {
	a := &Asm{}
	var behind, ahead Label
	a.Bind(&behind)
	a.Return()
	a.Address(3, &ahead)
	a.Code = append(a.Code, make([]byte, 2*4096)...)
	a.Address(4, &behind)
	for len(a.Code)%4096 != 8 {
		a.Return()
	}
	a.Bind(&ahead)
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(a.Code[at:]) }
	// adrp x3, 3 pages ahead; add x3, x3, #8; adrp x4, 2 pages back; add x4, x4, #0
	if word(4) != 0xf0000003 || word(8) != 0x91002063 || word(12+8192) != 0xd0ffffe4 || word(16+8192) != 0x91000084 {
		t.Errorf("%08x %08x %08x %08x", word(4), word(8), word(12+8192), word(16+8192))
	}
}

// TestFar says that a jump does not reach.
func TestFar(t *testing.T) {
	for _, k := range []struct {
		jump  func(*Asm, *Label)
		reach int
	}{{(*Asm).Jump, 1 << 27}, {func(a *Asm, l *Label) { a.JumpIf(Equal, l) }, 1 << 20}, {func(a *Asm, l *Label) { a.JumpBit(1, 1, l) }, 1 << 15}} {
		for _, more := range []int{-4, 0} {
			a, l := &Asm{}, &Label{}
			k.jump(a, l)
			a.Code = append(a.Code, make([]byte, k.reach-4+more)...)
			a.Bind(l)
			if a.Far != (more == 0) {
				t.Errorf("%d bytes ahead: Far is %v", len(a.Code), a.Far)
			}
		}
	}
}
