package warp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestShufflesNoDiff compares the engines on shuffles of all kinds: distances, clamps and segments that are the same or
// different in the lanes, by all or some lanes.
func TestShufflesNoDiff(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 23))
		pick := func(words ...string) string { return words[r.IntN(len(words))] }
		reg := func() string { return fmt.Sprintf("%%q%d", r.IntN(6)) }
		var b strings.Builder
		b.WriteString("\t.reg .b32 %q<6>;\n\tmov.u32 %q0, %gid; mul.lo.u32 %q1, %gid, 2654435761; mov.u32 %q2, %n; add.u32 %q3, %n, 3; not.b32 %q4, %tx; shr.u32 %q5, %q1, 7;\n")
		b.WriteString("\tmov.u32 %r2, 0; setp.lt.u32 %p7, %ln, 20;\n")
		shuffle := func(mask string) {
			val, pred := reg(), pick("", "|%p1")
			fmt.Fprintf(&b, "\tshfl.sync.%s.b32 %s%s, %s, %s, %s, %s;\n", pick("up", "down", "bfly", "idx"), val, pred, pick(reg(), reg(), "7"),
				pick("0", "1", "1", "2", "5", "16", "31", "33", "%n", reg(), reg()), pick("31", "31", "0", "7", "0x1807", "0x101f", "%n"), mask)
			if pred != "" {
				b.WriteString("\tselp.u32 %r1, 1, 0, %p1; shl.b32 %r2, %r2, 1; or.b32 %r2, %r2, %r1;\n")
			}
		}
		for i := range 4 {
			shuffle("0xffffffff")
			fmt.Fprintf(&b, "\t@%%p7 bra LOW%d;\n", i)
			shuffle("0xfff00000")
			fmt.Fprintf(&b, "\tbra END%d;\nLOW%d:\n", i, i)
			shuffle("0x000fffff")
			fmt.Fprintf(&b, "END%d:\n\tbar.warp.sync 0xffffffff;\n", i)
		}
		b.WriteString("\tmul.wide.u32 %rd1, %gid, 32; add.u64 %rd1, %rd1, %out; st.global.u32 [%rd1+24], %r2;\n")
		for i := range 6 {
			fmt.Fprintf(&b, "\tst.global.u32 [%%rd1+%d], %%q%d;\n", 4*i, i)
		}
		g := newRig(t, kernel(b.String()))
		d := &diff{t: t}
		if _, err := d.Run(t.Context(), g.prepare(launch{grid: 2, block: 64, out: g.buffer(128 * 8), n: uint32(r.IntN(40))})); err != nil || d.strict == 0 || t.Failed() {
			t.Fatalf("seed %d: %v\n%s", seed, err, b.String())
		}
	}
}
