package gwcp

import (
	"math/rand/v2"
	"testing"
)

// TestNewest compares the table with a map.
func TestNewest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 13))
	var table newest
	for round := range 40 {
		want := map[uint32]int{}
		table.clear()
		for i := range rng.IntN(600) {
			warp := []uint32{uint32(rng.IntN(400)), 32 * uint32(rng.IntN(400)), rng.Uint32() / 2}[round%3]
			table.set(warp, i)
			want[warp] = i
			for _, w := range []uint32{warp, warp + 1, uint32(rng.IntN(400))} {
				at, ok := table.of(w)
				if was, there := want[w]; ok != there || ok && at != was {
					t.Fatalf("round %d: warp %d has %d, %v, want %d, %v", round, w, at, ok, was, there)
				}
			}
		}
		for w, at := range want {
			if got, ok := table.of(w); !ok || got != at {
				t.Fatalf("round %d: warp %d has %d, %v, want %d", round, w, got, ok, at)
			}
		}
		if 2*len(want) > len(table.slots) {
			t.Fatalf("%d warps in %d slots", len(want), len(table.slots))
		}
	}
}

// TestAccessesOfSection compares the accesses recorded for a section, with few granules and with many, with a map.
func TestAccessesOfSection(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 13))
	for n := 1; n < 40; n++ {
		s := section{index: map[granule]int{}}
		want := map[granule]access{}
		for range 4 * n {
			at := granule{uint64(rng.IntN(n)), uint32(rng.IntN(2))}
			bytes, write := uint8(1+rng.IntN(15)), rng.IntN(2) == 0
			s.add(at, bytes, write)
			a := want[at]
			if a.at = at; write {
				a.write |= bytes
			} else {
				a.read |= bytes
			}
			want[at] = a
		}
		if len(s.accesses) != len(want) {
			t.Fatalf("%d granules, want %d", len(s.accesses), len(want))
		}
		for _, a := range s.accesses {
			if a != want[a.at] {
				t.Fatalf("%+v, want %+v", a, want[a.at])
			}
		}
	}
}
