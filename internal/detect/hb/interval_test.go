package hb

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// withAtomics turns the accesses to shared memory at some places, or at all, into relaxed read-modify-writes.
func withAtomics(b *event.Batch, pick func(n int) int) *event.Batch {
	out := *b
	out.Events = nil
	all := pick(2) == 0
	chosen := map[uint32]bool{}
	red := event.Flags(pick(2)) * event.FlagRed
	for _, e := range b.Events {
		if _, known := chosen[e.Place]; !known {
			chosen[e.Place] = all && pick(12) > 0 || pick(3) == 0
		}
		if e.Kind <= event.Store && e.Space == event.Shared && e.Order == event.Weak && e.Size == 4 && chosen[e.Place] {
			e.Kind, e.Order, e.Scope = event.Atomic, event.Relaxed, event.ScopeCTA
			e.Flags = e.Flags&(event.FlagRows|event.FlagScattered) | event.FlagRead | event.FlagWrite | red
		}
		out.Events = append(out.Events, e)
	}
	return &out
}

// explained returns the findings of a program of one block. In programs of several blocks, deferral may change the
// block that a finding shows.
func explained(d *Detector, b *event.Batch) []detect.Finding {
	if len(b.Launches) != 1 || b.Launches[0].Grid.Count() != 1 {
		return nil
	}
	return d.Findings()
}

// TestIntervals compares detectors that defer accesses with ones that do not: their findings, explanations included.
func TestIntervals(t *testing.T) {
	t.Parallel()
	n := testsize.Of(60, 60, 500)
	run := func(b *event.Batch, kept string, defers bool) *Detector {
		d := New(detect.Config{Options: map[string]string{"history": kept}})
		d.defers = defers
		d.Events(b)
		return d
	}
	for name, make := range map[string]func(*rand.Rand) *event.Batch{
		"weak":     func(r *rand.Rand) *event.Batch { return stages(r.IntN) },
		"atomics":  func(r *rand.Rand) *event.Batch { return withAtomics(stages(r.IntN), r.IntN) },
		"counting": func(r *rand.Rand) *event.Batch { return &counting(r).Batch },
		"counted":  func(r *rand.Rand) *event.Batch { return oracle.Counted(r.IntN) },
	} {
		t.Run(name, func(t *testing.T) {
			n, skipped, broken, racing := n, 0, 0, 0
			if name == "counting" {
				n /= 20 // the programs are long
			}
			for seed := range uint64(n) {
				rng := rand.New(rand.NewPCG(seed, 91))
				plain := make(rng)
				differs := func(b *event.Batch) string {
					b = oracle.Remember(b)
					rng := rand.New(rand.NewPCG(seed, 92))
					off := run(b, "plain", false)
					want, totals := explained(off, b), off.totals()
					for i, on := range []*Detector{run(b, "plain", true), run(inSeries(b, rng.IntN), "plain", true)} {
						if got := explained(on, b); !reflect.DeepEqual(got, want) {
							return fmt.Sprintf("%d: %+v\nnot %+v", i, got, want)
						}
						if got := on.totals(); !reflect.DeepEqual(got, totals) {
							return fmt.Sprintf("%d: %+v\nnot %+v", i, got, totals)
						}
						skipped, broken = skipped+on.skipped, broken+on.broken
						if on.skipped > 0 && len(totals) > 0 {
							racing++
						}
					}
					for i, on := range []*Detector{run(b, "interned", false), run(b, "interned", true), run(inSeries(b, rng.IntN), "interned", true)} {
						if got := on.totals(); !reflect.DeepEqual(got, totals) {
							return fmt.Sprintf("interned %d: %+v\nnot %+v", i, got, totals)
						}
					}
					return ""
				}
				if why := differs(plain); why != "" {
					small := oracle.Shrink(plain, func(b *event.Batch) bool { return differs(b) != "" })
					t.Fatalf("seed %d:\n%s\n%s", seed, oracle.Print(oracle.Remember(small)), differs(small))
				}
			}
			t.Logf("%d accesses skipped, %d intervals broken, %d runs with both skipped accesses and races", skipped, broken, racing)
			if skipped < n/4 || broken < n/8 || racing < n/20 {
				t.Error("nothing was tested")
			}
		})
	}
}

// TestTiles multiplies matrices by tiles of 32 by 32 in a block of 1024 threads. The detector must skip all steps but
// the first.
func TestTiles(t *testing.T) {
	const steps, warps, tile = 8, 32, 32 * 32 * 4
	s := &stream{}
	s.begin(1, 1024)
	for range steps {
		for w := range uint32(warps) {
			s.access(event.Store, event.Shared, w, 1, uint64(w)*128, 4)
			s.access(event.Store, event.Shared, w, 2, tile+uint64(w)*128, 4)
		}
		s.barrier(0, 3)
		for w := range uint32(warps) {
			for k := range uint64(32) {
				s.access(event.Load, event.Shared, w, 4, uint64(w)*128+k*4, 0)
				s.access(event.Load, event.Shared, w, 5, tile+k*128, 4)
			}
		}
		s.barrier(0, 6)
	}
	s.end()
	d := New(detect.Config{})
	d.Events(&s.Batch)
	if n := len(d.Findings()); n > 0 {
		t.Errorf("%d findings", n)
	}
	if want := (steps - 1) * warps * (2 + 64); d.skipped != want {
		t.Errorf("%d accesses were not judged, want %d", d.skipped, want)
	}
}
