package explore

import (
	"math"
	"slices"

	"fencepost.dev/fencepost/internal/verify/model"
)

// This file implements the search by reads-from classes: it chooses the sources of reads, and leaves coherence order
// open.
//
// Without axiom SC only Coherence and Atomicity restrict coherence order, and happens-before does not depend on it. So
// the reads-from relation determines all constraints on coherence order. The writes of a location form blocks. A block
// is a write followed by the updates that read from it one after the other, which must follow it directly; the first
// block begins with the initial write. An access belongs to the block of the write that it is or reads from. Block b
// must precede block c if an access of b happens before an access of c. A coherence order exists if and only if these
// edges have no cycle, no two updates read from one write, and within a block no access of a later write happens before
// one of an earlier write. Every topological order of the blocks is such an order. Locations are independent of each
// other.
//
// A read that is added has no successors, so it adds edges only to the block of its source. It may read from every
// write whose block does not lead to a block that must precede the read. What it acquires adds nothing: that happens
// before a write of the same block. A write that is added may always come last.
//
// Optimal DPOR (algorithm 3) requires that each cut event was added in the one way that the graph before it determines.
// A write can be added in one way only. A read must read from the last write of a block that may be the last of all; of
// several such blocks, it is the one whose first write has the highest thread and index. Such a write always exists and
// is always a possible source. The proof of the algorithm requires nothing else of the choice.

// blocks are the blocks of a location, in a graph from which some events may be left out.
type blocks struct {
	g      *graph
	loc    int32
	number []int32 // by write: its block
	head   []int32 // by block: its first write; initial for block 0
	tail   []int32 // by block: its last write
	low    []uint16
	clocks []uint16 // by block and thread: the first event that belongs to the block, and the number of events that are, or happen before, one that does
	floor  []int32
	leads  []int8
}

// of returns the blocks of loc. All reads must have a source.
func (b *blocks) of(g *graph, loc int32) *blocks { return b.among(g, loc, len(g.events), nil, -1) }

// among returns the blocks of loc for the events before event e and those in keep, without read skip.
func (b *blocks) among(g *graph, loc int32, e int, keep clock, skip int) *blocks {
	b.g, b.loc = g, loc
	b.number = resize(b.number, len(g.events))
	b.head, b.tail, b.low, b.clocks = b.head[:0], b.tail[:0], b.low[:0], b.clocks[:0]
	b.begin(initial)
	l := g.locs[loc]
	shown := func(o int32) bool { return int(o) < e || keep != nil && g.holds(keep, o) }
	for _, w := range l.co {
		if !shown(w) {
			continue
		}
		ev := &g.events[w]
		n := int32(len(b.head))
		if ev.rmw {
			n = b.block(g.events[g.threads[ev.thread].events[ev.index-1]].rf)
			b.tail[n] = w
		} else {
			b.begin(w)
		}
		b.number[w] = n
		b.join(n, w)
	}
	for _, r := range l.reads {
		if w := g.events[r].rf; int(r) != skip && shown(r) && (w == initial || shown(w)) {
			b.join(b.block(w), r)
		}
	}
	return b
}

// only returns the write that is the last one in every coherence order of the events that among would use, in a case
// that is fast to recognise: the write added last, if the others are in its block or happen before it.
func (g *graph) only(loc int32, e int, keep clock) (last int32, ok bool) {
	var hb clock
	chain := int32(initial)
	last = initial
	co := g.locs[loc].co
	for i := len(co) - 1; i >= 0; i-- {
		w := co[i]
		switch {
		case int(w) >= e && (keep == nil || !g.holds(keep, w)):
			continue
		case last == initial:
			last, hb = w, g.hbOf(int(w))
		case w != chain:
			if !g.holds(hb, w) {
				return initial, false
			}
			continue
		}
		chain = initial
		if ev := &g.events[w]; ev.rmw {
			chain = g.events[g.threads[ev.thread].events[ev.index-1]].rf
		}
	}
	return last, true
}

// lastAmong combines among and last.
func (b *blocks) lastAmong(g *graph, loc int32, e int, keep clock) int32 {
	if w, ok := g.only(loc, e, keep); ok {
		return w
	}
	return b.among(g, loc, e, keep, -1).last()
}

func (b *blocks) begin(w int32) {
	b.head, b.tail = append(b.head, w), append(b.tail, w)
	for range b.g.threads {
		b.low, b.clocks = append(b.low, math.MaxUint16), append(b.clocks, 0)
	}
}

