package history

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHostRecords checks that the index finds the same as a linear search, in the same order.
func TestHostRecords(t *testing.T) {
	const page = 1 << hostPageBits
	k := rand.New(rand.NewPCG(1, 2))
	sites := []*Site{{Host: "a copy"}, {Host: "a fill"}, {}}
	var x hostRecords
	var want []Record
	bytes := func() (from, end uint64) {
		from = k.Uint64N(40 * page)
		return from, from + []uint64{0, 1, 100, page, 3 * page, 70 * page}[k.IntN(6)]
	}
	for range 4000 {
		from, end := bytes()
		switch k.IntN(8) {
		case 0:
			x.cut(from, end)
			want = withoutRange(want, from, end)
		default:
			if k.IntN(2) == 0 { // rows of a buffer, repeatedly
				from = k.Uint64N(50) * 500
				end = from + 500
			}
			r := Record{Site: sites[k.IntN(3)], From: from, End: end}
			x.supersede(r)
			if from < end {
				want = append(slices.DeleteFunc(want, func(o Record) bool { return r.supersedes(&o) }), r)
			}
		}
		from, end = bytes()
		var got, overlap []Record
		for _, i := range x.overlapping(from, end) {
			got = append(got, x.list[i].Record)
		}
		for _, r := range want {
			if from < end && r.From < end && from < r.End {
				overlap = append(overlap, r)
			}
		}
		if !slices.Equal(got, overlap) || !slices.Equal(x.records(), want) {
			t.Fatalf("[%#x, %#x): got %v, want %v; of %d and %d", from, end, got, overlap, len(x.records()), len(want))
		}
		if len(want) > 300 {
			x, want = hostRecords{}, nil
		}
	}
}
