package opt

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// bigKernel returns a kernel of about size bytes, with loops, branches, shared memory and arithmetic, like unrolled
// code.
func bigKernel(size int) string {
	var s strings.Builder
	s.WriteString(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry big(.param .u64 p, .param .u32 n)\n{\n" +
		"\t.reg .pred %p<4>;\n\t.reg .b32 %r<64>;\n\t.reg .b64 %rd<64>;\n\t.shared .align 4 .b8 tile[4096];\n" +
		"\tld.param.u64 %rd1, [p];\n\tld.param.u32 %r1, [n];\n\tmov.u32 %r2, %tid.x;\n\tmov.u32 %r3, 0;\n")
	for i := 0; s.Len() < size; i++ {
		fmt.Fprintf(&s, "\tmov.u32 %%r4, 0;\nL%d:\n\tsetp.ge.s32 %%p1, %%r4, %%r1;\n\t@%%p1 bra E%d;\n", i, i)
		for j := 0; j < 12; j++ {
			fmt.Fprintf(&s, "\tadd.s32 %%r5, %%r2, %d;\n\tcvt.s64.s32 %%rd2, %%r5;\n\tshl.b64 %%rd3, %%rd2, 2;\n\tmov.u32 %%r6, tile;\n"+
				"\tcvt.u64.u32 %%rd4, %%r6;\n\tcvta.shared.u64 %%rd5, %%rd4;\n\tadd.s64 %%rd6, %%rd5, %%rd3;\n\tld.u32 %%r7, [%%rd6];\n"+
				"\tmad.lo.s32 %%r3, %%r7, %%r3, %%r5;\n\tst.u32 [%%rd6+4], %%r3;\n", i*j%17)
		}
		fmt.Fprintf(&s, "\tsetp.lt.s32 %%p2, %%r3, %d;\n\t@%%p2 bra S%d;\n\txor.b32 %%r3, %%r3, %%r2;\nS%d:\n\tadd.s32 %%r4, %%r4, 1;\n\tbra.uni L%d;\nE%d:\n", i, i, i, i, i)
	}
	s.WriteString("\tst.global.u32 [%rd1], %r3;\n\tret;\n}\n")
	return s.String()
}

// BenchmarkOptimise optimises a kernel of 1 MB of PTX. Decoding is not measured. The digest of the result is the number
// of remaining instructions.
func BenchmarkOptimise(b *testing.B) {
	src := bigKernel(1 << 20)
	tree, err := ptx.Parse("big.ptx", src)
	if err != nil {
		b.Fatal(err)
	}
	m, err := isa.Decode(tree)
	if err != nil {
		b.Fatal(err)
	}
	k := m.Kernels()[0]
	if k.Err != nil {
		b.Fatal(k.Err)
	}
	b.SetBytes(int64(len(src)))
	var f *Func
	for b.Loop() {
		fs, err := Build(k, Env{Block: [3]uint32{256, 1, 1}, Grid: [3]uint32{16, 1, 1}, Shared: m.SharedLayout(k)})
		if err != nil {
			b.Fatal(err)
		}
		f = fs[0]
		Optimise(f, nil)
	}
	b.ReportMetric(float64(size(f)), "instrs-left")
}
