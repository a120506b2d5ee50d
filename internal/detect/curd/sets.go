package curd

import (
	"math/bits"
	"slices"
	"unsafe"
)

// The sets of a block's threads are stored by warp. Lanes that did the same form a group. One line of the group's sets
// represents one region of each of its threads, as long as the regions form a pattern. Groups are divided when some
// lanes do something else, down to groups of one lane. In each case the sets contain what figure 6.3 has for every
// thread.

// slope is the distance between the regions of neighbouring lanes in a row, and between those of a lane and the one
// below it in the next row.
type slope struct{ lane, row int64 }

// line is one region of each lane of a group. The region of lane l begins at lo + l%per*lane + l/per*row. In a group of
// one lane the slope is zero, and lo is the beginning of its region.
type line struct {
	lo, size uint64
	slope    slope
	from, to uint64 // bounds of all regions; with incomplete rows they may be too wide
	place    uint32
	complete bool
	strength uint8
}

const lineBytes = uint64(unsafe.Sizeof(line{}))

// merge makes the line the union of itself and an earlier line of the same slope that touches it.
func (x *line) merge(earlier *line) {
	hi := max(x.lo+x.size, earlier.lo+earlier.size)
	x.lo = min(x.lo, earlier.lo)
	x.size = hi - x.lo
	x.from, x.to = min(x.from, earlier.from), max(x.to, earlier.to)
	x.complete = x.complete && earlier.complete && x.place == earlier.place
}

// put makes the line that of a single lane with a region at lo.
func (x *line) put(lo uint64) { x.lo, x.from, x.to = lo, lo, lo+x.size }

func (x *line) touches(y *line) bool { return x.lo <= y.lo+y.size && y.lo <= x.lo+x.size }

func (x *line) contains(y *line) bool { return x.lo <= y.lo && y.lo+y.size <= x.lo+x.size }

// shape is the number of lanes in a row.
type shape int

// at returns the beginning of the region of a lane.
func (p shape) at(x *line, lane int) uint64 {
	return x.lo + uint64(int64(lane%int(p))*x.slope.lane+int64(lane/int(p))*x.slope.row)
}

// of returns the region of one lane as a line.
func (p shape) of(x line, lane int) line {
	x.lo, x.slope = p.at(&x, lane), slope{}
	x.from, x.to = x.lo, x.lo+x.size
	return x
}

// flat reports whether neighbouring lanes always have the same distance, across rows too.
func (p shape) flat(s slope) bool { return s.row == int64(p)*s.lane }

// extend sets the bounds of the regions of a line.
func (p shape) extend(x *line, mask uint32) {
	var lo, hi uint64
	if p.flat(x.slope) {
		lo, hi = x.lo+uint64(int64(bits.TrailingZeros32(mask))*x.slope.lane), x.lo+uint64(int64(31-bits.LeadingZeros32(mask))*x.slope.lane)
	} else {
		first := uint64(int64(bits.TrailingZeros32(mask)/int(p)) * x.slope.row)
		last := uint64(int64((31-bits.LeadingZeros32(mask))/int(p)) * x.slope.row)
		lo, hi = x.lo+first, x.lo+last
		if int64(hi-lo) < 0 {
			lo, hi = hi, lo
		}
		if across := uint64(int64(p-1) * x.slope.lane); int64(across) < 0 {
			lo += across
		} else {
			hi += across
		}
	}
	if int64(hi-lo) < 0 {
		lo, hi = hi, lo
	}
	x.from, x.to = lo, hi+x.size
}

// group is lanes of a warp with the same history, and their sets.
type group struct {
	mask  uint32
	lines []line
}

func single(mask uint32) bool { return mask&(mask-1) == 0 }

// relation says for how many lanes something holds.
type relation uint8

const (
	none relation = iota
	some
	all
)

// related says for how many lanes of the group x touches y or, if contains is set, contains it.
func (g *group) related(p shape, x, y *line, contains bool) relation {
	if x.slope == y.slope {
		if x.touches(y) && (!contains || x.contains(y)) {
			return all
		}
		return none
	}
	if x.from > y.to || y.from > x.to {
		return none
	}
	n := 0
	for m := g.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		a, b := p.of(*x, l), p.of(*y, l)
		if a.touches(&b) && (!contains || a.contains(&b)) {
			n++
		}
	}
	switch n {
	case 0:
		return none
	case bits.OnesCount32(g.mask):
		return all
	}
	return some
}

