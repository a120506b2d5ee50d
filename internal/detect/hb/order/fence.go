package order

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// patterns is what a lane must remember of release and acquire patterns it has begun.
type patterns struct {
	fenced released              // what it had done at its last fence
	own    map[location]released // the same at its last release operation on a location
	seen   []observation         // what its strong reads observed and nothing has acquired yet
	// fenceSC is what the lane had done at its last fence.sc beyond the block, observed what its reads have seen of such
	// fences and none of its own has acquired. Both are empty after a barrier: its view says it then.
	fenceSC  *View
	observed passed
}

// released are the views that a strong write publishes: to threads of the same block, to others.
type released struct{ narrow, wide *View }

// newer gives the later of both, scope by scope.
func (r released) newer(o released) released {
	if r.narrow == nil || o.narrow != nil && o.narrow.Epoch > r.narrow.Epoch {
		r.narrow = o.narrow
	}
	if r.wide == nil || o.wide != nil && o.wide.Epoch > r.wide.Epoch {
		r.wide = o.wide
	}
	return r
}

// patternsOf gives those of a lane.
func (w *warp) patternsOf(lane int) *patterns {
	if w.patterns == nil {
		w.patterns = new([32]patterns)
	}
	return &w.patterns[lane]
}

// fence ends acquire patterns and begins release patterns.
func (b *Block) fence(wi uint32, e *event.Event) {
	w := &b.warps[wi]
	wide := e.Scope >= event.ScopeGPU
	sc := wide && e.Order == event.SC
	if sc {
		b.fencesSC = true
		b.acquireFences(w, e.Mask)
	}
	if e.Order != event.Release && w.patterns != nil {
		for m := e.Mask; m != 0; m &= m - 1 {
			b.acquire(w, bits.TrailingZeros32(m), nil, wide)
		}
	}
	if e.Order != event.Acquire {
		for m := e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			p, v := w.patternsOf(lane), w.view(lane)
			p.fenced.narrow = v
			if wide {
				p.fenced.wide = v
			}
			if sc {
				p.fenceSC = v
			}
		}
	}
	b.next(wi, e.Mask, e)
}

// What fence.sc orders beyond its patterns: a fence.sc that its block ordered before a strong write synchronises with a
// fence.sc that the observer's block ordered after its read. A thread therefore carries what its block's fences have
// published (knowledge.published, patterns.fenceSC) and what reads in its block have observed of such fences
// (knowledge.observed, patterns.observed), through barriers and bar.warp.sync, as trees of its own launch.

// passed is what fences pass on: knowledge of their launch, and beyond it. Zero (no grid): nothing.
type passed struct {
	grid   *clock.Grid
	beyond *clock.Foreign
}

func (o *Order) joinPassed(p, q passed) passed {
	return passed{o.join.Join(p.grid, q.grid), p.beyond.Join(q.beyond)}
}

// gridOf gives a view that lanes of a warp of the block had, as one tree, their own epochs included.
func (b *Block) gridOf(v *View, wi, lanes uint32) *clock.Grid {
	return v.grid.WithLanes(b.depth, b.Index, v.block, len(b.warps), wi, lanes, v.Epoch)
}

// carried is what lanes of a warp bring to a barrier: what they and those before them have published and observed.
func (b *Block) carried(w *warp, wi, lanes uint32) (published, observed passed) {
	if !b.fencesSC {
		return passed{}, passed{}
	}
	for v := range w.of(lanes) {
		published, observed = b.order.joinPassed(published, v.published), b.order.joinPassed(observed, v.observed)
	}
	if w.patterns == nil {
		return published, observed
	}
	for m := lanes; m != 0; {
		first := w.patterns[bits.TrailingZeros32(m)].fenceSC
		var alike uint32
		for n := m; n != 0; n &= n - 1 {
			if p := &w.patterns[bits.TrailingZeros32(n)]; p.fenceSC == first {
				alike |= n & -n
				observed = b.order.joinPassed(observed, p.observed)
			}
		}
		if first != nil {
			published = b.order.joinPassed(published, passed{b.gridOf(first, wi, alike), first.beyond})
		}
		m &^= alike
	}
	return published, observed
}

// settled forgets of lanes that have met at a barrier what their view now says.
func (w *warp) settled(lanes uint32) {
	if w.patterns == nil {
		return
	}
	for m := lanes; m != 0; m &= m - 1 {
		p := &w.patterns[bits.TrailingZeros32(m)]
		p.fenceSC, p.observed = nil, passed{}
	}
}

// publishedFences is what fences before a lane in its block have published.
func (b *Block) publishedFences(w *warp, wi uint32, lane int) passed {
	all := w.view(lane).published
	if w.patterns != nil {
		if v := w.patterns[lane].fenceSC; v != nil {
			all = b.order.joinPassed(all, passed{b.gridOf(v, wi, 1<<uint(lane)), v.beyond})
		}
	}
	return all
}

// acquireFences lets a fence.sc of lanes learn what reads before it in its block have observed.
func (b *Block) acquireFences(w *warp, lanes uint32) {
	for v, having := range w.of(lanes) {
		seen := v.observed
		if w.patterns != nil {
			for m := having; m != 0; m &= m - 1 {
				lane := bits.TrailingZeros32(m)
				if own := w.patterns[lane].observed; own.grid != nil {
					w.patterns[lane].observed = passed{}
					own = b.order.joinPassed(seen, own)
					w.set(m&-m, &View{b.learn(v.knowledge, record{b.Launch, own.grid, own.beyond}), v.Epoch})
					having &^= m & -m
				}
			}
		}
		if seen.grid != nil && having != 0 {
			w.set(having, &View{b.learn(v.knowledge, record{b.Launch, seen.grid, seen.beyond}), v.Epoch})
		}
	}
}
