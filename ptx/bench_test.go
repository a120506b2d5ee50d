package ptx

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// generate returns a module of about size bytes similar to those of nvcc: kernels of loads, address arithmetic,
// branches, calls and debug lines, some functions, tables and debug data.
func generate(size int) string {
	var b strings.Builder
	b.Grow(size + 1<<16)
	r := rand.New(rand.NewPCG(3, 5))
	b.WriteString("//\n// Generated for a benchmark\n//\n\n.version 9.5\n.target sm_80\n.address_size 64\n\n")
	b.WriteString(".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 vprintf_param_0,\n\t.param .b64 vprintf_param_1\n)\n;\n")
	for n := 0; b.Len() < size; n++ {
		generateTable(&b, r, n)
		generateKernel(&b, r, n)
	}
	b.WriteString("\t.file\t1 \"bench.cu\"\n\t.section\t.debug_str\n\t{\n$L__info_string0:\n")
	for range 200 {
		fmt.Fprintf(&b, "\t.b8 %d,%d,%d,%d,0\n", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256))
	}
	b.WriteString("\t}\n")
	return b.String()
}

func generateTable(b *strings.Builder, r *rand.Rand, n int) {
	fmt.Fprintf(b, ".global .align 4 .b8 table%d[256] = {", n)
	for i := range 256 {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "%d", r.IntN(256))
	}
	b.WriteString("};\n\n")
}

