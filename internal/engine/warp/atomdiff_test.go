package warp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

const (
	atomBytes = 64 // of global and of shared memory that the lanes contend for
	atomRegs  = `
	.reg .b32 %q<8>;
	.reg .b64 %d<8>, %s, %g;
	.reg .b16 %h<4>;
	.shared .align 8 .b8 box[64];
	mul.lo.u32 %q0, %tx, 2654435761; mov.u32 %q1, 7; mov.u32 %q2, %tx; ld.global.u32 %q3, [%out];
	and.b32 %q4, %q0, 3; mov.u32 %q5, 0; not.b32 %q6, %tx; mad.lo.u32 %q7, %tx, %tx, %q0;
	mul.wide.u32 %d0, %q0, %q0; mov.u64 %d1, 9; cvt.u64.u32 %d2, %tx; ld.global.u64 %d3, [%out+8];
	cvt.s64.s32 %d4, %q0; mov.u64 %d5, 0; not.b64 %d6, %d2; shl.b64 %d7, %d0, 32;
	cvt.u16.u32 %h0, %q0; mov.u16 %h1, 1; cvt.u16.u32 %h2, %tx; mov.u16 %h3, 0;
	setp.lt.u32 %p0, %q4, 2; setp.lt.u32 %p1, %tx, 9; setp.ne.u32 %p2, %tx, 5; setp.eq.u32 %p3, %n, 0;
	mov.u64 %s, box; cvta.shared.u64 %g, %s;
	and.b32 %r1, %tx, 15; shl.b32 %r1, %r1, 2; cvt.u64.u32 %rd1, %r1; add.u64 %rd1, %rd1, %s; st.shared.u32 [%rd1], %q0;
	bar.sync 0;
`
)

// atomStep writes a random atomic: of any kind and space, on one address, a line or scattered addresses, with or
// without a guard.
func atomStep(r *rand.Rand, b *strings.Builder) {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	size := []int{4, 4, 8, 8, 2}[r.IntN(5)]
	su := pick("u", "s")
	reg := func(letters string) string {
		n := 8
		if letters == "h" {
			n = 4
		}
		return fmt.Sprintf("%%%s%d", letters, r.IntN(n))
	}
	letter, op := "q", ""
	switch size {
	case 4:
		op = pick("add."+su+"32", "add.u32", "and.b32", "or.b32", "xor.b32", "exch.b32", "cas.b32", "min."+su+"32", "max."+su+"32", "inc.u32", "dec.u32", "add.f32", "add.noftz.f16x2")
	case 8:
		letter = "d"
		op = pick("add."+su[:1]+"64", "and.b64", "or.b64", "xor.b64", "exch.b64", "cas.b64", "min."+su+"64", "max."+su+"64", "add.f64")
	default:
		letter, op = "h", pick("cas.b16", "add.noftz.f16")
	}
	op = strings.Replace(op, "add.s64", "add.u64", 1)
	value := func() string {
		if letter == "h" || r.IntN(3) > 0 || strings.Contains(op, "f") {
			return reg(letter)
		}
		return fmt.Sprint(r.IntN(5))
	}
	base, space := "%out", pick(".global", "")
	switch r.IntN(3) {
	case 0:
		base, space = "%s", ".shared"
	case 1:
		base, space = "%g", ""
	}
	addr := fmt.Sprintf("%s+%d", base, size*r.IntN(atomBytes/size))
	if from := reg("q"); r.IntN(3) > 0 {
		fmt.Fprintf(b, "\tand.b32 %%r1, %s, %d; mul.wide.u32 %%rd1, %%r1, %d; add.u64 %%rd1, %%rd1, %s;\n", from, atomBytes/size-1, size, base)
		addr = "%rd1"
	}
	sem := pick("", "", ".acquire.gpu", ".relaxed.cta", ".acq_rel.sys")
	guard := pick("", "", "@%p0 ", "@!%p1 ", "@%p2 ", "@%p3 ", "@!%p3 ")
	switch {
	case strings.HasPrefix(op, "cas"):
		fmt.Fprintf(b, "\t%satom%s%s.%s %s, [%s], %s, %s;\n", guard, sem, space, op, reg(letter), addr, value(), value())
	case r.IntN(3) == 0 && !strings.HasPrefix(op, "exch"):
		fmt.Fprintf(b, "\t%sred%s%s.%s [%s], %s;\n", guard, strings.Replace(strings.Replace(sem, "acquire", "release", 1), "acq_rel", "relaxed", 1), space, op, addr, value())
	default:
		to := reg(letter)
		if r.IntN(5) == 0 {
			to = "_"
		}
		fmt.Fprintf(b, "\t%satom%s%s.%s %s, [%s], %s;\n", guard, sem, space, op, to, addr, value())
	}
}