// entering is an access that is being added to the sets of a group.
type entering struct {
	line
	at, stop int // the line to examine next, and the end
	started  bool
}

// enter continues adding an access. It returns false if lanes would act differently: the group must then be divided,
// and each part continues.
func (g *group) enter(p shape, e *entering) bool {
	if !e.started {
		n := len(g.lines)
		if n > 0 {
			last := &g.lines[n-1]
			switch g.related(p, last, &e.line, true) {
			case some:
				return false
			case all:
				last.complete = last.complete && e.complete && last.place == e.place
				last.place, last.strength = e.place, e.strength
				return true
			}
		}
		e.started, e.at, e.stop = true, n-1, max(0, n-searched)
	}
	for ; e.at >= e.stop; e.at-- {
		x := &g.lines[e.at]
		switch r := g.related(p, &e.line, x, false); {
		case r == none:
		case r == all && x.slope == e.slope:
			e.merge(x)
			last := len(g.lines) - 1
			*x = g.lines[last]
			g.lines = g.lines[:last]
		default:
			return false
		}
	}
	g.lines = append(g.lines, e.line)
	return true
}

// warpSet is the sets of one kind of a warp's threads. Lanes without a group have empty sets.
type warpSet struct {
	groups []group // elements beyond the length keep their memory
	whose  [32]int8
}

// take adds a group for some lanes.
func (w *warpSet) take(mask uint32) *group {
	if n := len(w.groups); n < cap(w.groups) {
		w.groups = w.groups[:n+1]
	} else {
		w.groups = append(w.groups, group{})
	}
	g := &w.groups[len(w.groups)-1]
	g.mask, g.lines = mask, g.lines[:0]
	return g
}

// part divides group i into two: the lanes of mask, and the others.
func (w *warpSet) part(p shape, i int, mask uint32) {
	h := w.take(w.groups[i].mask &^ mask)
	g := &w.groups[i]
	g.mask &= mask
	h.lines = append(h.lines, g.lines...)
	g.settle(p)
	h.settle(p)
}

// settle removes the slope of the lines of a group of one lane, and updates the bounds of the lines of other groups.
func (g *group) settle(p shape) {
	lane := bits.TrailingZeros32(g.mask)
	for k := range g.lines {
		if single(g.mask) {
			g.lines[k] = p.of(g.lines[k], lane)
		} else {
			p.extend(&g.lines[k], g.mask)
		}
	}
}

// insert adds an access of the lanes of mask.
func (w *warpSet) insert(p shape, mask uint32, x line) {
	whole := mask
	for i := 0; i < len(w.groups) && mask != 0; i++ {
		in := w.groups[i].mask & mask
		if in == 0 {
			continue
		}
		part := x
		if in != w.groups[i].mask {
			w.part(p, i, in)
		}
		if in != whole {
			p.extend(&part, in)
		}
		mask &^= in
		w.enter(p, i, part)
	}
	if mask != 0 {
		g := w.take(mask)
		if single(mask) {
			x = p.of(x, bits.TrailingZeros32(mask))
		} else if mask != whole {
			p.extend(&x, mask)
		}
		g.lines = append(g.lines, x)
	}
}

// enter adds an access to a group.
func (w *warpSet) enter(p shape, i int, x line) {
	g := &w.groups[i]
	if single(g.mask) {
		x = p.of(x, bits.TrailingZeros32(g.mask))
	}
	if n := len(g.lines); n == 1 && g.lines[0].slope == x.slope { // nearly always, and fast
		last := &g.lines[0]
		if !x.touches(last) {
			g.lines = append(g.lines, x)
			return
		}
		x.merge(last)
		*last = x
		return
	}
	e := entering{line: x}
	if g.enter(p, &e) {
		return
	}
	for mask := g.mask; mask != 0; mask &= mask - 1 {
		lane := mask & -mask
		if lane != mask {
			w.part(p, i, mask&^lane) // the lane alone is the last group now
		}
		k := i
		if lane != mask {
			k = len(w.groups) - 1
		}
		one := e
		one.line = p.of(e.line, bits.TrailingZeros32(lane))
		if !w.groups[k].enter(p, &one) {
			panic("BUG: a lane that would do different things")
		}
	}
}