// block is the block that write w belongs to.
func (b *blocks) block(w int32) int32 {
	if w == initial {
		return 0
	}
	return b.number[w]
}

// join records that event e belongs to block n.
func (b *blocks) join(n, e int32) {
	ev, threads := &b.g.events[e], len(b.g.threads)
	low := &b.low[int(n)*threads+int(ev.thread)]
	*low = min(*low, ev.index)
	clock(b.clocks[int(n)*threads : (int(n)+1)*threads]).join(b.g.hbOf(int(e)))
}

// before reports whether block i must precede block k, a different block.
func (b *blocks) before(i, k int) bool {
	if i == 0 || k == 0 {
		return i == 0
	}
	n := len(b.g.threads)
	clocks := b.clocks[k*n : (k+1)*n]
	for t, low := range b.low[i*n : (i+1)*n] {
		if low < clocks[t] {
			return true
		}
	}
	return false
}

// final reports whether block i may be the last of the blocks that are not placed yet.
func (b *blocks) final(i int, placed []bool) bool {
	for k := range b.head {
		if i != k && (placed == nil || !placed[k]) && b.before(i, k) {
			return false
		}
	}
	return true
}

// latest returns the block that is chosen as the last one of those that are not placed yet.
func (b *blocks) latest(placed []bool) int {
	best := -1
	for i, w := range b.head {
		if placed != nil && placed[i] || !b.final(i, placed) {
			continue
		}
		if best <= 0 || b.g.compare(w, b.head[best]) > 0 {
			best = i
		}
	}
	if best < 0 {
		panic("BUG: the reads of a location allow no coherence order")
	}
	return best
}

// compare compares two events by thread and index.
func (g *graph) compare(a, b int32) int {
	x, y := &g.events[a], &g.events[b]
	if x.thread != y.thread {
		return int(x.thread) - int(y.thread)
	}
	return int(x.index) - int(y.index)
}

// last is the write that is chosen as the last one.
func (b *blocks) last() int32 { return b.tail[b.latest(nil)] }

// mayBeLast reports whether write w is the last one in some coherence order.
func (b *blocks) mayBeLast(w int32) bool {
	n := b.block(w)
	return b.tail[n] == w && b.final(int(n), nil)
}

// ends returns the writes that may be the last ones.
func (b *blocks) ends() (out []int32) {
	for i, w := range b.tail {
		if b.final(i, nil) {
			out = append(out, w)
		}
	}
	return out
}

// coherence returns a coherence order that ends with write last, which must be a possible last write.
func (b *blocks) coherence(last int32) []int32 {
	placed := make([]bool, len(b.head))
	order := []int32{b.block(last)}
	placed[order[0]] = true
	for len(order) < len(placed) {
		i := b.latest(placed)
		placed[i] = true
		order = append(order, int32(i))
	}
	slices.Reverse(order)
	var out []int32
	for _, n := range order {
		for _, w := range b.g.locs[b.loc].co { // updates were added after their sources
			if b.number[w] == n {
				out = append(out, w)
			}
		}
	}
	return out
}

// sources appends the possible sources of read r, which has no successors.
func (b *blocks) sources(g *graph, r int, out []int32) []int32 {
	loc := g.events[r].op.Loc
	l, hb := g.locs[loc], g.hbOf(r)
	if w, ok := g.only(loc, len(g.events), nil); ok && (w == initial || g.holds(hb, w)) {
		return append(out, w)
	}
	b.among(g, loc, len(g.events), nil, r)
	// For each block: the last write before which r must not read, as an index in co; -1 is the initial write, and
	// math.MinInt32 means none.
	b.floor, b.leads = resize(b.floor, len(b.head)), resize(b.leads, len(b.head))
	for i := range b.floor {
		b.floor[i], b.leads[i] = math.MinInt32, 0
	}
	b.floor[0] = initial
	raise := func(w int32) {
		if w != initial {
			n := b.number[w]
			b.floor[n] = max(b.floor[n], g.events[w].rank)
		}
	}
	for _, w := range l.co {
		if g.holds(hb, w) {
			raise(w)
		}
	}
	for _, o := range l.reads {
		if int(o) != r && g.holds(hb, o) {
			raise(g.events[o].rf)
		}
	}
	for i := len(l.co) - 1; i >= 0; i-- {
		if n := b.number[l.co[i]]; int32(i) >= b.floor[n] && !b.misleads(int(n)) {
			out = append(out, l.co[i])
		}
	}
	if b.floor[0] == initial && !b.misleads(0) {
		out = append(out, initial)
	}
	return out
}

