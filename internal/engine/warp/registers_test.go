package warp

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
)

// registerTypes are the types of registers, and of loads and stores, with their size in bytes.
var registerTypes = []struct {
	name  string
	bytes int
}{
	{"b8", 1}, {"u8", 1}, {"s8", 1}, {"b16", 2}, {"u16", 2}, {"s16", 2}, {"f16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4}, {"f16x2", 4},
	{"b64", 8}, {"u64", 8}, {"s64", 8}, {"f64", 8},
}

// widthInputs are the values that 32 lanes read: the limits of every width, and words with distinct bytes.
var widthInputs = [32]uint64{0, 1, 2, 0x7f, 0x80, 0x81, 0xff, 0x100, 0x7fff, 0x8000, 0x8001, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000001,
	0xffffffff, 1 << 32, 1<<63 - 1, 1 << 63, 1<<63 | 1, 1<<64 - 1, 0x0123456789abcdef, 0xfedcba9876543210, 0x8182838485868788, 0x7f7e7d7c7b7a7978,
	0xff80, 0xffff8000, 0xffffffff80000000, 0xffffffffffffff80, 0xffffffffffff8000, 0x5a5a5a5a5a5a5a5a}

// widthCase is code that reads the lane's 8 bytes at %in, or the 8 bytes at %one that all lanes share, and leaves 8
// bytes at %to.
type widthCase struct {
	name, code string
	want       func(in uint64) uint64
	shared     bool // reads %one, which has the value that lane 23 reads
}

// extendTo returns the contents of a register of to bytes after a value of from bytes is written to it, as 8 bytes of
// memory.
func extendTo(v uint64, from, to int, signed bool) uint64 {
	v &= ones(from)
	if signed && v>>(8*from-1) != 0 {
		v |= ^ones(from)
	}
	return v & ones(to)
}

func ones(bytes int) uint64 { return 1<<(8*bytes-1)<<1 - 1 }

// runWidths runs cases on an engine with 32 lanes each.
func runWidths(t *testing.T, e engine.Engine, head string, cases []widthCase) {
	t.Helper()
	var b strings.Builder
	b.WriteString("\t.reg .b64 %in, %to, %one;\n\tmad.lo.u32 %r0, %tx, 8, 0; cvt.u64.u32 %rd0, %r0; add.u64 %in, %out, %rd0; add.u64 %one, %out, 184;\n")
	for i, c := range cases {
		fmt.Fprintf(&b, "\tadd.u64 %%to, %%in, %d;\n\t{ %s }\n", 256*(i+1), c.code)
	}
	g := newRig(t, strings.Replace(kernel(b.String()), ".visible .entry", head+"\n.visible .entry", 1))
	out := g.buffer(64 * (len(cases) + 1))
	data, err := g.mem.Bytes(out, uint64(256*(len(cases)+1)))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range widthInputs {
		binary.LittleEndian.PutUint64(data[8*i:], v)
	}
	if _, err := e.Run(t.Context(), g.prepare(launch{out: out, n: 0xf1828384})); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		for l, in := range widthInputs {
			if c.shared {
				in = widthInputs[23]
			}
			if got, want := binary.LittleEndian.Uint64(data[256*(i+1)+8*l:]), c.want(in); got != want {
				t.Errorf("%s of %#x: %#x, want %#x", c.name, in, got, want)
				break
			}
		}
	}
}

// onBothEngines runs cases on both engines.
func onBothEngines(t *testing.T, name, head string, cases []widthCase) {
	t.Helper()
	t.Run(name+" ref", func(t *testing.T) { runWidths(t, engine.NewRef(), head, cases) })
	t.Run(name+" warp", func(t *testing.T) { runWidths(t, New(), head, cases) })
}

// agree reports whether an instruction of a type accepts a register of another type (PTX ISA, "Operand Type Checking").
func agree(inst, reg string) bool {
	return inst == reg || inst[0] == 'b' || reg[0] == 'b' || inst[0] != 'f' && reg[0] != 'f'
}

