package explain

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
)

// TestWeakLock checks that a race of lanes of one warp is an error if a lock without fences was handed over between
// them, whatever other races their places have and whichever came first.
func TestWeakLock(t *testing.T) {
	lock := detect.Facts{Category: detect.LockstepRace, Handover: &detect.Handover{Lock: true, InScope: true}}
	for _, other := range []detect.Category{detect.LockstepRace, detect.VolatileRace, detect.SameValueRace} {
		for _, most := range []int{1, 3} {
			races := []detect.Facts{{Category: other}, lock, {Category: other}}
			for range 3 {
				races = append(races[1:], races[0])
				f := NewFindings(most)
				for i := range most + 2 { // those kept in the end; what lies beyond is a warning until it shows otherwise
					f.Add(PairOf(uint64(i), 9), 1, other, false, false, func() detect.Facts { return detect.Facts{Category: other} })
					f.Settle()
				}
				for _, r := range races {
					f.Add(PairOf(8, 9), 1, r.Category, false, false, func() detect.Facts { return r })
					f.Settle()
				}
				kinds := []detect.Kind{}
				for _, x := range f.Findings("test") {
					if x.Severity == detect.Error {
						kinds = append(kinds, x.Kind)
					}
				}
				if !slices.Equal(kinds, []detect.Kind{detect.MissingFence}) {
					t.Errorf("with races of category %d, %d findings at most: errors of kinds %v, want %s", other, most, kinds, detect.MissingFence)
				}
			}
		}
	}
}
