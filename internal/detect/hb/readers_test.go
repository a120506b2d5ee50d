package hb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// readers makes a launch whose warps read the same lines in any order: upwards, downwards, by strides, now and then with a
// barrier of a block between. Then some warps write there.
func readers(pick func(int) int) *event.Batch {
	s := &stream{}
	warps := 4 + pick(40)
	s.begin(uint32((warps+3)/4), 128)
	access := func(kind event.Kind, place, warp, line int) {
		e := event.Event{Kind: kind, Space: event.Global, Warp: uint32(warp), Place: uint32(place), Mask: ^uint32(0), Addr: heap + uint64(line)*128, Stride: 4, Size: 4,
			Flags: event.FlagRead}
		if kind == event.Store {
			e.Flags = event.FlagWrite
		}
		if pick(20) == 0 {
			e.Mask = 0xffff << pick(17)
		}
		s.add(e)
	}
	for range 1 + pick(4) {
		place, line, at, by := 1+pick(2), pick(2), pick(warps), []int{1, -1, 2, -2, 3, -5, 7, 1 + pick(warps)}[pick(8)]
		for range 1 + pick(12) {
			access(event.Load, place, (at%warps+warps)%warps, line)
			at += by
		}
		if pick(3) == 0 {
			s.barrier(uint32(pick(warps)/4), 9)
		}
	}
	for range 1 + pick(3) {
		access(event.Store, 3+pick(2), pick(warps), pick(2))
	}
	s.end()
	return &s.Batch
}

// TestReaders compares hb with the brute-force oracle on lines that many warps read: whoever writes races with each of them that
// does not come before.
func TestReaders(t *testing.T) {
	n := 600
	if !testsize.Long() {
		n = 150
	}
	clean, most := 0, 0
	for seed := range n {
		b := readers(rand.New(rand.NewPCG(uint64(seed), 15)).IntN)
		if compareWithOracle(t, b, detect.ModelCUDA, fmt.Sprint("readers ", seed)) == "" {
			clean++
		}
		most = max(most, oracle.Size(b))
	}
	if clean == 0 || clean > n/2 {
		t.Errorf("%d of %d programs without a race", clean, n)
	}
	t.Logf("%d programs, %d without a race, at most %d accesses of lanes", n, clean, most)
}

// TestOneReaderIsUnordered has three warps of two blocks read a line, in each order, and a warp of one block write it behind a barrier of
// that block: it races with the readers of the other block, be they few or one, first or last.
func TestOneReaderIsUnordered(t *testing.T) {
	const warps = 8 // of two blocks
	for _, stride := range []int64{4, 0} {
		for n := range warps * warps * warps {
			who := [3]int{n % warps, n / warps % warps, n / warps / warps}
			writer := n % 2
			if who[0] == who[1] || who[1] == who[2] || who[0] == who[2] || !testsize.Long() && n%3 != int(stride/4) {
				continue
			}
			s, racing := &stream{}, false
			s.begin(2, 128)
			for _, w := range who {
				s.access(event.Load, event.Global, uint32(w), 1, heap, stride)
				racing = racing || w/4 != writer
			}
			s.barrier(uint32(writer), 9)
			e := event.Event{Kind: event.Store, Space: event.Global, Warp: uint32(writer * 4), Place: 2, Mask: ^uint32(0), Addr: heap, Stride: 4, Size: 4}
			if n%3 == 0 || stride == 0 {
				e.Mask = 1
			}
			s.memory(e)
			s.end()
			got := compareWithOracle(t, &s.Batch, detect.ModelCUDA, fmt.Sprint("warps ", who, " of stride ", stride))
			if racing != (got != "") {
				t.Fatalf("warps %v read, block %d writes: %q", who, writer, got)
			}
		}
	}
}