// TestRegisterWidths loads and stores every type from and into registers of every declared type that accepts it,
// through every space, in a scope of their own as inline PTX declares them.
func TestRegisterWidths(t *testing.T) {
	for _, r := range registerTypes {
		var cases []widthCase
		for _, m := range registerTypes {
			if m.bytes > r.bytes || m.name == "f16x2" || !agree(m.name, r.name) {
				continue
			}
			signed := m.name[0] == 's'
			in := func(v uint64) uint64 { return extendTo(v, m.bytes, r.bytes, signed) }
			back := func(v uint64) uint64 { return v & ones(m.bytes) }
			add := func(name string, want func(uint64) uint64, shared bool, format string, args ...any) {
				code := fmt.Sprintf(".reg .%s t, u; .reg .b64 a; ", r.name) + fmt.Sprintf(format, args...)
				code = strings.NewReplacer("T", m.name, "R", fmt.Sprintf("b%d", 8*r.bytes), "N", fmt.Sprint(m.bytes)).Replace(code)
				if reg := code[len(code)-2 : len(code)-1]; r.bytes == 2 && r.name != "f16" && (reg == "t" || reg == "u") && name != "store" { // nothing may be above 16 bits
					code += fmt.Sprintf(" .reg .pred high; .reg .u32 is; setp.le.u16 high,%s,0xffff; selp.u32 is,1,0,high; st.global.u32 [%%to+4],is;", reg)
					inner := want
					want = func(v uint64) uint64 { return inner(v) | 1<<32 }
				}
				cases = append(cases, widthCase{fmt.Sprintf("%s .%s register %s", m.name, r.name, name), code, want, shared})
			}
			add("load", in, false, "ld.global.T t,[%%in]; st.global.R [%%to],t;")
			add("load.nc", in, false, "ld.global.nc.T t,[%%in]; st.R [%%to],t;")
			add("uniform load", in, true, "ld.global.T t,[%%one]; st.global.R [%%to],t;")
			add("volatile load", in, false, "ld.volatile.T t,[%%in]; st.R [%%to],t;")
			add("load through mov", in, false, "ld.global.T t,[%%in]; st.global.b64 [%%to],0; st.global.R [%%to],t;")
			add("guarded load", in, false, ".reg .pred p; setp.lt.u32 p,%%tx,100; @p ld.global.T t,[%%in]; @!p ld.global.T t,[%%one]; st.global.R [%%to],t;")
			add("vector load", in, false, "ld.global.v2.T {t,u},[a]; st.global.R [%%to],t;")
			cases[len(cases)-1].code = strings.Replace(cases[len(cases)-1].code, "ld.global.v2", "mov.u64 a,%in; ld.global.v2", 1)
			if m.bytes == 8 {
				cases = cases[:len(cases)-1] // the lanes' values have a distance of 8 bytes
			}
			add("parameter", func(uint64) uint64 { return in(0xf1828384) }, false, "ld.param.T t,[k_n]; st.global.R [%%to],t;")
			if m.bytes == 8 {
				cases = cases[:len(cases)-1]
			}
			add("store", back, false, "ld.global.R t,[%%in]; st.global.T [%%to],t;")
			add("shared", func(v uint64) uint64 { return in(back(v)) }, false,
				"ld.global.R t,[%%in]; .shared .align 8 .b8 box[256]; .reg .b32 s; mov.u32 s,box; mad.lo.u32 s,%%tx,8,s; st.shared.T [s],t; ld.shared.T u,[s]; st.global.R [%%to],u;")
			add("local", func(v uint64) uint64 { return in(back(v)) }, false,
				"ld.global.R t,[%%in]; .local .align 8 .b8 own[16]; st.local.T [own+8],t; ld.local.T u,[own+8]; st.global.R [%%to],u;")
			add("generic local", func(v uint64) uint64 { return in(back(v)) }, false,
				"ld.global.R t,[%%in]; .local .align 8 .b8 own[16]; .reg .b64 q; mov.u64 q,own; cvta.local.u64 q,q; st.T [q+8],t; ld.T u,[q+8]; st.global.R [%%to],u;")
			add("argument", func(v uint64) uint64 { return in(back(v)) }, false,
				"ld.global.R t,[%%in]; { .param .align 8 .b8 x[8]; .param .align 8 .b8 y[8]; st.param.T [x],t; call (y),same,(x); ld.param.T u,[y]; } st.global.R [%%to],u;")
			add("argument by pointer", func(v uint64) uint64 { return in(back(v)) }, false,
				"ld.global.R t,[%%in]; mov.u64 a,same; P: .callprototype (.param .align 8 .b8 _[8]) _ (.param .align 8 .b8 _[8]); { .param .align 8 .b8 x[8]; .param .align 8 .b8 y[8]; st.param.T [x],t; call (y),a,(x),P; ld.param.T u,[y]; } st.global.R [%%to],u;")
		}
		onBothEngines(t, r.name, ".func (.param .align 8 .b8 r[8]) same(.param .align 8 .b8 x[8]) { .reg .b64 v; ld.param.b64 v,[x]; st.param.b64 [r],v; ret; }", cases)
	}
}

