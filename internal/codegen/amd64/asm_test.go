package amd64

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var regNames = []string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

// places are places in memory with every register as base and as index, every scale, and displacements of each length.
func places() []Mem {
	var all []Mem
	for b := AX; b <= R15; b++ {
		for i, d := range []int32{0, 8, -128, 127, 128, -129, 1 << 20} {
			all = append(all, Mem{Base: b, Disp: d})
			if index := (b + Reg(i)) % 16; index != SP {
				all = append(all, Mem{Base: b, Index: index, Scale: 1 << (i % 4), Disp: d})
			}
		}
	}
	return all
}

func (m Mem) text() string {
	s := fmt.Sprintf("%d(%s)", m.Disp, regNames[m.Base])
	if m.Scale != 0 {
		s += fmt.Sprintf("(%s*%d)", regNames[m.Index], m.Scale)
	}
	return s
}

// listing is code with the text that Go's assembler makes it of.
type listing struct {
	Asm
	text  []string
	begin []int
}

func (l *listing) note(format string, args ...any) {
	l.begin = append(l.begin, len(l.Code))
	l.text = append(l.text, fmt.Sprintf(format, args...))
}

// sized is the name of a general instruction.
func sized(name string, wide bool) string {
	if wide {
		return name + "Q"
	}
	return name + "L"
}

func (l *listing) general() {
	mems := places()
	ops := []Op{ADD, OR, AND, SUB, XOR, CMP, IMUL}
	for _, wide := range []bool{false, true} {
		for _, o := range ops {
			name := sized(o.name, wide)
			for d := AX; d <= R15; d++ {
				s := (d*7 + 3) % 16
				if o.name == "CMP" {
					l.note("%s %s, %s", name, regNames[d], regNames[s])
				} else {
					l.note("%s %s, %s", name, regNames[s], regNames[d])
				}
				l.RR(o, wide, d, s)
				for _, v := range []int32{0, 1, -1, 127, -128, 128, 1 << 30, -1 << 31} {
					if o.imm == noImm {
						continue
					}
					if o.name == "CMP" {
						l.note("%s %s, $%d", name, regNames[d], v)
					} else {
						l.note("%s $%d, %s", name, v, regNames[d])
					}
					l.RI(o, wide, d, v)
				}
			}
			for i, m := range mems {
				d := Reg(i % 16)
				if o.name == "CMP" {
					l.note("%s %s, %s", name, regNames[d], m.text())
				} else {
					l.note("%s %s, %s", name, m.text(), regNames[d])
				}
				l.RM(o, wide, d, m)
				if o.imm != noImm {
					v := []int32{3, -128, 200, -1000}[i%4]
					if o.name == "CMP" {
						l.note("%s %s, $%d", name, m.text(), v)
					} else {
						l.note("%s $%d, %s", name, v, m.text())
					}
					l.MI(o, wide, m, v)
				}
			}
		}
		for d := AX; d <= R15; d++ {
			s := (d*7 + 3) % 16
			l.note("%s %s, %s", sized("TEST", wide), regNames[s], regNames[d])
			l.Test(wide, d, s)
			l.note("%s %s, %s", sized("MOV", wide), regNames[s], regNames[d])
			l.Move(wide, d, s)
			l.note("%s %s", sized("NEG", wide), regNames[d])
			l.Neg(wide, d)
			l.note("%s %s", sized("NOT", wide), regNames[d])
			l.Not(wide, d)
			for k, name := range map[ShiftKind]string{SHL: "SHL", SHR: "SHR", SAR: "SAR"} {
				l.note("%s $%d, %s", sized(name, wide), 2+d, regNames[d])
				l.ShiftI(k, wide, d, byte(2+d))
				n := (d*5 + 9) % 16
				l.note("%s %s, %s, %s", sized(name+"X", wide), regNames[n], regNames[s], regNames[d])
				l.Shift(k, wide, d, s, n)
			}
		}
		for i, m := range mems {
			d := Reg(i % 16)
			l.note("%s %s, %s", sized("MOV", wide), regNames[d], m.text())
			l.Store(wide, m, d)
			l.note("%s $%d, %s", sized("MOV", wide), 77-i, m.text())
			l.StoreI(wide, m, int32(77-i))
		}
	}
}

