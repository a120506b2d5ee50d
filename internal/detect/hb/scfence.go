package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// What fence.sc orders beyond its patterns (doc.go, "What orders"): a fence.sc that its block ordered before a strong
// write synchronises with a fence.sc that the observer's block ordered after the read. A thread therefore carries what
// its block's fences have published (know.published, laneSync.last) and what reads in its block have observed
// (know.observed, laneSync.observed), through barriers and bar.warp.sync, as trees of its own launch.

// passed is what fences pass on: knowledge of their launch, and beyond it. Zero (no grid): nothing.
type passed struct {
	grid   *clock.Grid
	beyond *clock.Foreign
}

func (d *Detector) joinPassed(p, o passed) passed {
	return passed{d.join.Join(p.grid, o.grid), p.beyond.Join(o.beyond)}
}

// gridOf gives the snapshot of lanes that share it as one tree, their own epochs included.
func (s *snapshot) gridOf(b *block, wi, lanes uint32) *clock.Grid {
	return s.know.grid.WithLanes(b.depth, b.index, s.block, int(b.wpb), wi, lanes, s.clock)
}

// carried is what lanes of a warp bring to a barrier: what they and those before them have published and observed.
func (d *Detector) carried(b *block, wi, lanes uint32) (published, observed passed) {
	if !b.ordering {
		return passed{}, passed{}
	}
	w := &b.warps[wi]
	if w.each == nil {
		published, observed = w.same.published, w.same.observed
	} else {
		for m := lanes; m != 0; m &= m - 1 {
			v := &w.each[bits.TrailingZeros32(m)]
			published, observed = d.joinPassed(published, v.published), d.joinPassed(observed, v.observed)
		}
	}
	if w.syncs == nil {
		return published, observed
	}
	for m := lanes; m != 0; {
		first := &w.syncs[bits.TrailingZeros32(m)]
		var alike uint32
		for n := m; n != 0; n &= n - 1 {
			if l := bits.TrailingZeros32(n); w.syncs[l].last == first.last {
				alike |= 1 << uint(l)
				observed = d.joinPassed(observed, w.syncs[l].observed)
			}
		}
		if first.last != nil {
			published = d.joinPassed(published, passed{first.last.gridOf(b, wi, alike), first.last.beyond})
		}
		m &^= alike
	}
	return published, observed
}

// settled forgets of lanes that have met at a barrier what their view now says.
func (w *warp) settled(lanes uint32) {
	if w.syncs == nil {
		return
	}
	for m := lanes; m != 0; m &= m - 1 {
		s := &w.syncs[bits.TrailingZeros32(m)]
		s.last, s.observed = nil, passed{}
	}
}

// published is what fences before the lane in its block have published.
func (d *Detector) published(b *block, wi uint32, lane int) passed {
	w := &b.warps[wi]
	g := w.view(lane).published
	if w.syncs != nil {
		if s := w.syncs[lane].last; s != nil {
			g = d.joinPassed(g, passed{s.grid(b, wi, lane), s.beyond})
		}
	}
	return g
}

// before is what a lane knew of other blocks at the fence.sc that published tells of; nil when it tells of none of its own.
func (w *warp) before(lane int) *clock.Grid {
	if w.syncs == nil || w.syncs[lane].last == nil {
		return nil
	}
	return w.syncs[lane].last.know.grid
}

// takeIn lets a fence.sc of lanes learn what reads before it in its block have observed.
func (d *Detector) takeIn(w *warp, b *block, lanes uint32) {
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		v := *w.view(lane)
		g := v.observed
		own := w.syncs != nil && w.syncs[lane].observed.grid != nil
		if own {
			g = d.joinPassed(g, w.syncs[lane].observed)
			w.syncs[lane].observed = passed{}
		}
		if g.grid == nil {
			continue
		}
		v.know = d.learn(v.know, b, record{b.launch, g.grid, g.beyond})
		v.observed = passed{}
		if !own && w.each == nil && w.live&^lanes == 0 && noneObserved(w, lanes) {
			w.set(lanes, &v)
			return
		}
		w.set(1<<uint(lane), &v)
	}
}

func noneObserved(w *warp, lanes uint32) bool {
	if w.syncs == nil {
		return true
	}
	for m := lanes; m != 0; m &= m - 1 {
		if w.syncs[bits.TrailingZeros32(m)].observed.grid != nil {
			return false
		}
	}
	return true
}
