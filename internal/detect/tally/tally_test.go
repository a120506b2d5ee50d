package tally

import (
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

func TestOneFindingPerPairOfPlaces(t *testing.T) {
	launch := event.Launch{ID: 1, Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}}
	access := func(place uint32, op detect.Op, addr uint64) detect.Access {
		return detect.Access{Op: op, Place: place, Space: event.Global, Address: addr, Size: 4, Launch: launch}
	}
	c := New("example")
	add := func(cat detect.Category, p, q uint32, addr uint64, predicted bool) {
		c.Add(&Race{Facts: detect.Facts{Category: cat, Earlier: access(p, detect.Write, addr), Later: access(q, detect.Read, addr+2)},
			Predicted: predicted, Note: "inter-block"})
	}
	add(detect.CrossBlock, 7, 3, 0x100, true)
	add(detect.CrossBlock, 3, 7, 0x100, false)
	add(detect.SameBlock, 3, 7, 0x200, false)
	add(detect.CrossBlock, 2, 9, 0x100, true)
	fs := c.Findings()
	if len(fs) != 2 {
		t.Fatalf("%d findings, want 2", len(fs))
	}
	if f := fs[0]; f.Accesses[0].Place != 2 || !f.Predicted || f.Count != 1 || f.Addresses != 2 {
		t.Errorf("the first is %+v", f)
	}
	if !fs[0].NoSync {
		t.Error("accesses of which no synchronisation is known are as if there was none")
	}
	f := fs[1]
	if f.Predicted || f.Kind != detect.Unordered || f.Count != 3 || f.Addresses != 4 || f.Detector != "example" {
		t.Errorf("the second is %+v", f)
	}
	if !strings.HasSuffix(f.Message, "(example: inter-block)") {
		t.Errorf("message %q", f.Message)
	}
}

// TestBytes counts bytes as a set of them does.
func TestBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	type byteOf struct {
		block uint32
		at    uint64
	}
	for range 200 {
		c, want := New("example"), [2]map[byteOf]bool{{}, {}}
		for range 60 {
			at, size, space, warp, place := rng.Uint64N(300), 1<<rng.IntN(6), []event.Space{event.Global, event.Shared}[rng.IntN(2)], rng.Uint32N(4), rng.IntN(2)
			a := detect.Access{Op: detect.Write, Place: 1, Space: space, Address: at, Size: size, Warp: warp,
				Launch: event.Launch{ID: 1, Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}}}
			b := a
			b.Address, b.Size, b.Place = at+rng.Uint64N(5), 1<<rng.IntN(6), 2+uint32(place)
			c.Add(&Race{Facts: detect.Facts{Category: detect.CrossBlock, Earlier: a, Later: b}})
			for n := b.Address; n < min(at+uint64(size), b.Address+uint64(b.Size)); n++ {
				k := byteOf{0, n}
				if space == event.Shared {
					k.block = 1 + warp/2
				}
				want[place][k] = true
			}
		}
		for _, f := range c.Findings() {
			if w := len(want[f.Accesses[1].Place-2]); f.Addresses != w {
				t.Fatalf("%d bytes concerned, want %d", f.Addresses, w)
			}
		}
	}
}
