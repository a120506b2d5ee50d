package order

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// patterns is what a lane must remember of release and acquire patterns it has begun, but for its fences.
type patterns struct {
	own      map[location]released // what it had done at its last release operation on a location
	seen     []observation         // what its strong reads observed and nothing has acquired yet
	acquired acquirable            // the last that it has acquired all of
	observed passed                // what its reads have seen of fence.sc beyond the block and none of its own has acquired
	inner    passed                // what they have seen of fence.sc of the block, where it is no part of a cluster
}

// fenced is what lanes of a warp had done at their last fences, by what these publish to. Nil: there was none. Sc, inner,
// patterns.observed and patterns.inner are empty after a barrier: its view says it then.
type fenced struct {
	narrow, wide, system views // as of released
	sc                   views // of a fence.sc beyond the block
	inner                views // of any fence.sc, where the block is no part of a cluster
}

// released are the views that a strong write publishes: to threads of the same block, to others, and to those of other devices, where the
// run has several.
type released struct{ narrow, wide, system *View }

// newer gives the later of both, scope by scope.
func (r released) newer(o released) released {
	if r.narrow == nil || o.narrow != nil && o.narrow.Epoch > r.narrow.Epoch {
		r.narrow = o.narrow
	}
	if r.wide == nil || o.wide != nil && o.wide.Epoch > r.wide.Epoch {
		r.wide = o.wide
	}
	if r.system == nil || o.system != nil && o.system.Epoch > r.system.Epoch {
		r.system = o.system
	}
	return r
}

// patternsOf gives those of a lane.
func (w *warp) patternsOf(lane int) *patterns {
	if w.patterns == nil {
		w.patterns = new([32]*patterns)
	}
	if w.patterns[lane] == nil {
		w.patterns[lane] = &patterns{}
	}
	return w.patterns[lane]
}

// any says that a lane has executed a fence that releases.
func (f *fenced) any() bool { return f.narrow.same != nil || f.narrow.each != nil }

// releasedBy gives what a lane had done at its last fences.
func (w *warp) releasedBy(lane int) released {
	f := &w.fenced
	return released{f.narrow.view(lane), f.wide.view(lane), f.system.view(lane)}
}

// fence ends acquire patterns and begins release patterns.
func (b *Block) fence(wi uint32, e *event.Event) {
	w := &b.warps[wi]
	wide := b.beyondBlock(e.Scope)
	system := e.Scope == event.ScopeSys && b.Info.Device != 0
	sc, inner := wide && e.Order == event.SC, !b.clustered && e.Order == event.SC
	if sc || inner {
		b.fencesSC = true
		b.acquireFences(w, e.Mask, wide)
	}
	if e.Order != event.Release && w.patterns != nil {
		for m := e.Mask; m != 0; m &= m - 1 {
			b.acquire(w, bits.TrailingZeros32(m), nil, wide, system)
		}
	}
	if e.Order != event.Acquire {
		b.published = true
		w.since |= e.Mask
		for v, lanes := range w.of(e.Mask) {
			f := &w.fenced
			f.narrow.set(w.live, lanes, v)
			if sc {
				f.sc.set(w.live, lanes, v)
			}
			if inner {
				f.inner.set(w.live, lanes, v)
			}
			if system {
				f.system.set(w.live, lanes, v)
			}
			if wide {
				f.wide.set(w.live, lanes, v)
				b.tell(v, wi, lanes)
			}
		}
	}
	b.next(wi, e.Mask, e)
}

// Handed gives those of the lanes of a strong write, which has been performed, that have handed over by it, as the first of a release
// pattern: what they do now comes after that, and is to begin an epoch, so that the two can be told apart.
func (b *Block) Handed(wi, lanes uint32) uint32 {
	w := &b.warps[wi]
	lanes &= w.since
	w.since &^= lanes
	return lanes
}

// FenceInits lets a lane release, as by a fence of a scope, that operations are complete up to a count, and nothing else of what it has done.
func (b *Block) FenceInits(wi uint32, lane int, scope event.Scope, operations, count uint32) {
	w := &b.warps[wi]
	with := func(v *View) *View {
		if v == nil {
			v = b.first.at(0)
		}
		return v.Knowing(operations, count)
	}
	add := func(r released) released {
		if r.narrow = with(r.narrow); b.beyondBlock(scope) {
			r.wide = with(r.wide)
		}
		return r
	}
	now := add(w.releasedBy(lane))
	w.fenced.narrow.set(w.live, 1<<lane, now.narrow)
	if now.wide != nil {
		w.fenced.wide.set(w.live, 1<<lane, now.wide)
	}
	if p := w.patterns; p != nil && p[lane] != nil {
		for at, r := range p[lane].own {
			p[lane].own[at] = add(r)
		}
	}
	b.published = true
	b.Advance(wi, 1<<lane)
}

// What fence.sc orders beyond its patterns: a fence.sc that its block ordered before a strong write synchronises with a
// fence.sc that the observer's block ordered after its read. A thread therefore carries what its block's fences have
// published (fences.published, fenced.sc) and what reads in its block have observed of such fences
// (fences.observed, patterns.observed), through barriers, those of the cluster included, and bar.warp.sync, as trees of its own launch.
// Within a block fences of all scopes do (inner), unless it is part of a cluster, to which a barrier would carry them.

