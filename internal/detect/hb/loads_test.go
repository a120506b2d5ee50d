package hb

import (
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// TestLoadsOfWarps makes warps load from a table in a loop, some of them alike, and then makes a store to each place of
// the table. The detector must find exactly the loads that were made, although it defers them and merges their
// descriptions.
func TestLoadsOfWarps(t *testing.T) {
	t.Parallel()
	type loop struct {
		from, step int64
		times      int
	}
	for n, warps := range [][]loop{
		{{0, 4, 3}, {0, 4, 3}, {0, 4, 3}, {0, 4, 3}},
		{{0, 4, 3}, {0, 8, 3}, {0, 4, 3}, {0, 4, 3}},
		{{0, 4, 3}, {12, 4, 3}, {24, 4, 3}, {24, 4, 3}},
		{{0, 4, 3}, {0, 4, 3}, {0, 4, 2}, {0, 4, 3}},
		{{20, -4, 3}, {28, -4, 3}, {36, -4, 3}, {32, -4, 3}},
		{{0, 4, 1}, {4, 4, 2}, {16, 4, 1}, {20, 4, 1}},
		{{0, 4, 3}, {16, 4, 2}, {32, 4, 3}, {40, 4, 2}},
	} {
		for to := int64(0); to < 48; to += 4 {
			s := &stream{}
			s.begin(5, 32)
			for w, l := range warps {
				for i := range l.times {
					s.access(event.Load, event.Global, uint32(w), 1, uint64(heap+l.from+int64(i)*l.step), 0)
					if i%2 == 1 {
						s.access(event.Load, event.Global, uint32(w), 2, heap+1<<20, 0)
					}
				}
			}
			s.memory(event.Event{Kind: event.Store, Space: event.Global, Warp: 4, Place: 3, Mask: 1, Addr: heap + uint64(to), Size: 4})
			s.end()
			compareWithOracle(t, &s.Batch, detect.ModelCUDA, fmt.Sprintf("loops %d, store at %d", n, to))
		}
	}
}

// TestLoadsAfterRelease makes two warps load from a table in a loop, the second after a release. A third acquires that
// release and stores to what the second has loaded. They race, because the loads do not happen before the release.
func TestLoadsAfterRelease(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		s := &stream{}
		s.begin(4, 32)
		flag := func(w, place uint32) {
			fence := event.Event{Kind: event.Fence, Order: event.AcqRel, Scope: event.ScopeGPU, Warp: w, Mask: ^uint32(0), Place: 10}
			s.add(fence)
			s.memory(event.Event{Kind: event.Atomic, Space: event.Global, Warp: w, Place: place, Mask: 1, Addr: heap + 1<<28, Size: 4})
			s.add(fence)
		}
		for w := range uint32(3) {
			if after && w == 1 {
				flag(w, 4)
			}
			for i := range uint64(3) {
				s.memory(event.Event{Kind: event.Load, Space: event.Global, Warp: w, Place: 1, Mask: 1, Addr: heap + uint64(w)*64 + i*4, Size: 4})
			}
			if !after && w == 1 {
				flag(w, 4)
			}
		}
		flag(3, 5)
		s.memory(event.Event{Kind: event.Store, Space: event.Global, Warp: 3, Place: 3, Mask: 1, Addr: heap + 64, Size: 4})
		s.end()
		if found := compareWithOracle(t, &s.Batch, detect.ModelCUDA, fmt.Sprint("after ", after)); (found != "") != after {
			t.Errorf("after %t: %q", after, found)
		}
	}
}

// TestLoadsInOne checks that the loads of a table by many warps, each in two loops, take the memory of a few loads.
func TestLoadsInOne(t *testing.T) {
	t.Parallel()
	metadata := func(blocks uint32) uint64 {
		s := &stream{}
		s.begin(blocks, 32)
		for w := range blocks {
			for i := range uint64(40) {
				s.access(event.Load, event.Global, w, 1+uint32(i/20), heap+i*8, 0)
			}
		}
		d := New(detect.Config{Places: oracle.Places{}})
		d.Events(&s.Batch)
		return d.MemoryBytes()
	}
	if few, many := metadata(10), metadata(10000); many > few+100*10000 {
		t.Errorf("loads of 10 warps take %d bytes, of 10,000 warps %d", few, many)
	}
}

// release makes lane 0 of a warp release what it did and acquire what others have released.
func (s *stream) release(w uint32) {
	fence := event.Event{Kind: event.Fence, Order: event.AcqRel, Scope: event.ScopeGPU, Warp: w, Mask: ^uint32(0), Place: 10}
	s.add(fence)
	s.memory(event.Event{Kind: event.Atomic, Space: event.Global, Warp: w, Place: 4, Mask: 1, Addr: heap + 1<<28, Size: 4})
	s.add(fence)
}