// TestAtomicsNoDiff compares the engines on atomics with contending lanes. In straight-line code of one warp the order
// is known, so the event streams and the values that each lane gets must be the same.
func TestAtomicsNoDiff(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 17))
		var b strings.Builder
		b.WriteString(atomRegs)
		for range 12 {
			atomStep(r, &b)
		}
		for i := range 8 {
			fmt.Fprintf(&b, "\tmul.wide.u32 %%rd2, %%tx, 16; add.u64 %%rd2, %%rd2, %%out;\n\tst.global.u32 [%%rd2+%d], %%q%d; st.global.u64 [%%rd2+%d], %%d%d;\n",
				atomBytes+1024*i, i, atomBytes+1024*i+8, i)
		}
		b.WriteString("\tmul.wide.u32 %rd2, %tx, 8; add.u64 %rd2, %rd2, %out; st.global.v4.u16 [%rd2+8256], {%h0, %h1, %h2, %h3};\n")
		b.WriteString("\tand.b64 %rd3, %d2, 7; shl.b64 %rd3, %rd3, 3; add.u64 %rd3, %rd3, %s; ld.shared.u64 %rd4, [%rd3]; st.global.u64 [%rd2+8512], %rd4;\n")
		src := kernel(b.String())
		g := newRig(t, src)
		const words = (8512 + 512) / 4
		out := g.buffer(words)
		initial := make([]byte, atomBytes)
		for i := 0; i < atomBytes; i += 4 {
			binary.LittleEndian.PutUint32(initial[i:], []uint32{r.Uint32(), 0, 1, 7, 0x7fc00001, 0x3c003c00}[r.IntN(6)])
		}
		threads := []int{32, 32, 19, 1}[r.IntN(4)]
		values := r.IntN(2) == 0
		account := func(e engine.Engine) ([]string, []uint32) {
			bytes, err := g.mem.Bytes(out, 4*words)
			if err != nil {
				t.Fatal(err)
			}
			clear(bytes)
			copy(bytes, initial)
			rec := &recorder{}
			l := g.prepare(launch{out: out, block: threads})
			l.ID = 1
			l.Sink, l.Needs = rec, event.NeedGlobal|event.NeedShared|event.NeedSync
			if values {
				l.Needs |= event.NeedValues
			}
			l.OnFault = func(f engine.Fault) { t.Errorf("fault: %+v", f) }
			if _, err := e.Run(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			return rec.lines, g.words(out, words)
		}
		want, left := account(engine.NewRef())
		for _, e := range []engine.Engine{New(), runner{raw: true}} {
			got, now := account(e)
			for i := range max(len(want), len(got)) {
				if i >= len(want) || i >= len(got) || want[i] != got[i] {
					t.Fatalf("seed %d: event %d: ref\n%s\nwarp\n%s\n%s", seed, i, strings.Join(want[i:], "\n"), strings.Join(got[i:], "\n"), src)
				}
			}
			if !slices.Equal(left, now) {
				t.Fatalf("seed %d: the memory differs: ref %x, warp %x\n%s", seed, left, now, src)
			}
		}
	}
}
