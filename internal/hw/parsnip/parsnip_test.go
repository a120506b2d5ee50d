package parsnip

import (
	"maps"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/cpu/oracle"
	"fencepost.dev/fencepost/internal/hw/cache"
	"fencepost.dev/fencepost/internal/testsize"
)

// small returns a design with caches, tables and buffers that are too small for nearly all programs.
func small(r *rand.Rand) Options {
	o := Thesis()
	o.Machine.VariableBytes = []int{1, 1, 4, 8}[r.IntN(4)]
	o.TableEntries, o.BufferEntries = []int{1, 2, 3, 15}[r.IntN(4)], []int{0, 1, 2, 4, 32}[r.IntN(5)]
	o.Predict, o.Residence = r.IntN(2) == 0, Residence(r.IntN(3))
	o.Machine.Caches.Cores = []int{1, 2, 3, 16}[r.IntN(4)]
	if r.IntN(4) > 0 {
		line := cache.LineBytes
		o.Machine.Caches.L1 = cache.Geometry{Bytes: 8 * line, Ways: 8}
		o.Machine.Caches.L2 = cache.Geometry{Bytes: 8 * line, Ways: 8}
		o.Machine.Caches.L3 = cache.Geometry{Bytes: 8 * line << r.IntN(3), Ways: 8}
	}
	return o
}

// scatter moves the variables of a random trace to other places in memory. It adds accesses to variables that only one
// thread uses. They have no races, and they fill lines and caches.
func scatter(r *rand.Rand, events []cpu.Event) (out []cpu.Event) {
	stride, noise, lines := uint32(1+r.IntN(3)), r.IntN(4), 1+r.IntN(5)
	for _, e := range events {
		if e.Op == cpu.Read || e.Op == cpu.Write {
			e.Object *= stride
			out = append(out, e)
			for range r.IntN(1 + 4*noise) {
				op := cpu.Read
				if r.IntN(2) == 0 {
					op = cpu.Write
				}
				out = append(out, cpu.Event{Op: op, Thread: e.Thread, Object: 16 + 8*uint32(e.Thread) + r.Uint32N(8) + 64*uint32(r.IntN(lines))})
			}
			continue
		}
		out = append(out, e)
	}
	return out
}

// judge returns the races of a trace.
func judge(o Options, events []cpu.Event) (races []cpu.Race, d *Detector) {
	d = New(o, func(r cpu.Race) { races = append(races, r) })
	d.Events(events)
	return races, d
}

// TestAgainstBruteForce compares the first race of each variable with the definition and with fasttrack, and checks
// that no false race is found.
func TestAgainstBruteForce(t *testing.T) {
	n := 5_000
	if testing.Short() {
		n /= 2
	} else if testsize.Long() {
		n *= 4
	}
	racy, reported := 0, 0
	var sum Counts
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 42))
		events := scatter(r, oracle.Random(r))
		o := small(r)
		got, d := judge(o, events)
		if d.Err != nil {
			t.Fatal(d.Err)
		}
		all := oracle.Races(events, oracle.HappensBefore(events))
		want, found, fast := oracle.First(events, all), map[uint32]int{}, map[uint32]int{}
		note := func(m map[uint32]int) func(cpu.Race) {
			return func(r cpu.Race) {
				if _, ok := m[r.Variable]; !ok {
					m[r.Variable] = int(r.Event)
				}
			}
		}
		for _, r := range got {
			note(found)(r)
		}
		fasttrack.Spec.New(note(fast)).Events(events)
		if !maps.Equal(want, found) || !maps.Equal(want, fast) {
			t.Fatalf("trace %d: the first race of each variable is at %v, parsnip finds %v, fasttrack %v\n%+v\n%v", seed, want, found, fast, o, events)
		}
		type pair struct {
			event   int
			earlier uint16
			wrote   bool
		}
		real := map[pair]bool{}
		for _, r := range all {
			real[pair{r.B, events[r.A].Thread, events[r.A].Op == cpu.Write}] = true
		}
		for _, r := range got {
			if !real[pair{int(r.Event), r.Earlier, r.Wrote}] {
				t.Fatalf("trace %d: %+v is no race", seed, r)
			}
		}
		if len(all) > 0 {
			racy++
		}
		reported += len(got)
		for i := range sum.Resolved {
			sum.Resolved[i] += d.Counts.Resolved[i]
		}
		sum.Drains += d.Counts.Drains
		sum.Evictions += d.Counts.Evictions
		sum.Rejections += d.Counts.Rejections
		sum.Rewrites += d.Counts.Rewrites
		leaks(t, d)
	}
	t.Logf("%d of %d traces have races, %d reports, %+v", racy, n, reported, sum)
	for i, k := range sum.Resolved {
		if k == 0 {
			t.Errorf("nothing is resolved by source %d", i)
		}
	}
	if sum.Drains == 0 || sum.Evictions == 0 || sum.Rejections == 0 || sum.Rewrites == 0 {
		t.Error("something never happens")
	}
}

// leaks checks that the reference counts agree with the references, and that waiting agrees with the buffers.
func leaks(t *testing.T, d *Detector) {
	t.Helper()
	var want [MaxThreads][invalid]int32
	for space := range spaces {
		for n := range d.places {
			if l := d.content(space, uint32(n)); l != nil && !l.short {
				for i, r := range l.refs {
					if l.uses[i] > 0 && r.known() {
						want[r.thread()][r.index()]++
					}
				}
			}
		}
	}
	for i := range d.tables {
		for j := range d.tables[i].counts[:invalid] {
			if got := d.tables[i].counts[j]; got != want[i][j] {
				t.Fatalf("entry %d of thread %d has count %d, and %d references name it", j, i, got, want[i][j])
			}
		}
	}
	waiting := make([]uint32, len(d.waiting))
	for core, b := range d.buffers {
		for _, p := range b {
			waiting[p.x] |= 1 << core
		}
	}
	for x, got := range d.waiting {
		if got != waiting[x] {
			t.Fatalf("variable %d waits in buffers %b, and is noted as %b", x, waiting[x], got)
		}
	}
}
