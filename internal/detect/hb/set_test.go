package hb

import (
	"maps"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// members gives the epochs of the lanes of a set by walking through it.
func members(s *set, depth int) map[[2]uint32]uint32 {
	of := map[[2]uint32]uint32{}
	s.walk(depth, 0, nil, func(warp uint32, g group) bool {
		for lane := range uint32(32) {
			if g.lanes>>lane&1 != 0 {
				of[[2]uint32{warp, lane}] = g.clock
			}
		}
		return true
	})
	return of
}

// TestSets compares sets with maps from lanes to their last epochs, and asks for earlier ones again: without an owner, a set is not
// changed by what is added to it.
func TestSets(t *testing.T) {
	for _, warps := range []int{3, 32, 33, 1024, 1025, 40000} {
		depth := setDepth(uint64(warps))
		for seed := range uint64(6) {
			pick := rand.New(rand.NewPCG(seed, 19)).IntN
			near := []int{pick(warps), pick(warps), pick(warps), 0, 31 % warps, 32 % warps, warps - 1}
			owner := seed % 2
			var s *set
			want := map[[2]uint32]uint32{}
			var sets []*set
			var wants []map[[2]uint32]uint32
			for clock := uint32(1); clock < 40; clock++ {
				warp := uint32(near[pick(len(near))])
				lanes := []uint32{1, 2, 3, 0x80000000, ^uint32(0)}[pick(5)]
				g := group{lanes, clock / 2, ^uint32(0)}
				holds, all := true, true
				for lane := range uint32(32) {
					at := [2]uint32{warp, lane}
					if c, ok := want[at]; lanes>>lane&1 != 0 && (!ok || c != g.clock) {
						holds = false
					} else if lanes>>lane&1 == 0 && ok && c != g.clock {
						all = false // the warp has several groups
					}
				}
				if s != nil && s.holds(depth, warp, g) != (holds && all) {
					t.Fatalf("%d warps: warp %d holds %+v: %t", warps, warp, g, !holds)
				}
				s = s.add(depth, warp, g, owner)
				for lane := range uint32(32) {
					if lanes>>lane&1 != 0 {
						want[[2]uint32{warp, lane}] = g.clock
					}
				}
				if got := members(s, depth); !maps.Equal(got, want) {
					t.Fatalf("%d warps, owner %d: after %+v of warp %d\n%v, want\n%v", warps, owner, g, warp, got, want)
				}
				for _, w := range near {
					for _, lane := range []int{0, 1, 2, 31} {
						if _, ok := want[[2]uint32{uint32(w), uint32(lane)}]; s.has(depth, uint32(w), lane) != ok {
							t.Fatalf("%d warps: has lane %d of warp %d: %t", warps, lane, w, !ok)
						}
					}
				}
				if s.max != g.clock {
					t.Fatalf("the largest epoch of %d is %d", g.clock, s.max)
				}
				if owner == 0 {
					sets, wants = append(sets, s), append(wants, maps.Clone(want))
				}
			}
			for i, s := range sets {
				if got := members(s, depth); !maps.Equal(got, wants[i]) {
					t.Fatalf("%d warps: set %d was changed by later ones:\n%v, want\n%v", warps, i, got, wants[i])
				}
			}
		}
	}
}

// TestAlsoBy adds warps to a pack of loads: as long as they lie at equal distances, 32 at most from the first to the last.
func TestAlsoBy(t *testing.T) {
	full := group{^uint32(0), 7, ^uint32(0)}
	for seed := range uint64(400) {
		pick := rand.New(rand.NewPCG(seed, 20)).IntN
		step := 1 + pick(9)
		first := uint32(1000 + pick(5))
		x := pack{warp: first, lanes: full.lanes, clock: full.clock, exec: full.exec}
		want := map[uint32]bool{first: true}
		for range 12 {
			warp := first + uint32(pick(66)*step) - uint32(33*step)
			if pick(8) == 0 {
				warp++
			}
			low, high, apart := warp, warp, uint32(0) // apart: what divides all distances, those from one warp to all others
			for w := range want {
				low, high = min(low, w), max(high, w)
				for a, b := apart, max(w, warp)-min(w, warp); ; a, b = b, a%b {
					if b == 0 {
						apart = a
						break
					}
				}
			}
			fits := apart == 0 || (high-low)/apart < 32
			if got := x.alsoBy(warp, full, false); got != fits {
				t.Fatalf("seed %d: %d beside %v: %t, want %t", seed, warp, want, got, fits)
			}
			if fits {
				want[warp] = true
			}
			got := map[uint32]bool{x.warp: true}
			if x.head&refKind == refWarps {
				clear(got)
				for n := range uint32(32) {
					if x.ref>>n&1 != 0 {
						got[x.warp+n*x.far] = true
					}
				}
			}
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d: after %d the pack is of %v, want %v", seed, warp, got, want)
			}
			if !fits {
				break
			}
		}
	}
	x := pack{warp: 3, lanes: full.lanes, clock: full.clock, exec: full.exec}
	for _, g := range []group{{full.lanes, 8, full.exec}, {full.lanes, 7, 1}} {
		if x.alsoBy(4, g, false) {
			t.Errorf("a pack of %+v is also by %+v", full, g)
		}
	}
	if x.alsoBy(4, group{1, 7, full.exec}, true) || !x.alsoBy(4, group{1, 7, full.exec}, false) {
		t.Error("lanes must be the same where all are at one place, and only there")
	}
}

// TestLoggedOrders: of the orders of an atomic operation, acquire, acq_rel and sc acquire, and release, acq_rel and sc release.
func TestLoggedOrders(t *testing.T) {
	for _, x := range []struct {
		kind               event.Kind
		order              event.Order
		acquires, releases bool
	}{
		{event.Load, event.Acquire, true, false},
		{event.Store, event.Release, false, true},
		{event.Atomic, event.Relaxed, false, false},
		{event.Atomic, event.Acquire, true, false},
		{event.Atomic, event.Release, false, true},
		{event.Atomic, event.AcqRel, true, true},
		{event.Atomic, event.SC, true, true},
		{event.Fence, event.SC, false, false},
	} {
		l := &logged{}
		l.kind, l.order = x.kind, x.order
		if l.acquires() != x.acquires || l.releases() != x.releases {
			t.Errorf("%v %v acquires: %t, releases: %t", x.kind, x.order, l.acquires(), l.releases())
		}
	}
}
