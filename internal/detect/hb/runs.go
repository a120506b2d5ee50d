package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// maxStride is that of accesses that are packed: four lanes a line.
const maxStride = lineBytes / 4

// lanesRun is lanes whose addresses have one stride: a lane at place n, which is its number modulo 32>>folds, accesses
// first + n*stride.
type lanesRun struct {
	lanes  uint32
	folds  uint
	first  uint64
	stride int64
}

// maxRuns is how many runs an access is taken apart into at most.
const maxRuns = 4

// takeApart finds the runs of an access. It says false when there are too many, or one is not aligned, too wide, or not
// apart where it writes.
func (q *whole) takeApart(b *event.Batch, e *event.Event) bool {
	q.runs = q.runs[:0]
	if e.Affine() {
		return q.add(e, e.Mask, e.Addr, e.Stride)
	}
	if e.Flags&event.FlagRows != 0 {
		return q.rows(e)
	}
	addrs := b.Addrs[e.Side:][:bits.OnesCount32(e.Mask)]
	rest := e.Mask
	if len(addrs) == 32 {
		if a := (*[32]uint64)(addrs); halves(a) {
			const low, high = 1<<16 - 1, ^uint32(1<<16 - 1)
			if !q.add(e, low, a[0], int64(a[1]-a[0])) || !q.add(e, high, a[16], int64(a[17]-a[16])) {
				return false
			}
			rest = 0
		}
	}
	for m := rest; m != 0; {
		var n int
		var stride int64
		if len(addrs) == bits.Len32(m)-bits.TrailingZeros32(m) { // no lane left out
			n, stride = even(addrs)
		} else {
			n, stride = spaced(addrs, m)
		}
		lanes := lowest(m, n)
		if len(q.runs) == maxRuns || !q.add(e, lanes, addrs[0], stride) {
			return false
		}
		addrs = addrs[n:]
		m &^= lanes
	}
	if e.Kind == event.Store {
		return q.disjoint(uint64(e.Size))
	}
	q.fold(e.Mask)
	return true
}

// rows is takeApart for an access in rows.
func (q *whole) rows(e *event.Event) bool {
	if ^e.Mask == 0 && e.RowStride() == 0 && e.Stride != 0 && e.RowShift > 2 && e.Kind == event.Load { // as fold would make it
		if !q.add(e, e.Mask, e.Addr, e.Stride) {
			return false
		}
		q.runs[0].folds = uint(5 - e.RowShift)
		return true
	}
	row := uint32(1)<<(1<<e.RowShift) - 1
	low := bits.TrailingZeros32(e.Mask) >> e.RowShift << e.RowShift
	addr := e.Addr - uint64(int64(bits.TrailingZeros32(e.Mask)-low)*e.Stride) // of the first column
	for m := e.Mask; m != 0; {
		lanes := m & (row << uint(low))
		if lanes != 0 && (len(q.runs) == maxRuns || !q.add(e, lanes, addr+uint64(int64(bits.TrailingZeros32(lanes)-low)*e.Stride), e.Stride)) {
			return false
		}
		m &^= lanes
		low += 1 << e.RowShift
		addr += uint64(e.RowStride())
	}
	if e.Kind == event.Store {
		return q.disjoint(uint64(e.Size))
	}
	q.fold(e.Mask)
	return true
}

// halves says that the lanes of each half of a warp access memory at equal distances, as where it is two rows of a block.
func halves(a *[32]uint64) bool {
	s, t := a[1]-a[0], a[17]-a[16]
	x, y := a[0], a[16]
	odd := uint64(0)
	for i := range 16 { // no way out: this is quicker
		odd |= (a[i] ^ x) | (a[i+16] ^ y)
		x += s
		y += t
	}
	return odd == 0
}

// lowest gives the n lowest lanes.
func lowest(lanes uint32, n int) uint32 {
	rest := lanes
	for ; n > 0 && rest != 0; n-- {
		if rest&(rest+rest&-rest) == 0 { // neighbours: all at once
			return lanes &^ (rest &^ (rest&-rest<<n - rest&-rest))
		}
		rest &= rest - 1
	}
	return lanes &^ rest
}

// even gives how many of the addresses of neighbouring lanes lie in a line from the first on, and its stride.
func even(addrs []uint64) (n int, stride int64) {
	if len(addrs) == 1 {
		return 1, 0
	}
	step := addrs[1] - addrs[0]
	for n = 2; n < len(addrs) && addrs[n]-addrs[n-1] == step; n++ {
	}
	return n, int64(step)
}

// spaced is even for the addresses of any lanes.
func spaced(addrs []uint64, lanes uint32) (n int, stride int64) {
	low := bits.TrailingZeros32(lanes)
	n = 1
	for m := lanes & (lanes - 1); m != 0; m &= m - 1 {
		far := int64(bits.TrailingZeros32(m) - low)
		diff := int64(addrs[n] - addrs[0])
		if n == 1 {
			if stride = diff / far; stride*far != diff {
				return 1, 0
			}
		} else if diff != stride*far {
			break
		}
		n++
	}
	return n, stride
}

// add adds a run that begins at addr.
func (q *whole) add(e *event.Event, lanes uint32, addr uint64, stride int64) bool {
	if addr&uint64(e.Size-1) != 0 {
		return false
	}
	if lanes&(lanes-1) == 0 {
		q.runs = append(q.runs, lanesRun{lanes: lanes, first: addr})
		return true
	}
	size, far := int64(e.Size), max(stride, -stride)
	if stride == 0 && e.Kind == event.Store || stride != 0 && (far < size || far > maxStride || stride&(size-1) != 0) {
		return false
	}
	q.runs = append(q.runs, lanesRun{lanes: lanes, first: addr - uint64(int64(bits.TrailingZeros32(lanes))*stride), stride: stride})
	return true
}

// disjoint says that no two runs of a store have bytes in common, as far as that is cheap to see.
func (q *whole) disjoint(size uint64) bool {
	for i := range q.runs {
		for j := range q.runs[:i] {
			a, b := q.runs[i].bounds(size)
			if lo, hi := q.runs[j].bounds(size); a < hi && lo < b {
				return false
			}
		}
	}
	return true
}

func (r *lanesRun) bounds(size uint64) (lo, hi uint64) {
	x := r.first + uint64(int64(bits.TrailingZeros32(r.lanes))*r.stride)
	y := r.first + uint64(int64(31-bits.LeadingZeros32(r.lanes))*r.stride)
	return min(x, y), max(x, y) + size
}

// fold makes one of runs that are the same but for the lanes, halves or quarters of the warp.
func (q *whole) fold(mask uint32) {
	n := len(q.runs)
	if mask != ^uint32(0) || n != 2 && n != 4 {
		return
	}
	places := 32 / n
	r := q.runs[0]
	for i, o := range q.runs {
		if o.stride == 0 || o.stride != r.stride || o.lanes != (1<<places-1)<<uint(i*places) ||
			o.first+uint64(int64(i*places)*o.stride) != r.first {
			return
		}
	}
	r.lanes, r.folds = mask, uint(n/2)
	q.runs = append(q.runs[:0], r)
}
