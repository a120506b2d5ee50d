package radish

import (
	"maps"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/oracle"
	"fencepost.dev/fencepost/internal/hw/machine"
	"fencepost.dev/fencepost/internal/testsize"
)

// TestAgainstBruteForce compares the first race of each variable with the definition, and checks that no false race is
// found.
func TestAgainstBruteForce(t *testing.T) {
	n := testsize.Of(1_000, 2_000, 10_000)
	var sum [Sources]uint64
	for seed := range n {
		events := oracle.Random(rand.New(rand.NewPCG(uint64(seed), 43)))
		found := map[uint32]int{}
		all := oracle.Races(events, oracle.HappensBefore(events))
		real := map[[2]int]bool{}
		for _, r := range all {
			real[[2]int{int(events[r.A].Thread), r.B}] = true
		}
		d := New(machine.Thesis(), seed%2 == 0, func(r cpu.Race) {
			if _, ok := found[r.Variable]; !ok {
				found[r.Variable] = int(r.Event)
			}
			if !real[[2]int{int(r.Earlier), int(r.Event)}] {
				t.Fatalf("trace %d: %+v is no race", seed, r)
			}
		})
		d.Events(events)
		if want := oracle.First(events, all); !maps.Equal(want, found) {
			t.Fatalf("trace %d: the first races are at %v, found at %v\n%v", seed, want, found, events)
		}
		for i, k := range d.Counts.Resolved {
			sum[i] += k
		}
	}
	for i, k := range sum {
		if k == 0 {
			t.Errorf("nothing is resolved by source %d", i)
		}
	}
}

// TestSteps checks the sources and cycles of single accesses.
func TestSteps(t *testing.T) {
	for _, typeSafe := range []bool{false, true} {
		d := New(machine.Thesis(), typeSafe, func(r cpu.Race) { t.Fatalf("%+v", r) })
		for i, s := range []struct {
			thread uint16
			op     cpu.Op
			object uint32
			by     Source
		}{
			{0, cpu.Write, 0, Missing},
			{0, cpu.Write, 0, Permission},
			{0, cpu.Read, 0, Metadata},
			{0, cpu.Release, 0, Sources},
			{1, cpu.Acquire, 0, Sources},
			{1, cpu.Read, 0, Metadata},
			{0, cpu.Read, 0, Readers},
			{1, cpu.Read, 0, Readers},
			{0, cpu.Write, 9, Missing},
			{0, cpu.Write, 1, Metadata}, // next to variable 0
			{0, cpu.Write, 3, map[bool]Source{false: Missing, true: Metadata}[typeSafe]}, // 96 or 24 bytes after it
		} {
			before := d.Counts.Resolved
			d.Events([]cpu.Event{{Thread: s.thread, Op: s.op, Object: s.object}})
			if s.by < Sources {
				before[s.by]++
			}
			if d.Counts.Resolved != before {
				t.Errorf("type safety %v, step %d is not resolved by source %d: %v", typeSafe, i, s.by, d.Counts.Resolved)
			}
		}
	}
}
