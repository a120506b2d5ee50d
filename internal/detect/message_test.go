package detect

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestWarpFix checks that lanes of one warp are not told to add a barrier that stands there already or that their
// branches forbid.
func TestWarpFix(t *testing.T) {
	launch := event.Launch{ID: 1}
	warpSync, barrier := &Sync{What: SyncName(event.WarpSync, 0, 0, 0, true)}, &Sync{What: "bar.sync 0"}
	for _, c := range []struct {
		category Category
		warp     uint32
		sync     *Sync
		want     string
	}{
		{LockstepRace, 0, nil, "put __syncwarp()"},
		{LockstepRace, 0, warpSync, "the mask of the __syncwarp()"},
		{SameBlock, 0, nil, "let both threads pass a __syncwarp()"},
		{SameBlock, 0, warpSync, "the mask of the __syncwarp()"},
		{SameBlock, 0, barrier, "let both threads pass a __syncwarp()"},
		{SameBlock, 1, warpSync, "put __syncthreads()"},
	} {
		f := NewRace("hb", &Facts{Category: c.category,
			Earlier: Access{Op: Write, Launch: launch, Sync: c.sync},
			Later:   Access{Op: Read, Launch: launch, Warp: c.warp, Sync: c.sync}})
		if !strings.Contains(f.Fix, c.want) {
			t.Errorf("category %d, warp %d: fix %q, want %q", c.category, c.warp, f.Fix, c.want)
		}
	}
}
