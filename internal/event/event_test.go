package event

import (
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
