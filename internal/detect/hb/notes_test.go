package hb

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// TestScattered compares hb with the brute-force oracle on programs whose accesses are mostly noted.
func TestScattered(t *testing.T) {
	agree(t, "scatter", 3, 12000, oracle.Scatter, "atomic-with-plain", "atomic-scope", "cross-launch", "same-block", "mixed-size")
}

// TestCounted does so with programs whose warps count together.
func TestCounted(t *testing.T) {
	agree(t, "counted", 5, 12000, oracle.Counted, "atomic-with-plain", "atomic-scope", "cross-launch")
}

// TestLocked does so with programs whose accesses are mostly in order, one thread after the other.
func TestLocked(t *testing.T) {
	agree(t, "locked", 4, 12000, oracle.Locked, "atomic-with-plain", "atomic-scope", "cross-launch", "same-block", "cross-block", "same-value",
		"warp-synchronous")
	agree(t, "buckets", 6, 12000, oracle.Buckets, "atomic-with-plain", "atomic-scope", "cross-launch", "same-block", "cross-block", "same-value",
		"warp-synchronous")
	remembered := func(pick func(int) int) *event.Batch { return oracle.Remember(oracle.Buckets(pick)) }
	agree(t, "remembered buckets", 7, 6000, remembered, "atomic-with-plain", "cross-block", "same-value")
}

// agree compares hb with the oracle on n programs (an eighth, unless tests may take long), of which some must have a race of each of reasons,
// and some none.
func agree(t *testing.T, name string, stream uint64, n int, program func(func(int) int) *event.Batch, reasons ...string) {
	if !testsize.Long() {
		n /= 8
	}
	kinds := map[string]int{}
	clean := 0
	for seed := 0; seed < n; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), stream))
		got := compareWithOracle(t, program(rng.IntN), detect.Model(seed%8%3), fmt.Sprint(name, " ", seed))
		if got == "" {
			clean++
		}
		for _, why := range reasonOf {
			if strings.Contains(got, why) {
				kinds[why]++
			}
		}
	}
	t.Logf("%d programs, %d without a race, programs with a race by reason: %v", n, clean, kinds)
	for _, why := range reasons {
		if kinds[why] == 0 {
			t.Errorf("no program has a race of reason %s", why)
		}
	}
	if clean < n/20 {
		t.Errorf("%d programs without a race", clean)
	}
}

// TestDeedsEnd has one long launch whose warps meet at barriers again and again: what no note refers to any more is
// forgotten, and what notes still refer to is not.
func TestDeedsEnd(t *testing.T) {
	s := &stream{}
	s.begin(2, 64)
	s.scattered(event.Load, event.Global, 3, 9, func(l int) uint64 { return heap + uint64(l)*4100 })
	d := New(detect.Config{})
	d.Events(&s.Batch)
	for r := 0; r < manyDeeds; r++ {
		s.Reset()
		for w := uint32(0); w < 2; w++ {
			s.scattered(event.Atomic, event.Shared, w, 1, func(l int) uint64 { return uint64(l*7+r) % 32 * 4 })
		}
		s.barrier(0, 2)
		d.Events(&s.Batch)
	}
	if n := d.launches[1].deeds.n; n > manyDeeds+1 {
		t.Errorf("%d deeds are kept", n)
	}
	s.Reset()
	s.scattered(event.Store, event.Global, 0, 10, func(l int) uint64 { return heap + uint64(l)*4100 })
	d.Events(&s.Batch)
	if fs := d.Findings(); len(fs) != 1 || fs[0].Count != 32 {
		t.Errorf("the load before everything else is not found to race: %v", fs)
	}
}

// TestNotesCost checks that scattered accesses that repeat take no memory, and no cells.
func TestNotesCost(t *testing.T) {
	s := &stream{}
	s.begin(1, 256)
	for w := uint32(0); w < 8; w++ {
		s.scattered(event.Atomic, event.Shared, w, 1, func(l int) uint64 { return uint64(l*l) % 29 * 4 })
		s.scattered(event.Atomic, event.Global, w, 2, func(l int) uint64 { return heap + uint64(l*l)%29*4 })
		s.scattered(event.Load, event.Global, w, 3, func(l int) uint64 { return heap + 1<<20 + uint64(w)<<10 + uint64(l*l)*8 })
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
}
