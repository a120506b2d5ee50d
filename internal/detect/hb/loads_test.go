package hb

import (
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// TestLoadsOfWarps has warps that load from a table in a loop, some of them alike, and then a store to each place of it in turn: the loads that
// were put off and kept as one are those that there were.
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

// TestLoadsAfterRelease has two warps that load from a table in a loop, the second after a release, and a third that acquires it and then
// stores to what the second has loaded: a race, as the loads do not happen before the release.
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

// TestLoadsInOne wants the loads of a table by many warps, each in two loops, to take the memory of a few.
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