// divergent makes a program whose warps read a few words under several masks, the same of them often, between barriers, and
// write one now and then.
func divergent(pick func(int) int) *event.Batch {
	s := &stream{}
	blocks := 1 + pick(2)
	s.begin(uint32(blocks), 64)
	masks := []uint32{1, 2, 3, 4, 6, 0xf, 0x80000001, ^uint32(0)}
	addr := func(word int) uint64 { return heap + uint64(word)*[]uint64{4, 128}[word%2] }
	for range 6 + pick(20) {
		e := event.Event{Space: event.Global, Warp: uint32(pick(2 * blocks)), Size: 4}
		switch pick(8) {
		case 0:
			s.barrier(uint32(pick(blocks)), 9)
		case 1:
			e.Kind, e.Place, e.Mask, e.Addr = event.Store, uint32(3+pick(2)), 1<<pick(4), addr(pick(4))
			s.memory(e)
		default:
			e.Kind, e.Place, e.Mask = event.Load, uint32(1+pick(5)/4), masks[pick(len(masks))]
			for word, some := 0, 1+pick(15); word < 4; word++ {
				if e.Addr = addr(word); some>>word&1 != 0 {
					s.memory(e)
				}
			}
		}
	}
	s.end()
	return &s.Batch
}

// TestDivergentReaders compares hb with the brute-force oracle on words that lanes of several warps read, together and apart: what
// is known of one word must not change with another that was read alike.
func TestDivergentReaders(t *testing.T) {
	n := 8000
	if !testsize.Long() {
		n = 300
	}
	clean := 0
	for seed := range n {
		b := divergent(rand.New(rand.NewPCG(uint64(seed), 16)).IntN)
		if compareWithOracle(t, b, detect.ModelCUDA, fmt.Sprint("divergent readers ", seed)) == "" {
			clean++
		}
	}
	if clean < n/20 || clean > n/2 {
		t.Errorf("%d of %d programs without a race", clean, n)
	}
}

// TestSides: a finding names both accesses as they were: where each begins, by whom, and how.
func TestSides(t *testing.T) {
	s := &stream{}
	s.begin(2, 64)
	s.add(event.Event{Kind: event.Store, Space: event.Global, Warp: 1, Place: 1, Mask: 0xff0, Addr: heap, Stride: 8, Size: 8, Flags: event.FlagWrite})
	s.add(event.Event{Kind: event.Atomic, Space: event.Global, Warp: 3, Place: 2, Mask: 0x10, Addr: heap + 0x14, Size: 4, Order: event.Relaxed,
		Scope: event.ScopeCTA, Flags: event.FlagRead | event.FlagWrite})
	s.add(event.Event{Kind: event.Load, Space: event.Global, Warp: 2, Place: 3, Mask: 0x20, Addr: heap + 0x2f, Size: 1, Flags: event.FlagRead})
	s.end()
	d := New(detect.Config{})
	d.Events(&s.Batch)
	fs := d.Findings()
	if len(fs) != 2 {
		t.Fatalf("found %v", fs)
	}
	if x, y := fs[1].Accesses[0], fs[1].Accesses[1]; x.Address != heap+0x28 || x.Lane != 9 || y.Address != heap+0x2f || y.Size != 1 || fs[1].Addresses != 1 {
		t.Errorf("of the byte: %+v and %+v", x, y)
	}
	x, y := fs[0].Accesses[0], fs[0].Accesses[1]
	if x.Op != detect.Write || x.Warp != 1 || x.Lane != 6 || x.Address != heap+0x10 || x.Size != 8 || x.Order != event.Weak || x.Space != event.Global {
		t.Errorf("the earlier access is %+v", x)
	}
	if y.Op != detect.AtomicOp || y.Warp != 3 || y.Lane != 4 || y.Address != heap+0x14 || y.Size != 4 || y.Order != event.Relaxed || y.Scope != event.ScopeCTA {
		t.Errorf("the later access is %+v", y)
	}
	if fs[0].Addresses != 4 || fs[0].Count != 1 {
		t.Errorf("%d bytes, counted %d times, want 4 and once", fs[0].Addresses, fs[0].Count)
	}
}
