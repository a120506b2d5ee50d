package warp

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
)

// TestFaultTexts checks the complete texts of the faults of accesses.
func TestFaultTexts(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"ld.shared.u64 %rd2, [box+8];", "the thread reads 8 bytes at offset 0x8 of shared memory, of which the block has 12 bytes: the last 4 pass the end"},
		{"st.shared.u32 [box+12], %r1;", "the thread writes 4 bytes at offset 0xc of shared memory, of which the block has 12 bytes: just past the end"},
		{"atom.shared.add.u32 %r2, [box+20], %r1;", "the thread updates 4 bytes at offset 0x14 of shared memory, of which the block has 12 bytes: 8 bytes past the end"},
		{"ld.shared.u32 %r2, [box+6];", "the thread reads 4 bytes at offset 0x6 of shared memory (box + 6), which is not a multiple of 4"},
		{"ld.local.u32 %r2, [own+2];", "the thread reads 4 bytes at offset 0x2 of local memory, which is not a multiple of 4"},
		{"st.local.u32 [own+0x1000], %r1;", "the thread writes 4 bytes at offset 0x1000 of local memory, of which the thread has 16 bytes here"},
		{"ld.global.u32 %r2, [0x40];", "the thread reads 4 bytes at 0x40: a null pointer"},
		{"ld.global.u32 %r2, [0xffff];", "the thread reads 4 bytes at 0xffff: a null pointer"},
		{"mov.u64 %rd1, 0x10000; ld.global.u32 %r2, [%rd1];", "the thread reads 4 bytes at 0x10000, which is host memory that the device cannot reach, or no memory at all"},
		{"ld.global.u32 %r2, [%out+2];", "the thread reads 4 bytes at OUT+2 (buffer 1 + 2), which is not a multiple of 4"},
		{"red.global.add.u32 [%out+3], %r1;", "the thread updates 4 bytes at OUT+3 (buffer 1 + 3), which is not a multiple of 4"},
		{"ld.global.u64 %rd2, [%out+8];", "the thread reads 8 bytes at OUT+8 (buffer 1 + 8), of which the last 4 pass the end"},
		{"ld.global.u32 %r2, [%out+12];", "the thread reads 4 bytes at OUT+12, just past the end of buffer 1"},
		{"st.global.u32 [%out+16], %r2;", "the thread writes 4 bytes at OUT+16, 4 bytes past the end of buffer 1"},
		{"ld.global.u32 %r2, [%out+-8];", "the thread reads 4 bytes at OUT-8, 8 bytes before buffer 1"},
		{"add.u64 %rd1, %out, 0x20000000; ld.global.u32 %r2, [%rd1];", "the thread reads 4 bytes at OUT+536870912, where nothing is allocated"},
		{"mov.u64 %rd1, table; st.u32 [%rd1+4], %r1;", "the thread writes 4 bytes at TABLE+4 (table + 4), which is constant memory"},
		{"mov.u64 %rd1, k; st.u32 [%rd1], %r1;", "the thread writes 4 bytes at 0x400000000000000, which is no address of data"},
	} {
		for _, e := range []engine.Engine{engine.NewRef(), New()} {
			g := newRig(t, strings.Replace(kernel(".shared .align 8 .b8 box[12]; .local .align 8 .b8 own[16]; mov.u32 %r1, %n; st.local.u32 [own], %r1;\n"+c.code),
				".visible", ".const .align 4 .u32 table[2] = {1, 2};\n.visible", 1))
			out := g.buffer(3)
			table, _, _ := g.prog.Symbol("table")
			l := g.prepare(launch{out: out, block: 1})
			var got []string
			l.OnFault = func(f engine.Fault) {
				s := f.Message
				for d := -8; d <= 16; d++ {
					s = strings.ReplaceAll(s, fmt.Sprintf("%#x", out+uint64(d)), fmt.Sprintf("OUT%+d", d))
				}
				s = strings.ReplaceAll(s, fmt.Sprintf("%#x", table+4), "TABLE+4")
				s = strings.ReplaceAll(s, fmt.Sprintf("%#x", out+1<<29), "OUT+536870912")
				got = append(got, s)
			}
			e.Run(t.Context(), l)
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("%s on %T: faults %q, want %q", c.code, e, got, c.want)
			}
		}
	}
}