// TestConvertWidths converts every integer type to every other, with and without saturation, from and into registers of
// every width that accepts them.
func TestConvertWidths(t *testing.T) {
	types := []string{"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"}
	size := map[string]int{}
	for _, r := range registerTypes {
		size[r.name] = r.bytes
	}
	for _, d := range types {
		var cases []widthCase
		for _, s := range types {
			for _, dr := range []string{"b8", "b16", "b32", "b64"} {
				for _, sr := range []string{"b8", "b16", "b32", "b64"} {
					for _, sat := range []string{"", ".sat"} {
						holds := size[d] >= size[s] && d[0] == s[0] || d[0] == 's' && size[d] > size[s] // it can represent all values, so it takes no .sat
						if size[dr] < size[d] || size[sr] < size[s] || sat != "" && (holds || (size[dr]+size[sr])%3 != 0) {
							continue
						}
						cases = append(cases, widthCase{fmt.Sprintf("cvt%s.%s.%s .%s,.%s", sat, d, s, dr, sr),
							fmt.Sprintf(".reg .%s d; .reg .%s s; ld.global.%s s,[%%in]; cvt%s.%s.%s d,s; st.global.%s [%%to],d;", dr, sr, sr, sat, d, s, dr),
							func(v uint64) uint64 {
								v = extendTo(v, size[s], 8, s[0] == 's')
								if sat != "" {
									v = saturate(v, s[0] == 's', d[0] == 's', 8*size[d])
								}
								return extendTo(v, size[d], size[dr], d[0] == 's')
							}, false})
					}
				}
			}
		}
		onBothEngines(t, d, "", cases)
	}
}

// saturate limits a 64-bit number to the range of an n-bit type.
func saturate(v uint64, from, to bool, n int) uint64 {
	negative := from && int64(v) < 0
	switch {
	case negative && !to:
		return 0
	case negative:
		return uint64(max(int64(v), -1<<(n-1)))
	case to:
		return min(v, 1<<(n-1)-1)
	}
	return min(v, 1<<(n-1)<<1-1)
}

