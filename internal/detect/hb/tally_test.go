package hb

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// counting makes a random launch of whole warps that count in many words, whose lanes now and then act alone, and at the end
// access some of the words otherwise.
func counting(rng *rand.Rand) *stream {
	s := &stream{}
	blocks, warps := []uint32{1, 2, 40}[rng.IntN(3)], uint32(1+rng.IntN(4))
	s.begin(blocks, warps*32)
	words, lost := []int{8, 300, 3000}[rng.IntN(3)], []int{3, 40, 1000}[rng.IntN(3)]
	access := func(e event.Event) {
		if e.Space == event.Global {
			e.Addr = heap
		}
		switch rng.IntN(6) {
		case 0:
			e.Addr += uint64(rng.IntN(words)) * 4
		case 1, 2:
			e.Addr += uint64(rng.IntN(words)/32) * 128
			e.Stride = 4
		default:
			e.Flags |= event.FlagScattered
			e.Side = uint32(len(s.Addrs))
			for range bits.OnesCount32(e.Mask) {
				s.Addrs = append(s.Addrs, e.Addr+uint64(rng.IntN(words))*4)
			}
		}
		s.memory(e)
	}
	for range 20 + rng.IntN(200) {
		e := event.Event{Kind: event.Atomic, Space: event.Global, Warp: uint32(rng.IntN(int(blocks * warps))), Place: 1, Mask: ^uint32(0), Size: 4}
		if rng.IntN(2) == 0 {
			e.Space = event.Shared
		}
		if rng.IntN(lost) == 0 {
			e.Mask = rng.Uint32() | 1
		}
		switch rng.IntN(4 * lost) {
		case 0:
			s.add(event.Event{Kind: event.WarpSync, Warp: e.Warp, Mask: e.Mask, Place: 2})
		case 1:
			s.barrier(e.Warp/warps, 3)
		case 2:
			s.add(event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Warp: e.Warp, Mask: e.Mask, Place: 4})
		case 3:
			e.Kind, e.Place, e.Mask = event.Store, 5, 1<<rng.IntN(32)
		}
		access(e)
	}
	for range 4 {
		e := event.Event{Kind: event.Load, Space: []event.Space{event.Global, event.Shared}[rng.IntN(2)], Warp: uint32(rng.IntN(int(blocks * warps))),
			Place: 6, Mask: rng.Uint32() | 1, Size: 4}
		access(e)
	}
	s.add(event.Event{Kind: event.KernelEnd})
	return s
}

// TestCounting compares tallies and rolls of whole warps with cells.
func TestCounting(t *testing.T) {
	n := 400
	if !testsize.Long() {
		n = 100
	}
	kinds := map[string]int{}
	clean, tallies, rolls := 0, 0, 0
	for seed := range n {
		b := &counting(rand.New(rand.NewPCG(uint64(seed), 7))).Batch
		differs := func(b *event.Batch) bool { return races(b, detect.ModelCUDA) != byCells(b, detect.ModelCUDA) }
		got := races(b, detect.ModelCUDA)
		if got != byCells(b, detect.ModelCUDA) {
			small := oracle.Shrink(b, differs)
			t.Fatalf("seed %d: notes differ from cells\n%s\nnotes:\n%s\n\ncells:\n%s", seed, oracle.Print(small), races(small, detect.ModelCUDA), byCells(small, detect.ModelCUDA))
		}
		if got == "" {
			clean++
		}
		for _, why := range reasonOf {
			if strings.Contains(got, why) {
				kinds[why]++
			}
		}
		if seed%4 == 0 {
			d := New(detect.Config{})
			d.Events(b)
			tallies, rolls = tallies+int(d.mem.notebook.tallies.used), rolls+int(d.mem.notebook.rolls.used)
		}
	}
	t.Logf("%d programs, %d without a race; in a quarter of them %d tallies, %d rolls; programs with a race by reason: %v", n, clean, tallies, rolls, kinds)
	for _, why := range []string{"same-block", "cross-block", "warp-synchronous", "atomic-with-plain"} {
		if kinds[why] == 0 {
			t.Errorf("no program has a race of reason %s", why)
		}
	}
	if tallies < n/4 || rolls < n/16 {
		t.Errorf("%d tallies, %d rolls: nothing was tested", tallies, rolls)
	}
}

// TestCountingCost checks that warps that count in the same words again take no memory, and no cells.
func TestCountingCost(t *testing.T) {
	s := &stream{}
	s.begin(40, 256)
	for w := range uint32(40 * 8) {
		s.scattered(event.Atomic, event.Shared, w, 1, func(l int) uint64 { return uint64(l*l) % 29 * 4 })
		s.access(event.Atomic, event.Global, w, 2, heap+uint64(w%8)*128, 4)
		s.access(event.Atomic, event.Global, w, 3, heap+1<<20, 0)
	}
	repeat := s.Events[1:]
	d := New(detect.Config{})
	d.Events(&s.Batch)
	again := s.Batch
	again.Events = repeat
	if n := testing.AllocsPerRun(10, func() { d.Events(&again) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if d.mem.peak != 0 {
		t.Errorf("%d lines of cells", d.mem.peak)
	}
	if f := d.Findings(); len(f) != 0 {
		t.Error(fmt.Sprint("findings: ", f))
	}
}

// TestTallyFull has more deeds in a line than a tally has room for: they are told apart all the same.
func TestTallyFull(t *testing.T) {
	s := &stream{}
	s.begin(1, 64)
	count := func(warp, mask uint32, addr uint64) {
		s.memory(event.Event{Kind: event.Atomic, Space: event.Shared, Warp: warp, Place: 1, Mask: mask, Addr: addr, Size: 4})
	}
	for i := range uint32(maxTally) {
		count(0, 0xff|i<<8, 0)
	}
	count(1, 1<<3, 36)
	count(0, 1<<4, 40)
	for warp, addr := range []uint64{40, 36} {
		s.add(event.Event{Kind: event.Load, Space: event.Shared, Warp: uint32(warp), Place: 2, Mask: 1 << (4 - warp), Addr: addr, Size: 4, Flags: event.FlagRead})
	}
	if got := compareWithOracle(t, &s.Batch, detect.ModelCUDA, "full tally"); got != "" {
		t.Errorf("threads race with themselves: %s", got)
	}
	s.add(event.Event{Kind: event.Load, Space: event.Shared, Place: 3, Mask: 1, Addr: 36, Size: 4, Flags: event.FlagRead})
	if got := compareWithOracle(t, &s.Batch, detect.ModelCUDA, "full tally"); got == "" {
		t.Error("no race between warps")
	}
}
