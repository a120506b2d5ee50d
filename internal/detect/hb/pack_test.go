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

// byCells gives what hb finds without packing lines.
func byCells(b *event.Batch, m detect.Model) string {
	return racesOf(b, m, func(d *Detector) { d.cellsOnly = true })
}

// TestPacked compares packed lines with cells on programs whose warps access arrays in lane order, and with the oracle where
// that is quick.
func TestPacked(t *testing.T) {
	n := 8000
	if !testsize.Long() {
		n = 800
	}
	kinds := map[string]int{}
	clean, packed, expanded, recalled := 0, 0, 0, 0
	for seed := 0; seed < n; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		b := oracle.Traffic(rng.IntN)
		m := detect.Model(seed % 8 % 3)
		remember := func(b *event.Batch) *event.Batch { return b }
		if seed%5 > 1 { // as the engines tell it
			remember = oracle.Remember
		}
		plain := b
		b = remember(plain)
		got := races(b, m)
		if exp := byCells(b, m); got != exp {
			small := remember(oracle.Shrink(plain, func(b *event.Batch) bool { return races(remember(b), m) != byCells(remember(b), m) }))
			t.Fatalf("seed %d, model %d: packed lines differ from cells\n%s\npacked:\n%s\n\ncells:\n%s", seed, m, oracle.Print(small), races(small, m), byCells(small, m))
		}
		if seed%20 == 0 && oracle.Size(b) < 600 {
			compareWithOracle(t, b, m, fmt.Sprint("traffic ", seed))
		}
		if seed%4 == 0 {
			d := New(detect.Config{Model: m})
			d.Events(&event.Batch{Events: b.Events[:len(b.Events)-1], Addrs: b.Addrs, Values: b.Values, Launches: b.Launches, Hosts: b.Hosts})
			packed += int(d.mem.packs.used)
			recalled += int(d.mem.words.used)
			expanded += int(d.mem.peak)
		}
		if got == "" {
			clean++
		}
		for _, why := range reasonOf {
			if strings.Contains(got, why) {
				kinds[why]++
			}
		}
	}
	t.Logf("%d programs, %d without a race; in a quarter of them %d packs, %d of words, and %d lines of cells; programs with a race by reason: %v", n, clean, packed, recalled, expanded, kinds)
	for _, why := range []string{"same-value", "same-block", "cross-block", "warp-synchronous", "atomic-with-plain", "cross-launch"} {
		if kinds[why] == 0 {
			t.Errorf("no program has a race of reason %s", why)
		}
	}
	if packed < n/4 || clean < n/20 {
		t.Errorf("%d packs, %d programs without a race: nothing was tested", packed, clean)
	}
}

// TestPackedCost checks that accesses in lane order that repeat take no memory, and no cells.
func TestPackedCost(t *testing.T) {
	s := &stream{}
	s.begin(4, 128)
	d := New(detect.Config{})
	d.Events(&s.Batch)
	s.Reset()
	for w := uint32(0); w < 16; w++ {
		at := heap + uint64(w)*128
		s.access(event.Load, event.Global, w, 1, at, 4)
		s.access(event.Load, event.Global, w, 2, heap+4096, 0)
		s.access(event.Load, event.Global, w, 3, at+4, 4)
		s.access(event.Store, event.Global, w, 4, at+1<<20, 4)
		s.access(event.Store, event.Shared, w, 5, uint64(w%4)*128, 4)
		s.scattered(event.Load, event.Global, w, 6, func(l int) uint64 { return heap + 1<<21 + uint64(l%16)*4 + uint64(w)*64 })
	}
	for range maxStage { // until shared memory is judged too, no barrier being in sight
		d.Events(&s.Batch)
	}
	if n := testing.AllocsPerRun(20, func() { d.Events(&s.Batch) }); n != 0 {
		t.Errorf("%v allocations for events that repeat, want none", n)
	}
	if d.mem.touched != 0 {
		t.Errorf("%d lines of cells, want none", d.mem.touched)
	}
	if f := d.Findings(); len(f) != 0 {
		t.Errorf("findings: %v", f)
	}
}

// TestPackedDetails checks what random programs seldom show: values that a warp's second store changes in one lane, and
// lanes that executed together at first and no longer.
func TestPackedDetails(t *testing.T) {
	store := func(s *stream, warp, place, mask uint32, size uint8, value func(lane int) uint64) {
		e := event.Event{Kind: event.Store, Space: event.Global, Warp: warp, Place: place, Mask: mask, Addr: heap, Stride: int64(size), Size: size,
			Flags: event.FlagWrite | event.FlagValues, Val: uint32(len(s.Values))}
		for l := 0; l < 32; l++ {
			if mask>>uint(l)&1 != 0 {
				s.Values = append(s.Values, value(l))
			}
		}
		s.add(e)
	}
	const all = ^uint32(0)
	zero := func(int) uint64 { return 0 }
	check := func(name string, s *stream, want string) {
		t.Helper()
		got, cells := compareWithOracle(t, &s.Batch, detect.ModelCUDA, name), byCells(&s.Batch, detect.ModelCUDA)
		if got != cells || !strings.Contains(got, want) {
			t.Errorf("%s: packed\n%s\ncells\n%s\nwant %s", name, got, cells, want)
		}
	}
	for _, size := range []uint8{1, 2, 4, 8} {
		for _, odd := range []int{-1, 5} {
			s := &stream{}
			s.begin(2, 32)
			store(s, 0, 1, all, size, zero)
			store(s, 0, 1, all, size, func(l int) uint64 {
				if l == odd {
					return 1
				}
				return 0
			})
			store(s, 1, 2, all, size, zero)
			want := "p1-p2 same-value count 32"
			if odd >= 0 {
				want = "p1-p2 cross-block count 32"
			}
			check(fmt.Sprint("values of size ", size, ", odd ", odd), s, want)
		}
	}
	for _, second := range []uint32{all, 0xffff} {
		s := &stream{}
		s.begin(1, 32)
		store(s, 0, 1, all, 8, zero)
		store(s, 0, 1, second, 8, zero)
		s.add(event.Event{Kind: event.Load, Space: event.Global, Place: 2, Mask: 1 << 20, Addr: heap + 3*8, Size: 8, Flags: event.FlagRead})
		want := "p1-p2 warp-synchronous count 1"
		if second != all {
			want = "p1-p2 same-block count 1"
		}
		check(fmt.Sprintf("second store by %#x", second), s, want)
	}
}
