package slimfast

import (
	"slices"
	"sync"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
)

func none(t *testing.T) func(order.Epoch, bool) {
	return func(e order.Epoch, wrote bool) { t.Errorf("a race with %d@%d", e>>12, e.Thread()) }
}

// advance ends the epoch of a thread, as a release does.
func advance(t *Thread) {
	c := slices.Clone(t.Clock)
	c[t.ID] = c[t.ID].Next()
	t.Advance(c)
}

func TestWritesOfAnEpochShare(t *testing.T) { // figure 3.6
	th := NewThread(1, none(t))
	var x, y Variable
	th.Write(&x)
	th.Write(&y)
	first := x.load()
	if first != y.load() || *first != (Metadata{Write: order.At(1)}) {
		t.Errorf("in one epoch x has %v, y %v", *first, *y.load())
	}
	advance(th)
	th.Write(&x)
	if x.load() == first || y.load() != first || x.load().Write != order.At(1).Next() || first.Write != order.At(1) {
		t.Errorf("in the next epoch x has %v, y %v", *x.load(), *y.load())
	}
}

func TestReadsOfAnEpochShare(t *testing.T) { // figure 3.10
	th := NewThread(1, none(t))
	var x, y, z, unwritten Variable
	th.Write(&x)
	th.Write(&z)
	advance(th)
	th.Write(&y)
	for _, v := range []*Variable{&x, &y, &z, &unwritten} {
		th.Read(v)
	}
	e := order.At(1)
	if x.load() != z.load() || x.load() == y.load() || *x.load() != (Metadata{Write: e, Read: e.Next()}) ||
		*y.load() != (Metadata{Write: e.Next(), Read: e.Next()}) || unwritten.load().Write != 0 {
		t.Errorf("x %v, y %v, z %v", *x.load(), *y.load(), *z.load())
	}
	if c := th.Counts; c.PairReused != 1 || c.PairAllocated != 3 {
		t.Errorf("%+v", c)
	}
	old := x.load()
	advance(th)
	th.Read(&x)
	if x.load() == old || z.load() != old || old.Read != e.Next() {
		t.Error("what S had in an earlier epoch is used, or was changed")
	}
}

func TestInflationReuses(t *testing.T) { // figure 3.9
	t0, t1 := NewThread(0, none(t)), NewThread(1, none(t))
	var x, y, z Variable
	t0.Read(&x)
	t1.Read(&y)
	t1.Read(&x)
	t0.Read(&y)
	t0.Read(&z)
	t1.Read(&z)
	want := order.Clock{order.At(0), order.At(1)}
	for _, v := range []*Variable{&x, &y, &z} {
		if m := v.load(); m.Reads == nil || !slices.Equal(m.Reads.Clock, want) {
			t.Errorf("%+v", m)
		}
	}
	if x.load() == y.load() || x.load() != z.load() {
		t.Error("x and y are of one piece, or x and z are not")
	}
	if t1.Counts.InflReused != 1 || t1.Counts.InflAllocated != 1 || t0.Counts.InflAllocated != 1 || t0.Counts.PairReused != 1 {
		t.Errorf("%+v %+v", t0.Counts, t1.Counts)
	}
}

// sharedPair returns two variables that two threads have read. The variables share their metadata.
func sharedPair(t0, t1 *Thread) (x, y *Variable) {
	x, y = new(Variable), new(Variable)
	for _, v := range []*Variable{x, y} {
		t0.Read(v)
	}
	for _, v := range []*Variable{x, y} {
		t1.Read(v)
	}
	return x, y
}

func TestNext(t *testing.T) { // figure 3.8
	t0, t1 := NewThread(0, none(t)), NewThread(1, none(t))
	x, y := sharedPair(t0, t1)
	top := x.load()
	if y.load() != top {
		t.Fatal("x and y do not begin with one metadata")
	}
	advance(t0)
	t0.Read(x)
	if x.load() == top || y.load() != top || *top.Reads.entry(0) != x.load() || *top.Reads.entry(1) != nil {
		t.Fatal("x has the metadata of y, or Next does not lead to it")
	}
	t0.Read(y)
	if y.load() != x.load() || t0.Counts.SharedReused != 1 || t0.Counts.SharedAlloc != 1 {
		t.Errorf("y does not take the metadata of x: %+v", t0.Counts)
	}
	if !slices.Equal(top.Reads.Clock, order.Clock{order.At(0), order.At(1)}) {
		t.Errorf("the metadata changed: %v", top.Reads.Clock)
	}
}

