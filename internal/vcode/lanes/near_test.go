package lanes

import (
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
)

// TestNear checks that loads that are checked together load the same as separate loads. If one of them is not possible,
// the list may end before it, at another one, and continues after that.
func TestNear(t *testing.T) {
	if possible < Compiling {
		t.Skip("no machine code on this machine")
	}
	r := rand.New(rand.NewPCG(61, 62))
	early, whole := 0, 0
	for round := range testsize.Of(300, 600, 5000) {
		f, m := new(manyFiles), newReach(r)
		f.fill(r)
		begin := uint64(r.IntN(1<<20)) << 3
		near := make([]Near, len(m.reach))
		row := uint64(r.IntN(10)) * 64
		for i := range m.reach {
			w, n := &m.reach[i], &near[i]
			*n = Near{Piece: 1, At: int64(r.IntN(80)-30) * 4, Size: 256, Row: row}
			if n.Size += row; r.IntN(8) == 0 {
				n.At += 2
			}
			w.Origin, w.Room, w.Row, w.Told, w.Last = begin-uint64(n.At), uint64(reachSize)-n.Size+1, row, 0, 0
			if r.IntN(40) == 0 {
				w.Room, n.Piece = 0, 2
			}
		}
		for i := range 3 { // addresses, most of which lie well inside
			f.scalars[i] = begin + uint64(r.IntN(reachSize-1000))&^7 + 300
			if r.IntN(8) == 0 {
				f.scalars[i] = begin + uint64(int64(r.IntN(reachSize+200)-100)&^3)
			}
		}
		var code []Op
		starts := []int32{0}
		loads := []Code{OpLoad32Line, OpLoad32Rows, OpLoad32Spread, OpLoad64Line, OpLoad8ULine, OpLoad16SLine}
		kind := r.IntN(len(loads))
		for at := range 1 + r.IntN(80) {
			imm, reg := uint64(at), func(n int) int32 { return int32(r.IntN(n)) }
			switch k := r.IntN(12); {
			case k < 6:
				c := loads[kind]
				if r.IntN(8) == 0 {
					c = loads[r.IntN(len(loads))]
				}
				code = append(code, Make(c, imm, reg(6), reg(3), reg(8)))
				starts = append(starts, int32(at)+1)
			case k == 6 && r.IntN(3) == 0:
				code = append(code, Make(OpScalarAdd, 1<<64-1, reg(3), reg(3), 30))
				f.scalars[30] = uint64(r.IntN(3)) * 8
			case k < 8:
				code = append(code, Make(OpFAdd32, imm, reg(6), reg(6), reg(6)))
			case k == 8:
				code = append(code, Make(OpXor32, imm, reg(6), reg(6), reg(6)))
			default:
				code = append(code, Make(OpFMA32, imm, reg(6), reg(6), reg(6), reg(6)))
			}
		}
		code = append(code, Op{Imm: 1 << 20})
		mask := ^uint32(0)
		if r.IntN(3) == 0 {
			mask = randomMask(r)
		}
		want, other := *f, m.clone()
		x, y := f.regs(), want.regs()
		x.Reach, y.Reach = &m.reach[0], &other.reach[0]
		c := Compile(code, starts, near, false)
		for at := int32(0); ; {
			got, end := c.Run(at, x, mask), runGo(code[at:], y, mask)
			if got == 1<<20 {
				whole++
			}
			for got < end { // one that the Go code could do: nothing else is left to do but that, which may lead to where Go code ended
				early++
				one := []Op{code[got], {Imm: 1 << 20}}
				if runGo(one, x, mask) != 1<<20 {
					t.Fatalf("round %d: the list ends at %d, Go code at %d", round, got, end)
				}
				got = c.Run(int32(got)+1, x, mask)
			}
			if *f != want || got != end {
				t.Fatalf("round %d, mask %08x, row %d, %d operations from %d: code ends with %d, Go code with %d", round, mask, row, len(code), at, got, end)
			}
			if at = int32(got) + 1; got == 1<<20 {
				break
			}
		}
	}
	if mergesLoads && (early < 20 || whole < 100) {
		t.Errorf("%d lists ended early, %d at their end", early, whole)
	}
}

// TestNaNsOnTheirWay checks that NaNs may have any bits within sums and products, and that other operations read the
// canonical NaN.
func TestNaNsOnTheirWay(t *testing.T) {
	var f files
	for l := range 32 {
		f.v32[0][l] = []uint32{0x7f800001, 0xffc12345, 0x7f800000, 0x3f800000}[l%4]
		f.v32[1][l] = []uint32{0x3f800000, 0xff800000, 0x7fc00001, 0}[l/4%4]
	}
	list := []Op{
		Make(OpFAdd32, 0, 2, 0, 1), Make(OpFMA32, 0, 2, 2, 1, 0), Make(OpFMul32, 0, 2, 2, 2), // on its way
		Make(OpFMA32, 0, 3, 0, 1, 2), Make(OpXor32, 0, 4, 3, 2), Make(OpFSub32, 0, 3, 3, 0), // read
		Make(OpFAdd32, 0, 5, 1, 0), {Imm: 7},
	}
	for _, mask := range []uint32{^uint32(0), 0x00ff0ff0} {
		got, want := f, f
		if end := runList(list, got.regs(), mask); end != runGo(list, want.regs(), mask) || got != want {
			t.Errorf("mask %08x: ends with %d\n got %x\nwant %x", mask, end, got.v32, want.v32)
		}
	}
}