// TestPredicatesAndBytes moves predicates (1 bit) and bytes (8 bits) by every instruction that accepts them.
func TestPredicatesAndBytes(t *testing.T) {
	low := func(n int) func(uint64) uint64 { return func(v uint64) uint64 { return v & ones(n) } }
	odd := func(v uint64) uint64 { return v & 1 }
	const bit = ".reg .pred p, q; .reg .b32 w; ld.global.u32 w,[%in]; and.b32 w,w,1; setp.eq.u32 p,w,1; "
	const tell = " selp.u32 w,1,0,q; st.global.u32 [%to],w;"
	onBothEngines(t, "all", `
.func (.reg .b8 r) byte(.reg .b8 x) { .reg .b16 h; cvt.u16.u8 h,x; cvt.u8.u16 r,h; ret; }
.func (.reg .pred r) flip(.reg .pred x) { not.pred r,x; ret; }
.func (.reg .s16 r) wide(.reg .s8 x, .reg .pred y) { .reg .s16 h; cvt.s16.s8 h,x; selp.b16 r,h,0,y; ret; }
.func (.reg .v4 .b32 r) turn(.reg .b32 y, .reg .v4 .b32 x) { mov.v4.b32 r,{x.w,x.z,x.y,x.x}; add.u32 r.x,r.x,y; ret; }
.func (.reg .v2 .b64 r) turn2(.reg .v2 .b64 x) { mov.v2.b64 r,{x.y,x.x}; ret; }
.func (.reg .b128 r) same(.reg .b128 x) { mov.b128 r,x; ret; }`, []widthCase{
		{"mov.pred", bit + "mov.pred q,p;" + tell, odd, false},
		{"and.pred", bit + "and.pred q,p,p;" + tell, odd, false},
		{"xor.pred", bit + "xor.pred q,p,p; not.pred q,q; and.pred q,q,p;" + tell, odd, false},
		{"or.pred", bit + "or.pred q,p,p;" + tell, odd, false},
		{"a predicate as an argument", bit + "call (q),flip,(p); not.pred q,q;" + tell, odd, false},
		{"a predicate as an argument, by pointer", bit + ".reg .b64 f; mov.u64 f,flip; P: .callprototype (.reg .pred _) _ (.reg .pred _); call (q),f,(p),P; not.pred q,q;" + tell, odd, false},
		{"a byte as an argument", ".reg .b8 c,d; ld.global.b8 c,[%in]; call (d),byte,(c); st.global.b8 [%to],d;", low(1), false},
		{"a byte as an argument, by pointer", ".reg .b8 c,d; .reg .b64 f; mov.u64 f,byte; P: .callprototype (.reg .b8 _) _ (.reg .b8 _); ld.global.b8 c,[%in]; call (d),f,(c),P; st.global.b8 [%to],d;", low(1), false},
		{"a byte and a predicate as arguments", bit + ".reg .s8 c; .reg .s16 d; ld.global.s8 c,[%in]; call (d),wide,(c,p); st.global.b16 [%to],d;",
			func(v uint64) uint64 { return extendTo(v, 1, 2, true) * (v & 1) }, false},
		{"four bytes packed", ".reg .b8 c<4>; .reg .b32 w; ld.global.v4.b8 {c0,c1,c2,c3},[%in]; mov.b32 w,{c0,c1,c2,c3}; st.global.b32 [%to],w;", low(4), false},
		{"four bytes unpacked", ".reg .b8 c<4>; .reg .b32 w; ld.global.b32 w,[%in]; mov.b32 {c0,c1,c2,c3},w; st.global.v4.b8 [%to],{c0,c1,c2,c3};", low(4), false},
		{"two bytes packed", ".reg .b8 c<2>; .reg .b16 w; ld.global.v2.b8 {c0,c1},[%in]; mov.b16 w,{c0,c1}; st.global.b16 [%to],w;", low(2), false},
		{"two bytes unpacked", ".reg .b8 c<2>; .reg .b16 w; ld.global.b16 w,[%in]; mov.b16 {c0,c1},w; st.global.v2.b8 [%to],{c0,c1};", low(2), false},
		{"a vector register of bytes", ".reg .v4 .b8 c; ld.global.v4.b8 c,[%in]; st.global.v4.b8 [%to],c;", low(4), false},
		{"bytes of a loop", ".reg .b8 c; .reg .u32 i; .reg .pred p; mov.u32 i,0; ld.global.b8 c,[%in]; L: .reg .b16 h; cvt.u16.u8 h,c; add.u16 h,h,1; cvt.u8.u16 c,h; add.u32 i,i,1; setp.lt.u32 p,i,200; @p bra L; st.global.b8 [%to],c;",
			func(v uint64) uint64 { return (v + 200) & 0xff }, false},
		{"a byte under a guard", ".reg .b8 c; .reg .pred p; setp.gt.u32 p,%tx,1000; ld.global.b8 c,[%in]; @p ld.global.b8 c,[%one]; @p cvt.u8.u32 c,%tx; st.global.b8 [%to],c;", low(1), false},
		{"a vector as an argument", ".reg .v4 .b32 a,b; ld.global.b32 a.x,[%in]; ld.global.b32 a.y,[%in+4]; mov.b32 a.z,7; mov.b32 a.w,3; call (b),turn,(1,a); st.global.b32 [%to],b.w; add.u32 b.x,b.x,-4; add.u32 b.z,b.z,b.x; add.u32 b.z,b.z,b.y; st.global.b32 [%to+4],b.z;",
			func(v uint64) uint64 { return v&ones(4) | (v>>32+7)&ones(4)<<32 }, false},
		{"a vector as an argument, by pointer", ".reg .v2 .b64 a,b; .reg .b64 f; mov.u64 f,turn2; P: .callprototype (.reg .v2 .b64 _) _ (.reg .v2 .b64 _); mov.b64 a.x,5; ld.global.b64 a.y,[%in]; call (b),f,(a),P; add.u64 b.y,b.y,b.x; st.global.b64 [%to],b.y;",
			func(v uint64) uint64 { return v + 5 }, false},
		{"a result thrown away", ".reg .v2 .b64 a; ld.global.b64 a.x,[%in]; mov.b64 a.y,1; call (_),turn2,(a); st.global.b64 [%to],a.x;", func(v uint64) uint64 { return v }, false},
		{"128 bits as an argument", ".reg .b128 a,b; .reg .b64 x,y; ld.global.b64 x,[%in]; mov.b128 a,{x,9}; call (b),same,(a); mov.b128 {x,y},b; add.u64 x,x,y; st.global.b64 [%to],x;",
			func(v uint64) uint64 { return v + 9 }, false},
		{"a register and a number stored", ".reg .b32 w; ld.global.b32 w,[%in]; st.global.b32 [%to],w+-4;", func(v uint64) uint64 { return (v - 4) & ones(4) }, false},
		{"a register of 64 bits and a number", ".reg .b64 w; ld.global.b64 w,[%in]; st.global.b64 [%to],w+8*4;", func(v uint64) uint64 { return v + 32 }, false},
		{"a byte and a number", ".reg .b8 c; ld.global.b8 c,[%in]; st.global.b8 [%to],c+129; cvt.u32.u8 %r1,c+129; st.global.b32 [%to+4],%r1;",
			func(v uint64) uint64 { return (v + 129) & 0xff * (1 + 1<<32) }, false},
		{"16 bits and a number", ".reg .b16 h; ld.global.b16 h,[%in]; add.u16 h,h+1,h+65535; st.global.b16 [%to],h;", func(v uint64) uint64 { return 2 * v & ones(2) }, false},
		{"a number added twice", "ld.global.b32 %r1,[%in]; mad.lo.u32 %r1,%r1+1,%r1+2,%r1+3; st.global.b32 [%to],%r1;",
			func(v uint64) uint64 { return ((v+1)*(v+2) + v + 3) & ones(4) }, false},
		{"a number added to what is overwritten", "ld.global.b32 %r1,[%in]; @%p1 mov.u32 %r1,5; mov.u32 %r1,%r1+7; st.global.b32 [%to],%r1;", func(v uint64) uint64 { return (v + 7) & ones(4) }, false},
		{"a wrapped sum widened", "ld.global.b32 %r1,[%in]; cvt.u64.u32 %rd1,%r1+1; st.global.b64 [%to],%rd1;", func(v uint64) uint64 { return (v + 1) & ones(4) }, false},
	})
}

