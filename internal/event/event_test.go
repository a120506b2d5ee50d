package event

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestEventIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Event{}); n > 64 {
		t.Fatalf("Event has %d bytes, want at most 64", n)
	}
	if len(kindNames) != int(kinds) {
		t.Fatalf("%d kinds, %d names", kinds, len(kindNames))
	}
}

func TestAddrOf(t *testing.T) {
	b := &Batch{Addrs: []uint64{7, 100, 200, 300}, Values: []uint64{9, 1, 2, 3, 4}}
	affine := Event{Addr: 64, Stride: -4, Mask: 0b11010}
	for lane, want := range map[int]uint64{1: 64, 3: 56, 4: 52} {
		if got := b.AddrOf(&affine, lane); got != want {
			t.Errorf("affine lane %d: %d, want %d", lane, got, want)
		}
	}
	scattered := Event{Side: 1, Val: 1, Mask: 0b101, Flags: FlagScattered | FlagValues, Size: 16}
	if got := b.AddrOf(&scattered, 2); got != 200 {
		t.Errorf("scattered lane 2: %d, want 200", got)
	}
	if got := b.ValueOf(&scattered, 2); len(got) != 2 || got[0] != 3 || got[1] != 4 {
		t.Errorf("value of lane 2: %v, want [3 4]", got)
	}
}

// TestRows compares the addresses of lanes in rows with the definition.
func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	b := &Batch{}
	for range 2000 {
		r := 2 << rng.IntN(4)
		base, stride, row := rng.Uint64N(1<<40)+1<<32, int64(rng.IntN(99)-49), int64(rng.IntN(9999)-4999)
		at := func(lane int) uint64 { return base + uint64(int64(lane%r)*stride+int64(lane/r)*row) }
		e := Event{Kind: Load, Flags: FlagRead, Size: 4, Space: Global, Mask: rng.Uint32() | 1<<rng.IntN(32)}
		if rng.IntN(2) == 0 {
			e.Mask <<= e.Mask % 32
			e.Mask |= 1 << 31
		}
		e.Addr = at(bits.TrailingZeros32(e.Mask))
		if !e.InRows(uint8(bits.TrailingZeros(uint(r))), stride, row) || !e.Valid() || e.Affine() || e.RowStride() != row {
			t.Fatalf("%+v", e)
		}
		var room [32]uint64
		list := b.Addresses(&e, &room)
		for m := e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if got := b.AddrOf(&e, lane); got != at(lane) || list[0] != got {
				t.Fatalf("lane %d of %+v: %#x, in a list %#x, want %#x", lane, e, got, list[0], at(lane))
			}
			list = list[1:]
		}
		if len(list) > 0 {
			t.Fatal("addresses of no lane")
		}
	}
	for _, odd := range []Event{{RowShift: 0}, {RowShift: 5}, {RowShift: 2, Flags: FlagScattered}} {
		odd.Kind, odd.Size, odd.Mask, odd.Space = Load, 4, 1, Global
		if odd.Flags |= FlagRead | FlagRows; odd.Valid() {
			t.Errorf("%+v is valid", odd)
		}
	}
	for _, far := range []int64{1 << 31, -1<<31 - 1} {
		if e := (Event{}); e.InRows(2, 4, far) || e != (Event{}) {
			t.Errorf("rows %d apart: %+v", far, e)
		}
	}
}

func TestCoordinates(t *testing.T) {
	l := Launch{Grid: Dim3{2, 3, 1}, Block: Dim3{33, 2, 1}}
	if l.WarpsPerBlock() != 3 {
		t.Fatalf("66 threads: %d warps", l.WarpsPerBlock())
	}
	if got := l.BlockOf(3*3 + 2); got != (Dim3{1, 1, 0}) {
		t.Errorf("block %v", got)
	}
	if got := l.ThreadOf(10, 5); got != (Dim3{4, 1, 0}) {
		t.Errorf("thread %v", got)
	}
}
