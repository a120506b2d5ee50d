package order

import (
	"maps"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestMemory compares Memory with a map by location.
func TestMemory(t *testing.T) {
	type model map[location]uint16 // bytes that are valid
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var m Memory
		want := model{}
		overwrite := func(from, end uint64, but location) {
			for l := range want {
				for i := range uint64(l.size) {
					if at := l.address + i; from <= at && at < end && l != but {
						want[l] &^= 1 << i
					}
				}
			}
			maps.DeleteFunc(want, func(_ location, valid uint16) bool { return valid == 0 })
		}
		span := []uint64{16, 48, 400, 1 << 20}[seed%4]
		for range 200 {
			size := []uint8{1, 2, 4, 4, 4, 8, 16}[rng.IntN(7)]
			at := 1<<40 + rng.Uint64N(span)/uint64(size)*uint64(size)
			l := location{address: at, size: size}
			switch rng.IntN(8) {
			case 0:
				end := at + rng.Uint64N(span)
				m.overwrite(at, end, nil)
				overwrite(at, end, location{})
			case 1:
				if rng.IntN(20) == 0 {
					m.reset()
					clear(want)
				}
			default:
				v := m.find(at, size)
				if (v != nil) != (want[l] != 0) {
					t.Fatalf("seed %d: there is a variable at %v: %v", seed, l, v != nil)
				}
				if v == nil {
					v = m.make(at, size)
				}
				v.valid = 1<<size - 1
				if m.last.mixed {
					m.overwrite(at, at+uint64(size), v)
				}
				want[l] = 1<<size - 1
				overwrite(at, at+uint64(size), l)
			}
			for l, valid := range want {
				if v := m.find(l.address, l.size); v == nil || v.valid != valid {
					t.Fatalf("seed %d: %v has %+v, not the bytes %x", seed, l, v, valid)
				}
			}
		}
		live := 0
		for _, p := range m.pieces {
			if p != nil {
				live += p.live
			}
		}
		if live != len(want) {
			t.Fatalf("seed %d: %d variables, not %d", seed, live, len(want))
		}
	}
}

// TestFenced compares what lanes of a warp had done at their fences with the same lane by lane.
func TestFenced(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var w warp
		var want [32]fenced
		for range 30 {
			lanes, v := rng.Uint32()&rng.Uint32(), &View{}
			if rng.IntN(3) == 0 {
				lanes = ^uint32(0)
			}
			wide, sc := rng.IntN(2) == 0, rng.IntN(2) == 0
			if rng.IntN(5) == 0 {
				v = nil
			}
			w.setFenced(lanes, v, wide, wide && sc)
			for i := range want {
				if lanes>>i&1 != 0 {
					want[i].note(v, wide, wide && sc)
				}
				if got := w.fencedOf(i); got.released != want[i].released || got.sc != want[i].sc {
					t.Fatalf("seed %d: lane %d is not as it is alone", seed, i)
				}
			}
			for i, f := range w.fenced {
				for _, g := range w.fenced[:i] {
					if f.lanes&g.lanes != 0 {
						t.Fatalf("seed %d: lanes stand twice", seed)
					}
				}
			}
		}
		if w.setFenced(^uint32(0), &View{}, true, true); len(w.fenced) != 1 {
			t.Fatalf("seed %d: lanes that have fenced together stand apart", seed)
		}
	}
}

// TestBlocks: blocks whose memory is used again begin as new ones, and are found among many.
func TestBlocks(t *testing.T) {
	o := New()
	l := benchLaunch(o, 1, 1000)
	fence := benchFence
	fence.Mask = 3
	for round := range uint32(3) {
		for i := range uint32(100) {
			blk, wi := l.Block((round*100+i)*8 + 5)
			if blk.Index != round*100+i || wi != 5 || blk.number != 1 || blk.alive != 256 || len(blk.Log.ops) != 0 || blk.Shared.n != 0 || blk.leftAny || blk.leftShared {
				t.Fatalf("block %d is %+v", i, blk)
			}
			for id := range blk.barriers {
				if len(blk.barriers[id]) != 0 {
					t.Fatalf("block %d has arrivals at barrier %d", i, id)
				}
			}
			for j := range blk.warps {
				w := &blk.warps[j]
				if w.same != l.first || w.each != nil || w.live != ^uint32(0) || w.used != 0 || w.patterns != nil || len(w.fenced) != 0 {
					t.Fatalf("warp %d of block %d is %+v", j, i, w)
				}
			}
			s := benchRelaxed
			s.Shared, s.Releases = true, true
			blk.Accesses(wi, ^uint32(0), true)
			blk.Perform(wi, 0, &s)
			fence.Warp, fence.Place = blk.Index*8+5, blk.Index
			l.Sync(&fence)
			l.Sync(&event.Event{Kind: event.Arrive, Warp: blk.Index*8 + 4, Mask: 1})
			if i%2 == 0 {
				l.Sync(&event.Event{Kind: event.Exit, Warp: blk.Index * 8, Mask: ^uint32(0)})
			}
		}
		for i := range uint32(100 * 8) {
			if blk, wi := l.Block(round*800 + i); blk.Index != round*100+i/8 || wi != i%8 {
				t.Fatalf("warp %d is number %d of block %d", round*800+i, wi, blk.Index)
			}
		}
		for i := range uint32(100 * 8) {
			if i%16 != 0 {
				l.Sync(&event.Event{Kind: event.Exit, Warp: round*800 + i, Mask: ^uint32(0)})
			}
		}
		if len(l.blocks) != 0 || len(o.free) != 100 {
			t.Fatalf("%d blocks run and %d have ended", len(l.blocks), len(o.free))
		}
	}
	for i := range uint32(300) {
		if s := l.LogOf(i).After(5, 1, 0); s == nil || s.Place != i {
			t.Fatalf("block %d has synchronised at %+v", i, s)
		}
	}
}
