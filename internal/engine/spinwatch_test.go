package engine

import "testing"

// TestSpinWatches checks that the clock grows by half between two watches of a launch, and that the first is not too
// early.
func TestSpinWatches(t *testing.T) {
	p := spin{first: 100, Phase: spinWatch, warps: []spinning{{}}, blocks: []arrivals{{}}}
	for _, c := range [][2]uint64{{0, 100}, {100, 200}, {199, 299}, {200, 300}, {202, 303}, {1000, 1500}} {
		if p.later(c[0]); p.at != c[1] || p.Phase != SpinIdle || p.warps != nil || p.blocks != nil {
			t.Errorf("at %d: %+v", c[0], p)
		}
	}
}