// TestCarries chains every instruction that sets a condition code with every instruction that reads it. The hardware
// keeps the carry of its adder, which for a difference is 1 if nothing is borrowed (as ptxas compiles them for sm_90).
func TestCarries(t *testing.T) {
	var cases []widthCase
	for _, n := range []int{32, 64} {
		for _, first := range []string{"add", "sub", "mad.lo", "mad.hi"} {
			for _, middle := range []string{"", "addc", "subc", "madc.lo", "madc.hi"} {
				for _, last := range []string{"addc", "subc", "madc.lo", "madc.hi"} {
					cases = append(cases, carryCase(n, first, middle, last))
				}
			}
		}
	}
	onBothEngines(t, "all", "", cases)
}

// carryCase computes last(x, x') with the carry of middle(x', x), if any, with the carry of first(x, y). x is the
// lane's value, x' half of its complement, and y depends on n. Some types are signed.
func carryCase(n int, first, middle, last string) widthCase {
	sign := "u"
	if len(middle)%2 == 1 {
		sign = "s"
	}
	op := func(name, cc, d, a, b string) string {
		if name == "" {
			return ""
		}
		c := ""
		if strings.HasPrefix(name, "mad") {
			c = "," + a
		}
		return fmt.Sprintf("%s%s.%s%d %s,%s,%s%s; ", name, cc, sign, n, d, a, b, c)
	}
	code := fmt.Sprintf(".reg .b%d x,y,z,d; ld.global.b%d x,[%%in]; not.b%d y,x; shr.b%d y,y,1; mul.lo.u%d z,x,3; ", n, n, n, n, n) +
		op(first, ".cc", "d", "x", "z") + op(middle, ".cc", "d", "y", "x") + op(last, "", "d", "x", "y") + fmt.Sprintf("st.global.b%d [%%to],d;", n)
	want := func(v uint64) uint64 {
		m := adder{bits: n, signed: sign == "s"}
		x := v & ones(n/8)
		y, z := ^x&ones(n/8)>>1, x*3&ones(n/8)
		m.do(first, x, z)
		if middle != "" {
			m.do(middle, y, x)
		}
		return m.do(last, x, y)
	}
	return widthCase{fmt.Sprintf("%s.cc %s %s of %s%d", first, middle, last, sign, n), code, want, false}
}

