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
				f.Locks = true
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

// TestExplainedOnce checks that a race of lanes of one warp that repeats is explained once as long as no lock may have
// passed between threads.
func TestExplainedOnce(t *testing.T) {
	for _, locks := range []bool{false, true} {
		f, asked := NewFindings(0), 0
		f.Locks = locks
		for range 3 {
			f.Add(PairOf(8, 9), 1, detect.LockstepRace, false, false, func() detect.Facts {
				asked++
				return detect.Facts{Category: detect.LockstepRace}
			})
			f.Settle()
		}
		if want := map[bool]int{false: 1, true: 4}[locks]; asked != want {
			t.Errorf("locks %t: facts asked %d times, want %d", locks, asked, want)
		}
	}
}
