package gwcp

import (
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// gather makes a launch of blocks of 1024 threads that each write a word, meet, and read a neighbour's word. With
// locks, one thread of each block then adds to a sum. The launch has not ended.
func gather(blocks uint32, locks bool) *event.Batch {
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Synchronises: true, Swaps: true, Kernel: "k", Grid: event.Dim3{X: blocks, Y: 1, Z: 1}, Block: event.Dim3{X: 1024, Y: 1, Z: 1}}}}
	add := func(e event.Event) {
		e.Launch, e.Place = 1, uint32(e.Kind)+1
		b.Events = append(b.Events, e)
	}
	add(event.Event{Kind: event.KernelBegin})
	for blk := uint32(0); blk < blocks; blk++ {
		access := func(kind event.Kind, shift uint64) {
			for w := 32 * blk; w < 32*blk+32; w++ {
				add(event.Event{Kind: kind, Warp: w, Mask: ^uint32(0), Space: event.Global, Size: 4, Stride: 4, Addr: 0x10000 + 128*uint64(w^uint32(shift))})
			}
		}
		access(event.Store, 0)
		for w := 32 * blk; w < 32*blk+32; w++ {
			add(event.Event{Kind: event.Arrive, Warp: w, Mask: ^uint32(0), Flags: event.FlagWait})
		}
		add(event.Event{Kind: event.BarrierDone, Warp: 32 * blk, Mask: 1})
		access(event.Load, 1)
		if locks {
			rmw := event.Event{Kind: event.Atomic, Warp: 32 * blk, Mask: 1, Space: event.Global, Size: 4, Addr: 64, Order: event.Relaxed, Scope: event.ScopeGPU, Flags: event.FlagRead | event.FlagWrite}
			fence := event.Event{Kind: event.Fence, Warp: 32 * blk, Mask: 1, Order: event.SC, Scope: event.ScopeGPU}
			sum := event.Event{Kind: event.Store, Warp: 32 * blk, Mask: 1, Space: event.Global, Size: 4, Addr: 128}
			rmw.RMW = event.CompareAndSwap
			add(rmw)
			add(fence)
			add(sum)
			add(fence)
			rmw.RMW = event.Exchange
			add(rmw)
		}
	}
	return b
}

// TestMemory bounds the memory for a large launch, and checks that compression saves some.
func TestMemory(t *testing.T) {
	run := func(b *event.Batch, compress string) uint64 {
		d := New(detect.Config{Options: map[string]string{"compress": compress}})
		d.Events(b)
		if f := d.Findings(); len(f) > 0 {
			t.Fatalf("found %s", f[0].Message)
		}
		return d.MemoryBytes()
	}
	large := gather(1024, true) // 1 M threads, all blocks at once
	got := run(large, "on")
	t.Logf("1 M threads: %d bytes", got)
	if got < 1<<20 || got > 48<<20 {
		t.Errorf("1 M threads over 4 MiB of data take %d bytes of metadata, want 1 to 48 MiB", got)
	}
	small := gather(2, true)
	on, off := run(small, "on"), run(small, "off")
	t.Logf("2048 threads: %d bytes, without compression %d", on, off)
	if off < 20*on {
		t.Errorf("2048 threads take %d bytes, and %d without compression", on, off)
	}
}

// TestMemoryOf checks that the memory that an operation adds to the metadata is counted: at least what it must take,
// and not many times that.
func TestMemoryOf(t *testing.T) {
	for _, c := range []struct {
		name, before, ops string
		least             uint64
	}{
		{"a fence keeps a snapshot", "0.0.0 post f", "0.0.0 fence", size(snapshot{})},
		{"one of the block too", "0.0.0 post f", "0.0.0 fence cta", size(snapshot{})},
		{"a release keeps its variable", "0.0.0 wr a", "0.0.0 post f", size(location{}) + size(locKey{})},
		{"a strong read keeps what it observed", "0.0.0 wr a\n0.0.0 fence\n0.0.0 add f", "1.0.0 vrd f", size(pending{})},
		{"a critical section that lasts", "0.0.0 wr a", "0.0.0 acq m", size(section{}) + size(lockState{})},
		{"an access in one", "0.0.0 acq m\n0.0.0 wr b", "0.0.0 wr a\n0.0.0 wr c\n0.0.0 wr d\n0.0.0 wr e", 3 * size(access{})},
		{"a section that has ended", "0.0.0 acq m\n0.0.0 rel m", "0.0.0 acq m\n0.0.0 wr a\n0.0.0 rel m", size(entry{}) + size(touched{}) + size(granule{})},
		{"a lock of the block", "0.0.0 acq m\n0.0.0 rel m", "0.0.0 acq m cta\n0.0.0 rel m cta", size(instance{}) + size(entry{})},
		{"a lane that goes its own way", "0.0.0 wr a", "0.0.1 post f", size(group{})},
		{"several reads of a word", "0.0.0 rd a", "0.1.0 rd a\n1.0.0 rd a\n1.1.0 rd a\n2.0.0 rd a", size(more{}) + 3*size(span{})},
	} {
		memory := func(text string) uint64 {
			d := New(detect.Config{})
			d.Events(stream(t, text))
			return d.MemoryBytes()
		}
		if was, is := memory(c.before), memory(c.before+"\n"+c.ops); is < was+c.least || is > was+8*c.least+4096 {
			t.Errorf("%s: %d bytes, then %d, want %d more or a little above", c.name, was, is, c.least)
		}
	}
}