func (l *listing) others() {
	for i, m := range places() {
		d := Reg(i % 16)
		for _, x := range []struct {
			name   string
			size   int
			signed bool
		}{{"MOVBLZX", 1, false}, {"MOVBLSX", 1, true}, {"MOVWLZX", 2, false}, {"MOVWLSX", 2, true}, {"MOVL", 4, false}, {"MOVLQSX", 4, true}, {"MOVQ", 8, false}} {
			l.note("%s %s, %s", x.name, m.text(), regNames[d])
			l.Load(x.size, x.signed, d, m)
		}
		for size, name := range map[int]string{1: "MOVB", 2: "MOVW", 4: "MOVL", 8: "MOVQ"} {
			l.note("%s %s, %s", name, regNames[d], m.text())
			l.StoreLow(size, m, d)
		}
		l.note("LEAQ %s, %s", m.text(), regNames[d])
		l.Lea(d, m)
		l.note("TESTB $%d, %s", i%100, m.text())
		l.TestI(m, byte(i%100))
		l.note("ANDNL %s, %s, %s", m.text(), regNames[(d+5)%16], regNames[d])
		l.AndNot(d, (d+5)%16, m)
		l.note("PREFETCHT0 %s", m.text())
		l.Prefetch(m)
		l.note("JMP %s", m.text())
		l.JumpTo(m)
	}
	for d := AX; d <= R15; d++ {
		for _, v := range []uint64{0, 1, 1<<32 - 1, 1 << 31, 1 << 32, 1<<64 - 1, 1<<64 - 1<<31, 1<<63 + 5} {
			l.note("%s $%d, %s", sized("MOV", v>>32 != 0), int64(v), regNames[d])
			l.Set(d, v)
		}
		l.note("TESTL $%d, %s", 7+d, regNames[d])
		l.TestRegI(d, int32(7+d))
		l.note("TZCNTL %s, %s", regNames[(d*7+3)%16], regNames[d])
		l.LowestBit(d, (d*7+3)%16)
		l.note("BLSRL %s, %s", regNames[(d*7+3)%16], regNames[d])
		l.ClearLowest(d, (d*7+3)%16)
		for c, name := range map[Cond]string{Below: "CS", AboveEqual: "CC", Equal: "EQ", NotEqual: "NE", BelowEqual: "LS", Above: "HI", Less: "LT",
			GreaterEqual: "GE", LessEqual: "LE", Greater: "GT"} {
			l.note("CMOVQ%s %s, %s", name, regNames[(d+3)%16], regNames[d])
			l.MoveIf(c, d, (d+3)%16)
			if d <= BX {
				l.note("SET%s %s", name, regNames[d])
				l.SetIf(c, d)
			}
		}
	}
	l.note("VZEROUPPER")
	l.VZeroUpper()
	l.note("RET")
	l.Return()
}

var vectorOps = []VOp{VPADDD, VPADDQ, VPSUBD, VPSUBQ, VPMULLD, VPMULUDQ, VPMULDQ, VPAND, VPANDN, VPOR, VPXOR, VPSHUFB, VPUNPCKLDQ, VPUNPCKLQDQ, VCVTTPS2DQ, VPMINSD, VPMINUD, VPMAXSD, VPMAXUD,
	VPABSD, VPCMPEQD, VPCMPEQQ, VPCMPGTD, VPCMPGTQ, VPSLLVD, VPSRLVD, VPSRAVD, VPSLLD, VPSLLQ, VPSRLD, VPSRLQ, VPSRAD, VPSLLDI, VPSLLQI, VPSRLDI,
	VPSRLQI, VPSRADI, VADDPS, VADDPD, VSUBPS, VSUBPD, VMULPS, VMULPD, VDIVPS, VDIVPD, VMINPS, VMAXPS, VSQRTPS, VFMADD213PS, VFMADD213PD,
	VCVTDQ2PS, VPMOVSXBD, VPMOVSXWD, VPMOVZXBD, VPMOVZXWD, VPMOVSXDQ, VPMOVZXDQ, VPBROADCASTD, VPBROADCASTQ, VMOVDQU, VCMPPS, VCMPPD, VSHUFPS,
	VPADDB, VPCMPGTB, VPSADBW, VPMADDUBSW, VPMADDWD, VPBLENDD, VPSLLVQ, VPSRLVQ, VMINPD, VMAXPD, VSQRTPD, VROUNDPS, VROUNDPD, VCVTPS2PD,
	VCVTDQ2PD, VCVTPD2PS, VCVTPD2DQ, VCVTTPD2DQ, VPMASKMOVD, VPMASKMOVQ, VPGATHERDD, VPGATHERDQ, VPGATHERQD, VPGATHERQQ}

