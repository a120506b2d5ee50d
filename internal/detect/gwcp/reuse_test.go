package gwcp

import (
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestBlocksOneByOne checks that blocks that reuse the memory of ended blocks know nothing of what these did in their
// shared memory.
func TestBlocksOneByOne(t *testing.T) {
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: 3, Y: 1, Z: 1}, Block: event.Dim3{X: 96, Y: 1, Z: 1}}}}
	add := func(e event.Event) {
		e.Launch, e.Place = 1, uint32(e.Kind)
		b.Events = append(b.Events, e)
	}
	add(event.Event{Kind: event.KernelBegin})
	for blk := range uint32(3) {
		shared := func(kind event.Kind, warp uint32, lane, word uint) {
			add(event.Event{Kind: kind, Warp: 3*blk + warp, Mask: 1 << lane, Space: event.Shared, Size: 4, Addr: uint64(4 * word)})
		}
		for w := range uint32(3) { // every second block reads words that it has not written and the block before has
			for lane := range uint(8) {
				kind := []event.Kind{event.Load, event.Store}[blk%2]
				if word := lane; kind == event.Load || w == 0 {
					shared(kind, w, lane, word)
				}
			}
		}
		for w := range uint32(3) {
			add(event.Event{Kind: event.Arrive, Warp: 3*blk + w, Mask: ^uint32(0), Flags: event.FlagWait})
		}
		add(event.Event{Kind: event.BarrierDone, Warp: 3 * blk, Mask: 1})
		for word := uint(0); word < 8; word += 2 { // the reads of the other words remain
			shared(event.Store, uint32(word%3), word+1, word)
		}
		for w := range uint32(3) {
			add(event.Event{Kind: event.Exit, Warp: 3*blk + w, Mask: ^uint32(0)})
		}
	}
	d := New(detect.Config{})
	d.Events(b)
	if f := d.Findings(); len(f) > 0 {
		t.Errorf("found %s", f[0].Message)
	}
	if len(d.spare) == 0 {
		t.Error("nothing was there to be used again")
	}
}

// TestClassOf checks that a cached class of an instruction is the class of the current event.
func TestClassOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	d := New(detect.Config{})
	for range 20000 {
		e := event.Event{Kind: event.Load + event.Kind(rng.IntN(3)), Place: uint32(1 + rng.IntN(2)*len(d.recent)), Order: event.Order(rng.IntN(4)),
			Scope: event.Scope(rng.IntN(5)), Space: event.Global + event.Space(rng.IntN(2)), Size: 8, Flags: event.Flags(rng.IntN(4)) | event.FlagVector*event.Flags(rng.IntN(2)),
			Aux: uint32(4 * rng.IntN(2))}
		locked := rng.IntN(2) == 0
		fresh := New(detect.Config{})
		if got, want := d.classes[d.classOf(&e, locked)], fresh.classes[fresh.classOf(&e, locked)]; got != want {
			t.Fatalf("%+v is of class %+v, want %+v", e, got, want)
		}
	}
}
