package candidates

import (
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// cycles are the locations and the CTAs through which a cycle of program order, reads-from and barriers may go.
//
// In such a cycle a thread reads strongly a value that another thread has written. The reader, or a thread of its CTA
// after a barrier that both reach, then writes a value that yet another thread reads strongly, and so on. The nodes of
// the graph here are locations and barriers. A CTA whose threads do not all wait for each other has one node.
//
// Three kinds of cycles are excluded; see ring. First, a cycle through one location only, whose accesses are all
// morally strong: by the values read, each write precedes the next one in causality order, and so in coherence order.
// Second, a cycle in which all reads, except perhaps one, synchronize with the writes they read from, because threads
// acquire after they have read and release before they write: the write that the exception observes would precede
// itself in causality order. Third, a cycle in which each write depends on the read before it.
type cycles struct {
	locs map[int32]bool
	ctas map[int32]bool // the CTAs through whose barriers a cycle may go
	weak map[int32]bool // locations with accesses that are not morally strong with all others: see mixed
}

// cycleNode is a node of the graph: a location or a barrier of a CTA.
type cycleNode struct {
	kind  cycleKind
	of    int32 // the location or CTA
	phase int   // the phase that the barrier begins
}

type cycleKind uint8

const (
	locationNode cycleKind = iota
	barrierNode
)

// cyclesOf derives the cycles from the accesses of the executions without such cycles.
func cyclesOf(p explore.Program, accesses map[explore.Access]bool, segments map[explore.Segment]bool) *cycles {
	g := newCycleGraph(p, accesses, segments)
	c := &cycles{locs: map[int32]bool{}, ctas: map[int32]bool{}, weak: g.weak}
	for _, part := range g.components() {
		var locs, ctas []int32
		for _, n := range part {
			switch n.kind {
			case locationNode:
				locs = append(locs, n.of)
			case barrierNode:
				ctas = append(ctas, n.of)
			}
		}
		apart := slices.ContainsFunc(ctas, func(a int32) bool { return g.apart[a] || g.exchanges[a] })
		if !g.within(part, g.edges) || len(locs) == 0 || len(locs) == 1 && !apart && !g.weak[locs[0]] ||
			len(ctas) == 0 && !g.ring(locs, segments) {
			continue
		}
		for _, l := range locs {
			c.locs[l] = true
		}
		for _, a := range ctas {
			c.ctas[a] = true
		}
	}
	return c
}

// cycleGraph is the graph. Nodes are numbered in the order of their first use.
type cycleGraph struct {
	numbers map[cycleNode]int
	nodes   []cycleNode
	next    [][]int
	edges   map[[2]int]bool
	weak    map[int32]bool // locations with accesses that are not morally strong with all others: see mixed
	apart   map[int32]bool // CTAs whose threads are not all in the same phase
	// exchanges are the CTAs with barriers that order nothing.
	exchanges map[int32]bool
}

func newCycleGraph(p explore.Program, accesses map[explore.Access]bool, segments map[explore.Segment]bool) *cycleGraph {
	g := &cycleGraph{numbers: map[cycleNode]int{}, edges: map[[2]int]bool{}, weak: map[int32]bool{}, apart: map[int32]bool{}, exchanges: map[int32]bool{}}
	places := p.Places()
	phases, last := map[int32]int{}, map[int]int{} // by CTA and by thread: the phase after the last arrival at a barrier
	type by struct {
		loc    int32
		thread int
	}
	readers, writers, kinds := map[by]bool{}, map[by]bool{}, map[int32]map[explore.Access]bool{}
	for a := range accesses {
		cta := places[a.Thread].CTA
		switch {
		case a.Barrier:
			g.apart[cta] = g.apart[cta] || a.Apart
			g.exchanges[cta] = g.exchanges[cta] || a.Exchanges
			phases[cta] = max(phases[cta], a.Phase+1)
			last[a.Thread] = max(last[a.Thread], a.Phase+1)
			continue
		case a.Write:
			writers[by{a.Loc, a.Thread}] = true
		case a.Strong:
			readers[by{a.Loc, a.Thread}] = true
		}
		if kinds[a.Loc] == nil {
			kinds[a.Loc] = map[explore.Access]bool{}
		}
		kinds[a.Loc][explore.Access{Thread: a.Thread, Phase: a.Phase, Write: a.Write, Full: a.Full}] = true
	}
	for r := range readers {
		g.weak[r.loc] = g.mixed(places, kinds[r.loc])
	}
	threads := map[int32]map[int]bool{} // by location: the threads that write it
	for w := range writers {
		if threads[w.loc] == nil {
			threads[w.loc] = map[int]bool{}
		}
		threads[w.loc][w.thread] = true
	}
	others := func(loc int32, thread int) bool { // whether other threads write it
		return len(threads[loc]) > 1 || len(threads[loc]) == 1 && !threads[loc][thread]
	}
	location := func(loc int32) int { return g.number(cycleNode{locationNode, loc, 0}) }
	barrier := func(cta int32, phase int) int { return g.number(cycleNode{barrierNode, cta, phase}) }
	for a := range accesses {
		cta := places[a.Thread].CTA
		begin, end := a.Phase, a.Phase+1
		if g.apart[cta] {
			begin, end = min(begin, 1), 1
		}
		switch {
		case a.Barrier:
		case a.Write && begin > 0:
			g.edge(barrier(cta, begin), location(a.Loc))
		case a.Strong && !a.Write && a.Phase < last[a.Thread] && others(a.Loc, a.Thread):
			g.edge(location(a.Loc), barrier(cta, end))
		}
	}
	for s := range segments {
		if !others(s.Read, s.Thread) {
			continue
		}
		g.edge(location(s.Read), location(s.Write))
	}
	for cta, n := range phases {
		for phase := 1; phase < n && !g.apart[cta]; phase++ {
			g.edge(barrier(cta, phase), barrier(cta, phase+1))
		}
	}
	return g
}

// mixed reports whether some access of a location, given the kinds of its accesses, is neither morally strong with a
// conflicting access nor separated from it by a barrier of the CTA.
func (g *cycleGraph) mixed(places []model.Place, kinds map[explore.Access]bool) bool {
	for a := range kinds {
		if a.Full {
			continue
		}
		cta := places[a.Thread].CTA
		for b := range kinds {
			if a.Thread != b.Thread && (a.Write || b.Write) && (places[b.Thread].CTA != cta || g.apart[cta] || g.exchanges[cta] || a.Phase == b.Phase) {
				return true
			}
		}
	}
	return false
}

// maxRings bounds the number of paths that are followed to find a cycle. Beyond it, ring assumes a cycle.
const maxRings = 1 << 18

// ring reports whether there may be a cycle of program order and reads-from through some of these locations. The
// shortest cycle goes through each thread once, by one segment of it. At least two reads do not synchronize with the
// writes they read from, and some write does not depend on the read before it. An update passes on what synchronizes
// with it, so its own segment only lengthens the path from a write to the read.
func (g *cycleGraph) ring(locs []int32, segments map[explore.Segment]bool) bool {
	of := map[int32][]explore.Segment{} // by the location of the read
	for s := range segments {
		if slices.Contains(locs, s.Read) && slices.Contains(locs, s.Write) {
			of[s.Read] = append(of[s.Read], s)
		}
	}
	tried := 0
	threads := map[int]bool{}
	// from follows the segments after one that writes loc. released says that the last segment which is not an update's
	// own releases. The first segment is not an update's own. loose counts the loose reads so far, and free whether a
	// write was free.
	var from func(first explore.Segment, loc int32, released bool, loose int, free, several bool) bool
	from = func(first explore.Segment, loc int32, released bool, loose int, free, several bool) bool {
		if tried++; tried > maxRings {
			return true
		}
		unsynchronized := func(s explore.Segment) (n int) {
			if !released || !s.Acquires {
				n++
			}
			if g.weak[loc] { // the write that is read is not even observed
				n = 2
			}
			return n
		}
		if loc == first.Read && free && (several || g.weak[loc]) && loose+unsynchronized(first) > 1 {
			return true
		}
		for _, s := range of[loc] {
			if threads[s.Thread] {
				continue
			}
			threads[s.Thread] = true
			n, passes := loose, released
			if !s.Own || g.weak[loc] {
				if n += unsynchronized(s); s.Acquires && s.Releases && !s.Synchronizes {
					n++
				}
				passes = s.Releases
			}
			found := from(first, s.Write, passes, n, free || s.Free, several || s.Write != first.Read)
			if delete(threads, s.Thread); found {
				return true
			}
		}
		return false
	}
	for s := range segments {
		if s.Own && !g.weak[s.Read] || !slices.Contains(locs, s.Read) || !slices.Contains(locs, s.Write) {
			continue
		}
		n := 0
		if s.Acquires && s.Releases && !s.Synchronizes {
			n++
		}
		threads[s.Thread] = true
		found := from(s, s.Write, s.Releases, n, s.Free, s.Write != s.Read)
		if delete(threads, s.Thread); found {
			return true
		}
	}
	return false
}

// within reports whether there is an edge between nodes of a component.
func (g *cycleGraph) within(part []cycleNode, edges map[[2]int]bool) bool {
	in := map[int]bool{}
	for _, n := range part {
		in[g.numbers[n]] = true
	}
	for e := range edges {
		if in[e[0]] && in[e[1]] {
			return true
		}
	}
	return false
}

func (g *cycleGraph) number(n cycleNode) int {
	i, ok := g.numbers[n]
	if !ok {
		i = len(g.nodes)
		g.numbers[n] = i
		g.nodes = append(g.nodes, n)
		g.next = append(g.next, nil)
	}
	return i
}

func (g *cycleGraph) edge(from, to int) {
	if e := [2]int{from, to}; !g.edges[e] {
		g.edges[e] = true
		g.next[from] = append(g.next[from], to)
	}
}

// components returns the strongly connected components (Tarjan's algorithm).
func (g *cycleGraph) components() (out [][]cycleNode) {
	order, low := make([]int, len(g.nodes)), make([]int, len(g.nodes))
	done := make([]bool, len(g.nodes))
	var stack []int
	count := 0
	var visit func(n int)
	visit = func(n int) {
		count++
		order[n], low[n] = count, count
		stack = append(stack, n)
		for _, m := range g.next[n] {
			if order[m] == 0 {
				visit(m)
			}
			if !done[m] {
				low[n] = min(low[n], low[m])
			}
		}
		if low[n] < order[n] {
			return
		}
		var part []cycleNode
		for {
			m := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			done[m] = true
			part = append(part, g.nodes[m])
			if m == n {
				break
			}
		}
		out = append(out, part)
	}
	for n := range g.nodes {
		if order[n] == 0 {
			visit(n)
		}
	}
	return out
}