// insertEach adds an access of the lanes of mask, each at its own address: x without lo.
func (w *warpSet) insertEach(p shape, mask uint32, x line, addrs []uint64) {
	var at [32]uint64
	for m, k := mask, 0; m != 0; m, k = m&(m-1), k+1 {
		at[bits.TrailingZeros32(m)&31] = addrs[k]
	}
	for i := 0; i < len(w.groups); i++ {
		for in := w.groups[i].mask & mask; in != 0 && !single(w.groups[i].mask); {
			w.part(p, i, in&-in) // the others are handled with their group
			in = w.groups[i].mask & mask
		}
		if g := &w.groups[i]; g.mask&mask != 0 {
			mask &^= g.mask
			x.put(at[bits.TrailingZeros32(g.mask)&31])
			g.enter(p, &entering{line: x})
		}
	}
	for ; mask != 0; mask &= mask - 1 {
		x.put(at[bits.TrailingZeros32(mask)&31])
		g := w.take(mask & -mask)
		g.lines = append(g.lines, x)
	}
}

// threadSets is the sets of one kind of all threads of a block.
type threadSets struct {
	warps []warpSet
	shape shape
	used  bool
}

// clear empties the sets. It keeps their memory unless it is large.
func (s *threadSets) clear() {
	if !s.used {
		return
	}
	s.used = false
	for i := range s.warps {
		w := &s.warps[i]
		for k := range w.groups {
			if cap(w.groups[k].lines) > 64 {
				w.groups[k].lines = nil
			}
		}
		w.groups = w.groups[:0]
	}
}

func (s *threadSets) bytes() (n uint64) {
	for i := range s.warps {
		w := &s.warps[i]
		for _, g := range w.groups[:cap(w.groups)] {
			n += uint64(cap(g.lines))*lineBytes + uint64(unsafe.Sizeof(g))
		}
		n += 64
	}
	return n
}

// compress appends the union of the sets to out. In the layout of figure 6.3, in which the first regions of all threads
// precede the second ones, regions that touch their left neighbour are merged with it (figure 6.5).
func (s *threadSets) compress(out []region) []region {
	for i := range s.warps {
		if w := &s.warps[i]; len(w.groups) > 1 {
			w.number()
		}
	}
	c := compressor{p: s.shape, out: out}
	for row := range s.rows() {
		for i := range s.warps {
			w := &s.warps[i]
			switch len(w.groups) {
			case 0:
			case 1:
				c.group(i, row, &w.groups[0])
			default:
				c.lanes(i, row, w)
			}
		}
	}
	return c.out
}

// rows returns the greatest number of lines in a group.
func (s *threadSets) rows() (rows int) {
	for i := range s.warps {
		w := &s.warps[i]
		for k := range w.groups {
			rows = max(rows, len(w.groups[k].lines))
		}
	}
	return rows
}

// number sets the group of each lane, -1 for none.
func (w *warpSet) number() {
	for l := range w.whose {
		w.whose[l] = -1
	}
	for k := range w.groups {
		for m := w.groups[k].mask; m != 0; m &= m - 1 {
			w.whose[bits.TrailingZeros32(m)&31] = int8(k)
		}
	}
}

// compressor computes the union of sets.
type compressor struct {
	p    shape
	out  []region
	left region // the left neighbour
	any  bool   // there is a left neighbour
}

// lanes adds the regions with number row of a warp with several groups.
func (c *compressor) lanes(warp, row int, w *warpSet) {
	for l := 0; l < 32; {
		k, first := w.whose[l], l
		for l++; l < 32 && w.whose[l] == k; l++ {
		}
		if k >= 0 && row < len(w.groups[k].lines) {
			c.run(warp, &w.groups[k].lines[row], first, l-1)
		}
	}
}

// group adds those of a warp with one group.
func (c *compressor) group(warp, row int, g *group) {
	if row >= len(g.lines) {
		return
	}
	for m := g.mask; m != 0; {
		first := bits.TrailingZeros32(m)
		n := bits.TrailingZeros32(^(m >> first))
		c.run(warp, &g.lines[row], first, first+n-1)
		m &^= uint32(1<<n-1) << first
	}
}

