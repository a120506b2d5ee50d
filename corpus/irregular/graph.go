package irregular

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Graph is a directed graph in compressed rows: the edges of vertex v lead to Edges[First[v]:First[v+1]], in ascending
// order.
type Graph struct {
	Name  string  // "dag-5"
	First []int32 // Vertices() + 1
	Edges []int32
}

// Vertices is the number of vertices, which are numbered from 0.
func (g *Graph) Vertices() int { return len(g.First) - 1 }

// Of returns the vertices to which edges of v lead.
func (g *Graph) Of(v int) []int32 { return g.Edges[g.First[v]:g.First[v+1]] }

// Values returns a distinct number from 1 to Vertices() for each vertex, in an order that depends only on the graph's
// name.
func (g *Graph) Values() []int32 {
	out := make([]int32, g.Vertices())
	for i, x := range source(g.Name + " values").Perm(len(out)) {
		out[i] = int32(x) + 1
	}
	return out
}

// Graphs returns the graphs of the suite: kinds and sizes of HiRace's table II, and small ones, for which whole
// executions can be judged by brute force. Each is the same in every call.
func Graphs() []*Graph {
	return []*Graph{
		DAG("dag-5", 5, 5), CounterDAG("counterdag-5", 5, 5), PowerLaw("powerlaw-8", 8, 14), Grid("grid-9", 3, 3),
		DAG("dag-100", 100, 200), DAG("dag-200", 200, 400), CounterDAG("counterdag-200", 200, 1000),
		PowerLaw("powerlaw-200", 200, 1000), Grid("grid-196", 14, 14),
	}
}

// source is a source of random numbers for a name.
func source(name string) *rand.Rand {
	seed := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		seed = (seed ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, 0))
}

type edge struct{ from, to int32 }

// DAG makes a graph with n vertices and the given number of edges, each from a vertex to one with a higher number. The
// name determines the edges. It panics if there cannot be so many edges.
func DAG(name string, n, edges int) *Graph {
	return random(name, n, edges, func(r *rand.Rand) edge {
		a, b := int32(r.IntN(n)), int32(r.IntN(n))
		return edge{min(a, b), max(a, b)}
	})
}

// CounterDAG makes a graph like DAG, whose edges lead to lower numbers.
func CounterDAG(name string, n, edges int) *Graph {
	return random(name, n, edges, func(r *rand.Rand) edge {
		a, b := int32(r.IntN(n)), int32(r.IntN(n))
		return edge{max(a, b), min(a, b)}
	})
}

// PowerLaw makes a graph like DAG, whose edges lead anywhere but prefer some vertices: the k-th of these is the end of
// an edge with a probability proportional to 1/k.
func PowerLaw(name string, n, edges int) *Graph {
	var upTo []float64
	sum := 0.0
	for k := range n {
		sum += 1 / float64(k+1)
		upTo = append(upTo, sum)
	}
	rank := source(name + " ranks").Perm(n)
	pick := func(r *rand.Rand) int32 {
		k, _ := slices.BinarySearch(upTo, r.Float64()*sum)
		return int32(rank[k])
	}
	return random(name, n, edges, func(r *rand.Rand) edge { return edge{pick(r), pick(r)} })
}

// random makes a graph of the first edges that draw returns, without loops and duplicates.
func random(name string, n, edges int, draw func(*rand.Rand) edge) *Graph {
	if edges > n*(n-1)/2 {
		panic(fmt.Sprintf("BUG: %d edges between %d vertices", edges, n))
	}
	r := source(name)
	var all []edge
	for seen := map[edge]bool{}; len(all) < edges; {
		if e := draw(r); e.from != e.to && !seen[e] {
			seen[e] = true
			all = append(all, e)
		}
	}
	return rows(name, n, all)
}

// Grid makes a graph of w*h vertices, each with edges to and from its neighbours left, right, above and below.
func Grid(name string, w, h int) *Graph {
	var all []edge
	for v := range w * h {
		if v%w+1 < w {
			all = append(all, edge{int32(v), int32(v + 1)}, edge{int32(v + 1), int32(v)})
		}
		if v+w < w*h {
			all = append(all, edge{int32(v), int32(v + w)}, edge{int32(v + w), int32(v)})
		}
	}
	return rows(name, w*h, all)
}

// rows puts edges into compressed rows.
func rows(name string, n int, all []edge) *Graph {
	slices.SortFunc(all, func(a, b edge) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	g := &Graph{Name: name, First: make([]int32, n+1)}
	for _, e := range all {
		g.First[e.from+1]++
		g.Edges = append(g.Edges, e.to)
	}
	for v := range n {
		g.First[v+1] += g.First[v]
	}
	return g
}
