package curd

import (
	"slices"
	"sort"

	"fencepost.dev/fencepost/internal/detect"
)

// subset is what a block read or wrote between two barriers, in the order of addresses. It never changes.
type subset struct {
	regions []region
	time    uint64 // when it was appended, from 1
}

// add adds the compressed sets of global memory, in the order of addresses, to those of the block (figure 6.6).
func (d *Detector) add(c *block) {
	if d.eager {
		d.appendSubsets(c)
		return
	}
	for kind, set := range [2][]region{reads: d.crs, writes: d.cws} {
		s := &c.total[kind]
		for _, r := range set {
			s.regions = insertBounded(s.regions, r)
		}
		// The bounded search leaves repetitions of regions that were accessed long ago.
		if len(s.regions) > 2*s.tidied+4*searched {
			s.regions = tidy(s.regions)
			s.tidied = len(s.regions)
		}
	}
}

// checkAll intersects the sets of all blocks at the end of the kernel.
func (d *Detector) checkAll() {
	if len(d.all[writes]) == 0 {
		return
	}
	lo, hi := d.all[writes][0].lo, uint64(0)
	for i := range d.all[writes] {
		lo, hi = min(lo, d.all[writes][i].lo), max(hi, d.all[writes][i].hi)
	}
	read := slices.DeleteFunc(d.all[reads], func(r owned) bool { return r.hi <= lo || hi <= r.lo })
	readWrite(d.all[writes], read, func(w, r *owned) {
		d.report(0, d.numbers[w.owner], d.numbers[r.owner], w.region, r.region, detect.Read)
	})
	writeWrite(d.all[writes], func(x, y *owned) {
		d.report(0, d.numbers[x.owner], d.numbers[y.owner], x.region, y.region, detect.Write)
	})
}

// appendSubsets appends the accesses of the block since its last barrier to its lists, and intersects them with those
// of the other blocks (figure 6.7).
func (d *Detector) appendSubsets(c *block) {
	d.time++
	for kind, set := range [2][]region{reads: d.crs, writes: d.cws} {
		if len(set) == 0 {
			continue
		}
		s := tidy(slices.Clone(set))
		span := &c.span[kind]
		lo, hi := extent(s)
		if len(c.subsets[kind]) > 0 {
			lo, hi = min(lo, span.lo), max(hi, span.hi)
		}
		span.lo, span.hi = lo, hi
		c.subsets[kind] = append(c.subsets[kind], subset{s, d.time})
	}
	d.checkOlder(c)
	for kind, op := range [2]detect.Op{reads: detect.Read, writes: detect.Write} { // steps 1 and 3
		n := len(c.subsets[kind])
		if n == 0 || c.subsets[kind][n-1].time != d.time {
			continue
		}
		mine := c.subsets[kind][n-1].regions
		lo, hi := extent(mine)
		for _, x := range d.order {
			if x == c || x.span[writes].hi <= lo || hi <= x.span[writes].lo {
				continue
			}
			for i := range x.subsets[writes] {
				d.intersect(x, c, x.subsets[writes][i].regions, mine, op)
			}
		}
	}
	c.checked = d.time
}

// checkOlder is step 2: what the block read before its last check is compared with the writes that others have appended
// since.
func (d *Detector) checkOlder(c *block) {
	older := c.subsets[reads]
	if n := len(older); n > 0 && older[n-1].time > c.checked {
		older = older[:n-1]
	}
	if len(older) == 0 {
		return
	}
	span := c.span[reads]
	for _, x := range d.order {
		theirs := x.subsets[writes]
		if x == c || len(theirs) == 0 || theirs[len(theirs)-1].time <= c.checked || x.span[writes].hi <= span.lo || span.hi <= x.span[writes].lo {
			continue
		}
		k := sort.Search(len(theirs), func(i int) bool { return theirs[i].time > c.checked })
		for i := range theirs[k:] {
			for j := range older {
				d.intersect(x, c, theirs[k+i].regions, older[j].regions, detect.Read)
			}
		}
	}
}

// intersect reports the overlaps of what block x wrote with what block y read or wrote.
func (d *Detector) intersect(x, y *block, theirs, mine []region, op detect.Op) {
	overlaps(theirs, mine, func(w, r *region) bool {
		d.report(0, x.number, y.number, *w, *r, op)
		return true
	})
}

// extent returns the range of bytes that contains a sorted, non-empty set.
func extent(set []region) (lo, hi uint64) {
	lo = set[0].lo
	for i := range set {
		hi = max(hi, set[i].hi)
	}
	return lo, hi
}
