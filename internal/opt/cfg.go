package opt

import (
	"cmp"
	"slices"
)

// DomTree is the dominator tree.
type DomTree struct {
	idom     []int // by block ID; -1 for the entry and for unreachable blocks
	blocks   []*Block
	pre, end []int // intervals of the tree walk
}

// Dominates reports whether every path to b passes a. A block dominates itself.
func (t *DomTree) Dominates(a, b *Block) bool {
	return t.pre[a.ID] >= 0 && t.pre[a.ID] <= t.pre[b.ID] && t.end[b.ID] <= t.end[a.ID]
}

// Dominators computes the dominator tree (Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm").
func Dominators(f *Func) *DomTree {
	post := blockPostorder(f)
	idom := dominators(len(f.Blocks), post, func(b *Block) []*Block { return b.Preds })
	return newDomTree(idom, f.Blocks)
}

func newDomTree(idom []int, blocks []*Block) *DomTree {
	n, root := len(idom), blocks[0].ID
	t := &DomTree{idom: idom, blocks: blocks, pre: make([]int, n), end: make([]int, n)}
	kids := make([][]int, n)
	for b, d := range idom {
		t.pre[b], t.end[b] = -1, -1
		if d >= 0 && b != root {
			kids[d] = append(kids[d], b)
		}
	}
	clock := 0
	type visit struct{ b, i int }
	stack := []visit{{root, 0}}
	t.pre[root] = 0
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.i < len(kids[top.b]) {
			k := kids[top.b][top.i]
			top.i++
			clock++
			t.pre[k] = clock
			stack = append(stack, visit{k, 0})
			continue
		}
		t.end[top.b] = clock
		stack = stack[:len(stack)-1]
	}
	return t
}

func blockPostorder(f *Func) []*Block {
	seen := make([]bool, len(f.Blocks))
	var order []*Block
	type visit struct {
		b *Block
		i int
	}
	stack := []visit{{f.Blocks[0], 0}}
	seen[f.Blocks[0].ID] = true
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.i < len(top.b.Succs) {
			s := top.b.Succs[top.i]
			top.i++
			if !seen[s.ID] {
				seen[s.ID] = true
				stack = append(stack, visit{s, 0})
			}
			continue
		}
		order = append(order, top.b)
		stack = stack[:len(stack)-1]
	}
	return order
}

func dominators(n int, post []*Block, preds func(*Block) []*Block) []int {
	num := make([]int, n)
	idom := make([]int, n)
	for i := range num {
		num[i], idom[i] = -1, -1
	}
	for i, b := range post {
		num[b.ID] = i
	}
	root := post[len(post)-1]
	idom[root.ID] = root.ID
	for changed := true; changed; {
		changed = false
		for i := len(post) - 2; i >= 0; i-- {
			b := post[i]
			now := -1
			for _, p := range preds(b) {
				if num[p.ID] < 0 || idom[p.ID] < 0 {
					continue
				}
				if now < 0 {
					now = p.ID
					continue
				}
				x, y := now, p.ID
				for x != y {
					for num[x] < num[y] {
						x = idom[x]
					}
					for num[y] < num[x] {
						y = idom[y]
					}
				}
				now = x
			}
			if idom[b.ID] != now {
				idom[b.ID], changed = now, true
			}
		}
	}
	idom[root.ID] = -1
	return idom
}

// Loop is a natural loop: its header and the blocks that reach a back edge to it.
type Loop struct {
	Header *Block
	Blocks map[*Block]bool
	Parent *Loop
	Depth  int
}