// halfSources are the instructions whose source is half as long as their result, halfResults those of which the opposite is true.
var (
	halfSources = regexp.MustCompile("^VPMOV|^VPBROADCAST|^VCVTPS2PD|^VCVTDQ2PD")
	halfResults = regexp.MustCompile("^VCVTT?PD2")
	withNumbers = regexp.MustCompile("^VCMP|^VSHUFPS|^VROUND|^VPBLENDD")
)

// vectors writes every vector instruction with every register in every place.
func (l *listing) vectors() {
	mems := places()
	at := 0
	mem := func() Mem { at++; return mems[at%len(mems)] }
	for _, all := range []bool{false, true} {
		y := func(v Vec) string { return fmt.Sprintf("%c%d", "XY"[one(all)], v) }
		for d := Vec(0); d < 16; d++ {
			s1, s2 := (d*7+3)%16, (d*5+9)%16
			for _, o := range vectorOps {
				narrow := func(v Vec) string { return y(v) }
				if halfSources.MatchString(o.name) || o.form == counted {
					narrow = func(v Vec) string { return fmt.Sprint("X", v) }
				}
				name, result := o.name, y(d)
				if halfResults.MatchString(o.name) {
					name, result = o.name+y(d)[:1], fmt.Sprint("X", d)
				}
				imm := ""
				if withNumbers.MatchString(o.name) {
					imm = fmt.Sprintf("$%d, ", 5+d)
				}
				number := func() {
					if imm != "" {
						l.bytes(5 + byte(d))
					}
				}
				switch o.form {
				case three, counted, fused:
					l.note("%s %s%s, %s, %s", o.name, imm, narrow(s2), y(s1), y(d))
					l.V3(o, all, d, s1, s2)
					number()
					m := mem()
					l.note("%s %s%s, %s, %s", o.name, imm, m.text(), y(s1), y(d))
					l.V3M(o, all, d, s1, m)
					number()
				case two:
					l.note("%s %s%s, %s", name, imm, narrow(s2), result)
					if imm != "" {
						l.V2I(o, all, d, s2, 5+byte(d))
						continue
					}
					l.V2(o, all, d, s2)
					m := mem()
					l.note("%s %s, %s", name, m.text(), result)
					l.V2M(o, all, d, m)
				case masked:
					m := mem()
					l.note("%s %s, %s, %s", o.name, m.text(), y(s1), y(d))
					l.V3M(o, all, d, s1, m)
					l.note("%s %s, %s, %s", o.name, y(d), y(s1), m.text())
					l.VStoreIf(o, all, m, s1, d)
				case gathered:
					base, offsets := Reg((d*3+1)%16), (d+2)%16
					if base&7 == BP {
						base = BX
					}
					from, to := y(offsets), y(d)
					mask := (d + 5) % 16
					lanes := y(mask)
					switch o.name {
					case "VPGATHERDQ":
						from = fmt.Sprint("X", offsets)
					case "VPGATHERQD":
						to, lanes = fmt.Sprint("X", d), fmt.Sprint("X", mask)
					}
					l.note("%s %s, (%s)(%s*1), %s", o.name, lanes, regNames[base], from, to)
					l.VGather(o, all, d, mask, base, offsets)
				case byImm:
					l.note("%s $%d, %s, %s", o.name, 3+d, y(s2), y(d))
					l.VShiftI(o, all, d, s2, byte(3+d))
				}
			}
			m := mem()
			l.note("VMOVDQU %s, %s", y(d), m.text())
			l.VStore(all, m, d)
			l.note("VLDMXCSR %s", m.text())
			l.VRounding(m)
			l.note("VMOVQ X%d, %s", d, m.text())
			l.VStoreLow(m, d)
			l.note("VMOVD %s, X%d", m.text(), d)
			l.VLoadLow(false, d, m)
			l.note("VMOVQ %s, X%d", m.text(), d)
			l.VLoadLow(true, d, m)
			l.note("VPINSRD $%d, %s, X%d, X%d", d%4, m.text(), s1, d)
			l.VInsert(d, s1, m, byte(d%4))
			l.note("VMOVHPS %s, X%d, X%d", m.text(), s1, d)
			l.VInsertHigh(d, s1, m)
			l.note("VINSERTI128 $1, X%d, Y%d, Y%d", s2, s1, d)
			l.VJoin(d, s1, s2)
			l.note("VPBLENDVB %s, %s, %s, %s", y((d+1)%16), y(s2), y(s1), y(d))
			l.VBlend(all, d, s1, s2, (d+1)%16)
			l.note("VMOVMSKPS Y%d, %s", s1, regNames[d])
			l.VSigns(false, Reg(d), s1)
			l.note("VMOVMSKPD Y%d, %s", s1, regNames[d])
			l.VSigns(true, Reg(d), s1)
			l.note("VEXTRACTI128 $1, Y%d, X%d", s1, d)
			l.VUpper(d, s1)
		}
	}
}

