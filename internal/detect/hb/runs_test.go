package hb

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestRuns checks that the runs of an access in rows are its lanes, each once, at their addresses, and that loads by a whole warp of
// the same words row by row are one run.
func TestRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	apart, folded := 0, 0
	for range 20000 {
		size := uint8(1) << rng.IntN(4)
		e := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Shared, Size: size, Mask: ^uint32(0), Addr: 1 << 12}
		if rng.IntN(3) == 0 {
			e.Kind, e.Flags = event.Store, event.FlagWrite
		}
		if rng.IntN(2) == 0 {
			e.Mask = rng.Uint32() | 1<<rng.IntN(32)
		}
		if rng.IntN(3) == 0 {
			e.Mask &= 1<<rng.IntN(32) - 1
			e.Mask |= 1 << rng.IntN(32)
		}
		e.InRows(uint8(1+rng.IntN(4)), int64(rng.IntN(5)-2)*int64(size), int64(size)*[]int64{0, 0, 1, 16, 32, 64, -64, 33}[rng.IntN(8)])
		q := &whole{}
		b := &event.Batch{}
		if !q.takeApart(b, &e) {
			continue
		}
		apart++
		seen := uint32(0)
		for i := range q.runs {
			r := &q.runs[i]
			if r.lanes == 0 || r.lanes&seen != 0 {
				t.Fatalf("%+v: run of lanes %#x after %#x", e, r.lanes, seen)
			}
			seen |= r.lanes
			for m := r.lanes; m != 0; m &= m - 1 {
				lane := bits.TrailingZeros32(m)
				if at := r.first + uint64(int64(lane%(32>>r.folds))*r.stride); at != b.AddrOf(&e, lane) {
					t.Fatalf("%+v: lane %d at %#x in %+v", e, lane, at, *r)
				}
			}
			if r.folds > 0 {
				folded++
				if len(q.runs) > 1 || e.Kind == event.Store {
					t.Fatalf("%+v: %+v", e, q.runs)
				}
			}
		}
		if seen != e.Mask {
			t.Fatalf("%+v: runs of lanes %#x", e, seen)
		}
		if e.Kind == event.Load && ^e.Mask == 0 && e.RowShift > 2 && e.RowStride() == 0 && e.Stride != 0 && len(q.runs) != 1 {
			t.Fatalf("%+v: %d runs", e, len(q.runs))
		}
	}
	if apart < 5000 || folded < 200 {
		t.Errorf("%d accesses were taken apart, %d folded: nothing was tested", apart, folded)
	}
}