// TestLoadsAgain makes a warp load from a table in nested loops, and then a store to each place of it. Only loads that
// repeat others may be left out. A release between two loads keeps them apart.
func TestLoadsAgain(t *testing.T) {
	t.Parallel()
	for n, loop := range []struct {
		outer, inner, repeat int64
		far, step            int64
		mask                 uint32 // of the last iterations of the outer loop
		stride               int64  // of those, in which lanes 0 and 1 load
	}{
		{3, 4, 1, 0, 4, 3, 4},
		{3, 4, 2, 0, 4, 3, 4},
		{3, 4, 2, 0, -4, 3, 4},
		{3, 4, 1, 8, 4, 3, 4},
		{3, 3, 1, 4, 8, 3, 4},
		{3, 3, 2, 12, 8, 3, 4},
		{3, 4, 1, 32, 4, 3, 4},
		{2, 1, 3, 0, 0, 3, 4},
		{2, 4, 1, 0, 4, 7, 4},
		{2, 4, 1, 0, 4, 3, 12},
	} {
		for released := range int64(2) {
			for to := int64(0); to < 128; to += 4 {
				s := &stream{}
				s.begin(3, 32)
				for i := range loop.outer {
					e := event.Event{Kind: event.Load, Space: event.Global, Place: 1, Mask: 3, Stride: 4, Size: 4}
					if i == loop.outer-1 {
						e.Mask, e.Stride = loop.mask, loop.stride
						if released == 1 {
							s.release(0)
						}
					}
					for j := range loop.inner {
						for range loop.repeat {
							e.Addr = uint64(heap + 24 + i*loop.far + j*loop.step)
							s.memory(e)
						}
					}
				}
				s.release(1)
				s.memory(event.Event{Kind: event.Store, Space: event.Global, Warp: 1, Place: 3, Mask: 1, Addr: heap + uint64(to), Size: 4})
				s.end()
				compareWithOracle(t, &s.Batch, detect.ModelCUDA, fmt.Sprintf("loops %d, released %d, store at %d", n, released, to))
			}
		}
	}
}

// TestLoadsCompacted makes a warp load from two tables in turn, so often that repetitions are dropped, with a release
// before the last turn. Then there is a store to each place of the tables.
func TestLoadsCompacted(t *testing.T) {
	t.Parallel()
	for turns := range 40 {
		for released := range 2 {
			for to := uint64(0); to < 64; to += 4 {
				s := &stream{}
				s.begin(3, 32)
				for i := range turns {
					if released == 1 && i == turns-1 {
						s.release(0)
					}
					for _, from := range []uint64{0, 40} {
						for j := range uint64(3) {
							s.memory(event.Event{Kind: event.Load, Space: event.Global, Place: 1, Mask: 1, Addr: heap + from + j*8, Size: 4})
						}
					}
				}
				s.release(1)
				s.memory(event.Event{Kind: event.Store, Space: event.Global, Warp: 1, Place: 3, Mask: 1, Addr: heap + to, Size: 4})
				s.end()
				d := New(detect.Config{Places: oracle.Places{}})
				d.history.(*history.Fast).PutOffMost(16, 64)
				d.Events(&s.Batch)
				found := ""
				for _, x := range d.totals() {
					found += fmt.Sprint(x.Count, " ", x.Addresses)
				}
				races := oracle.Find(&s.Batch, oracle.Model(detect.ModelCUDA))
				exp := ""
				for _, x := range races {
					exp += fmt.Sprint(x.Count, " ", x.Addresses)
				}
				if found != exp {
					t.Fatalf("%d turns, released %d, store at %d: found %q, want %q", turns, released, to, found, exp)
				}
			}
		}
	}
}

// TestLoadsOfManyWarps checks that the load of the last warp, the only one that is not ordered with a store, is found
// among those of so many warps that some share a slot of the table of last loads.
func TestLoadsOfManyWarps(t *testing.T) {
	t.Parallel()
	const warps = 5000
	s := &stream{}
	s.begin(warps+1, 32)
	for w := range uint32(warps) {
		s.memory(event.Event{Kind: event.Load, Space: event.Global, Warp: w, Place: 1, Mask: 1, Addr: heap, Size: 4})
		if w < warps-1 {
			s.release(w)
		}
	}
	s.release(warps)
	s.memory(event.Event{Kind: event.Store, Space: event.Global, Warp: warps, Place: 3, Mask: 1, Addr: heap, Size: 4})
	s.end()
	d := New(detect.Config{Places: oracle.Places{}})
	d.Events(&s.Batch)
	if n := len(d.Findings()); n != 1 {
		t.Errorf("%d findings, want the race with the last warp", n)
	}
}

// TestNestedLoadsInOne checks that loads in three nested loops, as in a convolution, take the memory of one load.
func TestNestedLoadsInOne(t *testing.T) {
	t.Parallel()
	metadata := func(outer, repeat uint64) uint64 {
		s := &stream{}
		s.begin(1, 32)
		for range outer {
			for i := range uint64(100) {
				for range repeat {
					s.access(event.Load, event.Global, 0, 1, heap+i*8, 0)
				}
			}
		}
		d := New(detect.Config{Places: oracle.Places{}})
		d.Events(&s.Batch)
		return d.MemoryBytes()
	}
	if once, often := metadata(1, 1), metadata(50, 3); often > once {
		t.Errorf("loads in one loop take %d bytes, in three %d", once, often)
	}
}
