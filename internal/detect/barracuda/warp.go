package barracuda

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// view is the vector clock of every lane of mask (C_t of figure 5.4). The lanes' clocks differ only in their own
// entries. Times that do not distinguish anything are not counted, as in the paper's barriers: threads that join all
// continue from the highest clock among them. The order is the same as with the counting of figure 5.4 (TestClocks).
type view struct {
	mask   uint32
	local  uint32      // the lanes' own time
	peer   uint32      // what each lane knows of the other lanes of mask
	warp   uint32      // if nested is nil: what all know of the lanes of the warp that are not in mask
	block  uint32      // a lower bound of what all know of the other warps of the block
	nested *[32]uint32 // what all know of the lanes that are not in mask; never changed
	rest   *clock.Grid // what is known in addition: the sparse part
}

// ofLane returns what lane self of v.mask knows of lane u of its warp, without the sparse part.
func (v *view) ofLane(self, u int) uint32 {
	switch {
	case u == self:
		return v.local
	case v.mask>>uint(u)&1 != 0:
		return v.peer
	case v.nested != nil:
		return v.nested[u]
	}
	return v.warp
}

// narrow returns the view for some of v's lanes, mask, in a warp whose lanes are exist.
func (v *view) narrow(mask, exist uint32) view {
	out := *v
	out.mask = mask
	switch {
	case mask == v.mask:
		return out
	case v.mask == exist || v.nested == nil && v.warp == v.peer:
		out.warp, out.nested = v.peer, nil
		return out
	}
	out.nested = new([32]uint32)
	for m := exist &^ mask; m != 0; m &= m - 1 {
		u := bits.TrailingZeros32(m)
		out.nested[u] = v.ofLane(-1, u)
	}
	return out
}

// warp is the state of a warp: K_w, and C_t of its lanes.
type warp struct {
	number    uint32
	block     *block
	exist     uint32   // lanes that exist in the launch
	live      uint32   // lanes that have not exited
	stack     []uint32 // K_w: active masks; empty if the whole warp is active
	views     []view   // disjoint; together they cover the live lanes
	fenced    uint32   // lanes whose last operation was a fence
	wide      uint32   // lanes of fenced whose fence had device scope
	waits     []*pending
	logged    [2]logged
	logs      int    // number of entries used in logged
	place     uint32 // of the last access
	stretches uint32 // counts stretches of code
}

// active returns the active mask.
func (w *warp) active() uint32 {
	if n := len(w.stack); n > 0 {
		return w.stack[n-1] & w.live
	}
	return w.live
}

// part returns the views of exactly the lanes of mask, splitting views if necessary. The result is the last elements of
// w.views.
func (w *warp) part(mask uint32) []view {
	n := 0 // views[len-n:] are within mask
	for i := 0; i < len(w.views)-n; i++ {
		v := &w.views[i]
		in := v.mask & mask
		switch {
		case in == 0:
			continue
		case in != v.mask:
			w.views = append(w.views, v.narrow(in, w.exist))
			v = &w.views[i]
			*v = v.narrow(v.mask&^in, w.exist)
			n++
		default:
			n++
			last := len(w.views) - n
			w.views[i], w.views[last] = w.views[last], w.views[i]
			i--
		}
	}
	return w.views[len(w.views)-n:]
}

// join joins the clocks of the lanes of mask and begins a new time for each (join and fork: ENDINSN, IF, ELSEENDIF). It
// returns their view, or nil if mask has no live lane.
func (d *Detector) join(w *warp, mask uint32) *view {
	mask &= w.live
	for i := range w.views {
		if v := &w.views[i]; v.mask == mask {
			v.peer = v.local
			d.tick(v)
			return v
		}
	}
	parts := w.part(mask)
	if len(parts) == 0 {
		return nil
	}
	out := parts[0]
	out.mask = mask
	for i := range parts[1:] {
		v := &parts[1+i]
		out.local, out.block = max(out.local, v.local), max(out.block, v.block)
		out.rest = d.joiner.Join(out.rest, v.rest)
	}
	out.peer = out.local
	d.tick(&out)
	out.warp, out.nested = outside(parts, mask, w.exist)
	w.views = w.views[:len(w.views)-len(parts)]
	w.views = append(w.views, out)
	return &w.views[len(w.views)-1]
}

// spread gives each lane of mask its own clock, with a number for each thread that it knows, if clocks are not to be
// compressed.
func (d *Detector) spread(w *warp, mask uint32) {
	if !d.each {
		return
	}
	parts := slices.Clone(w.part(mask & w.live))
	w.views = w.views[:len(w.views)-len(parts)]
	for i := range parts {
		v := &parts[i]
		for m := v.mask; m != 0; m &= m - 1 {
			one := v.narrow(m&-m, w.exist)
			one.rest = d.export(w, &one, one.mask, one.rest).Expanded(int(d.wpb))
			w.views = append(w.views, one)
		}
	}
}

// outside joins what parts, which together cover mask, know of the other lanes of the warp.
func outside(parts []view, mask, exist uint32) (all uint32, each *[32]uint32) {
	var known [32]uint32
	alike := true
	first := bits.TrailingZeros32(exist &^ mask)
	for m := exist &^ mask; m != 0; m &= m - 1 {
		u := bits.TrailingZeros32(m)
		for i := range parts {
			known[u] = max(known[u], parts[i].ofLane(-1, u))
		}
		alike = alike && known[u] == known[first]
	}
	switch {
	case exist == mask:
		return 0, nil
	case alike:
		return known[first], nil
	}
	made := known // allocated only here
	return 0, &made
}

// tick begins a new time of a view.
func (d *Detector) tick(v *view) {
	if v.local++; v.local > maxClock {
		panic("BUG: the clock of a warp has overflowed; the launch is too long for this detector")
	}
}

// of returns the view of a live lane.
func (w *warp) of(lane int) *view {
	for i := range w.views {
		if w.views[i].mask>>uint(lane)&1 != 0 {
			return &w.views[i]
		}
	}
	panic("BUG: a lane without a clock acts")
}

// run returns the view of the lowest of lanes, and those of lanes from there up to the first with another view. Lanes
// act in order, run by run.
func (w *warp) run(lanes uint32) (*view, uint32) {
	v := w.of(bits.TrailingZeros32(lanes))
	other := lanes &^ v.mask
	return v, lanes & (other&-other - 1)
}

// exit removes lanes and returns their number. What others know of them remains.
func (w *warp) exit(mask uint32) int {
	mask &= w.live
	parts := w.part(mask)
	w.views = w.views[:len(w.views)-len(parts)]
	w.live &^= mask
	return bits.OnesCount32(mask)
}
