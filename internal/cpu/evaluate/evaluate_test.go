package evaluate

import (
	"math/rand/v2"
	"sync"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/cpu/order"
	"fencepost.dev/fencepost/internal/cpu/slimfast"
)

// random returns a random trace of four threads. The first begins and joins the others. An access holds the lock of its
// variable, except for racy per cent of the accesses.
func random(r *rand.Rand, racy int) (events []cpu.Event) {
	const threads, variables, locks = 4, 12, 3
	emit := func(t int, op cpu.Op, object int) {
		events = append(events, cpu.Event{Thread: uint16(t), Op: op, Object: uint32(object)})
	}
	emit(0, cpu.Write, 0)
	for t := 1; t < threads; t++ {
		emit(0, cpu.Fork, t)
	}
	for range 60 {
		t, v := r.IntN(threads), r.IntN(variables)
		held := r.IntN(100) >= racy
		if held {
			emit(t, cpu.Acquire, v%locks)
		}
		for range r.IntN(4) {
			emit(t, []cpu.Op{cpu.Read, cpu.Write}[r.IntN(2)], v)
		}
		if held {
			emit(t, cpu.Release, v%locks)
		}
	}
	for t := 1; t < threads; t++ {
		emit(0, cpu.Join, t)
	}
	for v := range variables {
		emit(0, cpu.Read, v)
	}
	return events
}

// TestObjects checks that objects finds the same races as package fasttrack, and that it has no more distinct metadata
// than metadata.
func TestObjects(t *testing.T) {
	found := 0
	for seed := range uint64(2000) {
		events := random(rand.New(rand.NewPCG(seed, 1)), int(seed%3)*10)
		want := 0
		fasttrack.Spec.New(func(cpu.Race) { want++ }).Events(events)
		d := &objects{distinct: map[[2]order.Epoch]bool{}, clocks: map[string]bool{}}
		d.Events(events)
		if d.races != want {
			t.Fatalf("seed %d: %d races, want %d", seed, d.races, want)
		}
		if n := uint64(len(d.distinct) + len(d.clocks)); n == 0 || n > d.values {
			t.Fatalf("seed %d: %d distinct metadata of %d", seed, n, d.values)
		}
		found += want
	}
	if found == 0 {
		t.Error("no races")
	}
}

// TestReplay checks that threads judged in parallel find no race in a trace without races, and that each access is
// judged.
func TestReplay(t *testing.T) {
	for seed := range uint64(200) {
		events := random(rand.New(rand.NewPCG(seed, 2)), 0)
		threads, n := segments(events)
		accesses := 0
		for _, thread := range threads {
			for _, s := range thread {
				accesses += len(s.accesses)
			}
		}
		for i := range events {
			if events[i].Op.Access() {
				accesses--
			}
		}
		if accesses != 0 {
			t.Fatalf("seed %d: %d accesses too many", seed, accesses)
		}
		variables := make([]slimfast.Variable, n)
		var mu sync.Mutex
		races, judged := 0, uint64(0)
		var all []*slimfast.Thread
		replay(threads, func(id int) judge {
			mu.Lock()
			defer mu.Unlock()
			thread := slimfast.NewThread(uint16(id), func(order.Epoch, bool) {
				mu.Lock()
				races++
				mu.Unlock()
			})
			all = append(all, thread)
			return slim{thread, variables}
		})
		for _, thread := range all {
			judged += thread.Counts.Accesses
		}
		if races != 0 || judged == 0 {
			t.Fatalf("seed %d: %d races in %d accesses", seed, races, judged)
		}
		objects := make([]*variable, n)
		for i := range objects {
			objects[i] = &variable{}
		}
		replay(threads, func(id int) judge { return &locked{id: uint16(id), variables: objects} })
		for i, v := range objects {
			if v.write == 0 && v.read == 0 && v.reads == nil && touched(events, i) {
				t.Fatalf("seed %d: variable %d has no metadata", seed, i)
			}
		}
	}
}

func touched(events []cpu.Event, variable int) bool {
	for i := range events {
		if events[i].Op.Access() && int(events[i].Object) == variable {
			return true
		}
	}
	return false
}
