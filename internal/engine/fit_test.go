package engine

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestFits gives the events of random lanes the addresses of a line, of rows, and of rows except for one lane. An event
// that reports that it fits must return the addresses of all lanes. Lines must be found, and rows too if two lanes
// determine the distance of columns.
func TestFits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	strides := []int64{0, 1, 4, 8, 12, 64, 1 << 20, 1 << 33}
	any := func() int64 { return strides[r.IntN(len(strides))] * int64(1-2*r.IntN(2)) }
	given := func(mask uint32, e *event.Event, addr *[32]uint64) bool {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if (&event.Batch{}).AddrOf(e, lane) != addr[lane] {
				t.Errorf("%+v: lane %d is at %#x, want %#x", e, lane, (&event.Batch{}).AddrOf(e, lane), addr[lane])
				return false
			}
		}
		return true
	}
	for range 20000 {
		mask := r.Uint32() | 1<<r.IntN(32)
		switch r.IntN(3) {
		case 0:
			mask &= r.Uint32() & r.Uint32()
			mask |= 1 << r.IntN(32)
		case 1:
			mask = ^uint32(0)
		}
		shift := uint8(r.IntN(5))
		stride, rowStride, base := any(), any(), r.Uint64N(1<<40)
		line := r.IntN(4) == 0
		if line {
			rowStride = stride << shift
		}
		var addr [32]uint64
		told, rows := false, uint32(0) // two lanes are in one row; the rows
		for lane := range addr {
			row := lane >> shift
			addr[lane] = base + uint64(int64(lane-row<<shift)*stride+int64(row)*rowStride)
			if mask>>lane&1 != 0 {
				told = told || rows>>row&1 != 0
				rows |= 1 << row
			}
		}
		e := event.Event{Mask: mask}
		short := int64(int32(rowStride)) == rowStride
		switch ok := FitRows(&e, shift, &addr); {
		case ok && !given(mask, &e, &addr):
			return
		case !ok && shift > 0 && told && short:
			t.Fatalf("lanes %08x in rows of %d, %d and %d apart: not in rows", mask, 1<<shift, stride, rowStride)
		case ok && shift == 0:
			t.Fatal("rows of one lane")
		}
		first, slope, ok := fitLine(mask, &addr)
		e = event.Event{Mask: mask, Addr: first, Stride: slope}
		if ok && !given(mask, &e, &addr) {
			return
		}
		if !ok && (line || bits.OnesCount32(mask) <= 2 && shift == 0) {
			t.Fatalf("lanes %08x, %d apart: in no line", mask, stride)
		}
		addr[r.IntN(32)] += 4
		e = event.Event{Mask: mask}
		if FitRows(&e, shift, &addr) && !given(mask, &e, &addr) {
			return
		}
		first, slope, ok = fitLine(mask, &addr)
		if e = (event.Event{Mask: mask, Addr: first, Stride: slope}); ok && !given(mask, &e, &addr) {
			return
		}
	}
}
