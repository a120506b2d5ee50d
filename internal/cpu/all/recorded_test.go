package all

import (
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/cpu/slimfast"
	"fencepost.dev/fencepost/internal/cpu/wcp"
	"fencepost.dev/fencepost/internal/testsize"
)

// recorded returns a random trace with the operations of recorded programs. Variables 1 and 2 are atomic. If locks is
// set, lock 0 is used.
func recorded(seed int, locks bool) (events []cpu.Event) {
	r := rand.New(rand.NewPCG(uint64(seed), 18))
	owner, variables := -1, uint32(2)
	for range 8 + r.IntN(24) {
		thread := r.IntN(3)
		e := cpu.Event{Thread: uint16(thread), Object: uint32(r.IntN(int(variables)))}
		switch k := r.IntN(20); {
		case k < 3:
			e.Op = []cpu.Op{cpu.Read, cpu.Write}[r.IntN(2)]
		case k < 6:
			e.Op = []cpu.Op{cpu.ReadAtomic, cpu.WriteAtomic}[r.IntN(2)]
		case k < 15:
			e.Object = uint32(1 + r.IntN(2))
			e.Op = []cpu.Op{cpu.AtomicRead, cpu.AtomicWrite, cpu.AtomicUpdate, cpu.StoreRelease, cpu.StoreRelaxed, cpu.ReadRelaxed,
				cpu.UpdateAcquire, cpu.UpdateRelease, cpu.UpdateRelaxed}[r.IntN(9)]
		case k < 17:
			e.Op, e.Object = []cpu.Op{cpu.FenceAcquire, cpu.FenceRelease}[r.IntN(2)], 0
		case k == 17 && variables < 5:
			e.Op, e.Location, e.Object = cpu.Part, e.Object, variables
			variables++
		case k == 18 && r.IntN(3) == 0:
			e.Op = cpu.Forget
		case k == 19 && locks && owner < 0:
			e.Op, e.Object, owner = cpu.Acquire, 0, thread
		case k == 19 && owner == thread:
			e.Op, e.Object, owner = cpu.Release, 0, -1
		default:
			continue
		}
		events = append(events, e)
	}
	return events
}

// ordered returns for all pairs of events whether the first happens before the second, by the rules of the C++
// standard: an acquire that reads a value of a release sequence comes after its head, and a fence acts for the accesses
// before or after it.
func ordered(events []cpu.Event) [][]bool {
	before := make([][]bool, len(events))
	heads := map[uint32][]int{}   // heads of the release sequence of each atomic variable at its last write
	pending := map[uint16][]int{} // heads that relaxed reads of a thread have read
	fence := map[uint16]int{}     // the last release fence of a thread
	last, released := map[uint16]int{}, -1
	for j := range events {
		e := &events[j]
		before[j] = make([]bool, len(events))
		after := func(i int) {
			before[j][i] = true
			for k := range i {
				before[j][k] = before[j][k] || before[i][k]
			}
		}
		if i, ok := last[e.Thread]; ok {
			after(i)
		}
		acquires := e.Op == cpu.AtomicRead || e.Op == cpu.AtomicUpdate || e.Op == cpu.UpdateAcquire
		reads := e.Op == cpu.ReadRelaxed || e.Op == cpu.UpdateRelease || e.Op == cpu.UpdateRelaxed
		releases := e.Op == cpu.AtomicWrite || e.Op == cpu.AtomicUpdate || e.Op == cpu.StoreRelease || e.Op == cpu.UpdateRelease
		stores := e.Op == cpu.StoreRelease || e.Op == cpu.StoreRelaxed
		updates := releases && !stores || e.Op == cpu.UpdateAcquire || e.Op == cpu.UpdateRelaxed
		if acquires {
			for _, i := range heads[e.Object] {
				after(i)
			}
		}
		if reads {
			pending[e.Thread] = append(pending[e.Thread], heads[e.Object]...)
		}
		if stores {
			heads[e.Object] = nil
		}
		if releases {
			heads[e.Object] = append(slices.Clone(heads[e.Object]), j)
		}
		if f, ok := fence[e.Thread]; ok && (stores || updates) {
			heads[e.Object] = append(slices.Clone(heads[e.Object]), f)
		}
		switch e.Op {
		case cpu.FenceAcquire:
			for _, i := range pending[e.Thread] {
				after(i)
			}
		case cpu.FenceRelease:
			fence[e.Thread] = j
		case cpu.Acquire:
			if released >= 0 {
				after(released)
			}
		case cpu.Release:
			released = j
		}
		last[e.Thread] = j
	}
	return before
}

