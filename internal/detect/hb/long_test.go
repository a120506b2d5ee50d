package hb

import (
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestManyLaunches runs a kernel with a release a few thousand times and checks that what is kept stays bounded.
func TestManyLaunches(t *testing.T) {
	d := New(detect.Config{})
	s := &stream{}
	run := func(release bool) {
		s.Reset()
		id := s.launch.ID + 1
		s.launch = event.Launch{ID: id, Agent: 1, Kernel: "k", Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}}
		s.Launches = append(s.Launches, s.launch)
		s.add(event.Event{Kind: event.KernelBegin})
		for w := uint32(0); w < 4; w++ {
			s.access(event.Store, event.Global, w, 1, heap+uint64(w)*128, 4)
			if release {
				s.add(event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Warp: w, Mask: 1, Place: 2})
				s.memory(event.Event{Kind: event.Atomic, Space: event.Global, Warp: w, Place: 3, Mask: 1, Addr: heap + 4096, Size: 4})
			}
		}
		s.end()
		d.Events(&s.Batch)
	}
	for i := 0; i < 3000; i++ {
		run(i%2 == 0)
	}
	if n := len(d.Findings()); n != 0 {
		t.Errorf("%d findings, want none: %v", n, d.Findings())
	}
	if n := len(d.launches); n > manyWarm+1 {
		t.Errorf("%d launches kept", n)
	}
	if n := len(d.classes); n > 1000 {
		t.Errorf("%d classes kept", n)
	}
	entries := 0
	for i := range uint64(pageLines) {
		d.expand(d.mem.find(heap), i)
	}
	for _, l := range d.mem.find(heap).lines {
		if l == nil {
			continue
		}
		for i := range l.cells {
			d.mem.each(&l.cells[i], func(*entry) { entries++ })
		}
	}
	if cold := len(d.mem.find(heap).cold); entries > 8*32*3 || cold > 8 {
		t.Errorf("%d entries and %d cold accesses in a page, want a few for each word", entries, cold)
	}
}

// TestTree checks sets and clocks of a large grid, where the trees are deep: readers by the thousand, then a writer whom
// the reader in the middle does not precede.
func TestTree(t *testing.T) {
	for _, late := range []uint32{0, 31, 32, 1024, 4999} {
		s := &stream{}
		s.begin(5000, 32)
		flag := func(k event.Kind, w uint32, o event.Order) {
			s.Events = append(s.Events, event.Event{Kind: k, Launch: 1, Space: event.Global, Warp: w, Place: 2, Mask: 1, Addr: heap + 4096, Size: 4,
				Order: o, Scope: event.ScopeGPU, Flags: event.FlagRead | event.FlagWrite})
		}
		for w := uint32(0); w < 5000; w++ {
			s.add(event.Event{Kind: event.Load, Space: event.Global, Warp: w, Place: 1, Mask: 1, Addr: heap, Size: 4, Flags: event.FlagRead})
			if w != late {
				flag(event.Atomic, w, event.Release)
			}
		}
		s.add(event.Event{Kind: event.Load, Order: event.Acquire, Scope: event.ScopeGPU, Space: event.Global, Warp: 777, Place: 3, Mask: 1, Addr: heap + 4096, Size: 4, Flags: event.FlagRead})
		s.add(event.Event{Kind: event.Store, Space: event.Global, Warp: 777, Place: 4, Mask: 1, Addr: heap, Size: 4, Flags: event.FlagWrite})
		d := New(detect.Config{})
		d.Events(&s.Batch)
		fs := d.Findings()
		if len(fs) != 1 || fs[0].Accesses[0].Warp != late || fs[0].Accesses[1].Warp != 777 || fs[0].Count != 1 {
			t.Errorf("late reader %d: %+v", late, fs)
		}
	}
}
