package warp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/testsize"
)

// specials are values at the limits of the formats: integers, f32 and, as two words, f64.
var specials = []uint32{0, 1, 2, 5, 31, 32, 33, 64, 255, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1<<32 - 2, 0x00800000, 0x007fffff, 0x807fffff, 0x00000001,
	0x3f800000, 0xbf800000, 0x3fc00000, 0x3f000000, 0xc2c80000, 0x42fe0000, 0x4effffff, 0x4f000000, 0xcf000000, 0x7f7fffff, 0x7f800000, 0xff800000,
	0x7fc00000, 0x7f800001, 0xffc12345, 0x7ff00000, 0xfff00000, 0x7ff80000, 0x43e00000, 0x3ff00000, 0xbff00000, 0x41dfffff, 0x41e00000}

// TestRowsNoDiff executes every spelling of the computing instructions of 16, 32 and 64 bits on both engines, with
// special and random values. Operands differ between lanes, or the second or last one is the same.
func TestRowsNoDiff(t *testing.T) {
	count := 0
	list := isa.Spellings()
	for i := range list {
		s := &list[i]
		if s.Row.Class != isa.Pure || s.Row.Op == "lop3" || s.Row.Op == "createpolicy" || strings.HasPrefix(s.Row.Doc, "Video") || s.Row.Stack || s.Inst().CarryIn || len(s.Dst) != 1 || len(s.Src) == 0 || !testsize.Long() && i%7 != 0 {
			continue
		}
		fits := func(x isa.Type) bool { return x == isa.Pred || x.Size() == 2 || x.Size() == 4 || x.Size() == 8 }
		if !fits(s.Dst[0]) || slices.ContainsFunc(s.Src, func(x isa.Type) bool { return !fits(x) }) {
			continue
		}
		count++
		for uniform := -1; uniform < len(s.Src); uniform++ {
			if !sameRow(t, s, uniform) {
				break
			}
		}
	}
	if count < 100 {
		t.Errorf("%d spellings only", count)
	}
}

// rowKernel executes the instruction on values of the buffer. The operand uniform is the same in all lanes.
func rowKernel(s *isa.Spelling, uniform int) string {
	var b strings.Builder
	var operands []string
	for k, typ := range s.Src {
		at := fmt.Sprintf("[%%rd10+%d]", 16*k)
		if k == uniform {
			at = fmt.Sprintf("[%%out+%d]", 16*k)
		}
		switch {
		case typ == isa.Pred:
			fmt.Fprintf(&b, "ld.global.u32 %%r%d, %s; setp.ne.u32 %%p%d, %%r%d, 0;\n", k, at, k, k)
			operands = append(operands, fmt.Sprintf("%%p%d", k))
		case typ.Size() == 2:
			fmt.Fprintf(&b, "ld.global.u16 %%rs%d, %s;\n", k, at)
			operands = append(operands, fmt.Sprintf("%%rs%d", k))
		case typ.Size() == 4:
			fmt.Fprintf(&b, "ld.global.u32 %%r%d, %s;\n", k, at)
			operands = append(operands, fmt.Sprintf("%%r%d", k))
		default:
			fmt.Fprintf(&b, "ld.global.u64 %%rd%d, %s;\n", k, at)
			operands = append(operands, fmt.Sprintf("%%rd%d", k))
		}
	}
	if strings.Contains(s.Form.Syntax, " a*4:") {
		operands = append([]string{"{" + strings.Join(operands[:4], ", ") + "}"}, operands[4:]...)
	}
	d, store := "%r20", "st.global.u32 [%rd10+80], %r20;\n"
	switch typ := s.Dst[0]; {
	case typ == isa.Pred:
		d, store = "%p7", "selp.u32 %r20, 1, 0, %p7; "+store
	case typ.Size() == 2:
		d, store = "%rs7", "cvt.u32.u16 %r20, %rs7; "+store
	case typ.Size() == 8:
		d, store = "%rd20", "st.global.u64 [%rd10+80], %rd20;\n"
	}
	name, _, _ := strings.Cut(s.Text, "/")
	return kernel("mul.wide.u32 %rd10, %gid, 96; add.u64 %rd10, %rd10, %out;\n" + b.String() +
		name + " " + d + ", " + strings.Join(operands, ", ") + ";\n" + store)
}

func sameRow(t *testing.T, s *isa.Spelling, uniform int) bool {
	t.Helper()
	const threads = 512
	src := rowKernel(s, uniform)
	r := rand.New(rand.NewPCG(uint64(len(s.Text)), 1))
	g := newRig(t, src)
	buf := g.buffer(24 * threads)
	in, err := g.mem.Bytes(buf, 96*threads)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(in); at += 4 {
		v := r.Uint32()
		if r.IntN(3) > 0 {
			v = specials[r.IntN(len(specials))]
		}
		binary.LittleEndian.PutUint32(in[at:], v)
	}
	start := slices.Clone(in)
	var results [2][]byte
	for k, e := range []engine.Engine{engine.NewRef(), New()} {
		copy(in, start)
		l := g.prepare(launch{grid: 2, block: 256, out: buf})
		if _, err := e.Run(t.Context(), l); err != nil {
			t.Errorf("%s: %v\n%s", s.Text, err, src)
			return false
		}
		results[k] = slices.Clone(in)
	}
	for at := range results[0] {
		if results[0][at] != results[1][at] {
			base := at / 96 * 96
			t.Errorf("%s, operand %d uniform, of % x: ref gives % x, warp % x", s.Text, uniform, start[base:base+80], results[0][base+80:base+88], results[1][base+80:base+88])
			return false
		}
	}
	return true
}
