package isa

import "slices"

// flow computes Rank and IPDom of a function.
func flow(f *Func) {
	g := blocksOf(f)
	order := g.weakOrder()
	f.Rank = make([]int32, len(f.Insts))
	rank := int32(0)
	for _, b := range order {
		for i := g.start[b]; i < g.start[b+1]; i++ {
			f.Rank[i] = rank
			rank++
		}
	}
	pdom := g.postDominators(order)
	f.IPDom = make([]int32, len(f.Insts))
	for b := range g.blocks() {
		last := g.start[b+1] - 1
		if f.Insts[last].Class != Branch {
			continue
		}
		f.IPDom[last] = -1
		if p := pdom[b]; p >= 0 {
			f.IPDom[last] = g.start[p]
		}
	}
}

// graph is the control flow of a function: blocks of instructions, block b from start[b] to start[b+1].
type graph struct {
	start []int32
	succ  [][]int32
	exits []bool // the block can leave the function

	// Scratch of components, by block.
	num, low []int32
	onStack  []bool
}

func (g *graph) blocks() int { return len(g.succ) }

// leaves reports whether control does not continue after an instruction, and whether it leaves the function there.
func leaves(in *Inst) (stops, exits bool) {
	switch in.Class {
	case Ret, Exit, Trap:
		return in.Guard < 0, true
	case Branch:
		return in.Guard < 0, false
	case Call:
		if in.Callee != nil && in.Callee.NoReturn {
			return false, true // it may leave; the code after it stays reachable
		}
	}
	return false, false
}

// blocksOf divides a function into blocks. The last instruction never falls through: see body.end.
func blocksOf(f *Func) *graph {
	n := len(f.Insts)
	heads := make([]bool, n+1)
	heads[0], heads[n] = true, true
	for i := range f.Insts {
		in := &f.Insts[i]
		for _, t := range in.Targets {
			heads[t] = true
		}
		if stops, exits := leaves(in); stops || exits || in.Class == Branch {
			heads[i+1] = true
		}
	}
	g := &graph{}
	blockAt := make([]int32, n+1)
	for i := range heads {
		if heads[i] {
			blockAt[i] = int32(len(g.start))
			g.start = append(g.start, int32(i))
		}
	}
	count := len(g.start) - 1
	g.succ = make([][]int32, count)
	g.exits = make([]bool, count)
	for b := range count {
		last := g.start[b+1] - 1
		in := &f.Insts[last]
		stops, exits := leaves(in)
		g.exits[b] = exits
		for _, t := range in.Targets {
			if s := blockAt[t]; !slices.Contains(g.succ[b], s) {
				g.succ[b] = append(g.succ[b], s)
			}
		}
		if next := int32(b + 1); !stops && b+1 < count && !slices.Contains(g.succ[b], next) {
			g.succ[b] = append(g.succ[b], next)
		}
	}
	return g
}

// weakOrder returns the blocks in a weak topological order: of a strongly connected component first its head, then the
// rest of the component in such an order; the components are ordered along the edges between them. So every block of a
// loop precedes the blocks that follow the loop. Unreachable blocks may be anywhere.
func (g *graph) weakOrder() []int32 {
	n := g.blocks()
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	g.num, g.low, g.onStack = make([]int32, n), make([]int32, n), make([]bool, n)
	out := make([]int32, 0, n)
	// A stack of regions still to be ordered. Each is a set of blocks, with the block to begin at in front.
	work := [][]int32{all}
	single := make([]bool, n)
	for len(work) > 0 {
		region := work[len(work)-1]
		work = work[:len(work)-1]
		if len(region) == 1 && single[region[0]] {
			out = append(out, region[0])
			continue
		}
		parts := g.components(region, single)
		work = append(work, parts...)
	}
	return out
}

// components divides a region into its strongly connected components, the last in topological order first (so that the
// top of a stack is the first). A component that is a loop is divided again without its head, which becomes a component
// of its own. The numbering is Tarjan's, with an explicit stack, because a function may have very many blocks.
func (g *graph) components(region []int32, single []bool) [][]int32 {
	for _, b := range region {
		g.num[b] = unseen
	}
	w := &walk{g: g}
	for _, b := range region {
		if g.num[b] == unseen {
			w.from(b)
		}
	}
	for _, b := range region {
		g.num[b] = outside
	}
	return splitLoops(w.parts, single)
}

// The values of graph.num for blocks without a number.
const outside, unseen = 0, -1

// walk is one run of Tarjan's algorithm.
type walk struct {
	g      *graph
	frames []frame
	stack  []int32 // numbered blocks that are in no component yet
	parts  [][]int32
	last   int32 // the last number assigned
}

