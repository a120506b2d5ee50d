package opt

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// graph makes blocks without instructions; edges are pairs of IDs.
func graph(n int, edges [][2]int) *Func {
	f := &Func{}
	for i := range n {
		f.Blocks = append(f.Blocks, &Block{ID: i})
	}
	for _, e := range edges {
		a, b := f.Blocks[e[0]], f.Blocks[e[1]]
		a.Succs, b.Preds = append(a.Succs, b), append(b.Preds, a)
	}
	return f
}

func joinIDs(f *Func, b, stop int) []int {
	var ids []int
	for _, x := range f.joins(f.Blocks[b], stop) {
		ids = append(ids, x.ID)
	}
	slices.Sort(ids)
	return ids
}

// TestJoins: where lanes that part at a branch meet.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int
		edges   [][2]int
		b, stop int
		want    []int
	}{
		{"if", 3, [][2]int{{0, 1}, {0, 2}, {1, 2}}, 0, 2, []int{2}},
		{"if else", 4, [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}}, 0, 3, []int{3}},
		{"both edges to one block", 2, [][2]int{{0, 1}, {0, 1}}, 0, 1, []int{1}},
		{"while: the header is no join", 4, [][2]int{{0, 1}, {1, 2}, {1, 3}, {2, 1}}, 1, 3, nil},
		{"do while", 3, [][2]int{{0, 1}, {1, 1}, {1, 2}}, 1, 2, nil},
		{"continue: the header is a join, and the latch", 5, [][2]int{{0, 1}, {1, 2}, {1, 4}, {2, 3}, {2, 1}, {3, 1}}, 2, 1, []int{1}},
		{"break: what follows the loop is one", 5, [][2]int{{0, 1}, {1, 2}, {1, 4}, {2, 3}, {2, 4}, {3, 1}}, 2, 4, []int{4}},
	} {
		if got := joinIDs(graph(c.n, c.edges), c.b, c.stop); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestJoinsDisjoint compares joins with what they are: the ends of two ways by different edges that share no block before.
// In graphs without loops they are the same; in others there may be more.
func TestJoinsDisjoint(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		n, loops := 3+r.IntN(5), r.IntN(2) == 0
		var edges [][2]int
		for i := range n {
			for range 1 + r.IntN(2) {
				switch {
				case loops && r.IntN(3) == 0:
					edges = append(edges, [2]int{i, r.IntN(n)})
				case i+1 < n:
					edges = append(edges, [2]int{i, i + 1 + r.IntN(n-i-1)})
				}
			}
		}
		f := graph(n, edges)
		b, stop := r.IntN(n), PostDominators(f)
		got := joinIDs(f, b, stop[b])
		for x := range n {
			want, have := disjoint(f, f.Blocks[b], x, stop[b]), slices.Contains(got, x)
			if want && !have || have && !want && !loops {
				t.Fatalf("%v from %d to %d: %v; block %d joined %v", edges, b, stop[b], got, x, want)
			}
		}
	}
}

// disjoint reports whether two ways from b to block x, by different edges, share nothing but their ends.
func disjoint(f *Func, b *Block, x, stop int) bool {
	var ways func(at *Block, passed uint) []uint // sets of blocks before x
	ways = func(at *Block, passed uint) []uint {
		var list []uint
		if at.ID == x {
			list = append(list, passed)
		}
		if at == b || at.ID == stop || at.ID == x || passed>>at.ID&1 != 0 {
			return list
		}
		for _, s := range at.Succs {
			list = append(list, ways(s, passed|1<<at.ID)...)
		}
		return list
	}
	for i, s := range b.Succs {
		for _, u := range b.Succs[i+1:] {
			for _, p := range ways(s, 0) {
				for _, q := range ways(u, 0) {
					if p&q == 0 {
						return true
					}
				}
			}
		}
	}
	return false
}