// run adds the regions of the lanes from first to last.
func (c *compressor) run(warp int, x *line, first, last int) {
	r := region{place: x.place, complete: x.complete, strength: x.strength}
	whole := uint64(max(x.slope.lane, -x.slope.lane)) <= x.size
	for l := first; l <= last; l++ {
		lo := c.p.at(x, l)
		from := lo
		r.lo, r.hi, r.thread = lo, lo+x.size, uint16(32*warp+l)
		begin := r
		for whole && l < last { // to the end of the row, and further if the next row touches it
			end := min(last, l|int(c.p-1))
			if end == l {
				end++
				if at := c.p.at(x, end); at > from+x.size || from > at+x.size {
					break
				}
			}
			l, from = end, c.p.at(x, end)
			r.lo, r.hi = min(r.lo, from), max(r.hi, from+x.size)
		}
		r.thread = uint16(32*warp + l)
		if c.any && begin.touches(c.left) {
			at := &c.out[len(c.out)-1]
			m := r
			m.merge(*at)
			*at = m
		} else {
			c.out = append(c.out, r)
		}
		c.left, c.any = region{lo: from, hi: from + x.size}, true
	}
}

// each appends the regions of all threads to out.
func (s *threadSets) each(out []owned) []owned {
	for i := range s.warps {
		for _, g := range s.warps[i].groups {
			for m := g.mask; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m)
				t := uint32(32*i + l)
				for k := range g.lines {
					x := &g.lines[k]
					lo := s.shape.at(x, l)
					out = append(out, owned{region{lo, lo + x.size, x.place, uint16(t), x.complete, x.strength}, t})
				}
			}
		}
	}
	return out
}

// span is a line with its bounds.
type span struct {
	lo, hi   uint64
	at, size uint64 // of the line
	slope    slope
	mask     uint32
	warp     int32
}

// spans appends the spans of the sets to out, in the order of addresses.
func (s *threadSets) spans(out []span) []span {
	sorted, rows := true, s.rows()
	last := uint64(0)
	for row := range rows { // the first lines of all warps mostly precede the second ones
		for i := range s.warps {
			for k := range s.warps[i].groups {
				g := &s.warps[i].groups[k]
				if row >= len(g.lines) {
					continue
				}
				x := &g.lines[row]
				sorted = sorted && last <= x.from
				last = x.from
				out = append(out, span{x.from, x.to, x.lo, x.size, x.slope, g.mask, int32(i)})
			}
		}
	}
	if !sorted {
		slices.SortFunc(out, func(x, y span) int {
			switch {
			case x.lo < y.lo:
				return -1
			case x.lo > y.lo:
				return 1
			}
			return 0
		})
	}
	return out
}

// raceFree reports whether no threads race, because lines that overlap with a write overlap only in the regions of a
// single thread. If it returns false, the sets must be compared thread by thread.
func (d *Detector) raceFree(reads, writes *threadSets) bool {
	p := writes.shape
	d.spans[0], d.spans[1] = writes.spans(d.spans[0][:0]), reads.spans(d.spans[1][:0])
	w, r := d.spans[0], d.spans[1]
	looks := 4 * (len(w) + len(r)) // limit for the number of pairs examined
	from := 0
	for i := range w {
		x := &w[i]
		if !single(x.mask) && !p.apart(x, x) {
			return false
		}
		for j := i + 1; j < len(w) && w[j].lo < x.hi; j++ {
			if looks--; looks < 0 || !p.own(x, &w[j]) {
				return false
			}
		}
		for from < len(r) && r[from].hi <= x.lo {
			from++
		}
		for j := from; j < len(r) && r[j].lo < x.hi; j++ {
			if looks--; looks < 0 || r[j].hi > x.lo && !p.own(x, &r[j]) {
				return false
			}
		}
	}
	return true
}

// own reports whether two lines overlap only in regions of one thread. It may return false by mistake.
func (p shape) own(x, y *span) bool {
	return x.warp == y.warp && (single(x.mask) && x.mask == y.mask || x.slope == y.slope && p.apart(x, y))
}

// apart reports whether no lane's region of x overlaps another lane's of y. Both have the same slope. It may return
// false by mistake.
func (p shape) apart(x, y *span) bool {
	beside := func(by int64, more uint64) bool {
		by = max(by, -by)
		return by != 0 && int64(y.at+uint64(by)-x.at-x.size-more) >= 0 && int64(x.at+uint64(by)-y.at-y.size-more) >= 0
	}
	if !beside(x.slope.lane, 0) {
		return false
	}
	return p.flat(x.slope) || beside(x.slope.row, uint64(int64(p-1)*max(x.slope.lane, -x.slope.lane)))
}
