package gwcp

import (
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/event"
)

// claims makes a launch of blocks of 256 threads. One after the other, each thread claims one of a number of words by a
// compare-and-swap and a fence, writes data that belongs to the word, and gives the word back by a fence and an
// exchange. The result is many small critical sections of a few locks, each lock used by threads of all blocks. Without
// back the words are kept, and each thread writes data of its own.
func claims(blocks uint32, words uint64, back bool) *event.Batch {
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Synchronises: true, Swaps: true, Kernel: "k", Grid: event.Dim3{X: blocks, Y: 1, Z: 1}, Block: event.Dim3{X: 256, Y: 1, Z: 1}}}}
	add := func(e event.Event) {
		e.Launch = 1
		b.Events = append(b.Events, e)
	}
	add(event.Event{Kind: event.KernelBegin})
	for n := uint64(0); n < 256*uint64(blocks); n++ {
		own := event.Event{Warp: uint32(n / 32), Mask: 1 << (n % 32), Space: event.Global, Size: 4}
		rmw, data := own, own
		rmw.Kind, rmw.Place, rmw.Addr, rmw.Order, rmw.Scope = event.Atomic, 1, 0x1000000+4*(7919*n%words), event.Relaxed, event.ScopeGPU
		rmw.Flags, rmw.RMW = event.FlagRead|event.FlagWrite, event.CompareAndSwap
		fence := event.Event{Kind: event.Fence, Place: 2, Warp: own.Warp, Mask: own.Mask, Order: event.SC, Scope: event.ScopeGPU}
		data.Kind, data.Place, data.Addr, data.Flags = event.Store, 3, rmw.Addr+0x1000000, event.FlagWrite
		if !back {
			data.Addr = 0x3000000 + 4*n
		}
		add(rmw)
		add(fence)
		add(data)
		if back {
			fence.Place, rmw.Place, rmw.RMW = 4, 5, event.Exchange
			add(fence)
			add(rmw)
		}
		if n%32 == 31 {
			add(event.Event{Kind: event.Exit, Place: 6, Warp: own.Warp, Mask: ^uint32(0)})
		}
	}
	add(event.Event{Kind: event.KernelEnd})
	return b
}

// BenchmarkClaims compares the cost of 262,144 critical sections with the cost for hb.
func BenchmarkClaims(b *testing.B) {
	for _, words := range []uint64{1, 16, 1 << 20} {
		for _, back := range []bool{true, false} {
			batch := claims(1024, words, back)
			for _, s := range []detect.Spec{hb.Spec, Spec} {
				b.Run(fmt.Sprintf("%s/words=%d/back=%v", s.Name, words, back), func(b *testing.B) {
					for b.Loop() {
						s.New(detect.Config{}).Events(batch)
					}
				})
			}
		}
	}
}

// TestClaims checks that the cost of a section does not grow with the number of earlier sections. It once did: the
// clocks of a lock's sections know nearly the same, but shared no parts, so each section compared and copied all of
// them.
func TestClaims(t *testing.T) {
	each := func(blocks uint32) float64 {
		batch := claims(blocks, 16, true)
		made := testing.AllocsPerRun(1, func() {
			d := New(detect.Config{})
			d.Events(batch)
			if f := d.Findings(); len(f) > 0 {
				t.Fatalf("found %s", f[0].Message)
			}
		})
		return made / float64(256*blocks)
	}
	small, large := each(16), each(64)
	t.Logf("allocations a section: %.1f of 4096, %.1f of 16384", small, large)
	if large > 1.5*small {
		t.Errorf("a section takes %.1f allocations when there are 4096, and %.1f when there are 16384", small, large)
	}
}