// adder models the hardware's adder: it adds three numbers bit by bit and keeps the carry.
type adder struct {
	bits   int
	signed bool
	carry  uint64
}

func (m *adder) do(op string, a, b uint64) uint64 {
	name, half, _ := strings.Cut(op, ".")
	carry := m.carry
	switch {
	case name == "sub":
		carry = 1
	case !strings.HasSuffix(name, "c"):
		carry = 0
	}
	switch name {
	case "sub", "subc":
		b = ^b
	case "mad", "madc":
		a, b = m.product(a, b, half == "hi"), a
	}
	sum := uint64(0)
	for i := range m.bits {
		s := a>>i&1 + b>>i&1 + carry
		sum |= s & 1 << i
		carry = s >> 1
	}
	m.carry = carry
	return sum
}

// product returns half of a product of numbers of the adder's width.
func (m *adder) product(a, b uint64, hi bool) uint64 {
	x, y := m.number(a), m.number(b)
	p := x.Mul(x, y)
	if hi {
		p.Rsh(p, uint(m.bits))
	}
	return new(big.Int).And(p, new(big.Int).SetUint64(ones(m.bits/8))).Uint64()
}

func (m *adder) number(v uint64) *big.Int {
	n := new(big.Int).SetUint64(v)
	if m.signed && v>>(m.bits-1) != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(m.bits)))
	}
	return n
}