func generateKernel(b *strings.Builder, r *rand.Rand, n int) {
	name := fmt.Sprintf("_Z%dkernel_number_%dPfS_PKii", 15+n%10, n)
	fmt.Fprintf(b, ".visible .entry %s(\n", name)
	for i := range 4 {
		fmt.Fprintf(b, "\t.param .u64 %s_param_%d%s\n", name, i, ","[:b2i(i < 3)])
	}
	b.WriteString(")\n{\n\t.reg .pred \t%p<40>;\n\t.reg .f32 \t%f<80>;\n\t.reg .b32 \t%r<90>;\n\t.reg .b64 \t%rd<99>;\n")
	b.WriteString("\t// demoted variable\n\t.shared .align 4 .b8 tile[4096];\n")
	for i := range 60 {
		fmt.Fprintf(b, "\t.loc\t1 %d %d\n", 10+i, 1+r.IntN(60))
		x := func() int { return 1 + r.IntN(79) }
		fmt.Fprintf(b, "\tld.param.u64 \t%%rd%d, [%s_param_%d];\n", x(), name, i%4)
		fmt.Fprintf(b, "\tmov.u32 \t%%r%d, %%tid.x;\n\tcvta.to.global.u64 \t%%rd%d, %%rd%d;\n", x(), x(), x())
		fmt.Fprintf(b, "\tmul.wide.s32 \t%%rd%d, %%r%d, 4;\n\tadd.s64 \t%%rd%d, %%rd%d, %%rd%d;\n", x(), x(), x(), x(), x())
		fmt.Fprintf(b, "\tld.global.nc.f32 \t%%f%d, [%%rd%d+%d];\n\tfma.rn.f32 \t%%f%d, %%f%d, 0f3F800000, %%f%d;\n", x(), x(), 4*x(), x(), x(), x())
		fmt.Fprintf(b, "\tsetp.ge.s32 \t%%p%d, %%r%d, -%d;\n\t@%%p%d bra \t$L__BB%d_%d;\n", i%39, x(), x(), i%39, n, i)
		if i%6 == 0 {
			fmt.Fprintf(b, "\tst.shared.v4.f32 \t[%%r%d+16], {%%f%d, %%f%d, %%f%d, %%f%d};\n\tbar.sync \t0;\n", x(), x(), x(), x(), x())
			fmt.Fprintf(b, "\t.loc\t1 %d 5, function_name $L__info_string0, inlined_at 1 %d 3\n", 10+i, i)
			b.WriteString("\t{ // callseq 0, 0\n\t.reg .b32 temp_param_reg;\n\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], %rd1;\n\t.param .b32 retval0;\n")
			b.WriteString("\tcall.uni (retval0), \n\tvprintf, \n\t(\n\tparam0, \n\tparam1\n\t);\n\tld.param.b32 \t%r9, [retval0+0];\n\t} // callseq 0\n")
		}
		fmt.Fprintf(b, "\n$L__BB%d_%d:\n", n, i)
	}
	b.WriteString("\tret;\n\n}\n")
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// counts describes the contents of a module: the digest of a benchmark.
type counts struct{ decls, stmts, operands int }

func (c *counts) block(b *Block) {
	for _, s := range b.Stmts {
		c.stmts++
		switch s := s.(type) {
		case *Block:
			c.block(s)
		case *Inst:
			c.operandList(s.Operands)
		}
	}
}

func (c *counts) operandList(l []Operand) {
	for i := range l {
		c.operands++
		c.operandList(l[i].Args)
	}
}

func countsOf(m *Module) (c counts) {
	for _, d := range m.Decls {
		c.decls++
		if f, ok := d.(*Func); ok && f.Body != nil {
			c.block(f.Body)
		}
	}
	return c
}

// BenchmarkParse parses 16 MB of generated text, and logs counts of the result.
func BenchmarkParse(b *testing.B) {
	src := generate(16 << 20)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	var m *Module
	for b.Loop() {
		var err error
		if m, err = Parse("bench", src); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d bytes: %+v", len(src), countsOf(m))
}

// BenchmarkPrint prints the same module. The digest is that of the text.
func BenchmarkPrint(b *testing.B) {
	src := generate(16 << 20)
	m := mustParse(b, "bench", src)
	b.SetBytes(int64(len(printed(b, m))))
	b.ReportAllocs()
	for b.Loop() {
		if err := Print(io.Discard, m); err != nil {
			b.Fatal(err)
		}
	}
	h := fnv.New64a()
	if err := Print(h, m); err != nil {
		b.Fatal(err)
	}
	b.Logf("digest %016x", h.Sum64())
}

// TestGenerated parses the text of the benchmarks and compares the tree with it: the numbers of declarations and
// statements, and the place, opcode and operands of each instruction.
func TestGenerated(t *testing.T) {
	src := generate(1 << 18)
	roundTrip(t, "generated", src)
	m := mustParse(t, "generated", src)
	const (
		turns   = 60        // of a kernel
		calls   = turns / 6 // of vprintf, each with a vector store, a barrier and a place before a block of six
		perTurn = 11        // a place, nine instructions, a label
		perCall = 3 + 1 + 6 //
		around  = 4 + 1 + 1 // registers, a shared variable, ret
		others  = 1 + 1 + 1 // vprintf, a file, a section
		each    = 1 + 1     // a table and a kernel
	)
	kernels := strings.Count(src, ".visible .entry")
	c := countsOf(m)
	if want := turns*perTurn + calls*perCall + around; kernels < 10 || c.decls != others+each*kernels || c.stmts != want*kernels {
		t.Errorf("%d kernels: %+v, want %d declarations and %d statements", kernels, c, others+each*kernels, want*kernels)
	}
	lines := strings.Split(src, "\n")
	seen := 0
	var walk func(b *Block)
	walk = func(b *Block) {
		for _, s := range b.Stmts {
			switch s := s.(type) {
			case *Block:
				walk(s)
			case *Inst:
				seen++
				if text := lines[s.Pos.Line-1][s.Pos.Col-1:]; s.Op != "call" {
					compareInst(t, s, text)
				}
			}
		}
	}
	for _, d := range m.Decls {
		if f, ok := d.(*Func); ok && f.Body != nil {
			walk(f.Body)
		}
	}
	if want := (turns*9 + calls*(2+3) + 1) * kernels; seen != want {
		t.Errorf("%d instructions, want %d", seen, want)
	}
}

func compareInst(t *testing.T, s *Inst, text string) {
	t.Helper()
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		_, text, _ = strings.Cut(rest, " ")
	}
	op, operands, _ := strings.Cut(strings.TrimSuffix(text, ";"), " ")
	depth, n := 0, 1
	for _, c := range operands {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth == 0:
			n++
		}
	}
	if strings.TrimSpace(operands) == "" {
		n = 0
	}
	if s.Op+s.Mods != op || len(s.Operands) != n {
		t.Errorf("line %d: %s%s with %d operands, and the text is %q", s.Pos.Line, s.Op, s.Mods, len(s.Operands), text)
	}
}
