package wcp

import (
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
)

// Locks and variables of the traces below.
const (
	l, m, n, k = 0, 1, 2, 3
	x, y, z    = 0, 1, 2
)

func on(thread uint16, op cpu.Op, object uint32) cpu.Event {
	return cpu.Event{Thread: thread, Op: op, Object: object}
}

func races(events ...cpu.Event) (found []cpu.Race) {
	newDetector(func(r cpu.Race) { found = append(found, r) }).Events(events)
	return found
}

// TestOwnSectionsAreNoHistory checks that rule (b) needs two threads. The acquire of thread 1's first section of l is
// ordered before its second section, but the release is not. If rule (b) used the thread's own section, what thread 3
// released to it inside would seem to weak-causally-precede the last write.
func TestOwnSectionsAreNoHistory(t *testing.T) {
	got := races(
		on(3, cpu.Write, z), on(3, cpu.Acquire, k), on(3, cpu.Release, k),
		on(1, cpu.Acquire, l), on(1, cpu.Acquire, m), on(1, cpu.Write, x), on(1, cpu.Release, m),
		on(1, cpu.Acquire, k), on(1, cpu.Release, k), on(1, cpu.Release, l),
		on(2, cpu.Acquire, m), on(2, cpu.Read, x), on(2, cpu.Acquire, n), on(2, cpu.Write, y), on(2, cpu.Release, n), on(2, cpu.Release, m),
		on(1, cpu.Acquire, l), on(1, cpu.Acquire, n), on(1, cpu.Read, y), on(1, cpu.Release, n), on(1, cpu.Release, l),
		on(1, cpu.Write, z))
	if len(got) != 1 || got[0].Variable != z || !got[0].Predicted || got[0].Earlier != 3 {
		t.Errorf("%+v", got)
	}
}

// TestReleaseAlone checks that a trace may begin inside a section.
func TestReleaseAlone(t *testing.T) {
	got := races(on(0, cpu.Write, x), on(0, cpu.Release, l), on(1, cpu.Acquire, l), on(1, cpu.Write, x), on(1, cpu.Release, l), on(1, cpu.Release, l))
	if len(got) != 1 || !got[0].Predicted {
		t.Errorf("%+v", got)
	}
}

// TestForgets checks that sections are removed when all threads have passed them, and not before.
func TestForgets(t *testing.T) {
	d := newDetector(func(r cpu.Race) { t.Errorf("%+v", r) })
	var events []cpu.Event
	for i := range 4000 {
		id := uint16(i % 2)
		events = append(events, on(id, cpu.Acquire, l), on(id, cpu.Read, x), on(id, cpu.Write, x), on(id, cpu.Release, l))
	}
	d.Events(events)
	if got := len(d.locks[l].sections); got > 200 {
		t.Errorf("%d sections of 4000 are kept, all of which are ordered", got)
	}
	kept := d.MemoryBytes()
	// A thread that has not taken the lock may still need the sections.
	d.Events([]cpu.Event{on(0, cpu.Fork, 2)})
	d.Events(events)
	if got := len(d.locks[l].sections); got < 4000 || d.MemoryBytes() < kept+4000*40 {
		t.Errorf("%d sections are kept", got)
	}
}

// TestAtomicAccessesInSections checks that rule (a) applies to atomic accesses. Two sections of one lock do not race.
func TestAtomicAccessesInSections(t *testing.T) {
	for _, ops := range [][2]cpu.Op{{cpu.Write, cpu.WriteAtomic}, {cpu.WriteAtomic, cpu.Write}, {cpu.ReadAtomic, cpu.Write}, {cpu.Write, cpu.ReadAtomic}} {
		got := races(on(0, cpu.Acquire, l), on(0, ops[0], x), on(0, cpu.Release, l), on(1, cpu.Acquire, l), on(1, ops[1], x), on(1, cpu.Release, l))
		if len(got) != 0 {
			t.Errorf("%v: %+v", ops, got)
		}
	}
}
