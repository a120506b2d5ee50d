package curd

import (
	"cmp"
	"slices"
	"unsafe"

	"fencepost.dev/fencepost/internal/event"
)

// region is a range of bytes that threads accessed, with facts about the latest access in it (section 6.1.1).
type region struct {
	lo, hi   uint64 // hi is exclusive
	place    uint32
	thread   uint16 // within the block; for messages only
	complete bool   // every access in the region was at place (section 6.2, "Source-level information")
	strength uint8  // order and scope, for messages only
}

const regionBytes = uint64(unsafe.Sizeof(region{}))

func strength(e *event.Event) uint8     { return uint8(e.Order)<<4 | uint8(e.Scope) }
func (r *region) order() event.Order    { return event.Order(r.strength >> 4) }
func (r *region) scope() event.Scope    { return event.Scope(r.strength & 15) }
func (r *region) touches(x region) bool { return r.lo <= x.hi && x.lo <= r.hi }

// merge makes the region the union of itself and an earlier region that touches it.
func (r *region) merge(earlier region) {
	r.lo, r.hi = min(r.lo, earlier.lo), max(r.hi, earlier.hi)
	r.complete = r.complete && earlier.complete && r.place == earlier.place
}

// searched is the number of regions of a set that an insertion examines (section 6.2, "Caching Thread-Set Insertions",
// and section 6.1.2, where it is called k; neither gives the number).
const searched = 8

// owned is a region with its owner: a thread of a block, or a block.
type owned struct {
	region
	owner uint32
}

// insertBounded adds a region to the set of a block.
func insertBounded(set []region, r region) []region {
	for i, stop := len(set)-1, max(0, len(set)-searched); i >= stop; i-- {
		if r.touches(set[i]) {
			r.merge(set[i])
			last := len(set) - 1
			set[i] = set[last]
			set = set[:last]
		}
	}
	return append(set, r)
}

func byAddress(x, y region) int {
	if x.lo != y.lo { // nearly always; cmp.Or would evaluate all its arguments
		return cmp.Compare(x.lo, y.lo)
	}
	return cmp.Or(cmp.Compare(x.hi, y.hi), cmp.Compare(x.place, y.place), cmp.Compare(x.thread, y.thread))
}

// tidy sorts a set, and merges regions that touch and have the same source.
func tidy(set []region) []region {
	order(set)
	out := set[:0]
	for _, r := range set {
		if n := len(out); n > 0 && out[n-1].touches(r) && out[n-1].place == r.place && out[n-1].complete == r.complete {
			out[n-1].hi = max(out[n-1].hi, r.hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

func order(set []region) {
	if !slices.IsSortedFunc(set, byAddress) {
		slices.SortFunc(set, byAddress)
	}
}

func orderOwned(set []owned) {
	compare := func(x, y owned) int {
		if x.lo != y.lo {
			return cmp.Compare(x.lo, y.lo)
		}
		return cmp.Or(cmp.Compare(x.owner, y.owner), byAddress(x.region, y.region))
	}
	if !slices.IsSortedFunc(set, compare) {
		slices.SortFunc(set, compare)
	}
}

// overlaps calls f for overlapping regions of two sorted sets, in linear time. Every byte that is in both sets is in
// the overlap of such a pair, even if regions of one set overlap each other.
func overlaps(x, y []region, f func(x, y *region) bool) {
	for i, j := 0, 0; i < len(x) && j < len(y); {
		if x[i].lo < y[j].hi && y[j].lo < x[i].hi && !f(&x[i], &y[j]) {
			return
		}
		if x[i].hi <= y[j].hi {
			i++
		} else {
			j++
		}
	}
}

// overlap reports whether two sorted sets have bytes in common.
func overlap(x, y []region) bool {
	found := false
	overlaps(x, y, func(*region, *region) bool { found = true; return false })
	return found
}

// readWrite calls f for each pair of a write and a read that overlap and have different owners. It sorts the sets.
func readWrite(writes, reads []owned, f func(write, read *owned)) {
	orderOwned(writes)
	orderOwned(reads)
	first := 0 // all reads before it end before the write
	for i := range writes {
		w := &writes[i]
		for first < len(reads) && reads[first].hi <= w.lo {
			first++
		}
		for j := first; j < len(reads) && reads[j].lo < w.hi; j++ {
			if r := &reads[j]; r.hi > w.lo && r.owner != w.owner {
				f(w, r)
			}
		}
	}
}

// writeWrite calls f once for each pair of writes that overlap and have different owners, as in the strict upper
// triangle of a matrix of owners. It sorts the set.
func writeWrite(writes []owned, f func(x, y *owned)) {
	orderOwned(writes)
	for i := range writes {
		x := &writes[i]
		for j := i + 1; j < len(writes) && writes[j].lo < x.hi; j++ {
			if y := &writes[j]; y.owner != x.owner {
				f(x, y)
			}
		}
	}
}