// misleads reports whether block i must precede another one that must precede the source.
func (b *blocks) misleads(i int) bool {
	const no, yes = 1, 2
	if b.leads[i] == 0 {
		b.leads[i] = no
		for k := range b.head {
			if k != i && b.before(i, k) && (b.floor[k] != math.MinInt32 || b.misleads(k)) {
				b.leads[i] = yes
				break
			}
		}
	}
	return b.leads[i] == yes
}

// readAny explores what follows read e, the last event, once for each possible source. The source that e must have to
// be cut need not come first.
func (x *explorer) readAny(e int) {
	g := x.g
	var few [16]int32
	sources := x.blocks.sources(g, e, few[:0])
	part := x.part
	x.part /= float64(len(sources))
	for _, w := range sources {
		g.reads(e, w)
		x.completeRead(e, true)
		g.threads[g.events[e].thread].op = g.events[e].op
	}
	x.part = part
}

// serveAny lets read r read from write w, which revisits it, if possible.
func (x *explorer) serveAny(r, w int) {
	g := x.g
	wv := &g.events[w]
	l := g.locs[wv.op.Loc]
	if wv.rmw && g.updated(g.events[g.threads[wv.thread].events[wv.index-1]].rf, l) {
		return
	}
	g.place(w, len(l.co))
	may := !wv.rmw // it may come last, because nothing reads from it
	if !may {
		_, may = g.only(wv.op.Loc, len(g.events), nil)
	}
	var few [16]int32
	if may || slices.Contains(x.blocks.sources(g, r, few[:0]), int32(w)) {
		x.served(r, w, true)
	}
	g.unplace(w)
}

// updated reports whether an update reads from w (Atomicity: no other does).
func (g *graph) updated(w int32, l *location) bool {
	for _, u := range l.co {
		if ev := &g.events[u]; ev.rmw && g.events[g.threads[ev.thread].events[ev.index-1]].rf == w {
			return true
		}
	}
	return false
}

// ordersSC reports whether op, the next step of thread t, is sc, and axiom SC may order it and an event of another
// thread. The axiom orders no others: of two sc events of one thread the later precedes the other in psc only if
// Coherence does not hold.
func (g *graph) ordersSC(t int, op *Op) bool {
	if op.Order != model.SC || g.sc == 0 {
		return false
	}
	next := event{op: *op, thread: uint16(t), kind: model.R, order: op.Order}
	if op.Kind == Fence {
		next.kind = model.F
	}
	for i := range g.events {
		if ev := &g.events[i]; ev.order == model.SC && int(ev.thread) != t && g.includes(ev, &next) {
			return true
		}
	}
	return false
}

// lastRead reports whether in some coherence order every spinning thread has read the last values.
func (x *explorer) lastRead() bool {
	g, read, ok := x.g, map[int32]int64{}, true
	for t := range g.threads {
		if g.threads[t].op.Kind != Await {
			continue
		}
		g.iteration(t, func(r int32) {
			ev := &g.events[r]
			loc := ev.op.Loc
			other, known := read[loc]
			read[loc] = ev.value
			ok = ok && (!known || other == ev.value) &&
				(known || slices.ContainsFunc(x.blocks.of(g, loc).ends(), func(w int32) bool { return g.value(w, loc) == ev.value }))
		})
	}
	return ok
}

// lastValues calls Leaf for a complete class, once for each combination of the last values of locations.
func (x *explorer) lastValues(locations []int32) {
	g := x.g
	for i, loc := range locations {
		ends := x.blocks.of(g, loc).ends()
		if len(ends) == 1 {
			continue
		}
		for k, w := range ends {
			value := g.value(w, loc)
			if slices.ContainsFunc(ends[:k], func(o int32) bool { return g.value(o, loc) == value }) {
				continue
			}
			x.view.ends[loc] = w
			x.lastValues(locations[i+1:])
		}
		delete(x.view.ends, loc)
		return
	}
	if !x.result.Stopped {
		x.show(Complete)
	}
}

// end is the last write in the coherence order that is shown.
func (x *graphView) end(loc int32) int32 {
	if w, ok := x.ends[loc]; ok {
		return w
	}
	return x.blocks.of(x.g, loc).last()
}