func (w *walk) enter(b int32) {
	w.last++
	w.g.num[b], w.g.low[b] = w.last, w.last
	w.stack, w.g.onStack[b] = append(w.stack, b), true
	w.frames = append(w.frames, frame{b: b})
}

func (w *walk) from(root int32) {
	num, low := w.g.num, w.g.low
	w.enter(root)
	for len(w.frames) > 0 {
		f := &w.frames[len(w.frames)-1]
		if f.next < len(w.g.succ[f.b]) {
			s := w.g.succ[f.b][f.next]
			f.next++
			switch {
			case num[s] == outside:
			case num[s] == unseen:
				w.enter(s)
			case w.g.onStack[s]:
				low[f.b] = min(low[f.b], num[s])
			}
			continue
		}
		b := f.b
		w.frames = w.frames[:len(w.frames)-1]
		if n := len(w.frames); n > 0 {
			up := w.frames[n-1].b
			low[up] = min(low[up], low[b])
		}
		if low[b] == num[b] {
			w.part(b)
		}
	}
}

// part removes the component entered at b from the stack.
func (w *walk) part(b int32) {
	at := len(w.stack) - 1
	for w.stack[at] != b {
		at--
	}
	p := slices.Clone(w.stack[at:])
	w.stack = w.stack[:at]
	for _, x := range p {
		w.g.onStack[x] = false
	}
	w.parts = append(w.parts, p)
}

// splitLoops separates the head from each component with several blocks. Components are in reverse order, so the head
// goes after the rest.
func splitLoops(parts [][]int32, single []bool) [][]int32 {
	var out [][]int32
	for _, p := range parts {
		head := p[0] // the block at which the numbering entered the component
		if len(p) > 1 {
			out = append(out, p[1:])
		}
		single[head] = true
		out = append(out, p[:1])
	}
	return out
}

// postDominators returns the immediate post-dominator of each block, -1 for the exit of the function.
func (g *graph) postDominators(order []int32) []int32 {
	n := g.blocks()
	exit := int32(n)
	preds := make([][]int32, n+1)
	edges := make([][]int32, n)
	for b := range n {
		edges[b] = g.succ[b]
		if g.exits[b] {
			edges[b] = append(slices.Clone(g.succ[b]), exit)
		}
		for _, s := range edges[b] {
			preds[s] = append(preds[s], int32(b))
		}
	}
	reached := make([]bool, n+1)
	reach := func(from int32) {
		work := []int32{from}
		reached[from] = true
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			for _, p := range preds[b] {
				if !reached[p] {
					reached[p] = true
					work = append(work, p)
				}
			}
		}
	}
	reach(exit)
	// An endless loop has no exit. Connect its last block to the exit, so that its blocks have an order too.
	for i := len(order) - 1; i >= 0; i-- {
		if b := order[i]; !reached[b] {
			edges[b] = append(slices.Clone(edges[b]), exit)
			preds[exit] = append(preds[exit], b)
			reach(b)
		}
	}
	return immediatePostDominators(edges, preds, exit)
}

// immediatePostDominators is the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm") on the
// reversed graph.
func immediatePostDominators(edges, preds [][]int32, exit int32) []int32 {
	post, number := postOrder(preds, exit)
	idom := make([]int32, exit+1)
	for i := range idom {
		idom[i] = -1
	}
	idom[exit] = exit
	meet := func(x, y int32) int32 {
		for x != y {
			for number[x] < number[y] {
				x = idom[x]
			}
			for number[y] < number[x] {
				y = idom[y]
			}
		}
		return x
	}
	for changed := true; changed; {
		changed = false
		for i := len(post) - 2; i >= 0; i-- {
			b := post[i]
			best := int32(-1)
			for _, s := range edges[b] {
				switch {
				case idom[s] < 0:
				case best < 0:
					best = s
				default:
					best = meet(s, best)
				}
			}
			if best >= 0 && idom[b] != best {
				idom[b] = best
				changed = true
			}
		}
	}
	for b := range idom {
		if idom[b] == exit {
			idom[b] = -1
		}
	}
	return idom[:exit]
}

// postOrder numbers the nodes that lead to root, in post-order of a walk from root against the edges: root comes last.
func postOrder(preds [][]int32, root int32) (post, number []int32) {
	number = make([]int32, len(preds))
	seen := make([]bool, len(preds))
	frames := []frame{{b: root}}
	seen[root] = true
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		if f.next < len(preds[f.b]) {
			p := preds[f.b][f.next]
			f.next++
			if !seen[p] {
				seen[p] = true
				frames = append(frames, frame{b: p})
			}
			continue
		}
		number[f.b] = int32(len(post))
		post = append(post, f.b)
		frames = frames[:len(frames)-1]
	}
	return post, number
}

// frame is a node on the stack of a depth-first walk, with the number of edges already followed.
type frame struct {
	b    int32
	next int
}
