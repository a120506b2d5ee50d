package devmem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

func newTestMemory(t testing.TB, size uint64) *Memory {
	t.Helper()
	m, err := New(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func mustAlloc(t testing.TB, m *Memory, size uint64, kind AllocKind, name string) uint64 {
	t.Helper()
	a, err := m.Alloc(size, 0, kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestMemoryHalves(t *testing.T) {
	m := newTestMemory(t, 1<<30)
	d := mustAlloc(t, m, 100, DeviceAlloc, "d")
	h := mustAlloc(t, m, 100, ManagedAlloc, "h")
	if d != GlobalBase || h != GlobalBase+1<<29 {
		t.Errorf("device allocation at %#x, managed one at %#x", d, h)
	}
	if d2 := mustAlloc(t, m, 1, DeviceAlloc, "d2"); d2%512 != 0 || d2 < d+100+redZone {
		t.Errorf("second allocation at %#x", d2)
	}
	if a, err := m.Alloc(8, 1<<16, DeviceAlloc, "aligned"); err != nil || a%(1<<16) != 0 {
		t.Errorf("aligned allocation: %#x, %v", a, err)
	}
	if _, err := m.Alloc(1<<29+1, 0, DeviceAlloc, "big"); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("too large an allocation: %v", err)
	}
}

func TestMemoryFree(t *testing.T) {
	m := newTestMemory(t, 1<<20)
	a := mustAlloc(t, m, 100, DeviceAlloc, "a")
	if _, err := m.Free(a + 4); !errors.Is(err, ErrNotAllocated) {
		t.Errorf("free inside: %v", err)
	}
	if got, err := m.Free(a); err != nil || got.Name != "a" {
		t.Errorf("free: %+v, %v", got, err)
	}
	if _, err := m.Free(a); !errors.Is(err, ErrNotAllocated) {
		t.Errorf("double free: %v", err)
	}
	if got, ok := m.Find(a + 99); !ok || !got.Freed {
		t.Errorf("a freed allocation is not remembered: %+v, %v", got, ok)
	}
	if _, ok := m.Find(a + 100); ok {
		t.Error("an address past the end is found")
	}
	if _, err := m.Bytes(a, 4); !errors.Is(err, ErrNotAllocated) {
		t.Errorf("bytes of a freed allocation: %v", err)
	}
}

// TestMemoryReuse fills half of the memory many times. Allocations must be disjoint and zero, and freed ranges must be
// reused.
func TestMemoryReuse(t *testing.T) {
	m := newTestMemory(t, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	live := map[uint64]uint64{}
	for i := range 5000 {
		size := uint64(rng.IntN(20000))
		a, err := m.Alloc(size, 0, DeviceAlloc, fmt.Sprint(i))
		if err != nil {
			if len(live) < 5 {
				t.Fatalf("out of memory with %d allocations live", len(live))
			}
			for a := range live {
				if _, err := m.Free(a); err != nil {
					t.Fatal(err)
				}
				delete(live, a)
			}
			continue
		}
		for b, n := range live {
			if a < b+n+redZone && b < a+size+redZone {
				t.Fatalf("%#x+%d and %#x+%d are too near", a, size, b, n)
			}
		}
		data, err := m.Bytes(a, size)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range data {
			if v != 0 {
				t.Fatal("a new allocation is not zero")
			}
		}
		for i := range data {
			data[i] = 0xa5
		}
		live[a] = size
	}
}

func TestMemoryRemembersBounded(t *testing.T) {
	m := newTestMemory(t, 1<<34)
	for range 3 * keepFreed {
		a := mustAlloc(t, m, 8, DeviceAlloc, "x")
		if _, err := m.Free(a); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.blocks); n > 2*keepFreed {
		t.Errorf("%d freed allocations are remembered", n)
	}
}

func TestMemoryMap(t *testing.T) {
	m := newTestMemory(t, 1<<20)
	host := make([]byte, 4096)
	host[5] = 7
	const at = 0x7f00_0000_0000
	if err := m.Map(at, host, "cudaHostRegister"); err != nil {
		t.Fatal(err)
	}
	if err := m.Map(at+100, host, "again"); err == nil {
		t.Error("an overlapping mapping is accepted")
	}
	if err := m.Map(GlobalBase+100, host, "arena"); err == nil {
		t.Error("a mapping over the arena is accepted")
	}
	if b, err := m.Bytes(at+5, 1); err != nil || b[0] != 7 {
		t.Errorf("bytes of mapped memory: %v, %v", b, err)
	}
	if _, err := m.Bytes(at+4095, 2); err == nil {
		t.Error("bytes past a mapping are given")
	}
	if err := m.Unmap(at); err != nil {
		t.Error(err)
	}
	if err := m.Unmap(at); !errors.Is(err, ErrNotAllocated) {
		t.Errorf("second unmap: %v", err)
	}
}

func TestMemoryOver(t *testing.T) {
	backing := make([]byte, 1<<16)
	m := NewOver(backing, nil)
	a := mustAlloc(t, m, 16, PinnedAlloc, "p")
	b, err := m.Bytes(a, 16)
	if err != nil {
		t.Fatal(err)
	}
	b[3] = 9
	if backing[a-GlobalBase+3] != 9 {
		t.Error("the bytes are not the caller's")
	}
}

func TestMemoryHeap(t *testing.T) {
	m := newTestMemory(t, 1<<30)
	m.SetHeapSize(1000)
	a, err := m.AllocHeap(600, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.AllocHeap(600, "b"); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("the heap gives more than it has: %v", err)
	}
	if _, err := m.Free(a); err != nil {
		t.Fatal(err)
	}
	if _, err := m.AllocHeap(600, "b"); err != nil {
		t.Errorf("freed heap memory is lost: %v", err)
	}
}

// TestDrop frees the whole pages of a range of at least a megabyte. They must then read as zero.
func TestDrop(t *testing.T) {
	m := newTestMemory(t, 8<<20)
	over := NewOver(make([]byte, 8<<20), nil) // cannot free pages
	for _, c := range []struct{ off, end, from, to uint64 }{
		{0, 1 << 20, 0, 1 << 20}, {0, 1<<20 - 1, 1<<20 - 1, 1<<20 - 1}, {4096, 3 << 20, 4096, 3 << 20}, {1, 1<<20 + 1, 4096, 1 << 20}, {4095, 2<<20 + 4095, 4096, 2 << 20},
	} {
		for i := range m.arena[:4<<20] {
			m.arena[i] = 7
		}
		if from, to := m.drop(c.off, c.end); from != c.from || to != c.to {
			t.Errorf("of %d to %d: %d to %d", c.off, c.end, from, to)
		}
		for i, b := range m.arena[:4<<20] {
			if dropped := uint64(i) >= c.from && uint64(i) < c.to; dropped != (b == 0) {
				t.Fatalf("of %d to %d: byte %d is %d", c.off, c.end, i, b)
			}
		}
		if from, to := over.drop(c.off, c.end); from != c.end || to != c.end {
			t.Errorf("of a slice, %d to %d: %d to %d", c.off, c.end, from, to)
		}
	}
	m.Pin()
	if from, to := m.drop(0, 4<<20); from != 4<<20 || to != 4<<20 {
		t.Errorf("of pinned memory: %d to %d", from, to)
	}
}

// TestApart checks that memory of a tool is far from the program's, does not change the program's addresses, and is
// gone when it is freed.
func TestApart(t *testing.T) {
	m := newTestMemory(t, 1<<20)
	first := mustAlloc(t, m, 100, DeviceAlloc, "a")
	a, freeA, err := m.AllocApart(1<<30, "tool")
	if err != nil {
		t.Fatal(err)
	}
	b, freeB, err := m.AllocApart(64, "tool")
	if err != nil {
		t.Fatal(err)
	}
	if a < apart || b < a+1<<30 {
		t.Errorf("at %#x and %#x", a, b)
	}
	if next := mustAlloc(t, m, 1, DeviceAlloc, "b"); next != first+RoundUp(100+redZone, 512) {
		t.Errorf("the program's next allocation is at %#x", next)
	}
	data, err := m.Bytes(a+1<<30-8, 8)
	if err != nil || data[0] != 0 {
		t.Errorf("%v, error %v", data, err)
	}
	freeA()
	freeB()
	if _, ok := m.Find(a); ok {
		t.Error("it is there when it was freed")
	}
}
