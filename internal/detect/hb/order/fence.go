package order

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// patterns holds the release and acquire patterns that a lane has begun, except those by fences that release (see
// fenced).
type patterns struct {
	own      map[location]released // what it had done at its last release operation on each location
	seen     []observation         // what its strong reads observed and has not been acquired
	acquired acquirable            // a cache: the last one that it has acquired completely
	observed passed                // what its reads observed of fence.sc beyond the block, and no fence.sc of its own has acquired
	inner    passed                // the same for fence.sc of any scope of its own block; unused if the block is part of a cluster
}

// fenced holds, for the lanes of a warp, the views at their last fences that release, by the threads that these publish
// to. A nil view: there was none. A barrier clears sc and inner, and patterns.observed and patterns.inner: from then on
// the view holds their content (knowledge.fences).
type fenced struct {
	narrow, wide, system views // as in released
	sc                   views // at a fence.sc with a scope beyond the block
	inner                views // at any fence.sc; unused if the block is part of a cluster
}

// released are the views that a strong write publishes: to threads of the same block (narrow), to threads of other
// blocks (wide), and, in a run with several devices, to threads of other devices (system).
type released struct{ narrow, wide, system *View }

// newer returns for each scope the later view of r and o.
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

// patternsOf returns the patterns of a lane, creating them if necessary.
func (w *warp) patternsOf(lane int) *patterns {
	if w.patterns == nil {
		w.patterns = new([32]*patterns)
	}
	if w.patterns[lane] == nil {
		w.patterns[lane] = &patterns{}
	}
	return w.patterns[lane]
}

// any reports whether a lane has executed a fence that releases.
func (f *fenced) any() bool { return f.narrow.same != nil || f.narrow.each != nil }

// releasedBy returns what a lane had done at its last fences.
func (w *warp) releasedBy(lane int) released {
	f := &w.fenced
	return released{f.narrow.view(lane), f.wide.view(lane), f.system.view(lane)}
}

// fence performs a fence: it completes acquire patterns and begins release patterns.
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

// Handed returns the lanes of a performed strong write for which it is the first write of a release pattern. What they
// do next comes after the release and must begin an epoch, so that accesses before and after it are distinguished.
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

// The following is about what fence.sc orders beyond its patterns. A fence.sc that its block ordered before a strong
// write synchronises with a fence.sc that the observer's block ordered after its read. A thread therefore carries what
// the fences of its block have published (fences.published, fenced.sc), and what reads in its block have observed of
// such fences (fences.observed, patterns.observed). Both pass through barriers, those of clusters included, and through
// bar.warp.sync, as trees of the own launch. Within a block, fences of all scopes do the same (inner). This is left out
// if the block is part of a cluster, since the cluster barrier would carry them out of the block.

// fences is what fence.sc before a moment published, and what reads before it observed of other such fences. nil:
// nothing.
type fences struct {
	published, observed           passed // with scopes beyond the block
	innerPublished, innerObserved passed // within the block
}

// passed is the knowledge that fences pass on: of their launch, and beyond it. The zero value (no grid) is nothing.
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

// gridOf gives, as one tree, a view that lanes of a warp of the block had, together with their own epochs.
func (b *Block) gridOf(v *View, wi, lanes uint32) *clock.Grid {
	k := gridKey{v, b.serial, wi, lanes}
	if m := &b.order.grid; m.gridKey != k {
		m.gridKey, m.grid = k, v.grid.WithLanes(b.depth, b.Index, v.block, len(b.warps), wi, lanes, v.Epoch)
	}
	return b.order.grid.grid
}

// gridKey is the arguments of gridOf. Calls are often repeated with the same arguments.
type gridKey struct {
	view      *View
	block     uint64 // Block.serial
	wi, lanes uint32
}

// carried returns what lanes of a warp bring to a barrier: what they, and those whose fences they know, have published
// and observed.
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

// settled drops, for lanes that have met at a barrier, what their view now holds.
func (w *warp) settled(lanes uint32) {
	w.fenced.sc.set(w.live, lanes, nil)
	w.fenced.inner.set(w.live, lanes, nil)
	for m := lanes; m != 0 && w.patterns != nil; m &= m - 1 {
		if p := w.patterns[bits.TrailingZeros32(m)]; p != nil {
			p.observed, p.inner = passed{}, passed{}
		}
	}
}

// publishedFences returns what fence.sc that precede a lane in its block have published, beyond the block and within
// it.
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

// acquireFences makes a fence.sc of lanes acquire what reads that precede it in its block have observed. What they
// observed beyond the block is included only if wide.
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
