package ptx

import (
	"fmt"
	"strings"
	"testing"
)

// dump formats an operand with the names of its parts, independently of the printer.
func dump(o Operand) string {
	var parts []string
	for _, a := range o.Args {
		parts = append(parts, dump(a))
	}
	kinds := map[OperandKind]string{
		OperandIdent: "name", OperandImm: "imm", OperandAddr: "addr", OperandVector: "vector", OperandList: "list",
		OperandPair: "pair", OperandNot: "not", OperandNeg: "neg", OperandAddrOf: "addrof", OperandString: "string",
		OperandMask: "mask", OperandDir: "dir", OperandIndex: "index", OperandDiff: "diff",
	}
	s := kinds[o.Kind]
	if o.Generic {
		s += " generic"
	}
	if o.Name != "" {
		s += " " + o.Name
	}
	if o.HasOff {
		s += fmt.Sprintf(" off %d", o.Off)
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return s
}

// body parses statements inside a kernel.
func body(t *testing.T, text string) []Stmt {
	t.Helper()
	m := mustParse(t, "body", ".version 9.5\n.target sm_100\n.entry k () {\n"+text+"\n}")
	return m.Decls[0].(*Func).Body.Stmts
}

// TestTargetRanges checks that a range is expanded to its names, and that the size of all ranges of a module is
// limited.
func TestTargetRanges(t *testing.T) {
	got := body(t, "a: .branchtargets L<3>, M, N<0>; b: .calltargets f, g<1+1>;")
	for i, want := range []string{"L0 L1 L2 M", "f g0 g1"} {
		if names := strings.Join(got[i].(*TargetList).Targets, " "); names != want {
			t.Errorf("%s, want %s", names, want)
		}
	}
	for text, want := range map[string]string{
		"L<65537>":               "65537 targets are too many",
		"L<65536>, M<1>":         "1 targets are too many",
		"L<-1>":                  "a number of targets -1 is negative",
		"L<2":                    "expected '>', found \";\"",
		"L<99999999999999>":      "99999999999999 targets are too many",
		"L<65536>, M, N<0>":      "",
		"L<9223372036854775808>": "is too large",
	} {
		_, err := Parse("t", ".version 9.5\n.target sm_100\n.entry k () { a: .branchtargets "+text+"; }")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestOperands(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"%r1", "name %r1"},
		{"%tid.x", "name %tid.x"},
		{"v.w", "name v.w"},
		{"_", "name _"},
		{"WARP_SZ", "name WARP_SZ"},
		{"-5", "imm -5"},
		{"- 5", "imm -5"},
		{"0x1FU", "imm 0x1FU"},
		{"0f3F800000", "imm 0f3F800000"},
		{"-1.5e-3", "imm -1.5e-3"},
		{".5", "imm .5"},
		{"(5)", "imm 5"},
		{"1+2*3", "imm 7"},
		{"~0", "imm 18446744073709551615U"},
		{"WARP_SZ*2", "imm 64"},
		{"-WARP_SZ", "imm -32"},
		{"-WARP_SZ+1", "imm -31"},
		{"!WARP_SZ", "imm 0"},
		{"WARP_SZ|1", "imm 33"},
		{"WARP_SZ==32", "imm 1"},
		{"WARP_SZ<5", "imm 0"},
		{"WARP_SZ&&1", "imm 1"},
		{"WARP_SZ?3:4", "imm 3"},
		{"1.5+1", "imm 0d4004000000000000"},
		{"!%p1", "not (name %p1)"},
		{"-%r1", "neg (name %r1)"},
		{"%p1|%p2", "pair (name %p1, name %p2)"},
		{"_|%p2", "pair (name _, name %p2)"},
		{"{a, b}|p", "pair (vector (name a, name b), name p)"},
		{"{a, _, 1}", "vector (name a, name _, imm 1)"},
		{"sym+4", "addrof sym off 4"},
		{"sym-4+8", "addrof sym off 4"},
		{"generic(sym)+16", "addrof generic sym off 16"},
		{"generic(sym)", "addrof generic sym"},
		{"a[3]", "index a (imm 3)"},
		{"a[%r1+4]", "index a (addrof %r1 off 4)"},
		{"[%r1]", "addr (name %r1)"},
		{"[%r1+0]", "addr off 0 (name %r1)"},
		{"[%r1+-4]", "addr off -4 (name %r1)"},
		{"[%r1-4]", "addr off -4 (name %r1)"},
		{"[%r1+1<<2]", "addr off 4 (name %r1)"},
		{"[sym+4]", "addr off 4 (name sym)"},
		{"[generic(sym)+4]", "addr (addrof generic sym off 4)"},
		{"[16]", "addr (imm 16)"},
		{"[-4]", "addr (imm -4)"},
		{"[a[3]]", "addr (index a (imm 3))"},
		{"[a, {b, c}]", "addr (name a, vector (name b, name c))"},
		{"[a+8, s, {b}]", "addr off 8 (name a, name s, vector (name b))"},
		{"[a].unified", "addr unified (name a)"},
		{`"text\n"`, `string text\n`},
	} {
		in := body(t, "op.mod "+c.text+";")[0].(*Inst)
		if in.Op != "op" || in.Mods != ".mod" || len(in.Operands) != 1 || dump(in.Operands[0]) != c.want {
			t.Errorf("%s: %s%s %s, want %s", c.text, in.Op, in.Mods, dump(Operand{Args: in.Operands}), c.want)
		}
	}
}

func TestInstructions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"ret;", `ret`},
		{"@%p1 bra L;", `@%p1 bra: name L`},
		{"@!p bra.uni L;", `@!p bra .uni: name L`},
		{"ld.shared::cta .v2 .u32 {a, b}, [c];", `ld .shared::cta.v2.u32: vector (name a, name b) | addr (name c)`},
		{"mma.m16n8k16.row x, 5;", `mma .m16n8k16.row: name x | imm 5`},
		{"ld.red.sp::2:4.abs x, 5;", `ld .red.sp::2:4.abs: name x | imm 5`},
		{"st.b32 [a], 0;", `st .b32: addr (name a) | imm 0`},
		{"call f;", `call: name f`},
		{"call.uni (r), f, (a, 1);", `call .uni: list (name r) | name f | list (name a, imm 1)`},
		{"call.uni (r),\nf,\n(\na\n)\n;", `call .uni: list (name r) | name f | list (name a)`},
		{"call (r), %rd1, (), proto;", `call: list (name r) | name %rd1 | list | name proto`},
	} {
		in := body(t, c.text)[0].(*Inst)
		var ops []string
		for _, o := range in.Operands {
			ops = append(ops, dump(o))
		}
		got := strings.TrimSpace(in.Op + " " + in.Mods)
		if in.PredNot {
			got = "@!" + in.Pred + " " + got
		} else if in.Pred != "" {
			got = "@" + in.Pred + " " + got
		}
		if len(ops) > 0 {
			got += ": " + strings.Join(ops, " | ")
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestPositions(t *testing.T) {
	m := mustParse(t, "p", "\uFEFF.version 9.5 .target sm_80\n/* é\n */ .visible .entry k (\n\t.param .u64 p)\r\n{\n\t.reg .b32 %r<2>, a;\nL: @p add.s32 \t%r1,\n\t\t%r0, {a,\t-%r1};\n}\x00\x00")
	f := m.Decls[0].(*Func)
	inst := f.Body.Stmts[2].(*Inst)
	for _, c := range []struct {
		what      string
		got, want Pos
	}{
		{"function", f.Pos, Pos{3, 5}},
		{"parameter", f.Params[0].Pos, Pos{4, 2}},
		{"its name", f.Params[0].Names[0].Pos, Pos{4, 14}},
		{"body", f.Body.Pos, Pos{5, 1}},
		{"end of the body", f.Body.End, Pos{9, 1}},
		{"second register", f.Body.Stmts[0].(*Var).Names[1].Pos, Pos{6, 19}},
		{"label", f.Body.Stmts[1].Position(), Pos{7, 1}},
		{"guard", inst.Pos, Pos{7, 4}},
		{"operand", inst.Operands[0].Pos, Pos{7, 16}},
		{"operand of the next line", inst.Operands[1].Pos, Pos{8, 3}},
		{"vector", inst.Operands[2].Pos, Pos{8, 8}},
		{"negation", inst.Operands[2].Args[1].Pos, Pos{8, 12}},
		{"what is negated", inst.Operands[2].Args[1].Args[0].Pos, Pos{8, 13}},
	} {
		if c.got != c.want {
			t.Errorf("%s at %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestDeclarations(t *testing.T) {
	m := mustParse(t, "d", `.version 8.3 .target sm_90, debug .address_size 64
.extern .shared .align 16 .b8 dyn[];
.visible .global .attribute(.managed) .align 8 .v2 .f32 x[2][3] = {{1, 2}, {0xFF(f), generic(y)+4}}, y;
.func (.param .b32 r) f (.param .u64 .ptr .global .align 4 p, .reg .pred q) .noreturn;
.entry bare .maxntid 32, 2 .pragma "a"; { .reg .b32 %r<7>; }`)
	if m.Version != (Version{8, 3}) || fmt.Sprint(m.Targets) != "[sm_90 debug]" || m.AddressSize != 64 || len(m.Decls) != 4 {
		t.Fatalf("module: %+v", m)
	}
	dyn := m.Decls[0].(*Var)
	if dyn.Linkage != Extern || dyn.Space != "shared" || dyn.Align != 16 || dyn.Vector != 1 || dyn.Type != "b8" || fmt.Sprint(dyn.Names[0].Dims) != "[-1]" {
		t.Errorf("dyn: %+v", dyn)
	}
	x := m.Decls[1].(*Var)
	init := x.Names[0].Init
	if x.Linkage != Visible || x.Align != 8 || x.Vector != 2 || x.Type != "f32" || len(x.Names) != 2 || x.Names[0].Range != -1 ||
		fmt.Sprint(x.Names[0].Dims) != "[2 3]" || !init.IsList || len(init.List) != 2 || x.Names[1].Init != nil {
		t.Errorf("x: %+v", x)
	}
	if got := dump(x.Attributes[0].Args[0]); got != "dir managed" || x.Attributes[0].Name != "attribute" {
		t.Errorf("attribute: %s", got)
	}
	if got := dump(init.List[1].List[0].Value); got != "mask 0xFF (name f)" {
		t.Errorf("mask: %s", got)
	}
	f := m.Decls[2].(*Func)
	if f.Entry || !f.ParamList || f.Body != nil || len(f.Rets) != 1 || len(f.Params) != 2 || *f.Params[0].Ptr != (PtrAttr{"global", 4}) ||
		f.Params[1].Space != "reg" || f.Directives[0].Name != "noreturn" {
		t.Errorf("f: %+v", f)
	}
	bare := m.Decls[3].(*Func)
	if !bare.Entry || bare.ParamList || len(bare.Directives) != 2 || len(bare.Directives[0].Args) != 2 ||
		bare.Body.Stmts[0].(*Var).Names[0].Range != 7 {
		t.Errorf("bare: %+v", bare)
	}
}

func TestLiterals(t *testing.T) {
	for _, c := range []struct {
		text string
		want Literal
	}{
		{"0", Literal{LiteralSigned, 0}},
		{"-1", Literal{LiteralSigned, 1<<64 - 1}},
		{"017", Literal{LiteralSigned, 15}},
		{"0b101", Literal{LiteralSigned, 5}},
		{"0xfFU", Literal{LiteralUnsigned, 255}},
		{"0U", Literal{LiteralUnsigned, 0}},
		{"18446744073709551615", Literal{LiteralUnsigned, 1<<64 - 1}},
		{"-9223372036854775808", Literal{LiteralUnsigned, 1 << 63}},
		{"0f3F800000", Literal{LiteralSingle, 0x3F800000}},
		{"-0F3f800000", Literal{LiteralSingle, 0xBF800000}},
		{"0d3FF0000000000000", Literal{LiteralDouble, 0x3FF0000000000000}},
		{"1.0", Literal{LiteralDouble, 0x3FF0000000000000}},
		{"-2e0", Literal{LiteralDouble, 0xC000000000000000}},
		{"1e999", Literal{LiteralDouble, 0x7FF0000000000000}},
	} {
		got, err := ParseLiteral(c.text)
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.text, got, err, c.want)
		}
		if back, err := ParseLiteral(got.String()); err != nil || back != got {
			t.Errorf("%s: printed as %s, which is %v, %v", c.text, got, back, err)
		}
	}
	for _, text := range []string{"", "-", "x", "0x", "0b2", "08", "1_0", "0x1p4", "inf", "--1", "1U2", "0f1", "0d", "1e", "U", "+1"} {
		if l, err := ParseLiteral(text); err == nil {
			t.Errorf("%q is accepted as %v", text, l)
		}
	}
}