// Loops finds the natural loops and the innermost loop of every block (by block ID; nil outside loops).
func Loops(f *Func, dom *DomTree) []*Loop {
	byHeader := map[*Block]*Loop{}
	var heads []*Block
	for _, b := range f.Blocks {
		for _, s := range b.Succs {
			if dom.pre[b.ID] < 0 || !dom.Dominates(s, b) {
				continue
			}
			l := byHeader[s]
			if l == nil {
				l = &Loop{Header: s, Blocks: map[*Block]bool{s: true}}
				byHeader[s] = l
				heads = append(heads, s)
			}
			work := []*Block{b}
			for len(work) > 0 {
				x := work[len(work)-1]
				work = work[:len(work)-1]
				if l.Blocks[x] {
					continue
				}
				l.Blocks[x] = true
				work = append(work, x.Preds...)
			}
		}
	}
	// Inner loops have fewer blocks: assigning from large to small leaves the innermost.
	slices.SortStableFunc(heads, func(a, b *Block) int { return len(byHeader[b].Blocks) - len(byHeader[a].Blocks) })
	inner := make([]*Loop, len(f.Blocks))
	for _, h := range heads {
		l := byHeader[h]
		l.Parent = inner[h.ID]
		l.Depth = 1
		if l.Parent != nil {
			l.Depth = l.Parent.Depth + 1
		}
		for b := range l.Blocks {
			inner[b.ID] = l
		}
	}
	return inner
}

// Order sorts the blocks into a weak topological order: the blocks of a loop are consecutive and precede the code after
// the loop. Among the threads of a warp those in the first block run first, so this order is what makes them
// reconverge. Unreachable blocks are dropped.
func Order(f *Func) {
	post := blockPostorder(f)
	live := make([]bool, len(f.Blocks))
	for _, b := range post {
		live[b.ID] = true
	}
	drop(f, live)
	renumber(f, f.Blocks)
	dom := Dominators(f)
	loops := Loops(f, dom)
	// A depth-first walk that first takes the edges out of the innermost loop puts them last in reverse postorder.
	seen := make([]bool, len(f.Blocks))
	var out []*Block
	depthShared := func(from, to *Block) int {
		n := 0
		for l := loops[from.ID]; l != nil; l = l.Parent {
			if l.Blocks[to] {
				n++
			}
		}
		return n
	}
	type visit struct {
		b     *Block
		succs []*Block
	}
	start := func(b *Block) visit {
		// Otherwise the blocks keep their source order: those that fall through come first.
		s := slices.Clone(b.Succs)
		slices.SortStableFunc(s, func(x, y *Block) int { return cmp.Or(depthShared(b, x)-depthShared(b, y), y.ID-x.ID) })
		return visit{b, s}
	}
	seen[0] = true
	stack := []visit{start(f.Blocks[0])}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.succs) > 0 {
			s := top.succs[0]
			top.succs = top.succs[1:]
			if !seen[s.ID] {
				seen[s.ID] = true
				stack = append(stack, start(s))
			}
			continue
		}
		out = append(out, top.b)
		stack = stack[:len(stack)-1]
	}
	slices.Reverse(out)
	renumber(f, out)
}

// drop removes the blocks that are not live from the function and from the phis of the others.
func drop(f *Func, live []bool) {
	var kept []*Block
	for _, b := range f.Blocks {
		if !live[b.ID] {
			for _, in := range b.Instrs {
				for _, v := range in.Dst {
					if v != NoValue {
						f.Values[v].Def = nil
					}
				}
			}
			continue
		}
		kept = append(kept, b)
		for i := len(b.Preds) - 1; i >= 0; i-- {
			if !live[b.Preds[i].ID] {
				dropPred(b, i)
			}
		}
	}
	f.Blocks = kept
}

// dropPred removes the i-th incoming edge of b.
func dropPred(b *Block, i int) {
	b.Preds = slices.Delete(b.Preds, i, i+1)
	for _, in := range b.Instrs {
		if in.Op != Phi {
			break
		}
		in.Args = slices.Delete(in.Args, i, i+1)
	}
}

func renumber(f *Func, blocks []*Block) {
	f.Blocks = blocks
	for i, b := range blocks {
		b.ID = i
	}
}