// TestStaleNext checks that an entry of Next from an earlier epoch is replaced. If its metadata were changed in place,
// x would seem to have been read later than it was, and the write below would race.
func TestStaleNext(t *testing.T) {
	t0, t1 := NewThread(0, none(t)), NewThread(1, none(t))
	x, y := sharedPair(t0, t1)
	top := x.load()
	advance(t0)
	t0.Read(x)
	ofX := x.load()
	seen := slices.Clone(t0.Clock) // the clock that a third thread has of the first
	advance(t0)
	t0.Read(y)
	if x.load() != ofX || y.load() == ofX || *top.Reads.entry(0) != y.load() {
		t.Error("the stale entry is used for y, or was not replaced")
	}
	t2 := NewThread(2, none(t))
	t2.Clock.Join(seen)
	t2.Clock.Join(t1.Clock)
	t2.Write(x)
	races := 0
	t2.found = func(order.Epoch, bool) { races++ }
	t2.Write(y)
	if races != 1 {
		t.Errorf("%d races of y, whose read is later", races)
	}
}

func TestNextOfManyThreads(t *testing.T) {
	var r Reads
	for _, id := range []uint16{3, 4000, 11, 8, 3} {
		m := &Metadata{Write: order.At(id)}
		*r.entry(id) = m
		if *r.entry(id) != m {
			t.Errorf("thread %d has another entry", id)
		}
	}
	if *r.entry(0) != nil || *r.entry(10) != nil || (*r.entry(11)).Write.Thread() != 11 {
		t.Error("an entry is another thread's")
	}
}

func TestFullSetForgetsTheOldest(t *testing.T) {
	var s set
	for i := range setSize + 1 {
		s.put(order.At(uint16(i)), 0, &Metadata{Write: order.At(uint16(i))})
	}
	if s.get(order.At(0), 0) != nil || s.get(order.At(1), 0) == nil || s.get(order.At(setSize), 0) == nil {
		t.Error("not the oldest was forgotten")
	}
}

// TestThreadsJudgeAtOnce checks that threads that read the same variables in parallel leave metadata with all their
// reads.
func TestThreadsJudgeAtOnce(t *testing.T) {
	const threads, variables = 12, 200
	vars := make([]Variable, variables)
	all := make([]*Thread, threads)
	var wg sync.WaitGroup
	for id := range all {
		th := NewThread(uint16(id), func(e order.Epoch, wrote bool) { t.Errorf("a race with %v", e) })
		all[id] = th
		wg.Go(func() {
			for range 30 {
				advance(th)
				for i := range vars {
					th.Read(&vars[i])
				}
			}
		})
	}
	wg.Wait()
	for i := range vars {
		m := vars[i].load()
		for id, th := range all {
			if m.Reads == nil || m.Reads.Clock.Of(uint16(id)) != th.Clock[id] {
				t.Fatalf("variable %d has %+v, thread %d is at %d", i, m.Reads, id, th.Clock[id])
			}
		}
	}
	shared := uint64(0)
	for _, th := range all {
		shared += th.Counts.SharedReused
	}
	if shared == 0 {
		t.Error("no metadata was shared")
	}
}

// TestMemoryIsShared checks that variables with the same history of two readers share their metadata.
func TestMemoryIsShared(t *testing.T) {
	d := New(func(cpu.Race) {})
	var events []cpu.Event
	for id := range uint16(2) {
		for x := range uint32(1000) {
			events = append(events, cpu.Event{Op: cpu.Read, Thread: id, Object: x})
		}
	}
	d.Events(events)
	if n := d.MemoryBytes() - uint64(cap(d.variables))*8; n > 3000 {
		t.Errorf("%d bytes of metadata for two histories", n)
	}
	if c := d.Counts(); c.InflAllocated != 1 || c.InflReused != 999 || c.PairAllocated != 1 || c.MostS != 1 || c.MostQ != 1 || c.Accesses != 2000 {
		t.Errorf("%+v", c)
	}
}
