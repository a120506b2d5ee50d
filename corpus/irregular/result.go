package irregular

import "fmt"

// The parameters of every kernel, after the number of vertices: Graph.First, Graph.Edges, the values, and the two of Memory.

// Memory is the memory that a kernel changes: its parameters out, of the kernel's type, and list.
type Memory struct {
	Out  []int64
	List []int32
}

// Before is the initial memory of the kernel.
func (k *Kernel) Before(g *Graph) Memory {
	n := g.Vertices()
	m := Memory{make([]int64, n), make([]int32, n+1)}
	switch k.Pattern {
	case "pull": // values, followed by results
		m.Out = make([]int64, 2*n)
		for v, x := range g.Values() {
			m.Out[v] = int64(x)
		}
	case "path_compression": // every vertex is a root
		for v := range n {
			m.Out[v] = int64(v)
		}
	}
	return m
}

// Compare describes how the final memory of the kernel differs from that of a single thread. It returns nil if it does
// not differ.
func (k *Kernel) Compare(g *Graph, got Memory) error {
	values := g.Values()
	switch k.Pattern {
	case "conditional_edge":
		return same("out", got.Out[:1], []int64{conditionalEdge(g, values)})
	case "conditional_vertex":
		return same("out", got.Out[:1], []int64{conditionalVertex(g, values)})
	case "pull":
		want := pull(g, values)
		if k.Has("inplace") {
			return same("value", got.Out[:len(want)], want)
		}
		return same("out", got.Out[len(want):], want)
	case "push":
		return same("out", got.Out, push(g, values))
	case "populate_worklist":
		return sameList(got.List, worklist(g, values))
	case "path_compression":
		return sameTrees(g, got.Out)
	}
	panic("BUG: pattern " + k.Pattern)
}

func same(name string, got, want []int64) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("%s[%d] is %d, one thread makes it %d", name, i, got[i], want[i])
		}
	}
	return nil
}

func conditionalEdge(g *Graph, values []int32) (out int64) {
	for v := range g.Vertices() {
		for _, w := range g.Of(v) {
			if v < int(w) {
				out = max(out, int64(values[v])+int64(values[w]))
			}
		}
	}
	return out
}

// greatest is the greatest value of the neighbours of v; 0 if it has none.
func greatest(g *Graph, values []int32, v int) (x int32) {
	for _, w := range g.Of(v) {
		x = max(x, values[w])
	}
	return x
}

func conditionalVertex(g *Graph, values []int32) (out int64) {
	for v := range g.Vertices() {
		if x := greatest(g, values, v); x > values[v] {
			out = max(out, int64(x))
		}
	}
	return out
}

func pull(g *Graph, values []int32) []int64 {
	out := make([]int64, g.Vertices())
	for v := range out {
		out[v] = int64(max(values[v], greatest(g, values, v)))
	}
	return out
}

func push(g *Graph, values []int32) []int64 {
	out := make([]int64, g.Vertices())
	for v := range out {
		for _, w := range g.Of(v) {
			out[w] = max(out[w], int64(values[v]))
		}
	}
	return out
}

// worklist returns the vertices that belong on the list.
func worklist(g *Graph, values []int32) map[int32]bool {
	out := map[int32]bool{}
	for v := range g.Vertices() {
		if greatest(g, values, v) > values[v] {
			out[int32(v)] = true
		}
	}
	return out
}

func sameList(list []int32, want map[int32]bool) error {
	if int(list[0]) != len(want) {
		return fmt.Errorf("the list has %d vertices, one thread makes it %d", list[0], len(want))
	}
	seen := map[int32]bool{}
	for _, v := range list[1 : 1+len(want)] {
		if !want[v] || seen[v] {
			return fmt.Errorf("vertex %d is on the list, where one thread would not have put it, or twice", v)
		}
		seen[v] = true
	}
	return nil
}

// sameTrees reports whether the trees of parents are the graph's components, each with its lowest vertex as its root.
func sameTrees(g *Graph, parent []int64) error {
	want := make([]int, g.Vertices())
	for v := range want {
		want[v] = v
	}
	for changed := true; changed; {
		changed = false
		for v := range want {
			for _, w := range g.Of(v) {
				low := min(want[v], want[w])
				changed = changed || want[v] != low || want[w] != low
				want[v], want[w] = low, low
			}
		}
	}
	for v := range want {
		root := int64(v)
		for steps := 0; root >= 0 && root < int64(len(parent)) && parent[root] != root; steps++ {
			if root = parent[root]; steps > len(parent) {
				return fmt.Errorf("the parents of %d lead round in a circle", v)
			}
		}
		if root != int64(want[v]) {
			return fmt.Errorf("the root of %d is %d, one thread makes it %d", v, root, want[v])
		}
	}
	return nil
}