// fences is what fence.sc before a moment have published, and what reads before it have seen of other such fences. Nil: nothing.
type fences struct {
	published, observed           passed // beyond the block
	innerPublished, innerObserved passed // within it
}

// passed is what fences pass on: knowledge of their launch, and beyond it. Zero (no grid): nothing.
type passed struct {
	grid   *clock.Grid
	beyond *clock.Foreign
}

func (o *Order) joinFences(f, g *fences) *fences {
	switch {
	case f == g || g == nil:
		return f
	case f == nil:
		return g
	}
	return &fences{o.joinPassed(f.published, g.published), o.joinPassed(f.observed, g.observed),
		o.joinPassed(f.innerPublished, g.innerPublished), o.joinPassed(f.innerObserved, g.innerObserved)}
}

func (o *Order) joinPassed(p, q passed) passed {
	return passed{o.join.Join(p.grid, q.grid), p.beyond.Join(q.beyond)}
}

// gridOf gives a view that lanes of a warp of the block had, as one tree, their own epochs included.
func (b *Block) gridOf(v *View, wi, lanes uint32) *clock.Grid {
	k := gridKey{v, b.serial, wi, lanes}
	if m := &b.order.grid; m.gridKey != k {
		m.gridKey, m.grid = k, v.grid.WithLanes(b.depth, b.Index, v.block, len(b.warps), wi, lanes, v.Epoch)
	}
	return b.order.grid.grid
}

// gridKey is what gridOf is asked for: mostly some times in succession.
type gridKey struct {
	view      *View
	block     uint64 // Block.serial
	wi, lanes uint32
}

// carried is what lanes of a warp bring to a barrier: what they and those before them have published and observed.
func (b *Block) carried(w *warp, wi, lanes uint32) (all *fences) {
	o := b.order
	for v := range w.of(lanes) {
		all = o.joinFences(all, v.fences)
	}
	for v, having := range w.fenced.sc.of(lanes) {
		if v != nil {
			all = o.joinFences(all, &fences{published: passed{b.gridOf(v, wi, having), v.beyond}})
		}
	}
	for v, having := range w.fenced.inner.of(lanes) {
		if v != nil {
			all = o.joinFences(all, &fences{innerPublished: passed{b.gridOf(v, wi, having), v.beyond}})
		}
	}
	for m := lanes; m != 0 && w.patterns != nil; m &= m - 1 {
		if p := w.patterns[bits.TrailingZeros32(m)]; p != nil && (p.observed.grid != nil || p.inner.grid != nil) {
			all = o.joinFences(all, &fences{observed: p.observed, innerObserved: p.inner})
		}
	}
	return all
}

// settled forgets of lanes that have met at a barrier what their view now says.
func (w *warp) settled(lanes uint32) {
	w.fenced.sc.set(w.live, lanes, nil)
	w.fenced.inner.set(w.live, lanes, nil)
	for m := lanes; m != 0 && w.patterns != nil; m &= m - 1 {
		if p := w.patterns[bits.TrailingZeros32(m)]; p != nil {
			p.observed, p.inner = passed{}, passed{}
		}
	}
}

// publishedFences is what fences before a lane in its block have published, beyond the block and within it.
func (b *Block) publishedFences(w *warp, wi uint32, lane int) (wide, inner passed) {
	if f := w.view(lane).fences; f != nil {
		wide, inner = f.published, f.innerPublished
	}
	if v := w.fenced.sc.view(lane); v != nil {
		wide = b.order.joinPassed(wide, passed{b.gridOf(v, wi, 1<<uint(lane)), v.beyond})
	}
	if v := w.fenced.inner.view(lane); v != nil {
		inner = b.order.joinPassed(inner, passed{b.gridOf(v, wi, 1<<uint(lane)), v.beyond})
	}
	return wide, inner
}

// acquireFences lets a fence.sc of lanes learn what reads before it in its block have observed, beyond the block only if it is wide.
func (b *Block) acquireFences(w *warp, lanes uint32, wide bool) {
	o := b.order
	for v, having := range w.of(lanes) {
		var seen passed
		if v.fences != nil {
			seen = v.fences.innerObserved
			if wide {
				seen = o.joinPassed(seen, v.fences.observed)
			}
		}
		for m := having; m != 0 && w.patterns != nil; m &= m - 1 {
			p := w.patterns[bits.TrailingZeros32(m)]
			if p == nil || p.inner.grid == nil && !(wide && p.observed.grid != nil) {
				continue
			}
			own := o.joinPassed(seen, p.inner)
			if p.inner = (passed{}); wide {
				own, p.observed = o.joinPassed(own, p.observed), passed{}
			}
			w.learned(m&-m, v, b.learn(v.knowledge, record{b.Launch, own.grid, own.beyond}))
			having &^= m & -m
		}
		if seen.grid != nil && having != 0 {
			w.learned(having, v, b.learn(v.knowledge, record{b.Launch, seen.grid, seen.beyond}))
		}
	}
}
