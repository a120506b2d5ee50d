package all

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/cpu/oracle"
	"fencepost.dev/fencepost/internal/cpu/slimfast"
	"fencepost.dev/fencepost/internal/cpu/wcp"
	"fencepost.dev/fencepost/internal/testsize"
)

const traces = 20_000

// judge returns the races that a detector finds. It passes the events in two batches.
func judge(spec cpu.Spec, events []cpu.Event) (races []cpu.Race) {
	d := spec.New(func(r cpu.Race) { races = append(races, r) })
	cut := len(events) / 3
	d.Events(events[:cut])
	d.Events(events[cut:])
	return races
}

func random(seed int) []cpu.Event { return oracle.Random(rand.New(rand.NewPCG(uint64(seed), 17))) }

// repeated reports, for each access, whether the thread made the same access earlier in this epoch and no thread has
// written since. The detectors do not judge such accesses again.
func repeated(events []cpu.Event) []bool {
	type access struct {
		thread uint16
		object uint32
		write  bool
	}
	type since struct{ epoch, write int }
	out := make([]bool, len(events))
	epochs, writes := map[uint16]int{}, map[uint32]int{}
	seen := map[access]since{}
	for i, e := range events {
		switch e.Op {
		case cpu.Read, cpu.Write:
			a, now := access{e.Thread, e.Object, e.Op == cpu.Write}, since{epochs[e.Thread], writes[e.Object]}
			last, ok := seen[a]
			out[i] = ok && last == now
			if e.Op == cpu.Write && !out[i] {
				writes[e.Object] = i + 1
				now.write = i + 1
			}
			seen[a] = now
		case cpu.Release, cpu.ReleaseShared, cpu.AtomicWrite, cpu.AtomicUpdate, cpu.Fork, cpu.BarrierEnter:
			epochs[e.Thread]++
		}
	}
	return out
}

// compare checks that the detector finds the first race of each variable, and every race of an access with the last
// write before it and with the reads since that write, by threads.
func compare(t *testing.T, seed int, events []cpu.Event, before func(a, b int) bool, got []cpu.Race) (racy bool) {
	t.Helper()
	all := oracle.Races(events, before)
	first, found := oracle.First(events, all), map[uint32]int{}
	for _, r := range got {
		if _, ok := found[r.Variable]; !ok {
			found[r.Variable] = int(r.Event)
		}
	}
	if !maps.Equal(first, found) {
		t.Fatalf("trace %d: the first race of each variable is at %v, found at %v\n%v", seed, first, found, events)
	}
	type race struct {
		event  int
		thread uint16
		wrote  bool
	}
	want, have, skip := map[race]bool{}, map[race]bool{}, repeated(events)
	for _, r := range all {
		a := events[r.A]
		last := -1
		for i := range r.B {
			if events[i].Op == cpu.Write && events[i].Object == a.Object && !skip[i] {
				last = i
			}
		}
		if r.A >= last && !skip[r.B] && !skip[r.A] {
			want[race{r.B, a.Thread, a.Op == cpu.Write}] = true
		}
	}
	for _, r := range got {
		if !skip[r.Event] {
			have[race{int(r.Event), r.Earlier, r.Wrote}] = true
		}
	}
	for r := range want {
		// If reads are ordered with each other, the detector keeps only the last one.
		if !have[r] && (r.wrote || !slices.ContainsFunc(got, func(g cpu.Race) bool { return int(g.Event) == r.event && !g.Wrote })) {
			t.Fatalf("trace %d: %v is not found\n%v", seed, r, events)
		}
	}
	for r := range have {
		if !want[r] {
			t.Fatalf("trace %d: %v is no race\n%v", seed, r, events)
		}
	}
	return len(all) > 0
}

func TestAgainstBruteForce(t *testing.T) {
	n := traces
	if testing.Short() {
		n /= 10
	} else if testsize.Long() {
		n *= 4
	}
	racy := 0
	var counts slimfast.Counts
	for seed := range n {
		events := random(seed)
		got := judge(fasttrack.Spec, events)
		if compare(t, seed, events, oracle.HappensBefore(events), got) {
			racy++
		}
		var slim []cpu.Race
		d := slimfast.New(func(r cpu.Race) { slim = append(slim, r) })
		d.Events(events)
		if !slices.Equal(got, slim) {
			t.Fatalf("trace %d: fasttrack finds %v, slimfast %v\n%v", seed, got, slim, events)
		}
		c := d.Counts()
		counts.PairReused += c.PairReused
		counts.InflReused += c.InflReused
		counts.SharedReused += c.SharedReused
		counts.SharedAlloc += c.SharedAlloc
	}
	if racy < n/4 || racy > n*9/10 {
		t.Errorf("%d of %d traces have races: the others are too few, or these", racy, n)
	}
	if counts.PairReused == 0 || counts.InflReused == 0 || counts.SharedReused == 0 || counts.SharedAlloc == 0 {
		t.Errorf("a rule is never used: %+v", counts)
	}
	t.Logf("%d of %d traces have races, %+v", racy, n, counts)
}

// TestPredictsAsBruteForce compares wcp with the definition of weak-causally-precedes, and its predicted races with
// happens-before.
func TestPredictsAsBruteForce(t *testing.T) {
	n := traces
	if testing.Short() {
		n /= 10
	} else if testsize.Long() {
		n *= 4
	}
	predicted, weaker := 0, 0
	for seed := range n {
		events := random(seed)
		got := judge(wcp.Spec, events)
		compare(t, seed, events, oracle.WeakCausallyPrecedes(events), got)
		hb := oracle.HappensBefore(events)
		known := map[uint32]bool{}
		for _, r := range oracle.Races(events, hb) {
			known[events[r.A].Object] = true
		}
		for _, r := range got {
			last := -1
			for i := range int(r.Event) {
				if e := events[i]; e.Object == r.Variable && e.Thread == r.Earlier && (e.Op == cpu.Write && r.Wrote || e.Op == cpu.Read && !r.Wrote) {
					last = i
				}
			}
			if r.Predicted != hb(last, int(r.Event)) {
				t.Fatalf("trace %d: %v is predicted or not, wrongly\n%v", seed, r, events)
			}
			if r.Predicted {
				predicted++
				if !known[r.Variable] {
					weaker++
				}
			}
		}
	}
	if predicted < n/20 || weaker < n/100 {
		t.Errorf("%d predicted races, %d of variables without another race: too few", predicted, weaker)
	}
	t.Logf("%d predicted races, %d of variables without another race", predicted, weaker)
}