// assembled returns what Go's assembler makes of lines, and where each begins.
func assembled(t *testing.T, lines []string) (code []byte, begin []int) {
	file := filepath.Join(t.TempDir(), "a.s")
	source := "TEXT ·f(SB), 4, $0-0\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "tool", "asm", "-S", "-o", file+".o", file)
	cmd.Env = append(os.Environ(), "GOARCH=amd64", "GOOS=linux")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	instruction := regexp.MustCompile(`^\t0x[0-9a-f]+ (\d+) \(.*:(\d+)\)\t(\S+)`)
	dump := regexp.MustCompile(`^\t0x[0-9a-f]+ ((?:[0-9a-f]{2} ){1,16})`)
	for line := range strings.Lines(string(out)) {
		if m := instruction.FindStringSubmatch(line); m != nil {
			if m[3] != "TEXT" && m[3] != "FUNCDATA" && m[3] != "PCDATA" {
				at, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				begin = append(begin, at)
			}
		} else if m := dump.FindStringSubmatch(line); m != nil {
			b, err := hex.DecodeString(strings.ReplaceAll(m[1], " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			code = append(code, b...)
		}
	}
	return code, begin
}

// TestEncodings compares every instruction with what Go's assembler makes of its text.
func TestEncodings(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	l := &listing{}
	l.general()
	l.others()
	l.vectors()
	code, begin := assembled(t, l.text)
	if len(begin) != len(l.text) {
		t.Fatalf("the assembler lists %d instructions of %d", len(begin), len(l.text))
	}
	begin, l.begin = append(begin, len(code)), append(l.begin, len(l.Code))
	wrong := 0
	for i, text := range l.text {
		got, want := l.Code[l.begin[i]:l.begin[i+1]], code[begin[i]:begin[i+1]]
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", text, got, want)
			if wrong++; wrong == 20 {
				t.FailNow()
			}
		}
	}
}

// TestLabels compares jumps and addresses, back and ahead.
func TestLabels(t *testing.T) {
	a := &Asm{}
	var back, ahead Label
	a.Bind(&back)
	a.Jump(&ahead)          // 0
	a.JumpIf(Equal, &back)  // 5
	a.JumpIf(Above, &ahead) // 11
	a.Address(R9, &ahead)   // 17
	a.Address(AX, &back)    // 24
	a.Bind(&ahead)          // 31
	want := "e91a000000" + "0f84f5ffffff" + "0f870e000000" + "4c8d0d07000000" + "488d05e1ffffff"
	if got := hex.EncodeToString(a.Code); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if ahead.At() != 31 || !back.Bound() {
		t.Error("labels are bound elsewhere")
	}
}