// firstRaces returns the first racing access of each variable since the variable was forgotten. A part of a variable
// that has raced is not judged.
func firstRaces(events []cpu.Event, race func(i, j int) bool) (first []int) {
	history, raced := map[uint32][]int{}, map[uint32]bool{}
	for j := range events {
		switch e := &events[j]; {
		case e.Op == cpu.Forget:
			delete(history, e.Object)
			delete(raced, e.Object)
		case e.Op == cpu.Part:
			history[e.Object], raced[e.Object] = slices.Clone(history[e.Location]), raced[e.Location]
		case e.Op.Access():
			if !raced[e.Object] && slices.ContainsFunc(history[e.Object], func(i int) bool { return race(i, j) }) {
				raced[e.Object] = true
				first = append(first, j)
			}
			history[e.Object] = append(history[e.Object], j)
		}
	}
	return first
}

// foundFirst returns the same for the races that a detector found.
func foundFirst(events []cpu.Event, races []cpu.Race) []int {
	at := map[int]bool{}
	for _, r := range races {
		at[int(r.Event)] = true
	}
	return firstRaces(events, func(_, j int) bool { return at[j] })
}

// TestRecordedOperations compares the detectors with the definition on atomic accesses, parts, and variables that are
// forgotten.
func TestRecordedOperations(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n /= 10
	} else if testsize.Long() {
		n *= 4
	}
	racy := 0
	for seed := range n {
		locks := seed%2 == 0
		events := recorded(seed, locks)
		before := ordered(events)
		atomic := func(e *cpu.Event) bool { return e.Op == cpu.ReadAtomic || e.Op == cpu.WriteAtomic }
		want := firstRaces(events, func(i, j int) bool {
			a, b := &events[i], &events[j]
			return a.Thread != b.Thread && (a.Op.Writes() || b.Op.Writes()) && !(atomic(a) && atomic(b)) && !before[j][i]
		})
		got := judge(fasttrack.Spec, events)
		if first := foundFirst(events, got); !slices.Equal(first, want) {
			t.Fatalf("trace %d: fasttrack finds first races at %v, want %v\n%v", seed, first, want, events)
		}
		if slim := judge(slimfast.Spec, events); !slices.Equal(got, slim) {
			t.Fatalf("trace %d: fasttrack finds %v, slimfast %v\n%v", seed, got, slim, events)
		}
		weak := foundFirst(events, judge(wcp.Spec, events))
		if !locks && !slices.Equal(weak, want) {
			t.Fatalf("trace %d: wcp finds first races at %v, want %v\n%v", seed, weak, want, events)
		}
		of := map[uint32]uint32{} // the variable that a variable is a part of
		for _, e := range events {
			if e.Op == cpu.Part {
				of[e.Object] = e.Location
			}
		}
		for _, j := range want {
			var whole []uint32
			for o, ok := events[j].Object, true; ok; o, ok = of[o] {
				whole = append(whole, o)
			}
			if locks && !slices.ContainsFunc(weak, func(i int) bool { return i <= j && slices.Contains(whole, events[i].Object) }) {
				t.Fatalf("trace %d: wcp misses the race at %d\n%v", seed, j, events)
			}
		}
		if len(want) > 0 {
			racy++
		}
	}
	if racy < n/5 || racy > n*19/20 {
		t.Errorf("%d of %d traces have races: too few, or the others are", racy, n)
	}
}
