package opt

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomGraph makes a function of n blocks with random edges. Each block has at most two successors.
func randomGraph(r *rand.Rand) *Func {
	n := 2 + r.IntN(7)
	var edges [][2]int
	for i := range n {
		for range r.IntN(3) {
			to := r.IntN(n)
			if r.IntN(2) == 0 && i+1 < n {
				to = i + 1 // so that most blocks are reached
			}
			edges = append(edges, [2]int{i, to})
		}
	}
	return graph(n, edges)
}

// reaches returns the blocks on paths from a block that do not pass another.
func reaches(from, without *Block, next func(*Block) []*Block) map[*Block]bool {
	seen := map[*Block]bool{}
	work := []*Block{from}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if b == without || seen[b] {
			continue
		}
		seen[b] = true
		work = append(work, next(b)...)
	}
	return seen
}

func succsOf(b *Block) []*Block { return b.Succs }

// TestDominators compares dominators, post-dominators and loops of random graphs with their definitions.
func TestDominators(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		f := randomGraph(r)
		entry := f.Blocks[0]
		live := reaches(entry, nil, succsOf)
		dom := Dominators(f)
		inner := Loops(f, dom)
		for _, b := range f.Blocks {
			for _, a := range f.Blocks {
				want := live[a] && live[b] && (a == b || !reaches(entry, a, succsOf)[b])
				if got := dom.Dominates(a, b); live[b] && got != want {
					t.Fatalf("block %d dominates %d: %v, want %v", a.ID, b.ID, got, want)
				}
			}
			if live[b] {
				checkLoop(t, f, dom, b, inner[b.ID])
			}
		}
		checkPostDominators(t, f, live)
	}
}

// naturalLoop returns the loop of a header: the blocks that reach an edge back to it without passing it, or nil if
// there is none.
func naturalLoop(f *Func, dom *DomTree, h *Block) map[*Block]bool {
	var loop map[*Block]bool
	for _, b := range h.Preds {
		if dom.pre[b.ID] < 0 || !dom.Dominates(h, b) {
			continue
		}
		if loop == nil {
			loop = map[*Block]bool{h: true}
		}
		for x := range reaches(b, h, func(b *Block) []*Block { return b.Preds }) {
			loop[x] = true
		}
	}
	return loop
}

// checkLoop checks that l is the smallest loop around b, and that its parents are the loops around its header.
func checkLoop(t *testing.T, f *Func, dom *DomTree, b *Block, l *Loop) {
	t.Helper()
	var sizes []int
	for _, h := range f.Blocks {
		if loop := naturalLoop(f, dom, h); loop[b] {
			sizes = append(sizes, len(loop))
		}
	}
	slices.Sort(sizes)
	if len(sizes) == 0 {
		if l != nil {
			t.Fatalf("block %d lies in the loop of %d", b.ID, l.Header.ID)
		}
		return
	}
	if l == nil || !l.Blocks[b] || len(l.Blocks) != sizes[0] || len(l.Blocks) != len(naturalLoop(f, dom, l.Header)) {
		t.Fatalf("block %d lies in loop %v, want one of %d blocks", b.ID, l, sizes[0])
	}
	for p := l; p.Parent != nil; p = p.Parent {
		if !p.Parent.Blocks[p.Header] || p.Depth != p.Parent.Depth+1 || len(p.Parent.Blocks) < len(p.Blocks) {
			t.Fatalf("the loop of %d lies in that of %d", p.Header.ID, p.Parent.Header.ID)
		}
	}
}

// checkPostDominators checks that the immediate post-dominator is the nearest block on every path to an end.
func checkPostDominators(t *testing.T, f *Func, live map[*Block]bool) {
	t.Helper()
	pdom := PostDominators(f)
	ends := func(from, without *Block) bool {
		for b := range reaches(from, without, succsOf) {
			if len(b.Succs) == 0 {
				return true
			}
		}
		return false
	}
	for _, b := range f.Blocks {
		if !live[b] || !ends(b, nil) {
			continue
		}
		var all []*Block // the post-dominators
		for _, a := range f.Blocks {
			if a != b && !ends(b, a) {
				all = append(all, a)
			}
		}
		want := -1
		for _, a := range all { // the nearest is the one that all others post-dominate
			nearest := true
			for _, x := range all {
				nearest = nearest && (x == a || !ends(a, x))
			}
			if nearest {
				want = a.ID
			}
		}
		if pdom[b.ID] != want {
			t.Fatalf("the post-dominator of %d is %d, want %d", b.ID, pdom[b.ID], want)
		}
	}
}
